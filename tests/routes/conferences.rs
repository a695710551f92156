//! `GET /v1/conferences` and `GET /v1/conferences/{id}`.

use serde_json::json;

use crate::harness::{World, conference, removal};

/// The largest id.
const LAST: u64 = 9_007_199_254_740_991;

#[track_caller]
fn check_ids(world: &World, key: &str, cases: &[(&str, &[u64])]) {
    for (query, expected) in cases {
        let answer = world
            .get(key, &format!("/v1/conferences?{query}"))
            .expect(200);
        assert_eq!(answer.ids(), *expected, "{query}");
    }
}

#[track_caller]
fn check_refused(world: &World, cases: &[(&str, (&str, &str))]) {
    for (query, (code, piece)) in cases {
        world
            .get("full", &format!("/v1/conferences?{query}"))
            .expect_problem(code, piece);
    }
}

#[test]
fn filters_select_the_matching_conferences() {
    let cases: &[(&str, &[u64])] = &outcomes![
        "year=2025" "updated_since=2000-01-01&year=2025" => &[3, 6, 23];
        "year=1900" "start_date_from=0001-01-01&start_date_to=1900-01-01" => &[16];
        "year=2100" "&&year=2100&" "%79ear=2100" => &[17];
        "year=1999" "country=germany" "country=null" "therapy_area=cardiology" "therapy_area=Cardio"
        "start_date_from=2026-05-30&start_date_to=2026-05-28" "updated_since=2999-01-01" => &[];
        "country=Germany" => &[3, 4, 19];
        "country=Spain" => &[2, 12, 14, 24];
        "country=Spain%20" "country=Spain+" => &[23];
        "country=T%C3%BCrkiye" => &[20];
        "country=United+States" => &[1, 5, 15];
        "therapy_area=Cardiology" => &[4, 5, 6, 9, 12, 24];
        "therapy_area=%C3%84rztekunde" => &[24];
        "therapy_area=Hematology" => &[1];
        "start_date_from=2026-12-20" "therapy_area=Oncology&start_date_from=2026-12-01"
            => &[8, 10, 17, LAST];
        "start_date_to=2024-02-29" => &[11, 16];
        "start_date_from=2026-05-29&start_date_to=2026-05-29" => &[1, 18];
        "start_date_from=2026-05-28&start_date_to=2026-05-30" => &[1, 13, 18, 20];
        "year=2026&country=Germany&therapy_area=Oncology" => &[19];
        "year=2026&country=Germany&q=esc" => &[4];
    ];
    check_ids(&World::small(), "full", cases);
}

#[test]
fn text_is_found_in_names_and_abbreviations() {
    let cases: &[(&str, &[u64])] = &outcomes![
        "q=congress" => &[2, 3, 4, 16, 17];
        "q=CONGRESS+2026" => &[2, 4];
        "q=asco" => &[1];
        "q=am" => &[12, 14];
        "q=lodz" => &[8];
        "q=SOCI%C3%89T%C3%89" => &[6];
        "q=%E7%99%8C%E5%AD%A6" => &[7];
        "q=100%25_" "q=%25_" => &[23];
        "q=%22great%22%2C" "q=g%3Bl" => &[15];
        "q=%26b" => &[18];
        "q=%09ta" => &[24];
        "q=%3Dh" => &[14];
        // The first `=` ends the name of a parameter, and the first `?` the path.
        "q==h" => &[14];
        "q=h=" "q=am?" "year=2026&q=congress?year=2026" "q=.*" "q=chicago" "q=american+society" => &[];
        // The end of a name and the start of its abbreviation.
        "q=2026es" "q=gam" => &[];
    ];
    check_ids(&World::small(), "full", cases);
    // Scalar values are counted, not bytes.
    let long = |letter: &str, count: usize| format!("/v1/conferences?q={}", letter.repeat(count));
    let world = World::small();
    for (letter, count, expected) in [
        ("a", 1, 400),
        ("a", 2, 200),
        ("a", 100, 200),
        ("a", 101, 400),
        ("%C3%84", 1, 400),
        ("%C3%84", 100, 200),
        ("%F0%9F%98%80", 2, 200),
        ("%F0%9F%98%80", 101, 400),
    ] {
        world.get("full", &long(letter, count)).expect(expected);
    }
}

