//! TLS to a primary, as Redis' parameters say it: `tls-replication`, whom to believe, whom to be.
//!
//! As Redis, it is proven that the primary's certificate comes of an authority that is believed, and
//! not that it has the primary's name: whom this server follows is said by address, and certificates of
//! Redis have often no names.

use crate::settings::Settings;
pub use net::listeners::tls::{read_certificates, read_key};
use std::path::Path;
use std::sync::Arc;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::rustls::client::WebPkiServerVerifier;
use tokio_rustls::rustls::client::danger::{
    HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier,
};
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use tokio_rustls::rustls::version::{TLS12, TLS13};
use tokio_rustls::rustls::{
    CertificateError, ClientConfig, DigitallySignedStruct, Error, RootCertStore, SignatureScheme,
    SupportedProtocolVersion,
};

/// Bytes to and from a primary.
pub trait Wire: AsyncRead + AsyncWrite + Send + Unpin {}

impl<S: AsyncRead + AsyncWrite + Send + Unpin> Wire for S {}

/// What the parameters say.
#[derive(Clone, Debug, Default)]
pub struct TlsWords {
    authorities_file: String,
    authorities_dir: String,
    certificate_file: String,
    key_file: String,
    key_password: String,
    protocols: String,
}

impl TlsWords {
    /// What is said of replication; none where it is without TLS.
    pub fn of(settings: &Settings) -> Option<TlsWords> {
        if !settings.is_on("tls-replication") {
            return None;
        }
        let text = |name: &str| settings.text(name).to_owned();
        // Who has no certificate for connections that it makes shows the one that it has.
        let own = |client: &str, server: &str| match text(client) {
            empty if empty.is_empty() => text(server),
            said => said,
        };
        Some(TlsWords {
            authorities_file: text("tls-ca-cert-file"),
            authorities_dir: text("tls-ca-cert-dir"),
            certificate_file: own("tls-client-cert-file", "tls-cert-file"),
            key_file: own("tls-client-key-file", "tls-key-file"),
            key_password: own("tls-client-key-file-pass", "tls-key-file-pass"),
            protocols: text("tls-protocols"),
        })
    }
}

/// Says hello to a primary in TLS.
///
/// # Errors
/// In words: what is wrong with a parameter's file, or with the primary's certificate.
pub async fn connect(
    words: TlsWords,
    host: &str,
    stream: TcpStream,
) -> Result<Box<dyn Wire>, String> {
    let read = tokio::task::spawn_blocking(move || config(&words));
    let config = read.await.map_err(|_| "the files of TLS cannot be read".to_owned())??;
    let name = ServerName::try_from(host.to_owned());
    let name = name.map_err(|_| format!("{host} is no name for TLS"))?;
    let connector = TlsConnector::from(Arc::new(config));
    let connected = connector.connect(name, stream).await;
    let connected = connected.map_err(|error| format!("TLS (tls-replication): {error}"))?;
    Ok(Box::new(connected))
}

fn config(words: &TlsWords) -> Result<ClientConfig, String> {
    let provider = Arc::new(ring::default_provider());
    let believed = authorities(words)?;
    let mut roots = RootCertStore::empty();
    roots.add_parsable_certificates(believed.iter().cloned());
    let roots = Arc::new(roots);
    let chain = WebPkiServerVerifier::builder_with_provider(roots, provider.clone()).build();
    let chain = chain.map_err(|error| format!("tls-ca-cert-file: {error}"))?;
    let versions = versions(&words.protocols)?;
    let config = ClientConfig::builder_with_provider(provider)
        .with_protocol_versions(&versions)
        .map_err(|error| format!("tls-protocols: {error}"))?
        .dangerous()
        .with_custom_certificate_verifier(Arc::new(AnyName { chain, believed }));
    if words.certificate_file.is_empty() {
        return Ok(config.with_no_client_auth());
    }
    if !words.key_password.is_empty() {
        return Err("tls-client-key-file-pass: keys with a password are not read here".to_owned());
    }
    let own = read_certificates(Path::new(&words.certificate_file));
    let own = own.map_err(|error| format!("tls-client-cert-file: {error:#}"))?;
    let key = read_key(Path::new(&words.key_file));
    let key = key.map_err(|error| format!("tls-client-key-file: {error:#}"))?;
    let config = config.with_client_auth_cert(own, key);
    config.map_err(|error| format!("tls-client-cert-file and tls-client-key-file: {error}"))
}

