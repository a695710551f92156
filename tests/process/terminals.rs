//! No name, label or value from outside controls the terminal on which it is listed; and the questions on a terminal.

use std::ffi::OsStr;
use std::io::Write;
use std::os::unix::ffi::OsStrExt;
use std::process::Stdio;
use std::time::{Duration, Instant};

use tempfile::NamedTempFile;

use super::site::{Done, Process, SOON, STATUSES, Site};
use medfeed::model::{Dataset, Scope};
use medfeed::store::Writer;
use medfeed::store::write::licensing::KeySettings;

/// Clears the screen, in the 7-bit and the 8-bit form, begins a line of its own, and changes the direction of text.
const HOSTILE: &str = "x\x1b[2J\u{9b}2J\nkey_forged  active\r\u{202e}";
const SHOWN: &str = "x\\u{1b}[2J\\u{9b}2J\\nkey_forged  active\\r\\u{202e}";

fn assert_harmless(what: &str, done: &Done) {
    for text in [&done.stdout, &done.stderr] {
        let steering = text
            .chars()
            .find(|letter| *letter != '\n' && (letter.is_control() || *letter == '\u{202e}'));
        assert_eq!(steering, None, "{what}: {text:?}");
        // A usage error repeats the caller's own argument, including its line breaks.
        let forged = text
            .lines()
            .find(|line| line.trim_start().starts_with("key_forged"));
        assert!(forged.is_none() || done.code == Some(2), "{what}: {text:?}");
    }
}

/// A row of a conference.
fn conference(id: u32, name: &str, country: &str) -> String {
    let [name, country] = [name, country].map(|text| serde_json::to_string(text).unwrap());
    format!("{{\"id\":{id},\"name\":{name},\"country\":{country},{STATUSES}}}\n")
}

/// A database in which the license's name, a country of its scope and a key's label are hostile, as older versions
/// accepted them.
fn hostile_site() -> Site {
    let site = Site::new();
    site.import("conferences.jsonl", conference(1, HOSTILE, HOSTILE));
    let writer = Writer::open(&site.db(), Duration::ZERO).unwrap();
    let mut edit = writer.begin().unwrap();
    let scope = Scope {
        datasets: [Dataset::Conferences].into(),
        therapy_areas: None,
        countries: Some([format!("{HOSTILE}!")].into()),
        years: None,
    };
    edit.set_license(HOSTILE, scope, None).unwrap();
    let settings = KeySettings {
        label: Some(HOSTILE.to_owned()),
        ..KeySettings::default()
    };
    edit.create_key(HOSTILE, settings).unwrap();
    edit.commit().unwrap();
    site
}

#[test]
fn listed_texts_cannot_control_the_terminal() {
    let site = hostile_site();
    let unknown = serde_json::to_string(HOSTILE).unwrap();
    let content = format!("{{\"id\":2,{unknown}:1}}\n");
    site.write("bad/conferences.jsonl", content);
    let formula = format!("={HOSTILE}!");
    site.write("new/conferences.jsonl", conference(3, &formula, &formula));
    let seen = conference(4, "A", &format!("{HOSTILE}!"));
    site.write("seen/conferences.jsonl", seen);
    site.backup("backup.redb");
    let cases = words![
        "key list" "license list" "license show @" "license explain @ conferences 1" "license explain @ conferences 2"
        "license set @ --dataset conferences --country @ --rate-limit 5" "key create --license @"
        "import bad" "import new" "import seen" "license remove @ --yes" "restore backup.redb --yes"
        "license show no-@" "key revoke no-@" "export backup.redb/@" "license explain @ @ 1"
        "key create --license x --expires @" "@"
    ];
    for line in cases {
        let args = line.split(' ').map(|word| word.replace('@', HOSTILE));
        let done = site.run(args);
        assert_harmless(line, &done);
        let told = format!("{}{}", done.stdout, done.stderr);
        // clap removes the escapes of texts that it repeats.
        assert!(
            done.code == Some(2) || told.contains(SHOWN),
            "{line}: {done:?}"
        );
    }
    // JSON is exact. The key of the backup has a label, the other one that is still listed has none.
    let keys = site.json(["key", "list"]);
    let mut keys = keys["keys"].as_array().unwrap().iter();
    let labeled = keys.find(|key| !key["label"].is_null()).unwrap();
    assert_eq!(labeled["label"], HOSTILE);
    assert_eq!(labeled["license"], HOSTILE);
    let cases: [(&[&str], &str); 2] = [
        (&["license", "list"], "/licenses/0/name"),
        (&["license", "show", HOSTILE], "/name"),
    ];
    for (args, pointer) in cases {
        let done = site.run([args, &["--json"]].concat());
        assert_harmless(&format!("{args:?}"), &done);
        assert_eq!(done.json().pointer(pointer).unwrap(), HOSTILE, "{args:?}");
    }
}

