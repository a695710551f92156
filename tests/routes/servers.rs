//! Several servers of one database, commits held back, and a server that fails.

use std::sync::Arc;
use std::time::{Duration, Instant};

use medfeed::api::SnapshotSource;
use medfeed::serve::Watcher;
use medfeed::store::Snapshot;
use serde_json::json;
use tokio::sync::watch;

use crate::harness::{World, conference, no_changes, patch, removal};

const DELAY: Duration = Duration::from_secs(3_600);

#[test]
fn a_server_that_is_behind_polls_before_it_answers_410() {
    let ahead = World::small();
    let behind = ahead.second_server(Duration::ZERO);
    ahead.conferences(&[patch(1, json!({"venue": "V"})), removal(2)]);
    let status = behind.get("full", "/v1/conferences/2").status;
    assert_eq!(status, 200, "not polled yet");
    let token = ahead.get("full", "/v1/conferences/changes").token();
    let answer = behind
        .get("full", &format!("/v1/conferences/changes?since={token}"))
        .expect(200);
    assert_eq!((answer.entries().as_str(), answer.token()), ("", token));
    let status = behind.get("full", "/v1/conferences/2").status;
    assert_eq!(status, 404, "shown in all answers");
    // The same holds after a license change.
    ahead.license("onco", "conferences; areas: Oncology, None");
    let token = ahead.get("onco", "/v1/exports/conferences").token();
    behind
        .get("onco", &format!("/v1/conferences/changes?since={token}"))
        .expect(200);
    // A token of a commit that never comes is refused.
    let fork = ahead.fork();
    fork.conferences(&[removal(1)]);
    let token = fork.get("full", "/v1/conferences/changes").token();
    behind
        .get("full", &format!("/v1/conferences/changes?since={token}"))
        .expect_problem("resync_required", "");
}

#[test]
fn held_back_commits_are_in_no_answer() {
    let world = World::small();
    let delayed = world.second_server(DELAY);
    let paths = words![
        "conferences" "conferences/1" "conferences?q=held" "journals" "reference/therapy-areas"
        "conferences/changes" "conferences/changes?updated_since=2000-01-01" "exports/conferences"
        "exports/journals?format=csv" "reference/organizations?dataset=journals"
    ];
    let bodies = || paths.map(|path| delayed.get("full", &format!("/v1/{path}")).expect(200).body);
    let records = || delayed.get("", "/v1/status").json()["datasets"].clone();
    let (before, counts) = (bodies(), records());
    world.conferences(&[
        patch(1, json!({"name": "Held"})),
        removal(2),
        conference(90, json!({"name": "Held too"})),
    ]);
    world.import(&[
        ("organizations", &[patch(1, json!({"name": "Held"}))]),
        ("journals", &[removal(2)]),
    ]);
    delayed.poll();
    assert!(bodies() == before && records() == counts, "held back");
    delayed.catch_up();
    assert!(
        bodies().iter().zip(&before).all(|(now, then)| now != then),
        "shown, all together"
    );
}

#[test]
fn a_newer_token_makes_a_delayed_server_show_its_commit() {
    let world = World::small();
    let delayed = world.second_server(DELAY);
    let old = world.get("full", "/v1/conferences/changes").token();
    world.conferences(&[removal(2)]);
    let new = world.get("full", "/v1/conferences/changes").token();
    delayed.poll();
    let feed = |token: &str| {
        delayed
            .get("full", &format!("/v1/conferences/changes?since={token}"))
            .expect(200)
            .entries()
    };
    assert_eq!(feed(&old), "");
    assert_eq!(feed(&new), "");
    assert_eq!(
        feed(&old),
        "-2",
        "the state that the newer token needs is shown now"
    );
    // A license change is shown in the same way, if the caller continues across it.
    world.license("full", "conferences; areas: Oncology");
    let newer = world.get("full", "/v1/conferences/changes").token();
    delayed.poll();
    let diff = |token: &str| {
        delayed.get(
            "full",
            &format!("/v1/conferences/changes?since={token}&resync=diff"),
        )
    };
    assert_eq!(diff(&new).expect(200).token(), new, "held back");
    assert_eq!(diff(&newer).expect(200).entries(), "");
    assert!(diff(&new).expect(200).entries().starts_with("-4 -5 "));
}

#[test]
fn a_license_change_is_shown_to_the_token_that_needs_it() {
    // A license that shows less from then on, and one that shows more.
    for (key, shows) in [
        ("full", "conferences; areas: Oncology"),
        ("onco", "conferences journals"),
    ] {
        let ahead = World::small();
        let old = ahead.get(key, "/v1/conferences/changes").token();
        let behind = ahead.second_server(Duration::ZERO);
        ahead.license(key, shows);
        let first = ahead
            .get(
                key,
                &format!("/v1/conferences/changes?since={old}&resync=diff&limit=1"),
            )
            .expect(200);
        let target = format!("/v1/conferences/changes?since={}&limit=3", first.token());
        let expected = ahead.get(key, &target).expect(200);
        assert!(
            !expected.entries().is_empty(),
            "{shows}: the change has more than one entry"
        );
        let answer = behind.get(key, &target).expect(200);
        assert_eq!(answer.entries(), expected.entries(), "{shows}");
        assert_eq!(answer.token(), expected.token(), "{shows}");
    }
}

