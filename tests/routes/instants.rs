//! Commits with seconds, days and years between them: each time on a page is that of its own commit.

use medfeed::model::Timestamp;
use medfeed::model::time::{now, parse_time};
use serde_json::{Value, json};

use crate::harness::{Answer, World, conference, patch, removal};

const DAY_S: i64 = 86_400;

/// The entries of a page: `7` for a record, or `-7` for a tombstone with the hours since its `changed_at`.
fn hours(answer: &Answer) -> Vec<(i64, i64)> {
    let hours = |entry: &Value| {
        let id = entry["id"].as_i64().unwrap();
        let Some(time) = entry.get("changed_at") else { return (id, 0) };
        let ago_s = now().unix_s() - parse_time(time.as_str().unwrap()).unwrap().unix_s();
        (-id, (ago_s + 1800).div_euclid(3600))
    };
    answer.items().iter().map(hours).collect()
}

fn hall(id: u64) -> String {
    patch(id, json!({"venue": "Hall"}))
}

#[test]
fn each_entry_of_a_page_has_the_time_of_its_own_commit() {
    // Commits an hour apart, oldest first: `7` is a changed record, `-7` a removed one.
    let cases: [&[&[i64]]; 8] = [
        &[&[-2], &[-3]],
        &[&[-2, -3], &[-4, -5]],
        &[&[-2], &[3], &[-4]],
        &[&[2], &[-3], &[4]],
        &[&[-2, 3, -4], &[5], &[-6, 7], &[-8]],
        &[&[-9], &[], &[-8], &[-7]],
        &[&[3, -4], &[-5, 6], &[-7]],
        &[&[-2], &[-3], &[-4], &[-5], &[-6]],
    ];
    for commits in cases {
        let world = World::small();
        let start = world.get("full", "/v1/conferences/changes").token();
        let mut expected = Vec::new();
        for (at, ids) in commits.iter().enumerate() {
            world.pass_s(3600);
            let line = |id: &i64| if *id < 0 { removal(id.unsigned_abs()) } else { hall(id.unsigned_abs()) };
            world.conferences(&ids.iter().map(line).collect::<Vec<_>>());
            let age_h = i64::try_from(commits.len() - 1 - at).unwrap();
            expected.extend(ids.iter().map(|id| (*id, if *id < 0 { age_h } else { 0 })));
        }
        let changes = |more: &str| format!("/v1/conferences/changes?since={start}{more}");
        assert_eq!(hours(&world.get("full", &changes("")).expect(200)), expected);
        assert_eq!(hours(&world.get_with("full", &changes("&limit=999"), &[("accept-encoding", "gzip")])), expected);
        // One by one, and by pages that end within a commit.
        for limit in 1..=4 {
            let (mut since, mut found) = (start.clone(), Vec::new());
            loop {
                let page =
                    world.get("full", &format!("/v1/conferences/changes?since={since}&limit={limit}")).expect(200);
                found.extend(hours(&page));
                since = page.token();
                if !page.has_more() {
                    break;
                }
            }
            assert_eq!(found, expected, "pages of {limit}");
        }
    }
}

#[test]
fn records_that_leave_with_a_scope_change_have_its_time() {
    let world = World::small();
    world.pass_s(3600);
    world.conferences(&[removal(1)]);
    world.pass_s(3600);
    world.license("onco", "conferences; areas: Cardiology");
    world.pass_s(3600);
    world.conferences(&[removal(4), removal(24)]);
    let page = world.get("onco", "/v1/conferences/changes?updated_since=2000-01-01&limit=1000").expect(200);
    let ages: Vec<(i64, i64)> = hours(&page).into_iter().filter(|(id, _)| *id < 0).collect();
    assert_eq!(ages.first(), Some(&(-1, 2)), "it was removed before");
    assert_eq!(ages[ages.len() - 2..], [(-4, 0), (-24, 0)], "they were removed afterwards");
    let leaving = &ages[1..ages.len() - 2];
    assert!(leaving.len() > 5 && leaving.iter().all(|(_, age)| *age == 1), "{ages:?}");
}

#[test]
fn a_record_that_is_removed_again_is_removed_anew() {
    let world = World::empty();
    world.license("full", "conferences");
    let start = world.get("full", "/v1/conferences/changes").token();
    let path = format!("/v1/conferences/changes?since={start}&limit=1000");
    let (all, none) = ((1..=600).map(|id| conference(id, json!({}))), (1..=600).map(removal));
    let (all, none): (Vec<String>, Vec<String>) = (all.collect(), none.collect());
    for age_h in [5, 2, 0] {
        world.conferences(&all);
        world.conferences(&none);
        world.pass_s(age_h * 3600);
        // The compressed page is made of segments, which are kept in memory.
        for headers in [&[("accept-encoding", "gzip")][..], &[]] {
            let found = hours(&world.get_with("full", &path, headers).expect(200));
            assert_eq!(found, (1..=600).map(|id| (-id, age_h)).collect::<Vec<_>>(), "{age_h} h ago");
        }
    }
}