#[test]
fn new_labels_and_names_are_plain() {
    let site = Site::new();
    let set = |name: &str| site.run(["license", "set", name, "--create", "--dataset", "journals"]);
    assert_eq!(set("plain").code, Some(0));
    let label = |label: &str| site.run(["key", "create", "--license", "plain", "--label", label]);
    for text in words!["a\nb" "a\tb" "\x1b[2J" "\u{9b}2J" "a\u{202e}b" "a\u{7f}"] {
        for (done, code) in [(set(text), 1), (label(text), 2)] {
            done.assert_told(code, "write one line of plain text");
            assert_harmless(&format!("{text:?}"), &done);
        }
    }
    assert_eq!(label("Ann's key, 日本 שלום").code, Some(0));
    // A license that already has such a name can still be changed, and named by others.
    let site = hostile_site();
    let mut args = vec!["license", "set", HOSTILE];
    args.extend("--dataset conferences --widen --json".split(' '));
    assert_eq!(site.run(args).code, Some(0));
}

#[test]
fn an_argument_that_is_no_utf8_is_a_usage_error() {
    let site = Site::new();
    let no_text = OsStr::from_bytes(b"\xff");
    for args in [&[OsStr::new("check"), no_text][..], &[no_text]] {
        let done = site.run(args);
        assert_eq!(done.code, Some(2), "{done:?}");
        assert_harmless("an argument that is no text", &done);
        let done = site.run([args, &[OsStr::new("--json")]].concat());
        assert_eq!(done.code, Some(2), "{done:?}");
        assert!(done.json()["error"].is_string(), "{done:?}");
    }
}

#[test]
fn a_file_name_that_is_no_utf8_is_shown_with_replacement_characters() {
    let site = Site::new();
    site.import("journals.jsonl", "{\"id\":1,\"name\":\"J\"}\n");
    for (command, name) in cases![
        "export", &b"\xff"[..];
        "template", b"\xff.xlsx";
        "backup", b"\xff.redb";
    ] {
        let args = [command.as_ref(), OsStr::from_bytes(name), "--json".as_ref()];
        site.run(args).assert_shown(0, "\u{fffd}");
    }
}

/// A command on a terminal of its own.
#[derive(Debug)]
pub struct Terminal {
    line: String,
    process: Process,
    /// The output of the command.
    screen: NamedTempFile,
}

impl Terminal {
    /// Starts a command on a terminal. Returns `None`, with a message, without `script` (util-linux).
    pub fn start(site: &Site, line: &str) -> Option<Terminal> {
        Terminal::start_command(site, &format!("{} {line}", env!("CARGO_BIN_EXE_medfeed")))
    }

    /// Starts a command with its own variables on a terminal.
    pub fn start_command_of(site: &Site, inner: &std::process::Command) -> Option<Terminal> {
        let variables = inner
            .get_envs()
            .filter_map(|(name, value)| Some((name, value?)));
        let variables = variables.map(|(name, value)| {
            let (name, value) = (name.to_string_lossy(), value.to_string_lossy());
            format!("{name}='{value}' ")
        });
        let words = std::iter::once(inner.get_program()).chain(inner.get_args());
        let words = words.map(|word| format!("'{}' ", word.to_string_lossy()));
        let line: String = variables.chain(words).collect();
        Terminal::start_command(site, &line)
    }

