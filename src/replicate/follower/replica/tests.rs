//! Replicas of a bucket that moved back, vanished, differs, or is another one; and several processes with one file.

use std::cell::{Cell, RefCell};
use std::fs;

use super::*;
use crate::model::{RowDigest, Scope};
use crate::replicate::follower::FollowLimits;
use crate::replicate::frame::Hash;
use crate::replicate::publisher::{PublishSettings, Publisher};
use crate::replicate::test_log::{ID, OTHER_ID, TestLog, time};
use crate::store::Writer;
use crate::store::write::licensing::KeySettings;

const OTHER: Hash = [9; 32];

/// A replica after a slot, without a file. Its last seq is ten times the slot.
fn at(log: &TestLog, slot: u64, hash: Hash) -> Replica {
    let url = log.bucket().url().to_string();
    Replica {
        log: LogReader::new(log.bucket()),
        path: log.folder.path().join("replica.redb"),
        writer: None,
        is_standby: false,
        mark: ReplicaMark { url, id: ID, slot, hash, digest: RowDigest::default() },
        head: Head { seq: slot * 10, lineage: [1; 16] },
        status: status(),
        is_path_verified: false,
        path_verified_at: Duration::ZERO,
        read_at: Duration::ZERO,
        reverify_after: REVERIFY_AFTER,
        is_log_listed: false,
        alive: None,
        confirmed_at: None,
        next_heartbeat_check: Duration::ZERO,
        next_repair_at: Duration::ZERO,
        failed_load: None,
        last_applied: None,
    }
}

fn status() -> Arc<ReplicaStatus> {
    Arc::new(ReplicaStatus::new(FollowLimits::new(Duration::from_secs(3600), None)))
}

fn shown<T: std::fmt::Debug>(result: Result<T, FollowError>) -> String {
    match result {
        Ok(found) => format!("{found:?}"),
        Err(FollowError::Diverged(_)) => "Diverged".to_owned(),
        Err(FollowError::Missing { slot, later }) => format!("Missing {slot}, later {later}"),
        Err(FollowError::Behind { slot, end, here }) => format!("Behind at {slot}, seq {end} before {here}"),
        Err(FollowError::Unconfirmed(..)) => "Unconfirmed".to_owned(),
        Err(FollowError::Nothing(_)) => "Nothing".to_owned(),
        Err(FollowError::OtherDatabase { .. }) => "OtherDatabase".to_owned(),
        Err(error) => format!("{error:?}"),
    }
}

fn verified(log: &TestLog, slot: u64, hash: Hash) -> String {
    shown(at(log, slot, hash).verify_path(&|| true))
}

#[test]
fn a_start_compares_the_hash_of_the_last_entry() {
    let (log, hashes) = TestLog::up_to(3);
    assert_eq!(verified(&log, 3, hashes[2]), "()");
    assert_eq!(verified(&log, 3, OTHER), "Diverged", "after the newest state");
    assert_eq!((verified(&log, 1, hashes[0]), verified(&log, 1, OTHER)), ("()".into(), "Diverged".into()));
    log.put_manifest(3, hashes[2], Vec::new());
    assert_eq!((verified(&log, 3, hashes[2]), verified(&log, 3, OTHER)), ("()".into(), "Diverged".into()));
    assert_eq!((verified(&log, 2, hashes[1]), verified(&log, 2, OTHER)), ("()".into(), "Diverged".into()));
    for slot in [1, 3] {
        log.remove(&layout::state(slot));
    }
    assert_eq!((verified(&log, 3, hashes[2]), verified(&log, 3, OTHER)), ("()".into(), "Diverged".into()));
}

#[test]
fn a_start_finds_that_the_bucket_is_empty() {
    let (log, hashes) = TestLog::up_to(3);
    let alive = log.bucket().get(layout::ALIVE).unwrap().unwrap().bytes;
    log.empty();
    assert_eq!(verified(&log, 3, hashes[2]), "Nothing");
    // Even if its heartbeat names the last entry.
    log.bucket().put(layout::ALIVE, &alive).unwrap();
    assert_eq!(verified(&log, 3, hashes[2]), "Nothing");
}

