//! Where history is copied from: what every kind of source can do.

use super::exact::Exact;
use super::points::Points;
use super::series::{Filter, Series};
use model::sample::NANOS_PER_MILLI;
use model::{TimeRange, Timestamp};
use serde::{Deserialize, Serialize};
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use wire::influx::answer::AnswerRow;
use wire::json_lines::StringLine;

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

impl Window {
    /// From a time on, to the end of time.
    pub fn later(from: Timestamp) -> Window {
        let range = TimeRange::new(from, Timestamp::MAX);
        Window { name: "later".to_string(), range, samples: None }
    }
}

impl fmt::Display for Window {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.name)
    }
}

/// Totals that a source counts for a window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Total {
    /// Series with a name.
    Series(u64),
    /// Samples of such series, strings among them.
    Samples(u64),
}

/// A place within a window: all that was handed on before it need not come again.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Mark {
    /// Where it is, as the source counts.
    pub at: u64,
    /// How many series stand before it.
    pub count: u64,
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
    /// Texts of a series of a Quipu.
    Strings(StringLine),
    /// Nothing: a place in between, behind a whole series.
    Mark(Mark),
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
            Given::Strings(_) | Given::Mark(_) => return Vec::new(),
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
            Given::Strings(strings) => {
                strings.samples.retain(|(nanos, _)| range.contains(*nanos));
                !strings.samples.is_empty() && filter.takes(&strings.labels)
            }
            Given::Mark(_) => true,
        }
    }

    /// How many texts are lost, as they cannot be said in the new place.
    pub fn texts_lost(&self, filter: &Filter) -> u64 {
        match self {
            Given::Points(points) => points.texts_lost(filter),
            Given::Strings(strings) if filter.changes_names() => strings.samples.len() as u64,
            _ => 0,
        }
    }

    /// Its texts, with the labels that they have in the new place.
    pub fn strings(&self, filter: &Filter) -> Vec<StringLine> {
        match self {
            Given::Points(points) if 0 == points.texts_lost(filter) => points.strings(filter),
            Given::Strings(strings) if !filter.changes_names() => {
                let labels = filter.relabelled(strings.labels.clone());
                vec![StringLine { labels, ..strings.clone() }]
            }
            _ => Vec::new(),
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
            Given::Strings(strings) => {
                strings.samples.iter().for_each(|(nanos, _)| tell(*nanos, 1))
            }
            Given::Mark(_) => {}
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

    /// Whether the last reading gave samples twice: it had begun with a block that turned out to be rotten.
    /// The next one of the same window does not.
    fn has_repeated(&self) -> bool {
        false
    }

    /// Bytes that are read for a window, where they are known.
    fn size(&self, _window: &Window) -> Option<u64> {
        None
    }

    /// Counts bytes as they are read, where they are known.
    fn bytes_read(&self) -> Option<Arc<AtomicU64>> {
        None
    }

    /// Has the next reading of a window begin at a mark that it handed on before.
    fn go_on(&mut self, _window: &Window, _mark: Mark) {}

    /// Windows from a time on, which is behind all others: what they have is counted, and not copied.
    fn later(&self, _from: Timestamp) -> Vec<Window> {
        Vec::new()
    }

    /// Counts what a window has by a question that shares nothing with [`Source::read`]: neither its lists
    /// nor its readers. `None` where the source has no such question, or refuses it. It may count less.
    ///
    /// # Errors
    /// When the source does not answer it.
    fn count(&mut self, _window: &Window) -> anyhow::Result<Option<Total>> {
        Ok(None)
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
