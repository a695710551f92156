//! Requests to the API, without sockets. Each answer has the contract's form. A second request gets the same answer, a
//! cursor and a sync token in an answer are accepted, and an `ETag` is valid.
//!
//! The input is requests as text, separated by empty lines: method and target, then headers. `{token}` and `{cursor}`
//! stand for valid ones, `{key}` for the key of another license.
#![no_main]

use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;
use std::time::{Duration, Instant};

use http::{HeaderMap, HeaderName, HeaderValue, Method};
use libfuzzer_sys::fuzz_target;
use medfeed::api::{Code, Request, Service, Settings};
use medfeed::model::Dataset;
use medfeed::serve::Watcher;
use medfeed_fuzz::database::{Database, time};
use medfeed_fuzz::seeds;

use answer::Answer;
use direct::Direct;

#[allow(dead_code, reason = "the tests of routes use more of it")]
#[path = "../../../tests/harness/answer.rs"]
mod answer;
#[path = "../../../tests/harness/direct.rs"]
mod direct;

const MAX_REQUESTS: usize = 4;

const MAX_TARGET_BYTES: usize = 5000;

/// The statuses of the contract. No request causes a 500.
const STATUSES: [u16; 17] = [
    200, 204, 206, 301, 304, 308, 400, 401, 403, 404, 405, 406, 410, 414, 416, 429, 503,
];

struct Api {
    watcher: Arc<Watcher>,
    keys: [String; 2],
    token: String,
    cursor: String,
    started: Instant,
    _database: Database,
}

thread_local! {
    static API: Api = Api::new();
}

fuzz_target!(init: seeds::write_and_exit(seeds_of_requests), |input: &[u8]| {
    let Ok(text) = std::str::from_utf8(input) else { return };
    API.with(|api| {
        // A new service has an empty cache, so an input has the same answers each time.
        let service = api.service();
        for request in text.split("\n\n").take(MAX_REQUESTS) {
            if let Some(request) = api.parse(request) {
                api.ask_and_check(&service, &request);
            }
        }
    });
});

fn ask(service: &Direct, request: &Request) -> Answer {
    Answer::of(request, service.answer(request.clone()))
}

impl Api {
    fn new() -> Api {
        let database = Database::filled();
        let watcher =
            Watcher::open(&database.path(), Duration::ZERO).expect("the database is read");
        let (keys, started) = (database.keys.clone(), Instant::now());
        let (token, cursor) = (String::new(), String::new());
        let mut api = Api {
            watcher: Arc::new(watcher),
            keys,
            token,
            cursor,
            started,
            _database: database,
        };
        let service = api.service();
        api.token = ask(&service, &api.get("/v1/exports/conferences")).token();
        api.cursor = ask(&service, &api.get("/v1/conferences?limit=2"))
            .cursor()
            .expect("a cursor");
        api
    }

    fn service(&self) -> Direct {
        Direct::new(Service::new(
            Settings::of("https://feed.example"),
            Arc::<Watcher>::clone(&self.watcher),
        ))
    }

    fn get(&self, target: &str) -> Request {
        let key = HeaderValue::from_str(&self.keys[0]).expect("a key");
        Request {
            method: Method::GET,
            target: target.to_owned(),
            headers: HeaderMap::from_iter([(HeaderName::from_static("x-api-key"), key)]),
            has_body: false,
            flaw: None,
            address: IpAddr::V4(Ipv4Addr::LOCALHOST),
            at: self.started,
            wall: time(),
        }
    }

    /// Reads a request. A key is added unless a header `no-key` is there. Texts that no HTTP parser accepts are
    /// skipped.
    fn parse(&self, text: &str) -> Option<Request> {
        let placed = text
            .replace("{token}", &self.token)
            .replace("{cursor}", &self.cursor)
            .replace("{key}", &self.keys[1]);
        let mut lines = placed.lines();
        let (method, target) = lines.next()?.split_once(' ')?;
        let is_sound =
            target.starts_with('/') && !target.bytes().any(|byte| byte <= b' ' || byte == 0x7f);
        if !is_sound || target.len() > MAX_TARGET_BYTES {
            return None;
        }
        let mut request = self.get(target);
        request.method = Method::from_bytes(method.as_bytes()).ok()?;
        for (name, value) in lines.filter_map(|line| line.split_once(':')) {
            let name = HeaderName::from_bytes(name.as_bytes());
            if let (Ok(name), Ok(value)) = (name, HeaderValue::from_bytes(value.trim().as_bytes()))
            {
                request.headers.append(name, value);
            }
        }
        if request.headers.remove("no-key").is_some() {
            request.headers.remove("x-api-key");
        }
        Some(request)
    }

    fn ask_and_check(&self, service: &Direct, request: &Request) {
        let answer = ask(service, request);
        check(request, &answer);
        if answer.status == 429 {
            return;
        }
        // The second answer may come from the cache.
        let again = ask(service, request);
        check(request, &again);
        let shown = format!("{} {:?}", answer.asked, request.headers);
        assert_eq!(
            answer.status, again.status,
            "{shown}: another status the second time"
        );
        assert!(
            answer.status >= 400 || answer.body == again.body,
            "{shown}: another body the second time"
        );
        assert_eq!(answer.header("etag"), again.header("etag"), "{shown}");
        if answer.status != 200 || request.method != Method::GET {
            return;
        }
        if let Some(etag) = answer.header("etag") {
            let mut known = request.clone();
            known
                .headers
                .insert("if-none-match", HeaderValue::from_str(etag).expect("a tag"));
            assert_eq!(
                ask(service, &known).status,
                304,
                "{shown}: its ETag is not valid"
            );
        }
        for target in next_targets(request, &answer) {
            let next = ask(
                service,
                &Request {
                    target: target.clone(),
                    ..request.clone()
                },
            );
            assert_eq!(
                next.status,
                200,
                "{shown}: {target} is refused: {}",
                next.text()
            );
        }
    }
}

