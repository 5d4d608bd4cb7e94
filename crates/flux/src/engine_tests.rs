//! Answers of InfluxData's own engine (github.com/influxdata/flux v0.195.2) to pipelines that once had
//! others here. `make test-flux` asks it of many more.

use crate::fuzzing::samples;
use crate::{Dialect, Limits, Query, run};

/// Six rows of one table.
const HEAD: &str = r#"import "array"
array.from(rows: [
    {_time: 1970-01-01T00:00:01Z, t: "a", _value: 3.0},
    {_time: 1970-01-01T00:00:02Z, t: "a", _value: 5.0},
    {_time: 1970-01-01T00:00:04Z, t: "a", _value: 1.0},
    {_time: 1970-01-01T00:00:05Z, t: "b", _value: 5.0},
    {_time: 1970-01-01T00:00:31Z, t: "b", _value: -2.0},
    {_time: 1970-01-01T00:00:32Z, t: "b", _value: 3.0},
]) |> range(start: 1970-01-01T00:00:00Z, stop: 1970-01-01T00:01:00Z) |> "#;

/// Pipelines and the rows of their answers, columns by name, times without their hour.
const ANSWERS: &[(&str, &[&str])] = &[
    (
        "derivative()",
        &[
            "_time=00:02Z _value=2 t=a",
            "_time=00:04Z _value=-2 t=a",
            "_time=00:05Z _value=4 t=b",
            "_time=00:31Z _value=-0.2692307692307692 t=b",
            "_time=00:32Z _value=5 t=b",
        ],
    ),
    (
        "derivative(nonNegative: true)",
        &[
            "_time=00:02Z _value=2 t=a",
            "_time=00:04Z _value= t=a",
            "_time=00:05Z _value=4 t=b",
            "_time=00:31Z _value= t=b",
            "_time=00:32Z _value=5 t=b",
        ],
    ),
    (
        "derivative(nonNegative: true, initialZero: true)",
        &[
            "_time=00:02Z _value=2 t=a",
            "_time=00:04Z _value=0 t=a",
            "_time=00:05Z _value=4 t=b",
            "_time=00:31Z _value=0 t=b",
            "_time=00:32Z _value=5 t=b",
        ],
    ),
    (
        "difference(nonNegative: true, initialZero: true)",
        &[
            "_time=00:02Z _value=2 t=a",
            "_time=00:04Z _value=1 t=a",
            "_time=00:05Z _value=4 t=b",
            "_time=00:31Z _value= t=b",
            "_time=00:32Z _value=5 t=b",
        ],
    ),
    (
        "difference(nonNegative: true, initialZero: true, keepFirst: true)",
        &[
            "_time=00:01Z _value=0 t=a",
            "_time=00:02Z _value=2 t=a",
            "_time=00:04Z _value=1 t=a",
            "_time=00:05Z _value=4 t=b",
            "_time=00:31Z _value= t=b",
            "_time=00:32Z _value=5 t=b",
        ],
    ),
    (
        "increase()",
        &[
            "_time=00:01Z _value=0 t=a",
            "_time=00:02Z _value=2 t=a",
            "_time=00:04Z _value=3 t=a",
            "_time=00:05Z _value=7 t=b",
            "_time=00:31Z _value=7 t=b",
            "_time=00:32Z _value=12 t=b",
        ],
    ),
    ("mode()", &["_value=3", "_value=5"]),
    ("unique() |> mode()", &["_value="]),
    ("quantile(q: 0.3)", &["_value=1.5999999999999996"]),
    (r#"quantile(q: 0.3, method: "exact_mean")"#, &["_value=2"]),
    ("median()", &["_value=3"]),
    ("quantile(q: 0.05)", &["_value=-2"]),
    ("quantile(q: 0.95)", &["_value=5"]),
    (
        "aggregateWindow(every: 10s, fn: max)",
        &[
            "_time=00:10Z _value=5 t=a",
            "_time=00:20Z _value= t=",
            "_time=00:30Z _value= t=",
            "_time=00:40Z _value=3 t=b",
            "_time=00:50Z _value= t=",
            "_time=01:00Z _value= t=",
        ],
    ),
    (
        "aggregateWindow(every: 10s, fn: mean) |> sort(desc: true)",
        &[
            "_time=00:20Z _value=",
            "_time=00:30Z _value=",
            "_time=00:50Z _value=",
            "_time=01:00Z _value=",
            "_time=00:10Z _value=3.5",
            "_time=00:40Z _value=0.5",
        ],
    ),
    (
        "aggregateWindow(every: 10s, fn: mode)",
        &[
            "_time=00:10Z _value=5",
            "_time=00:20Z _value=",
            "_time=00:30Z _value=",
            "_time=00:40Z _value=",
            "_time=00:50Z _value=",
            "_time=01:00Z _value=",
        ],
    ),
    (
        "window(every: 10s) |> aggregateWindow(every: 30s, fn: count)",
        &[
            "_time=00:30Z _value=4",
            "_time=01:00Z _value=0",
            "_time=00:30Z _value=0",
            "_time=01:00Z _value=2",
        ],
    ),
    (
        "aggregateWindow(every: 40s, fn: sum) |> aggregateWindow(every: 1m, fn: count)",
        &["_time=01:00Z _value=1"],
    ),
    (
        r#"group(columns: ["t"], mode: "except") |> count(column: "t")"#,
        &[
            "_time=00:01Z _value=3 t=1",
            "_time=00:02Z _value=5 t=1",
            "_time=00:04Z _value=1 t=1",
            "_time=00:05Z _value=5 t=1",
            "_time=00:31Z _value=-2 t=1",
            "_time=00:32Z _value=3 t=1",
        ],
    ),
    (r#"distinct(column: "none")"#, &["_value="]),
    (
        r#"group(columns: ["t"]) |> duplicate(column: "_value", as: "t") |> limit(n: 1)"#,
        &["_time=00:01Z _value=3 t=3"],
    ),
    (r#"filter(fn: (r) => false, onEmpty: "keep") |> count()"#, &["_value=0"]),
    (
        "range(start: 1970-01-01T00:00:30Z, stop: 1970-01-01T00:10:00Z) |> aggregateWindow(every: 1h, fn: count)",
        &["_time=01:00Z _value=2"],
    ),
    (
        "aggregateWindow(every: 10s, fn: mean) |> exponentialMovingAverage(n: 2)",
        &[
            "_time=00:20Z _value=3.5",
            "_time=00:30Z _value=3.5",
            "_time=00:40Z _value=1.5",
            "_time=00:50Z _value=1.5",
            "_time=01:00Z _value=1.5",
        ],
    ),
    (
        r#"sort(columns: ["t"], desc: true) |> pivot(rowKey: ["_time"], columnKey: ["t"], valueColumn: "_value")"#,
        &[
            "_time=00:05Z a= b=5",
            "_time=00:31Z a= b=-2",
            "_time=00:32Z a= b=3",
            "_time=00:01Z a=3 b=",
            "_time=00:02Z a=5 b=",
            "_time=00:04Z a=1 b=",
        ],
    ),
    (
        "stateCount(fn: (r) => r._value > 2.0)",
        &[
            "_time=00:01Z _value=3 stateCount=1 t=a",
            "_time=00:02Z _value=5 stateCount=2 t=a",
            "_time=00:04Z _value=1 stateCount=-1 t=a",
            "_time=00:05Z _value=5 stateCount=1 t=b",
            "_time=00:31Z _value=-2 stateCount=-1 t=b",
            "_time=00:32Z _value=3 stateCount=1 t=b",
        ],
    ),
    (
        "stateDuration(fn: (r) => r._value > 2.0)",
        &[
            "_time=00:01Z _value=3 stateDuration=0 t=a",
            "_time=00:02Z _value=5 stateDuration=1 t=a",
            "_time=00:04Z _value=1 stateDuration=-1 t=a",
            "_time=00:05Z _value=5 stateDuration=0 t=b",
            "_time=00:31Z _value=-2 stateDuration=-1 t=b",
            "_time=00:32Z _value=3 stateDuration=0 t=b",
        ],
    ),
    ("histogram(bins: [0.0, 3.0, 10.0])", &["_value=1 le=0", "_value=4 le=3", "_value=6 le=10"]),
    (
        "histogram(bins: linearBins(start: 0.0, width: 4.0, count: 2), normalize: true)",
        &["_value=0.16666666666666666 le=0", "_value=0.6666666666666666 le=4", "_value=1 le=+Inf"],
    ),
    ("histogram(bins: [-3.0, 0.0, 3.0, 10.0]) |> histogramQuantile(quantile: 0.5)", &["_value=2"]),
    (r#"integral(unit: 1s, interpolate: "linear")"#, &["_value=2098.5"]),
    (r#"limit(n: 1) |> integral(interpolate: "linear")"#, &["_value=180"]),
    (
        "histogram(bins: logarithmicBins(start: 1.0, factor: 2.0, count: 2))",
        &["_value=2 le=1", "_value=2 le=2", "_value=6 le=+Inf"],
    ),
];

/// The rows of an answer in the form of [`ANSWERS`].
fn rows(pipeline: &str) -> Vec<String> {
    let text = format!("{HEAD}{pipeline}");
    let query = Query { text: &text, external: None, parameters: None, now: 0 };
    let limits = Limits { memory_max: 1 << 20, is_over: &|| None };
    let outcomes = match run(&samples(), query, limits) {
        Ok(outcomes) => outcomes,
        Err(error) => return vec![error.words(&text)],
    };
    let mut out = Vec::new();
    Dialect::default().write(&outcomes, &mut out).expect("memory takes every byte");
    let csv = String::from_utf8(out).expect("text");
    let mut names: Vec<&str> = Vec::new();
    let mut found = Vec::new();
    for line in csv.lines().filter(|line| !line.is_empty()) {
        let cells: Vec<&str> = line.split(',').collect();
        if cells.get(1) == Some(&"result") {
            names = cells;
            continue;
        }
        let mut pairs: Vec<(&str, &str)> = names.iter().copied().zip(cells).skip(3).collect();
        pairs.retain(|(name, _)| !matches!(*name, "_start" | "_stop"));
        pairs.sort_unstable();
        let pairs = pairs.iter().map(|(name, value)| format!("{name}={value}"));
        found.push(pairs.collect::<Vec<_>>().join(" ").replace("1970-01-01T00:", ""));
    }
    found
}

#[test]
fn pipelines_have_the_engines_answers() {
    for (pipeline, expected) in ANSWERS {
        assert_eq!(rows(pipeline), *expected, "{pipeline}");
    }
}
