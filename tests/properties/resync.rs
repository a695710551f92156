//! Callers that send `resync=diff` and never load an export again. After any change of the license their copy is its
//! view, and they get the records that entered, changed or left, and no others.

use std::cell::Cell;
use std::collections::{BTreeMap, BTreeSet};

use medfeed::model::Dataset;
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::{Index, select};
use serde_json::{Value, json};

use super::edits::{Change, first_imports, imports};
use super::feeds::{Saved, apply, clocks};
use super::holds;
use super::system::System;
use super::world::scopes;
use crate::harness::counted;

#[derive(Clone, Debug)]
enum Step {
    Import(Vec<Change>),
    /// The license gets one of the scopes in use.
    Scope(Index, Index),
    /// Requests a page. The flag says whether it arrives, or is lost with its token.
    Poll(Index, usize, bool),
    /// Requests all pages.
    Walk(Index, usize),
    /// Polls without the parameter.
    Plain(Index),
    Restart,
    Clock(i64),
    BackUp,
    Restore,
}

fn steps() -> impl Strategy<Value = Step> {
    let limit = select(&[1_usize, 2, 3, 1000]);
    let arrives = prop_oneof![4 => Just(true), 1 => Just(false)];
    prop_oneof![
        6 => imports().prop_map(Step::Import),
        5 => (any::<Index>(), any::<Index>()).prop_map(|(license, scope)| Step::Scope(license, scope)),
        10 => (any::<Index>(), limit.clone(), arrives).prop_map(|(at, limit, arrives)| Step::Poll(at, limit, arrives)),
        2 => (any::<Index>(), limit).prop_map(|(at, limit)| Step::Walk(at, limit)),
        2 => any::<Index>().prop_map(Step::Plain),
        1 => Just(Step::Restart),
        5 => clocks().prop_map(Step::Clock),
        1 => Just(Step::BackUp),
        1 => Just(Step::Restore),
    ]
}

/// A caller with a copy of a dataset, which it loaded once.
#[derive(Debug)]
struct Caller {
    license: usize,
    dataset: Dataset,
    copy: BTreeMap<u64, Value>,
    saved: Option<Saved>,
    /// Every id that the license has shown.
    seen: BTreeSet<u64>,
}

impl Caller {
    fn visible(&self, system: &System) -> BTreeSet<u64> {
        system
            .world
            .visible(self.license, self.dataset)
            .into_iter()
            .collect()
    }

    /// Adds the ids that the license shows now.
    fn watch(&mut self, system: &System) {
        self.seen.append(&mut self.visible(system));
    }

    fn is_licensed(&self, system: &System) -> bool {
        system.world.licenses[self.license]
            .scope
            .datasets
            .contains(&self.dataset)
    }

    fn load(&mut self, system: &System) {
        let Some(export) = system.export(self.license, self.dataset) else {
            return;
        };
        let records = export.lines.iter();
        let records = records.map(|line| serde_json::from_str::<Value>(line).expect("JSON"));
        self.copy = records
            .map(|record| (record["id"].as_u64().expect("an id"), record))
            .collect();
        let scope_changes = system.world.licenses[self.license].scope_changes;
        let (token, position, restores) = (export.token, system.world.now(), system.restores);
        self.saved = Some(Saved {
            token,
            position,
            scope_changes,
            restores,
        });
    }

    /// Checks that a poll without the parameter gets the answer of the contract.
    fn poll_plainly(&self, system: &System) {
        let Some(saved) = &self.saved else { return };
        let reply = system.get(
            self.license,
            &format!("/v1/{}/changes?since={}", self.dataset, saved.token),
        );
        let is_former = system.world.licenses[self.license].scope_changes != saved.scope_changes
            || system.restores != saved.restores;
        let expected = if !self.is_licensed(system) {
            403
        } else if is_former {
            410
        } else {
            200
        };
        assert_eq!(reply.status, expected, "{}", reply.text());
    }

