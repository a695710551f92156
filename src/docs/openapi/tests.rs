//! Tests of the document against the contract, and against rendered rows.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::*;
use crate::contract::CONTRACT;
use crate::docs::fields::TIME_PATTERN;
use crate::model::reference::References;
use crate::model::time::parse_time;
use crate::model::{
    ConferenceFields, Curated, DateStatus, Fields, Id, JournalFields, Timestamp, json as render,
};

fn sample() -> Value {
    document(&CONTRACT, "https://feed.example.org")
}

/// The statuses in the contract's table for an endpoint.
const STATUSES: [(&str, &[&str]); 11] = cases![
    "/conferences", &["200", "304", "400", "401", "403", "429"];
    "/conferences/{id}", &["200", "304", "401", "403", "404", "429"];
    "/conferences/changes", &["200", "400", "401", "403", "410", "429"];
    "/journals", &["200", "304", "400", "401", "403", "429"];
    "/journals/{id}", &["200", "304", "401", "403", "404", "429"];
    "/journals/changes", &["200", "400", "401", "403", "410", "429"];
    "/exports/{dataset}", &["200", "206", "304", "400", "401", "403", "416", "429"];
    "/reference/therapy-areas", &["200", "401", "403"];
    "/reference/tags", &["200", "400", "401", "403"];
    "/reference/organizations", &["200", "400", "401", "403"];
    "/status", &["200", "503"];
];

#[test]
fn paths_and_statuses_are_those_of_the_contract() {
    // The statuses of every endpoint: parameters that are unknown, methods, sizes, failures.
    const EVERY: [&str; 7] = ["200", "400", "405", "414", "431", "500", "503"];
    let document = sample();
    let paths = document["paths"].as_object().unwrap();
    assert_eq!(paths.len(), STATUSES.len());
    for (path, named) in STATUSES {
        let item = paths[path].as_object().unwrap();
        assert_eq!(item.keys().collect::<Vec<_>>(), ["get"], "{path}");
        let mut expected: BTreeSet<&str> = EVERY.into_iter().chain(named.iter().copied()).collect();
        if path != "/status" {
            expected.insert("429");
        }
        if path.starts_with("/reference/") {
            expected.insert("304");
        }
        let responses = item["get"]["responses"].as_object().unwrap();
        let found = responses
            .keys()
            .map(String::as_str)
            .collect::<BTreeSet<_>>();
        assert_eq!(found, expected, "{path}");
    }
}

#[test]
fn responses_have_the_headers_of_their_status() {
    let every = words!["X-Request-Id" "RateLimit-Limit" "RateLimit-Remaining" "RateLimit-Reset"];
    let file = words![
        "ETag" "Accept-Ranges" "X-Sync-Token" "X-Record-Count" "Repr-Digest" "X-Records-Digest"
        "Content-Disposition"
    ];
    let document = sample();
    for (path, item) in document["paths"].as_object().unwrap() {
        for (status, response) in item["get"]["responses"].as_object().unwrap() {
            let response = match response.get("$ref").and_then(Value::as_str) {
                Some(reference) => resolve(&document, reference),
                None => response,
            };
            let is_file = path == "/exports/{dataset}";
            let more: Vec<&str> = match status.as_str() {
                "200" if is_file => file.to_vec(),
                "206" => [&file[..], &["Content-Range"]].concat(),
                "304" if is_file => FILE_HEADERS.to_vec(),
                "200" if path.ends_with("/changes") || path == "/status" => Vec::new(),
                "200" | "304" => vec!["ETag"],
                "401" => vec!["WWW-Authenticate"],
                "405" => vec!["Allow"],
                "416" => [&FILE_HEADERS[..], &["Content-Range"]].concat(),
                "429" | "503" => vec!["Retry-After"],
                _ => Vec::new(),
            };
            let named = response["headers"].as_object().unwrap().keys();
            let named: BTreeSet<&str> = named.map(String::as_str).collect();
            // Before the path is known, no rate applies.
            let common = match status.as_str() {
                "414" | "431" => &every[..1],
                _ => &every,
            };
            let expected = common.iter().copied().chain(more).collect();
            assert_eq!(named, expected, "{path} {status}");
        }
    }
}

#[test]
fn parameters_are_documented_as_required_or_with_a_default() {
    let document = sample();
    let expected = [
        ("Limit", false, json!(100)),
        ("ChangesLimit", false, json!(500)),
        ("WaitSeconds", false, json!(0)),
        ("Format", false, json!("jsonl")),
        ("QueryDataset", true, Value::Null),
        ("Dataset", true, Value::Null),
        ("Id", true, Value::Null),
    ];
    for (name, parameter) in document["components"]["parameters"].as_object().unwrap() {
        let listed = expected.iter().find(|(listed, ..)| listed == name);
        let (required, default) = listed.map_or((false, &Value::Null), |(_, required, default)| {
            (*required, default)
        });
        assert_eq!(parameter["required"] == json!(true), required, "{name}");
        assert_eq!(parameter["schema"]["default"], *default, "{name}");
    }
    assert!(
        expected
            .iter()
            .all(|(name, ..)| document["components"]["parameters"].get(name).is_some())
    );
}

