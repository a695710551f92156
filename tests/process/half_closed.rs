//! Callers that close their sending half after a request, such as `nc -N`: they are answered, and do not wait.

use std::io::{BufReader, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::time::{Duration, Instant};

use super::client::{Answer, connect, read_answer};
use super::https::{Authority, shake_hands, site_with};
use super::monitoring::{scrape, serve_watched};
use super::site::{SOON, Server, Site, wait_for, wait_until};

/// Sends a request, and closes the sending half. The server must end the connection after its answer.
fn ask_and_close(server: &Server, request: &str) -> Answer {
    let mut stream = connect(server.address).unwrap();
    stream.write_all(request.as_bytes()).unwrap();
    stream.shutdown(Shutdown::Write).unwrap();
    read_to_end(stream)
}

fn read_to_end(stream: impl Read) -> Answer {
    let mut reader = BufReader::new(stream);
    let answer = read_answer(&mut reader, false).expect("an answer");
    let mut rest = Vec::new();
    reader
        .read_to_end(&mut rest)
        .expect("an end without a reset");
    assert!(rest.is_empty(), "one answer");
    answer
}

#[test]
fn a_half_closed_connection_is_answered() {
    let (site, key) = Site::open(300);
    let (server, mut admin) = serve_watched(&site, &[]);
    let client = server.client(&key);
    let begun = Instant::now();
    for target in words![
        "/v1/status" "/" "/v1/conferences/7" "/v1/conferences?q=conf&limit=500" "/v1/exports/conferences"
    ] {
        for turn in ["built", "in memory"] {
            let answer = ask_and_close(&server, &client.request(target));
            assert_eq!(answer.status, 200, "{target} {turn}");
        }
    }
    let export = ask_and_close(
        &server,
        &client.request("/v1/exports/conferences?format=csv"),
    );
    assert!(export.gunzip().len() > 1000);
    assert_eq!(
        ask_and_close(
            &server,
            &server.client("mfk_none").request("/v1/conferences")
        )
        .status,
        401
    );
    let metrics = format!("GET /metrics HTTP/1.1\r\nhost: {}\r\n\r\n", admin.address());
    let mut stream = connect(admin.address()).unwrap();
    stream.write_all(metrics.as_bytes()).unwrap();
    stream.shutdown(Shutdown::Write).unwrap();
    assert_eq!(read_to_end(stream).status, 200);
    // No connection is left, and no caller had to wait for a time limit.
    wait_for("no connection", || {
        scrape(&mut admin)["medfeed_connections"] == 0.0
    });
    assert!(
        begun.elapsed() < Duration::from_secs(20),
        "{:?}",
        begun.elapsed()
    );
    // An incomplete request gets no answer.
    for request in words![
        "" "GET /v1/status HTTP/1.1\r\n" "GET /v1/status HTTP/1.1\r\nhost: x\r\n"
    ] {
        let mut stream = connect(server.address).unwrap();
        stream.write_all(request.as_bytes()).unwrap();
        stream.shutdown(Shutdown::Write).unwrap();
        let mut told = String::new();
        stream.read_to_string(&mut told).unwrap();
        assert!(!told.starts_with("HTTP/1.1 2"), "{request:?}: {told}");
    }
    server.stop();
}

#[test]
fn closing_the_sending_half_ends_a_wait() {
    let (site, key) = Site::open(3);
    let (server, mut admin) = serve_watched(&site, &[]);
    let token = server.client(&key).token("conferences");
    let request = server
        .client(&key)
        .request(&format!("/v1/conferences/changes?since={token}&wait=60"));
    let is_waiting =
        |count: f64| move |admin: &mut _| (scrape(admin)["medfeed_waiting"] == count).then_some(());
    let ended = |admin: &mut _| {
        scrape(admin)
            .get("medfeed_waits_ended_total{by=\"left\"}")
            .copied()
            .unwrap_or_default()
    };
    // The sending half is closed with the request, and while it waits.
    let begun = Instant::now();
    let answer = ask_and_close(&server, &request);
    assert!(
        answer.items().is_empty() && answer.json()["next_sync_token"] == token.as_str(),
        "{answer:?}"
    );
    let mut stream = connect(server.address).unwrap();
    stream.write_all(request.as_bytes()).unwrap();
    wait_until("it waits", SOON, || is_waiting(1.0)(&mut admin));
    stream.shutdown(Shutdown::Write).unwrap();
    assert!(read_to_end(stream).items().is_empty());
    assert!(
        begun.elapsed() < Duration::from_secs(20),
        "{:?}",
        begun.elapsed()
    );
    assert_eq!(ended(&mut admin), 2.0);
    // Callers that closed or reset their connection free their places.
    let gone: Vec<TcpStream> = (0..5)
        .map(|_| {
            let mut stream = connect(server.address).unwrap();
            stream.write_all(request.as_bytes()).unwrap();
            stream
        })
        .collect();
    wait_until("they wait", SOON, || is_waiting(5.0)(&mut admin));
    socket2::SockRef::from(&gone[0])
        .set_linger(Some(Duration::ZERO))
        .unwrap();
    drop(gone);
    wait_until("they left", SOON, || is_waiting(0.0)(&mut admin));
    wait_for("no connection", || {
        scrape(&mut admin)["medfeed_connections"] == 0.0
    });
    server.stop();
}

#[test]
fn a_half_closed_https_connection_is_answered() {
    let authority = Authority::new();
    let site = site_with(&authority.pair());
    let server = site.serve_with("--tls-cert cert.pem --tls-key key.pem");
    let caller = authority.caller(&tokio_rustls::rustls::version::TLS13);
    // With TLS's own end, and without.
    for says_goodbye in [true, false] {
        let mut connection = shake_hands(server.address, &caller).unwrap();
        connection
            .write_all(b"GET /v1/status HTTP/1.1\r\nhost: feed.example.org\r\n\r\n")
            .unwrap();
        if says_goodbye {
            connection.conn.send_close_notify();
        }
        connection.flush().unwrap();
        connection.sock.shutdown(Shutdown::Write).unwrap();
        let answer = read_answer(&mut BufReader::new(connection), false).expect("an answer");
        assert_eq!(answer.status, 200, "{says_goodbye}");
    }
    server.stop();
}
