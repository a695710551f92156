//! Exports whose download broke off, continued by curl.

use std::process::Command;

use super::site::{SOON, Site, conferences_of_version, wait_until};

const EXPORT: &str = "/v1/exports/conferences";

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
