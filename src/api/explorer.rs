//! The explorer's page and what it loads.

use std::sync::Arc;

use http::header::{CONTENT_SECURITY_POLICY, REFERRER_POLICY};
use http::{HeaderValue, StatusCode};

use super::answers::{AnswerCache, CachedAnswer};
use super::etag::ETag;
use super::own_host::is_own;
use super::problem::{Code, Problem};
use super::representation::Representation;
use super::request::Request;
use crate::explorer::{self, Demo};

/// The answer at a path of the explorer's. Files are revalidated by their `ETag`; what a demo tells must not be stored.
///
/// # Errors
/// 404, and 421 where another site's page asks for a demo's keys by its own name.
pub(super) fn page(
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
                "A demo gives its keys only where `Host` is an address or `localhost`. Open the page by this machine's address.",
            ));
        }
        return Ok(Arc::new(CachedAnswer::of_all(pattern, Representation::json(demo.to_json()))));
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
    // It is compressed at once, so that it is weighed whole.
    representation.gzip();
    let page = Arc::new(CachedAnswer::of_all(pattern, representation));
    answers.insert(None, path, Arc::clone(&page));
    Ok(page)
}
