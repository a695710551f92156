//! The responses of all endpoints and their headers.

use serde_json::{Value, json};

use super::{component, object};
use crate::docs::errors::{ERRORS, ErrorDoc};

/// Headers of every response: the names among the document's headers are the headers' own.
const EVERY: [&str; 4] = ["X-Request-Id", "RateLimit-Limit", "RateLimit-Remaining", "RateLimit-Reset"];

/// The document's headers.
pub fn headers() -> Value {
    object([
        ("X-Request-Id", header("Identifies the request; the server's own, never the caller's", string())),
        ("RateLimit-Limit", header("Requests allowed per minute", count())),
        ("RateLimit-Remaining", header("Requests left in the current minute", count())),
        ("RateLimit-Reset", header("Seconds until the minute resets", count())),
        ("ETag", header("Changes exactly when the content does; send it back in `If-None-Match`", string())),
        ("X-Sync-Token", header("The change-feed position of the file: continue with it as `since`", string())),
        ("X-Record-Count", header("Number of records in the file", count())),
        ("Content-Disposition", header("A name for the file, with the dataset and the date", string())),
        ("Retry-After", header("Seconds to wait before the next request", count())),
        (
            "WWW-Authenticate",
            header(
                "The scheme to use; with `error=\"invalid_token\"` when a key was sent but is unusable",
                json!({"type": "string", "examples": ["Bearer realm=\"medfeed\", error=\"invalid_token\""]}),
            ),
        ),
        ("Allow", header("The methods that the endpoint answers", json!({"type": "string", "const": "GET, HEAD"}))),
    ])
}

/// The document's responses: all but status 200 and status 400, which differ between endpoints.
pub fn all() -> Value {
    object([
        (
            "NotModified",
            json!({
                "description": "Nothing changed since the answer with the ETag that was sent; no body",
                "headers": header_refs(&["ETag"]),
            }),
        ),
        ("Unauthorized", problem_with(&of_status(401), &["WWW-Authenticate"])),
        ("Forbidden", problem(&of_status(403))),
        ("NotFound", problem(&of_status(404))),
        ("MethodNotAllowed", problem_with(&of_status(405), &["Allow"])),
        ("ResyncRequired", problem(&of_status(410))),
        ("RateLimited", problem_with(&of_status(429), &["Retry-After"])),
        ("InternalError", problem(&of_status(500))),
        ("Unavailable", problem(&of_status(503))),
    ])
}

/// An example body for every error code.
pub fn examples(public_url: &str) -> Value {
    object(
        ERRORS.iter().map(|error| {
            (error.code, json!({"summary": error.title_of_condition, "value": error.example(public_url)}))
        }),
    )
}

/// Status 200 with a JSON body.
pub fn ok(description: &str, schema: &str, more_headers: &[&str]) -> Value {
    json!({
        "description": description,
        "headers": header_refs(more_headers),
        "content": {"application/json": {"schema": component("schemas", schema)}},
    })
}

/// Status 200 of an export.
pub fn ok_file() -> Value {
    json!({
        "description": "The file, whole or not at all",
        "headers": header_refs(&["X-Sync-Token", "X-Record-Count", "Content-Disposition"]),
        "content": {
            // An empty schema is how OpenAPI 3.1 describes bytes.
            "application/gzip": {"schema": {}},
            "text/csv": {"schema": {"type": "string"}},
        },
    })
}

/// The errors of status 400 that an endpoint can answer with: its own, and that of every endpoint.
pub fn bad_request(codes: &[&str]) -> Vec<&'static ErrorDoc> {
    ERRORS.iter().filter(|error| codes.contains(&error.code) || error.code == "invalid_request").collect()
}

/// A problem with one of these codes.
pub fn problem(errors: &[&ErrorDoc]) -> Value {
    problem_with(errors, &[])
}

fn problem_with(errors: &[&ErrorDoc], more_headers: &[&str]) -> Value {
    let codes: Vec<String> =
        errors.iter().map(|error| format!("`{}`: {}", error.code, error.title_of_condition)).collect();
    json!({
        "description": codes.join("; "),
        "headers": header_refs(more_headers),
        "content": {
            "application/problem+json": {
                "schema": component("schemas", "Problem"),
                "examples": object(errors.iter().map(|error| (error.code, component("examples", error.code)))),
            },
        },
    })
}

fn of_status(status: u16) -> Vec<&'static ErrorDoc> {
    ERRORS.iter().filter(|error| error.status == status).collect()
}

fn header_refs(more: &[&str]) -> Value {
    object(EVERY.iter().chain(more).map(|name| (*name, component("headers", name))))
}

fn header(description: &str, schema: Value) -> Value {
    json!({"description": description, "required": true, "schema": schema})
}

fn string() -> Value {
    json!({"type": "string"})
}

fn count() -> Value {
    json!({"type": "integer", "minimum": 0})
}
