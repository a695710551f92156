//! Keys that a server does not know yet.

use std::net::SocketAddr;
use std::time::Instant;

use medfeed::model::key::ApiKey;
use medfeed::replicate::layout;

use super::client::Client;
use super::monitoring::scrape;
use super::origin::Replica;
use super::replicas::{COUNT, mirror, origin, serve};
use super::s3::{Fault, S3};
use super::site::{Site, conferences_of_version, version_of, wait_for};

fn made_up() -> String {
    ApiKey::generate().unwrap().reveal().to_owned()
}

/// Uses up the limit of an address for unusable keys.
fn flood(address: SocketAddr) {
    let mut client = Client::new(address, Some("mfk_none"));
    for _ in 0..100 {
        assert_eq!(client.get("/v1/conferences").problem(), "invalid_api_key");
    }
    assert_eq!(client.get("/v1/conferences").problem(), "rate_limited");
}

/// From an address beyond its limit, a valid key is answered, within its own window. Answers to other keys are all
/// alike.
fn expect_only_valid_keys(address: SocketAddr, valid: &str) {
    let get = |key: &str| Client::new(address, Some(key)).get("/v1/conferences");
    for (status, left) in [(200, "1"), (200, "0"), (429, "0")] {
        let answer = get(valid);
        let found = (answer.status, answer.header("ratelimit-remaining"));
        assert_eq!(found, (status, Some(left)), "{answer:?}");
        assert_eq!(answer.header("ratelimit-limit"), Some("2"));
    }
    let texts = ["mfk_none", &made_up(), &made_up(), &valid[..20], "x"].map(|key| {
        let answer = get(key);
        assert_eq!(answer.status, 429, "{answer:?}");
        assert_eq!(answer.header("ratelimit-limit"), Some("100"), "{answer:?}");
        assert!(answer.header("retry-after").is_some(), "{answer:?}");
        assert!(answer.header("www-authenticate").is_none(), "{answer:?}");
        answer.json()["detail"].as_str().unwrap().to_owned()
    });
    assert!(texts.iter().all(|text| *text == texts[0]), "{texts:?}");
}

#[test]
fn a_new_key_works_at_once_from_an_address_beyond_its_limit() {
    let site = Site::with(3);
    site.json("license set all --yes --dataset conferences --rate-limit 2".split(' '));
    let server = site.serve();
    flood(server.address);
    // Several keys, because the server polls the file ten times a second.
    let keys: Vec<String> = (0..6)
        .map(|_| {
            let (_, key) = site.key("all", &[]);
            assert_eq!(server.client(&key).get("/v1/status").status, 200);
            let problem = server.client(&key).get("/v1/journals").problem();
            assert_eq!(problem, "dataset_not_licensed", "the key is known");
            key
        })
        .collect();
    let (_, key) = site.key("all", &[]);
    expect_only_valid_keys(server.address, &key);
    assert!(
        keys.iter()
            .all(|key| server.client(key).get("/v1/conferences").status == 200)
    );
    server.stop();
}

#[test]
fn a_replica_polls_for_new_keys_of_an_address_beyond_its_limit() {
    let (mut origin, _) = origin();
    origin
        .site
        .json("license set slow --yes --dataset conferences --rate-limit 2".split(' '));
    origin.publish();
    let replica = origin.replica();
    let (server, _) = serve(&replica, "--poll 1h");
    flood(server.address);
    let (_, key) = origin.site.key("slow", &[]);
    origin.publish();
    expect_only_valid_keys(server.address, &key);
    // Many made-up keys at once are answered, and use up no places of other addresses.
    std::thread::scope(|scope| {
        for _ in 0..24 {
            scope.spawn(|| {
                let problem = server.client(&made_up()).get("/v1/conferences").problem();
                assert_eq!(problem, "rate_limited");
            });
        }
    });
    server.stop();
}

