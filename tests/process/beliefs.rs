//! Replicas, commands and servers with misleading evidence: a bucket that lost objects, a note about another file, a
//! publisher that was replaced.

use std::fs;
use std::process::Stdio;

use medfeed::model::DatabaseId;
use medfeed::replicate::heartbeat::Heartbeat;
use medfeed::replicate::layout;
use medfeed::store::replication::PublishedNote;

use super::client::Client;
use super::clocks::Clock;
use super::faults::{Disk, roomy_conferences};
use super::monitoring::{scrape, start_watched};
use super::origin::Replica;
use super::promotion::{promote, replica_of};
use super::published::{Place, follow, note, rows_of};
use super::publishing::{commit, copy_of, curated, in_folder, published_in_folder};
use super::replicas::{self, readyz};
use super::s3::{Fault, S3};
use super::site::{
    Done, Process, SOON, Server, Site, assert_contains, conferences_of_version, wait_for,
    wait_until,
};

const TARGET: &str = "/v1/conferences?limit=1";
/// Options of a publisher with frequent heartbeats, and of a replica that reads them often.
const LIVELY: &str = "--every 0s --heartbeat 40ms";
const STRICT: &str = "--poll 20ms --max-staleness 1s";

/// Serves a replica that is stale soon.
fn serve(node: &Site, place: &Place) -> (Server, Client) {
    let options = format!("{STRICT} --admin-listen 127.0.0.1:0 --log info");
    start_watched(node, place.serve_command(node, &options))
}

fn wait_for_status(client: &mut Client, status: u16) {
    wait_for(&format!("status {status}"), || {
        client.get(TARGET).status == status
    });
}

#[test]
fn a_replica_behind_a_missing_entry_answers_503() {
    let (site, place) = in_folder();
    let (id, doomed) = site.key("all", &[]);
    place.once(&site);
    let node = replica_of(&place);
    // Slot 2 vanishes before the replica reads it; the key is revoked in slot 3.
    commit(&site, 1);
    place.once(&site);
    site.json(["key", "revoke", &id, "--publish-wait", "0s"]);
    place.once(&site);
    let entry = site.path("bucket").join(layout::log(2));
    let kept = fs::read(&entry).unwrap();
    fs::remove_file(&entry).unwrap();

    let (server, mut admin) = serve(&node, &place);
    let mut client = server.client(&doomed);
    let status = client.get(TARGET).status;
    assert_eq!(status, 503, "the end of the log is unconfirmed");
    let (status, told) = readyz(&mut admin);
    assert_eq!(status, 503, "{told}");
    for part in ["slot 2 (`log/00000000000000000002`)", "--start-over"] {
        assert_contains(&told, part);
    }
    let fresh = Site::new();
    let refused = fresh.ends(["serve", "--listen", "127.0.0.1:0", "--from", &place.url]);
    refused.assert_told(1, "slot 2 (");
    assert!(!fresh.db().exists());
    // The entry is put back: the replica is ready, and the key is revoked.
    fs::write(&entry, &kept).unwrap();
    wait_for_status(&mut client, 401);
    wait_for("it is ready", || readyz(&mut admin).0 == 200);
    server.stop();
}

#[test]
fn a_replica_that_contradicts_the_heartbeat_answers_503() {
    let (site, place) = in_folder();
    let key = site.key("all", &[]).1;
    place.once(&site);
    commit(&site, 1);
    place.once(&site);
    let node = replica_of(&place);
    let (server, mut admin) = serve(&node, &place);
    let mut client = server.client(&key);
    wait_for_status(&mut client, 200);
    let path = site.path("bucket").join(layout::ALIVE);
    let sound = Heartbeat::decode(&fs::read(&path).unwrap()).unwrap();
    let first = place.entry(1).hash;
    let beat = |slot, hash, later_s| Heartbeat {
        slot,
        hash,
        at: sound.at.plus_s(later_s),
        ..sound.clone()
    };
    let put = |alive: &Heartbeat| fs::write(&path, alive.encode().unwrap()).unwrap();
    // Heartbeats, and a part of the message. Each time the replica answers 503, and then recovers.
    let cases = cases![
        Some(beat(3, [7; 32], 10)), "slot 3 (`log/00000000000000000003`)";
        Some(beat(1, first, -60)), "went back: from slot 2 at";
        Some(beat(2, [7; 32], 30)), "names another entry of slot 2";
        Some(Heartbeat { id: DatabaseId([7; 16]), ..beat(2, sound.hash, 40) }), "is of another database";
        None, "heartbeat (`alive`) is not in the bucket";
        // Another publisher continues an earlier copy of the bucket, and the last entry is missing.
        Some(Heartbeat { seq: 1, ..beat(1, first, 60) }), "ends at slot 1, seq 1, before seq";
    ];
    let last = site.path("bucket").join(layout::log(2));
    let kept = fs::read(&last).unwrap();
    for ((alive, piece), at) in cases.into_iter().zip((15..).step_by(10)) {
        match &alive {
            Some(alive) => put(alive),
            None => fs::remove_file(&path).unwrap(),
        }
        if piece.contains("before seq") {
            fs::remove_file(&last).unwrap();
        }
        wait_for_status(&mut client, 503);
        let (status, told) = readyz(&mut admin);
        assert!(status == 503 && told.contains(piece), "{alive:?}: {told}");
        fs::write(&last, &kept).unwrap();
        put(&beat(2, sound.hash, at));
        wait_for_status(&mut client, 200);
    }
    // A heartbeat that is older than the last entry is usual, because entries come more often.
    commit(&site, 2);
    place.once(&site);
    put(&beat(2, sound.hash, 100));
    wait_for("the entry", || {
        scrape(&mut admin)["medfeed_replica_slot"] == 3.0
    });
    wait_for("it is ready", || {
        readyz(&mut admin) == (200, "ok\n".to_owned())
    });
    server.stop();
}

