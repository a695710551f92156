//! The parameters of all endpoints, by their names among the document's components.

use serde_json::{Value, json};

use super::values::{component, object};
use crate::contract::parameters::TIME_EXAMPLES;
use crate::contract::{Absent, Contract, Form, Parameter};

/// An ISO 8601 date or date-time, as the service reads it.
pub const TIME_PATTERN: &str =
    "^[0-9]{4}-[0-9]{2}-[0-9]{2}([Tt][0-9]{2}:[0-9]{2}(:[0-9]{2}([.,][0-9]+)?)?([Zz]|[+-][0-9]{2}(:?[0-9]{2})?)?)?$";

/// The document's parameters.
pub fn all(contract: &Contract) -> Value {
    let declared = contract.endpoints.iter().flat_map(|endpoint| endpoint.all_parameters());
    object(declared.map(|parameter| (parameter.component, described(parameter))))
}

fn described(parameter: &Parameter) -> Value {
    let mut schema = schema(parameter.form);
    if let Absent::Default(text) = parameter.absent {
        schema["default"] = parameter.read(text).unwrap_or_default();
    }
    let mut described = json!({"name": parameter.name, "in": parameter.location.to_string(), "description": parameter.note, "schema": schema});
    if parameter.absent == Absent::Required {
        described["required"] = Value::Bool(true);
    }
    described
}

fn schema(form: Form) -> Value {
    match form {
        Form::Id => component("schemas", "Id"),
        Form::Whole(min, max) => json!({"type": "integer", "minimum": min, "maximum": max}),
        Form::Number => json!({"type": "number", "minimum": 0}),
        Form::Text => json!({"type": "string", "minLength": 1}),
        Form::Cursor => component("schemas", "Cursor"),
        Form::SyncToken => component("schemas", "SyncToken"),
        Form::Length(min, max) => json!({"type": "string", "minLength": min, "maxLength": max}),
        Form::Date => json!({"type": "string", "format": "date"}),
        Form::Time => json!({"type": "string", "pattern": TIME_PATTERN, "examples": TIME_EXAMPLES}),
        Form::Choice(values) => json!({"type": "string", "enum": values}),
        Form::ETags => json!({"type": "string"}),
    }
}
