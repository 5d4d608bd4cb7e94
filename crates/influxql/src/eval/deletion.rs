//! DELETE and DROP SERIES: what is to go.

use super::compile::{Circumstances, condition_and_range};
use super::condition::split;
use super::{Evaluator, Result};
use crate::ast::{MeasurementName, Source, Statement};
use crate::source::{EvalError, Fields};
use crate::time::{TIME_MAX, TIME_MIN};
use model::{Matcher, TimeRange};

/// Samples of a measurement that are to go.
#[derive(Clone, Debug)]
pub struct Deletion {
    /// The measurement.
    pub measurement: String,
    /// What must hold of a series' tags.
    pub matchers: Vec<Matcher>,
    /// The time.
    pub range: TimeRange,
}

impl Evaluator<'_> {
    /// What a DELETE or DROP SERIES is to delete.
    ///
    /// # Errors
    /// For conditions about fields, and about time where whole series are dropped.
    pub fn deletions(&self, statement: &Statement) -> Result<Vec<Deletion>> {
        let (sources, condition, may_cut) = match statement {
            Statement::DropSeries { sources, condition } => (sources, condition, false),
            Statement::Delete { sources, condition } => (sources, condition, true),
            _ => return Ok(Vec::new()),
        };
        let circumstances = Circumstances { now: self.now, database: &self.database };
        let (condition, bounds) = condition_and_range(condition.as_ref(), &circumstances)?;
        if bounds != (None, None) && !may_cut {
            return Err(EvalError::new("DROP SERIES doesn't support time in WHERE clause"));
        }
        let range = TimeRange::new(bounds.0.unwrap_or(TIME_MIN), bounds.1.unwrap_or(TIME_MAX));
        let found = split(condition.as_ref(), &Fields::new());
        if let Some(rest) = found.rest {
            let message = format!("only tags can be compared in the WHERE of a deletion: {rest}");
            return Err(EvalError::new(message));
        }
        if found.is_never || range.is_empty() {
            return Ok(Vec::new());
        }
        let mut out = Vec::new();
        for measurement in self.source.measurements(&self.database)? {
            let is_named = |source: &Source| match source {
                Source::Measurement(named) => match &named.name {
                    MeasurementName::Is(name) => *name == measurement,
                    MeasurementName::Matches(regex) => regex.regex.is_match(&measurement),
                },
                Source::Query(_) => false,
            };
            if sources.is_empty() || sources.iter().any(is_named) {
                out.push(Deletion { measurement, matchers: found.matchers.clone(), range });
            }
        }
        Ok(out)
    }
}
