//! Failures of `medfeed pull`: each has its message and exit code, and the copy stays as it was.

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use super::postgres_server::Cluster;
use super::pulled::{Pulled, exported, first_line, held};
use super::scripted::{Reply, Scripted};
use super::site::{Done, Process, SOON, Site, conferences_of_version, wait_for, wait_until};

#[test]
fn a_refusing_service_leaves_the_copy() {
    let pulled = Pulled::with(300);
    let (id, key) = pulled.site.key("all", &[]);
    let (_, elsewhere) = pulled.site.key("all", &["--allow-ip", "192.0.2.1"]);
    pulled.pull("");
    let before = pulled.content("conferences");
    pulled.site.json(["key", "revoke", &id]);
    let mut client = pulled.server.client(&key);
    wait_for("revoked", || {
        let answer = client.get("/v1/journals");
        answer.status == 401 && answer.problem() == "revoked_api_key"
    });
    let unknown = "mfk_0000000000000000000000000000000000000x";
    let cases = cases![
        key.as_str(), "revoked or replaced", 3;
        unknown, "not recognised", 3;
        &elsewhere, "may not be used from the address", 3;
        "", "is empty or not set", 2;
        "two words", "characters that no key has", 2;
    ];
    for (key, message, code) in cases {
        let done = Done::of(pulled.command(&pulled.url(), "").env("MEDFEED_KEY", key));
        done.assert_told(code, message);
        assert!(done.stderr.starts_with("error: "), "{key}: {done:?}");
        assert_eq!(pulled.content("conferences"), before, "{key}");
    }
    // The key of a file has precedence over the variable's.
    for (before, after) in [("", ""), ("", "\n"), ("", "\r\n"), (" \t", " \n\n")] {
        let key = format!("{before}{}{after}", pulled.key);
        let file = pulled.site.write("key.txt", key);
        let args = format!("--key-file {}", file.display());
        let mut command = pulled.command(&pulled.url(), &args);
        let done = Done::of(command.env("MEDFEED_KEY", unknown));
        assert_eq!(done.code, Some(0), "{after:?}: {done:?}");
    }
    // Editors on Windows write byte-order marks and UTF-16.
    let utf16 = |begin: &[u8], of: fn(u16) -> [u8; 2]| -> Vec<u8> {
        let letters = pulled.key.encode_utf16().flat_map(of);
        begin.iter().copied().chain(letters).collect()
    };
    let cases = cases![
        format!("\u{feff}{}\r\n", pulled.key).into_bytes(), 0, "";
        utf16(b"\xff\xfe", u16::to_le_bytes), 2, "save the key as UTF-8";
        utf16(b"\xfe\xff", u16::to_be_bytes), 2, "save the key as UTF-8";
        utf16(b"", u16::to_le_bytes), 2, "save the key as UTF-8";
    ];
    for (bytes, code, message) in cases {
        let file = pulled.site.write("key.txt", bytes);
        let done = pulled.run(&format!("--key-file {}", file.display()));
        done.assert_told(code, message);
        assert!(!done.stderr.contains(&pulled.key[4..]), "{done:?}");
    }
}

#[test]
fn a_dataset_that_leaves_the_license_is_removed_and_later_loaded_again() {
    let cluster = Cluster::shared();
    let mut pulled = Pulled::with(300);
    let mut client = pulled.client();
    for place in pulled.places(cluster.as_ref()) {
        pulled.copy = place.clone();
        pulled.pull("");
        let reloaded = pulled.pull("--json --reload");
        assert_eq!(reloaded.stdout, "", "{place:?}: all is held");
        pulled.site.license("all", "--dataset journals");
        wait_for("narrowed", || client.get("/v1/conferences").status == 403);
        let done = pulled.run("--json");
        assert_eq!(done.code, Some(3), "{place:?}: {done:?}");
        let gone = |id| {
            format!(
                "{{\"dataset\":\"conferences\",\"entry\":{{\"id\":{id},\"deleted\":true,\"changed_at\":null}}}}\n"
            )
        };
        let expected: String = (1..=300).map(gone).collect();
        let rest = done.stdout.strip_prefix(&expected);
        let rest = rest.unwrap_or_else(|| panic!("{place:?}: {done:?}"));
        assert!(rest.starts_with("{\"error\":"), "{place:?}: {rest}");
        assert_eq!(rest.lines().count(), 1, "{place:?}: {rest}");
        assert_eq!(held(&place, "conferences"), None, "{place:?}");
        pulled.assert_equal("journals");
        if place.is_dir() {
            let left = ["conferences.jsonl", "conferences.csv", "journals.jsonl"]
                .map(|name| place.join(name).exists());
            assert_eq!(left, [false, false, true]);
        } else if place.is_file() {
            for table in words![
                "conferences" "conference_therapy_areas" "therapy_areas" "deadlines"
                "conferences_search('conference')"
            ] {
                let count = pulled.column(&format!("SELECT count(*) FROM {table}"));
                assert_eq!(count, ["0"], "{table}");
            }
        }
        let all = "--dataset conferences --dataset journals --widen";
        pulled.site.license("all", all);
        wait_for("widened", || client.get("/v1/conferences").status == 200);
        let done = pulled.pull("--verify");
        done.assert_out("conferences: 300 records loaded");
        assert!(!done.stdout.contains("repaired"), "{place:?}: {done:?}");
        pulled.assert_equal("conferences");
    }
}

