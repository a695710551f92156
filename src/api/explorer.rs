//! The explorer's page and its files.

use std::sync::Arc;

use flate2::Compression;
use http::header::{CONTENT_SECURITY_POLICY, REFERRER_POLICY};
use http::{HeaderValue, StatusCode};

use super::answers::{AnswerCache, CachedAnswer};
use super::etag::ETag;
use super::own_host::is_own;
use super::problem::{Code, Problem};
use super::representation::Representation;
use super::request::Request;
use crate::explorer::{self, Demo};

/// The answer for a path of the explorer. Files are revalidated by `ETag`; the data of a demo must not be stored.
/// Returns 404 for unknown paths, and 421 if another site's page may be requesting a demo's keys.
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
