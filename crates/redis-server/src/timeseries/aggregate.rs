//! Samples by buckets of time, and what is computed of each.

use super::samples::Sample;
use super::words::error;
use kv::CommandError;
use std::ops::Range;

/// Values of one answer.
pub const ROWS_MAX: usize = 10_000_000;

/// What is computed of a bucket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Aggregator {
    Avg,
    Sum,
    Min,
    Max,
    Range,
    Count,
    StdP,
    StdS,
    VarP,
    VarS,
    First,
    Last,
    Twa,
    CountNan,
    CountAll,
}

use Aggregator as A;

const NAMES: &[(Aggregator, &str)] = &[
    (A::Avg, "avg"),
    (A::Sum, "sum"),
    (A::Min, "min"),
    (A::Max, "max"),
    (A::Range, "range"),
    (A::Count, "count"),
    (A::StdP, "std.p"),
    (A::StdS, "std.s"),
    (A::VarP, "var.p"),
    (A::VarS, "var.s"),
    (A::First, "first"),
    (A::Last, "last"),
    (A::Twa, "twa"),
    (A::CountNan, "countnan"),
    (A::CountAll, "countall"),
];

impl Aggregator {
    /// The one of that name, in any case.
    pub fn parse(name: &[u8]) -> Option<Aggregator> {
        let found = NAMES.iter().find(|(_, known)| known.as_bytes().eq_ignore_ascii_case(name));
        found.map(|(aggregator, _)| *aggregator)
    }

    /// How many there are.
    pub const COUNT: usize = NAMES.len();

    /// Its name.
    pub fn name(self) -> &'static str {
        NAMES.iter().find(|(aggregator, _)| *aggregator == self).map_or("", |(_, name)| name)
    }

    /// Whether it may combine the values of several series at one time.
    pub fn is_reducer(self) -> bool {
        !matches!(self, A::First | A::Last | A::Twa)
    }

    /// Of these values, none of them NaN, and how many others were; none if there is nothing to say.
    fn of(self, values: &[f64], nan_count: usize) -> Option<f64> {
        let count = values.len() as f64;
        match self {
            A::CountNan => return Some(nan_count as f64),
            A::CountAll => return Some(count + nan_count as f64),
            _ => {}
        }
        let (first, last) = (values.first()?, values.last()?);
        let sum = || values.iter().sum::<f64>();
        let min = || values.iter().copied().fold(f64::INFINITY, f64::min);
        let max = || values.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        Some(match self {
            A::Avg => mean(values),
            A::Sum => sum(),
            A::Min => min(),
            A::Max => max(),
            A::Range => max() - min(),
            A::Count => count,
            A::StdP => (squares(values) / count).sqrt(),
            A::VarP => squares(values) / count,
            A::StdS | A::VarS if count < 2.0 => 0.0,
            A::StdS => (squares(values) / (count - 1.0)).sqrt(),
            A::VarS => squares(values) / (count - 1.0),
            A::First => *first,
            A::Last => *last,
            A::Twa | A::CountNan | A::CountAll => return None,
        })
    }

    /// Of values of several series at one time.
    pub fn reduce(self, values: &[f64]) -> f64 {
        let numbers: Vec<f64> = values.iter().copied().filter(|value| !value.is_nan()).collect();
        let empty = if self == A::Count { 0.0 } else { f64::NAN };
        self.of(&numbers, values.len() - numbers.len()).unwrap_or(empty)
    }

    /// Of a bucket without samples between others; `last` is the newest value before it.
    fn of_nothing(self, last: Option<f64>) -> f64 {
        match self {
            A::Sum | A::Count | A::CountNan | A::CountAll => 0.0,
            A::Last => last.unwrap_or(f64::NAN),
            _ => f64::NAN,
        }
    }
}

/// The mean; a sum that overflows does not spoil it.
fn mean(values: &[f64]) -> f64 {
    let count = values.len() as f64;
    let sum: f64 = values.iter().sum();
    match sum.is_finite() || values.iter().any(|value| !value.is_finite()) {
        true => sum / count,
        false => values.iter().map(|value| value / count).sum(),
    }
}

