//! What a token says about history: a database that went back in time never leaves a silent gap.

use std::fs;

use serde_json::json;

use crate::harness::{World, conference, patch, removal};

/// Puts a copy of an earlier state in the database's place, by rename as an operator should.
fn roll_back(world: &World, earlier: &[u8]) {
    let draft = world.database().with_extension("old");
    fs::write(&draft, earlier).unwrap();
    fs::rename(&draft, world.database()).unwrap();
    world.catch_up();
}

fn since(world: &World, key: &str, token: &str) -> u16 {
    world.get(key, &format!("/v1/conferences/changes?since={token}")).status
}

#[test]
fn a_token_of_a_lost_history_is_gone() {
    let world = World::small();
    let kept = world.get("full", "/v1/conferences/changes").token();
    let earlier = fs::read(world.database()).unwrap();
    world.conferences(&[patch(1, json!({"venue": "lost"})), removal(2)]);
    let lost = [
        world.get("full", "/v1/conferences/changes").token(),
        world.get("full", &format!("/v1/conferences/changes?since={kept}&limit=1")).token(),
        world.get("full", "/v1/conferences/changes?updated_since=2000-01-01&limit=3").token(),
        world.get("full", "/v1/exports/conferences").token(),
    ];
    roll_back(&world, &earlier);
    for token in &lost {
        assert_eq!(since(&world, "full", token), 410, "right after the rollback");
    }
    assert_eq!(since(&world, "full", &kept), 200);
    // Other imports follow and take the same seqs again.
    for venue in ["one", "two", "three"] {
        world.conferences(&[patch(3, json!({"venue": venue})), patch(4, json!({"venue": venue}))]);
        for token in &lost {
            world.get("full", &format!("/v1/conferences/changes?since={token}")).expect_problem("resync_required", "");
        }
        let answer = world.get("full", &format!("/v1/conferences/changes?since={kept}")).expect(200);
        assert_eq!(answer.entries(), "3 4");
    }
}

#[test]
fn a_walk_in_the_middle_of_a_lost_history_is_gone() {
    // A page in the middle leaves out what changed later; a rollback would bring that back behind the walker.
    let world = World::small();
    let start = world.get("full", "/v1/conferences/changes").token();
    world.conferences(&(1..=4).map(|id| patch(id, json!({"venue": "V"}))).collect::<Vec<_>>());
    let earlier = fs::read(world.database()).unwrap();
    world.conferences(&[patch(1, json!({"venue": "later"}))]);
    let page = world.get("full", &format!("/v1/conferences/changes?since={start}&limit=1"));
    assert_eq!(page.entries(), "2");
    roll_back(&world, &earlier);
    assert_eq!(since(&world, "full", &page.token()), 410);
}

#[test]
fn hidden_history_is_no_history() {
    // What the license never saw may be lost: its tokens rest on nothing of it.
    let world = World::small();
    let earlier = fs::read(world.database()).unwrap();
    world.conferences(&[
        patch(4, json!({"venue": "hidden"})),
        conference(900, json!({"therapy_areas": ["Cardiology"]})),
    ]);
    let onco = world.get("onco", "/v1/conferences/changes").token();
    let full = world.get("full", "/v1/conferences/changes").token();
    roll_back(&world, &earlier);
    assert_eq!((since(&world, "onco", &onco), since(&world, "full", &full)), (200, 410));
}

#[test]
fn a_lost_license_change_is_gone() {
    let world = World::small();
    let earlier = fs::read(world.database()).unwrap();
    let before = world.get("onco", "/v1/conferences/changes").token();
    world.license("onco", "conferences; areas: Oncology, None");
    let lost = world.get("onco", "/v1/conferences/changes").token();
    roll_back(&world, &earlier);
    assert_eq!((since(&world, "onco", &before), since(&world, "onco", &lost)), (200, 410));
    world.license("onco", "conferences; areas: Oncology, Other");
    assert_eq!((since(&world, "onco", &before), since(&world, "onco", &lost)), (410, 410));
}

