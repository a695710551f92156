//! `GET /exports/{dataset}`.

use http::HeaderValue;
use http::header::CONTENT_ENCODING;

use super::answers::CachedAnswer;
use super::caller::Caller;
use super::deferred::{Outcome, Wait};
use super::problem::Problem;
use super::representation::{Body, Representation};
use super::response::{X_RECORD_COUNT, X_SYNC_TOKEN};
use crate::contract::parameters::{ExportFormat, ExportParameters};
use crate::contract::{Query, Route};
use crate::query::export::{self, Format};
use crate::query::feed;
use crate::query::member::Member;
use crate::token::Sealer;

/// A whole dataset as one file. What did not change since an earlier answer is taken from that.
pub(super) fn export(
    caller: &Caller,
    route: &Route,
    query: &Query<'_>,
    patience: Wait,
    earlier: Option<&CachedAnswer>,
) -> Result<Outcome, Problem> {
    let dataset = route.dataset()?;
    let view = caller.view(dataset)?;
    let format = match query.parse::<ExportParameters>()?.format {
        ExportFormat::Jsonl => Format::Jsonl,
        ExportFormat::Csv => Format::Csv,
    };
    if patience < Wait::Exporting {
        return Ok(Outcome::Later(Wait::Exporting));
    }
    let nothing = Member::default();
    let earlier = match earlier.map(|answer| &answer.representation.body) {
        Some(Body::Export { member, .. }) => member,
        _ => &nothing,
    };
    let (member, records) = export::export(&view, format, earlier)?;
    let token = Sealer::new(caller.snapshot.secret()).seal_sync_token(&feed::token_now(&view)?);
    let token = HeaderValue::from_str(&token).map_err(Problem::internal)?;
    let (content_type, ending) = match format {
        Format::Jsonl => ("application/gzip", "jsonl.gz"),
        Format::Csv => ("text/csv; charset=utf-8", "csv"),
    };
    let body = Body::Export { member, name: dataset.as_str(), ending };
    let mut export = Representation { content_type, etag: None, headers: Vec::with_capacity(3), body, feed: None }
        .with(X_SYNC_TOKEN.clone(), token)
        .with(X_RECORD_COUNT.clone(), records.into());
    if format == Format::Csv {
        export = export.with(CONTENT_ENCODING, HeaderValue::from_static("gzip"));
    }
    Ok(Outcome::made(&view, export)?)
}
