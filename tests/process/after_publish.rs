//! An origin's server that shows what its bucket has: nobody gets a token that is lost with the machine.

use medfeed::store::Follower;
use medfeed::store::replication::PublishedNote;

use super::client::Client;
use super::monitoring::{scrape, start_watched};
use super::origin::Replica;
use super::published::Place;
use super::replicas;
use super::site::{SOON, Server, Site, conferences_of_version, wait_until};

const COUNT: u64 = 40;

/// A site that is published, and its key.
fn published() -> (Site, Place, String) {
    let site = Site::new();
    site.import("conferences.jsonl", conferences_of_version(COUNT, 0));
    let key = site.open_key();
    let place = Place::folder(&site);
    place.once(&site);
    (site, place, key)
}

fn serve(site: &Site, more: &str) -> (Server, Client) {
    let options = format!("--after-publish --admin-listen 127.0.0.1:0 --log info {more}");
    start_watched(site, site.serve_command(&options))
}

fn commit(site: &Site, version: u64) {
    site.import("conferences.jsonl", conferences_of_version(COUNT, version));
}

fn venue(client: &mut Client) -> String {
    client.get("/v1/conferences/1").json()["data"]["venue"].as_str().unwrap().to_owned()
}

fn wait_for_version(client: &mut Client, version: u64) {
    let expected = format!("version {version}");
    wait_until(&expected, SOON, || (venue(client) == expected).then_some(()));
}

fn readyz(admin: &mut Client) -> (u16, String) {
    let answer = admin.get("/readyz");
    (answer.status, String::from_utf8(answer.body).unwrap())
}

/// The publisher's note as it will be when the bucket has all that is committed now.
fn next_note(site: &Site) -> PublishedNote {
    let head = Follower::open(&site.db()).unwrap().newest().commit();
    let note = PublishedNote::read(&site.db()).unwrap().unwrap();
    PublishedNote { seq: head.seq, lineage: head.lineage, ..note }
}

/// Waits until a server has seen the last commit, and holds it back.
fn wait_until_held(site: &Site, admin: &mut Client) {
    let seq = Follower::open(&site.db()).unwrap().newest().commit().seq;
    wait_until("it is seen", SOON, || {
        let (status, told) = readyz(admin);
        (status == 200 && told.contains(&format!("up to seq {seq} "))).then_some(())
    });
}

#[test]
fn commits_are_shown_once_the_bucket_has_them() {
    let (site, place, key) = published();
    let (server, mut admin) = serve(&site, "");
    let mut client = server.client(&key);
    assert_eq!(readyz(&mut admin), (200, "ok\n".to_owned()));
    let replica = Replica { site: Site::new(), url: place.url.clone() };
    let (following, _) = replicas::serve(&replica, "--poll 1h");
    let first = client.get("/v1/exports/conferences").header("x-sync-token").unwrap().to_owned();
    let changes = |token: &str| format!("/v1/conferences/changes?since={token}");

    // Without a publisher nothing new is seen but keys, and those that are revoked are dead.
    let (id, doomed) = site.key("all", &[]);
    let mut doomed = server.client(&doomed);
    wait_until("a new key", SOON, || (doomed.get("/v1/conferences/1").status == 200).then_some(()));
    commit(&site, 1);
    site.json(["key", "revoke", &id, "--publish-wait", "0s"]);
    wait_until("a dead key", SOON, || (doomed.get("/v1/conferences/1").status == 401).then_some(()));
    wait_until_held(&site, &mut admin);
    assert_eq!(venue(&mut client), "version 0");
    let page = client.get(&changes(&first)).json();
    assert_eq!((page["data"].as_array().unwrap().len(), &page["next_sync_token"]), (0, &first.as_str().into()));
    let metrics = scrape(&mut admin);
    assert_eq!(metrics["medfeed_held_back"], 1.0);
    assert!(metrics.contains_key("medfeed_held_back_seconds"), "{metrics:?}");

    // With one it is, and what callers have is known at replicas at once.
    place.once(&site);
    wait_for_version(&mut client, 1);
    let page = client.get(&changes(&first)).json();
    assert_eq!(page["data"].as_array().unwrap().len(), usize::try_from(COUNT).unwrap());
    let token = page["next_sync_token"].as_str().unwrap();
    let found = following.client(&key).get(&changes(token));
    assert_eq!((found.status, &found.json()["next_sync_token"]), (200, &token.into()));
    assert_eq!(readyz(&mut admin), (200, "ok\n".to_owned()));
    assert_eq!(scrape(&mut admin)["medfeed_held_back_seconds"], 0.0);

    // A publisher that goes on is enough.
    let _publisher = place.start(&site, "--every 100ms");
    for version in 2..=4 {
        commit(&site, version);
        wait_for_version(&mut client, version);
    }
    server.stop();
    following.stop();
}

