//! Queries over a few samples, as they are answered in CSV.

use crate::fuzzing::{fuzz_flux, samples};
use crate::{Annotation, Dialect, ErrorKind, Limits, Query, run};
use rng::Random;

const RANGE: &str = "from(bucket: \"db\") |> range(start: 0, stop: 20)";

fn limits() -> Limits<'static> {
    Limits { memory_max: 64 << 20, is_over: &|| None }
}

fn query(text: &str) -> Query<'_> {
    Query { text, external: None, parameters: None, now: 20_000_000_000 }
}

/// The answer with `\n` at the ends of lines, or the error.
pub(crate) fn answer(text: &str, dialect: &Dialect) -> String {
    let text = text.replace("RANGE", RANGE);
    match run(&samples(), query(&text), limits()) {
        Ok(outcomes) => {
            let mut out = Vec::new();
            dialect.write(&outcomes, &mut out).expect("memory takes every byte");
            String::from_utf8(out).expect("text").replace("\r\n", "\n")
        }
        Err(error) => error.words(&text),
    }
}

#[track_caller]
pub(crate) fn check(text: &str, expected: &str) {
    assert_eq!(answer(text, &Dialect::default()).trim_end(), expected.trim(), "{text}");
}

/// Only some columns, without keys: most tests are about rows.
#[track_caller]
fn check_rows(text: &str, columns: &str, expected: &str) {
    check(&format!("{text} |> keep(columns: [{columns}])"), expected);
}

#[test]
fn tables_as_influxdb_writes_them() {
    let annotations = vec![Annotation::Datatype, Annotation::Group, Annotation::Default];
    let dialect = Dialect { annotations, ..Dialect::default() };
    let text =
        r#"RANGE |> filter(fn: (r) => r._measurement == "m" and r["host"] == "a") |> limit(n: 1)"#;
    let expected = "\
#datatype,string,long,dateTime:RFC3339,dateTime:RFC3339,dateTime:RFC3339,double,string,string,string
#group,false,false,true,true,false,false,true,true,true
#default,_result,,,,,,,,
,result,table,_start,_stop,_time,_value,_field,_measurement,host
,,0,1970-01-01T00:00:00Z,1970-01-01T00:00:20Z,1970-01-01T00:00:00Z,0.5,f,m,a

#datatype,string,long,dateTime:RFC3339,dateTime:RFC3339,dateTime:RFC3339,long,string,string,string
#group,false,false,true,true,false,false,true,true,true
#default,_result,,,,,,,,
,result,table,_start,_stop,_time,_value,_field,_measurement,host
,,1,1970-01-01T00:00:00Z,1970-01-01T00:00:20Z,1970-01-01T00:00:00Z,0,i,m,a

#datatype,string,long,dateTime:RFC3339,dateTime:RFC3339,dateTime:RFC3339,boolean,string,string,string
#group,false,false,true,true,false,false,true,true,true
#default,_result,,,,,,,,
,result,table,_start,_stop,_time,_value,_field,_measurement,host
,,2,1970-01-01T00:00:00Z,1970-01-01T00:00:20Z,1970-01-01T00:00:00Z,false,up,m,a

";
    assert_eq!(answer(text, &dialect), expected);
}

