//! `resync=diff` on a feed: after a change of the license, the caller loads only the difference.

use serde_json::json;

use crate::harness::{Answer, World, conference, patch, removal};

const ONCO: &str = "conferences; areas: Oncology";

fn diff(world: &World, key: &str, token: &str, more: &str) -> Answer {
    world.get(
        key,
        &format!("/v1/conferences/changes?since={token}&resync=diff{more}"),
    )
}

#[test]
fn a_record_that_left_shows_its_id_alone() {
    let world = World::small();
    let token = world.get("onco", "/v1/conferences/changes").token();
    world.license("onco", "conferences; areas: Oncology; years: 2026");
    let tombstone = |world: &World| diff(world, "onco", &token, "").expect(200).text();
    let told = tombstone(&world);
    world.pass_s(100);
    // Record 3 left with the change, and 900 was never shown. Neither leaves a trace.
    world.conferences(&[
        patch(3, json!({"name": "Secret", "venue": "Secret"})),
        conference(
            900,
            json!({"name": "Secret", "year": 2025, "therapy_areas": ["Oncology"]}),
        ),
    ]);
    world.conferences(&[removal(3), removal(900)]);
    assert_eq!(tombstone(&world), told);
    assert!(
        told.contains(r#"{"id":3,"deleted":true,"changed_at":"#) && !told.contains("900"),
        "{told}"
    );
}

#[test]
fn resync_diff_bridges_only_a_scope_change_of_the_same_license() {
    let world = World::small();
    let token = world.get("onco", "/v1/conferences/changes").token();
    diff(&world, "full", &token, "").expect_problem("resync_required", "/exports/conferences");
    diff(&world, "papers", &token, "").expect_problem("dataset_not_licensed", "conferences");
    world
        .get(
            "full",
            &format!("/v1/journals/changes?since={token}&resync=diff"),
        )
        .expect_problem("invalid_sync_token", "");
    world.license("onco", "journals");
    diff(&world, "onco", &token, "").expect_problem("dataset_not_licensed", "conferences");
    world.license("onco", ONCO);
    diff(&world, "onco", &token, "").expect(200);
    world.edit(|edit| edit.remove_license("onco").unwrap());
    world.license("onco", ONCO);
    world.new_key("onco-again", "onco", Default::default());
    diff(&world, "onco-again", &token, "")
        .expect_problem("resync_required", "/exports/conferences");
}

#[test]
fn resync_accepts_only_diff_and_changes_no_other_answer() {
    let world = World::small();
    let token = world
        .get(
            "onco",
            "/v1/conferences/changes?updated_since=2000-01-01&limit=2",
        )
        .token();
    for value in ["", "full", "Diff", "1"] {
        let path = format!("/v1/conferences/changes?since={token}&resync={value}");
        world
            .get("onco", &path)
            .expect_problem("invalid_parameter", "`resync`");
    }
    let cases = [
        "limit=3".to_owned(),
        "updated_since=2000-01-01&limit=3".to_owned(),
        format!("since={token}&limit=3"),
    ];
    for query in cases {
        let path = format!("/v1/conferences/changes?{query}");
        let plain = world.get("onco", &path).expect(200);
        let body = world
            .get("onco", &format!("{path}&resync=diff"))
            .expect(200)
            .body;
        assert_eq!(body, plain.body, "{query}");
    }
}
