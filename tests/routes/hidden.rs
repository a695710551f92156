//! Records outside the license change no byte: two databases that differ only in them give the same answers.

use serde_json::json;

use crate::harness::{Answer, World, conference, patch, removal};

/// Requests of the license `onco`. `{token}` and `{cursor}` are from before the two databases differ.
const REQUESTS: [&str; 64] = words![
    "conferences" "conferences?limit=1" "conferences?limit=14" "conferences?limit=15" "conferences?limit=16"
    "conferences?limit=500" "conferences?cursor={cursor}" "conferences?cursor={cursor}&limit=1"
    "conferences?year=2026" "conferences?year=2026&limit=2" "conferences?year=2025" "conferences?year=1999"
    "conferences?country=Germany" "conferences?country=Germany&limit=1" "conferences?country=United+States"
    "conferences?country=Atlantis" "conferences?therapy_area=Cardiology"
    "conferences?therapy_area=Oncology&limit=5" "conferences?therapy_area=Hidden+Area"
    "conferences?start_date_from=2026-06-01" "conferences?start_date_to=2026-06-01&limit=3"
    "conferences?q=congress" "conferences?q=congress&limit=1" "conferences?q=hidden" "conferences?q=annual"
    "conferences?updated_since=2000-01-01" "conferences?updated_since=2000-01-01&limit=4"
    "conferences?updated_since=2999-01-01" "conferences?limit=0" "conferences?cursor=x" "conferences/1"
    "conferences/2" "conferences/4" "conferences/5" "conferences/12" "conferences/21" "conferences/700"
    "conferences/701" "conferences/9007199254740991" "conferences/changes" "conferences/changes?limit=1"
    "conferences/changes?since={token}" "conferences/changes?since={token}&limit=1"
    "conferences/changes?since={middle}" "conferences/changes?since={middle}&limit=2"
    "conferences/changes?since={token}&wait=60" "conferences/changes?since={middle}&limit=2&resync=diff"
    "conferences/changes?updated_since=2000-01-01" "conferences/changes?updated_since=2000-01-01&limit=3"
    "conferences/changes?updated_since=2000-01-01&limit=15" "conferences/changes?updated_since=2999-01-01"
    "conferences/changes?since=x" "exports/conferences" "exports/conferences?format=csv" "exports/journals"
    "reference/therapy-areas" "reference/tags?dataset=conferences"
    "reference/tags?dataset=conferences&type=audience" "reference/tags?dataset=conferences&type=hidden-type"
    "reference/organizations?dataset=conferences" "reference/organizations?dataset=journals" "journals"
    "journals/1" "journals/changes"
];

/// Tokens and a cursor of the license, for further requests.
struct Held {
    token: String,
    middle: String,
    cursor: String,
}

impl Held {
    fn of(world: &World) -> Held {
        Held {
            token: world.get("onco", "/v1/conferences/changes").token(),
            middle: world
                .get(
                    "onco",
                    "/v1/conferences/changes?updated_since=2000-01-01&limit=5",
                )
                .token(),
            cursor: world
                .get("onco", "/v1/conferences?limit=3")
                .cursor()
                .unwrap(),
        }
    }

    fn fill(&self, request: &str) -> String {
        let filled = request
            .replace("{token}", &self.token)
            .replace("{middle}", &self.middle);
        format!("/v1/{}", filled.replace("{cursor}", &self.cursor))
    }
}

/// The parts of an answer that a caller sees, without its id, and without the seconds to a window's end after a request
/// that may wait: those depend on the real clock.
fn seen(answer: &Answer) -> String {
    let id = answer.header("x-request-id").unwrap();
    let mut headers = answer.headers.clone();
    if answer.asked.contains("&wait=") {
        headers.remove("ratelimit-reset").unwrap();
    }
    let headers = format!("{headers:?}").replace(id, "");
    // Latin-1: one character per byte, so that no difference is lost.
    let body = if answer.status >= 400 {
        answer.text().replace(id, "").into_bytes()
    } else {
        answer.body.clone()
    };
    format!(
        "{} {headers} {}",
        answer.status,
        body.into_iter().map(char::from).collect::<String>()
    )
}

/// Changes that the license `onco` must not reveal.
fn hidden_changes(world: &World) {
    let hidden = json!({"name": "Hidden congress", "year": 2026, "country": "Germany", "start_date": "2026-06-02",
        "therapy_areas": ["Cardiology", "Hidden Area"]});
    world.conferences(&[conference(700, hidden.clone()), conference(701, hidden)]);
    world.conferences(&[
        patch(4, json!({"name": "Hidden rename", "country": "Spain"})),
        removal(5),
        removal(21),
    ]);
    world.import(&cases![
        "organizations", &[json!({"id": 50, "name": "Hidden Organization"}).to_string()];
        "tags",
            &[json!({"id": 50, "type": "hidden-type", "name": "Hidden"}).to_string(), patch(8, json!({"category": "hidden"}))];
        "conferences",
            &[patch(700, json!({"organizations": [50, 1, 2], "tags": [50, 1, 3, 5]})), patch(9, json!({"tags": [4]}))];
    ]);
    world.import(&[(
        "organizations",
        &[
            patch(10, json!({"abbv": "HID"})),
            patch(50, json!({"url": "https://h.example"})),
        ],
    )]);
    world.conferences(&[
        removal(701),
        patch(6, json!({"therapy_areas": ["Hidden Area"]})),
    ]);
    world.conferences(&[
        conference(701, json!({"year": 2025})),
        conference(5, json!({})),
    ]);
    world.import(&[(
        "journals",
        &[removal(2), patch(1, json!({"name": "Hidden journal"}))],
    )]);
    world.license("full", "conferences; areas: Cardiology");
    world.license("another", "conferences journals");
    world.set_rate_limit("spain", 5);
}

#[test]
fn hidden_changes_change_no_byte() {
    let one = World::small();
    // Requested in a world of its own, because requests count for the rate window.
    let held = Held::of(&one.fork());
    let other = one.fork();
    hidden_changes(&other);
    for request in REQUESTS {
        let path = held.fill(request);
        for headers in [
            &[][..],
            &[("accept-encoding", "gzip")],
            &[("if-none-match", "*")],
        ] {
            let [one, other] =
                [&one, &other].map(|world| seen(&world.get_with("onco", &path, headers)));
            let at = one.bytes();
            let at = at.zip(other.bytes()).take_while(|(a, b)| a == b).count();
            let part = |text: &str| {
                String::from_utf8_lossy(&text.as_bytes()[at.saturating_sub(60)..])
                    .chars()
                    .take(200)
                    .collect::<String>()
            };
            assert!(
                one == other,
                "{request} {headers:?}: {} and {}",
                part(&one),
                part(&other)
            );
        }
    }
}

#[test]
fn a_tombstone_comes_only_for_records_that_the_license_showed() {
    let world = World::small();
    let start = world.get(
        "onco",
        "/v1/conferences/changes?updated_since=2000-01-01&limit=1000",
    );
    assert!(!start.entries().contains('-'), "{}", start.entries());
    world.conferences(&[removal(4), removal(5), removal(1)]);
    let since = format!("/v1/conferences/changes?since={}", start.token());
    assert_eq!(world.get("onco", &since).entries(), "-1");
    // A license created after a removal has no tombstone of it.
    world.license("late", "conferences");
    let all = world
        .get(
            "late",
            "/v1/conferences/changes?updated_since=2000-01-01&limit=1000",
        )
        .entries();
    assert!(!all.contains('-'), "{all}");
    assert_eq!(all.split(' ').count(), 22);
}
