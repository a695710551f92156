//! Publishing a database: the changes of its commits become the next entries of a log in a bucket.
//!
//! - [`start`]: the lock, the test of the store, and whether this database may continue the log. [`end`] reads its end.
//! - [`step`] decides what the next entry is, and writes it. [`states`] writes whole states, and [`sweep`]
//!   deletes old objects after that.
//! - [`watch`]: the heartbeat, and the check for lost objects.
//! - [`fence`]: sends the requests by which the [`protocol`](crate::replicate::protocol) decides whose the log is, and
//!   notes what is published.
//! - [`retry`]: retrying bucket requests. [`lock`]: one publisher per file.
//! - [`progress`]: the state of a running publisher, for monitoring. [`publication_status`]: `medfeed publish
//!   --status`.
//!
//! **Creating `log/N` is the commit point.** It alone orders publishers: the name can be created only once. A publisher
//! that dies before the creation has published nothing. If it dies after it, the next start finds the entry and
//! continues there. Other bytes in the slot mean that another publisher was first. Then this one is *fenced* and ends.
//! [`step`] tells the exception, and all other questions are in the table of the protocol.

mod end;
mod fence;
pub mod lock;
pub mod progress;
pub mod publication_status;
mod publish_error;
pub mod retry;
mod start;
mod states;
mod step;
mod sweep;
#[cfg(test)]
mod tests;
mod watch;

use std::path::PathBuf;
use std::sync::Arc;
use std::thread::sleep;
use std::time::{Duration, Instant};

pub use publish_error::{PublishError, Result};

use self::end::NewestState;
use self::lock::PublisherLock;
use self::progress::{PublisherProgress, PublisherStatus};
use self::retry::Retry;
use crate::model::{DatabaseId, Timestamp, now};
use crate::replicate::protocol::Knowledge;
use crate::replicate::replica::LogReader;
use crate::store::{CommitPoint, Reader, StoreError};

/// The name of the database file and its note among the parts of a publisher that may fail.
const DATABASE: &str = "database";
const POLL_EVERY: Duration = Duration::from_millis(100);
/// The time limit of retries in a single round.
const ONCE_TIMEOUT: Duration = Duration::from_secs(60);

/// The settings of a publisher.
#[derive(Clone, Debug)]
pub struct PublishSettings {
    /// Publish what is pending, then end.
    pub once: bool,
    /// The minimum time between two entries. All commits in between become one entry.
    pub every: Duration,
    /// The period in which every point in time can be restored.
    pub keep: Duration,
    /// The maximum time between two states, if there are entries in between.
    pub state_every: Duration,
    /// The time between two heartbeats. Another publisher is looked for twice as often.
    pub heartbeat: Duration,
    /// Publish a state of this database at the start, whatever the end of the log is.
    pub start_over: bool,
    /// The maximum time to wait for another process that writes to the database.
    pub wait: Duration,
}

impl PublishSettings {
    /// Returns the settings of a single round.
    pub fn once(wait: Duration, start_over: bool) -> PublishSettings {
        PublishSettings {
            once: true,
            every: Duration::ZERO,
            keep: Duration::MAX,
            state_every: Duration::MAX,
            heartbeat: Duration::MAX,
            start_over,
            wait,
        }
    }
}

/// The publisher of a database.
#[derive(Debug)]
pub struct Publisher {
    path: PathBuf,
    log: LogReader,
    settings: PublishSettings,
    reader: Reader,
    status: Arc<PublisherStatus>,
    retry: Retry,
    id: DatabaseId,
    who: String,
    /// The knowledge of this publisher about the log.
    known: Knowledge,
    state: NewestState,
    /// When this run created its last entry.
    entry_at: Option<Instant>,
    /// The last commit after which nothing was pending.
    seen: Option<CommitPoint>,
    /// Whether the note next to the database is out of date.
    note_due: bool,
    heartbeat: HeartbeatTimes,
    _lock: PublisherLock,
}

/// The times and counts of a publisher's heartbeats.
#[derive(Debug, Default)]
struct HeartbeatTimes {
    /// When another publisher was last looked for.
    checked_at: Option<Instant>,
    /// When the last heartbeat was due; `None` if one is due now.
    written_at: Option<Instant>,
    /// The slot that this publisher's last heartbeat named.
    slot: u64,
    /// The time in the last heartbeat of this or an earlier publisher.
    at: Timestamp,
    count: u32,
}

impl HeartbeatTimes {
    /// Takes the time of a heartbeat, its own or another publisher's, so that the next one is later.
    fn observe(&mut self, at: Timestamp) {
        self.at = self.at.max(at);
    }

    /// Returns the time of the next heartbeat. It always grows, so an old heartbeat that is put back is recognized.
    fn next_at(&self) -> Timestamp {
        now().max(self.at.plus_s(1))
    }
}

impl Publisher {
    /// Publishes until a permanent error; with [`PublishSettings::once`] until nothing is pending. Calls `on_caught_up`
    /// once what is pending at the start is published.
    ///
    /// # Errors
    /// [`PublishError`]. After any of them, a new start continues at the end of the log.
    pub fn run(&mut self, on_caught_up: impl FnOnce()) -> Result<PublisherProgress> {
        let mut on_caught_up = Some(on_caught_up);
        loop {
            let is_done = match self.round() {
                Ok(is_done) => {
                    if let Some(notify) = on_caught_up.take() {
                        notify();
                    }
                    is_done
                }
                // For example, the database is being replaced, or a disk is full.
                Err(PublishError::Store(error)) if !self.settings.once && is_transient(&error) => {
                    let error = format!("{}: {error}", self.path.display());
                    self.status.report(DATABASE, &error);
                    false
                }
                Err(error) => return Err(error),
            };
            if self.settings.once && is_done {
                self.end_with_heartbeat()?;
                return Ok(self.status.progress());
            }
            sleep(POLL_EVERY);
        }
    }

    /// Polls once; returns whether nothing is pending.
    fn round(&mut self) -> Result<bool> {
        let is_done = self.publish_next()?;
        self.status.passed(DATABASE);
        self.heartbeat_if_due()?;
        if is_done {
            self.status
                .update(|progress| progress.all_published_at = Some(Instant::now()));
        }
        if self.note_due {
            self.note();
        }
        Ok(is_done)
    }
}

/// Whether a failure of the database is temporary, or can be fixed without a restart of the publisher.
fn is_transient(error: &StoreError) -> bool {
    use StoreError::{Busy, DiskFull, Io, NeedsRepair, NotFound, Replaced};
    matches!(
        error,
        Busy { .. }
            | DiskFull(_)
            | Io { .. }
            | NeedsRepair { .. }
            | NotFound { .. }
            | Replaced { .. }
    )
}
