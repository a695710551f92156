//! The content of a row: the values that it sets, and its unresolved links.

use std::borrow::Cow;
use std::fmt::Display;

use crate::import::faults::RowFaults;
use crate::import::read::cells::{Notation, normalize, normalize_issn};
use crate::import::read::options::ISSN_COLUMNS;
use crate::model::field::Field;
use crate::model::id::NOT_AN_ID;
use crate::model::message::{Message, message};
use crate::model::reference::ReferenceFields;
use crate::model::value::json::JsonMembers;
use crate::model::value::{FieldValue, Json, ValueKind, ValueReader};
use crate::model::{Curated, Fields, Id, OrganizationFields, ReferenceKind, TagFields};

/// The values that a row sets.
#[derive(Clone, Debug)]
pub(in crate::import) struct Statement<F> {
    fields: F,
    /// For each field of the table, whether the row sets it.
    is_set: Vec<bool>,
    /// The links to organizations.
    pub organizations: Vec<RecordLink<OrganizationFields>>,
    /// The links to tags.
    pub tags: Vec<RecordLink<TagFields>>,
}

/// A link of a record.
#[derive(Clone, Debug)]
pub(in crate::import) enum RecordLink<F> {
    Id(Id),
    /// A name; for a tag, `Type: Name`.
    Label(String),
    /// The full object, which is created or updated.
    Object(Curated<F>),
}

impl<F: Fields> Statement<F> {
    /// Creates a statement that sets no field.
    pub fn new() -> Statement<F> {
        let is_set = vec![false; F::table().fields.len()];
        Statement { fields: F::default(), is_set, organizations: Vec::new(), tags: Vec::new() }
    }

    /// Returns the value of a field in CSV form; empty if the row does not set it.
    pub fn value(&self, index: usize) -> Cow<'_, str> {
        if self.is_set[index] { self.fields.values()[index].to_csv(&()) } else { Cow::Borrowed("") }
    }

    /// Returns the fields that the row sets, with their values.
    pub fn values_mut(&mut self) -> impl Iterator<Item = (&'static Field, &mut dyn FieldValue)> {
        let values = F::table().fields.iter().zip(self.fields.values_mut());
        values.zip(&self.is_set).filter_map(|(value, is_set)| is_set.then_some(value))
    }

    /// Empties the fields that the row sets.
    pub fn clear_in(&self, fields: &mut F) {
        fields.replace_named(F::default(), &mut self.is_set.iter().copied());
    }

    /// Appends the set values. Statements are equal if and only if they append equal bytes.
    pub fn write(&self, out: &mut Vec<u8>) {
        for (index, value) in self.fields.values().into_iter().enumerate().filter(|(index, _)| self.is_set[*index]) {
            out.extend_from_slice(&index.to_be_bytes());
            value.write_json(out, &());
        }
        out.extend_from_slice(format!("{:?}{:?}", self.organizations, self.tags).as_bytes());
    }

    /// Returns a reader that adds values to this statement.
    pub fn reader<'a, 'f>(&'a mut self, faults: &'a mut RowFaults<'f>) -> StatementReader<'a, 'f> {
        let table = &F::table().fields;
        StatementReader {
            table,
            values: self.fields.values_mut(),
            is_set: &mut self.is_set,
            organizations: &mut self.organizations,
            tags: &mut self.tags,
            faults,
        }
    }

    /// Copies the values to `fields`. Links are resolved later, so lists of links become empty.
    pub fn apply_to(self, fields: &mut F) {
        fields.replace_named(self.fields, &mut self.is_set.into_iter());
    }
}

/// Reads the values of a row. A bad value is reported and not set.
pub(in crate::import) struct StatementReader<'a, 'f> {
    table: &'static [Field],
    values: Vec<&'a mut dyn FieldValue>,
    is_set: &'a mut [bool],
    organizations: &'a mut Vec<RecordLink<OrganizationFields>>,
    tags: &'a mut Vec<RecordLink<TagFields>>,
    pub faults: &'a mut RowFaults<'f>,
}

impl StatementReader<'_, '_> {
    /// Reads a JSON value that is neither null nor an empty text as the field with this index. `name` is its name in
    /// reports.
    pub fn read_json(&mut self, index: usize, json: Json<'_>, name: &dyn Display) {
        self.read(index, name, |value, reader| value.read_json(json, reader));
    }

    /// Reads a cell as the field with this index. `name` is its name in reports.
    pub fn read_csv(&mut self, index: usize, cell: &str, notation: &Notation, name: &dyn Display) {
        match self.normalize(index, cell, notation, name) {
            Some(plain) if plain.is_empty() => self.set_null(index),
            Some(plain) if notation.is_json && self.table[index].kind == ValueKind::Text => {
                self.read_json(index, Json::Text(plain), name);
            }
            Some(plain) => self.read(index, name, |value, reader| value.read_csv(&plain, reader)),
            None => {}
        }
    }

