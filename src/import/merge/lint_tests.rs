//! Lint warnings of imports into a small database.

use serde_json::Value;

use super::tests::{
    STATUSES, TestDatabase, apply, conferences_csv, imported, run, sample_database, store,
};
use super::*;
use crate::model::Scope;

fn scope(area: &str) -> Scope {
    Scope {
        datasets: Dataset::ALL.into_iter().collect(),
        therapy_areas: Some([area.to_owned()].into()),
        countries: None,
        years: None,
    }
}

/// Returns a database with therapy areas, and with licenses that name some of them.
fn licensed_database() -> TestDatabase {
    let database = sample_database();
    let rows: String = (100..=105)
        .map(|id| format!("{{\"id\":{id},\"name\":\"Congress {id}\",\"year\":2026,\"start_date\":\"2026-05-0{}\",\"city\":\"Paris\",\"therapy_areas\":[\"Oncology\",\"Hematology\"],\"country\":\"France\",{STATUSES}}}\n", id - 99))
        .collect();
    let journals = "{\"id\":30,\"name\":\"The Lancet\",\"issn_print\":\"0140-6736\"}\n";
    let files = format!("# conferences.jsonl\n{rows}# journals.jsonl\n{journals}");
    store(&database, &files);
    license(&database, "acme", "Oncology");
    license(&database, "heart", "Cardiology");
    database
}

/// Sets a license for one therapy area.
fn license(database: &TestDatabase, name: &str, area: &str) {
    database.edit(|edit| edit.set_license(name, scope(area), None).unwrap());
}

/// The warnings of an import, without folders.
fn warnings(merged: &Merged) -> Vec<String> {
    let warnings = merged.warnings.kept().iter();
    let texts = warnings.map(|warning| without_folder(&warning.to_string()));
    texts.collect()
}

/// Asserts that there are these warnings: each has the expected part, or begins with it if that names a file or line.
#[track_caller]
fn assert_warned<'a>(what: &str, warnings: &[String], expected: impl IntoIterator<Item = &'a str>) {
    let expected: Vec<&str> = expected.into_iter().collect();
    assert_eq!(warnings.len(), expected.len(), "{what}: {warnings:?}");
    for (warning, expected) in warnings.iter().zip(expected) {
        let is_start =
            expected.starts_with("conferences.csv:") || expected.starts_with(char::is_numeric);
        let fits = match is_start {
            true => warning.starts_with(expected),
            false => warning.contains(expected),
        };
        assert!(fits, "{what}: no {expected:?} in {warnings:?}");
    }
}

/// One expected text, or none if it is empty.
fn any(expected: &str) -> Option<&str> {
    (!expected.is_empty()).then_some(expected)
}

/// The options of an import that corrects values.
fn fixing() -> MergeOptions {
    MergeOptions {
        fix: true,
        ..MergeOptions::default()
    }
}

/// The lines and rules of findings.
fn rules(found: &[Finding]) -> String {
    let rules = found
        .iter()
        .map(|found| format!("{} {}", found.line.unwrap(), found.rule.unwrap()));
    rules.collect::<Vec<_>>().join(" ")
}

