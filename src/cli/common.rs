//! Code that all commands share: common options, opening the database, and committing.

use std::ffi::OsString;
use std::fmt::Display;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use clap::Args;
use indicatif::ProgressBar;
use serde::Serialize;

use crate::bucket::{Bucket, BucketUrl, SealKey};
use crate::cli::arguments::{parse_duration, parse_switch, path_parser};
use crate::cli::output::{can_ask, can_draw, confirm, counted, note, print_json, print_text, warn};
use crate::disk::folder_of;
use crate::model::{DAY_S, Head, Printable, ShellWord, now};
use crate::replicate::replica::LogReader;
use crate::store::file::metadata::resolve;
use crate::store::replication::PublishedNote;
use crate::store::{CLOCK_TOLERANCE_S, CommitPoint, Edit, Reader, StoreError, Writer};

/// The exit code of a command that succeeded, but whose change is not published yet.
pub const NOT_PUBLISHED: u8 = 3;
/// The exit code of a command whose database another publisher took over.
pub const EXIT_FENCED: u8 = 4;

/// The time for which a command that revokes keys waits for replicas by default.
const REVOKE_PUBLISH_WAIT: Duration = Duration::from_secs(30);
/// The usual time that a running publisher needs for a commit.
const USUAL_PUBLISH_TIME: Duration = Duration::from_secs(2);
/// The days since the last commit from which a commit needs a yes. A yearly list does not, also in a leap year.
const UNLIKELY_PAUSE_DAYS: i64 = 366;
/// The time between two checks whether a commit is published.
const POLL_INTERVAL: Duration = Duration::from_millis(50);

/// The global options.
#[derive(Args)]
#[command(next_help_heading = "Global options")]
pub struct Common {
    /// The database file
    #[arg(long, global = true, env = "MEDFEED_DB", value_name = "PATH", default_value = "medfeed.redb",
          value_parser = path_parser())]
    pub db: PathBuf,
    /// Print one JSON object on standard output, for scripts
    #[arg(long, global = true, env = "MEDFEED_JSON", value_parser = parse_switch)]
    pub json: bool,
    /// Do not ask: each question counts as answered with yes. Without it and without a terminal, a command that must
    /// ask is refused
    #[arg(long, global = true)]
    pub yes: bool,
    /// How long to wait while another process writes, such as 30s or 5m
    #[arg(long, global = true, env = "MEDFEED_WAIT", value_name = "TIME", default_value = "30s",
          value_parser = parse_duration)]
    pub wait: Duration,
    /// How long to wait until the bucket has a commit, if the database is published. If this takes longer, the exit
    /// code is 3 [default: 30s for a command that revokes keys, else 0s]
    #[arg(long, global = true, env = "MEDFEED_PUBLISH_WAIT", value_name = "TIME", value_parser = parse_duration)]
    pub publish_wait: Option<Duration>,
}

/// The effect of a commit on access, which decides how long its command waits for replicas.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum AccessChange {
    /// Nobody loses access.
    None,
    /// A license shows fewer records. An unpublished commit is reported, unless the options say not to wait.
    Narrowed,
    /// Keys are revoked.
    Revoked,
}

/// Whether a command line asks for JSON, also if it is wrong.
pub fn asks_for_json(arguments: &[OsString]) -> bool {
    arguments.iter().any(|argument| argument == "--json")
        || std::env::var("MEDFEED_JSON").is_ok_and(|value| parse_switch(&value) == Ok(true))
}

/// Returns an error if the folder of a file does not exist.
pub fn require_folder(file: &Path) -> Result<()> {
    let folder = folder_of(file);
    if !folder.exists() {
        let word = ShellWord(&folder.to_string_lossy()).to_string();
        bail!(
            "there is no folder {} for {}; create it: `mkdir -p {word}`",
            folder.display(),
            file.display()
        );
    }
    Ok(())
}

/// The option for encrypted buckets.
#[derive(Debug, Args)]
pub struct SealArgs {
    /// The file with the seal key, which encrypts the bucket. Publisher and replicas need the same key; create one with
    /// `openssl rand -hex 64`
    #[arg(long, env = "MEDFEED_SEAL_KEY", value_name = "FILE")]
    pub seal_key: Option<PathBuf>,
}

impl SealArgs {
    /// A reader of the log in a bucket.
    pub fn open_log(&self, url: &BucketUrl) -> Result<LogReader> {
        let seal = self.seal_key.as_deref().map(SealKey::load).transpose();
        let bucket = Bucket::open(url, seal.map_err(anyhow::Error::msg)?)?;
        Ok(LogReader::new(bucket))
    }
}

