//! The change feed: a range scan of the license's own index from the token's position.

use crate::model::json::{push_display, push_str};
use crate::model::{Id, Timestamp};
use crate::store::format::feed::FeedEntry;
use crate::store::read::record_cache::RecordJson;
use crate::store::{CommitPoint, StoreError};
use crate::token::SyncToken;
use crate::view::{LiveRow, View};

/// Room for so many entries is made at once: a full page has as many, most polls have none.
const ENTRIES_EXPECTED: usize = 500;

/// The rows of a page.
#[derive(Debug)]
pub struct Rows {
    /// Records and tombstones, oldest change first.
    pub entries: Vec<FeedEntry>,
    /// Whether the caller should come back at once.
    pub has_more: bool,
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

impl Start {
    /// The seq that the page begins after.
    ///
    /// # Errors
    /// When the database cannot be read.
    pub fn after(self, view: &View<'_>) -> Result<u64, StoreError> {
        match self {
            Start::After(position) => Ok(position),
            Start::Since(time) => view.seq_before(time),
            Start::Now => Ok(view.witness()?.seq),
        }
    }
}

/// Up to `limit` entries after a seq, oldest change first.
///
/// # Errors
/// When the database cannot be read.
pub fn feed(view: &View<'_>, after: u64, limit: usize) -> Result<Rows, StoreError> {
    let mut entries = Vec::with_capacity(limit.min(ENTRIES_EXPECTED));
    let mut has_more = false;
    for entry in view.feed_after(after)? {
        if entries.len() == limit {
            has_more = true;
            break;
        }
        entries.push(entry);
    }
    Ok(Rows { entries, has_more })
}

/// Appends the JSON of a page's records and tombstones, with commas between them.
///
/// # Errors
/// When the database cannot be read.
pub fn push_items(view: &View<'_>, rows: &Rows, out: &mut Vec<u8>) -> Result<(), StoreError> {
    let records = view.record_json(rows.entries.iter().filter_map(LiveRow::of))?;
    out.reserve(records.iter().map(|json| json.bytes().len() + 1).sum());
    let mut records = records.iter().map(RecordJson::bytes);
    // Tombstones of one commit stand together, so it is looked up once.
    let mut commit: Option<CommitPoint> = None;
    for (index, entry) in rows.entries.iter().enumerate() {
        if index > 0 {
            out.push(b',');
        }
        if entry.is_live() {
            out.extend_from_slice(records.next().unwrap_or_default());
            continue;
        }
        let of = match commit {
            Some(commit) if entry.seq <= commit.seq => commit,
            _ => view.commit_of(entry.seq)?,
        };
        commit = Some(of);
        push_tombstone(out, entry.id, of.time);
    }
    Ok(())
}

/// The token with which the caller goes on after a page.
///
/// # Errors
/// When the database cannot be read.
pub fn token_after(view: &View<'_>, rows: &Rows) -> Result<SyncToken, StoreError> {
    let witness = view.witness()?;
    let last = rows.entries.last().map(|entry| entry.seq);
    Ok(token(view, last.filter(|_| rows.has_more).unwrap_or(witness.seq), witness))
}

/// Appends the JSON of a tombstone (the contract, "Tombstone").
fn push_tombstone(out: &mut Vec<u8>, id: Id, changed_at: Timestamp) {
    out.extend_from_slice(b"{\"id\":");
    push_display(out, id);
    out.extend_from_slice(b",\"deleted\":true,\"changed_at\":");
    push_str(out, &changed_at.to_string());
    out.push(b'}');
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
