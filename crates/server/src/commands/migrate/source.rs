//! Where history is copied from: what every kind of source can do.

use super::exact::Exact;
use super::points::Points;
use super::series::{Filter, Series};
use model::TimeRange;
use model::sample::NANOS_PER_MILLI;
use std::fmt;
use wire::influx::answer::AnswerRow;

/// A piece of history that is copied as one: all of its samples are stored before it is done.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Window {
    /// What it is called where people and the progress file tell of it.
    pub name: String,
    /// Its time; the end is in it.
    pub range: TimeRange,
    /// How many samples it has, where the source says so.
    pub samples: Option<u64>,
}

impl fmt::Display for Window {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.name)
    }
}

/// A piece of what a source has.
pub enum Given {
    /// Samples of a series.
    Series(Series),
    /// Rows of a measurement of InfluxDB.
    Points(Points),
    /// Samples of a series, with what milliseconds cannot say.
    #[cfg_attr(not(feature = "sql"), allow(dead_code, reason = "Parquet alone has such"))]
    Exact(Exact),
}

impl From<Series> for Given {
    fn from(series: Series) -> Given {
        Given::Series(series)
    }
}

impl Given {
    /// The series that it is, with the labels that they have in the new place.
    pub fn into_series(self, filter: &Filter) -> Vec<Series> {
        match self {
            Given::Series(mut series) => {
                series.labels = filter.relabelled(series.labels);
                vec![series]
            }
            other => other.into_exact(filter).into_iter().map(Exact::into_series).collect(),
        }
    }

    /// The same with every nanosecond.
    pub fn into_exact(self, filter: &Filter) -> Vec<Exact> {
        let mut exact = match self {
            Given::Series(series) => Exact::of_series(series),
            Given::Points(points) => return points.exact(filter),
            Given::Exact(exact) => exact,
        };
        exact.labels = filter.relabelled(exact.labels);
        vec![exact]
    }

    /// Leaves what is of a time and of the series that are copied; whether that is anything.
    pub fn tidy(&mut self, range: &TimeRange, filter: &Filter) -> bool {
        match self {
            Given::Series(series) => {
                series.tidy(range);
                !series.is_empty() && filter.takes(&series.labels)
            }
            Given::Points(points) => {
                points.tidy(range, filter);
                0 < points.len()
            }
            Given::Exact(exact) => {
                exact.tidy(range);
                0 < exact.len() && filter.takes(&exact.labels)
            }
        }
    }

    /// Tells of every time, in nanoseconds, how many samples there are.
    pub fn each_time(&self, tell: &mut dyn FnMut(i64, u64)) {
        let nanos = |millis: i64| millis.saturating_mul(NANOS_PER_MILLI);
        match self {
            Given::Series(series) => {
                series.samples.iter().for_each(|one| tell(nanos(one.millis), 1));
                series.histograms.iter().for_each(|one| tell(nanos(one.millis), 1));
            }
            Given::Points(points) => {
                let count = |row: &AnswerRow| row.values.iter().flatten().count() as u64;
                points.rows.iter().for_each(|row| tell(row.time, count(row)));
            }
            Given::Exact(exact) => {
                exact.samples.iter().for_each(|(when, _)| tell(when.nanos, 1));
                exact.histograms.iter().for_each(|(when, _)| tell(when.nanos, 1));
            }
        }
    }
}

/// Takes what a source gives: the samples of a series in the order of their times, in pieces where the
/// source likes.
pub type Sink<'s> = dyn FnMut(Given) -> anyhow::Result<()> + 's;

/// A place with samples of the past.
pub trait Source: Send {
    /// Its windows, the newest first.
    ///
    /// # Errors
    /// When it cannot be asked.
    fn windows(&mut self) -> anyhow::Result<Vec<Window>>;

    /// Whether a window that cannot be read says nothing of the others, and reading it again is of no use:
    /// so it is with files.
    fn is_apart(&self) -> bool {
        false
    }

    /// Whether no two windows have samples of the same series and time, as long as labels stay what they
    /// are.
    fn is_disjoint(&self) -> bool {
        false
    }

    /// Whether a series may come several times within a window, with samples of the same time: so it is with
    /// files that nobody has sorted.
    fn is_scattered(&self) -> bool {
        false
    }

    /// What was left out of the windows that were read, in words.
    fn left_out(&self) -> Vec<String> {
        Vec::new()
    }

    /// Hands on all series of a window. The same again gives the same, and more where samples came since.
    ///
    /// # Errors
    /// When it breaks off: then only a part was handed on.
    fn read(&mut self, window: &Window, sink: &mut Sink<'_>) -> anyhow::Result<()>;
}
