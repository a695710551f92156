//! The shell script in `examples/shell`, run as users run it: with the machine's own `sh`, `curl` and `jq`.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use serde_json::Value;

use super::client::Client;
use super::examples::{Copy, Follower::Shell, answering, export};
use super::scripted::Reply;
use super::site::{Process, Random, SOON, Site, cases_and_seed, conferences_of_version, wait_for};
use crate::harness::counted;

/// The records of a file, which is whole at every moment.
fn records(file: &Path) -> Vec<Value> {
    let text = fs::read_to_string(file).unwrap_or_default();
    assert!(
        text.is_empty() || text.ends_with('\n'),
        "a file that ends within a line"
    );
    text.lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect()
}

/// Updates the copy until it equals the license's view.
fn settle(copy: &Copy<'_>, client: &mut Client) {
    wait_for("the copy is what the license shows", || {
        copy.update();
        records(&copy.file) == client.get("/v1/exports/conferences").lines()
    });
}

#[test]
fn a_file_follows_the_feed() {
    if !Shell.is_installed() {
        return;
    }
    let (site, key) = Site::open(1300);
    let server = site.serve();
    let copy = Shell.copy(&site, &server.url(), &key);
    let mut client = server.client(&key);
    let backup = site.backup("backup.redb");
    let told = |what: &str| wait_for(what, || copy.update().contains(what));
    assert_eq!(copy.update(), "1300 records loaded");
    assert_eq!(copy.update(), "");

    // A waiting script gets edits at once. They take two pages.
    let mut waiting = Process::spawn(copy.command("conferences", &["45"]).stdout(Stdio::piped()));
    site.import(
        "conferences.jsonl",
        conferences_of_version(1250, 1) + "{\"id\":1300,\"deleted\":true}\n",
    );
    assert!(
        waiting
            .ended_within(SOON)
            .expect("it ends with the news")
            .success()
    );
    settle(&copy, &mut client);
    assert_eq!(records(&copy.file).len(), 1299);

    // A change of the license brings the difference. After the loss of a history, everything is loaded again.
    site.license("all", "--dataset conferences --year 2026");
    told("changes applied");
    settle(&copy, &mut client);
    site.json(["restore".as_ref(), backup.as_os_str(), "--yes".as_ref()]);
    told("records loaded");
    settle(&copy, &mut client);

    // Only working folders of killed runs are removed.
    for (name, stays) in [("copy.backup", true), ("copy.follow-work.ABCdef", false)] {
        let folder = site
            .write(&format!("{name}/file"), "mine")
            .parent()
            .unwrap()
            .to_owned();
        let two_days_ago =
            fs::metadata(&folder).unwrap().modified().unwrap() - Duration::from_hours(48);
        fs::File::open(&folder)
            .unwrap()
            .set_modified(two_days_ago)
            .unwrap();
        copy.update();
        assert_eq!(folder.exists(), stays, "{name}");
    }
    fs::remove_dir_all(site.path("copy.backup")).unwrap();

    // A file that somebody has changed is no copy.
    fs::write(&copy.file, "{}\n").unwrap();
    told("records loaded");
    settle(&copy, &mut client);
    let left = site.files().into_iter();
    let left: Vec<String> = left.filter(|name| name.starts_with("copy")).collect();
    assert_eq!(left, ["copy", "copy.tokens"]);
}

#[test]
fn retry_after_with_a_time_pauses_until_then() {
    if !Shell.is_installed() {
        return;
    }
    let later = medfeed::model::time::now().plus_s(3).to_string();
    let (day, clock) = later.trim_end_matches('Z').split_once('T').unwrap();
    let day: jiff::civil::Date = day.parse().unwrap();
    let until = format!("{} {clock} GMT", day.strftime("%a, %d %b %Y"));
    let busy = Reply::new(503, "").with("retry-after", &until);
    let service = answering(vec![busy, export(), Reply::page("", false, "t")]);
    let begun = std::time::Instant::now();
    assert_eq!(
        Shell.copy(&Site::new(), &service.url(), "mfk_x").update(),
        "1 records loaded"
    );
    // Without the time, the first pause is one second.
    assert!(
        begun.elapsed() > Duration::from_millis(1500),
        "{:?}",
        begun.elapsed()
    );
}

