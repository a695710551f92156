//! What writing costs: imports beside bare redb, small changes, license changes, and how fast readers follow.
//!
//! The import of a whole database is also timed in turn with the insertion of its finished rows into a bare redb file,
//! and the ratio is printed: what validation, rendering, hashing and the feeds of licenses cost on top of the engine.
//! So is the import of one changed record with one license timed in turn with the same among many of the same scope.
//! `MEDFEED_BENCH_LARGE=1` adds 1,000 licenses.
//!
//!     cargo bench --bench writes
//!     cargo bench --bench writes -- change

#![allow(clippy::print_stdout, reason = "the figures are the output")]

mod support;

use std::cell::Cell;
use std::time::{Duration, Instant};

use criterion::{BatchSize, Criterion};
use medfeed::store::{Batch, Follower, Writer};

use support::Arguments;
use support::bare::{self, FinishedRows};
use support::machine::{Table, median, print_machine};
use support::synthetic::{self, CONFERENCES, everything};
use support::world::{Share, Size, World, begin, commit, license_name};

/// Numbers of licenses that imports are measured with. All show everything, so that none saves work.
const LICENSES: [usize; 2] = [1, 100];
/// Numbers of licenses that a single change is measured with.
const CHANGE_LICENSES: [usize; 2] = [1, 100];
/// The number of licenses that is measured on request.
const MANY_LICENSES: usize = 1_000;
/// Records of a change that is not a single one.
const SOME: u64 = 100;
/// Times that an import and the bare insertion are run in turn.
const ROUNDS: usize = 7;
/// Times that changes among few and many licenses are run in turn.
const CHANGE_ROUNDS: usize = 25;

fn main() {
    let mut criterion = Criterion::default()
        .warm_up_time(Duration::from_millis(300))
        .measurement_time(Duration::from_secs(3))
        .sample_size(10)
        .configure_from_args();
    print_machine("cargo bench --bench writes");
    let arguments = Arguments::read();
    let rounds = |usual| if arguments.is_test { 1 } else { usual };
    if arguments.asks_for("import") {
        compare_imports(rounds(ROUNDS));
    }
    if arguments.asks_for("change") {
        compare_changes(rounds(CHANGE_ROUNDS));
    }
    imports(&mut criterion);
    changes(&mut criterion);
    license_changes(&mut criterion);
    followers(&mut criterion);
    criterion.final_summary();
}

/// Times an import and the bare insertion of its rows in turn, so that a busy machine troubles both alike.
fn compare_imports(rounds: usize) {
    let mut table = Table::new(&["import of all into an empty database", "rows", "medfeed ms", "redb ms", "ratio"]);
    for licenses in LICENSES {
        let shares = vec![Share::All; licenses];
        let finished = World::empty(&shares);
        commit(&finished.writer(), everything());
        let rows = FinishedRows::of(finished.path());
        let mut times = Vec::new();
        for _ in 0..rounds {
            let world = World::empty(&shares);
            let writer = world.writer();
            let batch = everything();
            let began = Instant::now();
            commit(&writer, batch);
            let own = began.elapsed();

            let folder = tempfile::tempdir().expect("a temporary folder");
            let database = bare::create(&folder.path().join("bare.redb"));
            let began = Instant::now();
            rows.insert_into(&database);
            times.push((own, began.elapsed()));
        }
        let ms = |of: fn(&(Duration, Duration)) -> f64| median(times.iter().map(of));
        table.add(&[
            &format!("licenses: {licenses}"),
            &rows.count(),
            &format!("{:.0}", ms(|(own, _)| own.as_secs_f64() * 1e3)),
            &format!("{:.0}", ms(|(_, bare)| bare.as_secs_f64() * 1e3)),
            &format!("{:.2}", ms(|(own, bare)| own.as_secs_f64() / bare.as_secs_f64())),
        ]);
    }
    println!("medians of {rounds} rounds, in turn:");
    table.print();
    println!();
}

/// Times a change of one record with one license in turn with the same among many.
fn compare_changes(rounds: usize) {
    let mut table =
        Table::new(&["import of one changed record", "one license us", "change seen by all us", "ratio", "follow us"]);
    let single = World::build(Size::USUAL, &[Share::All]);
    let writer = single.writer();
    // One for all rounds: a revision that comes again is no change.
    let revisions = Revisions::new();
    for licenses in change_licenses().skip(1) {
        let world = World::build(Size::USUAL, &vec![Share::All; licenses]);
        let among = world.writer();
        let mut follower = open_with_records(&world);
        let mut times = Vec::new();
        for _ in 0..rounds {
            let batch = || synthetic::records([revisions.0.get() * 37 % CONFERENCES], [], revisions.0.get());
            let _ = revisions.next(1);
            let time = |writer: &Writer, batch: Batch| {
                let began = Instant::now();
                commit(writer, batch);
                began.elapsed().as_secs_f64() * 1e6
            };
            let one = time(&writer, batch());
            let many = time(&among, batch());
            let began = Instant::now();
            follower.refresh().expect("the database can be read");
            times.push((one, many, began.elapsed().as_secs_f64() * 1e6));
        }
        table.add(&[
            &format!("licenses: {licenses}"),
            &format!("{:.0}", median(times.iter().map(|(one, ..)| *one))),
            &format!("{:.0}", median(times.iter().map(|(_, many, _)| *many))),
            &format!("{:.2}", median(times.iter().map(|(one, many, _)| many / one))),
            &format!("{:.0}", median(times.iter().map(|(.., follow)| *follow))),
        ]);
    }
    println!("medians of {rounds} rounds, in turn:");
    table.print();
    println!();
}

