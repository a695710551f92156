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

pub(super) fn provider() -> Arc<CryptoProvider> {
    Arc::new(ring::default_provider())
}

/// Installs the provider as the default of the process, for libraries that use it.
pub fn install_provider() {
    // Fails if one is installed already, which is fine.
    let _ = ring::default_provider().install_default();
}

/// The settings of a server. Fails if the chain and the key do not match or are not supported.
pub fn server_config(chain: Vec<CertificateDer<'static>>, key: PrivateKeyDer<'static>) -> Result<ServerConfig, Error> {
    let builder = versions(ServerConfig::builder_with_provider(provider()))?;
    let mut config = builder.with_no_client_auth().with_single_cert(chain, key)?;
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok(config)
}

pub(super) fn versions<S: ConfigSide>(
    builder: ConfigBuilder<S, WantsVersions>,
) -> Result<ConfigBuilder<S, WantsVerifier>, Error> {
    builder.with_protocol_versions(&VERSIONS)
}
