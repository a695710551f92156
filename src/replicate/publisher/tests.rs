//! Publishers that start again: after nothing was published, into a second bucket, after the log was lost, and next to
//! another publisher. Then running publishers: when states are due, and what the heartbeat and the note name.

use std::fs;

use super::publication_status::{PublicationStatus, Waiting};
use super::*;
use crate::model::time::now;
use crate::replicate::entry::{self, EntryHeader, LogEntry};
use crate::replicate::heartbeat::Heartbeat;
use crate::replicate::layout;
use crate::replicate::protocol::{Knowledge, LastEntry};
use crate::replicate::state::Manifest;
use crate::replicate::test_log::{OTHER_ID, TestLog, TestOrigin, once, states_every, time};
use crate::store::Writer;
use crate::store::replication::{PublishedNote, SCHEMA};

impl TestOrigin {
    fn refused(&self, log: &TestLog) -> String {
        shown(&self.publish(log, once()).unwrap_err())
    }

    fn note(&self) -> PublishedNote {
        PublishedNote::read(&self.path()).unwrap().unwrap()
    }

    fn seq(&self) -> u64 {
        Reader::open(&self.path()).unwrap().newest().commit().seq
    }
}

/// A database that is published in slot 1 of a log.
fn started() -> (TestOrigin, TestLog) {
    let (origin, log) = (TestOrigin::new(), TestLog::new(OTHER_ID));
    origin.publish(&log, once()).unwrap();
    (origin, log)
}

fn shown(error: &PublishError) -> String {
    match error {
        PublishError::Fenced { .. } => "fenced".to_owned(),
        PublishError::OtherDatabase { .. } => "another database".to_owned(),
        PublishError::Diverged { slot, is_own, .. } => format!("diverged at {slot}, own: {is_own}"),
        PublishError::Emptied { slot, .. } => format!("emptied after {slot}"),
        PublishError::WentBack { slot, known, .. } => format!("back to {slot} from {known}"),
        other => format!("{other:?}"),
    }
}

fn beat(publisher: &mut Publisher) -> Result<(), PublishError> {
    publisher.heartbeat.written_at = None;
    publisher.heartbeat_if_due()
}

/// The end of the log after a run.
fn run(publisher: &mut Publisher) -> u64 {
    publisher.run(|| ()).unwrap().log_end.unwrap().1.slot
}

fn put_heartbeat(log: &TestLog, alive: &Heartbeat) {
    let bytes = alive.encode().unwrap();
    log.bucket().put(layout::ALIVE, &bytes).unwrap();
}

fn start_over() -> PublishSettings {
    PublishSettings {
        start_over: true,
        ..once()
    }
}

/// Settings by which any entry makes a state due, and every state but two is too old.
fn sweeping() -> PublishSettings {
    PublishSettings {
        keep: Duration::ZERO,
        state_every: Duration::ZERO,
        ..once()
    }
}

/// The slots of the entries, and of the states.
fn all_slots(log: &TestLog) -> (Vec<u64>, Vec<u64>) {
    (slots(log, layout::LOG), slots(log, layout::STATES))
}

/// The bytes of an object.
fn object(log: &TestLog, name: &str) -> Vec<u8> {
    log.bucket().get(name).unwrap().unwrap().bytes
}

fn slots(log: &TestLog, folder: &str) -> Vec<u64> {
    let listed = log.bucket().list(folder, None).unwrap();
    listed
        .iter()
        .filter_map(|object| layout::log_slot(&object.name).or(layout::state_slot(&object.name)))
        .collect()
}

fn entry(log: &TestLog, slot: u64) -> LogEntry {
    entry::decode(&object(log, &layout::log(slot))).unwrap()
}

fn heartbeat(log: &TestLog) -> Heartbeat {
    Heartbeat::decode(&object(log, layout::ALIVE)).unwrap()
}

/// Publishes a state, two commits with a state after each, and a third one without. All are of long ago.
fn six_entries(origin: &TestOrigin) -> TestLog {
    let log = TestLog::new(OTHER_ID);
    origin.publish(&log, once()).unwrap();
    for _ in 0..2 {
        origin.commit();
        let version = PublishSettings {
            keep: Duration::MAX,
            ..sweeping()
        };
        origin.publish(&log, version).unwrap();
    }
    origin.next(&log);
    assert_eq!(all_slots(&log), ((1..=6).collect(), vec![1, 3, 5]));
    for folder in [layout::LOG, layout::STATES, layout::PARTS] {
        for object in log.bucket().list(folder, None).unwrap() {
            log.date(&object.name, time().plus_s(-86_400 * 1000));
        }
    }
    log
}

