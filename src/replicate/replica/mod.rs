//! Keeping a replica's file up to date from the log in a bucket.
//!
//! - [`replica_error`]: why a replica cannot continue.
//! - [`log`]: reading the log, and checking how its objects fit together.
//! - [`load`]: loading a whole state and the entries after it into a draft of a file.
//! - [`replica_status`]: the progress and age of a replica, and sync tokens of commits that it does not have.
//! - [`Replica`], here: the file that follows the log: its start, and each poll.
//! - [`promote`]: making a replica the origin.
//! - [`audit`]: checking all objects in a bucket.
//!
//! # Following
//!
//! A replica is a file with a row in the table `replica`: its origin, its slot, and its digest. Only `ReplicaWriter`
//! writes to it. Changes and that row are one transaction, which ends with a comparison of digest and head. A load is
//! a draft that gets its name when it is complete. Bytes from outside are validated before redb decodes them, because
//! redb panics on invalid ones.
//!
//! In `serve --from`, one thread next to the server writes the file (`replicate/replica`). The watcher sees its
//! transactions like any commit. `replica/log.rs` checks the sequence of objects: slot, database, and the parent of
//! each entry. A whole state, and the entries after it, go into a draft, which replaces the file when it has caught
//! up. Deleted slots may have been used again by a publisher that was suspended for weeks. Its entry can be applied,
//! but the log does not continue after it. So a replica that has slept as long serves nothing from its first entry on
//! until the heartbeat agrees. If the heartbeat contradicts, the newest state repairs the file.
//!
//! One process follows with a replica's file. A second one is refused by the file's lock. A damaged file ends this:
//! after a panic of redb the process can neither close the file nor open it again (`store/panics.rs`).

pub mod audit;
pub mod load;
pub mod log;
pub mod promote;
pub mod replica_error;
pub mod replica_status;
#[cfg(test)]
mod tests;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

pub use load::{LoadedState, StateLoader};
pub use log::LogReader;
pub use replica_error::{ReplicaError, Result};
pub use replica_status::ReplicaStatus;

use self::load::commits_of;
use self::log::check_next;
use crate::bucket::BucketError;
use crate::model::{Head, since_boot};
use crate::replicate::entry::LogEntry;
use crate::replicate::heartbeat::Heartbeat;
use crate::replicate::layout;
use crate::replicate::protocol::following::{Link, is_contradicted, is_shown_at_once, may_replace};
use crate::store::replication::{CommitChanges, ReplicaMark, ReplicaWriter, read_replica};
use crate::store::{StoreError, panics};

/// The minimum time between two lists of the log while its end is in doubt.
const LIST_EVERY: Duration = Duration::from_secs(15);
/// The minimum time between two loads for repair.
const REPAIR_EVERY: Duration = Duration::from_secs(60);
/// The minimum time between two searches for a state that repairs a missing or invalid entry.
const STATE_SEARCH_EVERY: Duration = Duration::from_secs(5);
/// A replica whose end was confirmed within this time shows an entry as soon as it is applied. Otherwise the slot may have
/// been freed and used again, and the heartbeat decides. Nothing in the log is deleted for twice this time.
const CONFIRMED_FOR: Duration = Duration::from_hours(12);
/// The pause after a failed load. It doubles with each further failure.
const FIRST_LOAD_PAUSE: Duration = Duration::from_secs(1);
const MAX_LOAD_PAUSE: Duration = Duration::from_secs(60);

/// A replica's file, which follows the log of its origin. Its methods block. No other process can write the file.
#[derive(Debug)]
pub struct Replica {
    log: LogReader,
    file: ReplicaFile,
    status: Arc<ReplicaStatus>,
    /// The last time when the heartbeat agreed that the log ends at the replica's position. Like all times here, it is
    /// since the machine's start.
    confirmed_at: Option<Duration>,
    /// The time of the next list of the log, which shows entries after a missing one. Set while the end is in doubt:
    /// then each poll reads the heartbeat. Otherwise an empty slot is enough for a while.
    list_at: Option<Duration>,
    /// The newest heartbeat.
    alive: Option<Heartbeat>,
    next_repair_at: Duration,
    failed_load: Option<FailedLoad>,
}

