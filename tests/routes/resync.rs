//! `resync=diff` on a feed: over a change of the license by what differs.

use serde_json::json;

use crate::harness::{Answer, World, conference, patch, removal};

const ONCO: &str = "conferences; areas: Oncology";

fn diff(world: &World, key: &str, token: &str, more: &str) -> Answer {
    world.get(key, &format!("/v1/conferences/changes?since={token}&resync=diff{more}"))
}

/// All entries since a token, by pages of a size; the last token, too.
fn walk(world: &World, key: &str, token: &str, limit: usize) -> (Vec<String>, String) {
    let (mut entries, mut token) = (Vec::new(), token.to_owned());
    loop {
        let page = diff(world, key, &token, &format!("&limit={limit}")).expect(200);
        entries.extend(page.entries().split(' ').filter(|entry| !entry.is_empty()).map(str::to_owned));
        token = page.token();
        if !page.has_more() {
            return (entries, token);
        }
    }
}

#[test]
fn a_resync_sends_only_the_difference() {
    type Change = fn(&World);
    let cases: &[(&str, Change, &str)] = &[
        ("nothing", |_| {}, ""),
        ("a scope that shows the same", |world| world.license("onco", "conferences; areas: Oncology, None"), ""),
        ("another dataset more", |world| world.license("onco", "conferences journals; areas: Oncology"), ""),
        ("narrower", |world| world.license("onco", "conferences; areas: Oncology; years: 2025 2026"), "-8 -11 -12 -17"),
        ("wider", |world| world.license("onco", "conferences; areas: Oncology, Cardiology"), "4 5 6 9 24"),
        (
            "there and back",
            |world| {
                world.license("onco", "conferences; areas: Oncology; years: 2025 2026");
                world.license("onco", ONCO);
            },
            "8 11 12 17",
        ),
        (
            "without the dataset for a while",
            |world| {
                world.license("onco", "journals");
                world.conferences(&[removal(1), patch(2, json!({"therapy_areas": ["Cardiology"]}))]);
                world.license("onco", "conferences; areas: Oncology; years: 2027");
            },
            "-1 -2 -3 -7 -10 -11 -12 -14 -17 -18 -19 -20 -23 -9007199254740991 8",
        ),
        (
            "changes before, between and after",
            |world| {
                world.conferences(&[patch(1, json!({"venue": "V"})), removal(2)]);
                world.license("onco", "conferences; areas: Oncology; years: 2026 2027");
                // Hidden by now: the first one's tombstone has been written, the second one was never seen.
                world.conferences(&[patch(3, json!({"venue": "V"})), removal(4), patch(7, json!({"venue": "V"}))]);
                world.license("onco", "conferences; areas: Cardiology; years: 2026 2027");
                world.conferences(&[patch(9, json!({"therapy_areas": ["Oncology"]})), patch(5, json!({"city": "C"}))]);
            },
            "-2 -3 -11 -12 -17 -23 24 -1 -7 -8 -10 -14 -18 -19 -20 -9007199254740991 5 -9",
        ),
    ];
    for (what, change, expected) in cases {
        let world = World::small();
        let before = world.get("onco", "/v1/conferences").expect(200).ids();
        let token = world.get("onco", "/v1/exports/conferences").token();
        change(&world);
        let (entries, last) = walk(&world, "onco", &token, 1000);
        assert_eq!(entries.join(" "), *expected, "{what}");
        for limit in [1, 2, 5] {
            assert_eq!(walk(&world, "onco", &token, limit), (entries.clone(), last.clone()), "{what}, by {limit}");
        }
        assert_eq!(world.get("onco", "/v1/conferences/changes").token(), last, "{what}: it ends at the present");
        let plain = world.get("onco", &format!("/v1/conferences/changes?since={last}")).expect(200);
        assert_eq!(plain.entries(), "", "{what}: and goes on without the parameter");
        let mut copy = before;
        for entry in entries {
            let id: i64 = entry.parse().unwrap();
            copy.retain(|held| *held != id.unsigned_abs());
            copy.extend((id > 0).then_some(id.unsigned_abs()));
        }
        copy.sort_unstable();
        assert_eq!(copy, world.get("onco", "/v1/conferences").ids(), "{what}");
    }
}

