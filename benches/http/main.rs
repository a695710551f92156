//! The server side by side with hyper alone: real sockets, a real file, the same bytes.
//!
//! Three processes: the `medfeed` program over a database of usual size, a bare hyper server that answers recorded
//! bytes from memory, and this one. Its client drives the two in turn (A B A B ...), so that a busy machine disturbs
//! both alike. Most rows rotate over many URLs, each with an answer of its own, at both servers. The ratio shows what
//! is left of the speed of hyper and the kernel after finding and checking an answer. All processes share the
//! processor, so the table also has the processor time of each server per request.
//!
//! Two further tables: the time of a process from its start to its first answer, compared with the bare server; and,
//! with `MEDFEED_BENCH_LARGE=1`, the cost of answers of large databases compared with small ones.
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
use medfeed::store::Reader;

use child::Server;
use client::{Exchange, Load, drive, fetch};
use exchange::{ROW_HEADER, Recorded, parse_head};
use support::feed::{self, Position};
use support::machine::{Table, median, print_machine};
use support::synthetic::{AREAS, FIRST_YEAR, LAST_YEAR, PLACES, REACHES, id_of};
use support::world::{Share, Size, World};

/// Distinct pages of a row that requests no page a second time soon: a server keeps about 100 of them.
const ROTATED: usize = 2_000;
/// Records, feed pages and filters that rows rotate over.
const RECORDS: usize = 2_000;
const FEED_PAGES: usize = 32;
const FILTERS: usize = 200;
/// Answers to pages that are not requested again may differ in length by one part in this number.
const LENGTHS_DIFFER: usize = 5;
/// The feed that is measured.
const FEED: &str = "/v1/conferences/changes";
/// The part of a round's time for which each server is driven before its first round, unmeasured.
const WARM_UP: f64 = 0.5;

#[derive(Debug, Parser)]
struct Args {
    /// Times that each server is driven per row, in turn
    #[arg(long, env = "MEDFEED_BENCH_ROUNDS", default_value_t = 5)]
    rounds: usize,
    /// Seconds for which it is driven each time
    #[arg(long, env = "MEDFEED_BENCH_SECONDS", default_value_t = 0.5)]
    seconds: f64,
    /// Only rows whose name contains this text
    #[arg(long, env = "MEDFEED_BENCH_ROWS", default_value = "")]
    rows: String,
    /// Numbers of connections
    #[arg(long, value_delimiter = ',', default_values_t = [8, 64])]
    connections: Vec<usize>,
    /// The server's log filter: `info` writes a line per request, to nowhere
    #[arg(long, env = "MEDFEED_BENCH_LOG", default_value = "warn")]
    log: String,
    /// One short round, to check that everything works
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
    // Without cargo's `--bench` this is a test run, as with criterion's benchmarks.
    if args.test || !args.bench {
        args.rounds = 1;
        args.seconds = 0.02;
    }
    let given = std::env::args().skip(1);
    let given: Vec<String> = given.filter(|argument| argument != "--bench").collect();
    print_machine(
        format!("cargo bench --bench http -- {}", given.join(" ")).trim_end_matches([' ', '-']),
    );
    println!(
        "rounds   {} per row and server, in turn, {} s each; medians; the server's log: {}",
        args.rounds, args.seconds, args.log
    );
    println!();
    // One thread, so that a core is left for the server.
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .expect("the runtime starts");
    runtime.block_on(compare(&args));
}

/// A server, and its database.
struct Real {
    world: World,
    server: Server,
}

impl Real {
    fn start(world: World, log: &str) -> Real {
        Real {
            server: start_real(world.path(), log),
            world,
        }
    }
}

fn start_real(database: &Path, log: &str) -> Server {
    let mut command = Command::new(env!("CARGO_BIN_EXE_medfeed"));
    command
        .arg("--db")
        .arg(database)
        .args(["serve", "--listen", "127.0.0.1:0", "--log", log]);
    Server::start(command.stderr(Stdio::null()))
}

