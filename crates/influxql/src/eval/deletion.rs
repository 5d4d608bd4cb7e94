//! DELETE and DROP SERIES: what is to go.

use super::compile::{Circumstances, condition_and_range};
use super::condition::{alternatives, variables};
use super::{Evaluator, Result};
use crate::ast::{MeasurementName, Source, Statement};
use crate::source::EvalError;
use crate::time::{TIME_MAX, TIME_MIN};
use model::{Matcher, TimeRange};

/// Samples of a measurement that are to go.
#[derive(Clone, Debug)]
pub struct Deletion {
    /// Name under which its policy is stored.
    pub database: String,
    /// The measurement.
    pub measurement: String,
    /// What must hold of a series' tags: all matchers of any of these sets.
    pub sets: Vec<Vec<Matcher>>,
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
        let sets = alternatives(condition.as_ref()).map_err(|rest| {
            EvalError::new(format!("only tags can be compared in the WHERE of a deletion: {rest}"))
        })?;
        if sets.is_empty() || range.is_empty() {
            return Ok(Vec::new());
        }
        let names = condition.as_ref().map(variables).unwrap_or_default();
        let mut out = Vec::new();
        let databases = self.databases_of_deletion()?;
        let mut all = Vec::new();
        for database in databases {
            let measurements = self.source.measurements(&database)?.into_iter();
            all.extend(measurements.map(|measurement| (database.clone(), measurement)));
        }
        for (database, measurement) in all {
            let is_named = |source: &Source| match source {
                Source::Measurement(named) => match &named.name {
                    MeasurementName::Is(name) => *name == measurement,
                    MeasurementName::Matches(regex) => regex.regex().is_match(&measurement),
                },
                Source::Query(_) => false,
            };
            if sources.is_empty() || sources.iter().any(is_named) {
                // A field is no tag that nobody has: `usage != 'x'` would be true of all series.
                let fields = self.fields(&database, &measurement)?;
                if names.iter().any(|(name, _)| fields.contains_key(name)) {
                    let message = "fields not supported in WHERE clause during deletion";
                    return Err(EvalError::new(message));
                }
                out.push(Deletion { database, measurement, sets: sets.clone(), range });
            }
        }
        Ok(out)
    }

    /// Names under which the samples are stored that a deletion may reach: of all policies, as in InfluxDB,
    /// unless the request names one. Reads also find samples under the joined names of a database and a
    /// policy that does not exist; these may belong to another database.
    fn databases_of_deletion(&self) -> Result<Vec<String>> {
        let (source, database) = (self.source, &self.database);
        self.check_database(database)?;
        let policy = self.policy.as_str();
        if policy.is_empty() {
            return source.policy_databases(database);
        }
        if source.policies(database)?.iter().all(|known| known.name != policy) {
            return Err(EvalError::new(format!("retention policy not found: {policy}")));
        }
        Ok(vec![source.policy_database(database, Some(policy))?])
    }
}
