//! `/federate`: the newest sample of each series as exposition text.
//!
//! A series whose newest sample is a native histogram is left out, as the text cannot say it; that
//! something could not be read is said in a header.

use crate::app::App;
use crate::doors::http::answer::Answer;
use crate::doors::http::answer::PIECE_SIZE;
use crate::doors::http::partial::Partial;
use crate::doors::http::request::Request;
use crate::doors::http::selection;
use crate::failure::Failure;
use model::{Labels, Metadata, TimeRange, Timestamp, is_stale_marker};
use std::io::{self, Write};
use std::sync::Arc;
use wire::exposition::Format;
use wire::exposition::encode::{content_type, push_family, push_sample};
use wire::params;

/// The newest sample of a series.
struct Newest {
    labels: Labels,
    timestamp: Timestamp,
    value: f64,
}

/// `/federate?match[]=...&max_lookback=...`
pub fn federate(app: &Arc<App>, request: &Request) -> Result<Answer, Failure> {
    let sets = selection::required_matcher_sets(request)?;
    let lookback = match request.params.filled("max_lookback") {
        None => app.config.query.lookback.as_nanos() as i64,
        Some(text) => {
            params::parse_duration(text).map_err(|e| selection::invalid("max_lookback", &e))?
        }
    };
    let range = TimeRange::new(request.now.saturating_sub(lookback), request.now);
    let limits = selection::limits(app, request)?;
    let partial = Partial::of(app, request)?;
    let selected = partial.noting(app).select(&sets, range, &limits)?;
    let mut found = Vec::new();
    let mut failed = None;
    selected.read_mixed(0..selected.len(), &mut |idx, times, values, histogram_times, _| {
        if let (Some(time), Some(value)) = (times.last(), values.last())
            && !is_stale_marker(*value)
            && histogram_times.last() < Some(time)
        {
            match selected.labels(idx) {
                Ok(labels) => found.push(Newest { labels, timestamp: *time, value: *value }),
                Err(error) => failed = Some(error),
            }
        }
    })?;
    if let Some(error) = failed {
        return Err(error.into());
    }
    found.sort_by(|a, b| {
        (a.labels.metric_name(), &a.labels).cmp(&(b.labels.metric_name(), &b.labels))
    });
    let write = move |out: &mut dyn Write| write(out, &found);
    partial.finish(app, Answer::stream(content_type(Format::Text), Box::new(write)))
}

fn write(out: &mut dyn Write, found: &[Newest]) -> io::Result<()> {
    let mut buffer = Vec::with_capacity(2 * PIECE_SIZE);
    let mut family = None;
    for Newest { labels, timestamp, value } in found {
        let metric = labels.metric_name();
        if family != Some(metric) {
            // A series says nothing of its kind once it is taken out of its family.
            let metadata = Metadata { metric: metric.to_string(), ..Metadata::default() };
            push_family(&mut buffer, &metadata, Format::Text);
            family = Some(metric);
        }
        push_sample(&mut buffer, labels, *value, Some(*timestamp), Format::Text);
        if PIECE_SIZE <= buffer.len() {
            out.write_all(&buffer)?;
            buffer.clear();
        }
    }
    out.write_all(&buffer)
}
