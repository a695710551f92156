//! The command line: [`commands`] has one file per subcommand, [`shared`] the code that several use, and [`help`]
//! examples and hints for wrong command lines.

mod commands;
mod help;
mod shared;

use std::ffi::OsString;
use std::process::ExitCode;

use clap::error::ErrorKind;
use clap::{CommandFactory, FromArgMatches, Parser, Subcommand};

use self::commands::{
    check, completions, demo, export, health, import, key, license, lint, log, manual, pull, replace, serve, show,
    template, upgrade,
};
#[cfg(feature = "bucket")]
use self::commands::{promote, publish};
use self::help::{examples, usage, variables};
use self::shared::common::{self, Common, EXIT_FENCED};
use self::shared::failure;
use self::shared::output::{Output, note};
use crate::model::printable::steers;
use crate::store::StoreError;
use crate::store::file::writer_note::name_command;
use crate::store::panics::{self, CaughtPanic};

/// Licensed, read-only access to curated medical conference and journal records.
#[derive(Debug, Parser)]
#[command(name = "medfeed", version, about, max_term_width = 100)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Serve sample data from a temporary database, and print curl commands to try
    Demo(demo::DemoArgs),
    /// Serve the database over HTTP
    #[command(args = common::db_option())]
    Serve(Box<serve::ServeArgs>),
    /// Check that the running server is healthy, for example as the health check of a container
    #[command(args = common::json_option())]
    Health(health::HealthArgs),
    /// Import curated files in one commit, all or nothing
    #[command(args = common::commit_options())]
    Import(import::ImportArgs),
    /// Find likely mistakes in files or in the database; change nothing
    #[command(args = common::write_options())]
    Lint(lint::LintArgs),
    /// Write all records, organizations and tags as import files
    #[command(args = common::read_options())]
    Export(export::ExportArgs),
    /// Print the header of an import file, or write an empty workbook to fill in
    #[command(args = common::json_option())]
    Template(template::TemplateArgs),
    /// Manage licenses, which define what customers see
    #[command(subcommand)]
    License(license::LicenseCommand),
    /// Manage the API keys of licenses
    #[command(subcommand)]
    Key(key::KeyCommand),
    /// Keep a copy of the records that a license shows, in SQLite, PostgreSQL or a folder
    ///
    /// The first run loads an export, later runs apply the change feed. A run that fails leaves the copy as it was
    /// after the last complete page. With --json each change is printed when it is applied, one line per entry:
    /// {"dataset": ..., "entry": ...}.
    ///
    /// Exit codes: 0 done; 1 failed, but a retry may succeed; 2 wrong usage; 3 the service rejects the key, or the
    /// license lacks a dataset; 4 the copy cannot be used.
    #[command(args = common::json_option())]
    Pull(Box<pull::PullArgs>),
    /// Publish the database into a bucket, for any number of replicas
    ///
    /// Each commit becomes an entry of a log in the bucket, within about a second. The command runs until it is
    /// stopped. It may be killed at any moment: the next start continues at the end of the log. While the bucket cannot
    /// be reached, commits continue, and are published later.
    ///
    /// Exit codes: 0 done; 1 failed; 2 wrong usage; 3 the bucket cannot be reached now (with --once); 4 another
    /// publisher took over. In the last case, later commits here are only in this file, and commands that write to it
    /// are refused.
    #[cfg(feature = "bucket")]
    #[command(args = common::write_options())]
    Publish(Box<publish::PublishArgs>),
    /// Show a record, when it changed, and which licenses show it
    #[command(args = common::read_options())]
    Show(show::ShowArgs),
    /// Show the commits: who changed what, and when
    #[command(args = common::read_options())]
    Log(log::CommitLogArgs),
    /// Compare every index, hash and count of the database with its records
    #[command(args = common::write_options())]
    Check(check::CheckArgs),
    /// Write a consistent copy of the database, also while it is read and written
    #[command(args = common::read_options())]
    Backup(replace::BackupArgs),
    /// Replace the database with a backup; every older sync token gets 410
    #[command(args = common::commit_options())]
    Restore(replace::RestoreArgs),
    /// Shrink the database file; sync tokens stay valid
    #[command(args = common::write_options())]
    Compact,
    /// Convert the database of an older medfeed to the format of this one; licenses, keys and sync tokens stay
    ///
    /// medfeed writes a copy, checks it, and replaces the database with it in one step. The old file is kept next to
    /// it, as NAME.format-4. Servers of the old medfeed continue to answer from the old file until they are restarted.
    #[command(args = common::write_options())]
    Upgrade(upgrade::UpgradeArgs),
    /// Turn a replica into the origin after the old origin was lost
    #[cfg(feature = "bucket")]
    #[command(args = common::read_options())]
    Promote(promote::PromoteArgs),
    /// Print a completion script for a shell
    Completions(completions::CompletionsArgs),
    /// Print the manual pages, or write them into a folder
    Man(manual::ManArgs),
}

