//! The end of a server, and one server after another, without a lost request between them.

use std::io::{BufReader, Read, Write};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixDatagram;
use std::process::Stdio;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use medfeed::model::{Conference, ConferenceFields, DateStatus, Id};
use medfeed::store::{Batch, Writer};

use super::client::{Answer, ask, connect, connect_from, read_answer, read_head};
use super::site::{Process, Random, SOON, Server, Site, assert_contains, noise, wait_for};

const STATUS: &str = "GET /v1/status HTTP/1.1\r\nhost: x\r\n\r\n";

/// Conferences of a large site.
const LARGE_RECORDS: u64 = 150;

/// A site whose export is too large for the buffers of sockets, because its venues hardly compress. Also returns a key
/// for it.
pub fn large_site() -> (Site, String) {
    static LARGE: OnceLock<(Vec<u8>, String)> = OnceLock::new();
    let (database, key) = LARGE.get_or_init(|| {
        let mut random = Random::new(1);
        // An import would also search the venues for misspellings.
        let mut batch = Batch::default();
        for id in 1..=LARGE_RECORDS {
            let fields = ConferenceFields {
                name: Some("C".to_owned()),
                venue: Some(noise(&mut random, 60_000)),
                start_date_status: Some(DateStatus::Check),
                abstract_due_date_status: Some(DateStatus::Check),
                late_breaking_due_date_status: Some(DateStatus::Check),
                ..ConferenceFields::default()
            };
            let id = Id::try_from(id).unwrap();
            batch
                .conferences
                .insert(id, Some(Conference::new(id, fields).unwrap()));
        }
        let site = Site::new();
        let writer = Writer::open_or_create(&site.db(), SOON).unwrap();
        let mut edit = writer.begin().unwrap();
        edit.apply(&batch).unwrap();
        edit.commit().unwrap();
        drop(writer);
        let key = site.open_key();
        (std::fs::read(site.db()).unwrap(), key)
    });
    let site = Site::new();
    site.write("feed.redb", database);
    (site, key.clone())
}

/// A site with one record.
fn small_site() -> Site {
    let site = Site::new();
    site.import("journals.jsonl", "{\"id\":1,\"name\":\"J\"}\n");
    site
}

#[test]
fn no_request_fails_while_servers_take_turns() {
    const CALLERS: usize = 3;
    let site = small_site();
    let mut server = site.serve_with("--reuse-port");
    let address = server.address;
    let stop = AtomicBool::new(false);
    let answers: [AtomicUsize; CALLERS] = Default::default();
    std::thread::scope(|scope| {
        // A caller keeps its connection until the server announces its end. No connection may end otherwise.
        let callers = answers.each_ref().map(|answers| {
            let stop = &stop;
            scope.spawn(move || {
                let mut connection = None;
                while !stop.load(Ordering::Relaxed) {
                    let open = connection.get_or_insert_with(|| {
                        BufReader::new(connect(address).expect("connected"))
                    });
                    let answer = ask(open, STATUS).expect("an answer");
                    assert_eq!(answer.status, 200);
                    if answer.header("connection") == Some("close") {
                        connection = None;
                    }
                    answers.fetch_add(1, Ordering::Relaxed);
                }
            })
        });
        for round in 0..10 {
            let mut command = site.command(["serve", "--reuse-port", "--log", "warn", "--listen"]);
            command.arg(address.to_string());
            let next = site.start(command);
            std::mem::replace(&mut server, next).stop();
            let counts = answers
                .each_ref()
                .map(|answers| answers.load(Ordering::Relaxed));
            wait_for("all callers get answers", || {
                let now = answers
                    .each_ref()
                    .map(|answers| answers.load(Ordering::Relaxed));
                let failed = callers.iter().any(|caller| caller.is_finished());
                failed || now.iter().zip(counts).all(|(now, before)| *now > before)
            });
            if callers.iter().any(|caller| caller.is_finished()) {
                eprintln!("a caller failed in round {round}");
                break;
            }
        }
        stop.store(true, Ordering::Relaxed);
        for caller in callers {
            caller.join().expect("no request failed");
        }
    });
    server.stop();
}

#[test]
fn sharing_an_address_needs_the_consent_of_both() {
    let site = small_site();
    for (first, second) in [("", "--reuse-port"), ("--reuse-port", ""), ("", "")] {
        let server = site.serve_with(first);
        let address = server.address.to_string();
        let mut args = vec!["serve", "--listen", &address];
        args.extend(Some(second).filter(|option| !option.is_empty()));
        let done = site.ends(&args);
        assert_eq!(done.code, Some(1), "{first} {second}: {done:?}");
        assert_eq!(done.stdout.as_str(), "", "{first} {second}: {done:?}");
        done.assert_err(&address);
        done.assert_err("another program");
        server.stop();
    }
}

