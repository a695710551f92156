//! The watcher of the database file: one thread looks for commits and swaps the snapshot that answers are made from.

use std::fmt::Display;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{RecvTimeoutError, TryRecvError};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use arc_swap::ArcSwap;

use crate::api::SnapshotSource;
use crate::api::source::{Listener, TooOld};
use crate::serve::following::after_publish::{PublishedOnly, is_published};
use crate::serve::following::background::BackgroundTasks;
use crate::serve::following::fence::FenceWatch;
use crate::store::{CommitEntry, CommitPoint, Follower, Snapshot, StoreError};

/// The time between two looks at the file.
const POLL_EVERY: Duration = Duration::from_millis(100);
/// The most commits logged one by one when several are published at once.
const MAX_COMMITS_LOGGED: usize = 20;
/// A held-back commit is published after this many delays at the latest, even if more commits come.
const MAX_DELAYS: u32 = 5;

/// A look that takes longer counts as a lost disk. A large commit is read within a second or two.
const LOST_AFTER: Duration = Duration::from_secs(10);
/// The pause before the next look after the file could not be read.
const BROKEN_REST: Duration = Duration::from_secs(5);
/// How long a request waits for the publisher's note, whose token a replica gave that had the commit from the bucket already.
const NOTE_PATIENCE: Duration = Duration::from_secs(2);
/// How long a request with an unknown key waits at most for the next look at the file.
const KEY_PATIENCE: Duration = Duration::from_secs(2);
/// What is answered while the bucket has no state that may be shown.
const UNPUBLISHED: TooOld =
    TooOld { retry_after_s: 1, why: "This server shows what is published, and nothing is so far." };

/// The answer once another publisher took over from the database longer ago than allowed.
const FENCED: TooOld =
    TooOld { retry_after_s: 10, why: "This server's data is no longer kept up to date; another server has it." };

/// The watched database: the published snapshot, and the newest one if it is held back.
#[derive(Debug)]
pub struct Watcher {
    path: PathBuf,
    /// Locked during a look at the file, which may take long: only threads that may block lock it.
    polled: Mutex<Polled>,
    /// The number of looks begun so far.
    looks: AtomicU64,
    /// The start of the present look.
    looking_since: Mutex<Option<Instant>>,
    /// The start of the last look that is over, and who waits for a later one.
    last_look: (Mutex<Option<Instant>>, Condvar),
    published: ArcSwap<Snapshot>,
    newest: ArcSwap<Snapshot>,
    change_delay: Duration,
    /// Where set, only states that the bucket has are published.
    only: Option<PublishedOnly>,
    /// Notices that another publisher took over; `None` for a replica, which follows that one.
    fence: Option<FenceWatch>,
    /// Whether the published state may be shown: it may not before the bucket has it.
    shown: AtomicBool,
    /// Since when commits are held back.
    held_since: Mutex<Option<Instant>>,
    followed: AtomicBool,
    readable: AtomicBool,
    listeners: Listeners,
}

/// Who is told of every further state.
#[derive(Default)]
struct Listeners(Mutex<Vec<Listener>>);

impl std::fmt::Debug for Listeners {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Listeners(..)")
    }
}

/// What a look at the file works on.
#[derive(Debug)]
struct Polled {
    follower: Follower,
    held_back: Option<HeldBack>,
    /// A held-back state that waits for the bucket, and when it began to. Later commits do not take its place, else none would
    /// ever be shown while they go on.
    awaited: Option<(Arc<Snapshot>, Instant)>,
    /// Set when the file could not be read: the time of the next look, which opens the file anew.
    broken: Option<Instant>,
    /// Whether the newest or the published state is another one, of which listeners do not know yet.
    is_news: bool,
}

/// Commits that wait for the change delay, or for the bucket.
#[derive(Clone, Copy, Debug)]
struct HeldBack {
    first_at: Instant,
    last_at: Instant,
}

impl HeldBack {
    fn is_due(&self, delay: Duration, now: Instant) -> bool {
        now.duration_since(self.last_at) >= delay || now.duration_since(self.first_at) >= delay * MAX_DELAYS
    }
}

