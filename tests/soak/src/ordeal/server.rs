//! Quipu with a small head and log behind the shim, started and killed within milliseconds.

use super::shim::Shim;
use anyhow::{Context, Result, bail};
use quipu_bench::http::HttpClient;
use std::fs::OpenOptions;
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

const POLL: Duration = Duration::from_millis(2);
const READY_TIMEOUT: Duration = Duration::from_secs(30);
const STOP_TIMEOUT: Duration = Duration::from_secs(30);
/// Small, so that every round flushes and merges.
const FLAGS: [&str; 6] = [
    "--head-size=8MiB",
    "--wal-size=1MiB",
    "--free-disk-min=1MiB",
    "--self-scrape-interval=0",
    "--query.cache-memory=0",
    "--log-level=warn",
];

/// A server that runs; killed when dropped.
pub struct Server {
    child: Child,
    authority: String,
    log: PathBuf,
}

impl Server {
    /// Starts a server and waits until it serves.
    ///
    /// # Errors
    /// When it ends, or takes too long; the message has the end of its log.
    pub fn start(
        binary: &Path,
        data_dir: &Path,
        log: &Path,
        shim: Option<&Shim>,
    ) -> Result<Server> {
        Server::start_with(binary, data_dir, log, shim, &["--redis-listen="])
    }

    /// The same with flags of the caller's.
    ///
    /// # Errors
    /// As [`Server::start`].
    pub fn start_with(
        binary: &Path,
        data_dir: &Path,
        log: &Path,
        shim: Option<&Shim>,
        flags: &[&str],
    ) -> Result<Server> {
        let port = free_port()?;
        let authority = format!("127.0.0.1:{port}");
        let output = OpenOptions::new().create(true).append(true).open(log)?;
        let mut command = clean_command(binary);
        command.arg("serve").arg("--data-dir").arg(data_dir);
        command.args(["--http-listen", &authority]).args(FLAGS).args(flags);
        command.stdin(Stdio::null()).stdout(output.try_clone()?).stderr(output);
        if let Some(shim) = shim {
            shim.load(&mut command);
        }
        let child = command.spawn().context("cannot start the server")?;
        let mut server = Server { child, authority, log: log.to_path_buf() };
        server.wait_until_ready()?;
        Ok(server)
    }

    fn wait_until_ready(&mut self) -> Result<()> {
        let start = Instant::now();
        let mut client = HttpClient::new(&self.authority, READY_TIMEOUT);
        while start.elapsed() < READY_TIMEOUT {
            if client.get("/-/ready").is_ok_and(|answer| answer.status == 200) {
                return Ok(());
            }
            if let Some(status) = self.child.try_wait()? {
                bail!("does not open: {status}; its log ends:\n{}", self.log_end());
            }
            std::thread::sleep(POLL);
        }
        bail!("is not ready; its log ends:\n{}", self.log_end())
    }

    /// `host:port`.
    pub fn authority(&self) -> &str {
        &self.authority
    }

    /// Ends it at once.
    ///
    /// # Errors
    /// When it had ended by itself, which is never its right.
    pub fn kill(mut self) -> Result<()> {
        if let Some(status) = self.child.try_wait()? {
            bail!("had ended with {status}; its log ends:\n{}", self.log_end());
        }
        self.child.kill()?;
        self.child.wait()?;
        Ok(())
    }

    /// Asks it to end and waits until it has.
    ///
    /// # Errors
    /// When it does not, or dies of something. One whose disk has failed says so by its status.
    pub fn stop(mut self) -> Result<()> {
        Command::new("kill").args(["-TERM", &self.child.id().to_string()]).status()?;
        let start = Instant::now();
        while start.elapsed() < STOP_TIMEOUT {
            if let Some(status) = self.child.try_wait()? {
                if matches!(status.code(), Some(0 | 1)) {
                    return Ok(());
                }
                bail!("stopped with {status}; its log ends:\n{}", self.log_end());
            }
            std::thread::sleep(POLL);
        }
        bail!("does not stop; its log ends:\n{}", self.log_end())
    }

    fn log_end(&self) -> String {
        let text = std::fs::read(&self.log).unwrap_or_default();
        let text = String::from_utf8_lossy(&text);
        let lines: Vec<&str> = text.lines().collect();
        lines[lines.len().saturating_sub(8)..].join("\n")
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // Fails when the process has ended already, which is what is wanted.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A port of loopback that nobody listens on now.
///
/// # Errors
/// When there is none.
pub fn free_port() -> Result<u16> {
    Ok(TcpListener::bind("127.0.0.1:0")?.local_addr()?.port())
}

/// A command of the binary without variables of others, which it would refuse.
pub fn clean_command(binary: &Path) -> Command {
    let mut command = Command::new(binary);
    for (name, _) in std::env::vars_os() {
        if name.as_encoded_bytes().starts_with(b"QUIPU_") {
            command.env_remove(name);
        }
    }
    command
}

/// What `verify` says of a directory that no server has open; nothing when all is well.
///
/// # Errors
/// When it cannot be run.
pub fn verify(binary: &Path, data_dir: &Path) -> Result<Option<String>> {
    let output = clean_command(binary).arg("verify").arg("--data-dir").arg(data_dir).output()?;
    let text = [output.stdout, output.stderr].concat();
    let text = String::from_utf8_lossy(&text).into_owned();
    Ok((!output.status.success()).then_some(text))
}
