//! The explorer's model: its cases, run by Node where there is one. Chromium runs the same cases. Other scripts, also that
//! of the operators' page, have cases for Node alone.

use std::fmt::Write;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use medfeed::model::flat::{looks_like_formula, write_row};
use medfeed::model::fold::fold;

/// The folder of the cases and of their runner.
fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/explorer")
}

/// The folder of the model's modules.
fn model() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("src/explorer/model")
}

/// The files of a folder whose names end with `.js`, in alphabetical order.
fn scripts(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let mut paths: Vec<PathBuf> = entries.filter(|path| path.extension().is_some_and(|end| end == "js")).collect();
    paths.sort();
    paths
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

/// Runs the cases of a file with a variable, at least so many. Without Node it prints a message.
fn run_cases(file: &str, variable: &str, value: &Path, least: usize) {
    match node_version() {
        None => return eprintln!("{file} is left out: there is no node"),
        Some(version) if !knows_modules(version) => {
            return eprintln!("{file} is left out: node is {version:?}; install 20.19, 22.7 or newer");
        }
        Some(_) => {}
    }
    let mut node = Command::new("node");
    // A zone that is not UTC and changes its clocks: a day there is another one than in UTC, and not always of 24 hours.
    node.arg("--test").arg(folder().join(file)).env(variable, value).env("TZ", "America/New_York");
    let output = node.output().unwrap();
    let report = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{report}\n{}", String::from_utf8_lossy(&output.stderr));
    // A runner without cases succeeds too.
    let passed = report.lines().find_map(|line| line.trim_start_matches(['#', 'ℹ', ' ']).strip_prefix("pass "));
    let passed: usize = passed.and_then(|count| count.parse().ok()).unwrap_or(0);
    assert!(passed >= least, "only {passed} cases passed\n{report}");
}

fn run_model_cases(model: &Path) {
    run_cases("model.test.js", "EXPLORER_MODEL", model, 105);
}

/// Runs the cases of the page's other scripts. `text_of` returns a script as it is to be tested.
fn run_page_cases(text_of: impl Fn(&str) -> Vec<u8>) {
    let page = tempfile::tempdir().unwrap();
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/explorer");
    for folder in ["", "model", "views"] {
        fs::create_dir_all(page.path().join(folder)).unwrap();
        for path in scripts(&source.join(folder)) {
            let name = path.strip_prefix(&source).unwrap().to_str().unwrap();
            fs::write(page.path().join(name), text_of(name)).unwrap();
        }
    }
    for name in ["preact.js", "filters.js", "regions.js"] {
        fs::write(page.path().join(name), served(name)).unwrap();
    }
    run_cases("page.test.js", "EXPLORER_PAGE", page.path(), 21);
}

/// A script as the server sends it.
fn served(name: &str) -> Vec<u8> {
    let folder = if name == "worker.js" { "" } else { "/explorer" };
    medfeed::explorer::find(&format!("{folder}/{name}"), false).expect(name).body
}

#[test]
fn the_model_passes_its_cases() {
    run_model_cases(&model());
}

#[test]
fn the_model_passes_its_cases_as_it_is_served() {
    let folder = tempfile::tempdir().unwrap();
    for path in scripts(&model()) {
        let name = path.file_name().unwrap().to_str().unwrap();
        fs::write(folder.path().join(name), served(&format!("model/{name}"))).unwrap();
    }
    run_model_cases(folder.path());
}

#[test]
fn the_page_passes_its_cases() {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/explorer");
    run_page_cases(|name| fs::read(source.join(name)).unwrap());
}

#[test]
fn the_page_passes_its_cases_as_it_is_served() {
    run_page_cases(served);
}

/// All texts of up to three characters that matter to the guard of cells.
#[test]
fn the_page_guards_and_quotes_the_cells_that_the_server_does() {
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
    let cell = |text: &String| if looks_like_formula(text) { format!("'{text}") } else { text.clone() };
    let line = |text: &String| {
        let mut line = Vec::new();
        write_row(&mut line, [cell(text)]).unwrap();
        String::from_utf8(line).unwrap()
    };
    let cells: Vec<[String; 2]> = texts.iter().map(|text| [text.clone(), line(text)]).collect();
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("cells.json");
    fs::write(&file, serde_json::to_vec(&cells).unwrap()).unwrap();
    run_cases("guard.test.js", "SERVER_CELLS", &file, 1);
}

/// Characters of the scripts and the punctuation that names have. Rare letters of other scripts may fold differently.
#[test]
fn the_page_folds_as_the_server() {
    let ranges = [' '..='~', '\u{a0}'..='\u{24f}', '\u{2b9}'..='\u{2bf}', '\u{384}'..='\u{3ce}', '\u{400}'..='\u{45f}'];
    let others = ['\u{1e00}'..='\u{1eff}', '\u{1f00}'..='\u{1ffe}', '\u{2010}'..='\u{2060}', '\u{2200}'..='\u{22ff}'];
    let letters = ranges.into_iter().chain(others).chain(['\u{fe30}'..='\u{fe6b}', '\u{ff01}'..='\u{ffee}']).flatten();
    let texts: Vec<String> = letters.flat_map(|letter| [letter.to_string(), format!("é{letter}’s")]).collect();
    let lines: String = texts.iter().map(|text| serde_json::json!([text, fold(text)]).to_string() + "\n").collect();
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("folded");
    fs::write(&file, lines).unwrap();
    run_cases("fold.test.js", "FOLDED", &file, 1);
}

#[test]
fn the_operators_page_is_loaded_again() {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/serve/operators/admin/page.js");
    run_cases("operators.test.js", "OPERATORS_SCRIPT", &script, 5);
}

/// A script for a page of the explorer that runs all cases, and calls its last argument with `{passed, failed}`.
pub fn cases_script() -> String {
    let stem = |path: &Path| path.file_stem().unwrap().to_str().unwrap().to_owned();
    let mut script = "const done = arguments[arguments.length - 1], model = {}, failed = [];\nlet passed = 0;\n\
        const is = (actual, expected, what) => {\n\
        const [one, other] = [actual, expected].map(value => String(JSON.stringify(value)));\n\
        if (one !== other) throw new Error(`${what}: ${one} is not ${other}`);\n};\n(async () => {\n"
        .to_owned();
    for path in scripts(&model()) {
        let name = stem(&path);
        writeln!(script, "model['{name}'] = await import('/explorer/model/{name}.js');").unwrap();
    }
    for path in scripts(&folder().join("cases")) {
        let name = stem(&path);
        let text = fs::read_to_string(&path).unwrap();
        // A page's policy forbids modules from elsewhere, so the table becomes the value of a function.
        assert_eq!(text.matches("\nexport ").count() + usize::from(text.starts_with("export ")), 1, "{name}");
        let text = text.replace("export const cases =", "return");
        writeln!(
            script,
            "for (const [title, run] of (() => {{\n{text}\n}})()) {{\n\
             try {{ await run(model, is); passed++; }} catch (error) {{ failed.push(`{name}: ${{title}}: ${{error}}`); }}\n}}"
        )
        .unwrap();
    }
    script.push_str("})().catch(error => failed.push(String(error))).then(() => done({passed, failed}));\n");
    script
}