impl Watcher {
    /// Opens the database. New commits are published when none has come for `change_delay`.
    ///
    /// # Errors
    /// What [`Follower::open`] says.
    pub fn open(path: &Path, change_delay: Duration) -> Result<Watcher, StoreError> {
        let follower = Follower::open(path)?;
        let snapshot = Arc::clone(follower.newest());
        Ok(Watcher {
            path: path.to_owned(),
            polled: Mutex::new(Polled { follower, held_back: None, awaited: None, broken: None, is_news: false }),
            looks: AtomicU64::new(0),
            looking_since: Mutex::new(None),
            last_look: Default::default(),
            published: ArcSwap::new(Arc::clone(&snapshot)),
            newest: ArcSwap::new(snapshot),
            change_delay,
            only: None,
            fence: None,
            shown: AtomicBool::new(true),
            held_since: Mutex::default(),
            followed: AtomicBool::new(true),
            readable: AtomicBool::new(true),
            listeners: Listeners::default(),
        })
    }

    /// Publishes states only when the bucket has them, from the first one on: what no bucket has a lost machine takes along.
    /// Waits for that so long.
    pub fn after_publish(mut self, database: PathBuf, patience: Duration) -> Watcher {
        let begun = Instant::now();
        self.only = Some(PublishedOnly::of(database));
        self.shown = AtomicBool::new(false);
        self.polled().held_back = Some(HeldBack { first_at: begun, last_at: begun });
        while !self.has_shown() && begun.elapsed() < patience {
            let polled = &mut self.polled();
            self.step(polled, |polled| {
                self.look(polled, begun);
                // The delay is for what comes while callers look on.
                self.release(polled, true, begun);
            });
            std::thread::sleep(POLL_EVERY);
        }
        self
    }

    /// Heeds the note of the database's publisher: once another one took over, answers are given for a limited time.
    pub fn heeding_fence(mut self, database: PathBuf, staleness: Duration) -> Watcher {
        self.fence = Some(FenceWatch::new(database, staleness));
        self.look_for_fence(&self.polled());
        self
    }

    fn look_for_fence(&self, polled: &Polled) {
        if let Some(fence) = &self.fence {
            fence.look(|| polled.follower.origin()?.id());
        }
    }

    /// Whether another publisher took over from the database.
    pub fn is_fenced(&self) -> bool {
        self.fence.as_ref().is_some_and(FenceWatch::is_fenced)
    }

    fn has_shown(&self) -> bool {
        self.shown.load(Ordering::Relaxed)
    }

    /// Starts the thread that looks at the file, and one that reads ahead what requests will ask for. Both run until the
    /// returned handle is dropped; requests do not wait for the reading.
    ///
    /// # Errors
    /// When the operating system gives no thread.
    pub fn start(self: &Arc<Self>) -> std::io::Result<BackgroundTasks> {
        let watcher = Arc::clone(self);
        let mut tasks = BackgroundTasks::spawn("follow", move |stopped| {
            while stopped.recv_timeout(POLL_EVERY) == Err(RecvTimeoutError::Timeout) {
                watcher.poll(Instant::now());
            }
        })?;
        let watcher = Arc::clone(self);
        tasks.join(BackgroundTasks::spawn("warm", move |stopped| {
            watcher.warm(&|| stopped.try_recv() != Err(TryRecvError::Disconnected));
        })?);
        Ok(tasks)
    }

    /// Reads the newest state into memory until the caches are full.
    fn warm(&self, go_on: &dyn Fn() -> bool) {
        loop {
            let snapshot = self.newest.load_full();
            if let Err(error) = snapshot.warm(go_on) {
                tracing::error!(%error, "the records could not be read");
            }
            // What was read for an older state was not advanced to the newer one.
            if !go_on() || Arc::ptr_eq(&snapshot, &*self.newest.load()) {
                return;
            }
        }
    }

    fn poll(&self, now: Instant) {
        let mut polled = self.polled();
        self.step(&mut polled, |polled| {
            self.look(polled, now);
            let is_due = polled.held_back.is_some_and(|held| held.is_due(self.change_delay, now));
            self.release(polled, is_due, now);
            self.look_for_fence(polled);
        });
    }

    /// Runs a step that works on the file. A panic of the engine, which a damaged file can cause, counts as a failed look.
    fn step(&self, polled: &mut Polled, work: impl FnOnce(&mut Polled)) {
        if catch_unwind(AssertUnwindSafe(|| work(polled))).is_err() {
            polled.broken = Some(Instant::now() + BROKEN_REST);
            self.looked();
            self.lose(&"reading it panicked", false);
        }
        *self.held_since() = polled.held_back.map(|held| held.first_at);
        if std::mem::take(&mut polled.is_news) {
            self.listeners.0.lock().unwrap_or_else(PoisonError::into_inner).retain(|listener| listener());
        }
    }

