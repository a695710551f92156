//! Curators' files from other sources: with the recipes of `examples/recipes`, with drafted recipes, and with options.

use std::fs;

use serde_json::{Value, json};

use super::site::{Done, STATUSES, Site, assert_contains};
use super::spreadsheets::Then::{Refused, Stored, Warned};
use super::spreadsheets::{Then, check};

const JCR: &str = "\"Journal Data Filtered By:  Selected JCR Year: 2024\"\n\n\
    Journal name,JCR Abbreviation,Publisher,ISSN,eISSN,Category,2024 JIF,% of Citable OA\n\
    \"HEART A\",HEART A,HOUSE,\"0028-4793\",\"1533-4406\",CARDIAC - SCIE,\"88.5\",\"25.18\"%,\n\
    \"HEART B\",HEART B,HOUSE,\"N/A\",\"1474-547X\",CARDIAC - SCIE,\"3.1\",\"1.45\"%,\n\n\
    Copyright (c) 2025 Example \n\
    By exporting the selected data; you agree to the terms \n";

const SJR: &str = "Rank;Sourceid;Title;Type;Issn;Publisher;SJR;H index;Country;Publisher\n\
    1;12;Heart A;journal;\"00284793, 15334406\";House;22,797;120;United States;House\n\
    2;13;\"Heart B\";journal;1474547X;\"National University \"North\"\";0,319;3;Japan;\"National University \"North\"\"\n\
    3;14;Book;book series;-;House;0,100;1;Japan;House\n";

const DOAJ: &str = "Journal title,Journal URL,Journal ISSN (print version),Journal EISSN (online version),Publisher,\
    Country of publisher,Journal license,APC,APC amount\n\
    Heart A,https://a.example.org,0028-4793,1533-4406,House,Italy,CC BY,Yes,1500 USD\n";

const PRICES: &str = "Price list 2026,,,,,\nISSN,Title,Publishing model,List price,,\n,,,USD,EUR,GBP\n\
    0028-4793,Heart A,Hybrid (Open Choice),3000,2600,2300\n1474-547X,Heart B,Open access,on request,,\n\
    0140-6736,Heart C,Subscription,N/A,,\n";

const NLM: &str = "Journal title,NLM TA,pISSN,eISSN,Publisher,LOCATORplus ID,Free access,Journal URL\n\
    Heart A,Heart A,0028-4793,1533-4406,House,101565857,Immediate,http://a.example.org/\n\
    Heart A,Heart A,0028-4793,1533-4406,House,101565857,Immediate,http://a.example.org/\n";

const MEETINGS: &str = "Meeting;Dates;Place;Website;Society 1;Society 2;Notes\n\
    Heart Days;12–15 March 2026;Rome, Italy;https://a.example.org;S1;S2;x\n\
    Lung Days;30 Sep - 2 Oct 2026;Chicago, IL, USA;;S1;;\n\
    Liver Day;5th March 2026;TBA;;;S2;\n";

