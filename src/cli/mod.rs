//! The command line. The steps of a command:
//! 1. [`run`] parses the arguments, and their [`variables`]. The help of each command ends with examples.
//! 2. A file of [`commands`] runs it. [`arguments`] has the parsers of values, and [`common`] opens and commits.
//! 3. [`output`] prints the result as text or as one JSON object. An error is described in one line, and decides the
//!    exit code.

mod arguments;
mod change;
mod commands;
mod common;
mod output;
mod sheets;
mod variables;

use std::ffi::OsString;
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Result;
use clap::{ColorChoice, CommandFactory, FromArgMatches, Parser, Subcommand};
use clap_complete::Shell;

use self::arguments::path_parser;
use self::commands::{
    database, demo, export, import, key, license, log, manual, promote, publish, pull, serve,
};
use self::common::{Common, EXIT_FENCED, asks_for_json};
use self::output::{describe_error, is_dumb_terminal, note, print_error};
use crate::model::{Dataset, Id, steers};
use crate::serve::Limits;
use crate::store::StoreError;
use crate::store::file::notes::name_command;
use crate::store::panics::{self, CaughtPanic};

/// Licensed, read-only access to curated medical conference and journal records.
#[derive(Parser)]
#[command(name = "medfeed", version, about, max_term_width = 100)]
#[command(after_help = "Examples:\n  \
    medfeed demo\n  \
    medfeed import data --create\n  \
    medfeed license set acme --dataset conferences --therapy-area Oncology --year 2025..2027\n  \
    medfeed key create --license acme --label \"Acme data team\"\n  \
    medfeed serve")]
struct Cli {
    #[command(subcommand)]
    command: Command,
    #[command(flatten)]
    common: Common,
}

