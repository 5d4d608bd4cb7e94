//! A store of objects with an empty bucket: moto's server is the S3.

use crate::programs::python_with;
use crate::{Client, Program, free_port, poll};
use anyhow::{Context, Result, ensure};
use std::path::Path;
use std::time::Duration;
use tempfile::TempDir;

const PATIENCE: Duration = Duration::from_secs(60);
/// No message may have it.
pub const SECRET: &str = "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY";
/// What says who asks.
pub const ENVIRONMENT: [(&str, &str); 2] =
    [("AWS_ACCESS_KEY_ID", "AKIAIOSFODNN7EXAMPLE"), ("AWS_SECRET_ACCESS_KEY", SECRET)];
/// moto looks whether somebody says who they are, not whether it is so.
const SIGNED: &str = "AWS4-HMAC-SHA256 Credential=k/20240229/us-east-1/s3/aws4_request, \
                      SignedHeaders=host, Signature=0";

/// The store; its bucket is called `bucket`.
pub struct S3 {
    port: u16,
    /// What clients are told.
    pub endpoint: String,
    _moto: Program,
    root: TempDir,
}

impl S3 {
    /// Starts it.
    ///
    /// # Errors
    /// When moto is not installed, or does not answer.
    pub fn start() -> Result<S3> {
        let root = tempfile::tempdir()?;
        let python = python_with("moto.server")?;
        let port = free_port()?;
        let arguments = ["-m", "moto.server", "-H", "127.0.0.1", "-p", &port.to_string()];
        let arguments = arguments.map(str::to_owned);
        let python = python.to_str().context("a path of UTF-8")?;
        let moto = Program::start(python, &arguments, &root.path().join("moto.log"))?;
        let s3 = S3 { port, endpoint: format!("http://127.0.0.1:{port}"), _moto: moto, root };
        poll("moto", PATIENCE, || s3.send("PUT", "/bucket", b""))?;
        Ok(s3)
    }

    /// Its port.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// A directory that goes with it.
    pub fn root(&self) -> &Path {
        self.root.path()
    }

    /// The path of a file there.
    pub fn path(&self, name: &str) -> String {
        self.root.path().join(name).display().to_string()
    }

    /// Asks it something.
    ///
    /// # Errors
    /// When it refuses.
    pub fn send(&self, method: &str, path: &str, body: &[u8]) -> Result<String> {
        let mut client = Client::new(&format!("127.0.0.1:{}", self.port));
        let response = client.send(method, path, &[("Authorization", SIGNED)], body)?;
        ensure!(response.status < 300, "{method} {path}: {}", response.excerpt());
        Ok(response.text())
    }

    /// Puts an object.
    ///
    /// # Errors
    /// When it is refused.
    pub fn put(&self, key: &str, bytes: &[u8]) -> Result<()> {
        self.send("PUT", &format!("/bucket/{key}"), bytes).map(drop)
    }

    /// Puts all files of a directory below a key.
    ///
    /// # Errors
    /// When one cannot be read, or is refused.
    pub fn put_all(&self, key: &str, directory: &Path) -> Result<()> {
        for entry in std::fs::read_dir(directory)? {
            let path = entry?.path();
            let name = path.file_name().context("a name")?.to_string_lossy();
            let key = format!("{key}/{name}");
            match path.is_dir() {
                true => self.put_all(&key, &path)?,
                false => self.put(&key, &std::fs::read(&path)?)?,
            }
        }
        Ok(())
    }

    /// Names that begin so.
    ///
    /// # Errors
    /// When they cannot be listed.
    pub fn keys(&self, beginning: &str) -> Result<Vec<String>> {
        let text = self.send("GET", &format!("/bucket?list-type=2&prefix={beginning}"), b"")?;
        let keys = text.split("<Key>").skip(1).filter_map(|rest| rest.split_once("</Key>"));
        Ok(keys.map(|(key, _)| key.to_owned()).collect())
    }
}
