//! Fields as data: each kind of row has one table of its fields, in the order of JSON keys and CSV columns.
//!
//! JSON, CSV, import, filters, copies and the OpenAPI document all walk these tables, so a new field is one line in one file.

use super::license::Rule;
use super::value::{FieldValue, ReferenceKind, ValueKind};

/// The fields of a kind of row.
#[derive(Debug, Default)]
pub struct Table {
    /// The fields, in the order of JSON keys and CSV columns.
    pub fields: Vec<Field>,
    /// The same, as JSON nests them.
    pub nodes: Vec<Node>,
    /// The list parameters that filter by a field, in the order of the fields.
    pub filters: Vec<FieldFilter>,
    /// The JSON text after the last value: what closes the objects that are open there.
    pub json_after: String,
}

/// A field.
#[derive(Debug)]
pub struct Field {
    /// The path of JSON keys joined by dots, such as `formats.oral`.
    pub name: String,
    /// The CSV column: the path joined by underscores (the contract, "GET /exports/{dataset}").
    pub column: String,
    /// Its meaning, in Markdown with backticks as the only markup.
    pub note: String,
    /// The JSON text between the value before it and its own.
    pub json_before: String,
    /// The kind of its values.
    pub kind: ValueKind,
    /// The purposes that its line states.
    pub uses: Uses,
    /// [`FieldValue::rank_of`] of its type.
    pub rank_of: fn(&str) -> u64,
}

/// The purposes of a field, besides being shown. [`fields!`] takes them behind `=>`.
#[derive(Clone, Debug, Default)]
pub struct Uses {
    /// `q` searches the field, and its documentation calls it this.
    pub searched: Option<&'static str>,
    /// Copies have it in their full-text index. They also have each list and each text that is searched or filtered.
    pub indexed: bool,
    /// The set of a license's scope that the values are compared with.
    pub rule: Option<Rule>,
    /// Per list parameter: its name, or the end behind the field's name; the comparison; the note.
    filters: Vec<(&'static str, Compare, &'static str)>,
}

/// A list parameter that filters by a field.
#[derive(Debug)]
pub struct FieldFilter {
    /// The parameter's name.
    pub name: String,
    /// The field's index in [`Table::fields`].
    pub field: usize,
    /// How values are compared with the parameter.
    pub compare: Compare,
    /// Its meaning, in Markdown with backticks as the only markup.
    pub note: &'static str,
}

/// How a filter compares a field's value with its own. Null matches nothing. Texts and lists are compared with `Equal` alone.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Compare {
    /// The same; of a list, one of its items.
    Equal,
    /// The same or a later one.
    From,
    /// The same or an earlier one.
    To,
}

impl Uses {
    /// `q` searches the field, which its documentation calls `name`.
    pub fn searched(self, name: &'static str) -> Uses {
        Uses { searched: Some(name), ..self }
    }

    /// Copies have the field in their full-text index.
    pub fn indexed(self) -> Uses {
        Uses { indexed: true, ..self }
    }

    /// A parameter with the field's name, and one value.
    pub fn equal(self, note: &'static str) -> Uses {
        self.filter("", Compare::Equal, note)
    }

    /// A parameter that names one item of a list.
    pub fn one_of(self, name: &'static str, note: &'static str) -> Uses {
        self.filter(name, Compare::Equal, note)
    }

    /// Two parameters, the field's name with `_from` and with `_to`, both inclusive.
    pub fn range(self, from: &'static str, to: &'static str) -> Uses {
        let from = self.filter("_from", Compare::From, from);
        from.filter("_to", Compare::To, to)
    }

    /// A license's scope has a set for the field.
    pub fn scope(self, rule: Rule) -> Uses {
        Uses { rule: Some(rule), ..self }
    }

    fn filter(mut self, name: &'static str, compare: Compare, note: &'static str) -> Uses {
        self.filters.push((name, compare, note));
        self
    }
}

/// A key of a row's JSON objects.
#[derive(Debug)]
pub struct Node {
    /// The key.
    pub key: &'static str,
    /// The meaning of what it holds.
    pub note: String,
    /// What it holds.
    pub holds: Holds,
}

/// What a key of a row's JSON holds.
#[derive(Debug)]
pub enum Holds {
    /// The field of this index in [`Table::fields`].
    Field(usize),
    /// An object of fields.
    Object(Vec<Node>),
}

/// What a row consists of: a field's value, or a struct of such members that [`fields!`] defines.
pub trait Member: Sized {
    /// Whether it is a struct.
    const IS_OBJECT: bool;

