//! `GET /v1/reference/therapy-areas`, `/tags` and `/organizations`.

use serde_json::{Value, json};

use crate::harness::{World, conference, patch, removal};

/// The items as `name count`.
fn counts(world: &World, key: &str, path: &str) -> Vec<String> {
    let count = |item: &Value| {
        item.get("records")
            .or(item.get("conferences"))
            .unwrap()
            .as_u64()
            .unwrap()
    };
    let name = |item: &Value| match item.get("category") {
        Some(_) => format!(
            "{}: {}",
            item["type"].as_str().unwrap(),
            item["name"].as_str().unwrap()
        ),
        None => item["name"].as_str().unwrap().to_owned(),
    };
    let items = world
        .get(key, &format!("/v1/reference/{path}"))
        .expect(200)
        .items();
    items
        .iter()
        .map(|item| format!("{} {}", name(item), count(item)))
        .collect()
}

#[test]
fn reference_lists_count_the_records_of_the_license() {
    let world = World::small();
    let cases: &[(&str, &str, &[&str])] = &cases![
        "full", "therapy-areas",
            &["Ärztekunde 1", "Cardiology 6", "Dermatology 1", "Hematology 1", "History of Medicine 1",
                "Neurology 2", "Oncology 15", "Ophthalmology 1"];
        "onco", "therapy-areas", &["Cardiology 1", "Dermatology 1", "Hematology 1", "Neurology 1", "Oncology 15"];
        "spain", "therapy-areas", &["Ärztekunde 1", "Cardiology 1", "Oncology 2"];
        "full", "tags?dataset=conferences",
            &["@home: Remote 1", "attendee-geography: Global 3", "audience: Ärzte 2", "audience: Cardiologists 3",
                "audience: Nurses 2", "topic-area: Breast 2", "topic-area: Lung: small cell 2"];
        "onco", "tags?dataset=conferences",
            &["@home: Remote 1", "attendee-geography: Global 2", "audience: Ärzte 2", "audience: Nurses 2",
                "topic-area: Breast 2", "topic-area: Lung: small cell 2"];
        "full", "tags?dataset=conferences&type=audience",
            &["audience: Ärzte 2", "audience: Cardiologists 3", "audience: Nurses 2"];
        "onco", "tags?type=audience&dataset=conferences", &["audience: Ärzte 2", "audience: Nurses 2"];
        "full", "tags?dataset=conferences&type=Audience", &[];
        "full", "tags?dataset=conferences&type=none", &[];
        "full", "tags?dataset=conferences&type=topic", &[];
        "full", "tags?dataset=conferences&type=%40home", &["@home: Remote 1"];
        "full", "tags?dataset=journals",
            &["attendee-geography: Global 1", "audience: Ärzte 1", "audience: Cardiologists 1",
                "audience: Nurses 1", "topic-area: Breast 1", "topic-area: Lung: small cell 1"];
        "full", "organizations?dataset=conferences",
            &["=SUM(A1:A9) Institute 1", "american heart association 2", "American Society of Clinical Oncology 3",
                "Dermatology Guild 1", "European Society for Medical Oncology 4", "Łódź Medical University 1",
                "Société Française de Cardiologie 3", "The \"Quoted\", Press 1", "日本癌学会 2"];
        "spain", "organizations?dataset=conferences",
            &["=SUM(A1:A9) Institute 1", "European Society for Medical Oncology 1"];
        "papers", "organizations?dataset=journals",
            &["american heart association 1", "American Society of Clinical Oncology 1",
                "Łódź Medical University 1", "Société Française de Cardiologie 1", "The \"Quoted\", Press 1"];
    ];
    for (key, path, expected) in cases {
        assert_eq!(counts(&world, key, path), *expected, "{key} {path}");
    }
}

