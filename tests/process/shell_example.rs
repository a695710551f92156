//! The shell script in `examples/shell`, run as users run it: with the machine's own `sh`, `curl` and `jq`.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use serde_json::Value;

use super::client::Client;
use super::examples::{REDIRECTS, TwoHosts, answering, export_of, recording};
use super::site::{Done, Process, Random, SOON, Site, cases_and_seed, conferences_of_version, wait_until};
use crate::harness::counted;

const SCRIPT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/examples/shell/follow.sh");

/// An empty site; `None`, with a message, if the script cannot run.
fn site_with_tools() -> Option<Site> {
    let has = |program: &str| Command::new(program).arg("--version").output().is_ok_and(|done| done.status.success());
    if !has("curl") || !has("jq") {
        eprintln!("curl or jq is not installed: examples/shell/follow.sh is not tried");
        return None;
    }
    Some(Site::new())
}

/// The bytes of a response: a status with further headers, and a body.
fn answer(head: &str, body: &str) -> Vec<u8> {
    format!("HTTP/1.1 {head}\r\nConnection: close\r\nContent-Length: {}\r\n\r\n{body}", body.len()).into_bytes()
}

/// A copy of the conferences of a service.
struct Copy<'a> {
    site: &'a Site,
    url: String,
    key: String,
    file: PathBuf,
}

impl Copy<'_> {
    fn new(site: &Site, url: String, key: String) -> Copy<'_> {
        Copy { site, url, key, file: site.path("copy.jsonl") }
    }

    fn command(&self, wait: &str) -> Command {
        self.command_for("conferences", wait)
    }

    fn command_for(&self, dataset: &str, wait: &str) -> Command {
        let mut command = self.site.command_of("sh");
        command.args([SCRIPT, &self.url, dataset, self.file.to_str().unwrap(), wait]);
        command.env("MEDFEED_KEY", &self.key).env("NO_PROXY", "*");
        command
    }

    fn run(&self) -> Done {
        Done::of(&mut self.command("0"))
    }

    /// Runs the script. Returns its report.
    fn update(&self) -> String {
        let done = self.run();
        assert_eq!(done.code, Some(0), "{done:?}");
        done.stdout
    }
}

