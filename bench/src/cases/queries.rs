//! Queries: load a TSBS data set, then run query types over it.

use super::loading::Loading;
use super::{Planned, Profile, Setting, load_options};
use crate::compare::figures::{Better, Figure};
use crate::compare::{Case, Chart, Outcome};
use crate::instant::{HOUR_NS, SECOND_NS, parse_rfc3339};
use crate::payload::Protocol;
use crate::queries::{self, QueryOptions};
use crate::server::{Installed, RunningServer};
use crate::tsbs::queries::{QUERY_TYPES, QueryType};
use crate::tsbs::{CpuOnly, Scale};
use anyhow::{Context, Result};
use std::path::Path;
use std::time::Duration;

/// The case for one data set.
pub struct Queries {
    /// File name of the table.
    pub file_name: String,
    /// The data set.
    pub scale: Scale,
    /// How it is loaded.
    pub loading: Loading,
    /// The types, in the order of the table.
    pub query_types: Vec<QueryType>,
    /// Queries of each at most.
    pub count: u64,
    /// Threads that ask.
    pub workers: u64,
    /// No further query of a type is sent after so long.
    pub time_max: Option<Duration>,
}

/// The query types over data that all lie in the server itself.
pub(super) fn planned(setting: &Setting) -> Result<Vec<Planned>> {
    let minute_ns = 60 * SECOND_NS;
    let sets: &[(u32, i64)] = match setting.profile {
        Profile::Small => &[(1000, 10 * minute_ns)],
        Profile::Full => &[(10_000, 10 * minute_ns), (100_000, 60 * minute_ns)],
    };
    sets.iter().map(|(hosts, interval_ns)| plan(setting, *hosts, *interval_ns)).collect()
}

fn plan(setting: &Setting, hosts: u32, interval_ns: i64) -> Result<Planned> {
    let start_ns = parse_rfc3339("2016-01-01T00:00:00Z")?;
    let scale = Scale { hosts, interval_ns, start_ns, end_ns: start_ns + 24 * HOUR_NS, seed: 123 };
    let case = Queries {
        file_name: format!("queries-{}x{}", u64::from(hosts) * 10, scale.rows()),
        scale,
        loading: Loading {
            protocols: vec![Protocol::Influx, Protocol::RemoteWrite, Protocol::Copy],
            options: load_options(setting),
            idle: Duration::from_secs(1),
        },
        query_types: QUERY_TYPES.to_vec(),
        count: 1000,
        workers: 2,
        time_max: Some(match setting.profile {
            Profile::Small => Duration::from_secs(2),
            Profile::Full => Duration::from_secs(5),
        }),
    };
    Ok(Planned::new(case, 1))
}

impl Case for Queries {
    fn file_name(&self) -> String {
        self.file_name.clone()
    }

    fn title(&self) -> String {
        let (hosts, rows) = (self.scale.hosts, self.scale.rows());
        let series = u64::from(hosts) * 10;
        format!("Queries: tsbs cpu-only, {series} series x {rows}, all in the server itself")
    }

    fn unsupported(&self, contender: &Installed) -> Option<String> {
        let workload = CpuOnly::new(self.scale);
        let workload = workload.map_err(|error| error.to_string());
        match (workload, contender.peer.language) {
            (Err(error), _) => Some(error),
            (_, None) => Some("speaks no language of these queries".to_string()),
            (Ok(workload), Some(_)) => self.loading.unsupported(&workload, contender),
        }
    }

    fn headline(&self) -> Vec<String> {
        let types = self.query_types.iter();
        types.map(|query_type| format!("{}: server CPU, ms/query", query_type.name)).collect()
    }

    fn charts(&self) -> Vec<Chart> {
        let chart = |title: &str, figure: &str| Chart {
            title: title.to_string(),
            groups: self
                .query_types
                .iter()
                .map(|one| (one.name.to_string(), format!("{}: {figure}", one.name)))
                .collect(),
        };
        vec![
            chart("Queries a second, more is better", "queries/s"),
            chart("Server CPU, ms a query, less is better", "server CPU, ms/query"),
        ]
    }

    fn run(&self, contender: &Installed, dir: &Path) -> Result<Outcome> {
        let (data_dir, log) = (dir.join("data"), dir.join("server.log"));
        std::fs::create_dir(&data_dir)?;
        let server = RunningServer::start(contender, &data_dir, &log)?;
        let loaded = self.loading.load(&CpuOnly::new(self.scale)?, contender, &server)?;
        if loaded.stopped.is_some() {
            return Ok(Outcome { stopped: loaded.stopped, ..Outcome::default() });
        }
        let options = QueryOptions {
            authority: server.authority().to_string(),
            language: contender.peer.language.context("the server cannot be asked")?,
            count: self.count,
            workers: self.workers,
            time_max: self.time_max,
        };
        let mut outcome = Outcome::default();
        let (mut reports, mut failures) = (Vec::new(), Vec::new());
        for query_type in &self.query_types {
            match queries::run(query_type, &self.scale, &options, &server.observed()) {
                Ok(report) => {
                    match &report.refused {
                        None => outcome.figures.extend(figures(&report)),
                        Some(reason) => failures.push(format!("{}: {reason}", query_type.name)),
                    }
                    reports.push(report);
                }
                Err(error) => failures.push(format!("{}: {error:#}", query_type.name)),
            }
        }
        outcome.stopped = (!failures.is_empty()).then(|| failures.join("; "));
        outcome.raw = serde_json::to_value(&reports)?;
        server.stop()?;
        Ok(outcome)
    }
}

fn figures(report: &queries::QueryReport) -> Vec<Figure> {
    let name = |what: &str| format!("{}: {what}", report.query_type);
    let mut figures = vec![
        Figure::new(&name("queries/s"), report.queries_per_second, Better::Higher),
        Figure::new(&name("p50, ms"), report.p50_ms, Better::Lower),
        Figure::new(&name("p99, ms"), report.p99_ms, Better::Lower),
    ];
    if let Some(cpu_ms) = report.server_cpu_ms {
        figures.push(Figure::new(&name("server CPU, ms/query"), cpu_ms, Better::Lower));
    }
    if report.empty_answers > 0 {
        let empty = report.empty_answers as f64;
        figures.push(Figure::new(&name("empty answers"), empty, Better::Neither));
    }
    figures
}
