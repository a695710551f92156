//! What all commands share: their common arguments, opening the database, and committing.

use std::cell::Cell;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::{Duration, Instant};

use anyhow::bail;
use clap::builder::FalseyValueParser;
use clap::{Arg, ArgAction, ArgMatches, Command, value_parser};

use crate::cli::shared::arguments::parse_duration;
use crate::cli::shared::output::{Output, counted, note};
use crate::model::Head;
use crate::model::printable::Printable;
use crate::model::shell::ShellWord;
use crate::store::file::links::resolve;
use crate::store::replication::PublishedNote;
use crate::store::{CLOCK_TOLERANCE_S, Edit, Follower, StoreError, Writer};

/// The heading of common arguments in a command's help.
const HEADING: &str = "Common options";

const DB: &str = "db";
const JSON: &str = "json";
const WAIT: &str = "wait";
const PUBLISH_WAIT: &str = "publish-wait";

/// The names of the common arguments.
pub(in crate::cli) const NAMES: [&str; 4] = [DB, JSON, WAIT, PUBLISH_WAIT];

/// The exit code of a command that is done here, and that replicas do not know of yet.
const NOT_PUBLISHED: u8 = 3;
/// The exit code of a command whose database is published by another by now.
pub(in crate::cli) const EXIT_FENCED: u8 = 4;

/// How long a publisher at work takes for a commit, usually.
const USUAL_PUBLISH_TIME: Duration = Duration::from_secs(2);
/// The time between two looks whether a commit is published.
const LOOK_EVERY: Duration = Duration::from_millis(50);

/// What the common arguments said.
#[derive(Debug)]
pub(in crate::cli) struct Common {
    pub db: PathBuf,
    pub json: bool,
    pub wait: Duration,
    /// How long to wait until replicas can know of a commit; not given for commands that make none.
    pub publish_wait: Option<Duration>,
    /// Whether the command took something away, so that it says what replicas do not know yet even if it need not wait.
    pub takes_away: Cell<bool>,
}

/// The common argument of a command that serves the database.
pub(in crate::cli) fn serves() -> [Arg; 1] {
    let db = Arg::new(DB).long(DB).env("MEDFEED_DB").value_name("PATH").default_value("medfeed.redb");
    [db.value_parser(value_parser!(PathBuf)).help("The database file").help_heading(HEADING)]
}

/// The common argument of a command that tells something, and uses no database.
pub(in crate::cli) fn tells() -> [Arg; 1] {
    let json = Arg::new(JSON).long(JSON).env("MEDFEED_JSON").action(ArgAction::SetTrue);
    let json = json.value_parser(FalseyValueParser::new());
    [json.help("Print one JSON object on standard output, for scripts").help_heading(HEADING)]
}

/// The common arguments of a command that reads the database.
pub(in crate::cli) fn reads() -> [Arg; 2] {
    let ([db], [json]) = (serves(), tells());
    [db, json]
}

/// The common arguments of a command that takes the writer's lock.
pub(in crate::cli) fn writes() -> [Arg; 3] {
    let [db, json] = reads();
    let wait = Arg::new(WAIT).long(WAIT).env("MEDFEED_WAIT").value_name("TIME").default_value("30s");
    let help = "How long to wait for another process that is writing, such as 30s or 5m";
    [db, json, wait.value_parser(parse_duration).help(help).help_heading(HEADING)]
}

/// The common arguments of a command that makes a commit.
pub(in crate::cli) fn commits() -> [Arg; 4] {
    publishes("0s")
}

/// The common arguments of a command that takes access away, which is to be so at replicas too.
pub(in crate::cli) fn withdraws() -> [Arg; 4] {
    publishes("30s")
}

fn publishes(default: &'static str) -> [Arg; 4] {
    let [db, json, wait] = writes();
    let publish_wait = Arg::new(PUBLISH_WAIT).long(PUBLISH_WAIT).env("MEDFEED_PUBLISH_WAIT").value_name("TIME");
    let help = "How long to wait until a database that is published has the change in its bucket; 3 is the exit code if that \
                takes longer";
    let publish_wait = publish_wait.default_value(default).value_parser(parse_duration);
    [db, json, wait, publish_wait.help(help).help_heading(HEADING)]
}

/// Refuses to write a file into a folder that is not there.
pub(in crate::cli) fn require_folder(file: &Path) -> anyhow::Result<()> {
    let folder = file.parent().filter(|folder| !folder.as_os_str().is_empty());
    if let Some(folder) = folder.filter(|folder| !folder.exists()) {
        bail!("there is no folder {} for {}; create it: `mkdir -p \"{0}\"`", folder.display(), file.display());
    }
    Ok(())
}

