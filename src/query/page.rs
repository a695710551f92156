//! Record lists: a page of the visible records in the order of their ids, filtered. And the JSON of every page: an
//! object with a list of records and tombstones.

use bytes::Bytes;

use crate::model::json::{push_display, push_json};
use crate::model::{FeedId, Filter, Id};
use crate::query::segments::{GzipMember, SegmentCache, SegmentFormat, segment_ranges};
use crate::store::ShortHash;
use crate::store::StoreError;
use crate::view::View;

/// Returns a page of up to `limit` matching records with ids greater than `after` (0 for the first page). With it the
/// id of its last record, if another page follows.
pub fn list(
    view: &View<'_>,
    filter: &Filter,
    after: u64,
    limit: usize,
) -> Result<(JsonPage, Option<Id>), StoreError> {
    // One extra record shows whether another page follows.
    let mut records = view.list(after, filter, limit + 1)?;
    let has_more = records.len() > limit;
    records.truncate(limit);
    let mut page = JsonPage::new(
        records.len(),
        records.iter().map(|record| record.json().len()).sum(),
    );
    records
        .iter()
        .for_each(|record| page.push(*record.hash(), record.json()));
    Ok((
        page,
        records
            .last()
            .map(|record| record.id())
            .filter(|_| has_more),
    ))
}

const HEAD: &[u8] = b"{\"data\":[";
/// Spare capacity for the members after the list.
const TAIL_BYTES: usize = 192;

/// A builder for the JSON of a page.
#[derive(Debug)]
pub struct JsonPage {
    json: Vec<u8>,
    /// The hash and the end offset of each item.
    items: Vec<(ShortHash, usize)>,
}

impl JsonPage {
    /// Creates a page with capacity for `items` items of `bytes` bytes in total.
    pub fn new(items: usize, bytes: usize) -> JsonPage {
        let mut json = Vec::with_capacity(HEAD.len() + items + bytes + TAIL_BYTES);
        json.extend_from_slice(HEAD);
        JsonPage {
            json,
            items: Vec::with_capacity(items),
        }
    }

    /// Appends an item.
    pub fn push(&mut self, hash: ShortHash, json: &[u8]) {
        if !self.is_empty() {
            self.json.push(b',');
        }
        self.json.extend_from_slice(json);
        self.items.push((hash, self.json.len()));
    }

    /// Ends the page with the position after it (the contract, "Common paging envelope" and "Change-feed envelope").
    /// The last page of a list has no position.
    pub fn end(&mut self, has_more: bool, name: &str, position: Option<&str>) {
        push_display(
            &mut self.json,
            format_args!("],\"has_more\":{has_more},\"{name}\":"),
        );
        match position {
            Some(position) => push_json(&mut self.json, position),
            None => self.json.extend_from_slice(b"null"),
        }
        self.json.push(b'}');
    }

    /// Whether the page has no items.
    pub fn is_empty(&self) -> bool {
        self.items.is_empty()
    }

    /// Returns the concatenated hashes of all items.
    pub fn hashes(&self) -> Vec<u8> {
        self.items.iter().flat_map(|(hash, _)| *hash).collect()
    }

    /// Returns the finished JSON as one gzip member. Most of its segments come from the cache.
    pub fn gzip(&self, cache: &SegmentCache, feed: FeedId) -> Result<Bytes, StoreError> {
        let mut member =
            GzipMember::new(cache, feed, SegmentFormat::Items, self.json.len() / 4, None);
        member.push_stored(HEAD);
        let mut from = HEAD.len();
        for range in segment_ranges(self.items.iter().map(|(hash, _)| hash)) {
            let ends = range.end == self.items.len();
            // The first and last segments vary from page to page, so caching them is not worthwhile. And the same
            // records have no comma after them at the end of a page.
            let keep = range.start > 0 && !ends;
            // Include the comma after the last item.
            let to = self.items[range.end - 1].1 + usize::from(!ends);
            let hashes = self.items[range].iter().map(|(hash, _)| hash);
            member.push_segment(hashes, keep, || Ok(&self.json[from..to]))?;
            from = to;
        }
        member.push_stored(&self.json[from..]);
        Ok(member.finish())
    }

    /// Returns the length of the JSON so far, in bytes.
    pub fn bytes(&self) -> usize {
        self.json.len()
    }

    /// Returns the finished JSON.
    pub fn into_json(self) -> Vec<u8> {
        self.json
    }
}

#[cfg(test)]
mod tests {
    use std::io::Read;

    use flate2::read::MultiGzDecoder;

    use super::*;
    use crate::query::segments::{SegmentBytes, new_cache};

    /// The same records end one page, and are followed by others in another.
    #[test]
    fn pages_with_the_same_segments_decompress_to_their_json() {
        // Each record ends a segment.
        let records: Vec<(ShortHash, String)> = (0..4)
            .map(|at| ([64 * at; 16], format!("{{\"id\":{at}}}")))
            .collect();
        let page = |count: usize| {
            let mut page = JsonPage::new(count, 0);
            records[..count]
                .iter()
                .for_each(|(hash, json)| page.push(*hash, json.as_bytes()));
            page.end(count < records.len(), "next_cursor", None);
            page
        };
        for counts in [[2, 3, 4], [4, 3, 2], [3, 4, 2]] {
            let cache = new_cache(1 << 20, SegmentBytes);
            for count in counts.into_iter().chain([0, 1]) {
                let page = page(count);
                let mut json = Vec::new();
                MultiGzDecoder::new(&*page.gzip(&cache, FeedId(1)).unwrap())
                    .read_to_end(&mut json)
                    .unwrap();
                assert_eq!(
                    String::from_utf8(json),
                    String::from_utf8(page.into_json()),
                    "{count} of {counts:?}"
                );
            }
        }
    }
}
