//! The cost of long-polling callers: memory each, latency of another client, and the time from a commit to its entry.
//!
//!     cargo bench --bench waiting
//!     cargo bench --bench waiting -- 500       # 500 callers

#![allow(clippy::print_stdout, reason = "the figures are the output")]

mod support;

#[path = "http/child.rs"]
mod child;
#[allow(dead_code, reason = "one connection after the other is enough here")]
#[path = "http/client.rs"]
mod client;
#[allow(dead_code, reason = "no answers are recorded here")]
#[path = "http/exchange.rs"]
mod exchange;

use std::net::SocketAddr;
use std::process::{Command, ExitCode};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use child::Server;
use client::Connection;
use medfeed::serve::Limits;
use support::machine::{Table, print_machine, quantiles};
use support::synthetic;
use support::world::{Share, Size, World, commit};
use tokio::task::JoinHandle;

const FEED: &str = "/v1/conferences/changes";
/// The number of callers. They share a few keys, because one key may have a quarter of the long polls.
const CALLERS: usize = 2_000;
const KEYS: usize = 4;
/// Commits that wake all of them.
const COMMITS: u64 = 30;
/// The time for which another client is measured while all callers wait.
const QUIET: Duration = Duration::from_secs(10);
/// The pause between two requests of that client.
const PAUSE: Duration = Duration::from_millis(2);

/// Requests a target. Returns the answer's body.
async fn get(connection: &mut Connection, key: &str, target: &str) -> String {
    let request = format!("GET {target} HTTP/1.1\r\nhost: bench\r\nx-api-key: {key}\r\n\r\n");
    let answer = connection.ask(request.as_bytes()).await;
    assert!(
        answer.head.starts_with(b"HTTP/1.1 200"),
        "{}",
        String::from_utf8_lossy(&answer.head)
    );
    String::from_utf8(answer.body).expect("UTF-8")
}

fn token_of(page: &str) -> String {
    let (_, rest) = page.split_once("\"next_sync_token\":\"").expect("a token");
    rest.split('"').next().unwrap_or_default().to_owned()
}

/// The counters and times that all callers share.
#[derive(Default)]
struct CallerStats {
    waiting: AtomicUsize,
    woken: AtomicUsize,
    committed: Mutex<Option<Instant>>,
    latencies_ms: Mutex<Vec<f64>>,
    is_over: AtomicBool,
}

/// Long-polls the feed again and again.
async fn wait_for_news(address: SocketAddr, key: String, stats: Arc<CallerStats>) {
    let mut connection = Connection::open(address).await;
    let mut token = token_of(&get(&mut connection, &key, FEED).await);
    while !stats.is_over.load(Ordering::Relaxed) {
        stats.waiting.fetch_add(1, Ordering::Relaxed);
        let target = format!("{FEED}?since={token}&wait=60");
        let page = get(&mut connection, &key, &target).await;
        let at = Instant::now();
        let has_news = page.contains("\"id\":");
        token = token_of(&page);
        stats.waiting.fetch_sub(1, Ordering::Relaxed);
        if has_news
            && let Some(committed) = *stats.committed.lock().expect("no panic while it is held")
        {
            let ms = at.duration_since(committed).as_secs_f64() * 1e3;
            stats
                .latencies_ms
                .lock()
                .expect("no panic while it is held")
                .push(ms);
            stats.woken.fetch_add(1, Ordering::Relaxed);
        }
    }
}

/// Runs another client, on a thread of its own, so that the waiting callers do not delay it.
fn start_client(
    address: SocketAddr,
    key: String,
    is_over: impl Fn() -> bool + Send + 'static,
) -> JoinHandle<Vec<f64>> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .expect("a runtime");
    tokio::task::spawn_blocking(move || runtime.block_on(good_client(address, key, is_over)))
}

/// Requests single records one after the other. Returns the latencies in ms.
async fn good_client(address: SocketAddr, key: String, is_over: impl Fn() -> bool) -> Vec<f64> {
    let mut connection = Connection::open(address).await;
    let mut latencies = Vec::new();
    while !is_over() {
        // Journals are never removed.
        let target = format!(
            "/v1/journals/{}",
            synthetic::id_of(latencies.len() as u64 % 500)
        );
        let asked = Instant::now();
        get(&mut connection, &key, &target).await;
        latencies.push(asked.elapsed().as_secs_f64() * 1e3);
        tokio::time::sleep(PAUSE).await;
    }
    latencies
}

