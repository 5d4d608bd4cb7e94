//! `quipu backup` to a bucket: moto's server is the S3. A build without the feature `s3` is left alone.

use crate::backup::{Said, backup};
use anyhow::{Context, Result, bail, ensure};
use e2e::programs::python_with;
use e2e::{Client, Launch, Program, free_port, poll};
use std::io::{BufRead, BufReader, Write};
use std::net::TcpListener;
use std::path::Path;
use std::thread::spawn;
use std::time::Duration;
use tempfile::TempDir;

const PATIENCE: Duration = Duration::from_secs(60);
/// 2024-02-29 12:00:00 UTC in seconds.
const NOON: i64 = 1_709_208_000;
const SECRET: &str = "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY";
const ENVIRONMENT: [(&str, &str); 2] =
    [("AWS_ACCESS_KEY_ID", "AKIAIOSFODNN7EXAMPLE"), ("AWS_SECRET_ACCESS_KEY", SECRET)];
/// moto looks whether somebody says who they are, not whether it is so.
const SIGNED: &str = "AWS4-HMAC-SHA256 Credential=k/20240229/us-east-1/s3/aws4_request, \
                      SignedHeaders=host, Signature=0";
const PLACE: &str = "s3://bucket/of/backups";

/// Whether the binary knows buckets.
fn is_built() -> Result<bool> {
    let said = backup(&["list", "--help"], &[])?;
    let is_built = said.out.contains("--endpoint");
    if !is_built {
        println!("left out: this binary is without the feature s3");
    }
    Ok(is_built)
}

/// A store of objects with an empty bucket.
struct S3 {
    port: u16,
    endpoint: String,
    _moto: Program,
    root: TempDir,
}

