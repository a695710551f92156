//! Replication in the database: reading the changes of commits, and applying them to replicas.
//!
//! - [`origin`]: reading a published database.
//! - [`replica`]: the writer of a replica; [`draft`]: loading a replica; `apply`: applying changes; [`error`]: errors.

mod apply;
pub mod draft;
pub mod error;
pub mod origin;
pub mod replica;
#[cfg(test)]
mod tests;

pub use crate::store::file::open::read_replica;
pub use crate::store::file::published_note::PublishedNote;
pub use crate::store::format::replica::ReplicaMark;
pub use crate::store::format::tables::SCHEMA;
pub use draft::{LoadedDraft, OlderReplica, ReplicaDraft};
pub use error::ApplyError;
pub use origin::{OriginView, Pending};
pub use replica::{CommitChanges, ReplicaWriter, SeqJump};
