//! Upgrades: a database of an older format becomes one of the present format in one step, and no caller notices.
//!
//! `MEDFEED_CASES` sets the number of kills, `MEDFEED_SEED` when they come.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsStr;
use std::fs::{self, File, Permissions};
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::client::Client;
use super::faults::Disk;
use super::foreign_files::{make_newer, open};
use super::recorded::{Fixture, SERVE, Saved, check_exported, exported, format_of, has_new_fields, present_format};
use super::site::{Process, Random, SOON, Server, Site, conferences_of_version, wait_until};
use crate::harness::counted;
use crate::harness::gunzip;
use crate::properties::variable;

/// An upgrade is refused for a reason, which stdout or stderr tells, and changes nothing.
fn is_refused(fixture: &Fixture, args: &[&str], expected: &[&str]) {
    let files = fixture.site.files();
    let done = fixture.site.ends([&["upgrade"], args].concat());
    assert_eq!(done.code, Some(1), "{args:?}: {done:?}");
    let told = format!("{}{}", done.stdout, done.stderr);
    for expected in expected {
        assert!(told.contains(expected), "{args:?}: no {expected:?} in {told}");
    }
    fixture.is_untouched(&format!("{args:?}"));
    assert_eq!(fixture.site.files(), files, "{args:?}");
}

#[test]
fn an_upgrade_keeps_the_old_file_and_says_so() {
    let present = present_format();
    for fixture in Fixture::older() {
        let (site, format) = (&fixture.site, fixture.format);
        fs::set_permissions(site.db(), Permissions::from_mode(0o640)).unwrap();
        let inode = fs::metadata(site.db()).unwrap().ino();
        let done = fixture.upgrade();
        let kept = format!("feed.redb.format-{format}");
        for expected in [&format!("format {format}"), &format!("format {present}"), &kept] {
            assert!(done.stdout.contains(expected), "no {expected:?} in {done:?}");
        }
        assert_eq!(site.files(), ["feed.redb", kept.as_str()]);
        let old = fs::metadata(fixture.kept()).unwrap();
        assert!(old.ino() == inode && old.nlink() == 1, "it is the same file, under another name");
        assert!(fs::read(fixture.kept()).unwrap() == fixture.bytes, "byte for byte");
        assert_eq!(
            fs::metadata(site.db()).unwrap().mode() & 0o777,
            0o640,
            "the new file is read by whoever read the old one"
        );
        assert_eq!(format_of(&site.db()), present);
        site.check();

        // Once is enough: the second time there is nothing to do.
        let upgraded = fs::read(site.db()).unwrap();
        for args in [&["upgrade"][..], &["upgrade", "--if-needed"], &["upgrade", "--dry-run"], &["upgrade", "--json"]] {
            let done = site.run(args);
            assert_eq!(done.code, Some(0), "{args:?}: {done:?}");
            assert!(fs::read(site.db()).unwrap() == upgraded, "{args:?}: the file changed");
        }
        assert!(site.run(["upgrade"]).stdout.contains(&format!("format {present}")));
        assert_eq!(site.files(), ["feed.redb", kept.as_str()]);
    }
}

#[test]
fn an_upgrade_tells_programs_what_it_did() {
    let present = present_format();
    for fixture in Fixture::older() {
        let status = &fixture.recordings.present.exchanges[0];
        assert_eq!(status.target, "/v1/status");
        let datasets = &serde_json::from_str::<Value>(&status.told.body).unwrap()["datasets"];
        let told = fixture.site.json(["upgrade"]);
        assert_eq!((&told["from"], &told["to"]), (&json!(fixture.format), &json!(present)), "{told}");
        assert_eq!(told["kept"], fixture.kept().to_str().unwrap(), "{told}");
        for dataset in ["conferences", "journals"] {
            assert_eq!(told["records"][dataset], datasets[dataset]["records"], "{dataset}: {told}");
        }
    }
}

