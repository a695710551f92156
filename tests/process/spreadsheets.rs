//! Tables of text as curators have them: each is imported correctly, or refused with one line that names the remedy.

use serde_json::Value;

use super::site::Site;

/// The result of an import.
#[derive(Clone, Copy, Debug)]
pub enum Then<'a> {
    /// The stored rows, by id, with some of their members.
    Stored(&'a [&'a str]),
    /// The same, and a part of a warning.
    Warned(&'a [&'a str], &'a str),
    /// The only line of the error.
    Refused(&'a str),
}
use Then::{Refused, Stored, Warned};

/// Imports a file into an empty database, and checks the result.
pub fn check(name: &str, content: &[u8], options: &str, then: Then<'_>) {
    let site = Site::new();
    site.write(name, content);
    let mut args = vec!["import", name, "--create"];
    args.extend(options.split_whitespace());
    let done = site.run(&args);
    let told = format!(
        "{name} {options}: {:.300?} {then:?}: {done:?}",
        String::from_utf8_lossy(content)
    );
    let rows = match then {
        Stored(rows) => {
            // Most of these tables have no year.
            let is_warning = |line: &&str| {
                line.contains("warning") && !line.contains(": year: is missing, though")
            };
            assert_eq!(done.stderr.lines().find(is_warning), None, "{told}");
            rows
        }
        Warned(rows, warning) => {
            assert!(done.stderr.contains("warning: "), "{told}");
            assert!(done.stderr.contains(warning), "{told}");
            rows
        }
        Refused(line) => {
            let is_summary = |line: &str| {
                line.starts_with("error: ") && line.contains(" fault") && line.contains("; nothing")
            };
            let lines = done.stderr.lines();
            let lines: Vec<&str> = lines.filter(|line| !is_summary(line)).collect();
            assert_eq!((lines, done.code), (vec![line], Some(1)), "{told}");
            assert!(!site.db().exists(), "{told}");
            return;
        }
    };
    assert_eq!(done.code, Some(0), "{told}");
    site.json(["export", "out"]);
    let exported = ["conferences", "journals", "organizations", "tags"]
        .map(|stem| std::fs::read_to_string(site.path(&format!("out/{stem}.jsonl"))).unwrap())
        .concat();
    assert_eq!(exported.lines().count(), rows.len(), "{told}: {exported}");
    for (row, stored) in rows.iter().zip(exported.lines()) {
        let (expected, stored): (Value, Value) = (
            serde_json::from_str(row).unwrap(),
            serde_json::from_str(stored).unwrap(),
        );
        assert!(has_members(&stored, &expected), "{row}: {told}: {stored}");
    }
}

/// Whether a value has these members, among others. Values that are no objects must be equal.
fn has_members(value: &Value, expected: &Value) -> bool {
    match (value, expected) {
        (Value::Object(members), Value::Object(wanted)) => wanted.iter().all(|(name, wanted)| {
            members
                .get(name)
                .is_some_and(|member| has_members(member, wanted))
        }),
        (Value::Array(items), Value::Array(wanted)) => {
            items.len() == wanted.len()
                && items
                    .iter()
                    .zip(wanted)
                    .all(|(item, wanted)| has_members(item, wanted))
        }
        _ => value == expected,
    }
}

pub const ESMO: &str = r#"{"id":1,"name":"ESMO","url":"https://esmo.org"}"#;
const DATED: &str = "id;name;start_date;start_date_status;abstract_due_date_status;late_breaking_due_date_status\n1;A;";

