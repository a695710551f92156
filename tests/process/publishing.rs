//! Publishing: the bucket contains the database, only one publisher continues, and no needed object is deleted.

use std::fs::{self, File};
use std::io::ErrorKind;
use std::path::Path;
use std::process::Stdio;
use std::time::{Duration, SystemTime};

use medfeed::model::time::now;
use medfeed::replicate::heartbeat::Heartbeat;
use medfeed::replicate::layout;
use medfeed::store::replication::PublishedNote;
use medfeed::store::write::licensing::KeySettings;
use medfeed::store::{Reader, Writer};

use super::published::{Place, follow, note, rows_of};
use super::s3::{Fault, S3};
use super::site::{Process, SOON, Site, conferences_of_version, wait_for};

/// A site with records, a license and a key.
pub fn curated() -> Site {
    let site = Site::with(30);
    site.open_key();
    site
}

/// A curated site, and a place for it in a folder.
pub fn in_folder() -> (Site, Place) {
    let site = curated();
    let place = Place::folder(&site);
    (site, place)
}

/// The same, published.
pub fn published_in_folder() -> (Site, Place) {
    let (site, place) = in_folder();
    place.once(&site);
    (site, place)
}

/// A curated site, and a place for it in an object store.
pub fn in_s3() -> (S3, Site, Place) {
    let s3 = S3::start();
    let place = Place::s3(&s3);
    (s3, curated(), place)
}

/// The same, published.
pub fn published_in_s3() -> (S3, Site, Place) {
    let (s3, site, place) = in_s3();
    place.once(&site);
    (s3, site, place)
}

/// A commit.
pub fn commit(site: &Site, version: u64) {
    site.import("conferences.jsonl", conferences_of_version(30, version));
}

/// A commit of few rows, for buckets that are read many times.
pub fn commit_few(site: &Site, version: u64) {
    site.import("conferences.jsonl", conferences_of_version(4, version));
}

/// A commit with about this number of bytes of changes.
fn commit_bytes(site: &Site, bytes: usize) {
    let writer = Writer::open(&site.db(), SOON).unwrap();
    let mut edit = writer.begin().unwrap();
    let settings = KeySettings {
        label: Some("x".repeat(bytes)),
        ..KeySettings::default()
    };
    edit.create_key("all", settings).unwrap();
    edit.commit().unwrap();
}

/// A copy of a site's database, without the files next to it.
pub fn copy_of(site: &Site) -> Site {
    let copy = Site::new();
    fs::copy(site.db(), copy.db()).unwrap();
    copy
}

#[test]
fn a_bucket_has_the_rows_of_the_published_database() {
    let s3 = S3::start();
    let site = curated();
    for place in [
        Place::folder(&site),
        Place::s3(&s3),
        Place::sealed(&site, &s3),
    ] {
        let kind = place.kind;
        let site = curated();
        assert_eq!(place.once(&site), 1, "{kind}: the state");
        assert_eq!(place.check(&site).slot, 1, "{kind}");
        assert_eq!(place.once(&site), 0, "{kind}: nothing is new");
        commit(&site, 1);
        site.license("half", "--dataset conferences --year 2025");
        let (id, _) = site.key("half", &[]);
        assert_eq!(place.once(&site), 1, "{kind}: commits are joined");
        site.json(["key", "revoke", &id, "--publish-wait", "0s"]);
        assert_eq!(place.once(&site), 1, "{kind}");
        let found = place.check(&site);
        assert_eq!(found.slot, 3, "{kind}");
        assert_eq!(found.entries, 2, "{kind}");
        assert_eq!(found.states, vec![1], "{kind}");
        let entries = [place.entry(2).header, place.entry(3).header];
        assert!(
            entries.iter().all(|header| !header.is_state()),
            "{kind}: {entries:?}"
        );
        assert_eq!(entries.map(|header| header.commits.len()), [3, 1], "{kind}");
        let noted = note(&site);
        let expected = (3, found.seq, None);
        assert_eq!((noted.slot, noted.seq, noted.fenced), expected, "{kind}");
        assert_eq!(noted.hash, place.entry(3).hash, "{kind}");
        let told = place.run(&site, "--status --json").json();
        assert_eq!(told["end"]["seq"], found.seq, "{kind}: {told}");
        assert_eq!(told["published"], true, "{kind}: {told}");
        assert_eq!(told["waiting_commits"], 0, "{kind}: {told}");
        commit(&site, 2);
        let told = place.run(&site, "--status --json").json();
        assert_eq!(told["published"], false, "{kind}: {told}");
        assert_eq!(told["waiting_commits"], 1, "{kind}: {told}");
        site.check();
    }
}

