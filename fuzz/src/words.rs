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
    "9999-12-31T23:59:59Z",
    "9007199254740991",
    "9007199254740992",
    "1e3",
    "-0.0",
    "true",
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
