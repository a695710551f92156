//! Organizations and tags after the import, and the resolution of links to them.

use std::collections::{BTreeMap, HashMap};

use super::listed::{ListedFields, ListedRow, differences};
use super::merged_rows::{MergedRows, PendingRow};
use super::report::{FreeIds, Merged};
use crate::import::findings::{FilePosition, Findings};
use crate::import::lint::{ComparedRow, RowLocation};
use crate::import::read::statement::CellContent::{Constant, Value};
use crate::import::read::statement::{RecordLink, Statement};
use crate::import::row_faults::RowFaults;
use crate::import::rows::{ImportRow, ListOptions};
use crate::model::{
    ConferenceFields, Curated, Id, Joined, JournalFields, Message, OrganizationFields,
    RecordFields, ReferenceFields, ReferenceKind, Referenced, Remedy, TagFields, match_form,
    message, nearest,
};

/// A link of a record, and the position of the record.
type FoundLink<'a, F> = (&'a FilePosition, &'a RecordLink<F>);

/// A kind of row that records link to.
pub trait LinkedFields: ReferenceFields + ListedFields {
    /// Returns the links in what a record states.
    fn links_in<R>(statement: &Statement<R>) -> &[RecordLink<Self>];
}

impl LinkedFields for OrganizationFields {
    fn links_in<R>(statement: &Statement<R>) -> &[RecordLink<Self>] {
        &statement.organizations
    }
}

impl LinkedFields for TagFields {
    fn links_in<R>(statement: &Statement<R>) -> &[RecordLink<Self>] {
        &statement.tags
    }
}

/// Returns the links of rows that set values.
fn links_of<R, F: LinkedFields>(rows: &[ImportRow<R>]) -> impl Iterator<Item = FoundLink<'_, F>> {
    rows.iter()
        .filter(|row| !row.edit.is_removal)
        .flat_map(|row| {
            F::links_in(&row.edit.statement)
                .iter()
                .map(|link| (&row.position, link))
        })
}

/// All organizations or all tags after the import.
pub struct Resolved<'a, F> {
    list: &'a ListOptions,
    stored: &'a BTreeMap<Id, Referenced<F>>,
    /// The imported rows.
    pub merged: MergedRows<F>,
    labels: Labels,
    /// The labels of bad rows. Links to them are not reported, since the faults of the rows are.
    bad_labels: Vec<(String, Id)>,
    ids: FreeIds,
}

/// The ids of labels.
#[derive(Default)]
struct Labels {
    /// By the label without case, marks and blanks.
    by_form: HashMap<String, Vec<(String, Id)>>,
}

impl Labels {
    fn add(&mut self, label: &str, id: Id) {
        let known = self.by_form.entry(match_form(label)).or_default();
        known.push((label.to_owned(), id));
    }

    /// Returns the id of a label, for lists of others in any spelling.
    fn find(&self, label: &str, is_listed: bool) -> Option<Id> {
        let known = self.by_form.get(&match_form(label))?;
        let exact = known.iter().find(|(other, _)| other == label);
        let only = known.first().filter(|(_, id)| {
            let mut ids = known.iter().map(|(_, id)| id);
            is_listed && ids.all(|other| other == id)
        });
        exact.or(only).map(|(_, id)| *id)
    }
}

/// Returns true if a label has letters, and no sign that usually separates several.
fn is_one_name(label: &str) -> bool {
    !label.contains([';', '|', '\n']) && label.chars().any(char::is_alphabetic)
}

