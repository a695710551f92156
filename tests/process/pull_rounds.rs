//! The rounds of `medfeed pull`: catching up, comparing, following, and retries, with a copy in memory.

use std::sync::mpsc;
use std::time::Duration;

use medfeed::model::Dataset::{self, Conferences, Journals};
use medfeed::model::time::now;
use medfeed::pull::PullError;
use medfeed::pull::catch_up::{Done, Plan, Pull, Report, Verdict};

use super::scripted::{MemoryCopy, Notes, Reply, Scripted};
use super::site::SOON;

const ONE: &str = "{\"id\":1}";
const TWO: &str = "{\"id\":2}";

fn revoked() -> Reply {
    Reply::problem(401, "revoked_api_key")
}

fn plan(datasets: &[Dataset], are_named: bool) -> Plan {
    Plan {
        datasets: datasets.to_vec(),
        are_named,
        verify: false,
    }
}

/// Follows a service until it refuses. Returns the error and the requests.
fn followed(
    service: &Scripted,
    copy: &mut MemoryCopy,
    plan: &Plan,
    every: Duration,
) -> (PullError, Vec<String>) {
    let (client, notes) = (service.client(), Notes::default());
    let mut pull = Pull {
        server: &client,
        copy,
        events: &notes,
    };
    let Err(error) = pull.follow(plan, every, &mut |_| {});
    (error, service.lines())
}

/// Runs one round. Returns its result, the reports and the messages.
fn once(
    service: &Scripted,
    copy: &mut MemoryCopy,
    plan: &Plan,
) -> (Result<(), PullError>, Vec<Report>, Vec<String>) {
    let (client, notes, mut reports) = (service.client(), Notes::default(), Vec::new());
    let result = Pull {
        server: &client,
        copy,
        events: &notes,
    }
    .once(plan, &mut |report| reports.push(report));
    (result, reports, notes.0.take())
}

#[test]
fn followers_wait_for_their_share_of_the_interval_within_the_services_limit() {
    // (the interval in seconds, whether journals are in the license, the seconds to wait for each dataset)
    let cases = outcomes![
        2 3 => (true, 1);
        60 61 => (true, 30);
        89 => (true, 44);
        90 92 240 86_400 => (true, 45);
        2 => (false, 2);
        44 => (false, 44);
        45 46 60 7200 => (false, 45);
    ];
    for (every_s, (has_journals, wait_s)) in cases {
        let service =
            Scripted::new(
                move |asked, _| match asked.line.contains("exports/journals") {
                    true if !has_journals => Reply::problem(403, "dataset_not_licensed"),
                    _ if asked.line.contains("exports/") => Reply::export("t0", &[ONE]),
                    _ if asked.line.contains("journals") || !has_journals => revoked(),
                    _ => Reply::page("", false, "t0"),
                },
            );
        let every = Duration::from_secs(every_s);
        let (error, asked) = followed(
            &service,
            &mut MemoryCopy::default(),
            &plan(&Dataset::ALL, false),
            every,
        );
        assert!(matches!(error, PullError::Refused(_)), "{error:?}");
        let mut expected: Vec<String> = vec![
            "GET exports/conferences".into(),
            "GET exports/journals".into(),
        ];
        expected.push(format!("GET conferences/changes?since=t0&wait={wait_s}"));
        if has_journals {
            expected.push(format!("GET journals/changes?since=t0&wait={wait_s}"));
        }
        assert_eq!(asked, expected, "every {every_s} s");
    }
}

