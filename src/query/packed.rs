//! Gzip members stitched from parts that are compressed once (RFC 1951, RFC 1952).
//!
//! The records of an answer are cut into *segments*, and each is compressed by itself up to a full flush: it ends on a
//! byte and refers to nothing before it, so segments can follow each other in any member. They are kept by what they
//! hold, so what did not change is not compressed again: an export after a commit costs what the commit changed, and
//! pages that overlap share most of their work.
//!
//! Where segments end depends on the license's own records alone, and segments are shared among licenses of the same
//! scope alone: what a license does not see changes neither a length nor whether a segment is found.

use std::ops::Range;
use std::sync::{Arc, Mutex, PoisonError};

use bytes::Bytes;
use flate2::{Compress, Compression, Crc, FlushCompress};

use super::recent::Recent;
use crate::model::{Dataset, Scope};
use crate::store::format::codec::Hash;
use crate::store::read::record_cache::Texts;
use crate::store::{Rope, StoreError};

/// A segment ends after a record whose hash says so: one in this many.
const END_ONE_IN: u8 = 64;
/// The most records of a segment.
pub const SEGMENT_RECORDS_MOST: usize = 128;
/// Compressed parts of pages that are this long are shared; shorter ones are copied together.
const SHARE_FROM_BYTES: usize = 4096;
/// What a record comes to, about, when it is compressed among others.
const RECORD_BYTES_EXPECTED: usize = 128;
/// The most bytes of a stored block.
const STORED_BYTES_MOST: usize = 0xffff;
/// ID1, ID2, deflate, no flags, no time, nothing said of the effort, an unknown system.
const MEMBER_HEADER: [u8; 10] = [0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 0xff];

/// How records are written in a segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shape {
    /// JSON objects with commas between them, one behind the last too unless it ends the list.
    Items {
        /// Whether nothing follows.
        ends: bool,
    },
    /// JSON objects, each with a line feed behind it.
    Lines,
    /// Rows of a CSV file.
    Csv,
}

impl Shape {
    const fn tag(self) -> u8 {
        match self {
            Shape::Items { ends: false } => 0,
            Shape::Items { ends: true } => 1,
            Shape::Lines => 2,
            Shape::Csv => 3,
        }
    }

    /// Pages are made while their caller waits; exports are made once for many.
    fn effort(self) -> Compression {
        match self {
            Shape::Items { .. } => Compression::fast(),
            Shape::Lines | Shape::Csv => Compression::default(),
        }
    }
}

/// Compressed bytes up to a full flush, with the checksum and length of what they hold.
#[derive(Debug)]
struct Segment {
    deflated: Bytes,
    crc: Crc,
}

/// What a segment holds, and for whom.
type Key = [u8; 32];

/// The segments that are kept.
#[derive(Debug)]
pub struct Packer {
    kept: Recent<Key, Arc<Segment>>,
    /// Rows of CSV files, by the hash of the record's JSON: where one record of a segment changed, the others are here.
    csv_rows: Recent<Hash, Arc<[u8]>>,
    /// Compressors at rest: making one costs as much as compressing some records.
    idle: Mutex<Vec<(Compression, Compress)>>,
}

/// The part of the kept bytes that CSV rows may take.
const CSV_PART: usize = 4;
/// Compressors that are kept at rest.
const IDLE_MOST: usize = 8;

impl Packer {
    /// Room for so many bytes.
    pub fn new(most_bytes: usize) -> Packer {
        let csv_bytes = most_bytes / CSV_PART;
        Packer { kept: Recent::new(most_bytes - csv_bytes), csv_rows: Recent::new(csv_bytes), idle: Mutex::default() }
    }

    /// Appends the CSV row of a record; made by `make` unless it is kept.
    ///
    /// # Errors
    /// What `make` returns.
    pub fn csv_row(
        &self,
        hash: &Hash,
        out: &mut Vec<u8>,
        make: impl FnOnce(&mut Vec<u8>) -> Result<(), StoreError>,
    ) -> Result<(), StoreError> {
        if let Some(row) = self.csv_rows.get(hash) {
            out.extend_from_slice(&row);
            return Ok(());
        }
        let start = out.len();
        make(out)?;
        let row: Arc<[u8]> = out[start..].into();
        self.csv_rows.put(*hash, row, out.len() - start + size_of::<(Hash, Arc<[u8]>)>());
        Ok(())
    }

