//! Proofs of a copy: `medfeed pull --verify` by digests alone, exports that were changed on their way, and the shell's lines of
//! the documentation.

use std::io::{BufReader, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::process::Command;
use std::sync::{Arc, Mutex};

use flate2::Compression;
use flate2::write::GzEncoder;

use super::client::{Answer, connect, read_answer, read_head};
use super::pulled::{Pulled, exported};
use super::site::{Site, conferences_of_version};

/// What becomes of an answer on its way; it is told the request's first line.
type Change = fn(&str, &mut Answer);

/// A way to a server that notes what is asked for.
struct Relay {
    address: SocketAddr,
    asked: Arc<Mutex<Vec<String>>>,
    change: Arc<Mutex<Change>>,
}

impl Relay {
    fn new(server: SocketAddr, change: Change) -> Relay {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let relay = Relay {
            address: listener.local_addr().unwrap(),
            asked: Arc::default(),
            change: Arc::new(Mutex::new(change)),
        };
        let (asked, change) = (Arc::clone(&relay.asked), Arc::clone(&relay.change));
        std::thread::spawn(move || {
            for caller in listener.incoming() {
                // A caller that leaves in the middle is the next one's business.
                let _ = pass(caller.unwrap(), server, &asked, &change);
            }
        });
        relay
    }

    fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// What was asked for since the last call, without queries.
    fn asked(&self) -> Vec<String> {
        let asked = std::mem::take(&mut *self.asked.lock().unwrap());
        asked.iter().map(|line| line.split([' ', '?']).take(2).collect::<Vec<_>>().join(" ")).collect()
    }
}

/// Passes one request on, and its answer back.
fn pass(
    caller: TcpStream,
    server: SocketAddr,
    asked: &Mutex<Vec<String>>,
    change: &Mutex<Change>,
) -> std::io::Result<()> {
    let mut caller = BufReader::new(caller);
    let mut request = Vec::new();
    while !request.ends_with(b"\r\n\r\n") {
        if std::io::BufRead::read_until(&mut caller, b'\n', &mut request)? == 0 {
            return Ok(());
        }
    }
    let request = String::from_utf8(request).unwrap();
    let line = request.lines().next().unwrap().to_owned();
    let mut server = BufReader::new(connect(server)?);
    server.get_mut().write_all(request.as_bytes())?;
    let is_head = line.starts_with("HEAD");
    let mut answer = read_answer(&mut server, is_head)?;
    asked.lock().unwrap().push(line.clone());
    change.lock().unwrap()(&line, &mut answer);
    if !is_head {
        answer.headers.retain(|(name, _)| name != "content-length");
        answer.headers.push(("content-length".to_owned(), answer.body.len().to_string()));
    }
    let headers: String = answer.headers.iter().map(|(name, value)| format!("{name}: {value}\r\n")).collect();
    let head = format!("HTTP/1.1 {} X\r\n{headers}connection: close\r\n\r\n", answer.status);
    caller.get_mut().write_all(head.as_bytes())?;
    caller.get_mut().write_all(&answer.body)
}

fn unchanged(_: &str, _: &mut Answer) {}

/// A service that does not know of digests yet.
fn older(_: &str, answer: &mut Answer) {
    answer.headers.retain(|(name, _)| !name.contains("digest"));
}

/// A way on which HEAD is not let through.
fn without_head(line: &str, answer: &mut Answer) {
    if line.starts_with("HEAD") {
        answer.status = 405;
        answer.headers.clear();
    }
}

/// Something in between that rewrites files, so that they are whole by all that gzip tells.
fn rewriting(_: &str, answer: &mut Answer) {
    if answer.header("x-records-digest").is_some() && !answer.body.is_empty() {
        let content = String::from_utf8(answer.gunzip()).unwrap().replacen("Conference 5\"", "Conference 6\"", 1);
        let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
        encoder.write_all(content.as_bytes()).unwrap();
        answer.body = encoder.finish().unwrap();
    }
}

fn pulled_site() -> Pulled {
    let site = Site::new();
    site.import("conferences.jsonl", conferences_of_version(300, 0));
    Pulled::new(site)
}

#[test]
fn a_comparison_downloads_nothing_where_the_service_tells_digests() {
    const HEAD: &str = "HEAD /v1/exports/conferences";
    const GET: &str = "GET /v1/exports/conferences";
    const CHANGES: &str = "GET /v1/conferences/changes";
    let pulled = pulled_site();
    let ways: [(&str, Change, &[&str]); 3] = [
        ("digests", unchanged, &[CHANGES, HEAD]),
        ("an older service", older, &[CHANGES, HEAD, GET]),
        ("no HEAD", without_head, &[CHANGES, HEAD, GET]),
    ];
    let faults = [
        (
            "UPDATE conferences SET json = replace(json, 'Conference 5\"', 'Conference 6\"') WHERE id = 5",
            "differs from the service's content;",
        ),
        ("DELETE FROM conferences WHERE id = 17", "299 records instead of 300"),
        ("INSERT INTO conferences (id, json) VALUES (9000, '{\"id\":9000}')", "301 records instead of 300"),
    ];
    for (name, change, asked) in ways {
        let relay = Relay::new(pulled.server.address, change);
        let verify = || {
            let done = pulled.run_at(&relay.url(), "--dataset conferences --verify");
            assert_eq!(done.code, Some(0), "{name}: {done:?}");
            (done, relay.asked())
        };
        let done = pulled.run_at(&relay.url(), "--dataset conferences --reload");
        assert_eq!((done.code, relay.asked()), (Some(0), vec![GET.to_owned()]), "{name}: {done:?}");
        let (done, requests) = verify();
        assert!(done.stdout.ends_with("300 records; equal to the service's\n"), "{name}: {done:?}");
        assert_eq!(requests, asked, "{name}");
        for (sql, fault) in faults {
            pulled.tamper(sql);
            let (done, requests) = verify();
            assert!(done.stderr.contains(fault) && done.stdout.contains("; repaired"), "{name}: {sql}: {done:?}");
            assert_eq!(requests, [asked, &[GET]].concat(), "{name}: {sql}");
            pulled.assert_equal("conferences");
        }
    }
}

#[test]
fn an_export_that_was_changed_on_its_way_is_not_taken() {
    let pulled = pulled_site();
    let relay = Relay::new(pulled.server.address, unchanged);
    for copy in ["copy.sqlite", "folder/"] {
        let run = |args: &str| {
            let mut command = pulled.site.command(["pull", &relay.url(), "--to", copy, "--dataset", "conferences"]);
            command.args(args.split_whitespace()).env("MEDFEED_KEY", &pulled.key).output().expect("the program starts")
        };
        *relay.change.lock().unwrap() = unchanged;
        assert_eq!(run("").status.code(), Some(0), "{copy}");
        let read = || match copy.strip_suffix('/') {
            None => format!("{:?}", pulled.content("conferences")),
            Some(folder) => ["conferences.jsonl", "conferences.csv", "medfeed-copy.json"]
                .map(|name| std::fs::read_to_string(pulled.site.path(folder).join(name)).unwrap())
                .join(""),
        };
        let before = read();
        *relay.change.lock().unwrap() = rewriting;
        let output = run("--reload --json");
        let [stdout, stderr] = [output.stdout, output.stderr].map(|bytes| String::from_utf8(bytes).unwrap());
        assert_eq!(output.status.code(), Some(1), "{copy}: {stderr}");
        assert!(!stdout.contains("\"entry\""), "{copy}: {stdout}");
        assert!(stderr.contains("changed on its way") && stderr.contains("X-Records-Digest"), "{copy}: {stderr}");
        assert_eq!(read(), before, "{copy}");
    }
    let expected = exported(&mut pulled.client(), "conferences");
    assert_eq!(pulled.content("conferences"), expected);
}

#[test]
fn the_lines_of_the_documentation_prove_a_file() {
    if Command::new("openssl").arg("version").output().is_err() {
        eprintln!("openssl is not installed: the documentation's lines are not tried");
        return;
    }
    const LINES: &str = "grep -i x-records-digest conferences.headers\n\
        echo \"x-records-digest: sha-256=:$(gzip -dc conferences.jsonl.gz | openssl dgst -sha256 -binary | base64):\"";
    let pulled = pulled_site();
    let page = String::from_utf8(pulled.client().get("/docs").body).unwrap();
    assert!(page.contains(&LINES.replace('"', "&quot;")) || page.contains(LINES), "the lines stand in the guide");
    let mut stream = BufReader::new(connect(pulled.server.address).unwrap());
    stream.get_mut().write_all(pulled.client().request("/v1/exports/conferences").as_bytes()).unwrap();
    let (_, headers) = read_head(&mut stream).unwrap();
    let headers: String = headers.iter().map(|(name, value)| format!("{name}: {value}\r\n")).collect();
    pulled.site.write("conferences.headers", headers);
    pulled.site.write("conferences.jsonl.gz", pulled.client().get("/v1/exports/conferences").body);
    let prove = || {
        let mut shell = Command::new("sh");
        let output = shell.args(["-c", LINES]).current_dir(pulled.site.path(".")).output().unwrap();
        let lines: Vec<String> =
            String::from_utf8(output.stdout).unwrap().lines().map(|line| line.trim().to_owned()).collect();
        assert_eq!(lines.len(), 2, "{lines:?}");
        lines[0] == lines[1]
    };
    assert!(prove());
    let mut other = GzEncoder::new(Vec::new(), Compression::fast());
    other.write_all(pulled.client().get("/v1/exports/conferences").gunzip().strip_suffix(b"\n").unwrap()).unwrap();
    pulled.site.write("conferences.jsonl.gz", other.finish().unwrap());
    assert!(!prove(), "another file is noticed");
}
