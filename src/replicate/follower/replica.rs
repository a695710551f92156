//! A replica: the only writer of a file that follows a log, or who stands by while another process is.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use super::clock::since_boot;
use super::load::{Load, Loaded, commits_of, mark_at, place_of};
use super::log::{LogReader, Place, StateAt};
use super::standing::Standing;
use super::trouble::Trouble;
use crate::bucket::BucketError;
use crate::model::Head;
use crate::model::time::now;
use crate::replicate::entry::Entry;
use crate::replicate::layout;
use crate::replicate::report::{Alive, ReplicaReport};
use crate::store::replication::{ReplicaMark, ReplicaWriter, read_replica};
use crate::store::{StoreError, panics};

/// After so long without the bucket, entries are looked for again from the newest state's side: places may have been swept.
const DOUBT_AFTER: Duration = Duration::from_secs(3600);
/// The time between two looks for the publisher's sign of life.
const LISTEN_EVERY: Duration = Duration::from_secs(15);
/// The least time between two whole loads that mend something.
const MEND_EVERY: Duration = Duration::from_secs(60);
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
    alive: Option<Alive>,
    /// Why the sign of life could not be read the last time.
    alive_trouble: Option<String>,
    listen_at: Duration,
    mend_at: Duration,
}

impl Replica {
    /// Opens the replica at a path, or loads one where there is no file. A replica that is there is brought to the log's end if
    /// the bucket can be reached; else it is as it was.
    ///
    /// # Errors
    /// [`Trouble`], but for a bucket that cannot be reached and objects that cannot be used, where there is a replica.
    pub fn start(
        log: LogReader,
        path: &Path,
        standing: Arc<Standing>,
        go_on: &dyn Fn() -> bool,
    ) -> Result<Replica, Trouble> {
        let (writer, mark, head) = loop {
            match open(path) {
                Err(StoreError::NotFound { .. }) => {}
                opened => break opened?,
            }
            let load = Load { log: &log, path, id: None, until: None, go_on };
            let Loaded { draft, mark, head } = load.newest()?;
            match draft.take_name(None) {
                // Another process has loaded it meanwhile.
                Err(StoreError::Replaced { .. }) => {}
                taken => {
                    standing.note(|progress| progress.loads += 1);
                    break (Some(taken?), mark, head);
                }
            }
        };
        let mut replica = Replica {
            log,
            path: path.to_owned(),
            stands_by: writer.is_none(),
            writer,
            mark,
            head,
            standing,
            is_on_way: false,
            alive: None,
            alive_trouble: None,
            listen_at: Duration::ZERO,
            mend_at: Duration::ZERO,
        };
        if replica.stands_by {
            tracing::info!("another server follows with this file; this one reads it, and follows when that one ends");
        }
        replica.tell_place();
        match replica.advance_and_mend(go_on) {
            Ok(()) => Ok(replica),
            // Its follower mends it.
            Err(Trouble::Parted(_)) if replica.stands_by => Ok(replica),
            Err(trouble @ (Trouble::Bucket(BucketError::Unreachable(_)) | Trouble::Object { .. })) => {
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

    /// Looks at the log: applies what is new, up to its end. Returns whether another look makes sense; what goes wrong is
    /// told in the log and in the replica's standing.
    pub fn look(&mut self, go_on: &dyn Fn() -> bool) -> bool {
        if self.standing.stale_for().is_none_or(|age| age > DOUBT_AFTER) {
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
                self.listen();
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
        let may_help = match &trouble {
            Trouble::Parted(_) | Trouble::Digest(_) => true,
            Trouble::Object { .. } => self.log.state_slots()?.first().is_some_and(|newest| *newest > self.mark.slot),
            _ => false,
        };
        if !may_help || self.stands_by || since_boot() < self.mend_at {
            return Err(trouble);
        }
        self.mend_at = since_boot() + MEND_EVERY;
        tracing::error!(error = %trouble, "the whole state is loaded anew");
        let load = Load { log: &self.log, path: &self.path, id: Some(self.mark.id), until: None, go_on };
        let loaded = load.newest()?;
        self.replace_by(loaded)?;
        self.is_on_way = true;
        self.advance(go_on)
    }

    fn advance(&mut self, go_on: &dyn Fn() -> bool) -> Result<(), Trouble> {
        self.reopen()?;
        if !self.is_on_way {
            self.find_way(go_on)?;
            self.is_on_way = true;
        }
        if self.stands_by {
            return self.stand_by(go_on);
        }
        loop {
            let asked = since_boot();
            let Some(entry) = self.log.entry(self.mark.slot + 1)? else {
                self.standing.see_end(asked);
                return Ok(());
            };
            self.take(&entry, go_on)?;
            if !go_on() {
                return Err(Trouble::Stopped);
            }
        }
    }

    /// Sees to it that the file is open for writing, unless another process follows with it.
    fn reopen(&mut self) -> Result<(), Trouble> {
        if self.writer.is_some() {
            return Ok(());
        }
        (self.writer, self.mark, self.head) = open(&self.path)?;
        let stood_by = std::mem::replace(&mut self.stands_by, self.writer.is_none());
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
            if self.log.entry(slot)?.is_none() {
                self.standing.see_end(asked);
                return Ok(());
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
            Some(_) => self.log.entry(here.slot)?.is_some_and(|entry| entry.hash == here.hash),
            None => match self.log.entry(here.slot)? {
                Some(entry) => entry.hash == here.hash,
                None => return Err(Trouble::Nothing(self.log.url())),
            },
        };
        if leads { Ok(()) } else { Err(Trouble::Parted(format!("slot {} is not on the way to its end", here.slot))) }
    }

    /// Applies an entry.
    fn take(&mut self, entry: &Entry, go_on: &dyn Fn() -> bool) -> Result<(), Trouble> {
        let place = place_of(&self.mark).check_next(entry)?;
        self.standing.hear();
        if let Some(state) = StateAt::of_entry(&entry.header, entry.hash) {
            let load = Load { log: &self.log, path: &self.path, id: Some(self.mark.id), until: None, go_on };
            let loaded = load.from_state(state, place.slot)?;
            return self.replace_by(loaded);
        }
        let mark = mark_at(self.log.url(), place, entry.header.digest);
        let writer = self.writer.as_mut().ok_or(Trouble::Stopped)?;
        let name = layout::log(place.slot);
        writer.apply(&commits_of(entry), &mark).map_err(|error| Trouble::of_apply(error, &name))?;
        (self.mark, self.head) = (mark, entry.header.head());
        self.standing.note(|progress| progress.applied += 1);
        self.tell_place();
        Ok(())
    }

    /// Puts what was loaded in the file's place.
    fn replace_by(&mut self, loaded: Loaded) -> Result<(), Trouble> {
        let Loaded { draft, mark, head } = loaded;
        if head.seq < self.head.seq {
            return Err(Trouble::Behind { end: head.seq, here: self.head.seq });
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

    /// Looks for the publisher's sign of life. That there is none is told by the time that passes.
    fn listen(&mut self) {
        if since_boot() < self.listen_at {
            return;
        }
        self.listen_at = since_boot() + LISTEN_EVERY;
        match self.log.alive() {
            Ok(alive) => {
                self.alive_trouble = None;
                let alive = alive.filter(|alive| alive.id == self.mark.id);
                // A bucket that is gone has no next entry either: that is no end of the log.
                self.is_on_way &= alive.is_some();
                if alive.is_some() && alive != self.alive {
                    self.standing.hear();
                    self.alive = alive;
                }
            }
            Err(trouble) => {
                let told = trouble.to_string();
                // Once: it is overwritten soon.
                if self.alive_trouble.as_ref() != Some(&told) {
                    tracing::warn!(%trouble, "the publisher's sign of life cannot be read");
                }
                self.alive_trouble = Some(told);
            }
        }
    }
}

/// Opens a replica's file, for reading alone where another process follows with it.
fn open(path: &Path) -> Result<(Option<ReplicaWriter>, ReplicaMark, Head), StoreError> {
    match ReplicaWriter::open(path) {
        Ok(writer) => {
            let (mark, head) = (writer.mark()?, writer.head()?.head());
            Ok((Some(writer), mark, head))
        }
        Err(StoreError::Busy { .. }) => {
            let (mark, head) = read_replica(path)?;
            Ok((None, mark, head.head()))
        }
        Err(error) => Err(error),
    }
}
