//! Who makes the series: counts by metric, label and pair.

use crate::stats::{Cardinality, CardinalityRequest, NameCount};
use crate::store::Store;
use crate::{Result, SelectLimits};
use hashbrown::HashMap;
use model::sample::NANOS_PER_DAY;
use model::{LabelsBuilder, METRIC_NAME, TimeRange};

impl Store {
    /// Counts the series live on a day.
    ///
    /// # Errors
    /// As [`Store::select`].
    pub fn cardinality(&self, request: &CardinalityRequest) -> Result<Cardinality> {
        let span = self.stats().time_min_max;
        let newest = span.map(|(_, max)| model::time_range::day_of(max));
        let Some(day) = request.day.or(newest) else { return Ok(Cardinality::default()) };
        let start = i64::from(day).saturating_mul(NANOS_PER_DAY);
        let range = TimeRange::new(start, start.saturating_add(NANOS_PER_DAY - 1));
        let mut tally = Tally::default();
        let limits = SelectLimits { series_max: usize::MAX, deadline: None };
        self.for_each_live(&request.sets, range, &limits, &mut |state, live| {
            let mut labels = LabelsBuilder::new();
            for group in live {
                for slot in group.slots.iter() {
                    for (idx, column) in group.columns.iter().enumerate() {
                        labels.clear();
                        state.index.labels(&group.block, column, slot, &mut labels)?;
                        let columns = group.columns.len() as u64;
                        tally.add(&labels, if idx == 0 { columns } else { 0 });
                    }
                }
            }
            Ok(())
        })?;
        let mut cardinality = tally.finish(request.top_n);
        cardinality.time_min_max = span;
        Ok(cardinality)
    }
}

/// Counts as they grow. Tags are the same for all columns of an entity and counted once for all.
#[derive(Default)]
struct Tally {
    series: u64,
    by_metric: HashMap<String, u64>,
    /// Series by label name and value.
    by_pair: HashMap<String, HashMap<String, u64>>,
}

impl Tally {
    fn add(&mut self, labels: &LabelsBuilder, tags_weight: u64) {
        self.series += 1;
        for (name, value) in labels.iter() {
            if name == METRIC_NAME {
                add_to(&mut self.by_metric, value, 1);
            } else if tags_weight != 0 {
                match self.by_pair.get_mut(name) {
                    Some(values) => add_to(values, value, tags_weight),
                    None => {
                        let values = HashMap::from_iter([(value.to_string(), tags_weight)]);
                        self.by_pair.insert(name.to_string(), values);
                    }
                }
            }
        }
    }

    fn finish(mut self, top_n: usize) -> Cardinality {
        self.by_pair.insert(METRIC_NAME.to_string(), self.by_metric.clone());
        let values =
            |(name, values): (&String, &HashMap<String, u64>)| (name.clone(), values.len() as u64);
        let bytes = |(name, values): (&String, &HashMap<String, u64>)| {
            (name.clone(), values.keys().map(|value| value.len() as u64).sum())
        };
        let pairs = self.by_pair.iter().flat_map(|(name, values)| {
            values.iter().map(move |(value, count)| (format!("{name}={value}"), *count))
        });
        Cardinality {
            series: self.series,
            label_pairs: self.by_pair.values().map(|values| values.len() as u64).sum(),
            by_metric: top(self.by_metric.iter().map(|(n, c)| (n.clone(), *c)), top_n),
            values_by_label: top(self.by_pair.iter().map(values), top_n),
            bytes_by_label: top(self.by_pair.iter().map(bytes), top_n),
            by_pair: top(pairs, top_n),
            time_min_max: None,
        }
    }
}

fn add_to(counts: &mut HashMap<String, u64>, key: &str, count: u64) {
    match counts.get_mut(key) {
        Some(known) => *known += count,
        None => {
            counts.insert(key.to_string(), count);
        }
    }
}

/// The `top_n` largest, by falling count, then by name.
fn top(counts: impl Iterator<Item = (String, u64)>, top_n: usize) -> Vec<NameCount> {
    let mut rows: Vec<NameCount> = counts.map(|(name, count)| NameCount { name, count }).collect();
    rows.sort_by(|a, b| b.count.cmp(&a.count).then_with(|| a.name.cmp(&b.name)));
    rows.truncate(top_n);
    rows
}
