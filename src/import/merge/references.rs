//! Organizations and tags after the import, and the resolution of links to them.

use std::collections::{BTreeMap, HashMap};

use indexmap::IndexMap;

use super::listed::{ListedFields, ListedRow, differences, merge_row};
use super::report::{FreeIds, Report};
use crate::import::findings::{FilePosition, Findings};
use crate::import::lint::{Lint, RowLocation};
use crate::import::read::statement::{CellContent, RecordLink, Statement};
use crate::import::row_faults::RowFaults;
use crate::import::rows::{ImportRow, ListOptions};
use crate::model::{
    Curated, Id, Joined, Message, ReferenceFields, ReferenceKind, Referenced, Remedy, match_form,
    message, nearest,
};

/// A link of a record, and the position of the record.
pub(super) type FoundLink<'a, F> = (&'a FilePosition, &'a RecordLink<F>);

/// All organizations or all tags after the import.
pub(super) struct Resolved<'a, F> {
    list: &'a ListOptions,
    stored: &'a BTreeMap<Id, Referenced<F>>,
    /// The imported rows, in the order of the files.
    imported: IndexMap<Id, ImportedReference<F>>,
    labels: Labels,
    ids: FreeIds,
}

/// An organization or tag in the import.
struct ImportedReference<F> {
    position: FilePosition,
    /// The field of a record that contains the full object, or the link.
    within: Option<&'static str>,
    outcome: ImportOutcome<F>,
}

enum ImportOutcome<F> {
    Valid(Curated<F>),
    Removed,
    /// A bad row. Links to its label are not reported, since its own faults are.
    Bad(String),
}

impl<F> ImportedReference<F> {
    fn location(&self) -> RowLocation {
        RowLocation::File(self.position.clone(), self.within)
    }
}

/// The ids of labels.
#[derive(Default)]
struct Labels {
    exact: HashMap<String, Id>,
    /// By the label without case, marks and blanks. `None` if there are several.
    by_form: HashMap<String, Option<Id>>,
}

impl Labels {
    fn add(&mut self, label: &str, id: Id) {
        self.exact.insert(label.to_owned(), id);
        let known = self.by_form.entry(match_form(label)).or_insert(Some(id));
        if *known != Some(id) {
            *known = None;
        }
    }

    /// Returns the id of a label, for lists of others in any spelling.
    fn find(&self, label: &str, is_listed: bool) -> Option<Id> {
        let exact = self.exact.get(label).copied();
        if exact.is_some() || !is_listed {
            return exact;
        }
        self.by_form.get(&match_form(label)).copied().flatten()
    }
}

/// Returns the label of a row, with its stored values.
fn label_of<F: ReferenceFields>(statement: &Statement<F>, stored: Option<&F>) -> String {
    let mut fields = stored.cloned().unwrap_or_default();
    statement.apply_to(&mut fields);
    fields.label()
}

/// Returns true if a label has letters, and no sign that usually separates several.
fn is_one_name(label: &str) -> bool {
    !label.contains([';', '|', '\n']) && label.chars().any(char::is_alphabetic)
}