#[test]
fn a_dataset_that_the_license_gets_back_is_followed_again() {
    // Whether journals are in the license, for each request. A refusal is confirmed by a second request if the copy has
    // records.
    let licensed = [true, false, false, true, false, true, false, false, true];
    // (the first request, whether the user named the datasets and whether the copy has journals, the number of
    // removals, the number of skips)
    let cases = [
        (0, false, true, 2, 0),
        (1, false, false, 1, 1),
        (1, false, true, 2, 0),
        (0, true, true, 2, 0),
        (1, true, true, 2, 0),
    ];
    for (first, are_named, held, removals, skips) in cases {
        let rounds = &licensed[first..];
        let mut copy = MemoryCopy::of(Conferences, "t0", &[1], now().unix_s());
        if held {
            copy.datasets
                .extend(MemoryCopy::of(Journals, "t0", &[1], now().unix_s()).datasets);
        }
        let (mut round, mut conference_requests) = (0, 0);
        let service = Scripted::new(move |asked, _| match asked.line.contains("journals") {
            false => {
                conference_requests += 1;
                // The second condition is for followers that leave journals out.
                let is_over =
                    round == licensed.len() - first || conference_requests > 2 * licensed.len();
                if is_over {
                    revoked()
                } else {
                    Reply::page("", false, "t0")
                }
            }
            true => {
                round += 1;
                match licensed[first + round - 1] {
                    false => Reply::problem(403, "dataset_not_licensed"),
                    true if asked.line.contains("exports/") => Reply::export("t0", &[ONE]),
                    true => Reply::page("", false, "t0"),
                }
            }
        });
        let (client, notes, mut reports) = (service.client(), Notes::default(), Vec::new());
        let mut pull = Pull {
            server: &client,
            copy: &mut copy,
            events: &notes,
        };
        let plan = plan(&Dataset::ALL, are_named);
        let Err(error) = pull.follow(&plan, Duration::from_millis(1), &mut |report| {
            reports.push(report.dataset)
        });
        assert!(matches!(error, PullError::Refused(_)), "{error:?}");
        let expected = rounds.iter().filter(|is_licensed| **is_licensed).count();
        assert_eq!(
            reports
                .iter()
                .filter(|dataset| **dataset == Journals)
                .count(),
            expected,
            "{rounds:?}"
        );
        // A loss is reported once, when it is noticed.
        let notes = notes.0.take();
        let removed = "journals: the license does not have this dataset any more; its 1 records were removed from the copy";
        for (told, times) in [
            (removed, removals),
            ("journals: not in the license, skipped", skips),
        ] {
            assert_eq!(
                notes.iter().filter(|note| **note == told).count(),
                times,
                "{rounds:?}: {notes:?}"
            );
        }
        assert_eq!(
            copy.done
                .iter()
                .filter(|done| *done == "clear journals")
                .count(),
            removals,
            "{rounds:?}"
        );
    }
}

#[test]
fn a_followed_copy_is_compared_when_a_day_has_passed() {
    const DAY_S: i64 = 86_400;
    // (the seconds since the last comparison, whether the user asks for one, whether the first round compares)
    let cases = [
        (0, false, false),
        (3600, false, false),
        (DAY_S - 60, false, false),
        (DAY_S, false, true),
        (DAY_S + 1, false, true),
        (30 * DAY_S, false, true),
        (-DAY_S, false, true),
        (0, true, true),
        (DAY_S, true, true),
    ];
    for (age_s, verify, is_compared) in cases {
        let service = Scripted::new(|asked, before| match before {
            3.. => revoked(),
            _ if asked.line.starts_with("HEAD") => Reply::export("t0", &[ONE]),
            _ => Reply::page("", false, "t0"),
        });
        let mut copy = MemoryCopy::of(Conferences, "t0", &[1], now().unix_s() - age_s);
        let plan = Plan {
            verify,
            ..plan(&[Conferences], true)
        };
        let (_, asked) = followed(&service, &mut copy, &plan, Duration::from_millis(1));
        let changes = "GET conferences/changes?since=t0";
        let second = if is_compared {
            "HEAD exports/conferences"
        } else {
            changes
        };
        let expected = [changes, second, changes, changes];
        assert_eq!(asked, expected, "{age_s} s ago, {verify}");
    }
}

