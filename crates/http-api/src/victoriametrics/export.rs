//! `/api/v1/export`: raw samples, as JSON lines, exposition text, an answer of Prometheus' API, CSV or
//! VictoriaMetrics' native blocks, streamed series by series.
//!
//! Text, CSV and native blocks cannot say native histograms: these are left out, and a header says so. What could not
//! be read is said in a header, too, when it is known before the body, and in the notes of an answer of
//! Prometheus' API; a body of another format breaks off where it is found later. In any case it is counted.

use super::csv::Columns;
use super::export_millis::MilliTimes;
use super::export_starts::{SeriesStarts, Starts};
use super::strings::Strings;
use crate::http::answer::PIECE_SIZE;
use crate::http::answer::{Answer, JSON};
use crate::http::partial::Partial;
use crate::http::request::Request;
use crate::http::request::selection;
use app::App;
use histogram::Histogram;
use model::Labels;
use model::sample::NANOS_PER_MILLI;
use net::failure::Failure;
use std::io::{self, Write};
use std::ops::Range;
use std::sync::Arc;
use store::Selection;
use wire::exposition::Format;
use wire::exposition::encode::{content_type, push_sample};
use wire::json_lines::{LineWriter, Times};
use wire::params;
use wire::prom_json::{self, Notes, ResultKind};
use wire::remote_write::encode::MillisSample;
use wire::vm_native::encode::{Heads, push_head, push_series};

/// What answers carry that had to leave something out, and what it was.
const LEFT_OUT: (&str, &str) = ("x-quipu-left-out", "native-histograms");

/// Series read at once: the store gathers their samples together.
const SERIES_PER_READ: usize = 128;

/// How samples are written.
enum Shape {
    Lines(LineWriter, TimeUnit),
    Text,
    Csv(Columns),
    /// Blocks; before them the first and the last time, in milliseconds.
    Native(Heads, (i64, i64)),
    /// A matrix of Prometheus' API; `None` before its beginning.
    Matrix(Option<prom_json::Answer>),
}

/// Unit of times in JSON lines.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TimeUnit {
    /// Milliseconds, with decimals where a time has nanoseconds.
    Nanoseconds,
    /// Whole milliseconds.
    Milliseconds,
}

impl TimeUnit {
    /// The unit that `time` names.
    fn of(request: &Request) -> Result<TimeUnit, Failure> {
        match request.params.filled("time") {
            None | Some("ns") => Ok(TimeUnit::Nanoseconds),
            Some("ms") => Ok(TimeUnit::Milliseconds),
            // The instant of a query, which exports ignore.
            Some(text) if params::parse_time(text, request.now).is_ok() => {
                Ok(TimeUnit::Nanoseconds)
            }
            Some(_) => Err(selection::invalid("time", &"use ms or ns")),
        }
    }
}

/// `/api/v1/export?match[]=...&start=...&end=...&format=...&max_rows_per_line=...`
pub fn export(app: &Arc<App>, request: &Request) -> Result<Answer, Failure> {
    let (content_type, shape) = shape(request)?;
    if !matches!(shape, Shape::Lines(..)) && TimeUnit::of(request)? == TimeUnit::Milliseconds {
        return Err(selection::invalid("time", &"JSON lines alone have it"));
    }
    answer(app, request, content_type, shape)
}

/// `/api/v1/export/csv?match[]=...&format=...`
pub fn csv(app: &Arc<App>, request: &Request) -> Result<Answer, Failure> {
    let columns = Columns::parse(request.params.get("format").unwrap_or(""))?;
    answer(app, request, "text/csv; charset=utf-8", Shape::Csv(columns))
}

/// `/api/v1/export/native?match[]=...&format=...`
pub fn native(app: &Arc<App>, request: &Request) -> Result<Answer, Failure> {
    let heads = match request.params.filled("format") {
        None => Heads::Current,
        Some("older") => Heads::Older,
        Some(_) => {
            let words = "say older for VictoriaMetrics before 1.82, or nothing";
            return Err(selection::invalid("format", &words));
        }
    };
    let range = selection::time_range(request)?;
    let millis = |time: i64| time.div_euclid(NANOS_PER_MILLI);
    let shape = Shape::Native(heads, (millis(range.start), millis(range.end)));
    answer(app, request, "VictoriaMetrics/native", shape)
}