impl<'a, F: ReferenceFields + ListedFields> Resolved<'a, F> {
    /// Merges rows and the full objects of links with the stored rows, creates the rows of unknown labels of links, and
    /// checks that labels are unique.
    pub fn new(
        list: &'a ListOptions,
        rows: Vec<ImportRow<F>>,
        links: &[FoundLink<'_, F>],
        stored: &'a BTreeMap<Id, Referenced<F>>,
        report: &mut Report,
    ) -> Resolved<'a, F> {
        let objects = links.iter().filter_map(|(position, link)| match link {
            RecordLink::Object(object) => Some((*position, &**object)),
            _ => None,
        });
        let known = rows.iter().filter_map(|row| row.id);
        let known = known.chain(objects.clone().map(|(_, object)| object.id()));
        let ids = FreeIds {
            kind: F::STEM,
            largest: known.chain(stored.keys().copied()).max(),
        };
        let mut resolved = Resolved {
            list,
            stored,
            imported: IndexMap::with_capacity(rows.len()),
            labels: Labels::default(),
            ids,
        };
        let (with_id, without): (Vec<_>, Vec<_>) =
            rows.into_iter().partition(|row| row.id.is_some());
        for row in with_id {
            let is_known = row.id.is_some_and(|id| stored.contains_key(&id));
            if list.leaves_out_new && !is_known && !row.edit.is_removal {
                report.leave_out_unknown(&row);
            } else {
                resolved.add_row(row, list.is_list, report);
            }
        }
        resolved.identify(without, report);
        objects.for_each(|(position, object)| resolved.add_object(position, object, report));
        let mut labels = resolved.find_labels(&mut report.bad);
        for (id, imported) in &resolved.imported {
            if let ImportOutcome::Bad(label) = &imported.outcome {
                labels.exact.entry(label.clone()).or_insert(*id);
            }
        }
        resolved.labels = labels;
        for (position, link) in links {
            if let RecordLink::Label(label) = link
                && list.creates_links
            {
                resolved.create(position, label, report);
            }
        }
        resolved.check(report);
        resolved
    }

    /// Lint checks the imported rows.
    fn check(&self, report: &mut Report) {
        for (id, imported) in &self.imported {
            if let ImportOutcome::Valid(row) = &imported.outcome {
                let before = self.stored.get(id).map(|stored| stored.row.fields());
                let location = imported.location();
                let lint = &mut report.lint;
                lint.check(&location, before, row, &|id| self.find(id));
            }
        }
    }

    /// Returns a valid row of the import, and its location.
    fn find(&self, id: Id) -> Option<(RowLocation, F)> {
        let imported = self.imported.get(&id)?;
        let ImportOutcome::Valid(row) = &imported.outcome else {
            return None;
        };
        Some((imported.location(), row.fields().clone()))
    }

    /// Compares stored rows that are not in the import with the imported rows.
    pub fn compare_untouched(&self, lint: &mut Lint) {
        let untouched = self
            .stored
            .iter()
            .filter(|(id, _)| !self.imported.contains_key(*id));
        untouched.for_each(|(id, found)| {
            lint.compare_stored(*id, found.row.fields(), &|id| self.find(id));
        });
    }

    /// Adds rows without ids. They mean the rows with their labels, or get the next free ids.
    fn identify(&mut self, rows: Vec<ImportRow<F>>, report: &mut Report) {
        if rows.is_empty() {
            return;
        }
        // A row with an id may rename or remove a stored one.
        let mut labels = self.find_labels(&mut Findings::default());
        for mut row in rows {
            let label = label_of(&row.edit.statement, None);
            row.id = labels.find(&label, true);
            if let Some(first) = row.id.and_then(|id| self.imported.get(&id)) {
                let both = [&first.position, &row.position];
                report.refuse_both(both, None, &label, |other| {
                    message!(
                        "means the same {} as the row at {other}, and differs from it; keep one of them",
                        F::KIND
                    )
                });
                continue;
            }
            if row.id.is_none() && report.is_new(&row, self.list) {
                report.counts.unknown += 1;
                row.id = self.ids.assign(&row.position, None, report);
            }
            if let Some(id) = row.id {
                labels.add(&label, id);
            }
            self.add_row(row, true, report);
        }
    }

    /// Creates the row of an unknown label that a record links to.
    fn create(&mut self, position: &FilePosition, label: &str, report: &mut Report) {
        if self.labels.find(label, self.list.is_list).is_some() || !is_one_name(label) {
            return;
        }
        // A label that means no row is reported at its link.
        let Some(fields) = F::of_label(label) else {
            return;
        };
        let Some(id) = self.ids.assign(position, Some(label), report) else {
            return;
        };
        match Curated::new(id, fields) {
            Ok(row) => {
                self.add_linked(position, row);
                self.labels.add(label, id);
            }
            Err(faults) => {
                RowFaults::new(position, &mut report.bad).push_faults(Some(&F::STEM), faults);
            }
        }
    }

