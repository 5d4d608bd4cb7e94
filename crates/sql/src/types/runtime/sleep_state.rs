//! State of a statement in `pg_sleep`.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use tokio::sync::watch;

/// Says whether a statement sleeps.
#[derive(Debug, Default)]
pub struct SleepState {
    /// Whether it does one thing at a time.
    is_serial: AtomicBool,
    is_asleep: watch::Sender<bool>,
}

impl SleepState {
    /// Says whether the statement does one thing at a time: only then it leaves its place while it sleeps.
    pub fn set_serial(&self, is_serial: bool) {
        self.is_serial.store(is_serial, Ordering::Relaxed);
    }

    /// Returns true if the statement does one thing at a time.
    pub fn is_serial(&self) -> bool {
        self.is_serial.load(Ordering::Relaxed)
    }

    /// Whether the statement sleeps, or waits for its place after that.
    pub fn is_asleep(&self) -> bool {
        *self.is_asleep.borrow()
    }

    /// Waits until the statement is not asleep.
    pub async fn awake(&self) {
        // The sender is here.
        let _ = self.is_asleep.subscribe().wait_for(|is_asleep| !is_asleep).await;
    }
}

/// Says that a statement is asleep, until it is dropped.
pub(crate) struct Asleep(Arc<SleepState>);

impl Asleep {
    pub(crate) fn begin(state: Arc<SleepState>) -> Asleep {
        state.is_asleep.send_replace(true);
        Asleep(state)
    }
}

impl Drop for Asleep {
    fn drop(&mut self) {
        self.0.is_asleep.send_replace(false);
    }
}
