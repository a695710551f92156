//! Requests that wait for news of a change feed: `wait`.

use std::io::{BufReader, ErrorKind, Write};
use std::net::TcpStream;
use std::time::Duration;

use medfeed::model::time::now;
use serde_json::json;

use super::client::{Answer, Client, ask, connect, is_closed, read_answer};
use super::limited::command;
use super::monitoring::{scrape, serve_watched, start_watched};
use super::site::{SOON, Server, Site, conferences_of_version, version_of, wait_for};

const FEED: &str = "/v1/conferences/changes";

type Stream = BufReader<TcpStream>;

/// Sends a request and does not wait for its answer.
fn send(server: &Server, key: &str, target: &str) -> Stream {
    let mut stream = BufReader::new(connect(server.address).unwrap());
    stream
        .get_mut()
        .write_all(server.client(key).request(target).as_bytes())
        .unwrap();
    stream
}

/// Sends a request that waits for entries after the present moment.
fn wait(server: &Server, key: &str, more: &str) -> Stream {
    send(server, key, &waiting_target(server, key, more))
}

fn waiting_target(server: &Server, key: &str, more: &str) -> String {
    format!("{FEED}?since={}&wait=60{more}", token(server, key))
}

fn token(server: &Server, key: &str) -> String {
    server.client(key).get(FEED).json()["next_sync_token"]
        .as_str()
        .unwrap()
        .to_owned()
}

/// Reads the answer. It comes before the time of the wait is over, because the client's time limit is shorter.
fn answer(stream: &mut Stream) -> Answer {
    read_answer(stream, false).expect("an answer")
}

fn is_silent(stream: &Stream) -> bool {
    stream.get_ref().set_nonblocking(true).unwrap();
    let peeked = stream.get_ref().peek(&mut [0]);
    stream.get_ref().set_nonblocking(false).unwrap();
    stream.buffer().is_empty() && peeked.is_err_and(|error| error.kind() == ErrorKind::WouldBlock)
}

/// Waits until `count` requests are waiting.
fn until_waiting(admin: &mut Client, count: u32) {
    wait_for("requests that wait", || {
        scrape(admin)["medfeed_waiting"] == f64::from(count)
    });
}

/// The number of waits that ended for a reason.
fn ended(admin: &mut Client, by: &str) -> f64 {
    scrape(admin)
        .get(&format!("medfeed_waits_ended_total{{by=\"{by}\"}}"))
        .copied()
        .unwrap_or_default()
}

fn is_empty_page(answer: &Answer) -> bool {
    answer.items().is_empty() && answer.json()["has_more"] == json!(false)
}

#[test]
fn an_entry_ends_the_wait() {
    let (site, key) = Site::open(3);
    let (server, mut admin) = serve_watched(&site, &[]);
    let remaining = |answer: &Answer| {
        answer
            .header("ratelimit-remaining")
            .unwrap()
            .parse::<u64>()
            .unwrap()
    };
    let since = token(&server, &key);
    let mut waiters: Vec<Stream> = (0..40)
        .map(|_| send(&server, &key, &format!("{FEED}?since={since}&wait=60")))
        .collect();
    waiters.push(send(
        &server,
        &key,
        &format!("{FEED}?updated_since={}&wait=60", now().plus_s(1)),
    ));
    until_waiting(&mut admin, 41);
    let before = remaining(&server.client(&key).get(FEED));
    assert!(waiters.iter().all(is_silent));
    let named = now().plus_s(2);
    wait_for("the second that `updated_since` names", || now() >= named);
    site.import("conferences.jsonl", conferences_of_version(3, 1));
    let mut next = String::new();
    for waiter in &mut waiters {
        let told = answer(waiter);
        assert_eq!((told.items().len(), version_of(&told.items())), (3, 1));
        // More requests remain if a new window has begun meanwhile.
        assert!(
            remaining(&told) >= before,
            "each request was counted once, when it came"
        );
        next = told.json()["next_sync_token"].as_str().unwrap().to_owned();
    }
    // The connection stays open, and a page with entries never waits.
    let request = |query: &str| server.client(&key).request(&format!("{FEED}?{query}"));
    assert!(is_empty_page(
        &ask(&mut waiters[0], &request(&format!("since={next}"))).unwrap()
    ));
    let told = ask(&mut waiters[0], &request(&format!("since={since}&wait=60"))).unwrap();
    assert_eq!(told.items().len(), 3);
    // Without `since`, the present moment is returned at once.
    assert!(is_empty_page(
        &ask(&mut waiters[0], &request("wait=60")).unwrap()
    ));
    let head = request(&format!("since={next}&wait=60")).replacen("GET", "HEAD", 1);
    let mut stream = BufReader::new(connect(server.address).unwrap());
    stream.get_mut().write_all(head.as_bytes()).unwrap();
    assert_eq!(
        read_answer(&mut stream, true)
            .expect("HEAD does not wait")
            .status,
        200
    );
    until_waiting(&mut admin, 0);
    assert_eq!(ended(&mut admin, "change"), 41.0);
    server.stop();
}

