//! Any instant can be restored from a bucket: its backup is the database as it was then. A sweep removes only older
//! ones.
//!
//! `MEDFEED_CASES` sets how many instants are restored, `MEDFEED_SEED` the seed.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use medfeed::model::time::now;
use medfeed::model::{Head, RowDigest, Timestamp};
use medfeed::replicate::layout;
use medfeed::store::{Reader, StoreError};

use super::published::{Place, note};
use super::publishing::{commit, curated, published_in_folder};
use super::publishing_damage::damage;
use super::site::{Random, Site, cases_and_seed, conferences_of_version, wait_for};
use crate::harness::counted;

const DAY: Duration = Duration::from_secs(86_400);

/// A database as it was after a commit.
struct Kept {
    time: Timestamp,
    head: Head,
    digest: RowDigest,
    copy: PathBuf,
}

/// The content of a file: its last commit with its time, and the digest of all rows.
fn contents(file: &Path) -> (Timestamp, Head, RowDigest) {
    let view = Reader::open(file).unwrap().origin().unwrap();
    let head = view.head().unwrap();
    (
        head.time,
        head.head(),
        view.dump::<StoreError>(1 << 20, &mut |_| Ok(())).unwrap(),
    )
}

/// A published database, and all its earlier states.
struct History {
    site: Site,
    place: Place,
    random: Random,
    version: u64,
    kept: Vec<Kept>,
    /// The time of the last restore.
    put_back_at: Timestamp,
}

fn wait_for_next_second() {
    let before = now();
    wait_for("the next second", || now() > before);
}

impl History {
    fn new(is_sealed: bool, seed: u64) -> History {
        let site = curated();
        let place = if is_sealed {
            Place::sealed_folder(&site)
        } else {
            Place::folder(&site)
        };
        let random = Random::new(seed);
        let mut history = History {
            site,
            place,
            random,
            version: 0,
            kept: Vec::new(),
            put_back_at: Timestamp::EPOCH,
        };
        // Commits from before the first state, which the bucket never gets.
        history.commit();
        history.commit();
        // The first state has the time of its last commit, not of its publication.
        wait_for_next_second();
        history.publish("");
        // The first publication adds the id of the database, which is a row too.
        history.kept.pop();
        history.keep();
        history
    }

    /// Keeps a copy of the database.
    fn keep(&mut self) {
        let copy = self.site.path(&format!("kept-{}.redb", self.kept.len()));
        fs::copy(self.site.db(), &copy).unwrap();
        let (time, head, digest) = contents(&copy);
        self.kept.push(Kept {
            time,
            head,
            digest,
            copy,
        });
    }

    fn publish(&mut self, options: &str) {
        self.place.once_with(&self.site, options);
    }

    fn import(&mut self) {
        self.version += 1;
        let count = 22 + u64::try_from(self.random.below(9)).unwrap();
        let content = conferences_of_version(count, self.version);
        let file = self.site.write("conferences.jsonl", content);
        self.site
            .json(["import".as_ref(), file.as_os_str(), "--replace".as_ref()]);
    }

    /// Makes a commit of any kind.
    fn commit(&mut self) {
        match self.random.below(8) {
            0 => {
                let (id, _) = self.site.key("all", &[]);
                self.keep();
                self.site
                    .json(["key", "revoke", &id, "--publish-wait", "0s"]);
            }
            1 => {
                let years = ["", " --year 2025", " --year 2025 --year 2026"][self.random.below(3)];
                self.site
                    .license("half", &format!("--dataset conferences{years} --widen"));
            }
            2 if self.kept.len() > 2 => return self.put_back(),
            _ => self.import(),
        }
        self.keep();
    }

