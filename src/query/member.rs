//! Gzip members stitched from segments (RFC 1951, RFC 1952), so that an export after a commit compresses again what the
//! commit changed.
//!
//! Records are cut into *segments*, and each is compressed by itself up to a full flush: it ends on a byte and refers to
//! nothing before it, so segments can follow each other in any member. Where segments end depends on the license's own
//! records alone, and segments are taken from an earlier export of the same license alone.

use std::collections::HashMap;
use std::ops::Range;
use std::sync::Arc;

use bytes::Bytes;
use flate2::{Compress, Compression, Crc, FlushCompress};

use crate::store::StoreError;
use crate::store::format::codec::{Hash, hash};
use crate::store::read::record_cache::RecordJson;

/// A segment ends after a record whose hash says so: one in this many.
const END_ONE_IN: u8 = 64;
/// The most records of a segment.
pub const MAX_SEGMENT_RECORDS: usize = 128;
/// The most bytes of a stored block.
const MAX_STORED_BYTES: usize = 0xffff;
/// What the checksum of a segment takes in memory, with what stands around it.
const CRC_BYTES: usize = size_of::<Crc>() + 32;
/// ID1, ID2, deflate, no flags, no time, nothing said of the effort, an unknown system.
const MEMBER_HEADER: [u8; 10] = [0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 0xff];

/// A finished member, with what a later one may take from it.
#[derive(Debug, Default)]
pub struct Member {
    /// The whole member.
    pub gzip: Bytes,
    segments: HashMap<Hash, Segment>,
}

/// Where a segment lies in its member, with the checksum and length of what it holds.
#[derive(Clone, Debug)]
struct Segment {
    range: Range<usize>,
    crc: Arc<Crc>,
}

impl Member {
    /// What it takes in memory, in bytes.
    pub fn bytes(&self) -> usize {
        // One control byte per slot of the table (hashbrown).
        let slots = self.segments.capacity() * 8 / 7;
        self.gzip.len() + slots * (size_of::<(Hash, Segment)>() + 1) + self.segments.len() * CRC_BYTES
    }
}

/// The runs of records that are compressed together.
pub fn cut(records: &[RecordJson]) -> Vec<Range<usize>> {
    let mut ranges = Vec::new();
    let mut start = 0;
    for (index, record) in records.iter().enumerate() {
        let next = index + 1;
        let ends = record.hash()[0].is_multiple_of(END_ONE_IN);
        if ends || next - start == MAX_SEGMENT_RECORDS || next == records.len() {
            ranges.push(start..next);
            start = next;
        }
    }
    ranges
}

/// Builds a member.
#[derive(Debug)]
pub struct MemberBuilder<'e> {
    earlier: &'e Member,
    out: Vec<u8>,
    crc: Crc,
    segments: HashMap<Hash, Segment>,
    compress: Compress,
    plain: Vec<u8>,
}

