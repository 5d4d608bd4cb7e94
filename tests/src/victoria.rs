//! A real VictoriaMetrics beside the server under test.

use crate::http::Client;
use crate::poll;
use crate::programs::{Program, free_port};
use anyhow::{Result, ensure};
use std::path::Path;
use std::time::Duration;

const READY_TIMEOUT: Duration = Duration::from_secs(60);

/// Starts it on a free port of loopback, with its data and log in a directory: the program, which
/// ends when it is dropped, and where it listens.
///
/// # Errors
/// When it is not installed or does not get ready.
pub fn start_victoria(directory: &Path) -> Result<(Program, String)> {
    let authority = format!("127.0.0.1:{}", free_port()?);
    let arguments = [
        format!("-storageDataPath={}", directory.join("victoria").display()),
        format!("-httpListenAddr={authority}"),
        "-retentionPeriod=100y".to_string(),
    ];
    let program = Program::start("victoria-metrics", &arguments, &directory.join("victoria.log"))?;
    poll("victoria-metrics", READY_TIMEOUT, || {
        ensure!(Client::new(&authority).get("/health")?.status == 200, "not ready");
        Ok(())
    })?;
    Ok((program, authority))
}
