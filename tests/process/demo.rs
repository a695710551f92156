//! `medfeed demo`: the printed lines work when pasted.

use std::io::BufRead;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use super::client::{Answer, Client};
use super::manuals::{curl_of, words};
use super::operators_page::get_from;
use super::site::{Process, SOON, Server, Site, wait_for, wait_until_every};

/// Sends the request of a printed curl line.
pub fn curl(line: &str, server: &Server) -> Answer {
    let (url, key) = curl_of(line);
    let target = url
        .strip_prefix(&server.url())
        .unwrap_or_else(|| panic!("no URL of this server: {line}"));
    Client::new(server.address, key.as_deref()).get(target)
}

/// The lines that a demo prints before its first edit.
fn introduction(server: &mut Server) -> Vec<String> {
    let mut lines = Vec::new();
    while !lines
        .last()
        .is_some_and(|line: &String| line.contains("Ctrl-C"))
    {
        let mut line = String::new();
        assert!(
            server.stdout.read_line(&mut line).unwrap() > 0,
            "the last line says how to stop: {lines:?}"
        );
        lines.push(line.trim().to_owned());
    }
    lines
}

#[test]
fn demo_edits_reach_the_feeds_of_both_licenses() {
    let site = Site::new();
    let mut server = site.start(demo_inside(&site, site.folder(), &["--log", "warn"]));
    let anyone = || Client::new(server.address, None);
    let told = anyone().get("/demo.json").json();
    let clients = [0, 1].map(|at| told["licenses"][at]["key"].as_str().unwrap().to_owned());
    let [mut full, mut narrow] = clients.map(|key| Client::new(server.address, Some(&key)));
    let token = |client: &mut Client| {
        client.get("/v1/conferences/changes").json()["next_sync_token"]
            .as_str()
            .unwrap()
            .to_owned()
    };
    // Read from the start each time. A caller that sees an edit in the list of edits finds it in the feed by then.
    let (since_full, since_narrow) = (token(&mut full), token(&mut narrow));
    let first = anyone().get("/demo.json").json()["edits"]
        .as_array()
        .unwrap()
        .len();

    // Reads the feeds of both licenses until each kind of edit has come: changed in both, changed in one, left one.
    let mut seen = std::collections::BTreeSet::new();
    let mut number = first;
    let expected = ["live live", "live -", "live tombstone"];
    wait_until_every(
        Duration::from_millis(100),
        "all kinds of edits",
        SOON * 3,
        || {
            let edits = anyone().get("/demo.json").json()["edits"].take();
            let edit = edits
                .as_array()
                .unwrap()
                .iter()
                .find(|edit| edit["number"].as_u64() > u64::try_from(number).ok())?
                .clone();
            number = usize::try_from(edit["number"].as_u64().unwrap()).unwrap();
            assert!(edit["words"].as_str().unwrap().ends_with('.'), "{edit}");
            assert!(edit["at"].as_str().unwrap().ends_with('Z'), "{edit}");
            let read = |client: &mut Client, since: &str| {
                let page = client
                    .get(&format!("/v1/conferences/changes?since={since}"))
                    .json();
                let ids = edit["ids"].as_array().unwrap();
                let items = page["data"].as_array().unwrap().iter();
                let mut items = items.filter(|item| ids.contains(&item["id"]));
                items.next().map_or("-", |item| {
                    if item["deleted"] == true {
                        "tombstone"
                    } else {
                        "live"
                    }
                })
            };
            let (wide, narrow) = (
                read(&mut full, &since_full),
                read(&mut narrow, &since_narrow),
            );
            assert_ne!(wide, "-", "each listed edit is in the feed: {edit}");
            seen.insert(format!("{wide} {narrow}"));
            expected
                .iter()
                .all(|kind| seen.contains(*kind))
                .then_some(())
        },
    );
    assert!(has_curator(&server));
    end(&mut server.process, "TERM", site.folder());
}

