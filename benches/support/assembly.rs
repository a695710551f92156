//! The least work of an export after a small commit: one part is compressed, and joined with the unchanged ones.

use std::io::Read;

use flate2::read::GzDecoder;
use flate2::{Compress, Compression, Crc, FlushCompress};

/// The number of records in a part.
const PART_RECORDS: usize = 64;

/// An export that is cut into parts of equally many lines. All parts except the changed one are compressed already.
#[derive(Debug)]
pub struct Assembly {
    parts: Vec<Vec<u8>>,
    /// The plain text of the changed part, which belongs in the middle.
    changed: Vec<u8>,
}

impl Assembly {
    /// Takes a finished export apart.
    pub fn of(gzip: &[u8]) -> Assembly {
        let mut text = Vec::new();
        GzDecoder::new(gzip)
            .read_to_end(&mut text)
            .expect("an export is a gzip member");
        let lines: Vec<&[u8]> = text.split_inclusive(|byte| *byte == b'\n').collect();
        let texts = lines.chunks(PART_RECORDS);
        let texts: Vec<Vec<u8>> = texts.map(|lines| lines.concat()).collect();
        let parts = texts.iter().map(|text| deflate(text)).collect();
        let changed = texts[texts.len() / 2].clone();
        Assembly { parts, changed }
    }

    /// The number of parts.
    pub fn count(&self) -> usize {
        self.parts.len()
    }

    /// Compresses the changed part, at the level of exports, and joins all.
    pub fn assemble(&self) -> Vec<u8> {
        let mut crc = Crc::new();
        crc.update(&self.changed);
        let changed = deflate(&self.changed);
        let mut whole =
            Vec::with_capacity(self.parts.iter().map(Vec::len).sum::<usize>() + changed.len());
        let middle = self.parts.len() / 2;
        self.parts[..middle]
            .iter()
            .for_each(|part| whole.extend_from_slice(part));
        whole.extend_from_slice(&changed);
        self.parts[middle + 1..]
            .iter()
            .for_each(|part| whole.extend_from_slice(part));
        whole.extend_from_slice(&crc.sum().to_le_bytes());
        whole
    }
}

/// A text compressed up to a full flush.
fn deflate(text: &[u8]) -> Vec<u8> {
    let mut compress = Compress::new(Compression::default(), false);
    // Even an incompressible text needs no more room.
    let mut deflated = Vec::with_capacity(text.len() + 1024);
    compress
        .compress_vec(text, &mut deflated, FlushCompress::Full)
        .expect("texts can be compressed");
    let total_in = compress.total_in();
    assert_eq!(total_in, text.len() as u64, "the room is enough for all");
    deflated.shrink_to_fit();
    deflated
}
