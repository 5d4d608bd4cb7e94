//! Samples, series by series, to columns. Text that all rows of a series share is kept once.

use crate::tables::metrics::tables::{Column, Shows};
use crate::types::json::jsonb;
use crate::types::time::zones::ZONE;
use datafusion::arrow::array::{
    ArrayRef, Float64Builder, Int64Builder, RecordBatch, RecordBatchOptions, StringViewBuilder,
    TimestampMicrosecondBuilder,
};
use datafusion::arrow::buffer::Buffer;
use datafusion::arrow::datatypes::SchemaRef;
use datafusion::common::{DataFusionError, Result};
use model::sample::NANOS_PER_MICRO;
use model::{Labels, METRIC_NAME, is_stale_marker};
use std::sync::Arc;
use wire::exposition::Format;
use wire::exposition::encode::push_sample;

/// Rows of a series from which on their text is shared.
const SHARED_ROWS_MIN: usize = 4;
/// Values of a batch: one of many columns has fewer rows.
const CELLS_MAX: usize = 1 << 18;

/// A column that grows.
enum Growing {
    Sample(StringViewBuilder),
    Time(TimestampMicrosecondBuilder),
    Value(Float64Builder),
    Name(StringViewBuilder),
    Labels(StringViewBuilder),
    SeriesId(Int64Builder),
    Label(Arc<str>, StringViewBuilder),
}

/// Rows that become batches.
pub struct Rows {
    schema: SchemaRef,
    columns: Vec<Growing>,
    len: usize,
    len_max: usize,
}

impl Rows {
    /// Batches of those columns, with so many rows at most.
    pub fn new(columns: &[Shows], schema: SchemaRef, len_max: usize) -> Rows {
        let growing = |shows: &Shows| match shows {
            Shows::Part(Column::Sample) => Growing::Sample(StringViewBuilder::new()),
            Shows::Part(Column::Time) => {
                Growing::Time(TimestampMicrosecondBuilder::new().with_timezone(ZONE))
            }
            Shows::Part(Column::Value) => Growing::Value(Float64Builder::new()),
            Shows::Part(Column::Name) => Growing::Name(StringViewBuilder::new()),
            Shows::Part(Column::Labels) => Growing::Labels(StringViewBuilder::new()),
            Shows::Part(Column::SeriesId) => Growing::SeriesId(Int64Builder::new()),
            Shows::Label(label) => Growing::Label(label.clone(), StringViewBuilder::new()),
        };
        let len_max = len_max.min(CELLS_MAX / columns.len().max(1)).max(1);
        Rows { schema, columns: columns.iter().map(growing).collect(), len: 0, len_max }
    }

    /// Adds the samples of a series, without the marks of its end; `take` gets batches that are full
    /// and says whether it wants more. Returns what it said last.
    pub fn push_series(
        &mut self,
        labels: &Labels,
        times: &[i64],
        values: &[f64],
        take: &mut dyn FnMut(RecordBatch) -> bool,
    ) -> Result<bool> {
        let mut start = 0;
        while start < times.len() {
            let end = times.len().min(start + self.len_max - self.len);
            self.push(labels, &times[start..end], &values[start..end])?;
            start = end;
            if self.len_max <= self.len
                && let Some(batch) = self.finish()?
                && !take(batch)
            {
                return Ok(false);
            }
        }
        Ok(true)
    }

    fn push(&mut self, labels: &Labels, times: &[i64], values: &[f64]) -> Result<()> {
        let samples = || {
            let pairs = times.iter().copied().zip(values.iter().copied());
            pairs.filter(|(_, value)| !is_stale_marker(*value))
        };
        let count = samples().count();
        for column in &mut self.columns {
            match column {
                Growing::Time(out) => {
                    samples()
                        .for_each(|(time, _)| out.append_value(time.div_euclid(NANOS_PER_MICRO)));
                }
                Growing::Value(out) => samples().for_each(|(_, value)| {
                    // The store keeps the bits of each; SQL knows one, and finds it equal to itself.
                    out.append_value(if value.is_nan() { f64::NAN } else { value });
                }),
                Growing::Name(out) => push_shared(out, labels.metric_name(), count)?,
                Growing::Labels(out) => {
                    let mut text = String::new();
                    jsonb::push_labels(
                        &mut text,
                        labels.iter().filter(|(name, _)| *name != METRIC_NAME),
                    );
                    push_shared(out, &text, count)?;
                }
                Growing::SeriesId(out) => {
                    let id = series_id(labels);
                    (0..count).for_each(|_| out.append_value(id));
                }
                Growing::Sample(out) => push_lines(out, labels, samples())?,
                Growing::Label(label, out) => match labels.get(label) {
                    Some(value) => push_shared(out, value, count)?,
                    None => (0..count).for_each(|_| out.append_null()),
                },
            }
        }
        self.len += count;
        Ok(())
    }

    /// What there is as a batch, if there is anything.
    pub fn finish(&mut self) -> Result<Option<RecordBatch>> {
        if self.len == 0 {
            return Ok(None);
        }
        let finish = |column: &mut Growing| -> ArrayRef {
            match column {
                Growing::Time(out) => Arc::new(out.finish()),
                Growing::Value(out) => Arc::new(out.finish()),
                Growing::SeriesId(out) => Arc::new(out.finish()),
                Growing::Sample(out)
                | Growing::Name(out)
                | Growing::Labels(out)
                | Growing::Label(_, out) => Arc::new(out.finish()),
            }
        };
        let columns = self.columns.iter_mut().map(finish).collect();
        // Who only counts rows wants no column.
        let options = RecordBatchOptions::new().with_row_count(Some(self.len));
        self.len = 0;
        Ok(Some(RecordBatch::try_new_with_options(self.schema.clone(), columns, &options)?))
    }
}

/// See [`Column::SeriesId`].
pub fn series_id(labels: &Labels) -> i64 {
    let bits = labels.fingerprint() & u128::from(i64::MAX.unsigned_abs());
    i64::try_from(bits).expect("63 bits")
}

fn push_shared(out: &mut StringViewBuilder, text: &str, count: usize) -> Result<()> {
    let size = u32::try_from(text.len()).unwrap_or(u32::MAX);
    if count < SHARED_ROWS_MIN || size == u32::MAX {
        (0..count).for_each(|_| out.append_value(text));
        return Ok(());
    }
    let block = out.append_block(Buffer::from(text.as_bytes()));
    for _ in 0..count {
        out.try_append_view(block, 0, size)?;
    }
    Ok(())
}

/// The lines of a series' samples, as an exporter writes them.
fn push_lines(
    out: &mut StringViewBuilder,
    labels: &Labels,
    samples: impl Iterator<Item = (i64, f64)>,
) -> Result<()> {
    let mut line = Vec::new();
    for (time, value) in samples {
        line.clear();
        push_sample(&mut line, labels, value, Some(time), Format::Text);
        let text = std::str::from_utf8(&line).map_err(|error| external(&error))?;
        out.append_value(text.trim_end_matches('\n'));
    }
    Ok(())
}

fn external(error: &std::str::Utf8Error) -> DataFusionError {
    DataFusionError::Internal(format!("a sample's line is no text: {error}"))
}
