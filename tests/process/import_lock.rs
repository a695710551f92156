//! An import reads, checks and asks without the writer's lock. If there was another commit meanwhile, it checks the
//! rows that it has read again, under the lock.

use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use medfeed::store::Writer;
use medfeed::store::write::licensing::KeySettings;

use super::site::{Process, SOON, STATUSES, Site, conferences_of_version};
use super::terminals::Terminal;

/// A conference with a certain name.
fn named_both(id: u64) -> String {
    format!("{{\"id\":{id},\"name\":\"Both\",\"year\":2026,{STATUSES}}}\n")
}

/// Commits another conference of that name, and releases the lock.
fn commit_another(site: &Site, writer: Writer) {
    let file = site.write("between/conferences.jsonl", named_both(901));
    let sources =
        medfeed::import::Source::find(&[file], medfeed::import::SourceOptions::default()).unwrap();
    let rows =
        medfeed::import::read_sources(&sources, &medfeed::import::ReadOptions::default()).unwrap();
    let mut edit = writer.begin().unwrap();
    let options = medfeed::import::MergeOptions::default();
    let merged = medfeed::import::merge(rows, &edit.base().unwrap(), &options).unwrap();
    edit.apply(&merged.batch).unwrap();
    edit.create_key("acme", KeySettings::default()).unwrap();
    edit.commit().unwrap();
}

#[test]
fn an_import_is_checked_again_if_another_commit_came_in_between() {
    // It is checked against the state that it changes: the other row of this name came first.
    let warning = "is also the name of conference 901";
    let committed = ["1 added", "Committed, with 1 warning.", warning];
    let cases = cases![
        "import new --yes", 0, &committed[..];
        "import new --strict", 1, &["--strict refuses warnings", warning];
        // A pipe can be read only once.
        "import pipe --dataset conferences --yes", 0, &committed;
    ];
    for (line, code, pieces) in cases {
        let site = Site::new();
        site.import("conferences.jsonl", conferences_of_version(5, 1));
        site.license("acme", "--dataset conferences");
        site.key("acme", &[]);
        site.write("new/conferences.jsonl", named_both(900));
        let pipe = site.path("pipe");
        assert!(
            Command::new("mkfifo")
                .arg(&pipe)
                .status()
                .unwrap()
                .success()
        );
        let writer = Writer::open(&site.db(), Duration::ZERO).unwrap();
        let Some(mut import) = Terminal::start(&site, &format!("{line} --wait 5m")) else {
            return;
        };
        if line.contains("pipe") {
            // Opening it waits for the reader.
            std::thread::spawn(move || std::fs::write(pipe, named_both(900)));
        }
        // The import has read the rows, and has found no fault.
        import.wait_for("waiting for the writer's lock");
        commit_another(&site, writer);
        let (ended, told) = import.end();
        assert_eq!(ended, Some(code), "{line}: {told}");
        assert!(
            pieces.iter().all(|piece| told.contains(piece)),
            "{line}: {told}"
        );
        assert_eq!(
            site.run(["show", "conferences", "900"]).code,
            Some(code),
            "{line}"
        );
        site.check();
    }
}

/// Commands that change the file while an import asks. Afterwards the seqs and the numbers of records may be the same.
#[test]
fn an_import_is_merged_with_the_state_that_it_changes() {
    // The commands that run while the import asks, and the venue of conference 1 afterwards.
    let restore: &[&str] = &["restore", "backup.redb", "--yes"];
    let cases: [(&str, &[&[&str]], &str); 6] = cases![
        "nothing", &[], "version 2";
        "a restore", &[restore], "version 1";
        // The restore takes one seq. So the newest seq is that of the lost commit again.
        "a restore, and as many rows", &[restore, &["import", "nine", "--yes"]], "version 3";
        "a restore, and more rows", &[restore, &["import", "ten", "--yes"]], "version 3";
        "another import", &[&["import", "ten", "--yes"]], "version 3";
        "a removal", &[&["import", "removal", "--yes"]], "-";
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
        let Some(mut import) = Terminal::start(&site, "import new") else {
            return;
        };
        import.wait_for("Commit nevertheless? [y/N]");
        for command in commands {
            let done = site.run(*command);
            assert_eq!(done.code, Some(0), "{what}: {command:?}: {done:?}");
        }
        import.answer("y\n");
        let (code, told) = import.end();
        if expected == "-" {
            assert!(
                code == Some(1) && told.contains("start_date_status: is required"),
                "{what}: {told}"
            );
        } else {
            assert_eq!(code, Some(0), "{what}: {told}");
            let shown = site.run(["show", "conferences", "1"]).stdout;
            assert!(shown.contains(expected), "{what}: {shown}");
            assert!(shown.contains("Paris "), "{what}: {shown}");
        }
        site.check();
    }
}

#[test]
fn two_first_imports_come_one_after_the_other() {
    let site = Site::new();
    let conferences = site.write("conferences.jsonl", conferences_of_version(200, 0));
    let journals = site.write("journals.jsonl", "{\"id\": 1, \"name\": \"J\"}\n");
    let spawn = |file: &Path| {
        let mut command = site.command(["import", "--create", file.to_str().unwrap()]);
        Process::spawn(command.stdout(Stdio::null()))
    };
    let mut imports = [spawn(&conferences), spawn(&journals)];
    for import in &mut imports {
        let ended = import.ended_within(SOON).expect("the import ends");
        assert!(ended.success(), "{ended}");
    }
    let out = site.path("out");
    site.json(["export", out.to_str().unwrap()]);
    let lines = |name: &str| {
        std::fs::read_to_string(out.join(name))
            .unwrap()
            .lines()
            .count()
    };
    assert_eq!(lines("conferences.jsonl"), 200);
    assert_eq!(lines("journals.jsonl"), 1);
}
