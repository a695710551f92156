//! Why changes were not applied.

use crate::store::StoreError;

/// Why changes were not applied. The file is as before.
#[derive(Debug, thiserror::Error)]
pub enum ApplyError {
    /// The commit does not follow the replica's last.
    #[error("the commit follows seq {expected}, but the last commit here is at seq {found}, or of another history")]
    Base {
        /// The seq that the commit follows.
        expected: u64,
        /// The replica's.
        found: u64,
    },
    /// The rows are not the origin's afterwards.
    #[error("the rows after seq {0} do not add up to the origin's digest")]
    Digest(u64),
    /// The changes cannot be understood.
    #[error("the changes cannot be applied: {0}")]
    Malformed(String),
    /// The rows are of a program whose records have other fields.
    #[error("the rows are not those of this medfeed's version")]
    OtherVersion,
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
}
