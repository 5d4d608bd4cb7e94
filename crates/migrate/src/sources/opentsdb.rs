//! A running OpenTSDB, asked by its HTTP API: a day of some metrics at a time, without aggregation
//! (`none`, version 2.3 and later), so that each series comes apart with its tags.
//!
//! A question that the server finds too long (413), or takes too long for (408), is asked in halves: of the
//! metrics, of the time down to an hour, which is a row of its store, of the series, and of the time again.

use super::days;
use crate::series::{Filter, Series};
use crate::source::{Given, Sink, Source, Window};
use anyhow::{Context as _, bail, ensure};
use bytes::Bytes;
use http_client::client::{Asked, Client};
use hyper::{Method, StatusCode};
use index::CompiledMatchers;
use model::sample::NANOS_PER_DAY;
use model::{Labels, METRIC_NAME, TimeRange};
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use wire::opentsdb::answer::{Answered, read_error, read_names, read_series, read_tsuids};

/// Metrics of a question, bytes of their names, and series of one: beyond 8 KiB it takes bodies only where
/// somebody has configured so.
const METRICS_AT_ONCE: usize = 16;
const NAMES_AT_ONCE_SIZE: usize = 4 << 10;
const SERIES_AT_ONCE: usize = 64;
/// Names that are asked for at first; twice as many where there are more.
const SUGGESTED_AT_FIRST: usize = 100_000;
/// Names: they are in memory.
const NAMES_MAX: usize = 20_000_000;
/// Bytes of an answer with samples, which is in memory, and of one with names.
const ANSWER_SIZE_MAX: usize = 64 << 20;
const NAMES_SIZE_MAX: usize = 1 << 30;
/// Series of a metric that are looked up.
const SERIES_MAX: usize = 10_000_000;
/// Days that are asked for one by one.
const DAYS_MAX: i64 = 100_000;
/// A row of its store.
const HOUR_MS: i64 = 3_600_000;
const SECOND_MS: i64 = 1000;
/// Annotations that are told apart, and metrics that are named.
const ANNOTATIONS_MAX: usize = 1_000_000;
const METRICS_SHOWN: usize = 10;
/// Metrics of samples with other times that are told apart, and what the others are called.
const METRICS_COUNTED_MAX: usize = 1000;
const OTHERS: &str = "others";
/// What it answers where a metric is not known.
const NO_NAME: &str = "No such name for 'metrics'";

const JSON: &[(&str, &str)] = &[("content-type", "application/json")];

/// The server.
pub struct OpenTsdb {
    client: Client,
    filter: Arc<Filter>,
    range: TimeRange,
    /// Names that are copied.
    metrics: Vec<String>,
    /// Series and times of annotations.
    annotations: BTreeSet<(String, i64)>,
    /// Metrics that went meanwhile.
    gone: BTreeSet<String>,
    /// Samples of times that nobody asked for, or that cannot be kept, by metric.
    elsewhen: BTreeMap<String, u64>,
}

/// What is asked for at once: some milliseconds, the last among them.
#[derive(Clone, Debug, PartialEq)]
struct Question {
    what: What,
    first_ms: i64,
    last_ms: i64,
}

#[derive(Clone, Debug, PartialEq)]
enum What {
    Metrics(Vec<String>),
    /// The numbers of series of a metric.
    Series(String, Vec<String>),
}

/// How the server answered.
enum Answer {
    Text(Vec<u8>),
    /// It is too much, in the server's words.
    TooMuch(String),
    NoSuchMetric,
}

/// A question in two, or why there are none.
enum Halves {
    Two(Question, Question),
    /// Its series have to be looked up first.
    OfSeries(String),
    None,
}

impl OpenTsdb {
    /// What a server has of that time.
    pub fn new(client: Client, filter: Arc<Filter>, range: TimeRange) -> OpenTsdb {
        let (annotations, gone) = (BTreeSet::new(), BTreeSet::new());
        let (metrics, elsewhen) = (Vec::new(), BTreeMap::new());
        OpenTsdb { client, filter, range, metrics, annotations, gone, elsewhen }
    }