/// The file of a replica, and the position and last commit of its rows.
#[derive(Debug)]
pub(super) struct ReplicaFile {
    path: PathBuf,
    /// `None` if the file can only be read, and after an error of it, until it is opened again.
    writer: Option<ReplicaWriter>,
    mark: ReplicaMark,
    head: Head,
}

impl ReplicaFile {
    /// Opens a replica's file, which follows `log` from now on. If it cannot be written for now, as with a full disk,
    /// opens it for reading.
    fn open(path: &Path, log: &LogReader) -> Result<ReplicaFile, StoreError> {
        let writer = match ReplicaWriter::open(path) {
            Err(StoreError::DiskFull(_) | StoreError::Io { .. }) => None,
            opened => Some(opened?),
        };
        let (mark, head) = match &writer {
            Some(writer) => (writer.mark()?, writer.head()?),
            None => read_replica(path)?,
        };
        let mark = ReplicaMark {
            url: log.url(),
            ..mark
        };
        Ok(ReplicaFile {
            path: path.to_owned(),
            writer,
            mark,
            head: head.head(),
        })
    }

    /// Gives a loaded state the name of `path`. The file with this name has the last seq `here`: a replica never goes
    /// back. `open` returns its writer, which keeps the lock until then.
    fn replace(
        path: &Path,
        loaded: LoadedState,
        here: u64,
        open: impl FnOnce() -> Result<Option<ReplicaWriter>, StoreError>,
    ) -> Result<ReplicaFile> {
        let LoadedState { draft, mark, head } = loaded;
        if !may_replace(here, head.seq) {
            return Err(ReplicaError::Behind {
                slot: mark.slot,
                end: head.seq,
                here,
            });
        }
        Ok(ReplicaFile {
            path: path.to_owned(),
            writer: Some(draft.persist(open()?)?),
            mark,
            head,
        })
    }

    /// Returns the writer, and opens it if necessary.
    pub fn writer(&mut self) -> Result<&mut ReplicaWriter, StoreError> {
        match &mut self.writer {
            Some(writer) => Ok(writer),
            none => Ok(none.insert(ReplicaWriter::open(&self.path)?)),
        }
    }

    /// Applies the commits of the entry at `mark`, after which `head` is the last commit.
    pub fn apply(
        &mut self,
        commits: &[CommitChanges<'_>],
        mark: ReplicaMark,
        head: Head,
    ) -> Result<()> {
        let applied = self.writer()?.apply(commits, &mark);
        applied.map_err(|error| ReplicaError::of_apply(error, &layout::log(mark.slot)))?;
        self.mark = mark;
        self.head = head;
        Ok(())
    }

    /// Makes the replica an independent, published database.
    pub fn promote(mut self) -> Result<(), StoreError> {
        self.writer()?;
        self.writer
            .map_or(Ok(()), |writer| writer.promote().map(drop))
    }
}

/// The content of a slot.
struct ReadSlot {
    slot: u64,
    asked: Duration,
    found: Result<Option<LogEntry>>,
}

impl ReadSlot {
    fn read(log: &LogReader, slot: u64) -> ReadSlot {
        ReadSlot {
            slot,
            asked: since_boot(),
            found: log.entry(slot),
        }
    }

