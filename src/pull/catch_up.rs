//! The protocol: load the export, then apply the pages of the change feed, each saved with its token. After a change of
//! the license, the feed sends the difference. If the feed cannot continue from the token, load the export again. A
//! copy is proved by the digest of the service's export at the same token.
//!
//! Rounds bring all datasets up to date, once or for ever, and retry after failures.

use std::collections::{BTreeMap, BTreeSet};
use std::thread::sleep;
use std::time::{Duration, Instant};

use super::client::{LONGEST_WAIT_S, PullClient};
use super::error::{PullError, Result};
use super::export::{ContentDigest, FeedPage};
use super::target::{Events, Position, PullTarget};
use crate::model::{Dataset, now};

const MAX_EMPTY_PAGES: u32 = 100;

/// The most comparisons while the service's content changes during each one.
const MAX_COMPARISONS: u32 = 5;

/// A pull from a service into a copy.
pub struct Pull<'a> {
    /// The service.
    pub server: &'a PullClient,
    /// The copy.
    pub copy: &'a mut dyn PullTarget,
    /// Receives changes, progress and notes.
    pub events: &'a dyn Events,
}

/// The progress of a catch-up.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
pub struct Done {
    /// The number of feed entries that were applied.
    pub entries: u64,
    /// Whether the export was loaded.
    pub is_loaded: bool,
}

/// The result of a comparison.
#[derive(Debug, PartialEq, Eq)]
pub enum Verdict {
    /// The copy is equal to the service's content.
    Sound,
    /// The copy had this fault. It was loaded again, and is equal now.
    Repaired(String),
}

