//! TLS from two PEM files: rustls with ring.

use anyhow::anyhow;
pub use cli::pem::{read_certificates, read_key};
use std::path::Path;
use std::sync::Arc;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::{self, ServerConfig};

/// An acceptor that shows the certificates of `cert_path`, proves them with the key of `key_path`
/// and chooses among the protocols of `alpn`.
///
/// # Errors
/// When a file cannot be read, holds nothing fit, or the two do not belong together.
pub fn acceptor(cert_path: &Path, key_path: &Path, alpn: &[&[u8]]) -> anyhow::Result<TlsAcceptor> {
    let certificates = read_certificates(cert_path)?;
    let key = read_key(key_path)?;
    let mut config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()?
        .with_no_client_auth()
        .with_single_cert(certificates, key)
        .map_err(|error| match error {
            rustls::Error::InconsistentKeys(_) => anyhow!(
                "the key {} does not belong to the certificate {}: give the key that the \
                 certificate was made with",
                key_path.display(),
                cert_path.display()
            ),
            error => anyhow!("{} and {}: {error}", cert_path.display(), key_path.display()),
        })?;
    config.alpn_protocols = alpn.iter().map(|name| name.to_vec()).collect();
    Ok(TlsAcceptor::from(Arc::new(config)))
}
