//! The errors of a pull, by remedy, and the pauses before retries.

use std::fmt::Display;
use std::time::Duration;

use crate::model::Dataset;
use crate::transport::{Backoff, random_part};

/// The longest pause, even if `Retry-After` is longer: the pull holds the copy's lock meanwhile.
const LONGEST_PAUSE: Duration = Duration::from_secs(300);

const BACKOFF: Backoff = Backoff {
    first: Duration::from_millis(500),
    longest: LONGEST_PAUSE,
};

/// The result of a step of a pull.
pub type Result<T, E = PullError> = std::result::Result<T, E>;

/// The error of a pull. The copy is as it was after the last complete page or load.
#[derive(Debug, thiserror::Error)]
pub enum PullError {
    /// The service cannot be reached, is overloaded, or sent an invalid response. A retry may help.
    #[error("{message}")]
    Failed {
        /// The message for the user.
        message: String,
        /// The service's `Retry-After`.
        retry_after: Option<Duration>,
    },
    /// The copy cannot be written now: no space, no permission, or in use by another process.
    #[error("{0}")]
    Unwritable(String),
    /// The reader of the changes has ended, so nobody receives more of them.
    #[error("standard output was closed; changes that were not printed are not saved")]
    OutputClosed,
    /// The license does not have the dataset.
    #[error(
        "the license of the key does not have the dataset `{0}`; ask the operator for a license that does"
    )]
    NotLicensed(Dataset),
    /// The license has lost a dataset, and the copy's records of it were removed.
    #[error(
        "the license of the key does not have the dataset `{0}` any more; ask the operator, or name the other datasets \
         with --dataset"
    )]
    LicenseLost(Dataset),
    /// The service redirects to another address. A follower tries again, because the network may ask for a login.
    #[error("{0}")]
    Redirected(String),
    /// The service rejects the key or the requests.
    #[error("{0}")]
    Refused(String),
    /// The location holds no copy that this program can use, or a damaged one.
    #[error("{0}")]
    Unusable(String),
    /// The database rejects a statement: a table or column is missing, or an object that others added refuses the write.
    #[error(
        "{copy}: its tables are not as `medfeed pull` made them ({reason}); --reload makes what is missing again, and keeps \
         what others added; if that fails too, {other_location}"
    )]
    Rejected {
        /// The location of the copy.
        copy: String,
        /// The database's message.
        reason: String,
        /// The advice to name another location.
        other_location: &'static str,
    },
}

impl PullError {
    /// A [`PullError::Failed`] without `Retry-After`.
    pub fn failed(message: impl Into<String>) -> PullError {
        PullError::Failed {
            message: message.into(),
            retry_after: None,
        }
    }

    /// The copy has another format. `other_location` says how to name another location.
    pub fn of_another_version(
        copy: impl Display,
        format: impl Display,
        known: impl Display,
        other_location: &str,
    ) -> PullError {
        PullError::Unusable(format!(
            "{copy} was written by another version of this program (format {format}; this one knows {known}); use that \
             version, or {other_location}"
        ))
    }

    /// Whether a later retry may help without any action by a user.
    pub fn is_transient(&self) -> bool {
        matches!(
            self,
            PullError::Failed { .. } | PullError::Unwritable(_) | PullError::Redirected(_)
        )
    }

    /// The exit code: 1 if another run may help, 3 if the service rejects the request, 4 if the copy is unusable.
    pub fn exit_code(&self) -> u8 {
        match self {
            PullError::Failed { .. } | PullError::Unwritable(_) | PullError::OutputClosed => 1,
            PullError::NotLicensed(_)
            | PullError::LicenseLost(_)
            | PullError::Redirected(_)
            | PullError::Refused(_) => 3,
            PullError::Unusable(_) | PullError::Rejected { .. } => 4,
        }
    }

    /// The pause after a number of consecutive failures: `Retry-After`, or exponential backoff.
    pub fn pause_after(&self, failures: u32) -> Duration {
        match self {
            PullError::Failed {
                retry_after: Some(asked),
                ..
            } => (*asked).min(LONGEST_PAUSE) + BACKOFF.first.mul_f64(random_part()),
            _ => BACKOFF.pause(failures),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_use_retry_after_within_a_bound() {
        let cases = [
            (Some(0), 0, 500),
            (Some(7), 7000, 7500),
            (Some(300), 300_000, 300_500),
            (Some(u64::MAX), 300_000, 300_500),
            // The third failure in a row.
            (None, 1000, 2000),
        ];
        for (asked_s, least_ms, most_ms) in cases {
            let retry_after = asked_s.map(Duration::from_secs);
            let pause = PullError::Failed {
                message: String::new(),
                retry_after,
            }
            .pause_after(3);
            assert!(
                (least_ms..=most_ms).contains(&pause.as_millis()),
                "{asked_s:?}: {pause:?}"
            );
        }
    }
}
