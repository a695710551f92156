//! The contract as an OpenAPI 3.1 document.
//!
//! Records come from the model's field tables. Endpoints, parameters and errors come from [`crate::contract`]. In
//! reading order:
//! - `paths`: the endpoints.
//! - `parameters`, `responses`: the parts of endpoints.
//! - `schemas`: the bodies. `values`: helpers for JSON values.

mod parameters;
mod paths;
mod responses;
mod schemas;
mod values;

use serde_json::{Value, json};

use crate::contract::Contract;

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
        "paths": paths::all(contract),
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
            "parameters": parameters::all(contract),
            "headers": responses::headers(),
            "responses": responses::all(contract),
            "examples": responses::examples(contract, public_url),
            "schemas": schemas::all(),
        },
    })
}

#[cfg(test)]
mod tests;
