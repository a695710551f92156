//! Buckets that lost objects: a lifecycle rule, a mistaken delete, a bucket restored from a copy. For each object of a
//! history, and for each prefix of the history, that object vanishes, returns to an older version, or all later objects
//! vanish. Replicas and commands that can notice the loss do not treat the rest as complete.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use medfeed::replicate::layout;

use super::origin::copy_into;
use super::published::{Place, PublishedLog, TestReplica, follow, note, rows_of};
use super::publishing::{commit, copy_of};
use super::site::Site;

/// The last slot of the history.
const LAST: u64 = 5;
/// The slot of the second state; the first is at slot 1.
const STATE: u64 = 3;

/// A published history, and the folder of the bucket as it was after each slot.
struct History {
    log: PublishedLog,
    buckets: BTreeMap<u64, PathBuf>,
}

/// A loss of objects.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Loss {
    Nothing,
    /// An entry vanishes.
    Entry(u64),
    /// A manifest vanishes.
    Manifest(u64),
    /// The parts of a state vanish.
    Parts(u64),
    /// The heartbeat vanishes.
    Alive,
    /// The heartbeat returns to the one after a slot.
    OldAlive(u64),
    /// Everything returns to the content after a slot.
    Back(u64),
    /// All later objects vanish; the heartbeat stays.
    Later(u64),
    /// Everything vanishes.
    All,
}

impl History {
    fn new() -> History {
        let site = Site::new();
        let place = Place::folder(&site);
        let mut buckets = BTreeMap::new();
        let log = PublishedLog::new(site, place, (STATE, LAST), |log, slot| {
            let kept = log.site.path(&format!("bucket-{slot}"));
            copy_into(&log.site.path("bucket"), &kept);
            buckets.insert(slot, kept);
        });
        History { log, buckets }
    }

    fn bucket(&self) -> PathBuf {
        self.log.site.path("bucket")
    }

    /// Empties the bucket. The folder itself stays: another folder would count as another disk.
    fn empty(&self) {
        for entry in fs::read_dir(self.bucket()).unwrap().map(Result::unwrap) {
            if entry.path().is_dir() {
                fs::remove_dir_all(entry.path()).unwrap();
            } else {
                fs::remove_file(entry.path()).unwrap();
            }
        }
    }

    /// Gives the bucket the content of another.
    fn fill_from(&self, folder: &Path) {
        self.empty();
        copy_into(folder, &self.bucket());
    }

    /// Restores the whole bucket, or its content after a slot, and then removes something.
    fn lose(&self, loss: Loss) {
        let from = if let Loss::Back(slot) = loss {
            slot
        } else {
            LAST
        };
        self.fill_from(&self.buckets[&from]);
        let remove = |name: &str| fs::remove_file(self.bucket().join(name)).unwrap();
        let remove_parts = |slot: u64| {
            for object in self.log.place.bucket.list(layout::PARTS, None).unwrap() {
                if layout::parse_part(&object.name).is_some_and(|(of, ..)| of == slot) {
                    remove(&object.name);
                }
            }
        };
        match loss {
            Loss::Nothing | Loss::Back(_) => {}
            Loss::Entry(slot) => remove(&layout::log(slot)),
            Loss::Manifest(slot) => remove(&layout::state(slot)),
            Loss::Parts(slot) => remove_parts(slot),
            Loss::Alive => remove(layout::ALIVE),
            Loss::OldAlive(slot) => {
                let heartbeat = self.bucket().join(layout::ALIVE);
                fs::copy(self.buckets[&slot].join(layout::ALIVE), heartbeat).unwrap();
            }
            Loss::Later(slot) => {
                for later in slot + 1..=LAST {
                    remove(&layout::log(later));
                }
                if slot < STATE {
                    remove(&layout::state(STATE));
                    remove_parts(STATE);
                }
            }
            Loss::All => self.empty(),
        }
    }

    /// A copy of the origin's file, with the publisher's note.
    fn copy(&self) -> Site {
        let copy = copy_of(&self.log.site);
        for name in ["feed.redb.published", "feed.redb.publisher"] {
            fs::copy(self.log.site.path(name), copy.path(name)).unwrap();
        }
        copy
    }
}

