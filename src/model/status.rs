//! How far a conference date can be trusted.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// The confidence of a date (the contract, "Date confidence values").
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
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
    /// Every value, in the contract's order.
    pub const ALL: [DateStatus; 5] =
        [DateStatus::Confirmed, DateStatus::Estimated, DateStatus::Copied, DateStatus::NotFound, DateStatus::Check];

    /// The value in JSON and CSV.
    pub const fn as_str(self) -> &'static str {
        match self {
            DateStatus::Confirmed => "confirmed",
            DateStatus::Estimated => "estimated",
            DateStatus::Copied => "copied",
            DateStatus::NotFound => "not_found",
            DateStatus::Check => "check",
        }
    }

    /// What is wrong with a date, or its absence, under this status; `None` when they agree.
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

impl fmt::Display for DateStatus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// The text is not a status.
#[derive(Debug, thiserror::Error)]
#[error("write one of `confirmed`, `estimated`, `copied`, `not_found`, `check`")]
pub struct NotAStatus;

impl FromStr for DateStatus {
    type Err = NotAStatus;

    fn from_str(text: &str) -> Result<Self, NotAStatus> {
        DateStatus::ALL.into_iter().find(|status| status.as_str() == text).ok_or(NotAStatus)
    }
}