impl Pull<'_> {
    /// Brings the copy of a dataset up to date. If it is up to date already, the service may long-poll for `wait_s`
    /// seconds. Adds the progress to `done`, also before an error. Each applied page is kept, so the next call
    /// continues after it.
    pub fn catch_up(&mut self, dataset: Dataset, wait_s: u64, done: &mut Done) -> Result<()> {
        let mut budget = CatchUpBudget {
            left: self.server.limits().catch_up_items,
            empty_pages: 0,
        };
        loop {
            let Some(position) = self.copy.position(dataset)? else {
                return self.load(dataset, done).map(|_| ());
            };
            let page = match self.server.changes(dataset, &position.token, wait_s)? {
                Some(page) => page,
                // The license changed, or the service was restored from a backup. After a change of the license, newer
                // services send the difference as pages.
                None => match self.server.difference(dataset, &position.token)? {
                    Some(page) => {
                        self.events.note(&format!(
                            "{dataset}: the license changed; applying the difference"
                        ));
                        page
                    }
                    None => {
                        self.events.note(&format!(
                            "{dataset}: the license changed, or the service was restored from a backup; loading the export"
                        ));
                        return self.load(dataset, done).map(|_| ());
                    }
                },
            };
            if page.has_more || !page.entries.is_empty() {
                budget.check(&page, &position.token)?;
            }
            self.copy.apply(dataset, &page, self.events)?;
            done.entries += page.entries.len() as u64;
            if !page.has_more {
                return Ok(());
            }
        }
    }

    /// Makes the copy equal to the export. Returns the export's digest.
    fn load(&mut self, dataset: Dataset, done: &mut Done) -> Result<ContentDigest> {
        let note = |text: &str| self.events.note(text);
        let mut export = self.server.export(dataset, &note)?;
        self.copy.load(dataset, &mut export, self.events)?;
        done.is_loaded = true;
        Ok(export.content())
    }

    /// Continues the copy of a service that has moved to this address. The sync token and the digest of a dataset prove
    /// that it is the same service.
    pub fn follow_move(&mut self) -> Result<()> {
        for dataset in Dataset::ALL {
            let Some(Position {
                token,
                other_server: Some(other),
                ..
            }) = self.copy.position(dataset)?
            else {
                continue;
            };
            let server = self.server.server();
            let fits = match self.server.changes(dataset, &token, 0) {
                Ok(Some(_)) => {
                    self.catch_up(dataset, 0, &mut Done::default())?;
                    self.copy.digest(dataset)? == self.server.export_digest(dataset)?.1
                }
                Err(error) if error.is_transient() => return Err(error),
                _ => false,
            };
            if !fits {
                return Err(PullError::Unusable(format!(
                    "this is a copy of {other}, not of {server}; give another location with --to, or --reload to replace its \
                     content by what {server} has"
                )));
            }
            self.copy.set_verified(dataset)?;
            self.events.note(&format!(
                "the service has moved from {other} to {server}, which knows the sync token of the copy and has the same \
                 {dataset}; the copy goes on with their changes from there"
            ));
        }
        Ok(())
    }

    /// Brings the copy up to date, and compares it with the service's export at the same token. Also compares the
    /// derived tables and files with the records. Loads a copy that differs again, and compares it once more.
    pub fn verify(&mut self, dataset: Dataset, done: &mut Done) -> Result<Verdict> {
        for _ in 0..MAX_COMPARISONS {
            self.catch_up(dataset, 0, done)?;
            let (token, theirs) = self.server.export_digest(dataset)?;
            let Some(position) = self.copy.position(dataset)? else {
                continue;
            };
            let ours = self.copy.digest(dataset)?;
            if ours != theirs && token != position.token {
                // The service's content has changed meanwhile, so the two may differ.
                continue;
            }
            let Some(fault) = self.fault(dataset, &ours, &theirs)? else {
                self.copy.set_verified(dataset)?;
                return Ok(Verdict::Sound);
            };
            self.events.note(&format!(
                "{dataset}: the copy was changed or damaged: {fault}; loading the export"
            ));
            let theirs = self.load(dataset, done)?;
            // Another program may write to the copy at the same time.
            let ours = self.copy.digest(dataset)?;
            if let Some(left) = self.fault(dataset, &ours, &theirs)? {
                return Err(PullError::Unusable(format!(
                    "{dataset}: the copy still differs after the export was loaded: {left}; another program may be writing to \
                     it, or has altered its tables: stop that, or give another location"
                )));
            }
            self.copy.set_verified(dataset)?;
            return Ok(Verdict::Repaired(fault));
        }
        Err(PullError::failed(format!(
            "{dataset}: the service's content changed again and again while it was compared; verify it at a quieter time"
        )))
    }

    /// Compares the records with the service's digest, and the derived tables and files with the records.
    fn fault(
        &mut self,
        dataset: Dataset,
        ours: &ContentDigest,
        theirs: &ContentDigest,
    ) -> Result<Option<String>> {
        if ours != theirs {
            let ours = ours.records;
            let theirs = theirs.records;
            let counts = if ours == theirs {
                String::new()
            } else {
                format!(" ({ours} records instead of {theirs})")
            };
            return Ok(Some(format!(
                "it differs from the service's content{counts}"
            )));
        }
        match self.copy.position(dataset)? {
            Some(position) if position.records != ours.records => {
                Ok(Some("its count of records was wrong".to_owned()))
            }
            _ => self.copy.find_fault(dataset),
        }
    }
}

/// The work that a catch-up may still do.
struct CatchUpBudget {
    /// The number of entries plus pages.
    left: u64,
    empty_pages: u32,
}

impl CatchUpBudget {
    /// Rejects a page with entries or `has_more` that makes no progress or exceeds the budget.
    fn check(&mut self, page: &FeedPage, asked: &str) -> Result<()> {
        let fault = if page.token == asked {
            "it has changes or more pages, but returns the sync token of the request".to_owned()
        } else if page.entries.is_empty() && self.empty_pages == MAX_EMPTY_PAGES {
            format!("it sends more than {MAX_EMPTY_PAGES} pages without entries in a row")
        } else if self.left <= page.entries.len() as u64 {
            "it sends more changes than any dataset can have".to_owned()
        } else {
            self.left -= page.entries.len() as u64 + 1;
            self.empty_pages = if page.entries.is_empty() {
                self.empty_pages + 1
            } else {
                0
            };
            return Ok(());
        };
        Err(PullError::failed(format!(
            "the service's feed does not end: {fault}; the copy stays as it was; check the address, and report it to the service's \
             operator"
        )))
    }
}

/// The most attempts of a single round that make no progress.
const MAX_ATTEMPTS: u32 = 5;

/// The time between two comparisons of a followed copy with the service, in seconds.
const VERIFY_INTERVAL_S: i64 = 24 * 3600;