#[test]
fn a_token_in_the_middle_of_a_walk_goes_on_too() {
    let world = World::small();
    let start = world.get("onco", "/v1/conferences/changes?updated_since=2000-01-01&limit=4").expect(200);
    assert_eq!(start.entries(), "1 2 3 7");
    world.license("onco", "conferences; areas: Oncology; years: 2026");
    world
        .get("onco", &format!("/v1/conferences/changes?since={}", start.token()))
        .expect_problem("resync_required", "");
    let page = diff(&world, "onco", &start.token(), "&limit=3").expect(200);
    assert_eq!((page.entries().as_str(), page.has_more()), ("10 14 18", true));
    // Its token is of the present scope, and a former one's after the next change.
    let plain = |token: &str| world.get("onco", &format!("/v1/conferences/changes?since={token}&limit=2"));
    assert_eq!(plain(&page.token()).expect(200).entries(), "19 20");
    world.license("onco", "conferences; areas: Oncology; years: 2026 2027");
    plain(&page.token()).expect_problem("resync_required", "");
    let (rest, _) = walk(&world, "onco", &page.token(), 2);
    assert_eq!(rest.join(" "), "19 20 9007199254740991 -3 -11 -12 -17 -23 8");
}

#[test]
fn a_record_that_left_shows_its_id_alone() {
    let world = World::small();
    let token = world.get("onco", "/v1/conferences/changes").token();
    world.license("onco", "conferences; areas: Oncology; years: 2026");
    let tombstone = |world: &World| diff(world, "onco", &token, "").expect(200).text();
    let told = tombstone(&world);
    world.pass_s(100);
    // 3 left with the change; 900 was never seen. Neither leaves a trace.
    world.conferences(&[
        patch(3, json!({"name": "Secret", "venue": "Secret"})),
        conference(900, json!({"name": "Secret", "year": 2025, "therapy_areas": ["Oncology"]})),
    ]);
    world.conferences(&[removal(3), removal(900)]);
    assert_eq!(tombstone(&world), told);
    assert!(told.contains(r#"{"id":3,"deleted":true,"changed_at":"#) && !told.contains("900"), "{told}");
}

#[test]
fn a_resync_without_a_scope_change_stays_gone() {
    let world = World::small();
    let token = world.get("onco", "/v1/conferences/changes").token();
    diff(&world, "full", &token, "").expect_problem("resync_required", "/exports/conferences");
    diff(&world, "papers", &token, "").expect_problem("dataset_not_licensed", "conferences");
    world
        .get("full", &format!("/v1/journals/changes?since={token}&resync=diff"))
        .expect_problem("invalid_sync_token", "");
    world.license("onco", "journals");
    diff(&world, "onco", &token, "").expect_problem("dataset_not_licensed", "conferences");
    world.license("onco", ONCO);
    diff(&world, "onco", &token, "").expect(200);
    world.edit(|edit| edit.remove_license("onco").unwrap());
    world.license("onco", ONCO);
    world.new_key("onco-again", "onco", Default::default());
    diff(&world, "onco-again", &token, "").expect_problem("resync_required", "/exports/conferences");
}

#[test]
fn the_parameter_takes_one_word_and_changes_nothing_else() {
    let world = World::small();
    let token = world.get("onco", "/v1/conferences/changes?updated_since=2000-01-01&limit=2").token();
    for value in ["", "full", "Diff", "1"] {
        let path = format!("/v1/conferences/changes?since={token}&resync={value}");
        world.get("onco", &path).expect_problem("invalid_parameter", "`resync`");
    }
    let cases = ["limit=3".to_owned(), "updated_since=2000-01-01&limit=3".to_owned(), format!("since={token}&limit=3")];
    for query in cases {
        let path = format!("/v1/conferences/changes?{query}");
        let plain = world.get("onco", &path).expect(200);
        assert_eq!(world.get("onco", &format!("{path}&resync=diff")).expect(200).body, plain.body, "{query}");
    }
}