#[test]
fn key_revoke_succeeds_only_if_this_very_file_is_published() {
    let (site, place) = in_folder();
    let (first, _) = site.key("all", &[]);
    let (second, _) = site.key("all", &[]);
    place.once(&site);
    let older = site.backup("older.redb");
    for version in 1..=3 {
        commit(&site, version);
    }
    place.once(&site);
    let late = "replicas do not have the change yet";

    // A backup copied over the file, whose seqs the note has passed.
    fs::copy(&older, site.db()).unwrap();
    let imported = site.run(["import", site.path("conferences.jsonl").to_str().unwrap()]);
    assert!(imported.code == Some(0), "{imported:?}");
    imported.assert_err("with a commit, at seq");
    for json in [&[][..], &["--json"]] {
        let done = site.run([&["key", "create", "--license", "all"], json].concat());
        assert!(done.code == Some(0), "{done:?}");
        assert!(done.stderr.starts_with("warning: "), "{done:?}");
        assert_eq!(done.stdout.starts_with('{'), !json.is_empty(), "{done:?}");
    }
    let revoked = site.run(["key", "revoke", &first, "--publish-wait", "1ms"]);
    revoked.assert_told(3, late);
    revoked.assert_err("the file was replaced by another copy");
    let told = place.run(&site, "--once");
    told.assert_told(1, "does not contain the last entry of ");
    assert_eq!(place.once_with(&site, "--start-over"), 1);
    let created = site.run(["key", "create", "--license", "all"]);
    let is_warned = created.stderr.contains("this file does not contain");
    assert!(!is_warned, "{created:?}");

    // A database moved without its note.
    let moved = copy_of(&site);
    let revoked = moved.run(["key", "revoke", &second]);
    revoked.assert_told(3, late);
    revoked.assert_err("`medfeed publish URL`");
    place.once(&moved);
    let (third, _) = moved.key("all", &[]);
    place.once(&moved);
    let waited = moved.run(["key", "revoke", &third, "--publish-wait", "1ms"]);
    waited.assert_told(3, "is not in file://");

    // A note about another database.
    let other = curated();
    let (key, _) = other.key("all", &[]);
    let name = site.path("feed.redb.published");
    fs::copy(name, other.path("feed.redb.published")).unwrap();
    let revoked = other.run(["key", "revoke", &key]);
    revoked.assert_told(3, "is about another database");
    fs::remove_file(other.path("feed.redb.published")).unwrap();
    let (key, _) = other.key("all", &[]);
    let code = other.run(["key", "revoke", &key]).code;
    assert_eq!(code, Some(0), "it was never published");
}

#[test]
fn a_narrowed_license_warns_that_replicas_do_not_have_it_yet() {
    let (site, place) = published_in_folder();
    let set = |more: &str| {
        let all = "license set all --yes --dataset conferences --dataset journals";
        site.run(format!("{all} {more}").split(' '))
    };
    let assert_quiet = |done: Done| {
        assert_eq!(done.code, Some(0), "{done:?}");
        assert!(!done.stderr.contains("replicas do not have"), "{done:?}");
    };
    set("--country Japan").assert_told(0, "replicas do not have the change yet");
    assert_quiet(set("--widen"));
    // The same number of records enter and leave.
    site.license("area", "--dataset conferences --therapy-area Oncology");
    let exchange = site
        .run("license set area --yes --dataset conferences --therapy-area Cardiology".split(' '));
    exchange.assert_out("records entering: 10, leaving: 10");
    exchange.assert_told(0, "replicas do not have the change yet");
    let _publisher = place.start(&site, LIVELY);
    assert_quiet(set("--country Japan"));
}

