//! The endpoints.

use serde_json::{Value, json};

use super::responses::{FILE_HEADERS, file, names, not_modified, ok, problem, response_name};
use super::values::{component, object};
use crate::contract::{Contract, Endpoint, Resource};
use crate::docs::samples::Samples;

pub fn all(contract: &Contract) -> Value {
    let samples = Samples::new();
    object(contract.endpoints.iter().map(|endpoint| (endpoint.path(), path_item(contract, endpoint, samples.as_ref()))))
}

fn path_item(contract: &Contract, endpoint: &Endpoint, samples: Option<&Samples>) -> Value {
    let tag = match endpoint.resource {
        Resource::List(dataset) | Resource::Record(dataset) | Resource::Changes(dataset) => names(dataset).0,
        Resource::Export => "Exports",
        Resource::TherapyAreas | Resource::Tags | Resource::Organizations => "Reference lists",
        Resource::Status | Resource::Docs | Resource::Explorer => "Status",
    };
    let parameters: Vec<Value> =
        endpoint.all_parameters().map(|parameter| component("parameters", parameter.component)).collect();
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