#[test]
fn bad_parameters_get_400_with_a_reason() {
    let invalid = "invalid_parameter";
    let cases = outcomes![
        "limit=0" => (invalid, "`limit`: must be a whole number from 1 to 500");
        "limit=501" => (invalid, "1 to 500");
        "limit=-1" "limit=ten" "limit=1.5" "limit=+5" "limit=99999999999999999999"
            => (invalid, "`limit`");
        "limit=" "limit" => (invalid, "`limit`: is empty");
        "limit=5&limit=5" => (invalid, "`limit`: is given more than once");
        "year=1899" => (invalid, "`year`: must be a whole number from 1900 to 2100");
        "year=2101" => (invalid, "1900 to 2100");
        "year=2026.0" "year=twenty" "year=%D9%A2%D9%A0%D9%A2%D9%A6" => (invalid, "`year`");
        "q=a" => (invalid, "`q`: must have 2 to 100 characters, not 1");
        "q=" => (invalid, "`q`: is empty");
        "q=%zz" "q=ab%2" => (invalid, "`q`: is not valid percent-encoded");
        "q=%ff%fe" => (invalid, "UTF-8");
        "q=a%00b" => (invalid, "NUL");
        "country=" => (invalid, "`country`: is empty");
        "country=a&country=b" => (invalid, "`country`: is given more than once");
        "therapy_area=" => (invalid, "`therapy_area`: is empty");
        "start_date_from=2026-02-30" => (invalid, "`start_date_from`");
        "start_date_from=2026-2-3" => (invalid, "YYYY-MM-DD");
        "start_date_to=2026-03-15T00:00:00Z" "start_date_to=0000-01-01" => (invalid, "`start_date_to`");
        "updated_since=yesterday" => (invalid, "`updated_since`");
        "updated_since=2026-03-15T09:30:00+02:00" => (invalid, "`%2B`");
        "updated_since=1773567000" => (invalid, "2026-03-15T09:30:00Z");
        "yeer=2026" => ("unknown_parameter", "`yeer`. Did you mean `year`?");
        "Year=2026" => ("unknown_parameter", "Did you mean `year`?");
        "since=x"
            => ("unknown_parameter", "Allowed are: `limit`, `cursor`, `updated_since`, `q`, `year`, ");
        "format=csv"
            => ("unknown_parameter", "`start_date_from`, `start_date_to`, `country`, `therapy_area`");
        "=5" => ("unknown_parameter", "Allowed are");
        "cursor=" "cursor" "cursor=%zz" "cursor=%00" => ("invalid_cursor", "`cursor`");
        "cursor=abc" => ("invalid_cursor", "`next_cursor`");
        "cursor=a&cursor=a" => (invalid, "`cursor`: is given more than once");
    ];
    check_refused(&World::small(), &cases);
}

#[test]
fn a_cursor_serves_its_own_list_alone() {
    let world = World::small();
    world.license("full-too", "conferences journals");
    let cursor = world
        .get("full", "/v1/conferences?limit=2&therapy_area=Oncology")
        .cursor()
        .unwrap();
    let conferences = |filters: &str| format!("/v1/conferences?{filters}&cursor={cursor}");
    let other_kind = world.get("full", "/v1/conferences/changes").token();
    let cases = cases![
        "full", conferences("therapy_area=Oncology"), true;
        "full", conferences("therapy_area=Oncology&limit=1"), true;
        "full", conferences("limit=500&therapy_area=%4Fncology"), true;
        "full", conferences("limit=2"), false;
        "full", conferences("therapy_area=Cardiology"), false;
        "full", conferences("therapy_area=Oncology&year=2026"), false;
        "full", conferences("country=Oncology"), false;
        "full", format!("/v1/journals?cursor={cursor}"), false;
        "full-too", conferences("therapy_area=Oncology"), false;
        "onco", conferences("therapy_area=Oncology"), false;
        "full", conferences("therapy_area=Oncology") + "A", false;
        "full", format!("/v1/conferences?therapy_area=Oncology&cursor={other_kind}"), false;
    ];
    for (key, path, taken) in cases {
        let answer = world.get(key, &path);
        if taken {
            assert_eq!(answer.expect(200).ids()[0], 3, "{key} {path}");
        } else {
            answer.expect_problem("invalid_cursor", "the previous page");
        }
    }
}

