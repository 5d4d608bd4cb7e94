//! How a body reaches the server: posted over HTTP, or run on a connection of PostgreSQL.

use super::LoadOptions;
use crate::http::{Answer, HttpClient};
use crate::payload::{Protocol, copy};
use crate::sql::SqlClient;
use std::time::Duration;

/// A request that gets no answer for so long has failed.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(60);

/// A worker's connection.
pub(super) enum Sender<'a> {
    /// Posts to a path.
    Http { client: HttpClient, path: &'a str, protocol: Protocol },
    /// Runs statements; boxed, for it is much larger.
    Sql(Box<SqlClient>),
}

impl Sender<'_> {
    /// A sender that is not yet connected.
    pub fn new(options: &LoadOptions) -> Sender<'_> {
        let protocol = options.format.protocol;
        match protocol {
            Protocol::Copy => {
                Sender::Sql(Box::new(SqlClient::new(&options.authority, ANSWER_TIMEOUT)))
            }
            _ => Sender::Http {
                client: HttpClient::new(&options.authority, ANSWER_TIMEOUT),
                path: &options.path,
                protocol,
            },
        }
    }

    /// Sends a body once; when the server says how many samples it wrote, gives that number.
    ///
    /// # Errors
    /// What the server said instead of success.
    pub fn send(&mut self, body: &[u8]) -> Result<Option<u64>, String> {
        match self {
            Sender::Http { client, path, protocol } => {
                match client.post(path, protocol.headers(), body) {
                    Ok(answer) if protocol.is_success(answer.status) => {
                        Ok(written(*protocol, &answer))
                    }
                    Ok(answer) => Err(format!("status {}: {}", answer.status, answer.excerpt())),
                    Err(error) => Err(error.to_string()),
                }
            }
            Sender::Sql(client) => run(client, body).map_err(|error| format!("{error:#}")),
        }
    }
}

/// Remote write 2.0 says how many samples were written; fewer than sent is a silent loss.
fn written(protocol: Protocol, answer: &Answer) -> Option<u64> {
    answer.samples_written.filter(|_| protocol == Protocol::RemoteWriteV2)
}

/// Runs a body of [`copy`]; rows taken are counted in samples.
fn run(client: &mut SqlClient, body: &[u8]) -> anyhow::Result<Option<u64>> {
    match copy::split(body)? {
        (statement, None) => client.execute(statement).map(|()| None),
        (statement, Some(rows)) => {
            let taken = client.copy(statement, rows)?;
            Ok(Some(taken * copy::SAMPLES_PER_ROW))
        }
    }
}
