//! A replica: the only writer of a file that follows a log, or who stands by while another process is.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use super::load::{EndRule, Load, Loaded, check_format, commits_of, mark_at, place_of};
use super::log::{End, LogReader, Place, StateAt};
use super::standing::Standing;
use super::trouble::Trouble;
use crate::bucket::BucketError;
use crate::model::Head;
use crate::model::time::{now, since_boot};
use crate::replicate::entry::Entry;
use crate::replicate::layout;
use crate::replicate::report::{Alive, ReplicaReport};
use crate::store::replication::{OlderReplica, ReplicaMark, ReplicaWriter, SCHEMA, read_replica};
use crate::store::{StoreError, panics};

/// After so long without the bucket, entries are looked for again from the newest state's side: places may have been swept.
const DOUBT_AFTER: Duration = Duration::from_secs(3600);
/// The least time between two searches for the way to the newest state while there is no sign of life.
const SEARCH_EVERY: Duration = Duration::from_secs(15);
/// The least time between two whole loads that mend something.
const MEND_EVERY: Duration = Duration::from_secs(60);
/// The least time between two looks for a state that helps where an entry is missing or cannot be used.
const LIST_EVERY: Duration = Duration::from_secs(5);
/// The pause after a failed load of a whole state. It doubles with each further failure.
const FIRST_LOAD_PAUSE: Duration = Duration::from_secs(1);
/// The longest pause after a failed load.
const MAX_LOAD_PAUSE: Duration = Duration::from_secs(60);
/// How long who stands by waits for the follower to apply an entry that is in the log.
const APPLY_PATIENCE: Duration = Duration::from_secs(1);
/// The time between two looks whether it has.
const APPLY_LOOK: Duration = Duration::from_millis(50);

/// A replica's file and where it follows its origin. Its calls block. Several processes may have one on the same file: who has
/// the lock follows, the others stand by. Those look at the log as well, so that they know how old the file's state is, and
/// one of them follows when the lock is free.
#[derive(Debug)]
pub struct Replica {
    log: LogReader,
    path: PathBuf,
    /// `None` while another process follows, and after the file failed until it is opened again.
    writer: Option<ReplicaWriter>,
    stands_by: bool,
    mark: ReplicaMark,
    head: Head,
    standing: Arc<Standing>,
    /// Whether the entries after the mark are known to lead to the newest state.
    is_on_way: bool,
    /// When that was found out.
    way_at: Duration,
    /// When the bucket last answered what the next slot holds.
    read_at: Duration,
    /// Whether the log was listed since then: later entries than a missing one are seen at once.
    is_listed: bool,
    /// The latest sign of life.
    alive: Option<Alive>,
    /// When the sign of life was last found to agree with the end of the log.
    confirmed_at: Option<Duration>,
    listen_at: Duration,
    mend_at: Duration,
    failed_load: Option<FailedLoad>,
    /// The last seq of the entry that was applied last, and who put it.
    last_put: Option<(u64, String)>,
}

/// A whole state that could not be loaded, and when to try again.
#[derive(Debug)]
struct FailedLoad {
    until: Duration,
    pause: Duration,
    error: String,
}

