//! The clients in `examples`, run as users run them.

use std::fs::File;
use std::io::{BufRead, BufReader, Write};
use std::net::TcpListener;
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::sync::{Arc, LazyLock, Mutex};

use super::client::Client;
use super::site::{Process, SOON, Site, conferences_of_version, wait_until};

/// Runs a Python script; `None` without Python with SQLite.
fn python(args: &[&str], key: &str) -> Option<String> {
    let output = try_python(args, key)?;
    assert!(output.status.success(), "{output:?}");
    Some(String::from_utf8(output.stdout).unwrap().trim_end().to_owned())
}

/// Runs a Python script, which may fail; `None` without Python with SQLite.
fn try_python(args: &[&str], key: &str) -> Option<Output> {
    static HAS_SQLITE: LazyLock<bool> = LazyLock::new(|| {
        let found = Command::new("python3").args(["-c", "import sqlite3, json"]).output();
        found.is_ok_and(|found| found.status.success())
    });
    HAS_SQLITE
        .then(|| Command::new("python3").args(args).env("MEDFEED_KEY", key).env("NO_PROXY", "*").output().unwrap())
}

/// The stored JSON of a copy's records, by id.
fn copied(copy: &Path) -> Vec<String> {
    const READ: &str = "import sqlite3, sys\nfor (text,) in sqlite3.connect(sys.argv[1])\
                        .execute('SELECT json FROM records ORDER BY id'): print(text)";
    let rows = python(&["-c", READ, copy.to_str().unwrap()], "").unwrap();
    rows.lines().map(str::to_owned).collect()
}

const SCRIPT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/examples/follow.py");

/// Answers one connection after the other with these bytes. Returns the address.
pub fn answering(answers: Vec<Vec<u8>>) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        for answer in answers {
            let (mut stream, _) = listener.accept().unwrap();
            let lines = BufReader::new(stream.try_clone().unwrap()).lines();
            lines.take_while(|line| line.as_ref().is_ok_and(|line| !line.is_empty())).for_each(drop);
            stream.write_all(&answer).unwrap();
        }
    });
    format!("http://{address}")
}

/// An answer with a gzip file of one record, whose headers announce `count` records. `more` are further headers.
pub fn export_of(count: usize, more: &str) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    encoder.write_all(b"{\"id\":7}\n").unwrap();
    let body = encoder.finish().unwrap();
    let head = format!(
        "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: {}\r\nX-Record-Count: {count}\r\nX-Sync-Token: t\r\n{more}\r\n",
        body.len()
    );
    [head.into_bytes(), body].concat()
}

#[test]
fn requests_broken_by_a_restart_are_retried() {
    let site = Site::new();
    let copy = site.path("copy.sqlite");
    let busy = b"HTTP/1.1 503 Service Unavailable\r\nConnection: close\r\nRetry-After: 0\r\nContent-Length: 0\r\n\r\n";
    // No answer, a part of an answer, a refusal, and then the file.
    let url = answering(vec![Vec::new(), export_of(1, "")[..90].to_vec(), busy.to_vec(), export_of(1, "")]);
    let told = python(&[SCRIPT, &url, "conferences", copy.to_str().unwrap()], "mfk_x");
    assert!(told.is_none_or(|told| told == "1 records loaded"));
}

