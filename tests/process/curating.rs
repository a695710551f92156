//! Help for curators: lint, dry runs that show the change, `show` and `log`.

use serde_json::{Value, json};

use super::site::{STATUSES, Site, assert_contains, conferences_of_version};

/// A conference in JSON.
fn conference(id: u64, name: &str, fields: &str) -> String {
    format!("{{\"id\":{id},\"name\":\"{name}\",\"year\":2026,{fields}{STATUSES}}}\n")
}

/// Twelve conferences of Oncology, and a license that names it.
fn oncology() -> Site {
    let site = Site::new();
    let rows: String = (1..=12)
        .map(|id| {
            conference(
                id,
                &format!("Congress {id}"),
                "\"therapy_areas\":[\"Oncology\"],",
            )
        })
        .collect();
    site.import("conferences.jsonl", rows);
    site.license("acme", "--dataset conferences --therapy-area Oncology");
    site
}

/// The rules of findings.
fn rules(findings: &Value) -> Vec<&str> {
    findings
        .as_array()
        .unwrap()
        .iter()
        .map(|finding| finding["rule"].as_str().unwrap())
        .collect()
}

#[test]
fn files_and_the_database_are_linted() {
    let site = oncology();
    let log = || site.json(["log"])["commits"].as_array().unwrap().len();
    let commits = log();
    let clean = site.run(["lint"]);
    assert_eq!(clean.code, Some(0), "{clean:?}");
    assert_eq!(clean.stdout.trim_end(), "No findings.", "{clean:?}");

    let spoiled = conference(
        1,
        "Congress 1",
        "\"therapy_areas\":[\"Oncolgy\"],\"url\":\"www.a.example\",",
    );
    let file = site.write("conferences.jsonl", spoiled);
    let file = file.to_str().unwrap();
    let linted = site.run(["lint", file]);
    assert_eq!(linted.code, Some(1), "{linted:?}");
    for expected in [
        "therapy_areas: `Oncolgy` - looks like a misspelling of `Oncology` (1 row); licenses that name the right one \
         (acme) do not match",
        "url: `www.a.example` - is not a complete address; write `https://www.a.example`",
        "2 findings",
    ] {
        assert!(linted.stdout.contains(expected), "{expected}: {linted:?}");
    }
    let told = site.run(["lint", file, "--json"]).json();
    assert_eq!(
        (&told["ok"], rules(&told["findings"])),
        (&json!(false), vec!["no_address", "area_spelling"]),
        "{told}"
    );

    let strict = site.run(["import", file, "--strict"]);
    assert_eq!(strict.code, Some(1), "{strict:?}");
    strict.assert_err("error: 2 warnings; nothing was changed, because --strict refuses warnings");
    let strict = site.run(["import", file, "--strict", "--json"]).json();
    assert_eq!(strict["committed"], false, "{strict}");
    assert_eq!(strict["error_count"], 2, "{strict}");
    assert_eq!(log(), commits, "nothing was committed");

    // An import warns only about changes; lint also checks stored rows.
    site.json(["import", file]);
    assert_eq!(
        site.json(["import", file, "--strict"])["warnings"],
        json!([])
    );
    let told = site.run(["lint", "--json"]).json();
    let found = rules(&told["findings"]);
    assert_eq!(found, ["no_address", "area_spelling"], "{told}");
    assert_eq!(told["findings"][0]["kind"], "conferences");
    assert_eq!(told["findings"][0]["id"], 1);
    let text = site.run(["lint"]).stdout;
    let part = "conferences 1: url: `www.a.example` - is not a complete address";
    assert_contains(&text, part);
    let told = site.run(["lint", file, "--json"]).json();
    let found = rules(&told["findings"]);
    assert_eq!(found, ["no_address", "area_spelling"], "{told}");

    // Lint removes nothing, so it needs no permission to remove many records.
    let removals: String = (2..=12)
        .map(|id| format!("{{\"id\":{id},\"deleted\":true}}\n"))
        .collect();
    let removals = site.write("removals/conferences.jsonl", removals);
    assert_eq!(
        site.run([
            "import".as_ref(),
            removals.as_os_str(),
            "--dry-run".as_ref()
        ])
        .code,
        Some(1)
    );
    let linted = site.run(["lint".as_ref(), removals.as_os_str()]);
    assert_eq!(linted.code, Some(0), "{linted:?}");
    assert_eq!(linted.stdout.trim_end(), "No findings.", "{linted:?}");

    // Lint reports faults as an import reports them.
    let bad = site.write("journals.jsonl", "{\"id\":0}\n");
    let refused = site.run(["lint", bad.to_str().unwrap()]);
    refused.assert_told(1, "journals.jsonl:1: id");
}

