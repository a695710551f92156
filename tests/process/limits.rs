//! What a caller may use of a server: time, size, connections.

use std::io::{self, BufReader, Read, Write};
use std::net::{IpAddr, Ipv4Addr, TcpStream};
use std::time::{Duration, Instant};

use super::client::{ask, connect, connect_from, is_closed, read_answer, read_head};
use super::site::{SOON, Server, Site, conferences_of_version, version_of, wait_until};
use super::stopping::large_conferences;

const STATUS: &str = "GET /v1/status HTTP/1.1\r\nhost: x\r\n\r\n";

/// A site with a few records.
fn small_site() -> Site {
    let site = Site::new();
    site.import("conferences.jsonl", conferences_of_version(3, 0));
    site
}

/// Holds that the time is 300 ms, give or take what a busy machine needs.
fn assert_300ms(since: Instant, case: &str) {
    let took = since.elapsed();
    assert!((250..3000).contains(&took.as_millis()), "{case}: closed after {took:?}");
}

#[test]
fn a_head_comes_in_time_or_not_at_all() {
    let site = small_site();
    let server = site.serve_with("--header-timeout 300ms");
    for begun in ["", "G", "GET /v1/status HTTP/1.1\r\n", "GET /v1/status HTTP/1.1\r\nhost: x\r\n"] {
        let mut stream = connect(server.address).unwrap();
        let since = Instant::now();
        stream.write_all(begun.as_bytes()).unwrap();
        let mut told = Vec::new();
        // It may be closed or reset.
        let _ = stream.read_to_end(&mut told);
        assert_300ms(since, begun);
        assert!(!told.starts_with(b"HTTP/1.1 2"), "{begun:?} is no request");
    }
    // One byte at a time wins no more of it; neither does it for a second request.
    for first in [false, true] {
        let mut stream = BufReader::new(connect(server.address).unwrap());
        if !first {
            assert_eq!(ask(&mut stream, STATUS).unwrap().status, 200);
        }
        let mut stream = stream.into_inner();
        stream.set_read_timeout(Some(Duration::from_millis(30))).unwrap();
        let since = Instant::now();
        let mut bytes = STATUS.bytes().chain(std::iter::repeat(b'x'));
        loop {
            let sent = stream.write_all(&[bytes.next().unwrap()]);
            if sent.is_err() || is_closed(&mut stream, Duration::ZERO) {
                break;
            }
            assert!(bytes.size_hint().0 > 0 && since.elapsed() < SOON, "it goes on");
        }
        assert_300ms(since, "byte by byte");
    }
    server.stop();
}

#[test]
fn who_asks_no_more_is_closed() {
    let site = small_site();
    // A header timeout that closes nothing in the time of the test.
    let server = site.serve_with("--idle-timeout 300ms --header-timeout 60s");
    for requests in 1..=3 {
        let mut idle = BufReader::new(connect(server.address).unwrap());
        idle.get_ref().set_read_timeout(Some(Duration::from_secs(3))).unwrap();
        for _ in 0..requests {
            assert_eq!(ask(&mut idle, STATUS).unwrap().status, 200);
        }
        let since = Instant::now();
        assert!(is_closed(&mut idle, SOON), "still open after {requests} requests");
        assert_300ms(since, "idle");
    }
    server.stop();
}

#[test]
fn who_still_takes_an_answer_is_not_idle() {
    let site = Site::new();
    site.import("conferences.jsonl", large_conferences());
    let key = site.open_key();
    let server = site.serve_with("--idle-timeout 300ms --header-timeout 300ms");
    let slow = connect_from(Ipv4Addr::LOCALHOST.into(), server.address, Some(16 << 10)).unwrap();
    let mut slow = BufReader::new(slow);
    slow.get_mut().write_all(server.client(&key).request("/v1/exports/conferences").as_bytes()).unwrap();
    let (_, headers) = read_head(&mut slow).unwrap();
    // More time passes than a caller may be idle, or send a head.
    std::thread::sleep(Duration::from_millis(900));
    let mut body = vec![0; length_of(&headers)];
    slow.read_exact(&mut body).expect("the answer goes on");
    assert_eq!(ask(&mut slow, STATUS).expect("and then another request").status, 200);
    server.stop();
}

fn length_of(headers: &[(String, String)]) -> usize {
    let length = headers.iter().find(|(name, _)| name.eq_ignore_ascii_case("content-length"));
    length.expect("a length").1.parse().expect("a number")
}

