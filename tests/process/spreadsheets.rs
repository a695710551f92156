//! Tables of text as curators have them: each is imported right, or refused with one line that says what to do.

use serde_json::Value;

use super::site::{Done, Site};

/// What an import leads to.
#[derive(Clone, Copy, Debug)]
pub enum Then<'a> {
    /// The stored rows, by id: members that they have among others.
    Stored(&'a [&'a str]),
    /// The same, and a piece of a warning.
    Warned(&'a [&'a str], &'a str),
    /// The only line about it.
    Refused(&'a str),
}
use Then::{Refused, Stored, Warned};

/// Imports a file into an empty database, and checks what that leads to.
pub fn check(name: &str, content: &[u8], options: &str, then: Then<'_>) {
    let site = Site::new();
    site.write(name, content);
    let mut args = vec!["import", name, "--create"];
    args.extend(options.split_whitespace());
    let done = site.run(&args);
    let told = format!("{name} {options}: {:.300?} {then:?}: {done:?}", String::from_utf8_lossy(content));
    match then {
        Stored(rows) => {
            // Most of these tables have no year.
            let is_warning = |line: &&str| line.contains("warning") && !line.contains(": year: is missing, though");
            assert_eq!(done.stderr.lines().find(is_warning), None, "{told}");
            check_stored(&site, &done, rows, &told);
        }
        Warned(rows, warning) => {
            assert!(done.stderr.contains("warning: ") && done.stderr.contains(warning), "{told}");
            check_stored(&site, &done, rows, &told);
        }
        Refused(line) => {
            assert_eq!(done.code, Some(1), "{told}");
            let lines: Vec<&str> = done.stderr.lines().filter(|line| !line.starts_with("error: 1 fault;")).collect();
            let lines: Vec<&str> = lines
                .into_iter()
                .filter(|line| !(line.starts_with("error: ") && line.contains("faults; nothing")))
                .collect();
            assert_eq!(lines, [line], "{told}");
            assert!(!site.db().exists(), "{told}");
        }
    }
}

fn check_stored(site: &Site, done: &Done, rows: &[&str], told: &str) {
    assert_eq!(done.code, Some(0), "{told}");
    site.json(["export", "out"]);
    let stored: Vec<Value> = ["conferences", "journals", "organizations", "tags"]
        .iter()
        .flat_map(|stem| {
            let text = std::fs::read_to_string(site.path(&format!("out/{stem}.jsonl"))).unwrap();
            text.lines().map(|line| serde_json::from_str(line).unwrap()).collect::<Vec<Value>>()
        })
        .collect();
    assert_eq!(stored.len(), rows.len(), "{told}: {stored:?}");
    for (row, stored) in rows.iter().zip(&stored) {
        let expected: Value = serde_json::from_str(row).unwrap();
        for (name, value) in expected.as_object().unwrap() {
            assert_eq!(&stored[name], value, "{name}: {told}: {stored}");
        }
    }
}

pub const ESMO: &str = r#"{"id":1,"name":"ESMO","url":"https://esmo.org"}"#;
const NOT_UTF8: &str = "is not UTF-8, but probably windows-1252; save the file again: in Excel as `CSV UTF-8`, in \
                        LibreOffice with the character set `Unicode (UTF-8)`, or as .xlsx";

/// A CSV of one conference with this date of beginning.
fn dated(date: &str) -> String {
    format!(
        "id;name;start_date;start_date_status;abstract_due_date_status;late_breaking_due_date_status\r\n\
         1;A;{date};check;not_found;not_found\r\n"
    )
}

