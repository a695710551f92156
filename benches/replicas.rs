//! The delay of a replica, and the time of its first load.
//!
//! The bucket is a folder, so neither a network nor a store's own time is in the figures.
//!
//!     cargo bench --bench replicas
//!     cargo bench --bench replicas -- lag       # or load
//!     taskset -c 0 cargo bench --bench replicas -- load
//!
//! `MEDFEED_BENCH_LARGE=1` adds the load of 1,000,000 records.

#![allow(clippy::print_stdout, reason = "the figures are the output")]

mod support;

#[allow(dead_code, reason = "no memory is measured here")]
#[path = "http/child.rs"]
mod child;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Mutex;
use std::thread::sleep;
use std::time::{Duration, Instant};

use child::Server;
use medfeed::model::Dataset;
use medfeed::pull::PullClient;
use medfeed::pull::export::FeedPage;
use medfeed::store::Reader;
use support::Arguments;
use support::feed::{self, Position};
use support::machine::{Table, median, print_machine, quantiles};
use support::random::Random;
use support::synthetic::{self, CONFERENCES, SEED, id_of};
use support::world::{Share, Size, World, commit};
use tempfile::TempDir;

/// The number of commits whose delay is measured, and the mean time between two.
const LAG_COMMITS: u64 = 60;
const LAG_EVERY_MS: u64 = 1_000;
const LAG_STREAM: u64 = 13 << 60;
/// Databases that are loaded, in records.
const LOADS: [u64; 2] = [12_000, 200_000];
const LARGE_LOAD: u64 = 1_000_000;
/// Times that a load is timed.
const LOAD_ROUNDS: usize = 3;

fn main() {
    print_machine("cargo bench --bench replicas");
    let arguments = Arguments::read();
    let is_test = arguments.is_test;
    if arguments.asks_for("lag") {
        time_lags(if is_test { 2 } else { LAG_COMMITS });
    }
    if arguments.asks_for("load") {
        let large = support::is_large().then_some(LARGE_LOAD);
        let sizes = LOADS.into_iter().chain(large);
        let sizes = sizes.take(if is_test { 1 } else { usize::MAX });
        time_loads(sizes, if is_test { 1 } else { LOAD_ROUNDS });
    }
}

fn medfeed() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_medfeed"));
    command.stderr(Stdio::null());
    command
}

/// A bucket in a folder, and files of replicas.
struct Bucket {
    folder: TempDir,
}

impl Bucket {
    /// A bucket with a database's state.
    fn of(world: &World) -> Bucket {
        let bucket = Bucket {
            folder: tempfile::tempdir().expect("a temporary folder"),
        };
        let done = bucket
            .publish(world.path())
            .arg("--once")
            .stdout(Stdio::null())
            .status()
            .expect("it starts");
        assert!(done.success(), "the database is published");
        bucket
    }

    fn url(&self) -> String {
        format!("file://{}", self.folder.path().join("bucket").display())
    }

    fn publish(&self, database: &Path) -> Command {
        let mut command = medfeed();
        command
            .arg("--db")
            .arg(database)
            .args(["publish", &self.url()]);
        command
    }

    fn replica(&self, name: &str) -> PathBuf {
        self.folder.path().join(format!("{name}.redb"))
    }

    /// Starts a replica. It listens once everything is loaded.
    fn serve(&self, name: &str) -> Server {
        let serve = [
            "serve",
            "--listen",
            "127.0.0.1:0",
            "--log",
            "warn",
            "--from",
            &self.url(),
        ];
        Server::start(medfeed().arg("--db").arg(self.replica(name)).args(serve))
    }
}

