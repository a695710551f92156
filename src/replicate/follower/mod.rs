//! Following an origin's log with a file of one's own.
//!
//! - [`trouble`]: why a replica cannot go on.
//! - [`log`]: reading the log, with what must hold between its objects.
//! - [`load`]: a whole state, and the entries after it, into a file that takes its name when it has caught up.
//! - [`standing`]: how far a replica is, and how long ago it knew so.
//! - [`replica`]: the file that follows: its start, and one look at the log after the other.
//! - `ahead`: tokens of commits that it does not have.
//! - [`promote`]: such a file in its origin's place.
//! - [`audit`]: whether all that a bucket holds is sound.

mod ahead;
pub mod audit;
pub mod load;
pub mod log;
pub mod promote;
pub mod replica;
pub mod standing;
pub mod trouble;

pub use load::{EndRule, Load, Loaded};
pub use log::LogReader;
pub use replica::Replica;
pub use standing::{Limits, Standing, Unfit};
pub use trouble::Trouble;
