//! Changes of a world: imports as batches, and changes of licenses.

use std::collections::BTreeMap;

use medfeed::model::time::parse_date;
use medfeed::model::{
    ConferenceFields, Curated, Dataset, DateStatus, Fields, Id, JournalFields, OrganizationFields,
    PerDataset, TagFields, Timestamp,
};
use medfeed::store::Batch;
use proptest::collection::vec;
use proptest::prelude::*;

use super::world::{License, Position, Record, Row, Scope, Stored, WORDS, World, records};

/// The ids in use: few, so that they occur again and again.
const IDS: std::ops::RangeInclusive<u64> = 1..=9;

/// One change of an import.
#[derive(Clone, Debug)]
pub enum Change {
    Put(Dataset, u64, Record),
    Remove(Dataset, u64),
    /// Creates an organization or gives it another name.
    Organization(u64, u8),
    Tag(u64, u8),
    DropOrganization(u64),
    DropTag(u64),
}

pub fn changes() -> impl Strategy<Value = Change> {
    let put = |dataset| {
        (IDS, records(dataset)).prop_map(move |(id, record)| Change::Put(dataset, id, record))
    };
    let remove = |dataset| IDS.prop_map(move |id| Change::Remove(dataset, id));
    prop_oneof![
        8 => put(Dataset::Conferences),
        2 => put(Dataset::Journals),
        3 => remove(Dataset::Conferences),
        1 => remove(Dataset::Journals),
        2 => (1..4_u64, 0..3_u8).prop_map(|(id, version)| Change::Organization(id, version)),
        1 => (1..4_u64, 0..3_u8).prop_map(|(id, version)| Change::Tag(id, version)),
        1 => (1..4_u64).prop_map(Change::DropOrganization),
        1 => (1..4_u64).prop_map(Change::DropTag),
    ]
}

/// The changes of one import.
pub fn imports() -> impl Strategy<Value = Vec<Change>> {
    vec(changes(), 1..6)
}

/// An import that fills a world.
pub fn first_imports() -> impl Strategy<Value = Vec<Change>> {
    let links: Vec<Change> = (1..4)
        .flat_map(|id| [Change::Organization(id, 0), Change::Tag(id, 0)])
        .collect();
    vec(changes(), 5..25).prop_map(move |changes| [links.clone(), changes].concat())
}

/// The world after an import, with the batch that leads to it. [`imported`] sets the times.
pub fn import(world: &World, changes: &[Change]) -> (World, Batch) {
    let mut after = world.clone();
    for change in changes {
        match change {
            Change::Put(dataset, id, record) => {
                let stored = Stored {
                    record: record.clone(),
                    updated_at: Timestamp::EPOCH,
                };
                after.records[*dataset].insert(*id, stored);
            }
            Change::Remove(dataset, id) => drop(after.records[*dataset].remove(id)),
            Change::Organization(id, version) => {
                after
                    .organizations
                    .insert(*id, format!("Society {id}.{version}"));
            }
            Change::Tag(id, version) => drop(after.tags.insert(*id, format!("Tag {id}.{version}"))),
            Change::DropOrganization(id) => drop(after.organizations.remove(id)),
            Change::DropTag(id) => drop(after.tags.remove(id)),
        }
    }
    let PerDataset {
        conferences,
        journals,
    } = &mut after.records;
    for stored in [conferences, journals]
        .into_iter()
        .flat_map(BTreeMap::values_mut)
    {
        stored
            .record
            .organizations
            .retain(|id| after.organizations.contains_key(id));
        stored.record.tags.retain(|id| after.tags.contains_key(id));
    }
    let batch = Batch {
        organizations: all_ids(&world.organizations, &after.organizations, |id, name| {
            curated(
                id,
                OrganizationFields {
                    name: Some(name.clone()),
                    ..OrganizationFields::default()
                },
            )
        }),
        tags: all_ids(&world.tags, &after.tags, |id, name| {
            curated(
                id,
                TagFields {
                    kind: Some("Topic".to_owned()),
                    name: Some(name.clone()),
                    category: None,
                },
            )
        }),
        conferences: all_ids(
            &world.records.conferences,
            &after.records.conferences,
            |id, stored| curated(id, conference(&stored.record)),
        ),
        journals: all_ids(
            &world.records.journals,
            &after.records.journals,
            |id, stored| curated(id, journal(&stored.record)),
        ),
    };
    (after, batch)
}

/// Every row before or after. Equal rows are in the batch too, and must change nothing.
fn all_ids<T, F>(
    before: &BTreeMap<u64, T>,
    after: &BTreeMap<u64, T>,
    row: impl Fn(u64, &T) -> Curated<F>,
) -> BTreeMap<Id, Option<Curated<F>>> {
    let ids = before.keys().chain(after.keys());
    ids.map(|id| {
        (
            Id::try_from(*id).expect("an id"),
            after.get(id).map(|value| row(*id, value)),
        )
    })
    .collect()
}

