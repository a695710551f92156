//! Feeds in memory: their indexes, and the columns of those that are filtered.

use std::sync::Arc;

use crate::model::FeedId;
use crate::store::read::cache::{ByteCache, Cached};
use crate::store::read::columns::Columns;
use crate::store::read::feed_index::FeedIndex;

/// The default size of the feed cache, in bytes.
pub const DEFAULT_MAX_BYTES: u64 = 512 << 20;

/// The approximate overhead of an entry, in bytes.
const ENTRY_BYTES: usize = 128;

/// A feed in memory.
#[derive(Clone, Debug)]
pub struct CachedFeed {
    pub(in crate::store) index: Arc<FeedIndex>,
    /// For the state of the index, or an earlier one.
    pub(in crate::store) columns: Option<Arc<Columns>>,
}

impl CachedFeed {
    /// The columns, if they have the state of the index.
    pub(in crate::store) fn current_columns(&self) -> Option<Arc<Columns>> {
        self.columns.as_ref().filter(|columns| columns.head() == self.index.head()).map(Arc::clone)
    }
}

impl Cached for CachedFeed {
    const EXPECTED: usize = 128;

    fn bytes(&self) -> usize {
        ENTRY_BYTES + self.index.bytes() + self.columns.as_ref().map_or(0, |columns| columns.bytes())
    }
}

/// The feeds in memory, shared by the snapshots of one history.
pub type FeedCache = ByteCache<FeedId, CachedFeed>;
