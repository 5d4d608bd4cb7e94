//! A real Prometheus beside the server under test: the one on the path, or what
//! `QUIPU_TEST_PROMETHEUS` names.

use crate::http::{Client, Response};
use crate::launch::signal;
use crate::poll;
use crate::programs::{Program, free_port};
use anyhow::{Result, ensure};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// It starts within that, also on a loaded machine.
const READY_TIMEOUT: Duration = Duration::from_secs(60);

/// The program that is started.
pub fn program() -> String {
    std::env::var("QUIPU_TEST_PROMETHEUS").unwrap_or("prometheus".to_string())
}

/// One that runs and is ready; killed when dropped.
pub struct Prometheus {
    program: Program,
    authority: String,
    configuration: PathBuf,
}

impl Prometheus {
    /// Starts it on a free port of loopback, with its configuration, data and log in a directory, and
    /// more flags. The configuration is told the authority it will have, as it may scrape itself.
    ///
    /// # Errors
    /// When it is not installed or does not get ready.
    pub fn start(
        directory: &Path,
        flags: &[&str],
        configuration: impl FnOnce(&str) -> String,
    ) -> Result<Prometheus> {
        let authority = format!("127.0.0.1:{}", free_port()?);
        let path = directory.join("prometheus.yml");
        std::fs::write(&path, configuration(&authority))?;
        let mut arguments = vec![
            format!("--config.file={}", path.display()),
            format!("--storage.tsdb.path={}", directory.join("prometheus").display()),
            format!("--web.listen-address={authority}"),
        ];
        arguments.extend(flags.iter().map(|flag| flag.to_string()));
        let program = Program::start(&program(), &arguments, &directory.join("prometheus.log"))?;
        let started = Prometheus { program, authority, configuration: path };
        poll("prometheus", READY_TIMEOUT, || {
            let ready = started.get("/-/ready")?;
            ensure!(ready.status == 200, "{}", ready.excerpt());
            Ok(())
        })?;
        Ok(started)
    }

    /// Host and port.
    pub fn authority(&self) -> &str {
        &self.authority
    }

    /// What it answers to a path.
    ///
    /// # Errors
    /// When it does not.
    pub fn get(&self, path: &str) -> Result<Response> {
        Client::new(&self.authority).get(path)
    }

    /// Gives it another configuration, which it takes up on its own time.
    ///
    /// # Errors
    /// When the file cannot be written or the process has ended.
    pub fn reconfigure(&self, configuration: &str) -> Result<()> {
        std::fs::write(&self.configuration, configuration)?;
        signal("HUP", self.program.pid())
    }
}
