//! Copying an origin's commits into a bucket, and from there into replicas.
//!
//! - [`layout`]: the names of the objects.
//! - [`frame`]: the encoding of all objects.
//! - [`entry`]: an entry of the log.
//! - [`state`]: a whole state, in parts.
//! - [`heartbeat`]: the publisher's heartbeat.
//! - [`publisher`]: writes an origin's commits into the bucket.
//! - [`replica`]: keeps a replica's file up to date from the bucket.

pub mod entry;
pub mod frame;
pub mod heartbeat;
pub mod layout;
pub mod publisher;
pub mod replica;
pub mod state;
#[cfg(test)]
mod test_log;