#[test]
fn items_have_every_member_in_order() {
    let world = World::small();
    let cases = cases![
        "therapy-areas", r#"{"data":[{"name":"Ärztekunde","conferences":1},{"name":"Cardiology","conferences":6},"#;
        "tags?dataset=journals&type=topic-area",
            concat!(r#"{"data":[{"id":2,"type":"topic-area","name":"Breast","category":null,"records":1},"#,
                r#"{"id":1,"type":"topic-area","name":"Lung: small cell","category":"Thoracic","records":1}]}"#);
        "organizations?dataset=journals",
            concat!(r#"{"data":[{"id":10,"name":"american heart association","abbv":"AHA","type":"society","url":null,"records":1},"#,
                r#"{"id":1,"name":"American Society of Clinical Oncology","abbv":"ASCO","type":"society","#,
                r#""url":"https://asco.example","records":1},"#);
    ];
    for (path, expected) in cases {
        let text = world.get("full", &format!("/v1/reference/{path}")).text();
        assert!(text.starts_with(expected), "{path}: {text}");
    }
}

#[test]
fn reference_lists_change_with_the_data() {
    let world = World::small();
    world.conferences(&[
        removal(21),
        conference(
            60,
            json!({"therapy_areas": ["Åsa", "asa", "Asa", "zeta", "Zeta"]}),
        ),
    ]);
    world.import(&[("tags", &[patch(6, json!({"name": "used NOW"}))])]);
    world.conferences(&[
        patch(2, json!({"tags": [6], "organizations": [7]})),
        patch(3, json!({"organizations": []})),
    ]);
    let areas = counts(&world, "full", "therapy-areas").join(", ");
    assert!(!areas.contains("Ophthalmology"), "{areas}");
    assert!(
        areas.contains("Asa 1, asa 1, Åsa 1, Cardiology"),
        "folded first, then by code points: {areas}"
    );
    assert!(areas.ends_with("Zeta 1, zeta 1"), "{areas}");
    let tags = counts(&world, "full", "tags?dataset=conferences&type=topic-area");
    assert_eq!(
        tags,
        words!["topic-area: Breast 1" "topic-area: Lung: small cell 2" "topic-area: used NOW 1"]
    );
    let organizations = counts(&world, "spain", "organizations?dataset=conferences");
    let expected = ["=SUM(A1:A9) Institute 1", "Unlinked Society 1"];
    assert_eq!(organizations, expected);
}

#[test]
fn bad_requests_of_reference_lists_are_refused() {
    let world = World::small();
    let invalid = "invalid_parameter";
    let cases = cases![
        "full", "tags", invalid, "`dataset`: is required";
        "full", "tags?type=audience", invalid, "`dataset`: is required";
        "full", "tags?dataset=", invalid, "`dataset`: is empty";
        "full", "tags?dataset=tags", invalid, "`dataset`: must be `conferences` or `journals`";
        "full", "tags?dataset=Conferences", invalid, "`dataset`";
        "full", "tags?dataset=journals&dataset=journals", invalid, "more than once";
        "full", "tags?dataset=journals&type=", invalid, "`type`: is empty";
        "full", "tags?dataset=journals&type=%ff", invalid, "`type`";
        "full", "tags?dataset=journals&tpye=x", "unknown_parameter", "Did you mean `type`?";
        "full", "tags?dataset=journals&limit=5", "unknown_parameter", "Allowed are: `dataset`, `type`.";
        "full", "organizations", invalid, "`dataset`: is required";
        "full", "organizations?dataset=x", invalid, "`dataset`";
        "full", "organizations?dataset=journals&type=society", "unknown_parameter", "Allowed are: `dataset`.";
        "full", "therapy-areas?dataset=conferences", "unknown_parameter", "takes no parameters";
        "papers", "therapy-areas", "dataset_not_licensed", "`conferences`";
        "papers", "tags?dataset=conferences", "dataset_not_licensed", "`conferences`";
        "onco", "organizations?dataset=journals", "dataset_not_licensed", "`journals`";
        "onco", "organizations?dataset=x", invalid, "`dataset`";
        "full", "areas", "not_found", "";
        "full", "tags/1", "not_found", "";
    ];
    for (key, path, code, piece) in cases {
        world
            .get(key, &format!("/v1/reference/{path}"))
            .expect_problem(code, piece);
    }
}