    /// Starts a shell command on a terminal.
    fn start_command(site: &Site, line: &str) -> Option<Terminal> {
        if !std::process::Command::new("script")
            .arg("--version")
            .output()
            .is_ok_and(|done| done.status.success())
        {
            eprintln!("skipped: there is no `script` here");
            return None;
        }
        let screen = NamedTempFile::new().unwrap();
        let mut command = site.command_of("script");
        // Import shows its progress only on a terminal that can erase a line.
        command
            .args(["--quiet", "--return", "--command", line, "/dev/null"])
            .env("TERM", "xterm");
        let process = Process::spawn(
            command
                .stdin(Stdio::piped())
                .stdout(screen.reopen().unwrap()),
        );
        Some(Terminal {
            line: line.to_owned(),
            process,
            screen,
        })
    }

    fn shown(&self) -> String {
        String::from_utf8_lossy(&std::fs::read(self.screen.path()).unwrap()).into_owned()
    }

    /// Waits until the command shows a text.
    pub fn wait_for(&mut self, text: &str) {
        let begun = Instant::now();
        loop {
            let status = self.process.ended_within(Duration::from_millis(2));
            let shown = self.shown();
            if shown.contains(text) {
                return;
            }
            assert!(
                status.is_none() && begun.elapsed() < SOON,
                "{}: no {text:?}, but {status:?}: {shown}",
                self.line
            );
        }
    }

    /// Types an answer.
    pub fn answer(&mut self, answer: &str) {
        let input = self.process.child().stdin.as_mut().unwrap();
        input.write_all(answer.as_bytes()).unwrap();
    }

    /// Waits for the end of the command. Returns its exit code and its output.
    pub fn end(mut self) -> (Option<i32>, String) {
        let status = self.process.ended_within(SOON);
        let status = status
            .unwrap_or_else(|| panic!("{}: it is still running: {}", self.line, self.shown()));
        (status.code(), self.shown())
    }
}

/// A site with one conference, a backup, and a file whose import has two warnings.
fn questioned_site() -> Site {
    let site = Site::new();
    site.import("conferences.jsonl", conference(1, "A", "Germany"));
    site.import("journals.jsonl", "{\"id\":1,\"name\":\"J\"}\n");
    site.license("acme", "--dataset conferences --dataset journals");
    site.backup("backup.redb");
    site.write("odd/conferences.jsonl", conference(2, "A ", "Germany"));
    site
}

#[test]
fn only_a_yes_on_a_terminal_continues_a_command() {
    let site = questioned_site();
    let cases = cases![
        "import odd", "n\n", 1, "nothing was imported";
        "import odd", "n\n", 1, "The import has 2 warnings. Commit nevertheless? [y/N]";
        "show conferences 2", "", 1, "there is no";
        "import odd --dry-run", "", 0, "Dry run: nothing was changed, with 2 warnings.";
        "import odd", "y\n", 0, "Committed, with 2 warnings.";
        "import odd --yes", "", 0, "Nothing is new; nothing was changed.";
        "restore backup.redb", "n\n", 1, "nothing was restored";
        "restore backup.redb", "\n", 1, "nothing was restored";
        "restore backup.redb", "yep\n", 1, "nothing was restored";
        "license remove acme", "no\n", 1, "nothing was removed";
        "license set b --dataset conferences --country Germny", "n\n", 1, "did you mean `Germany`?";
        "license show b", "", 1, "there is no license `b`";
        "license show acme", "", 0, "journals";
        "license set b --dataset conferences --country Germny", "y\n", 0, "License `b` is created";
        "license set b --dataset conferences --country Germny --rate-limit 5", "", 0, "Sync tokens stay valid";
        "license remove acme", "Y\n", 0, "License `acme` is removed";
        "restore backup.redb", "yes\n", 0, "is restored";
        "license show acme", "", 0, "journals";
    ];
    for (line, answer, code, expected) in cases {
        let Some(mut terminal) = Terminal::start(&site, line) else {
            return;
        };
        if !answer.is_empty() {
            terminal.wait_for("[y/N]");
            terminal.answer(answer);
        }
        let (ended, told) = terminal.end();
        assert_eq!(ended, Some(code), "{line}, {answer:?}: {told}");
        assert!(told.contains(expected), "{line}, {answer:?}: {told}");
    }
    // The question about a file that is gone says what is lost with it.
    for (answer, code) in [("n\n", 1), ("y\n", 0)] {
        let Some(mut terminal) = Terminal::start(&site, "restore backup.redb --db gone.redb")
        else {
            return;
        };
        terminal.wait_for("revoked since the backup would work again");
        terminal.wait_for("Create gone.redb? [y/N]");
        terminal.answer(answer);
        let (ended, told) = terminal.end();
        assert_eq!(ended, Some(code), "{told}");
        assert_eq!(site.path("gone.redb").exists(), code == 0);
    }
}

