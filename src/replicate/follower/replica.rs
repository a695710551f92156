//! A replica: the writer of a file that follows a log, or a standby while another process is the writer.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use super::error::FollowError;
use super::load::{EndRule, LoadedState, StateLoader, commits_of, mark_at, position_of};
use super::log::{EndCheck, LogPosition, LogReader, WholeState};
use super::status::ReplicaStatus;
use crate::bucket::BucketError;
use crate::model::Head;
use crate::model::time::since_boot;
use crate::replicate::entry::LogEntry;
use crate::replicate::heartbeat::Heartbeat;
use crate::replicate::layout;
use crate::store::replication::{OlderReplica, ReplicaMark, ReplicaWriter, read_replica};
use crate::store::{StoreError, panics};

/// After this time without the bucket, the path to the newest state is verified again: slots may have been deleted and
/// reused.
const REVERIFY_AFTER: Duration = Duration::from_secs(3600);
/// The minimum time between two verifications of the path while there is no heartbeat.
const PATH_SEARCH_EVERY: Duration = Duration::from_secs(15);
/// The minimum time between two loads for repair.
const REPAIR_EVERY: Duration = Duration::from_secs(60);
/// The minimum time between two searches for a state that repairs a missing or invalid entry.
const STATE_SEARCH_EVERY: Duration = Duration::from_secs(5);
/// The pause after a failed load. It doubles with each further failure.
const FIRST_LOAD_PAUSE: Duration = Duration::from_secs(1);
const MAX_LOAD_PAUSE: Duration = Duration::from_secs(60);
/// The maximum time that a standby waits for the other process to apply an entry.
const APPLY_TIMEOUT: Duration = Duration::from_secs(1);
/// The interval of the polls in that time.
const APPLY_POLL: Duration = Duration::from_millis(50);

/// A replica's file, which follows the log of its origin. Its methods block. Several processes can share a file. The
/// one with the lock writes it. The others stand by: they also poll the log, to know the age of the file, and one of
/// them takes over when the lock is free.
#[derive(Debug)]
pub struct Replica {
    log: LogReader,
    path: PathBuf,
    /// `None` for a standby, and after an error of the file until it is opened again.
    writer: Option<ReplicaWriter>,
    is_standby: bool,
    mark: ReplicaMark,
    head: Head,
    status: Arc<ReplicaStatus>,
    /// Whether the entries after the mark are known to lead to the newest state.
    is_path_verified: bool,
    path_verified_at: Duration,
    /// When the bucket last responded to a read of the next slot.
    read_at: Duration,
    /// The time without the bucket after which the path is verified again.
    reverify_after: Duration,
    /// Whether the log was listed since the verification. A list shows entries after a missing one.
    is_log_listed: bool,
    alive: Option<Heartbeat>,
    /// When the heartbeat last agreed with the end of the log.
    confirmed_at: Option<Duration>,
    next_heartbeat_check: Duration,
    next_repair_at: Duration,
    failed_load: Option<FailedLoad>,
    /// The last applied entry: its last seq, and its publisher.
    last_applied: Option<(u64, String)>,
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
    /// bucket, or a full disk, is no error.
    pub fn start(
        log: LogReader,
        path: &Path,
        status: Arc<ReplicaStatus>,
        keep_going: &dyn Fn() -> bool,
    ) -> Result<Replica, FollowError> {
        let OpenedReplica { writer, is_followed, mark, head } = loop {
            let older = match open(path) {
                Err(StoreError::NotFound { .. }) => None,
                Err(StoreError::OlderFields { .. }) => Some(OlderReplica::open(path)?),
                opened => break opened?,
            };
            let id = older.as_ref().map(|older| older.id);
            let load = StateLoader { log: &log, path, id, until: None, end: EndRule::Follow, keep_going };
            let LoadedState { draft, mark, head, .. } = load.newest()?;
            let taken = match older {
                Some(older) if head.seq < older.head.seq => {
                    return Err(FollowError::Behind { slot: mark.slot, end: head.seq, here: older.head.seq });
                }
                Some(older) => {
                    tracing::info!(
                        slot = mark.slot,
                        "the file of an older version of medfeed is replaced by a whole state"
                    );
                    draft.replace_older(older)
                }
                None => draft.persist(None),
            };
            match taken {
                // Another process has created the file in the meantime.
                Err(StoreError::Replaced { .. }) => {}
                taken => {
                    status.note(|progress| progress.loads += 1);
                    break OpenedReplica { writer: Some(taken?), is_followed: false, mark, head };
                }
            }
        };
        let mut replica = Replica {
            log,
            path: path.to_owned(),
            is_standby: is_followed,
            writer,
            mark,
            head,
            status,
            is_path_verified: false,
            path_verified_at: Duration::ZERO,
            read_at: Duration::ZERO,
            reverify_after: REVERIFY_AFTER,
            is_log_listed: false,
            alive: None,
            confirmed_at: None,
            next_heartbeat_check: Duration::ZERO,
            next_repair_at: Duration::ZERO,
            failed_load: None,
            last_applied: None,
        };
        if replica.is_standby {
            tracing::info!("another server updates this file; this one reads it, and takes over when that one ends");
        }
        replica.note_position();
        match replica.advance_or_reload(keep_going) {
            Ok(()) => Ok(replica),
            // The process with the lock repairs it.
            Err(FollowError::Diverged(_)) if replica.is_standby => Ok(replica),
            Err(error) if may_recover(&error) => {
                replica.report_error(&error);
                Ok(replica)
            }
            Err(error) => Err(error),
        }
    }

