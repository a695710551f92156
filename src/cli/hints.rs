//! Hints for options and commands that people know from other programs, and warnings about `MEDFEED_` variables that
//! belong to no option. clap suggests similar names itself.

use std::collections::BTreeSet;
use std::ffi::OsString;

use clap::Command;
use clap::builder::StyledStr;
use clap::error::{ContextKind, ContextValue, ErrorKind};

use crate::cli::output::warn;
use crate::model::fold::nearest;

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
    ("man", &["--folder", "--output", "-o"], "name the folder without an option: `medfeed man man1`"),
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

const PREFIX: &str = "MEDFEED_";

/// Variables that belong to no option: the URL of `publish`, the key of `pull` and of curl commands, the host name in
/// deploy/, and settings of tests and benchmarks.
const OTHERS: [&str; 10] =
    ["PUBLISH_URL", "KEY", "HOST", "REAL_DATA", "STATIC_TARGET", "CHROMEDRIVER", "AXE", "SEED", "CASES", "BENCH_"];

/// The variables of a command and of those below it.
fn variables(command: &Command) -> BTreeSet<String> {
    let own = command.get_arguments().filter_map(|argument| argument.get_env());
    let own = own.map(|variable| variable.to_string_lossy().into_owned());
    own.chain(command.get_subcommands().flat_map(variables)).collect()
}

/// Warns of each variable that belongs to no option.
pub(in crate::cli) fn warn_of_unknown_variables(program: &Command) {
    unknown(program, std::env::vars_os().map(|(name, _)| name)).iter().for_each(|warning| warn(warning));
}

fn unknown(program: &Command, names: impl Iterator<Item = OsString>) -> BTreeSet<String> {
    let known = variables(program);
    let names = names.map(|name| name.to_string_lossy().into_owned()).filter(|name| !known.contains(name));
    let warnings = names.filter_map(|name| {
        let rest = name.strip_prefix(PREFIX)?;
        let is_other = OTHERS.iter().any(|other| rest == *other || other.ends_with('_') && rest.starts_with(other));
        let remedy = match nearest(rest, known.iter().filter_map(|known| known.strip_prefix(PREFIX))) {
            Some(near) => format!("did you mean `{PREFIX}{near}`?"),
            None => "`medfeed COMMAND --help` lists the variables; some options have none".to_owned(),
        };
        (!is_other).then(|| format!("unknown variable `{name}`; {remedy}"))
    });
    warnings.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The options that have a variable: those that configure, and none that selects what one call does.
    const WITH_VARIABLE: &[&str] = &[
        "admin-host",
        "admin-listen",
        "ca-file",
        "cache-bytes",
        "change-delay",
        "cors-origin",
        "create",
        "db",
        "docs-url",
        "drain-timeout",
        "every",
        "forwarded-header",
        "from",
        "heartbeat",
        "json",
        "keep",
        "key-file",
        "listen",
        "log",
        "log-format",
        "max-staleness",
        "plain-http",
        "poll",
        "public-url",
        "publish-wait",
        "reuse-port",
        "seal-key",
        "state-every",
        "tls-cert",
        "tls-key",
        "trusted-proxy",
        "wait",
    ];

    /// The options that have a variable, which must be named after the option.
    fn with_variable(command: &Command) -> BTreeSet<String> {
        let own = command.get_arguments().filter_map(|argument| {
            let (option, variable) = (argument.get_long()?, argument.get_env()?);
            let expected = format!("{PREFIX}{}", option.to_ascii_uppercase().replace('-', "_"));
            assert_eq!(variable.to_str(), Some(expected.as_str()));
            Some(option.to_owned())
        });
        own.chain(command.get_subcommands().flat_map(with_variable)).collect()
    }

    #[test]
    fn only_options_that_configure_have_a_variable() {
        let found = with_variable(&crate::cli::program());
        assert_eq!(found.iter().map(String::as_str).collect::<Vec<_>>(), WITH_VARIABLE);
    }

    #[test]
    fn unknown_variables_are_reported() {
        let program = crate::cli::program();
        let cases = [
            ("MEDFEED_YEAR", Some("some options have none")),
            ("MEDFEED_DRY_RUN", Some("some options have none")),
            ("MEDFEED_LISTN", Some("did you mean `MEDFEED_LISTEN`?")),
            ("MEDFEED_PUBLISH_UR", Some("did you mean `MEDFEED_PUBLISH_URL`?")),
            ("MEDFEED_DATABASE_FOLDER", Some("`medfeed COMMAND --help` lists the variables")),
            ("MEDFEED_PORT", Some("lists the variables")),
            ("MEDFEED_DB", None),
            ("MEDFEED_PUBLISH_URL", None),
            ("MEDFEED_CACHE_BYTES", None),
            ("MEDFEED_KEY", None),
            ("MEDFEED_BENCH_LARGE", None),
            ("MEDFEED_AXE", None),
            ("PATH", None),
        ];
        for (name, expected) in cases {
            let warning = unknown(&program, [OsString::from(name)].into_iter()).into_iter().next();
            match expected {
                None => assert_eq!(warning, None, "{name}"),
                Some(part) => assert!(warning.as_ref().is_some_and(|text| text.contains(part)), "{name}: {warning:?}"),
            }
        }
    }
}
