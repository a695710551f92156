//! Limits of a server for each caller: time, size, connections.

use std::io::{self, BufReader, Read, Write};
use std::net::{IpAddr, TcpStream};
use std::sync::Barrier;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use super::client::{Client, ask, connect, connect_from, is_closed, read_answer, read_head};
use super::limited::{command, serve};
use super::monitoring::{scrape, start_watched};
use super::restarts::large_site;
use super::site::{SOON, Server, Site, conferences_of_version, version_of, wait_for, wait_until};

const STATUS: &str = "GET /v1/status HTTP/1.1\r\nhost: x\r\n\r\n";

/// Beginnings of a request.
const BEGUN: [&str; 4] = words![
    "" "G" "GET /v1/status HTTP/1.1\r\n" "GET /v1/status HTTP/1.1\r\nhost: x\r\n"
];

/// Serves with the limits of connections, and with a listener for operators.
fn watched(site: &Site, limits: &str) -> (Server, Client) {
    let options = "--admin-listen 127.0.0.1:0 --log warn,medfeed=info";
    start_watched(site, command(site, limits, options))
}

/// Asserts that a connection gets an answer.
#[track_caller]
fn assert_served(connection: &mut BufReader<TcpStream>, what: &str) {
    let answer = ask(connection, STATUS).unwrap_or_else(|error| panic!("{what}: {error}"));
    assert_eq!(answer.status, 200, "{what}");
}

/// Sends a request from an address, with a receive buffer of some bytes.
fn send_from(
    source: [u8; 4],
    server: &Server,
    buffer: Option<usize>,
    request: &str,
) -> BufReader<TcpStream> {
    let mut stream = connect_from(IpAddr::from(source), server.address, buffer).unwrap();
    stream.write_all(request.as_bytes()).unwrap();
    BufReader::new(stream)
}

/// Checks that 300 ms have passed, with room for a busy machine.
fn assert_300ms(since: Instant, case: &str) {
    let took = since.elapsed();
    let is_in_time = (250..3000).contains(&took.as_millis());
    assert!(is_in_time, "{case}: closed after {took:?}");
}

#[test]
fn a_connection_without_a_whole_head_in_time_is_closed() {
    let site = Site::with(3);
    let server = serve(&site, "request=300ms", "");
    for begun in BEGUN {
        let mut stream = connect(server.address).unwrap();
        let since = Instant::now();
        stream.write_all(begun.as_bytes()).unwrap();
        let mut told = Vec::new();
        // The connection may be closed or reset.
        let _ = stream.read_to_end(&mut told);
        assert_300ms(since, begun);
        assert!(!told.starts_with(b"HTTP/1.1 2"), "{begun:?} is no request");
    }
    // A connection without a further request is closed, too.
    for requests in 1..=3 {
        let mut idle = BufReader::new(connect(server.address).unwrap());
        (0..requests).for_each(|_| assert_served(&mut idle, "idle"));
        let since = Instant::now();
        let closed = is_closed(&mut idle, SOON);
        assert!(closed, "still open after {requests} requests");
        assert_300ms(since, "idle");
    }
    // One byte at a time does not extend the time limit, for the first request and for a second one.
    for first in [false, true] {
        let mut stream = BufReader::new(connect(server.address).unwrap());
        if !first {
            assert_served(&mut stream, "the first request");
        }
        let mut stream = stream.into_inner();
        stream
            .set_read_timeout(Some(Duration::from_millis(30)))
            .unwrap();
        let since = Instant::now();
        let mut bytes = STATUS.bytes().chain(std::iter::repeat(b'x'));
        loop {
            let sent = stream.write_all(&[bytes.next().unwrap()]);
            if sent.is_err() || is_closed(&mut stream, Duration::ZERO) {
                break;
            }
            assert!(since.elapsed() < SOON, "the connection is still open");
        }
        assert_300ms(since, "byte by byte");
    }
    server.stop();
}

