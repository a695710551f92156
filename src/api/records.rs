//! `GET /{dataset}`, `GET /{dataset}/{id}`, `GET /exports/{dataset}`, and the reference lists.

use data_encoding::BASE64;
use http::HeaderValue;
use http::header::CONTENT_ENCODING;
use serde_json::Value;
use sha2::{Digest as _, Sha256};

use crate::api::auth::Caller;
use crate::api::conditional::ETag;
use crate::api::problem::{Code, Problem};
use crate::api::representation::{Body, Representation};
use crate::api::response::{REPR_DIGEST, X_RECORD_COUNT, X_RECORDS_DIGEST, X_SYNC_TOKEN};
use crate::contract::parameters::ListParameters;
use crate::model::{Dataset, ExportFormat, FieldCondition, Filter, Id};
use crate::query::export::{self, ExportFile};
use crate::query::reference::envelope;
use crate::query::segments::SegmentCache;
use crate::query::{feed, page};
use crate::token::{Cursor, Sealer};

pub(in crate::api) fn list(
    caller: &Caller,
    dataset: Dataset,
    parameters: ListParameters,
    gzip: Option<&SegmentCache>,
) -> Result<Representation, Problem> {
    let view = caller.view(dataset)?;
    let limit = parameters.limit;
    let cursor = parameters.cursor.clone();
    let filter = filter(dataset, parameters);
    let sealer = Sealer::new(caller.snapshot.secret());
    let filters = filter.hash();
    let position = |last_id| Cursor {
        dataset,
        license: caller.license.id,
        filters,
        last_id,
    };
    let after = match cursor {
        None => 0,
        Some(text) => {
            let cursor = sealer
                .open_cursor(&text)
                .ok()
                .filter(|cursor| *cursor == position(cursor.last_id));
            cursor.ok_or(Code::InvalidCursor)?.last_id
        }
    };
    let (mut page, next_after) = page::list(&view, &filter, after, usize::from(limit))?;
    let next = next_after.map(|last_id| sealer.seal_cursor(&position(last_id.get())));
    page.end(next.is_some(), "next_cursor", next.as_deref());
    let cursor = next_after.map_or_else(Vec::new, |last_id| {
        [&last_id.get().to_be_bytes(), filters.as_slice()].concat()
    });
    // The tag takes the cursor's content, not its text, which also depends on the license and the secret.
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
    Filter {
        updated_since: parameters.updated_since,
        text: parameters.q,
        conditions,
    }
}

pub(in crate::api) fn single(
    caller: &Caller,
    dataset: Dataset,
    id: Option<Id>,
) -> Result<Representation, Problem> {
    let view = caller.view(dataset)?;
    let record = id.map(|id| view.find(id)).transpose()?.flatten();
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
pub(in crate::api) fn reference_list(items: &[Vec<u8>]) -> Representation {
    let body = envelope(items);
    let etag = ETag::of("reference", [body.as_slice()]);
    Representation::json(body).revalidatable(etag)
}

pub(in crate::api) fn export(
    caller: &Caller,
    dataset: Dataset,
    format: ExportFormat,
    segments: &SegmentCache,
) -> Result<Representation, Problem> {
    let view = caller.view(dataset)?;
    let ExportFile {
        gzip,
        plain_sha256,
        records,
    } = export::export(&view, format, segments)?;
    let token = Sealer::new(caller.snapshot.secret()).seal_sync_token(&feed::token(&view, None)?);
    let token = HeaderValue::from_str(&token).map_err(Problem::internal)?;
    let (content_type, ending) = match format {
        ExportFormat::Jsonl => ("application/gzip", "jsonl.gz"),
        ExportFormat::Csv => ("text/csv; charset=utf-8", "csv"),
    };
    let etag = Some(ETag::of_bytes(&gzip));
    let repr_digest = digest(&Sha256::digest(&gzip))?;
    let records_digest = digest(&plain_sha256)?;
    let body = Body::Export {
        gzip,
        name: dataset.as_str(),
        ending,
    };
    let headers = Vec::with_capacity(5);
    let mut export = Representation {
        content_type,
        etag,
        headers,
        body,
        feed: None,
        wait: None,
    }
    .with(X_SYNC_TOKEN.clone(), token)
    .with(X_RECORD_COUNT.clone(), records.into())
    .with(REPR_DIGEST.clone(), repr_digest)
    .with(X_RECORDS_DIGEST.clone(), records_digest);
    if format == ExportFormat::Csv {
        export = export.with(CONTENT_ENCODING, HeaderValue::from_static("gzip"));
    }
    Ok(export)
}

/// Formats a SHA-256 for digest fields (RFC 9530, section 2).
fn digest(sha256: &[u8]) -> Result<HeaderValue, Problem> {
    HeaderValue::try_from(format!("sha-256=:{}:", BASE64.encode(sha256))).map_err(Problem::internal)
}
