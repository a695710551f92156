//! The thread that follows an origin's log beside the server.

use std::io;
use std::sync::mpsc::{Receiver, TryRecvError};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use crate::api::SnapshotSource;
use crate::replicate::follower::{Replica, ReplicaStatus};
use crate::serve::following::background::BackgroundTasks;
use crate::serve::following::upstream::{Figures, Upstream};
use crate::serve::following::watcher::Watcher;
use crate::serve::operators::usage::Usage;

/// How soon the thread sees that it is to end.
const GLANCE_EVERY: Duration = Duration::from_millis(100);
/// The time between two reports.
const REPORT_EVERY: Duration = Duration::from_secs(60);

/// What a replica reports to its origin.
#[derive(Debug)]
pub struct Reports {
    /// The name of the report, always the same.
    pub name: String,
    /// Whose replica it is: user and machine.
    pub who: String,
    /// Which keys are used.
    pub usage: Arc<Usage>,
}

/// What is asked of the thread, and what it did.
#[derive(Debug)]
pub struct Following {
    url: String,
    status: Arc<ReplicaStatus>,
    looks: Mutex<Looks>,
    /// Rung for both sides: a look is wanted, or is done.
    rung: Condvar,
}

#[derive(Debug, Default)]
struct Looks {
    /// A look is wanted when the last one has been over for so long.
    wanted: Option<Duration>,
    /// When the last look that is done began.
    done: Option<Instant>,
    has_ended: bool,
}

impl Following {
    /// Follows an origin until the returned tasks are dropped, with a look every so often, and reports to it if wanted. The
    /// watcher is that of the replica's file, whose states are served.
    ///
    /// # Errors
    /// When the operating system gives no thread.
    pub fn start(
        mut replica: Replica,
        url: String,
        poll: Duration,
        reports: Option<Reports>,
        watcher: Arc<Watcher>,
    ) -> io::Result<(Arc<Following>, BackgroundTasks)> {
        let status = Arc::clone(replica.status());
        let following = Arc::new(Following { url, status, looks: Mutex::default(), rung: Condvar::new() });
        let shared = Arc::clone(&following);
        shared.show(&watcher);
        let tasks = BackgroundTasks::spawn("replica", move |stopped| {
            let mut report_at = Instant::now();
            let goes_on = || stopped.try_recv() != Err(TryRecvError::Disconnected);
            while shared.wait_for_turn(poll, stopped) {
                let began = Instant::now();
                let again = replica.poll(&goes_on);
                shared.show(&watcher);
                let mut looks = shared.looks();
                looks.done = Some(began);
                looks.has_ended = !again;
                drop(looks);
                shared.rung.notify_all();
                if !again {
                    return;
                }
                if let Some(reports) = reports.as_ref().filter(|_| report_at <= began) {
                    report_at = began + REPORT_EVERY;
                    reports.send(&replica);
                }
            }
        })?;
        Ok((following, tasks))
    }

    /// Has the server show what the file holds. Only then the end of the log counts as seen: after a long time without the
    /// bucket no answer rests on a state, and its keys, of before.
    fn show(&self, watcher: &Watcher) {
        let seq = self.status.progress().seq;
        if watcher.newest().commit().seq < seq {
            watcher.catch_up(watcher.looks(), &|_| false);
        }
        if watcher.newest().commit().seq >= seq {
            self.status.note_end_served();
        }
    }

    /// Waits until it is time for a look, or one is wanted. False when the thread is to end.
    fn wait_for_turn(&self, poll: Duration, stopped: &Receiver<()>) -> bool {
        let begun = Instant::now();
        let mut looks = self.looks();
        loop {
            if stopped.try_recv() == Err(TryRecvError::Disconnected) {
                return false;
            }
            let rest = looks.wanted.map_or(poll, |rest| rest.min(poll));
            let left = rest.saturating_sub(begun.elapsed());
            if left.is_zero() {
                looks.wanted = None;
                return true;
            }
            let waiting = self.rung.wait_timeout(looks, left.min(GLANCE_EVERY));
            looks = waiting.unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    fn looks(&self) -> MutexGuard<'_, Looks> {
        self.looks.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Reports {
    /// Nothing rests on a report, so a failure is told and no more.
    fn send(&self, replica: &Replica) {
        // Names and numbers always become JSON.
        let usage = serde_json::to_string(&self.usage.all()).unwrap_or_default();
        if let Err(error) = replica.report(&self.name, &self.who, usage) {
            tracing::warn!(%error, "the replica's report could not be put into the bucket");
        }
    }
}

impl Upstream for Following {
    fn url(&self) -> String {
        self.url.clone()
    }

    fn is_fit(&self) -> bool {
        self.status.unfit().is_none()
    }

    fn trouble(&self) -> Option<String> {
        match (self.status.unfit(), self.status.progress().error) {
            (Some(unfit), Some(trouble)) => Some(format!("{unfit}, so it answers 503: {trouble}")),
            (Some(unfit), None) => Some(format!("{unfit}, so it answers 503")),
            (None, trouble) => trouble,
        }
    }

    fn look(&self, since: Instant, until: Instant, rest: Duration) {
        let mut looks = self.looks();
        while !looks.has_ended && looks.done.is_none_or(|began| began < since) {
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return;
            }
            if looks.wanted.is_none_or(|wanted| rest < wanted) {
                looks.wanted = Some(rest);
                self.rung.notify_all();
            }
            looks = self.rung.wait_timeout(looks, left).unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    fn is_lost(&self, seq: u64) -> bool {
        self.status.is_lost(seq)
    }

    fn figures(&self) -> Figures {
        let progress = self.status.progress();
        Figures {
            slot: progress.slot,
            seq: progress.seq,
            stale_s: self.status.stale_for().unwrap_or_else(|| self.status.running_for()).as_secs(),
            silence_s: self.status.silent_for().as_secs(),
            applied: progress.applied,
            loads: progress.loads,
            digest_failures: progress.digest_failures,
            unusable_objects: progress.unusable_objects,
        }
    }
}