#[test]
fn likely_mistakes_are_warned_of() {
    // The columns of each case: id, name, year, therapy_areas, country, start_date, city.
    let cases = cases![
        "200,A,2026,Oncology,France,,", "";
        "200,A,2026,Oncolgy,France,,",
            "therapy_areas: `Oncolgy` - looks like a misspelling of `Oncology` (1 row); licenses that name the right \
             one (acme) do not match this one; did you mean `Oncology`? If not, keep it";
        "200,A,2026,oncology,France,,",
            "therapy_areas: `oncology` - is another spelling of `Oncology` (1 row); licenses that name the right one (acme)";
        "200,A,2026,Oncology ,France,,", "therapy_areas: `Oncology ` - is another spelling of `Oncology`";
        "200,A,2026,Haematology,France,,",
            "`Haematology` - is another spelling of `Hematology` (1 row); licenses and filters treat them as different";
        "200,A,2026,Surgery;,France,,",
            "`Surgery;` - is another spelling of `Surgery` (1 row); licenses and filters treat them as different";
        // Only a license names Cardiology. Only lint's own list contains Hepatology.
        "200,A,2026,Cardiolgy,France,,",
            "`Cardiolgy` - looks like a misspelling of `Cardiology` (1 row); licenses that name the right one (heart)";
        "200,A,2026,CARDIOLOGY,France,,", "`CARDIOLOGY` - is another spelling of `Cardiology`";
        "200,A,2026,Hepatology,France,,", "";
        "200,A,2026,Hepatolgy,France,,", "`Hepatolgy` - looks like a misspelling of `Hepatology`";
        "200,A,2026,\"Oncology, Hematology\",France,,",
            "`Oncology, Hematology` - lists several in one text: `Oncology`, `Hematology` (1 row); licenses that name \
             the right one (acme) do not match this one; in CSV write `Oncology; Hematology`";
        "200,A,2026,Oncology;Hematology,France,,", "lists several in one text: `Oncology`, `Hematology`";
        "200,A,2026,Oncology / hematology,France,,", "lists several in one text: `Oncology`, `Hematology`";
        "200,A,2026,Oncology and Hematology,France,,", "lists several in one text";
        "200,A,2026,Obstetrics and Gynecology,France,,", "";
        "200,A,2026,\"Ear, Nose and Throat\",France,,", "";
        "200,A,2026,Balneology,France,,",
            "`Balneology` - is not a known therapy area (1 row); no license names it, so licenses with other ones \
             (acme, heart) do not match it; check its spelling";
        "200,A,2026,N/A,France,,", "therapy_areas: `N/A` - is a placeholder";
        "200,A,2026,Oncology,Frnace,,", "country: `Frnace` - looks like a misspelling of `France`";
        "200,A,2026,Oncology,Germny,,", "country: `Germny` - looks like a misspelling of `Germany`";
        "200,A,2026,Oncology,Germany,,", "";
        // A word of several records is asked about if a license names the near one, once.
        "200,A,2026,Oncolgy,France,,\n201,B,2026,Oncolgy,France,,",
            "conferences.csv:2: therapy_areas: `Oncolgy` - looks like a misspelling of `Oncology` (2 records); licenses that \
             name the right one (acme) do not match this one; did you mean `Oncology`?";
        "200,A,2026,Urollogy,France,,\n201,B,2026,Urollogy,France,,",
            "therapy_areas: `Urollogy` - is not a known therapy area (2 rows, the first is here)";
        "200,A,2026,Oncology,Austria,,\n201,B,2026,Oncology,Australia,,\n202,C,2026,Oncology,Australia,,", "";
        "200,A,2026,Oncology,Atlantis,,", "country: `Atlantis` - is not a known country (1 row)";
        "200,A,2026,Oncology,TBD,,", "country: `TBD` - is a placeholder";
        "200,congress 101,2026,Oncology,France,,",
            "name: `congress 101` - is also the name of conference 101 in the database, of the same year; remove one";
        "200,Congress 101,2027,Oncology,France,,", "";
        "200,A,2026,Oncology,France,,\n201,A,2026,Oncology,France,,",
            "conferences.csv:3: name: `A` - is also the name of conference 200 at conferences.csv:2, of the same year";
        "200,Congress 101,2025,Oncology,France,2026-05-02,Paris",
            "begins on the same day in the same city as conference 101 in the database";
        "200,Another 101,2026,Oncology,France,2026-05-02,Paris", "";
        // Lint does not repeat warnings about unchanged rows.
        "101,Congress 101,2026,Oncology; Hematology,France,2026-05-02,Paris", "";
        "101,Congress 102,2026,Oncology; Hematology,France,2026-05-02,Paris",
            "conferences.csv:2: name: `Congress 102` - is also the name of conference 102 in the database";
    ];
    let database = licensed_database();
    for (rows, expected) in cases {
        let columns = "id,name,year,therapy_areas,country,start_date,city";
        let merged = imported(&database, &conferences_csv(columns, rows));
        assert_warned(rows, &warnings(&merged), any(expected));
    }
    let journals = cases![
        "40,lancet,0028-4793", "";
        "40,the Lancet.,0028-4793", "";
        "40,the Lancet.,", "name: `the Lancet.` - is also the name of journal 30 in the database";
        "40,J,01406736", "issn_print: `0140-6736` - is also an ISSN of journal 30 in the database";
        "40,J,01406737",
            "issn_print: `01406737` - is not in the form of an ISSN; write `0140-6737`|its check digit is 7";
        "40,J,0140-6737", "issn_print: `0140-6737` - its check digit is 7, but its other digits require 6";
        "30,The Lancet,0140-6736", "";
    ];
    for (row, expected) in journals {
        let file = format!("# journals.csv\nid,name,issn_print\n{row}\n");
        let expected = expected.split('|').filter(|text| !text.is_empty());
        assert_warned(row, &warnings(&imported(&database, &file)), expected);
    }
}

/// Removes the folders from the paths in a message.
fn without_folder(message: &str) -> String {
    let words = message.split(' ').map(|word| {
        if word.contains(".csv:") {
            word.rsplit('/').next().unwrap_or(word)
        } else {
            word
        }
    });
    words.collect::<Vec<_>>().join(" ")
}