async fn until(what: &str, is_so: impl Fn() -> bool) {
    let begun = Instant::now();
    while !is_so() {
        assert!(
            begun.elapsed() < Duration::from_secs(60),
            "{what} does not come"
        );
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

/// The variable that makes this program a server for this number of waiting callers.
const SERVE_CALLERS: &str = "SERVE_CALLERS";

fn main() -> ExitCode {
    let served = std::env::var(SERVE_CALLERS)
        .ok()
        .and_then(|callers| callers.parse::<usize>().ok());
    let Some(callers) = served else {
        measure();
        return ExitCode::SUCCESS;
    };
    let (waiting, connections) = (2 * callers, 2 * callers + 64);
    let limits = Limits {
        connections,
        connections_per_address: connections,
        long_polls: waiting,
        long_polls_per_key: waiting.div_ceil(4),
        ..Limits::default()
    };
    medfeed::cli::run(std::env::args_os().collect(), limits)
}

#[tokio::main(flavor = "current_thread")]
async fn measure() {
    // Without cargo's mark this only tries that all works.
    let is_test = !std::env::args().any(|argument| argument == "--bench");
    let asked = std::env::args()
        .skip(1)
        .find_map(|argument| argument.parse().ok());
    let callers = asked.unwrap_or(if is_test { 40 } else { CALLERS });
    let commits = if is_test { 2 } else { COMMITS };
    let quiet = if is_test {
        Duration::from_millis(100)
    } else {
        QUIET
    };
    print_machine("cargo bench --bench waiting");
    let size = if is_test {
        Size {
            conferences: 600,
            journals: 500,
        }
    } else {
        Size::USUAL
    };
    let world = World::build(size, &[Share::All; KEYS]);
    let server = Server::start(
        Command::new(std::env::current_exe().expect("the path of this program"))
            .args(["serve", "--listen", "127.0.0.1:0", "--log", "warn", "--db"])
            .arg(world.path())
            .env(SERVE_CALLERS, callers.to_string()),
    );
    server.settle();
    let address = server.address;
    let mut table = Table::new(&[
        "another client, single records",
        "requests",
        "p50 ms",
        "p99 ms",
        "most ms",
    ]);
    let mut add = |what: &str, latencies: &[f64]| {
        let [p50, p99, most] = quantiles(latencies, [50, 99, 100]).map(|ms| format!("{ms:.2}"));
        table.add(&[&what, &latencies.len(), &p50, &p99, &most]);
    };
    let for_a_while = |time: Duration| {
        let begun = Instant::now();
        start_client(address, world.keys[0].clone(), move || {
            begun.elapsed() > time
        })
    };
    let figures = for_a_while(quiet).await.expect("the client");
    add("nobody waits", &figures);

    let before_mib = server.memory_mib().0;
    let stats = Arc::new(CallerStats::default());
    let tasks: Vec<_> = (0..callers)
        .map(|caller| {
            tokio::spawn(wait_for_news(
                address,
                world.keys[caller % KEYS].clone(),
                Arc::clone(&stats),
            ))
        })
        .collect();
    until("the waiting of all", || {
        stats.waiting.load(Ordering::Relaxed) == callers
    })
    .await;
    // Callers count themselves before they send, so the last requests may still be on their way.
    tokio::time::sleep(Duration::from_millis(500)).await;
    let kib = (server.memory_mib().0 - before_mib) * 1024.0 / callers as f64;
    let cpu_before = server.cpu_s();
    let names = format!("{callers} wait");
    add(&names, &for_a_while(quiet).await.expect("the client"));
    println!(
        "memory of a waiting caller: {kib:.1} KiB; processor time beside the client's: {:.2} s",
        server.cpu_s() - cpu_before
    );

    let is_over = Arc::new(AtomicBool::new(false));
    let other = start_client(address, world.keys[0].clone(), {
        let is_over = Arc::clone(&is_over);
        move || is_over.load(Ordering::Relaxed)
    });
    let writer = Arc::new(world.writer());
    for number in 1..=commits {
        let (writer, stats_too) = (Arc::clone(&writer), Arc::clone(&stats));
        let committing = tokio::task::spawn_blocking(move || {
            let mut committed = stats_too
                .committed
                .lock()
                .expect("no panic while it is held");
            commit(&writer, synthetic::records([number], [], 100 + number));
            *committed = Some(Instant::now());
        });
        committing.await.expect("the commit");
        let all = callers * usize::try_from(number).expect("few");
        until("news", || stats.woken.load(Ordering::Relaxed) == all).await;
        until("the waiting of all", || {
            stats.waiting.load(Ordering::Relaxed) == callers
        })
        .await;
        // At another phase of the server's polls each time.
        tokio::time::sleep(Duration::from_millis(400 + number * 37 % 100)).await;
    }
    is_over.store(true, Ordering::Relaxed);
    let names = format!("{callers} are woken {commits} times");
    add(&names, &other.await.expect("the other client"));
    table.print();
    let latencies = stats
        .latencies_ms
        .lock()
        .expect("no panic while it is held")
        .clone();
    let [p50, p99, most] = quantiles(&latencies, [50, 99, 100]);
    println!(
        "from the commit to the entry in a waiting caller's hands: p50 {p50:.0} ms, p99 {p99:.0} ms, most {most:.0} ms"
    );
    stats.is_over.store(true, Ordering::Relaxed);
    tasks.iter().for_each(JoinHandle::abort);
}
