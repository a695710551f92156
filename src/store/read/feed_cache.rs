//! Feeds that are in memory, within a bound in bytes: their indexes, and the columns of those that are filtered.

use std::sync::Arc;

use quick_cache::sync::{Cache, DefaultLifecycle};
use quick_cache::{DefaultHashBuilder, OptionsBuilder, Weighter};

use crate::model::FeedId;
use crate::store::read::columns::Columns;
use crate::store::read::feed_index::FeedIndex;

/// What feeds may take in memory, in bytes, unless something else is said.
pub const DEFAULT_MAX_BYTES: u64 = 512 << 20;

/// Feeds that are expected to be in memory: a hint for the cache's own tables.
const EXPECTED_FEEDS: usize = 128;
/// What an entry takes beside the feed itself, in bytes, about.
const ENTRY_BYTES: usize = 128;

/// What is in memory of a feed.
#[derive(Clone, Debug)]
pub(in crate::store) struct CachedFeed {
    pub index: Arc<FeedIndex>,
    /// Of the same state as the index, or of an earlier one.
    pub columns: Option<Arc<Columns>>,
}

impl CachedFeed {
    /// The columns, if they are of the index's state.
    pub fn current_columns(&self) -> Option<Arc<Columns>> {
        self.columns.as_ref().filter(|columns| columns.head() == self.index.head()).map(Arc::clone)
    }
}

#[derive(Clone, Debug)]
struct Bytes;

impl Weighter<FeedId, CachedFeed> for Bytes {
    fn weight(&self, _feed: &FeedId, cached: &CachedFeed) -> u64 {
        let columns = cached.columns.as_ref().map_or(0, |columns| columns.bytes());
        u64::try_from(ENTRY_BYTES + cached.index.bytes() + columns).unwrap_or(u64::MAX)
    }
}

/// The feeds in memory, shared by the snapshots of one history.
#[derive(Debug)]
pub struct FeedCache(Cache<FeedId, CachedFeed, Bytes>);

impl FeedCache {
    /// Room for so many bytes.
    pub fn new(max_bytes: u64) -> FeedCache {
        // One shard: a feed may take nearly all of the room, and a shard takes no entry larger than itself.
        let options =
            OptionsBuilder::new().estimated_items_capacity(EXPECTED_FEEDS).weight_capacity(max_bytes).shards(1).build();
        FeedCache(match options {
            Ok(options) => {
                Cache::with_options(options, Bytes, DefaultHashBuilder::default(), DefaultLifecycle::default())
            }
            Err(_) => Cache::with_weighter(EXPECTED_FEEDS, max_bytes, Bytes),
        })
    }

    /// Says how many bytes may be held from now on.
    pub fn limit_to(&self, max_bytes: u64) {
        self.0.set_capacity(max_bytes);
    }

    /// How many bytes may be held.
    pub fn max_bytes(&self) -> u64 {
        self.0.capacity()
    }

    /// How many bytes are held.
    pub fn bytes(&self) -> u64 {
        self.0.weight()
    }

    pub(in crate::store) fn get(&self, feed: FeedId) -> Option<CachedFeed> {
        self.0.get(&feed)
    }

    pub(in crate::store) fn insert(&self, feed: FeedId, cached: CachedFeed) {
        self.0.insert(feed, cached);
    }
}

impl Default for FeedCache {
    fn default() -> FeedCache {
        FeedCache::new(DEFAULT_MAX_BYTES)
    }
}
