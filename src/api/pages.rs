//! Which rows stand on pages that are asked for time and again.
//!
//! A page rests on its license's witness: while that is the same, so is the page. What the license does not see moves no
//! witness, so it empties nothing here.

use std::any::Any;
use std::hash::Hash;
use std::sync::Arc;

use super::etag::ETag;
use crate::model::{Dataset, LicenseId};
use crate::query::feed::Rows as FeedRows;
use crate::query::list::{Filter, Rows as ListRows};
use crate::query::recent::Recent;
use crate::store::{Rope, StoreError};
use crate::view::{View, Witness};

/// What pages may take in memory, in bytes.
const MOST_BYTES: usize = 32 << 20;

/// A page of a license.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Key<P> {
    license: LicenseId,
    dataset: Dataset,
    page: P,
}

/// A list page: its filter, the id that it begins after, its limit.
type ListPage = (Filter, u64, usize);
/// A feed page: the seq that it begins after, its limit.
type FeedPage = (u64, usize);

/// Pages, each with what it rests on.
type Kept<P, R> = Recent<Key<P>, (Witness, Arc<R>)>;

/// The pages that are kept.
#[derive(Debug)]
pub struct Pages {
    lists: Kept<ListPage, ListRowsTagged>,
    feeds: Kept<FeedPage, FeedRowsBehind>,
    /// Compressed pages, by the place of their rows in memory; the rows are held, so that no others come to that place.
    packed: Recent<usize, (KeptRows, Rope)>,
}

/// The rows of a page that is kept.
type KeptRows = Arc<dyn Any + Send + Sync>;

/// Where the compressed form of a page is kept.
#[derive(Clone, Debug)]
pub struct PackedPlace {
    pages: Arc<Pages>,
    rows: KeptRows,
}

impl PackedPlace {
    /// The place that goes with the rows of a page.
    pub(super) fn of<R: Any + Send + Sync>(pages: &Arc<Pages>, rows: &Arc<R>) -> PackedPlace {
        let rows: KeptRows = Arc::<R>::clone(rows);
        PackedPlace { pages: Arc::clone(pages), rows }
    }

    /// The compressed page; made by `make` unless it is kept.
    pub fn find(&self, make: impl FnOnce() -> Option<Rope>) -> Option<Rope> {
        let place = Arc::as_ptr(&self.rows).addr();
        if let Some((_, packed)) = self.pages.packed.get(&place) {
            return Some(packed);
        }
        let packed = make()?;
        self.pages.packed.put(place, (Arc::clone(&self.rows), packed.clone()), PACKED_BYTES + packed.len());
        Some(packed)
    }
}

impl Default for Pages {
    fn default() -> Pages {
        let (lists, feeds) = (Recent::new(MOST_BYTES / 4), Recent::new(MOST_BYTES / 4));
        Pages { lists, feeds, packed: Recent::new(MOST_BYTES / 2) }
    }
}

/// A list page's rows and its tag.
type ListRowsTagged = (ListRows, ETag);

/// A feed page, and by how many seconds its position stands behind the feed's newest entry.
type FeedRowsBehind = (FeedRows, u64);

impl Pages {
    /// The rows of a list page and their tag. Unless they are kept they are made by `make`, if `may_make` says so.
    pub fn list(
        &self,
        view: &View<'_>,
        page: ListPage,
        may_make: bool,
        make: impl FnOnce(&ListPage) -> Result<ListRowsTagged, StoreError>,
    ) -> Result<Option<Arc<ListRowsTagged>>, StoreError> {
        let bytes = text_bytes(&page.0) + ETAG_BYTES;
        find(&self.lists, view, page, may_make, make, |(rows, _)| {
            rows.rows.shrink_to_fit();
            bytes + size_of_val(rows.rows.as_slice())
        })
    }

    /// The rows of a feed page, and how far behind they begin. Unless they are kept they are made by `make`, if `may_make`
    /// says so.
    pub fn feed(
        &self,
        view: &View<'_>,
        page: FeedPage,
        may_make: bool,
        make: impl FnOnce(&FeedPage) -> Result<FeedRowsBehind, StoreError>,
    ) -> Result<Option<Arc<FeedRowsBehind>>, StoreError> {
        find(&self.feeds, view, page, may_make, make, |(rows, _)| {
            rows.entries.shrink_to_fit();
            size_of_val(rows.entries.as_slice())
        })
    }
}

