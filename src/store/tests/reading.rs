//! Lookup of commits by time, and filters over added, changed and removed records.

use std::collections::BTreeMap;

use super::{Sample, batch, conference, conferences, id, in_country, organization, removal, tag};
use crate::model::{ConferenceFields, Dataset, FieldCondition, Filter, References, Timestamp};
use crate::store::{Batch, Reader, Snapshot};

/// The country, name and year of each conference.
type Model = BTreeMap<u64, (&'static str, &'static str, u16)>;

fn write(sample: &Sample, model: &mut Model, rows: impl Iterator<Item = u64>, version: u16) {
    const NAMES: [&str; 3] = ["Oncology days", "Heart failure", "Onco summit"];
    const COUNTRIES: [&str; 2] = ["Spain", "France"];
    let mut changed = Vec::new();
    for number in rows {
        let at = usize::try_from(number).unwrap() + usize::from(version);
        let row = (
            COUNTRIES[at % 2],
            NAMES[at % 3],
            2020 + u16::try_from(at % 5).unwrap(),
        );
        model.insert(number, row);
        changed.push(conference(number, |fields| {
            fields.country = Some(row.0.to_owned());
            fields.name = Some(row.1.to_owned());
            fields.year = Some(row.2);
        }));
    }
    sample.edit(|edit| edit.apply(&batch(changed)).unwrap());
}

fn filter(text: Option<&str>, conditions: &[(&str, &str)]) -> Filter {
    let filters = &Dataset::Conferences.table().filters;
    let condition = |(name, value): &(&str, &str)| {
        let filter = filters.iter().find(|filter| filter.name == *name).unwrap();
        FieldCondition {
            filter,
            value: (*value).to_owned(),
        }
    };
    Filter {
        updated_since: None,
        text: text.map(str::to_owned),
        conditions: conditions.iter().map(condition).collect(),
    }
}

/// Compares every filter, after every row, with a plain loop.
fn compare(reader: &Reader, model: &Model) {
    type Test = fn(&(&'static str, &'static str, u16)) -> bool;
    let cases: [(Filter, Test); 6] = cases![
        filter(None, &[]), |_| true;
        filter(None, &[("country", "Spain")]), |row| { row.0 == "Spain" };
        filter(None, &[("year", "2022"), ("country", "France")]), |row| row.2 == 2022 && row.0 == "France";
        filter(Some("onco"), &[]), |row| row.1.contains("Onco");
        filter(Some("failure"), &[("year", "2024")]), |row| { row.1.contains("failure") && row.2 == 2024 };
        filter(None, &[("country", "Italy")]), |_| false;
    ];
    let snapshot = reader.newest();
    let license = snapshot.find_license_named("all").unwrap();
    let index = snapshot.shared_feed(license, Dataset::Conferences).unwrap();
    let records = snapshot.loaded(Dataset::Conferences).unwrap();
    let find = |after: u64, filter: &Filter| -> Vec<u64> {
        let first = index
            .shown()
            .partition_point(|slot| records.id(*slot).get() <= after);
        records
            .find(&index.shown()[first..], filter)
            .unwrap()
            .map(|slot| records.id(slot).get())
            .collect()
    };
    let last = model.keys().next_back().copied().unwrap_or_default();
    for (step, (filter, test)) in [1, 7, 5, 7, 11, 101].into_iter().zip(cases) {
        for after in (0..=last + 1).step_by(step) {
            let rows = model.range(after + 1..);
            let rows = rows.filter(|(_, row)| test(row)).map(|(id, _)| *id);
            let expected = rows.collect::<Vec<_>>();
            assert_eq!(find(after, &filter), expected, "{filter:?} after {after}");
        }
    }
    for slot in index.shown() {
        let record = records.get(*slot).unwrap();
        assert_eq!(
            snapshot
                .changed_at_seq::<ConferenceFields>(record.id)
                .unwrap(),
            Some(record.seq)
        );
    }
}

#[test]
fn filters_find_the_same_in_records_that_were_updated_and_in_new_ones() {
    let sample = Sample::new();
    let mut model = Model::new();
    sample.license("all", conferences());
    let mut reader = Reader::open(&sample.path()).unwrap();
    compare(&reader, &model);
    type Step<'s> = (&'static str, &'s dyn Fn(&mut Model));
    let steps: [Step<'_>; 9] = cases![
        "every fourth id", &|model| { write(&sample, model, (1..=256).map(|at| at * 4), 0) };
        "changes of the first and the last", &|model| { write(&sample, model, [4, 1024].into_iter(), 1) };
        "a row before the first and after the last", &|model| { write(&sample, model, [1, 1025].into_iter(), 0) };
        "new rows between others", &|model| { write(&sample, model, (1..=254).map(|at| at * 4 + 1), 0) };
        "and two more", &|model| { write(&sample, model, [2, 1030].into_iter(), 0) };
        "rows in every place", &|model| { write(&sample, model, (1..=1040).filter(|at| at % 4 != 0), 2) };
        "rows that are removed", &|model| {
            sample.edit(|edit| edit.apply(&removal(1..=300)).unwrap());
            model.retain(|id, _| *id > 300);
        };
        "nearly all rows are removed, so the others are read anew",
        &|model| {
            sample.edit(|edit| edit.apply(&removal(301..=1000)).unwrap());
            model.retain(|id, _| *id > 1000);
        };
        "all that is left is changed", &|model| {
            let ids: Vec<u64> = model.keys().copied().collect();
            write(&sample, model, ids.into_iter(), 1);
        };
    ];
    for (what, step) in steps {
        step(&mut model);
        reader.refresh().unwrap();
        println!("{what}: {} rows", model.len());
        // The records are updated from the state before, and read again.
        compare(&reader, &model);
        compare(&Reader::open(&sample.path()).unwrap(), &model);
    }
}

