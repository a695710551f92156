//! The content of an answer, independent of a single request (RFC 9110, section 3.2).

use std::io::Write;
use std::sync::OnceLock;
use std::time::Duration;

use bytes::Bytes;
use flate2::{Compression, GzBuilder};
use http::{HeaderName, HeaderValue};

use super::conditional::ETag;
use super::observe::FeedUse;
use crate::query::page::JsonPage;
use crate::query::segments::SegmentCache;
use crate::store::StoreError;
use crate::view::View;

/// The minimum size of compressed bodies, in bytes. Smaller ones fit in a network packet anyway.
const COMPRESS_FROM_BYTES: usize = 1400;
/// The maximum size of bodies that are compressed on the connection's thread, in bytes.
const MAX_INLINE_BYTES: usize = 16 << 10;

/// The content and headers that are the same for all requests.
#[derive(Debug)]
pub struct Representation {
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

impl Representation {
    /// JSON that must not be stored.
    pub fn json(body: Vec<u8>) -> Representation {
        Representation::text("application/json", body)
    }

    /// Sets the entity tag, so that the response can be revalidated.
    pub fn revalidatable(self, etag: ETag) -> Representation {
        Representation {
            etag: Some(etag),
            ..self
        }
    }

    /// A page. With `gzip` it is compressed now, with cached segments.
    pub fn page(
        page: JsonPage,
        view: &View<'_>,
        gzip: Option<&SegmentCache>,
    ) -> Result<Representation, StoreError> {
        let cache = gzip.filter(|_| page.bytes() >= COMPRESS_FROM_BYTES);
        let gzip = cache
            .map(|cache| page.gzip(cache, view.feed()?))
            .transpose()?;
        let mut representation = Representation::json(page.into_json());
        if let (Some(compressed), Body::Plain { plain, gzip }) = (gzip, &mut representation.body) {
            *gzip = OnceLock::from((compressed.len() < plain.len()).then_some(compressed));
        }
        Ok(representation)
    }

    /// A text that must not be stored.
    pub fn text(content_type: &'static str, body: Vec<u8>) -> Representation {
        // A boxed slice has no spare capacity.
        let body = Body::Plain {
            plain: body.into_boxed_slice().into(),
            gzip: OnceLock::new(),
        };
        Representation {
            content_type,
            etag: None,
            headers: Vec::new(),
            body,
            feed: None,
            wait: None,
        }
    }

    pub fn with(mut self, name: HeaderName, value: HeaderValue) -> Representation {
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

/// The approximate size of the headers, and of what the allocator needs, in bytes.
const HEADER_BYTES: usize = 512;

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
