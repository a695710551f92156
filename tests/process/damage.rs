//! Files with damaged bytes: a server of such a file gives the same answers as a server of the sound file, or errors.
//! `MEDFEED_CASES` sets how many files are damaged, `MEDFEED_SEED` the first one's seed.

use std::fs;
use std::path::Path;
use std::process::Stdio;

use super::client::{Answer, Client};
use super::damaged_commands::damage;
use super::site::{Done, Random, STATUSES, Server, Site};
use crate::harness::counted;
use crate::properties::variable;

/// The number of damaged files by default.
const CASES: u64 = 12;
const RECORDS: u64 = 260;

const TARGETS: [&str; 17] = words![
    "/v1/status" "/v1/conferences?limit=200" "/v1/conferences?limit=200&updated_since=2020-01-01"
    "/v1/conferences?year=2026&limit=200" "/v1/conferences?country=Japan&limit=200"
    "/v1/conferences?q=conference%203&limit=200" "/v1/conferences/changes?updated_since=2020-01-01&limit=1000"
    "/v1/conferences/changes?updated_since=2020-01-01&limit=40" "/v1/conferences/1" "/v1/conferences/129"
    "/v1/conferences/260" "/v1/exports/conferences" "/v1/exports/conferences?format=csv"
    "/v1/reference/therapy-areas" "/v1/reference/organizations?dataset=conferences" "/v1/journals?limit=200"
    "/v1/journals/changes?updated_since=2020-01-01"
];

/// A database with every kind of row, and two keys of different licenses.
fn build() -> (Site, [String; 2]) {
    let site = Site::new();
    let lines = |ids: std::ops::RangeInclusive<u64>, venue: &str| -> String {
        let line = |id: u64| {
            let country = ["Japan", "France", "Chile"][usize::try_from(id % 3).unwrap()];
            let area = ["Oncology", "Cardiology"][usize::try_from(id % 2).unwrap()];
            format!(
                "{{\"id\":{id},\"name\":\"Conference {id}\",\"year\":{},\"country\":\"{country}\",\"venue\":\"{venue}\",\
                 \"therapy_areas\":[\"{area}\"],\"organizations\":[{}],{STATUSES}}}\n",
                2024 + id % 4,
                1 + id % 40,
            )
        };
        ids.map(line).collect()
    };
    let organizations: String = (1..=40)
        .map(|id| format!("{{\"id\":{id},\"name\":\"Society {id}\"}}\n"))
        .collect();
    site.import("organizations.jsonl", organizations);
    site.import("conferences.jsonl", lines(1..=RECORDS, "a hall"));
    site.import(
        "journals.jsonl",
        (1..=90)
            .map(|id| format!("{{\"id\":{id},\"name\":\"J{id}\"}}\n"))
            .collect::<String>(),
    );
    site.license("all", "--dataset conferences --dataset journals");
    site.license(
        "some",
        "--dataset conferences --dataset journals --therapy-area Oncology",
    );
    let keys = ["all", "some"].map(|license| site.key(license, &[]).1);
    site.import("conferences.jsonl", lines(200..=260, "another hall"));
    site.import(
        "conferences.jsonl",
        (90..=99)
            .map(|id| format!("{{\"id\":{id},\"deleted\":true}}\n"))
            .collect::<String>(),
    );
    (site, keys)
}

/// Every page of a list or feed, up to the first error.
fn walk(client: &mut Client, first: &str) -> Vec<Answer> {
    let mut target = first.to_owned();
    let mut answers = Vec::new();
    loop {
        let answer = client.get(&target);
        let next = if answer.status == 200 && !first.contains("exports") {
            let page = answer.json();
            let base = first.split_once('?').map_or(first, |(path, _)| path);
            let limit = first
                .split('&')
                .find(|pair| pair.contains("limit="))
                .unwrap_or("limit=200");
            let limit = limit.rsplit_once('?').map_or(limit, |(_, pair)| pair);
            let cursor = page["next_cursor"].as_str();
            let token = page["next_sync_token"]
                .as_str()
                .filter(|_| page["has_more"] == true);
            match (cursor, token) {
                (Some(cursor), _) => Some(format!("{first}&cursor={cursor}")),
                (_, Some(token)) => Some(format!("{base}?since={token}&{limit}")),
                _ => None,
            }
        } else {
            None
        };
        answers.push(answer);
        match next {
            Some(next) => target = next,
            None => return answers,
        }
    }
}

/// Starts a server of a damaged file. `None` if it refuses the file with exit code 1 and an error message.
fn serve(site: &Site, case: &str) -> Option<Server> {
    let mut command = site.serve_command("--log error");
    command.stdout(Stdio::piped());
    match site.try_start(command) {
        Ok(server) => Some(server),
        Err(Done { code, stderr, .. }) => {
            assert_eq!(code, Some(1), "{case}: {stderr}");
            assert!(stderr.contains("error: "), "{case}: {stderr}");
            assert!(!stderr.contains("panicked"), "{case}: {stderr}");
            None
        }
    }
}

#[test]
fn a_server_of_a_damaged_file_gives_right_answers_or_errors() {
    let (site, keys) = build();
    let sound = fs::read(site.db()).unwrap();
    let server = site.serve();
    let expected: Vec<Vec<_>> = keys
        .iter()
        .flat_map(|key| {
            TARGETS.map(|target| {
                walk(&mut server.client(key), target)
                    .iter()
                    .map(Answer::comparable)
                    .collect()
            })
        })
        .collect();
    server.stop();
    let asked = || {
        keys.iter()
            .flat_map(|key| TARGETS.map(|target| (key, target)))
            .zip(&expected)
    };

    let first = variable("MEDFEED_SEED").unwrap_or(1);
    let (mut refused, mut failed, mut same) = (0, 0, 0);
    for seed in first..first + variable("MEDFEED_CASES").unwrap_or(CASES) {
        let mut random = Random::new(seed);
        let (kind, content) = damage(&sound, &mut random);
        let case = format!("MEDFEED_SEED={seed} MEDFEED_CASES=1: {kind}");
        fs::write(site.db(), &content).unwrap();
        let Some(mut server) = serve(&site, &case) else {
            refused += 1;
            continue;
        };
        for ((key, target), pages) in asked() {
            for (answer, expected) in walk(&mut server.client(key), target).iter().zip(pages) {
                match answer.status {
                    500 => {
                        assert_eq!(answer.problem(), "internal_error", "{case}: {target}");
                        failed += 1;
                    }
                    // If the server cannot read the file because of the damage, the status is 503.
                    503 if target == "/v1/status" => failed += 1,
                    _ if answer.comparable() == *expected => same += 1,
                    // The engine may have gone back to an earlier commit, which is whole. Then the check finds no
                    // fault.
                    _ => {
                        assert!(
                            is_sound(&site, &content),
                            "{case}: {target} is answered otherwise: {}",
                            answer.status
                        )
                    }
                }
            }
        }
        let ended = server.process.ended_within(std::time::Duration::ZERO);
        assert_eq!(ended, None, "{case}: the server ended: {}", server.logged());
        server.stop();
    }
    println!(
        "{refused} files refused; of the other servers' answers {failed} failed and {same} were right"
    );
    counted(variable("MEDFEED_CASES").unwrap_or(CASES), "damaged files");
}

/// Whether the check finds no fault in a file of this content.
fn is_sound(site: &Site, content: &[u8]) -> bool {
    let copy: &Path = &site.path("copy.redb");
    fs::write(copy, content).unwrap();
    let done = site.run(["check".as_ref(), "--db".as_ref(), copy.as_os_str()]);
    done.code == Some(0)
}