    fn link(&self) -> Option<Link> {
        let found = self.found.as_ref().ok()?.as_ref()?;
        Some(Link::of(&found.header))
    }
}

#[derive(Debug)]
struct FailedLoad {
    until: Duration,
    pause: Duration,
    error: String,
}

impl Replica {
    /// Opens the replica at `path`, or loads one if there is no file. Applies all entries to an existing replica, if
    /// possible.
    ///
    /// # Errors
    /// For an existing replica, only errors that cannot be repaired while it waits. An unreachable or incomplete
    /// bucket, or a full disk, is no error. [`ReplicaError::InUse`] if another process follows with this file.
    pub fn start(
        log: LogReader,
        path: &Path,
        status: Arc<ReplicaStatus>,
        keep_going: &dyn Fn() -> bool,
    ) -> Result<Replica> {
        let file = Replica::open_or_load(&log, path, &status, keep_going)?;
        let mut replica = Replica {
            log,
            file,
            status,
            confirmed_at: None,
            list_at: Some(Duration::ZERO),
            alive: None,
            next_repair_at: Duration::ZERO,
            failed_load: None,
        };
        replica.note_position();
        let started = match replica.log.check_database(replica.file.mark.id) {
            Ok(false) => Err(ReplicaError::Nothing(replica.log.url())),
            Ok(true) => replica.advance_or_reload(keep_going),
            Err(error) => Err(error),
        };
        match started {
            Ok(()) => Ok(replica),
            Err(error) if may_recover(&error) => {
                replica.report_error(&error);
                Ok(replica)
            }
            Err(error) => Err(error),
        }
    }

    /// Opens the file of the replica. Without one, or if it is of an older version, loads the newest state.
    fn open_or_load(
        log: &LogReader,
        path: &Path,
        status: &ReplicaStatus,
        keep_going: &dyn Fn() -> bool,
    ) -> Result<ReplicaFile> {
        loop {
            let older = match ReplicaFile::open(path, log) {
                Err(StoreError::NotFound { .. }) => None,
                Err(StoreError::OlderFields { .. }) => Some(read_replica(path)?),
                Err(StoreError::Busy { path, holder }) => {
                    return Err(ReplicaError::InUse { path, holder });
                }
                opened => return Ok(opened?),
            };
            if older.is_some() {
                tracing::info!(
                    "the file of an older version of medfeed is replaced by a whole state"
                );
            }
            let load = StateLoader {
                id: older.as_ref().map(|(mark, _)| mark.id),
                ..StateLoader::new(log, path, keep_going)
            };
            let here = older.as_ref().map_or(0, |(_, head)| head.seq);
            // Opening writes to the file. A refused load leaves it as it is.
            match ReplicaFile::replace(path, load.newest()?, here, || {
                older.map(|_| ReplicaWriter::open_older(path)).transpose()
            }) {
                // Another process has created the file in the meantime.
                Err(ReplicaError::Store(StoreError::Replaced { .. })) => {}
                taken => {
                    status.update(|progress| progress.loads += 1);
                    return taken;
                }
            }
        }
    }

    /// Returns the shared status.
    pub fn status(&self) -> &Arc<ReplicaStatus> {
        &self.status
    }

    /// Returns the log that it follows.
    pub fn log(&self) -> &LogReader {
        &self.log
    }

    /// Polls the log, and applies new entries. Returns false if polling must end. Errors are logged and stored in the
    /// status.
    pub fn poll(&mut self, keep_going: &dyn Fn() -> bool) -> bool {
        match panics::guard(|| self.advance_or_reload(keep_going)) {
            Ok(()) => {
                let before = self.status.update(|progress| progress.error.take());
                if before.is_some() {
                    tracing::info!(
                        slot = self.file.mark.slot,
                        seq = self.file.head.seq,
                        "this replica follows its origin again"
                    );
                }
                true
            }
            Err(ReplicaError::Stopped) => false,
            Err(error) => {
                self.report_error(&error);
                !error.is_final()
            }
        }
    }

    fn report_error(&mut self, error: &ReplicaError) {
        if matches!(error, ReplicaError::Store(_)) {
            // A handle may be unusable after an error.
            self.file.writer = None;
        }
        let message = error.to_string();
        let known = self
            .status
            .update(|progress| progress.error.replace(message.clone()));
        // Logged once, not every second.
        if known.as_ref() != Some(&message) {
            let what = match error.is_final() {
                true => "no longer follows its origin",
                false => "cannot follow its origin now",
            };
            tracing::error!(
                error = %error,
                "this replica {what}; it serves the last state for --max-staleness"
            );
        }
    }

