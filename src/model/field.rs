//! Fields as data: each kind of row has one table of its fields, in the order of JSON keys and CSV columns.
//!
//! JSON, CSV, import and the OpenAPI document all walk these tables, so a new field is one line in one file.

use jiff::civil::Date;

use super::{Access, DateStatus, Id, Number};

/// What values a field takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Any text; an empty one counts as null.
    Text,
    /// A day, `YYYY-MM-DD`.
    Date,
    /// A [`DateStatus`].
    Status,
    /// A year, 1900 to 2100.
    Year,
    /// A whole number from 0 to 2^53-1.
    Whole,
    /// A [`Number`].
    Number,
    /// True or false.
    Flag,
    /// An [`Access`].
    Access,
    /// A list of texts, ordered by code point, each once.
    Texts,
    /// Links to organizations, ordered by id, each once.
    Organizations,
    /// Links to tags, ordered by id, each once.
    Tags,
}

/// A field's value, for reading.
#[derive(Clone, Copy, Debug)]
#[allow(missing_docs, reason = "one variant per `Kind`, described there")]
pub enum Value<'a> {
    Text(&'a Option<String>),
    Date(&'a Option<Date>),
    Status(&'a Option<DateStatus>),
    Year(&'a Option<u16>),
    Whole(&'a Option<u64>),
    Number(&'a Option<Number>),
    Flag(&'a Option<bool>),
    Access(&'a Option<Access>),
    Texts(&'a Vec<String>),
    Organizations(&'a Vec<Id>),
    Tags(&'a Vec<Id>),
}

/// A field's place in its row, for writing.
#[derive(Debug)]
#[allow(missing_docs, reason = "one variant per `Kind`, described there")]
pub enum Slot<'a> {
    Text(&'a mut Option<String>),
    Date(&'a mut Option<Date>),
    Status(&'a mut Option<DateStatus>),
    Year(&'a mut Option<u16>),
    Whole(&'a mut Option<u64>),
    Number(&'a mut Option<Number>),
    Flag(&'a mut Option<bool>),
    Access(&'a mut Option<Access>),
    Texts(&'a mut Vec<String>),
    Organizations(&'a mut Vec<Id>),
    Tags(&'a mut Vec<Id>),
}

impl Slot<'_> {
    /// Sets null, or the empty list.
    pub fn clear(self) {
        match self {
            Slot::Text(place) => *place = None,
            Slot::Date(place) => *place = None,
            Slot::Status(place) => *place = None,
            Slot::Year(place) => *place = None,
            Slot::Whole(place) => *place = None,
            Slot::Number(place) => *place = None,
            Slot::Flag(place) => *place = None,
            Slot::Access(place) => *place = None,
            Slot::Texts(place) => place.clear(),
            Slot::Organizations(place) | Slot::Tags(place) => place.clear(),
        }
    }
}

/// One field of a row type `F`.
#[derive(Debug)]
pub struct Field<F> {
    /// The path of JSON keys joined by dots, such as `formats.oral`.
    pub name: &'static str,
    /// What values it takes.
    pub kind: Kind,
    /// Reads it.
    pub get: fn(&F) -> Value<'_>,
    /// Its place, for writing.
    pub slot: fn(&mut F) -> Slot<'_>,
}

impl<F> Field<F> {
    /// The CSV column: the path joined by underscores (the contract, "GET /exports/{dataset}").
    pub fn column(&self) -> String {
        self.name.replace('.', "_")
    }
}

/// Writes the table of a row type: `fields!(Row: Kind member.member; ...)`, in the order of JSON keys. A member whose
/// JSON key is a Rust keyword is written `Kind member as "key"`.
macro_rules! fields {
    ($row:ty: $($kind:ident $first:ident $(. $rest:ident)* $(as $key:literal)?;)*) => {
        &[$($crate::model::field::Field {
            name: $crate::model::field::fields!(@name $first $($rest)* $(as $key)?),
            kind: $crate::model::field::Kind::$kind,
            get: |row: &$row| $crate::model::field::Value::$kind(&row.$first$(.$rest)*),
            slot: |row: &mut $row| $crate::model::field::Slot::$kind(&mut row.$first$(.$rest)*),
        }),*]
    };
    (@name $first:ident $($rest:ident)*) => { concat!(stringify!($first) $(, ".", stringify!($rest))*) };
    (@name $first:ident as $key:literal) => { $key };
}
pub(crate) use fields;
