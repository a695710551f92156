//! What a usage error says to write instead: clap tells what is wrong, this module adds the remedy.

use std::ffi::OsString;
use std::path::Path;

use clap::Command;
use clap::builder::StyledStr;
use clap::error::{ContextKind, ContextValue, ErrorKind};

use super::common;
use super::examples;
use super::near::nearest;

/// What people type from other programs, by the command that it is typed in (`*`: any), and what is written here.
const OPTIONS: &[(&str, &[&str], &str)] = &[
    ("serve", &["--port", "-p", "-P"], "write `--listen 127.0.0.1:8080`, or `--listen 8080`"),
    ("demo", &["--port", "-p", "-P"], "write `--listen 127.0.0.1:8080`, or `--listen 8080`"),
    ("serve", &["--host", "--bind", "--address", "--addr", "-b", "-H", "-l"], "write `--listen 127.0.0.1:8080`"),
    ("demo", &["--host", "--bind", "--address", "--addr", "-b", "-H", "-l"], "write `--listen 127.0.0.1:8080`"),
    (
        "serve",
        &["--cert", "--certificate", "--ssl-cert", "--https", "--tls", "--ssl"],
        "HTTPS is `--tls-cert chain.pem --tls-key key.pem`",
    ),
    ("serve", &["--key", "--ssl-key", "--private-key"], "write `--tls-key key.pem`, beside `--tls-cert chain.pem`"),
    ("serve", &["--url", "--base-url", "--root-url"], "write `--public-url https://feed.example.org`"),
    (
        "serve",
        &["--proxy", "--trust-proxy", "--behind-proxy"],
        "write `--trusted-proxy 127.0.0.1`, the proxy's address",
    ),
    ("serve", &["--metrics", "--metrics-port", "--admin", "--admin-port"], "write `--admin-listen 127.0.0.1:9090`"),
    ("serve", &["--workers", "--threads", "-w"], "there is one thread per processor; leave it out"),
    (
        "serve",
        &["--daemon", "--background", "-d"],
        "a server runs in the foreground; let systemd keep it, or end the line with ` &`",
    ),
    (
        "serve",
        &["--timeout"],
        "write `--idle-timeout`, `--header-timeout` or `--write-timeout`, such as `--idle-timeout 60s`",
    ),
    ("serve", &["--log-level", "--level"], "write `--log warn`"),
    (
        "import",
        &["--input", "--file", "-f", "-i", "--path", "--from"],
        "name the files without an option: `medfeed import conferences.csv`",
    ),
    (
        "import",
        &["--type", "--kind"],
        "write `--dataset conferences`, with `-` for standard input; a file's name tells it",
    ),
    (
        "import",
        &["--force", "-y", "--yes"],
        "an import asks nothing; `--replace` and `--allow-removals N` allow removals",
    ),
    (
        "import",
        &["--delete", "--remove", "--sync", "--prune"],
        "`--replace` removes the records that the files do not hold; one is removed by a line `{\"id\": 5, \"deleted\": true}`",
    ),
    (
        "export",
        &["--output", "--out", "-o", "--dir", "--folder"],
        "name the folder without an option: `medfeed export content`",
    ),
    (
        "backup",
        &["--output", "--out", "-o", "--file", "-f", "--to"],
        "name the file without an option: `medfeed backup backup.redb`",
    ),
    (
        "restore",
        &["--input", "--file", "-f", "-i", "--from"],
        "name the file without an option: `medfeed restore backup.redb`",
    ),
    ("restore", &["--force", "-y"], "write `--yes`"),
    ("license remove", &["--force", "-y"], "write `--yes`"),
    ("license *", &["--name", "-n", "--license"], "name the license without an option: `medfeed license show acme`"),
    (
        "license set",
        &["--area", "--areas", "--therapy", "--ta", "--therapy-areas"],
        "write `--therapy-area Oncology`, once per value",
    ),
    ("license set", &["--countries"], "write `--country Japan`, once per value"),
    ("license set", &["--from", "--to", "--since"], "write a range of years: `--year 2025..2027`"),
    ("license set", &["--limit", "--rate", "--rpm"], "write `--rate-limit 600`"),
    (
        "license set",
        &["--force", "-f", "-y"],
        "write `--widen` to drop a restriction, `--yes` to state an unknown value",
    ),
    ("license set", &["--all"], "write `--dataset conferences --dataset journals`"),
    ("key create", &["--name", "-n", "--description", "--note", "--comment"], "write `--label \"Acme data team\"`"),
    (
        "key create",
        &["--expiry", "--ttl", "--valid", "--expires-in", "--expires-at", "--until"],
        "write `--expires 30d`, or `--expires 2026-12-31`",
    ),
    (
        "key create",
        &["--ip", "--ips", "--cidr", "--allow", "--allowed-ips"],
        "write `--allow-ip 192.0.2.0/24`, once per value",
    ),
    ("key create", &["--scope", "--dataset", "--role"], "what a key shows is its license's: `medfeed license set`"),
    ("key *", &["--id"], "name the key's id without an option: `medfeed key revoke key_0123456789`"),
    ("key replace", &["--grace", "--keep"], "write `--overlap 24h`"),
    ("log", &["-n", "--lines", "--tail", "--count", "--last"], "write `--limit 20`"),
    ("*", &["--database", "--file", "--db-path", "--data", "-d", "-D"], "the database is named by `--db medfeed.redb`"),
    (
        "*",
        &["--config", "-c", "--conf"],
        "there is no configuration file; write options, or set their variables (`MEDFEED_DB`)",
    ),
    ("*", &["--verbose", "-v", "-vv", "--debug"], "only `serve` and `demo` log; write `--log debug` there"),
    ("*", &["--quiet", "-q", "--silent"], "add `> /dev/null` to print no result; errors still stand on standard error"),
    ("*", &["--output", "-o", "--format", "-f"], "`--json` prints one JSON object; text is the default"),
    ("*", &["--timeout"], "commands that write take `--wait 30s`"),
    ("*", &["--dry", "--simulate", "-n"], "write `--dry-run`, where `medfeed help COMMAND` lists it"),
    ("*", &["-j"], "write `--json`"),
    ("*", &["-?", "-help", "/?"], "write `--help`"),
];

