//! Gzip members made of cached compressed segments (RFC 1951, RFC 1952).
//!
//! Records are divided into *segments*. Each segment is compressed separately, up to a full flush: it ends on a byte
//! boundary and refers to no earlier data. So any member can contain it, and unchanged segments are not compressed
//! again.
//!
//! Segment boundaries depend only on the license's own records. Only licenses with the same feed share segments, and
//! they see the same records. So hidden records change neither a length nor a cache hit.
//!
//! The response cache does not help the first export after a commit; segments do. Pages are compressed whole.
//!
//! The SHA-256 of the content is computed in the same pass. A segment remembers the hash state at its end, so the
//! content before the first change is not hashed again.

use std::hash::Hash;
use std::ops::Range;
use std::sync::Arc;

use bytes::Bytes;
use flate2::{Compress, Compression, Crc, Decompress, FlushCompress, FlushDecompress};
use parking_lot::Mutex;
use quick_cache::sync::{Cache, DefaultLifecycle};
use quick_cache::{DefaultHashBuilder, OptionsBuilder, Weighter};
use sha2::{Digest as _, Sha256};

use crate::model::{ExportFormat, FeedId};
use crate::store::{Result, StoreError};
use crate::store::{ShortHash, hash};

/// A segment ends after a record whose first hash byte is a multiple of this.
const END_ONE_IN: u8 = 64;
/// The maximum number of records in a segment.
pub const MAX_SEGMENT_RECORDS: usize = 128;
/// The maximum length of a stored block (RFC 1951, section 3.2.4).
const MAX_STORED_BYTES: usize = 0xffff;
/// ID1, ID2, deflate, no flags, no time, no extra flags, unknown system (RFC 1952, section 2.3).
const MEMBER_HEADER: [u8; 10] = [0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 0xff];
/// The size of a cache entry without the compressed bytes.
const ENTRY_BYTES: usize = 160 + size_of::<Segment>();
/// The expected number of values in a cache, a hint for it.
const EXPECTED_VALUES: usize = 4096;

/// Compressed bytes up to a full flush, with the checksum and length of the uncompressed bytes.
pub struct Segment {
    deflated: Box<[u8]>,
    crc: Crc,
    /// The hash state at this segment's end in the member that last contained it.
    hashed: Mutex<Option<ContentHasher>>,
}

/// The SHA-256 of the uncompressed content so far.
#[derive(Clone, Default)]
struct ContentHasher {
    sha256: Sha256,
    /// A hash that identifies the content so far.
    chain: ShortHash,
}

impl ContentHasher {
    /// Adds bytes that are not a segment.
    fn add_bytes(&mut self, bytes: &[u8]) {
        self.sha256.update(bytes);
        self.chain = hash(&[&self.chain, bytes].concat());
    }

    /// Adds a segment. Calls `plain` only if other content preceded the segment the last time.
    fn add<P: AsRef<[u8]>>(
        &mut self,
        segment: &Segment,
        key: &ShortHash,
        plain: impl FnOnce() -> Result<P>,
    ) -> Result<()> {
        let chain = hash(&[self.chain, *key].concat());
        let mut known = segment.hashed.lock();
        match &*known {
            Some(known) if known.chain == chain => self.clone_from(known),
            _ => {
                self.sha256.update(plain()?);
                self.chain = chain;
                *known = Some(self.clone());
            }
        }
        Ok(())
    }
}

impl Segment {
    /// Returns the uncompressed bytes.
    fn inflate(&self) -> Result<Vec<u8>> {
        let length = usize::try_from(self.crc.amount()).unwrap_or_default();
        let mut plain = Vec::with_capacity(length);
        Decompress::new(false)
            .decompress_vec(&self.deflated, &mut plain, FlushDecompress::Sync)
            .map_err(|error| in_memory(std::io::Error::other(error)))?;
        Ok(plain)
    }
}

/// The cached segments. A key is a hash of the feed, the format and the hashes of the records.
pub type SegmentCache = Cache<ShortHash, Arc<Segment>, SegmentBytes>;

/// Weighs segments by their bytes.
#[derive(Clone)]
pub struct SegmentBytes;

impl Weighter<ShortHash, Arc<Segment>> for SegmentBytes {
    fn weight(&self, _key: &ShortHash, segment: &Arc<Segment>) -> u64 {
        (ENTRY_BYTES + segment.deflated.len()) as u64
    }
}