#[test]
fn a_difference_is_of_one_history() {
    let world = World::small();
    let diff =
        |token: &str| world.get("onco", &format!("/v1/conferences/changes?since={token}&resync=diff&limit=1000"));
    let kept = world.get("onco", "/v1/conferences/changes").token();
    let earlier = fs::read(world.database()).unwrap();
    world.conferences(&[patch(1, json!({"venue": "lost"}))]);
    let of_lost_row = world.get("onco", "/v1/conferences/changes").token();
    world.license("onco", "conferences; areas: Cardiology");
    let of_lost_scope = world.get("onco", "/v1/conferences/changes").token();
    let of_lost_walk = diff(&kept).expect(200).token();
    diff(&of_lost_row).expect(200);
    roll_back(&world, &earlier);
    let lost = [of_lost_row, of_lost_scope, of_lost_walk];
    assert_eq!(diff(&kept).expect(200).entries(), "");
    // The same seqs come again, and the same scopes.
    for scope in ["Cardiology", "Oncology, Cardiology", "Oncology"] {
        for token in &lost {
            diff(token).expect_problem("resync_required", "/exports/conferences");
        }
        world.conferences(&[patch(4, json!({"venue": scope}))]);
        world.license("onco", &format!("conferences; areas: {scope}"));
        diff(&kept).expect(200);
    }
    for token in &lost {
        diff(token).expect_problem("resync_required", "/exports/conferences");
    }
}

#[test]
fn nothing_of_a_lost_history_is_remembered() {
    let world = World::small();
    let earlier = fs::read(world.database()).unwrap();
    let find = |query: &str| world.get("full", &format!("/v1/conferences?{query}")).expect(200).ids();
    let row = |id: u64, name: &str, area: &str| {
        let given = json!({"name": name, "country": name, "year": 2050, "therapy_areas": [area]});
        if id > 25 { conference(id, given) } else { patch(id, given) }
    };
    world.conferences(&[row(1, "Lost", "Lost area"), row(70, "Lost", "Lost area"), removal(2)]);
    assert_eq!((find("q=lost"), find("year=2050")), (vec![1, 70], vec![1, 70]), "what filters run over is built");
    roll_back(&world, &earlier);
    // The same numbers again, for other records.
    world.conferences(&[row(3, "Found", "Found area"), row(71, "Found", "Found area"), removal(4)]);
    world.import(&[("organizations", &[json!({"id": 9, "name": "Found organization"}).to_string()])]);
    let none: Vec<u64> = Vec::new();
    let cases = [
        ("q=lost", none.clone()),
        ("country=Lost", none.clone()),
        ("therapy_area=Lost+area", none),
        ("q=found", vec![3, 71]),
        ("year=2050", vec![3, 71]),
        ("therapy_area=Found+area", vec![3, 71]),
        ("q=esmo+congress+2026", vec![2]),
        ("q=asco", vec![1]),
        ("q=esc", vec![]),
    ];
    for (query, expected) in cases {
        assert_eq!(find(query), expected, "{query}");
    }
    let references = world.get("full", "/v1/reference/organizations?dataset=conferences").text();
    assert!(references.contains("Found organization") && !references.contains("Łódź"), "{references}");
    let areas = world.get("full", "/v1/reference/therapy-areas").text();
    assert!(areas.contains("Found area") && !areas.contains("Lost area"), "{areas}");
}

#[test]
fn a_copy_keeps_all_tokens_alive() {
    let world = World::small();
    world.conferences(&[patch(1, json!({"venue": "V"}))]);
    let token = world.get("full", "/v1/conferences/changes").token();
    let cursor = world.get("full", "/v1/conferences?limit=3").cursor().unwrap();
    let copy = world.fork();
    copy.conferences(&[patch(2, json!({"venue": "V"}))]);
    let answer = copy.get("full", &format!("/v1/conferences/changes?since={token}")).expect(200);
    assert_eq!(answer.entries(), "2");
    copy.get("full", &format!("/v1/conferences?cursor={cursor}")).expect(200);
    // The two go different ways from here.
    assert_eq!(since(&world, "full", &answer.token()), 410);
}

#[test]
fn another_database_knows_no_token() {
    let world = World::small();
    let token = world.get("full", "/v1/conferences/changes").token();
    let cursor = world.get("full", "/v1/conferences?limit=3").cursor().unwrap();
    let other = World::empty();
    other.license("full", "conferences");
    assert_eq!(since(&other, "full", &token), 400);
    other.get("full", &format!("/v1/conferences?cursor={cursor}")).expect_problem("invalid_cursor", "");
}
