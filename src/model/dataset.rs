//! The parts of every path and row key: the two datasets, and the ids of records, organizations and tags. And the
//! formats of exports.

use std::fmt;
use std::ops::{Index, IndexMut};
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use strum::{Display, EnumString};

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
    Display,
    EnumString,
)]
#[serde(rename_all = "lowercase")]
#[strum(serialize_all = "lowercase", parse_err_ty = UnknownDataset, parse_err_fn = unknown_dataset)]
pub enum Dataset {
    /// Medical conference editions.
    Conferences = 1,
    /// Medical journals.
    Journals = 2,
}

/// Evaluates an expression for a dataset. In it, `$fields` is the type of the dataset's fields.
macro_rules! with_fields {
    ($dataset:expr, $fields:ident => $run:expr) => {
        match $dataset {
            $crate::model::Dataset::Conferences => {
                type $fields = $crate::model::ConferenceFields;
                $run
            }
            $crate::model::Dataset::Journals => {
                type $fields = $crate::model::JournalFields;
                $run
            }
        }
    };
}
pub(crate) use with_fields;

/// A text that is no dataset.
#[derive(Debug, thiserror::Error)]
#[error("`{0}` is not a dataset; the datasets are `conferences` and `journals`")]
pub struct UnknownDataset(String);

fn unknown_dataset(text: &str) -> UnknownDataset {
    UnknownDataset(text.to_owned())
}

impl Dataset {
    /// Both datasets, in the order in which commits number their records.
    pub const ALL: [Dataset; 2] = [Dataset::Conferences, Dataset::Journals];

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
        Dataset::ALL
            .into_iter()
            .find(|dataset| dataset.code() == code)
    }
}

/// A value for each dataset.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
// Rows from before a dataset was added lack its member.
#[serde(default, deny_unknown_fields)]
pub struct PerDataset<T> {
    /// Of conferences.
    pub conferences: T,
    /// Of journals.
    pub journals: T,
}

impl<T> PerDataset<T> {
    /// Computes the value of each dataset.
    pub fn of(mut make: impl FnMut(Dataset) -> T) -> PerDataset<T> {
        PerDataset {
            conferences: make(Dataset::Conferences),
            journals: make(Dataset::Journals),
        }
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

/// An id, given by the curator: 1 to 2^53-1. Every JSON reader represents these numbers exactly.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "u64")]
pub struct Id(u64);

impl Id {
    /// The smallest id.
    pub const MIN: Id = Id(1);
    /// The largest id, 2^53-1.
    pub const MAX: Id = Id((1 << 53) - 1);

    /// Returns the id as a number.
    pub const fn get(self) -> u64 {
        self.0
    }
}

/// The message for a number or text that is not an id.
pub const NOT_AN_ID: &str = "an id is a whole number from 1 to 9007199254740991";

impl TryFrom<u64> for Id {
    type Error = &'static str;

    fn try_from(number: u64) -> Result<Self, &'static str> {
        if (Id::MIN.0..=Id::MAX.0).contains(&number) {
            Ok(Id(number))
        } else {
            Err(NOT_AN_ID)
        }
    }
}

impl FromStr for Id {
    type Err = &'static str;

    /// Parses decimal digits without sign or leading zero.
    fn from_str(text: &str) -> Result<Self, &'static str> {
        if !text.bytes().all(|byte| byte.is_ascii_digit()) || text.starts_with('0') {
            return Err(NOT_AN_ID);
        }
        Id::try_from(text.parse::<u64>().map_err(|_| NOT_AN_ID)?)
    }
}

impl fmt::Display for Id {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_whole_numbers_up_to_their_maximum() {
        let cases = outcomes![
            "1" => Some(1);
            "10" => Some(10);
            "9007199254740991" => Some(9_007_199_254_740_991);
            "9007199254740992" "18446744073709551615" "18446744073709551616" "0" "01" "+1" "-1"
            "1.0" " 1" "١" "" => None;
        ];
        for (text, expected) in cases {
            assert_eq!(text.parse::<Id>().ok().map(Id::get), expected, "{text:?}");
            if let Ok(number) = text.parse::<u64>()
                && !text.starts_with(['0', '+'])
            {
                assert_eq!(Id::try_from(number).ok().map(Id::get), expected, "{text:?}");
            }
        }
        assert!(Id::try_from(0).is_err());
        assert_eq!(Id::MIN.to_string(), "1".to_owned());
        assert_eq!(Id::MAX.to_string(), "9007199254740991".to_owned());
    }
}
