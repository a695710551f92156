//! Replicas of a bucket that moved back, vanished, differs, or is another one.

use std::cell::Cell;
use std::fs;

use super::audit::audit;
use super::*;
use crate::model::RowDigest;
use crate::replicate::frame::Hash;
use crate::replicate::test_log::{ID, TestLog, TestOrigin, once, states_every, time};

const OTHER: Hash = [9; 32];

/// A replica after a slot, without a file. Its last seq is ten times the slot.
fn at(log: &TestLog, slot: u64, hash: Hash) -> Replica {
    let url = log.bucket().url().to_string();
    Replica {
        log: LogReader::new(log.bucket()),
        file: ReplicaFile {
            path: log.folder.path().join("replica.redb"),
            writer: None,
            mark: ReplicaMark {
                url,
                id: ID,
                slot,
                hash,
                digest: RowDigest::default(),
            },
            head: Head {
                seq: slot * 10,
                lineage: [1; 16],
            },
        },
        status: status(),
        confirmed_at: None,
        list_at: Some(Duration::ZERO),
        alive: None,
        next_repair_at: Duration::ZERO,
        failed_load: None,
    }
}

fn status() -> Arc<ReplicaStatus> {
    Arc::new(ReplicaStatus::new(Duration::from_secs(3600)))
}

fn shown<T: std::fmt::Debug>(result: Result<T, ReplicaError>) -> String {
    match result {
        Ok(found) => format!("{found:?}"),
        Err(ReplicaError::Diverged(_)) => "Diverged".to_owned(),
        Err(ReplicaError::Missing { slot, later }) => format!("Missing {slot}, later {later}"),
        Err(ReplicaError::Behind { slot, end, here }) => {
            format!("Behind at {slot}, seq {end} before {here}")
        }
        Err(ReplicaError::Unconfirmed(..)) => "Unconfirmed".to_owned(),
        Err(ReplicaError::Nothing(_)) => "Nothing".to_owned(),
        Err(ReplicaError::OtherDatabase { .. }) => "OtherDatabase".to_owned(),
        Err(error) => format!("{error:?}"),
    }
}

#[test]
fn a_poll_at_the_end_finds_that_the_bucket_moved_back_or_differs() {
    let (log, hashes) = TestLog::up_to(3);
    let end = |slot, hash| shown(at(&log, slot, hash).confirm_end(since_boot()));
    let expected = ("true".into(), "Diverged".into());
    assert_eq!((end(3, hashes[2]), end(3, OTHER)), expected);
    assert_eq!(end(2, hashes[1]), "false", "there is a next entry by now");
    assert_eq!(end(4, OTHER), "Behind at 3, seq 30 before 40");
    log.put_alive(3, hashes[2], 40);
    assert_eq!(end(4, OTHER), "Diverged", "the origin is not behind");
    log.put_alive(2, hashes[1], 20);
    let expected = ("true".into(), "Diverged".into());
    assert_eq!((end(3, hashes[2]), end(3, OTHER)), expected);
    log.put_alive(5, OTHER, 50);
    assert_eq!(end(3, hashes[2]), "Missing 4, later 5");
    log.remove(layout::ALIVE);
    assert_eq!(end(3, hashes[2]), "Unconfirmed");
    log.empty();
    assert_eq!(end(3, hashes[2]), "Unconfirmed");
}