/// Moves common options that stand before a command behind its name, where its own parser knows them.
pub(in crate::cli) fn move_behind_command(program: &Command, arguments: Vec<OsString>) -> Vec<OsString> {
    let mut arguments = arguments.into_iter();
    let (mut kept, mut moved): (Vec<OsString>, Vec<OsString>) = (arguments.next().into_iter().collect(), Vec::new());
    let mut command = program;
    while command.has_subcommands() {
        let Some(argument) = arguments.next() else { break };
        let text = argument.to_string_lossy();
        let name = text.strip_prefix("--").map(|option| option.split_once('=').map_or(option, |(name, _)| name));
        match name {
            Some(DB | WAIT | PUBLISH_WAIT) => {
                let has_value = text.contains('=');
                moved.push(argument);
                moved.extend(if has_value { None } else { arguments.next() });
            }
            Some(JSON) => moved.push(argument),
            _ => {
                let found = command.find_subcommand(&*text);
                kept.push(argument);
                // Of anything else the parser tells what is wrong.
                let Some(found) = found else { break };
                command = found;
            }
        }
    }
    // Without a command the parser asks for one.
    if kept.len() > 1 {
        kept.append(&mut moved);
    }
    kept.extend(arguments);
    kept
}

/// Whether replicas can know of a commit.
enum Publication {
    /// It is in the bucket, or the database was never published.
    Done,
    /// Not yet, but a publisher may be at work.
    Waiting(String),
    /// Another publisher took over.
    Fenced(String),
    /// Nothing tells that a publisher is at work here.
    Unknown(String),
}

impl Publication {
    /// Looks whether a commit of a database is published. Only a note about a commit that this very file holds counts: a note is
    /// left behind where a file is copied or moved.
    fn of(db: &Path, commit: Head) -> Result<Publication, StoreError> {
        let note = PublishedNote::read(db)?;
        let view = Follower::open(db)?.origin()?;
        let id = view.id()?;
        let Some(note) = note else {
            return Ok(match id {
                None => Publication::Done,
                Some(_) => Publication::Unknown(
                    "this database was published, and nothing next to it tells where to: run `medfeed publish URL` here, or on \
                     the machine that publishes it. If it is to stay unpublished, add --publish-wait 0s"
                        .to_owned(),
                ),
            });
        };
        if id != Some(note.id) {
            return Ok(Publication::Unknown(format!(
                "the note of what is published in {} is about another database: run `medfeed publish`, which tells more",
                Printable(&note.url)
            )));
        }
        let is_held = view.holds(note.seq, note.lineage)?;
        if is_held && note.seq >= commit.seq && view.holds(commit.seq, commit.lineage)? {
            return Ok(Publication::Done);
        }
        Ok(match note.fenced {
            Some(by) => Publication::Fenced(by),
            None if is_held => Publication::Waiting(format!(
                "it is not in {} so far. Look whether `medfeed publish` runs; `medfeed publish {} --status` tells what waits",
                Printable(&note.url),
                ShellWord(&Printable(&note.url).to_string())
            )),
            None => Publication::Waiting(format!(
                "{} ends with a commit that this file does not hold: the file was replaced by another copy. `medfeed publish {}` \
                 tells what to do",
                Printable(&note.url),
                ShellWord(&Printable(&note.url).to_string())
            )),
        })
    }
}

/// Tells that replicas do not know of what is done here.
fn note_late(why: &str) {
    note(&format!("done here; replicas do not know it yet: {why}"));
}

fn note_alone(db: &Path, by: &str) {
    note(&format!(
        "done in {} alone, which nobody follows any more: {}; do the same there",
        Printable(&db.display().to_string()),
        Printable(by)
    ));
}

