//! HTTP itself: methods, bodies, paths, lengths, conditional requests, compression.

use medfeed::store::write::licensing::KeySettings;
use serde_json::json;

use crate::harness::{Answer, World, conference, gunzip, patch};

#[test]
fn every_operation_is_a_get() {
    let world = World::small();
    let key = world.key("full").text;
    let paths = words![
        "/v1/conferences" "/v1/conferences/1" "/v1/journals/changes" "/v1/exports/journals" "/v1/status"
        "/v1/reference/tags" "/docs" "/openapi.json" "/docs/errors/not_found"
    ];
    for path in paths {
        for method in [
            "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE", "CONNECT", "PROPFIND", "get",
            "Head",
        ] {
            for has_body in [false, true] {
                let answer = world
                    .ask(method, path, &[("x-api-key", &key)], has_body)
                    .expect(405);
                answer.expect_problem("method_not_allowed", method);
            }
        }
        for method in ["GET", "HEAD"] {
            let answer = world
                .ask(method, path, &[("x-api-key", &key)], true)
                .expect(400);
            let header = answer.header("connection");
            assert_eq!(header, Some("close"), "{method} {path}");
        }
        world
            .ask("GET", path, &[], true)
            .expect_problem("invalid_request", "must not have a body");
    }
}

#[test]
fn paths_are_matched_exactly() {
    let world = World::small();
    let key = world.key("full").text;
    let cases = outcomes![
        "/v1/%63onferences" "/%76%31/status" "/" "/explorer/app.js" "/explorer/app%2Ejs" "/%64ocs"
        "/openapi%2Ejson" "/docs/errors/not%5Ffound" "/favicon.ico" => 200;
        "/%761/nowhere" "/v1/conferences%2F1" "/v1/conferences/%2531" "/v1/%zz" "/explorer/none.js"
        "/docs/errors/not%255Ffound" "/demo.json" "*" "" "/docs/errors/nothing" => 404;
    ];
    for (path, status) in cases {
        let answer = world.request("GET", path, &[("x-api-key", &key)]);
        assert_eq!(answer.status, status, "{path}");
        if status == 404 {
            answer.expect_problem("not_found", "");
        }
    }
}

#[test]
fn a_target_has_at_most_4096_bytes() {
    let world = World::small();
    let query = |length: usize| {
        let start = "/v1/conferences?q=";
        format!("{start}{}", "a".repeat(length - start.len()))
    };
    let path = |length: usize| format!("/v1/{}", "a".repeat(length - 4));
    let cases = [
        (query(4096), 400, "invalid_parameter"),
        (query(4097), 414, "invalid_request"),
        (query(100_000), 414, "invalid_request"),
        (path(4096), 404, "not_found"),
        (path(4097), 414, "invalid_request"),
    ];
    for (target, status, code) in cases {
        let answer = world.get("full", &target);
        assert_eq!(answer.status, status, "{} bytes", target.len());
        assert_eq!(answer.code().as_str(), code, "{} bytes", target.len());
    }
}

#[test]
fn if_none_match_gets_304_for_an_equal_tag() {
    let world = World::small();
    for path in
        words!["/v1/conferences?limit=3" "/v1/journals/1" "/v1/reference/tags?dataset=journals"]
    {
        let etag = world.get("full", path).etag();
        let cases: Vec<(Vec<String>, u16)> = vec![
            (vec![etag.clone()], 304),
            (vec![format!("\"x\", {etag}")], 304),
            (vec!["\"x\"".to_owned(), etag.clone()], 304),
            (vec!["\"x\"".to_owned()], 200),
        ];
        for (values, status) in cases {
            let headers = values.iter().map(|value| ("if-none-match", value.as_str()));
            let headers: Vec<(&str, &str)> = headers.collect();
            let answer = world.get_with("full", path, &headers).expect(status);
            assert_eq!(answer.etag(), etag, "{path} {values:?}");
        }
    }
}

