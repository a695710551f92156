//! The server side by side with hyper alone: real sockets, a real file, the same bytes.
//!
//! Three processes: the `medfeed` program over a database of usual size, a bare hyper server that answers recorded
//! bytes from memory, and this one, whose client drives the two in turn (A B A B ...), so that a busy machine troubles
//! both alike. The ratio says which part of what hyper and the kernel can do is left after finding, checking and
//! putting together the answer. All share the processor, so the time that each server spent on a request is given too.
//!
//! Two further tables: how long a process takes from its start to its first answer, beside the bare server; and, with
//! `MEDFEED_BENCH_LARGE=1`, what answers of large databases cost over those of small ones.
//!
//!     cargo bench --bench http
//!     cargo bench --bench http -- --rounds 9 --seconds 1 --rows feed

#![allow(clippy::print_stdout, reason = "the figures are the output")]

mod child;
mod client;
mod exchange;
mod scale;
mod start;
mod static_server;
#[path = "../support/mod.rs"]
mod support;

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

use clap::Parser;
use http::StatusCode;
use http::header::ETAG;
use medfeed::store::Follower;

use child::Server;
use client::{Load, drive, fetch};
use exchange::{ROW_HEADER, Recorded, parse_head};
use support::feed::{self, Place};
use support::machine::{Table, median, print_machine};
use support::synthetic::{COMMON_TEXT, COUNTRY, YEAR, id_of};
use support::world::{Share, Size, World, mixed_licenses};

/// Licenses of the second database.
const LICENSES: usize = 100;
/// Distinct pages of a row that asks for none a second time soon: a server keeps the rows of about 500.
const ROTATED: usize = 2_000;
/// The feed that is measured.
const FEED: &str = "/v1/conferences/changes";
/// Before each server's first round it is driven for this part of a round's time, unmeasured.
const WARM_UP: f64 = 0.5;

#[derive(Debug, Parser)]
struct Args {
    /// Times that each server is driven per row, in turn
    #[arg(long, env = "MEDFEED_BENCH_ROUNDS", default_value_t = 5)]
    rounds: usize,
    /// How long it is driven each time
    #[arg(long, env = "MEDFEED_BENCH_SECONDS", default_value_t = 0.5)]
    seconds: f64,
    /// Only rows whose name contains this text
    #[arg(long, env = "MEDFEED_BENCH_ROWS", default_value = "")]
    rows: String,
    /// Numbers of connections
    #[arg(long, value_delimiter = ',', default_values_t = [8, 64])]
    connections: Vec<usize>,
    /// What the server logs: `info` writes a line per request, to nowhere
    #[arg(long, env = "MEDFEED_BENCH_LOG", default_value = "warn")]
    log: String,
    /// One short round, to see that all works
    #[arg(long)]
    test: bool,
    /// Given by cargo
    #[arg(long, hide = true)]
    bench: bool,
    /// Run as the static server over this folder of answers
    #[arg(long, hide = true)]
    static_answers: Option<PathBuf>,
}

fn main() {
    let mut args = Args::parse();
    if let Some(folder) = &args.static_answers {
        return static_server::run(folder);
    }
    // Without cargo's mark this is a test run, as of criterion's benchmarks.
    if args.test || !args.bench {
        args.rounds = 1;
        args.seconds = 0.02;
    }
    let given: Vec<String> = std::env::args().skip(1).filter(|argument| argument != "--bench").collect();
    print_machine(format!("cargo bench --bench http -- {}", given.join(" ")).trim_end_matches([' ', '-']));
    println!(
        "rounds   {} per row and server, in turn, {} s each; medians; the server's log: {}",
        args.rounds, args.seconds, args.log
    );
    println!();
    // One thread, so that a core is left for the server.
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("the runtime starts");
    runtime.block_on(compare(&args));
}

/// The servers, and the databases of the real ones.
struct Servers {
    usual: Real,
    many: Real,
}

struct Real {
    world: World,
    server: Server,
}

impl Real {
    fn start(world: World, log: &str) -> Real {
        Real { server: start_real(world.path(), log), world }
    }
}