impl Common {
    /// What the arguments of a command say; of those that it does not take, what has no effect.
    pub fn of(matches: &ArgMatches) -> Common {
        fn given<T: Clone + Send + Sync + 'static>(matches: &ArgMatches, id: &str) -> Option<T> {
            matches.try_get_one(id).ok().flatten().cloned()
        }
        Common {
            db: given(matches, DB).unwrap_or_default(),
            json: given(matches, JSON).unwrap_or_default(),
            wait: given(matches, WAIT).unwrap_or_default(),
            publish_wait: given(matches, PUBLISH_WAIT),
            takes_away: Cell::new(false),
        }
    }

    /// Waits until replicas can know of what was committed, where the database is published and the arguments say so. Returns
    /// the exit code of a command that is done.
    ///
    /// # Errors
    /// When the database, or the publisher's note beside it, cannot be read.
    pub fn await_published(&self) -> Result<ExitCode, StoreError> {
        let Some(time) = self.publish_wait else { return Ok(ExitCode::SUCCESS) };
        let (time, late) = match (time.is_zero(), self.takes_away.get()) {
            (false, _) => (time, ExitCode::from(NOT_PUBLISHED)),
            (true, true) => (USUAL_PUBLISH_TIME, ExitCode::SUCCESS),
            (true, false) => return Ok(ExitCode::SUCCESS),
        };
        let deadline = Instant::now() + time;
        let commit = self.open_follower()?.newest().commit().head();
        loop {
            match Publication::of(&self.db, commit)? {
                Publication::Done => return Ok(ExitCode::SUCCESS),
                Publication::Fenced(by) => {
                    note_alone(&self.db, &by);
                    return Ok(ExitCode::from(EXIT_FENCED));
                }
                Publication::Waiting(_) if Instant::now() < deadline => std::thread::sleep(LOOK_EVERY),
                Publication::Waiting(why) | Publication::Unknown(why) => {
                    note_late(&why);
                    return Ok(late);
                }
            }
        }
    }

    pub fn output(&self) -> Output {
        Output::new(self.json)
    }

    /// The path of the database file with links followed; its companion files stand beside it.
    pub fn resolved_db(&self) -> PathBuf {
        resolve(&self.db)
    }

    /// Opens the database for a short change. A long import gives way to it.
    pub fn open_writer(&self) -> Result<Writer, StoreError> {
        Writer::open_urgent(&self.db, self.wait)
    }

    /// Opens the database, be it a replica, with the lock that nobody else writes under.
    pub fn open_for_check(&self) -> Result<Writer, StoreError> {
        Writer::open_any(&self.db, self.wait)
    }

    /// Opens the database for a short change as [`Common::open_writer`] does, or creates it.
    pub fn open_or_create_for_change(&self) -> anyhow::Result<Writer> {
        if self.resolved_db().exists() { Ok(self.open_writer()?) } else { self.open_or_create_writer() }
    }

    pub fn open_or_create_writer(&self) -> anyhow::Result<Writer> {
        require_folder(&self.resolved_db())?;
        Ok(Writer::open_or_create(&self.db, self.wait)?)
    }

    pub fn open_follower(&self) -> Result<Follower, StoreError> {
        Follower::open(&self.db)
    }

    /// Commits an edit with its description for the history.
    pub fn commit(&self, mut edit: Edit<'_>, what: impl Into<String>) -> Result<(), StoreError> {
        let behind_s = edit.clock_behind_s();
        if behind_s > CLOCK_TOLERANCE_S {
            self.output().warning(format!(
                "the clock is {} behind the last commit, so this one carries that commit's time, {}; callers who work by \
                 updated_since see both as of then. Check the clocks of machines that write",
                counted(behind_s.unsigned_abs(), "second"),
                edit.time()
            ));
        }
        edit.describe(what);
        let is_new = edit.is_first();
        edit.commit()?;
        self.tell_if_new(is_new);
        self.warn_of_foreign_note();
        Ok(())
    }

    /// Warns where the publisher's note tells of a commit that the file does not hold, unless a restore explains that.
    fn warn_of_foreign_note(&self) {
        let find = || -> Result<Option<PublishedNote>, StoreError> {
            let Some(note) = PublishedNote::read(&self.db)?.filter(|note| note.fenced.is_none()) else {
                return Ok(None);
            };
            let view = self.open_follower()?.origin()?;
            let is_own = view.id()? == Some(note.id) && view.holds(note.seq, note.lineage)?;
            let is_explained = is_own || view.restored_over()?.is_some_and(|over| over.seq >= note.seq);
            Ok((!is_explained).then_some(note))
        };
        // A read failure is reported by the command itself.
        if let Ok(Some(note)) = find() {
            self.output().warning(format!(
                "{} was published to {} up to seq {}, with a commit that is not in this file: it was replaced by another copy. \
                 Replicas do not know what is written here before `medfeed publish {}` has told what to do",
                self.db.display(),
                Printable(&note.url),
                note.seq,
                ShellWord(&Printable(&note.url).to_string())
            ));
        }
    }

    /// Tells that the command made the database, as one does by mistake with a wrong `--db`.
    pub fn tell_if_new(&self, is_new: bool) {
        if is_new && self.db.exists() {
            note(&format!("{} is a new database", Printable(&self.db.display().to_string())));
        }
    }
}
