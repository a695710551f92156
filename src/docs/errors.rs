//! The error codes: the one table behind the error pages, the reference page and the OpenAPI document.

use serde::Serialize;

/// What a caller should know about an error code. Texts are Markdown with backticks as the only markup.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ErrorDoc {
    /// The last member of the problem's `type`.
    pub code: &'static str,
    /// The HTTP status it comes with.
    pub status: u16,
    /// The condition in a few words, as a heading.
    pub title_of_condition: &'static str,
    /// When the service answers so.
    pub condition: &'static str,
    /// What the caller does about it.
    pub what_to_do: &'static str,
    /// A `detail` as the service may word it.
    pub example_detail: &'static str,
}

/// Every error code, by status.
pub static ERRORS: &[ErrorDoc] = &[
    ErrorDoc {
        code: "invalid_parameter",
        status: 400,
        title_of_condition: "A parameter is missing or has a wrong value",
        condition: "A required parameter is missing, a parameter is given twice or empty, its value has the wrong form \
                    or lies outside its range, or two parameters exclude each other (`since` and `updated_since`).",
        what_to_do: "Read `detail`: it names the parameter and says what to send instead. Percent-encode values; the \
                     `+` of a time offset is written `%2B`. Sending the same request again gives the same answer.",
        example_detail: "`year` is `1066`: send a whole number from 1900 to 2100.",
    },
    ErrorDoc {
        code: "unknown_parameter",
        status: 400,
        title_of_condition: "The endpoint does not take this parameter",
        condition: "The query has a parameter that the endpoint does not know. It is refused rather than ignored, so \
                    that a misspelt filter never looks like a filter that works.",
        what_to_do: "Correct or remove the parameter. `detail` lists all parameters that the endpoint takes, and the \
                     one that was probably meant.",
        example_detail: "`contry` is not a parameter of this endpoint; did you mean `country`? It takes: `limit`, \
                         `cursor`, `updated_since`, `q`, `year`, `start_date_from`, `start_date_to`, `country`, \
                         `therapy_area`.",
    },
    ErrorDoc {
        code: "invalid_cursor",
        status: 400,
        title_of_condition: "The cursor cannot be used here",
        condition: "`cursor` is not a value that the service issued, or it was issued to another license, for the \
                    other dataset or for other filters.",
        what_to_do: "Send `next_cursor` of the previous page unchanged, with the same filters; only `limit` may \
                     change. Otherwise leave `cursor` out and start at the first page.",
        example_detail: "`cursor` was not issued for this list and these filters: send the `next_cursor` of its \
                         previous page, or none to start at the first page.",
    },
    ErrorDoc {
        code: "invalid_sync_token",
        status: 400,
        title_of_condition: "The sync token cannot be read",
        condition: "`since` is not a sync token of the service, or it is a token of the other dataset.",
        what_to_do: "Send the `next_sync_token` of the last page that you applied, or the `X-Sync-Token` of the export \
                     that you loaded, unchanged. If neither is left, load the export of the dataset again.",
        example_detail: "`since` is not a sync token of this dataset: send a `next_sync_token` of this feed, or the \
                         `X-Sync-Token` of an export.",
    },
    ErrorDoc {
        code: "invalid_request",
        status: 400,
        title_of_condition: "The request is not one that the service can read",
        condition: "The request is malformed or too large, has no valid `Host` header, or a `GET` or `HEAD` came with a \
                    body. Over HTTP/2 the status is 505.",
        what_to_do: "Send a plain `GET` over HTTP/1.1 without a body. Check what client or proxy builds the request, and that the \
                     address and the headers are not oversized.",
        example_detail: "The request has a body: send a GET without one.",
    },
    ErrorDoc {
        code: "missing_api_key",
        status: 401,
        title_of_condition: "No API key was sent",
        condition: "The endpoint needs a key and the request has none. `Authorization` with another scheme than \
                    `Bearer` counts as no key.",
        what_to_do: "Send `Authorization: Bearer <API_KEY>` or `X-API-Key: <API_KEY>`. If you do, check that no proxy \
                     or redirect drops the header.",
        example_detail: "No API key was sent: send the header `Authorization: Bearer <API_KEY>`, or `X-API-Key: \
                         <API_KEY>`.",
    },
    ErrorDoc {
        code: "invalid_api_key",
        status: 401,
        title_of_condition: "The API key is not recognised",
        condition: "The key that was sent is not a key of this service, or the request carries two different keys.",
        what_to_do: "Check that the whole key arrived: it starts with `mfk_` and has 42 characters, without quotes or \
                     blanks. Check that it belongs to this server. If it is lost, ask the operator for another one.",
        example_detail: "The API key is not recognised: check that it is complete, or ask the operator for a new one.",
    },
    ErrorDoc {
        code: "revoked_api_key",
        status: 401,
        title_of_condition: "The API key was revoked or replaced",
        condition: "The key was valid once; the operator has revoked it or replaced it by another one.",
        what_to_do: "Use the new key, or ask the operator for one. A replaced key costs nothing else: sync tokens, \
                     cursors and ETags belong to the license and stay valid.",
        example_detail: "This API key has been revoked or replaced: use the new one, or ask the operator for one.",
    },
    ErrorDoc {
        code: "expired_api_key",
        status: 401,
        title_of_condition: "The API key has expired",
        condition: "The key was issued for a limited time, and that time is over.",
        what_to_do: "Ask the operator for a new key. A new key of the same license goes on with your sync tokens.",
        example_detail: "This API key expired at 2026-03-31T00:00:00Z: ask the operator for a new one.",
    },
    ErrorDoc {
        code: "dataset_not_licensed",
        status: 403,
        title_of_condition: "The dataset is not in the license",
        condition: "The key is valid, but its license does not contain the dataset that was asked for.",
        what_to_do: "Ask for the other dataset, or ask the operator to add this one to the license.",
        example_detail: "The license of this key does not contain the dataset `journals`.",
    },
    ErrorDoc {
        code: "ip_not_allowed",
        status: 403,
        title_of_condition: "The key may not be used from this address",
        condition: "The key has a list of allowed IP addresses, and the request came from another one.",
        what_to_do: "Send the request from an allowed address (mind proxies and changed exit addresses), or ask the \
                     operator to change the list.",
        example_detail: "This API key may not be used from 203.0.113.7.",
    },
    ErrorDoc {
        code: "record_not_found",
        status: 404,
        title_of_condition: "No record with this id",
        condition: "No record with the id is in the license. A record that never existed, one that was removed and \
                    one outside the license are told apart by nothing.",
        what_to_do: "If you hold a copy of the record, remove it. The change feed tells of removals as tombstones, so \
                     that a copy kept by it needs no such look-ups.",
        example_detail: "No conference with the id 4711 is in your license.",
    },
    ErrorDoc {
        code: "not_found",
        status: 404,
        title_of_condition: "No such endpoint",
        condition: "The path names no endpoint. Paths are compared exactly: a slash at the end, a doubled slash or an \
                    id that is not a whole number leads here.",
        what_to_do: "Compare the path with the list of endpoints on the reference page; every path starts with `/v1`.",
        example_detail: "There is no endpoint `/v1/conferences/`.",
    },
    ErrorDoc {
        code: "method_not_allowed",
        status: 405,
        title_of_condition: "The method is not GET or HEAD",
        condition: "The endpoint exists, but the service is read-only: it answers `GET` and `HEAD`. The header \
                    `Allow` says so.",
        what_to_do: "Send a `GET`, with the parameters in the query.",
        example_detail: "POST is not possible here: the service is read-only, send a GET.",
    },
    ErrorDoc {
        code: "resync_required",
        status: 410,
        title_of_condition: "The local copy must be loaded again",
        condition: "The scope of the license changed after the sync token was issued, the token belongs to another \
                    license, or the service went back to an earlier state of its data. Changes since the token can no \
                    longer be told without a gap.",
        what_to_do: "Load the export of the dataset, replace the local copy by it, and continue the change feed from \
                     the export's `X-Sync-Token`. Let your client do this by itself. Tokens do not grow too old: this \
                     answer never comes from waiting too long.",
        example_detail: "The license changed after this sync token was issued: load `/v1/exports/conferences` and \
                         continue from its `X-Sync-Token`.",
    },
    ErrorDoc {
        code: "rate_limited",
        status: 429,
        title_of_condition: "Too many requests",
        condition: "The key has used up its requests of the current minute; or too many exports were being built at \
                    once; or too many requests with unusable keys came from the address.",
        what_to_do: "Wait as many seconds as `Retry-After` says, then continue. To need fewer requests, ask for larger \
                     pages, load an export instead of all pages, and follow the change feed instead of listing.",
        example_detail: "The limit of 600 requests per minute is reached: wait 23 seconds.",
    },
    ErrorDoc {
        code: "internal_error",
        status: 500,
        title_of_condition: "The service failed",
        condition: "Something went wrong within the service. The request is not to blame, and nothing was changed.",
        what_to_do: "Try again, with growing pauses. If it persists, report the `request_id` to the operator: it finds \
                     the cause in the server's log.",
        example_detail: "The service failed to answer this request; the operator can find out why by the request id.",
    },
    ErrorDoc {
        code: "unavailable",
        status: 503,
        title_of_condition: "The service cannot answer at present",
        condition: "The service is up but has no data to answer from, or is about to stop.",
        what_to_do: "Try again in a minute, with growing pauses. Sync tokens stay valid meanwhile.",
        example_detail: "The service is unavailable at present: try again in a minute.",
    },
];

