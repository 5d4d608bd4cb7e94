//! TLS from two PEM files: rustls with ring.

use anyhow::{Context as _, anyhow, bail};
use std::path::Path;
use std::sync::Arc;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::pem::{Error as PemError, PemObject as _};
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};
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

/// The certificates in a PEM file, at least one.
///
/// # Errors
/// When there is none.
pub fn read_certificates(path: &Path) -> anyhow::Result<Vec<CertificateDer<'static>>> {
    let shown = path.display();
    let bytes = std::fs::read(path).with_context(|| shown.to_string())?;
    let certificates = CertificateDer::pem_slice_iter(&bytes)
        .collect::<Result<Vec<_>, _>>()
        .with_context(|| shown.to_string())?;
    if certificates.is_empty() {
        bail!("{shown}: no certificate in PEM form");
    }
    Ok(certificates)
}

/// The private key in a PEM file.
///
/// # Errors
/// When there is none.
pub fn read_key(path: &Path) -> anyhow::Result<PrivateKeyDer<'static>> {
    let shown = path.display();
    let bytes = std::fs::read(path).with_context(|| shown.to_string())?;
    PrivateKeyDer::from_pem_slice(&bytes).map_err(|error| match error {
        PemError::NoItemsFound => anyhow!("{shown}: no private key in PEM form"),
        error => anyhow!("{shown}: {error}"),
    })
}
