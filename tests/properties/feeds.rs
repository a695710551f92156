//! An export and the feed after it equal the current view, also if pages are lost or applied twice.

use std::cell::Cell;
use std::collections::{BTreeMap, BTreeSet};

use medfeed::model::{Dataset, Timestamp};
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::{Index, select};
use serde_json::{Value, json};

use super::edits::{Change, first_imports, imports};
use super::holds;
use super::system::System;
use super::world::{Position, Row, Scope, scopes};
use crate::harness::counted;

/// The fate of a page that the server sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fate {
    /// It is applied and its token saved.
    Saved,
    /// It never arrives.
    Lost,
    /// It is applied. Then the caller crashes before it saves the token.
    Unsaved,
}

#[derive(Clone, Debug)]
enum Step {
    Import(Vec<Change>),
    Scope(Index, Scope),
    NewLicense(Scope),
    Rate(Index, u32),
    Poll(Index, usize, Fate),
    Walk(Index, usize),
    Reload(Index),
    Restart,
    /// The clock moves by this number of seconds, forward or back.
    Clock(i64),
    BackUp,
    Restore,
}

/// A move of a clock in seconds: by one, past an hour or a day, or back.
pub fn clocks() -> impl Strategy<Value = i64> {
    prop_oneof![4 => Just(1), 2 => 2..100_000_i64, 1 => -100_000..0_i64]
}

fn steps() -> impl Strategy<Value = Step> {
    let limit = select(&[1_usize, 2, 3, 1000]);
    let fate = select(&[Fate::Saved, Fate::Saved, Fate::Lost, Fate::Unsaved]);
    prop_oneof![
        8 => imports().prop_map(Step::Import),
        2 => (any::<Index>(), scopes()).prop_map(|(license, scope)| Step::Scope(license, scope)),
        1 => scopes().prop_map(Step::NewLicense),
        1 => (any::<Index>(), 0..9_u32).prop_map(|(license, rate)| Step::Rate(license, rate)),
        12 => (any::<Index>(), limit.clone(), fate).prop_map(|(caller, limit, fate)| Step::Poll(caller, limit, fate)),
        3 => (any::<Index>(), limit).prop_map(|(caller, limit)| Step::Walk(caller, limit)),
        1 => any::<Index>().prop_map(Step::Reload),
        1 => Just(Step::Restart),
        6 => clocks().prop_map(Step::Clock),
        1 => Just(Step::BackUp),
        1 => Just(Step::Restore),
    ]
}

/// A token as the caller saved it, with its meaning in the model.
#[derive(Clone, Debug)]
pub struct Saved {
    pub token: String,
    pub position: Position,
    pub scope_changes: u32,
    pub restores: u32,
}

/// A caller with a copy of a dataset.
#[derive(Debug)]
struct Caller {
    license: usize,
    dataset: Dataset,
    copy: BTreeMap<u64, Value>,
    saved: Option<Saved>,
}

/// Applies the entries of a page to a copy.
pub fn apply(copy: &mut BTreeMap<u64, Value>, entries: &[Value]) {
    for entry in entries {
        let id = entry["id"].as_u64().expect("an id");
        if entry["deleted"] == json!(true) {
            copy.remove(&id);
        } else {
            copy.insert(id, entry.clone());
        }
    }
}

/// Loads an export as a copy. Checks that it equals the model's view.
fn load(
    system: &System,
    license: usize,
    dataset: Dataset,
) -> Option<(BTreeMap<u64, Value>, String)> {
    let export = system.export(license, dataset)?;
    let mut copy = BTreeMap::new();
    let entries: Vec<Value> = export
        .lines
        .iter()
        .map(|line| serde_json::from_str(line).expect("JSON"))
        .collect();
    apply(&mut copy, &entries);
    assert_eq!(copy.len(), entries.len(), "each record once");
    assert_eq!(
        copy,
        system.view(license, dataset),
        "the export is the view of license {license}"
    );
    Some((copy, export.token))
}

impl Caller {
    fn is_licensed(&self, system: &System) -> bool {
        system.world.licenses[self.license]
            .scope
            .datasets
            .contains(&self.dataset)
    }

    fn reload(&mut self, system: &System) {
        let loaded = load(system, self.license, self.dataset);
        assert_eq!(loaded.is_some(), self.is_licensed(system));
        if let Some((copy, token)) = loaded {
            self.copy = copy;
            let scope_changes = system.world.licenses[self.license].scope_changes;
            self.saved = Some(Saved {
                token,
                position: system.world.now(),
                scope_changes,
                restores: system.restores,
            });
        }
    }

