//! The thread that follows the origin's log while the server runs.

use std::io;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, TryRecvError};
use std::time::{Duration, Instant};

use parking_lot::{Condvar, Mutex};

use crate::api::SnapshotSource;
use crate::model::Head;
use crate::replicate::replica::{Replica, ReplicaStatus};
use crate::serve::watching::background::BackgroundTask;

/// The time between two checks for the server's stop.
const STOP_CHECK_EVERY: Duration = Duration::from_millis(100);

/// The state that the thread and the server share.
#[derive(Debug)]
pub struct ReplicaThread {
    url: String,
    status: Arc<ReplicaStatus>,
    polls: Mutex<PollState>,
    /// Notified when `polls` changes.
    changed: Condvar,
}

#[derive(Debug, Default)]
struct PollState {
    /// A poll is requested this long after the end of the last one.
    requested_after: Option<Duration>,
    /// The start of the last finished poll.
    last_began: Option<Instant>,
    has_ended: bool,
}

impl ReplicaThread {
    /// Starts the thread. It polls the origin every `poll`, and stops when the returned task is dropped. `file` loads
    /// the replica's file.
    pub fn start(
        mut replica: Replica,
        poll: Duration,
        file: Arc<dyn SnapshotSource>,
    ) -> io::Result<(Arc<ReplicaThread>, BackgroundTask)> {
        let thread = Arc::new(ReplicaThread {
            url: replica.log().url(),
            status: Arc::clone(replica.status()),
            polls: Mutex::default(),
            changed: Condvar::new(),
        });
        let shared = Arc::clone(&thread);
        shared.load_newest(file.as_ref());
        let task = BackgroundTask::spawn("replica", move |stopped| {
            while shared.wait_until_due(poll, stopped) {
                let began = Instant::now();
                let again = replica.poll(&|| stopped.try_recv() != Err(TryRecvError::Disconnected));
                shared.load_newest(file.as_ref());
                let mut polls = shared.polls.lock();
                polls.last_began = Some(began);
                polls.has_ended = !again;
                drop(polls);
                shared.changed.notify_all();
                if !again {
                    return;
                }
            }
        })?;
        Ok((thread, task))
    }

    /// Makes the server load the file. Only then the log's end counts as seen: after a long outage of the bucket, no
    /// response may come from the old state and its keys. A whole state can have the seq of the state that it replaces.
    fn load_newest(&self, file: &dyn SnapshotSource) {
        let Head { seq, lineage } = self.status.progress().head;
        let holds_head = || file.newest().holds(seq, &lineage).unwrap_or(false);
        if !holds_head() {
            file.catch_up(Instant::now(), &|_| false);
        }
        if holds_head() {
            self.status.note_end_loaded();
        }
    }

    /// Waits until the next poll is due or requested. Returns false if the thread must stop.
    fn wait_until_due(&self, poll: Duration, stopped: &Receiver<()>) -> bool {
        let begun = Instant::now();
        let mut polls = self.polls.lock();
        loop {
            if stopped.try_recv() == Err(TryRecvError::Disconnected) {
                return false;
            }
            let pause = polls
                .requested_after
                .map_or(poll, |requested| requested.min(poll));
            let left = pause.saturating_sub(begun.elapsed());
            if left.is_zero() {
                polls.requested_after = None;
                return true;
            }
            self.changed
                .wait_for(&mut polls, left.min(STOP_CHECK_EVERY));
        }
    }

    pub fn url(&self) -> String {
        self.url.clone()
    }

    /// Whether the data is new enough to be served. Called on every request.
    pub fn is_fresh(&self) -> bool {
        self.status.unfit().is_none()
    }

    /// The reason why the data is not fresh, or why the origin cannot be followed now.
    pub fn failure(&self) -> Option<String> {
        match (self.status.unfit(), self.status.progress().error) {
            (Some(unfit), Some(error)) => Some(format!("{unfit}, so it answers 503: {error}")),
            (Some(unfit), None) => Some(format!("{unfit}, so it answers 503")),
            (None, error) => error,
        }
    }

    /// Waits until `until` for a poll of the origin that begins after `since`. Concurrent callers share a poll. The
    /// next poll begins `pause` after the end of the last one, or earlier if it is due. Returns whether the poll
    /// succeeded in time.
    pub fn wait_for_poll(&self, since: Instant, until: Instant, pause: Duration) -> bool {
        let mut polls = self.polls.lock();
        while !polls.has_ended && polls.last_began.is_none_or(|began| began < since) {
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return false;
            }
            if polls
                .requested_after
                .is_none_or(|requested| pause < requested)
            {
                polls.requested_after = Some(pause);
                self.changed.notify_all();
            }
            self.changed.wait_for(&mut polls, left);
        }
        self.status.progress().error.is_none()
    }

    /// Asks whether a seq that is ahead of the replica belongs to a history that the origin no longer has.
    pub fn ask_if_lost(&self, seq: u64) -> bool {
        self.status.ask_if_lost(seq)
    }

    pub fn status(&self) -> &ReplicaStatus {
        &self.status
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::channel;

    use super::*;

    const MS: Duration = Duration::from_millis(1);

    fn thread() -> ReplicaThread {
        let status = Arc::new(ReplicaStatus::new(Duration::from_secs(60)));
        ReplicaThread {
            url: String::new(),
            status,
            polls: Mutex::default(),
            changed: Condvar::new(),
        }
    }

    #[test]
    fn the_shortest_requested_pause_counts_until_the_next_poll() {
        let thread = thread();
        // Each request waits a millisecond, since no poll comes.
        let request = |pause| {
            let now = Instant::now();
            thread.wait_for_poll(now, now + MS, pause);
            thread.polls.lock().requested_after
        };
        let (token, key) = (MS * 50, Duration::from_secs(1));
        assert_eq!(
            [request(key), request(token), request(key), request(token)],
            [Some(key), Some(token), Some(token), Some(token)]
        );
        let (_stop, stopped) = channel();
        thread.polls.lock().requested_after = Some(Duration::ZERO);
        assert!(
            thread.wait_until_due(Duration::MAX, &stopped),
            "a requested poll is due"
        );
        let requested_after = thread.polls.lock().requested_after;
        assert_eq!(requested_after, None, "the request is done");
        thread.polls.lock().requested_after = Some(Duration::MAX);
        assert!(
            thread.wait_until_due(Duration::ZERO, &stopped),
            "a request delays no regular poll"
        );
    }

    #[test]
    fn a_poll_that_began_before_the_request_does_not_count() {
        let thread = thread();
        let since = Instant::now() + MS * 10;
        let later = since + MS;
        for (last_began, has_ended, asks) in [
            (None, false, true),
            (Some(since - MS), false, true),
            (Some(since), false, false),
            (Some(later), false, false),
            (None, true, false),
        ] {
            *thread.polls.lock() = PollState {
                last_began,
                has_ended,
                requested_after: None,
            };
            let has_polled = thread.wait_for_poll(since, Instant::now() + MS, MS);
            assert_eq!(has_polled, !asks, "{last_began:?} {has_ended}");
            let requested_after = thread.polls.lock().requested_after.is_some();
            assert_eq!(requested_after, asks, "{last_began:?} {has_ended}");
        }
    }

    #[test]
    fn a_stopped_thread_polls_no_more() {
        let thread = thread();
        let (stop, stopped) = channel::<()>();
        drop(stop);
        assert!(!thread.wait_until_due(Duration::ZERO, &stopped));
    }
}
