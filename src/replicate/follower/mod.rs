//! Keeping a replica's file up to date from the log in a bucket.
//!
//! - [`follow_error`]: why a replica cannot continue.
//! - [`log`]: reading the log, and checking how its objects fit together.
//! - [`load`]: loading a whole state and the entries after it into a draft of a file.
//! - [`replica_status`]: the progress and age of a replica, and sync tokens of commits that it does not have.
//! - [`replica`]: the file that follows the log: its start, and each poll.
//! - [`promote`]: making a replica the origin.
//! - [`audit`]: checking all objects in a bucket.
//!
//! # Following
//!
//! A replica is a file with a row in the table `replica`: its origin, its slot, and its digest. Only `ReplicaWriter`
//! writes to it. Changes and that row are one transaction, which ends with a comparison of digest and head. A load is
//! a draft that gets its name when it is complete. Bytes from outside are validated before redb decodes them, because
//! redb panics on invalid ones.
//!
//! In `serve --from`, one thread next to the server writes the file (`replicate/follower`). The watcher sees its
//! transactions like any commit. `follower/log.rs` checks the sequence of objects: slot, database, and the parent of
//! each entry. A whole state, and the entries after it, go into a draft, which replaces the file when it has caught
//! up. Deleted slots may have been used again by a publisher that was suspended for weeks. Its entry can be applied,
//! but the log does not continue after it. So the heartbeat contradicts, nothing is served, and the newest state
//! repairs the file.
//!
//! One process follows with a replica's file. A second one is refused by the file's lock.
//!
//! **Formats.** Each entry and state names the format of its rows. An upgraded origin publishes a whole state of the
//! new format as its next entry. A replica of the new release replaces its older file by it. It reads no entry or
//! state of another format. So its replicas need the old release until the origin is upgraded. `check --from` begins
//! at the first state of this format.
//!
//! # Differences from an origin
//!
//! A replica may be behind its origin. Three things differ for this reason (`api/source.rs`), and nothing else:
//!
//! - **Age.** If the end of the log was last seen too long ago, `/v1` is 503, keys included (`follower/replica_status.rs`).
//!   The clock also runs while the machine sleeps. The end counts as seen once the server shows the entries. So the
//!   replica responds again only with the newest keys.
//! - **Tokens ahead.** A token ahead of the last commit may be valid. The thread polls the bucket at once, for all
//!   waiting requests. A token that is still ahead gets 503. The heartbeat names the origin's last seq. If two later
//!   heartbeats in a row do not reach the token's seq, the origin has lost it: 410 (`follower/replica_status.rs`).
//! - **New keys.** They arrive by the bucket.
//!
//! An unknown key may be new, also at an origin. A request whose key has the right form waits for the next poll before
//! it gets 401. At an origin that is the next poll of the file, within 100 ms. At a replica it is a poll of the
//! bucket. Anybody can invent keys. So requests cause at most one poll of the bucket a second, and few requests may
//! wait. Addresses over the limit for unusable keys share four other permits. So a valid key from there works, and
//! other addresses lose no permit.

pub mod audit;
pub mod follow_error;
pub mod load;
pub mod log;
pub mod promote;
pub mod replica;
pub mod replica_status;

pub use follow_error::FollowError;
pub use load::{LoadedState, StateLoader};
pub use log::LogReader;
pub use replica::Replica;
pub use replica_status::{ReplicaStatus, Unfit};
