//! The cost of a request without sockets: feed scans, lists, single records, reference lists and exports.
//!
//! Each request goes through [`Service::answer`] over a watched database file, as a connection of the server sends it.
//! The records are in memory, as in a server.
//!
//! A service keeps finished answers. So pages and reference lists are measured twice: *again*, by a service that
//! answered the same request before, and *first*, by a new service over the same snapshot, made outside the measured
//! time, which has no answer yet.
//!
//! Bodies are handed on as they lie in memory. So that they are not free, each body is copied once into a buffer, as
//! the kernel copies it when a socket takes it. One benchmark, *made only*, leaves that out.
//!
//! Exports after a commit of one changed record are timed in turn with the joining of their finished parts and the
//! recompression of one part, and the ratio is printed.
//!
//! `MEDFEED_BENCH_LARGE=1` adds the log of a million records and the database with 1,000 licenses.
//!
//!     cargo bench --bench scans
//!     cargo bench --bench scans -- feed

#![allow(clippy::print_stdout, reason = "the figures are the output")]

mod support;

use std::cell::OnceCell;
use std::hint::black_box;
use std::sync::Arc;
use std::time::{Duration, Instant};

use criterion::measurement::WallTime;
use criterion::{BatchSize, BenchmarkGroup, Criterion, Throughput};
use http::header::{ACCEPT_ENCODING, ETAG, IF_NONE_MATCH};
use http::{HeaderValue, StatusCode};
use medfeed::api::{Request, Response, Service, Settings, SnapshotSource};
use medfeed::model::time::now;
use medfeed::serve::Watcher;

use support::assembly::Assembly;
use support::feed::{self, PAGE, Position};
use support::machine::{Table, median};
use support::request::request;
use support::synthetic::{
    self, ABSENT_TEXT, AREA_OF_HALF, COMMON_TEXT, CONFERENCE_JSON_BYTES, COUNTRY, RARE_TEXT, YEAR,
    id_of,
};
use support::world::{self, Share, Size, World, mixed_licenses};

/// Log lengths that feed scans are measured on.
const LOGS: [u64; 2] = [10_000, 100_000];
/// The log length that is measured on request.
const LARGE_LOG: u64 = 1_000_000;
/// Numbers of licenses that feed scans are measured with.
const LICENSES: [usize; 2] = [1, 100];
/// The number of licenses that is measured on request.
const MANY_LICENSES: usize = 1_000;
/// Times that an export after a commit and its bare assembly are run in turn.
const ROUNDS: usize = 25;
/// Every export: its path and format.
const EXPORTS: [(&str, &str); 4] = [
    ("/v1/exports/conferences", "jsonl"),
    ("/v1/exports/conferences", "csv"),
    ("/v1/exports/journals", "jsonl"),
    ("/v1/exports/journals", "csv"),
];

fn main() {
    let mut criterion = Criterion::default()
        .warm_up_time(Duration::from_millis(200))
        .measurement_time(Duration::from_secs(1))
        .sample_size(20)
        .configure_from_args();
    support::machine::print_machine("cargo bench --bench scans");
    let arguments = support::Arguments::read();
    if arguments.asks_for("export after a commit") {
        compare_exports(if arguments.is_test { 1 } else { ROUNDS });
    }
    let usual = Lazy::new(|| Served::build(Size::USUAL, &Share::EACH));
    feeds(&mut criterion, &usual);
    feed_of_long_logs(&mut criterion);
    feed_among_licenses(&mut criterion);
    lists(&mut criterion, &usual);
    records(&mut criterion, &usual);
    reference_lists(&mut criterion, &usual);
    exports(&mut criterion, &usual);
    criterion.final_summary();
}

/// A database that is built when the first benchmark that needs it runs, unless all are filtered out.
struct Lazy<F> {
    made: OnceCell<Served>,
    make: F,
}