#[test]
fn the_location_of_a_copy_is_checked_in_each_round_and_after_each_pause() {
    let sound = || Scripted::new(|_, _| Reply::page("", false, "t0"));
    let failing = || {
        Scripted::new(|_, before| match before {
            5.. => revoked(),
            _ => Reply::problem(503, "unavailable").with("retry-after", "0"),
        })
    };
    // (the service, the checks that succeed, the requests until one fails)
    let cases = [
        (sound(), 1, 1),
        (sound(), 3, 3),
        (failing(), 1, 1),
        (failing(), 2, 2),
    ];
    for (service, checks, requests) in cases {
        let mut copy = MemoryCopy::of(Conferences, "t0", &[1], now().unix_s());
        copy.checks_left = Some(checks).into();
        let every = Duration::from_millis(1);
        let (error, asked) = followed(&service, &mut copy, &plan(&[Conferences], true), every);
        let text = error.to_string();
        assert!(text.contains("the copy was replaced"), "{error}");
        assert_eq!(asked.len(), requests, "{checks} checks");
    }
    let mut copy = MemoryCopy::of(Conferences, "t0", &[1], 0);
    copy.checks_left = Some(0).into();
    let service = failing();
    let (result, ..) = once(&service, &mut copy, &plan(&[Conferences], true));
    assert!(matches!(result, Err(PullError::Unusable(_))), "{result:?}");
    assert_eq!(service.take().len(), 1, "no request after the pause");
}

#[test]
fn a_round_ends_after_five_failures_in_a_row_without_progress() {
    let unavailable = || Reply::problem(503, "unavailable").with("retry-after", "0");
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let service = Scripted::new(move |_, _| unavailable());
            let mut copy = MemoryCopy::of(Conferences, "t0", &[1], 0);
            let (result, reports, notes) = once(&service, &mut copy, &plan(&[Conferences], true));
            assert!(
                matches!(result, Err(PullError::Failed { .. })) && reports.is_empty(),
                "{result:?}"
            );
            assert_eq!((service.take().len(), notes.len()), (5, 4), "{notes:?}");
        });
        // Each page is progress, so seven failures do not end the round.
        scope.spawn(|| {
            let service = Scripted::new(move |_, before| match before {
                14 => Reply::page("", false, "t14"),
                _ if before % 2 == 0 => Reply::page(
                    &format!("{{\"id\":{}}}", before + 10),
                    true,
                    &format!("t{before}"),
                ),
                _ => unavailable(),
            });
            let mut copy = MemoryCopy::of(Conferences, "t", &[1], 0);
            let (result, reports, _) = once(&service, &mut copy, &plan(&[Conferences], true));
            result.unwrap();
            assert_eq!((reports[0].done.entries, reports[0].records), (7, 8));
            assert_eq!(copy.datasets["conferences"].token, "t14");
        });
    });
}

