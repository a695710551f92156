//! Verifies servers' certificates against the authorities of the system, or against a PEM file.
//!
//! The file may also hold the server's own certificate. `openssl req -x509` marks a self-signed certificate as that of an
//! authority, and the usual rules let no server use such a one. The verifier accepts it if it is exactly the one in the file, is
//! valid for the server's name, and has not expired.

use std::error::Error as StdError;
use std::fs;
use std::path::Path;
use std::sync::Arc;

use rustls_pki_types::pem::PemObject;
use rustls_pki_types::{CertificateDer, ServerName, UnixTime};
use tokio_rustls::rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use tokio_rustls::rustls::client::{WebPkiServerVerifier, verify_server_name};
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::server::ParsedCertificate;
use tokio_rustls::rustls::{
    CertificateError, ClientConfig, DigitallySignedStruct, Error, RootCertStore, SignatureScheme,
};

/// The words of the rules' library for a certificate that is marked as an authority's.
const AUTHORITY: &str = "CaUsedAsEndEntity";

/// A configuration that trusts the certificates of a PEM file, or those of the system.
///
/// # Errors
/// When there are none, in words.
pub fn client_config(ca_file: Option<&Path>) -> Result<ClientConfig, String> {
    let provider = Arc::new(ring::default_provider());
    let (trusted, pinned) = match ca_file {
        Some(file) => certificates_in(file).map(|found| (found.clone(), found))?,
        None => (system_certificates()?, Vec::new()),
    };
    let mut roots = RootCertStore::empty();
    roots.add_parsable_certificates(trusted);
    let verifier = WebPkiServerVerifier::builder_with_provider(Arc::new(roots), Arc::clone(&provider)).build();
    let authorities = verifier.map_err(|_| match ca_file {
        Some(file) => format!("{} holds no certificate that can be read", file.display()),
        None => "the certificates of the system cannot be read; give --ca-file".to_owned(),
    })?;
    let config = ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions();
    let config = config.map_err(|error| error.to_string())?;
    let verifier = Verifier { authorities, pinned };
    Ok(config.dangerous().with_custom_certificate_verifier(Arc::new(verifier)).with_no_client_auth())
}

/// The certificates of a PEM file.
fn certificates_in(file: &Path) -> Result<Vec<CertificateDer<'static>>, String> {
    let pem = fs::read(file).map_err(|error| format!("{}: {error}", file.display()))?;
    let certificates = CertificateDer::pem_slice_iter(&pem).collect::<Result<Vec<_>, _>>();
    let certificates = certificates.map_err(|error| format!("{}: {error}", file.display()))?;
    if certificates.is_empty() {
        return Err(format!("{} holds no certificate; give a PEM file with `BEGIN CERTIFICATE`", file.display()));
    }
    Ok(certificates)
}

fn system_certificates() -> Result<Vec<CertificateDer<'static>>, String> {
    let found = rustls_native_certs::load_native_certs();
    if found.certs.is_empty() {
        return Err("the system has no certificates of authorities; install them (on Debian the package \
                    `ca-certificates`), or give --ca-file"
            .to_owned());
    }
    Ok(found.certs)
}

/// Accepts certificates that an authority has signed, and those of the file themselves.
#[derive(Debug)]
struct Verifier {
    authorities: Arc<WebPkiServerVerifier>,
    pinned: Vec<CertificateDer<'static>>,
}

impl ServerCertVerifier for Verifier {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        server_name: &ServerName<'_>,
        ocsp_response: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        let verified = self.authorities.verify_server_cert(end_entity, intermediates, server_name, ocsp_response, now);
        match verified {
            // The library checks the time before the mark: an expired certificate has another error.
            Err(Error::InvalidCertificate(CertificateError::Other(other)))
                if other.0.to_string() == AUTHORITY && self.pinned.contains(end_entity) =>
            {
                verify_server_name(&ParsedCertificate::try_from(end_entity)?, server_name)?;
                Ok(ServerCertVerified::assertion())
            }
            verified => verified,
        }
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.authorities.verify_tls12_signature(message, cert, dss)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.authorities.verify_tls13_signature(message, cert, dss)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.authorities.supported_verify_schemes()
    }
}

/// Why a server's certificate was refused, and what helps, if an error says that one was.
pub fn reason_in(error: &(dyn StdError + 'static)) -> Option<String> {
    let mut cause = Some(error);
    while let Some(error) = cause {
        // An I/O error names the cause of its inner error as its own, not the inner error.
        let inner = error.downcast_ref::<std::io::Error>().and_then(|error| error.get_ref());
        let refused = inner.and_then(|inner| inner.downcast_ref()).or_else(|| error.downcast_ref());
        if let Some(Error::InvalidCertificate(fault)) = refused {
            return Some(reason(fault));
        }
        cause = inner.map_or_else(|| error.source(), |inner| Some(inner));
    }
    None
}

fn reason(fault: &CertificateError) -> String {
    match fault {
        CertificateError::UnknownIssuer => {
            "its certificate is not signed by an authority that is trusted; give the PEM file of the authority, or of the server's \
             own certificate, with --ca-file"
                .to_owned()
        }
        CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. } => {
            "its certificate does not have the name of the address; use an address that it has, or make one that does (openssl \
             req -x509 with -addext subjectAltName=DNS:NAME or IP:ADDRESS)"
                .to_owned()
        }
        CertificateError::Expired | CertificateError::ExpiredContext { .. } => {
            "its certificate has expired; have the operator renew it, and check this machine's clock".to_owned()
        }
        CertificateError::NotValidYet | CertificateError::NotValidYetContext { .. } => {
            "its certificate is not valid yet; check the clocks of this machine and of the server".to_owned()
        }
        CertificateError::Other(other) if other.0.to_string() == AUTHORITY => {
            "it shows the certificate of an authority as its own; give exactly that one with --ca-file, or make another one \
             (openssl req -x509 with -addext basicConstraints=critical,CA:FALSE)"
                .to_owned()
        }
        other => format!("its certificate was refused ({other})"),
    }
}
