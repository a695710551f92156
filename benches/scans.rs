//! What a request costs without sockets: feed scans, lists, single records, reference lists and exports.
//!
//! Each request goes through [`Service::answer`] over a followed database file, as a connection of the server sends
//! it. `MEDFEED_BENCH_LARGE=1` adds the log of a million records and the database with 1,000 licenses.
//!
//!     cargo bench --bench scans
//!     cargo bench --bench scans -- feed

mod support;

use std::cell::OnceCell;
use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;
use std::time::{Duration, Instant};

use criterion::measurement::WallTime;
use criterion::{BenchmarkGroup, Criterion, Throughput};
use http::header::{ETAG, HeaderName, IF_NONE_MATCH};
use http::{HeaderMap, HeaderValue, Method, StatusCode};
use medfeed::api::exports::BuiltExport;
use medfeed::api::{Answer, Pending, Request, Response, Service, Settings, Source};
use medfeed::model::time::now;
use medfeed::model::{Dataset, License};
use medfeed::serve::{Exports, Follow};
use medfeed::store::Snapshot;
use medfeed::token::{Sealer, SyncToken};
use medfeed::view::View;

use support::synthetic::{
    ABSENT_TEXT, AREA_OF_HALF, COMMON_TEXT, CONFERENCE_JSON_BYTES, COUNTRY, RARE_TEXT, YEAR, id_of,
};
use support::world::{Share, Size, World, license_name, mixed_licenses};

/// Entries of a feed page; also the default of the API.
const PAGE: usize = 500;
/// Log lengths that feed scans are measured on.
const LOGS: [u64; 2] = [10_000, 100_000];
/// The log length that is measured on request.
const LARGE_LOG: u64 = 1_000_000;
/// Numbers of licenses that feed scans are measured with.
const LICENSES: [usize; 2] = [1, 100];
/// The number of licenses that is measured on request.
const MANY_LICENSES: usize = 1_000;

fn main() {
    let mut criterion = Criterion::default()
        .warm_up_time(Duration::from_millis(300))
        .measurement_time(Duration::from_secs(2))
        .sample_size(20)
        .configure_from_args();
    support::machine::print_machine("cargo bench --bench scans");
    let usual = Lazy::new(|| Served::build(Size::USUAL, &Share::EACH));
    feed(&mut criterion, &usual);
    feed_of_long_logs(&mut criterion);
    feed_among_licenses(&mut criterion);
    lists(&mut criterion, &usual);
    records(&mut criterion, &usual);
    reference_lists(&mut criterion, &usual);
    exports(&mut criterion, &usual);
    criterion.final_summary();
}

/// Databases are built when the first benchmark that was not filtered out asks for them.
struct Lazy<F> {
    made: OnceCell<Served>,
    make: F,
}

impl<F: Fn() -> Served> Lazy<F> {
    fn new(make: F) -> Lazy<F> {
        Lazy { made: OnceCell::new(), make }
    }

    fn get(&self) -> &Served {
        self.made.get_or_init(&self.make)
    }
}

/// A database behind the API.
struct Served {
    service: Service,
    follow: Arc<Follow>,
    world: World,
}

impl Served {
    fn build(size: Size, licenses: &[Share]) -> Served {
        let world = World::build(size, licenses);
        let follow = Arc::new(Follow::open(world.path(), Duration::ZERO).expect("the database opens"));
        // A server reads these before most requests.
        follow.published().warm(&|| true).expect("the records are read");
        let source: Arc<dyn Source> = Arc::<Follow>::clone(&follow);
        let service = Service::new(Settings::of("http://bench.example.org"), source);
        Served { service, follow, world }
    }

