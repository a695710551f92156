//! Requests to the API, without sockets. Each answer has the contract's form. A second request gets the same answer, a
//! cursor and a sync token in an answer are accepted, and an `ETag` is valid.
//!
//! The input is requests as text, separated by empty lines: method and target, then headers. `{token}` and `{cursor}` stand
//! for valid ones, `{key}` for the key of another license.
#![no_main]

use std::io::Read;
use std::net::{IpAddr, Ipv4Addr};
use std::sync::{Arc, LazyLock};
use std::time::Instant;

use flate2::read::MultiGzDecoder;
use http::{HeaderMap, HeaderName, HeaderValue, Method};
use libfuzzer_sys::fuzz_target;
use medfeed::api::{Code, Request, Response, Service, Settings, SnapshotSource};
use medfeed::model::Dataset;
use medfeed::serve::connection::dispatch::Dispatcher;
use medfeed::serve::connection::limits::Connection;
use medfeed::serve::connection::long_polls::LongPolls;
use medfeed::serve::connection::permits::Permits;
use medfeed::store::{Follower, Snapshot};
use medfeed_fuzz::database::{Database, time};
use medfeed_fuzz::seeds;
use serde_json::Value;
use tokio::runtime::{Builder, Runtime};
use tokio::sync::watch;

const MAX_REQUESTS: usize = 4;

const MAX_TARGET_BYTES: usize = 5000;

/// The statuses of the contract. No request causes a 500.
const STATUSES: [u16; 17] = [200, 204, 206, 301, 304, 308, 400, 401, 403, 404, 405, 406, 410, 414, 416, 429, 503];

static RUNTIME: LazyLock<Runtime> =
    LazyLock::new(|| Builder::new_multi_thread().worker_threads(1).enable_time().build().expect("a runtime"));

/// A source with one snapshot.
struct Fixed(Arc<Snapshot>);

impl SnapshotSource for Fixed {
    fn published(&self) -> Arc<Snapshot> {
        Arc::clone(&self.0)
    }

    fn newest(&self) -> Arc<Snapshot> {
        Arc::clone(&self.0)
    }

    fn polls(&self) -> u64 {
        0
    }

    fn catch_up(&self, _: u64, _: &dyn Fn(&Snapshot) -> bool) -> Arc<Snapshot> {
        Arc::clone(&self.0)
    }
}

struct Api {
    snapshot: Arc<Snapshot>,
    dispatcher: Dispatcher,
    keys: [String; 2],
    token: String,
    cursor: String,
    started: Instant,
    _database: Database,
}

struct Asked {
    method: Method,
    target: String,
    headers: HeaderMap,
}

struct Answer {
    status: u16,
    headers: HeaderMap,
    body: Vec<u8>,
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
            if let Some(asked) = api.parse(request) {
                api.ask_and_check(&service, &asked);
            }
        }
    });
});

impl Api {
    fn new() -> Api {
        let database = Database::filled();
        let follower = Follower::open(&database.path()).expect("the database is read");
        let snapshot = Arc::clone(follower.newest());
        let dispatcher = Dispatcher::new(Permits::new(8, 2), Arc::new(LongPolls::new(0, 0)), RUNTIME.handle().clone());
        let (keys, started) = (database.keys.clone(), Instant::now());
        let (token, cursor) = (String::new(), String::new());
        let mut api = Api { snapshot, dispatcher, keys, token, cursor, started, _database: database };
        let service = api.service();
        let export = api.ask(&service, &api.get("/v1/exports/conferences"));
        api.token = export.headers["x-sync-token"].to_str().expect("a token").to_owned();
        let page = api.ask(&service, &api.get("/v1/conferences?limit=2")).json();
        api.cursor = page["next_cursor"].as_str().expect("a cursor").to_owned();
        api
    }

    fn service(&self) -> Arc<Service> {
        let source = Arc::new(Fixed(Arc::clone(&self.snapshot)));
        Arc::new(Service::new(Settings::of("https://feed.example"), source))
    }

