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
                "error: cannot read organizations.csv: line 2 contains damaged characters (UTF-16LE); correct it, and \
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
            Warned(&[r#"{"id":1,"name":"ESMO"}"#], "organizations.csv:3: is a total, so it is skipped"),
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
            Refused(
                "organizations.csv:2: `B` - the columns B (`name`) and C (`Name`) have one header, and differ here; ignore one of \
                 them, such as `HEADER#2`",
            ),
        ),
        (
            org,
            "name,url\nESMO,https://esmo.org\n".into(),
            "",
            Stored(&[ESMO]),
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
                 example, or name it `conferences`, `journals`, `organizations` or `tags` with `.xlsx`, `.csv`, \
                 `.jsonl` or `.json`",
            ),
        ),
        (
            "tags.ods",
            b"PK\x03\x04".to_vec(),
            "",
            Refused(
                "error: tags.ods: it is an OpenDocument or Numbers table, which is not read; save it as .xlsx without a password, or as CSV in UTF-8",
            ),
        ),
        (
            "tags.xls",
            b"PK\x03\x04".to_vec(),
            "",
            Refused(
                "error: tags.xls: it is an old workbook (.xls), or one with a password, which is not read; save it as .xlsx without a password, or as CSV in UTF-8",
            ),
        ),
        (
            "tags.xlsb",
            b"PK\x03\x04".to_vec(),
            "",
            Refused(
                "error: tags.xlsb: it is a binary workbook, which is not read; save it as .xlsx without a password, or as CSV in UTF-8",
            ),
        ),
        (
            "tags.csv",
            "<table><tr><td>id</td></tr></table>".into(),
            "",
            Refused(
                "error: cannot read tags.csv: it is HTML or XML, which is not read; open it in a spreadsheet program, and \
                 save it as .xlsx",
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
                "the unknown fields `x`, `organizations.records` are ignored",
            ),
        ),
        (
            "organizations.jsonl",
            "{\"id\":1,\"name\":\"N\",\"Website\":\"https://a.example\",\"url\":\"https://b.example\"}\n".into(),
            "--map Website=url",
            Refused(
                "organizations.jsonl:1: url: the columns `Website` and `url` are both read as `url`; map or ignore one of them",
            ),
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

const MAPPED: &str = "--match name --ignore-unknown --map Title=name --map SJR=sjr --decimal comma";

#[test]
fn lists_of_journals_are_read() {
    let jcr = concat!(
        "\"Journal Data Filtered By:  Selected JCR Year: 2024\"\n\n",
        "Title,ISSN,eISSN,2024 JIF,% of Citable OA\n",
        "\"HEART A\",\"0028-4793\",\"1533-4406\",\"88.5\",\"25.18\"%,\n",
        "\"HEART B\",\"0140-6736\",\"1474-547X\",\"3.1\",\"1.45\"%,\n",
    );
    let sjr = concat!(
        "Rank;Title;Publisher;SJR\n",
        "1;Heart A;House;22,797\n",
        "2;\"Heart B\";\"National University \"North\"\";0,319\n",
    );
    let access =
        "id,name,publishing_access\n1,A,Open access\n2,B,Hybrid (Open Choice)\n3,C,Gold\n4,D,Subscription\n5,E,OA\n";
    let access_of = |word: &str| {
        format!(
            "{{\"publishing\":{{\"access\":\"{word}\",\"content_license\":null,\"apc_usd\":null,\"embargo_months\":null}}}}"
        )
    };
    let [open, hybrid, subscription] = ["open", "hybrid", "subscription"].map(access_of);
    let accesses = [&*open, &*hybrid, &*open, &*subscription, &*open];
    let cases: Vec<(&str, &[u8], &str, Then<'_>)> = vec![
        (
            "journals.csv",
            jcr.as_bytes(),
            "--match name --ignore-unknown --map Title=name --map ISSN=issn_print --map eISSN=issn_online",
            Warned(
                &[
                    r#"{"name":"HEART A","issn_print":"0028-4793","issn_online":"1533-4406"}"#,
                    r#"{"name":"HEART B","issn_print":"0140-6736","issn_online":"1474-547X"}"#,
                ],
                "journals.csv:4, 5: a quoted cell contains quotes that are not doubled, or has text after its quotes",
            ),
        ),
        (
            "journals.csv",
            sjr.as_bytes(),
            MAPPED,
            Warned(
                &[
                    r#"{"name":"Heart A","publisher":"House","sjr":22.797}"#,
                    r#"{"name":"Heart B","publisher":"National University \"North\"","sjr":0.319}"#,
                ],
                "journals.csv:3: a quoted cell contains quotes that are not doubled",
            ),
        ),
        ("journals.csv", access.as_bytes(), "", Stored(&accesses)),
        ("journals.csv", b"id;name;impact_factor_year\n1;A;2024,0\n", "", Stored(&[r#"{"impact_factor_year":2024}"#])),
        ("journals.csv", b"id,name,impact_factor_year\n1,A,2024.0\n", "", Stored(&[r#"{"impact_factor_year":2024}"#])),
        (
            "journals.jsonl",
            b"{\"id\":1,\"name\":\"A\",\"impact_factor_year\":2024.0}\n",
            "",
            Stored(&[r#"{"impact_factor_year":2024}"#]),
        ),
        (
            "journals.csv",
            b"id,name,issn_print,issn_online\n1,A,1474547x,ISSN 0028-4793\n2,B,01406737,\n",
            "",
            Warned(
                &[r#"{"issn_print":"1474-547X","issn_online":"0028-4793"}"#, r#"{"issn_print":"01406737"}"#],
                "is not in the form of an ISSN",
            ),
        ),
        (
            "journals.json",
            b"[{\"id\":1,\"name\":\"A\",\"issn_print\":\"3785955\"}]",
            "",
            Warned(
                &[r#"{"issn_print":"0378-5955"}"#],
                "journals.json:1: issn_print: `3785955` - has 7 digits; it is stored as `0378-5955`, whose check digit fits",
            ),
        ),
        ("journals.json", b"[\n {\"id\":1,\"name\":\"Heart A\"}\n]\n", "", Stored(&[r#"{"id":1,"name":"Heart A"}"#])),
        ("x.json", b"{\"items\":[{\"id\":1,\"name\":\"A\"}]}", "--dataset journals", Stored(&[r#"{"name":"A"}"#])),
        ("list", b"[{\"id\":1,\"name\":\"A\"}]", "--dataset journals", Stored(&[r#"{"name":"A"}"#])),
        ("list", b"{\"a\":[{\"id\":1,\"name\":\"A\"}]}", "--dataset journals --format json", Stored(&[r#"{"id":1}"#])),
        (
            "journals.yaml",
            b"- id: 1\n  name: Heart A\n",
            "--dataset journals",
            Refused(
                "error: journals.yaml: it is YAML, which is not read; convert it to JSON: `yq -o=json . IN.yaml > OUT.json`",
            ),
        ),
        (
            "conferences.ics",
            b"BEGIN:VCALENDAR\nEND:VCALENDAR\n",
            "",
            Refused(
                "error: conferences.ics: it is a calendar (.ics), which is not read; export it as CSV, with a line for each event",
            ),
        ),
        (
            "conferences.txt",
            b"BEGIN:VCALENDAR\nEND:VCALENDAR\n",
            "--dataset conferences",
            Refused(
                "error: cannot read conferences.txt: it is a calendar (.ics), which is not read; export it as CSV, with a line for each event",
            ),
        ),
    ];
    for (name, content, options, then) in cases {
        check(name, content, options, then);
    }
}

#[test]
fn lists_in_a_cell_are_read_or_refused() {
    let header = "id,name,therapy_areas,start_date_status,abstract_due_date_status,late_breaking_due_date_status\n";
    let refused = |items: &str, value: &str| {
        format!(
            "conferences.csv:2: therapy_areas: `{value}` - is a list of a program; write its items without brackets and \
             quotes: `{items}`"
        )
    };
    let cases = [
        ("\"['Oncology', 'Hematology']\"", Refused(&refused("Oncology; Hematology", "['Oncology', 'Hematology']"))),
        (
            r#""[""Oncology"",""Hematology""]""#,
            Refused(&refused("Oncology; Hematology", r#"["Oncology","Hematology"]"#)),
        ),
        ("['Cardiology']", Refused(&refused("Cardiology", "['Cardiology']"))),
        ("Oncology; Hematology", Stored(&[r#"{"therapy_areas":["Hematology","Oncology"]}"#])),
    ];
    for (cell, then) in cases {
        check("conferences.csv", format!("{header}1,Congress,{cell},check,check,check\n").as_bytes(), "", then);
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
        ("Sun, 15th March, 2026", read),
        ("15 de marzo de 2026", read),
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
        (
            "15.03.26",
            Refused(
                "has no year of four digits; write a date as YYYY-MM-DD, such as 2026-03-15, or set --dates, so that 26 means 2026",
            ),
        ),
        (
            "12-15 March 2026",
            Refused(
                "is a range of dates, but the field is one date; write its date as YYYY-MM-DD, or map the column to both \
                 fields in a recipe",
            ),
        ),
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
