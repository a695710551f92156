//! Hints for wrong command lines: clap says what is wrong, this module adds what to write instead.

use std::ffi::OsString;

use clap::builder::StyledStr;
use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{Arg, Command};

use crate::cli::help::corrections::{COMMANDS, OPTIONS};
use crate::cli::help::examples;
use crate::cli::shared::common;
use crate::model::nearest::nearest;

/// Replaces clap's suggestions, which may be far from the input.
pub(in crate::cli) fn explain(mut error: clap::Error, program: &Command, arguments: &[OsString]) -> clap::Error {
    let (path, command) = command_of(program, arguments);
    let text = |kind| match error.get(kind) {
        Some(ContextValue::String(text)) => Some(text.clone()),
        _ => None,
    };
    let (argument, value) = (text(ContextKind::InvalidArg), text(ContextKind::InvalidValue).unwrap_or_default());
    let tip = match (error.kind(), argument) {
        (ErrorKind::UnknownArgument, Some(given)) => Some(instead_of_argument(&given, &path, &command)),
        (ErrorKind::InvalidSubcommand, _) => {
            text(ContextKind::InvalidSubcommand).map(|given| instead_of_command(&given, &path, &command, program))
        }
        (ErrorKind::MissingRequiredArgument, _) => example_with(&path, &missing(&error)),
        (ErrorKind::InvalidValue, Some(argument)) if value.is_empty() => example_with(&path, &[argument]),
        (ErrorKind::InvalidValue, _) => match error.get(ContextKind::ValidValue) {
            Some(ContextValue::Strings(known)) => nearest(&value, known.iter().map(String::as_str)).map(write_instead),
            _ => None,
        },
        (ErrorKind::ValueValidation, Some(argument)) => {
            let argument = command.get_arguments().find(|known| known.to_string() == argument);
            argument.and_then(|argument| instead_of_value(argument, &value, &reason(&error), arguments))
        }
        (ErrorKind::ArgumentConflict, given) => {
            (text(ContextKind::PriorArg) == given).then(|| "give the option once".to_owned())
        }
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
    // The parser's own usage line may contain an argument that it only guessed.
    error.insert(ContextKind::Usage, ContextValue::StyledStr(command.clone().render_usage()));
    error
}

fn write_instead(word: &str) -> String {
    format!("write `{word}`")
}

fn reason(error: &clap::Error) -> String {
    std::error::Error::source(error).map(ToString::to_string).unwrap_or_default()
}

/// The hint for an invalid value, if the reason has none.
fn instead_of_value(argument: &Arg, value: &str, reason: &str, given: &[OsString]) -> Option<String> {
    let is_given = match argument.get_long() {
        Some(long) => given.iter().any(|given| given.to_string_lossy().starts_with(&format!("--{long}"))),
        None => given.iter().skip(1).any(|given| given.to_string_lossy() == value),
    };
    if let Some(variable) = argument.get_env().filter(|_| !is_given) {
        let variable = variable.to_string_lossy();
        return Some(format!("the value comes from the variable `{variable}`; correct or unset it"));
    }
    if argument.get_value_names().is_some_and(|names| names.iter().any(|name| name == "N")) {
        let default = argument.get_default_values().first().map(|default| default.to_string_lossy());
        return Some(format!("write a whole number, such as {}", default.as_deref().unwrap_or("100")));
    }
    if reason.contains("write ") {
        return None;
    }
    // A reason that lists the known words puts them between backticks.
    let words = reason.split('`').skip(1).step_by(2).filter(|word| *word != value);
    nearest(value, words).map(write_instead)
}

/// The command that the arguments name, with its full name, such as `license set`.
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

fn instead_of_argument(given: &str, path: &str, command: &Command) -> String {
    let help = || format!("`medfeed {path} --help` lists the options").replace("  ", " ");
    if !given.starts_with('-') {
        return help();
    }
    let name = given.split('=').next().unwrap_or(given);
    let correction = |row: &str| OPTIONS.iter().find(|(at, typed, _)| *at == row && typed.contains(&name));
    if let Some((.., tip)) = correction(path) {
        return (*tip).to_owned();
    }
    let known = command.get_arguments().filter_map(Arg::get_long);
    if let Some(near) = nearest(name.trim_start_matches('-'), known) {
        return format!("write `--{near}`");
    }
    if common::NAMES.contains(&name.trim_start_matches('-')) {
        return format!("`medfeed {path}` does not take `{name}`; leave it out").replace("  ", " ");
    }
    correction("*").map_or_else(help, |(.., tip)| (*tip).to_owned())
}

fn instead_of_command(given: &str, path: &str, command: &Command, program: &Command) -> String {
    if let Some((.., tip)) = COMMANDS.iter().find(|(row, typed, _)| *row == path && typed.contains(&given)) {
        return (*tip).to_owned();
    }
    // The arguments of `help` are command names.
    let command = if path == "help" { program } else { command };
    let known: Vec<&str> = command.get_subcommands().map(Command::get_name).filter(|name| *name != "help").collect();
    let shown = |name: &str| format!("medfeed {path} {name}").replace("  ", " ");
    match nearest(given, known.iter().copied()) {
        Some(near) => write_instead(&shown(near)),
        None => {
            format!("write one of {}, such as `{}`", known.join(", "), shown(known.first().unwrap_or(&"help")))
        }
    }
}

fn missing(error: &clap::Error) -> Vec<String> {
    match error.get(ContextKind::InvalidArg) {
        Some(ContextValue::Strings(missing)) => missing.clone(),
        _ => Vec::new(),
    }
}

/// An example of the command, preferably with the arguments.
fn example_with(path: &str, arguments: &[String]) -> Option<String> {
    let names: Vec<&str> = arguments.iter().filter_map(|argument| argument.split(' ').next()).collect();
    let lines = examples::of(path);
    let (options, values): (Vec<&str>, Vec<&str>) = names.into_iter().partition(|name| name.starts_with("--"));
    let begins_with_value = |line: &str| !line.trim_start_matches("medfeed ").starts_with(&format!("{path} -"));
    let has = |line: &&&str| {
        options.iter().all(|name| line.contains(*name)) && (values.is_empty() || begins_with_value(line))
    };
    let line = lines.iter().find(has).or(lines.first())?;
    Some(format!("for example: `{line}`"))
}