#[derive(Subcommand)]
enum Command {
    /// Serve sample data from a temporary database, and print curl commands to try
    #[command(after_help = "Examples:\n  \
        medfeed demo\n  \
        medfeed demo --listen 8090")]
    Demo(demo::DemoArgs),
    /// Serve the database over HTTP
    #[command(after_help = "Examples:\n  \
        medfeed serve\n  \
        medfeed serve --listen 8090 --create\n  \
        medfeed serve --listen 0.0.0.0:8443 --tls-cert chain.pem --tls-key key.pem\n  \
        medfeed serve --public-url https://feed.example.org --trusted-proxy 127.0.0.1\n  \
        medfeed serve --from s3://feed/prod --db replica.redb --seal-key seal.key")]
    Serve(Box<serve::ServeArgs>),
    /// Check that the running server is healthy, for example as the health check of a container
    #[command(after_help = "Examples:\n  \
        medfeed health\n  \
        medfeed health --admin-listen 127.0.0.1:9090")]
    Health(serve::HealthArgs),
    /// Import curated files in one commit, all or nothing
    #[command(after_help = "Examples:\n  \
        medfeed import data --create\n  \
        medfeed import data --dry-run\n  \
        medfeed import conferences.csv journals.jsonl.gz\n  \
        medfeed import conferences.jsonl --replace --allow-removals 40\n  \
        medfeed import jcr.csv --recipe jcr.toml --dry-run\n  \
        medfeed import - --dataset journals --format jsonl < new.txt")]
    Import(import::ImportArgs),
    /// Find likely mistakes in files or in the database; change nothing
    #[command(mut_arg("paths", |paths| paths.required(false)))]
    #[command(after_help = "Examples:\n  \
        medfeed lint data\n  \
        medfeed lint")]
    Lint(import::ReadArgs),
    /// Write all records, organizations and tags as import files
    #[command(after_help = "Examples:\n  \
        medfeed export content\n  \
        medfeed export content --format csv")]
    Export(export::ExportArgs),
    /// Print the header of an import file, or write an empty workbook to fill in
    #[command(after_help = "Examples:\n  \
        medfeed template conferences > conferences.csv\n  \
        medfeed template records.xlsx\n  \
        medfeed template journals --from jcr.csv > jcr.toml")]
    Template(export::TemplateArgs),
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
    #[command(after_help = "Examples:\n  \
        medfeed pull https://feed.example.org --to copy.sqlite --key-file key.txt\n  \
        medfeed pull https://feed.example.org --to copies/ --dataset journals --json\n  \
        medfeed pull https://feed.example.org --to copy.sqlite --key-file key.txt --follow\n  \
        medfeed pull https://feed.example.org --to postgres://me@db.example.org/warehouse --key-file key.txt --follow\n  \
        medfeed pull https://feed.example.org --to copy.sqlite --key-file key.txt --verify")]
    Pull(Box<pull::PullArgs>),
    /// Publish the database into a bucket, for any number of replicas
    ///
    /// Each commit becomes an entry of a log in the bucket, within about a second. The command runs until it is
    /// stopped. It may be killed at any moment: the next start continues at the end of the log. While the bucket cannot
    /// be reached, commits continue, and are published later.
    ///
    /// Exit codes: 0 done; 1 failed; 2 wrong usage; 3 the bucket cannot be reached now (with --once); 4 another
    /// publisher took over. In the last case, later commits here are only in this file, commands that write to it are
    /// refused, and --admin-listen is served for two more minutes.
    #[command(after_help = "Examples:\n  \
        medfeed publish s3://my-bucket/feed --seal-key seal.key\n  \
        medfeed publish file:///srv/feed --once\n  \
        medfeed publish s3://my-bucket/feed --status")]
    Publish(Box<publish::PublishArgs>),
    /// Show a record, when it changed, and which licenses show it
    #[command(after_help = "Examples:\n  \
        medfeed show conferences 17\n  \
        medfeed show journals --name Lancet")]
    Show {
        /// The record's dataset: conferences or journals
        dataset: Dataset,
        /// The record's id
        #[arg(required_unless_present = "name")]
        id: Option<Id>,
        /// Find the record by its name or abbreviation instead; case, blanks and marks do not count. Several are listed
        #[arg(long, value_name = "TEXT", conflicts_with = "id")]
        name: Option<String>,
    },
    /// Show the commits: who changed what, and when
    #[command(after_help = "Examples:\n  \
        medfeed log --limit 5\n  \
        medfeed log conferences 17\n  \
        medfeed log --license acme")]
    Log(log::CommitLogArgs),
    /// Compare every index, hash and count of the database with its records
    #[command(after_help = "Examples:\n  \
        medfeed check\n  \
        medfeed check --db backup.redb\n  \
        medfeed check --from s3://feed/prod")]
    Check(database::CheckArgs),
    /// Write a consistent copy of the database, also while it is read and written
    #[command(after_help = "Examples:\n  \
        medfeed backup backup.redb\n  \
        medfeed backup backup.redb --from s3://feed/prod --at 2026-11-20T18:00:00Z")]
    Backup(database::BackupArgs),
    /// Replace the database with a backup; every older sync token gets 410
    #[command(after_help = "Examples:\n  \
        medfeed restore backup.redb\n  \
        medfeed restore backup.redb --yes")]
    Restore(database::RestoreArgs),
    /// Shrink the database file; sync tokens stay valid
    #[command(after_help = "Examples:\n  \
        medfeed compact")]
    Compact,
    /// Convert the database of an older medfeed to the format of this one; licenses, keys and sync tokens stay
    ///
    /// medfeed writes a copy, checks it, and replaces the database with it in one step. The old file is kept next to
    /// it, as NAME.format-5. Servers of the old medfeed continue to answer from the old file until they are restarted.
    #[command(after_help = "Examples:\n  \
        medfeed upgrade --dry-run\n  \
        medfeed upgrade\n  \
        medfeed upgrade --if-needed")]
    Upgrade {
        /// Show what an upgrade would do, and what customers would notice; change nothing
        #[arg(long, conflicts_with = "if_needed")]
        dry_run: bool,
        /// Succeed silently if there is nothing to upgrade: no database, a current one, or a replica. For scripts that
        /// start a server
        #[arg(long)]
        if_needed: bool,
    },
    /// Turn a replica into the origin after the old origin was lost
    #[command(after_help = "Examples:\n  \
        medfeed promote s3://feed/prod --db replica.redb")]
    Promote(promote::PromoteArgs),
    /// Print a completion script for a shell
    #[command(after_help = "Examples:\n  \
        medfeed completions bash > ~/.local/share/bash-completion/completions/medfeed\n  \
        medfeed completions fish > ~/.config/fish/completions/medfeed.fish")]
    Completions {
        /// The shell
        shell: Shell,
    },
    /// Print the manual pages, or write them into a folder
    #[command(after_help = "Examples:\n  \
        medfeed man | man -l -\n  \
        medfeed man ~/.local/share/man/man1")]
    Man {
        /// Write each page as a file into this folder, such as medfeed-import.1; the folder is created
        #[arg(value_name = "FOLDER", value_parser = path_parser())]
        folder: Option<PathBuf>,
    },
}

