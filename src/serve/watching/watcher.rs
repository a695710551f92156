//! Watches the database file: one thread polls for commits and swaps the snapshot that all responses use.

use std::fmt::Display;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::mpsc::RecvTimeoutError;
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use arc_swap::ArcSwap;
use parking_lot::{Condvar, Mutex};
use tokio::sync::watch;

use crate::api::SnapshotSource;
use crate::api::source::Unservable;
use crate::replicate::replica::Replica;
use crate::serve::watching::background::BackgroundTask;
use crate::serve::watching::fence_watch::FenceWatch;
use crate::serve::watching::replica_thread::ReplicaThread;
use crate::store::{Reader, Snapshot, StoreError, StoredCommit};

const POLL_EVERY: Duration = Duration::from_millis(100);
/// The maximum number of commits to log when several are shown together.
const MAX_COMMITS_LOGGED: usize = 20;
/// A held-back commit is shown after this many change delays at the latest, even if more commits follow.
const MAX_DELAYS: u32 = 5;

/// A poll that takes longer counts as a failure of the disk. A large commit takes a second or two.
const POLL_TIMEOUT: Duration = Duration::from_secs(10);
/// The pause after a failure to read the file.
const FAILURE_PAUSE: Duration = Duration::from_secs(5);
/// The maximum time for which a request waits for a poll of the file or the origin.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(2);
/// The pause between polls of the origin for tokens that are ahead. Only the origin can have issued them.
const TOKEN_PAUSE: Duration = Duration::from_millis(50);
/// The pause between polls of the origin for unknown keys. Anybody can invent them.
const KEY_PAUSE: Duration = Duration::from_secs(1);
/// The response when another publisher took over longer ago than allowed.
const FENCED: Unservable = Unservable {
    retry_after_s: 10,
    reason: "This server's data is no longer updated; another server has taken over.",
};
/// The response while a replica may be outdated, including its keys.
const OUTDATED: Unservable = Unservable {
    retry_after_s: 10,
    reason: "This server has not received changes of the data for too long, so its data may be outdated.",
};

/// The watched database, with the shown snapshot and the newest one. They differ while commits are held back.
pub struct Watcher {
    path: PathBuf,
    /// Locked during a poll, which may take long: lock it on blocking threads only.
    file: Mutex<WatchedFile>,
    polls: Mutex<FilePolls>,
    /// Notified at the end of each poll.
    polled: Condvar,
    shown: ArcSwap<Snapshot>,
    newest: ArcSwap<Snapshot>,
    change_delay: Duration,
    /// Detects that another publisher took over; `None` for a replica, which follows that publisher.
    fence: Option<FenceWatch>,
    /// The thread that follows the origin; empty if the database is no replica.
    replica: OnceLock<Arc<ReplicaThread>>,
    /// Receives a message after `newest` or `shown` has changed.
    changes: watch::Sender<()>,
}

/// The polls of the file, as requests see them. Locked only briefly.
struct FilePolls {
    /// The start of the poll that runs now: of all its reads, also of the publisher's note.
    running_since: Option<Instant>,
    /// The start of the last finished poll.
    last_began: Option<Instant>,
    /// The time since which commits are held back.
    held_since: Option<Instant>,
    /// Whether the last poll succeeded.
    succeed: bool,
    is_readable: bool,
}

/// The open file and the state of polling it.
struct WatchedFile {
    reader: Reader,
    held_back: Option<HeldBack>,
    /// After a failure: the time of the next poll, which reopens the file.
    reopen_at: Option<Instant>,
    /// Whether the newest or the shown snapshot has changed since the receivers were told.
    has_changed: bool,
}

/// Commits that wait for the change delay.
#[derive(Clone, Copy)]
struct HeldBack {
    first_at: Instant,
    last_at: Instant,
}

impl HeldBack {
    fn is_due(&self, delay: Duration, now: Instant) -> bool {
        now.duration_since(self.last_at) >= delay
            || now.duration_since(self.first_at) >= delay * MAX_DELAYS
    }
}

