//! What can go wrong with a bucket, by what can be done about it.

/// A failure of a bucket. Its words begin in lower case and say what to do.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BucketError {
    /// It may pass by itself: no connection, no answer in time, an overloaded or failing store. Whether a write took place is
    /// unknown: read the object to learn it.
    #[error("{0}")]
    Unreachable(String),
    /// Somebody must act: no permission, a wrong configuration, a store without conditional puts.
    #[error("{0}")]
    Refused(String),
    /// An object is not what was written: sealed with another key, or its bytes were changed.
    #[error("object `{name}` is damaged: {detail}")]
    Damaged {
        /// The object's name below the bucket's prefix.
        name: String,
        /// What does not fit, and what to do.
        detail: String,
    },
}

impl BucketError {
    /// Whether trying again later may help, with nothing done by anybody.
    pub fn may_pass(&self) -> bool {
        matches!(self, BucketError::Unreachable(_))
    }
}