#[test]
fn the_word_of_the_database_is_preferred_while_a_record_has_it() {
    let database = sample_database();
    let row = |id: u64, area: &str| {
        format!("{{\"id\":{id},\"name\":\"C{id}\",\"therapy_areas\":[\"{area}\"],{STATUSES}}}\n")
    };
    let file = format!("# conferences.jsonl\n{}", row(50, "Balneologgy"));
    let merged = imported(&database, &file);
    assert_eq!(merged.warnings.kept(), []);
    apply(&database, merged.batch);
    let rows = row(51, "Balneology");
    for lints_all in [false, true] {
        let options = MergeOptions {
            lints_all,
            ..MergeOptions::default()
        };
        let merged = run(&database, &format!("# conferences.jsonl\n{rows}"), options).unwrap();
        let expected = "`Balneology` - looks like a misspelling of `Balneologgy` (1 row)";
        assert_warned(&rows, &warnings(&merged), [expected]);
    }
    // The import removes the only record that has it: with the others, or by itself.
    let removed = "{\"id\":50,\"deleted\":true}\n".to_owned();
    for (rows, replace) in [(rows.clone(), true), (rows + &removed, false)] {
        let options = MergeOptions {
            replace,
            ..MergeOptions::default()
        };
        let merged = run(&database, &format!("# conferences.jsonl\n{rows}"), options).unwrap();
        // Only the new word is not known.
        let warned = merged.warnings.kept().iter();
        let words: Vec<_> = warned.map(|warning| warning.value.as_deref()).collect();
        assert_eq!(words, [Some("Balneology")], "{:?}", merged.warnings);
    }
}

#[test]
fn a_word_that_the_import_removes_corrects_no_other_word() {
    let rows = |area: &str, ids: std::ops::RangeInclusive<u64>| -> String {
        ids.map(|id| format!("{id},C{id},{area}\n")).collect()
    };
    let cases = cases![
        rows("haematology", 50..=54), rows("Hematology", 50..=54), vec![];
        rows("haematology", 50..=54), rows("Hematology", 50..=60), vec![];
        // The word is neither a known area nor a new one.
        rows("balneology", 50..=54), rows("Balneology", 50..=54), vec![];
        rows("Balneology", 50..=54), rows("Balneology", 50..=52) + &rows("Phoniatrics", 53..=54), vec!["Phoniatrics"];
        // Some rows keep the stored word.
        rows("haematology", 50..=54), rows("Hematology", 50..=52), vec!["Hematology"];
        rows("Balneologgy", 50..=52), rows("Balneology", 51..=53), vec!["Balneology"];
        // The removed word is known to be right.
        rows("Hematology", 50..=54), rows("haematology", 50..=54), vec!["haematology"];
        rows("Hematology", 50..=61), rows("Hematolgy", 50..=61), vec!["Hematolgy"];
    ];
    for (stored, imported, expected) in cases {
        let columns = "id,name,therapy_areas";
        let warnings = warnings_after(&sample_database(), columns, &[&stored, &imported]);
        let words = warnings
            .iter()
            .filter_map(|warning| warning.split('`').nth(1));
        let words: Vec<_> = words.collect();
        assert_eq!(words, expected, "{stored}{imported}: {warnings:?}");
    }
}

#[test]
fn a_new_word_of_a_stored_record_is_compared_with_those_of_the_database() {
    let stored = "50,A,Balneology\n51,B,Balneology\n52,C,Oncology";
    let files = [stored, "52,C,Balneologgy"];
    let warnings = warnings_after(&sample_database(), "id,name,therapy_areas", &files);
    let expected = "conferences.csv:2: therapy_areas: `Balneologgy` - looks like a misspelling of `Balneology` (1 row)";
    assert_warned(stored, &warnings, [expected]);
}

#[test]
fn rows_of_different_kinds_may_share_a_name() {
    let files = [
        "# organizations.jsonl\n{\"id\":50,\"name\":\"Topic: Heart\"}\n".to_owned(),
        "# tags.jsonl\n{\"id\":50,\"type\":\"Topic\",\"name\":\"Heart\"}\n".to_owned(),
        format!("# conferences.jsonl\n{{\"id\":50,\"name\":\"Topic: Heart\",{STATUSES}}}\n"),
        "# journals.jsonl\n{\"id\":50,\"name\":\"Topic: Heart\"}\n".to_owned(),
    ];
    let merged = imported(&sample_database(), &files.concat());
    assert_eq!(merged.warnings.kept(), []);
    // A second row of a kind is reported, at its own kind.
    let second = "{\"id\":51,\"name\":\"topic: heart\"}\n";
    let merged = imported(&sample_database(), &(files.concat() + second));
    let expected = "is also the name of journal 50";
    assert_warned(second, &warnings(&merged), [expected]);
}

