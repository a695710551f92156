//! The clients in `examples`, run as users run them.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use super::client::Client;
use super::scripted::{Reply, Scripted};
use super::site::{Done, Process, SOON, Site, conferences_of_version, wait_for};

const EXAMPLES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/examples");

/// A client that keeps a copy of a dataset in a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Follower {
    /// Python with its SQLite.
    Python,
    /// The machine's own `sh`, `curl` and `jq`.
    Shell,
}
use Follower::{Python, Shell};

impl Follower {
    /// Whether its programs are installed. If not, prints a message.
    pub fn is_installed(self) -> bool {
        let script = match self {
            Python => "python3 -c 'import sqlite3, json'",
            Shell => "curl --version && jq --version",
        };
        let is_installed = Command::new("sh")
            .args(["-c", script])
            .output()
            .is_ok_and(|done| done.status.success());
        if !is_installed {
            eprintln!("`{script}` fails: the example for {self:?} is not tried");
        }
        is_installed
    }

    /// A copy of a service, in the folder of a site.
    pub fn copy<'a>(self, site: &'a Site, url: &str, key: &str) -> Copy<'a> {
        Copy {
            follower: self,
            site,
            url: url.to_owned(),
            key: key.to_owned(),
            file: site.path("copy"),
        }
    }
}

/// The clients whose programs are installed.
fn installed() -> impl Iterator<Item = Follower> {
    [Python, Shell]
        .into_iter()
        .filter(|follower| follower.is_installed())
}

/// A copy that a client keeps.
pub struct Copy<'a> {
    follower: Follower,
    site: &'a Site,
    url: String,
    key: String,
    pub file: PathBuf,
}

impl Copy<'_> {
    /// The command that updates the copy, with further arguments.
    pub fn command(&self, dataset: &str, more: &[&str]) -> Command {
        let (program, script) = match self.follower {
            Python => ("python3", "follow.py"),
            Shell => ("sh", "shell/follow.sh"),
        };
        let mut command = self.site.command_of(program);
        command
            .arg(format!("{EXAMPLES}/{script}"))
            .args([&self.url, dataset])
            .arg(&self.file)
            .args(more);
        command.env("MEDFEED_KEY", &self.key).env("NO_PROXY", "*");
        command
    }

    pub fn run(&self, dataset: &str) -> Done {
        Done::of(&mut self.command(dataset, &[]))
    }

    /// Updates the copy of conferences, which must succeed. Returns the report.
    pub fn update(&self) -> String {
        let done = self.run("conferences");
        assert_eq!(done.code, Some(0), "{done:?}");
        done.stdout.trim_end().to_owned()
    }

    /// The stored JSON of the records, by id.
    pub fn records(&self) -> Vec<String> {
        if self.follower == Shell {
            let text = fs::read_to_string(&self.file).unwrap_or_default();
            return text.lines().map(str::to_owned).collect();
        }
        let copy = rusqlite::Connection::open(&self.file).unwrap();
        let mut query = copy
            .prepare("SELECT json FROM records ORDER BY id")
            .unwrap();
        query
            .query_map([], |row| row.get(0))
            .unwrap()
            .map(Result::unwrap)
            .collect()
    }
}

/// A service that gives these replies in turn.
pub fn answering(replies: Vec<Reply>) -> Scripted {
    Scripted::new(move |_, before| replies[before].clone())
}

/// An export of one record.
pub fn export() -> Reply {
    Reply::export("t", &["{\"id\":7}"])
}

#[test]
fn requests_broken_by_a_restart_are_retried() {
    for follower in installed() {
        let site = Site::new();
        let busy = |status| Reply::new(status, "").with("retry-after", "1");
        let page = Reply::page("{\"id\":7,\"deleted\":true},{\"id\":8}", false, "u");
        let whole = export().without("x-records-digest");
        // No answer, a part of an answer, a refusal, and then the file; two refusals, and then a page.
        let replies = vec![
            Reply::new(0, ""),
            export().cut_after(5),
            busy(503),
            whole,
            busy(429),
            busy(503),
            page,
        ];
        let service = answering(replies);
        let copy = follower.copy(&site, &service.url(), "mfk_x");
        let mut told = copy.update();
        if follower == Python {
            told = format!("{told}\n{}", copy.update());
        }
        assert_eq!(told, "1 records loaded\n2 changes applied", "{follower:?}");
        assert_eq!(copy.records(), ["{\"id\":8}"], "{follower:?}");
    }
}

