//! Certificates and keys of PEM files that flags name.

use anyhow::{Context as _, anyhow, bail};
use std::path::Path;
use tokio_rustls::rustls::pki_types::pem::{Error as PemError, PemObject as _};
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};

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
