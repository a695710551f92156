//! A database that the model describes, its API without sockets, and keys for all licenses.

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr};
use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use http::{HeaderMap, HeaderValue, Method};
use medfeed::api::{Request, Service, Settings, SnapshotSource};
use medfeed::model::time::now;
use medfeed::model::{Dataset, Scope as RealScope, Timestamp};
use medfeed::store::check::check;
use medfeed::store::restore::Restoration;
use medfeed::store::write::licensing::KeySettings;
use medfeed::store::{Batch, Edit, Reader, Snapshot, Writer};
use serde_json::Value;
use tempfile::TempDir;
use tokio::sync::watch;

use super::edits::{self, Change};
use super::world::{Scope, World};
use crate::harness::{Answer, Direct, gunzip, no_changes};

/// 2020-01-01, in seconds since 1970: a clock that begins here may run for years before it is ahead of the real one.
const FIRST_DAY_S: i64 = 1_577_836_800;

/// A source that always returns the newest state.
struct Newest(Mutex<Reader>);

impl SnapshotSource for Newest {
    fn shown(&self) -> Arc<Snapshot> {
        let mut reader = self.0.lock().expect("no panic while it is held");
        Arc::clone(reader.refresh().expect("the database can be read"))
    }

    fn newest(&self) -> Arc<Snapshot> {
        self.shown()
    }

    fn changes(&self) -> watch::Receiver<()> {
        no_changes()
    }

    fn catch_up(&self, _since: Instant, _accept: &dyn Fn(&Snapshot) -> bool) -> Arc<Snapshot> {
        self.shown()
    }
}

/// A whole export.
#[derive(Debug)]
pub struct Export {
    pub lines: Vec<String>,
    pub token: String,
}

/// A database with the same changes as a model.
pub struct System {
    pub world: World,
    /// The clock of commits. It can be moved, also back.
    pub clock: Timestamp,
    /// The time of the newest commit.
    pub newest: Timestamp,
    /// The number of restores. A token from before any of them has ended.
    pub restores: u32,
    /// The content of the backup.
    backup: Option<World>,
    keys: Vec<String>,
    service: Option<Direct>,
    writer: Option<Writer>,
    folder: TempDir,
}

impl System {
    /// An empty database.
    pub fn new() -> System {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let clock = Timestamp::EPOCH.plus_s(FIRST_DAY_S);
        let (world, keys) = (World::default(), Vec::new());
        let (newest, restores, backup) = (Timestamp::EPOCH, 0, None);
        let mut system = System {
            world,
            clock,
            newest,
            restores,
            backup,
            keys,
            service: None,
            writer: None,
            folder,
        };
        system.restart();
        system
    }

    /// A database with a first import and licenses.
    pub fn with(first: &[Change], scopes: &[Scope]) -> System {
        let mut system = System::new();
        system.import(first);
        for (license, scope) in scopes.iter().enumerate() {
            system.set_license(license, scope);
        }
        system
    }

    /// Closes the file and opens it again.
    pub fn restart(&mut self) {
        self.service = None;
        self.writer = None;
        let path = self.path();
        let writer = Writer::open_or_create(&path, Duration::ZERO).expect("the database opens");
        // A new database gets its name with its first commit, even an empty one.
        writer
            .begin_at(self.clock)
            .and_then(Edit::commit)
            .expect("an empty commit");
        self.writer = Some(writer);
        let reader = Reader::open(&path).expect("the database opens for reading");
        let source = Arc::new(Newest(Mutex::new(reader)));
        self.service = Some(Direct::new(Service::new(
            Settings::of("http://feed.test"),
            source,
        )));
    }

    /// The path of the file.
    pub fn path(&self) -> PathBuf {
        self.folder.path().join("feed.redb")
    }

    /// The open writer.
    pub fn writer(&self) -> &Writer {
        self.writer.as_ref().expect("an open database")
    }

    /// Moves the clock, also back.
    pub fn pass_s(&mut self, seconds: i64) {
        self.clock = self.clock.plus_s(seconds);
    }

    fn backup_path(&self) -> PathBuf {
        self.folder.path().join("backup.redb")
    }

    /// The key of a license.
    pub fn key(&self, license: usize) -> &str {
        &self.keys[license]
    }

    /// Copies the file as a backup.
    pub fn back_up(&mut self) {
        self.writer = None;
        std::fs::copy(self.path(), self.backup_path()).expect("a copy");
        self.writer = Some(Writer::open(&self.path(), Duration::ZERO).expect("the database opens"));
        self.backup = Some(self.world.clone());
    }

    /// Restores the copied file while the service runs, if there is one. Licenses made since are removed.
    pub fn restore(&mut self) -> bool {
        let Some(world) = self.backup.clone() else {
            return false;
        };
        self.writer = None;
        let restoration =
            Restoration::prepare(&self.path(), &self.backup_path(), Duration::ZERO, None);
        restoration
            .and_then(Restoration::finish)
            .expect("the backup is restored");
        self.writer = Some(Writer::open(&self.path(), Duration::ZERO).expect("the database opens"));
        self.keys.truncate(world.licenses.len());
        self.world = world;
        self.world.commits += 1;
        self.restores += 1;
        self.newest = now();
        true
    }

