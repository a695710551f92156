//! Malformed requests over raw sockets: every answer is a problem with a request id, and the server keeps running.

use std::io::{BufReader, Read, Write};
use std::net::Shutdown;

use super::client::{Answer, connect, read_answer};
use super::site::{Server, Site};

/// The state of the connection after the answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum After {
    Open,
    Closed,
}
use After::{Closed, Open};

fn setup() -> (Site, Server, String) {
    let (site, key) = Site::open(30);
    let server = site.serve();
    (site, server, key)
}

/// Sends bytes and reads the first answer. Then checks whether a proper request still works on the connection.
fn send(server: &Server, bytes: &[u8]) -> (Answer, After) {
    let mut connection = BufReader::new(connect(server.address).unwrap());
    // A server that refuses a long head may close before it has read everything.
    let _ = connection.get_mut().write_all(bytes);
    let answer = read_answer(&mut connection, bytes.starts_with(b"HEAD")).unwrap_or_else(|error| {
        let shown = String::from_utf8_lossy(&bytes[..bytes.len().min(120)]);
        panic!("no answer ({error}) to {shown:?}")
    });
    let again = connection
        .get_mut()
        .write_all(b"GET /v1/status HTTP/1.1\r\nhost: x\r\n\r\n");
    let open = again.is_ok()
        && read_answer(&mut connection, false).is_ok_and(|answer| answer.status == 200);
    (answer, if open { Open } else { Closed })
}

/// The bytes of a request whose lines are separated by `|`, and from its body by `||`. `AUTH` stands for a host and a
/// key. A character up to U+00FF is one byte.
fn bytes(request: &str, key: &str) -> Vec<u8> {
    let whole = if request.contains("||") {
        request.to_owned()
    } else {
        format!("{request}||")
    };
    let text = whole
        .replace("AUTH", &format!("host: x|authorization: Bearer {key}"))
        .replace('|', "\r\n");
    text.chars()
        .map(|letter| u8::try_from(u32::from(letter)).unwrap())
        .collect()
}

/// Requests that get 400 `invalid_request`, and whose connection is closed.
const INVALID: [&str; 22] = [
    "\0\u{1}\u{2} nonsense",
    // TLS.
    "\u{16}\u{3}\u{1}\u{2}\0\u{1}\0\u{1}\u{fc}\u{3}\u{3}",
    "GET /v1/status|host: x",
    "GET /v1/status HTTP/9.9|host: x",
    "GET /v1/status HTTP/1.1|host x",
    "GET /v1/status HTTP/1.1|ho st: x",
    "POST /v1/status HTTP/1.1|host: x|content-length: -5",
    "GET /v1/status HTTP/1.1|host: x|content-length: 1|content-length: 2||ab",
    "GET /v1/status HTTP/1.1|host: x|transfer-encoding: gzip",
    "GET /v1/status HTTP/1.1|x: y",
    "GET /v1/conferences HTTP/1.1|x: y|x-api-key: k",
    "GET http://x/v1/status HTTP/1.1",
    "GET /v1/status HTTP/1.1|host: x|Host: x",
    "GET /v1/status HTTP/1.0|host: x|host: y",
    "GET /v1/status HTTP/1.1|host: http://x/",
    "GET /v1/status HTTP/1.1|host: a@x",
    "GET /v1/status HTTP/1.1|host: \u{ff}",
    "POST /v1/none HTTP/1.1|content-length: 2||ab",
    "GET /v1/conferences HTTP/1.1|AUTH|content-length: 5||hello",
    "GET /v1/conferences HTTP/1.1|AUTH|transfer-encoding: chunked||2|hi|0||",
    "GET /v1/conferences HTTP/1.1|AUTH|transfer-encoding: chunked||xyz|",
    "GET /v1/conferences HTTP/1.1|AUTH|expect: 100-continue|content-length: 5",
];

