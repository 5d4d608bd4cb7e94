//! A Parquet file to lines of JSON, one for each run of rows of one series: these say every bit of a
//! value and every nanosecond, which exposition text does not.

use super::columns::{Cells, Parts, Value, sharing};
use super::pages::{check_ends, check_group};
use super::{Source, unreadable};
use crate::copy_values::{BadRow, RowError};
use crate::error::SqlError;
use crate::tables::Column;
use ::parquet::arrow::ProjectionMask;
use ::parquet::arrow::arrow_reader::{
    ArrowReaderMetadata, ArrowReaderOptions, ParquetRecordBatchReader,
    ParquetRecordBatchReaderBuilder,
};
use datafusion::arrow::array::RecordBatch;
use model::Labels;
use std::fmt::Display;
use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind};
use wire::json_lines::{LineWriter, Times, push_histogram_text};

/// Rows that are read at a time, and at most of one line.
const BATCH_ROWS: usize = 1024;

/// Reads a file from its first row to its last.
pub struct FileReader {
    source: Source,
    metadata: ArrowReaderMetadata,
    parts: Parts,
    /// The next row group.
    group: usize,
    reading: Option<ParquetRecordBatchReader>,
    /// Rows that were read.
    rows: u64,
    /// The time of rows that have none.
    now: i64,
}

impl std::fmt::Debug for FileReader {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "FileReader({} rows)", self.rows)
    }
}

/// How far reading came.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Progress {
    /// Rows that were left out.
    pub rejected: u64,
    /// Whether there is more.
    pub has_more: bool,
}

impl FileReader {
    /// Of a file with samples; of their parts those that are wanted, if somebody said which. Rows
    /// without a time get `now`.
    ///
    /// # Errors
    /// When it is no such file.
    pub fn open(
        source: Source,
        wanted: Option<&[Column]>,
        now: i64,
    ) -> Result<FileReader, SqlError> {
        check_ends(&source)?;
        let plain = ArrowReaderOptions::new().with_skip_arrow_metadata(true);
        let metadata = guarded(|| ArrowReaderMetadata::load(&source, plain))?;
        let parts = Parts::of(metadata.schema(), wanted)?;
        let options = ArrowReaderOptions::new().with_schema(sharing(metadata.schema()));
        let known = metadata.metadata().clone();
        let metadata = guarded(|| ArrowReaderMetadata::try_new(known, options))?;
        Ok(FileReader { source, metadata, parts, group: 0, reading: None, rows: 0, now })
    }

    /// Rows that the file says it has.
    pub fn rows_said(&self) -> u64 {
        let rows = self.metadata.metadata().file_metadata().num_rows();
        u64::try_from(rows).unwrap_or(0)
    }

    /// Rows that were read.
    pub fn rows(&self) -> u64 {
        self.rows
    }

    /// Appends the lines of some rows. Bad ones are left out where `skips`.
    ///
    /// # Errors
    /// Of a bad row, and where the file cannot be read.
    pub fn push_lines(&mut self, skips: bool, out: &mut Vec<u8>) -> Result<Progress, RowError> {
        let of_file = |rows: u64, error: SqlError| {
            let SqlError { code, message, .. } = error;
            RowError { code, message, row: row_number(rows, 0), column: None }
        };
        let batch = match self.next_batch().map_err(|error| of_file(self.rows, error))? {
            Some(batch) => batch,
            None => return Ok(Progress { rejected: 0, has_more: false }),
        };
        let cells = self.parts.read(&batch).map_err(|error| of_file(self.rows, error))?;
        let rejected = push_cells(&cells, self.now, skips, out).map_err(|(at, bad)| {
            let BadRow { code, message, column } = bad;
            RowError { code, message, row: row_number(self.rows, at), column }
        })?;
        self.rows += cells.len as u64;
        Ok(Progress { rejected, has_more: true })
    }

