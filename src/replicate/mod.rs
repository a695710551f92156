//! What an origin publishes into a bucket, and what its replicas read there.
//!
//! - [`layout`]: the names of the objects.
//! - [`frame`]: what all of them are: a mark, a header, bytes, a hash.
//! - [`entry`]: an entry of the log.
//! - [`state`]: a whole state, in parts.
//! - [`report`]: what publisher and replicas tell about themselves.
//! - [`follower`]: a file that follows the log.
//! - [`publisher`]: putting what an origin commits.
//! - [`who`]: who does either.

pub mod entry;
pub mod follower;
pub mod frame;
pub mod layout;
pub mod publisher;
pub mod report;
pub mod state;
pub mod who;
