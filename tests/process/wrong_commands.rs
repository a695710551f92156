//! Wrong command lines: each error names the right form, has the exit code of its kind, and changes nothing.

use std::fs::{self, File};
use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt;

use super::other_users::{as_nobody, can_be_nobody};
use super::site::{Done, Site, conferences_of_version};
use medfeed::store::Writer;

/// A wrong command line, its exit code, and a part of standard error.
type Wrong<'a> = (&'a str, i32, &'a str);

/// Unknown words.
const UNKNOWN: &[Wrong<'_>] = &cases![
    "imprt data", 2, "'import'";
    "exprot out", 2, "'export'";
    "frobnicate", 2, "unrecognized subcommand 'frobnicate'";
    "help frob", 2, "unrecognized subcommand 'frob'";
    "help srve", 2, "unrecognized subcommand 'srve'";
    "license acme", 2, "Usage: medfeed license [OPTIONS] <COMMAND>";
    "", 2, "[subcommands: demo, serve, ";
    "--db feed.redb", 2, "Usage: medfeed [OPTIONS] <COMMAND>";
    "serve --lisen 8080", 2, "a similar argument exists: '--listen'";
    "serve 8080", 2, "unexpected argument '8080' found";
    "--port 8080", 2, "unexpected argument '--port' found";
    "key create acme", 2, "unexpected argument 'acme' found";
    "import data.csv --dryrun", 2, "a similar argument exists: '--dry-run'";
    "license set acme --year 2026 --year", 2, "a value is required for '--year <YEARS>'";
    "log --limit 1 --limit 2", 2, "cannot be used multiple times";
];

/// Missing arguments.
const MISSING: &[Wrong<'_>] = &cases![
    "import", 2, "required arguments were not provided:\n  <PATH>...";
    "export", 2, "required arguments were not provided:\n  <FOLDER_OR_FILE>";
    "backup", 2, "required arguments were not provided:\n  <FILE>";
    "restore", 2, "required arguments were not provided:\n  <FILE>";
    "license set", 2, "required arguments were not provided:\n  --dataset <DATASET>";
    "license set acme", 2, "required arguments were not provided:\n  --dataset <DATASET>";
    "license show", 2, "required arguments were not provided:\n  <NAME>";
    "license explain acme", 2, "required arguments were not provided:\n  <DATASET>";
    "key create", 2, "required arguments were not provided:\n  --license <NAME>";
    "key revoke", 2, "required arguments were not provided:\n  <ID>";
    "completions", 2, "required arguments were not provided:\n  <SHELL>";
    "serve --tls-cert chain.pem", 2, "required arguments were not provided:\n  --tls-key <FILE>";
    "serve --listen", 2, "a value is required for '--listen <ADDRESS:PORT>'";
    "import -", 1, "needs --dataset, such as `- --dataset conferences`";
    "show", 2, "required arguments were not provided:\n  <DATASET>";
    "log conferences", 2, "required arguments were not provided";
    "license remove acme", 1, "add --yes to continue without a question";
    "restore backup.redb", 1, "add --yes to continue without a question";
];

