//! Queries that InfluxData's engine refuses, and times to the nanosecond.

use crate::fuzzing::samples;
use crate::{Dialect, Limits, Query, run};

const RANGE: &str =
    "from(bucket: \"db\") |> range(start: 0, stop: 20) |> filter(fn: (r) => r._field == \"f\")";

/// Answer in CSV, or the error.
fn answer(text: &str) -> Result<String, String> {
    let text = text.replace("RANGE", RANGE);
    let query = Query { text: &text, external: None, parameters: None, now: 20_000_000_000 };
    let limits = Limits { memory_max: 64 << 20, is_over: &|| None };
    let outcomes = run(&samples(), query, limits).map_err(|error| error.words(&text))?;
    let mut out = Vec::new();
    Dialect::default().write(&outcomes, &mut out).expect("memory takes every byte");
    Ok(String::from_utf8(out).expect("text").replace("\r\n", "\n"))
}

#[test]
fn wrong_types_and_names_are_refused() {
    let wrong = [
        ("RANGE |> filter(fn: (r) => 5)", "expected bool but found int"),
        ("RANGE |> filter(fn: (r) => \"a\")", "expected bool but found string"),
        ("RANGE |> filter(fn: (r) => not 5 or true)", "expected bool but found int"),
        ("RANGE |> filter(fn: (r) => r._value + 1.0)", "expected bool but found float"),
        ("RANGE |> filter(fn: (r) => { return 5 })", "expected bool but found int"),
        ("RANGE |> filter(fn: () => true)", "fn does not take the argument r"),
        ("RANGE |> filter(fn: (x) => true)", "fn does not take the argument r"),
        ("RANGE |> filter(fn: (r, x) => true)", "missing required argument x"),
        ("RANGE |> map(fn: () => ({a: 1}))", "fn does not take the argument r"),
        ("RANGE |> reduce(identity: {n: 1}, fn: (r) => ({n: 1}))", "the argument accumulator"),
        ("RANGE |> stateCount(fn: (r) => r._value)", "expected bool but found float"),
        ("RANGE |> keep(fn: (column) => column)", "expected bool but found string"),
        ("RANGE |> findRecord(fn: (key) => 1, idx: 0)", "expected bool but found int"),
        ("RANGE |> map(fn: (r) => ({r with v: if r._value then 1 else 2}))", "expected bool"),
        ("x = if 1 then 2 else 3 RANGE", "expected bool but found int"),
        ("RANGE |> toString() |> min()", "no implementation for type string"),
        ("RANGE |> toBool() |> max()", "bool"),
        ("RANGE |> map(fn: (r) => ({r with _value: true})) |> max()", "type bool"),
        ("RANGE |> toString() |> aggregateWindow(every: 5s, fn: max)", "type string"),
        ("RANGE |> toString() |> highestMax(n: 1)", "type string"),
        ("a = 1 a = 2 RANGE", "variable \"a\" reassigned"),
        ("option a = 1 option a = 2 RANGE", "option \"a\" reassigned"),
        ("option a = 1 a = 2 RANGE", "conflicts with option"),
        ("f = (a) => { a = 2 return a } RANGE", "variable \"a\" reassigned"),
        ("f = () => { option a = 2 return a } RANGE", "option statement in a function"),
        ("import \"array\" array.from(rows: [])", "rows must be non-empty"),
    ];
    for (text, part) in wrong {
        let error = answer(text).expect_err(text);
        assert!(error.contains(part), "{text}: {error}");
    }
    for text in [
        "a = 1 f = () => { a = 2 return a } RANGE |> limit(n: f())",
        "RANGE |> filter(fn: (r, x=1) => r._value > 0.0)",
        "RANGE |> filter(fn: (r) => r.nothing > 0.0)",
        "RANGE |> map(fn: (r) => ({r with v: if r.nothing == 1 then 1 else 2}))",
        "RANGE |> min(column: \"_time\")",
    ] {
        answer(text).unwrap_or_else(|error| panic!("{text}: {error}"));
    }
}

#[test]
fn an_extern_that_is_no_file_is_refused() {
    let limits = Limits { memory_max: 64 << 20, is_over: &|| None };
    for (json, part) in [("5", "expected an object"), ("{\"body\": 5}", "body is not an array")] {
        let json = serde_json::from_str(json).expect("JSON");
        let query = Query { text: RANGE, external: Some(&json), parameters: None, now: 0 };
        let error = run(&samples(), query, limits).expect_err(part);
        assert!(error.message.contains(part), "{}", error.message);
    }
}

/// Two rows that are a nanosecond apart, long after the epoch.
const CLOSE: &str = "import \"array\" array.from(rows: [{_time: 2020-09-13T12:26:40.000000001Z, _value: 1.0}, \
                     {_time: 2020-09-13T12:26:40.000000002Z, _value: 3.0}]) |> ";

#[test]
fn times_differ_by_nanoseconds() {
    let value = |call: &str| {
        let text = format!("{CLOSE}{call} |> map(fn: (r) => ({{_value: r._value}}))");
        answer(&text).expect(&text).trim_end().rsplit(',').next().map(str::to_string)
    };
    assert_eq!(value("derivative(unit: 1ns)").as_deref(), Some("2"));
    assert_eq!(value("integral(unit: 1ns)").as_deref(), Some("2"));
}

#[test]
fn nan_is_neither_the_least_nor_the_most() {
    let rows = "import \"array\" array.from(rows: [{_value: 1.0}, {_value: float(v: \"NaN\")}, {_value: 3.0}])";
    for (call, expected) in [("min", "1"), ("max", "3"), ("spread", "2")] {
        let found = answer(&format!("{rows} |> {call}()")).expect(call);
        assert!(found.trim_end().ends_with(&format!(",{expected}")), "{call}: {found}");
    }
}

#[test]
fn windows_with_the_same_bounds_are_one() {
    let text = "RANGE |> group(columns: [\"host\"]) |> timedMovingAverage(every: 5s, period: 1h) |> count()";
    let by_hand = "RANGE |> group(columns: [\"host\"]) |> window(every: 5s, period: 1h) |> mean() \
                   |> duplicate(column: \"_stop\", as: \"_time\") |> window(every: inf) |> count()";
    assert_eq!(answer(text), answer(by_hand));
}
