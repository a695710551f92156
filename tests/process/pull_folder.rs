//! `medfeed pull --to FOLDER/`: JSON lines and CSV, replaced as whole files, and the state that names them.

use std::fs;
use std::path::Path;

use medfeed::model::Dataset::Conferences;
use medfeed::pull::catch_up::{Done, Pull, Verdict};
use medfeed::pull::{FolderCopy, PullTarget};
use serde_json::Value;
use sha2::Digest as _;

use super::pulled::{Pulled, exported};
use super::scripted::{Notes, Reply, Scripted};
use super::site::{Process, Site, conferences_of_version, wait_for};

/// A site whose copy is a folder.
fn pulled_site() -> Pulled {
    let mut pulled = Pulled::with(700);
    pulled.copy = pulled.site.path("copy/");
    pulled
}

fn text(folder: &Path, name: &str) -> String {
    fs::read_to_string(folder.join(name)).unwrap_or_else(|error| panic!("{name}: {error}"))
}

fn state(folder: &Path) -> Value {
    serde_json::from_str(&text(folder, "medfeed-copy.json")).unwrap()
}

#[test]
fn files_that_the_state_does_not_name_are_loaded_anew() {
    let pulled = pulled_site();
    pulled.pull("");
    let path = |name: &str| pulled.copy.join(name);
    let longer = |name: &str| fs::write(path(name), text(&pulled.copy, name) + "x").unwrap();
    let shorter = |name: &str| {
        let lines = text(&pulled.copy, name);
        let content = lines.split_inclusive('\n').skip(1).collect::<String>();
        fs::write(path(name), content).unwrap();
    };
    let cases: [(&str, &dyn Fn()); 5] = cases![
        "a byte in the lines", &|| longer("conferences.jsonl");
        "a byte in the table", &|| longer("conferences.csv");
        "a line too few", &|| shorter("conferences.jsonl");
        "no table", &|| { fs::remove_file(path("conferences.csv")).unwrap() };
        "no lines", &|| { fs::remove_file(path("conferences.jsonl")).unwrap() };
    ];
    for (what, damage) in cases {
        damage();
        let done = pulled.pull("");
        let expected = "conferences: 700 records loaded\njournals: nothing new, 1 record\n";
        assert_eq!(done.stdout, expected, "{what}");
        pulled.assert_equal("conferences");
    }
}

#[test]
fn a_copy_without_content_is_that_of_no_service() {
    let pulled = pulled_site();
    // As after a first pull from a mistyped address.
    let state = r#"{"format":1,"server":"http://127.0.0.1:1","datasets":{}}"#;
    pulled.site.write("copy/medfeed-copy.json", state);
    let stdout = pulled.pull("").stdout;
    assert!(stdout.starts_with("conferences: 700 records loaded\n"));
    assert_eq!(self::state(&pulled.copy)["server"], pulled.url());
    pulled.assert_equal("conferences");
}

#[test]
fn files_named_like_a_dataset_that_is_not_copied_stay() {
    let pulled = pulled_site();
    pulled.pull("--dataset conferences");
    pulled.site.write("copy/journals.csv", "mine");
    pulled
        .site
        .import("conferences.jsonl", conferences_of_version(3, 1));
    for done in [
        pulled.settle("conferences", "--dataset conferences"),
        pulled.pull("--dataset conferences --reload"),
    ] {
        assert_eq!(text(&pulled.copy, "journals.csv"), "mine", "{done:?}");
    }
}

#[test]
fn a_folder_that_is_replaced_ends_the_follower() {
    let site = Site::new();
    let (own, other) = (site.path("own"), site.path("other"));
    let open = |folder: &Path| {
        FolderCopy::open(folder, &"http://localhost:1".parse().unwrap(), false).unwrap()
    };
    let copy = open(&own);
    copy.check_location().unwrap();
    drop(open(&other));
    let moved = site.path("moved");
    let steps: [(&str, &dyn Fn()); 3] = [
        ("no lock file", &|| {
            fs::remove_file(own.join("medfeed-copy.lock")).unwrap()
        }),
        ("removed", &|| fs::rename(&own, &moved).unwrap()),
        ("replaced", &|| fs::rename(&other, &own).unwrap()),
    ];
    for (step, change) in steps {
        change();
        let error = copy.check_location().unwrap_err().to_string();
        let expected =
            "medfeed-copy.lock: the lock file or its folder was removed or replaced meanwhile";
        assert!(error.contains(expected), "{step}: {error}");
    }
}

#[test]
fn files_that_another_program_changes_while_they_are_followed_are_loaded_again() {
    let pulled = pulled_site();
    pulled.pull("");
    let path = |name: &str| pulled.copy.join(name);
    let lines = |change: &dyn Fn(&str) -> String| {
        let changed = change(&text(&pulled.copy, "conferences.jsonl"));
        fs::write(path("conferences.jsonl"), changed).unwrap();
    };
    let cases: [(&str, &dyn Fn()); 3] = cases![
        "another name", &|| { lines(&|lines| lines.replacen("\"name\":\"", "\"name\":\"x", 1)) };
        "a line of something else", &|| { lines(&|lines| format!("{lines}x\n")) };
        "no file", &|| { fs::remove_file(path("conferences.jsonl")).unwrap() };
    ];
    let log = pulled.site.path("follower.log");
    let mut command = pulled.command(&pulled.url(), "--follow --every 10ms");
    let _follower = Process::spawn(command.stderr(fs::File::create(&log).unwrap()));
    let follow = |version, what: &str| {
        pulled
            .site
            .import("conferences.jsonl", conferences_of_version(3, version));
        wait_for(what, || {
            let token = exported(&mut pulled.client(), "conferences").token;
            let lines = fs::read_to_string(path("conferences.jsonl")).unwrap_or_default();
            let is_new = lines.contains(&format!("version {version}\""));
            is_new && state(&pulled.copy)["datasets"]["conferences"]["token"] == token.as_str()
        });
        pulled.assert_equal("conferences");
    };
    follow(1, "the follower runs");
    for (version, (what, change)) in (2..).zip(cases) {
        change();
        follow(version, what);
        let log = fs::read_to_string(&log).unwrap();
        let told = log
            .matches("changed or removed the file; loading the export")
            .count();
        assert_eq!(told as u64, version - 1, "{what}: {log}");
    }
}

