//! Bugs that the tests must notice. `mutations.txt` lists them; each is put into a copy of the code, and tests are run until
//! one fails:
//!
//!     cargo test --test medfeed -- --ignored --nocapture every_mutation_is_noticed
//!
//! `MEDFEED_MUTATIONS` picks those whose title or file contains a text. A bug whose entry names the test that notices it (`by`)
//! takes half a minute, any other up to ten.

use std::fs;
use std::io::{BufRead, BufReader};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// The tests that run first for a bug of a folder.
const FIRST: [(&str, &str); 9] = [
    ("src/replicate", "process::replica process::publish process::promotion process::bucket process::sealed"),
    ("src/store/replication", "process::replica properties::replicas process::promotion"),
    ("src/bucket", "process::bucket process::sealed process::s3"),
    ("src/pull", "process::pull"),
    ("src/import", "process::workbook process::spreadsheets process::shown process::curating process::foreign"),
    ("src/explorer", "explorer browser"),
    ("src/cli", "process::commands process::usage process::terminals process::wrong"),
    ("src/store/upgrade", "process::upgrad process::added"),
    ("src", "routes properties"),
];

/// The tests that run after them, in this order.
const LATER: [&[&str]; 5] = [
    &["--lib", "--"],
    &["--test", "medfeed", "--", "routes", "properties"],
    &["--test", "medfeed", "--", "process::caches", "process::damage", "process::restores", "process::beliefs"],
    &["--test", "medfeed", "--", "process", "--skip", "process::s3"],
    &[
        "--test",
        "medfeed",
        "--",
        "--skip",
        "routes",
        "--skip",
        "properties",
        "--skip",
        "process",
        "--skip",
        "mutations",
    ],
];

/// A bug: lines of a file that are replaced by others.
#[derive(Default)]
struct Mutation {
    title: String,
    file: String,
    /// The test that notices it: a filter of the integration tests, or one of the unit tests behind `lib `.
    by: String,
    from: String,
    to: String,
}

impl Mutation {
    /// The arguments of `cargo test`, one run after another.
    fn runs(&self) -> Vec<Vec<&str>> {
        let by = match self.by.strip_prefix("lib ") {
            Some(filter) => vec!["--lib", "--", filter],
            None => ["--test", "medfeed", "--"].into_iter().chain(self.by.split_whitespace()).collect(),
        };
        let (_, filters) = FIRST.iter().find(|(folder, _)| self.file.starts_with(folder)).expect("a file of src");
        let first = ["--test", "medfeed", "--"].into_iter().chain(filters.split_whitespace()).collect();
        let named = (!self.by.is_empty()).then_some(by);
        named.into_iter().chain([first]).chain(LATER.map(<[&str]>::to_vec)).collect()
    }
}

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// Reads the list: a title behind `# `, the file behind `in `, the test behind `by `, lines to replace behind `-`, their
/// replacement behind `+`.
fn mutations() -> Vec<Mutation> {
    let mut found: Vec<Mutation> = Vec::new();
    for line in include_str!("mutations.txt").lines() {
        if let Some(title) = line.strip_prefix("# ") {
            found.push(Mutation { title: title.to_owned(), ..Mutation::default() });
            continue;
        }
        let Some(last) = found.last_mut() else { continue };
        if let Some(file) = line.strip_prefix("in ") {
            file.clone_into(&mut last.file);
        } else if let Some(by) = line.strip_prefix("by ") {
            by.clone_into(&mut last.by);
        } else if let Some(text) = line.strip_prefix('-') {
            last.from += &format!("{text}\n");
        } else if let Some(text) = line.strip_prefix('+') {
            last.to += &format!("{text}\n");
        }
    }
    found
}

#[test]
fn every_mutation_fits_the_code() {
    let listed = mutations();
    assert!(listed.len() >= 120, "{} mutations", listed.len());
    for Mutation { title, file, from, to, .. } in &listed {
        let text = fs::read_to_string(root().join(file)).unwrap_or_else(|error| panic!("{title}: {file}: {error}"));
        assert_eq!(text.matches(from).count(), 1, "{title}: {file} should hold this once:\n{from}");
        assert_ne!(from, to, "{title}");
        assert_eq!(listed.iter().filter(|other| other.title == *title).count(), 1, "{title}: a title of two");
    }
}

#[test]
#[ignore = "takes hours: it builds and tests the code once for each bug"]
fn every_mutation_is_noticed() {
    let picked = std::env::var("MEDFEED_MUTATIONS").unwrap_or_default();
    let copy = tempfile::tempdir().unwrap();
    copy_tree(root(), copy.path());
    let mut missed = Vec::new();
    for mutation in mutations().into_iter().filter(|one| one.title.contains(&picked) || one.file.contains(&picked)) {
        let Mutation { title, file, from, to, .. } = &mutation;
        let path = copy.path().join(file);
        let sound = fs::read_to_string(&path).unwrap();
        fs::write(&path, sound.replacen(from, to, 1)).unwrap();
        let by = mutation.runs().iter().find_map(|run| failure(copy.path(), run));
        println!("{title}: {}", by.as_deref().map_or("NOT NOTICED".to_owned(), |by| format!("noticed by {by}")));
        if by.is_none() {
            missed.push(title.clone());
        }
        fs::write(&path, sound).unwrap();
    }
    assert!(missed.is_empty(), "not noticed: {missed:#?}");
}

/// Which test of a run fails, if one does. Code that does not build is no bug of this list.
fn failure(copy: &Path, run: &[&str]) -> Option<String> {
    // A bug may make a test wait without end.
    const MOST: &str = "900";
    let cargo = |args: &[&str]| -> Command {
        let mut command = Command::new("timeout");
        command.args(["--kill-after", "10", MOST, env!("CARGO"), "test"]).args(args).current_dir(copy);
        command.env("CARGO_TARGET_DIR", target());
        command
    };
    let target = run.split(|arg| *arg == "--").next().unwrap();
    let built = cargo(&[target, &["--no-run"]].concat()).output().unwrap();
    let error = || String::from_utf8_lossy(&built.stderr).into_owned();
    assert!(built.status.success(), "the code does not build in {}: {}", copy.display(), error());
    let mut tested = cargo(run).stdout(Stdio::piped()).stderr(Stdio::null()).process_group(0).spawn().unwrap();
    let mut output = BufReader::new(tested.stdout.take().unwrap()).lines().map_while(Result::ok);
    let failed = output.find_map(|line| Some(line.strip_prefix("test ")?.strip_suffix(" ... FAILED")?.to_owned()));
    if failed.is_some() {
        // The first one is enough. Programs that the tests started end too.
        Command::new("kill").args(["-9", "--", &format!("-{}", tested.id())]).status().unwrap();
    }
    let is_passed = tested.wait().unwrap().success();
    let place = if run[0] == "--lib" { "lib " } else { "" };
    match failed {
        Some(test) => Some(format!("{place}{test}")),
        None => (!is_passed).then(|| format!("{}: no end, or an abort", run.join(" "))),
    }
}

/// A folder for the builds, kept between runs.
fn target() -> PathBuf {
    root().join("target/mutations")
}

fn copy_tree(from: &Path, to: &Path) {
    for entry in fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let (path, name) = (entry.path(), entry.file_name());
        if name == "target" || name == ".git" {
            continue;
        }
        if path.is_dir() {
            fs::create_dir_all(to.join(&name)).unwrap();
            copy_tree(&path, &to.join(&name));
        } else {
            fs::copy(&path, to.join(&name)).unwrap();
        }
    }
}
