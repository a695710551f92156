//! The changes of a dry run, by row and by license.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::sync::Arc;

use serde::Serialize;
use serde_json::Value;

use crate::cli::shared::values::{cut, text_of, value_of};
use crate::import::findings::grouped;
use crate::model::printable::Printable;
use crate::model::reference::{ReferenceFields, Referenced};
use crate::model::{Curated, Dataset, Fields, Id, License, RecordFields, References};
use crate::store::{Batch, Edit, Snapshot, StoreError};

/// The most rows of a list that are printed as text.
const MAX_SHOWN: usize = 20;
/// The most characters of a value that are printed as text.
const MAX_VALUE_CHARS: usize = 100;

/// Collects the changes of a batch.
#[derive(Debug)]
pub(in crate::cli) struct Changes {
    references_before: References,
    licenses: Vec<Arc<License>>,
    rows: Vec<RowChange>,
    effects: BTreeMap<(String, Dataset), ViewChanges>,
}

/// The changes of a batch in JSON.
#[derive(Debug, Serialize)]
pub(in crate::cli) struct ChangesJson {
    /// Organizations, tags, conferences, journals; each by id.
    changes: Vec<RowChange>,
    /// By license and dataset.
    license_changes: Vec<LicenseChanges>,
}

#[derive(Debug, Serialize)]
struct RowChange {
    dataset: &'static str,
    id: Id,
    name: String,
    change: ChangeKind,
    /// The fields that differ, in the order of the record.
    fields: Vec<FieldChange>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, strum::Display)]
#[serde(rename_all = "lowercase")]
#[strum(serialize_all = "lowercase")]
enum ChangeKind {
    Added,
    Changed,
    Removed,
}

#[derive(Debug, Serialize)]
struct FieldChange {
    field: &'static str,
    before: Value,
    after: Value,
}

/// A record by id and name.
#[derive(Clone, Debug, Serialize)]
struct NamedRecord {
    id: Id,
    name: String,
}

/// The records of a dataset that enter a license, change in it, or leave it.
#[derive(Debug, Default, Serialize)]
struct ViewChanges {
    entering: Vec<NamedRecord>,
    changed: Vec<NamedRecord>,
    leaving: Vec<NamedRecord>,
}

#[derive(Debug, Serialize)]
struct LicenseChanges {
    license: String,
    dataset: Dataset,
    #[serde(flatten)]
    effect: ViewChanges,
}

impl Changes {
    /// Compares the state before an edit with the edit, after a batch was applied.
    pub fn of(before: &Snapshot, edit: &Edit<'_>, batch: &Batch) -> Result<Changes, StoreError> {
        let references = before.references()?;
        let mut changes = Changes {
            references_before: (**references).clone(),
            licenses: before.list_licenses().into_iter().cloned().collect(),
            rows: Vec::new(),
            effects: BTreeMap::new(),
        };
        changes.push_references(&references.organizations, &batch.organizations);
        changes.push_references(&references.tags, &batch.tags);
        changes.push_records(before, edit, &batch.conferences)?;
        changes.push_records(before, edit, &batch.journals)?;
        Ok(changes)
    }

    fn push_references<F: ReferenceFields>(
        &mut self,
        stored: &BTreeMap<Id, Referenced<F>>,
        rows: &BTreeMap<Id, Option<Curated<F>>>,
    ) {
        for (id, after) in rows {
            let (before, after) = (stored.get(id).map(|found| &found.row), after.as_ref());
            if before != after {
                self.push(before, after, &References::default());
            }
        }
    }

