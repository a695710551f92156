//! The stored commit and its optional members. The first release refuses a member that it does not know.

use std::fs::File;
use std::path::Path;
use std::time::Duration;

use flate2::read::GzDecoder;
use redb::ReadableTable;
use serde::Deserialize;

use super::{Sample, batch, conference, conferences, everything, removal};
use crate::model::{PerDataset, Timestamp};
use crate::store::format::rows::{TableCounts, seal, unseal, unseal_commit};
use crate::store::format::tables::COMMITS;
use crate::store::restore::Restoration;
use crate::store::{StoreError, Writer};

/// The stored commit of 0.1.0.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
#[allow(dead_code, reason = "only the names count")]
struct FirstCommit {
    time: Timestamp,
    lineage: [u8; 16],
    first_seq: u64,
    last_seq: u64,
    records: PerDataset<u64>,
    changed_at: PerDataset<Option<Timestamp>>,
    references_seq: u64,
    counts: TableCounts,
    who: String,
    what: String,
}

/// The rows of all commits of a file, by seq.
fn rows(path: &Path) -> Vec<(u64, Vec<u8>)> {
    let writer = Writer::open(path, Duration::ZERO).unwrap();
    let tx = writer.begin_raw().unwrap();
    let commits = tx.open_table(COMMITS).unwrap();
    let rows = commits.iter().unwrap().map(|row| {
        let (seq, bytes) = row.unwrap();
        (seq.value(), bytes.value().to_vec())
    });
    rows.collect()
}

/// Whether the first release can read a row.
fn is_readable_by_the_first(row: &[u8]) -> bool {
    match unseal::<FirstCommit>("commits", row) {
        Ok(_) => true,
        Err(StoreError::UnknownRow { .. }) => false,
        Err(error) => panic!("{error}"),
    }
}

#[test]
fn commits_of_the_first_release_keep_their_bytes() {
    let sample = Sample::new();
    let file = "fixtures/format-5/feed.redb.gz";
    let packed = File::open(Path::new(env!("CARGO_MANIFEST_DIR")).join(file)).unwrap();
    let mut unpacked = File::create(sample.path()).unwrap();
    std::io::copy(&mut GzDecoder::new(packed), &mut unpacked).unwrap();
    let stored = rows(&sample.path());
    assert!(stored.len() > 3, "{}", stored.len());
    for (seq, bytes) in stored {
        let commit = unseal_commit(seq, &bytes).unwrap();
        assert_eq!((commit.imported, &commit.note), (None, &None), "seq {seq}");
        assert_eq!(seal(&commit).unwrap(), bytes, "seq {seq}");
    }
}

#[test]
fn only_imports_and_noted_commits_have_members_that_the_first_release_refuses() {
    let sample = Sample::new();
    // (the commit, whether the first release reads it)
    let mut expected = Vec::new();
    sample.license("acme", everything());
    expected.push(("a license", true));
    sample.edit(|edit| {
        let rows = (1..=3).map(|number| conference(number, |_| ()));
        edit.apply(&batch(rows)).unwrap()
    });
    expected.push(("an import", false));
    sample.edit(|edit| edit.set_license("acme", everything(), Some(7)).unwrap());
    expected.push(("a license after an import", true));
    std::fs::copy(sample.path(), sample.at("backup.redb")).unwrap();
    sample.edit(|edit| {
        edit.set_note(Some("asked by phone".to_owned()));
        edit.set_license("acme", conferences(), None).unwrap()
    });
    expected.push(("a license with a note", false));
    sample.license("acme", everything());
    expected.push(("a license after a note", true));
    let found = rows(&sample.path());
    let found = found.iter().map(|(_, row)| is_readable_by_the_first(row));
    let (names, readable): (Vec<_>, Vec<_>) = expected.into_iter().unzip();
    assert_eq!(found.collect::<Vec<_>>(), readable, "{names:?}");

    // A restore takes the members of the commits in the backup along, and has a note of its own.
    for note in [None, Some("a wrong list".to_owned())] {
        let backup = sample.at("backup.redb");
        let restoration =
            Restoration::prepare(&sample.path(), &backup, Duration::ZERO, note.clone()).unwrap();
        restoration.finish().unwrap();
        let found = rows(&sample.path());
        let found = found.iter().map(|(_, row)| is_readable_by_the_first(row));
        let expected = [true, false, true, note.is_none()];
        assert_eq!(found.collect::<Vec<_>>(), expected, "{note:?}");
        assert_eq!(sample.snapshot().totals().note, note);
    }
}

#[test]
fn a_commit_counts_the_rows_of_its_own_import() {
    let sample = Sample::new();
    let named = |numbers: std::ops::RangeInclusive<u64>, venue: &'static str| {
        let rows = numbers
            .map(|number| conference(number, |fields| fields.venue = Some(venue.to_owned())));
        batch(rows.collect::<Vec<_>>())
    };
    // (the rows, then added, changed, removed, unchanged)
    let cases = [
        (named(1..=5, "Hall 1"), [5, 0, 0, 0]),
        (named(4..=9, "Hall 1"), [4, 0, 0, 2]),
        (named(8..=11, "Hall 2"), [2, 2, 0, 0]),
        (removal(1..=3), [0, 0, 3, 0]),
    ];
    for (batch, expected) in cases {
        sample.edit(|edit| edit.apply(&batch).unwrap());
        let counts = sample.snapshot().totals().imported.unwrap();
        let found = counts.datasets.conferences;
        let found = [found.added, found.changed, found.removed, found.unchanged];
        assert_eq!(found, expected);
        assert_eq!(counts.datasets.journals, Default::default());
    }
}
