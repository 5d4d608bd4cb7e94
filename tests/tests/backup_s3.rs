//! `quipu backup` to a bucket: moto's server is the S3. A build without the feature `s3` is left alone.

use crate::backup::{Said, backup};
use anyhow::{Context, Result, bail, ensure};
use e2e::Launch;
use e2e::s3::{ENVIRONMENT, S3, SECRET};
use std::io::{BufRead, BufReader, Write};
use std::net::TcpListener;
use std::path::Path;
use std::thread::spawn;

/// 2024-02-29 12:00:00 UTC in seconds.
const NOON: i64 = 1_709_208_000;
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

/// Names in the bucket below the place.
fn keys(s3: &S3, folder: &str) -> Result<Vec<String>> {
    s3.keys(&format!("of/backups/{folder}"))
}

fn say(s3: &S3, arguments: &[&str]) -> Result<Said> {
    let place = ["--to", PLACE, "--endpoint", &s3.endpoint];
    let said = backup(&[arguments, &place].concat(), &ENVIRONMENT)?;
    ensure!(!(said.out.clone() + &said.error).contains(SECRET), "a secret is said");
    Ok(said)
}

fn must(s3: &S3, arguments: &[&str]) -> Result<String> {
    let said = say(s3, arguments)?;
    ensure!(said.is_ok, "{arguments:?}: {}{}", said.out, said.error);
    Ok(said.out)
}

fn refusal(s3: &S3, arguments: &[&str]) -> Result<String> {
    let said = say(s3, arguments)?;
    ensure!(!said.is_ok, "{arguments:?} went well: {}", said.out);
    Ok(said.out + &said.error)
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
    must(&s3, &create)?;
    let first = keys(&s3, "blobs/")?;
    write("second")?;
    must(&s3, &create)?;
    let second = keys(&s3, "blobs/")?;
    assert!(!first.is_empty() && first.len() < second.len());
    assert!(second.len() < 2 * first.len(), "{} and {}", first.len(), second.len());
    let out = must(&s3, &create)?;
    assert!(out.contains("; sent: 0 blobs of 0 B"), "{out}");
    assert_eq!(keys(&s3, "marks/")?, Vec::<String>::new());
    must(&s3, &["verify"])?;
    let said = must(&s3, &["prune", "--keep", "1"])?;
    assert!(said.contains("removed 2 backups"), "{said}");
    assert_eq!(keys(&s3, "backups/")?.len(), 1);
    let expected = server.export("{__name__!=''}")?;
    server.kill()?;
    must(&s3, &["restore", "latest", "--data-dir", &s3.path("new")])?;
    let server = Launch::new(Path::new(&s3.path("new"))).start()?;
    assert_eq!(server.export("{__name__!=''}")?, expected);
    server.stop()?;
    // Rotten, then gone.
    let blob = keys(&s3, "blobs/")?.pop().context("blobs")?;
    let name = blob.rsplit_once('/').context("a folder")?.1.to_owned();
    s3.send("PUT", &format!("/bucket/{blob}"), b"rotten")?;
    let restore = ["restore", "--data-dir", &s3.path("rotten")];
    for arguments in [&["verify"][..], &restore] {
        let said = refusal(&s3, arguments)?;
        assert!(said.contains(&name) && said.contains("is rotten"), "{said}");
    }
    s3.send("DELETE", &format!("/bucket/{blob}"), b"")?;
    for arguments in [&["verify"][..], &restore] {
        let said = refusal(&s3, arguments)?;
        assert!(said.contains(&name) && said.contains("is missing"), "{said}");
    }
    Ok(())
}

/// Answers every request with 403, as a store does to whom it does not let in.
pub fn deny(listener: TcpListener) {
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
