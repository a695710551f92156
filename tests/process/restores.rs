//! Restores: back to a backup. Tokens of the lost commits end, and revoked keys stay revoked.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use medfeed::store::restore::SCHEMA;
use serde_json::{Value, json};

use super::client::Client;
use super::faults::rot;
use super::foreign_files::{of_another_program, set_format};
use super::monitoring::serve_watched;
use super::site::{Site, conferences_of_version, version_of, wait_for};

fn token(client: &mut Client) -> String {
    client.token("conferences")
}

fn since(token: &str) -> String {
    format!("/v1/conferences/changes?since={token}")
}

fn seen(client: &mut Client) -> u64 {
    version_of(&client.get("/v1/exports/conferences").lines())
}

/// Waits until a running server shows a version.
fn shows(client: &mut Client, version: u64) {
    wait_for(&format!("version {version}"), || seen(client) == version);
}

fn status_of(site: &Site, id: &str) -> String {
    let listed = site.json(["key", "list"]);
    let mut found = listed["keys"].as_array().unwrap().iter();
    let found = found.find(|key| key["id"] == id);
    found.map_or("missing".to_owned(), |key| {
        key["status"].as_str().unwrap().to_owned()
    })
}

/// Restores a backup. Returns the report.
fn restore(site: &Site, backup: &str) -> Value {
    let told = site.json(["restore", backup, "--yes"]);
    assert_eq!(told["restored"], true, "{told}");
    told
}

#[test]
fn a_restore_goes_back_and_ends_every_older_token() {
    let (site, key) = Site::open(12);
    let server = site.serve();
    let mut client = server.client(&key);
    let mut tokens = vec![token(&mut client)];
    site.import("conferences.jsonl", conferences_of_version(12, 1));
    shows(&mut client, 1);
    tokens.push(token(&mut client));
    site.backup("backup.redb");
    let backup = fs::read(site.path("backup.redb")).unwrap();
    site.import("conferences.jsonl", conferences_of_version(15, 2));
    shows(&mut client, 2);
    tokens.push(token(&mut client));

    let told = restore(&site, "backup.redb");
    let records = json!({"conferences": [15, 12], "journals": [0, 0]});
    assert_eq!(told["records"], records);
    assert!(told["restored_to"].is_string(), "{told}");
    assert!(told["replaced_from"].is_string(), "{told}");
    // Times are whole seconds, so both commits may have the same time.
    let is_earlier = told["restored_to"].as_str() <= told["replaced_from"].as_str();
    assert!(is_earlier, "{told}");
    for member in ["licenses", "keys_that_stop", "keys_that_stay_revoked"] {
        assert_eq!(told[member], json!([]), "{member}: {told}");
    }
    let is_same = fs::read(site.path("backup.redb")).unwrap() == backup;
    assert!(is_same, "the backup stays as it is");
    site.check();

    shows(&mut client, 1);
    for old in &tokens {
        let answer = client.get(&since(old));
        answer.assert_problem(410, "resync_required");
        let status = client.get(&format!("{}&resync=diff", since(old))).status;
        assert_eq!(status, 410, "nor by a difference");
    }
    let fresh = token(&mut client);
    assert!(client.get(&since(&fresh)).items().is_empty());
    for version in 3..8 {
        site.import("conferences.jsonl", conferences_of_version(13, version));
        shows(&mut client, version);
        for old in &tokens {
            assert_eq!(
                client.get(&since(old)).status,
                410,
                "version {version}: the same numbers come again"
            );
        }
    }
    let count = client.get(&since(&fresh)).items().len();
    assert_eq!(count, 13, "a caller that loaded again continues");
    server.stop();
    site.check();
}

/// The time and seq of a commit, as messages name them.
fn of_commit(commit: &Value) -> String {
    format!(
        "of {}, seq {}",
        commit["time"].as_str().unwrap(),
        commit["seq"]
    )
}

/// The descriptions of the newest commits, the newest first.
fn history(site: &Site) -> Vec<Value> {
    site.json(["log"])["commits"].as_array().unwrap().clone()
}

