//! The content of a row: the values that it sets, and its unresolved links.

use std::fmt::Display;

use serde::Serialize;
use serde_json::{Map, Value};

use crate::import::row_faults::RowFaults;
use crate::model::dataset::NOT_AN_ID;
use crate::model::field::Field;
use crate::model::message::{Message, message};
use crate::model::reference::ReferenceFields;
use crate::model::value::json::{as_text, is_empty, push_json};
use crate::model::value::{FieldValue, ValueKind, ValueReader};
use crate::model::{Curated, Fields, Id, OrganizationFields, ReferenceKind, TagFields};

/// The values that a row sets.
#[derive(Clone, Debug)]
pub(in crate::import) struct Statement<F> {
    fields: F,
    /// The fields that the row sets.
    set: FieldSet,
    /// The fields whose values are constants of the options, not of the row.
    constants: FieldSet,
    /// The links to organizations.
    pub organizations: Vec<RecordLink<OrganizationFields>>,
    /// The links to tags.
    pub tags: Vec<RecordLink<TagFields>>,
}

/// A set of fields: the bit of each is at its index in the table. No kind of row has more than 128.
type FieldSet = u128;

fn has(set: FieldSet, index: usize) -> bool {
    set >> index & 1 == 1
}

/// The content of a row in a field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::import) enum CellContent {
    /// The file has no such column.
    Absent,
    /// An empty cell, or one that counts as empty.
    Empty,
    /// A constant of the options, since the row has no value.
    Constant,
    /// A value of the row.
    Value,
    /// An empty cell that clears the stored value, as the recipe says.
    Clear,
}

/// A link of a record.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(in crate::import) enum RecordLink<F> {
    Id(Id),
    /// A name; for a tag, `Type: Name`.
    Label(String),
    /// The full object, which is created or updated.
    Object(Box<Curated<F>>),
}

impl<F: Fields> Statement<F> {
    /// Creates a statement that sets no field.
    pub fn new() -> Statement<F> {
        Statement {
            fields: F::default(),
            set: 0,
            constants: 0,
            organizations: Vec::new(),
            tags: Vec::new(),
        }
    }

    /// Creates a statement that sets all fields.
    pub fn of(fields: F) -> Statement<F> {
        Statement {
            fields,
            set: FieldSet::MAX,
            ..Statement::new()
        }
    }

    /// Returns the content of the row in each field of the table.
    pub fn contents(&self) -> impl Iterator<Item = CellContent> {
        let values = self.fields.values().into_iter().enumerate();
        values.map(|(index, value)| match () {
            () if !has(self.set, index) => CellContent::Absent,
            () if self.is_null_value(index, value) => CellContent::Empty,
            () if self.is_constant(index) => CellContent::Constant,
            () => CellContent::Value,
        })
    }

    /// Returns true if the value of a field is a constant of the options.
    pub fn is_constant(&self, index: usize) -> bool {
        has(self.constants, index)
    }

    /// Notes that the value of a field is a constant of the options.
    pub fn mark_constant(&mut self, index: usize) {
        self.constants |= 1 << index;
    }

    /// Returns the values of the row. Those that it does not set are null, and so are its links.
    pub fn fields(&self) -> &F {
        &self.fields
    }

    /// Returns the values of the row in the order of the table.
    pub fn values(&self) -> Vec<&dyn FieldValue> {
        self.fields.values()
    }

    /// Counts the fields that the row fills. `counts` has an item for each field; `None` if no row has its column.
    pub fn count_filled(&self, counts: &mut [Option<u64>]) {
        for (count, content) in counts.iter_mut().zip(self.contents()) {
            match content {
                CellContent::Absent | CellContent::Constant => {}
                content => *count.get_or_insert(0) += u64::from(content == CellContent::Value),
            }
        }
    }