#[test]
fn a_failure_is_one_line_and_changes_nothing() {
    let site = Site::new();
    let copy = site.path("copy.sqlite");
    let page = b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 5\r\n\r\n<html".to_vec();
    let gone = b"HTTP/1.1 401 Unauthorized\r\nConnection: close\r\nContent-Length: 0\r\n\r\n".to_vec();
    let resync = b"HTTP/1.1 410 Gone\r\nConnection: close\r\nContent-Length: 0\r\n\r\n".to_vec();
    let cases = [
        (vec![export_of(2, "")], "holds 1 records instead of 2"),
        (vec![export_of(1, "X-Records-Digest: sha-256=:x:\r\n")], "its digest is another"),
        (vec![page.clone()], "check the URL"),
        (vec![gone], "401"),
        (vec![resync.clone(), page], "check the URL"),
        (vec![resync.clone(), resync], "check the URL"),
    ];
    for (answers, expected) in cases {
        let url = answering(answers);
        let Some(output) = try_python(&[SCRIPT, &url, "journals", copy.to_str().unwrap()], "mfk_x") else { return };
        let told = String::from_utf8(output.stderr).unwrap();
        assert!(!output.status.success() && told.starts_with("error: ") && told.contains(expected), "{told}");
        assert_eq!(told.lines().count(), 1, "{told}");
        assert_eq!(copied(&copy), [""; 0]);
    }
}

/// A service that redirects every request to another host, and that host. Both record their requests.
pub struct TwoHosts {
    pub first: String,
    pub second: String,
    heads: [Arc<Mutex<Vec<String>>>; 2],
}

impl TwoHosts {
    pub fn new(status: &'static str) -> TwoHosts {
        let (second, seen) =
            recording("127.0.0.2", |_| b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 2\r\n\r\n{}".to_vec());
        let to = second.clone();
        let (first, asked) = recording("127.0.0.1", move |head| redirect(status, &to, head));
        TwoHosts { first, second, heads: [asked, seen] }
    }

    /// Checks that the first host got the key, once, and the second host got no request.
    pub fn assert_kept(&self, key: &str, what: &str) {
        let [asked, seen] = self.heads.each_ref().map(|heads| std::mem::take(&mut *heads.lock().unwrap()));
        assert!(asked.len() == 1 && asked[0].contains(key), "{what}: {asked:?}");
        assert!(seen.is_empty(), "{what}: the second host got a request: {seen:?}");
    }
}

/// Listens on an address. Returns its URL and the heads of all requests. `answer` takes a head.
pub fn recording(
    address: &str,
    answer: impl Fn(&str) -> Vec<u8> + Send + 'static,
) -> (String, Arc<Mutex<Vec<String>>>) {
    let listener = TcpListener::bind((address, 0)).unwrap();
    let (url, heads) = (format!("http://{}", listener.local_addr().unwrap()), Arc::<Mutex<Vec<String>>>::default());
    let noted = Arc::clone(&heads);
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let mut reader = BufReader::new(stream.unwrap());
            let mut head = String::new();
            while reader.read_line(&mut head).is_ok_and(|length| length > 2) {}
            // A browser may open a connection and leave.
            if !head.is_empty() {
                let _ = reader.get_mut().write_all(&answer(&head));
                noted.lock().unwrap().push(head);
            }
        }
    });
    (url, heads)
}

/// The redirect of a request to the same path of another host.
pub fn redirect(status: &str, to: &str, head: &str) -> Vec<u8> {
    let path = head.split(' ').nth(1).unwrap_or_default();
    let location = format!("Location: {to}{path}");
    format!("HTTP/1.1 {status}\r\n{location}\r\nConnection: close\r\nContent-Length: 0\r\n\r\n").into_bytes()
}

/// The statuses of redirects.
pub const REDIRECTS: [&str; 5] =
    ["301 Moved Permanently", "302 Found", "303 See Other", "307 Temporary Redirect", "308 Permanent Redirect"];

#[test]
fn the_key_is_sent_to_no_other_host() {
    let site = Site::new();
    let copy = site.path("copy.sqlite");
    for status in REDIRECTS {
        let hosts = TwoHosts::new(status);
        let Some(output) = try_python(&[SCRIPT, &hosts.first, "journals", copy.to_str().unwrap()], "mfk_secret") else {
            return;
        };
        let told = String::from_utf8(output.stderr).unwrap();
        let expected = format!("the service redirects to {}; use that address if you trust it\n", hosts.second);
        assert!(!output.status.success() && told.ends_with(&expected), "{status}: {told}");
        hosts.assert_kept("mfk_secret", status);
    }
}

