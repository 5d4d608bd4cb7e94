//! Queries: load a TSBS data set, then run query types over it.

use super::figures::{Better, Figure};
use super::{Case, Outcome};
use crate::load::{self, LoadOptions};
use crate::queries::{self, QueryOptions};
use crate::server::{Installed, RunningServer};
use crate::tsbs::queries::QueryType;
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
    pub load: LoadOptions,
    /// The types, in the order of the table.
    pub query_types: Vec<QueryType>,
    /// Queries of each.
    pub count: u64,
    /// Threads that ask.
    pub workers: u64,
}

impl Case for Queries {
    fn file_name(&self) -> String {
        self.file_name.clone()
    }

    fn title(&self) -> String {
        let (hosts, rows) = (self.scale.hosts, self.scale.rows());
        format!("Queries: tsbs cpu-only, {} series x {rows}", u64::from(hosts) * 10)
    }

    fn unsupported(&self, contender: &Installed) -> Option<String> {
        let protocol = self.load.format.protocol;
        contender.unsupported(protocol)
    }

    fn run(&self, contender: &Installed, dir: &Path) -> Result<Outcome> {
        let (data_dir, log) = (dir.join("data"), dir.join("server.log"));
        std::fs::create_dir(&data_dir)?;
        let server = RunningServer::start(contender, &data_dir, &log)?;
        let mut load_options = self.load.clone();
        load_options.authority = server.authority().to_string();
        let path = contender.write_path(load_options.format.protocol);
        load_options.path = path.unwrap_or_default().to_string();
        load_options.settle = contender.peer.settle(Duration::from_secs(1));
        let loaded = load::run(&CpuOnly::new(self.scale)?, &load_options, &server.observed())?;
        if loaded.stopped.is_some() {
            return Ok(Outcome { stopped: loaded.stopped, ..Outcome::default() });
        }
        let options = QueryOptions {
            authority: server.authority().to_string(),
            language: contender.peer.language.context("the server cannot be asked")?,
            count: self.count,
            workers: self.workers,
        };
        let mut outcome = Outcome::default();
        let (mut reports, mut failures) = (Vec::new(), Vec::new());
        for query_type in &self.query_types {
            match queries::run(query_type, &self.scale, &options, &server.observed()) {
                Ok(report) => {
                    if report.refused.is_none() {
                        outcome.figures.extend(figures(&report));
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