#[test]
fn a_restore_is_in_the_history_and_in_the_log() {
    let (site, key) = Site::open(12);
    site.backup("backup.redb");
    let saved = history(&site)[0].clone();
    site.import("conferences.jsonl", conferences_of_version(15, 1));
    site.import("conferences.jsonl", conferences_of_version(15, 2));
    let replaced = history(&site)[0].clone();
    let (server, mut admin) = serve_watched(&site, &[]);
    let mut client = server.client(&key);
    let status =
        |client: &mut Client| client.get("/v1/status").json()["datasets"]["conferences"].take();
    assert_eq!(status(&mut client)["records"], 15);

    restore(&site, "backup.redb");
    let told = format!(
        "restored from a backup {}; the replaced database was {}",
        of_commit(&saved),
        of_commit(&replaced)
    );
    let commits = history(&site);
    let last = &commits[0];
    assert_eq!(last["what"], told);
    assert_eq!(last["who"], saved["who"]);
    assert_eq!(last["seq"], saved["seq"].as_u64().unwrap() + 1);
    assert_eq!(last["records"], json!([]));
    assert_eq!(commits[1], saved, "the backup's history continues");
    assert!(commits[0]["time"].as_str() >= saved["time"].as_str());
    assert!(site.run(["log"]).stdout.contains(&told));
    site.check();

    // A running server logs the restore, even if an import comes right after it.
    site.import("conferences.jsonl", conferences_of_version(13, 3));
    shows(&mut client, 3);
    let warned = "the database file was replaced by one with another history";
    server.wait_for_log(warned);
    server.wait_for_log("serves a commit");
    let logged = server.logged();
    assert!(logged.contains(&told), "{logged}");
    let page = String::from_utf8(admin.get("/").body).unwrap();
    assert!(page.contains(&told), "the operators' page");
    let behind = client.get("/v1/conferences/changes?updated_since=2020-01-01");
    assert_eq!(behind.items().len(), 13, "the commit is in no feed");

    // After a restore of an equal file, only the history shows the restore.
    let before = (status(&mut client), token(&mut client));
    site.backup("same.redb");
    restore(&site, "same.redb");
    wait_for("the server shows it", || {
        server.logged().matches(warned).count() == 2
    });
    assert_eq!(status(&mut client), before.0);
    assert_eq!(client.get(&since(&before.1)).status, 410);
    let commits = history(&site);
    let what = commits[0]["what"].to_string();
    assert!(what.starts_with("\"restored from a backup of "), "{what}");
    assert_eq!(commits[2]["what"], told);
    // The log names the last restore, and the commits since then.
    server.wait_for_log(&format!("what={what}"));
    let logged = server.logged();
    let (_, last) = logged.rsplit_once(warned).unwrap();
    let line = last.lines().next().unwrap();
    assert!(line.contains(&format!("by={what}")), "{last}");
    assert_eq!(last.matches("serves a commit").count(), 1, "{last}");
    server.stop();
    site.check();
}

#[test]
fn a_restore_without_an_earlier_database_reports_less() {
    let site = Site::new();
    site.start(site.serve_command("--create")).stop();
    site.backup("empty.redb");
    site.import("conferences.jsonl", conferences_of_version(3, 0));
    let key = site.open_key();
    site.backup("backup.redb");
    let saved = history(&site)[0].clone();
    let server = site.serve();
    let old = token(&mut server.client(&key));
    server.stop();
    let of_saved = of_commit(&saved);
    let of_backup = format!("restored from a backup {of_saved}");
    let of_empty =
        format!("restored from a backup without commits; the replaced database was {of_saved}");
    let garbage = format!("{of_backup}; the replaced database could not be read");
    let steps: [(&str, Option<&[u8]>, &str); 3] = [
        ("empty.redb", None, &of_empty),
        ("backup.redb", Some(b"garbage"), &garbage),
        ("backup.redb", Some(b""), &of_backup),
    ];
    for (backup, damage, expected) in steps {
        match damage {
            Some(b"") => fs::remove_file(site.db()).unwrap(),
            Some(bytes) => fs::write(site.db(), bytes).unwrap(),
            None => {}
        }
        let told = restore(&site, backup);
        assert_eq!(history(&site)[0]["what"], expected, "{backup}");
        if damage == Some(b"") {
            // There is no database.
            assert_eq!(told["records"]["conferences"], json!([0, 3]));
        }
        site.check();
    }
    let server = site.serve();
    let problem = server.client(&key).get(&since(&old)).problem();
    assert_eq!(problem, "resync_required");
    server.stop();
}