impl<F: Fn() -> Served> Lazy<F> {
    fn new(make: F) -> Lazy<F> {
        Lazy {
            made: OnceCell::new(),
            make,
        }
    }

    fn get(&self) -> &Served {
        self.made.get_or_init(&self.make)
    }
}

/// A database behind the API.
struct Served {
    service: Arc<Service>,
    watcher: Arc<Watcher>,
    world: World,
}

impl Served {
    fn build(size: Size, licenses: &[Share]) -> Served {
        let world = World::build(size, licenses);
        let watcher =
            Arc::new(Watcher::open(world.path(), Duration::ZERO).expect("the database opens"));
        let service = Arc::new(new_service(&watcher));
        Served {
            service,
            watcher,
            world,
        }
    }

    /// A request of the license at a position.
    fn request(&self, license: usize, path: &str, query: &str) -> Request {
        let target = if query.is_empty() {
            path.to_owned()
        } else {
            format!("{path}?{query}")
        };
        request(&self.world.keys[license], &target, &[])
    }

    fn respond(&self, request: &Request) -> Response {
        respond(&self.service, request)
    }

    /// A request for the feed page at a position of the feed.
    fn feed_page(&self, license: usize, position: Position) -> Request {
        let snapshot = self.watcher.shown();
        let view = feed::view(&snapshot, license);
        let seqs = feed::seqs(&view);
        let before = feed::before(position, seqs.len());
        let since = feed::token(&snapshot, &view, &seqs, before);
        let request = self.request(
            license,
            "/v1/conferences/changes",
            &format!("since={since}&limit={PAGE}"),
        );
        let entries = (seqs.len() - before).min(PAGE);
        let body = self.respond(&request).body;
        // Tombstones are short, so only pages known to hold few of them can be judged by their length.
        let least = if position == Position::Start {
            entries * CONFERENCE_JSON_BYTES * 8 / 10
        } else {
            entries * 30
        };
        let most = entries * CONFERENCE_JSON_BYTES * 12 / 10 + 1_000;
        assert!(
            (least..=most).contains(&body.len()),
            "{} bytes for {entries} entries of the feed",
            body.len()
        );
        request
    }
}

/// A service that has answered nothing yet.
fn new_service(watcher: &Arc<Watcher>) -> Service {
    let source: Arc<dyn SnapshotSource> = Arc::<Watcher>::clone(watcher);
    Service::new(Settings::of("http://bench.example.org"), source)
}

/// A connection copies path, query and headers for each request too.
fn copy(request: &Request) -> Request {
    Request {
        at: Instant::now(),
        wall: now(),
        ..request.clone()
    }
}

fn respond(service: &Service, request: &Request) -> Response {
    support::request::respond(service, copy(request))
}

/// Builds an export, as the server does for the first caller.
fn build(service: &Service, request: &Request) -> Response {
    let response = respond(service, request);
    assert_eq!(response.status, StatusCode::OK);
    response
}

/// Copies a body into a buffer that is used again and again, as the kernel does when a socket takes it.
fn send(body: &[u8], buffer: &mut Vec<u8>) {
    buffer.clear();
    buffer.extend_from_slice(body);
    black_box(buffer.as_slice());
}

type Group<'c> = BenchmarkGroup<'c, WallTime>;

/// Whether a service has answered the request before.
#[derive(Clone, Copy, Debug)]
enum Asked {
    Again,
    First,
}

/// Measures a request, whose answer must have the status. `prepare` runs only when the benchmark is not filtered out.
fn measure<'s>(
    group: &mut Group<'_>,
    name: &str,
    asked: Asked,
    expected: StatusCode,
    prepare: impl Fn() -> (&'s Served, Request),
) {
    group.bench_function(name, |bencher| {
        let (served, request) = prepare();
        let response = served.respond(&request);
        let body = String::from_utf8_lossy(&response.body).into_owned();
        assert_eq!(response.status, expected, "{}: {body}", request.target);
        let mut buffer = Vec::with_capacity(response.body.len());
        match asked {
            Asked::Again => bencher.iter(|| send(&served.respond(&request).body, &mut buffer)),
            Asked::First => bencher.iter_batched_ref(
                || new_service(&served.watcher),
                |service| send(&respond(service, &request).body, &mut buffer),
                BatchSize::SmallInput,
            ),
        }
    });
}

