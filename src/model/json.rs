//! Rows as JSON objects. Lists, single records, the feed and exports use the same form.

use super::curated::{Curated, Fields};
use super::dataset::Id;
use super::time::{Timestamp, parse_time};
use super::value::LinkTexts;
pub use super::value::json::{push_display, push_json};

/// The text before the time at the end of a record's JSON.
const UPDATED_AT: &str = ",\"updated_at\":\"";
/// The length of that time in bytes: `2026-03-15T09:30:00Z`.
const TIME_LENGTH: usize = 20;

/// Renders a record as a JSON object, with its links resolved.
pub fn render_record<F: Fields>(
    row: &Curated<F>,
    updated_at: Timestamp,
    links: &dyn LinkTexts,
) -> Vec<u8> {
    let mut out = Vec::with_capacity(1024);
    push_fields(&mut out, row.id(), row.fields(), links);
    push_display(&mut out, format_args!("{UPDATED_AT}{updated_at}\"}}"));
    out
}

/// Parses a text of [`render_record`]: the record with its links as ids, and the time of its last change. Missing
/// fields become null. The error says what is wrong with the text.
pub fn read_record<F: Fields>(id: Id, text: &[u8]) -> Result<(Curated<F>, Timestamp), String> {
    let text = str::from_utf8(text).map_err(|error| error.to_string())?;
    let fields = serde_json::from_str(text).map_err(|error| error.to_string())?;
    // Quotes within values are escaped. So the last match of this key is the record's own.
    let time_at = text.len().saturating_sub(TIME_LENGTH + "\"}".len());
    let (before, time) = text.split_at_checked(time_at).unwrap_or_default();
    let time = time
        .strip_suffix("\"}")
        .filter(|_| before.ends_with(UPDATED_AT));
    let time = time.ok_or("it has no `updated_at`")?;
    let updated_at = parse_time(time).map_err(|error| format!("updated_at: {error}"))?;
    Ok((Curated::stored(id, fields), updated_at))
}

/// Whether `text` is [`render_record`] of this record at any time. Rendering is cheaper than parsing.
pub fn is_rendered<F: Fields>(text: &[u8], row: &Curated<F>, links: &dyn LinkTexts) -> bool {
    let mut rendered = Vec::with_capacity(text.len());
    push_fields(&mut rendered, row.id(), row.fields(), links);
    text.strip_prefix(rendered.as_slice())
        .is_some_and(|rest| rest.starts_with(UPDATED_AT.as_bytes()))
}

/// Renders an organization or tag as the JSON object within records.
pub fn render_reference<F: Fields>(row: &Curated<F>) -> Vec<u8> {
    let mut out = Vec::with_capacity(128);
    push_fields(&mut out, row.id(), row.fields(), &());
    out.push(b'}');
    out
}

/// Appends `id` and the fields, without the closing brace.
fn push_fields<F: Fields>(out: &mut Vec<u8>, id: Id, fields: &F, links: &dyn LinkTexts) {
    let table = F::table();
    push_display(out, format_args!("{{\"id\":{id}"));
    for (field, value) in table.fields.iter().zip(fields.values()) {
        out.extend_from_slice(field.json_before.as_bytes());
        value.write_json(out, links);
    }
    out.extend_from_slice(table.json_after.as_bytes());
}
