//! The order of checks: a request with two faults gets the error of the first check.

use medfeed::store::write::licensing::KeySettings;

use crate::harness::World;

/// A request with the faults of its parts.
struct Faulty<'a> {
    method: &'a str,
    path: &'a str,
    key: &'a str,
    body: bool,
}

#[test]
fn a_request_with_two_faults_gets_the_error_of_the_first_check() {
    let world = World::small();
    world.set_rate_limit("papers", 1);
    world.get("papers", "/v1/journals").expect(200);
    let elsewhere = || KeySettings {
        allowed_ips: vec!["10.0.0.1/32".parse().unwrap()],
        ..KeySettings::default()
    };
    world.new_key("elsewhere", "papers", elsewhere());
    let gone = world.new_key("gone", "papers", elsewhere());
    world.edit(|edit| edit.revoke_key(&gone.id).unwrap());
    let old = world.get("onco", "/v1/conferences/changes").token();
    world.license("onco", "conferences; areas: Oncology, None");
    let resync = format!("/v1/conferences/changes?since={old}");
    let resync_limit = format!("/v1/conferences/changes?since={old}&limit=0");
    let resync_unknown = format!("/v1/conferences/changes?since={old}&x=1");
    let resync_journals = format!("/v1/journals/changes?since={old}");

    let get = |path, key| Faulty {
        method: "GET",
        path,
        key,
        body: false,
    };
    let with = |method, path, key, body| Faulty {
        method,
        path,
        key,
        body,
    };
    // `papers` has used up its window and its license has only journals. That of `onco` has only conferences.
    let cases = cases![
        "body before route", with("GET", "/v1/nowhere", "", true), "invalid_request";
        "body before key", with("GET", "/v1/conferences", "", true), "invalid_request";
        "body before parameters", with("HEAD", "/v1/conferences?x=1", "full", true), "invalid_request";
        "route before method", with("POST", "/v1/nowhere", "full", false), "not_found";
        "route before method, with a body", with("POST", "/v1/nowhere", "full", true), "not_found";
        "route before key", get("/v1/nowhere", ""), "not_found";
        "route before key", get("/v1/conferences/x", ""), "not_found";
        "method before key", with("DELETE", "/v1/conferences/1", "", false), "method_not_allowed";
        "method before key, with a body", with("POST", "/v1/conferences", "", true), "method_not_allowed";
        "method before parameters", with("PUT", "/v1/status?x=1", "", false), "method_not_allowed";
        "key before address", get("/v1/journals", "gone"), "revoked_api_key";
        "key before parameters", get("/v1/journals?limit=0", ""), "missing_api_key";
        "key before dataset", get("/v1/exports/foo", ""), "missing_api_key";
        "key before record", get("/v1/conferences/999", "gone"), "revoked_api_key";
        "address before dataset", get("/v1/conferences", "elsewhere"), "ip_not_allowed";
        "address before parameters", get("/v1/journals?limit=0", "elsewhere"), "ip_not_allowed";
        "rate before dataset", get("/v1/conferences", "papers"), "rate_limited";
        "rate before parameters", get("/v1/journals?limit=0", "papers"), "rate_limited";
        "rate before record", get("/v1/journals/999", "papers"), "rate_limited";
        "dataset before parameters", get("/v1/journals?limit=0", "onco"), "dataset_not_licensed";
        "dataset before unknown parameters", get("/v1/journals?x=1", "onco"), "dataset_not_licensed";
        "dataset before token", get("/v1/journals/changes?since=x", "onco"), "dataset_not_licensed";
        "dataset before token", get(&resync_journals, "onco"), "dataset_not_licensed";
        "dataset before record", get("/v1/journals/999", "onco"), "dataset_not_licensed";
        "dataset before format", get("/v1/exports/journals?format=x", "onco"), "dataset_not_licensed";
        "dataset before unknown", get("/v1/reference/tags?dataset=journals&x=1", "onco"), "dataset_not_licensed";
        "dataset before type", get("/v1/reference/tags?dataset=journals&type=", "onco"), "dataset_not_licensed";
        "parameters before token", get(&resync_limit, "onco"), "invalid_parameter";
        "parameters before token", get(&resync_unknown, "onco"), "unknown_parameter";
        "parameters before token", get("/v1/conferences/changes?since=x&limit=0", "onco"), "invalid_parameter";
        "parameters before cursor", get("/v1/conferences?cursor=x&limit=0", "onco"), "invalid_parameter";
        "parameters before cursor", get("/v1/conferences?cursor=x&q=a", "onco"), "invalid_parameter";
        "parameters before record", get("/v1/conferences/999?x=1", "onco"), "unknown_parameter";
        "token", get(&resync, "onco"), "resync_required";
    ];
    for (
        what,
        Faulty {
            method,
            path,
            key,
            body,
        },
        code,
    ) in cases
    {
        let text = if key.is_empty() {
            String::new()
        } else {
            world.key(key).text
        };
        let headers = [("x-api-key", text.as_str())];
        let answer = world.ask(
            method,
            path,
            if key.is_empty() { &[] } else { &headers },
            body,
        );
        if method == "HEAD" {
            assert_eq!(answer.status, 400, "{what}: {method} {path}");
        } else {
            assert_eq!(answer.code(), code, "{what}: {method} {path}");
        }
    }
}
