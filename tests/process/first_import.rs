//! A new database gets its name with its first commit, not before.

use std::process::{Command, Stdio};

use super::site::{Process, SOON, Site, conferences_of_version};

/// The names in a site's folder.
fn names(site: &Site) -> Vec<String> {
    let entries = std::fs::read_dir(site.folder()).unwrap();
    let mut names: Vec<String> = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

#[test]
fn a_refused_first_import_leaves_no_file() {
    let site = Site::new();
    let bad = site.write("conferences.jsonl", "{\"id\": 0}\n");
    let good = site.write("journals.jsonl", "{\"id\": 1, \"name\": \"J\"}\n");
    let (bad, good) = (bad.to_str().unwrap(), good.to_str().unwrap());
    let before = names(&site);
    let cases = [
        (&["import", bad, "--create"][..], 1),
        (&["import", good], 1),
        (&["import", good, "--dry-run"], 0),
        (&["license", "set", "a", "--dataset", "journals"], 1),
        (&["license", "set", "a", "--dataset", "journals", "--dry-run"], 0),
        (&["license", "list"], 1),
        (&["key", "create", "--license", "a"], 1),
        (&["check"], 1),
    ];
    for (args, code) in cases {
        assert_eq!(site.run(args).code, Some(code), "{args:?}");
        assert_eq!(names(&site), before, "{args:?}");
    }
    assert_eq!(site.run(["import", good, "--create"]).code, Some(0));
    assert!(site.db().exists());
}

#[test]
fn two_first_imports_come_one_after_the_other() {
    let site = Site::new();
    let conferences = site.write("conferences.jsonl", conferences_of_version(200, 0));
    let journals = site.write("journals.jsonl", "{\"id\": 1, \"name\": \"J\"}\n");
    let spawn = |file: &std::path::Path| {
        let mut command: Command = site.command(["import", "--create", file.to_str().unwrap()]);
        Process::spawn(command.stdout(Stdio::null()))
    };
    let mut imports = [spawn(&conferences), spawn(&journals)];
    for import in &mut imports {
        let ended = import.ended_within(SOON).expect("the import ends");
        assert!(ended.success(), "{ended}");
    }
    let out = site.path("out");
    site.json(["export", out.to_str().unwrap()]);
    let lines = |name: &str| std::fs::read_to_string(out.join(name)).unwrap().lines().count();
    assert_eq!((lines("conferences.jsonl"), lines("journals.jsonl")), (200, 1));
}
