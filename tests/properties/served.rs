//! The program itself compared with the model: a server that polls the file, and callers who wait for news over HTTP.

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
use crate::process::site::{SOON, Site, wait_for};

#[derive(Clone, Debug)]
enum Step {
    Import(Vec<Change>),
    Scope(Index, Scope),
    Clock(i64),
    BackUp,
    Restore,
    /// A caller polls until its copy equals the model.
    Follow(Index),
}

fn steps() -> impl Strategy<Value = Step> {
    prop_oneof![
        6 => imports().prop_map(Step::Import),
        2 => (any::<Index>(), scopes()).prop_map(|(license, scope)| Step::Scope(license, scope)),
        2 => clocks().prop_map(Step::Clock),
        1 => Just(Step::BackUp),
        1 => Just(Step::Restore),
        8 => any::<Index>().prop_map(Step::Follow),
    ]
}

type Copy = BTreeMap<u64, Value>;

/// A caller with a copy, over one connection.
struct Caller {
    license: usize,
    dataset: Dataset,
    /// Whether it handles changes of its license by `resync=diff`.
    by_difference: bool,
    client: Client,
    copy: Copy,
    token: Option<String>,
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

    /// Requests one page, or reacts to an answer that is no page.
    fn poll(&mut self, parameter: &str) {
        let Some(token) = &self.token else {
            return self.load();
        };
        let resync = if self.by_difference {
            "&resync=diff"
        } else {
            ""
        };
        let target = format!(
            "/v1/{}/changes?since={token}&{parameter}{resync}",
            self.dataset
        );
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
            other => panic!(
                "{target}: {other} {}",
                String::from_utf8_lossy(&answer.body)
            ),
        }
    }

    /// Polls until the copy equals the model.
    fn follow(&mut self, system: &System) {
        let is_licensed = system.world.licenses[self.license]
            .scope
            .datasets
            .contains(&self.dataset);
        let expected = system.view(self.license, self.dataset);
        let begun = Instant::now();
        while self.copy != expected || self.token.is_some() != is_licensed {
            assert!(
                begun.elapsed() < SOON,
                "license {}: {:?}\nis not\n{expected:?}",
                self.license,
                self.copy
            );
            self.poll("wait=1");
        }
    }

    /// Polls until the token is the one of the present moment.
    fn reach_the_present(&mut self) {
        wait_for("the present moment", || {
            let token = self.token.clone();
            self.poll("limit=2");
            let present = self.client.get(&format!("/v1/{}/changes", self.dataset));
            match &token {
                Some(token) => {
                    present.json()["next_sync_token"] == token.as_str()
                        && self.token.as_ref() == Some(token)
                }
                None => present.status == 403,
            }
        });
    }
}

#[test]
fn callers_over_http_reach_the_model() {
    let done = Cell::new(0);
    let strategy = (first_imports(), vec(scopes(), 1..4), vec(steps(), 4..24));
    holds(6, strategy, |(first, scopes, steps)| {
        let (mut system, site) = (System::with(&first, &scopes), Site::new());
        let mut command = site.serve_command("");
        command.env("MEDFEED_DB", system.path());
        let server = site.start(command);
        let mut callers: Vec<Caller> = (0..scopes.len())
            .flat_map(|license| Dataset::ALL.map(|dataset| (license, dataset)))
            .flat_map(|(license, dataset)| {
                [false, true].map(|by_difference| (license, dataset, by_difference))
            })
            .map(|(license, dataset, by_difference)| {
                let client = server.client(system.key(license));
                Caller {
                    license,
                    dataset,
                    by_difference,
                    client,
                    copy: Copy::new(),
                    token: None,
                }
            })
            .collect();
        for step in steps {
            done.set(done.get() + 1);
            match step {
                Step::Import(changes) => system.import(&changes),
                Step::Scope(license, scope) => {
                    system.set_license(license.index(scopes.len()), &scope)
                }
                Step::Clock(seconds) => system.pass_s(seconds),
                Step::BackUp => system.back_up(),
                Step::Restore => drop(system.restore()),
                Step::Follow(caller) => {
                    let at = caller.index(callers.len());
                    callers[at].follow(&system);
                }
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
