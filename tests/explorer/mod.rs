//! The explorer's model: its cases, run by Node where there is one. Chromium runs the same cases.

use std::fmt::Write;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

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

/// Runs the cases on the modules of a folder. Without Node it prints a message.
fn run_cases(model: &Path) {
    match node_version() {
        None => return eprintln!("the explorer's model is left out: there is no node"),
        Some(version) if !knows_modules(version) => {
            return eprintln!("the explorer's model is left out: node is {version:?}; install 20.19, 22.7 or newer");
        }
        Some(_) => {}
    }
    let mut node = Command::new("node");
    node.arg("--test").arg(folder().join("model.test.js")).env("EXPLORER_MODEL", model);
    let output = node.output().unwrap();
    let report = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{report}\n{}", String::from_utf8_lossy(&output.stderr));
    // A runner without cases succeeds too.
    let passed = report.lines().find_map(|line| line.trim_start_matches(['#', 'ℹ', ' ']).strip_prefix("pass "));
    let passed: usize = passed.and_then(|count| count.parse().ok()).unwrap_or(0);
    assert!(passed >= 40, "only {passed} cases passed\n{report}");
}

#[test]
fn the_model_passes_its_cases() {
    run_cases(&model());
}

#[test]
fn the_model_passes_its_cases_as_it_is_served() {
    let served = tempfile::tempdir().unwrap();
    for path in scripts(&model()) {
        let name = path.file_name().unwrap().to_str().unwrap();
        let asset = medfeed::explorer::find(&format!("/explorer/model/{name}"), false);
        fs::write(served.path().join(name), asset.expect(name).body).unwrap();
    }
    run_cases(served.path());
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