fn curated<F: Fields>(id: u64, fields: F) -> Curated<F> {
    Curated::new(Id::try_from(id).expect("an id"), fields).expect("a row without faults")
}

fn ids(ids: impl IntoIterator<Item = u64>) -> Vec<Id> {
    ids.into_iter()
        .map(|id| Id::try_from(id).expect("an id"))
        .collect()
}

fn conference(record: &Record) -> ConferenceFields {
    ConferenceFields {
        name: Some(record.words()),
        abbv: record.abbv.map(|at| WORDS[at].0.to_owned()),
        year: record.year,
        start_date: record.start.map(|date| parse_date(date).expect("a date")),
        start_date_status: Some(if record.start.is_some() {
            DateStatus::Confirmed
        } else {
            DateStatus::Check
        }),
        abstract_due_date_status: Some(DateStatus::NotFound),
        late_breaking_due_date_status: Some(DateStatus::Check),
        country: record.country.map(str::to_owned),
        venue: Some(format!("Hall {}", record.version)),
        therapy_areas: record
            .areas
            .iter()
            .rev()
            .map(|area| (*area).to_owned())
            .collect(),
        organizations: ids(record.organizations.iter().rev().copied()).into(),
        tags: ids(record.tags.iter().copied()).into(),
        ..ConferenceFields::default()
    }
}

fn journal(record: &Record) -> JournalFields {
    JournalFields {
        name: Some(record.words()),
        abbv: record.abbv.map(|at| WORDS[at].0.to_owned()),
        h_index: Some(record.version.into()),
        organizations: ids(record.organizations.iter().copied()).into(),
        tags: ids(record.tags.iter().rev().copied()).into(),
        ..JournalFields::default()
    }
}

/// Completes the world after an import that was committed at a time: the changed rows, and the entries of licenses.
pub fn imported(before: &World, mut after: World, at: Timestamp) -> World {
    after.commits += 1;
    let renamed =
        |links: &std::collections::BTreeSet<u64>,
         old: &BTreeMap<u64, String>,
         new: &BTreeMap<u64, String>| { links.iter().any(|id| old.get(id) != new.get(id)) };
    for dataset in Dataset::ALL {
        let mut changed = Vec::new();
        for (id, stored) in &mut after.records[dataset] {
            let record = &stored.record;
            let same = before.records[dataset].get(id).filter(|old| {
                old.record == *record
                    && !renamed(
                        &record.organizations,
                        &before.organizations,
                        &after.organizations,
                    )
                    && !renamed(&record.tags, &before.tags, &after.tags)
            });
            match same {
                Some(old) => stored.updated_at = old.updated_at,
                None => {
                    stored.updated_at = at;
                    changed.push((*id, Some(record.clone())));
                }
            }
        }
        let removed = before.records[dataset]
            .keys()
            .filter(|id| !after.records[dataset].contains_key(id));
        changed.extend(removed.map(|id| (*id, None)));
        for license in &mut after.licenses {
            for (id, record) in &changed {
                let sees = record
                    .as_ref()
                    .is_some_and(|record| license.scope.sees(dataset, record));
                let saw = license.rows[dataset].get(id).is_some_and(|row| row.live);
                if sees || saw {
                    let order: Position = (after.commits, 0, Timestamp::EPOCH, *id);
                    license.rows[dataset].insert(
                        *id,
                        Row {
                            position: order,
                            at,
                            live: sees,
                        },
                    );
                }
            }
        }
    }
    after
}

/// The world after a license was given a scope at a time. A missing license is created.
pub fn rescoped(mut world: World, license: usize, scope: &Scope, at: Timestamp) -> World {
    if license == world.licenses.len() {
        let nothing = Scope {
            datasets: [].into(),
            areas: None,
            countries: None,
            years: None,
        };
        world.licenses.push(License {
            scope: nothing,
            scope_changes: 0,
            rows: Default::default(),
        });
    }
    if world.licenses[license].scope == *scope {
        return world;
    }
    world.commits += 1;
    let commit = world.commits;
    let World {
        records, licenses, ..
    } = &mut world;
    let license = &mut licenses[license];
    license.scope = scope.clone();
    license.scope_changes += 1;
    for dataset in Dataset::ALL {
        let rows = &mut license.rows[dataset];
        for (id, stored) in &records[dataset] {
            if scope.sees(dataset, &stored.record) && !rows.get(id).is_some_and(|row| row.live) {
                let position = (commit, 0, stored.updated_at, *id);
                rows.insert(
                    *id,
                    Row {
                        position,
                        at,
                        live: true,
                    },
                );
            }
        }
        for (id, row) in rows.iter_mut().filter(|(_, row)| row.live) {
            let visible = records[dataset]
                .get(id)
                .is_some_and(|stored| scope.sees(dataset, &stored.record));
            if !visible {
                *row = Row {
                    position: (commit, 1, Timestamp::EPOCH, *id),
                    at,
                    live: false,
                };
            }
        }
    }
    world
}