#[test]
fn a_hidden_change_ends_no_wait() {
    let site = Site::with(6);
    let of = |area: &str| {
        site.license(
            area,
            &format!("--dataset conferences --therapy-area {area}"),
        );
        site.key(area, &[]).1
    };
    let (oncology, cardiology) = (of("Oncology"), of("Cardiology"));
    let (server, mut admin) = serve_watched(&site, &[]);
    let mut sleeper = wait(&server, &oncology, "");
    let proof = || {
        let mut stream = BufReader::new(connect(server.address).unwrap());
        let request = server
            .client(&oncology)
            .request("/v1/exports/conferences")
            .replacen("GET", "HEAD", 1);
        stream.get_mut().write_all(request.as_bytes()).unwrap();
        let told = read_answer(&mut stream, true).unwrap();
        ["x-records-digest", "repr-digest", "etag", "x-sync-token"]
            .map(|name| told.header(name).unwrap().to_owned())
    };
    let before = proof();
    for version in 1..=3 {
        let mut waiter = wait(&server, &cardiology, "");
        until_waiting(&mut admin, 2);
        // Record 1 is of Cardiology. The journal and the new key concern no waiting request.
        site.import("conferences.jsonl", conferences_of_version(1, version));
        site.import(
            "journals.jsonl",
            format!("{{\"id\":{version},\"name\":\"J\"}}\n"),
        );
        site.key("Oncology", &["--label", "another"]);
        site.json(
            "license set Oncology --dataset conferences --therapy-area Oncology --rate-limit 77"
                .split(' '),
        );
        assert_eq!(version_of(&answer(&mut waiter).items()), version);
        until_waiting(&mut admin, 1);
        assert_eq!(
            ended(&mut admin, "change"),
            f64::from(u32::try_from(version).unwrap()),
            "no other request was woken"
        );
        assert_eq!(proof(), before);
        assert!(is_silent(&sleeper));
    }
    // Record 3 is of Oncology.
    site.import("conferences.jsonl", conferences_of_version(3, 4));
    let told = answer(&mut sleeper);
    assert_eq!(
        told.items()
            .iter()
            .map(|item| item["id"].clone())
            .collect::<Vec<_>>(),
        [json!(3)]
    );
    let header = told.header("ratelimit-limit");
    assert_eq!(header, Some("77"), "the window is the present one");
    assert!(
        proof()
            .iter()
            .zip(&before)
            .all(|(after, before)| after != before)
    );
    server.stop();
}

#[test]
fn a_change_of_key_or_license_ends_the_wait_at_once() {
    let site = Site::with(9);
    type Change = fn(&Site, &str, &str);
    let narrow: Change =
        |site, name, _| drop(site.license(name, "--dataset conferences --therapy-area Oncology"));
    let more: Change =
        |site, name, _| drop(site.license(name, "--dataset conferences --dataset journals"));
    let cases: [(&str, Change, &str, u16, &str); 7] = cases![
        "revoked", |site, _, id| drop(site.json(["key", "revoke", id])), "", 401, "revoked_api_key";
        "replaced", |site, _, id| drop(site.json(["key", "replace", id])), "", 401, "revoked_api_key";
        "removed", |site, name, _| drop(site.json(["license", "remove", name, "--yes"])), "", 401, "revoked_api_key";
        "narrower", narrow, "", 410, "resync_required";
        "narrower-diff", narrow, "&resync=diff", 200, "6 left";
        "more-diff", more, "&resync=diff", 200, "0 left";
        "journals", |site, name, _| drop(site.license(name, "--dataset journals")), "", 403, "dataset_not_licensed";
    ];
    let keys = cases.map(|(name, ..)| {
        site.license(name, "--dataset conferences");
        site.key(name, &[])
    });
    let (server, mut admin) = serve_watched(&site, &[]);
    let mut waiters = Vec::new();
    for ((_, key), (_, _, more, ..)) in keys.iter().zip(&cases) {
        waiters.push(wait(&server, key, more));
    }
    let expiring = site
        .key("revoked", &["--expires", &now().plus_s(6).to_string()])
        .1;
    wait_for("the key", || {
        server.client(&expiring).get(FEED).status == 200
    });
    let mut expires = wait(&server, &expiring, "");
    until_waiting(&mut admin, 8);
    for (at, (name, change, _, status, code)) in cases.iter().enumerate() {
        change(&site, name, &keys[at].0);
        let told = answer(&mut waiters[at]);
        assert_eq!(told.status, *status, "{name}");
        if *status == 200 {
            let deleted = told
                .items()
                .iter()
                .filter(|item| item["deleted"] == json!(true))
                .count();
            assert_eq!(told.items().len(), deleted, "{name}");
            assert_eq!(format!("{deleted} left"), (*code).to_owned(), "{name}");
        } else {
            assert_eq!(told.problem(), *code, "{name}");
        }
        assert!(
            waiters[at + 1..].iter().all(is_silent),
            "{name}: the others wait on"
        );
    }
    assert_eq!(ended(&mut admin, "change"), 7.0);
    let told = answer(&mut expires);
    told.assert_problem(401, "expired_api_key");
    until_waiting(&mut admin, 0);
    server.stop();
}

