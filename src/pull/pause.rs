//! How long to wait before trying again.

use std::time::Duration;

use super::error::PullError;

/// The first pause after a failure; each further one is twice as long.
const FIRST_PAUSE: Duration = Duration::from_millis(500);

/// The longest pause between two tries, also where the service asks for a longer one: the copy's lock is held meanwhile.
const LONGEST_PAUSE: Duration = Duration::from_secs(300);

/// How long to wait after so many failures in a row: twice as long each time, with a random part so that many callers do not
/// come back together, and never less than the service asks for within the longest pause.
pub fn pause_after(failures: u32, error: &PullError) -> Duration {
    let doubled = FIRST_PAUSE.saturating_mul(1 << failures.saturating_sub(1).min(16)).min(LONGEST_PAUSE);
    let jittered = doubled.mul_f64(0.5 + random_part() / 2.0);
    match error {
        PullError::Failed { retry_after: Some(asked), .. } => {
            (*asked).min(LONGEST_PAUSE) + FIRST_PAUSE.mul_f64(random_part())
        }
        _ => jittered,
    }
}

/// A note for a pause that is shorter than the service asks for; otherwise empty.
pub fn reason(error: &PullError) -> String {
    match error {
        PullError::Failed { retry_after: Some(asked), .. } if *asked > LONGEST_PAUSE => {
            let (asked, longest) = (asked.as_secs(), LONGEST_PAUSE.as_secs());
            format!(" (the service asks for {asked} s; a pause is {longest} s at most)")
        }
        _ => String::new(),
    }
}

/// A random number from 0 to 1.
fn random_part() -> f64 {
    // Without randomness callers wait equally long, which does no harm.
    f64::from(getrandom::u32().unwrap_or_default()) / f64::from(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_grow_to_a_bound_and_heed_the_service() {
        let failed = PullError::failed("x");
        for (failures, least_ms, most_ms) in [(1, 250, 500), (2, 500, 1000), (5, 4000, 8000), (40, 150_000, 300_000)] {
            let pause = pause_after(failures, &failed).as_millis();
            assert!((least_ms..=most_ms).contains(&pause), "{failures}: {pause} ms");
        }
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