fn change_licenses() -> impl Iterator<Item = usize> {
    CHANGE_LICENSES.into_iter().chain(support::is_large().then_some(MANY_LICENSES))
}

/// Imports of everything into an empty database.
fn imports(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("import");
    for licenses in LICENSES {
        let shares = vec![Share::All; licenses];
        group.bench_function(format!("all, licenses: {licenses}"), |bencher| {
            bencher.iter_batched(
                || {
                    let world = World::empty(&shares);
                    (world.writer(), world, everything())
                },
                |(writer, world, batch)| {
                    commit(&writer, batch);
                    (writer, world)
                },
                BatchSize::PerIteration,
            );
        });
    }
}

/// Batches that differ from what is stored each time.
struct Revisions(Cell<u64>);

impl Revisions {
    fn new() -> Revisions {
        // Later than those that a world begins with.
        Revisions(Cell::new(1_000))
    }

    /// The next revision of some conferences, spread over the whole dataset.
    fn next(&self, count: u64) -> Batch {
        let revision = self.0.get() + 1;
        self.0.set(revision);
        synthetic::records(
            (0..count).map(|position| (position * (CONFERENCES / count) + revision) % CONFERENCES),
            [],
            revision,
        )
    }
}

/// Small changes of a database of usual size.
fn changes(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("change");
    for licenses in change_licenses() {
        let world = std::cell::OnceCell::new();
        let world = || world.get_or_init(|| World::build(Size::USUAL, &vec![Share::All; licenses]));
        let revisions = Revisions::new();
        for count in [1, SOME] {
            group.bench_function(format!("of {count}, licenses: {licenses}"), |bencher| {
                let writer = world().writer();
                bencher.iter_batched(|| revisions.next(count), |batch| commit(&writer, batch), BatchSize::PerIteration);
            });
        }
        if licenses == 1 {
            group.bench_function("of nothing, all records given again", |bencher| {
                let fresh = World::empty(&[Share::All]);
                let writer = fresh.writer();
                commit(&writer, everything());
                bencher.iter_batched(everything, |batch| commit(&writer, batch), BatchSize::PerIteration);
            });
        }
    }
}

/// A license moved to and fro between scopes.
fn license_changes(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("license change");
    for (one, other) in [(Share::All, Share::Half), (Share::Fiftieth, Share::Thousandth)] {
        group.bench_function(format!("between {} and {}", one.name(), other.name()), |bencher| {
            let world = World::build(Size::USUAL, &[one]);
            let writer = world.writer();
            let is_other = Cell::new(false);
            bencher.iter(|| {
                is_other.set(!is_other.get());
                let share = if is_other.get() { other } else { one };
                let mut edit = begin(&writer);
                let change = edit.set_license(&license_name(0), share.scope(), None).expect("the license is set");
                edit.commit().expect("the license is committed");
                assert!(change.scope_changed, "each round changes the scope");
            });
        });
    }
}

/// Readers that open the file and follow its commits.
fn followers(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("follow");
    for licenses in LICENSES {
        let world = std::cell::OnceCell::new();
        let world = || world.get_or_init(|| World::build(Size::USUAL, &vec![Share::All; licenses]));
        // Outside of what criterion calls for each sample: a revision that comes again is no change.
        let revisions = Revisions::new();
        group.bench_function(format!("open, licenses: {licenses}"), |bencher| {
            bencher.iter(|| Follower::open(world().path()).expect("the database opens"));
        });
        group.bench_function(format!("open with records in memory, licenses: {licenses}"), |bencher| {
            bencher.iter(|| open_with_records(world()));
        });
        group.bench_function(format!("nothing new, licenses: {licenses}"), |bencher| {
            let mut follower = open_with_records(world());
            bencher.iter(|| follower.refresh().expect("the database can be read").commit());
        });
        for count in [1, SOME] {
            group.bench_function(format!("after a change of {count}, licenses: {licenses}"), |bencher| {
                let writer: Writer = world().writer();
                let mut follower = open_with_records(world());
                bencher.iter_batched(
                    || commit(&writer, revisions.next(count)),
                    |()| follower.refresh().expect("the database can be read").commit(),
                    BatchSize::PerIteration,
                );
            });
        }
    }
}

/// A follower in the state of a server at work: with the records in memory.
fn open_with_records(world: &World) -> Follower {
    let follower = Follower::open(world.path()).expect("the database opens");
    follower.newest().load().expect("the records are read");
    follower
}