/// Describes the pause since the last commit if it has so many days. Then the clock may be ahead.
fn describe_pause(last: CommitPoint, min_days: i64) -> Option<String> {
    let clock = now();
    let days = (clock.unix_s() - last.time.unix_s()) / DAY_S;
    (last.seq > 0 && days >= min_days).then(|| {
        format!(
            "the clock shows {clock}, {days} days after the last commit, which is of {}. If it is ahead, later commits get no \
             earlier time. Is the clock right?",
            last.time
        )
    })
}

/// Warns of a commit after an unusual pause.
pub fn warn_of_pause(last: CommitPoint) {
    describe_pause(last, 30)
        .iter()
        .for_each(|pause| warn(pause));
}

/// Whether a commit is published.
enum Publication {
    /// The bucket has it, or the database was never published.
    Done,
    /// Not yet, but a publisher may be running.
    Waiting(String),
    /// Another publisher took over.
    Fenced(String),
    /// The note is about another file. Contains the reason.
    Foreign(String),
    /// There is no sign of a publisher of this file.
    Unknown(String),
}

impl Publication {
    /// Returns whether a commit is published. The publisher's note counts only if this file contains the commit that it
    /// names: copying or moving a database can leave a note behind.
    fn of(db: &Path, commit: Head) -> Result<Publication, StoreError> {
        let note = PublishedNote::read(db)?;
        let view = Reader::open(db)?.origin()?;
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
        let url = Printable(&note.url).to_string();
        let word = ShellWord(&url);
        if id != Some(note.id) {
            return Ok(Publication::Foreign(format!(
                "the note next to it is about another database, published in {url}; `medfeed publish` says more"
            )));
        }
        let is_held = view.holds(note.head())?;
        if is_held && note.seq >= commit.seq && view.holds(commit)? {
            return Ok(Publication::Done);
        }
        Ok(match note.fenced {
            Some(by) => Publication::Fenced(by),
            // After a restore, the publisher continues from a commit that the file has no more.
            None if is_held || view.is_restored_over(note.head())? => {
                Publication::Waiting(format!(
                    "it is not in {url} yet. Check that `medfeed publish` runs; `medfeed publish {word} --status` shows what waits"
                ))
            }
            None => Publication::Foreign(format!(
                "{url} ends with a commit, at seq {}, that this file does not contain: the file was replaced by another copy. \
                 `medfeed publish {word}` says what to do",
                note.seq
            )),
        })
    }
}

impl Common {
    /// Waits until the last commit is published, if the database is published and the options ask for it. Returns the
    /// exit code of the command that made the commit. The writer's lock must be free: the publisher takes it.
    pub fn await_publication(&self, access: AccessChange) -> Result<ExitCode> {
        let default = match access {
            AccessChange::None => Duration::ZERO,
            AccessChange::Narrowed => USUAL_PUBLISH_TIME,
            AccessChange::Revoked => REVOKE_PUBLISH_WAIT,
        };
        let time = self.publish_wait.unwrap_or(default);
        if time.is_zero() {
            return Ok(ExitCode::SUCCESS);
        }
        let is_only_noted = access == AccessChange::Narrowed && self.publish_wait.is_none();
        let deadline = Instant::now() + time;
        let commit = self.open_reader()?.newest().commit().head();
        loop {
            match Publication::of(&self.db, commit)? {
                Publication::Done => return Ok(ExitCode::SUCCESS),
                Publication::Fenced(by) => {
                    note(&format!(
                        "done only in {}, which is no longer published: {}; repeat the command in the database that took over",
                        Printable(&self.db.display().to_string()),
                        Printable(&by)
                    ));
                    return Ok(ExitCode::from(EXIT_FENCED));
                }
                Publication::Waiting(_) if Instant::now() < deadline => {
                    std::thread::sleep(POLL_INTERVAL)
                }
                Publication::Waiting(why)
                | Publication::Foreign(why)
                | Publication::Unknown(why) => {
                    note(&format!(
                        "done here, but replicas do not have the change yet: {why}"
                    ));
                    let code = if is_only_noted { 0 } else { NOT_PUBLISHED };
                    return Ok(ExitCode::from(code));
                }
            }
        }
    }

    /// Prints the result as text or JSON. Returns the exit code of success.
    pub fn result(&self, json: &impl Serialize, text: impl Display) -> Result<ExitCode> {
        let printed = if self.json {
            print_json(&serde_json::to_string(json)?)
        } else {
            print_text(&text.to_string())
        };
        printed.context(
            "the command did its work, but its result cannot be written to standard output",
        )?;
        Ok(ExitCode::SUCCESS)
    }

