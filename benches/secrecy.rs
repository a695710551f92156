//! Measures whether response times reveal hidden records.
//!
//! Each probe alternates two requests: a filter that only hidden records match and one that no record matches, or a
//! hidden record and one that does not exist. The figure is the area under the curve (AUC) of distinguishing the two by
//! their times: 0.5 is a coin, 1 is certainty. Requests need no sockets: a network only adds noise.
//!
//! `cargo bench --bench secrecy`; `MEDFEED_BENCH_SAMPLES` sets the samples of each side.

#![allow(
    clippy::expect_used,
    clippy::print_stdout,
    reason = "a bench prints, and ends where something is wrong"
)]

mod support;

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use http::StatusCode;
use medfeed::api::{Request, Service, Settings};
use medfeed::import::{self, MergeOptions, ReadOptions, SourceOptions};
use medfeed::model::{Dataset, Scope};
use medfeed::serve::Watcher;
use medfeed::store::Writer;
use medfeed::store::write::licensing::KeySettings;

/// Samples of each side.
const SAMPLES: usize = 20_000;
/// Conferences in the database.
const CONFERENCES: u64 = 12_000;
/// The license sees one conference in this number.
const VISIBLE_ONE_IN: u64 = 6;
/// The number of hidden matches of probes with few.
const FEW: u64 = 10;
/// The number of hidden matches of probes with many.
const MANY: u64 = 1_000;

/// The probes: a name, a filter that hidden records match, and a filter that no record matches. Both filters have the
/// same letters. Words for `q` also have the same pairs of letters, because the search skips texts that lack a pair.
const PROBES: [(&str, &str, &str); 7] = [
    ("nothing against nothing", "q=vbjvb", "q=bjvbj"),
    ("q, 10 hidden matches", "q=zqxzq", "q=qxzqx"),
    ("q, 1,000 hidden matches", "q=wjkwj", "q=jkwjk"),
    (
        "country of 1 hidden record",
        "country=Zedonia",
        "country=Zidonea",
    ),
    ("country of thousands", "country=Elbonia", "country=Ibolnea"),
    (
        "therapy area of 1 hidden record",
        "therapy_area=Oneirology",
        "therapy_area=Onierology",
    ),
    (
        "therapy area of thousands",
        "therapy_area=Horology",
        "therapy_area=Hylooorg",
    ),
];

fn conferences() -> String {
    let line = |id: u64| {
        let visible = id.is_multiple_of(VISIBLE_ONE_IN);
        let hidden = id - id / VISIBLE_ONE_IN;
        let word = match hidden {
            _ if visible => "",
            ..=FEW => "zqxzq",
            _ if (FEW + 1..=FEW + MANY).contains(&hidden) => "wjkwj",
            _ => "",
        };
        let country = match (visible, hidden) {
            (true, _) => ["Japan", "France", "Chile"][usize::try_from(id % 3).expect("small")],
            (false, 5_000) => "Zedonia",
            (false, _) => "Elbonia",
        };
        let area = match (visible, hidden) {
            (true, _) => "Oncology",
            (false, 5_000) => "Oneirology",
            (false, _) => "Horology",
        };
        format!(
            "{{\"id\":{id},\"name\":\"Annual Meeting {id} of the {word} Society\",\"year\":{},\"country\":\"{country}\",\
             \"therapy_areas\":[\"{area}\"],\"start_date\":\"2026-05-01\",\"start_date_status\":\"check\",\"abstract_due_date_status\":\"check\",\
             \"late_breaking_due_date_status\":\"check\"}}\n",
            2020 + id % 10
        )
    };
    (1..=CONFERENCES)
        .filter(|id| !is_missing(*id))
        .map(line)
        .collect()
}

/// Makes the database; returns a key of a license that sees one record in six.
fn build(folder: &Path) -> String {
    let file = folder.join("conferences.jsonl");
    std::fs::write(&file, conferences()).expect("the file can be written");
    let sources =
        import::Source::find(&[file], SourceOptions::default()).expect("the file is found");
    let rows =
        import::read_sources(&sources, &ReadOptions::default()).expect("the file can be read");
    let writer =
        Writer::open_or_create(&folder.join("bench.redb"), Duration::ZERO).expect("a new database");
    let mut edit = writer.begin().expect("the write transaction begins");
    let options = MergeOptions::default();
    let merged =
        import::merge(rows, &edit.base().expect("a state"), &options).expect("the rows are good");
    edit.apply(&merged.batch).expect("the rows are written");
    let areas = Some(["Oncology".to_owned()].into());
    let scope = Scope {
        datasets: [Dataset::Conferences].into(),
        therapy_areas: areas,
        countries: None,
        years: None,
    };
    edit.set_license("some", scope, Some(u32::MAX))
        .expect("the license is set");
    let (key, _) = edit
        .create_key("some", KeySettings::default())
        .expect("the key is made");
    edit.commit().expect("all is committed");
    key.reveal().to_owned()
}

