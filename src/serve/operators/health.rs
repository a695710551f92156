//! The client of a health check, for containers.

use std::io::Read;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::path::PathBuf;
use std::time::Duration;

use http::StatusCode;

use crate::transport::http as transport;
use crate::transport::root_cause;
use crate::transport::tls::{self, Error as TlsError};

/// The maximum number of bytes to read of a response.
const MAX_ANSWER_BYTES: u64 = 64 << 10;
/// The maximum length of a server's reason in the message, in characters.
const MAX_REASON_CHARS: usize = 300;

pub struct Probe {
    /// The address on which the server listens. For an unspecified address (such as 0.0.0.0), the probe uses localhost.
    pub address: SocketAddr,
    pub path: &'static str,
    /// The file of the certificate that the server must present; `None` for plain HTTP.
    pub certificate: Option<PathBuf>,
    pub timeout: Duration,
}

impl Probe {
    /// Returns why the server is not healthy as the error.
    pub fn ask(&self) -> Result<(), String> {
        let address = reachable(self.address);
        let (scheme, tls) = match &self.certificate {
            Some(file) => ("https", tls::trust_exactly(file)),
            None => ("http", tls::trust_nothing()),
        };
        let tls = tls?;
        let url = format!("{scheme}://{address}{}", self.path);
        let client = transport::client(tls, true, self.timeout);
        let answer = client.and_then(|client| client.get(&url).timeout(self.timeout).send());
        let answer = answer.map_err(|error| self.failure(&url, &error))?;
        let status = answer.status();
        if status == StatusCode::OK {
            return Ok(());
        }
        let mut body = Vec::new();
        // An incomplete reason is still useful.
        let _ = answer.take(MAX_ANSWER_BYTES).read_to_end(&mut body);
        let reason: String = String::from_utf8_lossy(&body)
            .trim()
            .chars()
            .take(MAX_REASON_CHARS)
            .collect();
        Err(format!("{url} answers {status}: {reason}"))
    }

    /// Why the server at a URL gave no answer.
    fn failure(&self, url: &str, error: &transport::Error) -> String {
        match (tls::tls_error_in(error), &self.certificate) {
            (Some(error), Some(certificate)) => {
                let reason = match error {
                    TlsError::General(reason) => reason.clone(),
                    other => other.to_string(),
                };
                format!(
                    "{url} does not show the certificate of {}: {reason}",
                    certificate.display()
                )
            }
            _ if error.is_timeout() => format!("{url} did not answer within {:?}", self.timeout),
            (None, None) if transport::speaks_tls(url, self.timeout) => format!(
                "{url} cannot be reached: the server there speaks HTTPS; name its certificate with --tls-cert FILE"
            ),
            _ => format!(
                "{url} cannot be reached: {}; is the server running, and does it listen there?",
                root_cause(error)
            ),
        }
    }
}

/// Replaces an unspecified address by localhost.
fn reachable(address: SocketAddr) -> SocketAddr {
    let ip = match address.ip() {
        IpAddr::V4(ip) if ip.is_unspecified() => Ipv4Addr::LOCALHOST.into(),
        IpAddr::V6(ip) if ip.is_unspecified() => Ipv6Addr::LOCALHOST.into(),
        ip => ip,
    };
    SocketAddr::new(ip, address.port())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unspecified_address_is_reached_by_localhost() {
        let cases = [
            ("0.0.0.0:8080", "127.0.0.1:8080"),
            ("[::]:8080", "[::1]:8080"),
            ("192.0.2.7:9", "192.0.2.7:9"),
            ("127.0.0.2:9", "127.0.0.2:9"),
            ("[2001:db8::1]:9", "[2001:db8::1]:9"),
        ];
        for (listens, asked) in cases {
            let found = reachable(listens.parse().unwrap()).to_string();
            assert_eq!(found, asked, "{listens}");
        }
    }
}
