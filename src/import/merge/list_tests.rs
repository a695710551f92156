//! Lists of others: what a row may change (docs/recipes.md).

use std::fs;

use super::tests::{TestDatabase, apply, run};
use super::*;
use crate::import::{Source, SourceOptions, read_recipe, read_sources};
use crate::model::RecordFields;

/// Returns a database with the rows of files. In `files`, a line `# name` starts the file with that name.
fn stored(files: &str) -> TestDatabase {
    let database = TestDatabase::new();
    let merged = run(&database, files, MergeOptions::default()).unwrap();
    apply(&database, merged.batch);
    database
}

/// Merges a file as a recipe says.
fn import(database: &TestDatabase, recipe: &str, name: &str, text: &str) -> Result<Merged, String> {
    let folder = tempfile::tempdir().unwrap();
    let (recipe_path, path) = (folder.path().join("r.toml"), folder.path().join(name));
    fs::write(&recipe_path, recipe).unwrap();
    fs::write(&path, text).unwrap();
    let without_folder = |text: String| text.replace(&format!("{}/", folder.path().display()), "");
    let (options, kind) = read_recipe(&recipe_path).map_err(|error| error.to_string())?;
    options
        .check()
        .map_err(|error| without_folder(error.to_string()))?;
    let options_of_source = SourceOptions { kind, format: None };
    let sources = Source::find(&[path], options_of_source).map_err(|error| error.to_string())?;
    let kinds = sources.iter().map(|source| source.kind);
    options
        .check_list(kinds)
        .map_err(|error| error.to_string())?;
    let rows = read_sources(&sources, &options).unwrap();
    let merged = merge(rows, &database.state(), &MergeOptions::default());
    merged.map_err(|refusal| without_folder(refusal.to_string()))
}

/// Returns the records of a dataset: `1 name=A year=2026`, without empty values and without the fields `hidden`.
fn shown<F: RecordFields>(database: &TestDatabase, hidden: &[&str]) -> String {
    let mut lines = Vec::new();
    let state = database.state();
    let read = state.for_each_record::<F, StoreError>(|record, _, _| {
        let mut line = record.id().to_string();
        for (field, value) in F::table().fields.iter().zip(record.fields().values()) {
            if value.is_null() || hidden.contains(&field.column.as_str()) {
                continue;
            }
            let text = match value.ids() {
                [] => value.to_csv(&()).into_owned(),
                ids => ids
                    .iter()
                    .map(ToString::to_string)
                    .collect::<Vec<_>>()
                    .join("+"),
            };
            line.push_str(&format!(" {}={text}", field.column));
        }
        lines.push(line);
        Ok(())
    });
    read.unwrap();
    lines.join("\n")
}

/// Returns the counts that are not 0, and the warnings.
fn effects(merged: &Merged) -> String {
    let ListCounts {
        unknown,
        left_out,
        respelled,
        kept,
        cleared,
        removed_items,
        ..
    } = merged.counts;
    let counts = [
        ("unknown", unknown),
        ("left_out", left_out),
        ("respelled", respelled),
        ("kept", kept),
        ("cleared", cleared),
        ("removed_items", removed_items),
    ];
    let counts = counts.iter().filter(|(_, count)| *count > 0);
    let mut lines: Vec<String> = counts
        .map(|(name, count)| format!("{name} {count}"))
        .collect();
    // A location begins with the path of a temporary folder.
    let first_part = |found: &Finding| found.message.split(" at /").next().map(str::to_owned);
    lines.extend(merged.warnings.kept().iter().filter_map(first_part));
    lines.join("; ")
}

/// One import of a list: what it is about, the lines of its recipe after `match`, the list, the rows stored afterwards,
/// and the effects.
type Case = (
    &'static str,
    &'static str,
    &'static str,
    &'static str,
    &'static str,
);