#[test]
fn a_failure_is_one_line_and_changes_nothing() {
    let changed = |name, value| vec![export().without(name).with(name, value)];
    let body = r#"{"type":"http://x/errors/invalid_api_key","status":401,"detail":"No such key.","request_id":"r"}"#;
    let (page, gone) = (Reply::new(200, "<html>"), Reply::new(410, "{}"));
    let cases = cases![
        changed("x-record-count", "2"), "the export holds 1 records instead of 2";
        changed("x-records-digest", "sha-256=:AAAA:"), "was changed on its way";
        vec![page.clone()], "check the URL";
        vec![Reply::new(401, body)], "401 No such key. (request r)";
        vec![gone.clone(), page], "check the URL";
        vec![gone.clone(), gone], "check the URL";
    ];
    for follower in installed() {
        let site = Site::new();
        let bare = (
            vec![Reply::new(302, "")],
            if follower == Python {
                ": 302 X"
            } else {
                "check the URL"
            },
        );
        for (replies, expected) in cases.iter().chain([&bare]) {
            let service = answering(replies.clone());
            let copy = follower.copy(&site, &service.url(), "mfk_x");
            let done = copy.run("journals");
            let is_told = done.stderr.starts_with("error: ") && done.stderr.contains(expected);
            assert!(done.code == Some(1), "{follower:?}: {expected}: {done:?}");
            assert!(is_told, "{follower:?}: {expected}: {done:?}");
            assert_eq!(done.stderr.lines().count(), 1, "{follower:?}: {done:?}");
            assert_eq!(
                site.files(),
                if follower == Python {
                    &["copy"][..]
                } else {
                    &[]
                },
                "{expected}"
            );
            assert_eq!(copy.records(), [""; 0], "{follower:?}: {expected}");
        }
    }
}

#[test]
fn what_a_service_says_does_not_control_the_terminal() {
    let problem = |detail: &str| {
        Reply::new(
            401,
            format!(
                r#"{{"type":"http://x/errors/invalid_api_key","status":401,"detail":"{detail}","request_id":"r"}}"#
            ),
        )
    };
    // (the detail as JSON, as Python shows it, as the shell shows it)
    let cases = cases![
        "red \\u001b[31m", r"red \x1b[31m", "red %1B[31m";
        "title \\u009d0;x\\u0007", r"title \x9d0;x\x07", "title %C2%9D0;x%07";
        "back\\bwards\\r", r"back\x08wards\r", "back%08wards%0D";
        "two\\nlines", r"two\nlines", "two%0Alines";
        "mirrored \\u202e", r"mirrored \u202e", "mirrored %E2%80%AE";
        "déjà vu 東京", "déjà vu 東京", "déjà vu 東京";
    ];
    for follower in installed() {
        for (detail, by_python, by_shell) in cases {
            let site = Site::new();
            let service = answering(vec![problem(detail)]);
            let copy = follower.copy(&site, &service.url(), "mfk_x");
            let mut command = copy.command("journals", &[]);
            let done = Done::of(
                command
                    .env("PYTHONIOENCODING", "utf-8")
                    .env("LC_ALL", "C.UTF-8"),
            );
            let expected = if follower == Python {
                by_python
            } else {
                by_shell
            };
            let is_told = done.stderr.contains(&format!("401 {expected} (request r)"));
            assert!(is_told && done.code == Some(1), "{follower:?}: {done:?}");
            let text = done.stderr.trim_end();
            assert!(!text.contains(char::is_control), "{follower:?}: {done:?}");
        }
    }
}

#[test]
fn a_name_that_sqlite_takes_for_an_address_is_a_file_name() {
    if !Python.is_installed() {
        return;
    }
    for name in ["file:a.sqlite", "file:b?mode=memory", ":memory:"] {
        let site = Site::new();
        let mut copy = Python.copy(&site, &answering(vec![export()]).url(), "mfk_x");
        copy.file = name.into();
        assert_eq!(copy.update(), "1 records loaded", "{name}");
        copy.file = site.path(name);
        assert_eq!(copy.records(), ["{\"id\":7}"], "{name}");
    }
}