/// Imports the conferences one after another, and returns the warnings about the last file.
fn warnings_after(database: &TestDatabase, head: &str, files: &[&str]) -> Vec<String> {
    let mut last = Vec::new();
    for rows in files {
        let merged = imported(database, &conferences_csv(head, rows));
        last = warnings(&merged);
        apply(database, merged.batch);
    }
    last
}

#[test]
fn a_finding_is_known_by_its_rule_field_value_and_message() {
    // The stored row, the imported row, and the start of each expected warning.
    let cases: [(&str, &str, &[&str]); 12] = cases![
        // The same finding, though the row changed.
        "1,A,2026,, Paris,Hall", "1,A,2026,, Paris,Other hall", &[];
        // Another value of the same field, another field with the same value, and both.
        "1,A,2026,, Paris,Hall", "1,A,2026,, Lyon,Hall", &["conferences.csv:2: city: ` Lyon` - has blanks"];
        "1,A,2026,, Paris,Hall", "1,A,2026,, Paris, Paris", &["conferences.csv:2: venue: ` Paris` - has blanks"];
        "1,A,2026,, Paris,Hall", "1,A,2026,,Paris, Hall", &["conferences.csv:2: venue: ` Hall` - has blanks"];
        "1,A,2026,, Paris,Hall", "1, A,2026,, Paris,Hall", &["conferences.csv:2: name: ` A` - has blanks"];
        // Another rule about the same field.
        "1,A,2026,, Paris,Hall", "1,A,2026,,Paris &amp; Lyon,Hall",
            &["conferences.csv:2: city: `Paris &amp; Lyon` - contains"];
        "1,A,2026,, Paris,Hall", "1,A,2026,, &amp;,Hall",
            &["conferences.csv:2: city: ` &amp;` - contains `&amp;`", "conferences.csv:2: city: ` &amp;` - has blanks"];
        // The same value contradicts another one now.
        "1,A,2026,2023-05-01,Paris,Hall", "1,A,2026,2023-05-01,Paris,Other hall", &[];
        "1,A,2026,2023-05-01,Paris,Hall", "1,A,2026,2022-05-01,Paris,Hall",
            &["conferences.csv:2: year: `2026` - is far from the start_date 2022-05-01"];
        // The same finding about another record.
        "1,A,2026,, Paris,Hall", "1,A,2026,, Paris,Hall\n2,B,2026,, Paris,Hall",
            &["conferences.csv:3: city: ` Paris` - has"];
        "1,A,2026,, Paris,Hall", "2,B,2026,, Paris,Hall\n1,A,2026,, Paris,Other",
            &["conferences.csv:2: city: ` Paris` - has"];
        // A finding that was gone returns.
        "1,A,2026,, Paris,Hall\n", "1,A,2026,,TBD,TBD",
            &["conferences.csv:2: city: `TBD` - is a placeholder", "conferences.csv:2: venue: `TBD` - is a placeholder"];
    ];
    let head = "id,name,year,start_date,city,venue";
    for (stored, rows, expected) in cases {
        let warnings = warnings_after(&sample_database(), head, &[stored, rows]);
        assert_warned(rows, &warnings, expected.iter().copied());
    }
}

#[test]
fn a_duplicate_is_known_while_the_names_of_both_stay() {
    let head = "id,name,abbv,year,start_date,city";
    let stored = "1,Heart Failure Congress,,2026,2026-05-02,Paris\n2,Heart Failures Congress,,2025,2026-05-02,Paris\n\
                  3,Kidney Week,,2026,2026-05-02,Paris";
    let cases: [(&str, &[&str]); 8] = cases![
        // Only other fields of a known pair change.
        "2,Heart Failures Congress,,2026,2026-05-02,Paris", &[];
        "2,HEART FAILURES CONGRESS,,2025,2026-05-02,paris", &[];
        // The names change, and they are still similar.
        "2,Heart Failure Congresses,,2025,2026-05-02,Paris",
            &["begins on the same day in the same city as conference 1"];
        // Names become similar, by their letters or by an abbreviation.
        "3,Heart Failure Congres,,2026,2026-05-02,Paris",
            &[
                "begins on the same day in the same city as conference 1",
                "begins on the same day in the same city as conference 2",
            ];
        "3,Kidney Week,failures,2026,2026-05-02,Paris", &["begins on the same day in the same city as conference 2"];
        // Two rules about one row are one warning.
        "4,kidney week,,2026,2026-05-02,Paris", &["is also the name of conference 3 in the database"];
        // The pair is reported once, at the imported row, though both rows are in the file.
        "5,Liver Days,,2026,2026-06-02,Rome\n6,Liver Days.,,2026,2026-06-02,Rome",
            &["conferences.csv:3: name: `Liver Days.` - is also the name of conference 5 at conferences.csv:2"];
        "4,Lung Days,,2026,2026-05-02,Paris\n5,Kidney Days,,2026,2026-05-02,Paris", &[];
    ];
    for (rows, expected) in cases {
        let warnings = warnings_after(&sample_database(), head, &[stored, rows]);
        assert_warned(rows, &warnings, expected.iter().copied());
    }
}

