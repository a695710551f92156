//! Copying an origin's commits into a bucket, and from there into replicas.
//!
//! The steps of a commit:
//! 1. Commit: [`Edit::commit`](crate::store::Edit::commit) writes the rows, and in the same transaction their changes
//!    into the outbox (`store/file/published.rs`).
//! 2. Round: the publisher sees the commit (`Publisher::run`), and decides what the next entry is
//!    (`publisher/step.rs`).
//! 3. Entry: it reads the changes of the outbox ([`OriginView`](crate::store::replication::OriginView)), and encodes
//!    them as one [`frame`].
//! 4. Create: it creates `log/N`, and notes what is published (`publisher/fence.rs`).
//! 5. Poll: at a replica, [`Replica::poll`](replica::Replica::poll) reads `log/N` and checks that it continues the log
//!    ([`LogReader`](replica::LogReader)).
//! 6. Apply: [`ReplicaWriter`](crate::store::replication::ReplicaWriter) writes the changes and the position in one
//!    transaction, after it has compared head and digest.
//! 7. Load: `serve/watching/replica_thread.rs` has the server read the file, like any commit.
//!
//! The files:
//! - [`layout`]: the names of the objects.
//! - [`frame`]: the encoding of all objects.
//! - [`entry`]: an entry of the log.
//! - [`state`]: a whole state, in parts.
//! - [`heartbeat`]: the publisher's heartbeat.
//! - [`protocol`]: whose the log is, without requests and files.
//! - [`publisher`]: writes an origin's commits into the bucket.
//! - [`replica`]: keeps a replica's file up to date from the bucket.

pub mod entry;
mod frame;
pub mod heartbeat;
pub mod layout;
mod protocol;
pub(crate) mod publisher;
pub mod replica;
pub mod state;
#[cfg(test)]
mod test_log;
