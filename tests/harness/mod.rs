//! A world: a database in a temporary folder, edited as the commands edit it, and a service that reads it.

mod age;
mod answer;
mod check;
mod direct;
mod scope;

use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, HashSet};
use std::net::{IpAddr, Ipv4Addr};
use std::path::PathBuf;
use std::sync::{Arc, LazyLock, OnceLock};
use std::time::{Duration, Instant};

use http::{HeaderMap, HeaderName, HeaderValue, Method};
use medfeed::api::{self, Request, Service, Settings};
use medfeed::import::{self, MergeOptions, ReadOptions, Source, SourceOptions};
use medfeed::model::time::now;
use medfeed::serve::Watcher;
use medfeed::store::write::licensing::KeySettings;
use medfeed::store::{Edit, Snapshot, Writer};
use serde_json::{Value, json};
use tokio::sync::watch;

pub use answer::{Answer, gunzip};
pub use direct::Direct;
pub use scope::scope;

/// The URL that callers of a world's service see.
pub const PUBLIC_URL: &str = "https://feed.example";

/// Keys of a new world by the names of their licenses, for [`World::get`].
type Keys = BTreeMap<String, Key>;

/// An API key: its public id and its text.
#[derive(Clone)]
pub struct Key {
    pub id: String,
    pub text: String,
}

/// A database with a service over it, and the clocks that its requests carry.
pub struct World {
    folder: Arc<tempfile::TempDir>,
    source: Arc<dyn api::SnapshotSource>,
    service: Direct,
    /// A second service. It gets each request too, with HEAD in place of GET, so that its rate windows are the same.
    twin: Direct,
    keys: RefCell<Keys>,
    request_ids: RefCell<HashSet<String>>,
    known_pages: RefCell<HashSet<String>>,
    start: Instant,
    /// Seconds since the start, on the clock of rate windows.
    pub at_s: Cell<u64>,
    /// Seconds that the wall clock of requests is ahead.
    pub wall_ahead_s: Cell<i64>,
    /// The address of callers.
    pub address: Cell<IpAddr>,
}

impl World {
    /// A world without a row, a license or a key.
    pub fn empty() -> World {
        let folder = tempfile::tempdir().unwrap();
        // A new database gets its name with its first commit, even an empty one.
        let writer =
            Writer::open_or_create(&folder.path().join("medfeed.redb"), Duration::ZERO).unwrap();
        writer.begin().unwrap().commit().unwrap();
        World::over(Arc::new(folder), Keys::new(), Duration::ZERO)
    }

