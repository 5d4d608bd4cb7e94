//! Facts about a session that its connection knows.

use crate::types::error::SqlError;
use datafusion::common::Result;
use futures::future::BoxFuture;

/// What is known of a session by whoever has it.
pub trait Facts: Send + Sync {
    /// Who came.
    fn user(&self) -> String;
    /// The database that was asked for.
    fn database(&self) -> String;
    /// The number by which the connection may be cancelled.
    fn pid(&self) -> i32;
    /// What `version()` says.
    fn version(&self) -> String;
    /// A setting; its name in small letters.
    fn setting(&self, name: &str) -> Option<String>;
    /// Changes a setting.
    ///
    /// # Errors
    /// When it cannot be set so.
    fn set(&self, name: &str, value: &str, is_local: bool) -> Result<(), SqlError>;
    /// When the server started, in microseconds since the epoch.
    fn started_at_us(&self) -> i64 {
        0
    }
    /// The clock of the store, in microseconds since the epoch.
    fn now_us(&self) -> i64 {
        0
    }
    /// Sends a notification when the transaction is committed.
    ///
    /// # Errors
    /// Returns what is wrong with the channel or the payload.
    fn notify(&self, _channel: &str, _payload: &str) -> Result<(), SqlError> {
        Err(SqlError::unsupported("pg_notify is for sessions of clients"))
    }
    /// A statement sleeps: its place among the running queries is free for others.
    fn leave_place(&self) {}
    /// Waits for a place before the statement goes on.
    fn take_place(&self) -> BoxFuture<'static, Result<(), SqlError>> {
        Box::pin(std::future::ready(Ok(())))
    }
}