#[test]
fn a_dumb_terminal_gets_no_escape_sequences() {
    let site = Site::new();
    site.write("rows/conferences.jsonl", conference(1, "A", "Germany"));
    // (the command, a text that it shows)
    let cases = [
        ("import rows --create", "Committed."),
        ("serve --listen 127.0.0.1:0 --log info", "INFO"),
        ("demo --listen 127.0.0.1:0 --log info --quiet-data", "INFO"),
        ("serve --lisen 127.0.0.1:0", "error:"),
    ];
    for (line, shown) in cases {
        for (kind, has_escapes) in [("xterm", true), ("dumb", false)] {
            let program = env!("CARGO_BIN_EXE_medfeed");
            // Continuous integration names itself in CI, for which some libraries draw.
            let command = format!("CI=1 TERM={kind} exec {program} {line} --db {kind}.redb");
            let Some(mut terminal) = Terminal::start_command(&site, &command) else {
                return;
            };
            terminal.wait_for(shown);
            let told = terminal.shown();
            let found = told.contains('\x1b');
            assert_eq!(found, has_escapes, "{kind}: {line}: {told:?}");
            // Ctrl-C stops a server.
            terminal.answer("\x03");
            terminal.end();
        }
    }
}

/// Lines that are pasted together: the lines after a command do not answer its question.
#[test]
fn a_pasted_line_answers_no_question() {
    let site = questioned_site();
    let lines_wait = "or further lines wait in it; add --yes";
    let cases = cases![
        "import odd", 0, "Committed, with 2 warnings.";
        "restore backup.redb", 1, lines_wait;
        "license remove acme", 1, lines_wait;
        "license set b --dataset conferences --country Germny", 1, "did you mean `Germany`?";
        "license set acme --dataset conferences", 1,
            "\"1 of 1 journals will leave license `acme`. Continue?\" cannot be asked";
    ];
    for (line, code, expected) in cases {
        // The command starts when both lines are there, and the first is read. `y` would answer yes to every question.
        let program = env!("CARGO_BIN_EXE_medfeed");
        let command = format!("read -r first; exec {program} {line}");
        let Some(mut terminal) = Terminal::start_command(&site, &command) else {
            return;
        };
        terminal.answer("medfeed\ny\n");
        let (ended, told) = terminal.end();
        assert!(ended == Some(code), "{line}: {ended:?} {told}");
        assert!(told.contains(expected), "{line}: {ended:?} {told}");
        assert!(!told.contains("[y/N]"), "{line}: {told}");
    }
}

