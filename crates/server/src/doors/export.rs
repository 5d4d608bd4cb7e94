//! `/api/v1/export`: raw samples, as JSON lines or as exposition text, streamed series by series.

use super::answer::{Answer, Failure};
use super::prometheus::PIECE_SIZE;
use super::request::Request;
use super::selection;
use crate::app::App;
use model::Labels;
use std::io::{self, Write};
use std::sync::Arc;
use store::Selection;
use wire::exposition::Format;
use wire::exposition::encode::{content_type, push_sample};
use wire::json_lines::LineWriter;

/// Series read at once: the store gathers their samples together.
const SERIES_PER_READ: usize = 128;

/// Appends one series to the answer.
type PushSeries = Box<dyn Fn(&mut Vec<u8>, &Labels, &[i64], &[f64]) + Send>;

/// `/api/v1/export?match[]=...&start=...&end=...&format=...&max_rows_per_line=...`
pub fn json_lines(app: &Arc<App>, request: &Request) -> Result<Answer, Failure> {
    let sets = selection::required_listing_sets(request)?;
    let range = selection::time_range(request)?;
    let (content_type, push) = format(request)?;
    // Exports may take as long as their client reads; only the selection has a deadline.
    let mut limits = selection::limits(app, request)?;
    limits.deadline = None;
    let selection = app.store.select(&sets, range, &limits)?;
    let write = move |out: &mut dyn Write| write(out, &selection, &push);
    Ok(Answer::stream(content_type, Box::new(write)))
}

fn format(request: &Request) -> Result<(&'static str, PushSeries), Failure> {
    match request.params.filled("format") {
        None | Some("jsonl") => {
            let rows = match request.params.filled("max_rows_per_line").map(str::parse) {
                None => 0,
                Some(Ok(rows)) => rows,
                Some(Err(_)) => {
                    return Err(selection::invalid("max_rows_per_line", &"must be a whole number"));
                }
            };
            let writer = LineWriter::new(rows);
            let push: PushSeries = Box::new(move |out, labels, times, values| {
                writer.push_series(out, labels, times, values)
            });
            Ok(("application/stream+json", push))
        }
        Some("prometheus") => Ok((content_type(Format::Text), Box::new(push_text))),
        Some(_) => Err(selection::invalid("format", &"use jsonl or prometheus")),
    }
}

fn push_text(out: &mut Vec<u8>, labels: &Labels, times: &[i64], values: &[f64]) {
    for (time, value) in times.iter().zip(values) {
        push_sample(out, labels, *value, Some(*time), Format::Text);
    }
}

fn write(out: &mut dyn Write, selection: &Selection, push: &PushSeries) -> io::Result<()> {
    let mut buffer = Vec::with_capacity(2 * PIECE_SIZE);
    for start in (0..selection.len()).step_by(SERIES_PER_READ) {
        let end = (start + SERIES_PER_READ).min(selection.len());
        let labels = selection.labels_of(start..end).map_err(io::Error::other)?;
        // The sink cannot fail, so it remembers the first error and does nothing from then on.
        let mut written = Ok(());
        let read = selection.read(start..end, &mut |idx, times, values| {
            if written.is_err() || times.is_empty() {
                return;
            }
            push(&mut buffer, &labels[idx - start], times, values);
            if PIECE_SIZE <= buffer.len() {
                written = out.write_all(&buffer);
                buffer.clear();
            }
        });
        written?;
        read.map_err(io::Error::other)?;
    }
    out.write_all(&buffer)
}