    /// The world of the folder `fixtures`, with four licenses and a key for each: `full`, `onco` (conferences with
    /// Oncology), `papers` (journals alone) and `spain` (conferences in Spain of 2025 and 2026).
    pub fn small() -> World {
        static SMALL: OnceLock<(Vec<u8>, Keys)> = OnceLock::new();
        let (bytes, keys) = SMALL.get_or_init(|| {
            let world = World::empty();
            world.import_paths(&[PathBuf::from(concat!(
                env!("CARGO_MANIFEST_DIR"),
                "/fixtures"
            ))]);
            world.license("full", "conferences journals");
            world.license("onco", "conferences; areas: Oncology");
            world.license("papers", "journals");
            world.license("spain", "conferences; countries: Spain; years: 2025 2026");
            (std::fs::read(world.database()).unwrap(), world.keys.take())
        });
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("medfeed.redb"), bytes).unwrap();
        World::over(Arc::new(folder), keys.clone(), Duration::ZERO)
    }

    /// Another world over a copy of this one's database. Tokens and keys stay valid.
    pub fn fork(&self) -> World {
        let folder = tempfile::tempdir().unwrap();
        std::fs::copy(self.database(), folder.path().join("medfeed.redb")).unwrap();
        World::over(Arc::new(folder), self.keys.borrow().clone(), Duration::ZERO)
    }

    /// Another server of the same database. It shows commits after a delay.
    pub fn second_server(&self, change_delay: Duration) -> World {
        World::over(
            Arc::clone(&self.folder),
            self.keys.borrow().clone(),
            change_delay,
        )
    }

    fn over(folder: Arc<tempfile::TempDir>, keys: Keys, change_delay: Duration) -> World {
        let watcher = Watcher::open(&folder.path().join("medfeed.redb"), change_delay).unwrap();
        World::of(folder, keys, Arc::new(watcher))
    }

    /// A server of the same database whose states come from `source`.
    pub fn with_source(&self, source: Arc<dyn api::SnapshotSource>) -> World {
        World::of(Arc::clone(&self.folder), self.keys.borrow().clone(), source)
    }

    fn of(
        folder: Arc<tempfile::TempDir>,
        keys: Keys,
        source: Arc<dyn api::SnapshotSource>,
    ) -> World {
        let service = || Direct::new(Service::new(Settings::of(PUBLIC_URL), Arc::clone(&source)));
        World {
            service: service(),
            twin: service(),
            folder,
            source,
            keys: RefCell::new(keys),
            request_ids: RefCell::default(),
            known_pages: RefCell::default(),
            start: Instant::now(),
            at_s: Cell::new(0),
            wall_ahead_s: Cell::new(0),
            address: Cell::new(IpAddr::V4(Ipv4Addr::new(192, 0, 2, 7))),
        }
    }

    /// The file of the database.
    pub fn database(&self) -> PathBuf {
        self.folder.path().join("medfeed.redb")
    }

    /// Changes the database in one commit, and lets the service show it.
    pub fn edit<T>(&self, change: impl FnOnce(&mut Edit<'_>) -> T) -> T {
        let writer = Writer::open(&self.database(), Duration::from_secs(20)).unwrap();
        let mut edit = writer.begin().unwrap();
        let changed = change(&mut edit);
        edit.commit().unwrap();
        drop(writer);
        self.catch_up();
        changed
    }

    /// Lets the service poll the file and show the newest commit.
    pub fn catch_up(&self) {
        self.source.catch_up(Instant::now(), &|_| true);
    }

    /// Lets the service poll the file. With a delay, newer commits are held back.
    pub fn poll(&self) {
        self.source.catch_up(Instant::now(), &|_| false);
    }

    /// The state from which answers are made.
    pub fn shown(&self) -> Arc<Snapshot> {
        self.source.shown()
    }

    /// One import of files, each a stem and its JSON lines.
    pub fn import(&self, files: &[(&str, &[String])]) {
        let folder = tempfile::tempdir().unwrap();
        let paths: Vec<PathBuf> = files
            .iter()
            .map(|(stem, _)| folder.path().join(format!("{stem}.jsonl")))
            .collect();
        for (path, (_, lines)) in paths.iter().zip(files) {
            std::fs::write(path, lines.join("\n")).unwrap();
        }
        self.import_paths(&paths);
    }

    /// One import of conferences, for the many tests that need no more.
    pub fn conferences(&self, lines: &[String]) {
        self.import(&[("conferences", lines)]);
    }

    fn import_paths(&self, paths: &[PathBuf]) {
        let sources = Source::find(paths, SourceOptions::default()).unwrap();
        let rows = import::read_sources(&sources, &ReadOptions::default()).unwrap();
        let options = MergeOptions {
            allow_removals: Some(1_000_000),
            ..MergeOptions::default()
        };
        self.edit(|edit| {
            let merged = import::merge(rows, &edit.base().unwrap(), &options)
                .unwrap_or_else(|refusal| panic!("{refusal}"));
            edit.apply(&merged.batch).unwrap();
        });
    }

    /// Sets the scope of a license (see [`scope`]). A new license gets a key under its name.
    pub fn license(&self, name: &str, shows: &str) {
        self.edit(|edit| edit.set_license(name, scope(shows), None).unwrap());
        if !self.keys.borrow().contains_key(name) {
            self.new_key(name, name, KeySettings::default());
        }
    }

    /// Sets a license's requests per minute.
    pub fn set_rate_limit(&self, name: &str, limit: u32) {
        self.edit(|edit| {
            let scope = edit.find_license(name).unwrap().scope.clone();
            edit.set_license(name, scope, Some(limit)).unwrap()
        });
    }

    /// Makes a key for a license, and stores it under `name`.
    pub fn new_key(&self, name: &str, license: &str, settings: KeySettings) -> Key {
        let (key, record) = self.edit(|edit| edit.create_key(license, settings).unwrap());
        let key = Key {
            id: record.id,
            text: key.reveal().to_owned(),
        };
        self.keys.borrow_mut().insert(name.to_owned(), key.clone());
        key
    }

    /// The key of a name.
    pub fn key(&self, name: &str) -> Key {
        self.keys
            .borrow()
            .get(name)
            .unwrap_or_else(|| panic!("no key `{name}`"))
            .clone()
    }

    /// GET with the key of a name; an empty name sends none.
    pub fn get(&self, key: &str, path: &str) -> Answer {
        self.get_with(key, path, &[])
    }

    /// GET with the key of a name and more headers.
    pub fn get_with(&self, key: &str, path: &str, headers: &[(&str, &str)]) -> Answer {
        let mut all = headers.to_vec();
        let text = if key.is_empty() {
            String::new()
        } else {
            self.key(key).text
        };
        if !key.is_empty() {
            all.push(("x-api-key", &text));
        }
        self.request("GET", path, &all)
    }

    /// Any request without a body.
    pub fn request(&self, method: &str, path: &str, headers: &[(&str, &str)]) -> Answer {
        self.ask(method, path, headers, false)
    }

    /// Sends any request. The answer has passed the central check.
    pub fn ask(
        &self,
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
        has_body: bool,
    ) -> Answer {
        let mut map = HeaderMap::new();
        for (name, value) in headers {
            // From bytes, so that texts beyond ASCII can be sent too.
            let value = HeaderValue::from_bytes(value.as_bytes()).unwrap();
            map.append(HeaderName::from_bytes(name.as_bytes()).unwrap(), value);
        }
        let request = Request {
            method: Method::from_bytes(method.as_bytes()).unwrap(),
            target: path.to_owned(),
            headers: map,
            has_body,
            flaw: None,
            address: self.address.get(),
            at: self.start + Duration::from_secs(self.at_s.get()),
            wall: now().plus_s(self.wall_ahead_s.get()),
        };
        let twin_method = match request.method {
            Method::GET => Method::HEAD,
            Method::HEAD => Method::GET,
            _ => request.method.clone(),
        };
        let answer = Answer::of(&request, self.service.answer(request.clone()));
        let twin_request = Request {
            method: twin_method,
            ..request.clone()
        };
        let twin = Answer::of(&twin_request, self.twin.answer(twin_request.clone()));
        check::check(self, &request, &answer);
        check::check(self, &twin_request, &twin);
        // HEAD has no ranges (RFC 9110, section 14.2).
        if !answer.asked.contains("/exports/") || !request.headers.contains_key("range") {
            check::check_twins(&answer, &twin);
        }
        answer
    }

    /// GET with the key of a name, unchecked, for tests that ask for several answers at once.
    pub async fn ask_at_once(
        &self,
        key: &str,
        target: &str,
        encoding: &'static str,
    ) -> api::Response {
        let mut headers = HeaderMap::new();
        let value = HeaderValue::from_str(&self.key(key).text).unwrap();
        headers.insert("x-api-key", value);
        headers.insert("accept-encoding", HeaderValue::from_static(encoding));
        self.service
            .respond(self.get_request(target, headers))
            .await
    }

    /// Runs a future to completion.
    pub fn run<T>(&self, asking: impl Future<Output = T>) -> T {
        direct::run(asking)
    }

    fn get_request(&self, target: &str, headers: HeaderMap) -> Request {
        Request {
            method: Method::GET,
            target: target.to_owned(),
            headers,
            has_body: false,
            flaw: None,
            address: self.address.get(),
            at: self.start,
            wall: now(),
        }
    }

    /// Whether the page of a problem's `type` exists.
    fn has_page(&self, url: &str) -> bool {
        if self.known_pages.borrow().contains(url) {
            return true;
        }
        let Some(path) = url.strip_prefix(PUBLIC_URL) else {
            return false;
        };
        let request = self.get_request(path, HeaderMap::new());
        let found = self.service.answer(request).status == http::StatusCode::OK;
        found && self.known_pages.borrow_mut().insert(url.to_owned())
    }
}