    /// Restores an earlier copy, and publishes it. The whole state is published in a later second than its commit.
    fn put_back(&mut self) {
        // First publishes the waiting commits. Otherwise they would be in the next state, and could not be restored one
        // by one.
        self.publish("");
        let backup = self.kept[self.random.below(self.kept.len())].copy.clone();
        self.site
            .json(["restore".as_ref(), backup.as_os_str(), "--yes".as_ref()]);
        self.keep();
        self.put_back_at = self.kept.last().unwrap().time;
        wait_for_next_second();
        self.publish("");
    }

    /// Makes commits and publishes them, sometimes one, sometimes several at once, with a state now and then.
    fn go_on(&mut self, commits: usize) {
        for _ in 0..commits {
            self.commit();
            match self.random.below(6) {
                0 | 1 => {}
                2 => self.publish("--state-every 0s"),
                3 => {
                    self.publish("");
                    self.site.json(["compact"]);
                }
                _ => self.publish(""),
            }
        }
        self.publish("");
    }

    /// The database at the time of the oldest state.
    fn oldest(&self) -> &Kept {
        let slot = *self.place.slots(layout::STATES).first().expect("a state");
        let head = self.place.manifest(slot).head();
        self.kept
            .iter()
            .find(|kept| kept.head == head)
            .expect("a state of the database")
    }

    /// Restores an instant. Checks that the result is the last commit at or before it, or that a refusal names the
    /// oldest state.
    fn restore(&mut self, at: Timestamp) {
        let file = self.site.path("restored.redb");
        let name = file.to_str().unwrap();
        let (at_text, oldest) = (at.to_string(), self.oldest().time);
        let what = format!(
            "{}: {at_text}, of {} commits",
            self.place.kind,
            self.kept.len()
        );
        let args = ["backup", name, "--from", &self.place.url, "--at", &at_text];
        if at < oldest {
            let done = self.place.ends(&self.site, &args);
            let told = format!("no state is that old; the oldest is of {oldest}");
            done.assert_told(1, &told);
            assert!(!file.exists(), "{what}");
            return;
        }
        let expected = self
            .kept
            .iter()
            .rev()
            .find(|kept| kept.time <= at)
            .expect("the oldest, at least");
        let report = self.place.json(&self.site, &args);
        assert_eq!(
            report["last_commit_at"],
            expected.time.to_string(),
            "{what}: {report}"
        );
        assert_eq!(
            contents(&file),
            (expected.time, expected.head, expected.digest),
            "{what}"
        );
        let site = &self.site;
        assert!(
            site.conferences_in(&file) == site.conferences_in(&expected.copy),
            "{what}: the exports"
        );
        fs::remove_file(file).unwrap();
    }

    /// Restores random instants.
    fn restore_some(&mut self, cases: usize) {
        let (first, last) = (
            self.kept[0].time.unix_s() - 1,
            self.kept.last().unwrap().time.unix_s() + 1,
        );
        for _ in 0..cases {
            let span = usize::try_from(last - first + 1).unwrap();
            let at = first + i64::try_from(self.random.below(span)).unwrap();
            self.restore(Timestamp::from_unix_s(at));
        }
    }

