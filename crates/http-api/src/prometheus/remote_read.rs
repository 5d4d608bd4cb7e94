//! Prometheus remote read: raw samples of the series that match, as one message or as a stream.
//!
//! ```text
//! request > select each query > sort its series by labels ─┬─► SAMPLES: one message, snappy
//!                                                          └─► STREAMED_XOR_CHUNKS: frames as read
//! ```
//!
//! One message is whole in memory, so query.max-samples and query.max-memory bound it. A stream
//! holds a series at a time, and the selections and the labels of all, which query.max-memory bounds, as readers merge it with their own sorted series.
//! The format has no place for what could not be read, and clients read no headers: the answer is 503 then, or
//! the stream breaks off. `deny_partial_response=0` in the address takes what there is.

use crate::http::answer::{Answer, PIECE_SIZE};
use crate::http::partial::Partial;
use crate::http::request::Request;
use crate::http::request::{selection, unpack};
use app::App;
use cli::quantity::format_size;
use hyper::StatusCode;
use model::{Labels, TimeRange};
use net::failure::{Failure, Kind};
use net::telemetry::Limit;
use std::io::{self, Write};
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use store::{SelectLimits, Selection};
use wire::compression::snappy;
use wire::remote_read::{
    CHUNKS_TYPE, FrameWriter, Mixed, ReadQuery, ReadRequest, ResponseType, SAMPLES_TYPE,
    SamplesMessage,
};

/// Series read at once where they stand together in the store too.
const SERIES_PER_READ: usize = 128;
/// Copies of an answer of one message that are in memory at a time: a query's, the message's, the
/// compressed one.
const MESSAGE_COPIES: u64 = 3;
/// Bytes of one message: more than snappy can say.
const MESSAGE_SIZE_MAX: u64 = u32::MAX as u64;

/// The series of one query, by labels.
struct Selected {
    selection: Selection,
    /// With their place in the selection.
    series: Vec<(Labels, usize)>,
}

/// `POST /api/v1/read`
pub fn read(app: &Arc<App>, request: &Request) -> Result<Answer, Failure> {
    let body = unpack::remote_write_body(app, request)?;
    let decoded = ReadRequest::decode(&body);
    body.give_back(app);
    let ReadRequest { queries, response } = decoded?;
    match response {
        ResponseType::Samples => samples(app, request, &queries),
        ResponseType::StreamedXorChunks => chunks(app, request, &queries),
    }
}

fn samples(app: &App, request: &Request, queries: &[ReadQuery]) -> Result<Answer, Failure> {
    let limits = selection::limits(app, request)?;
    let mut budget = Budget::new(app);
    budget.bytes_max = budget.bytes_max.min(MESSAGE_COPIES * MESSAGE_SIZE_MAX);
    let mut message = SamplesMessage::new();
    let partial = Partial::of_mute_format(app, request)?;
    for query in queries {
        budget.bytes = MESSAGE_COPIES * message.size() as u64;
        let selected = select(app, query, &limits, &mut budget, &partial)?;
        let selected_size = budget.bytes - MESSAGE_COPIES * message.size() as u64;
        let mut failure = None;
        let read = selected.read(&mut |labels, mixed| {
            message.mixed_series(labels, mixed);
            budget.samples += mixed.len() as u64;
            budget.bytes = selected_size + MESSAGE_COPIES * message.size() as u64;
            let allowed = match request.cancelled.load(Relaxed) {
                true => Err(gone()),
                false => budget.check(),
            };
            allowed.map_err(|why| {
                failure = Some(why);
                io::Error::other("the answer is not wanted any more")
            })
        });
        read.map_err(|error| failure.unwrap_or_else(|| error.into()))?;
        message.end_query();
    }
    let answer = Answer::bytes(StatusCode::OK, SAMPLES_TYPE, snappy(&message.finish()));
    partial.finish(app, answer.with_header("content-encoding", "snappy"))
}

/// Nobody reads it.
fn gone() -> Failure {
    Failure::new(Kind::Canceled, "the client went away")
}

