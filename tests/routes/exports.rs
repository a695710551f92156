//! `GET /v1/exports/{dataset}`.

use medfeed::model::time::now;
use serde_json::{Value, json};

use crate::harness::{Answer, World, gunzip, patch};

const CONFERENCE_COLUMNS: &str = "id,name,abbv,year,start_date,start_date_status,end_date,abstract_due_date,\
    abstract_due_date_status,late_breaking_due_date,late_breaking_due_date_status,country,city,venue,url,therapy_areas,\
    organizations,tags,formats_oral,formats_poster,formats_e_poster,formats_published_abstract,formats_encore,updated_at";
const JOURNAL_COLUMNS: &str = "id,name,abbv,issn_print,issn_online,publisher,url,impact_factor,impact_factor_year,\
    citescore,sjr,h_index,publishing_access,publishing_content_license,publishing_apc_usd,publishing_embargo_months,\
    timelines_submit_to_first_decision_min_weeks,timelines_submit_to_first_decision_max_weeks,\
    timelines_online_submit_to_accept_min_weeks,timelines_online_submit_to_accept_max_weeks,\
    timelines_accept_to_online_min_weeks,timelines_accept_to_online_max_weeks,timelines_accept_to_print_min_weeks,\
    timelines_accept_to_print_max_weeks,organizations,tags,updated_at";

/// The lines of a JSONL export, unpacked.
fn jsonl(answer: &Answer) -> Vec<Value> {
    let text = String::from_utf8(gunzip(&answer.body)).unwrap();
    assert!(text.is_empty() || text.ends_with('\n'));
    text.lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect()
}

/// The rows of a CSV export, its header first.
fn csv_rows(answer: &Answer) -> Vec<Vec<String>> {
    let content = answer.content();
    let table = content
        .strip_prefix(b"\xEF\xBB\xBF")
        .expect("a byte-order mark");
    let mut reader = csv::ReaderBuilder::new()
        .has_headers(false)
        .from_reader(table);
    reader
        .records()
        .map(|row| row.unwrap().iter().map(str::to_owned).collect())
        .collect()
}

#[test]
fn a_jsonl_export_has_the_records_of_the_list() {
    let world = World::small();
    for (key, dataset) in [
        ("full", "conferences"),
        ("full", "journals"),
        ("onco", "conferences"),
        ("spain", "conferences"),
    ] {
        for query in ["", "?format=jsonl"] {
            let answer = world
                .get(key, &format!("/v1/exports/{dataset}{query}"))
                .expect(200);
            let listed = world
                .get(key, &format!("/v1/{dataset}?limit=500"))
                .expect(200);
            assert_eq!(jsonl(&answer), listed.items(), "{key} {dataset}");
            assert_eq!(answer.number("x-record-count"), listed.items().len() as u64);
            assert_eq!(answer.header("content-type"), Some("application/gzip"));
            let header = answer.header("content-encoding");
            assert_eq!(header, None, "the file itself is gzip");
            let name = format!(
                "attachment; filename=\"{dataset}-{}.jsonl.gz\"",
                now().date()
            );
            assert_eq!(answer.header("content-disposition"), Some(name.as_str()));
            // The records have the same bytes, too.
            let lines = String::from_utf8(gunzip(&answer.body))
                .unwrap()
                .lines()
                .collect::<Vec<_>>()
                .join(",");
            assert!(listed.text().contains(&lines), "{key} {dataset}");
        }
    }
}

