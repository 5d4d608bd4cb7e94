//! `COPY` of Parquet files as it is parsed.

use crate::copy::statement::{CopyIn, CopyOut, CopyTo, Given, ParquetIn};
use crate::session::parsed::Parsed;
use crate::session::statements::parse;
use crate::tables::metrics::tables::Column;

fn out(text: &str) -> CopyTo {
    match parse(text).unwrap_or_else(|error| panic!("{text}: {error}")).remove(0) {
        Parsed::CopyOut(CopyOut { to, .. }) => to,
        other => panic!("{text}: {other:?}"),
    }
}

#[test]
fn files_go_out() {
    for text in [
        "COPY (SELECT 1 AS to) TO STDOUT (FORMAT parquet)",
        "copy metrics to stdout with (format 'Parquet')",
        "COPY metrics (time, value) TO STDOUT WITH (FORMAT PARQUET);",
    ] {
        assert_eq!(out(text), CopyTo::Parquet, "{text}");
    }
    let file = |overwrites| CopyTo::File { name: "x.parquet".into(), overwrites };
    for (text, expected) in [
        ("COPY metrics TO 'x.parquet'", file(false)),
        ("COPY (SELECT 1) TO 'x.parquet' (FORMAT parquet)", file(false)),
        ("COPY (SELECT 1) TO 'x.parquet' WITH (FORMAT parquet, OVERWRITE)", file(true)),
        ("COPY (SELECT 1) TO 'x.parquet' WITH (OVERWRITE false)", file(false)),
    ] {
        assert_eq!(out(text), expected, "{text}");
    }
    for (text, code) in [
        ("COPY metrics TO 'x.csv'", "0A000"),
        ("COPY metrics TO 'x.parquet' (FORMAT csv)", "0A000"),
        ("COPY metrics TO PROGRAM 'x' (FORMAT parquet)", "0A000"),
        ("COPY metrics TO 'x.parquet' (HEADER)", "42601"),
        ("COPY metrics TO STDOUT (FORMAT parquet, OVERWRITE)", "42601"),
        ("COPY metrics TO STDOUT (FORMAT parquet, DELIMITER ',')", "42601"),
        ("COPY metrics TO 'x.parquet' (OVERWRITE 7)", "0A000"),
    ] {
        assert_eq!(parse(text).err().map(|error| error.code), Some(code), "{text}");
    }
}

#[test]
fn files_come_in() {
    let given = |text: &str| match parse(text).unwrap().remove(0) {
        Parsed::CopyIn(CopyIn { given: Given::Parquet(parquet), .. }) => parquet,
        other => panic!("{text}: {other:?}"),
    };
    let file = Some("x.parquet".to_string());
    let expected = ParquetIn { columns: None, file: file.clone() };
    assert_eq!(given("COPY metrics FROM 'x.parquet'"), expected);
    let text = "COPY metrics FROM 'x.parquet' (FORMAT parquet, ON_ERROR ignore)";
    assert_eq!(given(text), expected);
    let columns = Some(vec![Column::Name, Column::Value]);
    let text = "COPY metrics (metric, value) FROM STDIN (FORMAT parquet)";
    assert_eq!(given(text), ParquetIn { columns, file: None });
    for (text, code) in [
        ("COPY metrics FROM 'x.csv'", "0A000"),
        ("COPY hosts FROM 'x.parquet'", "0A000"),
        ("COPY metrics FROM STDIN (FORMAT parquet, HEADER)", "42601"),
        ("COPY metrics FROM STDIN (OVERWRITE)", "42601"),
        ("COPY metrics FROM PROGRAM 'x'", "0A000"),
        ("COPY metrics (x) FROM 'x.parquet'", "42703"),
    ] {
        assert_eq!(parse(text).err().map(|error| error.code), Some(code), "{text}");
    }
}
