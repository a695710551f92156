//! Malformed requests over raw sockets: every answer is a problem with a request id, and the server keeps running.

use std::io::{BufReader, Read, Write};
use std::net::Shutdown;

use super::client::{Answer, connect, read_answer};
use super::site::{Server, Site, conferences_of_version};

/// What happens to the connection after the answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum After {
    Open,
    Closed,
}
use After::{Closed, Open};

fn setup() -> (Site, Server, String) {
    let site = Site::new();
    site.import("conferences.jsonl", conferences_of_version(30, 0));
    let key = site.open_key();
    let server = site.serve();
    (site, server, key)
}

/// Sends bytes and reads the first answer; then whether a proper request still works on the connection.
fn send(server: &Server, bytes: &[u8]) -> (Answer, After) {
    let mut connection = BufReader::new(connect(server.address).unwrap());
    // A server that refuses a long head may close before it has read all.
    let _ = connection.get_mut().write_all(bytes);
    let answer = read_answer(&mut connection, bytes.starts_with(b"HEAD")).unwrap_or_else(|error| {
        let shown = String::from_utf8_lossy(&bytes[..bytes.len().min(120)]);
        panic!("no answer ({error}) to {shown:?}")
    });
    let again = connection.get_mut().write_all(b"GET /v1/status HTTP/1.1\r\nhost: x\r\n\r\n");
    let open = again.is_ok() && read_answer(&mut connection, false).is_ok_and(|answer| answer.status == 200);
    (answer, if open { Open } else { Closed })
}