    fn get(&self, target: &str) -> Asked {
        let mut headers = HeaderMap::new();
        headers.insert("x-api-key", HeaderValue::from_str(&self.keys[0]).expect("a key"));
        Asked { method: Method::GET, target: target.to_owned(), headers }
    }

    /// Reads a request. A key is added unless a header `no-key` is there. Texts that no HTTP parser accepts are skipped.
    fn parse(&self, text: &str) -> Option<Asked> {
        let placed =
            text.replace("{token}", &self.token).replace("{cursor}", &self.cursor).replace("{key}", &self.keys[1]);
        let mut lines = placed.lines();
        let (method, target) = lines.next()?.split_once(' ')?;
        let is_sound = target.starts_with('/') && !target.bytes().any(|byte| byte <= b' ' || byte == 0x7f);
        if !is_sound || target.len() > MAX_TARGET_BYTES {
            return None;
        }
        let mut asked = self.get(target);
        asked.method = Method::from_bytes(method.as_bytes()).ok()?;
        for line in lines {
            let Some((name, value)) = line.split_once(':') else { continue };
            let name = HeaderName::from_bytes(name.as_bytes());
            let value = HeaderValue::from_bytes(value.trim().as_bytes());
            if let (Ok(name), Ok(value)) = (name, value) {
                asked.headers.append(name, value);
            }
        }
        if asked.headers.remove("no-key").is_some() {
            asked.headers.remove("x-api-key");
        }
        Some(asked)
    }

    fn ask(&self, service: &Arc<Service>, asked: &Asked) -> Answer {
        let request = Request {
            method: asked.method.clone(),
            target: asked.target.clone(),
            headers: asked.headers.clone(),
            has_body: false,
            flaw: None,
            address: IpAddr::V4(Ipv4Addr::LOCALHOST),
            at: self.started,
            wall: time(),
        };
        let Response { status, headers, body, .. } = RUNTIME.block_on(async {
            let (_open, mut closing) = watch::channel(false);
            self.dispatcher.answer(service, request, &Connection::default(), &mut closing).await
        });
        Answer { status: status.as_u16(), headers, body: body.to_vec() }
    }

    fn ask_and_check(&self, service: &Arc<Service>, asked: &Asked) {
        let answer = self.ask(service, asked);
        let shown = format!("{} {} {:?}", asked.method, asked.target, asked.headers);
        answer.check(asked, &shown);
        if answer.status == 429 {
            return;
        }
        // The second answer may come from the cache.
        let again = self.ask(service, asked);
        again.check(asked, &shown);
        let is_error = answer.status >= 400;
        assert_eq!(answer.status, again.status, "{shown}: another status the second time");
        assert!(is_error || answer.body == again.body, "{shown}: another body the second time");
        assert_eq!(answer.headers.get("etag"), again.headers.get("etag"), "{shown}");
        if answer.status != 200 || asked.method != Method::GET {
            return;
        }
        self.check_head(service, asked, &answer, &shown);
        if let Some(etag) = answer.headers.get("etag") {
            let mut known = Asked { headers: asked.headers.clone(), ..self.get(&asked.target) };
            known.headers.insert("if-none-match", etag.clone());
            assert_eq!(self.ask(service, &known).status, 304, "{shown}: its ETag is not valid");
        }
        self.follow(service, asked, &answer, &shown);
    }

    fn check_head(&self, service: &Arc<Service>, asked: &Asked, answer: &Answer, shown: &str) {
        let head = Asked { method: Method::HEAD, headers: asked.headers.clone(), ..self.get(&asked.target) };
        let head = self.ask(service, &head);
        assert_eq!((head.status, head.body.len()), (200, 0), "{shown}: HEAD");
        for name in ["content-length", "content-type", "etag", "x-sync-token", "x-record-count"] {
            assert_eq!(head.headers.get(name), answer.headers.get(name), "{shown}: {name} of HEAD");
        }
    }

