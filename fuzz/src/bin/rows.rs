//! Stored rows. They reach a replica as parts of a state, with the right hashes. A file that the check finds sound answers
//! every question, and a file with damage answers or refuses.
#![no_main]

use std::cell::Cell;
use std::fs;
use std::time::Duration;

use libfuzzer_sys::fuzz_target;
use medfeed::model::{
    ConferenceFields, DatabaseId, Dataset, ExportFormat, Filter, JournalFields, RecordFields, ReferenceKind, Timestamp,
};
use medfeed::query::{export, feed, list, reference};
use medfeed::store::check::check;
use medfeed::store::read::cache::new_cache;
use medfeed::store::replication::{ReplicaDraft, ReplicaMark};
use medfeed::store::{Follower, Snapshot, StoreError, Writer};
use medfeed::view::View;
use medfeed_fuzz::database::Database;
use medfeed_fuzz::rows::{NO_TABLE, Rows};
use medfeed_fuzz::seeds;
use tempfile::TempDir;

struct Files {
    folder: TempDir,
    /// The rows of `meta` of a database.
    meta: Rows,
    id: DatabaseId,
}

thread_local! {
    static FILES: Files = Files::new();
}

fuzz_target!(init: seeds::write_and_exit(seeds_of_rows), |input: &[u8]| {
    let text = String::from_utf8_lossy(input);
    FILES.with(|files| files.load(Rows::parse(&text)));
});

/// The rows of a published database, and its id.
fn dump(database: &Database) -> (Rows, DatabaseId) {
    let id = database.writer.mark_published().expect("a published database");
    let mut changes = Vec::new();
    let view = Follower::open(&database.path()).and_then(|follower| follower.origin()).expect("the database is read");
    view.dump(usize::MAX, &mut |part| {
        changes.extend(part);
        Ok(())
    })
    .expect("the rows are read");
    (Rows::of_changes(&changes), id)
}

impl Files {
    fn new() -> Files {
        let (rows, id) = dump(&Database::filled());
        Files { folder: tempfile::tempdir().expect("a folder"), meta: rows.meta(), id }
    }

    /// Loads rows as a replica does, and reads the file.
    fn load(&self, mut rows: Rows) {
        let Some(head) = rows.head() else { return };
        rows.0.extend(self.meta.0.clone());
        let path = self.folder.path().join("replica.redb");
        let _ = fs::remove_file(&path);
        let digest = rows.digest();
        let mark = ReplicaMark { url: "file:///none".to_owned(), id: self.id, slot: 1, hash: [0; 32], digest };
        let mut draft = ReplicaDraft::create_for(&path).expect("a draft");
        if let Err(error) = draft.add_part(&rows.changes()) {
            assert!(!error.to_string().is_empty(), "an error has a message");
            return;
        }
        let loaded = match draft.finish(&mark, head) {
            Ok(loaded) => loaded,
            Err(error) => {
                assert!(!error.to_string().contains("add up"), "the digest is right: {error}");
                return;
            }
        };
        drop(loaded.persist(None).expect("the replica gets its name"));
        let answered = Follower::open(&path).and_then(|follower| read_all(follower.newest()));
        let mut writer = Writer::open_any(&path, Duration::ZERO).expect("the replica opens for writing");
        let report = check(&mut writer).expect("the check runs");
        if report.damages == 0 {
            answered.expect("a file without damage is read");
        }
    }
}

/// Asks everything that requests ask.
fn read_all(snapshot: &Snapshot) -> Result<(), StoreError> {
    let cache = new_cache(1 << 20);
    // The first error counts, and all questions are asked.
    let failed = Cell::new(None);
    let note = |result: Result<(), StoreError>| {
        if let Err(error) = result {
            failed.set(Some(failed.take().unwrap_or(error)));
        }
    };
    note(snapshot.list_commits(0, 100).map(drop));
    note(snapshot.references().map(drop));
    note(read_records::<ConferenceFields>(snapshot));
    note(read_records::<JournalFields>(snapshot));
    snapshot.list_keys().iter().for_each(|key| assert!(!key.status(Timestamp::EPOCH).as_str().is_empty()));
    for license in snapshot.list_licenses() {
        for dataset in Dataset::ALL {
            let Ok(view) = View::open(snapshot, license, dataset) else { continue };
            note(export::export(&view, ExportFormat::Jsonl, &cache).map(drop));
            note(export::export(&view, ExportFormat::Csv, &cache).map(drop));
            note(list::list(&view, &Filter::default(), 0, 3).and_then(|rows| list::page(&view, &rows)).map(drop));
            note(read_feed(&view));
            note(reference::list_organizations(&view).map(drop));
            note(reference::list_tags(&view, None).map(drop));
            note(reference::list_therapy_areas(&view).map(drop));
            note(view.count_links(ReferenceKind::Tag).map(drop));
            note(view.witness().and_then(|witness| view.holds(&witness)).map(drop));
        }
    }
    failed.take().map_or(Ok(()), Err)
}

fn read_records<F: RecordFields>(snapshot: &Snapshot) -> Result<(), StoreError> {
    snapshot.for_each_record::<F, StoreError>(|_, _, _| Ok(()))
}

/// Follows the feed in pages of two. Their positions grow.
fn read_feed(view: &View<'_>) -> Result<(), StoreError> {
    let mut after = 0;
    loop {
        let rows = feed::feed(view, after, 2)?;
        feed::page(view, &rows)?;
        feed::token_after(view, &rows)?;
        let Some(last) = rows.entries.last().filter(|_| rows.next_seq.is_some()) else { return Ok(()) };
        assert!(last.seq > after, "the position grows");
        after = last.seq;
    }
}

/// The rows of a database, whole and in part, with and without bytes that are no row.
fn seeds_of_rows() -> Vec<Vec<u8>> {
    let (rows, _) = dump(&Database::filled());
    let text = rows.text();
    let few: String = text.lines().filter(|line| !line.starts_with("links")).map(|line| format!("{line}\n")).collect();
    let commits: String =
        text.lines().filter(|line| line.starts_with("commits")).map(|line| format!("{line}\n")).collect();
    let others = format!("{commits}x {NO_TABLE} 00 00\nx 2 0001 ff\nx 11 {} c0\n", "00".repeat(32));
    [text, few, commits, others].into_iter().map(String::into_bytes).collect()
}
