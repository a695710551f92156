//! Why a pull ends, by what can be done about it.

use std::time::Duration;

use crate::model::Dataset;

/// Why a pull did not succeed. The copy stands as it did after the last whole page.
#[derive(Debug, thiserror::Error)]
pub enum PullError {
    /// The service cannot be reached, is overloaded, or sent what cannot be used; trying again may help.
    #[error("{message}")]
    Failed {
        /// What happened.
        message: String,
        /// How long the service wants not to be asked.
        retry_after: Option<Duration>,
    },
    /// The copy cannot be written now: no space, no permission, another process works on it.
    #[error("{0}")]
    Unwritable(String),
    /// The license does not have the dataset.
    #[error("the license of the key does not have the dataset `{0}`; ask the operator for a license that does")]
    NotLicensed(Dataset),
    /// The service refuses the key, or all that was asked for.
    #[error("{0}")]
    Refused(String),
    /// What stands there is no copy that this program can go on with.
    #[error("{0}")]
    Unusable(String),
}

impl PullError {
    /// A failure that names no time to wait.
    pub fn failed(message: impl Into<String>) -> PullError {
        PullError::Failed { message: message.into(), retry_after: None }
    }

    /// Whether trying again later may help, with nothing done by anybody.
    pub fn may_pass(&self) -> bool {
        matches!(self, PullError::Failed { .. } | PullError::Unwritable(_))
    }

    /// The exit code that stands for it: 1 when trying again may help, 3 when the service says no, 4 when the copy cannot be
    /// used.
    pub fn exit_code(&self) -> u8 {
        match self {
            PullError::Failed { .. } | PullError::Unwritable(_) => 1,
            PullError::NotLicensed(_) | PullError::Refused(_) => 3,
            PullError::Unusable(_) => 4,
        }
    }
}
