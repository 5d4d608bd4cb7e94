//! A started server: a child process with a log, watched, and killed when dropped.

use super::account::{self, Account};
use super::{Installed, Peer, Place, Processes, Ready};
use crate::http::HttpClient;
use crate::observe::{Observed, Watched};
use crate::sql::SqlClient;
use anyhow::{Context, Result, bail, ensure};
use std::fs::OpenOptions;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

/// Pause between two looks at a child or its readiness.
const POLL: Duration = Duration::from_millis(5);
/// A server that is not ready after so long has failed.
const READY_TIMEOUT: Duration = Duration::from_secs(600);
/// A server that does not end so long after SIGTERM is killed.
const STOP_TIMEOUT: Duration = Duration::from_secs(600);
/// An answer to "are you ready" may take so long.
const READY_ANSWER_TIMEOUT: Duration = Duration::from_secs(10);
/// Processes of a dropped server may take so long to end each other.
const ABORT_TIMEOUT: Duration = Duration::from_secs(10);

/// A server that runs.
pub struct RunningServer {
    child: Child,
    peer: &'static Peer,
    authority: String,
    log: PathBuf,
    observed: Observed,
}

impl RunningServer {
    /// Starts a server over `data_dir`; its output is appended to `log`. It may not be ready yet.
    ///
    /// # Errors
    /// When it cannot be prepared or started.
    pub fn spawn(installed: &Installed, data_dir: &Path, log: &Path) -> Result<RunningServer> {
        RunningServer::spawn_with(installed, data_dir, log, &[])
    }

    /// As [`RunningServer::spawn`], with environment variables besides the peer's own.
    fn spawn_with(
        installed: &Installed,
        data_dir: &Path,
        log: &Path,
        variables: &[(&str, String)],
    ) -> Result<RunningServer> {
        let peer = installed.peer;
        let place = place(data_dir)?;
        let account = Account::of(peer)?;
        if let Some(account) = account {
            account.own(&place.data_dir)?;
        }
        (peer.prepare)(installed, &place)?;
        let output = OpenOptions::new().create(true).append(true).open(log)?;
        let mut command = account::command(account, &std::path::absolute(&installed.binary)?);
        for (name, _) in std::env::vars_os() {
            // Quipu refuses variables of its name that it does not know, such as those of tests.
            if name.as_encoded_bytes().starts_with(b"QUIPU_") {
                command.env_remove(name);
            }
        }
        let child = command
            .args((peer.serve_arguments)(&place))
            .envs((peer.environment)(&place))
            .envs(variables.iter().map(|(name, value)| (name, value)))
            .stdin(Stdio::null())
            .stdout(output.try_clone()?)
            .stderr(output)
            .spawn()
            .with_context(|| format!("cannot start {}", installed.binary.display()))?;
        let watched = match peer.processes {
            Processes::One => Watched::One,
            Processes::Tree => Watched::tree(),
        };
        let observed = Observed { pid: Some(child.id()), data_dir: Some(place.data_dir), watched };
        let authority = format!("127.0.0.1:{}", place.port);
        Ok(RunningServer { child, peer, authority, log: log.to_path_buf(), observed })
    }

    /// Starts a server and waits until it can be written to.
    ///
    /// # Errors
    /// When it ends, or takes too long.
    pub fn start(installed: &Installed, data_dir: &Path, log: &Path) -> Result<RunningServer> {
        RunningServer::start_with(installed, data_dir, log, &[])
    }

    /// As [`RunningServer::start`], with environment variables besides the peer's own.
    ///
    /// # Errors
    /// As there.
    pub fn start_with(
        installed: &Installed,
        data_dir: &Path,
        log: &Path,
        variables: &[(&str, String)],
    ) -> Result<RunningServer> {
        let mut server = RunningServer::spawn_with(installed, data_dir, log, variables)?;
        server.wait_until_ready()?;
        (server.peer.set_up)(&server.authority)
            .with_context(|| format!("cannot set {} up", server.peer.name))?;
        Ok(server)
    }

    /// Waits until the server says that it serves.
    ///
    /// # Errors
    /// When it ends, or takes too long; the message has the end of its log.
    pub fn wait_until_ready(&mut self) -> Result<()> {
        let start = Instant::now();
        while start.elapsed() < READY_TIMEOUT {
            if is_ready(self.peer.ready, &self.authority) {
                return Ok(());
            }
            if let Some(status) = self.child.try_wait()? {
                bail!("the server ended with {status}; its log ends:\n{}", self.log_end());
            }
            std::thread::sleep(POLL);
        }
        bail!("the server is not ready; its log ends:\n{}", self.log_end())
    }