/// A followed dataset whose last attempt failed.
struct Failing {
    /// The progress since the dataset was last up to date.
    done: Done,
    failures: u32,
    retry_at: Instant,
}

/// The datasets of a followed copy.
#[derive(Default)]
struct Followed {
    to_verify: BTreeSet<Dataset>,
    /// Those that the license does not have.
    skipped: BTreeSet<Dataset>,
    failing: BTreeMap<Dataset, Failing>,
    /// The seconds of the interval for which each dataset may long-poll.
    share_s: u64,
    /// How long the service was asked to hold the successful requests of this round; `None` if there was none.
    asked: Option<Duration>,
    /// Whether this round brought changes.
    has_news: bool,
}

impl Followed {
    /// The time until the first failed dataset is retried.
    fn until_retry(&self) -> Option<Duration> {
        let retry_at = self.failing.values().map(|failing| failing.retry_at).min();
        retry_at.map(|at| at.saturating_duration_since(Instant::now()))
    }

    /// The seconds of a long poll: a dataset's share of the interval, but no longer than until a failed dataset is
    /// retried.
    fn poll_s(&self) -> u64 {
        self.until_retry()
            .map_or(self.share_s, |left| self.share_s.min(left.as_secs()))
    }

    /// The pause after a round that took `elapsed`. If the next one long-polls (`waits`), it begins at once, unless the
    /// service responded early without news, because it has too many long polls.
    fn pause(
        &self,
        every: Duration,
        elapsed: Duration,
        waits: bool,
        until_retry: Option<Duration>,
    ) -> Duration {
        // The service's clock may run a little faster.
        let was_held = self
            .asked
            .is_some_and(|asked| elapsed >= asked.mul_f64(0.9));
        let pause = if waits && (self.has_news || was_held) {
            Duration::ZERO
        } else {
            every.saturating_sub(elapsed)
        };
        match until_retry {
            // Nothing else is followed.
            Some(left) if self.asked.is_none() => left,
            Some(left) => pause.min(left),
            None => pause,
        }
    }
}

/// The work of a pull.
pub struct Plan {
    /// The datasets.
    pub datasets: Vec<Dataset>,
    /// Whether the user named the datasets. If so, each must be in the license.
    pub are_named: bool,
    /// Whether to compare the copy with the service's content.
    pub verify: bool,
}

/// The result of a round for one dataset.
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

