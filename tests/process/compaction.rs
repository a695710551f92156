//! Compaction: the same database in a smaller file. No writer is lost meanwhile.

use std::fs;
use std::os::unix::fs::MetadataExt;

use super::site::{Site, conferences_of_version, version_of, wait_for};

#[test]
fn a_compaction_changes_nothing_but_the_size() {
    let site = Site::new();
    for version in 0..6 {
        site.import("conferences.jsonl", conferences_of_version(400, version));
    }
    let key = site.open_key();
    let server = site.serve();
    let mut client = server.client(&key);
    let old = client.token("conferences");
    let page = client.get("/v1/conferences?limit=5").json();
    let cursor = page["next_cursor"].as_str().expect("a cursor").to_owned();
    site.import("conferences.jsonl", conferences_of_version(400, 6));
    let since = format!("/v1/conferences/changes?since={old}&limit=1000");
    wait_for("the import", || client.get(&since).items().len() == 400);
    let targets = [
        since.clone(),
        format!("/v1/conferences?limit=5&cursor={cursor}"),
        "/v1/exports/conferences".to_owned(),
    ];
    let data = |answer: super::client::Answer| {
        assert_eq!(answer.status, 200);
        answer.body
    };
    let before = targets.iter();
    let before: Vec<_> = before.map(|target| data(client.get(target))).collect();
    let inode = fs::metadata(site.db()).unwrap().ino();

    let size = fs::metadata(site.db()).unwrap().len();
    let files = site.files();
    let report = site.json(["compact"]);
    assert_eq!(report.as_object().unwrap().len(), 2, "{report}");
    assert_eq!(report["bytes_before"], size);
    let expected = fs::metadata(site.db()).unwrap().len();
    assert_eq!(report["bytes_after"], expected);
    assert!(
        report["bytes_after"].as_u64() <= report["bytes_before"].as_u64(),
        "{report}"
    );
    let found = fs::metadata(site.db()).unwrap().ino();
    assert_ne!(found, inode, "it is another file");
    assert_eq!(site.files(), files);
    site.check();

    for (target, before) in targets.iter().zip(&before) {
        let again = data(client.get(target));
        let text = String::from_utf8_lossy;
        assert!(
            again == *before,
            "{target}: {:.2000} became {:.2000}",
            text(before),
            text(&again)
        );
    }
    site.import("conferences.jsonl", conferences_of_version(400, 7));
    wait_for("the running server shows the commit", || {
        version_of(&client.get(&since).items()) == 7
    });
    let fresh = site.serve();
    assert_eq!(version_of(&fresh.client(&key).get(&since).items()), 7);
    fresh.stop();
    server.stop();
    let second = site.json(["compact"]);
    let third = site.json(["compact"]);
    assert!(
        third["bytes_after"].as_u64() <= second["bytes_after"].as_u64(),
        "{second} {third}"
    );
}
