//! Statements of `COPY` as they are parsed.

use crate::copy::statement::{CopyFormat, CopyIn, CopyTo, Given, RowFormat, RowsIn};
use crate::session::parsed::Parsed;
use crate::session::statements::parse;
use crate::tables::metrics::tables::Column;

fn one(text: &str) -> Parsed {
    let mut all = parse(text).unwrap();
    assert_eq!(all.len(), 1, "{text}");
    all.remove(0)
}

fn rows(text: &str) -> RowsIn {
    match one(text) {
        Parsed::CopyIn(CopyIn { given: Given::Rows(rows), .. }) => rows,
        other => panic!("{text}: {other:?}"),
    }
}

#[test]
fn copies() {
    let copy = CopyIn { table: "metrics".into(), ..CopyIn::default() };
    for text in [
        "COPY metrics FROM STDIN",
        "copy Metrics from stdin;",
        "COPY public.metrics (sample) FROM STDIN WITH (FORMAT text)",
        "COPY metrics FROM STDIN (ON_ERROR stop, FORMAT 'text')",
        "COPY metrics FROM stdin WITH DELIMITER AS E'\t' NULL AS E'\\\\N'",
    ] {
        assert_eq!(one(text), Parsed::CopyIn(copy.clone()), "{text}");
    }
    let skipping = CopyIn { skips_errors: true, reject_limit: Some(7), ..copy };
    let text = "COPY metrics FROM STDIN WITH (ON_ERROR ignore, REJECT_LIMIT 7)";
    assert_eq!(one(text), Parsed::CopyIn(skipping));
    for (text, code) in [
        ("COPY metrics FROM '/etc/passwd'", "0A000"),
        ("COPY metrics FROM STDIN WITH (REJECT_LIMIT 0)", "42601"),
        ("COPY metrics FROM STDIN oops", "42601"),
        ("COPY metrics (a b", "42601"),
        ("COPY metrics (a) FROM STDIN", "42703"),
        ("COPY metrics (name name", "42601"),
        ("COPY metrics (name, name) FROM STDIN", "42701"),
        ("COPY metrics (name, labels) FROM STDIN", "0A000"),
        ("COPY other.metrics FROM STDIN", "3F000"),
        ("COPY metrics FROM STDIN WITH (FORMAT xml)", "0A000"),
        ("COPY metrics FROM STDIN CSV QUOTE 'ab'", "22023"),
        ("COPY metrics FROM STDIN CSV DELIMITER", "42601"),
        ("COPY metrics FROM STDIN WITH (FORMAT csv, HEADER match)", "0A000"),
    ] {
        assert_eq!(parse(text).err().map(|error| error.code), Some(code), "{text}");
    }
}

#[test]
fn options_that_make_no_sense_are_refused() {
    for (options, code) in [
        ("DELIMITER 'a'", "22023"),
        ("DELIMITER '.'", "22023"),
        ("DELIMITER E'\\n'", "22023"),
        ("DELIMITER ''", "22023"),
        ("NULL E'\t'", "22023"),
        ("NULL E'\\n'", "22023"),
        ("FORMAT csv, NULL ','", "22023"),
        ("FORMAT csv, NULL '\"'", "22023"),
        ("FORMAT csv, QUOTE ','", "22023"),
        ("FORMAT csv, DELIMITER '\"'", "22023"),
        ("FORMAT csv, ESCAPE ''", "22023"),
        ("QUOTE '!'", "0A000"),
        ("FORMAT text, ESCAPE '!'", "0A000"),
        ("FORMAT binary, DELIMITER ','", "42601"),
        ("FORMAT binary, NULL ''", "42601"),
        ("FORMAT binary, HEADER", "42601"),
        ("FORMAT csv, FORMAT csv", "42601"),
        ("FORMAT csv, HEADER, header", "42601"),
        ("DELIMITER ';', DELIMITER ','", "42601"),
        ("FORMAT csv, HEADER 2", "42601"),
        ("DELIMITER", "42601"),
        ("NULL", "42601"),
        ("FORMAT", "42601"),
        ("ON_ERROR", "42601"),
        ("", "42601"),
    ] {
        // What comes as lines is asked in the same words.
        for columns in ["", "(name, value) "] {
            let text = format!("COPY metrics {columns}FROM STDIN WITH ({options})");
            assert_eq!(parse(&text).err().map(|error| error.code), Some(code), "{text}");
        }
    }
    for text in ["CSV CSV", "BINARY CSV", "CSV HEADER HEADER", "DELIMITER 'a'", "BINARY NULL ''"] {
        let text = format!("COPY metrics (name, value) FROM STDIN {text}");
        assert!(parse(&text).is_err(), "{text}");
    }
    for text in ["(FORMAT csv, DELIMITER 'a', NULL 'b')", "CSV DELIMITER '.'", "(FREEZE)"] {
        let text = format!("COPY metrics (name, value) FROM STDIN {text}");
        assert!(parse(&text).is_ok(), "{text}");
    }
}

#[test]
fn rows_come_in_formats() {
    use Column::{Labels, Name, Sample, Time, Value};
    let text = RowFormat::Text { delimiter: b'\t', null: "\\N".into(), has_header: false };
    let found = rows("COPY metrics (ts, metric, value, labels) FROM STDIN");
    assert_eq!(found, RowsIn { columns: vec![Time, Name, Value, Labels], format: text });
    let csv = |delimiter, has_header| RowFormat::Csv {
        delimiter,
        null: String::new(),
        quote: b'"',
        escape: b'"',
        has_header,
    };
    let found = rows("COPY metrics FROM STDIN WITH (FORMAT csv, HEADER)");
    assert_eq!(found.columns, [Sample, Time, Name, Value, Labels]);
    assert_eq!(found.format, csv(b',', true));
    let found = rows("COPY metrics (name, value) FROM STDIN CSV DELIMITER ';'");
    assert_eq!(found.format, csv(b';', false));
    let found = rows("COPY metrics_copy FROM STDIN BINARY");
    assert_eq!(found, RowsIn { columns: vec![Sample], format: RowFormat::Binary });
}

#[test]
fn copies_out() {
    let text = "COPY (SELECT 1) TO STDOUT WITH (FORMAT csv, HEADER, DELIMITER ';')";
    let Parsed::CopyOut(copy) = one(text) else { panic!("{text}") };
    let (null, has_header) = (String::new(), true);
    let expected = CopyFormat { is_csv: true, delimiter: ';', null, has_header };
    assert_eq!(copy.to, CopyTo::Lines(expected));
    assert!(matches!(one("COPY metrics (name) TO STDOUT"), Parsed::CopyOut(_)));
    let text = "COPY metrics TO '/tmp/x'";
    assert_eq!(parse(text).err().map(|error| error.code), Some("0A000"));
    let Parsed::CopyOut(copy) = one("COPY metrics TO STDOUT WITH (FORMAT binary)") else {
        panic!("binary")
    };
    assert!(matches!(copy.to, CopyTo::Binary));
}