    /// Adds a row with an id. `is_listed` says that it is one of a list of others.
    fn add_row(&mut self, row: ImportRow<F>, is_listed: bool, report: &mut Report) {
        let Some(id) = row.id else { return };
        if let Some(first) = self.imported.get(&id) {
            report.refuse_double([&first.position, &row.position], id);
            return;
        }
        let stored = self.stored.get(&id).map(|found| found.row.fields());
        let list = is_listed.then_some(self.list);
        let outcome = if row.edit.is_removal {
            ImportOutcome::Removed
        } else {
            match merge_row(&row, stored, list, report, |_, _, _| {}) {
                Some(merged) => ImportOutcome::Valid(merged),
                None => ImportOutcome::Bad(label_of(&row.edit.statement, stored)),
            }
        };
        let imported = ImportedReference {
            position: row.position,
            within: None,
            outcome,
        };
        self.imported.insert(id, imported);
    }

    /// Adds a row that a link contains or creates.
    fn add_linked(&mut self, position: &FilePosition, row: Curated<F>) {
        self.imported.insert(
            row.id(),
            ImportedReference {
                position: position.clone(),
                within: Some(F::STEM),
                outcome: ImportOutcome::Valid(row),
            },
        );
    }

    /// Returns a full object, in a list of others with the stored values of its null members.
    fn merge_object(&self, object: &Curated<F>, report: &mut Report) -> Curated<F> {
        let stored = self.stored.get(&object.id()).filter(|_| self.list.is_list);
        let Some(stored) = stored else {
            return object.clone();
        };
        let values = object.fields().values().into_iter();
        let contents = values.map(|value| match value.is_null() {
            true => CellContent::Empty,
            false => CellContent::Value,
        });
        let list = ListOptions::default();
        let mut listed = ListedRow::new(object.fields(), contents, &list, None);
        let fields = listed.merge_into(stored.row.fields(), &mut report.counts);
        Curated::new(object.id(), fields).unwrap_or_else(|_| object.clone())
    }

    /// Adds the row of a full object. It must be equal to other occurrences of the row in the import.
    fn add_object(&mut self, position: &FilePosition, object: &Curated<F>, report: &mut Report) {
        let id = object.id();
        let object = self.merge_object(object, report);
        let Some(first) = self.imported.get(&id) else {
            return self.add_linked(position, object);
        };
        let message = match &first.outcome {
            ImportOutcome::Bad(_) => return,
            ImportOutcome::Valid(row) if *row == object => return,
            ImportOutcome::Valid(row) => {
                let differing = differences(row.fields(), object.fields());
                let names = differing.map(|(at, ..)| format!("`{}`", F::table().fields[at].name));
                message!(
                    "the object of this {} differs in {} from the one at {}; give them the same values",
                    F::KIND,
                    names.joined(", "),
                    first.position
                )
            }
            ImportOutcome::Removed => {
                message!(
                    "the {} is removed at {}; remove it here, or keep it there",
                    F::KIND,
                    first.position
                )
            }
        };
        let bad = &mut report.bad;
        bad.push(position, Some(F::STEM), Some(&id.to_string()), message);
    }

