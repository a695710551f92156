//! `GET /exports/{dataset}`.

use http::HeaderValue;
use http::header::CONTENT_ENCODING;

use super::caller::Caller;
use super::deferred::{Outcome, Wait};
use super::etag::ETag;
use super::problem::Problem;
use super::representation::{Body, Representation};
use super::response::{X_RECORD_COUNT, X_SYNC_TOKEN};
use crate::contract::parameters::ExportParameters;
use crate::contract::{Query, Route};
use crate::model::ExportFormat;
use crate::query::segments::SegmentCache;
use crate::query::{export, feed};
use crate::token::Sealer;

/// A whole dataset as one file.
pub(super) fn export(
    caller: &Caller,
    route: &Route,
    query: &Query<'_>,
    segments: &SegmentCache,
    patience: Wait,
) -> Result<Outcome, Problem> {
    let dataset = route.dataset()?;
    let view = caller.view(dataset)?;
    let ExportParameters { format } = query.parse()?;
    if patience < Wait::Exporting {
        return Ok(Outcome::Later(Wait::Exporting));
    }
    let (gzip, records) = export::export(&view, format, segments)?;
    let token = Sealer::new(caller.snapshot.secret()).seal_sync_token(&feed::token_now(&view)?);
    let token = HeaderValue::from_str(&token).map_err(Problem::internal)?;
    let (content_type, ending) = match format {
        ExportFormat::Jsonl => ("application/gzip", "jsonl.gz"),
        ExportFormat::Csv => ("text/csv; charset=utf-8", "csv"),
    };
    let etag = Some(ETag::of_bytes(&gzip));
    let body = Body::Export { gzip, name: dataset.as_str(), ending };
    let mut export = Representation { content_type, etag, headers: Vec::with_capacity(3), body, feed: None }
        .with(X_SYNC_TOKEN.clone(), token)
        .with(X_RECORD_COUNT.clone(), records.into());
    if format == ExportFormat::Csv {
        export = export.with(CONTENT_ENCODING, HeaderValue::from_static("gzip"));
    }
    Ok(Outcome::made(&view, export)?)
}
