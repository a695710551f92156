//! The command line: exit codes and output.

use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::process::Stdio;

use super::other_users::can_be_nobody;
use super::site::{Done, STATUSES, Site, conferences_of_version};

/// The stream of the expected text.
#[derive(Clone, Copy, Debug)]
enum On {
    Out,
    Err,
}
use On::{Err as OnErr, Out};

/// A line of a table: the arguments, the exit code, the stream, and a part of its text.
type Case<'a> = (&'a str, i32, On, &'a str);

/// Runs the lines one after the other on one database; `_` in an argument stands for a blank.
fn check_cases(site: &Site, cases: &[Case<'_>]) {
    for (line, code, output, expected) in cases {
        let args = line.split_whitespace();
        let args: Vec<String> = args.map(|word| word.replace('_', " ")).collect();
        let done = site.run(&args);
        let told = match output {
            Out => &done.stdout,
            OnErr => &done.stderr,
        };
        assert_eq!(done.code, Some(*code), "{line}: {done:?}");
        assert!(
            told.contains(expected),
            "{line}: expected {expected:?} in {output:?}: {done:?}"
        );
        if args.iter().any(|arg| arg == "--json") {
            let object = done.json();
            assert!(
                object.is_object() && done.stdout.lines().count() == 1,
                "{line}: one JSON object: {done:?}"
            );
        }
    }
}

#[test]
fn commands_without_a_database_name_a_remedy() {
    let site = Site::new();
    let missing = "create one with `medfeed import --create`";
    site.write("bad/conferences.jsonl", "{\"id\":0}\n");
    let rows = site.write("conferences.jsonl", conferences_of_version(3, 0));
    let before = site.files();
    check_cases(
        &site,
        &cases![
            "--help", 0, Out, "Usage: medfeed";
            "--version", 0, Out, "medfeed 0.";
            "frobnicate --json", 2, Out, "{\"error\":\"unrecognized subcommand";
            "serve --listen 127.0.0.1:0", 1, OnErr,
                "create one with `medfeed import --create`, start with an empty one by --create, or name another with --db";
            "export out", 1, OnErr, missing;
            "check", 1, OnErr, missing;
            "license list", 1, OnErr, missing;
            "license show x", 1, OnErr, missing;
            "license remove x --yes", 1, OnErr, missing;
            "license explain x journals 1", 1, OnErr, missing;
            "key list", 1, OnErr, missing;
            "key create --license x", 1, OnErr, missing;
            "key revoke x", 1, OnErr, missing;
            "compact", 1, OnErr, missing;
            "check --json", 1, Out, "{\"error\":\"there is no database at ";
            "--json key list", 1, Out, "{\"error\":\"there is no database at ";
            "license set x --dataset journals --dry-run", 0, Out, "would be created";
            "license set x --dataset journals", 1, OnErr,
                "feed.redb: give --db or MEDFEED_DB the path of yours, or add";
            "license set x --dataset journals --json", 1, Out, "{\"error\":\"no database at ";
            "import nowhere.jsonl", 1, OnErr, "add --create to make a new one there";
            "import nowhere.jsonl --json", 1, Out, "{\"error\":\"no database at ";
            "import nowhere.jsonl --create", 1, OnErr, "nowhere.jsonl";
            "import bad --create", 1, OnErr, "bad/conferences.jsonl:1: id: ";
            "license set x --dataset journals --create --dry-run", 0, Out, "would be created";
        ],
    );
    let done = site.run([
        "import".as_ref(),
        rows.as_os_str(),
        "--dry-run".as_ref(),
        "--json".as_ref(),
    ]);
    let expected = (Some(0), &false.into());
    assert_eq!((done.code, &done.json()["committed"]), expected, "{done:?}");
    assert_eq!(done.json()["datasets"]["conferences"]["added"], 3);
    assert_eq!(
        site.files(),
        before,
        "refused commands and dry runs leave no file and no folder"
    );
}

#[test]
fn license_and_key_commands_have_the_listed_results() {
    let site = Site::new();
    let rows = format!(
        "{{\"id\":1,\"name\":\"A\",\"year\":2026,\"country\":\"South Korea\",\"therapy_areas\":[\"Oncology\"],{STATUSES}}}\n\
         {{\"id\":2,\"name\":\"B\",{STATUSES}}}\n"
    );
    site.import("conferences.jsonl", rows);
    check_cases(
        &site,
        &cases![
            "license list", 0, Out, "There are no licenses yet";
            "key list", 0, Out, "There are no keys yet";
            "license set x --dataset conferences --dry-run", 0, Out, "would be created";
            "license show x", 1, OnErr, "there is no license `x`";
            "license set x --dataset conferences --therapy-area Oncology,Oncology", 1, OnErr,
                "names several values; repeat the option";
            "license set x --dataset conferences --country South_Korea --year 2025..2027", 0, Out,
                "records entering: 1, leaving: 0";
            "license set x --dataset conferences --country South_Korea --year 2025..2027", 0, Out, "nothing to change";
            "license set x --dataset conferences --year 2025..2027", 1, OnErr, "--country";
            "license set x --dataset conferences --json", 1, Out,
                "\"error\":\"the license is restricted by --country and --year";
            "license show x --json", 0, Out, "\"years\":[2025,2026,2027],\"name\":\"x\",\"rate_limit\":600";
            "license show x --json", 0, Out, "\"therapy_areas\":null,\"countries\":[\"South Korea\"]";
            "license explain x conferences 1", 0, Out, "is visible";
            "license explain x conferences 2", 0, Out, "the license allows South Korea";
            "license explain x conferences 2 --json", 0, Out, "\"exists\":true,";
            "license explain x conferences 2 --json", 0, Out, "\"visible\":false";
            "license explain x conferences 3", 0, Out, "there is no such record";
            "license explain x journals 1", 0, Out, "does not include the dataset `journals`";
            "license explain y journals 1", 1, OnErr, "there is no license `y`";
            "license set x --dataset conferences --dataset journals --country South_Korea --country Narnia --year 2026",
                0, OnErr, "no conference is in the country `Narnia`";
            "license set x --dataset conferences --widen --dry-run", 0, Out, "Older sync tokens would get 410";
            "license set x --dataset conferences --widen", 0, Out, "Older sync tokens get 410";
            "license set x --dataset conferences --rate-limit 5 --dry-run", 0, Out, "Only the rate limit";
            "license set x --dataset conferences --rate-limit 5", 0, Out, "Sync tokens stay valid";
            "license list --json", 0, Out, "\"rate_limit\":5";
            "key create --license y", 1, OnErr, "there is no license `y`";
            "key create --license x --label Ann's_key", 0, Out, "mfk_";
            "key list", 0, Out, "Ann's key";
            "key list --json", 0, Out, "\"status\":\"active\"";
            "key revoke nokey", 1, OnErr, "there is no key `nokey`";
            "key replace nokey --json", 1, Out, "{\"error\":\"there is no key `nokey`";
            "license remove y --yes", 1, OnErr, "there is no license `y`";
            "license remove x --json", 1, Out, "add --yes";
            "license remove x --yes --json", 0, Out, "\"revoked_keys\":1";
            "license list --json", 0, Out, "{\"licenses\":[]}";
            "check --json", 0, Out, "\"ok\":true";
            "check", 0, Out, "is sound";
        ],
    );
    let listed = site.json(["key", "list"]).to_string();
    assert!(
        !listed.contains("mfk_"),
        "keys are not shown again: {listed}"
    );
    // Removing a license removes its expired keys.
    site.license("e", "--dataset journals");
    site.expired_key("e");
    check_cases(
        &site,
        &cases![
            "key list --json", 0, Out, "\"status\":\"expired\"";
            "license remove e --yes --json", 0, Out, "\"revoked_keys\":0";
            "check", 0, Out, "is sound";
            "license set y --dataset journals", 0, Out, "is created";
            "key create --license y --expires 2099-12-31 --json", 0, Out, "\"expires_at\":\"2100-01-01T00:00:00Z\"";
            "key create --license y --expires 30d", 0, OnErr, "for license `y`, until 2";
        ],
    );
}

#[test]
fn a_replaced_key_is_listed_with_the_end_of_its_overlap() {
    let site = Site::new();
    site.license("x", "--dataset journals");
    let listed = |id: &str| -> (serde_json::Value, String) {
        let keys = site.json(["key", "list"])["keys"]
            .as_array()
            .unwrap()
            .clone();
        let key = keys.into_iter().find(|key| key["id"] == id).unwrap();
        let text = site.run(["key", "list"]).stdout;
        (
            key,
            text.lines()
                .find(|line| line.starts_with(id))
                .unwrap()
                .to_owned(),
        )
    };
    // (the settings of the key, its overlap, whether the overlap ends first)
    let cases = [
        (&[][..], "24h", true),
        (&["--expires", "30d"], "24h", true),
        (&["--expires", "2d"], "72h", false),
    ];
    for (settings, overlap, ends_first) in cases {
        let (id, _) = site.key("x", settings);
        let (before, line) = listed(&id);
        let expected = settings.is_empty();
        assert_eq!(before["expires_at"].is_null(), expected, "{before} {line}");
        let new = site.json(["key", "replace", &id, "--overlap", overlap])["id"]
            .as_str()
            .unwrap()
            .to_owned();
        let (after, line) = listed(&id);
        let end = after["expires_at"].as_str().unwrap();
        assert_eq!(after["status"], "replaced", "{after}");
        assert_eq!(
            after["expires_at"] == after["revoked_at"],
            ends_first,
            "{after}"
        );
        assert!(
            ends_first || after["expires_at"] == before["expires_at"],
            "{after}"
        );
        assert!(line.contains(end), "{line}");
        assert_eq!(
            listed(&new).0["expires_at"],
            before["expires_at"],
            "the new key has the old one's settings"
        );
    }
}

#[test]
fn import_and_export_commands_have_the_listed_results() {
    let site = Site::with(40);
    let broken = "id,name,start_date,nmae\n41,X,2026-13-01,x\n,,,\n";
    site.write("broken/conferences.csv", broken);
    site.write("few/conferences.jsonl", conferences_of_version(3, 0));
    site.write("same/conferences.jsonl", conferences_of_version(40, 0));
    let others = words![
        "other/conferences.ndjson" "tabs/tags.tsv" "macros/medfeed.xlsm" "capitals/Journals.JSONL"
    ];
    for name in ["lines/journals.jsonl.gz", "rows/tags.csv.gz"]
        .into_iter()
        .chain(others)
    {
        site.write(name, "");
    }
    check_cases(
        &site,
        &cases![
            "import broken", 1, OnErr, "broken/conferences.csv:1: nmae: unknown column; did you mean `name`?";
            "import broken", 1, OnErr,
                "broken/conferences.csv:2: start_date: `2026-13-01` - write a date as YYYY-MM-DD";
            "import broken", 1, OnErr, "nothing was changed";
            "import broken --json", 1, Out, "\"file\":\"broken/conferences.csv\",\"line\":2,\"field\":\"start_date\"";
            "import same", 0, Out, "Nothing is new";
            "import same --json", 0, Out, "\"committed\":true";
            "import few --replace", 1, OnErr, "--allow-removals 37";
            "import few --replace --json", 1, Out,
                "\"committed\":false,\"error\":\"the import would remove 37 of 40 conferences";
            "import few --replace --allow-removals 36", 1, OnErr, "--allow-removals 37";
            "import few --replace --allow-removals 37 --dry-run", 0, Out, "37 removed";
            "import few --replace --allow-removals 37", 0, Out, "Committed";
            "import same", 0, Out, "37 added";
            "import - --dataset journals", 0, OnErr, "has no rows";
            "import same --dataset journals", 1, OnErr, "same is a folder";
            "import same --map Website=website", 1, OnErr, "there is no field `website`";
            "import same --map Website", 2, OnErr, "such as 'Website=url'";
            "template papers", 1, OnErr, "neither `conferences`";
            "template tags", 0, Out, "id,type,name,category\n";
            "template tags --format xlsx --json", 0, Out, "{\"file\":\"tags.xlsx\"}";
            "template tags --format xlsx", 1, OnErr, "tags.xlsx";
            "import tags.xlsx", 0, OnErr, "tags.xlsx[tags]: has no rows";
            "import - --dataset papers --format csv", 2, OnErr, "papers";
            "import - --dataset journals --format csv", 0, OnErr, "has no rows";
            "export out", 0, Out, "conferences.jsonl: 40 rows";
            "export out", 0, Out, "journals.jsonl: 0 rows";
            "export out --format csv", 1, OnErr, "would import every row twice";
            "export out --format csv --json", 1, Out, "{\"error\":";
            "export lines", 1, OnErr, "lines/journals.jsonl.gz exists already";
            "export lines --format csv", 1, OnErr, "would import every row twice";
            "export rows --format csv", 1, OnErr, "rows/tags.csv.gz exists already";
            "export other", 1, OnErr, "other/conferences.ndjson exists already";
            "export tabs", 1, OnErr, "tabs/tags.tsv exists already";
            "export tabs --format xlsx", 1, OnErr, "tabs/tags.tsv exists already";
            "export macros --format xlsx", 1, OnErr, "macros/medfeed.xlsm exists already";
            "export capitals", 1, OnErr, "capitals/Journals.JSONL exists already";
            "export capitals/book.xlsx", 0, Out, "capitals/book.xlsx: 40 rows";
            "export table --format csv --json", 0, Out, "\"rows\":40";
            "export conferences.jsonl", 1, OnErr, "conferences.jsonl";
            "export book.xlsx --format csv", 1, OnErr, "is the name of a workbook";
            "export book.xlsx", 0, Out, "book.xlsx: 40 rows";
            "export book --format xlsx", 0, Out, "book/medfeed.xlsx: 40 rows";
            "export book --format xlsx", 0, Out, "book/medfeed.xlsx: 40 rows";
            "export book", 1, OnErr, "would import every row twice";
            "export out --format xlsx", 1, OnErr, "would import every row twice";
            "export out/medfeed.xlsx", 1, OnErr, "out/organizations.jsonl exists already";
            "export table/Medfeed.XLSX", 1, OnErr, "table/organizations.csv exists already";
            "export table/tags.xlsx", 1, OnErr, "table/organizations.csv exists already";
            "export table/all.xlsx", 0, Out, "table/all.xlsx: 40 rows";
            "export book/medfeed.xlsx", 0, Out, "book/medfeed.xlsx: 40 rows";
            "import book.xlsx --json", 0, Out, "\"unchanged\":40";
            "import book --json", 0, Out, "\"unchanged\":40";
            "import out --json", 0, Out, "\"unchanged\":40";
            "import table --json", 0, Out, "\"unchanged\":40";
        ],
    );
    let mut names = vec!["all.xlsx".to_owned()];
    names.extend(
        ["conferences", "journals", "organizations", "tags"].map(|stem| format!("{stem}.csv")),
    );
    let mut written: Vec<String> = std::fs::read_dir(site.path("table"))
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    written.sort();
    assert_eq!(
        written, names,
        "the four files, the workbook, and no drafts"
    );
    site.check();
}

#[test]
fn an_import_reads_standard_input() {
    let site = Site::new();
    let mut command =
        site.command("import - --create --dataset journals --format jsonl --json".split(' '));
    let mut child = command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    child
        .stdin
        .take()
        .unwrap()
        .write_all("{\"id\":1,\"name\":\"Ängstrom\"}\nnonsense\n".as_bytes())
        .unwrap();
    let output = child.wait_with_output().unwrap();
    let refused: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(output.status.code(), Some(1), "{refused}");
    assert_eq!(refused["errors"][0]["file"], "-", "{refused}");
    assert_eq!(refused["errors"][0]["line"], 2, "{refused}");
}

#[test]
fn options_that_configure_have_variables() {
    let site = Site::new();
    site.import("journals.jsonl", "{\"id\":1,\"name\":\"J\"}\n");
    let run = |args: &[&str], variables: &[(&str, &str)]| {
        site.command(args)
            .envs(variables.iter().copied())
            .output()
            .unwrap()
    };
    // Options that select what a single command does have no variable.
    let output = run(&["license", "set", "x"], &[("MEDFEED_DATASET", "journals")]);
    assert_eq!(output.status.code(), Some(2), "{output:?}");
    let set = ["license", "set", "x", "--dataset", "journals"];
    let output = run(
        &set,
        &[
            ("MEDFEED_JSON", "1"),
            ("MEDFEED_DRY_RUN", "1"),
            ("MEDFEED_YEAR", "2026"),
        ],
    );
    let told: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(told["committed"], true, "{output:?}");
    let output = run(&["license", "list"], &[("MEDFEED_JSON", "false")]);
    assert!(output.stdout.starts_with(b"NAME  DATASETS"), "{output:?}");
    for (value, begins) in [
        ("1", "{\"error\":\"unexpected argument"),
        ("false", ""),
        ("", ""),
    ] {
        let output = run(
            &["license", "list", "--nothing"],
            &[("MEDFEED_JSON", value)],
        );
        let told = String::from_utf8(output.stdout).unwrap();
        assert!(told.starts_with(begins), "{value:?}: {told}");
        assert!(told.is_empty() == begins.is_empty(), "{value:?}: {told}");
    }
    let output = run(
        &["license", "list"],
        &[("MEDFEED_DB", "elsewhere.redb"), ("MEDFEED_JSON", "true")],
    );
    assert!(
        output
            .stdout
            .starts_with(b"{\"error\":\"there is no database at elsewhere.redb"),
        "{output:?}"
    );
}

/// Each page lists the command's own options first, then the global ones, then examples.
#[test]
fn help_lists_options_and_examples() {
    let site = Site::new();
    let commands = "demo, serve, import, export, license set, license list, license show, license remove, license explain, \
                    key create, key list, key revoke, key replace, log, check, backup, restore, compact, completions, man";
    for command in commands.split(", ") {
        let done = site.run(command.split(' ').chain(["--help"]));
        let (own, global) = done
            .stdout
            .split_once("\nGlobal options:\n")
            .unwrap_or((&done.stdout, ""));
        for option in ["db", "json", "wait", "publish-wait"] {
            let listed = |text: &str| {
                text.contains(&format!("      --{option} "))
                    || text.contains(&format!("      --{option}\n"))
            };
            assert!(!listed(own), "{command}: --{option}: {done:?}");
            assert!(listed(global), "{command}: --{option}: {done:?}");
        }
        assert!(
            done.stdout
                .contains(&format!("\nExamples:\n  medfeed {command}")),
            "{command}: {done:?}"
        );
    }
}

#[test]
fn completions_and_manual_pages_are_printed() {
    let site = Site::new();
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let done = site.run(["completions", shell]);
        assert!(done.code == Some(0), "{shell}");
        assert!(done.stdout.contains("allow-removals"), "{shell}");
    }
    let manual = site.run(["man"]);
    assert_eq!(manual.code, Some(0));
    for args in [&["man"][..], &["completions", "bash"]] {
        let (reader, writer) = std::io::pipe().unwrap();
        drop(reader);
        let done = site.command(args).stdout(writer).output().unwrap();
        let told = String::from_utf8_lossy(&done.stderr);
        assert!(done.status.success(), "{args:?} into a closed pipe: {told}");
        assert!(told.is_empty(), "{args:?} into a closed pipe: {told}");
    }
    for page in words!["medfeed" "medfeed-serve" "medfeed-license-set" "medfeed-key-replace"] {
        assert!(manual.stdout.contains(&format!(".TH {page} ")), "{page}");
    }
    for section in ["\"EXIT STATUS\"", "FILES", "ENVIRONMENT", "EXAMPLES"] {
        assert!(
            manual.stdout.contains(&format!("\n.SH {section}\n")),
            "{section}"
        );
    }
    assert!(
        manual
            .stdout
            .contains("\\fBMEDFEED_TLS_CERT\\fR environment variable"),
        "options name their variables"
    );
    let pages: Vec<&str> = manual.stdout.split(".TH ").skip(1).collect();
    for page in &pages {
        let has_own_codes = page.contains("Exit codes: ");
        assert_eq!(page.contains("\"EXIT STATUS\""), !has_own_codes, "{page}");
    }
    assert!(
        pages.iter().any(|page| page.contains("Exit codes: ")),
        "pull has codes of its own"
    );
    let written = site.run(["man", "man1"]);
    assert_eq!(written.code, Some(0), "{written:?}");
    for page in ["medfeed", "medfeed-serve", "medfeed-license-set"] {
        let text = std::fs::read_to_string(site.path(&format!("man1/{page}.1"))).unwrap();
        assert!(manual.stdout.contains(&text), "{page}");
    }
    assert!(!site.db().exists());
}

