//! The two text formats of a scrape, and content negotiation.
//!
//! The metrics library writes OpenMetrics 1.0. Older tools, and `promtool check metrics`, read the Prometheus text
//! format 0.0.4. Both have the same sample lines, but different comments. So the second is derived from the first.

use http::HeaderMap;
use http::header::ACCEPT;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Exposition {
    OpenMetrics,
    Plain,
}

/// A media range of `Accept` (RFC 9110, section 12.5.1).
struct MediaRange<'a> {
    kind: &'a str,
    version: Option<&'a str>,
    weight: f32,
}

impl<'a> MediaRange<'a> {
    fn parse(text: &'a str) -> MediaRange<'a> {
        let mut parts = text.split(';').map(str::trim);
        let mut range = MediaRange { kind: parts.next().unwrap_or_default(), version: None, weight: 1.0 };
        for (name, value) in parts.filter_map(|part| part.split_once('=')) {
            if name.trim().eq_ignore_ascii_case("q") {
                let weight = value.trim().parse().ok().filter(|weight| (0.0..=1.0).contains(weight));
                range.weight = weight.unwrap_or(0.0);
            } else if name.trim().eq_ignore_ascii_case("version") {
                range.version = Some(value.trim().trim_matches('"'));
            }
        }
        range
    }

    /// Whether it names a media type, in one of these versions or without a version.
    fn names(&self, kind: &str, versions: &[&str]) -> bool {
        self.kind.eq_ignore_ascii_case(kind) && self.version.is_none_or(|version| versions.contains(&version))
    }
}

impl Exposition {
    /// The format that a request prefers. OpenMetrics if `Accept` names it and gives no other format a higher weight.
    /// Else the older format, which every tool reads.
    pub fn accepted(headers: &HeaderMap) -> Exposition {
        let values = headers.get_all(ACCEPT).into_iter().filter_map(|value| value.to_str().ok());
        let ranges: Vec<MediaRange<'_>> = values.flat_map(|value| value.split(',')).map(MediaRange::parse).collect();
        let weight_of = |is_meant: &dyn Fn(&MediaRange<'_>) -> bool| {
            ranges.iter().filter(|range| is_meant(range)).map(|range| range.weight).reduce(f32::max)
        };
        let open = weight_of(&|range| range.names("application/openmetrics-text", &["1.0.0", "0.0.1"]));
        let plain = weight_of(&|range| range.names("text/plain", &["0.0.4"]))
            .or_else(|| weight_of(&|range| range.kind.eq_ignore_ascii_case("text/*")))
            .or_else(|| weight_of(&|range| range.kind == "*/*"));
        match open {
            Some(open) if open > 0.0 && open >= plain.unwrap_or(0.0) => Exposition::OpenMetrics,
            _ => Exposition::Plain,
        }
    }

    pub fn content_type(self) -> &'static str {
        match self {
            Exposition::OpenMetrics => "application/openmetrics-text; version=1.0.0; charset=utf-8",
            Exposition::Plain => "text/plain; version=0.0.4; charset=utf-8",
        }
    }

    /// Converts an OpenMetrics text to this format.
    pub fn of(self, open_metrics: String) -> String {
        match self {
            Exposition::OpenMetrics => open_metrics,
            Exposition::Plain => plain(&open_metrics),
        }
    }
}

/// Converts an OpenMetrics text without exemplars to the Prometheus text format.
///
/// - The names of families have the suffix of their samples: `_total` for counters, `_info` for infos.
/// - The type `info` becomes `gauge`, and `unknown` becomes `untyped`.
/// - `# UNIT` and `# EOF` are omitted.
fn plain(open_metrics: &str) -> String {
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
    fn a_request_gets_the_format_that_it_prefers() {
        use Exposition::{OpenMetrics, Plain};
        let prometheus = "application/openmetrics-text;version=1.0.0;escaping=allow-utf-8;q=0.6,\
                          application/openmetrics-text;version=0.0.1;q=0.5,text/plain;version=1.0.0;escaping=allow-utf-8;q=0.4,\
                          text/plain;version=0.0.4;q=0.3,*/*;q=0.2";
        let cases: [(&[&str], Exposition); 25] = [
            (&[], Plain),
            (&[""], Plain),
            (&["*/*"], Plain),
            (&["application/*"], Plain),
            (&["text/html,application/xhtml+xml,*/*;q=0.8"], Plain),
            (&["text/plain;version=0.0.4"], Plain),
            (&["text/plain; version=0.0.4; charset=utf-8"], Plain),
            (&["text/plain;version=1.0.0"], Plain),
            (&["application/json"], Plain),
            (&["application/openmetrics-text"], OpenMetrics),
            (&["application/openmetrics-text; version=1.0.0"], OpenMetrics),
            (&["Application/OpenMetrics-Text; Version=\"1.0.0\"; charset=utf-8"], OpenMetrics),
            (&["application/openmetrics-text; version=0.0.1"], OpenMetrics),
            (&["application/openmetrics-text; version=2.0.0"], Plain),
            (&["application/openmetrics-text; version=2.0.0, application/openmetrics-text;q=0.1"], OpenMetrics),
            (&[prometheus], OpenMetrics),
            (&["application/openmetrics-text; q=0.5, text/plain; q=0.4"], OpenMetrics),
            (&["application/openmetrics-text; q=0.5, text/plain; q=0.6"], Plain),
            (&["application/openmetrics-text; q=0.5, */*; q=0.6"], Plain),
            (&["application/openmetrics-text; q=0.5, text/*; q=0.1, */*"], OpenMetrics),
            (&["application/openmetrics-text, text/plain"], OpenMetrics),
            (&["application/openmetrics-text; q=0"], Plain),
            (&["application/openmetrics-text; q=x, text/plain; q=0.1"], Plain),
            (&["application/openmetrics-text; q=NaN"], Plain),
            (&["text/plain; q=0.5", "application/openmetrics-text; q=0.7"], OpenMetrics),
        ];
        for (values, expected) in cases {
            let mut headers = HeaderMap::new();
            for value in values {
                headers.append(ACCEPT, HeaderValue::from_static(value));
            }
            assert_eq!(Exposition::accepted(&headers), expected, "{values:?}");
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
        assert_eq!(Exposition::Plain.of(open_metrics.to_owned()), expected);
        assert_eq!(Exposition::OpenMetrics.of(open_metrics.to_owned()), open_metrics);
    }
}