impl Watcher {
    /// Opens the database. Commits are shown when no new one has followed for `change_delay`.
    pub fn open(path: &Path, change_delay: Duration) -> Result<Watcher, StoreError> {
        let reader = Reader::open(path)?;
        let snapshot = Arc::clone(reader.newest());
        load(&snapshot);
        Ok(Watcher {
            path: path.to_owned(),
            file: Mutex::new(WatchedFile {
                reader,
                held_back: None,
                reopen_at: None,
                has_changed: false,
            }),
            polls: Mutex::new(FilePolls {
                running_since: None,
                last_began: None,
                held_since: None,
                succeed: true,
                is_readable: true,
            }),
            polled: Condvar::new(),
            shown: ArcSwap::new(Arc::clone(&snapshot)),
            newest: ArcSwap::new(snapshot),
            change_delay,
            fence: None,
            replica: OnceLock::new(),
            changes: watch::channel(()).0,
        })
    }

    /// Watches the publisher's note: after another publisher took over, the server answers for a limited time only.
    pub fn with_fence(mut self, database: PathBuf, staleness: Duration) -> Watcher {
        self.fence = Some(FenceWatch::new(database, staleness));
        self.poll_fence(&self.file.lock());
        self
    }

    fn poll_fence(&self, file: &WatchedFile) {
        if let Some(fence) = &self.fence {
            fence.poll(|| file.reader.origin()?.id());
        }
    }

    /// Follows the origin of a replica, which is polled every `poll`, until the returned handle is dropped.
    pub fn follow(
        self: &Arc<Self>,
        replica: Replica,
        poll: Duration,
    ) -> std::io::Result<BackgroundTask> {
        let (thread, task) = ReplicaThread::start(replica, poll, Arc::<Watcher>::clone(self))?;
        let _ = self.replica.set(thread);
        Ok(task)
    }

    /// The thread that follows the origin, if the database is a replica.
    pub fn replica(&self) -> Option<&ReplicaThread> {
        self.replica.get().map(Arc::as_ref)
    }

    /// Starts the thread that polls the file. It stops when the returned handle is dropped.
    pub fn start(self: &Arc<Self>) -> std::io::Result<BackgroundTask> {
        let watcher = Arc::clone(self);
        BackgroundTask::spawn("poll", move |stopped| {
            while stopped.recv_timeout(POLL_EVERY) == Err(RecvTimeoutError::Timeout) {
                watcher.poll(Instant::now());
            }
        })
    }

    fn poll(&self, now: Instant) {
        let mut file = self.file.lock();
        self.guard(&mut file, |file| {
            self.refresh(file, now);
            if file
                .held_back
                .is_some_and(|held| held.is_due(self.change_delay, now))
            {
                self.show_newest(file);
            }
            self.poll_fence(file);
        });
    }

    /// Runs work on the file or the publisher's note, then tells the receivers if a snapshot has changed. A panic of
    /// redb, which a damaged file can cause, counts as a failed poll.
    fn guard(&self, file: &mut WatchedFile, work: impl FnOnce(&mut WatchedFile)) {
        self.polls.lock().running_since = Some(Instant::now());
        let result = catch_unwind(AssertUnwindSafe(|| work(file)));
        self.polls.lock().running_since = None;
        if result.is_err() {
            file.reopen_at = Some(Instant::now() + FAILURE_PAUSE);
            self.note_failure(&"reading it panicked", false);
        }
        self.polls.lock().held_since = file.held_back.map(|held| held.first_at);
        if std::mem::take(&mut file.has_changed) {
            self.changes.send_replace(());
        }
    }

