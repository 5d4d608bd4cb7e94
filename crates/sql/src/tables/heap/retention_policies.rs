//! Retention policies of tables and metrics, as they are stored.

use crate::tables::heap::kept::{Kept, text as kept_text, text_of as text_kept};
use crate::tables::heap::view::View;
use crate::types::error::SqlError;
use tables::{Datum, Scalar, TableSet};

/// Where policies are kept.
pub(crate) const RETENTION: Kept = Kept {
    table: "\0retention",
    columns: &[("of", Scalar::Text), ("job", Scalar::Int8), ("drop_after", Scalar::Text)],
    key_len: 1,
};

/// The number of the first one, as TimescaleDB counts.
pub(crate) const FIRST_JOB: i64 = 1000;

/// What stands before the name of a metric, and of a table.
pub(crate) const METRIC: &str = "metric ";

pub(crate) const TABLE: &str = "table ";

/// What a policy is about.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Of {
    /// All metrics that have none of their own.
    Metrics,
    /// One metric.
    Metric(String),
    /// A table whose rows are samples.
    Table(String),
}

impl Of {
    fn kept(&self) -> String {
        match self {
            Of::Metrics => String::new(),
            Of::Metric(name) => format!("{METRIC}{name}"),
            Of::Table(name) => format!("{TABLE}{name}"),
        }
    }

    fn from_kept(kept: &str) -> Of {
        match (kept.strip_prefix(METRIC), kept.strip_prefix(TABLE)) {
            (Some(name), _) => Of::Metric(name.to_string()),
            (None, Some(name)) => Of::Table(name.to_string()),
            (None, None) => Of::Metrics,
        }
    }
}

/// A policy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Policy {
    /// What it is about.
    pub of: Of,
    /// Its number.
    pub job: i64,
    /// An interval, as it was said.
    pub drop_after: String,
}

/// All of them, by their numbers.
pub(crate) fn policies(set: &TableSet) -> Vec<Policy> {
    let one = |row: Vec<Datum>| match row.as_slice() {
        [of, Datum::Int8(job), after] => Some(Policy {
            of: Of::from_kept(text_kept(of)),
            job: *job,
            drop_after: text_kept(after).to_string(),
        }),
        _ => None,
    };
    let mut all: Vec<Policy> = RETENTION.rows(set).into_iter().filter_map(one).collect();
    all.sort_by_key(|one| one.job);
    all
}

/// Keeps a policy in place of the one about the same; its number.
pub(crate) fn put(view: &View, of: &Of, drop_after: &str) -> Result<i64, SqlError> {
    let all = policies(&view.set());
    let known = all.iter().find(|one| one.of == *of).map(|one| one.job);
    let next = all.last().map_or(FIRST_JOB, |one| one.job + 1);
    let job = known.unwrap_or(next);
    let row = vec![kept_text(&of.kept()), Datum::Int8(job), kept_text(drop_after)];
    RETENTION.put(view, row)?;
    Ok(job)
}

/// Forgets the policy about something; whether there was one.
pub(crate) fn forget(view: &View, of: &Of) -> Result<bool, SqlError> {
    let kept = of.kept();
    Ok(0 < RETENTION.forget(view, |row| text_kept(&row[0]) == kept)?)
}
