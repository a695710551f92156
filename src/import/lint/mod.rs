//! Lint: what may be stored, and is most likely a mistake all the same. Nothing of it stops a run by itself.
//!
//! A rule is one item in a table; each family of rules is a file:
//! - [`texts`]: texts that are none, or that lost something on their way. [`addresses`], [`issn`]: texts of one form.
//! - [`dates`]: of conferences. [`numbers`]: of journals.
//! - [`twins`]: rows that are most likely one thing entered twice.
//! - [`spellings`]: words that licenses compare exactly, by the vocabularies [`areas`] and [`countries`].
//!
//! [`rule`] tells what a rule is, [`linted`] what rules look at in each kind of row. An import is told of what it brings in;
//! `medfeed lint` of all that is there.

mod addresses;
mod areas;
mod countries;
mod dates;
mod issn;
mod linted;
mod numbers;
pub mod rule;
mod spellings;
mod texts;
mod twins;

use std::collections::BTreeMap;

use self::areas::AREAS;
use self::countries::COUNTRIES;
pub use self::countries::same_country;
pub(in crate::import) use self::linted::Linted;
pub use self::rule::Place;
use self::rule::{Hit, TextRule};
use self::spellings::Spellings;
use self::twins::{Trait, Twins};
use super::report::Finding;
use crate::model::reference::Referenced;
use crate::model::{Curated, Id, License, RecordFields};
use crate::store::{Snapshot, StoreError};

/// The rules about texts.
const TEXT_RULES: [&[TextRule]; 3] = [texts::RULES, addresses::RULES, issn::RULES];

/// The most findings of a rule that are kept.
const MAX_KEPT: usize = 1_000;

/// What is told.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Extent {
    /// What the run brings in.
    #[default]
    New,
    /// Also what the database holds already.
    All,
}

/// Looks at rows one after the other, and at last compares them.
pub struct Lint {
    extent: Extent,
    findings: Findings,
    twins: Twins,
    spellings: [Spellings; 2],
}

impl std::fmt::Debug for Lint {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Lint").field("extent", &self.extent).finish_non_exhaustive()
    }
}

impl Lint {
    /// Has seen no row yet.
    pub fn new(extent: Extent) -> Lint {
        let spellings = [Spellings::new(&AREAS), Spellings::new(&COUNTRIES)];
        Lint { extent, findings: Findings::default(), twins: Twins::default(), spellings }
    }

    /// Looks at a row that the run states: `before` in the database, `after` the run. `within` is the field that states it,
    /// where it is an object in another row.
    pub(in crate::import) fn look<F: Linted>(
        &mut self,
        place: &Place,
        within: Option<&str>,
        before: Option<&Curated<F>>,
        after: &Curated<F>,
    ) {
        let before = before.filter(|_| self.extent == Extent::New);
        let mut hits = if before == Some(after) { Vec::new() } else { hits(after.fields()) };
        if let Some(before) = before.filter(|_| !hits.is_empty()) {
            let known = self::hits(before.fields());
            hits.retain(|hit| !known.contains(hit));
        }
        for mut hit in hits {
            if let Some(within) = within {
                hit.field = format!("{within}.{}", hit.field);
            }
            self.findings.add(place, hit);
        }
        self.compare(place, before, after, false);
    }

    /// Takes a row of the database that the run does not state, for those that it states to be compared with: after them.
    pub(in crate::import) fn pass<F: Linted>(&mut self, row: &Curated<F>) {
        self.compare(&Place::of_stored::<F>(row.id()), None, row, true);
    }

    fn compare<F: Linted>(&mut self, place: &Place, before: Option<&Curated<F>>, after: &Curated<F>, stays: bool) {
        let known: Vec<Trait> = before.map(|before| before.fields().traits()).unwrap_or_default();
        let Lint { findings, twins, spellings, .. } = self;
        twins.look(place, (F::STEM, after.id().get()), after.fields().traits(), &known, stays, &mut |place, hit| {
            findings.add(place, hit);
        });
        for spellings in spellings {
            let known = before.map(|before| before.fields().words_of(spellings.vocabulary)).unwrap_or_default();
            spellings.look(place, &after.fields().words_of(spellings.vocabulary), &known, stays);
        }
    }

