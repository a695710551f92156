//! TLS 1.2 and 1.3 with one cryptographic provider, for servers and clients.

use std::sync::Arc;

use rustls_pki_types::{CertificateDer, PrivateKeyDer};
pub use tokio_rustls::rustls::{ClientConfig, Error, ServerConfig};
use tokio_rustls::rustls::{
    ConfigBuilder, ConfigSide, SupportedProtocolVersion, WantsVerifier, WantsVersions,
    crypto::{CryptoProvider, ring},
    version::{TLS12, TLS13},
};

/// The supported versions, the preferred one first.
const VERSIONS: [&SupportedProtocolVersion; 2] = [&TLS13, &TLS12];

/// The cryptographic provider of all connections.
pub(super) fn provider() -> Arc<CryptoProvider> {
    Arc::new(ring::default_provider())
}

/// Installs the provider as the process's default, which other libraries use.
pub fn install_provider() {
    // An error means that one is installed already.
    let _ = ring::default_provider().install_default();
}

/// The settings of a server with a certificate chain and its key.
pub fn server_config(chain: Vec<CertificateDer<'static>>, key: PrivateKeyDer<'static>) -> Result<ServerConfig, Error> {
    let builder = versions(ServerConfig::builder_with_provider(provider()))?;
    let mut config = builder.with_no_client_auth().with_single_cert(chain, key)?;
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok(config)
}

/// A builder with the supported versions.
pub(super) fn versions<S: ConfigSide>(
    builder: ConfigBuilder<S, WantsVersions>,
) -> Result<ConfigBuilder<S, WantsVerifier>, Error> {
    builder.with_protocol_versions(&VERSIONS)
}
