//! Phase 2: merges the rows of files with stored rows into a batch (docs/import.md).
//!
//! The steps of [`merge()`]:
//! 1. It corrects texts (`--fix`), and drops rows that equal an earlier one.
//! 2. It finds the records of rows without ids (`identify`), by their fields (`match_set`).
//! 3. It resolves organizations and tags, since links by name refer to the names after the import (`references`).
//! 4. It merges each record with its stored values (`records`). A row of a list of others changes less (`listed`), and
//!    some fields together (`together`).
//! 5. It checks that no record links to a removed row, and that the import removes few records.
//! 6. Lint compares the rows, and corrects their words.

mod identify;
#[cfg(test)]
mod lint_tests;
#[cfg(test)]
mod list_tests;
mod listed;
mod match_set;
mod records;
mod references;
mod report;
#[cfg(test)]
mod tests;
mod together;

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::sync::Arc;

use self::identify::identify;
use self::listed::ListedFields;
pub use self::records::MergeOptions;
use self::records::{MergedRecords, RecordMerger, too_many_removals};
use self::references::{FoundLink, Resolved};
pub use self::report::ListCounts;
use self::report::Report;
use super::lint::{Respelling, fix_text};
use super::rows::{FilledFields, ImportRow, ImportRows};
use crate::import::findings::{FilePosition, Finding, Findings};
use crate::model::field::RowMember;
use crate::model::{
    ConferenceFields, Curated, Dataset, Fields, Id, JournalFields, OrganizationFields,
    ReferenceFields, TagFields, first_of, message,
};
use crate::store::{Batch, Snapshot, StoreError};

/// An import without faults.
#[derive(Debug)]
pub struct Merged {
    /// The rows of the files, merged with stored values. Some may equal the stored rows.
    pub batch: Batch,
    /// Probable mistakes for a curator to check.
    pub warnings: Findings,
    /// Effects of the options that the user may want to know.
    pub notes: Vec<Finding>,
    /// The ids assigned to rows without a matching record, and to links that created a row.
    pub assigned: Vec<Finding>,
    /// The faults of the rows that are left out.
    pub bad: Findings,
    /// The corrected values.
    pub fixes: Findings,
    /// The effects of the rows on known records.
    pub counts: ListCounts,
    /// The number of rows that fill each field.
    pub filled: Vec<FilledFields>,
}

/// The reason why an import is refused.
#[derive(Debug, thiserror::Error)]
pub enum Refusal {
    /// Some rows are bad.
    #[error("{0}")]
    BadRows(Box<Findings>),
    /// The import would remove a large part of a dataset.
    #[error("{0}")]
    TooManyRemovals(String),
    /// The database could not be read.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// Merges rows with a state of the database. If more rows are bad than the options allow, returns all faults, including
/// those of reading. Otherwise the rows are merged again without the bad ones, until none is bad.
pub fn merge(
    rows: ImportRows,
    state: &Snapshot,
    options: &MergeOptions,
) -> Result<Merged, Refusal> {
    let most = options.allow_faults;
    if most == 0 {
        return merge_rows(rows, state, options);
    }
    let mut rows = rows;
    let mut bad = Findings::default();
    loop {
        match merge_rows(rows.clone(), state, options) {
            Err(Refusal::BadRows(found)) => {
                let known = bad.rows().len();
                bad.append(*found);
                let is_allowed = !bad.is_of_file() && bad.rows().len() <= most;
                if !is_allowed || bad.rows().len() == known {
                    bad.sort();
                    return Err(Refusal::BadRows(Box::new(bad)));
                }
                rows.leave_out(bad.rows());
            }
            Ok(merged) => {
                bad.sort();
                return Ok(Merged { bad, ..merged });
            }
            refused => return refused,
        }
    }
}

/// Merges rows with a state of the database. No row may be bad.
fn merge_rows(
    mut rows: ImportRows,
    state: &Snapshot,
    options: &MergeOptions,
) -> Result<Merged, Refusal> {
    let mut fixes = Findings::default();
    if options.fix {
        fix_texts(&mut rows.conferences, &mut fixes);
        fix_texts(&mut rows.journals, &mut fixes);
    }
    let filled = rows.filled_fields();
    let list = rows.list;
    let mut report = Report::new(rows.bad, rows.warnings, list.is_list, options.lints_all);
    report.fixes = fixes;
    report.counts.rows = filled.iter().map(|of_kind| of_kind.rows).sum();
    let organizations = drop_equal_rows(rows.organizations, &mut report);
    let tags = drop_equal_rows(rows.tags, &mut report);
    let mut conferences = drop_equal_rows(rows.conferences, &mut report);
    let mut journals = drop_equal_rows(rows.journals, &mut report);
    identify(&mut conferences, &list, state, &mut report)?;
    identify(&mut journals, &list, state, &mut report)?;
    let stored = state.references()?;

    let mut links = Links::default();
    links.collect(&conferences);
    links.collect(&journals);
    let organizations = Resolved::new(
        &list,
        organizations,
        &links.organizations,
        &stored.organizations,
        &mut report,
    );
    let tags = Resolved::new(&list, tags, &links.tags, &stored.tags, &mut report);
    let merger = RecordMerger {
        state,
        organizations: &organizations,
        tags: &tags,
        options,
        list: &list,
    };
    let conferences = merger.merge(conferences, &mut report)?;
    let journals = merger.merge(journals, &mut report)?;
    let after = After {
        organizations,
        tags,
        conferences,
        journals,
    };
    after.check(state, options, &mut report)?;
    let merged = after.finish(state, options, report)?;
    let notes = rows.notes;
    Ok(Merged {
        notes,
        filled,
        ..merged
    })
}

/// All rows of the batch, merged.
struct After<'a> {
    organizations: Resolved<'a, OrganizationFields>,
    tags: Resolved<'a, TagFields>,
    conferences: MergedRecords<ConferenceFields>,
    journals: MergedRecords<JournalFields>,
}