    /// Asks; an answer beyond a size is too much.
    fn ask(&mut self, asked: &Asked<'_>, size_max: usize) -> anyhow::Result<Answer> {
        let (mut text, mut is_too_long) = (Vec::new(), false);
        let reply = self.client.ask(asked, &mut |bytes| {
            is_too_long = size_max < text.len() + bytes.len();
            ensure!(!is_too_long, "more than {size_max} bytes");
            text.extend_from_slice(bytes);
            Ok(())
        });
        if is_too_long {
            return Ok(Answer::TooMuch(format!("an answer of more than {size_max} bytes")));
        }
        let reply = reply.with_context(|| asked.path.to_string())?;
        if reply.status.is_success() {
            return Ok(Answer::Text(text));
        }
        let words = read_error(reply.error.as_bytes()).map_or(reply.error, |(_, words)| words);
        match reply.status {
            StatusCode::PAYLOAD_TOO_LARGE
            | StatusCode::REQUEST_TIMEOUT
            | StatusCode::GATEWAY_TIMEOUT => Ok(Answer::TooMuch(words)),
            _ if words.contains(NO_NAME) => Ok(Answer::NoSuchMetric),
            status => bail!("{}: {status}: {words}", asked.path),
        }
    }

    fn ask_json(&mut self, path: &str, body: &Value, size_max: usize) -> anyhow::Result<Answer> {
        let body = Bytes::from(body.to_string());
        self.ask(&Asked { method: Method::POST, path, headers: JSON, body }, size_max)
    }

    /// The names of all metrics: it gives as many as are asked for.
    fn find_metrics(&mut self) -> anyhow::Result<Vec<String>> {
        let mut count = SUGGESTED_AT_FIRST;
        loop {
            let path = format!("/api/suggest?type=metrics&max={count}");
            let asked =
                Asked { method: Method::GET, path: &path, headers: &[], body: Bytes::new() };
            let text = match self.ask(&asked, NAMES_SIZE_MAX)? {
                Answer::Text(text) => text,
                Answer::TooMuch(words) => bail!("{path}: {words}"),
                Answer::NoSuchMetric => Vec::new(),
            };
            let names = read_names(&text).with_context(|| path.clone())?;
            if names.len() < count {
                return Ok(names);
            }
            ensure!(count < NAMES_MAX, "more than {NAMES_MAX} metrics");
            count *= 2;
        }
    }

    /// Reads what a question is answered with, in halves where that is too much.
    fn answer(&mut self, question: Question, sink: &mut Sink<'_>) -> anyhow::Result<()> {
        let mut waiting = vec![question];
        while let Some(question) = waiting.pop() {
            match self.ask_json("/api/query?arrays=true", &question.body(), ANSWER_SIZE_MAX)? {
                Answer::Text(text) => self.give(&text, &question, sink)?,
                Answer::NoSuchMetric => match question.halves_of_metrics() {
                    Some((first, second)) => waiting.extend([second, first]),
                    None => drop(self.gone.insert(question.metric())),
                },
                Answer::TooMuch(words) => match question.halves() {
                    Halves::Two(first, second) => waiting.extend([second, first]),
                    Halves::OfSeries(metric) => {
                        let found = self.look_up(&metric).with_context(|| words.clone())?;
                        let part = |some: &[String]| {
                            question.with(What::Series(metric.clone(), some.to_vec()))
                        };
                        waiting.extend(found.chunks(SERIES_AT_ONCE).rev().map(part));
                    }
                    Halves::None => bail!("a second of {}: {words}", question.metric()),
                },
            }
        }
        Ok(())
    }

