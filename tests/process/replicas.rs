//! Servers that follow an origin's log: their answers are the origin's, and what goes wrong on the way is told and never served.

use std::time::Instant;

use medfeed::replicate::layout;

use super::client::Client;
use super::monitoring::{scrape, start_watched};
use super::origin::{Origin, Replica};
use super::s3::{Fault, S3};
use super::site::{SOON, Server, Site, conferences_of_version, wait_until};

pub const COUNT: u64 = 40;

/// A site with conferences, journals and a license for all, and its key.
pub fn origin() -> (Origin, String) {
    let site = Site::new();
    site.import("conferences.jsonl", conferences_of_version(COUNT, 0));
    site.import("journals.jsonl", journals(0));
    let key = site.open_key();
    (Origin::new(site), key)
}

pub fn journals(version: u64) -> String {
    (1..=7).map(|id| format!("{{\"id\":{id},\"name\":\"Journal {id}, volume {version}\"}}\n")).collect()
}

/// Serves a replica, with a client of its monitoring.
pub fn serve(replica: &Replica, more: &str) -> (Server, Client) {
    start_watched(&replica.site, replica.site.serve_command(&replica.options(more)))
}

pub fn seq_of(admin: &mut Client) -> f64 {
    scrape(admin)["medfeed_snapshot_seq"]
}

/// Waits until a replica serves what an origin has.
pub fn wait_for_seq(origin: &Origin, admin: &mut Client) {
    let seq = origin.view().head().expect("it can be read").seq as f64;
    wait_until("the replica has caught up", SOON, || (seq_of(admin) == seq).then_some(()));
}

/// The same requests get the same answers; returns one of the tokens of each side.
pub fn compare(here: &mut Client, there: &mut Client, tokens: &[String]) -> Vec<String> {
    let mut targets: Vec<String> = [
        "/v1/status",
        "/v1/conferences?limit=7",
        "/v1/conferences?country=Spain",
        "/v1/conferences?q=version",
        "/v1/conferences/3",
        "/v1/conferences/999999",
        "/v1/journals",
        "/v1/conferences/changes",
        "/v1/conferences/changes?updated_since=2020-01-01&limit=11",
        "/v1/exports/conferences",
        "/v1/exports/conferences?format=csv",
        "/v1/exports/journals",
        "/v1/reference/therapy-areas",
        "/v1/reference/tags?dataset=conferences",
        "/v1/reference/organizations?dataset=journals",
    ]
    .map(str::to_owned)
    .into();
    targets.extend(tokens.iter().map(|token| format!("/v1/conferences/changes?since={token}")));
    targets.extend(tokens.iter().map(|token| format!("/v1/conferences/changes?limit=3&since={token}")));
    let mut found = Vec::new();
    for target in targets {
        let (expected, answer) = (here.get(&target), there.get(&target));
        assert_eq!(expected.told(), answer.told(), "{target}");
        if target.starts_with("/v1/exports/") {
            assert_eq!(expected.body, answer.body, "{target}: every byte");
        }
        for answer in [expected, answer] {
            if answer.status != 200 || !target.contains("/conferences") {
                continue;
            }
            found.extend(answer.header("x-sync-token").map(str::to_owned));
            if target.contains("/changes") {
                found.extend(answer.json()["next_sync_token"].as_str().map(str::to_owned));
            }
        }
    }
    found.sort();
    found.dedup();
    found
}