fn answer(
    app: &Arc<App>,
    request: &Request,
    content_type: &'static str,
    shape: Shape,
) -> Result<Answer, Failure> {
    let sets = selection::required_listing_sets(app, request)?;
    let range = selection::time_range(request)?;
    // Exports may take as long as their client reads, unless it says how long.
    let limits = match request.params.filled("timeout") {
        Some(_) => selection::limits(app, request)?,
        None => selection::limits_without_deadline(app, request)?,
    };
    let partial = Partial::of(app, request)?;
    let selection = partial.noting(app).select(&sets, range, &limits)?;
    partial.check()?;
    let starts = match shape {
        Shape::Lines(..) => Starts::find(app, &partial, &sets, range, &limits)?,
        _ => None,
    };
    let strings = match (&shape, request.params.filled("strings")) {
        (Shape::Lines(_, unit), Some("1" | "only")) => {
            Strings::find(app, &partial, &sets, range, &limits)?.map(|found| found.timed(*unit))
        }
        (_, None) => None,
        _ => return Err(selection::invalid("strings", &"say 1 or only, of JSON lines")),
    };
    let is_of_strings_alone = request.params.filled("strings") == Some("only");
    let leaves_out = selection.has_histograms() && !shape.can_say_histograms();
    if matches!(shape, Shape::Matrix(_)) {
        partial.tell_in_body();
    }
    let (of, app, partial) = (Arc::clone(app), Arc::clone(app), Arc::new(partial));
    let known = Arc::clone(&partial);
    let write = move |out: &mut dyn Write| {
        let (starts, strings) = (starts.as_ref(), strings.as_ref());
        let written = match is_of_strings_alone {
            true => Ok(()),
            false => {
                let check = || {
                    limits.check_interrupt().map_err(io::Error::other)?;
                    partial.check_stream()
                };
                write(out, (&selection, starts, strings), shape, (&partial, &check))
            }
        };
        let written = written.and_then(|()| strings.map_or(Ok(()), |strings| strings.write(out)));
        let written = written.and_then(|()| partial.check_stream());
        partial.count(&app);
        written
    };
    let answer = Answer::stream(content_type, Box::new(write));
    let answer = known.mark_stream(&of, &range, answer);
    Ok(if leaves_out { answer.with_header(LEFT_OUT.0, LEFT_OUT.1) } else { answer })
}

fn shape(request: &Request) -> Result<(&'static str, Shape), Failure> {
    match request.params.filled("format") {
        None | Some("jsonl") => {
            let rows = match request.params.filled("max_rows_per_line").map(str::parse) {
                None => 0,
                Some(Ok(rows)) => rows,
                Some(Err(_)) => {
                    return Err(selection::invalid("max_rows_per_line", &"must be a whole number"));
                }
            };
            let shape = Shape::Lines(LineWriter::new(rows), TimeUnit::of(request)?);
            Ok(("application/stream+json", shape))
        }
        Some("prometheus") => Ok((content_type(Format::Text), Shape::Text)),
        Some("promapi") => Ok((JSON, Shape::Matrix(None))),
        Some(_) => Err(selection::invalid("format", &"use jsonl, prometheus or promapi")),
    }
}

/// The samples of one series.
#[derive(Clone, Copy)]
struct Samples<'a> {
    times: &'a [i64],
    values: &'a [f64],
    histogram_times: &'a [i64],
    histograms: &'a [Histogram],
    /// Since when each of the values and of the histograms counts; empty where nobody asks.
    starts_ms: [&'a [i64]; 2],
}

impl Shape {
    fn can_say_histograms(&self) -> bool {
        matches!(self, Shape::Lines(..) | Shape::Matrix(_))
    }

    fn push(&mut self, out: &mut Vec<u8>, labels: &Labels, samples: Samples<'_>) {
        let Samples { times, values, histogram_times, histograms, .. } = samples;
        match self {
            Shape::Lines(writer, TimeUnit::Nanoseconds) => push_lines(writer, out, labels, samples),
            Shape::Lines(writer, TimeUnit::Milliseconds) => {
                push_milli_lines(writer, out, labels, samples);
            }
            Shape::Csv(columns) => columns.push_series(out, labels, times, values),
            Shape::Native(heads, _) => {
                push_series(out, *heads, labels, &to_millis(times, values));
            }
            Shape::Text => {
                for (time, value) in times.iter().zip(values) {
                    push_sample(out, labels, *value, Some(*time), Format::Text);
                }
            }
            Shape::Matrix(answer) => {
                let answer = begin(answer, out);
                answer.series(out, labels);
                for (time, value) in times.iter().zip(values) {
                    answer.point(out, time.div_euclid(NANOS_PER_MILLI), *value);
                }
                for (time, histogram) in histogram_times.iter().zip(histograms) {
                    answer.histogram(out, time.div_euclid(NANOS_PER_MILLI), histogram);
                }
            }
        }
    }

    /// Appends what stands before all series.
    fn begin(&self, out: &mut Vec<u8>) {
        if let Shape::Native(_, (first_ms, last_ms)) = self {
            push_head(out, *first_ms, *last_ms);
        }
    }

    fn end(self, out: &mut Vec<u8>, partial: &Partial) {
        if let Shape::Matrix(mut answer) = self {
            begin(&mut answer, out);
            if let Some(answer) = answer {
                let mut notes = Notes::default();
                partial.note(&mut notes);
                answer.end(out, &notes);
            }
        }
    }
}

