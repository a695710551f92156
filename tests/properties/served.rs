//! The program itself beside the model: a server that follows the file, callers who wait for news over HTTP, and copies by
//! `medfeed pull`.

use std::cell::Cell;
use std::collections::BTreeMap;
use std::time::Instant;

use medfeed::model::Dataset;
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::Index;
use serde_json::Value;

use super::edits::{Change, first_imports, imports};
use super::feeds::{apply, clocks};
use super::holds;
use super::system::System;
use super::world::{Scope, scopes};
use crate::harness::counted;
use crate::process::client::Client;
use crate::process::pulled::read;
use crate::process::site::{SOON, Site, wait_until};

#[derive(Clone, Debug)]
enum Step {
    Import(Vec<Change>),
    Scope(Index, Scope),
    Clock(i64),
    BackUp,
    Restore,
    /// A caller polls until it has what the model shows.
    Follow(Index),
    Pull(Index),
}

fn steps() -> impl Strategy<Value = Step> {
    prop_oneof![
        6 => imports().prop_map(Step::Import),
        2 => (any::<Index>(), scopes()).prop_map(|(license, scope)| Step::Scope(license, scope)),
        2 => clocks().prop_map(Step::Clock),
        1 => Just(Step::BackUp),
        1 => Just(Step::Restore),
        8 => any::<Index>().prop_map(Step::Follow),
        2 => any::<Index>().prop_map(Step::Pull),
    ]
}

type Copy = BTreeMap<u64, Value>;

/// A caller with a copy, over one connection.
struct Caller {
    license: usize,
    dataset: Dataset,
    /// Whether it bridges changes of its license by `resync=diff`.
    by_difference: bool,
    client: Client,
    copy: Copy,
    token: Option<String>,
}

fn view(system: &System, license: usize, dataset: Dataset) -> Copy {
    let ids = system.world.visible(license, dataset);
    ids.into_iter().map(|id| (id, system.world.json(dataset, id))).collect()
}

impl Caller {
    fn load(&mut self) {
        let export = self.client.get(&format!("/v1/exports/{}", self.dataset));
        self.copy.clear();
        self.token = None;
        if export.status != 403 {
            apply(&mut self.copy, &export.lines());
            self.token = export.header("x-sync-token").map(str::to_owned);
        }
    }

    /// Takes one page, or what an answer other than a page asks for.
    fn poll(&mut self, parameter: &str) {
        let Some(token) = &self.token else { return self.load() };
        let resync = if self.by_difference { "&resync=diff" } else { "" };
        let target = format!("/v1/{}/changes?since={token}&{parameter}{resync}", self.dataset);
        let answer = self.client.get(&target);
        match answer.status {
            200 => {
                let page = answer.json();
                apply(&mut self.copy, page["data"].as_array().expect("a page"));
                self.token = page["next_sync_token"].as_str().map(str::to_owned);
            }
            403 => {
                self.token = None;
                self.copy.clear();
            }
            410 => self.load(),
            other => panic!("{target}: {other} {}", String::from_utf8_lossy(&answer.body)),
        }
    }

    /// Polls until the copy is what the model shows.
    fn follow(&mut self, system: &System) {
        let is_licensed = system.world.licenses[self.license].scope.datasets.contains(&self.dataset);
        let expected = view(system, self.license, self.dataset);
        let begun = Instant::now();
        while self.copy != expected || self.token.is_some() != is_licensed {
            assert!(begun.elapsed() < SOON, "license {}: {:?}\nis not\n{expected:?}", self.license, self.copy);
            self.poll("wait=1");
        }
    }
}

impl Caller {
    /// Nothing more comes: the token is the one that the present moment has.
    fn reach_the_present(&mut self) {
        wait_until("the present moment", SOON, || {
            let token = self.token.clone();
            self.poll("limit=2");
            let present = self.client.get(&format!("/v1/{}/changes", self.dataset));
            let is_there = match &token {
                Some(token) => {
                    present.json()["next_sync_token"] == token.as_str() && self.token.as_ref() == Some(token)
                }
                None => present.status == 403,
            };
            is_there.then_some(())
        });
    }
}

/// A copy by the program is what the model shows, once the server shows it.
fn pull(system: &System, site: &Site, url: &str, license: usize) {
    let copy = site.path(&format!("copy{license}.sqlite"));
    let shown = system.world.licenses[license].scope.datasets.clone();
    let begun = Instant::now();
    loop {
        let mut command = site.command(["pull", url, "--to"]);
        command.arg(&copy).env("MEDFEED_KEY", system.key(license));
        let done = command.output().expect("the program starts");
        let held = |dataset: Dataset| read(&copy, dataset.as_str()).ok().flatten();
        let found = |dataset: Dataset| -> Copy {
            let lines = held(dataset).map(|content| content.lines).unwrap_or_default();
            let records = lines.iter().map(|line| serde_json::from_str::<Value>(line).expect("JSON"));
            records.map(|record| (record["id"].as_u64().expect("an id"), record)).collect()
        };
        let is_equal = |dataset: &Dataset| found(*dataset) == view(system, license, *dataset);
        // A copy keeps the records of a dataset that its license lost, and the program says so.
        let lost = Dataset::ALL.into_iter().any(|dataset| !shown.contains(&dataset) && held(dataset).is_some());
        let is_told = String::from_utf8_lossy(&done.stderr).contains("does not have the dataset");
        let is_as_expected =
            if lost || shown.is_empty() { is_told && done.status.code() == Some(3) } else { done.status.success() };
        if is_as_expected && shown.iter().all(is_equal) {
            return;
        }
        assert!(begun.elapsed() < SOON, "license {license}: {done:?}");
    }
}

#[test]
fn a_server_and_its_copies_come_to_show_the_model() {
    let done = Cell::new(0);
    let strategy = (first_imports(), vec(scopes(), 1..4), vec(steps(), 4..24));
    holds(6, strategy, |(first, scopes, steps)| {
        let (mut system, site) = (System::with(&first, &scopes), Site::new());
        let mut command = site.serve_command("");
        command.env("MEDFEED_DB", system.path());
        let server = site.start(command);
        let url = format!("http://{}", server.address);
        let mut callers: Vec<Caller> = (0..scopes.len())
            .flat_map(|license| Dataset::ALL.map(|dataset| (license, dataset)))
            .flat_map(|(license, dataset)| [false, true].map(|by_difference| (license, dataset, by_difference)))
            .map(|(license, dataset, by_difference)| {
                let client = server.client(system.key(license));
                Caller { license, dataset, by_difference, client, copy: Copy::new(), token: None }
            })
            .collect();
        for step in steps {
            done.set(done.get() + 1);
            match step {
                Step::Import(changes) => system.import(&changes),
                Step::Scope(license, scope) => system.set_license(license.index(scopes.len()), &scope),
                Step::Clock(seconds) => system.pass_s(seconds),
                Step::BackUp => system.back_up(),
                Step::Restore => drop(system.restore()),
                Step::Follow(caller) => {
                    let at = caller.index(callers.len());
                    callers[at].follow(&system);
                }
                Step::Pull(license) => pull(&system, &site, &url, license.index(scopes.len())),
            }
        }
        for caller in &mut callers {
            caller.follow(&system);
            caller.reach_the_present();
        }
        server.stop();
        system.check();
    });
    counted(done.get(), "steps over HTTP");
}
