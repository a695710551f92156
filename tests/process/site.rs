//! A temporary folder with a database, commands on it, and servers of it.

use std::ffi::OsStr;
use std::fs::{self, File};
use std::io::{BufRead, BufReader, Read};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use data_encoding::BASE64;
use serde_json::{Value, json};
use tempfile::{TempDir, TempPath};

use super::client::Client;
use medfeed::model::Timestamp;
use medfeed::store::Writer;
use medfeed::store::write::licensing::KeySettings;

use crate::properties::variable;

/// The time limit for events that should come at once.
pub const SOON: Duration = Duration::from_secs(20);

/// Polls until `ask` returns a value.
pub fn wait_until<T>(what: &str, within: Duration, ask: impl FnMut() -> Option<T>) -> T {
    wait_until_every(Duration::from_millis(10), what, within, ask)
}

/// Polls until a condition holds, which should be soon.
pub fn wait_for(what: &str, mut holds: impl FnMut() -> bool) {
    wait_until(what, SOON, || holds().then_some(()));
}

/// Polls at intervals until `ask` returns a value.
pub fn wait_until_every<T>(
    interval: Duration,
    what: &str,
    within: Duration,
    mut ask: impl FnMut() -> Option<T>,
) -> T {
    let begun = Instant::now();
    loop {
        if let Some(found) = ask() {
            return found;
        }
        assert!(begun.elapsed() < within, "not within {within:?}: {what}");
        std::thread::sleep(interval);
    }
}

/// The number of cases of a test and its seed: from the environment, or the given ones.
pub fn cases_and_seed(cases: u64, seed: u64) -> (u64, u64) {
    let (cases, seed) = (
        variable("MEDFEED_CASES").unwrap_or(cases),
        variable("MEDFEED_SEED").unwrap_or(seed),
    );
    println!("MEDFEED_SEED={seed} MEDFEED_CASES={cases}");
    (cases, seed)
}

/// A small generator of random numbers (SplitMix64). The same seed gives the same numbers.
#[derive(Debug)]
pub struct Random(u64);

impl Random {
    pub fn new(seed: u64) -> Random {
        Random(seed)
    }

    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^ (mixed >> 31)
    }

    /// A number below `limit`; 0 if that is 0.
    pub fn below(&mut self, limit: usize) -> usize {
        usize::try_from(self.next() % u64::try_from(limit.max(1)).expect("small")).expect("small")
    }

    /// Returns true in `percent` of a hundred cases.
    pub fn percent(&mut self, percent: usize) -> bool {
        self.below(100) < percent
    }

    /// A part of a duration, up to the whole.
    pub fn part_of(&mut self, whole: Duration) -> Duration {
        whole.mul_f64((self.next() % 1000) as f64 / 1000.0)
    }
}

/// Letters that hardly compress.
pub fn noise(random: &mut Random, letters: usize) -> String {
    let bytes: Vec<u8> = (0..=letters / 8)
        .flat_map(|_| random.next().to_le_bytes())
        .collect();
    let mut text = BASE64.encode(&bytes);
    text.truncate(letters);
    text
}

/// A child process that is killed when the test ends.
#[derive(Debug)]
pub struct Process {
    child: Child,
}

impl Process {
    pub fn spawn(command: &mut Command) -> Process {
        Process {
            child: command.spawn().expect("the program starts"),
        }
    }

    pub fn child(&mut self) -> &mut Child {
        &mut self.child
    }

    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// The exit status, if the process ends within the time.
    pub fn ended_within(&mut self, time: Duration) -> Option<ExitStatus> {
        let begun = Instant::now();
        loop {
            match self.child.try_wait().expect("the child can be asked") {
                Some(status) => return Some(status),
                None if begun.elapsed() >= time => return None,
                None => std::thread::sleep(Duration::from_micros(500)),
            }
        }
    }

    /// The exit code, once the process has ended by itself.
    #[track_caller]
    pub fn exit_code(&mut self) -> Option<i32> {
        self.ended_within(SOON).and_then(|status| status.code())
    }