    /// Requests a page and compares it with the model. Reloads if the status requires it. Returns whether there are
    /// more entries, and the ids.
    fn poll(&mut self, system: &System, limit: usize, fate: Fate) -> (bool, Vec<u64>) {
        let Some(saved) = self.saved.clone() else {
            self.reload(system);
            return (false, Vec::new());
        };
        let target = format!(
            "/v1/{}/changes?since={}&limit={limit}",
            self.dataset, saved.token
        );
        let reply = system.get(self.license, &target);
        if !self.is_licensed(system) {
            assert_eq!(reply.status, 403, "{}", reply.text());
            return (false, Vec::new());
        }
        let license = &system.world.licenses[self.license];
        if license.scope_changes != saved.scope_changes || system.restores != saved.restores {
            assert_eq!(
                reply.status,
                410,
                "the scope changed, or a backup is back: {}",
                reply.text()
            );
            self.reload(system);
            return (false, Vec::new());
        }
        assert_eq!(
            reply.status,
            200,
            "the scope did not change: {}",
            reply.text()
        );
        let expected = system
            .world
            .feed_after(self.license, self.dataset, Some(saved.position));
        let page = reply.json();
        let has_more = expected.len() > limit;
        let expected = &expected[..expected.len().min(limit)];
        let entries: Vec<Value> = expected.iter().map(|(_, entry)| entry.clone()).collect();
        assert_eq!(
            page["data"],
            Value::Array(entries.clone()),
            "after {saved:?}"
        );
        assert_eq!(page["has_more"], json!(has_more));
        let token = page["next_sync_token"]
            .as_str()
            .expect("a token")
            .to_owned();
        if entries.is_empty() {
            assert_eq!(token, saved.token, "nothing is new: the same token again");
        }
        if fate != Fate::Lost {
            apply(&mut self.copy, &entries);
        }
        if fate == Fate::Saved {
            let position = if has_more {
                expected[limit - 1].0
            } else {
                system.world.now()
            };
            self.saved = Some(Saved {
                token,
                position,
                ..saved
            });
        }
        (
            has_more,
            entries
                .iter()
                .map(|entry| entry["id"].as_u64().expect("an id"))
                .collect(),
        )
    }

    /// Polls until there are no more entries. Each record comes once.
    fn walk(&mut self, system: &System, limit: usize) {
        let mut seen = BTreeSet::new();
        loop {
            let (has_more, ids) = self.poll(system, limit, Fate::Saved);
            for id in ids {
                assert!(seen.insert(id), "record {id} came twice in one walk");
            }
            if !has_more {
                return;
            }
        }
    }

    /// Checks that at the end the copy is complete, and that further polls bring nothing.
    fn finish(&mut self, system: &System, limit: usize) {
        self.walk(system, limit);
        // The first poll may have been answered by 403 or 410.
        self.walk(system, limit);
        if self.is_licensed(system) {
            let expected = system.view(self.license, self.dataset);
            assert_eq!(self.copy, expected, "the copy is the view");
            let saved = self.saved.clone().expect("a token");
            let present = system
                .get(self.license, &format!("/v1/{}/changes", self.dataset))
                .json();
            assert_eq!(
                present,
                json!({"data": [], "has_more": false, "next_sync_token": saved.token})
            );
            let (_, token) = load(system, self.license, self.dataset).expect("an export");
            assert_eq!(
                token, saved.token,
                "the export is of the present moment too"
            );
        }
    }
}

/// Two callers for each dataset of a license.
fn callers_of(license: usize) -> impl Iterator<Item = Caller> {
    let twice = [
        Dataset::Conferences,
        Dataset::Conferences,
        Dataset::Journals,
    ];
    twice.into_iter().map(move |dataset| Caller {
        license,
        dataset,
        copy: BTreeMap::new(),
        saved: None,
    })
}

/// Walks the feed from an instant on.
fn walk_since(
    system: &System,
    license: usize,
    dataset: Dataset,
    since: Timestamp,
    limit: usize,
) -> Vec<Value> {
    let mut entries = Vec::new();
    let mut target = format!("/v1/{dataset}/changes?updated_since={since}&limit={limit}");
    loop {
        let reply = system.get(license, &target);
        entries.extend(reply.items());
        let page = reply.json();
        let token = page["next_sync_token"].as_str().expect("a token");
        if page["has_more"] == json!(false) {
            let present = system
                .get(license, &format!("/v1/{dataset}/changes"))
                .json();
            assert_eq!(
                present["next_sync_token"], token,
                "the walk ends at the present moment"
            );
            return entries;
        }
        target = format!("/v1/{dataset}/changes?since={token}&limit={limit}");
    }
}

