//! Pulls that are killed at random moments, over connections that are cut, delayed and lost. Their servers are killed,
//! restarted and restored, and their license changes. At every moment the copy is the license's view at its own token.
//! `MEDFEED_CASES` sets the number of rounds, `MEDFEED_SEED` the first one's seed.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use serde_json::Value;

use super::client::Client;
use super::postgres_server::Cluster;
use super::pull::{JOURNALS, linked_conference};
use super::pulled::{Content, Pulled, content_of, exported, held, read};
use super::relay::Relay;
use super::site::{
    Process, Random, SOON, STATUSES, Site, cases_and_seed, conferences_of_version, wait_for,
    wait_until,
};
use crate::harness::counted;
use crate::properties::feeds::apply;

const EXPORT: &str = "/v1/exports/conferences";

/// The copy's records after all later entries of the feed. `None` if the copy's token has ended (410), or the server
/// does not answer.
fn brought_forward(client: &mut Client, content: &Content) -> Option<Content> {
    let id_of = |line: &str| {
        serde_json::from_str::<Value>(line).unwrap()["id"]
            .as_u64()
            .unwrap()
    };
    let mut records: BTreeMap<u64, Value> = content
        .lines
        .iter()
        .map(|line| (id_of(line), serde_json::from_str(line).unwrap()))
        .collect();
    let mut token = content.token.clone();
    loop {
        let answer = client
            .try_get(&format!("/v1/conferences/changes?since={token}"))
            .ok()?;
        if answer.status == 410 {
            return None;
        }
        let page = answer.json();
        apply(&mut records, page["data"].as_array().unwrap());
        token = page["next_sync_token"].as_str().unwrap().to_owned();
        if page["has_more"] == false {
            let lines = records.values().map(Value::to_string).collect();
            return Some(Content {
                token,
                records: i64::try_from(records.len()).unwrap(),
                lines,
            });
        }
    }
}

/// The records as JSON values: the order of keys does not count.
fn values(lines: &[String]) -> Vec<Value> {
    lines
        .iter()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect()
}

/// Reads the copy again and again, as another program would, until `stop` is set. Returns its states by token.
fn observe(copy: &Path, key: &str, relay: &Relay, stop: &AtomicBool) -> HashMap<String, Content> {
    let mut seen: HashMap<String, Content> = HashMap::new();
    let mut is_last = false;
    while !is_last {
        is_last = stop.load(Ordering::Relaxed);
        std::thread::sleep(Duration::from_millis(3));
        let Some(found) = copy
            .exists()
            .then(|| read(copy, "conferences").ok().flatten())
            .flatten()
        else {
            continue;
        };
        let expected = i64::try_from(found.lines.len()).unwrap();
        assert_eq!(found.records, expected, "the count in the copy");
        if let Some(before) = seen.get(&found.token) {
            assert!(
                *before == found,
                "two contents with one token: {}",
                found.token
            );
            continue;
        }
        // The feed leads from its token to the present: no record is missing, and none is left over.
        let mut client = Client::new(relay.server(), Some(key));
        if let Some(forward) = brought_forward(&mut client, &found)
            && let Ok(present) = client.try_get(EXPORT)
        {
            let present = content_of(&present);
            if present.token == forward.token {
                assert!(
                    values(&present.lines) == values(&forward.lines),
                    "a gap after {}",
                    found.token
                );
            }
        }
        seen.insert(found.token.clone(), found);
    }
    seen
}

/// A change of the service while it is pulled from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Disturbance {
    Import,
    Narrow,
    Widen,
    Kill,
    Restart,
    Backup,
    Restore,
}

impl Disturbance {
    fn any(random: &mut Random) -> Disturbance {
        match random.below(18) {
            0 | 1 => Disturbance::Narrow,
            2 | 3 => Disturbance::Widen,
            4 | 5 => Disturbance::Kill,
            6 => Disturbance::Restart,
            7 => Disturbance::Backup,
            8 | 9 => Disturbance::Restore,
            _ => Disturbance::Import,
        }
    }
}

const COUNT: u64 = 1300;

/// A service and its disturbances.
struct Service<'a> {
    pulled: Pulled,
    relay: &'a Relay,
    random: Random,
    backup: PathBuf,
    /// The service's states, by token.
    states: HashMap<String, Content>,
    disturbances: BTreeMap<Disturbance, u32>,
}

