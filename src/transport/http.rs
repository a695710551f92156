//! The HTTP client of `medfeed pull` and `medfeed health`.

use std::time::Duration;

use http::Uri;
use hyper_util::client::proxy::matcher::Matcher;
pub use reqwest::Error;
use reqwest::blocking;
pub use reqwest::blocking::{RequestBuilder, Response};
use reqwest::redirect::Policy;

use super::tls::{self, ClientConfig};

const CONNECT_TIMEOUT: Duration = Duration::from_secs(15);

/// A blocking client.
pub type Client = blocking::Client;

/// Creates a client. It follows no redirects, since keys must not be sent to another server. If the server is local, it
/// ignores the proxies of the environment. `read_timeout` limits the time for the response's head, and for each further
/// part of its body.
pub fn client(tls: ClientConfig, is_local: bool, read_timeout: Duration) -> Result<Client, Error> {
    let mut builder = blocking::Client::builder()
        .redirect(Policy::none())
        .user_agent(concat!("medfeed/", env!("CARGO_PKG_VERSION")))
        .connect_timeout(CONNECT_TIMEOUT)
        .timeout(read_timeout)
        .tls_backend_preconfigured(tls);
    if is_local {
        builder = builder.no_proxy();
    }
    builder.build()
}

/// The proxy of the environment for an address, as the end of a message; empty if there is none.
pub fn proxy_advice(url: &str) -> String {
    let uri = url.parse::<Uri>().unwrap_or_default();
    let proxy = Matcher::from_env().intercept(&uri);
    proxy.map_or_else(String::new, |proxy| {
        format!(
            "; the request goes through the proxy {} of the environment (HTTPS_PROXY, HTTP_PROXY or ALL_PROXY): check that it \
             is an HTTP proxy (SOCKS is not supported), runs, and may connect to the service; if it asks for a login (407), write \
             http://user:password@host:port; NO_PROXY excludes a service",
            proxy.uri()
        )
    })
}

/// Whether a server that cannot be reached at an `http` address expects TLS there.
pub fn speaks_tls(http_url: &str, timeout: Duration) -> bool {
    let Ok(settings) = tls::trust_nothing() else {
        return false;
    };
    let url = http_url.replacen("http://", "https://", 1);
    let sent = client(settings, true, timeout).and_then(|client| client.head(url).send());
    // The server has shown a certificate, or has ended the handshake.
    let failed = sent.err();
    let tls_error = failed.as_ref().and_then(|error| tls::tls_error_in(error));
    matches!(
        tls_error,
        Some(tls::Error::General(_) | tls::Error::AlertReceived(_))
    )
}
