//! Queries: functions that take a license's view and request parameters, and return rows and bytes.
//!
//! - [`list_page`]: a page of records in the order of their ids, filtered. [`JsonPage`]: the JSON of every page, an
//!   object with a list of records and tombstones.
//! - [`feed_page`]: a page of the change feed, which is a range scan of the license's own index, from the position in
//!   the token.
//! - [`export()`]: all visible records as one gzip-compressed file (the contract, "GET /exports/{dataset}").
//! - [`list_therapy_areas`], [`list_tags`], [`list_organizations`]: those of visible records, with counts, in
//!   alphabetical order.
//! - [`segments`] compresses pages and exports, with a cache.

pub mod segments;

use std::collections::BTreeMap;

use bytes::Bytes;

use crate::model::json::{push_display, push_json};
use crate::model::{
    ConferenceFields, Curated, Dataset, ExportFormat, FeedId, Fields, Filter, Id, JournalFields,
    LinkTexts, OrganizationFields, RecordFields, ReferenceFields, Referenced, TagFields, Timestamp,
    flat, fold,
};
use crate::query::segments::{
    ContentHasher, GzipMember, SegmentCache, SegmentFormat, in_memory, segment_ranges,
};
use crate::store::read::records::StoredRecord;
use crate::store::{CommitPoint, Result, ShortHash, StoreError, hash};
use crate::token::SyncToken;
use crate::view::View;