    /// The numbers of a metric's series: of its table of those, or of all rows where it keeps no table.
    fn look_up(&mut self, metric: &str) -> anyhow::Result<Vec<String>> {
        for has_table in [true, false] {
            let body = json!({"metric": metric, "limit": SERIES_MAX, "useMeta": has_table});
            let path = "/api/search/lookup";
            match self.ask_json(path, &body, NAMES_SIZE_MAX)? {
                Answer::Text(text) => {
                    let found = read_tsuids(&text).context(path)?;
                    if !found.is_empty() {
                        return Ok(found.into_iter().collect());
                    }
                }
                Answer::TooMuch(words) => bail!("{path}: {metric}: {words}"),
                Answer::NoSuchMetric => {}
            }
        }
        bail!("/api/search/lookup has no series of {metric}")
    }

    fn give(
        &mut self,
        text: &[u8],
        question: &Question,
        sink: &mut Sink<'_>,
    ) -> anyhow::Result<()> {
        let OpenTsdb { annotations, filter, range, elsewhen, .. } = self;
        read_series(text, &mut |found: Answered| -> anyhow::Result<()> {
            let Answered { labels, samples, annotations: some } = found;
            if annotations.len() < ANNOTATIONS_MAX {
                annotations.extend(some);
            }
            if !filter.takes(&labels) {
                return Ok(());
            }
            let lost = samples.iter().filter(|one| !question.takes(one.millis)).count() as u64;
            if 0 < lost {
                note(elsewhen, labels.metric_name(), lost);
            }
            let mut series =
                Series { labels, samples, histograms: Vec::new(), repeated: Vec::new() };
            series.samples.retain(|one| question.takes(one.millis));
            series.tidy(range);
            match series.is_empty() {
                true => Ok(()),
                false => sink(Given::Series(series)),
            }
        })
        .context("/api/query")
    }
}

impl Question {
    fn body(&self) -> Value {
        let queries: Vec<Value> = match &self.what {
            What::Metrics(names) => {
                let query = |name| json!({"aggregator": "none", "metric": name});
                names.iter().map(query).collect()
            }
            What::Series(_, numbers) => vec![json!({"aggregator": "none", "tsuids": numbers})],
        };
        json!({
            "start": self.first_ms,
            // It takes none that ends where it begins.
            "end": self.last_ms.max(self.first_ms + 1),
            "msResolution": true,
            "globalAnnotations": true,
            "queries": queries,
        })
    }

    /// Whether it asks for a time. Its end is a millisecond later where it has one alone.
    fn takes(&self, millis: i64) -> bool {
        (self.first_ms..=self.last_ms.max(self.first_ms + 1)).contains(&millis)
    }

    /// The first of its metrics.
    fn metric(&self) -> String {
        match &self.what {
            What::Metrics(names) => names.first().cloned().unwrap_or_default(),
            What::Series(metric, _) => metric.clone(),
        }
    }

    fn with(&self, what: What) -> Question {
        Question { what, ..*self }
    }

    fn halves_of_metrics(&self) -> Option<(Question, Question)> {
        match &self.what {
            What::Metrics(names) if 1 < names.len() => {
                let (first, second) = names.split_at(names.len() / 2);
                let part = |names: &[String]| self.with(What::Metrics(names.to_vec()));
                Some((part(first), part(second)))
            }
            _ => None,
        }
    }

    /// The earlier and the later half, each of whole units.
    fn halves_of_time(&self, unit_ms: i64) -> Option<(Question, Question)> {
        let middle = self.first_ms + (self.last_ms - self.first_ms + 1) / 2;
        // The unit in which the middle is begins the later half.
        let mut start = middle - middle.rem_euclid(unit_ms);
        if start <= self.first_ms {
            start += unit_ms;
        }
        (start <= self.last_ms).then(|| {
            let first = Question { last_ms: start - 1, ..self.clone() };
            (first, Question { first_ms: start, ..self.clone() })
        })
    }