#[test]
fn a_closing_server_sends_connection_close() {
    let site = small_site();
    let mut server = site.serve();
    let mut kept = BufReader::new(connect(server.address).unwrap());
    assert_eq!(ask(&mut kept, STATUS).unwrap().header("connection"), None);
    let asked = Instant::now();
    server.process.signal("TERM");
    wait_for("the listener closes", || {
        TcpStream::connect(server.address).is_err()
    });
    wait_for("connection: close", || {
        let answer = ask(&mut kept, STATUS).expect("a last request is answered");
        assert_eq!(answer.status, 200);
        answer.header("connection") == Some("close")
    });
    let found = kept.read(&mut [0; 1]).unwrap_or(0);
    assert_eq!(found, 0, "and then it is closed");
    let status = server.process.ended_within(SOON).expect("the server ends");
    assert_eq!(status.code(), Some(0));
    assert!(
        asked.elapsed() < Duration::from_secs(5),
        "it took {:?}",
        asked.elapsed()
    );
}

#[test]
fn a_running_download_finishes_before_the_server_ends() {
    let (site, key) = large_site();
    for signal in ["TERM", "INT"] {
        let mut server = site.serve();
        let mut idle = connect(server.address).unwrap();
        let download =
            connect_from(Ipv4Addr::LOCALHOST.into(), server.address, Some(16 << 10)).unwrap();
        let mut download = BufReader::new(download);
        let request = server.client(&key).request("/v1/exports/conferences");
        download.get_mut().write_all(request.as_bytes()).unwrap();
        let (status, headers) = read_head(&mut download).unwrap();
        let mut answer = Answer {
            status,
            headers,
            body: Vec::new(),
        };
        let length: usize = answer.header("content-length").unwrap().parse().unwrap();
        assert!(length > 6 << 20, "{length} bytes may fit into buffers");

        server.process.signal(signal);
        wait_for("the listener closes", || {
            TcpStream::connect(server.address).is_err()
        });
        let mut nothing = [0; 1];
        idle.set_read_timeout(Some(SOON)).unwrap();
        let found = idle.read(&mut nothing).unwrap_or(0);
        assert_eq!(found, 0, "an idle connection is closed");
        let found = server.process.ended_within(Duration::from_millis(300));
        assert_eq!(found, None, "SIG{signal}: the download runs");

        answer.body.resize(length, 0);
        for piece in answer.body.chunks_mut(1 << 20) {
            download
                .read_exact(piece)
                .unwrap_or_else(|error| panic!("SIG{signal}: the download broke: {error}"));
        }
        assert_eq!(answer.lines().len() as u64, LARGE_RECORDS);
        let status = server.process.ended_within(SOON).expect("the server ends");
        assert_eq!(status.code(), Some(0), "SIG{signal}");
    }
}

#[test]
fn the_drain_time_ends_a_stalled_download() {
    let (site, key) = large_site();
    let mut server = site.serve_with("--drain-timeout 300ms");
    let stalled = connect_from(Ipv4Addr::LOCALHOST.into(), server.address, Some(16 << 10)).unwrap();
    let mut stalled = BufReader::new(stalled);
    let request = server.client(&key).request("/v1/exports/conferences");
    stalled.get_mut().write_all(request.as_bytes()).unwrap();
    let (status, _) = read_head(&mut stalled).unwrap();
    assert_eq!(status, 200);
    let asked = Instant::now();
    server.process.signal("TERM");
    let status = server.process.ended_within(SOON).expect("the server ends");
    assert_eq!(status.code(), Some(0));
    let took = asked.elapsed();
    assert!((250..5000).contains(&took.as_millis()), "it took {took:?}");
    let logged = server.logged();
    assert!(logged.contains("connections were cut off"), "{logged}");
}

/// Starts a server on a listener that it inherits, as systemd does.
fn activate(site: &Site, listener: &TcpListener) -> Server {
    let script = r#"exec 3<&0 0</dev/null; export LISTEN_PID=$$ LISTEN_FDS=1; exec "$@""#;
    // The given address is on another machine. The server must not listen on it.
    let inner = site.command(["serve", "--listen", "192.0.2.1:1", "--log", "warn"]);
    let mut command = site.in_shell(script, &inner);
    command.stdin(Stdio::from(OwnedFd::from(listener.try_clone().unwrap())));
    site.start(command)
}