/// All commands with their arguments.
fn program() -> clap::Command {
    // clap colors what a dumb terminal shows if there is a variable `CI`.
    let colors = match is_dumb_terminal() {
        true => ColorChoice::Never,
        false => ColorChoice::Auto,
    };
    Cli::command().color(colors)
}

impl Cli {
    /// Parses the arguments. Also returns the name of the command, such as `license set`.
    fn parse_named(arguments: &[OsString]) -> Result<(Cli, String), clap::Error> {
        let mut program = program();
        let matches = program
            .clone()
            .try_get_matches_from(arguments)
            .map_err(|error| variables::name_variable(error, &program, arguments))?;
        let mut names = Vec::new();
        let mut leaf = &matches;
        while let Some((name, matches)) = leaf.subcommand() {
            names.push(name);
            leaf = matches;
        }
        let cli = Cli::from_arg_matches(&matches).map_err(|error| error.format(&mut program))?;
        if !matches!(
            cli.command,
            Command::Completions { .. } | Command::Man { .. }
        ) {
            variables::warn_of_unknown_variables(&program);
        }
        Ok((cli, names.join(" ")))
    }
}

/// Parses the arguments, runs the command, and returns its exit code: 0 for success, 1 for a failure that changed
/// nothing, 2 for wrong usage, 3 if a commit is not published yet, 4 if another publisher took over. `limits` are those
/// of servers: constants of the program, smaller ones in tests.
pub fn run(arguments: Vec<OsString>, limits: Limits) -> ExitCode {
    let (Cli { command, common }, command_name) = match Cli::parse_named(&arguments) {
        Ok(parsed) => parsed,
        Err(error) => {
            let message = error.render().to_string();
            if error.use_stderr() && asks_for_json(&arguments) {
                print_error(true, message.strip_prefix("error: ").unwrap_or(&message));
            }
            // clap repeats arguments and variables as they are.
            if message.split('\n').any(|line| line.contains(steers)) {
                note(&message);
            } else {
                // A closed terminal shows nothing.
                let _ = error.print();
            }
            return ExitCode::from(if error.use_stderr() { 2 } else { 0 });
        }
    };
    name_command(command_name);
    panics::set_panic_hook(log_panic);
    let db = common.db.display();
    let mut code = ExitCode::FAILURE;
    let message = match panics::catch(|| run_command(&common, command, limits)) {
        Ok(Ok(code)) => return code,
        Ok(Err(error)) => {
            let message = describe_error(&error);
            match error.downcast_ref() {
                // The engine's errors do not name the file.
                Some(
                    StoreError::Damaged { .. }
                    | StoreError::UnknownRow { .. }
                    | StoreError::Engine(_),
                ) => {
                    format!("{db}: {message}")
                }
                Some(StoreError::Fenced { .. }) => {
                    code = ExitCode::from(EXIT_FENCED);
                    message
                }
                _ => message,
            }
        }
        Err(CaughtPanic {
            message,
            is_of_store: true,
        }) => format!(
            "{db}: the database is damaged: the engine stopped: {message}; run `medfeed check`, and restore a backup"
        ),
        Err(CaughtPanic { message, .. }) => {
            format!("this is a bug in medfeed, please report it: {message}")
        }
    };
    print_error(common.json, &message);
    code
}