    fn halves(&self) -> Halves {
        if let Some((first, second)) = self.halves_of_metrics() {
            return Halves::Two(first, second);
        }
        if let Some((first, second)) = self.halves_of_time(HOUR_MS) {
            return Halves::Two(first, second);
        }
        match &self.what {
            What::Metrics(_) => Halves::OfSeries(self.metric()),
            What::Series(metric, numbers) if 1 < numbers.len() => {
                let (first, second) = numbers.split_at(numbers.len() / 2);
                let part = |some: &[String]| self.with(What::Series(metric.clone(), some.to_vec()));
                Halves::Two(part(first), part(second))
            }
            What::Series(..) => match self.halves_of_time(SECOND_MS) {
                Some((first, second)) => Halves::Two(first, second),
                None => Halves::None,
            },
        }
    }
}

/// Counts samples of a metric; of those beyond a few metrics nobody says the name.
fn note(all: &mut BTreeMap<String, u64>, metric: &str, count: u64) {
    let is_room = all.len() < METRICS_COUNTED_MAX || all.contains_key(metric);
    *all.entry(if is_room { metric } else { OTHERS }.to_string()).or_default() += count;
}

/// Metrics that are asked for together.
fn batches(metrics: &[String]) -> Vec<Vec<String>> {
    let mut all: Vec<Vec<String>> = Vec::new();
    let mut size = 0;
    for name in metrics {
        size += name.len();
        match all.last_mut() {
            Some(last) if last.len() < METRICS_AT_ONCE && size <= NAMES_AT_ONCE_SIZE => {
                last.push(name.clone());
            }
            _ => {
                size = name.len();
                all.push(vec![name.clone()]);
            }
        }
    }
    all
}

/// Which names series have that a filter takes.
fn names(filter: &Filter) -> anyhow::Result<Vec<CompiledMatchers>> {
    let of_names = |set: &Vec<model::Matcher>| {
        let some: Vec<_> = set.iter().filter(|one| one.name == METRIC_NAME).cloned().collect();
        CompiledMatchers::compile(&some)
    };
    Ok(filter.matchers.iter().map(of_names).collect::<Result<_, _>>()?)
}

impl Source for OpenTsdb {
    fn windows(&mut self) -> anyhow::Result<Vec<Window>> {
        ensure!(
            self.range.start != i64::MIN,
            "this server does not say since when it has samples: say --start, as in --start 2026-01-01"
        );
        // It has none from before 1970.
        let range = self.range.intersect(&TimeRange::new(0, i64::MAX));
        let count = range.end.saturating_sub(range.start) / NANOS_PER_DAY;
        ensure!(count <= DAYS_MAX, "{count} days, with requests for each: say --start");
        let chosen = names(&self.filter)?;
        self.metrics = self.find_metrics()?;
        self.metrics.retain(|name| {
            let labels = Labels::from_pairs(&[(METRIC_NAME, name)]);
            chosen.is_empty() || chosen.iter().any(|one| one.matches(&labels))
        });
        ensure!(!self.metrics.is_empty(), "no metrics, or none that --match takes");
        Ok(days::windows(&range))
    }

    fn is_disjoint(&self) -> bool {
        true
    }

    fn left_out(&self) -> Vec<String> {
        let mut words = Vec::new();
        if !self.annotations.is_empty() {
            let count = self.annotations.len();
            let more = if count < ANNOTATIONS_MAX { "" } else { " or more" };
            words.push(format!("{count}{more} annotations of the windows that were read"));
        }
        if !self.elsewhen.is_empty() {
            let all: u64 = self.elsewhen.values().sum();
            let named = self.elsewhen.iter().map(|(name, count)| format!("{name} ({count})"));
            let named: Vec<String> = named.take(METRICS_SHOWN).collect();
            let more = if named.len() < self.elsewhen.len() { ", .." } else { "" };
            let named = named.join(", ");
            words.push(format!(
                "{all} samples of times that were not asked for, or that nothing can keep: {named}{more}"
            ));
        }
        if !self.gone.is_empty() {
            let named: Vec<&str> =
                self.gone.iter().take(METRICS_SHOWN).map(String::as_str).collect();
            let more = if named.len() < self.gone.len() { ", .." } else { "" };
            let words_of = format!("metrics that the server no longer knows: {}", named.join(", "));
            words.push(words_of + more);
        }
        words
    }

