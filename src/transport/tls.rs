//! TLS 1.2 and 1.3 with one cryptographic provider, for servers and clients, and the certificates that a client
//! accepts: signed by an authority, or exactly those in a PEM file.
//!
//! A PEM file of authorities may also contain the server's own certificate. `openssl req -x509` marks self-signed
//! certificates as those of an authority, and the usual rules reject them for servers. The verifier accepts such a
//! certificate if it is in the file, is valid for the server's name, and has not expired.

use std::error::Error as StdError;
use std::fs;
use std::path::Path;
use std::sync::Arc;

use memchr::memmem;
use rustls_pki_types::pem::PemObject;
use rustls_pki_types::{CertificateDer, PrivateKeyDer, ServerName, UnixTime};
use tokio_rustls::rustls::client::danger::{
    HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier,
};
use tokio_rustls::rustls::client::{WebPkiServerVerifier, verify_server_name};
use tokio_rustls::rustls::crypto::{
    CryptoProvider, ring, verify_tls12_signature, verify_tls13_signature,
};
use tokio_rustls::rustls::server::ParsedCertificate;
use tokio_rustls::rustls::version::{TLS12, TLS13};
use tokio_rustls::rustls::{
    AlertDescription, CertificateError, ConfigBuilder, ConfigSide, DigitallySignedStruct,
    RootCertStore, SignatureScheme, SupportedProtocolVersion, WantsVerifier, WantsVersions,
};
pub use tokio_rustls::rustls::{ClientConfig, Error, ServerConfig};

use super::cause_of;
use crate::disk::describe_at;

/// The supported versions, the preferred one first.
const VERSIONS: [&SupportedProtocolVersion; 2] = [&TLS13, &TLS12];

fn provider() -> Arc<CryptoProvider> {
    Arc::new(ring::default_provider())
}

/// Installs the provider as the default of the process, for libraries that use it.
pub fn install_provider() {
    // Fails if one is installed already, which is fine.
    let _ = ring::default_provider().install_default();
}

/// The settings of a server. Fails if the chain and the key do not match or are not supported.
pub fn server_config(
    chain: Vec<CertificateDer<'static>>,
    key: PrivateKeyDer<'static>,
) -> Result<ServerConfig, Error> {
    let builder = versions(ServerConfig::builder_with_provider(provider()))?;
    let mut config = builder.with_no_client_auth().with_single_cert(chain, key)?;
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok(config)
}

fn versions<S: ConfigSide>(
    builder: ConfigBuilder<S, WantsVersions>,
) -> Result<ConfigBuilder<S, WantsVerifier>, Error> {
    builder.with_protocol_versions(&VERSIONS)
}

/// rustls's error for a server certificate that is marked as an authority's.
const AUTHORITY: &str = "CaUsedAsEndEntity";

/// Client settings that trust the authorities in a PEM file, or those of the system. Returns an error message if there
/// are none.
pub fn trust_authorities(ca_file: Option<&Path>) -> Result<ClientConfig, String> {
    let (trusted, pinned) = match ca_file {
        Some(file) => certificates_in(file).map(|found| (found.clone(), found))?,
        None => (system_certificates()?, Vec::new()),
    };
    let mut roots = RootCertStore::empty();
    roots.add_parsable_certificates(trusted);
    let verifier = WebPkiServerVerifier::builder_with_provider(Arc::new(roots), provider()).build();
    let authorities = verifier.map_err(|_| match ca_file {
        Some(file) => format!("{} contains no readable certificate", file.display()),
        None => "the certificates of the system cannot be read; use --ca-file".to_owned(),
    })?;
    client_config(Accepted::Signed {
        authorities,
        pinned,
    })
}

/// Client settings that accept only the first certificate of a PEM file, whatever its names and dates. They are for the
/// server of this machine. Returns an error message if there is none.
pub fn trust_exactly(file: &Path) -> Result<ClientConfig, String> {
    let certificate = certificates_in(file)?.swap_remove(0);
    client_config(Accepted::Exactly(certificate))
}

/// Client settings that accept no certificate, for plain HTTP. They do not need the system's certificates.
pub fn trust_nothing() -> Result<ClientConfig, String> {
    client_config(Accepted::Nothing)
}

fn client_config(accepted: Accepted) -> Result<ClientConfig, String> {
    let provider = provider();
    let builder = versions(ClientConfig::builder_with_provider(Arc::clone(&provider)));
    let builder = builder.map_err(|error| error.to_string())?;
    let verifier = Arc::new(Verifier { accepted, provider });
    Ok(builder
        .dangerous()
        .with_custom_certificate_verifier(verifier)
        .with_no_client_auth())
}

/// Reads a PEM file. Rejects byte-order marks, because the block after one would be skipped.
pub fn read_pem(file: &Path) -> Result<Vec<u8>, String> {
    let pem = fs::read(file).map_err(|error| describe_at(file, &error))?;
    // UTF-16 begins with one of these two bytes.
    if pem.first() >= Some(&0xfe) || memmem::find(&pem, "\u{feff}".as_bytes()).is_some() {
        return Err(format!(
            "{}: it contains a byte-order mark (BOM), as editors on Windows write it; save the PEM file as UTF-8 without one",
            file.display()
        ));
    }
    Ok(pem)
}