    fn next_batch(&mut self) -> Result<Option<RecordBatch>, SqlError> {
        loop {
            if let Some(reading) = &mut self.reading {
                match guarded(|| reading.next().transpose())? {
                    Some(batch) => return Ok(Some(batch)),
                    None => self.reading = None,
                }
            }
            if self.metadata.metadata().num_row_groups() <= self.group {
                return Ok(None);
            }
            self.reading = Some(self.open_group()?);
            self.group += 1;
        }
    }

    fn open_group(&self) -> Result<ParquetRecordBatchReader, SqlError> {
        let (metadata, group) = (&self.metadata, self.group);
        let schema = metadata.parquet_schema();
        let is_read = |leaf: usize| self.parts.has_leaf(schema, leaf);
        check_group(&self.source, metadata.metadata().row_group(group), is_read)?;
        let mask = ProjectionMask::roots(schema, self.parts.places());
        let (source, metadata) = (self.source.clone(), metadata.clone());
        guarded(|| {
            ParquetRecordBatchReaderBuilder::new_with_metadata(source, metadata)
                .with_row_groups(vec![group])
                .with_projection(mask)
                .with_batch_size(BATCH_ROWS)
                .build()
        })
    }
}

/// Does something with bytes that nobody may trust. The crate that knows the format panics at some
/// that are damaged (a length of levels that is not so), and a bad file is its sender's fault, not
/// ours. What it worked on is not used again.
fn guarded<T, E: Display>(work: impl FnOnce() -> Result<T, E>) -> Result<T, SqlError> {
    match catch_unwind(AssertUnwindSafe(work)) {
        Ok(done) => done.map_err(unreadable),
        Err(_) => Err(unreadable("it is damaged")),
    }
}

/// The number of a row, from 1 on.
fn row_number(before: u64, at: usize) -> u32 {
    u32::try_from(before + at as u64 + 1).unwrap_or(u32::MAX)
}

/// Appends the lines of rows; returns how many were left out, or the first bad one.
fn push_cells(
    cells: &Cells,
    now: i64,
    skips: bool,
    out: &mut Vec<u8>,
) -> Result<u64, (usize, BadRow)> {
    let (mut rejected, mut start) = (0, 0);
    let mut run = Run::default();
    while start < cells.len {
        let mut end = start + 1;
        match cells.series(start) {
            Ok(labels) => {
                while end < cells.len && cells.is_same_series(start, end) {
                    end += 1;
                }
                rejected += run.push(cells, start..end, (&labels, now), skips, out)?;
            }
            Err(_) if skips => rejected += 1,
            Err(bad) => return Err((start, bad)),
        }
        start = end;
    }
    Ok(rejected)
}

/// Rows of one series, one after the other.
#[derive(Default)]
struct Run {
    times: Vec<i64>,
    values: Vec<f64>,
    starts_ms: Vec<i64>,
}

impl Run {
    fn push(
        &mut self,
        cells: &Cells,
        rows: Range<usize>,
        (labels, now): (&Labels, i64),
        skips: bool,
        out: &mut Vec<u8>,
    ) -> Result<u64, (usize, BadRow)> {
        let mut rejected = 0;
        for at in rows {
            let read = cells.time(at).and_then(|time| Ok((time, cells.value(at)?)));
            let (time, value) = match read {
                Ok(read) => read,
                Err(_) if skips => {
                    rejected += 1;
                    continue;
                }
                Err(bad) => return Err((at, bad)),
            };
            let (time, start_ms) = (time.unwrap_or(now), cells.start_ms(at));
            match value {
                Value::Float(value) => {
                    self.times.push(time);
                    self.values.push(value);
                    self.starts_ms.push(start_ms);
                }
                Value::Histogram(text) => {
                    self.flush(labels, out);
                    push_histogram_text(out, labels, time, start_ms, text);
                }
            }
        }
        self.flush(labels, out);
        Ok(rejected)
    }

    fn flush(&mut self, labels: &Labels, out: &mut Vec<u8>) {
        let times = Times { timestamps: &self.times, starts_ms: &self.starts_ms };
        if !self.times.is_empty() {
            LineWriter::new(BATCH_ROWS).push_series(out, labels, times, &self.values);
        }
        self.times.clear();
        self.values.clear();
        self.starts_ms.clear();
    }
}
