//! Phase 2: merges the rows of files with stored rows into a batch (docs/import.md).
//!
//! The steps of [`merge()`]:
//! 1. It drops rows that equal an earlier one.
//! 2. It finds the records of rows without ids (`identify`), by their fields (`match_set`).
//! 3. It resolves organizations and tags, since links by name refer to the names after the import (`references`).
//! 4. It merges each row with its stored values (`merged_rows`, `records`). A row of a list of others changes less (`listed`), and
//!    some fields together (`together`).
//! 5. It checks that no record links to a removed row, and that the import removes few records.
//! 6. Lint compares the rows.
//!
//! `--fix` corrects texts before these steps. If lint knows the right spelling of words, it corrects them too, and the
//! rows are merged again.

mod identify;
#[cfg(test)]
mod lint_tests;
#[cfg(test)]
mod list_tests;
mod listed;
mod match_set;
mod merged_rows;
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
use self::listed::differences;
use self::match_set::meaning;
use self::merged_rows::MergedRows;
pub use self::records::MergeOptions;
use self::records::{RecordMerger, Removals, too_many_removals};
use self::references::{LinkedFields, Resolved};
pub use self::report::{ListCounts, Merged};
use super::lint::{Lint, fix_text};
use super::rows::{ImportRow, ImportRows, ListOptions};
use crate::import::findings::{Finding, Findings};
use crate::model::{
    ConferenceFields, Dataset, Field, Fields, Id, JournalFields, OrganizationFields, TagFields,
    first_of, message,
};
use crate::store::{Batch, Snapshot, StoreError};

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

/// Corrects rows, and merges them with a state of the database. No row may be bad.
fn merge_rows(
    mut rows: ImportRows,
    state: &Snapshot,
    options: &MergeOptions,
) -> Result<Merged, Refusal> {
    if !options.fix {
        return merge_once(rows, state, options);
    }
    let mut fixes = Findings::default();
    rows.replace_texts(&mut fixes, |field, text| fix_text(&field.name, text));
    let mut merged = merge_once(rows.clone(), state, options)?;
    if !merged.respellings.is_empty() {
        rows.replace_texts(&mut fixes, |field, word| {
            merged
                .respellings
                .get(&(field.column.as_str(), word.to_owned()))
                .cloned()
        });
        merged = merge_once(rows, state, options)?;
    }
    fixes.sort();
    Ok(Merged { fixes, ..merged })
}

/// Merges rows with a state of the database. No row may be bad.
fn merge_once(
    rows: ImportRows,
    state: &Snapshot,
    options: &MergeOptions,
) -> Result<Merged, Refusal> {
    let filled = rows.filled_fields();
    let list = rows.list;
    let mut report = Merged {
        bad: rows.bad,
        warnings: rows.warnings,
        notes: rows.notes,
        counts: ListCounts {
            rows: filled.iter().map(|of_kind| of_kind.rows).sum(),
            is_list: list.is_list,
            ..ListCounts::default()
        },
        filled,
        lint: Lint::new(options.lints_all),
        ..Merged::default()
    };
    // The spelling of organizations and tags counts.
    let exact = ListOptions::default();
    let organizations = drop_equal_rows(rows.organizations, &exact, &mut report);
    let tags = drop_equal_rows(rows.tags, &exact, &mut report);
    let mut conferences = drop_equal_rows(rows.conferences, &list, &mut report);
    let mut journals = drop_equal_rows(rows.journals, &list, &mut report);
    identify(&mut conferences, &list, state, &mut report)?;
    identify(&mut journals, &list, state, &mut report)?;
    let stored = state.references()?;

    let records = (&conferences[..], &journals[..]);
    let organizations = Resolved::new(
        &list,
        organizations,
        records,
        &stored.organizations,
        &mut report,
    );
    let tags = Resolved::new(&list, tags, records, &stored.tags, &mut report);
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
    after.finish(state, report)
}

/// All rows of the batch, merged.
struct After<'a> {
    organizations: Resolved<'a, OrganizationFields>,
    tags: Resolved<'a, TagFields>,
    conferences: MergedRows<ConferenceFields>,
    journals: MergedRows<JournalFields>,
}

