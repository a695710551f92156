//! Rows as JSON objects, in the one shape that lists, single lookups, the feed and exports share.

use std::fmt::Display;
use std::io::Write;

use super::curated::{Curated, Fields};
use super::reference::{ReferenceFields, References};
use super::{Id, Timestamp};

/// A record as a JSON object, its links resolved.
pub fn render_record<F: Fields>(row: &Curated<F>, updated_at: Timestamp, references: &References) -> Vec<u8> {
    let mut out = Vec::with_capacity(1024);
    push_fields(&mut out, row.id(), row.fields(), references);
    push_display(&mut out, format_args!(",\"updated_at\":\"{updated_at}\"}}"));
    out
}

/// An organization or tag as a JSON object, as it stands within records.
pub fn render_reference<F: ReferenceFields>(row: &Curated<F>) -> Vec<u8> {
    let mut out = Vec::with_capacity(128);
    push_fields(&mut out, row.id(), row.fields(), &References::default());
    out.push(b'}');
    out
}

/// `id` and the fields, without the closing brace.
fn push_fields<F: Fields>(out: &mut Vec<u8>, id: Id, fields: &F, references: &References) {
    let table = F::table();
    push_display(out, format_args!("{{\"id\":{id}"));
    for (field, value) in table.fields.iter().zip(fields.values()) {
        out.extend_from_slice(field.json_before.as_bytes());
        value.write_json(out, references);
    }
    out.extend_from_slice(table.json_after.as_bytes());
}

/// Appends a JSON list.
pub(super) fn push_list<T>(out: &mut Vec<u8>, items: &[T], mut push_item: impl FnMut(&mut Vec<u8>, &T)) {
    out.push(b'[');
    for (index, item) in items.iter().enumerate() {
        if index > 0 {
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

/// Appends what is in JSON's form already, such as numbers and booleans.
pub fn push_display(out: &mut Vec<u8>, value: impl Display) {
    let _ = write!(out, "{value}");
}