    /// Finds the id of each label after the import. A duplicate label is reported at the later row.
    fn find_labels(&self, bad: &mut Findings) -> Labels {
        let mut labels = Labels::default();
        let stored = self.stored.iter();
        let kept = stored.filter(|(id, _)| !self.imported.contains_key(*id));
        kept.for_each(|(id, row)| labels.add(&row.label, *id));
        for (id, imported) in &self.imported {
            let ImportOutcome::Valid(row) = &imported.outcome else {
                continue;
            };
            let label = row.fields().label();
            let Some(other) = labels.exact.get(&label) else {
                labels.add(&label, *id);
                continue;
            };
            let position = match self.imported.get(other) {
                Some(other) => other.location(),
                None => RowLocation::Database(F::STEM, *other),
            }
            .describe();
            let message = message!(
                "is also the name of {} {other} {position}; names are unique: use one id, or another name",
                F::KIND
            );
            let field = imported.within.or(Some("name"));
            bad.push(&imported.position, field, Some(&label), message);
        }
        labels
    }

    /// Returns the ids that the links refer to, and reports links without a target.
    pub fn find_ids(&self, links: &[RecordLink<F>], faults: &mut RowFaults<'_>) -> Vec<Id> {
        let mut ids = Vec::with_capacity(links.len());
        for link in links {
            match link {
                RecordLink::Object(object) => ids.push(object.id()),
                RecordLink::Id(id) => match self.why_missing(*id) {
                    None => ids.push(*id),
                    Some(message) => faults.push_value(&F::STEM, &id.to_string(), message),
                },
                RecordLink::Label(label) => match self.labels.find(label, self.list.is_list) {
                    Some(id) => ids.push(id),
                    None => faults.push_value(&F::STEM, label, self.why_unknown(label, faults)),
                },
            }
        }
        ids
    }

    fn why_missing(&self, id: Id) -> Option<Message> {
        let imported = self.imported.get(&id);
        match imported.map(|imported| (&imported.outcome, &imported.position)) {
            Some((ImportOutcome::Removed, position)) => Some(message!(
                "the {} is removed at {position}; remove the link, or keep it there",
                F::KIND
            )),
            None if !self.stored.contains_key(&id) => Some(message!(
                "there is no {} with this id; import it too, or give its full object",
                F::KIND
            )),
            _ => None,
        }
    }

    fn why_unknown(&self, label: &str, faults: &RowFaults<'_>) -> Message {
        let kind = F::KIND;
        if kind == ReferenceKind::Tag && !label.contains(": ") {
            return "is not a known tag; write it as `Type: Name`".into();
        }
        if !is_one_name(label) {
            return message!(
                "is not a known {kind}, and does not look like the name of one; separate several by `; `, or set list_separator \
                 in a recipe"
            );
        }
        if !faults.may_search(self.labels.exact.len()) {
            return message!("is not a known {kind}; import it too, or add --create-links");
        }
        let removed = self
            .removed()
            .find(|(_, id)| self.stored[id].label == label);
        if let Some((position, _)) = removed {
            return message!(
                "the {kind} of this name is removed at {position}; remove the link, or keep it there"
            );
        }
        match nearest(label, self.labels.exact.keys().map(String::as_str)) {
            Some(near) => message!(
                "is not a known {kind}; did you mean `{near}`? If not, import the {kind} too, or add --create-links"
            )
            .with(Remedy::OfValue),
            None => message!("is not a known {kind}; import it too, or add --create-links"),
        }
    }

    /// Returns the stored rows that the import removes, and the positions of the removals.
    pub fn removed(&self) -> impl Iterator<Item = (&FilePosition, Id)> {
        self.imported
            .iter()
            .filter(|(id, imported)| {
                matches!(imported.outcome, ImportOutcome::Removed) && self.stored.contains_key(id)
            })
            .map(|(id, imported)| (&imported.position, *id))
    }

    /// Returns the rows for the batch. Removals of rows that are not stored are omitted.
    pub fn into_rows(self) -> BTreeMap<Id, Option<Curated<F>>> {
        let stored = self.stored;
        self.imported
            .into_iter()
            .filter_map(|(id, imported)| match imported.outcome {
                ImportOutcome::Valid(row) => Some((id, Some(row))),
                ImportOutcome::Removed => stored.contains_key(&id).then_some((id, None)),
                ImportOutcome::Bad(_) => None,
            })
            .collect()
    }
}
