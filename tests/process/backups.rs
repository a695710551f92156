//! Backups: consistent copies made while others write, which are databases themselves.

use std::fs;
use std::os::unix::fs::symlink;
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};

use medfeed::store::restore::SCHEMA;

use super::foreign_files::set_format;
use super::promotion::replica_of;
use super::publishing::{commit, copy_of, in_folder};
use super::site::{Site, conferences_of_version, version_of};

#[test]
fn each_backup_is_one_state_while_imports_run() {
    const COUNT: u64 = 200;
    let site = Site::with(COUNT);
    site.open_key();
    let stop = AtomicBool::new(false);
    let (versions, imported) = std::thread::scope(|scope| {
        let importer = scope.spawn(|| {
            let mut version = 0;
            while !stop.load(Ordering::Relaxed) {
                version += 1;
                site.import("conferences.jsonl", conferences_of_version(COUNT, version));
            }
            version
        });
        let mut versions = Vec::new();
        for number in 0..10 {
            let file = site.path(&format!("backup-{number}.redb"));
            let report = site.json(["backup".as_ref(), file.as_os_str()]);
            assert_eq!(report["records"]["conferences"], COUNT, "{report}");
            let expected = fs::metadata(&file).unwrap().len();
            assert_eq!(report["bytes"], expected, "{report}");
            assert_eq!(report["file"], file.to_str().unwrap());
            site.check_file(&file);
            let records = site.conferences_in(&file);
            assert_eq!(records.len(), 200);
            versions.push(version_of(&records));
        }
        stop.store(true, Ordering::Relaxed);
        (versions, importer.join().expect("no import was disturbed"))
    });
    assert!(versions.is_sorted(), "{versions:?}");
    assert!(
        versions[9] > versions[0] && versions[9] <= imported,
        "{versions:?}, {imported} imports"
    );
    assert!(
        site.files()
            .iter()
            .all(|name| !name.starts_with(".medfeed")),
        "{:?}",
        site.files()
    );
    site.check();
}

#[test]
fn a_backup_is_a_database() {
    let (site, key) = Site::open(20);
    let server = site.serve();
    let mut client = server.client(&key);
    let token = client.token("conferences");
    let page = client.get("/v1/conferences?limit=5").json();
    let cursor = page["next_cursor"].as_str().expect("a cursor").to_owned();
    server.stop();
    site.import("conferences.jsonl", conferences_of_version(20, 1));

    let elsewhere = Site::new();
    fs::rename(site.backup("backup.redb"), elsewhere.db()).unwrap();
    let server = elsewhere.serve();
    let mut client = server.client(&key);
    let feed = client.get(&format!("/v1/conferences/changes?since={token}"));
    assert_eq!(feed.items().len(), 20, "an old token continues");
    assert_eq!(version_of(&feed.items()), 1);
    let next = client
        .get(&format!("/v1/conferences?limit=5&cursor={cursor}"))
        .items();
    assert_eq!(
        next.iter()
            .map(|item| item["id"].as_u64().unwrap())
            .collect::<Vec<_>>(),
        [6, 7, 8, 9, 10]
    );
    elsewhere.import("conferences.jsonl", conferences_of_version(21, 1));
    let newest = feed.json()["next_sync_token"].as_str().unwrap().to_owned();
    super::site::wait_until("the next import in the feed", super::site::SOON, || {
        let items = client
            .get(&format!("/v1/conferences/changes?since={newest}"))
            .items();
        (items.len() == 1 && items[0]["id"] == 21).then_some(())
    });
    server.stop();
    elsewhere.check();
}

#[test]
fn importing_a_backup_undoes_an_import_and_keeps_all_tokens() {
    let (site, key) = Site::open(20);
    let server = site.serve();
    let mut client = server.client(&key);
    let before = site.conferences_in(&site.db());
    site.backup("backup.redb");
    site.import("conferences.jsonl", conferences_of_version(23, 1));
    // The server shows a commit shortly after it, so the token is read once it does.
    let token = super::site::wait_until("the second import", super::site::SOON, || {
        let export = client.get("/v1/exports/conferences");
        (export.lines().len() == 23).then(|| export.header("x-sync-token").unwrap().to_owned())
    });

    site.json(["export", "before", "--db", "backup.redb"]);
    site.json(["import", "before", "--replace", "--allow-removals", "100"]);
    let content = |rows: Vec<serde_json::Value>| -> Vec<serde_json::Value> {
        rows.into_iter()
            .map(|row| serde_json::json!([row["id"], row["name"], row["venue"]]))
            .collect()
    };
    assert_eq!(content(site.conferences_in(&site.db())), content(before));
    let since = format!("/v1/conferences/changes?since={token}");
    let feed = super::site::wait_until("the import", super::site::SOON, || {
        let feed = client.get(&since);
        (!feed.items().is_empty()).then_some(feed)
    });
    assert_eq!(feed.status, 200, "the token continues");
    assert_eq!(feed.items().len(), 23);
    assert_eq!(
        feed.items()
            .iter()
            .filter(|item| item["deleted"] == true)
            .count(),
        3,
        "the added ones are removed"
    );
    server.stop();
    site.check();
}