    /// A request of the license at a place.
    fn request(&self, license: usize, path: &str, query: &str) -> Request {
        let mut headers = HeaderMap::new();
        let key = HeaderValue::from_str(&self.world.keys[license]).expect("a key is a header's value");
        headers.insert(HeaderName::from_static("x-api-key"), key);
        headers.insert("accept", HeaderValue::from_static("*/*"));
        Request {
            method: Method::GET,
            path: path.to_owned(),
            query: (!query.is_empty()).then(|| query.to_owned()),
            headers,
            has_body: false,
            address: IpAddr::V4(Ipv4Addr::LOCALHOST),
            at: Instant::now(),
            wall: now(),
        }
    }

    fn answer(&self, request: &Request) -> Answer {
        // A connection copies path, query and headers for each request too.
        let request = Request { at: Instant::now(), wall: now(), ..request.clone() };
        self.service.answer(request)
    }

    fn respond(&self, request: &Request) -> Response {
        match self.answer(request) {
            Answer::Ready(response) => response,
            Answer::Export(_) => panic!("{} answers with an export", request.path),
        }
    }

    fn pending(&self, request: &Request) -> Box<Pending> {
        match self.answer(request) {
            Answer::Export(pending) => pending,
            Answer::Ready(response) => panic!("{} answers {} without an export", request.path, response.status),
        }
    }

    fn view<'s>(&self, snapshot: &'s Snapshot, license: usize) -> View<'s> {
        let license: &License =
            snapshot.find_license_named(&license_name(license)).expect("the license of the place is there");
        View::open(snapshot, license, Dataset::Conferences).expect("every license shows conferences")
    }

    /// A request for the feed page at a place of the feed.
    fn feed_page(&self, license: usize, place: Place) -> Request {
        let snapshot = self.follow.published();
        let view = self.view(&snapshot, license);
        let seqs: Vec<u64> = view
            .feed_after(0)
            .expect("the feed can be read")
            .map(|entry| entry.expect("the entry can be read").seq)
            .collect();
        let after = |place: usize| place.checked_sub(1).and_then(|place| seqs.get(place)).copied().unwrap_or(0);
        let position = match place {
            Place::Start => 0,
            Place::Middle => after(seqs.len() / 2),
            Place::Head => after(seqs.len().saturating_sub(PAGE)),
            Place::NothingNew => after(seqs.len()),
        };
        let token = SyncToken {
            dataset: view.dataset(),
            license: view.license().id,
            scope_seq: view.license().scope_seq,
            position,
            witness: view.witness().expect("the feed can be read"),
        };
        let since = Sealer::new(snapshot.secret()).seal_sync_token(&token);
        let request = self.request(license, "/v1/conferences/changes", &format!("since={since}&limit={PAGE}"));
        let entries = match place {
            Place::Start | Place::Head => seqs.len().min(PAGE),
            Place::Middle => (seqs.len() - seqs.len() / 2).min(PAGE),
            Place::NothingNew => 0,
        };
        let body = self.respond(&request).body;
        // Tombstones are short, so only pages known to hold few of them can be judged by their length.
        let least = if place == Place::Start { entries * CONFERENCE_JSON_BYTES * 8 / 10 } else { entries * 30 };
        let most = entries * CONFERENCE_JSON_BYTES * 12 / 10 + 1_000;
        assert!((least..=most).contains(&body.len()), "{} bytes for {entries} entries of the feed", body.len());
        request
    }
}

/// Where in the feed a page lies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    Start,
    Middle,
    Head,
    NothingNew,
}

impl Place {
    const EACH: [Place; 4] = [Place::Head, Place::Middle, Place::Start, Place::NothingNew];

    const fn name(self) -> &'static str {
        match self {
            Place::Start => "from the start",
            Place::Middle => "in the middle",
            Place::Head => "at the head",
            Place::NothingNew => "nothing new",
        }
    }
}

type Group<'c> = BenchmarkGroup<'c, WallTime>;

