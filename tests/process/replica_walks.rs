//! Callers who request each page of a feed from another server, the origin or a replica, while the data changes: no
//! token is lost, no entry is missing and none comes twice. Tokens that a restore or the loss of an origin ends are
//! refused at once.
//!
//! `MEDFEED_CASES` sets the number of pages, `MEDFEED_SEED` the seed.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicI64, AtomicUsize, Ordering};
use std::time::Duration;

use serde_json::Value;

use super::client::Client;
use super::monitoring::start_watched;
use super::origin::Replica;
use super::published::{Place, note, rows_of};
use super::replicas::{compare, seq_of, serve};
use super::site::{Random, SOON, STATUSES, Server, Site, cases_and_seed, wait_until};
use crate::harness::counted;
use crate::properties::feeds::apply;

const COUNTRIES: [&str; 3] = ["Japan", "France", "Chile"];

/// The walked feeds: a license, and a dataset.
const FEEDS: [(&str, &str); 4] = [
    ("all", "conferences"),
    ("japan", "conferences"),
    ("years", "conferences"),
    ("all", "journals"),
];

/// The present version of a record. No version of a record is repeated, so an entry that comes again is noticed.
#[derive(Clone)]
struct Row {
    version: u64,
    country: usize,
}

/// The curator, who changes the data.
#[derive(Clone)]
struct Curator {
    rows: BTreeMap<u64, Row>,
    journals: BTreeMap<u64, u64>,
    next_id: u64,
    version: u64,
}

impl Curator {
    fn new() -> Curator {
        let rows = (1..=60)
            .map(|id| {
                (
                    id,
                    Row {
                        version: 0,
                        country: usize::try_from(id % 3).unwrap(),
                    },
                )
            })
            .collect();
        Curator {
            rows,
            journals: (1..=9).map(|id| (id, 0)).collect(),
            next_id: 61,
            version: 0,
        }
    }

    /// Changes some records, at least one of every feed.
    fn change(&mut self, random: &mut Random) {
        self.version += 1;
        let version = self.version;
        for _ in 0..1 + random.below(6) {
            let ids: Vec<u64> = self.rows.keys().copied().collect();
            let row = self.rows.get_mut(&ids[random.below(ids.len())]).unwrap();
            // It may leave a country for good.
            row.country = (row.country + random.below(2)).min(COUNTRIES.len() - 1);
            row.version = version;
        }
        if random.below(3) == 0 && self.rows.len() > 40 {
            let ids: Vec<u64> = self.rows.keys().copied().collect();
            self.rows.remove(&ids[random.below(ids.len())]);
        }
        // In Japan, and in the year of the license.
        self.next_id += 4 - self.next_id % 4 + 1;
        self.rows.insert(
            self.next_id,
            Row {
                version,
                country: 0,
            },
        );
        self.journals
            .insert(1 + u64::try_from(random.below(9)).unwrap(), version);
    }

    /// Imports all rows, as one commit.
    fn import(&self, site: &Site) {
        let conferences: String = self
            .rows
            .iter()
            .map(|(id, row)| {
                format!(
                    "{{\"id\":{id},\"name\":\"Conference {id}\",\"year\":{},\"country\":\"{}\",\"venue\":\"version {}\",{STATUSES}}}\n",
                    2024 + id % 4,
                    COUNTRIES[row.country],
                    row.version
                )
            })
            .collect();
        let journals: String = self
            .journals
            .iter()
            .map(|(id, version)| {
                format!("{{\"id\":{id},\"name\":\"Journal {id}, version {version}\"}}\n")
            })
            .collect();
        site.write("data/conferences.jsonl", conferences);
        let folder = site.write("data/journals.jsonl", journals);
        site.json([
            "import".as_ref(),
            folder.parent().unwrap().as_os_str(),
            "--create".as_ref(),
            "--replace".as_ref(),
        ]);
    }
}

/// A server, and its monitoring.
type Stop = (Server, Client);

fn origin(site: &Site) -> Stop {
    start_watched(
        site,
        site.serve_command("--admin-listen 127.0.0.1:0 --log info"),
    )
}

/// Waits until a server shows the last commit of a database.
fn wait_for((_, admin): &mut Stop, site: &Site) {
    let seq = rows_of(&site.db()).1.seq as f64;
    wait_until("the server has caught up", SOON, || {
        (seq_of(admin) == seq).then_some(())
    });
}

