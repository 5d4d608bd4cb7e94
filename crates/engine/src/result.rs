//! Values that leave the engine, shaped so that a door can write them as a stream.

use crate::gap::is_absent;
use crate::time::Grid;
use histogram::Histogram;
use model::Labels;
use std::sync::Arc;
use std::time::Duration;

/// The answer to a query.
#[derive(Debug)]
pub struct QueryResult {
    /// Its value.
    pub value: Value,
    /// Texts that say why the value may be wrong.
    pub warnings: Vec<String>,
    /// Whether something is missing that could not be read; the warnings say what.
    pub is_partial: bool,
    /// Texts that say why the value may surprise.
    pub infos: Vec<String>,
    /// What it cost.
    pub stats: QueryStats,
    /// How long it took.
    pub timings: Timings,
    /// By step, how many samples an instant query at its time would see; empty unless
    /// [`crate::options::StepStats::Counted`] was asked for.
    pub step_samples: Vec<u64>,
}

/// What a query did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct QueryStats {
    /// Series that selectors matched.
    pub series: u64,
    /// Samples read from the source.
    pub samples_read: u64,
    /// Most samples held at once.
    pub samples_peak: u64,
    /// Most bytes held at once.
    pub bytes_peak: u64,
    /// Steps evaluated.
    pub steps: u64,
    /// Steps whose values a cache had.
    pub steps_reused: u64,
}

/// Where the time of a query went.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Timings {
    /// Text to tree.
    pub parse: Duration,
    /// Selectors finding their series.
    pub select: Duration,
    /// Everything from the tree to the value, selecting and ordering included.
    pub evaluate: Duration,
    /// Ordering the value's series.
    pub sort: Duration,
}

impl Timings {
    /// Evaluating without selecting and ordering: reading samples and calculating.
    pub fn work(&self) -> Duration {
        self.evaluate.saturating_sub(self.select + self.sort)
    }
}

/// The value of a query.
#[derive(Debug)]
pub enum Value {
    /// A number.
    Scalar(f64),
    /// A string.
    String(String),
    /// One sample per series, all at the moment of the evaluation.
    Vector(Vec<Sample>),
    /// Many samples per series.
    Matrix(Matrix),
}

impl Value {
    /// The word that Prometheus' API has for the value's type (`resultType`).
    pub fn type_name(&self) -> &'static str {
        match self {
            Value::Scalar(_) => "scalar",
            Value::String(_) => "string",
            Value::Vector(_) => "vector",
            Value::Matrix(_) => "matrix",
        }
    }
}

/// A series and its value.
#[derive(Clone, Debug, PartialEq)]
pub struct Sample {
    /// Which series.
    pub labels: Labels,
    /// Its value; NaN and meaningless where there is a histogram.
    pub value: f64,
    /// The histogram that is its value instead.
    pub histogram: Option<Box<Histogram>>,
}

impl Sample {
    /// A number.
    pub fn number(labels: Labels, value: f64) -> Sample {
        Sample { labels, value, histogram: None }
    }

    /// A histogram.
    pub fn histogram(labels: Labels, histogram: Histogram) -> Sample {
        Sample { labels, value: f64::NAN, histogram: Some(Box::new(histogram)) }
    }
}

/// The histograms of one series: milliseconds and values, oldest first. Series share those that
/// are the same.
pub(crate) type HistogramPoints = Vec<(i64, Arc<Histogram>)>;

/// Series and their samples, ordered by labels.
#[derive(Debug)]
pub struct Matrix {
    labels: Vec<Labels>,
    /// The order in which series are shown, as indexes into `labels`.
    order: Vec<u32>,
    samples: Samples,
    /// The histograms of each series, in the order of `labels`; nothing when no series has any.
    histograms: Vec<HistogramPoints>,
}

#[derive(Debug)]
enum Samples {
    /// `labels.len() * grid.len` values, gaps among them.
    Grid(Grid, Vec<f64>),
    /// Milliseconds and values of each series.
    Points(Vec<Vec<(i64, f64)>>),
}

impl Matrix {
    pub(crate) fn on_grid(grid: Grid, labels: Vec<Labels>, values: Vec<f64>) -> Matrix {
        assert_eq!(labels.len() * grid.len, values.len());
        Matrix {
            order: order(labels.iter()),
            labels,
            samples: Samples::Grid(grid, values),
            histograms: Vec::new(),
        }
    }

    /// As [`Matrix::on_grid`], with the series in the order in which they are given.
    pub(crate) fn on_grid_as_they_stand(
        grid: Grid,
        labels: Vec<Labels>,
        values: Vec<f64>,
    ) -> Matrix {
        assert_eq!(labels.len() * grid.len, values.len());
        let order = (0..labels.len() as u32).collect();
        Matrix { order, labels, samples: Samples::Grid(grid, values), histograms: Vec::new() }
    }

    pub(crate) fn of_points(series: Vec<(Labels, Vec<(i64, f64)>)>) -> Matrix {
        let (labels, points): (Vec<_>, Vec<_>) = series.into_iter().unzip();
        Matrix {
            order: order(labels.iter()),
            labels,
            samples: Samples::Points(points),
            histograms: Vec::new(),
        }
    }

