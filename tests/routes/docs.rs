//! The documentation that the server serves: `/docs`, `/docs/errors/<code>`, `/openapi.json`.

use jsonschema::Validator;
use medfeed::api::Code;
use serde_json::{Value, json};

use crate::harness::{PUBLIC_URL, World, patch, removal};

#[test]
fn pages_have_headers_that_forbid_other_sources() {
    let world = World::small();
    let errors = Code::ALL.iter().map(|code| format!("/docs/errors/{code}"));
    for path in ["/docs", "/docs/errors"]
        .map(str::to_owned)
        .into_iter()
        .chain(errors)
    {
        let answer = world.get("", &path).expect(200);
        let header = answer.header("content-type");
        assert_eq!(header, Some("text/html; charset=utf-8"), "{path}");
        let policy = answer.header("content-security-policy").expect("a policy");
        assert!(
            policy.starts_with("default-src 'none'; script-src 'self'; "),
            "{policy}"
        );
        assert!(!policy.contains("script-src 'self' '"), "{policy}");
        let header = answer.header("referrer-policy");
        assert_eq!(header, Some("no-referrer"), "{path}");
    }
}

#[test]
fn browsers_get_pages_for_paths_that_lead_nowhere() {
    let world = World::small();
    const BROWSER: &str = "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8";
    let cases = outcomes![
        // path, Accept, content type
        "/docs/" "/no/such" => ("*/*", "application/problem+json");
        "/docs/" "/docs/errors/" "/openapi.json/" "/no/such" "/docs/errors/no_such"
            => (BROWSER, "text/html; charset=utf-8");
        "/no/such" => ("application/json", "application/problem+json");
        "/v1/no_such" "/v1/status/" "/v1/conferences/" => (BROWSER, "application/problem+json");
    ];
    for (path, (accept, kind)) in cases {
        let answer = world
            .get_with("full", path, &[("accept", accept)])
            .expect(404);
        assert_eq!(answer.header("content-type"), Some(kind), "{path} {accept}");
    }
    let page = world.get_with("", "/no/such", &[("accept", BROWSER)]);
    let text = page.text();
    assert!(text.contains("<a href=\"../\">start page</a>"), "{text}");
    assert!(page.header("content-security-policy").is_some());
}

/// The schema of an answer, by its path's pattern, status and media type.
fn schema_of(document: &Value, pattern: &str, status: u16, kind: &str) -> Validator {
    let mut response = &document["paths"][pattern]["get"]["responses"][status.to_string()];
    assert!(!response.is_null(), "{pattern} {status} is not documented");
    if let Some(target) = response["$ref"].as_str() {
        response = document.pointer(target.trim_start_matches('#')).unwrap();
    }
    let schema = &response["content"][kind]["schema"];
    assert!(
        !schema.is_null(),
        "{pattern} {status} {kind} is not documented"
    );
    let whole = json!({"components": document["components"], "allOf": [schema]});
    jsonschema::options()
        .should_validate_formats(true)
        .build(&whole)
        .unwrap()
}

#[test]
fn the_openapi_document_describes_the_answers() {
    let world = World::small();
    let document = world.get("", "/openapi.json").expect(200).json();
    assert!(document["openapi"].as_str().unwrap().starts_with("3.1"));
    assert_eq!(document["servers"][0]["url"], format!("{PUBLIC_URL}/v1"));
    world.conferences(&[removal(3), patch(1, json!({"venue": "V"}))]);
    world.import(&[("journals", &[removal(3)])]);
    let old = world.get("spain", "/v1/conferences/changes").token();
    world.license("spain", "conferences; countries: Spain");
    let gone = format!("/conferences/changes?since={old}");
    let cases = cases![
        // key, pattern, target, status
        "full", "/conferences", "/conferences?limit=500", 200;
        "full", "/conferences", "/conferences?limit=2", 200;
        "full", "/conferences", "/conferences?limit=0", 400;
        "full", "/conferences", "/conferences?cursor=x", 400;
        "", "/conferences", "/conferences", 401;
        "papers", "/conferences", "/conferences", 403;
        "full", "/conferences/{id}", "/conferences/1", 200;
        "full", "/conferences/{id}", "/conferences/22", 200;
        "full", "/conferences/{id}", "/conferences/999", 404;
        "full", "/conferences/{id}", "/conferences/x", 404;
        "full", "/conferences/changes", "/conferences/changes?updated_since=2000-01-01", 200;
        "full", "/conferences/changes", "/conferences/changes", 200;
        "full", "/conferences/changes", "/conferences/changes?since=x", 400;
        "spain", "/conferences/changes", gone.as_str(), 410;
        "full", "/journals", "/journals", 200;
        "full", "/journals/{id}", "/journals/6", 200;
        "full", "/journals/changes", "/journals/changes?updated_since=2000-01-01", 200;
        "full", "/reference/therapy-areas", "/reference/therapy-areas", 200;
        "full", "/reference/tags", "/reference/tags?dataset=conferences", 200;
        "full", "/reference/tags", "/reference/tags", 400;
        "full", "/reference/organizations", "/reference/organizations?dataset=journals", 200;
        "full", "/exports/{dataset}", "/exports/x", 400;
        "", "/status", "/status", 200;
    ];
    for (key, pattern, target, status) in cases {
        let answer = world.get(key, &format!("/v1{target}")).expect(status);
        let kind = answer.header("content-type").unwrap();
        let schema = schema_of(&document, pattern, status, kind);
        let body = answer.json();
        if let Err(error) = schema.validate(&body) {
            panic!("{target}: {error} at {}", error.instance_path());
        }
        // The schema is not empty: it rejects an empty object.
        assert!(
            !schema.is_valid(&json!({})),
            "{pattern} {status} takes anything"
        );
    }
    world.set_rate_limit("full", 1);
    let refused = world.get("full", "/v1/conferences").expect(429);
    assert!(
        schema_of(&document, "/conferences", 429, "application/problem+json")
            .is_valid(&refused.json())
    );
}
