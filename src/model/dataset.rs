//! The two datasets of the service.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// A dataset: the first member of every path, token and row key (the contract, "What the service does").
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Dataset {
    /// Medical conference editions.
    Conferences,
    /// Medical journals.
    Journals,
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
        match self {
            Dataset::Conferences => 1,
            Dataset::Journals => 2,
        }
    }

    /// The dataset of a [`Dataset::code`].
    pub fn from_code(code: u8) -> Option<Dataset> {
        Dataset::ALL.into_iter().find(|dataset| dataset.code() == code)
    }

    /// The place in [`Dataset::ALL`], for arrays with one element per dataset.
    pub const fn index(self) -> usize {
        match self {
            Dataset::Conferences => 0,
            Dataset::Journals => 1,
        }
    }
}

impl fmt::Display for Dataset {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// The text named no dataset.
#[derive(Debug, thiserror::Error)]
#[error("`{0}` is not a dataset; the datasets are `conferences` and `journals`")]
pub struct UnknownDataset(String);

impl FromStr for Dataset {
    type Err = UnknownDataset;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Dataset::ALL.into_iter().find(|dataset| dataset.as_str() == text).ok_or_else(|| UnknownDataset(text.to_owned()))
    }
}
