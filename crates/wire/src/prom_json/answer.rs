//! Envelopes of answers: success with vectors, matrices, scalars, strings and lists; errors.

use super::{
    SeriesExemplars, push_decimal, push_histogram, push_labels, push_millis, push_string,
    push_value,
};
use histogram::Histogram;
use model::Labels;

/// What a query returns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ResultKind {
    /// One sample a series.
    Vector,
    /// Many samples a series.
    Matrix,
}

/// What a query has to say besides its result.
#[derive(Clone, Debug, Default)]
pub struct Notes {
    /// The result may be wrong.
    pub warnings: Vec<String>,
    /// Something is missing from the result; the warnings say what. VictoriaMetrics' word and place.
    pub is_partial: bool,
    /// The query may be meant otherwise.
    pub infos: Vec<String>,
    /// What it cost, as JSON; empty when nobody asked.
    pub stats: String,
    /// Where its time went, as JSON; empty when nobody asked.
    pub trace: String,
}

/// Why a request failed: the word in `errorType`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ErrorKind {
    /// The request is wrong: 400.
    BadData,
    /// The query cannot be evaluated, or a limit is reached: 422.
    Execution,
    /// 503.
    Timeout,
    /// The client has gone: 499.
    Canceled,
    /// Ours: 500.
    Internal,
    /// Not now: 503.
    Unavailable,
    /// 404.
    NotFound,
    /// 406.
    NotAcceptable,
}

impl ErrorKind {
    /// Prometheus' word.
    pub fn as_str(self) -> &'static str {
        match self {
            ErrorKind::BadData => "bad_data",
            ErrorKind::Execution => "execution",
            ErrorKind::Timeout => "timeout",
            ErrorKind::Canceled => "canceled",
            ErrorKind::Internal => "internal",
            ErrorKind::Unavailable => "unavailable",
            ErrorKind::NotFound => "not_found",
            ErrorKind::NotAcceptable => "not_acceptable",
        }
    }

    /// The status that Prometheus answers with.
    pub fn http_status(self) -> u16 {
        match self {
            ErrorKind::BadData => 400,
            ErrorKind::Execution => 422,
            ErrorKind::Timeout | ErrorKind::Unavailable => 503,
            ErrorKind::Canceled => 499,
            ErrorKind::Internal => 500,
            ErrorKind::NotFound => 404,
            ErrorKind::NotAcceptable => 406,
        }
    }
}

/// Where a matrix' series stands.
#[derive(Clone, Copy, PartialEq, Eq)]
enum SeriesState {
    /// No series yet.
    Empty,
    /// Behind a complete series.
    Between,
    /// In a series behind its labels.
    SeriesStart,
    /// In a series behind a point.
    InSeries,
    /// In a series behind a histogram.
    InHistograms,
}

/// A success with a vector or a matrix, written series by series.
pub struct Answer {
    state: SeriesState,
    moments: Moments,
}

/// The times of the first points of a series as text: most often those of the next series too.
#[derive(Default)]
struct Moments {
    known: Vec<Moment>,
    /// How many points the series has so far.
    next: usize,
}

/// Milliseconds and the text of a point up to its value.
struct Moment {
    millis: i64,
    text: [u8; MOMENT_SIZE_MAX],
    size: usize,
}

/// The longest text of a moment: `[-9223372036854775.808,"` has 24 bytes.
const MOMENT_SIZE_MAX: usize = 24;
/// Moments kept: a hundred kilobytes.
const MOMENTS_MAX: usize = 2048;

impl Moments {
    /// Appends the text of the series' next point up to its value.
    #[inline]
    fn push(&mut self, out: &mut Vec<u8>, millis: i64) {
        let idx = self.next;
        self.next += 1;
        match self.known.get(idx) {
            Some(moment) if moment.millis == millis => {
                // A copy of a known length needs no call; what is too much is cut off again.
                let end = out.len() + moment.size;
                out.extend_from_slice(&moment.text);
                out.truncate(end);
            }
            _ => self.push_new(out, idx, millis),
        }
    }