#[test]
fn a_dry_run_tells_and_changes_nothing() {
    let present = present_format();
    for fixture in Fixture::older() {
        let site = &fixture.site;
        fs::set_permissions(site.db(), Permissions::from_mode(0o400)).unwrap();
        fs::set_permissions(site.folder(), Permissions::from_mode(0o500)).unwrap();
        let done = site.run(["upgrade", "--dry-run"]);
        fs::set_permissions(site.folder(), Permissions::from_mode(0o700)).unwrap();
        assert_eq!(done.code, Some(0), "{done:?}");
        for expected in
            [format!("format {}", fixture.format), format!("format {present}"), "tokens".into(), "keys".into()]
        {
            assert!(done.stdout.contains(&expected), "no {expected:?} in {done:?}");
        }
        assert_eq!(site.json(["upgrade", "--dry-run"])["from"], fixture.format);
        fixture.is_untouched("dry run");
        assert_eq!(site.files(), ["feed.redb"]);
    }
}

#[test]
fn without_a_file_only_if_needed_succeeds() {
    let site = Site::new();
    for args in [&["upgrade"][..], &["upgrade", "--dry-run"]] {
        let done = site.run(args);
        assert_eq!((done.code, done.stdout.as_str()), (Some(1), ""), "{args:?}: {done:?}");
        assert!(done.stderr.contains("there is no database at"), "{args:?}: {done:?}");
    }
    let done = site.run(["upgrade", "--if-needed"]);
    assert_eq!((done.code, done.stdout.as_str(), done.stderr.as_str()), (Some(0), "", ""));
    assert_eq!(site.files(), [""; 0]);
    for fixture in Fixture::older() {
        assert_eq!(fixture.site.run(["upgrade", "--if-needed"]).code, Some(0));
        assert_eq!(format_of(&fixture.site.db()), present_format(), "it is needed");
    }
}

/// All entries of a walk, by their ids; each id comes once.
fn walk(client: &mut Client, dataset: &str, start: &str) -> BTreeMap<u64, Value> {
    let mut found = BTreeMap::new();
    let mut target = format!("/v1/{dataset}/changes?{start}&limit=17");
    loop {
        let page = client.get(&target);
        for item in page.items() {
            let id = item["id"].as_u64().unwrap();
            assert!(found.insert(id, item).is_none(), "{id} comes twice in {target}");
        }
        let page = page.json();
        if page["has_more"] != true {
            return found;
        }
        target = format!("/v1/{dataset}/changes?since={}&limit=17", page["next_sync_token"].as_str().unwrap());
    }
}

/// What a license shows of a dataset, by ids.
fn shown(client: &mut Client, dataset: &str) -> BTreeMap<u64, Value> {
    let lines = client.get(&format!("/v1/exports/{dataset}")).lines();
    lines.into_iter().map(|record| (record["id"].as_u64().unwrap(), record)).collect()
}

