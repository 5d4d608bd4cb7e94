//! Reads everything back and compares it with what must, may and must not be there.

use super::ledger::Demand;
use super::sample::{self, Tongue};
use anyhow::{Context, Result, ensure};
use quipu_bench::http::{Answer, HttpClient};
use quipu_bench::percent_encode;
use serde::Deserialize;
use std::collections::BTreeMap;
use std::io::ErrorKind;
use std::time::Duration;

const ANSWER_TIMEOUT: Duration = Duration::from_secs(60);
/// How many violations of one check are told.
const VIOLATIONS_MAX: usize = 10;

/// One line of an export.
#[derive(Deserialize)]
struct Series {
    metric: BTreeMap<String, String>,
    values: Vec<Option<f64>>,
    timestamps: Vec<i64>,
}

/// An answer with exemplars.
#[derive(Deserialize)]
struct Exemplars {
    data: Vec<ExemplarSeries>,
}

#[derive(Deserialize)]
struct ExemplarSeries {
    exemplars: Vec<Exemplar>,
}

#[derive(Deserialize)]
struct Exemplar {
    labels: BTreeMap<String, String>,
}

/// What was found.
pub struct Found {
    /// Samples.
    pub samples: u64,
    /// By writer and line, whether any of its samples is there.
    pub lines: Vec<Vec<bool>>,
    /// What must not be.
    pub violations: Vec<String>,
}

/// Asks for all samples and exemplars.
///
/// # Errors
/// When the server cannot be asked or answers nonsense.
pub fn run(authority: &str, demands: &[Vec<Demand>]) -> Result<Found> {
    let mut client = HttpClient::new(authority, ANSWER_TIMEOUT);
    let path = format!("/api/v1/export?match[]={}", percent_encode("{writer=~\".+\"}"));
    let answer = get(&mut client, &path).context("export")?;
    ensure!(answer.status == 200, "export: {} {}", answer.status, answer.excerpt());
    let mut checker = Checker::new(demands);
    for line in answer.body.split(|byte| *byte == b'\n').filter(|line| !line.is_empty()) {
        checker.series(&serde_json::from_slice(line)?);
    }
    let query = percent_encode("{writer=~\".+\"}");
    let path = format!("/api/v1/query_exemplars?query={query}&start=1700000000&end=1800000000");
    let answer = get(&mut client, &path).context("exemplars")?;
    ensure!(answer.status == 200, "exemplars: {} {}", answer.status, answer.excerpt());
    let exemplars: Exemplars = serde_json::from_slice(&answer.body)?;
    checker.exemplars(&exemplars);
    Ok(checker.finish())
}

/// Asks again when a signal came in between.
fn get(client: &mut HttpClient, path: &str) -> std::io::Result<Answer> {
    loop {
        match client.get(path) {
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            done => return done,
        }
    }
}

struct Checker<'a> {
    demands: &'a [Vec<Demand>],
    /// By writer and line, a bit for each metric.
    seen: Vec<Vec<u8>>,
    traced: Vec<Vec<bool>>,
    samples: u64,
    violations: Vec<String>,
}

impl<'a> Checker<'a> {
    fn new(demands: &'a [Vec<Demand>]) -> Checker<'a> {
        let seen = demands.iter().map(|demands| vec![0; demands.len()]).collect();
        let traced = demands.iter().map(|demands| vec![false; demands.len()]).collect();
        Checker { demands, seen, traced, samples: 0, violations: Vec::new() }
    }

    fn violation(&mut self, text: String) {
        if self.violations.len() < VIOLATIONS_MAX {
            self.violations.push(text);
        }
    }

    fn series(&mut self, series: &Series) {
        let writer = series.metric.get("writer").and_then(|name| name.strip_prefix('w'));
        let writer = writer.and_then(|number| number.parse::<u64>().ok());
        let Some(writer) = writer.filter(|writer| (*writer as usize) < self.demands.len()) else {
            return self.violation(format!("invented: series {:?}", series.metric));
        };
        let name = series.metric.get("__name__").cloned().unwrap_or_default();
        let metric = Tongue::of(writer).metrics().iter().position(|metric| *metric == name);
        let Some(metric) = metric else {
            return self.violation(format!("invented: series {:?}", series.metric));
        };
        for (value, time) in series.values.iter().zip(&series.timestamps) {
            self.samples += 1;
            match sample::line_of(*time) {
                Some(line) => self.sample(&series.metric, (writer, line, metric), *value),
                None => self.violation(format!("invented: {:?} at {time}", series.metric)),
            }
        }
    }

    fn sample(
        &mut self,
        labels: &BTreeMap<String, String>,
        (writer, line, metric): (u64, u64, usize),
        value: Option<f64>,
    ) {
        let place = format!("writer {writer}, line {line}");
        let demand = self.demands[writer as usize].get(line as usize);
        if matches!(demand, None | Some(Demand::MustNot | Demand::MayExemplar)) {
            return self.violation(format!("invented, or came back: {place}: {labels:?}"));
        }
        let mut others = labels.iter().filter(|(name, _)| *name != "__name__");
        if !others.all(|(name, text)| sample::label(writer, line, name).as_ref() == Some(text)) {
            return self.violation(format!("wrong: {place} has labels {labels:?}"));
        }
        let expected = sample::value(writer, line, Tongue::of(writer).metrics()[metric]);
        if value != Some(expected) {
            return self.violation(format!("wrong: {place} has value {value:?}, not {expected}"));
        }
        let seen = &mut self.seen[writer as usize][line as usize];
        if *seen & 1 << metric != 0 {
            return self.violation(format!("wrong: {place} is there twice"));
        }
        *seen |= 1 << metric;
    }

    fn exemplars(&mut self, answer: &Exemplars) {
        for exemplar in answer.data.iter().flat_map(|series| &series.exemplars) {
            let place = exemplar.labels.get("trace_id").and_then(|trace| sample::of_trace(trace));
            let place = place.map(|(writer, line)| (writer as usize, line as usize));
            let demand = place.and_then(|(writer, line)| self.demands.get(writer)?.get(line));
            match (place, demand) {
                (Some((writer, line)), Some(demand)) if *demand != Demand::MustNot => {
                    self.traced[writer][line] = true;
                }
                _ => self
                    .violation(format!("invented, or came back: exemplar {:?}", exemplar.labels)),
            }
        }
    }

    /// Looks for what is missing.
    fn finish(mut self) -> Found {
        let demands = self.demands;
        let mut lost = 0;
        for (writer, demands) in demands.iter().enumerate() {
            let whole = (1 << Tongue::of(writer as u64).metrics().len()) - 1;
            for (line, demand) in demands.iter().enumerate() {
                let is_whole = self.seen[writer][line] == whole;
                let has_trace =
                    self.traced[writer][line] || !sample::has_exemplar(writer as u64, line as u64);
                let is_lost = match demand {
                    Demand::Must => !is_whole || !has_trace,
                    Demand::MustSample => !is_whole,
                    _ => false,
                };
                if is_lost {
                    lost += 1;
                    let seen = self.seen[writer][line];
                    self.violation(format!(
                        "lost: writer {writer}, line {line} of {}: metrics {seen:b}, exemplar {has_trace}",
                        demands.len()
                    ));
                }
            }
        }
        if 0 < lost {
            self.violations
                .insert(0, format!("{lost} acknowledged lines are lost in part or whole"));
        }
        let is_there = |seen: &Vec<u8>| seen.iter().map(|bits| *bits != 0).collect();
        let lines = self.seen.iter().map(is_there).collect();
        Found { samples: self.samples, lines, violations: self.violations }
    }
}