impl Replica {
    /// Opens the replica at a path, or loads one where there is no file. A replica that is there is brought to the log's end if
    /// that is possible; else it is as it was.
    ///
    /// # Errors
    /// [`Trouble`]. Where there is a replica, what may heal while it waits is no error: a bucket that cannot be reached or that
    /// lost objects, and a full disk.
    pub fn start(
        log: LogReader,
        path: &Path,
        standing: Arc<Standing>,
        go_on: &dyn Fn() -> bool,
    ) -> Result<Replica, Trouble> {
        let Opened { writer, is_followed, mark, head } = loop {
            let older = match open(path) {
                Err(StoreError::NotFound { .. }) => None,
                Err(StoreError::OlderSchema { .. } | StoreError::OlderFields { .. }) => Some(OlderReplica::open(path)?),
                opened => break opened?,
            };
            let id = older.as_ref().map(|older| older.id);
            let load = Load { log: &log, path, id, until: None, end: EndRule::Follow, go_on };
            let Loaded { draft, mark, head, .. } = load.newest()?;
            let taken = match older {
                Some(older) if head.seq < older.head.seq => {
                    return Err(Trouble::Behind { slot: mark.slot, end: head.seq, here: older.head.seq });
                }
                Some(older) => {
                    tracing::info!(slot = mark.slot, "the file of an older medfeed is replaced by a whole state");
                    draft.replace_older(older)
                }
                None => draft.take_name(None),
            };
            match taken {
                // Another process has loaded it meanwhile.
                Err(StoreError::Replaced { .. }) => {}
                taken => {
                    standing.note(|progress| progress.loads += 1);
                    break Opened { writer: Some(taken?), is_followed: false, mark, head };
                }
            }
        };
        let mut replica = Replica {
            log,
            path: path.to_owned(),
            stands_by: is_followed,
            writer,
            mark,
            head,
            standing,
            is_on_way: false,
            way_at: Duration::ZERO,
            read_at: Duration::ZERO,
            is_listed: false,
            alive: None,
            confirmed_at: None,
            listen_at: Duration::ZERO,
            mend_at: Duration::ZERO,
            failed_load: None,
            last_put: None,
        };
        if replica.stands_by {
            tracing::info!("another server follows with this file; this one reads it, and follows when that one ends");
        }
        replica.tell_place();
        match replica.advance_and_mend(go_on) {
            Ok(()) => Ok(replica),
            // Its follower mends it.
            Err(Trouble::Parted(_)) if replica.stands_by => Ok(replica),
            Err(trouble) if may_heal(&trouble) => {
                replica.tell_trouble(&trouble);
                Ok(replica)
            }
            Err(trouble) => Err(trouble),
        }
    }

    /// How far it is.
    pub fn standing(&self) -> &Arc<Standing> {
        &self.standing
    }

    /// The log that it follows.
    pub(super) fn log(&self) -> &LogReader {
        &self.log
    }

    /// Its file.
    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Where in the log it is.
    pub(super) fn mark(&self) -> &ReplicaMark {
        &self.mark
    }

    /// Its last commit.
    pub(super) fn head(&self) -> Head {
        self.head
    }

    /// The publisher of the last applied entry, if that entry ends with this seq.
    pub(super) fn putter_of(&self, seq: u64) -> Option<&str> {
        self.last_put.as_ref().filter(|(last, _)| *last == seq).map(|(_, who)| who.as_str())
    }

    pub(super) fn writer(&self) -> Result<&ReplicaWriter, Trouble> {
        self.writer.as_ref().ok_or(Trouble::Followed)
    }

    pub(super) fn into_writer(self) -> Result<ReplicaWriter, Trouble> {
        self.writer.ok_or(Trouble::Followed)
    }

    /// Applies all that is in the log.
    ///
    /// # Errors
    /// [`Trouble`].
    pub(super) fn catch_up(&mut self, go_on: &dyn Fn() -> bool) -> Result<(), Trouble> {
        self.advance_and_mend(go_on)
    }

    /// Looks at the log: applies what is new, up to its end. Returns whether another look makes sense; failures are logged and
    /// kept in the replica's standing.
    pub fn look(&mut self, go_on: &dyn Fn() -> bool) -> bool {
        if since_boot().saturating_sub(self.read_at) > DOUBT_AFTER {
            self.is_on_way = false;
        }
        let looked = match panics::catch(|| self.advance_and_mend(go_on)) {
            Ok(looked) => looked,
            Err(caught) => {
                self.writer = None;
                Err(Trouble::Store(StoreError::damaged("(pages)", format!("the engine stopped: {}", caught.message))))
            }
        };
        match looked {
            Ok(()) => {
                let mut was = None;
                self.standing.note(|progress| was = progress.trouble.take());
                if was.is_some() {
                    tracing::info!(slot = self.mark.slot, seq = self.head.seq, "the origin is followed again");
                }
                true
            }
            Err(Trouble::Stopped) => false,
            Err(trouble) => {
                self.tell_trouble(&trouble);
                !trouble.is_final()
            }
        }
    }

    fn tell_trouble(&mut self, trouble: &Trouble) {
        if matches!(trouble, Trouble::Store(_)) {
            // A handle that failed may be of no more use.
            self.writer = None;
        }
        let told = trouble.to_string();
        let mut is_new = false;
        self.standing.note(|progress| {
            is_new = progress.trouble.as_deref() != Some(&told);
            progress.trouble = Some(told);
        });
        // Once, not every second.
        if is_new && trouble.is_final() {
            tracing::error!(error = %trouble, "the origin is followed no more; the last state is served for --max-staleness");
        } else if is_new {
            tracing::error!(error = %trouble, "the origin cannot be followed; the last state is served for --max-staleness");
        }
    }

