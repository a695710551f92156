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