    fn lend(&self, effort: Compression) -> Compress {
        let mut idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner);
        match idle.iter().position(|(of, _)| *of == effort) {
            Some(place) => idle.swap_remove(place).1,
            None => Compress::new(effort, false),
        }
    }

    fn take_back(&self, effort: Compression, mut compress: Compress) {
        compress.reset();
        let mut idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner);
        if idle.len() < IDLE_MOST {
            idle.push((effort, compress));
        }
    }

    /// A list of JSON objects between other bytes, as a whole gzip member.
    ///
    /// # Errors
    /// When the compressor fails.
    pub fn pack_page(
        &self,
        scope: &Scope,
        dataset: Dataset,
        head: &[u8],
        texts: &Texts,
        tail: &[u8],
    ) -> Result<Rope, StoreError> {
        let segments = Segments::of(scope, dataset, self);
        let mut member = Member::default();
        member.store(head);
        for range in cut(texts) {
            let shape = Shape::Items { ends: range.end == texts.len() };
            // Where a page begins and ends differs from page to page: such segments are seldom met again.
            let keep = range.start > 0 && range.end < texts.len();
            segments.add(&mut member, texts, range, shape, keep, |range, out| {
                for place in range {
                    out.extend_from_slice(texts.text(place));
                    if place + 1 < texts.len() {
                        out.push(b',');
                    }
                }
                Ok(())
            })?;
        }
        member.store(tail);
        Ok(member.finish())
    }
}

impl Segment {
    /// What it takes in memory.
    fn bytes(&self) -> usize {
        self.deflated.len() + size_of::<(Key, Segment)>()
    }
}

/// The runs of texts that are compressed together.
pub fn cut(texts: &Texts) -> Vec<Range<usize>> {
    let mut ranges = Vec::new();
    let mut start = 0;
    for place in 0..texts.len() {
        let ends = texts.hash(place)[0].is_multiple_of(END_ONE_IN);
        if ends || place + 1 - start == SEGMENT_RECORDS_MOST || place + 1 == texts.len() {
            ranges.push(start..place + 1);
            start = place + 1;
        }
    }
    ranges
}

/// The segments of one scope and dataset.
#[derive(Debug)]
pub struct Segments<'p> {
    packer: &'p Packer,
    hasher: blake3::Hasher,
}

impl<'p> Segments<'p> {
    /// Segments that licenses of the scope share.
    pub fn of(scope: &Scope, dataset: Dataset, packer: &'p Packer) -> Segments<'p> {
        let mut hasher = blake3::Hasher::new_derive_key("medfeed 2026-11 compressed segments");
        // A scope of sets of texts and numbers always becomes MessagePack.
        hasher.update(&rmp_serde::to_vec(scope).unwrap_or_default());
        hasher.update(&[dataset.code()]);
        Segments { packer, hasher }
    }

    /// Appends the segment of a run of texts to a member; it is looked for, and kept, where `keep` says so. `write` gives its
    /// plain bytes, unless it is found; they must follow from the texts and the shape.
    ///
    /// # Errors
    /// What `write` returns, and when the compressor fails.
    pub fn add(
        &self,
        member: &mut Member,
        texts: &Texts,
        range: Range<usize>,
        shape: Shape,
        keep: bool,
        write: impl FnOnce(Range<usize>, &mut Vec<u8>) -> Result<(), StoreError>,
    ) -> Result<(), StoreError> {
        let key = keep.then(|| self.key(shape, &texts.hashes(range.clone())));
        if let Some(segment) = key.and_then(|key| self.packer.kept.get(&key)) {
            member.append(&segment);
            return Ok(());
        }
        member.plain.clear();
        write(range, &mut member.plain)?;
        let segment = Arc::new(self.deflate(&member.plain, shape.effort())?);
        member.append(&segment);
        if let Some(key) = key {
            let bytes = segment.bytes();
            self.packer.kept.put(key, segment, bytes);
        }
        Ok(())
    }

    fn key(&self, shape: Shape, hashes: &[u8]) -> Key {
        let mut hasher = self.hasher.clone();
        hasher.update(&[shape.tag()]);
        hasher.update(hashes);
        *hasher.finalize().as_bytes()
    }

    fn deflate(&self, plain: &[u8], effort: Compression) -> Result<Segment, StoreError> {
        let mut compress = self.packer.lend(effort);
        let mut deflated = Vec::with_capacity(plain.len() / 4 + 64);
        loop {
            let done = usize::try_from(compress.total_in()).unwrap_or(usize::MAX).min(plain.len());
            compress
                .compress_vec(&plain[done..], &mut deflated, FlushCompress::Full)
                .map_err(|error| in_memory(std::io::Error::other(error)))?;
            // Room that is left says that the flush is complete (zlib.h, "deflate").
            if deflated.len() < deflated.capacity() {
                break;
            }
            deflated.reserve(deflated.capacity());
        }
        self.packer.take_back(effort, compress);
        deflated.shrink_to_fit();
        let mut crc = Crc::new();
        crc.update(plain);
        Ok(Segment { deflated: deflated.into(), crc })
    }
}

/// A gzip member that is put together.
#[derive(Debug)]
pub struct Member {
    rope: Rope,
    tail: Vec<u8>,
    crc: Crc,
    share_from_bytes: usize,
    /// What is to be compressed next.
    plain: Vec<u8>,
}

impl Default for Member {
    fn default() -> Member {
        let (rope, plain) = Default::default();
        let share_from_bytes = SHARE_FROM_BYTES;
        Member { rope, tail: MEMBER_HEADER.to_vec(), crc: Crc::new(), share_from_bytes, plain }
    }
}

impl Member {
    /// A member of so many records, in one piece: what is sent many times is sent faster so.
    pub fn in_one_piece(records: usize) -> Member {
        let mut member = Member { share_from_bytes: usize::MAX, ..Member::default() };
        member.tail.reserve(records * RECORD_BYTES_EXPECTED);
        member
    }

