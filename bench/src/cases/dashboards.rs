//! Dashboards: load what monitors a Kubernetes cluster, then ask what its dashboards and alerts
//! ask, and check that servers that speak the same language answer the same.

use super::answers::{Verdict, compare};
use super::loading::Loading;
use super::{Planned, Profile, Setting, load_options};
use crate::cluster::dashboards::{NOW, QUERIES, SEVEN_DAYS, SIX_HOURS, View};
use crate::cluster::{Cluster, Scale};
use crate::compare::figures::{Better, Figure, of_load};
use crate::compare::{Case, Outcome, Tally};
use crate::http::{Answer, HttpClient};
use crate::instant::{DAY_NS, HOUR_NS, SECOND_NS, parse_rfc3339};
use crate::payload::Protocol;
use crate::server::{Installed, PROMETHEUS, QUIPU, RunningServer};
use crate::tsbs::queries::Language;
use anyhow::{Context, Result, ensure};
use std::path::Path;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// A query that takes longer has failed.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(600);
/// A query is repeated so often at least ...
const ASK_COUNT_MIN: usize = 3;
/// Fewer times when these would take so many times what a query is repeated for.
const ASK_TIMES_MAX: u32 = 10;
/// ... and at most.
const ASK_COUNT_MAX: usize = 500;
/// Values of two servers are equal that differ by no larger part.
const TOLERANCE: f64 = 1e-12;

const MEAN: &str = "geometric mean";
const CPU: &str = "server CPU, ms";
const WALL: &str = "median, ms";
const PEAK_LOAD: &str = "load: peak RSS, MiB";
const PEAK_ASKED: &str = "peak RSS while asked, MiB";

/// The case for one cluster.
pub struct Dashboards {
    /// File name of the table.
    pub file_name: String,
    /// The cluster.
    pub scale: Scale,
    /// How it is loaded.
    pub loading: Loading,
    /// What is asked for.
    pub views: Vec<View>,
    /// A query is repeated for so long, and three times unless these take ten times as long.
    pub ask_time: Duration,
    /// What Prometheus or Quipu answered, whichever came first; the other is held against it.
    reference: Mutex<Option<Reference>>,
}

/// Answers by view and query, and whose they are.
struct Reference {
    name: &'static str,
    answers: Vec<Answer>,
}

impl Dashboards {
    /// A case that was not run yet.
    pub fn new(
        file_name: String,
        scale: Scale,
        loading: Loading,
        views: Vec<View>,
        ask_time: Duration,
    ) -> Dashboards {
        Dashboards { file_name, scale, loading, views, ask_time, reference: Mutex::new(None) }
    }
}

/// A wide cluster's last hours, and a small one's week.
pub(super) fn planned(setting: &Setting) -> Result<Vec<Planned>> {
    // Nodes, pods, and seconds between two samples.
    let (wide, long) = match setting.profile {
        Profile::Small => ((20, 600, 60), (2, 40, 120)),
        Profile::Full => ((400, 17_500, 300), (12, 300, 60)),
    };
    let case = |name: &str, (nodes, pods, seconds), span_ns, views| -> Result<Planned> {
        let end_ns = parse_rfc3339("2026-02-01T00:00:00Z")?;
        let scale = Scale {
            nodes,
            pods,
            interval_ns: seconds * SECOND_NS,
            start_ns: end_ns - span_ns,
            end_ns,
            seed: 123,
        };
        let (file_name, ask_time) = (format!("dashboards-{name}-{pods}"), Duration::from_secs(1));
        let loading = loading(setting);
        Ok(Planned::new(Dashboards::new(file_name, scale, loading, views, ask_time), 1))
    };
    Ok(vec![
        case("6h", wide, 6 * HOUR_NS, vec![NOW, SIX_HOURS])?,
        case("7d", long, 7 * DAY_NS, vec![SEVEN_DAYS])?,
    ])
}

/// One worker, so that samples come in the order of time, as a scraper sends them.
fn loading(setting: &Setting) -> Loading {
    let mut options = load_options(setting);
    options.workers = 1;
    Loading { protocols: vec![Protocol::RemoteWrite], options, idle: Duration::from_secs(2) }
}

impl Case for Dashboards {
    fn file_name(&self) -> String {
        self.file_name.clone()
    }

    fn title(&self) -> String {
        let Scale { nodes, pods, .. } = self.scale;
        let views = self.views.iter().map(|view| view.name).collect::<Vec<_>>().join(", ");
        format!("Dashboards of a cluster of {nodes} nodes and {pods} pods: {views}")
    }

    fn unsupported(&self, contender: &Installed) -> Option<String> {
        if contender.peer.language != Some(Language::PromQl) {
            return Some("dashboards ask in PromQL".to_string());
        }
        contender.unsupported(Protocol::RemoteWrite)
    }

    fn headline(&self) -> Vec<String> {
        let means = self.views.iter().map(|view| figure(*view, MEAN, CPU));
        means.chain([PEAK_LOAD, PEAK_ASKED].map(str::to_string)).collect()
    }