#[test]
fn a_misspelling_is_reported_at_its_first_row_with_their_number() {
    let cases = cases![
        "200,A,Oncolgy\n201,B,Oncology\n202,C,Oncolgy\n203,D,Oncolgy",
            "conferences.csv:2: therapy_areas: `Oncolgy` - looks like a misspelling of `Oncology` (3 records); \
             licenses that name the right one (acme)";
        // A row that already had the word is not reported. Other rows are, although the database has the word.
        "200,A2,Oncolgy\n204,E,Oncolgy\n202,C2,Oncolgy",
            "conferences.csv:3: therapy_areas: `Oncolgy` - looks like a misspelling of `Oncology` (4 records)";
        // A row that had another word of the field.
        "201,B,Oncology; Hematolgy",
            "conferences.csv:2: therapy_areas: `Hematolgy` - looks like a misspelling of `Hematology` (1 row)";
    ];
    let database = licensed_database();
    for (rows, expected) in cases {
        let warnings = warnings_after(&database, "id,name,therapy_areas", &[rows]);
        assert_warned(rows, &warnings, [expected]);
    }
}

#[test]
fn typos_are_sought_by_the_length_of_the_word() {
    // Two rows with an odd word make it a word of its own.
    let odd = |count: usize| -> String {
        let rows = (300..300 + count).map(|id| format!("{id},C{id},Nephrolgy,\n"));
        rows.collect()
    };
    let cases = cases![
        // Four letters are too few, five to eight may have one wrong letter, more may have two.
        "200,A,,Sapin".to_owned(), "country: `Sapin` - looks like a misspelling of `Spain`";
        "200,A,,Irna".to_owned(), "country: `Irna` - is not a known country";
        "200,A,,Germny".to_owned(), "country: `Germny` - looks like a misspelling of `Germany`";
        "200,A,,Grmeny".to_owned(), "country: `Grmeny` - is not a known country";
        "200,A,Cardiolg,".to_owned(), "therapy_areas: `Cardiolg` - is not a known therapy area";
        "200,A,Cardoilgy,".to_owned(), "therapy_areas: `Cardoilgy` - looks like a misspelling of `Cardiology`";
        "200,A,Cardoilggy,".to_owned(), "therapy_areas: `Cardoilggy` - looks like a misspelling of `Cardiology`";
        "200,A,Crdoilgyy,".to_owned(), "therapy_areas: `Crdoilgyy` - is not a known therapy area";
        odd(1), "therapy_areas: `Nephrolgy` - looks like a misspelling of `Nephrology` (1 row)";
        odd(2), "therapy_areas: `Nephrolgy` - is not a known therapy area (2 rows, the first is here)";
    ];
    for (rows, expected) in cases {
        let columns = "id,name,therapy_areas,country";
        let warnings = warnings_after(&licensed_database(), columns, &[&rows]);
        assert_warned(&rows, &warnings, [expected]);
    }
}

#[test]
fn three_licenses_are_named_and_more_are_counted() {
    let names = ["acme", "beta", "gamma", "delta", "epsilon"];
    let expected = words![
        "(acme)" "(acme, beta)" "(acme, beta, gamma)" "(acme, beta, delta and 1 more)" "and 2 more)"
    ];
    for (count, expected) in (1..).zip(expected) {
        let database = licensed_database();
        database.edit(|edit| edit.remove_license("heart").unwrap());
        for name in &names[..count] {
            license(&database, name, "Oncology");
        }
        let warnings = warnings_after(&database, "id,name,therapy_areas", &["200,A,oncology"]);
        assert_warned(expected, &warnings, [expected]);
    }
}

#[test]
fn words_in_any_set_of_a_license_count() {
    let database = licensed_database();
    // Several sets, of which the words of the countries are the second.
    let acme = Scope {
        countries: Some(["Östland".to_owned()].into()),
        ..scope("Oncology")
    };
    database.edit(|edit| edit.set_license("acme", acme, None).unwrap());
    let cases = cases![
        "200,A,Oncology,Ostland",
            "country: `Ostland` - is another spelling of `Östland` (1 row); licenses that name the right one (acme)";
        "200,A,oncology,France",
            "therapy_areas: `oncology` - is another spelling of `Oncology` (1 row); licenses that name the right one (acme)";
        "200,A,Oncology,Atlantis",
            "`Atlantis` - is not a known country (1 row); no license names it, so licenses with other ones (acme) do not match it";
    ];
    for (rows, expected) in cases {
        let warnings = warnings_after(&database, "id,name,therapy_areas,country", &[rows]);
        assert_warned(rows, &warnings, [expected]);
        let files = "# conferences.jsonl\n{\"id\":200,\"deleted\":true}\n";
        store(&database, files);
    }
}