fn start_real(database: &Path, log: &str) -> Server {
    let mut command = Command::new(env!("CARGO_BIN_EXE_medfeed"));
    command.arg("--db").arg(database).args(["serve", "--listen", "127.0.0.1:0", "--log", log]);
    Server::start(command.stderr(Stdio::null()))
}

fn start_static(folder: &Path) -> Server {
    let program = std::env::current_exe().expect("a program knows its path");
    Server::start(Command::new(program).arg("--static-answers").arg(folder))
}

/// A request that is measured.
struct Row {
    name: &'static str,
    address: SocketAddr,
    /// One, or several that are sent one after the other and answered alike.
    requests: Arc<[Vec<u8>]>,
    /// The answer to the first.
    recorded: Recorded,
}

async fn compare(args: &Args) {
    let servers = Servers {
        usual: Real::start(World::build(Size::USUAL, &Share::EACH), &args.log),
        many: Real::start(World::build(Size::USUAL, &mixed_licenses(LICENSES)), &args.log),
    };
    for server in [&servers.usual.server, &servers.many.server] {
        server.settle();
    }
    let rows = rows(&servers, &args.rows).await;
    let folder = tempfile::tempdir().expect("a temporary folder");
    for (place, row) in rows.iter().enumerate() {
        exchange::save(folder.path(), place, &row.recorded);
    }
    let bare = start_static(folder.path());
    check_same(&rows, bare.address).await;

    let mut table = Table::new(&[
        "row",
        "conns",
        "KB",
        "medfeed/s",
        "MB/s",
        "p50 us",
        "p99 us",
        "cpu us",
        "static/s",
        "p50 us",
        "p99 us",
        "cpu us",
        "ratio",
        "cpu ratio",
    ]);
    for connections in &args.connections {
        for row in &rows {
            let server =
                if row.address == servers.many.server.address { &servers.many.server } else { &servers.usual.server };
            let driven = |server| Driven { server, requests: &row.requests, recorded: &row.recorded };
            let (ours, theirs) = in_turn(args, *connections, driven(server), driven(&bare)).await;
            let ratio = median(ours.iter().zip(&theirs).map(|(one, other)| one.load.per_s() / other.load.per_s()));
            let bytes = (row.recorded.head.len() + row.recorded.body.len()) as f64;
            let of =
                |rounds: &[Round], figure: fn(&Load) -> f64| median(rounds.iter().map(|round| figure(&round.load)));
            let (our_cpu, their_cpu) = (cpu_us(&ours), cpu_us(&theirs));
            table.add(&[
                &row.name,
                connections,
                &format!("{:.1}", bytes / 1e3),
                &format!("{:.0}", of(&ours, Load::per_s)),
                &format!("{:.0}", of(&ours, Load::per_s) * bytes / 1e6),
                &format!("{:.0}", of(&ours, |load| load.quantile_us(50))),
                &format!("{:.0}", of(&ours, |load| load.quantile_us(99))),
                &format!("{our_cpu:.0}"),
                &format!("{:.0}", of(&theirs, Load::per_s)),
                &format!("{:.0}", of(&theirs, |load| load.quantile_us(50))),
                &format!("{:.0}", of(&theirs, |load| load.quantile_us(99))),
                &format!("{their_cpu:.0}"),
                &format!("{ratio:.2}"),
                &format!("{:.2}", our_cpu / their_cpu),
            ]);
        }
    }
    table.print();
    println!();
    let mut memory = Table::new(&["memory", "now MiB", "at most MiB"]);
    let (usual, many) = (&servers.usual.server, &servers.many.server);
    for (name, server) in [("medfeed", usual), ("medfeed, 100 licenses", many), ("static", &bare)] {
        let (now, most) = server.memory_mib();
        memory.add(&[&name, &format!("{now:.0}"), &format!("{most:.0}")]);
    }
    memory.print();
    drop(servers);
    start::compare(args).await;
    if support::is_large() {
        scale::compare(args).await;
    }
}

/// A server and what it is asked.
#[derive(Clone, Copy)]
struct Driven<'a> {
    server: &'a Server,
    requests: &'a Arc<[Vec<u8>]>,
    recorded: &'a Recorded,
}

