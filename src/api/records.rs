//! `GET /{dataset}` and `GET /{dataset}/{id}`.

use super::caller::Caller;
use super::deferred::{Outcome, Wait};
use super::etag::ETag;
use super::problem::{Code, Problem};
use super::representation::Representation;
use crate::contract::Query;
use crate::contract::parameters::{ListParameters, NoParameters};
use crate::model::{Dataset, Id};
use crate::query::list::{self, Filter};
use crate::query::segments::SegmentCache;
use crate::token::{Cursor, Sealer};

/// A page of a list.
pub(super) fn list(
    caller: &Caller,
    dataset: Dataset,
    query: &Query<'_>,
    gzip: Option<&SegmentCache>,
    patience: Wait,
) -> Result<Outcome, Problem> {
    let view = caller.view(dataset)?;
    let parameters: ListParameters = query.parse()?;
    let limit = parameters.limit;
    let cursor = parameters.cursor.clone();
    let filter = filter(parameters);
    let sealer = Sealer::new(caller.snapshot.secret());
    let filters = filter.hash();
    let position = |last_id| Cursor { dataset, license: caller.license.id, filters, last_id };
    let after = match cursor {
        None => 0,
        Some(text) => {
            sealer
                .open_cursor(&text)
                .ok()
                .filter(|cursor| *cursor == position(cursor.last_id))
                .ok_or(Code::InvalidCursor)?
                .last_id
        }
    };
    let wait = if filter.needs_columns() && !view.has_columns() { Wait::Building } else { Wait::Reading };
    if patience < wait {
        return Ok(Outcome::Later(wait));
    }
    let rows = list::list(&view, &filter, after, usize::from(limit))?;
    let mut page = list::page(&view, &rows)?;
    page.end_list(rows.next_after.map(|last_id| sealer.seal_cursor(&position(last_id.get()))).as_deref());
    let cursor =
        rows.next_after.map_or_else(Vec::new, |last_id| [&last_id.get().to_be_bytes(), filters.as_slice()].concat());
    // Of a cursor the tag takes the meaning: where it leads, and in which list.
    let etag = ETag::of("list", [page.hashes().as_slice(), &cursor]);
    Ok(Outcome::made(&view, Representation::page(page, &view, gzip)?.revalidatable(etag))?)
}

fn filter(parameters: ListParameters) -> Filter {
    Filter {
        updated_since: parameters.updated_since,
        text: parameters.q,
        year: parameters.year,
        start_date_from: parameters.start_date_from,
        start_date_to: parameters.start_date_to,
        country: parameters.country,
        therapy_area: parameters.therapy_area,
    }
}

/// A single record.
pub(super) fn single(
    caller: &Caller,
    dataset: Dataset,
    id: Option<Id>,
    query: &Query<'_>,
    patience: Wait,
) -> Result<Outcome, Problem> {
    let view = caller.view(dataset)?;
    query.parse::<NoParameters>()?;
    if patience < Wait::Reading && !view.has_index() {
        return Ok(Outcome::Later(Wait::Reading));
    }
    let row = match id {
        Some(id) => view.find(id)?,
        None => None,
    };
    let row = row.ok_or_else(|| {
        Problem::new(
            Code::RecordNotFound,
            format!("There is no record with this id in the dataset `{dataset}` of your license."),
        )
    })?;
    if patience < Wait::Reading && !view.has_json(row) {
        return Ok(Outcome::Later(Wait::Reading));
    }
    let records = view.record_json([row])?;
    let json = records.first().ok_or_else(|| Problem::internal("a record without JSON"))?;
    let body = [b"{\"data\":", json.bytes(), b"}"].concat();
    let etag = ETag::of("record", [json.hash().as_slice()]);
    Ok(Outcome::made(&view, Representation::json(body).revalidatable(etag))?)
}