#[test]
fn who_takes_nothing_is_closed_but_not_who_is_slow() {
    let site = Site::new();
    site.import("conferences.jsonl", large_conferences());
    let key = site.open_key();
    let server = site.serve_with("--write-timeout 500ms --log debug");
    let request = server.client(&key).request("/v1/exports/conferences");
    let begin = || {
        let stream = connect_from(Ipv4Addr::LOCALHOST.into(), server.address, Some(32 << 10)).unwrap();
        let mut stream = BufReader::new(stream);
        stream.get_mut().write_all(request.as_bytes()).unwrap();
        let (status, headers) = read_head(&mut stream).unwrap();
        assert_eq!(status, 200);
        (stream, length_of(&headers))
    };
    let (mut stalled, length) = begin();
    std::thread::scope(|scope| {
        let slow = scope.spawn(|| {
            let (mut slow, length) = begin();
            let since = Instant::now();
            let mut piece = vec![0; length.div_ceil(60)];
            let mut left = length;
            while left > 0 {
                let next = left.min(piece.len());
                slow.read_exact(&mut piece[..next]).expect("a slow reader is served to the end");
                left -= next;
                std::thread::sleep(Duration::from_millis(25));
            }
            since.elapsed()
        });
        let since = Instant::now();
        server.wait_for_log("a connection broke");
        assert!(since.elapsed() < Duration::from_secs(5), "after {:?}", since.elapsed());
        let took = slow.join().expect("the slow reader");
        assert!(took > Duration::from_millis(1200), "{took:?} is not slow");
    });
    let mut taken = Vec::new();
    // It may be closed or reset.
    let _ = stalled.read_to_end(&mut taken);
    assert!(taken.len() < length, "the stalled reader got everything");
    server.stop();
}

/// A connection from an address, after its first answer.
fn served_from(server: &Server, source: [u8; 4]) -> io::Result<BufReader<TcpStream>> {
    let mut connection = BufReader::new(connect_from(IpAddr::from(source), server.address, None)?);
    let answer = ask(&mut connection, STATUS)?;
    assert_eq!(answer.status, 200);
    Ok(connection)
}

#[test]
fn one_address_has_so_many_connections() {
    const HERE: [u8; 4] = [127, 0, 0, 1];
    let site = small_site();
    let server = site.serve_with("--max-connections-per-address 2");
    let first = served_from(&server, HERE).unwrap();
    let _second = served_from(&server, HERE).unwrap();
    for _ in 0..3 {
        assert!(served_from(&server, HERE).is_err(), "a third connection");
        served_from(&server, [127, 0, 0, 2]).expect("another address");
    }
    drop(first);
    let _third = wait_until("a place is free again", SOON, || served_from(&server, HERE).ok());
    server.stop();

    let proxied = site.serve_with("--max-connections-per-address 2 --trusted-proxy 127.0.0.1/32");
    let held: Vec<_> = (0..6).map(|_| served_from(&proxied, HERE).expect("a proxy has any number")).collect();
    let _others = [[127, 0, 0, 2]; 2].map(|source| served_from(&proxied, source).unwrap());
    assert!(served_from(&proxied, [127, 0, 0, 2]).is_err(), "who is no proxy has two");
    drop(held);
    proxied.stop();
}

#[test]
fn who_idles_longest_makes_room() {
    let site = small_site();
    let server = site.serve_with("--max-connections 3");
    let mut held = Vec::new();
    for number in 0..3 {
        held.push(served_from(&server, [127, 0, 0, 1 + number]).unwrap());
    }
    // The first one asks again: the second one is idle for longest now.
    assert_eq!(ask(&mut held[0], STATUS).unwrap().status, 200);
    let _fourth = served_from(&server, [127, 0, 0, 9]).expect("a place is made");
    assert!(is_closed(&mut held[1], SOON), "who idled longest");
    for number in [0, 2] {
        assert_eq!(ask(&mut held[number], STATUS).expect("the others stay").status, 200, "{number}");
    }
    server.stop();
}

#[test]
fn held_places_shut_nobody_out() {
    let site = small_site();
    let key = site.open_key();
    // No time limit of a connection is over before the test is.
    let server = site.serve_with("--max-connections 4 --header-timeout 300s --idle-timeout 300s");
    let begun = ["", "G", "GET /v1/status HTTP/1.1\r\n", "GET /v1/status HTTP/1.1\r\nhost: x\r\n"];
    for round in 0..3 {
        let crowd: Vec<_> = (0_u8..12)
            .map(|number| {
                let source = IpAddr::from([127, 0, 1, 1 + number]);
                let mut stream = connect_from(source, server.address, None).unwrap();
                stream.write_all(begun[usize::from(number) % 4].as_bytes()).unwrap();
                stream
            })
            .collect();
        let answer = server.client(&key).get("/v1/conferences/1");
        assert_eq!(answer.status, 200, "round {round}");
        drop(crowd);
    }
    server.stop();
}