/// The same for commands: where they are typed, what is typed, and what is written here.
const COMMANDS: &[(&str, &[&str], &str)] = &[
    ("", &["start", "run", "server", "up", "daemon", "listen", "web", "http", "serv"], "write `medfeed serve`"),
    (
        "",
        &["init", "create", "migrate", "setup", "new"],
        "the first `medfeed import` or `medfeed license set` makes the database",
    ),
    (
        "",
        &["load", "upload", "ingest", "sync", "update", "upsert", "insert", "push"],
        "write `medfeed import conferences.csv`",
    ),
    (
        "",
        &["add"],
        "write `medfeed import conferences.csv` for records, `medfeed license set acme --dataset conferences` for a license",
    ),
    (
        "",
        &["users", "user", "accounts", "account", "clients", "customers", "tenant"],
        "who may see what are licenses and their keys: `medfeed license list`, `medfeed key list`",
    ),
    ("", &["licenses", "licence", "licences"], "write `medfeed license list`"),
    ("", &["keys", "token", "tokens", "apikey", "api-key"], "write `medfeed key list`"),
    (
        "",
        &["ls", "status", "info", "stats", "get"],
        "write `medfeed license list`, `medfeed key list`, or `medfeed log`",
    ),
    ("", &["dump", "download", "pull"], "write `medfeed export content`"),
    ("", &["save", "snapshot", "copy"], "write `medfeed backup backup.redb`"),
    (
        "",
        &["rollback", "undo", "revert"],
        "write `medfeed restore backup.redb`; import an older file to correct records",
    ),
    (
        "",
        &["verify", "validate", "fsck", "doctor"],
        "write `medfeed check` for the database, `medfeed import FILES --dry-run` for files",
    ),
    ("", &["vacuum", "optimize", "gc", "shrink"], "write `medfeed compact`"),
    ("", &["history", "audit", "changes", "logs"], "write `medfeed log`"),
    (
        "",
        &["config", "configure", "settings"],
        "there is no configuration file; `medfeed serve --help` lists the options and their variables",
    ),
    (
        "",
        &["delete", "rm", "del"],
        "write `medfeed license remove acme` or `medfeed key revoke ID`; a record is removed by importing a line `{\"id\": 5, \"deleted\": true}`",
    ),
    ("", &["version"], "write `medfeed --version`"),
    ("", &["manual", "docs"], "write `medfeed help` or `medfeed man`; a server shows its reference at /docs"),
    (
        "",
        &["stop", "restart", "reload", "kill"],
        "a server ends with Ctrl-C or SIGTERM; with systemd: `systemctl restart medfeed`",
    ),
    (
        "license",
        &["add", "create", "new", "update", "edit", "change", "grant"],
        "write `medfeed license set acme --dataset conferences`",
    ),
    ("license", &["delete", "rm", "del", "revoke"], "write `medfeed license remove acme`"),
    ("license", &["ls", "all"], "write `medfeed license list`"),
    ("license", &["get", "info", "view"], "write `medfeed license show acme`"),
    ("license", &["why", "check", "test"], "write `medfeed license explain acme conferences 17`"),
    ("key", &["add", "new", "issue", "generate", "set"], "write `medfeed key create --license acme`"),
    (
        "key",
        &["delete", "remove", "rm", "del", "disable"],
        "write `medfeed key revoke ID`; `medfeed key list` shows the ids",
    ),
    ("key", &["rotate", "renew", "roll"], "write `medfeed key replace ID --overlap 24h`"),
    ("key", &["ls", "show", "all", "get"], "write `medfeed key list`; a key itself is shown only when it is made"),
];