    /// Polls the file once. A new snapshot is held back from now on.
    fn refresh(&self, file: &mut WatchedFile, now: Instant) {
        if file.reopen_at.is_some_and(|until| now < until) {
            return;
        }
        let begun = Instant::now();
        match self.read_newest(file) {
            Ok(newest) => {
                if !Arc::ptr_eq(&newest, &*self.newest.load()) {
                    load(&newest);
                    let first_at = file.held_back.map_or(now, |held| held.first_at);
                    file.held_back = Some(HeldBack {
                        first_at,
                        last_at: now,
                    });
                    self.newest.store(newest);
                    file.has_changed = true;
                }
                if !self.note_poll(true, true) {
                    tracing::info!("the database can be followed again");
                }
            }
            Err(error) => {
                // A missing file can still be read through the open handle, a damaged one cannot.
                let readable = !matches!(
                    error,
                    StoreError::Engine(_)
                        | StoreError::Damaged { .. }
                        | StoreError::UnknownRow { .. }
                );
                if !readable {
                    file.reopen_at = Some(now + FAILURE_PAUSE);
                }
                self.note_failure(&error, readable);
            }
        }
        self.polls.lock().last_began = Some(begun);
        self.polled.notify_all();
    }

    fn read_newest(&self, file: &mut WatchedFile) -> Result<Arc<Snapshot>, StoreError> {
        if file.reopen_at.is_some() {
            // After a failure the handle may be unusable.
            file.reader = Reader::open(&self.path)?;
            file.reopen_at = None;
        }
        file.reader.refresh().cloned()
    }

    /// Notes a failed poll. Logs only the first of consecutive failures.
    fn note_failure(&self, error: &dyn Display, readable: bool) {
        if self.note_poll(false, readable) {
            tracing::error!(%error, "the database cannot be followed; the last state is served");
        }
    }

    /// Notes whether a poll succeeded. Returns whether the last one did.
    fn note_poll(&self, succeeds: bool, is_readable: bool) -> bool {
        let mut polls = self.polls.lock();
        polls.is_readable = is_readable;
        std::mem::replace(&mut polls.succeed, succeeds)
    }

    /// The path of the file, as passed to [`Watcher::open`].
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Whether the last poll succeeded and the current one is not overdue.
    pub fn is_polled(&self) -> bool {
        let polls = self.polls.lock();
        let running_for = polls.running_since.map(|since| since.elapsed());
        polls.succeed && running_for.is_none_or(|time| time <= POLL_TIMEOUT)
    }

    /// The time for which commits have been held back.
    pub fn held_back_for(&self) -> Option<Duration> {
        self.polls.lock().held_since.map(|since| since.elapsed())
    }

    /// The reason why the server serves nothing: another publisher took over.
    pub fn fence_reason(&self) -> Option<String> {
        self.fence.as_ref().and_then(FenceWatch::reason)
    }

    /// Shows the newest snapshot to requests.
    fn show_newest(&self, file: &mut WatchedFile) {
        file.held_back = None;
        let state = self.newest.load_full();
        let before = self.shown.swap(Arc::clone(&state));
        file.has_changed = true;
        // Logged afterwards, so a logged commit is already served.
        log_commits(&before, &state);
    }
}

/// Reads the records of a snapshot into memory, before requests need them. Those that need unreadable ones report it.
fn load(snapshot: &Snapshot) {
    if let Err(error) = snapshot.load() {
        tracing::error!(%error, "the records could not be read; `medfeed check` says what is damaged");
    }
}

/// Logs the commits between two snapshots. If the file was replaced, logs its last restore and later commits, or only
/// the newest commit.
fn log_commits(before: &Snapshot, state: &Snapshot) {
    let old = before.commit();
    let new = state.commit();
    let is_other = old.seq > 0 && !state.holds(old.seq, &old.lineage).unwrap_or(true);
    let mut commits = state
        .list_commits(if is_other { 0 } else { old.seq }, MAX_COMMITS_LOGGED)
        .unwrap_or_default();
    if is_other {
        let restore = commits.iter().position(StoredCommit::is_restore);
        tracing::warn!(
            seq = new.seq,
            before = old.seq,
            by = restore.map(|at| commits[at].what.as_str()),
            "the database file was replaced by one with another history; sync tokens that it does not know get 410"
        );
        commits.truncate(restore.map_or(1, |at| at + 1));
    }
    for commit in commits.iter().rev() {
        tracing::info!(
            seq = commit.last_seq,
            who = commit.who,
            what = commit.what,
            "serves a commit"
        );
    }
}

