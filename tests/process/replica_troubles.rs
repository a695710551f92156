//! Failures between an origin and its replicas, and the reactions of the replicas.

use medfeed::replicate::layout;

use super::client::Client;
use super::monitoring::scrape;
use super::origin::url_of;
use super::published::Place;
use super::replicas::{COUNT, origin, readyz, seq_of, serve, wait_for_seq};
use super::site::{SOON, Site, conferences_of_version, wait_for, wait_until};

#[test]
fn a_replica_that_is_cut_off_answers_503_after_max_staleness() {
    let (origin, key) = origin();
    let replica = origin.replica();
    let (server, mut admin) = serve(&replica, "--poll 50ms --max-staleness 2s");
    // A replica that is cut off answers for a while, then refuses. So keys that may have been revoked since give no
    // access.
    let mut client = server.client(&key);
    let away = origin.site.path("away");
    std::fs::rename(origin.folder(), &away).unwrap();
    wait_for("it is reported", || readyz(&mut admin).1 != "ok\n");
    let answer = wait_until("the staleness is too much", SOON, || {
        let answer = client.get("/v1/conferences");
        (answer.status != 200).then_some(answer)
    });
    answer.assert_problem(503, "unavailable");
    assert_eq!(answer.header("retry-after"), Some("10"));
    for (path, status) in [
        ("/v1/status", 503),
        ("/v1/exports/journals", 503),
        ("/docs", 200),
    ] {
        assert_eq!(client.get(path).status, status, "{path}");
    }
    assert_eq!(
        server.client("no key at all").get("/v1/conferences").status,
        503
    );
    let (status, told) = readyz(&mut admin);
    assert!(status == 503, "{told}");
    assert!(told.contains("seconds ago, so it answers 503: "), "{told}");
    let metrics = scrape(&mut admin);
    assert!(
        metrics["medfeed_replica_stale_seconds"] >= 2.0 && metrics["medfeed_replica_fit"] == 0.0,
        "{metrics:?}"
    );

    // A replica that starts now may have missed commits, so it does not answer either.
    server.stop();
    let (server, mut admin) = serve(&replica, "--poll 50ms --max-staleness 1h");
    let mut client = server.client(&key);
    assert_eq!(client.get("/v1/conferences").status, 503);
    assert!(readyz(&mut admin).1.contains("has not confirmed the end"));
    std::fs::rename(&away, origin.folder()).unwrap();
    wait_for("it is followed again", || {
        client.get("/v1/conferences").status == 200
    });
    wait_for("it is ready", || admin.get("/readyz").status == 200);
    server.stop();
}

#[test]
fn metrics_show_the_silence_of_a_publisher() {
    let (origin, key) = origin();
    let replica = origin.replica();
    let (server, mut admin) = serve(&replica, "--poll 50ms --max-staleness 4s");
    let mut silence_s = || scrape(&mut admin)["medfeed_replica_publisher_silence_seconds"];
    wait_for("there is silence", || silence_s() >= 1.0);
    // Each heartbeat ends the silence, however long the replica runs.
    let _publisher = Place::folder(&origin.site).start(&origin.site, "--heartbeat 50ms");
    wait_for("the silence is over", || silence_s() == 0.0);
    assert_eq!(server.client(&key).get("/v1/conferences").status, 200);
    server.stop();
}

#[test]
fn a_replica_without_a_usable_bucket_or_file_is_refused_at_the_start() {
    let (origin, _) = origin();
    let (other, _) = super::replicas::origin();
    let site = Site::new();
    let empty = site.path("empty");
    std::fs::create_dir(&empty).unwrap();
    let start = |site: &Site, url: &str, more: &[&str]| {
        let args = [
            &["serve", "--listen", "127.0.0.1:0", "--from", url][..],
            more,
        ]
        .concat();
        let done = site.ends(args);
        assert_eq!(done.stdout, "", "{done:?}");
        done
    };
    let cases: [(&Site, String, &[&str], i32, &str); 4] = cases![
        &site, url_of(&empty), &[], 1, "nothing is published at file:///";
        &site, "/srv/feed".to_owned(), &[], 2, "write it as file:///srv/feed";
        &site, origin.url(), &["--seal-key", "nowhere"], 1, "openssl rand -hex 64";
        &origin.site, origin.url(), &[], 1, "is not a replica";
    ];
    for (site, url, more, code, piece) in cases {
        let done = start(site, &url, more);
        done.assert_told(code, piece);
    }
    assert!(!site.db().exists(), "a refused start leaves no file");
    let replica = origin.replica();
    // The option that the image for containers sets has no effect here.
    replica.serve("--create").stop();
    for (url, piece) in [
        (other.url(), "but the file is a replica of"),
        (url_of(&empty), "nothing is published"),
    ] {
        let done = start(&replica.site, &url, &[]);
        done.assert_told(1, piece);
    }
}

