//! A server with caches answers like one without: every kind of answer, for different licenses, twice each and in turn,
//! over commits, rollbacks and recreated licenses.

use std::fs;

use super::client::Client;
use super::site::{STATUSES, Server, Site, wait_for};

/// Every kind of answer.
const TARGETS: &[&str] = &words![
    "/v1/conferences" "/v1/conferences?limit=7" "/v1/conferences?year=2026"
    "/v1/conferences?country=Japan&therapy_area=Oncology" "/v1/conferences?q=meeting%201"
    "/v1/conferences?updated_since=2020-01-01&limit=500" "/v1/conferences/1" "/v1/conferences/2"
    "/v1/conferences/6" "/v1/conferences/999" "/v1/conferences/changes?updated_since=2020-01-01"
    "/v1/conferences/changes?updated_since=2020-01-01&limit=20" "/v1/conferences/changes" "/v1/journals"
    "/v1/journals/1" "/v1/journals/changes?updated_since=2020-01-01" "/v1/reference/therapy-areas"
    "/v1/reference/tags?dataset=conferences" "/v1/reference/organizations?dataset=conferences"
    "/v1/exports/conferences" "/v1/exports/journals" "/v1/exports/conferences?format=csv"
    "/v1/exports/journals?format=csv"
];

/// Options of a server without caches.
const BARE: &str = "--cache-bytes 0";

const RECORDS: u64 = 60;

fn conferences(ids: impl Iterator<Item = u64>, venue: &str) -> String {
    let line = |id: u64| {
        let area =
            ["Oncology", "Cardiology", "Oncology\",\"Cardiology"][usize::try_from(id % 3).unwrap()];
        let country = ["Japan", "France"][usize::try_from(id % 2).unwrap()];
        format!(
            "{{\"id\":{id},\"name\":\"Meeting {id}\",\"year\":{},\"start_date\":\"{0}-05-0{}\",\"country\":\"{country}\",\
             \"venue\":\"{venue}\",\"therapy_areas\":[\"{area}\"],\"organizations\":[{}],\"tags\":[{}],{STATUSES}}}\n",
            2024 + id % 4,
            1 + id % 9,
            1 + id % 5,
            1 + id % 3,
        )
    };
    ids.map(line).collect()
}