#[test]
fn a_whole_state_is_published_if_the_changes_are_missing() {
    let (site, place) = in_folder();
    let backup = site.backup("older.redb");
    place.once(&site);
    commit(&site, 1);
    let mut slot = 1;
    let mut is_state = |what: &str, expected: bool| {
        assert_eq!(place.once(&site), 1, "{what}");
        slot += 1;
        assert_eq!(place.entry(slot).header.is_state(), expected, "{what}");
        place.check(&site);
    };
    is_state("a commit", false);
    site.json(["restore".as_ref(), backup.as_os_str(), "--yes".as_ref()]);
    is_state("restore", true);
    commit(&site, 2);
    is_state("a commit after it", false);
    commit(&site, 3);
    site.json(["compact"]);
    commit(&site, 4);
    is_state("a commit, compact and a commit", true);
    commit(&site, 5);
    is_state("a commit after it", false);
    // More than the outbox can hold.
    commit_bytes(&site, 3 << 20);
    is_state("a commit that is most of the file", true);
    // A restore while the publisher runs.
    let mut publisher = place.start(&site, "--every 0s");
    let backup = site.backup("newer.redb");
    commit(&site, 7);
    site.json(["restore".as_ref(), backup.as_os_str(), "--yes".as_ref()]);
    let (_, head, _) = rows_of(&site.db());
    wait_for("the restored state is published", || {
        note(&site).seq == head.seq
    });
    publisher.kill();
    place.check(&site);
}

/// Dates all objects in a folder as if they were written `days` days ago.
pub fn age(folder: &Path, days: u64) {
    #[allow(
        clippy::disallowed_methods,
        reason = "the store's clock is not the program's"
    )]
    let then = SystemTime::now() - Duration::from_secs(days * 86_400);
    for entry in fs::read_dir(folder).unwrap().map(Result::unwrap) {
        if entry.path().is_dir() {
            age(&entry.path(), days);
            continue;
        }
        match File::options().write(true).open(entry.path()) {
            Ok(file) => file.set_modified(then).unwrap(),
            // A running publisher deleted it, or renamed it.
            Err(error) => assert_eq!(error.kind(), ErrorKind::NotFound, "{entry:?}"),
        }
    }
}

#[test]
fn a_publisher_that_cannot_continue_is_refused_with_a_remedy() {
    let (site, place) = published_in_folder();
    let older = fs::read(site.db()).unwrap();
    commit(&site, 1);
    place.once(&site);
    let replica = site.path("replica.redb");
    assert_eq!(follow(&place, &replica), (2, None));

    let other = curated();
    let refused = place.run(&other, "--once");
    refused.assert_told(1, "holds the log of another database");
    assert!(
        Reader::open(&other.db())
            .unwrap()
            .origin()
            .unwrap()
            .id()
            .unwrap()
            .is_none(),
        "it is not marked"
    );

    // An older copy of the file replaces it.
    fs::write(site.db(), older).unwrap();
    commit(&site, 2);
    for _ in 0..2 {
        let refused = place.run(&site, "--once");
        assert_eq!(refused.code, Some(1), "{refused:?}");
        for piece in words![
            "does not contain the last entry of " " from this very file at " "--start-over"
        ] {
            assert!(refused.stderr.contains(piece), "{refused:?}");
        }
        // The entry itself shows it too, as after a publisher that was killed before it wrote the note.
        let _ = fs::remove_file(site.path("feed.redb.published"));
    }
    assert_eq!(place.once_with(&site, "--start-over"), 1);
    let state = place.entry(3).header;
    assert!(
        state.is_state() && state.seq > place.entry(2).header.seq,
        "replicas never go back: {state:?}"
    );
    place.check(&site);
    assert_eq!(follow(&place, &replica), (3, None));
    assert_eq!(rows_of(&replica), rows_of(&site.db()));
    assert_eq!(
        place.once_with(&site, "--start-over"),
        1,
        "a state, although the log already ends with this database"
    );
    assert_eq!(
        rows_of(&replica),
        rows_of(&site.db()),
        "a second --start-over changes no row"
    );

    // A missing folder is that of a disk that is not mounted, so none is made.
    fs::remove_dir_all(site.path("bucket")).unwrap();
    let log = fs::File::create(site.path("publisher.log")).unwrap();
    let mut publisher = Process::spawn(place.command(&site, "").stderr(log));
    wait_for("the folder is missed", || {
        let told = fs::read_to_string(site.path("publisher.log")).unwrap();
        told.contains("whether its disk is mounted")
    });
    publisher.kill();
    assert!(!site.path("bucket").exists());

    // The bucket lost its objects.
    fs::create_dir(site.path("bucket")).unwrap();
    let refused = place.run(&site, "--once");
    refused.assert_told(1, "is empty, though ");
    assert_eq!(place.once_with(&site, "--start-over"), 1);
    let place = Place::folder(&site);
    assert!(place.entry(5).header.is_state());
    let found = follow(&place, &replica);
    assert_eq!(found, (5, None), "replicas continue from slot 3");
    assert_eq!(place.slots(layout::STATES), [5]);
    place.check(&site);
    let states = site.path("bucket").join(layout::STATES);
    fs::rename(&states, site.path("states")).unwrap();
    let told = place.run(&site, "--status");
    told.assert_shown(0, "There is no whole state");
    fs::rename(site.path("states"), &states).unwrap();
    let elsewhere = site.run([
        "publish",
        &format!("file://{}", site.path("elsewhere").display()),
        "--once",
    ]);
    elsewhere.assert_told(0, "replicas of it get no further");
    let refused = site.run(["publish", "file:///dev/null/feed", "--once"]);
    refused.assert_told(1, "/dev/null/feed");
}