#[test]
fn a_state_is_an_entry_of_its_own_and_old_objects_are_swept() {
    let origin = TestOrigin::new();
    let log = six_entries(&origin);
    let (end, entries) = origin.publish_counted(&log, sweeping()).unwrap();
    assert_eq!((end.slot, entries), (7, 1));
    assert_eq!(all_slots(&log), (vec![5, 6, 7], vec![5, 7]));
    let (state, before) = (entry(&log, 7).header, entry(&log, 6).header);
    assert!(
        state.is_state() && !state.replaces(before.head(), before.digest),
        "{state:?} is that after {before:?}"
    );
    // Without further entries none is due, and nothing is deleted.
    let probe = layout::probe("0123456789abcdef");
    log.bucket().put(&probe, b"x").unwrap();
    log.date(&probe, time().plus_s(-86_400 * 1000));
    assert_eq!(origin.publish_counted(&log, sweeping()).unwrap().1, 0);
    assert!(log.bucket().get(&probe).unwrap().is_some());
    // A sweep would delete it.
    origin.commit();
    origin.publish(&log, sweeping()).unwrap();
    assert!(log.bucket().get(&probe).unwrap().is_none());
}

#[test]
fn a_database_is_published_to_a_second_bucket_from_the_start() {
    let origin = TestOrigin::new();
    let (first, second) = (TestLog::new(OTHER_ID), TestLog::new(OTHER_ID));
    for slot in 1..=3 {
        assert_eq!(origin.next(&first), slot);
    }
    // The note next to the database is about the first bucket.
    assert_eq!(origin.publish(&second, once()).unwrap().slot, 1);
    assert_eq!(all_slots(&second), (vec![1], vec![1]));
    let expected = (1, second.bucket().url().to_string());
    assert_eq!((origin.note().slot, origin.note().url), expected);
    assert_eq!(origin.next(&second), 2);
    let (end, entries) = origin.publish_counted(&first, once()).unwrap();
    assert_eq!((end.slot, entries), (4, 1));
    // A note that says `fenced` counts for its own bucket only.
    let note = PublishedNote {
        url: "file:///elsewhere".to_owned(),
        slot: 99,
        ..origin.note()
    };
    note.write(&origin.path()).unwrap();
    assert_eq!(origin.publish(&first, once()).unwrap().slot, 4);
}

#[test]
fn a_takeover_in_a_second_bucket_is_noted_for_that_bucket() {
    let (first, second) = (TestLog::new(OTHER_ID), TestLog::new(OTHER_ID));
    let origin = TestOrigin::new();
    origin.publish(&first, once()).unwrap();
    let copy = origin.copy();
    copy.next(&second);
    origin.commit();
    assert_eq!(origin.refused(&second), "diverged at 1, own: false");
    let note = origin.note();
    let expected = (second.bucket().url().to_string(), true);
    assert_eq!((note.url, note.fenced.is_some()), expected);
    // The first bucket is still this file's.
    assert_eq!(origin.publish(&first, once()).unwrap().slot, 2);
}

#[test]
fn a_second_database_is_not_published_to_the_same_bucket() {
    let (origin, other) = (TestOrigin::new(), TestOrigin::new());
    let log = TestLog::new(OTHER_ID);
    origin.publish(&log, once()).unwrap();
    for _ in 0..2 {
        assert_eq!(other.refused(&log), "another database");
        // Also one that is published elsewhere.
        other.publish(&TestLog::new(OTHER_ID), once()).unwrap();
    }
    assert_eq!(slots(&log, layout::LOG), [1]);
    // The heartbeat of another database says nothing about this one.
    let mixed = TestLog::new(OTHER_ID);
    mixed.put_alive(9, [9; 32], 90);
    assert_eq!(origin.publish(&mixed, once()).unwrap().slot, 1);
}

