//! The errors of a bucket.

/// An error of a bucket. The message begins in lower case and says what to do.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
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
    pub fn may_pass(&self) -> bool {
        matches!(self, BucketError::Unreachable(_))
    }
}
