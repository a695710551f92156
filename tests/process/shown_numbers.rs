//! Cells of workbooks that show another value than they store, hyperlinks, and the forms of sheets.

use rust_xlsxwriter::{Format, Formula, Workbook, Worksheet};

use super::spreadsheets::Then::{Refused, Stored, Warned};
use super::spreadsheets::{ESMO, Then, check};
use super::workbook_parts::Parts;

/// A workbook with one sheet, which has a header.
fn book(name: &str, header: &[&str], fill: impl FnOnce(&mut Worksheet)) -> Vec<u8> {
    let mut workbook = Workbook::new();
    let sheet = workbook.add_worksheet().set_name(name).unwrap();
    for (column, cell) in (0..).zip(header) {
        sheet.write_string(0, column, *cell).unwrap();
    }
    fill(sheet);
    workbook.save_to_buffer().unwrap()
}

/// A journal with a number in a column, in this format.
fn journal(column: &str, number: f64, format: &str) -> Vec<u8> {
    book("journals", &["id", "name", column], |sheet| {
        sheet.write_number(1, 0, 1).unwrap();
        sheet.write_string(1, 1, "A").unwrap();
        sheet
            .write_number_with_format(1, 2, number, &Format::new().set_num_format(format))
            .unwrap();
    })
}

