//! Caches with a limit in bytes.

use std::hash::Hash;

use quick_cache::sync::{Cache, DefaultLifecycle};
use quick_cache::{DefaultHashBuilder, OptionsBuilder, Weighter};

/// A value in a cache.
pub trait Cached: Clone {
    /// The expected number of values, a hint for the cache.
    const EXPECTED: usize;

    /// The approximate size of the entry in memory, in bytes.
    fn bytes(&self) -> usize;
}

/// Weighs entries by their bytes.
#[derive(Clone, Debug)]
pub struct ByBytes;

impl<K, V: Cached> Weighter<K, V> for ByBytes {
    fn weight(&self, _key: &K, value: &V) -> u64 {
        u64::try_from(value.bytes()).unwrap_or(u64::MAX)
    }
}

/// A cache whose weight and capacity are in bytes.
pub type ByteCache<K, V> = Cache<K, V, ByBytes>;

/// Creates a cache with one shard. A shard rejects values larger than itself, and single values may be large.
pub fn new_cache<K: Hash + Eq, V: Cached>(max_bytes: u64) -> ByteCache<K, V> {
    let options =
        OptionsBuilder::new().estimated_items_capacity(V::EXPECTED).weight_capacity(max_bytes).shards(1).build();
    match options {
        Ok(options) => {
            Cache::with_options(options, ByBytes, DefaultHashBuilder::default(), DefaultLifecycle::default())
        }
        Err(_) => Cache::with_weighter(V::EXPECTED, max_bytes, ByBytes),
    }
}
