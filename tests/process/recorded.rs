//! Fixtures of a file format: a database, its bucket and a replica, with the answers that they gave when the format was new.
//!
//! `fixtures.rs` makes them. A recording holds only answers that do not depend on the time of asking. Three things are replaced
//! or left out: the request's id and the time in `/v1/status` become `-`; `Content-Disposition` names the day and is left out;
//! the `ETag` of an export is the hash of compressed bytes, which another release of the compressor may change, and is left out.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::LazyLock;

use data_encoding::{BASE64, HEXLOWER};
use redb::{ReadableDatabase, ReadableTable, TableDefinition};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use sha2::{Digest, Sha256};

use super::client::{Answer, Client};
use super::foreign_files::open;
use super::site::{Done, Server, Site, conferences_of_version};
use crate::harness::gunzip;

/// The formats that fixtures exist of, the oldest first.
pub const FORMATS: [u32; 1] = [2];

/// The options of a server whose answers are recorded: links in them do not depend on its port.
pub const SERVE: &str = "--public-url https://feed.example";

/// The longest body that is kept as text. Of longer ones the hash is kept; each record is in an answer of its own, too.
const MAX_TEXT: usize = 1500;

/// The headers that are recorded.
const HEADERS: [&str; 12] = [
    "accept-ranges",
    "cache-control",
    "content-encoding",
    "content-type",
    "etag",
    "link",
    "retry-after",
    "vary",
    "www-authenticate",
    "x-record-count",
    "x-records-digest",
    "x-sync-token",
];

/// The format number in a database file, of which a copy is opened.
pub fn format_of(file: &Path) -> u32 {
    const META: TableDefinition<&str, &[u8]> = TableDefinition::new("meta");
    let folder = tempfile::tempdir().unwrap();
    let copy = folder.path().join("copy.redb");
    fs::copy(file, &copy).unwrap();
    let meta = open(&copy).begin_read().unwrap().open_table(META).unwrap();
    u32::from_le_bytes(meta.get("schema").unwrap().unwrap().value().try_into().unwrap())
}

/// Whether records have fields that those of the recordings lack. Then only statuses and counts are as recorded: the bodies name
/// more fields, and every record changed with the upgrade.
pub fn has_new_fields() -> bool {
    static HAS: LazyLock<bool> = LazyLock::new(|| {
        const META: TableDefinition<&str, &[u8]> = TableDefinition::new("meta");
        let site = Site::new();
        site.import("conferences.jsonl", conferences_of_version(1, 0));
        let meta = open(&site.db()).begin_read().unwrap().open_table(META).unwrap();
        meta.get("fields").unwrap().unwrap().value() != include_bytes!("../../src/store/upgrade/fields_3.txt")
    });
    *HAS
}

/// The format that the program writes.
pub fn present_format() -> u32 {
    let site = Site::new();
    site.import("conferences.jsonl", conferences_of_version(1, 0));
    format_of(&site.db())
}

/// An answer without its times and ids.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Told {
    pub status: u16,
    pub headers: BTreeMap<String, String>,
    pub body: String,
}

impl Told {
    pub fn of(target: &str, answer: &Answer) -> Told {
        let is_export = target.starts_with("/v1/exports/") && answer.status == 200;
        let headers = HEADERS.iter().filter(|name| !(is_export && **name == "etag"));
        let headers: BTreeMap<String, String> =
            headers.filter_map(|name| Some(((*name).to_owned(), answer.header(name)?.to_owned()))).collect();
        let body = if is_export { answer.gunzip() } else { answer.body.clone() };
        let mut body = String::from_utf8(body).expect("UTF-8");
        if let Some(id) = answer.header("x-request-id") {
            body = body.replace(id, "-");
        }
        if target.starts_with("/v1/status") {
            let status = answer.json();
            body = body.replace(&format!("\"time\":{}", status["time"]), "\"time\":\"-\"");
        }
        if body.len() > MAX_TEXT {
            body = format!("{} bytes, SHA-256 {}", body.len(), sha256(body.as_bytes()));
        }
        Told { status: answer.status, headers, body }
    }
}

impl Told {
    /// The answer without the `detail` of a problem, whose words a release may change.
    fn without_detail(&self) -> (u16, &BTreeMap<String, String>, String) {
        let problem = serde_json::from_str(&self.body).ok().filter(|_| self.status >= 400);
        let body = match problem {
            Some(Value::Object(mut members)) => {
                members.remove("detail");
                Value::Object(members).to_string()
            }
            _ => self.body.clone(),
        };
        (self.status, &self.headers, body)
    }
}

