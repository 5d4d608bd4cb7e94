//! What is lost, by series and time. Held by ordinals, page by page, and told by labels where they
//! are known.

use crate::base::damage::rfc3339;
use crate::base::period::Period;
use crate::offline::verify::partition_index::PartitionIndex;
use crate::partition::histograms::names;
use model::{Labels, LabelsBuilder, METRIC_NAME, TimeRange};
use roaring::RoaringBitmap;
use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};

/// Something that is lost.
#[derive(Debug)]
pub struct Loss {
    /// The file that it was in.
    pub file: PathBuf,
    /// The partition, if it is of one.
    pub period: Option<Period>,
    /// Whose samples.
    pub of: LostOf,
    /// From when.
    pub range: TimeRange,
}

/// Whose samples are lost.
#[derive(Debug)]
pub enum LostOf {
    /// Of the series with these ordinals, some or all.
    Series(RoaringBitmap),
    /// Nobody knows of which series; what it was.
    Unknown(String),
}

impl Loss {
    /// The loss of something whose series and time are not known.
    pub fn unknown(file: PathBuf, what: String) -> Loss {
        Loss { file, period: None, of: LostOf::Unknown(what), range: TimeRange::ALL }
    }
}

/// All that is lost.
pub struct Losses {
    pub(crate) losses: Vec<Loss>,
    pub(crate) partitions: BTreeMap<Period, PartitionIndex>,
}

/// A line of the list.
#[derive(Debug)]
pub struct LossLine<'a> {
    /// The file that it was in.
    pub file: &'a Path,
    /// The partition, if it is of one.
    pub period: Option<Period>,
    /// The series.
    pub series: LostSeries<'a>,
    /// From when, nanoseconds; samples at other times are not lost.
    pub range: TimeRange,
}

/// A series of which something is lost.
#[derive(Debug)]
pub enum LostSeries<'a> {
    /// This one.
    Labels(Labels),
    /// One whose labels are lost, too; its number in its partition.
    Ordinal(u32),
    /// Nobody knows; what it was.
    Unknown(&'a str),
}

impl fmt::Display for LossLine<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.series {
            LostSeries::Labels(labels) => write!(f, "{labels}")?,
            LostSeries::Ordinal(ordinal) => write!(f, "series {ordinal}, whose labels are lost")?,
            LostSeries::Unknown(what) => f.write_str(what)?,
        }
        if let Some(period) = self.period {
            write!(f, ", {}", period.name())?;
        }
        if self.range != TimeRange::ALL {
            write!(f, ", from {} to {}", rfc3339(self.range.start), rfc3339(self.range.end))?;
        }
        write!(f, " ({})", self.file.display())
    }
}

impl Losses {
    /// Whether nothing is lost.
    pub fn is_empty(&self) -> bool {
        self.losses.is_empty()
    }

    /// How many lines [`Losses::for_each`] gives.
    pub fn len(&self) -> u64 {
        let lines = |loss: &Loss| match &loss.of {
            LostOf::Series(series) => series.len(),
            LostOf::Unknown(_) => 1,
        };
        self.losses.iter().map(lines).sum()
    }

    /// Gives every line.
    pub fn for_each(&self, on_line: &mut dyn FnMut(&LossLine<'_>)) {
        for loss in &self.losses {
            let Loss { file, period, range, .. } = loss;
            let (period, range) = (*period, *range);
            match &loss.of {
                LostOf::Unknown(what) => {
                    let series = LostSeries::Unknown(what);
                    on_line(&LossLine { file, period, series, range });
                }
                LostOf::Series(all) => {
                    let index = period.and_then(|period| self.partitions.get(&period));
                    for ordinal in all {
                        let labels = index.and_then(|index| visible_labels(index, ordinal));
                        let series = match labels {
                            Some(labels) => LostSeries::Labels(labels),
                            None => LostSeries::Ordinal(ordinal),
                        };
                        on_line(&LossLine { file, period, series, range });
                    }
                }
            }
        }
    }
}

/// The labels of a series as people know it: of a part of a histogram, the histogram's.
pub(crate) fn visible_labels(index: &PartitionIndex, ordinal: u32) -> Option<Labels> {
    let mut labels = LabelsBuilder::new();
    index.labels(ordinal, &mut labels).ok()??;
    if let Some(metric) = labels.get(names::LABEL).map(str::to_string) {
        labels.remove(names::LABEL);
        labels.remove(names::RUN_LABEL);
        labels.set(METRIC_NAME, &metric);
    }
    let pairs: Vec<(&str, &str)> = labels.iter().collect();
    Some(Labels::from_pairs(&pairs))
}