/// Appends the lines of a series.
fn push_lines(writer: &LineWriter, out: &mut Vec<u8>, labels: &Labels, samples: Samples<'_>) {
    let Samples { times, values, histogram_times, histograms, starts_ms } = samples;
    let timed = Times { timestamps: times, starts_ms: starts_ms[0] };
    writer.push_series(out, labels, timed, values);
    let timed = Times { timestamps: histogram_times, starts_ms: starts_ms[1] };
    writer.push_histograms(out, labels, timed, histograms);
}

/// The same in whole milliseconds.
fn push_milli_lines(writer: &LineWriter, out: &mut Vec<u8>, labels: &Labels, samples: Samples<'_>) {
    let Samples { times, values, histogram_times, histograms, starts_ms } = samples;
    let numbers = MilliTimes::new(times, histogram_times);
    let of_histograms = MilliTimes::new(histogram_times, times);
    let starts = [numbers.pick(starts_ms[0]), of_histograms.pick(starts_ms[1])];
    let (values, histograms) = (numbers.pick(values), of_histograms.pick(histograms));
    let cut = Samples {
        times: &numbers.times,
        values: &values,
        histogram_times: &of_histograms.times,
        histograms: &histograms,
        starts_ms: [&starts[0], &starts[1]],
    };
    push_lines(writer, out, labels, cut);
}

/// Of one millisecond, the newest.
fn to_millis(times: &[i64], values: &[f64]) -> Vec<MillisSample> {
    let mut samples: Vec<MillisSample> = Vec::with_capacity(times.len());
    for (time, value) in times.iter().zip(values) {
        let sample = MillisSample { millis: time.div_euclid(NANOS_PER_MILLI), value: *value };
        samples.pop_if(|last| last.millis == sample.millis);
        samples.push(sample);
    }
    samples
}

fn begin<'a>(
    answer: &'a mut Option<prom_json::Answer>,
    out: &mut Vec<u8>,
) -> &'a mut prom_json::Answer {
    answer.get_or_insert_with(|| prom_json::Answer::begin(out, ResultKind::Matrix))
}

fn write(
    out: &mut dyn Write,
    (selection, starts, strings): (&Selection, Option<&Starts>, Option<&Strings>),
    shape: Shape,
    (partial, check): (&Partial, &dyn Fn() -> io::Result<()>),
) -> io::Result<()> {
    let mut buffer = Vec::with_capacity(2 * PIECE_SIZE);
    shape.begin(&mut buffer);
    let mut export = Export { selection, starts, strings, shape, buffer };
    for start in (0..selection.len()).step_by(SERIES_PER_READ) {
        let end = (start + SERIES_PER_READ).min(selection.len());
        export.write(out, start..end)?;
        check()?;
    }
    let Export { shape, mut buffer, .. } = export;
    shape.end(&mut buffer, partial);
    out.write_all(&buffer)
}

/// An export on its way.
struct Export<'a> {
    selection: &'a Selection,
    starts: Option<&'a Starts>,
    /// Series that are written as texts.
    strings: Option<&'a Strings>,
    shape: Shape,
    buffer: Vec<u8>,
}

impl Export<'_> {
    /// Writes some series: together, or one by one where some have start timestamps.
    fn write(&mut self, out: &mut dyn Write, range: Range<usize>) -> io::Result<()> {
        let labels = self.selection.labels_of(range.clone()).map_err(io::Error::other)?;
        let Some(starts) = self.starts.filter(|starts| starts.has_any(&labels)) else {
            return self.write_some(out, range.start, &labels, &SeriesStarts::default());
        };
        for (idx, labels) in labels.iter().enumerate() {
            let own = starts.read(labels).map_err(io::Error::other)?;
            self.write_some(out, range.start + idx, std::slice::from_ref(labels), &own)?;
        }
        Ok(())
    }

    /// Writes the series from `first` on that have these labels.
    fn write_some(
        &mut self,
        out: &mut dyn Write,
        first: usize,
        labels: &[Labels],
        starts: &SeriesStarts,
    ) -> io::Result<()> {
        let (shape, buffer, strings) = (&mut self.shape, &mut self.buffer, self.strings);
        // The sink cannot fail, so it remembers the first error and does nothing from then on.
        let mut written = Ok(());
        let read = self.selection.read_mixed(
            first..first + labels.len(),
            &mut |idx, times, values, histogram_times, histograms| {
                if written.is_err() || times.is_empty() && histogram_times.is_empty() {
                    return;
                }
                if strings.is_some_and(|strings| strings.has(&labels[idx - first])) {
                    return;
                }
                let (of_values, of_histograms) = (starts.at(times), starts.at(histogram_times));
                let starts_ms = [of_values.as_slice(), of_histograms.as_slice()];
                let samples = Samples { times, values, histogram_times, histograms, starts_ms };
                shape.push(buffer, &labels[idx - first], samples);
                if PIECE_SIZE <= buffer.len() {
                    written = out.write_all(buffer);
                    buffer.clear();
                }
            },
        );
        written?;
        read.map_err(io::Error::other)
    }
}