/// The targets that an answer leads to: by a sync token and by a cursor.
fn next_targets(request: &Request, answer: &Answer) -> Vec<String> {
    let (path, query) = request
        .target
        .split_once('?')
        .unwrap_or((&request.target, ""));
    let is_json = answer
        .header("content-type")
        .is_some_and(|kind| kind.starts_with("application/json"));
    let json = is_json.then(|| answer.json()).unwrap_or_default();
    let mut targets: Vec<String> = json["next_sync_token"]
        .as_str()
        .map(|token| format!("{path}?since={token}"))
        .into_iter()
        .collect();
    if let Some(token) = answer.header("x-sync-token") {
        let file = answer.header("content-disposition").unwrap_or_default();
        let dataset = Dataset::ALL
            .into_iter()
            .find(|dataset| file.contains(dataset.as_str()));
        targets.push(format!(
            "/v1/{}/changes?since={token}",
            dataset.expect("an export has a dataset")
        ));
    }
    if let Some(cursor) = json["next_cursor"].as_str() {
        let is_cursor = |pair: &&str| {
            let name = pair.split('=').next().unwrap_or_default();
            medfeed::contract::query::percent_decode(name, true)
                .is_some_and(|name| name == "cursor")
        };
        let others = query
            .split('&')
            .filter(|pair| !pair.is_empty() && !is_cursor(pair));
        let target = format!(
            "{path}?cursor={cursor}{}",
            others.map(|pair| format!("&{pair}")).collect::<String>()
        );
        targets.extend((target.len() < 4000).then_some(target));
    }
    targets
}

/// The form of an answer.
fn check(request: &Request, answer: &Answer) {
    let asked = format!("{} {:?}", answer.asked, request.headers);
    assert!(
        STATUSES.contains(&answer.status),
        "{asked}: {} {}",
        answer.status,
        answer.text()
    );
    for name in answer.headers.keys() {
        assert_eq!(
            answer.headers.get_all(name).iter().count(),
            1,
            "{asked}: {name} appears twice"
        );
    }
    assert!(
        answer.header("x-request-id").is_some(),
        "{asked}: no request id"
    );
    if request.method == Method::HEAD || answer.status == 304 {
        assert!(answer.body.is_empty(), "{asked}: a body");
        return;
    }
    assert_eq!(
        answer.number("content-length"),
        answer.body.len() as u64,
        "{asked}: content-length"
    );
    match answer.header("content-type").unwrap_or_default() {
        kind if answer.status >= 400 && kind.starts_with("text/html") => {
            assert_eq!(answer.status, 404, "{asked}")
        }
        kind if answer.status >= 400 => {
            assert_eq!(kind, "application/problem+json", "{asked}");
            assert_eq!(answer.json()["status"], answer.status, "{asked}");
            assert!(
                Code::ALL
                    .into_iter()
                    .any(|known| known.as_str() == answer.code()),
                "{asked}: {}",
                answer.text()
            );
        }
        kind if kind.starts_with("application/json") && answer.status != 206 => drop(answer.json()),
        _ => {}
    }
}

fn seeds_of_requests() -> Vec<Vec<u8>> {
    let seeds = [
        "GET /v1/conferences?limit=2\n\nGET /v1/conferences?limit=2&cursor={cursor}",
        "GET /v1/conferences?q=oncology&year=2026&country=Spain&therapy_area=Oncology&limit=1",
        "GET /v1/conferences?start_date_from=2024-02-29&start_date_to=2027-01-01&updated_since=2024-01-01T00:00:00%2B01:00",
        "GET /v1/conferences/1\nif-none-match: W/\"x\", *\naccept-encoding: gzip;q=0.5, *;q=0",
        "GET /v1/journals?q=C%C3%B4te&organization=1&tag=3&publishing_access=hybrid",
        "GET /v1/conferences/changes?since={token}&limit=1\n\nGET /v1/conferences/changes?since={token}&resync=diff",
        "GET /v1/journals/changes?updated_since=2020-01-01T00:00:00Z&limit=3&wait=0",
        "GET /v1/conferences/changes\nauthorization: Bearer {key}\nno-key: 1",
        "HEAD /v1/exports/conferences?format=jsonl\nrange: bytes=0-9\nif-range: \"x\"",
        "GET /v1/exports/journals?format=csv\nrange: bytes=-5\naccept-encoding: gzip",
        "GET /v1/reference/tags?type=audience\n\nGET /v1/reference/organizations\n\nGET /v1/reference/therapy-areas",
        "GET /v1/status\norigin: https://example.org\n\nOPTIONS /v1/status\naccess-control-request-method: GET",
        "GET /docs/feed\naccept: text/html;q=0.5\n\nGET /openapi.json\n\nGET /\n\nPOST /v1",
        "GET /v1//%63onferences/?li%6Dit=1#x\nhost: a\nx-request-id: b\nno-key: 1",
    ];
    seeds.map(|seed| seed.as_bytes().to_vec()).to_vec()
}