    /// Applies new entries. If that fails and a whole state can repair it, loads one.
    pub(super) fn advance_or_reload(&mut self, keep_going: &dyn Fn() -> bool) -> Result<()> {
        let Err(error) = self.advance(keep_going) else {
            return Ok(());
        };
        self.status.update(|progress| match error {
            ReplicaError::Digest(_) => progress.digest_failures += 1,
            ReplicaError::Object { .. } => progress.unusable_objects += 1,
            _ => {}
        });
        let now = since_boot();
        if self.paused_load().is_some() || now < self.next_repair_at {
            return Err(error);
        }
        let may_help = match &error {
            ReplicaError::Diverged(_) | ReplicaError::Digest(_) => true,
            ReplicaError::Object { .. } | ReplicaError::Missing { .. } => {
                self.next_repair_at = now + STATE_SEARCH_EVERY;
                self.log
                    .state_slots()?
                    .first()
                    .is_some_and(|newest| *newest > self.file.mark.slot)
            }
            _ => false,
        };
        if !may_help {
            return Err(error);
        }
        self.next_repair_at = now + REPAIR_EVERY;
        tracing::error!(error = %error, "loading a whole state for repair");
        self.load_in_place(keep_going)?;
        self.list_at = Some(Duration::ZERO);
        self.advance(keep_going)
    }

    fn advance(&mut self, keep_going: &dyn Fn() -> bool) -> Result<()> {
        self.reopen()?;
        let mut next = ReadSlot::read(&self.log, self.file.mark.slot + 1);
        loop {
            let slot = self.file.mark.slot + 1;
            if next.slot != slot {
                next = ReadSlot::read(&self.log, slot);
            }
            match next.found? {
                Some(entry) => {
                    let after = ReadSlot::read(&self.log, slot + 1);
                    self.apply_entry(&entry, &after, keep_going)?;
                    next = after;
                }
                None if self.confirm_end(next.asked)? => return Ok(()),
                None => next = ReadSlot::read(&self.log, slot),
            }
            if !keep_going() {
                return Err(ReplicaError::Stopped);
            }
        }
    }

    /// Asks whether the log ends here. The next slot was found empty at `asked`. Returns false if it has an entry by now.
    fn confirm_end(&mut self, asked: Duration) -> Result<bool> {
        let checked_until = self
            .confirmed_at
            .map(|at| at + self.status.heartbeat_check_every());
        if self.list_at.is_none() && checked_until.is_some_and(|until| asked < until) {
            self.status.note_end_seen(asked);
            return Ok(true);
        }
        let checked_at = since_boot();
        match self.check_heartbeat() {
            Ok(true) => {
                self.confirmed_at = Some(checked_at);
                self.list_at = None;
                self.status.note_end_seen(asked);
                Ok(true)
            }
            Ok(false) => Ok(false),
            Err(error) => {
                if !matches!(error, ReplicaError::Bucket(_)) {
                    self.retract_end();
                }
                Err(error)
            }
        }
    }

    /// Whether the heartbeat agreed so recently that the next slot cannot have been freed.
    fn is_confirmed(&self) -> bool {
        let since = self.confirmed_at.map(|at| since_boot().saturating_sub(at));
        since.is_some_and(|since| since < CONFIRMED_FOR)
    }

    /// Records that the end of the log is unknown since the heartbeat last agreed.
    fn retract_end(&mut self) {
        self.list_at.get_or_insert(Duration::ZERO);
        self.status.retract_end(self.confirmed_at);
    }

    /// Whether the log ends here, by the heartbeat and, while the end is in doubt, the listed entries.
    fn check_heartbeat(&mut self) -> Result<bool> {
        let position = &self.file.mark;
        if self.list_at.is_some_and(|list_at| since_boot() >= list_at) {
            if self.log.lists_next(position.slot)? {
                return Ok(false);
            }
            self.list_at = Some(since_boot() + LIST_EVERY);
        }
        let began = since_boot();
        let found = self.log.heartbeat_for(position)?;
        let mut is_later = true;
        if let Some(known) = &self.alive {
            is_later = (found.slot, found.at) != (known.slot, known.at);
            // An old heartbeat that was put back says nothing about later entries.
            if found.is_before(known) {
                let detail = format!(
                    "the publisher's heartbeat went back: from slot {} at {} to slot {} at {}",
                    known.slot, known.at, found.slot, found.at
                );
                return Err(ReplicaError::Unconfirmed(detail, position.slot));
            }
            if is_later {
                self.status.note_heartbeat();
            }
        }
        self.status
            .ahead
            .lock()
            .note_heartbeat(began, found.seq, is_later);
        let is_end = self.log.confirms_end(position, self.file.head.seq, &found);
        self.alive = Some(found);
        is_end
    }