/// Objects that a user adds to the tables of a copy, and that refuse rows of the service.
#[test]
fn objects_of_others_that_refuse_a_write_are_named() {
    let pulled = Pulled::with(300);
    pulled.pull("");
    pulled.import("conferences.jsonl", conferences_of_version(300, 1));
    // (statements, their undoing, the parts of the message)
    let cases: [(&str, &str, &[&str]); 7] = cases![
        "DELETE FROM therapy_areas; ALTER TABLE therapy_areas ADD COLUMN mine NOT NULL;
             CREATE TRIGGER harmless AFTER UPDATE ON conferences BEGIN SELECT 1; END",
            "ALTER TABLE therapy_areas DROP COLUMN mine; DROP TRIGGER harmless",
            &["the NOT NULL of the column `mine` of the table `therapy_areas` refuses what the service sends"];
        "CREATE TRIGGER guard BEFORE UPDATE ON conferences WHEN new.id = 77 BEGIN SELECT RAISE(ABORT, 'not mine'); END",
            "DROP TRIGGER guard", &["(not mine)", "the trigger `guard` of the table `conferences`"];
        "CREATE TABLE mine (x UNIQUE); CREATE TRIGGER copying AFTER UPDATE ON conferences BEGIN INSERT INTO mine VALUES (1); END",
            "DROP TRIGGER copying; DROP TABLE mine",
            &["mine.x", "the trigger `copying` of the table `conferences`"];
        "CREATE TRIGGER logging AFTER UPDATE ON conferences BEGIN INSERT INTO nowhere VALUES (new.id); END",
            "DROP TRIGGER logging", &["nowhere", "the trigger `logging` of the table `conferences`"];
        "UPDATE conferences SET url = id; CREATE UNIQUE INDEX one_url ON conferences (coalesce(url, 'none'))",
            "DROP INDEX one_url", &["the unique index `one_url` of the table `conferences`"];
        "UPDATE conferences SET venue = id; CREATE UNIQUE INDEX one_venue ON conferences (venue);
             CREATE UNIQUE INDEX another ON journals (name)",
            "DROP INDEX one_venue; DROP INDEX another",
            &[
                "(UNIQUE constraint failed: conferences.venue)",
                "the unique index `one_venue` of the table `conferences` refuses what the service sends",
            ];
        "ALTER TABLE conferences ADD COLUMN mine DEFAULT 1 CHECK (json NOT LIKE '%version 1%')",
            "ALTER TABLE conferences DROP COLUMN mine",
            &["the check `json NOT LIKE '%version 1%'` of the table `conferences`"];
    ];
    pulled.assert_refused(&cases);
    // An index that refuses nothing stays, and no row is lost because of it.
    pulled.tamper("CREATE UNIQUE INDEX ids ON conferences (id, name)");
    pulled.pull("--reload");
    pulled.assert_equal("conferences");
}

