//! The answer cache: finished answers, for as long as what they rest on stays the same.
//!
//! Every answer to a key is a function of the license, of the request's target as it came, and of the license's witness
//! in the dataset: whatever the license sees moves its witness, and nothing else does. So an answer is found by license
//! and target, and good while its witness is the present one. Nothing in it depends on the clock or on the key.

use std::hash::Hash;
use std::sync::Arc;

use quick_cache::sync::{DefaultLifecycle, PlaceholderGuard};
use quick_cache::{DefaultHashBuilder, Equivalent};

use super::problem::Problem;
use super::representation::Representation;
use crate::model::{Dataset, LicenseId, Witness};
use crate::store::read::cache::{ByBytes, ByteCache, Cached, new_cache};

/// The default size of the answer cache, in bytes.
pub const DEFAULT_MAX_BYTES: u64 = 64 << 20;
/// One answer may take this part of the room, so that none takes all of it.
const MAX_SHARE: u64 = 2;
/// What the cache's tables and the allocator take for an entry, in bytes.
const ENTRY_BYTES: usize = 160;

/// An answer that was made, or the problem to answer with.
pub type AnswerResult = Result<Arc<CachedAnswer>, Problem>;

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
struct Key {
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

/// A cached answer and its weight.
#[derive(Clone, Debug)]
struct Entry {
    answer: Arc<CachedAnswer>,
    /// What it took in memory when it came in, in bytes: the cache takes off what it added, though the answer has grown.
    bytes: usize,
}

impl Cached for Entry {
    const EXPECTED: usize = 4096;

    fn bytes(&self) -> usize {
        self.bytes
    }
}

/// The finished answers in memory.
#[derive(Debug)]
pub struct AnswerCache(ByteCache<Key, Entry>);

/// The right to make an answer. Others who ask for the same wait until it is finished or dropped.
#[derive(Debug)]
pub struct BuildGuard<'c> {
    guard: PlaceholderGuard<'c, Key, Entry, ByBytes, DefaultHashBuilder, DefaultLifecycle<Key, Entry>>,
    cache: &'c AnswerCache,
}

impl BuildGuard<'_> {
    /// Gives the answer to all who wait for it, and caches it.
    pub fn finish(self, target: &str, answer: Arc<CachedAnswer>) {
        // If the cache no longer holds the placeholder, the answer is not cached.
        let _ = self.guard.insert(self.cache.entry(target, answer));
    }
}

impl AnswerCache {
    /// Room for so many bytes.
    pub fn new(max_bytes: u64) -> AnswerCache {
        AnswerCache(new_cache(max_bytes))
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
        let fits = u64::try_from(bytes).is_ok_and(|bytes| bytes <= self.0.capacity() / MAX_SHARE);
        // What weighs more than the cache holds is not cached.
        Entry { answer, bytes: if fits { bytes } else { usize::MAX } }
    }

    /// Caches an answer unless it is too large, and weighs one that is cached anew.
    pub(super) fn insert(&self, license: Option<LicenseId>, target: &str, answer: Arc<CachedAnswer>) {
        self.0.insert(Key { license, target: target.into() }, self.entry(target, answer));
    }

    /// Waits until nobody else makes the answer to the same request. Returns it if it fits; else the right to make it.
    pub(super) async fn join(
        &self,
        license: LicenseId,
        target: &str,
        fits: impl Fn(&CachedAnswer) -> bool,
    ) -> Result<Arc<CachedAnswer>, BuildGuard<'_>> {
        let key = Key { license: Some(license), target: target.into() };
        loop {
            self.0.remove_if(&key, |entry| !fits(&entry.answer));
            match self.0.get_value_or_guard_async(&key).await {
                Ok(Entry { answer, .. }) if fits(&answer) => return Ok(answer),
                // It was made from another state, or not compressed.
                Ok(_) => {}
                Err(guard) => return Err(BuildGuard { guard, cache: self }),
            }
        }
    }
}
