//! Keeping a replica's file up to date from the log in a bucket.
//!
//! - [`error`]: why a replica cannot continue.
//! - [`log`]: reading the log, and checking how its objects fit together.
//! - [`load`]: loading a whole state and the entries after it into a draft of a file.
//! - [`status`]: the progress and age of a replica.
//! - [`replica`]: the file that follows the log: its start, and each poll.
//! - `ahead`: sync tokens of commits that the replica does not have.
//! - [`promote`]: making a replica the origin.
//! - [`audit`]: checking all objects in a bucket.

mod ahead;
pub mod audit;
pub mod error;
pub mod load;
pub mod log;
pub mod promote;
pub mod replica;
pub mod status;

pub use error::FollowError;
pub use load::{LoadedState, StateLoader};
pub use log::LogReader;
pub use replica::Replica;
pub use status::{ReplicaStatus, Unfit};