#[test]
fn a_server_of_a_fenced_database_answers_503_after_max_staleness() {
    let (site, place) = in_folder();
    let key = site.key("all", &[]).1;
    let publisher = place.start(&site, LIVELY);
    let other = replica_of(&place);
    let serve_origin = |staleness: &str| {
        let options = format!("--admin-listen 127.0.0.1:0 --log info {staleness}");
        start_watched(&site, site.serve_command(&options))
    };
    let statuses = |server: &Server, admin: &mut Client| {
        (server.client(&key).get(TARGET).status, readyz(admin).0)
    };
    let (lasting, mut lasting_admin) = serve_origin("--max-staleness 1h");
    let (server, mut admin) = serve_origin("--max-staleness 1s");
    let (mut client, mut lasting_client) = (server.client(&key), lasting.client(&key));
    assert_eq!(statuses(&server, &mut admin), (200, 200));
    assert_eq!(scrape(&mut admin)["medfeed_fenced"], 0.0);
    let promoted = place.json(&other, &["promote", &place.url, "--yes"]);
    assert_eq!(promoted["promoted"], true);

    wait_for("it is not ready", || readyz(&mut lasting_admin).0 == 503);
    let told = readyz(&mut lasting_admin).1;
    assert_contains(&told, "another publisher took over");
    assert_contains(&told, " published slot ");
    let status = lasting_client.get(TARGET).status;
    assert_eq!(status, 200, "callers have time to go elsewhere");
    assert_eq!(scrape(&mut lasting_admin)["medfeed_fenced"], 1.0);
    lasting.wait_for_log("another publisher took over from this database");
    wait_for_status(&mut client, 503);
    assert_eq!(client.get(TARGET).problem(), "unavailable");
    drop(publisher);
    server.stop();
    // A restart does not restart the time limit.
    let (server, mut admin) = serve_origin("--max-staleness 1s");
    assert_eq!(statuses(&server, &mut admin), (503, 503));
    server.stop();
    // Without the note, or with a note about another database, it answers again.
    let unfenced = site.path("feed.redb.published");
    fs::remove_file(&unfenced).unwrap();
    wait_for("it is ready again", || readyz(&mut lasting_admin).0 == 200);
    lasting.stop();
    let note = note(&other);
    let foreign = PublishedNote {
        id: DatabaseId([9; 16]),
        fenced: Some("x".to_owned()),
        ..note
    };
    foreign.write(&site.db()).unwrap();
    let (server, mut admin) = serve_origin("--max-staleness 1s");
    assert_eq!(statuses(&server, &mut admin), (200, 200));
    server.stop();
}

#[test]
fn a_replica_that_is_ahead_of_its_bucket_is_promoted_with_start_over() {
    let (site, place) = in_folder();
    let key = site.key("all", &[]).1;
    for version in 1..=4 {
        commit(&site, version);
        place.once(&site);
    }
    let [newest, other] = [replica_of(&place), replica_of(&place)];
    // The bucket loses its last entries, and the origin is gone.
    for slot in 3..=4 {
        place.bucket.delete(&layout::log(slot)).unwrap();
    }
    let refused = place.ends(&newest, &["promote", &place.url, "--yes"]);
    refused.assert_told(1, "--start-over");
    let refused = newest.run(["key", "create", "--license", "all"]);
    refused.assert_told(1, "is a replica of");
    let done = place.json(&newest, &["promote", &place.url, "--yes", "--start-over"]);
    let expected = (&true.into(), &5.into());
    assert_eq!((&done["promoted"], &done["slot"]), expected);
    assert_eq!(follow(&place, &other.db()), (5, None));
    assert_eq!(rows_of(&other.db()), rows_of(&newest.db()));
    let checked = place.json(&newest, &["check", "--from", &place.url]);
    assert_eq!(checked["given_up"], serde_json::json!([[3, 4]]));
    // The old origin is fenced when it starts again.
    let fenced = place.run(&site, "--once");
    assert_eq!(fenced.code, Some(4), "{fenced:?}");
    commit(&newest, 9);
    assert_eq!(place.once(&newest), 1);
    // The check also names a later gap.
    place.bucket.delete(&layout::log(6)).unwrap();
    assert_eq!(place.once_with(&newest, "--start-over"), 1);
    let checked = place.json(&newest, &["check", "--from", &place.url]);
    assert_eq!(checked["given_up"], serde_json::json!([[3, 4], [6, 6]]));
    let serving = newest.serve();
    assert_eq!(serving.client(&key).get(TARGET).status, 200);
    serving.stop();
}

