//! Lists that other people made, in the shape of public files, with invented values. A second import changes nothing.

use std::fs;

use rust_xlsxwriter::{Format, Workbook};
use serde_json::Value;

use super::site::{Site, assert_contains};
use super::workbook_parts::Parts;

const STATUSES: &str = "[set]\nstart_date_status = \"check\"\nabstract_due_date_status = \"check\"\n\
                        late_breaking_due_date_status = \"check\"\n";

/// A file, its content, its recipe, other options, the stored values, and parts of the warnings.
struct Case<'a> {
    file: &'a str,
    content: &'a [u8],
    recipe: &'a str,
    options: &'a str,
    /// The values of each record, joined by bars, in the order of `fields`.
    rows: &'a [&'a str],
    fields: &'a [&'a str],
    warnings: &'a [&'a str],
}

const MEETINGS: &str = "Meeting;Start;Deadline\nAlpha Days;2026-05-03;2026-01-15 23:59 AoE\n\
    Beta Days;2026-06-03;2026-01-15T23:59:00-12:00\nGamma Days;2026-07-03;2026-01-15 23:59:59\n\
    Delta Days;2026-08-03;23 Jan 2026, 23:59 (UTC-12)\nEpsilon Days;Q3 2026;TBC\nZeta Days;June 2027;2026-01?\n";

const PLACES: &str = "Meeting;Start;Place\nAlpha Days;2026-05-03;Austin, TX\nBeta Days;2026-06-03;San Diego, California\n\
    Gamma Days;2026-07-03;Málaga, Spain (hybrid)\nDelta Days;2026-08-03;Antwerp, BE\n\
    Epsilon Days;2026-09-03;Glasgow, Scotland\nZeta Days;2026-10-03;Toronto, Canada & Virtual\n\
    Eta Days;2026-11-03;Graz, Austria\nTheta Days;2026-12-03;Chicago, IL\n";

const CODES: &str = "Event,City,Country,Start\nAlpha Days,Graz,AUT,2026-03-01\nBeta Days,Bonn,DE,2026-03-08\n\
    Gamma Days,Split,HRV,2026-03-15\nDelta Days,Leeds,GBR,2026-03-22\nEpsilon Days,Izmir,TUR,2026-04-01\n";

const FOOTER: &str = "Rank,Full Journal Title,ISSN,JIF\n1,Alpha Journal of Lungs,0028-4793\u{200e},1.5\n\
    2,Beta Archives,\"1533-4406, 0378-5955, 2434-561X\",2\n3,Gamma Letters,0000-0000,3\n\
    Copyright (c) 2026 Example,,,\n\"By exporting the data, you agree to the terms\",,,\n";

const JOURNALS: &[&str] = &["name", "issn_print"];
const CONFERENCES: &[&str] = &["name", "start_date", "abstract_due_date", "year"];
const CITIES: &[&str] = &["name", "city", "country"];

