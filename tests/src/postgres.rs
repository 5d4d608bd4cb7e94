//! The door for PostgreSQL's clients, and psql.

use crate::{Server, poll};
use anyhow::{Context, Result, ensure};
use std::io::Write as _;
use std::process::{Command, Stdio};
use std::time::Duration;

const PATIENCE: Duration = Duration::from_secs(30);

/// The port of the door of a server that was started with `--postgres-listen`.
///
/// # Errors
/// When it has none.
pub fn door_port(server: &Server) -> Result<u16> {
    poll("the address of the door", PATIENCE, || {
        let log = server.log();
        let (_, rest) =
            log.rsplit_once("PostgreSQL's clients are served at ").context("not said")?;
        let (address, _) = rest.split_once(' ').context("not whole")?;
        let (_, port) = address.rsplit_once(':').context("no port")?;
        Ok(port.parse()?)
    })
}

/// psql, as somebody types it.
pub struct Psql {
    port: u16,
    environment: Vec<(&'static str, String)>,
}

/// What psql said.
#[derive(Debug)]
pub struct Said {
    /// On its output.
    pub out: String,
    /// On the other.
    pub error: String,
    /// Whether all went well.
    pub is_ok: bool,
}

impl Psql {
    /// To a server.
    ///
    /// # Errors
    /// When it has no door.
    pub fn of(server: &Server) -> Result<Psql> {
        Ok(Psql { port: door_port(server)?, environment: Vec::new() })
    }

    /// The same with a variable of the environment.
    #[must_use]
    pub fn with(mut self, name: &'static str, value: &str) -> Psql {
        self.environment.push((name, value.to_string()));
        self
    }

    /// Runs statements, each with `-c`; `input` is what the client's standard input says.
    ///
    /// # Errors
    /// When psql cannot be run.
    pub fn say(&self, statements: &[&str], input: &str) -> Result<Said> {
        let port = self.port.to_string();
        let mut command = Command::new("psql");
        command.args(["-X", "-A", "-t", "-h", "127.0.0.1", "-p", &port, "-U", "somebody"]);
        command.args(["-d", "metrics", "-v", "ON_ERROR_STOP=1"]);
        for statement in statements {
            command.args(["-c", statement]);
        }
        command.env("PGCONNECT_TIMEOUT", "10").envs(self.environment.iter().cloned());
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().context("psql")?;
        let mut stdin = child.stdin.take().context("no input")?;
        // Who fails early does not read all of it.
        let _ = stdin.write_all(input.as_bytes());
        drop(stdin);
        let output = child.wait_with_output()?;
        Ok(Said {
            out: String::from_utf8(output.stdout)?.trim_end().to_string(),
            error: String::from_utf8(output.stderr)?.trim_end().to_string(),
            is_ok: output.status.success(),
        })
    }

    /// What statements print that go well.
    ///
    /// # Errors
    /// When one does not.
    pub fn ask(&self, statements: &[&str], input: &str) -> Result<String> {
        let said = self.say(statements, input)?;
        ensure!(said.is_ok, "{statements:?}: {}", said.error);
        Ok(said.out)
    }
}
