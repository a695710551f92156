//! The contract as data: endpoints, parameters and error codes. Each one is declared once, here.
//!
//! The router, the query parser, the OpenAPI document and the documentation use these tables. In reading order:
//! - [`codes`]: the error codes, with status, meaning and remedy.
//! - [`parameters`]: the forms of parameters, and the typed parameters of each kind of endpoint.
//! - [`endpoints`]: the paths and their contents, and the body of `/status`.
//! - [`route`]: finding the endpoint of a path.
//! - [`query`]: parsing a query into typed parameters.

pub mod codes;
pub mod endpoints;
pub mod parameters;
pub mod query;
pub mod route;

pub use codes::{Code, CodeInfo, ProblemBody};
pub use endpoints::{CONTRACT, Contract, DatasetBody, Endpoint, Resource, StatusBody};
pub use parameters::{BadRequest, Parameter, ParameterForm, WhenAbsent};
pub use query::Query;
pub use route::Route;