#[test]
fn what_is_published_is_shown_while_commits_go_on() {
    let (site, _, key) = published();
    let (server, mut admin) = serve(&site, "");
    let mut client = server.client(&key);
    for version in [1, 3, 5] {
        commit(&site, version);
        wait_until_held(&site, &mut admin);
        let note = next_note(&site);
        commit(&site, version + 1);
        wait_until_held(&site, &mut admin);
        note.write(&site.db()).unwrap();
        wait_for_version(&mut client, version);
        assert_eq!(scrape(&mut admin)["medfeed_snapshot_seq"], note.seq as f64);
        next_note(&site).write(&site.db()).unwrap();
        wait_for_version(&mut client, version + 1);
    }
    // Of a commit that this file does not hold nothing follows.
    let sound = next_note(&site);
    commit(&site, 7);
    PublishedNote { lineage: [7; 16], ..next_note(&site) }.write(&site.db()).unwrap();
    wait_until_held(&site, &mut admin);
    assert_eq!(venue(&mut client), "version 6");
    sound.write(&site.db()).unwrap();

    // Who took over is told, and so is a note that is gone.
    let fenced = PublishedNote { fenced: Some("host b, since noon".to_owned()), ..sound };
    fenced.write(&site.db()).unwrap();
    // The note is read for two reasons, at two intervals, and each has its words.
    let told = wait_until("it is told", SOON, || Some(readyz(&mut admin)).filter(|(status, _)| *status == 503));
    let ways = ["is no longer published from here: host b, since noon", "will answer 503 soon: host b, since noon"];
    assert!(ways.iter().any(|way| told.1.contains(way)), "{told:?}");
    let done = site.ends(["serve", "--listen", "127.0.0.1:0", "--after-publish"]);
    assert!(done.code == Some(1) && done.stderr.contains("host b, since noon"), "{done:?}");
    std::fs::remove_file(site.path("feed.redb.published")).unwrap();
    wait_until("it is told", SOON, || readyz(&mut admin).1.contains("run `medfeed publish`").then_some(()));
    assert_eq!(venue(&mut client), "version 6");
    server.stop();
}

#[test]
fn a_commit_that_a_restore_removes_holds_up_no_later_one() {
    let (site, place, key) = published();
    site.backup("backup.redb");
    commit(&site, 1);
    place.once(&site);
    let (server, mut admin) = serve(&site, "");
    let mut client = server.client(&key);
    commit(&site, 2);
    wait_until_held(&site, &mut admin);
    site.json(["restore", "backup.redb", "--yes"]);
    // The restore is seen before the commit that follows.
    let (_, new) = site.key("all", &[]);
    wait_until("a new key", SOON, || (server.client(&new).get("/v1/conferences/1").status == 200).then_some(()));
    let note = next_note(&site);
    commit(&site, 3);
    wait_until_held(&site, &mut admin);
    assert_eq!(venue(&mut client), "version 1");
    note.write(&site.db()).unwrap();
    wait_for_version(&mut client, 0);
    next_note(&site).write(&site.db()).unwrap();
    wait_for_version(&mut client, 3);
    server.stop();
}

#[test]
fn a_published_commit_still_waits_for_the_change_delay() {
    let (site, _, key) = published();
    let (server, mut admin) = serve(&site, "--change-delay 1h");
    commit(&site, 1);
    wait_until_held(&site, &mut admin);
    next_note(&site).write(&site.db()).unwrap();
    // Nothing is missing from the bucket any more.
    wait_until("the note is read", SOON, || (readyz(&mut admin) == (200, "ok\n".to_owned())).then_some(()));
    assert_eq!(scrape(&mut admin)["medfeed_held_back"], 1.0);
    assert_eq!(venue(&mut server.client(&key)), "version 0");
    let page = String::from_utf8(admin.get("/").body).unwrap();
    assert!(page.contains("ready; a newer commit waits for the change delay"), "{page}");
    server.stop();
}

#[test]
fn a_note_that_comes_back_ends_its_failure() {
    let (site, _, _) = published();
    let (server, mut admin) = serve(&site, "");
    let note = PublishedNote::read(&site.db()).unwrap().unwrap();
    for _ in 0..2 {
        std::fs::remove_file(site.path("feed.redb.published")).unwrap();
        wait_until("it is told", SOON, || readyz(&mut admin).1.contains("run `medfeed publish`").then_some(()));
        note.write(&site.db()).unwrap();
        wait_until("it is ready", SOON, || (readyz(&mut admin) == (200, "ok\n".to_owned())).then_some(()));
    }
    server.stop();
}