#[test]
fn csv_is_one_flat_table() {
    let world = World::small();
    for (dataset, columns, count) in [
        ("conferences", CONFERENCE_COLUMNS, 25),
        ("journals", JOURNAL_COLUMNS, 12),
    ] {
        let answer = world
            .get("full", &format!("/v1/exports/{dataset}?format=csv"))
            .expect(200);
        let expected = Some("text/csv; charset=utf-8");
        assert_eq!(answer.header("content-type"), expected);
        assert_eq!(answer.header("content-encoding"), Some("gzip"));
        let name = format!("attachment; filename=\"{dataset}-{}.csv\"", now().date());
        assert_eq!(answer.header("content-disposition"), Some(name.as_str()));
        let rows = csv_rows(&answer);
        assert_eq!(rows[0].join(","), columns);
        assert_eq!(rows.len(), count + 1);
        assert_eq!(answer.number("x-record-count"), count as u64);
        assert!(
            answer.text().starts_with(&format!("\u{feff}{columns}\r\n")),
            "CRLF after the header"
        );
        assert!(answer.content().ends_with(b"Z\r\n"));
    }
}

#[test]
fn csv_cells_are_formatted_and_quoted() {
    let world = World::small();
    let conferences = csv_rows(&world.get("full", "/v1/exports/conferences?format=csv"));
    let journals = csv_rows(&world.get("full", "/v1/exports/journals?format=csv"));
    let cases = cases![
        &conferences, "1", "therapy_areas", "Hematology; Oncology";
        &conferences, "1", "organizations", "American Society of Clinical Oncology";
        &conferences, "1", "tags", "topic-area: Lung: small cell; audience: Nurses; attendee-geography: Global";
        &conferences, "1", "formats_oral", "TRUE";
        &conferences, "1", "formats_e_poster", "FALSE";
        &conferences, "1", "formats_encore", "";
        &conferences, "1", "start_date", "2026-05-29";
        &conferences, "1", "year", "2026";
        &conferences, "1", "start_date_status", "confirmed";
        &conferences, "4", "organizations", "Société Française de Cardiologie; american heart association";
        &conferences, "22", "year", "";
        &conferences, "22", "therapy_areas", "";
        &conferences, "22", "start_date_status", "not_found";
        &conferences, "14", "name", "'=HYPERLINK(\"http://x.example\")";
        &conferences, "14", "abbv", "''=already guarded";
        &conferences, "14", "city", "'+1 City";
        &conferences, "14", "venue", "'-minus, then \"quotes\"";
        &conferences, "14", "url", "'@handle";
        &conferences, "14", "organizations", "'=SUM(A1:A9) Institute";
        &conferences, "14", "tags", "'@home: Remote";
        &conferences, "15", "name", "The \"Great\", long\r\nmeeting";
        &conferences, "15", "city", "'Iraq";
        &conferences, "15", "venue", "Hall\n7";
        &conferences, "15", "organizations", "The \"Quoted\", Press";
        &conferences, "23", "name", "e\u{301}tude 100%_sure";
        &conferences, "23", "country", "Spain ";
        &conferences, "24", "name", "'\tTabbed";
        &conferences, "21", "name", "각막 학회";
        &journals, "1", "timelines_online_submit_to_accept_min_weeks", "6.0";
        &journals, "1", "timelines_online_submit_to_accept_max_weeks", "10.5";
        &journals, "1", "timelines_accept_to_online_min_weeks", "0.0";
        &journals, "1", "timelines_accept_to_online_max_weeks", "";
        &journals, "1", "impact_factor", "42.1";
        &journals, "1", "publishing_access", "hybrid";
        &journals, "5", "name", "'-aminobutyric Acid Letters";
        &journals, "5", "publisher", "''+x";
        &journals, "6", "impact_factor", "0.0";
        &journals, "6", "citescore", "0.0000001";
        &journals, "6", "sjr", "1000000000000000000000.0";
        &journals, "6", "h_index", "9007199254740991";
        &journals, "8", "organizations", "The \"Quoted\", Press; Łódź Medical University";
    ];
    for (table, id, column, expected) in cases {
        let at = table[0].iter().position(|name| name == column);
        let at = at.unwrap_or_else(|| panic!("no column {column}"));
        let row = table.iter().find(|row| row[0] == id).unwrap();
        assert_eq!(row[at], expected, "{id} {column}");
    }
    // Quoted by RFC 4180, with line breaks kept.
    let text = world
        .get("full", "/v1/exports/conferences?format=csv")
        .text();
    assert!(
        text.contains("\r\n15,\"The \"\"Great\"\", long\r\nmeeting\",\"G;L\",2026,"),
        "{text}"
    );
}