#[test]
fn a_start_finds_that_the_bucket_moved_back() {
    let (log, _) = TestLog::up_to(3);
    assert_eq!(verified(&log, 5, OTHER), "Behind at 3, seq 30 before 50");
    assert_eq!(verified(&log, 4, OTHER), "Behind at 3, seq 30 before 40");
    // The origin's seq is not before this replica's: a state of it may help.
    log.put_alive(3, OTHER, 50);
    assert_eq!(verified(&log, 5, OTHER), "Diverged");
    log.put_alive(3, OTHER, 49);
    assert_eq!(verified(&log, 5, OTHER), "Behind at 3, seq 49 before 50");
    log.remove(layout::ALIVE);
    assert_eq!(verified(&log, 5, OTHER), "Diverged");
    // The heartbeat alone still names the last entry.
    log.put_alive(5, OTHER, 50);
    assert_eq!(verified(&log, 5, OTHER), "()");
}

#[test]
fn a_start_reads_the_newest_usable_state() {
    let (log, hashes) = TestLog::up_to(4);
    log.put_manifest(3, hashes[2], Vec::new());
    log.bucket().put(&layout::state(4), b"damaged").unwrap();
    assert_eq!(verified(&log, 2, hashes[1]), "()", "the state of slot 3");
    log.remove(&layout::log(3));
    assert_eq!(verified(&log, 2, hashes[1]), "Diverged", "its entry is missing");
    log.remove(&layout::state(3));
    assert_eq!(verified(&log, 2, hashes[1]), "()", "the state of slot 1");
    let other = TestLog { id: OTHER_ID, folder: log.folder };
    for slot in [1, 2, 3] {
        other.put_manifest(slot, hashes[0], Vec::new());
        assert_eq!(verified(&other, 2, hashes[1]), "OtherDatabase", "a state of slot {slot}");
        other.remove(&layout::state(slot));
    }
}

#[test]
fn a_poll_at_the_end_finds_that_the_bucket_moved_back_or_differs() {
    let (log, hashes) = TestLog::up_to(3);
    let end = |slot, hash| shown(at(&log, slot, hash).is_end(since_boot()));
    assert_eq!((end(3, hashes[2]), end(3, OTHER)), ("true".into(), "Diverged".into()));
    assert_eq!(end(2, hashes[1]), "false", "there is a next entry by now");
    assert_eq!(end(4, OTHER), "Behind at 3, seq 30 before 40");
    log.put_alive(3, hashes[2], 40);
    assert_eq!(end(4, OTHER), "Diverged", "the origin is not behind");
    log.put_alive(2, hashes[1], 20);
    assert_eq!((end(3, hashes[2]), end(3, OTHER)), ("true".into(), "Diverged".into()));
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
        replica.status.note_end_served();
        replica.status.stale_for()
    };
    for (has_heartbeat, expected) in [(false, "Unconfirmed"), (true, "Behind at 2, seq 20 before 30")] {
        let (log, hashes) = TestLog::up_to(3);
        let mut replica = at(&log, 3, hashes[2]);
        let asked = since_boot();
        assert_eq!(shown(replica.is_end(asked)), "true");
        assert!(stale(&replica).is_some());
        // Until the next check of the heartbeat, an empty slot is enough.
        log.remove(layout::ALIVE);
        log.remove(&layout::log(3));
        if has_heartbeat {
            log.put_alive(2, hashes[1], 20);
        }
        assert_eq!(shown(replica.is_end(since_boot())), "true");
        replica.next_heartbeat_check = Duration::ZERO;
        assert_eq!(shown(replica.is_end(since_boot())), expected);
        assert_eq!(replica.next_heartbeat_check, Duration::ZERO, "the next poll checks again");
        assert!(stale(&replica).is_some_and(|stale| stale + Duration::from_millis(1) >= since_boot() - asked));
        replica.confirmed_at = None;
        assert_eq!(shown(replica.is_end(since_boot())), expected);
        assert_eq!(stale(&replica), None, "{expected}: it never agreed");
    }
}

#[test]
fn an_older_heartbeat_that_is_put_back_decides_nothing() {
    let (log, hashes) = TestLog::up_to(3);
    let mut replica = at(&log, 3, hashes[2]);
    replica.is_log_listed = true;
    assert_eq!(shown(replica.check_heartbeat()), "Confirmed");
    assert_eq!(shown(replica.check_heartbeat()), "Confirmed", "the same one again");
    let known = replica.alive.clone().unwrap();
    for (later_s, expected) in [(1, "Unconfirmed"), (0, "Confirmed"), (-1, "Confirmed")] {
        replica.alive = Some(Heartbeat { at: time().plus_s(later_s), ..known.clone() });
        assert_eq!(shown(replica.check_heartbeat()), expected, "{later_s}");
    }
    assert_eq!(replica.alive, Some(known));
    // Without a heartbeat the path is verified again, but not at every poll.
    log.remove(layout::ALIVE);
    for (verified_at, expected) in [(since_boot(), true), (Duration::ZERO, since_boot() < PATH_SEARCH_EVERY)] {
        (replica.is_path_verified, replica.path_verified_at) = (true, verified_at);
        assert_eq!(shown(replica.check_heartbeat()), "Unconfirmed");
        assert_eq!(replica.is_path_verified, expected);
    }
}

