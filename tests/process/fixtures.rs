//! Makes the fixtures of the present file format: what later releases upgrade, and the answers that they must go on giving.
//!
//!     cargo test --test medfeed -- --ignored make_fixtures
//!
//! It is run once, by the last program that writes a format, and what it wrote is never changed. It writes the files
//! `fixtures/format-N*`. `recorded.rs` reads them.

use std::collections::BTreeMap;
use std::fs;
use std::io::Write;
use std::path::Path;

use data_encoding::BASE64;
use flate2::Compression;
use flate2::write::GzEncoder;
use serde_json::{Value, json};

use super::client::Client;
use super::origin::{Replica, copy_into, url_of};
use super::published::Place;
use super::recorded::{
    Exchange, FORMATS, Recording, Recordings, SERVE, Saved, Told, exported, fixture, present_format, run_recorded,
};
use super::site::{SOON, Site, wait_until};

/// The licenses that have a key of their name, and their scopes in the beginning.
const LICENSES: [(&str, &str); 8] = [
    ("all", "--dataset conferences --dataset journals"),
    ("areas", "--dataset conferences --dataset journals --therapy-area Oncology --therapy-area Cardiology"),
    ("spain", "--dataset conferences --country Spain --country Türkiye"),
    ("years", "--dataset conferences --year 2025..2026"),
    ("papers", "--dataset journals"),
    // It shares the feeds of `areas`.
    ("twin", "--dataset conferences --dataset journals --therapy-area Oncology --therapy-area Cardiology"),
    ("changed", "--dataset conferences --dataset journals --year 2024..2026"),
    ("gone", "--dataset conferences --therapy-area Oncology"),
];

/// The ids of generated conferences and journals. Those of the folder `fixtures` are smaller.
const CONFERENCES: std::ops::RangeInclusive<u64> = 101..=160;
const JOURNALS: std::ops::RangeInclusive<u64> = 101..=130;

/// A conference with many kinds of values, some of them null.
fn conference(id: u64, version: u64) -> Value {
    let turn = usize::try_from(id).expect("small");
    let names = [
        "Congrès Européen",
        "学術総会",
        "Ärztekongress „Herz“",
        "🫀 Summit \\ \"Q\"",
        "<b>Forum & Friends</b>",
        "Κόσμος",
    ];
    let areas = [&["Oncology"][..], &["Cardiology", "Neurology"], &["Neurology"], &["Oncology", "Hematology"], &[]];
    let countries = [json!("Spain"), json!("Türkiye"), json!("Côte d'Ivoire"), json!("Japan"), json!(null)];
    let year = 2023 + id % 5;
    let has_dates = !id.is_multiple_of(4);
    let status = if has_dates { ["confirmed", "estimated", "copied"][turn % 3] } else { "not_found" };
    json!({
        "id": id,
        "name": format!("{} {id}", names[turn % names.len()]),
        "abbv": if id.is_multiple_of(3) { json!(null) } else { json!(format!("AB{id}")) },
        "year": if id.is_multiple_of(9) { json!(null) } else { json!(year) },
        "start_date": if has_dates { json!(format!("{year}-05-{:02}", 1 + id % 28)) } else { json!(null) },
        "start_date_status": status,
        "end_date": if has_dates && id % 3 == 1 { json!(format!("{year}-06-{:02}", 1 + id % 20)) } else { json!(null) },
        "abstract_due_date": if id.is_multiple_of(5) { json!(format!("{}-12-24", year - 1)) } else { json!(null) },
        "abstract_due_date_status": "check",
        "late_breaking_due_date_status": if id.is_multiple_of(2) { "check" } else { "not_found" },
        "country": countries[turn / 2 % countries.len()],
        "city": if id.is_multiple_of(7) { json!(null) } else { json!(format!("City {}", id % 11)) },
        "venue": format!("version {version}"),
        "url": if id.is_multiple_of(6) { json!(null) } else { json!(format!("https://c{id}.example/?a=1&b=%C3%A9")) },
        "therapy_areas": areas[turn / 3 % areas.len()],
        "organizations": if id % 4 == 1 { json!([1 + id % 10, 4]) } else { json!([]) },
        "tags": if id % 5 == 2 { json!([1 + id % 8]) } else { json!([]) },
        "formats": {"oral": id.is_multiple_of(2), "poster": if id.is_multiple_of(3) { json!(null) } else { json!(true) }, "encore": false},
    })
}