/// A caller's copy of a dataset, as its license shows it.
struct Walker {
    name: String,
    dataset: &'static str,
    key: String,
    clients: Vec<(Client, Client)>,
    random: Random,
    /// Whether it long-polls.
    waits: bool,
    records: BTreeMap<u64, Value>,
    /// Each received entry, with its record's version at that time.
    seen: BTreeSet<(u64, Option<String>)>,
    token: String,
    /// The server that gave the token, and an upper limit of the token's seq.
    from: (usize, f64),
    polls: u64,
    behind: u64,
}

fn marker(record: &Value) -> Option<String> {
    let text = record["venue"].as_str().or(record["name"].as_str());
    text.filter(|_| record["deleted"] != true)
        .map(str::to_owned)
}

fn by_id(records: Vec<Value>) -> BTreeMap<u64, Value> {
    records
        .into_iter()
        .map(|record| (record["id"].as_u64().unwrap(), record))
        .collect()
}

impl Walker {
    fn new(feed: (&'static str, &'static str), key: &str, waits: bool, seed: u64) -> Walker {
        Walker {
            name: format!(
                "{} of {}{}",
                feed.1,
                feed.0,
                if waits { ", waiting" } else { "" }
            ),
            dataset: feed.1,
            key: key.to_owned(),
            clients: Vec::new(),
            random: Random::new(seed),
            waits,
            records: BTreeMap::new(),
            seen: BTreeSet::new(),
            token: String::new(),
            from: (0, 0.0),
            polls: 0,
            behind: 0,
        }
    }

    /// Sends further requests to these servers.
    fn turn_to(&mut self, stops: &[Stop]) {
        let clients = stops
            .iter()
            .map(|(server, admin)| (server.client(&self.key), Client::new(admin.address(), None)));
        self.clients = clients.collect();
        self.from.0 = usize::MAX;
    }

    /// The records of a server's export, and its token.
    fn export(&mut self, at: usize) -> (BTreeMap<u64, Value>, String) {
        let answer = self.clients[at]
            .0
            .get(&format!("/v1/exports/{}", self.dataset));
        (
            by_id(answer.lines()),
            answer.header("x-sync-token").unwrap().to_owned(),
        )
    }

    /// Loads a server's export.
    fn load(&mut self, at: usize) {
        (self.records, self.token) = self.export(at);
        self.seen = self
            .records
            .iter()
            .map(|(id, record)| (*id, marker(record)))
            .collect();
        self.from = (at, seq_of(&mut self.clients[at].1));
    }

    /// The status that a token gets at a server.
    fn status(&mut self, at: usize, token: &str) -> u16 {
        let answer = self.clients[at]
            .0
            .get(&format!("/v1/{}/changes?since={token}", self.dataset));
        match answer.status {
            410 => assert_eq!(answer.problem(), "resync_required"),
            503 => assert_eq!(
                (answer.problem().as_str(), answer.header("retry-after")),
                ("unavailable", Some("1"))
            ),
            _ => {}
        }
        answer.status
    }

    /// Requests a page from a server. Returns whether it was the last one, for now.
    fn poll(&mut self, at: usize) -> bool {
        let limit = [1, 3, 17, 200][self.random.below(4)];
        let wait = if self.waits { "&wait=1" } else { "" };
        let target = format!(
            "/v1/{}/changes?limit={limit}&since={}{wait}",
            self.dataset, self.token
        );
        let (client, admin) = &mut self.clients[at];
        let seq_before = seq_of(admin);
        let answer = client.get(&target);
        self.polls += 1;
        let told = || {
            format!(
                "{}: page {} at server {at}, after one of {:?}",
                self.name, self.polls, self.from
            )
        };
        if answer.status == 503 {
            assert_eq!(
                (answer.problem().as_str(), answer.header("retry-after")),
                ("unavailable", Some("1"))
            );
            assert!(
                at != self.from.0 && seq_before < self.from.1,
                "{}: it shows {seq_before}, so it is not behind",
                told()
            );
            self.behind += 1;
            return false;
        }
        assert_eq!(
            answer.status,
            200,
            "{}: {}",
            told(),
            String::from_utf8_lossy(&answer.body)
        );
        let page = answer.json();
        for entry in page["data"].as_array().unwrap() {
            let id = entry["id"].as_u64().unwrap();
            assert!(
                self.seen.insert((id, marker(entry))),
                "{}: an entry twice: {entry}",
                told()
            );
        }
        apply(&mut self.records, page["data"].as_array().unwrap());
        self.token = page["next_sync_token"].as_str().unwrap().to_owned();
        self.from = (at, seq_of(admin));
        page["has_more"] == false
    }

