//! Asking a running server whether it is well, as a container's health check does.

use std::fmt::Display;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use bytes::Bytes;
use http::header::HOST;
use http::{Request, StatusCode};
use http_body_util::{BodyExt, Empty, Limited};
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use rustls_pki_types::pem::PemObject;
use rustls_pki_types::{CertificateDer, ServerName, UnixTime};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use tokio_rustls::rustls::crypto::{CryptoProvider, ring, verify_tls12_signature, verify_tls13_signature};
use tokio_rustls::rustls::{self, ClientConfig, DigitallySignedStruct, SignatureScheme};

/// The most of an answer that is read, in bytes.
const MAX_ANSWER_BYTES: usize = 64 << 10;
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
    pub async fn ask(&self) -> Result<(), Unhealthy> {
        let address = local(self.address);
        let scheme = if self.certificate.is_some() { "https" } else { "http" };
        let url = format!("{scheme}://{address}{}", self.path);
        let unreachable =
            |reason: &dyn Display| Unhealthy::Unreachable { url: url.clone(), reason: reason.to_string() };
        let stream = TcpStream::connect(address).await.map_err(|error| unreachable(&error))?;
        let answered = match &self.certificate {
            None => exchange(stream, address, self.path).await,
            Some(file) => {
                let connector = TlsConnector::from(Arc::new(expecting(file)?));
                let secured = connector.connect(ServerName::from(address.ip()), stream).await;
                let stream = secured.map_err(|error| Unhealthy::Certificate {
                    url: url.clone(),
                    certificate: file.clone(),
                    reason: error.to_string(),
                })?;
                exchange(stream, address, self.path).await
            }
        };
        let (status, body) = answered.map_err(|error| unreachable(&error))?;
        if status == StatusCode::OK {
            return Ok(());
        }
        let reason = body.trim().chars().take(MAX_REASON_CHARS).collect();
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

type Failure = Box<dyn std::error::Error + Send + Sync>;

/// Sends one request; returns status and text of its answer.
async fn exchange<S>(stream: S, host: SocketAddr, path: &str) -> Result<(StatusCode, String), Failure>
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let (mut sender, connection) = http1::handshake(TokioIo::new(stream)).await?;
    let request = Request::get(path).header(HOST, host.to_string()).body(Empty::<Bytes>::new())?;
    let answer = async move {
        let answer = sender.send_request(request).await?;
        let status = answer.status();
        let body = Limited::new(answer.into_body(), MAX_ANSWER_BYTES).collect().await?.to_bytes();
        Ok::<_, Failure>((status, String::from_utf8_lossy(&body).into_owned()))
    };
    // The connection moves what the request waits for; what it ends with is told by the request.
    let (answer, _) = tokio::join!(answer, connection);
    answer
}

/// A client that takes exactly the certificate in a file: whoever holds its key is the server that this machine runs,
/// whatever names and dates the certificate bears.
fn expecting(file: &Path) -> Result<ClientConfig, Unhealthy> {
    let unreadable =
        |reason: &dyn Display| Unhealthy::CertificateFile { path: file.to_owned(), reason: reason.to_string() };
    let certificate = CertificateDer::from_pem_file(file).map_err(|error| unreadable(&error))?;
    let provider = Arc::new(ring::default_provider());
    let verifier = Arc::new(Exactly { certificate, provider: Arc::clone(&provider) });
    let config = ClientConfig::builder_with_provider(provider)
        .with_protocol_versions(&[&rustls::version::TLS13, &rustls::version::TLS12])
        .map_err(|error| unreadable(&error))?;
    Ok(config.dangerous().with_custom_certificate_verifier(verifier).with_no_client_auth())
}

#[derive(Debug)]
struct Exactly {
    certificate: CertificateDer<'static>,
    provider: Arc<CryptoProvider>,
}

impl ServerCertVerifier for Exactly {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        _intermediates: &[CertificateDer<'_>],
        _server_name: &ServerName<'_>,
        _ocsp_response: &[u8],
        _now: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        if *end_entity == self.certificate {
            Ok(ServerCertVerified::assertion())
        } else {
            Err(rustls::Error::General("it shows another one".to_owned()))
        }
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        verify_tls12_signature(message, certificate, signed, &self.provider.signature_verification_algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        verify_tls13_signature(message, certificate, signed, &self.provider.signature_verification_algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.provider.signature_verification_algorithms.supported_schemes()
    }
}
