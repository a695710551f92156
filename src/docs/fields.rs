//! The documentation of fields, from the model's tables.

use serde_json::{Value, json};

use crate::contract::ParameterForm;
use crate::contract::parameters::TIME_EXAMPLES;
use crate::model::{DateStatus, Fields, JsonType, ReferenceKind, ValueKind};

/// The documentation of a field.
pub struct FieldDoc {
    /// The path of JSON keys joined by dots.
    pub name: &'static str,
    /// The type in words, without "or null".
    pub type_name: &'static str,
    /// The JSON Schema of the values, without null.
    pub schema: Value,
    /// Whether the field can be null. Lists never are.
    pub nullable: bool,
    /// The meaning, in Markdown. Backticks are the only markup.
    pub note: &'static str,
}

/// Returns the fields of a record: `id`, the table's fields, `updated_at`.
pub fn record_fields<F: Fields>() -> Vec<FieldDoc> {
    let mut fields = reference_fields::<F>();
    fields.push(FieldDoc {
        name: "updated_at",
        type_name: "timestamp",
        schema: reference("Timestamp"),
        nullable: false,
        note: "When the record, or one of its organizations or tags, last changed. It does not change when a record \
               enters a license, so a cursor over it misses such records: follow the change feed instead",
    });
    fields
}

/// Returns the fields of an organization or tag: `id`, the table's fields.
pub fn reference_fields<F: Fields>() -> Vec<FieldDoc> {
    let empty = F::default();
    // A row without values breaks exactly the rules that require a value.
    let required: Vec<&str> = empty
        .faults()
        .into_iter()
        .map(|fault| fault.field)
        .collect();
    let note = match F::STEM {
        "conferences" | "journals" => "Key of the record; lists are ordered by it",
        _ => "Key of the row",
    };
    let id = reference("Id");
    let mut fields = vec![FieldDoc {
        name: "id",
        type_name: "integer",
        schema: id,
        nullable: false,
        note,
    }];
    fields.extend(F::table().fields.iter().map(|field| FieldDoc {
        name: &field.name,
        type_name: type_name(field.kind),
        schema: schema(field.kind),
        nullable: field.kind.json_type() != JsonType::List && !required.contains(&&*field.name),
        note: &field.note,
    }));
    fields
}

/// Returns the name of a kind.
fn type_name(kind: ValueKind) -> &'static str {
    match kind {
        ValueKind::Text | ValueKind::Choice(_) => "string",
        ValueKind::DateStatus(_) => "string, a date confidence",
        ValueKind::Texts => "list of strings",
        ValueKind::Integer | ValueKind::Year => "integer",
        ValueKind::Number => "number",
        ValueKind::Date => "date",
        ValueKind::Flag => "boolean",
        ValueKind::Links(ReferenceKind::Organization) => "list of organizations",
        ValueKind::Links(ReferenceKind::Tag) => "list of tags",
    }
}

/// The pattern of an ISO 8601 date or date-time that the service accepts.
pub(super) const TIME_PATTERN: &str = "^[0-9]{4}-[0-9]{2}-[0-9]{2}([Tt][0-9]{2}:[0-9]{2}(:[0-9]{2}([.,][0-9]+)?)?([Zz]|[+-][0-9]{2}(:?[0-9]{2})?)?)?$";

/// Returns the JSON Schema of a parameter's form.
pub fn form_schema(form: ParameterForm) -> Value {
    match form {
        ParameterForm::Id => reference("Id"),
        ParameterForm::Whole(min, max) => {
            json!({"type": "integer", "minimum": min, "maximum": max})
        }
        ParameterForm::Number => json!({"type": "number", "minimum": 0}),
        ParameterForm::Text => json!({"type": "string", "minLength": 1}),
        ParameterForm::Cursor => reference("Cursor"),
        ParameterForm::SyncToken => reference("SyncToken"),
        ParameterForm::Length(min, max) => {
            json!({"type": "string", "minLength": min, "maxLength": max})
        }
        ParameterForm::Date => json!({"type": "string", "format": "date"}),
        ParameterForm::Time => {
            json!({"type": "string", "pattern": TIME_PATTERN, "examples": TIME_EXAMPLES})
        }
        ParameterForm::Choice(values) => json!({"type": "string", "enum": values}),
        ParameterForm::ETags => json!({"type": "string"}),
    }
}

/// Returns a reference to a schema of the OpenAPI document.
fn reference(schema: &str) -> Value {
    json!({"$ref": format!("#/components/schemas/{schema}")})
}

/// Returns the JSON Schema of a kind, without null.
fn schema(kind: ValueKind) -> Value {
    let list = |items: Value| json!({"type": "array", "items": items, "uniqueItems": true});
    match kind {
        ValueKind::DateStatus(_) => reference("DateStatus"),
        ValueKind::Texts => list(schema(ValueKind::Text)),
        ValueKind::Flag => json!({"type": "boolean"}),
        ValueKind::Links(ReferenceKind::Organization) => list(reference("Organization")),
        ValueKind::Links(ReferenceKind::Tag) => list(reference("Tag")),
        _ => form_schema(ParameterForm::of(kind)),
    }
}

/// Says whether a date is given under a date confidence.
pub fn status_date(status: DateStatus) -> &'static str {
    match (status.fault_with(true), status.fault_with(false)) {
        (None, Some(_)) => "always given",
        (Some(_), None) => "always null",
        _ => "given or null",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{ConferenceFields, JournalFields, OrganizationFields, TagFields};

    #[test]
    fn every_field_and_every_object_has_a_note() {
        fn check<F: Fields>() {
            let table = F::table();
            let mut notes = table.fields.iter().map(|field| &field.note);
            let has_notes = notes.all(|note| !note.is_empty());
            let mut objects = table.objects.values();
            assert!(
                has_notes && objects.all(|note| !note.is_empty()),
                "{}",
                F::STEM
            );
        }
        check::<ConferenceFields>();
        check::<JournalFields>();
        check::<OrganizationFields>();
        check::<TagFields>();
    }

    #[test]
    fn only_required_fields_and_lists_are_never_null() {
        fn never_null<F: Fields>() -> Vec<&'static str> {
            record_fields::<F>()
                .iter()
                .filter(|field| !field.nullable)
                .map(|field| field.name)
                .collect()
        }
        assert_eq!(
            never_null::<ConferenceFields>(),
            words![
                "id" "name" "start_date_status" "abstract_due_date_status" "late_breaking_due_date_status"
                "therapy_areas" "organizations" "tags" "updated_at"
            ]
        );
        let expected = ["id", "name", "organizations", "tags", "updated_at"];
        assert_eq!(never_null::<JournalFields>(), expected);
    }

    #[test]
    fn the_docs_state_for_each_status_whether_its_date_is_given() {
        let dates = DateStatus::ALL.map(status_date);
        assert_eq!(
            dates,
            words!["always given" "always given" "always given" "always null" "given or null"]
        );
    }
}