/// Creates a cache whose weights and capacity are in bytes. It has one shard: a shard rejects values larger than
/// itself, and single values may be large. The weight of a value must not change in the cache.
pub fn new_cache<K: Hash + Eq, V: Clone, W: Weighter<K, V> + Clone>(
    max_bytes: u64,
    weighter: W,
) -> Cache<K, V, W> {
    let options = OptionsBuilder::new()
        .estimated_items_capacity(EXPECTED_VALUES)
        .weight_capacity(max_bytes)
        .shards(1)
        .build();
    let options = options.expect("all required options are set");
    Cache::with_options(
        options,
        weighter,
        DefaultHashBuilder::default(),
        DefaultLifecycle::default(),
    )
}

/// Returns the ranges of records that form one segment each.
pub fn segment_ranges<'h>(
    hashes: impl ExactSizeIterator<Item = &'h ShortHash>,
) -> Vec<Range<usize>> {
    let count = hashes.len();
    let mut ranges = Vec::new();
    let mut start = 0;
    for (index, hash) in hashes.enumerate() {
        let next = index + 1;
        let ends = hash[0].is_multiple_of(END_ONE_IN);
        if ends || next - start == MAX_SEGMENT_RECORDS || next == count {
            ranges.push(start..next);
            start = next;
        }
    }
    ranges
}

/// A builder for a gzip member.
pub struct GzipMember<'c> {
    cache: &'c SegmentCache,
    feed: FeedId,
    format: ExportFormat,
    out: Vec<u8>,
    crc: Crc,
    hash: ContentHasher,
    compress: Compress,
}

impl<'c> GzipMember<'c> {
    /// Starts a member with records of a feed. `expected_bytes` is the initial capacity.
    pub fn new(
        cache: &'c SegmentCache,
        feed: FeedId,
        format: ExportFormat,
        expected_bytes: usize,
    ) -> GzipMember<'c> {
        let mut out = Vec::with_capacity(expected_bytes);
        out.extend_from_slice(&MEMBER_HEADER);
        GzipMember {
            cache,
            feed,
            format,
            out,
            crc: Crc::new(),
            hash: ContentHasher::default(),
            compress: Compress::new(Compression::default(), false),
        }
    }

    /// Appends bytes uncompressed.
    pub fn push_stored(&mut self, bytes: &[u8]) {
        self.hash.add_bytes(bytes);
        for block in bytes.chunks(MAX_STORED_BYTES) {
            self.push_block(block, false);
        }
    }

    fn push_block(&mut self, bytes: &[u8], last: bool) {
        let len = u16::try_from(bytes.len()).unwrap_or(u16::MAX);
        self.out.push(u8::from(last));
        self.out.extend_from_slice(&len.to_le_bytes());
        self.out.extend_from_slice(&(!len).to_le_bytes());
        self.out.extend_from_slice(bytes);
        self.crc.update(bytes);
    }

    /// Appends a segment of records, from the cache if it is there. `plain` returns the uncompressed bytes if they are
    /// needed. The format and the hashes of the records must determine these bytes.
    pub fn push_segment<'h, P: AsRef<[u8]>>(
        &mut self,
        hashes: impl Iterator<Item = &'h ShortHash>,
        plain: impl FnOnce() -> Result<P>,
    ) -> Result<()> {
        let mut named = [self.feed.0.to_be_bytes().as_slice(), &[self.format as u8]].concat();
        hashes.for_each(|hash| named.extend_from_slice(hash));
        let key = hash(&named);
        let segment = match self.cache.get(&key) {
            Some(segment) => {
                match self.format {
                    ExportFormat::Jsonl => self.hash.add(&segment, &key, plain)?,
                    // Decompressing CSV lines is faster than building them.
                    ExportFormat::Csv => self.hash.add(&segment, &key, || segment.inflate())?,
                }
                segment
            }
            None => {
                let plain = plain()?;
                let segment = Arc::new(self.deflate(plain.as_ref())?);
                self.hash.add(&segment, &key, || Ok(plain))?;
                self.cache.insert(key, Arc::clone(&segment));
                segment
            }
        };
        self.crc.combine(&segment.crc);
        self.out.extend_from_slice(&segment.deflated);
        Ok(())
    }

    fn deflate(&mut self, plain: &[u8]) -> Result<Segment> {
        let compress = &mut self.compress;
        compress.reset();
        let mut deflated = Vec::with_capacity(plain.len() / 4 + 64);
        loop {
            let done = usize::try_from(compress.total_in())
                .unwrap_or(usize::MAX)
                .min(plain.len());
            compress
                .compress_vec(&plain[done..], &mut deflated, FlushCompress::Full)
                .map_err(|error| in_memory(std::io::Error::other(error)))?;
            // Unused capacity means that the flush is complete (zlib.h, "deflate").
            if deflated.len() < deflated.capacity() {
                break;
            }
            deflated.reserve(deflated.capacity());
        }
        let mut crc = Crc::new();
        crc.update(plain);
        Ok(Segment {
            deflated: deflated.into_boxed_slice(),
            crc,
            hashed: Mutex::new(None),
        })
    }

    /// Returns the finished member, and the SHA-256 of its content.
    pub fn finish(mut self) -> (Bytes, [u8; 32]) {
        self.push_block(&[], true);
        self.out.extend_from_slice(&self.crc.sum().to_le_bytes());
        self.out.extend_from_slice(&self.crc.amount().to_le_bytes());
        let sha256 = self.hash.sha256.finalize().into();
        (self.out.into_boxed_slice().into(), sha256)
    }
}

