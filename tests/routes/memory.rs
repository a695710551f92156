//! Data in memory changes no answer: a server that has read each commit as it was made answers like a newly started
//! one.

use std::time::Duration;

use serde_json::json;

use crate::harness::{World, conference, patch, removal};

/// More than a filter tests at once.
const RECORDS: u64 = 600;

const PATHS: [&str; 16] = words![
    "conferences/changes?updated_since=2000-01-01" "conferences/changes?updated_since=2000-01-01&limit=1"
    "conferences/changes?updated_since=2000-01-01&limit=9"
    "conferences/changes?updated_since=2000-01-01&limit=1000" "conferences" "conferences?limit=500"
    "conferences?limit=3" "conferences?year=2026" "conferences?country=France&year=2025"
    "conferences?q=conference%2011" "conferences?q=number&limit=500"
    "conferences?therapy_area=Oncology&updated_since=2000-01-01"
    "conferences?start_date_from=2025-06-01&start_date_to=2026-03-01" "exports/conferences"
    "exports/conferences?format=csv" "reference/therapy-areas"
];

fn numbered(id: u64) -> String {
    let year = 2024 + id % 4;
    let month = 1 + id % 12;
    let country = ["France", "Japan", "Chile"][usize::try_from(id % 3).unwrap()];
    conference(
        id,
        json!({
            "name": format!("Conference {id} {}", if id.is_multiple_of(5) { "by number" } else { "" }),
            "year": year,
            "start_date": format!("{year}-{month:02}-10"),
            "country": country,
            "therapy_areas": if id.is_multiple_of(7) { vec!["Oncology"] } else { vec!["Cardiology", "Surgery"] },
            "venue": "x".repeat(usize::try_from(id % 400).unwrap()),
        }),
    )
}

/// Follows a feed to its end. Returns every page.
fn walk(server: &World, key: &str, limit: usize) -> Vec<String> {
    let mut pages = Vec::new();
    let mut query = format!("updated_since=2000-01-01&limit={limit}");
    loop {
        let answer = server
            .get(key, &format!("/v1/conferences/changes?{query}"))
            .expect(200);
        let page = answer.json();
        pages.push(page["data"].to_string());
        if page["has_more"] == false {
            return pages;
        }
        query = format!("since={}&limit={limit}", answer.token());
    }
}

#[test]
fn records_in_memory_change_no_answer() {
    let world = World::empty();
    world.license("all", "conferences");
    world.license("some", "conferences; areas: Oncology");
    world.conferences(&(1..=RECORDS).map(numbered).collect::<Vec<_>>());
    let following = world.second_server(Duration::ZERO);

    for step in 0..6 {
        match step {
            1 => world.conferences(
                &(1..40)
                    .map(|id| patch(id * 9, json!({"venue": "Changed"})))
                    .collect::<Vec<_>>(),
            ),
            2 => world.conferences(&(1..=30).map(|id| removal(id * 11)).collect::<Vec<_>>()),
            3 => world.conferences(&[
                numbered(RECORDS + 1),
                patch(1, json!({"therapy_areas": ["Oncology"]})),
            ]),
            4 => world.license("some", "conferences; areas: Cardiology; years: 2026"),
            5 => world.conferences(
                &(100..=RECORDS)
                    .map(|id| conference(id, json!({})))
                    .collect::<Vec<_>>(),
            ),
            _ => {}
        }
        following.catch_up();
        let new = world.second_server(Duration::ZERO);
        for key in ["all", "some"] {
            let pages = [&following, &new].map(|server| walk(server, key, 64));
            assert!(pages[0] == pages[1], "step {step}: the feed of {key}");
            for path in PATHS {
                for encoding in if step < 4 {
                    &["gzip"][..]
                } else {
                    &["identity", "gzip"]
                } {
                    let [one, other] = [&following, &new].map(|server| {
                        server
                            .get_with(
                                key,
                                &format!("/v1/{path}"),
                                &[("accept-encoding", encoding)],
                            )
                            .expect(200)
                    });
                    assert_eq!(
                        one.content(),
                        other.content(),
                        "step {step}: {path} of {key} in {encoding}"
                    );
                    assert_eq!(
                        one.header("etag"),
                        other.header("etag"),
                        "step {step}: {path} of {key} in {encoding}"
                    );
                }
            }
        }
    }
}
