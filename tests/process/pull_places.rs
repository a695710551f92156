//! The locations of copies of `medfeed pull`: the accepted paths, the readers of the files, and objects of others at
//! the same path.

use std::collections::BTreeSet;
use std::fs::{self, Permissions};
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::Path;

use rustix::fs::{CWD, FileType, Mode, mknodat};

use super::other_users::{as_nobody, can_be_nobody, share};
use super::pulled::Pulled;
use super::site::{Done, Process, SOON, wait_until};

fn pull_to(pulled: &Pulled, to: &str, args: &str) -> Done {
    // With this umask, everybody could read new files. It must not decide who reads a copy.
    let mut inner = pulled.site.command([
        "pull",
        &pulled.url(),
        "--dataset",
        "conferences",
        "--to",
        to,
    ]);
    inner
        .args(args.split_whitespace())
        .env("MEDFEED_KEY", &pulled.key);
    Done::of(&mut pulled.site.in_shell("umask 000; exec \"$@\"", &inner))
}

fn mode(path: &Path) -> u32 {
    fs::metadata(path)
        .unwrap_or_else(|error| panic!("{}: {error}", path.display()))
        .mode()
        & 0o777
}

#[test]
fn only_known_forms_of_a_location_are_accepted() {
    let pulled = Pulled::with(20);
    for to in ["a.sqlite", "b.sqlite3", "c.DB"] {
        let done = pull_to(&pulled, to, "");
        let expected = "conferences: 20 records loaded\n";
        assert_eq!(done.stdout, expected, "{to}: {done:?}");
    }
    // An existing copy with another name is continued. A file of another program stays untouched.
    fs::rename(pulled.site.path("a.sqlite"), pulled.site.path("old.copy")).unwrap();
    let expected = "conferences: nothing new, 20 records\n";
    assert_eq!(pull_to(&pulled, "old.copy", "").stdout, expected);
    pulled.site.write("mine.csv", "id\n1\n");
    assert_eq!(pull_to(&pulled, "mine.csv", "").code, Some(2));
    assert_eq!(
        fs::read_to_string(pulled.site.path("mine.csv")).unwrap(),
        "id\n1\n"
    );
    let done = pull_to(&pulled, "postgres://me:secret@host/x", "");
    assert!(done.code == Some(2), "{done:?}");
    assert!(done.stderr.contains("PGPASSWORD"), "{done:?}");
    assert!(!done.stderr.contains("secret"), "{done:?}");
}

#[test]
fn a_name_that_sqlite_takes_for_an_address_is_a_file_name() {
    let pulled = Pulled::with(20);
    let files = || {
        let names = fs::read_dir(pulled.site.folder()).unwrap();
        let names = names.map(|entry| entry.unwrap().file_name().into_string().unwrap());
        // The server writes beside its database.
        let names = names.filter(|name| !name.starts_with("feed.redb"));
        names.collect::<BTreeSet<String>>()
    };
    for to in words![
        "file:d.db?mode=memory&x=.db" "file:e.sqlite" "file:%66.sqlite" "file:g.db#h.db"
        "file::memory:?cache=shared&x=.sqlite" "file:i.sqlite?mode=ro&immutable=1.sqlite" ":memory:.db"
        "FILE:j.sqlite" "k?mode=memory.sqlite3"
    ] {
        let before = files();
        let done = pull_to(&pulled, to, "");
        assert_eq!(
            done.stdout, "conferences: 20 records loaded\n",
            "{to}: {done:?}"
        );
        assert_eq!(mode(&pulled.site.path(to)), 0o600, "{to}");
        let held = super::pulled::read(&pulled.site.path(to), "conferences").unwrap();
        assert_eq!(held.map(|content| content.records), Some(20), "{to}");
        let made = files();
        let made: Vec<&String> = made.difference(&before).collect();
        assert!(
            made.iter().all(|name| name.starts_with(to)),
            "{to}: {made:?}"
        );
        let again = pull_to(&pulled, to, "").stdout;
        assert_eq!(again, "conferences: nothing new, 20 records\n", "{to}");
    }
    // An existing copy may have any name.
    for (from, to) in [
        ("file:e.sqlite", ":memory:"),
        (":memory:.db", "file:l?vfs=none"),
    ] {
        fs::rename(pulled.site.path(from), pulled.site.path(to)).unwrap();
        let done = pull_to(&pulled, to, "--verify").stdout;
        let expected = "conferences: nothing new, 20 records; equal to the service's\n";
        assert_eq!(done, expected, "{to}");
    }
}