    #[cold]
    fn push_new(&mut self, out: &mut Vec<u8>, idx: usize, millis: i64) {
        let start = out.len();
        push_point_start(out, millis);
        let written = out.get(start..).unwrap_or_default();
        let mut moment = Moment { millis, text: [0; MOMENT_SIZE_MAX], size: written.len() };
        for (to, from) in moment.text.iter_mut().zip(written) {
            *to = *from;
        }
        match self.known.get_mut(idx) {
            Some(known) => *known = moment,
            None if idx < MOMENTS_MAX => self.known.push(moment),
            None => {}
        }
    }
}

impl Answer {
    /// Opens the answer.
    pub fn begin(out: &mut Vec<u8>, kind: ResultKind) -> Answer {
        let kind = match kind {
            ResultKind::Vector => "vector",
            ResultKind::Matrix => "matrix",
        };
        out.extend_from_slice(b"{\"status\":\"success\",\"data\":{\"resultType\":\"");
        out.extend_from_slice(kind.as_bytes());
        out.extend_from_slice(b"\",\"result\":[");
        Answer { state: SeriesState::Empty, moments: Moments::default() }
    }

    /// One sample of a vector.
    pub fn vector_sample(&mut self, out: &mut Vec<u8>, labels: &Labels, millis: i64, value: f64) {
        self.open_metric(out, labels);
        out.extend_from_slice(b",\"value\":");
        push_point(out, millis, value);
        out.push(b'}');
        self.state = SeriesState::Between;
    }

    /// One sample of a vector that is a histogram.
    pub fn vector_histogram(
        &mut self,
        out: &mut Vec<u8>,
        labels: &Labels,
        millis: i64,
        histogram: &Histogram,
    ) {
        self.open_metric(out, labels);
        out.extend_from_slice(b",\"histogram\":");
        push_histogram_point(out, millis, histogram);
        out.push(b'}');
        self.state = SeriesState::Between;
    }

    /// Opens a series of a matrix, closing the one before.
    pub fn series(&mut self, out: &mut Vec<u8>, labels: &Labels) {
        self.open_metric(out, labels);
        self.state = SeriesState::SeriesStart;
        self.moments.next = 0;
    }

    /// The next point of the series that is open; before any histogram.
    #[inline]
    pub fn point(&mut self, out: &mut Vec<u8>, millis: i64, value: f64) {
        debug_assert!(matches!(self.state, SeriesState::SeriesStart | SeriesState::InSeries));
        if self.state == SeriesState::InSeries {
            out.push(b',');
        } else {
            out.extend_from_slice(b",\"values\":[");
        }
        self.state = SeriesState::InSeries;
        self.moments.push(out, millis);
        push_value(out, value);
        out.extend_from_slice(b"\"]");
    }

    /// The next histogram of the series that is open.
    pub fn histogram(&mut self, out: &mut Vec<u8>, millis: i64, histogram: &Histogram) {
        out.extend_from_slice(match self.state {
            SeriesState::InHistograms => b",",
            SeriesState::InSeries => b"],\"histograms\":[",
            _ => b",\"histograms\":[",
        });
        self.state = SeriesState::InHistograms;
        push_histogram_point(out, millis, histogram);
    }

    /// Closes the answer.
    pub fn end(mut self, out: &mut Vec<u8>, notes: &Notes) {
        self.close_series(out);
        out.push(b']');
        end_data(out, notes);
        out.push(b'}');
    }

    fn open_metric(&mut self, out: &mut Vec<u8>, labels: &Labels) {
        self.close_series(out);
        if self.state != SeriesState::Empty {
            out.push(b',');
        }
        out.extend_from_slice(b"{\"metric\":");
        push_labels(out, labels);
    }

    fn close_series(&mut self, out: &mut Vec<u8>) {
        match self.state {
            SeriesState::Empty | SeriesState::Between => return,
            SeriesState::SeriesStart => out.extend_from_slice(b",\"values\":[]}"),
            SeriesState::InSeries | SeriesState::InHistograms => out.extend_from_slice(b"]}"),
        }
        self.state = SeriesState::Between;
    }
}

/// A success whose data are a list: label names, label values, series, or exemplars by series.
pub struct List {
    is_empty: bool,
}

