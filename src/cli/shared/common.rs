//! Code that all commands share: common options, opening the database, and committing.

use std::cell::Cell;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::{Duration, Instant};

use anyhow::bail;
use clap::builder::{FalseyValueParser, TypedValueParser};
use clap::{Arg, ArgAction, ArgMatches, Command, value_parser};

use crate::cli::shared::arguments::parse_duration;
use crate::cli::shared::output::{Output, counted, note, warn};
use crate::model::Head;
use crate::model::printable::Printable;
use crate::model::shell::ShellWord;
use crate::store::file::links::resolve;
use crate::store::replication::PublishedNote;
use crate::store::{CLOCK_TOLERANCE_S, Edit, Follower, StoreError, Writer};

/// The heading of common options in a command's help.
const HEADING: &str = "Common options";

const DB: &str = "db";
const JSON: &str = "json";
const WAIT: &str = "wait";
const PUBLISH_WAIT: &str = "publish-wait";
/// The option of several commands to change nothing.
const DRY_RUN: &str = "dry_run";

/// The names of the common options.
pub(in crate::cli) const NAMES: [&str; 4] = [DB, JSON, WAIT, PUBLISH_WAIT];

/// The exit code of a command that succeeded, but whose change is not published yet.
const NOT_PUBLISHED: u8 = 3;
/// The exit code of a command whose database another publisher took over.
pub(in crate::cli) const EXIT_FENCED: u8 = 4;

/// The usual time that a running publisher needs for a commit.
const USUAL_PUBLISH_TIME: Duration = Duration::from_secs(2);
/// The time between two checks whether a commit is published.
const POLL_INTERVAL: Duration = Duration::from_millis(50);

/// The values of the common options.
#[derive(Debug)]
pub(in crate::cli) struct Common {
    pub db: PathBuf,
    pub json: bool,
    pub wait: Duration,
    /// How long to wait until a commit is published; `None` for commands that make no commit, and for dry runs.
    pub publish_wait: Option<Duration>,
    /// Whether the command narrowed a license. Then it reports an unpublished commit even if it does not wait for it.
    pub narrows_access: Cell<bool>,
}

/// The common option of a command that serves the database.
pub(in crate::cli) fn db_option() -> [Arg; 1] {
    let db = Arg::new(DB).long(DB).env("MEDFEED_DB").value_name("PATH").default_value("medfeed.redb");
    [db.value_parser(value_parser!(PathBuf)).help("The database file").help_heading(HEADING)]
}

/// The common option of a command that prints a result and uses no database.
pub(in crate::cli) fn json_option() -> [Arg; 1] {
    let json = Arg::new(JSON).long(JSON).env("MEDFEED_JSON").action(ArgAction::SetTrue);
    let json = json.value_parser(FalseyValueParser::new());
    [json.help("Print one JSON object on standard output, for scripts").help_heading(HEADING)]
}

/// Whether a command line asks for JSON, also if it is wrong.
pub(in crate::cli) fn asks_for_json(arguments: &[OsString]) -> bool {
    let [option] = json_option();
    let variable = option.get_env().and_then(std::env::var_os);
    let is_set = |value: OsString| FalseyValueParser::new().parse_ref(&Command::default(), None, &value);
    arguments.iter().any(|argument| argument == "--json")
        || variable.map(is_set).is_some_and(|set| set.unwrap_or(false))
}

/// The common options of a command that reads the database.
pub(in crate::cli) fn read_options() -> [Arg; 2] {
    let ([db], [json]) = (db_option(), json_option());
    [db, json]
}

/// The common options of a command that takes the writer's lock.
pub(in crate::cli) fn write_options() -> [Arg; 3] {
    let [db, json] = read_options();
    let wait = Arg::new(WAIT).long(WAIT).env("MEDFEED_WAIT").value_name("TIME").default_value("30s");
    let help = "How long to wait while another process writes, such as 30s or 5m";
    [db, json, wait.value_parser(parse_duration).help(help).help_heading(HEADING)]
}

/// The common options of a command that makes a commit.
pub(in crate::cli) fn commit_options() -> [Arg; 4] {
    publish_wait_options("0s")
}

/// The common options of a command that revokes access. It waits for replicas by default.
pub(in crate::cli) fn revoke_options() -> [Arg; 4] {
    publish_wait_options("30s")
}

