//! The rate limit: fixed windows of a minute, per key, and per address for unusable keys.

use medfeed::store::write::licensing::KeySettings;

use crate::harness::{Answer, World};

const PATH: &str = "/v1/conferences?limit=1";

/// Limit, remaining, reset.
fn window(answer: &Answer) -> (u64, u64, u64) {
    (
        answer.number("ratelimit-limit"),
        answer.number("ratelimit-remaining"),
        answer.number("ratelimit-reset"),
    )
}

#[test]
fn a_keys_window_lasts_a_minute_from_its_first_request() {
    let world = World::small();
    world.set_rate_limit("full", 3);
    world.new_key("second", "full", KeySettings::default());
    let cases = cases![
        // key, second, path, status, window
        "full", 10, PATH, 200, (3, 2, 60);
        "full", 15, "/v1/conferences/999", 404, (3, 1, 55);
        "second", 15, PATH, 200, (3, 2, 60);
        "full", 20, "/v1/journals?limit=0", 400, (3, 0, 50);
        "full", 25, PATH, 429, (3, 0, 45);
        "full", 69, "/v1/exports/conferences", 429, (3, 0, 1);
        "onco", 69, PATH, 200, (600, 599, 60);
        "full", 70, "/v1/exports/conferences", 200, (3, 2, 60);
        "full", 80, "/v1/conferences/changes?since=x", 400, (3, 1, 50);
        "second", 80, PATH, 200, (3, 2, 60);
        "full", 500, PATH, 200, (3, 2, 60);
    ];
    for (key, at_s, path, status, expected) in cases {
        world.at_s.set(at_s);
        let answer = world.get(key, path).expect(status);
        assert_eq!(window(&answer), expected, "{key} at {at_s} s");
        if status == 429 {
            let number = answer.number("retry-after");
            assert_eq!(number, expected.2, "{key} at {at_s} s");
            answer.expect_problem("rate_limited", "3 requests per minute");
        }
    }
}

#[test]
fn every_request_with_a_key_counts_once() {
    let world = World::small();
    let token = world.get("full", "/v1/conferences/changes").token();
    let etag = world.get("full", PATH).etag();
    let mut left = world.get("full", PATH).number("ratelimit-remaining");
    let feed = format!("/v1/conferences/changes?since={token}");
    let requests = [
        ("GET", PATH, 200),
        ("HEAD", PATH, 200),
        ("GET", "/v1/exports/conferences", 200),
        ("HEAD", "/v1/exports/journals?format=csv", 200),
        ("GET", feed.as_str(), 200),
        ("GET", "/v1/reference/tags?dataset=journals", 200),
        ("GET", "/v1/reference/tags", 400),
        ("HEAD", "/v1/conferences/0", 404),
    ];
    let key = world.key("full").text;
    for (method, path, status) in requests {
        let answer = world
            .request(method, path, &[("x-api-key", &key)])
            .expect(status);
        left -= 1;
        let number = answer.number("ratelimit-remaining");
        assert_eq!(number, left, "{method} {path}");
    }
    let answer = world
        .request(
            "GET",
            PATH,
            &[("x-api-key", &key), ("if-none-match", &etag)],
        )
        .expect(304);
    assert_eq!(answer.number("ratelimit-remaining"), left - 1, "a 304");
    // Answers before the check of the key do not count for the key, and show the window of the address.
    for (method, path) in [
        ("GET", "/v1/nowhere"),
        ("POST", PATH),
        ("GET", "/v1/status"),
    ] {
        assert_eq!(
            window(&world.request(method, path, &[("x-api-key", &key)])).0,
            100,
            "{method} {path}"
        );
    }
    let number = world.get("full", PATH).number("ratelimit-remaining");
    assert_eq!(number, left - 2);
}

#[test]
fn a_new_rate_limit_applies_at_once() {
    let world = World::small();
    assert_eq!(window(&world.get("full", PATH)), (600, 599, 60));
    world.set_rate_limit("full", 2);
    assert_eq!(window(&world.get("full", PATH)), (2, 0, 60));
    world.get("full", PATH).expect(429);
    world.set_rate_limit("full", 5);
    assert_eq!(window(&world.get("full", PATH).expect(200)), (5, 2, 60));
}

#[test]
fn unusable_keys_use_up_their_address_alone() {
    let world = World::small();
    let revoked = world.new_key("revoked", "full", KeySettings::default());
    world.edit(|edit| edit.revoke_key(&revoked.id).unwrap());
    let elsewhere = KeySettings {
        allowed_ips: vec!["10.0.0.1/32".parse().unwrap()],
        ..KeySettings::default()
    };
    world.new_key("elsewhere", "full", elsewhere);
    let bad = || world.request("GET", PATH, &[("x-api-key", "junk")]);
    // No key, `/status`, a foreign path and a key of another address are not counted.
    for _ in 0..3 {
        assert_eq!(window(&world.get("", PATH).expect(401)), (100, 100, 60));
        let expected = (100, 100, 60);
        assert_eq!(window(&world.get("", "/v1/status").expect(200)), expected);
        assert_eq!(window(&world.get("", "/v1/nowhere").expect(404)), expected);
        assert_eq!(window(&world.get("elsewhere", PATH).expect(403)), expected);
    }
    for sent in 1..=100_u64 {
        let answer = if sent % 2 == 0 {
            bad()
        } else {
            world.get("revoked", PATH)
        };
        assert_eq!(window(&answer.expect(401)), (100, 100 - sent, 60));
    }
    world.at_s.set(20);
    let refused = bad().expect(429);
    let expected = ((100, 0, 40), 40);
    assert_eq!((window(&refused), refused.number("retry-after")), expected);
    refused.expect_problem("rate_limited", "unusable API keys");
    world.get("revoked", PATH).expect(429);
    // Valid keys, no key, `/status` and a key of another address are never refused by it.
    assert_eq!(window(&world.get("full", PATH).expect(200)), (600, 599, 60));
    assert_eq!(window(&world.get("", PATH).expect(401)), (100, 0, 40));
    let expected = (100, 0, 40);
    assert_eq!(window(&world.get("", "/v1/status").expect(200)), expected);
    assert_eq!(window(&world.get("elsewhere", PATH).expect(403)), expected);
    // Another address has a window of its own. This one gets a new window after its minute.
    world.address.set("192.0.2.8".parse().unwrap());
    assert_eq!(window(&bad().expect(401)), (100, 99, 60));
    world.address.set("192.0.2.7".parse().unwrap());
    world.at_s.set(60);
    assert_eq!(window(&bad().expect(401)), (100, 99, 60));
}