fn cases() -> Vec<(Case<'static>, &'static str)> {
    let journals =
        "dataset = \"journals\"\nmatch = [[\"issn\"], [\"name\"]]\nignore = true\n[columns]\n";
    let meetings = "dataset = \"conferences\"\nmatch = [[\"name\"]]\nignore = true\n";
    let case = |file, content, columns, rows, fields, warnings| Case {
        file,
        content,
        recipe: columns,
        options: "",
        rows,
        fields,
        warnings,
    };
    vec![
        (
            case(
                "times.csv",
                MEETINGS.as_bytes(),
                "[columns]\nMeeting = \"name\"\nStart = [\"start_date\", \"year\"]\nDeadline = \"abstract_due_date\"\n",
                &words![
                    "Alpha Days|2026-05-03|2026-01-15|2026" "Beta Days|2026-06-03|2026-01-15|2026"
                    "Gamma Days|2026-07-03|2026-01-15|2026" "Delta Days|2026-08-03|2026-01-23|2026"
                    "Epsilon Days|||2026" "Zeta Days|||2027"
                ],
                CONFERENCES,
                &[
                    "has a time of day, which is left out",
                    "is no date yet, so it counts as empty",
                ],
            ),
            meetings,
        ),
        (
            case(
                "places.csv",
                PLACES.as_bytes(),
                "[columns]\nMeeting = \"name\"\nStart = [\"start_date\", \"year\"]\nPlace = [\"city\", \"country\"]\n",
                &words![
                    "Alpha Days|Austin, TX|United States"
                    "Beta Days|San Diego, California|United States" "Gamma Days|Málaga|Spain"
                    "Delta Days|Antwerp|Belgium" "Epsilon Days|Glasgow|United Kingdom"
                    "Zeta Days|Toronto|Canada" "Eta Days|Graz|Austria" "Theta Days|Chicago, IL|"
                ],
                CITIES,
                &[
                    "says how the meeting takes place, which is left out",
                    "so it is all read as the city",
                ],
            ),
            meetings,
        ),
        (
            Case {
                options: "--fix",
                ..case(
                    "codes.csv",
                    CODES.as_bytes(),
                    "[columns]\nEvent = \"name\"\nStart = [\"start_date\", \"year\"]\nCity = \"city\"\nCountry = \"country\"\n\
                     [where]\nCountry = [\"Austria\", \"Germany\", \"Croatia\", \"United Kingdom\", \"Turkey\"]\n",
                    &words![
                        "Alpha Days|Graz|Austria" "Beta Days|Bonn|Germany"
                        "Gamma Days|Split|Croatia" "Delta Days|Leeds|United Kingdom"
                        "Epsilon Days|Izmir|Turkey"
                    ],
                    CITIES,
                    &[],
                )
            },
            meetings,
        ),
        (
            case(
                "footer.csv",
                FOOTER.as_bytes(),
                "\"Full Journal Title\" = \"name\"\nISSN = [\"issn_print\", \"issn_online\"]\nJIF = \"impact_factor\"\n\
                 [set]\nimpact_factor_year = 2024\n",
                &words![
                    "Alpha Journal of Lungs|0028-4793" "Beta Archives|1533-4406" "Gamma Letters|"
                ],
                JOURNALS,
                &[
                    "has 3 ISSNs; only the first 2 are read",
                    "is no ISSN, so it counts as empty",
                    "has no value in a column that is read, so it is skipped",
                ],
            ),
            journals,
        ),
        (
            case(
                "text.xls",
                include_bytes!("../../fixtures/lists/text-named.xls"),
                "ISSN = \"issn_print\"\n\"Título\" = \"name\"\n",
                &["REVISTA ÁLFA|0028-4793", "BETA ARQUIVOS|1533-4406"],
                JOURNALS,
                &[],
            ),
            "dataset = \"journals\"\nencoding = \"windows-1252\"\nmatch = [[\"issn\"], [\"name\"]]\n[columns]\n",
        ),
    ]
}

const PLANNER: &str = "header_rows = 2\n[columns]\nCongress = [\"name\", \"url\"]\n\"When From\" = [\"start_date\", \"year\"]\n\
    \"When To\" = \"end_date\"\n\"Where City\" = \"city\"\n\"Where Country\" = \"country\"\n\
    \"Deadlines Abstract\" = \"abstract_due_date\"\n";

const LAYOUT: &str = "Journal = \"name\"\nISSN = \"issn_print\"\nJIF = \"impact_factor\"\n[set]\nimpact_factor_year = 2024\n";

const OLD: &str = "[columns]\nMeeting = \"name\"\nStart = [\"start_date\", \"year\"]\nPlace = [\"city\", \"country\"]\n";

const NO_FORMATS: &str = "is an .xls or .ods file, whose number formats are not read";

