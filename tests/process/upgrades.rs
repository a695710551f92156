//! Upgrades: a database of an older release, whose records lack a field, becomes one of the present version in one
//! step.
//!
//! `MEDFEED_CASES` sets the number of kills, `MEDFEED_SEED` when they come.

use std::ffi::OsStr;
use std::fs::{self, File, Permissions};
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use medfeed::store::restore::SCHEMA;
use serde_json::{Value, json};

use super::added_fields::{FIELD, OlderFile, has_field};
use super::faults::{Disk, rot};
use super::foreign_files::{are_refused, open};
use super::site::{Process, Random, SOON, Server, Site, cases_and_seed, conferences_of_version};
use crate::harness::counted;

/// Checks that an upgrade is refused for a reason, on stdout or stderr, and changes nothing.
fn is_refused(older: &OlderFile, args: &[&str], expected: &[&str]) {
    let files = older.site.files();
    let done = older.site.ends([&["upgrade"], args].concat());
    assert_eq!(done.code, Some(1), "{args:?}: {done:?}");
    let told = format!("{}{}", done.stdout, done.stderr);
    for expected in expected {
        assert!(
            told.contains(expected),
            "{args:?}: no {expected:?} in {told}"
        );
    }
    older.is_untouched(&format!("{args:?}"));
    assert_eq!(older.site.files(), files, "{args:?}");
}

#[test]
fn an_upgrade_keeps_the_old_file_and_reports_it() {
    let older = OlderFile::new();
    let site = &older.site;
    fs::set_permissions(site.db(), Permissions::from_mode(0o640)).unwrap();
    let inode = fs::metadata(site.db()).unwrap().ino();
    let done = older.upgrade();
    let kept = format!("feed.redb.format-{SCHEMA}");
    for expected in [FIELD, "tokens", &kept] {
        assert!(
            done.stdout.contains(expected),
            "no {expected:?} in {done:?}"
        );
    }
    assert_eq!(site.files(), ["feed.redb", kept.as_str()]);
    let old = fs::metadata(older.kept()).unwrap();
    assert!(
        old.ino() == inode && old.nlink() == 1,
        "it is the same file, under another name"
    );
    assert!(
        fs::read(older.kept()).unwrap() == older.bytes,
        "byte for byte"
    );
    assert_eq!(
        fs::metadata(site.db()).unwrap().mode() & 0o777,
        0o640,
        "the new file has the mode of the old one"
    );
    assert!(has_field(&site.db()));
    site.check();

    // A second upgrade has nothing to do.
    let upgraded = fs::read(site.db()).unwrap();
    for args in [
        &["upgrade"][..],
        &["upgrade", "--if-needed"],
        &["upgrade", "--dry-run"],
        &["upgrade", "--json"],
    ] {
        let done = site.run(args);
        assert_eq!(done.code, Some(0), "{args:?}: {done:?}");
        assert!(
            fs::read(site.db()).unwrap() == upgraded,
            "{args:?}: the file changed"
        );
    }
    let stdout = site.run(["upgrade"]).stdout;
    assert!(stdout.contains(&format!("has format {SCHEMA}")));
    assert_eq!(site.files(), ["feed.redb", kept.as_str()]);
}

#[test]
fn a_dry_run_reports_the_changes_of_the_upgrade() {
    let older = OlderFile::new();
    let site = &older.site;
    fs::set_permissions(site.db(), Permissions::from_mode(0o400)).unwrap();
    fs::set_permissions(site.folder(), Permissions::from_mode(0o500)).unwrap();
    let done = site.run(["upgrade", "--dry-run"]);
    fs::set_permissions(site.folder(), Permissions::from_mode(0o700)).unwrap();
    assert_eq!(done.code, Some(0), "{done:?}");
    for expected in [FIELD, "tokens", "keys"] {
        assert!(
            done.stdout.contains(expected),
            "no {expected:?} in {done:?}"
        );
    }
    assert_eq!(
        site.json(["upgrade", "--dry-run"])["fields"],
        json!([FIELD])
    );
    older.is_untouched("dry run");
    assert_eq!(site.files(), ["feed.redb"]);
    fs::set_permissions(site.db(), Permissions::from_mode(0o600)).unwrap();
    let told = site.json(["upgrade"]);
    let expected = json!({
        "upgraded": true, "from": SCHEMA, "to": SCHEMA, "records": {"conferences": 30, "journals": 1}, "fields": [FIELD],
        "kept": older.kept(), "bytes": older.bytes.len(), "bytes_after": fs::metadata(site.db()).unwrap().len(),
    });
    assert_eq!(told, expected);
}