#[test]
fn text_tables() {
    let utf_16 =
        |text: &str| -> Vec<u8> { format!("\u{feff}{text}").encode_utf16().flat_map(u16::to_le_bytes).collect() };
    let big_endian: Vec<u8> = "\u{feff}id\tname\n1\tESMO é\n".encode_utf16().flat_map(u16::to_be_bytes).collect();
    let org = "organizations.csv";
    let cases: Vec<(&str, Vec<u8>, &str, Then<'_>)> = vec![
        (org, "id,name,url\r\n1,ESMO,https://esmo.org\r\n".into(), "", Stored(&[ESMO])),
        (org, "\u{feff}id;name;url\r\n1;ESMO;https://esmo.org\r\n".into(), "", Stored(&[ESMO])),
        (org, "id\tname\turl\n1\tESMO\thttps://esmo.org\n".into(), "", Stored(&[ESMO])),
        (org, "id|name|url\n1|ESMO|https://esmo.org\n".into(), "", Stored(&[ESMO])),
        (org, "sep=;\r\nid;name;url\r\n1;ESMO;https://esmo.org\r\n".into(), "", Stored(&[ESMO])),
        (org, "\"sep=;\"\r\nid;name;url\r\n1;ESMO;https://esmo.org\r\n".into(), "", Stored(&[ESMO])),
        (org, utf_16("id\tname\turl\r\n1\tESMO\thttps://esmo.org\r\n"), "", Stored(&[ESMO])),
        (
            org,
            [utf_16("id\tname\r\n1\tES"), vec![0x34, 0xd8], utf_16("MO\r\n")[2..].to_vec()].concat(),
            "",
            Refused(
                "error: cannot read organizations.csv: line 2 contains damaged characters (UTF-16); correct it, and \
                 save the file as UTF-8",
            ),
        ),
        (org, "Nr;name;url\n1;ESMO;https://esmo.org\n".into(), "--map Nr=id", Stored(&[ESMO])),
        (org, "Nr;Titel;Seite\n1;ESMO;https://esmo.org\n".into(), "--map Nr=id --map Titel=name --map Seite=url", Stored(&[ESMO])),
        (
            "organizations.jsonl",
            "{\"Nr\":1,\"name\":\"ESMO\",\"url\":\"https://esmo.org\"}\n".into(),
            "--map Nr=id",
            Stored(&[ESMO]),
        ),
        (
            "organizations.jsonl",
            "{\"id\":1,\"name\":\"ESMO\",\"url\":\"https://esmo.org\"}\n{\"id\":2,\"Gone\":true}\n".into(),
            "--map Gone=deleted",
            Stored(&[ESMO]),
        ),
        (
            org,
            "id;Titel;Seite\n1;A;x\n".into(),
            "",
            Refused(
                "organizations.csv:1: Titel, Seite: unknown column; known names are `id`, `name`, `abbv`, `type`, \
                 `url`; use --map 'NAME=FIELD' if a field has another name, or --ignore-unknown to \
                 ignore the rest",
            ),
        ),
        (
            "conferences.csv",
            "name;year;start_date_status;abstract_due_date_status;late_breaking_due_date_status\nA;2026;Check;Not found;CHECK\n"
                .into(),
            "--match name,year",
            Stored(&[r#"{"id":1,"start_date_status":"check","abstract_due_date_status":"not_found"}"#]),
        ),
        (org, big_endian, "", Stored(&[r#"{"id":1,"name":"ESMO é"}"#])),
        (org, "id;name;url;;;\r\n1;ESMO;https://esmo.org;;;\r\n;;;;;\r\n;;;;;\r\n".into(), "", Stored(&[ESMO])),
        (org, "id,name,,url\n1,ESMO,,https://esmo.org\n".into(), "", Stored(&[ESMO])),
        (org, "ID, Name ,U-R-L\n1,ESMO,https://esmo.org\n".into(), "", Stored(&[ESMO])),
        (
            org,
            "id,name,url\r\n1,ESMO,https://esmo.org\n\r\n2,B,\n".into(),
            "",
            Stored(&[ESMO, r#"{"id":2,"name":"B"}"#]),
        ),
        (org, "\"id\";\"name\";\"url\"\n1.0;\"ESMO\";\"https://esmo.org\"\n".into(), "", Stored(&[ESMO])),
        (
            org,
            "id;name\n1;\"A; \"\"B\"\"\nC\"\n".into(),
            "",
            Refused(
                "organizations.csv:2: name: `A; \"B\"\\nC` - must not contain `; `, which separates items in the CSV export; use another sign",
            ),
        ),
        (
            org,
            "Societies 2026;;\r\n;;\r\nid;name;url\r\n1;ESMO;https://esmo.org\r\n".into(),
            "",
            Warned(&[ESMO], "organizations.csv:3: the rows above the header (line 1) are ignored"),
        ),
        (
            "rows.txt",
            "\u{feff}{\"id\":1,\"name\":\"ESMO\",\"url\":\"https://esmo.org\"}\n".into(),
            "--dataset organizations",
            Stored(&[ESMO]),
        ),
        (
            org,
            "Removed in 2026\nid,deleted\n1,TRUE\n".into(),
            "",
            Warned(&[], "organizations.csv:2: the rows above the header (line 1) are ignored"),
        ),
        (
            "journals.csv",
            "A title,\nid,updated_at\n1,x\n".into(),
            "",
            Refused("journals.csv:3: name: is required; give a text"),
        ),
        (
            org,
            "id,name\n1,ESMO\nTotal,1\n".into(),
            "",
            Refused("organizations.csv:3: id: `Total` - an id is a whole number from 1 to 9007199254740991"),
        ),
        (
            org,
            "id,name\n1,ESMO\n,1 society\n".into(),
            "",
            Refused("organizations.csv:3: id: is missing; give each row an id"),
        ),
        (org, "id,name,Website\n1,ESMO,https://esmo.org\n".into(), "--map Website=url", Stored(&[ESMO])),
        (
            org,
            "id,name,Remarks\n1,ESMO,x\n".into(),
            "--ignore-unknown",
            Warned(&[r#"{"id":1,"name":"ESMO"}"#], "organizations.csv:1: the unknown column `Remarks` is ignored"),
        ),
        (
            org,
            "id,nmae\n1,ESMO\n".into(),
            "",
            Refused(
                "organizations.csv:1: nmae: unknown column `nmae`; did you mean `name`? Then rename it, or add --map \
                 'nmae=name'",
            ),
        ),
        (
            org,
            "id,name,Remarks,Zweitname\n1,A,x,y\n2,B,x,y\n".into(),
            "",
            Refused(
                "organizations.csv:1: Remarks, Zweitname: unknown column; known names are `id`, `name`, `abbv`, \
                 `type`, `url`; use --map 'NAME=FIELD' if a field has another name, or --ignore-unknown \
                 to ignore the rest",
            ),
        ),
        (
            org,
            "id,name,Name\n1,A,B\n".into(),
            "",
            Refused("organizations.csv:1: Name: column `Name` appears twice; give each column once"),
        ),
        (
            org,
            "name,url\nESMO,https://esmo.org\n".into(),
            "",
            Refused(
                "organizations.csv:1: id: the column `id` is missing; the first row must name the columns, including \
                 `id`; a file without \
                 ids needs --match",
            ),
        ),
        (org, b"id;name\n1;Soci\xe9t\xe9\n".to_vec(), "", Refused("organizations.csv:2: name: NOT_UTF8")),
        (org, b"id;name;Stra\xdfe\n1;A;x\n".to_vec(), "", Refused("organizations.csv:1: NOT_UTF8")),
        (
            org,
            "id,name\n1,ESMO, Lugano\n2,ASCO, Alexandria\n".into(),
            "",
            Refused(
                "organizations.csv:2, 3: has 3 cells, but the header has 2; put cells that contain commas or line ends in quotes",
            ),
        ),
        (
            org,
            "id,name\n1,A\n2,\"B\n3,C\n".into(),
            "",
            Refused(
                "organizations.csv:3: opens a quote that is never closed; close it, or double it within a quoted cell",
            ),
        ),
        (
            org,
            "id,name\n1.23E+05,A\n".into(),
            "",
            Refused(
                "organizations.csv:2: id: `1.23E+05` - is written with an exponent, which loses digits; format the column as \
                 text, and write all digits",
            ),
        ),
        (
            org,
            "id;name\n1.234;A\n".into(),
            "",
            Refused(
                "organizations.csv:2: id: `1.234` - has separators between its digits; write only the digits, `1234`",
            ),
        ),
        (
            org,
            "id,name,deleted\n1,A,\n2,B,no\n3,C,TRUE\n".into(),
            "",
            Stored(&[r#"{"id":1,"name":"A"}"#, r#"{"id":2}"#]),
        ),
        (
            org,
            "id,name,deleted\n1,A,maybe\n".into(),
            "",
            Refused("organizations.csv:2: deleted: `maybe` - write TRUE to remove the row, or leave the cell empty"),
        ),
        (org, "id,name\n1,ESMO\n\u{a0}2\u{a0},B\n".into(), "", Stored(&[r#"{"name":"ESMO"}"#, r#"{"id":2}"#])),
        (
            "Verbände_final.v2.csv",
            "id;name;url\n1;ESMO;https://esmo.org\n".into(),
            "--dataset organizations",
            Stored(&[ESMO]),
        ),
        ("list.txt", "id;name;url\n1;ESMO;https://esmo.org\n".into(), "--dataset organizations", Stored(&[ESMO])),
        ("list", format!("{ESMO}\n").into(), "--dataset organizations", Stored(&[ESMO])),
        (
            "list.csv",
            "id,name\n1,A\n".into(),
            "",
            Refused(
                "error: list.csv: the file name does not say what it contains; add `--dataset conferences`, for \
                 example, or name it `conferences`, `journals`, `organizations` or `tags` with `.xlsx`, `.csv` or \
                 `.jsonl`",
            ),
        ),
        (
            "tags.ods",
            b"PK\x03\x04".to_vec(),
            "",
            Refused(
                "error: tags.ods: files of this kind cannot be imported; open it in the program that wrote it, and save \
                 it as `.xlsx`, or as CSV in UTF-8",
            ),
        ),
        (
            "tags.xls",
            b"PK\x03\x04".to_vec(),
            "",
            Refused(
                "error: tags.xls: files of this kind cannot be imported; open it in the program that wrote it, and save \
                 it as `.xlsx`, or as CSV in UTF-8",
            ),
        ),
        (
            "tags.xlsb",
            b"PK\x03\x04".to_vec(),
            "",
            Refused(
                "error: tags.xlsb: files of this kind cannot be imported; open it in the program that wrote it, and save \
                 it as `.xlsx`, or as CSV in UTF-8",
            ),
        ),
        (
            "tags.csv",
            "<table><tr><td>id</td></tr></table>".into(),
            "",
            Refused(
                "error: cannot read tags.csv: it contains HTML or XML; open it in a spreadsheet program, and save it \
                 as .xlsx or \
                 CSV in UTF-8",
            ),
        ),
        (
            "organizations.jsonl",
            "{\"id\":1,\"Name\":\"A\",\"Website\":\"https://a.org\"}\n".into(),
            "--map Website=url --map Name=name",
            Stored(&[r#"{"id":1,"name":"A","url":"https://a.org"}"#]),
        ),
        (
            org,
            "id,name,Website\n1,ESMO,https://esmo.org\n".into(),
            "--map Web=url --ignore-unknown",
            Refused("error: --map 'Web=url': no file has a column or field `Web`; write the name as it is in the file"),
        ),
        (
            "organizations.jsonl",
            "{\"id\":1,\"name\":\"A\",\"x\":1}\n{\"id\":2,\"name\":\"B\",\"y\":1}\n".into(),
            "--ignore-unknown",
            Warned(&[r#"{"id":1}"#, r#"{"id":2}"#], "the unknown fields `x`, `y` are ignored"),
        ),
        (
            "journals.jsonl",
            "{\"id\":1,\"name\":\"N\",\"organizations\":[{\"id\":2,\"name\":\"A\",\"abbv\":null,\"type\":null,\"url\":null,\
             \"records\":3}],\"x\":1}\n"
                .into(),
            "--ignore-unknown",
            Warned(
                &[r#"{"id":1}"#, r#"{"id":2,"name":"A"}"#],
                "the unknown fields `organizations.records`, `x` are ignored",
            ),
        ),
        (
            "organizations.jsonl",
            "{\"id\":1,\"name\":\"N\",\"Website\":\"https://a.example\",\"url\":\"https://b.example\"}\n".into(),
            "--map Website=url",
            Refused("organizations.jsonl:1: url: appears twice, also as `Website`; remove one of them"),
        ),
        (
            "conferences.csv",
            "name,organizations\nA,ESMO\n".into(),
            "--match organizations",
            Refused(
                "error: --match organizations: links to organizations do not identify a record; choose other fields, \
                 such as `name,year`",
            ),
        ),
    ];
    for (name, content, options, then) in cases {
        let expected;
        let then = match then {
            Refused(line) => {
                expected = match line {
                    "organizations.csv:2: name: NOT_UTF8" => {
                        format!("organizations.csv:2: name: `Soci\u{fffd}t\u{fffd}` - {NOT_UTF8}")
                    }
                    "organizations.csv:1: NOT_UTF8" => format!("organizations.csv:1: {NOT_UTF8}"),
                    line => line.to_owned(),
                };
                Refused(&expected)
            }
            then => then,
        };
        check(name, &content, options, then);
    }
}

#[test]
fn columns_are_renamed() {
    let site = Site::new();
    site.write("organizations.csv", "Nr;Titel;Seite\n1;ESMO;https://esmo.org\n");
    let import = |options: &str| {
        site.run(["import", "organizations.csv", "--create"].into_iter().chain(options.split_whitespace()))
    };
    for (options, unknown) in [("--map Nr=id --map Seite=url", "Titel"), ("--map Titel=name --map Nr=id", "Seite")] {
        let done = import(options);
        let expected = format!("organizations.csv:1: {unknown}: unknown column");
        assert!(done.code == Some(1) && done.stderr.contains(&expected), "{options}: {done:?}");
    }
    let options = "--map Nr=id --map Titel=name --map Seite=url";
    check_stored(&site, &import(options), &[ESMO], options);
}

#[test]
fn dates_and_numbers_of_text_tables() {
    let read = Stored(&[r#"{"id":1,"start_date":"2026-03-15"}"#]);
    let none = Stored(&[r#"{"id":1,"start_date":null}"#]);
    let cases = [
        ("2026-03-15", read),
        (" 2026-03-15\u{a0}", read),
        ("2026/03/15", read),
        ("15.03.2026", read),
        ("15.3.2026", read),
        ("2026-03-15T00:00:00", read),
        ("2026-03-15 00:00:00", read),
        ("March 15, 2026", read),
        ("15-Mar-2026", read),
        ("", none),
        ("03/15/2026", read),
        (
            "03/04/2026",
            Refused(
                "may be day/month or month/day; write a date as YYYY-MM-DD, such as 2026-03-15, or set the order with \
                 --dates dmy or --dates mdy",
            ),
        ),
        ("46096", Refused("is the number of a day in a spreadsheet; format the column as a date, or write YYYY-MM-DD")),
        ("2026-03-15T09:30:00", Refused("has a time of day; write only the date, `2026-03-15`")),
        (
            "TBD",
            Refused("is not a date; leave the cell empty, and use the date's status to say why, such as `not_found`"),
        ),
        (
            "N/A",
            Refused("is not a date; leave the cell empty, and use the date's status to say why, such as `not_found`"),
        ),
        (
            "-",
            Refused("is not a date; leave the cell empty, and use the date's status to say why, such as `not_found`"),
        ),
        ("15.03.26", Refused("write a date as YYYY-MM-DD, such as 2026-03-15")),
        ("2026-02-30", Refused("write a date as YYYY-MM-DD, such as 2026-03-15")),
    ];
    for (date, then) in cases {
        let line;
        let then = match then {
            Refused(message) => {
                line = format!("conferences.csv:2: start_date: `{date}` - {message}");
                Refused(&line)
            }
            then => then,
        };
        check("conferences.csv", dated(date).as_bytes(), "", then);
    }
    let numbers = [
        ("12.5", Stored(&[r#"{"impact_factor":12.5}"#])),
        ("\u{a0}12.50 ", Stored(&[r#"{"impact_factor":12.5}"#])),
        ("12,5", Stored(&[r#"{"impact_factor":12.5}"#])),
        (
            "1,234",
            Refused(
                "may be 1234 or 1.234, since a `,` before three digits may group them; write `1234` or `1.234`, or \
                 set the decimal sign with --decimal point or --decimal comma",
            ),
        ),
        ("45%", Refused("is a percentage; write only the number, without `%`")),
        ("n/a", Refused("is not a number; leave the cell empty")),
    ];
    for (number, then) in numbers {
        let line;
        let then = match then {
            Refused(message) => {
                line = format!("journals.csv:2: impact_factor: `{number}` - {message}");
                Refused(&line)
            }
            then => then,
        };
        check("journals.csv", format!("id;name;impact_factor\n1;A;{number}\n").as_bytes(), "", then);
    }
}

#[test]
fn faults_of_one_kind_are_one_line() {
    let rows: String = (1..=8_193).map(|id| format!("{{\"id\":{id},\"Foo\":1,\"Bar\":2}}\n")).collect();
    let site = Site::new();
    site.write("journals.jsonl", rows);
    let done = site.run(["import", "journals.jsonl", "--create"]);
    let lines: Vec<&str> = done.stderr.lines().collect();
    assert_eq!(lines.len(), 2, "{done:?}");
    assert!(
        lines[0].starts_with("journals.jsonl:1, 2, 3 and 8,190 more: Foo, Bar: unknown field; known names are `id`"),
        "{done:?}"
    );
    assert!(lines[1].ends_with("--all-faults lists each."), "{done:?}");
    let all = site.run(["import", "journals.jsonl", "--create", "--all-faults"]);
    assert_eq!(all.stderr.lines().count(), 2 * 8_193 + 1);
    let json = site.run(["import", "journals.jsonl", "--create", "--json"]).json();
    assert_eq!((json["errors"].as_array().unwrap().len(), &json["error_count"]), (1_000, &(2 * 8_193).into()));
    assert_eq!(json["groups"][0]["count"], 2 * 8_193);
}
