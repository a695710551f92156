//! Caches with a limit in bytes.

use std::hash::Hash;

use quick_cache::sync::{Cache, DefaultLifecycle};
use quick_cache::{DefaultHashBuilder, OptionsBuilder, Weighter};

/// The expected number of values, a hint for the cache.
const EXPECTED: usize = 4096;

/// A value in a cache, with the approximate size of the entry at its insertion, in bytes. The size must not change in
/// the cache, although the value may grow.
#[derive(Clone, Debug)]
#[allow(missing_docs, reason = "described above")]
pub struct Weighed<V> {
    pub value: V,
    pub bytes: usize,
}

/// Weighs entries by their bytes.
#[derive(Clone, Debug)]
pub struct ByBytes;

impl<K, V> Weighter<K, Weighed<V>> for ByBytes {
    fn weight(&self, _key: &K, entry: &Weighed<V>) -> u64 {
        u64::try_from(entry.bytes).unwrap_or(u64::MAX)
    }
}

/// A cache whose weight and capacity are in bytes.
pub type ByteCache<K, V> = Cache<K, Weighed<V>, ByBytes>;

/// Creates a cache with one shard. A shard rejects values larger than itself, and single values may be large.
pub fn new_cache<K: Hash + Eq, V: Clone>(max_bytes: u64) -> ByteCache<K, V> {
    let options = OptionsBuilder::new().estimated_items_capacity(EXPECTED).weight_capacity(max_bytes).shards(1).build();
    let options = options.expect("all required options are set");
    Cache::with_options(options, ByBytes, DefaultHashBuilder::default(), DefaultLifecycle::default())
}
