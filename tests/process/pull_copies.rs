//! Copies in SQLite and in folders, written without a service: pages and exports at the boundaries of their batches.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::fs;
use std::io::Write;
use std::path::Path;

use flate2::Compression;
use flate2::write::GzEncoder;
use medfeed::model::Dataset::{self, Conferences, Journals};
use medfeed::pull::body::ReadLimits;
use medfeed::pull::export::{Announced, Entry, Export, FeedPage, Hasher};
use medfeed::pull::location::ServerUrl;
use medfeed::pull::{Events, FolderCopy, PullError, PullTarget, SqliteCopy};

/// The names of records by id.
type Records = BTreeMap<i64, String>;

const KINDS: [&str; 2] = ["sqlite", "folder"];

fn open(
    kind: &str,
    path: &Path,
    server: &str,
    reload: bool,
) -> Result<Box<dyn PullTarget>, PullError> {
    let server: ServerUrl = server.parse().unwrap();
    Ok(match kind {
        "sqlite" => Box::new(SqliteCopy::open(path.join("copy.sqlite"), &server, reload)?),
        _ => Box::new(FolderCopy::open(&path.join("copy"), &server, reload)?),
    })
}

const SERVER: &str = "https://feed.example.org";

fn json(id: i64, name: &str) -> String {
    format!("{{\"id\":{id},\"name\":\"{name}\",\"updated_at\":\"2026-01-01T00:00:00Z\"}}")
}

fn named(ids: impl IntoIterator<Item = i64>, name: &str) -> Records {
    ids.into_iter().map(|id| (id, name.to_owned())).collect()
}

/// Records the changes, as `7` or `-7`.
#[derive(Default)]
struct Changes(RefCell<Vec<i64>>);

impl Events for Changes {
    fn change(&self, _: Dataset, json: &str) -> Result<(), PullError> {
        let entry = Entry::parse(json).unwrap();
        self.0.borrow_mut().push(if entry.is_removal {
            -entry.id
        } else {
            entry.id
        });
        Ok(())
    }

    fn note(&self, _: &str) {}
}

/// Loads an export of these records. Returns the changes.
fn load(copy: &mut dyn PullTarget, dataset: Dataset, token: &str, records: &Records) -> Vec<i64> {
    let text = records.iter();
    let text: String = text.map(|(id, name)| json(*id, name) + "\n").collect();
    load_text(copy, dataset, token, (&text, records.len()))
}

fn load_text(
    copy: &mut dyn PullTarget,
    dataset: Dataset,
    token: &str,
    (text, records): (&str, usize),
) -> Vec<i64> {
    let mut gzip = GzEncoder::new(Vec::new(), Compression::fast());
    gzip.write_all(text.as_bytes()).unwrap();
    let gzip = gzip.finish().unwrap();
    let announced = Announced {
        token: token.to_owned(),
        records: records as u64,
        digest: None,
    };
    let mut export = Export::new(announced, gzip.as_slice(), &ReadLimits::default()).unwrap();
    let told = Changes::default();
    copy.load(dataset, &mut export, &told).unwrap();
    told.0.take()
}

/// Applies a page: `(7, "name")` is a record, `(7, "")` a tombstone. Returns the changes.
fn apply(copy: &mut dyn PullTarget, token: &str, entries: &[(i64, &str)]) -> Vec<i64> {
    let entry = |(id, name): &(i64, &str)| {
        let is_removal = name.is_empty();
        let tombstone =
            format!("{{\"id\":{id},\"deleted\":true,\"changed_at\":\"2026-01-01T00:00:00Z\"}}");
        Entry {
            id: *id,
            is_removal,
            json: if is_removal {
                tombstone
            } else {
                json(*id, name)
            }
            .into(),
        }
    };
    let page = FeedPage {
        entries: entries.iter().map(entry).collect(),
        has_more: false,
        token: token.to_owned(),
    };
    let told = Changes::default();
    copy.apply(Conferences, &page, &told).unwrap();
    told.0.take()
}

/// Checks that a copy contains exactly these records, with all derived rows.
#[track_caller]
fn assert_holds(copy: &mut dyn PullTarget, token: &str, records: &Records, what: &str) {
    let position = copy.position(Conferences).unwrap().unwrap();
    let expected = (token, records.len() as u64);
    assert_eq!((&*position.token, position.records), expected, "{what}");
    let mut hasher = Hasher::default();
    records
        .iter()
        .for_each(|(id, name)| hasher.add(json(*id, name).as_bytes()));
    assert_eq!(copy.digest(Conferences).unwrap(), hasher.finish(), "{what}");
    assert_eq!(copy.find_fault(Conferences).unwrap(), None, "{what}");
}