#[test]
fn a_log_that_lost_its_end_is_not_continued() {
    let origin = TestOrigin::new();
    let log = six_entries(&origin);
    let note = origin.note();
    let heartbeat = object(&log, layout::ALIVE);
    log.remove(&layout::log(6));
    // The note and the heartbeat each know of the last entry. So does the note that names only one more slot.
    for (has_note, has_heartbeat) in [(true, true), (true, false), (false, true)] {
        let known = if has_note {
            note.clone()
        } else {
            PublishedNote {
                slot: 0,
                ..note.clone()
            }
        };
        known.write(&origin.path()).unwrap();
        log.remove(layout::ALIVE);
        if has_heartbeat {
            log.bucket().put(layout::ALIVE, &heartbeat).unwrap();
        }
        let refused = origin.refused(&log);
        assert_eq!(refused, "back to 5 from 6", "{has_note} {has_heartbeat}");
    }
    log.empty();
    note.write(&origin.path()).unwrap();
    assert_eq!(origin.refused(&log), "emptied after 6");
    assert_eq!(slots(&log, layout::LOG), [0; 0]);
    let end = origin.publish(&log, start_over()).unwrap();
    assert_eq!((end.slot, slots(&log, layout::STATES)), (7, vec![7]));
}

#[test]
fn a_running_publisher_checks_the_bucket_again_before_each_heartbeat() {
    let origin = TestOrigin::new();
    let log = six_entries(&origin);
    let mut publisher = origin.start(&log, once()).unwrap();
    let beat_and_check = |publisher: &mut Publisher| {
        // Every second heartbeat checks the newest state.
        publisher.heartbeat.count = 1;
        beat(publisher)
    };
    beat_and_check(&mut publisher).unwrap();
    assert_eq!(publisher.state.lost, None);
    // The manifest of the newest state is gone or damaged, or the last entry is gone.
    for (name, damaged) in [
        (layout::state(5), None),
        (layout::state(5), Some(b"rotten")),
        (layout::log(6), None),
    ] {
        let bytes = object(&log, &name);
        match damaged {
            Some(damaged) => log.bucket().put(&name, damaged).unwrap(),
            None => log.remove(&name),
        }
        beat_and_check(&mut publisher).unwrap();
        assert_eq!(publisher.state.lost.take().as_ref(), Some(&name));
        log.bucket().put(&name, &bytes).unwrap();
    }
    // Another publisher has a later entry.
    log.put(7, [9; 32], "another publisher");
    let fenced = beat_and_check(&mut publisher).unwrap_err();
    assert!(fenced.is_fenced(), "{fenced}");
    let fenced = origin.note().fenced;
    assert!(fenced.is_some_and(|by| by.contains("published slot 7")));
}

#[test]
fn a_heartbeat_that_is_ahead_is_overtaken() {
    for starts_again in [false, true] {
        let (origin, log) = started();
        let mut publisher = origin.start(&log, once()).unwrap();
        // A heartbeat of an earlier publisher, whose clock is ahead, arrives late.
        let late = Heartbeat {
            at: now().plus_s(86_400),
            ..heartbeat(&log)
        };
        put_heartbeat(&log, &late);
        // A running publisher may overwrite it once before it reads it.
        let mut heartbeats = 2;
        if starts_again {
            drop(publisher);
            publisher = origin.start(&log, once()).unwrap();
            heartbeats = 1;
        }
        for _ in 0..heartbeats {
            beat(&mut publisher).unwrap();
        }
        let found = heartbeat(&log);
        assert!(found.slot == late.slot, "{starts_again}: {found:?}");
        assert!(found.at > late.at, "{starts_again}: {found:?}");
        // A heartbeat of a later slot fences, and is not overwritten.
        let later = Heartbeat { slot: 3, ..found };
        let fenced = (0..2).find_map(|_| {
            put_heartbeat(&log, &later);
            beat(&mut publisher).err()
        });
        assert!(fenced.is_some_and(|error| error.is_fenced()));
        assert_eq!(heartbeat(&log), later);
    }
}