    /// Applies what is new; where only a whole state helps, loads one.
    fn advance_and_mend(&mut self, go_on: &dyn Fn() -> bool) -> Result<(), Trouble> {
        let trouble = match self.advance(go_on) {
            Err(trouble) => trouble,
            Ok(()) => return Ok(()),
        };
        let is_of_rows = matches!(trouble, Trouble::Digest(_));
        let is_of_object = matches!(trouble, Trouble::Object { .. });
        self.standing.note(|progress| {
            progress.digest_failures += u64::from(is_of_rows);
            progress.unusable_objects += u64::from(is_of_object);
        });
        let now = since_boot();
        if self.stands_by || now < self.mend_at {
            return Err(trouble);
        }
        let may_help = match &trouble {
            Trouble::Parted(_) | Trouble::Digest(_) => true,
            Trouble::Object { .. } | Trouble::Missing { .. } => {
                self.mend_at = now + LIST_EVERY;
                self.log.state_slots()?.first().is_some_and(|newest| *newest > self.mark.slot)
            }
            _ => false,
        };
        if !may_help {
            return Err(trouble);
        }
        self.mend_at = now + MEND_EVERY;
        tracing::error!(error = %trouble, "loading the whole state anew");
        self.load_in_place(&|load| load.newest(), go_on)?;
        (self.is_on_way, self.is_listed) = (true, false);
        self.advance(go_on)
    }

    fn advance(&mut self, go_on: &dyn Fn() -> bool) -> Result<(), Trouble> {
        self.reopen()?;
        if !self.is_on_way {
            self.find_way(go_on)?;
            (self.is_on_way, self.is_listed, self.way_at) = (true, false, since_boot());
        }
        if self.stands_by {
            return self.stand_by(go_on);
        }
        loop {
            let asked = since_boot();
            let next = self.log.entry(self.mark.slot + 1)?;
            self.read_at = asked;
            match next {
                Some(entry) => self.take(&entry, go_on)?,
                None if self.is_end(asked)? => return Ok(()),
                None => {}
            }
            if !go_on() {
                return Err(Trouble::Stopped);
            }
        }
    }

    /// Whether the log ends here, where no entry was found at `asked`. False when one has come since.
    fn is_end(&mut self, asked: Duration) -> Result<bool, Trouble> {
        if asked < self.listen_at {
            self.standing.see_end(asked);
            return Ok(true);
        }
        let listened = since_boot();
        match self.listen() {
            Ok(End::Confirmed) => {
                self.listen_at = listened + self.standing.listen_every();
                self.confirmed_at = Some(listened);
                self.standing.see_end(asked);
                Ok(true)
            }
            Ok(End::More) => Ok(false),
            Ok(End::Before { slot, seq }) => {
                self.doubt_end();
                // A state that the origin put since may be as new as this file.
                Err(match seq < self.head.seq {
                    true => Trouble::Behind { slot, end: seq, here: self.head.seq },
                    false => Trouble::Parted(format!("slot {} is gone", self.mark.slot)),
                })
            }
            Err(trouble) => {
                if !matches!(trouble, Trouble::Bucket(_)) {
                    self.doubt_end();
                }
                Err(trouble)
            }
        }
    }

    /// The end of the log cannot have been known since the sign of life last agreed.
    fn doubt_end(&mut self) {
        self.listen_at = Duration::ZERO;
        self.standing.doubt_end(self.confirmed_at);
    }

    /// Reads the sign of life and compares it with this position.
    fn listen(&mut self) -> Result<End, Trouble> {
        let place = place_of(&self.mark);
        if !self.is_listed {
            if self.log.lists_next(place)? {
                return Ok(End::More);
            }
            self.is_listed = true;
        }
        let began = since_boot();
        let found = self.log.alive_for(place).inspect_err(|trouble| {
            // The whole bucket may be gone. To find that out takes lists, so not at every look.
            let is_recent = since_boot() < self.way_at + SEARCH_EVERY;
            self.is_on_way &= is_recent || !matches!(trouble, Trouble::Unconfirmed(..));
        })?;
        let is_later = self.alive.as_ref().is_none_or(|known| found.at > known.at);
        if let Some(known) = &self.alive {
            // One that was put back says nothing about what came after it.
            if found.at < known.at {
                let detail =
                    format!("the publisher's sign of life went back from slot {} to {}", known.slot, found.slot);
                return Err(Trouble::Unconfirmed(detail, place.slot));
            }
            if is_later {
                self.standing.hear();
            }
        }
        self.standing.ahead().hear(began, found.seq, is_later);
        let end = self.log.compare(place, &found);
        self.alive = Some(found);
        end
    }