#[test]
fn a_dataset_outside_the_license_stops_no_other() {
    // (whether the user named the datasets, the stored records of the unlicensed one, the error)
    let cases = cases![
        false, None, None;
        true, None, Some("the license of the key does not have the dataset `conferences`;");
        false, Some(&[1, 2][..]), Some("does not have the dataset `conferences` any more; ask the operator");
        true, Some(&[1]), Some("any more; ask the operator");
    ];
    for (are_named, held, expected) in cases {
        let service = Scripted::new(|asked, _| match asked.line.contains("conferences") {
            true => Reply::problem(403, "dataset_not_licensed"),
            false => Reply::export("t0", &[ONE, TWO]),
        });
        let mut copy = held.map_or_else(MemoryCopy::default, |ids| {
            MemoryCopy::of(Conferences, "t0", ids, 0)
        });
        let (result, reports, notes) = once(&service, &mut copy, &plan(&Dataset::ALL, are_named));
        let reported: Vec<_> = reports
            .iter()
            .map(|report| (report.dataset, report.records))
            .collect();
        assert_eq!(reported, [(Journals, 2)], "{are_named} {held:?}");
        match expected {
            None => assert!(
                result.is_ok() && notes == ["conferences: not in the license, skipped"],
                "{notes:?}"
            ),
            Some(part) => {
                let error = result.unwrap_err();
                assert!(error.exit_code() == 3, "{error:?}");
                assert!(error.to_string().contains(part), "{error:?}");
            }
        }
        assert!(
            !copy.datasets.contains_key("conferences"),
            "{are_named} {held:?}"
        );
        let told = format!(
            "its {} records were removed from the copy",
            held.map_or(0, <[i64]>::len)
        );
        let found = notes.iter().any(|note| note.contains(&told));
        assert_eq!(found, held.is_some(), "{notes:?}");
    }
    // Without any dataset there is nothing to copy.
    let service = Scripted::new(|_, _| Reply::problem(403, "dataset_not_licensed"));
    let (result, ..) = once(
        &service,
        &mut MemoryCopy::default(),
        &plan(&Dataset::ALL, false),
    );
    assert!(
        matches!(result, Err(PullError::NotLicensed(Conferences))),
        "{result:?}"
    );
    assert_eq!(service.take().len(), 2);
}

#[test]
fn only_a_license_that_lacks_the_dataset_twice_removes_records() {
    let (lacks, page) = (
        || Reply::problem(403, "dataset_not_licensed"),
        || Reply::page("", false, "t0"),
    );
    let busy = || Reply::problem(503, "unavailable").with("retry-after", "0");
    // (the responses, of which the last one is repeated; the exit code; whether the records are removed; the requests)
    let cases: [(&[Reply], u8, bool, usize); 9] = [
        (&[lacks(), lacks()], 3, true, 2),
        (&[lacks(), page()], 0, false, 2),
        // A failure in between restarts the count.
        (&[lacks(), busy(), lacks(), page()], 0, false, 4),
        (&[busy(), lacks(), lacks()], 3, true, 3),
        (&[lacks(), revoked()], 3, false, 2),
        (&[revoked()], 3, false, 1),
        (&[Reply::problem(403, "ip_not_allowed")], 3, false, 1),
        (&[Reply::problem(403, "")], 3, false, 1),
        (&[Reply::problem(404, "dataset_not_licensed")], 1, false, 5),
    ];
    std::thread::scope(|scope| {
        for (replies, exit_code, is_removed, requests) in &cases {
            scope.spawn(move || {
                let script = replies.to_vec();
                let service =
                    Scripted::new(move |_, before| script[before.min(script.len() - 1)].clone());
                let mut copy = MemoryCopy::of(Conferences, "t0", &[1, 2], now().unix_s());
                let (result, _, notes) = once(&service, &mut copy, &plan(&[Conferences], false));
                let code = result.as_ref().map_or_else(PullError::exit_code, |()| 0);
                let found = (code, copy.datasets.is_empty());
                assert_eq!(found, (*exit_code, *is_removed), "{result:?} {notes:?}");
                assert_eq!(service.take().len(), *requests, "{result:?} {notes:?}");
            });
        }
    });
}

#[test]
fn a_redirect_ends_a_single_round_but_no_follower() {
    let replies = |asked: &super::scripted::Asked, before: usize| match before {
        0 | 1 => Reply::new(302, "").with("location", "http://192.0.2.1/login"),
        2 => Reply::page(TWO, false, "t1"),
        _ if asked.line.contains("since=t1") => revoked(),
        _ => Reply::page("", false, "t0"),
    };
    let copy = || MemoryCopy::of(Conferences, "t0", &[1], now().unix_s());
    let service = Scripted::new(replies);
    let (result, ..) = once(
        &service,
        &mut copy(),
        &plan(&[Conferences, Journals], false),
    );
    let error = result.unwrap_err();
    let told = "redirects to http://192.0.2.1/login; use that address if you trust it";
    assert!(error.exit_code() == 3, "{error}");
    assert!(error.to_string().contains(told), "{error}");
    assert_eq!(service.take().len(), 1, "asked once");
    // A login page of the network may have caused the redirect.
    let service = Scripted::new(replies);
    let every = Duration::from_millis(1);
    let (error, asked) = followed(&service, &mut copy(), &plan(&[Conferences], false), every);
    assert!(matches!(error, PullError::Refused(_)), "{error:?}");
    assert_eq!(asked.len(), 4, "{asked:?}");
}

