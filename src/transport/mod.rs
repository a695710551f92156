//! Outgoing HTTP requests, pauses between attempts, and the TLS settings of all connections.
//!
//! - [`http`]: the client of `medfeed pull` and `medfeed health`.
//! - [`tls`]: the settings of servers and clients, and the certificates that a client accepts.

use std::error::Error;
use std::io;
use std::time::Duration;

use crate::disk::describe;

pub mod http;
pub mod tls;

/// The innermost cause of an error as text. The outer ones only describe the operation.
pub fn root_cause(error: &(dyn Error + 'static)) -> String {
    let mut cause = error;
    while let Some(next) = cause_of(cause) {
        cause = next;
    }
    cause
        .downcast_ref::<io::Error>()
        .map_or_else(|| cause.to_string(), describe)
}

/// The cause of an error. For I/O errors it is the inner error, which `source` would skip.
pub fn cause_of<'a>(error: &'a (dyn Error + 'static)) -> Option<&'a (dyn Error + 'static)> {
    let wrapped = error
        .downcast_ref::<io::Error>()
        .and_then(|error| error.get_ref());
    wrapped.map_or_else(|| error.source(), |wrapped| Some(wrapped))
}

/// The pauses between retries.
#[derive(Clone, Copy)]
pub struct Backoff {
    /// The pause after the first failure.
    pub first: Duration,
    /// The longest pause.
    pub longest: Duration,
}

impl Backoff {
    /// The pause after a number of consecutive failures, at least 1. It doubles each time. Then a random part of up to
    /// half is subtracted, so that many callers do not retry together.
    pub fn pause(&self, failures: u32) -> Duration {
        let doubled = self
            .first
            .saturating_mul(1 << failures.saturating_sub(1).min(16))
            .min(self.longest);
        doubled.mul_f64(0.5 + random_part() / 2.0)
    }
}

/// A random number from 0 to 1.
pub fn random_part() -> f64 {
    // If there is no randomness, all callers wait equally long.
    f64::from(getrandom::u32().unwrap_or_default()) / f64::from(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_double_up_to_the_longest() {
        let backoff = Backoff {
            first: Duration::from_millis(500),
            longest: Duration::from_secs(300),
        };
        let cases = [
            (0, 250, 500),
            (1, 250, 500),
            (2, 500, 1000),
            (5, 4000, 8000),
            (40, 150_000, 300_000),
        ];
        for (failures, least_ms, most_ms) in cases {
            let pause = backoff.pause(failures).as_millis();
            assert!(
                (least_ms..=most_ms).contains(&pause),
                "{failures}: {pause} ms"
            );
        }
    }
}
