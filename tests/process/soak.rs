//! A long mixed load on real programs: an origin, its publisher, a replica, and a copy that follows. Curators import,
//! licenses change, and callers send requests, stall, disconnect and wait for news. Afterwards all have the same
//! records. After the warm-up, memory, descriptors and files of the programs do not grow.
//!
//! `MEDFEED_CASES` sets how many seconds the load lasts, `MEDFEED_SEED` the seed. Growth is judged from ten minutes on.

use std::collections::BTreeMap;
use std::fs;
use std::io::{Read, Write};
use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use super::client::{Client, connect, connect_from};
use super::monitoring::start_watched;
use super::origin::Replica;
use super::published::{Place, rows_of};
use super::pulled::{exported, read};
use super::replicas::seq_of;
use super::site::{Process, Random, SOON, STATUSES, Site, cases_and_seed, wait_until};

use crate::harness::counted;

/// Records of a long run: enough to fill the engine's cache of 4 MiB with the file, and few enough for fast imports.
const RECORDS: u64 = 4_000;

/// Records of a short run.
const FEW_RECORDS: u64 = 400;

/// Growth is judged in runs of at least this time.
const JUDGED_FROM: Duration = Duration::from_secs(600);

/// The part of a run that is the warm-up.
const WARM_UP: f64 = 0.25;

/// The maximum growth per hour of each measure. The history of commits has to grow: each commit takes up to 500 bytes.
const GROWTH_PER_HOUR: [(&str, f64); 4] = [
    ("memory", 1e6),
    ("file", 1e6),
    ("descriptors", 2.0),
    ("backup", 2.5e6),
];

/// The time between two backups of each database.
const BACKUP_EVERY: Duration = Duration::from_secs(30);

/// Options of a server with monitoring whose log leaves out the answers. Its caches are full after the warm-up.
const MONITORED: &str =
    "--admin-listen 127.0.0.1:0 --log info,medfeed::api::observe=warn --cache-bytes 4000000";

/// The end of the load, and the counts of its actions.
#[derive(Default)]
struct Load {
    is_over: AtomicBool,
    imports: AtomicU64,
    licenses: AtomicU64,
    answers: AtomicU64,
    news: AtomicU64,
    stalled: AtomicU64,
}

impl Load {
    fn is_running(&self) -> bool {
        !self.is_over.load(Ordering::Relaxed)
    }

    /// Pauses, but ends early when the load is over.
    fn pause(&self, time: Duration) {
        let begun = Instant::now();
        while self.is_running() && begun.elapsed() < time {
            thread::sleep(time.min(Duration::from_millis(50)));
        }
    }
}

fn count(counter: &AtomicU64) {
    counter.fetch_add(1, Ordering::Relaxed);
}

/// The curated conferences: each has a version, and some are removed at the moment.
struct Curator {
    versions: Vec<u64>,
    random: Random,
}

impl Curator {
    fn new(seed: u64, records: u64) -> Curator {
        Curator {
            versions: (0..records).map(|id| u64::from(id % 20 != 0)).collect(),
            random: Random::new(seed),
        }
    }

    /// Changes, removes and adds records. Their number stays about the same.
    fn change(&mut self) {
        for _ in 0..24 {
            let at = self.random.below(self.versions.len());
            let is_there = self.random.below(20) != 0;
            self.versions[at] = if is_there {
                self.random.next() % 1_000_000 + 1
            } else {
                0
            };
        }
    }

    fn import(&self, site: &Site) {
        let line = |(id, version): (usize, &u64)| {
            let (country, area) = (
                ["Japan", "France", "Chile"][id % 3],
                ["Oncology", "Cardiology"][id % 2],
            );
            format!(
                "{{\"id\":{},\"name\":\"Conference {id} of {version:07}\",\"year\":{},\"country\":\"{country}\",\
                 \"therapy_areas\":[\"{area}\"],\"venue\":\"version {version:07}\",{STATUSES}}}\n",
                id + 1,
                2024 + id % 4
            )
        };
        let there = self.versions.iter();
        let there = there.enumerate().filter(|(_, version)| **version != 0);
        let content: String = there.map(line).collect();
        let file = site.write("conferences.jsonl", content);
        site.json([
            "import".as_ref(),
            file.as_os_str(),
            "--create".as_ref(),
            "--replace".as_ref(),
        ]);
    }
}

