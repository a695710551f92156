//! Answers, and their cache.
//!
//! An answer depends only on the license, the request's target, and the license's witness in the dataset. The witness
//! moves exactly when the visible data changes. So answers are cached by license and target, and are valid while their
//! witness is the current one. They do not depend on the clock or the key.

use std::io::Write;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use bytes::Bytes;
use flate2::{Compression, GzBuilder};
use http::{HeaderName, HeaderValue};
use quick_cache::sync::{Cache, DefaultLifecycle, PlaceholderGuard};
use quick_cache::{DefaultHashBuilder, Weighter};

use super::conditional::ETag;
use super::observe::FeedUse;
use super::problem::Problem;
use crate::model::{Dataset, LicenseId, Witness};
use crate::query::segments::new_cache;

pub const DEFAULT_MAX_BYTES: u64 = 64 << 20;
/// One answer may take the cache's capacity divided by this.
const MAX_SHARE: u64 = 2;
/// The overhead of the cache and the allocator per entry, in bytes.
const ENTRY_BYTES: usize = 160;
/// The approximate size of the headers, and of what the allocator needs, in bytes.
const HEADER_BYTES: usize = 512;
/// The minimum size of compressed bodies, in bytes. Smaller ones fit in a network packet anyway.
const COMPRESS_FROM_BYTES: usize = 1400;
/// The maximum size of bodies that are compressed on the connection's thread, in bytes.
const MAX_INLINE_BYTES: usize = 16 << 10;

/// An answer, or the problem to respond with.
pub type AnswerResult = Result<Arc<Answer>, Problem>;

/// An answer: content and headers that are the same for all requests (RFC 9110, section 3.2).
#[derive(Debug)]
pub struct Answer {
    /// The endpoint's pattern; empty if the answer needs no key.
    pub pattern: &'static str,
    /// The witness on which it depends; `None` if it never changes.
    pub depends_on: Option<(Dataset, Witness)>,
    pub content_type: &'static str,
    /// The entity tag. Without a tag, the response must not be stored.
    pub etag: Option<ETag>,
    pub headers: Vec<(HeaderName, HeaderValue)>,
    pub body: Body,
    pub feed: Option<FeedUse>,
    /// The time for which the caller wants to long-poll instead; `None` if the page has changes.
    pub wait: Option<Duration>,
}

#[derive(Debug)]
pub enum Body {
    /// Compressed if the caller accepts gzip.
    Plain {
        plain: Bytes,
        /// One gzip member, built on first use; `None` inside if it is not shorter.
        gzip: OnceLock<Option<Bytes>>,
    },
    /// An export file, always compressed. Ranges are supported.
    Export {
        gzip: Bytes,
        name: &'static str,
        ending: &'static str,
    },
}

impl Answer {
    /// JSON that must not be stored.
    pub fn json(body: Vec<u8>) -> Answer {
        Answer::text("application/json", body)
    }

    /// Sets the entity tag, so that the response can be revalidated.
    pub fn revalidatable(self, etag: ETag) -> Answer {
        Answer {
            etag: Some(etag),
            ..self
        }
    }

    /// A text that must not be stored.
    pub fn text(content_type: &'static str, body: Vec<u8>) -> Answer {
        // A boxed slice has no spare capacity.
        let body = Body::Plain {
            plain: body.into_boxed_slice().into(),
            gzip: OnceLock::new(),
        };
        Answer::new(content_type, Vec::new(), body)
    }

    /// An answer that must not be stored.
    pub fn new(
        content_type: &'static str,
        headers: Vec<(HeaderName, HeaderValue)>,
        body: Body,
    ) -> Answer {
        Answer {
            pattern: "",
            depends_on: None,
            content_type,
            etag: None,
            headers,
            body,
            feed: None,
            wait: None,
        }
    }

    pub fn with(mut self, name: HeaderName, value: HeaderValue) -> Answer {
        self.headers.push((name, value));
        self
    }