/// Imports each list into the stored rows, twice. The second import changes nothing. A record that a case does not name
/// is as it was: the first two are `unchanged`.
fn check<F: RecordFields>(
    files: &str,
    matching: &str,
    hidden: &[&str],
    unchanged: [&str; 2],
    cases: &[Case],
) {
    for (about, recipe, list, expected, expected_effects) in cases {
        let database = stored(files);
        let recipe = format!("match = {matching}\n{recipe}");
        let ending = if list.starts_with('{') {
            "jsonl"
        } else {
            "csv"
        };
        let name = format!("{}.{ending}", F::STEM);
        match import(&database, &recipe, &name, list) {
            Err(refusal) => {
                assert!(!expected_effects.is_empty(), "{about}: {refusal}");
                assert!(refusal.contains(expected_effects), "{about}: {refusal}");
                continue;
            }
            Ok(merged) => {
                assert_eq!(effects(&merged), *expected_effects, "{about}");
                apply(&database, merged.batch);
            }
        }
        let mut lines: Vec<&str> = expected.split('\n').collect();
        for (at, (line, id)) in unchanged.into_iter().zip(["1 ", "2 "]).enumerate() {
            let is_named = lines.iter().any(|line| line.starts_with(id));
            let is_gone = at == 0 && about.starts_with("deleted");
            if !is_named && !is_gone {
                lines.insert(at, line);
            }
        }
        let after = shown::<F>(&database, hidden);
        assert_eq!(after, lines.join("\n"), "{about}");
        let again = import(&database, &recipe, &name, list).unwrap();
        apply(&database, again.batch);
        let shown = shown::<F>(&database, hidden);
        assert_eq!(shown, after, "{about}, a second time");
        let counts = again.counts;
        assert_eq!(
            counts.cleared + counts.removed_items,
            0,
            "{about}: {counts:?}"
        );
        assert_eq!(again.assigned, [], "{about}, a second time");
    }
}

const JOURNALS: &str = "# organizations.csv
    id,name,abbv,type,url
    1,Heart Society,HS,society,https://hs.example
    2,Lung Society,,,
    # tags.csv
    id,type,name
    1,Topic,Lung
    # journals.csv
    id,name,issn_print,issn_online,publisher,impact_factor,impact_factor_year,organizations,tags
    1,Landscape Notes,,1865-1542,Alpha Press,2,2023,Heart Society,Topic: Lung
    2,Cardio Letters,0028-4793,1533-4406,Beta Press,3,2023,,
    ";