/// The tokens of conferences and journals; `-` for none.
fn tokens(copy: &mut dyn PullTarget) -> String {
    let tokens = [Conferences, Journals].map(|dataset| {
        let position = copy.position(dataset).unwrap();
        position.map_or("-".to_owned(), |position| position.token.to_string())
    });
    tokens.join(" ")
}

#[test]
fn the_last_entry_of_a_record_on_a_page_counts() {
    // (the entries of a page, the records after it)
    type Case = (
        &'static [(i64, &'static str)],
        &'static [(i64, &'static str)],
    );
    let cases: [Case; 13] = cases![
        &[], &[(2, "a"), (4, "a"), (6, "a")];
        &[(1, "b")], &[(1, "b"), (2, "a"), (4, "a"), (6, "a")];
        &[(7, "b")], &[(2, "a"), (4, "a"), (6, "a"), (7, "b")];
        &[(6, "b"), (2, "b")], &[(2, "b"), (4, "a"), (6, "b")];
        &[(2, "")], &[(4, "a"), (6, "a")];
        &[(6, "")], &[(2, "a"), (4, "a")];
        &[(9, ""), (1, ""), (3, "")], &[(2, "a"), (4, "a"), (6, "a")];
        &[(5, "b"), (5, "")], &[(2, "a"), (4, "a"), (6, "a")];
        &[(4, ""), (4, "b")], &[(2, "a"), (4, "b"), (6, "a")];
        &[(4, ""), (4, "")], &[(2, "a"), (6, "a")];
        &[(5, "b"), (5, "c")], &[(2, "a"), (4, "a"), (5, "c"), (6, "a")];
        &[(4, "b"), (6, "b"), (4, "c"), (6, "")], &[(2, "a"), (4, "c")];
        &[(6, ""), (4, ""), (2, "")], &[];
    ];
    for kind in KINDS {
        let folder = tempfile::tempdir().unwrap();
        let mut copy = open(kind, folder.path(), SERVER, false).unwrap();
        for (at, (entries, expected)) in cases.iter().enumerate() {
            load(&mut *copy, Conferences, "t0", &named([2, 4, 6], "a"));
            let token = format!("t{at}x");
            apply(&mut *copy, &token, entries);
            let expected = expected.iter().map(|(id, name)| (*id, (*name).to_owned()));
            let expected = expected.collect();
            let what = format!("{kind} {entries:?}");
            assert_holds(&mut *copy, &token, &expected, &what);
        }
        // An empty page saves its token too.
        drop(copy);
        let mut copy = open(kind, folder.path(), SERVER, false).unwrap();
        assert_holds(&mut *copy, "t12x", &Records::new(), kind);
        apply(&mut *copy, "t13", &[]);
        drop(copy);
        let mut copy = open(kind, folder.path(), SERVER, false).unwrap();
        assert_holds(&mut *copy, "t13", &Records::new(), kind);
    }
}

#[test]
fn an_export_replaces_a_copy_of_any_length() {
    // Batches are read by 500 rows and written by 1000. (the first and last stored id, those of the export)
    let cases: [[(i64, i64); 2]; 10] = [
        [(1, 0), (1, 500)],
        [(1, 500), (1, 500)],
        [(1, 500), (501, 1000)],
        [(1, 501), (2, 501)],
        [(1, 1000), (1, 1001)],
        [(1, 1001), (1, 1000)],
        [(500, 1500), (1, 499)],
        [(1, 499), (500, 1500)],
        [(1, 2000), (1000, 1000)],
        [(1, 1000), (1, 0)],
    ];
    std::thread::scope(|scope| {
        for kind in KINDS {
            let cases = &cases;
            scope.spawn(move || {
                let folder = tempfile::tempdir().unwrap();
                let mut copy = open(kind, folder.path(), SERVER, false).unwrap();
                for [held, export] in cases.map(|case| case.map(|(first, last)| first..=last)) {
                    let what = format!("{kind} {held:?} {export:?}");
                    load(&mut *copy, Conferences, "t0", &named(held.clone(), "a"));
                    assert_holds(&mut *copy, "t0", &named(held.clone(), "a"), &what);
                    let mut told = load(&mut *copy, Conferences, "t1", &named(export.clone(), "a"));
                    assert_holds(&mut *copy, "t1", &named(export.clone(), "a"), &what);
                    let gone = held.clone().filter(|id| !export.contains(id)).map(|id| -id);
                    let new = export.clone().filter(|id| !held.contains(id));
                    let mut expected: Vec<i64> = gone.chain(new).collect();
                    told.sort_unstable();
                    expected.sort_unstable();
                    assert_eq!(told, expected, "{what}: only the differences are reported");
                }
                let changed: Vec<(i64, &str)> = (1..=1000).map(|id| (id, "b")).collect();
                load(&mut *copy, Conferences, "t0", &named(1..=1000, "a"));
                assert_eq!(apply(&mut *copy, "t2", &changed).len(), 1000);
                assert_holds(&mut *copy, "t2", &named(1..=1000, "b"), kind);
                // Other versions of stored records.
                let export = [named(1..=1000, "b"), named([1, 500, 1000], "c")].into_iter();
                let export = export.flatten().collect();
                let mut told = load(&mut *copy, Conferences, "t3", &export);
                told.sort_unstable();
                assert_eq!(told, [1, 500, 1000], "{kind}: the changes are reported");
                assert_holds(&mut *copy, "t3", &export, kind);
            });
        }
    });
}