#[test]
fn the_same_content_gives_the_same_bytes() {
    let world = World::small();
    for path in ["/v1/exports/conferences", "/v1/exports/journals?format=csv"] {
        let one = world.get("full", path).expect(200);
        world.wall_ahead_s.set(90_000);
        let other = world.fork().get("full", path).expect(200);
        world.wall_ahead_s.set(0);
        assert_eq!(one.body, other.body, "{path}");
        let expected = (other.token(), other.etag());
        assert_eq!((one.token(), one.etag()), expected, "{path}");
        // RFC 1952: the magic, deflate, no flags (so no name), no time.
        assert_eq!(&one.body[..8], [0x1f, 0x8b, 8, 0, 0, 0, 0, 0], "{path}");
        // Whether the caller accepts gzip makes no difference.
        for value in ["gzip", "identity", "gzip;q=0"] {
            let asked = world
                .get_with("full", path, &[("accept-encoding", value)])
                .expect(200);
            assert_eq!(asked.body, one.body, "{path} {value}");
        }
    }
}

#[test]
fn digests_are_those_of_the_file_and_its_records() {
    let world = World::small();
    let names = ["repr-digest", "x-records-digest", "x-sync-token"];
    let told =
        |answer: &Answer| names.map(|name| answer.header(name).unwrap_or_default().to_owned());
    // Each whole export has digests of the file and of its content.
    for dataset in ["conferences", "journals"] {
        for format in ["jsonl", "csv"] {
            let path = format!("/v1/exports/{dataset}?format={format}");
            let whole = world.get("full", &path).expect(200);
            let expected = told(&whole);
            for coding in ["gzip", "identity", "br, *;q=0"] {
                let answer = world
                    .get_with("full", &path, &[("accept-encoding", coding)])
                    .expect(200);
                assert_eq!(told(&answer), expected, "{path} {coding}");
            }
            let key = world.key("full").text;
            // Also for a world that has not built an export yet.
            for world in [&world, &world.fork()] {
                let head = world
                    .request("HEAD", &path, &[("x-api-key", &key)])
                    .expect(200);
                assert_eq!(told(&head), expected, "HEAD {path}");
            }
            for (name, value, status) in [
                ("range", "bytes=5-9", 206),
                ("if-none-match", whole.etag().as_str(), 304),
            ] {
                let answer = world
                    .get_with("full", &path, &[(name, value)])
                    .expect(status);
                assert_eq!(told(&answer), expected, "{path} {name}");
            }
        }
    }
}

#[test]
fn an_empty_export_is_a_file_too() {
    let world = World::small();
    world.license("none", "conferences; areas: Nothing");
    let answer = world.get("none", "/v1/exports/conferences").expect(200);
    assert_eq!(gunzip(&answer.body).len(), 0);
    assert_eq!(answer.number("x-record-count"), 0);
    let answer = world
        .get("none", "/v1/exports/conferences?format=csv")
        .expect(200);
    assert_eq!(csv_rows(&answer).len(), 1);
    assert_eq!(answer.number("x-record-count"), 0);
    world
        .get(
            "none",
            &format!("/v1/conferences/changes?since={}", answer.token()),
        )
        .expect(200);
}

