//! The model: plain maps, and the rules of visibility written a second time.

use std::collections::{BTreeMap, BTreeSet};

use medfeed::model::{Dataset, PerDataset, Timestamp};
use proptest::collection::{btree_set, vec};
use proptest::option;
use proptest::prelude::*;
use proptest::sample::select;
use serde_json::{Value, json};

pub const AREAS: [&str; 3] = ["Cardiology", "Oncology", "Ωtology"];
pub const COUNTRIES: [&str; 3] = ["Côte d'Ivoire", "Japan", "japan"];
pub const YEARS: [u16; 3] = [2024, 2025, 2026];
pub const DATES: [&str; 4] = ["2024-02-29", "2025-06-01", "2025-06-02", "2026-12-31"];

/// Words of names, and their forms as typed by a caller without diacritics.
pub const WORDS: [(&str, &str); 10] = [
    ("Ångström", "angstrom"),
    ("CARDIO", "cardio"),
    ("Straße", "strasse"),
    ("łódź", "lodz"),
    ("Ёлка й", "ёлка й"),
    ("癌学会", "癌学会"),
    ("São", "sao"),
    ("각", "각"),
    ("ΣΟΦΌΣ", "σοφοσ"),
    ("x-y (z)", "x-y (z)"),
];

/// The fields of a record. A journal has no year, country, start or areas.
#[derive(Clone, Debug, PartialEq)]
pub struct Record {
    /// Indexes of [`WORDS`].
    pub name: Vec<usize>,
    pub abbv: Option<usize>,
    pub year: Option<u16>,
    pub country: Option<&'static str>,
    pub start: Option<&'static str>,
    pub areas: BTreeSet<&'static str>,
    pub organizations: BTreeSet<u64>,
    pub tags: BTreeSet<u64>,
    pub version: u8,
}

impl Record {
    pub fn words(&self) -> String {
        self.name
            .iter()
            .map(|at| WORDS[*at].0)
            .collect::<Vec<_>>()
            .join(" ")
    }

    /// The name as typed without case and diacritics.
    pub fn plain_words(&self) -> String {
        self.name
            .iter()
            .map(|at| WORDS[*at].1)
            .collect::<Vec<_>>()
            .join(" ")
    }
}

/// Any record of a dataset. Its links may lead nowhere, and are dropped then.
pub fn records(dataset: Dataset) -> impl Strategy<Value = Record> {
    let texts = (
        vec(0..WORDS.len(), 1..4),
        option::of(0..WORDS.len()),
        0..3_u8,
    );
    let scalars = (
        option::of(select(&YEARS)),
        option::of(select(&COUNTRIES)),
        option::of(select(&DATES)),
    );
    let links = (
        btree_set(select(&AREAS), 0..3),
        btree_set(1..4_u64, 0..3),
        btree_set(1..4_u64, 0..3),
    );
    (texts, scalars, links).prop_map(
        move |((name, abbv, version), (year, country, start), (areas, organizations, tags))| {
            let record = Record {
                name,
                abbv,
                year,
                country,
                start,
                areas,
                organizations,
                tags,
                version,
            };
            match dataset {
                Dataset::Conferences => record,
                Dataset::Journals => Record {
                    year: None,
                    country: None,
                    start: None,
                    areas: BTreeSet::new(),
                    ..record
                },
            }
        },
    )
}

/// The scope of a license.
#[derive(Clone, Debug, PartialEq)]
pub struct Scope {
    pub datasets: BTreeSet<Dataset>,
    pub areas: Option<BTreeSet<&'static str>>,
    pub countries: Option<BTreeSet<&'static str>>,
    pub years: Option<BTreeSet<u16>>,
}

impl Scope {
    /// Whether every given set matches; a null never matches a given set.
    pub fn sees(&self, dataset: Dataset, record: &Record) -> bool {
        let conference = || {
            let area = self
                .areas
                .as_ref()
                .is_none_or(|areas| record.areas.iter().any(|area| areas.contains(area)));
            let country = match (&self.countries, record.country) {
                (None, _) => true,
                (Some(_), None) => false,
                (Some(countries), Some(country)) => countries.contains(country),
            };
            let year = match (&self.years, record.year) {
                (None, _) => true,
                (Some(_), None) => false,
                (Some(years), Some(year)) => years.contains(&year),
            };
            area && country && year
        };
        self.datasets.contains(&dataset) && (dataset == Dataset::Journals || conference())
    }
}

pub fn scopes() -> impl Strategy<Value = Scope> {
    let datasets = prop_oneof![
        5 => Just(vec![Dataset::Conferences, Dataset::Journals]),
        4 => Just(vec![Dataset::Conferences]),
        1 => Just(vec![Dataset::Journals]),
    ];
    let areas = option::of(btree_set(select(&AREAS), 1..3));
    let countries = option::weighted(0.3, btree_set(select(&COUNTRIES), 1..4));
    let years = option::weighted(0.3, btree_set(select(&YEARS), 1..3));
    (datasets, areas, countries, years).prop_map(|(datasets, areas, countries, years)| Scope {
        datasets: datasets.into_iter().collect(),
        areas,
        countries,
        years,
    })
}

