//! A started server: a child process with a log, watched, and killed when dropped.

use super::Installed;
use crate::http::HttpClient;
use crate::observe::Observed;
use anyhow::{Context, Result, bail, ensure};
use std::fs::OpenOptions;
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

/// Pause between two looks at a child or its readiness.
const POLL: Duration = Duration::from_millis(5);
/// A server that is not ready after so long has failed.
const READY_TIMEOUT: Duration = Duration::from_secs(600);
/// A server that does not end so long after SIGTERM is killed.
const STOP_TIMEOUT: Duration = Duration::from_secs(600);

/// A server that runs.
pub struct RunningServer {
    child: Child,
    authority: String,
    data_dir: PathBuf,
    log: PathBuf,
    ready_path: &'static str,
}

impl RunningServer {
    /// Starts a server over `data_dir`; its output is appended to `log`. It may not be ready yet.
    ///
    /// # Errors
    /// When it cannot be started.
    pub fn spawn(installed: &Installed, data_dir: &Path, log: &Path) -> Result<RunningServer> {
        let port = free_port()?;
        let output = OpenOptions::new().create(true).append(true).open(log)?;
        let child = Command::new(&installed.binary)
            .args((installed.peer.serve_arguments)(data_dir, port))
            .envs(installed.peer.environment.iter().copied())
            .stdin(Stdio::null())
            .stdout(output.try_clone()?)
            .stderr(output)
            .spawn()
            .with_context(|| format!("cannot start {}", installed.binary.display()))?;
        Ok(RunningServer {
            child,
            authority: format!("127.0.0.1:{port}"),
            data_dir: data_dir.to_path_buf(),
            log: log.to_path_buf(),
            ready_path: installed.peer.ready_path,
        })
    }

    /// Starts a server and waits until it is ready.
    ///
    /// # Errors
    /// When it ends, or takes too long.
    pub fn start(installed: &Installed, data_dir: &Path, log: &Path) -> Result<RunningServer> {
        let mut server = RunningServer::spawn(installed, data_dir, log)?;
        server.wait_until_ready()?;
        Ok(server)
    }

    /// Waits until the server says that it serves.
    ///
    /// # Errors
    /// When it ends, or takes too long; the message has the end of its log.
    pub fn wait_until_ready(&mut self) -> Result<()> {
        let start = Instant::now();
        let mut client = HttpClient::new(&self.authority, Duration::from_secs(10));
        while start.elapsed() < READY_TIMEOUT {
            if client.get(self.ready_path).is_ok_and(|answer| answer.status == 200) {
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
        Observed { pid: Some(self.child.id()), data_dir: Some(self.data_dir.clone()) }
    }

    /// Asks the server to stop and waits until it has.
    ///
    /// # Errors
    /// When it does not stop in time (it is then killed) or fails while stopping.
    pub fn stop(mut self) -> Result<Duration> {
        let start = Instant::now();
        terminate(self.child.id())?;
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
        // Fails when the process has ended already, which is what we want.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Sends SIGTERM. Without `unsafe` there is no call for it, so the tool of that name does.
fn terminate(pid: u32) -> Result<()> {
    let status = Command::new("kill").args(["-TERM", &pid.to_string()]).status()?;
    ensure!(status.success(), "cannot send SIGTERM to process {pid}");
    Ok(())
}

fn check_stopped(status: ExitStatus, log_end: &str) -> Result<()> {
    ensure!(status.success(), "the server stopped with {status}; its log ends:\n{log_end}");
    Ok(())
}

/// A port of loopback that nobody listens on now.
///
/// # Errors
/// When there is none.
fn free_port() -> Result<u16> {
    Ok(TcpListener::bind("127.0.0.1:0")?.local_addr()?.port())
}