/// A recipe of the examples, an invented file in the shape of its source, and the stored rows.
const RECIPES: [(&str, &str, &str, Then<'_>); 6] = cases![
    "jcr", "list.csv", JCR,
        Warned(&[r#"{"name":"HEART A","abbv":"HEART A","publisher":"HOUSE","issn_print":"0028-4793","issn_online":"1533-4406","impact_factor":88.5,"impact_factor_year":2024}"#,
            r#"{"name":"HEART B","issn_print":null,"issn_online":"1474-547X","impact_factor":3.1,"impact_factor_year":2024}"#],
            "list.csv:7, 8: is a note below the table, so it is skipped");
    "sjr", "list.csv", SJR,
        Warned(&[r#"{"name":"Heart A","issn_print":"0028-4793","issn_online":"1533-4406","sjr":22.797,"h_index":120,"publisher":"House"}"#,
            r#"{"name":"Heart B","issn_print":"1474-547X","issn_online":null,"sjr":0.319,"h_index":3,"publisher":"National University \"North\""}"#],
            "the unknown columns `Rank`, `Sourceid`, `Country` are ignored");
    "doaj", "list.csv", DOAJ,
        Warned(&[r#"{"name":"Heart A","url":"https://a.example.org","issn_print":"0028-4793","issn_online":"1533-4406","publisher":"House","publishing":{"access":"open","content_license":"CC BY"}}"#],
            "the unknown columns `Country of publisher`, `APC`, `APC amount` are ignored");
    "price-list", "list.csv", PRICES,
        Warned(&[r#"{"name":"Heart A","issn_print":"0028-4793","publishing":{"access":"hybrid","apc_usd":3000.0}}"#,
            r#"{"name":"Heart B","issn_print":"1474-547X","publishing":{"access":"open","apc_usd":null}}"#,
            r#"{"name":"Heart C","issn_print":"0140-6736","publishing":{"access":"subscription","apc_usd":null}}"#],
            "the rows above the header (line 1) are ignored");
    "nlm", "list.csv", NLM,
        Warned(&[r#"{"name":"Heart A","abbv":"Heart A","issn_print":"0028-4793","issn_online":"1533-4406","publisher":"House","url":"http://a.example.org/"}"#],
            "list.csv:3: equals the row at list.csv:2, so it counts once");
    "meetings", "list.csv", MEETINGS,
        Stored(&[r#"{"name":"Heart Days","start_date":"2026-03-12","end_date":"2026-03-15","year":2026,"city":"Rome","country":"Italy"}"#,
            r#"{"name":"Lung Days","start_date":"2026-09-30","end_date":"2026-10-02","year":2026,"city":"Chicago, IL","country":"USA"}"#,
            r#"{"name":"Liver Day","start_date":"2026-03-05","end_date":"2026-03-05","year":2026,"city":null,"country":null}"#,
            r#"{"id":1,"name":"S1"}"#, r#"{"id":2,"name":"S2"}"#]);
];

#[test]
fn recipes_of_the_examples_read_their_files() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/examples/recipes");
    for (recipe, name, content, then) in RECIPES {
        let options = format!("--recipe {folder}/{recipe}.toml");
        check(name, content.as_bytes(), &options, then);
    }
    let count = fs::read_dir(folder).unwrap().count();
    assert_eq!(count, RECIPES.len(), "each recipe is tested");
}

#[test]
fn drafted_recipes_read_their_files() {
    let cases = [
        ("journals", JCR, "HEART A|HEART B"),
        ("journals", DOAJ, "Heart A"),
        ("journals", NLM, "Heart A"),
        ("conferences", MEETINGS, "Heart Days|Lung Days|Liver Day"),
    ];
    for (kind, content, expected) in cases {
        let site = Site::new();
        site.write("list.csv", content);
        let draft = site.run(["template", kind, "--from", "list.csv"]);
        assert_eq!(draft.code, Some(0), "{draft:?}");
        site.write("list.toml", &draft.stdout);
        let done = site.run(
            "import list.csv --recipe list.toml --create --create-links --empty TBA".split(' '),
        );
        assert_eq!(done.code, Some(0), "{}: {done:?}", draft.stdout);
        site.json(["export", "out"]);
        let rows = fs::read_to_string(site.path(&format!("out/{kind}.jsonl"))).unwrap();
        let names: Vec<String> = (rows.lines())
            .map(|row| {
                serde_json::from_str::<serde_json::Value>(row).unwrap()["name"]
                    .as_str()
                    .unwrap()
                    .to_owned()
            })
            .collect();
        assert_eq!(names.join("|"), expected, "{}", draft.stdout);
    }
}

#[test]
fn a_draft_keeps_texts_that_may_be_values() {
    // The rows of a list, the texts that count as empty, and the imported cities and abbreviations.
    let cases = cases![
        "Heart Days,,None\nLung Days,n/a,-", "empty = [\"n/a\", \"-\"]", "- None|- -";
        "Heart Days,NA,Rome\nLung Days,NULL,NULL", "empty = [\"NULL\"]", "NA Rome|- -";
        "Heart Days,None,Rome\nLung Days,,Nan", "", "None Rome|- Nan";
    ];
    for (rows, empty, expected) in cases {
        let site = Site::new();
        let content = format!("Event name,Abbreviation,City\n{rows}\n");
        site.write("list.csv", content);
        let draft = site.run(["template", "conferences", "--from", "list.csv"]);
        assert!(draft.stdout.contains(empty), "{draft:?}");
        site.write("list.toml", &draft.stdout);
        let done = site.run("import list.csv --recipe list.toml --match name --create".split(' '));
        assert_eq!(done.code, Some(0), "{}: {done:?}", draft.stdout);
        site.json(["export", "out"]);
        let exported = fs::read_to_string(site.path("out/conferences.jsonl")).unwrap();
        let values: Vec<String> = (exported.lines())
            .map(|line| {
                let record: Value = serde_json::from_str(line).unwrap();
                ["abbv", "city"]
                    .map(|field| record[field].as_str().unwrap_or("-").to_owned())
                    .join(" ")
            })
            .collect();
        assert_eq!(values.join("|"), expected, "{}", draft.stdout);
    }
}

#[test]
fn only_mapped_columns_are_read_and_a_second_run_changes_nothing() {
    let site = Site::new();
    site.write("journals.csv", "id,name\n1,NEJM\n2,Lancet\n");
    site.json(["import", "journals.csv", "--create"]);
    // The ids of another list are not those of the database, and `URL` is not mapped.
    let list = "ID,Title,Publisher,URL,Kind\n1,BMJ,,https://a.example.org,Journal\n2,JAMA,AMA,,JOURNAL\n3,Book,AMA,,book\n";
    let recipe = "dataset = \"journals\"\nignore = true\nmatch = [[\"name\", \"publisher\"]]\n[columns]\n\"Title\" = \"name\"\n\
                  \"Publisher\" = \"publisher\"\n[where]\n\"Kind\" = \"journal\"\n";
    site.write("list.csv", list);
    site.write("list.toml", recipe);
    let counts = |summary: &serde_json::Value| {
        let counts = &summary["datasets"]["journals"];
        ["added", "changed", "removed", "unchanged"].map(|name| counts[name].as_u64().unwrap())
    };
    // The first row has a gap, which its record has too.
    for expected in [[2, 0, 0, 0], [0, 0, 0, 2]] {
        let summary = site.json(["import", "list.csv", "--recipe", "list.toml"]);
        assert_eq!(counts(&summary), expected, "{summary}");
    }
    site.json(["export", "out"]);
    let rows = fs::read_to_string(site.path("out/journals.jsonl")).unwrap();
    let names: Vec<String> = (rows.lines())
        .map(|row| serde_json::from_str::<serde_json::Value>(row).unwrap())
        .map(|row| {
            format!(
                "{}={}:{}",
                row["id"],
                row["name"].as_str().unwrap(),
                row["url"]
            )
        })
        .collect();
    assert_eq!(
        names,
        ["1=NEJM:null", "2=Lancet:null", "3=BMJ:null", "4=JAMA:null"]
    );
}

#[test]
fn cells_that_count_as_empty_are_counted_once() {
    let site = Site::new();
    let content = "name,Place,issn_print,tags\nA,\"Rome, N/A\",x,\nB,N/A,y,\nC,\"Rome, Italy\",N/A,N/A\nD,Online (N/A),z,\n";
    site.write("list.csv", content);
    site.write(
        "list.toml",
        "dataset = \"conferences\"\nmatch = [[\"name\"]]\nempty = [\"N/A\"]\nignore = [\"issn_print\"]\n[columns]\n\
         \"Place\" = [\"city\", \"country\"]\n[set]\nyear = 2026\nstart_date_status = \"check\"\n\
         abstract_due_date_status = \"check\"\nlate_breaking_due_date_status = \"check\"\n",
    );
    let done = site.run(["import", "list.csv", "--recipe", "list.toml", "--create"]);
    let notes = done.stderr.lines();
    let notes: Vec<&str> = notes.filter(|line| line.starts_with("note: ")).collect();
    let expected = [
        "note: city: 1 cell with `N/A` counts as empty",
        "note: country: 1 cell with `N/A` counts as empty",
        "note: tags: 1 cell with `N/A` counts as empty",
    ];
    assert_eq!(notes, expected, "{done:?}");
}

#[test]
fn a_draft_names_the_encoding() {
    let site = Site::new();
    site.write("liste.csv", &b"Titel;Verlag\nL\xe4\xe4ketiede;S\xfcd\n"[..]);
    let draft = site.run(["template", "journals", "--from", "liste.csv"]);
    draft.assert_out("encoding = \"windows-1252\"");
    site.write("liste.toml", &draft.stdout);
    let done = site.run(["import", "liste.csv", "--recipe", "liste.toml", "--create"]);
    assert_eq!(done.code, Some(0), "{done:?}");
    site.json(["export", "out"]);
    let row = fs::read_to_string(site.path("out/journals.jsonl")).unwrap();
    assert_contains(&row, "\"name\":\"Lääketiede\"");
    assert_contains(&row, "\"publisher\":\"Süd\"");
}

#[test]
fn a_column_of_a_filter_may_come_twice_and_leave_out_all_rows() {
    let site = Site::new();
    let content = "dataset = \"journals\"\n[where]\n\"Kind\" = \"journal\"\n";
    site.write("list.toml", content);
    for (kind, added) in [("book", 0), ("journal", 1)] {
        site.write("list.csv", format!("id,name,Kind,Kind\n1,NEJM,{kind},x\n"));
        let summary = site.json(["import", "list.csv", "--recipe", "list.toml", "--create"]);
        assert_eq!(summary["datasets"]["journals"]["added"], added, "{summary}");
        let text = summary["warnings"].to_string();
        assert!(!text.contains("has no rows"), "{summary}");
    }
}

/// Cases: what is stored, the file with its options, and the fields of the records after the import.
#[test]
fn rows_mean_the_records_as_they_are_after_the_run() {
    let cases: [(&str, &str, &str, &[&str]); 6] = cases![
        // A record takes the value by which a row without an id is matched.
        "journals.jsonl {\"id\":10,\"name\":\"Heart\",\"issn_print\":\"0140-6736\"}",
            "{\"id\":10,\"issn_print\":\"0028-4793\"}\n{\"name\":\"Heart\",\"issn_print\":\"0028-4793\",\"sjr\":2}",
            "--match issn", &["error: means the same journal as the row at"];
        // Another one gives its value up.
        "journals.jsonl {\"id\":10,\"name\":\"Heart\"}",
            "{\"id\":10,\"name\":\"Old Heart\"}\n{\"name\":\"Heart\"}", "--match name",
            &["Old Heart", "Heart"];
        "organizations.jsonl {\"id\":1,\"name\":\"A\"}", "{\"id\":1,\"name\":\"B\"}\n{\"name\":\"A\"}", "", &["B", "A"];
        "organizations.jsonl {\"id\":1,\"name\":\"A\"}",
            "{\"id\":1,\"deleted\":true}\n{\"name\":\"A\",\"url\":\"https://a.example.org\"}", "", &["A"];
        // A text is written as it is to be shown.
        "journals.jsonl {\"id\":1,\"name\":\"A\"}", "{\"id\":1,\"publisher\":1.10}", "",
            &["error: publisher: `1.1` - is a number; write a text in quotation marks"];
        // A constant is read like a cell.
        "journals.jsonl {\"id\":1,\"name\":\"A\"}", "{\"id\":1,\"publisher\":null}",
            "--decimal comma --set impact_factor=2,5", &["A"];
    ];
    for (stored, rows, options, expected) in cases {
        let site = Site::new();
        let (file, stored) = stored.split_once(' ').unwrap();
        site.import(file, stored);
        let path = site.write(file, rows);
        let args = ["import", path.to_str().unwrap()]
            .into_iter()
            .chain(options.split_whitespace());
        let done = site.run(args);
        if let [refused] = expected
            && let Some(message) = refused.strip_prefix("error: ")
        {
            done.assert_told(1, message);
            continue;
        }
        assert_eq!(done.code, Some(0), "{rows}: {done:?}");
        let kind = file.strip_suffix(".jsonl").unwrap();
        site.json(["export", "out"]);
        let exported = fs::read_to_string(site.path("out").join(file)).unwrap();
        let names: Vec<Value> = exported
            .lines()
            .map(|line| serde_json::from_str::<Value>(line).unwrap()["name"].clone())
            .collect();
        assert_eq!(json!(names), json!(expected), "{kind}: {rows}");
    }
}

#[test]
fn corrected_words_are_words_that_lint_accepts() {
    let cases: [(&[&str], &[&str]); 3] = cases![
        &["Germany ", "Germany ", "Germany"], &["Germany", "Germany", "Germany"];
        &["GERMANY ", "Germany", "Germany"], &["Germany", "Germany", "Germany"];
        &["ITALIA", "Italia", " ita", "Italy", "Italy", "the  Italy"], &["Italy"; 6];
    ];
    for (given, expected) in cases {
        let site = Site::new();
        let line = |(at, country): (usize, &&str)| {
            let id = at + 1;
            format!(
                "{{\"id\":{id},\"name\":\"Congress {id}\",\"country\":\"{country}\",{STATUSES}}}\n"
            )
        };
        let content = given.iter().enumerate().map(line).collect::<String>();
        let file = site.write("conferences.jsonl", content);
        site.json([
            "import",
            file.to_str().unwrap(),
            "--create",
            "--fix",
            "--strict",
        ]);
        let countries: Vec<Value> = site
            .conferences_in(&site.db())
            .iter()
            .map(|record| record["country"].clone())
            .collect();
        assert_eq!(json!(countries), json!(expected), "{given:?}");
        let lint = site.run(["lint"]);
        assert!(!lint.stdout.contains("country"), "{given:?}: {lint:?}");
    }
}

#[test]
fn a_replacement_skips_no_row_that_may_be_a_record() {
    let site = Site::new();
    let names: String = (1..=5)
        .map(|id| format!("{id},J{id},P,1.0,1.0\n"))
        .collect();
    site.import(
        "journals.csv",
        format!("id,name,publisher,sjr,citescore\n{names}"),
    );
    let rows =
        "name,publisher,sjr,citescore\nJ1,P,1.0,1.0\nJ2,P,1.0,1.0\n\nJ3,,,\nJ4,,,\nJ5,P,1.0,1.0\n";
    let file = site.write("journals.csv", rows);
    let summary = site.json([
        "import",
        file.to_str().unwrap(),
        "--match",
        "name",
        "--replace",
    ]);
    assert_eq!(summary["datasets"]["journals"]["removed"], 0, "{summary}");
}

#[test]
fn a_recipe_filters_and_ignores_members_of_json_objects() {
    let site = Site::new();
    let content = "dataset = \"journals\"\n[where]\nkind = \"journal\"\n";
    site.write("list.toml", content);
    // The others have members of their own, another value, or no value.
    let rows = words![
        r#"{"id":1,"name":"NEJM","kind":"journal"}"# r#"{"isbn":"X","kind":"book"}"#
        r#"{"id":2,"name":"Other","kind":null}"# r#"{"id":3,"name":"Other"}"#
    ];
    site.write("list.jsonl", rows.join("\n"));
    let summary = site.json(["import", "list.jsonl", "--recipe", "list.toml", "--create"]);
    assert_eq!(summary["datasets"]["journals"]["added"], 1, "{summary}");
    let text = summary["notes"].to_string();
    assert!(text.contains("3 rows are left out"), "{summary}");

    let record =
        |formats: &str| format!("{{\"id\":1,\"name\":\"C\",\"formats\":{formats},{STATUSES}}}\n");
    site.import("conferences.jsonl", record(r#"{"oral":true}"#));
    site.write("ignoring.toml", "ignore = [\"formats\"]\n");
    for formats in ["null", r#"{"oral":null}"#, r#"{"oral":false}"#] {
        let file = site.write("conferences.jsonl", record(formats));
        let summary = site.json([
            "import",
            file.to_str().unwrap(),
            "--recipe",
            "ignoring.toml",
        ]);
        assert_eq!(
            summary["datasets"]["conferences"]["changed"], 0,
            "{formats}: {summary}"
        );
    }
}

#[test]
fn a_recipe_gives_numbers_and_flags_of_json_a_meaning() {
    let site = Site::new();
    let recipe = r#"
        dataset = "journals"
        ignore = true
        [columns]
        id = "id"
        title = "name"
        oa = "publishing_access"
        house = "publisher"
        [values.publishing_access]
        true = "open"
        2 = "hybrid"
        [set]
        impact_factor_year = 2025
    "#;
    site.write("r.toml", recipe);
    let file = site.write(
        "a.json",
        r#"[{"id":1,"title":"A","oa":true,"house":"H"},{"id":2,"title":"B","oa":2}]"#,
    );
    let args = |file: &std::path::Path| {
        let file = file.to_str().unwrap().to_owned();
        ["import", "--create", "--recipe", "r.toml", &file].map(str::to_owned)
    };
    let done = site.run(args(&file));
    assert_eq!(done.code, Some(0), "{done:?}");
    let shown = site.json(["show", "journals", "2"]).to_string();
    assert_contains(&shown, "hybrid");
    assert_contains(&shown, "2025");
    let cases = cases![
        r#"[{"id":1,"title":"A","oa":false,"house":"H"}]"#,
            "publishing_access: `false` - is true or false; write a text";
        r#"[{"id":1,"title":"A","oa":2,"house":{"name":"H"}}]"#,
            "publisher: `{\"name\":\"H\"}` - is an object; write one value";
        r#"[{"id":1,"title":"A","oa":2,"house":["H"]}]"#, "publisher: `H` - is a list; write one value";
    ];
    for (content, expected) in cases {
        let done = site.run(args(&site.write("b.json", content)));
        done.assert_told(1, expected);
    }
}

#[test]
fn foreign_files_are_read_with_options() {
    const CONSTANTS: &str = "--match name --set year=2026 --set start_date_status=confirmed \
                             --set abstract_due_date_status=not_found --set late_breaking_due_date_status=check";
    const NOTE: &str = "matches no record, and has so few values that it may be a heading or a note; remove it, leave it out by \
                        [where] in a recipe, or fill it in";
    let fourth = format!("journals.csv:4: {NOTE}");
    let cases: Vec<(&str, &str, &str, Then<'_>)> = Vec::from(cases![
        // Constants.
        "conferences.csv", "name,start_date,city,country\nHeart Days,2026-03-12,Rome,Italy\n", CONSTANTS,
            Stored(&[r#"{"start_date":"2026-03-12","start_date_status":"confirmed","city":"Rome","year":2026}"#]);
        "journals.csv", "id,name,impact_factor_year,organizations\n1,A,2023,\n2,B,,S1\n3,C,N/A,\n",
            "--set impact_factor_year=2024 --set organizations=S2 --empty N/A --create-links",
            Stored(&[
                r#"{"impact_factor_year":2023,"organizations":[{"id":1,"name":"S2"}]}"#,
                r#"{"impact_factor_year":2024,"organizations":[{"id":2,"name":"S1"}]}"#,
                r#"{"impact_factor_year":2024,"organizations":[{"id":1,"name":"S2"}]}"#,
                r#"{"id":1,"name":"S2"}"#,
                r#"{"id":2,"name":"S1"}"#,
            ]);
        "journals.csv",
            "id,name\n1,A\n",
            "--set impact_factor_year=soon",
            Refused(
                "error: --set 'impact_factor_year=soon': `soon` is not a value of impact_factor_year; write `2026-03-15` \
                 for a date, `2026` for a year, `4.2` for a number, or `true`",
            );
        "journals.csv", "id,name\n1,A\n", "--set publishar=House",
            Refused("error: --set 'publishar=House': there is no field `publishar`; did you mean `publisher`?");
        // Tags are found by type and name, also if the option says so.
        "tags.csv", "type,name,category\nTopic,Heart,\nTopic,Lung,Organ\n", "--match type,name",
            Stored(&[r#"{"id":1,"type":"Topic","name":"Heart"}"#, r#"{"id":2,"name":"Lung","category":"Organ"}"#]);
        "journals.csv", "id,name\n1,A\n", "--set year_of_metric=2024",
            Refused(
                "error: --set 'year_of_metric=2024': there is no field `year_of_metric`; `medfeed template KIND` prints those of a kind of rows",
            );
        // Texts that count as empty.
        "journals.csv", "id,name,impact_factor,issn_print\n1,A,N/A,N/A\n2,B,**,0028-4793\n",
            "--empty N/A --empty **",
            Stored(&[r#"{"impact_factor":null,"issn_print":null}"#, r#"{"impact_factor":null,"issn_print":"0028-4793"}"#]);
        // Several columns for one list, and unknown organizations and tags.
        "journals.csv", "id,name,soc1,soc2,tags\n1,A,S1,S2,Topic: Heart\n2,B,S2,,\n",
            "--map soc1=organizations --map soc2=organizations --create-links",
            Stored(&[r#"{"id":1}"#, r#"{"id":2}"#, r#"{"name":"S1"}"#, r#"{"name":"S2"}"#, r#"{"name":"Heart"}"#]);
        "journals.csv", "id,name,organizations\n1,A,S1\n", "",
            Refused("journals.csv:2: organizations: `S1` - is not a known organization; import it too, or add --create-links");
        "journals.csv",
            "id,name,organizations\n1,A,S1;S2\n",
            "--create-links",
            Refused(
                "journals.csv:2: organizations: `S1;S2` - is not a known organization, and does not look like the name of one; \
                 separate several by `; `, or set list_separator in a recipe",
            );
        // Organizations without ids, and one with the name of a total.
        "organizations.csv", "name,url\nESMO,https://esmo.org\nASCO,\n", "",
            Stored(&[r#"{"id":1,"name":"ESMO","url":"https://esmo.org"}"#, r#"{"id":2,"name":"ASCO"}"#]);
        "organizations.csv", "name,id\nTotal,2\n", "", Stored(&[r#"{"id":2,"name":"Total"}"#]);
        // A column by its number, and one by its letter.
        "journals.csv", "id,name,Publisher,Publisher,,\n1,A,House,Home,3000,x\n",
            "--map Publisher#2=publishing_content_license --map =E=publishing_apc_usd --ignore-unknown",
            Warned(
                &[
                    r#"{"publisher":"House","publishing":{"content_license":"Home","apc_usd":3000.0}}"#,
                ],
                "journals.csv:1: the unknown column `=F` is ignored",
            );
        "journals.csv", "id,,name,Remark,\n1,,A,x,\n2,draft,B,,\n", "--ignore-unknown",
            Warned(&[r#"{"name":"A"}"#, r#"{"name":"B"}"#], "journals.csv:1: the unknown columns `Remark`, `=B` are ignored");
        // Totals, headings and notes.
        "journals.csv", "id,name,h_index\n1,A,5\nTotal,,5\n", "",
            Warned(&[r#"{"id":1,"h_index":5}"#], "journals.csv:3: is a total, so it is skipped");
        "journals.csv", "name,h_index,sjr\nA,5,1.5\nSource: example,,\n", "--match name",
            Warned(&[r#"{"name":"A"}"#], "journals.csv:3: has one value, so it is skipped as a heading or a note");
        "journals.csv",
            "name,publisher,sjr,h_index,url,abbv\nA,B,1.5,5,x,y\n\nSource: example,retrieved 2026,,,,\n",
            "--match name", Refused(&fourth);
        "journals.csv", "name,h_index,sjr\nA,5,1.5\nname,h_index,sjr\nB,6,1.5\nMittelwert (n=2),5.5,1.5\n",
            "--match name",
            Warned(&[r#"{"name":"A"}"#, r#"{"name":"B"}"#], "journals.csv:3: repeats the header, so it is skipped");
        // Objects may have different members.
        "journals.jsonl",
            "{\"id\":1,\"name\":\"A\"}\n{\"id\":2,\"name\":\"B\",\"impact_factor_year\":2023}\n",
            "--set impact_factor_year=2024",
            Stored(&[r#"{"id":1,"impact_factor_year":2024}"#, r#"{"id":2,"impact_factor_year":2023}"#]);
        // Prices in dollars. A header may end with columns without a name, and rows before them.
        "journals.csv", "id,name,publishing_apc_usd,,\n1,A,\"$3,000.00\"\n2,B,USD 2500,,\n3,C,1500 US$\n",
            "--decimal point --ignore-unknown",
            Stored(&[
                r#"{"publishing":{"apc_usd":3000.0}}"#,
                r#"{"publishing":{"apc_usd":2500.0}}"#,
                r#"{"publishing":{"apc_usd":1500.0}}"#,
            ]);
        // Nested members of JSON, also in a list of objects.
        "journals.json",
            r#"[{"title":"A","issn":["0028-4793","1533-4406"],"societies":[{"name":"S1"},{"name":"S2"}],"if":"3.5"}]"#,
            "--map title=name --map societies.name=organizations --map if=impact_factor --ignore-unknown --match name --create-links",
            Warned(
                &[
                    r#"{"name":"A","impact_factor":3.5}"#,
                    r#"{"id":1,"name":"S1"}"#,
                    r#"{"id":2,"name":"S2"}"#,
                ],
                "the unknown field `issn` is ignored",
            );
    ]);
    for (name, content, options, then) in cases {
        check(name, content.as_bytes(), options, then);
    }
}

/// The example at the head of docs/recipes.md.
#[test]
fn the_list_of_the_manual_changes_what_it_knows() {
    let manual =
        fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/docs/recipes.md")).unwrap();
    let block = |first: &str| -> String {
        let lines = manual.lines().skip_while(|line| line.trim() != first);
        let lines = lines.take_while(|line| line.is_empty() || line.starts_with("    "));
        lines
            .map(|line| format!("{}\n", line.trim_start()))
            .collect()
    };
    let site = Site::new();
    site.write(
        "journals.csv",
        block("id,name,issn_online,publisher,impact_factor,impact_factor_year").trim(),
    );
    site.write(
        "report.csv",
        block("Journal,ISSN,eISSN,Publisher,JIF").trim(),
    );
    let recipe = block("dataset = \"journals\"");
    site.write("report.toml", &recipe);
    site.json(["import", "journals.csv", "--create"]);
    let Done { stdout, stderr, .. } = site.run(["import", "report.csv", "--recipe", "report.toml"]);
    let first = stdout
        .lines()
        .find(|line| line.starts_with("2 rows: "))
        .expect(&stderr);
    assert_eq!(block(first).trim(), first, "{stdout}");
    assert!(
        stdout.starts_with(
            "journals: 2 rows fill name 2, issn_print 2, issn_online 0, publisher 1, impact_factor 2\n"
        ),
        "{stdout}"
    );
}

#[test]
fn the_result_of_a_list_says_what_became_of_each_row() {
    let known = "id,name,issn_print\n1,Landscape Notes,1865-1542\n2,Cardio Letters,0028-4793\n";
    let by_both = "match = [[\"issn\"], [\"name\"]]\n";
    let cases = cases![
        "journals",
            by_both,
            "name,issn_print\nCardio Letters,0028-4793\n",
            "journals: 1 row fills name 1, issn_print 1\n1 row: 0 records changed, 1 equal, 0 unknown; 0 empty cells kept \
             stored values; 0 values cleared\n";
        "journals", by_both, "name,deleted\nNowhere,TRUE\n",
            "1 row: 0 records changed, 0 equal, 1 unknown (not there to remove); ";
        "journals", by_both, "name,deleted\nNowhere,TRUE\nNew,\n",
            "2 rows: 0 records changed, 0 equal, 2 unknown (1 new, 1 not there to remove); ";
        "journals", "match = [[\"issn\"], [\"name\"]]\nnew = false\n",
            "name,issn_print\nCardio Letters,1050-124X\nNew,1666-6046\n",
            "2 rows: 0 records changed, 0 equal, 1 unknown (left out); 1 row left out by contradicting ISSNs; ";
        "organizations", "new = false\n", "name,abbv\nHeart Society,HS\n",
            "1 row: 0 records changed, 0 equal, 1 unknown (left out); ";
    ];
    for (dataset, recipe, list, expected) in cases {
        let site = Site::new();
        site.write("journals.csv", known);
        let code = site.run(["import", "journals.csv", "--create"]).code;
        assert_eq!(code, Some(0));
        site.write("r.toml", format!("dataset = \"{dataset}\"\n{recipe}"));
        site.write("list.csv", list);
        let done = site.run(["import", "list.csv", "--recipe", "r.toml"]);
        assert!(done.code == Some(0), "{list}: {done:?}");
        assert!(done.stdout.contains(expected), "{list}: {done:?}");
    }
}
