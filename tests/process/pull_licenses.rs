//! Copies of licenses that become narrower and wider: pages bring the records that entered and left, and no export is
//! loaded again. `MEDFEED_CASES` sets the number of histories, `MEDFEED_SEED` the seed.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use medfeed::model::{Dataset, Scope};
use medfeed::pull::catch_up::{Plan, Pull};
use medfeed::pull::{Events, FolderCopy, PullClient, PullError, PullTarget, SqliteCopy};
use medfeed::store::Writer;
use medfeed::store::write::licensing::KeySettings;

use super::client::Client;
use super::pulled::{Content, Pulled, exported, held};
use super::relay::Relay;
use super::site::{
    Random, SOON, STATUSES, Server, Site, cases_and_seed, conferences_of_version, wait_for,
    wait_until,
};
use crate::harness::counted;

const BOTH: &str = "--dataset conferences --dataset journals";

fn by_id(content: &Content) -> BTreeMap<u64, String> {
    let id = |line: &String| {
        serde_json::from_str::<serde_json::Value>(line).unwrap()["id"]
            .as_u64()
            .unwrap()
    };
    content
        .lines
        .iter()
        .map(|line| (id(line), line.clone()))
        .collect()
}

#[test]
fn a_change_of_the_license_loads_only_the_difference() {
    let site = Site::with(1200);
    let pulled = Pulled::new(site);
    let relay = Relay::new(pulled.server.address, 0);
    let pull = |args: &str| pulled.run_at(&relay.url(), &format!("--dataset conferences {args}"));
    assert_eq!(pull("").code, Some(0));
    let scopes = words![
        "--therapy-area Oncology --therapy-area Cardiology"
        "--therapy-area Oncology --therapy-area Cardiology --year 2024 --year 2025 --year 2026"
        "--widen --therapy-area Oncology --therapy-area Cardiology" "--widen --year 2027" "--widen"
        "--country Japan --year 2030" "--widen"
    ];
    for scope in scopes {
        let before = pulled.content("conferences");
        pulled.site.license("all", &format!("{BOTH} {scope}"));
        let mut client = pulled.client();
        let present = wait_until("served", SOON, || {
            let present = exported(&mut client, "conferences");
            (present.token != before.token).then_some(present)
        });
        relay.take_requests();
        relay.take_answered();
        let done = pull("");
        assert_eq!(done.code, Some(0), "{scope}: {done:?}");
        pulled.assert_equal("conferences");
        let (old, new) = (by_id(&before), by_id(&present));
        let differing = old
            .keys()
            .chain(new.keys())
            .filter(|id| old.contains_key(id) != new.contains_key(id))
            .count();
        let expected = "conferences: the license changed; applying the difference\n";
        assert_eq!(done.stderr, expected, "{scope}");
        let told = format!(
            "conferences: {differing} changes applied, {} records\n",
            new.len()
        );
        assert_eq!(done.stdout, told, "{scope}");
        // One refused request, then pages of 500 entries, the first one with the parameter.
        let pages = differing.div_ceil(500).max(1);
        let requests = relay.take_requests();
        assert_eq!(requests.len(), 1 + pages, "{scope}: {requests:?}");
        let count = requests.iter();
        let count = count.filter(|head| head.contains("&resync=diff")).count();
        assert_eq!(count, 1, "{scope}: {requests:?}");
        assert!(
            requests.iter().all(|head| head.contains("/changes?")),
            "{scope}: {requests:?}"
        );
        let sent = usize::try_from(relay.take_answered()).unwrap();
        assert!(
            sent < 2000 * requests.len() + 40 * differing,
            "{scope}: {sent} bytes for {differing} records"
        );
    }
}

/// A copy that this process pulls.
struct Copy {
    key: String,
    name: String,
    path: PathBuf,
    notes: RefCell<Vec<String>>,
}

impl Events for Copy {
    fn note(&self, text: &str) {
        self.notes.borrow_mut().push(text.to_owned());
    }
}