#[test]
fn removals_of_an_edited_file_are_those_that_the_export_lacks() {
    let (all, left) = (named([1, 2, 3, 9, 10, 20], "a"), named([1, 9, 10], "a"));
    // (the ids in the file, 0 for a line that cannot be read; the changes of two loads; the removals with the dataset)
    type Case = (
        &'static [i64],
        &'static [i64],
        &'static [i64],
        &'static [i64],
    );
    let cases: [Case; 4] = cases![
        &[1, 2, 3, 9, 10, 20], &[], &[-2, -3, -20], &[-1, -2, -3, -9, -10, -20];
        &[1, 10, 2, 20, 3, 9], &[], &[-2, -3, -20], &[-1, -2, -3, -9, -10, -20];
        &[1, 0, 3, 9, 10, 20], &[2], &[-3, -20], &[-1, -3, -9, -10, -20];
        &[0, 20, 2], &[1, 3, 9, 10], &[1, -2, 9, 10, -20], &[-2, -20];
    ];
    for (ids, same, fewer, removed) in cases {
        let folder = tempfile::tempdir().unwrap();
        let mut copy = open("folder", folder.path(), SERVER, false).unwrap();
        load(&mut *copy, Conferences, "t0", &all);
        drop(copy);
        let line = |id: &i64| match id {
            0 => "x\n".to_owned(),
            id => json(*id, "a") + "\n",
        };
        let edited = || {
            let content = ids.iter().map(line).collect::<String>();
            fs::write(folder.path().join("copy/conferences.jsonl"), content).unwrap();
            open("folder", folder.path(), SERVER, false).unwrap()
        };
        let told = load(&mut *edited(), Conferences, "t1", &all);
        assert_eq!(told, same, "{ids:?}");
        let told = load(&mut *edited(), Conferences, "t1", &left);
        assert_eq!(told, fewer, "{ids:?}");
        let told = Changes::default();
        let count = edited().clear(Conferences, &told).unwrap();
        let expected = (removed.to_vec(), removed.len() as u64);
        assert_eq!((told.0.take(), count), expected, "{ids:?}");
    }
}

#[test]
fn a_reload_that_fails_half_way_keeps_the_other_dataset() {
    for kind in KINDS {
        let folder = tempfile::tempdir().unwrap();
        let other = "https://other.example.org";
        let records = named([1, 2], "a");
        let open = |server: &str, reload| open(kind, folder.path(), server, reload).unwrap();
        let former = |copy: &mut dyn PullTarget, dataset| {
            let position = copy.position(dataset).unwrap();
            position.unwrap().other_server
        };
        let mut copy = open(SERVER, false);
        load(&mut *copy, Conferences, "c0", &records);
        load(&mut *copy, Journals, "j0", &records);
        drop(copy);

        let mut copy = open(SERVER, true);
        assert_eq!(tokens(&mut *copy), "- -", "{kind}");
        let left = copy.records(Journals).unwrap();
        assert_eq!(left, Some(2), "{kind}: the records are still there");
        load(&mut *copy, Conferences, "c1", &records);
        assert_eq!(tokens(&mut *copy), "c1 -", "{kind}");
        drop(copy);
        // The reload ended after the first dataset. The old content of the other one is sound.
        let mut copy = open(SERVER, false);
        assert_eq!(tokens(&mut *copy), "c1 j0", "{kind}");
        drop(copy);

        // A copy of another service keeps no record of the former one.
        let mut copy = open(other, false);
        for dataset in [Conferences, Journals] {
            let server = former(&mut *copy, dataset);
            assert_eq!(server.as_deref(), Some(SERVER), "{kind}");
        }
        drop(copy);
        let mut copy = open(other, true);
        let left = copy.records(Journals).unwrap();
        assert_eq!(left, None, "{kind}: the records are another service's");
        load(&mut *copy, Journals, "j2", &named([3], "b"));
        drop(copy);
        // Conferences were of the other service.
        let mut copy = open(other, false);
        assert_eq!(tokens(&mut *copy), "- j2", "{kind}");
        assert_eq!(former(&mut *copy, Journals), None, "{kind}");
        drop(copy);
        let server = former(&mut *open(SERVER, false), Journals);
        assert_eq!(server.as_deref(), Some(other), "{kind}");
    }
}

