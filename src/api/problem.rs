//! Every error answer, as `application/problem+json` (RFC 9457, and the contract, "Errors").

use std::fmt;

use http::header::{ALLOW, CONNECTION, HeaderName, RETRY_AFTER, WWW_AUTHENTICATE};
use http::{HeaderValue, StatusCode};
use serde::Serialize;

use crate::store::StoreError;

/// What kind of error it is: the last part of a problem's `type`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "each has its page under /docs/errors")]
pub enum Code {
    InvalidRequest,
    InvalidParameter,
    UnknownParameter,
    InvalidCursor,
    InvalidSyncToken,
    MissingApiKey,
    InvalidApiKey,
    RevokedApiKey,
    ExpiredApiKey,
    DatasetNotLicensed,
    IpNotAllowed,
    RecordNotFound,
    NotFound,
    MethodNotAllowed,
    ResyncRequired,
    RateLimited,
    InternalError,
    Unavailable,
}

impl Code {
    /// Every code.
    pub const ALL: [Code; 18] = [
        Code::InvalidRequest,
        Code::InvalidParameter,
        Code::UnknownParameter,
        Code::InvalidCursor,
        Code::InvalidSyncToken,
        Code::MissingApiKey,
        Code::InvalidApiKey,
        Code::RevokedApiKey,
        Code::ExpiredApiKey,
        Code::DatasetNotLicensed,
        Code::IpNotAllowed,
        Code::RecordNotFound,
        Code::NotFound,
        Code::MethodNotAllowed,
        Code::ResyncRequired,
        Code::RateLimited,
        Code::InternalError,
        Code::Unavailable,
    ];

    /// The code as text.
    pub const fn as_str(self) -> &'static str {
        match self {
            Code::InvalidRequest => "invalid_request",
            Code::InvalidParameter => "invalid_parameter",
            Code::UnknownParameter => "unknown_parameter",
            Code::InvalidCursor => "invalid_cursor",
            Code::InvalidSyncToken => "invalid_sync_token",
            Code::MissingApiKey => "missing_api_key",
            Code::InvalidApiKey => "invalid_api_key",
            Code::RevokedApiKey => "revoked_api_key",
            Code::ExpiredApiKey => "expired_api_key",
            Code::DatasetNotLicensed => "dataset_not_licensed",
            Code::IpNotAllowed => "ip_not_allowed",
            Code::RecordNotFound => "record_not_found",
            Code::NotFound => "not_found",
            Code::MethodNotAllowed => "method_not_allowed",
            Code::ResyncRequired => "resync_required",
            Code::RateLimited => "rate_limited",
            Code::InternalError => "internal_error",
            Code::Unavailable => "unavailable",
        }
    }

    /// The status that goes with it. [`Code::InvalidRequest`] also comes with 414, 431 and 505.
    pub const fn status(self) -> StatusCode {
        match self {
            Code::InvalidRequest
            | Code::InvalidParameter
            | Code::UnknownParameter
            | Code::InvalidCursor
            | Code::InvalidSyncToken => StatusCode::BAD_REQUEST,
            Code::MissingApiKey | Code::InvalidApiKey | Code::RevokedApiKey | Code::ExpiredApiKey => {
                StatusCode::UNAUTHORIZED
            }
            Code::DatasetNotLicensed | Code::IpNotAllowed => StatusCode::FORBIDDEN,
            Code::RecordNotFound | Code::NotFound => StatusCode::NOT_FOUND,
            Code::MethodNotAllowed => StatusCode::METHOD_NOT_ALLOWED,
            Code::ResyncRequired => StatusCode::GONE,
            Code::RateLimited => StatusCode::TOO_MANY_REQUESTS,
            Code::InternalError => StatusCode::INTERNAL_SERVER_ERROR,
            Code::Unavailable => StatusCode::SERVICE_UNAVAILABLE,
        }
    }
}

