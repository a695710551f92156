//! Users who may read the database but not write to it.

use std::fs;
use std::os::unix::fs::{PermissionsExt, chown};
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};
use std::time::Duration;

use super::site::{Process, SOON, Site, conferences_of_version, wait_until};

/// A user and group without rights, `nobody` on most systems.
const NOBODY: u32 = 65_534;

/// A command as another user.
pub fn as_nobody(mut command: Command) -> Command {
    command.uid(NOBODY).gid(NOBODY);
    command
}

#[test]
fn a_user_without_write_permission_learns_who_can_repair_after_a_kill() {
    let site = Site::new();
    // Only root can run as another user, and other users may not be able to reach the program.
    let mut version = as_nobody(site.command(["--version"]));
    if !version.current_dir("/").output().is_ok_and(|done| done.status.success()) {
        eprintln!("skipped: the program cannot be run as another user here");
        return;
    }
    fs::set_permissions(site.folder(), PermissionsExt::from_mode(0o755)).unwrap();
    site.import("conferences.jsonl", conferences_of_version(1500, 0));
    let key = site.open_key();
    fs::set_permissions(site.db(), PermissionsExt::from_mode(0o640)).unwrap();
    chown(site.db(), None, Some(NOBODY)).unwrap();
    let reads = |args: &[&str]| as_nobody(site.command(args)).output().unwrap();
    assert!(reads(&["license", "list"]).status.success(), "it may read");

    // A server of a user who may only read keeps running while an import is killed and until the file is repaired.
    let server = site.start(as_nobody(site.serve_command("")));
    let file = site.write("conferences.jsonl", conferences_of_version(1500, 1));
    let mut import = Process::spawn(site.command(["import"]).arg(&file).stdout(Stdio::null()));
    wait_until("the import writes", SOON, || site.path("feed.redb.writer").exists().then_some(()));
    assert_eq!(import.ended_within(Duration::ZERO), None);
    import.kill();
    assert_eq!(server.client(&key).get("/v1/conferences/1").status, 200);

    for args in
        [&["license", "list"][..], &["key", "list"], &["serve", "--listen", "127.0.0.1:0"], &["backup", "/dev/null"]]
    {
        let done = reads(args);
        assert_eq!(done.status.code(), Some(1), "{args:?}: {done:?}");
        let told = String::from_utf8_lossy(&done.stderr);
        let expected = ["feed.redb was left by a killed command", "by a user who may write to it", "`medfeed check`"];
        for expected in expected {
            assert!(told.contains(expected), "{args:?}: no {expected:?} in {told}");
        }
    }
    site.check();
    assert!(reads(&["license", "list"]).status.success(), "as the message advised");
    server.stop();
}