#[test]
fn a_key_is_sent_without_blanks_around_it_and_is_not_shown() {
    let site = Site::new();
    let cases = [("mfk_secret\r\n", true), (" mfk_secret", true), ("mfk_secret\rx", false), ("mfk_secreté", false)];
    for (index, (key, is_valid)) in cases.into_iter().enumerate() {
        let (url, heads) = recording("127.0.0.1", |head| match head.contains("X-Api-Key: mfk_secret\r\n") {
            true => export_of(1, ""),
            false => b"HTTP/1.1 401 X\r\nConnection: close\r\nContent-Length: 0\r\n\r\n".to_vec(),
        });
        let copy = site.path(&format!("{index}.sqlite"));
        let Some(output) = try_python(&[SCRIPT, &url, "journals", copy.to_str().unwrap()], key) else { return };
        assert_eq!(output.status.success(), is_valid, "{key:?}: {output:?}");
        assert!(!String::from_utf8(output.stderr).unwrap().contains("secret"), "{key:?}");
        assert!(is_valid || heads.lock().unwrap().is_empty(), "{key:?}");
    }
}

#[test]
fn a_follower_continues_after_a_reader_has_locked_the_copy() {
    let site = Site::new();
    site.import("conferences.jsonl", conferences_of_version(30, 0));
    let key = site.open_key();
    let server = site.serve();
    let (copy, log) = (site.path("copy.sqlite"), site.path("follower.log"));
    let url = format!("http://{}", server.address);
    if python(&[SCRIPT, &url, "conferences", copy.to_str().unwrap()], &key).is_none() {
        return;
    }
    let reader = rusqlite::Connection::open(&copy).unwrap();
    reader.execute_batch("BEGIN; SELECT count(*) FROM records").unwrap();
    let mut command = Command::new("python3");
    command.args([SCRIPT, &url, "conferences", copy.to_str().unwrap(), "--every", "1"]).env("MEDFEED_KEY", &key);
    let _follower =
        Process::spawn(command.env("NO_PROXY", "*").stdout(Stdio::null()).stderr(File::create(&log).unwrap()));
    let locked = "error: the copy cannot be written: database is locked\n";
    wait_until("locked", SOON, || std::fs::read_to_string(&log).unwrap().contains(locked).then_some(()));
    reader.execute_batch("COMMIT").unwrap();
    site.import("conferences.jsonl", conferences_of_version(3, 1));
    wait_until("followed", SOON, || copied(&copy)[0].contains("version 1").then_some(()));
}

#[test]
fn retry_after_with_a_time_pauses_until_then() {
    let site = Site::new();
    let copy = site.path("copy.sqlite");
    // The time is the present one by the service's clock.
    let busy = b"HTTP/1.1 503 Service Unavailable\r\nConnection: close\r\nDate: Wed, 21 Oct 2026 07:28:00 GMT\r\nRetry-After: Wed, \
        21 Oct 2026 07:28:00 GMT\r\nContent-Length: 0\r\n\r\n";
    let mut answers = vec![busy.to_vec(); 6];
    answers.push(export_of(1, ""));
    let (url, begun) = (answering(answers), std::time::Instant::now());
    let told = python(&[SCRIPT, &url, "conferences", copy.to_str().unwrap()], "mfk_x");
    assert!(told.is_none_or(|told| told == "1 records loaded"));
    // Without the time, the pauses are 1, 2, 4, 8, 16 and 32 seconds.
    assert!(begun.elapsed() < SOON, "{:?}", begun.elapsed());
    const PAUSES: &str = "import sys; sys.path.insert(0, sys.argv[1]); sys.dont_write_bytecode = True; import follow\n\
        for after in sys.argv[2:]: print(follow.asked_pause_s({'Retry-After': after, 'Date': 'Wed, 21 Oct 2026 07:28:00 GMT'}, -1))";
    let folder = Path::new(SCRIPT).parent().unwrap().to_str().unwrap();
    let cases = ["7", "Wed, 21 Oct 2026 07:28:09 GMT", "Wed, 21 Oct 2026 07:27:00 GMT", "", "soon"];
    if let Some(told) = python(&[&["-c", PAUSES, folder][..], &cases].concat(), "") {
        assert_eq!(told, "7\n9\n0\n-1\n-1");
    }
}