/// Measures a request both ways.
fn measure_both<'s>(
    group: &mut Group<'_>,
    name: &str,
    prepare: impl Fn() -> (&'s Served, Request),
) {
    measure(
        group,
        &format!("{name}, again"),
        Asked::Again,
        StatusCode::OK,
        &prepare,
    );
    measure(
        group,
        &format!("{name}, first"),
        Asked::First,
        StatusCode::OK,
        &prepare,
    );
}

/// Feed pages by position and by how much the license shows.
fn feeds(criterion: &mut Criterion, usual: &Lazy<impl Fn() -> Served>) {
    let mut group = criterion.benchmark_group("feed");
    group.throughput(Throughput::Elements(1));
    for (license, share) in Share::EACH.into_iter().enumerate() {
        for position in Position::EACH {
            measure_both(
                &mut group,
                &format!("{} of {}", position.name(), share.name()),
                || (usual.get(), usual.get().feed_page(license, position)),
            );
        }
    }
    group.bench_function("in the middle of all in gzip, first", |bencher| {
        let served = usual.get();
        let mut page = served.feed_page(0, Position::Middle);
        page.headers
            .insert(ACCEPT_ENCODING, HeaderValue::from_static("gzip"));
        bencher.iter_batched_ref(
            || new_service(&served.watcher),
            |service| build(service, &page),
            BatchSize::SmallInput,
        );
    });
    group.bench_function("in the middle of all, made only, again", |bencher| {
        let request = usual.get().feed_page(0, Position::Middle);
        bencher.iter(|| usual.get().respond(&request));
    });
}

/// Feed pages of longer logs: a page must cost the same.
fn feed_of_long_logs(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("feed of a log");
    group.throughput(Throughput::Elements(1));
    for records in LOGS
        .into_iter()
        .chain(support::is_large().then_some(LARGE_LOG))
    {
        let served = Lazy::new(|| Served::build(Size::of_log(records), &Share::EACH));
        for position in Position::EACH {
            for (license, share) in Share::EACH.into_iter().enumerate() {
                let name = format!("of {records}, {} of {}", position.name(), share.name());
                measure_both(&mut group, &name, || {
                    (served.get(), served.get().feed_page(license, position))
                });
            }
        }
        measure_both(
            &mut group,
            &format!("of {records}, list with q absent"),
            || {
                (
                    served.get(),
                    served
                        .get()
                        .request(0, "/v1/conferences", &format!("q={ABSENT_TEXT}")),
                )
            },
        );
    }
}

/// Feed pages among other licenses: a page must cost the same.
fn feed_among_licenses(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("feed among licenses");
    group.throughput(Throughput::Elements(1));
    for licenses in LICENSES
        .into_iter()
        .chain(support::is_large().then_some(MANY_LICENSES))
    {
        let served = Lazy::new(|| Served::build(Size::USUAL, &mixed_licenses(licenses)));
        for position in [Position::Head, Position::NothingNew] {
            measure_both(
                &mut group,
                &format!("of {licenses}, {}", position.name()),
                || (served.get(), served.get().feed_page(0, position)),
            );
        }
    }
}