impl List {
    /// Opens the answer.
    pub fn begin(out: &mut Vec<u8>) -> List {
        out.extend_from_slice(b"{\"status\":\"success\",\"data\":[");
        List { is_empty: true }
    }

    /// The next string.
    pub fn string(&mut self, out: &mut Vec<u8>, text: &str) {
        self.separate(out);
        push_string(out, text);
    }

    /// The next series.
    pub fn labels(&mut self, out: &mut Vec<u8>, labels: &Labels) {
        self.separate(out);
        push_labels(out, labels);
    }

    /// The next series with exemplars.
    pub fn exemplars(&mut self, out: &mut Vec<u8>, series: &Labels) -> SeriesExemplars {
        self.separate(out);
        SeriesExemplars::begin(out, series)
    }

    /// Closes the answer.
    pub fn end(self, out: &mut Vec<u8>, notes: &Notes) {
        out.push(b']');
        push_notes(out, notes);
        out.push(b'}');
    }

    fn separate(&mut self, out: &mut Vec<u8>) {
        if !self.is_empty {
            out.push(b',');
        }
        self.is_empty = false;
    }
}

/// Appends a whole answer with a scalar.
pub fn push_scalar(out: &mut Vec<u8>, millis: i64, value: f64, notes: &Notes) {
    out.extend_from_slice(
        b"{\"status\":\"success\",\"data\":{\"resultType\":\"scalar\",\"result\":",
    );
    push_point_start(out, millis);
    push_decimal(out, value);
    out.extend_from_slice(b"\"]");
    end_data(out, notes);
    out.push(b'}');
}

/// Appends a whole answer with a string.
pub fn push_string_result(out: &mut Vec<u8>, millis: i64, text: &str, notes: &Notes) {
    out.extend_from_slice(
        b"{\"status\":\"success\",\"data\":{\"resultType\":\"string\",\"result\":[",
    );
    push_millis(out, millis);
    out.push(b',');
    push_string(out, text);
    out.push(b']');
    end_data(out, notes);
    out.push(b'}');
}

/// Appends a whole error.
pub fn push_error(out: &mut Vec<u8>, kind: ErrorKind, message: &str) {
    out.extend_from_slice(b"{\"status\":\"error\",\"errorType\":\"");
    out.extend_from_slice(kind.as_str().as_bytes());
    out.extend_from_slice(b"\",\"error\":");
    push_string(out, message);
    out.push(b'}');
}

fn push_point(out: &mut Vec<u8>, millis: i64, value: f64) {
    push_point_start(out, millis);
    push_value(out, value);
    out.extend_from_slice(b"\"]");
}

fn push_histogram_point(out: &mut Vec<u8>, millis: i64, histogram: &Histogram) {
    out.push(b'[');
    push_millis(out, millis);
    out.push(b',');
    push_histogram(out, histogram);
    out.push(b']');
}

fn push_point_start(out: &mut Vec<u8>, millis: i64) {
    out.push(b'[');
    push_millis(out, millis);
    out.extend_from_slice(b",\"");
}

/// Closes a query's data, in which the stats stand, and tells the notes.
fn end_data(out: &mut Vec<u8>, notes: &Notes) {
    if !notes.stats.is_empty() {
        out.extend_from_slice(b",\"stats\":");
        out.extend_from_slice(notes.stats.as_bytes());
    }
    out.push(b'}');
    push_notes(out, notes);
}

fn push_notes(out: &mut Vec<u8>, notes: &Notes) {
    if notes.is_partial {
        out.extend_from_slice(b",\"isPartial\":true");
    }
    for (name, texts) in [("warnings", &notes.warnings), ("infos", &notes.infos)] {
        if texts.is_empty() {
            continue;
        }
        out.extend_from_slice(b",\"");
        out.extend_from_slice(name.as_bytes());
        out.extend_from_slice(b"\":[");
        for (idx, text) in texts.iter().enumerate() {
            if 0 < idx {
                out.push(b',');
            }
            push_string(out, text);
        }
        out.push(b']');
    }
    if !notes.trace.is_empty() {
        out.extend_from_slice(b",\"trace\":");
        out.extend_from_slice(notes.trace.as_bytes());
    }
}
