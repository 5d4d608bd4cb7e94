//! A client of PostgreSQL's protocol on one kept connection: statements, COPY, rows as text.
//!
//! Any error drops the connection; the next call opens one, as in [`crate::http`].

use anyhow::{Context, Result, ensure};
use postgres::{Client, Config, NoTls, SimpleQueryMessage, error::DbError};
use std::io::Write;
use std::time::Duration;

/// The user and database of a cluster that was just made.
const USER: &str = "postgres";
/// A connection that is not made after so long has failed.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);

/// A client of one server.
pub struct SqlClient {
    /// `127.0.0.1:5432`.
    authority: String,
    /// The server ends a statement that takes longer.
    timeout: Duration,
    client: Option<Client>,
}

/// The rows that a statement gave.
#[derive(Debug, Default)]
pub struct Rows {
    /// How many.
    pub count: u64,
    /// Bytes of their values as text.
    pub bytes: usize,
    /// The first value of the first row.
    pub first: Option<String>,
}

impl SqlClient {
    /// A client of `host:port`; nothing is connected yet.
    pub fn new(authority: &str, timeout: Duration) -> SqlClient {
        SqlClient { authority: authority.to_string(), timeout, client: None }
    }

    /// Runs statements that give no rows, or whose rows do not matter.
    ///
    /// # Errors
    /// When one fails.
    pub fn execute(&mut self, statements: &str) -> Result<()> {
        self.with_connection(|client| client.batch_execute(statements).map_err(readable))
    }

    /// Runs `COPY .. FROM STDIN` with those rows, in one transaction; gives how many were taken.
    ///
    /// # Errors
    /// When the server refuses; then it has taken none.
    pub fn copy(&mut self, statement: &str, rows: &[u8]) -> Result<u64> {
        self.with_connection(|client| {
            let mut writer = client.copy_in(statement).map_err(readable)?;
            writer.write_all(rows)?;
            writer.finish().map_err(readable)
        })
    }

    /// Runs a statement and reads its rows.
    ///
    /// # Errors
    /// When it fails.
    pub fn rows(&mut self, statement: &str) -> Result<Rows> {
        let messages =
            self.with_connection(|client| client.simple_query(statement).map_err(readable))?;
        let mut rows = Rows::default();
        for message in &messages {
            let SimpleQueryMessage::Row(row) = message else { continue };
            if rows.count == 0 && !row.is_empty() {
                rows.first = row.get(0).map(str::to_string);
            }
            rows.count += 1;
            rows.bytes +=
                (0..row.len()).map(|column| row.get(column).map_or(0, str::len)).sum::<usize>();
        }
        Ok(rows)
    }

    fn with_connection<T>(&mut self, work: impl FnOnce(&mut Client) -> Result<T>) -> Result<T> {
        let mut client = match self.client.take() {
            Some(client) => client,
            None => self.connect()?,
        };
        let done = work(&mut client)?;
        self.client = Some(client);
        Ok(done)
    }

    fn connect(&self) -> Result<Client> {
        let (host, port) = self.authority.rsplit_once(':').context("no port in the address")?;
        ensure!(!host.is_empty(), "no host in the address");
        let timeout_ms = self.timeout.as_millis();
        Config::new()
            .host(host)
            .port(port.parse().context("malformed port")?)
            .user(USER)
            .dbname(USER)
            .options(&format!("-c statement_timeout={timeout_ms} -c timezone=UTC"))
            .connect_timeout(CONNECT_TIMEOUT)
            .connect(NoTls)
            .map_err(readable)
    }
}

/// The library keeps what the server said apart from its own message.
fn readable(error: postgres::Error) -> anyhow::Error {
    match error.as_db_error().map(DbError::message) {
        Some(message) => anyhow::anyhow!("{message}"),
        None => error.into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_without_a_server_is_an_error() {
        for authority in ["127.0.0.1:1", "127.0.0.1:port", "nothing", ":1"] {
            let mut client = SqlClient::new(authority, Duration::from_secs(1));
            assert!(client.execute("SELECT 1").is_err(), "{authority}");
        }
    }
}
