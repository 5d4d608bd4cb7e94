//! `_created` lines of OpenMetrics: since when the samples of a metric count.
//!
//! ```text
//! # TYPE requests counter
//! requests_total{path="/"} 17                  ┐ one metric: lines of a family that follow each other
//! requests_created{path="/"} 1520430000.123    ┘ and differ in nothing but `le` and `quantile`
//!                            └─ since when each of the others counts; no sample
//! ```
//!
//! As Prometheus with `created-timestamp-zero-ingestion` they then make no series; without, as with
//! [`Created::Samples`], they are samples like any other. The text format knows no such lines.

use super::decode::{Format, Options, comment};
use super::keys::metric_of;
use crate::decoded::Growing;
use crate::narrow;
use model::start::START_MS_MAX;
use model::{MetricKind, StartRow};

/// What follows the family's name in names of such lines.
const CREATED: &str = "_created";
/// What follows it in names of its samples.
const SUFFIXES: [&str; 6] = ["", "_total", "_bucket", "_count", "_sum", CREATED];

/// What `_created` lines of OpenMetrics become.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Created {
    /// Samples of series of their own.
    #[default]
    Samples,
    /// The start timestamps of the samples beside them.
    Starts,
}

/// What a metric is called, and its labels but `le` and `quantile`.
type Metric = Vec<(String, String)>;

/// The metric whose lines are being read, and its `_created` line.
pub(super) struct CreatedLines {
    is_on: bool,
    /// The family's name, where its kind may have such lines.
    family: Option<String>,
    /// The labels of the metric; `None` between metrics.
    metric: Option<Metric>,
    /// Its first row.
    first_row: usize,
    /// What its line says, once it was read.
    created_ms: Option<i64>,
}

impl CreatedLines {
    /// For lines behind those of `before`, of an earlier batch.
    pub fn new(options: &Options, before: &[u8]) -> CreatedLines {
        let is_on = options.created == Created::Starts && options.format == Format::OpenMetrics;
        let family = if is_on { family_at_end(before) } else { None };
        CreatedLines { is_on, family, metric: None, first_row: 0, created_ms: None }
    }

    /// Notes that lines of a family come now.
    pub fn begin_family(&mut self, name: &str, kind: MetricKind, grown: &mut Growing) {
        if self.is_on {
            self.end_metric(grown);
            self.family = may_have_lines(kind).then(|| name.to_string());
        }
    }

    /// Looks at a sample's line; whether it is a `_created` line, which is no sample.
    pub fn takes(&mut self, key: &[u8], value: f64, grown: &mut Growing) -> bool {
        let Some(family) = &self.family else { return false };
        // What is wrong with a key is told when its series is made.
        let Ok((name, labels)) = metric_of(key) else { return false };
        let suffix = name.strip_prefix(family.as_str());
        if !suffix.is_some_and(|suffix| SUFFIXES.contains(&suffix)) {
            self.end_metric(grown);
            return false;
        }
        let is_created = suffix == Some(CREATED);
        if self.metric.as_ref() != Some(&labels) {
            self.end_metric(grown);
            (self.metric, self.first_row) = (Some(labels), grown.rows.len());
        }
        if is_created {
            self.created_ms = Some(millis(value).unwrap_or_default());
        }
        is_created
    }

    /// Whether a line is of the metric that is being read.
    pub fn has_begun(&self, line: &[u8]) -> bool {
        let key_end = super::scan::key_end(line.trim_ascii_start());
        let key = key_end.ok().and_then(|end| line.trim_ascii_start().get(..end));
        let metric = key.and_then(|key| metric_of(key).ok());
        self.metric.is_some() && self.metric == metric.map(|(_, labels)| labels)
    }

    /// Gives the metric's samples what its line said.
    pub fn end_metric(&mut self, grown: &mut Growing) {
        if self.metric.take().is_none() {
            return;
        }
        let Some(start_ms) = self.created_ms.take() else { return };
        let rows = grown.rows.get(self.first_row..).unwrap_or_default();
        if start_ms == 0 || rows.is_empty() {
            // Said of nothing, or nothing that can be kept.
            grown.counts.created_timestamps += 1;
            return;
        }
        grown.starts.extend(rows.iter().map(|row| StartRow {
            timestamp: row.timestamp,
            start_ms,
            key_offset: row.key_offset,
            key_size: row.key_size,
            position: row.position,
        }));
    }
}

/// Gauges count nothing, and nobody knows what the others are.
fn may_have_lines(kind: MetricKind) -> bool {
    matches!(kind, MetricKind::Counter | MetricKind::Histogram | MetricKind::Summary)
}

/// The family that lines behind `before` belong to.
fn family_at_end(before: &[u8]) -> Option<String> {
    let mut lines = before.rsplit(|byte| *byte == b'\n').map(<[u8]>::trim_ascii);
    lines.find_map(|line| match comment(line) {
        Some(("TYPE", name, kind)) => {
            Some(may_have_lines(MetricKind::parse(kind)).then(|| name.into_owned()))
        }
        _ => None,
    })?
}

/// Seconds to whole milliseconds; `None` for what the store does not keep exactly.
fn millis(seconds: f64) -> Option<i64> {
    let millis = (seconds * 1000.0).round();
    (millis.abs() <= START_MS_MAX as f64).then(|| narrow::whole(millis))
}
