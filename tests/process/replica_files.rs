//! Files that take part in replication, in the hands of commands: replicas, published databases, and one that was taken over.

use std::path::Path;
use std::time::Duration;

use medfeed::store::replication::{PublishedNote, ReplicaDraft, ReplicaMark};
use medfeed::store::{Follower, Writer};

use super::site::{Site, conferences_of_version};

fn mark_published(database: &Path) {
    Writer::open(database, Duration::from_secs(20)).unwrap().mark_published().unwrap();
}

/// Loads a replica of the site's database.
fn make_replica(site: &Site, path: &Path) {
    let origin = Follower::open(&site.db()).unwrap().origin().unwrap();
    let mut draft = ReplicaDraft::create_for(path).unwrap();
    let digest = origin.dump(1 << 20, &mut |part| {
        draft.add_part(&part).unwrap();
        Ok(())
    });
    let url = "s3://bucket/feed".to_owned();
    let id = origin.id().unwrap().unwrap();
    let mark = ReplicaMark { url, id, slot: 1, hash: [0; 32], digest: digest.unwrap() };
    drop(draft.finish(&mark, origin.head().unwrap().head()).unwrap().persist(None).unwrap());
}

#[test]
fn a_replica_is_read_like_its_origin_and_written_by_no_command() {
    let site = Site::new();
    site.import("conferences.jsonl", conferences_of_version(40, 0));
    site.open_key();
    mark_published(&site.db());
    let rows = site.write("conferences.jsonl", conferences_of_version(40, 1));
    let replica = site.path("replica.redb");
    make_replica(&site, &replica);

    let db = replica.to_str().unwrap();
    let backup = site.backup("backup.redb");
    let refused = [
        &["import", rows.to_str().unwrap()][..],
        &["import", rows.to_str().unwrap(), "--dry-run"],
        &["license", "set", "other", "--dataset", "journals"],
        &["key", "create", "--license", "all"],
        &["compact"],
        &["restore", backup.to_str().unwrap(), "--yes"],
    ];
    for command in refused {
        let done = site.run([command, &["--db", db]].concat());
        assert_eq!(done.code, Some(1), "{command:?}: {done:?}");
        let expected = "replica.redb is a replica of s3://bucket/feed; write to its origin, or make it an independent \
                        database with `medfeed promote`";
        assert!(done.stderr.contains(expected), "{command:?}: {}", done.stderr);
    }
    site.check_file(&replica);
    let copy = site.path("copy.redb");
    let copy = copy.to_str().unwrap();
    site.json(["backup", copy, "--db", db]);
    site.json(["license", "set", "other", "--dataset", "journals", "--db", copy]);

    // A plain copy of its file is a backup too.
    let plain = site.path("plain.redb");
    std::fs::copy(&replica, &plain).unwrap();
    let restored = site.path("restored.redb");
    let restored = restored.to_str().unwrap();
    site.json(["restore", plain.to_str().unwrap(), "--db", restored, "--yes"]);
    site.json(["license", "set", "other", "--dataset", "journals", "--db", restored]);

    // Keys may be revoked at the origin, so nobody serves a replica that does not follow.
    let done = site.ends(["serve", "--listen", "127.0.0.1:0", "--db", db]);
    assert_eq!((done.code, done.stdout.as_str()), (Some(1), ""), "{done:?}");
    for expected in ["replica.redb is a replica of s3://bucket/feed", "--from s3://bucket/feed", "medfeed promote"] {
        assert!(done.stderr.contains(expected), "{}", done.stderr);
    }
}

#[test]
fn a_database_that_was_taken_over_is_read_only() {
    let site = Site::new();
    site.import("conferences.jsonl", conferences_of_version(40, 0));
    site.open_key();
    mark_published(&site.db());
    let origin = Follower::open(&site.db()).unwrap().origin().unwrap();
    let head = origin.head().unwrap();
    let note = PublishedNote {
        url: "s3://bucket/feed".to_owned(),
        id: origin.id().unwrap().unwrap(),
        slot: 7,
        seq: head.seq,
        lineage: head.lineage,
        hash: [0; 32],
        fenced: Some("host b took over at 12:00".to_owned()),
        fenced_at: None,
    };
    note.write(&site.db()).unwrap();
    let rows = site.write("conferences.jsonl", conferences_of_version(40, 1));
    for command in [&["import", rows.to_str().unwrap()][..], &["key", "create", "--license", "all"]] {
        let done = site.run(command);
        assert_eq!(done.code, Some(4), "{command:?}: {done:?}");
        for expected in ["host b took over at 12:00", "feed.redb.published", "medfeed export"] {
            assert!(done.stderr.contains(expected), "{command:?}: {}", done.stderr);
        }
    }
    // A backup in its place is no way around it.
    let backup = site.backup("backup.redb");
    std::fs::copy(&backup, site.db()).unwrap();
    let done = site.run(["key", "create", "--license", "all"]);
    assert!(done.code == Some(4) && done.stderr.contains("host b took over"), "{done:?}");
    site.check();
    assert_eq!(site.run(["license", "list"]).code, Some(0));
    std::fs::remove_file(site.path("feed.redb.published")).unwrap();
    site.import("conferences.jsonl", conferences_of_version(40, 1));
    site.check();
}

#[test]
fn a_restored_origin_knows_no_token_of_before() {
    let site = Site::new();
    site.import("conferences.jsonl", conferences_of_version(40, 0));
    let key = site.open_key();
    mark_published(&site.db());
    let backup = site.backup("backup.redb");
    site.import("conferences.jsonl", conferences_of_version(40, 1));
    let server = site.serve();
    let token = server.client(&key).get("/v1/exports/conferences").header("x-sync-token").unwrap().to_owned();
    server.stop();
    site.json(["restore", backup.to_str().unwrap(), "--yes"]);
    site.check();
    let server = site.serve();
    let mut client = server.client(&key);
    assert_eq!(client.get(&format!("/v1/conferences/changes?since={token}")).status, 410);
    let token = client.get("/v1/exports/conferences").header("x-sync-token").unwrap().to_owned();
    site.import("conferences.jsonl", conferences_of_version(40, 2));
    server.stop();
    let server = site.serve();
    let changes = server.client(&key).get(&format!("/v1/conferences/changes?since={token}"));
    assert_eq!((changes.status, changes.items().len()), (200, 40));
    server.stop();
    let log = site.run(["log"]);
    assert!(log.stdout.contains("restored from a backup of "), "{log:?}");
}
