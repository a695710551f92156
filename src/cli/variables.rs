//! `MEDFEED_` variables: an invalid value names its variable, and a variable that belongs to no option is warned of.

use std::collections::BTreeSet;
use std::ffi::OsString;

use clap::Command;
use clap::builder::StyledStr;
use clap::error::{ContextKind, ContextValue, ErrorKind};

use crate::cli::output::warn;
use crate::model::fold::nearest;

/// Adds to the error of an invalid value the variable that it comes from.
pub(in crate::cli) fn name_variable(mut error: clap::Error, arguments: &[OsString]) -> clap::Error {
    if error.kind() != ErrorKind::ValueValidation {
        return error;
    }
    let Some(ContextValue::String(argument)) = error.get(ContextKind::InvalidArg) else {
        return error;
    };
    let option = argument.split(' ').next().unwrap_or_default().to_owned();
    let is_given = arguments
        .iter()
        .any(|given| given.to_string_lossy().starts_with(&option));
    if !is_given && option.starts_with("--") {
        let name = option
            .trim_start_matches('-')
            .to_ascii_uppercase()
            .replace('-', "_");
        let remedy =
            format!("the value comes from the variable `{PREFIX}{name}`; correct or unset it");
        error.insert(
            ContextKind::Suggested,
            ContextValue::StyledStrs(vec![StyledStr::from(remedy)]),
        );
    }
    error
}

const PREFIX: &str = "MEDFEED_";

/// Variables that belong to no option: the URL of `publish`, the key of `pull` and of curl commands, the host name in
/// deploy/, and settings of tests and benchmarks.
const OTHERS: [&str; 10] = [
    "PUBLISH_URL",
    "KEY",
    "HOST",
    "REAL_DATA",
    "STATIC_TARGET",
    "CHROMEDRIVER",
    "AXE",
    "SEED",
    "CASES",
    "BENCH_",
];

/// The variables of a command and of those below it.
fn variables(command: &Command) -> BTreeSet<String> {
    let own = command
        .get_arguments()
        .filter_map(|argument| argument.get_env());
    let own = own.map(|variable| variable.to_string_lossy().into_owned());
    own.chain(command.get_subcommands().flat_map(variables))
        .collect()
}

/// Warns of each variable that belongs to no option.
pub(in crate::cli) fn warn_of_unknown_variables(program: &Command) {
    unknown(program, std::env::vars_os().map(|(name, _)| name))
        .iter()
        .for_each(|warning| warn(warning));
}

fn unknown(program: &Command, names: impl Iterator<Item = OsString>) -> BTreeSet<String> {
    let known = variables(program);
    let names = names
        .map(|name| name.to_string_lossy().into_owned())
        .filter(|name| !known.contains(name));
    let warnings = names.filter_map(|name| {
        let rest = name.strip_prefix(PREFIX)?;
        let is_other = OTHERS
            .iter()
            .any(|other| rest == *other || other.ends_with('_') && rest.starts_with(other));
        let remedy = match nearest(
            rest,
            known.iter().filter_map(|known| known.strip_prefix(PREFIX)),
        ) {
            Some(near) => format!("did you mean `{PREFIX}{near}`?"),
            None => {
                "`medfeed COMMAND --help` lists the variables; some options have none".to_owned()
            }
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
        "contact",
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
        own.chain(command.get_subcommands().flat_map(with_variable))
            .collect()
    }

    #[test]
    fn only_options_that_configure_have_a_variable() {
        let found = with_variable(&crate::cli::program());
        assert_eq!(
            found.iter().map(String::as_str).collect::<Vec<_>>(),
            WITH_VARIABLE
        );
    }

    #[test]
    fn unknown_variables_are_reported() {
        let program = crate::cli::program();
        let cases = [
            ("MEDFEED_YEAR", Some("some options have none")),
            ("MEDFEED_DRY_RUN", Some("some options have none")),
            ("MEDFEED_LISTN", Some("did you mean `MEDFEED_LISTEN`?")),
            (
                "MEDFEED_PUBLISH_UR",
                Some("did you mean `MEDFEED_PUBLISH_URL`?"),
            ),
            (
                "MEDFEED_DATABASE_FOLDER",
                Some("`medfeed COMMAND --help` lists the variables"),
            ),
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
            let warning = unknown(&program, [OsString::from(name)].into_iter())
                .into_iter()
                .next();
            match expected {
                None => assert_eq!(warning, None, "{name}"),
                Some(part) => assert!(
                    warning.as_ref().is_some_and(|text| text.contains(part)),
                    "{name}: {warning:?}"
                ),
            }
        }
    }
}
