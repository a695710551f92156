//! The requests of `medfeed pull`, one by one: their parameters, and the meaning of each response.

use std::sync::Arc;
use std::time::Duration;

use medfeed::model::Dataset::Conferences;
use medfeed::pull::PullError;

use super::scripted::{Reply, Scripted};

fn failed(error: &PullError) -> Option<Duration> {
    match error {
        PullError::Failed { retry_after, .. } => *retry_after,
        other => panic!("{other:?}"),
    }
}

#[test]
fn wait_is_sent_only_once_to_a_service_without_it() {
    let service = Scripted::new(|asked, _| {
        if asked.line.contains("wait") {
            Reply::problem(400, "unknown_parameter")
        } else {
            Reply::page("", false, "t")
        }
    });
    let client = service.client();
    assert!(client.takes_wait());
    for expected in [
        &["since=t&wait=5", "since=t"][..],
        &["since=t"],
        &["since=t"],
    ] {
        client.changes(Conferences, "t", 5).unwrap();
        let expected: Vec<String> = expected
            .iter()
            .map(|query| format!("GET conferences/changes?{query}"))
            .collect();
        assert_eq!(service.lines(), expected);
        assert!(!client.takes_wait());
    }
    // Another error is not about `wait`.
    for code in ["invalid_parameter", "invalid_sync_token", "unavailable"] {
        let service = Scripted::new(move |_, _| Reply::problem(400, code));
        let client = service.client();
        client.changes(Conferences, "t", 5).unwrap_err();
        assert_eq!(service.lines().len(), 1, "{code}");
        assert!(client.takes_wait(), "{code}");
    }
}

#[test]
fn tokens_are_sent_escaped() {
    let service = Scripted::new(|_, _| Reply::page("", false, "t"));
    service
        .client()
        .changes(Conferences, "a+b&c=d%/é", 0)
        .unwrap();
    let expected = ["GET conferences/changes?since=a%2Bb%26c%3Dd%25%2F%C3%A9"];
    assert_eq!(service.lines(), expected);
}

#[test]
fn resync_diff_is_requested_and_its_answers_are_understood() {
    let cases: [(Reply, Result<bool, &str>); 6] = cases![
        Reply::page("{\"id\":1}", false, "t2"), Ok(true);
        Reply::problem(410, "resync_required"), Ok(false);
        // Older services do not know the parameter.
        Reply::problem(400, "unknown_parameter"), Ok(false);
        Reply::problem(400, "invalid_parameter"), Err("answered 400");
        Reply::problem(400, "invalid_sync_token"), Err("did not issue the sync token");
        Reply::problem(403, "dataset_not_licensed"), Err("does not have the dataset `conferences`");
    ];
    for (reply, expected) in cases {
        let service = Scripted::new(move |_, _| reply.clone());
        match (service.client().difference(Conferences, "t"), expected) {
            (Ok(Some(page)), Ok(true)) => assert_eq!(page.token, "t2"),
            (Ok(None), Ok(false)) => {}
            (Err(error), Err(part)) => assert!(error.to_string().contains(part), "{error}"),
            (other, expected) => panic!("{other:?} instead of {expected:?}"),
        }
        let lines = service.lines();
        assert_eq!(lines, ["GET conferences/changes?since=t&resync=diff"]);
    }
}

#[test]
fn pauses_are_whole_seconds_or_last_until_a_time() {
    // The value of `Retry-After`, and the pause that it means in an answer of 21 October 2026, 07:28:00.
    let cases: [(&str, Option<u64>); 18] = outcomes![
        "0" "Wed, 21 Oct 2026 07:28:00 GMT" "Wed, 21 Oct 2026 07:27:00 GMT" => Some(0);
        "1" "Wed, 21 Oct 2026 07:28:01 GMT" => Some(1);
        "7" => Some(7);
        "120" "Wed, 21 Oct 2026 07:30:00 GMT" => Some(120);
        "18446744073709551615" => Some(u64::MAX);
        "18446744073709551616" "-1" "1.5" "" "soon" "Thu, 21 Oct 2026 07:30:00 GMT"
        "21 Oct 2026 07:30:00 GMT" "Wed, 21 Oct 2026 07:30:00 +0200" => None;
        "Thu, 22 Oct 2026 07:28:00 GMT" => Some(86_400);
    ];
    for (value, expected) in cases {
        for (status, code) in [
            (429, "rate_limited"),
            (503, "unavailable"),
            (500, "internal_error"),
        ] {
            let service = Scripted::new(move |_, _| {
                Reply::problem(status, code)
                    .with("retry-after", value)
                    .with("date", "Wed, 21 Oct 2026 07:28:00 GMT")
            });
            let error = service.client().changes(Conferences, "t", 0).unwrap_err();
            assert_eq!(
                failed(&error),
                expected.map(Duration::from_secs),
                "{status} {value:?}"
            );
        }
    }
    // Without the service's clock, this machine's clock counts.
    let in_an_hour = medfeed::model::time::now().plus_s(3600).to_string();
    let (day, clock) = in_an_hour.trim_end_matches('Z').split_once('T').unwrap();
    let day: jiff::civil::Date = day.parse().unwrap();
    let until = format!("{} {clock} GMT", day.strftime("%a, %d %b %Y"));
    let service =
        Scripted::new(move |_, _| Reply::problem(503, "unavailable").with("retry-after", &until));
    let pause = failed(&service.client().changes(Conferences, "t", 0).unwrap_err()).unwrap();
    assert!((3590..=3600).contains(&pause.as_secs()), "{pause:?}");
}

