//! The page for operators.

use std::io::BufReader;
use std::net::SocketAddr;

use medfeed::model::time::now;
use medfeed::model::{Dataset, Witness};
use medfeed::serve::operators::usage::{FeedSeen, KeyUse, Uses};
use medfeed::store::Writer;

use super::client::{Answer, Client, ask, connect};
use super::monitoring::{scrape, serve_watched, start_watched};
use super::site::{SOON, Site, assert_contains, conferences_of_version, wait_for};

fn page(admin: &mut Client) -> String {
    let answer = admin.get("/");
    answer.assert_status(200);
    String::from_utf8(answer.body).unwrap()
}

pub fn get_from(address: SocketAddr, host: &str, target: &str) -> Answer {
    let mut connection = BufReader::new(connect(address).unwrap());
    ask(
        &mut connection,
        &format!("GET {target} HTTP/1.1\r\nhost: {host}\r\n\r\n"),
    )
    .unwrap()
}

/// The text of a table's row or a list's item that contains a piece, without its tags.
fn text_around(page: &str, open: &str, close: &str, piece: &str) -> String {
    let mut items = page
        .split(open)
        .skip(1)
        .filter_map(|rest| rest.split_once(close))
        .map(|(item, _)| item);
    let item = items
        .find(|item| item.contains(piece))
        .unwrap_or_else(|| panic!("no {open} with {piece}: {page}"));
    let texts = item
        .split('<')
        .map(|part| part.split_once('>').map_or(part, |(_, text)| text));
    texts
        .map(str::trim)
        .filter(|text| !text.is_empty())
        .collect::<Vec<_>>()
        .join(" | ")
}

fn row(page: &str, piece: &str) -> String {
    text_around(page, "<tr>", "</tr>", piece)
}

#[test]
fn the_page_lists_datasets_licenses_and_keys() {
    let site = Site::with(1235);
    site.license("all", "--dataset conferences --dataset journals");
    site.license("none", "--dataset conferences --country Nowhere");
    // A removed record is not counted, although the feed has its tombstone.
    site.import("conferences.jsonl", "{\"id\":1235,\"deleted\":true}\n");
    let hostile = "<script>alert(1)</script>";
    let (id, key) = site.key("all", &["--label", hostile]);
    let (unused, _) = site.key("none", &[]);
    let (ended, _) = site.key("all", &[]);
    site.json(["key", "revoke", ended.as_str()]);
    // A replaced key works for a while. The license's number of keys includes it and its successor.
    let (replaced, _) = site.key("none", &[]);
    site.json(["key", "replace", &replaced, "--overlap", "1h"]);
    let (server, mut admin) = serve_watched(&site, &[]);
    let mut client = server.client(&key);
    for (target, times) in [
        ("/v1/conferences", 3),
        ("/v1/conferences/5000", 1),
        ("/v1/exports/conferences", 1),
    ] {
        for _ in 0..times {
            client.get(target);
        }
    }
    let token = client.token("journals");
    client.get(&format!("/v1/journals/changes?since={token}"));
    let shown = page(&mut admin);
    let dataset = text_around(&shown, "<li>", "</li>", "journals");
    assert!(
        dataset.starts_with("0 | journals | nothing imported yet"),
        "{dataset}"
    );
    let told = text_around(&shown, "<li>", "</li>", "1,234");
    assert!(told.starts_with("1,234 | conferences | changed"), "{shown}");
    let cases = cases![
        "<th scope=\"row\">all<", "all | 1,234 | 0 | 1 | 1,000,000 | no restriction";
        "<th scope=\"row\">none<", "none | 0 | – | 3 | 1,000,000 | countries | Nowhere";
        unused.as_str(), &format!("{unused} | none | never | not asked for");
        replaced.as_str(), &format!("{replaced} | none | replaced, still usable | never");
        "/v1/conferences/{id}<", "/v1/conferences/{id} | 1 |";
        "/v1/conferences<", "/v1/conferences | 3 |";
        "conferences.jsonl<", " | import ";
    ];
    for (piece, expected) in cases {
        let found = row(&shown, piece);
        assert!(found.contains(expected), "{piece}: {found}");
    }
    let refused = row(&shown, "/v1/conferences/{id}<");
    assert!(refused.ends_with("| 100.0 % | 0 %"), "{refused}");
    assert!(row(&shown, &id).contains("| all |"), "{}", row(&shown, &id));
    assert!(
        !shown.contains(&format!("<code>{ended}"))
            && shown.contains("1 revoked or expired key is left out"),
        "{shown}"
    );
    assert!(
        !shown.contains("further"),
        "all licenses and keys are shown"
    );
    // Texts of others are shown as text, and keys only by their ids.
    assert!(!shown.contains(hostile), "{shown}");
    assert!(shown.contains("alert(1)"), "{shown}");
    assert!(
        !shown.contains("<script>") && !shown.contains("mfk_") && !shown.contains("style=\""),
        "{shown}"
    );
    // The license loses the dataset of which the key has asked.
    let told = row(&shown, &id);
    assert!(told.ends_with("| journals | up to date"), "{told}");
    site.license("all", "--dataset conferences");
    wait_for("the lag is unknown", || {
        row(&page(&mut admin), &id).ends_with("| journals | unknown")
    });
    server.stop();
}