/// Adds to a usage error what to write instead, and takes away suggestions that are far from what was typed.
pub(super) fn explain(mut error: clap::Error, program: &Command, arguments: &[OsString]) -> clap::Error {
    let (path, command) = command_of(program, arguments);
    let text = |kind| match error.get(kind) {
        Some(ContextValue::String(text)) => Some(text.clone()),
        _ => None,
    };
    let (argument, value) = (text(ContextKind::InvalidArg), text(ContextKind::InvalidValue));
    let tip = match (error.kind(), argument) {
        (ErrorKind::UnknownArgument, Some(given)) => Some(instead_of_argument(&given, &path, &command, program)),
        (ErrorKind::InvalidSubcommand, _) => {
            text(ContextKind::InvalidSubcommand).map(|given| instead_of_command(&given, &path, &command, program))
        }
        (ErrorKind::MissingRequiredArgument, _) => example_with(&path, &missing(&error)),
        (ErrorKind::InvalidValue, Some(argument)) if value.as_deref() == Some("") => {
            example_with(&path, &[argument]).or_else(|| Some(format!("`medfeed {path} --help` tells what it takes")))
        }
        (ErrorKind::InvalidValue, _) => {
            let known = match error.get(ContextKind::ValidValue) {
                Some(ContextValue::Strings(known)) => known.as_slice(),
                _ => &[],
            };
            nearest(value.as_deref().unwrap_or_default(), known.iter().map(String::as_str))
                .map(|near| format!("write `{near}`"))
        }
        (ErrorKind::ValueValidation, Some(argument)) if argument.ends_with("<N>") => {
            let known = command.get_arguments().find(|known| known.to_string() == argument);
            let default = known.and_then(|known| known.get_default_values().first());
            let default = default.map_or("100".into(), |default| default.to_string_lossy());
            Some(format!("write a whole number in digits, such as {default}"))
        }
        (ErrorKind::ArgumentConflict, _) => Some("give the option once".to_owned()),
        _ => return error,
    };
    for kind in [
        ContextKind::Suggested,
        ContextKind::SuggestedArg,
        ContextKind::SuggestedCommand,
        ContextKind::SuggestedSubcommand,
        ContextKind::SuggestedValue,
    ] {
        error.remove(kind);
    }
    if let Some(tip) = tip {
        error.insert(ContextKind::Suggested, ContextValue::StyledStrs(vec![StyledStr::from(tip)]));
    }
    // The parser's own usage line may hold an argument that it only guessed.
    error.insert(ContextKind::Usage, ContextValue::StyledStr(command.clone().render_usage()));
    error
}

/// The command that arguments name, and its name with those above it.
fn command_of(program: &Command, arguments: &[OsString]) -> (String, Command) {
    let mut program = program.clone();
    program.build();
    let (mut path, mut command) = (Vec::new(), &program);
    for argument in arguments.iter().skip(1) {
        let Some(below) = command.find_subcommand(argument) else { break };
        path.push(below.get_name());
        command = below;
    }
    (path.join(" "), command.clone())
}

/// Whether a command is the one of a table's row: itself, any, or any of a group.
fn is_in(row: &str, path: &str) -> bool {
    row == path || row == "*" || row.strip_suffix('*').is_some_and(|group| path.starts_with(group))
}

