//! What the run makes of organizations and tags, and what links mean after it.

use std::collections::{BTreeMap, HashMap};

use crate::import::names::nearest;
use crate::import::report::{BadRows, Place, RowFaults, Warning};
use crate::import::rows::{Edit, Row};
use crate::import::statement::Link;
use crate::model::reference::{ReferenceFields, Referenced};
use crate::model::{Curated, Id, ReferenceKind, References};

/// A full object among a record's links, and the record's place.
pub(super) type Object<'a, F> = (&'a Place, &'a Curated<F>);

/// All rows of one kind as they will be after the run.
pub(super) struct Resolved<'a, F> {
    stored: &'a BTreeMap<Id, Referenced<F>>,
    edited: BTreeMap<Id, Edited<F>>,
    ids_by_label: HashMap<String, Id>,
}

/// A row that the run states.
struct Edited<F> {
    place: Place,
    /// The field of its place that states it: of an object the record's list.
    list: Option<&'static str>,
    fate: Fate<F>,
}

enum Fate<F> {
    Stays(Curated<F>),
    Removed,
    /// It breaks a rule, which is reported. Its label still counts, so that links to it are not reported too.
    Bad {
        label: String,
    },
}

/// Merges rows and objects with the stored rows, and checks what must be unique.
pub(super) fn resolve<'a, F: ReferenceFields>(
    rows: Vec<Row<F>>,
    objects: &[Object<'_, F>],
    stored: &'a BTreeMap<Id, Referenced<F>>,
    bad: &mut BadRows,
    warnings: &mut Vec<Warning>,
) -> Resolved<'a, F> {
    let mut edited: BTreeMap<Id, Edited<F>> = BTreeMap::new();
    let mut order = Vec::with_capacity(rows.len());
    for row in rows {
        if let Some(first) = edited.get(&row.id) {
            let message = format!("stands twice; the first row of this id is at {}", first.place);
            bad.push(&row.place, Some("id"), Some(&row.id.to_string()), message);
            continue;
        }
        let fate = fate_of_row(row.edit, row.id, row.is_bad, &row.place, stored, bad);
        order.push(row.id);
        edited.insert(row.id, Edited { place: row.place, list: None, fate });
    }
    add_objects(objects, &mut edited, &mut order, bad);
    for id in &order {
        if let Some(Edited { place, list, fate: Fate::Stays(row) }) = edited.get(id) {
            let before = stored.get(id).map(|referenced| &referenced.row);
            super::records::warn_of_formulas(place, list.unwrap_or("name"), before, row, warnings);
        }
    }
    let ids_by_label = find_labels(&edited, &order, stored, bad);
    Resolved { stored, edited, ids_by_label }
}

fn fate_of_row<F: ReferenceFields>(
    edit: Edit<F>,
    id: Id,
    is_bad: bool,
    place: &Place,
    stored: &BTreeMap<Id, Referenced<F>>,
    bad: &mut BadRows,
) -> Fate<F> {
    let Edit::Set(statement) = edit else { return Fate::Removed };
    let mut fields = stored.get(&id).map(|referenced| referenced.row.fields().clone()).unwrap_or_default();
    statement.apply_to(&mut fields);
    let label = fields.label();
    if is_bad {
        return Fate::Bad { label };
    }
    match Curated::new(id, fields) {
        Ok(row) => Fate::Stays(row),
        Err(faults) => {
            RowFaults::new(place, bad).push_faults(None, &faults);
            Fate::Bad { label }
        }
    }
}

