//! The matcher cases of record: how long the index takes to find the series of a selector.
//!
//! ```text
//! series ─► Index (one segment, a mapped file) ◄─ cases ─► report: a table, and JSON
//! ```
//!
//! One thread, nothing cached between searches; a search compiles its matchers, and its answer is
//! the set of series. Every answer's size is checked.

pub mod cases;
pub mod report;
pub mod series;

use crate::process::Memory;
use anyhow::{Context, Result, ensure};
use cases::Case;
use index::Index;
use report::{Figures, Report};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Searches of a case at least, whatever the time.
const SEARCHES_MIN: usize = 3;
/// Searches of a case at most: more do not make a median better.
const SEARCHES_MAX: usize = 200_000;

/// What is to be measured.
pub struct Request {
    /// How many series.
    pub series: u64,
    /// In which order they are registered.
    pub order: series::Order,
    /// How long each case is repeated.
    pub time_per_case: Duration,
    /// Where the figures go, if anywhere but to the terminal.
    pub json: Option<PathBuf>,
}

/// Measures all cases and prints a table.
///
/// # Errors
/// When an answer is not the one expected, or the disk fails.
pub fn run(request: &Request) -> Result<()> {
    let per = series::SERIES_PER_I;
    ensure!(
        0 < request.series && request.series.is_multiple_of(per),
        "--series {} must be a multiple of {per}",
        request.series
    );
    let i_values = request.series / per;
    let dir = tempfile::tempdir()?;
    let mut index = Index::open(Arc::new(vfs::RealVfs::new()), dir.path(), &[])?;
    let start = Instant::now();
    series::build(&mut index, i_values, request.order)?;
    let build_seconds = start.elapsed().as_secs_f64();
    let segment_bytes = index.segments().iter().map(|segment| segment.size()).sum();
    eprintln!("{} series in one segment of {segment_bytes} bytes", index.series_count());
    let mut cases = Vec::new();
    for case in cases::ALL {
        eprintln!("{{{}}}", case.expression());
        let expected = case.expected(i_values);
        cases.push(measure(&index, case, expected, request.time_per_case)?);
    }
    let report = Report {
        series: request.series,
        build_seconds,
        segment_bytes,
        memory: Memory::now()?,
        cases,
    };
    print!("{report}");
    if let Some(file) = &request.json {
        let text = serde_json::to_string_pretty(&report)?;
        std::fs::write(file, text + "\n").with_context(|| format!("{}", file.display()))?;
    }
    Ok(())
}

/// Repeats one search for so long.
fn measure(index: &Index, case: &Case, expected: u64, time_max: Duration) -> Result<Figures> {
    let matchers = case.matchers();
    let mut milliseconds = Vec::new();
    let start = Instant::now();
    while milliseconds.len() < SEARCHES_MIN
        || (milliseconds.len() < SEARCHES_MAX && start.elapsed() < time_max)
    {
        let before = Instant::now();
        let found = cases::search(index, &matchers)?;
        milliseconds.push(before.elapsed().as_secs_f64() * 1e3);
        ensure!(
            found == expected,
            "{{{}}} found {found} series, not {expected}",
            case.expression()
        );
    }
    Ok(Figures::new(case, expected, milliseconds))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_small_run_finds_what_is_expected_and_writes_it_down() {
        for order in [series::Order::Record, series::Order::Mixed] {
            check_small_run(order);
        }
    }

    fn check_small_run(order: series::Order) {
        let dir = tempfile::tempdir().unwrap();
        let json = dir.path().join("matchers.json");
        let time_per_case = Duration::ZERO;
        run(&Request { series: 5000, order, time_per_case, json: Some(json.clone()) }).unwrap();
        let text = std::fs::read_to_string(json).unwrap();
        let report: serde_json::Value = serde_json::from_str(&text).unwrap();
        assert_eq!(report["cases"].as_array().unwrap().len(), 16);
        assert_eq!(report["cases"][0]["series"], 200);
        assert!(report["memory"]["rss_bytes"].as_u64().unwrap() > 0);
    }

    #[test]
    fn an_odd_number_of_series_is_refused() {
        let order = series::Order::Record;
        let request = Request { series: 51, order, time_per_case: Duration::ZERO, json: None };
        assert!(run(&request).unwrap_err().to_string().contains("multiple of 50"));
    }
}
