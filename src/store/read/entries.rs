//! A license's entries in a dataset: those of its shared feed since it joined, and before that those of its baseline.

use std::sync::Arc;

use crate::model::Id;
use crate::store::format::feed::FeedEntry;
use crate::store::read::feed_index::FeedIndex;

/// The entries of one license in one dataset.
#[derive(Clone, Debug)]
pub struct LicenseEntries {
    pub(in crate::store) shared: Arc<FeedIndex>,
    /// The last seq before the license joined the shared feed.
    pub(in crate::store) joined_at: u64,
    /// `None` if the caller needs no earlier entries.
    pub(in crate::store) baseline: Option<Arc<FeedIndex>>,
}

impl LicenseEntries {
    /// The newest entry of a record.
    fn find(&self, id: Id) -> Option<FeedEntry> {
        let since = self.shared.find(id).filter(|entry| entry.seq > self.joined_at);
        since.or_else(|| self.baseline.as_ref()?.find(id)).copied()
    }

    /// The entries after a seq, oldest first. Entries from before the joining need the baseline.
    pub fn after(self, seq: u64) -> impl Iterator<Item = FeedEntry> {
        let LicenseEntries { shared, joined_at, baseline } = self;
        let later = Arc::clone(&shared);
        let before = baseline.into_iter().flat_map(move |baseline| {
            let shared = Arc::clone(&shared);
            (baseline.position_after(seq)..baseline.entries().len())
                .map(move |at| baseline.entries()[at])
                // A later entry of the shared feed replaces this one.
                .filter(move |entry| shared.find(entry.id).is_none_or(|later| later.seq <= joined_at))
        });
        let first = later.position_after(seq.max(joined_at));
        before.chain((first..later.entries().len()).map(move |at| later.entries()[at]))
    }

    /// The entries of visible records with larger ids, in the order of ids.
    pub fn live_after(self, id: u64) -> impl Iterator<Item = FeedEntry> {
        let shared = self.shared;
        let mut position = shared.position_after_id(id);
        std::iter::from_fn(move || {
            let entry = *shared.by_id(position)?;
            position += 1;
            Some(entry)
        })
        .filter(FeedEntry::is_live)
    }

    /// Whether a visible record changed, or entered the license, after `seq`.
    pub fn is_after(&self, id: Id, log_seq: u64, seq: u64) -> bool {
        // If only the entry is later than `seq`, the record entered the license when the license joined its feed.
        log_seq > seq || (seq < self.joined_at && self.find(id).is_some_and(|entry| entry.seq > seq))
    }
}