#[test]
fn files_that_are_no_copy_of_this_service_stay_untouched() {
    let pulled = Pulled::with(300);
    let site = Site::new();
    site.import("conferences.jsonl", conferences_of_version(5, 7));
    let other = Pulled::new(site);
    pulled.pull("");
    let database = |path: &Path, sql: &str| {
        let connection = rusqlite::Connection::open(path).unwrap();
        connection.execute_batch(sql).unwrap();
        drop(connection);
        fs::read(path).unwrap()
    };
    let [made, newer] = ["made.sqlite", "newer.sqlite"].map(|name| pulled.site.path(name));
    fs::copy(&pulled.copy, &newer).unwrap();
    let version = "PRAGMA journal_mode = delete; PRAGMA user_version = 99";
    let whole = fs::read(&pulled.copy).unwrap();
    let cases: [(&str, Vec<u8>, &str); 6] = cases![
        "text", b"id,name\n1,a\n".repeat(20), "is not a copy made by `medfeed pull`";
        "short", b"x".to_vec(), "is not a copy made by `medfeed pull`";
        "redb", fs::read(pulled.site.db()).unwrap(), "is not a copy made by `medfeed pull`";
        "sqlite", database(&made, "CREATE TABLE mine (x); INSERT INTO mine VALUES (1)"),
            "is not a copy made by `medfeed pull`";
        "newer", database(&newer, version), "written by another version of this program (format 99";
        "cut", whole[..whole.len() / 2].to_vec(), "damaged";
    ];
    for (name, content, message) in cases {
        fs::write(&pulled.copy, &content).unwrap();
        let done = pulled.run("");
        done.assert_told(4, message);
        let is_same = fs::read(&pulled.copy).unwrap() == content;
        assert!(is_same || name == "cut", "{name}: the file was changed");
    }
    fs::write(&pulled.copy, &whole).unwrap();
    let before = pulled.content("conferences");

    // Another service, recognized by its address and by its tokens.
    let done = pulled.run_at(&other.url(), "");
    done.assert_told(4, "is a copy of");
    assert_eq!(pulled.content("conferences"), before);
    pulled.tamper("UPDATE sync SET token = 'x'");
    let done = pulled.run("");
    done.assert_told(4, "did not issue the sync token");
    assert_eq!(pulled.content("conferences").lines, before.lines);
    let mut command = pulled.command(&other.url(), "--reload");
    let done = Done::of(command.env("MEDFEED_KEY", &other.key));
    assert_eq!(done.code, Some(0), "{done:?}");
    let expected = exported(&mut other.client(), "conferences");
    assert_eq!(pulled.content("conferences"), expected);
    let journals = pulled.content("journals").lines;
    assert_eq!(journals, [""; 0], "of the first service nothing is left");
    let args = ["pull", &pulled.url(), "--to", "none/copy.sqlite"];
    let mut nowhere = pulled.site.command(args);
    assert_eq!(Done::of(nowhere.env("MEDFEED_KEY", "x")).code, Some(4));
}

#[test]
fn wrong_addresses_and_foreign_services_are_reported() {
    let pulled = Pulled::with(300);
    let page = Scripted::new(|_, _| Reply::new(200, "<html>"));
    let walled = Scripted::new(|_, _| Reply::new(403, "<html>Forbidden by policy</html>"));
    let cases = cases![
        "feed.example.org".to_owned(), "write it as https://", 2;
        "https://key@feed.example.org".to_owned(), "MEDFEED_KEY", 2;
        "http://192.0.2.1".to_owned(), "must not travel in plain text", 2;
        page.url(), "check that a medfeed service answers there", 1;
        walled.url(),
            "answered 403 Forbidden, without the explanation of a medfeed service: something in between may have answered",
            3;
    ];
    for (url, message, code) in cases {
        let done = pulled.run_at(&url, "--dataset journals");
        done.assert_told(code, message);
    }
}

#[test]
fn one_pull_at_a_time_works_on_a_copy() {
    let cluster = Cluster::shared();
    let mut pulled = Pulled::with(20);
    for (place, removed) in pulled.places(cluster.as_ref()).into_iter().zip(1..) {
        pulled.copy.clone_from(&place);
        let mut command = pulled.command(&pulled.url(), "--follow --every 10ms");
        let mut follower = Process::spawn(&mut command);
        wait_until("followed", SOON, || held(&place, "journals"));
        let second = pulled.run("");
        second.assert_told(1, "another `medfeed pull` is using");
        // A reader that stays in its transaction keeps its state and blocks no pull. A folder has no transactions.
        let mut reader = (!place.is_dir()).then(|| pulled.reader());
        let before = reader.as_mut().map(|count| count());
        let removal = format!("{{\"id\":{removed},\"deleted\":true}}\n");
        pulled.site.import("conferences.jsonl", removal);
        wait_for("applied", || {
            held(&place, "conferences").is_some_and(|held| held.records == 20 - removed)
        });
        assert_eq!(reader.map(|mut count| count()), before, "{place:?}");
        if place.exists() {
            // The pull does not continue to write to a copy that was moved away.
            fs::rename(&place, pulled.site.path(&format!("taken{removed}"))).unwrap();
            assert_eq!(follower.ended_within(SOON).expect("ends").code(), Some(4));
            continue;
        }
        // Another schema of the same database is another copy.
        let elsewhere = pulled.run_to(&format!("{}&schema=second", place.display()), ("X", ""), "");
        assert_eq!(elsewhere.code, Some(0), "{elsewhere:?}");
        follower.kill();
        // The lock of a killed pull is released.
        assert_eq!(pulled.pull("").count("nothing new"), 2);
    }
}