#[test]
fn a_connection_that_reads_an_answer_is_not_idle() {
    let (site, key) = large_site();
    let server = serve(&site, "request=300ms", "");
    let (mut slow, length) = begin_export(&server, &key, [127, 0, 0, 1]);
    // Longer than a caller may be idle, or send a head.
    std::thread::sleep(Duration::from_millis(900));
    slow.read_exact(&mut vec![0; length])
        .expect("the rest of the answer");
    assert_served(&mut slow, "a request after the answer");
    server.stop();
}

/// Requests an export from an address, with a small receive buffer, and reads its head. Also returns the length of its
/// body.
fn begin_export(server: &Server, key: &str, source: [u8; 4]) -> (BufReader<TcpStream>, usize) {
    let request = server.client(key).request("/v1/exports/conferences");
    let mut stream = send_from(source, server, Some(16 << 10), &request);
    let (status, headers) = read_head(&mut stream).unwrap();
    assert_eq!(status, 200);
    let mut headers = headers.iter();
    let length = headers.find(|(name, _)| name.eq_ignore_ascii_case("content-length"));
    let length = length.expect("a length").1.parse().expect("a number");
    (stream, length)
}

/// Reads the rest of an export in pieces of some bytes, with pauses of 20 ms while `is_slow` returns true.
fn read_slowly(stream: &mut impl Read, mut left: usize, piece: usize, is_slow: impl Fn() -> bool) {
    let mut bytes = vec![0; piece];
    while left > 0 {
        let next = left.min(piece);
        let read = stream.read_exact(&mut bytes[..next]);
        read.expect("the answer comes whole");
        left -= next;
        if is_slow() {
            std::thread::sleep(Duration::from_millis(20));
        }
    }
}

