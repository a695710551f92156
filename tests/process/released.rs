//! The files of releases, which the first release of each format wrote (`fixtures/format-N`). This program opens all of
//! them, and callers continue from the answers that they had.
//!
//! The first release of a new format adds its files:
//!
//!     cargo test --test medfeed -- --ignored writes_the_files_of_this_format
//!
//! - `feed.redb.gz`: a database with imports, a change of a license and a revoked key
//! - `bucket`: its bucket, with a whole state and later changes
//! - `replica.redb.gz`: the file of a server that followed the bucket
//! - `answers.json`: a key, and the responses that it got: target, status, headers and body of each

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

use flate2::Compression;
use flate2::read::GzDecoder;
use flate2::write::GzEncoder;
use medfeed::store::restore::SCHEMA;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::client::Client;
use super::origin::{Origin, Replica, copy_into};
use super::replicas::{serve, wait_for_seq};
use super::site::{SOON, Site, conferences_of_version, wait_until};

const RECORDS: u64 = 30;

/// The requests of callers, besides those with a sync token.
const TARGETS: [&str; 12] = words![
    "/v1/conferences?limit=7" "/v1/conferences?country=Spain" "/v1/conferences?q=version&limit=3"
    "/v1/conferences/3" "/v1/conferences/30" "/v1/conferences/changes"
    "/v1/conferences/changes?updated_since=2020-01-01&limit=11" "/v1/journals" "/v1/exports/conferences"
    "/v1/exports/journals?format=csv" "/v1/reference/therapy-areas"
    "/v1/reference/organizations?dataset=journals"
];

#[derive(Deserialize, Serialize)]
struct Answers {
    program: String,
    key: String,
    /// The sync token of the feed's end.
    last: String,
    answers: Vec<StoredAnswer>,
}

#[derive(Deserialize, Serialize)]
struct StoredAnswer {
    target: String,
    status: u16,
    headers: Vec<String>,
    body: String,
}

fn ask(client: &mut Client, target: String) -> StoredAnswer {
    let (status, headers, body) = client.get(&target).comparable();
    StoredAnswer {
        target,
        status,
        headers,
        body: String::from_utf8(body).expect("UTF-8"),
    }
}

/// The folder of a format.
fn folder_of(format: u32) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("fixtures/format-{format}"))
}

/// The formats that have fixtures.
fn formats() -> Vec<u32> {
    let entries =
        fs::read_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures")).expect("a folder");
    let names = entries.map(|entry| {
        entry
            .expect("an entry")
            .file_name()
            .into_string()
            .expect("UTF-8")
    });
    names
        .filter_map(|name| name.strip_prefix("format-")?.parse().ok())
        .collect()
}

pub fn unpack(from: &Path, to: &Path) {
    let mut packed = GzDecoder::new(File::open(from).expect("a file of the release"));
    io::copy(&mut packed, &mut File::create(to).expect("a file")).expect("a whole file");
}

pub fn pack(from: &Path, to: &Path) {
    let mut packed = GzEncoder::new(File::create(to).expect("a file"), Compression::best());
    io::copy(&mut File::open(from).expect("a file"), &mut packed).expect("it can be read");
    packed.finish().expect("it can be written");
}

/// A file of a release, unpacked into a site of its own.
fn site_with(folder: &Path, file: &str) -> Site {
    let site = Site::new();
    unpack(&folder.join(file), &site.db());
    site
}

fn answers_of(folder: &Path) -> Answers {
    serde_json::from_slice(&fs::read(folder.join("answers.json")).expect("answers of the release"))
        .expect("answers")
}

/// Checks that the requests get the answers of the release again.
fn compare(client: &mut Client, expected: &Answers, who: &str) {
    for StoredAnswer {
        target,
        status,
        headers,
        body,
    } in &expected.answers
    {
        let now = ask(client, target.clone());
        let told = (now.status, &now.headers, content(&now.headers, &now.body));
        assert_eq!(
            told,
            (*status, headers, content(headers, body)),
            "{who}, as {} answered: {target}",
            expected.program
        );
    }
}

/// The body as JSON, where the order of keys does not count, or as text.
fn content(headers: &[String], body: &str) -> Value {
    if headers[0].contains("json") {
        serde_json::from_str(body).expect("JSON")
    } else {
        body.into()
    }
}