    /// Returns the shared status.
    pub fn status(&self) -> &Arc<ReplicaStatus> {
        &self.status
    }

    pub(super) fn log(&self) -> &LogReader {
        &self.log
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    pub(super) fn mark(&self) -> &ReplicaMark {
        &self.mark
    }

    pub(super) fn head(&self) -> Head {
        self.head
    }

    /// Returns the publisher of the last applied entry, if that entry ends with this seq.
    pub(super) fn publisher_of(&self, seq: u64) -> Option<&str> {
        self.last_applied.as_ref().filter(|(last, _)| *last == seq).map(|(_, who)| who.as_str())
    }

    pub(super) fn writer(&self) -> Result<&ReplicaWriter, FollowError> {
        self.writer.as_ref().ok_or(FollowError::Followed)
    }

    pub(super) fn into_writer(self) -> Result<ReplicaWriter, FollowError> {
        self.writer.ok_or(FollowError::Followed)
    }

    pub(super) fn catch_up(&mut self, keep_going: &dyn Fn() -> bool) -> Result<(), FollowError> {
        self.advance_or_reload(keep_going)
    }

    /// Polls the log, and applies new entries. Returns false if polling must end. Errors are logged and stored in the
    /// status.
    pub fn poll(&mut self, keep_going: &dyn Fn() -> bool) -> bool {
        if must_reverify(self.read_at, since_boot(), self.reverify_after) {
            self.is_path_verified = false;
        }
        let result = match panics::catch(|| self.advance_or_reload(keep_going)) {
            Ok(result) => result,
            Err(caught) => {
                self.writer = None;
                Err(FollowError::Store(StoreError::damaged(
                    "(pages)",
                    format!("the engine stopped: {}", caught.message),
                )))
            }
        };
        match result {
            Ok(()) => {
                let mut previous = None;
                self.status.note(|progress| previous = progress.error.take());
                if previous.is_some() {
                    tracing::info!(slot = self.mark.slot, seq = self.head.seq, "this replica follows its origin again");
                }
                true
            }
            Err(FollowError::Stopped) => false,
            Err(error) => {
                self.report_error(&error);
                !error.is_final()
            }
        }
    }

    fn report_error(&mut self, error: &FollowError) {
        if matches!(error, FollowError::Store(_)) {
            // A handle may be unusable after an error.
            self.writer = None;
        }
        let message = error.to_string();
        let mut is_new = false;
        self.status.note(|progress| {
            is_new = progress.error.as_deref() != Some(&message);
            progress.error = Some(message);
        });
        // Logged once, not every second.
        if is_new && error.is_final() {
            tracing::error!(
                error = %error,
                "this replica no longer follows its origin; it serves the last state for --max-staleness"
            );
        } else if is_new {
            tracing::error!(
                error = %error,
                "this replica cannot follow its origin now; it serves the last state for --max-staleness"
            );
        }
    }

    /// Applies new entries. If that fails and a whole state can repair it, loads one.
    fn advance_or_reload(&mut self, keep_going: &dyn Fn() -> bool) -> Result<(), FollowError> {
        let error = match self.advance(keep_going) {
            Err(error) => error,
            Ok(()) => return Ok(()),
        };
        let is_of_rows = matches!(error, FollowError::Digest(_));
        let is_of_object = matches!(error, FollowError::Object { .. });
        self.status.note(|progress| {
            progress.digest_failures += u64::from(is_of_rows);
            progress.unusable_objects += u64::from(is_of_object);
        });
        let now = since_boot();
        if self.is_standby || now < self.next_repair_at {
            return Err(error);
        }
        let may_help = match &error {
            FollowError::Diverged(_) | FollowError::Digest(_) => true,
            FollowError::Object { .. } | FollowError::Missing { .. } => {
                self.next_repair_at = now + STATE_SEARCH_EVERY;
                self.log.state_slots()?.first().is_some_and(|newest| *newest > self.mark.slot)
            }
            _ => false,
        };
        if !may_help {
            return Err(error);
        }
        self.next_repair_at = now + REPAIR_EVERY;
        tracing::error!(error = %error, "loading a whole state for repair");
        self.load_in_place(&|load| load.newest(), keep_going)?;
        (self.is_path_verified, self.is_log_listed) = (true, false);
        self.advance(keep_going)
    }

    fn advance(&mut self, keep_going: &dyn Fn() -> bool) -> Result<(), FollowError> {
        self.reopen()?;
        if !self.is_path_verified {
            self.verify_path(keep_going)?;
            (self.is_path_verified, self.is_log_listed, self.path_verified_at) = (true, false, since_boot());
        }
        if self.is_standby {
            return self.stand_by(keep_going);
        }
        loop {
            let asked = since_boot();
            let next = self.log.entry(self.mark.slot + 1)?;
            self.read_at = asked;
            match next {
                Some(entry) => self.apply_entry(&entry, keep_going)?,
                None if self.is_end(asked)? => return Ok(()),
                None => {}
            }
            if !keep_going() {
                return Err(FollowError::Stopped);
            }
        }
    }

    /// Whether the log ends here. The next slot was found empty at `asked`. Returns false if it has an entry by now.
    fn is_end(&mut self, asked: Duration) -> Result<bool, FollowError> {
        if asked < self.next_heartbeat_check {
            self.status.note_end_seen(asked);
            return Ok(true);
        }
        let checked_at = since_boot();
        match self.check_heartbeat() {
            Ok(EndCheck::Confirmed) => {
                self.next_heartbeat_check = checked_at + self.status.heartbeat_check_every();
                self.confirmed_at = Some(checked_at);
                self.status.note_end_seen(asked);
                Ok(true)
            }
            Ok(EndCheck::More) => Ok(false),
            Ok(EndCheck::Before { slot, seq }) => {
                self.retract_end();
                // The file may still be as new as a state that the origin has published since.
                Err(match seq < self.head.seq {
                    true => FollowError::Behind { slot, end: seq, here: self.head.seq },
                    false => FollowError::Diverged(format!("slot {} is gone", self.mark.slot)),
                })
            }
            Err(error) => {
                if !matches!(error, FollowError::Bucket(_)) {
                    self.retract_end();
                }
                Err(error)
            }
        }
    }

    /// Records that the end of the log is unknown since the heartbeat last agreed.
    fn retract_end(&mut self) {
        self.next_heartbeat_check = Duration::ZERO;
        self.status.retract_end(self.confirmed_at);
    }

    fn check_heartbeat(&mut self) -> Result<EndCheck, FollowError> {
        let position = position_of(&self.mark);
        if !self.is_log_listed {
            if self.log.lists_next(position)? {
                return Ok(EndCheck::More);
            }
            self.is_log_listed = true;
        }
        let began = since_boot();
        let found = self.log.heartbeat_for(position).inspect_err(|error| {
            // The whole bucket may have been replaced. That check needs lists, so it is not made at every poll.
            let is_recent = since_boot() < self.path_verified_at + PATH_SEARCH_EVERY;
            self.is_path_verified &= is_recent || !matches!(error, FollowError::Unconfirmed(..));
        })?;
        let is_later = self.alive.as_ref().is_none_or(|known| found.at > known.at);
        if let Some(known) = &self.alive {
            // An old heartbeat that was put back says nothing about later entries.
            if found.at < known.at {
                let detail = format!("the publisher's heartbeat went back from slot {} to {}", known.slot, found.slot);
                return Err(FollowError::Unconfirmed(detail, position.slot));
            }
            if is_later {
                self.status.note_heartbeat();
            }
        }
        self.status.ahead().note_heartbeat(began, found.seq, is_later);
        let end = self.log.compare(position, &found);
        self.alive = Some(found);
        end
    }

    /// Loads a whole state and replaces the file by it. After a failure it pauses, for example to avoid filling a full
    /// disk at every poll.
    fn load_in_place(
        &mut self,
        load: &dyn Fn(&StateLoader<'_>) -> Result<LoadedState, FollowError>,
        keep_going: &dyn Fn() -> bool,
    ) -> Result<(), FollowError> {
        if let Some(failed) = self.failed_load.as_ref().filter(|failed| since_boot() < failed.until) {
            return Err(FollowError::Paused(failed.error.clone()));
        }
        open_writer(&mut self.writer, &self.path)?;
        let (id, end) = (Some(self.mark.id), EndRule::Follow);
        let settings = StateLoader { log: &self.log, path: &self.path, id, until: None, end, keep_going };
        let loaded = load(&settings).and_then(|loaded| self.replace_by(loaded));
        self.failed_load = match &loaded {
            Ok(()) | Err(FollowError::Stopped) => None,
            Err(error) => {
                let last = self.failed_load.as_ref().map(|failed| failed.pause * 2);
                let pause = last.unwrap_or(FIRST_LOAD_PAUSE).min(MAX_LOAD_PAUSE);
                Some(FailedLoad { until: since_boot() + pause, pause, error: error.to_string() })
            }
        };
        loaded
    }

    /// Opens the file for writing, unless another process has the lock.
    fn reopen(&mut self) -> Result<(), FollowError> {
        if self.writer.is_some() {
            return Ok(());
        }
        let OpenedReplica { writer, is_followed, mark, head } = open(&self.path)?;
        (self.writer, self.mark, self.head) = (writer, mark, head);
        let was_standby = std::mem::replace(&mut self.is_standby, is_followed);
        if was_standby && !self.is_standby {
            tracing::info!(slot = self.mark.slot, "the other server has ended; this one updates the file now");
        }
        self.note_position();
        Ok(())
    }

    /// Polls the log while another process writes the file. The file is as new as the poll if the log ends at its
    /// position.
    fn stand_by(&mut self, keep_going: &dyn Fn() -> bool) -> Result<(), FollowError> {
        let until = since_boot() + APPLY_TIMEOUT;
        loop {
            let asked = since_boot();
            let slot = self.mark.slot + 1;
            let next = self.log.entry(slot)?;
            self.read_at = asked;
            if next.is_none() {
                if self.is_end(asked)? {
                    return Ok(());
                }
                continue;
            }
            self.status.note_heartbeat();
            while self.mark.slot < slot {
                if !keep_going() {
                    return Err(FollowError::Stopped);
                }
                if since_boot() >= until {
                    return Ok(());
                }
                std::thread::sleep(APPLY_POLL);
                let (mark, head) = read_replica(&self.path)?;
                (self.mark, self.head) = (mark, head.head());
            }
            self.note_position();
        }
    }

    /// Checks that the log belongs to the file's database, and that its entries lead from the file to the newest state.
    fn verify_path(&self, keep_going: &dyn Fn() -> bool) -> Result<(), FollowError> {
        let here = position_of(&self.mark);
        let mut newest = None;
        for slot in self.log.state_slots()? {
            newest = match self.log.manifest(slot) {
                Err(error @ FollowError::Object { .. }) => {
                    tracing::warn!(%error, "a state cannot be used; trying an older one");
                    None
                }
                manifest => manifest?,
            };
            if newest.is_some() {
                break;
            }
        }
        let newest = newest.map(|manifest| WholeState::of_manifest(manifest).position);
        if let Some(LogPosition { id: found, .. }) = newest.filter(|position| position.id != here.id) {
            return Err(FollowError::OtherDatabase { expected: here.id, found });
        }
        let leads = match newest {
            Some(state) if state.slot > here.slot => self.log.leads_to(here, state, keep_going)?,
            Some(state) if state.slot == here.slot => state == here,
            // Entries after the newest state are never deleted.
            Some(_) => self.log.holds(here)?,
            None if self.log.entry(here.slot)?.is_none() => return Err(FollowError::Nothing(self.log.url())),
            None => self.log.holds(here)?,
        };
        if leads {
            return Ok(());
        }
        match self.log.heartbeat_for(here) {
            // The log has no newer state than the file.
            Ok(alive) if alive.seq < self.head.seq => {
                Err(FollowError::Behind { slot: alive.slot, end: alive.seq, here: self.head.seq })
            }
            Ok(_) | Err(FollowError::Unconfirmed(..)) => {
                Err(FollowError::Diverged(format!("slot {} does not lead to its end", here.slot)))
            }
            Err(error) => Err(error),
        }
    }

    fn apply_entry(&mut self, entry: &LogEntry, keep_going: &dyn Fn() -> bool) -> Result<(), FollowError> {
        let position = position_of(&self.mark).check_next(entry)?;
        self.status.note_heartbeat();
        if let Some(state) = WholeState::of_entry(&entry.header, entry.hash) {
            return self.load_in_place(&|load| load.from_state(state.clone(), position.slot), keep_going);
        }
        let mark = mark_at(self.log.url(), position, entry.header.digest);
        let writer = open_writer(&mut self.writer, &self.path)?;
        let name = layout::log(position.slot);
        writer.apply(&commits_of(entry), &mark).map_err(|error| FollowError::of_apply(error, &name))?;
        (self.mark, self.head) = (mark, entry.header.head());
        self.last_applied = Some((entry.header.seq, entry.header.who.clone()));
        self.status.note(|progress| progress.applied += 1);
        self.note_position();
        Ok(())
    }

    fn replace_by(&mut self, loaded: LoadedState) -> Result<(), FollowError> {
        let LoadedState { draft, mark, head, .. } = loaded;
        if head.seq < self.head.seq {
            return Err(FollowError::Behind { slot: mark.slot, end: head.seq, here: self.head.seq });
        }
        self.writer = Some(draft.persist(self.writer.take())?);
        (self.mark, self.head) = (mark, head);
        self.status.note(|progress| progress.loads += 1);
        self.note_position();
        tracing::warn!(slot = self.mark.slot, seq = self.head.seq, "the replica was replaced by a whole state");
        Ok(())
    }

    fn note_position(&self) {
        let (slot, head) = (self.mark.slot, self.head);
        self.status.note(|progress| (progress.slot, progress.head) = (slot, head));
    }
}

/// Whether the bucket has not responded for so long that slots may have been reused.
fn must_reverify(read_at: Duration, now: Duration, after: Duration) -> bool {
    now.saturating_sub(read_at) > after
}

/// Whether a replica with a file may wait for a repair of this error.
fn may_recover(error: &FollowError) -> bool {
    let is_of_disk = matches!(error, FollowError::Store(StoreError::DiskFull(_) | StoreError::Io { .. }));
    let is_of_bucket = matches!(error, FollowError::Bucket(BucketError::Unreachable(_)) | FollowError::Object { .. });
    is_of_disk || is_of_bucket || error.is_of_log() || matches!(error, FollowError::Paused(_))
}

struct OpenedReplica {
    /// `None` if the file can only be read.
    writer: Option<ReplicaWriter>,
    /// Whether another process has the lock.
    is_followed: bool,
    mark: ReplicaMark,
    head: Head,
}

/// Opens a replica's file. If another process has the lock, or the file cannot be written for now, opens it for
/// reading.
fn open(path: &Path) -> Result<OpenedReplica, StoreError> {
    let is_followed = match ReplicaWriter::open(path) {
        Ok(writer) => {
            let (mark, head) = (writer.mark()?, writer.head()?.head());
            return Ok(OpenedReplica { writer: Some(writer), is_followed: false, mark, head });
        }
        Err(StoreError::Busy { .. }) => true,
        Err(StoreError::DiskFull(_) | StoreError::Io { .. }) => false,
        Err(error) => return Err(error),
    };
    let (mark, head) = read_replica(path)?;
    Ok(OpenedReplica { writer: None, is_followed, mark, head: head.head() })
}

fn open_writer<'w>(writer: &'w mut Option<ReplicaWriter>, path: &Path) -> Result<&'w mut ReplicaWriter, StoreError> {
    match writer {
        Some(writer) => Ok(writer),
        None => Ok(writer.insert(ReplicaWriter::open(path)?)),
    }
}

#[cfg(test)]
mod tests;
