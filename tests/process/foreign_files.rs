//! Files that are not this program's: refused, with a reason, and untouched.

use std::fs;
use std::path::Path;

use medfeed::store::upgrade::SCHEMA;
use redb::{ConcurrencyMode, Database, TableDefinition};

use super::site::{Site, conferences_of_version};

/// The name of every site's database.
const FILE: &str = "feed.redb";

const META: TableDefinition<&str, &[u8]> = TableDefinition::new("meta");

/// Opens a file as a writer does.
pub fn open(path: &Path) -> Database {
    let mut builder = Database::builder();
    builder.set_concurrency_mode(ConcurrencyMode::SingleWriter);
    builder.create(path).unwrap()
}

/// Makes a database look like one of another format.
pub fn set_format(path: &Path, format: u32) {
    let database = open(path);
    let transaction = database.begin_write().unwrap();
    transaction.open_table(META).unwrap().insert("schema", format.to_le_bytes().as_slice()).unwrap();
    transaction.commit().unwrap();
}

/// The first words of the refusal of a newer format.
fn of_a_newer_format() -> String {
    let version = env!("CARGO_PKG_VERSION");
    format!("{FILE} has format {}, made by a newer medfeed; medfeed {version} reads format {SCHEMA}", SCHEMA + 1)
}

/// Every command on the file is refused with the texts, and changes neither the file nor its folder.
fn is_refused(site: &Site, what: &str, expected: &[&str]) {
    let rows = site.write("conferences.jsonl", conferences_of_version(2, 0));
    let before = fs::read(site.db()).unwrap();
    let listed = || -> Vec<_> { fs::read_dir(site.folder()).unwrap().map(|entry| entry.unwrap().path()).collect() };
    let files = listed();
    let commands = [
        &["serve", "--listen", "127.0.0.1:0"][..],
        &["import", rows.to_str().unwrap()],
        &["import", rows.to_str().unwrap(), "--dry-run"],
        &["license", "set", "x", "--dataset", "journals"],
        &["license", "list"],
        &["key", "list"],
        &["check"],
    ];
    for command in commands {
        let done = site.run(command);
        assert_eq!(done.code, Some(1), "{what}: {command:?}: {done:?}");
        let told = format!("{}{}", done.stdout, done.stderr);
        for expected in expected {
            assert!(told.contains(expected), "{what}: {command:?}: no {expected:?} in {told}");
        }
        assert!(fs::read(site.db()).unwrap() == before, "{what}: {command:?} changed the file");
        assert_eq!(listed(), files, "{what}: {command:?}");
    }
}

#[test]
fn a_newer_format_is_refused() {
    let site = Site::new();
    site.import("conferences.jsonl", conferences_of_version(2, 0));
    set_format(&site.db(), SCHEMA + 1);
    is_refused(&site, "newer format", &[&of_a_newer_format()]);
}

#[test]
fn a_newer_format_is_refused_after_a_killed_writer_too() {
    let site = Site::new();
    site.import("conferences.jsonl", conferences_of_version(2, 0));
    set_format(&site.db(), SCHEMA + 1);
    let expected = of_a_newer_format();
    // While a writer has it open, the file is as a killed writer leaves it.
    let writer = open(&site.db());
    let left = fs::read(site.db()).unwrap();
    drop(writer);
    for command in
        [&["license", "set", "x", "--dataset", "journals"][..], &["compact"], &["check"], &["license", "list"]]
    {
        fs::write(site.db(), &left).unwrap();
        let done = site.run(command);
        assert!(done.code == Some(1) && done.stderr.contains(&expected), "{command:?}: {done:?}");
    }
}

#[test]
fn older_formats_are_refused_with_what_to_do() {
    let version = env!("CARGO_PKG_VERSION");
    for format in 1..SCHEMA {
        let site = Site::new();
        site.import("conferences.jsonl", conferences_of_version(2, 0));
        set_format(&site.db(), format);
        let expected = format!(
            "{FILE} has format {format}, of a program before the first release; medfeed {version} reads format {SCHEMA}"
        );
        is_refused(&site, "older format", &[&expected, "`medfeed export FOLDER`", "import the files here"]);

        // As a backup it is no damaged one.
        let other = Site::new();
        other.import("conferences.jsonl", conferences_of_version(2, 0));
        let backup = site.db();
        let done = other.run(["restore".as_ref(), backup.as_os_str(), "--yes".as_ref()]);
        assert!(done.code == Some(1) && done.stderr.contains(&expected), "{done:?}");
        other.check();
        // Nor is it replaced by a backup.
        let source = other.backup("backup.redb");
        let before = fs::read(site.db()).unwrap();
        let done = site.run(["restore".as_ref(), source.as_os_str(), "--yes".as_ref()]);
        assert!(done.code == Some(1) && done.stderr.contains(&expected), "{done:?}");
        assert!(fs::read(site.db()).unwrap() == before, "the file changed");
    }
}

#[test]
fn other_files_are_refused() {
    let cases: [(&str, &[u8]); 5] = [
        ("empty", b""),
        ("text", b"id,name\n1,A\n"),
        ("zeros", &[0; 65_536]),
        ("the first bytes of a database", b"redb\x1A\x0A\xA9\x0D\x0A"),
        ("SQLite", b"SQLite format 3\0................................................................"),
    ];
    for (what, content) in cases {
        let site = Site::new();
        fs::write(site.db(), content).unwrap();
        is_refused(&site, what, &[FILE, "is not a medfeed database"]);
    }
}

#[test]
fn a_database_of_another_program_is_refused() {
    let site = Site::new();
    let database = open(&site.db());
    let transaction = database.begin_write().unwrap();
    transaction.open_table(TableDefinition::<u64, u64>::new("other")).unwrap().insert(1, 2).unwrap();
    transaction.commit().unwrap();
    drop(database);
    is_refused(&site, "another program", &[FILE, "is a redb file of another program"]);
}

/// A database of which a part is missing.
fn cut_short(part: usize) -> Site {
    let site = Site::new();
    site.import("conferences.jsonl", conferences_of_version(500, 0));
    let whole = fs::read(site.db()).unwrap();
    fs::write(site.db(), &whole[..whole.len() / part]).unwrap();
    site
}

#[test]
fn a_database_cut_short_is_refused() {
    for part in [2, 3, 10, 100] {
        is_refused(&cut_short(part), &format!("a {part}th"), &[FILE]);
    }
}

#[test]
fn a_database_cut_short_is_told() {
    is_refused(&cut_short(2), "half", &[FILE, "cut short"]);
}
