//! Requests that have waited are checked again like new ones, but not counted again.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use http::{HeaderMap, HeaderValue, Method};
use medfeed::api::exchange::Exchange;
use medfeed::api::service::CheckedRequest;
use medfeed::api::{Request, Service, Settings, SnapshotSource, Unservable};
use medfeed::model::time::now;
use medfeed::store::Snapshot;
use medfeed::store::write::licensing::KeySettings;

use crate::harness::World;

/// A service over a world's states, and a time on both clocks.
struct Asked {
    world: World,
    service: Service,
    at: Instant,
}

impl Asked {
    fn new(world: World) -> Asked {
        let source = world.source();
        Asked::over(world, source)
    }

    /// The same over another source of the world's states.
    fn over(world: World, source: Arc<dyn SnapshotSource>) -> Asked {
        let service = Service::new(Settings::of("https://feed.example"), source);
        Asked { world, service, at: Instant::now() }
    }

    fn after(&self, seconds: u64) -> Instant {
        self.at + Duration::from_secs(seconds)
    }

    fn request(&self, key: &str, target: &str) -> Request {
        let key = HeaderValue::from_str(&self.world.key(key).text).unwrap();
        Request {
            method: Method::GET,
            target: target.to_owned(),
            headers: HeaderMap::from_iter([("x-api-key".parse().unwrap(), key)]),
            has_body: false,
            flaw: None,
            address: [192, 0, 2, 7].into(),
            at: self.at,
            wall: now(),
        }
    }

    /// Checks a request, and finishes it if no job is needed. Returns the status or error code, and the headers.
    fn check(&self, exchange: &mut Exchange) -> (String, HeaderMap) {
        let (code, answer) = match self.service.check(exchange) {
            Ok(CheckedRequest::Answered(answer)) => (String::new(), Ok(answer)),
            Ok(_) => return ("a job".to_owned(), HeaderMap::new()),
            Err(problem) => (problem.code.to_string(), Err(problem)),
        };
        (code, self.service.finish(exchange, answer).headers)
    }
}

fn window(headers: &HeaderMap) -> [u64; 3] {
    ["ratelimit-limit", "ratelimit-remaining", "ratelimit-reset"]
        .map(|name| headers[name].to_str().unwrap().parse().unwrap())
}

fn target(world: &World, key: &str) -> String {
    let since = world.get(key, "/v1/conferences/changes").token();
    format!("/v1/conferences/changes?since={since}&wait=60")
}

#[test]
fn a_request_that_waited_is_counted_once() {
    let asked = Asked::new(World::small());
    asked.world.set_rate_limit("onco", 2);
    let target = target(&asked.world, "onco");
    let mut exchange = Exchange::new(asked.request("onco", &target));
    assert_eq!(window(&asked.check(&mut exchange).1), [2, 1, 60]);
    exchange.wake(asked.after(20), now(), false);
    assert_eq!(window(&asked.check(&mut exchange).1), [2, 1, 40], "the window of the time when it was woken");
    // Others use up the window meanwhile. What has waited is answered.
    let mut other = Exchange::new(asked.request("onco", &target));
    assert_eq!(window(&asked.check(&mut other).1), [2, 0, 60]);
    assert_eq!(asked.check(&mut Exchange::new(asked.request("onco", &target))).0, "rate_limited");
    exchange.wake(asked.after(59), now(), false);
    let (code, headers) = asked.check(&mut exchange);
    assert_eq!((code.as_str(), window(&headers)), ("", [2, 0, 1]));
    // A minute after the first request the window is over.
    exchange.wake(asked.after(60), now(), true);
    let (code, headers) = asked.check(&mut exchange);
    assert_eq!((code.as_str(), window(&headers)), ("", [2, 2, 60]));
}