    /// With the histograms of each series, in the order in which the series were given.
    pub(crate) fn with_histograms(self, histograms: Vec<HistogramPoints>) -> Matrix {
        assert!(histograms.is_empty() || histograms.len() == self.labels.len());
        Matrix { histograms, ..self }
    }

    /// How many series there are.
    pub fn len(&self) -> usize {
        self.order.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.order.is_empty()
    }

    /// Leaves out all but the first `len` series.
    pub fn truncate(&mut self, len: usize) {
        self.order.truncate(len);
    }

    /// How many points there are, gaps on the grid and series left out counted too.
    pub fn cells(&self) -> usize {
        let floats: usize = match &self.samples {
            Samples::Grid(_, values) => values.len(),
            Samples::Points(points) => points.iter().map(Vec::len).sum(),
        };
        floats + self.histograms.iter().map(Vec::len).sum::<usize>()
    }

    /// The labels of series `idx`.
    pub fn labels(&self, idx: usize) -> &Labels {
        &self.labels[self.order[idx] as usize]
    }

    /// Whether any series has histograms.
    pub fn has_histograms(&self) -> bool {
        !self.histograms.is_empty()
    }

    /// The histograms of series `idx`: milliseconds since the epoch and values, oldest first. No
    /// time is among [`Matrix::points`] too.
    pub fn histograms(&self, idx: usize) -> impl Iterator<Item = (i64, &Histogram)> + '_ {
        let of_series = self.histograms.get(self.order[idx] as usize);
        of_series.into_iter().flatten().map(|(at_ms, histogram)| (*at_ms, &**histogram))
    }

    /// The values of series `idx` at the steps of the grid, gaps among them; `None` when the
    /// samples are on no grid, or not all are numbers.
    pub(crate) fn grid_row(&self, idx: usize) -> Option<&[f64]> {
        if self.has_histograms() {
            return None;
        }
        let row = self.order[idx] as usize;
        match &self.samples {
            Samples::Grid(grid, values) => Some(&values[row * grid.len..(row + 1) * grid.len]),
            Samples::Points(_) => None,
        }
    }

    /// The numbers of series `idx`: milliseconds since the epoch and values, oldest first.
    pub fn points(&self, idx: usize) -> impl Iterator<Item = (i64, f64)> + '_ {
        let row = self.order[idx] as usize;
        let (grid, values, points): (_, &[f64], &[(i64, f64)]) = match &self.samples {
            Samples::Grid(grid, values) => {
                (*grid, &values[row * grid.len..(row + 1) * grid.len], &[])
            }
            Samples::Points(points) => (Grid::instant(0), &[], &points[row]),
        };
        let on_grid = values.iter().enumerate().filter(|(_, value)| !is_absent(**value));
        on_grid.map(move |(step, value)| (grid.at_ms(step), *value)).chain(points.iter().copied())
    }
}

/// The order of label sets in an answer, as indexes.
pub(crate) fn order<'l>(labels: impl Iterator<Item = &'l Labels>) -> Vec<u32> {
    let labels: Vec<&Labels> = labels.collect();
    assert!(labels.len() <= u32::MAX as usize);
    let mut order: Vec<u32> = (0..labels.len() as u32).collect();
    if labels.len() < KEYED_LEN_MIN {
        order.sort_by_key(|idx| labels[*idx as usize]);
        return order;
    }
    // Comparing label by label would read every set a dozen times.
    let (mut keys, mut ends) = (Vec::new(), Vec::with_capacity(labels.len()));
    for labels in labels {
        for pair in labels.pairs() {
            push_ordered(&mut keys, pair.name);
            push_ordered(&mut keys, pair.value);
        }
        ends.push(keys.len());
    }
    let key = |idx: u32| {
        let start = idx.checked_sub(1).map_or(0, |before| ends[before as usize]);
        &keys[start..ends[idx as usize]]
    };
    order.sort_by(|a, b| key(*a).cmp(key(*b)));
    order
}

/// From so many series on, keys pay.
const KEYED_LEN_MIN: usize = 32;

/// Appends a string so that strings one after the other compare as their bytes do: a zero ends it,
/// and what would be mistaken for the end is escaped.
fn push_ordered(keys: &mut Vec<u8>, text: &[u8]) {
    if text.iter().all(|byte| 1 < *byte) {
        keys.extend_from_slice(text);
    } else {
        for byte in text {
            match byte {
                0 | 1 => keys.extend_from_slice(&[1, byte + 1]),
                _ => keys.push(*byte),
            }
        }
    }
    keys.push(0);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_order_as_labels_do() {
        let texts = ["a", "b", "a\0", "a\0b", "a\u{1}", "a\u{2}", "aa", "\0", "é", "ab", "z"];
        let mut labels = vec![Labels::default()];
        for (one, two) in texts.iter().flat_map(|one| texts.iter().map(move |two| (one, two))) {
            labels.push(Labels::from_pairs(&[("n", one), ("o", two)]));
            labels.push(Labels::from_pairs(&[("n", one)]));
            labels.push(Labels::from_pairs(&[(format!("n{one}"), two)]));
        }
        labels.reverse();
        assert!(KEYED_LEN_MIN <= labels.len());
        let mut expected: Vec<u32> = (0..labels.len() as u32).collect();
        expected.sort_by_key(|idx| &labels[*idx as usize]);
        assert_eq!(order(labels.iter()), expected);
    }
}
