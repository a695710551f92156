//! The change feed: a range scan of the license's own index from the token's position.

use super::page::JsonPage;
use crate::model::json::{push_display, push_str};
use crate::model::{Id, Timestamp, Witness};
use crate::store::format::codec::hash;
use crate::store::format::feed::FeedEntry;
use crate::store::{CommitPoint, StoreError};
use crate::token::SyncToken;
use crate::view::{LiveRow, View};

/// Entries that memory is reserved for at once: a full page has as many, most polls have none.
const ENTRIES_EXPECTED: usize = 500;

/// The most that a tombstone takes, in bytes, about.
const TOMBSTONE_BYTES: usize = 80;

/// The rows of a page.
#[derive(Debug)]
pub struct FeedRows {
    /// Records and tombstones, oldest change first.
    pub entries: Vec<FeedEntry>,
    /// Whether the caller should come back at once.
    pub has_more: bool,
}

/// Where a page begins.
#[derive(Clone, Copy, Debug)]
pub enum FeedStart {
    /// After a position that the caller has.
    After(u64),
    /// With what changed at or after an instant.
    Since(Timestamp),
    /// With what changes from now on.
    Now,
}

impl FeedStart {
    /// The seq that the page begins after.
    pub fn after(self, view: &View<'_>) -> Result<u64, StoreError> {
        match self {
            FeedStart::After(position) => Ok(position),
            FeedStart::Since(time) => view.seq_before(time),
            FeedStart::Now => Ok(view.witness()?.seq),
        }
    }
}

/// Up to `limit` entries after a seq, oldest change first.
pub fn feed(view: &View<'_>, after: u64, limit: usize) -> Result<FeedRows, StoreError> {
    let mut entries = Vec::with_capacity(limit.min(ENTRIES_EXPECTED));
    let mut has_more = false;
    for entry in view.feed_after(after)? {
        if entries.len() == limit {
            has_more = true;
            break;
        }
        entries.push(entry);
    }
    Ok(FeedRows { entries, has_more })
}

/// The JSON of a page's records and tombstones.
pub fn page(view: &View<'_>, rows: &FeedRows) -> Result<JsonPage, StoreError> {
    let records = view.record_json(rows.entries.iter().filter_map(LiveRow::of))?;
    let tombstones = rows.entries.len() - records.len();
    let bytes = records.iter().map(|json| json.bytes().len()).sum::<usize>() + tombstones * TOMBSTONE_BYTES;
    let mut page = JsonPage::new(rows.entries.len(), bytes);
    let mut records = records.iter();
    // Tombstones of one commit stand together, so it is looked up once.
    let mut commit: Option<CommitPoint> = None;
    for entry in &rows.entries {
        if entry.is_live() {
            records.next().into_iter().for_each(|json| page.push(*json.hash(), json.bytes()));
            continue;
        }
        let of = match commit {
            Some(commit) if entry.seq <= commit.seq => commit,
            _ => view.commit_of(entry.seq)?,
        };
        commit = Some(of);
        let tombstone = tombstone(entry.id, of.time);
        page.push(hash(&tombstone), &tombstone);
    }
    Ok(page)
}

/// The token with which the caller goes on after a page.
pub fn token_after(view: &View<'_>, rows: &FeedRows) -> Result<SyncToken, StoreError> {
    let witness = view.witness()?;
    let last = rows.entries.last().map(|entry| entry.seq);
    Ok(token(view, last.filter(|_| rows.has_more).unwrap_or(witness.seq), witness))
}

/// The JSON of a tombstone (the contract, "Tombstone").
pub fn tombstone(id: Id, changed_at: Timestamp) -> Vec<u8> {
    let mut json = Vec::with_capacity(TOMBSTONE_BYTES);
    json.extend_from_slice(b"{\"id\":");
    push_display(&mut json, id);
    json.extend_from_slice(b",\"deleted\":true,\"changed_at\":");
    push_str(&mut json, &changed_at.to_string());
    json.push(b'}');
    json
}

/// The token of the present moment: what an export and an empty page carry.
pub fn token_now(view: &View<'_>) -> Result<SyncToken, StoreError> {
    let witness = view.witness()?;
    Ok(token(view, witness.seq, witness))
}

/// At the end of the feed the position is the witness, which stands at or after the last row: so a poll with nothing
/// new gives the same token again.
fn token(view: &View<'_>, position: u64, witness: Witness) -> SyncToken {
    SyncToken {
        dataset: view.dataset(),
        license: view.license().id,
        scope_seq: view.license().scope_seq,
        position,
        witness,
    }
}
