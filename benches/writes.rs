//! The cost of a commit of one changed record: with many licenses compared with one, and published compared with not
//! published.
//!
//! Each two are timed in turn, so that a busy machine disturbs both alike. `MEDFEED_BENCH_LARGE=1` adds 1,000 licenses.
//!
//!     cargo bench --bench writes
//!     cargo bench --bench writes -- licenses       # or published

#![allow(clippy::print_stdout, reason = "the figures are the output")]

mod support;

use std::time::Instant;

use medfeed::model::Head;
use medfeed::store::file::notes::PublishedNote;
use medfeed::store::{Reader, Writer};

use support::Arguments;
use support::machine::{Table, median, print_machine};
use support::synthetic::{self, CONFERENCES};
use support::world::{Share, Size, World, commit};

/// Numbers of licenses. All show everything, so that none saves work.
const LICENSES: [usize; 2] = [1, 100];
/// The number of licenses that is measured on request.
const MANY_LICENSES: usize = 1_000;
/// Times that commits with one and with many licenses are made in turn.
const LICENSE_ROUNDS: usize = 25;
/// Times that commits are made in turn, published and not.
const PUBLISHED_ROUNDS: usize = 101;

fn main() {
    print_machine("cargo bench --bench writes");
    let arguments = Arguments::read();
    let rounds = |usual| if arguments.is_test { 3 } else { usual };
    if arguments.asks_for("licenses") {
        compare_licenses(rounds(LICENSE_ROUNDS));
    }
    if arguments.asks_for("published") {
        compare_published(rounds(PUBLISHED_ROUNDS));
    }
}

/// Commits a change of one record. Returns how long it took, in microseconds.
fn time_commit(writer: &Writer, revision: u64) -> f64 {
    let batch = synthetic::records([revision * 37 % CONFERENCES], [], revision);
    let began = Instant::now();
    commit(writer, batch);
    began.elapsed().as_secs_f64() * 1e6
}

/// Times a commit with one license in turn with the same commit among many licenses that see it. Times also how long a
/// reader takes to read the second one.
fn compare_licenses(rounds: usize) {
    let mut table = Table::new(&[
        "import of one changed record",
        "one license us",
        "change seen by all us",
        "ratio",
        "follow us",
    ]);
    let single = World::build(Size::USUAL, &[Share::All]);
    let writer = single.writer();
    // One for all rounds: a revision that comes again is no change.
    let mut revisions = 1_000..;
    for licenses in LICENSES
        .into_iter()
        .skip(1)
        .chain(support::is_large().then_some(MANY_LICENSES))
    {
        let world = World::build(Size::USUAL, &vec![Share::All; licenses]);
        let among = world.writer();
        let mut reader = Reader::open(world.path()).expect("the database opens");
        // As in a server at work, the records are in memory.
        reader.newest().load().expect("the records are read");
        let mut times = Vec::new();
        for revision in revisions.by_ref().take(rounds) {
            let (one, many) = (
                time_commit(&writer, revision),
                time_commit(&among, revision),
            );
            let began = Instant::now();
            reader.refresh().expect("the database can be read");
            times.push((one, many, began.elapsed().as_secs_f64() * 1e6));
        }
        table.add(&[
            &format!("licenses: {licenses}"),
            &format!("{:.0}", median(times.iter().map(|(one, ..)| *one))),
            &format!("{:.0}", median(times.iter().map(|(_, many, _)| *many))),
            &format!(
                "{:.2}",
                median(times.iter().map(|(one, many, _)| many / one))
            ),
            &format!("{:.0}", median(times.iter().map(|(.., follow)| *follow))),
        ]);
    }
    println!("medians of {rounds} rounds, in turn:");
    table.print();
    println!();
}

/// Times a change of one record in an unpublished database in turn with the same change in a published one.
fn compare_published(rounds: usize) {
    let mut table = Table::new(&[
        "import of one changed record",
        "unpublished us",
        "published us",
        "ratio",
    ]);
    for licenses in LICENSES {
        let shares = vec![Share::All; licenses];
        let [plain, published] = [(); 2].map(|()| World::build(Size::USUAL, &shares));
        let writers = [plain.writer(), published.writer()];
        let id = writers[1].mark_published().expect("the database is marked");
        let mut reader = Reader::open(published.path()).expect("the database opens");
        let mut times = Vec::new();
        for round in 0..rounds as u64 {
            let revision = 1_000 + round;
            times.push((
                time_commit(&writers[0], revision),
                time_commit(&writers[1], revision),
            ));
            // Writes the note as a publisher does. The next commit removes published changes from the outbox.
            let Head { seq, lineage } = reader
                .refresh()
                .expect("the database can be read")
                .commit()
                .head();
            let url = "file:///bucket".to_owned();
            let note = PublishedNote {
                url,
                id,
                slot: revision,
                seq,
                lineage,
                hash: [0; 32],
                fenced: None,
                fenced_at: None,
            };
            note.write(published.path()).expect("the note is written");
        }
        table.add(&[
            &format!("licenses: {licenses}"),
            &format!("{:.0}", median(times.iter().map(|(plain, _)| *plain))),
            &format!(
                "{:.0}",
                median(times.iter().map(|(_, published)| *published))
            ),
            &format!(
                "{:.2}",
                median(times.iter().map(|(plain, published)| published / plain))
            ),
        ]);
    }
    println!("medians of {rounds} rounds, in turn:");
    table.print();
    println!();
}