    /// Sends a signal by its name.
    pub fn signal(&self, name: &str) {
        let sent = Command::new("kill")
            .arg(format!("-{name}"))
            .arg(self.id().to_string())
            .status();
        assert!(
            sent.expect("kill is there").success(),
            "the signal was not sent"
        );
    }

    /// Ends the process at once, as `kill -9` does.
    pub fn kill(&mut self) {
        // It may have ended by itself a moment ago.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.kill();
    }
}

/// The result of a command.
#[derive(Debug)]
pub struct Done {
    pub code: Option<i32>,
    pub stdout: String,
    pub stderr: String,
}

impl Done {
    /// Runs a command to its end.
    pub fn of(command: &mut Command) -> Done {
        let output = command.output().expect("the program starts");
        Done {
            code: output.status.code(),
            stdout: String::from_utf8(output.stdout).expect("UTF-8"),
            stderr: String::from_utf8(output.stderr).expect("UTF-8"),
        }
    }

    /// Asserts the exit code, and that standard error contains a text.
    #[track_caller]
    pub fn assert_told(&self, code: i32, text: &str) {
        let is_told = self.code == Some(code) && self.stderr.contains(text);
        assert!(is_told, "not {code} and `{text}`: {self:?}");
    }

    /// Asserts that standard output contains a text.
    #[track_caller]
    pub fn assert_out(&self, text: &str) {
        assert!(self.stdout.contains(text), "no `{text}`: {self:?}");
    }

    /// Asserts that standard error contains a text.
    #[track_caller]
    pub fn assert_err(&self, text: &str) {
        assert!(self.stderr.contains(text), "no `{text}`: {self:?}");
    }

    /// Asserts the exit code, and that standard output contains a text.
    #[track_caller]
    pub fn assert_shown(&self, code: i32, text: &str) {
        let is_shown = self.code == Some(code) && self.stdout.contains(text);
        assert!(is_shown, "not {code} and `{text}`: {self:?}");
    }

    /// Asserts that a command with `--json` failed, and that its error contains a text.
    #[track_caller]
    pub fn assert_error(&self, text: &str) {
        let error = self.json()["error"].as_str().expect("an error").to_owned();
        let is_told = self.code == Some(1) && error.contains(text);
        assert!(is_told, "not 1 and `{text}`: {self:?}");
    }

    /// How often standard output contains a text.
    pub fn count(&self, text: &str) -> usize {
        self.stdout.matches(text).count()
    }

    pub fn json(&self) -> Value {
        serde_json::from_str(&self.stdout)
            .unwrap_or_else(|error| panic!("no JSON ({error}): {self:?}"))
    }
}

/// Asserts that a text contains another one.
#[track_caller]
pub fn assert_contains(text: &str, part: &str) {
    assert!(text.contains(part), "no `{part}`: {text}");
}

/// A folder with a database.
#[derive(Debug)]
pub struct Site {
    folder: TempDir,
}

impl Site {
    pub fn new() -> Site {
        Site {
            folder: tempfile::Builder::new()
                .prefix("medfeed-test-")
                .tempdir()
                .expect("a temporary folder"),
        }
    }

    /// A site with this number of conferences, of version 0.
    pub fn with(count: u64) -> Site {
        let site = Site::new();
        site.import("conferences.jsonl", conferences_of_version(count, 0));
        site
    }

    /// The same, and a key for all of its content.
    pub fn open(count: u64) -> (Site, String) {
        let site = Site::with(count);
        let key = site.open_key();
        (site, key)
    }

    pub fn folder(&self) -> &Path {
        self.folder.path()
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.folder().join(name)
    }

    pub fn db(&self) -> PathBuf {
        self.path("feed.redb")
    }

    /// Writes a file, and creates its folders.
    pub fn write(&self, name: &str, content: impl AsRef<[u8]>) -> PathBuf {
        let path = self.path(name);
        fs::create_dir_all(path.parent().expect("a file has a folder")).expect("a folder");
        fs::write(&path, content).expect("the file can be written");
        path
    }