    fn push_records<F: RecordFields>(
        &mut self,
        before: &Snapshot,
        edit: &Edit<'_>,
        rows: &BTreeMap<Id, Option<Curated<F>>>,
    ) -> Result<(), StoreError> {
        let removed = rows.iter().filter(|(_, row)| row.is_none()).map(|(id, _)| (*id, None));
        let written = edit.written_records::<F>()?.into_iter().map(|record| (record.id(), Some(record)));
        let changed: BTreeMap<Id, Option<Curated<F>>> = removed.chain(written).collect();
        for (id, after) in changed {
            let before = before.find_stored(id)?;
            let Some(row) = after.as_ref().or(before.as_ref()) else { continue };
            self.push(before.as_ref(), after.as_ref(), edit.references());
            for license in self.licenses.iter().filter(|license| license.feed(F::DATASET).is_some()) {
                let sees =
                    |row: &Option<Curated<F>>| row.as_ref().is_some_and(|row| row.fields().is_in(&license.scope));
                let visible = (sees(&before), sees(&after));
                if visible == (false, false) {
                    continue;
                }
                let effect = self.effects.entry((license.name.clone(), F::DATASET)).or_default();
                let list = match visible {
                    (false, _) => &mut effect.entering,
                    (true, true) => &mut effect.changed,
                    (true, false) => &mut effect.leaving,
                };
                list.push(NamedRecord { id, name: row.fields().name().to_owned() });
            }
        }
        Ok(())
    }

    fn push<F: Fields>(&mut self, before: Option<&Curated<F>>, after: Option<&Curated<F>>, references: &References) {
        let Some(row) = after.or(before) else { return };
        let change = match (before, after) {
            (None, _) => ChangeKind::Added,
            (_, None) => ChangeKind::Removed,
            _ => ChangeKind::Changed,
        };
        let none = F::default();
        let old = before.map_or(&none, Curated::fields).values();
        let new = after.map_or(&none, Curated::fields).values();
        let differing = F::table().fields.iter().zip(old.into_iter().zip(new)).filter_map(|(field, (old, new))| {
            let (before, after) = (value_of(old, &self.references_before), value_of(new, references));
            (before != after).then_some(FieldChange { field: &field.name, before, after })
        });
        let fields = differing.collect();
        let name = row.fields().name().to_owned();
        self.rows.push(RowChange { dataset: F::STEM, id: row.id(), name, change, fields });
    }

    pub fn into_json(self) -> ChangesJson {
        let effects = self.effects.into_iter();
        ChangesJson {
            changes: self.rows,
            license_changes: effects
                .map(|((license, dataset), effect)| LicenseChanges { license, dataset, effect })
                .collect(),
        }
    }

    /// The changed rows as text: the first of each kind.
    pub fn describe_rows(&self) -> String {
        let mut text = String::new();
        let datasets = self.rows.iter().map(|row| row.dataset).collect::<Vec<_>>();
        let kinds = datasets.chunk_by(|one, other| one == other).flat_map(|datasets| {
            [ChangeKind::Added, ChangeKind::Changed, ChangeKind::Removed].map(|change| (datasets[0], change))
        });
        for (dataset, change) in kinds {
            let rows: Vec<&RowChange> =
                self.rows.iter().filter(|row| (row.dataset, row.change) == (dataset, change)).collect();
            if rows.is_empty() {
                continue;
            }
            // Writing to a string cannot fail.
            let _ = writeln!(text, "{dataset} {change}:");
            for row in rows.iter().take(MAX_SHOWN) {
                let _ = writeln!(text, "  {} {}", row.id, shown(&row.name));
                if change == ChangeKind::Changed {
                    row.fields.iter().for_each(|field| field.describe(&mut text));
                }
            }
            push_more(&mut text, "  ", rows.len());
        }
        text
    }

    /// The changes of a license as text: the first of each kind.
    pub fn describe_license(&self, license: &str, dataset: Dataset) -> String {
        let mut text = String::new();
        let Some(effect) = self.effects.get(&(license.to_owned(), dataset)) else { return text };
        let lists = [("enter", &effect.entering), ("change", &effect.changed), ("leave", &effect.leaving)];
        for (what, list) in lists.into_iter().filter(|(_, list)| !list.is_empty()) {
            for NamedRecord { id, name } in list.iter().take(MAX_SHOWN) {
                let _ = writeln!(text, "  {what:<6} {id} {}", shown(name));
            }
            push_more(&mut text, "  ", list.len());
        }
        text
    }
}

impl FieldChange {
    fn describe(&self, text: &mut String) {
        let (before, after) = (text_of(&self.before), text_of(&self.after));
        let (before, after) = (before.as_deref().unwrap_or("(empty)"), after.as_deref().unwrap_or("(empty)"));
        let _ = if before == after {
            writeln!(text, "      {}: {} (a linked row changed)", self.field, shown(after))
        } else {
            writeln!(text, "      {}: {} → {}", self.field, shown(before), shown(after))
        };
    }
}