#[test]
fn the_page_is_shown_only_under_its_own_names() {
    let site = Site::with(3);
    let (server, admin) = serve_watched(&site, &["--admin-host", "feed-1.internal"]);
    let address = admin.address();
    let port = address.port();
    // A page of the web may make its own name point to this address.
    let cases = [
        (format!("127.0.0.1:{port}"), 200),
        (format!("localhost:{port}"), 200),
        (format!("[::1]:{port}"), 200),
        (format!("feed-1.internal:{port}"), 200),
        (format!("evil.example:{port}"), 421),
        (format!("127.0.0.1.evil.example:{port}"), 421),
    ];
    for (host, status) in &cases {
        for target in ["/", "/metrics", "/page.css", "/page.js", "/readyz"] {
            let answer = get_from(address, host, target);
            assert_eq!(answer.status, *status, "{host} {target}");
            let policy = answer.header("content-security-policy").unwrap();
            assert!(
                policy.starts_with("default-src 'none'; style-src 'self'")
                    && !policy.contains("unsafe"),
                "{policy}"
            );
            assert_eq!(answer.header("cache-control"), Some("no-store"));
            assert_eq!(answer.header("x-content-type-options"), Some("nosniff"));
        }
        // It reveals nothing, and a probe by another name must not cause a restart.
        assert_eq!(get_from(address, host, "/livez").status, 200, "{host}");
    }
    let refused = get_from(address, "evil.example", "/");
    let page = String::from_utf8(refused.body).unwrap();
    assert!(page.contains("--admin-host"));
    let style = get_from(address, "localhost", "/page.css");
    let header = style.header("content-type");
    assert_eq!(header, Some("text/css; charset=utf-8"));
    let script = get_from(address, "localhost", "/page.js");
    let header = script.header("content-type");
    assert_eq!(header, Some("text/javascript; charset=utf-8"));
    server.stop();
}