fn start_static(folder: &Path) -> Server {
    let program = std::env::current_exe().expect("a program can read its path");
    Server::start(Command::new(program).arg("--static-answers").arg(folder))
}

/// A request that is measured.
struct Row {
    name: &'static str,
    exchanges: Arc<[Exchange]>,
    /// The length of the answers, in bytes: the mean.
    bytes: f64,
}

async fn compare(args: &Args) {
    let usual = Real::start(World::build(Size::USUAL, &Share::EACH), &args.log);
    usual.server.settle();
    let folder = tempfile::tempdir().expect("a temporary folder");
    let mut recorder = Recorder {
        folder: folder.path(),
        answers: Vec::new(),
    };
    let rows = rows(&usual, &args.rows, &mut recorder).await;
    let bare = start_static(folder.path());
    recorder.check(bare.address).await;

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
            let driven = |server| Driven {
                server,
                exchanges: &row.exchanges,
            };
            let (ours, theirs) =
                in_turn(args, *connections, driven(&usual.server), driven(&bare)).await;
            let ratio = median(
                ours.iter()
                    .zip(&theirs)
                    .map(|(one, other)| one.load.per_s() / other.load.per_s()),
            );
            let bytes = row.bytes;
            let of = |rounds: &[Round], figure: fn(&Load) -> f64| {
                median(rounds.iter().map(|round| figure(&round.load)))
            };
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
    for (name, server) in [("medfeed", &usual.server), ("static", &bare)] {
        let (now, most) = server.memory_mib();
        memory.add(&[&name, &format!("{now:.0}"), &format!("{most:.0}")]);
    }
    memory.print();
    drop(usual);
    start::compare(args).await;
    if support::is_large() {
        scale::compare(args).await;
    }
}

/// A server and its requests.
#[derive(Clone, Copy)]
struct Driven<'a> {
    server: &'a Server,
    exchanges: &'a Arc<[Exchange]>,
}

impl Driven<'_> {
    async fn drive(self, connections: usize, time: Duration) -> Load {
        drive(self.server.address, self.exchanges, connections, time).await
    }
}

/// The load of one server in one round.
struct Round {
    load: Load,
    cpu_s: f64,
}

/// Processor time of the server per request, in microseconds, over all rounds: it is counted in steps of 10 ms.
fn cpu_us(rounds: &[Round]) -> f64 {
    let requests: f64 = rounds.iter().map(|round| round.load.count()).sum();
    rounds.iter().map(|round| round.cpu_s).sum::<f64>() * 1e6 / requests
}

async fn in_turn(
    args: &Args,
    connections: usize,
    one: Driven<'_>,
    other: Driven<'_>,
) -> (Vec<Round>, Vec<Round>) {
    let time = Duration::from_secs_f64(args.seconds);
    for driven in [one, other] {
        driven.drive(connections, time.mul_f64(WARM_UP)).await;
    }
    let mut rounds = (Vec::new(), Vec::new());
    for _ in 0..args.rounds {
        for (driven, rounds) in [(one, &mut rounds.0), (other, &mut rounds.1)] {
            let before = driven.server.cpu_s();
            let load = driven.drive(connections, time).await;
            rounds.push(Round {
                load,
                cpu_s: driven.server.cpu_s() - before,
            });
        }
    }
    rounds
}

/// Records answers of the real servers for the static one.
struct Recorder<'f> {
    folder: &'f Path,
    /// The requests and their answers, by number.
    answers: Vec<(Vec<u8>, Recorded)>,
}