#[test]
fn callers_go_on_by_their_tokens() {
    for fixture in Fixture::older() {
        fixture.upgrade();
        let (site, recordings) = (&fixture.site, &fixture.recordings);
        let server = site.serve_with(SERVE);
        let live: Vec<(&Saved, &String)> =
            recordings.present.saved.iter().filter_map(|s| Some((s, s.end.as_ref()?))).collect();
        assert!(live.len() > 40 && live.len() < recordings.present.saved.len(), "some go on, and some do not");
        let before: Vec<_> = live
            .iter()
            .map(|(saved, _)| {
                let mut client = recordings.client(&server, &saved.key);
                let walked = walk(&mut client, &saved.dataset, &format!("since={}", saved.token));
                (walked, shown(&mut client, &saved.dataset))
            })
            .collect();

        // Changes, removals and new records in both datasets. No change moves a record into a license or out of it.
        let all = |dataset| shown(&mut recordings.client(&server, "all"), dataset);
        let mut touched: BTreeMap<&str, BTreeSet<u64>> = BTreeMap::new();
        for (dataset, field) in [("conferences", "venue"), ("journals", "publisher")] {
            let ids: Vec<u64> = all(dataset).into_keys().collect();
            let changed = ids.iter().step_by(7).map(|id| json!({"id": id, field: "after the upgrade"}));
            let removed = ids.iter().skip(3).step_by(14).map(|id| json!({"id": id, "deleted": true}));
            let mut new = json!({"id": 9001, "name": "New", "year": 2025, "country": "Spain", "therapy_areas": ["Oncology"],
                "start_date_status": "check", "abstract_due_date_status": "check", "late_breaking_due_date_status": "check"});
            if dataset == "journals" {
                new = json!({"id": 9001, "name": "New"});
            }
            let rows: Vec<Value> = changed.chain(removed).chain([new]).collect();
            touched.insert(dataset, rows.iter().map(|row| row["id"].as_u64().unwrap()).collect());
            site.import(&format!("{dataset}.jsonl"), rows.iter().map(|row| format!("{row}\n")).collect::<String>());
        }
        for (dataset, client) in [("conferences", "all"), ("journals", "all")] {
            let mut client = recordings.client(&server, client);
            wait_until("the import is served", SOON, || {
                (client.get(&format!("/v1/{dataset}/9001")).status == 200).then_some(())
            });
        }

        for ((saved, end), (walked, seen)) in live.iter().zip(&before) {
            let what = format!("{} {} saved {}", saved.key, saved.dataset, saved.moment);
            let mut client = recordings.client(&server, &saved.key);
            let shows = shown(&mut client, &saved.dataset);
            let visible = |id: &u64| seen.contains_key(id) || shows.contains_key(id);
            let expected: BTreeSet<u64> = touched[saved.dataset.as_str()].iter().copied().filter(visible).collect();
            let entries = walk(&mut client, &saved.dataset, &format!("since={end}"));
            let from_end: BTreeSet<u64> =
                if has_new_fields() { shows.keys().chain(&expected).copied().collect() } else { expected.clone() };
            assert_eq!(entries.keys().copied().collect::<BTreeSet<_>>(), from_end, "{what}: from the end");
            let entries = walk(&mut client, &saved.dataset, &format!("since={}", saved.token));
            let expected: BTreeSet<u64> = expected.iter().chain(walked.keys()).copied().collect();
            assert_eq!(entries.keys().copied().collect::<BTreeSet<_>>(), expected, "{what}: from the token");
            for (id, entry) in entries {
                match shows.get(&id) {
                    Some(record) => assert_eq!(entry, *record, "{what}"),
                    None => assert_eq!(entry["deleted"], true, "{what}: {entry}"),
                }
            }
        }
        for saved in recordings.present.saved.iter().filter(|saved| saved.end.is_none()) {
            let answer = recordings.client(&server, &saved.key).get(&saved.target());
            assert!([403, 410].contains(&answer.status), "{} {}: {}", saved.key, saved.moment, answer.status);
        }
        server.stop();
        site.check();
    }
}

#[test]
fn an_upgraded_database_is_written_on() {
    for fixture in Fixture::older() {
        fixture.upgrade();
        let (site, recordings) = (&fixture.site, &fixture.recordings);
        let id = site.json(["key", "list"])["keys"]
            .as_array()
            .unwrap()
            .iter()
            .find(|key| key["license"] == "spain")
            .unwrap()["id"]
            .as_str()
            .unwrap()
            .to_owned();
        site.json(["key", "revoke", &id, "--publish-wait", "0s"]);
        site.json([
            "license",
            "set",
            "years",
            "--yes",
            "--dataset",
            "conferences",
            "--year",
            "2025",
            "--publish-wait",
            "0s",
        ]);
        let (_, new) = site.key("years", &["--publish-wait", "0s"]);
        let server = site.serve();
        assert_eq!(recordings.client(&server, "spain").get("/v1/conferences").problem(), "revoked_api_key");
        let export = "/v1/exports/conferences";
        let (mut old, mut new) = (recordings.client(&server, "years"), server.client(&new));
        assert_eq!(old.get(export).told(), new.get(export).told());
        assert!(old.get(export).lines().iter().all(|record| record["year"] == 2025));
        let saved = recordings.present.saved.iter().rfind(|saved| saved.key == "years" && saved.end.is_some()).unwrap();
        assert_eq!(old.get(&saved.target()).problem(), "resync_required");
        assert!(old.get(&format!("{}&resync=diff", saved.target())).items().iter().any(|item| item["deleted"] == true));
        server.stop();
        site.check();
        let (before, size) = (exported(site, &site.db()), fs::metadata(site.db()).unwrap().len());
        site.json(["compact"]);
        let backup = site.backup("backup.redb");
        site.json(["restore".as_ref(), backup.as_os_str(), "--yes".as_ref()]);
        assert!(fs::metadata(site.db()).unwrap().len() <= size + (1 << 20));
        assert_eq!(exported(site, &site.db()), before);
        site.check();
    }
}