    /// Dates the objects of the log: each slot is a day later than the one before, and the last one is half a day old.
    fn age(&self) {
        #[allow(
            clippy::disallowed_methods,
            reason = "the store's clock is not the program's"
        )]
        let now = SystemTime::now();
        let last = note(&self.site).slot;
        for folder in [layout::LOG, layout::STATES, layout::PARTS] {
            for object in self.place.bucket.list(folder, None).unwrap() {
                let place = object.name.split('/').nth(1).expect("a slot");
                let slot: u64 = place.split('-').next().unwrap().parse().unwrap();
                let age = DAY * u32::try_from(last + 1 - slot).unwrap() - DAY / 2;
                let path = self.site.path(self.folder()).join(&object.name);
                File::options()
                    .write(true)
                    .open(path)
                    .unwrap()
                    .set_modified(now - age)
                    .unwrap();
            }
        }
    }

    fn folder(&self) -> &'static str {
        if self.place.kind.starts_with("sealed") {
            "sealed"
        } else {
            "bucket"
        }
    }

    /// Sweeps objects older than `days` days. Each slot is one day.
    fn sweep(&mut self, days: u64) {
        let before = self.place.slots(layout::STATES);
        let last = note(&self.site).slot;
        self.age();
        self.import();
        self.keep();
        self.publish(&format!("--state-every 0s --keep {days}d"));
        let (states, log) = (
            self.place.slots(layout::STATES),
            self.place.slots(layout::LOG),
        );
        // The newest of the states that are too old, if there is one.
        let is_old = |slot: &u64| last + 1 - slot > days;
        let expected = before.iter();
        let expected = expected.copied().filter(is_old).max().unwrap_or(before[0]);
        assert_eq!(
            (states[0], log[0]),
            (expected, expected),
            "{}: {before:?}, {days} days",
            self.place.kind
        );
        let parts = self.place.bucket.list(layout::PARTS, None).unwrap();
        assert!(
            parts
                .iter()
                .all(|part| layout::parse_part(&part.name).unwrap().0 >= expected),
            "{parts:?}"
        );
        self.place
            .json(&self.site, &["check", "--from", &self.place.url]);
        // All younger instants can be restored: the first of them, and the state just before it.
        let first_young = (last + 1).saturating_sub(days).max(1);
        if first_young > 1 {
            let seq = self.place.entry(first_young - 1).header.seq;
            let then = self
                .kept
                .iter()
                .find(|kept| kept.head.seq == seq)
                .expect("a commit")
                .time;
            assert!(
                then >= self.oldest().time,
                "{}: an instant of the time to keep is gone",
                self.place.kind
            );
            self.restore(then);
        }
    }
}

#[test]
fn any_kept_instant_can_be_restored() {
    let (cases, seed) = cases_and_seed(4, 20_261_125);
    let cases = usize::try_from(cases).unwrap();
    let mut restored = 0;
    for is_sealed in [false, true] {
        let mut history = History::new(is_sealed, seed + u64::from(is_sealed));
        let commits = 6 + cases / 3;
        history.go_on(commits / 2);
        history.put_back();
        history.go_on(commits.div_ceil(2));
        history.restore(history.put_back_at);
        let oldest = history.oldest().time;
        history.restore(oldest);
        history.restore(oldest.plus_s(-1));
        let before = cases.div_ceil(4);
        history.restore_some(before);
        let days = 1 + history
            .random
            .below(usize::try_from(note(&history.site).slot).unwrap());
        history.sweep(u64::try_from(days).unwrap());
        let oldest = history.oldest().time;
        history.restore(oldest);
        history.restore(oldest.plus_s(-1));
        let after = (cases / 2).saturating_sub(before);
        history.restore_some(after);
        restored += 5 + before + after;
        let slots = note(&history.site).slot;
        println!(
            "{}: {} commits in {slots} slots, swept after {days}",
            history.place.kind,
            history.kept.len()
        );
    }
    println!("{restored} instants restored");
    counted(restored, "instants");
}

#[test]
fn an_instant_within_a_whole_state_is_refused() {
    // The changes of the commits are lost, or a restore replaces them. So they are published in a state.
    for is_restored in [false, true] {
        refuse_within_state(is_restored);
    }
}

