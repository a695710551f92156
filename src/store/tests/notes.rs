//! Writers' notes of dead and foreign processes, and versions of files.

use std::fs::{self, File};
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;

use super::Sample;
use crate::store::StoreError;
use crate::store::file::writer_note::WriterNote;
use crate::store::format::tables::SCHEMA;
use crate::store::format::version::{Version, known_fields};

#[test]
fn the_note_of_a_dead_writer_makes_way() {
    let sample = Sample::new();
    let (path, note) = (sample.path(), sample.at("medfeed.redb.writer"));
    let precious = sample.at("precious");
    fs::write(&precious, "keep this").unwrap();
    let leftovers: [(&str, &dyn Fn()); 3] = [
        ("nothing", &|| {}),
        ("the note of a killed process", &|| fs::write(&note, "process 1 (since long ago)").unwrap()),
        ("a link", &|| symlink(&precious, &note).unwrap()),
    ];
    for (what, leave) in leftovers {
        leave();
        let writer = sample.writer();
        let text = WriterNote::read(&path);
        assert!(text.starts_with(&format!("process {} (", std::process::id())), "{what}: {text}");
        let found = fs::symlink_metadata(&note).unwrap();
        assert!(found.is_file() && found.permissions().mode() & 0o777 == 0o600, "{what}");
        drop(writer);
        assert!(fs::symlink_metadata(&note).is_err(), "{what}: the note goes with its writer");
        assert_eq!(WriterNote::read(&path), "another process", "{what}");
    }
    assert_eq!(fs::read_to_string(&precious).unwrap(), "keep this");
}

/// Users who may only read a database must not delay its writers.
#[test]
fn a_note_is_locked_by_those_who_may_write_to_the_database() {
    let sample = Sample::new();
    let cases = [(0o600, 0o600), (0o640, 0o600), (0o644, 0o600), (0o660, 0o640), (0o664, 0o640), (0o666, 0o644)];
    for (mode, expected) in cases {
        fs::set_permissions(sample.path(), fs::Permissions::from_mode(mode)).unwrap();
        let writer = sample.writer();
        let found = fs::metadata(sample.at("medfeed.redb.writer")).unwrap().permissions().mode() & 0o777;
        assert_eq!(found, expected, "{mode:o}: {found:o}");
        drop(writer);
    }
}

#[test]
fn a_foreign_note_is_read_with_care() {
    let folder = tempfile::tempdir().unwrap();
    let (path, note) = (folder.path().join("feed.redb"), folder.path().join("feed.redb.writer"));
    let long = "x".repeat(300);
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
            rustix::fs::mknodat(rustix::fs::CWD, note, rustix::fs::FileType::Fifo, 0o600.into(), 0).unwrap();
        },
    ];
    fs::write(folder.path().join("secret"), "a secret").unwrap();
    for make in others {
        let _ = fs::remove_file(&note);
        let _ = fs::remove_dir(&note);
        make(&note);
        assert_eq!(WriterNote::read(&path), "another process");
        assert!(WriterNote::request_yield(&path).is_none());
    }
}

#[test]
fn a_writer_hears_of_who_waits_as_long_as_they_wait() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("feed.redb");
    assert!(WriterNote::request_yield(&path).is_none(), "there is nobody to ask");
    let note = WriterNote::create(&path);
    // Asking leaves no lock behind, so the next one can ask too.
    for _ in 0..2 {
        assert!(!note.is_yield_requested() && !note.is_yield_requested());
        let (one, other) = (WriterNote::request_yield(&path), WriterNote::request_yield(&path));
        assert!(one.is_some() && other.is_some(), "several may wait");
        assert!(note.is_yield_requested());
        drop(one);
        assert!(note.is_yield_requested(), "one still waits");
        drop(other);
    }
    assert!(!note.is_yield_requested());
    // Without a note, a writer asks nobody.
    drop(note);
    fs::create_dir(folder.path().join("feed.redb.writer")).unwrap();
    let none = WriterNote::create(&path);
    assert!(!none.is_yield_requested());
    drop(none);
    assert!(folder.path().join("feed.redb.writer").is_dir());
    drop(File::open(folder.path()).unwrap());
}

#[test]
fn a_file_is_refused_by_its_format_first_and_then_by_its_fields() {
    let all = known_fields();
    let older = all.replacen("conferences.venue\n", "", 1);
    let newer = format!("{all}conferences.mascot\n");
    let moved = format!("{older}conferences.venue\n");
    let name = |found: Result<(), StoreError>| match found {
        Ok(()) => "taken".to_owned(),
        Err(StoreError::OlderSchema { found, known, .. }) => format!("older format {found} of {known}"),
        Err(StoreError::NewerSchema { found, known, .. }) => format!("newer format {found} of {known}"),
        Err(StoreError::OlderFields { missing, .. }) => format!("lacks {missing:?}"),
        Err(StoreError::NewerFields { unknown, .. }) => format!("has {unknown:?}"),
        Err(other) => panic!("{other}"),
    };
    let cases = [
        (SCHEMA, Some(all), "taken"),
        (SCHEMA, Some(older.as_str()), r#"lacks ["conferences.venue"]"#),
        (SCHEMA, Some(moved.as_str()), "lacks []"),
        (SCHEMA, Some(newer.as_str()), r#"has ["conferences.mascot"]"#),
        (SCHEMA - 1, None, "older format 3 of 4"),
        (SCHEMA - 1, Some(all), "older format 3 of 4"),
        // Fields of another format are of no interest.
        (SCHEMA - 1, Some(newer.as_str()), "older format 3 of 4"),
        (SCHEMA + 1, Some(all), "newer format 5 of 4"),
        (SCHEMA + 1, Some(older.as_str()), "newer format 5 of 4"),
        (SCHEMA + 1, Some(newer.as_str()), "newer format 5 of 4"),
    ];
    for (schema, fields, expected) in cases {
        let version = Version { schema, fields: fields.map(|fields| fields.as_bytes().to_vec()) };
        assert_eq!(name(version.check(Path::new("feed.redb"))), expected, "{schema} {fields:?}");
        assert_eq!(version.is_current(), expected == "taken");
    }
}