/// Invalid values of arguments.
const VALUES: &[Wrong<'_>] = &cases![
    "license set acme --dataset conference", 2, "`conference` is not a dataset; the datasets are `conferences`";
    "license set acme --dataset papers", 2, "the datasets are `conferences` and `journals`";
    "license set acme --dataset conferences,journals", 2, "the datasets are `conferences` and `journals`";
    "license explain acme Journal 1", 2, "`Journal` is not a dataset";
    "license explain acme journals first", 2, "an id is a whole number from 1";
    "license set acme --dataset journals --year 2024-2027", 2, "or a range such as 2024..2027";
    "license set acme --dataset journals --country=", 2, "it is empty";
    "license set acme --dataset journals --rate-limit 10/s", 2, "invalid value '10/s' for '--rate-limit <N>'";
    "license set acme --dataset journals --rate-limit 0", 2, "0 is not in 1..";
    "import - --dataset journal --format jsonl", 2, "[possible values: organizations, tags, ";
    "import - --dataset journals --format yaml", 2, "[possible values: jsonl, json, csv, xlsx]";
    "import data.csv --allow-removals some", 2, "invalid value 'some' for '--allow-removals <N>'";
    "export out --format xls", 2, "[possible values: jsonl, csv, xlsx]";
    "backup early.redb --at 2020-01-01", 2, "--from";
    "log --limit ten", 2, "invalid value 'ten' for '--limit <N>'";
    "compact --wait soon", 2, "write a number and a unit: 90s, 5m, 24h, 7d";
    "key replace x --overlap 24", 2, "write a number and a unit";
    "key create --license acme --expires tomorrow", 2, "a time from now: 12h, 30d, 2w, 1y";
    "key create --license acme --expires 2020-01-01", 2, "it is in the past";
    "key create --license acme --expires 6m", 2, "`m` means minutes";
    "key create --license acme --allow-ip 10.0.0", 2, "write an address or a CIDR";
    "serve --listen 127.0.0.1", 2, "an address of this machine and a port";
    "serve --listen http://127.0.0.1:8080", 2, "without a scheme: 127.0.0.1:8080";
    "serve --listen feed.example.org:8080", 2, "write an address of this machine and a port";
    "serve --public-url feed.example.org", 2, "such as https://feed.example.org";
    "serve --contact example.org", 2, "write a mail address, such as data@example.org";
    "serve --trusted-proxy proxy.local", 2, "write an address or a CIDR";
    "serve --forwarded-header X-Real-IP", 2, "[possible values: x-forwarded-for, forwarded]";
    "serve --cache-bytes 64MB", 2, "invalid value '64MB' for '--cache-bytes <N>'";
    "serve --log verbose", 2, "write error, warn, info, debug or trace";
    "serve --log-format xml", 2, "[possible values: pretty, json]";
    "pull http://127.0.0.1:1 --to c.sqlite --every 0s", 2, "it is too short; write at least 10ms";
    "publish file:///tmp/feed --heartbeat 9999us", 2, "it is too short; write at least 10ms";
    "serve --from file:///tmp/feed --poll 0d", 2, "it is too short; write at least 10ms";
    "completions tcsh", 2, "[possible values: bash, elvish, fish, powershell, zsh]";
];