#[test]
fn filters() {
    let count =
        |condition: &str| format!("RANGE |> filter(fn: (r) => {condition}) |> group() |> count()");
    let rows = |n: u32| format!(",result,table,_value\n,_result,0,{n}");
    check(&count(r#"r._field == "f" and r.host =~ /^(a|b)$/"#), &rows(40));
    check(&count(r#"r._field == "f" and r.host !~ /a/"#), &rows(20));
    check(&count(r#"r._field == "f" and not (r.host == "a")"#), &rows(20));
    check(&count(r#"r._field == "f" and exists r.host"#), &rows(40));
    check(&count(r#"r._field == "f" and not exists r.rack"#), &rows(40));
    check(&count(r#"(r._field == "f" or r._field == "none") and r._value > 5.0"#), &rows(22));
    let mixed = count(r#"r._field == "f" and r.host == "a" or r._field == "i" and r.host == "b""#);
    let words = "group: schema collision: cannot group float and int types together";
    assert!(answer(&mixed, &Dialect::default()).contains(words), "{mixed}");
    check(&count(r#"r._field == "f" and (r.host == "a" or r._value < 1.0)"#), &rows(22));
    check(&count(r#"r._field == "f" and r._time < 1970-01-01T00:00:05Z"#), &rows(10));
    check(&count(r#"contains(value: r._field, set: ["f", "g"])"#), &rows(40));
    check(&count(r#"r._measurement == "n""#), "");
    check(
        "option now = () => 1970-01-01T00:00:10Z from(bucket: \"db\") |> range(start: -5s) |> filter(fn: (r) => \
         r._field == \"f\") |> group() |> count()",
        &rows(10),
    );
}

#[test]
fn windows_end_where_time_does() {
    let count = |range: &str| {
        format!(
            "from(bucket: \"db\") |> range({range}) |> filter(fn: (r) => r._field == \"f\" and r.host == \"a\") \
             |> window(every: 1y, createEmpty: true) |> count() |> group() |> count()"
        )
    };
    check(&count("start: -400y"), ",result,table,_value\n,_result,0,294");
    check(&count("start: 2262-01-01T00:00:00Z, stop: time(v: 9223372036854775807)"), "");
}

#[test]
fn windows_and_aggregates() {
    let field = r#"RANGE |> filter(fn: (r) => r._field == "f" and r.host == "a")"#;
    check_rows(
        &format!("{field} |> aggregateWindow(every: 8s, fn: mean, createEmpty: false)"),
        r#""_time", "_value""#,
        ",result,table,_time,_value
,_result,0,1970-01-01T00:00:08Z,5.75
,_result,0,1970-01-01T00:00:16Z,5.375
,_result,0,1970-01-01T00:00:20Z,4.75",
    );
    check_rows(
        &format!("{field} |> aggregateWindow(every: 8s, fn: last, timeSrc: \"_start\")"),
        r#""_time", "_value""#,
        ",result,table,_time,_value
,_result,0,1970-01-01T00:00:00Z,5.5
,_result,0,1970-01-01T00:00:08Z,6.5
,_result,0,1970-01-01T00:00:16Z,1.5",
    );
    check_rows(
        &format!(
            "{field} |> aggregateWindow(every: 10s, column: \"_value\", fn: (column, tables=<-) => tables |> \
             quantile(q: 0.5, column: column))"
        ),
        r#""_time", "_value""#,
        ",result,table,_time,_value
,_result,0,1970-01-01T00:00:10Z,6
,_result,0,1970-01-01T00:00:20Z,5",
    );
    check_rows(
        &format!("{field} |> range(start: 18, stop: 26) |> aggregateWindow(every: 4s, fn: count)"),
        r#""_time", "_value""#,
        ",result,table,_time,_value\n,_result,0,1970-01-01T00:00:20Z,2",
    );
    check_rows(
        &format!(
            "{field} |> window(every: 10s) |> sum() |> duplicate(column: \"_stop\", as: \"_time\") |> window(every: inf)"
        ),
        r#""_stop", "_time", "_value""#,
        ",result,table,_stop,_value,_time
,_result,0,1970-01-01T00:00:20Z,56,1970-01-01T00:00:10Z
,_result,0,1970-01-01T00:00:20Z,52,1970-01-01T00:00:20Z",
    );
    for (call, value) in [
        ("mean()", "5.4"),
        ("sum()", "108"),
        ("min()", "0.5"),
        ("max()", "10.5"),
        ("count()", "20"),
        ("first()", "0.5"),
        ("last()", "1.5"),
        ("median()", "5.5"),
        ("quantile(q: 0.25)", "2.5"),
        ("spread()", "10"),
        ("integral(unit: 1s)", "107"),
    ] {
        let expected = format!(",result,table,_value\n,_result,0,{value}");
        check_rows(&format!("{field} |> {call}"), "\"_value\"", &expected);
    }
}

#[test]
fn shapes() {
    check(
        r#"RANGE |> filter(fn: (r) => r._field != "up") |> last() |> toFloat() |> pivot(rowKey: ["_time"], columnKey: ["_field"], valueColumn: "_value") |> drop(columns: ["_start", "_stop"])"#,
        ",result,table,_time,_measurement,host,f,i
,_result,0,1970-01-01T00:00:19Z,m,a,1.5,1
,_result,1,1970-01-01T00:00:19Z,m,b,1.5,1",
    );
    check(
        r#"RANGE |> filter(fn: (r) => r._field == "i") |> last() |> map(fn: (r) => ({r with _value: r._value * 2 + 1, name: "${r.host}!"})) |> keep(columns: ["_value", "name"]) |> rename(columns: {name: "n"})"#,
        ",result,table,_value,n\n,_result,0,3,a!\n,_result,0,3,b!",
    );
    check(
        r#"RANGE |> filter(fn: (r) => r._field == "i") |> group(columns: ["host"]) |> sort(desc: true) |> limit(n: 2) |> tail(n: 1) |> keep(columns: ["_time", "host"])"#,
        ",result,table,_time,host
,_result,0,1970-01-01T00:00:14Z,a
,_result,1,1970-01-01T00:00:14Z,b",
    );
    check(
        r#"RANGE |> keep(columns: ["host"]) |> group() |> distinct(column: "host")"#,
        ",result,table,_value\n,_result,0,a\n,_result,0,b",
    );
    check(
        r#"a = RANGE |> filter(fn: (r) => r._field == "i") |> last() b = RANGE |> filter(fn: (r) => r._field == "f") |> last()
           join(tables: {a: a, b: b}, on: ["host", "_time"]) |> map(fn: (r) => ({host: r.host, d: r._value_b - float(v: r._value_a)})) |> group()"#,
        ",result,table,host,d\n,_result,0,a,0.5\n,_result,0,b,0.5",
    );
    check(
        r#"RANGE |> filter(fn: (r) => r._field == "i") |> count() |> yield(name: "n") |> sum() |> drop(fn: (column) => column =~ /^_st/) |> yield(name: "s")"#,
        ",result,table,_start,_stop,_field,_measurement,host,_value
,n,0,1970-01-01T00:00:00Z,1970-01-01T00:00:20Z,i,m,a,20
,n,1,1970-01-01T00:00:00Z,1970-01-01T00:00:20Z,i,m,b,20

,result,table,_field,_measurement,host,_value
,s,0,i,m,a,20
,s,1,i,m,b,20",
    );
}

#[test]
fn strings() {
    let mut source = influxql::memory::MemorySource::default();
    for (second, state) in ["open", "shut", "open"].into_iter().enumerate() {
        source.add_text("door", &[("host", "a")], "state", (second as i64 * 1_000_000_000, state));
    }
    let check = |call: &str, expected: &str| {
        let text = format!("{RANGE} |> {call} |> keep(columns: [\"_value\"])");
        let outcomes =
            run(&source, query(&text), limits()).unwrap_or_else(|e| panic!("{text}: {e:?}"));
        let mut out = Vec::new();
        Dialect::default().write(&outcomes, &mut out).expect("memory takes every byte");
        let rows: String = String::from_utf8(out).expect("text").replace("\r\n", "\n");
        assert_eq!(rows.trim_end(), format!(",result,table,_value\n{expected}"), "{text}");
    };
    check("last()", ",_result,0,open");
    check("filter(fn: (r) => r._value == \"shut\")", ",_result,0,shut");
    check("distinct()", ",_result,0,open\n,_result,0,shut");
    check("count()", ",_result,0,3");
    check("aggregateWindow(every: 10s, fn: first, createEmpty: false)", ",_result,0,open");
    let mean = format!("{RANGE} |> mean()");
    let error = run(&source, query(&mean), limits()).expect_err("a mean of strings");
    assert!(error.message.contains("unsupported input type for mean aggregate: string"));
}

/// The samples of Flux' own manual.
const INTS: &str = r#"import "array"
data = array.from(rows: [
    {_time: 2021-01-01T00:00:00Z, tag: "t1", _value: -2}, {_time: 2021-01-01T00:00:10Z, tag: "t1", _value: 10},
    {_time: 2021-01-01T00:00:20Z, tag: "t1", _value: 7}, {_time: 2021-01-01T00:00:30Z, tag: "t1", _value: 17},
    {_time: 2021-01-01T00:00:40Z, tag: "t1", _value: 15}, {_time: 2021-01-01T00:00:50Z, tag: "t1", _value: 4},
]) |> group(columns: ["tag"])
data"#;

#[test]
fn neighbours() {
    let values = |call: &str, expected: &[&str]| {
        let rows: Vec<String> = expected.iter().map(|v| format!(",_result,0,{v}")).collect();
        let expected = format!(",result,table,_value\n{}", rows.join("\n"));
        check(&format!("{INTS} |> {call} |> keep(columns: [\"_value\"])"), &expected);
    };
    values("derivative(nonNegative: true)", &["1.2", "", "1", "", ""]);
    values("derivative(unit: 10s, nonNegative: false)", &["12", "-3", "10", "-2", "-11"]);
    values("difference()", &["12", "-3", "10", "-2", "-11"]);
    values("difference(nonNegative: true)", &["12", "", "10", "", ""]);
    values("cumulativeSum()", &["-2", "8", "15", "32", "47", "51"]);
    values("movingAverage(n: 3)", &["5", "11.333333333333334", "13", "12"]);
    values("stddev()", &["7.063993204979744"]);
    values("unique(column: \"tag\")", &["-2"]);
    values("top(n: 2)", &["17", "15"]);
    values("fill(value: 0)", &["-2", "10", "7", "17", "15", "4"]);
}

#[test]
fn schemas() {
    let head = "import \"influxdata/influxdb/v1\" import \"influxdata/influxdb/schema\"\n";
    let check = |text: &str, expected: &[&str]| {
        let rows: Vec<String> = expected.iter().map(|v| format!(",_result,0,{v}")).collect();
        check(&format!("{head}{text}"), &format!(",result,table,_value\n{}", rows.join("\n")));
    };
    check("schema.measurements(bucket: \"db\")", &["m"]);
    check("v1.tagValues(bucket: \"db\", tag: \"host\")", &["a", "b"]);
    check(
        "schema.tagKeys(bucket: \"db\", predicate: (r) => r._measurement == \"m\", start: -1h)",
        &["_start", "_stop", "_field", "_measurement", "host"],
    );
    check(
        "v1.tagValues(bucket: \"db\", tag: \"host\", predicate: (r) => r._field == \"i\" and r.host != \"a\")",
        &["b"],
    );
    check("schema.fieldKeys(bucket: \"db\")", &["f", "i", "up"]);
    check("schema.measurementFieldKeys(bucket: \"db\", measurement: \"m\")", &["f", "i", "up"]);
    check(
        "schema.measurementTagValues(bucket: \"db\", measurement: \"m\", tag: \"host\")",
        &["a", "b"],
    );
    check(
        "buckets() |> rename(columns: {name: \"_value\"}) |> keep(columns: [\"_value\"])",
        &["db"],
    );
}

#[test]
fn errors_name_the_function_and_its_place() {
    check(
        "from(bucket: \"db\")\n  |> rnge(start: -1h)",
        "error @2:6-2:10: undefined identifier \"rnge\"; did you mean range?",
    );
    check(
        "from(bucket: \"db\") |> ",
        "compilation failed: error @1:23-1:23: expected an expression, found end of text",
    );
    check(
        "from(bucket: \"none\") |> range(start: 0)",
        "runtime error @1:1-1:21: failed to initialize execute state: could not find bucket \"none\". buckets() lists those that exist",
    );
    check("RANGE |> mean(foo: 1)", "error @1:52-1:64: mean: found unexpected argument foo");
    check(
        "RANGE |> limit(n: 1, ofset: 1)",
        "error @1:52-1:73: limit: found unexpected argument ofset; did you mean offset?",
    );
    check("RANGE |> limit()", "error @1:52-1:59: limit: missing required argument n");
    check(
        "from(bucket: \"db\") |> last()",
        "runtime error @1:23-1:29: last: cannot submit unbounded read to \"db\"; try bounding 'from' with a call to 'range'",
    );
    check(
        "import \"nowhere\"",
        "error @1:1-1:17: package \"nowhere\" is not supported here (docs/doors/flux.md lists those that are)",
    );
    check(
        "RANGE |> filter(fn: (r) => r._field == \"f\") |> map(fn: (r) => ({r with _value: r._value * 2}))",
        "runtime error @1:122-1:134: unsupported binary expression float * int",
    );
    check(
        "import \"experimental\" import \"array\" array.from(rows: [{t: experimental.subDuration(d: 1mo, \
         from: 2021-03-31T00:00:00Z)}])",
        ",result,table,t\n,_result,0,2021-02-28T00:00:00Z",
    );
    check(
        "x = 1",
        "runtime error: this Flux script returns no streaming data: end it with a pipeline, as from(bucket: ..) |> range(start: ..)",
    );
    let deep = format!("{}1{}", "(".repeat(1000), ")".repeat(1000));
    assert!(answer(&deep, &Dialect::default()).contains("levels of brackets"));
    let wide = format!("x = 1{}", " + 1".repeat(1000));
    assert!(answer(&wide, &Dialect::default()).contains("levels"));
    let looped = "f = (g) => g(g: g)\nf(g: f)";
    assert!(answer(looped, &Dialect::default()).contains("within each other"));
    let nested = "from(bucket: \"db\") |> range(start: 0) |> reduce(identity: {a: [0]}, fn: (r, accumulator) => \
                  ({a: [accumulator]})) |> yield(name: \"x\")";
    assert!(answer(nested, &Dialect::default()).contains("cannot be a column"));
    let wrapped = format!("f = (g) => () => g()\nx0 = () => 1\n{}", {
        let calls = |n: usize| format!("x{n} = f(g: f(g: f(g: x{})))\n", n - 1);
        (1..900).map(calls).collect::<String>()
    });
    assert!(answer(&wrapped, &Dialect::default()).contains("functions within each other"));
    let patterns = format!("x = [{}]", "/a/, ".repeat(200));
    assert!(answer(&patterns, &Dialect::default()).contains("regular expressions"));
    let memory = Limits { memory_max: 1_000, is_over: &|| None };
    let error = run(&samples(), query(RANGE), memory).expect_err("too much");
    assert_eq!(error.kind, ErrorKind::Limit);
    let over = Limits { memory_max: 1 << 20, is_over: &|| Some("time is over".to_string()) };
    assert_eq!(run(&samples(), query(RANGE), over).expect_err("late").kind, ErrorKind::Limit);
}

#[test]
fn values_that_come_beside_the_query() {
    let json = serde_json::json!({
        "type": "File",
        "body": [{ "type": "OptionStatement", "assignment": {
            "type": "VariableAssignment", "id": { "type": "Identifier", "name": "v" },
            "init": { "type": "ObjectExpression", "properties": [
                { "type": "Property", "key": { "type": "Identifier", "name": "start" },
                  "value": { "type": "UnaryExpression", "operator": "-", "argument": {
                      "type": "DurationLiteral", "values": [{ "magnitude": 10, "unit": "s" }] } } },
            ] } } }],
    });
    let parameters = serde_json::json!({ "field": "i" });
    let text = "from(bucket: \"db\") |> range(start: v.start) |> filter(fn: (r) => r._field == params.field) \
                |> group() |> count()";
    let asked = Query { external: Some(&json), parameters: Some(&parameters), ..query(text) };
    let outcomes = run(&samples(), asked, limits()).expect("an answer");
    let mut out = Vec::new();
    Dialect::default().write(&outcomes, &mut out).expect("memory takes every byte");
    assert_eq!(String::from_utf8_lossy(&out), ",result,table,_value\r\n,_result,0,20\r\n\r\n");
}

/// Texts that are changed at random.
const SEEDS: &[&str] = &[
    r#"from(bucket: "db") |> range(start: -1h, stop: now()) |> filter(fn: (r) => r["_measurement"] == "m" and (r.host == "a" or r.host =~ /b|c/) and not exists r.x) |> aggregateWindow(every: 5s, fn: mean, createEmpty: true) |> yield(name: "mean")"#,
    r#"import "influxdata/influxdb/schema" schema.tagValues(bucket: "db", tag: "host", predicate: (r) => r._field == "f", start: -1h)"#,
    r#"option v = {start: -1h, stop: now()} data = from(bucket: "db") |> range(start: v.start) |> group(columns: ["host"], mode: "by") |> pivot(rowKey: ["_time"], columnKey: ["_field"], valueColumn: "_value")"#,
    r#"import "math" f = (tables=<-, n=2) => { x = n * 2 return tables |> map(fn: (r) => ({r with _value: if r._value > 1.5 then math.pow(x: r._value, y: 2.0) else 0.0, s: "a ${r.host + "b"} c"})) } from(bucket: "db") |> range(start: 0) |> f(n: 3) |> derivative(unit: 1m) |> sort(columns: ["_value"], desc: true) |> limit(n: 3, offset: 1)"#,
    r#"a = from(bucket: "db") |> range(start: 1970-01-01T00:00:00Z) |> window(every: 1mo, period: 2mo) |> union(tables: [a]) |> join(tables: {a: a, b: a}, on: ["_time"]) |> reduce(identity: {n: 0}, fn: (r, accumulator) => ({n: accumulator.n + 1}))"#,
];

#[test]
fn no_text_panics() {
    let mut rng = Random::seeded(7);
    let pieces: Vec<&str> = SEEDS
        .iter()
        .flat_map(|seed| seed.split_inclusive([' ', '(', ')', '.', ':', '"']))
        .collect();
    for _ in 0..8_000 {
        let seed = *rng.pick(SEEDS);
        let mut text = seed.to_string();
        for _ in 0..=rng.below(4) {
            let place = |rng: &mut Random, text: &str| {
                let mut at = rng.index(text.len() + 1);
                while !text.is_char_boundary(at) {
                    at -= 1;
                }
                at
            };
            let at = place(&mut rng, &text);
            match rng.below(4) {
                0 => text.truncate(at),
                1 => {
                    let piece: &&str = rng.pick(pieces.as_slice());
                    text.insert_str(at, piece);
                }
                2 => text.insert(at, char::from(rng.below(128) as u8)),
                _ => {
                    let other = place(&mut rng, &text);
                    text.replace_range(at.min(other)..at.max(other).min(at.min(other) + 9), "");
                }
            }
        }
        fuzz_flux(text.as_bytes());
    }
}

/// A string of 16 << n bytes, as `s0` and so on.
fn doubled(n: usize) -> String {
    let mut text = "import \"strings\"\nimport \"regexp\"\ns0 = \"abcdefghijklmnop\"\n".to_string();
    for at in 0..n {
        text.push_str(&format!("s{} = s{at} + s{at}\n", at + 1));
    }
    text
}

#[test]
fn values_are_counted_as_memory() {
    let held = [
        ("strings.split(v: s10, t: \"\")", 20),
        ("s15 + \"x\"", 20),
        ("\"${s15}x\"", 20),
        ("strings.toUpper(v: s15)", 20),
        ("regexp.compile(v: \"a+\")", 100),
        ("(t |> findColumn(fn: (key) => true, column: \"_value\"))", 6_000),
        ("[1, 2, 3]", 50_000),
        ("{a: 1}", 50_000),
        ("(() => 1)", 50_000),
    ];
    let memory = Limits { memory_max: 4 << 20, is_over: &|| None };
    for (value, count) in held {
        let list = vec![value; count].join(", ");
        let tables = format!("{RANGE} |> filter(fn: (r) => r._field == \"f\") |> group()");
        let text = format!("{}t = {tables}\na = [{list}]\n", doubled(15));
        let error = run(&samples(), query(&text), memory).expect_err("too much");
        assert!(error.message.contains("--query.max-memory"), "{value}: {}", error.message);
        assert_eq!(error.kind, ErrorKind::Limit);
    }
}

#[test]
fn what_is_gone_is_given_back() {
    let memory = Limits { memory_max: 2 << 20, is_over: &|| None };
    let many = |value: &str| format!("{}a = [{}]\n", doubled(13), vec![value; 200].join(", "));
    let rows = "RANGE |> filter(fn: (r) => r._field == \"f\")".replace("RANGE", RANGE);
    let texts = [
        format!("{}{rows}", many("strings.strlen(v: s13 + \"x\")")),
        format!("{}{rows}", many("length(arr: strings.split(v: s6, t: \"\"))")),
        format!(
            "import \"strings\"\nf = (s) => {{ t = s + s return strings.strlen(v: t) }}\n{}{rows}",
            many("f(s: s12)").replace("import \"strings\"\nimport \"regexp\"\n", "")
        ),
        format!(
            "{}{rows} |> map(fn: (r) => ({{r with n: strings.strlen(v: s13 + r.host)}}))",
            doubled(13)
        ),
        format!(
            "{}{rows} |> group() |> reduce(identity: {{n: 0, s: \"\"}}, fn: (r, accumulator) => \
             ({{n: accumulator.n + 1, s: s13 + r.host}}))",
            doubled(13)
        ),
        format!(
            "{}{rows} |> filter(fn: (r) => strings.hasSuffix(v: s13 + r.host, suffix: r.host))",
            doubled(13)
        ),
    ];
    for text in texts {
        let found = run(&samples(), query(&text), memory);
        assert!(found.is_ok(), "{text}: {:?}", found.err());
    }
    // What stays in the rows is counted.
    let text = format!(
        "{}{rows} |> map(fn: (r) => ({{r with s: s15 + string(v: r._value)}}))",
        doubled(15)
    );
    assert_eq!(run(&samples(), query(&text), memory).expect_err("too much").kind, ErrorKind::Limit);
}

#[test]
fn regular_expressions_are_bounded() {
    let literal = serde_json::json!({ "type": "RegexpLiteral", "value": "/a/" });
    let json = serde_json::json!({ "type": "File", "body": [{
        "type": "VariableAssignment", "id": { "name": "v" },
        "init": { "type": "ArrayExpression", "elements": vec![literal; 101] },
    }] });
    let error = run(&samples(), Query { external: Some(&json), ..query("x = 1") }, limits())
        .expect_err("too many");
    assert!(error.message.contains("more than 100 regular expressions"), "{}", error.message);
    // One match alone may be too much: no clock is looked at within it.
    for text in [
        "x = s15 =~ /([ab]?){1000}([ab]?){1000}([ab]?){1000}[^a]/",
        "x = regexp.matchRegexpString(r: /([ab]?){1000}([ab]?){1000}([ab]?){1000}[^a]/, v: s15)",
        "x = regexp.replaceAllString(r: /([ab]?){1000}([ab]?){1000}([ab]?){1000}[^a]/, v: s15, t: \"\")",
    ] {
        let text = format!("{}{text}\n", doubled(15));
        let error = run(&samples(), query(&text), limits()).expect_err("too much");
        assert!(error.message.contains("their product may be"), "{}", error.message);
    }
    // Many that are heavy look at the clock early.
    let looks = std::cell::Cell::new(0);
    let is_over = || {
        looks.set(looks.get() + 1);
        (1 < looks.get()).then(|| "time is over".to_string())
    };
    let memory = Limits { memory_max: 64 << 20, is_over: &is_over };
    let heavy = vec!["s9 =~ /^b{600}$/"; 20].join(", ");
    let text = format!("{}x = [{heavy}]\n{}", doubled(9), "1\n".repeat(10));
    let error = run(&samples(), query(&text), memory).expect_err("late");
    assert_eq!(&*error.message, "time is over");
}

#[test]
fn regular_expressions_mean_what_go_means() {
    let text = |regex: &str| {
        format!(
            "import \"array\"\narray.from(rows: [{{s: \"m\\u\"}}, {{s: \"mé\"}}, {{s: \"me\"}}]) \
             |> filter(fn: (r) => r.s =~ {regex})"
        )
        .replace("m\\u", "m{x")
    };
    check(&text(r"/^m\w$/"), ",result,table,s\n,_result,0,me");
    check(&text(r"/m{x/"), ",result,table,s\n,_result,0,m{x");
    check(&text(r"/\Qm{x\E/"), ",result,table,s\n,_result,0,m{x");
}

#[test]
fn strings_are_those_of_go() {
    let row = |expression: &str| {
        format!("import \"array\" import \"strings\" array.from(rows: [{{v: {expression}}}])")
    };
    for (expression, expected) in [
        ("strings.joinStr(arr: strings.split(v: \"abc\", t: \"\"), v: \"|\")", "a|b|c"),
        ("length(arr: strings.split(v: \"\", t: \"\"))", "0"),
        ("length(arr: strings.split(v: \"\", t: \",\"))", "1"),
        ("strings.joinStr(arr: strings.split(v: \"a,b,\", t: \",\"), v: \"|\")", "a|b|"),
        (
            "strings.joinStr(arr: strings.splitN(v: \"a,b,c\", t: \",\", i: 2), v: \"|\")",
            "a|\"b,c\"",
        ),
        ("strings.joinStr(arr: strings.splitAfter(v: \"a-b-c\", t: \"-\"), v: \"|\")", "a-|b-|c"),
        ("strings.title(v: \"he is o'neil a-b\")", "He Is O'Neil A-B"),
        ("strings.title(v: \"a_b é.ü x2y 3z\")", "A_b É.Ü X2y 3z"),
        ("strings.toTitle(v: \"a b\")", "A B"),
        ("strings.toUpper(v: \"straße é\")", "STRAßE É"),
        ("strings.toLower(v: \"İÉ\")", "ié"),
        ("strings.replaceAll(v: \"abc\", t: \"\", u: \"-\")", "-a-b-c-"),
        ("strings.replaceAll(v: \"\", t: \"\", u: \"-\")", "-"),
        ("strings.replaceAll(v: \"aaa\", t: \"a\", u: \"b\")", "bbb"),
        ("strings.replace(v: \"aaa\", t: \"a\", u: \"b\", i: 2)", "bba"),
        ("strings.replace(v: \"abc\", t: \"\", u: \"-\", i: 2)", "-a-bc"),
        ("strings.countStr(v: \"cheese\", substr: \"e\")", "3"),
        ("strings.countStr(v: \"five\", substr: \"\")", "5"),
        ("strings.index(v: \"éa\", substr: \"a\")", "2"),
        ("strings.lastIndex(v: \"go gopher\", substr: \"go\")", "3"),
        ("strings.index(v: \"a\", substr: \"b\")", "-1"),
        ("strings.indexAny(v: \"golang\", chars: \"gy\")", "0"),
        ("strings.lastIndexAny(v: \"golang\", chars: \"gop\")", "5"),
        ("strings.containsAny(v: \"abc\", chars: \"xc\")", "true"),
        ("strings.compare(v: \"a\", t: \"b\")", "-1"),
        ("strings.equalFold(v: \"Go\", t: \"GO\")", "true"),
        ("strings.isDigit(v: \"7\")", "true"),
        ("strings.isUpper(v: \"a\")", "false"),
        ("strings.repeat(v: \"ha\", i: 3)", "hahaha"),
        ("strings.trimLeft(v: \"xxa\", cutset: \"x\")", "a"),
        ("strings.trimRight(v: \"axx\", cutset: \"x\")", "a"),
    ] {
        let found = answer(&row(expression), &Dialect::default());
        let last = found.trim_end().lines().last().unwrap_or("");
        let expected = expected.replace("a|\"b,c\"", "\"a|b,c\"");
        assert_eq!(
            last,
            format!("_result,0,{expected}").replacen("_result", ",_result", 1),
            "{expression}: {found}"
        );
    }
}

#[test]
fn zones_that_are_none_are_refused() {
    let row = |expression: &str| {
        format!("import \"array\" import \"date\" array.from(rows: [{{v: {expression}}}])")
    };
    let nowhere = "location: {zone: \"Nowhere/City\", offset: 0h}";
    let words = "unknown time zone \"Nowhere/City\"";
    for expression in [
        "date.hour(t: 2024-02-29T12:00:00Z, LOCATION)",
        "date.year(t: 2024-02-29T12:00:00Z, LOCATION)",
        "date.week(t: 2024-02-29T12:00:00Z, LOCATION)",
        "date.truncate(t: 2024-02-29T12:00:00Z, unit: 1d, LOCATION)",
        "date.add(d: 1d, to: 2024-02-29T12:00:00Z, LOCATION)",
        "date.sub(d: 1d, from: 2024-02-29T12:00:00Z, LOCATION)",
    ] {
        let found = answer(&row(&expression.replace("LOCATION", nowhere)), &Dialect::default());
        assert!(found.contains(words), "{expression}: {found}");
    }
    for text in [
        format!("RANGE |> aggregateWindow(every: 1h, fn: count, {nowhere})"),
        format!("RANGE |> window(every: 1h, {nowhere})"),
        "option location = {zone: \"Nowhere/City\", offset: 0h} RANGE".to_string(),
    ] {
        let found = answer(&text, &Dialect::default());
        assert!(found.contains(words), "{text}: {found}");
    }
    for (expression, expected) in [
        (
            "date.hour(t: 2024-02-29T12:00:00Z, location: {zone: \"Europe/Berlin\", offset: 0h})",
            "13",
        ),
        ("date.hour(t: 2024-02-29T12:00:00Z, location: {zone: \"UTC\", offset: 2h})", "14"),
        ("date.hour(t: 2024-02-29T12:00:00Z, location: {zone: \"\", offset: 0h})", "12"),
        ("date.week(t: 2021-01-01T12:00:00Z)", "53"),
        ("date.quarter(t: 2024-05-01T00:00:00Z)", "2"),
        ("date.millisecond(t: 2024-05-01T00:00:00.123456789Z)", "123"),
        ("date.microsecond(t: 2024-05-01T00:00:00.123456789Z)", "123456"),
        ("date.nanosecond(t: 2024-05-01T00:00:00.123456789Z)", "123456789"),
    ] {
        let found = answer(&row(expression), &Dialect::default());
        assert!(found.trim_end().ends_with(&format!(",{expected}")), "{expression}: {found}");
    }
}

#[test]
fn csv_is_read() {
    let text = "#datatype,string,long,dateTime:RFC3339,double,string,boolean,long\n\
                #group,false,false,false,false,true,false,false\n\
                #default,_result,,,,,,7\n\
                ,result,table,_time,_value,host,up,n\n\
                ,,0,1970-01-01T00:00:01Z,1.5,\"a,b\",true,\n\
                ,,0,1970-01-01T00:00:02Z,,\"a,b\",false,8\n\
                ,,1,1970-01-01T00:00:03Z,2.5,c,true,9\n\n\
                #datatype,string,long,string\n#group,false,false,false\n#default,_result,,\n\
                ,result,table,x\n,,2,\"say \"\"hi\"\"\"\n";
    let quoted = text.replace('"', "\\\"").replace('\n', "\\n");
    check(
        &format!("import \"csv\" csv.from(csv: \"{quoted}\")"),
        ",result,table,_time,_value,host,up,n
,_result,0,1970-01-01T00:00:01Z,1.5,\"a,b\",true,7
,_result,0,1970-01-01T00:00:02Z,,\"a,b\",false,8
,_result,1,1970-01-01T00:00:03Z,2.5,c,true,9

,result,table,x
,_result,2,\"say \"\"hi\"\"\"",
    );
    check(
        &format!(
            "import \"csv\" csv.from(csv: \"{quoted}\") |> filter(fn: (r) => r.host == \"c\") |> \
             range(start: 0, stop: 20) |> keep(columns: [\"_value\"])"
        ),
        ",result,table,_value\n,_result,0,2.5",
    );
    check(
        "import \"csv\" csv.from(csv: \"a,b\\n1,x\\n2,\\n\", mode: \"raw\")",
        ",result,table,a,b\n,_result,0,1,x\n,_result,0,2,",
    );
    for (csv, words) in [
        ("a,b\\n1,2", "missing expected annotation datatype"),
        (
            "#datatype,string,long,money\\n#group,false,false,false\\n#default,_result,,\\n,result,table,x\\n,,0,1",
            "unsupported datatype",
        ),
        (
            "#datatype,string,long,long\\n#group,false,false,false\\n#default,_result,,\\n,result,table,x\\n,,0,y",
            "is no long",
        ),
        (
            "#datatype,string,long,long\\n#group,false,false,false\\n#default,_result,,\\n,result,table,x\\n,,0",
            "wrong number of fields",
        ),
        (
            "#datatype,string,long,long\\n#group,false,false,false\\n#default,_result,,\\n",
            "missing expected header row",
        ),
        ("a,\\\"b", "a quote is not closed"),
    ] {
        let found =
            answer(&format!("import \"csv\" csv.from(csv: \"{csv}\")"), &Dialect::default());
        assert!(found.contains(words), "{csv}: {found}");
    }
}

#[test]
fn json_is_encoded_as_go_does() {
    let encoded = |value: &str| {
        let text = format!(
            "import \"array\" import \"json\" array.from(rows: [{{v: string(v: json.encode(v: {value}))}}])"
        );
        let found = answer(&text, &Dialect { delimiter: ';', ..Dialect::default() });
        let last = found.trim_end().lines().last().unwrap_or("").to_string();
        let cell = last.strip_prefix(";_result;0;").unwrap_or(&last);
        cell.trim_matches('"').replace("\"\"", "\"")
    };
    for (value, expected) in [
        ("{b: 1, a: \"x\"}", r#"{"a":"x","b":1}"#),
        ("[1.5, 2.0, float(v: \"1e-9\"), float(v: \"1e21\")]", "[1.5,2,1e-9,1e+21]"),
        ("\"<a> & \\\"b\\\"\"", r#"\u003ca\u003e \u0026 \"b\""#),
        ("[true, false]", "[true,false]"),
        ("2024-02-29T12:00:00.5Z", "2024-02-29T12:00:00.5Z"),
        ("1h30m", "1h30m"),
        ("{x: [{y: 1}]}", r#"{"x":[{"y":1}]}"#),
    ] {
        let expected = expected.trim_matches('"');
        assert_eq!(encoded(value), expected, "{value}");
    }
    assert!(encoded("(r) => r").contains("cannot encode"), "{}", encoded("(r) => r"));
}

#[test]
fn rates_and_cardinality() {
    let field = "RANGE |> filter(fn: (r) => r._field == \"f\")";
    // The steps of InfluxDB's own definition of the function.
    let by_hand = |groups: &str| {
        format!(
            "{field} |> derivative(nonNegative: true, unit: 1s) |> aggregateWindow(every: 5s, fn: mean) |> \
             group(columns: [{groups}\"_start\", \"_stop\", \"_time\"]) |> sum() |> \
             group(columns: [{groups}\"_start\", \"_stop\"]) |> sort(columns: [\"_time\"])"
        )
    };
    for (groups, argument) in [("", ""), ("\"host\", ", ", groupColumns: [\"host\"]")] {
        let text = format!(
            "import \"experimental/aggregate\" {field} |> aggregate.rate(every: 5s, unit: 1s{argument})"
        );
        let found = answer(&text, &Dialect::default());
        assert_eq!(found, answer(&by_hand(groups), &Dialect::default()), "{argument}");
        assert!(4 < found.lines().count(), "{found}");
    }
    let count = |more: &str| {
        format!(
            "import \"influxdata/influxdb\" influxdb.cardinality(bucket: \"db\", start: 0, stop: 20{more})"
        )
    };
    let rows = |n: &str| format!(",result,table,_value\n,_result,0,{n}");
    check(&count(", predicate: (r) => r._field == \"f\""), &rows("2"));
    check(&count(", predicate: (r) => r._field == \"f\" and r.host == \"a\""), &rows("1"));
    check(&count(", predicate: (r) => r._measurement == \"none\""), &rows("0"));
}