    fn tallies(&self) -> Vec<Tally> {
        let of = |view: &View, what| Tally {
            title: format!("{}, {what}", view.name),
            figures: QUERIES.iter().map(|query| figure(*view, query.name, what)).collect(),
        };
        self.views.iter().flat_map(|view| [of(view, CPU), of(view, WALL)]).collect()
    }

    fn run(&self, contender: &Installed, dir: &Path) -> Result<Outcome> {
        let (data_dir, log) = (dir.join("data"), dir.join("server.log"));
        std::fs::create_dir(&data_dir)?;
        let server = RunningServer::start(contender, &data_dir, &log)?;
        let cluster = Cluster::new(self.scale)?;
        let loaded = self.loading.load(&cluster, contender, &server)?;
        let mut outcome = Outcome {
            stopped: loaded.stopped.clone(),
            timeline: loaded.timeline.clone(),
            raw: serde_json::to_value(&loaded)?,
            ..Outcome::default()
        };
        if outcome.stopped.is_some() {
            return Ok(outcome);
        }
        let observed = server.observed();
        observed.forget_peak()?;
        let (mut answers, mut faults) = (Vec::new(), Vec::new());
        for view in &self.views {
            let asked = self.ask_all(*view, &server, &mut faults)?;
            outcome.figures.extend(asked.figures);
            answers.extend(asked.answers);
        }
        if let Some(used) = observed.process()? {
            let mib = used.rss_peak_bytes as f64 / f64::from(1 << 20);
            outcome.figures.push(Figure::new(PEAK_ASKED, mib, Better::Lower));
        }
        outcome.figures.extend(of_load("load: ", &loaded, loaded.loader.samples));
        for (what, count) in [("series", loaded.series), ("samples", loaded.loader.samples)] {
            outcome.figures.push(Figure::new(what, count as f64, Better::Neither));
        }
        outcome.figures.extend(self.check(contender, answers, &mut faults)?);
        outcome.stopped = (!faults.is_empty()).then(|| faults.join("; "));
        server.stop()?;
        Ok(outcome)
    }
}

/// What the queries of a view gave.
#[derive(Default)]
struct Asked {
    figures: Vec<Figure>,
    answers: Vec<Answer>,
}

impl Dashboards {
    /// Asks all queries of a view; one that fails is a fault and has no figures.
    fn ask_all(
        &self,
        view: View,
        server: &RunningServer,
        faults: &mut Vec<String>,
    ) -> Result<Asked> {
        let mut client = HttpClient::new(server.authority(), ANSWER_TIMEOUT);
        let mut asked = Asked::default();
        let mut times: [Vec<f64>; 2] = Default::default();
        for query in &QUERIES {
            let interval = self.scale.interval_ns / SECOND_NS;
            let path = query.path(view, interval, self.scale.end_ns / SECOND_NS);
            let (answer, [cpu_ms, wall_ms]) = self.ask(&path, &mut client, server)?;
            if answer.status == 200 {
                eprintln!("{}, {}: {cpu_ms:.3} ms of CPU, {wall_ms:.3} ms", view.name, query.name);
                for (idx, (what, value)) in [(CPU, cpu_ms), (WALL, wall_ms)].iter().enumerate() {
                    let name = figure(view, query.name, what);
                    asked.figures.push(Figure::new(&name, *value, Better::Lower));
                    times[idx].push(*value);
                }
            } else {
                let (status, excerpt) = (answer.status, answer.excerpt());
                faults.push(format!("{}, {}: status {status}: {excerpt}", view.name, query.name));
            }
            asked.answers.push(answer);
        }
        for (what, values) in [CPU, WALL].iter().zip(&times) {
            let mean = geometric_mean(values);
            asked.figures.push(Figure::new(&figure(view, MEAN, what), mean, Better::Lower));
        }
        Ok(asked)
    }

    /// The answer, the server's CPU time for one and the median latency, in milliseconds. An answer
    /// that is a refusal is not asked for again.
    fn ask(
        &self,
        path: &str,
        client: &mut HttpClient,
        server: &RunningServer,
    ) -> Result<(Answer, [f64; 2])> {
        let observed = server.observed();
        let cpu_seconds = || -> Result<f64> {
            Ok(observed.process()?.context("the server is not watched")?.cpu_seconds)
        };
        let (before, start) = (cpu_seconds()?, Instant::now());
        let first = client.get(path)?;
        let mut times = vec![start.elapsed().as_secs_f64() * 1e3];
        let is_enough = |count: usize| {
            let taken = start.elapsed();
            let is_asked_enough = count >= ASK_COUNT_MIN || taken > ASK_TIMES_MAX * self.ask_time;
            count >= ASK_COUNT_MAX || (is_asked_enough && taken > self.ask_time)
        };
        while first.status == 200 && !is_enough(times.len()) {
            let asked = Instant::now();
            let answer = client.get_into(path, &mut |_| Ok(()))?;
            ensure!(answer.status == 200, "status {}", answer.status);
            times.push(asked.elapsed().as_secs_f64() * 1e3);
        }
        let cpu_ms = (cpu_seconds()? - before) * 1e3 / times.len() as f64;
        times.sort_by(f64::total_cmp);
        Ok((first, [cpu_ms, times[times.len() / 2]]))
    }