/// The records of a file, which is whole at every moment.
fn records(file: &Path) -> Vec<Value> {
    let text = fs::read_to_string(file).unwrap_or_default();
    assert!(text.is_empty() || text.ends_with('\n'), "a file that ends within a line");
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// Updates the copy until it equals the license's view.
fn settle(copy: &Copy<'_>, client: &mut Client) {
    wait_until("the copy is what the license shows", SOON, || {
        copy.update();
        (records(&copy.file) == client.get("/v1/exports/conferences").lines()).then_some(())
    });
}

#[test]
fn a_file_follows_the_feed() {
    let Some(site) = site_with_tools() else { return };
    site.import("conferences.jsonl", conferences_of_version(1300, 0));
    let key = site.open_key();
    let server = site.serve();
    let copy = Copy::new(&site, format!("http://{}", server.address), key);
    let mut client = Client::new(server.address, Some(&copy.key));
    let backup = site.backup("backup.redb");
    let told = |what: &str| wait_until(what, SOON, || copy.update().contains(what).then_some(()));
    assert_eq!(copy.update(), "1300 records loaded\n");
    assert_eq!(copy.update(), "");

    // A waiting script gets edits at once. They take two pages.
    let mut waiting = Process::spawn(copy.command("45").stdout(Stdio::piped()));
    site.import("conferences.jsonl", conferences_of_version(1250, 1) + "{\"id\":1300,\"deleted\":true}\n");
    assert!(waiting.ended_within(SOON).expect("it ends with the news").success());
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
    for (name, stays) in [("copy.jsonl.backup", true), ("copy.jsonl.follow-work.ABCdef", false)] {
        let folder = site.write(&format!("{name}/file"), "mine").parent().unwrap().to_owned();
        let two_days_ago = fs::metadata(&folder).unwrap().modified().unwrap() - Duration::from_hours(48);
        fs::File::open(&folder).unwrap().set_modified(two_days_ago).unwrap();
        copy.update();
        assert_eq!(folder.exists(), stays, "{name}");
    }
    fs::remove_dir_all(site.path("copy.jsonl.backup")).unwrap();

    // A file that somebody has changed is no copy.
    fs::write(&copy.file, "{}\n").unwrap();
    told("records loaded");
    settle(&copy, &mut client);
    let left: Vec<String> = site.files().into_iter().filter(|name| name.starts_with("copy.")).collect();
    assert_eq!(left, ["copy.jsonl", "copy.jsonl.tokens"]);
}

#[test]
fn the_shell_example_retries_temporary_failures() {
    let Some(site) = site_with_tools() else { return };
    let busy = answer("503 Service Unavailable\r\nRetry-After: 1", "");
    let limit = answer("429 Too Many Requests\r\nRetry-After: 1", "");
    let page = r#"{"data":[{"id":7,"deleted":true},{"id":8}],"has_more":false,"next_sync_token":"u"}"#;
    let cut = export_of(1, "")[..90].to_vec();
    let answers = vec![Vec::new(), cut, busy.clone(), export_of(1, ""), limit, busy, answer("200 OK", page)];
    let copy = Copy::new(&site, answering(answers), "mfk_x".to_owned());
    assert_eq!(copy.update(), "1 records loaded\n2 changes applied\n");
    assert_eq!(fs::read_to_string(&copy.file).unwrap(), "{\"id\":8}\n");
}

#[test]
fn failures_are_reported_and_change_nothing() {
    let Some(site) = site_with_tools() else { return };
    let problem = r#"{"status":401,"detail":"No such key.","request_id":"r"}"#;
    let cases = [
        (export_of(2, ""), "the export holds 1 records"),
        (export_of(1, "X-Records-Digest: sha-256=:AAAA:\r\n"), "was changed on its way"),
        (answer("200 OK", "<html>"), "check the URL"),
        (answer("302 Found", ""), "check the URL"),
        (answer("410 Gone", "{}"), "check the URL"),
        (answer("401 Unauthorized", problem), "401 No such key. (request r)"),
    ];
    for (bytes, expected) in cases {
        let copy = Copy::new(&site, answering(vec![bytes]), "mfk_x".to_owned());
        let done = copy.run();
        let last = done.stderr.lines().last().unwrap_or_default();
        assert!(done.code == Some(1) && last.starts_with("error: ") && last.contains(expected), "{expected}: {done:?}");
        assert!(site.files().is_empty(), "{expected}: {:?}", site.files());
    }
}

#[test]
fn a_key_is_sent_without_blanks_and_is_not_shown() {
    let Some(site) = site_with_tools() else { return };
    let cases = [("mfk_secret\r\n", true), (" mfk_secret", true), ("mfk_secret\u{7}", false), ("mfk_secreté", false)];
    for (key, is_valid) in cases {
        let (url, heads) = recording("127.0.0.1", |head| {
            let detail = if head.contains("X-API-Key: mfk_secret\r\n") { "Well sent." } else { "No." };
            answer("401 Unauthorized", &format!("{{\"status\":401,\"detail\":\"{detail}\",\"request_id\":\"r\"}}"))
        });
        let done = Copy::new(&site, url, key.to_owned()).run();
        assert!(done.code == Some(1) && !done.stderr.contains("secret"), "{key:?}: {done:?}");
        assert_eq!(done.stderr.contains("Well sent."), is_valid, "{key:?}: {done:?}");
        assert!(is_valid || heads.lock().unwrap().is_empty(), "{key:?}");
    }
}

#[test]
fn the_key_is_sent_to_no_other_host() {
    // A user may have configured curl to follow redirects.
    for rc in ["", "location\n"] {
        let Some(site) = site_with_tools() else { return };
        site.write(".curlrc", rc);
        for status in REDIRECTS {
            let hosts = TwoHosts::new(status);
            let copy = Copy::new(&site, hosts.first.clone(), "mfk_secret".to_owned());
            let output = copy.command("0").env("HOME", site.folder()).output().unwrap();
            let told = String::from_utf8(output.stderr).unwrap();
            let expected = format!("the service redirects to {}; use that address if you trust it\n", hosts.second);
            assert!(output.status.code() == Some(1) && told.ends_with(&expected), "{status} {rc}: {told}");
            hosts.assert_kept("mfk_secret", status);
        }
    }
}

#[test]
fn retry_after_with_a_time_pauses_until_then() {
    let Some(site) = site_with_tools() else { return };
    let later = medfeed::model::time::now().plus_s(3).to_string();
    let (day, clock) = later.trim_end_matches('Z').split_once('T').unwrap();
    let day: jiff::civil::Date = day.parse().unwrap();
    let until = day.strftime("%a, %d %b %Y");
    let busy = answer(&format!("503 Service Unavailable\r\nRetry-After: {until} {clock} GMT"), "");
    let page = answer("200 OK", "{\"data\":[],\"has_more\":false,\"next_sync_token\":\"t\"}");
    let answers = vec![busy, export_of(1, ""), page];
    let copy = Copy::new(&site, answering(answers), "mfk_x".to_owned());
    let begun = std::time::Instant::now();
    assert_eq!(copy.update(), "1 records loaded\n");
    // Without the time, the first pause is one second.
    assert!(begun.elapsed() > Duration::from_millis(1500), "{:?}", begun.elapsed());
}

#[test]
fn a_dataset_that_leaves_the_license_leaves_the_file() {
    let Some(site) = site_with_tools() else { return };
    site.import("conferences.jsonl", conferences_of_version(300, 0));
    site.license("all", "--dataset conferences --dataset journals");
    let (_, key) = site.key("all", &[]);
    let server = site.serve();
    let copy = Copy::new(&site, format!("http://{}", server.address), key);
    assert_eq!(copy.update(), "300 records loaded\n");
    let other = Done::of(&mut copy.command_for("journals", "0"));
    assert!(other.code == Some(1) && other.stderr.contains("is a copy of conferences, not of journals"), "{other:?}");
    assert_eq!(records(&copy.file).len(), 300);
    let mut client = Client::new(server.address, Some(&copy.key));
    site.license("all", "--dataset journals");
    wait_until("narrowed", SOON, || (client.get("/v1/conferences").status == 403).then_some(()));
    for told_of in [true, false] {
        let done = copy.run();
        assert_eq!(done.code, Some(1), "{done:?}");
        assert_eq!(done.stderr.contains("300 records removed from"), told_of, "{done:?}");
        assert_eq!(fs::read_to_string(&copy.file).unwrap(), "");
    }
    site.license("all", "--dataset conferences --dataset journals --widen");
    wait_until("widened", SOON, || (client.get("/v1/conferences").status == 200).then_some(()));
    assert_eq!(copy.update(), "300 records loaded\n");
    // Another refusal, and one that is not repeated, remove nothing.
    let refusal = |status: &str, code: &str| {
        let kind = format!("http://x/docs/errors/{code}");
        answer(status, &format!("{{\"type\":\"{kind}\",\"status\":1,\"detail\":\"No.\",\"request_id\":\"r\"}}"))
    };
    let lacks = refusal("403 Forbidden", "dataset_not_licensed");
    for answers in [
        vec![refusal("401 Unauthorized", "dataset_not_licensed")],
        vec![refusal("403 Forbidden", "ip_not_allowed")],
        vec![lacks, refusal("401 Unauthorized", "revoked_api_key")],
    ] {
        let elsewhere = Copy { url: answering(answers), ..Copy::new(&site, String::new(), "mfk_x".to_owned()) };
        let done = elsewhere.run();
        assert!(done.code == Some(1) && done.stderr.contains("No. (request r)"), "{done:?}");
        assert_eq!(records(&copy.file).len(), 300);
    }
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
    let Some(site) = site_with_tools() else { return };
    site.import("conferences.jsonl", conferences_of_version(1300, 0));
    let key = site.open_key();
    let server = site.serve();
    let copy = Copy::new(&site, format!("http://{}", server.address), key);
    assert_eq!(copy.update(), "1300 records loaded\n");
    let mv = site.write("programs/mv", MV);
    fs::set_permissions(&mv, fs::Permissions::from_mode(0o755)).unwrap();
    let real_path = std::env::var("PATH").unwrap();
    let path = format!("{}:{real_path}", mv.parent().unwrap().display());
    let mut client = Client::new(server.address, Some(&copy.key));
    // Two pages, each with a rename of the tokens and one of the records. A third page would be left for the next run.
    for (killed_at, whole_pages) in [(1, 0), (2, 0), (3, 1)] {
        let before = records(&copy.file);
        let page = client.get("/v1/conferences/changes").json();
        let token = page["next_sync_token"].as_str().unwrap().to_owned();
        site.import("conferences.jsonl", conferences_of_version(1200, killed_at));
        wait_until("the edits are served", SOON, || {
            let page = client.get(&format!("/v1/conferences/changes?since={token}&limit=1000")).json();
            (page["has_more"] == true).then_some(())
        });
        let calls = site.path(&format!("calls-{killed_at}"));
        let mut command = copy.command("0");
        command.env("PATH", &path).env("REAL_PATH", &real_path).env("CALLS", &calls);
        let status = command.env("KILLED_AT", killed_at.to_string()).stdout(Stdio::null()).status().unwrap();
        assert_eq!(status.code(), None, "it was killed: {status}");
        let changed = records(&copy.file).iter().zip(&before).filter(|(now, before)| now != before).count();
        assert_eq!(changed, 1000 * whole_pages, "killed at {killed_at}");
        let rest =
            if whole_pages == 0 { "1000 changes applied\n200 changes applied\n" } else { "200 changes applied\n" };
        assert_eq!(copy.update(), rest, "killed at {killed_at}");
        assert_eq!(records(&copy.file), client.get("/v1/exports/conferences").lines(), "killed at {killed_at}");
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
    let Some(site) = site_with_tools() else { return };
    site.import("conferences.jsonl", conferences_of_version(1300, 0));
    let key = site.open_key();
    let server = site.serve();
    let copy = Copy::new(&site, format!("http://{}", server.address), key);
    let is_over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let _end = End(&is_over);
        scope.spawn(|| {
            // Each version edits other records than the last ones, so that a lost edit stays lost.
            for version in 1.. {
                let rows = conferences_of_version(1250, version);
                let mut edited: Vec<&str> =
                    rows.lines().skip(usize::try_from(version).unwrap() * 30 % 1200).take(30).collect();
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
            let mut script = Process::spawn(copy.command("0").stdout(Stdio::null()).process_group(0));
            std::thread::sleep(random.part_of(Duration::from_millis(400)));
            if random.below(2) == 0 {
                // With all processes that it has started. Otherwise they would continue without it.
                let group = format!("-{}", script.id());
                Command::new("kill").args(["-KILL", "--", &group]).stderr(Stdio::null()).status().unwrap();
            }
            script.kill();
            records(&copy.file);
        }
    });
    settle(&copy, &mut Client::new(server.address, Some(&copy.key)));
    counted(rounds, "kills");
}
