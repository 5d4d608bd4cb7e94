//! Time series in a Redis: its keys are found by `SCAN`, and each is read by `TS.RANGE`. A key is the series of
//! that name with the key's labels, as Quipu's own `TS.*` have it.
//!
//! A window is the keys whose hash is the same: their number changes while they are copied, and nothing tells
//! when a key was written to.

use super::keys::{Keys, Login, TYPE, ask, rules_left_out};
use crate::series::{Filter, Series};
use crate::source::{Given, Sink, Source, Window};
use anyhow::{Context as _, bail, ensure};
use http_client::resp::{Answer, Connection};
use model::sample::NANOS_PER_MILLI;
use model::{Labels, LabelsBuilder, METRIC_NAME, TimeRange};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use wire::remote_write::encode::MillisSample;

/// Windows.
const PARTS: u32 = 64;
/// Keys of an answer of `SCAN`, and samples of one of `TS.RANGE`.
const KEYS_AT_ONCE: &str = "1000";
const SAMPLES_AT_ONCE: usize = 50_000;
/// Keys: their names are in memory.
const KEYS_MAX: usize = 50_000_000;

/// The server.
pub struct RedisTimeSeries {
    login: Login,
    connection: Option<Connection>,
    filter: Arc<Filter>,
    range: TimeRange,
    /// Those of each window.
    keys: BTreeMap<String, Vec<Vec<u8>>>,
    /// How they are made anew.
    made: Keys,
    rules: BTreeSet<String>,
}

/// What a server says of a key.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct About {
    samples: u64,
    first_ms: i64,
    last_ms: i64,
    retention_ms: u64,
    policy: String,
    labels: Vec<(String, String)>,
    rules: usize,
}

impl RedisTimeSeries {
    /// What a server has of a time; its keys are made anew where somebody says.
    pub fn new(login: Login, filter: Arc<Filter>, range: TimeRange, made: Keys) -> RedisTimeSeries {
        let keys = BTreeMap::new();
        RedisTimeSeries {
            login,
            connection: None,
            filter,
            range,
            keys,
            made,
            rules: BTreeSet::new(),
        }
    }

    /// Asks; what broke is connected anew the next time.
    fn ask(&mut self, words: &[&[u8]]) -> anyhow::Result<Answer> {
        ask(&self.login, &mut self.connection, words)
    }

    fn find_keys(&mut self) -> anyhow::Result<Vec<Vec<u8>>> {
        let mut cursor = b"0".to_vec();
        let mut keys = BTreeSet::new();
        loop {
            let words: [&[u8]; 6] =
                [b"SCAN", &cursor, b"COUNT", KEYS_AT_ONCE.as_bytes(), b"TYPE", TYPE.as_bytes()];
            let Answer::Items(parts) = self.ask(&words)? else { bail!("SCAN: no list") };
            let Ok([Answer::Bytes(next), Answer::Items(found)]) = <[Answer; 2]>::try_from(parts)
            else {
                bail!("SCAN: no cursor and keys");
            };
            keys.extend(found.into_iter().filter_map(|one| match one {
                Answer::Bytes(key) => Some(key),
                _ => None,
            }));
            ensure!(keys.len() <= KEYS_MAX, "more than {KEYS_MAX} keys");
            if next == b"0" {
                return Ok(keys.into_iter().collect());
            }
            cursor = next;
        }
    }

    /// What is known of a key; nothing of one that went.
    fn about(&mut self, key: &[u8]) -> anyhow::Result<Option<About>> {
        match self.ask(&[b"TS.INFO", key]) {
            Ok(answer) => Ok(Some(about_of(answer).context("TS.INFO")?)),
            Err(error) if error.to_string().contains("does not exist") => Ok(None),
            Err(error) => Err(error),
        }
    }

    fn read_key(&mut self, key: &[u8], sink: &mut Sink<'_>) -> anyhow::Result<()> {
        let Some(about) = self.about(key)? else { return Ok(()) };
        let labels = labels_of(key, &about.labels)?;
        if !self.filter.takes(&labels) {
            return Ok(());
        }
        if 0 < about.rules {
            self.rules.insert(labels.metric_name().to_string());
        }
        let new = self.filter.relabelled(labels.clone());
        self.made.make(&new, about.retention_ms, &about.policy)?;
        let (first, last) = self.range.whole_millis();
        let (mut from, to) = (first.max(0), last.to_string());
        let count = SAMPLES_AT_ONCE.to_string();
        loop {
            let start = from.to_string();
            let answer = self.ask(&[
                b"TS.RANGE",
                key,
                start.as_bytes(),
                to.as_bytes(),
                b"COUNT",
                count.as_bytes(),
            ])?;
            let samples = samples_of(answer).context("TS.RANGE")?;
            let (is_last, newest) =
                (samples.len() < SAMPLES_AT_ONCE, samples.last().map_or(0, |one| one.millis));
            let mut series = Series {
                labels: labels.clone(),
                samples,
                histograms: Vec::new(),
                repeated: Vec::new(),
            };
            series.tidy(&self.range);
            if !series.is_empty() {
                sink(Given::Series(series))?;
            }
            if is_last {
                return Ok(());
            }
            from = newest + 1;
        }
    }
}

fn text_of(answer: &Answer) -> Option<String> {
    match answer {
        Answer::Bytes(bytes) => String::from_utf8(bytes.clone()).ok(),
        Answer::Done(text) => Some(text.clone()),
        Answer::Int(number) => Some(number.to_string()),
        _ => None,
    }
}