/// New replicas could not get past the state without a manifest if commits followed it, and a later start would not
/// know.
#[test]
fn a_state_without_a_manifest_is_followed_by_a_state_before_commits() {
    let (origin, log) = (TestOrigin::new(), TestLog::new(OTHER_ID));
    // The first state of a log, without commits after it.
    origin.publish(&log, once()).unwrap();
    log.remove(&layout::state(1));
    assert_eq!(origin.publish(&log, once()).unwrap().slot, 2);
    assert_eq!(slots(&log, layout::STATES), [2]);
    origin.commit();
    origin.publish(&log, states_every(Duration::ZERO)).unwrap();
    let last = slots(&log, layout::LOG).into_iter().max().unwrap();
    assert!(entry(&log, last).header.is_state());
    // The publisher was killed before it wrote the manifest.
    log.remove(&layout::state(last));
    origin.commit();
    origin.publish(&log, states_every(Duration::MAX)).unwrap();
    assert!(entry(&log, last + 1).header.is_state());
    assert!(slots(&log, layout::STATES).contains(&(last + 1)));
    // A running publisher that fails to write the manifest does the same.
    let mut publisher = origin.start(&log, states_every(Duration::MAX)).unwrap();
    publisher.state.is_unfinished = true;
    origin.commit();
    publisher.publish_next().unwrap();
    assert!(entry(&log, last + 2).header.is_state());
    assert!(!publisher.state.is_unfinished);
    // A publisher that finds the entry of an earlier run in its slot, because it arrived late, does the same.
    publisher.entry_at = None;
    let before = entry(&log, last + 1);
    publisher.known = Knowledge::after(LastEntry::of(&before.header, before.hash));
    log.remove(&layout::state(last + 2));
    origin.commit();
    while !slots(&log, layout::LOG).contains(&(last + 3)) {
        publisher.publish_next().unwrap();
    }
    assert!(entry(&log, last + 3).header.is_state());
}

/// Otherwise the state's entry would get the next slot, and its manifest the slot of the late entry.
#[test]
fn a_state_is_dropped_if_an_entry_of_an_earlier_run_arrives_while_its_parts_are_written() {
    // The late entry holds a commit, or is a state without a manifest.
    for (state_every, late, expected) in
        [(Duration::MAX, 2, vec![1]), (Duration::ZERO, 3, vec![1, 4])]
    {
        let (origin, log) = started();
        origin.commit();
        let mut publisher = origin.start(&log, states_every(state_every)).unwrap();
        publisher.run(|| ()).unwrap();
        log.remove(&layout::state(late));
        // This run has created no entry.
        publisher.entry_at = None;
        let before = entry(&log, late - 1);
        publisher.known = Knowledge::after(LastEntry::of(&before.header, before.hash));
        publisher.heartbeat.written_at = None;
        let view = publisher.reader.origin().unwrap();
        publisher.put_state(view).unwrap();
        assert_eq!(all_slots(&log), ((1..=late).collect(), vec![1]));
        publisher.run(|| ()).unwrap();
        assert_eq!(
            slots(&log, layout::STATES),
            expected,
            "only a state without a manifest needs another one"
        );
        assert_eq!(
            Some(publisher.known.end.slot),
            slots(&log, layout::LOG).last().copied()
        );
    }
}

#[test]
fn an_entry_in_a_gap_of_the_log_is_taken_back_and_a_state_follows() {
    let (origin, log) = started();
    let copy = origin.copy();
    let mut second = copy.start(&log, once()).unwrap();
    let mut first = origin.start(&log, once()).unwrap();
    for _ in 2..=4 {
        origin.commit();
        first.run(|| ()).unwrap();
    }
    log.remove(&layout::log(2));
    copy.commit();
    // The slot is free, and the entry before it is the same.
    second.publish_next().unwrap();
    let fenced = beat(&mut second).unwrap_err();
    assert!(fenced.is_fenced(), "{fenced}");
    assert_eq!(slots(&log, layout::LOG), [1, 3, 4]);
    first.heartbeat.count = 29;
    beat(&mut first).unwrap();
    first.run(|| ()).unwrap();
    assert_eq!(slots(&log, layout::STATES), [1, 5]);
}

#[test]
fn an_entry_after_one_of_another_publisher_is_taken_back() {
    let (origin, log) = started();
    let copy = origin.copy();
    let mut publisher = origin.start(&log, once()).unwrap();
    origin.commit();
    publisher.run(|| ()).unwrap();
    for lost in [&layout::log(2), layout::ALIVE] {
        log.remove(lost);
    }
    assert_eq!(copy.next(&log), 2);
    origin.commit();
    let fenced = publisher.publish_next().unwrap_err();
    assert!(fenced.is_fenced(), "{fenced}");
    assert_eq!(slots(&log, layout::LOG), [1, 2]);
    let by = origin.note().fenced.unwrap();
    assert!(by.contains("published slot 2 at "), "{by}");
}

