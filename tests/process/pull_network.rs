//! `medfeed pull` over a network that adds one fault to one exchange: the copy is the view at its token, and the next
//! pull brings it to the present one. `MEDFEED_CASES` sets the number of faults (else one of each kind), `MEDFEED_SEED`
//! the choice.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;

use super::answer_faults::Fault;
use super::fault_relay::{FaultRelay, Recorded, run_cases};
use super::origin::copy_into;
use super::pulled::{Content, Pulled, exported, held};
use super::site::{Done, Site, conferences_of_version, wait_for};

const DATASETS: [&str; 2] = ["conferences", "journals"];
/// An SQLite file, and a folder.
const COPIES: [&str; 2] = ["copy.sqlite", "copy/"];
/// More than a page of the feed.
const COUNT: u64 = 510;

/// The number of chosen cases.
const QUICK: usize = 24;
/// Cases that always run: the scenario, the number of the exchange, and the fault.
const ALWAYS: [(&str, usize, Fault); 2] = [
    ("the feed", 0, Fault::GzipUpperCase),
    ("a resumed load", 1, Fault::WholeForRange),
];

/// A pull that has something to do.
struct Scenario {
    name: &'static str,
    copy: &'static str,
    pulled: usize,
    key: String,
    /// The folder with the initial copies; `None` for new ones.
    start: Option<PathBuf>,
    args: &'static str,
    /// A fault that belongs to the scenario.
    first: Option<Fault>,
    relay: FaultRelay,
}

/// A fault of an exchange of a pull.
#[derive(Clone, Copy)]
struct Case {
    scenario: usize,
    at: usize,
    fault: Fault,
}

struct Network {
    sites: Vec<Pulled>,
    scenarios: Vec<Scenario>,
    /// The views of all services, by dataset and token.
    views: BTreeMap<(&'static str, String), Content>,
}

fn journals(version: u64) -> String {
    (1..=7)
        .map(|id| format!("{{\"id\":{id},\"name\":\"Journal {id}, volume {version}\"}}\n"))
        .collect()
}

/// A page of the feed, with the bytes of its entries.
#[derive(Deserialize)]
struct Page<'a> {
    #[serde(borrow)]
    data: Vec<&'a RawValue>,
    has_more: bool,
    next_sync_token: String,
}

fn id_of(line: &str) -> u64 {
    serde_json::from_str::<Value>(line).unwrap()["id"]
        .as_u64()
        .unwrap()
}

/// Conferences. Each version removes one of them.
fn conferences(version: u64) -> String {
    let gone = 10 * version;
    let rows = conferences_of_version(COUNT, version);
    let kept = rows
        .lines()
        .filter(|line| !line.starts_with(&format!("{{\"id\":{gone},")));
    kept.fold(
        format!("{{\"id\":{gone},\"deleted\":true}}\n"),
        |rows, line| rows + line + "\n",
    )
}

/// A service of version 0.
fn service() -> (Pulled, String) {
    let site = Site::with(COUNT);
    site.import("journals.jsonl", journals(0));
    site.license(
        "part",
        "--dataset conferences --dataset journals --year 2024 --year 2025 --year 2026",
    );
    let (_, key) = site.key("part", &[]);
    (Pulled::new(site), key)
}

impl Network {
    fn new() -> Network {
        let (changing, part_key) = service();
        let (restored, _) = service();
        let backup = restored.site.backup("backup.redb");
        let key = [changing.key.clone(), part_key, restored.key.clone()];
        let mut network = Network {
            scenarios: Vec::new(),
            views: BTreeMap::new(),
            sites: Vec::new(),
        };
        for copy in COPIES {
            let cases = cases![
                "a first load", &changing, &key[0], None, "--verify", None;
                "a resumed load", &changing, &key[0], None, "", Some(Fault::CutMiddle);
                "the feed", &changing, &key[0], Some("all"), "", None;
                "a difference", &changing, &key[1], Some("part"), "--verify", None;
                "a restored service", &restored, &key[2], Some("restored"), "", None;
            ];
            network
                .scenarios
                .extend(
                    cases.map(|(name, service, key, start, args, first)| Scenario {
                        name,
                        copy,
                        pulled: usize::from(start == Some("restored")),
                        key: key.clone(),
                        start: start
                            .map(|start| service.site.path(start).join(copy.trim_matches('/'))),
                        args,
                        first,
                        relay: FaultRelay::new(service.server.address),
                    }),
                );
        }
        network.sites = vec![changing, restored];
        // The relays remember answers of versions 0 and 1. The initial copies have version 1.
        for version in 1..=2 {
            network.take_views();
            network.prepare();
            for site in &network.sites {
                site.site.import("conferences.jsonl", conferences(version));
                site.site.import("journals.jsonl", journals(version));
            }
            network.await_news("journals", |_| true);
        }
        // A new token, none of these, shows that the next change is served.
        network.take_views();
        let [changing, restored] = &network.sites[..] else {
            unreachable!()
        };
        changing.site.license(
            "part",
            "--dataset conferences --dataset journals --year 2026 --year 2027",
        );
        restored
            .site
            .json(["restore".as_ref(), backup.as_os_str(), "--yes".as_ref()]);
        network.await_news("conferences", |name| {
            ["a difference", "a restored service"].contains(&name)
        });
        network.take_views();
        for scenario in &network.scenarios {
            network.views.extend(network.walk(scenario));
        }
        network
    }