fn publish_wait_options(default: &'static str) -> [Arg; 4] {
    let [db, json, wait] = write_options();
    let publish_wait = Arg::new(PUBLISH_WAIT).long(PUBLISH_WAIT).env("MEDFEED_PUBLISH_WAIT").value_name("TIME");
    let help = "If the database is published: how long to wait until the bucket has the change. If this takes longer, the exit \
                code is 3";
    let publish_wait = publish_wait.default_value(default).value_parser(parse_duration);
    [db, json, wait, publish_wait.help(help).help_heading(HEADING)]
}

/// Returns an error if the folder of a file does not exist.
pub(in crate::cli) fn require_folder(file: &Path) -> anyhow::Result<()> {
    let folder = file.parent().filter(|folder| !folder.as_os_str().is_empty());
    if let Some(folder) = folder.filter(|folder| !folder.exists()) {
        let word = ShellWord(&folder.to_string_lossy()).to_string();
        bail!("there is no folder {} for {}; create it: `mkdir -p {word}`", folder.display(), file.display());
    }
    Ok(())
}

/// Moves common options from before a command to behind its name, where its own parser knows them.
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
                // The parser reports anything else.
                let Some(found) = found else { break };
                command = found;
            }
        }
    }
    // Without a command the parser reports that it is missing.
    if kept.len() > 1 {
        kept.append(&mut moved);
    }
    kept.extend(arguments);
    kept
}

/// Whether a commit is published.
enum Publication {
    /// The bucket has it, or the database was never published.
    Done,
    /// Not yet, but a publisher may be running.
    Waiting(String),
    /// Another publisher took over.
    Fenced(String),
    /// There is no sign of a publisher of this file.
    Unknown(String),
}

impl Publication {
    /// Returns whether a commit is published. The publisher's note counts only if this file contains the commit that it
    /// names: copying or moving a database can leave a note behind.
    fn of(db: &Path, commit: Head) -> Result<Publication, StoreError> {
        let note = PublishedNote::read(db)?;
        let view = Follower::open(db)?.origin()?;
        let id = view.id()?;
        let Some(note) = note else {
            return Ok(match id {
                None => Publication::Done,
                Some(_) => Publication::Unknown(
                    "this database was published, but no note next to it says where: run `medfeed publish URL` here, or on the \
                     machine that publishes it. If it is no longer published, add --publish-wait 0s"
                        .to_owned(),
                ),
            });
        };
        if id != Some(note.id) {
            return Ok(Publication::Unknown(format!(
                "the note next to it is about another database, published in {}; `medfeed publish` says more",
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
                "it is not in {} yet. Check that `medfeed publish` runs; `medfeed publish {} --status` shows what waits",
                Printable(&note.url),
                ShellWord(&Printable(&note.url).to_string())
            )),
            None => Publication::Waiting(format!(
                "{} ends with a commit that this file does not contain: the file was replaced by another copy. `medfeed publish \
                 {}` says what to do",
                Printable(&note.url),
                ShellWord(&Printable(&note.url).to_string())
            )),
        })
    }
}

fn note_unpublished(why: &str) {
    note(&format!("done here, but replicas do not have the change yet: {why}"));
}

fn note_fenced(db: &Path, by: &str) {
    note(&format!(
        "done only in {}, which is no longer published: {}; repeat the command in the database that took over",
        Printable(&db.display().to_string()),
        Printable(by)
    ));
}

