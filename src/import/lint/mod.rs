//! Lint: warnings about probable mistakes in valid rows. A warning alone does not stop an import.
//!
//! Each file has a table of rules:
//! - [`texts`]: placeholders, damaged texts (with [`mojibake`]), addresses and ISSNs.
//! - [`row_rules`]: values of a conference or a journal that contradict each other, or that no row has.
//! - [`duplicates`]: rows that probably describe the same thing, by their [`identity`]
//!   and the [`likeness`] of their names.
//! - [`spellings`]: words that licenses compare exactly.
//!
//! [`rule`] defines rules, and [`lintable`] the values that they check. An import reports what `medfeed lint` finds
//! after it, about the values that it brings. A rule may know the right value, which `import --fix` writes.

mod duplicates;
mod identity;
mod likeness;
mod lintable;
mod mojibake;
mod row_rules;
pub mod rule;
mod spellings;
mod texts;

use std::collections::BTreeMap;
use std::iter::successors;
use std::sync::Arc;

use memchr::memmem;

pub(crate) use self::duplicates::ComparedRow;
use self::duplicates::{Duplicates, FindRow};
pub(crate) use self::lintable::Lintable;
use self::row_rules::crowded_days;
pub use self::rule::RowLocation;
use self::rule::Uses;
use self::spellings::{AREAS, COUNTRIES, check_words};
pub(crate) use self::spellings::{Respellings, is_area};
pub(crate) use self::texts::{
    ISSN_COLUMNS, ValidIssns, is_placeholder, may_be_name, valid_issn, valid_issns,
};
use crate::import::findings::{Finding, Findings};
use crate::model::reference::{ReferenceFields, Referenced};
use crate::model::{ConferenceFields, Curated, Fields, Id, JournalFields, License, RecordFields};
use crate::store::{Snapshot, StoreError};

/// The fields with values that are compared across all rows: words of licenses, and the first day.
const SHARED_FIELDS: [&str; 3] = [AREAS.field, COUNTRIES.field, "start_date"];