#[test]
fn files_are_linted_without_a_database() {
    let site = Site::new();
    let content = conference(1, "TBD", "\"therapy_areas\":[\"Oncolgy\"],");
    let file = site.write("conferences.jsonl", content);
    let told = site.run(["lint", file.to_str().unwrap(), "--json"]);
    assert_eq!(told.code, Some(1));
    let expected = ["placeholder", "area_spelling"];
    assert_eq!(rules(&told.json()["findings"]), expected, "{told:?}");
    assert!(!site.db().exists(), "lint makes no database");
    let none = site.run(["lint"]);
    none.assert_told(1, "there is no database");
}

#[test]
fn an_import_corrects_values_only_with_fix() {
    let site = oncology();
    let rows = "id,name,issn_print,issn_online\n1,Heart &amp; Lung ,00284793,\n2,SociÃ©tÃ©,0140–6736,0000-0000\n3,TBD,,\n";
    let file = site.write("journals.csv", rows);
    let file = file.to_str().unwrap();
    let dry = site.run(["import", file, "--fix", "--dry-run"]);
    let shown = [
        "journals.csv:2: name: `Heart &amp; Lung ` - is corrected to `Heart & Lung`",
        "journals.csv:3: name: `SociÃ©tÃ©` - is corrected to `Société`",
        "journals.csv:3: issn_online: `0000-0000` - is left empty",
        "3 corrections",
        "Dry run: nothing was changed, with 1 warning.",
    ];
    for expected in shown {
        assert!(dry.stdout.contains(expected), "{expected}: {dry:?}");
    }
    let told = site.json(["import", file, "--fix"]);
    assert_eq!(rules(&told["warnings"]), ["placeholder"], "{told}");
    let fixes = told["fixes"].as_array().unwrap();
    assert_eq!(fixes.len(), 3, "{told}");
    assert_eq!(fixes[1]["file"], file);
    let fix = json!([
        fixes[1]["line"],
        fixes[1]["field"],
        fixes[1]["value"],
        fixes[1]["to"]
    ]);
    assert_eq!(fix, json!([3, "name", "SociÃ©tÃ©", "Société"]));
    assert_eq!(fixes[2].get("to"), Some(&Value::Null));
    assert_eq!(fixes[2]["field"], "issn_online");
    let linted = site.run(["lint", "--json"]).json();
    assert_eq!(rules(&linted["findings"]), ["placeholder"], "{linted}");
    // Without `--fix`, nothing is corrected.
    let told = site.json(["import", file]);
    assert_eq!(told["datasets"]["journals"]["changed"], 2, "{told}");
    assert_eq!(told["fixes"], json!([]), "{told}");
}

#[test]
fn a_dry_run_shows_the_change() {
    let site = oncology();
    let rows = [
        conference(
            1,
            "Congress 1",
            "\"city\":\"Paris\\u001b[2J\",\"therapy_areas\":[\"Cardiology\"],",
        ),
        conference(
            2,
            "Congress 2",
            "\"city\":\"Lyon\",\"therapy_areas\":[\"Cardiology\",\"Oncology\"],",
        ),
        "{\"id\":3,\"deleted\":true}\n".to_owned(),
        (100..=125)
            .map(|id| {
                conference(
                    id,
                    &format!("New {id}"),
                    "\"therapy_areas\":[\"Oncology\"],",
                )
            })
            .collect(),
    ];
    let file = site.write("conferences.jsonl", rows.concat());
    let file = file.to_str().unwrap();
    let text = site.run(["import", file, "--dry-run"]).stdout;
    let expected = [
        "conferences added:\n  100 New 100\n  101 New 101\n",
        "  119 New 119\n  and 6 more; --json lists all\nconferences changed:\n  1 Congress 1\n      city: (empty) → Paris\\u{1b}[2J\n",
        "      therapy_areas: Oncology → Cardiology\n  2 Congress 2\n      city: (empty) → Lyon\n",
        "conferences removed:\n  3 Congress 3\n",
        "license `acme`, conferences: records entering: 26, changing: 1, leaving: 2\n  enter  100 New 100\n",
        "  change 2 Congress 2\n  leave  1 Congress 1\n  leave  3 Congress 3\n",
        "Dry run: nothing was changed, with 1 warning.",
    ];
    for expected in expected {
        assert!(text.contains(expected), "{expected}\n{text}");
    }
    let told = site.json(["import", file, "--dry-run"]);
    assert_eq!(told["committed"], false, "{told}");
    assert_eq!(told["changes"].as_array().unwrap().len(), 29, "{told}");
    let first = json!({
        "dataset": "conferences", "id": 1, "name": "Congress 1", "change": "changed", "fields": [
            {"field": "city", "before": null, "after": "Paris\u{1b}[2J"},
            {"field": "therapy_areas", "before": ["Oncology"], "after": ["Cardiology"]},
        ],
    });
    assert_eq!(told["changes"][0], first);
    let acme = &told["license_changes"][0];
    let lengths =
        ["entering", "changed", "leaving"].map(|list| acme[list].as_array().unwrap().len());
    assert_eq!(acme["license"], "acme", "{acme}");
    assert_eq!(lengths, [26, 1, 2], "{acme}");
    assert_eq!(acme["leaving"][1], json!({"id": 3, "name": "Congress 3"}));
    // The import then makes the shown changes.
    let done = site.json(["import", file]);
    assert_eq!(done["licenses"], told["licenses"], "{done}");
    assert_eq!(done["committed"], true);
    assert_eq!(done["changes"], Value::Null);
}