#[test]
fn cells_that_are_merged_over_rows_are_refused_where_they_are_read() {
    let mut workbook = Workbook::new();
    let sheet = workbook.add_worksheet();
    let rows = words![
        "Meeting|Year|Society" "Beta Days|2027|Lungs" "Gamma Days||" "Delta Days||Bones"
        "Zeta Days|2028|"
    ];
    for (row, cells) in (0..).zip(rows) {
        for (column, text) in (0..).zip(cells.split('|')) {
            sheet.write(row, column, text).unwrap();
        }
    }
    let format = Format::new();
    sheet.merge_range(1, 1, 3, 1, "2027", &format).unwrap();
    sheet.merge_range(1, 2, 2, 2, "Lungs", &format).unwrap();
    let site = Site::new();
    site.write("merged.xlsx", workbook.save_to_buffer().unwrap());
    let recipe = |year: &str| {
        format!(
            "dataset = \"conferences\"\nmatch = [[\"name\"]]\nignore = true\n[columns]\nMeeting = \"name\"\n{year}\n{STATUSES}"
        )
    };
    for (year, code) in [("", 0), ("Year = \"year\"", 1)] {
        site.write("list.toml", recipe(year));
        let done = site.run([
            "import",
            "merged.xlsx",
            "--recipe",
            "list.toml",
            "--dry-run",
        ]);
        assert_eq!(done.code, Some(code), "{year}: {done:?}");
        let told = format!("{}{}", done.stdout, done.stderr);
        assert_eq!(
            told.contains("the cells B2:B4 are merged"),
            code == 1,
            "{told}"
        );
    }
}

/// An OpenDocument spreadsheet with one sheet.
fn ods() -> Vec<u8> {
    const HEAD: &str = r#"<office:document-content xmlns:office="urn:oasis:names:tc:opendocument:xmlns:office:1.0" xmlns:table="urn:oasis:names:tc:opendocument:xmlns:table:1.0" xmlns:text="urn:oasis:names:tc:opendocument:xmlns:text:1.0"><office:body><office:spreadsheet><table:table table:name="List">"#;
    const FOOT: &str =
        "</table:table></office:spreadsheet></office:body></office:document-content>";
    let text = |text: &str| {
        format!(
            r#"<table:table-cell office:value-type="string"><text:p>{text}</text:p></table:table-cell>"#
        )
    };
    let day = r#"<table:table-cell office:value-type="date" office:date-value="2026-05-03"><text:p>03.05.26</text:p></table:table-cell>"#;
    let row = |cells: &[String]| format!("<table:table-row>{}</table:table-row>", cells.concat());
    let header = row(&["Meeting", "Start", "Place"].map(text));
    let first = row(&[text("Alpha Days"), day.to_owned(), text("Graz, Austria")]);
    let second = row(&["Beta Days", "12 June 2026", "Rome, Italy"].map(text));
    Parts::of_sheet("")
        .without("xl/workbook.xml")
        .with("mimetype", "application/vnd.oasis.opendocument.spreadsheet")
        .with("META-INF/manifest.xml", "<manifest:manifest/>")
        .with(
            "content.xml",
            format!("{HEAD}{header}{first}{second}{FOOT}"),
        )
        .pack()
}

#[test]
fn workbooks_of_others_are_read_as_they_are() {
    let journals =
        "dataset = \"journals\"\nmatch = [[\"issn\"], [\"name\"]]\nignore = true\n[columns]\n";
    let meetings = "dataset = \"conferences\"\nmatch = [[\"name\"]]\nignore = true\n";
    let old_rows: &[&str] = &["Alpha Days|2026-05-03||2026", "Beta Days|2026-06-12||2026"];
    let ods = ods();
    let case = |file, content, recipe, rows, fields, warnings| Case {
        file,
        content,
        recipe,
        options: "",
        rows,
        fields,
        warnings,
    };
    let planner: &[u8] = include_bytes!("../../fixtures/lists/planner.xlsx");
    let layout: &[u8] = include_bytes!("../../fixtures/lists/merged-layout.xlsx");
    let named: &[u8] = include_bytes!("../../fixtures/lists/workbook-named.xls");
    let old: &[u8] = include_bytes!("../../fixtures/lists/old.xls");
    let cases = cases![
        case("planner.xlsx", planner, PLANNER, &["Alpha Lung Congress|https://alpha.example/2026|2026-03-03|2026-03-06|Lyon|France|2025-11-15", "Beta Heart Days||2026-04-12|2026-04-14|Graz|Austria|"], &["name", "url", "start_date", "end_date", "city", "country", "abstract_due_date"], &["has one value, so it is skipped as a heading or a note"]),
            meetings;
        case("layout.xlsx", layout, LAYOUT, &["Alpha Journal of Lungs|0028-4793", "Beta Archives|1533-4406"], JOURNALS, &[]),
            journals;
        case("old.xls", old, OLD, old_rows, CONFERENCES, &[NO_FORMATS]), meetings;
        case("list.ods", &ods, OLD, old_rows, CONFERENCES, &[NO_FORMATS]), meetings;
        case("list.csv", &ods, OLD, old_rows, CONFERENCES, &[NO_FORMATS]), meetings;
        case("named.xls", named, "Title = \"name\"\nISSN = \"issn_print\"\n", &["Alpha Journal of Lungs|0028-4793"], JOURNALS, &[]),
            journals;
    ];
    for (case, head) in cases {
        check(&case, head);
    }
}