#[test]
fn other_commands_refuse_an_older_file() {
    for fixture in Fixture::older() {
        let site = &fixture.site;
        let rows = site.write("conferences.jsonl", conferences_of_version(2, 0));
        let rows = rows.to_str().unwrap();
        let (out, bucket) = (site.path("out"), format!("file://{}", site.path("bucket").display()));
        let (out, bucket) = (out.to_str().unwrap(), bucket.as_str());
        let mut commands = vec![
            "serve --listen 127.0.0.1:0".to_owned(),
            "serve --listen 127.0.0.1:0 --create".to_owned(),
            format!("import {rows}"),
            format!("import {rows} --dry-run"),
            "lint".to_owned(),
            "license set x --dataset journals".to_owned(),
            "license remove all --yes".to_owned(),
            "license list".to_owned(),
            "license show all".to_owned(),
            "license explain all conferences 1".to_owned(),
            "key create --license all".to_owned(),
            "key revoke x".to_owned(),
            "key replace x".to_owned(),
            "key list".to_owned(),
            "check".to_owned(),
            format!("backup {out}"),
            "compact".to_owned(),
            "log".to_owned(),
            "show conferences 1".to_owned(),
            format!("export {out}"),
        ];
        if cfg!(feature = "bucket") {
            commands.extend([format!("publish {bucket} --once"), format!("promote {bucket} --yes")]);
        }
        fs::create_dir(site.path("bucket")).unwrap();
        let files = site.files();
        for command in commands {
            let done = site.ends(command.split_whitespace());
            assert_eq!(done.code, Some(1), "{command:?}: {done:?}");
            let told = format!("{}{}", done.stdout, done.stderr);
            for expected in ["feed.redb", "medfeed upgrade", &format!("format {}", fixture.format)] {
                assert!(told.contains(expected), "{command:?}: no {expected:?} in {told}");
            }
            fixture.is_untouched(&format!("{command:?}"));
            assert_eq!(site.files(), files, "{command:?}");
        }
    }
}

#[test]
fn formats_without_an_upgrade_are_refused() {
    let old = Site::new();
    fs::write(old.db(), gunzip(include_bytes!("../../fixtures/format-1.redb.gz"))).unwrap();
    let new = Site::new();
    new.import("conferences.jsonl", conferences_of_version(2, 0));
    let (newer, _) = make_newer(&new.db());
    let text = Site::new();
    fs::write(text.db(), "id,name\n1,A\n").unwrap();
    let cases = [
        (&old, vec!["format 1".to_owned(), "medfeed export FOLDER".to_owned()]),
        (&new, vec![format!("was written by a newer medfeed (format {newer}")]),
        (&text, vec!["is not a medfeed database".to_owned()]),
    ];
    for (site, expected) in cases {
        let (before, files) = (fs::read(site.db()).unwrap(), site.files());
        for args in [&["upgrade"][..], &["upgrade", "--dry-run"], &["upgrade", "--if-needed"]] {
            let done = site.run(args);
            assert_eq!(done.code, Some(1), "{args:?}: {done:?}");
            assert!(
                expected.iter().all(|expected| done.stderr.contains(expected)),
                "{args:?}: no {expected:?} in {done:?}"
            );
            assert!(fs::read(site.db()).unwrap() == before && site.files() == files, "{args:?}: it changed something");
        }
    }
}

