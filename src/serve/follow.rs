//! Following the database: one thread looks for commits and swaps the snapshot that answers are made from.

use std::fmt::Display;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, TryRecvError, channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use arc_swap::ArcSwap;

use crate::api::Source;
use crate::store::{Follower, Snapshot, StoreError};

/// How often the file is looked at.
const POLL_EVERY: Duration = Duration::from_millis(100);
/// Commits that are taken over at once and told of one by one, at the most.
const MAX_COMMITS_LOGGED: usize = 20;
/// A held-back commit is published at the latest after so many delays.
const MOST_DELAYS: u32 = 5;

/// A look that takes longer has lost the disk. A large commit is taken in within a second or two.
const LOST_AFTER: Duration = Duration::from_secs(10);
/// How long looking rests after the file could not be read.
const BROKEN_REST: Duration = Duration::from_secs(5);
/// How long the end waits for a thread, which may wait for the disk.
const END_WAIT: Duration = Duration::from_secs(3);

/// The followed database.
#[derive(Debug)]
pub struct Follow {
    path: PathBuf,
    /// Held while the file is looked at, which may take long: for those alone who may wait.
    polled: Mutex<Polled>,
    /// How many looks have begun.
    looks: AtomicU64,
    /// Since when the file is being looked at.
    looking_since: Mutex<Option<Instant>>,
    published: ArcSwap<Snapshot>,
    newest: ArcSwap<Snapshot>,
    change_delay: Duration,
    followed: AtomicBool,
    readable: AtomicBool,
}

#[derive(Debug)]
struct Polled {
    follower: Follower,
    held_back: Option<HeldBack>,
    /// Set when the engine panicked: until when looking rests. Then the file is opened anew.
    broken: Option<Instant>,
}

/// Commits that wait for the change delay.
#[derive(Clone, Copy, Debug)]
struct HeldBack {
    first_at: Instant,
    last_at: Instant,
}

impl HeldBack {
    fn is_due(&self, delay: Duration, now: Instant) -> bool {
        now.duration_since(self.last_at) >= delay || now.duration_since(self.first_at) >= delay * MOST_DELAYS
    }
}

impl Follow {
    /// Opens the database. New commits are published when none has come for `change_delay`.
    ///
    /// # Errors
    /// What [`Follower::open`] says.
    pub fn open(path: &Path, change_delay: Duration) -> Result<Follow, StoreError> {
        let follower = Follower::open(path)?;
        let snapshot = Arc::clone(follower.newest());
        Ok(Follow {
            path: path.to_owned(),
            polled: Mutex::new(Polled { follower, held_back: None, broken: None }),
            looks: AtomicU64::new(0),
            looking_since: Mutex::new(None),
            published: ArcSwap::new(Arc::clone(&snapshot)),
            newest: ArcSwap::new(snapshot),
            change_delay,
            followed: AtomicBool::new(true),
            readable: AtomicBool::new(true),
        })
    }

    /// Looks at the file in a thread of its own until the returned handle is dropped. Another reads what requests will
    /// ask for into memory, so that the first ones need not; they do not wait for it.
    ///
    /// # Errors
    /// When the operating system gives no thread.
    pub fn start(self: &Arc<Self>) -> std::io::Result<Following> {
        let follow = Arc::clone(self);
        let mut following = Following::spawn("follow", move |stopped| {
            while stopped.recv_timeout(POLL_EVERY) == Err(RecvTimeoutError::Timeout) {
                follow.poll(Instant::now());
            }
        })?;
        let follow = Arc::clone(self);
        let warming = Following::spawn("warm", move |stopped| {
            follow.warm(&|| stopped.try_recv() != Err(TryRecvError::Disconnected));
        })?;
        following.also(warming);
        Ok(following)
    }

    /// Reads the newest state into memory, as far as there is room.
    fn warm(&self, go_on: &dyn Fn() -> bool) {
        loop {
            let snapshot = self.newest.load_full();
            if let Err(error) = snapshot.warm(go_on) {
                tracing::error!(%error, "the records could not be read");
            }
            // What was read into an older state was not brought forward to the newer one.
            if !go_on() || Arc::ptr_eq(&snapshot, &*self.newest.load()) {
                return;
            }
        }
    }

    /// Says how many bytes of records' texts may be kept in memory.
    pub fn limit_record_cache(&self, bytes: u64) {
        self.newest.load().record_cache().limit_to(bytes);
    }

    /// Says how many bytes feeds and their columns may take in memory.
    pub fn limit_feed_cache(&self, bytes: u64) {
        self.newest.load().feed_cache().limit_to(bytes);
    }

    fn poll(&self, now: Instant) {
        let mut polled = self.polled();
        self.step(&mut polled, |polled| {
            self.look(polled, now);
            if polled.held_back.is_some_and(|held| held.is_due(self.change_delay, now)) {
                self.publish(polled);
            }
        });
    }

    /// Does something with the file. A panic of the engine, which a damaged file can bring about, is one failure more.
    fn step(&self, polled: &mut Polled, work: impl FnOnce(&mut Polled)) {
        if catch_unwind(AssertUnwindSafe(|| work(polled))).is_err() {
            polled.broken = Some(Instant::now() + BROKEN_REST);
            self.looked();
            self.lose(&"reading it panicked", false);
        }
    }

