//! The two datasets, and the formats of exports.

use std::ops::{Index, IndexMut};

use serde::{Deserialize, Serialize};
use strum::EnumCount;

/// A dataset. Every path, token and row key begins with it (contract, "What the service does").
#[derive(
    Clone,
    Copy,
    Debug,
    PartialEq,
    Eq,
    PartialOrd,
    Ord,
    Hash,
    Serialize,
    Deserialize,
    strum::Display,
    strum::EnumCount,
    strum::EnumString,
    strum::IntoStaticStr,
)]
#[serde(rename_all = "lowercase")]
#[strum(serialize_all = "lowercase", parse_err_ty = UnknownDataset, parse_err_fn = unknown)]
pub enum Dataset {
    /// Medical conference editions.
    Conferences = 1,
    /// Medical journals.
    Journals = 2,
}

impl Dataset {
    /// Both datasets, in the order in which commits number their records.
    pub const ALL: [Dataset; Dataset::COUNT] = [Dataset::Conferences, Dataset::Journals];

    /// Returns the name in paths, file stems and JSON.
    pub const fn as_str(self) -> &'static str {
        match self {
            Dataset::Conferences => "conferences",
            Dataset::Journals => "journals",
        }
    }

    /// Returns the number in row keys and tokens. It is part of the file format.
    pub const fn code(self) -> u8 {
        self as u8
    }

    /// Returns the dataset with this [`Dataset::code`].
    pub fn from_code(code: u8) -> Option<Dataset> {
        Dataset::ALL.into_iter().find(|dataset| dataset.code() == code)
    }
}

/// A value for each dataset.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
// Rows from before a dataset was added lack its member.
#[serde(default, deny_unknown_fields)]
#[allow(missing_docs, reason = "named as the datasets")]
pub struct PerDataset<T> {
    pub conferences: T,
    pub journals: T,
}

impl<T> PerDataset<T> {
    /// Computes the value of each dataset.
    pub fn of(mut make: impl FnMut(Dataset) -> T) -> PerDataset<T> {
        PerDataset { conferences: make(Dataset::Conferences), journals: make(Dataset::Journals) }
    }

    /// Returns the values, in the order of [`Dataset::ALL`].
    pub fn values(&self) -> impl Iterator<Item = &T> {
        Dataset::ALL.into_iter().map(|dataset| &self[dataset])
    }
}

impl<T> Index<Dataset> for PerDataset<T> {
    type Output = T;

    fn index(&self, dataset: Dataset) -> &T {
        match dataset {
            Dataset::Conferences => &self.conferences,
            Dataset::Journals => &self.journals,
        }
    }
}

impl<T> IndexMut<Dataset> for PerDataset<T> {
    fn index_mut(&mut self, dataset: Dataset) -> &mut T {
        match dataset {
            Dataset::Conferences => &mut self.conferences,
            Dataset::Journals => &mut self.journals,
        }
    }
}

/// The format of an export.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ExportFormat {
    /// One JSON object per line.
    Jsonl,
    /// One flat table (RFC 4180).
    Csv,
}

/// The error of a text that is not the name of a dataset.
#[derive(Debug, thiserror::Error)]
#[error("`{0}` is not a dataset; the datasets are `conferences` and `journals`")]
pub struct UnknownDataset(String);

fn unknown(text: &str) -> UnknownDataset {
    UnknownDataset(text.to_owned())
}