/// Imports, changes of a license, and now and then a key that is created and revoked.
fn curate(site: &Site, load: &Load, mut curator: Curator) {
    for turn in 0_u64.. {
        load.pause(Duration::from_millis(1500));
        if !load.is_running() {
            return;
        }
        curator.change();
        curator.import(site);
        count(&load.imports);
        if turn % 4 == 3 {
            let scopes = [
                "--dataset conferences --country Japan",
                "--dataset conferences --country Japan --country Chile",
            ];
            site.license("part", scopes[usize::from(turn % 8 == 7)]);
            count(&load.licenses);
        }
        if turn % 40 == 39 {
            let (id, _) = site.key("part", &[]);
            site.json(["key", "revoke", &id]);
        }
    }
}

/// Requests lists, records, references, pages of the feed and exports, over connections that stay open.
fn ask(address: SocketAddr, key: &str, load: &Load, seed: u64) {
    let (mut client, mut random) = (Client::new(address, Some(key)), Random::new(seed));
    while load.is_running() {
        let target = match random.below(12) {
            0..3 => format!(
                "/v1/conferences?limit=50&country={}",
                ["Japan", "France"][random.below(2)]
            ),
            3 => format!("/v1/conferences?q=conference+{}", random.below(2000)),
            4..8 => format!("/v1/conferences/{}", random.below(2200)),
            8 => "/v1/reference/therapy-areas".to_owned(),
            9 => "/v1/conferences/changes?limit=100".to_owned(),
            10 => "/v1/status".to_owned(),
            _ => "/v1/exports/conferences".to_owned(),
        };
        let answer = client.get(&target);
        let status = answer.status;
        assert!([200, 404].contains(&status), "{target}: {status}");
        count(&load.answers);
        load.pause(Duration::from_millis(20));
    }
}

/// Follows the feed by long polls, and loads the export when the token has ended.
fn wait_for_news(address: SocketAddr, key: &str, load: &Load, resync: &str) {
    let mut client = Client::new(address, Some(key));
    let mut token = None;
    while load.is_running() {
        let Some(since) = &token else {
            token = Some(exported(&mut client, "conferences").token);
            continue;
        };
        let answer = client.get(&format!(
            "/v1/conferences/changes?since={since}&wait=3{resync}"
        ));
        match answer.status {
            200 => token = answer.json()["next_sync_token"].as_str().map(str::to_owned),
            410 => token = None,
            other => panic!("{other}: {}", String::from_utf8_lossy(&answer.body)),
        }
        count(&load.news);
    }
}

/// Callers that send a request byte by byte, read an export slowly, or close the connection in the middle of it.
fn stall(address: SocketAddr, key: &str, load: &Load, seed: u64) {
    let mut random = Random::new(seed);
    let request = Client::new(address, Some(key)).request("/v1/exports/conferences");
    while load.is_running() {
        let is_slow_to_send = random.below(2) == 0;
        let connected = match is_slow_to_send {
            true => connect(address),
            false => connect_from(Ipv4Addr::LOCALHOST.into(), address, Some(4096)),
        };
        let mut stream = connected.expect("the server takes callers");
        stream
            .set_read_timeout(Some(Duration::from_millis(100)))
            .expect("a time limit");
        let pieces = if is_slow_to_send { 40 } else { 1 };
        for piece in request.as_bytes().chunks(request.len().div_ceil(pieces)) {
            // The server may close a slow connection.
            let _ = stream.write_all(piece);
            load.pause(Duration::from_millis(if is_slow_to_send { 50 } else { 0 }));
        }
        let mut piece = [0; 1024];
        for _ in 0..random.below(30) {
            let _ = stream.read(&mut piece[..1 + random.below(1023)]);
            load.pause(Duration::from_millis(30));
        }
        count(&load.stalled);
    }
}

