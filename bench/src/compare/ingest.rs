//! Ingestion: load an empty server; then perhaps stop it, start it, and load what follows.

use super::figures::{Better, Figure, of_load};
use super::{Case, Outcome};
use crate::http::HttpClient;
use crate::instant::SECOND_NS;
use crate::load::report::LoadReport;
use crate::load::settle::Settle;
use crate::load::{self, LoadOptions};
use crate::server::{Installed, RunningServer};
use crate::tsbs::queries::percent_encode;
use crate::workload::Workload;
use anyhow::{Context, Result, ensure};
use std::path::Path;
use std::time::{Duration, Instant};

/// Counting all samples may take so long.
const COUNT_TIMEOUT: Duration = Duration::from_secs(600);

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
        let is_spoken = contender.peer.protocols.contains(&protocol);
        (!is_spoken).then(|| format!("does not speak {}", protocol.name()))
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
        outcome.figures.extend(missing_samples(self.first, server.authority()));
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
        options.settle = Settle {
            idle: self.idle,
            flush_path: Some(contender.peer.flush_path.to_string()),
            merge_path: Some(contender.peer.merge_path.to_string()),
        };
        load::run(workload, &options, &server.observed())
    }
}

/// How many samples the server does not find, which should be 0; `None` when it cannot say.
fn missing_samples(workload: &dyn Workload, authority: &str) -> Option<Figure> {
    let counted = count_samples(workload, authority);
    let count = counted.inspect_err(|error| eprintln!("cannot count samples: {error:#}")).ok()?;
    let missing = workload.samples() as f64 - count;
    Some(Figure::new("samples not found again", missing, Better::Neither))
}

/// Adds up the metrics one by one, because strict PromQL refuses to count over several at once.
fn count_samples(workload: &dyn Workload, authority: &str) -> Result<f64> {
    let (first_ns, last_ns) = workload.span_ns();
    let (start_s, end_s) = (first_ns / SECOND_NS, last_ns / SECOND_NS + 1);
    // A range is open at its start, so it begins a second early.
    let range_s = end_s - start_s + 1;
    let mut client = HttpClient::new(authority, COUNT_TIMEOUT);
    let path = format!("/api/v1/label/__name__/values?start={start_s}&end={end_s}");
    let names = get_json(&mut client, &path)?;
    let mut count = 0.0;
    for name in names["data"].as_array().context("no list of metric names")? {
        let name = name.as_str().context("a metric name is no text")?;
        let expression = format!("sum(count_over_time({{__name__={name:?}}}[{range_s}s]))");
        let path = format!("/api/v1/query?query={}&time={end_s}", percent_encode(&expression));
        let json = get_json(&mut client, &path)?;
        // A metric that the server knows from other times has no result.
        if let Some(text) = json["data"]["result"][0]["value"][1].as_str() {
            count += text.parse::<f64>()?;
        }
    }
    Ok(count)
}

fn get_json(client: &mut HttpClient, path: &str) -> Result<serde_json::Value> {
    let answer = client.get(path)?;
    ensure!(answer.status == 200, "status {}: {}", answer.status, answer.excerpt());
    Ok(serde_json::from_slice(&answer.body)?)
}
