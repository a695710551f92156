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

/// Checks that 300 ms have passed, with room for a busy machine.
fn assert_300ms(since: Instant, case: &str) {
    let took = since.elapsed();
    assert!(
        (250..3000).contains(&took.as_millis()),
        "{case}: closed after {took:?}"
    );
}

#[test]
fn a_connection_without_a_whole_head_in_time_is_closed() {
    let site = Site::with(3);
    let server = serve(&site, "request=300ms", "");
    for begun in [
        "",
        "G",
        "GET /v1/status HTTP/1.1\r\n",
        "GET /v1/status HTTP/1.1\r\nhost: x\r\n",
    ] {
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
        (0..requests).for_each(|_| assert_eq!(ask(&mut idle, STATUS).unwrap().status, 200));
        let since = Instant::now();
        assert!(
            is_closed(&mut idle, SOON),
            "still open after {requests} requests"
        );
        assert_300ms(since, "idle");
    }
    // One byte at a time does not extend the time limit, for the first request and for a second one.
    for first in [false, true] {
        let mut stream = BufReader::new(connect(server.address).unwrap());
        if !first {
            assert_eq!(ask(&mut stream, STATUS).unwrap().status, 200);
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
            assert!(
                bytes.size_hint().0 > 0 && since.elapsed() < SOON,
                "the connection is still open"
            );
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
    assert_eq!(
        ask(&mut slow, STATUS)
            .expect("and then another request")
            .status,
        200
    );
    server.stop();
}

/// Requests an export from an address, with a small receive buffer, and reads its head. Also returns the length of its
/// body.
fn begin_export(server: &Server, key: &str, source: [u8; 4]) -> (BufReader<TcpStream>, usize) {
    let mut stream =
        BufReader::new(connect_from(IpAddr::from(source), server.address, Some(16 << 10)).unwrap());
    stream
        .get_mut()
        .write_all(
            server
                .client(key)
                .request("/v1/exports/conferences")
                .as_bytes(),
        )
        .unwrap();
    let (status, headers) = read_head(&mut stream).unwrap();
    assert_eq!(status, 200);
    let length = headers
        .iter()
        .find(|(name, _)| name.eq_ignore_ascii_case("content-length"));
    (
        stream,
        length.expect("a length").1.parse().expect("a number"),
    )
}

/// Reads the rest of an export in pieces of some bytes, with pauses between them while `is_slow` returns true.
fn read_slowly(
    stream: &mut impl Read,
    mut left: usize,
    piece: usize,
    pause: Duration,
    is_slow: impl Fn() -> bool,
) {
    let mut bytes = vec![0; piece];
    while left > 0 {
        let next = left.min(piece);
        stream
            .read_exact(&mut bytes[..next])
            .expect("the answer comes whole");
        left -= next;
        if is_slow() {
            std::thread::sleep(pause);
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
            read_slowly(
                &mut slow,
                length,
                length.div_ceil(60),
                Duration::from_millis(25),
                || true,
            );
            since.elapsed()
        });
        let since = Instant::now();
        server.wait_for_log("closed a connection");
        assert!(
            since.elapsed() < Duration::from_secs(5),
            "after {:?}",
            since.elapsed()
        );
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
        assert_eq!(
            ask(connection, STATUS)
                .unwrap_or_else(|error| panic!("{case}: another: {error}"))
                .status,
            200
        );
    }
}

#[test]
fn an_address_makes_room_among_its_own() {
    const HERE: [u8; 4] = [127, 0, 0, 1];
    let site = Site::with(3);
    let server = serve(&site, "per-address=2", "");
    let mut others =
        [[127, 0, 0, 2], [127, 0, 0, 3]].map(|source| served_from(&server, source).unwrap());
    let mut held = vec![
        served_from(&server, HERE).unwrap(),
        served_from(&server, HERE).unwrap(),
    ];
    for round in 0..5 {
        held.push(served_in_time_from(&server, HERE));
        assert_one_closed(&mut held, &format!("round {round}"));
    }
    for other in &mut others {
        assert_eq!(
            ask(other, STATUS)
                .expect("other addresses lose nothing")
                .status,
            200
        );
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
        assert_eq!(
            ask(connection, STATUS)
                .expect("a proxy has any number")
                .status,
            200
        );
    }
    proxied.stop();
}

#[test]
fn half_open_connections_do_not_block_new_callers() {
    let (site, key) = Site::open(3);
    let begun = [
        "",
        "G",
        "GET /v1/status HTTP/1.1\r\n",
        "GET /v1/status HTTP/1.1\r\nhost: x\r\n",
    ];
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
            let source = IpAddr::from([127, 0, u8::from(addresses > 1), 1 + number % addresses]);
            let mut stream = connect_from(source, server.address, None).unwrap();
            stream
                .write_all(begun[usize::from(number) % 4].as_bytes())
                .unwrap();
            crowd.push(stream);
            if number % 10 == 9 {
                let mut fresh = server.client(&key);
                assert_eq!(
                    fresh
                        .try_get("/v1/conferences/1")
                        .expect("a fresh connection")
                        .status,
                    200,
                    "{number}"
                );
            }
        }
        drop(crowd);
        assert_eq!(
            server.stop_and_read().matches(message).count(),
            1,
            "{limits}"
        );
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
                read_slowly(
                    &mut stream,
                    length,
                    32 << 10,
                    Duration::from_millis(10),
                    is_slow,
                );
            });
        }
        began.wait();
        assert!(
            served_from(&server, [127, 0, 0, 1]).is_err(),
            "a third connection"
        );
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
    let (server, mut admin) = start_watched(
        &site,
        command(
            &site,
            "response=1s",
            "--admin-listen 127.0.0.1:0 --log info",
        ),
    );
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
        read_slowly(
            &mut fast,
            length,
            20_000,
            Duration::from_millis(20),
            is_slow,
        );
        slow.join().expect("the slow one");
    });
    let samples = scrape(&mut admin);
    assert_eq!(
        samples["medfeed_connections_given_up_total{reason=\"slow\",cause=\"timeout\"}"], 1.0,
        "{samples:#?}"
    );
    server.stop();
}

