//! A running server that is read by Prometheus' remote read: Prometheus itself, or a Quipu.

use super::days;
use super::{strings, totals};
use crate::series::{Filter, Series};
use crate::source::{Given, Sink, Source, Total, Window};
use anyhow::{Context as _, ensure};
use cli::calendar::rfc3339;
use http_client::client::{BROKE_OFF, Client};
pub use http_client::json::{json_of, text_of};
use http_client::remote_read::{Answer, FRAMES_TYPE, READ_PATH, question};
use http_client::retry::retried;
use model::sample::{NANOS_PER_DAY, NANOS_PER_MILLI};
use model::{MatchOp, Matcher, TimeRange, Timestamp};
use std::collections::HashSet;
use std::sync::Arc;
use wire::remote_read::ReadQuery;
use wire::remote_read::decode::ReadSeries;
use wire::remote_write::encode_histograms::{CountForm, MillisHistogram};

/// Bytes of an answer in one message: those in frames have no such limit.
const ANSWER_SIZE_MAX: usize = 1 << 30;

/// Days that are asked for one by one.
const DAYS_MAX: i64 = 40_000;

/// The server.
pub struct RemoteRead {
    client: Client,
    filter: Arc<Filter>,
    range: TimeRange,
    /// Of a Quipu, whose strings come as texts.
    has_strings: bool,
    /// Strings that have no place where names of metrics are changed.
    texts_lost: u64,
}

impl RemoteRead {
    /// What a server has of that time.
    pub fn new(client: Client, filter: Arc<Filter>, range: TimeRange) -> RemoteRead {
        RemoteRead { client, filter, range, has_strings: false, texts_lost: 0 }
    }

    /// The same of a Quipu, with its strings.
    pub fn with_strings(self) -> RemoteRead {
        RemoteRead { has_strings: true, ..self }
    }

    /// Hands on the strings of a time whose series some selectors choose; of a Quipu alone.
    ///
    /// # Errors
    /// When the server does not answer, or the sink fails.
    pub fn read_strings(
        &mut self,
        range: &TimeRange,
        selectors: &[String],
        sink: &mut Sink<'_>,
    ) -> anyhow::Result<()> {
        strings::read(&mut self.client, selectors, range, sink)
    }

    /// From when on it says that it has samples.
    ///
    /// # Errors
    /// When it does not answer.
    fn lowest(&mut self) -> anyhow::Result<Option<i64>> {
        // Of a Quipu.
        let answer = json_of(&mut self.client, "/api/v1/status/runtimeinfo").unwrap_or_default();
        if let Some(oldest) = answer["data"]["minTimeMs"].as_i64() {
            return Ok(Some(oldest.saturating_mul(NANOS_PER_MILLI)));
        }
        let name = "prometheus_tsdb_lowest_timestamp_seconds";
        let text = retried(|| text_of(&mut self.client, "/metrics"))?;
        let line = text.lines().find_map(|line| line.strip_prefix(name));
        let seconds = line.and_then(|rest| rest.trim().parse::<f64>().ok());
        Ok(seconds.map(|seconds| (seconds * 1e9) as i64))
    }
}

impl Source for RemoteRead {
    fn windows(&mut self) -> anyhow::Result<Vec<Window>> {
        let mut range = self.range;
        let mut older = None;
        if range.start == i64::MIN {
            let lowest = self.lowest()?.context(
                "this server does not say since when it has samples: say --start, as in --start 2026-01-01",
            )?;
            range.start = lowest.div_euclid(NANOS_PER_DAY).saturating_mul(NANOS_PER_DAY);
            older = Some(before(range.start, range.end));
        }
        let count = range.end.saturating_sub(range.start) / NANOS_PER_DAY;
        ensure!(count <= DAYS_MAX, "{count} days, with a request for each: say --start");
        Ok(days::windows(&range).into_iter().chain(older).collect())
    }

    fn read(&mut self, window: &Window, sink: &mut Sink<'_>) -> anyhow::Result<()> {
        let all = vec![vec![Matcher::new(model::METRIC_NAME, MatchOp::NotEqual, "")]];
        let sets = if self.filter.matchers.is_empty() { all } else { self.filter.matchers.clone() };
        if !self.has_strings {
            return self.read_matching(window, sets, sink);
        }
        let selectors = match self.filter.selectors.as_slice() {
            [] => vec!["{__name__!=\"\"}".to_string()],
            some => some.to_vec(),
        };
        let mut texts = HashSet::new();
        let (mut lost, filter) = (0, self.filter.clone());
        self.read_strings(&window.range, &selectors, &mut |given| {
            if let Given::Strings(line) = &given {
                texts.insert(line.labels.fingerprint());
            }
            lost += given.texts_lost(&filter);
            sink(given)
        })?;
        self.texts_lost += lost;
        // Numbers of its dictionary are nobody else's.
        self.read_matching(window, sets, &mut |given| match &given {
            Given::Series(series) if texts.contains(&series.labels.fingerprint()) => Ok(()),
            _ => sink(given),
        })
    }