/// The sum of squared distances from the mean.
fn squares(values: &[f64]) -> f64 {
    let mean = mean(values);
    values.iter().map(|value| (value - mean) * (value - mean)).sum()
}

/// Which instant of a bucket stands for it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum BucketTime {
    #[default]
    Low,
    Mid,
    High,
}

/// What was asked for.
#[derive(Clone, Debug)]
pub struct Aggregation {
    /// A column each.
    pub aggregators: Vec<Aggregator>,
    /// How long a bucket is.
    pub bucket_ms: i64,
    /// Where one begins.
    pub align_ms: i64,
    /// What stands for it.
    pub time: BucketTime,
    /// Whether buckets without samples are shown.
    pub is_empty_shown: bool,
}

/// Times with as many values each.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Rows {
    /// When.
    pub times: Vec<i64>,
    /// `width` for each time.
    pub values: Vec<f64>,
    /// Values of a row.
    pub width: usize,
}

impl Rows {
    /// Samples as rows of one value.
    pub fn of(samples: &[Sample]) -> Rows {
        Rows {
            times: samples.iter().map(|sample| sample.ms).collect(),
            values: samples.iter().map(|sample| sample.value).collect(),
            width: 1,
        }
    }

    /// All of them.
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = (i64, &[f64])> {
        self.times.iter().copied().zip(self.values.chunks(self.width.max(1)))
    }
}

/// What lies around the samples of a query, for averages by time.
#[derive(Clone, Copy, Debug)]
pub struct Around {
    /// The instants that count.
    pub from_ms: i64,
    pub to_ms: i64,
    /// The sample before those of the query.
    pub before: Option<Sample>,
    /// The one behind them.
    pub after: Option<Sample>,
}

/// Where the bucket of an instant begins.
pub fn bucket_start(ms: i64, bucket_ms: i64, align_ms: i64) -> i64 {
    ms - (ms - align_ms).rem_euclid(bucket_ms)
}

/// A bucket under way.
struct Bucket<'a> {
    start: i64,
    samples: &'a [Sample],
}

/// Rows of buckets, oldest first.
///
/// # Errors
/// When there are more than [`ROWS_MAX`].
pub fn aggregate(
    samples: &[Sample],
    aggregation: &Aggregation,
    around: &Around,
) -> Result<Rows, CommandError> {
    let mut rows = Rows { width: aggregation.aggregators.len(), ..Rows::default() };
    let start_of =
        |sample: &Sample| bucket_start(sample.ms, aggregation.bucket_ms, aggregation.align_ms);
    let numbers: Vec<Sample> =
        samples.iter().filter(|sample| !sample.value.is_nan()).copied().collect();
    let start_at = |ms: i64| bucket_start(ms, aggregation.bucket_ms, aggregation.align_ms);
    // Empty buckets are between samples, whether those are in the range or beside it.
    let mut end_before = around.before.map(|_| start_at(around.from_ms));
    let mut done = 0;
    let neighbours = |from: usize, to: usize| Around {
        before: from.checked_sub(1).and_then(|at| numbers.get(at)).copied().or(around.before),
        after: numbers.get(to).copied().or(around.after),
        ..*around
    };
    for samples in samples.chunk_by(|one, next| start_of(one) == start_of(next)) {
        let start = samples.first().map_or(0, start_of);
        let within = samples.iter().filter(|sample| !sample.value.is_nan()).count();
        push_gap(&mut rows, aggregation, end_before..Some(start), &neighbours(done, done))?;
        let bucket = Bucket { start, samples };
        push(&mut rows, aggregation, &bucket, &neighbours(done, done + within))?;
        done += within;
        end_before = Some(start + aggregation.bucket_ms);
    }
    let end = around.after.map(|_| start_at(around.to_ms).saturating_add(aggregation.bucket_ms));
    push_gap(&mut rows, aggregation, end_before..end, &neighbours(done, done))?;
    Ok(rows)
}

