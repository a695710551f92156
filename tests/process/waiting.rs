//! A second writer waits for the first, up to `--wait`.

use std::process::Stdio;
use std::time::Duration;

use medfeed::store::Writer;

use super::site::{Process, SOON, Site, conferences_of_version};

#[test]
fn a_second_writer_waits_or_names_the_first() {
    let site = Site::with(3);
    site.open_key();
    let file = site.write("conferences.jsonl", conferences_of_version(3, 1));
    let file = file.to_str().unwrap();
    let writer = Writer::open(&site.db(), Duration::ZERO).unwrap();
    let edit = writer.begin().unwrap();

    let holder = format!("process {}", std::process::id());
    let commands = [
        &["import", file][..],
        &["license", "set", "new", "--dataset", "journals"],
        &["license", "remove", "all", "--yes"],
        &["key", "create", "--license", "all"],
        &["check"],
    ];
    for command in commands {
        for (json, wait) in [(false, "0s"), (true, "100ms")] {
            let args = [
                command,
                &["--wait", wait],
                if json { &["--json"] } else { &[] },
            ]
            .concat();
            let done = site.run(&args);
            assert_eq!(done.code, Some(1), "{args:?}: {done:?}");
            let told = if json {
                done.json()["error"].to_string()
            } else {
                done.stderr.clone()
            };
            assert!(told.contains(&holder), "{args:?}: {told}");
            assert!(told.contains("--wait"), "{args:?}: {told}");
        }
    }

    // Commands that only read do not wait.
    for command in [
        &["license", "list"][..],
        &["key", "list"],
        &["export", "out"],
    ] {
        site.json(command);
    }
    let server = site.serve();

    let mut waiting = Process::spawn(
        site.command(["import", file, "--wait", "30s"])
            .stdout(Stdio::null()),
    );
    let found = waiting.ended_within(Duration::from_millis(500));
    assert_eq!(found, None, "it waits");
    drop(edit);
    drop(writer);
    let status = waiting.ended_within(SOON).expect("the import continues");
    assert!(status.success());
    server.stop();
    let note = site.path("feed.redb.writer");
    assert!(!note.exists(), "the writer removes its note");
    assert_eq!(
        site.json(["import", file])["datasets"]["conferences"]["unchanged"],
        3
    );
}