    fn later(&self, from: Timestamp) -> Vec<Window> {
        vec![Window::later(from)]
    }

    fn count(&mut self, window: &Window) -> anyhow::Result<Option<Total>> {
        totals::by_query(&mut self.client, window)
    }

    fn left_out(&self) -> Vec<String> {
        let words = "strings, which have no other names than those of their fields";
        let count = Some(self.texts_lost).filter(|count| 0 < *count);
        count.map(|count| format!("{count} {words}")).into_iter().collect()
    }
}

/// All that is older than what a server calls its oldest time. Prometheus' word for that leaves out
/// samples that came out of order and are in its head.
fn before(oldest: Timestamp, end: Timestamp) -> Window {
    let date = rfc3339(oldest).split('T').next().unwrap_or_default().to_string();
    let range = TimeRange::new(Timestamp::MIN, oldest.saturating_sub(1).min(end));
    Window { name: format!("before {date}"), range, samples: None }
}

impl RemoteRead {
    /// Hands on the series of a window that one of some sets of matchers chooses.
    ///
    /// # Errors
    /// When the server does not answer, answers what is no answer, or the sink fails.
    pub fn read_matching(
        &mut self,
        window: &Window,
        sets: Vec<Vec<Matcher>>,
        sink: &mut Sink<'_>,
    ) -> anyhow::Result<()> {
        self.read_sets(window, sets, sink).map_err(|error| self.with_damage(error))
    }

    /// Adds the damage that a Quipu reports to the error of an answer that broke off: it may be why.
    fn with_damage(&mut self, error: anyhow::Error) -> anyhow::Error {
        if !error.chain().any(|cause| cause.to_string() == BROKE_OFF) {
            return error;
        }
        let answer = json_of(&mut self.client, "/api/v1/status/damage").unwrap_or_default();
        let Some(file) = answer["data"]["damage"][0]["file"].as_str() else { return error };
        error.context(format!(
            "the server has damaged files, as {file}: repair its data directory first \
             (quipu verify --repair)"
        ))
    }

    fn read_sets(
        &mut self,
        window: &Window,
        sets: Vec<Vec<Matcher>>,
        sink: &mut Sink<'_>,
    ) -> anyhow::Result<()> {
        let (first, last) = window.range.whole_millis();
        for (set, matchers) in sets.into_iter().enumerate() {
            // Each is asked for by itself: what an earlier one chose has come already.
            let filter = self.filter.clone();
            let has_come = |given: &Given| match given {
                Given::Series(series) => {
                    filter.first(&series.labels).is_some_and(|first| first < set)
                }
                _ => false,
            };
            let mut only_new = |given| if has_come(&given) { Ok(()) } else { sink(given) };
            let range = TimeRange::new(first * 1_000_000, last * 1_000_000);
            let query = ReadQuery { matchers, range };
            let mut answer = Answer::new(ANSWER_SIZE_MAX);
            let mut hand_on = |series| give(series, window, &mut only_new);
            let reply = self
                .client
                .ask(&question(&query)?, &mut |bytes| answer.push(bytes, &mut hand_on))?;
            let empty = reply.check_empty(READ_PATH, FRAMES_TYPE);
            reply.check(READ_PATH)?;
            empty?;
            answer.end(&mut hand_on)?;
        }
        Ok(())
    }
}

fn give(series: ReadSeries, window: &Window, sink: &mut Sink<'_>) -> anyhow::Result<()> {
    let histogram = |(millis, histogram)| {
        // Those with whole counts came as such; which it was is not told.
        MillisHistogram { millis, histogram, form: CountForm::Float }
    };
    let mut series = Series {
        labels: series.labels,
        samples: series.chunks.concat(),
        histograms: series.histograms.into_iter().map(histogram).collect(),
        repeated: Vec::new(),
    };
    series.tidy(&window.range);
    match series.is_empty() {
        true => Ok(()),
        false => sink(series.into()),
    }
}