fn refuse_within_state(is_restored: bool) {
    let (site, place) = published_in_folder();
    let earlier = site.backup("earlier.redb");
    let mut times = vec![contents(&site.db()).0];
    wait_for_next_second();
    commit(&site, 1);
    times.push(contents(&site.db()).0);
    wait_for_next_second();
    if is_restored {
        site.json(["restore".as_ref(), earlier.as_os_str(), "--yes".as_ref()]);
    } else {
        commit(&site, 2);
        damage(&site, |outbox, seqs| {
            drop(outbox.remove((seqs[0], 0)).unwrap())
        });
    }
    times.push(contents(&site.db()).0);
    assert_eq!(place.once(&site), 1);
    assert!(place.entry(2).header.is_state());
    let (file, within) = (site.path("then.redb"), times[1]);
    let backup = |at: Timestamp| {
        place.ends(
            &site,
            &[
                "backup",
                "--json",
                file.to_str().unwrap(),
                "--from",
                &place.url,
                "--at",
                &at.to_string(),
            ],
        )
    };
    let refused = backup(within);
    let expected = format!(
        "the commits after {} were published in one whole state, as of {}",
        times[0], times[2]
    );
    refused.assert_shown(1, &expected);
    assert!(!file.exists());
    // The times of replaced commits are unknown.
    let before = if is_restored {
        times[0]
    } else {
        within.plus_s(-1)
    };
    for (at, expected) in [
        (times[0], times[0]),
        (before, times[0]),
        (times[2], times[2]),
    ] {
        let done = backup(at);
        assert_eq!(done.code, Some(0), "{at}: {done:?}");
        assert_eq!(done.json()["last_commit_at"], expected.to_string(), "{at}");
    }
}

#[test]
fn a_backup_of_a_future_time_is_the_newest_state_with_a_warning() {
    let (site, place) = published_in_folder();
    let file = site.path("then.redb");
    let backup = |at: Timestamp| {
        let (file, at) = (file.to_str().unwrap(), at.to_string());
        let args = ["backup", "--json", file, "--from", &place.url, "--at", &at];
        let done = place.ends(&site, &args);
        assert_eq!(done.code, Some(0), "{at}: {done:?}");
        let newest = contents(&site.db()).0.to_string();
        assert_eq!(done.json()["last_commit_at"], newest, "{at}: {done:?}");
        done.stderr.contains("--at is in the future")
    };
    for (after_s, expected) in [(-1, false), (3600, true), (400 * 86_400, true)] {
        wait_for("the commit is older", || {
            now().plus_s(-1) > contents(&site.db()).0
        });
        assert_eq!(backup(now().plus_s(after_s)), expected, "{after_s}");
    }
}

#[test]
fn a_refused_backup_names_the_newest_possible_instant() {
    let (site, place) = published_in_folder();
    let (mut expected, mut times) = (Vec::new(), Vec::new());
    for version in 1..=3 {
        wait_for_next_second();
        commit(&site, version);
        assert_eq!(place.once(&site), 1);
        times.push(contents(&site.db()).0);
        expected.push(site.conferences_in(&site.db()));
    }
    let damaged = layout::log(3);
    fs::write(site.path("bucket").join(&damaged), "rotten").unwrap();
    let file = site.path("left.redb");
    let backup = |more: &[&str]| {
        let args = [
            "backup",
            "--json",
            file.to_str().unwrap(),
            "--from",
            &place.url,
        ];
        place.ends(&site, &[&args, more].concat())
    };
    let refused = backup(&[]);
    refused.assert_shown(1, &damaged);
    refused.assert_out(&format!("add --at {}", times[0]));
    // A later commit may be lost.
    let refused = backup(&["--at", &times[0].plus_s(1).to_string()]);
    assert!(refused.code == Some(1) && !file.exists(), "{refused:?}");
    let done = backup(&["--at", &times[0].to_string()]);
    assert_eq!(done.code, Some(0), "{done:?}");
    assert!(
        site.conferences_in(&file) == expected[0],
        "the records before the damaged entry"
    );
    // The backup is a database of its own.
    site.json([
        "license",
        "set",
        "other",
        "--dataset",
        "journals",
        "--db",
        file.to_str().unwrap(),
    ]);
    // A whole state after the damaged entry repairs the log, although nothing else waits.
    refused.assert_out("`medfeed publish URL --start-over`");
    assert_eq!(place.once_with(&site, "--start-over"), 1);
    assert_eq!(backup(&[]).code, Some(0));
    assert!(
        site.conferences_in(&file) == expected[2],
        "the newest records"
    );
}