/// A field of [`SHARED_FIELDS`], and a value.
type SharedValue = (&'static str, String);

/// Checks rows one by one, and finally compares them. An import reports what lint finds afterwards, about the values
/// that it brings.
#[derive(Debug, Default)]
pub struct Lint {
    /// Whether values that the database has already are reported too.
    checks_all: bool,
    duplicates: Duplicates,
    /// The rows with each shared value.
    uses: BTreeMap<&'static str, BTreeMap<String, Uses>>,
}

impl Lint {
    /// Creates a check without rows. With `checks_all`, it reports values that the database has already, too.
    pub fn new(checks_all: bool) -> Lint {
        Lint {
            checks_all,
            ..Lint::default()
        }
    }

    /// Checks an imported row, or compares a stored one that is not in the import with the imported rows, after all of
    /// them were checked. `find` finds the rows that were checked before.
    pub(crate) fn check<F: Lintable>(
        &mut self,
        row: ComparedRow<'_, F>,
        find: &FindRow<'_, F>,
        findings: &mut Findings,
    ) {
        let before = row.before.filter(|_| !self.checks_all);
        let row = ComparedRow { before, ..row };
        if row.is_imported && before != Some(row.fields) {
            let mut found = findings_of(&row.location, row.fields);
            if let Some(before) = before.filter(|_| !found.is_empty()) {
                let known = findings_of(&row.location, before);
                found.retain(|finding| !known.contains(finding));
            }
            findings.extend(found);
        }
        findings.extend(self.duplicates.compare(&row, find));
        if !row.is_imported {
            return;
        }
        let known = before.map(shared_values).unwrap_or_default();
        for value in shared_values(row.fields) {
            let is_brought = !known.contains(&value);
            self.uses_of(value).add(&row.location, is_brought);
            if is_brought {
                // Every record has the empty mark.
                self.duplicates.bring::<F>(String::new());
            }
        }
    }

    fn uses_of(&mut self, (field, text): SharedValue) -> &mut Uses {
        self.uses.entry(field).or_default().entry(text).or_default()
    }

    /// Compares the imported rows of a dataset with the stored records. If the import brings no name, number, word or day,
    /// there is nothing to compare, and no record is read. If it brings few names, only records with their marks are.
    pub(crate) fn compare_with_stored<F: RecordFields + Lintable>(
        &mut self,
        state: &Snapshot,
        is_imported: &dyn Fn(Id) -> bool,
        find: &FindRow<'_, F>,
        findings: &mut Findings,
    ) -> Result<(), StoreError> {
        const MAX_MARKS: usize = 8;
        let Some(marks) = self.duplicates.brought.remove(F::STEM) else {
            return Ok(());
        };
        let is_read = |text: &[u8]| {
            let mut marks = marks.iter().map(String::as_bytes);
            marks.len() > MAX_MARKS || marks.any(|mark| memmem::find(text, mark).is_some())
        };
        state.for_each_unlinked::<F>(is_read, |id, fields| {
            let is_kept = !is_imported(id);
            for value in shared_values(&fields) {
                self.uses_of(value).add_stored(is_kept);
            }
            if is_kept {
                self.check(ComparedRow::stored(id, &fields), find, findings);
            }
        })
    }

    /// Checks words and days across all rows, and adds the findings. Returns the words with one right spelling.
    pub(crate) fn finish(
        mut self,
        licenses: &[&Arc<License>],
        findings: &mut Findings,
    ) -> Respellings {
        let mut respellings = Respellings::new();
        let [areas, countries, days] =
            SHARED_FIELDS.map(|field| self.uses.remove(field).unwrap_or_default());
        for (vocabulary, words) in [(&AREAS, areas), (&COUNTRIES, countries)] {
            findings.extend(check_words(vocabulary, &words, licenses, &mut respellings));
        }
        findings.extend(crowded_days(&days));
        findings.sort();
        respellings
    }
}

/// Returns the shared values of a row.
fn shared_values<F: Fields>(fields: &F) -> Vec<SharedValue> {
    let values = fields.values();
    let mut shared = Vec::new();
    for field in SHARED_FIELDS {
        let Some(at) = F::table().index_of(field) else {
            continue;
        };
        let value = values[at];
        let texts = value.texts().iter().cloned();
        let day = (value.rank() > 0).then(|| value.to_csv(&()).into_owned());
        shared.extend(texts.chain(day).map(|text| (field, text)));
    }
    shared
}

/// Returns a word of a vocabulary without common differences of spelling, and any other text as it is.
pub(crate) fn comparable_word(field: &str, word: &str) -> String {
    match [&AREAS, &COUNTRIES]
        .into_iter()
        .find(|vocabulary| vocabulary.field == field)
    {
        Some(vocabulary) => (vocabulary.comparable)(word),
        None => word.to_owned(),
    }
}

/// Returns the right value of a text, if there is exactly one. An empty text is null.
pub(crate) fn fix_text(field: &str, text: &str) -> Option<String> {
    // A right value may break another rule. Rules do not undo each other, but a hostile text has many faults.
    const MAX_STEPS: usize = 20;
    let right = |text: &str| {
        texts::RULES
            .iter()
            .find_map(|(_, find)| find(field, text)?.right)
    };
    successors(right(text), |fixed| right(fixed))
        .take(MAX_STEPS)
        .last()
}

/// Returns the findings about a single row.
fn findings_of<F: Lintable>(location: &RowLocation, fields: &F) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (field, value) in F::table().fields.iter().zip(fields.values()) {
        for text in value.texts() {
            let found = texts::RULES.iter().filter_map(|(rule, find)| {
                let message = find(&field.name, text)?;
                Some(location.finding(rule, &field.name, Some(text), message))
            });
            findings.extend(found);
        }
    }
    findings.extend(F::RULES.iter().filter_map(|(rule, find)| {
        let fault = find(fields)?;
        Some(location.finding(rule, fault.field, fault.value.as_deref(), fault.message))
    }));
    findings
}

