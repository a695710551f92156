//! The contract as an OpenAPI 3.1 document.
//!
//! The fixed part is `document.json`. Schemas of records, organizations and tags come from the model's field tables.
//! Endpoints, parameters and errors come from [`crate::contract`].

use http::StatusCode;
use serde_json::{Value, json};
use strum::{EnumMessage, VariantNames};

use crate::contract::codes::{ALLOWED_METHODS, Code, INVALID_TOKEN_CHALLENGE};
use crate::contract::{CodeInfo, Contract, Endpoint, Parameter, Resource, WhenAbsent};
use crate::docs::fields::{FieldDoc, form_schema, record_fields, reference_fields};
use crate::docs::samples::{SAMPLES, problem_example};
use crate::model::{
    ConferenceFields, Dataset, DateStatus, Fields, Id, Joined, JournalFields, OrganizationFields,
    TagFields,
};

/// Returns the document of a server with the address `public_url`.
pub fn document(contract: &Contract, public_url: &str) -> Value {
    // A test reads the file.
    let mut document: Value =
        serde_json::from_str(include_str!("document.json")).unwrap_or_default();
    document["externalDocs"]["url"] = format!("{public_url}/docs").into();
    document["servers"][0]["url"] = format!("{public_url}/v1").into();
    document["paths"] = paths(contract);
    let components = &mut document["components"];
    components["parameters"] = parameters(contract);
    components["responses"] = all_responses(contract);
    components["examples"] = examples(contract, public_url);
    let headers = &mut components["headers"];
    headers["Allow"]["schema"]["const"] = ALLOWED_METHODS.into();
    headers["WWW-Authenticate"]["schema"]["examples"] = json!([INVALID_TOKEN_CHALLENGE]);
    for (name, schema) in row_schemas() {
        components["schemas"][name] = schema;
    }
    document
}

#[cfg(test)]
mod tests;

fn paths(contract: &Contract) -> Value {
    let endpoints = contract.endpoints.iter();
    object(endpoints.map(|endpoint| (endpoint.path(), path_item(contract, endpoint))))
}

fn path_item(contract: &Contract, endpoint: &Endpoint) -> Value {
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
            "responses": responses(contract, endpoint),
        },
    });
    if !endpoint.resource.needs_key() {
        // An empty list overrides the document's default: no key.
        item["get"]["security"] = json!([]);
    }
    item
}

fn responses(contract: &Contract, endpoint: &Endpoint) -> Value {
    object(contract.statuses_of(endpoint).into_iter().map(|status| {
        let response = match status.as_u16() {
            200 => ok(endpoint.resource),
            206 => file(true),
            304 if endpoint.resource == Resource::Export => not_modified(&FILE_HEADERS),
            // The status whose codes differ between endpoints.
            400 => problem(status, contract.codes_of(endpoint)),
            _ => component("responses", &response_name(status)),
        };
        (status.as_str().to_owned(), response)
    }))
}

fn parameters(contract: &Contract) -> Value {
    let declared = contract
        .endpoints
        .iter()
        .flat_map(|endpoint| endpoint.all_parameters());
    object(declared.map(|parameter| (parameter.component, described(parameter))))
}

fn described(parameter: &Parameter) -> Value {
    let mut schema = form_schema(parameter.form);
    if let WhenAbsent::Default(text) = parameter.absent {
        schema["default"] = parameter.read(text).unwrap_or_default();
    }
    let mut described = json!({"name": parameter.name, "in": parameter.location, "description": parameter.note, "schema": schema});
    if parameter.absent == WhenAbsent::Required {
        described["required"] = Value::Bool(true);
    }
    described
}

/// The headers of every response. Their component names are their own names.
const EVERY: [&str; 4] = [
    "X-Request-Id",
    "RateLimit-Limit",
    "RateLimit-Remaining",
    "RateLimit-Reset",
];

/// The headers that identify a file, also where its bytes are not sent.
const FILE_HEADERS: [&str; 5] = [
    "ETag",
    "X-Sync-Token",
    "X-Record-Count",
    "Repr-Digest",
    "X-Records-Digest",
];

