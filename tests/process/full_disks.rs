//! Disks that fill up at any byte: each command that writes is refused with advice or does everything, and the file is
//! sound.
//!
//! `MEDFEED_CASES` sets the number of full disks, `MEDFEED_SEED` how much is left on each.

use medfeed::store::Reader;

use super::faults::{Disk, roomy_conferences};
use super::site::{Done, Random, Site, cases_and_seed, conferences_of_version, version_of};
use crate::harness::counted;

/// The commands that write: their arguments, with the folder's files.
const COMMANDS: [&[&str]; 7] = [
    &["import", "conferences.jsonl", "--create"],
    &["key", "create", "--license", "all"],
    &words!["license" "set" "all" "--yes" "--dataset" "conferences" "--year" "2026"],
    &["compact"],
    &["backup", "full.redb"],
    &["export", "out"],
    &["restore", "kept.redb", "--yes"],
];

/// Commands that only read.
const READING: [&[&str]; 4] = [
    &["license", "list"],
    &["key", "list"],
    &["log"],
    &["show", "conferences", "3"],
];

#[test]
fn commands_on_a_full_disk_finish_or_refuse() {
    let (cases, seed) = cases_and_seed(14, 20_261_123);
    let mut random = Random::new(seed);
    let site = Site::new();
    let Some(disk) = Disk::mount(site.folder(), 24 << 20) else {
        return;
    };
    site.import("conferences.jsonl", conferences_of_version(300, 0));
    let key = site.open_key();
    site.backup("kept.redb");
    let server = site.serve();
    let mut client = server.client(&key);
    let head = || Reader::open(&site.db()).unwrap().newest().commit().head();
    let (mut refused, mut done) = (0, 0);
    for case in 0..cases {
        let args = COMMANDS[usize::try_from(case).unwrap() % COMMANDS.len()];
        site.write("conferences.jsonl", conferences_of_version(300, case + 1));
        for name in ["full.redb", "out"] {
            let _ = std::fs::remove_file(site.path(name));
            let _ = std::fs::remove_dir_all(site.path(name));
        }
        // From no bytes up to enough for the command. Small sizes are as frequent as large ones.
        let free = random.next() % (1 << (10 + random.below(13)));
        let what = format!("MEDFEED_SEED={seed}, case {case}: {args:?} with {free} bytes free");
        let before = (head(), site.files());
        disk.fill(free);
        let ended = site.ends([args, &["--json"]].concat());
        match ended.code {
            Some(0) => done += 1,
            Some(1) => {
                let told = ended.json()["error"]
                    .as_str()
                    .unwrap_or_default()
                    .to_owned();
                let advice = ["no room left on the disk", "free some room on the disk"];
                assert!(
                    advice.iter().any(|advice| told.contains(advice)),
                    "{what}: {ended:?}"
                );
                refused += 1;
            }
            _ => panic!("{what}: {ended:?}"),
        }
        // Reading continues meanwhile, although nothing can be repaired on a full disk.
        for args in READING {
            let read = site.ends(args);
            assert_eq!(read.code, Some(0), "{what}, then {args:?}: {read:?}");
        }
        // All records are of one version.
        let export = client.get("/v1/exports/conferences");
        assert_eq!(export.status, 200, "{what}");
        version_of(&export.lines());
        disk.free_all();
        site.check();
        if ended.code == Some(1) {
            assert_eq!(head(), before.0, "{what}: nothing was changed");
            let left = site.files().into_iter();
            let left: Vec<String> = left.filter(|name| name.contains("draft")).collect();
            assert!(
                left.is_empty(),
                "{what}: {left:?} is left, {:?} was there",
                before.1
            );
        }
    }
    a_second_server_starts_on_a_full_disk(&site, &disk, &key);
    server.stop();
    counted(cases, "full disks");
    println!("{refused} commands refused, {done} done");
    assert!(refused > 0, "no disk was too small");
}

#[test]
fn an_import_beyond_the_limit_of_file_sizes_is_refused() {
    let site = Site::with(40);
    site.license("all", "--dataset conferences");
    site.write("conferences.jsonl", roomy_conferences(3_000, 1));
    let command = site.command(["import", "conferences.jsonl", "--json"]);
    let script = "trap '' XFSZ; ulimit -f 8192; exec \"$@\"";
    let refused = Done::of(&mut site.in_shell(script, &command));
    refused.assert_error("or for this user (quota, ulimit -f)");
    for args in READING {
        let read = site.ends(args);
        assert_eq!(read.code, Some(0), "{args:?}: {read:?}");
    }
    site.check();
}

/// An import fills the disk. Then no repair finds room, and another server starts with the last commit.
fn a_second_server_starts_on_a_full_disk(site: &Site, disk: &Disk, key: &str) {
    site.import("conferences.jsonl", conferences_of_version(300, 0));
    site.write("conferences.jsonl", conferences_of_version(300, 1));
    for free in (1..=20).map(|step| step * (16 << 10)) {
        disk.fill(free);
        let refused = site.ends(["import", "conferences.jsonl"]);
        if refused.code == Some(0) {
            disk.free_all();
            return;
        }
        disk.free_all();
        disk.fill(0);
        let second = site.serve();
        let export = second.client(key).get("/v1/exports/conferences");
        assert_eq!(version_of(&export.lines()), 0, "{free} bytes free");
        second.stop();
        disk.free_all();
    }
}