#[test]
fn an_end_in_doubt_counts_as_seen_only_until_the_heartbeat_last_agreed() {
    let stale = |replica: &Replica| {
        replica.status.note_end_loaded();
        replica.status.stale_for()
    };
    for (has_heartbeat, expected) in [
        (false, "Unconfirmed"),
        (true, "Behind at 2, seq 20 before 30"),
    ] {
        let (log, hashes) = TestLog::up_to(3);
        let mut replica = at(&log, 3, hashes[2]);
        let asked = since_boot();
        assert_eq!(shown(replica.confirm_end(asked)), "true");
        assert!(stale(&replica).is_some());
        // Until the next check of the heartbeat, an empty slot is enough.
        log.remove(layout::ALIVE);
        log.remove(&layout::log(3));
        if has_heartbeat {
            log.put_alive(2, hashes[1], 20);
        }
        assert_eq!(shown(replica.confirm_end(since_boot())), "true");
        replica.list_at = Some(Duration::ZERO);
        assert_eq!(shown(replica.confirm_end(since_boot())), expected);
        assert!(replica.list_at.is_some(), "the next poll checks again");
        let stale_for = stale(&replica);
        assert!(
            stale_for.is_some_and(|stale| stale + Duration::from_millis(1) >= since_boot() - asked)
        );
        (replica.confirmed_at, replica.list_at) = (None, Some(Duration::ZERO));
        assert_eq!(shown(replica.confirm_end(since_boot())), expected);
        assert_eq!(stale(&replica), None, "{expected}: it never agreed");
    }
}

#[test]
fn an_older_heartbeat_that_is_put_back_decides_nothing() {
    let (log, hashes) = TestLog::up_to(3);
    let mut replica = at(&log, 3, hashes[2]);
    assert_eq!(shown(replica.check_heartbeat()), "true");
    let found = shown(replica.check_heartbeat());
    assert_eq!(found, "true", "the same one again");
    let known = replica.alive.clone().unwrap();
    // The slot and the time of the one that is known.
    for (slot, later_s, expected) in [
        (3, 1, "Unconfirmed"),
        (3, 0, "true"),
        (3, -1, "true"),
        (4, 1, "Unconfirmed"),
        (4, -1, "true"),
        // A publisher whose clock was ahead was replaced.
        (2, 3600, "true"),
    ] {
        replica.alive = Some(Heartbeat {
            slot,
            at: time().plus_s(later_s),
            ..known.clone()
        });
        let found = shown(replica.check_heartbeat());
        assert_eq!(found, expected, "{slot} {later_s}");
    }
    // Old ones that return in their order are each later than the one before, but the publisher is still silent.
    std::thread::sleep(Duration::from_millis(20));
    let silent = replica.status.silent_for();
    for later_s in [-2, -1] {
        let old = Heartbeat {
            at: time().plus_s(later_s),
            ..known.clone()
        };
        log.bucket()
            .put(layout::ALIVE, &old.encode().unwrap())
            .unwrap();
        assert_eq!(shown(replica.check_heartbeat()), "Unconfirmed", "{later_s}");
        assert!(replica.status.silent_for() >= silent, "{later_s}");
    }
    assert_eq!(replica.alive, Some(known));
}

#[test]
fn a_token_of_a_commit_that_waits_to_be_published_is_not_lost() {
    let (log, hashes) = TestLog::up_to(3);
    let mut replica = at(&log, 3, hashes[2]);
    // The origin's last seq is 40, and its log ends with seq 30.
    log.put_alive(3, hashes[2], 40);
    let alive = replica.log.heartbeat_for(&replica.file.mark).unwrap();
    let lost = |replica: &Replica| [31, 40, 41].map(|seq| replica.status.ask_if_lost(seq));
    assert_eq!(lost(&replica), [false; 3]);
    for later_s in 1..=4 {
        let later = Heartbeat {
            at: time().plus_s(later_s),
            ..alive.clone()
        };
        log.bucket()
            .put(layout::ALIVE, &later.encode().unwrap())
            .unwrap();
        assert_eq!(shown(replica.check_heartbeat()), "true");
        assert_eq!(lost(&replica), [false, false, later_s >= 3], "{later_s}");
    }
}

/// A published database, and its bucket.
struct Origin {
    base: TestOrigin,
    log: TestLog,
}

impl Origin {
    fn new() -> Origin {
        let origin = Origin {
            base: TestOrigin::new(),
            log: TestLog::new(ID),
        };
        origin.base.publish(&origin.log, once()).unwrap();
        origin
    }

