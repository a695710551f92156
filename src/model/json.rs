//! Rows as JSON objects, in the one shape that lists, single lookups, the feed and exports share.

use std::io::Write;

use super::curated::{Curated, Fields};
use super::field::{Field, Value};
use super::reference::{ReferenceFields, ReferenceKind, References};
use super::{Id, Timestamp};

/// The JSON text that stands before each value of a row type, and after the last.
#[derive(Debug)]
pub struct Layout {
    before: Vec<String>,
    after: &'static str,
    closing: String,
}

impl Layout {
    /// The layout of a record: `id`, the fields, `updated_at`.
    pub fn of_record<F>(table: &[Field<F>]) -> Layout {
        Layout::new(table, ",\"updated_at\":")
    }

    /// The layout of an organization or tag: `id`, the fields.
    pub fn of_reference<F>(table: &[Field<F>]) -> Layout {
        Layout::new(table, "")
    }

    fn new<F>(table: &[Field<F>], after: &'static str) -> Layout {
        let mut open: Vec<&str> = Vec::new();
        let mut before = Vec::with_capacity(table.len());
        for field in table {
            let mut path: Vec<&str> = field.name.split('.').collect();
            let key = path.pop().unwrap_or_default();
            let shared = open.iter().zip(&path).take_while(|(one, other)| one == other).count();
            let mut text = "}".repeat(open.len() - shared);
            text.push(',');
            for parent in &path[shared..] {
                text.push_str(&format!("\"{parent}\":{{"));
            }
            text.push_str(&format!("\"{key}\":"));
            open = path;
            before.push(text);
        }
        Layout { before, after, closing: "}".repeat(open.len()) }
    }
}

/// A record as a JSON object, its links resolved.
pub fn render_record<F: Fields>(row: &Curated<F>, updated_at: Timestamp, references: &References) -> Vec<u8> {
    let mut out = Vec::with_capacity(1024);
    render_fields(row, Some(references), &mut out);
    push_str(&mut out, &updated_at.to_string());
    out.push(b'}');
    out
}

/// An organization or tag as a JSON object, as it stands within records.
pub fn render_reference<F: ReferenceFields>(row: &Curated<F>) -> Vec<u8> {
    let mut out = Vec::with_capacity(128);
    render_fields(row, None, &mut out);
    out.push(b'}');
    out
}

/// `id` and the fields, up to where `updated_at`'s value or the closing brace follows.
fn render_fields<F: Fields>(row: &Curated<F>, references: Option<&References>, out: &mut Vec<u8>) {
    let layout = F::layout();
    out.extend_from_slice(b"{\"id\":");
    push_display(out, row.id());
    for (field, before) in F::table().iter().zip(&layout.before) {
        out.extend_from_slice(before.as_bytes());
        push_value(out, (field.get)(row.fields()), references);
    }
    out.extend_from_slice(layout.closing.as_bytes());
    out.extend_from_slice(layout.after.as_bytes());
}

fn push_value(out: &mut Vec<u8>, value: Value<'_>, references: Option<&References>) {
    match value {
        Value::Text(Some(text)) => push_str(out, text),
        Value::Date(Some(date)) => {
            out.push(b'"');
            push_display(out, date);
            out.push(b'"');
        }
        Value::Status(Some(status)) => push_str(out, status.as_str()),
        Value::Access(Some(access)) => push_str(out, access.as_str()),
        Value::Year(Some(year)) => push_display(out, year),
        Value::Whole(Some(number)) => push_display(out, number),
        Value::Number(Some(number)) => push_display(out, number),
        Value::Flag(Some(flag)) => push_display(out, flag),
        Value::Texts(items) => push_list(out, items, |out, item| push_str(out, item)),
        Value::Organizations(ids) => push_links(out, ReferenceKind::Organization, ids, references),
        Value::Tags(ids) => push_links(out, ReferenceKind::Tag, ids, references),
        Value::Text(None)
        | Value::Date(None)
        | Value::Status(None)
        | Value::Access(None)
        | Value::Year(None)
        | Value::Whole(None)
        | Value::Number(None)
        | Value::Flag(None) => out.extend_from_slice(b"null"),
    }
}

fn push_links(out: &mut Vec<u8>, kind: ReferenceKind, ids: &[Id], references: Option<&References>) {
    push_list(out, ids, |out, id| match references {
        Some(references) => out.extend_from_slice(references.json(kind, *id)),
        None => push_display(out, id),
    });
}

fn push_list<T>(out: &mut Vec<u8>, items: &[T], mut push_item: impl FnMut(&mut Vec<u8>, &T)) {
    out.push(b'[');
    for (at, item) in items.iter().enumerate() {
        if at > 0 {
            out.push(b',');
        }
        push_item(out, item);
    }
    out.push(b']');
}

/// Appends a JSON string.
pub fn push_str(out: &mut Vec<u8>, text: &str) {
    // Writing a string to memory cannot fail.
    let _ = serde_json::to_writer(out, text);
}

/// Appends what has JSON's own form already: numbers, booleans, dates between quotes.
pub fn push_display(out: &mut Vec<u8>, value: impl std::fmt::Display) {
    let _ = write!(out, "{value}");
}
