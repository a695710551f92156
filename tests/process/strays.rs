//! Killed commands leave files next to the database. The next writer removes them.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use super::site::{Process, Random, Site, conferences_of_version};

const SEED: u64 = 20_270_314;

/// The files that no command owns.
fn strays(site: &Site) -> Vec<String> {
    let known =
        words!["backup.redb" "conferences.jsonl" "feed.redb" "fresh.redb" "other.redb" "out"];
    site.files()
        .into_iter()
        .filter(|name| !known.contains(&name.as_str()))
        .collect()
}

/// Kills commands of each kind that writes whole files, at seeded moments of their usual time, and then runs the next
/// writer. `prepared` runs a command in a test's own environment.
fn killed_commands_leave_nothing(rounds: u32, prepared: impl Fn(&Site, Command) -> Command) {
    let site = Site::new();
    let file = site.write("conferences.jsonl", conferences_of_version(600, 0));
    let file = file.to_str().unwrap();
    site.json(["import", file, "--create"]);
    site.backup("backup.redb");
    let commands = [
        &["import", file, "--create", "--db", "fresh.redb"][..],
        &["backup", "other.redb"],
        &["restore", "backup.redb", "--yes"],
        &["compact"],
        &["export", "out"],
    ];
    let mut random = Random::new(SEED);
    for command in commands {
        let begun = Instant::now();
        let done = prepared(&site, site.command(command)).output().unwrap();
        assert!(done.status.success(), "{command:?}: {done:?}");
        let mut usual = begun.elapsed();
        let mut killed = 0;
        for _ in 0..rounds {
            let _ = fs::remove_file(site.path("fresh.redb"));
            let mut process = Process::spawn(
                prepared(&site, site.command(command))
                    .stdout(Stdio::null())
                    .stderr(Stdio::null()),
            );
            let spawned = Instant::now();
            match process.ended_within(random.part_of(usual)) {
                None => killed += 1,
                // The machine is faster by now.
                Some(_) => usual = usual.min(spawned.elapsed()),
            }
            process.kill();
            for name in strays(&site)
                .iter()
                .filter(|name| name.starts_with(".medfeed-"))
            {
                let mode =
                    fs::metadata(site.path(name)).map_or(0o600, |found| found.permissions().mode());
                assert_eq!(mode & 0o777, 0o600, "seed {SEED}, {command:?}: {name}");
            }
        }
        assert!(
            killed > 0,
            "seed {SEED}, {command:?}: the kills came too late"
        );
        // The next writer of the same database as the killed ones.
        if site.path("fresh.redb").exists() {
            fs::remove_file(site.path("fresh.redb")).unwrap();
        }
        site.run(["import", file, "--create", "--db", "fresh.redb"]);
        site.check();
        let expected = Vec::<String>::new();
        assert_eq!(strays(&site), expected, "seed {SEED}, {command:?}");
        let inside = fs::read_dir(site.path("out")).map_or(0, |entries| {
            entries
                .filter(|entry| {
                    entry
                        .as_ref()
                        .unwrap()
                        .file_name()
                        .to_string_lossy()
                        .starts_with('.')
                })
                .count()
        });
        assert!(
            inside == 0 || command[0] == "export",
            "seed {SEED}, {command:?}"
        );
    }
    site.json(["export", "out"]);
    let exported = fs::read_dir(site.path("out")).unwrap().count();
    assert_eq!(
        exported, 4,
        "an export removes the drafts that killed ones left in its folder"
    );
}

#[test]
fn killed_commands_leave_no_file() {
    killed_commands_leave_nothing(8, |_, command| command);
}

/// Without `/proc`, as in a bare container, a process cannot give its open files a name later. Then drafts have names.
#[test]
fn killed_commands_leave_no_file_without_proc() {
    let hide = "mount -t tmpfs none /proc && exec \"$@\"";
    let tried = Command::new("unshare")
        .args(["--mount", "sh", "-c", hide, "sh", "true"])
        .output();
    if !tried.is_ok_and(|tried| tried.status.success()) {
        eprintln!("skipped: only root, with `unshare` there, can take /proc away");
        return;
    }
    killed_commands_leave_nothing(5, |site, command| {
        // The killed process is the command itself, because each program is replaced by the next.
        site.in_shell(
            &format!("exec unshare --mount sh -c '{hide}' sh \"$@\""),
            &command,
        )
    });
}

/// The draft of a running backup is not removed, however many writers run meanwhile.
#[test]
fn drafts_in_use_are_not_removed() {
    let site = Site::with(600);
    site.license("all", "--dataset conferences");
    let spawn = |args: &[&str]| Process::spawn(site.command(args).stdout(Stdio::null()));
    let mut backups = [
        spawn(&["backup", "one.redb"]),
        spawn(&["backup", "two.redb"]),
    ];
    for round in 0..6 {
        site.json([
            "license",
            "set",
            "all",
            "--dataset",
            "conferences",
            "--rate-limit",
            &(1000 + round).to_string(),
        ]);
    }
    for backup in &mut backups {
        let ended = backup
            .ended_within(Duration::from_secs(60))
            .expect("the backup ends");
        assert!(ended.success(), "{ended}");
    }
    for name in ["one.redb", "two.redb"] {
        site.check_file(&site.path(name));
    }
}
