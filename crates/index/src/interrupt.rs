//! When a search gives up: at its deadline, or when another thread cancels it.

use crate::error::{Error, Result};
use std::fmt::Debug;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

/// Units of work between two looks at the clock. A unit is a look at a block or a test of a value.
const WORK_PER_CHECK: u64 = 256;

/// Tells whether the client of a search has left.
pub trait CancelFlag: Debug + Send + Sync {
    /// Whether the search is no longer wanted.
    fn is_cancelled(&self) -> bool;
}

impl CancelFlag for AtomicBool {
    fn is_cancelled(&self) -> bool {
        self.load(Ordering::Relaxed)
    }
}

/// Why a search ended early.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Interruption {
    /// Its deadline passed.
    DeadlineExceeded,
    /// Another thread cancelled it.
    Cancelled,
}

/// When a search gives up. The default is never.
#[derive(Clone, Debug, Default)]
pub struct Interrupt {
    /// The deadline.
    pub deadline: Option<Instant>,
    /// Set by another thread to end the search.
    pub cancelled: Option<Arc<dyn CancelFlag>>,
}

impl Interrupt {
    /// Fails with [`Error::Interrupted`] once the search has to end.
    ///
    /// # Errors
    /// Then.
    pub fn check(&self) -> Result<()> {
        if self.cancelled.as_ref().is_some_and(|flag| flag.is_cancelled()) {
            return Err(Error::Interrupted(Interruption::Cancelled));
        }
        match self.deadline {
            Some(deadline) if deadline < Instant::now() => {
                Err(Error::Interrupted(Interruption::DeadlineExceeded))
            }
            _ => Ok(()),
        }
    }
}

/// Calls [`Interrupt::check`] once for each [`WORK_PER_CHECK`] units of work.
pub(crate) struct Pace<'a> {
    interrupt: &'a Interrupt,
    work: u64,
}

impl<'a> Pace<'a> {
    pub(crate) fn new(interrupt: &'a Interrupt) -> Pace<'a> {
        Pace { interrupt, work: 0 }
    }

    /// Adds units of work.
    #[inline]
    pub(crate) fn add(&mut self, work: u64) -> Result<()> {
        self.work += work;
        if self.work < WORK_PER_CHECK {
            return Ok(());
        }
        self.work = 0;
        self.interrupt.check()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cancelled_and_late_searches_end() {
        let flag = Arc::new(AtomicBool::new(false));
        let interrupt = Interrupt { deadline: None, cancelled: Some(flag.clone()) };
        let mut pace = Pace::new(&interrupt);
        assert!(pace.add(WORK_PER_CHECK).is_ok());
        flag.store(true, Ordering::Relaxed);
        assert!(pace.add(WORK_PER_CHECK - 1).is_ok());
        let ended = pace.add(1);
        assert!(matches!(ended, Err(Error::Interrupted(Interruption::Cancelled))), "{ended:?}");
        let late = Interrupt { deadline: Some(Instant::now()), cancelled: None };
        while late.check().is_ok() {}
        let ended = late.check();
        assert!(matches!(ended, Err(Error::Interrupted(Interruption::DeadlineExceeded))));
    }
}
