//! Buckets and replicas of an older format: the origin is upgraded first, its next entry is a whole state of the present format,
//! and replicas load that.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use super::client::Client;
use super::monitoring::{scrape, start_watched};
use super::origin::{Origin, url_of};
use super::publishing::curated;
use super::recorded::{FORMATS, Fixture, SERVE, check_exported, exported, format_of, has_new_fields, present_format};
use super::site::{SOON, Server, Site, wait_until};

/// Publishes what waits; returns what the command told. However old a fixture is, nothing of its bucket is swept.
fn publish(fixture: &Fixture, url: &str) -> Value {
    fixture.site.json(["publish", url, "--once", "--keep", "36500d"])
}

/// Serves a replica, with a client of its monitoring.
fn serve(site: &Site, url: &str) -> (Server, Client) {
    let options = format!("{SERVE} --from {url} --poll 20ms --admin-listen 127.0.0.1:0 --log info");
    start_watched(site, site.serve_command(&options))
}

/// Waits until a server has a commit.
fn wait_for_seq(site: &Site, admin: &mut Client) {
    let seq = site.json(["log", "--limit", "1"])["commits"][0]["seq"].as_f64().unwrap();
    wait_until("the replica has caught up", SOON, || (scrape(admin)["medfeed_snapshot_seq"] == seq).then_some(()));
}

/// The files of a folder and of the folders in it.
fn files(folder: &Path) -> BTreeSet<PathBuf> {
    let mut found = BTreeSet::new();
    for path in fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()) {
        if path.is_dir() {
            found.extend(files(&path));
        } else {
            found.insert(path);
        }
    }
    found
}

#[test]
fn a_bucket_of_any_format_is_checked_and_restored() {
    for format in FORMATS {
        let fixture = Fixture::unpack(format);
        let (site, recordings) = (&fixture.site, &fixture.recordings);
        let folder = fixture.unpack_bucket();
        let (url, before) = (url_of(&folder), files(&folder));
        let slot = site.json(["check", "--from", &url])["slot"].as_u64().unwrap();
        assert!(slot > 3, "a state and entries after it");
        let restored = Site::new();
        restored.json(["backup".as_ref(), restored.db().as_os_str(), "--from".as_ref(), url.as_ref()]);
        assert_eq!(format_of(&restored.db()), present_format());
        restored.check();
        let server = restored.serve_with(SERVE);
        recordings.check_answers(&recordings.published, &server);
        server.stop();
        recordings.check_commands(&recordings.published, &restored, &restored.db());
        let (at, hashes) = &recordings.earlier;
        restored.json(["backup", "earlier.redb", "--from", &url, "--at", at]);
        check_exported(&restored, &restored.path("earlier.redb"), hashes);
        assert_eq!(files(&folder), before, "who reads a bucket changes nothing in it");
        fixture.is_untouched("a bucket was read");

        // A damaged object is found.
        let object = folder.join(format!("log/{slot:020}"));
        let mut bytes = fs::read(&object).unwrap();
        let middle = bytes.len() / 2;
        bytes[middle] ^= 1;
        fs::write(&object, bytes).unwrap();
        let done = site.run(["check", "--from", &url]);
        assert!(done.code == Some(1) && done.stderr.contains(&format!("log/{slot:020}")), "{done:?}");
    }
}

#[test]
fn a_replica_of_the_present_format_answers_as_recorded() {
    for fixture in FORMATS.map(Fixture::unpack) {
        if fixture.format != present_format() {
            continue;
        }
        let (replica, _) = fixture.unpack_replica();
        let (server, _) = serve(&replica, &url_of(&fixture.unpack_bucket()));
        fixture.recordings.check_answers(&fixture.recordings.published, &server);
        server.stop();
    }
}

#[test]
fn an_upgraded_origin_goes_on_in_the_same_bucket() {
    for fixture in Fixture::older() {
        let (site, recordings) = (&fixture.site, &fixture.recordings);
        let folder = fixture.unpack_bucket();
        let url = url_of(&folder);
        let last = site.json(["check", "--from", &url])["slot"].as_u64().unwrap();
        let kept = files(&folder);
        fixture.upgrade();
        assert_eq!(publish(&fixture, &url)["entries"], 1, "one entry, with a whole state");
        assert_eq!(publish(&fixture, &url)["entries"], 0, "and nothing is left");
        assert!(files(&folder).is_superset(&kept), "older entries are kept");
        assert_eq!(site.json(["check", "--from", &url])["slot"], last + 1);

        // A replica of the older format, and one without a file.
        let (old, _) = fixture.unpack_replica();
        let new = Site::new();
        let mut servers = [&old, &new].map(|replica| serve(replica, &url));
        for (server, admin) in &mut servers {
            wait_for_seq(site, admin);
            recordings.check_answers(&recordings.present, server);
            // Tokens that the replica gave out before it was upgraded.
            for saved in recordings.published.saved.iter().filter(|saved| saved.end.is_some()) {
                let status = recordings.client(server, &saved.key).get(&saved.target()).status;
                let expected = recordings.present.saved.iter().find(|later| later.token == saved.token).unwrap();
                assert_eq!(status == 200, expected.end.is_some(), "{} saved {}", saved.key, saved.moment);
            }
        }

        // Commits follow, to where the bucket was before, too.
        let token = recordings
            .present
            .saved
            .iter()
            .rfind(|saved| saved.key == "all" && saved.dataset == "conferences")
            .unwrap();
        let end = token.end.as_ref().unwrap();
        for version in 1..=3 {
            let venue = format!("after the upgrade, {version}");
            site.import("conferences.jsonl", format!("{}\n", json!({"id": 101, "venue": venue})));
            assert_eq!(publish(&fixture, &url)["entries"], 1);
            for (server, admin) in &mut servers {
                wait_for_seq(site, admin);
                let mut client = recordings.client(server, "all");
                let items = client.get(&format!("/v1/conferences/changes?since={end}&limit=1000")).items();
                let last = items.last().unwrap();
                assert_eq!((&last["id"], &last["venue"]), (&json!(101), &json!(venue)));
                assert!(items.len() == 1 || has_new_fields(), "{items:?}");
            }
        }
        for (server, _) in servers {
            server.stop();
        }
        for replica in [&old, &new] {
            assert_eq!(format_of(&replica.db()), present_format());
            replica.check();
            assert_eq!(exported(replica, &replica.db()), exported(site, &site.db()));
        }

        // Instants before the upgrade and after it are restored from one bucket.
        assert_eq!(site.json(["check", "--from", &url])["slot"], last + 4);
        let (at, hashes) = &recordings.earlier;
        site.json(["backup", "earlier.redb", "--from", &url, "--at", at]);
        check_exported(site, &site.path("earlier.redb"), hashes);
        site.json(["backup", "newest.redb", "--from", &url]);
        assert_eq!(exported(site, &site.path("newest.redb")), exported(site, &site.db()));
        site.check_file(&site.path("newest.redb"));

        // Such a replica can take the origin's place.
        new.json(["promote", &url, "--yes"]);
        new.json(["license", "set", "promoted", "--dataset", "journals", "--publish-wait", "0s"]);
        new.check();
    }
}

