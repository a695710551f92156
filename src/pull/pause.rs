//! The pauses before retries.

use std::time::Duration;

use super::error::PullError;
use crate::transport::backoff::{Backoff, random_part};

/// The longest pause, even if `Retry-After` is longer: the pull holds the copy's lock meanwhile.
const LONGEST_PAUSE: Duration = Duration::from_secs(300);

const BACKOFF: Backoff = Backoff { first: Duration::from_millis(500), longest: LONGEST_PAUSE };

/// The pause after a number of consecutive failures: `Retry-After`, or exponential backoff.
pub fn pause_after(failures: u32, error: &PullError) -> Duration {
    match error {
        PullError::Failed { retry_after: Some(asked), .. } => {
            (*asked).min(LONGEST_PAUSE) + BACKOFF.first.mul_f64(random_part())
        }
        _ => BACKOFF.pause(failures),
    }
}

/// A note for a pause that is shorter than `Retry-After`; otherwise empty.
pub fn reason(error: &PullError) -> String {
    match error {
        PullError::Failed { retry_after: Some(asked), .. } if *asked > LONGEST_PAUSE => {
            let (asked, longest) = (asked.as_secs(), LONGEST_PAUSE.as_secs());
            format!(" (the service asks for {asked} s; a pause is {longest} s at most)")
        }
        _ => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_without_a_request_of_the_service_double() {
        let errors = [
            PullError::failed("no answer"),
            PullError::Unwritable("no space".to_owned()),
            // Only errors of the service have a time.
            PullError::Unusable("damaged".to_owned()),
        ];
        // (consecutive failures, the shortest pause, the longest one, in milliseconds)
        let cases = [
            (1, 250, 500),
            (2, 500, 1000),
            (3, 1000, 2000),
            (4, 2000, 4000),
            (8, 32_000, 64_000),
            (10, 128_000, 256_000),
        ];
        for (failures, least_ms, most_ms) in
            cases.into_iter().chain([(11, 150_000, 300_000), (u32::MAX, 150_000, 300_000)])
        {
            for error in &errors {
                let pause = pause_after(failures, error).as_millis();
                assert!((least_ms..=most_ms).contains(&pause), "{failures}: {pause} ms");
                assert_eq!(reason(error), "");
            }
        }
        let pauses: std::collections::BTreeSet<_> = (0..20).map(|_| pause_after(3, &errors[0])).collect();
        assert!(pauses.len() > 10, "many callers do not retry together");
    }

    #[test]
    fn pauses_heed_the_service_within_a_bound() {
        let cases = [
            (0, 0, ""),
            (7, 7000, ""),
            (300, 300_000, ""),
            (301, 300_000, " (the service asks for 301 s; a pause is 300 s at most)"),
            (u64::MAX, 300_000, " (the service asks for 18446744073709551615 s; a pause is 300 s at most)"),
        ];
        for (asked_s, least_ms, told) in cases {
            let asked = PullError::Failed { message: String::new(), retry_after: Some(Duration::from_secs(asked_s)) };
            let pause = pause_after(9, &asked).as_millis();
            assert!((least_ms..=least_ms + 500).contains(&pause), "{asked_s}: {pause} ms");
            assert_eq!(reason(&asked), told);
        }
    }
}
