//! The change feed: a range scan of the license's own index from the token's position.

use crate::model::Timestamp;
use crate::model::json::{push_display, push_str};
use crate::store::{CommitPoint, StoreError};
use crate::token::SyncToken;
use crate::view::{LiveRow, View};

/// A page of the feed.
#[derive(Debug)]
pub struct Page {
    /// Records and tombstones as JSON objects, separated by commas.
    pub items: Vec<u8>,
    /// Whether the caller should come back at once.
    pub has_more: bool,
    /// Where to go on.
    pub next: SyncToken,
}

/// Where a page begins.
#[derive(Clone, Copy, Debug)]
pub enum Start {
    /// After a position that the caller has.
    After(u64),
    /// With what changed at or after an instant.
    Since(Timestamp),
    /// With what changes from now on.
    Now,
}

/// Up to `limit` entries from the start on, oldest change first.
///
/// # Errors
/// When the database cannot be read.
pub fn feed(view: &View<'_>, start: Start, limit: usize) -> Result<Page, StoreError> {
    let witness = view.witness()?;
    let after = match start {
        Start::After(position) => position,
        Start::Since(time) => view.seq_before(time)?,
        Start::Now => witness.seq,
    };
    let mut items = Vec::new();
    let mut last = after;
    let mut has_more = false;
    // Tombstones of one commit stand together, so it is looked up once.
    let mut commit: Option<CommitPoint> = None;
    for (count, entry) in view.feed_after(after)?.enumerate() {
        let entry = entry?;
        if count == limit {
            has_more = true;
            break;
        }
        if count > 0 {
            items.push(b',');
        }
        last = entry.seq;
        match LiveRow::of(entry) {
            Some(row) => {
                view.push_body(&row, &mut items)?;
            }
            None => {
                view.check_gone(&entry)?;
                let of = match commit {
                    Some(commit) if entry.seq <= commit.seq => commit,
                    _ => view.commit_of(entry.seq)?,
                };
                commit = Some(of);
                items.extend_from_slice(b"{\"id\":");
                push_display(&mut items, entry.id);
                items.extend_from_slice(b",\"deleted\":true,\"changed_at\":");
                push_str(&mut items, &of.time.to_string());
                items.push(b'}');
            }
        }
    }
    Ok(Page { items, has_more, next: token(view, if has_more { last } else { witness.seq }, witness) })
}

/// The token of the present moment: what an export and an empty page carry.
///
/// # Errors
/// When the database cannot be read.
pub fn token_now(view: &View<'_>) -> Result<SyncToken, StoreError> {
    let witness = view.witness()?;
    Ok(token(view, witness.seq, witness))
}

/// At the end of the feed the position is the witness, which stands at or after the last row: so a poll with nothing
/// new gives the same token again.
fn token(view: &View<'_>, position: u64, witness: crate::view::Witness) -> SyncToken {
    SyncToken {
        dataset: view.dataset(),
        license: view.license().id,
        scope_seq: view.license().scope_seq,
        position,
        witness,
    }
}