/// Whether the server has the thread that makes edits.
fn has_curator(server: &Server) -> bool {
    let threads = std::fs::read_dir(format!("/proc/{}/task", server.process.id())).unwrap();
    let mut names = threads.map(|thread| {
        std::fs::read_to_string(thread.unwrap().path().join("comm")).unwrap_or_default()
    });
    names.any(|name| name.trim() == "curator")
}

/// A demo whose temporary folder is in a folder.
fn demo_inside(site: &Site, folder: &Path, options: &[&str]) -> Command {
    let mut command = site.command(["demo", "--listen", "127.0.0.1:0"]);
    command.args(options).env("TMPDIR", folder);
    command
}

fn has_database(folder: &Path) -> bool {
    let mut entries = std::fs::read_dir(folder).unwrap();
    entries.any(|entry| {
        entry
            .unwrap()
            .file_name()
            .to_string_lossy()
            .starts_with("medfeed-demo-")
    })
}

/// Ends a demo by a signal. Its temporary folder vanishes.
fn end(process: &mut Process, signal: &str, folder: &Path) {
    assert!(has_database(folder));
    process.signal(signal);
    let status = process
        .ended_within(SOON)
        .unwrap_or_else(|| panic!("SIG{signal}: it is still running"));
    assert_eq!(status.code(), Some(0), "SIG{signal}");
    assert!(!has_database(folder), "SIG{signal}");
}

#[test]
fn a_demo_that_is_stopped_while_it_starts_leaves_nothing() {
    let site = Site::new();
    let mut demo = demo_inside(&site, site.folder(), &["--quiet-data"]);
    let mut process = Process::spawn(demo.stdout(Stdio::null()).stderr(Stdio::null()));
    wait_for("its folder", || has_database(site.folder()));
    end(&mut process, "INT", site.folder());
}

#[test]
fn a_server_that_is_no_demo_shows_no_keys() {
    let site = Site::new();
    site.open_key();
    let server = site.serve();
    let mut client = Client::new(server.address, None);
    assert_eq!(client.get("/demo.json").problem(), "not_found");
    let page = client.get("/");
    assert!(page.status == 200 && !String::from_utf8_lossy(&page.body).contains("demo.json"));
    server.stop();
}

/// Runs lines in a shell, in an empty folder. Returns the names of the files that they made there.
fn made_by_shell(lines: &str) -> Vec<String> {
    let folder = tempfile::tempdir().unwrap();
    let done = std::process::Command::new("sh")
        .arg("-c")
        .arg(lines)
        .current_dir(&folder)
        .output()
        .unwrap();
    assert!(done.status.success(), "{lines}: {done:?}");
    let mut made: Vec<String> = std::fs::read_dir(&folder)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned())
        .collect();
    made.sort();
    made
}

