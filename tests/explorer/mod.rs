//! The explorer's model: its cases, run by Node where there is one. Chromium runs the same cases.

use std::path::Path;
use std::process::Command;

/// The folder of the cases and of their runner, relative to the repository.
const FOLDER: &str = "tests/explorer";
/// The oldest Node that can run them: its test runner is stable.
const MIN_NODE: u32 = 20;

/// The major version of Node; `None` without Node.
fn node_version() -> Option<u32> {
    let output = Command::new("node").arg("--version").output().ok()?;
    let text = String::from_utf8(output.stdout).ok()?;
    text.strip_prefix('v')?.split('.').next()?.parse().ok()
}

#[test]
fn the_model_holds_its_cases() {
    match node_version() {
        None => return eprintln!("the explorer's model is not tested: there is no node"),
        Some(version) if version < MIN_NODE => {
            return eprintln!("the explorer's model is not tested: node is {version}, needs {MIN_NODE}");
        }
        Some(_) => {}
    }
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut node = Command::new("node");
    let output = node.arg("--test").arg(root.join(FOLDER).join("model.test.js")).current_dir(root).output().unwrap();
    let told = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{told}\n{}", String::from_utf8_lossy(&output.stderr));
    // A runner that finds no cases would succeed too.
    let passed = told.lines().find_map(|line| line.trim_start_matches(['#', 'ℹ', ' ']).strip_prefix("pass "));
    let passed: usize = passed.and_then(|count| count.parse().ok()).unwrap_or(0);
    assert!(passed >= 40, "only {passed} cases passed\n{told}");
}
