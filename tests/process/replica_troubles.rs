//! Failures between an origin and its replicas, and how the replicas react.

use medfeed::replicate::layout;

use super::client::Client;
use super::faults::{Disk, roomy_conferences};
use super::monitoring::scrape;
use super::origin::url_of;
use super::published::Place;
use super::replicas::{COUNT, origin, seq_of, serve, wait_for_seq};
use super::site::{SOON, Site, conferences_of_version, wait_until};

#[test]
fn a_revoked_key_dies_and_a_replica_that_is_cut_off_answers_no_more() {
    let (mut origin, key) = origin();
    let (id, doomed) = origin.site.key("all", &[]);
    origin.publish();
    let replica = origin.replica();
    let (server, mut admin) = serve(&replica, "--poll 50ms --max-staleness 2s");
    let mut client = server.client(&doomed);
    assert_eq!(client.get("/v1/conferences").status, 200);
    origin.site.json(["key", "revoke", &id, "--publish-wait", "0s"]);
    origin.publish();
    wait_until("the key is dead", SOON, || (client.get("/v1/conferences").status == 401).then_some(()));
    assert_eq!(client.get("/v1/conferences").problem(), "revoked_api_key");

    // Cut off: served for a while, then no more; the keys of yesterday open nothing.
    let mut client = server.client(&key);
    let away = origin.site.path("away");
    std::fs::rename(origin.folder(), &away).unwrap();
    wait_until("it is told", SOON, || (readyz(&mut admin).1 != "ok\n").then_some(()));
    let answer = wait_until("the staleness is too much", SOON, || {
        let answer = client.get("/v1/conferences");
        (answer.status != 200).then_some(answer)
    });
    assert_eq!((answer.status, answer.problem().as_str()), (503, "unavailable"));
    assert_eq!(answer.header("retry-after"), Some("10"));
    for (path, status) in [("/v1/status", 503), ("/v1/exports/journals", 503), ("/docs", 200)] {
        assert_eq!(client.get(path).status, status, "{path}");
    }
    assert_eq!(server.client("no key at all").get("/v1/conferences").status, 503);
    let ready = admin.get("/readyz");
    let told = String::from_utf8(ready.body).unwrap();
    assert!(ready.status == 503 && told.contains("seconds ago, so it answers 503: "), "{told}");
    let metrics = scrape(&mut admin);
    assert!(metrics["medfeed_replica_stale_seconds"] >= 2.0 && metrics["medfeed_replica_fit"] == 0.0, "{metrics:?}");

    // One that starts now does not know what it missed, so it does not answer either.
    server.stop();
    let (server, mut admin) = serve(&replica, "--poll 50ms --max-staleness 1h");
    let mut client = server.client(&key);
    assert_eq!(client.get("/v1/conferences").status, 503);
    assert!(String::from_utf8(admin.get("/readyz").body).unwrap().contains("since it started"));
    std::fs::rename(&away, origin.folder()).unwrap();
    wait_until("it is followed again", SOON, || (client.get("/v1/conferences").status == 200).then_some(()));
    wait_until("it is ready", SOON, || (admin.get("/readyz").status == 200).then_some(()));
    server.stop();
}

#[test]
fn a_silent_publisher_is_told() {
    let (origin, key) = origin();
    let replica = origin.replica();
    let (server, mut admin) = serve(&replica, "--poll 50ms");
    let mut silence_s = || scrape(&mut admin)["medfeed_replica_publisher_silence_seconds"];
    wait_until("there is silence", SOON, || (silence_s() >= 1.0).then_some(()));
    // Each heartbeat ends the silence, however long the replica runs.
    let _publisher = Place::folder(&origin.site).start(&origin.site, "--heartbeat 50ms");
    wait_until("the silence is over", SOON, || (silence_s() == 0.0).then_some(()));
    assert_eq!(server.client(&key).get("/v1/conferences").status, 200);
    server.stop();
}

/// Whether a server is ready, and what it tells with that.
fn readyz(admin: &mut Client) -> (u16, String) {
    let answer = admin.get("/readyz");
    (answer.status, String::from_utf8(answer.body).unwrap())
}

#[test]
fn a_damaged_entry_is_named_and_counted_until_the_right_one_is_there() {
    let (mut origin, key) = origin();
    let replica = origin.replica();
    let (server, mut admin) = serve(&replica, "--poll 20ms");
    let before = seq_of(&mut admin);
    let name = layout::log(origin.slot + 1);
    origin.site.import("conferences.jsonl", conferences_of_version(COUNT, 1));
    let (header, changes) = origin.next_entry();
    std::fs::write(origin.folder().join(&name), "rotten").unwrap();
    // It is ready all the same: the bucket's failure is not its callers'.
    wait_until("the object is named", SOON, || {
        let (status, told) = readyz(&mut admin);
        (status == 200 && told.contains(&name)).then_some(())
    });
    assert!(scrape(&mut admin)["medfeed_replica_unusable_objects_total"] >= 1.0);
    assert_eq!((server.client(&key).get("/v1/conferences").status, seq_of(&mut admin)), (200, before));
    std::fs::remove_file(origin.folder().join(&name)).unwrap();
    origin.put(&header, &changes);
    wait_for_seq(&origin, &mut admin);
    wait_until("it is well", SOON, || (readyz(&mut admin).1 == "ok\n").then_some(()));
    server.stop();
}