    /// Adds the fields in it to the table; `path` leads to it, and `note` tells its meaning. A struct has no uses.
    fn describe(table: &mut Table, path: &str, note: &str, uses: Uses) -> Holds;

    /// Adds the values in it, in the order of the table.
    fn collect<'a>(&'a self, values: &mut Vec<&'a dyn FieldValue>);

    /// Adds the values in it for writing, in the order of the table.
    fn collect_mut<'a>(&'a mut self, values: &mut Vec<&'a mut dyn FieldValue>);

    /// Replaces the values in it for which `is_named`, asked in the order of the table, says so.
    fn replace_named(&mut self, with: Self, is_named: &mut dyn Iterator<Item = bool>);

    /// The values in it, in the order of the table.
    fn values(&self) -> Vec<&dyn FieldValue> {
        let mut values = Vec::with_capacity(32);
        self.collect(&mut values);
        values
    }

    /// The values in it for writing, in the order of the table.
    fn values_mut(&mut self) -> Vec<&mut dyn FieldValue> {
        let mut values = Vec::with_capacity(32);
        self.collect_mut(&mut values);
        values
    }
}

impl<V: FieldValue> Member for V {
    const IS_OBJECT: bool = false;

    fn describe(table: &mut Table, path: &str, note: &str, uses: Uses) -> Holds {
        let json_before = std::mem::take(&mut table.json_after);
        let (name, column) = (path.to_owned(), path.replace('.', "_"));
        let field = table.fields.len();
        table.filters.extend(uses.filters.iter().map(|&(name, compare, note)| {
            let name = if name.is_empty() || name.starts_with('_') { column.clone() + name } else { name.to_owned() };
            FieldFilter { name, field, compare, note }
        }));
        let note = note.to_owned() + if uses.searched.is_some() { "; searched by `q`" } else { "" };
        table.fields.push(Field { name, column, note, json_before, kind: V::kind(), uses, rank_of: V::rank_of });
        Holds::Field(field)
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

impl Table {
    /// The table of a kind of row.
    pub fn of<M: Member>() -> Table {
        let mut table = Table::default();
        if let Holds::Object(nodes) = M::describe(&mut table, "", "", Uses::default()) {
            table.nodes = nodes;
        }
        table
    }

    /// The index of the field that links to rows of a kind.
    pub fn links(&self, kind: ReferenceKind) -> Option<usize> {
        self.fields.iter().position(|field| field.kind == ValueKind::Links(kind))
    }

    /// Adds a member of the object at `path`, which is empty for the row itself, and whose meaning `outer` tells.
    pub(super) fn add<M: Member>(
        &mut self,
        (path, outer): (&str, &str),
        key: &'static str,
        note: &str,
        uses: Uses,
    ) -> Node {
        let path = if path.is_empty() { key.to_owned() } else { format!("{path}.{key}") };
        let comma = if self.json_after.ends_with('{') { "" } else { "," };
        let (opened, closed) = if M::IS_OBJECT { ("{", "}") } else { ("", "") };
        self.json_after.push_str(&format!("{comma}\"{key}\":{opened}"));
        let note = note.trim_start().replacen('…', outer, 1);
        let holds = M::describe(self, &path, &note, uses);
        self.json_after.push_str(closed);
        Node { key, note, holds }
    }
}

/// Defines a struct of fields with its table. The doc comment of a member is its note in the API's documentation; there
/// `…` stands for the note of the struct within its row. A member whose JSON key is a Rust keyword is written
/// `member: Type as "key"`. A member with purposes names them, methods of [`Uses`], behind `=>`.
macro_rules! fields {
    (
        $(#[$meta:meta])*
        pub struct $row:ident {
            $($(#[doc = $note:literal])* pub $member:ident: $type:ty $(as $key:literal)? $(=> $($use:ident $with:tt).+)?,)*
        }
    ) => {
        $(#[$meta])*
        #[derive(Clone, Debug, Default, PartialEq, serde::Deserialize)]
        // A row that was stored before a field was added has none of that name.
        #[serde(default)]
        pub struct $row {
            $($(#[doc = $note])* $(#[serde(rename = $key)])? pub $member: $type,)*
        }

        impl $crate::model::field::Member for $row {
            const IS_OBJECT: bool = true;

            fn describe(
                table: &mut $crate::model::field::Table,
                path: &str,
                note: &str,
                _uses: $crate::model::field::Uses,
            ) -> $crate::model::field::Holds {
                $crate::model::field::Holds::Object(vec![$(table.add::<$type>(
                    (path, note),
                    $crate::model::field::fields!(@key $member $($key)?),
                    concat!($($note),*),
                    $crate::model::field::Uses::default()$($(.$use $with)+)?,
                )),*])
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