#[test]
fn a_woken_request_finds_changes_of_key_and_license() {
    type Change = fn(&World);
    let cases: [(&str, Change, &str); 9] = [
        ("nothing", |_| {}, ""),
        ("another key revoked", |world| revoke(world, "spain"), ""),
        ("the key revoked", |world| revoke(world, "timed"), "revoked_api_key"),
        (
            "the key replaced",
            |world| drop(world.edit(|edit| edit.replace_key(&world.key("timed").id, 0).unwrap())),
            "revoked_api_key",
        ),
        ("the key expired", |world| world.wall_ahead_s.set(3600), "expired_api_key"),
        ("almost expired", |world| world.wall_ahead_s.set(3500), ""),
        (
            "the license removed",
            |world| assert!(world.edit(|edit| edit.remove_license("onco").unwrap()) > 0),
            "revoked_api_key",
        ),
        ("another dataset", |world| world.license("onco", "journals"), "dataset_not_licensed"),
        // Whether the token still holds is for a job to see.
        ("another scope", |world| world.license("onco", "conferences; areas: Cardiology"), "a job"),
    ];
    for (what, change, expected) in cases {
        let world = World::small();
        let settings = KeySettings { expires_at: Some(now().plus_s(3600)), ..KeySettings::default() };
        world.new_key("timed", "onco", settings);
        let target = target(&world, "timed");
        let asked = Asked::new(world);
        let mut exchange = Exchange::new(asked.request("timed", &target));
        assert_eq!(asked.check(&mut exchange).0, "", "{what}");
        change(&asked.world);
        exchange.wake(asked.after(5), now().plus_s(asked.world.wall_ahead_s.get()), false);
        let (code, headers) = asked.check(&mut exchange);
        assert_eq!(code, expected, "{what}");
        if code.ends_with("_api_key") {
            assert_eq!(window(&headers), [100, 100, 60], "{what}: its address sent no unusable key");
        }
    }
}

/// The source of a replica, which may become stale.
struct MayBeStale {
    source: Arc<dyn SnapshotSource>,
    is_stale: AtomicBool,
}

impl SnapshotSource for MayBeStale {
    fn published(&self) -> Arc<Snapshot> {
        self.source.published()
    }

    fn newest(&self) -> Arc<Snapshot> {
        self.source.newest()
    }

    fn unservable(&self) -> Option<Unservable> {
        let stale = Unservable { retry_after_s: 10, reason: "Its data may be outdated." };
        self.is_stale.load(Ordering::Relaxed).then_some(stale)
    }

    fn polls(&self) -> u64 {
        self.source.polls()
    }

    fn catch_up(&self, polls: u64, accept: &dyn Fn(&Snapshot) -> bool) -> Arc<Snapshot> {
        self.source.catch_up(polls, accept)
    }
}

#[test]
fn a_replica_that_became_stale_meanwhile_answers_nothing() {
    let world = World::small();
    let target = target(&world, "full");
    let source = Arc::new(MayBeStale { source: world.source(), is_stale: AtomicBool::new(false) });
    let asked = Asked::over(world, source.clone());
    let mut exchange = Exchange::new(asked.request("full", &target));
    assert_eq!(asked.check(&mut exchange).0, "");
    for (is_stale, is_over, expected) in [(true, false, "unavailable"), (false, false, ""), (true, true, "unavailable")]
    {
        source.is_stale.store(is_stale, Ordering::Relaxed);
        exchange.wake(asked.after(5), now(), is_over);
        assert_eq!(asked.check(&mut exchange).0, expected, "stale: {is_stale}, over: {is_over}");
    }
}

fn revoke(world: &World, key: &str) {
    let id = world.key(key).id;
    world.edit(|edit| drop(edit.revoke_key(&id).unwrap()));
}

#[test]
fn only_a_key_that_may_be_used_here_counts_for_its_connection() {
    let world = World::small();
    world.set_rate_limit("spain", 1);
    let elsewhere = KeySettings { allowed_ips: vec!["10.0.0.1/32".parse().unwrap()], ..KeySettings::default() };
    world.new_key("elsewhere", "full", elsewhere);
    world.new_key("revoked", "full", KeySettings::default());
    revoke(&world, "revoked");
    let cases = [
        ("full", "/v1/conferences", 200, true),
        ("full", "/v1/conferences/changes", 200, true),
        ("full", "/v1/conferences/0", 404, true),
        ("papers", "/v1/conferences", 403, true),
        ("full", "/v1/conferences?limit=0", 400, true),
        ("spain", "/v1/conferences", 200, true),
        ("spain", "/v1/conferences", 429, true),
        ("elsewhere", "/v1/conferences", 403, false),
        ("revoked", "/v1/conferences", 401, false),
        ("full", "/v1/status", 200, false),
        ("full", "/v1/nowhere", 404, false),
        ("full", "/docs", 200, false),
    ];
    for (key, target, status, has_key) in cases {
        let response = world.run(world.ask_at_once(key, target, "identity"));
        assert_eq!((response.status.as_u16(), response.has_key), (status, has_key), "{key} {target}");
    }
}