/// Files, databases, licenses and keys that do not exist, or are of the wrong kind.
const THINGS: &[Wrong<'_>] = &cases![
    "import nowhere.csv", 1, "cannot read nowhere.csv: No such file or directory; check the path";
    "import notes.txt", 1,
        "the file name does not say what it contains; add `--dataset conferences`, for example, or name it";
    "import empty-folder", 1, "contains nothing to import; its files must be named";
    "import conferences.csv", 1, "nmae: unknown column; did you mean `name`?";
    "export notes.txt", 1, "notes.txt: File exists; choose another name";
    "backup feed.redb", 1, "it is the database itself";
    "backup notes.txt", 1, "it exists and is no backup; choose another name";
    "backup nowhere/backup.redb", 1, "create it: `mkdir -p nowhere`";
    "restore nowhere.redb --yes", 1, "nowhere.redb: No such file or directory; check the path";
    "restore notes.txt --yes", 1, "the backup notes.txt cannot be used: it is another kind of file";
    "restore empty.redb --yes", 1, "it is empty";
    "publish /srv/feed", 2, "write it as file:///srv/feed";
    "publish file:///nowhere/feed --db none.redb", 1, "there is no database at none.redb";
    "publish file:///tmp/feed --seal-key none", 1, "there is no file none with a seal key";
    "license list --db nowhere.redb", 1, "create one with `medfeed import --create`, or name another with --db";
    "import data.jsonl --create --db nowhere/feed.redb", 1, "cannot read data.jsonl";
    "license set x --create --dataset journals --db nowhere/feed.redb", 1, "create it: `mkdir -p nowhere`";
    "license set x --dataset journals --db nowhere/feed.redb", 1,
        "no database at nowhere/feed.redb: give --db or MEDFEED_DB the path of";
    "import rows --db nowhere.redb", 1, "/nowhere.redb: give --db or MEDFEED_DB the path of yours, or add --create";
    "backup -", 2, "a database or a folder is no stream; name a file or folder, or write `./-` if that is its name";
    "backup notes.txt --db -", 2, "a database or a folder is no stream";
    "restore - --yes", 2, "a database or a folder is no stream";
    "import rows --create --db -", 2, "a database or a folder is no stream";
    "export -", 2, "a database or a folder is no stream";
    "man -", 2, "a database or a folder is no stream";
    "pull http://127.0.0.1:1 --to -", 2, "a database or a folder is no stream";
    "template -", 1, "`-` is neither `conferences`";
    "license list --db notes.txt", 1,
        "is not a medfeed database (it is another kind of file); name another file with --db";
    "license list --db empty.redb", 1, "is not a medfeed database (it is empty)";
    "license list --db empty-folder", 1, "Is a directory; name a file";
    "license list --db half.redb", 1, "the file is cut short; run `medfeed check`, and restore a backup";
    "compact --db locked.redb --wait 0s", 1, "give it more time with --wait";
    "license show Acme", 1, "there is no license `Acme`; did you mean `acme`?";
    "license show nobody", 1, "`medfeed license list` lists all";
    "license remove acmee --yes", 1, "did you mean `acme`?";
    "license explain acm conferences 1", 1, "did you mean `acme`?";
    "key create --license acm", 1, "there is no license `acm`; did you mean `acme`?";
    "key revoke acme", 1, "`medfeed key list` lists all";
    "key revoke key_none", 1, "`medfeed key list` lists all";
    "key replace mfk_something", 1, "this is the key itself; use its id";
    "license set acme --dataset conferences", 1, "Now `acme` shows: datasets conferences; years 2025..2026.";
    "license set b --dataset conferences --therapy-area Oncolgy", 1, "did you mean `Oncology`?";
    "license set b --dataset conferences --country Frnce", 1,
        "did you mean `France`? (the data contains `Chile`, `France`, `Japan`)";
    "serve --tls-cert notes.txt --tls-key notes.txt", 1, "it must hold the certificate chain in PEM";
    "serve --tls-cert nowhere.pem --tls-key nowhere.pem", 1, "nowhere.pem: ";
    "serve --listen 192.0.2.1:0 --plain-http", 1, "is not an address of this machine";
    "serve --listen 0.0.0.0:0", 1, "accept plain HTTP with --plain-http";
];

fn site() -> Site {
    let site = Site::new();
    site.import("rows/conferences.jsonl", conferences_of_version(12, 0));
    site.license("acme", "--dataset conferences --year 2025..2026");
    site.key("acme", &[]);
    site.backup("backup.redb");
    site.backup("locked.redb");
    let whole = fs::read(site.db()).unwrap();
    site.write("half.redb", &whole[..whole.len() / 2]);
    site.write("notes.txt", "x\n");
    site.write("empty.redb", "");
    site.write("data.csv", "id\n");
    site.write("conferences.csv", "id,nmae\n1,A\n");
    fs::create_dir(site.path("empty-folder")).unwrap();
    site
}

