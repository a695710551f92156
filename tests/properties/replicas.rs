//! A replica has the rows of its origin, after any history and in whatever way they were applied.

use std::cell::Cell;
use std::path::Path;

use medfeed::model::{CommitInfo, DatabaseId, Head};
use medfeed::store::check::check;
use medfeed::store::replication::{
    ApplyError, OriginView, ReplicaDraft, ReplicaMark, ReplicaWriter,
};
use medfeed::store::{Edit, Reader, StoreError, Writer};
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::Index;

use super::edits::{Change, first_imports, imports};
use super::holds;
use super::system::System;
use super::world::{Scope, scopes};
use crate::harness::counted;

/// A step at the origin.
#[derive(Clone, Debug)]
enum Step {
    Import(Vec<Change>),
    License(Index, Scope),
    Rate(Index, u32),
    /// A license outside the model is created or removed.
    Other(Scope),
    RevokeKey(Index),
    Restart,
}

fn steps() -> impl Strategy<Value = Step> {
    prop_oneof![
        6 => imports().prop_map(Step::Import),
        2 => (any::<Index>(), scopes()).prop_map(|(license, scope)| Step::License(license, scope)),
        1 => (any::<Index>(), 1..9_u32).prop_map(|(license, rate)| Step::Rate(license, rate)),
        1 => scopes().prop_map(Step::Other),
        1 => any::<Index>().prop_map(Step::RevokeKey),
        1 => Just(Step::Restart),
    ]
}