#[test]
fn a_replica_answers_as_its_origin() {
    let (mut origin, key) = origin();
    let command = origin.site.serve_command("--admin-listen 127.0.0.1:0 --log info");
    let (serving, mut origin_admin) = start_watched(&origin.site, command);
    let replica = origin.replica();
    let (server, mut admin) = serve(&replica, "--poll 20ms");
    server.wait_for_log(&format!("replica_of={}", origin.url()));
    let (mut here, mut there) = (serving.client(&key), server.client(&key));
    let mut tokens = compare(&mut here, &mut there, &[]);
    for version in 1..=6 {
        origin.site.import("conferences.jsonl", conferences_of_version(COUNT - version, version));
        match version {
            2 => drop(
                origin.site.license("all", "--dataset conferences --dataset journals --country Spain --country Japan"),
            ),
            3 => drop(origin.site.license("all", "--dataset conferences --dataset journals --widen")),
            4 => drop(origin.site.import("journals.jsonl", journals(4))),
            // What waits is kept.
            5 => drop(origin.site.json(["compact"])),
            _ => {}
        }
        origin.publish();
        wait_for_seq(&origin, &mut admin);
        wait_for_seq(&origin, &mut origin_admin);
        tokens = compare(&mut here, &mut there, &tokens);
    }
    // One that starts now has the same.
    let fresh = origin.replica();
    let (other, _) = serve(&fresh, "");
    compare(&mut here, &mut other.client(&key), &tokens);
    for site in [&replica.site, &fresh.site] {
        let backup = site.backup("backup.redb");
        site.check_file(&backup);
    }
    for server in [serving, server, other] {
        server.stop();
    }
    replica.site.check();
}

#[test]
fn restored_states_replace_a_replica_and_end_older_tokens() {
    let (mut origin, key) = origin();
    let backup = origin.site.backup("backup.redb");
    origin.site.import("conferences.jsonl", conferences_of_version(COUNT, 1));
    origin.publish();
    let serving = origin.site.serve();
    let replica = origin.replica();
    let (server, mut admin) = serve(&replica, "--poll 20ms");
    let (mut here, mut there) = (serving.client(&key), server.client(&key));
    let before = here.get("/v1/exports/conferences").header("x-sync-token").unwrap().to_owned();
    origin.site.json(["restore".as_ref(), backup.as_os_str(), "--yes".as_ref()]);
    origin.publish();
    wait_for_seq(&origin, &mut admin);
    let target = format!("/v1/conferences/changes?since={before}");
    wait_until("the origin's server follows", SOON, || (here.get(&target).status == 410).then_some(()));
    let answer = there.get(&target);
    assert_eq!((answer.status, answer.problem().as_str()), (410, "resync_required"));
    let tokens = compare(&mut here, &mut there, &[]);
    assert_eq!(scrape(&mut admin)["medfeed_replica_loads_total"], 2.0);
    origin.site.import("conferences.jsonl", conferences_of_version(COUNT, 2));
    origin.publish();
    wait_for_seq(&origin, &mut admin);
    let export = format!("/v1/conferences/changes?since={}", tokens[0]);
    wait_until("the origin's server follows", SOON, || {
        (here.get(&export).told() == there.get(&export).told()).then_some(())
    });
    compare(&mut here, &mut there, &tokens);
    serving.stop();
    server.stop();
}

#[test]
fn a_token_that_is_ahead_has_the_replica_look_at_once() {
    let (mut origin, key) = origin();
    let serving = origin.site.serve();
    let replica = origin.replica();
    let (server, mut admin) = serve(&replica, "--poll 1h");
    let (mut here, mut there) = (serving.client(&key), server.client(&key));
    let first = here.get("/v1/exports/conferences").header("x-sync-token").unwrap().to_owned();
    for version in 1..=3 {
        origin.site.import("conferences.jsonl", conferences_of_version(COUNT, version));
        let since = |token: &str| format!("/v1/conferences/changes?since={token}");
        let page = wait_until("the origin's server follows", SOON, || {
            let page = here.get(&since(&first)).json();
            (page["data"][0]["venue"] == format!("version {version}")).then_some(page)
        });
        let token = page["next_sync_token"].as_str().unwrap().to_owned();
        // Not published yet: not lost, and the same request is good a moment later.
        let answer = there.get(&since(&token));
        assert_eq!((answer.status, answer.problem().as_str()), (503, "unavailable"));
        assert_eq!(answer.header("retry-after"), Some("1"));
        assert_eq!(there.get(&since(&first)).status, 200, "others are answered");
        origin.publish();
        let answer = there.get(&since(&token));
        assert_eq!(answer.status, 200, "{}", String::from_utf8_lossy(&answer.body));
        assert_eq!(answer.json()["next_sync_token"], token.as_str());
        wait_for_seq(&origin, &mut admin);
    }
    // The scope is ahead, too.
    origin.site.license("all", "--dataset conferences --country Spain");
    let token = wait_until("the origin's server follows", SOON, || {
        let answer = here.get("/v1/exports/conferences");
        let token = answer.header("x-sync-token").unwrap().to_owned();
        (answer.lines().len() < 40).then_some(token)
    });
    let target = format!("/v1/conferences/changes?since={token}");
    assert_eq!(there.get(&target).status, 503);
    origin.publish();
    assert_eq!(there.get(&target).status, 200);
    serving.stop();
    server.stop();
}

