//! The parameters of all endpoints, by their names among the document's components.

use serde_json::{Value, json};

use super::{component, object};
use crate::model::Dataset;

/// An ISO 8601 date or date-time, as the service reads it.
pub const TIME_PATTERN: &str =
    "^[0-9]{4}-[0-9]{2}-[0-9]{2}([Tt][0-9]{2}:[0-9]{2}(:[0-9]{2}([.,][0-9]+)?)?([Zz]|[+-][0-9]{2}(:?[0-9]{2})?)?)?$";

/// The document's parameters.
pub fn all() -> Value {
    object([
        ("Limit", query("limit", "Records per page", whole(1, 500, Some(100)))),
        ("ChangesLimit", query("limit", "Entries per page", whole(1, 1000, Some(500)))),
        (
            "Cursor",
            query(
                "cursor",
                "The `next_cursor` of the previous page, opaque. It holds for the same filters; `limit` may change",
                text(),
            ),
        ),
        (
            "UpdatedSince",
            query(
                "updated_since",
                "Only records that were added, changed or entered the license at this date or time or later; UTC when \
                 no offset is given. Removals are told by the change feed only. Overlap by two minutes, since a \
                 change carries the time at which its writing began",
                time(),
            ),
        ),
        (
            "ChangesUpdatedSince",
            query(
                "updated_since",
                "Start from this date or time instead of a token; removals since then are included. UTC when no \
                 offset is given. Not together with `since`",
                time(),
            ),
        ),
        (
            "Since",
            query(
                "since",
                "Sync token from a previous `next_sync_token`, or from the `X-Sync-Token` header of an export",
                text(),
            ),
        ),
        (
            "Q",
            query(
                "q",
                "Text found anywhere in the name or the abbreviation, ignoring case and diacritics",
                json!({"type": "string", "minLength": 2, "maxLength": 100}),
            ),
        ),
        ("Year", query("year", "Edition year", whole(1900, 2100, None))),
        ("StartDateFrom", query("start_date_from", "Meetings starting on or after this date", date())),
        ("StartDateTo", query("start_date_to", "Meetings starting on or before this date", date())),
        ("Country", query("country", "Host country, matched exactly as stored", text())),
        ("TherapyArea", query("therapy_area", "One therapy area name, matched exactly", text())),
        (
            "Format",
            query("format", "The format of the file", {
                json!({"type": "string", "enum": ["jsonl", "csv"], "default": "jsonl"})
            }),
        ),
        ("TagType", query("type", "Only tags of this type", text())),
        ("QueryDataset", required(query("dataset", "The dataset whose records count", datasets()))),
        ("Dataset", path("dataset", "The dataset", datasets())),
        ("Id", path("id", "The record's id", component("schemas", "Id"))),
        (
            "IfNoneMatch",
            json!({
                "name": "If-None-Match",
                "in": "header",
                "description": "ETags of earlier answers, or `*`; 304 without a body when one is still current",
                "schema": {"type": "string"},
            }),
        ),
    ])
}

fn query(name: &str, description: &str, schema: Value) -> Value {
    json!({"name": name, "in": "query", "description": description, "schema": schema})
}

fn path(name: &str, description: &str, schema: Value) -> Value {
    required(json!({"name": name, "in": "path", "description": description, "schema": schema}))
}

fn required(mut parameter: Value) -> Value {
    parameter["required"] = Value::Bool(true);
    parameter
}

fn whole(from: u32, to: u32, default: Option<u32>) -> Value {
    let mut schema = json!({"type": "integer", "minimum": from, "maximum": to});
    if let Some(default) = default {
        schema["default"] = default.into();
    }
    schema
}

fn text() -> Value {
    json!({"type": "string", "minLength": 1})
}

fn date() -> Value {
    json!({"type": "string", "format": "date"})
}

fn time() -> Value {
    json!({
        "type": "string",
        "pattern": TIME_PATTERN,
        "examples": ["2026-03-15", "2026-03-15T09:30:00Z", "2026-03-15T09:30:00+02:00"],
    })
}

fn datasets() -> Value {
    json!({"type": "string", "enum": Dataset::ALL.map(Dataset::as_str)})
}
