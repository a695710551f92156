//! What the answer cache says that it holds is what the process holds.

use std::fs;

use super::client::Client;
use super::monitoring::{scrape, start_watched};
use super::site::{STATUSES, Site};

const MIB: f64 = 1_048_576.0;
/// Room for answers, in MiB.
const ROOM: f64 = 20.0;
/// By how much claimed and real memory may differ: this part of it, and so many MiB for what the allocator keeps for each
/// thread that made answers.
const PART: f64 = 0.25;
const SLACK: f64 = 8.0;

/// Anonymous memory of a process, in MiB.
fn anonymous_mib(process: u32) -> f64 {
    let text = fs::read_to_string(format!("/proc/{process}/smaps_rollup")).unwrap();
    let line = text.lines().find(|line| line.starts_with("Anonymous:")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse::<f64>().unwrap() / 1024.0
}

fn claimed_mib(admin: &mut Client) -> f64 {
    scrape(admin)["medfeed_answer_cache_bytes"] / MIB
}

fn build() -> (Site, String) {
    let site = Site::new();
    let line = |id: u64| {
        let venue = format!("{:0>300}", id * id % 99_991);
        format!("{{\"id\":{id},\"name\":\"Conference {id}\",\"year\":2026,\"venue\":\"{venue}\",{STATUSES}}}\n")
    };
    site.import("conferences.jsonl", (1..=800).map(line).collect::<String>());
    site.license("all", "--dataset conferences");
    let key = site.key("all", &[]).1;
    (site, key)
}

/// Fills the cache twice over with answers of a kind, each in the forms that are asked for, and compares.
fn fill(kind: &str, target: impl Fn(u64) -> String, encodings: &[&str]) {
    let (site, key) = build();
    let room = (ROOM * MIB).to_string();
    let addresses = ["serve", "--listen", "127.0.0.1:0", "--admin-listen", "127.0.0.1:0"];
    let mut command = site.command(addresses.into_iter().chain(["--cache-bytes", &room]));
    // On a busy machine glibc spreads over many heaps, which keep what was freed: it is not the cache that holds that.
    command.env("MALLOC_ARENA_MAX", "1");
    let (server, mut admin) = start_watched(&site, command);
    let mut clients: Vec<Client> =
        encodings.iter().map(|encoding| server.client(&key).with_header("accept-encoding", encoding)).collect();
    // What else is in memory is there from then on, threads and their heaps included.
    for client in &mut clients {
        (0..200).for_each(|number| assert_eq!(client.get(&target(1_000_000 + number)).status, 200));
    }
    let (memory, claimed) = (anonymous_mib(server.process.id()), claimed_mib(&mut admin));
    let mut number = 0;
    while claimed_mib(&mut admin) < 0.7 * ROOM {
        for _ in 0..500 {
            number += 1;
            clients.iter_mut().for_each(|client| assert_eq!(client.get(&target(number)).status, 200));
        }
        assert!(number < 200_000, "{kind}: the cache does not fill");
    }
    let full = number;
    while number < 2 * full {
        number += 1;
        clients.iter_mut().for_each(|client| assert_eq!(client.get(&target(number)).status, 200));
    }
    let held = anonymous_mib(server.process.id()) - memory;
    let claims = claimed_mib(&mut admin);
    assert!(claims <= ROOM, "{kind}: {claims} MiB are claimed, {ROOM} may be");
    let claims = claims - claimed;
    eprintln!("{kind}: {full} filled it; {claims:.1} MiB are claimed, {held:.1} MiB are held");
    assert!(held <= claims * (1.0 + PART) + SLACK, "{kind}: {held:.1} MiB are held, {claims:.1} are claimed");
    assert!(claims <= held * (1.0 + PART) + SLACK, "{kind}: {claims:.1} MiB are claimed, {held:.1} are held");
    server.stop();
}

#[test]
fn small_answers_take_what_they_are_said_to() {
    fill("empty lists", |number| format!("/v1/conferences?q=nothing{number}"), &["identity"]);
}

#[test]
fn long_targets_take_what_they_are_said_to() {
    fill("long filters", |number| format!("/v1/conferences?country={number:x>1500}"), &["identity"]);
}

#[test]
fn pages_and_their_compressed_forms_take_what_they_are_said_to() {
    // The same pages, under targets of their own.
    let since = |number: u64| {
        let (minute, second) = (number / 60 % 60, number % 60);
        format!("updated_since=2001-01-01T{:02}:{minute:02}:{second:02}Z", number / 3600 % 24)
    };
    let target = |number: u64| match number % 8 {
        0 => format!("/v1/conferences/changes?{}&limit=300", since(number)),
        1 => format!("/v1/reference/tags?dataset=conferences&type={number}"),
        2 => format!("/v1/conferences/{}", 1 + number % 800),
        3 => ["/v1/exports/conferences", "/v1/exports/conferences?format=csv"]
            [usize::try_from(number / 8 % 2).unwrap()]
        .to_owned(),
        _ => format!("/v1/conferences?{}&limit={}", since(number), 20 + number % 60),
    };
    fill("pages", target, &["identity", "gzip"]);
}
