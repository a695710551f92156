//! The schemas of bodies. Those of records, organizations and tags come from the model's field tables.

use serde_json::{Map, Value, json};
use strum::{EnumMessage, VariantNames};

use crate::docs::fields::{FieldDoc, record_fields, reference_fields};
use crate::model::field::{JsonNode, NodeContent};
use crate::model::{
    ConferenceFields, Dataset, DateStatus, Fields, Id, JournalFields, OrganizationFields, TagFields,
};

pub fn all() -> Value {
    let mut schemas = vec![
        ("Id", id()),
        ("Cursor", opaque("The end of a list page")),
        ("SyncToken", opaque("A position in a change feed")),
        ("Timestamp", timestamp()),
        ("DateStatus", date_status()),
        (
            "Organization",
            row::<OrganizationFields>("An organization", &reference_fields::<OrganizationFields>()),
        ),
        (
            "Tag",
            row::<TagFields>("A tag", &reference_fields::<TagFields>()),
        ),
        (
            "Conference",
            row::<ConferenceFields>("A conference edition", &record_fields::<ConferenceFields>()),
        ),
        (
            "Journal",
            row::<JournalFields>("A journal", &record_fields::<JournalFields>()),
        ),
        ("Tombstone", tombstone()),
        (
            "OrganizationItem",
            item(
                "Organization",
                "Number of visible records linked to the organization",
            ),
        ),
        (
            "TagItem",
            item("Tag", "Number of visible records that carry the tag"),
        ),
        ("TherapyAreaItem", therapy_area_item()),
        ("Status", status()),
        ("Problem", problem()),
    ];
    for (page, single, changes, record) in [
        (
            "ConferencePage",
            "ConferenceSingle",
            "ConferenceChanges",
            "Conference",
        ),
        ("JournalPage", "JournalSingle", "JournalChanges", "Journal"),
    ] {
        schemas.push((page, page_of(record)));
        schemas.push((
            single,
            whole_object(json!({"data": component("schemas", record)})),
        ));
        schemas.push((changes, changes_of(record)));
    }
    for (list, item) in [
        ("TherapyAreaList", "TherapyAreaItem"),
        ("TagList", "TagItem"),
        ("OrganizationList", "OrganizationItem"),
    ] {
        schemas.push((
            list,
            whole_object(json!({"data": {"type": "array", "items": component("schemas", item)}})),
        ));
    }
    object(schemas)
}

fn id() -> Value {
    json!({"type": "integer", "format": "int64", "minimum": Id::MIN.get(), "maximum": Id::MAX.get()})
}

/// A sealed value that callers send back unchanged. Its characters need no escaping in a URL (RFC 3986, section 2.3).
/// Its length is not promised.
fn opaque(description: &str) -> Value {
    json!({
        "type": "string",
        "pattern": "^[A-Za-z0-9._~-]+$",
        "description": format!("{description}. Opaque: send it back unchanged"),
    })
}

fn timestamp() -> Value {
    json!({
        "type": "string",
        "format": "date-time",
        "pattern": "^[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}Z$",
        "description": "UTC, whole seconds",
    })
}

fn date_status() -> Value {
    let meaning = |status: DateStatus| {
        format!(
            "- `{status}`: {}",
            status.get_documentation().unwrap_or_default()
        )
    };
    json!({
        "type": "string",
        "enum": DateStatus::VARIANTS,
        "description": format!("The confidence of a date:\n\n{}", DateStatus::ALL.map(meaning).join("\n")),
    })
}

/// The schema of a row: `id`, the table's fields, and further fields of records.
fn row<F: Fields>(description: &str, fields: &[FieldDoc]) -> Value {
    let plain = |field: &FieldDoc| (field.name, field_schema(field));
    let (id, others) = fields.split_at(1);
    let (own, more) = others.split_at(F::table().fields.len());
    let of_table = nested(&F::table().nodes, own);
    object_of(
        description,
        id.iter()
            .map(plain)
            .chain(of_table)
            .chain(more.iter().map(plain))
            .collect(),
    )
}

fn nested(nodes: &[JsonNode], fields: &[FieldDoc]) -> Vec<(&'static str, Value)> {
    let schema = |node: &JsonNode| match &node.content {
        NodeContent::Field(field) => field_schema(&fields[*field]),
        NodeContent::Object(inner) => object_of(&node.note, nested(inner, fields)),
    };
    nodes.iter().map(|node| (node.key, schema(node))).collect()
}

