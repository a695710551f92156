//! Bugs that the tests must notice. `mutations.txt` lists them, each with the test that notices it. Each is put into a copy of
//! the code, and its test must fail:
//!
//!     cargo test --test medfeed -- --ignored --nocapture every_mutation_is_noticed
//!
//! `MEDFEED_MUTATIONS` picks those whose title or file contains one of its texts, separated by `|`.
//!
//! All bugs that stand within a function are built once: the function holds its body with each of them, and an environment
//! variable says which one runs. So such a bug takes the time of the test that its entry names (`by`). Any other bug needs a
//! build of its own, half a minute.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::{BufRead, BufReader};
use std::ops::Range;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Mutex;
use std::thread;

/// The unit tests and the integration tests, as arguments of `cargo test`.
const TARGETS: [&[&str]; 2] = [&["--lib"], &["--test", "medfeed"]];

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
    fn target(&self) -> &'static [&'static str] {
        TARGETS[usize::from(!self.by.starts_with("lib "))]
    }

    fn filters(&self) -> impl Iterator<Item = &str> {
        self.by.trim_start_matches("lib ").split_whitespace()
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
    for Mutation { title, file, by, from, to } in &listed {
        let text = fs::read_to_string(root().join(file)).unwrap_or_else(|error| panic!("{title}: {file}: {error}"));
        assert_eq!(text.matches(from).count(), 1, "{title}: {file} should hold this once:\n{from}");
        assert_ne!(from, to, "{title}");
        assert!(!by.is_empty(), "{title}: no test that notices it");
        assert_eq!(listed.iter().filter(|other| other.title == *title).count(), 1, "{title}: a title of two");
    }
}

#[test]
#[ignore = "takes an hour: it runs tests with each bug"]
fn every_mutation_is_noticed() {
    let picked = std::env::var("MEDFEED_MUTATIONS").unwrap_or_default();
    let listed = mutations();
    let is_picked = |one: &Mutation| picked.split('|').any(|text| one.title.contains(text) || one.file.contains(text));
    let (switched, others) =
        (1..).zip(&listed).filter(|(_, one)| is_picked(one)).partition(|(_, one)| body(one).is_some());
    let unnoticed = try_switched(&listed, switched);
    let missed = try_alone(others.into_iter().map(|(_, one)| one).chain(unnoticed));
    assert!(missed.is_empty(), "not noticed: {missed:#?}");
}