/// A site with licenses that differ in little and in much, and a key of each.
fn build() -> (Site, Vec<(&'static str, String)>) {
    let site = Site::new();
    let organization = |id| format!("{{\"id\":{id},\"name\":\"Society {id}\"}}\n");
    site.import(
        "organizations.jsonl",
        (1..=5).map(organization).collect::<String>(),
    );
    let tag = |id: usize| {
        format!(
            "{{\"id\":{id},\"type\":\"{}\",\"name\":\"T{id}\"}}\n",
            ["Topic", "Audience"][id % 2]
        )
    };
    site.import("tags.jsonl", (1..=3).map(tag).collect::<String>());
    site.import("conferences.jsonl", conferences(1..=RECORDS, "a hall"));
    let journal = |id| {
        format!(
            "{{\"id\":{id},\"name\":\"Journal {id}\",\"organizations\":[{}]}}\n",
            1 + id % 2
        )
    };
    site.import("journals.jsonl", (1..=30).map(journal).collect::<String>());
    let licenses = cases![
        "all", "--dataset conferences --dataset journals";
        "oncology", "--dataset conferences --dataset journals --therapy-area Oncology";
        "twin", "--dataset conferences --dataset journals --therapy-area Oncology";
        "cardiology", "--dataset conferences --therapy-area Cardiology";
        "papers", "--dataset journals";
    ];
    let keys = licenses.map(|(name, scope)| {
        site.license(name, scope);
        (name, site.key(name, &[]).1)
    });
    (site, keys.to_vec())
}

/// Replaces the database by a copy of an earlier file, by rename.
fn roll_back(site: &Site, earlier: &[u8]) {
    let draft = site.write("earlier.redb", earlier);
    fs::rename(draft, site.db()).unwrap();
}

/// A client of each license, which accepts gzip, and one of the first license that does not.
fn clients(server: &Server, keys: &[(&str, String)]) -> Vec<Client> {
    let client = |key: &str, encoding| server.client(key).with_header("accept-encoding", encoding);
    let plain = client(&keys[0].1, "identity");
    keys.iter()
        .map(|(_, key)| client(key, "gzip"))
        .chain([plain])
        .collect()
}

/// Compares a server that has run all the time with a new one.
fn compare(step: &str, site: &Site, running: &Server, keys: &[(&str, String)]) {
    // The answers of a new server without caches, in the order of clients and targets.
    let (mut expected, fresh) = (Vec::new(), site.serve_with(BARE));
    for (mut bare, mut cached) in clients(&fresh, keys)
        .into_iter()
        .zip(clients(running, keys))
    {
        expected.extend(TARGETS.iter().map(|target| bare.get(target).comparable()));
        // A visible change changes the token, so the server shows the state once both tokens are the new ones.
        for target in ["/v1/conferences/changes", "/v1/journals/changes"] {
            let told = bare.get(target).comparable();
            wait_for("the commit is served", || {
                cached.get(target).comparable() == told
            });
        }
    }
    for turn in ["first", "second"] {
        let mut expected = expected.iter();
        for (at, mut cached) in clients(running, keys).into_iter().enumerate() {
            let client = keys.get(at).map_or("all, not compressed", |(name, _)| name);
            for target in TARGETS {
                let (told, expected) = (
                    cached.get(target).comparable(),
                    expected.next().expect("as many"),
                );
                assert!(
                    told == *expected,
                    "{step}: {target} of `{client}`, the {turn} time:\n{:?} {}\nbut of a new server:\n{:?} {}",
                    told.1,
                    String::from_utf8_lossy(&told.2),
                    expected.1,
                    String::from_utf8_lossy(&expected.2)
                );
            }
        }
    }
}

#[test]
fn a_server_with_caches_answers_like_one_without() {
    let (site, mut keys) = build();
    let running = site.serve();
    for mut client in clients(&running, &keys) {
        TARGETS.iter().for_each(|target| drop(client.get(target)));
    }
    // A server whose cache is small, so that it drops entries all the time.
    let little = site.serve_with("--cache-bytes 320000");

    site.import(
        "conferences.jsonl",
        conferences([2, 5, 8].into_iter(), "another hall"),
    );
    compare("a commit that some see", &site, &running, &keys);
    compare("a commit, with a small cache", &site, &little, &keys);
    little.stop();
    site.import(
        "organizations.jsonl",
        "{\"id\":2,\"name\":\"Society Two\"}\n",
    );
    site.import(
        "conferences.jsonl",
        "{\"id\":6,\"deleted\":true}\n{\"id\":7,\"deleted\":true}\n",
    );
    let step = "a renamed organization and removals";
    compare(step, &site, &running, &keys);

    // Another history uses the same seqs.
    let earlier = fs::read(site.db()).unwrap();
    for venue in ["a lost hall", "the hall of now"] {
        roll_back(&site, &earlier);
        site.import(
            "conferences.jsonl",
            conferences([1, 2, 3, 4, 5].into_iter(), venue),
        );
        site.import(
            "journals.jsonl",
            format!("{{\"id\":1,\"name\":\"Journal of {venue}\"}}\n"),
        );
        compare(venue, &site, &running, &keys);
    }

    // The same, with changes of licenses.
    let earlier = fs::read(site.db()).unwrap();
    for scope in ["--year 2026", "--therapy-area Cardiology"] {
        roll_back(&site, &earlier);
        site.license(
            "oncology",
            &format!("--dataset conferences --dataset journals --widen {scope}"),
        );
        compare(scope, &site, &running, &keys);
    }
    site.json(["license", "remove", "twin", "--yes"]);
    site.license(
        "twin",
        "--dataset conferences --dataset journals --therapy-area Cardiology",
    );
    let key = site.key("twin", &[]).1;
    keys.retain(|(name, _)| *name != "twin");
    keys.push(("twin", key));
    compare("a license made anew", &site, &running, &keys);

    let backup = site.backup("backup.redb");
    site.import(
        "conferences.jsonl",
        conferences([10, 11, 12].into_iter(), "a hall that goes"),
    );
    compare("before the restore", &site, &running, &keys);
    site.json(["restore".as_ref(), backup.as_os_str(), "--yes".as_ref()]);
    site.import(
        "conferences.jsonl",
        conferences([10, 11, 12].into_iter(), "a hall that stays"),
    );
    site.json(["compact"]);
    compare("after the restore and a compaction", &site, &running, &keys);
    running.stop();
}
