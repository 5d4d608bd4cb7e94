//! What was measured, for people and as JSON.

use super::cases::Case;
use crate::process::Memory;
use std::fmt;

/// All figures of a run.
#[derive(serde::Serialize)]
pub struct Report {
    /// How many series the index has.
    pub series: u64,
    /// Registering, freezing and merging them.
    pub build_seconds: f64,
    /// The size of the one segment.
    pub segment_bytes: u64,
    /// The process's, after all cases.
    pub memory: Memory,
    /// By case.
    pub cases: Vec<Figures>,
}

/// The figures of one case.
#[derive(serde::Serialize)]
pub struct Figures {
    name: &'static str,
    expression: String,
    milliseconds: Milliseconds,
    /// Found, which is as many as expected.
    series: u64,
    searches: usize,
}

#[derive(serde::Serialize)]
struct Milliseconds {
    median: f64,
    min: f64,
    max: f64,
}

impl Figures {
    /// Sums up the times of one case's searches, of which there is at least one.
    pub fn new(case: &Case, series: u64, mut milliseconds: Vec<f64>) -> Figures {
        assert!(!milliseconds.is_empty());
        milliseconds.sort_unstable_by(f64::total_cmp);
        let searches = milliseconds.len();
        Figures {
            name: case.name,
            expression: case.expression(),
            milliseconds: Milliseconds {
                median: milliseconds[searches / 2],
                min: milliseconds[0],
                max: milliseconds[searches - 1],
            },
            series,
            searches,
        }
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{:>10} {:>10} {:>10} {:>9}  case", "median ms", "min ms", "max ms", "series")?;
        for case in &self.cases {
            let Milliseconds { median, min, max } = case.milliseconds;
            let (series, expression) = (case.series, &case.expression);
            writeln!(f, "{median:10.4} {min:10.4} {max:10.4} {series:9}  {{{expression}}}")?;
        }
        let mebibytes = |bytes: u64| bytes as f64 / f64::from(1 << 20);
        let memory = &self.memory;
        writeln!(
            f,
            "{} series built in {:.1} s; segment {:.1} MiB; RSS {:.1} MiB (allocated {:.1}, mapped {:.1}, peak {:.1})",
            self.series,
            self.build_seconds,
            mebibytes(self.segment_bytes),
            mebibytes(memory.rss_bytes),
            mebibytes(memory.rss_anonymous_bytes),
            mebibytes(memory.rss_file_bytes),
            mebibytes(memory.rss_peak_bytes),
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::matchers::cases;

    #[test]
    fn median_and_extremes_are_told() {
        let case = &cases::ALL[0];
        let figures = Figures::new(case, 7, vec![3.0, 1.0, 2.0, 10.0, 1.5]);
        let Milliseconds { median, min, max } = figures.milliseconds;
        assert_eq!((median, min, max, figures.searches), (2.0, 1.0, 10.0, 5));
        assert_eq!(figures.expression, "n=\"1\"");
    }
}
