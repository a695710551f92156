//! Files that are replaced while others write. Each import that was reported as committed is in the file, and no
//! process writes to a file that is no longer the database.
//!
//! `MEDFEED_CASES` sets the number of replacements.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use medfeed::store::write::licensing::KeySettings;
use medfeed::store::{StoreError, Writer};
use serde_json::Value;

use super::client::Client;
use super::site::{STATUSES, Site, wait_for};
use crate::harness::counted;
use crate::properties::feeds::apply;
use crate::properties::variable;

const IMPORTERS: u64 = 2;
const RECORDS: u64 = 20;
/// The loader's pause between two pages.
const PAUSE: Duration = Duration::from_millis(3);

/// An import that was reported as committed: the one record that it added, and when it began.
struct Acknowledged {
    id: u64,
    begun: Instant,
}

/// Imports one new record after the other until `over` is set. No id is used twice.
fn import_until(
    site: &Site,
    number: u64,
    over: &AtomicBool,
    done: &AtomicU64,
) -> Vec<Acknowledged> {
    let mut all = Vec::new();
    while !over.load(Ordering::Relaxed) {
        let id = 1_000_000 * (number + 1) + u64::try_from(all.len()).unwrap();
        let record =
            format!("{{\"id\":{id},\"name\":\"Added {id}\",\"venue\":\"version 0\",{STATUSES}}}\n");
        let begun = Instant::now();
        let told = site.import(&format!("{number}/conferences.jsonl"), record);
        assert_eq!(told["datasets"]["conferences"]["added"], 1, "{told}");
        all.push(Acknowledged { id, begun });
        done.fetch_add(1, Ordering::Relaxed);
    }
    all
}

/// A loader's copy: records by id, and the token for the next request.
struct Copy {
    records: BTreeMap<u64, Value>,
    token: String,
    resyncs: u64,
}

impl Copy {
    fn load(client: &mut Client) -> Copy {
        let export = client.get("/v1/exports/conferences");
        let records = export
            .lines()
            .into_iter()
            .map(|record| (record["id"].as_u64().unwrap(), record))
            .collect();
        Copy {
            records,
            token: export.header("x-sync-token").unwrap().to_owned(),
            resyncs: 0,
        }
    }

    /// Applies the feed's next page, or loads the export again if the token ended.
    fn follow(&mut self, client: &mut Client) {
        let answer = client.get(&format!(
            "/v1/conferences/changes?since={}&limit=50",
            self.token
        ));
        if answer.status == 410 {
            assert_eq!(answer.problem(), "resync_required");
            *self = Copy {
                resyncs: self.resyncs + 1,
                ..Copy::load(client)
            };
            return;
        }
        apply(&mut self.records, &answer.items());
        answer.json()["next_sync_token"]
            .as_str()
            .unwrap()
            .clone_into(&mut self.token);
    }
}

/// Runs `swap` with importers, a server, and a loader that follows it. Checks that the loader's copy ends with the
/// exact content of the file. Returns the acknowledged imports and the loader's number of resyncs.
fn swap_between_imports(
    site: &Site,
    key: &str,
    swap: impl FnOnce(&AtomicU64),
) -> (Vec<Acknowledged>, u64) {
    let server = site.serve();
    let (over, settled, done) = (
        AtomicBool::new(false),
        AtomicBool::new(false),
        AtomicU64::new(0),
    );
    let result = std::thread::scope(|scope| {
        let import = |number| {
            scope.spawn({
                let (over, done) = (&over, &done);
                move || import_until(site, number, over, done)
            })
        };
        let importers: Vec<_> = (0..IMPORTERS).map(import).collect();
        let loader = scope.spawn(|| {
            let mut client = server.client(key);
            let mut copy = Copy::load(&mut client);
            while !settled.load(Ordering::Relaxed) {
                copy.follow(&mut client);
                std::thread::sleep(PAUSE);
            }
            let fresh = Copy::load(&mut client).records;
            wait_for("the loader's copy", || {
                copy.follow(&mut client);
                copy.records == fresh
            });
            copy
        });
        let swapped = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| swap(&done)));
        over.store(true, Ordering::Relaxed);
        let imported = importers.into_iter();
        let imported: Vec<_> = imported.map(|importer| importer.join()).collect();
        let ids = ids_in(site);
        let mut client = server.client(key);
        let mut served = || {
            Copy::load(&mut client)
                .records
                .into_keys()
                .collect::<BTreeSet<u64>>()
        };
        let follows = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            wait_for("the server shows the commits", || served() == ids);
        }));
        settled.store(true, Ordering::Relaxed);
        let copy = loader.join().expect("the loader");
        swapped
            .and(follows)
            .unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        let found = copy.records.into_keys().collect::<BTreeSet<u64>>();
        assert_eq!(found, ids, "the loader's copy");
        let acknowledged = imported
            .into_iter()
            .flat_map(|all| all.expect("every import is done"))
            .collect();
        (acknowledged, copy.resyncs)
    });
    server.stop();
    site.check();
    result
}