#[test]
fn each_error_has_its_remedy() {
    // (status, code, exit code, a part of the message)
    let cases = cases![
        400, "invalid_sync_token", 4, "check the address, or replace the copy's content with --reload";
        400, "invalid_parameter", 1, "answered 400 Bad Request: No.";
        401, "missing_api_key", 3, "answered 401 Unauthorized: No.";
        401, "expired_api_key", 3, "answered 401 Unauthorized: No.";
        403, "dataset_not_licensed", 3, "the license of the key does not have the dataset `conferences`";
        403, "ip_not_allowed", 3, "answered 403 Forbidden: No.";
        404, "not_found", 1, "check the address: no medfeed service answers there";
        405, "x", 1, "check the address: no medfeed service answers there";
        301, "x", 1, "check the address: no medfeed service answers there";
        308, "x", 1, "check the address: no medfeed service answers there";
        304, "x", 1, "check the address: no medfeed service answers there";
        408, "x", 1, "answered 408 Request Timeout: No.";
        500, "internal_error", 1, "answered 500 Internal Server Error: No.";
        503, "unavailable", 1, "answered 503 Service Unavailable: No.";
        202, "x", 1, "answered 202 Accepted: No.";
    ];
    for (status, code, exit_code, part) in cases {
        let reply = Reply::problem(status, code);
        let service = Scripted::new(move |_, _| reply.clone());
        let error = service.client().changes(Conferences, "t", 0).unwrap_err();
        assert!(
            error.exit_code() == exit_code && error.to_string().contains(part),
            "{status} {code}: {error:?}"
        );
    }
}

#[test]
fn the_code_of_an_error_follows_the_last_errors_of_its_type() {
    let cases = cases![
        "https://x.example/errors/dataset_not_licensed", true;
        "https://x.example/errors/errors/dataset_not_licensed", true;
        "https://x.example/errors/old/errors/dataset_not_licensed", true;
        "https://x.example/dataset_not_licensed", false;
        "https://x.example/errors/dataset_not_licensed/more", false;
        "https://x.example/errors/not_dataset_not_licensed", false;
        "about:blank", false;
    ];
    for (kind, expected) in cases {
        let service =
            Scripted::new(move |_, _| Reply::new(403, format!("{{\"type\":\"{kind}\"}}")));
        let error = service.client().changes(Conferences, "t", 0).unwrap_err();
        let found = matches!(error, PullError::NotLicensed(_));
        assert_eq!(found, expected, "{kind}: {error:?}");
    }
}

#[test]
fn long_details_of_errors_are_cut() {
    for (length, is_whole) in [(499, true), (500, true), (501, false), (5000, false)] {
        let body = format!("{{\"detail\":\"{}\"}}", "é".repeat(length));
        let service = Scripted::new(move |_, _| Reply::new(500, body.clone()));
        let message = service
            .client()
            .changes(Conferences, "t", 0)
            .unwrap_err()
            .to_string();
        let (letters, is_cut) = (message.matches('é').count(), message.ends_with('…'));
        assert_eq!((letters, is_cut), (length.min(500), !is_whole), "{length}");
    }
}

#[test]
fn a_key_is_never_sent_to_another_address() {
    let other = Scripted::new(|_, _| Reply::page("", false, "t"));
    for status in [301, 302, 303, 307, 308] {
        let location = format!("{}/v1/conferences/changes?since=t", other.url());
        let service = Scripted::new(move |_, _| Reply::new(status, "").with("location", &location));
        let error = service.client().changes(Conferences, "t", 0).unwrap_err();
        let told = format!(
            "redirects to {}; use that address if you trust it",
            other.url()
        );
        assert!(error.exit_code() == 3, "{status}: {error}");
        assert!(error.to_string().contains(&told), "{status}: {error}");
        assert_eq!(service.take()[0].header("authorization"), Some("Bearer k"));
        assert_eq!(other.lines(), [""; 0], "{status}");
    }
}

/// The lines of an export, and the bytes after which its first connection breaks.
fn long_export() -> (Vec<String>, usize) {
    let lines: Vec<String> = (1..=400_u64)
        .map(|id| format!("{{\"id\":{id},\"name\":\"{:x}\"}}", id.pow(3) * 7919))
        .collect();
    let length = export(&lines).body().len();
    (lines, length / 2)
}

