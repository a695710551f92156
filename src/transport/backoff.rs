//! Exponential backoff with jitter.

use std::time::Duration;

/// The bounds of a backoff.
#[derive(Clone, Copy, Debug)]
pub struct Backoff {
    /// The maximum after the first failure.
    pub first: Duration,
    /// The maximum after any failure.
    pub longest: Duration,
}

impl Backoff {
    /// The pause after a number of consecutive failures, 1 or more. It doubles each time, and is then multiplied by a
    /// random number from 0.5 to 1, so that clients do not retry all at once.
    pub fn pause(&self, failures: u32) -> Duration {
        let doubled = self.first.saturating_mul(1 << failures.saturating_sub(1).min(16)).min(self.longest);
        doubled.mul_f64(0.5 + random_part() / 2.0)
    }
}

/// A random number from 0 to 1.
pub fn random_part() -> f64 {
    // Without randomness there is no jitter, which is harmless.
    f64::from(getrandom::u32().unwrap_or_default()) / f64::from(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_double_up_to_the_longest() {
        let backoff = Backoff { first: Duration::from_millis(500), longest: Duration::from_secs(300) };
        let cases = [(0, 250, 500), (1, 250, 500), (2, 500, 1000), (5, 4000, 8000), (40, 150_000, 300_000)];
        for (failures, least_ms, most_ms) in cases {
            let pause = backoff.pause(failures).as_millis();
            assert!((least_ms..=most_ms).contains(&pause), "{failures}: {pause} ms");
        }
    }
}
