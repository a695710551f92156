//! The JSON of a page: records and tombstones in a list, between other members of an object.

use bytes::Bytes;

use super::segments::{GzipMember, SegmentCache, SegmentFormat, cut};
use crate::model::FeedId;
use crate::model::json::push_str;
use crate::store::StoreError;
use crate::store::format::codec::ShortHash;

/// What stands before the items.
const HEAD: &[u8] = b"{\"data\":[";
/// Room for what stands behind the items.
const TAIL_BYTES: usize = 192;

/// A page in the making.
#[derive(Debug)]
pub struct JsonPage {
    json: Vec<u8>,
    /// Of each item the hash and where it ends.
    items: Vec<(ShortHash, usize)>,
}

impl JsonPage {
    /// A page of so many items, so many bytes together.
    pub fn new(items: usize, bytes: usize) -> JsonPage {
        let mut json = Vec::with_capacity(HEAD.len() + items + bytes + TAIL_BYTES);
        json.extend_from_slice(HEAD);
        JsonPage { json, items: Vec::with_capacity(items) }
    }

    /// Appends an item.
    pub fn push(&mut self, hash: ShortHash, json: &[u8]) {
        if !self.items.is_empty() {
            self.json.push(b',');
        }
        self.json.extend_from_slice(json);
        self.items.push((hash, self.json.len()));
    }

    /// Ends the page of a list (the contract, "Common paging envelope"): with the cursor of the next page, or `None` on the
    /// last one.
    pub fn end_list(&mut self, next_cursor: Option<&str>) {
        self.end(next_cursor.is_some(), "next_cursor");
        match next_cursor {
            Some(cursor) => push_str(&mut self.json, cursor),
            None => self.json.extend_from_slice(b"null"),
        }
        self.json.push(b'}');
    }

    /// Ends the page of a feed (the contract, "Change-feed envelope").
    pub fn end_changes(&mut self, has_more: bool, next_sync_token: &str) {
        self.end(has_more, "next_sync_token");
        push_str(&mut self.json, next_sync_token);
        self.json.push(b'}');
    }

    fn end(&mut self, has_more: bool, position: &str) {
        self.json.extend_from_slice(b"],\"has_more\":");
        self.json.extend_from_slice(if has_more { b"true" } else { b"false" });
        self.json.push(b',');
        push_str(&mut self.json, position);
        self.json.push(b':');
    }

    /// The hashes of all items, one after the other.
    pub fn hashes(&self) -> Vec<u8> {
        self.items.iter().flat_map(|(hash, _)| *hash).collect()
    }

    /// The finished JSON as one gzip member, as licenses of a feed get it; most of its segments are found in the cache.
    ///
    /// # Errors
    /// When the compressor fails.
    pub fn gzip(&self, cache: &SegmentCache, feed: FeedId) -> Result<Bytes, StoreError> {
        let mut member = GzipMember::new(cache, feed, SegmentFormat::Items, self.json.len() / 4, None);
        member.store(HEAD);
        let mut from = HEAD.len();
        for range in cut(self.items.iter().map(|(hash, _)| hash)) {
            let ends = range.end == self.items.len();
            // Where a page begins and ends differs from page to page: such segments are seldom met again.
            let keep = range.start > 0 && !ends;
            // The comma behind the last one, too.
            let to = self.items[range.end - 1].1 + usize::from(!ends);
            let hashes = self.items[range].iter().map(|(hash, _)| hash);
            member.add(hashes, keep, || Ok(&self.json[from..to]))?;
            from = to;
        }
        member.store(&self.json[from..]);
        Ok(member.finish())
    }

    /// The length of the JSON so far, in bytes.
    pub fn bytes(&self) -> usize {
        self.json.len()
    }

    /// The finished JSON.
    pub fn into_json(self) -> Vec<u8> {
        self.json
    }
}