#[test]
fn the_key_is_sent_to_no_other_host() {
    for follower in installed() {
        let site = Site::new();
        // A user may have configured curl to follow redirects.
        for curlrc in if follower == Shell {
            &["", "location\n"][..]
        } else {
            &[""]
        } {
            site.write(".curlrc", curlrc);
            for status in [301, 302, 303, 307, 308] {
                let what = format!("{follower:?} {status} {curlrc}");
                let second = Scripted::at("127.0.0.2", |_, _| Reply::new(200, "{}"));
                let to = second.url();
                let first = Scripted::new(move |asked, _| Reply::redirect(status, &to, asked));
                let copy = follower.copy(&site, &first.url(), "mfk_secret");
                let done = Done::of(copy.command("journals", &[]).env("HOME", site.folder()));
                let expected = format!(
                    "the service redirects to {}; use that address if you trust it\n",
                    second.url()
                );
                assert!(done.code == Some(1), "{what}: {done:?}");
                assert!(done.stderr.ends_with(&expected), "{what}: {done:?}");
                let asked = first.take();
                assert!(
                    asked.len() == 1 && asked[0].header("x-api-key") == Some("mfk_secret"),
                    "{what}: {asked:?}"
                );
                let asked = second.take();
                assert!(asked.is_empty(), "{what}: the second host got a request");
            }
        }
    }
}

#[test]
fn a_key_is_sent_without_blanks_around_it_and_is_not_shown() {
    for follower in installed() {
        let odd = if follower == Python {
            "mfk_secret\rx"
        } else {
            "mfk_secret\u{7}"
        };
        for (key, is_valid) in [
            ("mfk_secret\r\n", true),
            (" mfk_secret", true),
            (odd, false),
            ("mfk_secreté", false),
        ] {
            let service = Scripted::new(|asked, _| match asked.header("x-api-key") {
                Some("mfk_secret") if asked.line.contains("/changes") => {
                    Reply::page("", false, "t")
                }
                Some("mfk_secret") => export(),
                _ => Reply::new(401, ""),
            });
            let site = Site::new();
            let done = follower.copy(&site, &service.url(), key).run("journals");
            assert_eq!(
                done.code == Some(0),
                is_valid,
                "{follower:?} {key:?}: {done:?}"
            );
            assert!(
                !done.stderr.contains("secret"),
                "{follower:?} {key:?}: {done:?}"
            );
            assert_eq!(service.take().is_empty(), !is_valid, "{follower:?} {key:?}");
        }
    }
}

#[test]
fn a_file_with_other_tables_is_not_written() {
    if !Python.is_installed() {
        return;
    }
    let site = Site::new();
    let copy = Python.copy(&site, "http://127.0.0.1:1", "k");
    let own = rusqlite::Connection::open(&copy.file).unwrap();
    own.execute_batch(
        "CREATE TABLE records (id INTEGER, json TEXT); INSERT INTO records VALUES (1, 'own')",
    )
    .unwrap();
    let done = copy.run("conferences");
    done.assert_told(1, "holds other tables; give another file");
    assert_eq!(copy.records(), ["own"]);
}

#[test]
fn a_follower_continues_after_a_reader_has_locked_the_copy() {
    if !Python.is_installed() {
        return;
    }
    let (site, key) = Site::open(30);
    let server = site.serve();
    let copy = Python.copy(&site, &server.url(), &key);
    copy.update();
    let reader = rusqlite::Connection::open(&copy.file).unwrap();
    reader
        .execute_batch("BEGIN; SELECT count(*) FROM records")
        .unwrap();
    let log = site.path("follower.log");
    let mut command = copy.command("conferences", &["--every", "1"]);
    let _follower = Process::spawn(
        command
            .stdout(Stdio::null())
            .stderr(File::create(&log).unwrap()),
    );
    let locked = "error: the copy cannot be written: database is locked\n";
    wait_for("locked", || {
        fs::read_to_string(&log).unwrap().contains(locked)
    });
    reader.execute_batch("COMMIT").unwrap();
    site.import("conferences.jsonl", conferences_of_version(3, 1));
    wait_for("followed", || copy.records()[0].contains("version 1"));
}

#[test]
fn retry_after_with_a_time_pauses_until_then() {
    if !Python.is_installed() {
        return;
    }
    const NOW: &str = "Wed, 21 Oct 2026 07:28:00 GMT";
    let site = Site::new();
    // The time is the present one by the service's clock.
    let mut replies = vec![
        Reply::new(503, "")
            .with("date", NOW)
            .with("retry-after", NOW);
        6
    ];
    replies.push(export());
    let (service, begun) = (answering(replies), std::time::Instant::now());
    assert_eq!(
        Python.copy(&site, &service.url(), "mfk_x").update(),
        "1 records loaded"
    );
    // Without the time, the pauses are 1, 2, 4, 8, 16 and 32 seconds.
    assert!(begun.elapsed() < SOON, "{:?}", begun.elapsed());
    const PAUSES: &str = "import sys; sys.path.insert(0, sys.argv[1]); sys.dont_write_bytecode = True; import follow\n\
        for after in sys.argv[3:]: print(follow.asked_pause_s({'Retry-After': after, 'Date': sys.argv[2]}, -1))";
    let cases = words![
        "7" "Wed, 21 Oct 2026 07:28:09 GMT" "Wed, 21 Oct 2026 07:27:00 GMT" "" "soon"
    ];
    let done = Done::of(
        site.command_of("python3")
            .args(["-c", PAUSES, EXAMPLES, NOW])
            .args(cases),
    );
    assert_eq!(done.stdout, "7\n9\n0\n-1\n-1\n", "{done:?}");
}

