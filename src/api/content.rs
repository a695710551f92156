//! What an answer says, before it is known in which form its caller takes it.

use std::io::Write;
use std::sync::{Arc, OnceLock};

use bytes::Bytes;
use flate2::{Compression, GzBuilder};

use super::pages::PackedPlace;
use crate::model::{Dataset, License};
use crate::query::packed::Packer;
use crate::store::read::record_cache::Texts;
use crate::store::{Rope, RopeWriter};

/// The smallest JSON body that is compressed, in bytes: one that fits a network packet gains nothing.
const COMPRESS_FROM_BYTES: usize = 1400;

/// The content of an answer.
#[derive(Clone, Debug)]
pub enum Content {
    /// Bytes that are sent as they are.
    Bytes(Rope),
    /// Records between other bytes.
    Page(Box<Page>),
    /// A text that is made once and sent to many.
    Document(Arc<Document>),
}

impl Content {
    /// The bytes to send.
    pub fn plain(self) -> Rope {
        match self {
            Content::Bytes(bytes) => bytes,
            Content::Page(page) => page.plain(),
            Content::Document(document) => document.body.clone().into(),
        }
    }

    /// The bytes to send as one gzip member, where that pays.
    pub fn packed(&self, packer: &Packer) -> Option<Rope> {
        match self {
            Content::Bytes(_) => None,
            Content::Page(page) => match &page.packed_place {
                Some(place) => place.find(|| page.packed(packer)),
                None => page.packed(packer),
            },
            Content::Document(document) => document.packed(),
        }
    }
}

/// Records between other bytes, as one license gets them.
#[derive(Clone, Debug)]
pub struct Page {
    /// Whose they are.
    pub license: Arc<License>,
    /// The dataset of the records.
    pub dataset: Dataset,
    /// What stands before the records.
    pub head: &'static str,
    /// The records, with commas between them.
    pub texts: Texts,
    /// What stands behind the records.
    pub tail: Vec<u8>,
    /// Where its compressed form is kept, of a page that is asked for again.
    pub packed_place: Option<PackedPlace>,
}

impl Page {
    fn plain(&self) -> Rope {
        let mut out = RopeWriter::default();
        out.copy(self.head.as_bytes());
        self.texts.join(&mut out);
        out.copy(&self.tail);
        out.finish()
    }

    fn packed(&self, packer: &Packer) -> Option<Rope> {
        let plain_len = self.head.len() + self.texts.joined_len().saturating_sub(1) + self.tail.len();
        if plain_len < COMPRESS_FROM_BYTES {
            return None;
        }
        let scope = &self.license.scope;
        let packed = packer.pack_page(scope, self.dataset, self.head.as_bytes(), &self.texts, &self.tail);
        packed.ok().filter(|packed| packed.len() < plain_len)
    }
}

/// A text that is made once and sent to many; compressed once too, for the first who takes it so.
#[derive(Debug)]
pub struct Document {
    body: Bytes,
    gzip: OnceLock<Option<Bytes>>,
}

impl Document {
    /// A document of a text.
    pub fn new(body: impl Into<Bytes>) -> Document {
        Document { body: body.into(), gzip: OnceLock::new() }
    }

    fn packed(&self) -> Option<Rope> {
        if self.body.len() < COMPRESS_FROM_BYTES {
            return None;
        }
        self.gzip.get_or_init(|| gzip(&self.body).filter(|gzip| gzip.len() < self.body.len())).clone().map(Rope::from)
    }
}

/// A text as one gzip member. Writing to memory cannot fail; were it to, the text would be sent as it is.
fn gzip(body: &[u8]) -> Option<Bytes> {
    let mut encoder = GzBuilder::new().mtime(0).write(Vec::with_capacity(body.len() / 4), Compression::default());
    encoder.write_all(body).ok()?;
    encoder.finish().ok().map(Bytes::from)
}