#[test]
fn rows_of_a_list_change_what_they_know() {
    let second = "2 name=Cardio Letters issn_print=0028-4793 issn_online=1533-4406 publisher=Beta Press impact_factor=3.0 \
                  impact_factor_year=2023";
    let cases = cases![
        "values that differ are taken, others stay; an ISSN stays in its field; empty cells keep",
            "empty = [\"N/A\"]\n[columns]\nJournal = \"name\"\nISSN = \"issn_print\"\neISSN = \"issn_online\"\nPublisher = \
                \"publisher\"\nJIF = \"impact_factor\"\n[set]\nimpact_factor_year = 2024",
            "Journal,ISSN,eISSN,Publisher,JIF\nLANDSCAPE NOTES,1865-1542,N/A,,2.1\nCARDIO LETTERS,0028-4793,N/A,N/A,3.2\n",
            "1 name=Landscape Notes issn_online=1865-1542 publisher=Alpha Press impact_factor=2.1 impact_factor_year=2024 \
                organizations=1 tags=1\n2 name=Cardio Letters issn_print=0028-4793 issn_online=1533-4406 publisher=Beta Press \
                impact_factor=3.2 impact_factor_year=2024", "kept 3";
        "equal but for spelling", "", "issn_print,name,publisher\n0028-4793,CARDIO-LETTERS,beta  press\n", second,
            "respelled 1";
        "equal but for damage, also where update takes the spelling", "update = [\"name\", \"publisher\"]",
            "issn_print,name,publisher\n0028-4793,Cardio&nbsp;Letters,Beta &#80;ress\n", second, "respelled 1";
        "update takes the spelling, and only its fields", "update = [\"name\"]",
            "issn_print,name,publisher\n0028-4793,CARDIO LETTERS,Other\n",
            "2 name=CARDIO LETTERS issn_print=0028-4793 issn_online=1533-4406 publisher=Beta Press impact_factor=3.0 \
                impact_factor_year=2023", "";
        "clear", "clear = [\"publisher\"]", "issn_print,name,publisher,impact_factor\n0028-4793,,,\n",
            "2 name=Cardio Letters issn_print=0028-4793 issn_online=1533-4406 impact_factor=3.0 impact_factor_year=2023",
            "kept 2; cleared 1";
        "only known journals, and only their metric",
            "new = false\nupdate = [\"impact_factor\"]\n[columns]\nJournal = \"name\"\nISSN = \"issn_print\"\nJIF = \"impact_factor\"",
            "Journal,ISSN,JIF\nCARDIO LETTERS,0028-4793,3.2\nUNKNOWN LETTERS,1666-6046,1.2\n",
            "2 name=Cardio Letters issn_print=0028-4793 issn_online=1533-4406 publisher=Beta Press impact_factor=3.2",
            "unknown 1; left_out 1; cleared 1";
        "a year without a metric labels no stored one", "[set]\nimpact_factor_year = 2024",
            "issn_print,impact_factor,name\n0028-4793,,\n1666-6046,,New\n",
            "2 name=Cardio Letters issn_print=0028-4793 issn_online=1533-4406 publisher=Beta Press impact_factor=3.0 \
                impact_factor_year=2023\n3 name=New issn_print=1666-6046", "unknown 1; kept 2";
        "an equal metric of a new report gets its year", "[set]\nimpact_factor_year = 2024",
            "issn_print,impact_factor\n0028-4793,3\n",
            "2 name=Cardio Letters issn_print=0028-4793 issn_online=1533-4406 publisher=Beta Press impact_factor=3.0 \
                impact_factor_year=2024", "";
        "constants fill empty fields of known records", "[set]\nurl = \"https://a.example\"\npublisher = \"Constant\"",
            "issn_print,name\n0028-4793,Cardio Letters\n",
            "2 name=Cardio Letters issn_print=0028-4793 issn_online=1533-4406 publisher=Beta Press url=https://a.example \
                impact_factor=3.0 impact_factor_year=2023", "";
        "links are added, found in any spelling; an empty cell keeps them", "",
            "issn_online,organizations,tags\n1865-1542,LUNG society,\n",
            "1 name=Landscape Notes issn_online=1865-1542 publisher=Alpha Press impact_factor=2.0 impact_factor_year=2023 \
                organizations=1+2 tags=1", "kept 1";
        "update replaces links", "update = [\"organizations\"]", "issn_online,organizations\n1865-1542,Lung Society\n",
            "1 name=Landscape Notes issn_online=1865-1542 publisher=Alpha Press impact_factor=2.0 impact_factor_year=2023 \
                organizations=2 tags=1", "removed_items 1";
        "links that update does not name are not even looked up", "update = [\"publisher\"]",
            "issn_online,organizations,publisher\n1865-1542,Unknown,Gamma\n",
            "1 name=Landscape Notes issn_online=1865-1542 publisher=Gamma impact_factor=2.0 impact_factor_year=2023 \
                organizations=1 tags=1", "";
        "a text that is no ISSN replaces none", "", "name,issn_print,issn_online\nCardio Letters,see website,none\n",
            second, "kept 2";
        "the id of a record, in a list of others", "", "id,name,issn_print,publisher\n2,,1050-124X,\n",
            "2 name=Cardio Letters issn_print=1050-124X issn_online=1533-4406 publisher=Beta Press impact_factor=3.0 \
                impact_factor_year=2023", "kept 2";
        "a row without an id next to one with it", "",
            "id,name,issn_print\n,Cardio Letters,0028-4793\n5,Beta Archives,1050-124X\n",
            "2 name=Cardio Letters issn_print=0028-4793 issn_online=1533-4406 publisher=Beta Press impact_factor=3.0 \
                impact_factor_year=2023\n5 name=Beta Archives issn_print=1050-124X", "unknown 1";
        "with new = false, an id without a record is left out", "new = false", "id,name,issn_print\n9,Zeta,1050-124X\n",
            second, "unknown 1; left_out 1";
        "so are the faults of rows that are left out", "new = false",
            "id,issn_print,name,impact_factor\n,1666-6046,New,much\n9,1050-124X,Zeta,much\n,0028-4793,Cardio Letters,3\n",
            second, "unknown 2; left_out 2";
        "a fault of a known row stays one", "new = false", "issn_print,impact_factor\n0028-4793,much\n", "",
            "journals.csv:2: impact_factor: `much`";
        "an object of a list keeps the members that are null", "",
            "{\"issn_online\":\"1865-1542\",\"organizations\":[{\"id\":1,\"name\":\"HEART SOCIETY\",\"abbv\":null,\"type\":null,\"url\":null}]}\n",
            "1 name=Landscape Notes issn_online=1865-1542 publisher=Alpha Press impact_factor=2.0 impact_factor_year=2023 \
                organizations=1 tags=1", "kept 3";
        "deleted removes what it finds, and unknown ones are counted", "",
            "name,deleted\nLandscape Notes,TRUE\nNowhere,TRUE\n", second, "unknown 1";
        "two rows that mean one record", "", "name,issn_print,publisher\nA,0028-4793,X\nB,0028-4793,Y\n", "",
            "journals.csv:2: means the same journal as the row at journals.csv:3: both have `issn` `0028-4793`, but their \
                      `name`, `publisher` differ; keep one of them, correct one, or match by `name` too\njournals.csv:3: means the \
                      same journal as the row at journals.csv:2";
        "rows that differ only in spelling are the first one", "",
            "name,issn_print,publisher\nNew Heart,1666-6046,House\nNEW  HEART,1666-6046,HOUSE\n",
            "2 name=Cardio Letters issn_print=0028-4793 issn_online=1533-4406 publisher=Beta Press impact_factor=3.0 \
                impact_factor_year=2023\n3 name=New Heart issn_print=1666-6046 publisher=House",
            "unknown 1; differs from the row";
        "a row that lacks a value names its field", "", "name,publisher\nNew Heart,House\nNEW HEART,\n", "",
            "both have `name` `New Heart`, but their `publisher` differ";
        "a valid ISSN that contradicts the record's", "", "name,issn_print\nCardio Letters,1050-124X\n", "",
            "but its ISSN is 0028-4793 and the row has 1050-124X; write 2 as the id";
        "with new = false it is left out", "new = false", "name,issn_print\nCardio Letters,1050-124X\n", second,
            "left_out 1";
        "an ISSN joins a record that its name found", "", "name,issn_print,issn_online\nLandscape Notes,1050-124X,\n",
            "1 name=Landscape Notes issn_print=1050-124X issn_online=1865-1542 publisher=Alpha Press impact_factor=2.0 \
                impact_factor_year=2023 organizations=1 tags=1",
            "kept 1; 1050-124X joins a record that was found by other fields; check that it is the same journal";
        "next to an ISSN that both have, in the empty field", "",
            "name,issn_print,issn_online\nLandscape Notes,1865-1542,1050-124X\n",
            "1 name=Landscape Notes issn_print=1050-124X issn_online=1865-1542 publisher=Alpha Press impact_factor=2.0 \
                impact_factor_year=2023 organizations=1 tags=1", "";
        "blanks and words identify no journal", "", "issn_print,issn_online\n0,|\n", "",
            "fill them in; only a valid ISSN counts";
        "clear names what update does not", "update = [\"name\"]\nclear = [\"url\"]", "name,url\nCardio Letters,\n", "",
            "r.toml:3: `url` is cleared only if `update` names it";
        "an unknown field", "update = [\"impact\"]", "name\nCardio Letters\n", "",
            "r.toml:2: there is no field `impact`";
    ];
    let first = "1 name=Landscape Notes issn_online=1865-1542 publisher=Alpha Press impact_factor=2.0 impact_factor_year=2023 \
                 organizations=1 tags=1";
    check::<JournalFields>(
        JOURNALS,
        "[[\"issn\"], [\"name\"]]",
        &[],
        [first, second],
        &cases,
    );
}

