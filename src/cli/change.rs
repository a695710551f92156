//! The changes of a dry run, by row and by license.

use std::collections::BTreeMap;
use std::fmt::Write;

use serde::Serialize;
use serde_json::Value;

use crate::import::findings::cut;
use crate::model::{
    Count, Curated, Dataset, FieldValue, Fields, Id, LinkTexts, Printable, RecordFields,
    ReferenceFields, Referenced, References,
};
use crate::store::{Batch, Edit, Snapshot, StoreError};

/// The most rows of a list that are printed as text.
const MAX_SHOWN: usize = 20;
/// The most characters of a value that are printed as text.
const MAX_VALUE_CHARS: usize = 100;

/// The changes of a batch.
#[derive(Default)]
pub struct Changes {
    /// Organizations, tags, conferences, journals; each by id.
    pub changes: Vec<RowChange>,
    /// By license and dataset.
    pub license_changes: Vec<RecordsOfLicense>,
}

#[derive(Serialize)]
pub struct RowChange {
    dataset: &'static str,
    id: Id,
    name: String,
    /// One of [`CHANGES`].
    change: &'static str,
    /// The fields that differ, in the order of the record.
    fields: Vec<FieldChange>,
}

const CHANGES: [&str; 3] = ["added", "changed", "removed"];

#[derive(Serialize)]
struct FieldChange {
    field: &'static str,
    before: Value,
    after: Value,
    /// Both values as cells of CSV.
    #[serde(skip)]
    cells: [String; 2],
}

/// A record by id and name.
#[derive(Serialize)]
pub struct NamedRecord {
    pub id: Id,
    pub name: String,
}

impl NamedRecord {
    pub fn of<F: Fields>(record: &Curated<F>) -> NamedRecord {
        NamedRecord {
            id: record.id(),
            name: record.fields().name().to_owned(),
        }
    }
}

/// The records of a dataset that enter a license, change in it, or leave it.
#[derive(Serialize)]
pub struct RecordsOfLicense {
    license: String,
    dataset: Dataset,
    entering: Vec<NamedRecord>,
    changed: Vec<NamedRecord>,
    leaving: Vec<NamedRecord>,
}

impl Changes {
    /// Compares the state before an edit with the edit, after a batch was applied.
    pub fn of(before: &Snapshot, edit: &Edit<'_>, batch: &Batch) -> Result<Changes, StoreError> {
        let references = before.references()?;
        let mut changes = Changes::default();
        changes.push_references(&references.organizations, &batch.organizations);
        changes.push_references(&references.tags, &batch.tags);
        changes.push_records(before, edit, &batch.conferences)?;
        changes.push_records(before, edit, &batch.journals)?;
        changes.license_changes.sort_by(|one, other| {
            (&one.license, one.dataset).cmp(&(&other.license, other.dataset))
        });
        Ok(changes)
    }

    fn push_references<F: ReferenceFields>(
        &mut self,
        stored: &BTreeMap<Id, Referenced<F>>,
        rows: &BTreeMap<Id, Option<Curated<F>>>,
    ) {
        // References link to nothing.
        let none = References::default();
        for (id, after) in rows {
            let before = (stored.get(id).map(|found| &found.row), &none);
            let after = (after.as_ref(), &none);
            if before.0 != after.0 {
                self.changes.extend(RowChange::of(before, after));
            }
        }
    }