impl Service<'_> {
    fn apply(&mut self, disturbance: Disturbance, round: u64) {
        *self.disturbances.entry(disturbance).or_default() += 1;
        match disturbance {
            Disturbance::Import => return self.import(round),
            Disturbance::Narrow => drop(self.pulled.site.license(
                "all",
                "--dataset conferences --dataset journals --year 2026",
            )),
            Disturbance::Widen => drop(
                self.pulled
                    .site
                    .license("all", "--dataset conferences --dataset journals --widen"),
            ),
            Disturbance::Kill => {
                self.pulled.server.process.kill();
                self.serve();
            }
            Disturbance::Restart => {
                let next = self.pulled.site.serve();
                std::mem::replace(&mut self.pulled.server, next).stop();
                self.relay.lead_to(self.pulled.server.address);
            }
            Disturbance::Backup => {
                let _ = std::fs::remove_file(&self.backup);
                self.pulled
                    .site
                    .json(["backup".as_ref(), self.backup.as_os_str()]);
            }
            Disturbance::Restore => drop(self.pulled.site.json([
                "restore".as_ref(),
                self.backup.as_os_str(),
                "--yes".as_ref(),
            ])),
        }
        self.take_state();
    }

    fn serve(&mut self) {
        self.pulled.server = self.pulled.site.serve();
        self.relay.lead_to(self.pulled.server.address);
    }

    /// Changes sometimes more than two pages of records, often a few, and removes some.
    fn import(&mut self, round: u64) {
        let random = &mut self.random;
        let count = if random.below(4) == 0 {
            COUNT
        } else {
            1 + random.next() % 40
        };
        let mut rows = conferences_of_version(count, round + 1);
        // No id occurs twice in a file.
        let gone: BTreeSet<u64> = (0..random.below(4))
            .map(|_| count + 1 + random.next() % COUNT)
            .collect();
        for id in gone {
            rows.push_str(&format!("{{\"id\":{id},\"deleted\":true}}\n"));
        }
        let mark = format!("Round {round}\"");
        rows.push_str(&format!(
            "{{\"id\":9999,\"name\":\"{mark},\"year\":2026,{STATUSES}}}\n"
        ));
        self.pulled.site.import("conferences.jsonl", rows);
        wait_for("the server shows the commit", || {
            self.take_state()
                .lines
                .last()
                .is_some_and(|line| line.contains(&mark))
        });
    }

    fn take_state(&mut self) -> &Content {
        let state = exported(&mut self.pulled.client(), "conferences");
        self.states.entry(state.token.clone()).or_insert(state)
    }

    /// Without disturbances, the copy becomes equal to the service, and `--verify` confirms it.
    fn settle(&mut self, what: &str) {
        self.relay.set_rough(false);
        let done = self
            .pulled
            .run_at(&self.relay.url(), "--dataset conferences --verify");
        assert_eq!(done.code, Some(0), "{what}: {done:?}");
        assert!(
            done.stdout.ends_with("; equal to the service's\n"),
            "{what}: a comparison found a fault: {done:?}"
        );
        self.pulled.assert_equal("conferences");
        self.relay.set_rough(true);
    }
}

#[test]
fn a_killed_pull_leaves_the_view_at_its_token() {
    let (rounds, seed) = cases_and_seed(10, 20_261_122);
    let pulled = Pulled::with(COUNT);
    let backup = pulled.site.backup("backup.redb");
    let relay = Relay::new(pulled.server.address, seed);
    relay.set_rough(true);
    let (copy, key) = (pulled.copy.clone(), pulled.key.clone());
    let (states, disturbances) = (HashMap::new(), BTreeMap::new());
    let mut service = Service {
        pulled,
        relay: &relay,
        random: Random::new(seed),
        backup,
        states,
        disturbances,
    };
    service.take_state();
    let stop = AtomicBool::new(false);
    let seen = std::thread::scope(|scope| {
        let observer = scope.spawn(|| observe(&copy, &key, &relay, &stop));
        // The observer stops, even if a check below fails.
        let _stopping = OnDrop(|| stop.store(true, Ordering::Relaxed));
        for round in 0..rounds {
            let what = format!("seed {seed}, round {round}");
            let mut pull = Process::spawn(
                service
                    .pulled
                    .command(&relay.url(), "--dataset conferences --follow --every 10ms")
                    .stderr(std::process::Stdio::null()),
            );
            let disturbance = Disturbance::any(&mut service.random);
            service.apply(disturbance, round);
            let ended = pull.ended_within(service.random.part_of(Duration::from_millis(600)));
            assert!(
                ended.is_none(),
                "{what}: after {disturbance:?} the pull ended by itself: {ended:?}"
            );
            pull.kill();
            assert!(
                !observer.is_finished(),
                "{what}: the observer saw a wrong state"
            );
            // After an import, the server has already shown the newest state.
            if disturbance == Disturbance::Import && service.random.below(4) == 0 {
                service.settle(&what);
            }
        }
        service.import(rounds);
        service.settle(&format!("seed {seed}, at the end"));
        stop.store(true, Ordering::Relaxed);
        observer
            .join()
            .unwrap_or_else(|_| panic!("seed {seed}: the observer saw a wrong state"))
    });
    let known: Vec<_> = seen
        .iter()
        .filter_map(|(token, found)| Some((found, service.states.get(token)?)))
        .collect();
    for (found, expected) in &known {
        assert!(
            found == expected,
            "seed {seed}: the copy is not the view at its token"
        );
    }
    let requests = relay.take_requests();
    let asked = |text: &str| requests.iter().filter(|head| head.contains(text)).count();
    println!(
        "{rounds} pulls killed; {:?}; {} states seen, {} of them whole states of the service; {} exports asked for, {} of them \
         to go on; {} differences",
        service.disturbances,
        seen.len(),
        known.len(),
        asked("/v1/exports/"),
        asked("bytes="),
        asked("resync=diff")
    );
    assert!(
        !known.is_empty(),
        "the copy was never seen at a state of the service"
    );
    counted(rounds, "kills");
}