/// A publisher whose clock is ten minutes ahead (a store refuses more), with its bucket, and a replica that can be
/// promoted.
fn publisher_ahead(site: &Site, s3: &S3) -> Option<(Place, Process, Site)> {
    let place = Place::s3(s3);
    let clock = Clock::new(site)?;
    clock.set(600);
    let mut command = place.command(site, LIVELY);
    clock.apply_to(&mut command);
    let quiet = command.args(["--log", "warn"]);
    let publisher = Process::spawn(quiet.stdout(Stdio::null()).stderr(Stdio::null()));
    wait_until("a heartbeat", SOON, || {
        place.bucket.get(layout::ALIVE).unwrap()
    });
    let next = replica_of(&place);
    Some((place, publisher, next))
}

#[test]
fn a_late_heartbeat_of_a_fenced_publisher_makes_no_replica_stale() {
    let (s3, site) = (S3::start(), curated());
    let key = site.key("all", &[]).1;
    let Some((place, mut old, next)) = publisher_ahead(&site, &s3) else {
        return;
    };
    let node = replica_of(&place);
    let (server, mut admin) = serve(&node, &place);
    let mut client = server.client(&key);
    wait_for_status(&mut client, 200);
    // A heartbeat is on its way while a replica is promoted.
    s3.fail("PUT", "/alive", Fault::Waiting, 1);
    s3.wait_for_held();
    promote(&place, &next);
    let publisher = place.start(&next, LIVELY);
    let alive =
        || Heartbeat::decode(&place.bucket.get(layout::ALIVE).unwrap().unwrap().bytes).unwrap();
    wait_for("the next publisher's heartbeat", || alive().slot == 2);
    wait_for("the promotion", || {
        scrape(&mut admin)["medfeed_replica_slot"] == 2.0
    });
    publisher.signal("STOP");
    s3.release();
    wait_for("the late heartbeat", || alive().slot == 1);
    assert_eq!(old.exit_code(), Some(4));
    let name = format!("GET feed/some/prefix/{}", layout::ALIVE);
    let is_read = |request: &&String| **request == name;
    let reads = || s3.requests().iter().filter(is_read).count();
    let read_again = |count: usize| {
        let before = reads();
        wait_for("it is read", || reads() >= before + count);
    };
    read_again(3);
    publisher.signal("CONT");
    wait_for("the next heartbeat", || alive().slot == 2);
    read_again(8);
    wait_for_status(&mut client, 200);
    assert_eq!(readyz(&mut admin), (200, "ok\n".to_owned()));
    server.stop();
}

#[test]
fn a_heartbeat_is_not_repeated_after_a_takeover() {
    let (s3, site) = (S3::start(), curated());
    let Some((place, mut old, next)) = publisher_ahead(&site, &s3) else {
        return;
    };
    s3.fail("PUT", "/alive", Fault::Status(503), usize::MAX);
    promote(&place, &next);
    // The publisher finds the promotion between two attempts.
    assert_eq!(old.exit_code(), Some(4));
}

#[test]
fn an_instant_before_a_commit_of_a_clock_that_was_ahead_is_restored() {
    let (site, place) = in_folder();
    let Some(clock) = Clock::new(&site) else {
        return;
    };
    place.once(&site);
    let before = rows_of(&site.db());
    clock.set(3600);
    let rows = site.write("conferences.jsonl", conferences_of_version(30, 1));
    let mut command = site.command(["import", rows.to_str().unwrap()]);
    clock.apply_to(&mut command);
    assert!(command.status().unwrap().success());
    place.once_with(&site, "--state-every 0s");
    assert_eq!(place.slots(layout::STATES).len(), 2);
    // Half an hour from now: after both states were put, and before that commit's time.
    let at = medfeed::model::time::now().plus_s(1800).to_string();
    let file = site.path("then.redb");
    let then = file.to_str().unwrap();
    let done = site.run(["backup", then, "--from", &place.url, "--at", &at]);
    assert_eq!(done.code, Some(0), "{done:?}");
    let view = medfeed::store::Reader::open(&file).unwrap();
    assert_eq!(view.newest().commit().head(), before.1);
}