impl<'e> MemberBuilder<'e> {
    /// Begins a member that takes what did not change from an earlier one of the same format.
    pub fn new(earlier: &'e Member) -> MemberBuilder<'e> {
        let mut out = Vec::with_capacity(earlier.gzip.len() + earlier.gzip.len() / 16 + 1024);
        out.extend_from_slice(&MEMBER_HEADER);
        let compress = Compress::new(Compression::default(), false);
        MemberBuilder { earlier, out, crc: Crc::new(), segments: HashMap::new(), compress, plain: Vec::new() }
    }

    /// Appends bytes as they are.
    pub fn store(&mut self, bytes: &[u8]) {
        for block in bytes.chunks(MAX_STORED_BYTES) {
            self.store_block(block, false);
        }
    }

    fn store_block(&mut self, bytes: &[u8], last: bool) {
        // Never more than 65,535 bytes.
        let len = u16::try_from(bytes.len()).unwrap_or(u16::MAX);
        self.out.push(u8::from(last));
        self.out.extend_from_slice(&len.to_le_bytes());
        self.out.extend_from_slice(&(!len).to_le_bytes());
        self.out.extend_from_slice(bytes);
        self.crc.update(bytes);
    }

    /// Appends a segment of records. `write` gives its plain bytes unless the earlier member has it; they must follow from
    /// the records.
    ///
    /// # Errors
    /// What `write` returns, and when the compressor fails.
    pub fn add(
        &mut self,
        records: &[RecordJson],
        write: impl FnOnce(&mut Vec<u8>) -> Result<(), StoreError>,
    ) -> Result<(), StoreError> {
        let hashes: Vec<u8> = records.iter().flat_map(|record| *record.hash()).collect();
        let key = hash(&hashes);
        let start = self.out.len();
        let crc = match self.earlier.segments.get(&key) {
            Some(segment) => {
                self.out.extend_from_slice(&self.earlier.gzip[segment.range.clone()]);
                Arc::clone(&segment.crc)
            }
            None => {
                self.plain.clear();
                write(&mut self.plain)?;
                self.deflate()?;
                let mut crc = Crc::new();
                crc.update(&self.plain);
                Arc::new(crc)
            }
        };
        self.crc.combine(&crc);
        self.segments.insert(key, Segment { range: start..self.out.len(), crc });
        Ok(())
    }

    fn deflate(&mut self) -> Result<(), StoreError> {
        self.compress.reset();
        self.out.reserve(self.plain.len() / 4 + 64);
        loop {
            let done = usize::try_from(self.compress.total_in()).unwrap_or(usize::MAX).min(self.plain.len());
            self.compress
                .compress_vec(&self.plain[done..], &mut self.out, FlushCompress::Full)
                .map_err(|error| in_memory(std::io::Error::other(error)))?;
            // Room that is left says that the flush is complete (zlib.h, "deflate").
            if self.out.len() < self.out.capacity() {
                return Ok(());
            }
            self.out.reserve(self.plain.len() / 4 + 64);
        }
    }

    /// The whole member.
    pub fn finish(mut self) -> Member {
        self.store_block(&[], true);
        self.out.extend_from_slice(&self.crc.sum().to_le_bytes());
        self.out.extend_from_slice(&self.crc.amount().to_le_bytes());
        Member { gzip: self.out.into_boxed_slice().into(), segments: self.segments }
    }
}

/// Writing to memory fails only when memory does.
pub(super) fn in_memory(source: std::io::Error) -> StoreError {
    StoreError::Io { path: "(compressed in memory)".into(), source }
}

#[cfg(test)]
mod tests {
    use std::io::Read;

    use super::*;

    /// A text that depends on a number, neither constant nor random.
    fn text(number: usize, length: usize) -> Vec<u8> {
        let word =
            |at: usize| format!("{{\"id\":{},\"name\":\"Congress {}\"}}", number * 7 + at, (at * at + number) % 97);
        (0..).flat_map(|at| word(at).into_bytes()).take(length).collect()
    }

    /// A member of texts, each a segment of one record that stands for it.
    fn build(earlier: &Member, texts: &[Vec<u8>]) -> (Member, usize) {
        let mut written = 0;
        let mut member = MemberBuilder::new(earlier);
        member.store(b"head");
        for text in texts {
            let write = |out: &mut Vec<u8>| {
                written += 1;
                out.extend_from_slice(text);
                Ok(())
            };
            member.add(&[RecordJson::of(text)], write).unwrap();
            member.store(b"between");
        }
        (member.finish(), written)
    }

    #[test]
    fn members_are_whole_whatever_they_take_from_earlier_ones() {
        let mut earlier = Member::default();
        let cases: [(&[usize], usize); 6] = [
            (&[], 0),
            (&[0], 1),
            (&[0, 1], 1),
            (&[70_000, 3, 1, 200_000], 3),
            (&[200_000, 70_000, 5], 1),
            (&[5; 3], 0),
        ];
        for (lengths, expected) in cases {
            let texts: Vec<Vec<u8>> = lengths.iter().map(|length| text(*length, *length)).collect();
            let (member, written) = build(&earlier, &texts);
            assert_eq!(written, expected, "{lengths:?}: segments that the earlier member lacks");
            let plain: Vec<u8> =
                b"head".iter().chain(texts.iter().flat_map(|text| text.iter().chain(b"between"))).copied().collect();
            let mut read = Vec::new();
            // A reader that takes one member alone, and checks its length and checksum.
            let mut reader = flate2::bufread::GzDecoder::new(member.gzip.as_ref());
            reader.read_to_end(&mut read).unwrap();
            assert!(read == plain && reader.into_inner().is_empty(), "{lengths:?}");
            assert_eq!(member.gzip, build(&Member::default(), &texts).0.gzip, "{lengths:?}: the same bytes as anew");
            earlier = member;
        }
    }
}
