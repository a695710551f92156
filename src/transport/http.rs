//! The HTTP client of `medfeed pull` and `medfeed health`.

use std::time::Duration;

pub use reqwest::Error;
use reqwest::blocking;
pub use reqwest::blocking::{RequestBuilder, Response};
use reqwest::redirect::Policy;

use super::tls::ClientConfig;

const CONNECT_TIMEOUT: Duration = Duration::from_secs(15);

/// The settings of a client.
#[derive(Debug)]
pub struct Rules {
    /// The TLS settings.
    pub tls: ClientConfig,
    /// Whether the server is on this machine. If so, proxies of the environment are not used.
    pub is_local: bool,
    /// The timeout for the response's head, and for each further read of its body.
    pub silence: Duration,
}

/// A client.
pub type Client = blocking::Client;

/// Creates a client. It follows no redirects: a key is for one server only.
pub fn client(rules: Rules) -> Result<Client, Error> {
    let mut builder = blocking::Client::builder()
        .redirect(Policy::none())
        .user_agent(concat!("medfeed/", env!("CARGO_PKG_VERSION")))
        .connect_timeout(CONNECT_TIMEOUT)
        .timeout(rules.silence)
        .tls_backend_preconfigured(rules.tls);
    if rules.is_local {
        builder = builder.no_proxy();
    }
    builder.build()
}
