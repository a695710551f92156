//! The protocol of replicas: what one takes from the log, when it shows it, and whether the log ends at its position.
//!
//! | observed | consequence |
//! | --- | --- |
//! | the next entry follows the position, or starts the log over | it is applied |
//! | it follows another entry | a whole state is loaded |
//! | a loaded state ends before the position | it is refused: a replica never goes back |
//! | the entry after it follows another one | it waits for a later state: one of the two is not of this log |
//! | the end was confirmed within 12 hours | what is applied is shown at once |
//! | otherwise | it is shown when a heartbeat confirms the end: the slot may have been freed and used again |
//! | the heartbeat is at the same slot | confirms the end if the hashes agree |
//! | at a later slot | the next entry must exist |
//! | at an earlier slot | confirms the end if the replica's last entry still exists |

use std::cmp::Ordering;

use super::{LastEntry, Rule, applies};
use crate::replicate::entry::EntryHeader;
use crate::replicate::frame::Hash;

/// The connection of an entry to the one before it.
#[allow(missing_docs, reason = "the names explain the fields")]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Link {
    pub parent: Hash,
    pub starts_over: bool,
}

impl Link {
    /// Returns the connection of the entry with this header.
    pub fn of(header: &EntryHeader) -> Link {
        Link {
            parent: header.parent,
            starts_over: header.starts_over(),
        }
    }
}

/// The end of the log, compared with a replica's position.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EndCheck {
    /// The log ends here.
    Confirmed,
    /// The next slot has an entry by now.
    Continues,
    /// The log continues, and the next entry is missing.
    NextMissing,
    /// The heartbeat names another entry of this slot.
    OtherNamed,
    /// The slot of the last entry holds another one.
    OtherHeld,
    /// The last entry is missing, and the heartbeat names an earlier commit.
    Behind,
    /// The last entry is missing, and its commit is not later than the heartbeat.
    Gone,
}

/// Whether an entry follows the one with the hash `before`.
pub fn follows(before: Hash, link: Link) -> bool {
    link.parent == before || link.starts_over || !applies(Rule::Follows)
}

/// Whether the entry after one with this hash contradicts it.
pub fn is_contradicted(hash: Hash, after: Option<Link>) -> bool {
    applies(Rule::Successor) && after.is_some_and(|after| !follows(hash, after))
}

/// Whether a replica at this seq takes a loaded state that ends at `loaded`. It never goes back.
pub fn may_replace(here: u64, loaded: u64) -> bool {
    here <= loaded || !applies(Rule::NeverBack)
}

/// Whether a replica shows an entry as soon as it is applied.
pub fn is_shown_at_once(is_confirmed: bool) -> bool {
    is_confirmed || !applies(Rule::Confirmed)
}

/// Compares a position with a heartbeat. `read` returns the hash of the entry in a slot.
pub fn compare<E>(
    position: &LastEntry,
    alive: &LastEntry,
    read: impl FnOnce(u64) -> Result<Option<Hash>, E>,
) -> Result<EndCheck, E> {
    Ok(match alive.slot.cmp(&position.slot) {
        Ordering::Equal if alive.hash == position.hash => EndCheck::Confirmed,
        Ordering::Equal => EndCheck::OtherNamed,
        Ordering::Greater => match read(position.slot + 1)? {
            None => EndCheck::NextMissing,
            Some(_) => EndCheck::Continues,
        },
        Ordering::Less => match read(position.slot)? {
            Some(hash) if hash == position.hash => EndCheck::Confirmed,
            Some(_) => EndCheck::OtherHeld,
            None if alive.head.seq < position.head.seq => EndCheck::Behind,
            None => EndCheck::Gone,
        },
    })
}
