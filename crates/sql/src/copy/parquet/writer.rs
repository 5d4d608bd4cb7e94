//! Rows to a Parquet file, in memory that does not grow with their number: what is encoded of a row
//! group waits until it is as large as one may be, then it goes.

use crate::copy::parquet::errors::unwritten;
use crate::types::error::SqlError;
use crate::types::names::shown_name;
use crate::types::numeric::conversions::{decimals, units_at};
use crate::types::numeric::value::Numeric;
use crate::types::text::shown;
use ::parquet::arrow::ArrowWriter;
use ::parquet::arrow::arrow_writer::ArrowWriterOptions;
use ::parquet::basic::{Compression, Encoding, ZstdLevel};
use ::parquet::file::properties::{EnabledStatistics, WriterProperties};
use ::parquet::schema::types::ColumnPath;
use datafusion::arrow::array::{ArrayRef, Decimal128Array, RecordBatch, RecordBatchOptions};
use datafusion::arrow::compute::cast;
use datafusion::arrow::datatypes::{DataType, Field, Schema, SchemaRef, TimeUnit};
use std::collections::BTreeSet;
use std::io::Write;
use std::sync::Arc;

/// Rows of a row group at most: what readers hand to one of their threads.
const GROUP_ROWS_MAX: usize = 1 << 20;
/// Bytes of memory of a row group that is being made.
const GROUP_SIZE_MAX: usize = 32 << 20;
/// Bytes of a page before it is compressed, as other writers have them.
const PAGE_SIZE: usize = 1 << 20;
/// How hard is tried to make them fewer: more than 3 costs much and brings little.
const COMPRESSION_LEVEL: i32 = 3;

/// Digits behind the point of a `numeric` that does not say how many it has.
const NUMERIC_SCALE: i8 = 10;

/// Writes rows.
pub struct RowsWriter<W: Write + Send> {
    schema: SchemaRef,
    writer: ArrowWriter<W>,
    rows: u64,
}

impl<W: Write + Send> std::fmt::Debug for RowsWriter<W> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "RowsWriter({} rows)", self.rows)
    }
}

impl<W: Write + Send> RowsWriter<W> {
    /// Of rows with those columns.
    ///
    /// # Errors
    /// When two columns are called the same, and when a type has no like in Parquet.
    pub fn new(columns: &Schema, out: W) -> Result<RowsWriter<W>, SqlError> {
        let mut names = BTreeSet::new();
        for name in columns.fields().iter().map(|field| shown_name(field.name())) {
            if !names.insert(name) {
                let words = format!("two columns are called \"{name}\"");
                let hint = "Name them apart with AS: who reads a Parquet file asks by name.";
                return Err(SqlError::new("42701", words).with_hint(hint));
            }
        }
        // A batch knows better than a plan whether something is null.
        let field = |field: &Arc<Field>| {
            Field::new(shown_name(field.name()), written_type(field.data_type()), true)
        };
        let schema = Arc::new(Schema::new(columns.fields().iter().map(field).collect::<Vec<_>>()));
        let options = ArrowWriterOptions::new()
            .with_properties(properties(&schema)?)
            .with_skip_arrow_metadata(true);
        let writer = ArrowWriter::try_new_with_options(out, schema.clone(), options);
        Ok(RowsWriter { schema, writer: writer.map_err(unwritten)?, rows: 0 })
    }

    /// Adds rows.
    ///
    /// # Errors
    /// When they cannot be written.
    pub fn push(&mut self, batch: &RecordBatch) -> Result<(), SqlError> {
        let fields = self.schema.fields().iter();
        let columns: Result<Vec<ArrayRef>, SqlError> = batch
            .columns()
            .iter()
            .zip(fields)
            .map(|(column, field)| as_written(column, field.data_type()))
            .collect();
        let options = RecordBatchOptions::new().with_row_count(Some(batch.num_rows()));
        let batch = RecordBatch::try_new_with_options(self.schema.clone(), columns?, &options)
            .map_err(|error| SqlError::unexpected(format!("Parquet: {error}")))?;
        self.writer.write(&batch).map_err(unwritten)?;
        self.rows += batch.num_rows() as u64;
        if GROUP_SIZE_MAX <= self.writer.memory_size() {
            self.writer.flush().map_err(unwritten)?;
        }
        Ok(())
    }

