//! Every error answer, as `application/problem+json` (RFC 9457, and the contract, "Errors").

use std::fmt;

use http::header::{ALLOW, CONNECTION, CONTENT_RANGE, HeaderName, RETRY_AFTER, WWW_AUTHENTICATE};
use http::{HeaderValue, StatusCode};

use super::source::TooOld;
pub use crate::contract::Code;
use crate::contract::codes::{ALLOWED_METHODS, CHALLENGE, INVALID_TOKEN_CHALLENGE};
use crate::contract::{BadRequest, ProblemBody};
use crate::store::StoreError;

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

impl Problem {
    /// A problem with the code's own status. A 401 has the challenge of the contract: `error` only when a key was sent.
    pub fn new(code: Code, detail: impl Into<String>) -> Problem {
        let status = code.status();
        let problem = Problem { code, status, detail: detail.into(), cause: None, headers: Vec::new() };
        if status != StatusCode::UNAUTHORIZED {
            return problem;
        }
        let challenge = if code == Code::MissingApiKey { CHALLENGE } else { INVALID_TOKEN_CHALLENGE };
        problem.with(WWW_AUTHENTICATE, HeaderValue::from_static(challenge))
    }

    /// A request that HTTP itself forbids; the connection is closed after it.
    pub fn invalid_request(status: StatusCode, detail: impl Into<String>) -> Problem {
        let mut problem = Problem::new(Code::InvalidRequest, detail).closing();
        problem.status = status;
        problem
    }

    /// 416, with the length of the file that the range lies beyond, in bytes.
    pub fn range_beyond(length: usize) -> Problem {
        let detail = format!(
            "The file has {length} bytes, and the `Range` asks for none of them. Who has them all has the whole file; else \
             send the request without `Range`."
        );
        let mut problem = Problem::new(Code::InvalidRequest, detail);
        problem.status = StatusCode::RANGE_NOT_SATISFIABLE;
        match HeaderValue::try_from(format!("bytes */{length}")) {
            Ok(range) => problem.with(CONTENT_RANGE, range),
            Err(error) => Problem::internal(error),
        }
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
        .with(ALLOW, HeaderValue::from_static(ALLOWED_METHODS))
    }

    /// A parameter that is missing, or has the wrong form or range.
    pub fn invalid_parameter(name: &str, rule: impl fmt::Display) -> Problem {
        BadRequest::parameter(name, rule).into()
    }

    /// A failure of ours. The caller is told nothing but that; the cause goes to the log, with the request's id.
    pub fn internal(cause: impl fmt::Display) -> Problem {
        Problem { cause: Some(cause.to_string()), ..Code::InternalError.into() }
    }

    /// Keys are taken at once, while commits may be held back: the license of one is not there yet.
    pub fn not_set_up() -> Problem {
        Problem::new(Code::Unavailable, "The license of this API key is being set up. Try again in a minute.")
    }

    /// 503, with the seconds to wait.
    pub fn unavailable(retry_after_s: u64, detail: impl Into<String>) -> Problem {
        Problem::new(Code::Unavailable, detail).with(RETRY_AFTER, retry_after_s.into())
    }

    /// The state that is here must not be shown: it may be too old, revoked keys in it too, or is not published yet.
    pub(super) fn too_old(TooOld { retry_after_s, why }: TooOld) -> Problem {
        let plural = if retry_after_s == 1 { "" } else { "s" };
        Problem::unavailable(retry_after_s, format!("{why} Try again in {retry_after_s} second{plural}."))
    }

    /// Another server gave a token of a state that this one does not have yet.
    pub(super) fn ahead() -> Problem {
        Problem::unavailable(
            1,
            "The sync token is of a newer state than this server has at the moment. Send the same request again in a second: the token stays valid.",
        )
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
        let page_url = format!("{docs_url}/errors/{}", self.code);
        let body = ProblemBody::new(self.status, page_url, self.detail.as_str(), request_id);
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

/// A problem whose detail is always that of the code's example.
impl From<Code> for Problem {
    fn from(code: Code) -> Problem {
        Problem::new(code, code.info().detail)
    }
}

/// A failure of the store is told to the operator alone.
impl From<StoreError> for Problem {
    fn from(error: StoreError) -> Problem {
        Problem::internal(error)
    }
}

/// What the endpoint does not take is told to the caller.
impl From<BadRequest> for Problem {
    fn from(BadRequest { code, detail }: BadRequest) -> Problem {
        if code == Code::InternalError { Problem::internal(detail) } else { Problem::new(code, detail) }
    }
}
