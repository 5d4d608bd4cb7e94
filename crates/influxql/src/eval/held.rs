//! Memory that a statement holds beside its points: selected series, their tags, samples read ahead.
//!
//! ```text
//! points x POINT_SIZE + bytes held <= Limits::memory_max       of all statements of a request
//! ```

use super::{Evaluator, POINT_SIZE, Result};
use crate::source::EvalError;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Bytes that count towards the memory of a request until this is dropped.
#[derive(Default)]
pub(super) struct Held {
    all: Arc<AtomicUsize>,
    size: usize,
}

impl Held {
    /// Adds bytes.
    pub fn grow(&mut self, evaluator: &Evaluator<'_>, size: usize) -> Result<()> {
        self.size += size;
        self.all.fetch_add(size, Ordering::Relaxed);
        evaluator.check_memory(0)
    }

    /// Takes bytes back.
    pub fn shrink(&mut self, size: usize) {
        let size = size.min(self.size);
        self.size -= size;
        self.all.fetch_sub(size, Ordering::Relaxed);
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        self.shrink(self.size);
    }
}

impl Evaluator<'_> {
    /// Holds bytes until what is returned is dropped.
    pub(super) fn hold(&self, size: usize) -> Result<Held> {
        let mut held = Held { all: self.held.clone(), size: 0 };
        held.grow(self, size)?;
        Ok(held)
    }

    /// Bytes that may still be held.
    pub(super) fn memory_left(&self) -> usize {
        let points = self.points.load(Ordering::Relaxed).saturating_mul(POINT_SIZE);
        let held = points.saturating_add(self.held.load(Ordering::Relaxed));
        self.limits.memory_max.saturating_sub(held)
    }

    /// Fails when `size` more bytes are more than the request may hold.
    pub(super) fn check_memory(&self, size: usize) -> Result<()> {
        let points = self.points.load(Ordering::Relaxed).saturating_mul(POINT_SIZE);
        let held = self.held.load(Ordering::Relaxed);
        let sum = points.saturating_add(held).saturating_add(size);
        let max = self.limits.memory_max;
        if sum <= max {
            return Ok(());
        }
        Err(EvalError::new(format!(
            "max-select-point limit exceeded: the query holds {sum} bytes, the limit is {max}; ask \
             for less time or fewer series and sources"
        )))
    }
}
