//! Writers' notes of dead and foreign processes, and versions of files.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;

use super::Sample;
use crate::store::StoreError;
use crate::store::file::notes::WriterNote;
use crate::store::format::meta::{Version, known_fields};
use crate::store::format::tables::SCHEMA;

#[test]
fn the_note_of_a_dead_writer_is_replaced() {
    let sample = Sample::new();
    let (path, note) = (sample.path(), sample.at("medfeed.redb.writer"));
    let precious = sample.at("precious");
    fs::write(&precious, "keep this").unwrap();
    let leftovers: [(&str, &dyn Fn()); 3] = [
        ("nothing", &|| {}),
        ("the note of a killed process", &|| {
            fs::write(&note, "process 1 (since long ago)").unwrap()
        }),
        ("a link", &|| symlink(&precious, &note).unwrap()),
    ];
    for (what, leave) in leftovers {
        leave();
        let writer = sample.writer();
        let text = WriterNote::read(&path);
        assert!(
            text.starts_with(&format!("process {} (", std::process::id())),
            "{what}: {text}"
        );
        let found = fs::symlink_metadata(&note).unwrap();
        assert!(found.is_file(), "{what}");
        drop(writer);
        assert!(
            fs::symlink_metadata(&note).is_err(),
            "{what}: the note goes with its writer"
        );
        assert_eq!(WriterNote::read(&path), "another process", "{what}");
    }
    assert_eq!(fs::read_to_string(&precious).unwrap(), "keep this");
}

#[test]
fn a_foreign_note_is_shortened_and_escaped() {
    let folder = tempfile::tempdir().unwrap();
    let (path, note) = (
        folder.path().join("feed.redb"),
        folder.path().join("feed.redb.writer"),
    );
    let long = "x".repeat(1 << 20);
    let cases: [(&[u8], &str); 6] = [
        (b"", "another process"),
        (b" \n ", "another process"),
        (b" process 7 (since noon)\n", "process 7 (since noon)"),
        (b"\x1b[2Jgone", "\\u{1b}[2Jgone"),
        (b"\xff", "\u{fffd}"),
        (long.as_bytes(), &long[..200]),
    ];
    for (content, expected) in cases {
        fs::write(&note, content).unwrap();
        assert_eq!(WriterNote::read(&path), expected);
    }
    // Only plain files are read. Others do not block either.
    let others: [&dyn Fn(&Path); 3] = [
        &|note| symlink(folder.path().join("secret"), note).unwrap(),
        &|note| fs::create_dir(note).unwrap(),
        &|note| {
            rustix::fs::mknodat(
                rustix::fs::CWD,
                note,
                rustix::fs::FileType::Fifo,
                0o600.into(),
                0,
            )
            .unwrap();
        },
    ];
    fs::write(folder.path().join("secret"), "a secret").unwrap();
    for make in others {
        let _ = fs::remove_file(&note);
        let _ = fs::remove_dir(&note);
        make(&note);
        assert_eq!(WriterNote::read(&path), "another process");
    }
}

#[test]
fn a_file_is_refused_by_its_format_first_and_then_by_its_fields() {
    let all = known_fields();
    let older = all.replacen("conferences.venue\n", "", 1);
    let newer = format!("{all}conferences.mascot\n");
    let moved = format!("{older}conferences.venue\n");
    let name = |found: Result<(), StoreError>| match found {
        Ok(()) => "taken".to_owned(),
        Err(StoreError::OlderSchema { found, known, .. }) => {
            format!("older format {found} of {known}")
        }
        Err(StoreError::NewerSchema { found, known, .. }) => {
            format!("newer format {found} of {known}")
        }
        Err(StoreError::OlderFields { missing, .. }) => format!("lacks {missing:?}"),
        Err(StoreError::NewerFields { unknown, .. }) => format!("has {unknown:?}"),
        Err(other) => panic!("{other}"),
    };
    let cases = [
        (SCHEMA, all, "taken"),
        (SCHEMA, older.as_str(), r#"lacks ["conferences.venue"]"#),
        (SCHEMA, moved.as_str(), "lacks []"),
        (SCHEMA, newer.as_str(), r#"has ["conferences.mascot"]"#),
        (SCHEMA - 1, "", "older format 4 of 5"),
        (SCHEMA - 1, all, "older format 4 of 5"),
        // Fields of another format are not checked.
        (SCHEMA - 1, newer.as_str(), "older format 4 of 5"),
        (SCHEMA + 1, all, "newer format 6 of 5"),
        (SCHEMA + 1, older.as_str(), "newer format 6 of 5"),
        (SCHEMA + 1, newer.as_str(), "newer format 6 of 5"),
    ];
    for (schema, fields, expected) in cases {
        let version = Version {
            schema,
            fields: fields.as_bytes().to_vec(),
        };
        assert_eq!(
            name(version.check(Path::new("feed.redb"), false)),
            expected,
            "{schema} {fields:?}"
        );
        assert_eq!(version.is_current(), expected == "taken");
    }
}
