//! The HTTP client of `medfeed pull` and `medfeed health`.

use std::time::Duration;

pub use reqwest::Error;
use reqwest::blocking;
pub use reqwest::blocking::{RequestBuilder, Response};
use reqwest::redirect::Policy;

use super::tls::ClientConfig;

/// The longest time in which a connection may be made.
const CONNECTING: Duration = Duration::from_secs(15);

/// The rules of a client.
#[derive(Debug)]
pub struct Rules {
    /// The TLS settings.
    pub tls: ClientConfig,
    /// Whether requests go to this machine itself, so that no proxy of the environment is used.
    pub is_local: bool,
    /// How long the server may send nothing: before its answer's head, and before each further part of its body.
    pub silence: Duration,
}

/// A client.
pub type Client = blocking::Client;

/// Creates a client. It follows no redirects, since a key is for one server only.
///
/// # Errors
/// When the system gives no thread.
pub fn client(rules: Rules) -> Result<Client, Error> {
    let mut builder = blocking::Client::builder()
        .redirect(Policy::none())
        .user_agent(concat!("medfeed/", env!("CARGO_PKG_VERSION")))
        .connect_timeout(CONNECTING)
        .timeout(rules.silence)
        .tls_backend_preconfigured(rules.tls);
    if rules.is_local {
        builder = builder.no_proxy();
    }
    builder.build()
}