#[test]
fn a_dataset_that_leaves_the_license_leaves_the_copy() {
    for follower in installed() {
        let (site, key) = Site::open(300);
        let server = site.serve();
        let copy = follower.copy(&site, &server.url(), &key);
        assert_eq!(copy.update(), "300 records loaded");
        let other = copy.run("journals");
        let told = "is a copy of conferences, not of journals; give another file";
        other.assert_told(1, told);
        // Another refusal, and one that is not repeated, remove nothing.
        let refusal = |status, code: &str| {
            let kind = format!("http://x/docs/errors/{code}");
            Reply::new(
                status,
                format!(r#"{{"type":"{kind}","status":1,"detail":"No.","request_id":"r"}}"#),
            )
        };
        let lacks = refusal(403, "dataset_not_licensed");
        for replies in [
            vec![refusal(401, "dataset_not_licensed")],
            vec![refusal(403, "ip_not_allowed")],
            vec![lacks, refusal(401, "revoked_api_key")],
        ] {
            let done = follower
                .copy(&site, &answering(replies).url(), "mfk_x")
                .run("conferences");
            done.assert_told(1, "No. (request r)");
            assert_eq!(copy.records().len(), 300, "{done:?}");
        }
        let mut client = server.client(&key);
        site.license("all", "--dataset journals");
        wait_for("narrowed", || client.get("/v1/conferences").status == 403);
        for told_of in [true, false] {
            let done = copy.run("conferences");
            assert!(done.code == Some(1), "{done:?}");
            assert!(done.stderr.lines().count() == 1, "{done:?}");
            let stderr = done.stderr.contains("; 300 records removed from ");
            assert_eq!(stderr, told_of, "{done:?}");
            assert_eq!(copy.records(), [""; 0]);
        }
        site.license("all", "--dataset conferences --dataset journals --widen");
        wait_for("widened", || client.get("/v1/conferences").status == 200);
        assert_eq!(copy.update(), "300 records loaded");
    }
}

#[test]
fn an_assistant_queries_a_copy() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR"));
    let installed = folder.join("target/recipes/mcp/bin/python");
    let has_package = |python: &&Path| {
        let found =
            "from importlib.metadata import version; assert int(version('mcp').split('.')[0]) >= 2";
        Command::new(python)
            .args(["-c", found])
            .output()
            .is_ok_and(|found| found.status.success())
    };
    let Some(python) = [installed.as_path(), Path::new("python3")]
        .into_iter()
        .find(has_package)
    else {
        eprintln!("the Python package mcp is not installed: examples/mcp is not tried");
        return;
    };
    let mut check = Command::new(python);
    let done = check
        .arg(folder.join("examples/mcp/check.py"))
        .env("MEDFEED_BIN", env!("CARGO_BIN_EXE_medfeed"))
        .output();
    let done = done.unwrap();
    let told = [done.stdout, done.stderr].concat();
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&told));
}