#[test]
fn a_pull_that_waited_for_the_lock_uses_the_copy_that_is_there_now() {
    let pulled = Pulled::with(300);
    pulled.pull("");
    let [made, lock] = ["made.sqlite", "copy.sqlite.lock"].map(|name| pulled.site.path(name));
    let run = || {
        fs::rename(&pulled.copy, &made).unwrap();
        let held = fs::File::create(&lock).unwrap();
        held.lock().unwrap();
        let mut command = pulled.command(&pulled.url(), "");
        let mut pull = Process::spawn(command.stdout(Stdio::null()).stderr(Stdio::null()));
        let files = format!("/proc/{}/fd", pull.id());
        wait_for("the pull waits for the lock", || {
            let mut files = fs::read_dir(&files).into_iter().flatten().flatten();
            let has_lock_file =
                files.any(|file| fs::read_link(file.path()).is_ok_and(|path| path == lock));
            has_lock_file || pull.ended_within(Duration::ZERO).is_some()
        });
        fs::rename(&made, &pulled.copy).unwrap();
        drop(held);
        pull.exit_code()
    };
    // A pull waits for a second. A loaded machine may take longer.
    let code = wait_until("a pull that gets the lock", SOON, || {
        Some(run()).filter(|code| *code != Some(1))
    });
    assert_eq!(code, Some(0));
    pulled.assert_equal("conferences");
}

#[test]
fn a_full_disk_leaves_the_copy_as_it_was() {
    let pulled = Pulled::with(300);
    pulled.pull("");
    let before = pulled.content("conferences");
    pulled.import("conferences.jsonl", conferences_of_version(3000, 1));
    // The shell counts in blocks of 512 or 1024 bytes. A write beyond them is an error rather than a signal.
    let inner = pulled.command(&pulled.url(), "");
    let script = "trap '' XFSZ; ulimit -f 1500; exec \"$@\"";
    let done = Done::of(&mut pulled.site.in_shell(script, &inner));
    done.assert_told(1, "space");
    let found = pulled.content("conferences");
    let is_whole = found.records == before.records || found.records % 500 == 0;
    assert!(is_whole, "whole pages: {}", found.records);
    assert_eq!(found.records, i64::try_from(found.lines.len()).unwrap());
    pulled.pull("--verify");
    pulled.assert_equal("conferences");
}

#[test]
fn a_comparison_finds_and_repairs_changed_rows() {
    let pulled = Pulled::with(300);
    pulled.import(
        "conferences.jsonl",
        "{\"id\":3,\"organizations\":[{\"id\":7,\"name\":\"Society\",\"abbv\":null,\"type\":null,\"url\":null}],\
         \"tags\":[{\"id\":3,\"type\":\"A\",\"name\":\"B\",\"category\":null}]}\n",
    );
    pulled.pull("--verify");
    let cases = cases![
        "UPDATE conferences SET json = replace(json, 'Conference 5\"', 'Conference 6\"') WHERE id = 5",
            "differs from the service's";
        "UPDATE conferences SET json = CAST(json || x'ff' AS TEXT) WHERE id = 300", "differs from the service's";
        "DELETE FROM conferences WHERE id = 17", "299 records instead of 300";
        "INSERT INTO conferences (id, json) VALUES (9000, '{\"id\":9000}')", "301 records instead of 300";
        "UPDATE conferences SET id = 9000 WHERE id = 1", "differs from the service's";
        "INSERT INTO conferences (id, json) VALUES (0, '{\"id\":0}'), (-5, '{\"id\":-5}')",
            "302 records instead of 300";
        "INSERT INTO conferences (id, json) VALUES (9223372036854775807, 'x'), (-9223372036854775807 - 1, 'x')",
            "302 records instead of 300";
        "UPDATE conferences SET id = 0 WHERE id = 1", "the id of record 0 does not fit its JSON";
        "WITH RECURSIVE n (x) AS (SELECT 0 UNION ALL SELECT x - 1 FROM n WHERE x > -2500)
             INSERT INTO conferences (id, json) SELECT x, '{}' FROM n",
            "2801 records instead of 300";
        "UPDATE conferences SET json = CAST(json AS BLOB) WHERE id = 5", "the JSON of record 5 is not text";
        "UPDATE sync SET records = 7 WHERE dataset = 'conferences'", "count of records";
        "UPDATE conferences SET city = 'Elsewhere' WHERE id = 9", "column `city` of record 9";
        "UPDATE conferences SET updated_at = NULL WHERE id = 9", "column `updated_at` of record 9";
        "DELETE FROM conference_organizations", "`conference_organizations`";
        "INSERT INTO conference_tags VALUES (4, 3)", "`conference_tags` does not fit";
        "INSERT INTO conference_tags VALUES (9999, 3)", "a link of a missing record";
        "INSERT INTO conference_tags VALUES ('of text', 3)", "a link of a missing record";
        "INSERT INTO conference_tags VALUES (-9223372036854775807 - 1, 3)", "a link of a missing record";
        "INSERT INTO therapy_areas VALUES (x'00ff')", "no record links to";
        "UPDATE organizations SET name = 'Other'", "`organizations` does not fit the records that link to `7`";
        "DELETE FROM organizations", "`organizations` lacks `7`";
        "INSERT INTO therapy_areas VALUES ('Stray')", "no record links to";
        "INSERT INTO conferences_search (conferences_search) VALUES ('delete-all')", "full-text index";
    ];
    pulled.assert_repaired(&cases);
    let found = "SELECT rowid FROM conferences_search WHERE conferences_search MATCH 'society'";
    assert_eq!(pulled.column(found), ["3"]);
}