#[test]
fn records_of_two_datasets_with_one_id_are_two_records() {
    // Conference 30 is imported, and journal 30 is in the database; then conference 101 and a journal of that id.
    let conference = |id: u64, name: &str| {
        format!(
            "# conferences.jsonl\n{{\"id\":{id},\"name\":\"{name}\",\"year\":2026,{STATUSES}}}\n"
        )
    };
    let journal =
        |id: u64, name: &str| format!("# journals.jsonl\n{{\"id\":{id},\"name\":\"{name}\"}}\n");
    let cases = cases![
        conference(30, "A") + &journal(40, "the Lancet."), "is also the name of journal 30 in the database";
        journal(101, "J") + &conference(200, "congress 101"), "is also the name of conference 101 in the database";
        conference(30, "The Lancet"), "";
        journal(101, "Congress 101"), "";
    ];
    for (files, expected) in cases {
        let merged = imported(&licensed_database(), &files);
        assert_warned(&files, &warnings(&merged), any(expected));
    }
}

/// Returns the findings of the last of several imports, and those of lint after it. Each file has a line
/// `# conferences.csv` or similar.
fn findings(files: &[&str]) -> (Vec<Finding>, Vec<Finding>) {
    let database = sample_database();
    let mut found = Vec::new();
    for file in files {
        let merged = imported(&database, file);
        found = merged.warnings.kept().to_vec();
        apply(&database, merged.batch);
    }
    let stored = crate::import::lint::lint_database(&database.state()).unwrap();
    (found, stored.kept().to_vec())
}

#[test]
fn an_import_reports_what_lint_finds_afterwards() {
    let rows = "1,Meeting number 1 of hearts,UK\n2,Meeting number 2 of hearts,UK\n3,Meeting number 3 of hearts,UK\n\
         4,Meeting number 4 of hearts,UK\n5,Meeting number 5 of hearts,UK\n6,Sixth event of lungs,United Kingdom\n\
         7,Seventh event,Japan";
    let first = conferences_csv("id,name,country", rows);
    for (second, line) in [
        ("7,United Kingdom", 2),
        ("1,UK\n7,United Kingdom\n2,UK", 3),
        ("1,United Kingdom", 2),
    ] {
        let second = format!("# conferences.csv\nid,country\n{second}\n");
        let (found, stored) = findings(&[&first, &second]);
        let of_country = |finding: &&Finding| finding.field.as_deref() == Some("country");
        let afterwards: Vec<&Finding> = stored.iter().filter(of_country).collect();
        let ([found], [afterwards]) = (&found[..], &afterwards[..]) else {
            panic!("{found:?} {stored:?}");
        };
        assert_eq!(found.line, Some(line), "{found:?}");
        let expected = (afterwards.rule, &afterwards.value);
        assert_eq!((found.rule, &found.value), expected);
        let of_two = afterwards
            .message
            .replace(" (2 rows, the first is here)", "");
        assert_eq!(of_two, found.message.replace(" (1 row)", ""));
    }
    // The second import sets no country.
    let (found, _) = findings(&[&first, "# conferences.csv\nid,city\n6,London\n"]);
    assert_eq!(found, []);
}

#[test]
fn no_spelling_with_brackets_is_recommended() {
    let areas =
        words!["[Cardiology]" "[Balneology]" "[Balneology]" "Balneology." "Oncology;[Hydrology]"];
    let rows: String = (1..)
        .zip(areas)
        .map(|(id, area)| {
            let area = serde_json::to_string(area).unwrap();
            format!("{{\"id\":{id},\"name\":\"C{id}\",\"therapy_areas\":[{area}],{STATUSES}}}\n")
        })
        .collect();
    let (found, _) = findings(&[&format!("# conferences.jsonl\n{rows}")]);
    let messages = found
        .iter()
        .map(|found| format!("{} {}", found.line.unwrap(), found.message));
    let messages: Vec<String> = messages.collect();
    let expected = [
        "1 is another spelling of `Cardiology`",
        "2 is another spelling of `Balneology.` (2 rows",
        "5 lists several in one text: `Oncology`, `Hydrology`",
    ];
    assert_warned(&rows, &messages, expected);
}

