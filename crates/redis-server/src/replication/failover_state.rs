//! State of a failover: how far it is, and to which replica.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use tokio::sync::Notify;

/// How often it is looked whether the time is over.
pub(super) const LOOK_INTERVAL: Duration = Duration::from_millis(50);
/// How long who ends it waits for an answer.
const END_PATIENCE: Duration = Duration::from_secs(5);

/// How far it is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Progress {
    /// There is none.
    #[default]
    None,
    /// The replica has not all yet.
    Waiting,
    /// The replica is told to take over.
    Telling,
    /// Somebody ended it, or the replica refused: this server is no replica any more.
    Ending,
}

impl Progress {
    /// As `INFO` says it.
    pub fn name(self) -> &'static str {
        match self {
            Progress::None => "no-failover",
            Progress::Waiting => "waiting-for-sync",
            Progress::Telling | Progress::Ending => "failover-in-progress",
        }
    }
}

/// State of a failover.
#[derive(Debug, Default)]
pub(super) struct State {
    /// How far it is.
    pub(super) progress: Progress,
    /// To whom; none for whoever has all first.
    pub(super) target: Option<(String, u16)>,
    /// What the replica has to have: the offset behind it.
    pub(super) needed: u64,
    /// When the time is over, in milliseconds since the epoch.
    pub(super) until_ms: Option<i64>,
    /// Whether the target takes over then, whatever it has.
    pub(super) is_forced: bool,
}

/// A handing over to a replica.
#[derive(Default)]
pub struct Failover {
    state: Mutex<State>,
    pub(super) changed: Notify,
}

impl Failover {
    pub(super) fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// How far it is.
    pub fn progress(&self) -> Progress {
        self.state().progress
    }

    /// Waits until it has ended, or for [`END_PATIENCE`].
    pub(super) fn wait_for_end(&self) {
        let since = Instant::now();
        while self.progress() != Progress::None && since.elapsed() < END_PATIENCE {
            std::thread::park_timeout(LOOK_INTERVAL);
        }
    }

    /// Something happened on which it may wait.
    pub fn notify(&self) {
        self.changed.notify_one();
    }

    /// The replica refused, or somebody ends it after it was told.
    pub fn end(&self) {
        let mut state = self.state();
        if state.progress == Progress::Telling {
            state.progress = Progress::Ending;
        }
        drop(state);
        self.notify();
    }
}
