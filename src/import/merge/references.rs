//! Organizations and tags after the import, and the resolution of links to them.

use std::collections::{BTreeMap, HashMap};

use crate::import::findings::{FilePosition, Finding, Findings};
use crate::import::lint::{Lint, RowLocation};
use crate::import::read::statement::RecordLink;
use crate::import::row_faults::RowFaults;
use crate::import::rows::{ImportRow, MAY_BE_NOTE, RowEdit};
use crate::model::fold::nearest;
use crate::model::message::{Message, Remedy, message};
use crate::model::reference::{ReferenceFields, Referenced};
use crate::model::{Curated, Id, ReferenceKind};

/// A link of a record, and the position of the record.
pub(super) type FoundLink<'a, F> = (&'a FilePosition, &'a RecordLink<F>);

/// All organizations or all tags after the import.
pub(super) struct Resolved<'a, F> {
    stored: &'a BTreeMap<Id, Referenced<F>>,
    imported: BTreeMap<Id, ImportedReference<F>>,
    /// The ids of the imported rows in the order of the files.
    order: Vec<Id>,
    ids_by_label: HashMap<String, Id>,
    /// The largest id so far, or 0.
    largest: u64,
    /// The ids that were assigned to rows and links without one.
    pub assigned: Vec<Finding>,
}

/// An organization or tag in the import.
struct ImportedReference<F> {
    position: FilePosition,
    /// The field to report: for a full object, the record's list of links.
    field: &'static str,
    outcome: ImportOutcome<F>,
}

enum ImportOutcome<F> {
    Valid(Curated<F>),
    Removed,
    /// A bad row. Links to its label are not reported, since its own faults are.
    Bad {
        label: String,
    },
}

/// Merges rows and the full objects of links with the stored rows, and checks that labels are unique. If `creates`,
/// links to unknown labels create their rows.
pub(super) fn resolve<'a, F: ReferenceFields>(
    rows: Vec<ImportRow<F>>,
    links: &[FoundLink<'_, F>],
    creates: bool,
    stored: &'a BTreeMap<Id, Referenced<F>>,
    bad: &mut Findings,
    lint: &mut Lint,
) -> Resolved<'a, F> {
    let objects = links.iter().filter_map(|(position, link)| match link {
        RecordLink::Object(object) => Some((*position, object)),
        _ => None,
    });
    let ids = rows
        .iter()
        .filter_map(|row| row.id)
        .chain(objects.clone().map(|(_, object)| object.id()));
    let largest = ids.chain(stored.keys().copied()).max().map_or(0, Id::get);
    let (order, ids_by_label) = (Vec::with_capacity(rows.len()), HashMap::new());
    let mut resolved = Resolved {
        stored,
        imported: BTreeMap::new(),
        order,
        ids_by_label,
        largest,
        assigned: Vec::new(),
    };
    let (with_id, without): (Vec<_>, Vec<_>) = rows.into_iter().partition(|row| row.id.is_some());
    with_id
        .into_iter()
        .for_each(|row| resolved.add_row(row, bad));
    resolved.identify(without, bad);
    objects.for_each(|(position, object)| resolved.add_object(position, object, bad));
    resolved.ids_by_label = resolved.find_labels(bad);
    for (position, link) in links {
        if let RecordLink::Label(label) = link
            && creates
        {
            resolved.create(position, label, bad);
        }
    }
    for (
        id,
        ImportedReference {
            position,
            field,
            outcome,
        },
    ) in resolved.in_order()
    {
        if let ImportOutcome::Valid(row) = outcome {
            let before = stored.get(&id).map(|referenced| referenced.row.fields());
            let within = (*field == F::STEM).then_some(*field);
            lint.check(&RowLocation::File(position.clone()), within, before, row);
        }
    }
    resolved
}

/// Returns true if a label has letters, and no sign that usually separates several.
fn is_one_name(label: &str) -> bool {
    !label.contains([';', '|', '\n']) && label.chars().any(char::is_alphabetic)
}