#[test]
fn a_copy_follows_the_feed() {
    if !Python.is_installed() {
        return;
    }
    let (site, key) = Site::open(300);
    let server = site.serve();
    let copy = Python.copy(&site, &server.url(), &key);
    let verify = || {
        let done = Done::of(&mut copy.command("conferences", &["--verify"]));
        assert_eq!(done.code, Some(0), "{done:?}");
        done.stdout
    };
    assert_eq!(copy.update(), "300 records loaded");
    let mut client = Client::new(server.address, Some(&key));
    let mut exported =
        || String::from_utf8(client.get("/v1/exports/conferences").gunzip()).unwrap();
    let copied = || {
        copy.records()
            .iter()
            .map(|line| format!("{line}\n"))
            .collect::<String>()
    };

    assert_eq!(copy.update(), "0 changes applied");
    site.import(
        "conferences.jsonl",
        conferences_of_version(250, 1) + "{\"id\":300,\"deleted\":true}\n",
    );
    wait_for("the import is served", || exported().contains("version 1"));
    assert_eq!(copy.update(), "251 changes applied");
    assert_eq!(copied(), exported());
    assert_eq!(verify(), "0 changes applied; equal to the service's\n");
    for sql in [
        "UPDATE records SET json = json || ' ' WHERE id = 9",
        "DELETE FROM records WHERE id = 9",
    ] {
        rusqlite::Connection::open(&copy.file)
            .unwrap()
            .execute(sql, [])
            .unwrap();
        let expected = "0 changes applied; the copy differs: 299 records loaded anew\n";
        assert_eq!(verify(), expected, "{sql}");
        assert_eq!(copied(), exported());
    }

    // Numbers and characters stay as they are written. The news arrives long before a minute is over.
    let mut follower = Process::spawn(&mut copy.command("conferences", &["--every", "60"]));
    for name in ["first é \\u2028 \\\\", "second []{}, \\\"data\\\": ["] {
        site.import(
            "conferences.jsonl",
            format!("{{\"id\":8,\"name\":\"{name}\",\"city\":\"Zürich\"}}\n"),
        );
        let word = name.split(' ').next().unwrap();
        wait_for("followed", || copied().contains(word));
        assert_eq!(copied(), exported());
    }
    follower.kill();
    assert_eq!(verify(), "0 changes applied; equal to the service's\n");

    // A change of the license brings only the differences; a restore brings everything.
    let backup = site.backup("backup.redb");
    site.license("all", "--dataset conferences --year 2026");
    wait_for("narrowed", || exported().lines().count() < 100);
    assert!(
        copy.update().ends_with("changes applied"),
        "the license changed, so only the difference is sent"
    );
    assert_eq!(copied(), exported());
    site.json(["restore".as_ref(), backup.as_os_str(), "--yes".as_ref()]);
    wait_for("restored", || exported().lines().count() > 100);
    assert!(copy.update().ends_with("anew"), "another history");
    assert_eq!(copied(), exported());
}

#[test]
fn a_calendar_has_the_coming_dates_of_a_copy() {
    if !Python.is_installed() {
        return;
    }
    let site = Site::new();
    site.import(
        "conferences.jsonl",
        r#"{"id": 7, "name": "Congress; of \"Seven\"", "abbv": "CS", "year": 2097, "start_date": "2097-05-30", "end_date": "2097-06-01", "start_date_status": "confirmed", "abstract_due_date": "2097-02-28", "abstract_due_date_status": "estimated", "late_breaking_due_date_status": "not_found", "city": "Madrid"}
{"id": 8, "name": "Past", "year": 2001, "start_date": "2001-05-30", "abstract_due_date_status": "not_found", "late_breaking_due_date_status": "not_found", "start_date_status": "estimated"}
{"id": 9, "name": "Other", "year": 2097, "start_date": "9999-12-31", "abstract_due_date_status": "not_found", "late_breaking_due_date_status": "not_found", "start_date_status": "estimated"}"#,
    );
    let key = site.open_key();
    let server = site.serve();
    let copy = site.path("copy.sqlite");
    let mut pull = site.command(["pull", &server.url(), "--to"]);
    let pulled = Done::of(pull.arg(&copy).env("MEDFEED_KEY", &key));
    assert_eq!(pulled.code, Some(0), "{pulled:?}");
    let calendar = site.path("deadlines.ics");
    let write = |options: &[&str]| {
        let script = format!("{EXAMPLES}/calendar/deadlines.py");
        let mut python = Command::new("python3");
        python.arg(script).arg(&copy).arg(&calendar).args(options);
        let written = Done::of(&mut python);
        assert_eq!(written.code, Some(0), "{written:?}");
        fs::read_to_string(&calendar).unwrap()
    };
    let all = write(&[]);
    assert_eq!(all.matches("BEGIN:VEVENT").count(), 3, "{all}");
    let text = write(&["--ids", "7", "--reminder", "7"]);
    for line in words![
        "UID:conferences-7-abstract_due_date@medfeed" "DTSTART;VALUE=DATE:20970228"
        "DTEND;VALUE=DATE:20970301" "SUMMARY:Abstracts due: CS 2097 (estimated)"
        "UID:conferences-7-start_date@medfeed" "DTEND;VALUE=DATE:20970602"
        "DESCRIPTION:Congress\\; of \"Seven\"" "LOCATION:Madrid" "TRIGGER:-P7D"
    ] {
        assert!(text.contains(&format!("{line}\r\n")), "{line}: {text}");
    }
    assert_eq!(text.matches("BEGIN:VEVENT").count(), 2, "{text}");
}