#[test]
fn a_copy_that_another_program_changes_meanwhile_is_not_called_repaired() {
    let pulled = Pulled::with(300);
    pulled.pull("");
    let triggers = cases![
        "CREATE TRIGGER other AFTER UPDATE OF name ON conferences WHEN new.id = 7
             BEGIN UPDATE conferences SET json = '{\"id\":7}' WHERE id = 7; END",
            "differs from the service's content";
        "CREATE TRIGGER other AFTER UPDATE OF name ON conferences WHEN new.id = 7
             BEGIN UPDATE conferences SET city = 'Elsewhere' WHERE id = 6; END",
            "column `city` of record 6";
    ];
    for (trigger, fault) in triggers {
        // Rows that are equal are not written.
        pulled.tamper(&format!(
            "UPDATE conferences SET name = 'Other' WHERE id = 7; {trigger};
             INSERT INTO conferences (id, json) VALUES (0, '{{}}');
             UPDATE sync SET verified_at = '2020-01-01T00:00:00Z'"
        ));
        let done = pulled.run("--verify --dataset conferences");
        for part in ["still differs", fault] {
            done.assert_told(4, part);
        }
        let is_called_equal = done.stdout.contains("repaired") || done.stdout.contains("equal");
        assert!(!is_called_equal, "{trigger}: {done:?}");
        pulled.tamper("DROP TRIGGER other");
        let done = pulled.pull("--verify --dataset conferences");
        done.assert_out("; repaired, and equal");
        pulled.assert_equal("conferences");
    }
}

#[test]
fn a_follower_reports_the_result_of_a_comparison() {
    let pulled = Pulled::with(300);
    pulled.pull("");
    let told = pulled.site.path("told");
    let mut command = pulled.command(&pulled.url(), "--follow --every 10ms --verify");
    let _follower = Process::spawn(command.stdout(fs::File::create(&told).unwrap()));
    let await_told = |expected: &str| {
        wait_for(expected, || {
            fs::read_to_string(&told).unwrap().contains(expected)
        });
    };
    await_told("conferences: nothing new, 300 records; equal to the service's\n");
    await_told("journals: nothing new, 1 record; equal to the service's\n");
    // Later rounds do not compare. They are reported only if they bring changes.
    let removal = "{\"id\":7,\"deleted\":true}\n";
    pulled.site.import("conferences.jsonl", removal);
    await_told("conferences: 1 change applied, 299 records\n");
    assert_eq!(fs::read_to_string(&told).unwrap().lines().count(), 3);
}

#[test]
fn tables_of_another_layout_are_made_anew_from_the_records() {
    let pulled = Pulled::with(300);
    pulled.pull("");
    let before = pulled.content("conferences");
    pulled.tamper(
        "CREATE VIEW names AS SELECT name FROM conferences LEFT JOIN conference_organizations ON conference_id = id;
         CREATE VIEW journal_names AS SELECT name FROM journals;
         ALTER TABLE conferences ADD COLUMN extra; DROP TABLE tags; UPDATE copy SET value = 'old' WHERE name = 'layout'",
    );
    let views = words![
        "SELECT name FROM names ORDER BY name" "SELECT name FROM journal_names"
    ];
    let shown = views.map(|query| pulled.column(query));
    assert!(shown.iter().all(|names| !names.is_empty()), "{shown:?}");
    pulled.pull("").assert_out("nothing new");
    assert_eq!(pulled.content("conferences"), before);
    // The user's own views stay.
    assert_eq!(views.map(|query| pulled.column(query)), shown);
    assert_eq!(pulled.pull("--verify").count("nothing new"), 2);
    // A comparison repairs records whose JSON cannot be read.
    for json in words!["x" "{\"id\":3,\"name\":\"\\ud800\"}" "{\"id\":3,\"year\":1e999}"] {
        pulled.tamper(&format!(
            "UPDATE conferences SET json = '{json}' WHERE id = 3; UPDATE copy SET value = 'old'
            WHERE name = 'layout'"
        ));
        let done = pulled.pull("--verify");
        done.assert_err("299 records instead of 300");
        assert_eq!(pulled.content("conferences"), before, "{json}");
    }
}