    /// Requests a page and compares it with the model. Returns whether there are more entries, and the ids.
    fn poll(&mut self, system: &System, limit: usize, arrives: bool) -> (bool, Vec<u64>) {
        let Some(saved) = self.saved.clone() else {
            self.load(system);
            return (false, Vec::new());
        };
        let since = saved.token;
        let target = format!(
            "/v1/{}/changes?since={since}&limit={limit}&resync=diff",
            self.dataset
        );
        let reply = system.get(self.license, &target);
        if !self.is_licensed(system) {
            assert_eq!(reply.status, 403, "{}", reply.text());
            return (false, Vec::new());
        }
        if system.restores != saved.restores {
            assert_eq!(
                reply.status,
                410,
                "`resync=diff` does not bridge a restore: {}",
                reply.text()
            );
            self.load(system);
            return (false, Vec::new());
        }
        let page = reply.items();
        let expected = system
            .world
            .feed_after(self.license, self.dataset, Some(saved.position));
        let has_more = expected.len() > limit;
        let expected = &expected[..expected.len().min(limit)];
        assert_eq!(
            page,
            expected
                .iter()
                .map(|(_, entry)| entry.clone())
                .collect::<Vec<_>>()
        );
        assert_eq!(reply.json()["has_more"], json!(has_more));
        let visible = self.visible(system);
        let mut ids = Vec::new();
        for entry in &page {
            let id = entry["id"].as_u64().expect("an id");
            ids.push(id);
            if entry["deleted"] == json!(true) {
                assert!(
                    self.seen.contains(&id),
                    "a tombstone of {id}, which the license never saw"
                );
                assert_eq!(entry.as_object().expect("an object").len(), 3, "{entry}");
            } else {
                assert!(visible.contains(&id), "record {id} is hidden");
            }
        }
        if arrives {
            apply(&mut self.copy, &page);
            let token = reply.json()["next_sync_token"]
                .as_str()
                .expect("a token")
                .to_owned();
            let position = if has_more {
                expected[limit - 1].0
            } else {
                system.world.now()
            };
            let scope_changes = system.world.licenses[self.license].scope_changes;
            self.saved = Some(Saved {
                token,
                position,
                scope_changes,
                restores: system.restores,
            });
            // The new token has the present scope, so it no longer needs the parameter.
            self.poll_plainly(system);
        }
        (has_more, ids)
    }

    /// Polls until there are no more entries. Each record comes once, and only if it changed, entered or left.
    fn walk(&mut self, system: &System, limit: usize) {
        let (begun, before) = (self.saved.clone(), self.copy.clone());
        let mut sent = BTreeSet::new();
        loop {
            let (has_more, ids) = self.poll(system, limit, true);
            for id in ids {
                assert!(sent.insert(id), "record {id} came twice in one walk");
            }
            if !has_more {
                break;
            }
        }
        let is_of_now =
            |begun: &Saved| self.is_licensed(system) && begun.restores == system.restores;
        let Some(begun) = begun.filter(is_of_now) else {
            return;
        };
        let view = system.view(self.license, self.dataset);
        assert_eq!(self.copy, view, "the copy is the view");
        let rows = &system.world.licenses[self.license].rows[self.dataset];
        for id in &sent {
            assert!(
                rows[id].position > begun.position,
                "nothing happened to {id}"
            );
        }
        let differing = before.keys().chain(view.keys());
        let differing = differing.filter(|id| before.get(id) != view.get(id));
        assert!(
            differing.into_iter().all(|id| sent.contains(id)),
            "a difference was not sent"
        );
        let present = system
            .get(self.license, &format!("/v1/{}/changes", self.dataset))
            .json();
        let expected = self.saved.as_ref().expect("a token").token.as_str();
        assert_eq!(present["next_sync_token"], expected);
    }
}

#[test]
fn resync_diff_leads_to_the_new_view() {
    // Licenses of one scope share a feed, so the same few scopes come again and again.
    let licenses = vec(any::<Index>(), 1..4);
    let strategy = (
        first_imports(),
        vec(scopes(), 2..5),
        licenses,
        vec(steps(), 1..40),
        select(&[1_usize, 2, 1000]),
    );
    let done = Cell::new(0);
    holds(32, strategy, |(first, scopes, licenses, steps, limit)| {
        done.set(done.get() + steps.len());
        let scope_of = |index: &Index| index.get(&scopes).clone();
        let mut system = System::with(&first, &licenses.iter().map(scope_of).collect::<Vec<_>>());
        let both = |license| Dataset::ALL.map(|dataset| (license, dataset));
        let new = |(license, dataset)| Caller {
            license,
            dataset,
            copy: BTreeMap::new(),
            saved: None,
            seen: BTreeSet::new(),
        };
        let mut callers: Vec<Caller> = (0..licenses.len()).flat_map(both).map(new).collect();
        for caller in &mut callers {
            caller.watch(&system);
            caller.load(&system);
        }
        let count = callers.len();
        for step in steps {
            let at = |index: Index| index.index(count);
            match step {
                Step::Import(changes) => system.import(&changes),
                Step::Scope(license, scope) => {
                    system.set_license(license.index(licenses.len()), &scope_of(&scope))
                }
                Step::Poll(index, limit, arrives) => {
                    drop(callers[at(index)].poll(&system, limit, arrives))
                }
                Step::Walk(index, limit) => callers[at(index)].walk(&system, limit),
                Step::Plain(index) => callers[at(index)].poll_plainly(&system),
                Step::Restart => system.restart(),
                Step::Clock(seconds) => system.pass_s(seconds),
                Step::BackUp => system.back_up(),
                Step::Restore => drop(system.restore()),
            }
            callers.iter_mut().for_each(|caller| caller.watch(&system));
        }
        for caller in &mut callers {
            caller.walk(&system, limit);
        }
        system.check();
    });
    counted(done.get(), "model steps");
}
