//! Example errors, built by the code that builds real ones.

use serde_json::Value;

use crate::contract::{CodeInfo, Contract, ProblemBody, Query};

/// An example of a request id.
const REQUEST_ID: &str = "0198c2f4-5b1e-7c3a-9d42-6f0a1b2c3d4e";

/// Returns the address of a code's page. It is the problem's `type`, unless the operator set another one.
fn page_url(info: &CodeInfo, public_url: &str) -> String {
    format!("{public_url}/docs/errors/{}", info.name)
}

/// Returns the body that the code's example request gets.
pub fn problem(contract: &Contract, info: &CodeInfo, public_url: &str) -> ProblemBody<'static> {
    let detail = refusal(contract, info.request).unwrap_or_else(|| info.detail.replace("{public_url}", public_url));
    ProblemBody::new(info.status, page_url(info, public_url), detail, REQUEST_ID)
}

/// Returns the error that the query parser reports for a request, if any.
fn refusal(contract: &Contract, request: &str) -> Option<String> {
    let (_, target) = request.split_once(' ')?;
    let (path, query) = target.split_once('?')?;
    let endpoint = contract.route(path)?.endpoint;
    Query::of(endpoint, Some(query)).parse::<Value>().err().map(|refused| refused.detail)
}
