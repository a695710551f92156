//! The client in `examples`, run as users run it.

use std::io::ErrorKind;
use std::path::Path;
use std::process::Command;

use serde_json::{Value, json};

use super::client::Client;
use super::site::{Site, conferences_of_version};

/// Runs a Python script; `None` where there is no Python with SQLite.
fn python(args: &[&str], key: &str) -> Option<String> {
    match Command::new("python3").args(["-c", "import sqlite3, json"]).output() {
        Err(error) if error.kind() == ErrorKind::NotFound => return None,
        found if !found.as_ref().unwrap().status.success() => return None,
        _ => {}
    }
    let output = Command::new("python3").args(args).env("MEDFEED_KEY", key).env("NO_PROXY", "*").output().unwrap();
    assert!(output.status.success(), "{output:?}");
    Some(String::from_utf8(output.stdout).unwrap().trim_end().to_owned())
}

/// The records of a copy, by id.
fn copied(copy: &Path) -> Vec<Value> {
    const READ: &str = "import sqlite3, sys\nfor (text,) in sqlite3.connect(sys.argv[1])\
                        .execute('SELECT json FROM records ORDER BY id'): print(text)";
    let rows = python(&["-c", READ, copy.to_str().unwrap()], "").unwrap();
    rows.lines().map(|row| serde_json::from_str(row).unwrap()).collect()
}

#[test]
fn a_copy_follows_the_feed() {
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/examples/follow.py");
    let site = Site::new();
    site.import("conferences.jsonl", conferences_of_version(300, 0));
    let key = site.open_key();
    let server = site.serve();
    let copy = site.path("copy.sqlite");
    let url = format!("http://{}", server.address);
    let run = || python(&[script, &url, "conferences", copy.to_str().unwrap()], &key);
    let Some(told) = run() else {
        eprintln!("python3 with sqlite3 is not installed: examples/follow.py is not tried");
        return;
    };
    assert_eq!(told, "300 records loaded");
    let mut client = Client::new(server.address, Some(&key));
    let mut exported = || client.get("/v1/exports/conferences").lines();

    let settle = |what: &str| {
        // What a command committed is served a moment later.
        super::site::wait_until(what, super::site::SOON, || (run().unwrap() == what).then_some(()));
    };
    assert_eq!(run().unwrap(), "0 changes applied");
    site.import("conferences.jsonl", conferences_of_version(250, 1) + "{\"id\":300,\"deleted\":true}\n");
    settle("251 changes applied");
    assert_eq!(copied(&copy), exported());

    site.license("all", "--dataset conferences --year 2026");
    super::site::wait_until("loaded anew", super::site::SOON, || run().unwrap().ends_with("anew").then_some(()));
    assert_eq!(json!(copied(&copy)), json!(exported()));
}
