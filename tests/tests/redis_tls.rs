//! Replication in TLS between a real Redis and the real binary, either way.

use crate::redis_moving::fill;
use anyhow::{Result, ensure};
use e2e::redis::door_port;
use e2e::{Launch, Redis, RedisClient, free_port, poll, run};
use std::path::{Path, PathBuf};
use std::time::Duration;

const PATIENCE: Duration = Duration::from_secs(60);

/// An authority, and a certificate that it made: of no name that anybody connects to.
struct Certificates(PathBuf);

impl Certificates {
    fn make(directory: &Path) -> Result<Certificates> {
        let made = Certificates(directory.to_path_buf());
        std::fs::write(directory.join("extensions"), "basicConstraints=CA:FALSE\n")?;
        let new = "-newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes";
        let file = |name: &str| made.file(name);
        for line in [
            format!(
                "req -x509 {new} -subj /CN=authority -days 2 -keyout {} -out {}",
                file("ca.key"),
                file("ca.crt")
            ),
            format!(
                "req {new} -subj /CN=somebody -keyout {} -out {}",
                file("own.key"),
                file("own.csr")
            ),
            format!(
                "x509 -req -in {} -CA {} -CAkey {} -CAcreateserial -days 2 -extfile {} -out {}",
                file("own.csr"),
                file("ca.crt"),
                file("ca.key"),
                file("extensions"),
                file("own.crt")
            ),
        ] {
            let words: Vec<&str> = line.split_whitespace().collect();
            let done = run("openssl", &words)?;
            ensure!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
        }
        Ok(made)
    }

    fn file(&self, name: &str) -> String {
        self.0.join(name).display().to_string()
    }

    /// The arguments of a Redis that replicates in TLS.
    fn of_redis(&self) -> Vec<String> {
        let words = [
            ("--tls-replication", "yes".to_owned()),
            ("--tls-ca-cert-file", self.file("ca.crt")),
            ("--tls-cert-file", self.file("own.crt")),
            ("--tls-key-file", self.file("own.key")),
        ];
        words.into_iter().flat_map(|(name, value)| [name.to_owned(), value]).collect()
    }
}

fn strs(words: &[String]) -> Vec<&str> {
    words.iter().map(String::as_str).collect()
}

fn await_link(replica: &mut RedisClient) -> Result<()> {
    poll("the link to the primary", PATIENCE, || {
        let status = replica.info("master_link_status")?;
        ensure!(status == "up", "{status}: {:?}", replica.info("quipu_replica_failure"));
        Ok(())
    })
}

#[test]
fn quipu_follows_a_redis_in_tls_that_wants_a_certificate() -> Result<()> {
    let directory = tempfile::tempdir()?;
    let certificates = Certificates::make(directory.path())?;
    let port = free_port()?.to_string();
    let mut words = certificates.of_redis();
    words.extend(["--tls-port", &port, "--repl-diskless-sync-delay", "0"].map(str::to_owned));
    let redis = Redis::start(directory.path(), &strs(&words))?;
    let mut primary = redis.client()?;
    fill(&mut primary)?;
    let data = directory.path().join("data");
    let server = Launch::new(&data).flag("redis-listen", "127.0.0.1:0").start()?;
    let mut replica = RedisClient::of(&server)?;
    let failure = |replica: &mut RedisClient, words: &str| {
        poll("why the link is down", PATIENCE, || {
            let found = replica.info("quipu_replica_failure")?;
            ensure!(found.contains(words), "{found}");
            Ok(())
        })
    };
    replica.must("CONFIG SET tls-replication yes")?;
    replica.must(&format!("REPLICAOF 127.0.0.1 {port}"))?;
    failure(&mut replica, "tls-ca-cert-file or tls-ca-cert-dir must name")?;
    // Nobody else's authority is believed.
    let other = tempfile::tempdir()?;
    let others = Certificates::make(other.path())?;
    replica.must(&format!("CONFIG SET tls-ca-cert-file {}", others.file("ca.crt")))?;
    failure(&mut replica, "TLS (tls-replication): invalid peer certificate")?;
    // The primary wants to know who comes (tls-auth-clients).
    replica.must(&format!("CONFIG SET tls-ca-cert-file {}", certificates.file("ca.crt")))?;
    failure(&mut replica, "ertificate")?;
    let (own, key) = (certificates.file("own.crt"), certificates.file("own.key"));
    replica.must(&format!("CONFIG SET tls-client-cert-file {own} tls-client-key-file {key}"))?;
    await_link(&mut replica)?;
    primary.must("SET later 1")?;
    poll("what comes later", PATIENCE, || {
        ensure!(replica.say("GET later")?.text() == "1");
        ensure!(replica.contents()? == primary.contents()?);
        Ok(())
    })?;
    ensure!(primary.info("slave0")?.contains("state=online"));
    server.stop()
}

#[test]
fn a_redis_follows_quipu_in_tls() -> Result<()> {
    let directory = tempfile::tempdir()?;
    let certificates = Certificates::make(directory.path())?;
    let data = directory.path().join("data");
    let launch = Launch::new(&data)
        .flag("redis-listen", "127.0.0.1:0")
        .flag("redis.enable-debug-command", "local");
    let (cert, key) = (certificates.file("own.crt"), certificates.file("own.key"));
    let server = launch.flag("tls-cert", &cert).flag("tls-key", &key).start()?;
    let port = door_port(&server)?.to_string();
    let said = |line: &str| -> Result<String> {
        let ca = certificates.file("ca.crt");
        let own = ["-p", &port, "--tls", "--insecure", "--cacert", &ca];
        let words: Vec<&str> = own.into_iter().chain(line.split_whitespace()).collect();
        let done = run("redis-cli", &words)?;
        ensure!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
        Ok(String::from_utf8_lossy(&done.stdout).trim().to_owned())
    };
    assert_eq!(said("SET before 1")?, "OK");
    assert_eq!(said("DEBUG POPULATE 5000 many 100")?, "OK");
    let mut words = certificates.of_redis();
    words.extend(["--replicaof", "127.0.0.1", &port].map(str::to_owned));
    let redis = Redis::start(directory.path(), &strs(&words))?;
    let mut replica = redis.client()?;
    await_link(&mut replica)?;
    assert_eq!(said("SET after 2")?, "OK");
    assert_eq!(said("WAIT 1 30000")?, "1");
    assert_eq!(replica.must("GET before")?.text(), "1");
    assert_eq!(replica.must("GET after")?.text(), "2");
    assert_eq!(replica.must("DBSIZE")?.int(), 5002);
    server.stop()
}