/// Objects state rows as well; they must agree with the rows of their ids, and with each other.
fn add_objects<F: ReferenceFields>(
    objects: &[Object<'_, F>],
    edited: &mut BTreeMap<Id, Edited<F>>,
    order: &mut Vec<Id>,
    bad: &mut BadRows,
) {
    for (place, object) in objects {
        let id = object.id();
        let Some(first) = edited.get(&id) else {
            order.push(id);
            let fate = Fate::Stays((*object).clone());
            edited.insert(id, Edited { place: (*place).clone(), list: Some(F::STEM), fate });
            continue;
        };
        let message = match &first.fate {
            Fate::Stays(row) if row == *object => continue,
            Fate::Bad { .. } => continue,
            Fate::Stays(row) => {
                let none = References::default();
                let values = row.fields().values().into_iter().zip(object.fields().values());
                let differing: Vec<String> = (F::table().fields.iter().zip(values))
                    .filter(|(_, (one, other))| one.to_csv(&none) != other.to_csv(&none))
                    .map(|(field, _)| format!("`{}`", field.name))
                    .collect();
                format!(
                    "the object of this {} differs in {} from what {} makes of it; give them the same values",
                    F::KIND,
                    differing.join(", "),
                    first.place
                )
            }
            Fate::Removed => format!("the {} is removed at {}; remove it here, or keep it there", F::KIND, first.place),
        };
        bad.push(place, Some(F::STEM), Some(&id.to_string()), message);
    }
}

/// Who bears which label after the run. A label has one holder.
fn find_labels<F: ReferenceFields>(
    edited: &BTreeMap<Id, Edited<F>>,
    order: &[Id],
    stored: &BTreeMap<Id, Referenced<F>>,
    bad: &mut BadRows,
) -> HashMap<String, Id> {
    let untouched = stored.iter().filter(|(id, _)| !edited.contains_key(id));
    let mut ids_by_label: HashMap<String, Id> =
        untouched.map(|(id, referenced)| (referenced.label.clone(), *id)).collect();
    // In the order in which the run states them, so that it is the later one that is reported.
    let statements = || order.iter().filter_map(|id| Some((*id, edited.get(id)?)));
    for (id, statement) in statements() {
        let Fate::Stays(row) = &statement.fate else { continue };
        let label = row.fields().label();
        let Some(holder) = ids_by_label.get(&label) else {
            ids_by_label.insert(label, id);
            continue;
        };
        let whose = match edited.get(holder) {
            Some(other) => format!("{} {holder} at {}", F::KIND, other.place),
            None => format!("{} {holder} in the database", F::KIND),
        };
        let message = format!("is also the name of {whose}; names are unique: use one id, or another name");
        bad.push(&statement.place, Some(statement.list.unwrap_or("name")), Some(&label), message);
    }
    for (id, statement) in statements() {
        if let Fate::Bad { label } = &statement.fate {
            ids_by_label.entry(label.clone()).or_insert(id);
        }
    }
    ids_by_label
}

impl<F: ReferenceFields> Resolved<'_, F> {
    /// The ids that the links mean; links that lead nowhere are reported.
    pub fn find_ids(&self, links: Vec<Link<F>>, faults: &mut RowFaults<'_>) -> Vec<Id> {
        let mut ids = Vec::with_capacity(links.len());
        for link in links {
            match link {
                Link::Object(object) => ids.push(object.id()),
                Link::Id(id) => match self.why_missing(id) {
                    None => ids.push(id),
                    Some(message) => faults.push_value(&F::STEM, &id.to_string(), message),
                },
                Link::Label(label) => match self.ids_by_label.get(&label) {
                    Some(id) => ids.push(*id),
                    None => faults.push_value(&F::STEM, &label, self.why_unknown(&label, faults)),
                },
            }
        }
        ids
    }

    fn why_missing(&self, id: Id) -> Option<String> {
        match self.edited.get(&id) {
            Some(Edited { place, fate: Fate::Removed, .. }) => {
                Some(format!("the {} is removed at {place}; remove the link, or keep it there", F::KIND))
            }
            Some(_) => None,
            None if self.stored.contains_key(&id) => None,
            None => Some(format!("there is no {} of this id; import it along, or give its full object", F::KIND)),
        }
    }

    fn why_unknown(&self, label: &str, faults: &RowFaults<'_>) -> String {
        let kind = F::KIND;
        if kind == ReferenceKind::Tag && !label.contains(": ") {
            return "names no tag; write it as `Type: Name`".to_owned();
        }
        if !faults.may_search(self.ids_by_label.len()) {
            return format!("names no {kind}; import it along, or give its full object");
        }
        let removed = self.removed().find(|(_, id)| self.stored.get(id).is_some_and(|found| found.label == label));
        if let Some((place, _)) = removed {
            return format!("the {kind} of this name is removed at {place}; remove the link, or keep it there");
        }
        match nearest(label, self.ids_by_label.keys().map(String::as_str)) {
            Some(near) => format!("names no {kind}; did you mean `{near}`? Else import the {kind} along"),
            None => format!("names no {kind}; import it along, or give its full object"),
        }
    }

    /// The stored rows that the run removes, and where it says so.
    pub fn removed(&self) -> impl Iterator<Item = (&Place, Id)> {
        self.edited
            .iter()
            .filter(|(id, statement)| matches!(statement.fate, Fate::Removed) && self.stored.contains_key(id))
            .map(|(id, statement)| (&statement.place, *id))
    }

    /// What the run states, for the batch. What is removed without having been there is left out.
    pub fn into_rows(self) -> BTreeMap<Id, Option<Curated<F>>> {
        let stored = self.stored;
        self.edited
            .into_iter()
            .filter_map(|(id, statement)| match statement.fate {
                Fate::Stays(row) => Some((id, Some(row))),
                Fate::Removed => stored.contains_key(&id).then_some((id, None)),
                Fate::Bad { .. } => None,
            })
            .collect()
    }
}
