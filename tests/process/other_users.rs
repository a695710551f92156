//! Commands of a user that does not own the database: one who may write to it and to its folder, or one who may only
//! read it.

use std::fs::{self, Permissions};
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use super::added_fields::OlderFile;
use super::site::{Done, Process, Site, conferences_of_version, wait_for};

/// The user and the group `nobody`.
const NOBODY: u32 = 65_534;

/// Runs a command as the user `nobody`.
pub fn as_nobody(command: &mut Command) -> &mut Command {
    command.uid(NOBODY).gid(NOBODY)
}

/// Lets the group of `nobody` write to a file or folder.
pub fn share(path: &Path) {
    chown(path, None, Some(NOBODY)).unwrap();
    let mode = fs::metadata(path).unwrap().mode();
    fs::set_permissions(path, Permissions::from_mode(mode | (mode & 0o700) >> 3)).unwrap();
}

/// Whether tests can run commands as `nobody`. Prints a message if not.
pub fn can_be_nobody() -> bool {
    let site = Site::new();
    let can = rustix::process::geteuid().is_root() && {
        share(site.folder());
        as_nobody(&mut site.command(["--version"]))
            .output()
            .is_ok_and(|tried| tried.status.success())
    };
    if !can {
        eprintln!("left out: only root can run commands as another user");
    }
    can
}

/// A database that `nobody` may write to, and a backup of it. `None` if tests cannot run commands as `nobody`.
fn shared_site() -> Option<Site> {
    let site = can_be_nobody().then(|| Site::with(30))?;
    site.license("all", "--dataset conferences");
    share(&site.backup("backup.redb"));
    share(&site.db());
    share(site.folder());
    Some(site)
}

#[test]
fn a_publisher_that_does_not_own_the_file_writes_its_note() {
    use super::published::{Place, note};
    let Some(site) = shared_site() else { return };
    let place = Place::folder(&site);
    // A user who does not own the files may also replace them, because the folder is writable for them.
    for slot in 1..3 {
        site.key("all", &["--publish-wait", "0s"]);
        let done = Done::of(as_nobody(&mut place.command(&site, "--once")));
        assert_eq!(done.code, Some(0), "{done:?}");
        assert!(!done.stderr.contains("cannot be written"), "{done:?}");
        let found = fs::metadata(site.path("feed.redb.published")).unwrap();
        let expected = (NOBODY, NOBODY, 0o660);
        assert_eq!((found.uid(), found.gid(), found.mode() & 0o777), expected);
        assert_eq!(note(&site).slot, slot);
    }
}

#[test]
fn only_its_owner_replaces_a_database() {
    let Some(site) = shared_site() else { return };
    let done = Done::of(as_nobody(
        &mut site.command("key create --license all".split(' ')),
    ));
    assert_eq!(done.code, Some(0), "others may write to it: {done:?}");
    let older = OlderFile::new().site;
    share(&older.db());
    share(older.folder());
    // The restore does not ask first.
    for (site, command) in [
        (&site, &["compact"][..]),
        (&site, &["restore", "backup.redb"]),
        (&older, &["upgrade"]),
    ] {
        let before = (fs::read(site.db()).unwrap(), site.files());
        let done = Done::of(as_nobody(&mut site.command(command)));
        done.assert_told(1, "run the command as its owner");
        assert!(
            (fs::read(site.db()).unwrap(), site.files()) == before,
            "{command:?}: a file changed"
        );
    }
}

/// A user cannot sync a folder that they cannot read. A command fails before it gives a file its name, not after.
#[test]
fn a_folder_that_cannot_be_read_gets_no_file() {
    let Some(site) = shared_site() else { return };
    let drop = site.path("drop");
    fs::create_dir(&drop).unwrap();
    fs::copy(site.path("backup.redb"), drop.join("older.redb")).unwrap();
    chown(drop.join("older.redb"), Some(NOBODY), Some(NOBODY)).unwrap();
    fs::set_permissions(&drop, Permissions::from_mode(0o733)).unwrap();
    let inode = || fs::metadata(drop.join("older.redb")).unwrap().ino();
    let before = inode();
    let cases = [
        &["backup", "drop/new.redb"][..],
        &["backup", "drop/older.redb"],
        &["restore", "backup.redb", "--yes", "--db", "drop/new.redb"],
    ];
    for command in cases {
        let done = Done::of(as_nobody(&mut site.command(command)));
        done.assert_told(1, "Permission denied");
        let count = fs::read_dir(&drop).unwrap().count();
        assert_eq!(count, 1, "{command:?}: a file is new");
        assert_eq!(inode(), before, "{command:?}: the file was replaced");
    }
}

