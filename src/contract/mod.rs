//! The contract as data: endpoints, their parameters, and the codes of their errors.
//!
//! Whatever must agree with it reads it: the router, the parser of queries, the OpenAPI document, the pages of the
//! documentation. So a new parameter, code or endpoint is declared here, once. In reading order:
//! - [`codes`]: every error code, with its status, meaning and remedy.
//! - [`parameters`]: what parameters take, and the typed parameters of each kind of endpoint.
//! - [`endpoints`]: the paths, and what stands behind each.
//! - [`route`]: from a path to its endpoint.
//! - [`query`]: from a query to an endpoint's typed parameters.

use std::collections::BTreeSet;

use http::StatusCode;

pub mod codes;
pub mod endpoints;
pub mod parameters;
pub mod query;
pub mod route;

pub use codes::{Code, CodeInfo, ProblemBody};
pub use endpoints::{Endpoint, Resource};
pub use parameters::{Absent, Form, Parameter, Place};
pub use query::{BadRequest, Query};
pub use route::Route;

/// A declared service.
#[derive(Clone, Copy, Debug)]
pub struct Contract {
    /// The endpoints. Of those that a path fits, the first one is meant.
    pub endpoints: &'static [Endpoint],
    /// The error codes, by status.
    pub codes: &'static [CodeInfo],
}

/// What this service is: the declaration that everything but tests goes by.
pub static CONTRACT: Contract = Contract { endpoints: &endpoints::ENDPOINTS, codes: &codes::CODES };

impl Contract {
    /// The error codes that an endpoint answers with.
    pub fn codes_of(&self, endpoint: &Endpoint) -> impl Iterator<Item = &'static CodeInfo> {
        self.codes.iter().filter(|info| match info.scope {
            codes::Scope::Every => true,
            codes::Scope::Keyed => endpoint.resource.needs_key(),
            codes::Scope::WithParameters => !endpoint.parameters.is_empty(),
            codes::Scope::Named => endpoint.codes.contains(&info.code),
        })
    }

    /// The statuses that an endpoint answers with, in their order.
    pub fn statuses_of(&self, endpoint: &Endpoint) -> BTreeSet<StatusCode> {
        let revalidated = endpoint.resource.is_revalidatable().then_some(StatusCode::NOT_MODIFIED);
        let errors = self.codes_of(endpoint).map(|info| info.status);
        [StatusCode::OK].into_iter().chain(revalidated).chain(errors).collect()
    }
}
