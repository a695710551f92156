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

/// The message for a number or text that is not an id.
pub const NOT_AN_ID: &str = "an id is a whole number from 1 to 9007199254740991";

impl TryFrom<u64> for Id {
    type Error = &'static str;

    fn try_from(number: u64) -> Result<Self, &'static str> {
        if (Id::MIN.0..=Id::MAX.0).contains(&number) { Ok(Id(number)) } else { Err(NOT_AN_ID) }
    }
}

impl From<Id> for u64 {
    fn from(id: Id) -> u64 {
        id.0
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_whole_numbers_up_to_their_maximum() {
        let cases = [
            ("1", Some(1)),
            ("10", Some(10)),
            ("9007199254740991", Some(9_007_199_254_740_991)),
            ("9007199254740992", None),
            ("18446744073709551615", None),
            ("18446744073709551616", None),
            ("0", None),
            ("01", None),
            ("+1", None),
            ("-1", None),
            ("1.0", None),
            (" 1", None),
            ("١", None),
            ("", None),
        ];
        for (text, expected) in cases {
            assert_eq!(text.parse::<Id>().ok().map(Id::get), expected, "{text:?}");
            if let Ok(number) = text.parse::<u64>()
                && !text.starts_with(['0', '+'])
            {
                assert_eq!(Id::try_from(number).ok().map(u64::from), expected, "{text:?}");
            }
        }
        assert!(Id::try_from(0).is_err());
        assert_eq!((Id::MIN.to_string(), Id::MAX.to_string()), ("1".to_owned(), "9007199254740991".to_owned()));
    }
}
