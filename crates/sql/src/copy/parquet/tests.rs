//! What is written is read again, and what lies is refused.

use crate::copy::parquet::pages::check_group;
use crate::copy::parquet::*;
use crate::tables::metrics::tables::Column;
use ::parquet::arrow::ArrowWriter;
use ::parquet::arrow::arrow_reader::ArrowReaderMetadata;
use ::parquet::basic::Encoding;
use ::parquet::file::properties::WriterProperties;
use bytes::Bytes;
use datafusion::arrow::array::{
    ArrayRef, Float64Array, Int64Array, IntervalMonthDayNanoArray, MapBuilder, NullArray,
    RecordBatch, StringArray, StringBuilder, StructArray, TimestampMillisecondArray,
};
use datafusion::arrow::datatypes::{DataType, Field, IntervalMonthDayNano, Schema};
use model::Labels;
use std::sync::Arc;

fn labels(pairs: &[(&str, &str)]) -> Labels {
    Labels::from_pairs(pairs)
}

fn file_of(batch: &RecordBatch) -> Bytes {
    let mut writer = RowsWriter::new(&batch.schema(), Vec::new()).unwrap();
    writer.push(batch).unwrap();
    writer.finish().unwrap().into()
}

fn of_columns(columns: Vec<(&str, ArrayRef)>) -> Bytes {
    file_of(
        &RecordBatch::try_from_iter_with_nullable(
            columns.into_iter().map(|(name, column)| (name, column, true)),
        )
        .unwrap(),
    )
}

fn texts(all: &[&str]) -> ArrayRef {
    Arc::new(StringArray::from(all.to_vec()))
}

fn floats(all: &[f64]) -> ArrayRef {
    Arc::new(Float64Array::from(all.to_vec()))
}

/// The lines of a file, or what is wrong with it.
fn read(bytes: &Bytes, wanted: Option<&[Column]>) -> Result<String, String> {
    let opened = FileReader::open(Source::Memory(bytes.clone()), wanted, 7_000_000);
    let mut reader = opened.map_err(|error| format!("{} {error}", error.code))?;
    let mut out = Vec::new();
    loop {
        let pushed = reader.push_lines(false, &mut out).map_err(|error| {
            let column = error.column.map(|one| format!(", column {one}")).unwrap_or_default();
            format!("{} {}: row {}{column}", error.code, error.message, error.row)
        });
        if !pushed?.has_more {
            return Ok(String::from_utf8(out).unwrap());
        }
    }
}

#[test]
fn samples_lose_nothing() {
    let stale = f64::from_bits(0x7ff0_0000_0000_0002);
    let odd = f64::from_bits(0xfff8_0000_dead_beef);
    let (up, down) =
        (labels(&[("__name__", "up"), ("job", "a\"b\n")]), labels(&[("__name__", "x:y")]));
    let mut rows = SampleRows::default();
    let histogram = "{\"schema\":0,\"count\":1,\"positive\":[[0,1]]}";
    for (series, time, value, start_ms, histogram) in [
        (&up, 1_000_000_001, 0.1, 0, None),
        (&up, -1, stale, 0, None),
        (&up, 2_000_000, odd, 5, None),
        (&up, i64::MAX, f64::NEG_INFINITY, 0, None),
        (&down, 3_000_000, -0.0, 0, None),
        (&down, 4_000_000, 0.0, 9, Some(histogram)),
    ] {
        rows.push(series, Sample { time, value, start_ms, histogram }).unwrap();
    }
    let lines = read(&file_of(&rows.take().unwrap()), None).unwrap();
    let expected = "{\"metric\":{\"__name__\":\"up\",\"job\":\"a\\\"b\\n\"},\
        \"values\":[0.1,\"NaN:7ff0000000000002\",\"NaN:fff80000deadbeef\",\"-Infinity\"],\
        \"timestamps\":[1000.000001,-0.000001,2,9223372036854.775807],\"start_timestamps\":[0,0,5,0]}\n\
        {\"metric\":{\"__name__\":\"x:y\"},\"values\":[-0],\"timestamps\":[3]}\n\
        {\"metric\":{\"__name__\":\"x:y\"},\"histograms\":[{\"schema\":0,\"count\":1,\"positive\":[[0,1]]}],\
        \"histogram_timestamps\":[4],\"histogram_start_timestamps\":[9]}\n";
    assert_eq!(lines, expected);
}

