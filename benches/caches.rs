//! What stands beside the answer cache, and what it is worth: a class of requests that callers make, answered for the first
//! time with it and without it, in turn. What makes no class at least twice as fast should go.
//!
//!     cargo bench --bench caches

#![allow(clippy::print_stdout, reason = "the figures are the output")]

mod support;

use std::hint::black_box;
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use medfeed::api::{Service, Settings, SnapshotSource};
use medfeed::model::ConferenceFields;
use medfeed::serve::Watcher;
use medfeed::store::StoreError;

use support::feed::{self, PAGE, Position};
use support::machine::{Table, median, print_machine};
use support::request::{request, respond};
use support::synthetic::{self, COUNTRY, RARE_TEXT, YEAR};
use support::world::{self, Share, Size, World};

/// Times that each is measured.
const ROUNDS: usize = 25;
/// Rows of a list page, and one that tells whether another follows.
const LIST_ROWS: usize = 101;

/// Why the walk of all records ends.
enum Stop {
    Enough,
    Failed(StoreError),
}

impl From<StoreError> for Stop {
    fn from(error: StoreError) -> Stop {
        Stop::Failed(error)
    }
}

struct Served {
    world: World,
    watcher: Arc<Watcher>,
}

impl Served {
    /// A watched database whose records' JSON may take so many bytes in memory.
    fn open(world: World, record_cache_bytes: u64) -> Served {
        let watcher = Watcher::open(world.path(), Duration::ZERO).expect("the database opens");
        watcher.newest().record_cache().set_capacity(record_cache_bytes);
        watcher.published().warm(&|| true).expect("the records are read");
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

    /// The target of a feed page that begins so many entries before the middle.
    fn feed_page(&self, earlier: usize) -> String {
        let snapshot = self.watcher.published();
        let view = feed::view(&snapshot, 0);
        let seqs = feed::seqs(&view);
        let before = feed::before(Position::Middle, seqs.len()).saturating_sub(earlier);
        format!("/v1/conferences/changes?since={}&limit={PAGE}", feed::token(&snapshot, &view, &seqs, before))
    }

    /// How long the first answer of a new service takes, in microseconds; `prepare` is asked before.
    fn first(&self, prepare: Option<&str>, target: &str, gzip: bool) -> f64 {
        let service = self.service();
        if let Some(prepare) = prepare {
            self.ask(&service, prepare, gzip);
        }
        let began = Instant::now();
        black_box(self.ask(&service, target, gzip));
        began.elapsed().as_secs_f64() * 1e6
    }

    /// How long it takes to look for a list's rows in the records themselves, in microseconds.
    fn walk(&self, matches: impl Fn(&ConferenceFields) -> bool) -> f64 {
        let snapshot = self.watcher.published();
        let began = Instant::now();
        let mut found = 0;
        let walked = snapshot.for_each_record::<ConferenceFields, Stop>(|record, _, _| {
            found += usize::from(matches(record.fields()));
            if found == LIST_ROWS { Err(Stop::Enough) } else { Ok(()) }
        });
        if let Err(Stop::Failed(error)) = walked {
            panic!("the records cannot be read: {error}");
        }
        black_box(found);
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
    let one = Served::open(World::build(Size::USUAL, &[Share::All]), u64::MAX);
    let bare = Served::open(World::build(Size::USUAL, &[Share::All]), 0);

    let pages = [one.feed_page(0), bare.feed_page(0)];
    add(
        "records' JSON: a feed page of 500",
        Box::new(|| one.first(None, &pages[0], false)),
        Box::new(|| bare.first(None, &pages[1], false)),
    );
    let list = "/v1/conferences";
    add(
        "records' JSON: a list of 100",
        Box::new(|| one.first(None, list, false)),
        Box::new(|| bare.first(None, list, false)),
    );
    let narrow = format!("/v1/conferences?year={YEAR}&country={COUNTRY}");
    add(
        "columns: a list by year and country",
        Box::new(|| one.first(None, &narrow, false)),
        Box::new(|| one.walk(|fields| fields.year == Some(YEAR) && fields.country.as_deref() == Some(COUNTRY))),
    );
    let rare = format!("/v1/conferences?q={RARE_TEXT}");
    add(
        "columns: a list by a rare text",
        Box::new(|| one.first(None, &rare, false)),
        Box::new(|| {
            one.walk(|fields| fields.name.as_deref().is_some_and(|name| name.to_lowercase().contains(RARE_TEXT)))
        }),
    );
    let overlapping = one.feed_page(10);
    add(
        "compressed segments: a feed page in gzip that overlaps an earlier one",
        Box::new(|| one.first(Some(&overlapping), &pages[0], true)),
        Box::new(|| one.first(None, &pages[0], true)),
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
            one.watcher.catch_up(one.watcher.polls(), &|_| true);
            let began = Instant::now();
            black_box(one.ask(&service, target, true));
            began.elapsed().as_secs_f64() * 1e6
        };
        add(name, Box::new(with), Box::new(|| one.first(None, target, true)));
    }
    table.print();
}