#[test]
fn a_replica_logs_and_records_a_restore_of_its_origin() {
    let (mut origin, _) = super::replicas::origin();
    origin.site.backup("backup.redb");
    let replica = origin.replica();
    let (server, mut admin) = super::replicas::serve(&replica, "");
    let rows = conferences_of_version(super::replicas::COUNT, 1);
    origin.site.import("conferences.jsonl", rows);
    origin.publish();
    super::replicas::wait_for_seq(&origin, &mut admin);
    restore(&origin.site, "backup.redb");
    let commits = history(&origin.site);
    let told = commits[0]["what"].as_str().unwrap();
    assert!(told.starts_with("restored from a backup of "), "{told}");
    assert!(told.contains("; the replaced database was of "), "{told}");
    let done = origin.site.run(["key", "create", "--license", "all"]);
    // It is no copy of another file.
    assert_eq!(done.code, Some(0), "{done:?}");
    assert!(!done.stderr.contains("warning"), "{done:?}");
    origin.publish();
    server.wait_for_log(told);
    server.wait_for_log("the database file was replaced by one with another history");
    server.stop();
    let commits = history(&replica.site);
    assert!(commits.iter().any(|commit| commit["what"] == told));
    replica.site.check();
}

#[test]
fn keys_revoked_in_database_or_backup_stay_revoked() {
    let site = Site::with(3);
    for name in ["kept", "scope", "rate", "removed", "again"] {
        site.license(name, "--dataset conferences");
    }
    let (kept, kept_key) = site.key("kept", &[]);
    let (before, _) = site.key("kept", &[]);
    let (after, after_key) = site.key("kept", &[]);
    let (swapped, _) = site.key("kept", &[]);
    let (orphan, orphan_key) = site.key("removed", &[]);
    site.json(["key", "revoke", &before]);
    site.backup("backup.redb");

    site.json(["key", "revoke", &after]);
    let replaced = site.json(["key", "replace", &swapped]);
    let (late, late_key) = site.key("kept", &[]);
    site.license("scope", "--dataset conferences --year 2026");
    site.json("license set rate --yes --dataset conferences --rate-limit 7".split(' '));
    for name in ["removed", "again"] {
        site.json(["license", "remove", name, "--yes"]);
    }
    site.license("again", "--dataset conferences");
    site.license("new", "--dataset conferences");
    let server = site.serve();

    let told = restore(&site, "backup.redb");
    let changes = told["licenses"].as_array().unwrap().iter();
    let changes = changes.map(|change| format!("{} {}", change["license"], change["change"]));
    let changes: BTreeSet<String> = changes.collect();
    let expected = cases![
        "again", "is another license of the same name in the backup";
        "new", "is not in the backup";
        "rate", "has another rate limit in the backup";
        "removed", "comes back with the backup";
        "scope", "has another scope in the backup";
    ];
    let expected = expected.map(|(name, change)| format!("\"{name}\" \"{change}\""));
    assert_eq!(changes, BTreeSet::from(expected));
    let of = |member: &str| -> BTreeSet<String> {
        let ids = told[member].as_array().unwrap().iter();
        ids.map(|id| id.as_str().unwrap().to_owned()).collect()
    };
    let successor = replaced["id"].as_str().unwrap().to_owned();
    assert_eq!(of("keys_that_stop"), [late.clone(), successor].into());
    let revoked = [after.clone(), swapped.clone(), orphan.clone()];
    assert_eq!(of("keys_that_stay_revoked"), revoked.into());
    for (id, status) in [
        (&kept, "active"),
        (&before, "revoked"),
        (&after, "revoked"),
        (&swapped, "revoked"),
        (&orphan, "revoked"),
        (&late, "missing"),
    ] {
        assert_eq!(status_of(&site, id), status, "{id}");
    }
    wait_for("the restored keys", || {
        server.client(&late_key).get("/v1/conferences").status == 401
    });
    for (key, code) in [
        (&late_key, "invalid_api_key"),
        (&after_key, "revoked_api_key"),
        (&orphan_key, "revoked_api_key"),
    ] {
        assert_eq!(server.client(key).get("/v1/conferences").problem(), code);
    }
    assert_eq!(server.client(&kept_key).get("/v1/conferences").status, 200);
    server.stop();
    site.check();
}

