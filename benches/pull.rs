//! The cost of a copy in SQLite: the first load over HTTP, and pages of changes.
//!
//! The load is timed in turn with the `.import` of the same rows by the shell `sqlite3`, where that is installed, and
//! the ratio is printed. The shell fills the two tables alone, without link tables and full-text indexes.
//!
//!     cargo bench --bench pull
//!     cargo bench --bench pull -- page

#![allow(clippy::print_stdout, reason = "the figures are the output")]

mod support;

#[allow(dead_code, reason = "no memory is measured here")]
#[path = "http/child.rs"]
mod child;

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use child::Server;
use medfeed::model::Dataset;
use medfeed::pull::catch_up::{Done, Pull};
use medfeed::pull::export::{Entry, FeedPage};
use medfeed::pull::{Events, PullClient, PullTarget, SqliteCopy};
use rusqlite::Connection;
use serde_json::Value;
use support::Arguments;
use support::machine::{Table, median, print_machine};
use support::synthetic;
use support::world::{Share, Size, World, commit};
use tempfile::TempDir;

/// Times that the load and the shell's import are run in turn.
const ROUNDS: usize = 7;
/// Times that a page is applied.
const PAGE_ROUNDS: usize = 60;
/// Changes of a page, by default.
const PAGE: u64 = 500;

fn main() {
    print_machine("cargo bench --bench pull");
    let arguments = Arguments::read();
    let size = if arguments.is_test {
        Size {
            conferences: 600,
            journals: 100,
        }
    } else {
        Size::USUAL
    };
    let service = Service::start(size);
    if arguments.asks_for("load") {
        compare_loads(&service, if arguments.is_test { 1 } else { ROUNDS });
    }
    if arguments.asks_for("page") {
        time_pages(&service, if arguments.is_test { 1 } else { PAGE_ROUNDS });
    }
}

/// A server and a caller.
struct Service {
    world: World,
    client: PullClient,
    _server: Server,
}

impl Service {
    fn start(size: Size) -> Service {
        let world = World::build(size, &[Share::All]);
        let args = ["serve", "--listen", "127.0.0.1:0", "--log", "warn", "--db"];
        let server = Server::start(
            Command::new(env!("CARGO_BIN_EXE_medfeed"))
                .args(args)
                .arg(world.path()),
        );
        let url = format!("http://{}", server.address)
            .parse()
            .expect("an address");
        let limits = medfeed::pull::body::ReadLimits::default();
        let client = PullClient::new(url, &world.keys[0], None, limits).expect("a caller");
        Service {
            world,
            client,
            _server: server,
        }
    }

    /// An empty copy in a folder of its own.
    fn copy(&self) -> (TempDir, PathBuf, SqliteCopy) {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let path = folder.path().join("copy.sqlite");
        let copy = SqliteCopy::open(path.clone(), self.client.server(), false).expect("a new copy");
        (folder, path, copy)
    }

    fn catch_up(&self, copy: &mut SqliteCopy) {
        for dataset in Dataset::ALL {
            let mut done = Done::default();
            Pull {
                server: &self.client,
                copy,
                events: &NoEvents,
            }
            .catch_up(dataset, 0, &mut done)
            .expect("the copy is brought to the present");
        }
    }
}

/// Drops all events.
struct NoEvents;

impl Events for NoEvents {
    fn note(&self, _: &str) {}
}

/// Times the load of a copy and the shell's import of its rows in turn, so that a busy machine disturbs both alike.
fn compare_loads(service: &Service, rounds: usize) {
    let (folder, path, mut copy) = service.copy();
    service.catch_up(&mut copy);
    let rows: u64 = Dataset::ALL
        .into_iter()
        .map(|dataset| {
            copy.position(dataset)
                .expect("readable")
                .map_or(0, |at| at.records)
        })
        .sum();
    drop(copy);
    let shell = Shell::of(&path, folder.path());
    let mut times = Vec::new();
    for _ in 0..rounds {
        let (_folder, _, mut copy) = service.copy();
        let began = Instant::now();
        service.catch_up(&mut copy);
        times.push((
            began.elapsed(),
            shell
                .as_ref()
                .map_or(Duration::ZERO, |shell| shell.import(rows)),
        ));
    }
    let ms = |of: fn(&(Duration, Duration)) -> f64| median(times.iter().map(of));
    let mut table = Table::new(&[
        "load of a copy",
        "rows",
        "medfeed ms",
        "sqlite3 .import ms",
        "ratio",
    ]);
    let told = |figure: String| {
        if shell.is_some() {
            figure
        } else {
            "not installed".to_owned()
        }
    };
    table.add(&[
        &"conferences and journals, from a local server",
        &rows,
        &format!("{:.0}", ms(|(own, _)| own.as_secs_f64() * 1e3)),
        &told(format!("{:.0}", ms(|(_, shell)| shell.as_secs_f64() * 1e3))),
        &told(format!(
            "{:.2}",
            ms(|(own, shell)| own.as_secs_f64() / shell.as_secs_f64())
        )),
    ]);
    println!("medians of {rounds} rounds, in turn:");
    table.print();
    println!();
}