    /// A copy of the database and its bucket. From here on they have different histories.
    fn fork(&self) -> Origin {
        let fork = Origin {
            base: self.base.copy(),
            log: TestLog::new(ID),
        };
        self.log.copy_to(&fork.log);
        fork
    }

    fn at(&self, name: &str) -> PathBuf {
        self.base.at(name)
    }

    /// Adds a state at the end of the log.
    fn add_state(&self) {
        let settings = states_every(Duration::ZERO);
        self.base.publish(&self.log, settings).unwrap();
    }

    fn commit(&self) {
        self.base.next(&self.log);
    }

    /// Restores the database and publishes it: a state that continues the log from other rows.
    fn restore(&self) {
        self.base.restore(&self.base.copy());
        self.base.publish(&self.log, once()).unwrap();
    }

    fn start(&self, log: &TestLog) -> Result<Replica, ReplicaError> {
        Replica::start(
            LogReader::new(log.bucket()),
            &self.at("replica.redb"),
            status(),
            &|| true,
        )
    }
}

fn polled(replica: &mut Replica) -> (u64, Option<String>) {
    replica.list_at.get_or_insert(Duration::ZERO);
    replica.next_repair_at = Duration::ZERO;
    replica.poll(&|| true);
    let progress = replica.status.progress();
    (progress.slot, progress.error)
}

#[test]
fn a_replica_never_goes_back_to_an_older_state() {
    let origin = Origin::new();
    let first = LogReader::new(origin.log.bucket())
        .entry(1)
        .unwrap()
        .expect("an entry")
        .hash;
    origin.commit();
    origin.commit();
    let mut replica = origin.start(&origin.log).unwrap();
    assert_eq!(polled(&mut replica), (3, None));
    let head = replica.file.head;
    for slot in 2..=3 {
        origin.log.remove(&layout::log(slot));
    }
    // A heartbeat whose seq is not older: only the loaded rows show that the bucket is an older one.
    let alive = LogReader::new(origin.log.bucket())
        .heartbeat()
        .unwrap()
        .expect("a heartbeat");
    let alive = Heartbeat {
        slot: 1,
        hash: first,
        seq: head.seq,
        at: alive.at.plus_s(1),
        ..alive
    };
    origin
        .log
        .bucket()
        .put(layout::ALIVE, &alive.encode().unwrap())
        .unwrap();
    for is_restarted in [false, true] {
        if is_restarted {
            drop(replica);
            replica = origin.start(&origin.log).unwrap();
        }
        replica.failed_load = None;
        let (slot, error) = polled(&mut replica);
        assert!(
            slot == 3
                && error
                    .as_ref()
                    .is_some_and(|error| error.contains("never goes back")),
            "{error:?}"
        );
        let found = ReplicaWriter::open(&origin.at("replica.redb"))
            .err()
            .map(|_| ());
        assert_eq!(found, Some(()), "it is still open");
        assert_eq!(replica.file.head, head);
    }
    drop(replica);
    assert_eq!(
        ReplicaWriter::open(&origin.at("replica.redb"))
            .unwrap()
            .head()
            .unwrap()
            .head(),
        head
    );
}

#[test]
fn a_replica_does_not_follow_the_bucket_of_another_database() {
    let (origin, other) = (Origin::new(), Origin::new());
    origin.commit();
    assert_eq!(polled(&mut origin.start(&origin.log).unwrap()), (2, None));
    for commits in 0..4 {
        let message = origin.start(&other.log).unwrap_err().to_string();
        assert!(
            message.contains("but the file is a replica of"),
            "{commits} commits: {message}"
        );
        other.commit();
    }
    // Also if the other bucket has no manifest.
    other.log.remove(&layout::state(1));
    let message = origin.start(&other.log).unwrap_err().to_string();
    assert!(
        message.contains("but the file is a replica of"),
        "{message}"
    );
    assert_eq!(polled(&mut origin.start(&origin.log).unwrap()), (2, None));
}