impl S3 {
    fn start() -> Result<S3> {
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

    fn send(&self, method: &str, path: &str, body: &[u8]) -> Result<String> {
        let mut client = Client::new(&format!("127.0.0.1:{}", self.port));
        let response = client.send(method, path, &[("Authorization", SIGNED)], body)?;
        ensure!(response.status < 300, "{method} {path}: {}", response.excerpt());
        Ok(response.text())
    }

    /// Names in the bucket below the place.
    fn keys(&self, folder: &str) -> Result<Vec<String>> {
        let text =
            self.send("GET", &format!("/bucket?list-type=2&prefix=of/backups/{folder}"), b"")?;
        let keys = text.split("<Key>").skip(1).filter_map(|rest| rest.split_once("</Key>"));
        Ok(keys.map(|(key, _)| key.to_owned()).collect())
    }

    fn say(&self, arguments: &[&str]) -> Result<Said> {
        let place = ["--to", PLACE, "--endpoint", &self.endpoint];
        let said = backup(&[arguments, &place].concat(), &ENVIRONMENT)?;
        ensure!(!(said.out.clone() + &said.error).contains(SECRET), "a secret is said");
        Ok(said)
    }

    fn must(&self, arguments: &[&str]) -> Result<String> {
        let said = self.say(arguments)?;
        ensure!(said.is_ok, "{arguments:?}: {}{}", said.out, said.error);
        Ok(said.out)
    }

    fn refusal(&self, arguments: &[&str]) -> Result<String> {
        let said = self.say(arguments)?;
        ensure!(!said.is_ok, "{arguments:?} went well: {}", said.out);
        Ok(said.out + &said.error)
    }

    fn path(&self, name: &str) -> String {
        self.root.path().join(name).display().to_string()
    }
}

#[test]
fn a_bucket_keeps_backups_and_gives_them_back() -> Result<()> {
    if !is_built()? {
        return Ok(());
    }
    let s3 = S3::start()?;
    let server = Launch::new(Path::new(&s3.path("data"))).start()?;
    let (data, url) = (s3.path("data"), server.url().to_owned());
    let create = ["create", "--url", &url, "--data-dir", &data];
    let write = |name: &str| {
        let line = |second: i64| format!("{name},host=h v={second} {}\n", NOON + second);
        server.write("/write?precision=s", (0..500).map(line).collect::<String>())
    };
    write("first")?;
    s3.must(&create)?;
    let first = s3.keys("blobs/")?;
    write("second")?;
    s3.must(&create)?;
    let second = s3.keys("blobs/")?;
    assert!(!first.is_empty() && first.len() < second.len());
    assert!(second.len() < 2 * first.len(), "{} and {}", first.len(), second.len());
    let out = s3.must(&create)?;
    assert!(out.contains("; 0 blobs of 0 B were sent"), "{out}");
    assert_eq!(s3.keys("marks/")?, Vec::<String>::new());
    s3.must(&["verify"])?;
    let said = s3.must(&["prune", "--keep", "1"])?;
    assert!(said.contains("removed 2 backups"), "{said}");
    assert_eq!(s3.keys("backups/")?.len(), 1);
    let expected = server.export("{__name__!=''}")?;
    server.kill()?;
    s3.must(&["restore", "latest", "--data-dir", &s3.path("new")])?;
    let server = Launch::new(Path::new(&s3.path("new"))).start()?;
    assert_eq!(server.export("{__name__!=''}")?, expected);
    server.stop()?;
    // Rotten, then gone.
    let blob = s3.keys("blobs/")?.pop().context("blobs")?;
    let name = blob.rsplit_once('/').context("a folder")?.1.to_owned();
    s3.send("PUT", &format!("/bucket/{blob}"), b"rotten")?;
    let restore = ["restore", "--data-dir", &s3.path("rotten")];
    for arguments in [&["verify"][..], &restore] {
        let said = s3.refusal(arguments)?;
        assert!(said.contains(&name) && said.contains("is rotten"), "{said}");
    }
    s3.send("DELETE", &format!("/bucket/{blob}"), b"")?;
    for arguments in [&["verify"][..], &restore] {
        let said = s3.refusal(arguments)?;
        assert!(said.contains(&name) && said.contains("is missing"), "{said}");
    }
    Ok(())
}

/// Answers every request with 403, as a store does to whom it does not let in.
fn deny(listener: TcpListener) {
    let body = "<Error><Code>AccessDenied</Code><Message>Access Denied</Message></Error>";
    for stream in listener.incoming().flatten() {
        let mut reader = BufReader::new(stream);
        let mut line = String::new();
        while reader.read_line(&mut line).is_ok_and(|size| 2 < size) {
            line.clear();
        }
        let head = format!("HTTP/1.1 403 Forbidden\r\nContent-Length: {}\r\n", body.len());
        let _ = write!(reader.get_mut(), "{head}Connection: close\r\n\r\n{body}");
    }
}

#[test]
fn who_may_not_come_in_is_told_what_to_do() -> Result<()> {
    if !is_built()? {
        return Ok(());
    }
    let s3 = S3::start()?;
    let list = ["list", "--endpoint", &s3.endpoint];
    // A file stands for the environment, whose credentials would do.
    let file = s3.path("credentials");
    std::fs::write(&file, "[default]\naws_access_key_id = k\n")?;
    let with_file = [&list[..], &["--to", PLACE, "--credentials-file", &file]].concat();
    let said = backup(&with_file, &ENVIRONMENT)?;
    ensure!(
        !said.is_ok && said.error.contains("default has no aws_secret_access_key"),
        "{}",
        said.error
    );
    std::fs::write(
        &file,
        format!("[default]\naws_access_key_id = k\naws_secret_access_key = {SECRET}\n"),
    )?;
    let said = backup(&with_file, &[])?;
    ensure!(
        said.error.contains("there are no backups in s3://bucket/of/backups"),
        "{}",
        said.error
    );
    let said = backup(&[&list[..], &["--to", PLACE]].concat(), &[])?;
    ensure!(said.error.contains("no credentials: say --credentials-file"), "{}", said.error);
    let said = backup(&[&list[..], &["--to", "s3://nobody/x"]].concat(), &ENVIRONMENT)?;
    ensure!(said.error.contains("there is no bucket nobody"), "{}", said.error);
    let listener = TcpListener::bind("127.0.0.1:0")?;
    let endpoint = format!("http://{}", listener.local_addr()?);
    spawn(move || deny(listener));
    let said = backup(&["list", "--to", PLACE, "--endpoint", &endpoint], &ENVIRONMENT)?;
    if said.is_ok || !said.error.contains("denied: these credentials need s3:ListBucket") {
        bail!("{}", said.error);
    }
    ensure!(!said.error.contains(SECRET), "a secret is said");
    Ok(())
}