#[test]
fn a_dataset_that_leaves_the_license_leaves_the_copy() {
    let site = Site::new();
    site.import("conferences.jsonl", conferences_of_version(300, 0));
    site.license("all", "--dataset conferences --dataset journals");
    let (_, key) = site.key("all", &[]);
    let server = site.serve();
    let copy = site.path("copy.sqlite");
    let url = format!("http://{}", server.address);
    let run = || try_python(&[SCRIPT, &url, "conferences", copy.to_str().unwrap()], &key);
    let Some(loaded) = run() else { return };
    assert!(loaded.status.success(), "{loaded:?}");
    let other = try_python(&[SCRIPT, &url, "journals", copy.to_str().unwrap()], &key).unwrap();
    let told = String::from_utf8(other.stderr).unwrap();
    assert!(told.contains("is a copy of conferences, not of journals; give another file"), "{told}");
    assert_eq!(copied(&copy).len(), 300);
    // Another refusal removes nothing.
    let unlicensed = |status: &str, code: &str| {
        let body = format!("{{\"type\":\"http://x/docs/errors/{code}\",\"detail\":\"No.\",\"request_id\":\"r\"}}");
        let length = body.len();
        format!("HTTP/1.1 {status}\r\nConnection: close\r\nContent-Length: {length}\r\n\r\n{body}").into_bytes()
    };
    let lacks = || unlicensed("403 Forbidden", "dataset_not_licensed");
    let cases = [
        vec![unlicensed("401 Unauthorized", "dataset_not_licensed")],
        vec![unlicensed("403 Forbidden", "ip_not_allowed")],
        vec![lacks(), unlicensed("401 Unauthorized", "revoked_api_key")],
    ];
    for answers in cases {
        let url = answering(answers);
        let output = try_python(&[SCRIPT, &url, "conferences", copy.to_str().unwrap()], "mfk_x").unwrap();
        let told = String::from_utf8(output.stderr).unwrap();
        assert!(!output.status.success() && told.contains("No."), "{told}");
        assert_eq!(copied(&copy).len(), 300, "{told}");
    }
    let mut client = Client::new(server.address, Some(&key));
    site.license("all", "--dataset journals");
    wait_until("narrowed", SOON, || (client.get("/v1/conferences").status == 403).then_some(()));
    for told_of in [true, false] {
        let output = run().unwrap();
        let told = String::from_utf8(output.stderr).unwrap();
        assert!(!output.status.success() && told.lines().count() == 1, "{told}");
        assert_eq!(told.contains("; 300 records removed from the copy"), told_of, "{told}");
        assert_eq!(copied(&copy), [""; 0]);
    }
    site.license("all", "--dataset conferences --dataset journals --widen");
    wait_until("widened", SOON, || run().unwrap().status.success().then_some(()));
    assert_eq!(copied(&copy).len(), 300);
}

#[test]
fn an_assistant_queries_a_copy() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR"));
    let installed = folder.join("target/recipes/mcp/bin/python");
    let has_package = |python: &&Path| {
        let found = "import sys; from importlib.util import find_spec; sys.exit(not find_spec('mcp'))";
        Command::new(python).args(["-c", found]).output().is_ok_and(|found| found.status.success())
    };
    let Some(python) = [installed.as_path(), Path::new("python3")].into_iter().find(has_package) else {
        eprintln!("the Python package mcp is not installed: examples/mcp is not tried");
        return;
    };
    let mut check = Command::new(python);
    let done =
        check.arg(folder.join("examples/mcp/check.py")).env("MEDFEED_BIN", env!("CARGO_BIN_EXE_medfeed")).output();
    let done = done.unwrap();
    let told = [done.stdout, done.stderr].concat();
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&told));
}