/// The pairs of an answer: names and values in turn.
fn about_of(answer: Answer) -> anyhow::Result<About> {
    let Answer::Items(items) = answer else { bail!("no list") };
    let mut about = About::default();
    for pair in items.chunks_exact(2) {
        let (name, value) = (text_of(&pair[0]).unwrap_or_default(), &pair[1]);
        let number = || text_of(value).and_then(|text| text.parse::<i64>().ok());
        let whole = || number().with_context(|| format!("{name}: no number"));
        match name.as_str() {
            "totalSamples" => about.samples = u64::try_from(whole()?).unwrap_or_default(),
            "firstTimestamp" => about.first_ms = whole()?,
            "lastTimestamp" => about.last_ms = whole()?,
            "retentionTime" => about.retention_ms = u64::try_from(whole()?).unwrap_or_default(),
            "duplicatePolicy" => about.policy = text_of(value).unwrap_or_default(),
            "labels" => about.labels = labels_in(value).context("labels that are no pairs")?,
            "rules" => about.rules = if let Answer::Items(rules) = value { rules.len() } else { 0 },
            _ => {}
        }
    }
    Ok(about)
}

fn labels_in(answer: &Answer) -> Option<Vec<(String, String)>> {
    let Answer::Items(items) = answer else { return None };
    let pair = |item: &Answer| match item {
        Answer::Items(pair) => Some((text_of(pair.first()?)?, text_of(pair.get(1)?)?)),
        _ => None,
    };
    items.iter().map(pair).collect()
}

fn samples_of(answer: Answer) -> anyhow::Result<Vec<MillisSample>> {
    let Answer::Items(items) = answer else { bail!("no list") };
    let sample = |item: &Answer| {
        let Answer::Items(pair) = item else { return None };
        let millis = text_of(pair.first()?)?.parse().ok()?;
        let value = text_of(pair.get(1)?)?.parse().ok()?;
        Some(MillisSample { millis, value })
    };
    items.iter().map(|item| sample(item).context("a sample that is none")).collect()
}

/// The labels of the series that a key is.
///
/// # Errors
/// When they are none.
pub fn labels_of(key: &[u8], pairs: &[(String, String)]) -> anyhow::Result<Labels> {
    let name = std::str::from_utf8(key).context("a name that is no UTF-8")?;
    let mut labels = LabelsBuilder::new();
    labels.push(METRIC_NAME, name);
    for (name, value) in pairs.iter().filter(|(_, value)| !value.is_empty()) {
        labels.push(name, value);
    }
    Ok(labels.sorted()?.into_labels())
}

/// The window of a key.
fn part_of(key: &[u8]) -> String {
    // FNV-1a.
    let step = |hash: u32, byte: &u8| (hash ^ u32::from(*byte)).wrapping_mul(0x0100_0193);
    let hash = key.iter().fold(0x811c_9dc5, step);
    format!("keys {:02} of {PARTS}", 1 + (hash >> 16) % PARTS)
}

impl Source for RedisTimeSeries {
    fn windows(&mut self) -> anyhow::Result<Vec<Window>> {
        self.keys.clear();
        let mut windows: BTreeMap<String, Window> = BTreeMap::new();
        for key in self.find_keys()? {
            let Some(about) = self.about(&key)? else { continue };
            let nanos = |ms: i64| ms.saturating_mul(NANOS_PER_MILLI);
            let time = TimeRange::new(nanos(about.first_ms), nanos(about.last_ms));
            let name = part_of(&key);
            let range = time.intersect(&self.range);
            if about.samples != 0 && range.is_empty() {
                continue;
            }
            let range = if range.is_empty() { self.range } else { range };
            let window = Window { name: name.clone(), range, samples: Some(0) };
            let window = windows.entry(name.clone()).or_insert(window);
            window.range.start = window.range.start.min(range.start);
            window.range.end = window.range.end.max(range.end);
            window.samples = window.samples.map(|count| count + about.samples);
            self.keys.entry(name).or_default().push(key);
        }
        Ok(windows.into_values().collect())
    }

    fn is_disjoint(&self) -> bool {
        true
    }

    fn left_out(&self) -> Vec<String> {
        rules_left_out(&self.rules).into_iter().collect()
    }

    fn read(&mut self, window: &Window, sink: &mut Sink<'_>) -> anyhow::Result<()> {
        let keys = self.keys.get(&window.name).context("a window of no keys")?.clone();
        for key in keys {
            let shown = || String::from_utf8_lossy(&key).into_owned();
            self.read_key(&key, sink).with_context(shown)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_server_says_of_a_key_is_understood() {
        let bytes = |text: &str| Answer::Bytes(text.as_bytes().to_vec());
        let pair = |a: &str, b: &str| Answer::Items(vec![bytes(a), bytes(b)]);
        let answer = Answer::Items(vec![
            Answer::Done("totalSamples".to_string()),
            Answer::Int(2),
            bytes("retentionTime"),
            Answer::Int(1000),
            bytes("duplicatePolicy"),
            Answer::Null,
            bytes("labels"),
            Answer::Items(vec![pair("city", "Cusco"), pair("none", "")]),
            bytes("rules"),
            Answer::Items(vec![Answer::Items(Vec::new())]),
        ]);
        let about = about_of(answer).unwrap();
        assert_eq!((about.samples, about.retention_ms, about.rules), (2, 1000, 1));
        let labels = labels_of(b"temp:1", &about.labels).unwrap();
        assert_eq!(labels, Labels::from_pairs(&[("__name__", "temp:1"), ("city", "Cusco")]));
        assert!(labels_of(b"\xff", &[]).is_err());
        let sample = Answer::Items(vec![Answer::Int(5), Answer::Done("-1.5".to_string())]);
        let samples = samples_of(Answer::Items(vec![sample])).unwrap();
        assert_eq!(samples, [MillisSample { millis: 5, value: -1.5 }]);
        assert!(samples_of(Answer::Items(vec![Answer::Null])).is_err());
    }
}