    /// The failed load after which this replica pauses.
    fn paused_load(&self) -> Option<&FailedLoad> {
        let failed = self.failed_load.as_ref()?;
        (since_boot() < failed.until).then_some(failed)
    }

    /// Loads the newest whole state and replaces the file by it. After a failure it pauses, for example to avoid
    /// filling a full disk at every poll.
    fn load_in_place(&mut self, keep_going: &dyn Fn() -> bool) -> Result<()> {
        if let Some(failed) = self.paused_load() {
            return Err(ReplicaError::Paused(failed.error.clone()));
        }
        self.file.writer()?;
        let settings = StateLoader {
            id: Some(self.file.mark.id),
            ..StateLoader::new(&self.log, &self.file.path, keep_going)
        };
        let loaded = settings.newest().and_then(|loaded| {
            let file = &mut self.file;
            *file =
                ReplicaFile::replace(&file.path, loaded, file.head.seq, || Ok(file.writer.take()))?;
            Ok(())
        });
        let failed = self.failed_load.take();
        if let Err(error) = loaded {
            let pause = failed.map_or(FIRST_LOAD_PAUSE, |failed| failed.pause * 2);
            let pause = pause.min(MAX_LOAD_PAUSE);
            if !matches!(error, ReplicaError::Stopped) {
                self.failed_load = Some(FailedLoad {
                    until: since_boot() + pause,
                    pause,
                    error: error.to_string(),
                });
            }
            return Err(error);
        }
        self.status.update(|progress| progress.loads += 1);
        self.note_position();
        tracing::warn!(
            slot = self.file.mark.slot,
            seq = self.file.head.seq,
            "the replica was replaced by a whole state"
        );
        Ok(())
    }

    /// Opens the file again after an error of it.
    fn reopen(&mut self) -> Result<()> {
        if self.file.writer.is_none() {
            self.file = ReplicaFile::open(&self.file.path, &self.log)?;
            self.note_position();
        }
        Ok(())
    }

    fn apply_entry(
        &mut self,
        entry: &LogEntry,
        after: &ReadSlot,
        keep_going: &dyn Fn() -> bool,
    ) -> Result<()> {
        let mark = check_next(&self.file.mark, entry)?;
        if is_contradicted(entry.hash, after.link()) {
            let detail = format!(
                "it follows another entry than the one in slot {}",
                mark.slot
            );
            return Err(ReplicaError::object(layout::log(after.slot), detail));
        }
        if !is_shown_at_once(self.is_confirmed()) {
            self.list_at.get_or_insert(Duration::ZERO);
            self.status.withdraw();
        }
        self.status.note_heartbeat();
        if entry.header.replaces(self.file.head, self.file.mark.digest) {
            // Wait for its manifest. A later state is as good: the log may not reach there from this one.
            self.log.state_of(entry)?;
            return self.load_in_place(keep_going);
        }
        self.file
            .apply(&commits_of(entry), mark, entry.header.head())?;
        self.status.update(|progress| progress.applied += 1);
        self.note_position();
        Ok(())
    }

    fn note_position(&self) {
        let slot = self.file.mark.slot;
        let head = self.file.head;
        self.status
            .update(|progress| (progress.slot, progress.head) = (slot, head));
    }
}

/// Whether a replica with a file may wait for a repair of this error.
fn may_recover(error: &ReplicaError) -> bool {
    let is_transient = matches!(
        error,
        ReplicaError::Store(StoreError::DiskFull(_) | StoreError::Io { .. })
            | ReplicaError::Bucket(BucketError::Unreachable(_))
            | ReplicaError::Paused(_)
    );
    is_transient || error.is_of_log()
}