#[test]
fn the_seq_before_an_instant_is_found() {
    let sample = Sample::new();
    let rows = |numbers: &[u64], version: u16| {
        batch(
            numbers
                .iter()
                .map(|number| conference(*number, |fields| fields.year = Some(2000 + version))),
        )
    };
    sample.license_at(1_000, "all", conferences());
    let first = sample.snapshot().commit().seq;
    sample.edit_at(2_000, |edit| edit.apply(&rows(&[1, 2, 3], 0)).unwrap());
    sample.edit_at(2_000, |edit| edit.apply(&rows(&[2], 1)).unwrap());
    sample.edit_at(2_005, |edit| edit.apply(&rows(&[4, 5], 0)).unwrap());
    sample.edit_at(2_006, |edit| edit.apply(&removal([1])).unwrap());
    let snapshot = sample.snapshot();
    let at = Timestamp::from_unix_s;
    let last = snapshot.commit().seq;
    assert_eq!(last, first + 7);
    let cases = [
        (0, 0),
        (999, 0),
        (1_000, 0),
        (1_001, first),
        (2_000, first),
        (2_001, first + 4),
        (2_005, first + 4),
        (2_006, first + 6),
        (2_007, first + 7),
        (9_999, first + 7),
    ];
    for (unix_s, expected) in cases {
        let seq_before = snapshot.seq_before(at(unix_s)).unwrap();
        assert_eq!(seq_before, expected, "{unix_s}");
    }
    let times = [
        (1, 1_000),
        (first, 1_000),
        (first + 1, 2_000),
        (first + 3, 2_000),
        (first + 4, 2_000),
    ];
    for (seq, unix_s) in
        times
            .into_iter()
            .chain([(first + 5, 2_005), (first + 6, 2_005), (last, 2_006)])
    {
        let time = snapshot.commit_of(seq).unwrap().time;
        assert_eq!(time, at(unix_s), "seq {seq}");
        let entry = snapshot.stored_commit_of(seq).unwrap();
        assert!(
            (entry.first_seq..=entry.last_seq).contains(&seq) && entry.time == at(unix_s),
            "{entry:?}"
        );
    }
    snapshot.commit_of(last + 1).unwrap_err();
    snapshot.stored_commit_of(last + 1).unwrap_err();
    let listed = |after, limit| {
        let commits = snapshot.list_commits(after, limit).unwrap();
        commits
            .into_iter()
            .map(|commit| commit.last_seq - first)
            .collect::<Vec<_>>()
    };
    assert_eq!(listed(0, 9), [7, 6, 4, 3, 0]);
    assert_eq!(listed(0, 2), [7, 6]);
    assert_eq!(listed(first + 3, 9), [7, 6, 4]);
    assert_eq!(listed(first + 4, 9), [7, 6]);
    assert_eq!(listed(last, 9), [0; 0]);
    assert_eq!(listed(u64::MAX, 9), [0; 0]);
    let changed = |from: u64, to: u64| {
        let ids = snapshot
            .changed_between(Dataset::Conferences, first + from, first + to)
            .unwrap();
        ids.into_iter().map(|id| id.get()).collect::<Vec<_>>()
    };
    assert_eq!(changed(1, 7), [3, 2, 4, 5]);
    assert_eq!(changed(3, 4), vec![3, 2]);
    assert_eq!(changed(4, 5), vec![2, 4]);
    assert_eq!(changed(6, 6), vec![5]);
    let removed = |from: u64, to: u64| {
        let ids = snapshot
            .removed_between(Dataset::Conferences, first + from, first + to)
            .unwrap();
        ids.into_iter().map(|id| id.get()).collect::<Vec<_>>()
    };
    assert_eq!(removed(1, 6), [0; 0]);
    assert_eq!(removed(7, 7), vec![1]);
    assert_eq!(removed(1, 7), vec![1]);
    assert_eq!(
        snapshot.totals().changed_at[Dataset::Conferences],
        Some(at(2_006))
    );
    assert_eq!(snapshot.totals().changed_at[Dataset::Journals], None);
}

