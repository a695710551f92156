//! A log or first line that cannot be written does not affect responses.

use std::io::{BufReader, Write, pipe};
use std::net::{SocketAddr, TcpListener};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use super::client::{Client, ask, connect};
use super::monitoring::scrape;
use super::site::{Process, SOON, Server, Site, wait_until};

/// More lines than a pipe holds.
const REQUESTS: usize = 3_000;
/// The capacity of a pipe (pipe(7)).
const PIPE_BYTES: usize = 64 << 10;

/// A port that is free now, of an address on which no other test listens.
fn free_port(host: u8) -> SocketAddr {
    TcpListener::bind(SocketAddr::from(([127, 11, 7, host], 0)))
        .and_then(|listener| listener.local_addr())
        .expect("a free port")
}

/// A server that logs each request to `stderr`, and the client of its monitoring.
fn serve(site: &Site, host: u8, script: Option<&str>, stderr: Stdio) -> (Server, Client) {
    let admin = free_port(host);
    let mut command = site.serve_command("--log info --admin-listen");
    command.arg(admin.to_string());
    let command = match script {
        Some(script) => site.in_shell(script, &command),
        None => command,
    };
    let log = tempfile::NamedTempFile::new_in(site.folder())
        .unwrap()
        .into_temp_path();
    (
        site.start_logging_to(command, stderr, log),
        Client::new(admin, None),
    )
}

/// Sends enough requests to fill the log. Returns the number of failed answers.
fn fill_log(server: &Server, key: &str) -> usize {
    let ask = || {
        let mut client = server.client(key);
        let failed = |_: &usize| {
            !client
                .try_get("/v1/conferences/1")
                .is_ok_and(|answer| answer.status == 200)
        };
        (0..REQUESTS / 4).filter(failed).count()
    };
    std::thread::scope(|scope| {
        let askers: Vec<_> = (0..4).map(|_| scope.spawn(ask)).collect();
        askers
            .into_iter()
            .map(|asker| asker.join().expect("an asker"))
            .sum()
    })
}

#[test]
fn a_log_that_cannot_be_written_fails_no_answer() {
    let (site, key) = Site::open(5);
    let gone = || Stdio::from(pipe().unwrap().1);
    // Whether its lines are lost: a closed standard error is opened on /dev/null at the start.
    let cases: [(&str, Option<&str>, Stdio, bool); 3] = [
        ("closed", Some("exec \"$@\" 2>&-"), Stdio::null(), false),
        ("full", Some("exec \"$@\" 2>/dev/full"), Stdio::null(), true),
        ("gone", None, gone(), true),
    ];
    for (number, (case, script, stderr, lost)) in cases.into_iter().enumerate() {
        let (server, mut admin) = serve(&site, u8::try_from(number).unwrap() + 1, script, stderr);
        assert_eq!(fill_log(&server, &key), 0, "{case}: failed answers");
        let told = wait_until(case, SOON, || {
            let told = scrape(&mut admin)["medfeed_log_lines_lost_total"];
            (!lost || told >= REQUESTS as f64).then_some(told)
        });
        assert!(lost || told == 0.0, "{case}: {told} lines lost");
        assert_eq!(admin.get("/readyz").status, 200, "{case}");
        server.stop();
    }
}

#[test]
fn a_log_without_a_reader_delays_no_answer() {
    let (site, key) = Site::open(5);
    let (_reader, writer) = pipe().unwrap();
    let (server, mut admin) = serve(&site, 10, None, writer.into());
    assert_eq!(fill_log(&server, &key), 0, "failed answers");
    assert_eq!(admin.get("/livez").status, 200);
    let asked = Instant::now();
    server.stop();
    assert!(
        asked.elapsed() < Duration::from_secs(10),
        "the end took {:?}",
        asked.elapsed()
    );
}

#[test]
fn the_log_is_complete_at_the_end() {
    let (site, key) = Site::open(5);
    let server = site.serve_with("--log info");
    assert_eq!(fill_log(&server, &key), 0);
    let log = server.stop_and_read();
    let count = log.matches("answered").count();
    assert_eq!(count, REQUESTS, "lines of answers");
    assert!(
        log.lines()
            .last()
            .is_some_and(|line| line.contains("stopping")),
        "{:?}",
        log.lines().last()
    );
}

#[test]
fn a_first_line_without_a_reader_delays_no_answer() {
    let (site, key) = Site::open(5);
    let (_reader, mut writer) = pipe().unwrap();
    writer.write_all(&vec![b'.'; PIPE_BYTES]).unwrap();
    let address = free_port(11);
    let mut command: Command =
        site.command(["serve", "--log", "warn", "--listen", &address.to_string()]);
    let mut process = Process::spawn(command.stdout(writer).stderr(Stdio::null()));
    // Another test may listen on this port of all addresses for a moment.
    let is_answered = || {
        let mut connection = BufReader::new(connect(address).ok()?);
        let request = format!(
            "GET /v1/conferences/1 HTTP/1.1\r\nhost: {address}\r\nx-api-key: {key}\r\n\r\n"
        );
        ask(&mut connection, &request)
            .ok()
            .filter(|answer| answer.status == 200)
    };
    wait_until("an answer", SOON, is_answered);
    process.signal("TERM");
    assert_eq!(process.exit_code(), Some(0));
}