impl<F: ReferenceFields> Resolved<'_, F> {
    /// Compares stored rows that are not in the import with the imported rows.
    pub fn compare_untouched(&self, lint: &mut Lint) {
        let untouched = self
            .stored
            .iter()
            .filter(|(id, _)| !self.imported.contains_key(id));
        untouched.for_each(|(_, found)| lint.compare_stored(&found.row));
    }

    fn in_order(&self) -> impl Iterator<Item = (Id, &ImportedReference<F>)> {
        self.order
            .iter()
            .filter_map(|id| Some((*id, self.imported.get(id)?)))
    }

    fn add(
        &mut self,
        id: Id,
        position: FilePosition,
        field: &'static str,
        outcome: ImportOutcome<F>,
    ) {
        self.order.push(id);
        self.imported.insert(
            id,
            ImportedReference {
                position,
                field,
                outcome,
            },
        );
    }

    /// Adds rows without ids. They mean the rows with their labels, or get the next free ids.
    fn identify(&mut self, rows: Vec<ImportRow<F>>, bad: &mut Findings) {
        if rows.is_empty() {
            return;
        }
        // A row with an id may rename or remove a stored one.
        let kept = self
            .stored
            .iter()
            .filter(|(id, _)| !self.imported.contains_key(id));
        let mut ids: HashMap<String, Id> = kept.map(|(id, row)| (row.label.clone(), *id)).collect();
        for (id, imported) in self.in_order() {
            if let ImportOutcome::Valid(row) = &imported.outcome {
                ids.insert(row.fields().label(), id);
            }
        }
        for mut row in rows {
            let RowEdit::Set(statement) = &row.edit else {
                bad.push(
                    &row.position,
                    Some("id"),
                    None,
                    "is missing; a row that removes a record needs its id",
                );
                continue;
            };
            let mut fields = F::default();
            statement.clone().apply_to(&mut fields);
            let label = fields.label();
            if let Some(first) = ids.get(&label).and_then(|id| self.imported.get(id)) {
                let message = message!(
                    "means the same {} as the row at {}, and differs from it; keep one of them",
                    F::KIND,
                    first.position
                );
                bad.push(&row.position, None, Some(&label), message);
                continue;
            }
            if row.may_be_note && !ids.contains_key(&label) {
                bad.push(&row.position, None, None, MAY_BE_NOTE);
                continue;
            }
            row.id = ids
                .get(&label)
                .copied()
                .or_else(|| self.next_id(&row.position, None, bad));
            ids.extend(row.id.map(|id| (label, id)));
            self.add_row(row, bad);
        }
    }

    /// Creates the row of an unknown label that a record links to.
    fn create(&mut self, position: &FilePosition, label: &str, bad: &mut Findings) {
        if self.ids_by_label.contains_key(label) || !is_one_name(label) {
            return;
        }
        // A label that means no row is reported at its link.
        let Some(fields) = F::of_label(label) else {
            return;
        };
        let Some(id) = self.next_id(position, Some(label), bad) else {
            return;
        };
        match Curated::new(id, fields) {
            Ok(row) => {
                self.add(id, position.clone(), F::STEM, ImportOutcome::Valid(row));
                self.ids_by_label.insert(label.to_owned(), id);
            }
            Err(faults) => RowFaults::new(position, bad).push_faults(Some(&F::STEM), faults),
        }
    }

    /// Returns the next free id, for a row or for a link to `label`.
    fn next_id(
        &mut self,
        position: &FilePosition,
        label: Option<&str>,
        bad: &mut Findings,
    ) -> Option<Id> {
        match Id::try_from(self.largest + 1) {
            Ok(id) => {
                self.largest = id.get();
                self.assigned
                    .push(Finding::assigned(position, F::STEM, id, label));
                Some(id)
            }
            Err(error) => {
                bad.push(
                    position,
                    Some("id"),
                    None,
                    message!("no id is free: {error}"),
                );
                None
            }
        }
    }

    fn add_row(&mut self, row: ImportRow<F>, bad: &mut Findings) {
        let ImportRow {
            position,
            id,
            edit,
            is_bad,
            ..
        } = row;
        let Some(id) = id else { return };
        if let Some(first) = self.imported.get(&id) {
            let message = message!(
                "appears twice; the first row with this id is at {}",
                first.position
            );
            return bad.push(&position, Some("id"), Some(&id.to_string()), message);
        }
        let outcome = match edit {
            RowEdit::Remove => ImportOutcome::Removed,
            RowEdit::Set(statement) => {
                let stored = self.stored.get(&id);
                let mut fields = stored
                    .map(|referenced| referenced.row.fields().clone())
                    .unwrap_or_default();
                statement.apply_to(&mut fields);
                let label = fields.label();
                match Curated::new(id, fields) {
                    _ if is_bad => ImportOutcome::Bad { label },
                    Ok(row) => ImportOutcome::Valid(row),
                    Err(faults) => {
                        RowFaults::new(&position, bad).push_faults(None, faults);
                        ImportOutcome::Bad { label }
                    }
                }
            }
        };
        self.add(id, position, "name", outcome);
    }

    /// Adds the row of a full object. It must be equal to other occurrences of the row in the import.
    fn add_object(&mut self, position: &FilePosition, object: &Curated<F>, bad: &mut Findings) {
        let id = object.id();
        let Some(first) = self.imported.get(&id) else {
            return self.add(
                id,
                position.clone(),
                F::STEM,
                ImportOutcome::Valid(object.clone()),
            );
        };
        let message = match &first.outcome {
            ImportOutcome::Bad { .. } => return,
            ImportOutcome::Valid(row) if row == object => return,
            ImportOutcome::Valid(row) => {
                let none = ();
                let values = row
                    .fields()
                    .values()
                    .into_iter()
                    .zip(object.fields().values());
                let differing: Vec<String> = (F::table().fields.iter().zip(values))
                    .filter(|(_, (one, other))| one.to_csv(&none) != other.to_csv(&none))
                    .map(|(field, _)| format!("`{}`", field.name))
                    .collect();
                message!(
                    "the object of this {} differs in {} from the one at {}; give them the same values",
                    F::KIND,
                    differing.join(", "),
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
        bad.push(position, Some(F::STEM), Some(&id.to_string()), message);
    }

    /// Returns the id of each label after the import. A duplicate label is reported at the later row.
    fn find_labels(&self, bad: &mut Findings) -> HashMap<String, Id> {
        let untouched = self
            .stored
            .iter()
            .filter(|(id, _)| !self.imported.contains_key(id));
        let mut ids: HashMap<String, Id> = untouched
            .map(|(id, row)| (row.label.clone(), *id))
            .collect();
        for (id, imported) in self.in_order() {
            let ImportOutcome::Valid(row) = &imported.outcome else {
                continue;
            };
            let label = row.fields().label();
            let Some(other) = ids.get(&label) else {
                ids.insert(label, id);
                continue;
            };
            let position = self
                .imported
                .get(other)
                .map_or("in the database".to_owned(), |other| {
                    format!("at {}", other.position)
                });
            let message = message!(
                "is also the name of {} {other} {position}; names are unique: use one id, or another name",
                F::KIND
            );
            bad.push(
                &imported.position,
                Some(imported.field),
                Some(&label),
                message,
            );
        }
        for (id, imported) in self.in_order() {
            if let ImportOutcome::Bad { label } = &imported.outcome {
                ids.entry(label.clone()).or_insert(id);
            }
        }
        ids
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
                RecordLink::Label(label) => match self.ids_by_label.get(label) {
                    Some(id) => ids.push(*id),
                    None => faults.push_value(&F::STEM, label, self.why_unknown(label, faults)),
                },
            }
        }
        ids
    }

    fn why_missing(&self, id: Id) -> Option<Message> {
        match self.imported.get(&id) {
            Some(ImportedReference {
                position,
                outcome: ImportOutcome::Removed,
                ..
            }) => Some(message!(
                "the {} is removed at {position}; remove the link, or keep it there",
                F::KIND
            )),
            Some(_) => None,
            None if self.stored.contains_key(&id) => None,
            None => Some(message!(
                "there is no {} with this id; import it too, or give its full object",
                F::KIND
            )),
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
        if !faults.may_search(self.ids_by_label.len()) {
            return message!("is not a known {kind}; import it too, or add --create-links");
        }
        let removed = self.removed().find(|(_, id)| {
            self.stored
                .get(id)
                .is_some_and(|found| found.label == label)
        });
        if let Some((position, _)) = removed {
            return message!(
                "the {kind} of this name is removed at {position}; remove the link, or keep it there"
            );
        }
        match nearest(label, self.ids_by_label.keys().map(String::as_str)) {
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
                ImportOutcome::Bad { .. } => None,
            })
            .collect()
    }
}