    /// Judges what only all rows together tell. Returns all that was found.
    pub fn finish(mut self, licenses: &[License]) -> Vec<Finding> {
        for spellings in &self.spellings {
            spellings.judge(licenses, self.extent == Extent::All, &mut |place, hit| self.findings.add(place, hit));
        }
        self.findings.into_vec()
    }
}

/// What is found in one row by itself.
fn hits<F: Linted>(fields: &F) -> Vec<Hit> {
    let mut hits = Vec::new();
    for (field, value) in F::table().fields.iter().zip(fields.values()) {
        for text in value.texts() {
            let found = TEXT_RULES.into_iter().flatten().filter_map(|rule| {
                let message = (rule.find)(&field.name, text)?;
                Some(Hit { rule: rule.name, field: field.name.clone(), value: Some(text.clone()), message })
            });
            hits.extend(found);
        }
    }
    hits.extend(F::RULES.iter().filter_map(|rule| {
        let fault = (rule.find)(fields)?;
        Some(Hit { rule: rule.name, field: fault.field.to_owned(), value: fault.value, message: fault.message })
    }));
    hits
}

/// The findings of a run. Of each rule the first are kept, and all are counted.
#[derive(Debug, Default)]
struct Findings {
    kept: Vec<Finding>,
    counts: BTreeMap<&'static str, usize>,
}

impl Findings {
    fn add(&mut self, place: &Place, hit: Hit) {
        let count = self.counts.entry(hit.rule).or_default();
        *count += 1;
        if *count <= MAX_KEPT {
            self.kept.push(place.finding(&hit));
        }
    }

    fn into_vec(self) -> Vec<Finding> {
        let Findings { mut kept, counts } = self;
        let mut files: Vec<Option<String>> = Vec::new();
        for finding in &kept {
            if !files.contains(&finding.file) {
                files.push(finding.file.clone());
            }
        }
        kept.sort_by_cached_key(|finding| {
            (files.iter().position(|file| *file == finding.file), finding.line, finding.kind, finding.id)
        });
        kept.extend(counts.into_iter().filter(|(_, count)| *count > MAX_KEPT).map(|(rule, count)| {
            let message = format!("{} more like those of the rule `{rule}` above", count - MAX_KEPT);
            Finding { message, ..Finding::default() }.of_rule(rule)
        }));
        kept
    }
}

/// Lints all that a database holds.
///
/// # Errors
/// When the database cannot be read.
pub fn lint_database(snapshot: &Snapshot) -> Result<Vec<Finding>, StoreError> {
    fn records<F: RecordFields + Linted>(snapshot: &Snapshot, lint: &mut Lint) -> Result<(), StoreError> {
        snapshot.for_each_record::<F, StoreError>(|record, _, _| {
            lint.look(&Place::of_stored::<F>(record.id()), None, None, &record);
            Ok(())
        })
    }
    fn references<F: Linted>(rows: &BTreeMap<Id, Referenced<F>>, lint: &mut Lint) {
        for (id, found) in rows {
            lint.look(&Place::of_stored::<F>(*id), None, None, &found.row);
        }
    }
    let mut lint = Lint::new(Extent::All);
    let all = snapshot.references()?;
    references(&all.organizations, &mut lint);
    references(&all.tags, &mut lint);
    records::<crate::model::ConferenceFields>(snapshot, &mut lint)?;
    records::<crate::model::JournalFields>(snapshot, &mut lint)?;
    let licenses: Vec<License> = snapshot.list_licenses().into_iter().map(|license| (**license).clone()).collect();
    Ok(lint.finish(&licenses))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_rule_is_documented_once() {
        let readme = include_str!("../../../README.md");
        let texts = TEXT_RULES.into_iter().flatten().map(|rule| rule.name);
        let rows = dates::RULES.iter().map(|rule| rule.name).chain(numbers::RULES.iter().map(|rule| rule.name));
        let compared = ["same_name_and_year", "same_name", "same_meeting", "issn_twice"];
        let words = [AREAS.rules, COUNTRIES.rules].concat();
        for rule in texts.chain(rows).chain(compared).chain(words) {
            assert!(readme.contains(&format!("`{rule}`")), "{rule}");
        }
    }
}