/// A position in the order of a feed: the commit, then entries before tombstones of one license change, then the order
/// among them.
pub type Position = (u64, u8, Timestamp, u64);

/// The newest entry of a license for a record.
#[derive(Clone, Debug)]
pub struct Row {
    pub position: Position,
    pub at: Timestamp,
    pub live: bool,
}

/// A license with all entries that it ever had.
#[derive(Clone, Debug)]
pub struct License {
    pub scope: Scope,
    /// The number of changes of the scope. Each ends all tokens.
    pub scope_changes: u32,
    pub rows: PerDataset<BTreeMap<u64, Row>>,
}

/// A record with the time of its last change.
#[derive(Clone, Debug)]
pub struct Stored {
    pub record: Record,
    pub updated_at: Timestamp,
}

/// The whole model.
#[derive(Clone, Debug, Default)]
pub struct World {
    /// The number of commits.
    pub commits: u64,
    pub records: PerDataset<BTreeMap<u64, Stored>>,
    /// Names by id.
    pub organizations: BTreeMap<u64, String>,
    pub tags: BTreeMap<u64, String>,
    pub licenses: Vec<License>,
}

impl World {
    /// The present moment in every feed.
    pub fn now(&self) -> Position {
        (self.commits, u8::MAX, Timestamp::EPOCH, 0)
    }

    /// The entries of a license's feed after a position, in its order.
    pub fn feed_after(
        &self,
        license: usize,
        dataset: Dataset,
        after: Option<Position>,
    ) -> Vec<(Position, Value)> {
        let rows = &self.licenses[license].rows[dataset];
        let mut feed: Vec<(Position, Value)> = rows
            .iter()
            .filter(|(_, row)| after.is_none_or(|after| row.position > after))
            .map(|(id, row)| (row.position, self.entry(dataset, *id, row)))
            .collect();
        feed.sort_by_key(|(position, _)| *position);
        feed
    }

    /// The entry of a row: the record, or a tombstone.
    pub fn entry(&self, dataset: Dataset, id: u64, row: &Row) -> Value {
        if row.live {
            self.json(dataset, id)
        } else {
            json!({"id": id, "deleted": true, "changed_at": row.at.to_string()})
        }
    }

    /// The ids that a license shows, computed from its scope alone.
    pub fn visible(&self, license: usize, dataset: Dataset) -> Vec<u64> {
        let scope = &self.licenses[license].scope;
        let records = self.records[dataset].iter();
        records
            .filter(|(_, stored)| scope.sees(dataset, &stored.record))
            .map(|(id, _)| *id)
            .collect()
    }

    /// A record as callers receive it.
    pub fn json(&self, dataset: Dataset, id: u64) -> Value {
        let Stored { record, updated_at } = &self.records[dataset][&id];
        let organization = |id: &u64| json!({"id": id, "name": self.organizations[id], "abbv": null, "type": null, "url": null});
        let tag =
            |id: &u64| json!({"id": id, "type": "Topic", "name": self.tags[id], "category": null});
        let mut object = json!({
            "id": id,
            "name": record.words(),
            "abbv": record.abbv.map(|at| WORDS[at].0),
            "organizations": record.organizations.iter().map(organization).collect::<Vec<_>>(),
            "tags": record.tags.iter().map(tag).collect::<Vec<_>>(),
            "updated_at": updated_at.to_string(),
            "url": null,
        });
        let weeks = json!({"min_weeks": null, "max_weeks": null});
        let more = match dataset {
            Dataset::Conferences => json!({
                "year": record.year,
                "start_date": record.start,
                "start_date_status": if record.start.is_some() { "confirmed" } else { "check" },
                "end_date": null,
                "abstract_due_date": null,
                "abstract_due_date_status": "not_found",
                "late_breaking_due_date": null,
                "late_breaking_due_date_status": "check",
                "country": record.country,
                "city": null,
                "venue": format!("Hall {}", record.version),
                "therapy_areas": record.areas,
                "formats": {"oral": null, "poster": null, "e_poster": null, "published_abstract": null, "encore": null},
            }),
            Dataset::Journals => json!({
                "issn_print": null,
                "issn_online": null,
                "publisher": null,
                "impact_factor": null,
                "impact_factor_year": null,
                "citescore": null,
                "sjr": null,
                "h_index": record.version,
                "publishing": {"access": null, "content_license": null, "apc_usd": null, "embargo_months": null},
                "timelines": {
                    "submit_to_first_decision": weeks, "online_submit_to_accept": weeks,
                    "accept_to_online": weeks, "accept_to_print": weeks,
                },
            }),
        };
        let (Value::Object(all), Value::Object(more)) = (&mut object, more) else {
            unreachable!("objects")
        };
        all.extend(more);
        object
    }
}
