//! Phase 2: merges rows with the stored state into a batch, under the writer's lock (docs/import.md).
//!
//! What is linked is resolved first, since a linked name means the row that has it after the run (`references`); then each record is
//! merged with its stored values (`records`); last, what is removed is checked against what still links it.

mod identify;
#[cfg(test)]
mod lint_tests;
mod records;
mod references;
mod removals;
#[cfg(test)]
mod tests;

pub use self::identify::AssignedId;
use self::identify::identify;
use self::records::{MergeContext, MergedRecords, merge_records};
use self::references::{Resolved, resolve};
use self::removals::Removals;
pub use self::removals::{MergeOptions, TooManyRemovals};
use super::lint::Lint;
use super::report::{BadRows, Finding};
use super::rows::{ImportRow, ImportRows, RowEdit};
use super::statement::{LinkList, RecordLink};
use crate::model::reference::ReferenceFields;
use crate::model::{ConferenceFields, Dataset, JournalFields, OrganizationFields, TagFields};
use crate::store::StoreError;
use crate::store::write::batch::{Batch, Curation};

/// A run that can be committed.
#[derive(Debug)]
pub struct Merged {
    /// What the run states. Rows equal to the stored ones are in it.
    pub batch: Batch,
    /// What a curator may want to look at.
    pub warnings: Vec<Finding>,
    /// The rows without ids that no record matches.
    pub assigned: Vec<AssignedId>,
}

/// Why a run is not committed.
#[derive(Debug, thiserror::Error)]
pub enum Refusal {
    /// Some rows are bad.
    #[error("{0}")]
    BadRows(BadRows),
    /// A large part of a dataset would be removed.
    #[error("{0}")]
    TooManyRemovals(TooManyRemovals),
    /// The state could not be read.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// Merges the rows with the state.
///
/// # Errors
/// When a rule is broken; then every bad row is told, those met by reading included.
pub fn merge<C: Curation>(rows: ImportRows, curation: &C, options: &MergeOptions) -> Result<Merged, Refusal> {
    let ImportRows { organizations, tags, mut conferences, mut journals, mut bad, mut warnings, matching } = rows;
    let mut assigned = identify(&mut conferences, &matching, curation, &mut bad)?;
    assigned.extend(identify(&mut journals, &matching, curation, &mut bad)?);
    let mut lint = Lint::new(options.extent);
    let stored = curation.references()?;

    let mut organization_objects = Vec::new();
    let mut tag_objects = Vec::new();
    collect_objects(&conferences, &mut organization_objects, &mut tag_objects);
    collect_objects(&journals, &mut organization_objects, &mut tag_objects);
    let organizations = resolve(organizations, &organization_objects, &stored.organizations, &mut bad, &mut lint);
    let tags = resolve(tags, &tag_objects, &stored.tags, &mut bad, &mut lint);

    let mut links =
        MergeContext { organizations: &organizations, tags: &tags, options, bad: &mut bad, lint: &mut lint };
    let conferences = merge_records(conferences, curation, &mut links)?;
    let journals = merge_records(journals, curation, &mut links)?;

    check_still_linked(&organizations, &conferences, &journals, curation, &mut bad)?;
    check_still_linked(&tags, &conferences, &journals, curation, &mut bad)?;
    if !bad.is_empty() {
        bad.sort();
        return Err(Refusal::BadRows(bad));
    }
    let covers = |removals: &Removals| {
        let removed = u64::try_from(removals.removed).unwrap_or(u64::MAX);
        removals.is_small() || options.allow_removals.is_some_and(|allowed| removed <= allowed)
    };
    let too_many: Vec<Removals> =
        [conferences.removals, journals.removals].into_iter().filter(|removals| !covers(removals)).collect();
    if !too_many.is_empty() {
        return Err(Refusal::TooManyRemovals(TooManyRemovals(too_many)));
    }
    organizations.compare_untouched(&mut lint);
    tags.compare_untouched(&mut lint);
    lint.compare_with_stored(curation, &|dataset, id| match dataset {
        Dataset::Conferences => conferences.states(id),
        Dataset::Journals => journals.states(id),
    })?;
    warnings.extend(lint.finish(curation)?);
    let batch = Batch {
        organizations: organizations.into_rows(),
        tags: tags.into_rows(),
        conferences: conferences.rows,
        journals: journals.rows,
    };
    Ok(Merged { batch, warnings, assigned })
}

/// The full objects among the links of records, which create or update what they link.
fn collect_objects<'a, F>(
    rows: &'a [ImportRow<F>],
    organizations: &mut Vec<references::LinkedObject<'a, OrganizationFields>>,
    tags: &mut Vec<references::LinkedObject<'a, TagFields>>,
) {
    fn collect<'a, F>(
        row: &'a ImportRow<impl Sized>,
        links: &'a [RecordLink<F>],
        objects: &mut Vec<references::LinkedObject<'a, F>>,
    ) {
        objects.extend(links.iter().filter_map(|link| match link {
            RecordLink::Object(object) => Some((&row.position, object)),
            RecordLink::Id(_) | RecordLink::Label(_) => None,
        }));
    }
    for row in rows {
        let RowEdit::Set(statement) = &row.edit else { continue };
        for list in &statement.links {
            match list {
                LinkList::Organizations(links) => collect(row, links, organizations),
                LinkList::Tags(links) => collect(row, links, tags),
            }
        }
    }
}

/// Checks that no record links a removed organization or tag after the run.
fn check_still_linked<F: ReferenceFields, C: Curation>(
    resolved: &Resolved<F>,
    conferences: &MergedRecords<ConferenceFields>,
    journals: &MergedRecords<JournalFields>,
    curation: &C,
    bad: &mut BadRows,
) -> Result<(), StoreError> {
    const NAMED: usize = 3;
    for (position, id) in resolved.removed() {
        let mut linking = curation.linked_records(F::KIND, id)?;
        linking.retain(|(dataset, record)| match dataset {
            Dataset::Conferences => conferences.links_after(*record, F::KIND, id),
            Dataset::Journals => journals.links_after(*record, F::KIND, id),
        });
        linking.sort_unstable();
        if linking.is_empty() {
            continue;
        }
        let one_of = |dataset: Dataset| dataset.as_str().trim_end_matches('s');
        let named: Vec<String> =
            linking.iter().take(NAMED).map(|(dataset, id)| format!("{} {id}", one_of(*dataset))).collect();
        let more = match linking.len().saturating_sub(NAMED) {
            0 => String::new(),
            more => format!(" and {more} more"),
        };
        let message = format!(
            "the {} is still linked by {}{more}; remove it from them in the same run",
            F::KIND,
            named.join(", ")
        );
        bad.push(position, Some("deleted"), Some(&id.to_string()), message);
    }
    Ok(())
}
