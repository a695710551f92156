//! `MEDFEED_` variables. A wrong value names its variable, and a variable that belongs to no option is warned of.

use std::collections::BTreeSet;
use std::ffi::OsString;

use clap::builder::{Resettable, StyledStr};
use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{Arg, Command};

use crate::cli::output::warn;
use crate::model::nearest;

/// Names the variable that an error comes from: the one without which the error would be about another argument.
pub fn name_variable(
    mut error: clap::Error,
    program: &Command,
    arguments: &[OsString],
) -> clap::Error {
    let cause = variables(program).into_iter().find(|name| {
        let other = without_variable(program.clone(), name);
        let other = other.try_get_matches_from(arguments).err();
        other.is_none_or(|other| {
            other.get(ContextKind::InvalidArg) != error.get(ContextKind::InvalidArg)
        })
    });
    let Some(name) = cause else {
        return error;
    };
    if std::env::var_os(&name).is_some_and(|value| value.is_empty()) {
        let message = format!("the variable `{name}` is empty; give it a value, or unset it\n");
        return clap::Error::raw(ErrorKind::InvalidValue, message);
    }
    let remedy = format!("this comes from the variable `{name}`; correct or unset it");
    error.insert(
        ContextKind::Suggested,
        ContextValue::StyledStrs(vec![StyledStr::from(remedy)]),
    );
    error
}

/// Removes a variable from the arguments of a command and of those below it.
fn without_variable(command: Command, name: &str) -> Command {
    command
        .mut_args(|argument| match argument.get_env() {
            Some(variable) if variable == name => argument.env(Resettable::Reset),
            _ => argument,
        })
        .mut_subcommands(|below| without_variable(below, name))
}

const PREFIX: &str = "MEDFEED_";

/// Variables that belong to no option: the key of `pull` and of curl commands, the host name in
/// deploy/, the program of the examples' checks, and settings of tests and benchmarks.
const OTHERS: [&str; 10] = [
    "KEY",
    "BIN",
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
    let own = command.get_arguments().filter_map(Arg::get_env);
    own.map(|variable| variable.to_string_lossy().into_owned())
        .chain(command.get_subcommands().flat_map(variables))
        .collect()
}