impl Pull<'_> {
    /// Brings all datasets up to date, with a few retries. Skips a dataset that the license does not have. That is an
    /// error if the user named the dataset, the license has none of the datasets, or the copy held it: then its records
    /// are removed. Such an error, and the first failure of a request, come after all other datasets are done.
    pub fn once(&mut self, plan: &Plan, report: &mut dyn FnMut(Report)) -> Result<()> {
        let mut missing = Vec::new();
        let mut lost = None;
        let mut failed = None;
        for dataset in &plan.datasets {
            // If the service is down, its other datasets need no retries.
            let attempts = if failed.is_none() { MAX_ATTEMPTS } else { 1 };
            match self.retry(*dataset, plan.verify, attempts) {
                Ok(done) => report(done),
                Err(PullError::NotLicensed(_)) => missing.push(*dataset),
                Err(error @ PullError::LicenseLost(_)) => lost = lost.or(Some(error)),
                Err(error @ PullError::Failed { .. }) => failed = failed.or(Some(error)),
                Err(error) => return Err(error),
            }
        }
        if let Some(error) = failed.or(lost) {
            return Err(error);
        }
        for dataset in &missing {
            if plan.are_named || missing.len() == plan.datasets.len() {
                return Err(PullError::NotLicensed(*dataset));
            }
            self.events
                .note(&format!("{dataset}: not in the license, skipped"));
        }
        Ok(())
    }

    /// Brings all datasets up to date at the interval `every`, and compares the copy with the service once a day. Uses
    /// long polling if the service supports it. A dataset that the license does not have is requested again in each
    /// round, because the license may get it back. A dataset that fails is retried after a pause, and the others are
    /// followed meanwhile. Returns only errors that retries cannot solve.
    pub fn follow(
        &mut self,
        plan: &Plan,
        every: Duration,
        report: &mut dyn FnMut(Report),
    ) -> Result<std::convert::Infallible> {
        let mut followed = Followed::default();
        if plan.verify {
            followed.to_verify.extend(&plan.datasets);
        }
        loop {
            self.copy.check_location()?;
            let begun = Instant::now();
            followed.asked = None;
            followed.has_news = false;
            for dataset in &plan.datasets {
                let failing = followed.failing.get(dataset);
                if failing.is_none_or(|failing| failing.retry_at <= Instant::now()) {
                    self.follow_dataset(*dataset, plan, &mut followed, report)?;
                }
            }
            let licensed = plan.datasets.len() - followed.skipped.len();
            if licensed == 0 {
                return Err(match plan.datasets.first() {
                    Some(dataset) => PullError::NotLicensed(*dataset),
                    None => PullError::Refused("the license of the key has no dataset".to_owned()),
                });
            }
            // The datasets long-poll one after the other.
            followed.share_s = (every.as_secs() / licensed as u64).min(LONGEST_WAIT_S);
            let waits = followed.poll_s() > 0 && self.server.takes_wait();
            sleep(followed.pause(every, begun.elapsed(), waits, followed.until_retry()));
        }
    }

    fn follow_dataset(
        &mut self,
        dataset: Dataset,
        plan: &Plan,
        followed: &mut Followed,
        report: &mut dyn FnMut(Report),
    ) -> Result<()> {
        let (before, failures) = followed
            .failing
            .remove(&dataset)
            .map_or((Done::default(), 0), |failing| {
                (failing.done, failing.failures)
            });
        let mut done = before;
        let is_due = self.check_due(dataset);
        let verifies = followed.to_verify.contains(&dataset) || matches!(is_due, Ok(true));
        let wait_s = if verifies { 0 } else { followed.poll_s() };
        match is_due.and_then(|_| self.attempt(dataset, verifies, wait_s, &mut done)) {
            Ok(done) => {
                followed.skipped.remove(&dataset);
                followed.to_verify.remove(&dataset);
                let asked = followed.asked.unwrap_or_default();
                followed.asked = Some(asked + Duration::from_secs(wait_s));
                followed.has_news |= done.done != Done::default();
                report(done);
            }
            Err(PullError::LicenseLost(_)) => {
                followed.skipped.insert(dataset);
            }
            Err(PullError::NotLicensed(_))
                if !plan.are_named || followed.skipped.contains(&dataset) =>
            {
                if followed.skipped.insert(dataset) {
                    self.events
                        .note(&format!("{dataset}: not in the license, skipped"));
                }
            }
            Err(error) if error.is_transient() => {
                let failures = if done == before { failures + 1 } else { 1 };
                let failing = Failing {
                    done,
                    failures,
                    retry_at: Instant::now() + self.note_pause(failures, &error),
                };
                followed.failing.insert(dataset, failing);
            }
            Err(error) => return Err(error),
        }
        Ok(())
    }

    /// Brings a dataset up to date. Adds the progress to `done`, also before an error. Removes the records of a dataset
    /// if the service says twice that the license does not have it.
    fn attempt(
        &mut self,
        dataset: Dataset,
        verifies: bool,
        wait_s: u64,
        done: &mut Done,
    ) -> Result<Report> {
        self.follow_move()?;
        for _ in 0..2 {
            match self.update(dataset, verifies, wait_s, done) {
                Err(PullError::NotLicensed(_)) if self.copy.records(dataset)?.is_some() => {}
                result => return result,
            }
        }
        let records = self.copy.clear(dataset, self.events)?;
        self.events.note(&format!(
            "{dataset}: the license does not have this dataset any more; its {records} records were removed from the copy"
        ));
        Err(PullError::LicenseLost(dataset))
    }

    fn update(
        &mut self,
        dataset: Dataset,
        verifies: bool,
        wait_s: u64,
        done: &mut Done,
    ) -> Result<Report> {
        let verdict = if verifies {
            Some(self.verify(dataset, done)?)
        } else {
            self.catch_up(dataset, wait_s, done)?;
            None
        };
        let records = self
            .copy
            .position(dataset)?
            .map_or(0, |position| position.records);
        Ok(Report {
            dataset,
            done: *done,
            verdict,
            records,
        })
    }

    /// Reads from the copy whether a day has passed since it was compared with the service.
    fn check_due(&mut self, dataset: Dataset) -> Result<bool> {
        let held = self.copy.position(dataset)?;
        // The clock may have been ahead at the last comparison.
        let age_s = held.map(|held| now().unix_s().saturating_sub(held.verified_at));
        Ok(age_s.is_some_and(|age_s| !(0..VERIFY_INTERVAL_S).contains(&age_s)))
    }

    /// Brings a dataset up to date. Gives up after `attempts` consecutive failures without progress. Does not wait for
    /// disk space; following does.
    fn retry(&mut self, dataset: Dataset, verifies: bool, attempts: u32) -> Result<Report> {
        let mut done = Done::default();
        let mut failures = 0;
        loop {
            let before = done;
            let error = match self.attempt(dataset, verifies, 0, &mut done) {
                Err(error @ PullError::Failed { .. }) => error,
                result => return result,
            };
            failures = if done == before { failures + 1 } else { 1 };
            if failures >= attempts {
                return Err(error);
            }
            sleep(self.note_pause(failures, &error));
            self.copy.check_location()?;
        }
    }

    /// Reports an error. Returns the pause before the next attempt.
    fn note_pause(&self, failures: u32, error: &PullError) -> Duration {
        let pause = error.pause_after(failures);
        self.events.note(&format!(
            "{error}; trying again in {} s",
            pause.as_secs_f64().ceil()
        ));
        pause
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pull::export::Entry;

    fn page(entries: usize, token: &str) -> FeedPage {
        let entry = Entry {
            id: 1,
            is_removal: false,
            json: "{}".into(),
        };
        FeedPage {
            entries: vec![entry; entries],
            has_more: true,
            token: token.to_owned(),
        }
    }

    #[test]
    fn a_walk_that_does_not_end_is_an_error() {
        let with = |left| CatchUpBudget {
            left,
            empty_pages: 0,
        };
        let mut budget = with(10);
        let refused = |result: Result<()>, part: &str| {
            let text = result.unwrap_err().to_string();
            assert!(text.contains(part), "{text}");
        };
        refused(
            budget.check(&page(1, "a"), "a"),
            "the sync token of the request",
        );
        budget.check(&page(4, "b"), "a").unwrap();
        budget.check(&page(4, "c"), "b").unwrap();
        refused(
            budget.check(&page(0, "d"), "c"),
            "more changes than any dataset can have",
        );

        let mut budget = with(1000);
        for _ in 0..MAX_EMPTY_PAGES {
            budget.check(&page(0, "b"), "a").unwrap();
        }
        refused(
            budget.check(&page(0, "b"), "a"),
            "more than 100 pages without entries",
        );
        budget.check(&page(1, "b"), "a").unwrap();
        budget.check(&page(0, "b"), "a").unwrap();
    }
}