impl Driven<'_> {
    async fn drive(self, connections: usize, time: Duration) -> Load {
        drive(self.server.address, self.requests, self.recorded, connections, time).await
    }
}

/// What one server did in one round.
struct Round {
    load: Load,
    cpu_s: f64,
}

/// Processor time of the server per request, in microseconds, over all rounds: it is counted in steps of 10 ms.
fn cpu_us(rounds: &[Round]) -> f64 {
    let requests: f64 = rounds.iter().map(|round| round.load.count()).sum();
    rounds.iter().map(|round| round.cpu_s).sum::<f64>() * 1e6 / requests
}

async fn in_turn(args: &Args, connections: usize, one: Driven<'_>, other: Driven<'_>) -> (Vec<Round>, Vec<Round>) {
    let time = Duration::from_secs_f64(args.seconds);
    for driven in [one, other] {
        driven.drive(connections, time.mul_f64(WARM_UP)).await;
    }
    let mut rounds = (Vec::new(), Vec::new());
    for _ in 0..args.rounds {
        for (driven, rounds) in [(one, &mut rounds.0), (other, &mut rounds.1)] {
            let before = driven.server.cpu_s();
            let load = driven.drive(connections, time).await;
            rounds.push(Round { load, cpu_s: driven.server.cpu_s() - before });
        }
    }
    rounds
}

/// Puts the requests together, some of them from earlier answers, and records what they are answered.
async fn rows(servers: &Servers, filter: &str) -> Vec<Row> {
    let usual = Caller { address: servers.usual.server.address, key: &servers.usual.world.keys[0] };
    let many = Caller { address: servers.many.server.address, key: &servers.many.world.keys[0] };
    let feed = FEED;
    // Halfway through the feed, at its last page, and at its end.
    let middle = format!("{feed}?since={}", usual.token_after_pages("updated_since=2000-01-01&limit=1000", 4).await);
    let end = format!("{feed}?since={}", usual.token_after_pages("updated_since=2000-01-01&limit=1000", 1_000).await);
    let head = format!("{feed}?since={}", many.token_after_pages("updated_since=2000-01-01&limit=850", 10).await);
    let list = "/v1/conferences";
    let etag = usual.etag(list).await;
    let record = usual.existing_record().await;
    let record_etag = usual.etag(&record).await;
    let narrow = format!("{list}?year={YEAR}&country={COUNTRY}");
    let by_text = format!("{list}?q={COMMON_TEXT}");

    let wanted = [
        ("feed page of 500", usual, middle.clone(), String::new()),
        ("feed page of 500, gzip", usual, middle, "accept-encoding: gzip\r\n".to_owned()),
        ("feed page, 100 licenses", many, head, String::new()),
        ("feed, nothing new", usual, end, String::new()),
        ("list of 100", usual, list.to_owned(), String::new()),
        ("list by year and country", usual, narrow, String::new()),
        ("list by q", usual, by_text, String::new()),
        ("list of 100, 304", usual, list.to_owned(), format!("if-none-match: {etag}\r\n")),
        ("single record", usual, record.clone(), String::new()),
        ("single record, 304", usual, record, format!("if-none-match: {record_etag}\r\n")),
        ("therapy areas", usual, "/v1/reference/therapy-areas".to_owned(), String::new()),
        ("tags", usual, "/v1/reference/tags?dataset=conferences".to_owned(), String::new()),
        ("organizations", usual, "/v1/reference/organizations?dataset=conferences".to_owned(), String::new()),
        ("export, cached", usual, "/v1/exports/conferences".to_owned(), String::new()),
    ];
    let mut rows = Vec::new();
    for (name, caller, target, headers) in wanted {
        if name.contains(filter) {
            let headers = format!("{headers}{ROW_HEADER}: {}\r\n", rows.len());
            let requests: Arc<[Vec<u8>]> = [caller.request(&target, &headers)].into();
            let recorded = fetch(caller.address, &requests[0]).await;
            let (status, _) = parse_head(&recorded.head);
            let expected = if name.ends_with("304") { StatusCode::NOT_MODIFIED } else { StatusCode::OK };
            assert_eq!(status, expected, "{name}: {}", String::from_utf8_lossy(&recorded.body));
            rows.push(Row { name, address: caller.address, requests, recorded });
        }
    }
    for (name, encoding) in
        [("feed page, not asked before", ""), ("feed page, gzip, not asked before", "accept-encoding: gzip\r\n")]
    {
        if name.contains(filter) {
            let headers = format!("{encoding}{ROW_HEADER}: {}\r\n", rows.len());
            let tokens = feed_tokens(&servers.usual.world, 0, Place::Middle, ROTATED);
            let requests: Arc<[Vec<u8>]> =
                tokens.iter().map(|token| usual.request(&format!("{feed}?since={token}"), &headers)).collect();
            let recorded = fetch(usual.address, &requests[0]).await;
            rows.push(Row { name, address: usual.address, requests, recorded });
        }
    }
    rows
}