#[test]
fn only_the_owner_can_read_a_new_copy() {
    let pulled = Pulled::with(20);
    let at = |name: &str| pulled.site.path(name);
    let mut inner = pulled.site.command([
        "pull",
        &pulled.url(),
        "--to",
        "copy.sqlite",
        "--follow",
        "--every",
        "10ms",
    ]);
    inner.env("MEDFEED_KEY", &pulled.key);
    let mut command = pulled.site.in_shell("umask 000; exec \"$@\"", &inner);
    let mut follower = Process::spawn(command.stdout(std::process::Stdio::null()));
    wait_until("followed", SOON, || {
        super::pulled::read(&at("copy.sqlite"), "journals")
            .ok()
            .flatten()
    });
    let files = words!["copy.sqlite" "copy.sqlite-wal" "copy.sqlite-shm" "copy.sqlite.lock"];
    assert_eq!(files.map(|name| mode(&at(name))), [0o600; 4]);
    follower.kill();
    let all = words!["conferences.jsonl" "conferences.csv" "medfeed-copy.json" "medfeed-copy.lock"];
    let modes = || all.map(|name| mode(&at("a/b").join(name)));
    assert_eq!(pull_to(&pulled, "a/b/", "").code, Some(0));
    let expected = (0o700, 0o700, [0o600; 4]);
    assert_eq!((mode(&at("a")), mode(&at("a/b")), modes()), expected);
    // A file keeps the mode that its owner sets.
    for (name, mode) in [
        ("a/b", 0o750),
        ("a/b/conferences.jsonl", 0o640),
        ("copy.sqlite", 0o640),
    ] {
        fs::set_permissions(at(name), Permissions::from_mode(mode)).unwrap();
    }
    for to in ["a/b/", "copy.sqlite"] {
        assert_eq!(pull_to(&pulled, to, "--reload").code, Some(0), "{to}");
    }
    let expected = (0o750, [0o640, 0o600, 0o600, 0o600]);
    assert_eq!((mode(&at("a/b")), modes()), expected);
    assert_eq!(mode(&at("copy.sqlite")), 0o640);
}

#[test]
fn a_copy_that_the_user_cannot_read_is_no_foreign_file() {
    if !can_be_nobody() {
        return;
    }
    let pulled = Pulled::with(20);
    pulled.pull("");
    share(pulled.site.folder());
    let done = Done::of(as_nobody(&mut pulled.command(&pulled.url(), "")));
    let expected = "copy.sqlite: Permission denied; ";
    done.assert_told(4, expected);
}

#[test]
fn links_and_pipes_of_others_are_neither_followed_nor_waited_for() {
    let pulled = Pulled::with(20);
    let at = |name: &str| pulled.site.path(name);
    assert_eq!(pull_to(&pulled, "copy/", "").code, Some(0));
    pulled.site.write("victim", "mine");
    for name in words!["conferences.jsonl.new" "conferences.csv.new" "medfeed-copy.json.new"] {
        symlink(at("victim"), at("copy").join(name)).unwrap();
    }
    let done = pull_to(&pulled, "copy/", "--reload");
    assert_eq!(done.stdout, "conferences: 20 records loaded\n", "{done:?}");
    assert_eq!(fs::read_to_string(at("victim")).unwrap(), "mine");
    assert!(
        !fs::symlink_metadata(at("copy/conferences.jsonl"))
            .unwrap()
            .is_symlink()
    );

    let pipe =
        |path: &Path| mknodat(CWD, path, FileType::Fifo, Mode::from_raw_mode(0o600), 0).unwrap();
    let cases = [
        ("copy/", "copy/conferences.csv"),
        ("folder/", "folder/medfeed-copy.lock"),
        ("copy/", "copy/medfeed-copy.json"),
        ("x.sqlite", "x.sqlite.lock"),
        ("y.sqlite", "y.sqlite"),
    ];
    for (to, file) in cases {
        if file.starts_with("folder") {
            fs::create_dir(at("folder")).unwrap();
        }
        let _ = fs::remove_file(at(file));
        match file.ends_with(".csv") {
            true => symlink("/dev/zero", at(file)).unwrap(),
            false => pipe(&at(file)),
        }
        let mut command = pulled.site.command(["pull", &pulled.url(), "--to", to]);
        let mut pull = Process::spawn(
            command
                .env("MEDFEED_KEY", &pulled.key)
                .stderr(std::process::Stdio::null()),
        );
        let status = pull
            .ended_within(SOON)
            .unwrap_or_else(|| panic!("{file}: it waits"));
        assert!(matches!(status.code(), Some(1 | 4)), "{file}: {status}");
    }
    symlink(at("elsewhere"), at("z.sqlite.lock")).unwrap();
    let done = pull_to(&pulled, "z.sqlite", "");
    done.assert_told(4, "something else than a file");
    assert!(!at("elsewhere").exists());
}
