//! Databases behind symbolic links: commands replace the file that the link points to, and never make a second
//! database.

use std::fs;
use std::os::unix::fs::{MetadataExt, symlink};
use std::path::Path;
use std::time::Duration;

use medfeed::store::Writer;
use medfeed::store::replication::PublishedNote;

use super::monitoring::start_watched;
use super::published::Place;
use super::replicas::readyz;
use super::site::{Site, conferences_of_version, version_of, wait_for};

/// A site whose database's path is a link into a folder of its own.
fn linked() -> Site {
    let site = Site::new();
    fs::create_dir(site.path("real")).unwrap();
    symlink("real/feed.redb", site.path("one link")).unwrap();
    symlink("one link", site.db()).unwrap();
    site
}

fn is_link(path: &Path) -> bool {
    fs::symlink_metadata(path).unwrap().is_symlink()
}

fn names(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).unwrap();
    let mut names: Vec<String> = entries
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    names
}

#[test]
fn replacing_a_linked_file_keeps_the_link() {
    let site = linked();
    let (real, folder) = (site.path("real/feed.redb"), site.path("real"));
    site.import("conferences.jsonl", conferences_of_version(50, 0));
    assert_eq!(
        names(&folder),
        ["feed.redb"],
        "the first import makes the file at the end of the link"
    );
    let key = site.open_key();
    let backup = site.backup("backup.redb");
    let servers = [
        site.serve(),
        site.start(site.serve_command(&format!("--db {}", real.display()))),
    ];
    let commands = [
        &["compact"][..],
        &["restore", "backup.redb", "--yes"],
        &["compact"],
    ];
    for (version, command) in (1..).zip(commands) {
        let before = fs::metadata(&real).unwrap().ino();
        site.json(command);
        assert!(
            is_link(&site.db()) && is_link(&site.path("one link")),
            "{command:?}: the link was replaced"
        );
        let found = fs::metadata(&real).unwrap().ino();
        assert_ne!(found, before, "{command:?}: the file was not replaced");
        let expected = fs::metadata(&real).unwrap().ino();
        assert_eq!(fs::metadata(site.db()).unwrap().ino(), expected);
        // An import by one path is visible by the other, also at servers.
        site.import("conferences.jsonl", conferences_of_version(50, version));
        let found = version_of(&site.conferences_in(&real));
        assert_eq!(found, version, "{command:?}");
        for server in &servers {
            wait_for("the server shows the file", || {
                let seen = server.client(&key).get("/v1/conferences/1").json();
                version_of([&seen["data"]]) == version
            });
        }
    }
    for server in servers {
        server.stop();
    }

    let listed = site.json(["key", "list"]);
    assert!(
        listed["keys"][0]["usage"]["last_used_at"].is_string(),
        "{listed}"
    );
    let beside = names(&folder);
    assert!(
        beside
            .iter()
            .filter(|name| name.starts_with("feed.redb.usage-"))
            .count()
            > 0,
        "{beside:?}"
    );
    assert!(
        site.files().iter().all(|name| !name.contains("usage")),
        "{:?}",
        site.files()
    );

    let writer = Writer::open(&site.db(), Duration::ZERO).unwrap();
    assert!(
        folder.join("feed.redb.writer").exists(),
        "the writer's note is next to the file"
    );
    let done = site.run(["compact", "--wait", "0s"]);
    done.assert_err(&format!("process {}", std::process::id()));
    drop(writer);

    symlink(&backup, site.path("latest backup")).unwrap();
    let before = fs::metadata(&backup).unwrap().ino();
    site.json(["backup", "latest backup"]);
    assert!(is_link(&site.path("latest backup")));
    let found = fs::metadata(&backup).unwrap().ino();
    assert_ne!(found, before, "the older backup is replaced");
    site.check();
}

