//! Brings all datasets up to date, once or for ever, and retries after failures.

use std::collections::BTreeSet;
use std::thread::sleep;
use std::time::{Duration, Instant};

use super::catch_up::{Done, catch_up};
use super::client::PullClient;
use super::error::PullError;
use super::pause::{pause_after, reason};
use super::target::{Events, PullTarget};
use super::verify::{Verdict, verify};
use crate::model::Dataset;
use crate::model::time::now;

/// The most attempts of a single round that make no progress.
const MAX_ATTEMPTS: u32 = 5;

/// The time between two comparisons of a followed copy with the service, in seconds.
const VERIFY_INTERVAL_S: i64 = 24 * 3600;

/// Whether a copy that was compared at `verified_at` has to be compared again, both in seconds since 1970. The clock may
/// have been ahead at the last comparison.
fn is_verification_due(verified_at: i64, now: i64) -> bool {
    !(0..VERIFY_INTERVAL_S).contains(&now.saturating_sub(verified_at))
}

/// The work of a pull.
#[derive(Clone, Debug)]
pub struct Plan {
    /// The datasets.
    pub datasets: Vec<Dataset>,
    /// Whether the user named the datasets. If so, each must be in the license.
    pub are_named: bool,
    /// Whether to compare the copy with the service's content.
    pub verify: bool,
}

/// The result of a round for one dataset.
#[derive(Debug)]
pub struct Report {
    /// The dataset.
    pub dataset: Dataset,
    /// The applied changes.
    pub done: Done,
    /// The result of the comparison, if there was one.
    pub verdict: Option<Verdict>,
    /// The number of records in the copy.
    pub records: u64,
}

/// A pull from a service into a copy.
pub struct Pull<'a> {
    /// The service.
    pub server: &'a PullClient,
    /// The copy.
    pub copy: &'a mut dyn PullTarget,
    /// Receives changes, progress and notes.
    pub events: &'a dyn Events,
}

impl Pull<'_> {
    /// Brings all datasets up to date, with a few retries. Skips a dataset that the license does not have. That is an
    /// error if the user named the dataset or the copy holds it; the error comes after all other datasets are done.
    pub fn once(&mut self, plan: &Plan, report: &mut dyn FnMut(Report)) -> Result<(), PullError> {
        let mut missing = Vec::new();
        for dataset in &plan.datasets {
            match self.pull(*dataset, plan.verify, 0, Some(MAX_ATTEMPTS)) {
                Ok(done) => report(done),
                Err(PullError::NotLicensed(_)) => missing.push(*dataset),
                Err(error) => return Err(error),
            }
        }
        for dataset in &missing {
            let held = self.copy.position(*dataset)?;
            if let Some(held) = held {
                return Err(PullError::Refused(format!(
                    "the license of the key does not have the dataset `{dataset}` any more; the copy keeps its {} records; ask the \
                     operator, or name the other datasets with --dataset",
                    held.records
                )));
            }
            if plan.are_named || missing.len() == plan.datasets.len() {
                return Err(PullError::NotLicensed(*dataset));
            }
            self.events.note(&format!("{dataset}: not in the license, skipped"));
        }
        Ok(())
    }

    /// Brings all datasets up to date at the interval `every`, and compares the copy with the service once a day. Uses
    /// long polling if the service supports it. A dataset that the license does not have is requested again in each
    /// round, because the license may get it back. Returns only errors that retries cannot solve.
    pub fn follow(
        &mut self,
        plan: &Plan,
        every: Duration,
        report: &mut dyn FnMut(Report),
    ) -> Result<std::convert::Infallible, PullError> {
        let (mut verifies, mut wait_s) = (plan.verify, 0);
        let mut skipped = BTreeSet::new();
        loop {
            self.copy.check_location()?;
            let (begun, mut has_news) = (Instant::now(), false);
            for dataset in &plan.datasets {
                let held = self.retry(None, &mut |pull, _| pull.copy.position(*dataset))?;
                let is_due = held.as_ref().is_some_and(|held| is_verification_due(held.verified_at, now().unix_s()));
                if is_due {
                    self.server.assume_wait();
                }
                match self.pull(*dataset, verifies || is_due, wait_s, None) {
                    Ok(done) => {
                        skipped.remove(dataset);
                        has_news |= done.done != Done::default();
                        report(done);
                    }
                    Err(PullError::NotLicensed(_)) if !plan.are_named || held.is_some() => {
                        if skipped.insert(*dataset) {
                            let kept = if held.is_some() { "; its records stay in the copy" } else { "" };
                            self.events.note(&format!("{dataset}: not in the license, skipped{kept}"));
                        }
                    }
                    Err(error) => return Err(error),
                }
            }
            let licensed = plan.datasets.len() - skipped.len();
            if licensed == 0 {
                return plan.datasets.first().map_or_else(
                    || Err(PullError::Refused("the license of the key has no dataset".to_owned())),
                    |dataset| Err(PullError::NotLicensed(*dataset)),
                );
            }
            // The datasets long-poll one after the other.
            (verifies, wait_s) = (false, every.as_secs() / licensed as u64);
            if !(has_news && wait_s > 0 && self.server.takes_wait()) {
                sleep(every.saturating_sub(begun.elapsed()));
            }
        }
    }

    fn pull(
        &mut self,
        dataset: Dataset,
        verifies: bool,
        wait_s: u64,
        attempts: Option<u32>,
    ) -> Result<Report, PullError> {
        self.retry(attempts, &mut |pull, total| {
            let verdict = if verifies {
                Some(verify(pull.server, pull.copy, dataset, pull.events, total)?)
            } else {
                catch_up(pull.server, pull.copy, dataset, wait_s, pull.events, total)?;
                None
            };
            let records = pull.copy.position(dataset)?.map_or(0, |position| position.records);
            Ok(Report { dataset, done: *total, verdict, records })
        })
    }

    /// Retries `work` after pauses. With `attempts`, gives up after that many consecutive failures without progress;
    /// otherwise retries while waiting may help. `work` adds its progress to the [`Done`].
    fn retry<T>(
        &mut self,
        attempts: Option<u32>,
        work: &mut dyn FnMut(&mut Self, &mut Done) -> Result<T, PullError>,
    ) -> Result<T, PullError> {
        let mut total = Done::default();
        let mut failures = 0;
        loop {
            let before = total;
            let error = match work(self, &mut total) {
                Ok(result) => return Ok(result),
                Err(error) => error,
            };
            failures = if total == before { failures + 1 } else { 1 };
            // A single round does not wait for disk space; following does.
            let may_wait = match attempts {
                Some(attempts) => matches!(error, PullError::Failed { .. }) && failures < attempts,
                None => error.may_pass(),
            };
            if !may_wait {
                return Err(error);
            }
            let pause = pause_after(failures, &error);
            let reason = reason(&error);
            self.events.note(&format!("{error}; trying again in {} s{reason}", pause.as_secs_f64().ceil()));
            sleep(pause);
            self.copy.check_location()?;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_copy_is_compared_once_a_day() {
        const DAY_S: i64 = 86_400;
        // When it was compared, now, and whether it is due.
        let cases = [
            (0, 20_000 * DAY_S, true),
            (100, 100, false),
            (100, 99 + DAY_S, false),
            (100, 100 + DAY_S, true),
            (100, 99, true),
            (30_000 * DAY_S, 20_000 * DAY_S, true),
            (i64::MAX, i64::MIN, true),
        ];
        for (verified_at, now, expected) in cases {
            assert_eq!(is_verification_due(verified_at, now), expected, "{verified_at} {now}");
        }
    }
}