    /// Asks for what an answer leads to.
    fn follow(&self, service: &Arc<Service>, asked: &Asked, answer: &Answer, shown: &str) {
        let (path, query) = asked.target.split_once('?').unwrap_or((&asked.target, ""));
        let export_token = answer.headers.get("x-sync-token").and_then(|token| token.to_str().ok());
        let json = answer.is_json().then(|| answer.json()).unwrap_or_default();
        let accepted = |target: String| {
            let next = Asked { headers: asked.headers.clone(), ..self.get(&target) };
            let next = self.ask(service, &next);
            assert_eq!(next.status, 200, "{shown}: {target} is refused: {}", next.text());
        };
        if let Some(token) = json["next_sync_token"].as_str() {
            accepted(format!("{path}?since={token}"));
        }
        if let Some(token) = export_token {
            let dataset = Dataset::ALL.into_iter().find(|dataset| answer.is_of(<&str>::from(*dataset)));
            let dataset = dataset.unwrap_or_else(|| panic!("{shown}: the export of no dataset"));
            accepted(format!("/v1/{dataset}/changes?since={token}"));
        }
        if let Some(cursor) = json["next_cursor"].as_str() {
            let others = query.split('&').filter(|pair| !pair.is_empty() && !is_cursor(pair));
            let others: String = others.map(|pair| format!("&{pair}")).collect();
            if asked.target.len() + cursor.len() < 4000 {
                accepted(format!("{path}?cursor={cursor}{others}"));
            }
        }
    }
}

/// Whether a pair of a query is the cursor, in any spelling.
fn is_cursor(pair: &str) -> bool {
    let name = pair.split('=').next().unwrap_or_default();
    medfeed::contract::query::percent_decode(name, true).is_some_and(|name| name == "cursor")
}

impl Answer {
    fn text(&self) -> String {
        String::from_utf8_lossy(&self.content()).into_owned()
    }

    fn content(&self) -> Vec<u8> {
        let mut content = self.body.clone();
        if self.headers.contains_key("content-encoding") || self.headers.contains_key("x-sync-token") {
            content.clear();
            MultiGzDecoder::new(self.body.as_slice()).read_to_end(&mut content).expect("gzip");
        }
        content
    }

    fn json(&self) -> Value {
        serde_json::from_slice(&self.content()).unwrap_or_else(|error| panic!("no JSON ({error}): {}", self.text()))
    }

    fn kind(&self) -> &str {
        self.headers.get("content-type").and_then(|kind| kind.to_str().ok()).unwrap_or_default()
    }

    fn is_json(&self) -> bool {
        self.kind().starts_with("application/json")
    }

    /// Whether the name of the file contains this dataset.
    fn is_of(&self, dataset: &str) -> bool {
        let name = self.headers.get("content-disposition").and_then(|name| name.to_str().ok());
        name.is_some_and(|name| name.contains(dataset))
    }

    /// The form of an answer.
    fn check(&self, asked: &Asked, shown: &str) {
        assert!(STATUSES.contains(&self.status), "{shown}: {} {}", self.status, self.text());
        for name in self.headers.keys() {
            assert_eq!(self.headers.get_all(name).iter().count(), 1, "{shown}: {name} appears twice");
        }
        assert!(self.headers.contains_key("x-request-id"), "{shown}: no request id");
        if asked.method == Method::HEAD || self.status == 304 {
            assert!(self.body.is_empty(), "{shown}: a body");
            return;
        }
        let length = self.headers.get("content-length").and_then(|length| length.to_str().ok());
        assert_eq!(length, Some(self.body.len().to_string().as_str()), "{shown}: content-length");
        if self.status >= 400 {
            if self.kind().starts_with("text/html") {
                assert_eq!(self.status, 404, "{shown}: a page");
                return;
            }
            assert_eq!(self.kind(), "application/problem+json", "{shown}");
            let problem = self.json();
            assert_eq!(problem["status"], self.status, "{shown}");
            let code = problem["type"].as_str().and_then(|url| url.rsplit('/').next()).unwrap_or_default();
            assert!(Code::ALL.into_iter().any(|known| known.as_str() == code), "{shown}: {problem}");
        } else if self.is_json() && self.status != 206 {
            self.json();
        }
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
