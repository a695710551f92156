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
use self::duplicates::{Duplicates, KnownKeys};
pub(in crate::import) use self::issn::valid_issn;
pub(in crate::import) use self::lintable::Lintable;
pub use self::rule::RowLocation;
use self::rule::TextRule;
use self::spellings::Spellings;
pub(in crate::import) use self::texts::is_placeholder;
use crate::import::report::faults::{Finding, sort_by_file};
use crate::model::reference::Referenced;
use crate::model::{ConferenceFields, Curated, Dataset, Fault, Fields, Id, JournalFields, License, RecordFields};
use crate::store::{Snapshot, StoreError};

const TEXT_RULES: [&[TextRule]; 3] = [texts::RULES, addresses::RULES, issn::RULES];

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
#[derive(Debug)]
pub struct Lint {
    extent: Extent,
    findings: Vec<Finding>,
    duplicates: Duplicates,
    spellings: [Spellings; 2],
}

impl Lint {
    /// Creates a check without rows.
    pub fn new(extent: Extent) -> Lint {
        let spellings = [Spellings::new(&AREAS), Spellings::new(&COUNTRIES)];
        Lint { extent, findings: Vec::new(), duplicates: Duplicates::default(), spellings }
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
        let mut hits = if is_unchanged { Vec::new() } else { hits(location, after.fields()) };
        if let Some(before) = before.filter(|_| !hits.is_empty()) {
            let known = self::hits(location, before.fields());
            hits.retain(|hit| !known.contains(hit));
        }
        if let Some(within) = within {
            for hit in &mut hits {
                hit.field = hit.field.take().map(|field| format!("{within}.{field}"));
            }
        }
        self.findings.append(&mut hits);
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
        let row = (F::STEM, after.id().get());
        findings.extend(duplicates.compare(location, row, fields.names(), fields.match_keys(), &known, is_untouched));
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
            self.findings.extend(spellings.check(licenses, self.extent == Extent::All));
        }
        let mut findings = self.findings;
        sort_by_file(&mut findings, |finding| &finding.file, |finding| (finding.line, finding.kind, finding.id));
        findings
    }
}

/// Returns the findings about a single row.
fn hits<F: Lintable>(location: &RowLocation, fields: &F) -> Vec<Finding> {
    let mut hits = Vec::new();
    for (field, value) in F::table().fields.iter().zip(fields.values()) {
        for text in value.texts() {
            let found = TEXT_RULES.into_iter().flatten().filter_map(|rule| {
                let message = (rule.find)(&field.name, text)?;
                Some(location.finding(rule.name, &field.name, Some(text), message))
            });
            hits.extend(found);
        }
    }
    hits.extend(F::RULES.iter().filter_map(|rule| {
        let Fault { field, value, message } = (rule.find)(fields)?;
        Some(location.finding(rule.name, field, value.as_deref(), message))
    }));
    hits
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

    #[test]
    fn findings_are_listed_by_file_and_line_and_then_by_kind_and_id() {
        use crate::import::report::faults::FilePosition;
        let file = |file: &str, line| RowLocation::File(FilePosition { file: file.into(), line });
        let stored = |kind, id| RowLocation::Database(kind, Id::try_from(id).unwrap());
        let mut lint = Lint::new(Extent::All);
        let locations = [
            file("b.csv", 10),
            file("a.csv", 7),
            file("b.csv", 9),
            stored("journals", 1),
            stored("conferences", 3),
            file("a.csv", 2),
            stored("conferences", 2),
        ];
        lint.findings = locations.iter().map(|location| location.finding("blanks", "city", None, "x")).collect();
        let shown: Vec<String> = lint.finish(&[]).iter().map(ToString::to_string).collect();
        let expected = [
            "b.csv:9: city: x",
            "b.csv:10: city: x",
            "a.csv:2: city: x",
            "a.csv:7: city: x",
            "conferences 2: city: x",
            "conferences 3: city: x",
            "journals 1: city: x",
        ];
        assert_eq!(shown, expected);
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
