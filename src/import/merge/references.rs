//! Organizations and tags after the import, and the resolution of links to them.

use std::collections::{BTreeMap, HashMap, HashSet};

use super::listed::{ListedFields, ListedRow};
use super::report::{Report, report_double};
use crate::import::findings::{FilePosition, Finding, Findings};
use crate::import::lint::{Lint, Lintable, RowLocation};
use crate::import::read::statement::{RecordLink, Statement};
use crate::import::row_faults::RowFaults;
use crate::import::rows::{ImportRow, ListOptions, MAY_BE_NOTE, RowEdit};
use crate::model::fold::{match_form, nearest};
use crate::model::message::{Message, Remedy, message};
use crate::model::reference::{ReferenceFields, Referenced};
use crate::model::{Curated, Id, ReferenceKind};

/// A link of a record, and the position of the record.
pub(super) type FoundLink<'a, F> = (&'a FilePosition, &'a RecordLink<F>);

/// All organizations or all tags after the import.
pub(super) struct Resolved<'a, F> {
    list: &'a ListOptions,
    stored: &'a BTreeMap<Id, Referenced<F>>,
    imported: BTreeMap<Id, ImportedReference<F>>,
    /// The ids of the imported rows in the order of the files.
    order: Vec<Id>,
    ids_by_label: HashMap<String, Id>,
    /// For lists of others: the ids by labels without case, marks and blanks. `None` if there are several.
    ids_by_form: HashMap<String, Option<Id>>,
    /// The largest id so far, or 0.
    largest: u64,
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

impl<F: ReferenceFields> ImportedReference<F> {
    fn location(&self) -> RowLocation {
        let within = (self.field == F::STEM).then_some(self.field);
        RowLocation::File(self.position.clone(), within)
    }
}

/// How rows of organizations and tags are resolved.
pub(super) struct Resolver<'a> {
    pub list: &'a ListOptions,
    /// Whether links to unknown labels create their rows.
    pub creates: bool,
}

impl Resolver<'_> {
    /// Merges rows and the full objects of links with the stored rows, and checks that labels are unique.
    pub fn resolve<'a, F: ReferenceFields + ListedFields>(
        &'a self,
        rows: Vec<ImportRow<F>>,
        links: &[FoundLink<'_, F>],
        stored: &'a BTreeMap<Id, Referenced<F>>,
        report: &mut Report,
    ) -> Resolved<'a, F> {
        let objects = links.iter().filter_map(|(position, link)| match link {
            RecordLink::Object(object) => Some((*position, &**object)),
            _ => None,
        });
        let ids = rows
            .iter()
            .filter_map(|row| row.id)
            .chain(objects.clone().map(|(_, object)| object.id()));
        let largest = ids.chain(stored.keys().copied()).max().map_or(0, Id::get);
        let mut resolved = Resolved {
            list: self.list,
            stored,
            imported: BTreeMap::new(),
            order: Vec::with_capacity(rows.len()),
            ids_by_label: HashMap::new(),
            ids_by_form: HashMap::new(),
            largest,
        };
        let (with_id, without): (Vec<_>, Vec<_>) =
            rows.into_iter().partition(|row| row.id.is_some());
        for row in with_id {
            let is_known = row.id.is_some_and(|id| stored.contains_key(&id));
            let is_removal = matches!(row.edit, RowEdit::Remove);
            if self.list.leaves_out_new && !is_known && !is_removal {
                report.leave_out_unknown(&row);
            } else {
                resolved.add_row(row, self.list.is_list, report);
            }
        }
        resolved.identify(without, report);
        objects.for_each(|(position, object)| resolved.add_object(position, object, report));
        resolved.find_labels(&mut report.bad);
        for (position, link) in links {
            if let RecordLink::Label(label) = link
                && self.creates
            {
                resolved.create(position, label, report);
            }
        }
        resolved.check(report);
        resolved
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

    fn find(&self, label: &str) -> Option<Id> {
        let exact = self.exact.get(label).copied();
        exact.or_else(|| self.by_form.get(&match_form(label)).copied().flatten())
    }
}

/// Returns the label that a row sets.
fn label_of<F: ReferenceFields>(statement: &Statement<F>) -> String {
    let mut fields = F::default();
    statement.apply_to(&mut fields);
    fields.label()
}

/// Reports a row that means the same as another one, and differs from it.
fn report_same<F: ReferenceFields>(
    bad: &mut Findings,
    position: &FilePosition,
    label: &str,
    other: &FilePosition,
) {
    let message = message!(
        "means the same {} as the row at {other}, and differs from it; keep one of them",
        F::KIND
    );
    bad.push(position, None, Some(label), message);
}