#[test]
fn slow_readers_do_not_block_new_callers() {
    let (site, key) = Site::open(3);
    let (server, mut admin) = start_watched(
        &site,
        command(
            &site,
            "connections=24",
            "--admin-listen 127.0.0.1:0 --log warn,medfeed=info",
        ),
    );
    let requests = "GET /openapi.json HTTP/1.1\r\nhost: x\r\n\r\n".repeat(350);
    let (done, begun) = (AtomicBool::new(false), Instant::now());
    // The attack also ends when the test fails.
    let is_over = || done.load(Ordering::Relaxed) || begun.elapsed() > 3 * SOON;
    std::thread::scope(|scope| {
        // Eight from each address, so that a customer has fewer connections, even if its last one is still open.
        for number in 0_u8..48 {
            let (server, requests, is_over) = (&server, &requests, &is_over);
            scope.spawn(move || {
                // An attacker whose connection was closed connects again.
                while !is_over() {
                    let source = IpAddr::from([127, 0, 1, 1 + number % 6]);
                    let mut stream = connect_from(source, server.address, Some(4 << 10)).unwrap();
                    let _ = stream.write_all(requests.as_bytes());
                    let _ = trickle(&mut stream, 16, is_over);
                }
            });
        }
        wait_for("slow readers hold all slots", || {
            scrape(&mut admin)["medfeed_connections"] >= 24.0
        });
        let asked = Instant::now();
        for round in 0..20 {
            let mut fresh = server.client(&key);
            let answer = fresh
                .try_get("/v1/conferences/1")
                .unwrap_or_else(|error| panic!("round {round}: {error}"));
            assert_eq!(answer.status, 200, "round {round}");
        }
        assert!(
            asked.elapsed() < SOON,
            "20 callers waited {:?}",
            asked.elapsed()
        );
        wait_for("slow ones are closed", || {
            let samples = scrape(&mut admin);
            let slow =
                samples["medfeed_connections_given_up_total{reason=\"slow\",cause=\"capacity\"}"];
            slow > 0.0 && samples["medfeed_connections_at_limit_total{limit=\"total\"}"] > 0.0
        });
        done.store(true, Ordering::Relaxed);
    });
    assert_eq!(
        server
            .logged()
            .matches("all connection slots are taken")
            .count(),
        1,
        "it is logged once"
    );
    server.stop();
}