#[test]
fn the_log_names_the_user_of_each_commit() {
    let site = Site::new();
    site.import("journals.jsonl", "{\"id\":1,\"name\":\"J\"}\n");
    site.license("acme", "--dataset journals");
    let (first, key) = site.key("acme", &[]);
    let replaced = site.json(["key", "replace", &first]);
    let second = replaced["id"].as_str().unwrap();
    site.json(["key", "revoke", second]);
    site.json(["license", "remove", "acme", "--yes"]);
    let told = site.json(["log"]);
    let uid = rustix::process::getuid().as_raw();
    let expected = [
        "license remove acme".to_owned(),
        format!("key revoke {second} of license acme"),
        format!("key replace {first} by {second} of license acme"),
        format!("key create {first} --license acme"),
        "license set acme: datasets journals".to_owned(),
        format!("import {}", site.path("journals.jsonl").display()),
    ];
    let commits = told["commits"].as_array().unwrap();
    let whats: Vec<&str> = commits
        .iter()
        .map(|commit| commit["what"].as_str().unwrap())
        .collect();
    assert_eq!(whats, expected);
    let users = std::fs::read_to_string("/etc/passwd").unwrap();
    let name = users
        .lines()
        .find(|line| line.split(':').nth(2) == Some(&uid.to_string()));
    let name = name.and_then(|line| line.split(':').next());
    for commit in commits {
        let who = commit["who"].as_str().unwrap();
        assert!(who.contains(&format!("(uid {uid}")), "{commit}");
        assert!(
            name.is_none_or(|name| who.starts_with(&format!("{name} ("))),
            "{commit}"
        );
    }
    let text = site.run(["log", "--limit", "2"]).stdout;
    assert!(text.lines().count() == 3, "{text}");
    assert!(text.contains("license remove acme"), "{text}");
    assert!(
        !told.to_string().contains(&key) && !told.to_string().contains("mfk_"),
        "the history contains no key"
    );

    // Cron, systemd and containers set no USER. A user without a name is shown by number.
    let who = |command: &mut std::process::Command| {
        command
            .env_remove("USER")
            .env_remove("LOGNAME")
            .env_remove("SUDO_USER");
        assert_eq!(Done::of(command).code, Some(0));
        site.json(["log", "--limit", "1"])["commits"][0]["who"]
            .as_str()
            .unwrap()
            .to_owned()
    };
    let set = |name: &'static str| site.command(["license", "set", name, "--dataset", "journals"]);
    assert_eq!(
        who(&mut set("a")),
        name.map_or(format!("uid {uid}"), |name| format!("{name} (uid {uid})"))
    );
    if can_be_nobody() {
        std::fs::set_permissions(site.folder(), PermissionsExt::from_mode(0o777)).unwrap();
        std::fs::set_permissions(site.db(), PermissionsExt::from_mode(0o666)).unwrap();
        assert_eq!(who(set("b").uid(54_321)), "uid 54321");
    }
}