#[test]
fn a_reload_makes_missing_tables_and_columns_again() {
    let pulled = Pulled::with(300);
    pulled.pull("");
    pulled.tamper(
        "CREATE VIEW mine AS SELECT name, city FROM conferences; CREATE INDEX by_url ON conferences (url);
         CREATE TABLE notes (id INTEGER REFERENCES conferences, text); INSERT INTO notes VALUES (7, 'a note');
         ALTER TABLE conferences ADD COLUMN score DEFAULT 5; UPDATE conferences SET score = 9 WHERE id = 7",
    );
    let before = pulled.content("conferences");
    // (statements, the part of the message)
    let cases = cases![
        "ALTER TABLE conferences DROP COLUMN venue", "venue";
        "ALTER TABLE tags DROP COLUMN category", "category";
        "ALTER TABLE journals RENAME COLUMN h_index TO h", "h_index";
        "DROP TABLE conference_therapy_areas", "conference_therapy_areas";
        "DROP TABLE journals", "journals";
        "DROP TABLE therapy_areas", "therapy_areas";
        "DROP TABLE sync", "sync";
        "DROP VIEW dates_to_confirm; ALTER TABLE conferences DROP COLUMN json", "json";
    ];
    for (sql, part) in cases {
        pulled.tamper(sql);
        let done = pulled.run("");
        for part in [part, "--reload makes what is missing again"] {
            done.assert_told(4, part);
        }
        pulled.pull("--reload");
        let done = pulled.pull("--verify");
        assert_eq!(done.count("equal to"), 2, "{sql}: {done:?}");
        assert!(!done.stdout.contains("repaired"), "{sql}: {done:?}");
        assert_eq!(pulled.content("conferences"), before, "{sql}");
        assert_eq!(pulled.column("SELECT count(*) FROM mine"), ["300"], "{sql}");
        let kept = "SELECT text || score FROM notes JOIN conferences USING (id)";
        assert_eq!(pulled.column(kept), ["a note9"], "{sql}");
        let index = "SELECT name FROM sqlite_schema WHERE name IN ('by_url', 'dates_to_confirm') ORDER BY name";
        let found = pulled.column(index);
        assert_eq!(found, ["by_url", "dates_to_confirm"], "{sql}");
    }
    // The full-text index is missed by the next change.
    pulled.tamper("DROP TABLE conferences_search");
    pulled.import("conferences.jsonl", conferences_of_version(3, 1));
    pulled.run("").assert_told(4, "conferences_search");
    pulled.pull("--reload");
    let found = "SELECT count(*) FROM conferences_search('version')";
    assert_eq!(pulled.column(found), ["300"]);
    // The next pull loads a dataset that a reload has left out.
    pulled.tamper("ALTER TABLE conferences DROP COLUMN venue");
    pulled.pull("--reload --dataset journals");
    pulled
        .pull("")
        .assert_out("conferences: 300 records loaded");
    pulled.assert_equal("conferences");
    // Without `copy`, the tables are made anew.
    pulled.tamper("DROP TABLE copy");
    pulled.run("").assert_told(4, "no such table: copy");
    pulled.pull("--reload");
    pulled.assert_equal("conferences");
}

#[test]
fn the_copy_of_a_service_that_has_moved_goes_on() {
    let cluster = Cluster::shared();
    let mut pulled = Pulled::with(300);
    let moved = pulled.site.serve();
    let stranger = Pulled::with(300);
    let old = pulled.url();
    let new = moved.url();
    for (place, version) in pulled.places(cluster.as_ref()).into_iter().zip(1..) {
        pulled.copy = place;
        pulled.pull("");
        let told = format!("the service has moved from {old} to {new}");
        // Nothing new, and once only.
        for count in [1, 0] {
            let done = pulled.run_at(&new, "");
            assert_eq!(done.code, Some(0), "{done:?}");
            assert_eq!(done.stderr.matches(&told).count(), count, "{done:?}");
            done.assert_out("conferences: nothing new");
        }
        // Back again, with changes.
        pulled.import("conferences.jsonl", conferences_of_version(5, version));
        let done = pulled.run_at(&old, "");
        assert_eq!(done.code, Some(0), "{done:?}");
        let back = format!("the service has moved from {new} to {old}");
        assert_eq!(done.stderr.matches(&back).count(), 1, "{done:?}");
        assert!(!done.stdout.contains("loaded"), "{done:?}");
        pulled.assert_equal("conferences");
        // Another service, with its own key and with that of this one.
        let before = pulled.content("conferences");
        for key in [&stranger.key, &pulled.key] {
            let done = Done::of(pulled.command(&stranger.url(), "").env("MEDFEED_KEY", key));
            let refusal = format!("is a copy of {old}, not of {}", stranger.url());
            done.assert_told(4, &refusal);
            assert_eq!(pulled.content("conferences"), before);
        }
        // The token fits, but not the content.
        if pulled.copy.is_dir() {
            continue;
        }
        pulled.tamper("DELETE FROM conference_therapy_areas; DELETE FROM conferences WHERE id = 9");
        pulled.run_at(&new, "").assert_told(4, "is a copy of");
        pulled.pull("--verify");
        pulled.assert_equal("conferences");
    }
}