#[test]
fn journals_with_different_issns_may_share_a_name() {
    let cases = cases![
        "1,A,0028-4793,\n2,A,0140-6736,", "";
        "1,A,0028-4793,\n2,A,,0140-6736", "";
        "1,A,0028-4793,\n2,A,,", "3 same_name";
        "1,A,,\n2,A,,", "3 same_name";
        // An invalid ISSN distinguishes no journals.
        "1,A,0028-4793,\n2,A,0140-6737,", "3 issn_check_digit 3 same_name";
        "1,A,0028-4793,\n2,B,,0028-4793", "3 issn_twice";
        "1,A,0028-4793,\n2,A,0140-6736,0028-4793", "3 issn_twice";
        // Print and online edition of one journal.
        "1,A,0028-4793,0028-4793", "";
        "1,A,0028-4793,0028-4793\n2,B,0028-4793,", "3 issn_twice";
        "1,A,0000-0000,\n2,B,9999-9994,\n3,C,0000-0000,", "2 placeholder 3 placeholder 4 placeholder";
        "1,A,0028-4793,\n2,A,0140-6736,\n3,A,,", "4 same_name";
    ];
    for (rows, expected) in cases {
        let file = format!("# journals.csv\nid,name,issn_print,issn_online\n{rows}\n");
        let (found, stored) = findings(&[&file]);
        assert_eq!(rules(&found), expected, "{rows}");
        assert_eq!(stored.len(), found.len(), "{rows}: {stored:?}");
        for found in found.iter().filter(|found| found.rule == Some("same_name")) {
            assert!(!found.message.contains("remove"), "{found:?}");
        }
    }
}

#[test]
fn values_with_one_right_value_are_corrected() {
    let conference = |columns: &str, rows: &str| conferences_csv(&format!("id,{columns}"), rows);
    let journals = |columns: &str, rows: &str| format!("# journals.csv\nid,{columns}\n{rows}\n");
    let areas: String = (10..15)
        .map(|id| format!("{id},C{id},Cardiology\n"))
        .collect();
    let cases = cases![
        journals("name", "40,Heart &amp; Lung"), "2 name `Heart &amp; Lung` -> `Heart & Lung`", "";
        journals("name", "40,Heart &amp;amp; Lung "), "2 name `Heart &amp;amp; Lung ` -> `Heart & Lung`", "";
        journals("name", "40,SociÃ©tÃ© "), "2 name `SociÃ©tÃ© ` -> `Société`", "";
        journals("name,url", "40,A,N/A"), "2 url `N/A` -> null", "";
        journals("name", "40,TBD"), "", "2 placeholder";
        // A valid ISSN is stored in its usual form even without a fix.
        journals("name,issn_print", "40,A,0028–4793"), "", "";
        journals("name,issn_print", "40,A,0028–4794"), "", "2 issn_form 2 issn_check_digit";
        journals("name,issn_print", "40,A,0000-0000"), "2 issn_print `0000-0000` -> null", "";
        conference("name,city", "40,A,TBD"), "2 city `TBD` -> null", "";
        conference("name,country", "40,A,Schweiz"), "", "";
        conference("name,country", "40,A,Germany\n41,B, germany"), "3 country ` germany` -> `Germany`", "";
        conference("name,country", "40,A,Germny"), "", "2 country_spelling";
        conference("name,country", "40,A,United States\n41,B,U.S.A.\n42,C,United States"),
            "3 country `U.S.A.` -> `United States`", "";
        // Neither is the usual name, so both are left.
        conference("name,country", "40,A,Österreich\n41,B,Osterreich\n42,C,AUT"), "",
            "3 country_spelling 4 country_spelling";
        // Namibia.
        conference("name,country", "40,A,NA\n41,B,None"), "3 country `None` -> null", "2 country_unknown";
        conference("name,city", "40,A,Nan\n41,B,None\n42,C,Nil\n43,D,Na\n44,E,N/A\n45,F,nan"),
            "6 city `N/A` -> null", "7 placeholder";
        conference("name,city", "40,A,Rom&#x202E;e\n41,B,Par\u{2067}is\n42,C,Bonn&amp;#8203; \n43,D,&amp;#x7f;Ulm"),
            "2 city `Rom&#x202E;e` -> `Rome` 3 city `Par\u{2067}is` -> `Paris` 4 city `Bonn&amp;#8203; ` -> `Bonn`",
            "5 html_escape";
        conference("name,city", "40,A, Z\u{7f}rich\n41,B,Men\u{19}s"),
            "2 city ` Z\u{7f}rich` -> `Z\u{7f}rich`", "2 wrong_encoding 3 wrong_encoding";
        conference("name,city", "40,A,CittÃ di Castello"), "", "2 wrong_encoding";
        conference("name,country", "40,A,Atlantis\n41,B,France\n42,C,Spain"), "", "2 country_unknown";
        conference("name,therapy_areas", &(areas.clone() + "40,A,cardiology; Oncolgy; N/A")),
            "7 therapy_areas `N/A` -> null 7 therapy_areas `cardiology` -> `Cardiology`", "7 area_spelling";
        // Similar words that exist.
        conference("name,therapy_areas", "40,A,Otology\n41,B,Phoniatrics\n42,C,Haematology\n43,D,Hematology"),
            "4 therapy_areas `Haematology` -> `Hematology`", "";
        conference("name,therapy_areas", "40,A,Epizoology\n41,B,Hygiology"), "", "3 area_spelling";
        conference("name,therapy_areas", &(areas.clone() + "40,A,Radionomy\n41,B,HIV+\n42,C,HIV")), "",
            "7 area_spelling";
        // medfeed does not know the word, so only case and blanks are corrected.
        conference("name,therapy_areas", "40,A,Balneología\n41,B,balneología \n42,C,Balneologia\n43,D,Balneología"),
            "3 therapy_areas `balneología ` -> `Balneología`", "4 area_spelling";
        conference("name,therapy_areas", "40,A,\"Oncology, Cardiology\""), "", "2 area_list";
        // medfeed knows neither of the two words, so none is corrected.
        conference("name,therapy_areas", "40,A,Balneology\n41,B,Balneology\n42,C,Balneologgy"), "", "4 area_spelling";
    ];
    for (file, expected, left) in cases {
        let merged = run(&sample_database(), &file, fixing()).unwrap();
        let shown = |fix: &Finding| {
            let to = match fix.to.as_ref().and_then(Value::as_str) {
                None => "null".to_owned(),
                Some(to) => format!("`{to}`"),
            };
            let (field, value) = (fix.field.as_ref().unwrap(), fix.value.as_ref().unwrap());
            format!("{} {field} `{value}` -> {to}", fix.line.unwrap())
        };
        let fixes: Vec<String> = merged.fixes.kept().iter().map(shown).collect();
        assert_eq!(fixes.join(" "), expected, "{file}");
        let warnings = &merged.warnings;
        assert_eq!(rules(warnings.kept()), left, "{file}: {warnings:?}");
        // The corrected values are stored. Lint finds the other mistakes in them.
        let database = sample_database();
        apply(&database, merged.batch);
        let stored = crate::import::lint::lint_database(&database.state()).unwrap();
        assert_eq!(stored.total(), warnings.total(), "{file}: {stored:?}");
        // Without the option, nothing is corrected.
        let merged = imported(&sample_database(), &file);
        assert_eq!(merged.fixes.kept(), [], "{file}");
    }
}

