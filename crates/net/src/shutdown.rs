//! When to stop: SIGTERM, SIGINT, and what a second one means; and that nothing holds a stop up.
//! SIGHUP, which a closed terminal sends, stops nothing.

use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::time::Duration;
use tokio::signal::unix::{Signal, SignalKind, signal};

/// The signals that end the process.
pub struct StopSignals {
    terminate: Signal,
    interrupt: Signal,
    hangup: Signal,
}

impl StopSignals {
    /// Begins to catch them.
    ///
    /// # Errors
    /// When the system refuses.
    pub fn new() -> std::io::Result<StopSignals> {
        Ok(StopSignals {
            terminate: signal(SignalKind::terminate())?,
            interrupt: signal(SignalKind::interrupt())?,
            hangup: signal(SignalKind::hangup())?,
        })
    }

    /// Waits for the next one; returns its name.
    pub async fn next(&mut self) -> &'static str {
        loop {
            tokio::select! {
                _ = self.terminate.recv() => return "SIGTERM",
                _ = self.interrupt.recv() => return "SIGINT",
                _ = self.hangup.recv() => {
                    tracing::info!("SIGHUP ignored: restart the server to change its settings");
                }
            }
        }
    }
}

/// Exit code of a stop that something held up.
const HELD_UP: i32 = 1;

/// Ends the process when what is under way does not let go in time, as a function of Lua's that looks
/// for a pattern: it has no place where it could be told to stop. What was acknowledged is in the log.
/// Dropped once all have let go.
pub struct StopGuard {
    _let_go: Sender<()>,
}

impl StopGuard {
    /// Waits that long from now on, in a thread of its own: those of the runtime may be what is held.
    pub fn begin(patience: Duration) -> StopGuard {
        let (let_go, ended) = channel::<()>();
        std::thread::spawn(move || {
            if ended.recv_timeout(patience) == Err(RecvTimeoutError::Timeout) {
                tracing::error!(
                    ?patience,
                    "a command does not end: leaving without it; the log has what was acknowledged"
                );
                std::process::exit(HELD_UP);
            }
        });
        StopGuard { _let_go: let_go }
    }
}
