//! Warnings about `MEDFEED_` variables that belong to no option. They are misspelt, or name an option that is set on
//! the command line only.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;

use clap::Command;

use crate::cli::shared::output::note;
use crate::model::nearest::nearest;
use crate::model::printable::Printable;

const PREFIX: &str = "MEDFEED_";

/// Variables that belong to no option: the URL of `publish`, the key of `pull` and of curl commands, the host name in
/// deploy/, and settings of tests and benchmarks.
const OTHERS: [&str; 11] = [
    "PUBLISH_URL",
    "KEY",
    "HOST",
    "REAL_DATA",
    "STATIC_TARGET",
    "CHROMEDRIVER",
    "AXE",
    "SEED",
    "CASES",
    "MUTATIONS",
    "BENCH_",
];

/// The options of all commands with their variables.
pub(in crate::cli) fn options(program: &Command) -> BTreeMap<String, Option<String>> {
    fn collect(command: &Command, found: &mut BTreeMap<String, Option<String>>) {
        for argument in command.get_arguments() {
            if let Some(name) = argument.get_long() {
                let variable = argument.get_env().map(|variable| variable.to_string_lossy().into_owned());
                let known = found.entry(name.to_owned()).or_default();
                *known = known.take().or(variable);
            }
        }
        command.get_subcommands().for_each(|below| collect(below, found));
    }
    let mut found = BTreeMap::new();
    collect(program, &mut found);
    found
}

/// The variables of all options and positional arguments.
fn variables(command: &Command) -> BTreeSet<String> {
    let own = command.get_arguments().filter_map(|argument| argument.get_env());
    let own = own.map(|variable| variable.to_string_lossy().into_owned());
    own.chain(command.get_subcommands().flat_map(variables)).collect()
}

/// Warns of each variable that belongs to no option.
pub(in crate::cli) fn warn_of_unknown(program: &Command) {
    let names = std::env::vars_os().map(|(name, _)| name);
    for warning in unknown(program, names) {
        note(&format!("warning: {}", Printable(&warning)));
    }
}

fn unknown(program: &Command, names: impl Iterator<Item = OsString>) -> Vec<String> {
    let options = options(program);
    let known = variables(program);
    let mut warnings = Vec::new();
    for name in names {
        let name = name.to_string_lossy();
        let Some(rest) = name.strip_prefix(PREFIX) else { continue };
        let is_other = OTHERS.iter().any(|other| rest == *other || other.ends_with('_') && rest.starts_with(other));
        if is_other || known.contains(&*name) {
            continue;
        }
        let option = rest.to_ascii_lowercase().replace('_', "-");
        let near = nearest(rest, known.iter().filter_map(|known| known.strip_prefix(PREFIX)));
        let remedy = match (options.contains_key(&option), near) {
            (true, _) => format!("set `--{option}` on the command line; it has no variable"),
            (false, Some(near)) => format!("did you mean `{PREFIX}{near}`?"),
            (false, None) => "`medfeed help COMMAND` lists the variables".to_owned(),
        };
        warnings.push(format!("unknown variable `{name}`; {remedy}"));
    }
    warnings.sort();
    warnings
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The options that have a variable: those that configure, and none that selects what one call does.
    const WITH_VARIABLE: &[&str] = &[
        "admin-host",
        "admin-listen",
        "after-publish",
        "answer-cache-bytes",
        "ca-file",
        "change-delay",
        "cors-origin",
        "create",
        "db",
        "docs-url",
        "drain-timeout",
        "every",
        "feed-cache-bytes",
        "forwarded-header",
        "from",
        "handshake-timeout",
        "header-timeout",
        "heartbeat",
        "idle-timeout",
        "json",
        "keep",
        "key-file",
        "listen",
        "log",
        "log-format",
        "max-columns",
        "max-connections",
        "max-connections-per-address",
        "max-exports",
        "max-exports-per-key",
        "max-file-bytes",
        "max-header-bytes",
        "max-headers",
        "max-line-bytes",
        "max-name-bytes",
        "max-rows",
        "max-silence",
        "max-staleness",
        "max-uri-bytes",
        "max-waiting",
        "min-send-rate",
        "plain-http",
        "poll",
        "public-url",
        "publish-wait",
        "record-cache-bytes",
        "report",
        "reuse-port",
        "seal-key",
        "state-every",
        "tls-cert",
        "tls-key",
        "trusted-proxy",
        "wait",
        "write-timeout",
    ];

    #[test]
    fn only_options_that_configure_have_a_variable() {
        let options = options(&crate::cli::program());
        let found: Vec<&str> =
            options.iter().filter(|(_, variable)| variable.is_some()).map(|(name, _)| name.as_str()).collect();
        assert_eq!(found, WITH_VARIABLE);
        for (name, variable) in options {
            let expected = format!("{PREFIX}{}", name.to_ascii_uppercase().replace('-', "_"));
            assert!(variable.is_none_or(|variable| variable == expected), "{name}");
        }
    }

    #[test]
    fn unknown_variables_are_reported() {
        let program = crate::cli::program();
        let cases = [
            ("MEDFEED_YEAR", Some("`--year`")),
            ("MEDFEED_DRY_RUN", Some("`--dry-run`")),
            ("MEDFEED_LISTN", Some("did you mean `MEDFEED_LISTEN`?")),
            ("MEDFEED_PUBLISH_UR", Some("did you mean `MEDFEED_PUBLISH_URL`?")),
            ("MEDFEED_DATABASE_FOLDER", Some("lists the variables")),
            ("MEDFEED_PORT", Some("lists the variables")),
            ("MEDFEED_DB", None),
            ("MEDFEED_PUBLISH_URL", None),
            ("MEDFEED_MAX_ROWS", None),
            ("MEDFEED_KEY", None),
            ("MEDFEED_BENCH_LARGE", None),
            ("MEDFEED_AXE", None),
            ("PATH", None),
        ];
        for (name, expected) in cases {
            let warnings = unknown(&program, [OsString::from(name)].into_iter());
            match expected {
                None => assert_eq!(warnings, Vec::<String>::new(), "{name}"),
                Some(part) => assert!(warnings.len() == 1 && warnings[0].contains(part), "{name}: {warnings:?}"),
            }
        }
    }
}
