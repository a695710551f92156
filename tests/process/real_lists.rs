//! Round trips of real lists, where there are some: `MEDFEED_REAL_DATA` names a folder that holds
//! `journal_abbreviations.csv`, `conferences.jsonl` and `iso3166.csv`.

use std::fs;
use std::path::PathBuf;
use std::time::Instant;

use serde_json::{Value, json};

use super::site::Site;
use crate::properties::masked;

/// The rows that are taken of a list, at equal distances.
const JOURNALS: usize = 5_000;
const CONFERENCES: usize = 2_000;

/// "Journal" in many scripts.
const WORDS: [&str; 10] =
    ["journal", "журнал", "περιοδικό", "雑誌", "杂志", "저널", "مجلة", "כתב עת", "पत्रिका", "วารสาร"];

fn sample<T>(rows: Vec<T>, count: usize) -> impl Iterator<Item = T> {
    let part = |at: usize| at * count / rows.len().max(count);
    let chosen: Vec<bool> = (0..rows.len()).map(|at| part(at) != part(at + 1)).collect();
    rows.into_iter().zip(chosen).filter_map(|(row, is_chosen)| is_chosen.then_some(row))
}

/// The journals of a list of titles and abbreviations, with organizations and tags that some of them share.
fn journals(folder: &std::path::Path) -> String {
    let mut table = csv::Reader::from_path(folder.join("journal_abbreviations.csv")).unwrap();
    let mut lines = String::new();
    for (at, row) in sample(table.records().map(Result::unwrap).collect(), JOURNALS).enumerate() {
        let journal = json!({
            "id": at + 1, "name": format!("{} ({})", &row[1], WORDS[at % WORDS.len()]), "abbv": &row[2], "impact_factor": (at % 997) as f64 / 37.0,
            "organizations": [format!("Society {}", at % 50)], "tags": [format!("Source: {}", &row[0])],
        });
        lines.push_str(&format!("{journal}\n"));
    }
    lines
}

fn text_of(row: &Value, name: &str) -> Value {
    row[name].as_str().filter(|text| !text.is_empty()).map_or(Value::Null, Value::from)
}

/// The conferences of a merged list, with what its rows say of their dates.
fn conferences(folder: &std::path::Path, countries: &[String]) -> String {
    let content = fs::read_to_string(folder.join("conferences.jsonl")).unwrap();
    let mut lines = String::new();
    for (at, line) in sample(content.lines().collect(), CONFERENCES).enumerate() {
        let row: Value = serde_json::from_str(line).unwrap();
        let date = |name: &str| match &row[name] {
            Value::String(text) => medfeed::model::time::parse_date(text).ok(),
            _ => None,
        };
        let start = date("start_date");
        let end = date("end_date").filter(|end| start.is_some_and(|start| start <= *end));
        let status = |date: Option<_>| if date.is_some() { "confirmed" } else { "not_found" };
        let shown = |date: Option<jiff::civil::Date>| date.map(|date| date.to_string());
        let due = date("abstract_deadline");
        let year = row["year"].as_str().and_then(|year| year.parse::<u16>().ok());
        let country = text_of(&row, "country");
        let areas: Vec<String> = match &row["tags"] {
            Value::Array(tags) => {
                tags.iter().filter_map(|tag| tag.as_str()).map(|tag| tag.replace("; ", ", ")).collect()
            }
            _ => Vec::new(),
        };
        let conference = json!({
            "id": (at + 1) * 3, "name": row["name"], "abbv": text_of(&row, "acronym"),
            "year": year.filter(|year| (1900..=2100).contains(year)),
            "start_date": shown(start), "start_date_status": status(start), "end_date": shown(end),
            "abstract_due_date": shown(due), "abstract_due_date_status": status(due),
            "late_breaking_due_date_status": "check",
            "country": if country.is_null() { json!(countries[at % countries.len()]) } else { country },
            "city": text_of(&row, "city"), "venue": text_of(&row, "venue"), "url": text_of(&row, "url"),
            "therapy_areas": areas.into_iter().filter(|area| !area.is_empty()).collect::<Vec<_>>(),
            "formats": {"oral": at % 2 == 0},
        });
        lines.push_str(&format!("{conference}\n"));
    }
    lines
}

#[test]
fn real_lists_go_round() {
    let Some(folder) = std::env::var_os("MEDFEED_REAL_DATA").map(PathBuf::from) else {
        println!("MEDFEED_REAL_DATA names no folder with real lists: nothing was tested");
        return;
    };
    let mut table = csv::Reader::from_path(folder.join("iso3166.csv")).unwrap();
    let countries: Vec<String> = table.records().map(|row| row.unwrap()[0].to_owned()).collect();
    let (journals, conferences) = (journals(&folder), conferences(&folder, &countries));
    let site = Site::new();
    let organizations: String =
        (0..50).map(|at| format!("{{\"id\":{},\"name\":\"Society {at}\"}}\n", at + 1)).collect();
    let mut sources: Vec<String> = journals
        .lines()
        .map(|line| serde_json::from_str::<Value>(line).unwrap()["tags"][0].as_str().unwrap().to_owned())
        .collect();
    sources.sort();
    sources.dedup();
    let tags = sources.iter().enumerate().map(|(at, label)| {
        let (kind, name) = label.split_once(": ").unwrap();
        format!("{}\n", json!({"id": at + 1, "type": kind, "name": name}))
    });
    site.write("in/organizations.jsonl", organizations);
    site.write("in/tags.jsonl", tags.collect::<String>());
    site.write("in/journals.jsonl", &journals);
    site.write("in/conferences.jsonl", &conferences);
    let begun = Instant::now();
    let summary = site.json(["import", "in", "--create"]);
    println!("imported {} in {:?}", summary["datasets"], begun.elapsed());
    assert_eq!(summary["datasets"]["journals"]["added"], journals.lines().count());
    assert_eq!(summary["datasets"]["conferences"]["added"], conferences.lines().count());

    for format in ["jsonl", "csv"] {
        let out = format!("out-{format}");
        site.json(["export", &out, "--format", format]);
        let again = site.json(["import", &out]);
        assert_eq!(again["datasets"]["journals"]["changed"], 0, "{format}: {}", again["datasets"]);
        let copy = Site::new();
        copy.json(["import".as_ref(), site.path(&out).as_os_str(), "--create".as_ref()]);
        copy.json(["export", "out", "--format", format]);
        for stem in ["organizations", "tags", "journals", "conferences"] {
            let file = format!("{stem}.{format}");
            let first = masked(&fs::read(site.path(&out).join(&file)).unwrap());
            let second = masked(&fs::read(copy.path("out").join(&file)).unwrap());
            assert!(first == second, "{file} differs after the round trip");
        }
        copy.check();
    }

    // What callers get is the curator's own export, gzipped.
    let key = site.open_key();
    let server = site.serve();
    let mut client = server.client(&key);
    for dataset in ["journals", "conferences"] {
        for format in ["jsonl", "csv"] {
            let answer = client.get(&format!("/v1/exports/{dataset}?format={format}"));
            let own = fs::read(site.path(&format!("out-{format}/{dataset}.{format}"))).unwrap();
            assert!(answer.gunzip() == own, "{dataset}.{format}");
        }
    }
    for word in WORDS {
        let typed: String = word.to_uppercase().bytes().map(|byte| format!("%{byte:02X}")).collect();
        let found = client.get(&format!("/v1/journals?q={typed}&limit=500")).items();
        assert_eq!(found.len(), 500, "{word}");
    }
    server.stop();
}