/// The channel of a source whose snapshot never changes. It stays open and receives nothing.
pub fn no_changes() -> watch::Receiver<()> {
    static NEVER: LazyLock<watch::Sender<()>> = LazyLock::new(|| watch::channel(()).0);
    NEVER.subscribe()
}

/// Prints how many things a passed test has done, for example `counted(16, "kills")`. `tests/proof.sh` adds them up.
pub fn counted(number: impl TryInto<u64>, what: &str) {
    let number = number
        .try_into()
        .unwrap_or_else(|_| panic!("{what} are counted from 0"));
    println!("counted {number} {what}");
}

/// A whole row of a conference: the required fields, and the given ones.
pub fn conference(id: u64, given: Value) -> String {
    let mut row = json!({
        "id": id,
        "name": format!("Conference {id}"),
        "start_date_status": "check",
        "abstract_due_date_status": "check",
        "late_breaking_due_date_status": "check",
    });
    for (name, value) in given.as_object().unwrap() {
        row[name] = value.clone();
    }
    row.to_string()
}

/// A row that sets some fields of a stored record.
pub fn patch(id: u64, given: Value) -> String {
    let mut row = json!({ "id": id });
    for (name, value) in given.as_object().unwrap() {
        row[name] = value.clone();
    }
    row.to_string()
}

/// A row that removes a record.
pub fn removal(id: u64) -> String {
    json!({ "id": id, "deleted": true }).to_string()
}
