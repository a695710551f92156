//! The system's clock is set back. Commit times never decrease, so a caller that polls by time misses no change.

use medfeed::model::Timestamp;
use medfeed::model::time::{now, parse_time};
use medfeed::store::write::licensing::KeySettings;
use serde_json::{Value, json};

use crate::harness::{World, patch, removal};

/// The small world with its last commit `seconds` ahead of the clock, as after a clock was set back.
fn set_back(seconds: i64) -> World {
    let world = World::small();
    // All tests share the small world, which may have been made a while ago.
    let age = now().unix_s() - world.shown().commit().time.unix_s();
    world.pass_s(-seconds - age);
    world
}

fn time_in(item: &Value) -> Timestamp {
    let time = item.get("changed_at").or(item.get("updated_at")).unwrap();
    parse_time(time.as_str().unwrap()).unwrap()
}

/// The time of a dataset's last change, in the public status.
fn last_change(world: &World, dataset: &str) -> Timestamp {
    let status = world.get("", "/v1/status").expect(200).json();
    parse_time(
        status["datasets"][dataset]["last_change_at"]
            .as_str()
            .unwrap(),
    )
    .unwrap()
}

#[test]
fn commit_times_never_decrease_and_polls_by_time_miss_nothing() {
    for seconds in [1, 90, 3_600, 400 * 86_400] {
        let world = set_back(seconds);
        let before = last_change(&world, "conferences");
        assert!(
            before.unix_s() > now().unix_s() - 60 + seconds,
            "the clock of this test is behind"
        );
        let mut token = world.get("full", "/v1/exports/conferences").token();
        // Each edit, and the entries of the feed for a caller that polls by token.
        let edits: [(&[String], &str); 4] = [
            (&[patch(4, json!({"venue": "V"})), removal(2)], "-2 4"),
            (&[patch(1, json!({"venue": "V"}))], "1"),
            (&[removal(3), patch(5, json!({"venue": "V"}))], "-3 5"),
            (&[patch(4, json!({"venue": "W"}))], "4"),
        ];
        let mut latest = before;
        for (rows, entries) in edits {
            world.conferences(rows);
            let page = world
                .get("full", &format!("/v1/conferences/changes?since={token}"))
                .expect(200);
            assert_eq!(page.entries(), entries, "{seconds} s back");
            for item in page.items() {
                assert!(
                    time_in(&item) >= latest,
                    "{seconds} s back: {item} after {latest}"
                );
                latest = time_in(&item);
            }
            assert_eq!(
                last_change(&world, "conferences"),
                latest,
                "{seconds} s back"
            );
            token = page.token();
            // The clock is set back a little again, between the imports.
            world.pass_s(-2);
        }
        // A caller that polls by time gets every change, from the last known one on.
        let feed = format!("/v1/conferences/changes?limit=1000&updated_since={before}");
        let page = world.get("full", &feed).expect(200);
        let entries = page.entries();
        assert!(
            entries.ends_with("-2 1 -3 5 4"),
            "{seconds} s back: {entries}"
        );
        let listed = world
            .get(
                "full",
                &format!("/v1/conferences?limit=500&updated_since={before}"),
            )
            .expect(200)
            .ids();
        assert!(
            [1, 4, 5].iter().all(|id| listed.contains(id)),
            "{seconds} s back: {listed:?}"
        );
        // From the time of the last commit on, and by the caller's own clock.
        let last = latest.plus_s(2);
        for path in ["conferences", "conferences/changes"] {
            let found = world
                .get(
                    "full",
                    &format!("/v1/{path}?limit=500&updated_since={last}"),
                )
                .expect(200);
            assert!(
                found.ids().contains(&4),
                "{seconds} s back: {path} since {last}: {:?}",
                found.ids()
            );
            let later = world
                .get(
                    "full",
                    &format!("/v1/{path}?updated_since={}", last.plus_s(1)),
                )
                .expect(200);
            assert_eq!(later.ids(), Vec::<u64>::new(), "{seconds} s back: {path}");
            let by_clock = world
                .get(
                    "full",
                    &format!("/v1/{path}?limit=500&updated_since={}", now()),
                )
                .expect(200);
            assert!(
                by_clock.ids().contains(&4),
                "{seconds} s back: {path} by the caller's clock"
            );
        }
    }
}

