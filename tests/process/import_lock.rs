//! An import reads, checks and asks without the writer's lock. If there was another commit meanwhile, it checks the
//! rows that it has read again, under the lock.

use std::process::Command;
use std::time::Duration;

use medfeed::store::Writer;
use medfeed::store::write::licensing::KeySettings;

use super::site::{STATUSES, Site, conferences_of_version};
use super::terminals::Terminal;

/// A site with a few conferences, a license and a key.
fn keyed_site() -> Site {
    let site = Site::new();
    site.import("conferences.jsonl", conferences_of_version(5, 1));
    site.license("acme", "--dataset conferences");
    site.key("acme", &[]);
    site
}

/// A conference with a certain name.
fn named_both(id: u64) -> String {
    format!("{{\"id\":{id},\"name\":\"Both\",\"year\":2026,{STATUSES}}}\n")
}

/// Commits another conference of that name, and releases the lock.
fn commit_another(site: &Site, writer: Writer) {
    let file = site.write("between/conferences.jsonl", named_both(901));
    let sources = medfeed::import::Source::find(&[file], medfeed::import::SourceOptions::default()).unwrap();
    let rows = medfeed::import::read_sources(&sources, &medfeed::import::ReadOptions::default()).unwrap();
    let mut edit = writer.begin().unwrap();
    let merged =
        medfeed::import::merge(rows, &edit.base().unwrap(), &medfeed::import::MergeOptions::default()).unwrap();
    edit.apply(&merged.batch).unwrap();
    edit.create_key("acme", KeySettings::default()).unwrap();
    edit.commit().unwrap();
}

#[test]
fn an_import_is_checked_again_if_another_commit_came_in_between() {
    let site = keyed_site();
    site.write("new/conferences.jsonl", named_both(900));
    let writer = Writer::open(&site.db(), Duration::ZERO).unwrap();
    let Some(mut import) = Terminal::start(&site, "import new --yes --wait 5m") else { return };
    import.wait_for("waiting for the writer's lock");
    commit_another(&site, writer);
    let (code, told) = import.end();
    // It is checked against the state that it changes: the other row of this name came first.
    assert!(code == Some(0) && told.contains("is also the name of conference 901"), "{told}");
    assert!(told.contains("1 added") && told.contains("Committed, with 1 warning."), "{told}");
    site.check();
}

/// Commands that change the file while an import asks. Afterwards the seqs and the numbers of records may be the same.
#[test]
fn an_import_is_merged_with_the_state_that_it_changes() {
    // The commands that run while the import asks, and the venue of conference 1 afterwards.
    let restore: &[&str] = &["restore", "backup.redb", "--yes"];
    let cases: [(&str, &[&[&str]], &str); 6] = [
        ("nothing", &[], "version 2"),
        ("a restore", &[restore], "version 1"),
        // The restore takes one seq. So the newest seq is that of the lost commit again.
        ("a restore, and as many rows", &[restore, &["import", "nine", "--yes"]], "version 3"),
        ("a restore, and more rows", &[restore, &["import", "ten", "--yes"]], "version 3"),
        ("another import", &[&["import", "ten", "--yes"]], "version 3"),
        ("a removal", &[&["import", "removal", "--yes"]], "-"),
    ];
    for (what, commands, expected) in cases {
        let site = Site::new();
        site.import("conferences.jsonl", conferences_of_version(10, 1));
        site.backup("backup.redb");
        site.import("conferences.jsonl", conferences_of_version(10, 2));
        site.write("nine/conferences.jsonl", conferences_of_version(9, 3));
        site.write("ten/conferences.jsonl", conferences_of_version(10, 3));
        site.write("removal/conferences.jsonl", "{\"id\":1,\"deleted\":true}\n");
        // The row sets only the city. All other values are those of the database.
        site.write("new/conferences.jsonl", "{\"id\":1,\"city\":\"Paris \"}\n");
        let Some(mut import) = Terminal::start(&site, "import new") else { return };
        import.wait_for("Commit nevertheless? [y/N]");
        for command in commands {
            let done = site.run(*command);
            assert_eq!(done.code, Some(0), "{what}: {command:?}: {done:?}");
        }
        import.answer("y\n");
        let (code, told) = import.end();
        if expected == "-" {
            assert!(code == Some(1) && told.contains("start_date_status: is required"), "{what}: {told}");
        } else {
            assert_eq!(code, Some(0), "{what}: {told}");
            let shown = site.run(["show", "conferences", "1"]).stdout;
            assert!(shown.contains(expected) && shown.contains("Paris "), "{what}: {shown}");
        }
        site.check();
    }
}

#[test]
fn a_warning_that_another_commit_causes_is_refused_by_strict() {
    let site = keyed_site();
    site.write("new/conferences.jsonl", named_both(900));
    let writer = Writer::open(&site.db(), Duration::ZERO).unwrap();
    let Some(mut import) = Terminal::start(&site, "import new --strict --wait 5m") else { return };
    // The import has read the rows, and has found no fault.
    import.wait_for("waiting for the writer's lock");
    commit_another(&site, writer);
    let (code, told) = import.end();
    assert_eq!(code, Some(1), "{told}");
    assert!(
        told.contains("is also the name of conference 901") && told.contains("--strict refuses warnings"),
        "{told}"
    );
    assert_eq!(site.run(["show", "conferences", "900"]).code, Some(1));
}

#[test]
fn a_named_pipe_is_read_once_though_another_commit_came_between() {
    let site = keyed_site();
    let pipe = site.path("pipe");
    assert!(Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    let writer = Writer::open(&site.db(), Duration::ZERO).unwrap();
    let Some(mut import) = Terminal::start(&site, "import pipe --dataset conferences --yes --wait 5m") else { return };
    // The pipe can be read only once. Opening it waits for the reader.
    std::thread::spawn(move || std::fs::write(pipe, named_both(900)));
    import.wait_for("waiting for the writer's lock");
    commit_another(&site, writer);
    let (code, told) = import.end();
    assert!(code == Some(0) && told.contains("1 added") && told.contains("Committed, with 1 warning."), "{told}");
    site.check();
}