/// Warns of each variable that belongs to no option.
pub fn warn_of_unknown_variables(program: &Command) {
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
    use std::collections::BTreeMap;
    use std::path::{Path, PathBuf};

    use clap::ArgAction;

    use super::*;

    /// Each variable, the commands that read it, and its one meaning for all of them. Options that select or permit what
    /// one call does have none.
    const MEANINGS: &[(&str, &str, &str)] = &cases![
        "ADMIN_HOST", "publish serve", "a name of this program's own monitoring listener";
        "ADMIN_LISTEN", "health publish serve", "the address of the monitoring listener";
        "CACHE_BYTES", "serve", "the memory of the answer cache";
        "CA_FILE", "pull", "the trusted certificates";
        "CHANGE_DELAY", "serve", "how long commits are held back";
        "CONTACT", "serve", "where customers reach the operator";
        "CORS_ORIGIN", "serve", "the allowed origins";
        "CREATE", "serve", "whether a server creates its database";
        "DB", "all", "the database file";
        "DOCS_URL", "serve", "the URL of the documentation";
        "DRAIN_TIMEOUT", "serve", "how long open requests may take at the end";
        "EVERY", "publish", "the shortest time between two entries of the log";
        "FORWARDED_HEADER", "serve", "the header of trusted proxies";
        "FROM", "serve", "the bucket that a replica follows";
        "HEARTBEAT", "publish", "how often the heartbeat is written";
        "JSON", "all", "whether the output is JSON";
        "KEEP", "publish", "how long objects are kept";
        "KEY_FILE", "pull", "the file with the API key";
        "LISTEN", "demo health serve", "the address of the API's listener";
        "LOG", "demo publish serve", "the log level";
        "LOG_FORMAT", "demo publish serve", "the format of the log";
        "MAX_STALENESS", "serve", "when a replica stops answering";
        "PLAIN_HTTP", "publish serve", "whether this program's own listeners may speak plain HTTP";
        "POLL", "serve", "how often a replica polls";
        "PUBLIC_URL", "serve", "the URL that callers see";
        "PUBLISH_URL", "publish", "the bucket that is published into";
        "PUBLISH_WAIT", "all", "how long to wait for the bucket";
        "REUSE_PORT", "serve", "whether servers share an address";
        "SEAL_KEY", "backup check promote publish serve", "the file with the bucket's seal key";
        "STATE_EVERY", "publish", "how often a whole state is written";
        "TLS_CERT", "health serve", "the server's certificate";
        "TLS_KEY", "serve", "the server's private key";
        "TRUSTED_PROXY", "serve", "the trusted proxies";
        "WAIT", "all", "how long to wait for another writer";
    ];

    /// Collects the commands that read each variable. A variable is named after its option.
    fn readers(command: &Command, path: &str, found: &mut BTreeMap<String, BTreeSet<String>>) {
        for argument in command.get_arguments() {
            let Some(variable) = argument.get_env() else {
                continue;
            };
            let name = variable.to_str().unwrap().strip_prefix(PREFIX).unwrap();
            if let Some(option) = argument.get_long() {
                assert_eq!(name, option.to_ascii_uppercase().replace('-', "_"));
            }
            let reader = if path.is_empty() { "all" } else { path };
            found
                .entry(name.to_owned())
                .or_default()
                .insert(reader.to_owned());
        }
        for below in command.get_subcommands() {
            let path = format!("{path} {}", below.get_name());
            readers(below, path.trim_start(), found);
        }
    }

    #[test]
    fn a_variable_has_one_meaning() {
        let mut found = BTreeMap::new();
        readers(&crate::cli::program(), "", &mut found);
        let found = found
            .into_iter()
            .map(|(name, readers)| (name, Vec::from_iter(readers).join(" ")));
        let expected = MEANINGS
            .iter()
            .map(|(name, readers, _)| ((*name).to_owned(), (*readers).to_owned()));
        assert_eq!(Vec::from_iter(found), Vec::from_iter(expected));
    }

    /// Switches and lists are the options whose values come from a variable in another form than on the command line.
    #[test]
    fn switches_and_lists_with_a_variable_are_known() {
        fn forms(command: &Command, found: &mut BTreeSet<String>) {
            for argument in command.get_arguments().filter(|of| of.get_env().is_some()) {
                let form = match argument.get_action() {
                    ArgAction::Set => continue,
                    ArgAction::SetTrue => "switch",
                    ArgAction::Append => "list",
                    other => panic!("{argument}: {other:?}"),
                };
                found.insert(format!("{form} {}", argument.get_long().unwrap()));
            }
            command
                .get_subcommands()
                .for_each(|below| forms(below, found));
        }
        let mut found = BTreeSet::new();
        forms(&crate::cli::program(), &mut found);
        let expected = words![
            "list admin-host" "list cors-origin" "list trusted-proxy" "switch create" "switch json"
            "switch plain-http" "switch reuse-port"
        ];
        assert_eq!(Vec::from_iter(found), expected);
    }

    #[test]
    fn commas_separate_in_lists_with_a_variable() {
        for command in crate::cli::program().get_subcommands() {
            for argument in command.get_arguments() {
                let is_list = matches!(argument.get_action(), ArgAction::Append);
                let expected = (is_list && argument.get_env().is_some()).then_some(',');
                assert_eq!(argument.get_value_delimiter(), expected, "{argument}");
            }
        }
    }

    /// The files that users copy, or run by hand.
    #[test]
    fn variables_in_manuals_examples_and_units_draw_no_warning() {
        fn texts(folder: &Path, found: &mut Vec<(PathBuf, String)>) {
            for entry in std::fs::read_dir(folder).unwrap() {
                let path = entry.unwrap().path();
                if path.is_dir() {
                    texts(&path, found);
                } else if let Ok(text) = std::fs::read_to_string(&path) {
                    found.push((path, text));
                }
            }
        }
        let root = Path::new(env!("CARGO_MANIFEST_DIR"));
        let mut found = Vec::new();
        for folder in ["examples", "deploy", "docs"] {
            texts(&root.join(folder), &mut found);
        }
        let program = crate::cli::program();
        let mut count = 0;
        for (path, text) in found {
            let is_in_name = |letter: char| letter.is_ascii_alphanumeric() || letter == '_';
            for word in text.split(|letter| !is_in_name(letter)) {
                if word.len() > PREFIX.len() && word.starts_with(PREFIX) {
                    let warnings = unknown(&program, [OsString::from(word)].into_iter());
                    assert_eq!(warnings, BTreeSet::new(), "{}", path.display());
                    count += 1;
                }
            }
        }
        assert!(count > 40, "{count}");
    }

    #[test]
    fn unknown_variables_are_reported() {
        let program = crate::cli::program();
        let cases = outcomes![
            "MEDFEED_YEAR" "MEDFEED_DRY_RUN" => Some("some options have none");
            "MEDFEED_LISTN" => Some("did you mean `MEDFEED_LISTEN`?");
            "MEDFEED_PUBLISH_UR" => Some("did you mean `MEDFEED_PUBLISH_URL`?");
            "MEDFEED_DATABASE_FOLDER" => Some("`medfeed COMMAND --help` lists the variables");
            "MEDFEED_PORT" => Some("lists the variables");
            "MEDFEED_DB" "MEDFEED_PUBLISH_URL" "MEDFEED_CACHE_BYTES" "MEDFEED_KEY"
            "MEDFEED_BENCH_LARGE" "MEDFEED_AXE" "PATH" => None;
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