#[test]
fn a_reader_that_reads_nothing_is_closed_and_a_slow_one_is_served() {
    let (site, key) = large_site();
    let server = serve(&site, "response=500ms", "--log debug");
    let begin = || begin_export(&server, &key, [127, 0, 0, 1]);
    let (mut stalled, length) = begin();
    std::thread::scope(|scope| {
        let slow = scope.spawn(|| {
            let (mut slow, length) = begin();
            let since = Instant::now();
            read_slowly(&mut slow, length, length.div_ceil(75), || true);
            since.elapsed()
        });
        let since = Instant::now();
        server.wait_for_log("closed a connection");
        let took = since.elapsed();
        assert!(took < Duration::from_secs(5), "after {took:?}");
        let took = slow.join().expect("the slow reader");
        assert!(took > Duration::from_millis(1200), "{took:?} is not slow");
    });
    let mut taken = Vec::new();
    // The connection may be closed or reset.
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

/// Like `served_from`, where another connection of the address must be closed first. On a busy machine the server may
/// record late that an answer is sent. While all of them are being answered, a further one is refused.
fn served_in_time_from(server: &Server, source: [u8; 4]) -> BufReader<TcpStream> {
    wait_until("one of its own makes room", SOON, || {
        served_from(server, source).ok()
    })
}

/// Checks that one connection is closed, removes it, and checks that the others stay.
fn assert_one_closed(held: &mut Vec<BufReader<TcpStream>>, case: &str) {
    let set_timeout = |held: &[BufReader<TcpStream>], time| {
        held.iter()
            .for_each(|connection| connection.get_ref().set_read_timeout(Some(time)).unwrap());
    };
    set_timeout(held, Duration::from_millis(20));
    let closed = wait_until(&format!("{case}: one is closed"), SOON, || {
        held.iter_mut()
            .position(|connection| is_closed(connection, Duration::ZERO))
    });
    held.remove(closed);
    set_timeout(held, SOON);
    for connection in held {
        assert_served(connection, case);
    }
}

#[test]
fn an_address_makes_room_among_its_own() {
    const HERE: [u8; 4] = [127, 0, 0, 1];
    let site = Site::with(3);
    let server = serve(&site, "per-address=2", "");
    let open = |source| served_from(&server, source).unwrap();
    let mut others = [[127, 0, 0, 2], [127, 0, 0, 3]].map(open);
    let mut held = vec![open(HERE), open(HERE)];
    for round in 0..5 {
        held.push(served_in_time_from(&server, HERE));
        assert_one_closed(&mut held, &format!("round {round}"));
    }
    for other in &mut others {
        assert_served(other, "other addresses lose nothing");
    }
    server.stop();

    let proxied = serve(&site, "per-address=2", "--trusted-proxy 127.0.0.1/32");
    let mut of_proxy: Vec<_> = (0..6)
        .map(|_| served_from(&proxied, HERE).unwrap())
        .collect();
    let mut direct: Vec<_> = (0..3)
        .map(|_| served_in_time_from(&proxied, [127, 0, 0, 2]))
        .collect();
    assert_one_closed(&mut direct, "an address that is no proxy has two");
    for connection in &mut of_proxy {
        assert_served(connection, "a proxy has any number");
    }
    proxied.stop();
}

#[test]
fn half_open_connections_do_not_block_new_callers() {
    let (site, key) = Site::open(3);
    // From the customer's own address, and from many. No time limit of a connection ends during the test.
    for (limits, addresses, message) in cases![
        "per-address=8 request=300s", 1, "an address has reached its connection limit";
        "connections=4 request=300s", 40, "all connection slots are taken";
    ] {
        let server = serve(&site, limits, "");
        let mut kept = server.client(&key);
        assert_eq!(kept.get("/v1/conferences/1").status, 200);
        let mut crowd = Vec::new();
        for number in 0_u8..40 {
            let source = [127, 0, u8::from(addresses > 1), 1 + number % addresses];
            let begun = BEGUN[usize::from(number) % 4];
            crowd.push(send_from(source, &server, None, begun));
            if number % 10 == 9 {
                let answer = server.client(&key).try_get("/v1/conferences/1");
                let answer = answer.expect("a fresh connection");
                assert_eq!(answer.status, 200, "{number}");
            }
        }
        drop(crowd);
        let warnings = server.stop_and_read().matches(message).count();
        assert_eq!(warnings, 1, "{limits}");
    }
}

#[test]
fn a_download_at_a_good_rate_keeps_its_slot() {
    let (site, key) = large_site();
    let server = serve(&site, "per-address=2 poll-grace=100ms", "");
    let began = Barrier::new(3);
    let tried = AtomicBool::new(false);
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                let (mut stream, length) = begin_export(&server, &key, [127, 0, 0, 1]);
                began.wait();
                let is_slow = || !tried.load(Ordering::Relaxed);
                read_slowly(&mut stream, length, 32 << 10, is_slow);
            });
        }
        began.wait();
        let third = served_from(&server, [127, 0, 0, 1]);
        assert!(third.is_err(), "a third connection");
        served_from(&server, [127, 0, 0, 2]).expect("another address");
        tried.store(true, Ordering::Relaxed);
    });
    server.stop();
}

