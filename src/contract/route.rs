//! Finding the endpoint of a path. Paths are split, then percent-decoded once, then matched exactly.

use super::endpoints::{DOC_PATTERNS, DOCS, EXPLORER, EXPLORER_PATTERNS, placeholder};
use super::parameters::{DATASET, ID};
use super::query::percent_decode;
use super::{Contract, Endpoint};

/// An endpoint, and the value of its path parameter.
pub struct Route {
    /// The endpoint.
    pub endpoint: &'static Endpoint,
    /// The decoded value of `{name}` in the pattern; empty if it has none.
    pub value: String,
    /// The decoded path. Outside `/v1` it names one file.
    pub path: String,
}

impl Contract {
    /// Finds the endpoint of an undecoded path.
    pub fn route(&self, path: &str) -> Option<Route> {
        let found = self
            .endpoints
            .iter()
            .find_map(|endpoint| Some((endpoint, match_pattern(endpoint.pattern, path)?)));
        let (endpoint, value) = found
            .or_else(|| match_any(&DOCS, &DOC_PATTERNS, path))
            .or_else(|| match_any(&EXPLORER, &EXPLORER_PATTERNS, path))?;
        Some(Route {
            endpoint,
            value,
            path: percent_decode(path, false)?.into_owned(),
        })
    }
}

/// Matches a path with the patterns of an endpoint outside `/v1`.
fn match_any(
    endpoint: &'static Endpoint,
    patterns: &[&str],
    path: &str,
) -> Option<(&'static Endpoint, String)> {
    patterns
        .iter()
        .find_map(|pattern| Some((endpoint, match_pattern(pattern, path)?)))
}

/// Matches a path with a pattern; returns the value of `{name}`.
fn match_pattern(pattern: &str, path: &str) -> Option<String> {
    let mut value = String::new();
    let mut segments = path.split('/');
    for expected in pattern.split('/') {
        let segment = percent_decode(segments.next()?, false)?;
        match placeholder(expected) {
            Some(name) if can_be_value(name, &segment) => value = segment.into_owned(),
            None if segment == expected => {}
            _ => return None,
        }
    }
    segments.next().is_none().then_some(value)
}

/// Whether a segment can be the value of `{name}`. If not, the path has no endpoint. Other invalid values are rejected
/// by the endpoint.
fn can_be_value(name: &str, segment: &str) -> bool {
    if name == ID.name {
        let digits = segment.strip_prefix('-').unwrap_or(segment);
        !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit())
    } else if name == DATASET.name {
        !segment.is_empty()
    } else {
        !segment.contains('/')
    }
}

/// Whether an undecoded path is under `/v1`, where every response has the rate headers. A slash after `v1` may be
/// escaped.
pub fn is_under_v1(path: &str) -> bool {
    let first = path
        .strip_prefix('/')
        .and_then(|rest| rest.split('/').next())
        .unwrap_or_default();
    percent_decode(first, false).is_some_and(|first| first == "v1" || first.starts_with("v1/"))
}

#[cfg(test)]
mod tests {
    use crate::contract::CONTRACT;

    #[test]
    fn paths_are_matched_exactly() {
        let cases = outcomes![
            // path, pattern, value
            "/v1/status" => ("/v1/status", "");
            "/v1/conferences" => ("/v1/conferences", "");
            "/v1/journals/changes" => ("/v1/journals/changes", "");
            "/v1/journals/17" "/v1/journals/%31%37" => ("/v1/journals/{id}", "17");
            "/v1/%6Aournals" => ("/v1/journals", "");
            "/v1/journals/-17" => ("/v1/journals/{id}", "-17");
            "/v1/journals/0" => ("/v1/journals/{id}", "0");
            "/v1/journals/99999999999999999999999" => ("/v1/journals/{id}", "99999999999999999999999");
            "/v1/journals/x" "/v1/journals/1.0" "/v1/journals/-" "/v1/journals/+1" "/v1/journals/"
            "/v1//journals" "/v1/journals/changes/" "/v1/journals%2Fchanges" "/v1/journals/%zz"
            "/v1/journals/%2537" "/v1/Journals" "/V1/journals" "/v2/journals" "/journals"
            "//v1/journals" "/v1/./journals" "/v1/x/../journals" "/v1%2Fjournals" "/v1/journals/1/2"
            "/v1/journals/1%2F" "/v1/journals/%C2%B9" "/v1/journals;x=1" "/v1/journals%00" "/v1/%ff"
            "/v1/" "/v1/exports" "/v1/exports/" "/v1/reference/x" "/v1" "//"
            "/explorer/model/copy.js" "/explorer" "*" "" "v1/status" "/docs/" => ("", "");
            "/v1/exports/foo" => ("/v1/exports/{dataset}", "foo");
            "/v1/exports/a%2Fb" => ("/v1/exports/{dataset}", "a/b");
            "/v1/reference/tags" => ("/v1/reference/tags", "");
            "/" "/favicon.ico" => ("/", "");
            "/explorer/app.js" => ("/", "app.js");
            "/docs/errors/not_found" => ("/docs", "not_found");
            "/docs/errors/" => ("/docs", "");
        ];
        for (path, (pattern, value)) in cases {
            let route = CONTRACT.route(path);
            let found = route.as_ref().map_or(("", ""), |route| {
                (route.endpoint.pattern, route.value.as_str())
            });
            assert_eq!(found, (pattern, value), "{path}");
        }
    }

    #[test]
    fn every_pattern_leads_to_its_endpoint() {
        for endpoint in CONTRACT.endpoints {
            let path = endpoint
                .pattern
                .replace("{id}", "1")
                .replace("{dataset}", "journals");
            let found = CONTRACT.route(&path).map(|route| route.endpoint);
            assert_eq!(found, Some(endpoint), "{path}");
        }
    }

    #[test]
    fn only_the_first_segment_makes_a_path_one_of_v1() {
        let cases = outcomes![
            "/v1" "/v1/" "/v1/status" "/%76%31/status" "/v1%2Fstatus" "/v1%2f" "/v1/%zz" => true;
            "/v10" "/v10/status" "/v1x/status" "/v1.0/status" "/v1;x/status" "/v1%20/status" "/v"
            "/V1/status" "/v2/status" "/docs/v1" "//v1/status" "v1/status" "/%zz/v1" "/%2Fv1/status"
            "*" "" => false;
        ];
        for (path, expected) in cases {
            assert_eq!(super::is_under_v1(path), expected, "{path}");
        }
    }
}