/// Converts an error of writing to memory.
pub(super) fn in_memory(source: std::io::Error) -> StoreError {
    StoreError::Io {
        path: "(compressed in memory)".into(),
        source,
    }
}

#[cfg(test)]
mod tests {
    use std::io::Read;

    use super::*;

    /// Returns a text that depends on `number` and compresses moderately.
    fn text(number: usize, length: usize) -> Vec<u8> {
        let word = |at: usize| {
            format!(
                "{{\"id\":{},\"name\":\"Congress {}\"}}",
                number * 7 + at,
                (at * at + number) % 97
            )
        };
        (0..)
            .flat_map(|at| word(at).into_bytes())
            .take(length)
            .collect()
    }

    /// Returns a member with one segment per text, the SHA-256 of its content, and the number of calls of `plain`.
    fn build(
        cache: &SegmentCache,
        format: ExportFormat,
        texts: &[Vec<u8>],
    ) -> (Bytes, [u8; 32], usize) {
        let mut asked = 0;
        let mut member = GzipMember::new(cache, FeedId(1), format, 0);
        member.push_stored(b"head");
        for text in texts {
            let plain = || {
                asked += 1;
                Ok(text)
            };
            member
                .push_segment([&hash(text)].into_iter(), plain)
                .unwrap();
            member.push_stored(b"between");
        }
        let (member, sha256) = member.finish();
        (member, sha256, asked)
    }

    #[test]
    fn segments_end_by_record_hashes_or_at_the_maximum_length() {
        let (end, other) = ([END_ONE_IN; 32], [1; 32]);
        let hash = |ends: bool| -> ShortHash {
            std::array::from_fn(|at| if ends { end[at] } else { other[at] })
        };
        let most = MAX_SEGMENT_RECORDS;
        // (the number of records, those that end a segment, the ends of the segments)
        let cases: [(usize, &[usize], &[usize]); 11] = cases![
            0, &[], &[];
            1, &[], &[1];
            1, &[0], &[1];
            3, &[0], &[1, 3];
            3, &[1], &[2, 3];
            3, &[2], &[3];
            3, &[0, 1, 2], &[1, 2, 3];
            most - 1, &[], &[most - 1];
            most, &[], &[most];
            most + 1, &[], &[most, most + 1];
            2 * most + 6, &[4], &[5, most + 5, 2 * most + 5, 2 * most + 6];
        ];
        for (count, ending, expected) in cases {
            let hashes: Vec<ShortHash> = (0..count).map(|at| hash(ending.contains(&at))).collect();
            let ranges = segment_ranges(hashes.iter());
            let found = ranges.iter().map(|range| range.end).collect::<Vec<_>>();
            assert_eq!(found, expected, "{count} {ending:?}");
            let mut start = 0;
            assert!(
                ranges
                    .iter()
                    .all(|range| std::mem::replace(&mut start, range.end) == range.start),
                "{ranges:?}"
            );
        }
        let ends = |first: u8| {
            let hashes = [std::array::from_fn(|_| first), hash(false)];
            segment_ranges(hashes.iter()).len() == 2
        };
        assert_eq!(
            (0..=u8::MAX)
                .filter(|first| ends(*first))
                .collect::<Vec<_>>(),
            [0, 64, 128, 192]
        );
    }

