//! What a usage error says to write instead: clap tells what is wrong, this module adds the remedy.

use std::ffi::OsString;
use std::path::Path;

use clap::builder::StyledStr;
use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{Arg, Command};

use super::common;
use super::examples;
use super::habits::{COMMANDS, OPTIONS};
use super::near::nearest;

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
        (ErrorKind::ValueValidation, Some(argument)) => {
            let known = command.get_arguments().find(|known| known.to_string() == argument);
            let value = value.unwrap_or_default();
            let is_limit = known.is_some_and(Arg::is_positional) && !value.is_empty();
            let is_limit = is_limit && value.bytes().all(|byte| byte.is_ascii_digit());
            if is_limit && command.get_arguments().any(|known| known.get_long() == Some("limit")) {
                Some(format!("write `--limit {value}`"))
            } else {
                instead_of_invalid(known, &value, &reason(&error), arguments)
            }
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

fn reason(error: &clap::Error) -> String {
    std::error::Error::source(error).map(ToString::to_string).unwrap_or_default()
}

/// What to write instead of a value that its argument does not take, where the reason does not say it.
fn instead_of_invalid(argument: Option<&Arg>, value: &str, reason: &str, given: &[OsString]) -> Option<String> {
    let argument = argument?;
    let is_given = match argument.get_long() {
        Some(long) => given.iter().any(|given| given.to_string_lossy().starts_with(&format!("--{long}"))),
        None => given.iter().skip(1).any(|given| given.to_string_lossy() == value),
    };
    if let Some(variable) = argument.get_env().filter(|_| !is_given) {
        return Some(format!(
            "the value is that of the variable `{}`; correct or unset it",
            variable.to_string_lossy()
        ));
    }
    if argument.get_value_names().is_some_and(|names| names.iter().any(|name| name == "N")) {
        let default = argument.get_default_values().first().map(|default| default.to_string_lossy());
        return Some(format!("write a whole number, such as {}", default.as_deref().unwrap_or("100")));
    }
    // A reason that lists the known words names them between backticks.
    let words = reason.split('`').skip(1).step_by(2).filter(|word| *word != value);
    nearest(value, words)
        .filter(|near| !reason.contains(&format!("write `{near}`")))
        .map(|near| format!("write `{near}`"))
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
    let habit = |is_row: &dyn Fn(&str) -> bool| {
        OPTIONS.iter().find(|(row, typed, _)| is_row(row) && typed.contains(&name)).map(|(.., tip)| (*tip).to_owned())
    };
    if let Some(tip) = habit(&|row| row != "*" && is_in(row, path)) {
        return tip;
    }
    let known: Vec<&str> = command.get_arguments().filter_map(|known| known.get_long()).collect();
    if let Some(near) = nearest(long, known.iter().copied()) {
        return format!("write `--{near}`");
    }
    if let Some(tip) = habit(&|row| row == "*") {
        return tip;
    }
    if let Some(tip) = habit(&|row| path.is_empty() && row == "serve") {
        return format!("{tip}, after `medfeed serve`");
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
    // `help` takes the names of all others.
    let command = if path == "help" { program } else { command };
    let known: Vec<&str> = command.get_subcommands().map(Command::get_name).collect();
    let shown = |name: &str| format!("medfeed {path} {name}").replace("  ", " ");
    let elsewhere = commands_with(program, "", &|below| below.get_name() == given);
    if !elsewhere.is_empty() {
        return format!("write `medfeed {}`", elsewhere.join("` or `medfeed "));
    }
    if let Some(near) = nearest(given, known.iter().copied()) {
        return format!("write `{}`", shown(near));
    }
    if Path::new(given).exists() {
        return format!("write `medfeed import {given}` to bring its records in");
    }
    let known: Vec<&str> = known.into_iter().filter(|known| *known != "help").collect();
    format!("write one of {}, such as `{}`", known.join(", "), shown(known.first().unwrap_or(&"help")))
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