/// Samples of programs and files at intervals.
struct Watch<'s> {
    programs: Vec<(&'static str, u32)>,
    files: Vec<(&'static str, PathBuf)>,
    databases: Vec<(&'static str, &'s Site)>,
    backed_up: Option<Duration>,
    /// The times and values of each measure of a program or file.
    series: BTreeMap<(&'static str, &'static str), Vec<(Duration, f64)>>,
}

/// The growth per hour after the warm-up: the slope of the least squares.
fn per_hour(series: &[(Duration, f64)]) -> f64 {
    let warm_up = series.last().expect("a sample").0.mul_f64(WARM_UP);
    let judged = series.iter().filter(|(at, _)| *at >= warm_up);
    let judged = judged.map(|(at, value)| (at.as_secs_f64() / 3600.0, *value));
    let judged: Vec<(f64, f64)> = judged.collect();
    let mean =
        |of: fn(&(f64, f64)) -> f64| judged.iter().map(of).sum::<f64>() / judged.len() as f64;
    let (time, value) = (mean(|sample| sample.0), mean(|sample| sample.1));
    let products: f64 = judged
        .iter()
        .map(|(at, sample)| (at - time) * (sample - value))
        .sum();
    let squares: f64 = judged.iter().map(|(at, _)| (at - time) * (at - time)).sum();
    if squares == 0.0 {
        0.0
    } else {
        products / squares
    }
}

/// The private memory of a process (resident, not of a file), in bytes.
fn memory(process: u32) -> f64 {
    let status = fs::read_to_string(format!("/proc/{process}/status")).expect("the program runs");
    let line = status
        .lines()
        .find_map(|line| line.strip_prefix("RssAnon:"))
        .expect("the kernel reports it");
    line.trim()
        .trim_end_matches(" kB")
        .parse::<f64>()
        .expect("a number")
        * 1024.0
}

fn size(file: &Path) -> f64 {
    fs::metadata(file).map_or(0.0, |file| file.len() as f64)
}

impl Watch<'_> {
    fn sample(&mut self, at: Duration) {
        let mut sampled = Vec::new();
        for (name, process) in &self.programs {
            let descriptors = fs::read_dir(format!("/proc/{process}/fd"))
                .expect("the program runs")
                .count();
            sampled.extend([
                ((*name, "memory"), memory(*process)),
                ((*name, "descriptors"), descriptors as f64),
            ]);
        }
        sampled.extend(
            self.files
                .iter()
                .map(|(name, file)| ((*name, "file"), size(file))),
        );
        // A database file grows in large steps, so its backups are measured.
        if self.backed_up.is_none_or(|last| at >= last + BACKUP_EVERY) {
            self.backed_up = Some(at);
            for (name, site) in &self.databases {
                let backup = site.backup("backup.redb");
                sampled.push(((*name, "backup"), size(&backup)));
                fs::remove_file(backup).expect("the backup is there");
            }
        }
        for (measure, value) in sampled {
            self.series.entry(measure).or_default().push((at, value));
        }
    }

    /// Prints the growth of each measure. Returns those that grew too much.
    fn grown(&self) -> Vec<String> {
        let mut grown = Vec::new();
        for ((name, measure), series) in &self.series {
            let told = format!("{name}: {measure}: {:+.1} in an hour", per_hour(series));
            println!("soak: {told}");
            let (_, most) = GROWTH_PER_HOUR
                .iter()
                .find(|(of, _)| of == measure)
                .expect("a bound");
            grown.extend((per_hour(series) > *most).then_some(told));
        }
        grown
    }
}

fn follow(site: &Site, url: &str, key: &str, copy: &Path) -> Process {
    let mut command = site.command([
        "pull".as_ref(),
        url.as_ref(),
        "--to".as_ref(),
        copy.as_os_str(),
    ]);
    command
        .args(["--follow", "--every", "2s", "--dataset", "conferences"])
        .env("MEDFEED_KEY", key);
    Process::spawn(command.stdout(Stdio::null()).stderr(Stdio::null()))
}