/// What a packed page takes beside its bytes, about.
const PACKED_BYTES: usize = 512;
/// What the text of a tag takes.
const ETAG_BYTES: usize = 64;

/// What the texts of a filter take, which are the caller's own words.
fn text_bytes(filter: &Filter) -> usize {
    let texts = [&filter.text, &filter.country, &filter.therapy_area];
    texts.into_iter().flatten().map(String::capacity).sum()
}

/// What a page takes beside its rows and texts: its place in a table of which more than half may be empty, and what stands
/// around each piece of memory.
const fn page_bytes<P, R>() -> usize {
    size_of::<(Key<P>, ((Witness, Arc<R>), usize))>() * 16 / 7 + size_of::<R>() + 128
}

fn find<P: Eq + Hash + Clone, R>(
    kept: &Kept<P, R>,
    view: &View<'_>,
    page: P,
    may_make: bool,
    make: impl FnOnce(&P) -> Result<R, StoreError>,
    trim_and_weigh: impl FnOnce(&mut R) -> usize,
) -> Result<Option<Arc<R>>, StoreError> {
    if !may_make && !view.is_ready() {
        return Ok(None);
    }
    let witness = view.witness()?;
    let key = Key { license: view.license().id, dataset: view.dataset(), page };
    if let Some((of, rows)) = kept.get(&key)
        && of == witness
    {
        return Ok(Some(rows));
    }
    if !may_make {
        return Ok(None);
    }
    let mut rows = make(&key.page)?;
    let bytes = page_bytes::<P, R>() + trim_and_weigh(&mut rows);
    let rows = Arc::new(rows);
    kept.put(key, (witness, Arc::clone(&rows)), bytes);
    Ok(Some(rows))
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::model::{Dataset, Scope};
    use crate::store::Writer;
    use crate::view::LiveRow;

    /// What a piece of memory takes, as allocators round it.
    fn piece(bytes: usize) -> usize {
        if bytes == 0 { 0 } else { bytes.next_multiple_of(16) + 16 }
    }

    #[test]
    fn pages_with_long_filters_stay_within_their_bound() {
        let folder = tempfile::tempdir().unwrap();
        let writer = Writer::open_or_create(&folder.path().join("feed.redb"), Duration::ZERO).unwrap();
        let mut edit = writer.begin().unwrap();
        let scope =
            Scope { datasets: [Dataset::Conferences].into(), therapy_areas: None, countries: None, years: None };
        edit.set_license("all", scope, None).unwrap();
        edit.commit().unwrap();
        let snapshot = writer.snapshot().unwrap();
        let license = snapshot.find_license_named("all").unwrap();
        let view = View::open(&snapshot, license, Dataset::Conferences).unwrap();

        for (length, limit) in [(0, 500), (100, 500), (1_300, 1), (4_000, 500)] {
            let pages = Pages::default();
            for number in 0..40_000_000 / (200 + length) {
                let mut long = String::with_capacity(length + 8);
                long.push_str(&format!("{number:08}"));
                long.extend(std::iter::repeat_n('x', length));
                let filter = Filter { country: Some(long), ..Filter::default() };
                // Nothing is found, in rows that had room for a page.
                let made = |_: &ListPage| {
                    let rows = ListRows { rows: Vec::with_capacity(limit + 1), next_after: None };
                    Ok((rows, ETag::of("list", [])))
                };
                assert!(pages.list(&view, (filter, 0, limit), true, made).unwrap().is_some());
            }
            let row = size_of::<(Key<ListPage>, ((Witness, Arc<ListRowsTagged>), usize))>();
            let mut bytes = pages.lists.places() * (row + 1);
            pages.lists.for_each(|key, (_, rows)| {
                let (rows, _) = rows.as_ref();
                bytes += piece(key.page.0.country.as_ref().map_or(0, String::capacity));
                bytes += piece(size_of::<ListRowsTagged>() + 16)
                    + piece(rows.rows.capacity() * size_of::<LiveRow>())
                    + piece(32);
            });
            let most = MOST_BYTES / 4;
            assert!(bytes <= most, "filters of {length} letters: {bytes} bytes are kept, {most} may be");
            assert!(bytes >= most / 4, "filters of {length} letters: {bytes} bytes of {most}: hardly any are kept");
        }
    }
}
