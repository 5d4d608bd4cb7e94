//! Index queries: six operations over series of which nothing is alike, by number of series, by
//! length of the range, and beside series that were deleted.

use super::index_operations::{self, Operation};
use super::loading::Loading;
use super::{Planned, Profile, Setting, load_options};
use crate::compare::figures::{Better, Figure};
use crate::compare::{Case, Chart, Outcome};
use crate::instant::{DAY_NS, SECOND_NS, parse_rfc3339};
use crate::load::report::LoadReport;
use crate::load::settle;
use crate::payload::Protocol;
use crate::server::{Installed, RunningServer};
use crate::shapes::unique_names::{SHARED_LABEL, SHARED_VALUE, UniqueNames};
use crate::shapes::{ShapeScale, ShapeWorkload};
use crate::tsbs::queries::percent_encode;
use anyhow::{Result, bail, ensure};
use std::path::Path;
use std::time::{Duration, Instant};

/// Questions of one kind are repeated for so long ...
const ASK_TIME: Duration = Duration::from_secs(1);
/// ... but so often at least ...
const ASK_COUNT_MIN: usize = 3;
/// ... and at most.
const ASK_COUNT_MAX: usize = 200;

/// A data set and what its figures are called.
struct Cell {
    label: String,
    series: u64,
    days: i64,
    /// Further series, deleted before anything is asked.
    deleted_series: u64,
}

/// A sweep over several data sets.
struct IndexQueries {
    name: &'static str,
    title: &'static str,
    cells: Vec<Cell>,
    loading: Loading,
}

/// The two sweeps of record, and the sweep of deleted series.
pub(super) fn planned(setting: &Setting) -> Result<Vec<Planned>> {
    let (sizes, live) = match setting.profile {
        Profile::Small => (vec![100, 10_000], 10_000),
        Profile::Full => (vec![100, 1000, 10_000, 100_000, 1_000_000], 100_000),
    };
    let ranges = match setting.profile {
        Profile::Small => vec![("1 day", 1), ("1 month", 31)],
        Profile::Full => {
            vec![("1 day", 1), ("1 week", 7), ("1 month", 31), ("2 months", 62), ("6 months", 183)]
        }
    };
    let of_size = |series: &u64| Cell {
        label: format!("{series} series"),
        series: *series,
        days: 1,
        deleted_series: 0,
    };
    let of_range = |(label, days): &(&str, i64)| Cell {
        label: label.to_string(),
        series: live,
        days: *days,
        deleted_series: 0,
    };
    let of_deleted = |deleted: &u64| Cell {
        label: format!("{deleted} deleted"),
        series: live,
        days: 1,
        deleted_series: *deleted,
    };
    let deleted_sizes = [0].into_iter().chain(sizes.iter().copied()).collect::<Vec<u64>>();
    let sweep = |name, title, cells| {
        let loading = Loading {
            protocols: vec![Protocol::RemoteWrite],
            options: load_options(setting),
            idle: Duration::ZERO,
        };
        Planned::new(IndexQueries { name, title, cells, loading }, 1)
    };
    Ok(vec![
        sweep("index-sizes", "by number of series on one day", sizes.iter().map(of_size).collect()),
        sweep("index-ranges", "by length of the range", ranges.iter().map(of_range).collect()),
        sweep(
            "index-deleted",
            "beside deleted series",
            deleted_sizes.iter().map(of_deleted).collect(),
        ),
    ])
}

impl Case for IndexQueries {
    fn file_name(&self) -> String {
        let most = self.cells.iter().map(|cell| cell.series.max(cell.deleted_series)).max();
        format!("{}-{}", self.name, most.unwrap_or(0))
    }

    fn title(&self) -> String {
        format!("Index queries {}", self.title)
    }

    fn unsupported(&self, contender: &Installed) -> Option<String> {
        contender.unsupported(Protocol::RemoteWrite)
    }

    fn run(&self, contender: &Installed, dir: &Path) -> Result<Outcome> {
        let mut outcome = Outcome::default();
        let mut faults = Vec::new();
        for (idx, cell) in self.cells.iter().enumerate() {
            eprintln!("{}: {}", contender.peer.name, cell.label);
            let place = dir.join(idx.to_string());
            std::fs::create_dir(&place)?;
            match self.run_cell(cell, contender, &place) {
                Ok(measured) => {
                    outcome.figures.extend(measured.figures);
                    faults.extend(measured.faults);
                }
                Err(error) => faults.push(format!("{}: {error:#}", cell.label)),
            }
            std::fs::remove_dir_all(&place)?;
        }
        outcome.stopped = (!faults.is_empty()).then(|| faults.join("; "));
        Ok(outcome)
    }

    fn headline(&self) -> Vec<String> {
        let last = self.cells.last();
        let figure = |operation: &Operation| last.map(|cell| figure(*operation, cell));
        Operation::ALL.iter().filter_map(figure).collect()
    }

    fn charts(&self) -> Vec<Chart> {
        let chart = |operation: &Operation| Chart {
            title: format!("{}, ms, less is better", operation.name()),
            groups: self
                .cells
                .iter()
                .map(|cell| (cell.label.clone(), figure(*operation, cell)))
                .collect(),
        };
        Operation::ALL.iter().map(chart).collect()
    }
}

