//! The confidence of conference dates.

use serde::{Deserialize, Serialize};

use super::value::{Scalar, ValueKind};

/// The confidence of a date (contract, "Date confidence values").
#[derive(
    Clone,
    Copy,
    Debug,
    PartialEq,
    Eq,
    Serialize,
    Deserialize,
    strum::Display,
    strum::EnumString,
    strum::IntoStaticStr,
    strum::VariantNames,
)]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
pub enum DateStatus {
    /// Published by the organizer and checked against the official source.
    Confirmed,
    /// Projected from the lead times of earlier editions.
    Estimated,
    /// Carried forward from the previous edition.
    Copied,
    /// Looked for, not published yet.
    NotFound,
    /// Under review by the curator.
    Check,
}

impl DateStatus {
    /// All values, in the contract's order.
    pub const ALL: [DateStatus; 5] =
        [DateStatus::Confirmed, DateStatus::Estimated, DateStatus::Copied, DateStatus::NotFound, DateStatus::Check];

    /// Returns the value in JSON and CSV.
    pub fn as_str(self) -> &'static str {
        self.into()
    }

    /// Returns the rule that a date, or its absence, breaks under this status.
    pub fn fault_with(self, has_date: bool) -> Option<&'static str> {
        match (self, has_date) {
            (DateStatus::Confirmed | DateStatus::Estimated | DateStatus::Copied, false) => {
                Some("needs a date; give one, or use `not_found` or `check`")
            }
            (DateStatus::NotFound, true) => Some("must have no date; remove the date, or use another status"),
            _ => None,
        }
    }
}

impl Scalar for DateStatus {
    const KIND: ValueKind = ValueKind::DateStatus(<DateStatus as strum::VariantNames>::VARIANTS);
    const EXPECTED: &'static str = "write one of `confirmed`, `estimated`, `copied`, `not_found`, `check`";

    fn parse(text: &str) -> Option<DateStatus> {
        text.parse().ok()
    }

    fn rank(&self) -> u64 {
        *self as u64 + 1
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_status_says_whether_there_is_a_date() {
        let (needs, forbids) = (Some("needs a date; "), Some("must have no date; "));
        let cases = [
            ("confirmed", None, needs),
            ("estimated", None, needs),
            ("copied", None, needs),
            ("not_found", forbids, None),
            ("check", None, None),
        ];
        for ((word, with, without), status) in cases.into_iter().zip(DateStatus::ALL) {
            assert_eq!((status.as_str(), DateStatus::parse(word)), (word, Some(status)));
            for (has_date, expected) in [(true, with), (false, without)] {
                let fault = status.fault_with(has_date);
                assert!(
                    fault.is_some() == expected.is_some() && fault.unwrap_or("").starts_with(expected.unwrap_or("")),
                    "{word}"
                );
            }
        }
        assert!(DateStatus::parse("Confirmed").is_none() && DateStatus::parse("notfound").is_none());
        assert_eq!(DateStatus::ALL.map(|status| status.rank()), [1, 2, 3, 4, 5]);
    }
}