#[test]
fn parameters_are_those_of_the_contract() {
    let expected = cases![
        "/conferences",
            "limit cursor updated_since q year start_date_from start_date_to country therapy_area If-None-Match";
        "/conferences/{id}", "id If-None-Match";
        "/conferences/changes", "since updated_since limit wait resync";
        "/journals", "limit cursor updated_since q If-None-Match";
        "/journals/{id}", "id If-None-Match";
        "/journals/changes", "since updated_since limit wait resync";
        "/exports/{dataset}", "dataset format If-None-Match Range If-Range";
        "/reference/therapy-areas", "If-None-Match";
        "/reference/tags", "dataset type If-None-Match";
        "/reference/organizations", "dataset If-None-Match";
        "/status", "";
    ];
    let document = sample();
    for (path, names) in expected {
        let parameters = document["paths"][path]["get"]["parameters"]
            .as_array()
            .unwrap();
        let named: Vec<&str> = parameters
            .iter()
            .map(|parameter| {
                resolve(&document, parameter["$ref"].as_str().unwrap())["name"]
                    .as_str()
                    .unwrap()
            })
            .collect();
        assert_eq!(named.join(" "), names, "{path}");
    }
}

#[test]
fn only_status_works_without_a_key() {
    for (path, item) in sample()["paths"].as_object().unwrap() {
        let is_open = item["get"].get("security") == Some(&json!([]));
        assert_eq!(is_open, path == "/status", "{path}");
    }
}

#[test]
fn every_reference_resolves_and_every_component_is_used() {
    let document = sample();
    let mut references = BTreeSet::new();
    collect_references(&document, &mut references);
    for reference in &references {
        assert!(!resolve(&document, reference).is_null(), "{reference}");
    }
    for (section, components) in document["components"].as_object().unwrap() {
        for name in components
            .as_object()
            .unwrap()
            .keys()
            .filter(|_| section != "securitySchemes")
        {
            let reference = format!("#/components/{section}/{name}");
            assert!(references.contains(&reference), "{reference} is not used");
        }
    }
}

#[test]
fn examples_of_problems_are_problems() {
    let document = sample();
    for info in CONTRACT.codes {
        let example = &document["components"]["examples"][info.name]["value"];
        assert_valid(&document, "Problem", example);
    }
}

#[test]
fn examples_of_answers_fit_their_schemas() {
    let document = sample();
    for (path, item) in document["paths"].as_object().unwrap() {
        let content = item["get"]["responses"]["200"]["content"]
            .as_object()
            .unwrap();
        if path == "/exports/{dataset}" {
            for dataset in ["conferences", "journals"] {
                let csv = content["text/csv"]["examples"][dataset]["value"]
                    .as_str()
                    .unwrap();
                assert!(csv.starts_with("\u{feff}id,name,abbv,"), "{csv}");
                assert!(csv.lines().count() == 2, "{csv}");
            }
            continue;
        }
        let schema = content["application/json"]["schema"]["$ref"]
            .as_str()
            .unwrap();
        let example = &content["application/json"]["example"];
        assert!(!example.is_null(), "{path}");
        assert_valid(&document, schema.rsplit('/').next().unwrap(), example);
    }
}

#[test]
fn patterns_accept_tokens_and_cursors_of_any_length_without_escapes() {
    use crate::model::Dataset::Journals;
    let document = sample();
    let (token, cursor) = (SAMPLES.sync_token(Journals), SAMPLES.cursor(Journals));
    assert_valid(&document, "SyncToken", &json!(token));
    assert_valid(&document, "Cursor", &json!(cursor));
    for schema in ["SyncToken", "Cursor"] {
        for wrong in [
            token.replace(&token[5..6], "+"),
            format!("{token}="),
            format!("{cursor}&"),
            String::new(),
        ] {
            assert!(
                !validator(&document, schema).is_valid(&json!(wrong)),
                "{schema} {wrong}"
            );
        }
        // The length is not promised.
        for other in ["A".to_owned(), token[1..].to_owned(), token.repeat(9)] {
            assert_valid(&document, schema, &json!(other));
        }
    }
}

