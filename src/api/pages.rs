//! Which rows stand on pages that are asked for time and again.
//!
//! A page rests on its license's witness: while that is the same, so is the page. What the license does not see moves no
//! witness, so it empties nothing here.

use std::any::Any;
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
    lists: Kept<ListPage, (ListRows, ETag)>,
    feeds: Kept<FeedPage, FeedRows>,
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
        self.pages.packed.put(place, (Arc::clone(&self.rows), packed.clone()), PAGE_BYTES + packed.len());
        Some(packed)
    }
}

impl Default for Pages {
    fn default() -> Pages {
        let (lists, feeds) = (Recent::new(MOST_BYTES / 4), Recent::new(MOST_BYTES / 4));
        Pages { lists, feeds, packed: Recent::new(MOST_BYTES / 2) }
    }
}

impl Pages {
    /// The rows of a list page and their tag; made by `make` unless they are kept.
    pub fn list(
        &self,
        view: &View<'_>,
        page: ListPage,
        make: impl FnOnce(&ListPage) -> Result<(ListRows, ETag), StoreError>,
    ) -> Result<Arc<(ListRows, ETag)>, StoreError> {
        let bytes = |rows: &(ListRows, ETag)| size_of_val(rows.0.rows.as_slice());
        find(&self.lists, view, page, make, bytes)
    }

    /// The rows of a feed page; made by `make` unless they are kept.
    pub fn feed(
        &self,
        view: &View<'_>,
        page: FeedPage,
        make: impl FnOnce(&FeedPage) -> Result<FeedRows, StoreError>,
    ) -> Result<Arc<FeedRows>, StoreError> {
        find(&self.feeds, view, page, make, |rows| size_of_val(rows.entries.as_slice()))
    }
}

/// What a page takes beside its rows, about: texts of a filter, the table's own row.
const PAGE_BYTES: usize = 512;

fn find<P: Eq + std::hash::Hash + Clone, R>(
    kept: &Kept<P, R>,
    view: &View<'_>,
    page: P,
    make: impl FnOnce(&P) -> Result<R, StoreError>,
    bytes: impl Fn(&R) -> usize,
) -> Result<Arc<R>, StoreError> {
    let witness = view.witness()?;
    let key = Key { license: view.license().id, dataset: view.dataset(), page };
    if let Some((of, rows)) = kept.get(&key)
        && of == witness
    {
        return Ok(rows);
    }
    let rows = Arc::new(make(&key.page)?);
    let bytes = PAGE_BYTES + bytes(&rows);
    kept.put(key, (witness, Arc::clone(&rows)), bytes);
    Ok(rows)
}
