//! Workbooks of curators, and those that export and template write.

use medfeed::import::{Bounds, ReadOptions, Source, SourceOptions, read_sources};
use rust_xlsxwriter::{ExcelDateTime, Format, Formula, Workbook, Worksheet, XlsxError};

use super::site::{Site, assert_contains};
use super::spreadsheets::Then::{Refused, Stored, Warned};
use super::spreadsheets::{ESMO, Then, check};
use crate::properties::masked;

/// Makes a workbook.
fn book(make: impl FnOnce(&mut Workbook)) -> Vec<u8> {
    let mut workbook = Workbook::new();
    make(&mut workbook);
    workbook.save_to_buffer().unwrap()
}

/// A workbook of one sheet of texts.
fn one(name: &str, rows: &[&[&str]]) -> Vec<u8> {
    book(|workbook| {
        sheet(workbook, name, rows);
    })
}

/// Adds a sheet of texts.
fn sheet<'a>(workbook: &'a mut Workbook, name: &str, rows: &[&[&str]]) -> &'a mut Worksheet {
    let sheet = workbook.add_worksheet().set_name(name).unwrap();
    for (row, cells) in (0..).zip(rows) {
        for (column, cell) in (0..).zip(*cells) {
            if !cell.is_empty() {
                sheet.write_string(row, column, *cell).unwrap();
            }
        }
    }
    sheet
}

const ORGS: &[&[&str]] = &[&["id", "name", "url"], &["1", "ESMO", "https://esmo.org"]];

/// A workbook of organizations whose sheet is changed.
fn orgs(change: impl FnOnce(&mut Worksheet) -> Result<&mut Worksheet, XlsxError>) -> Vec<u8> {
    book(|workbook| {
        change(sheet(workbook, "organizations", ORGS)).unwrap();
    })
}

/// A workbook of several sheets of texts.
fn sheets(all: &[(&str, &[&[&str]])]) -> Vec<u8> {
    book(|workbook| {
        for (name, rows) in all {
            sheet(workbook, name, rows);
        }
    })
}