#[test]
fn a_restore_from_no_backup_is_refused() {
    let site = Site::with(5);
    let before = fs::read(site.db()).unwrap();
    site.write("cut short", &before[..before.len() / 2]);
    let newer = site.backup("newer");
    set_format(&newer, SCHEMA + 1);
    let newer = format!("has format {}, made by a newer medfeed", SCHEMA + 1);
    assert!(rot(&site.backup("damaged"), "Conference 4").unwrap() > 0);
    let cases = [
        ("damaged", "cannot be used: table `log`"),
        ("cut short", "cut short"),
        ("newer", &newer),
        ("feed.redb", "it is the database itself"),
    ];
    let files = site.files();
    for (backup, expected) in cases {
        let done = site.run(["restore", backup, "--yes", "--json"]);
        done.assert_error(expected);
        assert_eq!(site.files(), files, "{backup}");
        let is_same = fs::read(site.db()).unwrap() == before;
        assert!(is_same, "{backup}: the database changed");
    }
}

#[test]
fn a_revoked_key_stays_revoked_over_a_restore_of_a_backup_without_it() {
    let site = Site::with(3);
    for name in ["kept", "removed"] {
        site.license(name, "--dataset conferences");
    }
    site.backup("without.redb");
    let [revoked, replaced, unused] = [(); 3].map(|()| site.key("kept", &[]).0);
    let orphan = site.key("removed", &[]).0;
    site.backup("with.redb");
    site.json(["key", "revoke", &revoked]);
    site.json(["key", "replace", &replaced, "--overlap", "1h"]);
    site.json(["license", "remove", "removed", "--yes"]);
    restore(&site, "without.redb");
    site.check();
    for id in [&revoked, &replaced, &orphan] {
        assert_eq!(status_of(&site, id), "revoked");
    }

    let told = restore(&site, "with.redb");
    site.check();
    assert_eq!(told["keys_that_come_back"], json!([unused]), "{told}");
    for id in [&revoked, &replaced, &orphan] {
        assert_eq!(status_of(&site, id), "revoked", "{told}");
    }
    assert_eq!(status_of(&site, &unused), "active");
}

#[test]
fn a_database_that_cannot_be_read_is_replaced_only_with_yes() {
    let (site, key) = Site::open(500);
    site.backup("backup.redb");
    let whole = fs::read(site.db()).unwrap();
    let cases: [(&str, Vec<u8>); 5] = [
        ("text", b"garbage".repeat(1000)),
        ("empty", Vec::new()),
        ("zeros", vec![0; whole.len()]),
        ("half", whole[..whole.len() / 2].to_vec()),
        ("another program's", of_another_program()),
    ];
    for (what, content) in cases {
        fs::write(site.db(), &content).unwrap();
        let files = site.files();
        let done = site.run(["restore", "backup.redb", "--json"]);
        for part in ["cannot be read", "--yes", "revoked"] {
            done.assert_error(part);
        }
        assert_eq!(site.files(), files, "{what}");
        let is_same = fs::read(site.db()).unwrap() == content;
        assert!(is_same, "{what}: the file changed");
        let told = restore(&site, "backup.redb");
        assert!(told["unreadable"].is_string(), "{what}: {told}");
        assert!(told["replaced_from"].is_null(), "{what}: {told}");
        assert_eq!(told["records"]["conferences"], json!([null, 500]), "{what}");
        assert_eq!(told["licenses"], json!([]), "{what}");
        site.check();
        let server = site.serve();
        assert_eq!(seen(&mut server.client(&key)), 0, "{what}");
        server.stop();
    }
    // A newer program's database does not count as damaged. Not even `--yes` replaces it.
    set_format(&site.db(), SCHEMA + 1);
    let done = site.run(["restore", "backup.redb", "--yes"]);
    done.assert_told(1, "made by a newer medfeed");
}

