//! Who makes the series: counts by metric, label and pair, on one day.

use crate::select::compile;
use crate::stats::{Cardinality, CardinalityRequest, NameCount};
use crate::store::Store;
use crate::{Result, SelectLimits};
use model::TimeRange;
use model::sample::NANOS_PER_DAY;
use model::time_range::day_of;

impl Store {
    /// Counts the series live on a day, by default the newest with data.
    ///
    /// # Errors
    /// As [`Store::select`].
    pub fn cardinality(&self, request: &CardinalityRequest) -> Result<Cardinality> {
        let span = self.stats().time_min_max;
        let newest = span.map(|(_, max)| day_of(max));
        let mut cardinality = Cardinality { time_min_max: span, ..Cardinality::default() };
        let Some(day) = request.day.or(newest) else { return Ok(cardinality) };
        let start = i64::from(day).saturating_mul(NANOS_PER_DAY);
        let range = TimeRange::new(start, start.saturating_add(NANOS_PER_DAY - 1));
        let limits = SelectLimits { series_max: usize::MAX, deadline: None, cost_max: u64::MAX };
        // A day lies in one month, so there is at most one partition to count.
        self.for_each_live(&compile(&request.sets)?, range, &limits, &mut |state, live| {
            let counted = state.index.cardinality(live, request.top_n, None)?;
            cardinality.series = counted.series_count;
            cardinality.label_pairs = counted.pair_count;
            cardinality.by_metric = named(counted.metrics);
            cardinality.by_pair = named(counted.pairs);
            cardinality.values_by_label = named(counted.label_values);
            for label in &cardinality.values_by_label {
                let values = state.index.label_values(&label.name, live)?;
                let count = values.iter().map(|value| value.len() as u64).sum();
                cardinality.bytes_by_label.push(NameCount { name: label.name.clone(), count });
            }
            Ok(())
        })?;
        cardinality.bytes_by_label.sort_by_key(|label| std::cmp::Reverse(label.count));
        Ok(cardinality)
    }
}

fn named(counted: Vec<index::Counted>) -> Vec<NameCount> {
    counted.into_iter().map(|(name, count)| NameCount { name, count }).collect()
}