    /// Returns a cell in the form that the field is parsed from, or reports its fault.
    fn normalize<'c>(
        &mut self,
        index: usize,
        cell: &'c str,
        notation: &Notation,
        name: &dyn Display,
    ) -> Option<Cow<'c, str>> {
        let Field { column, kind, .. } = &self.table[index];
        if ISSN_COLUMNS.contains(&column.as_str())
            && let Some((issn, lacks_zero)) = normalize_issn(column, cell)
        {
            if lacks_zero {
                let message = message!("has 7 digits; it is stored as `{issn}`, whose check digit fits");
                self.faults.warn_value(name, cell, message);
            }
            return Some(Cow::Owned(issn));
        }
        normalize(*kind, cell, notation).map_err(|message| self.faults.push_value(name, cell, message)).ok()
    }

    /// Returns true if the row has no value for the field with this index.
    pub fn is_empty(&self, index: usize) -> bool {
        // Links are resolved later.
        match self.table[index].kind {
            ValueKind::Links(ReferenceKind::Organization) => self.organizations.is_empty(),
            ValueKind::Links(ReferenceKind::Tag) => self.tags.is_empty(),
            _ => self.values[index].to_csv(&()).is_empty(),
        }
    }

    /// Returns the field with this index.
    pub fn field(&self, index: usize) -> &'static Field {
        &self.table[index]
    }

    /// Sets a field to null or to an empty list.
    pub fn set_null(&mut self, index: usize) {
        self.is_set[index] = true;
    }

    fn read(&mut self, index: usize, name: &dyn Display, read: impl FnOnce(&mut dyn FieldValue, &mut dyn ValueReader)) {
        let before = self.faults.total();
        let (organizations, tags, faults) = (&mut *self.organizations, &mut *self.tags, &mut *self.faults);
        read(self.values[index], &mut FieldReader { name, organizations, tags, faults });
        self.is_set[index] = self.faults.total() == before;
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

    fn links(&mut self, kind: ReferenceKind, items: Vec<Json<'_>>) {
        match kind {
            ReferenceKind::Organization => self.organizations.extend(read_links(items, self.name, self.faults)),
            ReferenceKind::Tag => self.tags.extend(read_links(items, self.name, self.faults)),
        }
    }
}

/// Reads a list of links. Reports each bad link; if there is one, returns none.
fn read_links<F: ReferenceFields>(
    items: Vec<Json<'_>>,
    field: &dyn Display,
    faults: &mut RowFaults<'_>,
) -> Vec<RecordLink<F>> {
    let before = faults.total();
    let read = items.into_iter().filter_map(|item| match item {
        Json::Text(text) if !text.is_empty() => Some(RecordLink::Label(text.into_owned())),
        Json::Object(members) => read_object(members, field, faults).map(RecordLink::Object),
        Json::Whole(number) if Id::try_from(number).is_ok() => Id::try_from(number).ok().map(RecordLink::Id),
        other => {
            let message = message!("is not a valid {}; write its id, its name or the full object", F::KIND);
            faults.push_value(field, &other.to_string(), message);
            None
        }
    });
    let links = read.collect();
    if faults.total() == before { links } else { Vec::new() }
}

/// Reads a full object in a list of links. It must have all members of its kind.
fn read_object<F: ReferenceFields>(
    members: JsonMembers<'_>,
    field: &dyn Display,
    faults: &mut RowFaults<'_>,
) -> Option<Curated<F>> {
    let before = faults.total();
    let known: Vec<&str> = std::iter::once("id").chain(F::table().fields.iter().map(|member| &*member.name)).collect();
    let mut missing = known.clone();
    let (mut id, mut statement) = (None, Statement::<F>::new());
    let mut reader = statement.reader(faults);
    for (key, value) in members {
        missing.retain(|name| *name != key);
        let path = format_args!("{field}.{key}");
        match known.iter().position(|name| *name == key) {
            Some(0) => id = read_id(&value, &path, reader.faults),
            Some(position) if value.is_empty() => reader.set_null(position - 1),
            Some(position) => reader.read_json(position - 1, value, &path),
            None => reader.faults.push_unknown("member", &format!("{field}."), &key, &known),
        }
    }
    for name in &missing {
        faults.push(
            &format_args!("{field}.{name}"),
            "is missing; a full object needs all members (null if empty); or write only the id or the name",
        );
    }
    // The object is complete, so its rules can be checked here.
    let id = id.filter(|_| faults.total() == before)?;
    Curated::new(id, statement.fields).map_err(|found| faults.push_faults(Some(field), found)).ok()
}

/// Reads a JSON id, which must be an integer, or reports a fault.
pub(in crate::import) fn read_id(json: &Json<'_>, field: &dyn Display, faults: &mut RowFaults<'_>) -> Option<Id> {
    if let Json::Whole(number) = json
        && let Ok(id) = Id::try_from(*number)
    {
        return Some(id);
    }
    faults.push_value(field, &json.to_string(), message!("{NOT_AN_ID}, without quotes or fraction"));
    None
}