#[test]
fn a_socket_that_was_passed_is_served() {
    let site = small_site();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    for round in 0..3 {
        // These arrive while no server runs, and wait in the socket's queue.
        let mut queued: Vec<_> = (0..5)
            .map(|_| BufReader::new(connect(address).unwrap()))
            .collect();
        for connection in &mut queued {
            connection.get_mut().write_all(STATUS.as_bytes()).unwrap();
        }
        let server = activate(&site, &listener);
        assert_eq!(server.address, address);
        let ignored = format!(
            "--listen (MEDFEED_LISTEN) 192.0.2.1:1 is ignored: systemd passed a socket that listens on {address}"
        );
        server.wait_for_log(&ignored);
        for connection in &mut queued {
            let answer = read_answer(connection, false)
                .unwrap_or_else(|error| panic!("round {round}: {error}"));
            assert_eq!(answer.status, 200);
        }
        let mut later = BufReader::new(connect(address).unwrap());
        assert_eq!(ask(&mut later, STATUS).unwrap().status, 200);
        drop((queued, later));
        server.stop();
    }
}

#[test]
fn a_passed_file_must_be_one_socket_and_needs_an_option_to_be_reachable() {
    let site = small_site();
    let script = r#"exec 3</dev/null; export LISTEN_PID=$$ LISTEN_FDS=1; exec "$@""#;
    let serve = site.command(["serve", "--listen", "127.0.0.1:0"]);
    let done = site.in_shell(script, &serve).output().unwrap();
    let told = String::from_utf8_lossy(&done.stderr);
    assert_eq!(done.status.code(), Some(1), "{told}");
    assert!(told.contains("socket passed by systemd"), "{told}");

    let everywhere = TcpListener::bind("0.0.0.0:0").unwrap();
    let script = r#"exec 3<&0 0</dev/null; export LISTEN_PID=$$ LISTEN_FDS=1; exec "$@""#;
    let mut command = site.in_shell(script, &serve);
    let done = command
        .stdin(Stdio::from(OwnedFd::from(everywhere)))
        .output()
        .unwrap();
    let told = String::from_utf8_lossy(&done.stderr);
    assert_eq!(done.status.code(), Some(1), "{told}");
    assert!(told.contains("--plain-http"), "{told}");

    // Callers of a second socket would never be answered.
    let [first, second] = [0, 1].map(|_| TcpListener::bind("127.0.0.1:0").unwrap());
    let script = r#"exec 3<&0 4>&1 0</dev/null 1>&2; export LISTEN_PID=$$ LISTEN_FDS=2; exec "$@""#;
    let mut command = site.in_shell(script, &serve);
    command
        .stdin(Stdio::from(OwnedFd::from(first)))
        .stdout(Stdio::from(OwnedFd::from(second)));
    let mut process = Process::spawn(command.stderr(Stdio::piped()));
    let status = process.ended_within(SOON).expect("it ends");
    let mut told = String::new();
    process
        .child()
        .stderr
        .take()
        .unwrap()
        .read_to_string(&mut told)
        .unwrap();
    assert_eq!(status.code(), Some(1), "{told}");
    assert_contains(&told, "systemd passes 2 sockets");
    assert_contains(&told, "an empty `ListenStream=` line");

    // A socket for another process is ignored.
    let script = r#"exec 3</dev/null; export LISTEN_PID=1 LISTEN_FDS=1; exec "$@""#;
    site.start(site.in_shell(script, &site.serve_command("")))
        .stop();
}

#[test]
fn systemd_is_notified_of_start_reload_and_stop() {
    let site = small_site();
    let socket = UnixDatagram::bind(site.path("notify")).unwrap();
    socket.set_read_timeout(Some(SOON)).unwrap();
    let told = || {
        let mut buffer = [0; 512];
        let length = socket.recv(&mut buffer).expect("a message");
        let text = String::from_utf8(buffer[..length].to_vec()).unwrap();
        text.lines().map(str::to_owned).collect::<Vec<_>>()
    };
    let mut command = site.serve_command("");
    let server = site.start({
        command.env("NOTIFY_SOCKET", site.path("notify"));
        command
    });
    assert_eq!(told(), ["READY=1"]);
    for _ in 0..2 {
        server.process.signal("HUP");
        let reloading = told();
        assert_eq!(reloading.len(), 2, "{reloading:?}");
        assert_eq!(reloading[0].as_str(), "RELOADING=1", "{reloading:?}");
        let since = reloading[1]
            .strip_prefix("MONOTONIC_USEC=")
            .and_then(|time| time.parse::<u64>().ok());
        assert!(since.is_some_and(|since| since > 0), "{reloading:?}");
        assert_eq!(told(), ["READY=1"]);
    }
    server.stop();
    assert_eq!(told(), ["STOPPING=1"]);
}
