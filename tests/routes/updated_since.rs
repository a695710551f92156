//! `updated_since`, in lists as in the feed: inclusive, by the time of the last change or of entering the license.

use medfeed::model::Timestamp;
use medfeed::model::time::parse_time;
use serde_json::json;

use crate::harness::{World, patch, removal};

/// The time of a world's last commit, as a tombstone or a record tells it.
fn time_of(world: &World, path: &str) -> Timestamp {
    let item = world.get("full", path).items().pop().unwrap();
    let time = item.get("changed_at").or(item.get("updated_at")).unwrap();
    parse_time(time.as_str().unwrap()).unwrap()
}

#[test]
fn it_is_inclusive_in_whole_seconds() {
    let world = World::small();
    let at = time_of(&world, "/v1/conferences?limit=1");
    let count = |dataset: &str, time: &str| {
        world.get("full", &format!("/v1/{dataset}?limit=500&updated_since={time}")).expect(200).items().len()
    };
    for (dataset, all) in [("conferences", 25), ("journals", 12), ("conferences/changes", 25), ("journals/changes", 12)]
    {
        assert_eq!(count(dataset, &at.to_string()), all, "{dataset} at {at}");
        assert_eq!(count(dataset, &at.plus_s(-1).to_string()), all, "{dataset} before {at}");
        // The licenses were made after the import: their records entered a moment later.
        assert_eq!(count(dataset, &at.plus_s(600).to_string()), 0, "{dataset} after {at}");
        let fraction = at.to_string().replace('Z', ".999Z");
        assert_eq!(count(dataset, &fraction), all, "{dataset}: a fraction is cut off");
        let shifted = at.plus_s(7_200).to_string().replace('Z', "%2B02:00");
        assert_eq!(count(dataset, &shifted), all, "{dataset}: an offset");
    }
}

#[test]
fn it_selects_what_changed_or_entered_since() {
    let world = World::small();
    world.pass_s(1_000);
    world.conferences(&[patch(2, json!({"venue": "V"})), patch(4, json!({"venue": "V"})), removal(3), removal(5)]);
    let first = time_of(&world, "/v1/conferences/changes?updated_since=2000-01-01&limit=1000").plus_s(-1_000);
    world.pass_s(1_000);
    world.license("onco", "conferences; areas: Oncology, Neurology");
    world.license("spain", "conferences; countries: Spain; years: 2025");
    world.conferences(&[patch(15, json!({"venue": "W"}))]);
    let second = first.plus_s(1_000);
    // (key, since, the list, the feed)
    let cases: &[(&str, Timestamp, &[u64], &str)] = &[
        ("full", first, &[2, 4, 15], "2 -3 4 -5 15"),
        ("full", first.plus_s(1), &[15], "15"),
        ("full", second, &[15], "15"),
        ("full", second.plus_s(60), &[], ""),
        ("onco", first, &[2, 15], "2 -3 15"),
        ("onco", first.plus_s(1), &[15], "15"),
        ("spain", first, &[], "-2 -14 -24"),
        ("spain", second, &[], "-2 -14 -24"),
        ("papers", first.plus_s(-900), &[], ""),
    ];
    for (key, since, listed, entries) in cases {
        let dataset = if *key == "papers" { "journals" } else { "conferences" };
        let list = world.get(key, &format!("/v1/{dataset}?updated_since={since}")).expect(200);
        assert_eq!(list.ids(), *listed, "{key} since {since}");
        let feed = world.get(key, &format!("/v1/{dataset}/changes?updated_since={since}")).expect(200);
        assert_eq!(feed.entries(), *entries, "{key} since {since}");
    }
}

#[test]
fn a_record_that_enters_is_new_however_old_it_is() {
    let world = World::small();
    world.pass_s(1_000);
    let old = world.get("full", "/v1/conferences/4").json()["data"]["updated_at"].clone();
    world.license("cardio", "conferences; areas: Cardiology");
    let since = parse_time(old.as_str().unwrap()).unwrap();
    let path = |path: &str| format!("/v1/{path}?updated_since={}", since.plus_s(-1));
    assert_eq!(world.get("cardio", &path("conferences")).ids(), [4, 5, 6, 9, 12, 24]);
    assert_eq!(world.get("cardio", &path("conferences/changes")).entries(), "4 5 6 9 12 24");
    assert_eq!(world.get("full", &path("conferences")).ids(), Vec::<u64>::new());
    // Its `updated_at` is that of its content.
    assert_eq!(world.get("cardio", "/v1/conferences/4").json()["data"]["updated_at"], old);
}

#[test]
fn a_walk_goes_on_by_token() {
    let world = World::small();
    let (mut path, mut entries) = ("/v1/conferences/changes?limit=7&updated_since=2000-01-01".to_owned(), Vec::new());
    loop {
        let page = world.get("onco", &path).expect(200);
        entries.extend(page.ids());
        path = format!("/v1/conferences/changes?limit=7&since={}", page.token());
        if !page.has_more() {
            break;
        }
    }
    assert_eq!(entries, world.get("onco", "/v1/conferences?limit=500").ids());
    world.conferences(&[removal(1), patch(4, json!({"venue": "V"}))]);
    assert_eq!(world.get("onco", &path).expect(200).entries(), "-1");
}
