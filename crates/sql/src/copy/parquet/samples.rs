//! Samples to rows of a file that loses nothing of them: see the table in `mod.rs`.

use crate::copy::parquet::columns::{HISTOGRAM, NANOS, START_MS};
use crate::types::error::SqlError;
use datafusion::arrow::array::{
    Float64Builder, Int16Builder, Int64Builder, MapBuilder, RecordBatch, StringBuilder,
    TimestampMicrosecondBuilder,
};
use datafusion::arrow::datatypes::{DataType, Field, Schema, SchemaRef, TimeUnit};
use model::sample::NANOS_PER_MICRO;
use model::{Labels, METRIC_NAME};
use std::sync::Arc;

const ZONE: &str = "UTC";

/// A row.
#[derive(Clone, Copy, Debug)]
pub struct Sample<'a> {
    /// When, in nanoseconds.
    pub time: i64,
    /// What; not looked at where there is a histogram.
    pub value: f64,
    /// Since when it counts, in milliseconds; 0 for no such time.
    pub start_ms: i64,
    /// A native histogram, as JSON lines have it.
    pub histogram: Option<&'a str>,
}

/// Rows that become a batch.
#[derive(Debug)]
pub struct SampleRows {
    names: StringBuilder,
    times: TimestampMicrosecondBuilder,
    values: Float64Builder,
    labels: MapBuilder<StringBuilder, StringBuilder>,
    nanos: Int16Builder,
    starts: Int64Builder,
    histograms: StringBuilder,
    len: usize,
}

impl Default for SampleRows {
    fn default() -> SampleRows {
        SampleRows {
            names: StringBuilder::new(),
            times: TimestampMicrosecondBuilder::new().with_timezone(ZONE),
            values: Float64Builder::new(),
            labels: MapBuilder::new(None, StringBuilder::new(), StringBuilder::new()),
            nanos: Int16Builder::new(),
            starts: Int64Builder::new(),
            histograms: StringBuilder::new(),
            len: 0,
        }
    }
}

impl SampleRows {
    /// Their columns.
    pub fn schema() -> SchemaRef {
        let entries = vec![
            Field::new("keys", DataType::Utf8, false),
            Field::new("values", DataType::Utf8, true),
        ];
        let entries = Field::new("entries", DataType::Struct(entries.into()), false);
        let micros = DataType::Timestamp(TimeUnit::Microsecond, Some(ZONE.into()));
        Arc::new(Schema::new(vec![
            Field::new("name", DataType::Utf8, false),
            Field::new("time", micros, false),
            Field::new("value", DataType::Float64, true),
            Field::new("labels", DataType::Map(Arc::new(entries), false), false),
            Field::new(NANOS, DataType::Int16, true),
            Field::new(START_MS, DataType::Int64, true),
            Field::new(HISTOGRAM, DataType::Utf8, true),
        ]))
    }

    /// Adds a sample of a series.
    ///
    /// # Errors
    /// When its labels cannot be a map.
    pub fn push(&mut self, series: &Labels, sample: Sample<'_>) -> Result<(), SqlError> {
        let Sample { time, value, start_ms, histogram } = sample;
        self.names.append_value(series.metric_name());
        self.times.append_value(time.div_euclid(NANOS_PER_MICRO));
        self.values.append_option(histogram.is_none().then_some(value));
        for (name, value) in series.iter().filter(|(name, _)| *name != METRIC_NAME) {
            self.labels.keys().append_value(name);
            self.labels.values().append_value(value);
        }
        let appended = self.labels.append(true);
        appended.map_err(|error| SqlError::unexpected(error.to_string()))?;
        let behind = i16::try_from(time.rem_euclid(NANOS_PER_MICRO)).ok();
        self.nanos.append_option(behind.filter(|nanos| *nanos != 0));
        self.starts.append_option((start_ms != 0).then_some(start_ms));
        self.histograms.append_option(histogram);
        self.len += 1;
        Ok(())
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Takes them.
    ///
    /// # Errors
    /// When they are no batch.
    pub fn take(&mut self) -> Result<RecordBatch, SqlError> {
        self.len = 0;
        let columns = vec![
            Arc::new(self.names.finish()) as _,
            Arc::new(self.times.finish()) as _,
            Arc::new(self.values.finish()) as _,
            Arc::new(self.labels.finish()) as _,
            Arc::new(self.nanos.finish()) as _,
            Arc::new(self.starts.finish()) as _,
            Arc::new(self.histograms.finish()) as _,
        ];
        let batch = RecordBatch::try_new(SampleRows::schema(), columns);
        batch.map_err(|error| SqlError::unexpected(error.to_string()))
    }
}
