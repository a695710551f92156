//! Licenses of one scope share a feed, and each still has its own history.

use medfeed::model::Dataset;
use medfeed::store::Writer;
use serde_json::json;

use crate::harness::{World, conference, patch, removal};

const ONCOLOGY: &str = "conferences; areas: Oncology";
const CARDIOLOGY: &str = "conferences; areas: Cardiology";
const AREA_NAMES: [&str; 2] = ["Oncology", "Cardiology"];

fn in_area(id: u64, area: usize) -> String {
    conference(id, json!({"therapy_areas": [AREA_NAMES[area]]}))
}

/// All entries of a license's feed. Checks that walks with pages of every small size agree.
#[track_caller]
fn learned(world: &World, key: &str) -> String {
    let walk = |limit: usize| {
        let mut entries = Vec::new();
        let mut query = format!("updated_since=2000-01-01&limit={limit}");
        loop {
            let page = world
                .get(key, &format!("/v1/conferences/changes?{query}"))
                .expect(200);
            entries.extend(
                page.entries()
                    .split(' ')
                    .filter(|entry| !entry.is_empty())
                    .map(str::to_owned),
            );
            if !page.has_more() {
                return entries.join(" ");
            }
            query = format!("since={}&limit={limit}", page.token());
        }
    };
    let whole = walk(1000);
    for limit in 1..4 {
        assert_eq!(walk(limit), whole, "{key} by {limit}");
    }
    whole
}

#[test]
fn each_license_sees_its_own_history() {
    let world = World::empty();
    world.license("early", ONCOLOGY);
    world.conferences(&[in_area(1, 0), in_area(3, 0), in_area(4, 0), in_area(5, 1)]);
    world.license("twin", ONCOLOGY);
    let token = |key: &str| world.get(key, "/v1/conferences/changes").token();
    let since = |key: &str, token: &str| {
        world
            .get(key, &format!("/v1/conferences/changes?since={token}"))
            .expect(200)
            .entries()
    };
    let (early, twin) = (token("early"), token("twin"));
    world.pass_s(10);
    world.conferences(&[removal(1), patch(4, json!({"venue": "V"}))]);
    world.pass_s(10);
    world.license("late", ONCOLOGY);

    // The entries of the shared feed since the license joined it, and its own before. Records that left earlier have
    // none.
    let check = |expected: &[(&str, &str)]| {
        for (key, entries) in expected {
            assert_eq!(learned(&world, key), *entries, "{key}");
        }
        let report = medfeed::store::check::check(
            &mut Writer::open(&world.database(), std::time::Duration::ZERO).unwrap(),
        );
        assert_eq!(report.unwrap().findings, []);
    };
    check(&[("early", "3 -1 4"), ("twin", "3 -1 4"), ("late", "3 4")]);
    assert_eq!(since("early", &early), "-1 4".to_owned());
    assert_eq!(since("twin", &twin), "-1 4".to_owned());

    // One license moves to another feed and keeps its entries. The others are not affected.
    let late = token("late");
    world.pass_s(10);
    world.license("early", CARDIOLOGY);
    check(&[("early", "-1 5 -3 -4"), ("twin", "3 -1 4"), ("late", "3 4")]);
    assert_eq!(since("late", &late), "");
    assert_eq!(token("late"), late, "its token stays the same too");

    // A record moves between the two feeds.
    world.pass_s(10);
    world.conferences(&[patch(5, json!({"therapy_areas": ["Oncology"]}))]);
    check(&[
        ("early", "-1 -3 -4 -5"),
        ("twin", "3 -1 4 5"),
        ("late", "3 4 5"),
    ]);

    // The license moves back. Records that enter do so by the time of their last change.
    world.pass_s(10);
    world.license("early", ONCOLOGY);
    check(&[
        ("early", "-1 3 4 5"),
        ("twin", "3 -1 4 5"),
        ("late", "3 4 5"),
    ]);

    // Licenses whose scope did not change keep their tokens. A feed outlives the license for which it was created.
    world.edit(|edit| edit.remove_license("twin").unwrap());
    world.edit(|edit| edit.remove_license("early").unwrap());
    world.conferences(&[removal(4), in_area(6, 0), in_area(1, 1)]);
    check(&[("late", "3 5 -4 6")]);
    assert_eq!(since("late", &late), "5 -4 6");
    assert_eq!(world.shown().totals().records[Dataset::Conferences], 4);
}
