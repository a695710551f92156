//! Objects, stores of objects, and the errors of a bucket.

use std::fmt::Debug;

use crate::model::Timestamp;

/// The maximum size of an object, in bytes. medfeed writes no larger ones.
pub(super) const OBJECT_BYTES: u64 = 1 << 29;

/// An object that was read.
#[derive(Debug)]
pub struct BucketObject {
    /// Its bytes, unsealed.
    pub bytes: Vec<u8>,
    /// When it was last written, by the store's clock.
    pub modified: Timestamp,
}

/// An entry in a list of objects.
#[derive(Debug, PartialEq, Eq)]
pub struct ListedObject {
    /// Its name below the bucket's prefix.
    pub name: String,
    /// Its size in the store, in bytes. Sealing adds a few bytes.
    pub bytes: u64,
    /// When it was last written, by the store's clock.
    pub modified: Timestamp,
}

/// The outcome of a create.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Created {
    /// This call created it.
    New,
    /// The store refused, probably because the name is taken. Read the object to be sure. It may be our own, from a
    /// request whose response was lost. Or there may be none: some stores also refuse (409) while another request is in
    /// progress.
    Exists,
}

/// The result of a request to a bucket.
pub type Result<T, E = BucketError> = std::result::Result<T, E>;

/// An error of a bucket. The message begins in lower case and says what to do.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum BucketError {
    /// Temporary: no connection, a timeout, or a store that is overloaded or failing. A write may have happened or not.
    /// Read the object to find out.
    #[error("{0}")]
    Unreachable(String),
    /// An operator must act: no permission, a wrong configuration, or a store without conditional puts.
    #[error("{0}")]
    Refused(String),
    /// An object was sealed with another key, or its bytes were changed.
    #[error("object `{name}` is damaged: {detail}")]
    Damaged {
        /// The object's name below the bucket's prefix.
        name: String,
        /// The problem, and what to do.
        detail: String,
    },
}

impl BucketError {
    /// Whether the error is temporary.
    pub fn is_transient(&self) -> bool {
        matches!(self, BucketError::Unreachable(_))
    }
}

/// A store of objects. The names of the methods, their arguments and errors are those of [`Bucket`](super::Bucket).
pub(super) trait Store: Debug + Send + Sync {
    fn prepare(&self) -> Result<()> {
        Ok(())
    }

    fn get(&self, name: &str) -> Result<Option<BucketObject>>;
    fn create(&self, name: &str, bytes: Vec<u8>) -> Result<Created>;
    fn put(&self, name: &str, bytes: Vec<u8>) -> Result<()>;
    /// May also list names that are not after `after`.
    fn list(&self, folder: &str, after: Option<&str>) -> Result<Vec<ListedObject>>;
    fn delete(&self, name: &str) -> Result<()>;
}