    /// A progress bar, hidden without a terminal and with `--json`.
    pub fn progress_bar(&self) -> ProgressBar {
        if self.json || !can_draw() {
            ProgressBar::hidden()
        } else {
            ProgressBar::new_spinner()
        }
    }

    /// Prints a warning that the JSON form of the result contains, unless the output is JSON.
    pub fn warning(&self, message: &str) {
        if !self.json {
            warn(message);
        }
    }

    /// The path of the database file with links resolved. Its companion files are next to it.
    pub fn resolved_db(&self) -> PathBuf {
        resolve(&self.db)
    }

    /// Opens the database for a change.
    pub fn open_writer(&self) -> Result<Writer, StoreError> {
        Writer::open(&self.db, self.wait)
    }

    /// Fails if there is no database, unless the command may create it. A dry run only warns.
    pub fn require_db(&self, create: bool, dry_run: bool) -> Result<()> {
        let db = self.resolved_db();
        if create || db.exists() {
            return Ok(());
        }
        let message = format!(
            "no database at {}: give --db or MEDFEED_DB the path of yours, or add --create to make a new one there",
            db.display()
        );
        if !dry_run {
            bail!(message);
        }
        warn(&message);
        Ok(())
    }

    /// Opens the database, or creates it. [`Common::require_db`] comes first where that needs `--create`.
    pub fn open_or_create_writer(&self) -> Result<Writer> {
        require_folder(&self.resolved_db())?;
        Ok(Writer::open_or_create(&self.db, self.wait)?)
    }

    /// Opens the database for a change. The change of a dry run is made in a copy: a question takes no lock, and needs
    /// no right to write.
    pub fn open_to_change(&self, create: bool, dry_run: bool) -> Result<Writer> {
        Ok(match (dry_run, create) {
            (true, _) => Writer::of_copy(&self.resolved_db())?,
            (false, true) => self.open_or_create_writer()?,
            (false, false) => self.open_writer()?,
        })
    }

    pub fn open_reader(&self) -> Result<Reader, StoreError> {
        Reader::open(&self.db)
    }

    /// Asks on a terminal if the clock seems to be far ahead. The writer's lock must be free: no other command waits for
    /// the user.
    pub fn confirm_clock(&self) -> Result<()> {
        // Opening the writer reports errors.
        let last = self.open_reader().map(|reader| reader.newest().commit());
        match describe_pause(last.unwrap_or_default(), UNLIKELY_PAUSE_DAYS) {
            Some(question) if can_ask() => confirm(&question, self.yes, "changed"),
            _ => Ok(()),
        }
    }

    /// Commits an edit with its description for the history. Without a terminal, a clock that seems to be far ahead needs
    /// `--yes`. On a terminal, [`Common::confirm_clock`] has asked before.
    pub fn commit(&self, mut edit: Edit<'_>, what: impl Into<String>) -> Result<()> {
        if !edit.is_empty() {
            let last = edit.base_commit();
            if let Some(question) = describe_pause(last, UNLIKELY_PAUSE_DAYS) {
                confirm(&question, self.yes || can_ask(), "changed")?;
            }
            warn_of_pause(last);
        }
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
        let is_new = edit.creates_file();
        edit.commit()?;
        self.note_if_new(is_new);
        self.warn_of_foreign_note();
        Ok(())
    }

    /// Warns if the publisher's note is about another file.
    fn warn_of_foreign_note(&self) {
        // The command itself reports read failures.
        if let Ok(reader) = self.open_reader()
            && let head = reader.newest().commit().head()
            && let Ok(Publication::Foreign(why)) = Publication::of(&self.db, head)
        {
            let db = self.db.display();
            warn(&format!("replicas do not get the changes of {db}: {why}"));
        }
    }

    /// Says that the command created the database, which may be a mistake in `--db`.
    pub fn note_if_new(&self, is_new: bool) {
        if is_new && self.db.exists() {
            note(&format!(
                "{} is a new database",
                Printable(&self.db.display().to_string())
            ));
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
        for name in words![
            "plain" "with blank" "it's" "a\"b" "$HOME" "`touch pwned`" "$(touch pwned)" "a/b/c" "*"
        ] {
            let file = root.path().join(name).join("feed.redb");
            let told = require_folder(&file).unwrap_err().to_string();
            let (_, line) = told.split_once("create it: `").unwrap();
            let line = line.strip_suffix('`').unwrap();
            let done = Process::new("sh")
                .arg("-c")
                .arg(line)
                .current_dir(&root)
                .output()
                .unwrap();
            assert!(done.status.success(), "{line}: {done:?}");
            require_folder(&file).unwrap();
            assert!(!root.path().join("pwned").exists(), "{line}");
        }
        require_folder(Path::new("feed.redb")).unwrap();
    }
}