/// Catches up with a copy at `t0` that has record 1.
fn caught_up(service: &Scripted, copy: &mut MemoryCopy) -> (Result<(), PullError>, Done) {
    let mut done = Done::default();
    let (server, events) = (&service.client(), &Notes::default());
    let result = Pull {
        server,
        copy,
        events,
    }
    .catch_up(Conferences, 0, &mut done);
    (result, done)
}

#[test]
fn a_walk_applies_each_page_and_continues_from_its_token() {
    let gone = || Reply::problem(410, "resync_required");
    // (the responses, the requests, the actions on the copy)
    type Case = (Vec<Reply>, &'static [&'static str], &'static [&'static str]);
    let cases: [Case; 5] = cases![
        vec![Reply::page("", false, "t0")], &["since=t0"], &["apply conferences t0"];
        vec![Reply::page(ONE, true, "t1"), Reply::page("", true, "t2"), Reply::page(TWO, false, "t3")],
            &["since=t0", "since=t1", "since=t2"],
            &["apply conferences t1", "apply conferences t2", "apply conferences t3"];
        vec![gone(), Reply::page(ONE, true, "t1"), Reply::page(TWO, false, "t2")],
            &["since=t0", "since=t0&resync=diff", "since=t1"],
            &["apply conferences t1", "apply conferences t2"];
        vec![gone(), gone(), Reply::export("t9", &[ONE])], &["since=t0", "since=t0&resync=diff", "export"],
            &["load conferences t9"];
        vec![Reply::page(ONE, true, "t1"), gone(), gone(), Reply::export("t9", &[ONE, TWO])],
            &["since=t0", "since=t1", "since=t1&resync=diff", "export"],
            &["apply conferences t1", "load conferences t9"];
    ];
    for (replies, requests, steps) in cases {
        let service = Scripted::new(move |_, before| replies[before].clone());
        let mut copy = MemoryCopy::of(Conferences, "t0", &[1], 0);
        let (result, done) = caught_up(&service, &mut copy);
        result.unwrap();
        let asked: Vec<String> = service
            .lines()
            .iter()
            .map(|line| line.replace("GET conferences/changes?", ""))
            .collect();
        let asked: Vec<String> = asked
            .iter()
            .map(|line| line.replace("GET exports/conferences", "export"))
            .collect();
        assert_eq!(asked, requests);
        assert_eq!(copy.done, steps);
        let expected = requests.last() == Some(&"export");
        assert_eq!(done.is_loaded, expected, "{requests:?}");
    }
    let service = Scripted::new(|_, _| Reply::export("t9", &[ONE]));
    let mut copy = MemoryCopy::default();
    caught_up(&service, &mut copy).0.unwrap();
    let expected = ["load conferences t9"];
    assert_eq!(copy.done, expected, "a new copy is written as a whole");
}

#[test]
fn a_page_that_repeats_its_token_is_not_applied() {
    let gone = Reply::problem(410, "resync_required");
    let cases = [
        vec![Reply::page(TWO, true, "t0")],
        vec![gone, Reply::page(TWO, true, "t0")],
        vec![Reply::page(TWO, false, "t0")],
        vec![Reply::page("", true, "t1"), Reply::page(TWO, true, "t1")],
    ];
    for replies in cases {
        let service = Scripted::new(move |_, before| replies[before].clone());
        let mut copy = MemoryCopy::of(Conferences, "t0", &[1], 0);
        let (result, _) = caught_up(&service, &mut copy);
        assert!(result.is_err_and(|error| error.to_string().contains("does not end")));
        assert_eq!(copy.datasets["conferences"].records.len(), 1);
    }
}