/// A journal with many kinds of values, some of them null.
fn journal(id: u64, version: u64) -> Value {
    let access = ["open", "hybrid", "subscription"][usize::try_from(id).expect("small") % 3];
    json!({
        "id": id,
        "name": format!("Ārchives of Τests {id}, volume {version}"),
        "abbv": if id.is_multiple_of(2) { json!(format!("Arch. {id}")) } else { json!(null) },
        "publisher": if id.is_multiple_of(3) { json!(null) } else { json!("O'Reilly; \"Söhne\"") },
        "impact_factor": if id.is_multiple_of(4) { json!(null) } else { json!(id as f64 / 7.0) },
        "h_index": if id.is_multiple_of(5) { json!(9_007_199_254_740_991_u64) } else { json!(id) },
        "sjr": if id.is_multiple_of(6) { json!(0.000_000_1) } else { json!(null) },
        "publishing": {"access": access, "apc_usd": 3000.5},
        "timelines": {"online_submit_to_accept": {"min_weeks": 0.5, "max_weeks": id}},
        "organizations": if id % 4 == 1 { json!([6, 9]) } else { json!([]) },
        "tags": if id % 5 == 2 { json!([3, 5]) } else { json!([]) },
    })
}

fn lines(rows: impl IntoIterator<Item = Value>) -> String {
    rows.into_iter().map(|row| format!("{row}\n")).collect()
}

fn removed(id: u64) -> Value {
    json!({"id": id, "deleted": true})
}

/// A database in the making, and what callers have of it.
struct Maker {
    site: Site,
    keys: BTreeMap<String, String>,
    saved: Vec<Saved>,
}

impl Maker {
    /// One commit of several files, in a second of its own: `updated_since` tells it from others.
    fn import(&self, files: &[(&str, String)]) {
        next_second();
        let mut args = vec!["import", "--create", "--allow-removals", "100"];
        for (name, content) in files {
            self.site.write(name, content);
            // The history names the files: by names that say nothing of the machine.
            args.push(name);
        }
        self.site.json(args);
    }

    fn license(&self, name: &str, scope: &str) {
        next_second();
        self.site.license(name, &format!("{scope} --publish-wait 0s"));
    }

    fn key(&mut self, name: &str, license: &str, settings: &[&str]) -> String {
        let (id, key) = self.site.key(license, settings);
        self.keys.insert(name.to_owned(), key);
        id
    }

    /// Saves tokens that callers have by now: at the end of the feed, and in the middle of a walk.
    fn save(&mut self, moment: &str) {
        let server = self.site.serve();
        for (name, key) in &self.keys {
            let mut client = server.client(key);
            for dataset in ["conferences", "journals"] {
                let export = client.get(&format!("/v1/exports/{dataset}"));
                let page = client.get(&format!("/v1/{dataset}/changes?updated_since=2020-01-01&limit=9"));
                let Some(token) = export.header("x-sync-token") else { continue };
                let middle = page.json()["next_sync_token"].as_str().expect("a token").to_owned();
                for (what, token) in [("the end", token.to_owned()), ("a walk", middle)] {
                    let moment = format!("{moment}, {what}");
                    let (key, dataset) = (name.clone(), dataset.to_owned());
                    self.saved.push(Saved { key, dataset, moment, token, end: None });
                }
            }
        }
        server.stop();
    }

    /// Records what the database answers now.
    fn record(&self, since: &[String]) -> Recording {
        let mut recorder = Recorder { keys: &self.keys, server: self.site.serve_with(SERVE), exchanges: Vec::new() };
        recorder.everything(since);
        let saved = recorder.tokens(&self.saved);
        let exchanges = std::mem::take(&mut recorder.exchanges);
        recorder.server.stop();
        let commands = [
            &["license", "list"][..],
            &["license", "show", "changed"],
            &["license", "explain", "spain", "conferences", "1"],
            &["key", "list"],
            &["log", "--limit", "1000"],
            &["show", "conferences", "1"],
            &["show", "journals", "101"],
        ];
        let commands = commands.map(|args| {
            let args: Vec<String> = args.iter().map(|arg| (*arg).to_owned()).collect();
            let told = run_recorded(&self.site, &self.site.db(), &args);
            (args, told)
        });
        Recording { exchanges, saved, commands: commands.into(), exported: exported(&self.site, &self.site.db()) }
    }
}

fn next_second() {
    let now = medfeed::model::time::now();
    wait_until("the next second", SOON, || (medfeed::model::time::now() > now).then_some(()));
}

