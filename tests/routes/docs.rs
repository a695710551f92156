//! The documentation that the server serves: `/docs`, `/docs/errors/<code>`, `/openapi.json`.

use jsonschema::Validator;
use medfeed::api::Code;
use serde_json::{Value, json};

use crate::harness::{PUBLIC_URL, World, patch, removal};

#[test]
fn every_code_has_its_page() {
    let world = World::small();
    for code in Code::ALL {
        let answer = world.get("", &format!("/docs/errors/{code}")).expect(200);
        assert_eq!(answer.header("content-type"), Some("text/html; charset=utf-8"), "{code}");
        let text = answer.text();
        assert!(text.contains(code.as_str()) && text.contains(code.info().status.as_str()), "{code}: {text}");
    }
    let index = world.get("", "/docs/errors").expect(200).text();
    let reference = world.get("", "/docs").expect(200).text();
    for code in Code::ALL {
        assert!(
            index.contains(&format!("/docs/errors/{code}")) || index.contains(&format!("errors/{code}\"")),
            "{code}"
        );
        assert!(reference.contains(code.as_str()), "{code} in the reference");
    }
}

#[test]
fn pages_load_nothing_from_elsewhere() {
    let world = World::small();
    for path in ["/docs", "/docs/errors", "/docs/errors/rate_limited"] {
        let answer = world.get("", path).expect(200);
        let text = answer.text();
        // The only script is this server's own. The pages are complete without it.
        let (before, after) = text.split_once("<script src=\"").expect("the script");
        let (script, after) = after.split_once("\" defer></script>").expect("its end");
        assert!(script.trim_start_matches("../").trim_start_matches("./") == "docs/page.js", "{path}: {script}");
        let text = format!("{before}{after}");
        for forbidden in ["<script", "<iframe", "<img src=\"http", "<link rel=\"stylesheet", "@import", "url(http"] {
            assert!(!text.contains(forbidden), "{path}: {forbidden}");
        }
        let policy = answer.header("content-security-policy").expect("a policy");
        assert!(policy.starts_with("default-src 'none'; script-src 'self'; "), "{policy}");
        assert!(!policy.contains("script-src 'self' '"), "{policy}");
        assert_eq!(answer.header("referrer-policy"), Some("no-referrer"), "{path}");
    }
}

#[test]
fn links_within_the_pages_resolve() {
    let world = World::small();
    for path in ["/docs", "/docs/errors", "/docs/errors/not_found"] {
        let text = world.get("", path).text();
        for link in text.split("href=\"").skip(1).map(|rest| rest.split('"').next().unwrap()) {
            let target = link.strip_prefix(PUBLIC_URL).unwrap_or(link);
            match target.split_once('#') {
                Some(("", anchor)) => assert!(text.contains(&format!("id=\"{anchor}\"")), "{path}: #{anchor}"),
                _ if target.starts_with('/') => {
                    let page = target.split('#').next().unwrap();
                    assert_eq!(world.get("", page).status, 200, "{path}: {link}");
                }
                _ => {}
            }
        }
    }
}

