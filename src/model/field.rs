//! Fields as data: each kind of row has one table of its fields, in the order of JSON keys and CSV columns.
//!
//! JSON, CSV, import and the OpenAPI document all walk these tables, so a new field is one line in one file.

use super::value::FieldValue;

/// The fields of a kind of row.
#[derive(Debug, Default)]
pub struct Table {
    /// The fields, in the order of JSON keys and CSV columns.
    pub fields: Vec<Field>,
    /// The same, as JSON nests them.
    pub nodes: Vec<Node>,
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
}

/// A key of a row's JSON objects.
#[derive(Debug)]
pub struct Node {
    /// The key.
    pub key: &'static str,
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

    /// Adds the fields in it to the table; `path` leads to it, and `note` tells its meaning.
    fn describe(table: &mut Table, path: &str, note: &str) -> Holds;

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

    fn describe(table: &mut Table, path: &str, note: &str) -> Holds {
        let json_before = std::mem::take(&mut table.json_after);
        let (name, column) = (path.to_owned(), path.replace('.', "_"));
        table.fields.push(Field { name, column, note: note.to_owned(), json_before });
        Holds::Field(table.fields.len() - 1)
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
        if let Holds::Object(nodes) = M::describe(&mut table, "", "") {
            table.nodes = nodes;
        }
        table
    }

    /// Adds a member of the object at `path`, which is empty for the row itself, and whose meaning `outer` tells.
    pub(super) fn add<M: Member>(&mut self, path: &str, outer: &str, key: &'static str, note: &str) -> Node {
        let path = if path.is_empty() { key.to_owned() } else { format!("{path}.{key}") };
        let comma = if self.json_after.ends_with('{') { "" } else { "," };
        let (opened, closed) = if M::IS_OBJECT { ("{", "}") } else { ("", "") };
        self.json_after.push_str(&format!("{comma}\"{key}\":{opened}"));
        let holds = M::describe(self, &path, &note.trim_start().replacen('…', outer, 1));
        self.json_after.push_str(closed);
        Node { key, holds }
    }
}

/// Defines a struct of fields with its table. The doc comment of a member is its note in the API's documentation; there
/// `…` stands for the note of the struct within its row. A member whose JSON key is a Rust keyword is written
/// `member: Type as "key"`.
macro_rules! fields {
    (
        $(#[$meta:meta])*
        pub struct $row:ident {
            $($(#[doc = $note:literal])* pub $member:ident: $type:ty $(as $key:literal)?,)*
        }
    ) => {
        $(#[$meta])*
        #[derive(Clone, Debug, Default, PartialEq, serde::Serialize, serde::Deserialize)]
        pub struct $row {
            $($(#[doc = $note])* pub $member: $type,)*
        }

        impl $crate::model::field::Member for $row {
            const IS_OBJECT: bool = true;

            fn describe(
                table: &mut $crate::model::field::Table,
                path: &str,
                note: &str,
            ) -> $crate::model::field::Holds {
                $crate::model::field::Holds::Object(vec![$(table.add::<$type>(
                    path,
                    note,
                    $crate::model::field::fields!(@key $member $($key)?),
                    concat!($($note),*),
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
