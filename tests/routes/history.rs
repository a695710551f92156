//! Tokens and history: a database that goes back in time never leaves a silent gap.

use std::fs;

use serde_json::json;

use crate::harness::{World, conference, patch, removal};

/// Replaces the database by a copy of an earlier state, by rename as an operator should.
fn roll_back(world: &World, earlier: &[u8]) {
    let draft = world.database().with_extension("old");
    fs::write(&draft, earlier).unwrap();
    fs::rename(&draft, world.database()).unwrap();
    world.catch_up();
}

fn since(world: &World, key: &str, token: &str) -> u16 {
    world
        .get(key, &format!("/v1/conferences/changes?since={token}"))
        .status
}

#[test]
fn a_token_of_a_lost_history_gets_410() {
    let world = World::small();
    let kept = world.get("full", "/v1/conferences/changes").token();
    let earlier = fs::read(world.database()).unwrap();
    world.conferences(&[patch(1, json!({"venue": "lost"})), removal(2)]);
    let lost = [
        world.get("full", "/v1/conferences/changes").token(),
        world
            .get(
                "full",
                &format!("/v1/conferences/changes?since={kept}&limit=1"),
            )
            .token(),
        world
            .get(
                "full",
                "/v1/conferences/changes?updated_since=2000-01-01&limit=3",
            )
            .token(),
        world.get("full", "/v1/exports/conferences").token(),
    ];
    roll_back(&world, &earlier);
    for token in &lost {
        let found = since(&world, "full", token);
        assert_eq!(found, 410, "right after the rollback");
    }
    assert_eq!(since(&world, "full", &kept), 200);
    // Other imports use the same seqs again.
    for venue in ["one", "two", "three"] {
        world.conferences(&[
            patch(3, json!({"venue": venue})),
            patch(4, json!({"venue": venue})),
        ]);
        for token in &lost {
            world
                .get("full", &format!("/v1/conferences/changes?since={token}"))
                .expect_problem("resync_required", "");
        }
        let answer = world
            .get("full", &format!("/v1/conferences/changes?since={kept}"))
            .expect(200);
        assert_eq!(answer.entries(), "3 4");
    }
}

#[test]
fn a_token_in_the_middle_of_a_lost_walk_gets_410() {
    // A page in the middle leaves out later changes. A rollback would bring them back behind the caller's position.
    let world = World::small();
    let start = world.get("full", "/v1/conferences/changes").token();
    world.conferences(
        &(1..=4)
            .map(|id| patch(id, json!({"venue": "V"})))
            .collect::<Vec<_>>(),
    );
    let earlier = fs::read(world.database()).unwrap();
    world.conferences(&[patch(1, json!({"venue": "later"}))]);
    let page = world.get(
        "full",
        &format!("/v1/conferences/changes?since={start}&limit=1"),
    );
    assert_eq!(page.entries(), "2");
    roll_back(&world, &earlier);
    assert_eq!(since(&world, "full", &page.token()), 410);
}

#[test]
fn a_rollback_of_hidden_commits_ends_no_token() {
    // Tokens do not depend on commits that the license never showed.
    let world = World::small();
    let earlier = fs::read(world.database()).unwrap();
    world.conferences(&[
        patch(4, json!({"venue": "hidden"})),
        conference(900, json!({"therapy_areas": ["Cardiology"]})),
    ]);
    let onco = world.get("onco", "/v1/conferences/changes").token();
    let full = world.get("full", "/v1/conferences/changes").token();
    roll_back(&world, &earlier);
    assert_eq!(since(&world, "onco", &onco), 200);
    assert_eq!(since(&world, "full", &full), 410);
}

#[test]
fn resync_diff_with_a_lost_history_gets_410() {
    let world = World::small();
    let diff = |token: &str| {
        world.get(
            "onco",
            &format!("/v1/conferences/changes?since={token}&resync=diff&limit=1000"),
        )
    };
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
    // The same seqs are used again, with the same scopes.
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
fn a_copied_database_accepts_all_tokens() {
    let world = World::small();
    world.conferences(&[patch(1, json!({"venue": "V"}))]);
    let token = world.get("full", "/v1/conferences/changes").token();
    let cursor = world
        .get("full", "/v1/conferences?limit=3")
        .cursor()
        .unwrap();
    let copy = world.fork();
    copy.conferences(&[patch(2, json!({"venue": "V"}))]);
    let answer = copy
        .get("full", &format!("/v1/conferences/changes?since={token}"))
        .expect(200);
    assert_eq!(answer.entries(), "2");
    copy.get("full", &format!("/v1/conferences?cursor={cursor}"))
        .expect(200);
    // From here on the two have different histories.
    assert_eq!(since(&world, "full", &answer.token()), 410);
}

#[test]
fn another_database_rejects_every_token() {
    let world = World::small();
    let token = world.get("full", "/v1/conferences/changes").token();
    let cursor = world
        .get("full", "/v1/conferences?limit=3")
        .cursor()
        .unwrap();
    let other = World::empty();
    other.license("full", "conferences");
    assert_eq!(since(&other, "full", &token), 400);
    other
        .get("full", &format!("/v1/conferences?cursor={cursor}"))
        .expect_problem("invalid_cursor", "");
}
