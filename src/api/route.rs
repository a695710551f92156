//! Which endpoint a path leads to. Paths are split, then percent-decoded once, then matched exactly.

use crate::model::{Dataset, Id};

/// An endpoint.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Route {
    /// `/v1/status`
    Status,
    /// `/v1/{dataset}`
    List(Dataset),
    /// `/v1/{dataset}/changes`
    Changes(Dataset),
    /// `/v1/{dataset}/{id}`; `None` for an integer that is no id, so that no record can have it.
    Record(Dataset, Option<Id>),
    /// `/v1/exports/{dataset}`, whatever stands for the dataset.
    Export(String),
    /// `/v1/reference/therapy-areas`
    TherapyAreas,
    /// `/v1/reference/tags`
    Tags,
    /// `/v1/reference/organizations`
    Organizations,
    /// A page of the documentation, outside `/v1`.
    Docs,
}

impl Route {
    /// The pattern of exports.
    pub const EXPORT_PATTERN: &'static str = "/v1/exports/{dataset}";

    /// The route's pattern, for logs and metrics.
    pub const fn pattern(&self) -> &'static str {
        match self {
            Route::Status => "/v1/status",
            Route::List(Dataset::Conferences) => "/v1/conferences",
            Route::List(Dataset::Journals) => "/v1/journals",
            Route::Changes(Dataset::Conferences) => "/v1/conferences/changes",
            Route::Changes(Dataset::Journals) => "/v1/journals/changes",
            Route::Record(Dataset::Conferences, _) => "/v1/conferences/{id}",
            Route::Record(Dataset::Journals, _) => "/v1/journals/{id}",
            Route::Export(_) => Route::EXPORT_PATTERN,
            Route::TherapyAreas => "/v1/reference/therapy-areas",
            Route::Tags => "/v1/reference/tags",
            Route::Organizations => "/v1/reference/organizations",
            Route::Docs => "/docs",
        }
    }
}

/// Whether a path as sent lies under `/v1`, where every answer carries the rate headers. An escape after it counts too:
/// whoever wrote it meant the API.
pub fn is_under_v1(path: &str) -> bool {
    path.strip_prefix("/v1").is_some_and(|rest| rest.is_empty() || rest.starts_with(['/', '%']))
}

/// Finds the endpoint of a path as sent.
pub fn find_route(path: &str) -> Option<Route> {
    let mut segments = Vec::with_capacity(4);
    for segment in path.strip_prefix('/')?.split('/') {
        segments.push(super::params::percent_decode(segment, false)?);
        if segments.len() > 3 {
            return None;
        }
    }
    let segments: Vec<&str> = segments.iter().map(String::as_str).collect();
    match segments.as_slice() {
        ["v1", "status"] => Some(Route::Status),
        ["v1", "exports", dataset] if !dataset.is_empty() => Some(Route::Export((*dataset).to_owned())),
        ["v1", "reference", "therapy-areas"] => Some(Route::TherapyAreas),
        ["v1", "reference", "tags"] => Some(Route::Tags),
        ["v1", "reference", "organizations"] => Some(Route::Organizations),
        ["v1", dataset] => dataset.parse().ok().map(Route::List),
        ["v1", dataset, "changes"] => dataset.parse().ok().map(Route::Changes),
        ["v1", dataset, id] => {
            let dataset = dataset.parse().ok()?;
            let digits = id.strip_prefix('-').unwrap_or(id);
            let integer = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
            integer.then(|| Route::Record(dataset, id.parse().ok()))
        }
        ["openapi.json"] | ["docs"] | ["docs", "errors"] | ["docs", "errors", _] => Some(Route::Docs),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use Dataset::{Conferences, Journals};

    #[test]
    fn paths_are_matched_exactly() {
        let id = |number: u64| Id::try_from(number).ok();
        let cases = [
            ("/v1/status", Some(Route::Status)),
            ("/v1/conferences", Some(Route::List(Conferences))),
            ("/v1/journals/changes", Some(Route::Changes(Journals))),
            ("/v1/journals/17", Some(Route::Record(Journals, id(17)))),
            ("/v1/journals/%31%37", Some(Route::Record(Journals, id(17)))),
            ("/v1/%6Aournals", Some(Route::List(Journals))),
            ("/v1/journals/-17", Some(Route::Record(Journals, None))),
            ("/v1/journals/0", Some(Route::Record(Journals, None))),
            ("/v1/journals/9007199254740991", Some(Route::Record(Journals, id(9_007_199_254_740_991)))),
            ("/v1/journals/9007199254740992", Some(Route::Record(Journals, None))),
            ("/v1/journals/99999999999999999999999", Some(Route::Record(Journals, None))),
            ("/v1/journals/x", None),
            ("/v1/journals/1.0", None),
            ("/v1/journals/-", None),
            ("/v1/journals/+1", None),
            ("/v1/journals/", None),
            ("/v1//journals", None),
            ("/v1/journals/changes/", None),
            ("/v1/journals%2Fchanges", None),
            ("/v1/journals/%zz", None),
            ("/v1/journals/%2537", None),
            ("/v1/Journals", None),
            ("/v1/exports/foo", Some(Route::Export("foo".to_owned()))),
            ("/v1/exports", None),
            ("/v1/exports/", None),
            ("/v1/reference/tags", Some(Route::Tags)),
            ("/v1/reference/x", None),
            ("/v1", None),
            ("/", None),
            ("*", None),
            ("", None),
            ("/docs/errors/not_found", Some(Route::Docs)),
        ];
        for (path, expected) in cases {
            assert_eq!(find_route(path), expected, "{path}");
        }
    }
}