#[test]
fn backups_come_from_the_bucket_as_of_any_time() {
    let (mut origin, key) = origin();
    let wait_for_next_second = || {
        let now = medfeed::model::time::now();
        wait_until("the next second", SOON, || (medfeed::model::time::now() > now).then_some(()));
    };
    let mut kept = Vec::new();
    for version in 1..=5 {
        wait_for_next_second();
        origin.site.import("conferences.jsonl", conferences_of_version(COUNT - version, version));
        let at = origin.view().head().unwrap().time.to_string();
        kept.push((at, origin.site.conferences_in(&origin.site.db())));
        // Two commits in one entry, and a state on the way.
        if version != 2 {
            origin.publish();
        }
        if version == 4 {
            origin.add_state();
        }
    }
    let site = Site::new();
    let (file, url) = (site.path("from.redb"), origin.url());
    let file_text = file.to_str().unwrap();
    for (at, expected) in &kept {
        let report = site.json(["backup", file_text, "--from", &url, "--at", at]);
        assert_eq!(report["last_commit_at"], at.as_str());
        assert!(site.conferences_in(&file) == *expected, "{at}");
        site.check_file(&file);
    }
    site.json(["backup", file_text, "--from", &url]);
    assert!(site.conferences_in(&file) == kept.last().unwrap().1);
    // It is a database of its own, in which all keys work.
    site.json(["license", "set", "other", "--dataset", "journals", "--db", file_text]);
    let server = site.serve_with(&format!("--db {file_text}"));
    assert_eq!(server.client(&key).get("/v1/conferences/1").json()["data"]["venue"], "version 5");
    server.stop();
    let done = site.run(["backup", "early.redb", "--from", &url, "--at", "2020-01-01"]);
    assert!(done.code == Some(1) && done.stderr.contains("no state is that old"), "{done:?}");
    let done = site.run(["backup", "early.redb", "--at", "2020-01-01"]);
    assert!(done.code == Some(2) && done.stderr.contains("--from"), "{done:?}");
    assert!(!site.path("early.redb").exists());

    // All of it is checked on demand, what no replica reads any more too.
    assert_eq!(site.json(["check", "--from", &url])["slot"], origin.slot);
    for name in [layout::log(2), layout::state(origin.slot - 1)] {
        let (path, mut bytes) = (origin.folder().join(&name), origin.bucket().get(&name).unwrap().unwrap().bytes);
        let middle = bytes.len() / 2;
        bytes[middle] ^= 1;
        let sound = std::fs::read(&path).unwrap();
        std::fs::write(&path, bytes).unwrap();
        let done = site.run(["check", "--from", &url]);
        assert!(done.code == Some(1) && done.stderr.contains(&name), "{done:?}");
        std::fs::write(&path, sound).unwrap();
    }
}