impl After<'_> {
    /// Fails if a row is bad, or if too many records are removed.
    fn check(
        &self,
        state: &Snapshot,
        options: &MergeOptions,
        report: &mut Report,
    ) -> Result<(), Refusal> {
        self.check_still_linked(&self.organizations, state, &mut report.bad)?;
        self.check_still_linked(&self.tags, state, &mut report.bad)?;
        report.bad.leave_out(&report.withdrawn);
        if !report.bad.is_empty() {
            let mut bad = std::mem::take(&mut report.bad);
            bad.sort();
            return Err(Refusal::BadRows(Box::new(bad)));
        }
        let removals = [
            self.conferences.removals(state),
            self.journals.removals(state),
        ];
        match too_many_removals(&removals, options.allow_removals) {
            Some(message) => Err(Refusal::TooManyRemovals(message)),
            None => Ok(()),
        }
    }

    /// Compares the rows with the stored ones, and corrects their words.
    fn finish(
        mut self,
        state: &Snapshot,
        options: &MergeOptions,
        report: Report,
    ) -> Result<Merged, Refusal> {
        let Report {
            mut lint,
            mut fixes,
            assigned,
            counts,
            ..
        } = report;
        self.organizations.compare_untouched(&mut lint);
        self.tags.compare_untouched(&mut lint);
        self.conferences.compare_with_stored(state, &mut lint)?;
        self.journals.compare_with_stored(state, &mut lint)?;
        let (warnings, respellings) = lint.finish(&state.list_licenses(), options.fix);
        fix_words(&mut self.conferences, respellings, &mut fixes);
        fixes.sort();
        let batch = Batch {
            organizations: self.organizations.into_rows(),
            tags: self.tags.into_rows(),
            conferences: self.conferences.rows,
            journals: self.journals.rows,
        };
        Ok(Merged {
            batch,
            warnings,
            notes: Vec::new(),
            assigned,
            bad: Findings::default(),
            fixes,
            counts,
            filled: Vec::new(),
        })
    }

    /// Reports organizations and tags that the import removes although records still link to them.
    fn check_still_linked<F: ReferenceFields + ListedFields>(
        &self,
        resolved: &Resolved<F>,
        state: &Snapshot,
        bad: &mut Findings,
    ) -> Result<(), StoreError> {
        const NAMED: usize = 3;
        for (position, id) in resolved.removed() {
            let mut linking = state.linked_records(F::KIND, id)?;
            linking.retain(|(dataset, record)| match dataset {
                Dataset::Conferences => self.conferences.links_after(*record, F::KIND, id),
                Dataset::Journals => self.journals.links_after(*record, F::KIND, id),
            });
            linking.sort_unstable();
            if linking.is_empty() {
                continue;
            }
            let named = linking.iter().map(|(dataset, id)| {
                let one = dataset.as_str().trim_end_matches('s');
                format!("{one} {id}")
            });
            let message = message!(
                "the {} is still linked by {}; remove it from them in the same run",
                F::KIND,
                first_of(named, linking.len(), NAMED)
            );
            bad.push(position, Some("deleted"), Some(&id.to_string()), message);
        }
        Ok(())
    }
}