#[test]
fn a_published_database_is_published_on_while_a_command_writes_to_it() {
    let (origin, log) = started();
    origin.commit();
    let _writer = Writer::open(&origin.path(), Duration::ZERO).unwrap();
    assert_eq!(origin.publish(&log, once()).unwrap().slot, 2);
}

#[test]
fn heartbeats_continue_while_a_state_is_written() {
    let (origin, log) = started();
    let mut publisher = origin
        .start(
            &log,
            PublishSettings {
                heartbeat: Duration::ZERO,
                ..once()
            },
        )
        .unwrap();
    let (before, view) = (
        publisher.heartbeat.count,
        publisher.reader.origin().unwrap(),
    );
    publisher.put_state(view).unwrap();
    // One heartbeat with the only part, and one after the state.
    assert_eq!(publisher.heartbeat.count, before + 2);
}

#[test]
fn the_next_slot_is_free_or_holds_an_entry() {
    let (origin, log) = started();
    let mut publisher = origin.start(&log, once()).unwrap();
    assert!(!publisher.take_next_entry(2).unwrap());
    assert_eq!(origin.note().fenced, None);
    let first = object(&log, &layout::log(1));
    // The entry of another slot, an unreadable object, an entry of a later format, and one of another publisher.
    for (bytes, is_fenced) in [
        (Some(first.as_slice()), false),
        (Some(b"<html>"), false),
        (Some(b"medfeed log 99\n"), true),
        (None, true),
    ] {
        match bytes {
            Some(bytes) => log.bucket().put(&layout::log(2), bytes).unwrap(),
            None => drop(log.put(2, [9; 32], "another publisher")),
        }
        let refused = publisher.take_next_entry(2).unwrap_err();
        assert_eq!(refused.is_fenced(), is_fenced, "{refused}");
        assert_eq!(origin.note().fenced.is_some(), is_fenced, "{refused}");
    }
}

#[test]
fn lost_entries_and_parts_are_found_by_lists() {
    for lost in [None, Some(layout::log(5)), Some(layout::log(6))] {
        let origin = TestOrigin::new();
        let log = six_entries(&origin);
        origin.next(&log);
        let mut publisher = origin.start(&log, once()).unwrap();
        let parts = log.bucket().list(layout::PARTS, None).unwrap();
        let of_newest = parts
            .iter()
            .find(|part| layout::parse_part(&part.name).unwrap().0 == 5)
            .unwrap();
        // A part of the newest state, its entry, or the entry after it, which is not the last one.
        let lost = lost.unwrap_or_else(|| of_newest.name.clone());
        log.remove(&lost);
        publisher.heartbeat.count = 0;
        for (count, expected) in [(28, None), (29, Some(&lost))] {
            publisher.heartbeat.count = count;
            beat(&mut publisher).unwrap();
            let found = publisher.state.lost.as_ref();
            assert_eq!(found, expected, "after {count} heartbeats without {lost}");
        }
    }
}

/// Replicas of this version start from a state of its format, so one follows what an older version published.
#[test]
fn a_state_follows_an_end_of_an_older_format() {
    let (origin, log) = started();
    origin.next(&log);
    for (schema, expected) in [(SCHEMA, 0), (SCHEMA - 1, 1)] {
        let LogEntry {
            header, changes, ..
        } = entry(&log, 2);
        let changes: Vec<&[u8]> = changes.iter().map(Vec::as_slice).collect();
        let (bytes, _) = entry::encode(&EntryHeader { schema, ..header }, &changes).unwrap();
        log.bucket().put(&layout::log(2), &bytes).unwrap();
        assert_eq!(
            origin.publish_counted(&log, once()).unwrap().1,
            expected,
            "after an end of format {schema}"
        );
    }
    let last = entry(&log, 3).header;
    assert!(last.schema == SCHEMA && last.is_state(), "{last:?}");
}

#[test]
fn starting_over_skips_the_seqs_that_only_the_heartbeat_names() {
    let (origin, log) = started();
    let older = origin.copy();
    for slot in 2..=4 {
        assert_eq!(origin.next(&log), slot);
    }
    for slot in 2..=4 {
        log.remove(&layout::log(slot));
    }
    let lost_seq = heartbeat(&log).seq;
    assert!(
        older.seq() + 3 <= lost_seq,
        "replicas have commits that this copy lacks"
    );
    assert_eq!(older.refused(&log), "back to 1 from 4");
    let end = older.publish(&log, start_over()).unwrap();
    assert_eq!(end.slot, 5);
    assert!(end.head.seq > lost_seq, "{end:?} after seq {lost_seq}");
}

