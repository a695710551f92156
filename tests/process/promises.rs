//! `docs/promises.md`: each promise names tests, and these tests exist.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use super::manuals::read;

/// The cells of the tables of promises: a promise, and its tests.
fn rows(page: &str) -> Vec<(&str, &str)> {
    let rows = page.lines().filter_map(|line| {
        line.strip_prefix("| ")?
            .strip_suffix(" |")?
            .split_once(" | ")
    });
    rows.filter(|(promise, _)| *promise != "promise" && *promise != "---")
        .collect()
}

/// The names between backticks.
fn names(cell: &str) -> Vec<&str> {
    cell.split('`').skip(1).step_by(2).collect()
}

/// Whether a source has a test that `cargo test` runs. It may require a feature, but must not be `#[ignore]`d.
fn has_test(source: &str, function: &str) -> bool {
    let lines: Vec<&str> = source.lines().map(str::trim).collect();
    let starts = format!("fn {function}(");
    lines
        .iter()
        .enumerate()
        .filter(|(_, line)| line.starts_with(&starts))
        .any(|(at, _)| {
            let attributes: Vec<&&str> = lines[..at]
                .iter()
                .rev()
                .take_while(|line| line.starts_with("#["))
                .collect();
            attributes.contains(&&"#[test]")
                && !attributes.iter().any(|line| line.starts_with("#[ignore"))
        })
}

/// Whether a test exists, by the name that `cargo test` gives it.
fn exists(name: &str) -> bool {
    let Some((modules, function)) = name.rsplit_once("::") else {
        return false;
    };
    let path = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests")
        .join(modules.replace("::", "/"));
    fs::read_to_string(path.with_extension("rs")).is_ok_and(|source| has_test(&source, function))
}

#[test]
fn every_promise_names_tests_that_exist() {
    let page = read("docs/promises.md");
    let rows = rows(&page);
    assert!(rows.len() > 50, "{} promises", rows.len());
    let mut promises = BTreeSet::new();
    for (promise, tests) in rows {
        assert!(
            promise.ends_with('.') && promise.matches(". ").count() == 0,
            "one sentence: {promise}"
        );
        assert!(promises.insert(promise), "twice: {promise}");
        let tests = names(tests);
        assert!(!tests.is_empty(), "no test: {promise}");
        for test in tests {
            assert!(
                exists(test),
                "there is no test {test}, or it is ignored: {promise}"
            );
        }
    }
}

#[test]
fn missing_tests_are_noticed() {
    let own = "process::promises::every_promise_names_tests_that_exist";
    assert!(exists(own));
    let names = words![
        "process::promises::every_promise" "process::promises::exists"
        "process::promise::every_promise_names_tests_that_exist" "every_promise_names_tests_that_exist"
        "browser::picture::takes_the_picture" ""
    ];
    for name in names {
        assert!(!exists(name), "{name}");
    }
}