#[test]
fn columns_come_as_others_write_them() {
    let name = || ("metric", texts(&["up", "up"]));
    let time: ArrayRef = Arc::new(TimestampMillisecondArray::from(vec![Some(5), None]));
    let json = texts(&["{\"a\": \"1\"}", "{}"]);
    let value: ArrayRef = Arc::new(Int64Array::from(vec![1, 2]));
    let file = of_columns(vec![name(), ("ts", time), ("value", value), ("labels", json)]);
    let expected = "{\"metric\":{\"__name__\":\"up\",\"a\":\"1\"},\"values\":[1],\"timestamps\":[5]}\n\
                    {\"metric\":{\"__name__\":\"up\"},\"values\":[2],\"timestamps\":[7]}\n";
    assert_eq!(read(&file, None).unwrap(), expected);
    let of_label =
        |label: &str, values: ArrayRef| (Arc::new(Field::new(label, DataType::Utf8, true)), values);
    let missing: ArrayRef = Arc::new(StringArray::from(vec![None, Some("2")]));
    let all = StructArray::from(vec![of_label("a", texts(&["1", "1"])), of_label("b", missing)]);
    let file = of_columns(vec![
        name(),
        ("value", floats(&[1.0, 2.0])),
        ("labels", Arc::new(all)),
        ("mine", texts(&["", ""])),
    ]);
    let refused = read(&file, None).unwrap_err();
    assert_eq!(refused, "42703 column \"mine\" of the file is no part of a sample");
    let wanted = [Column::Name, Column::Value, Column::Labels];
    let expected = "{\"metric\":{\"__name__\":\"up\",\"a\":\"1\"},\"values\":[1],\"timestamps\":[7]}\n\
        {\"metric\":{\"__name__\":\"up\",\"a\":\"1\",\"b\":\"2\"},\"values\":[2],\"timestamps\":[7]}\n";
    assert_eq!(read(&file, Some(&wanted)).unwrap(), expected);
    let refused = read(&file, Some(&[Column::Time])).unwrap_err();
    assert_eq!(refused, "42703 the file has no column \"time\"");
}

#[test]
fn bad_columns_and_rows_are_told() {
    let check = |columns: Vec<(&str, ArrayRef)>, expected: &str| {
        assert_eq!(read(&of_columns(columns), None).unwrap_err(), expected);
    };
    check(vec![("name", texts(&["a"]))], "42703 the file has no column \"value\"");
    check(
        vec![("name", texts(&["a"])), ("value", texts(&["1"]))],
        "42804 column \"value\" of the file is a number, not Utf8",
    );
    check(
        vec![("name", texts(&["a"])), ("value", floats(&[1.0])), ("time", floats(&[1.0]))],
        "42804 column \"time\" of the file is a timestamp, not Float64",
    );
    let name: ArrayRef = Arc::new(StringArray::from(vec![Some("a"), None]));
    check(
        vec![("name", name), ("value", floats(&[1.0, 2.0]))],
        "23502 null value in column \"name\": row 2, column name",
    );
    check(
        vec![("name", texts(&["a"])), ("value", floats(&[1.0])), ("labels", texts(&["[1]"]))],
        "22P02 labels are an object of texts, not [1]: row 1, column labels",
    );
    let wide = "x".repeat(300 << 10);
    check(
        vec![("name", texts(&[&wide])), ("value", floats(&[1.0]))],
        "54000 name and labels of 307208 bytes, the limit is 262144: row 1",
    );
    let far: ArrayRef = Arc::new(TimestampMillisecondArray::from(vec![i64::MAX]));
    check(
        vec![("name", texts(&["a"])), ("value", floats(&[1.0])), ("time", far)],
        "22008 timestamp out of range: row 1, column time",
    );
}

#[test]
fn what_is_no_file_is_refused() {
    let check = |bytes: &[u8], expected: &str| {
        let refused = read(&Bytes::copy_from_slice(bytes), None).unwrap_err();
        assert!(refused.starts_with(expected), "{refused}");
    };
    check(b"", "22P04 this is no Parquet file: it has 0 bytes");
    check(b"up{job=\"a\"} 1 2 3", "22P04 this is no Parquet file: it does not begin");
    let file = of_columns(vec![("name", texts(&["a"])), ("value", floats(&[1.0]))]);
    check(
        &file[..file.len() - 1],
        "22P04 this is no Parquet file: it does not end with PAR1: it was cut",
    );
    let mut lies = file.to_vec();
    let size = lies.len() - 8;
    lies[size..size + 4].copy_from_slice(&u32::MAX.to_le_bytes());
    check(&lies, "22P04 this is no Parquet file: its last part has 4294967295 bytes");
}

/// Each byte of a file changed in several ways: it is read, or refused.
#[test]
fn no_byte_makes_it_fall() {
    let mut rows = SampleRows::default();
    for at in 0..50 {
        let series = labels(&[("__name__", "up"), ("job", &format!("j{}", at / 10))]);
        let sample = Sample { time: at * 1_000, value: 1.5, start_ms: 0, histogram: None };
        rows.push(&series, sample).unwrap();
    }
    let file = file_of(&rows.take().unwrap());
    for at in 0..file.len() {
        for flip in [1, 0x80, 0xff, 0x55] {
            let mut changed = file.to_vec();
            changed[at] ^= flip;
            let changed = Bytes::from(changed);
            let _ = read(&changed, None);
        }
    }
    for size in 0..file.len() {
        assert!(read(&file.slice(..size), None).is_err(), "{size} bytes");
    }
}

