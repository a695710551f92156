//! `GET /{dataset}`, `GET /{dataset}/{id}`, and the reference lists.

use serde_json::Value;

use super::auth::Caller;
use super::conditional::ETag;
use super::problem::{Code, Problem};
use super::representation::Representation;
use crate::contract::parameters::ListParameters;
use crate::model::{Dataset, FieldCondition, Filter, Id};
use crate::query::list;
use crate::query::reference::envelope;
use crate::query::segments::SegmentCache;
use crate::token::{Cursor, Sealer};

pub(super) fn list(
    caller: &Caller,
    dataset: Dataset,
    parameters: ListParameters,
    gzip: Option<&SegmentCache>,
) -> Result<Representation, Problem> {
    let view = caller.view(dataset)?;
    let (limit, cursor) = (parameters.limit, parameters.cursor.clone());
    let filter = filter(dataset, parameters);
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
    let rows = list::list(&view, &filter, after, usize::from(limit))?;
    let mut page = list::page(&rows);
    page.end_list(rows.next_after.map(|last_id| sealer.seal_cursor(&position(last_id.get()))).as_deref());
    let cursor =
        rows.next_after.map_or_else(Vec::new, |last_id| [&last_id.get().to_be_bytes(), filters.as_slice()].concat());
    // The tag depends on the cursor's content, since its sealed text differs each time.
    let etag = ETag::of("list", [page.hashes().as_slice(), &cursor]);
    Ok(Representation::page(page, &view, gzip)?.revalidatable(etag))
}

fn filter(dataset: Dataset, mut parameters: ListParameters) -> Filter {
    let conditions = dataset.table().filters.iter().filter_map(|filter| {
        let value = match parameters.filters.remove(&filter.name)? {
            Value::String(text) => text,
            number => number.to_string(),
        };
        Some(FieldCondition { filter, value })
    });
    let conditions = conditions.collect();
    Filter { updated_since: parameters.updated_since, text: parameters.q, conditions }
}

pub(super) fn single(caller: &Caller, dataset: Dataset, id: Option<Id>) -> Result<Representation, Problem> {
    let view = caller.view(dataset)?;
    let record = match id {
        Some(id) => view.find(id)?,
        None => None,
    };
    let record = record.ok_or_else(|| {
        Problem::new(
            Code::RecordNotFound,
            format!("There is no record with this id in the dataset `{dataset}` of your license."),
        )
    })?;
    let body = [b"{\"data\":", record.json(), b"}"].concat();
    let etag = ETag::of("record", [record.hash().as_slice()]);
    Ok(Representation::json(body).revalidatable(etag))
}

/// The answer with all items of a reference list.
pub(super) fn reference_list(items: &[Vec<u8>]) -> Representation {
    let body = envelope(items);
    let etag = ETag::of("reference", [body.as_slice()]);
    Representation::json(body).revalidatable(etag)
}