fn sha256(bytes: &[u8]) -> String {
    HEXLOWER.encode(&Sha256::digest(bytes))
}

/// A request and its answer.
#[derive(Debug, Serialize, Deserialize)]
pub struct Exchange {
    /// The name of the key; empty for none.
    pub key: String,
    pub target: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub if_none_match: Option<String>,
    pub told: Told,
}

/// A sync token that a caller saved.
#[derive(Debug, Serialize, Deserialize)]
pub struct Saved {
    pub key: String,
    pub dataset: String,
    /// When it was saved.
    pub moment: String,
    pub token: String,
    /// The token at the end of a walk from this one; `None` where it is answered with 410.
    pub end: Option<String>,
}

impl Saved {
    pub fn target(&self) -> String {
        format!("/v1/{}/changes?since={}", self.dataset, self.token)
    }
}

/// The recorded answers over one state of the database.
#[derive(Debug, Default, Serialize, Deserialize)]
pub struct Recording {
    pub exchanges: Vec<Exchange>,
    pub saved: Vec<Saved>,
    /// Commands, and the JSON that they wrote.
    pub commands: Vec<(Vec<String>, Value)>,
    /// Files of `medfeed export`, and the hashes of their content.
    pub exported: BTreeMap<String, String>,
}

/// All recordings of a format.
#[derive(Debug, Serialize, Deserialize)]
pub struct Recordings {
    pub format: u32,
    /// The texts of the keys, by their names in exchanges. The names are those of their licenses where one is used as it is.
    pub keys: BTreeMap<String, String>,
    /// What the bucket's end and the replica answer.
    pub published: Recording,
    /// What the database answers, which has commits that are not published.
    pub present: Recording,
    /// An instant at which the bucket can be restored, and the hashes of what `medfeed export` writes of it.
    pub earlier: (String, BTreeMap<String, String>),
}

impl Recordings {
    /// A client of a server with the key of a name.
    pub fn client(&self, server: &Server, name: &str) -> Client {
        Client::new(server.address, (!name.is_empty()).then(|| self.keys[name].as_str()))
    }

    /// Fails unless a server gives the recorded answers, all of them.
    pub fn check_answers(&self, recording: &Recording, server: &Server) {
        let mut clients = BTreeMap::new();
        let mut differences = Vec::new();
        for exchange in &recording.exchanges {
            let Exchange { key, target, if_none_match, told } = exchange;
            let answer = match if_none_match {
                Some(tags) => self.client(server, key).with_header("if-none-match", tags).get(target),
                None => clients.entry(key).or_insert_with(|| self.client(server, key)).get(target),
            };
            let found = Told::of(target, &answer);
            let count = |told: &Told| told.headers.get("x-record-count").cloned();
            let is_same = if has_new_fields() {
                (found.status, count(&found)) == (told.status, count(told))
            } else {
                found.without_detail() == told.without_detail()
            };
            if !is_same {
                differences.push(format!("{key}: {target}:\n  recorded {told:?}\n  found    {found:?}"));
            }
        }
        assert!(!recording.exchanges.is_empty(), "nothing is recorded");
        let (all, count) = (recording.exchanges.len(), differences.len());
        differences.truncate(10);
        assert!(differences.is_empty(), "{count} of {all} answers differ:\n{}", differences.join("\n"));
    }

    /// Fails unless commands write of a database what is recorded. The history may have more commits after the recorded ones.
    pub fn check_commands(&self, recording: &Recording, site: &Site, db: &Path) {
        for (args, told) in &recording.commands {
            let mut found = run_recorded(site, db, args);
            if let (Some(commits), Some(recorded)) =
                (found.get_mut("commits").and_then(Value::as_array_mut), told["commits"].as_array())
            {
                commits.drain(..commits.len().saturating_sub(recorded.len()));
            }
            assert!(found == *told || has_new_fields(), "{args:?}: recorded {told}, found {found}");
        }
        check_exported(site, db, &recording.exported);
    }
}

/// Runs a command whose output is recorded. When keys were used is left out.
pub fn run_recorded(site: &Site, db: &Path, args: &[String]) -> Value {
    let mut args: Vec<&str> = args.iter().map(String::as_str).collect();
    args.extend(["--db", db.to_str().expect("UTF-8")]);
    let mut told = site.json(args);
    for key in told.get_mut("keys").and_then(Value::as_array_mut).into_iter().flatten() {
        key.as_object_mut().expect("a key").remove("usage");
    }
    told
}