/// A database that published slot 2, and a log in which slot 2 is a copy's.
fn overtaken() -> (TestOrigin, TestLog) {
    let (origin, log) = started();
    let copy = origin.copy();
    origin.next(&log);
    for lost in [&layout::log(2), layout::ALIVE] {
        log.remove(lost);
    }
    assert_eq!(copy.next(&log), 2);
    (origin, log)
}

#[test]
fn another_entry_in_the_last_slot_of_the_note_fences() {
    let (origin, log) = overtaken();
    let refused = origin.publish(&log, once()).unwrap_err();
    let expected = ("fenced", 4);
    assert_eq!((shown(&refused).as_str(), refused.exit_code()), expected);
    let by = origin.note().fenced.unwrap();
    assert!(by.contains("published slot 2 at "), "{by}");
    let writer = Writer::open(&origin.path(), Duration::ZERO).unwrap();
    let refused = writer.begin().err();
    assert!(
        matches!(refused, Some(StoreError::Fenced { .. })),
        "commands write no more: {refused:?}"
    );
    drop(writer);
    // The note keeps the time when another publisher was first noticed.
    let fenced_at = Some(now().plus_s(-3600));
    let earlier = PublishedNote {
        fenced_at,
        ..origin.note()
    };
    earlier.write(&origin.path()).unwrap();
    assert_eq!(origin.refused(&log), "fenced");
    assert_eq!(origin.note().fenced_at, fenced_at);
}

/// A request of a killed run arrives late. To a copy of the database, the same entry is another publisher's.
#[test]
fn a_late_entry_is_continued_by_its_own_file_only() {
    let (origin, log) = started();
    let first = entry(&log, 1);
    origin.next(&log);
    for (starting, expected) in [
        (&origin, Ok(())),
        (&origin.copy(), Err("fenced".to_owned())),
    ] {
        let mut publisher = starting.start(&log, once()).unwrap();
        publisher.known = Knowledge::after(LastEntry::of(&first.header, first.hash));
        let done = publisher.publish_next().map_err(|error| shown(&error));
        assert_eq!(done.map(drop), expected);
    }
}

#[test]
fn a_file_that_is_replaced_while_it_is_published_needs_a_restore_after_the_last_entry() {
    let (origin, log) = (TestOrigin::new(), TestLog::new(OTHER_ID));
    let backup = origin.copy();
    origin.publish(&log, once()).unwrap();
    origin.restore(&backup);
    let mut publisher = origin.start(&log, once()).unwrap();
    assert_eq!(run(&mut publisher), 2, "the restored state");
    let older = origin.copy();
    origin.commit();
    assert_eq!(run(&mut publisher), 3);
    // The copy contains the restore, but not the commit in slot 3.
    fs::rename(older.path(), origin.path()).unwrap();
    let refused = publisher.run(|| ()).unwrap_err();
    assert_eq!(shown(&refused), "diverged at 3, own: true");
    assert_eq!(slots(&log, layout::LOG), [1, 2, 3]);
}

#[test]
fn the_note_shows_that_the_last_entry_is_of_this_file() {
    let (origin, log) = started();
    let older = origin.copy();
    origin.next(&log);
    // The file goes back, and the random name of its publisher is lost. The note is left.
    fs::rename(older.path(), origin.path()).unwrap();
    fs::remove_file(origin.folder.path().join("origin.redb.publisher")).unwrap();
    assert_eq!(origin.refused(&log), "diverged at 2, own: true");
    assert_eq!(origin.note().fenced, None);
}

#[test]
fn after_a_start_the_age_of_the_newest_state_counts() {
    for (age_s, expected) in [(0, vec![1]), (7200, vec![1, 3])] {
        let (origin, log) = started();
        let name = layout::state(1);
        let manifest = Manifest::decode(&object(&log, &name)).unwrap();
        let dated = Manifest {
            at: now().plus_s(-age_s),
            ..manifest
        };
        log.bucket().put(&name, &dated.encode().unwrap()).unwrap();
        // The last entry is young.
        origin.next(&log);
        origin
            .publish(&log, states_every(Duration::from_secs(3600)))
            .unwrap();
        let found = slots(&log, layout::STATES);
        assert_eq!(found, expected, "a state of {age_s} s");
    }
}