    /// A command on the database, run in the folder.
    pub fn command(&self, args: impl IntoIterator<Item = impl AsRef<OsStr>>) -> Command {
        let mut command = self.command_of(env!("CARGO_BIN_EXE_medfeed"));
        command.args(args);
        command
    }

    /// Another program, run as commands are.
    pub fn command_of(&self, program: &str) -> Command {
        let mut command = Command::new(program);
        for (name, _) in
            std::env::vars_os().filter(|(name, _)| name.to_string_lossy().starts_with("MEDFEED_"))
        {
            command.env_remove(name);
        }
        command
            .env("MEDFEED_DB", self.db())
            .current_dir(self.folder())
            .stdin(Stdio::null());
        command
    }

    /// Runs a command to its end.
    pub fn run(&self, args: impl IntoIterator<Item = impl AsRef<OsStr>>) -> Done {
        Done::of(&mut self.command(args))
    }

    /// Runs a command with `--json`. It must succeed.
    pub fn json(&self, args: impl IntoIterator<Item = impl AsRef<OsStr>>) -> Value {
        let args = args.into_iter();
        let mut args: Vec<_> = args.map(|arg| arg.as_ref().to_owned()).collect();
        args.push("--json".into());
        let done = self.run(&args);
        assert_eq!(done.code, Some(0), "{args:?}: {done:?}");
        done.json()
    }

    /// Imports a file.
    pub fn import(&self, name: &str, content: impl AsRef<[u8]>) -> Value {
        let file = self.write(name, content);
        // A file of a release may be more than a year old.
        self.json([
            OsStr::new("import"),
            file.as_os_str(),
            OsStr::new("--create"),
            OsStr::new("--yes"),
        ])
    }

    /// Sets a license: `--dataset conferences --year 2026` and the like.
    pub fn license(&self, name: &str, scope: &str) -> Value {
        let mut args = vec![
            "license",
            "set",
            name,
            "--rate-limit",
            "1000000",
            "--create",
            "--yes",
        ];
        args.extend(scope.split_whitespace());
        self.json(args)
    }

    /// Creates a key. Returns its id and its text.
    pub fn key(&self, license: &str, settings: &[&str]) -> (String, String) {
        let made = self.json([&["key", "create", "--license", license], settings].concat());
        let text = |name: &str| made[name].as_str().expect("a text").to_owned();
        (text("id"), text("key"))
    }

    /// A key that has expired, which the program itself refuses to create. Returns its id and its text.
    pub fn expired_key(&self, license: &str) -> (String, String) {
        let writer = Writer::open(&self.db(), SOON).expect("a database");
        let mut edit = writer.begin().expect("it can be written");
        let settings = KeySettings {
            expires_at: Some(Timestamp::EPOCH),
            ..KeySettings::default()
        };
        let (key, record) = edit
            .create_key(license, settings)
            .expect("the license is there");
        edit.commit().expect("it can be written");
        (record.id, key.reveal().to_owned())
    }

    /// A license that sees everything, and a key for it.
    pub fn open_key(&self) -> String {
        self.license("all", "--dataset conferences --dataset journals");
        self.key("all", &[]).1
    }

    /// Writes a backup.
    pub fn backup(&self, name: &str) -> PathBuf {
        let file = self.path(name);
        self.json(["backup".as_ref(), file.as_os_str()]);
        file
    }

    /// The names of the files in the folder, sorted.
    pub fn files(&self) -> Vec<String> {
        let entries = fs::read_dir(self.folder()).expect("a folder");
        let mut names: Vec<String> = entries
            .map(|entry| {
                entry
                    .expect("an entry")
                    .file_name()
                    .to_string_lossy()
                    .into_owned()
            })
            .collect();
        names.sort();
        names
    }

