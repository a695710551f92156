//! The explorer's page and what it loads.

use std::sync::Arc;

use http::HeaderValue;
use http::header::{CONTENT_SECURITY_POLICY, REFERRER_POLICY};

use super::answers::{AnswerCache, CachedAnswer};
use super::etag::ETag;
use super::problem::{Code, Problem};
use super::representation::Representation;
use crate::explorer::{self, Demo};

/// The answer at a path of the explorer's. Files are revalidated by their `ETag`; what a demo tells must not be stored.
pub(super) fn page(
    path: &str,
    pattern: &'static str,
    demo: Option<&Demo>,
    answers: &AnswerCache,
) -> Result<Arc<CachedAnswer>, Problem> {
    if let Some(demo) = demo.filter(|_| path == explorer::DEMO_PATH) {
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
