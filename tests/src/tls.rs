//! TLS by the program `openssl`: a certificate for a server, and a client.

use crate::run;
use anyhow::{Context, Result, ensure};
use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};

/// Makes a certificate for `localhost` and 127.0.0.1 in a directory; returns the paths of the certificate and its key.
///
/// # Errors
/// When `openssl` fails.
pub fn certificate(directory: &Path) -> Result<(String, String)> {
    let file = |name: &str| directory.join(name).display().to_string();
    let (cert, key) = (file("cert.pem"), file("key.pem"));
    let new = ["req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes"];
    let subject = ["-subj", "/CN=localhost", "-addext", "subjectAltName=IP:127.0.0.1"];
    let out = ["-days", "2", "-keyout", &key, "-out", &cert];
    let made = run("openssl", &[new.as_slice(), &subject, &out].concat())?;
    ensure!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
    Ok((cert, key))
}

/// Sends bytes over TLS and returns the answer; `options` are for `openssl s_client`.
///
/// # Errors
/// When `openssl` does not start, and when the connection is open after 20 seconds.
pub fn send_encrypted(options: &[&str], address: &str, bytes: &[u8]) -> Result<Vec<u8>> {
    let mut command = Command::new("timeout");
    command.args(["20", "openssl", "s_client"]).args(options).args(["-quiet", "-connect", address]);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
    let mut child = command.spawn().context("openssl")?;
    let mut stdin = child.stdin.take().context("no input")?;
    stdin.write_all(bytes)?;
    let output = child.wait_with_output()?;
    drop(stdin);
    ensure!(output.status.code() != Some(124), "the connection stays open after {bytes:?}");
    Ok(output.stdout)
}
