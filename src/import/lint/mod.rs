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

use jiff::civil::Date;
use memchr::memmem;

pub(in crate::import) use self::duplicates::FindRow;
use self::duplicates::{ComparedRow, Duplicates};
pub(in crate::import) use self::lintable::Lintable;
use self::row_rules::crowded_days;
pub use self::rule::RowLocation;
use self::rule::Uses;
use self::spellings::{AREAS, COUNTRIES, Spellings};
pub(in crate::import) use self::spellings::{Respelling, is_area};
pub(in crate::import) use self::texts::{is_placeholder, may_be_name, valid_issn};
use crate::import::findings::{Finding, Findings};
use crate::model::reference::{ReferenceFields, Referenced};
use crate::model::{ConferenceFields, Curated, Id, JournalFields, License, RecordFields};
use crate::store::{Snapshot, StoreError};

/// Checks rows one by one, and finally compares them. An import reports what lint finds afterwards, about the values
/// that it brings.
#[derive(Debug)]
pub struct Lint {
    /// Whether values that the database has already are reported too.
    checks_all: bool,
    pub(in crate::import) findings: Findings,
    duplicates: Duplicates,
    spellings: [Spellings; 2],
    /// The first days of conferences.
    days: BTreeMap<Date, Uses>,
}

impl Lint {
    /// Creates a check without rows. With `checks_all`, it reports values that the database has already, too.
    pub fn new(checks_all: bool) -> Lint {
        let spellings = [Spellings::new(&AREAS), Spellings::new(&COUNTRIES)];
        Lint {
            checks_all,
            findings: Findings::default(),
            duplicates: Duplicates::default(),
            spellings,
            days: BTreeMap::new(),
        }
    }

    /// Checks an imported row. `before` is the version whose values are not reported again. `find` finds the rows that
    /// were checked before.
    pub(in crate::import) fn check<F: Lintable>(
        &mut self,
        location: &RowLocation,
        before: Option<&F>,
        after: &Curated<F>,
        find: &FindRow<'_, F>,
    ) {
        let fields = after.fields();
        let before = before.filter(|_| !self.checks_all);
        if before != Some(fields) {
            let mut found = findings_of(location, fields);
            if let Some(before) = before.filter(|_| !found.is_empty()) {
                let known = findings_of(location, before);
                found.retain(|finding| !known.contains(finding));
            }
            self.findings.extend(found);
        }
        let id = after.id();
        let row = ComparedRow {
            location,
            id,
            fields,
            before,
            is_imported: true,
        };
        let twin = self.duplicates.compare(&row, find);
        self.findings.extend(twin);
        let mut brings = false;
        for spellings in &mut self.spellings {
            let field = spellings.vocabulary.field;
            let known = before.map_or(&[][..], |before| before.words(field));
            brings |= spellings.add_row(location, id, fields.words(field), known);
        }
        if let Some(day) = fields.first_day() {
            let is_brought = before.and_then(F::first_day) != Some(day);
            brings |= is_brought;
            self.days
                .entry(day)
                .or_default()
                .add(location, id, is_brought);
        }
        if brings {
            // Every record has the empty mark.
            self.duplicates.bring::<F>(String::new());
        }
    }

    /// Compares a stored row that is not in the import with the imported rows, after all of them were checked.
    pub(in crate::import) fn compare_stored<F: Lintable>(
        &mut self,
        id: Id,
        fields: &F,
        find: &FindRow<'_, F>,
    ) {
        let row = ComparedRow {
            location: &RowLocation::Database(F::STEM, id),
            id,
            fields,
            before: None,
            is_imported: false,
        };
        let twin = self.duplicates.compare(&row, find);
        self.findings.extend(twin);
    }

