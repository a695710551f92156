//! Replication in the database: reading the changes of commits, and applying them to replicas.
//!
//! - [`origin`]: reading a published database.
//! - [`replica_writer`]: the writer of a replica; [`draft`]: loading a replica; `apply`: applying changes.

mod apply;
pub mod draft;
pub mod origin;
pub mod replica_writer;
#[cfg(test)]
mod tests;

pub use crate::store::file::notes::PublishedNote;
pub use crate::store::file::open::read_replica;
pub use crate::store::format::meta::ReplicaMark;
pub use crate::store::format::tables::SCHEMA;
pub use apply::ApplyError;
pub use draft::{LoadedDraft, ReplicaDraft};
pub use origin::OriginView;
pub use replica_writer::{CommitChanges, ReplicaWriter};
