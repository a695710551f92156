//! Requests with a key, endpoint by endpoint: parsed, then answered. The change feed follows, then answers that need no key: the status, the explorer, the documentation, and pages for unknown paths.

use std::borrow::Cow;
use std::sync::Arc;
use std::time::{Duration, Instant};

use data_encoding::BASE64;
use flate2::Compression;
use http::header::{CONTENT_ENCODING, CONTENT_SECURITY_POLICY, HeaderName, REFERRER_POLICY};
use http::{HeaderValue, Method, StatusCode};
use serde::de::IgnoredAny;
use serde_json::Value;
use sha2::{Digest as _, Sha256};

use super::answers::{Answer, AnswerCache, Body};
use super::auth::Caller;
use super::conditional::ETag;
use super::observe::FeedUse;
use super::problem::{Code, Problem};
use super::request::Request;
use super::response::{
    REPR_DIGEST, Response, X_RECORD_COUNT, X_RECORDS_DIGEST, X_SYNC_TOKEN, accepts_gzip,
    prefers_html,
};
use super::settings::Settings;
use super::source::SnapshotSource;
use crate::api::browsers::is_own;
use crate::contract::parameters::{
    self, ChangesParameters, ExportParameters, ListParameters, ReferenceParameters,
};
use crate::contract::{BadRequest, CONTRACT, DatasetBody, Query, Resource, Route, StatusBody};
use crate::model::{
    Dataset, ExportFormat, FieldCondition, Filter, Id, License, PerDataset, Timestamp,
};
use crate::query::segments::SegmentCache;
use crate::query::{
    FeedStart, envelope, export, feed_page, list_organizations, list_page, list_tags,
    list_therapy_areas, sync_token,
};
use crate::store::{Snapshot, StoreError};
use crate::token::{Cursor, Sealer, SyncToken};
use crate::view::View;
use crate::{docs, explorer};

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
                query.parse::<IgnoredAny>()?;
                Handler::Record(route.value.trim_start_matches('0').parse().ok())
            }
            Resource::Changes(dataset) => {
                Handler::Changes(FeedQuery::parse(&caller, dataset, query)?)
            }
            Resource::Export => Handler::Export(query.parse::<ExportParameters>()?.format),
            Resource::TherapyAreas => {
                query.parse::<IgnoredAny>()?;
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
        let answer = match self.handler {
            Handler::List(parameters) => list(&view, parameters, &self.caller.sealer())?,
            Handler::Record(id) => single(&view, id)?,
            Handler::Changes(query) => query.answer(&view, &self.caller.sealer())?,
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
fn list(view: &View<'_>, parameters: ListParameters, sealer: &Sealer) -> Result<Answer, Problem> {
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
    let (mut page, next_after) = list_page(view, &filter, after, limit)?;
    let next = next_after.map(|last_id| sealer.seal_cursor(&position(last_id.get())));
    page.end(next.is_some(), "next_cursor", next.as_deref());
    let cursor = next_after.map_or_else(Vec::new, |last_id| {
        [&last_id.get().to_be_bytes(), filters.as_slice()].concat()
    });
    // The tag takes the cursor's content, not its text, which also depends on the license and the secret.
    let etag = ETag::of("list", [page.hashes(), &cursor]);
    Ok(Answer::json(page.into_json()).revalidatable(etag))
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
    let body = [b"{\"data\":", &*record.json, b"}"].concat();
    let etag = ETag::of("record", [record.hash.as_slice()]);
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
    let token = sealer.seal_sync_token(&sync_token(view, None)?);
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

/// The longest wait, in seconds. Proxies and load balancers close connections that are silent for 60 seconds.
const MAX_WAIT_S: u16 = 45;

/// The parameters of a request for changes, with the sync token opened.
#[derive(Debug)]
pub(super) struct FeedQuery {
    parameters: ChangesParameters,
    start: FeedStart,
    token: Option<SyncToken>,
}

impl FeedQuery {
    pub fn parse(
        caller: &Caller,
        dataset: Dataset,
        query: &Query<'_>,
    ) -> Result<FeedQuery, Problem> {
        let parameters: ChangesParameters = query.parse()?;
        let (start, token) = match (&parameters.since, parameters.updated_since) {
            (Some(_), Some(_)) => {
                let rule = "cannot be combined with `since`; send one of the two";
                return Err(BadRequest::parameter("updated_since", rule).into());
            }
            (None, None) => (FeedStart::Now, None),
            (None, Some(time)) => (FeedStart::Since(time), None),
            (Some(text), None) => {
                let token = open_token(caller, dataset, text)?;
                (FeedStart::After(token.position), Some(token))
            }
        };
        Ok(FeedQuery {
            parameters,
            start,
            token,
        })
    }

    /// Whether the page is empty and needs only memory: it begins now, or nothing has changed since the token was
    /// issued.
    pub fn is_poll(&self, caller: &Caller) -> Result<bool, Problem> {
        let Some(token) = &self.token else {
            return Ok(matches!(self.start, FeedStart::Now));
        };
        let is_newest = caller.view(token.dataset)?.witness()? == token.witness;
        Ok(is_newest
            && token.position >= token.witness.seq
            && self.check_token(&caller.snapshot, &caller.license)?)
    }

    /// Checks the token in a snapshot, which may read the disk. Returns false if it is not valid: it must be of this
    /// license, this history and the license's current scope. With `resync=diff` the scope may be an earlier one: the
    /// feed has an entry for each record that the license ever showed.
    pub fn check_token(&self, snapshot: &Snapshot, license: &License) -> Result<bool, StoreError> {
        let Some(token) = &self.token else {
            return Ok(true);
        };
        let is_of_scope = token.scope_seq == license.scope_seq || self.parameters.resync.is_some();
        if token.license != license.id || !is_of_scope {
            return Ok(false);
        }
        match View::open(snapshot, license, token.dataset) {
            Ok(view) => view.holds(&token.witness),
            Err(_) => Ok(false),
        }
    }

    /// Finds a newer snapshot in which the token is valid: another server may have just issued it. `asked_at` is the
    /// time of the check. It may block. Returns 410 if the token is lost; 503 if it is of a snapshot that this server
    /// does not have yet.
    pub fn catch_up(
        &self,
        caller: &Caller,
        source: &dyn SnapshotSource,
        asked_at: Instant,
    ) -> Result<Caller, Problem> {
        let Some(token) = &self.token else {
            return Err(Problem::internal("there is no sync token"));
        };
        let license_id = caller.license.id;
        let license_in = |snapshot: &Snapshot| {
            let license = snapshot.find_license(license_id);
            license
                .filter(|license| self.check_token(snapshot, license).unwrap_or(false))
                .map(Arc::clone)
        };
        let accept = |snapshot: &Snapshot| license_in(snapshot).is_some();
        let accepted = |snapshot: Arc<Snapshot>| {
            license_in(&snapshot).map(|license| Caller { snapshot, license })
        };
        let snapshot = source.catch_up(asked_at, &accept);
        let was_ahead = is_ahead(token, &snapshot);
        if let Some(caller) = accepted(snapshot) {
            return Ok(caller);
        }
        if was_ahead && let Some(snapshot) = source.catch_up_with_origin(asked_at, &accept) {
            // Another server issued it, so it is not lost, unless the origin was rolled back.
            let is_ahead = is_ahead(token, &snapshot) && !source.ask_if_lost(last_seq(token));
            match accepted(snapshot) {
                Some(caller) => return Ok(caller),
                None if is_ahead => return Err(Problem::ahead()),
                None => {}
            }
        }
        let dataset = token.dataset;
        Err(Problem::new(
            Code::ResyncRequired,
            format!(
                "The sync token is from before a change of the license, of another license, or from a state of the data that no longer exists. Load the export `/exports/{dataset}` again and continue from its `X-Sync-Token`."
            ),
        ))
    }

    /// A page of the change feed. The token must be valid.
    pub fn answer(&self, view: &View<'_>, sealer: &Sealer) -> Result<Answer, Problem> {
        let limit = usize::from(self.parameters.limit);
        let (mut page, next_seq, next) = feed_page(view, self.start.after(view)?, limit)?;
        let token = match &self.parameters.since {
            // If nothing is new, the token stays the same.
            Some(text) if self.token == Some(next) => Cow::from(text),
            _ => Cow::from(sealer.seal_sync_token(&next)),
        };
        page.end(next_seq.is_some(), "next_sync_token", Some(&token));
        // A first token, and a new token after a change of the scope, are sent at once.
        let is_news = !page.is_empty()
            || matches!(self.start, FeedStart::Now)
            || self.token.is_some_and(|sent| sent != next);
        let wait_s = MAX_WAIT_S.min(self.parameters.wait);
        let mut answer = Answer::json(page.into_json());
        answer.wait = (wait_s > 0 && !is_news).then(|| Duration::from_secs(wait_s.into()));
        if let FeedStart::After(position) = self.start {
            let next = next_seq.map(|seq| view.commit_of(seq)).transpose()?;
            answer.feed = Some(FeedUse {
                dataset: view.dataset(),
                position,
                witness: view.witness()?,
                behind_since: next.map(|commit| commit.time),
            });
        }
        Ok(answer)
    }
}

fn open_token(caller: &Caller, dataset: Dataset, text: &str) -> Result<SyncToken, Problem> {
    let sealer = caller.sealer();
    sealer.open_sync_token(text).ok().filter(|token| token.dataset == dataset).ok_or_else(|| {
        Problem::new(
            Code::InvalidSyncToken,
            format!("The `since` value is not a sync token of `/{dataset}/changes`. Send a `next_sync_token` of this feed, or the `X-Sync-Token` of `/exports/{dataset}`."),
        )
    })
}

fn last_seq(token: &SyncToken) -> u64 {
    token.scope_seq.max(token.position).max(token.witness.seq)
}

/// Whether a token depends on commits after a snapshot.
fn is_ahead(token: &SyncToken, snapshot: &Snapshot) -> bool {
    last_seq(token) > snapshot.commit().seq
}

/// `GET /status`: the totals of the whole datasets, regardless of licenses.
pub fn status(
    snapshot: &Snapshot,
    readable: bool,
    query: &Query<'_>,
    now: Timestamp,
) -> Result<Answer, Problem> {
    query.parse::<IgnoredAny>()?;
    if !readable {
        return Err(Code::Unavailable.into());
    }
    let totals = snapshot.totals();
    let datasets = PerDataset::of(|dataset| {
        DatasetBody::new(totals.records[dataset], totals.changed_at[dataset])
    });
    let status = StatusBody::up(now, datasets);
    let body = serde_json::to_vec(&status).unwrap_or_default();
    Ok(Answer::json(body))
}

/// The answer for a path of the explorer. Files are revalidated by `ETag`; the data of a demo must not be stored.
/// Returns 404 for unknown paths, and 421 if another site's page may be requesting a demo's keys.
pub fn explorer_page(
    request: &Request,
    route: &Route,
    settings: &Settings,
    answers: &AnswerCache,
) -> Result<Arc<Answer>, Problem> {
    let demo = settings.demo.as_deref();
    if let Some(demo) = demo.filter(|_| route.path == explorer::DEMO_PATH) {
        if !is_own(&request.headers, &[]) {
            return Err(Problem::invalid_request(
                StatusCode::MISDIRECTED_REQUEST,
                "A demo shows its keys only if `Host` is an address or `localhost`. Open the page with this machine's address.",
            ));
        }
        return Ok(Arc::new(Answer::json(demo.to_json())));
    }
    cached_page(route, answers, || {
        let contact = settings.contact.as_deref();
        let found = explorer::find(&route.path, demo.is_some(), contact);
        let file = found.ok_or_else(|| {
            Problem::new(
                Code::NotFound,
                "There is no such page. The explorer is at `/`.",
            )
        })?;
        let etag = ETag::of("explorer", [file.1.as_slice()]);
        Ok(with_policy(file, explorer::CONTENT_SECURITY_POLICY).revalidatable(etag))
    })
}

/// Whether the explorer asks its browser to forget what it stores. Pages of other sites cannot: their browsers say so in
/// `Sec-Fetch-Site`, which scripts cannot set.
pub fn asks_to_forget(request: &Request) -> bool {
    let site = request.headers.get("sec-fetch-site");
    request.method == Method::POST
        && request.path() == explorer::FORGET_PATH
        && !request.has_body
        && site.is_some_and(|site| site == "same-origin")
}

/// The answer that makes a browser remove all files of this origin, with the bytes of rows that were deleted before.
pub fn forgotten() -> Answer {
    Answer::json(b"{}".to_vec()).with(
        HeaderName::from_static("clear-site-data"),
        HeaderValue::from_static("\"storage\""),
    )
}

/// The answer for a path of the documentation, cached.
pub fn docs_page(
    route: &Route,
    settings: &Settings,
    answers: &AnswerCache,
) -> Result<Arc<Answer>, Problem> {
    cached_page(route, answers, || {
        let public_url = &settings.public_url;
        let contact = settings.contact.as_deref();
        let page =
            docs::find_page(&CONTRACT, &route.path, public_url, contact).ok_or_else(|| {
                Problem::new(
                    Code::NotFound,
                    format!("There is no such page. Start at {public_url}/docs."),
                )
            })?;
        Ok(with_policy(page, docs::CONTENT_SECURITY_POLICY))
    })
}

/// The cached page of a path. Builds it on first use.
fn cached_page(
    route: &Route,
    answers: &AnswerCache,
    build: impl FnOnce() -> Result<Answer, Problem>,
) -> Result<Arc<Answer>, Problem> {
    if let Some(page) = answers.find(None, &route.path) {
        return Ok(page);
    }
    let page = Arc::new(build()?);
    // Compress it now, so that the cache counts its full size, and well, because that happens once.
    page.compressed(Compression::default());
    answers.insert(None, &route.path, Arc::clone(&page));
    Ok(page)
}

/// The response for an unknown path outside `/v1`, instead of a problem: an HTML page for browsers.
pub fn page_instead(request: &Request, settings: &Settings, request_id: &str) -> Option<Response> {
    if !prefers_html(&request.headers) {
        return None;
    }
    let page = docs::not_found(request.path(), settings.contact.as_deref());
    let page = with_policy(page, docs::CONTENT_SECURITY_POLICY);
    let page = Response::new(&page, request, request_id, None).ok()?;
    Some(Response {
        status: StatusCode::NOT_FOUND,
        problem: Some(Code::NotFound),
        ..page
    })
}

/// A page with its security headers. `file` is its content type and its bytes.
fn with_policy(file: (&'static str, Vec<u8>), policy: &'static str) -> Answer {
    Answer::text(file.0, file.1)
        .with(CONTENT_SECURITY_POLICY, HeaderValue::from_static(policy))
        .with(REFERRER_POLICY, HeaderValue::from_static("no-referrer"))
}