#[test]
fn nothing_grows_under_a_mixed_load() {
    let (lasts, seed) = cases_and_seed(4, 20_261_123);
    let lasts = Duration::from_secs(lasts);
    let site = Site::new();
    let records = if lasts < JUDGED_FROM {
        FEW_RECORDS
    } else {
        RECORDS
    };
    let curator = Curator::new(seed, records);
    curator.import(&site);
    let all = site.open_key();
    site.license("part", "--dataset conferences --country Japan");
    let (_, part) = site.key("part", &[]);
    let command = site.serve_command(&format!("{MONITORED} --change-delay 1s"));
    let (server, mut admin) = start_watched(&site, command);
    let place = Place::folder(&site);
    let publisher = place.start(&site, "");
    let replica = Replica {
        site: Site::new(),
        url: place.url.clone(),
    };
    let (replicated, mut replica_admin) = start_watched(
        &replica.site,
        replica
            .site
            .serve_command(&format!("--from {} {MONITORED}", replica.url)),
    );
    let copy = site.path("copy.sqlite");
    let puller = follow(&site, &format!("http://{}", server.address), &all, &copy);
    let mut watch = Watch {
        programs: vec![
            ("origin", server.process.id()),
            ("publisher", publisher.id()),
            ("replica", replicated.process.id()),
            ("pull", puller.id()),
        ],
        files: vec![
            ("pull", copy.clone()),
            ("pull's log", site.path("copy.sqlite-wal")),
        ],
        databases: vec![("origin", &site), ("replica", &replica.site)],
        backed_up: None,
        series: BTreeMap::new(),
    };
    let load = Load::default();
    let begun = Instant::now();
    thread::scope(|scope| {
        let mut callers = Vec::new();
        for (at, address) in [server.address, replicated.address].into_iter().enumerate() {
            let (load, all, part, seed) = (&load, &all, &part, seed + at as u64);
            callers.push(scope.spawn(move || ask(address, all, load, seed)));
            callers.push(scope.spawn(move || ask(address, part, load, seed + 10)));
            callers.push(scope.spawn(move || stall(address, all, load, seed + 20)));
            for resync in ["", "&resync=diff"] {
                callers.push(scope.spawn(move || wait_for_news(address, all, load, resync)));
                callers.push(scope.spawn(move || wait_for_news(address, part, load, resync)));
            }
        }
        callers.push(scope.spawn(|| curate(&site, &load, curator)));
        // A failed caller ends the load for all.
        while begun.elapsed() < lasts && !callers.iter().any(thread::ScopedJoinHandle::is_finished)
        {
            load.pause(Duration::from_millis(500));
            watch.sample(begun.elapsed());
        }
        load.is_over.store(true, Ordering::Relaxed);
    });
    let seq = rows_of(&site.db()).1.seq as f64;
    for admin in [&mut admin, &mut replica_admin] {
        wait_until("a server has caught up", SOON, || {
            (seq_of(admin) == seq).then_some(())
        });
    }
    let expected = exported(&mut server.client(&all), "conferences");
    let found = exported(&mut replicated.client(&all), "conferences");
    assert_eq!(found, expected, "the replica");
    wait_until("the copy has caught up", SOON, || {
        (read(&copy, "conferences").ok()??.lines == expected.lines).then_some(())
    });
    site.check();
    place.check(&site);
    replicated.stop();
    replica.site.check();
    for (counter, what) in [
        (&load.imports, "imports under load"),
        (&load.licenses, "changes of a license under load"),
        (&load.answers, "answers under load"),
        (&load.news, "answers to callers who waited"),
        (&load.stalled, "callers who stalled"),
    ] {
        counted(counter.load(Ordering::Relaxed), what);
    }
    let grown = watch.grown();
    assert!(lasts < JUDGED_FROM || grown.is_empty(), "{grown:#?}");
}