#[test]
fn a_backup_of_an_older_format_is_restored() {
    let present = present_format();
    for fixture in Fixture::older() {
        let recordings = &fixture.recordings;
        let backup = fixture.site.db();
        let database = |name: &str| {
            let site = Site::new();
            match name {
                "older" => fs::write(site.db(), &fixture.bytes).unwrap(),
                "present" => drop(site.import("conferences.jsonl", conferences_of_version(3, 0))),
                _ => {}
            }
            site
        };
        for replaced in ["none", "present", "older"] {
            let site = database(replaced);
            let told = site.json(["restore".as_ref(), backup.as_os_str(), "--yes".as_ref()]);
            assert_eq!(told["restored"], true, "{replaced}: {told}");
            fixture.is_untouched(replaced);
            assert_eq!(format_of(&site.db()), present, "{replaced}");
            site.check();
            check_exported(&site, &site.db(), &recordings.present.exported);
            let server = site.serve();
            let saved = recordings.present.saved.iter().find(|saved| saved.end.is_some()).unwrap();
            let mut client = recordings.client(&server, &saved.key);
            // A database that is replaced keeps its secret, which seals tokens.
            let expected = if replaced == "present" { "invalid_sync_token" } else { "resync_required" };
            assert_eq!(client.get(&saved.target()).problem(), expected, "{replaced}: as after any restore");
            assert_eq!(recordings.client(&server, "revoked").get("/v1/journals").problem(), "revoked_api_key");
            server.stop();
        }
        // The other way: a database of the older format makes way for a backup.
        let source = Site::new();
        source.import("conferences.jsonl", conferences_of_version(5, 7));
        let backup = source.backup("backup.redb");
        let site = database("older");
        site.json(["restore".as_ref(), backup.as_os_str(), "--yes".as_ref()]);
        assert_eq!(site.conferences_in(&site.db()).len(), 5);
        site.check();
    }
}

#[test]
fn a_file_in_the_way_is_kept() {
    for fixture in Fixture::older() {
        let (site, kept) = (&fixture.site, fixture.kept());
        let dear = site.write("dear", "to somebody");
        let obstacles: [&dyn Fn(); 5] = [
            &|| fs::write(&kept, "to somebody").unwrap(),
            &|| fs::write(&kept, &fixture.bytes).unwrap(),
            &|| symlink(&dear, &kept).unwrap(),
            &|| symlink("nowhere", &kept).unwrap(),
            &|| fs::create_dir(&kept).unwrap(),
        ];
        for make in obstacles {
            make();
            let before = fs::read(&kept).ok();
            // The old file takes another name.
            let told = site.json(["upgrade"]);
            let other = PathBuf::from(format!("{}-2", kept.display()));
            assert_eq!(told["kept"], other.display().to_string());
            assert!(fs::read(&other).unwrap() == fixture.bytes);
            assert_eq!(fs::read(&kept).ok(), before);
            fs::rename(&other, site.db()).unwrap();
            if fs::remove_file(&kept).is_err() {
                fs::remove_dir(&kept).unwrap();
            }
        }
        // A second name of the same file is no other file: an upgrade was killed just before its end.
        fs::hard_link(site.db(), &kept).unwrap();
        fixture.upgrade();
        assert!(fs::read(&kept).unwrap() == fixture.bytes && format_of(&site.db()) == present_format());
    }
}

#[test]
fn an_upgrade_follows_links() {
    for fixture in Fixture::older() {
        let site = Site::new();
        symlink(fixture.site.db(), site.db()).unwrap();
        assert_eq!(site.run(["upgrade"]).code, Some(0));
        assert!(site.db().is_symlink() && site.files() == ["feed.redb"], "{:?}", site.files());
        assert!(fs::read(fixture.kept()).unwrap() == fixture.bytes, "it is kept beside the real file");
        assert_eq!(format_of(&fixture.site.db()), present_format());
        site.check();
    }
}