/// Measures a request, whose answer must have the status. `prepare` runs only when the benchmark is not filtered out.
fn measure<'s>(group: &mut Group<'_>, name: &str, expected: StatusCode, prepare: impl Fn() -> (&'s Served, Request)) {
    group.bench_function(name, |bencher| {
        let (served, request) = prepare();
        let response = served.respond(&request);
        assert_eq!(
            response.status,
            expected,
            "{}: {}",
            request.path,
            String::from_utf8_lossy(&response.body.to_bytes())
        );
        bencher.iter(|| served.respond(&request));
    });
}

/// Feed pages by place and by how much the license shows.
fn feed(criterion: &mut Criterion, usual: &Lazy<impl Fn() -> Served>) {
    let mut group = criterion.benchmark_group("feed");
    group.throughput(Throughput::Elements(1));
    for (license, share) in Share::EACH.into_iter().enumerate() {
        for place in Place::EACH {
            measure(&mut group, &format!("{} of {}", place.name(), share.name()), StatusCode::OK, || {
                (usual.get(), usual.get().feed_page(license, place))
            });
        }
    }
}

/// Feed pages of longer logs: a page must cost the same.
fn feed_of_long_logs(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("feed of a log");
    group.throughput(Throughput::Elements(1));
    for records in LOGS.into_iter().chain(support::is_large().then_some(LARGE_LOG)) {
        let served = Lazy::new(|| Served::build(Size::of_log(records), &Share::EACH));
        for place in Place::EACH {
            for (license, share) in Share::EACH.into_iter().enumerate() {
                let name = format!("of {records}, {} of {}", place.name(), share.name());
                measure(&mut group, &name, StatusCode::OK, || (served.get(), served.get().feed_page(license, place)));
            }
        }
        measure(&mut group, &format!("of {records}, list with q absent"), StatusCode::OK, || {
            (served.get(), served.get().request(0, "/v1/conferences", &format!("q={ABSENT_TEXT}")))
        });
    }
}