    /// Compares the imported rows of a dataset with the stored records. If the import brings no name, number, word or day,
    /// there is nothing to compare, and no record is read. If it brings few names, only records with their marks are.
    pub(in crate::import) fn compare_with_stored<F: RecordFields + Lintable>(
        &mut self,
        state: &Snapshot,
        is_imported: &dyn Fn(Id) -> bool,
        find: &FindRow<'_, F>,
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
            for spellings in &mut self.spellings {
                spellings.add_stored(fields.words(spellings.vocabulary.field), is_kept);
            }
            if is_kept {
                self.compare_stored(id, &fields, find);
                if let Some(day) = fields.first_day() {
                    self.days.entry(day).or_default().add_stored(true);
                }
            }
        })
    }

    /// Checks words and days across all rows. Returns all findings. With `fix`, words that have one right spelling are
    /// returned apart from them.
    pub(in crate::import) fn finish(
        self,
        licenses: &[&Arc<License>],
        fix: bool,
    ) -> (Findings, Vec<Respelling>) {
        let mut findings = self.findings;
        let mut respellings = Vec::new();
        for words in self.spellings {
            findings.extend(words.check(licenses, fix.then_some(&mut respellings)));
        }
        findings.extend(crowded_days(&self.days));
        findings.sort();
        (findings, respellings)
    }
}

/// Returns a word of a vocabulary without common differences of spelling, and any other text as it is.
pub(in crate::import) fn comparable_word(field: &str, word: &str) -> String {
    match [&AREAS, &COUNTRIES]
        .into_iter()
        .find(|vocabulary| vocabulary.field == field)
    {
        Some(vocabulary) => (vocabulary.comparable)(word),
        None => word.to_owned(),
    }
}

/// Returns the right value of a text, if there is exactly one. An empty text is null.
pub(in crate::import) fn fix_text(field: &str, text: &str) -> Option<String> {
    // A right value may break another rule. Rules do not undo each other, but a hostile text has many faults.
    const MAX_STEPS: usize = 20;
    let right = |text: &str| {
        texts::RULES
            .iter()
            .find_map(|(_, find)| find(field, text)?.right)
    };
    let steps = successors(right(text), |fixed| right(fixed));
    steps.take(MAX_STEPS).last()
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
    fn check<F: Lintable>(lint: &mut Lint, row: &Curated<F>, find: &dyn Fn(Id) -> Option<F>) {
        let location = |id| RowLocation::Database(F::STEM, id);
        let find = |id| Some((location(id), find(id)?));
        lint.check(&location(row.id()), None, row, &find);
    }
    fn check_references<F: ReferenceFields>(lint: &mut Lint, all: &BTreeMap<Id, Referenced<F>>) {
        let find = |id| Some(all.get(&id)?.row.fields().clone());
        all.values()
            .for_each(|found| check(lint, &found.row, &find));
    }
    fn check_records<F: RecordFields + Lintable>(
        lint: &mut Lint,
        snapshot: &Snapshot,
    ) -> Result<(), StoreError> {
        let find = |id| Some(snapshot.find_stored(id).ok()??.into_fields());
        snapshot.for_each_record::<F, StoreError>(|record, _, _| {
            check(lint, &record, &find);
            Ok(())
        })
    }
    let mut lint = Lint::new(true);
    let all = snapshot.references()?;
    check_references(&mut lint, &all.organizations);
    check_references(&mut lint, &all.tags);
    check_records::<ConferenceFields>(&mut lint, snapshot)?;
    check_records::<JournalFields>(&mut lint, snapshot)?;
    Ok(lint.finish(&snapshot.list_licenses(), false).0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn findings_are_listed_by_file_and_line_and_then_by_kind_and_id() {
        use crate::import::findings::FilePosition;
        let file = |file: &str, line| RowLocation::File(FilePosition::new(file.into(), line), None);
        let stored = |kind, id| RowLocation::Database(kind, Id::try_from(id).unwrap());
        let mut lint = Lint::new(true);
        let locations = [
            file("b.csv", 10),
            file("a.csv", 7),
            file("b.csv", 9),
            stored("journals", 1),
            stored("conferences", 3),
            file("a.csv", 2),
            stored("conferences", 2),
        ];
        lint.findings.extend(
            locations
                .iter()
                .map(|location| location.finding("blanks", "city", None, "x")),
        );
        let shown: Vec<String> = lint
            .finish(&[], false)
            .0
            .kept()
            .iter()
            .map(ToString::to_string)
            .collect();
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