/// Calls a function when it goes out of scope.
struct OnDrop<F: Fn()>(F);

impl<F: Fn()> Drop for OnDrop<F> {
    fn drop(&mut self) {
        (self.0)();
    }
}

#[test]
fn a_killed_pull_into_postgresql_leaves_the_view_at_its_token() {
    let Some(cluster) = Cluster::shared() else {
        return;
    };
    kill_pulls_to(|_| cluster.url(&cluster.database()).into());
}

#[test]
fn a_killed_pull_leaves_whole_files() {
    kill_pulls_to(|site| site.path("copy/"));
}

/// Kills pulls at random moments, while records change, and the license too. In a folder, a pull may be killed between
/// two renames. Then each of its files is of one state, but not all of the same one.
fn kill_pulls_to(place: impl Fn(&Site) -> PathBuf) {
    let (rounds, seed) = cases_and_seed(8, 20_261_122);
    // One page holds all changes, so each state of the copy is a state of the service.
    const COUNT: u64 = 400;
    let site = Site::with(COUNT);
    site.import("journals.jsonl", JOURNALS);
    let mut pulled = Pulled::new(site);
    pulled.copy = place(&pulled.site);
    let is_folder = pulled.copy.starts_with(pulled.site.folder());
    let mut client = pulled.client();
    let first = exported(&mut client, "conferences");
    let mut states = HashMap::from([(first.token.clone(), first)]);
    let mut random = Random::new(seed);
    let mut seen = BTreeSet::new();
    let mut commits = 0;
    for round in 0..rounds {
        let mut command =
            pulled.command(&pulled.url(), "--dataset conferences --follow --every 10ms");
        let mut pull = Process::spawn(
            command
                .stderr(std::process::Stdio::null())
                .stdout(std::process::Stdio::null()),
        );
        let state = match random.below(6) {
            0 if !is_folder => {
                pulled.site.license(
                    "all",
                    "--dataset conferences --dataset journals --year 2026",
                );
                exported(&mut client, "conferences")
            }
            1 if !is_folder => {
                pulled
                    .site
                    .license("all", "--dataset conferences --dataset journals --widen");
                exported(&mut client, "conferences")
            }
            _ => {
                let count = 1 + random.next() % COUNT;
                let gone = 1 + random.next() % COUNT;
                let rows = conferences_of_version(count, round + 1)
                    + &linked_conference(9000 + round % 5, 10);
                let rows = rows + &format!("{{\"id\":{},\"deleted\":true}}\n", gone + count);
                let rows = rows
                    + &format!(
                        "{{\"id\":9999,\"name\":\"Round {round}\",\"year\":2026,{STATUSES}}}\n"
                    );
                pulled.site.import("conferences.jsonl", rows);
                commits += 1;
                wait_until("the server shows the commit", SOON, || {
                    Some(exported(&mut client, "conferences"))
                        .filter(|state| !states.contains_key(&state.token))
                })
            }
        };
        states.insert(state.token.clone(), state);
        // However slow the machine is, some pulls are killed after they have applied a commit.
        if commits == 2 {
            commits = 0;
            let mark = format!("\"Round {round}\"");
            wait_until("the copy has the commit", SOON, || {
                held(&pulled.copy, "conferences")
                    .filter(|found| found.lines.iter().any(|line| line.contains(&mark)))
            });
        }
        let ended = pull.ended_within(random.part_of(Duration::from_millis(500)));
        assert!(
            ended.is_none(),
            "seed {seed}, round {round}: the pull ended by itself: {ended:?}"
        );
        pull.kill();
        let Some(found) = held(&pulled.copy, "conferences") else {
            continue;
        };
        if is_folder {
            let whole = states.values().any(|state| state.lines == found.lines);
            assert!(
                whole,
                "seed {seed}, round {round}: the lines are of no state: {}",
                found.lines.len()
            );
            let table = std::fs::read_to_string(pulled.copy.join("conferences.csv")).unwrap();
            let whole = states
                .values()
                .any(|state| table.lines().count() == state.lines.len() + 1);
            assert!(
                whole && table.ends_with("\r\n"),
                "seed {seed}, round {round}: the table is cut off"
            );
            seen.insert(found.token);
            continue;
        }
        assert_eq!(
            found.records,
            i64::try_from(found.lines.len()).unwrap(),
            "seed {seed}, round {round}"
        );
        // Exports show a change of the license a moment after it is made, so its state may be unknown here.
        if let Some(expected) = states.get(&found.token) {
            assert!(
                found == *expected,
                "seed {seed}, round {round}: the copy is not the view at its token"
            );
            seen.insert(found.token);
        }
    }
    assert!(
        !seen.is_empty(),
        "the copy was never seen at a state of the service"
    );
    let done = pulled.pull("--dataset conferences --verify");
    assert!(
        done.stdout.contains("equal to the service's") && !done.stdout.contains("repaired"),
        "seed {seed}: {done:?}"
    );
    pulled.assert_equal("conferences");
}
