//! What every decoder of samples returns: the rows, what was refused, and what was counted.
//!
//! ```text
//! body ──decode──► Decoded { batch, exemplars, metadata }   the good part, ready for the store
//!                          { errors }            the bad lines: number and reason, the first hundred in words
//!                          { rest }              where to go on when one batch would grow too large
//! ```

use crate::remote_write::histograms::GrownHistograms;
use histogram::{HistogramBatch, HistogramRow};
use model::{ExemplarRow, Metadata, Row, Shape, StartRow, WriteBatch};
use std::borrow::Cow;

/// How many refused lines keep their words; all are counted.
pub const ERRORS_KEPT_MAX: usize = 100;
/// Rows after which a batch ends and [`Decoded::rest`] says where the next begins.
pub const ROWS_PER_BATCH: usize = 256 << 10;
/// Field names in all shapes of a batch, after which the batch ends.
pub const SHAPE_FIELDS_PER_BATCH: usize = 64 << 10;

const _: () = assert!(ROWS_PER_BATCH <= model::limits::BATCH_ROWS_MAX);
const _: () = assert!(model::limits::FIELDS_PER_LINE_MAX <= SHAPE_FIELDS_PER_BATCH);

/// One request, or one batch of a long one.
pub struct Decoded<'a> {
    /// What the store takes.
    pub batch: WriteBatch<'a>,
    /// Native histograms; their keys point into the batch's bytes.
    pub histograms: Vec<HistogramRow>,
    /// Start timestamps of samples and histograms that have one; their keys point there, too.
    pub starts: Vec<StartRow>,
    /// What tells keys of this decoder from others': see [`model::KeyHasher::shape`].
    pub context: &'a [u8],
    /// The lines or series that were refused.
    pub errors: LineErrors,
    /// What the request says about metrics.
    pub metadata: Vec<Metadata>,
    /// Exemplars; their keys are in the batch.
    pub exemplars: Vec<ExemplarRow>,
    /// What else happened.
    pub counts: Counts,
    /// Where the next batch starts; `None` when the body is done.
    pub rest: Option<Start>,
}

impl Decoded<'_> {
    /// The native histograms as the store takes them.
    pub fn histogram_batch(&mut self) -> HistogramBatch<'_> {
        HistogramBatch {
            bytes: Cow::Borrowed(&self.batch.bytes),
            rows: std::mem::take(&mut self.histograms),
            decoder: self.batch.decoder,
            context: Cow::Borrowed(self.context),
        }
    }
}

/// Where decoding starts in a body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Start {
    /// Byte of the body.
    pub offset: usize,
    /// Number of the line that starts there.
    pub line: u32,
}

impl Default for Start {
    fn default() -> Start {
        Start { offset: 0, line: 1 }
    }
}

/// One refused line, series or field.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LineError {
    /// The line (from 1) or the series (from 0).
    pub position: u32,
    /// Why, in the protocol's words.
    pub reason: String,
}

/// The refused lines: all counted, the first [`ERRORS_KEPT_MAX`] in words.
#[derive(Clone, Debug, Default)]
pub struct LineErrors {
    kept: Vec<LineError>,
    count: u64,
    /// Refused samples of lines that were taken otherwise, but for the first of each line.
    further: u64,
}

impl LineErrors {
    /// Counts one; `reason` is only asked for while words are kept.
    pub fn push(&mut self, position: u32, reason: impl FnOnce() -> String) {
        self.count += 1;
        if self.kept.len() < ERRORS_KEPT_MAX {
            self.kept.push(LineError { position, reason: reason() });
        }
    }

    /// Counts a line of which so many samples were refused; the others are taken.
    pub(crate) fn push_samples(
        &mut self,
        position: u32,
        samples: u64,
        reason: impl FnOnce() -> String,
    ) {
        self.push(position, reason);
        self.further += samples.saturating_sub(1);
    }

    /// Renames the lines.
    pub fn rename_positions(&mut self, name: impl Fn(u32) -> u32) {
        for error in &mut self.kept {
            error.position = name(error.position);
        }
    }

    /// The first ones.
    pub fn kept(&self) -> &[LineError] {
        &self.kept
    }

    /// How many lines there were.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// How many lines, and samples of lines that were taken otherwise, there were.
    pub fn refused(&self) -> u64 {
        self.count + self.further
    }

    /// Whether nothing was refused.
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// Takes over the errors of a later batch of the same request.
    pub fn append(&mut self, other: LineErrors) {
        self.count += other.count;
        self.further += other.further;
        let room = ERRORS_KEPT_MAX.saturating_sub(self.kept.len());
        self.kept.extend(other.kept.into_iter().take(room));
    }
}

/// Numbers for answers and for `/metrics`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Values in the batch.
    pub samples: u64,
    /// Lines, or series, that were looked at and were not blank or comments.
    pub lines: u64,
    /// Integers beyond 2^53 that became the nearest float64.
    pub inexact_integers: u64,
    /// Booleans that became 1 or 0.
    pub booleans: u64,
    /// String fields, which are left out of their lines.
    pub strings: u64,
    /// Exemplars that were refused.
    pub exemplars: u64,
    /// Native histograms that were refused; they are among the errors too.
    pub histograms: u64,
    /// Native histograms whose count became the nearest float64.
    pub rounded_histograms: u64,
    /// Start timestamps that were left aside: nobody keeps them, or the store cannot.
    pub created_timestamps: u64,
}

impl Counts {
    /// Adds the counts of a later batch of the same request.
    pub fn add(&mut self, other: &Counts) {
        self.samples += other.samples;
        self.lines += other.lines;
        self.inexact_integers += other.inexact_integers;
        self.booleans += other.booleans;
        self.strings += other.strings;
        self.exemplars += other.exemplars;
        self.histograms += other.histograms;
        self.rounded_histograms += other.rounded_histograms;
        self.created_timestamps += other.created_timestamps;
    }
}

/// The vectors of a batch while it grows.
#[derive(Default)]
pub(crate) struct Growing {
    pub shapes: Vec<Shape>,
    pub rows: Vec<Row>,
    pub values: Vec<f64>,
    pub errors: LineErrors,
    pub metadata: Vec<Metadata>,
    pub exemplars: Vec<ExemplarRow>,
    pub counts: Counts,
    pub histograms: GrownHistograms,
    pub starts: Vec<StartRow>,
}

impl Growing {
    /// Turns the vectors into the answer.
    pub fn finish<'a>(
        self,
        bytes: Cow<'a, [u8]>,
        decoder: &'a dyn model::KeyDecoder,
        rest: Option<Start>,
    ) -> Decoded<'a> {
        let mut counts = self.counts;
        counts.samples = self.values.len() as u64;
        let Growing {
            shapes, rows, values, errors, metadata, exemplars, histograms, starts, ..
        } = self;
        let batch = WriteBatch { bytes, shapes, rows, values, decoder };
        let (histograms, context) = (histograms.rows, &[]);
        Decoded { batch, histograms, starts, context, errors, metadata, exemplars, counts, rest }
    }
}

/// Offsets into a body are `u32`.
pub(crate) fn check_body_size(body: &[u8]) -> Result<(), crate::Error> {
    let max = model::limits::BODY_SIZE_MAX;
    if body.len() <= max {
        return Ok(());
    }
    Err(crate::Error::LimitExceeded {
        limit: crate::Limit::BodySize,
        value: body.len() as u64,
        max: max as u64,
    })
}