    /// Loads a whole state and puts it in the file's place. After a failure it pauses, so that a full disk, say, is not filled
    /// again at every look.
    fn load_in_place(
        &mut self,
        load: &dyn Fn(&Load<'_>) -> Result<Loaded, Trouble>,
        go_on: &dyn Fn() -> bool,
    ) -> Result<(), Trouble> {
        if let Some(failed) = self.failed_load.as_ref().filter(|failed| since_boot() < failed.until) {
            return Err(Trouble::Paused(failed.error.clone()));
        }
        open_writer(&mut self.writer, &self.path)?;
        let (id, end) = (Some(self.mark.id), EndRule::Follow);
        let settings = Load { log: &self.log, path: &self.path, id, until: None, end, go_on };
        let loaded = load(&settings).and_then(|loaded| self.replace_by(loaded));
        self.failed_load = match &loaded {
            Ok(()) | Err(Trouble::Stopped) => None,
            Err(trouble) => {
                let last = self.failed_load.as_ref().map(|failed| failed.pause * 2);
                let pause = last.unwrap_or(FIRST_LOAD_PAUSE).min(MAX_LOAD_PAUSE);
                Some(FailedLoad { until: since_boot() + pause, pause, error: trouble.to_string() })
            }
        };
        loaded
    }

    /// Sees to it that the file is open for writing, unless another process follows with it.
    fn reopen(&mut self) -> Result<(), Trouble> {
        if self.writer.is_some() {
            return Ok(());
        }
        let Opened { writer, is_followed, mark, head } = open(&self.path)?;
        (self.writer, self.mark, self.head) = (writer, mark, head);
        let stood_by = std::mem::replace(&mut self.stands_by, is_followed);
        if stood_by && !self.stands_by {
            tracing::info!(slot = self.mark.slot, "the other server has ended; this one follows");
        }
        self.tell_place();
        Ok(())
    }

    /// Looks at the log while another process follows: where it ends with what the file holds, that is the newest.
    fn stand_by(&mut self, go_on: &dyn Fn() -> bool) -> Result<(), Trouble> {
        let until = since_boot() + APPLY_PATIENCE;
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
            self.standing.hear();
            while self.mark.slot < slot {
                if !go_on() {
                    return Err(Trouble::Stopped);
                }
                if since_boot() >= until {
                    return Ok(());
                }
                std::thread::sleep(APPLY_LOOK);
                let (mark, head) = read_replica(&self.path)?;
                (self.mark, self.head) = (mark, head.head());
            }
            self.tell_place();
        }
    }

    /// Makes sure that this is the log that the file follows, and that its way on is there.
    fn find_way(&self, go_on: &dyn Fn() -> bool) -> Result<(), Trouble> {
        let here = place_of(&self.mark);
        let mut newest = None;
        for slot in self.log.state_slots()? {
            newest = match self.log.manifest(slot) {
                Err(trouble @ Trouble::Object { .. }) => {
                    tracing::warn!(%trouble, "a state is passed over");
                    None
                }
                manifest => manifest?,
            };
            if newest.is_some() {
                break;
            }
        }
        let newest = newest.map(|manifest| StateAt::of_manifest(manifest).place);
        if let Some(Place { id: found, .. }) = newest.filter(|place| place.id != here.id) {
            return Err(Trouble::OtherDatabase { expected: here.id, found });
        }
        let leads = match newest {
            Some(state) if state.slot > here.slot => self.log.leads_to(here, state, go_on)?,
            Some(state) if state.slot == here.slot => state == here,
            // Entries after the newest state are never swept.
            Some(_) => self.log.holds(here)?,
            None if self.log.entry(here.slot)?.is_none() => return Err(Trouble::Nothing(self.log.url())),
            None => self.log.holds(here)?,
        };
        if leads {
            return Ok(());
        }
        match self.log.alive_for(here) {
            // No state there can be newer than this file.
            Ok(alive) if alive.seq < self.head.seq => {
                Err(Trouble::Behind { slot: alive.slot, end: alive.seq, here: self.head.seq })
            }
            Ok(_) | Err(Trouble::Unconfirmed(..)) => {
                Err(Trouble::Parted(format!("slot {} is not on the way to its end", here.slot)))
            }
            Err(trouble) => Err(trouble),
        }
    }

