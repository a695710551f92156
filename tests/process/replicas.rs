//! Servers that follow an origin's log: their answers are the origin's, and failures are reported, and never lead to
//! wrong answers.

use medfeed::replicate::layout;

use super::client::Client;
use super::monitoring::{scrape, start_watched};
use super::origin::{Origin, Replica};
use super::s3::S3;
use super::site::{SOON, Server, Site, conferences_of_version, wait_for, wait_until};

pub const COUNT: u64 = 40;

/// A site with conferences, journals and a license for all, and its key.
pub fn origin() -> (Origin, String) {
    let site = Site::with(COUNT);
    site.import("journals.jsonl", journals(0));
    let key = site.open_key();
    (Origin::new(site), key)
}

pub fn journals(version: u64) -> String {
    (1..=7)
        .map(|id| format!("{{\"id\":{id},\"name\":\"Journal {id}, volume {version}\"}}\n"))
        .collect()
}

/// Serves a replica, with a client of its monitoring.
pub fn serve(replica: &Replica, more: &str) -> (Server, Client) {
    start_watched(
        &replica.site,
        replica.site.serve_command(&replica.options(more)),
    )
}

pub fn seq_of(admin: &mut Client) -> f64 {
    scrape(admin)["medfeed_snapshot_seq"]
}

/// The status of `/readyz`, and its text.
pub fn readyz(admin: &mut Client) -> (u16, String) {
    let answer = admin.get("/readyz");
    (answer.status, String::from_utf8(answer.body).unwrap())
}

/// Waits until a replica shows the last commit of an origin.
pub fn wait_for_seq(origin: &Origin, admin: &mut Client) {
    let seq = origin.view().head().expect("it can be read").seq as f64;
    wait_for("the replica has caught up", || seq_of(admin) == seq);
}

/// Compares the answers of two servers to the same requests. Returns the tokens of both for the next comparison.
pub fn compare(here: &mut Client, there: &mut Client, tokens: &[String]) -> Vec<String> {
    let targets = words!["/v1/status" "/v1/conferences?limit=7" "/v1/conferences?country=Spain" "/v1/conferences?q=version" "/v1/conferences/3" "/v1/conferences/999999" "/v1/journals" "/v1/conferences/changes" "/v1/conferences/changes?updated_since=2020-01-01&limit=11" "/v1/exports/conferences" "/v1/exports/conferences?format=csv" "/v1/exports/journals" "/v1/reference/therapy-areas" "/v1/reference/tags?dataset=conferences" "/v1/reference/organizations?dataset=journals"];
    let mut targets: Vec<String> = targets.map(str::to_owned).into();
    targets.extend(
        tokens
            .iter()
            .map(|token| format!("/v1/conferences/changes?since={token}")),
    );
    targets.extend(
        tokens
            .iter()
            .map(|token| format!("/v1/conferences/changes?limit=3&since={token}")),
    );
    let mut found = Vec::new();
    for target in targets {
        let (expected, answer) = (here.get(&target), there.get(&target));
        assert_eq!(expected.comparable(), answer.comparable(), "{target}");
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
    let command = origin
        .site
        .serve_command("--admin-listen 127.0.0.1:0 --log info");
    let (serving, mut origin_admin) = start_watched(&origin.site, command);
    let replica = origin.replica();
    let (server, mut admin) = serve(&replica, "--poll 20ms");
    server.wait_for_log(&format!("replica_of={}", origin.url()));
    let (mut here, mut there) = (serving.client(&key), server.client(&key));
    let mut tokens = compare(&mut here, &mut there, &[]);
    for version in 1..=6 {
        origin.site.import(
            "conferences.jsonl",
            conferences_of_version(COUNT - version, version),
        );
        match version {
            2 => drop(origin.site.license(
                "all",
                "--dataset conferences --dataset journals --country Spain --country Japan",
            )),
            3 => drop(
                origin
                    .site
                    .license("all", "--dataset conferences --dataset journals --widen"),
            ),
            4 => drop(origin.site.import("journals.jsonl", journals(4))),
            // The waiting changes survive a compaction.
            5 => drop(origin.site.json(["compact"])),
            _ => {}
        }
        origin.publish();
        wait_for_seq(&origin, &mut admin);
        wait_for_seq(&origin, &mut origin_admin);
        tokens = compare(&mut here, &mut there, &tokens);
    }
    // A replica that starts now has the same rows.
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
fn a_token_that_is_ahead_makes_the_replica_poll_at_once() {
    let (mut origin, key) = origin();
    let serving = origin.site.serve();
    let replica = origin.replica();
    let (server, mut admin) = serve(&replica, "--poll 1h");
    let (mut here, mut there) = (serving.client(&key), server.client(&key));
    let first = here.token("conferences");
    for version in 1..=3 {
        origin
            .site
            .import("conferences.jsonl", conferences_of_version(COUNT, version));
        let since = |token: &str| format!("/v1/conferences/changes?since={token}");
        let page = wait_until("the origin's server shows the commit", SOON, || {
            let page = here.get(&since(&first)).json();
            (page["data"][0]["venue"] == format!("version {version}")).then_some(page)
        });
        let token = page["next_sync_token"].as_str().unwrap().to_owned();
        // The commit is not published yet. So the token is not lost, and the same request succeeds after it is
        // published.
        let answer = there.get(&since(&token));
        answer.assert_problem(503, "unavailable");
        assert_eq!(answer.header("retry-after"), Some("1"));
        assert_eq!(there.get(&since(&first)).status, 200, "others are answered");
        origin.publish();
        let answer = there.get(&since(&token));
        answer.assert_status(200);
        assert_eq!(answer.json()["next_sync_token"], token.as_str());
        wait_for_seq(&origin, &mut admin);
    }
    // The scope is ahead, too.
    origin
        .site
        .license("all", "--dataset conferences --country Spain");
    let token = wait_until("the origin's server shows the commit", SOON, || {
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

/// Copies all objects of a folder into a store.
pub fn mirror(origin: &Origin, store: &S3) {
    for folder in [layout::LOG, layout::STATES, layout::PARTS] {
        for object in origin.bucket().list(folder, None).unwrap() {
            if store.object(&object.name).is_none() {
                let bytes = Some(origin.bucket().get(&object.name).unwrap().unwrap().bytes);
                store.set_object(&object.name, bytes);
            }
        }
    }
    let alive = origin.bucket().get(layout::ALIVE).unwrap();
    let alive = alive.map(|alive| alive.bytes);
    store.set_object(layout::ALIVE, alive);
}