#[test]
fn a_list_since_a_time_takes_all_its_filters() {
    let world = World::small();
    world.pass_s(DAY_S);
    let areas = |area: &str, year: u16| json!({"therapy_areas": [area], "year": year, "name": format!("Late {area}")});
    let (old, new) = (now().plus_s(-DAY_S / 2), now().plus_s(600));
    world.conferences(&[
        patch(2, areas("Oncology", 2031)),
        patch(4, areas("Cardiology", 2031)),
        patch(6, areas("Oncology", 2032)),
        patch(8, areas("Oncology", 2031)),
    ]);
    let list = |since: Timestamp, more: &str| {
        world.get("full", &format!("/v1/conferences?updated_since={since}{more}")).expect(200)
    };
    // (the filters, what matches of all that changed)
    let cases: [(&str, &[u64]); 8] = [
        ("", &[2, 4, 6, 8]),
        ("&therapy_area=Oncology", &[2, 6, 8]),
        ("&year=2031", &[2, 4, 8]),
        ("&year=2031&therapy_area=Oncology", &[2, 8]),
        ("&q=late", &[2, 4, 6, 8]),
        ("&q=late%20onc&year=2032", &[6]),
        ("&q=asco", &[]),
        ("&year=2025", &[]),
    ];
    for (filters, expected) in cases {
        assert_eq!(list(old, filters).ids(), expected, "{filters}");
        assert_eq!(list(new, filters).ids(), [0; 0], "{filters}: nothing changed after now");
        for limit in 1..=4 {
            let (mut found, mut cursor, mut pages) = (Vec::new(), String::new(), 0);
            loop {
                let page = list(old, &format!("{filters}&limit={limit}{cursor}"));
                found.extend(page.ids());
                pages += 1;
                match page.cursor() {
                    Some(next) => cursor = format!("&cursor={next}"),
                    None => break,
                }
            }
            assert_eq!(found, expected, "{filters} by {limit}");
            assert_eq!(pages, expected.len().div_ceil(limit).max(1), "{filters} by {limit}: no page is empty");
        }
    }
}

#[test]
fn a_cursor_is_bound_to_every_parameter_of_its_list() {
    let world = World::small();
    let whole = "q=co&year=2026&start_date_from=2020-01-01&start_date_to=2030-01-01&updated_since=2000-01-01";
    let cursor = |filters: &str| world.get("full", &format!("/v1/conferences?limit=1&{filters}")).expect(200).cursor();
    let with = |filters: &str, cursor: &str| {
        world.get("full", &format!("/v1/conferences?limit=1&{filters}&cursor={cursor}")).code()
    };
    let own = cursor(whole).expect("more than one");
    assert_eq!(with(whole, &own), "");
    let reordered: Vec<&str> = whole.rsplit('&').collect();
    assert_eq!(with(&reordered.join("&"), &own), "", "the order of parameters does not matter");
    let changes = [
        ("q=co", "q=cp"),
        ("q=co", "q=CO"),
        ("year=2026", "year=2025"),
        ("from=2020-01-01", "from=2020-01-02"),
        ("to=2030-01-01", "to=2030-01-02"),
        ("since=2000-01-01", "since=2000-01-02"),
        ("since=2000-01-01", "since=2000-01-01T00:00:01Z"),
        ("start_date_from=2020-01-01", "start_date_from=2030-01-01"),
        ("year=2026", "country=2026"),
    ];
    for (from, to) in changes {
        assert_eq!(with(&whole.replacen(from, to, 1), &own), "invalid_cursor", "{to}");
    }
    for part in whole.split('&') {
        let rest: Vec<&str> = whole.split('&').filter(|other| *other != part).collect();
        assert_eq!(with(&rest.join("&"), &own), "invalid_cursor", "without {part}");
    }
    // The limit may change from page to page.
    let path = format!("/v1/conferences?limit=7&{whole}&cursor={own}");
    world.get("full", &path).expect(200);
}

#[test]
fn pages_that_are_exactly_full_end() {
    let world = World::empty();
    world.license("full", "conferences");
    let start = world.get("full", "/v1/conferences/changes").token();
    let mut ids = 0..0;
    for count in [1, 2, 100, 101, 500, 501] {
        let lines: Vec<String> = (ids.end + 1..=count).map(|id| conference(id, json!({}))).collect();
        ids = 1..count;
        world.conferences(&lines);
        let count = usize::try_from(count).unwrap();
        for (path, limit) in [
            ("/v1/conferences?".to_owned(), 100),
            ("/v1/conferences?limit=1&".to_owned(), 1),
            (format!("/v1/conferences?limit={}&", count.min(500)), count.min(500)),
            ("/v1/conferences?limit=500&".to_owned(), 500),
            (format!("/v1/conferences/changes?since={start}&"), 500),
            (format!("/v1/conferences/changes?limit={count}&since={start}&"), count),
            (format!("/v1/conferences/changes?limit={}&since={start}&", count + 1), count + 1),
        ] {
            let page = world.get("full", path.trim_end_matches('&')).expect(200);
            assert_eq!(page.items().len(), count.min(limit), "{path} of {count}");
            assert_eq!(page.has_more(), count > limit, "{path} of {count}");
        }
    }
}

#[test]
fn exports_of_several_batches_hold_every_record_once() {
    // A batch has 4096 records.
    let world = World::empty();
    world.license("full", "conferences journals");
    let mut held = 0;
    for count in [4095, 4096, 4097, 4300_u64] {
        world.conferences(&(held + 1..=count).map(|id| conference(id, json!({}))).collect::<Vec<_>>());
        held = count;
        let export = world.get("full", "/v1/exports/conferences").expect(200);
        let text = String::from_utf8(crate::harness::gunzip(&export.body)).unwrap();
        let ids = text.lines().map(|line| serde_json::from_str::<Value>(line).unwrap()["id"].as_u64().unwrap());
        assert!(ids.eq(1..=count), "{count}");
        assert_eq!(export.number("x-record-count"), count);
    }
    let table = world.get("full", "/v1/exports/conferences?format=csv").expect(200).text();
    assert_eq!(table.lines().count(), 4301);
}