fn run_command(common: &Common, command: Command, limits: Limits) -> Result<ExitCode> {
    match command {
        Command::Demo(args) => demo::run(common, args),
        Command::Serve(args) => serve::run(common, *args, limits),
        Command::Health(args) => serve::health(common, args),
        Command::Import(args) => import::refuse_input(common, import::run(common, &args)),
        Command::Lint(args) => import::refuse_input(common, import::lint(common, &args)),
        Command::Export(args) => export::run(common, args),
        Command::Template(args) => export::run_template(common, &args),
        Command::License(command) => license::run(common, command),
        Command::Key(command) => key::run(common, command),
        Command::Pull(args) => pull::run(common, *args),
        Command::Publish(args) => publish::run(common, *args),
        Command::Show { dataset, id, name } => log::show(common, dataset, id, name),
        Command::Log(args) => log::run(common, &args),
        Command::Check(args) => database::run_check(common, &args),
        Command::Backup(args) => database::backup(common, &args),
        Command::Restore(args) => database::restore(common, &args),
        Command::Compact => database::compact(common),
        Command::Upgrade { dry_run, if_needed } => database::upgrade(common, dry_run, if_needed),
        Command::Promote(args) => promote::run(common, &args),
        Command::Completions { shell } => manual::completions(shell, program()),
        Command::Man { folder } => manual::pages(folder, program()),
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
            let given = ["medfeed"].into_iter().chain(arguments.split(' '));
            let given: Vec<OsString> = given.map(OsString::from).collect();
            let (_, name) = Cli::parse_named(&given).unwrap();
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
        words
            .into_iter()
            .take_while(|word| !["<", ">", "|"].contains(&word.as_str()))
            .map(OsString::from)
            .collect()
    }

    #[test]
    fn every_command_has_examples_that_it_parses() {
        fn check(command: &clap::Command, path: &str) {
            let help = command.get_after_help().map(ToString::to_string);
            let help = help.unwrap_or_default();
            let examples = help.lines().skip(1).map(str::trim_start);
            assert!(
                command.has_subcommands() || examples.clone().count() > 0,
                "{path} has no example"
            );
            for line in examples {
                assert!(
                    line.starts_with(format!("medfeed {path}").trim_end()),
                    "{path}: {line}"
                );
                Cli::parse_named(&words(line)).unwrap_or_else(|error| panic!("{line}: {error}"));
            }
            for below in command.get_subcommands() {
                check(below, format!("{path} {}", below.get_name()).trim_start());
            }
        }
        check(&program(), "");
    }

    #[test]
    fn global_options_are_accepted_before_and_after_the_command() {
        let cases = [
            "--db x.redb --json --wait 1s --publish-wait 2s license list",
            "license --db=x.redb --json list --wait 1s --publish-wait=2s",
            "license list --publish-wait 2s --wait=1s --json --db x.redb",
        ];
        for line in cases {
            let (Cli { common, .. }, name) =
                Cli::parse_named(&words(&format!("medfeed {line}"))).unwrap();
            assert_eq!(name, "license list", "{line}");
            let expected = (Some("x.redb"), true);
            assert_eq!((common.db.to_str(), common.json), expected, "{line}");
            let waits = (
                common.wait.as_secs(),
                common.publish_wait.map(|time| time.as_secs()),
            );
            assert_eq!(waits, (1, Some(2)), "{line}");
        }
    }

    #[test]
    fn the_arguments_are_consistent() {
        program().debug_assert();
    }
}