#[test]
fn a_damaged_file_is_not_upgraded() {
    let mut older = OlderFile::new();
    assert!(rot(&older.site.db(), "Conference 7").unwrap() > 0);
    older.bytes = fs::read(older.site.db()).unwrap();
    is_refused(&older, &[], &["is damaged: table `"]);
}

#[test]
fn an_upgrade_without_a_file_succeeds_only_with_if_needed() {
    let site = Site::new();
    for args in [&["upgrade"][..], &["upgrade", "--dry-run"]] {
        let done = site.run(args);
        assert_eq!(done.code, Some(1), "{args:?}: {done:?}");
        assert_eq!(done.stdout.as_str(), "", "{args:?}: {done:?}");
        assert!(
            done.stderr.contains("there is no database at"),
            "{args:?}: {done:?}"
        );
    }
    let done = site.run(["upgrade", "--if-needed"]);
    assert_eq!(done.code, Some(0));
    assert_eq!(done.stdout.as_str(), "");
    assert_eq!(done.stderr.as_str(), "");
    let stdout = site.run(["upgrade", "--if-needed", "--json"]).stdout;
    assert_eq!(stdout, "{\"upgraded\":false}\n");
    assert_eq!(site.files(), [""; 0]);
    let older = OlderFile::new();
    assert_eq!(older.site.run(["upgrade", "--if-needed"]).code, Some(0));
    assert!(has_field(&older.site.db()), "it is needed");
}

#[test]
fn other_commands_refuse_an_older_file() {
    let site = OlderFile::new().site;
    let bucket = format!("file://{}", site.path("bucket").display());
    fs::create_dir(site.path("bucket")).unwrap();
    let commands = [
        "serve --listen 127.0.0.1:0",
        "serve --listen 127.0.0.1:0 --create",
        "import conferences.jsonl",
        "import conferences.jsonl --dry-run",
        "lint",
        "license set x --dataset journals",
        "license remove all --yes",
        "license list",
        "license show all",
        "license explain all conferences 1",
        "key create --license all",
        "key revoke x",
        "key replace x",
        "key list",
        "check",
        "backup out",
        "compact",
        "log",
        "show conferences 1",
        "export out",
        &format!("publish {bucket} --once"),
        &format!("promote {bucket} --yes"),
    ];
    let expected = ["feed.redb", "medfeed upgrade", FIELD];
    are_refused(&commands, &site, "an older file", &expected);
}

#[test]
fn a_backup_of_an_older_release_is_restored() {
    let older = OlderFile::new();
    let backup = older.site.db();
    let database = |name: &str| {
        let site = Site::new();
        match name {
            "older" => fs::write(site.db(), &older.bytes).unwrap(),
            "present" => drop(site.import("conferences.jsonl", conferences_of_version(3, 0))),
            _ => {}
        }
        site
    };
    for replaced in ["none", "present", "older"] {
        let site = database(replaced);
        let told = site.json(["restore".as_ref(), backup.as_os_str(), "--yes".as_ref()]);
        assert_eq!(told["restored"], true, "{replaced}: {told}");
        older.is_untouched(replaced);
        assert!(has_field(&site.db()), "{replaced}");
        site.check();
        let server = site.serve();
        answers(&older, &server);
        server.stop();
    }
    // The other way: a backup replaces a database of the older release.
    let source = Site::new();
    source.import("conferences.jsonl", conferences_of_version(5, 7));
    let backup = source.backup("backup.redb");
    let site = database("older");
    site.json(["restore".as_ref(), backup.as_os_str(), "--yes".as_ref()]);
    assert_eq!(site.conferences_in(&site.db()).len(), 5);
    site.check();
}