#[test]
fn a_cursor_is_bound_to_every_parameter() {
    let world = World::small();
    let whole = "q=co&year=2026&start_date_from=2020-01-01&start_date_to=2030-01-01&updated_since=2000-01-01";
    let list = |filters: &str, more: &str| {
        world.get("full", &format!("/v1/conferences?limit=1&{filters}{more}"))
    };
    let cursor = format!(
        "&cursor={}",
        list(whole, "").cursor().expect("more than one")
    );
    let reordered: Vec<&str> = whole.rsplit('&').collect();
    list(&reordered.join("&"), &cursor).expect(200);
    let left_out = whole.split('&').map(|part| (part, ""));
    let replaced = [
        ("q=co", "q=CO"),
        ("since=2000-01-01", "since=2000-01-01T00:00:01Z"),
        ("year=2026", "country=2026"),
    ];
    for (from, to) in left_out.chain(replaced) {
        let code = list(whole.replacen(from, to, 1).trim_matches('&'), &cursor).code();
        assert_eq!(code, "invalid_cursor", "{from} as {to:?}");
    }
}

#[test]
fn a_cursor_works_after_removals_and_a_license_change() {
    let world = World::small();
    let cursor = world
        .get("onco", "/v1/conferences?limit=3")
        .cursor()
        .unwrap();
    let expected = world
        .get("onco", "/v1/conferences?limit=3")
        .cursor()
        .unwrap();
    assert_eq!(cursor, expected, "deterministic");
    let next = format!("/v1/conferences?limit=2&cursor={cursor}");
    assert_eq!(world.get("onco", &next).ids(), [7, 8]);
    world.conferences(&[removal(3), removal(7)]);
    let ids = world.get("onco", &next).ids();
    assert_eq!(ids, [8, 10], "its record and the next are gone");
    world.license("onco", "conferences; areas: Cardiology");
    assert_eq!(world.get("onco", &next).ids(), [4, 5], "another scope");
    world.license("onco", "journals");
    world
        .get("onco", &next)
        .expect_problem("dataset_not_licensed", "`conferences`");
}