fn ids_in(site: &Site) -> BTreeSet<u64> {
    site.conferences_in(&site.db())
        .iter()
        .map(|record| record["id"].as_u64().unwrap())
        .collect()
}

/// Waits for one more import.
fn after_an_import(done: &AtomicU64) {
    let before = done.load(Ordering::Relaxed);
    wait_for("another import", || done.load(Ordering::Relaxed) > before);
}

#[test]
fn compactions_between_imports_lose_nothing() {
    let swaps = variable("MEDFEED_CASES").unwrap_or(8);
    let (site, key) = Site::open(RECORDS);
    let (acknowledged, resyncs) = swap_between_imports(&site, &key, |done| {
        for _ in 0..swaps {
            after_an_import(done);
            site.json(["compact"]);
        }
    });
    let ids = ids_in(&site);
    for import in &acknowledged {
        assert!(
            ids.contains(&import.id),
            "{} was acknowledged and is lost",
            import.id
        );
    }
    let expected = acknowledged.len() + usize::try_from(RECORDS).unwrap();
    assert_eq!(ids.len(), expected);
    assert_eq!(resyncs, 0, "tokens stay alive");
    assert!(acknowledged.len() as u64 >= swaps);
    println!(
        "{swaps} compactions, {} imports, none lost",
        acknowledged.len()
    );
    counted(swaps, "files replaced");
}

#[test]
fn restores_between_imports_lose_only_earlier_commits() {
    let swaps = variable("MEDFEED_CASES").unwrap_or(8);
    let (site, key) = Site::open(RECORDS);
    site.backup("backup.redb");
    let (mut committed, mut stands, mut over) = (0, RECORDS, Instant::now());
    let mut ended: Vec<String> = Vec::new();
    let mut kept: BTreeSet<u64> = BTreeSet::new();
    let (acknowledged, resyncs) = swap_between_imports(&site, &key, |done| {
        let server = site.serve();
        let mut client = server.client(&key);
        for round in 0..swaps {
            after_an_import(done);
            match round % 4 {
                1 => drop(site.backup("backup.redb")),
                3 => drop(site.json(["compact"])),
                _ => {}
            }
            let token = Copy::load(&mut client).token;
            let told = site.json(["restore", "backup.redb", "--yes"]);
            over = Instant::now();
            // The numbers for the replaced file were counted under its lock. No commit may have been made since.
            let counts = &told["records"]["conferences"];
            let (before, after) = (counts[0].as_u64().unwrap(), counts[1].as_u64().unwrap());
            assert_eq!(told["unreadable"], Value::Null, "{told}");
            committed += before
                .checked_sub(stands)
                .unwrap_or_else(|| panic!("{stands} became {before}"));
            stands = after;
            ended.push(token);
            wait_for("the end of the lost time's token", || {
                let answer = client.get(&format!(
                    "/v1/conferences/changes?since={}",
                    ended.last().unwrap()
                ));
                answer.status == 410
            });
        }
        for token in &ended {
            assert_eq!(
                client
                    .get(&format!("/v1/conferences/changes?since={token}"))
                    .problem(),
                "resync_required"
            );
        }
        kept = site
            .conferences_in(&site.path("backup.redb"))
            .iter()
            .map(|one| one["id"].as_u64().unwrap())
            .collect();
        server.stop();
    });
    let ids = ids_in(&site);
    committed += u64::try_from(ids.len()).unwrap() - stands;
    let told = u64::try_from(acknowledged.len()).unwrap();
    assert_eq!(
        committed, told,
        "imports in a file that was the database, and imports acknowledged"
    );
    for import in &acknowledged {
        let must = import.begun > over || kept.contains(&import.id);
        assert!(
            !must || ids.contains(&import.id),
            "{} was acknowledged and is lost",
            import.id
        );
    }
    assert!(kept.is_subset(&ids), "the last backup is part of the file");
    assert!(resyncs > 0, "{resyncs} resyncs, {told} imports");
    assert!(told >= swaps, "{resyncs} resyncs, {told} imports");
    let lost = acknowledged.iter();
    let lost = lost.filter(|import| !ids.contains(&import.id)).count();
    println!(
        "{swaps} restores, {told} imports, {lost} of them undone by a restore, {resyncs} resyncs"
    );
    counted(swaps, "files replaced");
}

#[test]
fn a_writer_whose_file_was_replaced_gets_an_error() {
    let site = Site::with(RECORDS);
    site.open_key();
    let writer = Writer::open(&site.db(), Duration::ZERO).unwrap();
    let mut edit = writer.begin().unwrap();
    edit.create_key("all", KeySettings::default()).unwrap();
    // Another program renames a file, without the lock.
    fs::rename(site.backup("backup.redb"), site.db()).unwrap();
    let told = edit.commit();
    assert!(matches!(told, Err(StoreError::Replaced { .. })), "{told:?}");
    drop(writer);
    let count = site.json(["key", "list"])["keys"].as_array().unwrap().len();
    assert_eq!(count, 1);
    site.check();
}