/// Adds the empty buckets between two times if they are shown, and both are known.
fn push_gap(
    rows: &mut Rows,
    aggregation: &Aggregation,
    gap: Range<Option<i64>>,
    around: &Around,
) -> Result<(), CommandError> {
    let Some((mut start, end)) = gap.start.zip(gap.end).filter(|_| aggregation.is_empty_shown)
    else {
        return Ok(());
    };
    while start < end {
        push_empty(rows, aggregation, start, around)?;
        start += aggregation.bucket_ms;
    }
    Ok(())
}

fn push_time(rows: &mut Rows, aggregation: &Aggregation, start: i64) -> Result<(), CommandError> {
    if ROWS_MAX < (rows.times.len() + 1).saturating_mul(rows.width) {
        return Err(error(format!("more than {ROWS_MAX} buckets")));
    }
    let start = start.max(0);
    rows.times.push(match aggregation.time {
        BucketTime::Low => start,
        BucketTime::Mid => start + aggregation.bucket_ms / 2,
        BucketTime::High => start + aggregation.bucket_ms,
    });
    Ok(())
}

fn push(
    rows: &mut Rows,
    aggregation: &Aggregation,
    bucket: &Bucket<'_>,
    around: &Around,
) -> Result<(), CommandError> {
    let numbers: Vec<Sample> =
        bucket.samples.iter().filter(|sample| !sample.value.is_nan()).copied().collect();
    let values: Vec<f64> = numbers.iter().map(|sample| sample.value).collect();
    let nan_count = bucket.samples.len() - numbers.len();
    let of = |aggregator: &Aggregator| match aggregator {
        A::Twa => time_weighted(&numbers, aggregation, bucket.start, around),
        other => other.of(&values, nan_count),
    };
    let row: Vec<Option<f64>> = aggregation.aggregators.iter().map(of).collect();
    if row.iter().all(Option::is_none) && !aggregation.is_empty_shown {
        return Ok(());
    }
    push_time(rows, aggregation, bucket.start)?;
    let last = around.before.map(|sample| sample.value);
    let pairs = row.iter().zip(&aggregation.aggregators);
    rows.values.extend(pairs.map(|(value, one)| value.unwrap_or(one.of_nothing(last))));
    Ok(())
}

fn push_empty(
    rows: &mut Rows,
    aggregation: &Aggregation,
    start: i64,
    around: &Around,
) -> Result<(), CommandError> {
    push_time(rows, aggregation, start)?;
    let last = around.before.map(|sample| sample.value);
    for aggregator in &aggregation.aggregators {
        rows.values.push(match aggregator {
            A::Twa => time_weighted(&[], aggregation, start, around).unwrap_or(f64::NAN),
            other => other.of_nothing(last),
        });
    }
    Ok(())
}

/// The mean over time of the lines between samples, as far as they are within the bucket.
fn time_weighted(
    samples: &[Sample],
    aggregation: &Aggregation,
    start: i64,
    around: &Around,
) -> Option<f64> {
    let from = start.max(around.from_ms);
    let to = (start + aggregation.bucket_ms).min(around.to_ms);
    let first = samples.first().copied().or(around.after);
    let last = samples.last().copied().or(around.before);
    let mut points: Vec<(f64, f64)> = Vec::with_capacity(samples.len() + 2);
    if let (Some(before), Some(first)) = (around.before, first)
        && before.ms < from
        && from < first.ms
    {
        points.push((from as f64, between(before, first, from)));
    }
    points.extend(samples.iter().map(|sample| (sample.ms as f64, sample.value)));
    if let (Some(after), Some(last)) = (around.after, last)
        && last.ms < to
        && to <= after.ms
    {
        points.push((to as f64, between(last, after, to)));
    }
    let (first, last) = (points.first()?, points.last()?);
    let span = last.0 - first.0;
    if span <= 0.0 {
        return Some(last.1);
    }
    let area =
        points.windows(2).map(|pair| (pair[1].0 - pair[0].0) * (pair[0].1 + pair[1].1) / 2.0);
    Some(area.sum::<f64>() / span)
}