impl After<'_> {
    /// Fails if a row is bad, or if too many records are removed.
    fn check(
        &self,
        state: &Snapshot,
        options: &MergeOptions,
        report: &mut Merged,
    ) -> Result<(), Refusal> {
        self.check_still_linked(&self.organizations, state, &mut report.bad)?;
        self.check_still_linked(&self.tags, state, &mut report.bad)?;
        let mut bad = std::mem::take(&mut report.bad);
        bad.leave_out(&report.withdrawn);
        if !bad.is_empty() {
            bad.sort();
            return Err(Refusal::BadRows(Box::new(bad)));
        }
        let removals = [
            Removals::of(&self.conferences, state),
            Removals::of(&self.journals, state),
        ];
        match too_many_removals(&removals, options.allow_removals) {
            Some(message) => Err(Refusal::TooManyRemovals(message)),
            None => Ok(()),
        }
    }

    /// Compares the rows with the stored ones.
    fn finish(self, state: &Snapshot, mut report: Merged) -> Result<Merged, Refusal> {
        self.organizations.compare_untouched(&mut report);
        self.tags.compare_untouched(&mut report);
        self.conferences.compare_with_stored(state, &mut report)?;
        self.journals.compare_with_stored(state, &mut report)?;
        let lint = std::mem::take(&mut report.lint);
        report.respellings = lint.finish(&state.list_licenses(), &mut report.warnings);
        report.batch = Batch {
            organizations: self.organizations.merged.rows,
            tags: self.tags.merged.rows,
            conferences: self.conferences.rows,
            journals: self.journals.rows,
        };
        Ok(report)
    }

    /// Reports organizations and tags that the import removes although records still link to them.
    fn check_still_linked<F: LinkedFields>(
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

impl ImportRows {
    /// Replaces texts of records, and adds the corrections.
    fn replace_texts(
        &mut self,
        fixes: &mut Findings,
        right: impl Fn(&Field, &str) -> Option<String>,
    ) {
        replace_texts(&mut self.conferences, fixes, &right);
        replace_texts(&mut self.journals, fixes, &right);
    }
}

fn replace_texts<F: Fields>(
    rows: &mut [ImportRow<F>],
    fixes: &mut Findings,
    right: impl Fn(&Field, &str) -> Option<String>,
) {
    for ImportRow { position, edit, .. } in rows.iter_mut().filter(|row| !row.edit.is_removal) {
        for (field, value) in Arc::make_mut(&mut edit.statement).values_mut() {
            value.replace_texts(&mut |text| {
                let right = right(field, text)?;
                fixes.add(Finding::fixed(position, &field.name, text, right.clone()));
                Some(right)
            });
        }
    }
}

/// Returns the rows without those that equal an earlier one, with a warning for each of these. Bad rows stay, since
/// their faults are about each.
fn drop_equal_rows<F: Fields>(
    rows: Vec<ImportRow<F>>,
    list: &ListOptions,
    report: &mut Merged,
) -> Vec<ImportRow<F>> {
    let mut rows_of_id: HashMap<Option<Id>, usize> = HashMap::with_capacity(rows.len());
    for row in &rows {
        *rows_of_id.entry(row.id).or_default() += 1;
    }
    let mut first: HashMap<blake3::Hash, usize> = HashMap::new();
    let mut kept: Vec<ImportRow<F>> = Vec::with_capacity(rows.len());
    for row in rows {
        if row.id.is_some() && rows_of_id[&row.id] == 1 {
            kept.push(row);
            continue;
        }
        match first.entry(digest(&row, list)) {
            Entry::Occupied(equal) if !row.is_bad => {
                let equal = &kept[*equal.get()];
                let [one, other] = [equal, &row].map(|row| row.edit.statement.fields());
                let message = if differences(one, other).next().is_none() {
                    message!("equals the row at {}, so it counts once", equal.position)
                } else {
                    message!(
                        "differs from the row at {} only in spelling, so it counts once, as it is spelled there",
                        equal.position
                    )
                };
                report.warn(&row.position, None, message);
                continue;
            }
            Entry::Occupied(_) => {}
            Entry::Vacant(place) => drop(place.insert(kept.len())),
        }
        kept.push(row);
    }
    kept
}

/// Returns the same digest for rows that have the same id and the same content. In a list of others, spelling does not
/// count in rows without ids.
fn digest<F: Fields>(row: &ImportRow<F>, list: &ListOptions) -> blake3::Hash {
    let mut content = row.id.map_or(0, |id| id.get()).to_be_bytes().to_vec();
    let is_exact = !list.is_list || row.id.is_some() || row.is_bad || row.edit.is_removal;
    content.extend([u8::from(is_exact), u8::from(row.edit.is_removal)]);
    row.edit.statement.write(
        &mut content,
        match is_exact {
            true => |_, value, out| value.write_json(out, &()),
            false => |field, value, out| out.extend(meaning(field, value).into_bytes()),
        },
    );
    blake3::hash(&content)
}