/// Builds the code with every bug that can be switched, and runs the named test with each of those given. Returns the bugs
/// that it did not notice, or that it only seemed to notice.
fn try_switched<'a>(listed: &'a [Mutation], picked: Vec<(usize, &'a Mutation)>) -> Vec<&'a Mutation> {
    let copy = tempfile::tempdir().unwrap();
    copy_tree(root(), copy.path());
    let files: BTreeSet<&str> = listed.iter().map(|one| one.file.as_str()).collect();
    for file in files {
        let bugs: Vec<(usize, &Mutation)> = (1..).zip(listed).filter(|(_, one)| one.file == file).collect();
        let path = copy.path().join(file);
        let sound = fs::read_to_string(&path).unwrap();
        fs::write(&path, with_switches(&sound, &bugs)).unwrap();
    }
    let root_module = copy.path().join("src/lib.rs");
    let sound = fs::read_to_string(&root_module).unwrap();
    fs::write(&root_module, sound + SWITCH).unwrap();
    for target in TARGETS {
        build(copy.path(), target).unwrap_or_else(|error| panic!("{error}"));
    }

    // A test mostly waits, or works on one core, so several bugs are tried at a time.
    let workers = 2 * thread::available_parallelism().unwrap().get();
    let (next, outcomes) = (Mutex::new(picked.into_iter()), Mutex::new(Vec::new()));
    thread::scope(|scope| {
        for _ in 0..workers {
            scope.spawn(|| {
                loop {
                    let Some((number, mutation)) = next.lock().unwrap().next() else { break };
                    let by = failure(copy.path(), mutation.target(), mutation.filters(), number);
                    outcomes.lock().unwrap().push((mutation, is_noticed(mutation, &Ok(by))));
                }
            });
        }
    });
    let (noticed, mut unnoticed): (Vec<_>, Vec<_>) =
        outcomes.into_inner().unwrap().into_iter().partition(|(_, is_noticed)| *is_noticed);
    // A test that fails without a bug too, such as one that reads the sources, notices nothing here.
    for target in TARGETS {
        let mut noticed = noticed.iter().filter(|(one, _)| one.target() == target).copied().collect::<Vec<_>>();
        while !noticed.is_empty() {
            let filters: BTreeSet<&str> = noticed.iter().flat_map(|(one, _)| one.filters()).collect();
            let Some(failed) = failure(copy.path(), target, filters, 0) else { break };
            println!("{failed}: fails without a bug");
            let before = unnoticed.len();
            unnoticed.extend(noticed.extract_if(.., |(one, _)| one.filters().any(|filter| failed.contains(filter))));
            assert!(unnoticed.len() > before, "{failed}: no test that a bug names");
        }
    }
    unnoticed.into_iter().map(|(one, _)| one).collect()
}

/// Builds the code with one bug after another, and runs the named tests. Returns the titles of the bugs that they do not notice.
fn try_alone<'a>(bugs: impl Iterator<Item = &'a Mutation>) -> Vec<&'a str> {
    let copy = tempfile::tempdir().unwrap();
    copy_tree(root(), copy.path());
    let mut missed = Vec::new();
    for mutation in bugs {
        let path = copy.path().join(&mutation.file);
        let sound = fs::read_to_string(&path).unwrap();
        fs::write(&path, sound.replacen(&mutation.from, &mutation.to, 1)).unwrap();
        let by = build(copy.path(), mutation.target())
            .map(|()| failure(copy.path(), mutation.target(), mutation.filters(), 0));
        if !is_noticed(mutation, &by) {
            missed.push(mutation.title.as_str());
        }
        fs::write(&path, sound).unwrap();
    }
    missed
}

/// Prints which test fails with a bug, or why the code with it does not build. Returns whether a test fails.
fn is_noticed(mutation: &Mutation, by: &Result<Option<String>, String>) -> bool {
    let verdict = match by {
        Ok(Some(test)) => format!("noticed by {test}"),
        Ok(None) => "NOT NOTICED".to_owned(),
        Err(error) => format!("NO BUG: {error}"),
    };
    println!("{}: {verdict}", mutation.title);
    matches!(by, Ok(Some(_)))
}

/// This goes to the end of the root module. The name of the variable does not begin with `MEDFEED_`, because tests take such
/// variables from the programs that they start.
const SWITCH: &str = r#"
/// The number of the bug that is switched on, from 1.
pub(crate) fn mutation() -> Option<usize> {
    static NUMBER: std::sync::OnceLock<Option<usize>> = std::sync::OnceLock::new();
    *NUMBER.get_or_init(|| std::env::var("SWITCHED_MUTATION").ok()?.parse().ok())
}
"#;

/// A file in which each function holds its body once more for each of its bugs.
fn with_switches(text: &str, bugs: &[(usize, &Mutation)]) -> String {
    let mut bodies: BTreeMap<usize, (Range<usize>, String)> = BTreeMap::new();
    for (number, one) in bugs {
        let Some(body) = body_around(text, &one.from) else { continue };
        let (_, arms) = bodies.entry(body.start).or_insert_with(|| (body.clone(), String::new()));
        *arms += &format!("Some({number}) => {{\n{}}}\n", text[body].replacen(&one.from, &one.to, 1));
    }
    let mut switched = text.to_owned();
    for (body, arms) in bodies.into_values().rev() {
        let replacement = format!("match crate::mutation() {{\n{arms}_ => {{\n{}}}\n}}\n", &text[body.clone()]);
        switched.replace_range(body, &replacement);
    }
    switched
}

fn body(mutation: &Mutation) -> Option<Range<usize>> {
    let text = fs::read_to_string(root().join(&mutation.file)).unwrap();
    body_around(&text, &mutation.from)
}