#[test]
fn a_comparison_is_noted_for_its_own_dataset() {
    for kind in KINDS {
        let folder = tempfile::tempdir().unwrap();
        let mut copy = open(kind, folder.path(), SERVER, false).unwrap();
        let records = named([1], "a");
        let age = |copy: &mut dyn PullTarget, dataset| {
            let verified_at = copy.position(dataset).unwrap().unwrap().verified_at;
            medfeed::model::time::now().unix_s() - verified_at
        };
        load(&mut *copy, Conferences, "c0", &records);
        load(&mut *copy, Journals, "j0", &records);
        assert!(age(&mut *copy, Conferences) < 60, "{kind}: a load compares");
        assert!(age(&mut *copy, Journals) < 60, "{kind}: a load compares");
        drop(copy);
        set_back(kind, folder.path());
        let mut copy = open(kind, folder.path(), SERVER, false).unwrap();
        assert!(age(&mut *copy, Conferences) > 60, "{kind}");
        assert!(age(&mut *copy, Journals) > 60, "{kind}");
        apply(&mut *copy, "c1", &[(2, "a")]);
        let is_old = age(&mut *copy, Conferences) > 60;
        assert!(is_old, "{kind}: a page compares nothing");
        copy.set_verified(Conferences).unwrap();
        assert!(age(&mut *copy, Conferences) < 60, "{kind}");
        assert!(age(&mut *copy, Journals) > 60, "{kind}");
        drop(copy);
        let mut copy = open(kind, folder.path(), SERVER, false).unwrap();
        assert!(age(&mut *copy, Conferences) < 60, "{kind}: it is saved");
        assert!(age(&mut *copy, Journals) > 60, "{kind}: it is saved");
    }
}

/// Moves all times of a copy to the year 2020.
fn set_back(kind: &str, path: &Path) {
    if kind == "sqlite" {
        let connection = rusqlite::Connection::open(path.join("copy.sqlite")).unwrap();
        let old = "2020-01-01T00:00:00Z";
        let set = "UPDATE sync SET loaded_at = ?, changed_at = ?, checked_at = ?, verified_at = ?";
        connection.execute(set, [old; 4]).unwrap();
        return;
    }
    let file = path.join("copy/medfeed-copy.json");
    let mut state: serde_json::Value =
        serde_json::from_slice(&std::fs::read(&file).unwrap()).unwrap();
    for dataset in state["datasets"].as_object_mut().unwrap().values_mut() {
        dataset["verified_at"] = "2020-01-01T00:00:00Z".into();
    }
    std::fs::write(&file, state.to_string()).unwrap();
}

