//! Random input, made of meaningful pieces and then damaged. It is answered or refused: nothing panics, no answer is a
//! 500, and each answer has the form of the contract.

use std::cell::Cell;
use std::time::Duration;

use http::{HeaderMap, HeaderName, HeaderValue, Method};
use medfeed::import::{self, MergeOptions, ReadOptions, Source, SourceOptions};
use medfeed::model::Dataset;
use medfeed::store::Writer;
use medfeed::store::check::check;
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::{Index, select};

use super::edits::Change;
use super::holds;
use super::system::System;
use super::world::{Record, Scope};

const PATHS: [&str; 22] = words![
    "/" "/v1" "/v1/" "/v1/status" "/v1/conferences" "/v1/journals" "/v1/conferences/1" "/v1/conferences/007"
    "/v1/conferences/9007199254740992" "/v1/conferences/-1" "/v1/conferences/changes" "/v1/journals/changes"
    "/v1/exports/conferences" "/v1/exports/journals" "/v1/reference/tags" "/v1/reference/organizations"
    "/v1/reference/therapy-areas" "/docs" "/docs/feed" "/openapi.json" "/v1//conferences" "/v1/%63onferences"
];
const NAMES: [&str; 18] = words![
    "limit" "cursor" "since" "updated_since" "wait" "resync" "format" "q" "year" "country" "therapy_area"
    "start_date_from" "start_date_to" "dataset" "li%6Dit" "" "limit[]" "Limit"
];
const VALUES: [&str; 32] = words![
    "" "0" "1" "500" "501" "1000" "1001" "-1" "18446744073709551616" "1e3" "0x10" "diff" "jsonl" "csv"
    "2024-02-29" "2025-02-29" "0000-00-00" "9999-12-31T23:59:59Z" "2024-01-01T00:00:60Z"
    "2024-01-01T00:00:00+23:59" "Oncology" "C%C3%B4te+d'Ivoire" "%" "%F" "%FF" "%00" "%26limit=1" "a%20b" "癌学会"
    "{token}" "{cursor}" "conferences"
];
const HEADERS: [(&str, &[&str]); 9] = cases![
    "if-none-match", &["*", "\"x\"", "W/\"x\"", "\"", "\"a\",\"b\"", ","];
    "range", &["bytes=0-", "bytes=-1", "bytes=5-2", "bytes=0-0,2-3", "bytes=99999999999999999999-", "lines=1"];
    "if-range", &["\"x\"", "W/\"x\"", "Thu, 01 Jan 1970 00:00:00 GMT"];
    "accept-encoding", &["gzip", "gzip;q=0", "*;q=0", "identity;q=0,*;q=0", "gzip;q=x", ",,"];
    "accept", &["text/html", "application/json;q=0", "*/*", "/", "text/html;q=0.0001"];
    "origin", &["null", "https://example.org", "https://"];
    "authorization", &["Bearer", "Bearer ", "Basic x", "Bearer mf_live_x", "bearer a b"];
    "x-request-id", &["", "a", "../../etc/passwd", "\u{e9}"];
    "access-control-request-method", &["GET", "PUT", ""];
];

/// A change of a text: a byte replaced, a piece left out, or a piece repeated.
#[derive(Clone, Debug)]
enum Damage {
    Replace(Index, u8),
    Leave(Index, Index),
    Twice(Index, Index),
}

fn damages() -> impl Strategy<Value = Vec<Damage>> {
    let one = prop_oneof![
        3 => (any::<Index>(), any::<u8>()).prop_map(|(at, byte)| Damage::Replace(at, byte)),
        1 => (any::<Index>(), any::<Index>()).prop_map(|(at, to)| Damage::Leave(at, to)),
        1 => (any::<Index>(), any::<Index>()).prop_map(|(at, to)| Damage::Twice(at, to)),
    ];
    vec(one, 0..4)
}