    /// Reads the newest state. A new one is held back from now on.
    fn look(&self, polled: &mut Polled, now: Instant) {
        if polled.broken.is_some_and(|until| now < until) {
            return;
        }
        self.looks.fetch_add(1, Ordering::SeqCst);
        let begun = Instant::now();
        *self.looking_since() = Some(begun);
        let found = self.refresh(polled);
        self.looked();
        match found {
            Ok(newest) => {
                if !Arc::ptr_eq(&newest, &*self.newest.load()) {
                    let first_at = polled.held_back.map_or(now, |held| held.first_at);
                    polled.held_back = Some(HeldBack { first_at, last_at: now });
                    self.newest.store(newest);
                    polled.is_news = true;
                }
                self.readable.store(true, Ordering::Relaxed);
                if !self.followed.swap(true, Ordering::Relaxed) {
                    tracing::info!("the database can be followed again");
                }
            }
            Err(error) => {
                // Where the path leads nowhere the open file still can be read; where the engine fails it cannot.
                let readable = !matches!(
                    error,
                    StoreError::Engine(_) | StoreError::Damaged { .. } | StoreError::UnknownRow { .. }
                );
                if !readable {
                    polled.broken = Some(now + BROKEN_REST);
                }
                self.lose(&error, readable);
            }
        }
        *self.last_look.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(begun);
        self.last_look.1.notify_all();
    }

    fn refresh(&self, polled: &mut Polled) -> Result<Arc<Snapshot>, StoreError> {
        if polled.broken.is_some() {
            // A handle that met damage may be of no more use.
            let follower = Follower::open(&self.path)?;
            follower.newest().record_cache().set_capacity(self.newest.load().record_cache().capacity());
            follower.newest().feed_cache().set_capacity(self.newest.load().feed_cache().capacity());
            polled.follower = follower;
            polled.broken = None;
        }
        polled.follower.refresh().cloned()
    }

    fn looked(&self) {
        *self.looking_since() = None;
    }

    /// Notes a failed look. The last state is still served; the log is told once, not ten times a second.
    fn lose(&self, error: &dyn Display, readable: bool) {
        self.readable.store(readable, Ordering::Relaxed);
        if self.followed.swap(false, Ordering::Relaxed) {
            tracing::error!(%error, "the database cannot be followed; the last state is served");
        }
    }

    /// The path of the file, as it was given.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Whether the last look at the file succeeded and the present one is not overdue.
    pub fn is_followed(&self) -> bool {
        let lost = self.looking_since().is_some_and(|since| since.elapsed() > LOST_AFTER);
        self.followed.load(Ordering::Relaxed) && !lost
    }

    fn polled(&self) -> MutexGuard<'_, Polled> {
        self.polled.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn looking_since(&self) -> MutexGuard<'_, Option<Instant>> {
        self.looking_since.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn held_since(&self) -> MutexGuard<'_, Option<Instant>> {
        self.held_since.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// For how long commits have been held back.
    pub fn held_back_for(&self) -> Option<Duration> {
        self.held_since().map(|since| since.elapsed())
    }

    /// Why nothing can be shown or the state is another database's by now, or why held-back commits stay so.
    pub fn trouble(&self) -> Option<String> {
        if let Some(reason) = self.fence.as_ref().and_then(FenceWatch::reason) {
            return Some(reason);
        }
        let trouble = self.only.as_ref()?.trouble();
        if self.has_shown() {
            return trouble;
        }
        let why = trouble.unwrap_or_else(|| "look whether `medfeed publish` runs".to_owned());
        Some(format!("the bucket does not have what this server started with, so it answers 503: {why}"))
    }

    /// What the state that is not in the bucket yet is about, for people.
    pub fn backlog(&self) -> Option<String> {
        let (held_for, newest) = (self.only.as_ref().and(self.held_back_for())?, self.newest.load().commit().seq);
        let published = self.published.load().commit().seq;
        Some(format!(
            "callers see seq {published}; the bucket does not have all up to seq {newest}, for {} s now",
            held_for.as_secs()
        ))
    }