#[test]
fn the_files_of_each_format_open_and_their_callers_continue() {
    let formats = formats();
    assert!(
        formats.contains(&SCHEMA),
        "format {SCHEMA} has no files; the head of this module says how to write them"
    );
    for format in formats {
        let folder = folder_of(format);
        let expected = answers_of(&folder);
        let site = site_with(&folder, "feed.redb.gz");
        if format != SCHEMA {
            site.json(["upgrade"]);
        }
        site.check();
        let server = site.serve();
        let mut client = server.client(&expected.key);
        compare(&mut client, &expected, "the database");
        // The token of the end gets the next change, and nothing else.
        site.import("conferences.jsonl", "{\"id\":3,\"name\":\"Renamed\"}\n");
        let since = format!("/v1/conferences/changes?since={}", expected.last);
        let items = wait_until("the change", SOON, || {
            Some(client.get(&since).items()).filter(|items| !items.is_empty())
        });
        assert_eq!(items.len(), 1, "{items:?}");
        assert_eq!(items[0]["id"], 3);
        assert_eq!(items[0]["name"], "Renamed");
        server.stop();
        site.check();
    }
}

#[test]
fn the_bucket_and_the_replica_of_this_format_continue() {
    let folder = folder_of(SCHEMA);
    let expected = answers_of(&folder);
    let site = site_with(&folder, "feed.redb.gz");
    fs::create_dir(site.path("bucket")).unwrap();
    copy_into(&folder.join("bucket"), &site.path("bucket"));
    let mut origin = Origin::new(site);
    for (who, replica) in cases![
        "the replica", Replica { site: site_with(&folder, "replica.redb.gz"), url: origin.url() };
        "a new replica", origin.replica();
    ] {
        let (server, mut admin) = serve(&replica, "--poll 20ms");
        let mut client = server.client(&expected.key);
        wait_for_seq(&origin, &mut admin);
        if who == "the replica" {
            compare(&mut client, &expected, who);
            origin
                .site
                .import("conferences.jsonl", "{\"id\":3,\"name\":\"Renamed\"}\n");
            origin.publish();
            wait_for_seq(&origin, &mut admin);
        }
        let since = format!("/v1/conferences/changes?since={}", expected.last);
        assert_eq!(client.get(&since).items().len(), 1, "{who}");
        server.stop();
        replica.site.check();
    }
}

#[test]
#[ignore = "writes fixtures/format-N"]
fn writes_the_files_of_this_format() {
    let folder = folder_of(SCHEMA);
    let _ = fs::remove_dir_all(&folder);
    fs::create_dir_all(folder.join("bucket")).unwrap();
    let site = Site::with(RECORDS);
    site.import("journals.jsonl", super::replicas::journals(0));
    let key = site.open_key();
    let (revoked, _) = site.key("all", &[]);
    let mut origin = Origin::new(site);
    let replica = origin.replica();
    let (follower, mut admin) = serve(&replica, "--poll 20ms");

    origin
        .site
        .import("conferences.jsonl", conferences_of_version(RECORDS - 5, 1));
    origin.site.license(
        "all",
        "--dataset conferences --dataset journals --country Spain --country Japan",
    );
    origin
        .site
        .license("all", "--dataset conferences --dataset journals --widen");
    origin
        .site
        .json(["key", "revoke", &revoked, "--publish-wait", "0s"]);
    origin.publish();
    let server = origin.site.serve();
    let mut client = server.client(&key);
    let token = |client: &mut Client| {
        let page = client.get("/v1/conferences/changes").json();
        page["next_sync_token"]
            .as_str()
            .expect("a token")
            .to_owned()
    };
    let earlier = token(&mut client);
    origin.site.import(
        "conferences.jsonl",
        "{\"id\":30,\"deleted\":true}\n{\"id\":2,\"name\":\"Second\"}\n",
    );
    let since = format!("/v1/conferences/changes?since={earlier}");
    wait_until("the change", SOON, || {
        Some(client.get(&since).items()).filter(|items| !items.is_empty())
    });
    let last = token(&mut client);
    origin.publish();
    wait_for_seq(&origin, &mut admin);

    let targets = TARGETS.map(str::to_owned).into_iter();
    let targets = targets.chain([since, format!("/v1/conferences/changes?since={last}")]);
    let answers = targets.map(|target| ask(&mut client, target)).collect();
    let program = format!("medfeed {}", env!("CARGO_PKG_VERSION"));
    let answers = Answers {
        program,
        key,
        last,
        answers,
    };
    follower.stop();
    server.stop();
    pack(&origin.site.db(), &folder.join("feed.redb.gz"));
    pack(&replica.site.db(), &folder.join("replica.redb.gz"));
    copy_into(&origin.folder(), &folder.join("bucket"));
    let content = serde_json::to_string_pretty(&answers).unwrap() + "\n";
    fs::write(folder.join("answers.json"), content).unwrap();
}