fn edit(system: &System, change: impl FnOnce(&mut Edit<'_>)) {
    let mut edit = system.writer().begin().unwrap();
    change(&mut edit);
    edit.commit().unwrap();
}

fn happen(system: &mut System, step: &Step) {
    match step {
        Step::Import(changes) => system.import(changes),
        Step::License(license, scope) => {
            let license = license.index(system.world.licenses.len() + 1);
            system.set_license(license, scope);
        }
        Step::Rate(license, rate) if !system.world.licenses.is_empty() => {
            system.set_rate(license.index(system.world.licenses.len()), *rate);
        }
        Step::Rate(..) => {}
        Step::Other(scope) => edit(system, |edit| match edit.find_license("other") {
            Some(_) => drop(edit.remove_license("other").unwrap()),
            None => {
                edit.set_license("other", super::system::real_scope(scope), None)
                    .unwrap();
                edit.create_key("other", Default::default()).unwrap();
            }
        }),
        Step::RevokeKey(key) => {
            let snapshot = system.writer().snapshot().unwrap();
            let keys = snapshot.list_keys();
            if !keys.is_empty() {
                // The key may be unusable already.
                let id = keys[key.index(keys.len())].id.clone();
                edit(system, |edit| drop(edit.revoke_key(&id)));
            }
        }
        Step::Restart => system.restart(),
    }
}

/// All rows that an origin shares with its replicas.
fn rows(view: &OriginView) -> Vec<u8> {
    let mut rows = Vec::new();
    let digest = view.dump::<StoreError>(usize::MAX, &mut |part| {
        rows.extend(part);
        Ok(())
    });
    let expected = view.digest().unwrap();
    assert_eq!(digest.unwrap(), expected, "the digest that is kept");
    rows
}

pub fn view(path: &Path) -> OriginView {
    Reader::open(path).unwrap().origin().unwrap()
}

fn mark(id: DatabaseId, slot: u64, digest: medfeed::model::RowDigest) -> ReplicaMark {
    ReplicaMark {
        url: "file:///srv/feed".to_owned(),
        id,
        slot,
        hash: [7; 32],
        digest,
    }
}

/// Loads the state of an origin. It replaces an existing replica.
pub fn load(
    origin: &OriginView,
    path: &Path,
    part_bytes: usize,
    replaced: Option<ReplicaWriter>,
) -> ReplicaWriter {
    let mut draft = ReplicaDraft::create_for(path).unwrap();
    let digest = origin.dump::<StoreError>(part_bytes, &mut |part| {
        draft.add_part(&part).unwrap();
        Ok(())
    });
    let mark = mark(origin.id().unwrap().unwrap(), 1, digest.unwrap());
    let loaded = draft.finish(&mark, origin.head().unwrap().head()).unwrap();
    loaded.persist(replaced).unwrap()
}

pub fn waiting(origin: &OriginView, end: Head) -> Vec<(CommitInfo, Vec<u8>)> {
    let commits = origin.pending_after(end, u64::MAX).unwrap();
    let commits = commits.unwrap_or_else(|| panic!("the outbox holds all since {end:?}"));
    commits
        .into_iter()
        .map(|commit| (commit, origin.changes(&commit).unwrap()))
        .collect()
}

/// Applies commits in one transaction.
pub fn apply(
    replica: &mut ReplicaWriter,
    commits: &[(CommitInfo, Vec<u8>)],
) -> Result<(), ApplyError> {
    let before = replica.mark()?;
    let digest = commits
        .last()
        .map_or(before.digest, |(commit, _)| commit.digest);
    let commits: Vec<_> = commits
        .iter()
        .map(|(commit, changes)| (*commit, changes.as_slice()))
        .collect();
    replica.apply(&commits, &mark(before.id, before.slot + 1, digest))
}

fn is_sound(path: &Path) {
    let report = check(&mut Writer::open_any(path, std::time::Duration::ZERO).unwrap()).unwrap();
    assert_eq!(report.damages, 0, "{:?}", report.findings);
}

#[test]
fn a_replica_has_the_rows_of_its_origin() {
    let histories = (
        first_imports(),
        vec(scopes(), 0..3),
        vec(steps(), 1..14),
        any::<(Index, Index)>(),
        1..3000_usize,
    );
    let done = Cell::new(0);
    holds(
        16,
        histories,
        |(first, scopes, steps, (published_at, loaded_at), part_bytes)| {
            done.set(done.get() + steps.len());
            let folder = tempfile::tempdir().unwrap();
            let at = |name: &str| folder.path().join(name);
            let mut system = System::with(&first, &scopes);
            let published_at = published_at.index(steps.len());
            let loaded_at = published_at + loaded_at.index(steps.len() - published_at);
            let (mut stepwise, mut joined, mut late) = (None, None, None);
            for (index, step) in steps.iter().enumerate() {
                if index == published_at {
                    let id = system.writer().mark_published().unwrap();
                    let found = system.writer().mark_published().unwrap();
                    assert_eq!(found, id, "once is enough");
                    let origin = view(&system.path());
                    stepwise = Some(load(&origin, &at("stepwise.redb"), part_bytes, None));
                    joined = Some(load(&origin, &at("joined.redb"), usize::MAX, None));
                }
                if index == loaded_at {
                    late = Some(load(
                        &view(&system.path()),
                        &at("late.redb"),
                        part_bytes,
                        None,
                    ));
                }
                happen(&mut system, step);
                let origin = view(&system.path());
                let expected = rows(&origin);
                if let Some(replica) = &mut stepwise {
                    for commit in waiting(&origin, replica.head().unwrap().head()) {
                        apply(replica, &[commit]).unwrap();
                    }
                    assert!(
                        rows(&view(&at("stepwise.redb"))) == expected,
                        "after step {index}"
                    );
                }
            }
            let origin = view(&system.path());
            let expected = rows(&origin);
            for (name, replica) in [("joined.redb", &mut joined), ("late.redb", &mut late)] {
                let replica = replica.as_mut().unwrap();
                let commits = waiting(&origin, replica.head().unwrap().head());
                apply(replica, &commits).unwrap();
                assert!(rows(&view(&at(name))) == expected, "{name}");
            }
            // A state replaces a replica that is in use.
            let replaced = load(&origin, &at("joined.redb"), part_bytes, joined);
            assert_eq!(replaced.head().unwrap(), origin.head().unwrap());
            drop((stepwise, late, replaced));
            for name in ["stepwise.redb", "joined.redb", "late.redb"] {
                assert!(rows(&view(&at(name))) == expected, "{name}");
                is_sound(&at(name));
            }
            system.check();
        },
    );
    counted(done.get(), "model steps");
}

#[test]
fn changed_bytes_are_refused_or_harmless() {
    let histories = (
        first_imports(),
        vec(scopes(), 1..3),
        vec(steps(), 1..4),
        vec(any::<(Index, u8, bool)>(), 30),
    );
    holds(16, histories, |(first, scopes, steps, flips)| {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("replica.redb");
        let mut system = System::with(&first, &scopes);
        system.writer().mark_published().unwrap();
        let mut replica = load(&view(&system.path()), &path, usize::MAX, None);
        steps.iter().for_each(|step| happen(&mut system, step));
        let origin = view(&system.path());
        let mut commits = waiting(&origin, replica.head().unwrap().head());
        let Some((_, sound)) = commits.last().cloned() else {
            return;
        };
        let (before, after) = (rows(&view(&path)), rows(&origin));
        for (at, byte, is_cut) in flips {
            let mut bytes = sound.clone();
            if is_cut {
                bytes.truncate(at.index(bytes.len()));
            } else {
                let at = at.index(bytes.len());
                bytes[at] ^= byte.max(1);
            }
            commits.last_mut().unwrap().1 = bytes;
            if apply(&mut replica, &commits).is_ok() {
                // For example, a range that ends beyond its last row in another position.
                assert!(rows(&view(&path)) == after);
                return;
            }
            assert!(rows(&view(&path)) == before, "nothing is changed");
        }
        commits.last_mut().unwrap().1 = sound;
        apply(&mut replica, &commits).unwrap();
        assert!(rows(&view(&path)) == after);
        // The same changes cannot be applied once more.
        assert!(matches!(
            apply(&mut replica, &commits),
            Err(ApplyError::Base { .. })
        ));
    });
}