#[test]
fn a_token_of_a_commit_that_waits_to_be_published_is_not_lost() {
    let (log, hashes) = TestLog::up_to(3);
    let mut replica = at(&log, 3, hashes[2]);
    // The origin's last seq is 40, and its log ends with seq 30.
    log.put_alive(3, hashes[2], 40);
    let alive = replica.log.heartbeat_for(position_of(&replica.mark)).unwrap();
    let lost = |replica: &Replica| [31, 40, 41].map(|seq| replica.status.is_lost(seq));
    assert_eq!(lost(&replica), [false; 3]);
    for later_s in 1..=4 {
        let later = Heartbeat { at: time().plus_s(later_s), ..alive.clone() };
        log.bucket().put(layout::ALIVE, &later.encode().unwrap()).unwrap();
        assert_eq!(shown(replica.check_heartbeat()), "Confirmed");
        assert_eq!(lost(&replica), [false, false, later_s >= 3], "{later_s}");
    }
}

#[test]
fn the_path_is_verified_again_after_an_hour_without_the_bucket() {
    let s = Duration::from_secs;
    for (read_at, now, expected) in [
        (s(100), s(100), false),
        (s(100), s(3700), false),
        (s(100), s(3701), true),
        (s(100), s(50), false),
        (s(0), s(4000), true),
    ] {
        assert_eq!(must_reverify(read_at, now, REVERIFY_AFTER), expected, "{read_at:?} {now:?}");
    }
}

/// A published database, and the bucket after each of its slots.
struct Origin {
    folder: tempfile::TempDir,
    log: TestLog,
}

impl Origin {
    fn new() -> Origin {
        let origin = Origin { folder: tempfile::tempdir().unwrap(), log: TestLog::new(ID) };
        let writer = Writer::open_or_create(&origin.at("origin.redb"), Duration::ZERO).unwrap();
        let mut edit = writer.begin().unwrap();
        edit.set_license("all", Scope::nothing(), None).unwrap();
        edit.commit().unwrap();
        drop(writer);
        origin.publish(&origin.log);
        origin
    }

    /// A copy of the database and its bucket. From here on they have different histories.
    fn fork(&self) -> Origin {
        let fork = Origin { folder: tempfile::tempdir().unwrap(), log: TestLog::new(ID) };
        fs::copy(self.at("origin.redb"), fork.at("origin.redb")).unwrap();
        self.log.copy_to(&fork.log);
        fork
    }