#[test]
fn a_backup_replaces_only_backups() {
    let site = Site::with(5);
    symlink(site.db(), site.path("link")).unwrap();
    fs::hard_link(site.db(), site.path("second name")).unwrap();
    site.write("notes.txt", "what is dear to somebody");
    site.write("empty", "");
    fs::create_dir(site.path("folder")).unwrap();
    let whole = fs::read(site.db()).unwrap();
    site.write("cut short", &whole[..whole.len() / 2]);
    let files = site.files();
    let contents = |names: &[String]| -> Vec<Option<Vec<u8>>> {
        names
            .iter()
            .map(|name| fs::read(site.path(name)).ok())
            .collect()
    };
    let before = contents(&files);
    let cases = [
        ("feed.redb", "it is the database itself"),
        ("./feed.redb", "it is the database itself"),
        ("link", "it is the database itself"),
        ("second name", "it is the database itself"),
        ("notes.txt", "is no backup"),
        ("empty", "is no backup"),
        ("folder", "it is a folder"),
        ("cut short", "is no backup"),
        ("missing/backup.redb", "missing"),
    ];
    for (target, expected) in cases {
        let done = site.run(["backup", target, "--json"]);
        done.assert_error(expected);
        assert_eq!(site.files(), files, "{target}");
        assert!(contents(&files) == before, "{target}: a file changed");
    }
    let first = site.backup("backup.redb");
    assert_eq!(version_of(&site.conferences_in(&first)), 0);
    // A backup of an older format is replaced too, so that nightly backups continue after an upgrade.
    set_format(&first, SCHEMA - 1);
    site.import("conferences.jsonl", conferences_of_version(5, 1));
    site.backup("backup.redb");
    let found = version_of(&site.conferences_in(&first));
    assert_eq!(found, 1, "an older backup is replaced");
}

#[test]
fn backup_and_restore_replace_no_folder_and_no_pipe() {
    let site = Site::with(5);
    site.backup("backup.redb");
    fs::create_dir(site.path("folder")).unwrap();
    assert!(
        Command::new("mkfifo")
            .arg(site.path("pipe"))
            .status()
            .unwrap()
            .success()
    );
    let files = site.files();
    for (target, expected) in [
        ("folder", "it is a folder"),
        ("pipe", "it is not a regular file"),
    ] {
        for command in [
            &["backup", target][..],
            &["restore", "backup.redb", "--yes", "--db", target],
        ] {
            let done = site.ends(command);
            assert_eq!(done.code, Some(1), "{command:?}: {done:?}");
            let expected = format!("{target} cannot be used: {expected}");
            assert!(done.stderr.contains(&expected), "{command:?}: {done:?}");
            assert_eq!(site.files(), files, "{command:?}");
            assert!(!site.path(target).is_file(), "{command:?}: it was replaced");
        }
    }
}

#[test]
fn a_backup_replaces_no_replica_and_no_published_database() {
    let (site, place) = in_folder();
    let unpublished = site.backup("unpublished.redb");
    place.once(&site);
    let replica = replica_of(&place);
    // The bucket does not have this commit.
    commit(&site, 1);
    let elsewhere = copy_of(&site);
    let (plain, from): (&[&str], &[&str]) = (&["backup"], &["backup", "--from", &place.url]);
    // The site whose --db the command uses, the target, and the error.
    let cases = cases![
        &site, from, site.db(), "it is the database itself";
        &site, from, replica.db(), "it exists and is no backup";
        &site, from, elsewhere.db(), "it exists and is no backup";
        &replica, from, replica.db(), "it is the database itself";
        &Site::new(), from, replica.db(), "it exists and is no backup";
        &Site::new(), from, site.db(), "it exists and is no backup";
        &site, plain, replica.db(), "it exists and is no backup";
        &replica, plain, site.db(), "it exists and is no backup";
    ];
    for (db, command, target, expected) in cases {
        let before = fs::read(&target).unwrap();
        let done = db.run([command, &[target.to_str().unwrap()]].concat());
        done.assert_told(1, expected);
        assert!(
            fs::read(&target).unwrap() == before,
            "{command:?}, {expected}"
        );
    }
    // Older backups are replaced, also of the database before it was published.
    let of_bucket = site.path("of-bucket.redb");
    for target in [&of_bucket, &of_bucket, &unpublished] {
        site.json([from, &[target.to_str().unwrap()]].concat());
    }
    site.backup("of-bucket.redb");
}