#[test]
fn an_export_can_be_imported_again() {
    let world = World::small();
    let token = world.get("full", "/v1/conferences/changes").token();
    for dataset in ["conferences", "journals"] {
        let answer = world.get("full", &format!("/v1/exports/{dataset}"));
        let lines: Vec<String> = String::from_utf8(gunzip(&answer.body))
            .unwrap()
            .lines()
            .map(str::to_owned)
            .collect();
        world.import(&[(dataset, &lines)]);
        let fresh = World::empty();
        fresh.license("full", "conferences journals");
        fresh.import(&[(dataset, &lines)]);
        let again = fresh.get("full", &format!("/v1/exports/{dataset}"));
        let without_times = |answer: &Answer| {
            let mut rows = jsonl(answer);
            rows.iter_mut()
                .for_each(|row| row["updated_at"] = Value::Null);
            rows
        };
        assert_eq!(without_times(&answer), without_times(&again), "{dataset}");
    }
    let expected = world.get("full", "/v1/conferences/changes").token();
    assert_eq!(token, expected, "nothing changed");
}

#[test]
fn invalid_exports_are_refused() {
    let world = World::small();
    let cases = cases![
        "full", "/v1/exports/foo", "invalid_parameter", "`dataset`: must be `conferences` or `journals`";
        "full", "/v1/exports/Journals", "invalid_parameter", "`dataset`";
        "full", "/v1/exports/conferences%2F", "invalid_parameter", "`dataset`";
        "full", "/v1/exports/conferences?format=xml", "invalid_parameter", "`format`: must be `jsonl` or `csv`";
        "full", "/v1/exports/conferences?format=CSV", "invalid_parameter", "`format`";
        "full", "/v1/exports/conferences?format=", "invalid_parameter", "`format`: is empty";
        "full", "/v1/exports/conferences?format=csv&format=csv", "invalid_parameter", "more than once";
        "full", "/v1/exports/conferences?fromat=csv", "unknown_parameter", "Did you mean `format`?";
        "full", "/v1/exports/conferences?limit=5", "unknown_parameter", "Allowed are: `format`.";
        "onco", "/v1/exports/journals", "dataset_not_licensed", "`journals`";
        "papers", "/v1/exports/conferences?format=csv", "dataset_not_licensed", "`conferences`";
        "onco", "/v1/exports/foo", "invalid_parameter", "`dataset`";
        "full", "/v1/exports", "not_found", "";
        "full", "/v1/exports/", "not_found", "";
        "full", "/v1/exports/conferences/", "not_found", "";
    ];
    for (key, path, code, piece) in cases {
        world.get(key, path).expect_problem(code, piece);
    }
}

