//! Lint: warnings about probable mistakes in valid rows. A warning alone does not stop an import.
//!
//! Each file has a table of rules:
//! - [`texts`]: placeholders and damaged text. [`addresses`], [`issn`]: texts with a fixed form.
//! - [`mojibake`]: UTF-8 that was decoded in a single-byte encoding.
//! - [`dates`]: conferences. [`numbers`]: journals.
//! - [`duplicates`]: rows that probably describe the same thing.
//! - [`spellings`]: words that licenses compare exactly, with the vocabularies [`areas`] and [`countries`].
//! - [`edit_distance`]: the distance of two texts, with a time limit.
//!
//! [`rule`] defines rules, and [`lintable`] the values that they check. An import reports the rows that it changes.
//! `medfeed lint` reports all rows.

mod addresses;
mod areas;
mod countries;
mod dates;
mod duplicates;
mod edit_distance;
mod issn;
mod lintable;
mod mojibake;
mod numbers;
#[cfg(test)]
mod real_names;
pub mod rule;
mod spellings;
mod texts;

use std::collections::BTreeMap;
use std::sync::Arc;

use self::areas::AREAS;
use self::countries::COUNTRIES;
use self::duplicates::{Compared, Duplicates, KnownKeys};
pub(in crate::import) use self::issn::valid_issn;
pub(in crate::import) use self::lintable::Lintable;
pub use self::rule::RowLocation;
use self::rule::{Hit, TextRule};
use self::spellings::Spellings;
use crate::import::report::faults::Finding;
use crate::model::reference::Referenced;
use crate::model::{ConferenceFields, Curated, Dataset, Fields, Id, JournalFields, License, RecordFields};
use crate::store::{Snapshot, StoreError};

const TEXT_RULES: [&[TextRule]; 3] = [texts::RULES, addresses::RULES, issn::RULES];

/// The maximum number of findings per rule that are kept.
const MAX_KEPT: usize = 1_000;

/// The rows that lint reports.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Extent {
    /// Rows that the import changes.
    #[default]
    New,
    /// All rows, including stored ones.
    All,
}

/// Checks rows one by one, and finally compares them.
pub struct Lint {
    extent: Extent,
    findings: Findings,
    duplicates: Duplicates,
    spellings: [Spellings; 2],
}

impl std::fmt::Debug for Lint {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Lint").field("extent", &self.extent).finish_non_exhaustive()
    }
}

impl Lint {
    /// Creates a check without rows.
    pub fn new(extent: Extent) -> Lint {
        let spellings = [Spellings::new(&AREAS), Spellings::new(&COUNTRIES)];
        Lint { extent, findings: Findings::default(), duplicates: Duplicates::default(), spellings }
    }

    /// Checks an imported row. `before` is the stored version. For a full object in another row, `within` is the field
    /// that contains it.
    pub(in crate::import) fn check<F: Lintable>(
        &mut self,
        location: &RowLocation,
        within: Option<&str>,
        before: Option<&Curated<F>>,
        after: &Curated<F>,
    ) {
        let stored = before;
        let before = before.filter(|_| self.extent == Extent::New);
        let is_unchanged = before == Some(after);
        let mut hits = if is_unchanged { Vec::new() } else { hits(after.fields()) };
        if let Some(before) = before.filter(|_| !hits.is_empty()) {
            let known = self::hits(before.fields());
            hits.retain(|hit| !known.contains(hit));
        }
        for mut hit in hits {
            if let Some(within) = within {
                hit.field = format!("{within}.{}", hit.field);
            }
            self.findings.add(location, hit);
        }
        let known = match before {
            None => KnownKeys::Nothing,
            Some(_) if is_unchanged => KnownKeys::All,
            Some(before) => KnownKeys::Keys(before.fields().names(), before.fields().match_keys()),
        };
        self.compare(location, known, after, false);
        for spellings in &mut self.spellings {
            let vocabulary = spellings.vocabulary;
            let words = after.fields().words_of(vocabulary);
            let known = before.map(|row| row.fields().words_of(vocabulary)).unwrap_or_default();
            let stored = stored.map(|row| row.fields().words_of(vocabulary)).unwrap_or_default();
            spellings.add_row(location, after.id(), &words, &known, &stored);
        }
    }

    /// Records that the import removes the row.
    pub(in crate::import) fn remove<F: Lintable>(&mut self, row: &Curated<F>) {
        for spellings in &mut self.spellings {
            let words = row.fields().words_of(spellings.vocabulary);
            spellings.add_row(&RowLocation::of_stored::<F>(row.id()), row.id(), &[], &[], &words);
        }
    }