    /// Requests pages from servers in random order, until all walkers together have no pages left.
    fn walk(&mut self, left: &AtomicI64) {
        while left.fetch_sub(1, Ordering::SeqCst) > 0 {
            let at = self.random.below(self.clients.len());
            self.poll(at);
            // Other things happen between two pages.
            std::thread::sleep(self.random.part_of(Duration::from_millis(20)));
        }
    }

    /// Requests pages until there are no more, and compares the copy with the export of each server. All servers have
    /// caught up.
    fn finish(&mut self) {
        self.waits = false;
        let at = self.random.below(self.clients.len());
        while !self.poll(at) {}
        for at in 0..self.clients.len() {
            let (records, token) = self.export(at);
            assert!(
                self.records == records,
                "{}: the copy is not what server {at} has",
                self.name
            );
            assert_eq!(self.status(at, &token), 200);
            assert!(self.poll(at), "{}: there is nothing more", self.name);
        }
    }
}

/// All walk while the data changes. Then the servers catch up, and the copies are compared. Returns the number of
/// commits.
fn walk_under_commits(
    (site, curator, random): (&Site, &mut Curator, &mut Random),
    (stops, walkers): (&mut [Stop], &mut [Walker]),
    polls: i64,
) -> u64 {
    let (walking, left) = (AtomicUsize::new(walkers.len()), AtomicI64::new(polls));
    let mut commits = 0;
    std::thread::scope(|scope| {
        for (index, walker) in walkers.iter_mut().enumerate() {
            walker.waits = index % 2 == 1;
            let (walking, left) = (&walking, &left);
            scope.spawn(move || {
                // A walker that fails does not make the others wait.
                let walked =
                    std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| walker.walk(left)));
                walking.fetch_sub(1, Ordering::SeqCst);
                walked.unwrap_or_else(|failed| std::panic::resume_unwind(failed));
            });
        }
        while walking.load(Ordering::SeqCst) > 0 {
            curator.change(random);
            curator.import(site);
            commits += 1;
        }
    });
    stops.iter_mut().for_each(|stop| wait_for(stop, site));
    walkers.iter_mut().for_each(Walker::finish);
    commits
}

/// Waits until a server refuses a token as lost. It does so as soon as it shows a commit.
fn is_lost_at(walker: &mut Walker, at: usize, token: &str, commit: f64) {
    wait_until("the token is lost", SOON, || {
        let shown = seq_of(&mut walker.clients[at].1);
        let status = walker.status(at, token);
        assert!(
            status == 410 || shown < commit,
            "{}: {status} at server {at}, which shows {shown}",
            walker.name
        );
        (status == 410).then_some(())
    });
}

fn stop(mut publisher: super::site::Process) {
    publisher.signal("TERM");
    assert_eq!(
        publisher
            .ended_within(SOON)
            .and_then(|status| status.code()),
        Some(0)
    );
}