#[test]
fn an_upgrade_keeps_a_file_in_its_way() {
    let older = OlderFile::new();
    let (site, kept) = (&older.site, older.kept());
    let dear = site.write("dear", "to somebody");
    let obstacles: [&dyn Fn(); 5] = [
        &|| fs::write(&kept, "to somebody").unwrap(),
        &|| fs::write(&kept, &older.bytes).unwrap(),
        &|| symlink(&dear, &kept).unwrap(),
        &|| symlink("nowhere", &kept).unwrap(),
        &|| fs::create_dir(&kept).unwrap(),
    ];
    for make in obstacles {
        make();
        let before = fs::read(&kept).ok();
        // The old file gets another name.
        let told = site.json(["upgrade"]);
        let other = PathBuf::from(format!("{}-2", kept.display()));
        assert_eq!(told["kept"], other.display().to_string());
        assert!(fs::read(&other).unwrap() == older.bytes);
        assert_eq!(fs::read(&kept).ok(), before);
        fs::rename(&other, site.db()).unwrap();
        if fs::remove_file(&kept).is_err() {
            fs::remove_dir(&kept).unwrap();
        }
    }
    // A second name of the same file is no other file. It is left from an upgrade that was killed just before its end.
    fs::hard_link(site.db(), &kept).unwrap();
    older.upgrade();
    assert!(fs::read(&kept).unwrap() == older.bytes && has_field(&site.db()));
}

#[test]
fn an_upgrade_follows_links() {
    let older = OlderFile::new();
    let site = Site::new();
    symlink(older.site.db(), site.db()).unwrap();
    assert_eq!(site.run(["upgrade"]).code, Some(0));
    assert!(site.db().is_symlink(), "{:?}", site.files());
    assert!(site.files() == ["feed.redb"], "{:?}", site.files());
    assert!(
        fs::read(older.kept()).unwrap() == older.bytes,
        "it is kept beside the real file"
    );
    assert!(has_field(&older.site.db()));
    site.check();
}

#[test]
fn an_upgrade_waits_for_a_writer() {
    let older = OlderFile::new();
    let site = &older.site;
    let writer = open(&site.db());
    for args in [&["--wait", "0s"][..], &["--wait", "100ms", "--json"]] {
        let done = site.ends([&["upgrade"], args].concat());
        assert_eq!(done.code, Some(1), "{done:?}");
        let text = format!("{}{}", done.stdout, done.stderr);
        assert!(text.contains("--wait"), "{done:?}");
        assert_eq!(site.files(), ["feed.redb"]);
    }
    let mut waiting = Process::spawn(
        site.command(["upgrade", "--wait", "30s"])
            .stdout(Stdio::null()),
    );
    let found = waiting.ended_within(Duration::from_millis(500));
    assert_eq!(found, None, "it waits");
    drop(writer);
    assert_eq!(
        waiting
            .ended_within(SOON)
            .expect("the upgrade continues")
            .code(),
        Some(0)
    );
    assert!(has_field(&site.db()));
    site.check();
}

#[test]
fn two_upgrades_at_once_are_one() {
    let older = OlderFile::new();
    let site = &older.site;
    let mut both = [0, 1].map(|_| Process::spawn(site.command(["upgrade"]).stdout(Stdio::null())));
    for upgrade in &mut both {
        assert_eq!(upgrade.ended_within(SOON).expect("it ends").code(), Some(0));
    }
    assert!(fs::read(older.kept()).unwrap() == older.bytes);
    let files = site.files();
    assert_eq!(files, ["feed.redb", &format!("feed.redb.format-{SCHEMA}")]);
    site.check();
}

#[test]
fn an_upgrade_without_permission_changes_nothing() {
    let older = OlderFile::new();
    fs::set_permissions(older.site.folder(), Permissions::from_mode(0o500)).unwrap();
    let is_free = File::create(older.site.path("try")).is_ok();
    if !is_free {
        is_refused(&older, &[], &["feed.redb", "ermission denied"]);
    }
    fs::set_permissions(older.site.folder(), Permissions::from_mode(0o700)).unwrap();
    if !is_free {
        return;
    }
    // Root may write everywhere except on a read-only mount.
    fs::remove_file(older.site.path("try")).unwrap();
    let Some(_disk) = Disk::mount(older.site.folder(), 48 << 20) else {
        return;
    };
    fs::write(older.site.db(), &older.bytes).unwrap();
    let remount = |how: &str| {
        let done = Command::new("mount")
            .args(["-o", &format!("remount,{how}")])
            .arg(older.site.folder())
            .status();
        assert!(done.unwrap().success());
    };
    remount("ro");
    is_refused(&older, &[], &["feed.redb"]);
    let code = older.site.run(["upgrade", "--dry-run"]).code;
    assert_eq!(code, Some(0), "a dry run writes nothing");
    remount("rw");
    older.upgrade();
    older.site.check();
}

