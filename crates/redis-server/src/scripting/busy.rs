//! A script that runs for too long, and those who wait for it.
//!
//! A script runs where its client is served, with the keys locked. Once it has run for longer than
//! the threshold, its thread hands the door's other connections to a new one and goes on by itself:
//! those get `BUSY` without asking for the lock, and may have the script ended.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use tokio::sync::Notify;

/// Milliseconds after which other clients hear of a script, as Redis has it.
const THRESHOLD_MS: u64 = 5000;

/// Time that a library may take to register its functions.
const LOAD_TIME_MAX: Duration = Duration::from_millis(500);

/// Time between two looks at the clock behind which a script is watched more closely.
const LOOK_TIME_MAX: Duration = Duration::from_millis(10);

/// Time in which another thread must have begun.
const HAND_OVER_TIME_MAX: Duration = Duration::from_secs(1);

/// What runs.
#[derive(Clone, Debug)]
pub struct Running {
    /// The script's digest or the function's name.
    pub name: String,
    /// The command that began it.
    pub command: Vec<Vec<u8>>,
    /// Whether it is a function.
    pub is_function: bool,
    /// Whether it is a library that is loaded, which may not take long.
    pub is_load: bool,
    /// Since when.
    pub started: Instant,
}

/// What others may know of the running script without any lock.
#[derive(Debug)]
pub struct Busy {
    threshold_ms: AtomicU64,
    is_busy: AtomicBool,
    is_killed: AtomicBool,
    has_written: AtomicBool,
    running: Mutex<Option<Running>>,
    /// When this was made, and the nanoseconds from then to the last look at the clock.
    made: Instant,
    looked_ns: AtomicU64,
    /// Told when a script that was busy has ended.
    calm: Notify,
}

impl Default for Busy {
    fn default() -> Busy {
        Busy {
            threshold_ms: AtomicU64::new(THRESHOLD_MS),
            is_busy: AtomicBool::new(false),
            is_killed: AtomicBool::new(false),
            has_written: AtomicBool::new(false),
            running: Mutex::new(None),
            made: Instant::now(),
            looked_ns: AtomicU64::new(0),
            calm: Notify::new(),
        }
    }
}

/// Has another thread serve the door's connections from here on.
fn hand_over() {
    if tokio::runtime::Handle::try_current().is_err() {
        return;
    }
    // Blocking lends the place only for as long as it takes: until the other thread is there.
    let (there, is_there) = std::sync::mpsc::channel();
    tokio::spawn(async move {
        // Who waits no more has seen enough.
        let _ = there.send(());
    });
    tokio::task::block_in_place(|| {
        if is_there.recv_timeout(HAND_OVER_TIME_MAX).is_err() {
            tracing::warn!("no thread answers clients while a script runs");
        }
    });
}

/// Why a script is not ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// None runs.
    Idle,
    /// It is a function, or is none.
    OtherKind,
    /// It has written.
    HasWritten,
}

impl Busy {
    fn running(&self) -> MutexGuard<'_, Option<Running>> {
        self.running.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Sets after how many milliseconds others hear of a script; 0: never.
    pub fn set_threshold(&self, threshold_ms: u64) {
        self.threshold_ms.store(threshold_ms, Relaxed);
    }

    /// A script begins.
    pub fn begin(&self, running: Running) {
        self.is_killed.store(false, Relaxed);
        self.has_written.store(false, Relaxed);
        *self.running() = Some(running);
    }

    /// It has ended. Others hear of it by [`Busy::calm_down`].
    pub fn end(&self) -> Option<Running> {
        self.running().take()
    }

    /// The script changes keys now, so it can be ended no more.
    pub fn note_write(&self) {
        self.has_written.store(true, Relaxed);
    }

    /// Whether the running script has changed keys.
    pub fn has_written(&self) -> bool {
        self.has_written.load(Relaxed)
    }

    /// Whether other clients are told that a script runs.
    pub fn is_busy(&self) -> bool {
        self.is_busy.load(Relaxed)
    }

    /// Whether the running script was ended by somebody.
    pub fn is_killed(&self) -> bool {
        self.is_killed.load(Relaxed)
    }

    /// What runs.
    pub fn shown(&self) -> Option<Running> {
        self.running().clone()
    }

    /// Whether the running script is a function.
    pub fn is_function(&self) -> bool {
        self.running().as_ref().is_some_and(|running| running.is_function)
    }

    /// Whether a library is loaded.
    pub fn is_loading(&self) -> bool {
        self.running().as_ref().is_some_and(|running| running.is_load)
    }

    /// Whether the script may go on; called by it every now and then.
    pub fn goes_on(&self) -> bool {
        if self.is_killed() {
            return false;
        }
        if self.is_loading() {
            let is_late = |running: &Running| LOAD_TIME_MAX <= running.started.elapsed();
            if self.running().as_ref().is_some_and(is_late) {
                self.is_killed.store(true, Relaxed);
                return false;
            }
            return true;
        }
        if !self.is_busy() && self.is_late() {
            self.is_busy.store(true, Relaxed);
            if let Some(running) = self.shown() {
                let millis = running.started.elapsed().as_millis();
                tracing::warn!("the script {} has run for {millis} ms", running.name);
            }
            hand_over();
        }
        true
    }

    /// Notes a look at the clock. Returns whether the last one was long ago.
    pub fn note_look(&self) -> bool {
        let now_ns = u64::try_from(self.made.elapsed().as_nanos()).unwrap_or(u64::MAX);
        let before_ns = self.looked_ns.swap(now_ns, Relaxed);
        LOOK_TIME_MAX.as_nanos() < u128::from(now_ns.saturating_sub(before_ns))
    }

    fn is_late(&self) -> bool {
        let threshold_ms = self.threshold_ms.load(Relaxed);
        let threshold = Duration::from_millis(threshold_ms);
        let is_late = |running: &Running| threshold <= running.started.elapsed();
        0 < threshold_ms && self.running().as_ref().is_some_and(is_late)
    }

    /// Has the script end, whatever it has done: the server ends.
    pub fn end_at_once(&self) {
        self.is_killed.store(true, Relaxed);
    }

    /// Has the script end.
    ///
    /// # Errors
    /// When there is none, or it cannot be.
    pub fn kill(&self, is_function: bool) -> Result<(), Refusal> {
        match &*self.running() {
            Some(running) if running.is_function != is_function => Err(Refusal::OtherKind),
            Some(_) if self.has_written() => Err(Refusal::HasWritten),
            Some(_) => {
                self.is_killed.store(true, Relaxed);
                Ok(())
            }
            None => Err(Refusal::Idle),
        }
    }

    /// The keys are free again. Returns whether a script had taken long.
    pub fn calm_down(&self) -> bool {
        let was_busy = self.is_busy.swap(false, Relaxed);
        if was_busy {
            self.calm.notify_waiters();
        }
        was_busy
    }

    /// Waits until no script is taking long.
    pub async fn calm(&self) {
        loop {
            let mut calm = std::pin::pin!(self.calm.notified());
            calm.as_mut().enable();
            if !self.is_busy() {
                return;
            }
            calm.await;
        }
    }
}