#[test]
fn an_upgrade_waits_for_a_writer() {
    for fixture in Fixture::older() {
        let site = &fixture.site;
        let writer = open(&site.db());
        for args in [&["--wait", "0s"][..], &["--wait", "100ms", "--json"]] {
            let done = site.ends([&["upgrade"], args].concat());
            assert_eq!(done.code, Some(1), "{done:?}");
            assert!(format!("{}{}", done.stdout, done.stderr).contains("--wait"), "{done:?}");
            assert_eq!(site.files(), ["feed.redb"]);
        }
        let mut waiting = Process::spawn(site.command(["upgrade", "--wait", "30s"]).stdout(Stdio::null()));
        assert_eq!(waiting.ended_within(Duration::from_millis(500)), None, "it waits");
        drop(writer);
        assert_eq!(waiting.ended_within(SOON).expect("it goes on").code(), Some(0));
        assert_eq!(format_of(&site.db()), present_format());
        site.check();
    }
}

#[test]
fn two_upgrades_at_once_are_one() {
    for fixture in Fixture::older() {
        let site = &fixture.site;
        let mut both = [0, 1].map(|_| Process::spawn(site.command(["upgrade"]).stdout(Stdio::null())));
        for upgrade in &mut both {
            assert_eq!(upgrade.ended_within(SOON).expect("it ends").code(), Some(0));
        }
        assert!(fs::read(fixture.kept()).unwrap() == fixture.bytes);
        assert_eq!(site.files(), ["feed.redb", &format!("feed.redb.format-{}", fixture.format)]);
        site.check();
    }
}

#[test]
fn a_damaged_file_is_not_upgraded() {
    for mut fixture in Fixture::older() {
        let sound = fixture.bytes.clone();
        let needle = b"version 2";
        let offsets: Vec<usize> = memchr::memmem::find_iter(&sound, needle).collect();
        let mut refused = 0;
        for at in offsets {
            fixture.bytes.clone_from(&sound);
            fixture.bytes[at] ^= 0x20;
            fs::write(fixture.site.db(), &fixture.bytes).unwrap();
            let done = fixture.site.run(["upgrade"]);
            if done.code == Some(0) {
                // Pages out of use may hold the text too.
                check_exported(&fixture.site, &fixture.site.db(), &fixture.recordings.present.exported);
                fixture.site.check();
                fs::remove_file(fixture.kept()).unwrap();
                continue;
            }
            assert!(done.code == Some(1) && done.stderr.contains("is damaged: table `"), "{done:?}");
            fixture.is_untouched("damaged");
            assert_eq!(fixture.site.files(), ["feed.redb"]);
            refused += 1;
        }
        assert!(refused > 0, "no text was met");
    }
}

#[test]
fn without_permission_nothing_happens() {
    for fixture in Fixture::older() {
        fs::set_permissions(fixture.site.folder(), Permissions::from_mode(0o500)).unwrap();
        let is_free = File::create(fixture.site.path("try")).is_ok();
        if !is_free {
            is_refused(&fixture, &[], &["feed.redb", "ermission denied"]);
        }
        fs::set_permissions(fixture.site.folder(), Permissions::from_mode(0o700)).unwrap();
        if !is_free {
            continue;
        }
        // Root may write everywhere but on a disk that is read alone.
        fs::remove_file(fixture.site.path("try")).unwrap();
        let Some(_disk) = Disk::mount(fixture.site.folder(), 48 << 20) else {
            println!("skipped: this user may write everything");
            continue;
        };
        fs::write(fixture.site.db(), &fixture.bytes).unwrap();
        let remount = |how: &str| {
            let done =
                Command::new("mount").args(["-o", &format!("remount,{how}")]).arg(fixture.site.folder()).status();
            assert!(done.unwrap().success());
        };
        remount("ro");
        is_refused(&fixture, &[], &["feed.redb"]);
        assert_eq!(fixture.site.run(["upgrade", "--dry-run"]).code, Some(0), "a dry run writes nothing");
        remount("rw");
        fixture.upgrade();
        fixture.site.check();
    }
}