#[test]
fn a_range_request_gets_its_part_of_the_file() {
    let world = World::small();
    for path in ["/v1/exports/conferences", "/v1/exports/journals?format=csv"] {
        let whole = world.get("full", path).expect(200);
        let (all, etag) = (whole.body.len(), whole.etag());
        let cases = [
            (format!("bytes={}-", all / 2), all / 2..all),
            ("bytes=0-99".to_owned(), 0..100),
        ];
        for (range, part) in cases {
            let etags = [None, Some(etag.as_str())];
            for if_range in etags {
                let headers: Vec<(&str, &str)> = [("range", range.as_str())]
                    .into_iter()
                    .chain(if_range.map(|tag| ("if-range", tag)))
                    .collect();
                let answer = world.get_with("full", path, &headers).expect(206);
                assert_eq!(answer.body, whole.body[part.clone()], "{path} {range}");
                let expected = format!("bytes {}-{}/{all}", part.start, part.end - 1);
                assert_eq!(answer.header("content-range"), Some(expected.as_str()));
                for header in words![
                    "etag" "x-sync-token" "x-record-count" "repr-digest" "x-records-digest" "content-type"
                    "content-encoding" "content-disposition"
                ] {
                    let found = answer.header(header);
                    assert_eq!(found, whole.header(header), "{path} {range} {header}");
                }
            }
        }
        let beyond = format!("bytes={all}-");
        let answer = world
            .get_with("full", path, &[("range", &beyond), ("if-range", &etag)])
            .expect(416);
        assert_eq!(
            answer.header("content-range"),
            Some(format!("bytes */{all}").as_str())
        );
        let piece = format!("{all} bytes of the file with this `ETag`");
        answer.expect_problem("invalid_request", &piece);
        // Another file may have the same length.
        for header in
            words!["etag" "x-sync-token" "x-record-count" "repr-digest" "x-records-digest"]
        {
            let found = answer.header(header);
            assert_eq!(found, whole.header(header), "{path} {header}");
        }
        // The whole file: another tag, a weak `If-Match`, HEAD. A range does not change a 304.
        let weak = format!("W/{etag}");
        let list = format!("\"x\", {etag}");
        let cases: [(&[(&str, &str)], u16); 9] = [
            (&[("range", "bytes=0-1"), ("if-match", &etag)], 206),
            (&[("range", "bytes=0-1"), ("if-match", &list)], 206),
            (&[("range", "bytes=0-1"), ("if-match", "*")], 206),
            (&[("range", "bytes=0-1"), ("if-match", "\"x\"")], 200),
            (&[("range", "bytes=0-1"), ("if-match", &weak)], 200),
            (&[("range", &beyond), ("if-match", "\"x\"")], 200),
            (&[("range", "bytes=0-1"), ("if-range", "\"x\"")], 200),
            (&[("range", "bytes=0-1"), ("if-none-match", &etag)], 304),
            (&[("range", "bytes=0-1"), ("if-none-match", "\"x\"")], 206),
        ];
        for (headers, status) in cases {
            let answer = world.get_with("full", path, headers).expect(status);
            assert!(
                status != 200 || answer.body == whole.body,
                "{path} {headers:?}"
            );
        }
        let key = world.key("full").text;
        let head = world
            .request("HEAD", path, &[("x-api-key", &key), ("range", "bytes=0-1")])
            .expect(200);
        assert_eq!(head.etag(), etag);
        assert_eq!(head.number("content-length"), all as u64);
    }
}

#[test]
fn a_download_resumes_only_in_the_same_file() {
    let world = World::small();
    let path = "/v1/exports/conferences";
    let old = world.get("full", path).expect(200);
    let (etag, rest) = (old.etag(), format!("bytes={}-", old.body.len() / 2));
    let resumed = || world.get_with("full", path, &[("range", &rest), ("if-range", &etag)]);
    // A hidden change, or one of another dataset, changes nothing.
    world.import(&[("journals", &[patch(1, json!({"publisher": "Another"}))])]);
    resumed().expect(206);
    world.conferences(&[patch(1, json!({"venue": "Another"}))]);
    let new = resumed().expect(200);
    assert_ne!((new.etag(), &new.body), (etag.clone(), &old.body));
    let count = jsonl(&new).len();
    assert_eq!(count, jsonl(&old).len(), "the new file is whole");
    world
        .get_with("full", path, &[("if-none-match", &etag)])
        .expect(200);
    // Licenses that show different records have different files.
    let others = ["onco", "spain"].map(|key| world.get(key, path).etag());
    assert!(others[0] != others[1] && !others.contains(&new.etag()));
}

#[test]
fn a_304_of_an_export_has_the_present_token() {
    let world = World::small();
    let path = "/v1/exports/conferences";
    let old = world.get("onco", path).expect(200);
    // A wider scope that shows the same records: the file stays the same, and its older token ends.
    world.license("onco", "conferences; areas: Oncology, Nothing");
    let same = world
        .get_with("onco", path, &[("if-none-match", &old.etag())])
        .expect(304);
    let expected = (old.etag(), old.header("x-record-count"));
    assert_eq!((same.etag(), same.header("x-record-count")), expected);
    assert_ne!(same.token(), old.token());
    let feed = |token: &str| world.get("onco", &format!("/v1/conferences/changes?since={token}"));
    feed(&old.token()).expect(410);
    assert_eq!(feed(&same.token()).expect(200).entries(), "");
}