#[test]
fn folders_that_are_no_copy_stay_untouched() {
    let mut pulled = pulled_site();
    pulled.pull("");
    let copy = pulled.copy.clone();
    let whole = text(&copy, "medfeed-copy.json");
    let cases = cases![
        whole.replace("\"format\": 1", "\"format\": 2"), "by another version of this program (format 2";
        "{}".to_owned(), "cannot be read";
    ];
    for (json, message) in cases {
        fs::write(copy.join("medfeed-copy.json"), &json).unwrap();
        let done = pulled.run("");
        done.assert_told(4, message);
        assert_eq!(text(&copy, "medfeed-copy.json"), json);
    }
    let content = whole.replace(&pulled.url(), "https://other.example");
    fs::write(copy.join("medfeed-copy.json"), content).unwrap();
    pulled.pull("--reload --dataset conferences");
    pulled.assert_equal("conferences");
    // No file of the other service is left.
    let gone = ["journals.jsonl", "journals.csv"].map(|name| copy.join(name).exists());
    assert_eq!(gone, [false, false]);
    pulled.pull("");
    pulled.assert_equal("journals");

    pulled.site.write("mine/conferences.jsonl", "mine");
    pulled.copy = pulled.site.path("mine");
    let done = pulled.run("");
    done.assert_told(4, "contains files that are not a copy");
    assert_eq!(fs::read_dir(&pulled.copy).unwrap().count(), 1);

    // Files of a pull that was killed before it had a copy.
    for name in ["medfeed-copy.lock", "medfeed-copy.json.new"] {
        pulled.site.write(&format!("killed/{name}"), "");
    }
    pulled.copy = pulled.site.path("killed/");
    pulled.pull("");
    pulled.assert_equal("conferences");
}

#[test]
fn a_table_with_the_columns_of_another_version_is_loaded_anew() {
    let pulled = pulled_site();
    pulled.pull("");
    let table = text(&pulled.copy, "conferences.csv");
    let mut older = state(&pulled.copy);
    for header in [
        "\u{feff}id,name,updated_at\r\n".to_owned(),
        table.replacen("updated_at\r\n", "x,updated_at\r\n", 1),
    ] {
        fs::write(pulled.copy.join("conferences.csv"), &header).unwrap();
        let digest = data_encoding::HEXLOWER.encode(&sha2::Sha256::digest(&header));
        older["datasets"]["conferences"]["csv_sha256"] = digest.into();
        fs::write(pulled.copy.join("medfeed-copy.json"), older.to_string()).unwrap();
        assert!(
            pulled
                .pull("")
                .stdout
                .starts_with("conferences: 700 records loaded\n"),
            "{header}"
        );
        pulled.assert_equal("conferences");
    }
}

#[test]
fn a_reload_from_another_service_that_fails_leaves_the_copy() {
    let pulled = pulled_site();
    pulled.pull("");
    let content = || {
        let names = words![
            "medfeed-copy.json" "conferences.jsonl" "conferences.csv" "journals.jsonl" "journals.csv"
        ];
        names.map(|name| text(&pulled.copy, name))
    };
    let before = content();
    let service = Scripted::new(|_, _| Reply::problem(401, "revoked_api_key"));
    let done = pulled.run_at(&service.url(), "--reload");
    assert_eq!(done.code, Some(3), "{done:?}");
    assert!(
        content() == before,
        "the copy was changed: {}",
        text(&pulled.copy, "medfeed-copy.json")
    );
    let expected = "conferences: nothing new, 700 records\njournals: nothing new, 1 record\n";
    assert_eq!(pulled.pull("").stdout, expected);
}

#[test]
fn a_comparison_notices_a_file_that_was_removed_meanwhile() {
    let service = Scripted::new(|asked, _| match asked.line.contains("/changes") {
        true => Reply::page("", false, "t0"),
        false => Reply::export("t0", &["{\"id\":1}"]),
    });
    let (client, notes, mut done) = (service.client(), Notes::default(), Done::default());
    for name in ["conferences.jsonl", "conferences.csv"] {
        let folder = tempfile::tempdir().unwrap();
        let mut copy = FolderCopy::open(folder.path(), client.server(), false).unwrap();
        let mut pull = Pull {
            server: &client,
            copy: &mut copy,
            events: &notes,
        };
        pull.catch_up(Conferences, 0, &mut done).unwrap();
        fs::remove_file(folder.path().join(name)).unwrap();
        let verdict = pull.verify(Conferences, &mut done);
        assert!(
            matches!(verdict, Ok(Verdict::Repaired(_))),
            "{name}: {verdict:?}"
        );
        let expected = "{\"id\":1}\n";
        assert_eq!(text(folder.path(), "conferences.jsonl"), expected, "{name}");
    }
}