    fn read(&mut self, window: &Window, sink: &mut Sink<'_>) -> anyhow::Result<()> {
        let (first_ms, last_ms) = window.range.whole_millis();
        for names in batches(&self.metrics) {
            let what = What::Metrics(names);
            self.answer(Question { what, first_ms, last_ms }, sink)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOUR: i64 = HOUR_MS;

    fn question(what: What, first_ms: i64, last_ms: i64) -> Question {
        Question { what, first_ms, last_ms }
    }

    fn texts(all: &[&str]) -> Vec<String> {
        all.iter().map(|one| one.to_string()).collect()
    }

    #[track_caller]
    fn two(halves: Halves) -> (Question, Question) {
        match halves {
            Halves::Two(first, second) => (first, second),
            Halves::OfSeries(metric) => panic!("series of {metric}"),
            Halves::None => panic!("none"),
        }
    }

    #[test]
    fn what_is_too_much_is_asked_in_halves() {
        let all = question(What::Metrics(texts(&["a", "b", "c"])), 0, 24 * HOUR - 1);
        let (first, second) = two(all.halves());
        assert_eq!(first.what, What::Metrics(texts(&["a"])));
        assert_eq!(second.what, What::Metrics(texts(&["b", "c"])));
        let (early, late) = two(first.halves());
        assert_eq!((early.last_ms, late.first_ms), (12 * HOUR - 1, 12 * HOUR));
        let one = question(What::Metrics(texts(&["a"])), 0, 2 * HOUR - 1);
        assert_eq!(two(one.halves()).1.first_ms, HOUR);
        let hour = question(What::Metrics(texts(&["a"])), HOUR, 2 * HOUR - 1);
        assert!(matches!(hour.halves(), Halves::OfSeries(metric) if metric == "a"));
        let series =
            question(What::Series("a".to_string(), texts(&["1", "2"])), HOUR, 2 * HOUR - 1);
        let (first, second) = two(series.halves());
        assert_eq!(second.what, What::Series("a".to_string(), texts(&["2"])));
        assert_eq!((first.first_ms, first.last_ms), (HOUR, 2 * HOUR - 1));
        let (early, late) = two(first.halves());
        assert_eq!((early.last_ms + 1, late.first_ms), (late.first_ms, HOUR + HOUR / 2));
        let second = question(What::Series("a".to_string(), texts(&["1"])), 1000, 1999);
        assert!(matches!(second.halves(), Halves::None));
    }

    #[test]
    fn a_question_is_short() {
        let long = "x".repeat(3000);
        let names: Vec<String> =
            (0..40).map(|at| format!("m{at}")).chain([long.clone(), long]).collect();
        let sizes: Vec<usize> = batches(&names).iter().map(Vec::len).collect();
        assert_eq!(sizes, [16, 16, 9, 1]);
        assert_eq!(batches(&names).concat(), names);
    }

    #[test]
    fn all_halves_together_are_the_whole() {
        for (first_ms, last_ms) in [(0, 0), (5, 6), (HOUR - 1, HOUR), (7, 90 * HOUR + 13)] {
            let mut waiting =
                vec![question(What::Series(String::new(), texts(&["1"])), first_ms, last_ms)];
            let mut next = first_ms;
            while let Some(one) = waiting.pop() {
                match one.halves() {
                    Halves::Two(first, second) => waiting.extend([second, first]),
                    _ => {
                        assert_eq!(one.first_ms, next);
                        assert!(one.last_ms - one.first_ms < SECOND_MS);
                        next = one.last_ms + 1;
                    }
                }
            }
            assert_eq!(next, last_ms + 1);
        }
    }
}
