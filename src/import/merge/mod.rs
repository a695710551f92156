//! Phase 2: merges the rows of files with stored rows into a batch (docs/import.md).
//!
//! The steps of [`merge()`]:
//! 1. It corrects texts (`--fix`), and drops rows that equal an earlier one.
//! 2. It finds the records of rows without ids (`identify`).
//! 3. It resolves organizations and tags, since links by name refer to the names after the import (`references`).
//! 4. It merges each record with its stored values (`records`).
//! 5. It checks that no record links to a removed row, and that the import removes few records.
//! 6. Lint compares the rows, and corrects their words.

mod identify;
#[cfg(test)]
mod lint_tests;
mod records;
mod references;
#[cfg(test)]
mod tests;

use std::collections::HashMap;

use self::identify::identify;
pub use self::records::MergeOptions;
use self::records::{MergedRecords, merge_records, too_many_removals};
use self::references::{FoundLink, Resolved, resolve};
use super::lint::{Lint, Respelling, fix_text};
use super::rows::{ImportRow, ImportRows, RowEdit};
use crate::import::findings::{FilePosition, Finding, Findings};
use crate::model::field::RowMember;
use crate::model::message::{first_of, message};
use crate::model::reference::ReferenceFields;
use crate::model::{
    ConferenceFields, Curated, Dataset, Fields, JournalFields, OrganizationFields, TagFields,
};
use crate::store::write::edit::Batch;
use crate::store::{Snapshot, StoreError};

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
    /// The corrected values.
    pub fixes: Findings,
}