/// The lines of the outermost function's body that holds some lines, as bytes of a file that rustfmt has formatted. None if
/// the lines stand elsewhere, or where a body cannot stand twice: in a constant function, or in one of an unnamed type.
fn body_around(text: &str, lines: &str) -> Option<Range<usize>> {
    let from = text.find(lines)?;
    let mut offset = 0;
    for line in text.split_inclusive('\n') {
        let start = offset;
        offset += line.len();
        let item = line.trim_start();
        let indent = &line[..line.len() - item.len()];
        let item = item.strip_prefix("pub").map_or(item, |item| item.split_once(' ').map_or(item, |(_, item)| item));
        if !item.trim_start_matches("async ").starts_with("fn ") {
            continue;
        }
        let opened = text[start..].find("{\n").map(|at| start + at + 2)?;
        let signature = &text[start..opened];
        if signature.contains(";\n") || signature.contains("{}\n") {
            continue;
        }
        let closed = text[opened..].find(&format!("\n{indent}}}\n")).map(|at| opened + at + 1)?;
        if (opened..closed).contains(&from) {
            let is_unnamed = signature.rsplit_once("->").is_some_and(|(_, returned)| returned.contains("impl "));
            return (from + lines.len() <= closed && !is_unnamed).then_some(opened..closed);
        }
    }
    None
}

#[test]
fn a_function_holds_its_body_once_more_for_each_of_its_bugs() {
    let switched = |text: &str| {
        let bug = Mutation { from: "    old\n".to_owned(), to: "    new\n".to_owned(), ..Mutation::default() };
        with_switches(text, &[(7, &bug)])
    };
    let with_bug = "match crate::mutation() {\nSome(7) => {\n    new\n}\n_ => {\n    old\n}\n}\n";
    for signature in
        ["fn f() {\n", "pub(super) async fn f(\n    a: u8,\n) -> u8\nwhere\n    u8: Copy,\n{\n", "pub fn f() {\n"]
    {
        for before in ["", "fn empty() {}\n", "fn declared();\n", "fn earlier() {\n    1\n}\n"] {
            let expected = format!("{before}{signature}{with_bug}}}\n");
            assert_eq!(switched(&format!("{before}{signature}    old\n}}\n")), expected);
        }
    }
    for elsewhere in
        ["const fn f() {\n    old\n}\n", "fn f() -> impl Iterator {\n    old\n}\n", "struct S {\n    old\n}\n"]
    {
        assert_eq!(switched(elsewhere), elsewhere);
    }
}

/// Builds a copy's tests. Returns the compiler's messages if the code does not build: that is no bug of this list.
fn build(copy: &Path, target: &[&str]) -> Result<(), String> {
    let built = cargo_test(copy, &[target, &["--no-run"]].concat()).output().unwrap();
    let messages = || format!("{} does not build: {}", copy.display(), String::from_utf8_lossy(&built.stderr));
    built.status.success().then_some(()).ok_or_else(messages)
}

/// Which of some tests fails, if one does, with the bug of a number switched on.
fn failure<'a>(
    copy: &Path,
    target: &[&str],
    filters: impl IntoIterator<Item = &'a str>,
    number: usize,
) -> Option<String> {
    let mut tested = cargo_test(copy, target);
    tested.arg("--").args(filters);
    tested.env("SWITCHED_MUTATION", number.to_string()).stdout(Stdio::piped()).stderr(Stdio::null()).process_group(0);
    let mut tested = tested.spawn().unwrap();
    let mut output = BufReader::new(tested.stdout.take().unwrap()).lines().map_while(Result::ok);
    let failed = output.find_map(|line| Some(line.strip_prefix("test ")?.strip_suffix(" ... FAILED")?.to_owned()));
    if failed.is_some() {
        // The first one is enough. Programs that the tests started end too.
        Command::new("kill").args(["-9", "--", &format!("-{}", tested.id())]).status().unwrap();
    }
    let is_passed = tested.wait().unwrap().success();
    failed.or_else(|| (!is_passed).then(|| "no end, or an abort".to_owned()))
}

fn cargo_test(copy: &Path, args: &[&str]) -> Command {
    // A bug may make a test wait without end.
    const MOST: &str = "900";
    let mut command = Command::new("timeout");
    command.args(["--kill-after", "10", MOST, env!("CARGO"), "test"]).args(args).current_dir(copy);
    command.env("CARGO_TARGET_DIR", target());
    command
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