/// A program named `mv` that kills its calling shell before it does anything, at its n-th call.
const MV: &str = r#"#!/bin/sh
calls=$(($(cat "$CALLS" 2>"$CALLS.none" || echo 0) + 1))
echo $calls >"$CALLS"
[ $calls = "$KILLED_AT" ] && kill -KILL $PPID && exit 1
PATH=$REAL_PATH exec mv "$@"
"#;

#[test]
fn a_script_killed_between_renames_continues_where_it_stopped() {
    if !Shell.is_installed() {
        return;
    }
    let (site, key) = Site::open(1300);
    let server = site.serve();
    let copy = Shell.copy(&site, &server.url(), &key);
    assert_eq!(copy.update(), "1300 records loaded");
    let mv = site.write("programs/mv", MV);
    fs::set_permissions(&mv, fs::Permissions::from_mode(0o755)).unwrap();
    let real_path = std::env::var("PATH").unwrap();
    let path = format!("{}:{real_path}", mv.parent().unwrap().display());
    let mut client = server.client(&key);
    // Two pages, each with a rename of the tokens and one of the records. A third page would be left for the next run.
    for (killed_at, whole_pages) in [(1, 0), (2, 0), (3, 1)] {
        let before = records(&copy.file);
        let page = client.get("/v1/conferences/changes").json();
        let token = page["next_sync_token"].as_str().unwrap().to_owned();
        site.import("conferences.jsonl", conferences_of_version(1200, killed_at));
        wait_for("the edits are served", || {
            let page = client
                .get(&format!("/v1/conferences/changes?since={token}&limit=1000"))
                .json();
            page["has_more"] == true
        });
        let calls = site.path(&format!("calls-{killed_at}"));
        let mut command = copy.command("conferences", &[]);
        command
            .env("PATH", &path)
            .env("REAL_PATH", &real_path)
            .env("CALLS", &calls);
        let status = command
            .env("KILLED_AT", killed_at.to_string())
            .stdout(Stdio::null())
            .status()
            .unwrap();
        assert_eq!(status.code(), None, "it was killed: {status}");
        let changed = records(&copy.file)
            .iter()
            .zip(&before)
            .filter(|(now, before)| now != before)
            .count();
        assert_eq!(changed, 1000 * whole_pages, "killed at {killed_at}");
        let rest = if whole_pages == 0 {
            "1000 changes applied\n200 changes applied"
        } else {
            "200 changes applied"
        };
        assert_eq!(copy.update(), rest, "killed at {killed_at}");
        let expected = client.get("/v1/exports/conferences").lines();
        assert_eq!(records(&copy.file), expected, "killed at {killed_at}");
    }
}

/// Stops the editor, also when the test fails.
struct End<'a>(&'a AtomicBool);

impl Drop for End<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// `MEDFEED_CASES` sets how often it is killed, `MEDFEED_SEED` when.
#[test]
fn a_killed_script_loses_nothing() {
    let (rounds, seed) = cases_and_seed(8, 20_261_122);
    let mut random = Random::new(seed);
    if !Shell.is_installed() {
        return;
    }
    let (site, key) = Site::open(1300);
    let server = site.serve();
    let copy = Shell.copy(&site, &server.url(), &key);
    let is_over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let _end = End(&is_over);
        scope.spawn(|| {
            // Each version edits other records than the last ones, so that a lost edit stays lost.
            for version in 1.. {
                let rows = conferences_of_version(1250, version);
                let mut edited: Vec<&str> = rows
                    .lines()
                    .skip(usize::try_from(version).unwrap() * 30 % 1200)
                    .take(30)
                    .collect();
                let removed = format!("{{\"id\":{},\"deleted\":true}}", 1300 - version % 40);
                edited.push(&removed);
                site.import("conferences.jsonl", edited.join("\n"));
                if is_over.load(Ordering::Relaxed) {
                    break;
                }
                std::thread::sleep(Duration::from_millis(20));
            }
        });
        for _ in 0..rounds {
            let mut script = Process::spawn(
                copy.command("conferences", &[])
                    .stdout(Stdio::null())
                    .process_group(0),
            );
            std::thread::sleep(random.part_of(Duration::from_millis(400)));
            if random.below(2) == 0 {
                // With all processes that it has started. Otherwise they would continue without it.
                let group = format!("-{}", script.id());
                Command::new("kill")
                    .args(["-KILL", "--", &group])
                    .stderr(Stdio::null())
                    .status()
                    .unwrap();
            }
            script.kill();
            records(&copy.file);
        }
    });
    settle(&copy, &mut server.client(&key));
    counted(rounds, "kills");
}
