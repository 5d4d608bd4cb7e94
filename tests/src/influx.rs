//! A real InfluxDB 1.x beside the server under test, lines that are written to both, and a server that
//! answers InfluxQL as a test says.

use crate::fake_server::{FakeAnswer, fake_server};
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

/// Starts a server that answers `/query` with a status and a body; returns its URL.
///
/// # Errors
/// When there is no free port.
pub fn fake_influx(
    answer: impl Fn(&str) -> (u16, String) + Send + Sync + 'static,
) -> Result<String> {
    fake_server(move |_, form| {
        let (status, body) = answer(&decoded(form.strip_prefix("q=").unwrap_or_default()));
        FakeAnswer { status, ..FakeAnswer::ok("application/json", body) }
    })
}

/// Text without percent signs.
fn decoded(text: &str) -> String {
    let (mut bytes, mut rest) = (Vec::new(), text.as_bytes());
    while let Some((byte, behind)) = rest.split_first() {
        let digits = std::str::from_utf8(behind.get(..2).unwrap_or_default()).ok();
        let code = digits.and_then(|digits| u8::from_str_radix(digits, 16).ok());
        match code.filter(|_| *byte == b'%') {
            Some(code) => {
                bytes.push(code);
                rest = &behind[2..];
            }
            None => {
                bytes.push(*byte);
                rest = behind;
            }
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

/// The last piece of the answer to a statement: a table of rows in JSON.
pub fn influx_table(statement: usize, name: &str, columns: &[&str], rows: &[String]) -> String {
    influx_piece(statement, name, columns, rows, "")
}

/// A piece of the answer to a statement, with more members of the result, as `,"partial":true`.
pub fn influx_piece(
    statement: usize,
    name: &str,
    columns: &[&str],
    rows: &[String],
    more: &str,
) -> String {
    let (columns, rows) = (columns.join("\",\""), rows.join(","));
    format!(
        "{{\"results\":[{{\"statement_id\":{statement},\"series\":[{{\"name\":\"{name}\",\
         \"columns\":[\"{columns}\"],\"values\":[{rows}]}}]{more}}}]}}\n"
    )
}