/// A value in one line, shortened.
fn shown(text: &str) -> String {
    Printable(&cut(text, MAX_VALUE_CHARS)).to_string()
}

fn push_more(text: &mut String, indent: &str, count: usize) {
    if let Some(more) = count.checked_sub(MAX_SHOWN).filter(|more| *more > 0) {
        let _ = writeln!(text, "{indent}and {} more; --json lists all", grouped(more));
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn changes(rows: Vec<RowChange>, effects: BTreeMap<(String, Dataset), ViewChanges>) -> Changes {
        Changes { references_before: References::default(), licenses: Vec::new(), rows, effects }
    }

    fn named(count: u64) -> Vec<NamedRecord> {
        (1..=count).map(|id| NamedRecord { id: Id::try_from(id).unwrap(), name: format!("C{id}") }).collect()
    }

    #[test]
    fn long_lists_are_cut_after_their_first_rows() {
        let row = |id, change| RowChange {
            dataset: "journals",
            id: Id::try_from(id).unwrap(),
            name: "x".repeat(MAX_VALUE_CHARS + 1),
            change,
            fields: Vec::new(),
        };
        for (count, last) in [(20, "  20 "), (21, "  and 1 more; --json lists all"), (1021, "  and 1,001 more;")] {
            let text =
                changes((1..=count).map(|id| row(id, ChangeKind::Added)).collect(), BTreeMap::new()).describe_rows();
            assert_eq!(text.lines().count(), 1 + count.min(21) as usize, "{text}");
            assert!(text.starts_with(&format!("journals added:\n  1 {}…\n", "x".repeat(MAX_VALUE_CHARS))), "{text}");
            assert!(text.lines().last().unwrap().starts_with(last), "{text}");
            let effect = ViewChanges { leaving: named(count), ..ViewChanges::default() };
            let all = changes(Vec::new(), [(("acme".to_owned(), Dataset::Journals), effect)].into());
            let text = all.describe_license("acme", Dataset::Journals);
            assert!(text.lines().count() == count.min(21) as usize, "{text}");
            assert!(
                text.starts_with("  leave  1 C1\n  leave  2 C2\n")
                    && text.lines().last().unwrap().contains(last.trim()),
                "{text}"
            );
            assert_eq!(all.describe_license("acme", Dataset::Conferences), "");
            assert_eq!(all.describe_license("acm", Dataset::Journals), "");
        }
    }

    #[test]
    fn rows_are_listed_by_dataset_and_kind() {
        let field = |before, after| FieldChange { field: "city", before, after };
        let row = |dataset, id, change, fields| RowChange {
            dataset,
            id: Id::try_from(id).unwrap(),
            name: "A\n".to_owned(),
            change,
            fields,
        };
        let rows = vec![
            row("tags", 1, ChangeKind::Removed, vec![field(json!("x"), json!(null))]),
            row("tags", 2, ChangeKind::Changed, vec![field(json!("x"), json!("x")), field(json!(null), json!("y"))]),
            row("tags", 3, ChangeKind::Added, vec![field(json!(null), json!("x"))]),
            row("conferences", 4, ChangeKind::Changed, vec![field(json!("it's"), json!(null))]),
        ];
        let expected = "tags added:\n  3 A\\n\ntags changed:\n  2 A\\n\n      city: x (a linked row changed)\n      city: (empty) → y\n\
                        tags removed:\n  1 A\\n\nconferences changed:\n  4 A\\n\n      city: it's → (empty)\n";
        assert_eq!(changes(rows, BTreeMap::new()).describe_rows(), expected);
        let effect = ViewChanges { entering: named(1), changed: named(2), leaving: Vec::new() };
        let all = changes(Vec::new(), [(("a".to_owned(), Dataset::Journals), effect)].into());
        assert_eq!(all.describe_license("a", Dataset::Journals), "  enter  1 C1\n  change 1 C1\n  change 2 C2\n");
    }
}
