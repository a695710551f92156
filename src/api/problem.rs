//! Error responses, as `application/problem+json` (RFC 9457, and the contract, "Errors").

use std::fmt;

use http::header::{ALLOW, CONNECTION, CONTENT_RANGE, HeaderName, RETRY_AFTER, WWW_AUTHENTICATE};
use http::{HeaderValue, StatusCode};

use super::source::Unservable;
pub use crate::contract::Code;
use crate::contract::codes::{ALLOWED_METHODS, CHALLENGE, INVALID_TOKEN_CHALLENGE};
use crate::contract::{BadRequest, ProblemBody};
use crate::model::json::push_json;
use crate::store::StoreError;

/// An error response. The caller gets `detail`; only the log gets `cause`.
#[derive(Debug)]
pub struct Problem {
    /// The error code of the contract.
    pub code: Code,
    /// The HTTP status.
    pub status: StatusCode,
    /// A sentence for the caller: the problem, and how to fix it.
    pub detail: String,
    cause: Option<String>,
    pub(crate) headers: Vec<(HeaderName, HeaderValue)>,
}

impl Problem {
    /// A problem with the code's own status. A 401 gets the challenge of the contract: with `error` only if a key was
    /// sent.
    pub fn new(code: Code, detail: impl Into<String>) -> Problem {
        let status = code.info().status;
        let problem = Problem {
            code,
            status,
            detail: detail.into(),
            cause: None,
            headers: Vec::new(),
        };
        if status != StatusCode::UNAUTHORIZED {
            return problem;
        }
        let challenge = if code == Code::MissingApiKey {
            CHALLENGE
        } else {
            INVALID_TOKEN_CHALLENGE
        };
        problem.with(WWW_AUTHENTICATE, HeaderValue::from_static(challenge))
    }

    /// A request that is invalid in HTTP. The connection is closed after the response.
    pub fn invalid_request(status: StatusCode, detail: impl Into<String>) -> Problem {
        let mut problem = Problem::new(Code::InvalidRequest, detail).closing();
        problem.status = status;
        problem
    }

    /// 416, for a range beyond a file's end. `length` is in bytes, `of_file` the headers that identify the file.
    pub fn range_beyond(length: usize, of_file: Vec<(HeaderName, HeaderValue)>) -> Problem {
        let detail = format!(
            "The file has {length} bytes, and the `Range` is beyond its end. If you have {length} bytes of the file with \
             this `ETag`, the download is complete; else send the request without `Range`."
        );
        let mut problem = Problem::new(Code::InvalidRequest, detail);
        problem.status = StatusCode::RANGE_NOT_SATISFIABLE;
        problem.headers = of_file;
        match HeaderValue::try_from(format!("bytes */{length}")) {
            Ok(range) => problem.with(CONTENT_RANGE, range),
            Err(error) => Problem::internal(error),
        }
    }

    /// 429, with the seconds to wait.
    pub fn rate_limited(retry_after_s: u64, detail: impl Into<String>) -> Problem {
        Problem::new(Code::RateLimited, detail).with(RETRY_AFTER, retry_after_s.into())
    }

    /// 405, with the allowed methods.
    pub fn method_not_allowed(method: &http::Method) -> Problem {
        Problem::new(
            Code::MethodNotAllowed,
            format!("Method {method} is not supported: every operation is a GET (or HEAD)."),
        )
        .with(ALLOW, HeaderValue::from_static(ALLOWED_METHODS))
    }

    /// An internal error. The cause goes to the log, with the request id.
    pub fn internal(cause: impl fmt::Display) -> Problem {
        Problem {
            cause: Some(cause.to_string()),
            ..Code::InternalError.into()
        }
    }

    /// 503, for a key whose license is in a commit that is held back. New keys are valid at once.
    pub fn not_set_up() -> Problem {
        Problem::unavailable(
            60,
            "The license of this API key is being set up. Try again in a minute.",
        )
    }

    /// 503, with the seconds to wait.
    pub fn unavailable(retry_after_s: u64, detail: impl Into<String>) -> Problem {
        Problem::new(Code::Unavailable, detail).with(RETRY_AFTER, retry_after_s.into())
    }

    /// 503, because no snapshot may be served now.
    pub(super) fn unservable(
        Unservable {
            retry_after_s,
            reason,
        }: Unservable,
    ) -> Problem {
        let plural = if retry_after_s == 1 { "" } else { "s" };
        Problem::unavailable(
            retry_after_s,
            format!("{reason} Try again in {retry_after_s} second{plural}."),
        )
    }

    /// 503, for a token of a newer snapshot than this server has.
    pub(super) fn ahead() -> Problem {
        Problem::unavailable(
            1,
            "The sync token is of a newer state than this server has now. Send the same request again in a second: the token stays valid.",
        )
    }

    /// 503 in place of `invalid_api_key`, when the origin of the database could not be polled for new keys.
    pub fn of_unpolled_key(self) -> Problem {
        match self.code {
            Code::InvalidApiKey => Problem::unavailable(
                1,
                "This server does not know the API key, and cannot ask for new keys now. Send the same request again in a second.",
            ),
            _ => self,
        }
    }

    /// Closes the connection after the response.
    pub fn closing(self) -> Problem {
        self.with(CONNECTION, HeaderValue::from_static("close"))
    }

    fn with(mut self, name: HeaderName, value: HeaderValue) -> Problem {
        self.headers.push((name, value));
        self
    }

    /// The body, as JSON.
    pub fn body(&self, docs_url: &str, request_id: &str) -> Vec<u8> {
        let page_url = format!("{docs_url}/errors/{}", self.code);
        let body = ProblemBody::new(self.status, page_url, self.detail.as_str(), request_id);
        let mut json = Vec::new();
        push_json(&mut json, &body);
        json
    }

    pub(super) fn log(&self, request_id: &str) {
        if let Some(cause) = &self.cause {
            tracing::error!(request_id, error = cause, "a request could not be answered");
        }
    }
}

/// A problem with the detail of the code's example.
impl From<Code> for Problem {
    fn from(code: Code) -> Problem {
        Problem::new(code, code.info().detail)
    }
}

impl From<StoreError> for Problem {
    fn from(error: StoreError) -> Problem {
        Problem::internal(error)
    }
}

impl From<BadRequest> for Problem {
    fn from(BadRequest { code, detail }: BadRequest) -> Problem {
        if code == Code::InternalError {
            Problem::internal(detail)
        } else {
            Problem::new(code, detail)
        }
    }
}
