//! `GET /exports/{dataset}`.

use std::sync::Arc;

use http::header::{CONTENT_DISPOSITION, CONTENT_ENCODING};
use http::{HeaderValue, StatusCode};

use super::caller::Caller;
use super::content::Content;
use super::deferred::{Outcome, Wait};
use super::problem::Problem;
use super::response::{Response, X_RECORD_COUNT, X_SYNC_TOKEN};
use crate::contract::parameters::{ExportFormat, ExportParameters};
use crate::contract::{Query, Route};
use crate::model::{Dataset, License, LicenseId, Timestamp};
use crate::query::export::{self, Format};
use crate::query::feed;
use crate::query::packed::Packer;
use crate::store::{Rope, Snapshot};
use crate::token::Sealer;
use crate::view::Witness;

/// What an export's bytes depend on: they are the same wherever this is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ExportKey {
    license: LicenseId,
    dataset: Dataset,
    format: Format,
    witness: (u64, [u8; 16]),
}

impl ExportKey {
    /// Whether the other is the same list in another state.
    pub fn is_replaced_by(&self, other: &ExportKey) -> bool {
        (self.license, self.dataset, self.format) == (other.license, other.dataset, other.format)
            && self.witness != other.witness
    }
}

/// A built export, to be sent to all who ask for it.
#[derive(Clone, Debug)]
pub struct BuiltExport {
    /// The gzip member.
    pub gzip: Rope,
    /// How many records it holds.
    pub records: usize,
}

/// An export that passed all checks and is to be built, or found built.
#[derive(Debug)]
pub struct ExportCall {
    snapshot: Arc<Snapshot>,
    license: Arc<License>,
    dataset: Dataset,
    format: Format,
    token: String,
    witness: Witness,
    wall: Timestamp,
}

/// Checks a call for an export.
pub(super) fn export(
    caller: &Caller,
    route: &Route,
    query: &Query<'_>,
    wall: Timestamp,
    patience: Wait,
) -> Result<Outcome, Problem> {
    let dataset = route.dataset()?;
    let view = caller.view(dataset)?;
    let format = match query.parse::<ExportParameters>()?.format {
        ExportFormat::Jsonl => Format::Jsonl,
        ExportFormat::Csv => Format::Csv,
    };
    if patience < Wait::Reading && !view.is_ready() {
        return Ok(Outcome::Later(Wait::Reading));
    }
    let token = feed::token_now(&view)?;
    let sealed = Sealer::new(caller.snapshot.secret()).seal_sync_token(&token);
    Ok(Outcome::Export(ExportCall {
        dataset,
        format,
        token: sealed,
        witness: token.witness,
        wall,
        license: Arc::clone(&caller.license),
        snapshot: Arc::clone(&caller.snapshot),
    }))
}

impl ExportCall {
    /// What the file's bytes depend on.
    pub fn key(&self) -> ExportKey {
        ExportKey {
            license: self.license.id,
            dataset: self.dataset,
            format: self.format,
            witness: (self.witness.seq, self.witness.lineage),
        }
    }

    /// Builds the whole file in memory, with what the packer has of it.
    ///
    /// # Errors
    /// When the database cannot be read.
    pub fn build(&self, packer: &Packer) -> Result<BuiltExport, Problem> {
        let view = crate::view::View::open(&self.snapshot, &self.license, self.dataset)
            .map_err(|_| Problem::internal("the dataset of an export is not licensed"))?;
        let file = export::export(&view, self.format, packer)?;
        Ok(BuiltExport { gzip: file.gzip, records: file.records })
    }

    /// The answer with a built file.
    pub fn respond(&self, file: &BuiltExport) -> Response {
        let (content_type, ending) = match self.format {
            Format::Jsonl => ("application/gzip", "jsonl.gz"),
            Format::Csv => ("text/csv; charset=utf-8", "csv"),
        };
        let mut response = Response::new(StatusCode::OK, content_type, Content::Bytes(file.gzip.clone()));
        if self.format == Format::Csv {
            response = response.with(CONTENT_ENCODING, HeaderValue::from_static("gzip"));
        }
        let name = format!("attachment; filename=\"{}-{}.{ending}\"", self.dataset, self.wall.date());
        if let (Ok(name), Ok(token)) = (HeaderValue::from_str(&name), HeaderValue::from_str(&self.token)) {
            response = response.with(CONTENT_DISPOSITION, name).with(X_SYNC_TOKEN.clone(), token);
        }
        response.with(X_RECORD_COUNT.clone(), file.records.into())
    }
}
