//! Outgoing HTTP requests, pauses between attempts, and the TLS settings of all connections.

pub mod backoff;
pub mod causes;
pub mod http;
pub mod tls;
pub mod trust;