#[test]
fn slow_readers_with_a_key_do_not_block_new_callers() {
    let (site, key) = large_site();
    let (_, slow_key) = site.key("all", &[]);
    let (server, mut admin) = start_watched(
        &site,
        command(
            &site,
            "connections=24 per-address=6",
            "--admin-listen 127.0.0.1:0 --log warn,medfeed=info",
        ),
    );
    let request = server
        .client(&slow_key)
        .request("/v1/conferences/changes?limit=500");
    let (done, begun) = (AtomicBool::new(false), Instant::now());
    // The attack also ends when the test fails.
    let is_over = || done.load(Ordering::Relaxed) || begun.elapsed() > 3 * SOON;
    std::thread::scope(|scope| {
        for number in 0_u8..30 {
            let (server, request, is_over) = (&server, &request, &is_over);
            scope.spawn(move || {
                while !is_over() {
                    let source = IpAddr::from([127, 0, 2, 1 + number % 5]);
                    let mut stream = connect_from(source, server.address, Some(4 << 10)).unwrap();
                    let _ = stream.write_all(request.repeat(20).as_bytes());
                    // 4 KB a second.
                    let _ = trickle(&mut stream, 80, is_over);
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
        assert!(
            asked.elapsed() < SOON,
            "20 callers waited {:?}",
            asked.elapsed()
        );
        done.store(true, Ordering::Relaxed);
    });
    server.stop();
}

/// Opens a page of an office: its own files, an export, then a long poll. Returns the connection of the long poll.
fn open_page(server: &Server, key: &str, source: [u8; 4]) -> io::Result<BufReader<TcpStream>> {
    let client = server.client(key);
    let mut stream = BufReader::new(connect_from(IpAddr::from(source), server.address, None)?);
    for target in ["/", "/explorer/app.js", "/v1/exports/journals"] {
        let answer = ask(&mut stream, &client.request(target))?;
        assert_eq!(answer.status, 200, "{target}");
        if let Some(token) = answer.header("x-sync-token") {
            let poll = format!("/v1/journals/changes?since={token}&wait=40");
            stream
                .get_mut()
                .write_all(client.request(&poll).as_bytes())?;
        }
    }
    Ok(stream)
}

#[test]
fn the_pages_of_an_office_load_although_it_has_more_than_its_address_may_have() {
    const OFFICE: [u8; 4] = [127, 0, 3, 1];
    let (site, key) = Site::open(3);
    let limits = "per-address=6 poll-grace=1s";
    let (server, mut admin) = start_watched(
        &site,
        command(
            &site,
            limits,
            "--admin-listen 127.0.0.1:0 --log warn,medfeed=info",
        ),
    );
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
            let page = page.join().expect("a page").expect("it is loaded");
            pages.push(page);
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
        assert_eq!(ask(&mut held[number], STATUS).unwrap().status, 200);
    }
    let _fourth = served_from(&server, [127, 0, 0, 9]).expect("a slot is made free");
    assert!(
        is_closed(&mut held[1], SOON),
        "the connection that idled longest"
    );
    for number in [0, 2] {
        assert_eq!(
            ask(&mut held[number], STATUS)
                .expect("the others stay")
                .status,
            200,
            "{number}"
        );
    }
    server.stop();
}

#[test]
fn a_connection_that_is_served_keeps_its_slot() {
    let (site, key) = large_site();
    let server = serve(&site, "connections=2", "");
    let mut taking: Vec<_> = (2..4)
        .map(|number| begin_export(&server, &key, [127, 0, 0, number]))
        .collect();
    let mut third = BufReader::new(connect(server.address).unwrap());
    // Longer than an idle connection keeps its slot.
    third
        .get_ref()
        .set_read_timeout(Some(Duration::from_millis(1500)))
        .unwrap();
    let tried = AtomicBool::new(false);
    std::thread::scope(|scope| {
        for (stream, length) in &mut taking {
            let is_slow = || !tried.load(Ordering::Relaxed);
            scope.spawn(move || {
                read_slowly(
                    stream,
                    *length,
                    32 << 10,
                    Duration::from_millis(10),
                    is_slow,
                );
            });
        }
        let waits = ask(&mut third, STATUS).expect_err("no slot");
        tried.store(true, Ordering::Relaxed);
        assert!(
            matches!(
                waits.kind(),
                io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut
            ),
            "{waits}"
        );
    });
    third.get_ref().set_read_timeout(Some(SOON)).unwrap();
    assert_eq!(
        read_answer(&mut third, false).expect("its turn").status,
        200
    );
    let (first, second) = (taking.remove(0).0, taking.remove(0).0);
    let open = [first, second].map(|mut stream| ask(&mut stream, STATUS).is_ok());
    assert_ne!(open, [true, true], "two slots for three");
    server.stop();
}

#[test]
fn connections_leave_open_files_for_the_database() {
    let (site, key) = Site::open(3);
    let start = |command| site.start(site.in_shell("ulimit -n 80; exec \"$@\"", &command));
    let server = start(site.serve_command(""));
    let crowd: Vec<_> = (0..120)
        .map(|number| {
            connect_from(
                IpAddr::from([127, 0, 1, 1 + number % 4]),
                server.address,
                None,
            )
            .unwrap()
        })
        .collect();
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
    assert!(
        since.elapsed() < Duration::from_secs(2),
        "a new caller waited {:?}",
        since.elapsed()
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
        let mut stream = BufReader::new(connect(server.address).unwrap());
        stream
            .get_mut()
            .write_all(server.client(key).request(target).as_bytes())
            .unwrap();
        stream
    };
    // Exports of other keys hold the permits.
    let [export, csv] = words!["/v1/exports/conferences" "/v1/exports/conferences?format=csv"];
    let mut others: Vec<_> = keys[..2]
        .iter()
        .flat_map(|(_, key)| [send(key, export), send(key, csv)])
        .collect();
    let (id, key) = &keys[2];
    let mut late = send(key, export);
    let mut later = send(key, csv);
    site.json(["key", "revoke", id]);
    for stream in [&late, &later] {
        stream.get_ref().set_nonblocking(true).unwrap();
        let peeked = stream.get_ref().peek(&mut [0]);
        stream.get_ref().set_nonblocking(false).unwrap();
        assert!(
            peeked.is_err(),
            "it waits for its permit until the key is revoked"
        );
    }
    for stream in [&mut late, &mut later] {
        let answer = read_answer(stream, false).unwrap();
        assert_eq!(
            (answer.status, answer.problem().as_str()),
            (401, "revoked_api_key")
        );
    }
    for stream in &mut others {
        assert_eq!(read_answer(stream, false).unwrap().status, 200);
    }
    server.stop();
}
