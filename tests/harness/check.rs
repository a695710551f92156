//! Checks that every answer passes, for any request.

use data_encoding::BASE64;
use http::{Method, StatusCode};
use medfeed::api::{Code, Request};
use medfeed::contract::query::percent_decode;
use serde_json::Value;
use sha2::{Digest as _, Sha256};

use super::answer::{Answer, gunzip};
use super::{PUBLIC_URL, World};

/// The headers that answers may have.
const ALLOWED: [&str; 25] = words![
    "accept-ranges" "allow" "cache-control" "connection" "content-disposition" "content-encoding"
    "content-length" "content-range" "content-type" "etag" "ratelimit-limit" "ratelimit-remaining"
    "ratelimit-reset" "repr-digest" "retry-after" "vary" "www-authenticate" "x-content-type-options"
    "x-record-count" "x-records-digest" "x-request-id" "x-sync-token" "content-security-policy"
    "clear-site-data" "referrer-policy"
];

pub fn check(world: &World, request: &Request, answer: &Answer) {
    let asked = &answer.asked;
    for name in answer.headers.keys() {
        assert!(ALLOWED.contains(&name.as_str()), "{asked}: header {name}");
        let count = answer.headers.get_all(name).iter().count();
        assert_eq!(count, 1, "{asked}: header {name} occurs twice");
    }
    let id = answer
        .header("x-request-id")
        .unwrap_or_else(|| panic!("{asked}: no x-request-id"))
        .to_owned();
    assert!(id.len() >= 16, "{asked}: request id {id}");
    assert!(
        world.request_ids.borrow_mut().insert(id.clone()),
        "{asked}: request id {id} was given before"
    );

    check_body(request, answer);
    let prefers_html = request
        .headers
        .get("accept")
        .is_some_and(|accept| accept.as_bytes().starts_with(b"text/html"));
    if answer.status == 404 && prefers_html && !is_under_v1(request.path()) {
        let expected = Some("text/html; charset=utf-8");
        assert_eq!(answer.header("content-type"), expected, "{asked}");
    } else if answer.status >= 400 {
        check_problem(world, answer, &id);
    }
    check_windows(request, answer);
    check_caching(request, answer);
    check_digests(request, answer);

    let only_with = |header: &str, statuses: &[u16]| {
        let has = answer.header(header).is_some();
        let expected = statuses.contains(&answer.status);
        assert_eq!(has, expected, "{asked}: {header} with {}", answer.status);
    };
    only_with("content-range", &[206, 416]);
    // 503 has it where it is known when a retry may help.
    if answer.status != 503 {
        only_with("retry-after", &[429]);
    }
    only_with("allow", &[405]);
    only_with("www-authenticate", &[401]);
    if answer.status == 405 {
        assert_eq!(answer.header("allow"), Some("GET, HEAD"), "{asked}");
    }
    if answer.status == 429 {
        assert!((1..=60).contains(&answer.number("retry-after")), "{asked}");
    }
    let closes = request.has_body || answer.status == 414;
    let expected = closes.then_some("close");
    assert_eq!(answer.header("connection"), expected, "{asked}: connection");
}

fn check_body(request: &Request, answer: &Answer) {
    let asked = &answer.asked;
    if answer.status == 304 {
        assert!(answer.body.is_empty(), "{asked}: 304 with a body");
        for header in ["content-length", "content-type", "content-encoding"] {
            assert_eq!(answer.header(header), None, "{asked}: 304 with {header}");
        }
        return;
    }
    if request.method == Method::HEAD {
        assert!(answer.body.is_empty(), "{asked}: HEAD with a body");
        answer.number("content-length");
        return;
    }
    let number = answer.number("content-length");
    assert_eq!(number, answer.body.len() as u64, "{asked}: content-length");
    let kind = answer
        .header("content-type")
        .unwrap_or_else(|| panic!("{asked}: no content-type"));
    if kind.contains("json") {
        let content = answer.content();
        assert!(
            serde_json::from_slice::<Value>(&content).is_ok(),
            "{asked}: {}",
            answer.text()
        );
    }
    if answer.header("content-encoding").is_some() {
        // Only the CSV export is compressed without `Accept-Encoding`.
        let asked_for =
            request.headers.contains_key("accept-encoding") || kind.starts_with("text/csv");
        assert!(asked_for && answer.status < 400, "{asked}: compressed");
    }
}

fn check_problem(world: &World, answer: &Answer, id: &str) {
    let asked = &answer.asked;
    let header = answer.header("content-type");
    assert_eq!(header, Some("application/problem+json"), "{asked}");
    if answer.body.is_empty() {
        return;
    }
    let problem = answer.json();
    let members = problem.as_object().unwrap().keys();
    let members: Vec<&str> = members.map(String::as_str).collect();
    let expected = ["type", "title", "status", "detail", "request_id"];
    assert_eq!(members, expected, "{asked}");
    assert_eq!(problem["request_id"], id, "{asked}");
    assert_eq!(problem["status"], answer.status, "{asked}");
    let reason = StatusCode::from_u16(answer.status)
        .unwrap()
        .canonical_reason()
        .unwrap();
    assert_eq!(problem["title"], reason, "{asked}");
    assert!(
        problem["detail"].as_str().unwrap().len() > 20,
        "{asked}: {problem}"
    );
    let url = problem["type"].as_str().unwrap();
    let code = url
        .strip_prefix(PUBLIC_URL)
        .and_then(|path| path.strip_prefix("/docs/errors/"));
    let code = code.unwrap_or_else(|| panic!("{asked}: type {url}"));
    let known = Code::ALL.into_iter().find(|known| known.as_str() == code);
    let known = known.unwrap_or_else(|| panic!("{asked}: code {code}"));
    if code != "invalid_request" {
        let found = known.info().status.as_u16();
        assert_eq!(found, answer.status, "{asked}: the status of {code}");
    }
    assert!(world.has_page(url), "{asked}: nothing at {url}");
    if answer.status == 401 {
        let challenge = match code {
            "missing_api_key" => "Bearer realm=\"medfeed\"",
            _ => "Bearer realm=\"medfeed\", error=\"invalid_token\"",
        };
        let header = answer.header("www-authenticate");
        assert_eq!(header, Some(challenge), "{asked}");
    }
}

