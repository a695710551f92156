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
//!
//! A promotion makes a replica that has applied the whole log the origin, by the entry that it creates after it:
//!
//! | observed | consequence |
//! | --- | --- |
//! | since it was requested, another replica was promoted, and nothing followed | ends: taken over |
//! | between two attempts, another replica was promoted | ends: taken over |
//! | that promotion was of this file, by a process that was killed | the entry is created |
//! | the slot holds the entry of this replica | it is the origin, unless: |
//! | the next slot has an entry that follows another one | its entry is deleted: that slot was a gap |
//! | the slot holds another one | that is applied, and the next slot is tried, up to three in total |

use std::cmp::Ordering;

use super::{LastEntry, Rule, applies};
use crate::replicate::entry::EntryHeader;
use crate::replicate::frame::Hash;

/// The connection of an entry to the one before it.
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

/// The maximum number of slots in which a replica tries to create the entry of its promotion.
pub const PROMOTION_TRIES: usize = 3;

/// Whether a replica may create the entry of its promotion after another promotion. In the first attempt, one that is
/// not the last commit does not count: that origin may be lost too. Nothing is lost if this is wrong, so it is no rule
/// with a switch: tests of processes cover it.
pub fn may_follow_promotion(attempt: usize, is_last: bool, is_own: bool) -> bool {
    is_own || attempt == 0 && !is_last
}

/// Whether the entry of a promotion is in a gap, in the slot of an entry that was lost: `after` follows another one. It is
/// deleted then, because replicas could not get past it.
pub fn is_in_gap(hash: Hash, after: Option<Link>) -> bool {
    applies(Rule::PromotionGap) && after.is_some_and(|after| !follows(hash, after))
}

/// Whether an attempt has made a replica the origin. `is_own`: whether the slot holds its entry.
pub fn is_promoted(is_own: bool) -> bool {
    is_own || !applies(Rule::OwnPromotion)
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