/// Returns a page of up to `limit` matching records with ids greater than `after` (0 for the first page). With it the
/// id of its last record, if another page follows.
pub fn list_page(
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

/// The approximate maximum size of a tombstone, in bytes.
const TOMBSTONE_BYTES: usize = 80;

/// The start of a feed page.
#[derive(Clone, Copy, Debug)]
pub enum FeedStart {
    /// After this seq.
    After(u64),
    /// At the first change at or after this time.
    Since(Timestamp),
    /// At the end of the feed.
    Now,
}

impl FeedStart {
    /// Returns the seq after which the page begins.
    pub fn after(self, view: &View<'_>) -> Result<u64> {
        match self {
            FeedStart::After(position) => Ok(position),
            FeedStart::Since(time) => view.seq_before(time),
            FeedStart::Now => Ok(view.witness()?.seq),
        }
    }
}

/// Returns a page of up to `limit` entries after a seq, oldest change first. With it the seq of the first entry that
/// follows, `None` at the end of the feed, and the sync token for the next page.
pub fn feed_page(
    view: &View<'_>,
    after: u64,
    limit: usize,
) -> Result<(JsonPage, Option<u64>, SyncToken)> {
    let mut entries = view.feed_after(after, limit + 1)?;
    let next_seq = entries.get(limit).map(|entry| entry.seq);
    entries.truncate(limit);
    let bytes = entries.iter().map(|entry| {
        entry
            .record
            .map_or(TOMBSTONE_BYTES, |record| record.json().len())
    });
    let mut page = JsonPage::new(entries.len(), bytes.sum());
    // Tombstones of one commit are adjacent, so each commit is looked up once.
    let mut commit: Option<CommitPoint> = None;
    for entry in &entries {
        if let Some(record) = entry.record {
            page.push(*record.hash(), record.json());
            continue;
        }
        let of = match commit {
            Some(commit) if entry.seq <= commit.seq => commit,
            _ => view.commit_of(entry.seq)?,
        };
        commit = Some(of);
        let tombstone = tombstone(entry.id, of.time);
        page.push(hash(&tombstone), &tombstone);
    }
    let last = entries.last().filter(|_| next_seq.is_some());
    let token = sync_token(view, last.map(|entry| entry.seq))?;
    Ok((page, next_seq, token))
}

/// Returns the JSON of a tombstone (the contract, "Tombstone").
pub fn tombstone(id: Id, changed_at: Timestamp) -> Vec<u8> {
    let mut json = Vec::with_capacity(TOMBSTONE_BYTES);
    json.extend_from_slice(b"{\"id\":");
    push_display(&mut json, id);
    json.extend_from_slice(b",\"deleted\":true,\"changed_at\":");
    push_json(&mut json, &changed_at.to_string());
    json.push(b'}');
    json
}

/// Returns the sync token at a position. `None` is the end of the feed, as in exports. There the position is the
/// witness, so a poll without changes returns the same token.
pub fn sync_token(view: &View<'_>, position: Option<u64>) -> Result<SyncToken> {
    let license = view.license();
    let witness = view.witness()?;
    Ok(SyncToken {
        dataset: view.dataset(),
        license: license.id,
        scope_seq: license.scope_seq,
        position: position.unwrap_or(witness.seq),
        witness,
    })
}

/// The approximate compressed size of a record.
const EXPECTED_RECORD_BYTES: usize = 128;

/// A finished file.
pub struct ExportFile {
    /// The gzip-compressed content.
    pub gzip: Bytes,
    /// The SHA-256 of the uncompressed content.
    pub plain_sha256: [u8; 32],
    /// The number of records.
    pub records: usize,
}

/// Builds the file. Equal content gives equal bytes: the gzip header has no timestamp. Cached segments are reused.
pub fn export(view: &View<'_>, format: ExportFormat, cache: &SegmentCache) -> Result<ExportFile> {
    match (format, view.dataset()) {
        (ExportFormat::Jsonl, _) => {
            write_export(view, cache, SegmentFormat::Lines, &[], |record, out| {
                out.extend_from_slice(record.json());
                out.push(b'\n');
                Ok(())
            })
        }
        (ExportFormat::Csv, Dataset::Conferences) => write_csv::<ConferenceFields>(view, cache),
        (ExportFormat::Csv, Dataset::Journals) => write_csv::<JournalFields>(view, cache),
    }
}

fn write_csv<F: RecordFields>(view: &View<'_>, cache: &SegmentCache) -> Result<ExportFile> {
    let mut head = Vec::new();
    push_header::<F>(&mut head)?;
    let references = view.references()?;
    write_export(view, cache, SegmentFormat::Csv, &head, |record, out| {
        let (record, updated_at) = record.decode::<F>()?;
        push_record(out, &record, updated_at, &**references)
    })
}

/// Appends a record as a CSV line. Fails only when memory runs out.
pub fn push_record<F: RecordFields>(
    out: &mut Vec<u8>,
    record: &Curated<F>,
    updated_at: Timestamp,
    links: &dyn LinkTexts,
) -> Result<()> {
    flat::write_row(out, flat::cells(record, Some(updated_at), links)).map_err(in_memory)
}

/// Appends a byte-order mark and the CSV header. Fails only when memory runs out.
pub fn push_header<F: RecordFields>(out: &mut Vec<u8>) -> Result<()> {
    out.extend_from_slice(flat::BYTE_ORDER_MARK);
    flat::write_row(out, flat::columns(F::table(), true)).map_err(in_memory)
}

/// Writes `head` and then all visible records.
fn write_export(
    view: &View<'_>,
    cache: &SegmentCache,
    form: SegmentFormat,
    head: &[u8],
    mut write_row: impl FnMut(&StoredRecord, &mut Vec<u8>) -> Result<()>,
) -> Result<ExportFile> {
    let records = view.list(0, &Filter::default(), usize::MAX)?;
    let mut hash = ContentHasher::default();
    let mut member = GzipMember::new(
        cache,
        view.feed()?,
        form,
        records.len() * EXPECTED_RECORD_BYTES,
        Some(&mut hash),
    );
    member.push_stored(head);
    for range in segment_ranges(records.iter().map(|record| record.hash())) {
        let records = &records[range];
        member.push_segment(records.iter().map(|record| record.hash()), true, || {
            let mut plain = Vec::new();
            records
                .iter()
                .try_for_each(|record| write_row(record, &mut plain))?;
            Ok(plain)
        })?;
    }
    Ok(ExportFile {
        gzip: member.finish(),
        plain_sha256: hash.finish(),
        records: records.len(),
    })
}

/// Returns the JSON of a therapy area with its number of visible conferences.
pub fn therapy_area(name: &str, conferences: u64) -> Vec<u8> {
    let mut json = b"{\"name\":".to_vec();
    push_json(&mut json, name);
    push_display(&mut json, format_args!(",\"conferences\":{conferences}}}"));
    json
}

/// Returns the JSON of an organization or tag with its number of visible records.
pub fn item<F>(row: &Referenced<F>, records: u64) -> Vec<u8> {
    let mut json = row.json.strip_suffix(b"}").unwrap_or(&row.json).to_vec();
    push_display(&mut json, format_args!(",\"records\":{records}}}"));
    json
}

/// Returns the JSON of a complete list.
pub fn envelope(items: &[Vec<u8>]) -> Vec<u8> {
    [b"{\"data\":[".as_slice(), &items.join(&b','), b"]}"].concat()
}

/// Text folded as for the parameter `q`, then the text itself. Ids break ties.
type SortKey = (String, String);

fn sort_key(text: &str) -> SortKey {
    (fold(text), text.to_owned())
}

/// Returns the therapy areas of visible conferences.
pub fn list_therapy_areas(view: &View<'_>) -> Result<Vec<Vec<u8>>> {
    let mut counts = view.count_texts("therapy_areas")?;
    counts.sort_by_cached_key(|(name, _)| sort_key(name));
    Ok(counts
        .iter()
        .map(|(name, conferences)| therapy_area(name, *conferences))
        .collect())
}

/// Returns the tags of visible records, by type and name. `kind` selects one type.
pub fn list_tags(view: &View<'_>, kind: Option<&str>) -> Result<Vec<Vec<u8>>> {
    reference_list(
        view,
        &view.references()?.tags,
        |TagFields {
             kind: own, name, ..
         }| {
            let key = [own, name].map(|text| sort_key(text.as_deref().unwrap_or_default()));
            (kind.is_none() || own.as_deref() == kind).then_some(key)
        },
    )
}

/// Returns the organizations linked to visible records, by name.
pub fn list_organizations(view: &View<'_>) -> Result<Vec<Vec<u8>>> {
    reference_list(
        view,
        &view.references()?.organizations,
        |fields: &OrganizationFields| Some(sort_key(fields.name())),
    )
}

/// Returns the linked items for which `key_of` returns a sort key, by that key and then by id.
fn reference_list<F: ReferenceFields, K: Ord>(
    view: &View<'_>,
    rows: &BTreeMap<Id, Referenced<F>>,
    key_of: impl Fn(&F) -> Option<K>,
) -> Result<Vec<Vec<u8>>> {
    let mut items = Vec::new();
    for (id, records) in view.count_links(F::KIND)? {
        let row = rows.get(&id).ok_or_else(|| {
            let detail = format!("there is no {id}, to which a record links");
            StoreError::damaged(F::STEM, detail)
        })?;
        items.extend(key_of(row.row.fields()).map(|key| (key, id, item(row, records))));
    }
    items.sort_unstable();
    Ok(items.into_iter().map(|(.., json)| json).collect())
}

#[cfg(test)]
mod page_tests {
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
                let expected = String::from_utf8(page.into_json());
                assert_eq!(String::from_utf8(json), expected, "{count} of {counts:?}");
            }
        }
    }
}