#[test]
fn the_variable_of_a_list_has_several_values() {
    const ORIGINS: [&str; 2] = ["https://one.example", "http://localhost:3000"];
    let site = Site::with(3);
    let key = site.open_key();
    let mut command = site.serve_command("--log info --admin-listen 127.0.0.1:0");
    command
        .env("MEDFEED_ADMIN_HOST", "feed-1.internal , feed-2.internal")
        .env("MEDFEED_CORS_ORIGIN", ORIGINS.join(",  "))
        .env("MEDFEED_TRUSTED_PROXY", " 10.9.0.0/16,127.0.0.1/32")
        // One value alone, as before.
        .env("MEDFEED_PUBLIC_URL", "https://feed.example.org");
    let (server, admin) = start_watched(&site, command);
    let names = [
        ("feed-1.internal", 200),
        ("feed-2.internal", 200),
        ("feed-1.internal,feed-2.internal", 421),
        ("feed-3.internal", 421),
    ];
    for (name, status) in names {
        let answer = get_from(admin.address(), name, "/readyz");
        assert_eq!(answer.status, status, "{name}");
    }
    for origin in ORIGINS {
        let client = Client::new(server.address, Some(&key));
        let answer = client.with_header("Origin", origin).get("/v1/conferences");
        let allowed = answer.header("access-control-allow-origin");
        assert_eq!((answer.status, allowed), (200, Some(origin)));
    }
    let narrow = site.key("all", &["--allow-ip", "198.51.100.7"]).1;
    let proxied = Client::new(server.address, Some(&narrow));
    let answer = proxied
        .with_header("X-Forwarded-For", "198.51.100.7, 10.9.8.7")
        .get("/v1/conferences");
    assert_eq!(answer.status, 200);
    server.stop();
}

#[test]
fn a_key_with_two_feeds_is_sorted_by_its_largest_lag() {
    let site = Site::with(3);
    site.license("all", "--dataset conferences --dataset journals");
    let [(less, _), (more, _), (least, _), (lost, _)] = [(); 4].map(|()| site.key("all", &[]));
    let commit = Writer::open(&site.db(), SOON)
        .unwrap()
        .snapshot()
        .unwrap()
        .commit();
    // A dead server recorded these lags.
    let seen = |lineage, behind_s: i64| FeedSeen {
        at: now(),
        position: 1,
        witness: Witness {
            seq: commit.seq,
            lineage,
        },
        behind_since: (behind_s > 0).then(|| now().plus_s(-behind_s)),
    };
    let own = |behind_s| seen(commit.lineage, behind_s);
    let uses: Uses = cases![
        &less, vec![(Dataset::Conferences, own(630))];
        &more, vec![(Dataset::Conferences, own(7300)), (Dataset::Journals, own(0))];
        &least, vec![(Dataset::Journals, own(0))];
        // Lags in a history that was replaced.
        &lost, vec![(Dataset::Conferences, seen([7; 16], 90_000)), (Dataset::Journals, seen([7; 16], 0))];
    ]
    .into_iter()
    .map(|(id, feeds)| {
        (
            id.clone(),
            KeyUse {
                last_refusal: None,
                last_used_at: None,
                feeds: feeds.into_iter().collect(),
            },
        )
    })
    .collect();
    let content = serde_json::to_vec(&uses).unwrap();
    site.write("feed.redb.usage-0196f0c1d2e37a4b8c9d0e1f2a3b4c5d", content);
    let (server, mut admin) = serve_watched(&site, &[]);
    let shown = page(&mut admin);
    assert!(
        row(&shown, &more).ends_with("| conferences | 2 h behind | journals | up to date"),
        "{shown}"
    );
    let places = [&more, &less, &least].map(|id| shown.find(&format!("<code>{id}")).unwrap());
    assert!(places.is_sorted(), "{places:?}: {shown}");
    let of_lost = row(&shown, &lost);
    assert!(!of_lost.contains("behind"), "{of_lost}");
    assert!(!of_lost.contains("up to date"), "{of_lost}");
    assert!(
        scrape(&mut admin).keys().all(|name| !name.contains(&lost)),
        "no figure of a lost history"
    );
    server.stop();
}

#[test]
fn a_commit_that_waits_for_the_change_delay_is_no_failure() {
    let site = Site::with(3);
    let (server, mut admin) = serve_watched(&site, &["--change-delay", "1h"]);
    site.import("conferences.jsonl", conferences_of_version(3, 1));
    wait_for("it is held back", || {
        scrape(&mut admin)["medfeed_held_back"] == 1.0
    });
    let shown = page(&mut admin);
    assert_contains(&shown, "ready; a newer commit waits for the change delay");
    assert_eq!(admin.get("/readyz").body, b"ok\n");
    server.stop();
}