/// What a data set gave.
#[derive(Default)]
struct Measured {
    figures: Vec<Figure>,
    faults: Vec<String>,
}

impl IndexQueries {
    fn run_cell(&self, cell: &Cell, contender: &Installed, dir: &Path) -> Result<Measured> {
        let (data_dir, log) = (dir.join("data"), dir.join("server.log"));
        std::fs::create_dir(&data_dir)?;
        let server = RunningServer::start(contender, &data_dir, &log)?;
        // Servers are asked in whole seconds, so the last second has no sample.
        let span_ns = cell.days * DAY_NS - SECOND_NS;
        let start_ns = parse_rfc3339("2026-01-01T00:00:00Z")?;
        let live = unique_names(cell.series, 0, start_ns, span_ns, SHARED_VALUE);
        let loaded = self.load(&live, contender, &server)?;
        let mut measured = Measured::default();
        measured.figures.push(Figure::new(
            &format!("{}: load, samples/s", cell.label),
            loaded.samples_per_second,
            Better::Higher,
        ));
        if cell.deleted_series > 0 {
            let first = cell.series;
            let dead = unique_names(cell.deleted_series, first, start_ns, span_ns, "dead");
            self.load(&dead, contender, &server)?;
            delete(contender, &server)?;
        }
        for operation in Operation::ALL {
            let path = operation.path(start_ns, start_ns + span_ns);
            match ask(operation, &path, &server, cell) {
                Ok(figures) => measured.figures.extend(figures),
                Err(error) => {
                    measured.faults.push(format!(
                        "{}: {}: {error:#}",
                        cell.label,
                        operation.name()
                    ));
                }
            }
        }
        if let Some(used) = server.observed().process()? {
            let mib = used.rss_peak_bytes as f64 / f64::from(1 << 20);
            let name = format!("{}: peak RSS, MiB", cell.label);
            measured.figures.push(Figure::new(&name, mib, Better::Lower));
        }
        server.stop()?;
        Ok(measured)
    }

    fn load(
        &self,
        workload: &ShapeWorkload,
        contender: &Installed,
        server: &RunningServer,
    ) -> Result<LoadReport> {
        let report = self.loading.load(workload, contender, server)?;
        if let Some(reason) = &report.stopped {
            bail!("load: {reason}");
        }
        Ok(report)
    }
}

/// A set of series of which nothing is alike, evenly over a time.
pub fn unique_names(
    series: u64,
    first_series: u64,
    start_ns: i64,
    span_ns: i64,
    shared_value: &'static str,
) -> ShapeWorkload {
    let interval_ns = (span_ns / series as i64).max(1_000_000);
    let scale = ShapeScale { series, samples_each: 1, interval_ns, start_ns, seed: 0 };
    let shape = UniqueNames { scale, first_series, shared_value };
    ShapeWorkload::of("unique-names", Box::new(shape))
}

/// Deletes all series that are not to stay, and lets the server settle.
fn delete(contender: &Installed, server: &RunningServer) -> Result<()> {
    let filter = percent_encode(&format!("{{{}=\"dead\"}}", SHARED_LABEL));
    let path = format!("/api/v1/admin/tsdb/delete_series?match[]={filter}");
    let answer = index_operations::client(server.authority()).post(&path, "", b"")?;
    ensure!((200..300).contains(&answer.status), "delete: status {}", answer.status);
    let settle = contender.peer.settle(Duration::ZERO);
    settle::run(&settle, server.authority(), &server.observed())?;
    Ok(())
}

/// Repeats a question, and checks one more answer in the end.
fn ask(
    operation: Operation,
    path: &str,
    server: &RunningServer,
    cell: &Cell,
) -> Result<Vec<Figure>> {
    let mut client = index_operations::client(server.authority());
    operation.check(&mut client, path, cell.series)?;
    let before = server.observed().process()?;
    let (start, mut times) = (Instant::now(), Vec::new());
    while times.len() < ASK_COUNT_MIN || (start.elapsed() < ASK_TIME && times.len() < ASK_COUNT_MAX)
    {
        let asked = Instant::now();
        let answer = client.get_into(path, &mut |_| Ok(()))?;
        ensure!(answer.status == 200, "status {}", answer.status);
        times.push(asked.elapsed().as_secs_f64() * 1e3);
    }
    let after = server.observed().process()?;
    times.sort_by(f64::total_cmp);
    let name = figure(operation, cell);
    let mut figures = vec![Figure::new(&name, times[times.len() / 2], Better::Lower)];
    if let Some((before, after)) = before.zip(after) {
        let cpu_ms = (after.cpu_seconds - before.cpu_seconds) * 1e3 / times.len() as f64;
        // Below the clock's resolution it says nothing.
        if cpu_ms > 0.0 {
            figures.push(Figure::new(&format!("{name} of server CPU"), cpu_ms, Better::Lower));
        }
    }
    Ok(figures)
}

fn figure(operation: Operation, cell: &Cell) -> String {
    format!("{}: {}, ms", cell.label, operation.name())
}