#[test]
fn an_upgrade_on_a_full_disk_changes_nothing() {
    let older = OlderFile::new();
    let Some(disk) = Disk::mount(older.site.folder(), 48 << 20) else {
        return;
    };
    fs::write(older.site.db(), &older.bytes).unwrap();
    for free in [0, 4 << 10, 64 << 10, 128 << 10] {
        disk.fill(free);
        is_refused(&older, &[], &["no room left on the disk"]);
    }
    disk.free_all();
    older.upgrade();
    older.site.check();
}

/// Checks that a server shows all conferences, with the new field.
fn answers(older: &OlderFile, server: &Server) {
    let records = server
        .client(&older.key)
        .get("/v1/exports/conferences")
        .lines();
    assert_eq!(records.len(), 30);
    assert!(
        records.iter().all(|record| record["venue"] == Value::Null),
        "{records:?}"
    );
}

/// The beginning of a draft's name.
const DRAFT: &str = ".medfeed-draft-";

#[test]
fn a_killed_upgrade_leaves_the_old_file_or_the_new_one() {
    let (kills, seed) = cases_and_seed(15, 20_261_122);
    let mut random = Random::new(seed);
    let older = OlderFile::new();
    let (site, kept) = (&older.site, older.kept());
    let begun = Instant::now();
    older.upgrade();
    let usual = begun.elapsed();
    let (mut before, mut between, mut after) = (0, 0, 0);
    for kill in 1..=kills {
        fs::write(site.path("fresh"), &older.bytes).unwrap();
        fs::rename(site.path("fresh"), site.db()).unwrap();
        let _ = fs::remove_file(&kept);
        let mut command = site.command([OsStr::new("upgrade")]);
        let mut upgrade = Process::spawn(command.stdout(Stdio::null()).stderr(Stdio::null()));
        // The first one is killed at once, however long the others take on a busy machine.
        let wait = if kill == 1 {
            Duration::ZERO
        } else {
            random.part_of(usual.mul_f64(1.2))
        };
        let status = upgrade.ended_within(wait);
        if status.is_none() {
            upgrade.signal(["KILL", "TERM", "INT"][random.below(3)]);
        }
        let status = upgrade.ended_within(SOON).expect("it ends");
        let what = format!("seed {seed}, kill {kill}: {status}");
        let mut files = site.files();
        // The note of the writer remains after a killed writer, as with other commands.
        files.retain(|name| !name.ends_with(".writer") && !name.contains(".usage-"));
        // A draft has a name only while it takes the place of the file. The next command removes it.
        files.retain(|name| !name.starts_with(DRAFT));
        assert_eq!(files[0], "feed.redb", "{what}");
        if files.len() > 1 {
            let expected = ["feed.redb", kept.file_name().unwrap().to_str().unwrap()];
            assert_eq!(files, expected, "{what}");
            assert!(
                fs::read(&kept).unwrap() == older.bytes,
                "{what}: the kept file"
            );
        }
        let is_old = fs::read(site.db()).unwrap() == older.bytes;
        assert!(
            is_old || files.len() == 2,
            "{what}: a new file without the old one"
        );
        assert!(
            !(is_old && status.success()),
            "{what}: it exited with 0, but the file is the old one"
        );
        match (is_old, files.len()) {
            (true, 1) => before += 1,
            (true, _) => between += 1,
            _ => after += 1,
        }
        // Another upgrade continues from there.
        assert_eq!(site.run(["upgrade"]).code, Some(0), "{what}");
        let drafts = site.files();
        assert!(
            !drafts.iter().any(|name| name.starts_with(DRAFT)),
            "{what}: {drafts:?}"
        );
        if kill % 5 == 0 {
            site.check();
            let server = site.serve();
            answers(&older, &server);
            server.stop();
        }
    }
    println!(
        "killed before anything was seen {before}, before the name was taken {between}, after it {after}"
    );
    assert!(before > 0, "the kills came too late");
    counted(kills, "kills");
}