#[test]
fn tokens_of_a_lost_commit_get_410_after_later_heartbeats() {
    let (site, place) = in_folder();
    let key = site.key("all", &[]).1;
    place.once(&site);
    let backup = site.path("copy.redb");
    fs::copy(site.db(), &backup).unwrap();
    // A commit of some records that is never published, and two tokens that need it: of the feed's end, and of an entry
    // before it.
    site.import("conferences.jsonl", conferences_of_version(3, 1));
    let serving = site.serve();
    let mut client = serving.client(&key);
    let end = client.token("conferences");
    let first = "/v1/conferences/changes?updated_since=2000-01-01&limit=1";
    let page = client.get(first).json();
    let lost = [&end, page["next_sync_token"].as_str().unwrap()]
        .map(|token| format!("/v1/conferences/changes?since={token}"));
    serving.stop();
    fs::copy(&backup, site.db()).unwrap();
    let node = Replica {
        site: Site::new(),
        url: place.url.clone(),
    };
    let (server, _) = replicas::serve(&node, STRICT);
    let mut client = server.client(&key);
    for target in &lost {
        assert_eq!(client.get(target).status, 503, "the origin may have it");
    }
    let _publisher = place.start(&site, LIVELY);
    for target in &lost {
        wait_for("410", || client.get(target).status == 410);
        assert_eq!(client.get(target).problem(), "resync_required");
    }
    server.stop();
}

#[test]
fn a_replica_on_a_full_disk_serves_its_records_and_loads_rarely() {
    let (site, place) = in_folder();
    let key = site.key("all", &[]).1;
    place.once(&site);
    let node = Replica {
        site: Site::new(),
        url: place.url.clone(),
    };
    let Some(disk) = Disk::mount(node.site.folder(), 24 << 20) else {
        return;
    };
    let (server, mut admin) = replicas::serve(&node, "--poll 20ms");
    assert_eq!(server.client(&key).get(TARGET).status, 200);
    // An entry that does not fit on the disk is applied once there is room.
    disk.fill(0);
    site.import("conferences.jsonl", roomy_conferences(30, 1));
    place.once(&site);
    wait_for("it is reported", || {
        readyz(&mut admin).1.contains("no room left on the disk")
    });
    disk.free_all();
    wait_for("it is applied", || {
        readyz(&mut admin) == (200, "ok\n".to_owned())
    });
    // A whole state does not fit on the disk.
    disk.fill(64 << 10);
    let backup = site.backup("present.redb");
    site.json(["restore".as_ref(), backup.as_os_str(), "--yes".as_ref()]);
    place.once(&site);
    let told = wait_until("it is reported", SOON, || {
        let (status, told) = readyz(&mut admin);
        assert_eq!(status, 200, "its records are fresh enough for now: {told}");
        (told != "ok\n").then_some(told)
    });
    assert!(!told.contains("/proc/self/fd"), "{told}");
    assert_eq!(server.client(&key).get(TARGET).status, 200);
    // After many polls it has tried only a few loads.
    let seen = scrape(&mut admin)["medfeed_replica_stale_seconds"];
    wait_for("three seconds", || {
        scrape(&mut admin)["medfeed_replica_stale_seconds"] >= seen + 3.0
    });
    let loads = server.logged().matches("loading a whole state").count();
    assert!(loads <= 4, "{loads} loads within some seconds");
    server.stop();
    // Started again while the disk is full, the server opens its file. It answers 503, because it may have missed
    // commits.
    disk.fill(16 << 10);
    let (server, mut admin) = replicas::serve(&node, "--poll 20ms");
    assert_eq!(server.client(&key).get("/docs").status, 200);
    assert_eq!(readyz(&mut admin).0, 503);
    disk.free_all();
    wait_until("it is ready", SOON * 2, || {
        (readyz(&mut admin).0 == 200).then_some(())
    });
    server.stop();
}

#[test]
fn a_foreign_object_in_the_next_slot_and_a_missing_replica_are_reported() {
    let (site, place) = published_in_folder();
    // The slot of the next entry holds junk.
    fs::write(site.path("bucket").join(layout::log(2)), "<html>").unwrap();
    commit(&site, 1);
    let refused = place.run(&site, "--once");
    refused.assert_told(1, "delete it");
    assert!(!refused.stderr.contains("took over"), "{refused:?}");
    assert!(note(&site).fenced.is_none(), "{refused:?}");
    fs::remove_file(site.path("bucket").join(layout::log(2))).unwrap();
    assert_eq!(place.once(&site), 1);
    let nowhere = Site::new();
    let refused = nowhere.run(["promote", &place.url, "--yes"]);
    refused.assert_told(1, "there is no replica at ");
    assert!(!refused.stderr.contains("medfeed import"), "{refused:?}");
}
