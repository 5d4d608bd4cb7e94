//! A real InfluxDB 1.x beside the server under test, and lines that are written to both.

use crate::http::Client;
use crate::poll;
use crate::programs::{Program, free_port};
use anyhow::{Result, ensure};
use std::path::Path;
use std::time::Duration;

const READY_TIMEOUT: Duration = Duration::from_secs(60);

/// Starts it on a free port of loopback, with its data and log in a directory: the program, which ends when
/// it is dropped, and where it listens.
///
/// # Errors
/// When it is not installed or does not get ready.
pub fn start_influx(directory: &Path) -> Result<(Program, String)> {
    let authority = format!("127.0.0.1:{}", free_port()?);
    let at = directory.display();
    let settings = format!(
        "reporting-disabled = true\nbind-address = \"127.0.0.1:{}\"\n[meta]\ndir = \"{at}/meta\"\n[data]\n\
         dir = \"{at}/data\"\nwal-dir = \"{at}/wal\"\nquery-log-enabled = false\n[http]\n\
         bind-address = \"{authority}\"\nlog-enabled = false\n[monitor]\nstore-enabled = false\n",
        free_port()?
    );
    let file = directory.join("influx.conf");
    std::fs::write(&file, settings)?;
    let arguments = ["-config".to_string(), file.display().to_string()];
    let program = Program::start("influxd", &arguments, &directory.join("influx.log"))?;
    poll("influxd", READY_TIMEOUT, || {
        ensure!(Client::new(&authority).get("/ping")?.status == 204, "not ready");
        Ok(())
    })?;
    Ok((program, authority))
}

/// 2020-09-13 12:26:40 UTC, when [`cpu_lines`] begin, in seconds.
pub const START: i64 = 1_600_000_000;

/// Ten minutes of two hosts, a line every ten seconds with a field of each type of number.
pub fn cpu_lines() -> String {
    let mut lines = String::new();
    for row in 0..60 {
        for host in ["a", "b"] {
            let at = START + row * 10;
            let value = row + i64::from(host == "b") * 100;
            lines += &format!(
                "cpu,host={host},region=eu usage={value}.5,n={value}i,up={} {at}000000000\n",
                row % 2 == 0
            );
        }
    }
    lines
}