fn damaged(mut bytes: Vec<u8>, damages: &[Damage]) -> Vec<u8> {
    for damage in damages
        .iter()
        .filter(|_| !bytes.is_empty())
        .cloned()
        .collect::<Vec<_>>()
    {
        if bytes.is_empty() {
            break;
        }
        let range = |from: Index, to: Index, length| {
            let (from, to) = (from.index(length), to.index(length));
            from.min(to)..from.max(to)
        };
        match damage {
            Damage::Replace(at, byte) => {
                let at = at.index(bytes.len());
                bytes[at] = byte;
            }
            Damage::Leave(from, to) => drop(bytes.drain(range(from, to, bytes.len()))),
            Damage::Twice(from, to) => {
                let range = range(from, to, bytes.len());
                let piece = bytes[range.clone()].to_vec();
                bytes.splice(range.start..range.start, piece);
            }
        }
    }
    bytes
}

fn filled() -> System {
    let record = |id: u64| Record {
        name: vec![0, usize::try_from(id).unwrap() % 9],
        abbv: None,
        year: Some(2025),
        country: Some("Côte d'Ivoire"),
        start: Some("2024-02-29"),
        areas: ["Oncology"].into(),
        organizations: [].into(),
        tags: [].into(),
        version: 0,
    };
    let conferences = (1..=9).map(|id| Change::Put(Dataset::Conferences, id, record(id)));
    let journals = (1..=3).map(|id| {
        let record = Record {
            year: None,
            country: None,
            start: None,
            areas: [].into(),
            ..record(id)
        };
        Change::Put(Dataset::Journals, id, record)
    });
    let all = Scope {
        datasets: Dataset::ALL.into(),
        areas: None,
        countries: None,
        years: None,
    };
    System::with(&conferences.chain(journals).collect::<Vec<_>>(), &[all])
}

#[test]
fn every_request_is_answered() {
    let system = filled();
    let token = system.export(0, Dataset::Conferences).unwrap().token;
    let page = system.get(0, "/v1/conferences?limit=2").json();
    let cursor = page["next_cursor"].as_str().unwrap().to_owned();
    let pairs = vec((select(&NAMES), select(&VALUES)), 0..5);
    let headers = vec(any::<(Index, Index)>(), 0..3);
    let method = select(vec![
        Method::GET,
        Method::GET,
        Method::GET,
        Method::HEAD,
        Method::OPTIONS,
        Method::POST,
    ]);
    let strategy = (
        method,
        select(&PATHS),
        pairs,
        headers,
        damages(),
        any::<bool>(),
    );
    holds(
        2_000,
        strategy,
        |(method, path, pairs, headers, damages, has_key)| {
            let query = pairs.iter().map(|(name, value)| format!("{name}={value}"));
            let query: Vec<String> = query.collect();
            let target = format!(
                "{path}{}{}",
                if query.is_empty() { "" } else { "?" },
                query.join("&")
            );
            let target = target
                .replace("{token}", &token)
                .replace("{cursor}", &cursor);
            // Targets that cannot be in a request line never reach this code (process::malformed).
            let bytes = damaged(target.into_bytes(), &damages);
            let Ok(target) = String::from_utf8(bytes) else {
                return;
            };
            if !target.starts_with('/') || target.bytes().any(|byte| byte <= b' ' || byte == 0x7f) {
                return;
            }
            let mut sent = HeaderMap::new();
            for (header, value) in headers {
                let (name, values) = header.get(&HEADERS);
                if let Ok(value) = HeaderValue::from_bytes(value.get(values).as_bytes()) {
                    sent.append(HeaderName::from_static(name), value);
                }
            }
            let reply = system.ask(has_key.then_some(0), method.clone(), &target, sent);
            let known = [
                200, 204, 206, 304, 400, 401, 403, 404, 405, 406, 410, 416, 429,
            ];
            assert!(
                known.contains(&reply.status),
                "{method} {target}: {} {}",
                reply.status,
                reply.text()
            );
            if reply.status >= 400 && method != Method::HEAD && reply.status != 416 {
                let kind = reply.headers["content-type"].to_str().unwrap();
                let is_page = kind.starts_with("text/html");
                assert!(
                    kind == "application/problem+json" || is_page,
                    "{method} {target}: {kind}"
                );
                if !is_page {
                    assert_eq!(reply.json()["status"], reply.status, "{method} {target}");
                }
            }
        },
    );
}

