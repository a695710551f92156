//! Browser applications of other origins: the headers without which a browser refuses to call the API.

use std::io::BufReader;

use super::client::{Answer, ask, connect};
use super::site::{Server, Site};

const APP: &str = "https://app.example.org";

/// Sends a request with these header lines.
fn send(server: &Server, method: &str, target: &str, lines: &[String]) -> Answer {
    let mut connection = BufReader::new(connect(server.address).unwrap());
    let lines: String = lines.iter().map(|line| format!("{line}\r\n")).collect();
    let request = format!(
        "{method} {target} HTTP/1.1\r\nhost: {}\r\n{lines}\r\n",
        server.address
    );
    ask(&mut connection, &request).unwrap()
}

fn headers(answer: &Answer, start: &str) -> Vec<String> {
    let mut found: Vec<String> = answer
        .headers
        .iter()
        .map(|(name, value)| format!("{name}: {value}"))
        .collect();
    found.retain(|line| line.starts_with(start));
    found
}

fn is_open_to(answer: &Answer, origin: Option<&str>) {
    let header = answer.header("access-control-allow-origin");
    assert_eq!(header, origin, "{answer:?}");
    let exposed = answer
        .header("access-control-expose-headers")
        .unwrap_or_default();
    let names = words![
        "X-Sync-Token" "X-Record-Count" "X-Records-Digest" "Repr-Digest" "X-Request-Id" "RateLimit-Remaining"
        "ETag" "Retry-After"
    ];
    for name in names {
        let expected = origin.is_some();
        assert_eq!(exposed.contains(name), expected, "{name} in {exposed}");
    }
    assert_eq!(answer.header("access-control-allow-credentials"), None);
}

#[test]
fn only_named_origins_may_read_answers() {
    let site = Site::with(3);
    site.json("license set all --yes --dataset conferences --rate-limit 4".split(' '));
    let (_, key) = site.key("all", &[]);
    let server = site.serve_with(&format!(
        "--cors-origin {APP} --cors-origin http://localhost:3000"
    ));
    let (with_key, from_app) = (format!("x-api-key: {key}"), format!("origin: {APP}"));
    // The request's headers and target, the status, and whether the origin may read the response.
    let cases = cases![
        vec![with_key.clone(), from_app.clone()], "/v1/conferences", 200, Some(APP);
        vec![with_key.clone(), "origin: http://localhost:3000".to_owned()], "/v1/exports/conferences", 200,
            Some("http://localhost:3000");
        vec![with_key.clone(), "origin: https://other.example".to_owned()], "/v1/conferences/1", 200, None;
        vec![with_key.clone()], "/v1/conferences/9", 404, None;
        vec![with_key, from_app.clone()], "/v1/conferences", 429, Some(APP);
        vec![from_app.clone()], "/v1/conferences", 401, Some(APP);
        vec![from_app.clone()], "/v1/status", 200, Some(APP);
        vec![from_app.clone()], "/openapi.json", 200, Some(APP);
        vec![from_app.clone()], "/nowhere", 404, Some(APP);
        vec!["origin: null".to_owned()], "/v1/status", 200, None;
        vec![format!("origin: {APP}:443")], "/v1/status", 200, None;
    ];
    for (lines, target, status, allowed) in cases {
        let answer = send(&server, "GET", target, &lines);
        assert_eq!(answer.status, status, "{lines:?} {target}");
        is_open_to(&answer, allowed);
        let vary = headers(&answer, "vary").join("; ");
        assert!(vary.contains("Origin"), "{target}: {vary}");
        assert!(
            status != 200 || !target.starts_with("/v1/conf") || vary.contains("Authorization"),
            "{target}: {vary}"
        );
    }
    server.stop();
}