    fn push_records<F: RecordFields>(
        &mut self,
        before: &Snapshot,
        edit: &Edit<'_>,
        rows: &BTreeMap<Id, Option<Curated<F>>>,
    ) -> Result<(), StoreError> {
        let removed = rows
            .iter()
            .filter(|(_, row)| row.is_none())
            .map(|(id, _)| (*id, None));
        let written = edit
            .written_records::<F>()?
            .into_iter()
            .map(|record| (record.id(), Some(record)));
        let changed: BTreeMap<Id, Option<Curated<F>>> = removed.chain(written).collect();
        let references = before.references()?;
        let licenses = before.list_licenses().into_iter();
        let shown = licenses.filter(|license| license.feed(F::DATASET).is_some());
        let effects = shown.map(|license| {
            let effect = RecordsOfLicense {
                license: license.name.clone(),
                dataset: F::DATASET,
                entering: Vec::new(),
                changed: Vec::new(),
                leaving: Vec::new(),
            };
            (&license.scope, effect)
        });
        let mut effects: Vec<_> = effects.collect();
        for (id, after) in changed {
            let before = before.find_stored(id)?;
            let Some(row) = after.as_ref().or(before.as_ref()) else {
                continue;
            };
            self.changes.extend(RowChange::of(
                (before.as_ref(), references),
                (after.as_ref(), &edit.references),
            ));
            for (scope, effect) in &mut effects {
                let [saw, sees] = [&before, &after].map(|row| {
                    let row = row.as_ref();
                    row.is_some_and(|row| row.fields().is_in(scope))
                });
                let list = match (saw, sees) {
                    (false, false) => continue,
                    (false, true) => &mut effect.entering,
                    (true, true) => &mut effect.changed,
                    (true, false) => &mut effect.leaving,
                };
                list.push(NamedRecord::of(row));
            }
        }
        let effects = effects.into_iter().map(|(_, effect)| effect);
        self.license_changes.extend(
            effects.filter(|effect| effect.lists().iter().any(|(_, list)| !list.is_empty())),
        );
        Ok(())
    }

    /// The changed rows as text: the first of each kind.
    pub fn describe_rows(&self) -> String {
        let mut text = String::new();
        let kinds = self
            .changes
            .chunk_by(|one, other| one.dataset == other.dataset);
        let kinds = kinds.flat_map(|rows| {
            CHANGES.map(|change| (change, rows.iter().filter(move |row| row.change == change)))
        });
        for (change, rows) in kinds {
            let rows: Vec<&RowChange> = rows.collect();
            let Some(first) = rows.first() else {
                continue;
            };
            // Writing to a string cannot fail.
            let _ = writeln!(text, "{} {change}:", first.dataset);
            for row in rows.iter().take(MAX_SHOWN) {
                let _ = writeln!(text, "  {} {}", row.id, shown(&row.name));
                if change == "changed" {
                    row.fields
                        .iter()
                        .for_each(|field| field.describe(&mut text));
                }
            }
            push_more(&mut text, rows.len());
        }
        text
    }

    /// The changes of a license as text: the first of each kind.
    pub fn describe_license(&self, license: &str, dataset: Dataset) -> String {
        let mut text = String::new();
        let effects = self.license_changes.iter();
        let effect =
            effects.filter(|effect| effect.license == license && effect.dataset == dataset);
        for (what, list) in effect.flat_map(RecordsOfLicense::lists) {
            for NamedRecord { id, name } in list.iter().take(MAX_SHOWN) {
                let _ = writeln!(text, "  {what:<6} {id} {}", shown(name));
            }
            push_more(&mut text, list.len());
        }
        text
    }
}

