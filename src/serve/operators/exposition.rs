//! The two text formats of a scrape, and content negotiation.
//!
//! The metrics library writes OpenMetrics 1.0. Older tools, and `promtool check metrics`, read the Prometheus text
//! format 0.0.4. Both have the same sample lines, but different comments. So the second is derived from the first.

use http::HeaderMap;
use http::header::ACCEPT;

pub const OPEN_METRICS: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";
pub const PLAIN: &str = "text/plain; version=0.0.4; charset=utf-8";

/// Whether `Accept` names OpenMetrics. Prometheus does; people and older tools get the other format.
pub fn accepts_open_metrics(headers: &HeaderMap) -> bool {
    let values = headers.get_all(ACCEPT).into_iter().filter_map(|value| value.to_str().ok());
    values.into_iter().any(|value| value.to_ascii_lowercase().contains("application/openmetrics-text"))
}

/// Converts an OpenMetrics text without exemplars to the Prometheus text format.
///
/// - The names of families have the suffix of their samples: `_total` for counters, `_info` for infos.
/// - The type `info` becomes `gauge`, and `unknown` becomes `untyped`.
/// - `# UNIT` and `# EOF` are omitted.
pub fn plain(open_metrics: &str) -> String {
    let mut text = String::with_capacity(open_metrics.len());
    // The name of a family depends on its type, which follows its help.
    let mut help = None;
    for line in open_metrics.lines() {
        let comment = line.strip_prefix("# ").map(|comment| comment.splitn(3, ' ').collect::<Vec<_>>());
        match comment.as_deref() {
            Some(["HELP", name, words]) => help = Some((name.to_owned(), words.to_owned())),
            Some(["TYPE", name, kind]) => {
                let (ending, kind) = match *kind {
                    "counter" => ("_total", "counter"),
                    "info" => ("_info", "gauge"),
                    "unknown" => ("", "untyped"),
                    kind => ("", kind),
                };
                if let Some((_, words)) = help.take().filter(|(helped, _)| helped == name) {
                    text.extend(["# HELP ", name, ending, " ", words, "\n"]);
                }
                text.extend(["# TYPE ", name, ending, " ", kind, "\n"]);
            }
            Some(_) => {}
            None => text.extend([line, "\n"]),
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;

    use super::*;

    #[test]
    fn requests_that_name_open_metrics_get_it() {
        let prometheus =
            "application/openmetrics-text;version=1.0.0;escaping=allow-utf-8;q=0.6,text/plain;version=0.0.4;q=0.3";
        let cases: [(&[&str], bool); 6] = [
            (&[], false),
            (&["*/*"], false),
            (&["text/plain;version=0.0.4"], false),
            (&[prometheus], true),
            (&["Application/OpenMetrics-Text; Version=\"1.0.0\""], true),
            (&["text/plain; q=0.5", "application/openmetrics-text; q=0.7"], true),
        ];
        for (values, expected) in cases {
            let mut headers = HeaderMap::new();
            for value in values {
                headers.append(ACCEPT, HeaderValue::from_static(value));
            }
            assert_eq!(accepts_open_metrics(&headers), expected, "{values:?}");
        }
    }

    #[test]
    fn families_are_named_as_their_samples() {
        let open_metrics = "# HELP a_build The program that serves.\n# TYPE a_build info\na_build_info{version=\"1\"} 1\n\
                            # HELP a_requests Requests: # HELP is no comment here.\n# TYPE a_requests counter\n\
                            a_requests_total{license=\"# TYPE x counter\"} 3\n\
                            # HELP a_lag_seconds Time.\n# TYPE a_lag_seconds gauge\n# UNIT a_lag_seconds seconds\na_lag_seconds 1.5\n\
                            # TYPE a_took_seconds histogram\na_took_seconds_bucket{le=\"+Inf\"} 2\n\
                            # HELP a_some Some.\n# TYPE a_some unknown\na_some 1\n# EOF\n";
        let expected = "# HELP a_build_info The program that serves.\n# TYPE a_build_info gauge\na_build_info{version=\"1\"} 1\n\
                        # HELP a_requests_total Requests: # HELP is no comment here.\n# TYPE a_requests_total counter\n\
                        a_requests_total{license=\"# TYPE x counter\"} 3\n\
                        # HELP a_lag_seconds Time.\n# TYPE a_lag_seconds gauge\na_lag_seconds 1.5\n\
                        # TYPE a_took_seconds histogram\na_took_seconds_bucket{le=\"+Inf\"} 2\n\
                        # HELP a_some Some.\n# TYPE a_some untyped\na_some 1\n";
        assert_eq!(plain(open_metrics), expected);
    }
}