#[cfg(test)]
impl<F: Fields> std::fmt::Display for Statement<F> {
    /// Formats the set fields in the order of the table, and then the links.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let values = F::table().fields.iter().zip(self.fields.values()).zip(&self.is_set);
        let named = values.filter(|(_, named)| **named).map(|((field, value), _)| {
            let mut json = Vec::new();
            value.write_json(&mut json, &());
            format!("{}={}", field.name, String::from_utf8_lossy(&json))
        });
        let links = [("Organizations", format!("{:?}", self.organizations)), ("Tags", format!("{:?}", self.tags))];
        let links = links.into_iter().filter(|(_, list)| list != "[]").map(|(name, list)| format!("{name}({list})"));
        f.write_str(&named.chain(links).collect::<Vec<_>>().join(" "))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::import::faults::{BadRows, FilePosition, UnknownNames};
    use crate::model::{ConferenceFields, JournalFields};

    /// Returns the value of the field, as JSON or as links, or the messages of its faults.
    fn shown<F: Fields>(name: &str, read: impl FnOnce(&mut StatementReader<'_, '_>, usize)) -> String {
        let position = FilePosition { file: "f".into(), line: 1 };
        let mut bad = BadRows::default();
        let index = F::table().fields.iter().position(|field| field.name == name).unwrap();
        let mut statement = Statement::<F>::new();
        let (mut names, mut warnings) = (UnknownNames::default(), Vec::new());
        read(&mut statement.reader(&mut RowFaults::new(&position, &mut bad).of_file(&mut names, &mut warnings)), index);
        assert_eq!(statement.is_set[index], bad.is_empty(), "what is bad is reported, and nothing else is");
        if !bad.is_empty() {
            return bad.to_string();
        }
        statement.to_string().replacen(&format!("{name}="), "", 1)
    }

    fn shown_of_either(name: &str, read: impl FnOnce(&mut StatementReader<'_, '_>, usize)) -> String {
        match ConferenceFields::table().fields.iter().any(|field| field.name == name) {
            true => shown::<ConferenceFields>(name, read),
            false => shown::<JournalFields>(name, read),
        }
    }

    #[test]
    fn csv_cells_are_read() {
        let cases = [
            ("city", "", "null"),
            ("city", " a ", r#"" a ""#),
            ("city", "'=1", r#""=1""#),
            ("city", "'tis", r#""'tis""#),
            ("start_date", "2026-02-28", r#""2026-02-28""#),
            ("start_date", "2026-02-29", "`2026-02-29` - write a date as YYYY-MM-DD, such as 2026-03-15"),
            ("start_date_status", "not_found", r#""not_found""#),
            ("start_date_status", "Confirmed", r#""confirmed""#),
            ("start_date_status", " NOT FOUND", r#""not_found""#),
            ("start_date_status", "sure", "write one of"),
            ("year", "1900", "1900"),
            ("year", "2101", "from 1900 to 2100"),
            ("year", "2026.0", "2026"),
            ("year", "+2026", "from 1900 to 2100"),
            ("h_index", "0", "0"),
            ("h_index", "007", "write a whole number"),
            ("h_index", "9007199254740992", "write a whole number"),
            ("sjr", "4.20", "4.2"),
            ("sjr", "4,2", "has a decimal comma; write a decimal point, `4.2`"),
            ("sjr", "-1", "write a number from 0"),
            ("sjr", "NaN", "is not a number; leave the cell empty"),
            ("sjr", "1e999", "write a number from 0"),
            ("formats.oral", "TRUE", "true"),
            ("formats.oral", "false", "false"),
            ("formats.oral", "yes", "true"),
            ("formats.oral", "maybe", "write TRUE or FALSE"),
            ("publishing.access", "open", r#""open""#),
            ("publishing.access", "Hybrid", r#""hybrid""#),
            ("publishing.access", "gold", r#""open""#),
            ("publishing.access", "green", "`subscription`, `hybrid`, `open`"),
            ("issn_print", "2434561x", r#""2434-561X""#),
            ("issn_online", "3785955", r#""0378-5955""#),
            ("issn_online", "24345610", r#""24345610""#),
            ("abbv", "2434561x", r#""2434561x""#),
            ("therapy_areas", "['a', \"b's\"]", "without brackets and quotes: `a; b's`"),
            ("therapy_areas", r#"["a","b"]"#, "without brackets and quotes: `a; b`"),
            ("therapy_areas", "['a']", "without brackets and quotes: `a`"),
            ("therapy_areas", "[a]", r#"["[a]"]"#),
            ("organizations", r#"["A","B"]"#, "without brackets and quotes: `A; B`"),
            ("tags", "['T: A', 'T: B']", "without brackets and quotes: `T: A; T: B`"),
            ("therapy_areas", "a; b", r#"["a","b"]"#),
            ("therapy_areas", "a;b", r#"["a;b"]"#),
            ("therapy_areas", "'+a; b", r#"["+a","b"]"#),
            ("therapy_areas", "a; ; b", "an item is empty"),
            ("therapy_areas", "a; ", "an item is empty"),
            ("tags", "Topic: A: B", "Tags([Label(\"Topic: A: B\")])"),
            ("organizations", "'-X", "Organizations([Label(\"-X\")])"),
        ];
        for (field, text, expected) in cases {
            let read = shown_of_either(field, |reader, index| reader.read_csv(index, text, &Notation::default(), &"x"));
            assert!(read.contains(expected), "{field} {text:?}: {read}");
        }
    }
}
