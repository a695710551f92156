//! Publishing a database: the changes of its commits become the next entries of a log in a bucket.
//!
//! - [`start`]: the lock, the test of the store, and whether this database may continue the log. [`end`] reads its end.
//! - [`step`] decides what the next entry is, and writes it. [`states`] writes whole states, and deletes
//!   old objects after that.
//! - [`watch`]: the heartbeat, and the check for lost objects.
//! - [`fence`]: sends the requests by which the [`protocol`](crate::replicate::protocol) decides whose the log is, and
//!   notes what is published.
//! - [`retry`]: retrying bucket requests. [`lock`]: one publisher per file.
//! - [`progress`]: the state of a running publisher, for monitoring. [`publication_status`]: `medfeed publish
//!   --status`.
//!
//! # Publishing
//!
//! `replicate/publisher` writes the outbox as the next entry of one log. An entry holds commits, or says that the log
//! continues from the whole state of its slot. A whole state is a manifest and the parts that it names. All objects
//! are one frame (`replicate/frame.rs`). A frame ends with a hash, names its database and slot, and has exactly one
//! encoding. Each entry names the hash of the previous one. `LogReader` (`replicate/replica/log.rs`) reads and
//! compares objects for everyone: replicas, the publisher, `check`, `backup` and `promote`.
//!
//! **Creating `log/N` is the commit point.** It alone orders publishers: the name can be created only once. A publisher
//! that dies before the creation has published nothing. If it dies after it, the next start finds the entry and
//! continues there. The bytes of an entry are built once, and sent until the store confirms them. After a refusal the
//! publisher reads the object. It may be its own, from a request whose response was lost. Other bytes mean that another
//! publisher was first. Then this one is *fenced* and ends. There is one exception: the bytes come from the same file's publisher, killed while
//! its request was under way, and this one has created no entry yet. `NAME.publisher` holds a lock and a random name
//! for this, and entries carry that name. A publisher that was suspended for weeks may find its name free again,
//! because old entries were deleted. Deletion follows the order of slots. So after each entry the publisher checks that
//! the previous one is still the same. If it is gone, it looks for later states.
//!
//! **A start** continues after the end of the log, if its database contains the commit of that end. So a killed
//! publisher leaves nothing to repair. If the outbox does not reach from there to now, the next entry says that the
//! log continues from a whole state. That happens at first, after `restore`, after a very large commit, and with a
//! damaged outbox.
//!
//! **A state is also written** when much has changed since the last one, so that new replicas start from it. It is an
//! entry too, with the head and digest of the entry before. Replicas that have these rows do not load it. Commits wait
//! meanwhile: for a fraction of a second with 12,000 records, and longer with more. The heartbeat goes on. The parts
//! are written before the entry, four at a time, and the manifest after it. If a publisher is killed in between, the
//! next entry is another state, before any commits. Otherwise new replicas could not get past the one without a
//! manifest.
//!
//! **Old objects** are deleted after that, by the clock of the store. Two whole states always stay. If an object cannot
//! be deleted, the next state tries again.
//!
//! **The heartbeat** (`publisher/watch.rs`) overwrites the object `alive` every `--heartbeat`. Before that, also
//! before it repeats a failed request, the publisher looks for another publisher's entry. It looks for its own last
//! entry, and for the newest manifest or the last heartbeat in turn. From time to time it lists all parts and entries.
//! If an object is missing, or that manifest is damaged, it counts that for monitoring, and writes a whole state. The
//! time in a heartbeat always grows, whatever the clock does. So an old heartbeat that is put back is recognized:
//! neither its slot nor its time is later. A replaced publisher's heartbeat that comes late, with a clock ahead, is
//! overtaken by the next slot, or by the next heartbeat but one.
//!
//! **A start refuses** a log that is shorter than the note or the heartbeat says, or that has a gap after its newest
//! state. With `--start-over` it writes a state into the slot after all known ones. If the log was incomplete, the
//! state has no parent, and the log starts over there. `check` continues behind such a gap, and behind any
//! other one that a state follows. A damaged manifest counts as lost. The test of the store comes last.
//!
//! **The note** `NAME.published` says what is published, and who took over. Commands then empty the outbox, wait
//! (`--publish-wait`), or refuse to write. The note may be lost or late; the log stays the truth. It counts only if it
//! names this database and a commit of this very file. A server watches it too (`serve/watching/fence_watch.rs`). After
//! another publisher took over, this machine no longer learns of revocations.
//!
//! Monitoring (`serve/publishing.rs`) never calls the publisher. The publisher notes its status
//! (`publisher/progress.rs`), and another handle reads the outbox. So a wait for the bucket does not block monitoring.
//!
//! # Restores
//!
//! A restore of a published database keeps the id, records the commit that it replaced, and takes 2^32 seqs. So every
//! token of the lost time is behind the head. If the file is missing or damaged, its id comes from the note
//! `NAME.published`. A note next to a missing file may be left from another database, so it does not count if the
//! backup has another id. `promote` and `publish --start-over` also take 2^32 seqs. `promote --start-over` first
//! decodes the newest readable object, and refuses a bucket of another database.

mod end;
mod fence;
pub mod lock;
pub mod progress;
pub mod publication_status;
mod publish_error;
mod retry;
mod start;
mod states;
mod step;
#[cfg(test)]
mod tests;
mod watch;

use std::path::PathBuf;
use std::sync::Arc;
use std::thread::sleep;
use std::time::{Duration, Instant};

pub use publish_error::PublishError;

use self::end::NewestState;
use self::lock::PublisherLock;
use self::progress::{FailureReporter, PublisherProgress, PublisherStatus};
use self::retry::Retry;
use self::watch::HeartbeatTimes;
use crate::model::DatabaseId;
use crate::replicate::protocol::Knowledge;
use crate::replicate::replica::LogReader;
use crate::store::{CommitPoint, Reader, StoreError};

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
    /// Failures of the database file and of the note.
    local: FailureReporter,
    id: DatabaseId,
    who: String,
    /// What this publisher knows of the log.
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

impl Publisher {
    /// Publishes until a permanent error; with [`PublishSettings::once`] until nothing is pending. Calls `on_caught_up`
    /// once what is pending at the start is published.
    ///
    /// # Errors
    /// [`PublishError`]. After any of them, a new start continues at the end of the log.
    pub fn run(&mut self, on_caught_up: impl FnOnce()) -> Result<PublisherProgress, PublishError> {
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
                    self.local
                        .report(&format!("{}: {error}", self.path.display()));
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
    fn round(&mut self) -> Result<bool, PublishError> {
        let is_done = self.publish_next()?;
        self.local.passed();
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