    /// Publishes the newest held-back state that may be shown. `is_due` says that the change delay is over for the newest of all.
    fn release(&self, polled: &mut Polled, is_due: bool, now: Instant) {
        let newest = self.newest.load_full();
        let Some(only) = &self.only else {
            if is_due {
                self.publish(polled, newest);
            }
            return;
        };
        // Read even if nothing is held back: it tells who took over.
        let note = only.note();
        if polled.held_back.is_none() {
            return;
        }
        // Another file took the place of the one that it was read from.
        let is_gone = |end: CommitPoint| !newest.holds(end.seq, &end.lineage).unwrap_or(false);
        polled.awaited.take_if(|(awaited, _)| is_gone(awaited.commit()));
        let is_published = |state: &Snapshot| {
            let found = note.as_ref().map(|note| is_published(note, state, &newest)).transpose();
            found.unwrap_or_else(|error| {
                tracing::error!(%error, "it cannot be told what is published");
                None
            })
        };
        if is_due && is_published(&newest) == Some(true) {
            self.publish(polled, Arc::clone(&newest));
        } else if let Some((awaited, since)) =
            polled.awaited.take_if(|(awaited, _)| is_published(awaited) == Some(true))
        {
            let later = polled.held_back.filter(|_| awaited.commit() != newest.commit());
            self.publish(polled, awaited);
            polled.held_back = later.map(|held| HeldBack { first_at: since, ..held });
        }
        if is_due && polled.held_back.is_some() && polled.awaited.is_none() {
            polled.awaited = Some((newest, now));
        }
    }

    /// Makes a state the one that answers are made from.
    fn publish(&self, polled: &mut Polled, state: Arc<Snapshot>) {
        (polled.held_back, polled.awaited) = (None, None);
        log_commits(&self.published.load(), &state);
        self.published.store(state);
        self.shown.store(true, Ordering::Relaxed);
        polled.is_news = true;
    }
}

/// Logs the commits by which a state is newer than the one before. If the file was replaced, those are its last restore and what
/// follows it, or the newest commit alone.
fn log_commits(before: &Snapshot, state: &Snapshot) {
    let (old, new) = (before.commit(), state.commit());
    let is_other = old.seq > 0 && !state.holds(old.seq, &old.lineage).unwrap_or(true);
    let mut commits = state.list_commits(if is_other { 0 } else { old.seq }, MAX_COMMITS_LOGGED).unwrap_or_default();
    if is_other {
        let restore = commits.iter().position(CommitEntry::is_restore);
        tracing::warn!(
            seq = new.seq,
            before = old.seq,
            by = restore.map(|at| commits[at].what.as_str()),
            "the database file was replaced by one with another history; sync tokens that it does not know get 410"
        );
        commits.truncate(restore.map_or(1, |at| at + 1));
    }
    for commit in commits.iter().rev() {
        tracing::info!(seq = commit.seq, who = commit.who, what = commit.what, "took over a commit");
    }
}

impl SnapshotSource for Watcher {
    fn published(&self) -> Arc<Snapshot> {
        self.published.load_full()
    }

    fn newest(&self) -> Arc<Snapshot> {
        self.newest.load_full()
    }

    fn is_readable(&self) -> bool {
        self.readable.load(Ordering::Relaxed)
    }

    fn is_too_old(&self) -> Option<TooOld> {
        if !self.has_shown() {
            return Some(UNPUBLISHED);
        }
        self.fence.as_ref().is_some_and(FenceWatch::is_over).then_some(FENCED)
    }

    fn looks(&self) -> u64 {
        self.looks.load(Ordering::SeqCst)
    }

    fn may_lack_keys(&self) -> bool {
        true
    }

    fn look_for_keys(&self, since: Instant) {
        let (last, changed) = &self.last_look;
        let last = last.lock().unwrap_or_else(PoisonError::into_inner);
        let patience = (since + KEY_PATIENCE).saturating_duration_since(Instant::now()).min(KEY_PATIENCE);
        // The thread that follows the file looks anyway, so made-up keys cost no look.
        let is_earlier = |last: &mut Option<Instant>| last.is_none_or(|last| last < since);
        drop(changed.wait_timeout_while(last, patience, is_earlier));
    }

    fn subscribe(&self, listener: Listener) {
        self.listeners.0.lock().unwrap_or_else(PoisonError::into_inner).push(listener);
    }

    fn catch_up(&self, looks: u64, accept: &dyn Fn(&Snapshot) -> bool) -> Arc<Snapshot> {
        let mut polled = self.polled();
        self.step(&mut polled, |polled| {
            // Of those who wait here, one looks for all.
            if self.looks() == looks {
                self.look(polled, Instant::now());
            }
            let is_due = polled.held_back.is_some() && (self.change_delay.is_zero() || accept(&self.newest.load()));
            self.release(polled, is_due, Instant::now());
        });
        self.published.load_full()
    }

    fn catch_up_with_origin(&self, since: Instant, accept: &dyn Fn(&Snapshot) -> bool) -> Option<Arc<Snapshot>> {
        self.only.as_ref()?;
        loop {
            let published = self.catch_up(self.looks(), accept);
            if accept(&published) || since.elapsed() >= NOTE_PATIENCE {
                return Some(published);
            }
            std::thread::sleep(POLL_EVERY);
        }
    }
}