    /// The views at the tokens of the feed's pages, from the initial copy on.
    fn walk(&self, scenario: &Scenario) -> Vec<((&'static str, String), Content)> {
        let mut views = Vec::new();
        let Some(start) = &scenario.start else {
            return views;
        };
        let mut client = self.sites[scenario.pulled].server.client(&scenario.key);
        for dataset in DATASETS {
            let Content {
                mut token, lines, ..
            } = held(&start.join(scenario.copy), dataset).unwrap();
            let mut records: BTreeMap<u64, String> =
                lines.into_iter().map(|line| (id_of(&line), line)).collect();
            let mut more = "";
            loop {
                let answer = client.get(&format!("/v1/{dataset}/changes?since={token}{more}"));
                if answer.status == 410 && more.is_empty() {
                    more = "&resync=diff";
                    continue;
                }
                // After a restore there are no pages.
                if answer.status == 410 {
                    break;
                }
                more = "";
                let page: Page<'_> = serde_json::from_slice(&answer.body).unwrap();
                for entry in page.data {
                    let (id, line) = (id_of(entry.get()), entry.get().to_owned());
                    if line.contains("\"deleted\":true") {
                        records.remove(&id)
                    } else {
                        records.insert(id, line)
                    };
                }
                token = page.next_sync_token;
                let lines: Vec<String> = records.values().cloned().collect();
                let view = Content {
                    token: token.clone(),
                    records: i64::try_from(lines.len()).unwrap(),
                    lines,
                };
                views.push(((dataset, token.clone()), view));
                if !page.has_more {
                    break;
                }
            }
        }
        views
    }

    fn view(&self, scenario: &Scenario, dataset: &str) -> Content {
        exported(
            &mut self.sites[scenario.pulled].server.client(&scenario.key),
            dataset,
        )
    }

    /// Waits until the services of some scenarios show a new view.
    fn await_news(&self, dataset: &'static str, is_awaited: impl Fn(&str) -> bool) {
        for scenario in self
            .scenarios
            .iter()
            .filter(|scenario| is_awaited(scenario.name))
        {
            let is_new = || {
                !self
                    .views
                    .contains_key(&(dataset, self.view(scenario, dataset).token))
            };
            wait_for("the service shows the commit", is_new);
        }
    }

    fn take_views(&mut self) {
        let each = self.scenarios.iter();
        let each = each.flat_map(|scenario| DATASETS.map(|dataset| (scenario, dataset)));
        let views = each
            .map(|(scenario, dataset)| (dataset, self.view(scenario, dataset)))
            .collect::<Vec<_>>();
        self.views.extend(
            views
                .into_iter()
                .map(|(dataset, view)| ((dataset, view.token.clone()), view)),
        );
    }

    /// Pulls each scenario's copies without faults.
    fn prepare(&self) {
        for scenario in &self.scenarios {
            scenario.relay.begin(&[]);
            let temporary = tempfile::tempdir().unwrap();
            let folder = scenario.start.as_deref().unwrap_or(temporary.path());
            fs::create_dir_all(folder).unwrap();
            for _ in 0..=usize::from(scenario.start.is_some()) {
                let done = self.pull(scenario, folder, "--verify");
                assert_eq!(done.code, Some(0), "{}: {done:?}", scenario.name);
            }
            scenario.relay.keep_answers();
        }
    }

    /// Pulls a scenario's copy into a folder.
    fn pull(&self, scenario: &Scenario, folder: &Path, args: &str) -> Done {
        let (url, copy) = (scenario.relay.url(), folder.join(scenario.copy));
        let site = &self.sites[scenario.pulled].site;
        let mut command = site.command([
            "pull".as_ref(),
            url.as_ref(),
            "--to".as_ref(),
            copy.as_os_str(),
        ]);
        command
            .args(args.split_whitespace())
            .env("MEDFEED_KEY", &scenario.key);
        Done::of(&mut command)
    }

    /// Each fault that applies to an exchange of a scenario.
    fn cases(&self) -> Vec<Case> {
        let mut cases = Vec::new();
        for (number, scenario) in self.scenarios.iter().enumerate() {
            let folder = scenario.begin();
            scenario.relay.begin(&scenario.plan(None));
            let done = self.pull(scenario, folder.path(), scenario.args);
            assert_eq!(done.code, Some(0), "{}: {done:?}", scenario.name);
            // No member of an answer names the request that it answers.
            let found = Recorded::cases(&scenario.relay.exchanges()).into_iter();
            let found = found.filter(|(_, fault)| *fault != Fault::Crossed);
            let found = found.filter(|(at, _)| *at >= scenario.plan(None).len());
            cases.extend(found.map(|(at, fault)| Case {
                scenario: number,
                at,
                fault,
            }));
        }
        cases
    }

    fn run(&self, scenario: &Scenario, Case { at, fault, .. }: Case) {
        let relay = &scenario.relay;
        let folder = scenario.begin();
        let copy = folder.path().join(scenario.copy);
        let before = DATASETS.map(|dataset| held(&copy, dataset));
        relay.begin(&scenario.plan(Some((at, fault))));
        let done = self.pull(scenario, folder.path(), scenario.args);
        let what = format!(
            "{}, {}, {fault:?} at {at} {:?}: {done:?}",
            scenario.name,
            scenario.copy,
            relay.met()
        );
        assert_eq!(
            relay.met().len(),
            scenario.plan(None).len() + 1,
            "the fault was not met: {what}"
        );
        assert!(!done.stderr.contains("panicked"), "{what}");
        // The retries of one pull outlast one fault, unless the fault forbids retries, or redirects to another host.
        let refuses = matches!(fault, Fault::Page(403) | Fault::PortalRedirect);
        assert!(
            done.code == Some(0) || refuses && done.code == Some(3),
            "{what}"
        );
        let is_retried = done.stderr.contains("trying again");
        assert!(
            !is_retried || !fault.is_allowed(),
            "HTTP allows this: {what}"
        );
        for (dataset, before) in DATASETS.into_iter().zip(before) {
            let held = held(&copy, dataset);
            let expected = held
                .as_ref()
                .and_then(|held| self.views.get(&(dataset, held.token.clone())));
            let is_view = held.is_none() || held.as_ref() == expected;
            assert!(
                is_view || held == before,
                "{dataset} is not the view at its token: {what}"
            );
        }
        relay.begin(&[]);
        let done = self.pull(scenario, folder.path(), "--verify");
        let what = format!("then {done:?} after {what}");
        assert_eq!(done.code, Some(0), "{what}");
        let count = done.count("; equal to the service's\n");
        assert_eq!(count, DATASETS.len(), "{what}");
        for dataset in DATASETS {
            assert!(
                held(&copy, dataset) == Some(self.view(scenario, dataset)),
                "{dataset} differs: {what}"
            );
        }
    }
}

impl Scenario {
    /// A folder with the initial copies.
    fn begin(&self) -> tempfile::TempDir {
        let folder = tempfile::tempdir().unwrap();
        if let Some(start) = &self.start {
            copy_into(start, folder.path());
        }
        folder
    }

    fn plan(&self, fault: Option<(usize, Fault)>) -> Vec<(usize, Fault)> {
        self.first
            .map(|first| (0, first))
            .into_iter()
            .chain(fault)
            .collect()
    }
}

#[test]
fn a_fault_of_any_exchange_leaves_the_copy_at_its_token() {
    let network = Network::new();
    let mut others = network.cases();
    let is_always = |case: &mut Case| {
        ALWAYS.contains(&(network.scenarios[case.scenario].name, case.at, case.fault))
    };
    let always: Vec<_> = others.extract_if(.., is_always).collect();
    assert_eq!(always.len(), ALWAYS.len() * COPIES.len());
    let (lanes, lane_of) = (&network.scenarios, |_: usize, case: &Case| case.scenario);
    run_cases(
        (always, others),
        |case| case.fault,
        QUICK,
        lanes,
        lane_of,
        |scenario, case| network.run(scenario, case),
    );
}
