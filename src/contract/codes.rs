//! The error codes: the last segment of a problem's `type`.

use std::borrow::Cow;

use http::StatusCode;
use serde::Serialize;

/// The description of an error code. Texts are Markdown; backticks are the only markup.
#[derive(Clone, Copy)]
pub struct CodeInfo {
    /// The code.
    pub code: Code,
    /// The last segment of the problem's `type`.
    pub name: &'static str,
    /// The usual HTTP status. [`Code::InvalidRequest`] is also used with 414, 416, 431 and 505.
    pub status: StatusCode,
    /// The endpoints that return the code.
    pub scope: CodeScope,
    /// The condition in a few words, as a heading.
    pub title: &'static str,
    /// The situations in which the service returns the code.
    pub condition: &'static str,
    /// The advice for the caller.
    pub remedy: &'static str,
    /// A request that can get the code: method and target.
    pub request: &'static str,
    /// The `detail` that this request gets. `{public_url}` is the address of the service. Empty if the query parser
    /// builds the text. A test compares it with a real response.
    pub detail: &'static str,
}

/// The set of endpoints that return a code.
#[derive(Clone, Copy)]
pub enum CodeScope {
    /// All endpoints.
    Every,
    /// Endpoints that need a key.
    Keyed,
    /// Endpoints with parameters.
    WithParameters,
    /// Endpoints that list the code.
    Named,
}

/// The `WWW-Authenticate` header for a request without a key.
pub const CHALLENGE: &str = "Bearer realm=\"medfeed\"";

/// The `WWW-Authenticate` header for a request with an unusable key.
pub const INVALID_TOKEN_CHALLENGE: &str = "Bearer realm=\"medfeed\", error=\"invalid_token\"";

/// The `Allow` header of every endpoint.
pub const ALLOWED_METHODS: &str = "GET, HEAD";

macro_rules! codes {
    ($($code:ident { $($field:ident: $value:expr,)+ })+) => {
        pub use code::Code;

        #[allow(missing_docs, reason = "each has its page under /docs/errors")]
        mod code {
            /// An error code.
            #[derive(Clone, Copy, Debug, PartialEq, Eq, strum::Display, strum::IntoStaticStr)]
            #[strum(serialize_all = "snake_case", const_into_str)]
            pub enum Code { $($code),+ }
        }

        impl Code {
            /// All codes.
            pub const ALL: [Code; [$(Code::$code),+].len()] = [$(Code::$code),+];
        }

        /// The descriptions of all codes, by status.
        pub static CODES: [CodeInfo; Code::ALL.len()] =
            [$(CodeInfo { code: Code::$code, name: Code::$code.into_str(), $($field: $value),+ }),+];
    };
}

impl Code {
    /// Returns the description.
    pub const fn info(self) -> &'static CodeInfo {
        // The table has the order of the variants.
        &CODES[self as usize]
    }

    /// Returns the code as text.
    pub const fn as_str(self) -> &'static str {
        self.into_str()
    }
}

/// The body of an error (RFC 9457). The fields are in the order of the JSON.
#[derive(Serialize)]
pub struct ProblemBody<'a> {
    /// The address of the code's page.
    pub r#type: String,
    /// The reason phrase of the status.
    pub title: &'static str,
    /// The HTTP status.
    pub status: u16,
    /// The cause and the remedy.
    pub detail: Cow<'a, str>,
    /// The value of the header `X-Request-Id`.
    pub request_id: &'a str,
}

impl<'a> ProblemBody<'a> {
    /// Builds the body of an error. `page_url` is the address of the code's page.
    pub fn new(
        status: StatusCode,
        page_url: String,
        detail: impl Into<Cow<'a, str>>,
        request_id: &'a str,
    ) -> ProblemBody<'a> {
        let title = status.canonical_reason().unwrap_or("Error");
        ProblemBody {
            r#type: page_url,
            title,
            status: status.as_u16(),
            detail: detail.into(),
            request_id,
        }
    }
}