#[test]
fn tokens_work_at_origin_and_replicas_in_turn() {
    let (polls, seed) = cases_and_seed(80, 20_261_122);
    let polls = i64::try_from(polls).unwrap();
    let (mut random, mut curator, site) = (Random::new(seed), Curator::new(), Site::new());
    curator.import(&site);
    site.license("all", "--dataset conferences --dataset journals");
    site.license("japan", "--dataset conferences --country Japan");
    site.license("years", "--dataset conferences --year 2025");
    let place = Place::folder(&site);
    let publisher = place.start(&site, "--every 0s");
    let replicas = [0, 1].map(|_| Replica {
        site: Site::new(),
        url: place.url.clone(),
    });
    let mut stops = vec![
        origin(&site),
        serve(&replicas[0], "--poll 20ms"),
        // This replica is behind most of the time.
        serve(&replicas[1], "--poll 1s"),
    ];
    let mut walkers: Vec<Walker> = (0..8)
        .map(|index| {
            let feed = FEEDS[index / 2];
            let key = site.key(feed.0, &[]).1;
            Walker::new(
                feed,
                &key,
                index % 2 == 1,
                seed + u64::try_from(index).unwrap(),
            )
        })
        .collect();
    stops.iter_mut().for_each(|stop| wait_for(stop, &site));
    for walker in &mut walkers {
        walker.turn_to(&stops);
        let at = walker.random.below(stops.len());
        walker.load(at);
    }
    let (backup, kept) = (site.backup("backup.redb"), curator.clone());
    let mut commits = walk_under_commits(
        (&site, &mut curator, &mut random),
        (&mut stops, &mut walkers),
        polls,
    );
    let behind: u64 = walkers.iter().map(|walker| walker.behind).sum();
    assert!(behind > 0 || polls < 1000, "no replica was ever behind");

    // After a restore, every older token is lost, at every server.
    let lost: Vec<String> = walkers.iter().map(|walker| walker.token.clone()).collect();
    site.json(["restore".as_ref(), backup.as_os_str(), "--yes".as_ref()]);
    let leap = rows_of(&site.db()).1.seq as f64;
    for (walker, token) in std::iter::zip(&mut walkers, &lost) {
        (0..stops.len()).for_each(|at| is_lost_at(walker, at, token, leap));
        walker.load(0);
    }
    curator = Curator {
        version: curator.version,
        next_id: curator.next_id,
        ..kept
    };
    commits += walk_under_commits(
        (&site, &mut curator, &mut random),
        (&mut stops, &mut walkers),
        polls / 4,
    );

    // The origin is lost with unpublished commits, and with tokens that it issued for them.
    let last = rows_of(&site.db()).1.seq;
    wait_until("all is published so far", SOON, || {
        (note(&site).seq == last).then_some(())
    });
    stop(publisher);
    let published: Vec<String> = walkers.iter().map(|walker| walker.token.clone()).collect();
    let before = curator.clone();
    for _ in 0..3 {
        curator.change(&mut random);
        curator.import(&site);
    }
    wait_for(&mut stops[0], &site);
    for (index, walker) in walkers
        .iter_mut()
        .enumerate()
        .filter(|(index, _)| index % 3 > 0)
    {
        while !walker.poll(0) {}
        assert_ne!(
            walker.token, published[index],
            "{}: something is new to everybody",
            walker.name
        );
        for at in 1..stops.len() {
            assert_eq!(
                walker.status(at, &walker.token.clone()),
                503,
                "{}: it is ahead of server {at}",
                walker.name
            );
        }
    }
    let mut stops = stops.into_iter();
    for stop in stops.by_ref().take(2) {
        stop.0.stop();
    }
    let [chosen, other] = replicas;
    let report = place.json(&chosen.site, &["promote", &place.url, "--yes"]);
    let leap = report["seq"].as_u64().unwrap() as f64;
    let mut stops = vec![origin(&chosen.site), stops.next().unwrap()];
    for (index, walker) in walkers.iter_mut().enumerate() {
        walker.turn_to(&stops);
        let token = walker.token.clone();
        if token == published[index] {
            assert!(
                [0, 1].iter().all(|at| walker.status(*at, &token) == 200),
                "{}: it was published",
                walker.name
            );
            continue;
        }
        assert_eq!(
            walker.status(0, &token),
            410,
            "{}: lost at once",
            walker.name
        );
        is_lost_at(walker, 1, &token, leap);
        walker.load(0);
    }
    let late = place.run(&site, "--once");
    assert_eq!(late.code, Some(4), "{late:?}");
    let publisher = place.start(&chosen.site, "--every 0s");
    curator = Curator {
        version: curator.version,
        next_id: curator.next_id,
        ..before
    };
    commits += walk_under_commits(
        (&chosen.site, &mut curator, &mut random),
        (&mut stops, &mut walkers),
        polls / 4,
    );
    // Both servers answer every request alike.
    let Walker { clients, token, .. } = &mut walkers[0];
    let [(here, _), (there, _)] = &mut clients[..] else {
        panic!("two servers")
    };
    compare(here, there, std::slice::from_ref(token));
    stop(publisher);
    stops.into_iter().for_each(|stop| stop.0.stop());
    [&chosen.site, &other.site]
        .into_iter()
        .for_each(Site::check);
    let sum = |count: fn(&Walker) -> u64| walkers.iter().map(count).sum::<u64>();
    println!(
        "{} pages, {} while behind, {commits} commits",
        sum(|walker| walker.polls),
        sum(|walker| walker.behind)
    );
    counted(
        walkers.iter().map(|walker| walker.polls).sum::<u64>(),
        "pages of three servers",
    );
}