#[test]
fn a_scheme_that_does_not_fit_the_port_is_named() {
    let pair = rcgen::generate_simple_self_signed(["127.0.0.1".to_owned()]).unwrap();
    let secure = pulled_over_tls(&pair.cert, &pair.signing_key);
    let plain = Pulled::with(5);
    let [to_secure, to_plain] = [&secure, &plain].map(|pulled| pulled.server.address);
    let page = Scripted::new(|_, _| Reply::new(400, "<html>a plain request"));
    let cases = cases![
        &secure, format!("http://{to_secure}"), "if it speaks HTTPS, use an address that begins with https://";
        &plain, format!("https://{to_plain}"),
            "the server there does not speak TLS; check the port, or use an address that begins with http://";
        &plain, page.url(), "or a server that expects https";
    ];
    for (pulled, url, expected) in cases {
        let (line, mut pull) = first_line(pulled.command(&url, "--dataset journals"));
        assert!(line.contains(expected), "{url}: {line}");
        pull.kill();
    }
}

/// A service over HTTPS, whose certificate is in `own.pem`.
fn pulled_over_tls(certificate: &rcgen::Certificate, pair: &rcgen::KeyPair) -> Pulled {
    let (site, key) = Site::open(10);
    site.write("own.pem", certificate.pem());
    site.write("key.pem", pair.serialize_pem());
    let server = site.serve_with("--tls-cert own.pem --tls-key key.pem");
    let copy = site.path("copy.sqlite");
    Pulled {
        site,
        server,
        key,
        copy,
    }
}

#[test]
fn only_certificates_of_the_named_authorities_are_trusted() {
    let [pair, other] =
        [(), ()].map(|()| rcgen::generate_simple_self_signed(["127.0.0.1".to_owned()]).unwrap());
    let pulled = pulled_over_tls(&pair.cert, &pair.signing_key);
    pulled.site.write("empty.pem", "");
    let both = other.cert.pem() + &pair.cert.pem();
    pulled.site.write("both.pem", both);
    assert!(pulled.url().starts_with("https://"));
    let cases = cases![
        "--dataset conferences --ca-file own.pem", 0, "";
        "--dataset conferences --ca-file both.pem", 0, "";
        "--dataset conferences", 1, "not signed by a trusted authority";
        "--dataset conferences --ca-file none.pem", 2, "none.pem";
        "--dataset conferences --ca-file empty.pem", 2, "contains no certificate";
    ];
    for (args, code, message) in cases {
        let done = pulled.run(args);
        done.assert_told(code, message);
    }
    assert!(Path::new(&pulled.copy).exists());
    assert_eq!(pulled.content("conferences").records, 10);
}

/// The variables that name proxies.
const PROXIES: [&str; 4] = words!["HTTP_PROXY" "HTTPS_PROXY" "ALL_PROXY" "NO_PROXY"];

/// A site with the certificate of a service, for pulls through proxies.
fn proxied_site() -> Site {
    let site = Site::new();
    let pair = rcgen::generate_simple_self_signed(["feed.example.org".to_owned()]).unwrap();
    site.write("cert.pem", pair.cert.pem());
    site
}

/// A pull through the proxy that a variable names.
fn pull_through(site: &Site, url: &str, variable: &str, proxy: &str) -> Command {
    let args = "--to copy.sqlite --ca-file cert.pem --plain-http";
    let mut command = site.command(["pull", url].into_iter().chain(args.split(' ')));
    for name in PROXIES {
        command.env_remove(name).env_remove(name.to_lowercase());
    }
    command
        .env("MEDFEED_KEY", "mfk_secret")
        .env(variable, proxy);
    command
}