codes! {
    InvalidParameter {
        status: StatusCode::BAD_REQUEST,
        scope: CodeScope::WithParameters,
        title: "A parameter is missing or has a wrong value",
        condition: "A required parameter is missing, a parameter is given twice or empty, its value has the wrong form \
                    or lies outside its range, or two parameters exclude each other (`since` and `updated_since`).",
        remedy: "Read `detail`: it names the parameter and says what to send instead. Percent-encode values; the `+` \
                 of a time offset is written `%2B`. Sending the same request again gives the same answer.",
        request: "GET /v1/conferences?year=1066",
        detail: "",
    }
    UnknownParameter {
        status: StatusCode::BAD_REQUEST,
        scope: CodeScope::Every,
        title: "The endpoint does not take this parameter",
        condition: "The query has a parameter that the endpoint does not know. Such a parameter is rejected, so that \
                    a misspelt filter is noticed.",
        remedy: "Correct or remove the parameter. `detail` lists all parameters that the endpoint takes, and the one \
                 that was probably meant.",
        request: "GET /v1/conferences?contry=Germany",
        detail: "",
    }
    InvalidCursor {
        status: StatusCode::BAD_REQUEST,
        scope: CodeScope::Named,
        title: "The cursor cannot be used here",
        condition: "`cursor` is not a value that the service issued, or it was issued to another license, for the \
                    other dataset or for other filters.",
        remedy: "Send `next_cursor` of the previous page unchanged, with the same filters; only `limit` may change. \
                 Otherwise leave `cursor` out and start at the first page.",
        request: "GET /v1/conferences?cursor=2",
        detail: "The `cursor` was not issued by this service for this list. Send the `next_cursor` of the previous \
                 page with the same filters, or leave it out to start at the first page.",
    }
    InvalidSyncToken {
        status: StatusCode::BAD_REQUEST,
        scope: CodeScope::Named,
        title: "The sync token cannot be read",
        condition: "`since` is not a sync token of the service, or it is a token of the other dataset.",
        remedy: "Send the `next_sync_token` of the last page that you applied, or the `X-Sync-Token` of the export \
                 that you loaded, unchanged. If neither is left, load the export of the dataset again.",
        request: "GET /v1/conferences/changes?since=yesterday",
        detail: "The `since` value is not a sync token of `/conferences/changes`. Send a `next_sync_token` of this \
                 feed, or the `X-Sync-Token` of `/exports/conferences`.",
    }
    InvalidRequest {
        status: StatusCode::BAD_REQUEST,
        scope: CodeScope::Every,
        title: "The service cannot read the request",
        condition: "The request is malformed or too large, has no valid `Host` header, or a `GET` or `HEAD` came with \
                    a body. The status is 505 over HTTP/2, and 416 for a `Range` beyond the end of an export.",
        remedy: "Send a plain `GET` over HTTP/1.1 without a body. Check what client or proxy builds the request, and \
                 that the address and the headers are not oversized.",
        request: "GET /v1/conferences",
        detail: "A GET or HEAD request must not have a body. Send the parameters in the query.",
    }
    MissingApiKey {
        status: StatusCode::UNAUTHORIZED,
        scope: CodeScope::Keyed,
        title: "No API key was sent",
        condition: "The endpoint needs a key and the request has none. `Authorization` with another scheme than \
                    `Bearer` counts as no key.",
        remedy: "Send `Authorization: Bearer <API_KEY>` or `X-API-Key: <API_KEY>`. If you do, check that no proxy or \
                 redirect drops the header.",
        request: "GET /v1/conferences",
        detail: "No API key was sent. Send it as `Authorization: Bearer <API_KEY>` or `X-API-Key: <API_KEY>`.",
    }
    InvalidApiKey {
        status: StatusCode::UNAUTHORIZED,
        scope: CodeScope::Keyed,
        title: "The API key is not recognised",
        condition: "The key that was sent is not a key of this service, or the request carries two different keys.",
        remedy: "Check that the whole key arrived: it starts with `mfk_` and has 42 characters, without quotes or \
                 blanks. Check that it belongs to this server. If it is lost, ask the operator for another one.",
        request: "GET /v1/conferences",
        detail: "The API key is not recognised. Check that it was copied completely: `mfk_` and 38 characters.",
    }
    RevokedApiKey {
        status: StatusCode::UNAUTHORIZED,
        scope: CodeScope::Keyed,
        title: "The API key was revoked or replaced",
        condition: "The key was valid once; the operator has revoked it or replaced it by another one.",
        remedy: "Use the new key, or ask the operator for one. Sync tokens, cursors and ETags belong to the \
                 license, so they stay valid.",
        request: "GET /v1/conferences",
        detail: "The API key was revoked or replaced. Use the key that replaced it, or ask the operator for a new one.",
    }
    ExpiredApiKey {
        status: StatusCode::UNAUTHORIZED,
        scope: CodeScope::Keyed,
        title: "The API key has expired",
        condition: "The key was issued for a limited time, and that time is over.",
        remedy: "Ask the operator for a new key. Your sync tokens work with a new key of the same license.",
        request: "GET /v1/conferences",
        detail: "The API key has expired. Ask the operator for a new one.",
    }
    DatasetNotLicensed {
        status: StatusCode::FORBIDDEN,
        scope: CodeScope::Keyed,
        title: "The dataset is not in the license",
        condition: "The key is valid, but its license does not contain the requested dataset.",
        remedy: "Ask for the other dataset, or ask the operator to add this one to the license. If you keep a copy of this \
                 dataset, all its records have left your license: request it once more, and then remove them.",
        request: "GET /v1/journals",
        detail: "The license of this API key does not include the dataset `journals`. Ask the operator for a license \
                 that does.",
    }
    IpNotAllowed {
        status: StatusCode::FORBIDDEN,
        scope: CodeScope::Keyed,
        title: "The key may not be used from this address",
        condition: "The key has a list of allowed IP addresses, and the request came from another one.",
        remedy: "Send the request from an allowed address (mind proxies and changed exit addresses), or ask the \
                 operator to change the list.",
        request: "GET /v1/conferences",
        detail: "The API key may not be used from the address 203.0.113.7. Use an address of the key's list, or ask \
                 the operator to add this one.",
    }
    RecordNotFound {
        status: StatusCode::NOT_FOUND,
        scope: CodeScope::Named,
        title: "No record with this id",
        condition: "No record with the id is in the license. The answer is the same for a record that never \
                    existed, was removed, or is outside the license.",
        remedy: "If you have a copy of the record, remove it. The change feed reports removals as tombstones, so a \
                 copy that follows it needs no such requests.",
        request: "GET /v1/conferences/4711",
        detail: "There is no record with this id in the dataset `conferences` of your license.",
    }
    NotFound {
        status: StatusCode::NOT_FOUND,
        scope: CodeScope::Named,
        title: "No such endpoint",
        condition: "The path names no endpoint. Paths are compared exactly: a trailing slash, a double slash or an id \
                    that is not a whole number gives this error.",
        remedy: "Compare the path with the list of endpoints on the reference page; every path starts with `/v1`.",
        request: "GET /v1/conferences/",
        detail: "There is no such endpoint. The endpoints are listed at {public_url}/docs.",
    }
    MethodNotAllowed {
        status: StatusCode::METHOD_NOT_ALLOWED,
        scope: CodeScope::Every,
        title: "The method is not GET or HEAD",
        condition: "The endpoint exists, but the service is read-only. It answers `GET` and `HEAD`, as the header \
                    `Allow` says.",
        remedy: "Send a `GET`, with the parameters in the query.",
        request: "POST /v1/conferences",
        detail: "Method POST is not supported: every operation is a GET (or HEAD).",
    }
    ResyncRequired {
        status: StatusCode::GONE,
        scope: CodeScope::Named,
        title: "The local copy must be loaded again",
        condition: "The scope of the license changed after the sync token was issued, the token belongs to another \
                    license, or the service was restored to an earlier state of its data. The feed can no longer \
                    report all changes since the token.",
        remedy: "Load the export of the dataset, replace the local copy by it, and continue the change feed from the \
                 export's `X-Sync-Token`. Let your client do this automatically. Tokens do not expire with age. With \
                 `resync=diff`, a change of the license does not cause this error: the feed then reports the records \
                 that entered and left.",
        request: "GET /v1/conferences/changes?since=…",
        detail: "The sync token is from before a change of the license, or from a state of the data that no longer \
                 exists. Load the export `/exports/conferences` again and continue from its `X-Sync-Token`.",
    }
    RateLimited {
        status: StatusCode::TOO_MANY_REQUESTS,
        scope: CodeScope::Keyed,
        title: "Too many requests",
        condition: "The key has used up its requests of the current minute; or too many exports were being built at \
                    once; or too many requests with unusable keys came from the address.",
        remedy: "Wait as many seconds as `Retry-After` says, then continue. To need fewer requests, ask for larger \
                 pages, load an export instead of all pages, and follow the change feed instead of listing.",
        request: "GET /v1/conferences",
        detail: "The limit of 600 requests per minute is used up. Wait 23 seconds, then continue.",
    }
    InternalError {
        status: StatusCode::INTERNAL_SERVER_ERROR,
        scope: CodeScope::Every,
        title: "The service failed",
        condition: "The service failed. The request did not cause this, and no data changed.",
        remedy: "Try again, with growing pauses. If it persists, report the `request_id` to the operator. The cause \
                 is in the server's log under this id.",
        request: "GET /v1/conferences",
        detail: "The server failed to answer this request. Try again later; if it persists, give the request id to the \
                 operator.",
    }
    Unavailable {
        status: StatusCode::SERVICE_UNAVAILABLE,
        scope: CodeScope::Every,
        title: "The service cannot answer at present",
        condition: "The service is up, but it has no data, its data are too old, the sync token or the key may be \
                    newer than its data, or it is about to stop.",
        remedy: "Try again after as many seconds as `Retry-After` says, or in a minute without one, with growing \
                 pauses. Sync tokens stay valid.",
        request: "GET /v1/status",
        detail: "The data cannot be read at the moment. Try again in a minute.",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_are_those_of_the_contract() {
        let codes = CODES.map(|info| (info.name, info.status.as_u16()));
        let expected = outcomes![
            "invalid_parameter" "unknown_parameter" "invalid_cursor" "invalid_sync_token"
            "invalid_request" => 400;
            "missing_api_key" "invalid_api_key" "revoked_api_key" "expired_api_key" => 401;
            "dataset_not_licensed" "ip_not_allowed" => 403;
            "record_not_found" "not_found" => 404;
            "method_not_allowed" => 405;
            "resync_required" => 410;
            "rate_limited" => 429;
            "internal_error" => 500;
            "unavailable" => 503;
        ];
        assert_eq!(codes, expected);
        assert_eq!(Code::ALL.map(|code| code.info().code), Code::ALL);
    }

    #[test]
    fn texts_of_codes_are_well_formed() {
        for info in CODES {
            assert!(info.status.canonical_reason().is_some(), "{}", info.name);
            for text in [info.condition, info.remedy] {
                assert!(text.ends_with('.'), "{}: {text}", info.name);
            }
            for text in [info.condition, info.remedy, info.detail] {
                assert!(!text.contains("  "), "{}: {text}", info.name);
                assert_eq!(text.matches('`').count() % 2, 0, "{}: {text}", info.name);
            }
        }
    }
}
