//! Files that are not this program's: refused, with a reason, and unchanged.

use std::fs;
use std::path::Path;

use medfeed::store::restore::SCHEMA;
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

/// Sets the format number of a database.
pub fn set_format(path: &Path, format: u32) {
    let database = open(path);
    let transaction = database.begin_write().unwrap();
    transaction
        .open_table(META)
        .unwrap()
        .insert("schema", format.to_le_bytes().as_slice())
        .unwrap();
    transaction.commit().unwrap();
}

/// Checks that every command on the file is refused with the texts, and changes neither the file nor its folder.
fn is_refused(site: &Site, what: &str, expected: &[&str]) {
    let commands = words![
        "serve --listen 127.0.0.1:0" "import conferences.jsonl" "import conferences.jsonl --dry-run"
        "license set x --dataset journals" "license list" "key list" "check" "upgrade"
        "upgrade --dry-run" "upgrade --if-needed"
    ];
    are_refused(&commands, site, what, expected);
}

/// Checks that these commands on the file are refused with the texts, and change neither the file nor its folder.
pub fn are_refused(commands: &[&str], site: &Site, what: &str, expected: &[&str]) {
    site.write("conferences.jsonl", conferences_of_version(2, 0));
    let before = fs::read(site.db()).unwrap();
    let files = site.files();
    for command in commands {
        let done = site.ends(command.split_whitespace());
        assert_eq!(done.code, Some(1), "{what}: {command:?}: {done:?}");
        let told = format!("{}{}", done.stdout, done.stderr);
        for expected in expected {
            assert!(
                told.contains(expected),
                "{what}: {command:?}: no {expected:?} in {told}"
            );
        }
        assert!(
            fs::read(site.db()).unwrap() == before,
            "{what}: {command:?} changed the file"
        );
        assert_eq!(site.files(), files, "{what}: {command:?}");
    }
}

#[test]
fn a_newer_format_is_refused() {
    let site = Site::with(2);
    set_format(&site.db(), SCHEMA + 1);
    let version = env!("CARGO_PKG_VERSION");
    let expected = format!(
        "{FILE} has format {}, made by a newer medfeed; medfeed {version} reads format {SCHEMA}",
        SCHEMA + 1
    );
    is_refused(&site, "newer format", &[&expected]);
    // While a writer has the file open, its bytes are those that a killed writer leaves.
    let writer = open(&site.db());
    let left = fs::read(site.db()).unwrap();
    drop(writer);
    for command in words!["license set x --dataset journals" "compact" "check" "license list"] {
        fs::write(site.db(), &left).unwrap();
        let done = site.run(command.split_whitespace());
        done.assert_told(1, &expected);
    }
}

#[test]
fn older_formats_are_refused_with_a_remedy() {
    let version = env!("CARGO_PKG_VERSION");
    for format in 1..SCHEMA {
        let site = Site::with(2);
        set_format(&site.db(), format);
        let expected = format!(
            "{FILE} has format {format}, of a program before the first release; medfeed {version} reads format {SCHEMA}"
        );
        is_refused(
            &site,
            "older format",
            &[
                &expected,
                "`medfeed export FOLDER`",
                "import the files here",
            ],
        );

        // As a backup it does not count as damaged.
        let other = Site::with(2);
        let backup = site.db();
        let done = other.run(["restore".as_ref(), backup.as_os_str(), "--yes".as_ref()]);
        done.assert_told(1, &expected);
        other.check();
        // It is not replaced by a backup either.
        let source = other.backup("backup.redb");
        let before = fs::read(site.db()).unwrap();
        let done = site.run(["restore".as_ref(), source.as_os_str(), "--yes".as_ref()]);
        done.assert_told(1, &expected);
        assert!(fs::read(site.db()).unwrap() == before, "the file changed");
    }
}

/// The bytes of another program's database.
pub fn of_another_program() -> Vec<u8> {
    let site = Site::new();
    let database = open(&site.db());
    let transaction = database.begin_write().unwrap();
    transaction
        .open_table(TableDefinition::<u64, u64>::new("other"))
        .unwrap()
        .insert(1, 2)
        .unwrap();
    transaction.commit().unwrap();
    drop(database);
    fs::read(site.db()).unwrap()
}

#[test]
fn other_files_are_refused() {
    let made = Site::with(500);
    let (other, whole) = (of_another_program(), fs::read(made.db()).unwrap());
    let foreign = "is not a medfeed database";
    let cases: [(&str, &[u8], &str); 9] = cases![
        "empty", b"", foreign;
        "text", b"id,name\n1,A\n", foreign;
        "zeros", &[0; 65_536], foreign;
        "the first bytes of a database", b"redb\x1A\x0A\xA9\x0D\x0A", foreign;
        "SQLite", b"SQLite format 3\0................................................................", foreign;
        "another program's", &other, "is a redb file of another program";
        "a half", &whole[..whole.len() / 2], "cut short";
        "a third", &whole[..whole.len() / 3], FILE;
        "a 100th", &whole[..whole.len() / 100], FILE;
    ];
    for (what, content, expected) in cases {
        let site = Site::new();
        fs::write(site.db(), content).unwrap();
        is_refused(&site, what, &[FILE, expected]);
    }
}
