//! Asking a running server whether it is well, as a container's health check does.

use std::io::Read;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::path::PathBuf;
use std::time::Duration;

use http::StatusCode;

use crate::transport::causes::root_cause;
use crate::transport::http::{self as transport, Rules};
use crate::transport::trust;

/// The most of an answer that is read, in bytes.
const MAX_ANSWER_BYTES: u64 = 64 << 10;
/// The most of an unhealthy server's reason that is told, in characters.
const MAX_REASON_CHARS: usize = 300;

/// A question to a server.
#[derive(Clone, Debug)]
pub struct Probe {
    /// Where the server listens. An address that stands for all is asked on this machine.
    pub address: SocketAddr,
    /// The path that answers 200 when all is well.
    pub path: &'static str,
    /// The file of the certificate that the server must show; `None` for plain HTTP.
    pub certificate: Option<PathBuf>,
    /// How long the answer may take.
    pub timeout: Duration,
}

/// Why a server does not count as healthy.
#[derive(Debug, thiserror::Error)]
pub enum Unhealthy {
    /// Nobody can be asked.
    #[error("{url} cannot be reached: {reason}; is the server running, and does it listen there?")]
    Unreachable {
        /// The address.
        url: String,
        /// Why not.
        reason: String,
    },
    /// The answer takes too long.
    #[error("{url} did not answer within {timeout:?}")]
    Late {
        /// The address.
        url: String,
        /// The time that it had.
        timeout: Duration,
    },
    /// The server shows no certificate, or another one.
    #[error("{url} does not show the certificate of {}: {reason}", certificate.display())]
    Certificate {
        /// The address.
        url: String,
        /// The certificate's file.
        certificate: PathBuf,
        /// Why not.
        reason: String,
    },
    /// The certificate that the server should show cannot be read.
    #[error("{}: {reason}; it must hold the certificate chain in PEM, the server's own first", path.display())]
    CertificateFile {
        /// The file.
        path: PathBuf,
        /// Why not.
        reason: String,
    },
    /// The server says that it is not well.
    #[error("{url} answers {status}: {reason}")]
    Answer {
        /// The address.
        url: String,
        /// The status of its answer.
        status: StatusCode,
        /// What it says.
        reason: String,
    },
}

impl Probe {
    /// Asks.
    ///
    /// # Errors
    /// [`Unhealthy`] when there is no answer, or one of another status than 200.
    pub fn ask(&self) -> Result<(), Unhealthy> {
        let address = local(self.address);
        let (scheme, tls) = match &self.certificate {
            Some(file) => ("https", trust::exactly(file)),
            None => ("http", trust::nobody()),
        };
        let url = format!("{scheme}://{address}{}", self.path);
        let tls = tls.map_err(|reason| Unhealthy::CertificateFile {
            path: self.certificate.clone().unwrap_or_default(),
            reason,
        })?;
        let failed = |error: &(dyn std::error::Error + 'static), is_late: bool| match (
            trust::tls_error_in(error),
            &self.certificate,
        ) {
            (Some(error), Some(certificate)) => {
                Unhealthy::Certificate { url: url.clone(), certificate: certificate.clone(), reason: error.to_string() }
            }
            _ if is_late => Unhealthy::Late { url: url.clone(), timeout: self.timeout },
            _ => Unhealthy::Unreachable { url: url.clone(), reason: root_cause(error).to_string() },
        };
        let client = transport::client(Rules { tls, is_local: true, silence: self.timeout });
        let answer = client.and_then(|client| client.get(&url).timeout(self.timeout).send());
        let answer = answer.map_err(|error| failed(&error, error.is_timeout()))?;
        let status = answer.status();
        if status == StatusCode::OK {
            return Ok(());
        }
        let mut body = Vec::new();
        // What came of a reason that breaks off still says something.
        let _ = answer.take(MAX_ANSWER_BYTES).read_to_end(&mut body);
        let reason = String::from_utf8_lossy(&body).trim().chars().take(MAX_REASON_CHARS).collect();
        Err(Unhealthy::Answer { url, status, reason })
    }
}

/// Where a server that listens on all addresses is asked: on this machine.
fn local(address: SocketAddr) -> SocketAddr {
    let ip = match address.ip() {
        IpAddr::V4(ip) if ip.is_unspecified() => Ipv4Addr::LOCALHOST.into(),
        IpAddr::V6(ip) if ip.is_unspecified() => Ipv6Addr::LOCALHOST.into(),
        ip => ip,
    };
    SocketAddr::new(ip, address.port())
}