    /// Begins a commit at the time of the clock.
    fn begin(&self) -> Edit<'_> {
        self.writer().begin_at(self.clock).expect("a transaction")
    }

    /// Commits a batch. Returns its time.
    pub fn apply(&mut self, batch: Batch) -> Timestamp {
        let mut edit = self.begin();
        edit.apply(&batch).expect("the batch is taken");
        let time = edit.time();
        let is_empty = edit.is_empty();
        edit.commit().expect("the commit");
        if !is_empty {
            self.newest = time;
        }
        time
    }

    pub fn import(&mut self, changes: &[Change]) {
        let (after, batch) = edits::import(&self.world, changes);
        let time = self.apply(batch);
        self.world = edits::imported(&self.world, after, time);
    }

    /// Sets the scope of a license. A missing license is created, with a key.
    pub fn set_license(&mut self, license: usize, scope: &Scope) {
        let name = format!("license {license}");
        let real = real_scope(scope);
        let is_new = license == self.keys.len();
        let mut edit = self.begin();
        edit.set_license(&name, real, is_new.then_some(1_000_000_000))
            .expect("the license is taken");
        let key = is_new.then(|| {
            edit.create_key(&name, KeySettings::default())
                .expect("a key")
        });
        let time = edit.time();
        edit.commit().expect("the commit");
        self.newest = time;
        self.keys
            .extend(key.map(|(key, _)| key.reveal().to_owned()));
        self.world = edits::rescoped(self.world.clone(), license, scope, time);
    }

    /// Changes a license's rate limit. No token may depend on it.
    pub fn set_rate(&mut self, license: usize, rate: u32) {
        let mut edit = self.begin();
        let name = format!("license {license}");
        let scope = edit.find_license(&name).expect("the license").scope.clone();
        let change = edit
            .set_license(&name, scope, Some(1_000_000_000 + rate))
            .expect("the license is taken");
        assert!(!change.scope_changed);
        edit.commit().expect("the commit");
    }

    /// Sends a request with any method and headers, with a license's key or without one.
    pub fn ask(
        &self,
        license: Option<usize>,
        method: Method,
        target: &str,
        mut headers: HeaderMap,
    ) -> Answer {
        if let Some(license) = license {
            let value = HeaderValue::from_str(&self.keys[license]).expect("a key");
            headers.insert("x-api-key", value);
        }
        let request = Request {
            method,
            target: target.to_owned(),
            headers,
            has_body: false,
            flaw: None,
            address: IpAddr::V4(Ipv4Addr::LOCALHOST),
            at: Instant::now(),
            wall: now(),
        };
        Answer::of(
            &request,
            self.service
                .as_ref()
                .expect("an open database")
                .answer(request.clone()),
        )
    }

    /// Sends a GET with a license's key.
    pub fn get(&self, license: usize, target: &str) -> Answer {
        self.ask(Some(license), Method::GET, target, HeaderMap::new())
    }

    /// Loads an export; `None` if the license does not include the dataset.
    pub fn export(&self, license: usize, dataset: Dataset) -> Option<Export> {
        let reply = self.get(license, &format!("/v1/exports/{dataset}"));
        if reply.status == 403 {
            return None;
        }
        assert_eq!(reply.status, 200, "{}", reply.text());
        let content = String::from_utf8(gunzip(&reply.body)).expect("a text");
        let lines: Vec<String> = content.lines().map(str::to_owned).collect();
        assert_eq!(reply.number("x-record-count"), lines.len() as u64);
        Some(Export {
            lines,
            token: reply.token(),
        })
    }

    /// The records that a license shows, by the model.
    pub fn view(&self, license: usize, dataset: Dataset) -> BTreeMap<u64, Value> {
        let ids = self.world.visible(license, dataset);
        ids.into_iter()
            .map(|id| (id, self.world.json(dataset, id)))
            .collect()
    }

    /// Closes the file and checks it. The check must find no fault.
    pub fn check(mut self) {
        self.service = None;
        let mut writer = self.writer.take().expect("an open database");
        let report = check(&mut writer).expect("the check runs");
        assert_eq!(report.damages, 0, "{:?}", report.findings);
        let counts = Dataset::ALL.iter();
        let counts: Vec<u64> = counts.map(|dataset| report.records[dataset]).collect();
        let modelled = self.world.records.values();
        let modelled = modelled.map(|records| records.len() as u64);
        assert_eq!(counts, modelled.collect::<Vec<_>>(), "the records checked");
    }
}

/// A scope as the store represents it.
pub fn real_scope(scope: &Scope) -> RealScope {
    let texts = |set: &std::collections::BTreeSet<&str>| {
        set.iter().map(|text| (*text).to_owned()).collect()
    };
    RealScope {
        datasets: scope.datasets.clone(),
        therapy_areas: scope.areas.as_ref().map(texts),
        countries: scope.countries.as_ref().map(texts),
        years: scope.years.clone(),
    }
}

/// A text as a query's value.
pub fn encoded(text: &str) -> String {
    text.bytes().map(|byte| format!("%{byte:02X}")).collect()
}
