//! `GET /v1/status`.

use serde_json::{Value, json};

use crate::harness::{World, patch, removal};

fn datasets(world: &World) -> Value {
    world.get("", "/v1/status").expect(200).json()["datasets"].clone()
}

#[test]
fn status_without_key_counts_all_records() {
    let world = World::small();
    let text = world.get("", "/v1/status").expect(200).text();
    assert!(
        text.starts_with(r#"{"status":"ok","api_version":"v1","time":""#),
        "{text}"
    );
    assert!(
        text.contains(r#""datasets":{"conferences":{"records":25,"last_change_at":"#),
        "{text}"
    );
    assert!(
        text.contains(r#""journals":{"records":12,"last_change_at":"#),
        "{text}"
    );
}

#[test]
fn an_empty_database_has_no_last_change() {
    let world = World::empty();
    let none = json!({"records": 0, "last_change_at": null});
    assert_eq!(
        datasets(&world),
        json!({"conferences": none, "journals": none})
    );
    world.license("full", "conferences journals");
    assert_eq!(
        datasets(&world),
        json!({"conferences": none, "journals": none}),
        "a license is no change of content"
    );
}

#[test]
fn only_content_moves_the_last_change() {
    let world = World::small();
    world.pass_s(5_000);
    let before = datasets(&world);
    let last = |dataset: &str| datasets(&world)[dataset]["last_change_at"].clone();
    world.license("onco", "conferences");
    world.set_rate_limit("onco", 7);
    world.new_key("other", "onco", Default::default());
    world.conferences(&[patch(1, json!({}))]);
    assert_eq!(
        datasets(&world),
        before,
        "licenses, keys, and an import of stored rows"
    );
    world.conferences(&[removal(1)]);
    assert_ne!(last("conferences"), before["conferences"]["last_change_at"]);
    assert_eq!(last("journals"), before["journals"]["last_change_at"]);
    assert_eq!(datasets(&world)["conferences"]["records"], 24);
    world.pass_s(5_000);
    let before = datasets(&world);
    world.import(&[("organizations", &[patch(9, json!({"abbv": null}))])]);
    assert_ne!(
        last("journals"),
        before["journals"]["last_change_at"],
        "a journal is linked to it"
    );
}

#[test]
fn status_ignores_the_key() {
    let world = World::small();
    let cases: [&[(&str, &str)]; 4] = [
        &[("x-api-key", "mfk_wrong")],
        &[("authorization", "Bearer mfk_wrong")],
        &[
            ("authorization", "Basic x"),
            ("x-api-key", "y"),
            ("x-api-key", "z"),
        ],
        &[("x-api-key", &world.key("full").text)],
    ];
    for headers in cases {
        let answer = world.request("GET", "/v1/status", headers).expect(200);
        assert_eq!(answer.number("ratelimit-limit"), 100, "{headers:?}");
        assert_eq!(answer.number("ratelimit-remaining"), 100, "{headers:?}");
    }
    world
        .get("", "/v1/status?verbose=1")
        .expect_problem("unknown_parameter", "takes no parameters");
    world.get("", "/v1/status/").expect_problem("not_found", "");
}
