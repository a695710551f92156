//! Answers that need no key: the status, the explorer, the documentation, and pages for unknown paths.

use std::sync::Arc;

use flate2::Compression;
use http::header::{CONTENT_SECURITY_POLICY, HeaderName, REFERRER_POLICY};
use http::{HeaderValue, Method, StatusCode};

use super::answers::{Answer, AnswerCache};
use super::conditional::ETag;
use super::problem::{Code, Problem};
use super::request::Request;
use super::response::{Response, prefers_html};
use super::settings::Settings;
use crate::api::browsers::is_own;
use crate::contract::parameters::NoParameters;
use crate::contract::{CONTRACT, DatasetBody, Query, Route, StatusBody};
use crate::docs;
use crate::explorer;
use crate::model::{PerDataset, Timestamp};
use crate::store::Snapshot;

/// `GET /status`: the totals of the whole datasets, regardless of licenses.
pub fn status(
    snapshot: &Snapshot,
    readable: bool,
    query: &Query<'_>,
    now: Timestamp,
) -> Result<Answer, Problem> {
    query.parse::<NoParameters>()?;
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
        let found = match route.path.as_str() {
            "/" => Some(explorer::page(demo.is_some(), settings.contact.as_deref())),
            path => explorer::find(path, demo.is_some()),
        };
        let asset = found.ok_or_else(|| {
            Problem::new(
                Code::NotFound,
                "There is no such page. The explorer is at `/`.",
            )
        })?;
        let etag = ETag::of("explorer", [asset.body.as_slice()]);
        Ok(with_policy(
            asset.content_type,
            asset.body,
            explorer::CONTENT_SECURITY_POLICY,
        )
        .revalidatable(etag))
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
        Ok(of_docs(page))
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
    let page = of_docs(docs::not_found(request.path(), settings.contact.as_deref()));
    let page = Response::new(&page, request, request_id, None).ok()?;
    Some(Response {
        status: StatusCode::NOT_FOUND,
        problem: Some(Code::NotFound),
        ..page
    })
}

/// A page of the documentation.
fn of_docs(page: docs::DocsPage) -> Answer {
    with_policy(page.content_type, page.body, docs::CONTENT_SECURITY_POLICY)
}

/// A page with its security headers.
fn with_policy(content_type: &'static str, body: Vec<u8>, policy: &'static str) -> Answer {
    Answer::text(content_type, body)
        .with(CONTENT_SECURITY_POLICY, HeaderValue::from_static(policy))
        .with(REFERRER_POLICY, HeaderValue::from_static("no-referrer"))
}