    /// Applies an entry.
    fn take(&mut self, entry: &Entry, go_on: &dyn Fn() -> bool) -> Result<(), Trouble> {
        let place = place_of(&self.mark).check_next(entry)?;
        self.standing.hear();
        if let Some(state) = StateAt::of_entry(&entry.header, entry.hash) {
            return self.load_in_place(&|load| load.from_state(state.clone(), place.slot), go_on);
        }
        check_format(entry, SCHEMA)?;
        let mark = mark_at(self.log.url(), place, entry.header.digest);
        let writer = open_writer(&mut self.writer, &self.path)?;
        let name = layout::log(place.slot);
        writer.apply(&commits_of(entry), &mark).map_err(|error| Trouble::of_apply(error, &name))?;
        (self.mark, self.head) = (mark, entry.header.head());
        self.last_put = Some((entry.header.seq, entry.header.who.clone()));
        self.standing.note(|progress| progress.applied += 1);
        self.tell_place();
        Ok(())
    }

    /// Puts what was loaded in the file's place.
    fn replace_by(&mut self, loaded: Loaded) -> Result<(), Trouble> {
        let Loaded { draft, mark, head, .. } = loaded;
        if head.seq < self.head.seq {
            return Err(Trouble::Behind { slot: mark.slot, end: head.seq, here: self.head.seq });
        }
        self.writer = Some(draft.take_name(self.writer.take())?);
        (self.mark, self.head) = (mark, head);
        self.standing.note(|progress| progress.loads += 1);
        self.tell_place();
        tracing::warn!(slot = self.mark.slot, seq = self.head.seq, "a whole state was loaded in the replica's place");
        Ok(())
    }

    /// Puts a report into the bucket: how far this replica is, and who used which key here (JSON).
    ///
    /// # Errors
    /// [`Trouble::Bucket`]; [`Trouble::Object`] when it is too long.
    pub fn report(&self, name: &str, who: &str, usage: String) -> Result<(), Trouble> {
        let (id, slot, seq) = (self.mark.id, self.mark.slot, self.head.seq);
        let report = ReplicaReport { id, slot, seq, at: now(), who: who.to_owned(), usage };
        let name = layout::replica(name);
        let bytes = report.encode().map_err(Trouble::malformed(&name))?;
        Ok(self.log.bucket().put(&name, &bytes)?)
    }

    fn tell_place(&self) {
        let (slot, seq) = (self.mark.slot, self.head.seq);
        self.standing.note(|progress| (progress.slot, progress.seq) = (slot, seq));
    }
}

/// Whether a replica that has a file may wait until a failure passes.
fn may_heal(trouble: &Trouble) -> bool {
    let is_of_disk = matches!(trouble, Trouble::Store(StoreError::DiskFull(_) | StoreError::Io { .. }));
    let is_of_bucket = matches!(trouble, Trouble::Bucket(BucketError::Unreachable(_)) | Trouble::Object { .. });
    is_of_disk || is_of_bucket || trouble.is_of_log() || matches!(trouble, Trouble::Paused(_))
}

/// A replica's file.
struct Opened {
    /// `None` where the file can only be read.
    writer: Option<ReplicaWriter>,
    /// Whether another process follows with it.
    is_followed: bool,
    mark: ReplicaMark,
    head: Head,
}

/// Opens a replica's file; for reading alone where another process follows with it, or it cannot be written to for now.
fn open(path: &Path) -> Result<Opened, StoreError> {
    let is_followed = match ReplicaWriter::open(path) {
        Ok(writer) => {
            let (mark, head) = (writer.mark()?, writer.head()?.head());
            return Ok(Opened { writer: Some(writer), is_followed: false, mark, head });
        }
        Err(StoreError::Busy { .. }) => true,
        Err(StoreError::DiskFull(_) | StoreError::Io { .. }) => false,
        Err(error) => return Err(error),
    };
    let (mark, head) = read_replica(path)?;
    Ok(Opened { writer: None, is_followed, mark, head: head.head() })
}

/// The writer of a replica's file, opened if it is not.
fn open_writer<'w>(writer: &'w mut Option<ReplicaWriter>, path: &Path) -> Result<&'w mut ReplicaWriter, StoreError> {
    match writer {
        Some(writer) => Ok(writer),
        None => Ok(writer.insert(ReplicaWriter::open(path)?)),
    }
}