/// Corrects the texts that rows set, and adds the corrections.
fn fix_texts<F: Fields>(rows: &mut [ImportRow<F>], fixes: &mut Findings) {
    for ImportRow { position, edit, .. } in rows {
        if edit.is_removal {
            continue;
        }
        for (field, value) in Arc::make_mut(&mut edit.statement).values_mut() {
            value.replace_texts(&mut |text| {
                let right = fix_text(&field.name, text)?;
                fixes.add(Finding::fixed(position, &field.name, text, right.clone()));
                Some(right)
            });
        }
    }
}

/// Corrects words of merged conferences, and adds the corrections.
fn fix_words(
    records: &mut MergedRecords<ConferenceFields>,
    respellings: Vec<Respelling>,
    fixes: &mut Findings,
) {
    for Respelling {
        field,
        word,
        right,
        rows,
    } in respellings
    {
        for id in rows {
            let (Some(position), Some(Some(record))) =
                (records.positions.get(&id), records.rows.get(&id))
            else {
                continue;
            };
            let mut fields = record.fields().clone();
            if let Some(at) = ConferenceFields::table().index_of(field) {
                let replacement = &mut |text: &str| (text == word).then(|| right.clone());
                fields.values_mut()[at].replace_texts(replacement);
            }
            if let Ok(record) = Curated::new(id, fields) {
                fixes.add(Finding::fixed(position, field, &word, right.clone()));
                records.rows.insert(id, Some(record));
            }
        }
    }
}

/// Returns the rows without those that equal an earlier one, with a warning for each of these. Bad rows stay, since
/// their faults are about each.
fn drop_equal_rows<F: Fields>(rows: Vec<ImportRow<F>>, report: &mut Report) -> Vec<ImportRow<F>> {
    let mut rows_of_id: HashMap<Option<Id>, usize> = HashMap::with_capacity(rows.len());
    for row in &rows {
        *rows_of_id.entry(row.id).or_default() += 1;
    }
    let mut first: HashMap<blake3::Hash, FilePosition> = HashMap::new();
    let mut kept = Vec::with_capacity(rows.len());
    for row in rows {
        if row.id.is_some() && rows_of_id[&row.id] == 1 {
            kept.push(row);
            continue;
        }
        match first.entry(digest(&row)) {
            Entry::Occupied(equal) if !row.is_bad => {
                let message = message!("equals the row at {}, so it counts once", equal.get());
                report.warn(&row.position, None, message);
                continue;
            }
            Entry::Occupied(_) => {}
            Entry::Vacant(place) => drop(place.insert(row.position.clone())),
        }
        kept.push(row);
    }
    kept
}

/// Returns the same digest for rows that have the same id and the same content.
fn digest<F: Fields>(row: &ImportRow<F>) -> blake3::Hash {
    let mut content = row.id.map_or(0, |id| id.get()).to_be_bytes().to_vec();
    if row.edit.is_removal {
        content.push(b'-');
    }
    row.edit.statement.write(&mut content);
    blake3::hash(&content)
}

/// The links of the records in the files.
#[derive(Default)]
struct Links<'a> {
    organizations: Vec<FoundLink<'a, OrganizationFields>>,
    tags: Vec<FoundLink<'a, TagFields>>,
}

impl<'a> Links<'a> {
    /// Adds the links of rows that set values.
    fn collect<F>(&mut self, rows: &'a [ImportRow<F>]) {
        for row in rows.iter().filter(|row| !row.edit.is_removal) {
            let statement = &row.edit.statement;
            let organizations = statement.organizations.iter();
            self.organizations
                .extend(organizations.map(|link| (&row.position, link)));
            let tags = statement.tags.iter();
            self.tags.extend(tags.map(|link| (&row.position, link)));
        }
    }
}
