//! Buckets that fail, and publishers that are killed: nothing is lost, and the log stays one line.

use std::time::Duration;

use medfeed::replicate::layout;
use medfeed::store::Reader;
use medfeed::store::replication::PublishedNote;

use super::faults::Disk;
use super::published::{Place, note};
use super::publishing::{commit, curated, in_folder, in_s3};
use super::s3::{Fault, S3};
use super::site::{SOON, wait_until};

#[test]
fn a_full_folder_asks_for_room() {
    let (site, place) = in_folder();
    std::fs::create_dir_all(site.path("bucket")).unwrap();
    let Some(disk) = Disk::mount(&site.path("bucket"), 1 << 20) else {
        return;
    };
    disk.fill(0);
    let done = place.run(&site, "--once");
    let told = "No space left on device; free some room on the disk";
    done.assert_told(3, told);
    assert!(!done.stderr.contains(".draft-"), "{done:?}");
    disk.free_all();
    assert_eq!(place.once(&site), 1);
}

#[test]
fn a_publisher_of_a_failing_store_loses_nothing_and_does_not_fork() {
    // The error codes of S3, faults of several attempts, slow answers, and faults of a sweep. `publishing_network` has
    // the others.
    let cases = cases![
        "PUT", "/log/", Fault::LostAnswer, 3;
        "PUT", "/log/", Fault::Code(409, "ConditionalRequestConflict"), 2;
        "PUT", "/states/", Fault::Code(409, "ConditionalRequestConflict"), 2;
        "PUT", "/parts/", Fault::Code(409, "ConditionalRequestConflict"), 1;
        "PUT", "probe", Fault::Code(409, "ConditionalRequestConflict"), 1;
        "DELETE", "probe", Fault::Code(409, "OperationAborted"), 1;
        "PUT", "/alive", Fault::Code(409, "OperationAborted"), 1;
        "GET", "prefix", Fault::Status(503), 3;
        "PUT", "/log/", Fault::Held, 1;
        "PUT", "/parts/", Fault::Waiting, 1;
        "DELETE", "/states/", Fault::Status(503), 1;
        "DELETE", "/parts/", Fault::LostAnswer, 2;
    ];
    // Most of the time is spent in pauses between attempts.
    std::thread::scope(|scope| {
        for some in cases.chunks(cases.len().div_ceil(4)) {
            scope.spawn(|| some.iter().for_each(publish_with_fault));
        }
    });
}

fn publish_with_fault((method, name, fault, times): &(&str, &str, Fault, usize)) {
    let (s3, site, place) = in_s3();
    // The first deletes come with the third entry.
    let rounds = if *method == "DELETE" { 3 } else { 2 };
    for round in 1..=rounds {
        // Old enough to be swept.
        s3.age(Duration::from_secs(2 * 86_400));
        s3.fail(method, name, *fault, *times);
        let what = format!("{method} {name}: {fault:?}, round {round}");
        let mut publisher = place.spawn(&site, "--once --state-every 0s --keep 1d");
        if matches!(fault, Fault::Held | Fault::Waiting) {
            s3.wait_for_held();
            s3.release();
        }
        let ended = publisher.ended_within(3 * SOON).expect("it ends");
        assert_eq!(ended.code(), Some(0), "{what}");
        s3.heal();
        // After each commit, the publisher writes a state.
        let (first, last) = (if round < 3 { 1 } else { 2 * round - 3 }, 2 * round - 1);
        let slots = place.slots(layout::LOG);
        assert_eq!(slots, (first..=last).collect::<Vec<_>>(), "{what}");
        assert_eq!(note(&site).slot, last, "{what}");
        if round < rounds {
            commit(&site, round);
        }
    }
    place.check(&site);
}

#[test]
fn a_publisher_that_may_not_delete_publishes_on() {
    let (s3, site, place) = in_s3();
    let publish = |version| {
        commit(&site, version);
        s3.age(Duration::from_secs(2 * 86_400));
        place.run(&site, "--once --state-every 0s --keep 1d --log warn")
    };
    (1..=2).for_each(|version| assert_eq!(publish(version).code, Some(0)));
    s3.fail("DELETE", "/states/", Fault::Status(403), 1);
    let done = publish(3);
    assert!(
        done.code == Some(0)
            && done
                .stderr
                .matches("old objects stay in the bucket")
                .count()
                == 1,
        "{done:?}"
    );
    let published = note(&site).slot;
    assert_eq!(
        place.slots(layout::LOG),
        (1..=published).collect::<Vec<_>>(),
        "no later object is deleted"
    );
    // The next sweep deletes them.
    assert_eq!(publish(4).code, Some(0));
    assert_eq!(place.slots(layout::STATES).len(), 2);
    place.check(&site);
}

/// A request has more than half a minute, so this test runs only if `MEDFEED_CASES` is set.
#[test]
fn a_request_without_an_answer_times_out_and_is_repeated() {
    if std::env::var_os("MEDFEED_CASES").is_none() {
        return;
    }
    std::thread::scope(|scope| {
        for (method, name, fault) in [
            ("PUT", "/log/", Fault::Held),
            ("PUT", "/log/", Fault::Waiting),
            ("PUT", "/parts/", Fault::Held),
            ("PUT", "/states/", Fault::Waiting),
            ("GET", "states", Fault::Waiting),
        ] {
            scope.spawn(move || {
                let (s3, site, place) = in_s3();
                let mut publisher = place.spawn(&site, "");
                s3.fail(method, name, fault, 1);
                s3.wait_for_held();
                s3.wait_for_none_held_within(3 * SOON);
                commit(&site, 1);
                let head = Reader::open(&site.db()).unwrap().newest().commit().seq;
                wait_until("all is published", 3 * SOON, || {
                    let noted = PublishedNote::read(&site.db()).unwrap();
                    noted.is_some_and(|note| note.seq == head).then_some(())
                });
                wait_until("a heartbeat", 3 * SOON, || {
                    place.bucket.get(layout::ALIVE).unwrap()
                });
                publisher.kill();
                let slots = place.slots(layout::LOG);
                assert!(
                    slots.iter().copied().eq(1..=place.check(&site).slot),
                    "{method} {name} {fault:?}: {slots:?}"
                );
            });
        }
    });
}

#[test]
fn a_store_that_creates_a_name_twice_is_refused() {
    for what in ["ignores", "races"] {
        let (s3, site) = (S3::start(), curated());
        match what {
            "ignores" => s3.ignore_conditions(),
            _ => s3.race(),
        }
        let place = Place::s3(&s3);
        let refused = place.run(&site, "--once");
        refused.assert_told(1, "let several clients create");
        assert!(
            Reader::open(&site.db())
                .unwrap()
                .origin()
                .unwrap()
                .id()
                .unwrap()
                .is_none(),
            "{what}: it is not marked"
        );
        assert!(s3.names().is_empty(), "{what}: {:?}", s3.names());
    }
}