const ROWS: [&str; 5] = [
    "{\"id\":1,\"name\":\"Ångström\",\"year\":2025,\"start_date\":\"2025-06-01\",\"start_date_status\":\"confirmed\",\
     \"abstract_due_date_status\":\"check\",\"late_breaking_due_date_status\":\"check\",\"therapy_areas\":[\"Oncology\"]}\n",
    "{\"id\":2,\"deleted\":true}\n",
    "\n",
    "{\"id\":3,\"name\":\"x\",\"start_date_status\":\"check\",\"abstract_due_date_status\":\"check\",\
     \"late_breaking_due_date_status\":\"check\",\"country\":\"Japan\",\"formats\":{\"oral\":true}}\n",
    "{\"id\":4,\"name\":null,\"organizations\":[1,2]}\n",
];
const TABLE: [&str; 5] = [
    "id,name,year,start_date,start_date_status,abstract_due_date_status,late_breaking_due_date_status,therapy_areas\n",
    "1,Ångström,2025,2025-06-01,confirmed,check,check,Oncology; Cardiology\n",
    "2,\"a \"\"quoted\"\", name\nof two lines\",2026,,check,check,check,\n",
    "3;semicolons;2026\n",
    "4,\u{feff}x,20 25,1.6.2025,Confirmed,CHECK,check,\"Oncology\"\r\n",
];

/// Files are read, or refused with a message. The rows that were read are committed, and the check finds no fault.
fn files_are_read_or_refused(name: &str, head: &str, pieces: &'static [&'static str]) {
    let strategy = (vec(select(pieces), 0..6), damages());
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join(name);
    let mut writer =
        Writer::open_or_create(&folder.path().join("feed.redb"), Duration::ZERO).unwrap();
    let (refused, taken) = (Cell::new(0), Cell::new(0));
    holds(200, strategy, |(pieces, damages)| {
        let content = damaged(format!("{head}{}", pieces.concat()).into_bytes(), &damages);
        std::fs::write(&path, content).unwrap();
        let sources = Source::find(std::slice::from_ref(&path), SourceOptions::default()).unwrap();
        let mut edit = writer.begin().unwrap();
        let merged = import::read_sources(&sources, &ReadOptions::default())
            .map_err(|refusal| refusal.to_string())
            .and_then(|rows| {
                import::merge(rows, &edit.base().unwrap(), &MergeOptions::default())
                    .map_err(|refusal| refusal.to_string())
            });
        match merged {
            Ok(merged) => {
                edit.apply(&merged.batch).unwrap();
                edit.commit().unwrap();
                taken.set(taken.get() + 1);
            }
            Err(refusal) => {
                assert!(!refusal.trim().is_empty(), "a refusal says why");
                refused.set(refused.get() + 1);
            }
        }
    });
    println!(
        "{name}: {} files taken, {} refused",
        taken.get(),
        refused.get()
    );
    assert!(taken.get() > 0, "the cases are too wild, or too tame");
    assert!(refused.get() > 0, "the cases are too wild, or too tame");
    let report = check(&mut writer).unwrap();
    assert_eq!(report.damages, 0, "{:?}", report.findings);
}

#[test]
fn every_jsonl_file_is_read_or_refused() {
    files_are_read_or_refused("conferences.jsonl", "", &ROWS);
}

#[test]
fn every_csv_file_is_read_or_refused() {
    files_are_read_or_refused("conferences.csv", TABLE[0], &TABLE);
}