/// Whether an argument or a variable contains control characters. clap repeats both in its messages.
fn has_control_characters(arguments: Vec<OsString>) -> bool {
    let variables = std::env::vars_os().filter(|(name, _)| name.to_string_lossy().starts_with("MEDFEED_"));
    let mut inputs = arguments.into_iter().chain(variables.map(|(_, value)| value));
    inputs.any(|text| text.to_string_lossy().contains(steers))
}

/// All commands with their arguments and examples.
fn program() -> clap::Command {
    examples::add(Cli::command(), "")
}

impl Cli {
    /// Parses the arguments. Also returns the common options, and the name of the command, such as `license set`.
    fn parse_named(arguments: Vec<OsString>) -> Result<(Cli, Common, String), clap::Error> {
        let mut program = program();
        let arguments = common::move_behind_command(&program, arguments);
        let matches = match program.try_get_matches_from_mut(&arguments) {
            Ok(matches) => matches,
            Err(error) => return Err(usage::explain(error, &program, &arguments)),
        };
        let (mut names, mut leaf) = (Vec::new(), &matches);
        while let Some((name, matches)) = leaf.subcommand() {
            names.push(name);
            leaf = matches;
        }
        let cli = Cli::from_arg_matches(&matches).map_err(|error| error.format(&mut program))?;
        if !matches!(cli.command, Command::Completions(_) | Command::Man(_)) {
            variables::warn_of_unknown(&program);
        }
        Ok((cli, Common::of(leaf), names.join(" ")))
    }
}

/// Parses the arguments, runs the command, and returns its exit code: 0 for success, 1 for a failure that changed
/// nothing, 2 for wrong usage, 3 if a commit is not published yet, 4 if another publisher took over.
pub fn run() -> ExitCode {
    let arguments: Vec<OsString> = std::env::args_os().collect();
    let (cli, common, command_name) = match Cli::parse_named(arguments.clone()) {
        Ok(parsed) => parsed,
        Err(error) => {
            let is_requested = matches!(error.kind(), ErrorKind::DisplayHelp | ErrorKind::DisplayVersion);
            if !is_requested && common::asks_for_json(&arguments) {
                let message = error.render().to_string();
                Output::new(true).error(message.strip_prefix("error: ").unwrap_or(&message));
            }
            if has_control_characters(arguments) {
                note(&error.render().to_string());
            } else {
                // A closed terminal shows nothing.
                let _ = error.print();
            }
            return if is_requested { ExitCode::SUCCESS } else { ExitCode::from(2) };
        }
    };
    name_command(command_name);
    panics::set_panic_hook(log_panic);
    let db = common.db.display();
    let mut code = ExitCode::FAILURE;
    let message = match panics::catch(|| {
        run_command(&common, cli.command).and_then(|code| wait_until_published(&common, code))
    }) {
        Ok(Ok(code)) => {
            // The command succeeded and printed its result.
            if let Some(damage) = panics::take_damage_at_close() {
                note(&format!("warning: {db}: {damage}"));
            }
            return code;
        }
        Ok(Err(error)) => {
            let message = failure::describe(&error);
            match error.downcast_ref() {
                // The engine's errors do not name the file.
                Some(StoreError::Damaged { .. } | StoreError::UnknownRow { .. } | StoreError::Engine(_)) => {
                    format!("{db}: {message}")
                }
                Some(StoreError::Fenced { .. }) => {
                    code = ExitCode::from(EXIT_FENCED);
                    message
                }
                _ => message,
            }
        }
        Err(CaughtPanic { message, is_of_store: true }) => format!(
            "{db}: the database is damaged: the engine stopped: {message}; run `medfeed check`, and restore a backup"
        ),
        Err(CaughtPanic { message, .. }) => format!("this is a bug in medfeed, please report it: {message}"),
    };
    common.output().error(&message);
    code
}

/// Waits until replicas can have the change of a command that succeeded. Returns the exit code.
fn wait_until_published(common: &Common, code: ExitCode) -> anyhow::Result<ExitCode> {
    if code == ExitCode::SUCCESS { Ok(common.await_publication()?) } else { Ok(code) }
}

fn run_command(common: &Common, command: Command) -> anyhow::Result<ExitCode> {
    match command {
        Command::Demo(args) => demo::run(common, args),
        Command::Serve(args) => serve::run(common, *args),
        Command::Health(args) => health::run(common, args),
        Command::Import(args) => import::run(common, &args),
        Command::Lint(args) => lint::run(common, &args),
        Command::Export(args) => export::run(common, args),
        Command::Template(args) => template::run(common, &args),
        Command::License(command) => license::run(common, command),
        Command::Key(command) => key::run(common, command),
        Command::Pull(args) => pull::run(common, *args),
        #[cfg(feature = "bucket")]
        Command::Publish(args) => publish::run(common, *args),
        Command::Show(args) => show::run(common, &args),
        Command::Log(args) => log::run(common, &args),
        Command::Check(args) => check::run(common, &args),
        Command::Backup(args) => replace::backup(common, &args),
        Command::Restore(args) => replace::restore(common, &args),
        Command::Compact => replace::compact(common),
        Command::Upgrade(args) => upgrade::run(common, &args),
        #[cfg(feature = "bucket")]
        Command::Promote(args) => promote::run(common, &args),
        Command::Completions(args) => completions::run(args, program()),
        Command::Man(args) => manual::run(&args, program()),
    }
}

