//! `GET /v1/journals` and `GET /v1/journals/{id}`: the differences from conferences.

use crate::harness::World;

#[test]
fn journal_filters_select_and_invalid_ones_are_refused() {
    let world = World::small();
    let cases: &[(&str, &[u64])] = &[
        ("q=jco", &[1, 10]),
        ("q=coeur", &[4]),
        ("q=C%C5%93UR", &[4]),
        ("q=lodz+LET", &[8]),
        ("q=%E6%97%A5%E6%9C%AC", &[7]),
        ("q=%3Dgaba", &[5]),
        ("q=quoted", &[]),
        ("q=heartoh", &[]),
        ("limit=3", &[1, 2, 3]),
        ("updated_since=2999-01-01", &[]),
        ("updated_since=2000-01-01&q=heart", &[11]),
    ];
    for (query, expected) in cases {
        let ids = world
            .get("full", &format!("/v1/journals?{query}"))
            .expect(200)
            .ids();
        assert_eq!(ids, *expected, "{query}");
    }
    let allowed = "Allowed are: `limit`, `cursor`, `updated_since`, `q`.";
    let cases = [
        ("year=2026", "unknown_parameter", allowed),
        ("limits=5", "unknown_parameter", "Did you mean `limit`?"),
        ("limit=501", "invalid_parameter", "1 to 500"),
        ("q=j", "invalid_parameter", "`q`"),
        ("cursor=x", "invalid_cursor", "`cursor`"),
    ];
    for (query, code, piece) in cases {
        world
            .get("full", &format!("/v1/journals?{query}"))
            .expect_problem(code, piece);
    }
}

#[test]
fn a_journal_has_every_field_in_order() {
    let world = World::small();
    let answer = world.get("papers", "/v1/journals/3").expect(200);
    let expected = format!(
        concat!(
            r#"{{"data":{{"id":3,"name":"Minimal Journal","abbv":null,"issn_print":null,"issn_online":null,"#,
            r#""publisher":null,"url":null,"impact_factor":null,"impact_factor_year":null,"citescore":null,"sjr":null,"#,
            r#""h_index":null,"publishing":{{"access":null,"content_license":null,"apc_usd":null,"#,
            r#""embargo_months":null}},"timelines":{{"submit_to_first_decision":{{"min_weeks":null,"max_weeks":null}},"#,
            r#""online_submit_to_accept":{{"min_weeks":null,"max_weeks":null}},"accept_to_online":{{"min_weeks":null,"#,
            r#""max_weeks":null}},"accept_to_print":{{"min_weeks":null,"max_weeks":null}}}},"organizations":[],"#,
            r#""tags":[],"updated_at":{}}}}}"#
        ),
        answer.json()["data"]["updated_at"]
    );
    assert_eq!(answer.text(), expected);
    let numbers = world.get("papers", "/v1/journals/6").text();
    for member in words![
        "\"impact_factor\":0.0," "\"citescore\":0.0000001," "\"h_index\":9007199254740991,"
        "\"apc_usd\":1234.5,"
    ] {
        assert!(numbers.contains(member), "{member}: {numbers}");
    }
    let weeks = world.get("papers", "/v1/journals/1").json()["data"]["timelines"]["online_submit_to_accept"].clone();
    assert_eq!(weeks.to_string(), r#"{"min_weeks":6.0,"max_weeks":10.5}"#);
}

#[test]
fn single_journals_are_returned_or_get_404() {
    let world = World::small();
    let cases = [
        ("papers", "/v1/journals/1", ""),
        ("papers", "/v1/journals/9007199254740990", ""),
        ("papers", "/v1/journals/13", "record_not_found"),
        ("papers", "/v1/journals/-3", "record_not_found"),
        ("papers", "/v1/journals/a", "not_found"),
        ("onco", "/v1/journals/1", "dataset_not_licensed"),
        ("onco", "/v1/journals/13", "dataset_not_licensed"),
        ("papers", "/v1/conferences/1", "dataset_not_licensed"),
    ];
    for (key, path, code) in cases {
        assert_eq!(world.get(key, path).code(), code, "{key} {path}");
    }
}
