//! The database's part in replication: what commits changed, and files that follow them.
//!
//! - [`origin`]: what a publisher asks of the database that it publishes.
//! - [`replica`]: the only writer of a replica's file; [`draft`]: a replica that is being loaded; [`error`]: why changes were
//!   not applied, which `apply` does.

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
pub use crate::store::upgrade::OLDEST;
pub use draft::{LoadedDraft, OldReplicaFile, ReplicaDraft};
pub use error::ApplyError;
pub use origin::{OriginView, Pending};
pub use replica::{CommitChanges, ReplicaWriter, SeqJump};
