//! `GET /{dataset}` and `GET /{dataset}/{id}`.

use std::sync::Arc;

use http::HeaderMap;
use http::header::IF_NONE_MATCH;

use super::caller::Caller;
use super::content::{Content, Page};
use super::deferred::{Outcome, Wait};
use super::etag::{self, ETag};
use super::pages::{PackedPlace, Pages};
use super::problem::{Code, Problem};
use super::response::Response;
use crate::contract::Query;
use crate::contract::parameters::{ListParameters, NoParameters};
use crate::model::json::push_str;
use crate::model::{Dataset, Id};
use crate::query::list::{self, Filter};
use crate::store::Rope;
use crate::token::{Cursor, Sealer};

/// A page of a list.
pub(super) fn list(
    caller: &Caller,
    dataset: Dataset,
    query: &Query<'_>,
    headers: &HeaderMap,
    pages: &Arc<Pages>,
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
        Some(text) => sealer
            .open_cursor(&text)
            .ok()
            .filter(|cursor| *cursor == position(cursor.last_id))
            .ok_or_else(|| {
                Problem::new(
                    Code::InvalidCursor,
                    "The `cursor` was not issued by this service for this list. Send the `next_cursor` of the previous page with the same filters, or leave it out to start anew.",
                )
            })?
            .last_id,
    };
    let wait = if filter.needs_columns() && !view.has_columns() { Wait::Building } else { Wait::Reading };
    let may_make = patience >= wait;
    let page = pages.list(&view, (filter, after, usize::from(limit)), may_make, |(filter, after, limit)| {
        let rows = list::list(&view, filter, *after, *limit)?;
        // Of a cursor the tag takes the meaning: where it leads, and in which list.
        let texts = view.texts(rows.rows.iter().copied())?;
        let hashes = texts.hashes(0..texts.len());
        let next = rows.next_after.map(|last_id| last_id.get().to_be_bytes());
        let cursor = next.as_ref().map(|last_id| [last_id.as_slice(), &filters].concat()).unwrap_or_default();
        let etag = ETag::of("list", [hashes.as_slice(), &cursor]);
        Ok((rows, etag))
    })?;
    let Some(page) = page else { return Ok(Outcome::Later(wait)) };
    let (rows, etag) = page.as_ref();
    if etag::matches(headers.get_all(IF_NONE_MATCH).iter(), etag) {
        // The caller has it all: nothing is put together.
        return Ok(Response::revalidatable(Content::Bytes(Rope::default()), etag.clone()).into());
    }
    if patience < Wait::Reading && !view.has_texts(rows.rows.iter().copied()) {
        return Ok(Outcome::Later(Wait::Reading));
    }
    let mut tail = Vec::with_capacity(160);
    tail.extend_from_slice(b"],\"has_more\":");
    match rows.next_after {
        None => tail.extend_from_slice(b"false,\"next_cursor\":null}"),
        Some(last_id) => {
            tail.extend_from_slice(b"true,\"next_cursor\":");
            push_str(&mut tail, &sealer.seal_cursor(&position(last_id.get())));
            tail.push(b'}');
        }
    }
    let texts = view.texts(rows.rows.iter().copied())?;
    let packed_place = Some(PackedPlace::of(pages, &page));
    let license = Arc::clone(&caller.license);
    let content = Page { license, dataset, head: "{\"data\":[", texts, tail, packed_place };
    Ok(Response::revalidatable(Content::Page(Box::new(content)), etag.clone()).into())
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
    if patience < Wait::Reading && !view.has_texts([row]) {
        return Ok(Outcome::Later(Wait::Reading));
    }
    let texts = view.texts([row])?;
    let etag = ETag::of("record", [texts.hash(0).as_slice()]);
    let license = Arc::clone(&caller.license);
    let page = Page { license, dataset, head: "{\"data\":", texts, tail: b"}".to_vec(), packed_place: None };
    Ok(Response::revalidatable(Content::Page(Box::new(page)), etag).into())
}
