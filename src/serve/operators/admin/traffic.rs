//! The server's traffic since its start. It is parsed from the text for Prometheus, since the metrics library gives no
//! other access to its histograms.

use std::collections::BTreeMap;

#[derive(Clone, Debug, Default, PartialEq)]
pub struct RouteTraffic {
    pub requests: u64,
    /// Responses with 4xx.
    pub refused: u64,
    /// Responses with 5xx.
    pub failed: u64,
    /// The histogram of durations: upper bounds in seconds, ascending, and cumulative counts.
    buckets: Vec<(f64, u64)>,
}

impl RouteTraffic {
    /// The quantile of the durations for a share from 0 to 1, in seconds, as the upper bound of a bucket. Infinite
    /// above the last bound; `None` without responses.
    pub fn duration_s(&self, share: f64) -> Option<f64> {
        let (_, all) = self.buckets.last().filter(|(_, all)| *all > 0)?;
        #[allow(clippy::cast_precision_loss, reason = "counts of requests are far below 2^53")]
        let within = |count: u64| count as f64 >= share * *all as f64;
        self.buckets.iter().find(|(_, count)| within(*count)).map(|(bound, _)| *bound)
    }
}

struct Sample<'t> {
    name: &'t str,
    labels: &'t str,
    value: &'t str,
}

impl<'t> Sample<'t> {
    fn of(line: &'t str) -> Option<Sample<'t>> {
        let (series, value) = line.rsplit_once(' ').filter(|_| !line.starts_with('#'))?;
        let (name, labels) = series.split_once('{').unwrap_or((series, ""));
        Some(Sample { name, labels, value })
    }

    /// The value of a label that contains no escapes. Quotes within values are escaped, so `NAME="` cannot be part of a
    /// value.
    fn label(&self, name: &str) -> Option<&'t str> {
        let start = format!("{name}=\"");
        let found = self.labels.match_indices(&start).find(|(at, _)| *at == 0 || self.labels[..*at].ends_with(','));
        self.labels[found?.0 + start.len()..].split('"').next()
    }

    fn count(&self) -> u64 {
        self.value.parse().unwrap_or_default()
    }
}

pub fn by_route(scrape: &str) -> BTreeMap<&str, RouteTraffic> {
    let mut routes = BTreeMap::<&str, RouteTraffic>::new();
    for sample in scrape.lines().filter_map(Sample::of) {
        let Some(route) = sample.label("route") else { continue };
        match sample.name {
            "medfeed_requests_total" => {
                let traffic = routes.entry(route).or_default();
                traffic.requests += sample.count();
                match sample.label("status").and_then(|status| status.bytes().next()) {
                    Some(b'4') => traffic.refused += sample.count(),
                    Some(b'5') => traffic.failed += sample.count(),
                    _ => {}
                }
            }
            "medfeed_request_duration_seconds_bucket" => {
                let bound = sample.label("le").and_then(|bound| bound.parse().ok()).unwrap_or(f64::INFINITY);
                routes.entry(route).or_default().buckets.push((bound, sample.count()));
            }
            _ => {}
        }
    }
    routes
}

/// The sum of a metric over all labels.
pub fn total(scrape: &str, name: &str) -> u64 {
    scrape.lines().filter_map(Sample::of).filter(|sample| sample.name == name).map(|sample| sample.count()).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    const SCRAPE: &str = r#"# HELP medfeed_requests Answered requests.
# TYPE medfeed_requests counter
medfeed_requests_total{route="/v1/conferences",status="200",license="a,route=\"b c\""} 7
medfeed_requests_total{route="/v1/conferences",status="429",license="x"} 2
medfeed_requests_total{route="/v1/conferences",status="500",license=""} 1
medfeed_requests_total{route="/v1/status",status="200",license=""} 3
medfeed_request_duration_seconds_count{route="/v1/conferences"} 10
medfeed_request_duration_seconds_bucket{le="0.001",route="/v1/conferences"} 5
medfeed_request_duration_seconds_bucket{le="0.25",route="/v1/conferences"} 9
medfeed_request_duration_seconds_bucket{le="+Inf",route="/v1/conferences"} 10
medfeed_connections 4
# EOF
"#;

    #[test]
    fn a_scrape_is_read() {
        let routes = by_route(SCRAPE);
        assert_eq!(routes.keys().copied().collect::<Vec<_>>(), ["/v1/conferences", "/v1/status"]);
        let traffic = &routes["/v1/conferences"];
        assert_eq!((traffic.requests, traffic.refused, traffic.failed), (10, 2, 1));
        let cases = [(0.1, 0.001), (0.5, 0.001), (0.51, 0.25), (0.9, 0.25), (0.99, f64::INFINITY)];
        for (share, bound) in cases {
            assert_eq!(traffic.duration_s(share), Some(bound), "{share}");
        }
        assert_eq!(routes["/v1/status"].duration_s(0.5), None);
        assert_eq!((total(SCRAPE, "medfeed_requests_total"), total(SCRAPE, "medfeed_connections")), (13, 4));
    }
}