/// Compares a copy with a service that answers with empty pages, and with `exports` in turn. Returns the requested
/// methods.
fn compared(
    copy: &mut MemoryCopy,
    exports: Vec<Reply>,
) -> (Result<Verdict, PullError>, Vec<String>) {
    let mut heads = 0;
    let service = Scripted::new(move |asked, _| {
        if asked.line.contains("/changes?since=t0") {
            return Reply::page("", false, "t0");
        }
        if asked.line.contains("/changes") {
            return Reply::page("", false, "t1");
        }
        let at = heads.min(exports.len() - 1);
        heads += usize::from(asked.line.starts_with("HEAD"));
        exports[at].clone()
    });
    let (server, events) = (&service.client(), &Notes::default());
    let result = Pull {
        server,
        copy,
        events,
    }
    .verify(Conferences, &mut Done::default());
    (
        result,
        service
            .lines()
            .iter()
            .map(|line| line.split(' ').next().unwrap().to_owned())
            .collect(),
    )
}

fn copy_of_one() -> MemoryCopy {
    MemoryCopy::of(Conferences, "t0", &[1], 0)
}

#[test]
fn a_copy_is_compared_at_its_own_token() {
    let equal = |token: &str| Reply::export(token, &[ONE]);
    let other = |token: &str| Reply::export(token, &[ONE, TWO]);
    // The first answer is equal, even if hidden changes have changed the token.
    for token in ["t0", "t1"] {
        let mut copy = copy_of_one();
        let (result, methods) = compared(&mut copy, vec![equal(token)]);
        assert_eq!(result.unwrap(), Verdict::Sound);
        let expected = (vec!["GET".into(), "HEAD".into()], "verified conferences");
        assert_eq!((methods, copy.done.last().unwrap().as_str()), expected);
    }
    // The content changed once, and then no more.
    let mut copy = copy_of_one();
    let (result, methods) = compared(&mut copy, vec![other("t1"), equal("t0")]);
    assert_eq!(result.unwrap(), Verdict::Sound);
    assert_eq!(methods, ["GET", "HEAD", "GET", "HEAD"]);
    // The content changes again and again.
    let mut copy = copy_of_one();
    let (result, methods) = compared(&mut copy, vec![other("t1")]);
    assert!(result.is_err_and(|error| error.to_string().contains("changed again and again")));
    assert_eq!(methods.iter().filter(|method| *method == "HEAD").count(), 5);
    assert!(
        !copy.done.contains(&"verified conferences".to_owned()),
        "{:?}",
        copy.done
    );
}

#[test]
fn a_copy_with_a_fault_is_loaded_and_compared_again() {
    let equal = |token: &str| Reply::export(token, &[ONE]);
    // (the copy, the service's exports, the fault)
    type Change = fn(&mut MemoryCopy);
    let cases: [(&str, Change, Reply, &str); 5] = cases![
        "other records", |_| {}, Reply::export("t0", &[ONE, TWO]),
            "differs from the service's content (1 records instead of 2)";
        "another record", |_| {}, Reply::export("t0", &[TWO]), "differs from the service's content";
        "a wrong count", |copy| { copy.datasets.values_mut().for_each(|held| held.miscount = 1) },
            equal("t0"), "its count of records was wrong";
        "derived tables", |copy| copy.fault = Some("a table is empty".to_owned()), equal("t0"), "a table is empty";
        "derived tables, later", |copy| copy.fault = Some("a table is empty".to_owned()), equal("t1"),
            "a table is empty";
    ];
    for (name, change, export, fault) in cases {
        for spoils_loads in [false, true] {
            let mut copy = MemoryCopy {
                spoils_loads,
                ..copy_of_one()
            };
            change(&mut copy);
            let (result, methods) = compared(&mut copy, vec![export.clone()]);
            assert_eq!(methods, ["GET", "HEAD", "GET"], "{name}");
            let is_verified = copy.done.last().unwrap() == "verified conferences";
            assert_eq!(is_verified, !spoils_loads, "{name}: {:?}", copy.done);
            match result {
                Ok(Verdict::Repaired(found)) if !spoils_loads => {
                    assert!(found.contains(fault), "{name}: {found}")
                }
                Err(error @ PullError::Unusable(_)) if spoils_loads => {
                    assert!(
                        error
                            .to_string()
                            .contains("still differs after the export was loaded"),
                        "{name}: {error}"
                    );
                }
                other => panic!("{name}, {spoils_loads}: {other:?}"),
            }
        }
    }
}

