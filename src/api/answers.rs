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
use crate::model::{Dataset, LicenseId, Witness};

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
    /// The endpoint's pattern.
    pub pattern: &'static str,
    /// What it rests on; `None` for what never changes.
    pub rests_on: Option<(Dataset, Witness)>,
    /// What it says.
    pub representation: Representation,
}

impl CachedAnswer {
    /// An answer to everybody.
    pub fn of_all(pattern: &'static str, representation: Representation) -> CachedAnswer {
        CachedAnswer { pattern, rests_on: None, representation }
    }
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

/// An answer as it is kept.
#[derive(Clone, Debug)]
pub(super) struct Entry {
    answer: Arc<CachedAnswer>,
    /// What it took in memory when it came in, in bytes: the cache takes off what it added, though the answer has grown.
    bytes: u64,
}

#[derive(Clone, Debug)]
pub(super) struct BytesOf;

impl Weighter<Key, Entry> for BytesOf {
    fn weight(&self, _key: &Key, entry: &Entry) -> u64 {
        entry.bytes
    }
}

/// The finished answers in memory.
#[derive(Debug)]
pub struct AnswerCache(Cache<Key, Entry, BytesOf>);

/// The right to make an answer, for all who wait for the same one.
#[derive(Debug)]
pub(super) struct Making<'c> {
    guard: PlaceholderGuard<'c, Key, Entry, BytesOf, DefaultHashBuilder, DefaultLifecycle<Key, Entry>>,
    cache: &'c AnswerCache,
}

impl Making<'_> {
    /// Gives the answer to all who wait for it, and keeps it.
    pub fn finish(self, target: &str, answer: Arc<CachedAnswer>) {
        // Where the place is not held any more, those who wait make their own.
        let _ = self.guard.insert(self.cache.entry(target, answer));
    }
}

impl AnswerCache {
    /// Room for so many bytes.
    pub fn new(max_bytes: u64) -> AnswerCache {
        // One shard: an export may take much of the room, and a shard takes no entry larger than itself.
        let options = OptionsBuilder::new()
            .estimated_items_capacity(EXPECTED_ANSWERS)
            .weight_capacity(max_bytes)
            .shards(1)
            .build();
        AnswerCache(match options {
            Ok(options) => {
                Cache::with_options(options, BytesOf, DefaultHashBuilder::default(), DefaultLifecycle::default())
            }
            Err(_) => Cache::with_weighter(EXPECTED_ANSWERS, max_bytes, BytesOf),
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
        self.0.get(&KeyRef { license, target }).map(|entry| entry.answer)
    }

    fn entry(&self, target: &str, answer: Arc<CachedAnswer>) -> Entry {
        let bytes = ENTRY_BYTES + target.len() + size_of::<CachedAnswer>() + answer.representation.heap_bytes();
        let bytes = u64::try_from(bytes).ok().filter(|bytes| *bytes <= self.0.capacity() / MAX_SHARE);
        // What weighs more than the cache holds is not kept.
        Entry { answer, bytes: bytes.unwrap_or(u64::MAX) }
    }

    /// Keeps an answer, unless it is too large; weighs it anew if it is there.
    pub(super) fn insert(&self, license: Option<LicenseId>, target: &str, answer: Arc<CachedAnswer>) {
        self.0.insert(Key { license, target: target.into() }, self.entry(target, answer));
    }

    /// Waits until nobody else makes the answer to the same request. Returns it if it is current by then; else the right to
    /// make it, for all who come meanwhile. Who comes from another state makes its own.
    pub(super) async fn join(
        &self,
        license: Option<LicenseId>,
        target: &str,
        is_current: impl Fn(&CachedAnswer) -> bool,
    ) -> Result<Arc<CachedAnswer>, Option<Making<'_>>> {
        let key = Key { license, target: target.into() };
        self.0.remove_if(&key, |entry| !is_current(&entry.answer));
        match self.0.get_value_or_guard_async(&key).await {
            Ok(Entry { answer, .. }) if is_current(&answer) => Ok(answer),
            Ok(_) => Err(None),
            Err(guard) => Err(Some(Making { guard, cache: self })),
        }
    }
}