impl Copy {
    fn pull(&self, relay: &Relay, verify: bool) -> Result<(), PullError> {
        let limits = medfeed::pull::body::ReadLimits::default();
        let server =
            PullClient::new(relay.url().parse().unwrap(), &self.key, None, limits).unwrap();
        let mut copy: Box<dyn PullTarget> = if self.path.extension().is_none() {
            Box::new(FolderCopy::open(&self.path, server.server(), false)?)
        } else {
            Box::new(SqliteCopy::open(self.path.clone(), server.server(), false)?)
        };
        let plan = Plan {
            datasets: vec![Dataset::Conferences],
            are_named: true,
            verify,
        };
        Pull {
            server: &server,
            copy: &mut *copy,
            events: self,
        }
        .once(&plan, &mut |_| ())
    }
}

/// A scope as operators choose it: some, none or all of the conferences, or no conferences at all.
fn scope(random: &mut Random) -> Scope {
    let mut some = |names: &[&str]| -> Option<BTreeSet<String>> {
        let chosen = names.iter().filter(|_| random.below(2) == 0);
        let chosen: BTreeSet<String> = chosen.map(|name| (*name).to_owned()).collect();
        (!chosen.is_empty() && random.below(2) == 0).then_some(chosen)
    };
    let therapy_areas = some(&["Oncology", "Cardiology", "Neurology"]);
    let countries = some(&["Japan", "France", "Chile", "Nowhere"]);
    let years = some(&["2024", "2025", "2026", "2027"]);
    let years = years.map(|years| years.iter().map(|year| year.parse().unwrap()).collect());
    let is_without = random.below(12) == 0;
    let datasets = Dataset::ALL
        .into_iter()
        .filter(|dataset| !is_without || *dataset == Dataset::Journals)
        .collect();
    Scope {
        datasets,
        therapy_areas,
        countries,
        years,
    }
}

/// Sets the scopes of licenses, in one commit. Creates missing licenses, with a key.
fn set_licenses(site: &Site, scopes: &[(&str, Scope)]) -> Vec<String> {
    let writer = Writer::open(&site.db(), SOON).unwrap();
    let mut edit = writer.begin().unwrap();
    let mut keys = Vec::new();
    for (name, scope) in scopes {
        let is_new = edit.find_license(name).is_none();
        edit.set_license(name, scope.clone(), Some(1_000_000))
            .unwrap();
        if is_new {
            keys.push(
                edit.create_key(name, KeySettings::default())
                    .unwrap()
                    .0
                    .reveal()
                    .to_owned(),
            );
        }
    }
    edit.commit().unwrap();
    keys
}