#[test]
fn answers_without_a_tag_ignore_conditions() {
    let world = World::small();
    let paths = words!["/v1/status" "/v1/conferences/changes" "/openapi.json" "/docs"];
    for path in paths {
        // The central check notices if the answer has the caller's request id.
        let headers = [
            ("if-none-match", "*"),
            ("range", "bytes=0-1"),
            ("x-request-id", "mine"),
        ];
        world.get_with("full", path, &headers).expect(200);
    }
    for (path, status) in [
        ("/v1/conferences/999", 404),
        ("/v1/conferences?limit=0", 400),
        ("/v1/nowhere", 404),
    ] {
        world
            .get_with("full", path, &[("if-none-match", "*")])
            .expect(status);
    }
    world
        .get_with("", "/v1/conferences", &[("if-none-match", "*")])
        .expect(401);
}

#[test]
fn gzip_is_negotiated() {
    let world = World::small();
    let large = words![
        "/v1/conferences" "/v1/journals" "/v1/conferences/changes?updated_since=2000-01-01"
        "/v1/conferences?year=2026&limit=9"
    ];
    let accepted = [
        ("gzip", true),
        ("deflate, gzip;q=0.1, br", true),
        ("identity", false),
        ("gzip;q=0", false),
    ];
    for path in large {
        let plain = world.get("full", path).expect(200);
        assert!(plain.body.len() > 1_400, "{path} is large enough");
        for (value, is_packed) in accepted {
            let answer = world
                .get_with("full", path, &[("accept-encoding", value)])
                .expect(200);
            assert_eq!(
                answer.header("content-encoding") == Some("gzip"),
                is_packed,
                "{path} {value:?}"
            );
            assert_eq!(answer.content(), plain.body, "{path} {value:?}");
            let expected = plain.header("etag");
            assert_eq!(answer.header("etag"), expected, "{path} {value:?}");
            let expected = Some("application/json");
            assert_eq!(answer.header("content-type"), expected, "{path} {value:?}");
            if is_packed {
                assert!(answer.body.len() < plain.body.len(), "{path} {value:?}");
                let expected = [0x1f, 0x8b, 8, 0, 0, 0, 0, 0];
                assert_eq!(&answer.body[..8], expected, "no time in the header");
                assert_eq!(gunzip(&answer.body), plain.body);
            }
        }
    }
    // Small answers are not compressed, and neither are problems.
    for path in words![
        "/v1/status" "/v1/conferences?year=1999" "/v1/conferences?limit=0" "/v1/conferences/changes"
    ] {
        let answer = world.get_with("full", path, &[("accept-encoding", "gzip")]);
        assert_eq!(answer.header("content-encoding"), None, "{path}");
    }
}

#[test]
fn etags_are_equal_exactly_if_contents_are() {
    let world = World::small();
    let paths = words![
        "conferences" "conferences?limit=500" "conferences?limit=25" "conferences?limit=24"
        "conferences?limit=1" "conferences?limit=2" "conferences?updated_since=2000-01-01"
        "conferences?updated_since=2000-01-01&limit=2" "conferences?updated_since=2000-01-01T00:00:00Z&limit=2"
        "conferences?updated_since=2000-01-01T01:00:00%2B01:00&limit=2" "conferences?year=2025"
        "conferences?year=2025&limit=1" "conferences?country=Germany&limit=1" "conferences?q=congress+2025"
        "conferences?q=%63ongress%202025&limit=1" "conferences?q=esmo&limit=1" "conferences?q=ESMO&limit=1"
        "conferences?year=2100" "conferences?start_date_from=2100-12-31" "conferences?year=1999"
        "conferences?country=Nowhere" "conferences/1" "conferences/2" "conferences/17" "conferences/%31%37"
        "journals" "journals?limit=12" "journals?q=nothing+at+all" "journals?q=jco" "journals?q=JCO"
        "journals/1" "journals/10" "reference/therapy-areas" "reference/tags?dataset=conferences"
        "reference/tags?dataset=journals" "reference/tags?dataset=journals&type=audience"
        "reference/tags?type=none&dataset=journals" "reference/tags?type=none&dataset=conferences"
        "reference/organizations?dataset=conferences" "reference/organizations?dataset=journals"
    ];
    let mut answers: Vec<(&str, Answer)> = Vec::new();
    for key in ["full", "onco", "papers", "spain"] {
        let all = paths
            .iter()
            .map(|path| (key, world.get(key, &format!("/v1/{path}"))));
        answers.extend(all.filter(|(_, answer)| answer.status == 200));
    }
    assert!(answers.len() > 80);
    let mut equal = 0;
    for (at, (key, one)) in answers.iter().enumerate() {
        for (other_key, other) in &answers[at + 1..] {
            // The same cursor of two licenses differs in its bytes, but not in its meaning.
            if key != other_key && one.text().contains("\"has_more\":true") {
                continue;
            }
            let same = one.body == other.body;
            equal += usize::from(same);
            assert_eq!(
                one.etag() == other.etag(),
                same,
                "{key} {} and {other_key} {}",
                one.asked,
                other.asked
            );
        }
    }
    assert!(equal > 30, "{equal} pairs");
}

