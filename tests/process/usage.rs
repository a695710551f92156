//! The usage of keys and their lag: the small files next to the database.

use std::fs;
use std::process::Command;
use std::time::Duration;

use serde_json::{Value, json};

use super::client::Client;
use super::site::{SOON, Site, conferences_of_version, wait_for, wait_until_every};

/// The time between two reads of the usage record. Servers write it every few seconds.
const READ_EVERY: Duration = Duration::from_millis(50);

fn use_files(site: &Site) -> Vec<String> {
    site.files()
        .into_iter()
        .filter(|name| name.starts_with("feed.redb.usage-"))
        .collect()
}

fn use_of(site: &Site, id: &str) -> Value {
    let listed = site.json(["key", "list"]);
    let keys = listed["keys"].as_array().unwrap();
    keys.iter()
        .find(|key| key["id"] == id)
        .unwrap_or_else(|| panic!("no key {id}: {listed}"))["usage"]
        .clone()
}

fn token(client: &mut Client) -> String {
    client.token("conferences")
}

fn ask_since(client: &mut Client, token: &str) {
    assert_eq!(
        client
            .get(&format!("/v1/conferences/changes?since={token}"))
            .status,
        200
    );
}

/// A site with a license and keys for it: their ids and texts.
fn with_keys<const N: usize>() -> (Site, [(String, String); N]) {
    let site = Site::with(5);
    site.license("all", "--dataset conferences");
    let keys = std::array::from_fn(|_| site.key("all", &[]));
    (site, keys)
}

#[test]
fn the_use_of_keys_is_listed() {
    let (site, [(first, first_key), (second, second_key), (unused, _)]) = with_keys();
    let never = json!({"last_used_at": null, "feeds": {}});
    let server = site.serve();
    assert_eq!(use_of(&site, &first), never);
    let mut client = server.client(&first_key);
    let old = token(&mut client);
    ask_since(&mut client, &old);
    server.client(&second_key).get("/v1/conferences");
    let used = wait_until_every(READ_EVERY, "the first key's use", SOON, || {
        Some(use_of(&site, &first)).filter(|used| *used != never)
    });
    assert!(used["last_used_at"].is_string(), "{used}");
    let feed = &used["feeds"]["conferences"];
    assert_eq!(feed["behind_s"], 0, "{used}");
    assert!(
        feed["position"].as_u64().unwrap() > 0
            && feed["at"].as_str() <= used["last_used_at"].as_str(),
        "{used}"
    );
    let used = wait_until_every(READ_EVERY, "the second key's use", SOON, || {
        Some(use_of(&site, &second)).filter(|used| *used != never)
    });
    assert!(used["last_used_at"].is_string(), "{used}");
    assert!(used["feeds"] == json!({}), "{used}");
    assert_eq!(use_of(&site, &unused), never);

    // One second after a commit, the key is behind: lags are whole seconds.
    site.import("conferences.jsonl", conferences_of_version(5, 1));
    wait_until_every(
        Duration::from_millis(300),
        "a key that is behind",
        SOON,
        || {
            (use_of(&site, &first)["feeds"]["conferences"]["behind_s"]
                .as_u64()
                .unwrap()
                > 0)
            .then_some(())
        },
    );
    let text = site.run(["key", "list"]).stdout;
    let line = text.lines().find(|line| line.contains(&first)).unwrap();
    assert!(line.contains("s behind, asked at"), "{line}");
    assert!(
        text.lines()
            .any(|line| line.contains(&unused) && line.ends_with("never")),
        "{text}"
    );
    wait_for("the entries", || {
        let page = client.get(&format!("/v1/conferences/changes?since={old}"));
        page.items().len() == 5
    });
    server.stop();
    let feed = use_of(&site, &first)["feeds"]["conferences"].clone();
    assert_eq!(
        feed["behind_s"], 0,
        "a server that ends writes once more: {feed}"
    );
}