#[test]
fn an_unknown_key_makes_the_replica_poll() {
    let (mut origin, _) = origin();
    let replica = origin.replica();
    let (server, _) = serve(&replica, "--poll 1h");
    let refused = |key: &str| {
        let answer = server.client(key).get("/v1/conferences");
        answer.assert_problem(401, "invalid_api_key");
    };
    let (_, new) = origin.site.key("all", &[]);
    refused(&new);
    origin.publish();
    // While the bucket is away, the key is not called invalid.
    let away = origin.site.path("away");
    std::fs::rename(origin.folder(), &away).unwrap();
    for key in [&new, &made_up()] {
        let answer = server.client(key).get("/v1/conferences");
        assert_eq!(answer.problem().as_str(), "unavailable", "{answer:?}");
        assert_eq!(answer.header("retry-after"), Some("1"), "{answer:?}");
    }
    refused("mfk_none");
    std::fs::rename(&away, origin.folder()).unwrap();
    assert_eq!(server.client(&new).get("/v1/conferences").status, 200);
    for key in [made_up().as_str(), "mfk_none", &new[..20]] {
        refused(key);
    }
    server.stop();
}

#[test]
fn unknown_keys_end_no_change_delay() {
    let (mut origin, key) = origin();
    let replica = origin.replica();
    let (server, mut admin) = serve(&replica, "--poll 20ms --change-delay 1h");
    let mut client = server.client(&key);
    origin
        .site
        .import("conferences.jsonl", conferences_of_version(COUNT, 1));
    let (_, new) = origin.site.key("all", &[]);
    origin.publish();
    wait_for("the commit is held back", || {
        scrape(&mut admin)["medfeed_held_back"] == 1.0
    });
    for (key, status) in [(&made_up(), 401), (&new, 200), (&made_up(), 401)] {
        assert_eq!(server.client(key).get("/v1/conferences").status, status);
        assert_eq!(version_of(&client.get("/v1/conferences").items()), 0);
    }
    server.stop();
}

#[test]
fn made_up_keys_cause_few_polls_and_delay_no_caller() {
    const CALLERS: usize = 24;
    let (origin, key) = origin();
    let store = S3::start();
    mirror(&origin, &store);
    let replica = Replica {
        site: Site::new(),
        url: store.url.clone(),
    };
    let mut command = replica.site.serve_command(&replica.options("--poll 1h"));
    command.envs(store.environment());
    let server = replica.site.start(command);
    let name = layout::log(origin.slot + 1);
    let polls = || {
        store
            .requests()
            .iter()
            .filter(|request| request.contains(&name))
            .count()
    };
    let (before, begun) = (polls(), Instant::now());
    std::thread::scope(|scope| {
        for _ in 0..CALLERS {
            scope.spawn(|| {
                for _ in 0..3 {
                    let problem = server.client(&made_up()).get("/v1/conferences").problem();
                    assert_eq!(problem, "invalid_api_key");
                }
            });
        }
    });
    let (made, most) = (polls() - before, begun.elapsed().as_secs() + 1);
    assert!(
        (1..=most).contains(&u64::try_from(made).unwrap()),
        "{made} polls, and at most {most} are allowed"
    );
    // A text that cannot be a key causes no poll.
    let before = polls();
    for key in ["mfk_none", "Bearer", "x"] {
        let problem = server.client(key).get("/v1/conferences").problem();
        assert_eq!(problem, "invalid_api_key");
    }
    assert_eq!(polls(), before);

    // While the bucket does not answer, callers with valid keys are answered, and a key may be new.
    store.fail("GET", &name, Fault::Held, 1);
    std::thread::scope(|scope| {
        let waiting = scope.spawn(|| server.client(&made_up()).get("/v1/conferences"));
        wait_for("a poll that is held back", || polls() > before);
        for _ in 0..20 {
            assert_eq!(server.client(&key).get("/v1/conferences").status, 200);
        }
        let answer = waiting.join().unwrap();
        assert_eq!(answer.status, 503, "{answer:?}");
        assert_eq!(answer.header("retry-after"), Some("1"), "{answer:?}");
    });
    store.release();

    // Also if more of them wait than may.
    store.fail("GET", &name, Fault::Held, 1);
    std::thread::scope(|scope| {
        for number in 0..80 {
            let source = [127, 0, 4, 1 + number % 2].into();
            let mut client = server.client(&made_up()).coming_from(source);
            scope.spawn(move || {
                assert_eq!(client.get("/v1/conferences").problem(), "unavailable");
            });
        }
    });
    store.release();
    server.stop();
}
