//! The command line: one file per subcommand.

mod arguments;
mod check;
mod common;
mod completions;
mod demo;
mod export;
mod import;
mod key;
mod license;
mod log;
mod output;
mod pull;
mod replace;
mod serve;

use std::ffi::OsString;
use std::process::ExitCode;

use clap::error::ErrorKind;
use clap::{CommandFactory, FromArgMatches, Parser, Subcommand};

use self::common::Common;
use self::output::{Output, note};
use crate::model::printable::steers;
use crate::store::StoreError;
use crate::store::file::writer_note::name_command;
use crate::store::panics::{self, Caught};

/// Licensed, read-only access to curated medical conference and journal records.
#[derive(Debug, Parser)]
#[command(name = "medfeed", version, about, max_term_width = 100, propagate_version = true)]
struct Cli {
    #[command(flatten)]
    common: Common,
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Serve sample data from a throwaway database, and print curl lines to try
    Demo(demo::DemoArgs),
    /// Serve the database over HTTP
    Serve(Box<serve::ServeArgs>),
    /// Bring curated files in: one run is one commit, all or nothing
    Import(import::ImportArgs),
    /// Write the whole curated content as import files
    Export(export::ExportArgs),
    /// Licenses: who may see what
    #[command(subcommand)]
    License(license::LicenseCommand),
    /// API keys of licenses
    #[command(subcommand)]
    Key(key::KeyCommand),
    /// Keep a copy of what a license shows, by export and change feed
    Pull(Box<pull::PullArgs>),
    /// Show who changed what, commit by commit
    Log(log::LogArgs),
    /// Compare every index, hash and count of the database with its records
    Check,
    /// Write a consistent copy of the database, also while others read and write it
    Backup(replace::BackupArgs),
    /// Put a backup in the database's place; every older sync token gets 410
    Restore(replace::RestoreArgs),
    /// Rewrite the database at its smallest; sync tokens stay alive
    Compact,
    /// Print a completion script for a shell
    Completions(completions::CompletionsArgs),
    /// Print the manual page
    Man,
}

/// Whether an argument or a variable, which clap repeats in its messages, holds characters that would steer a terminal.
fn given_text_steers(arguments: Vec<OsString>) -> bool {
    let variables = std::env::vars_os().filter(|(name, _)| name.to_string_lossy().starts_with("MEDFEED_"));
    let given = arguments.into_iter().chain(variables.map(|(_, value)| value));
    given.into_iter().any(|text| text.to_string_lossy().contains(steers))
}

impl Cli {
    /// Parses the arguments. Also returns the name of the command with its subcommand, such as `license set`.
    fn parse_named(arguments: &[OsString]) -> Result<(Cli, String), clap::Error> {
        let matches = Cli::command().try_get_matches_from(arguments)?;
        let names = std::iter::successors(matches.subcommand(), |(_, matches)| matches.subcommand());
        let names: Vec<&str> = names.map(|(name, _)| name).collect();
        let cli = Cli::from_arg_matches(&matches).map_err(|error| error.format(&mut Cli::command()))?;
        Ok((cli, names.join(" ")))
    }
}

/// Parses the arguments, runs the command, and returns the exit code: 0 for success, 1 for a failure that changed nothing, 2
/// for wrong usage.
pub fn run() -> ExitCode {
    let arguments: Vec<OsString> = std::env::args_os().collect();
    let (cli, command_name) = match Cli::parse_named(&arguments) {
        Ok(parsed) => parsed,
        Err(error) => {
            let asked = matches!(error.kind(), ErrorKind::DisplayHelp | ErrorKind::DisplayVersion);
            if !asked && arguments.iter().any(|argument| argument == "--json") {
                Output::new(true).error(&error.render().to_string());
            }
            if given_text_steers(arguments) {
                note(&error.render().to_string());
            } else {
                // A closed terminal cannot be told.
                let _ = error.print();
            }
            return if asked { ExitCode::SUCCESS } else { ExitCode::from(2) };
        }
    };
    name_command(command_name);
    let Cli { common, command } = cli;
    panics::tell_of_panics(tell_of_panic);
    let db = common.db.display();
    let message = match panics::catch(|| run_command(&common, command)) {
        Ok(Ok(code)) => {
            // The command succeeded and printed its result.
            if let Some(damage) = panics::take_at_close() {
                note(&format!("warning: {db}: {damage}"));
            }
            return code;
        }
        Ok(Err(error)) => match error.downcast_ref() {
            // The engine's errors do not name the file.
            Some(StoreError::Damaged { .. } | StoreError::Engine(_)) => format!("{db}: {error:#}"),
            _ => format!("{error:#}"),
        },
        Err(Caught { message, is_of_store: true }) => format!(
            "{db}: the database is damaged: the engine stopped: {message}; run `medfeed check`, and restore a backup"
        ),
        Err(Caught { message, .. }) => format!("this is a fault in medfeed, please report it: {message}"),
    };
    common.output().error(&message);
    ExitCode::FAILURE
}

fn run_command(common: &Common, command: Command) -> anyhow::Result<ExitCode> {
    match command {
        Command::Demo(args) => demo::run(common, args),
        Command::Serve(args) => serve::run(common, *args),
        Command::Import(args) => import::run(common, args),
        Command::Export(args) => export::run(common, args),
        Command::License(command) => license::run(common, command),
        Command::Key(command) => key::run(common, command),
        Command::Pull(args) => pull::run(common, *args),
        Command::Log(args) => log::run(common, &args),
        Command::Check => check::run(common),
        Command::Backup(args) => replace::backup(common, &args),
        Command::Restore(args) => replace::restore(common, &args),
        Command::Compact => replace::compact(common),
        Command::Completions(args) => completions::run(args, Cli::command()),
        Command::Man => completions::print_manual(Cli::command()),
    }
}

/// Logs a panic of a background thread, which a server survives.
fn tell_of_panic(message: &str) {
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
            ("key --wait 1s list", "key list"),
        ];
        for (arguments, expected) in cases {
            let given: Vec<OsString> =
                ["medfeed"].into_iter().chain(arguments.split(' ')).map(OsString::from).collect();
            let (_, name) = Cli::parse_named(&given).unwrap();
            assert_eq!(name, expected, "{arguments}");
        }
    }
}