#[test]
fn a_copy_follows_the_feed() {
    let site = Site::new();
    site.import("conferences.jsonl", conferences_of_version(300, 0));
    let key = site.open_key();
    let server = site.serve();
    let copy = site.path("copy.sqlite");
    let url = format!("http://{}", server.address);
    let verify = || python(&[SCRIPT, &url, "conferences", copy.to_str().unwrap(), "--verify"], &key).unwrap();
    let run = || python(&[SCRIPT, &url, "conferences", copy.to_str().unwrap()], &key);
    let Some(told) = run() else {
        eprintln!("python3 with sqlite3 is not installed: examples/follow.py is not tried");
        return;
    };
    assert_eq!(told, "300 records loaded");
    let mut client = Client::new(server.address, Some(&key));
    let mut exported = || String::from_utf8(client.get("/v1/exports/conferences").gunzip()).unwrap();
    let copied = || copied(&copy).iter().map(|line| format!("{line}\n")).collect::<String>();

    assert_eq!(run().unwrap(), "0 changes applied");
    site.import("conferences.jsonl", conferences_of_version(250, 1) + "{\"id\":300,\"deleted\":true}\n");
    wait_until("the import is served", SOON, || exported().contains("version 1").then_some(()));
    assert_eq!(run().unwrap(), "251 changes applied");
    assert_eq!(copied(), exported());
    assert_eq!(verify(), "0 changes applied; equal to the service's");
    const SPOIL: &str =
        "import sqlite3, sys; copy = sqlite3.connect(sys.argv[1]); copy.execute(sys.argv[2]); copy.commit()";
    for sql in ["UPDATE records SET json = json || ' ' WHERE id = 9", "DELETE FROM records WHERE id = 9"] {
        python(&["-c", SPOIL, copy.to_str().unwrap(), sql], "");
        assert_eq!(verify(), "0 changes applied; the copy differs: 299 records loaded anew", "{sql}");
        assert_eq!(copied(), exported());
    }

    // Numbers and characters stay as they are written. The news arrives long before a minute is over.
    let mut command = Command::new("python3");
    command.args([SCRIPT, &url, "conferences", copy.to_str().unwrap(), "--every", "60"]);
    let mut follower = Process::spawn(command.env("MEDFEED_KEY", &key).env("NO_PROXY", "*"));
    for name in ["first é \\u2028 \\\\", "second []{}, \\\"data\\\": ["] {
        site.import("conferences.jsonl", format!("{{\"id\":8,\"name\":\"{name}\",\"city\":\"Zürich\"}}\n"));
        let word = name.split(' ').next().unwrap();
        wait_until("followed", SOON, || copied().contains(word).then_some(()));
        assert_eq!(copied(), exported());
    }
    follower.kill();
    assert_eq!(verify(), "0 changes applied; equal to the service's");

    // A change of the license brings only the differences; a restore brings everything.
    let backup = site.backup("backup.redb");
    site.license("all", "--dataset conferences --year 2026");
    wait_until("narrowed", SOON, || (exported().lines().count() < 100).then_some(()));
    assert!(run().unwrap().ends_with("changes applied"), "the license changed, so only the difference is sent");
    assert_eq!(copied(), exported());
    site.json(["restore".as_ref(), backup.as_os_str(), "--yes".as_ref()]);
    wait_until("restored", SOON, || (exported().lines().count() > 100).then_some(()));
    assert!(run().unwrap().ends_with("anew"), "another history");
    assert_eq!(copied(), exported());
}