/// Checks all rows of a database.
pub fn lint_database(snapshot: &Snapshot) -> Result<Findings, StoreError> {
    let mut lint = Lint::new(true);
    let mut findings = Findings::default();
    let all = snapshot.references()?;
    check_references(&mut lint, &all.organizations, &mut findings);
    check_references(&mut lint, &all.tags, &mut findings);
    check_records::<ConferenceFields>(&mut lint, snapshot, &mut findings)?;
    check_records::<JournalFields>(&mut lint, snapshot, &mut findings)?;
    lint.finish(&snapshot.list_licenses(), &mut findings);
    Ok(findings)
}

fn check_references<F: ReferenceFields>(
    lint: &mut Lint,
    all: &BTreeMap<Id, Referenced<F>>,
    findings: &mut Findings,
) {
    let find = |id| Some(all.get(&id)?.row.fields().clone());
    for found in all.values() {
        check_stored(lint, &found.row, &find, findings);
    }
}

fn check_records<F: RecordFields + Lintable>(
    lint: &mut Lint,
    snapshot: &Snapshot,
    findings: &mut Findings,
) -> Result<(), StoreError> {
    let find = |id| Some(snapshot.find_stored(id).ok()??.into_fields());
    snapshot.for_each_record::<F, StoreError>(|record, _, _| {
        check_stored(lint, &record, &find, findings);
        Ok(())
    })
}

/// Checks a row of the database as an imported one.
fn check_stored<F: Lintable>(
    lint: &mut Lint,
    row: &Curated<F>,
    find: &dyn Fn(Id) -> Option<F>,
    findings: &mut Findings,
) {
    let row = ComparedRow {
        is_imported: true,
        ..ComparedRow::stored(row.id(), row.fields())
    };
    let find = |id| Some((RowLocation::Database(F::STEM, id), find(id)?));
    lint.check(row, &find, findings);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn findings_are_listed_by_file_and_line_and_then_by_kind_and_id() {
        use crate::import::findings::FilePosition;
        let file = |file: &str, line| RowLocation::File(FilePosition::new(file.into(), line), None);
        let stored = |kind, id| RowLocation::Database(kind, Id::try_from(id).unwrap());
        let locations = [
            file("b.csv", 10),
            file("a.csv", 7),
            file("b.csv", 9),
            stored("journals", 1),
            stored("conferences", 3),
            file("a.csv", 2),
            stored("conferences", 2),
        ];
        let mut findings = Findings::default();
        findings.extend(
            locations
                .iter()
                .map(|location| location.finding("blanks", "city", None, "x")),
        );
        Lint::new(true).finish(&[], &mut findings);
        let shown: Vec<String> = findings.kept().iter().map(ToString::to_string).collect();
        let expected = words![
            "b.csv:9: city: x" "b.csv:10: city: x" "a.csv:2: city: x" "a.csv:7: city: x"
            "conferences 2: city: x" "conferences 3: city: x" "journals 1: city: x"
        ];
        assert_eq!(shown, expected);
    }

    #[test]
    fn every_rule_is_documented_once() {
        let manual = include_str!("../../../docs/import.md");
        let texts = texts::RULES.iter().map(|rule| rule.0);
        let rows = row_rules::CONFERENCE_RULES.iter().map(|rule| rule.0);
        let rows = rows.chain(row_rules::JOURNAL_RULES.iter().map(|rule| rule.0));
        let compared = [
            "same_name_and_year",
            "same_name",
            "same_meeting",
            "issn_twice",
            row_rules::CROWDED_DAY,
        ];
        let words = [AREAS.rules, COUNTRIES.rules].concat();
        for rule in texts.chain(rows).chain(compared).chain(words) {
            assert_eq!(manual.matches(&format!("`{rule}`")).count(), 1, "{rule}");
        }
    }
}
