//! The modules that each module may use: imports point down only.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

/// The modules that a module uses. It may also use the modules that those use.
const USES: [(&str, &[&str]); 17] = [
    ("disk", &[]),
    ("model", &[]),
    ("transport", &["disk"]),
    ("store", &["model", "disk"]),
    ("view", &["store"]),
    ("token", &["model"]),
    ("query", &["view", "token"]),
    ("contract", &["model"]),
    ("docs", &["contract", "query"]),
    ("explorer", &["model"]),
    ("api", &["query", "token", "docs", "explorer"]),
    ("bucket", &["model", "disk", "transport"]),
    ("replicate", &["bucket", "store"]),
    ("serve", &["api", "replicate", "transport"]),
    ("import", &["store"]),
    ("pull", &["contract", "transport"]),
    ("cli", &["serve", "import", "pull"]),
];

/// The exclusive maximum of a file's lines without its tests.
const MAX_LINES: usize = 900;
/// Where the tests of a file begin.
const TESTS: &str = "\n#[cfg(test)]\nmod ";

/// Crates that only one module may use.
const PRIVATE: [(&str, &str); 9] = [
    ("redb::", "store"),
    ("hyper::", "serve"),
    ("object_store::", "bucket"),
    ("reqwest::", "transport"),
    ("futures_util::", "bucket"),
    ("rusqlite::", "pull"),
    ("tokio_postgres_rustls::", "pull"),
    ("anyhow::", "cli"),
    ("clap::", "cli"),
];

fn allowed(module: &str) -> BTreeSet<&'static str> {
    let (_, direct) = USES
        .iter()
        .find(|(name, _)| *name == module)
        .unwrap_or_else(|| panic!("unknown module {module}"));
    direct
        .iter()
        .flat_map(|used| allowed(used).into_iter().chain([*used]))
        .collect()
}

/// The Rust files of a folder and its folders, by their paths there.
pub fn sources(folder: &Path) -> BTreeMap<PathBuf, String> {
    let mut found = BTreeMap::new();
    for entry in fs::read_dir(folder).unwrap().map(Result::unwrap) {
        let (path, name) = (entry.path(), PathBuf::from(entry.file_name()));
        if path.is_dir() {
            found.extend(
                sources(&path)
                    .into_iter()
                    .map(|(below, text)| (name.join(below), text)),
            );
        } else if path.extension().is_some_and(|ending| ending == "rs") {
            found.insert(name, fs::read_to_string(&path).unwrap());
        }
    }
    found
}

pub fn all_sources() -> BTreeMap<PathBuf, String> {
    let found = sources(&Path::new(env!("CARGO_MANIFEST_DIR")).join("src"));
    assert!(found.len() > 50, "only {} files", found.len());
    found
}

/// The top module of a file; `None` for `lib.rs` and `main.rs`, which see everything.
fn module_of(path: &Path) -> Option<&str> {
    let first = path.iter().next()?.to_str()?;
    let name = first.strip_suffix(".rs").unwrap_or(first);
    (name != "lib" && name != "main").then_some(name)
}

/// The code without comments: documentation may link upwards.
pub fn code(text: &str) -> String {
    text.lines()
        .filter(|line| !line.trim_start().starts_with("//"))
        .collect::<Vec<_>>()
        .join("\n")
}

/// The top modules after `crate::` in a text, including those of a group in braces.
fn used_modules(text: &str) -> BTreeSet<String> {
    let mut used = BTreeSet::new();
    for (at, _) in text.match_indices("crate::") {
        if text[..at].ends_with('$')
            || text[..at].ends_with(|before: char| before.is_alphanumeric() || before == '_')
        {
            continue;
        }
        let rest = &text[at + "crate::".len()..];
        let word = |text: &str| {
            text.trim()
                .chars()
                .take_while(|c| c.is_alphanumeric() || *c == '_')
                .collect::<String>()
        };
        match rest.strip_prefix('{') {
            None => {
                used.insert(word(rest));
            }
            Some(group) => {
                let (mut depth, mut item) = (1, String::new());
                for letter in group.chars() {
                    depth += i32::from(letter == '{') - i32::from(letter == '}');
                    if depth == 0 || (depth == 1 && letter == ',') {
                        used.insert(word(&item));
                        item.clear();
                        if depth == 0 {
                            break;
                        }
                    } else {
                        item.push(letter);
                    }
                }
            }
        }
    }
    used.remove("");
    used
}

#[test]
fn modules_use_only_modules_below_them() {
    let mut seen = BTreeSet::new();
    for (path, text) in all_sources() {
        let Some(module) = module_of(&path) else {
            continue;
        };
        seen.insert(module.to_owned());
        let allowed = allowed(module);
        for used in used_modules(&code(&text)) {
            assert!(
                used == module || allowed.contains(used.as_str()),
                "{} uses {used}",
                path.display()
            );
        }
    }
    assert_eq!(
        seen,
        USES.map(|(name, _)| name.to_owned()).into(),
        "every module is listed"
    );
}

#[test]
fn crates_stay_in_their_modules() {
    for (path, text) in all_sources() {
        for (name, owner) in PRIVATE {
            let is_used = code(&text).match_indices(name).any(|(at, _)| {
                !text_before(&code(&text), at).ends_with(|c: char| c.is_alphanumeric() || c == '_')
            });
            let module = module_of(&path).unwrap_or("cli");
            assert!(
                !is_used || module == owner,
                "{} uses {name}",
                path.display()
            );
        }
    }
}

fn text_before(text: &str, at: usize) -> &str {
    &text[..at]
}

/// The write transaction records the changes of a published database, so nothing else may write a row.
#[test]
fn rows_are_written_by_the_write_transaction() {
    // The write transaction, the code that opens the file, copies that are not in use yet, and tests that damage rows.
    const OTHERS: [&str; 4] = [
        "store/write_tx.rs",
        "store/file/open.rs",
        "store/file/fill.rs",
        "store/tests/damages.rs",
    ];
    let mut seen = 0;
    for (path, text) in all_sources() {
        let is_other = OTHERS.iter().any(|other| path == Path::new(other));
        seen += usize::from(is_other);
        for word in ["WriteTransaction", "begin_write"] {
            assert!(
                is_other || !code(&text).contains(word),
                "{} names {word}",
                path.display()
            );
        }
    }
    assert_eq!(seen, OTHERS.len(), "each of them is there");
}

#[test]
fn no_source_file_exceeds_the_line_limit() {
    for (path, text) in all_sources() {
        if path.to_string_lossy().ends_with("tests.rs") {
            continue;
        }
        let (without_tests, _) = text.split_once(TESTS).unwrap_or((&text, ""));
        let lines = without_tests.lines().count();
        assert!(lines < MAX_LINES, "{} has {lines} lines", path.display());
    }
}

#[test]
fn used_modules_are_found_in_each_form_of_use() {
    let cases: [(&str, &[&str]); 6] = [
        ("use crate::api::SnapshotSource;", &["api"]),
        (
            "use crate::{store::{Writer, Edit}, model};",
            &["model", "store"],
        ),
        ("fn f() { crate::view::View::open() }", &["view"]),
        ("macro_rules! m { () => { $crate::model::X } }", &[]),
        ("use pub_crate::x;", &[]),
        ("pub(crate) fn f() {}", &[]),
    ];
    for (text, expected) in cases {
        assert_eq!(
            used_modules(text)
                .iter()
                .map(String::as_str)
                .collect::<Vec<_>>(),
            expected,
            "{text}"
        );
    }
}