/// Feed pages among other licenses: a page must cost the same.
fn feed_among_licenses(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("feed among licenses");
    group.throughput(Throughput::Elements(1));
    for licenses in LICENSES.into_iter().chain(support::is_large().then_some(MANY_LICENSES)) {
        let served = Lazy::new(|| Served::build(Size::USUAL, &mixed_licenses(licenses)));
        for place in [Place::Head, Place::NothingNew] {
            measure(&mut group, &format!("of {licenses}, {}", place.name()), StatusCode::OK, || {
                (served.get(), served.get().feed_page(0, place))
            });
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
        ("by year and country", format!("year={YEAR}&country={COUNTRY}")),
        ("by therapy area", format!("therapy_area={area}")),
        ("by start date", format!("start_date_from={YEAR}-03-01&start_date_to={YEAR}-03-31")),
        ("updated since long ago", "updated_since=2020-01-01".to_owned()),
        ("updated since tomorrow", "updated_since=2100-01-01".to_owned()),
        ("with q common", format!("q={COMMON_TEXT}")),
        ("with q rare", format!("q={RARE_TEXT}")),
        ("with q absent", format!("q={ABSENT_TEXT}")),
        ("by every filter", every),
    ];
    for (name, query) in &filters {
        measure(&mut group, name, StatusCode::OK, || (usual.get(), usual.get().request(0, "/v1/conferences", query)));
    }
    measure(&mut group, "of journals with q absent", StatusCode::OK, || {
        (usual.get(), usual.get().request(0, "/v1/journals", &format!("q={ABSENT_TEXT}")))
    });
    for (license, share) in Share::EACH.into_iter().enumerate().skip(1) {
        measure(&mut group, &format!("without a filter of {}", share.name()), StatusCode::OK, || {
            (usual.get(), usual.get().request(license, "/v1/conferences", ""))
        });
    }
}

/// Single records and what needs no body.
fn records(criterion: &mut Criterion, usual: &Lazy<impl Fn() -> Served>) {
    let mut group = criterion.benchmark_group("record");
    group.throughput(Throughput::Elements(1));
    let single = || {
        let served = usual.get();
        // Some records were removed since the load: the first one that was not.
        let requests = (4_500..).map(|number| served.request(0, &format!("/v1/conferences/{}", id_of(number)), ""));
        let request = requests.into_iter().find(|request| served.respond(request).status == StatusCode::OK);
        (served, request.expect("most records are there"))
    };
    measure(&mut group, "single", StatusCode::OK, single);
    measure(&mut group, "not found", StatusCode::NOT_FOUND, || {
        (usual.get(), usual.get().request(0, "/v1/conferences/9007199254740991", ""))
    });
    let unchanged = |(served, mut request): (&'_ Served, Request)| -> Request {
        let etag = served.respond(&request).headers.get(ETAG).cloned().expect("the answer has an ETag");
        request.headers.insert(IF_NONE_MATCH, etag);
        request
    };
    measure(&mut group, "single, 304", StatusCode::NOT_MODIFIED, || (usual.get(), unchanged(single())));
    measure(&mut group, "list of 100, 304", StatusCode::NOT_MODIFIED, || {
        let served = usual.get();
        (served, unchanged((served, served.request(0, "/v1/conferences", ""))))
    });
    measure(&mut group, "unusable key, refused", StatusCode::TOO_MANY_REQUESTS, || {
        let served = usual.get();
        let mut request = served.request(0, "/v1/conferences", "");
        request.headers.insert("x-api-key", HeaderValue::from_static("mfk_wrong"));
        // The address's window is soon used up: what is measured then is the refusal, as under an attack.
        while served.respond(&request).status == StatusCode::UNAUTHORIZED {}
        (served, request)
    });
}

/// The three reference lists.
fn reference_lists(criterion: &mut Criterion, usual: &Lazy<impl Fn() -> Served>) {
    let mut group = criterion.benchmark_group("reference");
    group.throughput(Throughput::Elements(1));
    let lists = [
        ("therapy areas", "/v1/reference/therapy-areas", ""),
        ("tags", "/v1/reference/tags", "dataset=conferences"),
        ("organizations", "/v1/reference/organizations", "dataset=conferences"),
        ("organizations of journals", "/v1/reference/organizations", "dataset=journals"),
    ];
    for (name, path, query) in lists {
        for (license, share) in [(0, Share::All), (3, Share::Thousandth)] {
            measure(&mut group, &format!("{name} of {}", share.name()), StatusCode::OK, || {
                (usual.get(), usual.get().request(license, path, query))
            });
        }
    }
}

/// Exports: built for the first who asks, and found built by the next.
fn exports(criterion: &mut Criterion, usual: &Lazy<impl Fn() -> Served>) {
    let mut group = criterion.benchmark_group("export");
    group.throughput(Throughput::Elements(1));
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().expect("the runtime starts");
    for (path, format) in [
        ("/v1/exports/conferences", "jsonl"),
        ("/v1/exports/conferences", "csv"),
        ("/v1/exports/journals", "jsonl"),
        ("/v1/exports/journals", "csv"),
    ] {
        let dataset = path.trim_start_matches("/v1/exports/");
        let query = format!("format={format}");
        group.sample_size(10);
        group.bench_function(format!("{dataset} as {format}, first"), |bencher| {
            let served = usual.get();
            let request = served.request(0, path, &query);
            bencher.iter(|| {
                let pending = served.pending(&request);
                let built: Result<BuiltExport, _> = pending.call.build(&pending.packer);
                let response = built.map(|file| pending.call.respond(&file));
                let response = pending.finish(response);
                assert_eq!(response.status, StatusCode::OK);
                response
            });
        });
        group.sample_size(20);
        group.bench_function(format!("{dataset} as {format}, again"), |bencher| {
            let served = usual.get();
            let request = served.request(0, path, &query);
            let exports = Exports::new(1, 1, usize::MAX);
            let ask = || runtime.block_on(exports.answer(served.pending(&request)));
            assert_eq!(ask().status, StatusCode::OK);
            bencher.iter(ask);
        });
    }
}