    /// The curated conferences of a database file.
    pub fn conferences_in(&self, file: &Path) -> Vec<Value> {
        let out = self.path("exported");
        self.json([
            "export".as_ref(),
            out.as_os_str(),
            "--db".as_ref(),
            file.as_os_str(),
        ]);
        let text = fs::read_to_string(out.join("conferences.jsonl")).expect("an exported file");
        text.lines()
            .map(|line| serde_json::from_str(line).expect("JSON lines"))
            .collect()
    }

    /// Serves the database on a free port.
    pub fn serve(&self) -> Server {
        self.start(self.command(["serve", "--listen", "127.0.0.1:0", "--log", "warn"]))
    }

    /// Serves the database on a free port with further options, separated by blanks.
    pub fn serve_with(&self, options: &str) -> Server {
        self.start(self.serve_command(options))
    }

    /// The command that serves the database on a free port with further options, separated by blanks.
    pub fn serve_command(&self, options: &str) -> Command {
        let mut args = vec!["serve", "--listen", "127.0.0.1:0"];
        if !options.contains("--log ") {
            args.extend(["--log", "warn"]);
        }
        args.extend(options.split_whitespace());
        self.command(args)
    }

    /// Runs a command in a shell that prepares for it. The script ends with `exec "$@"`.
    pub fn in_shell(&self, script: &str, inner: &Command) -> Command {
        let mut command = Command::new("/bin/sh");
        for (name, value) in inner.get_envs() {
            match value {
                Some(value) => command.env(name, value),
                None => command.env_remove(name),
            };
        }
        command
            .args(["-c", script, "sh"])
            .arg(inner.get_program())
            .args(inner.get_args());
        command.current_dir(self.folder()).stdin(Stdio::null());
        command
    }

    /// Runs a command that must end by itself.
    pub fn ends(&self, args: impl IntoIterator<Item = impl AsRef<OsStr>>) -> Done {
        let mut command = self.command(args);
        let mut process = Process::spawn(command.stdout(Stdio::piped()).stderr(Stdio::piped()));
        let status = process
            .ended_within(SOON)
            .unwrap_or_else(|| panic!("{command:?} is still running"));
        let mut done = Done {
            code: status.code(),
            stdout: String::new(),
            stderr: String::new(),
        };
        process
            .child()
            .stdout
            .take()
            .expect("a pipe")
            .read_to_string(&mut done.stdout)
            .expect("UTF-8");
        process
            .child()
            .stderr
            .take()
            .expect("a pipe")
            .read_to_string(&mut done.stderr)
            .expect("UTF-8");
        done
    }

    /// Starts a server by a given command, and waits until it is ready.
    pub fn start(&self, command: Command) -> Server {
        self.try_start(command)
            .unwrap_or_else(|done| panic!("the server did not start: {done:?}"))
    }

    /// Starts a server by a given command, and waits until it is ready, or has ended by itself.
    pub fn try_start(&self, command: Command) -> Result<Server, Done> {
        let log = tempfile::NamedTempFile::new_in(self.folder())
            .expect("a log file")
            .into_temp_path();
        let stderr = File::create(&log).expect("the log can be written");
        self.try_start_logging_to(command, stderr.into(), log)
    }

    /// Starts a server by a given command, with a given standard error. [`Server::logged`] reads `log`.
    pub fn start_logging_to(&self, command: Command, stderr: Stdio, log: TempPath) -> Server {
        let started = self.try_start_logging_to(command, stderr, log);
        started.unwrap_or_else(|done| panic!("the server did not start: {done:?}"))
    }

