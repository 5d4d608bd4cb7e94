//! Queries: rollups over samples that lie ready, and a whole query over a part of the store.

use crate::hosts::{self, START_NS};
use crate::path::{HotPath, Pass};
use crate::paths::store;
use ::engine::{
    LabelSink, QueryOptions, SampleSink, SelectLimits, SeriesSet, Source, SourceError, StepRange,
    Value,
};
use ::store::Durability;
use model::{Labels, Matcher, TimeRange};
use std::ops::Range;

/// Series of a query.
const SERIES: usize = 64;
/// Samples of a series: an hour, one every ten seconds.
const SAMPLES: usize = 360;
/// Hosts in the store.
const HOSTS: u64 = 50;
/// Steps ten seconds apart in the store.
const STEPS: u64 = 120;

/// The paths of this file.
pub const PATHS: &[HotPath] = &[
    HotPath {
        name: "rate",
        unit: "series",
        about: "sum(rate(x[5m])) over an hour of samples every 10 s that lie ready, 60 steps",
        prepare: || over_ready_samples("sum(rate(x[5m]))"),
    },
    HotPath {
        name: "max-over-time",
        unit: "series",
        about: "sum(max_over_time(x[5m])) over the same",
        prepare: || over_ready_samples("sum(max_over_time(x[5m]))"),
    },
    HotPath {
        name: "query-part",
        unit: "query",
        about: "5 metrics of 8 hosts, maximum by minute: index, part, codec and engine together",
        prepare: query_part,
    },
];

/// Series with the same timestamps, in memory as a decoder leaves them.
struct Ready {
    labels: Vec<Labels>,
    times: Vec<i64>,
    values: Vec<f64>,
}

impl Ready {
    fn new() -> Ready {
        let labels = |idx: usize| {
            Labels::from_pairs(&[("__name__", "x".to_string()), ("i", idx.to_string())])
        };
        Ready {
            labels: (0..SERIES).map(labels).collect(),
            times: (0..SAMPLES as i64).map(|i| START_NS + 10_000_000_000 * i).collect(),
            // A counter that starts again half way.
            values: (0..SAMPLES).map(|i| (i * 3 % (SAMPLES * 3 / 2)) as f64).collect(),
        }
    }
}

impl Source for Ready {
    fn select(
        &self,
        _: &[Vec<Matcher>],
        _: TimeRange,
        _: &SelectLimits,
    ) -> Result<Box<dyn SeriesSet + '_>, SourceError> {
        Ok(Box::new(ReadySet(self)))
    }
}

struct ReadySet<'a>(&'a Ready);

impl SeriesSet for ReadySet<'_> {
    fn len(&self) -> usize {
        self.0.labels.len()
    }

    fn labels(&self, idx: usize) -> Result<Labels, SourceError> {
        Ok(self.0.labels[idx].clone())
    }

    fn read_labels(
        &self,
        range: Range<usize>,
        _: Option<&[&str]>,
        sink: &mut LabelSink<'_>,
    ) -> Result<(), SourceError> {
        for idx in range {
            sink(idx, self.0.labels[idx].clone());
        }
        Ok(())
    }

    fn read(&self, range: Range<usize>, sink: &mut SampleSink<'_>) -> Result<(), SourceError> {
        for idx in range {
            sink(idx, &self.0.times, &self.0.values);
        }
        Ok(())
    }
}

fn over_ready_samples(text: &'static str) -> Pass {
    let source = Ready::new();
    let start_ms = START_NS / 1_000_000 + 60_000;
    let range = StepRange { start_ms, end_ms: start_ms + 59 * 60_000, step_ms: 60_000 };
    let options = QueryOptions::default();
    Pass::new(SERIES, move || {
        let result = ::engine::range(&source, text, range, &options).expect("a good query");
        assert!(matches!(result.value, Value::Matrix(_)));
    })
}

fn query_part() -> Pass {
    let store = store::open();
    let batch = store::decode(&store, hosts::lines(HOSTS, STEPS));
    store.append(&batch, Durability::Synced).expect("room");
    store.flush().expect("room");
    let wanted: Vec<String> = (0..8).map(|idx| format!("host_{}", idx * 5)).collect();
    let text = format!(
        "max(max_over_time({{__name__=~\"cpu_usage_(user|system|idle|nice|iowait)\",\
         hostname=~\"{}\"}}[1m])) by (__name__)",
        wanted.join("|")
    );
    let start_ms = START_NS / 1_000_000 + 60_000;
    let range = StepRange { start_ms, end_ms: start_ms + 18 * 60_000, step_ms: 60_000 };
    let options = QueryOptions::default();
    Pass::new(1, move || {
        let result = ::engine::range(store.as_ref(), &text, range, &options).expect("a good query");
        assert_eq!(result.stats.series, 5 * 8);
    })
}