#[test]
fn a_quiet_demo_edits_nothing_and_works_in_any_folder() {
    let site = Site::new();
    let folder = site.path("it's; touch pwned; $(touch pwned)`touch pwned` \"\\ here");
    std::fs::create_dir(&folder).unwrap();
    let mut server = site.start(demo_inside(&site, &folder, &["--quiet-data"]));
    let lines = introduction(&mut server);
    assert!(
        !lines.iter().any(|line| line.contains("curator")) && !has_curator(&server),
        "{lines:?}"
    );
    let told = Client::new(server.address, None).get("/demo.json").json();
    let expected = (&serde_json::json!([]), &false.into());
    assert_eq!((&told["edits"], &told["curating"]), expected);

    let port = server.address.port();
    let cases = [
        (format!("127.0.0.1:{port}"), 200),
        (format!("localhost:{port}"), 200),
        (format!("[::1]:{port}"), 200),
        (format!("192.0.2.7:{port}"), 200),
        (format!("evil.example:{port}"), 421),
        (format!("127.0.0.1.evil.example:{port}"), 421),
        (format!("localhost.evil.example:{port}"), 421),
    ];
    for (host, status) in cases {
        for path in ["/demo.json", "/%64emo.json"] {
            let answer = get_from(server.address, &host, path);
            assert_eq!(answer.status, status, "{host} {path}");
            let has_keys = String::from_utf8_lossy(&answer.body).contains("mfk_");
            assert_eq!(has_keys, status == 200, "{host} {path}");
            if status != 200 {
                assert!(
                    answer.json()["detail"]
                        .as_str()
                        .unwrap()
                        .contains("with this machine's address"),
                    "{answer:?}"
                );
            }
        }
        // The page itself has only public content.
        assert_eq!(get_from(server.address, &host, "/").status, 200, "{host}");
    }

    let line = |part: &str| {
        lines
            .iter()
            .find(|line| line.contains(part))
            .expect("a line")
            .as_str()
    };
    assert_eq!(
        made_by_shell(&[line("echo "), line(" import ")].join("\n")),
        <[&str; 0]>::default()
    );
    let (_, key) = curl_of(line("/v1/conferences/1"));
    wait_for("the change is served", || {
        let shown = server
            .client(key.as_ref().unwrap())
            .get("/v1/conferences?q=ASCO")
            .items();
        shown.iter().any(|record| record["venue"] == "Hall 7")
    });
    end(&mut server.process, "HUP", &folder);
}

#[test]
fn the_lines_that_a_demo_prints_work() {
    let site = Site::new();
    let mut server = site.start(site.command(["demo", "--listen", "127.0.0.1:0", "--log", "warn"]));
    let lines = introduction(&mut server);
    assert!(
        lines[1].starts_with(&format!("Open http://{}/ in a browser", server.address)),
        "the link comes first: {lines:?}"
    );

    let curls = lines.iter();
    let curls: Vec<&String> = curls.filter(|line| line.starts_with("curl ")).collect();
    assert!(
        curls.len() >= 7 && curls.iter().any(|line| line.contains("changes?since=")),
        "{lines:?}"
    );
    for line in &curls {
        let answer = curl(line, &server);
        assert_eq!(answer.status, 200, "{line}: {answer:?}");
        if line.contains("/exports/") {
            assert!(!answer.lines().is_empty(), "{line}");
            assert!(answer.header("x-sync-token").is_some(), "{line}");
        } else if line.contains("since=") && !line.contains("limit=") {
            assert!(answer.json()["next_sync_token"].is_string(), "{line}");
        } else if line.contains("limit=") {
            assert!(!answer.items().is_empty(), "{line} finds nothing");
        }
    }
    let narrow = curls
        .iter()
        .find(|line| line.contains("therapy-areas"))
        .expect("the narrow license");
    let data = curl(narrow, &server).json()["data"].to_string();
    assert!(data.contains("Oncology"), "{narrow}");

    // Changes the data while it is served.
    let echo = lines
        .iter()
        .find(|line| line.starts_with("echo "))
        .expect("a change");
    let import = lines
        .iter()
        .find(|line| line.contains(" import "))
        .expect("an import");
    let expected = env!("CARGO_BIN_EXE_medfeed");
    assert_eq!(words(import)[0], expected, "the program that runs");
    assert_eq!(
        made_by_shell(&[echo.as_str(), import].join("\n")),
        <[&str; 0]>::default(),
        "no file is written to the current folder"
    );
    let record = curls
        .iter()
        .find(|line| line.contains("/v1/conferences/"))
        .expect("a single record");
    wait_for("the change is served", || {
        curl(record, &server).json()["data"]["venue"] == "Hall 7"
    });

    let database = words(import)
        .into_iter()
        .find(|word| word.ends_with(".redb"))
        .map(PathBuf::from)
        .unwrap();
    assert!(database.exists());
    server.process.signal("INT");
    let status = server.process.ended_within(SOON).expect("it ends");
    assert_eq!(status.code(), Some(0));
    assert!(
        !database.exists() && !database.parent().unwrap().exists(),
        "the database is thrown away"
    );
}