#[test]
fn the_entries_before_a_state_make_no_further_state_due() {
    let (origin, log) = started();
    let mut publisher = origin.start(&log, once()).unwrap();
    // The counter has this value after entries of 2 MiB.
    publisher.state.bytes_since = 2 << 20;
    for _ in 2..=4 {
        origin.commit();
        publisher.run(|| ()).unwrap();
        assert_eq!(slots(&log, layout::STATES), [1, 3]);
    }
    assert_eq!(slots(&log, layout::LOG), [1, 2, 3, 4, 5]);
}

#[test]
fn a_lost_or_damaged_state_is_written_again() {
    // The state is that of the last entry, or an older one. A commit waits, or none.
    for (end, is_lost) in [(1, true), (2, true), (1, false), (2, false)] {
        let (origin, log) = (TestOrigin::new(), TestLog::new(OTHER_ID));
        for _ in 1..=end {
            origin.next(&log);
        }
        let mut last = end;
        if is_lost {
            for part in log.bucket().list(layout::PARTS, None).unwrap() {
                log.remove(&part.name);
            }
            last = origin.next(&log) - 1;
            assert!(!entry(&log, last).header.is_state(), "the commit");
        } else {
            log.bucket().put(&layout::state(1), b"rotten").unwrap();
            origin.publish(&log, once()).unwrap();
        }
        assert_eq!(slots(&log, layout::STATES), [1, last + 1]);
        // The next start has nothing to do.
        assert_eq!(origin.publish_counted(&log, once()).unwrap().1, 0);
    }
}

#[test]
fn the_heartbeat_names_a_commit_that_waits() {
    let (origin, log) = started();
    let every = Duration::from_secs(3600);
    let settings = PublishSettings {
        once: false,
        every,
        heartbeat: Duration::ZERO,
        ..once()
    };
    let mut publisher = origin.start(&log, settings).unwrap();
    // The first commit is published at once, the second one waits for an hour.
    for (what, published) in [("the first", true), ("the second", false)] {
        origin.commit();
        publisher.round().unwrap();
        let alive = heartbeat(&log);
        assert_eq!((alive.slot, alive.seq), (2, origin.seq()), "{what} commit");
        assert_eq!(
            entry(&log, 2).header.seq == alive.seq,
            published,
            "{what} commit"
        );
    }
}

#[test]
fn a_note_that_could_not_be_written_is_written_later() {
    let (origin, log) = (TestOrigin::new(), TestLog::new(OTHER_ID));
    let mut publisher = origin.start(&log, once()).unwrap();
    assert_eq!(origin.note().slot, 1);
    origin.commit();
    // A folder has the note's name.
    let path = origin.folder.path().join("origin.redb.published");
    fs::remove_file(&path).unwrap();
    fs::create_dir(&path).unwrap();
    assert_eq!(run(&mut publisher), 2);
    assert!(path.is_dir());
    fs::remove_dir(&path).unwrap();
    publisher.run(|| ()).unwrap();
    assert_eq!((origin.note().slot, origin.note().seq), (2, origin.seq()));
}

#[test]
fn publishing_is_behind_since_the_first_commit_that_waits() {
    let (origin, log) = started();
    let first = now().plus_s(60);
    for minute in 0..3 {
        origin.commit_at(first.plus_s(60 * minute));
    }
    let status = PublicationStatus::read(&origin.path(), &LogReader::new(log.bucket())).unwrap();
    let waiting = status.waiting.unwrap();
    assert!(
        matches!(waiting, Waiting::Commits { count: 3, since, .. } if since == first),
        "{waiting:?} since {first}"
    );
}

#[test]
fn after_a_restore_a_whole_state_is_pending() {
    let (origin, log) = (TestOrigin::new(), TestLog::new(OTHER_ID));
    let waiting = |origin: &TestOrigin| {
        PublicationStatus::read(&origin.path(), &LogReader::new(log.bucket()))
            .unwrap()
            .waiting
            .unwrap()
    };
    origin.publish(&log, once()).unwrap();
    let backup = origin.copy();
    origin.next(&log);
    origin.restore(&backup);
    let expected = (Waiting::State, Waiting::Elsewhere);
    assert_eq!((waiting(&origin), waiting(&backup)), expected);
    origin.publish(&log, once()).unwrap();
    let expected = (Waiting::Nothing, Waiting::Elsewhere);
    assert_eq!((waiting(&origin), waiting(&backup)), expected);
}