#[test]
fn a_dangling_link_is_an_error_until_an_import_fills_it() {
    let site = linked();
    for command in [
        &["check"][..],
        &["license", "list"],
        &["compact"],
        &["serve", "--listen", "127.0.0.1:0"],
    ] {
        let done = site.ends(command);
        assert_eq!(done.code, Some(1), "{command:?}: {done:?}");
        let told = format!("{}{}", done.stdout, done.stderr);
        assert!(
            told.contains("there is no database at") && told.contains("real/feed.redb"),
            "{command:?}: {told}"
        );
    }
    fs::remove_file(site.path("one link")).unwrap();
    symlink("missing folder/feed.redb", site.path("one link")).unwrap();
    let rows = site.write("conferences.jsonl", conferences_of_version(5, 0));
    let done = site.run(["import".as_ref(), rows.as_os_str(), "--create".as_ref()]);
    assert!(done.code == Some(1), "{done:?}");
    assert!(done.stderr.contains("there is no folder "), "{done:?}");
    assert!(done.stderr.contains("mkdir -p"), "{done:?}");
    fs::create_dir(site.path("missing folder")).unwrap();
    site.json(["import".as_ref(), rows.as_os_str(), "--create".as_ref()]);
    assert!(is_link(&site.db()) && site.path("missing folder/feed.redb").is_file());
    site.check();
}

#[test]
fn a_file_with_two_names_is_not_replaced() {
    let site = Site::with(5);
    site.backup("backup.redb");
    fs::hard_link(site.db(), site.path("second name")).unwrap();
    let (files, inode) = (site.files(), fs::metadata(site.db()).unwrap().ino());
    for command in [&["compact"][..], &["restore", "backup.redb", "--yes"]] {
        let done = site.run(command);
        assert_eq!(done.code, Some(1), "{command:?}: {done:?}");
        assert!(
            done.stderr
                .contains("feed.redb cannot be used: it has 2 names (hard links)"),
            "{command:?}: {done:?}"
        );
        assert_eq!(site.files(), files.clone(), "{command:?}");
        assert_eq!(fs::metadata(site.db()).unwrap().ino(), inode, "{command:?}");
    }
    // A write in place is visible by both names.
    site.import("conferences.jsonl", conferences_of_version(5, 1));
    assert_eq!(
        version_of(&site.conferences_in(&site.path("second name"))),
        1
    );
    fs::remove_file(site.path("second name")).unwrap();
    site.json(["compact"]);
    site.check();
}

#[test]
fn a_link_with_a_new_target_uses_the_notes_of_the_new_file() {
    let (site, key) = Site::open(5);
    let place = Place::folder(&site);
    place.once(&site);
    let files = ["feed.redb", "feed.redb.published"];
    for folder in ["old", "new"] {
        fs::create_dir(site.path(folder)).unwrap();
    }
    for name in files {
        fs::copy(site.path(name), site.path("old").join(name)).unwrap();
    }
    site.import("conferences.jsonl", conferences_of_version(5, 1));
    place.once(&site);
    for name in files {
        fs::rename(site.path(name), site.path("new").join(name)).unwrap();
    }
    let point = |folder: &str| {
        symlink(format!("{folder}/feed.redb"), site.path("link")).unwrap();
        fs::rename(site.path("link"), site.db()).unwrap();
    };
    point("old");
    let command = site.serve_command("--admin-listen 127.0.0.1:0 --log info");
    let (server, mut admin) = start_watched(&site, command);
    let mut client = server.client(&key);
    let mut shows =
        |version: u64| version_of([&client.get("/v1/conferences/1").json()["data"]]) == version;
    assert!(shows(0));
    for (folder, version) in [("new", 1), ("old", 0)] {
        point(folder);
        wait_for("the server shows the file", || shows(version));
    }
    point("new");
    wait_for("the server shows the file", || shows(1));
    // The use of keys is recorded next to the new file.
    wait_for("the use is noted", || {
        names(&site.path("new"))
            .iter()
            .any(|name| name.starts_with("feed.redb.usage-"))
    });
    // The server notices a takeover in the note there.
    let note = PublishedNote::read(&site.db()).unwrap().unwrap();
    PublishedNote {
        fenced: Some("host b".to_owned()),
        ..note
    }
    .write(&site.db())
    .unwrap();
    wait_for("it is reported", || {
        readyz(&mut admin)
            .1
            .contains("will answer 503 soon: host b")
    });
    server.stop();
}
