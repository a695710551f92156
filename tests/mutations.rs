//! Bugs that the tests must notice. `mutations.txt` lists them; each is put into a copy of the code, and the tests are run
//! until one fails:
//!
//!     cargo test --test medfeed -- --ignored --nocapture every_mutation_is_noticed
//!
//! `MEDFEED_MUTATIONS` picks those whose title contains a text. A run takes one to three minutes a bug.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// What is run, in this order: what fails most often and soonest comes first.
const STAGES: [&[&str]; 5] = [
    &["--test", "medfeed", "--", "routes"],
    &["--test", "medfeed", "--", "process::beliefs", "process::bucket_", "process::promotion"],
    &["--test", "medfeed", "--", "process::caches", "process::damage", "process::restores"],
    &["--test", "medfeed", "--", "properties"],
    &["--", "--skip", "routes", "--skip", "properties", "--skip", "mutations"],
];

/// A bug: lines of a file that are replaced by others.
struct Mutation {
    title: String,
    file: String,
    from: String,
    to: String,
}

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// Reads the list: a title behind `# `, the file behind `in `, lines to replace behind `-`, their replacement behind `+`.
fn mutations() -> Vec<Mutation> {
    let mut found: Vec<Mutation> = Vec::new();
    for line in include_str!("mutations.txt").lines() {
        if let Some(title) = line.strip_prefix("# ") {
            let (file, from, to) = Default::default();
            found.push(Mutation { title: title.to_owned(), file, from, to });
            continue;
        }
        let Some(last) = found.last_mut() else { continue };
        if let Some(file) = line.strip_prefix("in ") {
            file.clone_into(&mut last.file);
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
    assert!(listed.len() >= 27, "{} mutations", listed.len());
    for Mutation { title, file, from, to } in listed {
        let text = fs::read_to_string(root().join(&file)).unwrap_or_else(|error| panic!("{title}: {file}: {error}"));
        assert_eq!(text.matches(&from).count(), 1, "{title}: {file} should hold this once:\n{from}");
        assert_ne!(from, to, "{title}");
    }
}

#[test]
#[ignore = "takes an hour: it builds and tests the code once for each bug"]
fn every_mutation_is_noticed() {
    let picked = std::env::var("MEDFEED_MUTATIONS").unwrap_or_default();
    let copy = tempfile::tempdir().unwrap();
    copy_tree(root(), copy.path());
    let mut missed = Vec::new();
    for Mutation { title, file, from, to } in mutations().into_iter().filter(|one| one.title.contains(&picked)) {
        let path = copy.path().join(&file);
        let sound = fs::read_to_string(&path).unwrap();
        fs::write(&path, sound.replacen(&from, &to, 1)).unwrap();
        let by = STAGES.iter().find(|stage| !passes(copy.path(), stage));
        println!("{title}: {}", by.map_or("NOT NOTICED".to_owned(), |stage| format!("noticed by {}", stage.join(" "))));
        if by.is_none() {
            missed.push(title);
        }
        fs::write(&path, sound).unwrap();
    }
    assert!(missed.is_empty(), "not noticed: {missed:#?}");
}

/// Whether the code builds and a stage of its tests passes. Code that does not build is no bug of this list.
fn passes(copy: &Path, stage: &[&str]) -> bool {
    let cargo = |args: &[&str]| {
        let mut command = Command::new(env!("CARGO"));
        command.arg("test").args(args).current_dir(copy).env("CARGO_TARGET_DIR", target());
        command.env("RUSTFLAGS", "-A warnings").stdout(Stdio::null()).stderr(Stdio::null()).status().unwrap().success()
    };
    assert!(cargo(&["--no-run"]), "the code does not build in {}", copy.display());
    cargo(stage)
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