#[test]
fn browsers_get_pages_for_paths_that_lead_nowhere() {
    let world = World::small();
    const BROWSER: &str = "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8";
    let cases = [
        // path, Accept, content type
        ("/docs/", "*/*", "application/problem+json"),
        ("/docs/", BROWSER, "text/html; charset=utf-8"),
        ("/docs/errors/", BROWSER, "text/html; charset=utf-8"),
        ("/openapi.json/", BROWSER, "text/html; charset=utf-8"),
        ("/no/such", BROWSER, "text/html; charset=utf-8"),
        ("/docs/errors/no_such", BROWSER, "text/html; charset=utf-8"),
        ("/no/such", "*/*", "application/problem+json"),
        ("/no/such", "application/json", "application/problem+json"),
        ("/v1/no_such", BROWSER, "application/problem+json"),
        ("/v1/status/", BROWSER, "application/problem+json"),
        ("/v1/conferences/", BROWSER, "application/problem+json"),
    ];
    for (path, accept, kind) in cases {
        let answer = world.get_with("full", path, &[("accept", accept)]).expect(404);
        assert_eq!(answer.header("content-type"), Some(kind), "{path} {accept}");
    }
    let page = world.get_with("", "/no/such", &[("accept", BROWSER)]);
    assert!(page.text().contains("<a href=\"../\">start page</a>"), "{}", page.text());
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
    assert!(!schema.is_null(), "{pattern} {status} {kind} is not documented");
    let whole = json!({"components": document["components"], "allOf": [schema]});
    jsonschema::options().should_validate_formats(true).build(&whole).unwrap()
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
    let cases = [
        // key, pattern, target, status
        ("full", "/conferences", "/conferences?limit=500", 200),
        ("full", "/conferences", "/conferences?limit=2", 200),
        ("full", "/conferences", "/conferences?limit=0", 400),
        ("full", "/conferences", "/conferences?cursor=x", 400),
        ("", "/conferences", "/conferences", 401),
        ("papers", "/conferences", "/conferences", 403),
        ("full", "/conferences/{id}", "/conferences/1", 200),
        ("full", "/conferences/{id}", "/conferences/22", 200),
        ("full", "/conferences/{id}", "/conferences/999", 404),
        ("full", "/conferences/{id}", "/conferences/x", 404),
        ("full", "/conferences/changes", "/conferences/changes?updated_since=2000-01-01", 200),
        ("full", "/conferences/changes", "/conferences/changes", 200),
        ("full", "/conferences/changes", "/conferences/changes?since=x", 400),
        ("spain", "/conferences/changes", gone.as_str(), 410),
        ("full", "/journals", "/journals", 200),
        ("full", "/journals/{id}", "/journals/6", 200),
        ("full", "/journals/changes", "/journals/changes?updated_since=2000-01-01", 200),
        ("full", "/reference/therapy-areas", "/reference/therapy-areas", 200),
        ("full", "/reference/tags", "/reference/tags?dataset=conferences", 200),
        ("full", "/reference/tags", "/reference/tags", 400),
        ("full", "/reference/organizations", "/reference/organizations?dataset=journals", 200),
        ("full", "/exports/{dataset}", "/exports/x", 400),
        ("", "/status", "/status", 200),
    ];
    for (key, pattern, target, status) in cases {
        let answer = world.get(key, &format!("/v1{target}")).expect(status);
        let schema = schema_of(&document, pattern, status, answer.header("content-type").unwrap());
        let body = answer.json();
        if let Err(error) = schema.validate(&body) {
            panic!("{target}: {error} at {}", error.instance_path());
        }
        // The schema is not empty: it rejects an empty object.
        assert!(!schema.is_valid(&json!({})), "{pattern} {status} takes anything");
    }
    world.set_rate_limit("full", 1);
    let refused = world.get("full", "/v1/conferences").expect(429);
    assert!(schema_of(&document, "/conferences", 429, "application/problem+json").is_valid(&refused.json()));
}

#[test]
fn documented_parameters_are_accepted_and_no_others() {
    let world = World::small();
    let document = world.get("", "/openapi.json").json();
    for (pattern, item) in document["paths"].as_object().unwrap() {
        let named = |parameter: &Value| {
            let target = parameter["$ref"].as_str().map(|target| target.trim_start_matches('#').to_owned());
            let parameter = target.map_or(parameter.clone(), |target| document.pointer(&target).unwrap().clone());
            (parameter["in"] == "query").then(|| parameter["name"].as_str().unwrap().to_owned())
        };
        let own = item["get"]["parameters"].as_array().cloned().unwrap_or_default();
        let documented: Vec<String> = own.iter().filter_map(named).collect();
        let path = pattern.replace("{id}", "1").replace("{dataset}", "journals");
        let detail = world.get("full", &format!("/v1{path}?no_such=1")).expect(400).detail();
        let allowed: Vec<String> = match detail.split_once("Allowed are: ") {
            Some((_, list)) => list.split('`').skip(1).step_by(2).map(str::to_owned).collect(),
            None => Vec::new(),
        };
        assert_eq!(documented, allowed, "{pattern}");
    }
}
