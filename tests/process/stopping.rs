//! Ending a server while a slow caller loads an export.

use std::io::{BufReader, Read, Write};
use std::net::TcpStream;
use std::process::Stdio;
use std::time::{Duration, Instant};

use super::client::{Answer, connect, read_head};
use super::site::{Process, SOON, STATUSES, Site, wait_until};

/// Conferences whose export is too large for the buffers of sockets: their venues hardly compress.
pub fn large_conferences() -> String {
    const ALPHABET: &[u8] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+-";
    let mut state = 1_u64;
    let mut noise = |length: usize| -> String {
        let letters = (0..length).map(|_| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            char::from(ALPHABET[usize::try_from(state >> 58).expect("small")])
        });
        letters.collect()
    };
    (1..=400).map(|id| format!("{{\"id\":{id},\"name\":\"C\",\"venue\":\"{}\",{STATUSES}}}\n", noise(60_000))).collect()
}

#[test]
fn a_download_that_runs_is_finished_first() {
    let site = Site::new();
    site.import("conferences.jsonl", large_conferences());
    let key = site.open_key();
    for signal in ["TERM", "INT"] {
        let mut server = site.serve();
        let mut idle = connect(server.address).unwrap();
        let mut download = BufReader::new(connect(server.address).unwrap());
        let request = server.client(&key).request("/v1/exports/conferences");
        download.get_mut().write_all(request.as_bytes()).unwrap();
        let (status, headers) = read_head(&mut download).unwrap();
        let mut answer = Answer { status, headers, body: Vec::new() };
        let length: usize = answer.header("content-length").unwrap().parse().unwrap();
        assert!(length > 15 << 20, "{length} bytes may fit into buffers");

        server.process.signal(signal);
        wait_until("the listener closes", SOON, || TcpStream::connect(server.address).is_err().then_some(()));
        let mut nothing = [0; 1];
        idle.set_read_timeout(Some(SOON)).unwrap();
        assert_eq!(idle.read(&mut nothing).unwrap_or(0), 0, "an idle connection is closed");
        assert_eq!(server.process.ended_within(Duration::from_millis(300)), None, "SIG{signal}: the download runs");

        answer.body.resize(length, 0);
        for piece in answer.body.chunks_mut(1 << 20) {
            download.read_exact(piece).unwrap_or_else(|error| panic!("SIG{signal}: the download broke: {error}"));
        }
        assert_eq!(answer.lines().len(), 400);
        let status = server.process.ended_within(SOON).expect("the server ends");
        assert_eq!(status.code(), Some(0), "SIG{signal}");
    }
}

#[test]
fn an_idle_server_ends_at_once() {
    let site = Site::new();
    site.import("journals.jsonl", "{\"id\":1,\"name\":\"J\"}\n");
    let server = site.serve();
    let _idle = connect(server.address).unwrap();
    let asked = Instant::now();
    server.stop();
    assert!(asked.elapsed() < Duration::from_secs(5), "an idle connection held it for {:?}", asked.elapsed());
}

#[test]
fn a_port_in_use_is_told() {
    let site = Site::new();
    site.import("journals.jsonl", "{\"id\":1,\"name\":\"J\"}\n");
    let server = site.serve();
    let address = server.address.to_string();
    let mut second = site.command(["serve", "--listen", &address]);
    let mut second = Process::spawn(second.stdout(Stdio::null()).stderr(Stdio::piped()));
    let status = second.ended_within(SOON).expect("it ends");
    let mut told = String::new();
    second.child().stderr.take().unwrap().read_to_string(&mut told).unwrap();
    assert_eq!(status.code(), Some(1), "{told}");
    assert!(told.contains(&address) && told.contains("another server listens there"), "{told}");
}
