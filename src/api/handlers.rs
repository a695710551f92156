//! Requests with a key, endpoint by endpoint: parsed, then answered. The change feed is in `changes`.

use std::time::Instant;

use data_encoding::BASE64;
use http::HeaderValue;
use http::header::CONTENT_ENCODING;
use serde_json::Value;
use sha2::{Digest as _, Sha256};

use super::answers::{Answer, Body};
use super::auth::Caller;
use super::changes::FeedQuery;
use super::conditional::ETag;
use super::problem::{Code, Problem};
use super::request::Request;
use super::response::{REPR_DIGEST, X_RECORD_COUNT, X_RECORDS_DIGEST, X_SYNC_TOKEN, accepts_gzip};
use super::source::SnapshotSource;
use crate::contract::parameters::{
    self, ExportParameters, ListParameters, NoParameters, ReferenceParameters,
};
use crate::contract::{Query, Resource, Route};
use crate::model::{Dataset, ExportFormat, FieldCondition, Filter, Id};
use crate::query::export::export;
use crate::query::reference::{envelope, list_organizations, list_tags, list_therapy_areas};
use crate::query::segments::SegmentCache;
use crate::query::{feed, page};
use crate::token::{Cursor, Sealer};
use crate::view::View;

/// The kind of permit that a job needs to run on a blocking thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PermitKind {
    Read,
    /// To poll the file or the origin for newer commits.
    CatchUp,
    Export,
}

/// A handler with its input. Running it consumes the job, so a handler runs once.
#[derive(Debug)]
pub struct Job {
    pub(super) caller: Caller,
    pattern: &'static str,
    dataset: Dataset,
    handler: Handler,
    pub(super) wants_gzip: bool,
    /// The time of the check. A poll that begins later finds every commit that the caller can have seen elsewhere.
    asked_at: Instant,
}

#[derive(Debug)]
enum Handler {
    List(ListParameters),
    Record(Option<Id>),
    Changes(FeedQuery),
    Export(ExportFormat),
    TherapyAreas,
    Tags(Option<String>),
    Organizations,
}