impl SnapshotSource for Watcher {
    fn shown(&self) -> Arc<Snapshot> {
        self.shown.load_full()
    }

    fn newest(&self) -> Arc<Snapshot> {
        self.newest.load_full()
    }

    fn is_readable(&self) -> bool {
        self.polls.lock().is_readable
    }

    fn unservable(&self) -> Option<Unservable> {
        if self.replica().is_some_and(|replica| !replica.is_fresh()) {
            return Some(OUTDATED);
        }
        self.fence
            .as_ref()
            .is_some_and(FenceWatch::is_over)
            .then_some(FENCED)
    }

    fn poll_for_keys(&self, since: Instant) -> bool {
        if let Some(replica) = self.replica() {
            let has_polled = replica.wait_for_poll(since, since + REQUEST_TIMEOUT, KEY_PAUSE);
            // Loads keys even if commits are held back.
            self.catch_up(Instant::now(), &|_| false);
            return has_polled && self.polls.lock().succeed;
        }
        let mut polls = self.polls.lock();
        let timeout = (since + REQUEST_TIMEOUT)
            .saturating_duration_since(Instant::now())
            .min(REQUEST_TIMEOUT);
        // The thread polls regularly, so invalid keys cause no additional polls.
        let waited = self.polled.wait_while_for(
            &mut polls,
            |polls| polls.last_began.is_none_or(|last| last < since),
            timeout,
        );
        !waited.timed_out() && polls.succeed
    }

    fn changes(&self) -> watch::Receiver<()> {
        self.changes.subscribe()
    }

    fn catch_up(&self, since: Instant, accept: &dyn Fn(&Snapshot) -> bool) -> Arc<Snapshot> {
        let mut file = self.file.lock();
        self.guard(&mut file, |file| {
            // Concurrent callers share a poll.
            let last_began = self.polls.lock().last_began;
            if last_began.is_none_or(|last| last < since) {
                self.refresh(file, Instant::now());
            }
            if file.held_back.is_some()
                && (self.change_delay.is_zero() || accept(&self.newest.load()))
            {
                self.show_newest(file);
            }
        });
        self.shown.load_full()
    }

    fn catch_up_with_origin(
        &self,
        since: Instant,
        accept: &dyn Fn(&Snapshot) -> bool,
    ) -> Option<Arc<Snapshot>> {
        self.replica()?
            .wait_for_poll(since, since + REQUEST_TIMEOUT, TOKEN_PAUSE);
        Some(self.catch_up(Instant::now(), accept))
    }

