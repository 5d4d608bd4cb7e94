//! Trust in a server over TLS: the system's certificates, those of a file, and servers that show one of
//! that file's certificates themselves.
//!
//! `openssl req -x509` makes a self-signed certificate that is marked as an authority. The standard
//! verifier refuses such a certificate of a server, even where it is trusted as an authority. OpenSSL
//! accepts it, and so do curl, redis-cli and psql.

use anyhow::anyhow;
use cli::pem::read_certificates;
use std::io;
use std::path::Path;
use std::sync::Arc;
use tokio_rustls::TlsConnector;
use tokio_rustls::rustls::client::danger::{
    HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier,
};
use tokio_rustls::rustls::client::{WebPkiServerVerifier, verify_server_name};
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use tokio_rustls::rustls::server::ParsedCertificate;
use tokio_rustls::rustls::{
    CertificateError, ClientConfig, DigitallySignedStruct, Error, RootCertStore, SignatureScheme,
};

/// Paths of the trusted certificates of Linux distributions.
const SYSTEM_CERTIFICATES: [&str; 3] =
    ["/etc/ssl/certs/ca-certificates.crt", "/etc/pki/tls/certs/ca-bundle.crt", "/etc/ssl/cert.pem"];

/// Error: TLS fails in a way that another try cannot mend.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct TlsRefusal(String);

/// A connector that trusts the system's certificates and those of a PEM file.
///
/// # Errors
/// A file that cannot be used.
pub fn connector(extra: Option<&str>) -> anyhow::Result<TlsConnector> {
    let trusted = match extra {
        Some(path) => read_certificates(Path::new(path))?,
        None => Vec::new(),
    };
    let system = SYSTEM_CERTIFICATES.iter().map(Path::new).find(|path| path.exists());
    let system = system.map_or(Ok(Vec::new()), read_certificates)?;
    let mut roots = RootCertStore::empty();
    // Bundles hold old certificates that rustls refuses; the others serve.
    roots.add_parsable_certificates(trusted.iter().cloned().chain(system));
    let provider = Arc::new(ring::default_provider());
    let config = ClientConfig::builder_with_provider(provider.clone())
        .with_safe_default_protocol_versions()?;
    let config = match trusted.is_empty() {
        true => config.with_root_certificates(roots),
        false => {
            let chain = WebPkiServerVerifier::builder_with_provider(roots.into(), provider);
            let chain =
                chain.build().map_err(|error| anyhow!("{}: {error}", extra.unwrap_or("")))?;
            let verifier = TrustedServerVerifier { chain, trusted };
            config.dangerous().with_custom_certificate_verifier(Arc::new(verifier))
        }
    };
    Ok(TlsConnector::from(Arc::new(config.with_no_client_auth())))
}

/// Verifies a chain of certificates; accepts a server that shows a trusted certificate itself.
#[derive(Debug)]
struct TrustedServerVerifier {
    chain: Arc<WebPkiServerVerifier>,
    trusted: Vec<CertificateDer<'static>>,
}

impl ServerCertVerifier for TrustedServerVerifier {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        server_name: &ServerName<'_>,
        ocsp_response: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        let verified = self.chain.verify_server_cert(
            end_entity,
            intermediates,
            server_name,
            ocsp_response,
            now,
        );
        match verified {
            // The dates were checked before.
            Err(error) if is_authority(&error) && self.trusted.iter().any(|c| c == end_entity) => {
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
        self.chain.verify_tls12_signature(message, cert, dss)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.chain.verify_tls13_signature(message, cert, dss)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.chain.supported_verify_schemes()
    }
}

/// Whether a certificate was refused because it is an authority's. webpki checks the dates before.
fn is_authority(error: &Error) -> bool {
    // The type of the inner error is not exported.
    matches!(error, Error::InvalidCertificate(CertificateError::Other(inner))
        if format!("{inner:?}").contains("CaUsedAsEndEntity"))
}

/// The error of a handshake that failed. It is a [`TlsRefusal`] where another try cannot help.
pub fn handshake_error(error: io::Error, authority: &str, ca_flag: &str) -> anyhow::Error {
    let refusal = error.get_ref().and_then(|inner| inner.downcast_ref::<Error>());
    let Some(refusal) = refusal else {
        return anyhow::Error::from(error).context(format!(
            "no TLS with {authority}: does it want http:// instead of https://?"
        ));
    };
    let words = match refusal {
        Error::InvalidCertificate(
            CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. },
        ) => format!(
            "the certificate of {authority} is for another name ({refusal}): use a name of the \
             certificate in the URL"
        ),
        Error::InvalidCertificate(
            CertificateError::Expired
            | CertificateError::ExpiredContext { .. }
            | CertificateError::NotValidYet
            | CertificateError::NotValidYetContext { .. },
        ) => format!(
            "the certificate of {authority} is not valid today ({refusal}): renew it, or set the \
             clock"
        ),
        Error::InvalidCertificate(_) => format!(
            "the certificate of {authority} is not trusted ({refusal}): give {ca_flag} with the \
             certificate of the server or of its authority"
        ),
        Error::InvalidMessage(_) => {
            format!("the server {authority} does not speak TLS ({refusal}): say http://")
        }
        _ => format!("TLS with {authority} failed: {refusal}"),
    };
    TlsRefusal(words).into()
}
