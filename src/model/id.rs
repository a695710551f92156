//! Ids of records, organizations and tags.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// An id, given by the curator: 1 to 2^53-1. Every JSON reader represents these numbers exactly.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "u64", into = "u64")]
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

/// The error of a number or text that is not an id.
#[derive(Debug, thiserror::Error)]
#[error("an id is a whole number from 1 to 9007199254740991")]
pub struct NotAnId;

impl TryFrom<u64> for Id {
    type Error = NotAnId;

    fn try_from(number: u64) -> Result<Self, NotAnId> {
        if (Id::MIN.0..=Id::MAX.0).contains(&number) { Ok(Id(number)) } else { Err(NotAnId) }
    }
}

impl From<Id> for u64 {
    fn from(id: Id) -> u64 {
        id.0
    }
}

impl FromStr for Id {
    type Err = NotAnId;

    /// Parses decimal digits without sign or leading zero.
    fn from_str(text: &str) -> Result<Self, NotAnId> {
        if !text.bytes().all(|byte| byte.is_ascii_digit()) || text.starts_with('0') {
            return Err(NotAnId);
        }
        Id::try_from(text.parse::<u64>().map_err(|_| NotAnId)?)
    }
}

impl fmt::Display for Id {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}
