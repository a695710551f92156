//! Lint warnings of imports into a small database in memory.

use super::tests::{MemoryDatabase, STATUSES, apply, run, sample_database};
use super::*;
use crate::import::lint::Extent;
use crate::model::{License, LicenseId, Scope, Timestamp};

/// Returns a database with therapy areas, and with licenses that name some of them.
fn licensed_database() -> MemoryDatabase {
    let mut database = sample_database();
    let rows: String = (100..=105)
        .map(|id| format!("{{\"id\":{id},\"name\":\"Congress {id}\",\"year\":2026,\"start_date\":\"2026-05-0{}\",\"city\":\"Paris\",\"therapy_areas\":[\"Oncology\",\"Hematology\"],\"country\":\"France\",{STATUSES}}}\n", id - 99))
        .collect();
    let journals = "{\"id\":30,\"name\":\"The Lancet\",\"issn_print\":\"0140-6736\"}\n";
    let files = format!("# conferences.jsonl\n{rows}# journals.jsonl\n{journals}");
    let merged = run(&database, &files, MergeOptions::default()).unwrap();
    apply(&mut database, merged.batch);
    let license = |name: &str, area: &str| License {
        id: LicenseId(1),
        name: name.to_owned(),
        scope: Scope {
            datasets: Dataset::ALL.into_iter().collect(),
            therapy_areas: Some([area.to_owned()].into()),
            countries: None,
            years: None,
        },
        rate_limit: 600,
        scope_seq: 0,
        subscriptions: Default::default(),
        created_at: Timestamp::EPOCH,
    };
    database.licenses = vec![license("acme", "Oncology"), license("heart", "Cardiology")];
    database
}

