//! Each kind of row has one table of its fields, in the order of JSON keys and CSV columns.
//!
//! JSON, CSV, import, filters, copies and the OpenAPI document all use these tables. So a new field is one line.

use std::collections::BTreeMap;

use super::license::Rule;
use super::value::{FieldValue, ReferenceKind, ValueKind};

/// The table of the fields of a kind of row.
#[derive(Default)]
pub struct FieldTable {
    /// The fields, in the order of JSON keys and CSV columns.
    pub fields: Vec<Field>,
    /// The meaning of each object within a row, in Markdown, by its path.
    pub objects: BTreeMap<String, String>,
    /// The list parameters that filter by a field, in the order of the fields.
    pub filters: Vec<FieldFilter>,
    /// The JSON text after the last value: the closing braces.
    pub json_after: String,
}

impl FieldTable {
    /// Returns the index of the field with this CSV column.
    pub fn index_of(&self, column: &str) -> Option<usize> {
        let mut fields = self.fields.iter();
        fields.position(|field| field.column == column)
    }
}

/// A field.
pub struct Field {
    /// The path of JSON keys joined by dots, such as `formats.oral`.
    pub name: String,
    /// The CSV column: the path joined by underscores (contract, "GET /exports/{dataset}").
    pub column: String,
    /// Its meaning, in Markdown. Backticks are the only markup.
    pub note: String,
    /// The JSON text between the previous value and this one.
    pub json_before: String,
    /// The kind of the values.
    pub kind: ValueKind,
    /// The uses that the field's line declares.
    pub uses: FieldUses,
    /// [`FieldValue::rank_of`] of the field's type.
    pub rank_of: fn(&str) -> u64,
}

/// The uses of a field, besides being shown. In [`fields!`] they follow `=>`.
#[derive(Default)]
pub struct FieldUses {
    /// The name of the field in the documentation of `q`, if `q` searches it.
    pub searched: Option<&'static str>,
    /// Whether copies have the field in their full-text index. Searched texts, filtered texts and lists are always in
    /// it.
    pub indexed: bool,
    /// The set of a license's scope that restricts the field.
    pub rule: Option<Rule>,
    /// The list parameters: name, or suffix to the field's name; comparison; note.
    filters: Vec<(&'static str, Compare, &'static str)>,
}

/// A list parameter that filters by a field.
#[derive(Debug)]
pub struct FieldFilter {
    /// The parameter's name.
    pub name: String,
    /// The field's index in [`FieldTable::fields`].
    pub field: usize,
    /// The comparison of values with the parameter.
    pub compare: Compare,
    /// Its meaning, in Markdown. Backticks are the only markup.
    pub note: &'static str,
}

/// The comparison of a filter. Null matches nothing. Texts and lists support only `Equal`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Compare {
    /// Equal; for a list, one of its items is equal.
    Equal,
    /// Equal or later.
    From,
    /// Equal or earlier.
    To,
}

impl FieldUses {
    /// `q` searches the field. The documentation calls it `name`.
    pub fn searched(self, name: &'static str) -> FieldUses {
        FieldUses {
            searched: Some(name),
            ..self
        }
    }

    /// Copies have the field in their full-text index.
    pub fn indexed(self) -> FieldUses {
        FieldUses {
            indexed: true,
            ..self
        }
    }

    /// Adds a parameter with the field's name.
    pub fn equal(self, note: &'static str) -> FieldUses {
        self.filter("", Compare::Equal, note)
    }

    /// Adds a parameter that matches one item of a list.
    pub fn one_of(self, name: &'static str, note: &'static str) -> FieldUses {
        self.filter(name, Compare::Equal, note)
    }

    /// Adds two parameters, with the suffixes `_from` and `_to`, both inclusive.
    pub fn range(self, from: &'static str, to: &'static str) -> FieldUses {
        let from = self.filter("_from", Compare::From, from);
        from.filter("_to", Compare::To, to)
    }

    /// A license's scope can restrict the field.
    pub fn scope(self, rule: Rule) -> FieldUses {
        FieldUses {
            rule: Some(rule),
            ..self
        }
    }

    fn filter(mut self, name: &'static str, compare: Compare, note: &'static str) -> FieldUses {
        self.filters.push((name, compare, note));
        self
    }
}

/// A member of a row: a field's value, or a struct of members that [`fields!`] defines.
pub trait RowMember: Sized {
    /// Whether the member is a struct.
    const IS_OBJECT: bool;

    /// Adds the member's fields to the table. `path` is the member's path, `note` its meaning. A struct has no uses.
    fn describe(table: &mut FieldTable, path: &str, note: &str, uses: FieldUses);

    /// Appends the member's values, in the order of the table.
    fn collect<'a>(&'a self, values: &mut Vec<&'a dyn FieldValue>);

    /// Appends the member's values for writing, in the order of the table.
    fn collect_mut<'a>(&'a mut self, values: &mut Vec<&'a mut dyn FieldValue>);

    /// Replaces the values for which `is_named` returns true. It has one item per field, in the order of the table.
    fn replace_named(&mut self, with: Self, is_named: &mut dyn Iterator<Item = bool>);

