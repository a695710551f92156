//! Answers that need no key: the status, the explorer, the documentation, and pages for unknown paths.

use std::sync::Arc;

use flate2::Compression;
use http::header::{CONTENT_SECURITY_POLICY, LOCATION, REFERRER_POLICY};
use http::{HeaderValue, StatusCode};

use super::answers::{AnswerCache, CachedAnswer};
use super::conditional::ETag;
use super::problem::{Code, Problem};
use super::representation::Representation;
use super::response::{Response, prefers_html};
use crate::api::browsers::is_own;
use crate::api::request::Request;
use crate::contract::parameters::NoParameters;
use crate::contract::{CONTRACT, DatasetBody, Query, StatusBody};
use crate::docs;
use crate::explorer::{self, Demo};
use crate::model::{PerDataset, Timestamp};
use crate::store::Snapshot;

/// `GET /status`: the totals of the whole datasets, regardless of licenses.
pub(super) fn status(
    snapshot: &Snapshot,
    readable: bool,
    query: &Query<'_>,
    now: Timestamp,
) -> Result<Representation, Problem> {
    query.parse::<NoParameters>()?;
    if !readable {
        return Err(Code::Unavailable.into());
    }
    let of = |dataset| {
        let state = snapshot.dataset_state(dataset);
        DatasetBody::new(state.records, state.last_change_at)
    };
    let status = StatusBody::up(now, PerDataset::of(of));
    let body = serde_json::to_vec(&status).unwrap_or_default();
    Ok(Representation::json(body))
}

/// The answer for a path of the explorer. Files are revalidated by `ETag`; the data of a demo must not be stored.
/// Returns 404 for unknown paths, and 421 if another site's page may be requesting a demo's keys.
pub(super) fn explorer_page(
    request: &Request,
    pattern: &'static str,
    demo: Option<&Demo>,
    answers: &AnswerCache,
) -> Result<Arc<CachedAnswer>, Problem> {
    let path = request.path();
    if let Some(demo) = demo.filter(|_| path == explorer::DEMO_PATH) {
        if !is_own(&request.headers, &[]) {
            return Err(Problem::invalid_request(
                StatusCode::MISDIRECTED_REQUEST,
                "A demo shows its keys only if `Host` is an address or `localhost`. Open the page with this machine's address.",
            ));
        }
        return Ok(Arc::new(CachedAnswer::public(pattern, Representation::json(demo.to_json()))));
    }
    if let Some(page) = answers.find(None, path) {
        return Ok(page);
    }
    let asset = explorer::find(path, demo.is_some())
        .ok_or_else(|| Problem::new(Code::NotFound, "There is no such page. The explorer is at `/`."))?;
    let etag = ETag::of("explorer", [asset.body.as_slice()]);
    let representation = Representation::text(asset.content_type, asset.body)
        .revalidatable(etag)
        .with(CONTENT_SECURITY_POLICY, HeaderValue::from_static(explorer::CONTENT_SECURITY_POLICY))
        .with(REFERRER_POLICY, HeaderValue::from_static("no-referrer"));
    // Compress it now, so that the cache counts its full size, and well, because that happens once.
    representation.compressed(Compression::default());
    let page = Arc::new(CachedAnswer::public(pattern, representation));
    answers.insert(None, path, Arc::clone(&page));
    Ok(page)
}

/// The answer for a path of the documentation, cached. `public_url` is the base URL in its text.
pub(super) fn docs_page(
    path: &str,
    pattern: &'static str,
    public_url: &str,
    answers: &AnswerCache,
) -> Result<Arc<CachedAnswer>, Problem> {
    if let Some(page) = answers.find(None, path) {
        return Ok(page);
    }
    let found = docs::find_page(&CONTRACT, path, public_url)
        .ok_or_else(|| Problem::new(Code::NotFound, format!("There is no such page. Start at {public_url}/docs.")))?;
    let representation = with_policy(found);
    // Compress it now, so that the cache counts its full size.
    representation.gzip();
    let page = Arc::new(CachedAnswer::public(pattern, representation));
    answers.insert(None, path, Arc::clone(&page));
    Ok(page)
}

/// The response for an unknown path outside `/v1`, instead of a problem: a redirect if a page has moved, or an HTML page
/// for browsers.
pub(super) fn page_instead(request: &Request, request_id: &str) -> Option<Response> {
    let path = request.path();
    let answer = |representation: &Representation| Response::new(representation, request, request_id, None).ok();
    if let Some(target) = docs::find_moved(&CONTRACT, path) {
        let location = HeaderValue::from_str(&target).ok()?;
        let moved = Representation::text("text/plain; charset=utf-8", target.into()).with(LOCATION, location);
        return Some(Response { status: StatusCode::PERMANENT_REDIRECT, ..answer(&moved)? });
    }
    if !prefers_html(&request.headers) {
        return None;
    }
    let page = answer(&with_policy(docs::not_found(path)))?;
    Some(Response { status: StatusCode::NOT_FOUND, problem: Some(Code::NotFound), ..page })
}

/// A page of the documentation, with its security headers.
fn with_policy(page: docs::DocsPage) -> Representation {
    Representation::text(page.content_type, page.body)
        .with(CONTENT_SECURITY_POLICY, HeaderValue::from_static(docs::CONTENT_SECURITY_POLICY))
        .with(REFERRER_POLICY, HeaderValue::from_static("no-referrer"))
}
