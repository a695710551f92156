//! What an answer says, before it is known in which form its caller takes it (RFC 9110, section 3.2).

use std::io::Write;
use std::sync::OnceLock;
use std::time::Duration;

use bytes::Bytes;
use flate2::{Compression, GzBuilder};
use http::{HeaderName, HeaderValue};

use super::etag::ETag;
use super::observe::FeedUse;
use crate::query::page::JsonPage;
use crate::query::segments::SegmentCache;
use crate::store::StoreError;
use crate::view::View;

/// The smallest body that is compressed, in bytes: one that fits a network packet gains nothing.
const COMPRESS_FROM_BYTES: usize = 1400;
/// The largest body that is compressed while other answers wait, in bytes.
const MAX_INLINE_BYTES: usize = 16 << 10;

/// A finished answer without what differs from request to request.
#[derive(Debug)]
pub struct Representation {
    /// The media type.
    pub content_type: &'static str,
    /// The entity tag, of one that may be revalidated; others must not be stored.
    pub etag: Option<ETag>,
    /// Headers of its own.
    pub headers: Vec<(HeaderName, HeaderValue)>,
    /// The body.
    pub body: Body,
    /// Where the caller stands in a change feed.
    pub feed: Option<FeedUse>,
    /// How long the caller wants it held back, since it brings no news.
    pub hold: Option<Duration>,
}

/// The bytes of a representation.
#[derive(Debug)]
pub enum Body {
    /// Sent compressed to those who take that.
    Plain {
        /// The bytes in one piece.
        plain: Bytes,
        /// As one gzip member, made once when it is first asked for; `None` where that is not shorter.
        gzip: OnceLock<Option<Bytes>>,
    },
    /// An export: sent as it is, whole or in part, with its ending in the file's name.
    Export {
        /// The gzip member.
        gzip: Bytes,
        /// The beginning of the file's name.
        name: &'static str,
        /// The ending of the file's name.
        ending: &'static str,
    },
}

impl Representation {
    /// JSON that must not be stored.
    pub fn json(body: Vec<u8>) -> Representation {
        Representation::text("application/json", body)
    }

    /// JSON that may be revalidated.
    pub fn revalidatable(self, etag: ETag) -> Representation {
        Representation { etag: Some(etag), ..self }
    }

    /// A page, compressed at once for whom takes it so: parts of it are in memory already.
    ///
    /// # Errors
    /// When the compressor fails.
    pub fn page(page: JsonPage, view: &View<'_>, gzip: Option<&SegmentCache>) -> Result<Representation, StoreError> {
        let cache = gzip.filter(|_| page.bytes() >= COMPRESS_FROM_BYTES);
        let gzip = cache.map(|cache| page.gzip(cache, view.feed()?)).transpose()?;
        let mut representation = Representation::json(page.into_json());
        if let (Some(made), Body::Plain { plain, gzip }) = (gzip, &mut representation.body) {
            *gzip = OnceLock::from((made.len() < plain.len()).then_some(made));
        }
        Ok(representation)
    }

    /// A text that must not be stored.
    pub fn text(content_type: &'static str, body: Vec<u8>) -> Representation {
        // Nothing is held beside the bytes.
        let body = Body::Plain { plain: body.into_boxed_slice().into(), gzip: OnceLock::new() };
        Representation { content_type, etag: None, headers: Vec::new(), body, feed: None, hold: None }
    }

    /// Puts a header on.
    pub fn with(mut self, name: HeaderName, value: HeaderValue) -> Representation {
        self.headers.push((name, value));
        self
    }

    /// The bytes as they are.
    pub fn plain(&self) -> Bytes {
        match &self.body {
            Body::Plain { plain, .. } => plain.clone(),
            Body::Export { gzip, .. } => gzip.clone(),
        }
    }

    /// The bytes as one gzip member, where that pays.
    pub fn gzip(&self) -> Option<Bytes> {
        match &self.body {
            Body::Plain { plain, gzip } if plain.len() >= COMPRESS_FROM_BYTES => {
                gzip.get_or_init(|| compress(plain).filter(|gzip| gzip.len() < plain.len())).clone()
            }
            _ => None,
        }
    }

    /// Whether it is a file, parts of which may be asked for.
    pub fn is_file(&self) -> bool {
        matches!(self.body, Body::Export { .. })
    }

    /// Whether the form that is asked for is there, or made in no time.
    pub fn is_ready(&self, accepts_gzip: bool) -> bool {
        match &self.body {
            Body::Plain { plain, gzip } => !accepts_gzip || plain.len() <= MAX_INLINE_BYTES || gzip.get().is_some(),
            Body::Export { .. } => true,
        }
    }

    /// What it holds in memory beside itself, in bytes.
    pub fn heap_bytes(&self) -> usize {
        let headers = self.headers.iter().map(|(_, value)| HEAP_BLOCK_BYTES + value.len()).sum::<usize>();
        let etag = self.etag.as_ref().map_or(0, |etag| HEAP_BLOCK_BYTES + etag.header().len());
        let body = match &self.body {
            Body::Plain { plain, gzip } => {
                let gzip = match gzip.get() {
                    Some(gzip) => gzip.as_ref().map_or(0, |gzip| HEAP_BLOCK_BYTES + gzip.len()),
                    // It may be made while the answer is in the cache, and is less than half as long.
                    None if (COMPRESS_FROM_BYTES..=MAX_INLINE_BYTES).contains(&plain.len()) => plain.len() / 2,
                    None => 0,
                };
                HEAP_BLOCK_BYTES + plain.len() + gzip
            }
            Body::Export { gzip, .. } => HEAP_BLOCK_BYTES + gzip.len(),
        };
        self.headers.capacity() * size_of::<(HeaderName, HeaderValue)>() + headers + etag + body
    }
}

/// What stands around a piece of shared bytes in memory: its count, and what the allocator adds.
const HEAP_BLOCK_BYTES: usize = 48;

/// Bytes as one gzip member. Writing to memory cannot fail; were it to, they would be sent as they are.
fn compress(plain: &[u8]) -> Option<Bytes> {
    let mut encoder = GzBuilder::new().mtime(0).write(Vec::with_capacity(plain.len() / 4), Compression::fast());
    encoder.write_all(plain).ok()?;
    encoder.finish().ok().map(|gzip| gzip.into_boxed_slice().into())
}
