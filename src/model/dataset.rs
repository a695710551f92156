//! The two datasets of the service, and the formats in which they are exported.

use serde::{Deserialize, Serialize};

/// A dataset: the first member of every path, token and row key (the contract, "What the service does").
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
    pub const ALL: [Dataset; 2] = [Dataset::Conferences, Dataset::Journals];

    /// The name in paths, file stems and JSON.
    pub const fn as_str(self) -> &'static str {
        match self {
            Dataset::Conferences => "conferences",
            Dataset::Journals => "journals",
        }
    }

    /// The number that stands for the dataset in row keys and tokens. Part of the file format.
    pub const fn code(self) -> u8 {
        self as u8
    }

    /// The dataset of a [`Dataset::code`].
    pub fn from_code(code: u8) -> Option<Dataset> {
        Dataset::ALL.into_iter().find(|dataset| dataset.code() == code)
    }

    /// The position in [`Dataset::ALL`], for arrays with one element per dataset.
    pub const fn index(self) -> usize {
        self as usize - 1
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

/// The text named no dataset.
#[derive(Debug, thiserror::Error)]
#[error("`{0}` is not a dataset; the datasets are `conferences` and `journals`")]
pub struct UnknownDataset(String);

fn unknown(text: &str) -> UnknownDataset {
    UnknownDataset(text.to_owned())
}
