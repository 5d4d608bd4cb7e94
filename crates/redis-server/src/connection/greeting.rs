//! The first bytes of a connection.

use super::Served;
use crate::connection::foreign;
use crate::connection::foreign::{Beginning, Foreign};
use std::sync::atomic::Ordering::Relaxed;

impl<S> Served<'_, S> {
    /// Counts bytes that came. Returns whether the connection goes on: it ends when the client does, when
    /// it has sent more than it may, and when it speaks another protocol.
    pub(super) fn take_bytes(&mut self, size: usize) -> bool {
        self.connection.touch();
        self.session.state.received.fetch_add(size as u64, Relaxed);
        0 < size && !self.is_overfull() && (self.has_greeted || self.greet())
    }

    /// Looks at the first bytes of the connection. Answers a client of another protocol, and returns
    /// false: the connection ends.
    fn greet(&mut self) -> bool {
        match foreign::beginning_of(self.input.get(0)) {
            Beginning::Short => true,
            Beginning::Commands => {
                self.has_greeted = true;
                true
            }
            Beginning::Foreign(foreign) => {
                let app = &self.redis.app;
                if foreign == Foreign::Tls {
                    app.telemetry.tls_failures.add(1);
                }
                tracing::debug!(?foreign, peer = ?self.connection.peer, "no client of Redis");
                let answer = foreign::answer(foreign, &app.url());
                self.session.out.0.bytes_mut().extend_from_slice(&answer);
                false
            }
        }
    }
}