/// List pages of 100, by filter.
fn lists(criterion: &mut Criterion, usual: &Lazy<impl Fn() -> Served>) {
    let mut group = criterion.benchmark_group("list");
    group.throughput(Throughput::Elements(1));
    let area = AREA_OF_HALF.replace(' ', "%20");
    let every = format!(
        "q={COMMON_TEXT}&year={YEAR}&start_date_from={YEAR}-02-01&start_date_to={YEAR}-11-30&country={COUNTRY}\
         &therapy_area={area}&updated_since=2020-01-01"
    );
    let filters = [
        ("without a filter", String::new()),
        ("of 500 without a filter", "limit=500".to_owned()),
        ("by year", format!("year={YEAR}")),
        ("by country", format!("country={COUNTRY}")),
        (
            "by year and country",
            format!("year={YEAR}&country={COUNTRY}"),
        ),
        ("by therapy area", format!("therapy_area={area}")),
        (
            "by start date",
            format!("start_date_from={YEAR}-03-01&start_date_to={YEAR}-03-31"),
        ),
        (
            "updated since long ago",
            "updated_since=2020-01-01".to_owned(),
        ),
        (
            "updated since tomorrow",
            "updated_since=2100-01-01".to_owned(),
        ),
        ("with q common", format!("q={COMMON_TEXT}")),
        ("with q rare", format!("q={RARE_TEXT}")),
        ("with q absent", format!("q={ABSENT_TEXT}")),
        ("by every filter", every),
    ];
    for (name, query) in &filters {
        measure_both(&mut group, name, || {
            (
                usual.get(),
                usual.get().request(0, "/v1/conferences", query),
            )
        });
    }
    measure_both(&mut group, "of journals with q absent", || {
        (
            usual.get(),
            usual
                .get()
                .request(0, "/v1/journals", &format!("q={ABSENT_TEXT}")),
        )
    });
    for (license, share) in Share::EACH.into_iter().enumerate().skip(1) {
        measure_both(
            &mut group,
            &format!("without a filter of {}", share.name()),
            || {
                (
                    usual.get(),
                    usual.get().request(license, "/v1/conferences", ""),
                )
            },
        );
    }
}

/// Single records, and answers without a record.
fn records(criterion: &mut Criterion, usual: &Lazy<impl Fn() -> Served>) {
    let mut group = criterion.benchmark_group("record");
    group.throughput(Throughput::Elements(1));
    let single = || {
        let served = usual.get();
        // Some records were removed since the load: the first one that was not.
        let requests = (4_500..)
            .map(|number| served.request(0, &format!("/v1/conferences/{}", id_of(number)), ""));
        let request = requests
            .into_iter()
            .find(|request| served.respond(request).status == StatusCode::OK);
        (served, request.expect("most records are there"))
    };
    measure(&mut group, "single", Asked::Again, StatusCode::OK, single);
    measure(
        &mut group,
        "not found",
        Asked::Again,
        StatusCode::NOT_FOUND,
        || {
            (
                usual.get(),
                usual
                    .get()
                    .request(0, "/v1/conferences/9007199254740991", ""),
            )
        },
    );
    let unchanged = |(served, mut request): (&'_ Served, Request)| -> Request {
        let etag = served
            .respond(&request)
            .headers
            .get(ETAG)
            .cloned()
            .expect("the answer has an ETag");
        request.headers.insert(IF_NONE_MATCH, etag);
        request
    };
    measure(
        &mut group,
        "single, 304",
        Asked::Again,
        StatusCode::NOT_MODIFIED,
        || (usual.get(), unchanged(single())),
    );
    measure(
        &mut group,
        "list of 100, 304",
        Asked::Again,
        StatusCode::NOT_MODIFIED,
        || {
            let served = usual.get();
            (
                served,
                unchanged((served, served.request(0, "/v1/conferences", ""))),
            )
        },
    );
    measure(
        &mut group,
        "unusable key, refused",
        Asked::Again,
        StatusCode::TOO_MANY_REQUESTS,
        || {
            let served = usual.get();
            let mut request = served.request(0, "/v1/conferences", "");
            request
                .headers
                .insert("x-api-key", HeaderValue::from_static("mfk_wrong"));
            // The address's window is soon used up. Then the refusal is measured, as under an attack.
            while served.respond(&request).status == StatusCode::UNAUTHORIZED {}
            (served, request)
        },
    );
}

