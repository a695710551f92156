//! `GET /exports/{dataset}`.

use data_encoding::BASE64;
use http::HeaderValue;
use http::header::CONTENT_ENCODING;
use sha2::{Digest as _, Sha256};

use super::auth::Caller;
use super::conditional::ETag;
use super::problem::Problem;
use super::representation::{Body, Representation};
use super::response::{REPR_DIGEST, X_RECORD_COUNT, X_RECORDS_DIGEST, X_SYNC_TOKEN};
use crate::model::{Dataset, ExportFormat};
use crate::query::export::{self, ExportFile};
use crate::query::feed;
use crate::query::segments::SegmentCache;
use crate::token::Sealer;

pub(super) fn export(
    caller: &Caller,
    dataset: Dataset,
    format: ExportFormat,
    segments: &SegmentCache,
) -> Result<Representation, Problem> {
    let view = caller.view(dataset)?;
    let ExportFile { gzip, plain_sha256, records } = export::export(&view, format, segments)?;
    let token = Sealer::new(caller.snapshot.secret()).seal_sync_token(&feed::token_now(&view)?);
    let token = HeaderValue::from_str(&token).map_err(Problem::internal)?;
    let (content_type, ending) = match format {
        ExportFormat::Jsonl => ("application/gzip", "jsonl.gz"),
        ExportFormat::Csv => ("text/csv; charset=utf-8", "csv"),
    };
    let etag = Some(ETag::of_bytes(&gzip));
    let (repr_digest, records_digest) = (digest(&Sha256::digest(&gzip))?, digest(&plain_sha256)?);
    let body = Body::Export { gzip, name: dataset.as_str(), ending };
    let headers = Vec::with_capacity(5);
    let mut export = Representation { content_type, etag, headers, body, feed: None, wait: None }
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