#[test]
fn text_tables_are_imported_or_refused_with_a_remedy() {
    let utf_16 = |text: &str| -> Vec<u8> {
        format!("\u{feff}{text}")
            .encode_utf16()
            .flat_map(u16::to_le_bytes)
            .collect()
    };
    let dated = |date: &str| format!("{DATED}{date};check;not_found;not_found\r\n").into_bytes();
    let (org, stored) = ("organizations.csv", Stored(&[ESMO]));
    let cases: Vec<(&str, Vec<u8>, &str, Then<'_>)> = Vec::from(cases![
        org, "\u{feff}ID; Name ;U-R-L\r\n1;ESMO;https://esmo.org\r\n".into(), "", stored;
        org, utf_16("id\tname\turl\r\n1\tESMO\thttps://esmo.org\r\n"), "", stored;
        org, "Nr;Titel;Seite\n1;ESMO;https://esmo.org\n".into(), "--map Nr=id --map Titel=name --map Seite=url", stored;
        "Verbände_final.v2.csv", "id;name;url\n1;ESMO;https://esmo.org\n".into(), "--dataset organizations", stored;
        "list", format!("\u{feff}{ESMO}\n").into(), "--dataset organizations", stored;
        "list", format!("{{\"a\":[{ESMO}]}}").into(), "--dataset organizations --format json", stored;
        "list.json", format!("{{\"items\":[{ESMO}]}}").into(), "--dataset organizations", stored;
        org, "Societies 2026;;\r\n;;\r\nid;name;url\r\n1;ESMO;https://esmo.org\r\n".into(), "",
            Warned(&[ESMO], "organizations.csv:3: the rows above the header (line 1) are ignored");
        org,
            "id;Titel;Seite\n1;A;x\n".into(),
            "",
            Refused(
                "organizations.csv:1: Titel, Seite: unknown column; known names are `id`, `name`, `abbv`, `type`, \
                 `url`; use --map 'NAME=FIELD' if a field has another name, or --ignore-unknown to \
                 ignore the rest",
            );
        org, "id,name,Remarks\n1,ESMO,x\n".into(), "--ignore-unknown",
            Warned(&[r#"{"id":1,"name":"ESMO"}"#], "organizations.csv:1: the unknown column `Remarks` is ignored");
        "journals.jsonl",
            "{\"id\":1,\"name\":\"N\",\"organizations\":[{\"id\":2,\"name\":\"A\",\"abbv\":null,\"type\":null,\"url\":null,\
             \"records\":3}],\"x\":1}\n"
                .into(),
            "--ignore-unknown",
            Warned(
                &[r#"{"id":1}"#, r#"{"id":2,"name":"A"}"#],
                "the unknown fields `x`, `organizations.records` are ignored",
            );
        org,
            b"id;name\n1;Soci\xe9t\xe9\n".to_vec(),
            "",
            Refused(
                "organizations.csv:2: name: `Soci\u{fffd}t\u{fffd}` - is not UTF-8, but probably windows-1252; save the file \
                 again: in Excel as `CSV UTF-8`, in LibreOffice with the character set `Unicode (UTF-8)`, or as .xlsx",
            );
        org, "id,name\n1,ESMO, Lugano\n2,ASCO, Alexandria\n".into(), "",
            Refused(
                "organizations.csv:2, 3: has 3 cells, but the header has 2; put cells that contain commas or line ends in quotes",
            );
        org, "id,name,Website\n1,ESMO,https://esmo.org\n".into(), "--map Web=url --ignore-unknown",
            Refused("error: --map 'Web=url': no file has a column or field `Web`, or other mappings name it more exactly; write the name as it is in the file");
        "list.csv",
            "id,name\n1,A\n".into(),
            "",
            Refused(
                "error: list.csv: the file name does not say what it contains; add `--dataset conferences`, for \
                 example, or name it `conferences`, `journals`, `organizations` or `tags` with `.xlsx`, `.csv`, \
                 `.jsonl` or `.json`",
            );
        "tags.ods",
            b"PK\x03\x04".to_vec(),
            "",
            Refused(
                "error: cannot read tags.ods: its zip archive is damaged: invalid Zip archive: Could not find EOCD; save it \
                 again as .xlsx or as CSV in UTF-8",
            );
        "tags.csv",
            "<table><tr><td>id</td></tr></table>".into(),
            "",
            Refused(
                "error: cannot read tags.csv: it is HTML or XML, which is not read; open it in a spreadsheet program, and \
                 save it as .xlsx",
            );
        "conferences.txt", b"BEGIN:VCALENDAR\nEND:VCALENDAR\n".to_vec(), "--dataset conferences",
            Refused(
                "error: cannot read conferences.txt: it is a calendar (.ics), which is not read; export it as CSV, with a line for each event",
            );
        "journals.csv", "id;name;impact_factor\n1;A;12,5\n".into(), "", Stored(&[r#"{"impact_factor":12.5}"#]);
        "conferences.csv",
            dated("03/04/2026"),
            "",
            Refused(
                "conferences.csv:2: start_date: `03/04/2026` - may be day/month or month/day; write a date as YYYY-MM-DD, such \
                 as 2026-03-15, or set the order with --dates dmy or --dates mdy",
            );
    ]);
    for (name, content, options, then) in cases {
        check(name, &content, options, then);
    }
}

#[test]
fn faults_of_one_kind_are_one_line() {
    let rows: String = (1..=1_100)
        .map(|id| format!("{{\"id\":{id},\"Foo\":1,\"Bar\":2}}\n"))
        .collect();
    let site = Site::new();
    site.write("journals.jsonl", rows);
    let done = site.run(["import", "journals.jsonl", "--create"]);
    let lines: Vec<&str> = done.stderr.lines().collect();
    assert_eq!(lines.len(), 2, "{done:?}");
    assert!(
        lines[0].starts_with(
            "journals.jsonl:1, 2, 3 and 1,097 more: Foo, Bar: unknown field; known names are `id`"
        ),
        "{done:?}"
    );
    assert!(lines[1].ends_with("--all-faults lists each."), "{done:?}");
    let all = site.run(["import", "journals.jsonl", "--create", "--all-faults"]);
    assert_eq!(all.stderr.lines().count(), 2 * 1_100 + 1);
    let json = site
        .run(["import", "journals.jsonl", "--create", "--json"])
        .json();
    assert_eq!(json["errors"].as_array().unwrap().len(), 2 * 1_100);
    assert_eq!(json["error_count"], 2 * 1_100);
    assert_eq!(json["groups"][0]["count"], 2 * 1_100);
}

#[test]
fn a_file_that_is_refused_as_a_whole_is_reported_like_bad_rows() {
    let site = Site::new();
    site.write("list.csv", "id,name\n1,A\n");
    site.write("journals.pdf", "%PDF-1.7");
    site.write("journals.xlsx", "PK\u{3}\u{4} and no more");
    site.write("empty/README.md", "");
    site.write("wrong.toml", "[set]\n\nyear = \"soon\"\n");
    site.write("broken.toml", "match = 5\n");
    let cases = cases![
        "gone.csv --dataset tags", "gone.csv", "No such file";
        "gone/journals.csv", "gone/journals.csv", "No such file";
        "journals.pdf", "journals.pdf", "it is a PDF document";
        "list.csv", "list.csv", "the file name does not say what it contains";
        "journals.xlsx", "journals.xlsx", "its zip archive is damaged";
        "empty", "empty", "contains nothing to import";
        "list.csv --recipe broken.toml", "broken.toml", "broken.toml:1: ";
        "list.csv --recipe gone.toml", "gone.toml", "No such file";
        "list.csv --recipe wrong.toml", "", "wrong.toml:3: `soon` is not a value of year";
        "list.csv --map a=b", "", "--map 'a=b': there is no field `b`";
        "-", "", "needs --dataset";
    ];
    for command in ["import --create", "lint"] {
        for (line, file, message) in cases {
            let args = command.split(' ').chain(line.split(' '));
            let done = site.run(args.chain(["--json"]));
            let told = done.json();
            let error = &told["errors"][0];
            assert_eq!(done.code, Some(1), "{line}: {told}");
            assert_eq!(told["committed"], false, "{line}: {told}");
            assert_eq!(told["error_count"], 1, "{line}: {told}");
            assert_eq!(error["file"].as_str().unwrap_or_default(), file, "{told}");
            assert!(
                error["message"].as_str().unwrap().contains(message)
                    && told["error"] == error["message"],
                "{line}: {told}"
            );
        }
    }
    assert!(!site.db().exists());
}