#[test]
fn proxies_of_the_environment_are_used_for_other_machines() {
    let site = proxied_site();
    // (the variable, the address of the service, the request to the proxy)
    let cases = cases![
        "HTTPS_PROXY", "https://feed.example.org", "CONNECT feed.example.org:443 HTTP/1.1";
        "https_proxy", "https://feed.example.org:8443", "CONNECT feed.example.org:8443 HTTP/1.1";
        "HTTP_PROXY", "http://192.0.2.1", "GET http://192.0.2.1/v1/exports/conferences HTTP/1.1";
    ];
    for (variable, url, expected) in cases {
        let proxy = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let address = format!("http://{}", proxy.local_addr().unwrap());
        let mut command = pull_through(&site, url, variable, &address);
        let mut pull = Process::spawn(command.stdout(Stdio::null()).stderr(Stdio::null()));
        let mut line = String::new();
        let mut request = BufReader::new(proxy.accept().unwrap().0);
        request.read_line(&mut line).unwrap();
        assert_eq!(line.trim_end(), expected, "{variable}");
        pull.kill();
    }
}

#[test]
fn a_proxy_that_does_not_help_is_named() {
    let site = proxied_site();
    let answering = |head: &'static str| {
        let proxy = Scripted::raw("127.0.0.1", move |_, _, stream| {
            stream.write_all(head.as_bytes())
        });
        proxy.url().replace("http://", "")
    };
    let login = "HTTP/1.1 407 Proxy Authentication Required\r\ncontent-length: 0\r\n\r\n";
    let refusal = "HTTP/1.1 403 Forbidden\r\ncontent-length: 0\r\n\r\n";
    let dead = || "127.0.0.1:1".to_owned();
    // (the variable, the scheme and address of the proxy, the address of the service, parts of the message)
    let cases = cases![
        "HTTPS_PROXY", "http://", dead(), "https://feed.example.org", "refused";
        "ALL_PROXY", "http://", dead(), "https://feed.example.org", "refused";
        "HTTP_PROXY", "http://", dead(), "http://feed.example.org", "refused";
        "https_proxy", "http://", answering(login), "https://feed.example.org", "login (407)";
        "HTTPS_PROXY", "http://me:secret@", answering(refusal), "https://feed.example.org", "unsuccessful";
        "http_proxy", "http://", answering(login), "http://feed.example.org", "answered 407";
        "http_proxy", "http://", answering(refusal), "http://feed.example.org", "answered 403";
        "ALL_PROXY", "socks5://", dead(), "https://feed.example.org", "SOCKS is not supported";
        "HTTP_PROXY", "socks5h://", dead(), "http://feed.example.org", "SOCKS is not supported";
    ];
    for (variable, scheme, address, url, expected) in cases {
        let proxy = format!("{scheme}{address}");
        let (line, mut pull) = first_line(pull_through(&site, url, variable, &proxy));
        let what = format!("{variable} {scheme}{address} {url}: {line}");
        for part in [expected, &address, &variable.to_uppercase()] {
            assert!(line.contains(part), "{what}");
        }
        assert!(!line.contains("secret"), "{what}");
        pull.kill();
    }
}

/// A self-signed certificate as `openssl req -x509` makes it: marked as that of an authority. It is valid from the
/// beginning of one year to that of another.
fn authority(name: &str, from: i32, until: i32) -> (rcgen::Certificate, rcgen::KeyPair) {
    let mut params = rcgen::CertificateParams::new([name.to_owned()]).unwrap();
    params.is_ca = rcgen::IsCa::Ca(rcgen::BasicConstraints::Unconstrained);
    [params.not_before, params.not_after] =
        [from, until].map(|year| rcgen::date_time_ymd(year, 1, 1));
    let pair = rcgen::KeyPair::generate().unwrap();
    (params.self_signed(&pair).unwrap(), pair)
}

#[test]
fn a_self_signed_certificate_is_trusted_where_it_is_the_one_in_the_file() {
    let other = authority("127.0.0.1", 2000, 2999).0.pem();
    let cases = cases![
        "own", "127.0.0.1", 2000, 2999, "";
        "other", "127.0.0.1", 2000, 2999,
            "its certificate is marked as that of an authority; pass exactly this certificate with --ca-file";
        "own", "feed.example.org", 2000, 2999, "does not contain the name in the address";
        "own", "127.0.0.1", 2000, 2001, "has expired";
        "own", "127.0.0.1", 2998, 2999, "not valid yet";
    ];
    for (file, name, from, until, message) in cases {
        let (certificate, pair) = authority(name, from, until);
        let pulled = pulled_over_tls(&certificate, &pair);
        pulled.site.write("other.pem", &other);
        // A refused certificate may be renewed, so a single run retries a few times. The first message suffices.
        let args = format!("--dataset conferences --ca-file {file}.pem");
        let (line, mut pull) = first_line(pulled.command(&pulled.url(), &args));
        let expected = message.is_empty();
        assert_eq!(line.is_empty(), expected, "{file} {name} {from}: {line}");
        assert!(line.contains(message), "{file} {name} {from}: {line}");
        if message.is_empty() {
            assert_eq!(pull.exit_code(), Some(0), "{line}");
            assert_eq!(pulled.content("conferences").records, 10);
        }
    }
}