    fn at(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn publish(&self, log: &TestLog) {
        self.publish_with(log, PublishSettings::once(Duration::ZERO, false));
    }

    fn publish_with(&self, log: &TestLog, settings: PublishSettings) {
        let bucket = Arc::new(log.bucket());
        Publisher::start(&self.at("origin.redb"), bucket, settings, Arc::default()).unwrap().run(|| ()).unwrap();
    }

    /// Adds a state at the end of the log.
    fn add_state(&self) {
        let settings = PublishSettings::once(Duration::ZERO, false);
        self.publish_with(&self.log, PublishSettings { state_every: Duration::ZERO, ..settings });
    }

    fn commit(&self) {
        let writer = Writer::open(&self.at("origin.redb"), Duration::ZERO).unwrap();
        let mut edit = writer.begin().unwrap();
        edit.create_key("all", KeySettings::default()).unwrap();
        edit.commit().unwrap();
        drop(writer);
        self.publish(&self.log);
    }

    fn start(&self, log: &TestLog) -> Result<Replica, FollowError> {
        Replica::start(LogReader::new(log.bucket()), &self.at("replica.redb"), status(), &|| true)
    }
}

fn polled(replica: &mut Replica) -> (u64, Option<String>) {
    replica.next_heartbeat_check = Duration::ZERO;
    replica.next_repair_at = Duration::ZERO;
    replica.poll(&|| true);
    let progress = replica.status.progress();
    (progress.slot, progress.error)
}

#[test]
fn a_replica_never_goes_back_to_an_older_state() {
    let origin = Origin::new();
    let first = origin.log.bucket().get(&layout::log(1)).unwrap().unwrap().bytes;
    origin.commit();
    origin.commit();
    let mut replica = origin.start(&origin.log).unwrap();
    assert_eq!(polled(&mut replica), (3, None));
    let head = replica.head;
    // Without a heartbeat, only the loaded rows show that the bucket is an older one.
    for slot in 2..=3 {
        origin.log.remove(&layout::log(slot));
    }
    origin.log.remove(layout::ALIVE);
    for is_restarted in [false, true] {
        if is_restarted {
            drop(replica);
            replica = origin.start(&origin.log).unwrap();
        }
        (replica.is_path_verified, replica.failed_load) = (false, None);
        let (slot, error) = polled(&mut replica);
        assert!(slot == 3 && error.as_ref().is_some_and(|error| error.contains("never goes back")), "{error:?}");
        assert_eq!(ReplicaWriter::open(&origin.at("replica.redb")).err().map(|_| ()), Some(()), "it is still open");
        assert_eq!(replica.head, head);
    }
    drop(replica);
    assert_eq!(ReplicaWriter::open(&origin.at("replica.redb")).unwrap().head().unwrap().head(), head);
    assert!(!first.is_empty());
}

#[test]
fn a_replica_does_not_follow_the_bucket_of_another_database() {
    let (origin, other) = (Origin::new(), Origin::new());
    origin.commit();
    assert_eq!(polled(&mut origin.start(&origin.log).unwrap()), (2, None));
    for commits in 0..4 {
        let message = origin.start(&other.log).unwrap_err().to_string();
        assert!(message.contains("but the file is a replica of"), "{commits} commits: {message}");
        other.commit();
    }
    // Also if the other bucket has no manifest.
    other.log.remove(&layout::state(1));
    let message = origin.start(&other.log).unwrap_err().to_string();
    assert!(message.contains("but the file is a replica of"), "{message}");
    assert_eq!(polled(&mut origin.start(&origin.log).unwrap()), (2, None));
}

#[test]
fn a_replica_moves_to_a_second_bucket_of_its_database() {
    let origin = Origin::new();
    origin.commit();
    assert_eq!(polled(&mut origin.start(&origin.log).unwrap()), (2, None));
    let second = TestLog::new(ID);
    origin.publish(&second);
    let mut replica = origin.start(&second).unwrap();
    assert_eq!(polled(&mut replica), (1, None), "the slots of the second bucket");
    assert_eq!(replica.mark.url, second.bucket().url().to_string());
    assert_eq!(replica.status.progress().loads, 1);
}

#[test]
fn a_load_that_fails_pauses_longer_each_time() {
    let origin = Origin::new();
    let mut replica = origin.start(&origin.log).unwrap();
    let mut calls = 0;
    for expected_s in [1, 2, 4, 8, 16, 32, 60, 60] {
        for is_paused in [false, true] {
            let called = Cell::new(false);
            let failed = replica.load_in_place(
                &|_| {
                    called.set(true);
                    Err(FollowError::OtherFields)
                },
                &|| true,
            );
            assert_eq!(matches!(failed, Err(FollowError::Paused(_))), is_paused, "{failed:?}");
            assert_eq!(called.get(), !is_paused);
            calls += u32::from(called.get());
        }
        let failed = replica.failed_load.as_mut().unwrap();
        assert_eq!(failed.pause, Duration::from_secs(expected_s));
        failed.until = Duration::ZERO;
    }
    assert_eq!(calls, 8);
    assert!(replica.load_in_place(&|load| load.newest(), &|| true).is_ok());
    assert!(replica.failed_load.is_none(), "a success ends it");
}

#[test]
fn slots_that_were_reused_during_an_outage_are_not_followed() {
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
    origin.log.bucket().put(&layout::log(3), &stray.bytes).unwrap();
    // The bucket last responded at the machine's start, and polls have failed since.
    let (bucket, away) = (origin.log.folder.path(), origin.at("away"));
    fs::rename(bucket, &away).unwrap();
    (replica.read_at, replica.reverify_after) = (Duration::ZERO, Duration::MAX);
    let (slot, error) = polled(&mut replica);
    assert!(slot == 2 && error.is_some(), "{error:?}");
    fs::rename(&away, bucket).unwrap();
    replica.reverify_after = since_boot() / 2;
    assert_eq!(polled(&mut replica), (4, None));
    let progress = replica.status.progress();
    assert_eq!((progress.applied, progress.loads), (0, 2), "the first load, and the newest state");
}

#[test]
fn a_standby_reports_the_position_that_the_other_process_reached() {
    let origin = Origin::new();
    let [mut writer, mut standby] = [(); 2].map(|()| origin.start(&origin.log).unwrap());
    assert_eq!((writer.is_standby, standby.is_standby), (false, true));
    for slot in 2..=3 {
        origin.commit();
        assert_eq!(polled(&mut writer), (slot, None));
        assert_eq!(polled(&mut standby), (slot, None));
        assert_eq!(standby.status.progress().head, writer.head);
    }
}

#[test]
fn a_standby_starts_although_its_file_does_not_fit_the_log() {
    let origin = Origin::new();
    let fork = origin.fork();
    origin.commit();
    let mut writer = origin.start(&origin.log).unwrap();
    for _ in 2..=3 {
        fork.commit();
    }
    origin.log.empty();
    fork.log.copy_to(&origin.log);
    let mut standby = origin.start(&origin.log).unwrap();
    assert!(standby.is_standby);
    assert_eq!(polled(&mut writer), (3, None), "it is replaced by a whole state");
    assert_eq!(polled(&mut standby), (3, None));
}

#[test]
fn a_writer_that_loses_its_file_to_another_process_stands_by() {
    let origin = Origin::new();
    let [mut first, second] = [(); 2].map(|()| origin.start(&origin.log).unwrap());
    // As after an error of the file.
    first.writer = None;
    let second = RefCell::new(second);
    second.borrow_mut().poll(&|| true);
    assert!(!second.borrow().is_standby);
    origin.commit();
    // The second one applies the entry while the first one waits for it.
    first.poll(&|| second.borrow_mut().poll(&|| true));
    assert_eq!(first.status.progress().error, None);
    assert!(first.is_standby);
    // A slow machine applies it after the wait.
    assert_eq!((polled(&mut first), first.status.progress().applied), ((2, None), 0));
    assert_eq!(second.borrow().status.progress().applied, 1);
}

#[test]
fn a_replica_that_moves_to_a_copy_of_its_bucket_stores_the_new_url() {
    let origin = Origin::new();
    drop(origin.start(&origin.log).unwrap());
    origin.commit();
    let copy = TestLog::new(ID);
    origin.log.copy_to(&copy);
    let mut replica = origin.start(&copy).unwrap();
    assert_eq!((polled(&mut replica), replica.status.progress().loads), ((2, None), 0));
    let (mark, _) = read_replica(&origin.at("replica.redb")).unwrap();
    assert_eq!(mark.url, copy.bucket().url().to_string());
}

#[test]
fn an_unusable_entry_is_repaired_by_the_state_at_its_slot() {
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
        assert_eq!(polled(&mut replica), (3, None), "{damaged:?}");
    }
}