#[test]
fn a_restore_ends_waits_with_410_at_once() {
    let (site, key) = Site::open(3);
    let backup = site.backup("backup.redb");
    let (server, mut admin) = serve_watched(&site, &[]);
    let mut waiters = ["", "&resync=diff"].map(|more| wait(&server, &key, more));
    until_waiting(&mut admin, 2);
    site.json(["restore".as_ref(), backup.as_os_str(), "--yes".as_ref()]);
    for waiter in &mut waiters {
        assert_eq!(answer(waiter).problem(), "resync_required");
    }
    server.stop();
}

#[test]
fn commits_that_are_held_back_end_no_wait() {
    let site = Site::with(3);
    site.license("all", "--dataset conferences");
    let ((id, key), (_, other)) = (site.key("all", &[]), site.key("all", &[]));
    let (server, mut admin) = serve_watched(&site, &["--change-delay", "1h"]);
    let mut waiters = [wait(&server, &key, ""), wait(&server, &other, "")];
    until_waiting(&mut admin, 2);
    site.import("conferences.jsonl", conferences_of_version(3, 1));
    // The server shows changes of keys at once. The answer proves that it has seen the commit.
    site.json(["key", "revoke", &id]);
    assert_eq!(answer(&mut waiters[0]).problem(), "revoked_api_key");
    assert!(is_silent(&waiters[1]));
    assert_eq!(ended(&mut admin, "change"), 1.0);
    server.stop();
    assert!(is_empty_page(&answer(&mut waiters[1])));
}

#[test]
fn a_server_that_stops_answers_waiting_requests() {
    let (site, key) = Site::open(3);
    let (mut server, mut admin) = serve_watched(&site, &[]);
    let mut waiters: Vec<Stream> = (0..3).map(|_| wait(&server, &key, "")).collect();
    until_waiting(&mut admin, 3);
    server.process.signal("TERM");
    for waiter in &mut waiters {
        let told = answer(waiter);
        assert!(is_empty_page(&told), "{told:?}");
        assert_eq!(told.header("connection"), Some("close"));
    }
    assert_eq!(
        server
            .process
            .ended_within(SOON)
            .expect("the server ends")
            .code(),
        Some(0)
    );
}

#[test]
fn the_longest_wait_ends_when_its_connection_is_needed() {
    let (site, key) = Site::open(3);
    let limits = "per-address=2 request=1s";
    let limited = command(&site, limits, "--admin-listen 127.0.0.1:0 --log info");
    let (server, mut admin) = start_watched(&site, limited);
    let target = waiting_target(&server, &key, "");
    // On a busy machine the connection of the token may still use one of the two slots.
    wait_for("no connection", || {
        scrape(&mut admin)["medfeed_connections"] == 0.0
    });
    let mut first = send(&server, &key, &target);
    until_waiting(&mut admin, 1);
    let second = send(&server, &key, &target);
    until_waiting(&mut admin, 2);
    // The time limit of requests does not apply to a request that waits.
    std::thread::sleep(Duration::from_millis(2500));
    assert!(is_silent(&first) && is_silent(&second));
    assert_eq!(server.client(&key).get("/v1/conferences/1").status, 200);
    let told = answer(&mut first);
    assert!(is_empty_page(&told), "{told:?}");
    assert_eq!(told.header("connection"), Some("close"));
    assert!(is_closed(&mut first, SOON) && is_silent(&second));
    wait_for("it is counted", || {
        let given_up = "medfeed_connections_given_up_total{reason=\"waiting\",cause=\"capacity\"}";
        scrape(&mut admin).get(given_up) == Some(&1.0)
    });
    assert_eq!(
        (ended(&mut admin, "capacity"), ended(&mut admin, "change")),
        (1.0, 0.0)
    );
    server.stop();
}