#[test]
fn who_is_served_keeps_its_place() {
    let site = Site::new();
    site.import("conferences.jsonl", large_conferences());
    let key = site.open_key();
    let server = site.serve_with("--max-connections 2");
    let request = server.client(&key).request("/v1/exports/conferences");
    let mut taking: Vec<_> = (0..2)
        .map(|_| {
            let stream = connect_from(Ipv4Addr::LOCALHOST.into(), server.address, Some(16 << 10)).unwrap();
            let mut stream = BufReader::new(stream);
            stream.get_mut().write_all(request.as_bytes()).unwrap();
            let (status, headers) = read_head(&mut stream).unwrap();
            assert_eq!(status, 200);
            (stream, length_of(&headers))
        })
        .collect();
    let mut third = BufReader::new(connect(server.address).unwrap());
    // Longer than an idle connection keeps its place.
    third.get_ref().set_read_timeout(Some(Duration::from_millis(1500))).unwrap();
    let waits = ask(&mut third, STATUS).expect_err("no place");
    assert!(matches!(waits.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut), "{waits}");
    for (stream, length) in &mut taking {
        stream.read_exact(&mut vec![0; *length]).expect("the answer comes whole");
    }
    third.get_ref().set_read_timeout(Some(SOON)).unwrap();
    assert_eq!(read_answer(&mut third, false).expect("its turn").status, 200);
    let (first, second) = (taking.remove(0).0, taking.remove(0).0);
    let open = [first, second].map(|mut stream| ask(&mut stream, STATUS).is_ok());
    assert_ne!(open, [true, true], "two places for three");
    server.stop();
}

#[test]
fn heads_have_sizes() {
    let site = small_site();
    let server = site.serve_with("--max-header-bytes 8192 --max-headers 5 --max-uri-bytes 100");
    let headers = |count: usize| (1..count).map(|number| format!("x-{number}: 1\r\n")).collect::<String>();
    let long = |bytes: usize| format!("x-long: {}\r\n", "x".repeat(bytes));
    let target = |bytes: usize| format!("/v1/status?{}", "x".repeat(bytes - "/v1/status?".len()));
    let status = "/v1/status".to_owned();
    let cases = [
        ("5 headers", status.clone(), headers(5), 200),
        ("6 headers", status.clone(), headers(6), 431),
        ("50 headers", status.clone(), headers(50), 431),
        ("7,000 bytes", status.clone(), long(7000), 200),
        ("9,000 bytes", status.clone(), long(9000), 431),
        ("100,000 bytes", status, long(100_000), 431),
        ("a target of 100 bytes", target(100), String::new(), 400),
        ("a target of 101 bytes", target(101), String::new(), 414),
        ("a target of 5,000 bytes", target(5000), String::new(), 414),
    ];
    for (case, target, headers, expected) in cases {
        let mut stream = BufReader::new(connect(server.address).unwrap());
        let request = format!("GET {target} HTTP/1.1\r\nhost: x\r\n{headers}\r\n");
        // The server may answer before everything is sent.
        let _ = stream.get_mut().write_all(request.as_bytes());
        let answer = read_answer(&mut stream, false).unwrap_or_else(|error| panic!("{case}: {error}"));
        assert_eq!(answer.status, expected, "{case}: {}", String::from_utf8_lossy(&answer.body));
        if expected != 200 {
            answer.problem();
        }
    }
    let mut after = BufReader::new(connect(server.address).unwrap());
    assert_eq!(ask(&mut after, STATUS).unwrap().status, 200);
    server.stop();
    let done = site.ends(["serve", "--listen", "127.0.0.1:0", "--max-header-bytes", "8191"]);
    assert_eq!(done.code, Some(2), "{done:?}");
}

#[test]
fn connections_take_no_file_that_the_database_needs() {
    let site = small_site();
    let key = site.open_key();
    let server = site.start(site.in_shell("ulimit -n 80; exec \"$@\"", &site.serve_command("")));
    let crowd: Vec<_> = (0..120)
        .map(|number| connect_from(IpAddr::from([127, 0, 1, 1 + number % 4]), server.address, None).unwrap())
        .collect();
    let mut served = server.client(&key);
    for version in 1..=3 {
        site.import("conferences.jsonl", conferences_of_version(3, version));
        wait_until("the import is served", SOON, || {
            let answer = served.get("/v1/conferences/1");
            (version_of([&answer.json()["data"]]) == version).then_some(())
        });
    }
    // A command that reads and one that writes, while the server is full.
    site.json(["license", "list"]);
    site.license("more", "--dataset journals");
    drop((served, crowd));
    let since = Instant::now();
    assert_eq!(server.client(&key).get("/v1/conferences").status, 200);
    assert!(since.elapsed() < Duration::from_secs(2), "a new caller waited {:?}", since.elapsed());
    let log = server.stop_and_read();
    assert!(!log.contains("could not be accepted"), "{log}");
}