/// The three reference lists.
fn reference_lists(criterion: &mut Criterion, usual: &Lazy<impl Fn() -> Served>) {
    let mut group = criterion.benchmark_group("reference");
    group.throughput(Throughput::Elements(1));
    let lists = [
        ("therapy areas", "/v1/reference/therapy-areas", ""),
        ("tags", "/v1/reference/tags", "dataset=conferences"),
        (
            "organizations",
            "/v1/reference/organizations",
            "dataset=conferences",
        ),
        (
            "organizations of journals",
            "/v1/reference/organizations",
            "dataset=journals",
        ),
    ];
    for (name, path, query) in lists {
        for (license, share) in [(0, Share::All), (3, Share::Thousandth)] {
            measure_both(&mut group, &format!("{name} of {}", share.name()), || {
                (usual.get(), usual.get().request(license, path, query))
            });
        }
    }
}

/// Exports: built for the first caller, and cached for the next.
fn exports(criterion: &mut Criterion, usual: &Lazy<impl Fn() -> Served>) {
    let mut group = criterion.benchmark_group("export");
    group.throughput(Throughput::Elements(1));
    for (path, format) in EXPORTS {
        let dataset = path.trim_start_matches("/v1/exports/");
        let query = format!("format={format}");
        group.sample_size(10);
        group.bench_function(format!("{dataset} as {format}, first"), |bencher| {
            let served = usual.get();
            let request = served.request(0, path, &query);
            bencher.iter_batched_ref(
                || new_service(&served.watcher),
                |service| build(service, &request),
                BatchSize::PerIteration,
            );
        });
        group.sample_size(20);
        group.bench_function(format!("{dataset} as {format}, again"), |bencher| {
            let served = usual.get();
            let request = served.request(0, path, &query);
            assert_eq!(served.respond(&request).status, StatusCode::OK);
            let mut buffer = Vec::new();
            bencher.iter(|| send(&served.respond(&request).body, &mut buffer));
        });
    }
}

/// Times the first export after a commit of one changed record in turn with the bare assembly of its parts.
fn compare_exports(rounds: usize) {
    let served = Served::build(Size::USUAL, &[Share::All]);
    let writer = served.world.writer();
    let mut table = Table::new(&[
        "export after a commit of one record",
        "KB",
        "parts",
        "medfeed us",
        "bare us",
        "ratio",
    ]);
    let mut revision = 1_000;
    for (path, format) in EXPORTS {
        let request = served.request(0, path, &format!("format={format}"));
        let first = build(&served.service, &request).body;
        let assembly = Assembly::of(&first);
        let mut times = Vec::new();
        for _ in 0..rounds {
            revision += 1;
            let number = revision * 37 % synthetic::JOURNALS;
            let batch = match path.ends_with("conferences") {
                true => synthetic::records([number], [], revision),
                false => synthetic::records([], [number], revision),
            };
            world::commit(&writer, batch);
            let before = served.watcher.shown().commit();
            let found = served.watcher.catch_up(Instant::now(), &|_| true).commit();
            assert_ne!(found, before, "the commit is shown");

            let began = Instant::now();
            let response = build(&served.service, &request);
            let own = began.elapsed();
            let began = Instant::now();
            black_box(assembly.assemble());
            times.push((own.as_secs_f64() * 1e6, began.elapsed().as_secs_f64() * 1e6));
            assert_ne!(response.body, first, "the export holds the change");
        }
        table.add(&[
            &format!("{} as {format}", path.trim_start_matches("/v1/exports/")),
            &(first.len() / 1_000),
            &assembly.count(),
            &format!("{:.0}", median(times.iter().map(|(own, _)| *own))),
            &format!("{:.0}", median(times.iter().map(|(_, bare)| *bare))),
            &format!("{:.2}", median(times.iter().map(|(own, bare)| own / bare))),
        ]);
    }
    println!("medians of {rounds} rounds, in turn:");
    table.print();
    println!();
}
