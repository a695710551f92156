//! A license's entries in a dataset: those of its shared feed since it joined, and before that those of its baseline.

use std::collections::HashSet;
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
    /// The entries after a seq, oldest first. Entries from before the joining need the baseline.
    pub fn after(&self, seq: u64) -> impl Iterator<Item = &FeedEntry> {
        let later = self.shared.entries_after(seq.max(self.joined_at));
        // A later entry of the shared feed replaces one of the baseline.
        let replaced: HashSet<Id> = self.baseline.iter().flat_map(|_| later).map(|entry| entry.id).collect();
        let before = self.baseline.iter().flat_map(move |baseline| baseline.entries_after(seq));
        before.filter(move |entry| !replaced.contains(&entry.id)).chain(later)
    }

    /// The records that entered the license after a seq, when it joined its feed.
    pub fn entered_after(&self, seq: u64) -> HashSet<Id> {
        let entries = self.baseline.iter().flat_map(|baseline| baseline.entries_after(seq));
        entries.filter(|entry| entry.is_live()).map(|entry| entry.id).collect()
    }
}
