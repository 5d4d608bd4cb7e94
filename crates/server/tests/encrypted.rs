//! TLS by flags: a certificate of the test's own, HTTP/1.1 and line protocol through it, plain text
//! refused.

use crate::common::start;
use server::listeners::table::Listener;
use server::telemetry::Protocol;
use std::io::Write;
use std::sync::Arc;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::ServerName;
use tokio_rustls::rustls::{ClientConfig, RootCertStore};

#[test]
fn a_request_and_lines_through_tls() {
    let made =
        rcgen::generate_simple_self_signed(vec!["localhost".to_string()]).expect("a certificate");
    let directory = tempfile::tempdir().expect("a directory");
    let (cert, key) = (directory.path().join("cert.pem"), directory.path().join("key.pem"));
    std::fs::File::create(&cert)
        .and_then(|mut f| f.write_all(made.cert.pem().as_bytes()))
        .expect("written");
    std::fs::File::create(&key)
        .and_then(|mut f| f.write_all(made.signing_key.serialize_pem().as_bytes()))
        .expect("written");
    let (cert, key) = (cert.display().to_string(), key.display().to_string());
    let flags = [("tls-cert", cert.as_str()), ("tls-key", &key), ("influx-listen", "127.0.0.1:0")];
    let server = start(&flags);
    let mut roots = RootCertStore::empty();
    roots.add(made.cert.der().clone()).expect("a root");
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
    assert!(!answer.starts_with(b"HTTP"), "plain text gets no answer");
    server.stop();
}

#[test]
fn files_that_are_no_certificates_are_named() {
    let directory = tempfile::tempdir().expect("a directory");
    let file = directory.path().join("x.pem");
    std::fs::write(&file, "nothing").expect("written");
    let error = format!(
        "{:#}",
        server::listeners::tls::acceptor(&file, &file, &[]).err().expect("refused")
    );
    assert!(error.contains("x.pem") && error.contains("no certificate"), "{error}");
}
