//! What is committed while a server runs is seen soon, whole, and by the right callers.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use medfeed::model::time::now;
use serde_json::json;

use super::client::Client;
use super::site::{SOON, STATUSES, Site, conferences_of_version, version_of, wait_until, wait_until_every};

/// How long a commit may take to be seen.
const VISIBLE_WITHIN: Duration = Duration::from_secs(2);

/// Asks for everything in turn and holds that each answer is of one state, none older than the one before. Returns how
/// many answers there were.
pub fn read_whole_states(client: &mut Client, count: usize, stop: &AtomicBool) -> usize {
    let targets = [
        "/v1/conferences?limit=500",
        "/v1/exports/conferences",
        "/v1/conferences?limit=7&therapy_area=Oncology",
        "/v1/conferences/changes?updated_since=2000-01-01&limit=1000",
        "/v1/conferences?limit=500&q=conference&year=2025",
        "/v1/conferences/3",
    ];
    let mut newest = 0;
    let mut answers = 0;
    while !stop.load(Ordering::Relaxed) {
        for target in targets {
            let answer = client.get(target);
            let version = match target {
                "/v1/exports/conferences" => {
                    let records = answer.lines();
                    assert_eq!(records.len(), count, "an export of {target}");
                    version_of(&records)
                }
                "/v1/conferences/3" => version_of([&answer.json()["data"]]),
                _ => version_of(&answer.items()),
            };
            assert!(version >= newest, "{target} went back from version {newest} to {version}");
            newest = version;
            answers += 1;
        }
    }
    answers
}

#[test]
fn imports_are_seen_soon_and_whole() {
    const COUNT: u64 = 300;
    let site = Site::new();
    site.import("conferences.jsonl", conferences_of_version(COUNT, 0));
    let key = site.open_key();
    let server = site.serve();
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let reader = scope.spawn(|| read_whole_states(&mut server.client(&key), 300, &stop));
        let mut client = server.client(&key);
        let mut slowest = Duration::ZERO;
        for version in 1..=20 {
            let summary = site.import("conferences.jsonl", conferences_of_version(COUNT, version));
            assert_eq!(summary["datasets"]["conferences"]["changed"], COUNT);
            let committed = Instant::now();
            wait_until("the import is served", VISIBLE_WITHIN, || {
                let seen = version_of([&client.get("/v1/conferences/1").json()["data"]]);
                (seen == version || reader.is_finished()).then_some(())
            });
            slowest = slowest.max(committed.elapsed());
        }
        stop.store(true, Ordering::Relaxed);
        let answers = reader.join().expect("the reader saw only whole states");
        assert!(answers > 20, "the reader read {answers} answers");
        if slowest > Duration::from_millis(500) {
            println!("a commit was seen only after {slowest:?}");
        }
    });
    server.stop();
}

#[test]
fn keys_change_while_serving() {
    let site = Site::new();
    site.import("conferences.jsonl", conferences_of_version(3, 0));
    let (first_id, first) = {
        site.license("all", "--dataset conferences");
        site.key("all", &[])
    };
    let server = site.serve();
    let code = |key: &str| {
        let answer = server.client(key).get("/v1/conferences");
        if answer.status == 200 { "ok".to_owned() } else { format!("{} {}", answer.status, answer.problem()) }
    };
    let comes = |key: &str, expected: &str| {
        // Asked slowly: unusable keys use up the address's own rate window.
        wait_until_every(Duration::from_millis(50), expected, SOON, || (code(key) == expected).then_some(()));
    };
    assert_eq!(code(&first), "ok");

    // With an overlap both keys work; without one the new key alone.
    let replaced = site.json(["key", "replace", &first_id, "--overlap", "1h"]);
    let second = replaced["key"].as_str().unwrap().to_owned();
    comes(&second, "ok");
    assert_eq!(code(&first), "ok", "the overlap is not over");
    let replaced = site.json(["key", "replace", replaced["id"].as_str().unwrap()]);
    let third = replaced["key"].as_str().unwrap().to_owned();
    comes(&third, "ok");
    comes(&second, "401 revoked_api_key");
    let replaced = site.json(["key", "replace", replaced["id"].as_str().unwrap(), "--overlap", "2s"]);
    let fourth = replaced["key"].as_str().unwrap().to_owned();
    comes(&fourth, "ok");
    comes(&third, "401 revoked_api_key");
    assert_eq!(code(&fourth), "ok");

    site.json(["key", "revoke", &first_id]);
    comes(&first, "401 revoked_api_key");
    assert_eq!(site.run(["key", "revoke", &first_id]).code, Some(1), "once is enough");

    let (_, ending) = site.key("all", &["--expires", &now().plus_s(3).to_string()]);
    comes(&ending, "ok");
    comes(&ending, "401 expired_api_key");

    let (_, elsewhere) = site.key("all", &["--allow-ip", "192.0.2.0/24", "--allow-ip", "2001:db8::1"]);
    comes(&elsewhere, "403 ip_not_allowed");
    let (_, here) = site.key("all", &["--allow-ip", "192.0.2.7", "--allow-ip", "::ffff:127.0.0.0/104"]);
    comes(&here, "ok");

    site.check();
    site.json(["license", "remove", "all", "--yes"]);
    comes(&fourth, "401 revoked_api_key");
    assert_eq!(code("mfk_nonsense"), "401 invalid_api_key");
    server.stop();
}