/// A caller that notes what it is answered.
struct Recorder<'a> {
    keys: &'a BTreeMap<String, String>,
    server: super::site::Server,
    exchanges: Vec<Exchange>,
}

impl Recorder<'_> {
    /// Asks, and returns the answer's JSON where it has one.
    fn ask(&mut self, key: &str, target: &str) -> Value {
        let mut client = Client::new(self.server.address, self.keys.get(key).map(String::as_str));
        let answer = client.get(target);
        let told = Told::of(target, &answer);
        let etag = answer.header("etag").map(str::to_owned);
        self.exchanges.push(Exchange { key: key.to_owned(), target: target.to_owned(), if_none_match: None, told });
        if let Some(tags) = etag.filter(|_| target.ends_with("/1") || target.ends_with("limit=25")) {
            let answer = client.with_header("if-none-match", &tags).get(target);
            let told = Told::of(target, &answer);
            let if_none_match = Some(tags);
            self.exchanges.push(Exchange { key: key.to_owned(), target: target.to_owned(), if_none_match, told });
        }
        serde_json::from_slice(&answer.body).unwrap_or_default()
    }

    /// Follows a feed to its end; returns the last token, `None` where the feed refuses.
    fn walk(&mut self, key: &str, dataset: &str, start: &str) -> Option<String> {
        let mut page = self.ask(key, &format!("/v1/{dataset}/changes?{start}&limit=40"));
        loop {
            let token = page["next_sync_token"].as_str()?.to_owned();
            if page["has_more"] != true {
                return Some(token);
            }
            page = self.ask(key, &format!("/v1/{dataset}/changes?since={token}&limit=40"));
        }
    }

    /// Whether a key opens nothing. Such keys are asked with once: an address that tries many is refused for a while.
    fn is_unusable(&self, key: &str) -> bool {
        self.exchanges.iter().any(|exchange| exchange.key == key && exchange.told.status == 401)
    }

    /// Goes on by saved tokens.
    fn tokens(&mut self, saved: &[Saved]) -> Vec<Saved> {
        let mut found = Vec::new();
        let usable: Vec<&Saved> = saved.iter().filter(|saved| !self.is_unusable(&saved.key)).collect();
        for Saved { key, dataset, moment, token, .. } in usable {
            let end = self.walk(key, dataset, &format!("since={token}"));
            if end.is_none() {
                self.walk(key, dataset, &format!("resync=diff&since={token}"));
            }
            let [key, dataset, moment, token] = [key, dataset, moment, token].map(String::clone);
            found.push(Saved { key, dataset, moment, token, end });
        }
        found
    }

    /// All kinds of requests with all keys.
    fn everything(&mut self, since: &[String]) {
        self.ask("", "/v1/status");
        for key in self.keys.keys().cloned().collect::<Vec<_>>() {
            self.ask(&key, "/v1/reference/therapy-areas");
            if self.is_unusable(&key) {
                continue;
            }
            for dataset in ["conferences", "journals"] {
                self.dataset(&key, dataset, since);
            }
            self.ask(&key, "/v1/reference/tags?dataset=conferences&type=audience");
        }
        for (dataset, ids) in [("conferences", CONFERENCES), ("journals", JOURNALS)] {
            (1..=25).chain(ids).for_each(|id| drop(self.ask("all", &format!("/v1/{dataset}/{id}"))));
        }
        for target in ["/v1/conferences", "/v1/conferences/changes?since=x", "/v1/nothing", "/v1/journals/1"] {
            self.ask("", target);
        }
        for target in [
            "/v1/nothing",
            "/v1/conferences?colour=red",
            "/v1/conferences?year=1",
            "/v1/conferences?cursor=x",
            "/v1/conferences/changes?since=x",
            "/v1/conferences/x",
            "/v1/reference/tags",
        ] {
            self.ask("all", target);
        }
    }

    fn dataset(&mut self, key: &str, dataset: &str, since: &[String]) {
        let path = format!("/v1/{dataset}");
        let mut page = self.ask(key, &format!("{path}?limit=25"));
        if page["data"].is_null() {
            return;
        }
        while let Some(cursor) = page["next_cursor"].as_str() {
            page = self.ask(key, &format!("{path}?limit=25&cursor={cursor}"));
        }
        let filters = [
            "q=ko",
            "q=%C3%A4rzte",
            "q=arch",
            "year=2026",
            "year=2025&country=Spain",
            "country=T%C3%BCrkiye",
            "therapy_area=Oncology",
            "start_date_from=2025-05-10&start_date_to=2026-05-10",
            "limit=3&q=es",
        ];
        let count = if dataset == "journals" { 3 } else { filters.len() };
        for filter in &filters[..count] {
            self.ask(key, &format!("{path}?{filter}"));
        }
        for id in [1, 2, 104, 107, 115, 118, 999] {
            self.ask(key, &format!("{path}/{id}"));
        }
        self.ask(key, &format!("{path}/changes"));
        self.walk(key, dataset, "updated_since=2020-01-01");
        for instant in since {
            self.ask(key, &format!("{path}?updated_since={instant}"));
            self.walk(key, dataset, &format!("updated_since={instant}"));
        }
        for format in ["jsonl", "csv"] {
            self.ask(key, &format!("/v1/exports/{dataset}?format={format}"));
        }
        for reference in ["tags", "organizations"] {
            self.ask(key, &format!("/v1/reference/{reference}?dataset={dataset}"));
        }
    }
}