/// Checks a file as `nobody`, without the right to write to it. Returns the plain and the JSON output.
fn check_as_nobody(site: &Site, file: &str) -> (Done, Done) {
    let check = |more: &[&str]| {
        Done::of(as_nobody(
            &mut site.command([&["check", "--db", file], more].concat()),
        ))
    };
    (check(&[]), check(&["--json"]))
}

#[test]
fn a_file_is_checked_without_the_right_to_write() {
    let Some(site) = shared_site() else { return };
    let backup = site.path("backup.redb");
    fs::set_permissions(&backup, Permissions::from_mode(0o444)).unwrap();
    // The folder is not writable for them either.
    fs::set_permissions(site.folder(), Permissions::from_mode(0o755)).unwrap();
    let before = (fs::read(&backup).unwrap(), site.files());
    let told = "every row was checked, but not redb's checksums of the pages: they need the right to write to the file";
    let (plain, json) = check_as_nobody(&site, "backup.redb");
    plain.assert_shown(0, "is sound: 30 conferences");
    plain.assert_out(&format!("\nwarning: {told}"));
    assert!(
        json.code == Some(0) && json.json()["ok"] == true && json.json()["warnings"][0] == told,
        "{json:?}"
    );
    assert!(
        (fs::read(&backup).unwrap(), site.files()) == before,
        "nothing changed"
    );
    // With the right to write, everything is compared.
    let whole = site.run(["check", "--db", "backup.redb"]);
    assert!(whole.code == Some(0), "{whole:?}");
    assert!(!whole.stdout.contains("warning"), "{whole:?}");

    // Each row is read: a changed name is found.
    let mut damaged = before.0;
    let name = b"Conference 7";
    let places: Vec<usize> = memchr::memmem::find_iter(&damaged, name).collect();
    places.iter().for_each(|at| damaged[*at] ^= 1);
    assert!(!places.is_empty());
    fs::set_permissions(site.folder(), Permissions::from_mode(0o755)).unwrap();
    fs::write(site.path("damaged.redb"), damaged).unwrap();
    fs::set_permissions(site.path("damaged.redb"), Permissions::from_mode(0o444)).unwrap();
    let (plain, json) = check_as_nobody(&site, "damaged.redb");
    plain.assert_shown(1, "is DAMAGED");
    assert!(json.code == Some(1), "{json:?}");
    assert!(json.json()["ok"] == false, "{json:?}");

    // A file that cannot be read is not sound.
    fs::set_permissions(&backup, Permissions::from_mode(0o600)).unwrap();
    let (plain, json) = check_as_nobody(&site, "backup.redb");
    plain.assert_told(1, "Permission denied");
    assert!(json.code == Some(1), "{json:?}");
    assert!(json.json()["error"].is_string(), "{json:?}");
}

#[test]
fn a_dry_run_takes_no_lock_and_needs_no_right_to_write() {
    let Some(site) = shared_site() else { return };
    let file = site.write("more/conferences.jsonl", conferences_of_version(33, 0));
    fs::set_permissions(site.db(), Permissions::from_mode(0o444)).unwrap();
    fs::set_permissions(site.folder(), Permissions::from_mode(0o755)).unwrap();
    let _writer = medfeed::store::Writer::open(&site.db(), Duration::ZERO).unwrap();
    let before = (fs::read(site.db()).unwrap(), site.files());
    let run = |args: &[&str]| {
        let dry = ["--dry-run", "--json", "--wait", "0s"];
        let done = Done::of(as_nobody(&mut site.command([args, &dry].concat())));
        assert_eq!(done.code, Some(0), "{args:?}: {done:?}");
        done.json()
    };
    let told = run(&["import", file.to_str().unwrap()]);
    assert_eq!(told["committed"], false, "{told}");
    assert_eq!(told["datasets"]["conferences"]["added"], 3, "{told}");
    assert_eq!(told["licenses"][0]["entering"], 3, "{told}");
    let told = run(&["license", "set", "all", "--dataset", "journals", "--widen"]);
    assert_eq!(told["committed"], false, "{told}");
    assert_eq!(told["effects"][0]["leaving"], 30, "{told}");
    assert!(
        (fs::read(site.db()).unwrap(), site.files()) == before,
        "nothing changed"
    );
}