/// Callers that poll by time: the feed and the list since an instant contain the records that changed or entered since.
fn check_times(system: &System, license: usize, dataset: Dataset, limit: usize) {
    let rows = &system.world.licenses[license].rows[dataset];
    let times = rows.values();
    let mut times: BTreeSet<Timestamp> = times.flat_map(|row| [row.at, row.at.plus_s(1)]).collect();
    times.insert(Timestamp::EPOCH);
    for since in times {
        let mut expected: Vec<(&u64, &Row)> =
            rows.iter().filter(|(_, row)| row.at >= since).collect();
        let live: Vec<Value> = expected
            .iter()
            .filter(|(_, row)| row.live)
            .map(|(id, row)| system.world.entry(dataset, **id, row))
            .collect();
        let listed = system.get(
            license,
            &format!("/v1/{dataset}?updated_since={since}&limit=500"),
        );
        assert_eq!(listed.items(), live, "listed since {since}");
        expected.sort_by_key(|(_, row)| row.position);
        let expected: Vec<Value> = expected
            .into_iter()
            .map(|(id, row)| system.world.entry(dataset, *id, row))
            .collect();
        let found = walk_since(system, license, dataset, since, limit);
        assert_eq!(found, expected, "the feed since {since}");
    }
}

#[test]
fn export_plus_feed_is_the_view() {
    let licenses = vec(scopes(), 1..4);
    let strategy = (
        first_imports(),
        licenses,
        vec(steps(), 1..40),
        select(&[1_usize, 2, 1000]),
    );
    let done = Cell::new(0);
    holds(32, strategy, |(first, scopes, steps, limit)| {
        done.set(done.get() + steps.len());
        let mut system = System::with(&first, &scopes);
        let mut callers: Vec<Caller> = (0..scopes.len()).flat_map(callers_of).collect();
        let mut first_copies = Vec::new();
        for caller in &mut callers {
            caller.reload(&system);
            // A later commit may have the time of the newest one.
            let begun = system.newest;
            first_copies.extend(
                caller
                    .saved
                    .is_some()
                    .then(|| (caller.license, caller.dataset, caller.copy.clone(), begun)),
            );
        }
        for step in steps {
            let licenses = system.world.licenses.len();
            match step {
                Step::Import(changes) => system.import(&changes),
                Step::Scope(license, scope) => system.set_license(license.index(licenses), &scope),
                Step::NewLicense(scope) => {
                    system.set_license(licenses, &scope);
                    callers.extend(callers_of(licenses));
                }
                Step::Rate(license, rate) => system.set_rate(license.index(licenses), rate),
                Step::Poll(caller, limit, fate) => {
                    let at = caller.index(callers.len());
                    callers[at].poll(&system, limit, fate);
                }
                Step::Walk(caller, limit) => {
                    let at = caller.index(callers.len());
                    callers[at].walk(&system, limit);
                }
                Step::Reload(caller) => {
                    let at = caller.index(callers.len());
                    callers[at].reload(&system);
                }
                Step::Restart => system.restart(),
                Step::Clock(seconds) => system.pass_s(seconds),
                Step::BackUp => system.back_up(),
                Step::Restore if system.restore() => {
                    callers.retain(|caller| caller.license < system.world.licenses.len());
                    first_copies.clear();
                }
                Step::Restore => {}
            }
        }
        for caller in &mut callers {
            caller.finish(&system, limit);
        }
        for license in 0..system.world.licenses.len() {
            for dataset in system.world.licenses[license].scope.datasets.clone() {
                check_times(&system, license, dataset, limit);
            }
        }
        // A copy that is brought up to date by its time alone misses nothing, including license changes.
        for (license, dataset, mut copy, begun) in first_copies {
            if system.world.licenses[license]
                .scope
                .datasets
                .contains(&dataset)
            {
                apply(
                    &mut copy,
                    &walk_since(&system, license, dataset, begun, limit),
                );
                let expected = system.view(license, dataset);
                assert_eq!(copy, expected, "by time, license {license}");
            }
        }
        system.check();
    });
    counted(done.get(), "model steps");
}
