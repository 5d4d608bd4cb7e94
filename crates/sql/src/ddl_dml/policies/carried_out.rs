//! Policies are carried out: what is older than they say is deleted.
//!
//! Each time something is deleted costs a tombstone until the next merge, so a policy is not carried out before it has
//! a hundredth of its time to drop. What was dropped before is looked at again once a day, for samples that came late.

use crate::ddl_dml::hypertables::removal::instant;
use crate::ddl_dml::runner::Runner;
use crate::tables::heap::retention_policies::{Of, Policy, policies};
use crate::tables::hypertables::shape::{Hypertable, TABLE_LABEL};
use crate::tables::metrics::alternatives::escaped;
use crate::types::error::SqlError;
use model::sample::{NANOS_PER_MICRO, NANOS_PER_SECOND};
use model::{METRIC_NAME, MatchOp, Matcher, TimeRange};
use std::collections::HashMap;
use tokio::task::block_in_place;

/// Of how many parts of its time a policy drops one at a time.
const PARTS: i64 = 100;
/// The shortest and the longest of such parts, in nanoseconds.
const PART_MIN: i64 = 60 * NANOS_PER_SECOND;
const PART_MAX: i64 = 24 * 3600 * NANOS_PER_SECOND;
/// When all is looked at again, in nanoseconds.
const AGAIN: i64 = 24 * 3600 * NANOS_PER_SECOND;

/// What was dropped last of a policy.
#[derive(Clone, Copy, Debug)]
struct Done {
    /// All that was older was dropped.
    before: i64,
    /// When all was looked at.
    all_at: i64,
}

/// Carries policies out as they become due.
#[derive(Debug, Default)]
pub struct Keeper {
    done: HashMap<Of, Done>,
}

impl Keeper {
    /// Carries out those that are due. One that fails does not keep others from it.
    ///
    /// # Errors
    /// The last that went wrong.
    pub async fn keep(&mut self, runner: &Runner) -> Result<(), SqlError> {
        let (all, mut last) = (policies(&runner.view.set()), Ok(()));
        self.done.retain(|of, _| all.iter().any(|one| one.of == *of));
        for policy in &all {
            if let Err(error) = self.keep_one(runner, policy).await {
                last = Err(error);
            }
        }
        last
    }

    async fn keep_one(&mut self, runner: &Runner, policy: &Policy) -> Result<(), SqlError> {
        let (now, before) = (runner.view.series().now(), cutoff(runner, policy).await?);
        let part = ((now - before) / PARTS).clamp(PART_MIN, PART_MAX);
        let known = self.done.get(&policy.of).copied();
        let is_again = known.is_none_or(|known| AGAIN <= now - known.all_at);
        let from = match known {
            Some(known) if !is_again && before - known.before < part => return Ok(()),
            Some(known) if !is_again => Some(known.before),
            _ => None,
        };
        carry_out(runner, policy, from).await?;
        let all_at = known.filter(|_| !is_again).map_or(now, |known| known.all_at);
        self.done.insert(policy.of.clone(), Done { before, all_at });
        Ok(())
    }
}

/// Deletes what a policy does not keep, from a time on or all of it.
///
/// # Errors
/// When the store cannot.
pub async fn carry_out(
    runner: &Runner,
    policy: &Policy,
    from: Option<i64>,
) -> Result<(), SqlError> {
    let before = cutoff(runner, policy).await?;
    let range = TimeRange::new(from.unwrap_or(TimeRange::ALL.start), before - 1);
    if range.is_empty() {
        return Ok(());
    }
    let matchers = matchers(policy, &policies(&runner.view.set()));
    block_in_place(|| runner.view.series().delete(matchers, range))
}

/// What is older goes, in nanoseconds: by a clock that has jumped ahead nothing does until it is
/// believed, as with `--retention`.
async fn cutoff(runner: &Runner, policy: &Policy) -> Result<i64, SqlError> {
    let text = format!("INTERVAL '{}'", policy.drop_after.replace('\'', "''"));
    let by_clock = instant(runner, &text).await?.saturating_mul(NANOS_PER_MICRO);
    Ok(by_clock.saturating_sub(runner.view.series().ahead()))
}

/// The series that a policy is about. Rows of tables are no metric's own.
fn matchers(policy: &Policy, all: &[Policy]) -> Vec<Matcher> {
    let no_table = || Matcher::equal(TABLE_LABEL, "");
    match &policy.of {
        Of::Table(name) => vec![Hypertable::matcher(name)],
        Of::Metric(name) => vec![Matcher::equal(METRIC_NAME, name), no_table()],
        Of::Metrics => {
            let own = all.iter().filter_map(|one| match &one.of {
                Of::Metric(name) => Some(escaped(name)),
                _ => None,
            });
            let own: Vec<String> = own.collect();
            let others = Matcher::new(METRIC_NAME, MatchOp::NotRegex, own.join("|"));
            vec![others, no_table()]
        }
    }
}