/// The shell `sqlite3`, with the rows of a copy as CSV files.
struct Shell {
    folder: PathBuf,
}

impl Shell {
    /// `None` where it is not installed.
    fn of(copy: &Path, folder: &Path) -> Option<Shell> {
        Command::new("sqlite3")
            .arg("--version")
            .output()
            .ok()
            .filter(|done| done.status.success())?;
        let shell = Shell {
            folder: folder.to_owned(),
        };
        for dataset in Dataset::ALL {
            shell.run(
                copy,
                &[
                    ".mode csv",
                    &format!(".output {dataset}.csv"),
                    &format!("SELECT * FROM {dataset}"),
                ],
            );
            let connection = Connection::open(copy).expect("a copy");
            let table = "SELECT sql FROM sqlite_schema WHERE name = ?";
            let table: String = connection
                .query_row(table, [dataset.as_str()], |row| row.get(0))
                .expect("a table");
            std::fs::write(folder.join(format!("{dataset}.sql")), table + ";").expect("a file");
        }
        Some(shell)
    }

    /// Returns the time of an import into a new file.
    fn import(&self, rows: u64) -> Duration {
        let target = self.folder.join("imported.sqlite");
        let _ = std::fs::remove_file(&target);
        let steps = Dataset::ALL.map(|dataset| {
            [
                format!(".read {dataset}.sql"),
                format!(".import --csv {dataset}.csv {dataset}"),
            ]
        });
        let began = Instant::now();
        self.run(
            &target,
            &steps
                .as_flattened()
                .iter()
                .map(String::as_str)
                .collect::<Vec<_>>(),
        );
        let took = began.elapsed();
        let count = "SELECT (SELECT count(*) FROM conferences) + (SELECT count(*) FROM journals)";
        let found: i64 = Connection::open(&target)
            .expect("a file")
            .query_row(count, [], |row| row.get(0))
            .expect("tables");
        assert_eq!(found.unsigned_abs(), rows, "the shell imports all rows");
        took
    }

    fn run(&self, file: &Path, steps: &[&str]) {
        let done = Command::new("sqlite3")
            .arg(file)
            .args(steps)
            .current_dir(&self.folder)
            .output()
            .expect("it starts");
        assert!(
            done.status.success() && done.stderr.is_empty(),
            "{}",
            String::from_utf8_lossy(&done.stderr)
        );
    }
}

/// Pages of changes applied to a copy that holds all records. Each changes all of its records.
fn time_pages(service: &Service, rounds: usize) {
    let (_folder, _, mut copy) = service.copy();
    service.catch_up(&mut copy);
    let since = copy
        .position(Dataset::Conferences)
        .expect("readable")
        .expect("a copy")
        .token;
    commit(
        &service.world.writer(),
        synthetic::records(0..PAGE, [], 9_000),
    );
    let page = loop {
        match service
            .client
            .changes(Dataset::Conferences, &since, 30)
            .expect("the service answers")
        {
            Some(page) if !page.entries.is_empty() => break page,
            Some(_) => {}
            None => unreachable!("nobody has changed the license"),
        }
    };
    assert_eq!(page.entries.len() as u64, PAGE, "a whole page");
    let mut table = Table::new(&["page of 500", "ms"]);
    let words = ["end_date", "venue", "name"];
    let mut revisions = 1..;
    for (what, fields) in [
        ("cells", &words[..1]),
        ("cells and indexed words", &words[..]),
    ] {
        let times = revisions.by_ref().take(rounds).map(|revision| {
            let page = revised(&page, fields, revision);
            let began = Instant::now();
            copy.apply(Dataset::Conferences, &page, &NoEvents)
                .expect("the page is applied");
            began.elapsed().as_secs_f64() * 1e3
        });
        table.add(&[&what, &format!("{:.1}", median(times))]);
    }
    println!("medians of {rounds} pages:");
    table.print();
}

/// A page whose records differ in these fields.
fn revised(page: &FeedPage, fields: &[&str], revision: u32) -> FeedPage {
    let entries = page.entries.iter().map(|entry| {
        let mut record: Value = serde_json::from_str(&entry.json).expect("JSON");
        for field in fields {
            let text = match *field {
                "end_date" => format!(
                    "2026-{:02}-{:02}",
                    revision % 12 + 1,
                    revision / 12 % 28 + 1
                ),
                _ => format!("{} {revision}", record[*field].as_str().unwrap_or_default()),
            };
            record[*field] = Value::String(text);
        }
        Entry {
            json: record.to_string().into(),
            ..entry.clone()
        }
    });
    FeedPage {
        entries: entries.collect(),
        ..page.clone()
    }
}
