//! Commands that have not arrived whole, and commands that wait for memory.

use super::{Next, Served};
use crate::connection::input::READ_SIZE;
use crate::memory::room;
use allocator::Freed;
use kv::Reply as _;
use net::telemetry::Limit;
use std::time::Duration;
use tokio::time::Instant;

/// Bytes a second that a client must send of a larger one.
const PARTIAL_BYTES_PER_S: usize = 16 << 10;

impl<S> Served<'_, S> {
    /// Notes since when the connection waits for the rest of a command.
    pub(super) fn note_partial(&mut self, next: Next) {
        let is_partial =
            next == Next::Read && !self.is_waiting && !self.is_paused && !self.input.is_empty();
        self.partial_since = match (is_partial, self.partial_since) {
            (true, None) => Some(Instant::now()),
            (true, since) => since,
            (false, _) => None,
        };
    }

    /// When the rest must be here.
    pub(super) fn partial_deadline(&self) -> Option<Instant> {
        let seconds = self.input.len() / PARTIAL_BYTES_PER_S;
        let more = Duration::from_secs(u64::try_from(seconds).unwrap_or(0));
        let since = self.partial_since?;
        since.checked_add(self.redis.app.config.redis_command_timeout.saturating_add(more))
    }

    /// Tells the client that the rest of its command did not come in time, if that is so.
    pub(super) fn say_if_late(&mut self) {
        if self.partial_deadline().is_none_or(|deadline| Instant::now() < deadline) {
            return;
        }
        let app = &self.redis.app;
        app.telemetry.limit_hit(Limit::CommandTimeout);
        let limit = app.config.redis_command_timeout;
        let words =
            format!("ERR a command was not complete after {limit:?} (redis.command-timeout)");
        self.session.out.error(&words);
    }

    /// Whether the client has sent more than it may; while it waits nobody else looks.
    pub(super) fn is_overfull(&self) -> bool {
        let size = self.input.len();
        READ_SIZE < size && self.redis.hub().settings.hot.query_size_max < size
    }

    /// Gives others their turn while values go to disk and freed memory to the system.
    pub(super) async fn wait_for_room(&mut self) {
        let (kv, is_first) = (self.redis.kv.clone(), self.room_wait.is_first());
        let made = tokio::task::spawn_blocking(move || {
            kv.make_room();
            if is_first {
                allocator::give_back(Freed::All);
            }
        });
        let _ = made.await;
        tokio::time::sleep(room::PAUSE).await;
        self.redis.scripting.busy.calm().await;
    }
}
