//! Following the database: one thread looks for commits and swaps the snapshot that answers are made from.

use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{RecvTimeoutError, Sender, TryRecvError, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use arc_swap::ArcSwap;

use crate::api::Source;
use crate::store::{Follower, Snapshot, StoreError};

/// How often the file is looked at.
const POLL_EVERY: Duration = Duration::from_millis(100);
/// A held-back commit is published at the latest after so many delays.
const MOST_DELAYS: u32 = 5;

/// The followed database.
#[derive(Debug)]
pub struct Follow {
    follower: Mutex<Polled>,
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
            follower: Mutex::new(Polled { follower, held_back: None }),
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
        let (stop, stopped) = channel::<()>();
        let follow = Arc::clone(self);
        let thread = std::thread::Builder::new().name("follow".to_owned()).spawn(move || {
            while stopped.recv_timeout(POLL_EVERY) == Err(RecvTimeoutError::Timeout) {
                follow.poll(Instant::now());
            }
        })?;
        let mut following = Following::of(stop, thread);
        let (stop, stopped) = channel::<()>();
        let follow = Arc::clone(self);
        let thread = std::thread::Builder::new().name("warm".to_owned()).spawn(move || {
            follow.warm(&|| stopped.try_recv() != Err(TryRecvError::Disconnected));
        })?;
        following.also(stop, thread);
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
    pub fn limit_record_cache(&self, bytes: usize) {
        self.newest.load().bodies().limit_to(bytes);
    }

    fn poll(&self, now: Instant) {
        let mut polled = self.follower.lock().unwrap_or_else(PoisonError::into_inner);
        self.look(&mut polled, now);
        if polled.held_back.is_some_and(|held| held.is_due(self.change_delay, now)) {
            self.publish(&mut polled);
        }
    }

    /// Takes the newest state in; it is held back from now on if it is new.
    fn look(&self, polled: &mut Polled, now: Instant) {
        match polled.follower.refresh() {
            Ok(newest) => {
                if !Arc::ptr_eq(newest, &*self.newest.load()) {
                    self.newest.store(Arc::clone(newest));
                    let first_at = polled.held_back.map_or(now, |held| held.first_at);
                    polled.held_back = Some(HeldBack { first_at, last_at: now });
                }
                self.readable.store(true, Ordering::Relaxed);
                if !self.followed.swap(true, Ordering::Relaxed) {
                    tracing::info!("the database can be followed again");
                }
            }
            Err(error) => {
                // Where the path leads nowhere the open file still can be read; where the engine fails it cannot.
                let readable = !matches!(error, StoreError::Engine(_) | StoreError::Damaged { .. });
                self.readable.store(readable, Ordering::Relaxed);
                // The last state goes on being served; the log is told once, not ten times a second.
                if self.followed.swap(false, Ordering::Relaxed) {
                    tracing::error!(%error, "the database cannot be followed; the last state is served");
                }
            }
        }
    }

    /// Whether the last look at the file worked.
    pub fn is_followed(&self) -> bool {
        self.followed.load(Ordering::Relaxed)
    }

    fn publish(&self, polled: &mut Polled) {
        polled.held_back = None;
        let newest = self.newest.load_full();
        tracing::debug!(seq = newest.commit().seq, "took over a commit");
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

    fn catch_up(&self, accept: &dyn Fn(&Snapshot) -> bool) -> Arc<Snapshot> {
        let mut polled = self.follower.lock().unwrap_or_else(PoisonError::into_inner);
        self.look(&mut polled, Instant::now());
        if polled.held_back.is_some() && (self.change_delay.is_zero() || accept(&self.newest.load())) {
            self.publish(&mut polled);
        }
        self.published.load_full()
    }
}

/// Running threads; they end when this is dropped.
#[derive(Debug)]
pub struct Following {
    threads: Vec<(Sender<()>, JoinHandle<()>)>,
}

impl Following {
    /// A thread that ends when the sender of `stop` is dropped.
    pub(super) fn of(stop: Sender<()>, thread: JoinHandle<()>) -> Following {
        Following { threads: vec![(stop, thread)] }
    }

    /// Another such thread.
    fn also(&mut self, stop: Sender<()>, thread: JoinHandle<()>) {
        self.threads.push((stop, thread));
    }
}

impl Drop for Following {
    fn drop(&mut self) {
        let (stops, threads): (Vec<_>, Vec<_>) = self.threads.drain(..).unzip();
        drop(stops);
        for thread in threads {
            // A panic of the thread was logged when it happened.
            let _ = thread.join();
        }
    }
}