#[test]
fn a_wrong_command_gets_the_right_form_and_its_exit_code() {
    let site = site();
    let before = (site.json(["log"]), site.files());
    let locked = Writer::open(&site.path("locked.redb"), std::time::Duration::ZERO).unwrap();
    let cases = [UNKNOWN, MISSING, VALUES, THINGS].concat();
    assert!(cases.len() >= 60);
    let mut wrong = Vec::new();
    for (line, code, expected) in cases {
        let args: Vec<&str> = line.split_whitespace().collect();
        let done = site.ends(&args);
        let is_told = done.stderr.contains(expected) && !done.stderr.contains("(os error");
        if done.code != Some(code)
            || !is_told
            || !(done.stdout.is_empty() || line.contains("--json"))
        {
            wrong.push(format!("{line}: not {code} with {expected:?}: {done:?}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    drop(locked);
    let found = (site.json(["log"]), site.files());
    assert_eq!(found, before, "nothing was changed");
    site.check();
}

#[test]
fn a_port_in_use_is_refused_with_a_remedy() {
    let site = site();
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    let lines = [
        ["serve", "--listen", &address].to_vec(),
        [
            "serve",
            "--listen",
            "127.0.0.1:0",
            "--admin-listen",
            &address,
        ]
        .to_vec(),
        ["demo", "--listen", &address].to_vec(),
    ];
    for args in lines {
        let done = site.ends(&args);
        assert_eq!(done.code, Some(1), "{args:?}: {done:?}");
        done.assert_err("another program listens there; stop it, or choose another port");
    }
}

#[test]
fn a_user_without_permission_gets_the_owner_in_the_error() {
    if !can_be_nobody() {
        return;
    }
    let site = site();
    fs::set_permissions(site.folder(), PermissionsExt::from_mode(0o755)).unwrap();
    fs::set_permissions(
        site.path("rows/conferences.jsonl"),
        PermissionsExt::from_mode(0o600),
    )
    .unwrap();
    // (the command, the mode of the file or folder that it cannot use)
    let cases: [(&[&str], &str); 3] = [
        (&["license", "list"], "600"),
        (&["compact"], "755"),
        (&["import", "rows/conferences.jsonl"], "600"),
    ];
    for (args, mode) in cases {
        let done = as_nobody(&mut site.command(args)).output().unwrap();
        let told = String::from_utf8_lossy(&done.stderr);
        assert_eq!(done.status.code(), Some(1), "{args:?}: {told}");
        let owner = format!("belongs to root (mode {mode})");
        assert!(told.contains("Permission denied; "), "{args:?}: {told}");
        assert!(told.contains(&owner), "{args:?}: {told}");
    }
}

/// Runs a command with variables.
fn run_with(site: &Site, variables: &[(&str, &str)], line: &str) -> Done {
    let mut command = site.command(line.split_whitespace());
    command.envs(variables.iter().copied());
    // A server that starts nevertheless ends the test.
    Done::of(&mut site.in_shell("exec timeout 20 \"$@\"", &command))
}

#[test]
fn a_wrong_value_of_a_variable_names_the_variable() {
    let site = site();
    // (the variable, its value, the command, a part of the message)
    let cases: &[(&str, &str, &str, &str)] = &cases![
        "WAIT", "soon", "compact", "write a number and a unit";
        "LOG", "loud", "serve --log-format json", "write error, warn";
        "LOG_FORMAT", "yaml", "serve --log warn", "[possible values: pretty, json]";
        "PUBLISH_URL", "/srv/feed", "publish", "write it as file:///srv/feed";
        "LISTEN", "localhost", "demo", "an address of this machine";
        "CACHE_BYTES", "64M", "serve", "'64M'";
        "TLS_CERT", "chain.pem", "serve", "--tls-key <FILE>";
        "TLS_KEY", "key.pem", "serve", "--tls-cert <FILE>";
        "DB", "-", "license list", "is no stream";
        "EVERY", "often", "publish file:///tmp/feed", "write a number and a unit";
        "FORWARDED_HEADER", "X-Real-IP", "serve", "[possible values: x-forwarded-for, forwarded]";
        // Switches.
        "JSON", "\"no\"", "license list", "write true, 1, yes or on";
        "JSON", "off\r", "license list", "off\\r";
        "JSON", "0 ", "key list", "without quotes and blanks";
        "CREATE", "disabled", "serve", "write true, 1, yes or on";
        "PLAIN_HTTP", "none", "serve", "write true, 1, yes or on";
        "PLAIN_HTTP", "'0'", "publish file:///tmp/feed", "write true, 1, yes or on";
        "REUSE_PORT", "perhaps", "serve", "write true, 1, yes or on";
        "REUSE_PORT", "y", "serve", "write true, 1, yes or on";
        // Lists.
        "TRUSTED_PROXY", "10.0.0.0/8,proxy", "serve", "'proxy'";
        "TRUSTED_PROXY", "10.0.0.1,,10.0.0.2", "serve", "write an address or a CIDR";
        "TRUSTED_PROXY", "10.0.0.1, ", "serve", "write an address or a CIDR";
        "CORS_ORIGIN", "https://a.example,b.example", "serve", "'b.example'";
        "CORS_ORIGIN", ",https://a.example", "serve", "write scheme://host";
        "ADMIN_HOST", "a.example,,b.example", "serve", "it is empty";
        "ADMIN_HOST", "a.example ,", "publish file:///tmp/feed", "it is empty";
        // Empty ones.
        "WAIT", "", "compact", "is empty";
        "DB", "", "license list", "is empty";
        "JSON", "", "license list", "is empty";
        "CREATE", "", "serve", "is empty";
        "TLS_CERT", "", "serve", "is empty";
        "SEAL_KEY", "", "publish file:///tmp/feed", "is empty";
        "TRUSTED_PROXY", "", "serve", "is empty";
        "ADMIN_HOST", "", "serve", "is empty";
        "PUBLISH_URL", "", "publish", "is empty";
        "LOG_FORMAT", "", "serve", "is empty";
        "KEY", "", "pull https://192.0.2.1 --to copy.db", "is empty or not set";
        "KEY_FILE", "", "pull http://127.0.0.1:1 --to copy.db", "is empty";
    ];
    for (name, value, line, part) in cases {
        let name = format!("MEDFEED_{name}");
        let done = run_with(&site, &[("MEDFEED_LOG", "warn"), (&name, value)], line);
        let told = &done.stderr;
        assert_eq!(done.code, Some(2), "{name}={value:?} {line}: {done:?}");
        assert!(
            told.contains(&format!("the variable `{name}`")) && told.contains(part),
            "{name}={value:?} {line}: {told}"
        );
        if value.is_empty() {
            assert!(
                !told.contains("for '--"),
                "an option that nobody gave: {told}"
            );
        }
    }
}

#[test]
fn a_wrong_argument_is_not_the_fault_of_a_variable() {
    let site = site();
    let variables = [
        ("MEDFEED_WAIT", "5s"),
        ("MEDFEED_LOG", "warn"),
        ("MEDFEED_TRUSTED_PROXY", "10.0.0.1 , 10.0.0.2"),
        ("MEDFEED_PLAIN_HTTP", "Off"),
    ];
    let lines = [
        "serve --log loud",
        "serve --trusted-proxy 10.0.0.1,soon",
        "serve --trusted-proxy=",
        "compact --wait soon",
        "serve --tls-cert chain.pem",
        "publish --once",
        "serve --nothing",
        "",
    ];
    for line in lines {
        let done = run_with(&site, &variables, line);
        assert_eq!(done.code, Some(2), "{line}: {done:?}");
        assert!(!done.stderr.contains("variable"), "{line}: {done:?}");
    }
}

#[test]
fn variables_of_servers_permit_nothing_to_pull() {
    let site = site();
    for (name, value) in [
        ("PLAIN_HTTP", "true"),
        ("PLAIN_HTTP", "maybe"),
        ("EVERY", "soon"),
    ] {
        let name = format!("MEDFEED_{name}");
        let variables = [(name.as_str(), value), ("MEDFEED_KEY", "mfk_x")];
        let done = run_with(&site, &variables, "pull http://192.0.2.1 --to copy.sqlite");
        assert_eq!(done.code, Some(2), "{name}={value}: {done:?}");
        let refused = "the key must not travel in plain text";
        assert!(done.stderr.contains(refused), "{name}={value}: {done:?}");
    }
    // A server's own listener.
    for (value, is_allowed) in [("ON", true), ("0", false)] {
        let variables = [("MEDFEED_PLAIN_HTTP", value), ("MEDFEED_LOG", "off")];
        let done = run_with(&site, &variables, "serve --listen 0.0.0.0:0 --db none.redb");
        assert_eq!(done.code, Some(1), "{value}: {done:?}");
        let is_refused = done.stderr.contains("accept plain HTTP with --plain-http");
        assert_eq!(is_refused, !is_allowed, "{value}: {done:?}");
    }
}

#[test]
fn an_unknown_variable_is_warned_of_once() {
    let site = site();
    let run = |args: &[&str]| {
        let variables = [
            ("MEDFEED_YEAR", "2026"),
            ("MEDFEED_LISTN", "x"),
            ("MEDFEED_KEY", "k"),
            ("MEDFEED_WAIT", "1s"),
        ];
        let done = site.command(args).envs(variables).output().unwrap();
        (
            String::from_utf8(done.stdout).unwrap(),
            String::from_utf8(done.stderr).unwrap(),
        )
    };
    let (told, warned) = run(&words!["license" "set" "all" "--dataset" "conferences" "--json"]);
    let expected = "warning: unknown variable `MEDFEED_LISTN`; did you mean `MEDFEED_LISTEN`?\n\
                    warning: unknown variable `MEDFEED_YEAR`; `medfeed COMMAND --help` lists the variables; some options have \
                    none\n";
    assert_eq!(warned, expected);
    let told: serde_json::Value = serde_json::from_str(&told).unwrap();
    assert!(
        told["license"]["years"].is_null(),
        "no variable narrows a license: {told}"
    );
    assert_eq!(run(&["completions", "bash"]).1, "");
}

#[test]
fn creating_a_database_is_reported() {
    let site = site();
    let lines = [
        "import rows --create --db one.redb",
        "license set x --create --dataset journals --db two.redb",
        "restore backup.redb --yes --db three.redb",
        "restore backup.redb --yes --db four.redb --json",
    ];
    for line in lines {
        let args: Vec<&str> = line.split_whitespace().collect();
        let done = site.run(&args);
        done.assert_told(0, " is a new database\n");
        let again = site.run(&args);
        assert!(
            !again.stderr.contains("is a new database"),
            "{line}: {again:?}"
        );
    }
    let dry = site.run("import rows --create --dry-run --db five.redb".split(' '));
    assert!(dry.stderr.is_empty(), "{dry:?}");
    assert!(!site.path("five.redb").exists(), "{dry:?}");
}

#[test]
fn a_key_that_cannot_be_printed_is_no_success() {
    let site = site();
    site.license("all", "--dataset conferences");
    for json in ["", "--json"] {
        let mut command = site.command(["key", "create", "--license", "all"]);
        command
            .args(json.split_whitespace())
            .stdout(File::create("/dev/full").unwrap());
        let done = Done::of(&mut command);
        done.assert_told(1, "nobody has the new key key_");
        assert!(done.stderr.contains("No space left on device"), "{done:?}");
    }
}

#[test]
fn a_no_on_standard_input_restores_nothing() {
    let site = site();
    let before = site.json(["log"]);
    for (args, answer) in [
        (&["restore", "backup.redb"][..], "n\n"),
        (&["license", "remove", "acme"], "y\n"),
    ] {
        fs::write(site.path("answer"), answer).unwrap();
        let done = site
            .command(args)
            .stdin(fs::File::open(site.path("answer")).unwrap())
            .output()
            .unwrap();
        let told = String::from_utf8_lossy(&done.stderr);
        assert!(done.status.code() == Some(1), "{args:?}: {told}");
        assert!(told.contains("add --yes"), "{args:?}: {told}");
    }
    assert_eq!(site.json(["log"]), before);
}
