//! Whole states beside the log: entries do not wait for them.

use medfeed::replicate::layout;

use super::published::{Place, note, rows_of};
use super::publishing::{commit, curated};
use super::s3::{Fault, S3};
use super::site::{SOON, conferences_of_version, wait_until};

/// The parts that were put so far, by their slots.
fn slots_of_parts(s3: &S3) -> Vec<u64> {
    let requests = s3.requests();
    let names = requests.iter().filter_map(|asked| asked.strip_prefix("PUT feed/some/prefix/"));
    names.filter_map(|name| Some(layout::parse_part(name)?.slot)).collect()
}

#[test]
fn entries_go_on_while_a_state_goes_out() {
    let (s3, site) = (S3::start(), curated());
    let place = Place::s3(&s3);
    place.once(&site);
    let mut publisher = place.start(&site, "--every 0s --state-every 0s --heartbeat 50ms");
    s3.fail("PUT", "/parts/", Fault::Held, 1);
    commit(&site, 1);
    s3.wait_for_held();
    for version in 2..=4 {
        commit(&site, version);
        let (_, head, _) = rows_of(&site.db());
        wait_until("the commit is published", SOON, || (note(&site).seq == head.seq).then_some(()));
    }
    let last = note(&site).slot;
    assert!(last >= 3, "{last}");
    assert_eq!(place.slots(layout::STATES), [1], "it is not there yet");
    assert_eq!(slots_of_parts(&s3), [1, 2], "there is never more than one on its way");
    s3.release();
    let states = || Some(place.slots(layout::STATES)).filter(|states| states.last() == Some(&last));
    let states = wait_until("the next state", SOON, states);
    assert_eq!(states[..2], [1, 2], "the state of the slot at which it began");
    publisher.signal("TERM");
    assert_eq!(publisher.ended_within(SOON).and_then(|status| status.code()), Some(0));
    for slot in states {
        let (manifest, entry) = (place.manifest(slot), place.entry(slot));
        assert_eq!((manifest.entry_hash, manifest.digest), (entry.hash, entry.header.digest), "slot {slot}");
    }
    place.check(&site);
}

#[test]
fn a_state_entry_waits_for_the_state_beside() {
    let (s3, site) = (S3::start(), curated());
    let place = Place::s3(&s3);
    place.once(&site);
    let backup = site.backup("older.redb");
    let mut publisher = place.start(&site, "--every 0s --state-every 0s");
    s3.fail("PUT", "/parts/", Fault::Held, 1);
    commit(&site, 1);
    s3.wait_for_held();
    site.json(["restore".as_ref(), backup.as_os_str(), "--yes".as_ref()]);
    let (_, head, _) = rows_of(&site.db());
    s3.release();
    wait_until("the restored state is published", SOON, || (note(&site).seq == head.seq).then_some(()));
    publisher.kill();
    assert_eq!(slots_of_parts(&s3), [1, 2, 3], "one after the other");
    assert!(place.entry(3).header.is_state());
    place.check(&site);
}

#[test]
fn a_state_that_lacks_its_manifest_is_followed_by_another() {
    let (s3, site) = (S3::start(), curated());
    let place = Place::s3(&s3);
    let backup = site.backup("older.redb");
    let restore = || site.json(["restore".as_ref(), backup.as_os_str(), "--yes".as_ref()]);
    for (before, put) in [(&[][..], 1), (&[2], 3)] {
        if put > 1 {
            restore();
        }
        s3.fail("PUT", "/states/", Fault::Status(403), usize::MAX);
        let done = place.run(&site, "--once");
        assert!(done.code == Some(1) && done.stderr.contains("403"), "{done:?}");
        assert!(place.entry(put).header.is_state() && place.slots(layout::STATES) == before, "the entry alone");
        s3.heal();
        let done = place.run(&site, "--once");
        assert!(done.code == Some(0) && !done.stderr.contains("missing"), "{done:?}");
        assert_eq!(place.slots(layout::LOG).last(), Some(&(put + 1)), "another entry");
        assert_eq!(place.slots(layout::STATES).last(), Some(&(put + 1)), "and its manifest");
        place.check(&site);
    }
}

#[test]
fn several_parts_are_on_their_way_at_once() {
    let (s3, site) = (S3::start(), curated());
    let place = Place::s3(&s3);
    // More than one part of 8 MiB.
    let fat = conferences_of_version(3000, 1).replace("version 1", &"hall ".repeat(900));
    site.import("conferences.jsonl", fat);
    s3.fail("PUT", "/parts/", Fault::Held, 1);
    let mut publisher = place.spawn(&site, "--once");
    s3.wait_for_held();
    wait_until("another part", SOON, || (slots_of_parts(&s3).len() > 1).then_some(()));
    s3.release();
    assert_eq!(publisher.ended_within(SOON).and_then(|status| status.code()), Some(0));
    let parts = place.manifest(1).parts;
    assert!(parts.len() > 1, "{}", parts.len());
    place.check(&site);
}

#[test]
fn a_part_that_cannot_be_put_is_tried_again() {
    let (s3, site) = (S3::start(), curated());
    let place = Place::s3(&s3);
    place.once(&site);
    for fault in [Fault::Status(503), Fault::LostAnswer, Fault::Status(403)] {
        let publisher = place.start(&site, "--every 0s --state-every 0s");
        s3.fail("PUT", "/parts/", fault, 2);
        let before = place.slots(layout::STATES).len();
        commit(&site, before as u64);
        wait_until("the state", SOON, || (place.slots(layout::STATES).len() > before).then_some(()));
        drop(publisher);
        s3.heal();
    }
    place.check(&site);
}

#[test]
fn a_compaction_needs_no_state() {
    let (s3, site) = (S3::start(), curated());
    let place = Place::s3(&s3);
    place.once(&site);
    let mut publisher = place.start(&site, "--every 0s");
    for version in [1, 3, 5] {
        // What waits is kept, too.
        s3.fail("PUT", "/log/", Fault::Status(503), 3);
        commit(&site, version);
        site.json(["compact"]);
        commit(&site, version + 1);
        let (_, head, _) = rows_of(&site.db());
        wait_until("all is published", SOON, || (note(&site).seq == head.seq).then_some(()));
    }
    publisher.kill();
    let entries = place.slots(layout::LOG);
    assert!(entries.len() > 3, "{entries:?}");
    for slot in &entries[1..] {
        assert!(!place.entry(*slot).header.is_state(), "slot {slot}");
    }
    place.check(&site);
}