impl RecordsOfLicense {
    /// The lists, each with its verb.
    fn lists(&self) -> [(&'static str, &[NamedRecord]); 3] {
        [
            ("enter", &self.entering),
            ("change", &self.changed),
            ("leave", &self.leaving),
        ]
    }
}

impl RowChange {
    /// Compares the versions of a row before and after, each with the rows that it links to. `None` without any.
    fn of<F: Fields>(
        (before, links_before): (Option<&Curated<F>>, &References),
        (after, links_after): (Option<&Curated<F>>, &References),
    ) -> Option<RowChange> {
        let row = after.or(before)?;
        let change = match (before, after) {
            (None, _) => "added",
            (_, None) => "removed",
            _ => "changed",
        };
        let none = F::default();
        let old = before.map_or(&none, Curated::fields).values();
        let new = after.map_or(&none, Curated::fields).values();
        let differing = F::table()
            .fields
            .iter()
            .zip(old.into_iter().zip(new))
            .filter_map(|(field, (old, new))| {
                let before = value_of(old, links_before);
                let after = value_of(new, links_after);
                (before != after).then(|| FieldChange {
                    field: &field.name,
                    before,
                    after,
                    cells: [old.to_csv(links_before), new.to_csv(links_after)].map(Into::into),
                })
            });
        let fields = differing.collect();
        Some(RowChange {
            dataset: F::STEM,
            id: row.id(),
            name: row.fields().name().to_owned(),
            change,
            fields,
        })
    }
}

impl FieldChange {
    fn describe(&self, text: &mut String) {
        let [before, after] = &self.cells;
        let [old, new] = [before, after].map(|cell| match &**cell {
            "" => "(empty)".to_owned(),
            cell => shown(cell),
        });
        let change = match before == after {
            true => format!("{new} (a linked row changed)"),
            false => format!("{old} → {new}"),
        };
        let _ = writeln!(text, "      {}: {change}", self.field);
    }
}

/// A value in one line, shortened.
fn shown(text: &str) -> String {
    Printable(&cut(text, MAX_VALUE_CHARS)).to_string()
}

fn push_more(text: &mut String, count: usize) {
    if let Some(more) = count.checked_sub(MAX_SHOWN).filter(|more| *more > 0) {
        let _ = writeln!(text, "  and {} more; --json lists all", Count(more as u64));
    }
}

/// A field's value in the JSON of the API.
fn value_of(value: &dyn FieldValue, links: &dyn LinkTexts) -> Value {
    let mut json = Vec::new();
    value.write_json(&mut json, links);
    // Valid JSON was just written.
    serde_json::from_slice(&json).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn license_changes(license: &str, entering: u64, changed: u64, leaving: u64) -> Changes {
        let (license, dataset) = (license.to_owned(), Dataset::Journals);
        let [entering, changed, leaving] = [entering, changed, leaving].map(named);
        let license_changes = vec![RecordsOfLicense {
            license,
            dataset,
            entering,
            changed,
            leaving,
        }];
        Changes {
            changes: Vec::new(),
            license_changes,
        }
    }

    fn named(count: u64) -> Vec<NamedRecord> {
        (1..=count)
            .map(|id| NamedRecord {
                id: Id::try_from(id).unwrap(),
                name: format!("C{id}"),
            })
            .collect()
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
        for (count, last) in [
            (20, "  20 "),
            (21, "  and 1 more; --json lists all"),
            (1021, "  and 1,001 more;"),
        ] {
            let changes = (1..=count).map(|id| row(id, "added")).collect();
            let text = Changes {
                changes,
                license_changes: Vec::new(),
            }
            .describe_rows();
            assert_eq!(text.lines().count(), 1 + count.min(21) as usize, "{text}");
            assert!(
                text.starts_with(&format!(
                    "journals added:\n  1 {}…\n",
                    "x".repeat(MAX_VALUE_CHARS)
                )),
                "{text}"
            );
            assert!(text.lines().last().unwrap().starts_with(last), "{text}");
            let all = license_changes("acme", 0, 0, count);
            let text = all.describe_license("acme", Dataset::Journals);
            assert!(text.lines().count() == count.min(21) as usize, "{text}");
            assert!(text.starts_with("  leave  1 C1\n  leave  2 C2\n"), "{text}");
            assert!(text.lines().last().unwrap().contains(last.trim()), "{text}");
            assert_eq!(all.describe_license("acme", Dataset::Conferences), "");
            assert_eq!(all.describe_license("acm", Dataset::Journals), "");
        }
    }

    #[test]
    fn rows_are_listed_by_dataset_and_kind() {
        let field = |before: &str, after: &str| FieldChange {
            field: "city",
            before: Value::Null,
            after: Value::Null,
            cells: [before, after].map(str::to_owned),
        };
        let row = |dataset, id, change, fields| RowChange {
            dataset,
            id: Id::try_from(id).unwrap(),
            name: "A\n".to_owned(),
            change,
            fields,
        };
        let rows = vec![
            row("tags", 1, "removed", vec![field("x", "")]),
            row("tags", 2, "changed", vec![field("x", "x"), field("", "y")]),
            row("tags", 3, "added", vec![field("", "x")]),
            row("conferences", 4, "changed", vec![field("it's", "")]),
        ];
        let expected = "tags added:\n  3 A\\n\ntags changed:\n  2 A\\n\n      city: x (a linked row changed)\n      city: (empty) → y\n\
                        tags removed:\n  1 A\\n\nconferences changed:\n  4 A\\n\n      city: it's → (empty)\n";
        assert_eq!(
            Changes {
                changes: rows,
                license_changes: Vec::new()
            }
            .describe_rows(),
            expected
        );
        let all = license_changes("a", 1, 2, 0);
        assert_eq!(
            all.describe_license("a", Dataset::Journals),
            "  enter  1 C1\n  change 1 C1\n  change 2 C2\n"
        );
    }
}
