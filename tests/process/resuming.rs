//! Exports whose download broke off, continued by curl.

use std::process::Command;

use super::site::{Site, conferences_of_version, wait_for};

const EXPORT: &str = "/v1/exports/conferences";

#[test]
fn curl_resumes_a_download_and_mixes_no_two_exports() {
    let (site, key) = Site::open(500);
    let server = site.serve();
    let first = server.client(&key).get(EXPORT);
    let (etag, whole) = (first.header("etag").unwrap(), &first.body);
    let file = site.path("export.jsonl.gz");
    let go_on = |there: usize, more: &[&str]| {
        std::fs::write(&file, &whole[..there]).unwrap();
        let mut curl = Command::new("curl");
        curl.args(["--silent", "--continue-at", "-", "--output"])
            .arg(&file)
            .args(more);
        curl.args([
            "--header",
            &format!("X-API-Key: {key}"),
            &format!("http://{}{EXPORT}", server.address),
        ]);
        curl.output().expect("curl is there").status.code()
    };
    // As docs/callers.md and the guide describe it: `curl -C -` sends no `If-Range` by itself.
    let of_etag = format!("If-Range: {etag}");
    let if_range: [&str; 2] = ["--header", &of_etag];
    // Half of the file, nothing, and all of it.
    for (there, more) in [
        (whole.len() / 2, &[][..]),
        (0, &[]),
        (whole.len(), &[]),
        (whole.len() / 2, &if_range),
    ] {
        assert_eq!(go_on(there, more), Some(0), "{there} {more:?}");
        assert_eq!(std::fs::read(&file).unwrap(), *whole, "{there} {more:?}");
    }
    site.import("conferences.jsonl", conferences_of_version(500, 1));
    let mut client = server.client(&key);
    wait_for("the new export", || {
        client.get(EXPORT).header("etag") != Some(etag)
    });
    assert_eq!(go_on(whole.len() / 2, &if_range), Some(33));
    server.stop();
}