fn chunks(app: &Arc<App>, request: &Request, queries: &[ReadQuery]) -> Result<Answer, Failure> {
    let limits = selection::limits(app, request)?;
    // All selections come first, so that what is wrong with one still has a status.
    let mut budget = Budget::new(app);
    let partial = Arc::new(Partial::of_mute_format(app, request)?);
    // A stream may take as long as its client reads; only its selections have a deadline.
    let select = |query| Ok(select(app, query, &limits, &mut budget, &partial)?.without_deadline());
    let selected: Result<Vec<Selected>, Failure> = queries.iter().map(select).collect();
    let selected = selected?;
    partial.check()?;
    let starts = queries.iter().map(|query| query.range.start);
    let ends = queries.iter().map(|query| query.range.end);
    let range = TimeRange::new(starts.min().unwrap_or(0), ends.max().unwrap_or(0));
    let (of, app, known) = (Arc::clone(app), Arc::clone(app), Arc::clone(&partial));
    let write = move |out: &mut dyn Write| {
        let (mut buffer, mut frames) = (Vec::with_capacity(2 * PIECE_SIZE), FrameWriter::new());
        for (query_idx, selected) in selected.iter().enumerate() {
            selected.read(&mut |labels, mixed| {
                frames.mixed_series(&mut buffer, query_idx, labels, mixed);
                if PIECE_SIZE <= buffer.len() {
                    out.write_all(&buffer)?;
                    buffer.clear();
                }
                partial.check_stream()
            })?;
        }
        partial.count(&app);
        partial.check_stream()?;
        out.write_all(&buffer)
    };
    Ok(known.mark_stream(&of, &range, Answer::stream(CHUNKS_TYPE, Box::new(write))))
}

/// Selects a query's series; their labels count against the budget.
fn select(
    app: &App,
    query: &ReadQuery,
    limits: &SelectLimits,
    budget: &mut Budget,
    partial: &Partial,
) -> Result<Selected, Failure> {
    let sets = std::slice::from_ref(&query.matchers);
    let selection = partial.noting(app).select(sets, query.range, limits)?;
    budget.bytes += selection.memory_size() as u64;
    budget.check()?;
    let mut series = Vec::with_capacity(selection.len());
    for start in (0..selection.len()).step_by(SERIES_PER_READ) {
        let end = selection.len().min(start + SERIES_PER_READ);
        for (labels, idx) in selection.labels_of(start..end)?.into_iter().zip(start..) {
            budget.bytes += (size_of::<(Labels, usize)>() + labels.as_bytes().len()) as u64;
            series.push((labels, idx));
        }
        budget.check()?;
    }
    series.sort_unstable_by(|(a, _), (b, _)| a.cmp(b));
    Ok(Selected { selection, series })
}

/// Takes a series' labels and samples.
type SeriesSink<'a> = dyn FnMut(&Labels, &Mixed<'_>) -> io::Result<()> + 'a;

impl Selected {
    fn without_deadline(self) -> Selected {
        Selected { selection: self.selection.without_deadline(), ..self }
    }

    /// Hands on every series that has samples, in the order of labels, until the sink fails.
    fn read(&self, sink: &mut SeriesSink<'_>) -> io::Result<()> {
        let mut rest = self.series.as_slice();
        while let Some((_, first)) = rest.first() {
            let is_next = |(at, (_, idx)): &(usize, &(Labels, usize))| first + at == *idx;
            let count = rest.iter().enumerate().take(SERIES_PER_READ).take_while(is_next).count();
            let (run, others) = rest.split_at(count);
            rest = others;
            // The store's sink cannot fail, so the first error is kept and the rest passed over.
            let mut written = Ok(());
            let range = *first..first + count;
            let read = self.selection.read_mixed(
                range,
                &mut |idx, timestamps, values, histogram_timestamps, histograms| {
                    let mixed = Mixed { timestamps, values, histogram_timestamps, histograms };
                    if written.is_ok() && !mixed.is_empty() {
                        written = sink(&run[idx - first].0, &mixed);
                    }
                },
            );
            written?;
            read.map_err(io::Error::other)?;
        }
        Ok(())
    }
}

/// What an answer may hold, and what it does.
struct Budget {
    samples: u64,
    samples_max: u64,
    bytes: u64,
    bytes_max: u64,
    /// Which limit `bytes_max` is.
    memory: engine::Limit,
}

impl Budget {
    fn new(app: &App) -> Budget {
        let (bytes_max, memory) = selection::memory_max(app);
        let samples_max = app.config.query.samples_max as u64;
        Budget { samples: 0, samples_max, bytes: 0, bytes_max, memory }
    }

    fn check(&self) -> Result<(), Failure> {
        let Budget { samples, samples_max, bytes, bytes_max, memory } = self;
        if samples_max < samples {
            let message = format!(
                "the answer has more than {samples_max} samples (query.max-samples); \
                 accept STREAMED_XOR_CHUNKS, which has no such limit"
            );
            return Err(Failure::limited(Limit::QuerySamples, message));
        }
        if bytes_max < bytes {
            let flag = memory.flag();
            let message = format!(
                "the answer holds {}, the limit is {} ({flag}). Select fewer series or a shorter \
                     range, or raise --{flag}",
                format_size(*bytes),
                format_size(*bytes_max)
            );
            return Err(Failure::limited((*memory).into(), message));
        }
        Ok(())
    }
}