/// Tokens that lead to a place of a license's feed, each further one an entry earlier: so all pages are full.
fn feed_tokens(world: &World, license: usize, place: Place, count: usize) -> Vec<String> {
    let follower = Follower::open(world.path()).expect("the database opens");
    let snapshot = follower.newest();
    let view = feed::view(snapshot, license);
    let seqs = feed::seqs(&view);
    let before = feed::before(place, seqs.len());
    (0..count).map(|earlier| feed::token(snapshot, &view, &seqs, before.saturating_sub(earlier))).collect()
}

/// The static server must send what was recorded, head and body, but for the date.
async fn check_same(rows: &[Row], address: SocketAddr) {
    for row in rows {
        let answer = fetch(address, &row.requests[0]).await;
        let of = |recorded: &Recorded| {
            let (status, mut headers) = parse_head(&recorded.head);
            headers.remove(http::header::DATE);
            (status, headers, recorded.head.len())
        };
        assert_eq!(of(&answer), of(&row.recorded), "{}: another head", row.name);
        assert_eq!(answer.body.len(), row.recorded.body.len(), "{}: another body", row.name);
        assert!(answer.body == row.recorded.body, "{}: another body", row.name);
    }
}

/// A license's key at a server.
#[derive(Clone, Copy)]
struct Caller<'w> {
    address: SocketAddr,
    key: &'w str,
}

impl Caller<'_> {
    fn request(&self, target: &str, headers: &str) -> Vec<u8> {
        let Caller { address, key } = self;
        format!(
            "GET {target} HTTP/1.1\r\nhost: {address}\r\nauthorization: Bearer {key}\r\naccept: */*\r\n{headers}\r\n"
        )
        .into_bytes()
    }

    async fn json(&self, target: &str) -> serde_json::Value {
        let answer = fetch(self.address, &self.request(target, "")).await;
        serde_json::from_slice(&answer.body).unwrap_or_else(|error| panic!("{target} answers no JSON: {error}"))
    }

    /// The sync token after so many pages of the feed, or at its end.
    async fn token_after_pages(&self, from: &str, pages: usize) -> String {
        let limit = from.rsplit_once('&').map_or("", |(_, limit)| limit);
        let mut query = from.to_owned();
        let mut token = String::new();
        for _ in 0..pages {
            let page = self.json(&format!("/v1/conferences/changes?{query}")).await;
            token = page["next_sync_token"].as_str().expect("a page of the feed has a token").to_owned();
            if page["has_more"] == false {
                break;
            }
            query = format!("since={token}&{limit}");
        }
        token
    }

    async fn etag(&self, target: &str) -> String {
        let answer = fetch(self.address, &self.request(target, "")).await;
        let (_, headers) = parse_head(&answer.head);
        let etag = headers.get(ETAG).and_then(|etag| etag.to_str().ok());
        etag.expect("a list has an ETag").to_owned()
    }

    /// A record that none of the world's later commits removed.
    async fn existing_record(&self) -> String {
        for number in 4_500.. {
            let target = format!("/v1/conferences/{}", id_of(number));
            let answer = fetch(self.address, &self.request(&target, "")).await;
            if parse_head(&answer.head).0 == StatusCode::OK {
                return target;
            }
        }
        unreachable!("most records are there")
    }
}