fn decoded(path: &str) -> String {
    percent_decode(path, false).unwrap_or_default().into_owned()
}

/// Whether the path, once decoded, lies under `/v1`.
fn is_under_v1(path: &str) -> bool {
    let first = path
        .strip_prefix('/')
        .and_then(|rest| rest.split('/').next())
        .unwrap_or_default();
    decoded(first) == "v1"
}

fn check_windows(request: &Request, answer: &Answer) {
    let asked = &answer.asked;
    let names = ["ratelimit-limit", "ratelimit-remaining", "ratelimit-reset"];
    if request.path().starts_with("/v1%") {
        // Neither under `/v1` nor clearly elsewhere: there is no endpoint, and the headers do no harm.
        assert_eq!(answer.status, 404, "{asked}");
        return;
    }
    if !is_under_v1(request.path()) || answer.status == 414 {
        for name in names {
            assert_eq!(answer.header(name), None, "{asked}: {name}");
        }
        return;
    }
    let [limit, remaining, reset_s] = names.map(|name| answer.number(name));
    assert!(limit > 0, "{asked}: {remaining} of {limit}");
    assert!(remaining <= limit, "{asked}: {remaining} of {limit}");
    assert!((1..=60).contains(&reset_s), "{asked}: reset {reset_s}");
}

fn check_caching(request: &Request, answer: &Answer) {
    let asked = &answer.asked;
    let is_fixed = |path: &str| !path.ends_with("/changes") && path != "/v1/status";
    let is_explorer = |path: &str| {
        ["/", "/worker.js"].contains(&path)
            || path.starts_with("/explorer/")
            || path.starts_with("/favicon.")
    };
    let is_kept = is_explorer(request.path())
        || is_under_v1(request.path()) && is_fixed(&decoded(request.path()));
    let revalidatable = answer.status < 400 && is_kept;
    // A 416 names the file that has no such range.
    assert_eq!(
        answer.header("etag").is_some(),
        revalidatable || answer.status == 416,
        "{asked}: etag"
    );
    if revalidatable {
        let etag = answer.etag();
        // Files can be resumed byte for byte.
        let is_file = decoded(request.path()).contains("/exports/");
        let start = if is_file { "\"" } else { "W/\"" };
        let expected = (is_file && answer.status != 304).then_some("bytes");
        assert_eq!(answer.header("accept-ranges"), expected, "{asked}");
        let opaque = etag
            .strip_prefix(start)
            .and_then(|rest| rest.strip_suffix('"'));
        assert!(
            opaque.is_some_and(|opaque| opaque.len() >= 16 && !opaque.contains('"')),
            "{asked}: {etag}"
        );
        let header = answer.header("cache-control");
        assert_eq!(header, Some("private, no-cache"), "{asked}");
        let expected = Some("Authorization, X-API-Key, Accept-Encoding");
        assert_eq!(answer.header("vary"), expected, "{asked}");
    } else {
        assert_eq!(answer.header("cache-control"), Some("no-store"), "{asked}");
        assert_eq!(answer.header("vary"), None, "{asked}");
    }
}

/// Only exports have digests of the file and of its records.
fn check_digests(request: &Request, answer: &Answer) {
    let asked = &answer.asked;
    let is_export = answer.header("x-sync-token").is_some();
    let is_whole = is_export && answer.status == 200 && request.method == Method::GET;
    let content = if is_whole {
        gunzip(&answer.body)
    } else {
        Vec::new()
    };
    for (name, bytes) in [
        ("repr-digest", &answer.body),
        ("x-records-digest", &content),
    ] {
        assert_eq!(answer.header(name).is_some(), is_export, "{asked}: {name}");
        let expected = format!("sha-256=:{}:", BASE64.encode(&Sha256::digest(bytes)));
        assert!(
            !is_whole || answer.header(name) == Some(&expected),
            "{asked}: {name} is not {expected}"
        );
    }
}

/// GET and HEAD of one request have the same answer, except for the id, the body, and the rate window's remaining
/// seconds.
pub fn check_twins(one: &Answer, other: &Answer) {
    assert_eq!(one.status, other.status, "{}", one.asked);
    let lasting = |answer: &Answer| {
        let mut headers = answer.headers.clone();
        ["x-request-id", "ratelimit-reset"]
            .iter()
            .for_each(|name| drop(headers.remove(*name)));
        headers
    };
    let expected = lasting(other);
    assert_eq!(lasting(one), expected, "{} and {}", one.asked, other.asked);
}
