//! Copies of `medfeed pull`, as other programs see them.

use std::ffi::OsStr;
use std::fs;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;

use postgres::{IsolationLevel, NoTls};
use rusqlite::{Connection, OpenFlags, OptionalExtension};
use serde_json::Value;
use sha2::{Digest as _, Sha256};

use super::client::{Answer, Client};
use super::postgres_server::Cluster;
use super::site::{Done, Process, SOON, Server, Site, wait_for};

/// The content of a copy for a dataset, read in one transaction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Content {
    pub token: String,
    /// The count that the copy stores.
    pub records: i64,
    /// The records' JSON, by id.
    pub lines: Vec<String>,
}

fn is_url(copy: &Path) -> bool {
    copy.to_string_lossy().starts_with("postgres:")
}

/// Reads the content of a copy of any kind; `None` if it has no content yet.
pub fn held(copy: &Path, dataset: &str) -> Option<Content> {
    if is_url(copy) {
        return read_postgres(copy, dataset);
    }
    if copy.is_dir() {
        return read_folder(copy, dataset);
    }
    copy.exists()
        .then(|| read(copy, dataset).expect("readable"))
        .flatten()
}

fn read_folder(copy: &Path, dataset: &str) -> Option<Content> {
    let text = |name: String| fs::read_to_string(copy.join(name)).ok();
    let state: Value =
        serde_json::from_str(&text("medfeed-copy.json".to_owned())?).expect("a state");
    let state = &state["datasets"][dataset];
    let token = state["token"].as_str()?.to_owned();
    let lines = text(format!("{dataset}.jsonl"))?
        .lines()
        .map(str::to_owned)
        .collect();
    Some(Content {
        token,
        records: state["records"].as_i64()?,
        lines,
    })
}

/// A connection to a copy in PostgreSQL.
fn connected(copy: &Path) -> postgres::Client {
    let mut client =
        postgres::Client::connect(&copy.to_string_lossy(), NoTls).expect("a connection");
    client.batch_execute("SET search_path TO medfeed").unwrap();
    client
}

fn read_postgres(copy: &Path, dataset: &str) -> Option<Content> {
    let mut client = connected(copy);
    let mut transaction = client
        .build_transaction()
        .isolation_level(IsolationLevel::RepeatableRead)
        .start()
        .unwrap();
    let is_there = transaction
        .query_one("SELECT to_regclass('medfeed.sync') IS NOT NULL", &[])
        .unwrap();
    if !is_there.get::<_, bool>(0) {
        return None;
    }
    let state = transaction
        .query_opt(
            "SELECT token, records FROM sync WHERE dataset = $1",
            &[&dataset],
        )
        .unwrap()?;
    let lines = transaction
        .query(
            &format!("SELECT json::text FROM {dataset} ORDER BY id"),
            &[],
        )
        .unwrap();
    let lines = lines.iter().map(|row| row.get(0)).collect();
    Some(Content {
        token: state.get(0),
        records: state.get(1),
        lines,
    })
}

/// Reads the content of a copy in SQLite; `None` if it has no content yet.
pub fn read(copy: &Path, dataset: &str) -> rusqlite::Result<Option<Content>> {
    let mut connection = open(copy)?;
    let transaction = connection.transaction()?;
    let tables: i64 = transaction.query_row(
        "SELECT count(*) FROM sqlite_schema WHERE name = 'sync'",
        [],
        |row| row.get(0),
    )?;
    if tables == 0 {
        return Ok(None);
    }
    let state = transaction
        .query_row(
            "SELECT token, records FROM sync WHERE dataset = ?",
            [dataset],
            |row| Ok((row.get(0)?, row.get(1)?)),
        )
        .optional()?;
    let Some((token, records)) = state else {
        return Ok(None);
    };
    let lines = transaction
        .prepare(&format!("SELECT json FROM {dataset} ORDER BY id"))?
        .query_map([], |row| row.get(0))?
        .collect::<rusqlite::Result<_>>()?;
    Ok(Some(Content {
        token,
        records,
        lines,
    }))
}

/// Opens a copy for reading, as other programs do.
pub fn open(copy: &Path) -> rusqlite::Result<Connection> {
    let connection = Connection::open_with_flags(copy, OpenFlags::SQLITE_OPEN_READ_ONLY)?;
    connection.busy_timeout(SOON)?;
    Ok(connection)
}

/// A site with a server, a key and a path for a copy.
pub struct Pulled {
    pub site: Site,
    pub server: Server,
    pub key: String,
    pub copy: PathBuf,
}

impl Pulled {
    pub fn new(site: Site) -> Pulled {
        let key = site.open_key();
        let server = site.serve();
        let copy = site.path("copy.sqlite");
        Pulled {
            site,
            server,
            key,
            copy,
        }
    }