/// The hashes of the files that `medfeed export` writes of a database.
pub fn exported(site: &Site, db: &Path) -> BTreeMap<String, String> {
    let out = site.path("exported");
    let _ = fs::remove_dir_all(&out);
    site.json(["export".as_ref(), out.as_os_str(), "--db".as_ref(), db.as_os_str()]);
    let files = fs::read_dir(&out).unwrap().map(|entry| entry.unwrap().path());
    let name = |path: &Path| path.file_name().unwrap().to_str().unwrap().to_owned();
    let hashes = files.map(|path| (name(&path), sha256(&fs::read(&path).unwrap()))).collect();
    fs::remove_dir_all(out).unwrap();
    hashes
}

/// Fails unless `medfeed export` writes of a database what is recorded.
pub fn check_exported(site: &Site, db: &Path, recorded: &BTreeMap<String, String>) {
    let found = exported(site, db);
    assert!(found.keys().eq(recorded.keys()), "recorded {recorded:?}, found {found:?}");
    assert!(found == *recorded || has_new_fields(), "recorded {recorded:?}, found {found:?}");
}

/// The path of a file of fixtures.
pub fn fixture(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures").join(name)
}

/// The content of a file of fixtures.
fn read(name: &str) -> Vec<u8> {
    gunzip(&fs::read(fixture(name)).unwrap_or_else(|error| panic!("{name}: {error}")))
}

/// A site with the database of a format, and its recordings.
pub struct Fixture {
    pub site: Site,
    pub format: u32,
    pub recordings: Recordings,
    /// The bytes of the database.
    pub bytes: Vec<u8>,
}

impl Fixture {
    pub fn unpack(format: u32) -> Fixture {
        let site = Site::new();
        let bytes = read(&format!("format-{format}.redb.gz"));
        fs::write(site.db(), &bytes).unwrap();
        let recordings = serde_json::from_slice(&read(&format!("format-{format}-answers.json.gz"))).unwrap();
        Fixture { site, format, recordings, bytes }
    }

    /// All formats that are older than the program's.
    pub fn older() -> Vec<Fixture> {
        let present = present_format();
        let older: Vec<Fixture> =
            FORMATS.iter().filter(|format| **format < present).map(|f| Fixture::unpack(*f)).collect();
        assert!(!older.is_empty(), "the program writes format {present}, and all fixtures are of that format");
        older
    }

    /// The name of the file that an upgrade keeps.
    pub fn kept(&self) -> PathBuf {
        self.site.path(&format!("feed.redb.format-{}", self.format))
    }

    /// Fails unless the database is the old one, byte for byte.
    pub fn is_untouched(&self, what: &str) {
        assert!(fs::read(self.site.db()).unwrap() == self.bytes, "{what}: the file changed");
    }

    /// Runs `medfeed upgrade`, which succeeds.
    pub fn upgrade(&self) -> Done {
        let done = self.site.run(["upgrade"]);
        assert_eq!(done.code, Some(0), "{done:?}");
        done
    }

    /// Unpacks the bucket that the database was published to; returns its folder.
    pub fn unpack_bucket(&self) -> PathBuf {
        let folder = self.site.path("bucket");
        let objects: BTreeMap<String, String> =
            serde_json::from_slice(&read(&format!("format-{}-bucket.json.gz", self.format))).unwrap();
        for (name, bytes) in objects {
            self.site.write(&format!("bucket/{name}"), BASE64.decode(bytes.as_bytes()).unwrap());
        }
        folder
    }

    /// A site with the replica's file.
    pub fn unpack_replica(&self) -> (Site, Vec<u8>) {
        let site = Site::new();
        let bytes = read(&format!("format-{}-replica.redb.gz", self.format));
        fs::write(site.db(), &bytes).unwrap();
        (site, bytes)
    }
}

#[test]
fn fixtures_answer_as_recorded() {
    let present = present_format();
    for format in FORMATS {
        let fixture = Fixture::unpack(format);
        assert_eq!(format_of(&fixture.site.db()), format);
        if format < present {
            fixture.upgrade();
        }
        let recordings = &fixture.recordings;
        let server = fixture.site.serve_with(SERVE);
        recordings.check_answers(&recordings.present, &server);
        server.stop();
        recordings.check_commands(&recordings.present, &fixture.site, &fixture.site.db());
        fixture.site.check();
    }
}