    /// `host:port` to connect to.
    pub fn authority(&self) -> &str {
        &self.authority
    }

    /// The process and directory to watch.
    pub fn observed(&self) -> Observed {
        self.observed.clone()
    }

    /// Asks the server to stop and waits until it has.
    ///
    /// # Errors
    /// When it does not stop in time (it is then killed) or fails while stopping.
    pub fn stop(mut self) -> Result<Duration> {
        let start = Instant::now();
        signal(self.child.id(), self.peer.stop_signal)?;
        while start.elapsed() < STOP_TIMEOUT {
            if let Some(status) = self.child.try_wait()? {
                check_stopped(status, &self.log_end())?;
                return Ok(start.elapsed());
            }
            std::thread::sleep(POLL);
        }
        bail!("the server did not stop; its log ends:\n{}", self.log_end())
    }

    /// Ends the process at once, as a power cut or the kernel's memory killer would.
    ///
    /// # Errors
    /// When it had ended by itself before, which is never its right.
    pub fn kill(mut self) -> Result<()> {
        if let Some(status) = self.child.try_wait()? {
            bail!("the server had ended with {status}; its log ends:\n{}", self.log_end());
        }
        self.child.kill()?;
        self.child.wait()?;
        Ok(())
    }

    /// The last lines of the server's output.
    pub fn log_end(&self) -> String {
        let text = std::fs::read(&self.log).unwrap_or_default();
        let text = String::from_utf8_lossy(&text);
        let lines = text.lines().collect::<Vec<_>>();
        lines[lines.len().saturating_sub(15)..].join("\n")
    }
}

impl Drop for RunningServer {
    fn drop(&mut self) {
        if matches!(self.child.try_wait(), Ok(Some(_))) {
            return;
        }
        if self.peer.processes == Processes::Tree {
            self.abort_tree();
        }
        // Fails when the process has ended already, which is what we want.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl RunningServer {
    /// Lets the first process end its descendants, which would outlive it if it were killed.
    fn abort_tree(&mut self) {
        let start = Instant::now();
        if signal(self.child.id(), "QUIT").is_err() {
            return;
        }
        while start.elapsed() < ABORT_TIMEOUT && matches!(self.child.try_wait(), Ok(None)) {
            std::thread::sleep(POLL);
        }
    }
}

fn is_ready(ready: Ready, authority: &str) -> bool {
    match ready {
        Ready::Http(path) => HttpClient::new(authority, READY_ANSWER_TIMEOUT)
            .get(path)
            .is_ok_and(|answer| (200..300).contains(&answer.status)),
        Ready::Sql => SqlClient::new(authority, READY_ANSWER_TIMEOUT).execute("SELECT 1").is_ok(),
        Ready::RedisPing => answers_ping(authority).unwrap_or(false),
    }
}

fn answers_ping(authority: &str) -> std::io::Result<bool> {
    let mut stream = TcpStream::connect(authority)?;
    stream.set_read_timeout(Some(READY_ANSWER_TIMEOUT))?;
    stream.write_all(b"PING\r\n")?;
    let mut answer = [0; 7];
    stream.read_exact(&mut answer)?;
    Ok(&answer == b"+PONG\r\n")
}

/// Sends a signal. Without `unsafe` there is no call for it, so the tool of that name does.
fn signal(pid: u32, name: &str) -> Result<()> {
    let status = Command::new("kill").args([&format!("-{name}"), &pid.to_string()]).status()?;
    ensure!(status.success(), "cannot send SIG{name} to process {pid}");
    Ok(())
}

fn check_stopped(status: ExitStatus, log_end: &str) -> Result<()> {
    ensure!(status.success(), "the server stopped with {status}; its log ends:\n{log_end}");
    Ok(())
}

/// The directory, and two ports of loopback that nobody listens on now.
fn place(data_dir: &Path) -> Result<Place> {
    // Both are held until both are chosen, so they differ.
    let listeners = [TcpListener::bind("127.0.0.1:0")?, TcpListener::bind("127.0.0.1:0")?];
    Ok(Place {
        data_dir: std::path::absolute(data_dir)?,
        port: listeners[0].local_addr()?.port(),
        spare_port: listeners[1].local_addr()?.port(),
    })
}
