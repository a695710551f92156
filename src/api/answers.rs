//! The answer cache: finished answers, for as long as what they rest on stays the same.
//!
//! Every answer to a key is a function of the license, of the request's target as it came, and of the license's witness
//! in the dataset: whatever the license sees moves its witness, and nothing else does. So an answer is found by license
//! and target, and good while its witness is the present one. Nothing in it depends on the clock or on the key.

use std::hash::Hash;
use std::sync::Arc;

use quick_cache::sync::{Cache, DefaultLifecycle, PlaceholderGuard};
use quick_cache::{DefaultHashBuilder, Equivalent, OptionsBuilder, Weighter};

use super::representation::Representation;
use crate::model::{Dataset, LicenseId};
use crate::view::Witness;

/// What finished answers may take in memory, in bytes, unless something else is said.
pub const DEFAULT_MAX_BYTES: u64 = 64 << 20;
/// Answers that are expected: a hint for the cache's own tables.
const EXPECTED_ANSWERS: usize = 4096;
/// One answer may take this part of the room, so that none takes all of it.
const MAX_SHARE: u64 = 2;
/// What the cache's tables and the allocator take for an entry, in bytes.
const ENTRY_BYTES: usize = 160;

/// A finished answer.
#[derive(Debug)]
pub struct CachedAnswer {
    /// What it rests on; `None` for what never changes.
    pub rests_on: Option<(Dataset, Witness)>,
    /// What it says.
    pub representation: Representation,
}

/// Who asked for what; no license for what needs no key.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Key {
    license: Option<LicenseId>,
    target: Box<str>,
}

#[derive(Hash)]
struct KeyRef<'a> {
    license: Option<LicenseId>,
    target: &'a str,
}

impl Equivalent<Key> for KeyRef<'_> {
    fn equivalent(&self, key: &Key) -> bool {
        self.license == key.license && *self.target == *key.target
    }
}

/// Weighs entries in bytes.
#[derive(Clone, Debug)]
pub(super) struct Bytes {
    /// What weighs more is not kept.
    max: u64,
}

impl Weighter<Key, Arc<CachedAnswer>> for Bytes {
    fn weight(&self, key: &Key, answer: &Arc<CachedAnswer>) -> u64 {
        let bytes = ENTRY_BYTES + key.target.len() + size_of::<CachedAnswer>() + answer.representation.heap_bytes();
        u64::try_from(bytes).ok().filter(|bytes| *bytes <= self.max).unwrap_or(u64::MAX)
    }
}

/// The finished answers in memory.
#[derive(Debug)]
pub struct AnswerCache(Cache<Key, Arc<CachedAnswer>, Bytes>);

/// The right to make an answer, for all who wait for the same one.
pub(super) type Making<'c> = PlaceholderGuard<'c, Key, Arc<CachedAnswer>, Bytes, DefaultHashBuilder, Lifecycle>;
type Lifecycle = DefaultLifecycle<Key, Arc<CachedAnswer>>;

impl AnswerCache {
    /// Room for so many bytes.
    pub fn new(max_bytes: u64) -> AnswerCache {
        // One shard: an export may take much of the room, and a shard takes no entry larger than itself.
        let options = OptionsBuilder::new()
            .estimated_items_capacity(EXPECTED_ANSWERS)
            .weight_capacity(max_bytes)
            .shards(1)
            .build();
        let bytes = Bytes { max: max_bytes / MAX_SHARE };
        AnswerCache(match options {
            Ok(options) => {
                Cache::with_options(options, bytes, DefaultHashBuilder::default(), DefaultLifecycle::default())
            }
            Err(_) => Cache::with_weighter(EXPECTED_ANSWERS, max_bytes, bytes),
        })
    }

    /// How many bytes are held.
    pub fn bytes(&self) -> u64 {
        self.0.weight()
    }

    /// How many answers are held.
    pub fn entries(&self) -> usize {
        self.0.len()
    }

    /// The answer to a request, of whatever state.
    pub(super) fn find(&self, license: Option<LicenseId>, target: &str) -> Option<Arc<CachedAnswer>> {
        self.0.get(&KeyRef { license, target })
    }

    /// Keeps an answer, unless it is too large; weighs it anew if it is there.
    pub(super) fn insert(&self, license: Option<LicenseId>, target: &str, answer: Arc<CachedAnswer>) {
        self.0.insert(Key { license, target: target.into() }, answer);
    }

    /// Waits until nobody else makes the answer to the same request. Returns it if it is current by then; else the right to
    /// make it, for all who come meanwhile, and the answer that it replaces.
    pub(super) async fn join(
        &self,
        license: Option<LicenseId>,
        target: &str,
        is_current: impl Fn(&CachedAnswer) -> bool,
    ) -> Result<Arc<CachedAnswer>, (Option<Making<'_>>, Option<Arc<CachedAnswer>>)> {
        let key = Key { license, target: target.into() };
        let replaced = self.0.remove_if(&key, |answer| !is_current(answer)).map(|(_, answer)| answer);
        match self.0.get_value_or_guard_async(&key).await {
            Ok(answer) if is_current(&answer) => Ok(answer),
            // Made for a caller of another state.
            Ok(other) => Err((None, Some(other))),
            Err(making) => Err((Some(making), replaced)),
        }
    }
}