#[test]
fn a_command_with_publish_wait_waits_until_the_bucket_has_its_change() {
    let (site, place) = in_folder();
    let (id, _) = site.key("all", &[]);
    let revoked = site.run(["key", "revoke", &id, "--publish-wait", "1ms"]);
    assert_eq!(
        revoked.code,
        Some(0),
        "nothing is published, so nothing is waited for: {revoked:?}"
    );
    place.once(&site);
    let (id, _) = site.key("all", &[]);
    let late = site.run(["key", "revoke", &id, "--publish-wait", "1ms"]);
    assert_eq!(late.code, Some(3), "{late:?}");
    assert!(late.stdout.contains("is revoked"), "{late:?}");
    late.assert_err("replicas do not have the change yet");
    for dry in [
        &["license", "set", "new", "--dataset", "conferences"][..],
        &["import", "conferences.jsonl"],
    ] {
        let done = site.run([dry, &["--dry-run", "--publish-wait", "1ms"]].concat());
        assert_eq!(
            done.code,
            Some(0),
            "a dry run changes nothing, so it waits for nothing: {done:?}"
        );
        assert!(!done.stderr.contains("replicas do not have"), "{done:?}");
    }
    let mut publisher = place.start(&site, "--every 0s");
    let (id, _) = site.key("all", &[]);
    let begun = now();
    let done = site.run(["key", "revoke", &id]);
    assert_eq!(done.code, Some(0), "{done:?} since {begun}");
    let (_, head, _) = rows_of(&site.db());
    let seq = PublishedNote::read(&site.db()).unwrap().unwrap().seq;
    assert_eq!(seq, head.seq);
    publisher.kill();
    let unheeded = site.run(["license", "set", "new", "--dataset", "conferences"]);
    assert_eq!(
        unheeded.code,
        Some(0),
        "other commands do not wait: {unheeded:?}"
    );
    let mut waiting = Process::spawn(
        site.command(["license", "remove", "new", "--yes"])
            .stdout(Stdio::null()),
    );
    place.once(&site);
    assert_eq!(waiting.exit_code(), Some(0), "it is published meanwhile");
}

#[test]
fn a_publisher_is_named_by_one_word() {
    let (site, place) = in_folder();
    let done = place
        .command(&site, "--once")
        .env("USER", "Jane Doe")
        .output()
        .unwrap();
    assert!(done.status.success(), "{done:?}");
    let told = place.run(&site, "--status --json").json();
    let who = told["end"]["who"].as_str().unwrap();
    assert!(
        who.strip_prefix("Jane?Doe@")
            .is_some_and(|machine| !machine.is_empty()),
        "{told}"
    );
    let alive =
        Heartbeat::decode(&place.bucket.get(layout::ALIVE).unwrap().unwrap().bytes).unwrap();
    assert_eq!(alive.who, who);
}

#[test]
fn commits_during_a_state_are_published_after_it() {
    let (s3, site, place) = published_in_s3();
    let mut publisher = place.start(&site, "--every 0s --state-every 0s --heartbeat 50ms");
    s3.fail("PUT", "/parts/", Fault::Held, 1);
    commit(&site, 1);
    s3.wait_for_held();
    for version in 2..=3 {
        commit(&site, version);
    }
    assert_eq!(place.slots(layout::LOG), vec![1, 2]);
    assert_eq!(place.slots(layout::STATES), vec![1]);
    s3.release();
    let (_, head, _) = rows_of(&site.db());
    wait_for("the commits are published", || note(&site).seq == head.seq);
    publisher.signal("TERM");
    assert_eq!(publisher.exit_code(), Some(0));
    let (state, before) = (place.entry(3).header, place.entry(2).header);
    assert!(
        state.is_state() && !state.replaces(before.head(), before.digest),
        "{state:?} is that after {before:?}"
    );
    assert!(!place.entry(4).header.is_state());
    place.check(&site);
}

#[test]
fn several_parts_are_sent_at_once() {
    let (s3, site, place) = in_s3();
    // More than one part of 8 MiB, in whichever order the rows come.
    (0..3).for_each(|_| commit_bytes(&site, 5 << 20));
    s3.fail("PUT", "/parts/", Fault::Held, 1);
    let mut publisher = place.spawn(&site, "--once");
    s3.wait_for_held();
    let parts = || {
        s3.requests()
            .iter()
            .filter(|asked| asked.starts_with("PUT feed/some/prefix/parts/"))
            .count()
    };
    wait_for("another part", || parts() > 1);
    s3.release();
    assert_eq!(publisher.exit_code(), Some(0));
    let parts = place.manifest(1).parts;
    assert!(parts.len() > 1, "{}", parts.len());
    place.check(&site);
}