/// Whether there is no record of this number. Missing numbers are spread irregularly among the numbers of hidden
/// records.
fn is_missing(id: u64) -> bool {
    (2_000..10_000).contains(&id)
        && id % VISIBLE_ONE_IN == 1
        && blake3::hash(&id.to_be_bytes()).as_bytes()[0].is_multiple_of(2)
}

/// The path of a record that is hidden, or of one that does not exist.
fn record(is_hidden: bool, sample: usize) -> String {
    let ids = (2_000..10_000).filter(|id| id % VISIBLE_ONE_IN == 1 && is_missing(*id) != is_hidden);
    let mut id = ids.cycle();
    let id = id.nth(sample % 600).expect("numbers of either kind");
    format!("/v1/conferences/{id}")
}

/// The request of a sample. A date that excludes nothing differs in each, so that no cached answer is found.
fn request(key: &str, filter: &str, sample: usize) -> Request {
    let (year, rest) = (2100 + sample / 336, sample % 336);
    let date = format!("{year:04}-{:02}-{:02}", 1 + rest / 28, 1 + rest % 28);
    support::request::request(
        key,
        &format!("/v1/conferences?{filter}&start_date_to={date}"),
        &[],
    )
}

fn time(service: &Service, request: Request, expected: StatusCode) -> Duration {
    let began = Instant::now();
    let response = support::request::respond(service, request);
    let elapsed = began.elapsed();
    assert_eq!(response.status, expected);
    elapsed
}

/// The chance that a time of the first kind is longer than one of the second.
fn auc(first: &[Duration], second: &[Duration]) -> f64 {
    let mut all: Vec<(Duration, bool)> = first
        .iter()
        .map(|time| (*time, true))
        .chain(second.iter().map(|time| (*time, false)))
        .collect();
    all.sort_unstable();
    let mut ranks = 0.0;
    let mut at = 0;
    while at < all.len() {
        let equal = all[at..].iter();
        let equal = equal.take_while(|(time, _)| *time == all[at].0).count();
        let mean_rank = at as f64 + (equal as f64 + 1.0) / 2.0;
        ranks += mean_rank
            * all[at..at + equal]
                .iter()
                .filter(|(_, is_first)| *is_first)
                .count() as f64;
        at += equal;
    }
    let (n, m) = (first.len() as f64, second.len() as f64);
    (ranks - n * (n + 1.0) / 2.0) / (n * m)
}

fn main() {
    let samples = std::env::var("MEDFEED_BENCH_SAMPLES")
        .map_or(SAMPLES, |text| text.parse().expect("a number"));
    let folder = tempfile::tempdir().expect("a temporary folder");
    let key = build(folder.path());
    let watcher = Arc::new(
        Watcher::open(&folder.path().join("bench.redb"), Duration::ZERO).expect("it opens"),
    );
    let service = Service::new(Settings::of("http://127.0.0.1"), watcher);
    println!(
        "{samples} samples of each side; a license that sees 1 in {VISIBLE_ONE_IN} of {CONFERENCES}\n"
    );
    println!(
        "| probe | AUC | median, hidden matches | median, no match |\n| --- | ---: | ---: | ---: |"
    );
    let filters = PROBES.map(|(name, hidden, none)| (name, Some((hidden, none)), StatusCode::OK));
    for (name, filters, status) in
        filters
            .into_iter()
            .chain([("a record", None, StatusCode::NOT_FOUND)])
    {
        let (mut with, mut without) = (Vec::with_capacity(samples), Vec::with_capacity(samples));
        for sample in 0..samples {
            // The two alternate, and each comes first equally often.
            for first in [sample % 2 == 0, sample % 2 != 0] {
                let asked = match filters {
                    Some((hidden, none)) => {
                        request(&key, if first { hidden } else { none }, sample)
                    }
                    None => support::request::request(&key, &record(first, sample), &[]),
                };
                let taken = time(&service, asked, status);
                if first {
                    with.push(taken)
                } else {
                    without.push(taken)
                }
            }
        }
        let area = auc(&with, &without);
        let median = |times: &mut Vec<Duration>| {
            times.sort_unstable();
            times[times.len() / 2].as_nanos() as f64 / 1e3
        };
        println!(
            "| {name} | {area:.3} | {:.1} us | {:.1} us |",
            median(&mut with),
            median(&mut without)
        );
    }
}