#[test]
fn a_dry_run_shows_the_records_that_a_linked_row_changes() {
    let site = oncology();
    site.import("organizations.csv", "id,name,url\n1,ASCO,\n");
    site.import("conferences.csv", "id,organizations\n1,ASCO\n");
    let cases = cases![
        "id,name\n1,ASCO Inc\n",
            "      name: ASCO → ASCO Inc\nconferences changed:\n  1 Congress 1\n      organizations: ASCO → ASCO Inc\n";
        "id,url\n1,https://asco.example\n", "  1 Congress 1\n      organizations: ASCO (a linked row changed)\n";
    ];
    for (rows, expected) in cases {
        let file = site.write("organizations.csv", rows);
        let text = site
            .run(["import", file.to_str().unwrap(), "--dry-run"])
            .stdout;
        assert!(text.contains(expected), "{expected}\n{text}");
    }
}

#[test]
fn a_record_that_no_license_can_show_is_shown_to_its_curator() {
    let site = Site::new();
    site.import("journals.jsonl", "{\"id\":1,\"name\":\"Journal\"}\n");
    let shown = site.run(["show", "journals", "1"]);
    let is_told = shown
        .stdout
        .ends_with("\nthere are no licenses yet, so nobody can see it\n");
    assert!(shown.code == Some(0) && is_told, "{shown:?}");
}

