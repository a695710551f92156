//! Times of changes: `changed_at`, `updated_since`, and pages at their limits.

use medfeed::model::Timestamp;
use medfeed::model::time::{now, parse_time};
use serde_json::{Value, json};

use crate::harness::{Answer, World, conference, patch, removal};

const DAY_S: i64 = 86_400;

/// The entries of a page: `7` for a record, or `-7` for a tombstone with the hours since its `changed_at`.
fn hours(answer: &Answer) -> Vec<(i64, i64)> {
    let hours = |entry: &Value| {
        let id = entry["id"].as_i64().unwrap();
        let Some(time) = entry.get("changed_at") else {
            return (id, 0);
        };
        let ago_s = now().unix_s() - parse_time(time.as_str().unwrap()).unwrap().unix_s();
        (-id, (ago_s + 1800).div_euclid(3600))
    };
    answer.items().iter().map(hours).collect()
}

#[test]
fn a_record_that_is_removed_again_is_removed_anew() {
    let world = World::empty();
    world.license("full", "conferences");
    let start = world.get("full", "/v1/conferences/changes").token();
    let path = format!("/v1/conferences/changes?since={start}&limit=1000");
    let (all, none) = (
        (1..=600).map(|id| conference(id, json!({}))),
        (1..=600).map(removal),
    );
    let (all, none): (Vec<String>, Vec<String>) = (all.collect(), none.collect());
    for age_h in [5, 2, 0] {
        world.conferences(&all);
        world.conferences(&none);
        world.pass_s(age_h * 3600);
        for headers in [&[("accept-encoding", "gzip")][..], &[]] {
            let found = hours(&world.get_with("full", &path, headers).expect(200));
            let expected = (1..=600).map(|id| (-id, age_h)).collect::<Vec<_>>();
            assert_eq!(found, expected, "{age_h} h ago");
        }
    }
}

#[test]
fn a_list_since_a_time_accepts_all_filters() {
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
        world
            .get(
                "full",
                &format!("/v1/conferences?updated_since={since}{more}"),
            )
            .expect(200)
    };
    // (the filters, the matching ids among all changed records)
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
        let found = list(new, filters).ids();
        assert_eq!(found, [0; 0], "{filters}: nothing changed after now");
        // No page is empty.
        let page = list(old, &format!("{filters}&limit=1"));
        assert_eq!(page.ids().len(), expected.len().min(1), "{filters} by 1");
        assert_eq!(page.has_more(), expected.len() > 1, "{filters} by 1");
    }
}

#[test]
fn pages_that_are_exactly_full_end() {
    let world = World::empty();
    world.license("full", "conferences");
    let start = world.get("full", "/v1/conferences/changes").token();
    let mut ids = 0..0;
    for count in [1, 2, 100, 101, 500, 501] {
        let lines: Vec<String> = (ids.end + 1..=count)
            .map(|id| conference(id, json!({})))
            .collect();
        ids = 1..count;
        world.conferences(&lines);
        let count = usize::try_from(count).unwrap();
        for (path, limit) in cases![
            "/v1/conferences?".to_owned(), 100;
            "/v1/conferences?limit=1&".to_owned(), 1;
            format!("/v1/conferences?limit={}&", count.min(500)), count.min(500);
            "/v1/conferences?limit=500&".to_owned(), 500;
            format!("/v1/conferences/changes?since={start}&"), 500;
            format!("/v1/conferences/changes?limit={count}&since={start}&"), count;
            format!("/v1/conferences/changes?limit={}&since={start}&", count + 1), count + 1;
        ] {
            let page = world.get("full", path.trim_end_matches('&')).expect(200);
            assert_eq!(page.items().len(), count.min(limit), "{path} of {count}");
            assert_eq!(page.has_more(), count > limit, "{path} of {count}");
        }
    }
}

#[test]
fn an_export_of_many_segments_has_every_record_once() {
    let world = World::empty();
    world.license("full", "conferences journals");
    world.conferences(
        &(1..=4300)
            .map(|id| conference(id, json!({})))
            .collect::<Vec<_>>(),
    );
    let export = world.get("full", "/v1/exports/conferences").expect(200);
    let text = String::from_utf8(crate::harness::gunzip(&export.body)).unwrap();
    let ids = text.lines().map(|line| {
        serde_json::from_str::<Value>(line).unwrap()["id"]
            .as_u64()
            .unwrap()
    });
    assert!(ids.eq(1..=4300));
    assert_eq!(export.number("x-record-count"), 4300);
    let table = world
        .get("full", "/v1/exports/conferences?format=csv")
        .expect(200)
        .text();
    assert_eq!(table.lines().count(), 4301);
}

/// The time of the last commit, from a tombstone or a record.
fn time_of(world: &World, path: &str) -> Timestamp {
    let item = world.get("full", path).items().pop().unwrap();
    let time = item.get("changed_at").or(item.get("updated_at")).unwrap();
    parse_time(time.as_str().unwrap()).unwrap()
}

#[test]
fn updated_since_is_inclusive_in_whole_seconds() {
    let world = World::small();
    let at = time_of(&world, "/v1/conferences?limit=1");
    let count = |dataset: &str, time: &str| {
        world
            .get(
                "full",
                &format!("/v1/{dataset}?limit=500&updated_since={time}"),
            )
            .expect(200)
            .items()
            .len()
    };
    for (dataset, all) in [
        ("conferences", 25),
        ("journals", 12),
        ("conferences/changes", 25),
        ("journals/changes", 12),
    ] {
        assert_eq!(count(dataset, &at.to_string()), all, "{dataset} at {at}");
        let found = count(dataset, &at.plus_s(-1).to_string());
        assert_eq!(found, all, "{dataset} before {at}");
        // The licenses were created after the import, so their records entered a moment later.
        let found = count(dataset, &at.plus_s(600).to_string());
        assert_eq!(found, 0, "{dataset} after {at}");
        let fraction = at.to_string().replace('Z', ".999Z");
        let found = count(dataset, &fraction);
        assert_eq!(found, all, "{dataset}: a fraction is cut off");
        let shifted = at.plus_s(7_200).to_string().replace('Z', "%2B02:00");
        assert_eq!(count(dataset, &shifted), all, "{dataset}: an offset");
    }
}