#[test]
fn a_license_changes_while_serving() {
    let site = Site::new();
    let records = format!(
        "{{\"id\":1,\"name\":\"A\",\"therapy_areas\":[\"Oncology\"],\"country\":\"Japan\",{STATUSES}}}\n\
         {{\"id\":2,\"name\":\"B\",\"therapy_areas\":[\"Oncology\"],{STATUSES}}}\n\
         {{\"id\":3,\"name\":\"C\",\"therapy_areas\":[\"Cardiology\"],{STATUSES}}}\n"
    );
    site.import("conferences.jsonl", records);
    site.import("journals.jsonl", "{\"id\":1,\"name\":\"J\"}\n");
    site.license("one", "--dataset conferences");
    let (_, key) = site.key("one", &[]);
    let server = site.serve();
    let mut client = server.client(&key);
    let ids = |client: &mut Client, target: &str| -> Vec<(u64, bool)> {
        let items = client.get(target).items();
        items.iter().map(|item| (item["id"].as_u64().unwrap(), item["deleted"] == json!(true))).collect()
    };
    let token = |client: &mut Client| client.get("/v1/exports/conferences").header("x-sync-token").unwrap().to_owned();
    let since = |token: &str| format!("/v1/conferences/changes?since={token}");
    let all = "/v1/conferences/changes?updated_since=2000-01-01";

    let before = token(&mut client);
    assert_eq!(client.get(&since(&before)).status, 200);
    site.license("one", "--dataset conferences --therapy-area Oncology");
    let gone = wait_until("410", SOON, || {
        let answer = client.get(&since(&before));
        (answer.status != 200).then_some(answer)
    });
    assert_eq!((gone.status, gone.problem().as_str()), (410, "resync_required"));
    assert!(gone.json()["detail"].as_str().unwrap().contains("/exports/conferences"));
    assert_eq!(ids(&mut client, "/v1/conferences"), [(1, false), (2, false)]);
    assert_eq!(client.get("/v1/conferences/3").problem(), "record_not_found");
    assert_eq!(ids(&mut client, all), [(1, false), (2, false), (3, true)], "a tombstone for what left");

    // The rate limit and the same scope again leave tokens alive.
    let narrow = token(&mut client);
    let same = ["license", "set", "one", "--dataset", "conferences", "--therapy-area", "Oncology"];
    assert_eq!(site.json(same)["scope_changed"], json!(false));
    site.json([&same[..], &["--rate-limit", "500000"]].concat());
    wait_until("the new rate limit", SOON, || {
        let answer = client.get(&since(&narrow));
        assert_eq!(answer.status, 200);
        (answer.header("ratelimit-limit") == Some("500000")).then_some(())
    });

    site.json([&same[..5], &["--widen"]].concat());
    wait_until("the wider license", SOON, || (client.get(&since(&narrow)).status == 410).then_some(()));
    assert_eq!(ids(&mut client, all), [(1, false), (2, false), (3, false)], "an entry for what entered");
    let wide = token(&mut client);
    assert!(client.get(&since(&wide)).items().is_empty());

    assert_eq!(client.get("/v1/journals").problem(), "dataset_not_licensed");
    site.json([&same[..5], &["--dataset", "journals"]].concat());
    wait_until("the second dataset", SOON, || (client.get("/v1/journals").status == 200).then_some(()));
    assert_eq!(ids(&mut client, "/v1/journals"), [(1, false)]);
    server.stop();
    site.check();
}