#[test]
fn malformed_requests_are_problems() {
    let (_site, server, key) = setup();
    let headers = |count: usize| -> String { (0..count).map(|at| format!("|x-{at}: 1")).collect() };
    let long = |length: usize| "a".repeat(length);
    let with_headers =
        |count: usize| format!("GET /v1/none HTTP/1.1|host: x{}", headers(count - 1));
    let others = cases![
        "PRI * HTTP/2.0||SM||\0\0\0\u{4}\0\0\0\0\0".to_owned(), 505, "invalid_request", Closed;
        "PRI * HTTP/2.0||SM||".to_owned(), 505, "invalid_request", Closed;
        with_headers(64), 404, "not_found", Open;
        with_headers(65), 431, "invalid_request", Closed;
        with_headers(201), 431, "invalid_request", Closed;
        format!("GET /v1/none HTTP/1.1|host: x|x-long: {}", long(15_000)), 404, "not_found", Open;
        format!("GET /v1/status HTTP/1.1|host: {}", long(17_000)), 431, "invalid_request", Closed;
        format!("GET /v1/conferences?q={} HTTP/1.1|AUTH", long(4200)), 414, "invalid_request", Closed;
        format!("GET /v1/{} HTTP/1.1|AUTH", long(5000)), 414, "invalid_request", Closed;
        "POST /v1/conferences HTTP/1.1|AUTH|content-length: 5||hello".to_owned(), 405, "method_not_allowed", Closed;
        "POST /v1/conferences HTTP/1.1|AUTH|content-length: 0".to_owned(), 405, "method_not_allowed", Open;
        "BREW /v1/conferences HTTP/1.1|AUTH".to_owned(), 405, "method_not_allowed", Open;
        "OPTIONS * HTTP/1.1|host: x".to_owned(), 404, "not_found", Open;
        "CONNECT example.org:443 HTTP/1.1|host: x".to_owned(), 404, "not_found", Open;
        "GET //v1/status HTTP/1.1|host: x".to_owned(), 404, "not_found", Open;
        "GET /v1/conferences HTTP/1.1|host: x|authorization: Bearer \u{ff}".to_owned(), 401, "invalid_api_key", Open;
        "GET /v1/conferences HTTP/1.1|host: x".to_owned(), 401, "missing_api_key", Open;
    ];
    let invalid = INVALID.map(|request| (request.to_owned(), 400, "invalid_request", Closed));
    for (request, status, code, after) in invalid.into_iter().chain(others) {
        let (answer, connection) = send(&server, &bytes(&request, &key));
        assert_eq!(answer.status, status, "{request:.200}: {answer:?}");
        assert_eq!(connection, after, "{request:.200}: {answer:?}");
        assert_eq!(answer.problem(), code, "{request:.200}");
        let closing = answer.header("connection") == Some("close");
        assert_eq!(
            closing,
            after == Closed,
            "{request:.200}: {:?}",
            answer.headers
        );
        let header = answer.header("strict-transport-security");
        assert_eq!(header, None, "{request:.200}: plain HTTP promises nothing");
    }
    for length in [20_000, 100_000] {
        let target = format!("/v1/conferences?q={}", long(length));
        let (answer, after) = send(&server, server.client(&key).request(&target).as_bytes());
        assert!(matches!(answer.status, 414 | 431), "{answer:?}");
        let expected = ("invalid_request", Closed);
        assert_eq!((answer.problem().as_str(), after), expected);
    }
    server.stop();
}