/// A process. Dropping it ends the process.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        // Both fail only if the process has already ended.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Times from a commit's end until a client that waits at a replica has it; publisher and replica have their defaults.
fn time_lags(commits: u64) {
    let world = World::build(Size::USUAL, &[Share::All]);
    let bucket = Bucket::of(&world);
    let _publisher = Running(
        bucket
            .publish(world.path())
            .stdout(Stdio::null())
            .spawn()
            .expect("it starts"),
    );
    let replica = bucket.serve("replica");
    let url = format!("http://{}", replica.address)
        .parse()
        .expect("an address");
    let limits = medfeed::pull::body::ReadLimits::default();
    let client = PullClient::new(url, &world.keys[0], None, limits).expect("a caller");
    let writer = world.writer();
    let mut lags = Vec::new();
    let mut since = feed_end(&world);
    // Commits are made at set times, whatever the replica has, and out of step with polls every second.
    let committed = Mutex::new(BTreeMap::new());
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let mut random = Random::new(SEED, LAG_STREAM);
            let began = Instant::now();
            for number in 0..commits {
                let at = Duration::from_millis(number * LAG_EVERY_MS + random.below(LAG_EVERY_MS));
                sleep(at.saturating_sub(began.elapsed()));
                let (record, revision) = (number * 37 % CONFERENCES, 1_000 + number);
                // Note the time before any client can have the commit, and then again.
                let note = || {
                    committed
                        .lock()
                        .expect("no panic")
                        .insert(id_of(record).get().cast_signed(), Instant::now())
                };
                note();
                commit(&writer, synthetic::records([record], [], revision));
                note();
            }
        });
        while lags.len() < usize::try_from(commits).expect("few commits") {
            let page = next_page(&client, &since);
            let committed = committed.lock().expect("no panic");
            lags.extend(
                page.entries
                    .iter()
                    .map(|entry| committed[&entry.id].elapsed().as_secs_f64()),
            );
            since = page.token;
        }
    });
    let mut table = Table::new(&[
        "from a commit to a replica's client",
        "commits",
        "p50 s",
        "p95 s",
        "most s",
    ]);
    let cells = quantiles(&lags, [50, 95, 100]).map(|lag| format!("{lag:.2}"));
    table.add(&[&"one a second", &commits, &cells[0], &cells[1], &cells[2]]);
    table.print();
    println!();
}

/// The token of a feed's end.
fn feed_end(world: &World) -> String {
    let reader = Reader::open(world.path()).expect("the database opens");
    let snapshot = reader.newest();
    let view = feed::view(snapshot, 0);
    let seqs = feed::seqs(&view);
    feed::token(
        snapshot,
        &view,
        &seqs,
        feed::before(Position::NothingNew, seqs.len()),
    )
}

/// Long-polls until a page has entries.
fn next_page(client: &PullClient, since: &str) -> FeedPage {
    let mut since = since.to_owned();
    loop {
        match client
            .changes(Dataset::Conferences, &since, 30)
            .expect("the replica answers")
        {
            Some(page) if page.entries.is_empty() => since = page.token,
            Some(page) => return page,
            None => unreachable!("nobody has changed the license"),
        }
    }
}

/// Times the start of replicas without a file: until they listen, which is after load and digest.
fn time_loads(sizes: impl Iterator<Item = u64>, rounds: usize) {
    let mut table = Table::new(&["a replica's first load", "bucket MB", "listens after s"]);
    for records in sizes {
        let world = World::build(
            Size {
                conferences: records * 3 / 4,
                journals: records / 4,
            },
            &Share::EACH,
        );
        let bucket = Bucket::of(&world);
        let times: Vec<f64> = (0..rounds)
            .map(|round| {
                let began = Instant::now();
                let server = bucket.serve(&format!("replica-{round}"));
                let took = began.elapsed().as_secs_f64();
                drop(server);
                std::fs::remove_file(bucket.replica(&format!("replica-{round}")))
                    .expect("the file is there");
                took
            })
            .collect();
        table.add(&[
            &format!("records: {records}"),
            &format!(
                "{:.1}",
                bytes_in(&bucket.folder.path().join("bucket")) as f64 / 1e6
            ),
            &format!("{:.2}", median(times)),
        ]);
    }
    println!("medians of {rounds} rounds:");
    table.print();
    println!();
}

fn bytes_in(folder: &Path) -> u64 {
    let entries = std::fs::read_dir(folder)
        .expect("a folder")
        .map(|entry| entry.expect("an entry"));
    entries
        .map(|entry| {
            let meta = entry.metadata().expect("it is there");
            if meta.is_dir() {
                bytes_in(&entry.path())
            } else {
                meta.len()
            }
        })
        .sum()
}