#[test]
fn rows_that_are_not_the_origins_are_loaded_anew() {
    let (mut origin, key) = origin();
    let replica = origin.replica();
    let (server, mut admin) = serve(&replica, "--poll 20ms");
    origin.site.import("conferences.jsonl", conferences_of_version(COUNT, 1));
    let (mut header, changes) = origin.next_entry();
    header.digest.0[2] ^= 1;
    let last = header.commits.last_mut().unwrap();
    last.digest = header.digest;
    origin.put(&header, &changes);
    wait_until("it is told", SOON, || {
        (scrape(&mut admin)["medfeed_replica_digest_failures_total"] >= 1.0).then_some(())
    });
    assert_eq!(scrape(&mut admin)["medfeed_replica_entries_applied_total"], 0.0);
    // Not even a new load helps before there is a state that adds up.
    let told = wait_until("it is told", SOON, || {
        let (status, told) = readyz(&mut admin);
        assert_eq!(status, 200);
        (told != "ok\n").then_some(told)
    });
    assert!(told.contains("digest"), "{told}");
    server.stop();
    let done = origin.site.ends(["check", "--from", &origin.url()]);
    assert!(done.code == Some(1) && done.stderr.contains("digest"), "{done:?}");
    origin.site.import("conferences.jsonl", conferences_of_version(COUNT, 2));
    origin.add_state();
    let (server, mut admin) = serve(&replica, "--poll 20ms");
    wait_for_seq(&origin, &mut admin);
    let metrics = scrape(&mut admin);
    assert_eq!(metrics["medfeed_replica_loads_total"], 1.0, "{metrics:?}");
    assert_eq!(server.client(&key).get("/v1/conferences/1").json()["data"]["venue"], "version 2");
    server.stop();
    replica.site.check();
}

#[test]
fn a_replica_whose_disk_is_full_goes_on_once_there_is_room() {
    let (mut origin, key) = origin();
    let replica = origin.replica();
    let Some(disk) = Disk::mount(replica.site.folder(), 96 << 20) else {
        println!("skipped: no file system can be mounted here");
        return;
    };
    let (server, mut admin) = serve(&replica, "--poll 20ms");
    let venue = || server.client(&key).get("/v1/conferences/1").json()["data"]["venue"].clone();
    disk.fill(0);
    origin.site.import("conferences.jsonl", roomy_conferences(COUNT, 1));
    origin.publish();
    wait_until("it is told", SOON, || readyz(&mut admin).1.contains("no room left on the disk").then_some(()));
    assert_eq!(venue(), "version 0");
    disk.free_all();
    wait_for_seq(&origin, &mut admin);
    assert_eq!(venue(), "version 1");
    // The error is cleared a moment after the entry can be seen.
    wait_until("it is well", SOON, || (readyz(&mut admin) == (200, "ok\n".to_owned())).then_some(()));
    server.stop();
    replica.site.check();
}

#[test]
fn what_cannot_be_followed_is_refused_at_the_start() {
    let (origin, _) = origin();
    let (other, _) = super::replicas::origin();
    let site = Site::new();
    let empty = site.path("empty");
    std::fs::create_dir(&empty).unwrap();
    let start = |site: &Site, url: &str, more: &[&str]| {
        let args = [&["serve", "--listen", "127.0.0.1:0", "--from", url][..], more].concat();
        let done = site.ends(args);
        assert_eq!(done.stdout, "", "{done:?}");
        done
    };
    let cases: [(&Site, String, &[&str], i32, &str); 4] = [
        (&site, url_of(&empty), &[], 1, "nothing is published at file:///"),
        (&site, "/srv/feed".to_owned(), &[], 2, "write it as file:///srv/feed"),
        (&site, origin.url(), &["--seal-key", "nowhere"], 1, "openssl rand -hex 64"),
        (&origin.site, origin.url(), &[], 1, "is not a replica"),
    ];
    for (site, url, more, code, piece) in cases {
        let done = start(site, &url, more);
        assert_eq!(done.code, Some(code), "{url} {more:?}: {done:?}");
        assert!(done.stderr.contains(piece), "{url} {more:?}: {done:?}");
    }
    assert!(!site.db().exists(), "nothing is left of what was refused");
    let replica = origin.replica();
    // What the image for containers sets means nothing here.
    replica.serve("--create").stop();
    for (url, piece) in [(other.url(), "but the file is a replica of"), (url_of(&empty), "nothing is published")] {
        let done = start(&replica.site, &url, &[]);
        assert!(done.code == Some(1) && done.stderr.contains(piece), "{url}: {done:?}");
    }
}

#[test]
fn a_schema_that_is_not_known_ends_following() {
    let (mut origin, key) = origin();
    let replica = origin.replica();
    let (server, mut admin) = serve(&replica, "--poll 20ms");
    origin.site.import("conferences.jsonl", conferences_of_version(COUNT, 1));
    let (mut header, changes) = origin.next_entry();
    header.schema += 1;
    origin.put(&header, &changes);
    let told = wait_until("it is told", SOON, || {
        let (status, told) = readyz(&mut admin);
        assert_eq!(status, 200);
        (told != "ok\n").then_some(told)
    });
    assert!(told.contains("use the origin's version here too"), "{told}");
    server.wait_for_log("no longer follows its origin");
    assert_eq!(server.client(&key).get("/v1/conferences").status, 200);
    server.stop();
}