    fn try_start_logging_to(
        &self,
        mut command: Command,
        stderr: Stdio,
        log: TempPath,
    ) -> Result<Server, Done> {
        let mut process = Process::spawn(command.stdout(Stdio::piped()).stderr(stderr));
        let mut stdout = BufReader::new(process.child().stdout.take().expect("a pipe"));
        let mut first = String::new();
        // The binary of the tests prints lines of its own first.
        while !first.contains("listening on ") && stdout.read_line(&mut first).expect("UTF-8") > 0 {
        }
        let url = first.trim_end().split_once("listening on ");
        let url = url.map(|(_, url)| url);
        let told = url.and_then(|url| url.split_once("://"));
        let Some((scheme, Ok(address))) =
            told.map(|(scheme, address)| (scheme.to_owned(), address.parse()))
        else {
            let status = process
                .ended_within(SOON)
                .expect("a command that does not serve ends");
            return Err(Done {
                code: status.code(),
                stdout: first,
                stderr: fs::read_to_string(&log).expect("UTF-8"),
            });
        };
        Ok(Server {
            process,
            scheme,
            address,
            stdout,
            log,
        })
    }

    /// Checks that the full check finds no fault.
    pub fn check(&self) {
        self.check_file(&self.db());
    }

    /// Checks that the full check finds no fault in a file.
    pub fn check_file(&self, file: &Path) {
        let report = self.json(["check".as_ref(), "--db".as_ref(), file.as_os_str()]);
        assert_eq!(report["ok"], json!(true), "{report}");
    }
}

/// A running server.
#[derive(Debug)]
pub struct Server {
    pub process: Process,
    /// `http` or `https`.
    pub scheme: String,
    pub address: SocketAddr,
    pub stdout: BufReader<std::process::ChildStdout>,
    log: TempPath,
}

impl Server {
    /// A client with a key.
    pub fn client(&self, key: &str) -> Client {
        Client::new(self.address, Some(key))
    }

    /// The URL without a path.
    pub fn url(&self) -> String {
        format!("{}://{}", self.scheme, self.address)
    }

    /// The log so far.
    pub fn logged(&self) -> String {
        fs::read_to_string(&self.log).expect("a log")
    }

    /// Waits until the log contains a text.
    pub fn wait_for_log(&self, text: &str) {
        wait_for(text, || self.logged().contains(text));
    }

    /// Ends the server as an operator does.
    pub fn stop(self) {
        self.stop_and_read();
    }

    /// Ends the server as an operator does. Returns its log.
    pub fn stop_and_read(mut self) -> String {
        self.process.signal("TERM");
        let status = self.process.ended_within(SOON).expect("the server ends");
        assert_eq!(status.code(), Some(0), "the server's exit");
        self.logged()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!(
                "the server's log:\n{}",
                fs::read_to_string(&self.log).unwrap_or_default()
            );
        }
    }
}

/// The statuses that a conference without dates needs.
pub const STATUSES: &str = r#""start_date_status":"check","abstract_due_date_status":"check","late_breaking_due_date_status":"check""#;

/// Conferences whose venue is `version n`: another version changes them all.
pub fn conferences_of_version(count: u64, version: u64) -> String {
    let areas = ["Oncology", "Cardiology", "Neurology"];
    let countries = ["Japan", "France", "Chile"];
    (1..=count)
        .map(|id| {
            let turn = usize::try_from(id).expect("small");
            let (area, country) = (areas[turn % 3], countries[turn / 3 % 3]);
            format!(
                "{{\"id\":{id},\"name\":\"Conference {id}\",\"year\":{},\"country\":\"{country}\",\
                 \"therapy_areas\":[\"{area}\"],\"venue\":\"version {version}\",{STATUSES}}}\n",
                2024 + id % 4
            )
        })
        .collect()
}

/// The version that all of these records have.
pub fn version_of<'a>(records: impl IntoIterator<Item = &'a Value>) -> u64 {
    let mut found = None;
    for record in records {
        let venue = record["venue"]
            .as_str()
            .unwrap_or_else(|| panic!("no venue: {record}"));
        let version = venue
            .strip_prefix("version ")
            .and_then(|number| number.parse().ok());
        let version: u64 = version.unwrap_or_else(|| panic!("no version: {record}"));
        assert_eq!(
            *found.get_or_insert(version),
            version,
            "two states in one answer"
        );
    }
    found.expect("an answer with records")
}
