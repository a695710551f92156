//! Copies that `medfeed pull` keeps, looked at from outside.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::Command;

use rusqlite::{Connection, OpenFlags, OptionalExtension};

use super::client::{Answer, Client};
use super::site::{Done, SOON, Server, Site, wait_until};

/// What a copy holds of a dataset, read in one transaction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Content {
    pub token: String,
    /// The count that the copy tells.
    pub records: i64,
    /// The records' JSON, by id.
    pub lines: Vec<String>,
}

/// Reads what a copy holds; `None` while it holds nothing.
pub fn read(copy: &Path, dataset: &str) -> rusqlite::Result<Option<Content>> {
    let mut connection = open(copy)?;
    let transaction = connection.transaction()?;
    let tables: i64 =
        transaction.query_row("SELECT count(*) FROM sqlite_schema WHERE name = 'sync'", [], |row| row.get(0))?;
    if tables == 0 {
        return Ok(None);
    }
    let state = transaction
        .query_row("SELECT token, records FROM sync WHERE dataset = ?", [dataset], |row| Ok((row.get(0)?, row.get(1)?)))
        .optional()?;
    let Some((token, records)) = state else { return Ok(None) };
    let lines = transaction
        .prepare(&format!("SELECT json FROM {dataset} ORDER BY id"))?
        .query_map([], |row| row.get(0))?
        .collect::<rusqlite::Result<_>>()?;
    Ok(Some(Content { token, records, lines }))
}

/// A connection for reading, as other programs open it.
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
        Pulled { site, server, key, copy }
    }

    pub fn url(&self) -> String {
        format!("{}://{}", self.server.scheme, self.server.address)
    }

    /// The command that pulls from an address, with further arguments separated by blanks.
    pub fn command(&self, url: &str, args: &str) -> Command {
        let mut command = self.site.command(["pull", url, "--to"].map(OsStr::new));
        command.arg(&self.copy).args(args.split_whitespace()).env("MEDFEED_KEY", &self.key);
        command
    }

    /// Pulls once from an address, with further arguments separated by blanks.
    pub fn run_at(&self, url: &str, args: &str) -> Done {
        let output = self.command(url, args).output().expect("the program starts");
        let text = |bytes| String::from_utf8(bytes).expect("UTF-8");
        Done { code: output.status.code(), stdout: text(output.stdout), stderr: text(output.stderr) }
    }

    /// Pulls once, with further arguments separated by blanks.
    pub fn run(&self, args: &str) -> Done {
        self.run_at(&self.url(), args)
    }

    /// Pulls once, and it succeeds.
    pub fn pull(&self, args: &str) -> Done {
        let done = self.run(args);
        assert_eq!(done.code, Some(0), "{done:?}");
        done
    }

    pub fn client(&self) -> Client {
        self.server.client(&self.key)
    }

    pub fn content(&self, dataset: &str) -> Content {
        read(&self.copy, dataset).expect("readable").expect("a copy")
    }

    /// The copy is what the license shows, to the byte.
    pub fn assert_equal(&self, dataset: &str) {
        let expected = exported(&mut self.client(), dataset);
        let found = self.content(dataset);
        assert!(found == expected, "{dataset}: the copy differs: {found:?}\n{expected:?}");
    }

    /// Waits until the server shows what was committed, and pulls it.
    pub fn settle(&self, dataset: &str, args: &str) -> Done {
        let before = self.content(dataset).token;
        let mut client = self.client();
        wait_until("the server shows the commit", SOON, || {
            (exported(&mut client, dataset).token != before).then_some(())
        });
        self.pull(args)
    }

    /// Runs SQL on the copy, as somebody does who should not.
    pub fn tamper(&self, sql: &str) {
        let connection = Connection::open(&self.copy).unwrap();
        connection.execute_batch("PRAGMA foreign_keys = off").unwrap();
        connection.execute_batch(sql).unwrap_or_else(|error| panic!("{sql}: {error}"));
    }

    /// The rows of a query's first column.
    pub fn column(&self, sql: &str) -> Vec<String> {
        let connection = open(&self.copy).unwrap();
        let mut statement = connection.prepare(sql).unwrap_or_else(|error| panic!("{sql}: {error}"));
        let rows = statement.query_map([], |row| row.get::<_, rusqlite::types::Value>(0)).unwrap();
        rows.map(|value| match value.unwrap() {
            rusqlite::types::Value::Text(text) => text,
            rusqlite::types::Value::Integer(number) => number.to_string(),
            rusqlite::types::Value::Real(number) => number.to_string(),
            other => format!("{other:?}"),
        })
        .collect()
    }
}

/// What the service shows of a dataset.
pub fn exported(client: &mut Client, dataset: &str) -> Content {
    content_of(&client.get(&format!("/v1/exports/{dataset}")))
}

/// What an export holds.
pub fn content_of(export: &Answer) -> Content {
    let text = String::from_utf8(export.gunzip()).expect("UTF-8");
    let lines: Vec<String> = text.lines().map(str::to_owned).collect();
    let token = export.header("x-sync-token").expect("a token").to_owned();
    Content { token, records: i64::try_from(lines.len()).expect("few"), lines }
}