    /// Rows so far.
    pub fn rows(&self) -> u64 {
        self.rows
    }

    /// Where it writes to: what is there is whole and may be taken away.
    pub fn out(&mut self) -> &mut W {
        self.writer.inner_mut()
    }

    /// Ends the file.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn finish(self) -> Result<W, SqlError> {
        self.writer.into_inner().map_err(unwritten)
    }
}

fn properties(schema: &Schema) -> Result<WriterProperties, SqlError> {
    let level = ZstdLevel::try_new(COMPRESSION_LEVEL).map_err(unwritten)?;
    let mut properties = WriterProperties::builder()
        .set_created_by(format!("quipu {}", env!("CARGO_PKG_VERSION")))
        .set_compression(Compression::ZSTD(level))
        .set_data_page_size_limit(PAGE_SIZE)
        .set_dictionary_page_size_limit(PAGE_SIZE)
        // Maps and lists by the names that the format gives them.
        .set_coerce_types(true)
        .set_max_row_group_row_count(Some(GROUP_ROWS_MAX))
        .set_statistics_enabled(EnabledStatistics::Chunk);
    for field in schema.fields() {
        // Times lie close together: their differences are a fraction of their dictionary.
        if matches!(field.data_type(), DataType::Timestamp(..)) {
            let path = ColumnPath::from(field.name().as_str());
            properties = properties
                .set_column_dictionary_enabled(path.clone(), false)
                .set_column_encoding(path, Encoding::DELTA_BINARY_PACKED);
        }
    }
    Ok(properties.build())
}

/// What values of a type are written as.
fn written_type(of: &DataType) -> DataType {
    match of {
        // Parquet has neither a length of time nor a value of no type.
        DataType::Null | DataType::Interval(_) | DataType::Duration(_) => DataType::Utf8View,
        DataType::Timestamp(TimeUnit::Second, zone) => {
            DataType::Timestamp(TimeUnit::Microsecond, zone.clone())
        }
        DataType::Date64 => DataType::Date32,
        DataType::Decimal256(..) => DataType::Decimal128(38, NUMERIC_SCALE),
        DataType::List(item) => {
            let written = Field::new("element", written_type(item.data_type()), true);
            DataType::List(Arc::new(written))
        }
        other => other.clone(),
    }
}

fn as_written(column: &ArrayRef, wanted: &DataType) -> Result<ArrayRef, SqlError> {
    if column.data_type() == wanted {
        return Ok(column.clone());
    }
    if let (DataType::Decimal256(..), DataType::Decimal128(precision, scale)) =
        (column.data_type(), wanted)
    {
        return shortened(column, *precision, *scale);
    }
    let is_length = |of: &DataType| matches!(of, DataType::Interval(_) | DataType::Duration(_));
    let is_length = match column.data_type() {
        DataType::List(item) => is_length(item.data_type()),
        other => is_length(other),
    };
    let shown = if is_length { shown::column(column) } else { None };
    Ok(cast(shown.as_ref().unwrap_or(column), wanted)
        .map_err(datafusion::error::DataFusionError::from)?)
}

/// Numbers of so many digits; readers know no longer ones.
fn shortened(column: &ArrayRef, precision: u8, scale: i8) -> Result<ArrayRef, SqlError> {
    let units = |raw| {
        units_at(&Numeric::decode(raw), scale).map_err(|error| {
            let hint = "Say how many digits it has: x::numeric(38, 20).";
            SqlError::unsupported(error.message).with_hint(hint)
        })
    };
    let all = decimals(column)?;
    let made: Decimal128Array =
        all.iter().map(|one| one.map(units).transpose()).collect::<Result<_, SqlError>>()?;
    let made = made.with_precision_and_scale(precision, scale);
    Ok(Arc::new(made.map_err(datafusion::error::DataFusionError::from)?))
}
