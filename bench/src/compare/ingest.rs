//! Ingestion: load an empty server; then perhaps stop it, start it, and load what follows.

use super::figures::{Better, Figure, of_load};
use super::{Case, Outcome};
use crate::load::report::LoadReport;
use crate::load::{self, LoadOptions};
use crate::server::{Installed, Peer, RunningServer, count};
use crate::workload::Workload;
use anyhow::Result;
use std::path::Path;
use std::time::{Duration, Instant};

/// The case for one workload.
pub struct Ingest<'a> {
    /// File name of the table.
    pub file_name: String,
    /// What is loaded into the empty server.
    pub first: &'a dyn Workload,
    /// What is loaded after a restart, if anything.
    pub second: Option<&'a dyn Workload>,
    /// How; the server's address and the settling are filled in.
    pub options: LoadOptions,
    /// The rest after a load.
    pub idle: Duration,
}

impl Case for Ingest<'_> {
    fn file_name(&self) -> String {
        self.file_name.clone()
    }

    fn title(&self) -> String {
        let (series, samples) = (self.first.series(), self.first.samples());
        format!(
            "Ingestion: {}, {series} series, {samples} samples, {}",
            self.first.name(),
            self.options.format.protocol.name()
        )
    }

    fn unsupported(&self, contender: &Installed) -> Option<String> {
        let protocol = self.options.format.protocol;
        contender.unsupported(protocol).or_else(|| self.first.unsupported(protocol))
    }

    fn run(&self, contender: &Installed, dir: &Path) -> Result<Outcome> {
        let (data_dir, log) = (dir.join("data"), dir.join("server.log"));
        std::fs::create_dir(&data_dir)?;
        let mut server = RunningServer::start(contender, &data_dir, &log)?;
        let first = self.load(self.first, contender, &server)?;
        let mut outcome = Outcome {
            figures: of_load("", &first, first.loader.samples),
            stopped: first.stopped.clone(),
            raw: serde_json::json!({ "first": first }),
            timeline: first.timeline.clone(),
        };
        if outcome.stopped.is_some() {
            return Ok(outcome);
        }
        outcome.figures.extend(missing_samples(self.first, contender.peer, server.authority()));
        let Some(second) = self.second else {
            let stop = server.stop()?;
            outcome.figures.push(Figure::new("stop, s", stop.as_secs_f64(), Better::Lower));
            return Ok(outcome);
        };
        let stop = server.stop()?;
        outcome.figures.push(Figure::new("stop, s", stop.as_secs_f64(), Better::Lower));
        let start = Instant::now();
        server = RunningServer::start(contender, &data_dir, &log)?;
        let ready = start.elapsed().as_secs_f64();
        outcome.figures.push(Figure::new("start on that until ready, s", ready, Better::Lower));
        let next = self.load(second, contender, &server)?;
        let samples_stored = first.loader.samples + next.loader.samples;
        outcome.figures.extend(of_load("after the restart: ", &next, samples_stored));
        outcome.figures.push(Figure::new(
            "rate after the restart, share of the first",
            next.samples_per_second / first.samples_per_second,
            Better::Higher,
        ));
        if let Some((next, first)) = next.server.zip(first.server) {
            outcome.figures.push(Figure::new(
                "server CPU per sample after the restart, share of the first",
                next.cpu_us_per_sample / first.cpu_us_per_sample,
                Better::Lower,
            ));
        }
        outcome.stopped = next.stopped.clone();
        outcome.raw["second"] = serde_json::to_value(&next)?;
        server.stop()?;
        Ok(outcome)
    }
}

impl Ingest<'_> {
    fn load(
        &self,
        workload: &dyn Workload,
        contender: &Installed,
        server: &RunningServer,
    ) -> Result<LoadReport> {
        let mut options = self.options.clone();
        options.authority = server.authority().to_string();
        let path = contender.write_path(options.format.protocol);
        options.path = path.unwrap_or_default().to_string();
        options.settle = contender.peer.settle(self.idle);
        load::run(workload, &options, &server.observed())
    }
}

/// How many samples the server does not find, which should be 0; `None` when it cannot say.
fn missing_samples(workload: &dyn Workload, peer: &Peer, authority: &str) -> Option<Figure> {
    let counted = count::stored_samples(peer, authority, workload.span_ns());
    let count = counted.inspect_err(|error| eprintln!("cannot count samples: {error:#}")).ok()?;
    let missing = workload.samples() as f64 - count;
    Some(Figure::new("samples not found again", missing, Better::Neither))
}