    /// Compares a stored row that is not in the import with the imported rows, after all of them were checked.
    pub(in crate::import) fn compare_stored<F: Lintable>(&mut self, row: &Curated<F>) {
        self.compare(&RowLocation::of_stored::<F>(row.id()), KnownKeys::All, row, true);
    }

    fn compare<F: Lintable>(
        &mut self,
        location: &RowLocation,
        known: KnownKeys<'_>,
        after: &Curated<F>,
        is_untouched: bool,
    ) {
        let Lint { findings, duplicates, .. } = self;
        let fields = after.fields();
        let compared = Compared {
            location,
            row: (F::STEM, after.id().get()),
            names: fields.names(),
            match_keys: fields.match_keys(),
            known,
            is_untouched,
        };
        duplicates.compare(compared, &mut |location, hit| findings.add(location, hit));
    }

    /// Compares the imported rows with the stored records.
    pub(in crate::import) fn compare_with_stored(
        &mut self,
        state: &Snapshot,
        is_imported: &dyn Fn(Dataset, Id) -> bool,
    ) -> Result<(), StoreError> {
        let has_words = self.spellings.iter().any(Spellings::has_new);
        if has_words || self.duplicates.kinds_with_new.contains(ConferenceFields::STEM) {
            state.for_each_record::<ConferenceFields, StoreError>(|record, _, _| {
                for spellings in self.spellings.iter_mut().filter(|_| has_words) {
                    let words = record.fields().words_of(spellings.vocabulary);
                    spellings.add_stored(record.id(), &words, self.extent == Extent::All);
                }
                if !is_imported(Dataset::Conferences, record.id()) {
                    self.compare_stored(&record);
                }
                Ok(())
            })?;
        }
        if self.duplicates.kinds_with_new.contains(JournalFields::STEM) {
            state.for_each_record::<JournalFields, StoreError>(|record, _, _| {
                if !is_imported(Dataset::Journals, record.id()) {
                    self.compare_stored(&record);
                }
                Ok(())
            })?;
        }
        Ok(())
    }

    /// Checks words across all rows. Returns all findings.
    pub(in crate::import) fn finish(mut self, licenses: &[&Arc<License>]) -> Vec<Finding> {
        for spellings in &mut self.spellings {
            for (location, hit) in spellings.check(licenses, self.extent == Extent::All, &mut self.duplicates.budget) {
                self.findings.add(&location, hit);
            }
        }
        if self.duplicates.budget.left_out > 0 {
            self.findings.add_left_out(self.duplicates.budget.left_out);
        }
        self.findings.into_vec()
    }
}

