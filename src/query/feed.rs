//! The change feed: a range scan of the license's own index, from the position in the token.

use crate::model::json::{push_display, push_json};
use crate::model::{Id, Timestamp};
use crate::query::page::JsonPage;
use crate::store::hash;
use crate::store::{CommitPoint, Result};
use crate::token::SyncToken;
use crate::view::View;

/// The approximate maximum size of a tombstone, in bytes.
const TOMBSTONE_BYTES: usize = 80;

/// The start of a feed page.
#[derive(Clone, Copy, Debug)]
pub enum FeedStart {
    /// After this seq.
    After(u64),
    /// At the first change at or after this time.
    Since(Timestamp),
    /// At the end of the feed.
    Now,
}

impl FeedStart {
    /// Returns the seq after which the page begins.
    pub fn after(self, view: &View<'_>) -> Result<u64> {
        match self {
            FeedStart::After(position) => Ok(position),
            FeedStart::Since(time) => view.seq_before(time),
            FeedStart::Now => Ok(view.witness()?.seq),
        }
    }
}

/// Returns a page of up to `limit` entries after a seq, oldest change first. With it the seq of the first entry that
/// follows, `None` at the end of the feed, and the sync token for the next page.
pub fn page(
    view: &View<'_>,
    after: u64,
    limit: usize,
) -> Result<(JsonPage, Option<u64>, SyncToken)> {
    let mut entries = view.feed_after(after, limit + 1)?;
    let next_seq = entries.get(limit).map(|entry| entry.seq);
    entries.truncate(limit);
    let bytes = entries.iter().map(|entry| {
        entry
            .record
            .map_or(TOMBSTONE_BYTES, |record| record.json().len())
    });
    let mut page = JsonPage::new(entries.len(), bytes.sum());
    // Tombstones of one commit are adjacent, so each commit is looked up once.
    let mut commit: Option<CommitPoint> = None;
    for entry in &entries {
        if let Some(record) = entry.record {
            page.push(*record.hash(), record.json());
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
    let last = entries.last().filter(|_| next_seq.is_some());
    let token = token(view, last.map(|entry| entry.seq))?;
    Ok((page, next_seq, token))
}

/// Returns the JSON of a tombstone (the contract, "Tombstone").
pub fn tombstone(id: Id, changed_at: Timestamp) -> Vec<u8> {
    let mut json = Vec::with_capacity(TOMBSTONE_BYTES);
    json.extend_from_slice(b"{\"id\":");
    push_display(&mut json, id);
    json.extend_from_slice(b",\"deleted\":true,\"changed_at\":");
    push_json(&mut json, &changed_at.to_string());
    json.push(b'}');
    json
}

/// Returns the sync token at a position. `None` is the end of the feed, as in exports. There the position is the
/// witness, so a poll without changes returns the same token.
pub fn token(view: &View<'_>, position: Option<u64>) -> Result<SyncToken> {
    let license = view.license();
    let witness = view.witness()?;
    Ok(SyncToken {
        dataset: view.dataset(),
        license: license.id,
        scope_seq: license.scope_seq,
        position: position.unwrap_or(witness.seq),
        witness,
    })
}
