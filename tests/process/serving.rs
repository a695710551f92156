//! Commits become visible while a server runs: soon, whole, and to the right callers.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use super::client::Client;
use super::site::{SOON, Site, conferences_of_version, version_of, wait_until, wait_until_every};

/// The maximum time until a commit is visible.
const VISIBLE_WITHIN: Duration = Duration::from_secs(2);

/// Sends all requests in turn, with pauses that leave the processor to others. Each answer must be of one state, and
/// none older than the one before. Returns the number of answers.
pub fn read_whole_states(client: &mut Client, count: usize, stop: &AtomicBool) -> usize {
    let targets = words![
        "/v1/conferences?limit=500" "/v1/exports/conferences" "/v1/conferences?limit=7&therapy_area=Oncology"
        "/v1/conferences/changes?updated_since=2000-01-01&limit=1000"
        "/v1/conferences?limit=500&q=conference&year=2025" "/v1/conferences/3"
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
            assert!(
                version >= newest,
                "{target} went back from version {newest} to {version}"
            );
            newest = version;
            answers += 1;
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    answers
}

#[test]
fn imports_become_visible_soon_and_whole() {
    const COUNT: u64 = 300;
    let (site, key) = Site::open(COUNT);
    let server = site.serve();
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let reader = scope.spawn(|| read_whole_states(&mut server.client(&key), 300, &stop));
        let mut client = server.client(&key);
        let mut slowest = Duration::ZERO;
        for version in 1..=8 {
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
fn changes_of_keys_take_effect_while_serving() {
    let site = Site::with(3);
    let (first_id, first) = {
        site.license("all", "--dataset conferences");
        site.key("all", &[])
    };
    let server = site.serve();
    let code = |key: &str| {
        let answer = server.client(key).get("/v1/conferences");
        if answer.status == 200 {
            "ok".to_owned()
        } else {
            format!("{} {}", answer.status, answer.problem())
        }
    };
    let comes = |key: &str, expected: &str| {
        // The requests have pauses, because unusable keys use up the address's own rate window.
        wait_until_every(Duration::from_millis(50), expected, SOON, || {
            (code(key) == expected).then_some(())
        });
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
    let replaced = site.json([
        "key",
        "replace",
        replaced["id"].as_str().unwrap(),
        "--overlap",
        "2s",
    ]);
    let fourth = replaced["key"].as_str().unwrap().to_owned();
    comes(&fourth, "ok");
    comes(&third, "401 revoked_api_key");
    assert_eq!(code(&fourth), "ok");

    site.json(["key", "revoke", &first_id]);
    comes(&first, "401 revoked_api_key");
    assert_eq!(
        site.run(["key", "revoke", &first_id]).code,
        Some(1),
        "once is enough"
    );

    let settings = ["--allow-ip", "192.0.2.0/24", "--allow-ip", "2001:db8::1"];
    let (_, elsewhere) = site.key("all", &settings);
    comes(&elsewhere, "403 ip_not_allowed");
    let settings = words!["--allow-ip" "192.0.2.7" "--allow-ip" "::ffff:127.0.0.0/104"];
    let (_, here) = site.key("all", &settings);
    comes(&here, "ok");

    site.check();
    site.json(["license", "remove", "all", "--yes"]);
    comes(&fourth, "401 revoked_api_key");
    assert_eq!(code("mfk_nonsense"), "401 invalid_api_key");
    server.stop();
}
