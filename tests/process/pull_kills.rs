//! Pulls that are killed at random moments, over connections that are cut and delayed: at every moment the copy is the
//! license's view at its own token. `MEDFEED_CASES` sets the number of rounds, `MEDFEED_SEED` the first one's seed.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde_json::Value;

use super::client::Client;
use super::pulled::{Content, Pulled, exported, read};
use super::site::{Process, Random, SOON, STATUSES, Site, conferences_of_version, wait_until};

/// A listener that gives every caller the same answer; returns its address.
pub fn answer_always(answer: &'static str) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            let mut request = Vec::new();
            let mut piece = [0; 4096];
            while !request.ends_with(b"\r\n\r\n") {
                let length = stream.read(&mut piece).unwrap_or(0);
                if length == 0 {
                    break;
                }
                request.extend_from_slice(&piece[..length]);
            }
            let _ = stream.write_all(answer.as_bytes());
        }
    });
    address
}

/// A way to a server on which answers are delayed and cut while it is rough.
struct Proxy {
    address: SocketAddr,
    is_rough: Arc<AtomicBool>,
}

impl Proxy {
    fn new(server: SocketAddr, seed: u64) -> Proxy {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let is_rough = Arc::new(AtomicBool::new(true));
        let rough = Arc::clone(&is_rough);
        std::thread::spawn(move || {
            let mut random = Random::new(seed);
            for caller in listener.incoming() {
                let (Ok(caller), Ok(server)) = (caller, TcpStream::connect(server)) else { continue };
                let rough = rough.load(Ordering::Relaxed);
                let allowed = if rough && random.below(3) == 0 { random.below(60_000) } else { usize::MAX };
                let delay = if rough { random.part_of(Duration::from_millis(8)) } else { Duration::ZERO };
                let (from, to) = (caller.try_clone().unwrap(), server.try_clone().unwrap());
                std::thread::spawn(move || carry(from, to, usize::MAX, Duration::ZERO));
                std::thread::spawn(move || carry(server, caller, allowed, delay));
            }
        });
        Proxy { address, is_rough }
    }
}

/// Passes bytes on until there are no more, or as many as are allowed.
fn carry(mut from: TcpStream, mut to: TcpStream, mut allowed: usize, delay: Duration) {
    let mut piece = [0; 8192];
    while let Ok(length) = from.read(&mut piece) {
        std::thread::sleep(delay);
        let passed = length.min(allowed);
        if passed == 0 || to.write_all(&piece[..passed]).is_err() {
            break;
        }
        allowed -= passed;
    }
    let _ = to.shutdown(Shutdown::Both);
    let _ = from.shutdown(Shutdown::Both);
}

/// The records after all that the feed has behind a token; `None` when the token has ended (410).
fn brought_forward(client: &mut Client, content: &Content) -> Option<Content> {
    let id_of = |line: &str| serde_json::from_str::<Value>(line).unwrap()["id"].as_u64().unwrap();
    let mut records: BTreeMap<u64, Value> =
        content.lines.iter().map(|line| (id_of(line), serde_json::from_str(line).unwrap())).collect();
    let mut token = content.token.clone();
    loop {
        let answer = client.get(&format!("/v1/conferences/changes?since={token}"));
        if answer.status == 410 {
            return None;
        }
        let page = answer.json();
        for entry in page["data"].as_array().unwrap() {
            let id = entry["id"].as_u64().unwrap();
            if entry["deleted"] == true {
                records.remove(&id);
            } else {
                records.insert(id, entry.clone());
            }
        }
        token = page["next_sync_token"].as_str().unwrap().to_owned();
        if page["has_more"] == false {
            let lines = records.values().map(Value::to_string).collect();
            return Some(Content { token, records: i64::try_from(records.len()).unwrap(), lines });
        }
    }
}