    /// Returns the fields that the row sets, with their values.
    pub fn values_mut(&mut self) -> impl Iterator<Item = (&'static Field, &mut dyn FieldValue)> {
        let named = self.are_set();
        let values = F::table().fields.iter().zip(self.fields.values_mut());
        let named = values.zip(named).filter(|(_, is_set)| *is_set);
        named.map(|(value, _)| value)
    }

    /// Returns whether the row sets each field of the table.
    fn are_set(&self) -> impl Iterator<Item = bool> + use<F> {
        let set = self.set;
        (0..F::table().fields.len()).map(move |index| has(set, index))
    }

    /// Empties the fields that the row sets.
    pub fn clear_in(&self, fields: &mut F) {
        fields.replace_named(F::default(), &mut self.are_set());
    }

    /// Appends the set values, each written by `form`.
    pub fn write(&self, out: &mut Vec<u8>, form: fn(&Field, &dyn FieldValue, &mut Vec<u8>)) {
        let values = self.fields.values().into_iter().enumerate();
        for (index, value) in values.filter(|(index, _)| has(self.set, *index)) {
            out.extend_from_slice(&index.to_be_bytes());
            form(&F::table().fields[index], value, out);
        }
        push_json(out, &(&self.organizations, &self.tags));
    }

    /// Copies the values to `fields`. Links are resolved later, so lists of links become empty.
    pub fn apply_to(&self, fields: &mut F) {
        fields.replace_named(self.fields.clone(), &mut self.are_set());
    }

    /// Reads the field with this index by `read`. `name` is its name in reports. A bad value is reported and not set.
    pub fn read(
        &mut self,
        index: usize,
        name: &dyn Display,
        faults: &mut RowFaults<'_>,
        read: impl FnOnce(&mut dyn FieldValue, &mut dyn ValueReader),
    ) {
        let before = faults.total();
        let mut reader = FieldReader {
            name,
            organizations: &mut self.organizations,
            tags: &mut self.tags,
            faults,
        };
        read(self.fields.values_mut().swap_remove(index), &mut reader);
        if faults.total() == before {
            self.set |= 1 << index;
        }
    }

    /// Returns true if the row has no value for the field with this index.
    pub fn is_null(&self, index: usize) -> bool {
        !has(self.set, index) || self.is_null_value(index, self.fields.values()[index])
    }

    fn is_null_value(&self, index: usize, value: &dyn FieldValue) -> bool {
        // Links are resolved later.
        match F::table().fields[index].kind {
            ValueKind::Links(ReferenceKind::Organization) => self.organizations.is_empty(),
            ValueKind::Links(ReferenceKind::Tag) => self.tags.is_empty(),
            _ => value.is_null(),
        }
    }

    /// Sets a field to null or to an empty list.
    pub fn set_null(&mut self, index: usize) {
        self.set |= 1 << index;
    }
}

/// Collects the faults and links of one field.
struct FieldReader<'a, 'f> {
    name: &'a dyn Display,
    organizations: &'a mut Vec<RecordLink<OrganizationFields>>,
    tags: &'a mut Vec<RecordLink<TagFields>>,
    faults: &'a mut RowFaults<'f>,
}

impl ValueReader for FieldReader<'_, '_> {
    fn fault(&mut self, value: &str, message: Message) {
        self.faults.push_value(self.name, value, message);
    }

    fn links(&mut self, kind: ReferenceKind, items: Vec<Value>) {
        match kind {
            ReferenceKind::Organization => {
                *self.organizations = read_links(items, self.name, self.faults);
            }
            ReferenceKind::Tag => *self.tags = read_links(items, self.name, self.faults),
        }
    }
}