    /// Keeps the answers of the first server that speaks Prometheus' language, and holds those of
    /// the next against them; the others have a dialect of their own.
    fn check(
        &self,
        contender: &Installed,
        answers: Vec<Answer>,
        faults: &mut Vec<String>,
    ) -> Result<Vec<Figure>> {
        let name = contender.peer.name;
        let empty = answers.iter().filter(|answer| is_empty(answer)).count();
        let mut figures = vec![Figure::new("empty answers", empty as f64, Better::Neither)];
        if !speaks_alike(contender) {
            return Ok(figures);
        }
        let mut guard = self.reference.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(reference) = guard.as_ref().filter(|reference| reference.name != name) else {
            *guard = Some(Reference { name, answers });
            return Ok(figures);
        };
        let asked = self.views.iter().flat_map(|view| QUERIES.iter().map(move |one| (view, one)));
        let mut alike = 0.0;
        for ((view, query), (theirs, ours)) in asked.zip(reference.answers.iter().zip(&answers)) {
            match compare(ours, theirs, TOLERANCE)? {
                Verdict::Alike => alike += 1.0,
                Verdict::Refused => {}
                Verdict::Different(how) => faults.push(format!(
                    "{}, {}: not as {} answered (they): {how}",
                    view.name, query.name, reference.name
                )),
            }
        }
        figures.push(Figure::new("answers alike those of the other", alike, Better::Neither));
        Ok(figures)
    }
}

/// Whether a server's answers are to be those of Prometheus 3. Prometheus 2 extrapolates the rates
/// of counters that have just started in another way.
fn speaks_alike(contender: &Installed) -> bool {
    let name = contender.peer.name;
    name == QUIPU.name
        || (name == PROMETHEUS.name && !contender.version.starts_with("prometheus, version 2."))
}

fn is_empty(answer: &Answer) -> bool {
    let start = &answer.body[..answer.body.len().min(200)];
    answer.status == 200 && String::from_utf8_lossy(start).contains("\"result\":[]")
}

fn figure(view: View, query: &str, what: &str) -> String {
    format!("{}, {query}: {what}", view.name)
}

/// Of what is too short for the clock only the rest counts.
fn geometric_mean(values: &[f64]) -> f64 {
    let logarithms = values.iter().filter(|value| **value > 0.0).map(|value| value.ln());
    let logarithms = logarithms.collect::<Vec<_>>();
    (logarithms.iter().sum::<f64>() / logarithms.len().max(1) as f64).exp()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::PathBuf;

    /// What is here of the two that are held against each other: Quipu where `QUIPU_BINARY` says.
    fn contenders() -> Vec<Installed> {
        let quipu = std::env::var_os("QUIPU_BINARY").map(PathBuf::from);
        let binaries = [(&QUIPU, quipu), (&PROMETHEUS, PROMETHEUS.find_binary())];
        let mut contenders = Vec::new();
        for (peer, binary) in binaries {
            match binary {
                Some(binary) => contenders.push(Installed::new(peer, &binary).unwrap()),
                None => println!("{} is skipped: it is not here", peer.name),
            }
        }
        contenders
    }

    #[test]
    fn a_small_cluster_is_answered_alike() {
        let setting = Setting {
            profile: Profile::Small,
            inside: None,
            limits: crate::load::limits::Limits::default(),
        };
        let end_ns = parse_rfc3339("2026-02-01T00:00:00Z").unwrap();
        let scale = Scale {
            nodes: 2,
            pods: 40,
            interval_ns: 300 * SECOND_NS,
            start_ns: end_ns - 6 * HOUR_NS,
            end_ns,
            seed: 7,
        };
        let (loading, views) = (loading(&setting), vec![NOW, SIX_HOURS, SEVEN_DAYS]);
        let loading = Loading { idle: Duration::ZERO, ..loading };
        let case = Dashboards::new("dashboards".to_string(), scale, loading, views, Duration::ZERO);
        let asked = (case.views.len() * QUERIES.len()) as f64;
        for (idx, contender) in contenders().iter().enumerate() {
            let dir = tempfile::tempdir().unwrap();
            let outcome = case.run(contender, dir.path()).unwrap();
            assert_eq!(outcome.stopped, None, "{}", contender.peer.name);
            let value = |name: &str| {
                let figure = outcome.figures.iter().find(|figure| figure.name == name);
                figure.map(|figure| figure.value)
            };
            assert!(value("empty answers").unwrap() < asked / 4.0, "{:?}", outcome.figures);
            assert!(value(PEAK_ASKED).unwrap() > 1.0);
            for tally in case.tallies() {
                assert!(tally.figures.iter().all(|name| value(name).is_some()), "{tally:?}");
            }
            let alike = (idx > 0 && speaks_alike(contender)).then_some(asked);
            assert_eq!(value("answers alike those of the other"), alike);
        }
    }

    #[test]
    fn what_the_clock_does_not_see_has_no_part_in_the_mean() {
        assert!((geometric_mean(&[1.0, 0.0, 100.0]) - 10.0).abs() < 1e-9);
    }
}