#[test]
fn a_replicas_file_is_read_like_its_origins_and_written_by_no_command() {
    let (origin, _) = origin();
    let replica = origin.replica();
    let server = replica.serve("");
    let (site, url) = (&replica.site, origin.url());
    let rows = site.write("conferences.jsonl", conferences_of_version(COUNT, 1));
    let backup = origin.site.backup("backup.redb");
    let refused = [
        &["import", rows.to_str().unwrap()][..],
        &["import", rows.to_str().unwrap(), "--dry-run"],
        &["license", "set", "other", "--dataset", "journals"],
        &["key", "create", "--license", "all"],
        &["compact"],
        &["restore", backup.to_str().unwrap(), "--yes"],
    ];
    let assert_refused = || {
        for command in refused {
            // Longer than a test waits.
            let done = site.ends([command, &["--wait", "10m"]].concat());
            let expected = format!(
                "feed.redb is a replica of {url}; write to its origin. If that is lost, `medfeed promote` makes"
            );
            done.assert_told(1, &expected);
        }
    };
    assert_refused();
    server.stop();
    assert_refused();
    // Keys may be revoked at the origin, so a server refuses a replica that it would not follow with.
    let done = site.ends(["serve", "--listen", "127.0.0.1:0"]);
    for expected in [
        &format!("feed.redb is a replica of {url}"),
        &format!("--from {url}"),
        "medfeed promote",
    ] {
        done.assert_told(1, expected);
    }
    site.check();
    // Its backups are databases of their own. A plain copy of its file is a backup too.
    site.backup("copy.redb");
    std::fs::copy(site.db(), site.path("plain.redb")).unwrap();
    site.json(["restore", "plain.redb", "--db", "restored.redb", "--yes"]);
    for db in ["copy.redb", "restored.redb"] {
        site.json([
            "license",
            "set",
            "other",
            "--dataset",
            "journals",
            "--db",
            db,
        ]);
    }
}

#[test]
fn an_invalid_entry_is_reported_until_a_valid_one_replaces_it() {
    let (mut origin, key) = origin();
    let replica = origin.replica();
    let (server, mut admin) = serve(&replica, "--poll 20ms");
    let mut client = server.client(&key);
    // It stays ready, because the failure of the bucket does not affect its callers.
    let await_told = |admin: &mut Client, piece: &str| {
        wait_for(piece, || {
            let (status, told) = readyz(admin);
            assert_eq!(status, 200, "{told}");
            told.contains(piece)
        });
    };
    // Bytes that are no entry.
    let (before, name) = (seq_of(&mut admin), layout::log(origin.slot + 1));
    origin
        .site
        .import("conferences.jsonl", conferences_of_version(COUNT, 1));
    let (header, changes) = origin.next_entry();
    std::fs::write(origin.folder().join(&name), "rotten").unwrap();
    await_told(&mut admin, &name);
    assert!(scrape(&mut admin)["medfeed_replica_unusable_objects_total"] >= 1.0);
    assert_eq!(
        (client.get("/v1/conferences").status, seq_of(&mut admin)),
        (200, before)
    );
    std::fs::remove_file(origin.folder().join(&name)).unwrap();
    origin.put(&header, &changes);
    wait_for_seq(&origin, &mut admin);
    wait_for("it is ready", || readyz(&mut admin).1 == "ok\n");
    // Rows that differ from the origin's. A new load does not help either, until there is a state with the right
    // digest.
    origin.publish();
    origin
        .site
        .import("conferences.jsonl", conferences_of_version(COUNT, 2));
    let (mut header, changes) = origin.next_entry();
    header.digest.0[2] ^= 1;
    header.commits.last_mut().unwrap().digest = header.digest;
    origin.put(&header, &changes);
    await_told(&mut admin, "digest");
    assert!(scrape(&mut admin)["medfeed_replica_digest_failures_total"] >= 1.0);
    assert_eq!(
        client.get("/v1/conferences/1").json()["data"]["venue"],
        "version 1"
    );
    let done = origin.site.ends(["check", "--from", &origin.url()]);
    done.assert_told(1, "digest");
    origin
        .site
        .import("conferences.jsonl", conferences_of_version(COUNT, 3));
    origin.add_state();
    wait_for_seq(&origin, &mut admin);
    assert_eq!(
        client.get("/v1/conferences/1").json()["data"]["venue"],
        "version 3"
    );
    // After an entry with an unknown schema, the replica follows no more.
    origin
        .site
        .import("conferences.jsonl", conferences_of_version(COUNT, 4));
    let (mut header, changes) = origin.next_entry();
    header.schema += 1;
    origin.put(&header, &changes);
    await_told(&mut admin, "use the origin's version here too");
    server.wait_for_log("no longer follows its origin");
    assert_eq!(client.get("/v1/conferences").status, 200);
    server.stop();
    replica.site.check();
}