/// A problem body made up for the documentation, its members in the contract's order.
#[derive(Clone, Debug, Serialize)]
pub struct ExampleProblem {
    #[serde(rename = "type")]
    kind: String,
    title: &'static str,
    status: u16,
    detail: &'static str,
    request_id: &'static str,
}

/// The entry of a code.
pub fn find(code: &str) -> Option<&'static ErrorDoc> {
    ERRORS.iter().find(|error| error.code == code)
}

impl ErrorDoc {
    /// The problem's `title`: the reason phrase of the status.
    pub fn reason(&self) -> &'static str {
        http::StatusCode::from_u16(self.status).ok().and_then(|status| status.canonical_reason()).unwrap_or_default()
    }

    /// The address of the code's page on this server, which is the problem's `type` unless the operator set another.
    pub fn url(&self, public_url: &str) -> String {
        format!("{public_url}/docs/errors/{}", self.code)
    }

    /// A problem body with this code.
    pub fn example(&self, public_url: &str) -> ExampleProblem {
        ExampleProblem {
            kind: self.url(public_url),
            title: self.reason(),
            status: self.status,
            detail: self.example_detail,
            request_id: "0198c2f4-5b1e-7c3a-9d42-6f0a1b2c3d4e",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_are_those_of_the_contract() {
        let codes: Vec<(&str, u16)> = ERRORS.iter().map(|error| (error.code, error.status)).collect();
        let expected = [
            ("invalid_parameter", 400),
            ("unknown_parameter", 400),
            ("invalid_cursor", 400),
            ("invalid_sync_token", 400),
            ("invalid_request", 400),
            ("missing_api_key", 401),
            ("invalid_api_key", 401),
            ("revoked_api_key", 401),
            ("expired_api_key", 401),
            ("dataset_not_licensed", 403),
            ("ip_not_allowed", 403),
            ("record_not_found", 404),
            ("not_found", 404),
            ("method_not_allowed", 405),
            ("resync_required", 410),
            ("rate_limited", 429),
            ("internal_error", 500),
            ("unavailable", 503),
        ];
        assert_eq!(codes, expected);
    }

    #[test]
    fn texts_are_whole() {
        for error in ERRORS {
            assert!(!error.reason().is_empty(), "{}", error.code);
            for text in [error.condition, error.what_to_do, error.example_detail] {
                assert!(text.ends_with('.'), "{}: {text}", error.code);
                assert!(!text.contains("  "), "{}: {text}", error.code);
                assert_eq!(text.matches('`').count() % 2, 0, "{}: {text}", error.code);
            }
        }
    }
}