    /// The same, with this number of conferences, and a journal.
    pub fn with(conferences: u64) -> Pulled {
        let site = Site::with(conferences);
        site.import("journals.jsonl", "{\"id\":1,\"name\":\"J\"}\n");
        Pulled::new(site)
    }

    /// A site with a server and a key, and a PostgreSQL database for a copy.
    pub fn in_postgres(cluster: &Cluster, site: Site) -> Pulled {
        let mut pulled = Pulled::new(site);
        pulled.copy = cluster.url(&cluster.database()).into();
        pulled
    }

    /// A connection to a copy in PostgreSQL.
    pub fn postgres(&self) -> postgres::Client {
        connected(&self.copy)
    }

    /// The name of the database of a copy in PostgreSQL.
    pub fn database(&self) -> String {
        self.postgres()
            .query_one("SELECT current_database()::text", &[])
            .unwrap()
            .get(0)
    }

    /// Pulls to another location, with a variable.
    pub fn run_to(&self, to: &str, variable: (&str, &str), args: &str) -> Done {
        let mut command = self.site.command(["pull", &self.url(), "--to", to]);
        command
            .args(args.split_whitespace())
            .env("MEDFEED_KEY", &self.key);
        Done::of(
            command
                .env("HOME", self.site.folder())
                .env(variable.0, variable.1),
        )
    }

    pub fn url(&self) -> String {
        format!("{}://{}", self.server.scheme, self.server.address)
    }

    /// The locations of a copy of each kind: a file, a folder, and a PostgreSQL database if there is a `cluster`.
    pub fn places(&self, cluster: Option<&Arc<Cluster>>) -> Vec<PathBuf> {
        let postgres = cluster.map(|cluster| PathBuf::from(cluster.url(&cluster.database())));
        [self.site.path("copy.sqlite"), self.site.path("copy/")]
            .into_iter()
            .chain(postgres)
            .collect()
    }

    /// The command that pulls from an address, with further arguments separated by blanks.
    pub fn command(&self, url: &str, args: &str) -> Command {
        let mut command = self.site.command(["pull", url, "--to"].map(OsStr::new));
        command
            .arg(&self.copy)
            .args(args.split_whitespace())
            .env("MEDFEED_KEY", &self.key);
        command
    }

    /// Pulls once from an address, with further arguments separated by blanks.
    pub fn run_at(&self, url: &str, args: &str) -> Done {
        Done::of(&mut self.command(url, args))
    }

    /// Pulls once, with further arguments separated by blanks.
    pub fn run(&self, args: &str) -> Done {
        self.run_at(&self.url(), args)
    }

    /// Pulls once. The pull must succeed.
    pub fn pull(&self, args: &str) -> Done {
        let done = self.run(args);
        assert_eq!(done.code, Some(0), "{done:?}");
        done
    }

    pub fn client(&self) -> Client {
        self.server.client(&self.key)
    }

    pub fn content(&self, dataset: &str) -> Content {
        held(&self.copy, dataset).expect("a copy")
    }

    /// Checks that the copy equals the service's export, to the byte.
    pub fn assert_equal(&self, dataset: &str) {
        let expected = exported(&mut self.client(), dataset);
        let found = self.content(dataset);
        assert!(
            found == expected,
            "{dataset}: the copy differs: {found:?}\n{expected:?}"
        );
        if self.copy.is_dir() {
            self.assert_files_equal(dataset);
        }
    }

    /// Checks that the files of a folder are those that its state names, and that the table is the service's CSV
    /// export.
    fn assert_files_equal(&self, dataset: &str) {
        let text = |name: &str| fs::read_to_string(self.copy.join(name)).expect("a file");
        let (lines, table) = (
            text(&format!("{dataset}.jsonl")),
            text(&format!("{dataset}.csv")),
        );
        let csv = self
            .client()
            .get(&format!("/v1/exports/{dataset}?format=csv"))
            .gunzip();
        assert_eq!(table, String::from_utf8(csv).unwrap(), "{dataset}.csv");
        let state: Value = serde_json::from_str(&text("medfeed-copy.json")).unwrap();
        for (name, content) in [("jsonl_sha256", &lines), ("csv_sha256", &table)] {
            let digest = data_encoding::HEXLOWER.encode(&Sha256::digest(content));
            assert_eq!(
                state["datasets"][dataset][name],
                digest.as_str(),
                "{dataset}: {name}"
            );
        }
    }

    /// Imports a file named like its dataset, and waits until the server shows the commit.
    pub fn import(&self, file: &str, rows: impl AsRef<[u8]>) {
        let (dataset, mut client) = (file.trim_end_matches(".jsonl"), self.client());
        let before = exported(&mut client, dataset).token;
        self.site.import(file, rows);
        wait_for("served", || exported(&mut client, dataset).token != before);
    }

    /// Waits until the server shows the last commit, and pulls it.
    pub fn settle(&self, dataset: &str, args: &str) -> Done {
        let before = self.content(dataset).token;
        let mut client = self.client();
        wait_for("the server shows the commit", || {
            exported(&mut client, dataset).token != before
        });
        self.pull(args)
    }