/// The certificates in a PEM file, at least one.
pub fn certificates_in(file: &Path) -> Result<Vec<CertificateDer<'static>>, String> {
    let pem = read_pem(file)?;
    let certificates = CertificateDer::pem_slice_iter(&pem).collect::<Result<Vec<_>, _>>();
    let certificates = certificates.map_err(|error| format!("{}: {error}", file.display()))?;
    if certificates.is_empty() {
        return Err(format!(
            "{}: it contains no certificate; it must hold the certificate chain in PEM (`BEGIN CERTIFICATE`)",
            file.display()
        ));
    }
    Ok(certificates)
}

fn system_certificates() -> Result<Vec<CertificateDer<'static>>, String> {
    let found = rustls_native_certs::load_native_certs();
    if found.certs.is_empty() {
        return Err(
            "the system has no certificates of authorities; install them (on Debian the package \
                    `ca-certificates`), or use --ca-file"
                .to_owned(),
        );
    }
    Ok(found.certs)
}

#[derive(Debug)]
enum Accepted {
    /// Certificates that an authority has signed, and the pinned ones.
    Signed {
        authorities: Arc<WebPkiServerVerifier>,
        pinned: Vec<CertificateDer<'static>>,
    },
    Exactly(CertificateDer<'static>),
    Nothing,
}

#[derive(Debug)]
struct Verifier {
    accepted: Accepted,
    provider: Arc<CryptoProvider>,
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
        let (authorities, pinned) = match &self.accepted {
            Accepted::Exactly(certificate) if certificate == end_entity => {
                return Ok(ServerCertVerified::assertion());
            }
            Accepted::Exactly(_) => {
                return Err(Error::General("the server has another one".to_owned()));
            }
            Accepted::Nothing => {
                return Err(Error::General("no certificate is accepted".to_owned()));
            }
            Accepted::Signed {
                authorities,
                pinned,
            } => (authorities, pinned),
        };
        match authorities.verify_server_cert(
            end_entity,
            intermediates,
            server_name,
            ocsp_response,
            now,
        ) {
            // rustls checks the dates first: an expired certificate causes another error.
            Err(Error::InvalidCertificate(CertificateError::Other(other)))
                if other.0.to_string() == AUTHORITY && pinned.contains(end_entity) =>
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
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        verify_tls12_signature(
            message,
            certificate,
            signed,
            &self.provider.signature_verification_algorithms,
        )
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        verify_tls13_signature(
            message,
            certificate,
            signed,
            &self.provider.signature_verification_algorithms,
        )
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.provider
            .signature_verification_algorithms
            .supported_schemes()
    }
}

/// The TLS error among the causes of an error.
pub fn tls_error_in<'a>(error: &'a (dyn StdError + 'static)) -> Option<&'a Error> {
    let mut cause = Some(error);
    while let Some(error) = cause {
        if let Some(found) = error.downcast_ref() {
            return Some(found);
        }
        cause = cause_of(error);
    }
    None
}

/// Returns the reason and a remedy if an error is about a rejected certificate.
pub fn reason_in(error: &(dyn StdError + 'static)) -> Option<String> {
    match tls_error_in(error)? {
        Error::InvalidCertificate(fault) => Some(reason(fault)),
        Error::InvalidMessage(_) => Some(
            "the server there does not speak TLS; check the port, or use an address that begins with http:// if it has no \
             HTTPS"
                .to_owned(),
        ),
        Error::AlertReceived(AlertDescription::HandshakeFailure) => Some(
            "it and this program have no TLS algorithm in common; keys of certificates must be RSA, ECDSA on P-256 or P-384 (not \
             P-521), or Ed25519"
                .to_owned(),
        ),
        _ => None,
    }
}

fn reason(fault: &CertificateError) -> String {
    match fault {
        CertificateError::UnknownIssuer => {
            "its certificate is not signed by a trusted authority; pass the PEM file of the authority, or of the server's \
             own certificate, with --ca-file"
                .to_owned()
        }
        CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. } => {
            "its certificate does not contain the name in the address; use a name that it contains, or create a certificate \
             with this name (openssl req -x509 with -addext subjectAltName=DNS:NAME or IP:ADDRESS)"
                .to_owned()
        }
        CertificateError::Expired | CertificateError::ExpiredContext { .. } => {
            "its certificate has expired; ask the operator to renew it, and check this machine's clock".to_owned()
        }
        CertificateError::NotValidYet | CertificateError::NotValidYetContext { .. } => {
            "its certificate is not valid yet; check the clocks of this machine and of the server".to_owned()
        }
        CertificateError::Other(other) if other.0.to_string() == AUTHORITY => {
            "its certificate is marked as that of an authority; pass exactly this certificate with --ca-file, or create another \
             one (openssl req -x509 with -addext basicConstraints=critical,CA:FALSE)"
                .to_owned()
        }
        other => format!("its certificate was refused ({other})"),
    }
}
