//! A dictionary of libFuzzer: the names of fields, columns and parameters, and values that mean something.

use std::collections::BTreeSet;
use std::fmt::Write;

use medfeed::contract::CONTRACT;
use medfeed::model::{ConferenceFields, Fields, JournalFields, OrganizationFields, TagFields};

const VALUES: &[&str] = &[
    // Statuses, dates, times and numbers.
    "confirmed",
    "estimated",
    "copied",
    "check",
    "not_found",
    "2026-02-29",
    "29.02.2024",
    "March 15, 2026",
    "3/4/2026",
    "15-mar-2026",
    "9999-12-31T23:59:59Z",
    "9007199254740991",
    "9007199254740992",
    "1e3",
    "-0.0",
    "1,200.50",
    "1.200,50",
    "US$",
    "true",
    "FALSE",
    "null",
    "deleted",
    "topic-area: Breast",
    "; ",
    "\r\n",
    "\"\"",
    "\u{feff}",
    "\u{130}",
    "\u{301}",
    "\\u0000",
    "\\ud83d\\ude00",
    // Requests.
    "&limit=",
    "?",
    "%00",
    "%C3%B4",
    "%FF",
    "{cursor}",
    "{token}",
    "diff",
    "jsonl",
    "csv",
    "if-none-match: ",
    "if-range: ",
    "range: bytes=0-",
    "bytes=-1",
    "accept-encoding: gzip",
    ";q=0",
    "accept: text/html",
    "authorization: Bearer ",
    "origin: ",
    "no-key: 1",
    // Workbooks.
    "<c r=\"A2\" s=\"1\" t=\"",
    "inlineStr",
    "<is><t>",
    "</t></is></c>",
    "<r><t xml:space=\"preserve\">",
    "<rPh",
    "<f>",
    "<v>",
    "t=\"e\"",
    "t=\"d\"",
    "<mergeCell ref=\"A1:B2\"/>",
    "<hyperlink ref=\"C2\" r:id=\"rId1\"/>",
    "<cols><col min=\"1\" max=\"2\" hidden=\"1\"/></cols>",
    "hidden=\"1\"",
    "state=\"hidden\"",
    "date1904=\"1\"",
    "numFmtId=\"",
    "formatCode=\"",
    "[$-409]d\\-mmm\\-yyyy;@",
    "#,##0.00_);[Red]",
    "0.00E+00",
    "[>=100]",
    "# ?/?",
    "[h]:mm",
    "General",
    "&#x10FFFF;",
    "&amp;",
    "<![CDATA[",
    "]]>",
    "<!--",
    "<?xml version=\"1.0\" encoding=\"UTF-16\"?>",
    "xmlns:x=\"http://schemas.openxmlformats.org/spreadsheetml/2006/main\"",
    "TargetMode=\"External\"",
    "_x000D_",
];

/// Returns the lines of the dictionary.
pub fn dictionary() -> String {
    let mut words: BTreeSet<String> = VALUES.iter().map(|word| (*word).to_owned()).collect();
    for table in [
        ConferenceFields::table(),
        JournalFields::table(),
        OrganizationFields::table(),
        TagFields::table(),
    ] {
        for field in &table.fields {
            words.extend(field.name.split('.').map(|name| format!("\"{name}\":")));
            words.insert(field.column.clone());
        }
    }
    for endpoint in CONTRACT.endpoints {
        words.insert(endpoint.pattern.to_owned());
        words.extend(
            endpoint
                .all_parameters()
                .map(|parameter| format!("&{}=", parameter.name)),
        );
    }
    let mut lines = String::new();
    for word in words {
        let escaped: String = word.bytes().map(|byte| format!("\\x{byte:02X}")).collect();
        writeln!(lines, "\"{escaped}\"").expect("a line");
    }
    lines
}
