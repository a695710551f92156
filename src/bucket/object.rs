//! Objects as they are read, listed and created.

use crate::model::Timestamp;

/// The most that an object may hold, in bytes: more is no object of ours.
pub(super) const OBJECT_BYTES: u64 = 1 << 29;

/// An object as it was read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Object {
    /// Its bytes, unsealed.
    pub bytes: Vec<u8>,
    /// When it was last written, by the store's clock.
    pub modified: Timestamp,
}

/// An object as a list names it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Listed {
    /// Its name below the bucket's prefix.
    pub name: String,
    /// How many bytes stand in the store; a sealed object takes a little more than it holds.
    pub bytes: u64,
    /// When it was last written, by the store's clock.
    pub modified: Timestamp,
}

/// What became of an object that was to be created.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Created {
    /// This call created it.
    New,
    /// The store refused since the name is taken, as it seems. Read it to know: it may be our own, put by a request whose answer
    /// was lost and which was sent again; or there may be nothing, since stores also refuse (409) while another request is
    /// under way.
    Exists,
}
