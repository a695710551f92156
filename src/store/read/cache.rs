//! Caches with a bound in bytes.

use std::hash::Hash;

use quick_cache::sync::{Cache, DefaultLifecycle};
use quick_cache::{DefaultHashBuilder, OptionsBuilder, Weighter};

/// A value that a cache holds.
pub trait Cached: Clone {
    /// How many are expected: a hint for the cache's own tables.
    const EXPECTED: usize;

    /// What its entry takes in memory, in bytes, about.
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

/// Values in memory; weight and capacity are in bytes.
pub type ByteCache<K, V> = Cache<K, V, ByBytes>;

/// A cache of one shard: one value may take much of the room, and a shard takes none larger than itself.
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