impl Common {
    /// Reads the options of a command. Options that it does not take get values without effect.
    pub fn of(matches: &ArgMatches) -> Common {
        fn given<T: Clone + Send + Sync + 'static>(matches: &ArgMatches, id: &str) -> Option<T> {
            matches.try_get_one(id).ok().flatten().cloned()
        }
        let is_dry_run = given(matches, DRY_RUN).unwrap_or(false);
        Common {
            db: given(matches, DB).unwrap_or_default(),
            json: given(matches, JSON).unwrap_or_default(),
            wait: given(matches, WAIT).unwrap_or_default(),
            publish_wait: given(matches, PUBLISH_WAIT).filter(|_| !is_dry_run),
            narrows_access: Cell::new(false),
        }
    }

    /// Waits until the last commit is published, if the database is published and the options ask for it. Returns the
    /// exit code of a command that succeeded.
    pub fn await_publication(&self) -> Result<ExitCode, StoreError> {
        let Some(time) = self.publish_wait else { return Ok(ExitCode::SUCCESS) };
        let (time, late) = match (time.is_zero(), self.narrows_access.get()) {
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
                    note_fenced(&self.db, &by);
                    return Ok(ExitCode::from(EXIT_FENCED));
                }
                Publication::Waiting(_) if Instant::now() < deadline => std::thread::sleep(POLL_INTERVAL),
                Publication::Waiting(why) | Publication::Unknown(why) => {
                    note_unpublished(&why);
                    return Ok(late);
                }
            }
        }
    }

    pub fn output(&self) -> Output {
        Output::new(self.json)
    }

    /// The path of the database file with links resolved. Its companion files are next to it.
    pub fn resolved_db(&self) -> PathBuf {
        resolve(&self.db)
    }

    /// Opens the database for a change.
    pub fn open_writer(&self) -> Result<Writer, StoreError> {
        Writer::open(&self.db, self.wait)
    }

    /// Opens the database with the writer's lock, even if it is a replica.
    pub fn open_for_check(&self) -> Result<Writer, StoreError> {
        Writer::open_any(&self.db, self.wait)
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
            warn(&format!(
                "the clock is {} behind the last commit, so this commit gets the same time, {}; callers that use updated_since \
                 see both at that time. Check the clocks of the machines that write",
                counted(behind_s.unsigned_abs(), "second"),
                edit.time()
            ));
        }
        edit.describe(what);
        let is_new = edit.is_first();
        edit.commit()?;
        self.note_if_new(is_new);
        self.warn_of_foreign_note();
        Ok(())
    }

    /// Warns if the publisher's note names a commit that the file does not contain, unless a restore explains that.
    fn warn_of_foreign_note(&self) {
        let find = || -> Result<Option<PublishedNote>, StoreError> {
            let Some(note) = PublishedNote::read(&self.db)?.filter(|note| note.fenced.is_none()) else {
                return Ok(None);
            };
            let view = self.open_follower()?.origin()?;
            let is_own = view.id()? == Some(note.id) && view.holds(note.seq, note.lineage)?;
            let is_explained = is_own || view.is_restored_over(Head { seq: note.seq, lineage: note.lineage })?;
            Ok((!is_explained).then_some(note))
        };
        // The command itself reports read failures.
        if let Ok(Some(note)) = find() {
            warn(&format!(
                "{} was published to {} up to seq {}, with a commit that is not in this file: the file was replaced by another \
                 copy. Replicas do not get its changes; run `medfeed publish {}`, which says what to do",
                self.db.display(),
                Printable(&note.url),
                note.seq,
                ShellWord(&Printable(&note.url).to_string())
            ));
        }
    }

    /// Says that the command created the database, which may be a mistake in `--db`.
    pub fn note_if_new(&self, is_new: bool) {
        if is_new && self.db.exists() {
            note(&format!("{} is a new database", Printable(&self.db.display().to_string())));
        }
    }
}

#[cfg(test)]
mod tests {
    use std::process::Command as Process;

    use super::*;

    #[test]
    fn the_command_that_creates_a_folder_creates_just_this_one() {
        let root = tempfile::tempdir().unwrap();
        for name in ["plain", "with blank", "it's", "a\"b", "$HOME", "`touch pwned`", "$(touch pwned)", "a/b/c", "*"] {
            let file = root.path().join(name).join("feed.redb");
            let told = require_folder(&file).unwrap_err().to_string();
            let (_, line) = told.split_once("create it: `").unwrap();
            let line = line.strip_suffix('`').unwrap();
            let done = Process::new("sh").arg("-c").arg(line).current_dir(&root).output().unwrap();
            assert!(done.status.success(), "{line}: {done:?}");
            require_folder(&file).unwrap();
            assert!(!root.path().join("pwned").exists(), "{line}");
        }
        require_folder(Path::new("feed.redb")).unwrap();
    }

    #[test]
    fn options_before_a_command_move_behind_it() {
        let cases = [
            ("--db x.redb license list", "license list --db x.redb"),
            ("--db=x.redb license list --json", "license list --db=x.redb --json"),
            ("--wait 1s --publish-wait 2s key revoke k", "key revoke --wait 1s --publish-wait 2s k"),
            ("key --publish-wait=2s revoke k", "key revoke --publish-wait=2s k"),
            ("--json key list --db x", "key list --json --db x"),
            ("check --db x", "check --db x"),
            ("--db x", ""),
            ("--db", ""),
            ("--unknown check", "--unknown check"),
            ("--json nothing --db x", "nothing --json --db x"),
        ];
        let words = |line: &str| -> Vec<OsString> {
            std::iter::once("medfeed").chain(line.split_whitespace()).map(OsString::from).collect()
        };
        for (line, expected) in cases {
            let moved = move_behind_command(&crate::cli::program(), words(line));
            assert_eq!(moved, words(expected), "{line}");
        }
    }
}