    /// Returns a member with one stored text.
    fn stored(text: &[u8]) -> (Bytes, [u8; 32]) {
        let cache = new_cache(0, SegmentBytes);
        let mut member = GzipMember::new(&cache, FeedId(1), ExportFormat::Jsonl, 0);
        member.push_stored(text);
        member.finish()
    }

    #[test]
    fn long_texts_are_stored_in_several_blocks() {
        for length in [0, 1, 65_534, 65_535, 65_536, 131_070, 131_071, 200_000] {
            let text = text(3, length);
            let (member, sha256) = stored(&text);
            let mut read = Vec::new();
            flate2::bufread::GzDecoder::new(member.as_ref())
                .read_to_end(&mut read)
                .unwrap();
            assert!(
                read == text && sha256 == <[u8; 32]>::from(Sha256::digest(&text)),
                "{length}"
            );
        }
    }

    #[test]
    fn a_segment_is_reused_only_in_its_feed_its_form_and_for_its_records() {
        let cache = new_cache(1 << 24, SegmentBytes);
        let (one, two) = (hash(b"one"), hash(b"two"));
        let asked = |feed: u64, format: ExportFormat, hashes: &[ShortHash]| {
            let mut asked = false;
            let mut member = GzipMember::new(&cache, FeedId(feed), format, 0);
            let plain = || {
                asked = true;
                Ok(b"content")
            };
            member.push_segment(hashes.iter(), plain).unwrap();
            asked
        };
        // (the feed, the form, the records, whether the segment is made)
        let lines = ExportFormat::Jsonl;
        let cases: [(u64, ExportFormat, &[ShortHash], bool); 11] = [
            (1, lines, &[one, two], true),
            (1, lines, &[one, two], false),
            (2, lines, &[one, two], true),
            (1 << 32 | 1, lines, &[one, two], true),
            (1, ExportFormat::Csv, &[one, two], true),
            (1, lines, &[one], true),
            (1, lines, &[two, one], true),
            (1, lines, &[one, one], true),
            (1, lines, &[two], true),
            (2, lines, &[one, two], false),
            (1, lines, &[one, two], false),
        ];
        for (at, (feed, format, hashes, expected)) in cases.into_iter().enumerate() {
            assert_eq!(asked(feed, format, hashes), expected, "case {at}");
        }
    }

    #[test]
    fn gzip_members_are_valid_whatever_the_cache_contains() {
        for format in [ExportFormat::Jsonl, ExportFormat::Csv] {
            let cache = new_cache(1 << 24, SegmentBytes);
            // The lengths of the segments, the number of cache misses, and the number of segments that now follow other
            // content.
            let cases: [(&[usize], usize, usize); 9] = [
                (&[], 0, 0),
                (&[0], 1, 0),
                (&[0, 1], 1, 0),
                (&[70_000, 3, 1, 200_000], 3, 1),
                (&[200_000, 70_000, 5], 1, 2),
                (&[200_000, 70_000, 5], 0, 0),
                (&[200_000, 70_000, 7], 1, 0),
                (&[200_000, 3, 70_000, 7], 0, 3),
                (&[5; 3], 0, 3),
            ];
            for (lengths, anew, moved) in cases {
                let texts: Vec<Vec<u8>> = lengths
                    .iter()
                    .map(|length| text(*length, *length))
                    .collect();
                let (member, sha256, asked) = build(&cache, format, &texts);
                let moved = if format == ExportFormat::Csv {
                    0
                } else {
                    moved
                };
                assert_eq!(
                    asked,
                    anew + moved,
                    "{format:?} {lengths:?}: segments whose content is asked for"
                );
                let items = texts.iter().flat_map(|text| text.iter().chain(b"between"));
                let plain: Vec<u8> = b"head".iter().chain(items).copied().collect();
                let mut read = Vec::new();
                // `GzDecoder` reads one member, and checks its length and checksum.
                let mut reader = flate2::bufread::GzDecoder::new(member.as_ref());
                reader.read_to_end(&mut read).unwrap();
                assert!(
                    read == plain && reader.into_inner().is_empty(),
                    "{lengths:?}"
                );
                assert_eq!(
                    sha256,
                    <[u8; 32]>::from(Sha256::digest(&plain)),
                    "{format:?} {lengths:?}"
                );
                let again = build(&new_cache(0, SegmentBytes), format, &texts);
                assert_eq!(
                    (member, sha256),
                    (again.0, again.1),
                    "{lengths:?}: the same as anew"
                );
            }
        }
    }
}