/// Each loss; the exit codes of `check`, `backup`, `promote` of a replica at the end, and `publish --once`; and a part
/// of the error.
type Case = (Loss, [i32; 4], &'static str);

const CASES: [Case; 22] = cases![
    Loss::Nothing, [0, 0, 0, 0], "";
    Loss::Entry(1), [1, 0, 0, 0], "`log/00000000000000000001`";
    Loss::Entry(2), [0, 0, 0, 0], "";
    Loss::Entry(3), [1, 0, 1, 1], "`log/00000000000000000003`";
    Loss::Entry(4), [1, 1, 1, 1], "`log/00000000000000000004`";
    Loss::Entry(5), [1, 1, 1, 1], "slot 5";
    Loss::Manifest(1), [0, 0, 0, 0], "";
    Loss::Manifest(3), [0, 0, 0, 0], "";
    Loss::Parts(1), [1, 0, 0, 0], "`parts/00000000000000000001-";
    Loss::Parts(3), [1, 0, 0, 0], "`parts/00000000000000000003-";
    Loss::Alive, [1, 1, 1, 0], "heartbeat (`alive`) is not in the bucket";
    Loss::OldAlive(1), [0, 0, 0, 0], "";
    Loss::OldAlive(4), [0, 0, 0, 0], "";
    // A copy of the whole bucket is consistent in itself. Only a replica or publisher with a later position notices it.
    Loss::Back(1), [0, 0, 1, 1], "slot 1";
    Loss::Back(2), [0, 0, 1, 1], "slot 2";
    Loss::Back(3), [0, 0, 1, 1], "slot 3";
    Loss::Back(4), [0, 0, 1, 1], "slot 4";
    Loss::Later(1), [1, 1, 1, 1], "slot";
    Loss::Later(2), [1, 1, 1, 1], "slot";
    Loss::Later(3), [1, 1, 1, 1], "slot";
    Loss::Later(4), [1, 1, 1, 1], "slot 5";
    Loss::All, [1, 1, 1, 1], "";
];

#[test]
fn commands_refuse_a_bucket_that_lost_objects() {
    let history = History::new();
    let url = history.log.place.url.as_str();
    for (loss, [check, backup, promote, publish], piece) in CASES {
        history.lose(loss);
        let copy = history.copy();
        let promoted = history.log.replica_at(LAST);
        let backup_file = copy.path("backup.redb").display().to_string();
        // The publisher comes last, because it may repair the loss.
        let cases: [(&Site, &[&str], i32); 4] = [
            (&copy, &["check", "--from", url], check),
            (&copy, &["backup", &backup_file, "--from", url], backup),
            (&promoted, &["promote", url, "--yes"], promote),
            (&copy, &["publish", url, "--once"], publish),
        ];
        for (site, args, code) in cases {
            let done = history.log.place.ends(site, args);
            assert_eq!(done.code, Some(code), "{loss:?}: {args:?}: {done:?}");
            assert!(
                code == 0 || done.stderr.contains(piece),
                "{loss:?}: {args:?}: {done:?}"
            );
            let remedy = match args[0] {
                "backup" | "check" => "",
                _ => "--start-over",
            };
            assert!(
                code == 0 || loss == Loss::All || done.stderr.contains(remedy),
                "{loss:?}: {args:?}: {done:?}"
            );
            assert!(
                !done.stderr.contains("serves the last state")
                    && !done.stderr.contains("for repair"),
                "{args:?}: {done:?}"
            );
            if code == 0 && args[0] == "check" {
                let gaps = if loss == Loss::Entry(2) { 1 } else { 0 };
                let told = "missing from slot 2 to slot 2, before the whole state at slot 3";
                assert_eq!(done.count(told), gaps, "{loss:?}: {done:?}");
            }
            if code == 0 && args[0] == "promote" {
                // The publisher gets the bucket as it was before the promotion.
                history.lose(loss);
            }
        }
        if backup == 1 && loss != Loss::All {
            history.lose(loss);
            let refused = history
                .log
                .place
                .ends(&copy, &["backup", &backup_file, "--from", url]);
            let (_, reached) = refused
                .stderr
                .rsplit_once("add --at ")
                .unwrap_or_else(|| panic!("{loss:?}: {refused:?}"));
            let salvage = [
                "backup",
                &backup_file,
                "--from",
                url,
                "--at",
                reached.trim(),
                "--json",
            ];
            let salvaged = history.log.place.ends(&copy, &salvage);
            assert_eq!(salvaged.code, Some(0), "{loss:?}: {salvaged:?}");
            let expected = reached.trim();
            assert_eq!(salvaged.json()["last_commit_at"], expected, "{loss:?}");
        }
        if publish == 1 {
            starts_over(&history, &copy, loss);
        }
    }
}

/// A publisher starts over after a loss. Then checks, backups and all replicas succeed.
fn starts_over(history: &History, origin: &Site, loss: Loss) {
    let url = history.log.place.url.as_str();
    let done = history
        .log
        .place
        .ends(origin, &["publish", url, "--once", "--start-over"]);
    assert_eq!(done.code, Some(0), "{loss:?}: {done:?}");
    // The new entry is in no slot of a lost one, so none can be taken for the other.
    assert_eq!(note(origin).slot, LAST + 1, "{loss:?}");
    let rows = rows_of(&origin.db());
    for args in [
        &["check", "--from", url][..],
        &["backup", "again.redb", "--from", url],
    ] {
        let mut command = history.log.place.with_credentials(origin.command(args));
        command.current_dir(origin.folder());
        assert!(command.status().unwrap().success(), "{loss:?}: {args:?}");
    }
    let fresh = Site::new();
    let found = follow(&history.log.place, &fresh.db());
    assert_eq!(found, (LAST + 1, None), "{loss:?}: a new replica");
    for slot in 1..=LAST {
        let replica = history.log.replica_at(slot);
        assert_eq!(
            follow(&history.log.place, &replica.db()),
            (LAST + 1, None),
            "{loss:?}: a replica at slot {slot}"
        );
        let found = rows_of(&replica.db());
        assert_eq!(found, rows, "{loss:?}: a replica at slot {slot}");
    }
    // The next start, with the next commit, needs no option any more.
    commit(origin, 50);
    assert_eq!(history.log.place.once(origin), 1, "{loss:?}");
}

#[test]
fn replicas_notice_that_a_bucket_lost_objects() {
    let history = History::new();
    for (loss, ..) in CASES {
        // Whether the bucket alone shows that there was more.
        let tells = !matches!(loss, Loss::Back(_));
        // The state has the rows of the slot before.
        let rows_at = |slot: u64| slot - u64::from(slot == STATE);
        for slot in 0..=LAST {
            // A running replica, a restarted one, and for slot 0 a new one.
            for runs in [true, false] {
                if runs && slot == 0 {
                    continue;
                }
                let file = if slot == 0 {
                    Site::new()
                } else {
                    history.log.replica_at(slot)
                };
                let before = if runs { Loss::Back(slot) } else { loss };
                history.lose(if runs && slot == LAST {
                    Loss::Nothing
                } else {
                    before
                });
                let what = format!("{loss:?}, at slot {slot}, runs {runs}");
                let mut replica = match TestReplica::start(history.log.place.log(), &file.db()) {
                    Ok(replica) => replica,
                    Err(told) => {
                        let is_expected = slot == 0 || loss == Loss::All;
                        assert!(
                            !runs && is_expected && loss != Loss::Nothing,
                            "{what}: {told}"
                        );
                        assert_eq!(file.db().exists(), slot > 0, "{what}");
                        continue;
                    }
                };
                if runs {
                    assert_eq!(replica.outcome(), (slot, None), "{what}");
                }
                history.lose(loss);
                let (at, trouble) = replica.poll();
                let could_know = tells || matches!(loss, Loss::Back(back) if rows_at(slot) > back);
                assert!(
                    trouble.is_some() || at == LAST || !could_know,
                    "{what}: content at slot {at}"
                );
                if loss == Loss::Nothing {
                    assert_eq!((at, trouble), (LAST, None), "{what}");
                }
                // Once the bucket is whole again, the replica recovers.
                history.lose(Loss::Nothing);
                assert_eq!(replica.poll(), (LAST, None), "{what}");
                let expected = rows_of(&history.log.replicas[&LAST]);
                assert_eq!(rows_of(&file.db()), expected, "{what}");
            }
        }
    }
}
