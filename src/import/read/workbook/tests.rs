//! Whole workbooks, built from their parts.

use std::io::{Seek, Write};

use zip::ZipWriter;
use zip::write::SimpleFileOptions;

use super::*;
use crate::import::findings::Findings;
use crate::import::read::options::{OptionEffects, ReadOptions};
use crate::import::read::table_cell::{Container, Notation};
use crate::import::read::tabular::TableReader;
use crate::import::row_faults::UnknownNames;
use crate::import::rows::{FileRows, ImportRow};
use crate::model::{ConferenceFields, Fields, OrganizationFields};

const TYPES: &str = "http://schemas.openxmlformats.org/officeDocument/2006/relationships";

/// A sheet: its name, its rows, and the elements after them.
type SheetParts<'a> = (&'a str, &'a str, &'a str);

/// The built-in formats of the styles.
const STYLES: [u32; 12] = [0, 14, 1, 5, 9, 17, 22, 27, 31, 46, 49, 99];

/// Opens a workbook with these attributes of `workbookPr`. Style 1 is a date.
fn workbook(properties: &str, sheets: &[SheetParts<'_>], bounds: &Bounds) -> Workbook {
    let mut archive = ZipWriter::new(tempfile::tempfile().unwrap());
    let mut add = |name: &str, content: &str| {
        archive
            .start_file(name, SimpleFileOptions::default())
            .unwrap();
        archive.write_all(content.as_bytes()).unwrap();
    };
    let relation = |id: &str, kind: &str, target: &str| {
        format!("<Relationship Id=\"{id}\" Type=\"{TYPES}/{kind}\" Target=\"{target}\"/>")
    };
    let relations = |content: &str| format!("<Relationships>{content}</Relationships>");
    let root = relations(&relation("r1", "officeDocument", "xl/workbook.xml"));
    add("_rels/.rels", &root);
    let (mut list, mut links) = (String::new(), relation("styles", "styles", "styles.xml"));
    for (at, (name, rows, after)) in sheets.iter().enumerate() {
        list += &format!("<sheet name=\"{name}\" sheetId=\"{at}\" r:id=\"s{at}\"/>");
        links += &relation(
            &format!("s{at}"),
            "worksheet",
            &format!("worksheets/sheet{at}.xml"),
        );
        let sheet = format!("<worksheet><sheetData>{rows}</sheetData>{after}</worksheet>");
        add(&format!("xl/worksheets/sheet{at}.xml"), &sheet);
        let targets: String = ["a", "b", "c"]
            .map(|letter| {
                let address = format!("https://{letter}{at}.org/");
                relation(letter, "hyperlink", &address).replace("/>", " TargetMode=\"External\"/>")
            })
            .concat();
        let names = format!("xl/worksheets/_rels/sheet{at}.xml.rels");
        add(&names, &relations(&targets));
    }
    let workbook = format!("<workbook><workbookPr{properties}/><sheets>{list}</sheets></workbook>");
    add("xl/workbook.xml", &workbook);
    add("xl/_rels/workbook.xml.rels", &relations(&links));
    let styles = STYLES
        .map(|format| format!("<xf numFmtId=\"{format}\"/>"))
        .concat();
    let sheet = format!("<styleSheet><cellXfs>{styles}</cellXfs></styleSheet>");
    add("xl/styles.xml", &sheet);
    let mut file = archive.finish().unwrap();
    file.rewind().unwrap();
    Workbook::open(file, bounds).unwrap()
}

/// Returns the rows of a sheet in a short form, and then the faults.
fn shown<F: Fields>(workbook: &mut Workbook, sheet: &str, bounds: Bounds) -> String {
    let (mut rows, mut bad, mut warnings) = (
        Vec::<ImportRow<F>>::new(),
        Findings::default(),
        Findings::default(),
    );
    let (file, options) = (
        "f".into(),
        ReadOptions {
            bounds,
            ..ReadOptions::default()
        },
    );
    let mut effects = OptionEffects::default();
    let mut read = FileRows {
        file: &file,
        options: &options,
        rows: &mut rows,
        bad: &mut bad,
        unknown: UnknownNames::default(),
        warnings: &mut warnings,
        effects: &mut effects,
    };
    let notation = Notation {
        container: Container::Sheet,
        ..Notation::default()
    };
    let mut table = TableReader::new(&mut read, notation);
    let sheet = workbook.sheet(sheet).unwrap();
    sheet.read(&bounds, &mut table).unwrap();
    table.finish();
    let rows: String = rows
        .iter()
        .map(|row| {
            let edit = match row.edit.is_removal {
                true => "removed".to_owned(),
                false => row.edit.statement.to_string(),
            };
            format!("{}:{} {edit}\n", row.position.line, row.id.unwrap())
        })
        .collect();
    rows + &bad.to_string()
}

/// The rows of the first sheet.
fn shown_first<F: Fields>(properties: &str, sheets: &[SheetParts<'_>], bounds: Bounds) -> String {
    let mut workbook = workbook(properties, sheets, &bounds);
    let chosen = workbook.choose(None, &[]).unwrap();
    shown::<F>(&mut workbook, &chosen.sheets[0].1, bounds)
}

/// Rows of cells. A cell is a text, or the XML of a cell without its position.
fn rows(rows: &[&[&str]]) -> String {
    let cell = |text: &&str| match text.strip_prefix("<c") {
        Some(_) => (*text).to_owned(),
        None => format!("<c t=\"inlineStr\"><is><t>{text}</t></is></c>"),
    };
    rows.iter()
        .map(|cells| format!("<row>{}</row>", cells.iter().map(cell).collect::<String>()))
        .collect()
}

/// A number cell that the sheet shows as a date.
fn day(serial: &str) -> String {
    format!("<c s=\"1\"><v>{serial}</v></c>")
}

#[test]
fn every_spelling_of_the_flag_for_1904_counts() {
    let cases = outcomes![
        "" " date1904=\"0\"" " date1904=\"false\"" " date1904=\"off\"" " date1904=\"\""
        " dateCompatibility=\"1\"" " date1904=\"0\" filterPrivacy=\"1\"" => "2022-03-14";
        " date1904=\"1\"" " date1904=\"true\"" " date1904='1'"
        " date1904=\"1\" defaultThemeVersion=\"124226\""
        " defaultThemeVersion=\"124226\" date1904=\"true\"" => "2026-03-15";
    ];
    for (properties, expected) in cases {
        let rows = rows(&[&["id", "start_date"], &["7", &day("44634")]]);
        // The second sheet counts as the first.
        let sheets: &[SheetParts<'_>] = &[("organizations", "", ""), ("conferences", &rows, "")];
        let mut workbook = workbook(properties, sheets, &Bounds::default());
        let chosen = workbook.choose(None, &[]).unwrap();
        let shown =
            shown::<ConferenceFields>(&mut workbook, &chosen.sheets[1].1, Bounds::default());
        assert_eq!(
            shown,
            format!("2:7 start_date=\"{expected}\"\n"),
            "{properties}"
        );
    }
}

#[test]
fn days_of_both_calendars_reach_the_record() {
    let no_date = "is a time in the spreadsheet, not a date";
    let cases = cases![
        "1", "1900-01-01", "1904-01-02";
        "59", "1900-02-28", "1904-02-29";
        "60", "is not a day of the calendar", "1904-03-01";
        "61", "1900-03-01", "1904-03-02";
        "366", "1900-12-31", "1905-01-01";
        "367", "1901-01-01", "1905-01-02";
        "0", no_date, "1904-01-01";
        "0.75", "`18:00:00` - is a time", "`18:00:00` - is a time";
        "-1", no_date, no_date;
        "36585", "2000-02-29", "2004-03-01";
        "46022", "2025-12-31", "2030-01-01";
        "46022.0", "2025-12-31", "2030-01-01";
        "46022.9999999999", "2026-01-01", "2030-01-02";
        "46022.75", "`2025-12-31T18:00:00` - has a time of day", "`2030-01-01T18:00:00` - has a time of day";
        "46022.99998842593", "`2025-12-31T23:59:59` - has", "`2030-01-01T23:59:59` - has";
        "2957003", "9995-12-30", "9999-12-31";
        "2957004", "9995-12-31", no_date;
        "2958465", "9999-12-31", no_date;
        "2958466", no_date, no_date;
        "1e300", no_date, no_date;
    ];
    for (serial, of_1900, of_1904) in cases {
        for (properties, expected) in [("", of_1900), (" date1904=\"1\"", of_1904)] {
            let rows = rows(&[&["id", "end_date"], &["7", &day(serial)]]);
            let shown = shown_first::<ConferenceFields>(
                properties,
                &[("conferences", &rows, "")],
                Bounds::default(),
            );
            assert!(shown.contains(expected), "{serial}{properties}: {shown}");
            let is_date = expected.len() == 10;
            let found = shown.starts_with(&format!("2:7 end_date=\"{expected}\""));
            assert_eq!(found, is_date, "{serial}: {shown}");
        }
    }
    // A date in ISO 8601 is the same in both calendars.
    for properties in ["", " date1904=\"1\""] {
        let rows = rows(&[
            &["id", "end_date"],
            &["7", "<c s=\"1\" t=\"d\"><v>2026-03-15</v></c>"],
        ]);
        let shown = shown_first::<ConferenceFields>(
            properties,
            &[("conferences", &rows, "")],
            Bounds::default(),
        );
        assert_eq!(shown, "2:7 end_date=\"2026-03-15\"\n", "{properties}");
    }
}

#[test]
fn built_in_formats_are_known() {
    let (day, number) = (
        "2:7 end_date=\"2026-03-15\"",
        "`46096` - is the number of a day",
    );
    let (percentage, part) = (
        "shows a percentage, in the format `0%`",
        "shows only a part of the date, in the format",
    );
    let expected = [
        number, day, number, number, percentage, part, day, number, number, part, number, number,
    ];
    for (style, (format, expected)) in STYLES.iter().zip(expected).enumerate() {
        let cell = format!("<c s=\"{style}\"><v>46096</v></c>");
        let rows = rows(&[&["id", "end_date"], &["7", &cell]]);
        let shown =
            shown_first::<ConferenceFields>("", &[("conferences", &rows, "")], Bounds::default());
        assert!(shown.contains(expected), "{format}: {shown}");
    }
}

#[test]
fn each_sheet_has_its_own_columns_and_links() {
    let link = |cell: &str, id: &str| {
        format!("<hyperlinks><hyperlink ref=\"{cell}\" r:id=\"{id}\"/></hyperlinks>")
    };
    let first = rows(&[&["url", "id", "name"], &["a", "7", "A"]]);
    let second = rows(&[
        &["id", "name", "url"],
        &["7", "B", "b"],
        &["8", "C", "https://c.org"],
    ]);
    let (first_links, second_links) = (link("A2", "a"), link("C2", "a"));
    let sheets: &[SheetParts<'_>] = &[
        ("organizations", &first, &first_links),
        ("conferences", &second, &second_links),
        ("tags", "", ""),
    ];
    let mut workbook = workbook("", sheets, &Bounds::default());
    let chosen = workbook.choose(Some(RowKind::Tags), &[]).unwrap();
    let kinds = chosen.sheets.iter();
    let kinds: Vec<(RowKind, &str)> = kinds.map(|(kind, sheet)| (*kind, &**sheet)).collect();
    let expected = [
        (RowKind::Organizations, "organizations"),
        (RowKind::Conferences, "conferences"),
        (RowKind::Tags, "tags"),
    ];
    assert_eq!(kinds, expected);
    let [(_, first), (_, second), _] = &*chosen.sheets else {
        panic!("three sheets")
    };
    let rows = shown::<OrganizationFields>(&mut workbook, first, Bounds::default());
    assert_eq!(rows, "2:7 name=\"A\" url=\"https://a0.org/\"\n");
    assert_eq!(
        shown::<ConferenceFields>(&mut workbook, second, Bounds::default()),
        "2:7 name=\"B\" url=\"https://a1.org/\"\n3:8 name=\"C\" url=\"https://c.org\"\n"
    );
}

#[test]
fn links_are_found_in_any_order() {
    // Single cells come before ranges, and the first of two ranges counts.
    let links = "<hyperlinks><hyperlink ref=\"B4\" r:id=\"c\"/><hyperlink ref=\"B2\" r:id=\"a\"/>\
                 <hyperlink ref=\"B5:B6\" r:id=\"b\"/><hyperlink ref=\"B6:B7\" r:id=\"a\"/>\
                 <hyperlink ref=\"B3\" location=\"Sheet2!A1\"/></hyperlinks>";
    let rows = rows(&[
        &["id", "url"],
        &["2", "x"],
        &["3", ""],
        &["4", "x"],
        &["5", "x"],
        &["6", "x"],
        &["7", "x"],
    ]);
    let shown = shown_first::<OrganizationFields>(
        "",
        &[("organizations", &rows, links)],
        Bounds::default(),
    );
    let expected: String = [(2, "a"), (4, "c"), (5, "b"), (6, "b"), (7, "a")]
        .map(|(id, letter)| format!("{id}:{id} url=\"https://{letter}0.org/\"\n"))
        .concat();
    assert_eq!(shown.replace("3:3 url=null\n", ""), expected);
}

#[test]
fn merged_cells_are_found_in_any_order() {
    let rows = rows(&[
        &["id", "name"],
        &["2", "x"],
        &["3", "x"],
        &["4", "x"],
        &["5", "x"],
        &["6", "x"],
        &["7", "x"],
    ]);
    let cases = cases![
        "<mergeCell ref=\"A3:A5\"/>", "2,6,7 f:3 A3:A5,f:4 A3:A5,f:5 A3:A5";
        // A short range within a long one, and behind it.
        "<mergeCell ref=\"A2:A5\"/><mergeCell ref=\"B3:B3\"/>", "6,7 f:2 A2:A5,f:3 A2:A5,f:4 A2:A5,f:5 A2:A5";
        "<mergeCell ref=\"B7:C7\"/><mergeCell ref=\"A2:B3\"/>", "4,5,6 f:2 A2:B3,f:3 A2:B3,f:7 B7:C7";
        "<mergeCell ref=\"A1:B1\"/>", "2,3,4,5,6,7 ";
    ];
    for (ranges, expected) in cases {
        let after = format!("<mergeCells>{ranges}</mergeCells>");
        let shown = shown_first::<OrganizationFields>(
            "",
            &[("organizations", &rows, &after)],
            Bounds::default(),
        );
        let (mut read, mut refused) = (Vec::new(), Vec::new());
        for line in shown.lines() {
            match line.split_once(": the cells ") {
                Some((position, rest)) => {
                    let merged =
                        format!("{position} {}", rest.split_once(" are merged").unwrap().0);
                    refused.push(merged);
                }
                None => read.push(line.split_once(':').unwrap().0),
            }
        }
        let found = format!("{} {}", read.join(","), refused.join(","));
        assert_eq!(found, expected, "{ranges}: {shown}");
    }
}

#[test]
fn the_length_of_a_row_is_bounded_and_not_that_of_all_rows() {
    let bounds = Bounds {
        line_bytes: 8,
        ..Bounds::default()
    };
    let rows = rows(&[
        &["id", "name"],
        &["2", "1234567"],
        &["3", "12345678"],
        &["4", "1234567"],
        &["5", "123"],
        &["123456789", "x"],
    ]);
    let shown = shown_first::<OrganizationFields>("", &[("organizations", &rows, "")], bounds);
    assert_eq!(
        shown,
        "2:2 name=\"1234567\"\n4:4 name=\"1234567\"\n5:5 name=\"123\"\n\
         f:3: the line is longer than 8 bytes; correct it\n\
         f:6: the line is longer than 8 bytes; correct it"
    );
}

#[test]
fn apostrophes_and_quotes_are_kept() {
    let cases = [
        ("O&apos;Hara&apos;s", "O'Hara's"),
        ("O'Hara", "O'Hara"),
        ("&quot;A&quot; &amp; &lt;B&gt;", "\\\"A\\\" & <B>"),
        ("O&#39;Hara &#x2019;", "O'Hara ’"),
        ("<![CDATA['A' & \"B\"]]>", "'A' & \\\"B\\\""),
        ("_x0027_A_x0022_", "'A\\\""),
        ("''=x", "'=x"),
    ];
    for (text, expected) in cases {
        let rows = rows(&[&["id", "name"], &["7", text]]);
        let shown = shown_first::<OrganizationFields>(
            "",
            &[("organizations", &rows, "")],
            Bounds::default(),
        );
        assert_eq!(shown, format!("2:7 name=\"{expected}\"\n"), "{text}");
    }
}