    /// The uncompressed bytes, or the export file.
    pub fn plain(&self) -> Bytes {
        match &self.body {
            Body::Plain { plain, .. } => plain.clone(),
            Body::Export { gzip, .. } => gzip.clone(),
        }
    }

    /// One gzip member, if that is shorter.
    pub fn gzip(&self) -> Option<Bytes> {
        self.compressed(Compression::fast())
    }

    /// One gzip member, if that is shorter. The level counts only if there is none yet.
    pub fn compressed(&self, level: Compression) -> Option<Bytes> {
        match &self.body {
            Body::Plain { plain, gzip } if plain.len() >= COMPRESS_FROM_BYTES => gzip
                .get_or_init(|| compress(plain, level).filter(|gzip| gzip.len() < plain.len()))
                .clone(),
            _ => None,
        }
    }

    pub fn is_file(&self) -> bool {
        matches!(self.body, Body::Export { .. })
    }

    /// Whether the requested form exists, or takes little time.
    pub fn is_ready(&self, accepts_gzip: bool) -> bool {
        match &self.body {
            Body::Plain { plain, gzip } => {
                !accepts_gzip || plain.len() <= MAX_INLINE_BYTES || gzip.get().is_some()
            }
            Body::Export { .. } => true,
        }
    }

    /// The approximate size in memory, in bytes. The compressed body counts as a quarter of the plain one, also before
    /// it is built: records take about a sixth.
    pub fn heap_bytes(&self) -> usize {
        let body = self.plain().len();
        let gzip = if self.is_file() { 0 } else { body / 4 };
        HEADER_BYTES + body + gzip
    }
}

fn compress(plain: &[u8], level: Compression) -> Option<Bytes> {
    let mut encoder = GzBuilder::new()
        .mtime(0)
        .write(Vec::with_capacity(plain.len() / 4), level);
    encoder.write_all(plain).ok()?;
    encoder
        .finish()
        .ok()
        .map(|gzip| gzip.into_boxed_slice().into())
}

/// The license, `None` for answers that need no key, and the target of the request.
type AnswerKey = (Option<LicenseId>, Box<str>);

/// Weighs answers by their approximate bytes, in a cache of this capacity.
#[derive(Clone)]
pub struct AnswerBytes(u64);

impl Weighter<AnswerKey, Arc<Answer>> for AnswerBytes {
    fn weight(&self, (_, target): &AnswerKey, answer: &Arc<Answer>) -> u64 {
        let bytes = (ENTRY_BYTES + target.len() + size_of::<Answer>() + answer.heap_bytes()) as u64;
        // The cache rejects entries over its capacity.
        if bytes <= self.0 / MAX_SHARE {
            bytes
        } else {
            u64::MAX
        }
    }
}

pub struct AnswerCache(Cache<AnswerKey, Arc<Answer>, AnswerBytes>);

/// The right to build an answer. Other requests for the same answer wait until it is inserted or dropped.
pub type BuildGuard<'c> = PlaceholderGuard<
    'c,
    AnswerKey,
    Arc<Answer>,
    AnswerBytes,
    DefaultHashBuilder,
    DefaultLifecycle<AnswerKey, Arc<Answer>>,
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
    pub(super) fn find(&self, license: Option<LicenseId>, target: &str) -> Option<Arc<Answer>> {
        self.0.get(&(license, target.into()))
    }

    pub(super) fn insert(&self, license: Option<LicenseId>, target: &str, answer: Arc<Answer>) {
        self.0.insert((license, target.into()), answer);
    }

    /// Waits until no other request is building the same answer. Returns the answer if it fits, else the right to build
    /// it.
    pub(super) async fn join(
        &self,
        license: LicenseId,
        target: &str,
        fits: impl Fn(&Answer) -> bool,
    ) -> Result<Arc<Answer>, BuildGuard<'_>> {
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
