//! Lint of real lists, if there are any: `MEDFEED_REAL_DATA` names a folder with `journals_pmc.csv` and
//! `conferences.jsonl`.

use std::collections::BTreeSet;
use std::fs;
use std::path::PathBuf;

use serde_json::{Value, json};

use super::site::Site;

fn real_data() -> Option<PathBuf> {
    let folder = std::env::var_os("MEDFEED_REAL_DATA").map(PathBuf::from);
    if folder.is_none() {
        println!("MEDFEED_REAL_DATA names no folder with real lists: nothing was tested");
    }
    folder
}

/// Lint of a list of journals with ISSNs, and of the same journals in a list that lacks some of them. The list has the
/// catalogue number of each journal, which identifies it.
#[test]
fn lint_distinguishes_real_journals() {
    let Some(folder) = real_data() else { return };
    let mut table = csv::Reader::from_path(folder.join("journals_pmc.csv")).unwrap();
    let rows: Vec<csv::StringRecord> = table.records().map(Result::unwrap).collect();
    let (mut catalogue, mut lines) = (Vec::new(), String::new());
    let mut add = |row: &csv::StringRecord, has_print: bool, has_online: bool| {
        catalogue.push(row[5].to_owned());
        let [print, online] = [(has_print, &row[2]), (has_online, &row[3])]
            .map(|(has, issn)| if has { issn } else { "" });
        let journal = json!({ "id": catalogue.len(), "name": &row[0], "issn_print": print, "issn_online": online });
        lines.push_str(&format!("{journal}\n"));
    };
    rows.iter().for_each(|row| add(row, true, true));
    // The second list has the print ISSN, the online ISSN, or none.
    let again = rows.iter().step_by(50);
    let count = again.len();
    again
        .enumerate()
        .for_each(|(at, row)| add(row, at % 3 == 1, at % 3 == 2));
    let site = Site::new();
    site.write("journals.jsonl", lines);
    let summary = site.json(["import", "journals.jsonl", "--create"]);
    let findings = summary["warnings"].as_array().unwrap();
    let (mut right, mut wrong, mut found) = (0, Vec::new(), BTreeSet::new());
    for finding in findings {
        let message = finding["message"].as_str().unwrap();
        let Some(twin) = message
            .split_once(" of journal ")
            .and_then(|(_, rest)| rest.split(' ').next())
        else {
            continue;
        };
        let line = usize::try_from(finding["line"].as_u64().unwrap()).unwrap();
        let twin: usize = twin.parse().unwrap();
        let is_one = catalogue[line - 1] == catalogue[twin - 1];
        if is_one {
            found.insert(line);
        }
        // No two journals should have one ISSN.
        if is_one || finding["rule"] == "issn_twice" {
            right += 1;
        } else {
            wrong.push(finding.to_string());
        }
    }
    println!(
        "{right} right, {} of {count} found, wrong: {wrong:#?}",
        found.len()
    );
    assert!(
        right * 10 >= (right + wrong.len()) * 9,
        "{right} right, wrong: {wrong:#?}"
    );
    assert!(
        found.len() * 10 >= count * 9,
        "{} of {count} found",
        found.len()
    );
    // No other rule finds anything. The list has only HTML escapes and blanks.
    let others = findings.iter().filter(|finding| {
        !["same_name", "issn_twice", "html_escape", "blanks"]
            .contains(&finding["rule"].as_str().unwrap())
    });
    assert_eq!(others.count(), 0, "{findings:#?}");
}

/// Lint of a list of conferences. No day and no place in it is wrong.
#[test]
fn lint_reports_no_real_day_or_place() {
    let Some(folder) = real_data() else { return };
    let content = fs::read_to_string(folder.join("conferences.jsonl")).unwrap();
    let mut lines = String::new();
    for (at, line) in content.lines().step_by(4).enumerate() {
        let mut row: Value = serde_json::from_str(line).unwrap();
        let start = row["start_date"]
            .as_str()
            .and_then(|text| medfeed::model::time::parse_date(text).ok());
        let [name, country, city, venue] =
            ["name", "country", "city", "venue"].map(|field| row[field].take());
        let country = if country.as_str().is_none_or(str::is_empty) {
            json!("France")
        } else {
            country
        };
        let conference = json!({
            "id": at + 1, "name": name, "country": country, "city": city, "venue": venue,
            "start_date": start.map(|date| date.to_string()), "start_date_status": "check",
            "abstract_due_date_status": "check", "late_breaking_due_date_status": "check",
        });
        lines.push_str(&format!("{conference}\n"));
    }
    let site = Site::new();
    site.write("conferences.jsonl", lines);
    let summary = site.json(["import", "conferences.jsonl", "--create"]);
    for rule in words!["crowded_day" "country_in_city" "wrong_encoding" "html_escape"] {
        let found = summary["warnings"].as_array().unwrap().iter();
        let found = found.filter(|finding| finding["rule"] == rule);
        assert_eq!(found.count(), 0, "{rule}");
    }
}
