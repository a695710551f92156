//! The contract as an OpenAPI 3.1 document.
//!
//! Records come from the model's field tables. Endpoints, parameters and errors come from [`crate::contract`]. The
//! endpoints and their parameters are here. `responses` has their responses, and `schemas` the bodies.

mod responses;
mod schemas;

use serde_json::{Value, json};

use self::responses::{FILE_HEADERS, file, names, not_modified, ok, problem, response_name};
use self::schemas::{component, object};
use crate::contract::parameters::TIME_EXAMPLES;
use crate::contract::{Contract, Endpoint, Parameter, ParameterForm, Resource, WhenAbsent};
use crate::docs::samples::Samples;

const DESCRIPTION: &str = "\
Read-only access to curated medical conference and journal records: paged lists, single records, full exports, a \
change feed for keeping a local copy current, and reference lists.

- The license behind a key decides what the key can read. Records outside the license behave as if they did not exist.
- Dates are `YYYY-MM-DD`, timestamps UTC (`YYYY-MM-DDThh:mm:ssZ`), empty values `null`.
- Every path also answers `HEAD`, at the same cost as `GET`.
- Unknown query parameters are refused, and so is a parameter that is empty or given twice.
- Fields may be added to responses within v1: ignore fields that you do not know.
";

/// Returns the document of a server with the address `public_url`.
pub fn document(contract: &Contract, public_url: &str) -> Value {
    json!({
        "openapi": "3.1.0",
        "info": {
            "title": "Medical Conference and Journal Data API",
            "version": "v1",
            "summary": "Licensed, read-only feed of medical conference and journal records",
            "description": DESCRIPTION,
            "license": {"name": "MIT OR Apache-2.0", "identifier": env!("CARGO_PKG_LICENSE")},
        },
        "externalDocs": {"description": "Guide and reference", "url": format!("{public_url}/docs")},
        "servers": [{"url": format!("{public_url}/v1")}],
        "security": [{"bearer": []}, {"apiKey": []}],
        "tags": [
            {"name": "Conferences", "description": "Conference editions with their dates and deadlines"},
            {"name": "Journals", "description": "Journals with their metrics, terms and timelines"},
            {"name": "Exports", "description": "A whole dataset as one file"},
            {"name": "Reference lists", "description": "The values that visible records carry"},
            {"name": "Status", "description": "The state of the service"},
        ],
        "paths": paths(contract),
        "components": {
            "securitySchemes": {
                "bearer": {
                    "type": "http",
                    "scheme": "bearer",
                    "description": "The API key as `Authorization: Bearer <API_KEY>`",
                },
                "apiKey": {
                    "type": "apiKey",
                    "in": "header",
                    "name": "X-API-Key",
                    "description": "The same key, for tools that cannot set `Authorization`",
                },
            },
            "parameters": parameters(contract),
            "headers": responses::headers(),
            "responses": responses::all(contract),
            "examples": responses::examples(contract, public_url),
            "schemas": schemas::all(),
        },
    })
}

#[cfg(test)]
mod tests;

fn paths(contract: &Contract) -> Value {
    let samples = Samples::new();
    object(contract.endpoints.iter().map(|endpoint| {
        (
            endpoint.path(),
            path_item(contract, endpoint, samples.as_ref()),
        )
    }))
}

fn path_item(contract: &Contract, endpoint: &Endpoint, samples: Option<&Samples>) -> Value {
    let tag = match endpoint.resource {
        Resource::List(dataset) | Resource::Record(dataset) | Resource::Changes(dataset) => {
            names(dataset).0
        }
        Resource::Export => "Exports",
        Resource::TherapyAreas | Resource::Tags | Resource::Organizations => "Reference lists",
        Resource::Status | Resource::Docs | Resource::Explorer => "Status",
    };
    let parameters: Vec<Value> = endpoint
        .all_parameters()
        .map(|parameter| component("parameters", parameter.component))
        .collect();
    let mut item = json!({
        "get": {
            "operationId": endpoint.operation,
            "tags": [tag],
            "summary": endpoint.summary,
            "description": endpoint.description,
            "parameters": parameters,
            "responses": responses(contract, endpoint, samples),
        },
    });
    if !endpoint.resource.needs_key() {
        // An empty list overrides the document's default: no key.
        item["get"]["security"] = json!([]);
    }
    item
}

fn responses(contract: &Contract, endpoint: &Endpoint, samples: Option<&Samples>) -> Value {
    object(contract.statuses_of(endpoint).into_iter().map(|status| {
        let response = match status.as_u16() {
            200 => ok(endpoint.resource, samples),
            206 => file(true, samples),
            304 if endpoint.resource == Resource::Export => not_modified(&FILE_HEADERS),
            // The status whose codes differ between endpoints.
            400 => problem(status, contract.codes_of(endpoint)),
            _ => component("responses", &response_name(status)),
        };
        (status.as_str().to_owned(), response)
    }))
}

/// The pattern of an ISO 8601 date or date-time that the service accepts.
const TIME_PATTERN: &str = "^[0-9]{4}-[0-9]{2}-[0-9]{2}([Tt][0-9]{2}:[0-9]{2}(:[0-9]{2}([.,][0-9]+)?)?([Zz]|[+-][0-9]{2}(:?[0-9]{2})?)?)?$";

fn parameters(contract: &Contract) -> Value {
    let declared = contract
        .endpoints
        .iter()
        .flat_map(|endpoint| endpoint.all_parameters());
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
        ParameterForm::Whole(min, max) => {
            json!({"type": "integer", "minimum": min, "maximum": max})
        }
        ParameterForm::Number => json!({"type": "number", "minimum": 0}),
        ParameterForm::Text => json!({"type": "string", "minLength": 1}),
        ParameterForm::Cursor => component("schemas", "Cursor"),
        ParameterForm::SyncToken => component("schemas", "SyncToken"),
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