#[test]
fn on_a_full_disk_nothing_happens() {
    for fixture in Fixture::older() {
        let Some(disk) = Disk::mount(fixture.site.folder(), 48 << 20) else {
            println!("skipped: no file system can be mounted here");
            return;
        };
        fs::write(fixture.site.db(), &fixture.bytes).unwrap();
        for free in [0, 4 << 10, 64 << 10, 128 << 10] {
            disk.fill(free);
            is_refused(&fixture, &[], &["no room left on the disk"]);
        }
        disk.free_all();
        fixture.upgrade();
        fixture.site.check();
    }
}

/// A server answers as recorded, and the recorded tokens go on: a short look after each kill.
fn answers(fixture: &Fixture, server: &Server) {
    let saved = fixture.recordings.present.saved.iter().rfind(|saved| saved.end.is_some()).unwrap();
    let page = fixture.recordings.client(server, &saved.key).get(&format!("{}&limit=1000", saved.target()));
    assert_eq!(page.status, 200);
    assert!(page.json()["next_sync_token"].as_str() == saved.end.as_deref() || has_new_fields());
}

#[test]
fn a_killed_upgrade_leaves_the_old_file_or_the_new_one() {
    let (kills, seed) = (variable("MEDFEED_CASES").unwrap_or(15), variable("MEDFEED_SEED").unwrap_or(20_261_122));
    println!("MEDFEED_SEED={seed} MEDFEED_CASES={kills}");
    let mut random = Random::new(seed);
    for fixture in Fixture::older() {
        let (site, kept) = (&fixture.site, fixture.kept());
        let begun = Instant::now();
        fixture.upgrade();
        let usual = begun.elapsed();
        let (mut before, mut between, mut after) = (0, 0, 0);
        for kill in 1..=kills {
            fs::write(site.path("fresh"), &fixture.bytes).unwrap();
            fs::rename(site.path("fresh"), site.db()).unwrap();
            let _ = fs::remove_file(&kept);
            let mut command = site.command([OsStr::new("upgrade")]);
            let mut upgrade = Process::spawn(command.stdout(Stdio::null()).stderr(Stdio::null()));
            // The first one is killed at once, however long the others take on a busy machine.
            let wait = if kill == 1 { Duration::ZERO } else { random.part_of(usual.mul_f64(1.2)) };
            let status = upgrade.ended_within(wait);
            if status.is_none() {
                upgrade.signal(["KILL", "TERM", "INT"][random.below(3)]);
            }
            let status = upgrade.ended_within(SOON).expect("it ends");
            let what = format!("seed {seed}, kill {kill}: {status}");
            let mut files = site.files();
            // The note of who writes outlives a killed writer, as it does with other commands.
            files.retain(|name| !name.ends_with(".writer") && !name.contains(".usage-"));
            assert_eq!(files[0], "feed.redb", "{what}");
            if files.len() > 1 {
                assert_eq!(files, ["feed.redb", kept.file_name().unwrap().to_str().unwrap()], "{what}");
                assert!(fs::read(&kept).unwrap() == fixture.bytes, "{what}: the kept file");
            }
            let is_old = fs::read(site.db()).unwrap() == fixture.bytes;
            assert!(is_old || files.len() == 2, "{what}: a new file without the old one");
            assert!(!(is_old && status.success()), "{what}: it was told that it is done");
            match (is_old, files.len()) {
                (true, 1) => before += 1,
                (true, _) => between += 1,
                _ => after += 1,
            }
            // Another one goes on from there.
            assert_eq!(site.run(["upgrade"]).code, Some(0), "{what}");
            if kill % 5 == 0 {
                site.check();
                let server = site.serve_with(SERVE);
                answers(&fixture, &server);
                server.stop();
            }
        }
        println!("killed before anything was seen {before}, before the name was taken {between}, after it {after}");
        assert!(before > 0, "the kills came too late");
        counted(kills, "kills");
    }
}
