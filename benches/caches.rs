//! Measures each cache besides the answer cache: a class of requests, answered for the first time with the cache and
//! without it, in turn. A cache that makes no class at least twice as fast should go.
//!
//!     cargo bench --bench caches

#![allow(clippy::print_stdout, reason = "the figures are the output")]

mod support;

use std::hint::black_box;
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use medfeed::api::{Service, Settings, SnapshotSource};
use medfeed::serve::Watcher;

use support::feed::{self, PAGE, Position};
use support::machine::{Table, median, print_machine};
use support::request::{request, respond};
use support::synthetic;
use support::world::{self, Share, Size, World};

/// The number of measurements of each.
const ROUNDS: usize = 25;
struct Served {
    world: World,
    watcher: Arc<Watcher>,
}

impl Served {
    /// A watched database.
    fn open(world: World) -> Served {
        let watcher = Watcher::open(world.path(), Duration::ZERO).expect("the database opens");
        Served { world, watcher: Arc::new(watcher) }
    }

    /// A service that has answered nothing yet.
    fn service(&self) -> Service {
        let source: Arc<dyn SnapshotSource> = Arc::<Watcher>::clone(&self.watcher);
        Service::new(Settings::of("http://bench.example.org"), source)
    }

    fn ask(&self, service: &Service, target: &str, gzip: bool) -> Bytes {
        let headers: &[(&str, &str)] = if gzip { &[("accept-encoding", "gzip")] } else { &[] };
        let response = respond(service, request(&self.world.keys[0], target, headers));
        assert!(response.status.is_success(), "{target}: {}", String::from_utf8_lossy(&response.body));
        response.body
    }

    /// The target of a feed page that begins `earlier` entries before the middle.
    fn feed_page(&self, earlier: usize) -> String {
        let snapshot = self.watcher.shown();
        let view = feed::view(&snapshot, 0);
        let seqs = feed::seqs(&view);
        let before = feed::before(Position::Middle, seqs.len()).saturating_sub(earlier);
        format!("/v1/conferences/changes?since={}&limit={PAGE}", feed::token(&snapshot, &view, &seqs, before))
    }

    /// Returns the time of a new service's first answer, in microseconds. Requests `prepare` before.
    fn first(&self, prepare: Option<&str>, target: &str, gzip: bool) -> f64 {
        let service = self.service();
        if let Some(prepare) = prepare {
            self.ask(&service, prepare, gzip);
        }
        let began = Instant::now();
        black_box(self.ask(&service, target, gzip));
        began.elapsed().as_secs_f64() * 1e6
    }
}

fn main() {
    let arguments = support::Arguments::read();
    let rounds = if arguments.is_test { 1 } else { ROUNDS };
    print_machine("cargo bench --bench caches");
    let mut table = Table::new(&["medians of first answers", "with us", "without us", "without / with"]);
    let mut add = |name: &str, mut with: Box<dyn FnMut() -> f64 + '_>, mut without: Box<dyn FnMut() -> f64 + '_>| {
        let times: Vec<(f64, f64)> = (0..rounds).map(|_| (with(), without())).collect();
        table.add(&[
            &name,
            &format!("{:.0}", median(times.iter().map(|(with, _)| *with))),
            &format!("{:.0}", median(times.iter().map(|(_, without)| *without))),
            &format!("{:.1}", median(times.iter().map(|(with, without)| without / with))),
        ]);
    };
    let one = Served::open(World::build(Size::USUAL, &[Share::All]));
    let page = one.feed_page(0);
    let overlapping = one.feed_page(10);
    add(
        "compressed segments: a feed page in gzip that overlaps an earlier one",
        Box::new(|| one.first(Some(&overlapping), &page, true)),
        Box::new(|| one.first(None, &page, true)),
    );
    let writer = one.world.writer();
    let mut revision = 1_000;
    for (name, target) in [
        ("compressed segments: an export after a commit of one record", "/v1/exports/conferences"),
        ("compressed segments: the same in CSV", "/v1/exports/conferences?format=csv"),
    ] {
        let service = one.service();
        one.ask(&service, target, true);
        let with = || {
            revision += 1;
            world::commit(&writer, synthetic::records([revision * 37 % synthetic::CONFERENCES], [], revision));
            one.watcher.catch_up(Instant::now(), &|_| true);
            let began = Instant::now();
            black_box(one.ask(&service, target, true));
            began.elapsed().as_secs_f64() * 1e6
        };
        add(name, Box::new(with), Box::new(|| one.first(None, target, true)));
    }
    table.print();
}
