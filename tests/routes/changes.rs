//! `GET /v1/{dataset}/changes`: the feed's semantics.

use serde_json::json;

use crate::harness::{Answer, World, conference, patch, removal};

/// The feed of a dataset after a token.
fn since(dataset: &str, token: &str) -> String {
    format!("/v1/{dataset}/changes?since={token}")
}

/// A caller that polls a feed with its last token.
struct Poller<'w> {
    world: &'w World,
    key: &'static str,
    dataset: &'static str,
    token: String,
}

impl<'w> Poller<'w> {
    fn new(world: &'w World, key: &'static str, dataset: &'static str) -> Poller<'w> {
        let present = world.get(key, &format!("/v1/{dataset}/changes"));
        let token = present.expect(200).token();
        Poller {
            world,
            key,
            dataset,
            token,
        }
    }

    fn ask(&self) -> Answer {
        let target = since(self.dataset, &self.token);
        self.world.get(self.key, &target)
    }

    /// Requests all new entries, in the form of [`Answer::entries`], and saves the next token.
    fn poll(&mut self) -> String {
        let answer = self.ask().expect(200);
        assert!(!answer.has_more());
        let entries = answer.entries();
        let has_moved = self.token != answer.token();
        assert_ne!(entries.is_empty(), has_moved, "it moves with entries only");
        self.token = answer.token();
        entries
    }
}

#[test]
fn a_feed_without_since_returns_the_present_token() {
    let world = World::small();
    for (key, dataset) in cases!["full", "conferences"; "full", "journals"; "onco", "conferences"] {
        let target = format!("/v1/{dataset}/changes");
        let answer = world.get(key, &target).expect(200);
        assert_eq!((answer.items().len(), answer.has_more()), (0, false));
        let json = answer.json();
        let members: Vec<&String> = json.as_object().unwrap().keys().collect();
        assert_eq!(members, ["data", "has_more", "next_sync_token"]);
        let target = since(dataset, &answer.token());
        let again = world.get(key, &target).expect(200);
        assert_eq!(again.entries().as_str(), "", "nothing new, the same token");
        assert_eq!(again.token(), answer.token(), "nothing new, the same token");
    }
}

#[test]
fn an_entry_is_the_whole_current_record() {
    let world = World::small();
    let mut poller = Poller::new(&world, "full", "conferences");
    world.conferences(&[patch(1, json!({"venue": "Hall 1"}))]);
    let entry = poller.ask().items().remove(0);
    assert_eq!(entry, world.get("full", "/v1/conferences/1").json()["data"]);
    assert_eq!(entry["venue"], "Hall 1");
    // Fields that the row does not name stay.
    assert_eq!(entry["name"], "ASCO Annual Meeting 2026");
    poller.poll();
    world.conferences(&[removal(1)]);
    let tombstone = poller.ask().items().remove(0);
    let time = tombstone["changed_at"].as_str().unwrap();
    assert!(
        time.len() == 20 && time.ends_with('Z') && time.as_bytes()[10] == b'T',
        "{time}"
    );
    let json = format!(r#"{{"id":1,"deleted":true,"changed_at":"{time}"}}"#);
    assert!(poller.ask().text().contains(&json));
}

#[test]
fn several_changes_of_a_record_are_one_entry() {
    let world = World::small();
    let name = |id, name: &str| patch(id, json!({ "name": name }));
    // Imports, one commit each, and the entries for a caller that polls after all of them.
    let cases: &[(&str, &[&[String]], &str)] = &cases![
        "edited twice", &[&[name(2, "a")], &[name(2, "b")]], "2";
        "two, then the first again", &[&[name(2, "c")], &[name(3, "c")], &[name(2, "d")]], "3 2";
        "created and edited", &[&[conference(50, json!({}))], &[name(50, "x")]], "50";
        "created and removed", &[&[conference(51, json!({}))], &[removal(51)]], "-51";
        "removed and created", &[&[removal(2)], &[conference(2, json!({"name": "new"}))]], "2";
        "removed, created, removed", &[&[removal(3)], &[conference(3, json!({}))], &[removal(3)]], "-3";
        "changed and back", &[&[patch(4, json!({"city": "x"}))], &[patch(4, json!({"city": null}))]], "4";
        "removed twice", &[&[removal(5)], &[removal(5)]], "-5";
        "nothing", &[&[patch(6, json!({}))], &[patch(6, json!({"year": 2025}))], &[removal(999)]], "";
    ];
    let mut poller = Poller::new(&world, "full", "conferences");
    for (what, imports, expected) in cases {
        for lines in *imports {
            world.conferences(lines);
        }
        assert_eq!(poller.poll(), *expected, "{what}");
        assert_eq!(poller.poll(), "", "{what}, again");
    }
}

#[test]
fn entries_of_one_import_are_ordered_by_id() {
    let world = World::small();
    let mut poller = Poller::new(&world, "full", "conferences");
    let venue = |id| patch(id, json!({"venue": "V"}));
    world.conferences(&[
        venue(9),
        removal(7),
        venue(3),
        conference(77, json!({})),
        venue(8),
        removal(2),
    ]);
    assert_eq!(poller.poll(), "-2 3 -7 8 9 77");
    world.conferences(&[venue(10)]);
    world.conferences(&[venue(6), venue(5)]);
    assert_eq!(poller.poll(), "10 5 6", "the older commit first");
}

#[test]
fn a_changed_organization_or_tag_returns_its_records() {
    let world = World::small();
    let mut conferences = Poller::new(&world, "full", "conferences");
    let mut journals = Poller::new(&world, "papers", "journals");
    let mut spain = Poller::new(&world, "spain", "conferences");
    // (the file, a row of it, the entries for conferences, journals and the license of Spain)
    let cases = cases![
        "organizations", json!({"id": 1, "name": "ASCO International"}), "1 12 18", "1", "";
        "organizations", json!({"id": 2, "url": "https://esmo.example"}), "2 3 8 12", "", "2";
        "organizations", json!({"id": 3, "abbv": null}), "4 6 12", "4", "";
        "organizations", json!({"id": 7, "name": "Still unlinked"}), "", "", "";
        "organizations", json!({"id": 11, "name": "New"}), "", "", "";
        "organizations", json!({"id": 2, "url": "https://esmo.example"}), "", "", "";
        "tags", json!({"id": 8, "category": "Audience"}), "4 5 24", "11", "24";
        "tags", json!({"id": 6, "name": "Still unused"}), "", "", "";
        "tags", json!({"id": 7, "type": "away"}), "14", "", "14";
        "conferences", json!({"id": 14, "tags": ["away: Remote", 3]}), "14", "", "14";
        "conferences", json!({"id": 14, "tags": [3, 7, 3]}), "", "", "";
        "conferences",
            json!({"id": 2, "organizations": [{"id": 2, "name": "ESMO", "abbv": null, "type": null, "url": null}]}),
            "2 3 8 12", "", "2";
    ];
    for (stem, row, for_conferences, for_journals, for_spain) in cases {
        world.import(&[(stem, &[row.to_string()])]);
        assert_eq!(conferences.poll(), for_conferences, "{row}");
        assert_eq!(journals.poll(), for_journals, "{row}");
        assert_eq!(spain.poll(), for_spain, "{row}");
    }
    let shown = world.get("full", "/v1/conferences/2").json()["data"]["organizations"].clone();
    let expected = json!([{"id": 2, "name": "ESMO", "abbv": null, "type": null, "url": null}]);
    assert_eq!(shown, expected);
}

#[test]
fn bad_parameters_get_400_with_a_reason() {
    let world = World::small();
    let journal = world.get("full", "/v1/journals/changes").token();
    let own = world.get("full", "/v1/conferences/changes").token();
    let first = world.get("full", "/v1/conferences?limit=1");
    let cursor = first.cursor().unwrap();
    let (invalid, token) = ("invalid_parameter", "invalid_sync_token");
    let cases = cases![
        "limit=0".to_owned(), invalid, "`limit`: must be a whole number from 1 to 1000";
        "limit=1001".to_owned(), invalid, "1 to 1000";
        "cursor=x".to_owned(), "unknown_parameter", "Allowed are: `since`, `updated_since`, `limit`, `wait`, `resync`.";
        "q=abc".to_owned(), "unknown_parameter", "Allowed are";
        "sinse=x".to_owned(), "unknown_parameter", "Did you mean `since`?";
        "updated_since=2026-02-30".to_owned(), invalid, "`updated_since`";
        "updated_since=".to_owned(), invalid, "`updated_since`: is empty";
        format!("since={own}&updated_since=2026-01-01"), invalid, "`updated_since`: cannot be combined with `since`";
        "since=x&updated_since=2026-01-01".to_owned(), invalid, "cannot be combined";
        format!("since={own}&since={own}"), invalid, "`since`: is given more than once";
        "since=".to_owned(), token, "`next_sync_token`";
        "since".to_owned(), token, "`X-Sync-Token`";
        "since=abc".to_owned(), token, "/conferences/changes";
        "since=%zz".to_owned(), token, "sync token";
        "since=%00".to_owned(), token, "sync token";
        "since=2026-01-01".to_owned(), token, "sync token";
        format!("since={journal}"), token, "/exports/conferences";
        format!("since={cursor}"), token, "sync token";
        format!("since={own}A"), token, "sync token";
        format!("since={}", own.to_lowercase()), token, "sync token";
    ];
    for (query, code, piece) in cases {
        let answer = world.get("full", &format!("/v1/conferences/changes?{query}"));
        answer.expect_problem(code, piece);
    }
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_".contains(&byte);
    assert!(own.bytes().all(is_plain), "{own}");
    assert_eq!(own.len(), journal.len());
    let exported = world.get("full", "/v1/exports/journals").token();
    assert_eq!(journal.len(), exported.len());
    // Escaped or not, it is the same token.
    let escaped: String = own.bytes().map(|byte| format!("%{byte:02X}")).collect();
    let target = since("conferences", &escaped);
    world.get("full", &target).expect(200);
}

#[test]
fn tokens_end_with_their_scope_or_history_only() {
    // A change, and the status for an older token.
    type Change = fn(&World);
    let cases: &[(&str, Change, u16)] = &cases![
        "nothing", |_| {}, 200;
        "the same scope again", |world| world.license("onco", "conferences; areas: Oncology"), 200;
        "another rate limit", |world| world.set_rate_limit("onco", 1_000), 200;
        "another license's scope", |world| world.license("spain", "conferences"), 200;
        "a new license", |world| world.license("new", "conferences; areas: Oncology"), 200;
        "a new key", |world| drop(world.new_key("other", "onco", Default::default())), 200;
        "an import", |world| world.conferences(&[removal(1)]), 200;
        "a wider scope", |world| world.license("onco", "conferences; areas: Oncology, Cardiology"), 410;
        "a narrower scope", |world| world.license("onco", "conferences; areas: Oncology; years: 2026"), 410;
        "a scope that shows the same", |world| world.license("onco", "conferences; areas: Oncology, None"), 410;
        "another dataset more", |world| world.license("onco", "conferences journals; areas: Oncology"), 410;
        "there and back",
        |world| {
            world.license("onco", "conferences");
            world.license("onco", "conferences; areas: Oncology");
        },
        410;
    ];
    for (what, change, status) in cases {
        let world = World::small();
        let targets = words![
            "/v1/conferences/changes" "/v1/conferences/changes?updated_since=2000-01-01&limit=2"
            "/v1/exports/conferences"
        ];
        let tokens = targets.map(|target| world.get("onco", target).token());
        change(&world);
        for token in tokens {
            let answer = world.get("onco", &since("conferences", &token));
            assert_eq!(answer.status, *status, "{what}");
            if *status == 410 {
                answer.expect_problem("resync_required", "`/exports/conferences`");
                answer.expect_problem("resync_required", "`X-Sync-Token`");
            }
        }
        let token = world.get("onco", "/v1/exports/conferences").token();
        let fresh = world.get("onco", &since("conferences", &token));
        assert_eq!(fresh.expect(200).entries(), "", "{what}");
    }
}

#[test]
fn a_token_belongs_to_its_license() {
    let world = World::small();
    let onco = world.get("onco", "/v1/conferences/changes").token();
    let journals = world.get("papers", "/v1/journals/changes").token();
    let cases = cases![
        "full", since("conferences", &onco), "resync_required", "/exports/conferences";
        "papers", since("conferences", &onco), "dataset_not_licensed", "conferences";
        "full", since("journals", &journals), "resync_required", "/exports/journals";
    ];
    for (key, target, code, piece) in cases {
        world.get(key, &target).expect_problem(code, piece);
    }
    // A license created later under the same name is another one.
    world.edit(|edit| edit.remove_license("onco").unwrap());
    let refused = world.get("onco", "/v1/conferences");
    refused.expect_problem("revoked_api_key", "revoked");
    world.license("onco", "conferences; areas: Oncology");
    world.new_key("onco-again", "onco", Default::default());
    let refused = world.get("onco-again", &since("conferences", &onco));
    refused.expect_problem("resync_required", "");
    let refused = world.get("onco", "/v1/conferences");
    refused.expect_problem("revoked_api_key", "");
}

#[test]
fn tokens_do_not_expire() {
    let world = World::small();
    let token = world.get("full", "/v1/conferences/changes").token();
    let feed = |more: &str| {
        let target = since("conferences", &token) + more;
        world.get("full", &target).expect(200)
    };
    // Each change is ten years older than the next one, and both are older than the request.
    let ten_years_s = 10 * 365 * 86_400;
    world.pass_s(ten_years_s);
    world.conferences(&[removal(2), patch(3, json!({"venue": "V"}))]);
    world.pass_s(ten_years_s);
    world.conferences(&[patch(4, json!({"venue": "V"}))]);
    for ahead_s in [0, ten_years_s] {
        world.wall_ahead_s.set(ahead_s);
        assert_eq!(feed("").entries(), "-2 3 4", "{ahead_s} s ahead");
        assert_eq!(feed("&limit=1").entries(), "-2", "{ahead_s} s ahead");
    }
}

#[test]
fn a_replaced_key_keeps_tokens_cursors_and_tags() {
    let world = World::small();
    let first = "/v1/conferences/changes?updated_since=2000-01-01&limit=1";
    let token = world.get("onco", first).token();
    let page = world.get("onco", "/v1/conferences?limit=2");
    let old = world.key("onco");
    let (new, _) = world.edit(|edit| edit.replace_key(&old.id, 0).unwrap());
    let get = |path: &str, etag: &str| {
        let headers = [("x-api-key", new.reveal()), ("if-none-match", etag)];
        world.request("GET", path, &headers)
    };
    get(&since("conferences", &token), "").expect(200);
    let next = format!("/v1/conferences?cursor={}", page.cursor().unwrap());
    get(&next, "").expect(200);
    get("/v1/conferences?limit=2", &page.etag()).expect(304);
}

#[test]
fn a_license_change_adds_entries_to_the_feed() {
    let world = World::small();
    world.license("onco", "conferences; areas: Cardiology");
    // Record 12 is in both scopes, so it has no entry.
    let feed = world.get("onco", "/v1/conferences/changes?updated_since=2000-01-01");
    let expected = "12 4 5 6 9 24 -1 -2 -3 -7 -8 -10 -11 -14 -17 -18 -19 -20 -23 -9007199254740991";
    // Those that enter, then those that leave.
    assert_eq!(feed.expect(200).entries(), expected);
    world.license("onco", "conferences; areas: Cardiology; countries: Germany");
    let target = "/v1/conferences/changes?updated_since=2000-01-01&limit=1000";
    let all = world.get("onco", target).expect(200).entries();
    assert!(all.starts_with("4 -1 -2 -3 "), "{all}");
    assert!(all.ends_with(" -5 -6 -9 -12 -24"), "{all}");
}

#[test]
fn a_page_that_may_wait_is_the_same_page() {
    let world = World::small();
    for value in ["61", "-1", "1.5", "x", ""] {
        world
            .get("full", &format!("/v1/conferences/changes?wait={value}"))
            .expect_problem("invalid_parameter", "`wait`");
    }
    let token = world.get("full", "/v1/conferences/changes").token();
    let starts = [
        format!("since={token}"),
        "updated_since=2000-01-01".to_owned(),
        "limit=1".to_owned(),
    ];
    for start in starts {
        let path = format!("/v1/conferences/changes?{start}");
        let plain = world.get("full", &path).expect(200);
        for wait in [0, 1, 60] {
            let answer = world
                .get("full", &format!("{path}&wait={wait}"))
                .expect(200);
            assert_eq!(answer.body, plain.body, "{start}, {wait}");
        }
    }
}