    /// Takes the newest state in; it is held back from now on if it is new.
    fn look(&self, polled: &mut Polled, now: Instant) {
        if polled.broken.is_some_and(|until| now < until) {
            return;
        }
        self.looks.fetch_add(1, Ordering::SeqCst);
        *self.looking_since() = Some(Instant::now());
        let found = self.refresh(polled);
        self.looked();
        match found {
            Ok(newest) => {
                if !Arc::ptr_eq(&newest, &*self.newest.load()) {
                    let first_at = polled.held_back.map_or(now, |held| held.first_at);
                    polled.held_back = Some(HeldBack { first_at, last_at: now });
                    self.newest.store(newest);
                }
                self.readable.store(true, Ordering::Relaxed);
                if !self.followed.swap(true, Ordering::Relaxed) {
                    tracing::info!("the database can be followed again");
                }
            }
            Err(error) => {
                // Where the path leads nowhere the open file still can be read; where the engine fails it cannot.
                let readable = !matches!(error, StoreError::Engine(_) | StoreError::Damaged { .. });
                if !readable {
                    polled.broken = Some(now + BROKEN_REST);
                }
                self.lose(&error, readable);
            }
        }
    }

    fn refresh(&self, polled: &mut Polled) -> Result<Arc<Snapshot>, StoreError> {
        if polled.broken.is_some() {
            // A handle that met damage may be of no more use.
            let follower = Follower::open(&self.path)?;
            follower.newest().record_cache().limit_to(self.newest.load().record_cache().max_bytes());
            follower.newest().feed_cache().limit_to(self.newest.load().feed_cache().max_bytes());
            polled.follower = follower;
            polled.broken = None;
        }
        polled.follower.refresh().cloned()
    }

    fn looked(&self) {
        *self.looking_since() = None;
    }

    /// The last state goes on being served; the log is told once, not ten times a second.
    fn lose(&self, error: &dyn Display, readable: bool) {
        self.readable.store(readable, Ordering::Relaxed);
        if self.followed.swap(false, Ordering::Relaxed) {
            tracing::error!(%error, "the database cannot be followed; the last state is served");
        }
    }

    /// Whether the last look at the file worked, and the present one does not take too long.
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

    fn publish(&self, polled: &mut Polled) {
        polled.held_back = None;
        let newest = self.newest.load_full();
        // After a rollback it may be an earlier one; then the newest alone is told.
        let since = self.published.load().commit().seq.min(newest.commit().seq.saturating_sub(1));
        for commit in newest.list_commits(since, MAX_COMMITS_LOGGED).unwrap_or_default().iter().rev() {
            tracing::info!(seq = commit.seq, who = commit.who, what = commit.what, "took over a commit");
        }
        self.published.store(newest);
    }
}

impl Source for Follow {
    fn published(&self) -> Arc<Snapshot> {
        self.published.load_full()
    }

    fn newest(&self) -> Arc<Snapshot> {
        self.newest.load_full()
    }

    fn is_readable(&self) -> bool {
        self.readable.load(Ordering::Relaxed)
    }

    fn looks(&self) -> u64 {
        self.looks.load(Ordering::SeqCst)
    }

    fn catch_up(&self, looks: u64, accept: &dyn Fn(&Snapshot) -> bool) -> Arc<Snapshot> {
        let mut polled = self.polled();
        self.step(&mut polled, |polled| {
            // Of those who wait here, one looks for all.
            if self.looks() == looks {
                self.look(polled, Instant::now());
            }
            if polled.held_back.is_some() && (self.change_delay.is_zero() || accept(&self.newest.load())) {
                self.publish(polled);
            }
        });
        self.published.load_full()
    }
}

/// Running threads; they end when this is dropped.
#[derive(Debug)]
pub struct Following {
    threads: Vec<Thread>,
}

#[derive(Debug)]
struct Thread {
    stop: Sender<()>,
    /// Disconnected when the thread is at its end.
    ended: Receiver<()>,
    handle: JoinHandle<()>,
}

impl Following {
    /// A thread of a name. Its work ends when the sender of what it is given is gone.
    pub(super) fn spawn(name: &str, work: impl FnOnce(&Receiver<()>) + Send + 'static) -> std::io::Result<Following> {
        let (stop, stopped) = channel();
        let (alive, ended) = channel();
        let handle = std::thread::Builder::new().name(name.to_owned()).spawn(move || {
            // Dropped at the end, of a panic too.
            let _alive: Sender<()> = alive;
            work(&stopped);
        })?;
        Ok(Following { threads: vec![Thread { stop, ended, handle }] })
    }

    /// Others too.
    fn also(&mut self, other: Following) {
        let mut other = other;
        self.threads.append(&mut other.threads);
    }
}

impl Drop for Following {
    fn drop(&mut self) {
        let (stops, ends): (Vec<_>, Vec<_>) =
            self.threads.drain(..).map(|Thread { stop, ended, handle }| (stop, (ended, handle))).unzip();
        drop(stops);
        let deadline = Instant::now() + END_WAIT;
        for (ended, handle) in ends {
            let left = deadline.saturating_duration_since(Instant::now());
            if ended.recv_timeout(left) == Err(RecvTimeoutError::Timeout) {
                let thread = handle.thread().name().unwrap_or_default().to_owned();
                tracing::warn!(thread, "ending without a thread that waits, most likely for the disk");
                continue;
            }
            // A panic of the thread was logged when it happened.
            let _ = handle.join();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_that_waits_holds_the_end_up_for_moments_only() {
        let (_disk, wait_disk) = channel::<()>();
        let waits = Following::spawn("waits", move |_| assert!(wait_disk.recv().is_err())).unwrap();
        let mut ends = Following::spawn("ends", |stopped| assert!(stopped.recv().is_err())).unwrap();
        ends.also(waits);
        let began = Instant::now();
        drop(ends);
        let took = began.elapsed();
        assert!((END_WAIT..END_WAIT * 5).contains(&took), "the end took {took:?}");
    }
}