/// Reads some bytes every 20 ms, until the end or until `stop` returns true.
fn trickle(stream: &mut impl Read, bytes: usize, stop: impl Fn() -> bool) -> io::Result<usize> {
    let mut piece = vec![0; bytes];
    let mut taken = 0;
    while !stop() {
        match stream.read(&mut piece)? {
            0 => break,
            much => taken += much,
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    Ok(taken)
}

#[test]
fn a_reader_below_the_least_rate_is_closed() {
    let (site, key) = large_site();
    let (server, mut admin) = watched(&site, "response=1s");
    let begin = || begin_export(&server, &key, [127, 0, 0, 1]);
    std::thread::scope(|scope| {
        // 1 MB a second is enough, however long it takes. 25 KB a second is not, although bytes arrive all the time.
        let slow = scope.spawn(|| {
            let begun = Instant::now();
            let _ = trickle(&mut begin().0, 500, || begun.elapsed() > SOON);
            assert!(begun.elapsed() < SOON, "not closed");
        });
        let (mut fast, length) = begin();
        // Long enough for several checks of the rate.
        let begun = Instant::now();
        let is_slow = || begun.elapsed() < Duration::from_secs(4);
        read_slowly(&mut fast, length, 20_000, is_slow);
        slow.join().expect("the slow one");
    });
    let samples = scrape(&mut admin);
    let closed = "medfeed_connections_given_up_total{reason=\"slow\",cause=\"timeout\"}";
    assert_eq!(samples[closed], 1.0, "{samples:#?}");
    server.stop();
}

#[test]
fn slow_readers_do_not_block_new_callers() {
    let (site, key) = large_site();
    let (_, slow_key) = site.key("all", &[]);
    let anonymous = "GET /openapi.json HTTP/1.1\r\nhost: x\r\n\r\n".repeat(350);
    let of_customer = Client::new(([127, 0, 0, 1], 80).into(), Some(&slow_key))
        .request("/v1/conferences/changes?limit=500")
        .repeat(20);
    // Without a key, eight from each address, so that a customer has fewer connections, even if its last one is still
    // open. Then with a key. The numbers: of connections, of addresses, and of bytes that are read every 20 ms.
    let cases = cases![
        "connections=24", anonymous, (48_u8, 6, 16);
        "connections=24 per-address=6", of_customer, (30, 5, 80);
    ];
    for (limits, requests, (crowd, addresses, bytes)) in cases {
        let (server, mut admin) = watched(&site, limits);
        let (done, begun) = (AtomicBool::new(false), Instant::now());
        // The attack also ends when the test fails.
        let is_over = || done.load(Ordering::Relaxed) || begun.elapsed() > 3 * SOON;
        std::thread::scope(|scope| {
            for number in 0..crowd {
                let (server, requests, is_over) = (&server, &requests, &is_over);
                scope.spawn(move || {
                    // An attacker whose connection was closed connects again.
                    while !is_over() {
                        let source = IpAddr::from([127, 0, 1, 1 + number % addresses]);
                        let mut stream =
                            connect_from(source, server.address, Some(4 << 10)).unwrap();
                        let _ = stream.write_all(requests.as_bytes());
                        let _ = trickle(&mut stream, bytes, is_over);
                    }
                });
            }
            wait_for("slow readers hold all slots", || {
                scrape(&mut admin)["medfeed_connections"] >= 24.0
            });
            let asked = Instant::now();
            for round in 0..20 {
                let answer = server.client(&key).try_get("/v1/conferences/1");
                let answer = answer.unwrap_or_else(|error| panic!("round {round}: {error}"));
                assert_eq!(answer.status, 200, "round {round}");
            }
            let took = asked.elapsed();
            assert!(took < SOON, "{limits}: 20 callers waited {took:?}");
            if limits == "connections=24" {
                wait_for("slow ones are closed", || {
                    let samples = scrape(&mut admin);
                    let slow =
                        "medfeed_connections_given_up_total{reason=\"slow\",cause=\"capacity\"}";
                    let at_limit = "medfeed_connections_at_limit_total{limit=\"total\"}";
                    samples[slow] > 0.0 && samples[at_limit] > 0.0
                });
            }
            done.store(true, Ordering::Relaxed);
        });
        let log = server.stop_and_read();
        let warnings = log.matches("all connection slots are taken").count();
        assert!(warnings == 1 || limits != "connections=24", "{log}");
    }
}

/// Opens a page of an office: its own files, an export, then a long poll. Returns the connection of the long poll.
fn open_page(server: &Server, key: &str, source: [u8; 4]) -> io::Result<BufReader<TcpStream>> {
    let client = server.client(key);
    let mut stream = BufReader::new(connect_from(IpAddr::from(source), server.address, None)?);
    for target in ["/", "/explorer/app.js", "/v1/exports/journals"] {
        let answer = ask(&mut stream, &client.request(target))?;
        assert_eq!(answer.status, 200, "{target}");
        if let Some(token) = answer.header("x-sync-token") {
            let poll = client.request(&format!("/v1/journals/changes?since={token}&wait=40"));
            stream.get_mut().write_all(poll.as_bytes())?;
        }
    }
    Ok(stream)
}

#[test]
fn the_pages_of_an_office_load_although_it_has_more_than_its_address_may_have() {
    const OFFICE: [u8; 4] = [127, 0, 3, 1];
    let (site, key) = Site::open(3);
    let (server, mut admin) = watched(&site, "per-address=6 poll-grace=1s");
    // One after the other, so that the first ones wait longest.
    let mut pages = Vec::new();
    for count in 1..=6 {
        pages.push(open_page(&server, &key, OFFICE).expect("within the limit"));
        wait_for("it waits", || {
            scrape(&mut admin)["medfeed_waiting"] == f64::from(count)
        });
    }
    // Three more at once. None closes another one that is loading.
    std::thread::scope(|scope| {
        let more: Vec<_> = (0..3)
            .map(|_| scope.spawn(|| open_page(&server, &key, OFFICE)))
            .collect();
        for page in more {
            pages.push(page.join().expect("a page").expect("it is loaded"));
        }
    });
    // The longest of the long polls were answered early.
    for page in &mut pages[..3] {
        let answer = read_answer(page, false).expect("its empty page");
        assert_eq!(answer.items().len(), 0);
        assert_eq!(answer.header("connection"), Some("close"));
    }
    wait_for("the others wait", || {
        scrape(&mut admin)["medfeed_waiting"] == 6.0
    });
    let samples = scrape(&mut admin);
    assert_eq!(samples["medfeed_connections_refused_total"], 0.0);
    assert_eq!(samples["medfeed_waits_ended_total{by=\"capacity\"}"], 3.0);
    server.stop();
}

#[test]
fn the_connection_that_idles_longest_makes_room() {
    let site = Site::with(3);
    let server = serve(&site, "connections=3", "");
    let mut held = Vec::new();
    for number in 0..3 {
        held.push(served_from(&server, [127, 0, 0, 1 + number]).unwrap());
    }
    // The others send further requests, so the second one is idle for longest. They do so more than once, because on a
    // busy machine a server's thread may record late that an answer is sent.
    for number in [0, 2].repeat(5) {
        assert_served(&mut held[number], "a further request");
    }
    let _fourth = served_from(&server, [127, 0, 0, 9]).expect("a slot is made free");
    let closed = is_closed(&mut held[1], SOON);
    assert!(closed, "the connection that idled longest");
    for number in [0, 2] {
        assert_served(&mut held[number], "the others stay");
    }
    server.stop();
}

#[test]
fn a_connection_that_is_served_keeps_its_slot() {
    let (site, key) = large_site();
    let server = serve(&site, "connections=2", "");
    let begin = |number| begin_export(&server, &key, [127, 0, 0, number]);
    let mut taking = [2, 3].map(begin);
    let mut third = BufReader::new(connect(server.address).unwrap());
    let set_timeout =
        |third: &BufReader<TcpStream>, time| third.get_ref().set_read_timeout(Some(time)).unwrap();
    // Longer than an idle connection keeps its slot.
    set_timeout(&third, Duration::from_millis(1500));
    let tried = AtomicBool::new(false);
    std::thread::scope(|scope| {
        for (stream, length) in &mut taking {
            let is_slow = || !tried.load(Ordering::Relaxed);
            scope.spawn(move || read_slowly(stream, *length, 32 << 10, is_slow));
        }
        let waits = ask(&mut third, STATUS).expect_err("no slot").kind();
        tried.store(true, Ordering::Relaxed);
        let is_timeout = [io::ErrorKind::WouldBlock, io::ErrorKind::TimedOut].contains(&waits);
        assert!(is_timeout, "{waits}");
    });
    set_timeout(&third, SOON);
    let answer = read_answer(&mut third, false).expect("its turn");
    assert_eq!(answer.status, 200);
    let open = taking.map(|(mut stream, _)| ask(&mut stream, STATUS).is_ok());
    assert_ne!(open, [true, true], "two slots for three");
    server.stop();
}

#[test]
fn connections_leave_open_files_for_the_database() {
    let (site, key) = Site::open(3);
    let start = |command| site.start(site.in_shell("ulimit -n 80; exec \"$@\"", &command));
    let server = start(site.serve_command(""));
    let connect = |number: u8| {
        let source = IpAddr::from([127, 0, 1, 1 + number % 4]);
        connect_from(source, server.address, None).unwrap()
    };
    let crowd: Vec<_> = (0..120).map(connect).collect();
    let mut served = server.client(&key);
    for version in 1..=3 {
        site.import("conferences.jsonl", conferences_of_version(3, version));
        wait_for("the import is served", || {
            let answer = served.get("/v1/conferences/1");
            version_of([&answer.json()["data"]]) == version
        });
    }
    // A command that reads and one that writes, while the server is full.
    site.json(["license", "list"]);
    site.license("more", "--dataset journals");
    drop((served, crowd));
    let since = Instant::now();
    assert_eq!(server.client(&key).get("/v1/conferences").status, 200);
    let took = since.elapsed();
    assert!(
        took < Duration::from_secs(2),
        "a new caller waited {took:?}"
    );
    let log = server.stop_and_read();
    assert!(!log.contains("could not be accepted"), "{log}");
    // The log warns that fewer connections are possible than usual.
    let warning =
        "the limit of open files allows 40 connections, fewer than 1024; raise LimitNOFILE";
    assert!(log.contains(warning), "{log}");
    let log = start(command(&site, "connections=40", "")).stop_and_read();
    assert!(!log.contains("open files"), "{log}");
}

#[test]
fn a_server_that_may_open_few_files_answers_and_warns_once() {
    let (site, key) = Site::open(3);
    for files in [40, 52] {
        let script = format!("ulimit -n {files}; exec \"$@\"");
        let inner = site.serve_command("--admin-listen 127.0.0.1:0 --log info");
        let (server, admin) = start_watched(&site, site.in_shell(&script, &inner));
        // More than the files. Those of operators have no limit of their own.
        let mut held: Vec<_> = (0..12).map(|_| connect(admin.address()).unwrap()).collect();
        held.extend((0..24).map(|number| {
            let source = IpAddr::from([127, 0, 5, 1 + number % 6]);
            connect_from(source, server.address, None).unwrap()
        }));
        for round in 0..5 {
            let begun = Instant::now();
            for (key, target) in [(None, "/v1/status"), (Some(&*key), "/v1/conferences/1")] {
                // A connection may be closed for a newer one before it has sent its request. A client tries again.
                let answer = (0..5)
                    .find_map(|_| Client::new(server.address, key).try_get(target).ok())
                    .unwrap_or_else(|| panic!("{files} {round} {target}: no answer"));
                assert_eq!(answer.status, 200, "{files} {round} {target}");
            }
            let took = begun.elapsed();
            assert!(took < SOON, "{files} {round}: {took:?}");
        }
        drop(held);
        let log = server.stop_and_read();
        let warnings = ["could not be accepted", "all connection slots are taken"]
            .map(|text| log.matches(text).count());
        assert!(warnings.iter().all(|count| *count <= 1), "{log}");
    }
}

#[test]
fn a_key_is_checked_again_after_a_wait() {
    let (site, _) = large_site();
    let keys = ["one", "two", "late"].map(|name| {
        site.license(name, "--dataset conferences");
        site.key(name, &[])
    });
    let server = serve(&site, "exports=1", "");
    let send = |key: &str, target: &str| {
        let request = server.client(key).request(target);
        send_from([127, 0, 0, 1], &server, None, &request)
    };
    // Exports of other keys hold the permits.
    let [export, csv] = words!["/v1/exports/conferences" "/v1/exports/conferences?format=csv"];
    let both = |(_, key): &(String, String)| [send(key, export), send(key, csv)];
    let mut others: Vec<_> = keys[..2].iter().flat_map(both).collect();
    let (id, key) = &keys[2];
    let mut late = send(key, export);
    let mut later = send(key, csv);
    site.json(["key", "revoke", id]);
    for stream in [&late, &later] {
        stream.get_ref().set_nonblocking(true).unwrap();
        let peeked = stream.get_ref().peek(&mut [0]);
        stream.get_ref().set_nonblocking(false).unwrap();
        assert!(peeked.is_err(), "it waits until the key is revoked");
    }
    for stream in [&mut late, &mut later] {
        let answer = read_answer(stream, false).unwrap();
        answer.assert_problem(401, "revoked_api_key");
    }
    for stream in &mut others {
        assert_eq!(read_answer(stream, false).unwrap().status, 200);
    }
    server.stop();
}