#[test]
fn a_record_is_shown_with_its_licenses_and_history() {
    let site = oncology();
    site.license("hearts", "--dataset conferences --therapy-area Cardiology");
    site.license("papers", "--dataset journals");
    let shown = site.run(["show", "conferences", "1"]);
    let expected = [
        "conferences 1\n  name                           Congress 1\n  abbv                           -\n",
        "  therapy_areas                  Oncology\n",
        "last changed 20",
        "license `acme` shows it\nlicense `hearts` does not show it:\n  therapy areas: the record has Oncology, the license allows Cardiology\n",
        "license `papers` does not show it:\n  the license does not include the dataset `conferences`\n",
    ];
    for expected in expected {
        assert!(shown.code == Some(0), "{expected}\n{shown:?}");
        assert!(shown.stdout.contains(expected), "{expected}\n{shown:?}");
    }
    let told = site.json(["show", "conferences", "1"]);
    assert_eq!(told["record"]["id"], 1, "{told}");
    assert_eq!(told["record"]["formats"]["oral"], Value::Null, "{told}");
    assert_eq!(told["last_change"]["seq"], 12, "{told}");
    assert_eq!(told["licenses"][0]["visible"], true, "{told}");
    // In the words of `license explain`.
    let explained = site.json(["license", "explain", "hearts", "conferences", "1"]);
    assert_eq!(told["licenses"][1]["reasons"], explained["reasons"]);

    site.import(
        "conferences.jsonl",
        "{\"id\":2,\"deleted\":true}\n{\"id\":1,\"city\":\"Paris\"}\n",
    );
    let cases = cases![
        "2", "record 2 of conferences was removed; it left the last license that showed it at 20";
        "77", "there is no record 77 of conferences, and none of the present licenses has shown one";
    ];
    for (id, expected) in cases {
        let missing = site.run(["show", "conferences", id]);
        missing.assert_told(1, expected);
    }

    let whats = |args: &[&str]| -> Vec<String> {
        let told = site.json(args);
        let commits = told["commits"].as_array().unwrap();
        commits
            .iter()
            .map(|commit| {
                commit["what"]
                    .as_str()
                    .unwrap()
                    .split(' ')
                    .take(3)
                    .collect::<Vec<_>>()
                    .join(" ")
            })
            .collect()
    };
    let import = format!("import {}", site.path("conferences.jsonl").display());
    let cases: [(&[&str], Vec<&str>); 7] = cases![
        &["log", "--limit", "2"], vec![&import, "license set papers:"];
        &["log", "conferences", "1"], vec![&import, "license set acme:"];
        &["log", "conferences", "2"], vec![&import, "license set acme:"];
        &["log", "conferences", "5"], vec!["license set acme:", &import];
        &["log", "journals", "5"], vec![];
        &["log", "--since", "2999-01-01"], vec![];
        &["log", "--until", "2000-01-01"], vec![];
    ];
    for (args, expected) in cases {
        assert_eq!(whats(args), expected, "{args:?}");
    }
    let newest = &site.json(["log", "--limit", "1"])["commits"][0]["records"];
    let expected = json!([{
        "dataset": "conferences", "changed_count": 1, "changed": [{"id": 1, "name": "Congress 1"}], "removed": [2],
    }]);
    assert_eq!(*newest, expected);
    let text = site.run(["log"]).stdout;
    let expected = [
        "TIME                  SEQ  WHO",
        "    conferences last changed: 1 Congress 1\n    conferences that left licenses and are removed now: 2\n",
        "    conferences last changed: 3 Congress 3, 4 Congress 4, 5 Congress 5 and 7 more\n",
    ];
    for expected in expected {
        assert!(text.contains(expected), "{expected}\n{text}");
    }
    // The limit counts the matching commits, from the newest on.
    assert_eq!(
        whats(&["log", "conferences", "5", "--limit", "1"]),
        ["license set acme:"]
    );
    assert_eq!(whats(&["log", "--limit", "0"]).len(), 0);
    let all = site.json(["log", "--limit", "999"])["commits"]
        .as_array()
        .unwrap()
        .clone();
    let text = |commit: &Value| commit["time"].as_str().unwrap().to_owned();
    let seqs = |args: &[&str]| -> Vec<Value> {
        site.json(args)["commits"]
            .as_array()
            .unwrap()
            .iter()
            .map(|commit| commit["seq"].clone())
            .collect()
    };
    for time in all.iter().map(text) {
        let of = |is_in: &dyn Fn(&str) -> bool| -> Vec<Value> {
            all.iter()
                .filter(|commit| is_in(&text(commit)))
                .map(|commit| commit["seq"].clone())
                .collect()
        };
        let found = seqs(&["log", "--since", &time]);
        assert_eq!(found, of(&|own| own >= time.as_str()), "since {time}");
        let found = seqs(&["log", "--until", &time]);
        assert_eq!(found, of(&|own| own < time.as_str()), "until {time}");
    }
    let none = site.run(["log", "conferences"]);
    assert_eq!(none.code, Some(2), "{none:?}");
}

#[test]
fn a_removed_record_is_shown_with_the_commit_by_which_it_left_its_last_license() {
    let site = oncology();
    site.license("all", "--dataset conferences");
    // Two records leave `acme`, one by its own change and one by another scope. Then both are removed.
    let steps: [&dyn Fn(); 4] = [
        &|| {
            drop(site.import(
                "conferences.jsonl",
                "{\"id\":1,\"therapy_areas\":[\"Cardiology\"]}\n",
            ))
        },
        &|| {
            drop(site.license(
                "acme",
                "--dataset conferences --therapy-area Oncology --year 2027",
            ))
        },
        &|| drop(site.import("conferences.jsonl", "{\"id\":1,\"deleted\":true}\n")),
        &|| drop(site.import("conferences.jsonl", "{\"id\":2,\"deleted\":true}\n")),
    ];
    let commits: Vec<Value> = steps
        .into_iter()
        .map(|step| {
            step();
            site.json(["log", "--limit", "1"])["commits"][0].clone()
        })
        .collect();
    for (id, removal) in [("1", &commits[2]), ("2", &commits[3])] {
        let missing = site.run(["show", "conferences", id]);
        let expected = format!(
            "it left the last license that showed it at {}, seq {}, by {}: {}",
            removal["time"].as_str().unwrap(),
            removal["seq"],
            removal["who"].as_str().unwrap(),
            removal["what"].as_str().unwrap()
        );
        missing.assert_told(1, &expected);
    }
}

#[test]
fn skipped_files_of_a_folder_are_named_and_are_not_in_the_history() {
    let site = Site::new();
    site.write("lists/conferences.jsonl", conferences_of_version(2, 0));
    site.write("lists/journals (1).csv", "id,name\n1,A\n");
    let done = site.run(["import", "lists", "--create"]);
    done.assert_told(0, "lists/journals (1).csv: is skipped, since");
    let expected = "import lists/conferences.jsonl";
    assert_eq!(site.json(["log"])["commits"][0]["what"], expected);
    assert_eq!(site.run(["import", "lists", "--strict"]).code, Some(1));
}