#[test]
fn the_last_refusal_of_each_key_is_listed() {
    let (site, [(id, key), (revoked, revoked_key)]) = with_keys();
    let (elsewhere, elsewhere_key) = site.key("all", &["--allow-ip", "192.0.2.7"]);
    let (expired, expired_key) = site.expired_key("all");
    site.json(["key", "revoke", &revoked]);
    let server = site.serve();
    let mut client = server.client(&key);
    let cases = cases![
        &revoked, &revoked_key, "/v1/journals", "revoked_api_key";
        &expired, &expired_key, "/v1/reference/tags", "expired_api_key";
        &elsewhere, &elsewhere_key, "/v1/reference/tags", "ip_not_allowed";
        &id, &key, "/v1/conferences?limit=0", "invalid_parameter";
        &id, &key, "/v1/journals", "dataset_not_licensed";
    ];
    for (_, key, target, code) in cases {
        let answer = server.client(key).get(target);
        assert_eq!(answer.problem(), code, "{target}");
    }
    // These are no refusals of the key.
    assert_eq!(client.get("/v1/conferences/77").status, 404);
    assert_eq!(client.get("/v1/conferences").status, 200);
    server.stop();
    for (id, code, is_used) in [
        (&revoked, "revoked_api_key", false),
        (&expired, "expired_api_key", false),
        (&elsewhere, "ip_not_allowed", false),
        (&id, "dataset_not_licensed", true),
    ] {
        let usage = use_of(&site, id);
        assert_eq!(usage["last_refusal"]["code"], code, "{usage}");
        assert!(usage["last_refusal"]["at"].is_string(), "{usage}");
        assert_eq!(usage["last_used_at"].is_string(), is_used, "{usage}");
    }
    let text = site.run(["key", "list"]).stdout;
    let line = text.lines().find(|line| line.contains(&expired)).unwrap();
    assert!(line.contains("never, refused at "), "{line}");
    assert!(line.ends_with(": expired_api_key"), "{line}");
}

#[test]
fn running_servers_keep_a_usage_file_each() {
    let (site, [(first, first_key), (second, second_key)]) = with_keys();
    let mut servers = vec![site.serve(), site.serve()];
    let keys = [&first_key, &second_key];
    for (server, key) in servers.iter().zip(keys) {
        assert_eq!(server.client(key).get("/v1/conferences").status, 200);
    }
    let both = wait_until_every(READ_EVERY, "two files", SOON, || {
        Some(use_files(&site)).filter(|files| files.len() == 2)
    });
    for id in [&first, &second] {
        assert!(
            use_of(&site, id)["last_used_at"].is_string(),
            "both are listed"
        );
    }
    // A third server removes nothing of the running ones.
    let third = site.serve();
    assert_eq!(third.client(&first_key).get("/v1/conferences").status, 200);
    third.stop();
    assert!(
        both.iter().all(|name| use_files(&site).contains(name)),
        "{both:?} {:?}",
        use_files(&site)
    );

    let backup = site.backup("backup.redb");
    assert!(
        backup.exists()
            && site
                .files()
                .iter()
                .all(|name| !name.starts_with("backup.redb."))
    );
    let known = [use_of(&site, &first), use_of(&site, &second)];
    for server in &mut servers {
        server.process.kill();
    }
    servers.clear();
    let last = site.serve();
    wait_until_every(READ_EVERY, "one file", SOON, || {
        let files = use_files(&site);
        (files.len() == 1 && !both.contains(&files[0])).then_some(())
    });
    assert_eq!([use_of(&site, &first), use_of(&site, &second)], known);
    last.stop();
}

#[test]
fn usage_that_cannot_be_written_gives_one_warning() {
    let (site, [(id, key)]) = with_keys();
    let folder = site.path("folder");
    fs::create_dir(&folder).unwrap();
    fs::rename(site.db(), folder.join("feed.redb")).unwrap();
    let mut command = site.command(["serve", "--listen", "127.0.0.1:0", "--log", "warn"]);
    command.env("MEDFEED_DB", folder.join("feed.redb"));
    let server = site.start(command);
    fs::rename(&folder, site.path("away")).unwrap();
    let mut client = server.client(&key);
    let warning = "the usage of keys cannot be written next to the database";
    wait_until_every(READ_EVERY, "the warning", SOON, || {
        assert_eq!(client.get("/v1/conferences").status, 200);
        server.logged().contains(warning).then_some(())
    });
    fs::rename(site.path("away"), &folder).unwrap();
    let listed = wait_until_every(READ_EVERY, "the record", SOON, || {
        assert_eq!(client.get("/v1/conferences").status, 200);
        let listed = site.json(["key", "list", "--db", "folder/feed.redb"]);
        listed["keys"][0]["usage"]["last_used_at"]
            .is_string()
            .then_some(listed)
    });
    assert_eq!(listed["keys"][0]["id"], id.as_str());
    let count = server.logged().matches(warning).count();
    assert_eq!(count, 1, "{}", server.logged());
    server.stop();
}

#[test]
fn a_pipe_with_the_name_of_a_usage_file_is_ignored() {
    let (site, [(id, key)]) = with_keys();
    // A reader of this pipe would wait for a writer.
    let fifo = site.path("feed.redb.usage-0196f0c1d2e37a4b8c9d0e1f2a3b4c5d");
    assert!(
        Command::new("mkfifo")
            .arg(&fifo)
            .status()
            .unwrap()
            .success()
    );
    let server = site.serve();
    assert_eq!(server.client(&key).get("/v1/conferences").status, 200);
    server.stop();
    assert!(use_of(&site, &id)["last_used_at"].is_string());
    assert!(fifo.exists());
}