#[test]
fn a_price_from_an_old_workbook_is_refused() {
    let site = Site::new();
    let old: &[u8] = include_bytes!("../../fixtures/lists/old.xls");
    site.write("old.xls", old);
    let content = "dataset = \"journals\"\nmatch = [[\"name\"]]\nignore = true\n[columns]\nMeeting = \"name\"\nRank = \"publishing_apc_usd\"\n";
    site.write("list.toml", content);
    let done = site.run(["import", "old.xls", "--recipe", "list.toml", "--create"]);
    assert_eq!(done.code, Some(1), "{done:?}");
    let told = format!("{}{}", done.stdout, done.stderr);
    assert_contains(&told, "the currency of a price in an .xls or .ods file");
}

/// Imports a list twice, and compares what is stored.
fn check(case: &Case<'_>, head: &str) {
    let site = Site::new();
    site.write(case.file, case.content);
    let constants = if head.contains("conferences") {
        STATUSES
    } else {
        ""
    };
    let recipe = format!("{head}{}{constants}", case.recipe);
    site.write("list.toml", recipe);
    let mut args = vec!["import", case.file, "--recipe", "list.toml", "--create"];
    args.extend(case.options.split_whitespace());
    let done = site.run(&args);
    assert_eq!(done.code, Some(0), "{}: {done:?}", case.file);
    let told = format!("{}{}", done.stdout, done.stderr);
    for warning in case.warnings {
        assert!(told.contains(warning), "{}: {warning} in {told}", case.file);
    }
    site.json(["export", "out"]);
    let kind = if head.contains("conferences") {
        "conferences"
    } else {
        "journals"
    };
    let rows = fs::read_to_string(site.path(&format!("out/{kind}.jsonl"))).unwrap();
    let stored: Vec<String> = rows
        .lines()
        .map(|row| {
            let row: Value = serde_json::from_str(row).unwrap();
            let text = |field: &&str| match &row[*field] {
                Value::Null => String::new(),
                Value::String(text) => text.clone(),
                other => other.to_string(),
            };
            case.fields.iter().map(text).collect::<Vec<_>>().join("|")
        })
        .collect();
    assert_eq!(stored, case.rows, "{}: {told}", case.file);
    args.push("--json");
    let again = site.run(&args);
    let changes = &again.json()["datasets"][kind];
    let changes = ["added", "changed", "removed"].map(|change| changes[change].as_u64());
    assert_eq!(
        changes,
        [Some(0); 3],
        "{}: a second import changes nothing",
        case.file
    );
}

#[test]
fn lists_of_others_are_read_as_they_are() {
    for (case, head) in cases() {
        check(&case, head);
    }
}

#[test]
fn an_own_file_is_read_strictly() {
    let cases = cases![
        "start_date", "2026-01-15 23:59", "has a time of day";
        "start_date", "June 2026", "write a date as";
        "start_date", "TBC", "is not a date";
        "therapy_areas", "\"['a', 'b']\"", "without brackets and quotes";
    ];
    for (field, cell, message) in cases {
        let site = Site::new();
        site.write("conferences.csv", format!("id,{field}\n1,{cell}\n"));
        let done = site.run(["import", "conferences.csv", "--create"]);
        assert_eq!(done.code, Some(1), "{cell}: {done:?}");
        let told = format!("{}{}", done.stdout, done.stderr);
        assert!(told.contains(message), "{cell}: {told}");
    }
}