#[test]
fn workbooks_are_imported_or_refused_with_a_remedy() {
    let day = || ExcelDateTime::from_ymd(2026, 3, 15).unwrap();
    let dates = Format::new().set_num_format("dd.mm.yyyy");
    let (name, two) = (
        "book.xlsx",
        sheets(&[("Sheet1", &[&["x"]]), ("Sheet2", ORGS)]),
    );
    let cases: Vec<(&str, Vec<u8>, &str, Then<'_>)> = Vec::from(cases![
        name, one(" Organizations ", ORGS), "", Stored(&[ESMO]);
        "organizations.xlsx", one("Tabelle1", ORGS), "", Stored(&[ESMO]);
        "organizations.csv", one("organizations", ORGS), "", Stored(&[ESMO]);
        name, sheets(&[("Notes", &[&["read me"]]), ("ORGANIZATIONS", ORGS)]), "",
            Warned(&[ESMO], "book.xlsx: skipped `Notes`; only sheets named");
        name,
            book(|b| {
                sheet(b, "Sheet1", ORGS);
                sheet(b, "Sheet2", &[]).set_hidden(true);
            }),
            "--dataset organizations", Warned(&[ESMO], "skipped `Sheet2`");
        name, two.clone(), "--dataset organizations --sheet Sheet2", Stored(&[ESMO]);
        name, two, "--dataset organizations",
            Refused("error: cannot read book.xlsx: its sheets are `Sheet1`, `Sheet2`; choose one, such as `--sheet List`");
        name, one("Sheet1", ORGS), "--dataset organizations --sheet List",
            Refused("error: cannot read book.xlsx: it has no sheet `List`; its sheets are `Sheet1`");
        name,
            one("Sheet1", ORGS),
            "",
            Refused(
                "error: cannot read book.xlsx: its sheets are `Sheet1`; name those to be read `conferences`, `journals`, \
                 `organizations` or `tags`, or choose one, such as `--sheet List --dataset journals`",
            );
        name,
            book(|b| {
                sheet(b, "organizations", ORGS);
                sheet(b, "tags", &[&["id"], &["1"]]).set_very_hidden(true);
            }),
            "", Warned(&[ESMO], "skipped `tags` (hidden; unhide it to import it)");
        name,
            book(|b| {
                sheet(b, "Notes", &[&["id"], &["read me"]])
                    .set_row_hidden(1)
                    .unwrap();
                let rows: &[&[&str]] = &[
                    &["Our societies"],
                    ORGS[0],
                    ORGS[1],
                    &["2", "B"],
                    &["3", "C"],
                ];
                let sheet = sheet(b, "organizations", rows);
                for row in [0, 1, 3, 9] {
                    sheet.set_row_hidden(row).unwrap();
                }
            }),
            "",
            Warned(&[ESMO, r#"{"id":2}"#, r#"{"id":3}"#], "organizations]:4: the row is hidden in the sheet; unhide it to");
        name,
            orgs(|sheet| sheet.write_datetime_with_format(1, 1, day(), &dates)),
            "",
            Refused(
                "book.xlsx[organizations]:2: name: `2026-03-15` - is a date in the spreadsheet, but the column \
                 contains text; format the cell as text, and enter it again",
            );
        name, orgs(|sheet| { sheet.write_formula(1, 1, Formula::new("=\"ES\"&\"MO\"").set_result("ESMO")) }),
            "", Stored(&[ESMO]);
        name,
            orgs(|sheet| sheet.merge_range(1, 1, 2, 1, "B", &Format::new())),
            "",
            Refused(
                "book.xlsx[organizations]:2: the cells B2:B3 are merged, so that only the first has a value; unmerge them, \
                 and fill in each",
            );
        name,
            book(|b| {
                let rows: &[&[&str]] = &[&["", "Our societies"], &[], ORGS[0], ORGS[1], &[]];
                sheet(b, "organizations", rows)
                    .merge_range(0, 1, 0, 2, "Our societies", &Format::new())
                    .unwrap();
            }),
            "", Warned(&[ESMO], "book.xlsx[organizations]:3: the rows above the header (line 1) are ignored");
        name, b"id,name\n".to_vec(), "",
            Refused("error: cannot read book.xlsx: it is not a workbook; name its dataset with --dataset");
        name,
            [
                &[0xd0, 0xcf, 0x11, 0xe0, 0xa1, 0xb1, 0x1a, 0xe1][..],
                &[0; 512],
            ]
            .concat(),
            "",
            Refused(
                "error: cannot read book.xlsx: it is an .xls file that cannot be read (Cfb error: Invalid sector shift, \
                 expecting 0x09 or 0x0C found 0), or a workbook with a password; save it as .xlsx without a password, or as \
                 CSV in UTF-8",
            );
    ]);
    for (name, content, options, then) in cases {
        check(name, &content, options, then);
    }
}

#[test]
fn workbooks_beyond_a_bound_are_refused() {
    let many = |b: &mut Workbook| {
        let sheet = b.add_worksheet().set_name("organizations").unwrap();
        sheet.write_string(0, 0, "id").unwrap();
        for row in 1..4_000 {
            sheet.write_number(row, 0, row).unwrap();
            sheet.write_string(row, 1, "").unwrap();
        }
    };
    let wide = one(
        "organizations",
        &[&["id", "name", "abbv"], &["1", "A", "B"]],
    );
    let long = one(
        "organizations",
        &[&["id", "name"], &["1", &"x".repeat(30_000)]],
    );
    let usual = Bounds::default();
    let cases: [(Vec<u8>, Bounds, &str); 5] = cases![
        book(many), Bounds { rows: 3000, ..usual }, "has more than 3000 rows; split it";
        wide.clone(), Bounds { columns: 2, ..usual }, "has more than 2 columns";
        long, Bounds { line_bytes: 20_000, ..usual }, "is longer than 20000 bytes";
        book(many), Bounds { file_bytes: 100_000, ..usual }, "has more than 100000 bytes";
        wide, Bounds { columns: 3, rows: 1, ..usual }, "";
    ];
    for (content, bounds, expected) in cases {
        let site = Site::new();
        let sources = Source::find(
            &[site.write("book.xlsx", content)],
            SourceOptions::default(),
        )
        .unwrap();
        let options = ReadOptions {
            bounds,
            ..ReadOptions::default()
        };
        let told: String = match read_sources(&sources, &options) {
            Ok(rows) => rows
                .bad
                .kept()
                .iter()
                .map(|fault| &*fault.message)
                .collect(),
            Err(error) => error.to_string(),
        };
        assert!(told.contains(expected), "{bounds:?}: {told}");
        assert!(told.is_empty() == expected.is_empty(), "{bounds:?}: {told}");
    }
}

/// Texts that a spreadsheet may take for formulas or numbers, or cannot store as they are.
const HOSTILE: &[&str] = &words![
    "=1+1" "'=1+1" "'" "''x" "@x" "-5" "+49" "\tx" "x\ty" "a\nb" "a\r\nb" "a\rb" "\r" "\u{1}x"
    "_x000D_" "_x0041_" "😀 🇩🇪" "0000-1234" "2026" "2026-03-15" "15.03.2026" "1e5" "TRUE" "#REF!"
    "  x  " "a\u{a0}b" "\u{2028}x" "x\u{85}y" "a,b;c\"d\"" "<a href='x'>&amp;</a>" "]]>" "\u{fffe}x"
    "id" "007" "9007199254740991" "日本語" "e\u{301}"
];

#[test]
fn exported_workbooks_are_imported_unchanged() {
    const FACTORS: [f64; 6] = [0.1 + 0.2, 4.0, 1e21, 5e-324, 12.345_678_901_234_567, 0.0];
    let site = Site::new();
    let mut rows = String::new();
    for (at, text) in (1..).zip(HOSTILE) {
        let row = serde_json::json!({
            "id": if at == 1 { 9_007_199_254_740_991_u64 } else { at }, "name": text, "abbv": text, "issn_print": text, "url": text,
            "impact_factor": FACTORS[usize::try_from(at).unwrap() % FACTORS.len()],
            "h_index": 9_007_199_254_740_991_u64 / at, "publishing": {"access": "open", "apc_usd": 3_000},
        });
        rows.push_str(&format!("{row}\n"));
    }
    site.import("journals.jsonl", rows);
    let mut rows = String::new();
    for (at, (start, end)) in (1..).zip([
        ("0001-01-01", "1899-12-31"),
        ("1900-01-01", "1900-02-28"),
        ("1901-01-01", "9999-12-31"),
    ]) {
        let row = serde_json::json!({
            "id": at, "name": HOSTILE[at], "therapy_areas": HOSTILE, "start_date": start, "start_date_status": "confirmed",
            "end_date": end, "abstract_due_date_status": "check", "late_breaking_due_date_status": "not_found",
            "organizations": [{"id": at, "name": HOSTILE[at], "abbv": null, "type": "=T", "url": null}],
            "tags": [{"id": at, "type": "=T", "name": HOSTILE[at], "category": "TRUE"}], "formats": {"oral": true, "poster": false},
        });
        rows.push_str(&format!("{row}\n"));
    }
    site.import("conferences.jsonl", rows);
    let data = concat!(env!("CARGO_MANIFEST_DIR"), "/fixtures");
    for samples in [None, Some(data)] {
        if let Some(samples) = samples {
            std::fs::remove_file(site.db()).unwrap();
            site.json(["import", samples, "--create"]);
        }
        let rows = |told: serde_json::Value| -> u64 {
            told["files"]
                .as_array()
                .unwrap()
                .iter()
                .map(|file| file["rows"].as_u64().unwrap())
                .sum()
        };
        let written = rows(site.json(["export", "direct"]));
        assert_eq!(rows(site.json(["export", "book.xlsx"])), written);
        let again = site.run(["import", "book.xlsx"]);
        again.assert_shown(0, "Nothing is new");
        site.json(["import", "book.xlsx", "--create", "--db", "other.redb"]);
        site.json(["export", "through", "--db", "other.redb"]);
        for stem in ["conferences", "journals", "organizations", "tags"] {
            let read = |folder: &str| {
                std::fs::read_to_string(site.path(&format!("{folder}/{stem}.jsonl"))).unwrap()
            };
            let (direct, through) = (
                masked(read("direct").as_bytes()),
                masked(read("through").as_bytes()),
            );
            let expected = String::from_utf8_lossy(&through);
            assert_eq!(String::from_utf8_lossy(&direct), expected, "{stem}");
        }
        std::fs::remove_file(site.path("other.redb")).unwrap();
    }
}

#[test]
fn a_text_that_fits_into_no_cell_is_refused() {
    let site = Site::new();
    site.import(
        "journals.jsonl",
        format!("{{\"id\":1,\"name\":\"{}\"}}\n", "x".repeat(32_768)),
    );
    let done = site.run(["export", "book.xlsx"]);
    let expected = "a cell of a spreadsheet holds at most 32767; use --format csv or jsonl";
    assert!(
        done.code == Some(1) && done.stderr.contains(expected) && done.stderr.contains("`name`"),
        "{done:?}"
    );
    assert!(!site.path("book.xlsx").exists());
}

#[test]
fn a_template_is_filled_in_and_imported() {
    let site = Site::new();
    std::fs::create_dir(site.path("forms")).unwrap();
    let told = site.json(["template", "forms/all.xlsx"]);
    assert_eq!(told["file"], "forms/all.xlsx");
    let done = site.run(["import", "forms/all.xlsx", "--create"]);
    assert!(done.code == Some(0), "{done:?}");
    assert!(done.stderr.matches("has no rows").count() == 4, "{done:?}");
    let header = site.run(["template", "journals"]).stdout;
    site.write(
        "journals.csv",
        format!(
            "{header}1,\"Lancet, The\"{}\n",
            ",".repeat(header.matches(',').count() - 1)
        ),
    );
    let done = site.run(["import", "journals.csv", "--create"]);
    done.assert_shown(0, "1 added");
    let mut archive =
        zip::ZipArchive::new(std::fs::File::open(site.path("forms/all.xlsx")).unwrap()).unwrap();
    let mut sheet = String::new();
    std::io::Read::read_to_string(
        &mut archive.by_name("xl/worksheets/sheet1.xml").unwrap(),
        &mut sheet,
    )
    .unwrap();
    let part = "<formula1>\"confirmed,estimated,copied,not_found,check\"</formula1>";
    assert_contains(&sheet, part);
    assert!(archive.by_name("xl/comments1.xml").is_ok());
}