#[test]
fn histories_of_licenses_end_with_the_view() {
    const ROUNDS: u64 = 5;
    const COUNT: u64 = 60;
    let (histories, seed) = cases_and_seed(20, 20_261_122);
    let mut random = Random::new(seed);
    let site = Site::with(COUNT);
    let watching = site.open_key();
    let names: Vec<String> = (0..histories)
        .map(|number| format!("history {number}"))
        .collect();
    let all = || Scope {
        datasets: Dataset::ALL.into_iter().collect(),
        ..Scope::nothing()
    };
    let keys = set_licenses(
        &site,
        &names
            .iter()
            .map(|name| (name.as_str(), all()))
            .collect::<Vec<_>>(),
    );
    let folder = |number: usize| {
        if number.is_multiple_of(4) {
            format!("copy{number}")
        } else {
            format!("copy{number}.sqlite")
        }
    };
    let copies: Vec<Copy> = names
        .iter()
        .zip(keys)
        .enumerate()
        .map(|(number, (name, key))| Copy {
            key,
            name: name.clone(),
            path: site.path(&folder(number)),
            notes: RefCell::default(),
        })
        .collect();
    let server = site.serve();
    let relay = Relay::new(server.address, seed);
    let mut watcher = server.client(&watching);
    let mut scopes: Vec<Scope> = copies.iter().map(|_| all()).collect();
    // Every license begins with all records, and its copy is loaded.
    copies
        .iter()
        .for_each(|copy| copy.pull(&relay, false).unwrap());
    assert_eq!(count_of_exports(&relay), copies.len());
    for round in 1..=ROUNDS {
        let changed: Vec<usize> = (0..copies.len()).filter(|_| random.below(2) == 0).collect();
        changed
            .iter()
            .for_each(|at| scopes[*at] = scope(&mut random));
        set_licenses(
            &site,
            &changed
                .iter()
                .map(|at| (copies[*at].name.as_str(), scopes[*at].clone()))
                .collect::<Vec<_>>(),
        );
        let count = 1 + random.next() % COUNT;
        let mut rows = conferences_of_version(count, round);
        rows.push_str(&format!(
            "{{\"id\":{},\"deleted\":true}}\n",
            count + 1 + random.next() % COUNT
        ));
        rows.push_str(&format!(
            "{{\"id\":9999,\"name\":\"Round {round}\",{STATUSES}}}\n"
        ));
        site.import("conferences.jsonl", rows);
        let mark = format!("Round {round}\"");
        wait_for("served", || {
            exported(&mut watcher, "conferences")
                .lines
                .last()
                .unwrap()
                .contains(&mark)
        });
        let mut exports = 0;
        for (copy, scope) in copies.iter().zip(&scopes) {
            // A copy that skips rounds has more to catch up.
            if round < ROUNDS && random.below(3) == 0 {
                continue;
            }
            let what = format!("seed {seed}, round {round}, {}", copy.name);
            // A copy without records requests the export. Any other one requests only the difference.
            exports += usize::from(held(&copy.path, "conferences").is_none());
            check(&what, copy, scope, &relay, &server);
        }
        assert_eq!(
            count_of_exports(&relay),
            exports,
            "seed {seed}, round {round}: an export was loaded"
        );
    }
    let is_of_loss = |note: &String| note.contains("does not have this dataset any more; its ");
    let (losses, notes): (BTreeSet<String>, BTreeSet<String>) = copies
        .iter()
        .flat_map(|copy| copy.notes.take())
        .partition(is_of_loss);
    assert!(!losses.is_empty(), "no license lost the dataset");
    assert_eq!(
        notes,
        BTreeSet::from(["conferences: the license changed; applying the difference".to_owned()])
    );
    // A comparison finds no fault.
    for (copy, scope) in copies
        .iter()
        .zip(&scopes)
        .take(20)
        .filter(|(_, scope)| scope.datasets.len() == 2)
    {
        let before = held(&copy.path, "conferences");
        copy.pull(&relay, true)
            .unwrap_or_else(|error| panic!("seed {seed}, {}, {scope:?}: {error}", copy.name));
        let found = (held(&copy.path, "conferences"), copy.notes.take());
        assert_eq!(found, (before, Vec::new()), "seed {seed}, {}", copy.name);
    }
    server.stop();
    counted(histories, "histories of licenses");
}

fn count_of_exports(relay: &Relay) -> usize {
    relay
        .take_requests()
        .iter()
        .filter(|head| head.contains("/v1/exports/"))
        .count()
}

fn check(what: &str, copy: &Copy, scope: &Scope, relay: &Relay, server: &Server) {
    let before = held(&copy.path, "conferences");
    let pulled = copy.pull(relay, false);
    if scope.datasets.len() == 1 {
        // Every record was removed, and that is reported once.
        match before {
            Some(_) => assert!(
                matches!(pulled, Err(PullError::LicenseLost(_))),
                "{what}: {pulled:?}"
            ),
            None => assert!(
                matches!(pulled, Err(PullError::NotLicensed(_))),
                "{what}: {pulled:?}"
            ),
        }
        assert_eq!(held(&copy.path, "conferences"), None, "{what}");
        return;
    }
    assert!(pulled.is_ok(), "{what}: {pulled:?}");
    let expected = exported(
        &mut Client::new(server.address, Some(&copy.key)),
        "conferences",
    );
    let found = held(&copy.path, "conferences").unwrap();
    assert!(
        found == expected,
        "{what}: {scope:?}: {found:?}\n{expected:?}"
    );
}
