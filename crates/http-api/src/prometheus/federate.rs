//! `/federate`: the newest sample of each series as exposition text.
//!
//! The answer is what a server that scrapes it expects: names are escaped unless its `Accept` header
//! has `escaping=allow-utf-8`, a series without `instance` has an empty one, because the scraping
//! server adds its target's otherwise, and series without a name are left out.
//!
//! A series whose newest sample is a native histogram is left out, as the text cannot say it. If something
//! cannot be read the answer is 503, as a scraping server reads no headers; `deny_partial_response=0` takes
//! what there is.

use crate::http::answer::Answer;
use crate::http::answer::PIECE_SIZE;
use crate::http::partial::Partial;
use crate::http::request::Request;
use crate::http::request::selection;
use app::App;
use cli::quantity::format_size;
use hyper::header::ACCEPT;
use model::{Labels, Metadata, TimeRange, Timestamp, is_stale_marker};
use net::failure::Failure;
use std::io::{self, Write};
use std::sync::Arc;
use store::Selection;
use wire::exposition::Format;
use wire::exposition::encode::{push_family, push_point, push_series};
use wire::exposition::escaping::{NameEscaping, negotiate};
use wire::params;

/// Label that a scraping server adds to series without it.
const INSTANCE: &str = "instance";

/// The newest sample of a series.
struct Newest {
    labels: Labels,
    timestamp: Timestamp,
    value: f64,
}

/// `/federate?match[]=...&max_lookback=...&start=...&end=...`
pub fn federate(app: &Arc<App>, request: &Request) -> Result<Answer, Failure> {
    let sets = selection::required_matcher_sets(app, request)?;
    let lookback = match request.params.filled("max_lookback") {
        None => app.config.query.lookback.as_nanos() as i64,
        Some(text) => {
            params::parse_duration(text).map_err(|e| selection::invalid("max_lookback", &e))?
        }
    };
    let end = selection::time(request, "end")?.unwrap_or(request.now);
    let start = selection::time(request, "start")?.unwrap_or(end.saturating_sub(lookback));
    if end < start {
        return Err(selection::invalid("end", &"end timestamp must not be before start time"));
    }
    let range = TimeRange::new(start, end);
    let limits = selection::limits(app, request)?;
    let partial = Partial::of_mute_format(app, request)?;
    let selected = partial.noting(app).select(&sets, range, &limits)?;
    let mut found = newest(&selected, selection::memory_max(app))?;
    found.sort_by(|a, b| {
        (a.labels.metric_name(), &a.labels).cmp(&(b.labels.metric_name(), &b.labels))
    });
    let format = negotiate(request.header(ACCEPT), &[Format::Text]);
    let write = move |out: &mut dyn Write| write(out, &found, format.escaping);
    partial.finish(app, Answer::stream(format.content_type(), Box::new(write)))
}

/// The newest samples of the series that have one, in at most so many bytes of memory.
fn newest(
    selected: &Selection,
    (size_max, limit): (u64, engine::Limit),
) -> Result<Vec<Newest>, Failure> {
    let (mut found, mut size) = (Vec::new(), selected.memory_size() as u64);
    let mut failed = None;
    for start in (0..selected.len()).step_by(selected.batch_len()) {
        let batch = start..selected.len().min(start + selected.batch_len());
        selected.read_mixed(batch, &mut |idx, times, values, histogram_times, _| {
            if let (Some(time), Some(value)) = (times.last(), values.last())
                && !is_stale_marker(*value)
                && histogram_times.last() < Some(time)
            {
                match selected.labels(idx) {
                    Ok(labels) => {
                        size += (size_of::<Newest>() + labels.as_bytes().len()) as u64;
                        found.push(Newest { labels, timestamp: *time, value: *value });
                    }
                    Err(error) => failed = Some(error),
                }
            }
        })?;
        if let Some(error) = failed.take() {
            return Err(error.into());
        }
        if size_max < size {
            let flag = limit.flag();
            let message = format!(
                "the answer holds {}, the limit is {} ({flag}). Select fewer series, or raise \
                     --{flag}",
                format_size(size),
                format_size(size_max)
            );
            return Err(Failure::limited(limit.into(), message));
        }
    }
    Ok(found)
}

fn write(out: &mut dyn Write, found: &[Newest], escaping: NameEscaping) -> io::Result<()> {
    let mut buffer = Vec::with_capacity(2 * PIECE_SIZE);
    let mut family = String::new();
    let named = found.iter().filter(|one| !one.labels.metric_name().is_empty());
    for Newest { labels, timestamp, value } in named {
        let labels = escaping.escape_labels(labels);
        if family != labels.metric_name() {
            family = labels.metric_name().to_string();
            // A series says nothing of its kind once it is taken out of its family.
            let metadata = Metadata { metric: family.clone(), ..Metadata::default() };
            push_family(&mut buffer, &metadata, Format::Text);
        }
        push_series(&mut buffer, &labels);
        if labels.get(INSTANCE).is_none() {
            // Behind all others, as Prometheus writes it.
            let separator = if buffer.pop_if(|last| *last == b'}').is_some() { ',' } else { '{' };
            buffer.extend_from_slice(format!("{separator}{INSTANCE}=\"\"}}").as_bytes());
        }
        push_point(&mut buffer, *value, Some(*timestamp), Format::Text);
        if PIECE_SIZE <= buffer.len() {
            out.write_all(&buffer)?;
            buffer.clear();
        }
    }
    out.write_all(&buffer)
}