/// Returns true if a label has letters, and no sign that usually separates several.
fn is_one_name(label: &str) -> bool {
    !label.contains([';', '|', '\n']) && label.chars().any(char::is_alphabetic)
}

impl<F: ReferenceFields + ListedFields> Resolved<'_, F> {
    /// Lint checks the imported rows.
    fn check(&self, report: &mut Report) {
        let find = |id| self.find(id);
        for (id, imported) in self.in_order() {
            if let ImportOutcome::Valid(row) = &imported.outcome {
                let before = self.stored.get(&id).map(|stored| stored.row.fields());
                let location = imported.location();
                report.lint.check(&location, before, row, &find);
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

    /// Returns the id of a label, for lists of others in any spelling.
    fn id_of_label(&self, label: &str) -> Option<Id> {
        let exact = self.ids_by_label.get(label).copied();
        exact.or_else(|| self.ids_by_form.get(&match_form(label)).copied().flatten())
    }

    /// Compares stored rows that are not in the import with the imported rows.
    pub fn compare_untouched(&self, lint: &mut Lint) {
        let untouched = self
            .stored
            .iter()
            .filter(|(id, _)| !self.imported.contains_key(id));
        untouched.for_each(|(id, found)| {
            let values = found.row.fields().compared();
            lint.compare_stored(*id, &values, &|id| self.find(id));
        });
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
    fn identify(&mut self, rows: Vec<ImportRow<F>>, report: &mut Report) {
        if rows.is_empty() {
            return;
        }
        // A row with an id may rename or remove a stored one.
        let kept = self
            .stored
            .iter()
            .filter(|(id, _)| !self.imported.contains_key(id));
        let mut labels = Labels::default();
        kept.for_each(|(id, row)| labels.add(&row.label, *id));
        for (id, imported) in self.in_order() {
            if let ImportOutcome::Valid(row) = &imported.outcome {
                labels.add(&row.fields().label(), id);
            }
        }
        let mut doubled: HashSet<Id> = HashSet::new();
        for mut row in rows {
            let Some(statement) = row.edit.statement() else {
                continue;
            };
            let label = label_of(statement);
            let known = labels.find(&label);
            if let Some((id, first)) = known.and_then(|id| Some((id, self.imported.get(&id)?))) {
                if doubled.insert(id) {
                    report_same::<F>(&mut report.bad, &first.position, &label, &row.position);
                }
                report_same::<F>(&mut report.bad, &row.position, &label, &first.position);
                continue;
            }
            if matches!(row.edit, RowEdit::RemoveMatch(_)) {
                row.edit = RowEdit::Remove;
            } else if known.is_none() && !self.is_new(&row, report) {
                continue;
            }
            let is_removal = matches!(row.edit, RowEdit::Remove);
            row.id = known;
            if known.is_none() && is_removal {
                report.count_absent();
                continue;
            }
            if known.is_none() {
                report.counts.unknown += 1;
                row.id = self.next_id(&row.position, None, report);
            }
            if let Some(id) = row.id {
                labels.add(&label, id);
            }
            self.add_row(row, true, report);
        }
    }

    /// Returns true if a row with an unknown label is a new row. Otherwise it is left out, or a fault.
    fn is_new(&self, row: &ImportRow<F>, report: &mut Report) -> bool {
        if self.list.leaves_out_new {
            report.leave_out_unknown(row);
            return false;
        }
        if row.may_be_note {
            report.bad.push(&row.position, None, None, MAY_BE_NOTE);
        }
        !row.may_be_note
    }

    /// Creates the row of an unknown label that a record links to.
    fn create(&mut self, position: &FilePosition, label: &str, report: &mut Report) {
        if self.id_of_label(label).is_some() || !is_one_name(label) {
            return;
        }
        // A label that means no row is reported at its link.
        let Some(fields) = F::of_label(label) else {
            return;
        };
        let Some(id) = self.next_id(position, Some(label), report) else {
            return;
        };
        match Curated::new(id, fields) {
            Ok(row) => {
                self.add(id, position.clone(), F::STEM, ImportOutcome::Valid(row));
                self.ids_by_label.insert(label.to_owned(), id);
                if self.list.is_list {
                    self.ids_by_form.insert(match_form(label), Some(id));
                }
            }
            Err(faults) => {
                RowFaults::new(position, &mut report.bad).push_faults(Some(&F::STEM), faults);
            }
        }
    }

    /// Returns the next free id, for a row or for a link to `label`.
    fn next_id(
        &mut self,
        position: &FilePosition,
        label: Option<&str>,
        report: &mut Report,
    ) -> Option<Id> {
        match Id::try_from(self.largest + 1) {
            Ok(id) => {
                self.largest = id.get();
                let assigned = Finding::assigned(position, F::STEM, id, label);
                report.assigned.push(assigned);
                Some(id)
            }
            Err(error) => {
                let message = message!("no id is free: {error}");
                report.bad.push(position, Some("id"), None, message);
                None
            }
        }
    }

    /// Adds a row with an id. `is_listed` says that it is one of a list of others.
    fn add_row(&mut self, row: ImportRow<F>, is_listed: bool, report: &mut Report) {
        let Some(id) = row.id else { return };
        if let Some(first) = self.imported.get(&id) {
            // The first row is bad too.
            report_double(&mut report.bad, &first.position, id, &row.position);
            report_double(&mut report.bad, &row.position, id, &first.position);
            return;
        }
        let outcome = match &row.edit {
            RowEdit::Set(statement) => self.merge_row(&row, id, statement, (is_listed, report)),
            _ => ImportOutcome::Removed,
        };
        self.add(id, row.position, "name", outcome);
    }

    /// Merges a row with its stored values, and checks it.
    fn merge_row(
        &self,
        row: &ImportRow<F>,
        id: Id,
        statement: &Statement<F>,
        (is_listed, report): (bool, &mut Report),
    ) -> ImportOutcome<F> {
        let stored = self.stored.get(&id).map(|found| found.row.fields());
        let mut is_respelled = false;
        let fields = match stored.filter(|_| is_listed) {
            Some(stored) => {
                let mut listed = ListedRow::new(statement, self.list, None);
                let fields = listed.merge_into(stored, &mut report.counts);
                is_respelled = listed.is_respelled;
                fields
            }
            None => {
                let mut fields = stored.cloned().unwrap_or_default();
                statement.apply_to(&mut fields);
                fields
            }
        };
        let label = fields.label();
        match Curated::new(id, fields) {
            _ if row.is_bad => ImportOutcome::Bad { label },
            Ok(merged) => {
                if let Some(stored) = stored {
                    let is_unchanged = stored == merged.fields();
                    report.counts.count_removed(stored, merged.fields());
                    report.counts.respelled += u64::from(is_respelled && is_unchanged);
                }
                ImportOutcome::Valid(merged)
            }
            Err(faults) => {
                RowFaults::new(&row.position, &mut report.bad).push_faults(None, faults);
                ImportOutcome::Bad { label }
            }
        }
    }

    /// Returns a full object, in a list of others with the stored values of its null members.
    fn merge_object(&self, object: &Curated<F>, report: &mut Report) -> Curated<F> {
        let stored = self.stored.get(&object.id()).filter(|_| self.list.is_list);
        let Some(stored) = stored else {
            return object.clone();
        };
        let mut listed = ListedRow::of_object(object.fields(), &ListOptions::default());
        let fields = listed.merge_into(stored.row.fields(), &mut report.counts);
        Curated::new(object.id(), fields).unwrap_or_else(|_| object.clone())
    }

    /// Adds the row of a full object. It must be equal to other occurrences of the row in the import.
    fn add_object(&mut self, position: &FilePosition, object: &Curated<F>, report: &mut Report) {
        let id = object.id();
        let object = &self.merge_object(object, report);
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
        let bad = &mut report.bad;
        bad.push(position, Some(F::STEM), Some(&id.to_string()), message);
    }

    /// Finds the id of each label after the import. A duplicate label is reported at the later row.
    fn find_labels(&mut self, bad: &mut Findings) {
        let mut labels = Labels::default();
        for (id, row) in self.stored {
            if !self.imported.contains_key(id) {
                labels.add(&row.label, *id);
            }
        }
        for (id, imported) in self.in_order() {
            let ImportOutcome::Valid(row) = &imported.outcome else {
                continue;
            };
            let label = row.fields().label();
            let Some(other) = labels.exact.get(&label) else {
                labels.add(&label, id);
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
                labels.exact.entry(label.clone()).or_insert(id);
            }
        }
        self.ids_by_label = labels.exact;
        if self.list.is_list {
            self.ids_by_form = labels.by_form;
        }
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
                RecordLink::Label(label) => match self.id_of_label(label) {
                    Some(id) => ids.push(id),
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