    /// Runs SQL on the copy, as a program that should not write to it.
    pub fn tamper(&self, sql: &str) {
        if is_url(&self.copy) {
            return self
                .postgres()
                .batch_execute(sql)
                .unwrap_or_else(|error| panic!("{sql}: {error:?}"));
        }
        let connection = Connection::open(&self.copy).unwrap();
        connection
            .execute_batch("PRAGMA foreign_keys = off")
            .unwrap();
        connection
            .execute_batch(sql)
            .unwrap_or_else(|error| panic!("{sql}: {error}"));
    }

    /// Runs statements that damage the copy. Checks that a comparison names each fault and repairs it.
    pub fn assert_repaired(&self, cases: &[(&str, &str)]) {
        for (sql, fault) in cases {
            self.tamper(sql);
            let done = self.pull("--verify --dataset conferences");
            assert!(done.stderr.contains(fault), "{sql}: {done:?}");
            assert!(done.stdout.contains("; repaired"), "{sql}: {done:?}");
            self.assert_equal("conferences");
        }
        let again = self.pull("--verify --dataset conferences");
        again.assert_out("nothing new");
        assert!(!again.stdout.contains("repaired"), "{again:?}");
    }

    /// Runs statements that create objects which refuse a page. Checks that the message has these parts and that the
    /// copy stays. Then undoes them.
    pub fn assert_refused(&self, cases: &[(&str, &str, &[&str])]) {
        let token = self.content("conferences").token;
        for (sql, undo, parts) in cases {
            self.tamper(sql);
            let done = self.run("");
            for part in parts.iter().chain(&["drop it, and run again"]) {
                done.assert_told(4, part);
            }
            assert!(!done.stderr.contains("damaged"), "{sql}: {done:?}");
            assert_eq!(self.content("conferences").token, token, "{sql}");
            self.tamper(undo);
        }
        self.pull("--verify");
        self.assert_equal("conferences");
    }

    /// Begins to read a copy in a database. Each call counts the conferences, in the same transaction.
    pub fn reader(&self) -> Box<dyn FnMut() -> i64> {
        const COUNT: &str = "SELECT count(*) FROM conferences";
        if is_url(&self.copy) {
            let mut client = self.postgres();
            client
                .batch_execute("BEGIN ISOLATION LEVEL REPEATABLE READ")
                .unwrap();
            return Box::new(move || client.query_one(COUNT, &[]).unwrap().get(0));
        }
        let connection = open(&self.copy).unwrap();
        connection.execute_batch("BEGIN").unwrap();
        Box::new(move || connection.query_row(COUNT, [], |row| row.get(0)).unwrap())
    }

    /// The rows of a query's first column, as texts.
    pub fn column(&self, sql: &str) -> Vec<String> {
        if is_url(&self.copy) {
            let rows = self
                .postgres()
                .query(&format!("SELECT x::text FROM ({sql}) AS q (x)"), &[]);
            let rows = rows.unwrap_or_else(|error| panic!("{sql}: {error:?}"));
            return rows
                .iter()
                .map(|row| row.get::<_, Option<String>>(0).unwrap_or_default())
                .collect();
        }
        let connection = open(&self.copy).unwrap();
        let mut statement = connection
            .prepare(sql)
            .unwrap_or_else(|error| panic!("{sql}: {error}"));
        let rows = statement
            .query_map([], |row| row.get::<_, rusqlite::types::Value>(0))
            .unwrap();
        rows.map(|value| match value.unwrap() {
            rusqlite::types::Value::Text(text) => text,
            rusqlite::types::Value::Integer(number) => number.to_string(),
            rusqlite::types::Value::Real(number) => number.to_string(),
            other => format!("{other:?}"),
        })
        .collect()
    }
}

/// Runs a command until it writes a line to standard error. The line is empty if it ends without one.
pub fn first_line(mut command: Command) -> (String, Process) {
    let mut process = Process::spawn(command.stdout(Stdio::null()).stderr(Stdio::piped()));
    let mut line = String::new();
    BufReader::new(process.child().stderr.take().unwrap())
        .read_line(&mut line)
        .unwrap();
    (line, process)
}

/// The service's export of a dataset.
pub fn exported(client: &mut Client, dataset: &str) -> Content {
    content_of(&client.get(&format!("/v1/exports/{dataset}")))
}

/// The content of an export.
pub fn content_of(export: &Answer) -> Content {
    let text = String::from_utf8(export.gunzip()).expect("UTF-8");
    let lines: Vec<String> = text.lines().map(str::to_owned).collect();
    let token = export.header("x-sync-token").expect("a token").to_owned();
    Content {
        token,
        records: i64::try_from(lines.len()).expect("few"),
        lines,
    }
}