fn export(lines: &[String]) -> Reply {
    Reply::export("t", &lines.iter().map(String::as_str).collect::<Vec<_>>())
}

#[test]
fn an_export_resumes_only_with_the_requested_range() {
    let (lines, half) = long_export();
    let length = export(&lines).body().len();
    // (status, `Content-Range` of the first attempt to resume, whether the export is complete after a second attempt)
    let cases: [(&str, u16, String, Result<(), &str>); 8] = cases![
        "the rest", 206, format!("bytes {half}-{}/{length}", length - 1), Ok(());
        "other bytes", 206, format!("bytes {}-{}/{length}", half - 1, length - 1), Ok(());
        "from the start", 206, format!("bytes 0-{}/{length}", length - 1), Ok(());
        "a part of the rest", 206, format!("bytes {half}-{}/{length}", length - 2), Ok(());
        "of another length", 206, format!("bytes {half}-{}/{}", length - 1, length + 1), Ok(());
        "no range", 206, String::new(), Ok(());
        "another file", 200, String::new(), Err("has changed since");
        "a shorter file", 416, format!("bytes */{half}"), Err("has changed since");
    ];
    std::thread::scope(|scope| {
        for (name, status, range, expected) in cases {
            let lines = &lines;
            scope.spawn(move || {
                let whole = export(lines);
                let rest = whole.body()[half..].to_vec();
                let right = format!("bytes {half}-{}/{length}", length - 1);
                let is_right = range == right;
                let service = Scripted::new(move |asked, before| match before {
                    0 => whole.clone().with("etag", "\"e\"").cut_after(half),
                    1 => {
                        assert_eq!(asked.header("range"), Some(&*format!("bytes={half}-")));
                        assert_eq!(asked.header("if-range"), Some("\"e\""));
                        let body = if is_right {
                            rest.clone()
                        } else {
                            vec![b'?'; rest.len()]
                        };
                        Reply::new(status, body)
                            .with("content-range", &range)
                            .with("retry-after", "0")
                    }
                    _ => Reply::new(206, rest.clone()).with("content-range", &right),
                });
                let client = service.client();
                let mut read = client.export(Conferences, &|_| ()).unwrap();
                let mut found = Vec::new();
                let end = loop {
                    match read.next_record() {
                        Ok(Some(entry)) => found.push(entry.json.to_string()),
                        Ok(None) => break Ok(()),
                        Err(error) => break Err(error.to_string()),
                    }
                };
                match expected {
                    Ok(()) => assert!(end == Ok(()) && found == *lines, "{name}: {end:?}"),
                    Err(part) => assert!(
                        end.clone().is_err_and(|error| error.contains(part)),
                        "{name}: {end:?}"
                    ),
                }
                assert_eq!(
                    service.take().len(),
                    if is_right || expected.is_err() { 2 } else { 3 },
                    "{name}"
                );
            });
        }
    });
}

#[test]
fn an_export_without_a_strong_tag_is_not_resumed() {
    let (lines, half) = long_export();
    let lines = Arc::new(lines);
    for tag in [None, Some("W/\"e\"")] {
        let lines = Arc::clone(&lines);
        let service = Scripted::new(move |_, _| {
            let reply = export(&lines).cut_after(half);
            tag.map_or(reply.clone(), |tag| reply.with("etag", tag))
        });
        let client = service.client();
        let mut read = client.export(Conferences, &|_| ()).unwrap();
        let error = loop {
            match read.next_record() {
                Ok(entry) => assert!(entry.is_some(), "{tag:?}: it is not whole"),
                Err(error) => break error,
            }
        };
        assert!(
            error.to_string().contains("the export is incomplete"),
            "{tag:?}: {error}"
        );
        assert_eq!(service.take().len(), 1, "{tag:?}");
    }
}

#[test]
fn a_path_in_the_address_precedes_every_target() {
    let service = Scripted::new(|asked, _| {
        if asked.line.contains("exports") {
            Reply::export("t", &["{\"id\":1}"])
        } else {
            Reply::page("", false, "t")
        }
    });
    for end in ["/feeds/a", "/feeds/a/", "/feeds/a/v1", "/feeds/a/v1/"] {
        let url = format!("{}{end}", service.url()).parse().unwrap();
        let limits = medfeed::pull::body::ReadLimits::default();
        let client = medfeed::pull::PullClient::new(url, "k", None, limits).unwrap();
        client.changes(Conferences, "t", 0).unwrap();
        client.export_digest(Conferences).unwrap();
        let asked: Vec<String> = service.take().into_iter().map(|asked| asked.line).collect();
        let expected = [
            "GET /feeds/a/v1/conferences/changes?since=t",
            "HEAD /feeds/a/v1/exports/conferences",
        ];
        assert_eq!(asked, expected, "{end}");
    }
}