#[cfg(test)]
mod rounds_tests {
    use super::*;

    #[test]
    fn rounds_begin_at_once_unless_the_service_responds_early() {
        // (the interval, whether the next round waits, elapsed, asked, news, the time until a retry; the pause), in
        // seconds.
        let cases = [
            // The first round asks without a wait.
            (3600, true, 0, Some(0), false, None, 0),
            (3600, true, 60, Some(60), false, None, 0),
            (3600, true, 119, Some(120), false, None, 0),
            (3600, true, 0, Some(120), true, None, 0),
            (3600, true, 60, Some(120), false, None, 3540),
            (60, true, 1, Some(60), false, None, 59),
            // Without waiting there are polls at the interval.
            (60, false, 1, Some(0), false, None, 59),
            (60, false, 1, Some(0), true, None, 59),
            (60, false, 70, Some(0), false, None, 0),
            // Other datasets are followed while one fails.
            (60, false, 1, Some(0), false, Some(2), 2),
            (60, true, 30, Some(30), false, Some(250), 0),
            (60, true, 1, Some(30), false, Some(250), 59),
            (60, true, 1, None, false, Some(250), 250),
        ];
        for (every, waits, elapsed, asked, has_news, until_retry, expected) in cases {
            let s = Duration::from_secs;
            let case = (every, waits, elapsed, asked, has_news, until_retry);
            let followed = Followed {
                asked: asked.map(s),
                has_news,
                ..Followed::default()
            };
            let pause = followed.pause(s(every), s(elapsed), waits, until_retry.map(s));
            assert_eq!(pause, s(expected), "{case:?}");
        }
    }
}