/// Runs a command after a script, with mounts of its own. `None` if nothing can be mounted.
fn in_own_mounts(site: &Site, script: &str, args: &[&str]) -> Option<Done> {
    let unshare = |script: &str, args: &[&str]| {
        let mut command = site.command_of("unshare");
        command
            .args([
                "--mount",
                "--",
                "/bin/sh",
                "-c",
                &format!("{script} && exec \"$@\""),
                "sh",
            ])
            .args(args);
        command
    };
    let tried = unshare("mount -t tmpfs none /mnt", &["true"]).output();
    if !tried.is_ok_and(|tried| tried.status.success()) {
        eprintln!("{args:?} is left out: nothing can be mounted here");
        return None;
    }
    Some(Done::of(&mut unshare(
        script,
        &[&[env!("CARGO_BIN_EXE_medfeed")], args].concat(),
    )))
}

#[test]
fn a_file_on_a_read_only_mount_is_checked() {
    let Some(site) = shared_site() else { return };
    let folder = site.folder().display();
    let read_only = format!("mount --bind {folder} {folder} && mount -o remount,ro,bind {folder}");
    let backup = site.path("backup.redb");
    let args = ["check", "--db", backup.to_str().unwrap()];
    let Some(done) = in_own_mounts(&site, &read_only, &args) else {
        return;
    };
    assert!(done.code == Some(0), "{done:?}");
    assert!(done.stdout.contains("is sound"), "{done:?}");
    assert!(done.stdout.contains("redb's checksums"), "{done:?}");
}

#[test]
fn a_file_that_is_mounted_by_itself_keeps_its_name() {
    let Some(site) = shared_site() else { return };
    let before = (site.json(["log"]), fs::metadata(site.db()).unwrap().ino());
    for command in [&["compact"][..], &["restore", "backup.redb", "--yes"]] {
        let script = format!("mount --bind {0} {0}", site.db().display());
        let Some(done) = in_own_mounts(&site, &script, command) else {
            return;
        };
        assert_eq!(done.code, Some(1), "{command:?}: {done:?}");
        assert!(done.stderr.contains("it is mounted by itself"), "{done:?}");
        assert!(done.stderr.contains("mount the folder"), "{done:?}");
        let found = (site.json(["log"]), fs::metadata(site.db()).unwrap().ino());
        assert_eq!(found, before, "{command:?}");
    }
}

#[test]
fn a_user_without_write_permission_learns_who_can_repair_after_a_kill() {
    if !can_be_nobody() {
        return;
    }
    let site = Site::new();
    fs::set_permissions(site.folder(), Permissions::from_mode(0o755)).unwrap();
    site.import("conferences.jsonl", conferences_of_version(1500, 0));
    let key = site.open_key();
    fs::set_permissions(site.db(), Permissions::from_mode(0o640)).unwrap();
    chown(site.db(), None, Some(NOBODY)).unwrap();
    let reads = |args: &[&str]| as_nobody(&mut site.command(args)).output().unwrap();
    assert!(reads(&["license", "list"]).status.success(), "it may read");

    // A server of a user who may only read keeps running while an import is killed and until the file is repaired.
    let mut serving = site.serve_command("");
    as_nobody(&mut serving);
    let server = site.start(serving);
    let file = site.write("conferences.jsonl", conferences_of_version(1500, 1));
    let mut import = Process::spawn(site.command(["import"]).arg(&file).stdout(Stdio::null()));
    wait_for("the import writes", || {
        site.path("feed.redb.writer").exists()
    });
    assert_eq!(import.ended_within(Duration::ZERO), None);
    import.kill();
    assert_eq!(server.client(&key).get("/v1/conferences/1").status, 200);

    for args in [
        &["license", "list"][..],
        &["key", "list"],
        &["serve", "--listen", "127.0.0.1:0"],
        &["backup", "/dev/null"],
    ] {
        let done = reads(args);
        assert_eq!(done.status.code(), Some(1), "{args:?}: {done:?}");
        let told = String::from_utf8_lossy(&done.stderr);
        let expected = [
            "feed.redb was left by a killed command",
            "by a user who may write to it",
            "`medfeed check`",
        ];
        for expected in expected {
            assert!(
                told.contains(expected),
                "{args:?}: no {expected:?} in {told}"
            );
        }
    }
    site.check();
    assert!(
        reads(&["license", "list"]).status.success(),
        "as the message advised"
    );
    server.stop();
}
