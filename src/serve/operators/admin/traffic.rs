//! The traffic of each route since the server's start, for the operators' page. The metrics library gives no access to
//! its histograms.

use std::time::Duration;

/// The upper bounds of the histograms of durations, in seconds.
pub const BOUNDS_S: [f64; 14] =
    [0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 1.0, 5.0, 30.0];

#[derive(Clone, Debug, Default)]
pub struct RouteTraffic {
    pub requests: u64,
    /// Responses with 4xx.
    pub refused: u64,
    /// Responses with 5xx.
    pub failed: u64,
    /// The number of durations up to each bound and above the one before, then of those above the last.
    buckets: [u64; BOUNDS_S.len() + 1],
}

impl RouteTraffic {
    pub fn add(&mut self, status: u16, duration: Duration) {
        self.requests += 1;
        self.refused += u64::from((400..500).contains(&status));
        self.failed += u64::from(status >= 500);
        self.buckets[BOUNDS_S.partition_point(|bound| *bound < duration.as_secs_f64())] += 1;
    }

    /// The quantile of the durations for a share from 0 to 1, in seconds, as the upper bound of a bucket. Infinite
    /// above the last bound.
    pub fn duration_s(&self, share: f64) -> f64 {
        let mut within = 0;
        for (bound, count) in BOUNDS_S.iter().zip(&self.buckets) {
            within += count;
            #[allow(clippy::cast_precision_loss, reason = "counts of requests are far below 2^53")]
            if within as f64 >= share * self.requests as f64 {
                return *bound;
            }
        }
        f64::INFINITY
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn responses_are_counted_by_status_and_duration() {
        let mut traffic = RouteTraffic::default();
        let fast = [200, 200, 304, 429, 404].map(|status| (status, 800));
        let slow = [200, 200, 206, 500].map(|status| (status, 250_000));
        for (status, micros) in fast.into_iter().chain(slow).chain([(503, 40_000_000)]) {
            traffic.add(status, Duration::from_micros(micros));
        }
        assert_eq!((traffic.requests, traffic.refused, traffic.failed), (10, 2, 2));
        let cases = [(0.1, 0.001), (0.5, 0.001), (0.51, 0.25), (0.9, 0.25), (0.99, f64::INFINITY)];
        for (share, bound) in cases {
            assert_eq!(traffic.duration_s(share).to_bits(), f64::to_bits(bound), "{share}");
        }
    }
}