#[test]
fn a_bucket_that_is_not_upgraded_is_not_followed() {
    for fixture in Fixture::older() {
        let folder = fixture.unpack_bucket();
        let (url, before) = (url_of(&folder), files(&folder));
        let (old, bytes) = fixture.unpack_replica();
        for replica in [&old, &Site::new()] {
            let listed = replica.files();
            let done = replica.ends(["serve", "--listen", "127.0.0.1:0", "--from", &url]);
            assert_eq!((done.code, done.stdout.as_str()), (Some(1), ""), "{done:?}");
            for expected in [&format!("format {}", fixture.format), "origin", "medfeed upgrade"] {
                assert!(done.stderr.contains(expected), "no {expected:?} in {done:?}");
            }
            assert_eq!(replica.files(), listed, "{done:?}");
        }
        assert!(fs::read(old.db()).unwrap() == bytes, "the replica's file changed");
        assert_eq!(files(&folder), before);
    }
}

/// A bucket of the same database that knows less than the replica's older file.
#[test]
fn a_replica_of_an_older_format_does_not_go_back() {
    for fixture in Fixture::older() {
        let (replica, bytes) = fixture.unpack_replica();
        let url = url_of(&fixture.unpack_bucket());
        let earlier = Site::new();
        let at = &fixture.recordings.earlier.0;
        earlier.json([
            "backup".as_ref(),
            earlier.db().as_os_str(),
            "--from".as_ref(),
            url.as_ref(),
            "--at".as_ref(),
            at.as_ref(),
        ]);
        let behind = url_of(&earlier.path("bucket"));
        earlier.json(["publish", &behind, "--once"]);
        let done = replica.ends(["serve", "--listen", "127.0.0.1:0", "--from", &behind]);
        assert!(done.code == Some(1) && done.stderr.contains("which never goes back"), "{done:?}");
        assert!(fs::read(replica.db()).unwrap() == bytes, "the replica's file changed");
    }
}

#[test]
fn a_replica_of_an_older_format_does_not_become_one_of_another_database() {
    // Its seq is higher: each restore of a published database skips many.
    let mut other = Origin::new(curated());
    for _ in 0..2 {
        other.publish_state();
        fs::remove_file(other.site.path("present.redb")).unwrap();
    }
    for fixture in Fixture::older() {
        let (replica, bytes) = fixture.unpack_replica();
        let done = replica.ends(["serve", "--listen", "127.0.0.1:0", "--from", &other.url()]);
        assert!(done.code == Some(1) && done.stderr.contains("but the file is a replica of"), "{done:?}");
        assert!(fs::read(replica.db()).unwrap() == bytes, "the replica's file changed");
    }
}

#[test]
fn a_replicas_file_is_not_upgraded_but_loaded_anew() {
    for fixture in Fixture::older() {
        let (replica, bytes) = fixture.unpack_replica();
        let url = url_of(&fixture.unpack_bucket());
        for args in [&["upgrade"][..], &["upgrade", "--dry-run"], &["upgrade", "--json"]] {
            let done = replica.run(args);
            assert_eq!(done.code, Some(1), "{args:?}: {done:?}");
            let told = format!("{}{}", done.stdout, done.stderr);
            for expected in ["feed.redb", "replica", "medfeed serve"] {
                assert!(told.contains(expected), "{args:?}: no {expected:?} in {told}");
            }
        }
        for command in [&["promote", &url, "--yes"][..], &["log"], &["check"], &["serve", "--listen", "127.0.0.1:0"]] {
            let done = replica.ends(command);
            assert_eq!(done.code, Some(1), "{command:?}: {done:?}");
        }
        assert!(fs::read(replica.db()).unwrap() == bytes, "the replica's file changed");
        assert_eq!(replica.files(), ["feed.redb"]);
    }
}

#[test]
fn a_restore_does_not_replace_a_replica_of_an_older_format() {
    for fixture in Fixture::older() {
        let (replica, bytes) = fixture.unpack_replica();
        let done = replica.run(["restore".as_ref(), fixture.site.db().as_os_str(), "--yes".as_ref()]);
        assert_eq!(done.code, Some(1), "{done:?}");
        assert!(done.stderr.contains("is a replica of "), "{done:?}");
        assert!(fs::read(replica.db()).unwrap() == bytes, "the file changed");
    }
}