/// The time of the newest commit.
fn newest(site: &Site) -> String {
    site.json(["log", "--limit", "1"])["commits"][0]["time"].as_str().expect("a time").to_owned()
}

/// Packs a file of fixtures.
fn pack(name: &str, content: &[u8]) {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
    encoder.write_all(content).unwrap();
    let packed = encoder.finish().unwrap();
    println!("{name}: {} bytes, {} packed", content.len(), packed.len());
    fs::write(fixture(name), packed).unwrap();
}

/// The files of a folder and of the folders in it, by their paths.
fn objects(folder: &Path, prefix: &str, found: &mut BTreeMap<String, String>) {
    for entry in fs::read_dir(folder).unwrap().map(|entry| entry.unwrap()) {
        let name = format!("{prefix}{}", entry.file_name().to_str().unwrap());
        if entry.path().is_dir() {
            objects(&entry.path(), &format!("{name}/"), found);
        } else {
            found.insert(name, BASE64.encode(&fs::read(entry.path()).unwrap()));
        }
    }
}

#[test]
#[ignore = "it replaces fixtures, which are made once"]
fn make_fixtures() {
    let format = present_format();
    let is_made = FORMATS.contains(&format) && fixture(&format!("format-{format}.redb.gz")).exists();
    assert!(!is_made, "the fixtures of format {format} are there: remove them first");
    let mut maker = Maker { site: Site::new(), keys: BTreeMap::new(), saved: Vec::new() };
    let references: Vec<_> = ["organizations.jsonl", "tags.jsonl", "conferences.jsonl", "journals.jsonl"]
        .map(|name| (name, fs::read_to_string(fixture(name)).unwrap()))
        .into();
    maker.import(&references);
    for (name, scope) in LICENSES {
        maker.license(name, scope);
        maker.key(name, name, &[]);
    }
    maker.save("after the first import");

    // Keys of every kind.
    maker.key(
        "labelled",
        "areas",
        &["--label", "Ünit 7 <a@b.example>", "--expires", "2099-12-31", "--allow-ip", "127.0.0.0/8"],
    );
    maker.key("elsewhere", "all", &["--allow-ip", "192.0.2.0/24", "--allow-ip", "2001:db8::/32"]);
    let revoked = maker.key("revoked", "all", &[]);
    maker.site.json(["key", "revoke", &revoked]);
    let replaced = maker.key("replaced", "all", &[]);
    let replacement = maker.site.json(["key", "replace", &replaced]);
    maker.keys.insert("replacement".to_owned(), replacement["key"].as_str().unwrap().to_owned());
    maker.keys.insert("expired".to_owned(), maker.site.expired_key("all").1);

    // Published from here on.
    let place = Place::folder(&maker.site);
    maker.import(&[
        ("conferences.jsonl", lines(CONFERENCES.map(|id| conference(id, 1)))),
        ("journals.jsonl", lines(JOURNALS.map(|id| journal(id, 1)))),
    ]);
    assert_eq!(place.once(&maker.site), 1, "a state");
    let second = newest(&maker.site);

    // Changes, removals, a license that narrows; then what a restore loses.
    maker.license("changed", "--dataset conferences --dataset journals --year 2025");
    maker.save("before a restore");
    next_second();
    maker.site.backup("backup.redb");
    maker.import(&[("conferences.jsonl", lines((101..=112).map(|id| conference(id, 66))))]);
    maker.license("spain", "--dataset conferences --country Spain");
    maker.save("in a lost time");
    maker.site.json(["restore", "backup.redb", "--yes"]);
    assert_eq!(place.once(&maker.site), 1, "a restored state");
    maker.save("after a restore");

    maker.import(&[
        ("organizations.jsonl", "{\"id\":4,\"name\":\"日本癌学会 (JCA)\",\"abbv\":\"JCA\"}\n".to_owned()),
        ("tags.jsonl", "{\"id\":3,\"type\":\"audience\",\"name\":\"Nurses\",\"category\":\"Staff\"}\n".to_owned()),
        (
            "conferences.jsonl",
            lines((110..=120).step_by(2).map(|id| conference(id, 2)).chain([3, 104, 107, 115].map(removed))),
        ),
        ("journals.jsonl", lines((101..=106).map(|id| journal(id, 2)).chain([2, 118, 119].map(removed)))),
    ]);
    maker.save("after removals");
    assert_eq!(place.once_with(&maker.site, "--state-every 0s"), 1);
    let earlier = (newest(&maker.site), exported(&maker.site, &maker.site.db()));
    let third = newest(&maker.site);

    maker.license("changed", "--dataset conferences --widen");
    maker.import(&[
        // The same ids again, one of them as another conference; and records that move between licenses.
        (
            "conferences.jsonl",
            lines([104, 107].map(|id| conference(id, 3)).into_iter().chain([
                json!({"id": 102, "country": "Spain",
            "year": 2025, "therapy_areas": ["Cardiology"]}),
                json!({"id": 121, "country": "Japan", "year": 2024, "therapy_areas": []}),
            ])),
        ),
        ("journals.jsonl", lines([118].map(|id| journal(id, 3)).into_iter().chain([removed(107)]))),
    ]);
    maker.license("changed", "--dataset conferences --dataset journals --year 2024 --year 2025");
    next_second();
    maker.site.json(["license", "remove", "gone", "--yes", "--publish-wait", "0s"]);
    assert_eq!(place.once(&maker.site), 1);
    maker.license("spain", "--dataset conferences --country Spain --country Japan --year 2025..2027");
    assert_eq!(place.once(&maker.site), 1);
    maker.save("at the bucket's end");

    // The bucket and a replica of it, before commits that wait in the outbox.
    let since = [second, third];
    let published = maker.record(&since);
    let replica = Replica { site: Site::new(), url: place.url.clone() };
    replica.serve("").stop();
    let bucket = maker.site.path("kept bucket");
    fs::create_dir(&bucket).unwrap();
    copy_into(&maker.site.path("bucket"), &bucket);
    maker.import(&[(
        "conferences.jsonl",
        lines((130..=136).map(|id| conference(id, 4)).chain([removed(140), removed(107)])),
    )]);
    maker.license("changed", "--dataset conferences --dataset journals --widen");
    let late = maker.key("late", "papers", &["--publish-wait", "0s"]);
    maker.site.json(["key", "revoke", &late, "--publish-wait", "0s"]);
    maker.license("new", "--dataset conferences --country Germany");
    maker.key("new", "new", &["--publish-wait", "0s"]);
    maker.save("with an outbox");
    maker.site.json(["compact"]);
    let present = maker.record(&since);

    // A copy publishes what waits, to show that it is there.
    let copy = super::publishing::copy_of(&maker.site);
    copy_into_new(&bucket, &copy.path("bucket"));
    assert_eq!(Place::folder(&copy).once(&copy), 1, "the outbox");

    pack(&format!("format-{format}.redb.gz"), &fs::read(maker.site.db()).unwrap());
    pack(&format!("format-{format}-replica.redb.gz"), &fs::read(replica.site.db()).unwrap());
    let mut found = BTreeMap::new();
    objects(&bucket, "", &mut found);
    println!("{} objects, at {}", found.len(), url_of(&bucket));
    pack(&format!("format-{format}-bucket.json.gz"), &serde_json::to_vec_pretty(&found).unwrap());
    let keys = maker.keys.clone();
    println!("{} answers, {} tokens", present.exchanges.len(), present.saved.len());
    let recordings = Recordings { format, keys, published, present, earlier };
    pack(&format!("format-{format}-answers.json.gz"), &serde_json::to_vec_pretty(&recordings).unwrap());
}

fn copy_into_new(from: &Path, to: &Path) {
    fs::create_dir(to).unwrap();
    copy_into(from, to);
}