#[test]
fn malformed_requests_are_problems() {
    let (_site, server, key) = setup();
    let auth = format!("host: x\r\nauthorization: Bearer {key}\r\n");
    let headers = |count: usize| -> String { (0..count).map(|at| format!("x-{at}: 1\r\n")).collect() };
    let long = |length: usize| "a".repeat(length);
    let cases: Vec<(&str, Vec<u8>, u16, &str, After)> = vec![
        ("garbage", b"\x00\x01\x02 nonsense\r\n\r\n".to_vec(), 400, "invalid_request", Closed),
        ("TLS", b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n\r\n".to_vec(), 400, "invalid_request", Closed),
        ("no version", b"GET /v1/status\r\nhost: x\r\n\r\n".to_vec(), 400, "invalid_request", Closed),
        ("a bad version", b"GET /v1/status HTTP/9.9\r\nhost: x\r\n\r\n".to_vec(), 400, "invalid_request", Closed),
        (
            "a header without colon",
            b"GET /v1/status HTTP/1.1\r\nhost x\r\n\r\n".to_vec(),
            400,
            "invalid_request",
            Closed,
        ),
        (
            "a blank in a header's name",
            b"GET /v1/status HTTP/1.1\r\nho st: x\r\n\r\n".to_vec(),
            400,
            "invalid_request",
            Closed,
        ),
        (
            "a bad length",
            b"POST /v1/status HTTP/1.1\r\nhost: x\r\ncontent-length: -5\r\n\r\n".to_vec(),
            400,
            "invalid_request",
            Closed,
        ),
        (
            "two lengths",
            b"GET /v1/status HTTP/1.1\r\nhost: x\r\ncontent-length: 1\r\ncontent-length: 2\r\n\r\nab".to_vec(),
            400,
            "invalid_request",
            Closed,
        ),
        (
            "an unknown coding",
            b"GET /v1/status HTTP/1.1\r\nhost: x\r\ntransfer-encoding: gzip\r\n\r\n".to_vec(),
            400,
            "invalid_request",
            Closed,
        ),
        ("no host", b"GET /v1/status HTTP/1.1\r\nx: y\r\n\r\n".to_vec(), 400, "invalid_request", Closed),
        (
            "no host with a key",
            format!("GET /v1/conferences HTTP/1.1\r\n{}\r\n", auth.replace("host: x", "x: y")).into_bytes(),
            400,
            "invalid_request",
            Closed,
        ),
        (
            "no host in an absolute form",
            b"GET http://x/v1/status HTTP/1.1\r\n\r\n".to_vec(),
            400,
            "invalid_request",
            Closed,
        ),
        (
            "two hosts",
            b"GET /v1/status HTTP/1.1\r\nhost: x\r\nHost: x\r\n\r\n".to_vec(),
            400,
            "invalid_request",
            Closed,
        ),
        (
            "two hosts in HTTP/1.0",
            b"GET /v1/status HTTP/1.0\r\nhost: x\r\nhost: y\r\n\r\n".to_vec(),
            400,
            "invalid_request",
            Closed,
        ),
        (
            "a host that is a URL",
            b"GET /v1/status HTTP/1.1\r\nhost: http://x/\r\n\r\n".to_vec(),
            400,
            "invalid_request",
            Closed,
        ),
        (
            "a host with a user",
            b"GET /v1/status HTTP/1.1\r\nhost: a@x\r\n\r\n".to_vec(),
            400,
            "invalid_request",
            Closed,
        ),
        ("bytes in a host", b"GET /v1/status HTTP/1.1\r\nhost: \xff\r\n\r\n".to_vec(), 400, "invalid_request", Closed),
        (
            "a host that is refused for its body too",
            b"POST /v1/none HTTP/1.1\r\ncontent-length: 2\r\n\r\nab".to_vec(),
            400,
            "invalid_request",
            Closed,
        ),
        (
            "HTTP/2",
            b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\x00\x00\x00\x04\x00\x00\x00\x00\x00".to_vec(),
            505,
            "invalid_request",
            Closed,
        ),
        ("HTTP/2 without its settings", b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".to_vec(), 505, "invalid_request", Closed),
        (
            "64 headers",
            format!("GET /v1/none HTTP/1.1\r\nhost: x\r\n{}\r\n", headers(63)).into_bytes(),
            404,
            "not_found",
            Open,
        ),
        (
            "65 headers",
            format!("GET /v1/status HTTP/1.1\r\nhost: x\r\n{}\r\n", headers(64)).into_bytes(),
            431,
            "invalid_request",
            Closed,
        ),
        (
            "200 headers",
            format!("GET /v1/status HTTP/1.1\r\nhost: x\r\n{}\r\n", headers(200)).into_bytes(),
            431,
            "invalid_request",
            Closed,
        ),
        (
            "a header over 16 KiB",
            format!("GET /v1/status HTTP/1.1\r\nhost: {}\r\n\r\n", long(17_000)).into_bytes(),
            431,
            "invalid_request",
            Closed,
        ),
        (
            "a URI over 4 KiB",
            format!("GET /v1/conferences?q={} HTTP/1.1\r\n{auth}\r\n", long(4200)).into_bytes(),
            414,
            "invalid_request",
            Closed,
        ),
        (
            "a path over 4 KiB",
            format!("GET /v1/{} HTTP/1.1\r\n{auth}\r\n", long(5000)).into_bytes(),
            414,
            "invalid_request",
            Closed,
        ),
        (
            "GET with a body",
            format!("GET /v1/conferences HTTP/1.1\r\n{auth}content-length: 5\r\n\r\nhello").into_bytes(),
            400,
            "invalid_request",
            Closed,
        ),
        (
            "GET with chunks",
            format!("GET /v1/conferences HTTP/1.1\r\n{auth}transfer-encoding: chunked\r\n\r\n2\r\nhi\r\n0\r\n\r\n")
                .into_bytes(),
            400,
            "invalid_request",
            Closed,
        ),
        (
            "GET with bad chunks",
            format!("GET /v1/conferences HTTP/1.1\r\n{auth}transfer-encoding: chunked\r\n\r\nxyz\r\n").into_bytes(),
            400,
            "invalid_request",
            Closed,
        ),
        (
            "a body that is expected to be asked for",
            format!("GET /v1/conferences HTTP/1.1\r\n{auth}expect: 100-continue\r\ncontent-length: 5\r\n\r\n")
                .into_bytes(),
            400,
            "invalid_request",
            Closed,
        ),
        (
            "POST with a body",
            format!("POST /v1/conferences HTTP/1.1\r\n{auth}content-length: 5\r\n\r\nhello").into_bytes(),
            405,
            "method_not_allowed",
            Closed,
        ),
        (
            "POST without a body",
            format!("POST /v1/conferences HTTP/1.1\r\n{auth}content-length: 0\r\n\r\n").into_bytes(),
            405,
            "method_not_allowed",
            Open,
        ),
        (
            "an unknown method",
            format!("BREW /v1/conferences HTTP/1.1\r\n{auth}\r\n").into_bytes(),
            405,
            "method_not_allowed",
            Open,
        ),
        ("OPTIONS *", b"OPTIONS * HTTP/1.1\r\nhost: x\r\n\r\n".to_vec(), 404, "not_found", Open),
        ("CONNECT", b"CONNECT example.org:443 HTTP/1.1\r\nhost: x\r\n\r\n".to_vec(), 404, "not_found", Open),
        ("a doubled slash", b"GET //v1/status HTTP/1.1\r\nhost: x\r\n\r\n".to_vec(), 404, "not_found", Open),
        (
            "bytes in a key",
            b"GET /v1/conferences HTTP/1.1\r\nhost: x\r\nauthorization: Bearer \xff\xfe\r\n\r\n".to_vec(),
            401,
            "invalid_api_key",
            Open,
        ),
        ("no key", b"GET /v1/conferences HTTP/1.1\r\nhost: x\r\n\r\n".to_vec(), 401, "missing_api_key", Open),
    ];
    for (what, bytes, status, code, after) in cases {
        let (answer, connection) = send(&server, &bytes);
        assert_eq!((answer.status, connection), (status, after), "{what}: {answer:?}");
        assert_eq!(answer.problem(), code, "{what}");
        let closing = answer.header("connection") == Some("close");
        assert_eq!(closing, after == Closed, "{what}: {:?}", answer.headers);
        assert_eq!(answer.header("strict-transport-security"), None, "{what}: plain HTTP promises nothing");
    }
    server.stop();
}

#[test]
fn a_uri_over_16_kib_is_a_problem() {
    let (_site, server, key) = setup();
    let target = format!("/v1/conferences?q={}", "a".repeat(20_000));
    let (answer, after) = send(&server, server.client(&key).request(&target).as_bytes());
    assert!(matches!(answer.status, 414 | 431), "{answer:?}");
    assert_eq!((answer.problem().as_str(), after), ("invalid_request", Closed));
    let target = format!("/v1/conferences?q={}", "a".repeat(100_000));
    let (answer, _) = send(&server, server.client(&key).request(&target).as_bytes());
    assert!(matches!(answer.status, 414 | 431), "{answer:?}");
    assert_eq!(answer.problem(), "invalid_request");
    server.stop();
}

#[test]
fn requests_sent_ahead_are_answered_in_their_order() {
    let (_site, server, key) = setup();
    let client = server.client(&key);
    let targets = ["/v1/conferences/3", "/v1/none", "/v1/exports/conferences", "/v1/conferences/4", "/v1/status"];
    let requests: String = targets.iter().map(|target| client.request(target)).collect();
    let mut connection = BufReader::new(connect(server.address).unwrap());
    connection.get_mut().write_all(requests.as_bytes()).unwrap();
    let answers: Vec<Answer> = targets.iter().map(|_| read_answer(&mut connection, false).unwrap()).collect();
    let statuses: Vec<u16> = answers.iter().map(|answer| answer.status).collect();
    assert_eq!(statuses, [200, 404, 200, 200, 200]);
    assert_eq!(answers[0].json()["data"]["id"], 3);
    assert_eq!(answers[1].problem(), "not_found");
    assert_eq!(answers[2].lines().len(), 30);
    assert_eq!(answers[3].json()["data"]["id"], 4);
    assert_eq!(answers[4].json()["status"], "ok");

    // Proper requests before a malformed one get their answers; then comes the problem, then the end.
    let mut connection = BufReader::new(connect(server.address).unwrap());
    let bytes = [client.request("/v1/conferences/3").as_bytes(), b"\x01\x02\r\n\r\n"].concat();
    connection.get_mut().write_all(&bytes).unwrap();
    assert_eq!(read_answer(&mut connection, false).unwrap().status, 200);
    assert_eq!(read_answer(&mut connection, false).unwrap().problem(), "invalid_request");
    assert_eq!(connection.read(&mut [0; 8]).unwrap(), 0, "the end");
    server.stop();
}

#[test]
fn older_callers_and_heads_are_served() {
    let (_site, server, key) = setup();
    let old = format!("X-API-Key: {key}\r\n");
    let auth = format!("host: x\r\n{old}");
    let named = |host: &str| format!("GET /v1/conferences/3 HTTP/1.1\r\nhost:{host}\r\n{old}\r\n");
    let cases = [
        ("HTTP/1.0", format!("GET /v1/conferences/3 HTTP/1.0\r\n{old}\r\n"), 200, Closed),
        ("HTTP/1.0 with a host", format!("GET /v1/conferences/3 HTTP/1.0\r\n{auth}\r\n"), 200, Closed),
        ("HTTP/1.0 kept", format!("GET /v1/conferences/3 HTTP/1.0\r\n{old}connection: keep-alive\r\n\r\n"), 200, Open),
        ("HTTP/1.0, no record", format!("GET /v1/conferences/99 HTTP/1.0\r\n{old}\r\n"), 404, Closed),
        ("an empty host", named(""), 200, Open),
        ("a host with a port", named(" feed.example.org:8080"), 200, Open),
        ("an address as host", named(" [::1]:8080"), 200, Open),
        ("bare line ends", format!("GET /v1/conferences/3 HTTP/1.1\n{}\n", auth.replace('\r', "")), 200, Open),
        ("asked to close", format!("GET /v1/conferences/3 HTTP/1.1\r\n{auth}connection: close\r\n\r\n"), 200, Closed),
        ("an empty body", format!("GET /v1/conferences/3 HTTP/1.1\r\n{auth}content-length: 0\r\n\r\n"), 200, Open),
        ("HEAD", format!("HEAD /v1/conferences/3 HTTP/1.1\r\n{auth}\r\n"), 200, Open),
        ("HEAD of an export", format!("HEAD /v1/exports/conferences HTTP/1.1\r\n{auth}\r\n"), 200, Open),
        ("HEAD of nothing", format!("HEAD /v1/none HTTP/1.1\r\n{auth}\r\n"), 404, Open),
        ("an absolute form", format!("GET http://x/v1/conferences/3 HTTP/1.1\r\n{auth}\r\n"), 200, Open),
        (
            "an absolute form of another host",
            format!("GET https://other.example:1/v1/conferences/3 HTTP/1.1\r\n{auth}\r\n"),
            200,
            Open,
        ),
        (
            "a fragment of blank lines before",
            format!("\r\n\r\nGET /v1/conferences/3 HTTP/1.1\r\n{auth}\r\n"),
            200,
            Open,
        ),
    ];
    for (what, request, status, after) in cases {
        let (answer, connection) = send(&server, request.as_bytes());
        assert_eq!((answer.status, connection), (status, after), "{what}: {answer:?}");
        assert!(answer.header("x-request-id").is_some(), "{what}");
        if request.starts_with("HEAD") {
            let length: u64 = answer.header("content-length").unwrap().parse().unwrap();
            assert!(length > 0, "{what}: the length of the body that GET would have");
        }
    }

    // A caller that leaves in the middle of a request, or says nothing, hurts nobody.
    let mut half = connect(server.address).unwrap();
    half.write_all(b"GET /v1/conf").unwrap();
    half.shutdown(Shutdown::Write).unwrap();
    let mut rest = Vec::new();
    let _ = half.read_to_end(&mut rest);
    assert_eq!(server.client(&key).get("/v1/conferences/3").status, 200);
    server.stop();
}
