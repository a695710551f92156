//! A release adds a field: files of the release before it lack the field, and `medfeed upgrade` writes their records
//! again.
//!
//! Such a file is made from one of today's: a field is removed from the JSON of its records, and from the list of its
//! fields.

use std::fs;
use std::path::{Path, PathBuf};

use medfeed::store::restore::SCHEMA;
use redb::{ReadableDatabase, ReadableTable, TableDefinition};
use serde_json::Value;

use super::client::Client;
use super::foreign_files::{are_refused, open};
use super::publishing::{commit, published_in_folder};
use super::site::{Done, Site, conferences_of_version};

const META: TableDefinition<&str, &[u8]> = TableDefinition::new("meta");

/// Id, hash and JSON of a record, by dataset and seq.
type LogRow = (u64, [u8; 16], &'static [u8]);
const LOG: TableDefinition<(u8, u64), LogRow> = TableDefinition::new("log");

const CONFERENCES: u8 = 1;
pub const FIELD: &str = "conferences.venue";

const JOURNAL: &str = r#"{"id":1,"name":"Journal"}"#;

/// Changes the JSON of a dataset's records.
fn rewrite(db: &Path, dataset: u8, change: impl Fn(&str) -> String) {
    let database = open(db);
    let transaction = database.begin_write().unwrap();
    {
        let mut log = transaction.open_table(LOG).unwrap();
        let rows: Vec<((u8, u64), u64, String)> = log
            .range((dataset, 0)..=(dataset, u64::MAX))
            .unwrap()
            .map(|row| {
                let (key, value) = row.unwrap();
                let (id, _, text) = value.value();
                (key.value(), id, change(std::str::from_utf8(text).unwrap()))
            })
            .collect();
        for (key, id, text) in rows {
            let hash = blake3::hash(text.as_bytes()).as_bytes()[..16]
                .try_into()
                .unwrap();
            log.insert(key, (id, hash, text.as_bytes())).unwrap();
        }
    }
    transaction.commit().unwrap();
}

/// Changes the list of fields in the file.
fn rewrite_fields(db: &Path, change: impl Fn(&str) -> String) {
    let database = open(db);
    let transaction = database.begin_write().unwrap();
    {
        let mut meta = transaction.open_table(META).unwrap();
        let fields =
            change(std::str::from_utf8(meta.get("fields").unwrap().unwrap().value()).unwrap());
        meta.insert("fields", fields.as_bytes()).unwrap();
    }
    transaction.commit().unwrap();
}

/// Removes the venue from conferences, as if they were written before the field existed.
pub fn take_field(db: &Path) {
    rewrite(db, CONFERENCES, |text| {
        let (before, venue) = text.split_once(r#","venue":"#).unwrap();
        let mut values = serde_json::Deserializer::from_str(venue).into_iter::<Value>();
        values.next().unwrap().unwrap();
        format!("{before}{}", &venue[values.byte_offset()..])
    });
    rewrite_fields(db, |fields| fields.replacen(&format!("{FIELD}\n"), "", 1));
}

/// A database of an older release: 30 conferences without [`FIELD`], a journal, and a license for all.
pub struct OlderFile {
    pub site: Site,
    /// A key of the license.
    pub key: String,
    /// The bytes of the database.
    pub bytes: Vec<u8>,
}

impl OlderFile {
    pub fn new() -> OlderFile {
        let site = Site::new();
        site.import("conferences.jsonl", conferences_of_version(30, 7));
        site.import("journals.jsonl", JOURNAL);
        site.json("license set all --create --dataset conferences --dataset journals".split(' '));
        let (_, key) = site.key("all", &[]);
        for rows in ["conferences.jsonl", "journals.jsonl"] {
            fs::remove_file(site.path(rows)).unwrap();
        }
        take_field(&site.db());
        let bytes = fs::read(site.db()).unwrap();
        OlderFile { site, key, bytes }
    }

    /// The name of the file that an upgrade keeps.
    pub fn kept(&self) -> PathBuf {
        self.site.path(&format!("feed.redb.format-{SCHEMA}"))
    }

    /// Fails unless the database is the old one, byte for byte.
    pub fn is_untouched(&self, what: &str) {
        assert!(
            fs::read(self.site.db()).unwrap() == self.bytes,
            "{what}: the file changed"
        );
    }

    /// Runs `medfeed upgrade`, which must succeed.
    pub fn upgrade(&self) -> Done {
        let done = self.site.run(["upgrade"]);
        assert_eq!(done.code, Some(0), "{done:?}");
        done
    }
}

/// Whether the rows of a database have the field. Opens a copy of it.
pub fn has_field(file: &Path) -> bool {
    let folder = tempfile::tempdir().unwrap();
    let copy = folder.path().join("copy.redb");
    fs::copy(file, &copy).unwrap();
    let meta = open(&copy).begin_read().unwrap().open_table(META).unwrap();
    let fields = meta.get("fields").unwrap().unwrap().value().to_vec();
    String::from_utf8(fields)
        .unwrap()
        .lines()
        .any(|field| field == FIELD)
}

/// The records of an export, and the token of its state.
fn export(client: &mut Client, dataset: &str) -> (Vec<Value>, String) {
    let export = client.get(&format!("/v1/exports/{dataset}"));
    (
        export.lines(),
        export.header("x-sync-token").unwrap().to_owned(),
    )
}

/// The changes since a token, up to the end of the feed, and the token there.
fn walk(client: &mut Client, dataset: &str, since: &str) -> (Vec<Value>, String) {
    let (mut items, mut token) = (Vec::new(), since.to_owned());
    loop {
        let page = client.get(&format!("/v1/{dataset}/changes?since={token}"));
        assert_eq!(page.status, 200);
        items.extend(page.items());
        let page = page.json();
        page["next_sync_token"]
            .as_str()
            .unwrap()
            .clone_into(&mut token);
        if page["has_more"] == false {
            return (items, token);
        }
    }
}

#[test]
fn records_that_gain_a_field_come_once_by_the_feed() {
    let site = Site::new();
    site.import("conferences.jsonl", conferences_of_version(30, 7));
    site.import("journals.jsonl", JOURNAL);
    site.json("license set all --create --dataset conferences --dataset journals".split(' '));
    site.json("license set hearts --dataset conferences --therapy-area Cardiology".split(' '));
    let keys = [site.key("all", &[]).1, site.key("hearts", &[]).1];
    // The records have a time long ago.
    let time = "2020-02-03T04:05:06Z";
    rewrite(&site.db(), CONFERENCES, |text| {
        format!("{}{time}\"}}", &text[..text.len() - time.len() - 2])
    });
    let server = site.serve();
    let exports: Vec<(Vec<Value>, String)> = keys
        .iter()
        .map(|key| export(&mut server.client(key), "conferences"))
        .collect();
    let (_, journals_token) = export(&mut server.client(&keys[0]), "journals");
    server.stop();
    take_field(&site.db());

    let done = site.run(["upgrade"]);
    assert!(done.code == Some(0), "{done:?}");
    assert!(done.stdout.contains(FIELD), "{done:?}");
    site.check();
    let stdout = site.run(["log"]).stdout;
    assert!(stdout.contains("rows gained conferences.venue"));
    assert!(site.run(["upgrade"]).stdout.contains("nothing to upgrade"));

    let server = site.serve();
    for (key, (mut expected, token)) in keys.iter().zip(exports) {
        let (items, now) = walk(&mut server.client(key), "conferences", &token);
        assert!(
            expected.iter().all(|record| record["updated_at"] == time),
            "{expected:?}"
        );
        expected
            .iter_mut()
            .for_each(|record| record["venue"] = Value::Null);
        assert_eq!(
            items, expected,
            "each once, with the field, and `updated_at` as before"
        );
        assert_eq!(export(&mut server.client(key), "conferences").0, expected);
        assert_eq!(
            walk(&mut server.client(key), "conferences", &now).0,
            Vec::<Value>::new()
        );
    }
    let (items, _) = walk(&mut server.client(&keys[0]), "journals", &journals_token);
    assert_eq!(items, Vec::<Value>::new(), "journals have no new field");
    server.stop();

    // Records that are imported now have the field.
    let told = site.import("conferences.jsonl", conferences_of_version(30, 8));
    assert_eq!(told["datasets"]["conferences"]["changed"], 30, "{told}");
    site.check();
}

#[test]
fn fields_of_a_newer_program_are_refused() {
    let site = Site::new();
    // A file without records gains the field too.
    site.license("all", "--dataset conferences --dataset journals");
    take_field(&site.db());
    assert_eq!(site.json(["upgrade"])["upgraded"], true);
    site.check();
    site.import("conferences.jsonl", conferences_of_version(2, 0));
    rewrite_fields(&site.db(), |fields| {
        format!("{fields}conferences.acronym\n")
    });
    let expected = ["was written by a newer medfeed", "conferences.acronym"];
    let commands = ["check", "upgrade", "upgrade --if-needed", "export out"];
    are_refused(&commands, &site, "a newer field", &expected);
}

#[test]
fn a_backup_replaces_one_of_an_older_release() {
    let site = Site::with(2);
    let other = Site::with(3);
    let (target, bucket) = (
        other.db(),
        format!("file://{}", other.path("bucket").display()),
    );
    assert_eq!(other.run(["publish", &bucket, "--once"]).code, Some(0));
    take_field(&target);
    let backup = || site.run(["backup".as_ref(), target.as_os_str()]);
    let refused = backup();
    refused.assert_told(1, "it exists and is no backup");
    // A backup never has this row.
    let database = open(&target);
    let transaction = database.begin_write().unwrap();
    transaction
        .open_table(META)
        .unwrap()
        .remove("publish")
        .unwrap()
        .expect("a published database");
    transaction.commit().unwrap();
    drop(database);
    let done = backup();
    assert_eq!(done.code, Some(0), "{done:?}");
    assert_eq!(site.conferences_in(&target).len(), 2);
    site.check_file(&target);
}

/// The steps of a published database before its upgrade, and after it.
#[test]
fn an_upgraded_database_continues_in_its_bucket() {
    type Step = fn(&Site, &Path);
    let nothing: Step = |_, _| {};
    let restore: Step =
        |site, backup| drop(site.json(["restore".as_ref(), backup.as_os_str(), "--yes".as_ref()]));
    // The second case restores a backup of the older release. Only the upgraded file has its id.
    let unnoted: Step = |site, backup| {
        fs::remove_file(site.path("feed.redb.published")).unwrap();
        drop(site.json(["restore".as_ref(), backup.as_os_str(), "--yes".as_ref()]));
    };
    for (before, after) in [(nothing, nothing), (nothing, unnoted), (restore, nothing)] {
        let (site, place) = published_in_folder();
        let backup = site.backup("older.redb");
        commit(&site, 2);
        place.once(&site);
        before(&site, &backup);
        take_field(&site.db());
        assert_eq!(site.json(["upgrade"])["upgraded"], true);
        after(&site, &backup);
        place.once(&site);
        commit(&site, 3);
        place.once(&site);
        let copy = site.path("copy.redb");
        place.json(
            &site,
            &["backup", copy.to_str().unwrap(), "--from", &place.url],
        );
        assert_eq!(site.conferences_in(&copy), site.conferences_in(&site.db()));
    }
}
