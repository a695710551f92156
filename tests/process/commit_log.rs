//! `medfeed log`: what an import changed, notes, and the commits of one license.

use serde_json::{Value, json};

use super::site::{STATUSES, Site, conferences_of_version};

fn commits(site: &Site, options: &str) -> Vec<Value> {
    let told = site.json(["log"].into_iter().chain(options.split_whitespace()));
    told["commits"].as_array().unwrap().clone()
}

fn counts(added: u64, changed: u64, removed: u64, unchanged: u64) -> Value {
    json!({ "added": added, "changed": changed, "removed": removed, "unchanged": unchanged })
}

#[test]
fn an_import_logs_what_it_changed() {
    let site = Site::new();
    let row = |id: u32, name: &str| {
        format!("{{\"id\":{id},\"name\":\"{name}\",\"tags\":[1],{STATUSES}}}\n")
    };
    let content = "{\"id\":1,\"type\":\"Topic\",\"name\":\"Stents\"}\n";
    site.write("first/tags.jsonl", content);
    let content = row(1, "A") + &row(2, "B") + &row(3, "C");
    site.write("first/conferences.jsonl", content);
    site.write("first/journals.jsonl", "{\"id\":1,\"name\":\"J\"}\n");
    site.write(
        "second/conferences.jsonl",
        row(1, "A") + &row(2, "Bb") + "{\"id\":3,\"deleted\":true}\n" + &row(4, "D") + &row(5, "E"),
    );
    let content = "{\"id\":1,\"type\":\"Topic\",\"name\":\"Stent\"}\n";
    site.write("third/tags.jsonl", content);
    // (the arguments, the counts of conferences, journals and tags, a line of the text)
    let none = counts(0, 0, 0, 0);
    let cases = cases![
        "first --create", counts(3, 0, 0, 0), counts(1, 0, 0, 0), counts(1, 0, 0, 0),
            "conferences: 3 added, 0 changed, 0 removed";
        "second", counts(2, 1, 1, 1), none.clone(), none.clone(), "conferences: 2 added, 1 changed, 1 removed";
        "third", counts(0, 4, 0, 0), none.clone(), counts(0, 1, 0, 0), "tags: 0 added, 1 changed, 0 removed";
    ];
    for (line, conferences, journals, tags, text) in cases {
        let told = site.json(["import"].into_iter().chain(line.split(' ')));
        let commit = &commits(&site, "")[0];
        assert_eq!(commit["datasets"]["conferences"], conferences, "{line}");
        assert_eq!(commit["datasets"]["journals"], journals, "{line}");
        assert_eq!(commit["tags"], tags, "{line}");
        for part in ["datasets", "organizations", "tags"] {
            assert_eq!(commit[part], told[part], "{line}: as the import said");
        }
        let shown = site.run(["log", "--limit", "1"]).stdout;
        assert!(
            shown.contains(&format!("\n    {text}\n")),
            "{line}: {shown}"
        );
        assert!(!shown.contains("organizations:"), "{line}: {shown}");
    }
    // Other commits changed no rows.
    site.license("acme", "--dataset journals");
    let commit = &commits(&site, "")[0];
    assert!(commit["datasets"].is_null(), "{commit}");
    assert!(commit["note"].is_null(), "{commit}");
    // What each import did stays, also after a restore.
    site.backup("backup.redb");
    site.json(["restore", "backup.redb", "--yes"]);
    let added: Vec<_> = commits(&site, "")
        .iter()
        .map(|commit| commit["datasets"]["conferences"]["added"].as_u64())
        .collect();
    assert_eq!(added, [None, None, Some(0), Some(2), Some(3)]);
}

#[test]
fn a_note_is_logged_with_its_commit() {
    let site = Site::with(3);
    site.license("acme", "--dataset conferences");
    site.backup("backup.redb");
    site.write("new.jsonl", conferences_of_version(4, 1));
    let long = "ä".repeat(500);
    let notes = [
        "from the agency's list of May",
        "Ticket 4711: \"no year\"",
        long.as_str(),
    ];
    // (the command, whether it commits)
    let commands = cases![
        "import new.jsonl --dataset conferences", true;
        "import new.jsonl --dataset conferences", false;
        "license set acme --dataset conferences --dataset journals", true;
        "license set acme --dataset conferences --dry-run", false;
        "restore backup.redb --yes", true;
    ];
    for note in notes {
        for (line, is_committed) in commands {
            let before = commits(&site, "").len();
            let told = site.json(line.split(' ').chain(["--note", note]));
            assert_eq!(told["note"], note, "{line}");
            let after = commits(&site, "--limit 1000");
            let is_restore = line.starts_with("restore");
            assert_eq!(
                is_committed && !is_restore,
                after.len() > before && !is_restore,
                "{line}"
            );
            if is_committed {
                assert_eq!(after[0]["note"], note, "{line}");
                let shown = site.run(["log", "--limit", "1"]).stdout;
                assert!(
                    shown.contains(&format!("\n    note: {note}\n")),
                    "{line}: {shown}"
                );
            }
        }
    }
    // The next commit has none.
    site.key("acme", &[]);
    assert!(commits(&site, "")[0]["note"].is_null());
    for (note, part) in [
        ("", "it is empty"),
        ("a\u{1b}[2Jb", "one line of plain text"),
        (&format!("{long}."), "at most 500"),
    ] {
        for (line, _) in commands {
            let done = site.run(line.split(' ').chain(["--note", note]));
            done.assert_told(2, part);
        }
    }
}

#[test]
fn the_log_of_a_license_has_its_own_commits_only() {
    let site = Site::with(3);
    let names = ["acme", "acme eu", "acme: north", "ac"];
    let mut keys = Vec::new();
    for name in names {
        site.license(name, "--dataset conferences");
        keys.push(site.key(name, &[]).0);
    }
    site.import("conferences.jsonl", conferences_of_version(3, 1));
    for (name, key) in names.iter().zip(&keys) {
        site.license(name, "--dataset conferences --dataset journals");
        let next = site.json(["key", "replace", key]);
        site.json(["key", "revoke", next["id"].as_str().unwrap()]);
    }
    site.json(["license", "remove", "ac", "--yes"]);
    for (name, key) in names.iter().zip(&keys) {
        let found = site.json(["log", "--license", name]);
        let whats: Vec<&str> = found["commits"]
            .as_array()
            .unwrap()
            .iter()
            .map(|commit| commit["what"].as_str().unwrap())
            .collect();
        let removed = usize::from(*name == "ac");
        assert_eq!(whats.len(), 5 + removed, "{name}: {whats:?}");
        let expected = format!("key create {key} --license {name}");
        assert_eq!(whats[removed + 3], expected);
        let expected = format!("license set {name}: datasets conferences");
        assert_eq!(whats[removed + 4], expected);
    }
    let one = site.json(["log", "--license", "acme eu", "--limit", "2"]);
    assert_eq!(one["commits"].as_array().unwrap().len(), 2);
    let shown = site.run(["log", "--license", "acm"]);
    assert_eq!(shown.stdout.trim(), "No commit matches.");
    let none = site.run(["log", "--license", "acme", "--since", "2100-01-01"]);
    let expected = (Some(0), "No commit matches.");
    assert_eq!((none.code, none.stdout.trim()), expected);
}