#[test]
fn a_link_that_is_pointed_elsewhere_brings_its_own_note() {
    let (site, place, key) = published();
    let files = ["feed.redb", "feed.redb.published"];
    for folder in ["old", "new"] {
        std::fs::create_dir(site.path(folder)).unwrap();
    }
    for name in files {
        std::fs::copy(site.path(name), site.path("old").join(name)).unwrap();
    }
    commit(&site, 1);
    place.once(&site);
    for name in files {
        std::fs::rename(site.path(name), site.path("new").join(name)).unwrap();
    }
    let point = |folder: &str| {
        std::os::unix::fs::symlink(format!("{folder}/feed.redb"), site.path("link")).unwrap();
        std::fs::rename(site.path("link"), site.db()).unwrap();
    };
    point("old");
    let (server, mut admin) = serve(&site, "");
    let mut client = server.client(&key);
    assert_eq!(venue(&mut client), "version 0");
    point("new");
    wait_for_version(&mut client, 1);
    // The use of keys is noted next to the new file.
    wait_until("the use is noted", SOON, || {
        let mut names = std::fs::read_dir(site.path("new")).unwrap().map(|entry| entry.unwrap().file_name());
        names.any(|name| name.to_string_lossy().starts_with("feed.redb.usage-")).then_some(())
    });
    // So is a takeover.
    PublishedNote { fenced: Some("host b".to_owned()), ..next_note(&site) }.write(&site.db()).unwrap();
    wait_until("it is told", SOON, || readyz(&mut admin).1.contains("will answer 503 soon: host b").then_some(()));
    server.stop();
}

#[test]
fn a_token_that_a_replica_gave_first_is_waited_for() {
    let (site, place, key) = published();
    let (server, _) = serve(&site, "");
    let replica = Replica { site: Site::new(), url: place.url.clone() };
    let (following, mut following_admin) = replicas::serve(&replica, "--poll 20ms");
    let before = PublishedNote::read(&site.db()).unwrap().unwrap();
    commit(&site, 1);
    // The bucket has it, and the note does not tell so yet.
    let stopped = Site::new();
    std::fs::copy(site.db(), stopped.db()).unwrap();
    before.write(&stopped.db()).unwrap();
    place.once(&stopped);
    let noted = PublishedNote::read(&stopped.db()).unwrap().unwrap();
    wait_until("it is followed", SOON, || (replicas::seq_of(&mut following_admin) == noted.seq as f64).then_some(()));
    let export = following.client(&key).get("/v1/exports/conferences");
    let target = format!("/v1/conferences/changes?since={}", export.header("x-sync-token").unwrap());
    let mut client = server.client(&key);
    let answer = client.get(&target);
    assert_eq!((answer.status, answer.problem().as_str()), (503, "unavailable"));
    assert_eq!(answer.header("retry-after"), Some("1"));
    noted.write(&site.db()).unwrap();
    assert_eq!(client.get(&target).status, 200);
    server.stop();
    following.stop();
}

#[test]
fn a_server_that_starts_ahead_of_the_bucket_shows_nothing() {
    let site = Site::new();
    site.import("conferences.jsonl", conferences_of_version(COUNT, 0));
    let done = site.ends(["serve", "--listen", "127.0.0.1:0", "--after-publish"]);
    assert_eq!((done.code, done.stdout.as_str()), (Some(1), ""), "{done:?}");
    assert!(done.stderr.contains("is not published") && done.stderr.contains("medfeed publish URL"), "{done:?}");

    let (site, place, key) = published();
    commit(&site, 1);
    let (server, mut admin) = serve(&site, "");
    let mut client = server.client(&key);
    for target in ["/v1/conferences/1", "/v1/status", "/v1/exports/conferences"] {
        let answer = client.get(target);
        assert_eq!(
            (answer.status, answer.problem().as_str(), answer.header("retry-after")),
            (503, "unavailable", Some("1"))
        );
        assert!(answer.json()["detail"].as_str().unwrap().ends_with("Try again in 1 second."), "{target}");
    }
    let (status, told) = readyz(&mut admin);
    assert!(status == 503 && told.contains("the bucket does not have this server's first state"), "{told}");
    assert!(server.logged().contains("medfeed publish"), "{}", server.logged());
    place.once(&site);
    wait_until("it is shown", SOON, || (client.get("/v1/status").status == 200).then_some(()));
    assert_eq!(venue(&mut client), "version 1");
    server.stop();

    // With a publisher at work nobody is turned away.
    let _publisher = place.start(&site, "--every 100ms");
    commit(&site, 2);
    let (server, _) = serve(&site, "");
    assert_eq!(venue(&mut server.client(&key)), "version 2");
    server.stop();
}
