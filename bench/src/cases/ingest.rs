//! Ingestion: load an empty server; then perhaps stop it, start it, and load what follows.

use super::loading::{Loading, missing_samples};
use super::{Planned, Profile, Setting, load_options};
use crate::compare::figures::{Better, Figure, of_load};
use crate::compare::{Case, Outcome};
use crate::instant::{HOUR_NS, parse_rfc3339};
use crate::payload::Protocol;
use crate::server::{Installed, RunningServer};
use crate::tsbs::{CpuOnly, Scale};
use crate::workload::Workload;
use anyhow::Result;
use std::path::Path;
use std::time::{Duration, Instant};

/// The case for one workload.
pub struct Ingest {
    /// File name of the table.
    pub file_name: String,
    /// What is loaded into the empty server.
    pub first: Box<dyn Workload>,
    /// What is loaded after a restart, if anything.
    pub second: Option<Box<dyn Workload>>,
    /// How.
    pub loading: Loading,
}

/// A data set of the suite: thousands of series, interval, days.
type DataSet = (u32, i64, i64);

/// Ingestion of record: empty and restarted, at several numbers of series, by each protocol.
pub(super) fn planned(setting: &Setting) -> Result<Vec<Planned>> {
    let profile = setting.profile;
    let (restarted, sizes, by_protocol): (DataSet, Vec<DataSet>, DataSet) = match profile {
        Profile::Small => ((40, HOUR_NS, 1), vec![(100, 8 * HOUR_NS, 1)], (40, 4 * HOUR_NS, 1)),
        Profile::Full => (
            (1000, HOUR_NS, 1),
            vec![(400, 3 * HOUR_NS, 3), (4000, 24 * HOUR_NS, 3), (40_000, 24 * HOUR_NS, 3)],
            (1000, 4 * HOUR_NS, 1),
        ),
    };
    let any = [Protocol::Influx, Protocol::RemoteWrite, Protocol::Copy];
    let mut planned = vec![plan(setting, restarted, &any, Then::Restart)?];
    for protocol in [Protocol::RemoteWrite, Protocol::RemoteWriteV2, Protocol::Exposition] {
        planned.push(plan(setting, by_protocol, &[protocol], Then::Stop)?);
    }
    for size in sizes {
        planned.push(plan(setting, size, &any, Then::Stop)?);
    }
    Ok(planned)
}

/// What follows the first load.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Then {
    Stop,
    /// The next day's data after a restart.
    Restart,
}

fn plan(
    setting: &Setting,
    (kiloseries, interval_ns, days): DataSet,
    protocols: &[Protocol],
    then: Then,
) -> Result<Planned> {
    let start_ns = parse_rfc3339("2016-01-01T00:00:00Z")?;
    let end_ns = start_ns + days * 24 * HOUR_NS;
    let scale = Scale { hosts: kiloseries * 100, interval_ns, start_ns, end_ns, seed: 123 };
    let kind = match protocols {
        [protocol] => format!("-{}", protocol.name()),
        _ => String::new(),
    };
    let case = Ingest {
        file_name: format!("ingest-{kiloseries}000x{}{kind}", scale.rows()),
        first: Box::new(CpuOnly::new(scale)?),
        second: match then {
            Then::Stop => None,
            Then::Restart => Some(Box::new(CpuOnly::new(scale.following())?)),
        },
        loading: Loading {
            protocols: protocols.to_vec(),
            options: load_options(setting),
            idle: match setting.profile {
                Profile::Small => Duration::from_secs(1),
                Profile::Full => Duration::from_secs(5),
            },
        },
    };
    // What takes seconds is repeated, because another program's second counts.
    let repeats = match (setting.profile, then) {
        (Profile::Small, Then::Restart) => 2,
        _ => 1,
    };
    Ok(Planned::new(case, repeats))
}

impl Case for Ingest {
    fn file_name(&self) -> String {
        self.file_name.clone()
    }

    fn title(&self) -> String {
        let (series, samples) = (self.first.series(), self.first.samples());
        let protocols = self.loading.names();
        format!("Ingestion: {}, {series} series, {samples} samples, {protocols}", self.first.name())
    }

    fn unsupported(&self, contender: &Installed) -> Option<String> {
        self.loading.unsupported(self.first.as_ref(), contender)
    }

    fn headline(&self) -> Vec<String> {
        let mut names = vec![
            "samples/s at the client",
            "server CPU, us/sample",
            "server CPU until merged, us/sample",
            "peak RSS, MiB",
            "disk flushed, B/sample",
        ];
        if self.second.is_some() {
            names.extend([
                "start on that until ready, s",
                "rate after the restart, share of the first",
                "after the restart: server CPU, us/sample",
            ]);
        }
        names.into_iter().map(str::to_string).collect()
    }

    fn run(&self, contender: &Installed, dir: &Path) -> Result<Outcome> {
        let (data_dir, log) = (dir.join("data"), dir.join("server.log"));
        std::fs::create_dir(&data_dir)?;
        let mut server = RunningServer::start(contender, &data_dir, &log)?;
        let first = self.loading.load(self.first.as_ref(), contender, &server)?;
        let mut outcome = Outcome {
            figures: of_load("", &first, first.loader.samples),
            stopped: first.stopped.clone(),
            raw: serde_json::json!({ "first": first }),
            timeline: first.timeline.clone(),
        };
        if outcome.stopped.is_some() {
            return Ok(outcome);
        }
        outcome.figures.extend(missing_samples(
            self.first.as_ref(),
            contender.peer,
            server.authority(),
        ));
        let Some(second) = &self.second else {
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
        let next = self.loading.load(second.as_ref(), contender, &server)?;
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