#[test]
fn a_preflight_needs_no_key_and_counts_nothing() {
    let (site, key) = Site::open(3);
    let server = site.serve_with(&format!("--cors-origin {APP}"));
    let preflight = |target: &str, origin: &str| {
        let lines = [
            format!("origin: {origin}"),
            "access-control-request-method: GET".to_owned(),
        ];
        send(&server, "OPTIONS", target, &lines)
    };
    let left = || {
        server
            .client(&key)
            .get("/v1/status")
            .header("ratelimit-remaining")
            .unwrap()
            .to_owned()
    };
    let before = left();
    for target in
        words!["/v1/conferences" "/v1/exports/journals?format=csv" "/v1/status" "/nowhere"]
    {
        let answer = preflight(target, APP);
        assert_eq!((answer.status, answer.body.len()), (204, 0), "{target}");
        is_open_to(&answer, Some(APP));
        let header = answer.header("access-control-allow-methods");
        assert_eq!(header, Some("GET, HEAD"));
        let allowed = answer.header("access-control-allow-headers").unwrap();
        for name in words!["Authorization" "X-API-Key" "If-None-Match" "Range" "If-Range"] {
            assert!(
                allowed.split(", ").any(|found| found == name),
                "{name} in {allowed}"
            );
        }
        assert!(
            answer
                .header("access-control-max-age")
                .unwrap()
                .parse::<u32>()
                .unwrap()
                > 0
        );
        assert!(
            answer.header("x-request-id").is_some() && answer.header("content-length").is_none()
        );
    }
    assert_eq!(left(), before);
    // The names that it requests are allowed as they are written, up to 1 KiB, or else the usual ones.
    let usual = "Authorization, X-API-Key, If-None-Match, Range, If-Range";
    let most = ["x-trace"; 128]
        .join(",")
        .replacen("x-trace", "x-trace0", 1);
    assert_eq!(most.len(), 1024);
    let more = format!("{most}1");
    let many = ["x-span"; 2000].join(", ");
    let asked = cases![
        most.as_str(), most.as_str();
        &more, usual;
        &many, usual;
        "x-api-key", "x-api-key";
        "baggage,traceparent,x-api-key", "baggage,traceparent,x-api-key";
        "Content-Type ,  X-Requested-With", "Content-Type ,  X-Requested-With";
        "", usual;
    ];
    for (names, expected) in asked {
        let own = [
            format!("origin: {APP}"),
            "access-control-request-method: GET".to_owned(),
        ];
        let names = [format!("access-control-request-headers: {names}")];
        let answer = send(
            &server,
            "OPTIONS",
            "/v1/conferences",
            &[&own[..], &names].concat(),
        );
        assert_eq!(answer.status, 204, "{names:?}");
        let header = answer.header("access-control-allow-headers");
        assert_eq!(header, Some(expected), "{names:?}");
        let vary = "vary: Origin, Access-Control-Request-Method, Access-Control-Request-Headers";
        assert_eq!(headers(&answer, "vary"), [vary], "{names:?}");
    }
    // A request that is no preflight, or that comes from another origin, is refused as usual.
    assert_eq!(
        preflight("/v1/conferences", "https://other.example").status,
        405
    );
    assert_eq!(
        send(
            &server,
            "OPTIONS",
            "/v1/conferences",
            &[format!("origin: {APP}")]
        )
        .status,
        405
    );
    let delete = [
        format!("origin: {APP}"),
        "access-control-request-method: DELETE".to_owned(),
    ];
    assert_eq!(
        send(&server, "DELETE", "/v1/conferences", &delete).status,
        405
    );
    server.stop();

    let server = site.serve_with("--cors-origin *");
    let lines = ["origin: null".to_owned(), format!("x-api-key: {key}")];
    let answer = send(&server, "GET", "/v1/conferences", &lines);
    is_open_to(&answer, Some("*"));
    assert_eq!(
        headers(&answer, "vary"),
        ["vary: Authorization, X-API-Key, Accept-Encoding"]
    );
    server.stop();
}

#[test]
fn without_the_option_no_cors_header_is_sent() {
    let (site, key) = Site::open(3);
    let server = site.serve();
    let lines = [
        format!("origin: {APP}"),
        format!("x-api-key: {key}"),
        "access-control-request-method: GET".to_owned(),
    ];
    for (method, target, status) in [
        ("GET", "/v1/conferences", 200),
        ("OPTIONS", "/v1/conferences", 405),
        ("GET", "/v1/nothing", 404),
    ] {
        let answer = send(&server, method, target, &lines);
        assert_eq!(answer.status, status, "{method} {target}");
        assert!(headers(&answer, "access-control").is_empty(), "{answer:?}");
        assert!(!headers(&answer, "vary").join(" ").contains("Origin"));
    }
    server.stop();
    for origin in
        words!["app.example.org" "https://app.example.org/" "https://*.example.org" "null"]
    {
        let done = site.run(["serve", "--listen", "127.0.0.1:0", "--cors-origin", origin]);
        done.assert_told(2, "https://app.example.org");
    }
}