/// Logs a panic of a background thread, which a server survives.
fn log_panic(message: &str) {
    if tracing::dispatcher::has_been_set() {
        tracing::error!("{message}");
    } else {
        note(&format!("error: {message}"));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_is_named_without_its_arguments() {
        let cases = [
            ("check", "check"),
            ("--db other.redb import secret/path --dry-run", "import"),
            ("license set all --dataset journals", "license set"),
            ("key --wait 1s revoke x", "key revoke"),
            ("--json key --db=other.redb list", "key list"),
        ];
        for (arguments, expected) in cases {
            let given: Vec<OsString> =
                ["medfeed"].into_iter().chain(arguments.split(' ')).map(OsString::from).collect();
            let (_, _, name) = Cli::parse_named(given).unwrap();
            assert_eq!(name, expected, "{arguments}");
        }
    }

    /// The words of a line as a shell splits them, up to a redirection or pipe.
    fn words(line: &str) -> Vec<OsString> {
        let (mut words, mut quoted) = (vec![String::new()], false);
        for letter in line.chars() {
            match letter {
                '"' => quoted = !quoted,
                ' ' if !quoted => words.push(String::new()),
                _ => words.last_mut().unwrap().push(letter),
            }
        }
        words.into_iter().take_while(|word| !["<", ">", "|"].contains(&word.as_str())).map(OsString::from).collect()
    }

    #[test]
    fn every_command_has_examples_that_it_parses() {
        fn check(command: &clap::Command, path: &str) {
            assert!(command.has_subcommands() || !examples::of(path).is_empty(), "{path} has no example");
            for line in examples::of(path) {
                assert!(line.starts_with(format!("medfeed {path}").trim_end()), "{path}: {line}");
                Cli::parse_named(words(line)).unwrap_or_else(|error| panic!("{line}: {error}"));
            }
            for below in command.get_subcommands() {
                check(below, format!("{path} {}", below.get_name()).trim_start());
            }
        }
        check(&program(), "");
        for (path, _) in examples::EXAMPLES {
            let known = path
                .split(' ')
                .filter(|name| !name.is_empty())
                .try_fold(program(), |command, name| command.find_subcommand(name).cloned());
            assert!(known.is_some(), "{path}");
        }
    }

    #[test]
    fn commands_take_only_the_common_options_that_they_use() {
        fn collect(command: &clap::Command, path: &str, found: &mut Vec<String>) {
            if command.has_subcommands() {
                for below in command.get_subcommands() {
                    collect(below, format!("{path} {}", below.get_name()).trim_start(), found);
                }
                return;
            }
            let common = command.get_arguments().filter(|argument| common::NAMES.contains(&argument.get_id().as_str()));
            let names: Vec<&str> = common.map(|argument| argument.get_id().as_str()).collect();
            found.push(format!("{path}: {}", names.join(" ")));
        }
        let expected = [
            "backup: db json",
            "check: db json wait",
            "compact: db json wait",
            "completions: ",
            "demo: ",
            "export: db json",
            "health: json",
            "import: db json wait publish-wait",
            "key create: db json wait publish-wait",
            "key list: db json",
            "key replace: db json wait publish-wait",
            "key revoke: db json wait publish-wait",
            "license explain: db json",
            "license list: db json",
            "license remove: db json wait publish-wait",
            "license set: db json wait publish-wait",
            "license show: db json",
            "lint: db json wait",
            "log: db json",
            "man: ",
            #[cfg(feature = "bucket")]
            "promote: db json",
            "publish: db json wait",
            "pull: json",
            "restore: db json wait publish-wait",
            "serve: db",
            "show: db json",
            "template: json",
            "upgrade: db json wait",
        ];
        let mut found = Vec::new();
        collect(&program(), "", &mut found);
        found.sort();
        assert_eq!(found, expected);
    }

    #[test]
    fn corrections_belong_to_existing_commands() {
        for (path, typed, _) in help::corrections::COMMANDS {
            let command = path
                .split(' ')
                .filter(|name| !name.is_empty())
                .try_fold(program(), |command, name| command.find_subcommand(name).cloned());
            let command = command.unwrap_or_else(|| panic!("{path}"));
            assert!(typed.iter().all(|typed| command.find_subcommand(typed).is_none()), "{path}: {typed:?}");
        }
        program().debug_assert();
    }
}