/// Reads a list of links. Reports each bad link; if there is one, returns none.
fn read_links<F: ReferenceFields>(
    items: Vec<Value>,
    field: &dyn Display,
    faults: &mut RowFaults<'_>,
) -> Vec<RecordLink<F>> {
    let before = faults.total();
    let read = items.into_iter().filter_map(|item| match item {
        Value::String(text) if !text.is_empty() => Some(RecordLink::Label(text)),
        Value::Object(members) => {
            read_object(members, field, faults).map(|object| RecordLink::Object(Box::new(object)))
        }
        other if let Some(id) = id_of(&other) => Some(RecordLink::Id(id)),
        other => {
            let message = message!(
                "is not a valid {}; write its id, its name or the full object",
                F::KIND
            );
            faults.push_value(field, &as_text(&other), message);
            None
        }
    });
    let mut links: Vec<RecordLink<F>> = read.collect();
    if faults.total() > before {
        links.clear();
    }
    links.shrink_to_fit();
    links
}

/// Reads a full object in a list of links. It must have all members of its kind.
fn read_object<F: ReferenceFields>(
    mut members: Map<String, Value>,
    name: &dyn Display,
    faults: &mut RowFaults<'_>,
) -> Option<Curated<F>> {
    const MISSING: &str = "is missing; a full object needs all members (null if empty); or write only the id or the name";
    let before = faults.total();
    let fields = &F::table().fields;
    let mut id = None;
    match members.shift_remove("id") {
        None => faults.push(&format_args!("{name}.id"), MISSING),
        Some(value) => {
            id = id_of(&value);
            if id.is_none() {
                let message = message!("{NOT_AN_ID}, without quotes or fraction");
                faults.push_value(&format_args!("{name}.id"), &as_text(&value), message);
            }
        }
    }
    let mut statement = Statement::<F>::new();
    for (index, field) in fields.iter().enumerate() {
        let path = format_args!("{name}.{}", field.name);
        match members.shift_remove(&field.name) {
            None => faults.push(&path, MISSING),
            Some(value) if is_empty(&value) => statement.set_null(index),
            Some(value) => statement.read(index, &path, faults, |field, reader| {
                field.read_json(value, reader);
            }),
        }
    }
    let names = fields.iter().map(|field| &*field.name);
    let known: Vec<&str> = std::iter::once("id").chain(names).collect();
    for key in members.keys() {
        faults.push_unknown("member", &format!("{name}."), key, &known);
    }
    // The object is complete, so its rules can be checked here.
    let id = id.filter(|_| faults.total() == before)?;
    Curated::new(id, statement.fields)
        .map_err(|found| faults.push_faults(Some(name), found))
        .ok()
}

fn id_of(json: &Value) -> Option<Id> {
    Id::try_from(json.as_u64()?).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{ConferenceFields, JournalFields};

    #[test]
    fn a_set_has_room_for_the_fields_of_each_kind() {
        let room = FieldSet::BITS as usize;
        assert!(ConferenceFields::table().fields.len() <= room);
        assert!(JournalFields::table().fields.len() <= room);
        let last = JournalFields::table().fields.len() - 1;
        let mut statement = Statement::<JournalFields>::new();
        statement.set_null(last);
        statement.mark_constant(0);
        let contents: Vec<CellContent> = statement.contents().collect();
        assert!(
            contents[..last]
                .iter()
                .all(|found| *found == CellContent::Absent)
        );
        assert_eq!(contents[last], CellContent::Empty);
        assert!(statement.is_constant(0) && !statement.is_constant(last));
    }

    impl<F: Fields> Display for Statement<F> {
        /// Formats the set fields in the order of the table, and then the links.
        fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
            let values = F::table()
                .fields
                .iter()
                .zip(self.fields.values())
                .zip(self.are_set());
            let named = values
                .filter(|(_, named)| *named)
                .map(|((field, value), _)| {
                    let mut json = Vec::new();
                    value.write_json(&mut json, &());
                    format!("{}={}", field.name, String::from_utf8_lossy(&json))
                });
            let links = [
                ("Organizations", format!("{:?}", self.organizations)),
                ("Tags", format!("{:?}", self.tags)),
            ];
            let links = links.into_iter().filter(|(_, list)| list != "[]");
            let links = links.map(|(name, list)| format!("{name}({list})"));
            f.write_str(&named.chain(links).collect::<Vec<_>>().join(" "))
        }
    }
}