#[test]
fn a_promoted_replica_takes_its_origins_place() {
    let (mut origin, key) = origin();
    let replicas = [origin.replica(), origin.replica()];
    let servers = replicas.each_ref().map(|replica| serve(replica, "--poll 20ms"));
    let serving = origin.site.serve();
    let mut client = serving.client(&key);
    let published = client.get("/v1/exports/conferences").header("x-sync-token").unwrap().to_owned();
    origin.site.import("conferences.jsonl", conferences_of_version(COUNT, 1));
    let lost = wait_until("the origin's server follows", SOON, || {
        let page = client.get(&format!("/v1/conferences/changes?since={published}")).json();
        page["next_sync_token"].as_str().map(str::to_owned).filter(|token| *token != published)
    });
    serving.stop();
    let [(first, _), (second, mut admin)] = servers;
    first.stop();
    let [chosen, other] = replicas;
    let url = origin.url();
    let refused = chosen.site.run(["promote", &url]);
    assert!(refused.code == Some(1) && refused.stderr.contains("nothing was promoted"), "{refused:?}");
    let report = chosen.site.json(["promote", &url, "--yes"]);
    assert_eq!(report["promoted"], true);
    let again = chosen.site.run(["promote", &url, "--yes"]);
    assert!(again.code == Some(1) && again.stderr.contains("is not a replica"), "{again:?}");
    chosen.site.import("journals.jsonl", journals(9));
    chosen.site.check();

    // What the lost origin gave is told from what was published, here and at who follows.
    origin.move_to(chosen.site);
    origin.publish();
    wait_for_seq(&origin, &mut admin);
    let promoted = origin.site.serve();
    let (mut here, mut there) = (promoted.client(&key), second.client(&key));
    for client in [&mut here, &mut there] {
        assert_eq!(client.get(&format!("/v1/conferences/changes?since={lost}")).problem(), "resync_required");
        assert_eq!(client.get(&format!("/v1/conferences/changes?since={published}")).status, 200);
    }
    compare(&mut here, &mut there, &[published]);
    promoted.stop();
    second.stop();
    other.site.check();
}

/// Puts all objects of a folder into a store.
pub fn mirror(origin: &Origin, store: &S3) {
    for folder in [layout::LOG, layout::STATES, layout::PARTS] {
        for object in origin.bucket().list(folder, None).unwrap() {
            if store.object(&object.name).is_none() {
                store.set_object(&object.name, Some(origin.bucket().get(&object.name).unwrap().unwrap().bytes));
            }
        }
    }
    let alive = origin.bucket().get(layout::ALIVE).unwrap().map(|alive| alive.bytes);
    store.set_object(layout::ALIVE, alive);
}

#[test]
fn many_who_are_ahead_share_a_look() {
    let (mut origin, key) = origin();
    let serving = origin.site.serve();
    let store = S3::start();
    mirror(&origin, &store);
    let replica = Replica { site: Site::new(), url: store.url.clone() };
    let mut command = replica.site.serve_command(&replica.options("--poll 1h"));
    command.envs(store.environment());
    let server = replica.site.start(command);
    let first = serving.client(&key).get("/v1/exports/conferences").header("x-sync-token").unwrap().to_owned();
    origin.site.import("conferences.jsonl", conferences_of_version(COUNT, 1));
    let token = wait_until("the origin's server follows", SOON, || {
        let page = serving.client(&key).get(&format!("/v1/conferences/changes?since={first}")).json();
        page["next_sync_token"].as_str().map(str::to_owned).filter(|token| *token != first)
    });
    let name = layout::log(origin.slot + 1);
    let looks = || store.requests().iter().filter(|request| request.contains(&name)).count();
    let before = looks();
    store.fail("GET", &name, Fault::Held, 1);
    let begun = Instant::now();
    std::thread::scope(|scope| {
        for _ in 0..24 {
            scope.spawn(|| {
                let answer = server.client(&key).get(&format!("/v1/conferences/changes?since={token}"));
                assert_eq!((answer.status, answer.header("retry-after")), (503, Some("1")));
            });
        }
    });
    // Far below 24 times two seconds, one after the other.
    assert!(begun.elapsed() < SOON, "{:?}", begun.elapsed());
    assert_eq!(looks() - before, 1, "one look for all");
    store.release();
    origin.publish();
    mirror(&origin, &store);
    wait_until("the token is known", SOON, || {
        let answer = server.client(&key).get(&format!("/v1/conferences/changes?since={token}"));
        (answer.status == 200).then_some(())
    });
    server.stop();
    serving.stop();
}
