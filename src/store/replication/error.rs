//! Errors of applying changes.

use crate::store::StoreError;

/// Changes could not be applied. The file is unchanged.
#[derive(Debug, thiserror::Error)]
#[allow(missing_docs, reason = "the messages explain the variants")]
pub enum ApplyError {
    #[error("the commit follows seq {expected}, but the last commit here is at seq {found}, or of another history")]
    Base { expected: u64, found: u64 },
    #[error("the rows after seq {0} do not add up to the origin's digest")]
    Digest(u64),
    #[error("the changes cannot be applied: {0}")]
    Malformed(String),
    #[error("the rows are of another version of medfeed")]
    OtherVersion,
    #[error(transparent)]
    Store(#[from] StoreError),
}