    fn ask_if_lost(&self, seq: u64) -> bool {
        self.replica()
            .is_some_and(|replica| replica.ask_if_lost(seq))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::Scope;
    use crate::store::Writer;
    use crate::store::write::licensing::KeySettings;

    const SECOND: Duration = Duration::from_secs(1);

    #[test]
    fn commits_are_held_back_until_it_is_quiet_and_not_for_ever() {
        let first_at = Instant::now();
        // Seconds after the first commit: the last commit, and now; with a delay of 10 s.
        for (last_s, now_s, expected) in [
            (0, 0, false),
            (0, 9, false),
            (0, 10, true),
            (5, 14, false),
            (5, 15, true),
            (45, 49, false),
            (49, 50, true),
            (60, 60, true),
        ] {
            let held = HeldBack {
                first_at,
                last_at: first_at + SECOND * last_s,
            };
            let is_due = held.is_due(SECOND * 10, first_at + SECOND * now_s);
            assert_eq!(is_due, expected, "{last_s} {now_s}");
        }
    }

    fn commit(path: &Path) -> u64 {
        let writer = Writer::open(path, Duration::ZERO).unwrap();
        let mut edit = writer.begin().unwrap();
        edit.create_key("all", KeySettings::default()).unwrap();
        edit.commit().unwrap();
        writer.snapshot().unwrap().commit().seq
    }

    fn database(folder: &tempfile::TempDir) -> PathBuf {
        let path = folder.path().join("feed.redb");
        let writer = Writer::open_or_create(&path, Duration::ZERO).unwrap();
        let mut edit = writer.begin().unwrap();
        edit.set_license("all", Scope::nothing(), None).unwrap();
        edit.commit().unwrap();
        path
    }

    #[test]
    fn commits_seconds_apart_are_shown_after_the_change_delay() {
        let folder = tempfile::tempdir().unwrap();
        let path = database(&folder);
        let watcher = Watcher::open(&path, SECOND * 10).unwrap();
        let (start, before) = (Instant::now(), watcher.shown().commit().seq);
        let mut seqs = vec![before];
        let mut shown_after = |seconds: u32, is_commit: bool| {
            if is_commit {
                seqs.push(commit(&path));
            }
            watcher.poll(start + SECOND * seconds);
            assert_eq!(watcher.newest().commit().seq, *seqs.last().unwrap());
            let shown = watcher.shown().commit().seq;
            seqs.iter().position(|seq| *seq == shown).unwrap()
        };
        let steps = [(0, true, 0), (9, false, 0), (10, false, 1)];
        for (seconds, is_commit, expected) in steps {
            assert_eq!(shown_after(seconds, is_commit), expected, "{seconds}");
        }
        assert_eq!(watcher.held_back_for(), None);
        // Commits every 8 s: shown after five delays from the first one.
        for seconds in [20, 28, 36, 44, 52, 60, 68] {
            assert_eq!(shown_after(seconds, true), 1, "{seconds}");
        }
        assert_eq!(shown_after(70, false), 8);
        // The next commit begins a new delay.
        assert_eq!(shown_after(71, true), 8);
        assert_eq!((shown_after(80, false), shown_after(81, false)), (8, 9));
    }

    #[test]
    fn an_unknown_key_may_be_valid_until_the_file_is_polled() {
        let folder = tempfile::tempdir().unwrap();
        let path = database(&folder);
        let watcher = Watcher::open(&path, Duration::ZERO).unwrap();
        // The request has waited for as long as it may.
        let Some(since) = Instant::now().checked_sub(REQUEST_TIMEOUT) else {
            return;
        };
        // As while a large commit is read.
        assert!(!watcher.poll_for_keys(since));
        watcher.poll(Instant::now());
        assert!(watcher.poll_for_keys(since));
        std::fs::remove_file(&path).unwrap();
        watcher.poll(Instant::now());
        assert!(!watcher.poll_for_keys(since), "the file is away");
    }

    #[test]
    fn a_poll_is_overdue_after_its_time_limit() {
        let folder = tempfile::tempdir().unwrap();
        let watcher = Watcher::open(&database(&folder), Duration::ZERO).unwrap();
        assert!(watcher.is_polled());
        watcher.polls.lock().running_since = Some(Instant::now());
        assert!(watcher.is_polled());
        if let Some(long_ago) = Instant::now().checked_sub(POLL_TIMEOUT + SECOND) {
            watcher.polls.lock().running_since = Some(long_ago);
            assert!(!watcher.is_polled());
        }
        watcher.poll(Instant::now());
        assert!(watcher.is_polled());
        // All that a poll reads counts, also the publisher's note.
        let is_timed = |watcher: &Watcher| watcher.polls.lock().running_since.is_some();
        let mut during = false;
        watcher.guard(&mut watcher.file.lock(), |_| during = is_timed(&watcher));
        assert_eq!((during, is_timed(&watcher)), (true, false));
        watcher.guard(&mut watcher.file.lock(), |_| panic!("a damaged file"));
        assert_eq!((is_timed(&watcher), watcher.is_polled()), (false, false));
    }
}
