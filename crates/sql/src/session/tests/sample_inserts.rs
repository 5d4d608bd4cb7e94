//! `INSERT` of samples: statements, and rows as lines.

use crate::ddl_dml::insert::Insert;
use crate::session::parsed::Parsed;
use crate::session::statements::parse;
use crate::types::error::SqlError;
use crate::types::json::labels::{LABELS_MAX, labels_of};
use datafusion::arrow::array::{
    ArrayRef, Float64Array, Int64Array, NullArray, RecordBatch, StringArray,
    TimestampNanosecondArray,
};
use std::sync::Arc;

fn inserted(text: &str) -> Result<Insert, SqlError> {
    match parse(text)?.pop() {
        Some(Parsed::Insert(insert)) => Ok(insert),
        other => panic!("{text}: {other:?}"),
    }
}

fn lines(text: &str, columns: Vec<ArrayRef>) -> Result<String, SqlError> {
    let named = columns.into_iter().enumerate().map(|(at, array)| (at.to_string(), array, true));
    let batch = RecordBatch::try_from_iter_with_nullable(named).unwrap();
    let mut out = Vec::new();
    inserted(text)?.columns().push_lines(&batch, &mut out)?;
    Ok(String::from_utf8(out).unwrap())
}

#[test]
fn rows_become_lines() {
    let texts = |all: &[&str]| Arc::new(StringArray::from(all.to_vec())) as ArrayRef;
    let parts = "INSERT INTO metrics (time, name, value, labels) SELECT 1";
    let columns = vec![
        Arc::new(TimestampNanosecondArray::from(vec![1_500_000_000_123_456_789, -1_500_000_000]))
            as ArrayRef,
        texts(&["a", "b c"]),
        Arc::new(Float64Array::from(vec![f64::NAN, 1e-9])),
        texts(&["{\"x\": \"1\\n\"}", "{}"]),
    ];
    let expected = "a{x=\"1\\n\"} NaN 1500000000.123456\n{\"b c\"} 1e-09 -1.500000\n";
    assert_eq!(lines(parts, columns).unwrap(), expected);
    let given = lines("INSERT INTO metrics_cx VALUES ('x')", vec![texts(&["up 1"])]);
    assert_eq!(given.unwrap(), "up 1\n");
    let numbers = || Arc::new(Int64Array::from(vec![1, 2])) as ArrayRef;
    let both = "INSERT INTO metrics_cx (metric, value) SELECT 1";
    assert_eq!(lines(both, vec![texts(&["a", "b"]), numbers()]).unwrap(), "a 1\nb 2\n");
    for (columns, code) in [
        (vec![numbers(), numbers()], "42804"),
        (vec![texts(&["a"]), texts(&["x"])], "22P02"),
        (vec![texts(&["a"]), Arc::new(Float64Array::from(vec![None])) as ArrayRef], "23502"),
        (vec![texts(&["a"])], "42601"),
    ] {
        assert_eq!(lines(both, columns).unwrap_err().code, code);
    }
    let none = vec![texts(&["a"]), texts(&["1"]), Arc::new(NullArray::new(1)) as ArrayRef];
    let labels = "INSERT INTO metrics (name, value, labels) SELECT 1";
    assert_eq!(lines(labels, none).unwrap(), "a 1\n");
    let some = Arc::new(StringArray::from(vec![None, Some("{\"x\": \"y\"}")])) as ArrayRef;
    let some = vec![texts(&["a", "b"]), texts(&["1", "2"]), some];
    assert_eq!(lines(labels, some).unwrap(), "a 1\nb{x=\"y\"} 2\n");
    for text in ["[]", "{\"a\": 1}", "{\"__name__\": \"x\"}", "x"] {
        let columns = vec![texts(&["a"]), texts(&["1"]), texts(&[text])];
        assert_eq!(lines(labels, columns).unwrap_err().code, "22P02", "{text}");
    }
}

#[test]
fn what_cannot_be_inserted_is_refused() {
    for (text, code) in [
        ("INSERT INTO metrics (time, value) VALUES (now(), 1)", "0A000"),
        ("INSERT INTO metrics (nothing) VALUES (1)", "42703"),
        ("INSERT INTO metrics (name, name) VALUES (1, 2)", "42701"),
        ("INSERT INTO metrics (name, value) VALUES ('a')", "42601"),
        ("INSERT INTO metrics (name, value) VALUES ('a', DEFAULT)", "23502"),
        ("INSERT INTO metrics VALUES ('a') RETURNING *", "0A000"),
        ("INSERT INTO metrics VALUES ('a') ON CONFLICT DO NOTHING", "0A000"),
    ] {
        assert_eq!(inserted(text).map_err(|error| error.code).unwrap_err(), code, "{text}");
    }
}

#[test]
fn labels_are_bounded() {
    let object = |count: usize| {
        let pairs: Vec<_> = (0..count).map(|at| format!("\"l{at}\": \"x\"")).collect();
        format!("{{{}}}", pairs.join(","))
    };
    assert_eq!(labels_of(&object(LABELS_MAX)).unwrap().len(), LABELS_MAX);
    let many = labels_of(&object(LABELS_MAX + 1)).unwrap_err();
    assert_eq!((many.code, many.message.as_str()), ("54000", "1001 labels, the limit is 1000"));
    assert_eq!(labels_of(&object(1_000_000)).unwrap_err().code, "54000");
    let twice = labels_of("{\"a\": 1, \"a\": \"x\"}").unwrap();
    assert_eq!(twice, [("a".to_string(), "x".to_string())]);
    for text in ["x".repeat(1000), format!("{{\"a\": [{}1]}}", "1,".repeat(1000))] {
        let failure = labels_of(&text).unwrap_err();
        assert!(failure.code == "22P02" && failure.message.len() < 200, "{failure:?}");
    }
    for text in ["{} x", "{", "[]", "", "{\"a\"}"] {
        assert_eq!(labels_of(text).unwrap_err().code, "22P02", "{text}");
    }
}