/// The value at an instant on the line between two samples.
fn between(one: Sample, other: Sample, ms: i64) -> f64 {
    let share = (ms - one.ms) as f64 / (other.ms - one.ms) as f64;
    one.value + (other.value - one.value) * share
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rows(
        aggregator: Aggregator,
        is_empty_shown: bool,
        samples: &[(i64, f64)],
    ) -> Vec<(i64, f64)> {
        let samples: Vec<_> = samples.iter().map(|&(ms, value)| Sample { ms, value }).collect();
        let aggregation = Aggregation {
            aggregators: vec![aggregator],
            bucket_ms: 10,
            align_ms: 0,
            time: BucketTime::Low,
            is_empty_shown,
        };
        let around = Around { from_ms: 0, to_ms: i64::MAX, before: None, after: None };
        let rows = aggregate(&samples, &aggregation, &around).expect("few rows");
        rows.iter().map(|(ms, values)| (ms, values[0])).collect()
    }

    #[test]
    fn buckets_of_all_kinds() {
        let samples = [(1, 1.0), (5, f64::NAN), (9, 3.0), (35, 10.0)];
        assert_eq!(rows(A::Avg, false, &samples), [(0, 2.0), (30, 10.0)]);
        assert_eq!(rows(A::CountNan, false, &samples), [(0, 1.0), (30, 0.0)]);
        assert_eq!(rows(A::CountAll, false, &samples), [(0, 3.0), (30, 1.0)]);
        assert_eq!(rows(A::Sum, true, &samples), [(0, 4.0), (10, 0.0), (20, 0.0), (30, 10.0)]);
        assert_eq!(rows(A::Last, true, &samples), [(0, 3.0), (10, 3.0), (20, 3.0), (30, 10.0)]);
        assert_eq!(rows(A::VarP, false, &samples), [(0, 1.0), (30, 0.0)]);
        assert_eq!(rows(A::StdS, false, &samples), [(0, 2.0f64.sqrt()), (30, 0.0)]);
        assert!(rows(A::Max, true, &samples)[1].1.is_nan());
    }

    #[test]
    fn empty_buckets_reach_to_samples_beside_the_range() {
        let sample = |ms| Sample { ms, value: 1.0 };
        let times = |samples: &[Sample], before: Option<i64>, after: Option<i64>| {
            let aggregation = Aggregation {
                aggregators: vec![A::Sum],
                bucket_ms: 10,
                align_ms: 0,
                time: BucketTime::Low,
                is_empty_shown: true,
            };
            let (before, after) = (before.map(sample), after.map(sample));
            let around = Around { from_ms: 21, to_ms: 59, before, after };
            aggregate(samples, &aggregation, &around).expect("few rows").times
        };
        assert_eq!(times(&[sample(41)], Some(3), Some(99)), [20, 30, 40, 50]);
        assert_eq!(times(&[sample(41)], None, Some(99)), [40, 50]);
        assert_eq!(times(&[sample(41)], Some(3), None), [20, 30, 40]);
        assert_eq!(times(&[], Some(3), Some(99)), [20, 30, 40, 50]);
        assert!(times(&[], None, Some(99)).is_empty() && times(&[], Some(3), None).is_empty());
    }

    #[test]
    fn averages_by_time_follow_lines() {
        assert_eq!(rows(A::Twa, false, &[(0, 0.0), (20, 20.0)]), [(0, 5.0), (20, 20.0)]);
        let all = rows(A::Twa, true, &[(0, 0.0), (20, 20.0)]);
        assert_eq!(all, [(0, 5.0), (10, 15.0), (20, 20.0)]);
        assert_eq!(bucket_start(7, 10, 5), 5);
        assert_eq!(bucket_start(3, 10, 5), -5);
    }
}
