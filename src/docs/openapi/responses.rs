//! The responses of all endpoints and their headers.

use http::StatusCode;
use serde_json::{Value, json};

use super::schemas::{component, object};
use crate::contract::codes::{ALLOWED_METHODS, Code, INVALID_TOKEN_CHALLENGE};
use crate::contract::{CodeInfo, Contract, Resource};
use crate::docs::samples::{Samples, problem_example};
use crate::model::{Dataset, Joined};

/// The headers of every response. Their component names are their own names.
const EVERY: [&str; 4] = [
    "X-Request-Id",
    "RateLimit-Limit",
    "RateLimit-Remaining",
    "RateLimit-Reset",
];

const SECONDS_TO_WAIT: &str = "Seconds to wait before the next request";

/// The headers that identify a file, also where its bytes are not sent.
pub const FILE_HEADERS: [&str; 5] = [
    "ETag",
    "X-Sync-Token",
    "X-Record-Count",
    "Repr-Digest",
    "X-Records-Digest",
];

pub fn headers() -> Value {
    object([
        (
            "X-Request-Id",
            header(
                "Identifies the request; always chosen by the server",
                string(),
            ),
        ),
        (
            "RateLimit-Limit",
            header("Requests allowed per minute", count()),
        ),
        (
            "RateLimit-Remaining",
            header("Requests left in the current minute", count()),
        ),
        (
            "RateLimit-Reset",
            header("Seconds until the minute resets", count()),
        ),
        (
            "ETag",
            header(
                "Changes exactly when the content does; send it back in `If-None-Match`",
                string(),
            ),
        ),
        (
            "X-Sync-Token",
            header(
                "The change-feed position of the file: continue with it as `since`",
                component("schemas", "SyncToken"),
            ),
        ),
        (
            "X-Record-Count",
            header("Number of records in the file", count()),
        ),
        (
            "Repr-Digest",
            digest("SHA-256 of the whole file as it is sent, also with a part of it (RFC 9530)"),
        ),
        (
            "X-Records-Digest",
            digest(
                "SHA-256 of the decompressed content: the JSON lines, or the CSV. It verifies a copy that stores each \
                 record's JSON unchanged: hash the records in the order of ids, each followed by a line feed",
            ),
        ),
        (
            "Content-Disposition",
            header(
                "A name for the file, with the dataset and the date",
                string(),
            ),
        ),
        (
            "Accept-Ranges",
            header(
                "Parts of the file can be requested",
                json!({"type": "string", "const": "bytes"}),
            ),
        ),
        (
            "Content-Range",
            header(
                "The range of these bytes, and the size of the file",
                string(),
            ),
        ),
        ("Retry-After", header(SECONDS_TO_WAIT, count())),
        (
            "WWW-Authenticate",
            header(
                "The scheme to use; with `error=\"invalid_token\"` when a key was sent but is unusable",
                json!({"type": "string", "examples": [INVALID_TOKEN_CHALLENGE]}),
            ),
        ),
        (
            "Allow",
            header(
                "The methods that the endpoint answers",
                json!({"type": "string", "const": ALLOWED_METHODS}),
            ),
        ),
    ])
}

/// Returns the document's responses, except 200 and 400, which differ between endpoints.
pub fn all(contract: &Contract) -> Value {
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
pub fn not_modified(headers: &[&str]) -> Value {
    json!({
        "description": "Nothing changed since the answer with the ETag that was sent; no body",
        "headers": header_refs(headers),
    })
}

/// Returns the component name of a status's response.
pub fn response_name(status: StatusCode) -> String {
    status
        .canonical_reason()
        .unwrap_or("Error")
        .replace(' ', "")
}

pub fn examples(contract: &Contract, public_url: &str) -> Value {
    object(contract.codes.iter().map(|info| {
        (
            info.name,
            json!({"summary": info.title, "value": problem_example(contract, info, public_url)}),
        )
    }))
}

/// Returns a dataset's names in tags and in schemas.
pub fn names(dataset: Dataset) -> (&'static str, &'static str) {
    match dataset {
        Dataset::Conferences => ("Conferences", "Conference"),
        Dataset::Journals => ("Journals", "Journal"),
    }
}

pub fn ok(resource: Resource, samples: Option<&Samples>) -> Value {
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
        Resource::Export => return file(false, samples),
    };
    let more_headers: &[&str] = if resource.is_revalidatable() {
        &["ETag"]
    } else {
        &[]
    };
    let mut content = json!({"schema": component("schemas", &schema)});
    if let Some(answer) = samples.and_then(|samples| samples.answer(resource)) {
        content["example"] = serde_json::from_slice(&answer).unwrap_or_default();
    }
    json!({
        "description": description,
        "headers": header_refs(more_headers),
        "content": {"application/json": content},
    })
}

/// Returns the response with a file, or with a part of it (status 206).
pub fn file(is_part: bool, samples: Option<&Samples>) -> Value {
    let description = if is_part {
        "The part that was requested with `Range`"
    } else {
        "The whole file"
    };
    let examples = Dataset::ALL.map(|dataset| {
        let csv = samples
            .and_then(|samples| samples.csv(dataset))
            .unwrap_or_default();
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
pub fn problem(status: StatusCode, codes: impl Iterator<Item = &'static CodeInfo>) -> Value {
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
        response["headers"]["Retry-After"] =
            json!({"description": SECONDS_TO_WAIT, "schema": count()});
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

fn header(description: &str, schema: Value) -> Value {
    json!({"description": description, "required": true, "schema": schema})
}

/// The header of a SHA-256 digest (RFC 9530, section 2).
fn digest(description: &str) -> Value {
    let value = json!({
        "type": "string",
        "pattern": "^sha-256=:[A-Za-z0-9+/]{43}=:$",
        "examples": ["sha-256=:RBNvo1WzZ4oRRq0W9+hknpT7T8If536DEMBg9hyq/4o=:"],
    });
    header(description, value)
}

fn string() -> Value {
    json!({"type": "string"})
}

fn count() -> Value {
    json!({"type": "integer", "minimum": 0})
}