#[test]
fn a_replica_moves_to_a_second_bucket_of_its_database() {
    let origin = Origin::new();
    origin.commit();
    assert_eq!(polled(&mut origin.start(&origin.log).unwrap()), (2, None));
    let second = TestLog::new(ID);
    origin.base.publish(&second, once()).unwrap();
    let mut replica = origin.start(&second).unwrap();
    let found = polled(&mut replica);
    assert_eq!(found, (1, None), "the slots of the second bucket");
    assert_eq!(replica.file.mark.url, second.bucket().url().to_string());
    assert_eq!(replica.status.progress().loads, 1);
}

#[test]
fn a_load_that_fails_pauses_longer_each_time() {
    let origin = Origin::new();
    let mut replica = origin.start(&origin.log).unwrap();
    let copy = TestLog::new(ID);
    origin.log.copy_to(&copy);
    origin.log.empty();
    for expected_s in [1, 2, 4, 8, 16, 32, 60, 60] {
        for is_paused in [false, true] {
            let failed = replica.load_in_place(&|| true);
            let found = matches!(failed, Err(ReplicaError::Paused(_)));
            assert_eq!(found, is_paused, "{failed:?}");
        }
        let failed = replica.failed_load.as_mut().unwrap();
        assert_eq!(failed.pause, Duration::from_secs(expected_s));
        failed.until = Duration::ZERO;
    }
    copy.copy_to(&origin.log);
    assert!(replica.load_in_place(&|| true).is_ok());
    assert!(replica.failed_load.is_none(), "a success ends it");
}

#[test]
fn slots_that_were_reused_during_an_outage_are_no_end_of_the_log() {
    let origin = Origin::new();
    origin.commit();
    let fork = origin.fork();
    let mut replica = origin.start(&origin.log).unwrap();
    assert_eq!(polled(&mut replica), (2, None));
    for _ in 3..=4 {
        origin.commit();
    }
    origin.add_state();
    // The entries before the state are deleted. Then a stalled publisher finds the slot of its next entry free.
    fork.commit();
    for slot in 1..=3 {
        origin.log.remove(&layout::log(slot));
    }
    let stray = fork.log.bucket().get(&layout::log(3)).unwrap().unwrap();
    origin
        .log
        .bucket()
        .put(&layout::log(3), &stray.bytes)
        .unwrap();
    // The state does not follow from it.
    assert_eq!(polled(&mut replica), (5, None));
    let loads = replica.status.progress().loads;
    assert_eq!(loads, 2, "the first load, and the newest state");
}

#[test]
fn an_entry_that_the_next_one_does_not_follow_is_not_shown() {
    let origin = Origin::new();
    let fork = origin.fork();
    let mut replica = origin.start(&origin.log).unwrap();
    for _ in 2..=3 {
        origin.commit();
    }
    fork.commit();
    let stray = fork.log.bucket().get(&layout::log(2)).unwrap().unwrap();
    let bucket = origin.log.bucket();
    bucket.put(&layout::log(2), &stray.bytes).unwrap();
    let (slot, error) = polled(&mut replica);
    let error = error.unwrap_or_default();
    assert!(slot == 1, "{slot} {error}");
    assert!(error.contains(&layout::log(3)), "{slot} {error}");
    origin.add_state();
    assert_eq!(polled(&mut replica), (4, None));
}

#[test]
fn an_entry_after_a_long_sleep_is_shown_only_after_the_heartbeat_agrees() {
    let long_ago = || since_boot().checked_sub(CONFIRMED_FOR);
    let cases = [
        ("a recent end", Some(since_boot()), true),
        ("an old end", long_ago(), false),
        ("no end", None, false),
    ];
    for (case, confirmed_at, expected) in cases {
        let origin = Origin::new();
        let mut replica = origin.start(&origin.log).unwrap();
        replica.status.note_end_loaded();
        assert!(replica.status.unfit().is_none(), "{case}");
        replica.confirmed_at = confirmed_at;
        origin.commit();
        let status = Arc::clone(&replica.status);
        let was_fit = Cell::new(None);
        // It is asked right after each entry.
        let keep_going = || {
            was_fit.set(Some(status.unfit().is_none()));
            true
        };
        replica.advance_or_reload(&keep_going).unwrap();
        assert_eq!(was_fit.get(), Some(expected), "{case}");
        replica.status.note_end_loaded();
        assert!(
            replica.status.unfit().is_none(),
            "{case}: the heartbeat agrees"
        );
    }
}