#[test]
fn requests_sent_ahead_are_answered_in_their_order() {
    let (_site, server, key) = setup();
    let client = server.client(&key);
    let targets = words![
        "/v1/conferences/3" "/v1/none" "/v1/exports/conferences" "/v1/conferences/4" "/v1/status"
    ];
    let requests = targets.iter();
    let requests: String = requests.map(|target| client.request(target)).collect();
    let mut connection = BufReader::new(connect(server.address).unwrap());
    connection.get_mut().write_all(requests.as_bytes()).unwrap();
    let answers: Vec<Answer> = targets
        .iter()
        .map(|_| read_answer(&mut connection, false).unwrap())
        .collect();
    let statuses: Vec<u16> = answers.iter().map(|answer| answer.status).collect();
    assert_eq!(statuses, [200, 404, 200, 200, 200]);
    assert_eq!(answers[0].json()["data"]["id"], 3);
    assert_eq!(answers[1].problem(), "not_found");
    assert_eq!(answers[2].lines().len(), 30);
    assert_eq!(answers[3].json()["data"]["id"], 4);
    assert_eq!(answers[4].json()["status"], "ok");

    // Proper requests before a malformed one get their answers. Then come the problem and the end.
    let mut connection = BufReader::new(connect(server.address).unwrap());
    let bytes = [
        client.request("/v1/conferences/3").as_bytes(),
        b"\x01\x02\r\n\r\n",
    ]
    .concat();
    connection.get_mut().write_all(&bytes).unwrap();
    assert_eq!(read_answer(&mut connection, false).unwrap().status, 200);
    assert_eq!(
        read_answer(&mut connection, false).unwrap().problem(),
        "invalid_request"
    );
    assert_eq!(connection.read(&mut [0; 8]).unwrap(), 0, "the end");
    server.stop();
}

#[test]
fn http_1_0_and_head_requests_are_served() {
    let (_site, server, key) = setup();
    let cases = cases![
        "GET /v1/conferences/3 HTTP/1.0|x-api-key: KEY", 200, Closed;
        "GET /v1/conferences/3 HTTP/1.0|AUTH", 200, Closed;
        "GET /v1/conferences/3 HTTP/1.0|x-api-key: KEY|connection: keep-alive", 200, Open;
        "GET /v1/conferences/99 HTTP/1.0|AUTH", 404, Closed;
        "GET /v1/conferences/3 HTTP/1.1|host:|x-api-key: KEY", 200, Open;
        "GET /v1/conferences/3 HTTP/1.1|host: feed.example.org:8080|x-api-key: KEY", 200, Open;
        "GET /v1/conferences/3 HTTP/1.1|host: [::1]:8080|x-api-key: KEY", 200, Open;
        "GET /v1/conferences/3 HTTP/1.1\nhost: x\nx-api-key: KEY\n\n", 200, Open;
        "GET /v1/conferences/3 HTTP/1.1|AUTH|connection: close", 200, Closed;
        "GET /v1/conferences/3 HTTP/1.1|AUTH|content-length: 0", 200, Open;
        "HEAD /v1/conferences/3 HTTP/1.1|AUTH", 200, Open;
        "HEAD /v1/exports/conferences HTTP/1.1|AUTH", 200, Open;
        "HEAD /v1/none HTTP/1.1|AUTH", 404, Open;
        "GET http://x/v1/conferences/3 HTTP/1.1|AUTH", 200, Open;
        "GET https://other.example:1/v1/conferences/3 HTTP/1.1|AUTH", 200, Open;
        // Blank lines before a request.
        "||GET /v1/conferences/3 HTTP/1.1|AUTH||", 200, Open;
    ];
    for (request, status, after) in cases {
        let request = request.replace("KEY", &key);
        let bytes = if request.contains('\n') {
            request.clone().into_bytes()
        } else {
            bytes(&request, &key)
        };
        let (answer, connection) = send(&server, &bytes);
        assert_eq!(answer.status, status, "{request}: {answer:?}");
        assert_eq!(connection, after, "{request}: {answer:?}");
        assert!(answer.header("x-request-id").is_some(), "{request}");
        if request.starts_with("HEAD") {
            let length: u64 = answer.header("content-length").unwrap().parse().unwrap();
            assert!(
                length > 0,
                "{request}: the length of the body that GET would have"
            );
        }
    }

    // A caller that leaves in the middle of a request, or sends nothing, affects no other.
    let mut half = connect(server.address).unwrap();
    half.write_all(b"GET /v1/conf").unwrap();
    half.shutdown(Shutdown::Write).unwrap();
    let mut rest = Vec::new();
    let _ = half.read_to_end(&mut rest);
    assert_eq!(server.client(&key).get("/v1/conferences/3").status, 200);
    server.stop();
}
