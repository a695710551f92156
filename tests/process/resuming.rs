//! Exports whose download broke off.

use std::io::{BufRead, BufReader, Read, Write};
use std::process::Command;

use super::client::{Client, connect, read_head};
use super::site::{SOON, Server, Site, conferences_of_version, wait_until};

const EXPORT: &str = "/v1/exports/conferences";

/// The first bytes of an export, about half of them, and its tag; the connection is cut then.
fn cut_off(server: &Server, key: &str) -> (Vec<u8>, String) {
    let mut connection = BufReader::new(connect(server.address).unwrap());
    let request = Client::new(server.address, Some(key)).request(EXPORT);
    connection.get_mut().write_all(request.as_bytes()).unwrap();
    let (status, headers) = read_head(&mut connection).unwrap();
    assert_eq!(status, 200);
    let header = |name: &str| headers.iter().find(|(found, _)| found == name).unwrap().1.clone();
    let half = header("content-length").parse::<usize>().unwrap() / 2;
    let mut first = vec![0; half];
    connection.read_exact(&mut first).unwrap();
    assert!(!connection.fill_buf().unwrap().is_empty(), "more would come");
    (first, header("etag"))
}

fn resumed(server: &Server, key: &str, from: usize, etag: &str) -> super::client::Answer {
    let range = format!("bytes={from}-");
    server.client(key).with_header("range", &range).with_header("if-range", etag).get(EXPORT)
}

#[test]
fn a_download_that_broke_off_goes_on() {
    let site = Site::new();
    site.import("conferences.jsonl", conferences_of_version(2000, 0));
    let key = site.open_key();
    let server = site.serve();
    let whole = server.client(&key).get(EXPORT);
    let (mut bytes, etag) = cut_off(&server, &key);
    let rest = resumed(&server, &key, bytes.len(), &etag);
    assert_eq!(rest.status, 206);
    bytes.extend_from_slice(&rest.body);
    assert_eq!((bytes == whole.body, rest.header("x-sync-token")), (true, whole.header("x-sync-token")));

    // Another server of the same file goes on with it, too.
    let other = site.serve();
    let (first, etag) = cut_off(&server, &key);
    assert_eq!(resumed(&other, &key, first.len(), &etag).body, whole.body[first.len()..]);

    // After a commit the whole new one comes.
    site.import("conferences.jsonl", conferences_of_version(2000, 1));
    let new = wait_until("the commit", SOON, || {
        let answer = resumed(&server, &key, first.len(), &etag);
        (answer.status == 200).then_some(answer)
    });
    assert_eq!(new.lines().len(), 2000);
    assert_ne!(new.body, whole.body);
    server.stop();
    other.stop();
}

#[test]
fn curl_goes_on_where_it_was_cut_off() {
    let site = Site::new();
    site.import("conferences.jsonl", conferences_of_version(500, 0));
    let key = site.open_key();
    let server = site.serve();
    let whole = server.client(&key).get(EXPORT).body;
    let file = site.path("export.jsonl.gz");
    // Half of the file, nothing, and all of it.
    for there in [whole.len() / 2, 0, whole.len()] {
        std::fs::write(&file, &whole[..there]).unwrap();
        let mut curl = Command::new("curl");
        curl.args(["--silent", "--show-error", "--continue-at", "-", "--output"]).arg(&file);
        curl.args(["--header", &format!("X-API-Key: {key}"), &format!("http://{}{EXPORT}", server.address)]);
        let done = curl.output().expect("curl is there");
        assert!(done.status.success(), "{there}: {}", String::from_utf8_lossy(&done.stderr));
        assert_eq!(std::fs::read(&file).unwrap(), whole, "{there}");
    }
    server.stop();
}

/// As docs/callers.md and the guide say: `curl -C -` sends no `If-Range` by itself.
#[test]
fn curl_with_the_etag_mixes_no_two_exports() {
    let site = Site::new();
    site.import("conferences.jsonl", conferences_of_version(500, 0));
    let key = site.open_key();
    let server = site.serve();
    let first = server.client(&key).get(EXPORT);
    let etag = first.header("etag").unwrap();
    let file = site.path("export.jsonl.gz");
    let go_on = || {
        std::fs::write(&file, &first.body[..first.body.len() / 2]).unwrap();
        let mut curl = Command::new("curl");
        curl.args(["--silent", "--continue-at", "-", "--header", &format!("If-Range: {etag}"), "--output"]).arg(&file);
        curl.args(["--header", &format!("X-API-Key: {key}"), &format!("http://{}{EXPORT}", server.address)]);
        curl.output().expect("curl is there").status.code()
    };
    assert_eq!(go_on(), Some(0));
    assert_eq!(std::fs::read(&file).unwrap(), first.body);
    site.import("conferences.jsonl", conferences_of_version(500, 1));
    let mut client = server.client(&key);
    wait_until("the new export", SOON, || (client.get(EXPORT).header("etag") != Some(etag)).then_some(()));
    assert_eq!(go_on(), Some(33));
    server.stop();
}
