//! Rows as JSON objects, in the one shape that lists, single lookups, the feed and exports share.

use super::curated::{Curated, Fields};
use super::id::Id;
use super::time::Timestamp;
use super::value::LinkTexts;
pub use super::value::json::{push_display, push_str};

/// A record as a JSON object, its links resolved.
pub fn render_record<F: Fields>(row: &Curated<F>, updated_at: Timestamp, links: &dyn LinkTexts) -> Vec<u8> {
    let mut out = Vec::with_capacity(1024);
    push_fields(&mut out, row.id(), row.fields(), links);
    push_display(&mut out, format_args!(",\"updated_at\":\"{updated_at}\"}}"));
    out
}

/// An organization or tag as a JSON object, as it stands within records.
pub fn render_reference<F: Fields>(row: &Curated<F>) -> Vec<u8> {
    let mut out = Vec::with_capacity(128);
    push_fields(&mut out, row.id(), row.fields(), &());
    out.push(b'}');
    out
}

/// `id` and the fields, without the closing brace.
fn push_fields<F: Fields>(out: &mut Vec<u8>, id: Id, fields: &F, links: &dyn LinkTexts) {
    let table = F::table();
    push_display(out, format_args!("{{\"id\":{id}"));
    for (field, value) in table.fields.iter().zip(fields.values()) {
        out.extend_from_slice(field.json_before.as_bytes());
        value.write_json(out, links);
    }
    out.extend_from_slice(table.json_after.as_bytes());
}