/// Returns the findings about a single row.
fn hits<F: Lintable>(fields: &F) -> Vec<Hit> {
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

/// The findings of a run. The first ones of each rule are kept, and all are counted.
#[derive(Debug, Default)]
struct Findings {
    kept: Vec<Finding>,
    counts: BTreeMap<&'static str, usize>,
    /// Findings without a location, which are listed last.
    unlocated: Vec<Finding>,
}

impl Findings {
    fn add(&mut self, location: &RowLocation, hit: Hit) {
        let count = self.counts.entry(hit.rule).or_default();
        *count += 1;
        if *count <= MAX_KEPT {
            self.kept.push(location.finding(&hit));
        }
    }

    /// Reports that comparisons were skipped because they would take too long.
    fn add_left_out(&mut self, count: u64) {
        let message = format!(
            "{count} pairs of names or words were not compared, since that would take too long; check for duplicates \
             and misspellings yourself"
        );
        self.unlocated.push(Finding { message, ..Finding::default() }.of_rule("not_compared"));
    }

    fn into_vec(self) -> Vec<Finding> {
        let Findings { mut kept, counts, unlocated } = self;
        let mut files: Vec<Option<String>> = Vec::new();
        for finding in &kept {
            if !files.contains(&finding.file) {
                files.push(finding.file.clone());
            }
        }
        kept.sort_by_cached_key(|finding| {
            (files.iter().position(|file| *file == finding.file), finding.line, finding.kind, finding.id)
        });
        kept.extend(unlocated);
        kept.extend(counts.into_iter().filter(|(_, count)| *count > MAX_KEPT).map(|(rule, count)| {
            let message = format!("{} more findings of the rule `{rule}`", count - MAX_KEPT);
            Finding { message, ..Finding::default() }.of_rule(rule)
        }));
        kept
    }
}

/// Checks all rows of a database.
pub fn lint_database(snapshot: &Snapshot) -> Result<Vec<Finding>, StoreError> {
    fn records<F: RecordFields + Lintable>(snapshot: &Snapshot, lint: &mut Lint) -> Result<(), StoreError> {
        snapshot.for_each_record::<F, StoreError>(|record, _, _| {
            lint.check(&RowLocation::of_stored::<F>(record.id()), None, None, &record);
            Ok(())
        })
    }
    fn references<F: Lintable>(rows: &BTreeMap<Id, Referenced<F>>, lint: &mut Lint) {
        for (id, found) in rows {
            lint.check(&RowLocation::of_stored::<F>(*id), None, None, &found.row);
        }
    }
    let mut lint = Lint::new(Extent::All);
    let all = snapshot.references()?;
    references(&all.organizations, &mut lint);
    references(&all.tags, &mut lint);
    records::<ConferenceFields>(snapshot, &mut lint)?;
    records::<JournalFields>(snapshot, &mut lint)?;
    Ok(lint.finish(&snapshot.list_licenses()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hit(rule: &'static str, field: &str) -> Hit {
        Hit { rule, field: field.to_owned(), value: None, message: "x".to_owned() }
    }

    #[test]
    fn findings_beyond_a_thousand_of_a_rule_are_counted() {
        let shown = |count: usize| {
            let mut findings = Findings::default();
            for id in 1..=u64::try_from(count).unwrap() {
                let location = RowLocation::of_stored::<JournalFields>(Id::try_from(id).unwrap());
                findings.add(&location, hit("blanks", "city"));
            }
            // Another rule has a thousand of its own.
            findings.add(&RowLocation::of_stored::<JournalFields>(Id::MAX), hit("formula", "name"));
            let found = findings.into_vec();
            (found.len(), found.last().unwrap().message.clone())
        };
        assert_eq!(shown(MAX_KEPT - 1), (MAX_KEPT, "x".to_owned()));
        assert_eq!(shown(MAX_KEPT), (MAX_KEPT + 1, "x".to_owned()));
        assert_eq!(shown(MAX_KEPT + 1), (MAX_KEPT + 2, "1 more findings of the rule `blanks`".to_owned()));
        assert_eq!(shown(MAX_KEPT + 2), (MAX_KEPT + 2, "2 more findings of the rule `blanks`".to_owned()));
    }

    #[test]
    fn findings_are_listed_by_file_and_line_and_then_by_kind_and_id() {
        use crate::import::report::faults::FilePosition;
        let file = |file: &str, line| RowLocation::File(FilePosition { file: file.into(), line });
        let stored = |kind, id| RowLocation::Database(kind, Id::try_from(id).unwrap());
        let mut findings = Findings::default();
        let locations = [
            file("b.csv", 10),
            file("a.csv", 7),
            file("b.csv", 9),
            stored("journals", 1),
            stored("conferences", 3),
            file("a.csv", 2),
            stored("conferences", 2),
        ];
        findings.add_left_out(5);
        for location in &locations {
            findings.add(location, hit("blanks", "city"));
        }
        let shown: Vec<String> = findings.into_vec().iter().map(ToString::to_string).collect();
        let expected = [
            "b.csv:9: city: x",
            "b.csv:10: city: x",
            "a.csv:2: city: x",
            "a.csv:7: city: x",
            "conferences 2: city: x",
            "conferences 3: city: x",
            "journals 1: city: x",
        ];
        assert_eq!(shown[..7], expected);
        assert!(shown.len() == 8 && shown[7].starts_with("5 pairs of names or words were not compared"), "{shown:?}");
    }

    #[test]
    fn every_rule_is_documented_once() {
        let manual = include_str!("../../../docs/import.md");
        let texts = TEXT_RULES.into_iter().flatten().map(|rule| rule.name);
        let rows = dates::RULES.iter().map(|rule| rule.name).chain(numbers::RULES.iter().map(|rule| rule.name));
        let compared = ["same_name_and_year", "same_name", "same_meeting", "issn_twice"];
        let words = [AREAS.rules, COUNTRIES.rules].concat();
        for rule in texts.chain(rows).chain(compared).chain(words) {
            assert_eq!(manual.matches(&format!("`{rule}`")).count(), 1, "{rule}");
        }
    }
}
