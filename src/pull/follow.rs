//! One round over all datasets, and going on: through limits, failures and restarts of either side.

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

/// How often a single round is tried when the service fails, while nothing comes of it.
const ATTEMPTS: u32 = 5;

/// After how long a copy that is followed is compared with the service's content again, in seconds.
const VERIFY_AFTER_S: i64 = 24 * 3600;

/// What is to be pulled.
#[derive(Clone, Debug)]
pub struct Plan {
    /// The datasets.
    pub datasets: Vec<Dataset>,
    /// Whether they were named: then each must be in the license.
    pub are_named: bool,
    /// Whether to compare the copy with the service's content.
    pub verify: bool,
}

/// What was done for a dataset.
#[derive(Debug)]
pub struct Report {
    /// Which one.
    pub dataset: Dataset,
    /// What came.
    pub done: Done,
    /// What a comparison found, where there was one.
    pub verdict: Option<Verdict>,
    /// How many records the copy holds now.
    pub records: u64,
}

/// A pull: a service, a copy, and who hears of it.
pub struct Pull<'a> {
    /// The service.
    pub server: &'a PullClient,
    /// The copy.
    pub copy: &'a mut dyn PullTarget,
    /// Who hears of what happens.
    pub events: &'a dyn Events,
}

impl Pull<'_> {
    /// Brings all datasets to the present, trying again a few times when the service fails. Those that the license does not
    /// have are passed over, unless they were named or the copy holds them: then that is the error, once the others are done.
    ///
    /// # Errors
    /// The first one that trying again did not get past.
    pub fn once(&mut self, plan: &Plan, report: &mut dyn FnMut(Report)) -> Result<(), PullError> {
        let mut missing = Vec::new();
        for dataset in &plan.datasets {
            match self.pull(*dataset, plan.verify, 0, Some(ATTEMPTS)) {
                Ok(done) => report(done),
                Err(PullError::NotLicensed(_)) => missing.push(*dataset),
                Err(error) => return Err(error),
            }
        }
        for dataset in &missing {
            let held = self.copy.position(*dataset)?;
            if let Some(held) = held {
                return Err(PullError::Refused(format!(
                    "the license of the key does not have the dataset `{dataset}` any more; the copy keeps the {} records that \
                     it has; ask the operator, or go on without it: name the others with --dataset",
                    held.records
                )));
            }
            if plan.are_named || missing.len() == plan.datasets.len() {
                return Err(PullError::NotLicensed(*dataset));
            }
            self.events.note(&format!("{dataset}: not in the license, passed over"));
        }
        Ok(())
    }

    /// Goes on for ever: a round every so often, a comparison once a day. A service that can wait for news itself is asked to,
    /// so that they come at once.
    ///
    /// # Errors
    /// What waiting does not help: the service says no, or the copy cannot be used.
    pub fn follow(
        &mut self,
        plan: &Plan,
        every: Duration,
        report: &mut dyn FnMut(Report),
    ) -> Result<std::convert::Infallible, PullError> {
        let mut plan = plan.clone();
        let mut wait_s = 0;
        loop {
            self.copy.check_location()?;
            let (begun, mut left, mut has_news) = (Instant::now(), Vec::new(), false);
            for dataset in &plan.datasets {
                let held = self.patiently(None, &mut |pull, _| pull.copy.position(*dataset))?;
                let is_due = held.as_ref().is_some_and(|held| now().unix_s() - held.verified_at >= VERIFY_AFTER_S);
                match self.pull(*dataset, plan.verify || is_due, wait_s, None) {
                    Ok(done) => {
                        left.push(*dataset);
                        has_news |= done.done != Done::default();
                        report(done);
                    }
                    Err(PullError::NotLicensed(_)) if !plan.are_named || held.is_some() => {
                        let kept = if held.is_some() { "; what the copy has of it stays as it is" } else { "" };
                        self.events.note(&format!("{dataset}: not in the license, passed over{kept}"));
                    }
                    Err(error) => return Err(error),
                }
            }
            if left.is_empty() {
                return plan.datasets.first().map_or_else(
                    || Err(PullError::Refused("the license of the key has no dataset".to_owned())),
                    |dataset| Err(PullError::NotLicensed(*dataset)),
                );
            }
            // One dataset is waited for after the other.
            wait_s = every.as_secs() / left.len() as u64;
            (plan.datasets, plan.verify) = (left, false);
            if !(has_news && wait_s > 0 && self.server.takes_wait()) {
                sleep(every.saturating_sub(begun.elapsed()));
            }
        }
    }

    /// Brings a dataset to the present, trying again when the service or the copy fails.
    fn pull(
        &mut self,
        dataset: Dataset,
        verifies: bool,
        wait_s: u64,
        attempts: Option<u32>,
    ) -> Result<Report, PullError> {
        self.patiently(attempts, &mut |pull, total| {
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

    /// Does something that counts what it did, again after a pause when it fails: so many times in a row while nothing comes of
    /// it, or as long as waiting may help.
    fn patiently<T>(
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
            // A single round is not there to wait for room on the disk; who follows is.
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