const MEETINGS: &str = "# conferences.csv
    id,name,year,start_date,start_date_status,end_date,country,therapy_areas,abstract_due_date,abstract_due_date_status,late_breaking_due_date_status
    1,Spring Lung Meeting,2026,2026-06-12,confirmed,2026-06-15,United States,Oncology,2026-01-10,confirmed,check
    2,Heart Days,2026,2026-05-03,estimated,2026-05-05,Austria,Cardiology,,not_found,check
    ";

const SETS: &str = "[[\"name\", \"start_date\"], [\"name\", \"year\"]]";

const CHECKS: &str = "[set]\nstart_date_status = \"check\"\nabstract_due_date_status = \"check\"\nlate_breaking_due_date_status = \"check\"\n";

#[test]
fn fields_that_belong_together_are_taken_together() {
    let first = "1 year=2026 start_date=2026-06-12 start_date_status=confirmed end_date=2026-06-15 abstract_due_date=2026-01-10 \
                 abstract_due_date_status=confirmed country=United States therapy_areas=Oncology";
    let second = "2 year=2026 start_date=2026-05-03 start_date_status=estimated end_date=2026-05-05 abstract_due_date_status=not_found \
                  country=Austria therapy_areas=Cardiology";
    let moved = "1 year=2026 start_date=2026-06-19 start_date_status=check end_date=2026-06-22 abstract_due_date=2026-01-10 \
                 abstract_due_date_status=confirmed country=United States therapy_areas=Oncology";
    let cases = cases![
        "the constant status of a draft does not touch a confirmed date", CHECKS,
            "name,start_date,end_date,year\nSpring Lung Meeting,2026-06-12,2026-06-15,2026\n", first, "";
        "a moved date is a change, and checked", CHECKS,
            "name,start_date,end_date,year\nSpring Lung Meeting,2026-06-19,2026-06-22,2026\nHeart Days,2026-05-03,2026-05-05,2026\n",
            moved, "";
        "a start without an end keeps the length", "", "name,start_date,year\nSpring Lung Meeting,2026-06-19,2026\n",
            moved, "the row has no end, so the meeting keeps its length, and ends on 2026-06-22";
        "a date that moves far is asked about", "",
            "name,start_date,end_date,year\nSpring Lung Meeting,2026-09-12,2026-09-15,2026\n",
            "1 year=2026 start_date=2026-09-12 start_date_status=check end_date=2026-09-15 abstract_due_date=2026-01-10 \
                abstract_due_date_status=confirmed country=United States therapy_areas=Oncology",
            "moves from 2026-06-12 to 2026-09-12, by 92 days; is it the same meeting? If not, give the row an id, or match \
                      by start_date";
        "another spelling of an item removes none", "update = [\"therapy_areas\"]",
            "name,start_date,year,therapy_areas\nHeart Days,2026-05-03,2026,CARDIOLOGY\n",
            "2 year=2026 start_date=2026-05-03 start_date_status=estimated end_date=2026-05-05 \
                abstract_due_date_status=not_found country=Austria therapy_areas=CARDIOLOGY",
            "is another spelling of `Cardiology` (1 row); licenses and filters treat them as different; write `Cardiology`";
        "with new = false, a fault that hides which record it is stays one", "new = false",
            "name,start_date,year\nNew,2026-13-45,2026\n", "", "conferences.csv:2: start_date: `2026-13-45`";
        "not_found next to an empty date erases none", "",
            "name,year,start_date,start_date_status,abstract_due_date,abstract_due_date_status\nSpring Lung Meeting,2026,,not_found,,not_found\n",
            first, "kept 2";
        "a status of a known date is taken", "",
            "name,year,start_date,start_date_status\nHeart Days,2026,2026-05-03,Confirmed\n",
            "2 year=2026 start_date=2026-05-03 start_date_status=confirmed end_date=2026-05-05 abstract_due_date_status=not_found \
                country=Austria therapy_areas=Cardiology", "";
        "a first date without a status is checked", "", "name,year,abstract_due_date\nHeart Days,2026,2026-01-20\n",
            "2 year=2026 start_date=2026-05-03 start_date_status=estimated end_date=2026-05-05 abstract_due_date=2026-01-20 \
                abstract_due_date_status=check country=Austria therapy_areas=Cardiology", "";
        "clear empties a date with its end, and the status is to be checked", "clear = [\"start_date\"]",
            "name,year,start_date\nHeart Days,2026,\n",
            "2 year=2026 start_date_status=check abstract_due_date_status=not_found country=Austria therapy_areas=Cardiology",
            "cleared 2";
        "areas are added, and names of one country are one", "",
            "name,year,therapy_areas,country\nSpring Lung Meeting,2026,oncology; Neurology,USA\n",
            "1 year=2026 start_date=2026-06-12 start_date_status=confirmed end_date=2026-06-15 abstract_due_date=2026-01-10 \
                abstract_due_date_status=confirmed country=United States therapy_areas=Neurology; Oncology", "";
        "update replaces areas", "update = [\"therapy_areas\"]",
            "name,year,therapy_areas\nSpring Lung Meeting,2026,Neurology\n",
            "1 year=2026 start_date=2026-06-12 start_date_status=confirmed end_date=2026-06-15 abstract_due_date=2026-01-10 \
                abstract_due_date_status=confirmed country=United States therapy_areas=Neurology",
            "removed_items 1";
        "a second meeting of the name in the year is new, if the first one is found by its date", CHECKS,
            "name,start_date,year\nSpring Lung Meeting,2026-06-12,2026\nSpring Lung Meeting,2026-11-02,2026\n",
            "1 year=2026 start_date=2026-06-12 start_date_status=confirmed end_date=2026-06-15 abstract_due_date=2026-01-10 \
                abstract_due_date_status=confirmed country=United States therapy_areas=Oncology\n3 year=2026 start_date=2026-11-02 \
                start_date_status=check abstract_due_date_status=check",
            "unknown 1; is also the name of conference 1";
        "the year is missing", CHECKS, "name,start_date\nSpring Lung Meeting,2026-06-19\n", "",
            "the row may mean conference 1 `Spring Lung Meeting`: `name` agrees, but the row has no `year`";
    ];
    let hidden = ["name", "late_breaking_due_date_status"];
    check::<ConferenceFields>(MEETINGS, SETS, &hidden, [first, second], &cases);
}