#[test]
fn a_tag_covers_the_meaning_of_a_cursor() {
    let world = World::small();
    world.license("full-too", "conferences journals");
    let [one, other] =
        ["full", "full-too"].map(|key| world.get(key, "/v1/conferences?limit=3&year=2026"));
    assert_ne!(one.body, other.body);
    assert_eq!(one.etag(), other.etag());
}

#[test]
fn an_etag_changes_only_with_the_content_of_the_answer() {
    let world = World::small();
    let paths = words![
        "conferences?limit=3" "conferences/1" "conferences?year=2026" "reference/therapy-areas"
        "reference/tags?dataset=conferences" "journals"
    ];
    let tags = || paths.map(|path| world.get("full", &format!("/v1/{path}")).etag());
    // A change, and which of the paths above it affects.
    type Change = fn(&World);
    let cases: [(&str, Change, [bool; 6]); 7] = cases![
        "a key", |world| drop(world.new_key("k", "full", Default::default())), [false; 6];
        "a rate limit", |world| world.set_rate_limit("full", 1_000), [false; 6];
        "the last record of the first page", |world| world.conferences(&[patch(3, json!({"venue": "V"}))]),
            [true, false, false, false, false, false];
        "a record that both pages show", |world| world.conferences(&[patch(1, json!({"venue": "V"}))]),
            [true, true, true, false, false, false];
        "a new record at the end", |world| world.conferences(&[conference(40, json!({"year": 2026}))]),
            [false, false, true, false, false, false];
        "an area", |world| world.conferences(&[patch(40, json!({"therapy_areas": ["New"]}))]),
            [false, false, true, true, false, false];
        "a tag of a category", |world| world.import(&[("tags", &[patch(7, json!({"category": "C"}))])]),
            [false, false, true, false, true, false];
    ];
    for (what, change, expected) in cases {
        let before = tags();
        change(&world);
        let after = tags();
        for (at, path) in paths.iter().enumerate() {
            assert_eq!(before[at] != after[at], expected[at], "{what}: {path}");
        }
    }
}

#[test]
fn only_a_key_that_may_be_used_here_counts_for_its_connection() {
    let world = World::small();
    world.set_rate_limit("spain", 1);
    let elsewhere = KeySettings {
        allowed_ips: vec!["10.0.0.1/32".parse().unwrap()],
        ..KeySettings::default()
    };
    world.new_key("elsewhere", "full", elsewhere);
    world.new_key("revoked", "full", KeySettings::default());
    let id = world.key("revoked").id;
    world.edit(|edit| drop(edit.revoke_key(&id).unwrap()));
    let cases = [
        ("full", "/v1/conferences", 200, true),
        ("full", "/v1/conferences/changes", 200, true),
        ("full", "/v1/conferences/0", 404, true),
        ("papers", "/v1/conferences", 403, true),
        ("full", "/v1/conferences?limit=0", 400, true),
        ("spain", "/v1/conferences", 200, true),
        ("spain", "/v1/conferences", 429, true),
        ("elsewhere", "/v1/conferences", 403, false),
        ("revoked", "/v1/conferences", 401, false),
        ("full", "/v1/status", 200, false),
        ("full", "/v1/nowhere", 404, false),
        ("full", "/docs", 200, false),
    ];
    for (key, target, status, has_key) in cases {
        let response = world.run(world.ask_at_once(key, target, "identity"));
        assert_eq!(response.status.as_u16(), status, "{key} {target}");
        assert_eq!(response.key.is_some(), has_key, "{key} {target}");
    }
}