    /// Appends bytes as they are.
    pub fn store(&mut self, bytes: &[u8]) {
        for block in bytes.chunks(STORED_BYTES_MOST) {
            self.store_block(block, false);
        }
    }

    fn store_block(&mut self, bytes: &[u8], last: bool) {
        // Never more than 65,535 bytes.
        let len = u16::try_from(bytes.len()).unwrap_or(u16::MAX);
        self.tail.push(u8::from(last));
        self.tail.extend_from_slice(&len.to_le_bytes());
        self.tail.extend_from_slice(&(!len).to_le_bytes());
        self.tail.extend_from_slice(bytes);
        self.crc.update(bytes);
    }

    fn append(&mut self, segment: &Segment) {
        self.crc.combine(&segment.crc);
        if segment.deflated.len() < self.share_from_bytes {
            self.tail.extend_from_slice(&segment.deflated);
        } else {
            self.rope.push(std::mem::take(&mut self.tail).into());
            self.rope.push(segment.deflated.clone());
        }
    }

    /// The whole member.
    pub fn finish(mut self) -> Rope {
        self.store_block(&[], true);
        self.tail.extend_from_slice(&self.crc.sum().to_le_bytes());
        self.tail.extend_from_slice(&self.crc.amount().to_le_bytes());
        self.rope.push(self.tail.into());
        self.rope
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
        let mut text: Vec<u8> = (0..).flat_map(|at| word(at).into_bytes()).take(length).collect();
        text.push(b'\n');
        text
    }

    #[test]
    fn a_segment_does_not_depend_on_what_was_compressed_before() {
        let scope = Scope::nothing();
        let deflate = |packer: &Packer, plain: &[u8], effort| {
            Segments::of(&scope, Dataset::Journals, packer).deflate(plain, effort).unwrap().deflated
        };
        let used = Packer::new(0);
        for number in 0..60 {
            for effort in [Compression::fast(), Compression::default()] {
                let plain = text(number, number * number * 40);
                let expected = deflate(&Packer::new(0), &plain, effort);
                assert_eq!(deflate(&used, &plain, effort), expected, "text {number}");
            }
        }
    }

    #[test]
    fn stitched_members_are_whole() {
        let scope = Scope::nothing();
        let packer = Packer::new(1 << 20);
        let segments = Segments::of(&scope, Dataset::Journals, &packer);
        for lengths in [&[][..], &[0], &[1], &[70_000, 3, 200_000], &[5; 100]] {
            let mut member = Member::default();
            let mut plain = Vec::new();
            for (number, length) in lengths.iter().enumerate() {
                let text = text(number, *length);
                member.append(&segments.deflate(&text, Compression::fast()).unwrap());
                member.store(&text);
                plain.extend_from_slice(&text);
                plain.extend_from_slice(&text);
            }
            let mut read = Vec::new();
            let member = member.finish().to_bytes();
            // A reader that takes one member alone, and checks its length and checksum.
            let mut reader = flate2::bufread::GzDecoder::new(member.as_ref());
            reader.read_to_end(&mut read).unwrap();
            assert!(read == plain && reader.into_inner().is_empty(), "{lengths:?}");
        }
    }
}