#[test]
fn a_copy_is_compared_by_an_export_if_the_service_sends_no_digest() {
    let without = |lines: &[&str]| Reply::export("t0", lines).without("x-records-digest");
    let no_head = |lines: &[&str]| vec![Reply::new(405, ""), Reply::export("t0", lines)];
    for exports in [vec![without(&[ONE])], no_head(&[ONE])] {
        let (result, methods) = compared(&mut copy_of_one(), exports);
        assert!(matches!(result, Ok(Verdict::Sound)), "{result:?}");
        assert_eq!(methods, ["GET", "HEAD", "GET"]);
    }
    for exports in [vec![without(&[ONE, TWO])], no_head(&[ONE, TWO])] {
        let (result, methods) = compared(&mut copy_of_one(), exports);
        assert!(matches!(result, Ok(Verdict::Repaired(_))), "{result:?}");
        assert_eq!(methods, ["GET", "HEAD", "GET", "GET"], "it is loaded too");
    }
}

#[test]
fn a_comparison_that_fails_for_a_moment_is_repeated_without_a_download() {
    for status in [429, 500, 502, 503] {
        let service = Scripted::new(move |asked, before| match asked.line.contains("/changes") {
            true => Reply::page("", false, "t0"),
            false if before == 1 => Reply::new(status, "").with("retry-after", "0"),
            false => Reply::export("t0", &[ONE]),
        });
        let plan = Plan {
            verify: true,
            ..plan(&[Conferences], true)
        };
        let (result, reports, notes) = once(&service, &mut copy_of_one(), &plan);
        result.unwrap();
        assert!(
            matches!(reports[0].verdict, Some(Verdict::Sound)),
            "{status}"
        );
        assert!(
            notes.len() == 1 && notes[0].contains(&format!("answered {status}")),
            "{notes:?}"
        );
        let (changes, head) = (
            "GET conferences/changes?since=t0",
            "HEAD exports/conferences",
        );
        assert_eq!(service.lines(), [changes, head, changes, head], "{status}");
    }
}

#[test]
fn news_of_one_dataset_begins_the_next_round_at_once() {
    for (name, dataset) in [("conferences", Conferences), ("journals", Journals)] {
        // The second round begins at once too, because the requests of the first one do not wait.
        let service = Scripted::new(move |asked, before| match before {
            4.. => revoked(),
            2.. if asked.line.contains(name) => Reply::page(TWO, false, "t1"),
            _ => Reply::page("", false, "t0"),
        });
        let (done, ended) = mpsc::channel();
        std::thread::spawn(move || {
            let mut copy = MemoryCopy::default();
            for dataset in Dataset::ALL {
                copy.datasets
                    .extend(MemoryCopy::of(dataset, "t0", &[1], now().unix_s()).datasets);
            }
            let every = Duration::from_hours(1);
            let (_, asked) = followed(&service, &mut copy, &plan(&Dataset::ALL, false), every);
            let _ = done.send(asked);
        });
        // The pause without news is an hour.
        let asked = ended
            .recv_timeout(SOON)
            .expect("the next round begins at once");
        let token = if dataset == Conferences { "t1" } else { "t0" };
        let expected = [
            "GET conferences/changes?since=t0".to_owned(),
            "GET journals/changes?since=t0".to_owned(),
            "GET conferences/changes?since=t0&wait=45".to_owned(),
            "GET journals/changes?since=t0&wait=45".to_owned(),
            format!("GET conferences/changes?since={token}&wait=45"),
        ];
        assert_eq!(asked, expected, "news of {name}");
    }
}