/// The records as JSON values: the order of keys does not count.
fn values(lines: &[String]) -> Vec<Value> {
    lines.iter().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// Looks at the copy again and again, as another program would, until told to stop. Returns what was seen.
fn observe(pulled: &Pulled, stop: &AtomicBool) -> HashMap<String, Content> {
    let mut client = pulled.client();
    let mut seen: HashMap<String, Content> = HashMap::new();
    while !stop.load(Ordering::Relaxed) {
        let Some(found) = pulled.copy.exists().then(|| read(&pulled.copy, "conferences").ok().flatten()).flatten()
        else {
            continue;
        };
        assert_eq!(found.records, i64::try_from(found.lines.len()).unwrap(), "the count that the copy tells");
        if let Some(before) = seen.get(&found.token) {
            assert!(*before == found, "two contents with one token: {}", found.token);
            continue;
        }
        // From its token the feed leads to the present: nothing is missing, nothing is there that should have gone.
        if let Some(forward) = brought_forward(&mut client, &found) {
            let present = exported(&mut client, "conferences");
            if present.token == forward.token {
                assert!(values(&present.lines) == values(&forward.lines), "a gap after {}", found.token);
            }
        }
        seen.insert(found.token.clone(), found);
    }
    seen
}

fn variable(name: &str) -> Option<u64> {
    std::env::var(name).ok().and_then(|value| value.parse().ok())
}

#[test]
fn a_killed_pull_leaves_the_view_at_its_token() {
    const COUNT: u64 = 1300;
    let rounds = variable("MEDFEED_CASES").unwrap_or(20).min(500);
    let seed = variable("MEDFEED_SEED").unwrap_or(20_261_122);
    println!("MEDFEED_SEED={seed} MEDFEED_CASES={rounds}");
    let site = Site::new();
    site.import("conferences.jsonl", conferences_of_version(COUNT, 0));
    let pulled = Pulled::new(site);
    let proxy = Proxy::new(pulled.server.address, seed);
    let url = format!("http://{}", proxy.address);
    let mut random = Random::new(seed);
    // The service's states, by token.
    let states = Mutex::new(HashMap::new());
    let mut tokens = BTreeSet::new();
    let mut client = pulled.client();
    let mut take_state = |at_least_one_new: bool| {
        let state = wait_until("the server shows the commit", SOON, || {
            let state = exported(&mut client, "conferences");
            (!at_least_one_new || !tokens.contains(&state.token)).then_some(state)
        });
        tokens.insert(state.token.clone());
        states.lock().unwrap().insert(state.token.clone(), state);
    };
    take_state(true);
    let stop = AtomicBool::new(false);
    let (mut killed, mut seen) = (0, HashMap::new());
    std::thread::scope(|scope| {
        let observer = scope.spawn(|| observe(&pulled, &stop));
        for round in 0..rounds {
            let mut pull = Process::spawn(
                pulled.command(&url, "--dataset conferences --follow --every 5ms").stderr(std::process::Stdio::null()),
            );
            let scope = match random.below(8) {
                0 => Some("--dataset conferences --dataset journals --year 2026"),
                1 => Some("--dataset conferences --dataset journals --widen"),
                _ => None,
            };
            match scope {
                Some(scope) => {
                    pulled.site.license("all", scope);
                    take_state(false);
                }
                None => {
                    // Sometimes more than two pages, often a few records; some of them go.
                    let count = if random.below(4) == 0 { COUNT } else { 1 + random.next() % 40 };
                    let mut rows = conferences_of_version(count, round + 1);
                    for _ in 0..random.below(4) {
                        let gone = count + 1 + random.next() % COUNT;
                        rows.push_str(&format!("{{\"id\":{gone},\"deleted\":true}}\n"));
                    }
                    rows.push_str(&format!("{{\"id\":9999,\"name\":\"Round {round}\",\"year\":2026,{STATUSES}}}\n"));
                    pulled.site.import("conferences.jsonl", rows);
                    take_state(true);
                }
            }
            let ended = pull.ended_within(random.part_of(Duration::from_millis(600)));
            assert!(ended.is_none(), "seed {seed}, round {round}: the pull ended by itself: {ended:?}");
            pull.kill();
            killed += 1;
            if observer.is_finished() {
                break;
            }
        }
        stop.store(true, Ordering::Relaxed);
        seen = observer.join().unwrap_or_else(|_| panic!("seed {seed}: the observer saw a wrong state"));
    });
    let states = states.into_inner().unwrap();
    let known: Vec<_> = seen.iter().filter_map(|(token, found)| Some((found, states.get(token)?))).collect();
    for (found, expected) in &known {
        assert!(found == expected, "seed {seed}: the copy is not the view at its token");
    }
    println!("{killed} pulls killed; {} states seen, {} of them whole states of the service", seen.len(), known.len());
    assert!(known.len() > 1, "the copy was never seen at a state of the service");
    proxy.is_rough.store(false, Ordering::Relaxed);
    let done = pulled.run_at(&url, "--dataset conferences");
    assert_eq!(done.code, Some(0), "seed {seed}: {done:?}");
    pulled.assert_equal("conferences");
    let done = pulled.run_at(&url, "--dataset conferences --verify");
    assert!(done.code == Some(0) && done.stdout.contains("nothing new"), "seed {seed}: {done:?}");
}