#[test]
fn a_replica_that_moves_to_a_copy_of_its_bucket_stores_the_new_url() {
    let origin = Origin::new();
    drop(origin.start(&origin.log).unwrap());
    origin.commit();
    let copy = TestLog::new(ID);
    origin.log.copy_to(&copy);
    let mut replica = origin.start(&copy).unwrap();
    assert_eq!(
        (polled(&mut replica), replica.status.progress().loads),
        ((2, None), 0)
    );
    let (mark, _) = read_replica(&origin.at("replica.redb")).unwrap();
    assert_eq!(mark.url, copy.bucket().url().to_string());
}

#[test]
fn an_unusable_entry_is_repaired_by_a_later_state() {
    for damaged in [None, Some(b"damaged")] {
        let origin = Origin::new();
        let mut replica = origin.start(&origin.log).unwrap();
        origin.commit();
        origin.add_state();
        origin.commit();
        match damaged {
            None => origin.log.remove(&layout::log(2)),
            Some(bytes) => origin.log.bucket().put(&layout::log(2), bytes).unwrap(),
        }
        assert_eq!(polled(&mut replica), (4, None), "{damaged:?}");
    }
}

#[test]
fn an_unusable_state_is_passed_over_for_a_later_one() {
    for lost in [layout::state(3), layout::state(2)] {
        let origin = Origin::new();
        let mut replica = origin.start(&origin.log).unwrap();
        (2..=4).for_each(|_| origin.restore());
        origin.log.remove(&lost);
        assert_eq!(polled(&mut replica), (4, None), "without {lost}");
    }
}

#[test]
fn a_load_that_failed_delays_no_later_repair() {
    let origin = Origin::new();
    let mut replica = origin.start(&origin.log).unwrap();
    origin.restore();
    let log = LogReader::new(origin.log.bucket());
    let part = log.manifest(2).unwrap().expect("a state").parts.remove(0);
    let bytes = log.bucket.get(&part.name).unwrap().expect("a part").bytes;
    origin.log.remove(&part.name);
    // The older state leads to the same one.
    let (slot, error) = polled(&mut replica);
    assert!(slot == 1 && error.is_some_and(|error| error.contains(&part.name)));
    assert_eq!(
        replica.next_repair_at,
        Duration::ZERO,
        "no repair was tried"
    );
    log.bucket.put(&part.name, &bytes).unwrap();
    replica.failed_load.as_mut().expect("it is noted").until = Duration::ZERO;
    assert_eq!(polled(&mut replica), (2, None));
}

#[test]
fn a_new_replica_does_not_end_before_the_newest_state() {
    let origin = Origin::new();
    origin.commit();
    origin.commit();
    origin.add_state();
    // The state cannot be read, and without a heartbeat the end of the log is unknown.
    origin
        .log
        .bucket()
        .put(&layout::state(4), b"damaged")
        .unwrap();
    origin.log.remove(layout::ALIVE);
    let (slot, _) = polled(&mut origin.start(&origin.log).unwrap());
    assert_eq!(slot, 4, "the first state, and the entries after it");
    fs::remove_file(origin.at("replica.redb")).unwrap();
    for lost in [2, 3] {
        origin.log.remove(&layout::log(lost));
        let found = shown(origin.start(&origin.log).map(|_| ()));
        assert_eq!(found, "Missing 2, later 4", "without entry {lost}");
    }
}