impl fmt::Display for Code {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// An error answer: what the caller is told. What only the operator is told goes to the log.
#[derive(Clone, Debug)]
pub struct Problem {
    /// The kind of error.
    pub code: Code,
    /// The status.
    pub status: StatusCode,
    /// The cause, and what to send instead.
    pub detail: String,
    /// What went wrong on our side: for the log alone.
    cause: Option<String>,
    pub(super) headers: Vec<(HeaderName, HeaderValue)>,
}

#[derive(Serialize)]
struct Body<'a> {
    r#type: String,
    title: &'a str,
    status: u16,
    detail: &'a str,
    request_id: &'a str,
}

impl Problem {
    /// A problem with the code's own status.
    pub fn new(code: Code, detail: impl Into<String>) -> Problem {
        Problem { code, status: code.status(), detail: detail.into(), cause: None, headers: Vec::new() }
    }

    /// A request that HTTP itself forbids; the connection is closed after it.
    pub fn invalid_request(status: StatusCode, detail: impl Into<String>) -> Problem {
        let mut problem = Problem::new(Code::InvalidRequest, detail).closing();
        problem.status = status;
        problem
    }

    /// 401, with the challenge of the contract: `error` only when a key was sent.
    pub fn unauthorized(code: Code, detail: impl Into<String>) -> Problem {
        let challenge = if code == Code::MissingApiKey {
            "Bearer realm=\"medfeed\""
        } else {
            "Bearer realm=\"medfeed\", error=\"invalid_token\""
        };
        Problem::new(code, detail).with(WWW_AUTHENTICATE, HeaderValue::from_static(challenge))
    }

    /// 429, with the seconds to wait.
    pub fn rate_limited(retry_after_s: u64, detail: impl Into<String>) -> Problem {
        Problem::new(Code::RateLimited, detail).with(RETRY_AFTER, retry_after_s.into())
    }

    /// 405, with the methods that are allowed.
    pub fn method_not_allowed(method: &http::Method) -> Problem {
        Problem::new(
            Code::MethodNotAllowed,
            format!("Method {method} is not supported: every operation is a GET (or HEAD)."),
        )
        .with(ALLOW, HeaderValue::from_static("GET, HEAD"))
    }

    /// A parameter that is missing, or has the wrong form or range.
    pub fn invalid_parameter(name: &str, rule: impl fmt::Display) -> Problem {
        Problem::new(Code::InvalidParameter, format!("Parameter `{name}`: {rule}."))
    }

    /// A failure of ours. The caller is told nothing but that; the cause goes to the log, with the request's id.
    pub fn internal(cause: impl fmt::Display) -> Problem {
        let problem = Problem::new(
            Code::InternalError,
            "The server failed to answer this request. Try again later; if it persists, give the request id to the operator.",
        );
        Problem { cause: Some(cause.to_string()), ..problem }
    }

    /// Ends the connection after the answer.
    pub fn closing(self) -> Problem {
        self.with(CONNECTION, HeaderValue::from_static("close"))
    }

    fn with(mut self, name: HeaderName, value: HeaderValue) -> Problem {
        self.headers.push((name, value));
        self
    }

    /// The JSON of the problem.
    pub fn body(&self, docs_url: &str, request_id: &str) -> Vec<u8> {
        let body = Body {
            r#type: format!("{docs_url}/errors/{}", self.code),
            title: self.status.canonical_reason().unwrap_or("Error"),
            status: self.status.as_u16(),
            detail: &self.detail,
            request_id,
        };
        // A struct of texts always becomes JSON.
        serde_json::to_vec(&body).unwrap_or_default()
    }

    /// Tells the operator what went wrong on our side.
    pub(super) fn log(&self, request_id: &str) {
        if let Some(cause) = &self.cause {
            tracing::error!(request_id, error = cause, "a request could not be answered");
        }
    }
}

/// A failure of the store is told to the operator alone.
impl From<StoreError> for Problem {
    fn from(error: StoreError) -> Problem {
        Problem::internal(error)
    }
}