    /// Returns the member's values, in the order of the table.
    fn values(&self) -> Vec<&dyn FieldValue> {
        let mut values = Vec::with_capacity(32);
        self.collect(&mut values);
        values
    }

    /// Returns the member's values for writing, in the order of the table.
    fn values_mut(&mut self) -> Vec<&mut dyn FieldValue> {
        let mut values = Vec::with_capacity(32);
        self.collect_mut(&mut values);
        values
    }
}

impl<V: FieldValue> RowMember for V {
    const IS_OBJECT: bool = false;

    fn describe(table: &mut FieldTable, path: &str, note: &str, uses: FieldUses) {
        let json_before = std::mem::take(&mut table.json_after);
        let name = path.to_owned();
        let column = path.replace('.', "_");
        let field = table.fields.len();
        table
            .filters
            .extend(uses.filters.iter().map(|&(name, compare, note)| {
                let name = if name.is_empty() || name.starts_with('_') {
                    column.clone() + name
                } else {
                    name.to_owned()
                };
                FieldFilter {
                    name,
                    field,
                    compare,
                    note,
                }
            }));
        let note = note.to_owned()
            + if uses.searched.is_some() {
                "; searched by `q`"
            } else {
                ""
            };
        table.fields.push(Field {
            name,
            column,
            note,
            json_before,
            kind: V::kind(),
            uses,
            rank_of: V::rank_of,
        });
    }

    fn collect<'a>(&'a self, values: &mut Vec<&'a dyn FieldValue>) {
        values.push(self);
    }

    fn collect_mut<'a>(&'a mut self, values: &mut Vec<&'a mut dyn FieldValue>) {
        values.push(self);
    }

    fn replace_named(&mut self, with: V, is_named: &mut dyn Iterator<Item = bool>) {
        if is_named.next() == Some(true) {
            *self = with;
        }
    }
}

impl FieldTable {
    /// Builds the table of a kind of row.
    pub fn of<M: RowMember>() -> FieldTable {
        let mut table = FieldTable::default();
        M::describe(&mut table, "", "", FieldUses::default());
        table
    }

    /// Returns the index of the field that links to rows of a kind.
    pub fn links(&self, kind: ReferenceKind) -> Option<usize> {
        self.fields
            .iter()
            .position(|field| field.kind == ValueKind::Links(kind))
    }

    /// Adds a member of the object at `path`, which is empty for the row itself. `outer` is the object's note.
    pub(super) fn add<M: RowMember>(
        &mut self,
        (path, outer): (&str, &str),
        key: &'static str,
        note: &str,
        uses: FieldUses,
    ) {
        let path = if path.is_empty() {
            key.to_owned()
        } else {
            format!("{path}.{key}")
        };
        let comma = if self.json_after.ends_with('{') {
            ""
        } else {
            ","
        };
        let (opened, closed) = if M::IS_OBJECT { ("{", "}") } else { ("", "") };
        self.json_after
            .push_str(&format!("{comma}\"{key}\":{opened}"));
        let note = note.trim_start().replacen('…', outer, 1);
        M::describe(self, &path, &note, uses);
        self.json_after.push_str(closed);
        if M::IS_OBJECT {
            self.objects.insert(path, note);
        }
    }
}

/// Defines a struct of fields and its table. The doc comment of a member is its note in the API's documentation. In it,
/// `…` stands for the note of the struct. A member whose JSON key is a Rust keyword is written `member: Type as "key"`.
/// Its uses, methods of [`FieldUses`], follow `=>`.
macro_rules! fields {
    (
        $(#[$meta:meta])*
        pub struct $row:ident {
            $($(#[doc = $note:literal])* pub $member:ident: $type:ty $(as $key:literal)? $(=> $($use:ident $with:tt).+)?,)*
        }
    ) => {
        $(#[$meta])*
        #[derive(Clone, Debug, Default, PartialEq, serde::Deserialize)]
        // A row that was stored before a field was added lacks that field.
        #[serde(default)]
        pub struct $row {
            $($(#[doc = $note])* $(#[serde(rename = $key)])? pub $member: $type,)*
        }

        impl $crate::model::field::RowMember for $row {
            const IS_OBJECT: bool = true;

            fn describe(
                table: &mut $crate::model::field::FieldTable,
                path: &str,
                note: &str,
                _uses: $crate::model::field::FieldUses,
            ) {
                $(table.add::<$type>(
                    (path, note),
                    $crate::model::field::fields!(@key $member $($key)?),
                    concat!($($note),*),
                    $crate::model::field::FieldUses::default()$($(.$use $with)+)?,
                );)*
            }

            fn collect<'a>(&'a self, values: &mut Vec<&'a dyn $crate::model::value::FieldValue>) {
                $(self.$member.collect(values);)*
            }

            fn collect_mut<'a>(&'a mut self, values: &mut Vec<&'a mut dyn $crate::model::value::FieldValue>) {
                $(self.$member.collect_mut(values);)*
            }

            fn replace_named(&mut self, with: Self, is_named: &mut dyn Iterator<Item = bool>) {
                $(self.$member.replace_named(with.$member, is_named);)*
            }
        }
    };
    (@key $member:ident) => { stringify!($member) };
    (@key $member:ident $key:literal) => { $key };
}
pub(crate) use fields;