#[test]
fn times_in_a_sqlite_copy_move_with_their_actions() {
    let folder = tempfile::tempdir().unwrap();
    let mut copy = open("sqlite", folder.path(), SERVER, false).unwrap();
    load(&mut *copy, Conferences, "c0", &named([1], "a"));
    load(&mut *copy, Journals, "j0", &named([1], "a"));
    // (the action, the columns of conferences that move from 2020 to now)
    type Step = fn(&mut dyn PullTarget);
    let cases: [(&str, Step, &[&str]); 5] = cases![
        "nothing", |_| {}, &[];
        "an empty page", |copy| drop(apply(copy, "c1", &[])), &["checked_at"];
        "a page", |copy| drop(apply(copy, "c2", &[(1, "b")])), &["changed_at", "checked_at"];
        "a load", |copy| drop(load(copy, Conferences, "c4", &named([1], "c"))),
            &["loaded_at", "changed_at", "checked_at", "verified_at"];
        "a comparison", |copy| copy.set_verified(Conferences).unwrap(), &["verified_at"];
    ];
    for (what, step, moved) in cases {
        set_back("sqlite", folder.path());
        step(&mut *copy);
        let connection = rusqlite::Connection::open(folder.path().join("copy.sqlite")).unwrap();
        for column in ["loaded_at", "changed_at", "checked_at", "verified_at"] {
            let query = format!("SELECT {column} < '2021' FROM sync ORDER BY dataset");
            let mut statement = connection.prepare(&query).unwrap();
            let old = statement.query_map([], |row| row.get(0)).unwrap();
            let old: Vec<bool> = old.map(Result::unwrap).collect();
            let expected = [!moved.contains(&column), true];
            assert_eq!(old, expected, "{what}: {column} of the two datasets");
        }
    }
}

#[test]
fn links_are_those_of_the_last_version_of_a_record() {
    let with = |id: i64, name: &str| {
        format!(
            "{{\"id\":{id},\"name\":\"N\",\"organizations\":[{{\"id\":7,\"name\":\"{name}\"}}],\"therapy_areas\":[\"A\"]}}\n"
        )
    };
    let folder = tempfile::tempdir().unwrap();
    let mut copy = open("sqlite", folder.path(), SERVER, false).unwrap();
    let names = || -> Vec<String> {
        let connection = rusqlite::Connection::open(folder.path().join("copy.sqlite")).unwrap();
        let query = "SELECT name FROM organizations";
        let mut statement = connection.prepare(query).unwrap();
        let names = statement.query_map([], |row| row.get(0)).unwrap();
        names.map(Result::unwrap).collect()
    };
    // A batch of 1000, and one more record, which has a newer name.
    let mut text: String = (1..=1000).map(|id| with(id, "Old")).collect();
    text += &with(1001, "New");
    load_text(&mut *copy, Conferences, "t0", (&text, 1001));
    assert_eq!(names(), ["New"]);
    // A name that no record links to any more is removed, even if other rows of the batch lose the same link.
    let page: Vec<(i64, &str)> = (1..=1000).map(|id| (id, "N")).collect();
    apply(&mut *copy, "t1", &page);
    assert_eq!(names(), ["New"], "one record is left");
    apply(&mut *copy, "t2", &[(1001, "N")]);
    assert_eq!(names(), [""; 0]);
    // A page changed one record to a newer name. Then the token ended, and the export has neither the record nor the
    // name.
    let both = with(1, "Old") + &with(2, "Old");
    load_text(&mut *copy, Conferences, "t3", (&both, 2));
    let json = with(1, "New").trim_end().to_owned().into();
    let page = FeedPage {
        entries: vec![Entry {
            id: 1,
            is_removal: false,
            json,
        }],
        has_more: true,
        token: "t4".into(),
    };
    copy.apply(Conferences, &page, &Changes::default()).unwrap();
    assert_eq!(names(), ["New"]);
    load_text(&mut *copy, Conferences, "t5", (&with(2, "Old"), 1));
    assert_eq!(names(), ["Old"]);
    assert_eq!(copy.find_fault(Conferences).unwrap(), None);
}

#[test]
fn values_of_other_types_are_no_fault_of_a_copy() {
    let values = words![
        "1e3" "\"2026\"" "\" 1.5\\n\"" "18446744073709551615" "\"1e999\"" "\"-.5E+2\"" "\"soon\""
        "\"202\\u00006-10-23\"" "\" 7\\u0000\"" "\"\\u00007\"" "\"7x\\u0000\"" "[1]" "true"
    ];
    let columns: Vec<String> = Conferences
        .table()
        .fields
        .iter()
        .map(|field| field.name.replace('.', "\":{\""))
        .collect();
    for kind in KINDS {
        let folder = tempfile::tempdir().unwrap();
        let mut copy = open(kind, folder.path(), SERVER, false).unwrap();
        for value in values {
            for column in &columns {
                let end = if column.contains('{') { "}" } else { "" };
                let json = format!("{{\"id\":1,\"{column}\":{value}{end}}}\n");
                load_text(&mut *copy, Conferences, "t0", (&json, 1));
                assert_eq!(copy.find_fault(Conferences).unwrap(), None, "{kind} {json}");
            }
        }
    }
}