/// The reason why an import is refused.
#[derive(Debug, thiserror::Error)]
pub enum Refusal {
    /// Some rows are bad.
    #[error("{0}")]
    BadRows(Findings),
    /// The import would remove a large part of a dataset.
    #[error("{0}")]
    TooManyRemovals(String),
    /// The database could not be read.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// Merges rows with a state of the database. If a row is bad, returns all faults, including those of reading.
pub fn merge(
    rows: ImportRows,
    state: &Snapshot,
    options: &MergeOptions,
) -> Result<Merged, Refusal> {
    let ImportRows {
        mut bad,
        mut warnings,
        notes,
        matching,
        create_links,
        mut conferences,
        mut journals,
        ..
    } = rows;
    let mut fixes = Findings::default();
    if options.fix {
        fix_texts(&mut conferences, &mut fixes);
        fix_texts(&mut journals, &mut fixes);
    }
    let organizations = drop_equal_rows(rows.organizations, &mut warnings);
    let tags = drop_equal_rows(rows.tags, &mut warnings);
    let mut conferences = drop_equal_rows(conferences, &mut warnings);
    let mut journals = drop_equal_rows(journals, &mut warnings);
    let mut assigned = identify(&mut conferences, &matching, state, &mut bad)?;
    assigned.extend(identify(&mut journals, &matching, state, &mut bad)?);
    let mut lint = Lint::new(options.lints_all);
    lint.findings = warnings;
    let stored = state.references()?;

    let (mut organization_links, mut tag_links) = (Vec::new(), Vec::new());
    collect_links(&conferences, &mut organization_links, &mut tag_links);
    collect_links(&journals, &mut organization_links, &mut tag_links);
    let mut organizations = resolve(
        organizations,
        &organization_links,
        create_links,
        &stored.organizations,
        &mut bad,
        &mut lint,
    );
    let mut tags = resolve(
        tags,
        &tag_links,
        create_links,
        &stored.tags,
        &mut bad,
        &mut lint,
    );
    assigned.append(&mut organizations.assigned);
    assigned.append(&mut tags.assigned);

    let mut conferences = merge_records(
        conferences,
        state,
        &organizations,
        &tags,
        options,
        &mut bad,
        &mut lint,
    )?;
    let journals = merge_records(
        journals,
        state,
        &organizations,
        &tags,
        options,
        &mut bad,
        &mut lint,
    )?;

    check_still_linked(&organizations, &conferences, &journals, state, &mut bad)?;
    check_still_linked(&tags, &conferences, &journals, state, &mut bad)?;
    if !bad.is_empty() {
        bad.sort();
        return Err(Refusal::BadRows(bad));
    }
    if let Some(message) = too_many_removals(
        &[conferences.removals, journals.removals],
        options.allow_removals,
    ) {
        return Err(Refusal::TooManyRemovals(message));
    }
    organizations.compare_untouched(&mut lint);
    tags.compare_untouched(&mut lint);
    lint.compare_with_stored::<ConferenceFields>(state, &|id| conferences.contains(id))?;
    lint.compare_with_stored::<JournalFields>(state, &|id| journals.contains(id))?;
    let (warnings, respellings) = lint.finish(&state.list_licenses(), options.fix);
    fix_words(&mut conferences, respellings, &mut fixes);
    fixes.sort();
    let batch = Batch {
        organizations: organizations.into_rows(),
        tags: tags.into_rows(),
        conferences: conferences.rows,
        journals: journals.rows,
    };
    Ok(Merged {
        batch,
        warnings,
        notes,
        assigned,
        fixes,
    })
}

/// Corrects the texts that rows set, and adds the corrections.
fn fix_texts<F: Fields>(rows: &mut [ImportRow<F>], fixes: &mut Findings) {
    for ImportRow { position, edit, .. } in rows {
        let RowEdit::Set(statement) = edit else {
            continue;
        };
        for (field, value) in statement.values_mut() {
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
            for (one, value) in ConferenceFields::table()
                .fields
                .iter()
                .zip(fields.values_mut())
            {
                value.replace_texts(&mut |text| {
                    (one.name == field && text == word).then(|| Some(right.clone()))
                });
            }
            if let Ok(record) = Curated::new(id, fields) {
                fixes.add(Finding::fixed(position, field, &word, Some(right.clone())));
                records.rows.insert(id, Some(record));
            }
        }
    }
}

/// Returns the rows without those that equal an earlier one, with a warning for each of these. Bad rows stay, since
/// their faults are about each.
fn drop_equal_rows<F: Fields>(
    rows: Vec<ImportRow<F>>,
    warnings: &mut Findings,
) -> Vec<ImportRow<F>> {
    // Only rows that share their id and their digest are equal.
    let mut first: HashMap<blake3::Hash, FilePosition> = HashMap::with_capacity(rows.len());
    let mut content = Vec::new();
    let mut kept = Vec::with_capacity(rows.len());
    for row in rows {
        content.clear();
        content.extend_from_slice(&row.id.map_or(0, |id| id.get()).to_be_bytes());
        match &row.edit {
            RowEdit::Set(statement) => statement.write(&mut content),
            RowEdit::Remove => content.push(b'-'),
        }
        let digest = blake3::hash(&content);
        match first.get(&digest) {
            Some(position) if !row.is_bad => {
                let message = message!("equals the row at {position}, so it counts once");
                warnings.push(&row.position, None, None, message);
                continue;
            }
            Some(_) => {}
            None => drop(first.insert(digest, row.position.clone())),
        }
        kept.push(row);
    }
    kept
}

/// Collects the links of records.
fn collect_links<'a, F>(
    rows: &'a [ImportRow<F>],
    organizations: &mut Vec<FoundLink<'a, OrganizationFields>>,
    tags: &mut Vec<FoundLink<'a, TagFields>>,
) {
    for row in rows {
        let RowEdit::Set(statement) = &row.edit else {
            continue;
        };
        organizations.extend(
            statement
                .organizations
                .iter()
                .map(|link| (&row.position, link)),
        );
        tags.extend(statement.tags.iter().map(|link| (&row.position, link)));
    }
}

/// Reports organizations and tags that the import removes although records still link to them.
fn check_still_linked<F: ReferenceFields>(
    resolved: &Resolved<F>,
    conferences: &MergedRecords<ConferenceFields>,
    journals: &MergedRecords<JournalFields>,
    state: &Snapshot,
    bad: &mut Findings,
) -> Result<(), StoreError> {
    const NAMED: usize = 3;
    for (position, id) in resolved.removed() {
        let mut linking = state.linked_records(F::KIND, id)?;
        linking.retain(|(dataset, record)| match dataset {
            Dataset::Conferences => conferences.links_after(*record, F::KIND, id),
            Dataset::Journals => journals.links_after(*record, F::KIND, id),
        });
        linking.sort_unstable();
        if linking.is_empty() {
            continue;
        }
        let one_of = |dataset: Dataset| dataset.as_str().trim_end_matches('s');
        let named: Vec<String> = linking
            .iter()
            .map(|(dataset, id)| format!("{} {id}", one_of(*dataset)))
            .collect();
        let message = message!(
            "the {} is still linked by {}; remove it from them in the same run",
            F::KIND,
            first_of(&named, named.len(), NAMED)
        );
        bad.push(position, Some("deleted"), Some(&id.to_string()), message);
    }
    Ok(())
}