impl Recorder<'_> {
    /// Sends a request to the real server, and records the answer.
    async fn record(&mut self, caller: Caller<'_>, target: &str, headers: &str) -> Exchange {
        let number = self.answers.len();
        let request = caller.request(target, &format!("{headers}{ROW_HEADER}: {number}\r\n"));
        let recorded = fetch(caller.address, &request).await;
        let (status, _) = parse_head(&recorded.head);
        let expected = if headers.contains("if-none-match") {
            StatusCode::NOT_MODIFIED
        } else {
            StatusCode::OK
        };
        assert_eq!(
            status,
            expected,
            "{target}: {}",
            String::from_utf8_lossy(&recorded.body)
        );
        exchange::save(self.folder, number, &recorded);
        let body_bytes = recorded.body.len();
        self.answers.push((request.clone(), recorded));
        Exchange {
            request,
            status,
            body_bytes,
            tolerance: 0,
        }
    }

    /// The static server must send the recorded head and body, except for the date.
    async fn check(&self, address: SocketAddr) {
        for (request, recorded) in &self.answers {
            let answer = fetch(address, request).await;
            let of = |recorded: &Recorded| {
                let (status, mut headers) = parse_head(&recorded.head);
                headers.remove(http::header::DATE);
                (status, headers, recorded.head.len())
            };
            let request = String::from_utf8_lossy(request);
            assert_eq!(of(&answer), of(recorded), "{request}: another head");
            assert!(answer.body == recorded.body, "{request}: another body");
        }
    }
}

/// Builds the requests, some of them from earlier answers, and records their answers.
async fn rows(real: &Real, filter: &str, recorder: &mut Recorder<'_>) -> Vec<Row> {
    let caller = Caller {
        address: real.server.address,
        key: &real.world.keys[0],
    };
    let list = "/v1/conferences";
    let gzip = "accept-encoding: gzip\r\n";
    let one = |target: &str| vec![(target.to_owned(), String::new())];
    let feed_pages = |position, count| -> Vec<(String, String)> {
        let tokens = feed_tokens(&real.world, 0, position, count).into_iter();
        tokens
            .map(|token| (format!("{FEED}?since={token}"), String::new()))
            .collect()
    };
    let middle = feed_pages(Position::Middle, FEED_PAGES);
    let end = feed_pages(Position::NothingNew, 1);
    let lists = caller.pages(list).await;
    let records = caller.records(RECORDS).await;
    let wants_gzip = |targets: &[(String, String)]| {
        targets
            .iter()
            .map(|(target, _)| (target.clone(), gzip.to_owned()))
            .collect()
    };

    let classes = [
        ("feed page of 500", middle.clone()),
        ("feed page of 500, gzip", wants_gzip(&middle)),
        ("feed, nothing new", end),
        ("list of 100", lists.clone()),
        ("list of 100, gzip", wants_gzip(&lists)),
        ("list by filter", filters()),
        ("list by q", texts()),
        ("list of 100, 304", caller.with_etags(&lists).await),
        ("single record", records.clone()),
        ("single record, 304", caller.with_etags(&records).await),
        ("therapy areas", one("/v1/reference/therapy-areas")),
        ("tags", one("/v1/reference/tags?dataset=conferences")),
        (
            "organizations",
            one("/v1/reference/organizations?dataset=conferences"),
        ),
        ("export", one("/v1/exports/conferences")),
    ];
    let mut rows = Vec::new();
    for (name, targets) in classes {
        if name.contains(filter) {
            let mut exchanges = Vec::with_capacity(targets.len());
            for (target, headers) in &targets {
                exchanges.push(recorder.record(caller, target, headers).await);
            }
            rows.push(Row::new(name, exchanges, recorder));
        }
    }
    for (name, headers) in [
        ("feed page, not asked before", ""),
        ("feed page, gzip, not asked before", gzip),
    ] {
        if name.contains(filter) {
            let targets = feed_pages(Position::Middle, ROTATED);
            // The static server has one answer for all of them.
            let number = recorder.answers.len();
            let recorded = recorder.record(caller, &targets[0].0, headers).await;
            let headers = format!("{headers}{ROW_HEADER}: {number}\r\n");
            let tolerance = recorded.body_bytes / LENGTHS_DIFFER;
            let of_target = |(target, _): &(String, String)| Exchange {
                request: caller.request(target, &headers),
                tolerance,
                ..recorded.clone()
            };
            let exchanges = targets.iter().map(of_target).collect();
            rows.push(Row::new(name, exchanges, recorder));
        }
    }
    rows
}