/// Cases: the scope, and the records that it loses, if they are many.
#[test]
fn a_license_that_loses_much_asks_first() {
    let site = Site::new();
    let congress = |id: u32, year| {
        let area = if id == 200 { "Rare" } else { "Common" };
        format!(
            "{{\"id\":{id},\"name\":\"Congress {id}\",\"year\":{year},\"therapy_areas\":[\"{area}\"],{STATUSES}}}\n"
        )
    };
    // 200 conferences: 21 of 2024, 20 of 2025, the others of 2026.
    let year = |id| match id {
        ..=21 => 2024,
        22..=41 => 2025,
        _ => 2026,
    };
    let rows: String = (1..=200).map(|id| congress(id, year(id))).collect();
    site.import("conferences.jsonl", rows);
    site.import("journals.jsonl", "{\"id\":1,\"name\":\"J\"}\n");
    let whole = "license set acme --yes --widen --dataset conferences --dataset journals --create";
    let much = "21 of 200 conferences";
    let cases = cases![
        "--dataset conferences --dataset journals --year 2025..2026", Some(much);
        "--dataset conferences --dataset journals --year 2026 --year 2024", None;
        "--dataset conferences", Some("1 of 1 journals");
        "--dataset journals", Some("200 of 200 conferences");
        "--dataset conferences --year 2026", Some("41 of 200 conferences and 1 of 1 journals");
    ];
    // All records that the license shows of a dataset, also if they are few.
    let few = |area: &str, more: &str| {
        let line = format!("license set few --dataset conferences --therapy-area {area} {more}");
        site.run(line.split_whitespace())
    };
    assert_eq!(few("Rare", "--create").code, Some(0));
    let dry = few("Common", "--widen --dry-run");
    dry.assert_out("This asks first, or needs --yes: 1 of 1 conferences would leave.");
    for (scope, losses) in cases {
        site.json(whole.split(' '));
        let before = site.json(["license", "show", "acme"]);
        let line = format!("license set acme {scope}");
        let run = |more: &str| site.run(line.split(' ').chain(more.split_whitespace()));
        let dry = run("--dry-run");
        assert_eq!(dry.code, Some(0), "{scope}: {dry:?}");
        let Some(losses) = losses else {
            assert!(!dry.stdout.contains("asks first"), "{scope}: {dry:?}");
            assert_eq!(run("").code, Some(0), "{scope}");
            continue;
        };
        let question = format!("This asks first, or needs --yes: {losses} would leave.");
        assert!(dry.stdout.contains(&question), "{scope}: {dry:?}");
        let first = run("--dry-run --json").json()["losses"][0].clone();
        assert!(losses.starts_with(first.as_str().unwrap()), "{scope}");
        let refused = run("");
        let message = format!(
            "nothing was changed: \"{losses} will leave license `acme`. Continue?\" cannot be asked"
        );
        refused.assert_told(1, &message);
        run("--json").assert_error("add --yes");
        for answer in ["n\n", "y\n"] {
            assert_eq!(site.json(["license", "show", "acme"]), before, "{scope}");
            let Some(mut terminal) = Terminal::start(&site, &line) else {
                return;
            };
            terminal.wait_for(&format!(
                "{losses} will leave license `acme`. Continue? [y/N]"
            ));
            terminal.answer(answer);
            let (code, told) = terminal.end();
            assert_eq!(code, Some(i32::from(answer != "y\n")), "{scope}: {told}");
        }
        assert_ne!(site.json(["license", "show", "acme"]), before, "{scope}");
    }
    site.json(whole.split(' '));
    let narrowed = site.run("license set acme --dataset journals --yes".split(' '));
    assert_eq!(narrowed.code, Some(0));
}

#[test]
fn an_import_asks_again_only_if_another_commit_changed_its_warnings() {
    // The record that is committed while the import asks, and whether it causes another warning.
    for (name, is_asked_again) in [("C", false), ("B", true)] {
        let site = Site::new();
        site.import("journals.jsonl", "{\"id\":1,\"name\":\"A\"}\n");
        site.write("odd/journals.jsonl", "{\"id\":2,\"name\":\"B \"}\n");
        let Some(mut import) = Terminal::start(&site, "import odd") else {
            return;
        };
        import.wait_for("The import has 1 warning. Commit nevertheless? [y/N]");
        let between = format!("{{\"id\":3,\"name\":\"{name}\"}}\n");
        site.import("between/journals.jsonl", between);
        import.answer("y\n");
        if is_asked_again {
            import.wait_for("The import has 2 warnings. Commit nevertheless? [y/N]");
            import.answer("n\n");
        }
        let (code, told) = import.end();
        let (expected, end) = match is_asked_again {
            true => (1, "nothing was imported"),
            false => (0, "Committed, with 1 warning."),
        };
        assert_eq!(code, Some(expected), "{name}: {told}");
        assert!(told.contains(end), "{name}: {told}");
        let questions = told.matches("Commit nevertheless?").count();
        assert_eq!(questions, 1 + usize::from(is_asked_again), "{name}: {told}");
        let shown = site.run(["show", "journals", "2"]);
        assert_eq!(shown.code, Some(expected), "{name}");
    }
}