impl Job {
    /// Parses a request of a caller. Returns 403 for an unlicensed dataset, before it checks the parameters (400).
    pub(super) fn parse(caller: Caller, request: &Request, route: &Route) -> Result<Job, Problem> {
        let query = &Query::of(route.endpoint, request.query());
        let dataset = match route.endpoint.resource {
            Resource::List(dataset) | Resource::Record(dataset) | Resource::Changes(dataset) => {
                Some(dataset)
            }
            Resource::Export => Some(parameters::DATASET.parse(&route.value)?),
            Resource::TherapyAreas => Some(Dataset::Conferences),
            _ => query.dataset(),
        };
        if let Some(dataset) = dataset {
            caller.view(dataset)?;
        }
        let handler = match route.endpoint.resource {
            Resource::List(_) => Handler::List(query.parse()?),
            Resource::Record(_) => {
                query.parse::<NoParameters>()?;
                Handler::Record(route.value.trim_start_matches('0').parse().ok())
            }
            Resource::Changes(dataset) => {
                Handler::Changes(FeedQuery::parse(&caller, dataset, query)?)
            }
            Resource::Export => Handler::Export(query.parse::<ExportParameters>()?.format),
            Resource::TherapyAreas => {
                query.parse::<NoParameters>()?;
                Handler::TherapyAreas
            }
            Resource::Tags => Handler::Tags(query.parse::<ReferenceParameters>()?.r#type),
            Resource::Organizations => {
                query.parse::<ReferenceParameters>()?;
                Handler::Organizations
            }
            Resource::Docs | Resource::Explorer | Resource::Status => {
                return Err(Problem::internal("it has no handler"));
            }
        };
        let dataset = dataset.ok_or_else(|| Problem::internal("a request without a dataset"))?;
        Ok(Job {
            caller,
            pattern: route.endpoint.pattern,
            dataset,
            handler,
            wants_gzip: accepts_gzip(&request.headers),
            asked_at: Instant::now(),
        })
    }

    /// The permit that it needs; `None` if it reads only memory. Such a job takes well under a millisecond, and a
    /// thread for it would cost as much as the job.
    pub(super) fn permit(&self) -> Result<Option<PermitKind>, Problem> {
        let reads_tables = match &self.handler {
            Handler::Export(_) => return Ok(Some(PermitKind::Export)),
            Handler::Changes(query) => {
                return Ok((!query.is_poll(&self.caller)?).then_some(PermitKind::Read));
            }
            Handler::List(parameters) => parameters.updated_since.is_some(),
            Handler::Record(_) | Handler::TherapyAreas => false,
            Handler::Tags(_) | Handler::Organizations => !self.caller.snapshot.has_references(),
        };
        let is_fast = !reads_tables && self.caller.view(self.dataset)?.is_loaded();
        Ok((!is_fast).then_some(PermitKind::Read))
    }

    /// Checks the sync token, if any, in the caller's snapshot. Returns false if it is not valid there. It may block.
    pub(super) fn check_token(&self) -> Result<bool, Problem> {
        let Handler::Changes(query) = &self.handler else {
            return Ok(true);
        };
        Ok(query.check_token(&self.caller.snapshot, &self.caller.license)?)
    }

    /// Moves the job to a newer snapshot, in which its sync token is valid.
    pub(super) fn catch_up(self, source: &dyn SnapshotSource) -> Result<Job, Problem> {
        let Handler::Changes(query) = &self.handler else {
            return Ok(self);
        };
        let caller = query.catch_up(&self.caller, source, self.asked_at)?;
        Ok(Job { caller, ..self })
    }

    /// Runs the handler. Compresses the answer if the caller accepts gzip.
    pub(super) fn run(self, segments: &SegmentCache) -> Result<Answer, Problem> {
        let view = self.caller.view(self.dataset)?;
        let gzip = self.wants_gzip.then_some(segments);
        let answer = match self.handler {
            Handler::List(parameters) => list(&view, parameters, &self.caller.sealer(), gzip)?,
            Handler::Record(id) => single(&view, id)?,
            Handler::Changes(query) => query.answer(&view, &self.caller.sealer(), gzip)?,
            Handler::Export(format) => file(&view, format, &self.caller.sealer(), segments)?,
            Handler::TherapyAreas => reference_list(&list_therapy_areas(&view)?),
            Handler::Tags(kind) => reference_list(&list_tags(&view, kind.as_deref())?),
            Handler::Organizations => reference_list(&list_organizations(&view)?),
        };
        if self.wants_gzip {
            answer.gzip();
        }
        Ok(Answer {
            pattern: self.pattern,
            depends_on: Some((self.dataset, view.witness()?)),
            ..answer
        })
    }
}

/// `GET /{dataset}`: a page of records.
fn list(
    view: &View<'_>,
    parameters: ListParameters,
    sealer: &Sealer,
    gzip: Option<&SegmentCache>,
) -> Result<Answer, Problem> {
    let limit = usize::from(parameters.limit);
    let cursor = parameters.cursor.clone();
    let filter = filter(view.dataset(), parameters);
    let filters = filter.hash();
    let position = |last_id| Cursor {
        dataset: view.dataset(),
        license: view.license().id,
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
    let (mut page, next_after) = page::list(view, &filter, after, limit)?;
    let next = next_after.map(|last_id| sealer.seal_cursor(&position(last_id.get())));
    page.end(next.is_some(), "next_cursor", next.as_deref());
    let cursor = next_after.map_or_else(Vec::new, |last_id| {
        [&last_id.get().to_be_bytes(), filters.as_slice()].concat()
    });
    // The tag takes the cursor's content, not its text, which also depends on the license and the secret.
    let etag = ETag::of("list", [page.hashes().as_slice(), &cursor]);
    Ok(Answer::page(page, view, gzip)?.revalidatable(etag))
}

fn filter(dataset: Dataset, mut parameters: ListParameters) -> Filter {
    let mut conditions = Vec::new();
    for filter in &dataset.table().filters {
        let value = match parameters.filters.remove(&filter.name) {
            None => continue,
            Some(Value::String(text)) => text,
            Some(number) => number.to_string(),
        };
        conditions.push(FieldCondition { filter, value });
    }
    Filter {
        updated_since: parameters.updated_since,
        text: parameters.q,
        conditions,
    }
}

/// `GET /{dataset}/{id}`. `None` is an id that no record can have.
fn single(view: &View<'_>, id: Option<Id>) -> Result<Answer, Problem> {
    let record = id.map(|id| view.find(id)).transpose()?.flatten();
    let record = record.ok_or_else(|| {
        let dataset = view.dataset();
        Problem::new(
            Code::RecordNotFound,
            format!("There is no record with this id in the dataset `{dataset}` of your license."),
        )
    })?;
    let body = [b"{\"data\":", record.json(), b"}"].concat();
    let etag = ETag::of("record", [record.hash().as_slice()]);
    Ok(Answer::json(body).revalidatable(etag))
}

/// `GET /reference/...`: all items of a reference list.
fn reference_list(items: &[Vec<u8>]) -> Answer {
    let body = envelope(items);
    let etag = ETag::of("reference", [body.as_slice()]);
    Answer::json(body).revalidatable(etag)
}

/// `GET /exports/{dataset}`.
fn file(
    view: &View<'_>,
    format: ExportFormat,
    sealer: &Sealer,
    segments: &SegmentCache,
) -> Result<Answer, Problem> {
    let file = export(view, format, segments)?;
    let token = sealer.seal_sync_token(&feed::token(view, None)?);
    let (content_type, ending) = match format {
        ExportFormat::Jsonl => ("application/gzip", "jsonl.gz"),
        ExportFormat::Csv => ("text/csv; charset=utf-8", "csv"),
    };
    let mut headers = vec![
        (
            X_SYNC_TOKEN.clone(),
            HeaderValue::from_str(&token).map_err(Problem::internal)?,
        ),
        (X_RECORD_COUNT.clone(), file.records.into()),
        (REPR_DIGEST.clone(), digest(&Sha256::digest(&file.gzip))?),
        (X_RECORDS_DIGEST.clone(), digest(&file.plain_sha256)?),
    ];
    if format == ExportFormat::Csv {
        headers.push((CONTENT_ENCODING, HeaderValue::from_static("gzip")));
    }
    let etag = ETag::of_bytes(&file.gzip);
    let body = Body::Export {
        gzip: file.gzip,
        name: view.dataset().as_str(),
        ending,
    };
    Ok(Answer::new(content_type, headers, body).revalidatable(etag))
}

/// Formats a SHA-256 for digest fields (RFC 9530, section 2).
fn digest(sha256: &[u8]) -> Result<HeaderValue, Problem> {
    HeaderValue::try_from(format!("sha-256=:{}:", BASE64.encode(sha256))).map_err(Problem::internal)
}
