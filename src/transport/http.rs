//! The HTTP client of `medfeed pull` and `medfeed health`.

use std::time::Duration;

pub use reqwest::Error;
use reqwest::blocking;
pub use reqwest::blocking::{RequestBuilder, Response};
use reqwest::redirect::Policy;

use super::tls::{ClientConfig, Error as TlsError};
use super::trust;

const CONNECT_TIMEOUT: Duration = Duration::from_secs(15);

/// The settings of a client.
#[derive(Debug)]
#[allow(missing_docs, reason = "the names explain the other fields")]
pub struct ClientSettings {
    pub tls: ClientConfig,
    /// Whether the server is on this machine, so that proxies of the environment are ignored.
    pub is_local: bool,
    /// The time limit for the response's head, and for each further part of its body.
    pub silence: Duration,
}

/// A blocking client.
pub type Client = blocking::Client;

/// Creates a client. It follows no redirects, since keys must not be sent to another server.
pub fn client(settings: ClientSettings) -> Result<Client, Error> {
    let mut builder = blocking::Client::builder()
        .redirect(Policy::none())
        .user_agent(concat!("medfeed/", env!("CARGO_PKG_VERSION")))
        .connect_timeout(CONNECT_TIMEOUT)
        .timeout(settings.silence)
        .tls_backend_preconfigured(settings.tls);
    if settings.is_local {
        builder = builder.no_proxy();
    }
    builder.build()
}

/// Whether a server that cannot be reached at an `http` address expects TLS there.
pub fn speaks_tls(http_url: &str, timeout: Duration) -> bool {
    let Ok(tls) = trust::trust_nothing() else { return false };
    let url = http_url.replacen("http://", "https://", 1);
    let sent =
        client(ClientSettings { tls, is_local: true, silence: timeout }).and_then(|client| client.head(url).send());
    // The server has shown a certificate, or has ended the handshake.
    let failed = sent.err();
    let tls_error = failed.as_ref().and_then(|error| trust::tls_error_in(error));
    matches!(tls_error, Some(TlsError::General(_) | TlsError::AlertReceived(_)))
}
