//! The cases of the explorer's scripts and of the operators' page, run by Node where there is one.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use medfeed::explorer::scripts;
use medfeed::model::flat::{looks_like_formula, write_row};
use medfeed::model::fold::fold;

/// The folder of the cases and of their runner.
fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/explorer")
}

/// The version of Node, major and minor; `None` without Node.
fn node_version() -> Option<(u32, u32)> {
    let output = Command::new("node").arg("--version").output().ok()?;
    let text = String::from_utf8(output.stdout).ok()?;
    let mut parts = text.trim().strip_prefix('v')?.split('.').map(str::parse);
    Some((parts.next()?.ok()?, parts.next()?.ok()?))
}

/// Whether a version of Node knows modules by their syntax.
fn knows_modules(version: (u32, u32)) -> bool {
    version >= (22, 7) || (version.0 == 20 && version.1 >= 19)
}

/// Runs a test file in Node with `variable` set. Fails below `least` passed cases. Without Node, prints a message.
fn run_cases(file: &str, variable: &str, value: &Path, least: usize) {
    match node_version() {
        None => return eprintln!("{file} is left out: there is no node"),
        Some(version) if !knows_modules(version) => {
            return eprintln!(
                "{file} is left out: node is {version:?}; install 20.19, 22.7 or newer"
            );
        }
        Some(_) => {}
    }
    let mut node = Command::new("node");
    // A time zone that is not UTC and has daylight saving time: its days differ from those of UTC, and do not always
    // have 24 hours.
    node.arg("--test")
        .arg(folder().join(file))
        .env(variable, value)
        .env("TZ", "America/New_York");
    let output = node.output().unwrap();
    let report = String::from_utf8_lossy(&output.stdout);
    assert!(
        output.status.success(),
        "{report}\n{}",
        String::from_utf8_lossy(&output.stderr)
    );
    // A runner without cases exits with success too.
    let passed = report.lines().find_map(|line| {
        line.trim_start_matches(['#', 'ℹ', ' '])
            .strip_prefix("pass ")
    });
    let passed: usize = passed.and_then(|count| count.parse().ok()).unwrap_or(0);
    assert!(passed >= least, "only {passed} cases passed\n{report}");
}

#[test]
fn the_model_passes_its_cases() {
    let model = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/explorer/model");
    run_cases("model.test.js", "EXPLORER_MODEL", &model, 102);
}

/// Two of the scripts are generated.
#[test]
fn the_page_passes_its_cases() {
    let page = tempfile::tempdir().unwrap();
    for folder in ["model", "views"] {
        fs::create_dir_all(page.path().join(folder)).unwrap();
    }
    for name in scripts::names() {
        let text = scripts::script(name).unwrap();
        fs::write(page.path().join(format!("{name}.js")), &*text).unwrap();
    }
    let worker = medfeed::explorer::find("/worker.js", false, None)
        .unwrap()
        .1;
    fs::write(page.path().join("worker.js"), worker).unwrap();
    run_cases("page.test.js", "EXPLORER_PAGE", page.path(), 22);
}

/// All texts of up to three characters that matter to the guard of cells.
#[test]
fn the_page_guards_and_quotes_the_same_cells_as_the_server() {
    let mut texts = vec![String::new()];
    let mut longest = texts.clone();
    for _ in 0..3 {
        let longer = |text: &String| {
            "'=+-@\t\r\n\",; a\u{85}\u{2028}\u{2029}"
                .chars()
                .map(|letter| format!("{text}{letter}"))
                .collect::<Vec<_>>()
        };
        longest = longest.iter().flat_map(longer).collect();
        texts.extend_from_slice(&longest);
    }
    let cell = |text: &String| {
        if looks_like_formula(text) {
            format!("'{text}")
        } else {
            text.clone()
        }
    };
    let line = |text: &String| {
        let mut line = Vec::new();
        write_row(&mut line, [cell(text)]).unwrap();
        String::from_utf8(line).unwrap()
    };
    let cells = texts.iter();
    let cells: Vec<[String; 2]> = cells.map(|text| [text.clone(), line(text)]).collect();
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("cells.json");
    fs::write(&file, serde_json::to_vec(&cells).unwrap()).unwrap();
    run_cases("guard.test.js", "SERVER_CELLS", &file, 1);
}

/// Characters of the scripts and the punctuation that names have. Rare letters of other scripts may fold differently.
#[test]
fn the_page_folds_as_the_server() {
    let ranges = [
        ' '..='~',
        '\u{a0}'..='\u{24f}',
        '\u{2b9}'..='\u{2bf}',
        '\u{384}'..='\u{3ce}',
        '\u{400}'..='\u{482}',
        '\u{48a}'..='\u{4ff}',
        '\u{591}'..='\u{5c7}',
        '\u{5d0}'..='\u{6d5}',
        '\u{904}'..='\u{939}',
        '\u{3041}'..='\u{30ff}',
    ];
    let others = [
        '\u{1e00}'..='\u{1eff}',
        '\u{1f00}'..='\u{1ffe}',
        '\u{2010}'..='\u{2060}',
        '\u{2200}'..='\u{22ff}',
    ];
    let letters = ranges
        .into_iter()
        .chain(others)
        .chain(['\u{fe30}'..='\u{fe6b}', '\u{ff01}'..='\u{ffee}'])
        .flatten();
    let texts: Vec<String> = letters
        .flat_map(|letter| {
            [
                letter.to_string(),
                format!("é{letter}’s"),
                format!("か{letter}\u{3099}иا{letter}"),
            ]
        })
        .collect();
    let lines: String = texts
        .iter()
        .map(|text| serde_json::json!([text, fold(text)]).to_string() + "\n")
        .collect();
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("folded");
    fs::write(&file, lines).unwrap();
    run_cases("fold.test.js", "FOLDED", &file, 1);
}

#[test]
fn the_operators_page_passes_its_cases() {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/serve/operators/admin/page.js");
    run_cases("operators.test.js", "OPERATORS_SCRIPT", &script, 5);
}