#[test]
fn only_the_word_of_a_license_is_written_for_another_spelling() {
    let database = licensed_database();
    for (name, area) in cases![
        "kidney", "Néphrologie";
        "blood", "Haematology";
        "one", "Paediatrics";
        "other", "Pediatrics";
    ] {
        license(&database, name, area);
    }
    let cases = cases![
        "200,A,NEPHROLOGIE", vec!["Néphrologie"];
        // A similar word is none, whoever names the other.
        "200,A,Neuphrologie", vec![];
        "200,A,Cardiolog\n201,B,Cardiolog", vec![];
        // More records have the other one.
        "200,A,Hematology", vec!["Haematology"];
        // Both spellings are in licenses, and show the record to one of them.
        "200,A,pediatrics", vec![];
        "200,A,Paediatrics\n201,B,Pediatrics\n202,C,Pediatrics", vec![];
        // Most records have another spelling, which no license names.
        "200,A,Balneologiá\n201,B,Balneologia\n202,C,Balneologia", vec![];
    ];
    for (rows, expected) in cases {
        let file = conferences_csv("id,name,therapy_areas", rows);
        let merged = run(&database, &file, fixing()).unwrap();
        let written = merged.fixes.kept().iter();
        let written: Vec<&str> = written
            .filter_map(|fix| fix.to.as_ref()?.as_str())
            .collect();
        assert_eq!(written, expected, "{rows}");
        assert_eq!(merged.warnings.is_empty(), !expected.is_empty(), "{rows}");
    }
}

#[test]
fn only_values_of_the_row_are_corrected() {
    let rows = "1,A &amp; B, Paris,U.S.\n2,C,Bonn,United States";
    let stored = conferences_csv("id,name,city,country", rows);
    let cases = [
        ("id,venue\n1,Hall ", vec!["venue"]),
        ("id,country\n1,U.S.", vec!["country"]),
        ("id,name,city\n1,A &amp; B, Paris", vec!["name", "city"]),
    ];
    for (rows, expected) in cases {
        let database = sample_database();
        store(&database, &stored);
        let file = format!("# conferences.csv\n{rows}\n");
        let merged = run(&database, &file, fixing()).unwrap();
        let fixes = merged.fixes.kept().iter();
        let fields: Vec<&str> = fixes.filter_map(|fix| fix.field.as_deref()).collect();
        assert_eq!(fields, expected, "{rows}");
        assert_eq!(merged.warnings.kept(), [], "{rows}");
    }
}