#[test]
fn a_repair_that_does_not_last_is_not_made_again_at_once() {
    let origin = Origin::new();
    let mut replica = origin.start(&origin.log).unwrap();
    origin.commit();
    origin.add_state();
    origin.log.remove(&layout::log(2));
    assert_eq!(polled(&mut replica), (3, None));
    assert!(replica.next_repair_at > since_boot() + REPAIR_EVERY / 2);
}

#[test]
fn a_new_replica_passes_over_a_state_of_another_history() {
    for last in [3, 4] {
        let origin = Origin::new();
        origin.commit();
        origin.add_state();
        (3..last).for_each(|_| origin.commit());
        let bucket = origin.log.bucket();
        let mut manifest = LogReader::new(origin.log.bucket())
            .manifest(3)
            .unwrap()
            .expect("a state");
        manifest.entry_hash = OTHER;
        bucket
            .put(&layout::state(3), &manifest.encode().unwrap())
            .unwrap();
        let expected = (last, None);
        assert_eq!(polled(&mut origin.start(&origin.log).unwrap()), expected);
    }
}

#[test]
fn a_replica_in_step_does_not_load_a_state() {
    let origin = Origin::new();
    let mut replica = origin.start(&origin.log).unwrap();
    origin.commit();
    origin.add_state();
    origin.commit();
    // Not even the manifest of the state is needed.
    origin.log.remove(&layout::state(3));
    assert_eq!(
        (polled(&mut replica), replica.status.progress().loads),
        ((4, None), 1)
    );
}

#[test]
fn a_log_without_a_whole_state_that_it_needs_is_refused_with_the_name_of_that_state() {
    /// Prepares a log, and says which object `check` and a new replica name; without an object, that nothing is
    /// published.
    type Case = (&'static str, fn(&Origin), Option<String>);
    let cases: [Case; 4] = cases![
        // As after a publisher that was killed between the entry and the manifest.
        "the last entry is a state that replaces the rows",
        |origin| {
            origin.restore();
            origin.log.remove(&layout::state(3));
        },
        Some(layout::state(3));
        "there are only entries", |origin| origin.log.remove(&layout::state(1)), Some(layout::state(1));
        "there are only later entries",
        |origin| {
            origin.log.remove(&layout::state(1));
            origin.log.remove(&layout::log(1));
        },
        Some(layout::state(2));
        "there is nothing", |origin| origin.log.empty(), None;
    ];
    for (what, prepare, expected) in cases {
        let origin = Origin::new();
        origin.commit();
        prepare(&origin);
        let path = origin.at("checked.redb");
        let audited = audit(&LogReader::new(origin.log.bucket()), &path).map(drop);
        for refused in [audited, origin.start(&origin.log).map(drop)] {
            let name = match refused {
                Err(ReplicaError::Object { name, detail }) if detail.contains("it is missing") => {
                    Some(name)
                }
                Err(ReplicaError::Nothing(_)) => None,
                other => panic!("{what}: {other:?}"),
            };
            assert_eq!(name, expected, "{what}");
        }
    }
}

#[test]
fn a_replica_whose_file_is_damaged_ends_with_what_to_do() {
    let origin = Origin::new();
    let mut replica = origin.start(&origin.log).unwrap();
    origin.commit();
    // As redb does on a damaged page. Afterwards this process keeps the lock of the file.
    assert!(
        !replica.poll(&|| panic!("a damaged page")),
        "it does not poll again"
    );
    let error = replica.status.progress().error.unwrap();
    assert!(error.contains("a damaged page"), "{error}");
    assert!(error.contains("remove the file"), "{error}");
}

#[test]
fn the_entry_of_a_promotion_does_not_stay_in_a_gap() {
    for (last, is_in_gap) in [(1, false), (3, true)] {
        let (log, hashes) = TestLog::up_to(last);
        log.remove(&layout::log(2));
        let own = log.put(2, hashes[0], "replica");
        let replica = at(&log, 1, hashes[0]);
        assert_eq!(replica.leave_gap(2, own).unwrap(), is_in_gap);
        assert_eq!(replica.log.entry(2).unwrap().is_none(), is_in_gap);
    }
}