#[test]
fn an_id_that_a_license_saw_is_not_used_again() {
    let sample = Sample::new();
    let largest = || {
        let largest = sample.snapshot().largest_id(Dataset::Conferences).unwrap();
        sample.edit(|edit| {
            assert_eq!(
                edit.base()
                    .unwrap()
                    .largest_id(Dataset::Conferences)
                    .unwrap(),
                largest,
                "under the lock"
            )
        });
        largest.map(|id| id.get())
    };
    assert_eq!(largest(), None);
    let of = |country: &'static str, number| {
        conference(number, |fields| fields.country = Some(country.to_owned()))
    };
    sample.license("spain", in_country("Spain"));
    sample.edit(|edit| {
        edit.apply(&batch([of("Spain", 7), of("France", 9), of("Spain", 5)]))
            .unwrap()
    });
    assert_eq!(largest(), Some(9));
    sample.edit(|edit| edit.apply(&removal([9, 7])).unwrap());
    let found = largest();
    assert_eq!(found, Some(7), "the license showed 7, and none showed 9");
    let largest_id = sample.snapshot().largest_id(Dataset::Journals).unwrap();
    assert_eq!(largest_id, None);
    let entries = sample
        .snapshot()
        .feed_entries_of(Dataset::Conferences, id(7))
        .unwrap();
    assert!(entries.iter().all(|entry| !entry.is_live()), "{entries:?}");
    assert!(!entries.is_empty(), "{entries:?}");
    // A record that leaves a license by a change of its scope, and is removed later.
    sample.edit(|edit| edit.apply(&batch([of("Spain", 11)])).unwrap());
    sample.license("spain", in_country("France"));
    sample.edit(|edit| edit.apply(&removal([11])).unwrap());
    let found = largest();
    assert_eq!(found, Some(11), "the license saw 11 in its former scope");
}

#[test]
fn each_change_of_an_organization_or_tag_reaches_the_reader() {
    let sample = Sample::new();
    let organizations = |row| Batch {
        organizations: [(id(1), row)].into(),
        ..Batch::default()
    };
    let tags = |row| Batch {
        tags: [(id(1), row)].into(),
        ..Batch::default()
    };
    let mut reader = Reader::open(&sample.path()).unwrap();
    let labels = |snapshot: &Snapshot| {
        let References {
            organizations,
            tags,
        } = &**snapshot.references().unwrap();
        let of = |label: &String| label.clone();
        let labels = organizations.values().map(|row| of(&row.label));
        let labels = labels.chain(tags.values().map(|row| of(&row.label)));
        labels.collect::<Vec<_>>()
    };
    assert_eq!(labels(reader.newest()), [""; 0]);
    let cases: [(Batch, &[&str]); 6] = [
        (organizations(Some(organization(1, "One"))), &["One"]),
        (organizations(Some(organization(1, "Two"))), &["Two"]),
        (organizations(None), &[]),
        (tags(Some(tag(1, "One"))), &["Topic: One"]),
        (tags(Some(tag(1, "Two"))), &["Topic: Two"]),
        (tags(None), &[]),
    ];
    for (batch, expected) in cases {
        sample.edit(|edit| edit.apply(&batch).unwrap());
        let snapshot = reader.refresh().unwrap();
        // They are loaded with the records, so no request waits for them.
        snapshot.load().unwrap();
        assert!(snapshot.has_references());
        assert_eq!(labels(snapshot), expected);
    }
}

#[test]
fn the_feeds_of_a_former_license_leave_memory() {
    let sample = Sample::new();
    let of = |country: &'static str, number| {
        conference(number, |fields| fields.country = Some(country.to_owned()))
    };
    sample.edit(|edit| {
        edit.apply(&batch([of("Spain", 7), of("France", 9)]))
            .unwrap()
    });
    sample.license("one", in_country("Spain"));
    let mut reader = Reader::open(&sample.path()).unwrap();
    for country in ["France", "Spain", "France"] {
        sample.license("one", in_country(country));
        reader.refresh().unwrap();
        let snapshot = reader.newest();
        let license = snapshot.find_license_named("one").unwrap();
        snapshot.shared_feed(license, Dataset::Conferences).unwrap();
        assert_eq!(snapshot.loaded_feeds(), 1, "{country}");
    }
}

/// The pages of a compact copy are elsewhere in the file.
#[test]
fn a_copy_of_the_same_commit_is_read_again() {
    let sample = Sample::new();
    for version in 0..3 {
        let of = |number| {
            conference(number, |fields| {
                fields.venue = Some(format!("version {version}"))
            })
        };
        sample.edit(|edit| edit.apply(&batch((1..200).map(of))).unwrap());
    }
    let mut reader = Reader::open(&sample.path()).unwrap();
    let commit = reader.newest().commit();
    let copy = sample.at("copy.redb");
    crate::store::file::replace::backup(&reader, &copy).unwrap();
    std::fs::copy(&copy, sample.path()).unwrap();
    let snapshot = reader.refresh().unwrap();
    assert_eq!(snapshot.commit(), commit);
    for number in 1..200 {
        let (found, _) = snapshot
            .find_record::<ConferenceFields>(id(number))
            .unwrap()
            .unwrap();
        let venue = found.fields().venue.as_deref();
        assert_eq!(venue, Some("version 2"), "{number}");
    }
}