#[test]
fn a_named_dataset_that_the_license_never_had_ends_a_follower() {
    let service = Scripted::new(|asked, _| {
        match (
            asked.line.contains("conferences"),
            asked.line.contains("exports/"),
        ) {
            (true, _) => Reply::problem(403, "dataset_not_licensed"),
            (false, true) => Reply::export("t0", &[ONE]),
            (false, false) => revoked(),
        }
    });
    for (datasets, asks) in [(&[Conferences, Journals], 1), (&[Journals, Conferences], 2)] {
        let (error, asked) = followed(
            &service,
            &mut MemoryCopy::default(),
            &plan(datasets, true),
            Duration::from_millis(1),
        );
        assert!(
            matches!(error, PullError::NotLicensed(Conferences)),
            "{error:?}"
        );
        assert_eq!(asked.len(), asks, "{asked:?}");
    }
}

#[test]
fn a_dataset_that_fails_stops_no_other() {
    // (the seconds of `Retry-After`, the requests)
    let failing = "GET exports/conferences";
    let loading = "GET exports/journals";
    let cases = cases![
        "0", [failing, loading, failing, "GET journals/changes?since=t0"];
        // A long pause is kept, although journals have news.
        "300", [failing, loading, "GET journals/changes?since=t0&wait=45", "GET journals/changes?since=t1&wait=45"];
    ];
    for (retry_after, expected) in cases {
        let service = Scripted::new(move |asked, before| match before {
            _ if asked.line.contains("conferences") => {
                Reply::problem(502, "bad_gateway").with("retry-after", retry_after)
            }
            3 => revoked(),
            _ if asked.line.contains("exports/") => Reply::export("t0", &[ONE]),
            _ => Reply::page(TWO, false, "t1"),
        });
        let plan = plan(&Dataset::ALL, false);
        let every = Duration::from_hours(1);
        let (error, asked) = followed(&service, &mut MemoryCopy::default(), &plan, every);
        assert!(matches!(error, PullError::Refused(_)), "{error:?}");
        assert_eq!(asked, expected);
    }
    // A single round brings the others up to date, and then returns the error.
    for has_journals in [true, false] {
        let service =
            Scripted::new(
                move |asked, _| match asked.line.contains("journals") && has_journals {
                    true => Reply::export("t0", &[ONE]),
                    false => Reply::problem(502, "bad_gateway").with("retry-after", "0"),
                },
            );
        let mut copy = MemoryCopy::default();
        let (result, reports, _) = once(&service, &mut copy, &plan(&Dataset::ALL, false));
        assert!(
            matches!(result, Err(PullError::Failed { .. })),
            "{result:?}"
        );
        assert_eq!(reports.len(), usize::from(has_journals));
        assert_eq!(service.take().len(), 6);
    }
}

#[test]
fn changes_count_once_they_are_saved() {
    let service = Scripted::new(|_, _| Reply::page(&format!("{ONE},{TWO}"), false, "t1"));
    let mut copy = MemoryCopy {
        failing_pages: 1,
        ..copy_of_one()
    };
    let (result, reports, notes) = once(&service, &mut copy, &plan(&[Conferences], true));
    result.unwrap();
    assert!(
        notes.len() == 1 && notes[0].starts_with("a deadlock; trying again"),
        "{notes:?}"
    );
    assert_eq!(service.take().len(), 2);
    assert_eq!(reports[0].done.entries, 2);
    assert_eq!(reports[0].records, 2);
}