fn instead_of_argument(given: &str, path: &str, command: &Command, program: &Command) -> String {
    let name = given.split('=').next().unwrap_or(given);
    if !given.starts_with('-') {
        return instead_of_value(given, path, command);
    }
    if given[1..].starts_with(|first: char| first.is_ascii_digit()) {
        return "a number here is 0 or more; write it without `-`".to_owned();
    }
    let shown = format!("medfeed {path}");
    let shown = shown.trim_end();
    let long = name.trim_start_matches('-');
    if let Some((.., tip)) = OPTIONS.iter().find(|(row, typed, _)| is_in(row, path) && typed.contains(&name)) {
        return (*tip).to_owned();
    }
    let known: Vec<&str> = command.get_arguments().filter_map(|known| known.get_long()).collect();
    if let Some(near) = nearest(long, known.iter().copied()) {
        return format!("write `--{near}`");
    }
    if common::NAMES.contains(&long) {
        return format!("`{shown}` has no use for `--{long}`; leave it out");
    }
    let others = commands_with(program, "", &|known| known.get_arguments().any(|known| known.get_long() == Some(long)));
    if path.is_empty() && !others.is_empty() {
        return format!("write it after its command, such as `medfeed {} --{long}`", others[0]);
    }
    if !others.is_empty() {
        return format!("it is an option of `medfeed {}`; leave it out here", others.join("`, `medfeed "));
    }
    format!("`{shown} --help` lists the options")
}

/// What to write instead of a value where none, or no further one, is taken.
fn instead_of_value(given: &str, path: &str, command: &Command) -> String {
    let takes = |name: &str| command.get_arguments().any(|known| known.get_long() == Some(name));
    let is_database = Path::new(given).extension().is_some_and(|ending| ending == "redb");
    let is_number = given.bytes().all(|byte| byte.is_ascii_digit());
    let option = if is_database {
        "db"
    } else if takes("listen") && (is_number || given.contains(':')) {
        "listen"
    } else if is_number {
        "limit"
    } else if matches!(given, "csv" | "jsonl") {
        "format"
    } else if path == "key create" {
        "license"
    } else {
        "dataset"
    };
    if takes(option) {
        return format!("write `--{option} {given}`");
    }
    match command.get_positionals().count() {
        0 => format!("`medfeed {path}` takes options only; leave `{given}` out"),
        _ => format!("put a name that holds blanks in quotes: `\"... {given}\"`"),
    }
}

fn instead_of_command(given: &str, path: &str, command: &Command, program: &Command) -> String {
    if let Some((.., tip)) = COMMANDS.iter().find(|(row, typed, _)| *row == path && typed.contains(&given)) {
        return (*tip).to_owned();
    }
    let known: Vec<&str> = command.get_subcommands().map(Command::get_name).collect();
    let shown = |name: &str| format!("medfeed {path} {name}").replace("  ", " ");
    if let Some(near) = nearest(given, known.iter().copied()) {
        return format!("write `{}`", shown(near));
    }
    let elsewhere = commands_with(program, "", &|below| below.get_name() == given);
    if !elsewhere.is_empty() {
        return format!("write `medfeed {}`", elsewhere.join("` or `medfeed "));
    }
    if Path::new(given).exists() {
        return format!("write `medfeed import {given}` to bring its records in");
    }
    format!("the commands are {}", known.join(", "))
}

/// The commands, by their whole names, of which something is true.
fn commands_with(command: &Command, path: &str, is_so: &dyn Fn(&Command) -> bool) -> Vec<String> {
    let below = command.get_subcommands().filter(|below| below.get_name() != "help");
    below
        .flat_map(|below| {
            let path = format!("{path} {}", below.get_name()).trim_start().to_owned();
            let own = is_so(below).then(|| path.clone());
            own.into_iter().chain(commands_with(below, &path, is_so)).collect::<Vec<_>>()
        })
        .collect()
}

fn missing(error: &clap::Error) -> Vec<String> {
    match error.get(ContextKind::InvalidArg) {
        Some(ContextValue::Strings(missing)) => missing.clone(),
        _ => Vec::new(),
    }
}

/// An example of the command, one with the options if there is such a one.
fn example_with(path: &str, options: &[String]) -> Option<String> {
    let names: Vec<&str> = options.iter().filter_map(|option| option.split(' ').next()).collect();
    let lines = examples::of(path);
    let has = |line: &&&str| names.iter().filter(|name| name.starts_with("--")).all(|name| line.contains(*name));
    let line = lines.iter().find(has).or(lines.first())?;
    Some(format!("for example: `{line}`"))
}