#[test]
fn an_own_file_is_exact() {
    let cases = cases![
        // An empty cell clears, a list is the list, and a row without an id is new.
        "# journals.csv\nid,name,publisher,organizations\n1,LANDSCAPE NOTES,,Lung Society\n,Cardio Letters,Delta,\n",
            "1 name=LANDSCAPE NOTES issn_online=1865-1542 impact_factor=2.0 impact_factor_year=2023 organizations=2 tags=1\n2 name=Cardio \
             Letters issn_print=0028-4793 issn_online=1533-4406 publisher=Beta Press impact_factor=3.0 impact_factor_year=2023\n3 \
             name=Cardio Letters publisher=Delta",
            "has no id, so it is a new record; it was not compared";
        "# journals.jsonl\n{\"id\":null,\"name\":\"Other\"}\n", "3 name=Other", "has no id, so it is a new record";
    ];
    for (files, expected, warning) in cases {
        let database = stored(JOURNALS);
        let merged = run(&database, files, MergeOptions::default()).unwrap();
        let text = effects(&merged);
        assert!(text.contains(warning), "{files}: {text}");
        apply(&database, merged.batch);
        let after = shown::<JournalFields>(&database, &[]);
        assert!(after.ends_with(expected), "{files}: {after}");
    }
    let refused = [
        (
            "# journals.csv\nid,name,deleted\n,Cardio Letters,TRUE\n",
            "a row that removes a record needs its id, or --match",
        ),
        ("# journals.csv\nid,name\n,\n3,\n", "name: is required"),
        ("# journals.jsonl\n{\"name\":\"A\"}\n", "id: is missing"),
    ];
    for (files, expected) in refused {
        let refusal = run(&stored(JOURNALS), files, MergeOptions::default()).unwrap_err();
        assert!(refusal.to_string().contains(expected), "{files}: {refusal}");
    }
}

#[test]
fn organizations_that_differ_only_in_spelling_mean_one() {
    let list = "name,abbv\nheart society,A\nHEART SOCIETY,A\n";
    let refused = import(
        &stored(JOURNALS),
        "match = [[\"name\"]]",
        "organizations.csv",
        list,
    );
    let expected = "organizations.csv:2: `HEART SOCIETY` - means the same organization as the row at organizations.csv:3";
    let refusal = refused.unwrap_err();
    assert!(refusal.contains(expected), "{refusal}");
}
