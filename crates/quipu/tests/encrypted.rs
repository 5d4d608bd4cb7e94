//! TLS by flags: a certificate of the test's own, HTTP/1.1 and line protocol through it, plain text
//! refused.

use crate::common::start;
use net::listeners::table::Listener;
use net::telemetry::Protocol;
use std::io::Write;
use std::path::Path;
use std::sync::Arc;
use std::time::Instant;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::{CertificateDer, ServerName};
use tokio_rustls::rustls::{ClientConfig, RootCertStore};

/// Writes a certificate and its key; returns both paths, and the certificate.
fn certificate(directory: &Path) -> (String, String, CertificateDer<'static>) {
    let made =
        rcgen::generate_simple_self_signed(vec!["localhost".to_string()]).expect("a certificate");
    let (cert, key) = (directory.join("cert.pem"), directory.join("key.pem"));
    std::fs::write(&cert, made.cert.pem()).expect("written");
    std::fs::write(&key, made.signing_key.serialize_pem()).expect("written");
    (cert.display().to_string(), key.display().to_string(), made.cert.der().clone())
}

#[test]
fn a_request_and_lines_through_tls() {
    let directory = tempfile::tempdir().expect("a directory");
    let (cert, key, der) = certificate(directory.path());
    let flags = [("tls-cert", cert.as_str()), ("tls-key", &key), ("influx-listen", "127.0.0.1:0")];
    let server = start(&flags);
    let mut roots = RootCertStore::empty();
    roots.add(der).expect("a root");
    let config = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .expect("versions")
        .with_root_certificates(roots)
        .with_no_client_auth();
    let connector = TlsConnector::from(Arc::new(config));
    let name = ServerName::try_from("localhost").expect("a name");
    let text = server.block_on(async {
        let socket = TcpStream::connect(server.address).await.expect("a connection");
        let mut stream = connector.connect(name.clone(), socket).await.expect("a handshake");
        let request = b"GET /-/ready HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n";
        stream.write_all(request).await.expect("sent");
        let mut text = String::new();
        let _ = stream.read_to_string(&mut text).await;
        text
    });
    assert!(text.starts_with("HTTP/1.1 200"), "{text}");
    let lines = server.server().address_of(Listener::Influx).expect("it listens");
    server.block_on(async {
        let socket = TcpStream::connect(lines).await.expect("a connection");
        let mut stream = connector.connect(name, socket).await.expect("a handshake");
        stream.write_all(b"m v=1 1700000000000000000\n").await.expect("sent");
        stream.shutdown().await.expect("an end");
    });
    while server.app().telemetry.protocol(Protocol::InfluxTcp).samples.get() == 0 {
        std::thread::yield_now();
    }
    let mut plain = server.connect();
    plain.write_all(b"GET /-/ready HTTP/1.1\r\nhost: localhost\r\n\r\n").expect("sent");
    let mut answer = Vec::new();
    let _ = std::io::Read::read_to_end(&mut plain, &mut answer);
    let answer = String::from_utf8_lossy(&answer);
    assert!(answer.starts_with("HTTP/1.1 400") && answer.contains("https://"), "{answer}");
    server.stop();
}

#[test]
fn connections_that_never_shake_hands_are_not_over_the_limit() {
    let directory = tempfile::tempdir().expect("a directory");
    let (cert, key, _) = certificate(directory.path());
    let flags = [("tls-cert", cert.as_str()), ("tls-key", &key), ("http.max-connections", "2")];
    let server = start(&flags);
    let mut streams: Vec<_> = (0..9).map(|_| server.connect()).collect();
    // Longer than a handshake may take would be an end, too; but then they were all open.
    for stream in &mut streams[..7] {
        let began = Instant::now();
        let mut answer = Vec::new();
        let _ = std::io::Read::read_to_end(stream, &mut answer);
        assert!(began.elapsed() < server.app().config.http.header_timeout / 2, "still open");
    }
    server.stop();
}

#[test]
fn files_that_are_no_certificates_are_named() {
    let directory = tempfile::tempdir().expect("a directory");
    let file = directory.path().join("x.pem");
    std::fs::write(&file, "nothing").expect("written");
    let error =
        format!("{:#}", net::listeners::tls::acceptor(&file, &file, &[]).err().expect("refused"));
    assert!(error.contains("x.pem") && error.contains("no certificate"), "{error}");
}