impl Row {
    fn new(name: &'static str, exchanges: Vec<Exchange>, recorder: &Recorder<'_>) -> Row {
        let heads = recorder.answers.last();
        let heads = heads.map_or(0, |(_, recorded)| recorded.head.len());
        let bodies = exchanges.iter().map(|exchange| exchange.body_bytes as f64);
        let bodies = bodies.sum::<f64>();
        Row {
            name,
            bytes: bodies / exchanges.len() as f64 + heads as f64,
            exchanges: exchanges.into(),
        }
    }
}

/// Lists by two conditions.
fn filters() -> Vec<(String, String)> {
    let countries = PLACES
        .iter()
        .skip(1)
        .map(|(country, _)| format!("country={}", country.replace(' ', "%20")));
    let areas = AREAS
        .iter()
        .map(|area| format!("therapy_area={}", area.replace(' ', "%20")));
    let conditions: Vec<String> = countries.chain(areas).collect();
    let years = FIRST_YEAR..=LAST_YEAR;
    let pairs = years.flat_map(|year| {
        conditions
            .iter()
            .map(move |condition| format!("year={year}&{condition}"))
    });
    pairs
        .take(FILTERS)
        .map(|query| (format!("/v1/conferences?{query}"), String::new()))
        .collect()
}

/// Lists by a text in the name.
fn texts() -> Vec<(String, String)> {
    let texts = AREAS.iter().chain(&REACHES).map(|text| {
        text.replace(' ', "%20")
            .replace('é', "%C3%A9")
            .replace('ç', "%C3%A7")
    });
    texts
        .map(|text| (format!("/v1/conferences?q={text}"), String::new()))
        .collect()
}

/// Tokens around a position of a license's feed, each one an entry before the previous one. So all pages are full.
fn feed_tokens(world: &World, license: usize, position: Position, count: usize) -> Vec<String> {
    let reader = Reader::open(world.path()).expect("the database opens");
    let snapshot = reader.newest();
    let view = feed::view(snapshot, license);
    let seqs = feed::seqs(&view);
    let before = feed::before(position, seqs.len());
    (0..count)
        .map(|earlier| feed::token(snapshot, &view, &seqs, before.saturating_sub(earlier)))
        .collect()
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
        serde_json::from_slice(&answer.body)
            .unwrap_or_else(|error| panic!("{target} answers no JSON: {error}"))
    }

    /// The targets of all pages of a list.
    async fn pages(&self, list: &str) -> Vec<(String, String)> {
        let mut targets = vec![(list.to_owned(), String::new())];
        loop {
            let page = self.json(&targets[targets.len() - 1].0).await;
            let Some(cursor) = page["next_cursor"].as_str() else {
                return targets;
            };
            targets.push((format!("{list}?cursor={cursor}"), String::new()));
        }
    }

    /// The targets of `count` records that none of the world's later commits removed.
    async fn records(&self, count: usize) -> Vec<(String, String)> {
        let mut targets = Vec::new();
        let mut numbers = 4_500..;
        while targets.len() < count {
            let target = format!(
                "/v1/conferences/{}",
                id_of(numbers.next().expect("numbers do not end"))
            );
            let answer = fetch(self.address, &self.request(&target, "")).await;
            if parse_head(&answer.head).0 == StatusCode::OK {
                targets.push((target, String::new()));
            }
        }
        targets
    }

    /// The targets, each with `If-None-Match` and its present ETag.
    async fn with_etags(&self, targets: &[(String, String)]) -> Vec<(String, String)> {
        let mut conditional = Vec::with_capacity(targets.len());
        for (target, _) in targets {
            let etag = self.etag(target).await;
            conditional.push((target.clone(), format!("if-none-match: {etag}\r\n")));
        }
        conditional
    }

    async fn etag(&self, target: &str) -> String {
        let answer = fetch(self.address, &self.request(target, "")).await;
        let (_, headers) = parse_head(&answer.head);
        let etag = headers.get(ETAG).and_then(|etag| etag.to_str().ok());
        etag.expect("a list has an ETag").to_owned()
    }
}
