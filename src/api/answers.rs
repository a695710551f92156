//! The answer cache.
//!
//! An answer depends only on the license, the request's target, and the license's witness in the dataset. The witness
//! moves exactly when the visible data changes. So answers are cached by license and target, and are valid while their
//! witness is the current one. They do not depend on the clock or the key.

use std::sync::Arc;

use quick_cache::sync::{Cache, DefaultLifecycle, PlaceholderGuard};
use quick_cache::{DefaultHashBuilder, Weighter};

use super::problem::Problem;
use super::representation::Representation;
use crate::model::{Dataset, LicenseId, Witness};
use crate::query::segments::new_cache;

pub const DEFAULT_MAX_BYTES: u64 = 64 << 20;
/// One answer may take the cache's capacity divided by this.
const MAX_SHARE: u64 = 2;
/// The overhead of the cache and the allocator per entry, in bytes.
const ENTRY_BYTES: usize = 160;

/// An answer, or the problem to respond with.
pub type AnswerResult = Result<Arc<CachedAnswer>, Problem>;

#[derive(Debug)]
pub struct CachedAnswer {
    /// The endpoint's pattern.
    pub pattern: &'static str,
    /// The witness on which it depends; `None` if it never changes.
    pub depends_on: Option<(Dataset, Witness)>,
    pub representation: Representation,
}

impl CachedAnswer {
    /// An answer that needs no key.
    pub fn public(pattern: &'static str, representation: Representation) -> CachedAnswer {
        CachedAnswer {
            pattern,
            depends_on: None,
            representation,
        }
    }
}

/// The license, `None` for answers that need no key, and the target of the request.
type AnswerKey = (Option<LicenseId>, Box<str>);

/// Weighs answers by their approximate bytes, in a cache of this capacity.
#[derive(Clone, Debug)]
pub struct AnswerBytes(u64);

impl Weighter<AnswerKey, Arc<CachedAnswer>> for AnswerBytes {
    fn weight(&self, (_, target): &AnswerKey, answer: &Arc<CachedAnswer>) -> u64 {
        let answer_bytes = size_of::<CachedAnswer>() + answer.representation.heap_bytes();
        let bytes = (ENTRY_BYTES + target.len() + answer_bytes) as u64;
        // The cache rejects entries over its capacity.
        if bytes <= self.0 / MAX_SHARE {
            bytes
        } else {
            u64::MAX
        }
    }
}

#[derive(Debug)]
pub struct AnswerCache(Cache<AnswerKey, Arc<CachedAnswer>, AnswerBytes>);

/// The right to build an answer. Other requests for the same answer wait until it is inserted or dropped.
pub type BuildGuard<'c> = PlaceholderGuard<
    'c,
    AnswerKey,
    Arc<CachedAnswer>,
    AnswerBytes,
    DefaultHashBuilder,
    DefaultLifecycle<AnswerKey, Arc<CachedAnswer>>,
>;

impl AnswerCache {
    pub fn new(max_bytes: u64) -> AnswerCache {
        AnswerCache(new_cache(max_bytes, AnswerBytes(max_bytes)))
    }

    pub fn bytes(&self) -> u64 {
        self.0.weight()
    }

    pub fn entries(&self) -> usize {
        self.0.len()
    }

    /// The cached answer to a request, which may be outdated.
    pub(super) fn find(
        &self,
        license: Option<LicenseId>,
        target: &str,
    ) -> Option<Arc<CachedAnswer>> {
        self.0.get(&(license, target.into()))
    }

    pub(super) fn insert(
        &self,
        license: Option<LicenseId>,
        target: &str,
        answer: Arc<CachedAnswer>,
    ) {
        self.0.insert((license, target.into()), answer);
    }

    /// Waits until no other request is building the same answer. Returns the answer if it fits, else the right to build
    /// it.
    pub(super) async fn join(
        &self,
        license: LicenseId,
        target: &str,
        fits: impl Fn(&CachedAnswer) -> bool,
    ) -> Result<Arc<CachedAnswer>, BuildGuard<'_>> {
        let key = (Some(license), target.into());
        loop {
            self.0.remove_if(&key, |answer| !fits(answer));
            match self.0.get_value_or_guard_async(&key).await {
                Ok(answer) if fits(&answer) => return Ok(answer),
                // Built from another state, or not compressed.
                Ok(_) => {}
                Err(guard) => return Err(guard),
            }
        }
    }
}
