//! Commands of a user who does not own the database, but may write to it and to its folder.

use std::fs::{self, Permissions};
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Command;

use super::added_fields::OlderFile;
use super::site::{Done, Site, conferences_of_version};

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

/// Whether tests can run commands as `nobody`. Says so if not.
pub fn can_be_nobody(test: &str) -> bool {
    let site = Site::new();
    let can = rustix::process::geteuid().is_root() && {
        share(site.folder());
        as_nobody(&mut site.command(["--version"])).output().is_ok_and(|tried| tried.status.success())
    };
    if !can {
        eprintln!("{test} is left out: only root can run commands as another user");
    }
    can
}

/// A database that `nobody` may write to, and a backup of it.
fn shared_site() -> Site {
    let site = Site::new();
    site.import("conferences.jsonl", conferences_of_version(30, 0));
    site.license("all", "--dataset conferences");
    share(&site.backup("backup.redb"));
    share(&site.db());
    share(site.folder());
    site
}

#[test]
fn a_publisher_that_does_not_own_the_file_writes_its_note() {
    use super::published::{Place, note};
    if !can_be_nobody("a_publisher_that_does_not_own_the_file_writes_its_note") {
        return;
    }
    let site = shared_site();
    let place = Place::folder(&site);
    // A user who does not own the files may replace them too, because the folder is writable for them.
    for slot in 1..3 {
        site.key("all", &["--publish-wait", "0s"]);
        let done = Done::of(as_nobody(&mut place.command(&site, "--once")));
        assert_eq!(done.code, Some(0), "{done:?}");
        assert!(!done.stderr.contains("cannot be written"), "{done:?}");
        let found = fs::metadata(site.path("feed.redb.published")).unwrap();
        assert_eq!((found.uid(), found.gid(), found.mode() & 0o777), (NOBODY, NOBODY, 0o660));
        assert_eq!(note(&site).slot, slot);
    }
}

#[test]
fn only_its_owner_replaces_a_database() {
    if !can_be_nobody("only_its_owner_replaces_a_database") {
        return;
    }
    let site = shared_site();
    let done = Done::of(as_nobody(&mut site.command(["key", "create", "--license", "all"])));
    assert_eq!(done.code, Some(0), "others may write to it: {done:?}");
    let older = OlderFile::new().site;
    share(&older.db());
    share(older.folder());
    // The restore does not ask first.
    for (site, command) in [(&site, &["compact"][..]), (&site, &["restore", "backup.redb"]), (&older, &["upgrade"])] {
        let before = (fs::read(site.db()).unwrap(), site.files());
        let done = Done::of(as_nobody(&mut site.command(command)));
        assert_eq!(done.code, Some(1), "{command:?}: {done:?}");
        assert!(done.stderr.contains("only its owner or root can replace it"), "{command:?}: {done:?}");
        assert!((fs::read(site.db()).unwrap(), site.files()) == before, "{command:?}: a file changed");
    }
}

/// Nobody can sync a folder that they cannot read. A command fails before it gives a file its name, not after.
#[test]
fn a_folder_that_cannot_be_read_gets_no_file() {
    if !can_be_nobody("a_folder_that_cannot_be_read_gets_no_file") {
        return;
    }
    let site = shared_site();
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
        assert!(done.code == Some(1) && done.stderr.contains("Permission denied"), "{command:?}: {done:?}");
        assert_eq!(fs::read_dir(&drop).unwrap().count(), 1, "{command:?}: a file is new");
        assert_eq!(inode(), before, "{command:?}: the file was replaced");
    }
}
