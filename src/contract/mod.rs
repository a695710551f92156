//! The contract as data: endpoints, their parameters, and the codes of their errors.
//!
//! Whatever must agree with it reads it: the router, the parser of queries, the OpenAPI document, the pages of the
//! documentation. So a new parameter, code or endpoint is declared here, once. In reading order:
//! - [`codes`]: every error code, with its status, meaning and remedy.
//! - [`parameters`]: what parameters take, and the typed parameters of each kind of endpoint.
//! - [`endpoints`]: the paths, and what stands behind each.
//! - [`route`]: from a path to its endpoint.
//! - [`query`]: from a query to an endpoint's typed parameters.
//! - [`status`]: what `/status` says.

pub mod codes;
pub mod endpoints;
pub mod parameters;
pub mod query;
pub mod route;
pub mod status;

pub use codes::{Code, CodeInfo, ProblemBody};
pub use endpoints::{CONTRACT, Contract, Endpoint, Resource};
pub use parameters::{Absent, BadRequest, Form, Location, Parameter};
pub use query::Query;
pub use route::Route;