#[test]
fn what_parquet_lacks_is_text() {
    let month = IntervalMonthDayNano::new(1, 2, 3_000_000_000);
    let interval: ArrayRef = Arc::new(IntervalMonthDayNanoArray::from(vec![month]));
    let file = of_columns(vec![("length", interval), ("nothing", Arc::new(NullArray::new(1)))]);
    let reader =
        ::parquet::arrow::arrow_reader::ParquetRecordBatchReader::try_new(file, 8).unwrap();
    let batch = reader.into_iter().next().unwrap().unwrap();
    let length = datafusion::arrow::util::display::array_value_to_string(batch.column(0), 0);
    assert_eq!(length.unwrap(), "1 mon 2 days 00:00:03");
    let twice = Schema::new(vec![
        Field::new("a", DataType::Int64, true),
        Field::new("a", DataType::Int64, true),
    ]);
    assert_eq!(RowsWriter::new(&twice, Vec::new()).unwrap_err().code, "42701");
}

/// A file whose texts are written in an encoding that others use.
fn encoded(columns: Vec<(&str, ArrayRef)>, encoding: Encoding) -> Bytes {
    let named = columns.into_iter().map(|(name, column)| (name, column, true));
    let batch = RecordBatch::try_from_iter_with_nullable(named).unwrap();
    let properties = WriterProperties::builder().set_dictionary_enabled(false);
    let properties = properties.set_column_encoding("labels".into(), encoding).build();
    let mut writer = ArrowWriter::try_new(Vec::new(), batch.schema(), Some(properties)).unwrap();
    writer.write(&batch).unwrap();
    writer.into_inner().unwrap().into()
}

#[test]
fn one_row_of_very_many_labels_is_refused_before_it_is_decoded() {
    let mut labels = MapBuilder::new(None, StringBuilder::new(), StringBuilder::new());
    for _ in 0..1_100_000 {
        labels.keys().append_value("a");
        labels.values().append_value("b");
    }
    labels.append(true).unwrap();
    let file = of_columns(vec![
        ("name", texts(&["up"])),
        ("value", floats(&[1.0])),
        ("labels", Arc::new(labels.finish())),
    ]);
    assert!(file.len() < 20_000, "it is {} bytes", file.len());
    let refused = read(&file, None).unwrap_err();
    assert!(refused.starts_with("54000 a row of 1100000 labels"), "{refused}");
}

#[test]
fn texts_that_grow_are_decoded_a_few_at_a_time() {
    let long = "x".repeat(200_000);
    let all: Vec<String> = (0..64).map(|at| format!("{{\"a\": \"{long}{at}\"}}")).collect();
    let all: Vec<&str> = all.iter().map(String::as_str).collect();
    let columns = || {
        vec![("name", texts(&["up"; 64])), ("value", floats(&[1.0; 64])), ("labels", texts(&all))]
    };
    let rows_at_once = |file: &Bytes| {
        let source = Source::Memory(file.clone());
        let metadata = ArrowReaderMetadata::load(&source, Default::default()).unwrap();
        check_group(&source, metadata.metadata().row_group(0), |_| true, 1024).unwrap()
    };
    let growing = encoded(columns(), Encoding::DELTA_BYTE_ARRAY);
    assert!(growing.len() < 400_000, "it is {} bytes", growing.len());
    assert!(rows_at_once(&growing) < 400, "{}", rows_at_once(&growing));
    let lengths = encoded(columns(), Encoding::DELTA_LENGTH_BYTE_ARRAY);
    assert_eq!(rows_at_once(&lengths), 1024);
    let plain = read(&encoded(columns(), Encoding::PLAIN), None).unwrap();
    assert_eq!(read(&growing, None).unwrap(), plain);
    assert_eq!(read(&lengths, None).unwrap(), plain);
}

#[test]
fn long_lines_are_made_some_at_a_time() {
    let long = format!("{{\"x\":\"{}\"}}", "y".repeat(1 << 20));
    let file = of_columns(vec![
        ("name", texts(&["up"; 5])),
        ("value", floats(&[1.0; 5])),
        ("histogram", texts(&[long.as_str(); 5])),
    ]);
    let mut reader = FileReader::open(Source::Memory(file), None, 0).unwrap();
    for rows in 1..=5 {
        let mut out = Vec::new();
        assert!(reader.push_lines(false, &mut out).unwrap().has_more);
        assert_eq!(reader.rows(), rows);
        assert!(out.len() < 2 << 20, "{} bytes", out.len());
    }
    assert!(!reader.push_lines(false, &mut Vec::new()).unwrap().has_more);
    assert_eq!(reader.rows(), 5);
}
