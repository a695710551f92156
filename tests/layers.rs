//! The modules that each module may use: imports point down only.

use std::collections::BTreeSet;
use std::path::Path;

use super::sources::{all_sources, module_of, read};

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
    ("redb", "store"),
    ("hyper", "serve"),
    ("object_store", "bucket"),
    ("reqwest", "transport"),
    ("futures_util", "bucket"),
    ("rusqlite", "pull"),
    ("tokio_postgres_rustls", "pull"),
    ("anyhow", "cli"),
    ("clap", "cli"),
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

/// The top module of a file; `None` for `lib.rs` and `main.rs`, which see everything.
fn top_module(path: &Path) -> Option<String> {
    module_of(path)
        .get(1)
        .filter(|name| *name != "main")
        .cloned()
}

#[test]
fn modules_use_only_modules_below_them() {
    let mut seen = BTreeSet::new();
    for (path, text) in all_sources() {
        let Some(module) = top_module(&path) else {
            continue;
        };
        let allowed = allowed(&module);
        for used in read(&path, &text).paths {
            let is_own = used.names[0] == "crate";
            let Some(name) = used.names.get(1).filter(|_| is_own) else {
                continue;
            };
            let is_allowed = *name == module || allowed.contains(name.as_str());
            assert!(is_allowed, "{} uses {name}", path.display());
        }
        seen.insert(module);
    }
    let all = USES.map(|(name, _)| name.to_owned());
    assert_eq!(seen, all.into(), "every module is listed");
}

#[test]
fn crates_stay_in_their_modules() {
    for (path, text) in all_sources() {
        let module = top_module(&path).unwrap_or_else(|| "cli".to_owned());
        for used in read(&path, &text).paths {
            let owner = PRIVATE.iter().find(|(name, _)| *name == used.names[0]);
            let is_allowed = owner.is_none_or(|(_, owner)| *owner == module);
            assert!(is_allowed, "{} uses {}", path.display(), used.names[0]);
        }
    }
}

/// The write transaction records the changes of a published database, so nothing else may write a row.
#[test]
fn rows_are_written_by_the_write_transaction() {
    // The write transaction, the code that opens the file, copies that are not in use yet, and tests that damage rows.
    const OTHERS: [&str; 4] = words![
        "store/write_tx.rs" "store/file/open.rs" "store/file/replace.rs" "store/tests/damages.rs"
    ];
    let mut seen = 0;
    for (path, text) in all_sources() {
        let is_other = OTHERS.iter().any(|other| path == Path::new(other));
        seen += usize::from(is_other);
        for word in ["WriteTransaction", "begin_write"] {
            assert!(
                is_other || !text.contains(word),
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
