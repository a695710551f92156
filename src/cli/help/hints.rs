//! Hints for options and commands that people know from other programs. clap suggests similar names itself.

use std::ffi::OsString;

use clap::Command;
use clap::builder::StyledStr;
use clap::error::{ContextKind, ContextValue, ErrorKind};

/// The command (empty: `medfeed` itself; `*`: any), the mistaken names, and what to write.
pub(in crate::cli) const HINTS: &[(&str, &[&str], &str)] = &[
    ("serve", &["--port", "-p", "-P"], "write `--listen 127.0.0.1:8080`, or `--listen 8080`"),
    ("demo", &["--port", "-p", "-P"], "write `--listen 127.0.0.1:8080`, or `--listen 8080`"),
    ("serve", &["--host", "--bind", "--address"], "write `--listen 127.0.0.1:8080`"),
    ("import", &["--file", "-f", "--input"], "name the files without an option: `medfeed import conferences.csv`"),
    (
        "import",
        &["--force", "-y"],
        "`--yes` commits with warnings, without asking; `--replace` and `--allow-removals N` allow removals",
    ),
    ("export", &["--output", "-o"], "name the folder without an option: `medfeed export content`"),
    ("license set", &["--area", "--areas"], "write `--therapy-area Oncology`, once per value"),
    ("key create", &["--expiry", "--ttl"], "write `--expires 30d`, or `--expires 2026-12-31`"),
    ("", &["start", "run", "server", "up"], "write `medfeed serve`"),
    (
        "",
        &["init", "create", "migrate", "setup"],
        "`medfeed import --create` and `medfeed license set --create` create the database",
    ),
    (
        "",
        &["add"],
        "write `medfeed import conferences.csv` for records, `medfeed license set acme --dataset conferences` for a license",
    ),
    ("", &["ls", "list", "status"], "write `medfeed license list`, `medfeed key list`, or `medfeed log`"),
    ("", &["dump"], "write `medfeed export content`"),
    (
        "",
        &["delete", "rm"],
        "write `medfeed license remove acme` or `medfeed key revoke ID`; to remove a record, import a line `{\"id\": 5, \"deleted\": true}`",
    ),
    ("", &["version"], "write `medfeed --version`"),
    ("license", &["add", "create", "update"], "write `medfeed license set acme --dataset conferences`"),
    ("license", &["delete", "rm"], "write `medfeed license remove acme`"),
    ("key", &["add", "new"], "write `medfeed key create --license acme`"),
    ("key", &["delete", "remove", "rm"], "write `medfeed key revoke ID`; `medfeed key list` shows the ids"),
    ("key", &["rotate", "renew"], "write `medfeed key replace ID --overlap 24h`"),
    ("*", &["--force", "-y"], "write `--yes`"),
    ("*", &["--database", "-d"], "name the database with `--db medfeed.redb`"),
    ("*", &["--config", "-c"], "there is no configuration file; write options, or set their variables (`MEDFEED_DB`)"),
    ("*", &["--verbose", "-v"], "only `serve` and `demo` log; write `--log debug` there"),
];

/// Adds what to write instead of an unknown option or command.
pub(in crate::cli) fn add(mut error: clap::Error, program: &Command, arguments: &[OsString]) -> clap::Error {
    let kind = match error.kind() {
        ErrorKind::UnknownArgument => ContextKind::InvalidArg,
        ErrorKind::InvalidSubcommand => ContextKind::InvalidSubcommand,
        ErrorKind::ValueValidation => return name_variable(error, arguments),
        _ => return error,
    };
    let Some(ContextValue::String(given)) = error.get(kind) else { return error };
    let given = given.split('=').next().unwrap_or_default();
    let (path, mut command) = command_of(program, arguments);
    let is_of = |row: &&str| *row == path || *row == "*";
    if let Some((.., hint)) = HINTS.iter().find(|(row, names, _)| is_of(row) && names.contains(&given)) {
        // clap's own suggestions are similar in their letters only.
        for kind in [ContextKind::SuggestedArg, ContextKind::SuggestedSubcommand] {
            error.remove(kind);
        }
        // clap's usage may contain an option that it guessed.
        error.insert(ContextKind::Usage, ContextValue::StyledStr(command.render_usage()));
        suggest(&mut error, hint);
    }
    error
}

/// Names the variable that an invalid value comes from.
fn name_variable(mut error: clap::Error, arguments: &[OsString]) -> clap::Error {
    let Some(ContextValue::String(argument)) = error.get(ContextKind::InvalidArg) else { return error };
    let option = argument.split(' ').next().unwrap_or_default().to_owned();
    let is_given = arguments.iter().any(|given| given.to_string_lossy().starts_with(&option));
    let name = option.trim_start_matches('-').to_ascii_uppercase().replace('-', "_");
    if !is_given && option.starts_with("--") {
        suggest(&mut error, &format!("the value comes from the variable `MEDFEED_{name}`; correct or unset it"));
    }
    error
}

fn suggest(error: &mut clap::Error, hint: &str) {
    error.insert(ContextKind::Suggested, ContextValue::StyledStrs(vec![StyledStr::from(hint.to_owned())]));
}

/// The command that the arguments name, with its full name, such as `license set`.
fn command_of(program: &Command, arguments: &[OsString]) -> (String, Command) {
    let mut program = program.clone();
    program.build();
    let (mut path, mut command) = (Vec::new(), &program);
    for argument in arguments.iter().skip(1) {
        if let Some(below) = command.find_subcommand(argument) {
            path.push(below.get_name());
            command = below;
        }
    }
    (path.join(" "), command.clone())
}
