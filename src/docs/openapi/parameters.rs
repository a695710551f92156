//! The parameters of all endpoints, by their component names.

use serde_json::{Value, json};

use super::values::{component, object};
use crate::contract::parameters::TIME_EXAMPLES;
use crate::contract::{Contract, Parameter, ParameterForm, WhenAbsent};

/// The pattern of an ISO 8601 date or date-time that the service accepts.
pub const TIME_PATTERN: &str =
    "^[0-9]{4}-[0-9]{2}-[0-9]{2}([Tt][0-9]{2}:[0-9]{2}(:[0-9]{2}([.,][0-9]+)?)?([Zz]|[+-][0-9]{2}(:?[0-9]{2})?)?)?$";

pub fn all(contract: &Contract) -> Value {
    let declared = contract.endpoints.iter().flat_map(|endpoint| endpoint.all_parameters());
    object(declared.map(|parameter| (parameter.component, described(parameter))))
}

fn described(parameter: &Parameter) -> Value {
    let mut schema = schema(parameter.form);
    if let WhenAbsent::Default(text) = parameter.absent {
        schema["default"] = parameter.read(text).unwrap_or_default();
    }
    let mut described = json!({"name": parameter.name, "in": parameter.location.to_string(), "description": parameter.note, "schema": schema});
    if parameter.absent == WhenAbsent::Required {
        described["required"] = Value::Bool(true);
    }
    described
}

fn schema(form: ParameterForm) -> Value {
    match form {
        ParameterForm::Id => component("schemas", "Id"),
        ParameterForm::Whole(min, max) => json!({"type": "integer", "minimum": min, "maximum": max}),
        ParameterForm::Number => json!({"type": "number", "minimum": 0}),
        ParameterForm::Text => json!({"type": "string", "minLength": 1}),
        ParameterForm::Cursor => component("schemas", "Cursor"),
        ParameterForm::SyncToken => component("schemas", "SyncToken"),
        ParameterForm::Length(min, max) => json!({"type": "string", "minLength": min, "maxLength": max}),
        ParameterForm::Date => json!({"type": "string", "format": "date"}),
        ParameterForm::Time => json!({"type": "string", "pattern": TIME_PATTERN, "examples": TIME_EXAMPLES}),
        ParameterForm::Choice(values) => json!({"type": "string", "enum": values}),
        ParameterForm::ETags => json!({"type": "string"}),
    }
}