fn object_of(description: &str, members: Vec<(&str, Value)>) -> Value {
    let required: Vec<&str> = members.iter().map(|(name, _)| *name).collect();
    json!({"type": "object", "required": required, "description": description, "properties": object(members)})
}

fn field_schema(field: &FieldDoc) -> Value {
    let mut schema = field.schema.clone();
    if field.nullable {
        make_nullable(&mut schema);
    }
    schema["description"] = field.note.into();
    schema
}

fn make_nullable(schema: &mut Value) {
    // An enumeration lists all allowed values. So null becomes an alternative.
    if schema.get("$ref").is_some() || schema.get("enum").is_some() {
        *schema = json!({"anyOf": [schema.take(), {"type": "null"}]});
        return;
    }
    let base = schema["type"].take();
    schema["type"] = json!([base, "null"]);
}

/// An object with required properties. Others may be added within v1.
fn whole_object(properties: Value) -> Value {
    let required: Vec<&String> = properties
        .as_object()
        .into_iter()
        .flat_map(Map::keys)
        .collect();
    json!({"type": "object", "required": required, "properties": properties})
}

fn page_of(record: &str) -> Value {
    whole_object(json!({
        "data": {"type": "array", "items": component("schemas", record), "description": "Records of the page"},
        "has_more": {"type": "boolean", "description": "True when another page exists"},
        "next_cursor": {
            "anyOf": [component("schemas", "Cursor"), {"type": "null"}],
            "description": "Opaque value to pass as `cursor` to get the next page; null on the last one",
        },
    }))
}

fn changes_of(record: &str) -> Value {
    whole_object(json!({
        "data": {
            "type": "array",
            "items": {"oneOf": [component("schemas", record), component("schemas", "Tombstone")]},
            "description": "Full current records and tombstones, oldest change first",
        },
        "has_more": {
            "type": "boolean",
            "description": "True when the caller should call again at once with `next_sync_token`",
        },
        "next_sync_token": {
            "allOf": [component("schemas", "SyncToken")],
            "description": "Opaque position to save after applying the page, and to send as `since` next time",
        },
    }))
}

fn tombstone() -> Value {
    let mut schema = whole_object(json!({
        "id": component("schemas", "Id"),
        "deleted": {"type": "boolean", "const": true},
        "changed_at": component("schemas", "Timestamp"),
    }));
    schema["description"] =
        "A record that was removed or left the license. Ignore it if you never had the record"
            .into();
    schema
}

/// The schema of an item in a reference list: the row, and the number of records that link to it.
fn item(row: &str, records_note: &str) -> Value {
    json!({
        "allOf": [
            component("schemas", row),
            whole_object(json!({"records": {"type": "integer", "minimum": 1, "description": records_note}})),
        ],
    })
}

fn therapy_area_item() -> Value {
    whole_object(json!({
        "name": {"type": "string"},
        "conferences": {
            "type": "integer",
            "minimum": 1,
            "description": "Number of visible conferences with the area",
        },
    }))
}

fn status() -> Value {
    let dataset = whole_object(json!({
        "records": {"type": "integer", "minimum": 0, "description": "Records in the dataset"},
        "last_change_at": {
            "anyOf": [component("schemas", "Timestamp"), {"type": "null"}],
            "description": "When the dataset's content last changed",
        },
    }));
    let datasets = object(Dataset::ALL.map(|name| (name.as_str(), dataset.clone())));
    whole_object(json!({
        "status": {"type": "string", "description": "`ok` when the API is up"},
        "api_version": {"type": "string", "const": "v1"},
        "time": component("schemas", "Timestamp"),
        "datasets": whole_object(datasets),
    }))
}

fn problem() -> Value {
    whole_object(json!({
        "type": {"type": "string", "format": "uri", "description": "Ends in the error code; leads to its page"},
        "title": {"type": "string", "description": "The HTTP reason phrase"},
        "status": {"type": "integer", "minimum": 400, "maximum": 599, "description": "The HTTP status"},
        "detail": {"type": "string", "description": "The cause, and what to send instead; for people"},
        "request_id": {"type": "string", "description": "The same value as in the `X-Request-Id` header"},
    }))
}

pub fn object<K: Into<String>>(members: impl IntoIterator<Item = (K, Value)>) -> Value {
    Value::Object(
        members
            .into_iter()
            .map(|(key, value)| (key.into(), value))
            .collect(),
    )
}

pub fn component(section: &str, name: &str) -> Value {
    json!({"$ref": format!("#/components/{section}/{name}")})
}