#[test]
fn likely_mistakes_are_told() {
    // The columns of each case: id, name, year, therapy_areas, country, start_date, city.
    let cases = [
        ("200,A,2026,Oncology,France,,", ""),
        (
            "200,A,2026,Oncolgy,France,,",
            "therapy_areas: `Oncolgy` - looks like a misspelling of `Oncology` (1 row); licenses that name the right \
             one (acme) do not match this one; write `Oncology`",
        ),
        (
            "200,A,2026,oncology,France,,",
            "therapy_areas: `oncology` - is another spelling of `Oncology` (1 row); licenses that name the right one (acme)",
        ),
        ("200,A,2026,Oncology ,France,,", "therapy_areas: `Oncology ` - is another spelling of `Oncology`"),
        (
            "200,A,2026,Haematology,France,,",
            "`Haematology` - is another spelling of `Hematology` (1 row); licenses and filters treat them as different",
        ),
        ("200,A,2026,Surgery;,France,,", "`Surgery;` - has unneeded blanks or punctuation (1 row); write `Surgery`"),
        // Only a license names Cardiology. Only lint's own list contains Hepatology.
        (
            "200,A,2026,Cardiolgy,France,,",
            "`Cardiolgy` - looks like a misspelling of `Cardiology` (1 row); licenses that name the right one (heart)",
        ),
        ("200,A,2026,CARDIOLOGY,France,,", "`CARDIOLOGY` - is another spelling of `Cardiology`"),
        ("200,A,2026,Hepatology,France,,", ""),
        ("200,A,2026,Hepatolgy,France,,", "`Hepatolgy` - looks like a misspelling of `Hepatology`"),
        (
            "200,A,2026,\"Oncology, Hematology\",France,,",
            "`Oncology, Hematology` - lists several in one text: `Oncology`, `Hematology` (1 row); licenses that name \
             the right one (acme) do not match this one; in CSV write `Oncology; Hematology`",
        ),
        ("200,A,2026,Oncology;Hematology,France,,", "lists several in one text: `Oncology`, `Hematology`"),
        ("200,A,2026,Oncology / hematology,France,,", "lists several in one text: `Oncology`, `Hematology`"),
        ("200,A,2026,Oncology and Hematology,France,,", "lists several in one text"),
        ("200,A,2026,Obstetrics and Gynecology,France,,", ""),
        ("200,A,2026,\"Ear, Nose and Throat\",France,,", ""),
        (
            "200,A,2026,Balneology,France,,",
            "`Balneology` - is not a known therapy area (1 row); no license names it, so licenses with other ones \
             (acme, heart) do not match it; check its spelling",
        ),
        ("200,A,2026,N/A,France,,", "therapy_areas: `N/A` - is a placeholder"),
        ("200,A,2026,Oncology,Frnace,,", "country: `Frnace` - looks like a misspelling of `France`"),
        ("200,A,2026,Oncology,Germny,,", "country: `Germny` - looks like a misspelling of `Germany`"),
        ("200,A,2026,Oncology,Germany,,", ""),
        ("200,A,2026,Oncology,Austria,,\n201,B,2026,Oncology,Australia,,\n202,C,2026,Oncology,Australia,,", ""),
        ("200,A,2026,Oncology,Atlantis,,", "country: `Atlantis` - is not a known country (1 row)"),
        ("200,A,2026,Oncology,TBD,,", "country: `TBD` - is a placeholder"),
        (
            "200,congress 101,2026,Oncology,France,,",
            "name: `congress 101` - is also the name of conference 101 in the database, of the same year; remove one",
        ),
        ("200,Congress 101,2027,Oncology,France,,", ""),
        (
            "200,A,2026,Oncology,France,,\n201,A,2026,Oncology,France,,",
            "conferences.csv:3: name: `A` - is also the name of conference 200 at conferences.csv:2, of the same year",
        ),
        (
            "200,Congress 101,,Oncology,France,2026-05-02,Paris",
            "begins on the same day in the same city as conference 101 in the database",
        ),
        ("200,Another 101,2026,Oncology,France,2026-05-02,Paris", ""),
        // Lint does not repeat warnings about unchanged rows.
        ("101,Congress 101,2026,Oncology; Hematology,France,2026-05-02,Paris", ""),
        (
            "101,Congress 102,2026,Oncology; Hematology,France,2026-05-02,Paris",
            "conferences.csv:2: name: `Congress 102` - is also the name of conference 102 in the database",
        ),
    ];
    let database = licensed_database();
    for (rows, expected) in cases {
        let rows: String = rows.lines().map(|row| format!("{row},check,check,check\n")).collect();
        let head = "id,name,year,therapy_areas,country,start_date,city,start_date_status,abstract_due_date_status,late_breaking_due_date_status";
        let merged = run(&database, &format!("# conferences.csv\n{head}\n{rows}"), MergeOptions::default()).unwrap();
        let warnings: Vec<String> =
            merged.warnings.iter().map(|warning| without_folder(&warning.to_string())).collect();
        if expected.is_empty() {
            assert_eq!(warnings, [""; 0], "{rows}");
        } else {
            assert_eq!(warnings.len(), 1, "{rows}{warnings:?}");
            assert!(warnings[0].contains(expected), "{rows}{warnings:?}");
        }
    }
    let journals = [
        ("40,lancet,0028-4793", ""),
        ("40,the Lancet.,0028-4793", "name: `the Lancet.` - is also the name of journal 30 in the database"),
        (
            "40,J,01406736",
            "issn_print: `01406736` - is not in the form of an ISSN; write `0140-6736`|issn_print: `01406736` - is also an ISSN of journal 30 in the database",
        ),
        ("40,J,0140-6737", "issn_print: `0140-6737` - its check digit is 7, but its other digits require 6"),
        ("30,The Lancet,0140-6736", ""),
    ];
    for (row, expected) in journals {
        let merged =
            run(&database, &format!("# journals.csv\nid,name,issn_print\n{row}\n"), MergeOptions::default()).unwrap();
        let warnings: Vec<String> =
            merged.warnings.iter().map(|warning| without_folder(&warning.to_string())).collect();
        let expected: Vec<&str> = expected.split('|').filter(|text| !text.is_empty()).collect();
        assert_eq!(warnings.len(), expected.len(), "{row}: {warnings:?}");
        assert!(
            warnings.iter().zip(&expected).all(|(warnings, expected)| warnings.contains(expected)),
            "{row}: {warnings:?}"
        );
    }
}

/// Removes the folders from the paths in a message.
fn without_folder(message: &str) -> String {
    let words = message
        .split(' ')
        .map(|word| if word.contains(".csv:") { word.rsplit('/').next().unwrap_or(word) } else { word });
    words.collect::<Vec<_>>().join(" ")
}

#[test]
fn the_rarer_word_of_a_database_is_reported() {
    // The import contains the right spelling, which shows the mistake in the database.
    let mut database = sample_database();
    let row =
        |id: u64, area: &str| format!("{{\"id\":{id},\"name\":\"C{id}\",\"therapy_areas\":[\"{area}\"],{STATUSES}}}\n");
    let merged =
        run(&database, &format!("# conferences.jsonl\n{}", row(50, "Balneologgy")), MergeOptions::default()).unwrap();
    assert_eq!(merged.warnings, []);
    apply(&mut database, merged.batch);
    let rows = row(51, "Balneology") + &row(52, "Balneology");
    for extent in [Extent::New, Extent::All] {
        let options = MergeOptions { extent, ..MergeOptions::default() };
        let merged = run(&database, &format!("# conferences.jsonl\n{rows}"), options).unwrap();
        let warnings: Vec<String> = merged.warnings.iter().map(ToString::to_string).collect();
        let expected =
            "conferences 50: therapy_areas: `Balneologgy` - looks like a misspelling of `Balneology` (1 row)";
        assert!(warnings.iter().any(|warnings| warnings.starts_with(expected)), "{warnings:?}");
    }
}