#[test]
fn the_time_pattern_accepts_the_times_that_the_service_accepts() {
    let pattern = jsonschema::validator_for(&json!({"pattern": TIME_PATTERN})).unwrap();
    for text in words![
        "2026-03-15" "2026-03-15T09:30" "2026-03-15T09:30:00" "2026-03-15t09:30:00z"
        "2026-03-15T09:30:00.999Z" "2026-03-15T09:30:00,5+02:00" "2026-03-15T09:30:00-0130"
        "2026-03-15T09:30:00+02" "2026-03-15 09:30:00" "2026-03-15T09:30:00 02:00" "2026-03-15T09"
        "2026-03-15T0930" "2026-03-15T09:30:00.123456789Z" "2026-03-15T09:30:00.1234567891Z"
        "2026-03-15T" "20260315" "2026-3-5" ""
    ] {
        let is_valid = pattern.is_valid(&json!(text));
        assert_eq!(is_valid, parse_time(text).is_ok(), "{text:?}");
    }
}

/// Examples have most values; these rows have as few as the rules allow.
#[test]
fn rows_without_values_fit_their_schemas() {
    let document = sample();
    let status = Some(DateStatus::NotFound);
    let conference = ConferenceFields {
        name: Some("Bare".to_owned()),
        start_date_status: status,
        abstract_due_date_status: status,
        late_breaking_due_date_status: status,
        ..Default::default()
    };
    let journal = JournalFields {
        name: Some("Bare".to_owned()),
        ..Default::default()
    };
    assert_valid(&document, "Conference", &rendered(conference));
    assert_valid(&document, "Journal", &rendered(journal));
}

#[test]
fn invalid_records_do_not_fit_the_schema() {
    let document = sample();
    let record: Value =
        serde_json::from_slice(&SAMPLES.record(crate::model::Dataset::Conferences)).unwrap();
    assert_valid(&document, "Conference", &record);
    let changes: [fn(&mut Value); 7] = [
        |record| record["name"] = Value::Null,
        |record| record["start_date_status"] = json!("maybe"),
        |record| record["start_date"] = json!("15 March 2026"),
        |record| record["tags"] = json!([{"id": 4}]),
        |record| record["formats"] = Value::Null,
        |record| record["updated_at"] = json!("2026-03-15T09:30:00+02:00"),
        |record| drop(record.as_object_mut().unwrap().remove("city")),
    ];
    for change in changes {
        let mut broken = record.clone();
        change(&mut broken);
        assert!(
            !validator(&document, "Conference").is_valid(&broken),
            "{broken}"
        );
    }
    let mut widened = record;
    widened["a_field_of_tomorrow"] = json!(1);
    assert_valid(&document, "Conference", &widened);
}

#[test]
fn ids_have_the_bounds_of_the_model() {
    let document = sample();
    let (min, max) = (Id::MIN.get(), Id::MAX.get());
    assert_eq!((min, max), (1, (1 << 53) - 1));
    let schema = validator(&document, "Id");
    for (id, expected) in [
        (json!(min), true),
        (json!(max), true),
        (json!(min - 1), false),
        (json!(max + 1), false),
        (json!(-1), false),
        (json!(1.5), false),
        (json!("1"), false),
        (json!(null), false),
    ] {
        assert_eq!(schema.is_valid(&id), expected, "{id}");
    }
}

fn validator(document: &Value, schema: &str) -> jsonschema::Validator {
    let root = json!({"$ref": format!("#/components/schemas/{schema}"), "components": document["components"]});
    jsonschema::options()
        .should_validate_formats(true)
        .build(&root)
        .unwrap()
}

fn assert_valid(document: &Value, schema: &str, value: &Value) {
    let errors: Vec<String> = validator(document, schema)
        .iter_errors(value)
        .map(|error| format!("{}: {error}", error.instance_path()))
        .collect();
    assert!(errors.is_empty(), "{schema}: {errors:#?}\n{value:#}");
}

fn resolve<'a>(document: &'a Value, reference: &str) -> &'a Value {
    document
        .pointer(reference.strip_prefix('#').unwrap())
        .unwrap_or(&Value::Null)
}

fn collect_references(value: &Value, found: &mut BTreeSet<String>) {
    match value {
        Value::Object(members) => {
            for (key, member) in members {
                match member.as_str() {
                    Some(reference) if key == "$ref" => drop(found.insert(reference.to_owned())),
                    _ => collect_references(member, found),
                }
            }
        }
        Value::Array(items) => items
            .iter()
            .for_each(|item| collect_references(item, found)),
        _ => {}
    }
}

fn rendered<F: Fields>(fields: F) -> Value {
    let row = Curated::new(Id::MIN, fields).unwrap();
    let updated_at = Timestamp::from_unix_s(1_773_567_000);
    let json = render::render_record(&row, updated_at, &References::default());
    serde_json::from_slice(&json).unwrap()
}