#[test]
fn a_new_replica_does_not_end_before_the_newest_state() {
    let origin = Origin::new();
    origin.commit();
    origin.commit();
    origin.add_state();
    // The state cannot be read, and no heartbeat tells where the log ends.
    origin.log.bucket().put(&layout::state(3), b"damaged").unwrap();
    origin.log.remove(layout::ALIVE);
    let (slot, _) = polled(&mut origin.start(&origin.log).unwrap());
    assert_eq!(slot, 3, "the first state, and the entries after it");
    fs::remove_file(origin.at("replica.redb")).unwrap();
    for lost in [2, 3] {
        origin.log.remove(&layout::log(lost));
        assert_eq!(shown(origin.start(&origin.log).map(|_| ())), "Missing 2, later 3", "without entry {lost}");
    }
}

#[test]
fn a_repair_that_does_not_last_is_not_made_again_at_once() {
    let origin = Origin::new();
    let mut replica = origin.start(&origin.log).unwrap();
    origin.commit();
    origin.add_state();
    origin.log.remove(&layout::log(2));
    assert_eq!(polled(&mut replica), (2, None));
    assert!(replica.next_repair_at > since_boot() + REPAIR_EVERY / 2);
}

#[test]
fn a_new_replica_passes_over_a_state_of_another_history() {
    let origin = Origin::new();
    origin.commit();
    origin.add_state();
    origin.commit();
    let bucket = origin.log.bucket();
    let mut manifest = LogReader::new(origin.log.bucket()).manifest(2).unwrap().expect("a state");
    manifest.entry_hash = OTHER;
    bucket.put(&layout::state(2), &manifest.encode().unwrap().0).unwrap();
    assert_eq!(polled(&mut origin.start(&origin.log).unwrap()), (3, None));
}