/// Whom to believe.
fn authorities(words: &TlsWords) -> Result<Vec<CertificateDer<'static>>, String> {
    let mut believed = Vec::new();
    if !words.authorities_file.is_empty() {
        let found = read_certificates(Path::new(&words.authorities_file));
        let found = found.map_err(|error| format!("tls-ca-cert-file: {error:#}"))?;
        believed.extend(found);
    }
    if !words.authorities_dir.is_empty() {
        let dir = &words.authorities_dir;
        let listed = std::fs::read_dir(dir);
        let listed = listed.map_err(|error| format!("tls-ca-cert-dir: {dir}: {error}"))?;
        // What is no certificate there is no authority, and nothing worse.
        let found = listed.flatten().filter_map(|entry| read_certificates(&entry.path()).ok());
        believed.extend(found.flatten());
    }
    match believed.is_empty() {
        true => Err("tls-ca-cert-file or tls-ca-cert-dir must name the certificate of an \
                     authority when tls-replication is on"
            .to_owned()),
        false => Ok(believed),
    }
}

/// The versions of TLS that may be spoken; none said is all there are.
fn versions(said: &str) -> Result<Vec<&'static SupportedProtocolVersion>, String> {
    let known = [("TLSv1.2", &TLS12), ("TLSv1.3", &TLS13)];
    let words: Vec<&str> = said.split_whitespace().collect();
    let is_said = |name: &str| words.iter().any(|word| word.eq_ignore_ascii_case(name));
    let found = known.iter().filter(|(name, _)| words.is_empty() || is_said(name));
    let found: Vec<_> = found.map(|(_, version)| *version).collect();
    match found.is_empty() {
        true => Err(format!("tls-protocols: {said}: TLSv1.2 and TLSv1.3 are spoken here")),
        false => Ok(found),
    }
}

/// Proves the chain of a certificate, whatever name it has.
#[derive(Debug)]
struct AnyName {
    chain: Arc<WebPkiServerVerifier>,
    /// A server may show one of these itself: its own authority.
    believed: Vec<CertificateDer<'static>>,
}

impl ServerCertVerifier for AnyName {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        server_name: &ServerName<'_>,
        ocsp_response: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        if self.believed.iter().any(|one| one == end_entity) {
            return Ok(ServerCertVerified::assertion());
        }
        let proven = self.chain.verify_server_cert(
            end_entity,
            intermediates,
            server_name,
            ocsp_response,
            now,
        );
        match proven {
            // The name is looked at last, when all else has been proven.
            Err(Error::InvalidCertificate(
                CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. },
            )) => Ok(ServerCertVerified::assertion()),
            proven => proven,
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_missing_is_said() {
        let mut settings = Settings::default();
        assert!(TlsWords::of(&settings).is_none());
        settings.set("tls-replication", "yes").unwrap();
        let words = TlsWords::of(&settings).expect("it is on");
        let reason = config(&words).err().unwrap_or_default();
        assert!(reason.starts_with("tls-ca-cert-file or tls-ca-cert-dir"), "{reason}");
        settings.set("tls-ca-cert-file", "/nowhere/ca.crt").unwrap();
        let words = TlsWords::of(&settings).expect("it is on");
        let reason = config(&words).err().unwrap_or_default();
        assert!(reason.starts_with("tls-ca-cert-file: /nowhere/ca.crt"), "{reason}");
    }

    #[test]
    fn versions_are_those_that_are_said() {
        assert_eq!(versions("").unwrap().len(), 2);
        assert_eq!(versions("tlsv1.3 TLSv1.1").unwrap(), [&TLS13]);
        assert!(versions("TLSv1.1").is_err());
    }
}