#[test]
fn a_record_has_every_field_in_order() {
    let world = World::small();
    let text = world.get("full", "/v1/conferences/22").expect(200).text();
    let updated_at = world.get("full", "/v1/conferences/22").json()["data"]["updated_at"].clone();
    let expected = format!(
        concat!(
            r#"{{"data":{{"id":22,"name":"Minimal","abbv":null,"year":null,"start_date":null,"#,
            r#""start_date_status":"not_found","end_date":null,"abstract_due_date":null,"#,
            r#""abstract_due_date_status":"not_found","late_breaking_due_date":null,"#,
            r#""late_breaking_due_date_status":"not_found","country":null,"city":null,"venue":null,"url":null,"#,
            r#""therapy_areas":[],"organizations":[],"tags":[],"formats":{{"oral":null,"poster":null,"e_poster":null,"#,
            r#""published_abstract":null,"encore":null}},"updated_at":{}}}}}"#
        ),
        updated_at
    );
    assert_eq!(text, expected);
    let whole = world.get("full", "/v1/conferences/1").json()["data"].clone();
    let cases = cases![
        "start_date", json!("2026-05-29");
        "abstract_due_date_status", json!("estimated");
        "therapy_areas", json!(["Hematology", "Oncology"]);
        "organizations",
            json!([{"id": 1, "name": "American Society of Clinical Oncology", "abbv": "ASCO", "type": "society",
                "url": "https://asco.example"}]);
        "formats", json!({"oral": true, "poster": true, "e_poster": false, "published_abstract": true, "encore": null});
    ];
    for (field, expected) in cases {
        assert_eq!(whole[field], expected, "{field}");
    }
    let tags = json!([
        {"id": 1, "type": "topic-area", "name": "Lung: small cell", "category": "Thoracic"},
        {"id": 3, "type": "audience", "name": "Nurses", "category": null},
        {"id": 5, "type": "attendee-geography", "name": "Global", "category": null},
    ]);
    assert_eq!(whole["tags"], tags);
    // Code points, not the alphabet, order areas.
    assert_eq!(
        world.get("full", "/v1/conferences/24").json()["data"]["therapy_areas"],
        json!(["Cardiology", "Ärztekunde"])
    );
    let listed = world.get("full", "/v1/conferences?limit=1").items();
    assert_eq!(listed, [whole], "lists carry the same shape");
}

#[test]
fn single_records_are_returned_or_get_404() {
    let world = World::small();
    let cases = outcomes![
        "/v1/conferences/1" "/v1/conferences/9007199254740991" "/v1/conferences/%31" => ("full", "");
        "/v1/conferences/9007199254740992" "/v1/conferences/99999999999999999999999999"
        "/v1/conferences/0" "/v1/conferences/-1" "/v1/conferences/26" => ("full", "record_not_found");
        "/v1/conferences/4" => ("onco", "record_not_found");
        "/v1/conferences/1" => ("onco", "");
        "/v1/conferences/2" => ("spain", "");
        "/v1/conferences/12" "/v1/conferences/23" => ("spain", "record_not_found");
        "/v1/conferences/one" => ("full", "not_found");
        "/v1/conferences/1?limit=5" => ("full", "unknown_parameter");
    ];
    for (path, (key, code)) in cases {
        let answer = world.get(key, path);
        assert_eq!(answer.code(), code, "{key} {path}: {}", answer.status);
    }
    world.conferences(&[removal(1)]);
    world
        .get("full", "/v1/conferences/1")
        .expect_problem("record_not_found", "conferences");
    world.conferences(&[conference(1, json!({"name": "Again"}))]);
    assert_eq!(
        world.get("full", "/v1/conferences/1").json()["data"]["name"],
        "Again"
    );
}

#[test]
fn a_license_shows_records_that_match_every_given_set() {
    let world = World::small();
    let all: Vec<u64> = (1..=24).chain([LAST]).collect();
    let cases: &[(&str, &[u64])] = &cases![
        "conferences", &all;
        "conferences; areas: Cardiology", &[4, 5, 6, 9, 12, 24];
        "conferences; areas: Neurology, Hematology", &[1, 15, 18];
        "conferences; countries: Spain", &[2, 12, 14, 24];
        "conferences; years: 2025", &[3, 6, 23];
        "conferences; countries: Spain; years: 2026", &[2, 14, 24];
        "conferences; areas: Oncology; countries: Spain, Germany; years: 2025 2026", &[2, 3, 14, 19];
        "conferences; areas: Oncology; countries: France", &[18];
        "conferences; areas: oncology", &[];
        "conferences; countries:", &[];
    ];
    for (at, (shows, expected)) in cases.iter().enumerate() {
        let name = format!("license-{at}");
        world.license(&name, shows);
        let listed = world.get(&name, "/v1/conferences").expect(200);
        assert_eq!(listed.ids(), *expected, "{shows}");
        for id in &all {
            let status = if expected.contains(id) { 200 } else { 404 };
            world
                .get(&name, &format!("/v1/conferences/{id}"))
                .expect(status);
        }
    }
}