/// Returns the document's responses, except 200 and 400, which differ between endpoints.
fn all_responses(contract: &Contract) -> Value {
    let invalid = |description: &str| {
        let codes = [Code::InvalidRequest.info()].into_iter();
        let mut response = problem(StatusCode::BAD_REQUEST, codes);
        response["description"] = json!(description);
        response["headers"] = object([("X-Request-Id", component("headers", "X-Request-Id"))]);
        response
    };
    let mut beyond = invalid("The range lies beyond the end of the file");
    beyond["headers"] = header_refs(&[&FILE_HEADERS[..], &["Content-Range"]].concat());
    let statuses = contract
        .codes
        .iter()
        .map(|info| info.status)
        .filter(|status| *status != StatusCode::BAD_REQUEST);
    let problems = statuses.map(|status| {
        (
            response_name(status),
            problem(status, contract.codes.iter()),
        )
    });
    let others = [
        (StatusCode::NOT_MODIFIED, not_modified(&["ETag"])),
        (StatusCode::RANGE_NOT_SATISFIABLE, beyond),
        (
            StatusCode::URI_TOO_LONG,
            invalid("Path and query have more than 4,096 bytes; the connection is closed"),
        ),
        (
            StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE,
            invalid("There are more than 64 headers or 16 KiB of them; the connection is closed"),
        ),
    ];
    object(
        others
            .map(|(status, response)| (response_name(status), response))
            .into_iter()
            .chain(problems),
    )
}

/// Returns the response 304.
fn not_modified(headers: &[&str]) -> Value {
    json!({
        "description": "Nothing changed since the answer with the ETag that was sent; no body",
        "headers": header_refs(headers),
    })
}

/// Returns the component name of a status's response.
fn response_name(status: StatusCode) -> String {
    status
        .canonical_reason()
        .unwrap_or("Error")
        .replace(' ', "")
}

fn examples(contract: &Contract, public_url: &str) -> Value {
    object(contract.codes.iter().map(|info| {
        (
            info.name,
            json!({"summary": info.title, "value": problem_example(contract, info, public_url)}),
        )
    }))
}

/// Returns a dataset's names in tags and in schemas.
fn names(dataset: Dataset) -> (&'static str, &'static str) {
    match dataset {
        Dataset::Conferences => ("Conferences", "Conference"),
        Dataset::Journals => ("Journals", "Journal"),
    }
}

fn ok(resource: Resource) -> Value {
    let (description, schema) = match resource {
        Resource::List(dataset) => ("A page of records", format!("{}Page", names(dataset).1)),
        Resource::Record(dataset) => ("The record", format!("{}Single", names(dataset).1)),
        Resource::Changes(dataset) => ("A page of changes", format!("{}Changes", names(dataset).1)),
        Resource::TherapyAreas => ("All therapy areas", "TherapyAreaList".to_owned()),
        Resource::Tags => ("All tags", "TagList".to_owned()),
        Resource::Organizations => ("All organizations", "OrganizationList".to_owned()),
        Resource::Status | Resource::Docs | Resource::Explorer => {
            ("The service is up", "Status".to_owned())
        }
        Resource::Export => return file(false),
    };
    let more_headers: &[&str] = if resource.is_revalidatable() {
        &["ETag"]
    } else {
        &[]
    };
    let mut content = json!({"schema": component("schemas", &schema)});
    if let Some(answer) = SAMPLES.answer(resource) {
        content["example"] = serde_json::from_slice(&answer).unwrap_or_default();
    }
    json!({
        "description": description,
        "headers": header_refs(more_headers),
        "content": {"application/json": content},
    })
}

/// Returns the response with a file, or with a part of it (status 206).
fn file(is_part: bool) -> Value {
    let description = if is_part {
        "The part that was requested with `Range`"
    } else {
        "The whole file"
    };
    let examples = Dataset::ALL.map(|dataset| {
        let csv = SAMPLES.csv(dataset).unwrap_or_default();
        (
            dataset.as_str(),
            json!({"summary": names(dataset).0, "value": csv}),
        )
    });
    let of_body = ["Accept-Ranges", "Content-Disposition"];
    let headers: Vec<&str> = FILE_HEADERS
        .into_iter()
        .chain(of_body)
        .chain(is_part.then_some("Content-Range"))
        .collect();
    json!({
        "description": description,
        "headers": header_refs(&headers),
        "content": {
            // The keyword of OpenAPI 3.1 is `contentMediaType`; client generators need `format`.
            "application/gzip": {
                "schema": {"type": "string", "format": "binary", "contentMediaType": "application/gzip"},
            },
            "text/csv": {"schema": {"type": "string"}, "examples": object(examples)},
        },
    })
}

