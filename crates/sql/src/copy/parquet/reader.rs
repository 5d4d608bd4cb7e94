//! A Parquet file to lines of JSON, one for each run of rows of one series: these say every bit of a
//! value and every nanosecond, which exposition text does not.

use crate::copy::copy_values::{BadRow, RowError};
use crate::copy::parquet::columns::{Cells, Parts, Value, sharing};
use crate::copy::parquet::errors::guarded;
use crate::copy::parquet::pages::{check_ends, check_group};
use crate::copy::parquet::source::Source;
use crate::tables::metrics::tables::Column;
use crate::types::error::SqlError;
use ::parquet::arrow::ProjectionMask;
use ::parquet::arrow::arrow_reader::{
    ArrowReaderMetadata, ArrowReaderOptions, ParquetRecordBatchReader,
    ParquetRecordBatchReaderBuilder,
};
use datafusion::arrow::array::RecordBatch;
use model::Labels;
use std::ops::Range;
use wire::json_lines::{LineWriter, Times, push_histogram_text};

/// Rows that are read at a time, and at most of one line.
const BATCH_ROWS: usize = 1024;

/// Bytes of lines that are made at a time, and one line more: a text of megabytes may be that of each row.
const LINES_SIZE: usize = 1 << 20;

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
    /// Rows that were decoded, from that one on, and have no lines yet.
    waiting: Option<(Cells, usize)>,
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
        Ok(FileReader {
            source,
            metadata,
            parts,
            group: 0,
            reading: None,
            rows: 0,
            waiting: None,
            now,
        })
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
        let (cells, from) = match self.waiting.take() {
            Some(waiting) => waiting,
            None => match self.next_batch().map_err(|error| of_file(self.rows, error))? {
                Some(batch) => {
                    let cells = self.parts.read(&batch);
                    (cells.map_err(|error| of_file(self.rows, error))?, 0)
                }
                None => return Ok(Progress { rejected: 0, has_more: false }),
            },
        };
        let before = self.rows - from as u64;
        let pushed = push_cells(&cells, from, (self.now, skips), out).map_err(|(at, bad)| {
            let BadRow { code, message, column } = bad;
            RowError { code, message, row: row_number(before, at), column }
        })?;
        self.rows = before + pushed.next as u64;
        if pushed.next < cells.len {
            self.waiting = Some((cells, pushed.next));
        }
        Ok(Progress { rejected: pushed.rejected, has_more: true })
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
        let described = metadata.metadata().row_group(group);
        let rows = check_group(&self.source, described, is_read, BATCH_ROWS)?;
        let mask = ProjectionMask::roots(schema, self.parts.places());
        let (source, metadata) = (self.source.clone(), metadata.clone());
        guarded(|| {
            ParquetRecordBatchReaderBuilder::new_with_metadata(source, metadata)
                .with_row_groups(vec![group])
                .with_projection(mask)
                .with_batch_size(rows)
                .build()
        })
    }
}

/// The number of a row, from 1 on.
fn row_number(before: u64, at: usize) -> u32 {
    u32::try_from(before + at as u64 + 1).unwrap_or(u32::MAX)
}

/// How far the lines of some rows came.
struct Pushed {
    /// Rows that were left out.
    rejected: u64,
    /// The first row without its line.
    next: usize,
}

/// Appends the lines of rows, as many as are made at a time; or says which is the first bad one.
fn push_cells(
    cells: &Cells,
    from: usize,
    (now, skips): (i64, bool),
    out: &mut Vec<u8>,
) -> Result<Pushed, (usize, BadRow)> {
    let (mut rejected, mut start, most) = (0, from, out.len() + LINES_SIZE);
    let mut run = Run::default();
    while start < cells.len && out.len() < most {
        let mut end = start + 1;
        match cells.series(start) {
            Ok(labels) => {
                while end < cells.len && cells.is_same_series(start, end) {
                    end += 1;
                }
                let given = Given { labels: &labels, now, skips, most };
                let pushed = run.push(cells, start..end, &given, out)?;
                rejected += pushed.rejected;
                end = pushed.next;
            }
            Err(_) if skips => rejected += 1,
            Err(bad) => return Err((start, bad)),
        }
        start = end;
    }
    Ok(Pushed { rejected, next: start })
}

/// What is known of rows of one series.
struct Given<'a> {
    labels: &'a Labels,
    /// The time of rows without one.
    now: i64,
    skips: bool,
    /// Bytes of lines after which no more are made.
    most: usize,
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
        given: &Given<'_>,
        out: &mut Vec<u8>,
    ) -> Result<Pushed, (usize, BadRow)> {
        let (mut rejected, mut next) = (0, rows.end);
        for at in rows {
            let read = cells.time(at).and_then(|time| Ok((time, cells.value(at)?)));
            let (time, value) = match read {
                Ok(read) => read,
                Err(_) if given.skips => {
                    rejected += 1;
                    continue;
                }
                Err(bad) => return Err((at, bad)),
            };
            let (time, start_ms) = (time.unwrap_or(given.now), cells.start_ms(at));
            match value {
                Value::Float(value) => {
                    self.times.push(time);
                    self.values.push(value);
                    self.starts_ms.push(start_ms);
                }
                Value::Histogram(text) => {
                    self.flush(given.labels, out);
                    push_histogram_text(out, given.labels, time, start_ms, text);
                    if given.most <= out.len() {
                        next = at + 1;
                        break;
                    }
                }
            }
        }
        self.flush(given.labels, out);
        Ok(Pushed { rejected, next })
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