/// Whether the file is gone or damaged, the same words say that revocations are lost.
#[test]
fn a_restore_without_the_revocations_says_so() {
    const WORDS: &str = "keys that were revoked since the backup would work again";
    let site = Site::with(4);
    site.license("all", "--dataset conferences");
    let (id, key) = site.key("all", &[]);
    site.backup("backup.redb");
    site.json(["key", "revoke", &id]);
    let whole = fs::read(site.db()).unwrap();
    // (what became of the file, its content, whether its revocations are lost)
    let cases: [(&str, Option<&[u8]>, bool); 4] = [
        ("gone", None, true),
        ("garbage", Some(b"\x00\x01garbage"), true),
        ("half", Some(&whole[..whole.len() / 3]), true),
        ("whole", Some(&whole), false),
    ];
    for (what, content, is_lost) in cases {
        for json in [false, true] {
            let _ = fs::remove_file(site.db());
            if let Some(content) = content {
                fs::write(site.db(), content).unwrap();
            }
            let restore = |options: &str| {
                let line = format!("restore backup.redb {options}");
                let json = json.then_some("--json");
                site.run(line.split_whitespace().chain(json))
            };
            let refused = restore("");
            let told = match json {
                true => refused.json()["error"].as_str().unwrap().to_owned(),
                false => refused.stderr.clone(),
            };
            assert_eq!(refused.code, Some(1), "{what}: {refused:?}");
            assert!(told.contains("--yes"), "{what}: {told}");
            assert_eq!(told.contains(WORDS), is_lost, "{what}: {told}");
            assert_eq!(site.db().exists(), content.is_some(), "{what}");
            let done = restore("--yes");
            assert_eq!(done.code, Some(0), "{what}: {done:?}");
            assert_eq!(done.stderr.contains(WORDS), is_lost, "{what}: {done:?}");
            let status = if is_lost { "active" } else { "revoked" };
            assert_eq!(status_of(&site, &id), status, "{what}");
        }
    }
    assert!(key.starts_with("mfk_"));
    let manual = super::manuals::read("docs/backups.md").replace("\n  ", " ");
    assert!(manual.contains(WORDS));
}

#[test]
fn a_lost_file_is_restored_as_the_database_that_its_note_names() {
    let site = Site::with(9);
    site.backup("unpublished.redb");
    let mut origin = super::origin::Origin::new(site);
    let id = origin.view().id().unwrap();
    origin.site.backup("published.redb");
    let rows = conferences_of_version(9, 1);
    origin.site.import("conferences.jsonl", rows);
    origin.publish();
    for backup in ["unpublished.redb", "published.redb"] {
        fs::remove_file(origin.site.db()).unwrap();
        restore(&origin.site, backup);
        assert_eq!(origin.view().id().unwrap(), id, "{backup}");
        let slot = origin.slot;
        origin.publish();
        assert_eq!(origin.slot, slot + 1, "{backup}: the log continues");
        origin.site.check();
    }
    // The note is left from another database.
    let other = Site::new();
    other.import("conferences.jsonl", conferences_of_version(5, 0));
    let other = super::origin::Origin::new(other);
    let backup = other.site.backup("backup.redb");
    fs::remove_file(origin.site.db()).unwrap();
    restore(&origin.site, backup.to_str().unwrap());
    assert_eq!(origin.view().id().unwrap(), other.view().id().unwrap());
    origin.site.check();
}

/// Two files with the same numbers: seqs, counts of records, and transactions of redb. Both have the secret of tokens.
#[test]
fn a_replaced_file_with_equal_seqs_and_counts_is_noticed() {
    type Replace = fn(&Path, &Path);
    let cases: [(&str, Replace); 2] = [
        ("by rename", |from, to| fs::rename(from, to).unwrap()),
        ("in place", |from, to| _ = fs::copy(from, to).unwrap()),
    ];
    for (how, replace) in cases {
        let (site, key) = Site::open(12);
        let other = site.path("other.redb");
        fs::copy(site.db(), &other).unwrap();
        site.import("conferences.jsonl", conferences_of_version(12, 1));
        site.write("other/conferences.jsonl", conferences_of_version(12, 2));
        site.json(["import", "other", "--yes", "--db", "other.redb"]);
        let seq = |db: &str| site.json(["log", "--db", db])["commits"][0]["seq"].clone();
        assert_eq!(seq("feed.redb"), seq("other.redb"));

        let server = site.serve();
        let mut client = server.client(&key);
        shows(&mut client, 1);
        let old = token(&mut client);
        let list = client.get("/v1/conferences");
        let etag = list.header("etag").unwrap().to_owned();
        replace(&other, &site.db());
        wait_for(how, || {
            let answer = client.get("/v1/exports/conferences");
            answer.status == 200 && version_of(&answer.lines()) == 2
        });
        let mut cached = server.client(&key).with_header("if-none-match", &etag);
        let answer = cached.get("/v1/conferences");
        assert_eq!(answer.status, 200, "{how}");
        assert_eq!(version_of(&answer.items()), 2, "{how}");
        let record = client.get("/v1/conferences/1").json();
        assert_eq!(record["data"]["venue"], "version 2", "{how}");
        let problem = client.get(&since(&old)).problem();
        assert_eq!(problem, "resync_required", "{how}");
        server.stop();
        site.check();
    }
}