#[test]
fn numbers_are_stored_as_the_sheet_shows_them() {
    let cases: [(&str, f64, &str, Then<'_>); 6] = cases![
        "impact_factor", 0.1 + 0.2, "0.0", Stored(&[r#"{"impact_factor":0.3}"#]);
        "publishing_embargo_months", 12.0, "0 \"months\"", Stored(&[r#"{"publishing":{"embargo_months":12}}"#]);
        "abbv", 2026.0, "0", Stored(&[r#"{"abbv":"2026"}"#]);
        "issn_online", 3_785_955.0, "0",
            Warned(&[r#"{"issn_online":"0378-5955"}"#], "it is stored as `0378-5955`, whose check digit fits");
        "publishing_embargo_months",
            1.0,
            "0 \"years\"",
            Refused(
                "book.xlsx[journals]:2: publishing_embargo_months: `1` - the cell C2 shows other signs than those of \
                 a number, in the format `0 \"years\"`; format the cell as a number without other signs, and check its value",
            );
        "issn_print",
            280_836.0,
            "00000000",
            Refused(
                "book.xlsx[journals]:2: issn_print: `280836` - is a number in the format `00000000`; format the cell as \
                 text, and enter what it shows",
            );
    ];
    for (column, number, format, then) in cases {
        check("book.xlsx", &journal(column, number, format), "", then);
    }
}

/// A conference with a number in this format as its start date.
fn conference(number: f64, format: &str) -> Vec<u8> {
    let header = words![
        "id" "name" "start_date" "start_date_status" "abstract_due_date_status" "late_breaking_due_date_status"
    ];
    book("conferences", &header, |sheet| {
        sheet.write_number(1, 0, 1).unwrap();
        sheet.write_string(1, 1, "A").unwrap();
        sheet
            .write_number_with_format(1, 2, number, &Format::new().set_num_format(format))
            .unwrap();
        for (column, status) in (3..).zip(["confirmed", "not_found", "not_found"]) {
            sheet.write_string(1, column, status).unwrap();
        }
    })
}

/// Excel stores its currency formats under built-in numbers, with the symbol of the country.
#[test]
fn a_workbook_may_redefine_a_built_in_format() {
    let under = |number: &str, book: Vec<u8>| {
        let renumbered =
            |text: &str| text.replace("numFmtId=\"164\"", &format!("numFmtId=\"{number}\""));
        Parts::of(&book).changed("xl/styles.xml", renumbered).pack()
    };
    let price = |format: &str| journal("publishing_apc_usd", 3_000.0, format);
    let euros = "book.xlsx[journals]:2: publishing_apc_usd: `3000` - the cell C2 shows an amount that is not in US dollars, in \
                 the format `#,##0\\ [$€-407]`; write one in US dollars in a cell with a number format";
    let month = "book.xlsx[conferences]:2: start_date: `2026-03-01` - the cell C2 shows only a part of the date, in the format \
                 `mmm yy`; write the date in a cell that shows day, month and year, such as 2026-03-15";
    let day = &[r#"{"id":1,"start_date":"2026-03-15"}"#];
    let cases = cases![
        under("44", price("#,##0\\ [$€-407]")), Refused(euros);
        under("44", price("[$$-409]#,##0")), Stored(&[r#"{"id":1}"#]);
        under("14", conference(46_082.0, "mmm yy")), Refused(month);
        under("17", conference(46_096.0, "dd.mm.yyyy")), Stored(day);
    ];
    for (content, then) in cases {
        check("book.xlsx", &content, "", then);
    }
}

/// An organization whose cells are filled in.
fn organization(fill: impl FnOnce(&mut Worksheet)) -> Vec<u8> {
    book("organizations", &["id", "name", "url"], |sheet| {
        sheet.write_number(1, 0, 1).unwrap();
        sheet.write_string(1, 1, "ESMO").unwrap();
        fill(sheet);
    })
}

#[test]
fn a_link_is_stored_by_its_target() {
    let link = |text: &'static str, target: &'static str| {
        organization(|sheet| {
            sheet.write_url_with_text(1, 2, target, text).unwrap();
        })
    };
    let formula = |text: &'static str, formula: &'static str| {
        organization(|sheet| {
            sheet
                .write_formula(1, 2, Formula::new(formula).set_result(text))
                .unwrap();
        })
    };
    let named = organization(|sheet| {
        sheet
            .write_url_with_text(1, 1, "https://esmo.org/about", "ESMO")
            .unwrap();
        sheet.write_string(1, 2, "https://esmo.org").unwrap();
    });
    let several = {
        let book = organization(|sheet| {
            sheet
                .write_url_with_text(1, 2, "https://esmo.org", "website")
                .unwrap();
            sheet.write_number(2, 0, 2).unwrap();
            sheet.write_string(2, 1, "ASCO").unwrap();
            sheet.write_string(2, 2, "website").unwrap();
        });
        Parts::of(&book)
            .changed("xl/worksheets/sheet1.xml", |text| {
                text.replace("ref=\"C2\"", "ref=\"C2:C3\"")
            })
            .pack()
    };
    let conflict = "book.xlsx[organizations]:2: url: `https://esmo.org` - shows one address and links to another, \
                    `https://asco.org`; remove the link, or write the right address in both";
    let no_page = "book.xlsx[organizations]:2: url: `see there` - links to `#Sheet2!A1`, which is not a web address (http or \
                   https); write the address in the cell, and remove the link";
    let cases: Vec<(Vec<u8>, Then<'_>)> = Vec::from(cases![
        link("our website", "https://esmo.org"), Stored(&[ESMO]);
        link("https://esmo.org", "https://asco.org"), Refused(conflict);
        link("see there", "internal:Sheet2!A1"), Refused(no_page);
        link("part", "https://esmo.org/a#b"), Stored(&[r#"{"url":"https://esmo.org/a#b"}"#]);
        named, Stored(&[ESMO]);
        several, Stored(&[ESMO, r#"{"id":2,"url":"https://esmo.org"}"#]);
        formula("our website", "=HYPERLINK(\"https://esmo.org\",\"our website\")"), Stored(&[ESMO]);
    ]);
    for (content, then) in cases {
        check("book.xlsx", &content, "", then);
    }
}

/// Only the first cell of a shared formula stores its text.
#[test]
fn a_link_of_a_shared_formula_is_one_in_each_of_its_cells() {
    let linked = [
        r#"{"url":"https://esmo.org"}"#,
        r#"{"id":2,"url":"https://esmo.org"}"#,
    ];
    let refused = "book.xlsx[organizations]:3: url: `our website` - links to `HYPERLINK(A1)`, which is not a web \
                   address (http or https); write the address in the cell, and remove the link";
    let both = [
        r#"{"url":"https://esmo.org"}"#,
        r#"{"id":2,"url":"our website"}"#,
    ];
    let warning = "book.xlsx[organizations]:3: url: `our website` - is not a website address";
    // (the shared formula of the first cell, the number in the second one, the result for the second one)
    let cases = cases![
        "HYPERLINK(&quot;https://esmo.org&quot;,&quot;our website&quot;)", "7", Stored(&linked);
        "HYPERLINK(A1)", "7", Refused(refused);
        "HYPERLINK(&quot;https://esmo.org&quot;,&quot;our website&quot;)", "8", Warned(&both, warning);
        "LOWER(&quot;https://esmo.org&quot;)", "7", Warned(&both, warning);
    ];
    for (formula, number, then) in cases {
        let row = |id: u8, formula: &str, shown: &str| {
            format!(
                "<row><c><v>{id}</v></c><c t=\"inlineStr\"><is><t>ESMO {id}</t></is></c><c t=\"str\">{formula}<v>{shown}</v></c></row>"
            )
        };
        let header = ["id", "name", "url"]
            .map(|name| format!("<c t=\"inlineStr\"><is><t>{name}</t></is></c>"));
        let first = format!("<f t=\"shared\" ref=\"C2:C3\" si=\"7\">{formula}</f>");
        let second = format!("<f t=\"shared\" si=\"{number}\"/>");
        let rows = [
            row(1, &first, "https://esmo.org"),
            row(2, &second, "our website"),
        ]
        .concat();
        let sheet = format!(
            "<worksheet><sheetData><row>{}</row>{rows}</sheetData></worksheet>",
            header.concat()
        );
        check("book.xlsx", &Parts::of_sheet(sheet).pack(), "", then);
    }
}

/// The forms in which other programs write a sheet.
#[test]
fn sheets_are_read_in_any_form() {
    let sheet = |rows: &str| {
        Parts::of_sheet(format!(
            "<worksheet><sheetData>{rows}</sheetData></worksheet>"
        ))
    };
    let inline = |text: &str| format!("<c t=\"inlineStr\"><is>{text}</is></c>");
    let header = format!(
        "<row>{}{}{}</row>",
        inline("<t>id</t>"),
        inline("<t>name</t>"),
        inline("<t>url</t>")
    );
    let row = |name: &str| {
        sheet(&format!(
            "{header}<row><c><v>1</v></c>{}</row>",
            inline(name)
        ))
    };
    let stored = |name: &str| format!(r#"{{"id":1,"name":"{name}"}}"#);
    let cases = cases![
        "without positions", row("<t>ESMO</t>"), "ESMO";
        "runs", row("<r><rPr><b/></rPr><t>ES</t></r><r><t>MO</t></r>"), "ESMO";
        "blanks that count", row("<t xml:space=\"preserve\">ESMO </t>"), "ESMO ";
        "prefixes and the strict namespaces",
        row("<t>ESMO</t>")
            .changed("xl/worksheets/sheet1.xml", |text| {
                let text = text
                    .replace("</", "</x:")
                    .replace('<', "<x:")
                    .replace("<x:/x:", "</x:");
                text.replacen(
                    "<x:worksheet",
                    "<x:worksheet xmlns:x=\"http://purl.oclc.org/ooxml/spreadsheetml/main\"",
                    1,
                )
            })
            .changed("xl/_rels/workbook.xml.rels", |text| {
                text.replace(
                    "http://schemas.openxmlformats.org/officeDocument/2006",
                    "http://purl.oclc.org/ooxml/officeDocument",
                )
            }),
        "ESMO";
        "absolute targets and other cases",
            row("<t>ESMO</t>").changed("xl/_rels/workbook.xml.rels", |text| { text.replace("worksheets/sheet1.xml", "/xl/Worksheets/Sheet1.XML") }),
            "ESMO";
    ];
    for (what, parts, name) in cases {
        println!("{what}");
        let stored = stored(name);
        let stored: &[&str] = &[&stored];
        let then = if name.ends_with(' ') {
            Warned(stored, "has blanks at an end")
        } else {
            Stored(stored)
        };
        check("book.xlsx", &parts.pack(), "", then);
    }
    let chart = row("<t>ESMO</t>")
        .changed("xl/workbook.xml", |text| {
            text.replace("</sheets>", "<sheet name=\"tags\" sheetId=\"2\" r:id=\"rId9\"/></sheets>")
        })
        .changed("xl/_rels/workbook.xml.rels", |text| {
            let kind = "http://schemas.openxmlformats.org/officeDocument/2006/relationships/chartsheet";
            text.replace(
                "</",
                &format!("<Relationship Id=\"rId9\" Type=\"{kind}\" Target=\"chartsheets/sheet1.xml\"/></"),
            )
        });
    check(
        "book.xlsx",
        &chart.pack(),
        "",
        Warned(&[&stored("ESMO")], "skipped `tags`"),
    );
    let swapped = sheet(&format!(
        "{header}<row r=\"2\">{}<c r=\"A2\"><v>1</v></c></row>",
        inline("<t>ESMO</t>").replace("<c ", "<c r=\"B2\" ")
    ));
    check("book.xlsx", &swapped.pack(), "", Stored(&[&stored("ESMO")]));
}
