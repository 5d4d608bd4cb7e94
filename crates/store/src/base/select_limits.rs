//! Bounds on one selection, and what work costs.

use crate::{Error, Limit, Result};
use index::{CancelFlag, Interrupt};
use std::sync::Arc;
use std::time::Instant;

/// Bounds on one selection.
#[derive(Clone, Debug)]
pub struct SelectLimits {
    /// Series that may match.
    pub series_max: usize,
    /// When to give up.
    pub deadline: Option<Instant>,
    /// Set by another thread when the answer is no longer wanted.
    pub cancelled: Option<Arc<dyn CancelFlag>>,
    /// What the selection and its samples may cost, about, in samples; more is refused before it
    /// is done. For who must not be kept waiting: [`u64::MAX`] for all others.
    pub cost_max: u64,
}

/// What it costs to find a series and begin to read it, in samples.
pub(crate) const SERIES_COST: u64 = 1000;
/// What it costs to look at a block or a string of the index, in samples.
pub(crate) const LOOK_COST: u64 = 16;

impl SelectLimits {
    /// No bounds.
    pub const UNLIMITED: SelectLimits = SelectLimits {
        series_max: usize::MAX,
        deadline: None,
        cancelled: None,
        cost_max: u64::MAX,
    };

    /// Fails once the deadline has passed, or the answer is no longer wanted.
    pub fn check_interrupt(&self) -> Result<()> {
        if self.cancelled.as_ref().is_some_and(|flag| flag.is_cancelled()) {
            return Err(Error::Cancelled);
        }
        match self.deadline {
            Some(deadline) if deadline < Instant::now() => Err(Error::DeadlineExceeded),
            _ => Ok(()),
        }
    }

    /// When searches for the selection give up.
    pub(crate) fn interrupt(&self) -> Interrupt {
        Interrupt { deadline: self.deadline, cancelled: self.cancelled.clone() }
    }

    /// Fails when the work would be more than `cost_max`.
    pub fn check_cost(&self, cost: u64) -> Result<()> {
        if cost <= self.cost_max {
            return Ok(());
        }
        Err(Error::LimitExceeded {
            limit: Limit::SelectionCost,
            what: "samples' worth of work",
            value: cost,
            max: self.cost_max,
        })
    }

    /// Fails when there are more than `series_max` series.
    pub fn check_series(&self, count: usize) -> Result<()> {
        if self.series_max < count {
            return Err(Error::LimitExceeded {
                limit: Limit::Series,
                what: "matching series",
                value: count as u64,
                max: self.series_max as u64,
            });
        }
        Ok(())
    }
}