impl<'a, F: LinkedFields> Resolved<'a, F> {
    /// Merges rows and the full objects of links with the stored rows, creates the rows of unknown labels of links, and
    /// checks that labels are unique.
    pub fn new(
        list: &'a ListOptions,
        rows: Vec<ImportRow<F>>,
        (conferences, journals): (&[ImportRow<ConferenceFields>], &[ImportRow<JournalFields>]),
        stored: &'a BTreeMap<Id, Referenced<F>>,
        report: &mut Merged,
    ) -> Resolved<'a, F> {
        let links: Vec<_> = links_of(conferences).chain(links_of(journals)).collect();
        let objects = links.iter().filter_map(|(position, link)| match link {
            RecordLink::Object(object) => Some((*position, &**object)),
            _ => None,
        });
        let known = rows
            .iter()
            .filter_map(|row| row.id)
            .chain(objects.clone().map(|(_, object)| object.id()));
        let ids = FreeIds {
            kind: F::STEM,
            largest: known.chain(stored.keys().copied()).max(),
        };
        let mut resolved = Resolved {
            list,
            stored,
            merged: MergedRows::new(rows.len(), false),
            labels: Labels::default(),
            bad_labels: Vec::new(),
            ids,
        };
        let (with_id, without): (Vec<_>, Vec<_>) =
            rows.into_iter().partition(|row| row.id.is_some());
        for row in &with_id {
            resolved.add(row, list.is_list.then_some(list), false, report);
        }
        resolved.identify(without, report);
        for (position, object) in objects {
            resolved.add_object(position, object, report);
        }
        resolved.labels = resolved.find_labels(&mut report.bad);
        for (label, id) in &resolved.bad_labels {
            if resolved.labels.find(label, false).is_none() {
                resolved.labels.add(label, *id);
            }
        }
        for (position, link) in &links {
            if let RecordLink::Label(label) = link
                && list.creates_links
            {
                resolved.create(position, label, report);
            }
        }
        resolved
    }

    /// Compares stored rows that are not in the import with the imported rows.
    pub fn compare_untouched(&self, report: &mut Merged) {
        let Merged { lint, warnings, .. } = report;
        for (id, found) in self.untouched() {
            let row = ComparedRow::stored(id, found.row.fields());
            lint.check(row, &|id| self.merged.find(id), warnings);
        }
    }

    fn untouched(&self) -> impl Iterator<Item = (Id, &Referenced<F>)> {
        self.stored
            .iter()
            .map(|(id, found)| (*id, found))
            .filter(|(id, _)| !self.merged.positions.contains_key(id))
    }

    fn stored_fields(&self, id: Id) -> Option<F> {
        self.stored.get(&id).map(|found| found.row.fields().clone())
    }

    /// Adds a row. `list` is given for one of a list of others.
    fn add(
        &mut self,
        row: &ImportRow<F>,
        list: Option<&ListOptions>,
        is_linked: bool,
        report: &mut Merged,
    ) {
        let pending = PendingRow {
            row,
            stored: row.id.and_then(|id| self.stored_fields(id)),
            list,
            is_linked,
        };
        let is_good = self.merged.add(pending, report, |_, _| {});
        if let Some(id) = row.id.filter(|_| !is_good) {
            let mut fields = self.stored_fields(id).unwrap_or_default();
            row.edit.statement.apply_to(&mut fields);
            self.bad_labels.push((fields.label(), id));
        }
    }

    /// Adds rows without ids. They mean the rows with their labels, or get the next free ids.
    fn identify(&mut self, rows: Vec<ImportRow<F>>, report: &mut Merged) {
        if rows.is_empty() {
            return;
        }
        // A row with an id may rename or remove a stored one.
        let mut labels = self.find_labels(&mut Findings::default());
        for mut row in rows {
            let label = row.edit.statement.fields().label();
            row.id = labels.find(&label, true);
            if let Some(first) = row.id.and_then(|id| self.merged.positions.get(&id)) {
                let both = [first, &row.position];
                report.refuse_both(both, None, Some(&label), |other| {
                    message!(
                        "means the same {} as the row at {}, and differs from it; keep one of them",
                        F::KIND,
                        both[other]
                    )
                });
                continue;
            }
            if row.id.is_none() && report.is_new(&row, self.list) {
                row.id = self.ids.assign(&row.position, None, report);
            }
            if let Some(id) = row.id {
                labels.add(&label, id);
            }
            self.add(&row, Some(self.list), false, report);
        }
    }

    /// Creates the row of an unknown label that a record links to.
    fn create(&mut self, position: &FilePosition, label: &str, report: &mut Merged) {
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
        self.add(
            &ImportRow::of_fields(position, id, fields),
            None,
            true,
            report,
        );
        self.labels.add(label, id);
    }

    /// Adds the row of a full object. It must be equal to other occurrences of the row in the import. In a list of
    /// others, its null members keep the stored values.
    fn add_object(&mut self, position: &FilePosition, object: &Curated<F>, report: &mut Merged) {
        let id = object.id();
        let row = ImportRow::of_fields(position, id, object.fields().clone());
        // A recipe updates and clears fields of records.
        let options = ListOptions::default();
        let list = self.list.is_list.then_some(&options);
        let Some(first) = self.merged.positions.get(&id) else {
            return self.add(&row, list, true, report);
        };
        let Some(known) = self.merged.rows.get(&id) else {
            return;
        };
        let pending = PendingRow {
            row: &row,
            stored: self.stored_fields(id),
            list,
            is_linked: true,
        };
        let Some(object) = pending.merge(report, |_, _| {}) else {
            return;
        };
        let message = match known {
            Some(row) if *row == object => return,
            Some(row) => {
                let names = differences(row.fields(), object.fields())
                    .map(|(at, ..)| format!("`{}`", F::table().fields[at].name));
                message!(
                    "the object of this {} differs in {} from the one at {first}; give them the same values",
                    F::KIND,
                    names.joined(", ")
                )
            }
            None => message!(
                "the {} is removed at {first}; remove it here, or keep it there",
                F::KIND
            ),
        };
        let value = id.to_string();
        report
            .bad
            .push(position, Some(F::STEM), Some(&value), message);
    }

    /// Finds the id of each label after the import. A duplicate label is reported at the later row.
    fn find_labels(&self, bad: &mut Findings) -> Labels {
        let mut labels = Labels::default();
        for (id, found) in self.untouched() {
            labels.add(&found.label, id);
        }
        for (id, position) in &self.merged.positions {
            let Some((RowLocation::File(_, within), fields)) = self.merged.find(*id) else {
                continue;
            };
            let label = fields.label();
            let Some(other) = labels.find(&label, false) else {
                labels.add(&label, *id);
                continue;
            };
            let location = match self.merged.find(other) {
                Some((location, _)) => location,
                None => RowLocation::Database(F::STEM, other),
            };
            let message = message!(
                "is also the name of {} {other} {}; names are unique: use one id, or another name",
                F::KIND,
                location.describe()
            );
            let field = within.or(Some("name"));
            bad.push(position, field, Some(&label), message);
        }
        labels
    }

    /// Sets the links of a row, and reports those without a target.
    pub fn link<R: RecordFields>(
        &self,
        statement: &Statement<R>,
        row: &mut ListedRow<R>,
        faults: &mut RowFaults<'_>,
    ) {
        let at = R::table().links(F::KIND);
        if !at.is_some_and(|at| matches!(row.contents[at], Value | Constant)) {
            return;
        }
        let mut ids = Vec::new();
        for link in F::links_in(statement) {
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
        row.fields.set_links(F::KIND, ids);
    }

    fn why_missing(&self, id: Id) -> Option<Message> {
        match (self.merged.rows.get(&id), self.merged.positions.get(&id)) {
            (Some(None), Some(position)) => Some(message!(
                "the {} is removed at {position}; remove the link, or keep it there",
                F::KIND
            )),
            (None, None) if !self.stored.contains_key(&id) => Some(message!(
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
        if !faults.may_search(self.labels.by_form.len()) {
            return message!("is not a known {kind}; import it too, or add --create-links");
        }
        let removed = self.removed().find(|(_, id)| {
            let stored = self.stored.get(id);
            stored.is_some_and(|stored| stored.label == label)
        });
        if let Some((position, _)) = removed {
            return message!(
                "the {kind} of this name is removed at {position}; remove the link, or keep it there"
            );
        }
        let known = self.labels.by_form.values().flatten();
        match nearest(label, known.map(|(label, _)| label.as_str())) {
            Some(near) => message!(
                "is not a known {kind}; did you mean `{near}`? If not, import the {kind} too, or add --create-links"
            )
            .with(Remedy::OfValue),
            None => message!("is not a known {kind}; import it too, or add --create-links"),
        }
    }

    /// Returns the rows that the import removes, and the positions of the removals.
    pub fn removed(&self) -> impl Iterator<Item = (&FilePosition, Id)> {
        self.merged
            .positions
            .iter()
            .filter(|(id, _)| self.merged.rows.get(*id) == Some(&None))
            .map(|(id, position)| (position, *id))
    }
}
