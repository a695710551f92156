//! Full disks, deleted files and damaged bytes while a server runs.

use std::fs::{self, File, OpenOptions, Permissions};
use std::io::{self, Write};
use std::os::unix::fs::{FileExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use memchr::memmem;
use serde_json::json;

use super::monitoring::{scrape, serve_watched};
use super::site::{SOON, STATUSES, Site, conferences_of_version, version_of, wait_for, wait_until};

/// A small disk of its own over a folder.
pub struct Disk(PathBuf);

impl Disk {
    /// Mounts a disk. `None`, with a message, if that is not permitted.
    pub fn mount(folder: &Path, bytes: u64) -> Option<Disk> {
        let size = format!("size={bytes}");
        let mut command = Command::new("mount");
        command
            .args(["-t", "tmpfs", "-o", &size, "medfeed-test"])
            .arg(folder)
            .stderr(Stdio::null());
        if !command.status().is_ok_and(|status| status.success()) {
            println!("skipped: no file system can be mounted here");
            return None;
        }
        Some(Disk(folder.to_owned()))
    }

    /// Fills the disk up to some free bytes.
    pub fn fill(&self, free: u64) {
        let filler = self.0.join("filler");
        let mut file = OpenOptions::new()
            .create(true)
            .append(true)
            .open(&filler)
            .unwrap();
        for piece in [1 << 20, 4096] {
            let piece = vec![1; piece];
            while file.write_all(&piece).is_ok() {}
        }
        let length = file.metadata().unwrap().len();
        file.set_len(length.saturating_sub(free)).unwrap();
    }

    /// Removes the file that fills the disk.
    pub fn free_all(&self) {
        fs::remove_file(self.0.join("filler")).unwrap();
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        // Lazily, because a server may still have open files there when a test fails.
        let _ = Command::new("umount").arg("-l").arg(&self.0).status();
    }
}

/// Conferences that need much room.
pub fn roomy_conferences(count: u64, version: u64) -> String {
    let lines = conferences_of_version(count, version);
    let name = "n".repeat(4000);
    lines.replace(
        "\"name\":\"Conference",
        &format!("\"name\":\"{name} Conference"),
    )
}

#[test]
fn a_removed_file_is_served_until_another_replaces_it() {
    let site = Site::new();
    site.import("conferences.jsonl", conferences_of_version(5, 7));
    let key = site.open_key();
    let server = site.serve();
    let away = site.path("away.redb");
    fs::rename(site.db(), &away).unwrap();
    server.wait_for_log("the database cannot be followed");
    let mut client = server.client(&key);
    assert_eq!(version_of(&client.get("/v1/conferences").items()), 7);
    assert_eq!(
        version_of(&client.get("/v1/exports/conferences").lines()),
        7
    );
    let status = client.get("/v1/status");
    let expected = (200, &json!("ok"));
    assert_eq!((status.status, &status.json()["status"]), expected);
    let done = site.run(["license", "list"]);
    done.assert_told(1, "there is no database");

    // The file is back.
    fs::rename(&away, site.db()).unwrap();
    site.import("conferences.jsonl", conferences_of_version(5, 8));
    wait_for("the server reads the file again", || {
        version_of(&client.get("/v1/conferences").items()) == 8
    });

    // An import without a file makes a new one, with other content and without this key.
    fs::rename(site.db(), &away).unwrap();
    site.import("conferences.jsonl", conferences_of_version(2, 9));
    wait_for("the server shows the new file", || {
        let status = client.get("/v1/status").json();
        status["datasets"]["conferences"]["records"] == 2
    });
    let refused = client.get("/v1/conferences");
    refused.assert_problem(401, "invalid_api_key");
    let new_key = site.open_key();
    wait_until("the new key", SOON, || {
        let answer = server.client(&new_key).get("/v1/conferences");
        (answer.status == 200).then(|| assert_eq!(version_of(&answer.items()), 9))
    });
    server.stop();
    site.check();
}

#[test]
fn an_unreadable_file_is_reported() {
    let site = Site::new();
    site.import("journals.jsonl", "{\"id\":1,\"name\":\"J\"}\n");
    fs::set_permissions(site.db(), Permissions::from_mode(0o000)).unwrap();
    if File::open(site.db()).is_ok() {
        println!("skipped: this user may read everything");
        return;
    }
    for command in [
        &["check"][..],
        &["license", "list"],
        &["serve", "--listen", "127.0.0.1:0"],
    ] {
        let done = site.ends(command);
        assert_eq!(done.code, Some(1), "{done:?}");
        let told = done.stderr.contains("feed.redb") && done.stderr.contains("ermission denied");
        assert!(told, "{command:?}: {done:?}");
    }
}

/// Flips a bit in every occurrence of a text in a file; returns their number.
pub fn rot(path: &Path, text: &str) -> io::Result<usize> {
    let content = fs::read(path)?;
    let file = OpenOptions::new().write(true).open(path)?;
    let offsets: Vec<usize> = memmem::find_iter(&content, text).collect();
    for offset in &offsets {
        let inside = offset + text.len() - 3;
        file.write_all_at(
            &[content[inside] ^ 0x01],
            u64::try_from(inside).expect("small"),
        )?;
    }
    Ok(offsets.len())
}

#[test]
fn a_damaged_row_fails_only_the_answers_that_need_it() {
    let site = Site::new();
    let lines = |ids: std::ops::RangeInclusive<u64>| -> String {
        let line = |id| {
            format!(
                "{{\"id\":{id},\"name\":\"C{id}\",\"venue\":\"the venue of {id} stands\",{STATUSES}}}\n"
            )
        };
        ids.map(line).collect()
    };
    site.import("conferences.jsonl", lines(1..=50));
    let key = site.open_key();
    let running = site.serve();
    let intact = running.client(&key).get("/v1/conferences/8");
    assert_eq!(intact.status, 200);

    assert!(
        rot(&site.db(), "\"venue\":\"the venue of 7 stands\"").unwrap() > 0,
        "the row is in the file"
    );
    // The running server may have the sound bytes in memory. It never sends a wrong record.
    let answer = running.client(&key).get("/v1/conferences/7");
    match answer.status {
        200 => assert_eq!(answer.json()["data"]["venue"], "the venue of 7 stands"),
        _ => assert_eq!(answer.problem(), "internal_error"),
    }
    let fresh = site.serve_with("--log info");
    let mut client = fresh.client(&key);
    for target in words!["/v1/conferences/7" "/v1/conferences" "/v1/exports/conferences"] {
        let answer = client.get(target);
        assert_eq!(answer.status, 500, "{target}");
        assert_eq!(answer.problem().as_str(), "internal_error", "{target}");
        let id = answer.header("x-request-id").unwrap().to_owned();
        wait_for("log lines", || {
            let logged = fresh.logged();
            let request = logged
                .lines()
                .any(|line| line.contains(&id) && line.contains("internal_error"));
            let reason = logged
                .lines()
                .any(|line| line.contains("ERROR") && line.contains("table `log`"));
            request && reason
        });
        let told = answer.json().to_string();
        assert!(!told.contains("venue") && !told.contains("redb"), "{told}");
    }
    for id in [1, 6, 8, 50] {
        let answer = client.get(&format!("/v1/conferences/{id}"));
        assert_eq!(answer.status, 200, "record {id}");
        let expected = format!("the venue of {id} stands");
        assert_eq!(answer.json()["data"]["venue"], expected);
    }
    assert_eq!(client.get("/v1/status").status, 200);

    // A commit to another dataset makes the running server read the file again.
    site.import("journals.jsonl", "{\"id\":1,\"name\":\"J\"}\n");
    for server in [&running, &fresh] {
        wait_for("the commit is served", || {
            server.client(&key).get("/v1/journals/1").status == 200
        });
        assert_eq!(server.client(&key).get("/v1/conferences/8").status, 200);
    }
    fresh.stop();
    running.stop();
    let done = site.run(["check"]);
    assert_eq!(done.code, Some(1), "{done:?}");
    done.assert_out("DAMAGED");
    done.assert_out("log");
}

#[test]
fn a_server_recovers_from_damage_at_which_the_engine_panics() {
    const HEADER: usize = 4096;
    let (site, key) = Site::open(300);
    let (server, mut admin) = serve_watched(&site, &[]);
    let mut client = server.client(&key);
    assert_eq!(version_of(&client.get("/v1/conferences").items()), 0);

    // The same file with one more commit, written over the served one: first with only its header intact.
    let newer = site.path("newer.redb");
    fs::copy(site.db(), &newer).unwrap();
    let input = site.write("conferences.jsonl", conferences_of_version(300, 1));
    site.json([
        "import".as_ref(),
        input.as_os_str(),
        "--db".as_ref(),
        newer.as_os_str(),
    ]);
    let newer = fs::read(newer).unwrap();
    let mut damaged = newer.clone();
    damaged[HEADER..].fill(0xff);
    // The header is written last: a poll between the two writes sees no new commit, and so no truncated file.
    let file = OpenOptions::new().write(true).open(site.db()).unwrap();
    file.write_all_at(&damaged[HEADER..], HEADER as u64)
        .unwrap();
    file.write_all_at(&damaged[..HEADER], 0).unwrap();

    server.wait_for_log("the database cannot be followed");
    server.wait_for_log("the engine stopped");
    assert_eq!(admin.get("/readyz").status, 503);
    assert_eq!(admin.get("/livez").status, 200);
    assert_eq!(scrape(&mut admin)["medfeed_database_followed"], 0.0);
    assert_eq!(client.get("/v1/status").status, 503, "it cannot be read");
    assert_eq!(client.get("/docs").status, 200);

    file.write_all_at(&newer, 0).unwrap();
    wait_for("the server reads the file again", || {
        let answer = client.get("/v1/conferences?year=2025");
        answer.status == 200 && version_of(&answer.items()) == 1
    });
    wait_for("readiness", || admin.get("/readyz").status == 200);
    server.stop();
    site.check();
}
