//! Whole states: their parts, entries and manifests.

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
fn commits_during_a_state_are_published_after_it() {
    let (s3, site) = (S3::start(), curated());
    let place = Place::s3(&s3);
    place.once(&site);
    let mut publisher = place.start(&site, "--every 0s --state-every 0s --heartbeat 50ms");
    s3.fail("PUT", "/parts/", Fault::Held, 1);
    commit(&site, 1);
    s3.wait_for_held();
    for version in 2..=3 {
        commit(&site, version);
    }
    assert_eq!((place.slots(layout::LOG), place.slots(layout::STATES)), (vec![1, 2], vec![1]));
    s3.release();
    let (_, head, _) = rows_of(&site.db());
    wait_until("the commits are published", SOON, || (note(&site).seq == head.seq).then_some(()));
    publisher.signal("TERM");
    assert_eq!(publisher.ended_within(SOON).and_then(|status| status.code()), Some(0));
    let (state, before) = (place.entry(3).header, place.entry(2).header);
    assert!(state.is_state() && !state.replaces(before.head(), before.digest), "{state:?} is that after {before:?}");
    assert!(!place.entry(4).header.is_state());
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
    let fat = conferences_of_version(2000, 1).replace("version 1", &"hall ".repeat(900));
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