#[test]
fn status_shows_the_wall_clock() {
    let world = set_back(3_600);
    let before = last_change(&world, "journals");
    for ahead_s in [0, -86_400, 7_200] {
        world.wall_ahead_s.set(ahead_s);
        let status = world.get("", "/v1/status").expect(200).json();
        let told = parse_time(status["time"].as_str().unwrap()).unwrap();
        assert!(
            (told.unix_s() - now().unix_s() - ahead_s).abs() < 60,
            "{status}"
        );
        assert_eq!(status["status"], "ok");
        assert_eq!(last_change(&world, "journals"), before);
    }
}

#[test]
fn rate_windows_ignore_the_wall_clock() {
    let world = set_back(3_600);
    for (asked, ahead_s) in [0, -86_400, 86_400, -1, 0].into_iter().enumerate() {
        world.wall_ahead_s.set(ahead_s);
        let answer = world.get("full", "/v1/conferences?limit=1").expect(200);
        let asked = u64::try_from(asked).unwrap();
        let number = answer.number("ratelimit-remaining");
        assert_eq!(number, 600 - 1 - asked, "{ahead_s} s ahead");
        assert!(
            (1..=60).contains(&answer.number("ratelimit-reset")),
            "{ahead_s} s ahead"
        );
    }
}

#[test]
fn a_revocation_holds_when_the_clock_is_set_back() {
    let asked = |world: &World, key: &str| world.get(key, "/v1/conferences?limit=1");
    for back_s in [0, 1, 3_600] {
        let world = set_back(back_s);
        let [revoked, replaced, _, overlapped] = ["revoked", "replaced", "orphaned", "overlapped"]
            .map(|name| {
                world.license(&format!("license {name}"), "conferences");
                world.new_key(name, &format!("license {name}"), KeySettings::default())
            });
        world.edit(|edit| edit.revoke_key(&revoked.id).unwrap());
        world.edit(|edit| edit.replace_key(&replaced.id, 0).unwrap());
        world.edit(|edit| edit.remove_license("license orphaned").unwrap());
        // An overlap would begin at the last commit, so it is refused if that is far ahead.
        let has_overlap = world.edit(|edit| edit.replace_key(&overlapped.id, 600).is_ok());
        assert_eq!(has_overlap, back_s < 120, "{back_s} s");
        // At once, after the clock is set back once more, and when it is correct again.
        for wall_ahead_s in [0, -1, -86_400, 2 * back_s] {
            world.wall_ahead_s.set(wall_ahead_s);
            for name in ["revoked", "replaced", "orphaned"] {
                asked(&world, name).expect_problem("revoked_api_key", "");
            }
        }
        world.wall_ahead_s.set(0);
        asked(&world, "overlapped").expect(200);
        world.wall_ahead_s.set(back_s + 700);
        match has_overlap {
            true => asked(&world, "overlapped").expect_problem("revoked_api_key", ""),
            false => drop(asked(&world, "overlapped").expect(200)),
        }
    }
}

#[test]
fn a_commit_behind_a_clock_that_was_ahead_warns() {
    let medfeed = |world: &World, args: &[&str]| {
        let mut command = std::process::Command::new(env!("CARGO_BIN_EXE_medfeed"));
        let done = command
            .args(args)
            .arg("--db")
            .arg(world.database())
            .output()
            .unwrap();
        assert!(done.status.success(), "{done:?}");
        [done.stdout, done.stderr]
            .map(|text| String::from_utf8(text).unwrap())
            .concat()
    };
    for (ahead_s, is_told) in [(0, false), (60, false), (9 * 365 * 86_400, true)] {
        let world = set_back(ahead_s);
        let committed = medfeed(&world, &["key", "create", "--license", "full"]);
        let found = committed.contains("behind the last commit");
        assert_eq!(found, is_told, "{ahead_s} s: {committed}");
        let checked = medfeed(&world, &["check"]);
        let found = checked.contains("a clock was ahead");
        assert_eq!(found, is_told, "{ahead_s} s: {checked}");
        assert!(checked.contains("is sound"), "{checked}");
    }
}