/// Returns the response of a status, with those of `codes` that have it.
fn problem(status: StatusCode, codes: impl Iterator<Item = &'static CodeInfo>) -> Value {
    let codes: Vec<&CodeInfo> = codes.filter(|info| info.status == status).collect();
    let descriptions = codes
        .iter()
        .map(|info| format!("`{}`: {}", info.name, info.title))
        .joined("; ");
    let more_headers: &[&str] = match status {
        StatusCode::UNAUTHORIZED => &["WWW-Authenticate"],
        StatusCode::METHOD_NOT_ALLOWED => &["Allow"],
        StatusCode::TOO_MANY_REQUESTS => &["Retry-After"],
        _ => &[],
    };
    let mut response = json!({
        "description": descriptions,
        "headers": header_refs(more_headers),
        "content": {
            "application/problem+json": {
                "schema": component("schemas", "Problem"),
                "examples": object(codes.iter().map(|info| (info.name, component("examples", info.name)))),
            },
        },
    });
    if status == StatusCode::SERVICE_UNAVAILABLE {
        // Sent where another try may help.
        response["headers"]["Retry-After"] = json!({"description": "Seconds to wait before the next request", "schema": {"type": "integer", "minimum": 0}});
    }
    response
}

fn header_refs(more: &[&str]) -> Value {
    object(
        EVERY
            .iter()
            .chain(more)
            .map(|name| (*name, component("headers", name))),
    )
}

/// The schemas that follow from the model.
fn row_schemas() -> [(&'static str, Value); 6] {
    [
        ("Id", id()),
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
    ]
}

fn id() -> Value {
    json!({"type": "integer", "format": "int64", "minimum": Id::MIN.get(), "maximum": Id::MAX.get()})
}

fn date_status() -> Value {
    json!({
        "type": "string",
        "enum": DateStatus::VARIANTS,
        "description": format!("The confidence of a date:\n\n{}", DateStatus::ALL.map(|status| {
        format!(
            "- `{status}`: {}",
            status.get_documentation().unwrap_or_default()
        )
    }).join("\n")),
    })
}

/// The schema of a row: `id`, the table's fields, and further fields of records. A dot in a field's name ends the key of
/// an object.
fn row<F: Fields>(description: &str, fields: &[FieldDoc]) -> Value {
    let mut row = object_of(description);
    for field in fields {
        let mut object = &mut row;
        for (at, _) in field.name.match_indices('.') {
            let path = &field.name[..at];
            object = member(object, path, || object_of(&F::table().objects[path]));
        }
        member(object, field.name, || field_schema(field));
    }
    row
}

/// Returns the schema at a path in an object's schema. Adds it if it is missing.
fn member<'s>(object: &'s mut Value, path: &str, new: impl FnOnce() -> Value) -> &'s mut Value {
    let key = path.rsplit('.').next().unwrap_or(path);
    if object["properties"].get(key).is_none() {
        object["properties"][key] = new();
        object["required"]
            .as_array_mut()
            .into_iter()
            .for_each(|required| required.push(key.into()));
    }
    &mut object["properties"][key]
}

/// The schema of an object without members.
fn object_of(description: &str) -> Value {
    json!({"type": "object", "required": [], "description": description, "properties": {}})
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

fn object<K: Into<String>>(members: impl IntoIterator<Item = (K, Value)>) -> Value {
    Value::Object(
        members
            .into_iter()
            .map(|(key, value)| (key.into(), value))
            .collect(),
    )
}

fn component(section: &str, name: &str) -> Value {
    json!({"$ref": format!("#/components/{section}/{name}")})
}