#[test]
fn changes_of_keys_are_not_delayed() {
    let world = World::small();
    let delayed = world.second_server(DELAY);
    let new = world.new_key("new", "full", Default::default());
    world.license("later", "conferences");
    let of_later = world.key("later");
    world.edit(|edit| edit.revoke_key(&world.key("onco").id).unwrap());
    world.conferences(&[removal(1)]);
    delayed.poll();
    let ask = |key: &str| delayed.request("GET", "/v1/conferences/1", &[("x-api-key", key)]);
    ask(&new.text).expect(200);
    delayed
        .get("onco", "/v1/conferences/1")
        .expect_problem("revoked_api_key", "");
    let early = ask(&of_later.text);
    early.expect_problem("unavailable", "being set up");
    assert_eq!(early.header("retry-after"), Some("60"));
    delayed.catch_up();
    ask(&of_later.text).expect(404);
}

/// A source with one state. One of its functions panics.
struct Failing(Arc<Snapshot>, Part);

#[derive(PartialEq)]
enum Part {
    Shown,
    CatchUp,
}

impl Failing {
    fn state(&self, part: Part) -> Arc<Snapshot> {
        assert!(self.1 != part, "a secret reason");
        Arc::clone(&self.0)
    }
}

impl SnapshotSource for Failing {
    fn shown(&self) -> Arc<Snapshot> {
        self.state(Part::Shown)
    }

    fn newest(&self) -> Arc<Snapshot> {
        Arc::clone(&self.0)
    }

    fn changes(&self) -> watch::Receiver<()> {
        no_changes()
    }

    fn catch_up(&self, _: Instant, _: &dyn Fn(&Snapshot) -> bool) -> Arc<Snapshot> {
        self.state(Part::CatchUp)
    }
}

#[test]
fn a_panic_is_an_internal_error_for_its_request_alone() {
    let world = World::small();
    let broken = world.with_source(Arc::new(Failing(world.shown(), Part::Shown)));
    for path in words!["/v1/conferences" "/v1/exports/journals" "/v1/conferences/changes?since=x"] {
        let answer = broken.get("full", path).expect(500);
        answer.expect_problem("internal_error", "request id");
        assert!(!answer.text().contains("secret"), "{}", answer.text());
    }
    broken
        .get("", "/v1/status")
        .expect(500)
        .expect_problem("internal_error", "");
    // Other requests are answered.
    broken.get("", "/v1/conferences").expect(401);
    broken.get("", "/docs").expect(200);
}

#[test]
fn callers_that_need_the_same_poll_share_it() {
    let world = World::small();
    let watcher = Watcher::open(&world.database(), Duration::ZERO).unwrap();
    let came = Instant::now();
    watcher.catch_up(came, &|_| true);
    world.conferences(&[removal(1)]);
    let before = watcher.shown().commit();
    let found = watcher.catch_up(came, &|_| true).commit();
    assert_eq!(found, before, "that poll was before the commit");
    // A caller that arrives after that poll causes another one.
    assert_eq!(
        watcher.catch_up(Instant::now(), &|_| true).commit(),
        world.shown().commit()
    );
}

#[test]
fn a_panic_of_a_poll_is_an_internal_error_too() {
    let world = World::small();
    let lost = world.with_source(Arc::new(Failing(world.shown(), Part::CatchUp)));
    world.conferences(&[removal(1)]);
    let token = world.get("full", "/v1/conferences/changes").token();
    let answer = lost.get("full", &format!("/v1/conferences/changes?since={token}"));
    answer.expect_problem("internal_error", "request id");
    // The request is counted once, with its own window.
    assert_eq!(answer.header("ratelimit-remaining"), Some("599"));
    lost.get("full", "/v1/conferences/changes").expect(200);
}

#[test]
fn an_older_state_can_be_read_while_newer_feeds_are_in_memory() {
    let world = World::small();
    let older = world.with_source(Arc::new(Failing(world.shown(), Part::CatchUp)));
    let paths = words![
        "conferences" "conferences/2" "conferences?q=congress" "conferences/changes?updated_since=2000-01-01"
        "exports/conferences" "reference/therapy-areas"
    ];
    let bodies = |world: &World| paths.map(|path| world.get("full", &format!("/v1/{path}")).body);
    let before = bodies(&world);
    world.conferences(&[
        patch(1, json!({"venue": "V"})),
        removal(2),
        conference(90, json!({"name": "New Congress"})),
    ]);
    let after = bodies(&world);
    assert!(
        after.iter().zip(&before).all(|(now, then)| now != then),
        "the newer state is in memory"
    );
    for (path, expected) in paths.iter().zip(&before) {
        let found = older.get("full", &format!("/v1/{path}")).expect(200).body;
        assert!(found == *expected, "{path}");
    }
}
