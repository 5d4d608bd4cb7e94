//! Packages beyond those of everyday: dictionaries, arrays, joins, places, JSON.

use crate::Dialect;
use crate::tests::{answer, check};

/// Checks the one value of an expression, as a string.
#[track_caller]
fn check_value(imports: &[&str], expression: &str, expected: &str) {
    let imports: String = imports.iter().map(|path| format!("import \"{path}\"\n")).collect();
    let text = format!(
        "import \"array\"\n{imports}array.from(rows: [{{_value: string(v: {expression})}}])"
    );
    let found = answer(&text, &Dialect::default());
    let found = found.trim_end().strip_prefix(",result,table,_value\n,_result,0,");
    assert_eq!(found, Some(expected), "{text}: {}", answer(&text, &Dialect::default()));
}

#[track_caller]
fn check_error(text: &str, expected: &str) {
    let found = answer(text, &Dialect::default());
    assert!(found.contains(expected), "{text}: {found}");
}

#[test]
fn dictionaries() {
    let dict = "dict.fromList(pairs: [{key: \"a\", value: 1}, {key: \"b\", value: 2}, {key: \"a\", value: 3}])";
    for (expression, expected) in [
        (format!("dict.get(dict: {dict}, key: \"a\", default: 0)"), "3"),
        (format!("dict.get(dict: {dict}, key: \"c\", default: 0)"), "0"),
        ("dict.get(dict: [1: \"x\", 2: \"y\"], key: 2, default: \"z\")".to_string(), "y"),
        ("dict.get(dict: [:], key: 2, default: \"z\")".to_string(), "z"),
        (
            "dict.get(dict: dict.insert(dict: [1: 5], key: 1, value: 6), key: 1, default: 0)"
                .to_string(),
            "6",
        ),
        ("dict.get(dict: dict.remove(dict: [1: 5], key: 1), key: 1, default: 0)".to_string(), "0"),
    ] {
        check_value(&["dict"], &expression, expected);
    }
    let get = "import \"dict\" dict.get(dict: [1: 2], key: \"a\", default: 0)";
    check_error(get, "argument key: expected int but found string");
    check_error("x = [1: 2, \"a\": 3]", "keys of a dictionary must have one type");
    check_error("x = [1: 2, 3]", "expected keys for all items of a dictionary");
    check_error("x = [1, 2: 3]", "expected keys for all items of a dictionary");
}

#[test]
fn arrays_as_values() {
    for (expression, expected) in [
        ("length(arr: array.concat(arr: [1, 2], v: [3]))", "3"),
        ("(array.map(arr: [1, 2], fn: (x) => x * 10))[1]", "20"),
        ("length(arr: array.filter(arr: [1, 2, 3], fn: (x) => x > 1))", "2"),
        ("(array.toString(arr: [1, 2]))[0] + \"!\"", "1!"),
        ("([1, 2] |> array.toFloat())[1] / 4.0", "0.5"),
    ] {
        check_value(&[], expression, expected);
    }
}

#[test]
fn types_and_numbers() {
    for (expression, expected) in [
        ("types.isType(v: 1, type: \"int\")", "true"),
        ("types.isType(v: \"1\", type: \"int\")", "false"),
        ("types.isNumeric(v: 1.5)", "true"),
        ("types.isNumeric(v: \"1\")", "false"),
        ("math.atan2(y: 0.0, x: 1.0)", "0"),
        ("math.hypot(p: 3.0, q: 4.0)", "5"),
        ("math.roundtoeven(x: 2.5)", "2"),
        ("math.isNaN(f: math.NaN())", "true"),
        ("duration(v: uint(v: 90000000000))", "1m30s"),
        ("uint(v: 2s)", "2000000000"),
        ("math.maxint", "9223372036854775807"),
        ("math.remainder(x: 5.0, y: 3.0)", "-1"),
        ("(math.modf(f: 3.25)).frac", "0.25"),
    ] {
        check_value(&["types", "math"], expression, expected);
    }
    check_error("import \"types\" types.isType(v: 1, type: \"number\")", "invalid type \"number\"");
}

#[test]
fn regular_expressions_tell_places() {
    for (expression, expected) in [
        ("(regexp.findStringIndex(r: /b+/, v: \"abbc\"))[1]", "3"),
        ("length(arr: regexp.findStringIndex(r: /x/, v: \"abbc\"))", "0"),
        ("regexp.getString(r: /a.b/)", "a.b"),
        ("(regexp.splitRegexp(r: /,+/, v: \"a,,b,c\", i: -1))[2]", "c"),
        ("(regexp.splitRegexp(r: /,+/, v: \"a,,b,c\", i: 2))[1]", "\"b,c\""),
        ("length(arr: regexp.splitRegexp(r: /x*/, v: \"abc\", i: -1))", "3"),
        ("length(arr: regexp.splitRegexp(r: /,/, v: \"a,b\", i: 0))", "0"),
    ] {
        check_value(&["regexp"], expression, expected);
    }
}

#[test]
fn json_is_parsed() {
    let text = r#"bytes(v: "{\"a\": [1, 2.5, {\"b\": \"x\"}], \"c\": null, \"d\": true}")"#;
    for (member, expected) in
        [(".a[1]", "2.5"), (".a[2].b", "x"), (".d", "true"), (".a[0] + 1.0", "2")]
    {
        check_value(
            &["experimental/json"],
            &format!("(json.parse(data: {text})){member}"),
            expected,
        );
    }
    let broken = "import \"experimental/json\" json.parse(data: bytes(v: \"{\"))";
    check_error(broken, "json.parse: invalid JSON");
}

#[test]
fn places() {
    let geo = &["experimental/geo"];
    for (expression, expected) in [
        ("geo.getLevel(token: \"166b59\")", "10"),
        ("geo.s2CellIDToken(token: \"89c284\", level: 5)", "89c4"),
        (
            "geo.ST_Contains(region: {lat: 0.0, lon: 0.0, radius: 112.0}, geometry: {lat: 1.0, lon: 0.0})",
            "true",
        ),
        (
            "geo.ST_Contains(region: {lat: 0.0, lon: 0.0, radius: 111.0}, geometry: {lat: 1.0, lon: 0.0})",
            "false",
        ),
        (
            "geo.ST_Contains(region: {minLat: 0.0, maxLat: 2.0, minLon: 5.0, maxLon: 6.0}, geometry: {lat: 2.0, lon: 6.0})",
            "true",
        ),
        (
            "geo.ST_Contains(region: {points: [{lat: 0.0, lon: 0.0}, {lat: 4.0, lon: 0.0}, {lat: 0.0, lon: 4.0}]}, geometry: {lat: 1.0, lon: 1.0})",
            "true",
        ),
        (
            "geo.ST_DWithin(region: {lat: 0.0, lon: 0.0}, geometry: {lat: 1.0, lon: 0.0}, distance: 70.0, units: {distance: \"mile\"})",
            "true",
        ),
        (
            "int(v: geo.ST_Distance(region: {lat: 0.0, lon: 0.0}, geometry: {lat: 0.0, lon: 90.0}))",
            "10007",
        ),
        ("int(v: geo.ST_Length(geometry: {linestring: \"0 0, 90 0, 90 90\"}))", "20015"),
        (
            "int(v: geo.ST_Distance(region: {lat: 1.0, lon: 45.0}, geometry: {linestring: \"0 0, 90 0\"}, units: {distance: \"m\"}))",
            "111195",
        ),
    ] {
        check_value(geo, expression, expected);
    }
    check_error(
        "import \"experimental/geo\" geo.s2CellIDToken(point: {lat: 1.0, lon: 2.0}, level: 31)",
        "between 1 and 30",
    );
    check_error(
        "import \"experimental/geo\" option geo.units = {distance: \"foot\"}",
        "unsupported distance unit \"foot\"",
    );
    check_error(
        "import \"math\" option math.pi = 3.0",
        "option \"pi\" of package \"math\" cannot be set here",
    );
    check_error(
        "import \"experimental/geo\" geo.ST_Contains(region: {lat: 1.0}, geometry: {lat: 1.0, lon: 1.0})",
        "unsupported geometry",
    );
}

#[test]
fn strict_filter_takes_the_unit_of_the_query() {
    let rows =
        "array.from(rows: [{id: \"near\", lat: 0.5, lon: 0.0}, {id: \"far\", lat: 1.0, lon: 0.0}])";
    let text = |unit: &str| {
        format!(
            "import \"array\" import \"experimental/geo\"\noption geo.units = {{distance: \"{unit}\"}}\n{rows} \
             |> geo.strictFilter(region: {{lat: 0.0, lon: 0.0, radius: 69.2}}) |> keep(columns: [\"id\"])"
        )
    };
    check(&text("km"), ",result,table,id\n,_result,0,near");
    check(&text("mile"), ",result,table,id\n,_result,0,near\n,_result,0,far");
}

#[test]
fn joins() {
    let sides = "import \"array\" import \"join\"\n\
        a = array.from(rows: [{k: 1, x: 10}, {k: 2, x: 20}, {k: 2, x: 21}])\n\
        b = array.from(rows: [{k: 2, y: 200}, {k: 3, y: 300}])\n";
    let merge = "as: (l, r) => ({k: if exists l.k then l.k else r.k, x: l.x, y: r.y})";
    let head = ",result,table,k,x,y\n";
    for (method, expected) in [
        ("inner", ",_result,0,2,20,200\n,_result,0,2,21,200"),
        ("left", ",_result,0,1,10,\n,_result,0,2,20,200\n,_result,0,2,21,200"),
        ("right", ",_result,0,2,20,200\n,_result,0,2,21,200\n,_result,0,3,,300"),
        ("full", ",_result,0,1,10,\n,_result,0,2,20,200\n,_result,0,2,21,200\n,_result,0,3,,300"),
    ] {
        let expected = format!("{head}{expected}");
        let by_name = format!(
            "{sides}join.{method}(left: a, right: b, on: (l, r) => l.k == r.k, {merge}) |> sort(columns: [\"k\", \"x\"]) |> keep(columns: [\"k\", \"x\", \"y\"])"
        );
        let found = answer(&by_name, &Dialect::default());
        assert_eq!(found.trim_end().lines().count(), expected.lines().count(), "{method}: {found}");
        for line in expected.lines().skip(1) {
            assert!(found.contains(line), "{method}: {found}");
        }
    }
    let on = "join.inner(left: a, right: b, on: (l, r) => l.k > r.k, as: (l, r) => ({k: l.k}))";
    check_error(&format!("{sides}{on}"), "argument on must compare columns");
    let method = "join.tables(left: a, right: b, on: (l, r) => l.k == r.k, as: (l, r) => l, method: \"outer\")";
    check_error(&format!("{sides}{method}"), "invalid method \"outer\"");
}

#[test]
fn experimental_functions_of_tables() {
    check(
        "import \"experimental\"\n\
         f = RANGE |> filter(fn: (r) => r._field == \"f\" and r.host == \"a\") |> limit(n: 2)\n\
         experimental.join(left: f, right: f, fn: (left, right) => ({left with _value: left._value + right._value})) \
         |> keep(columns: [\"_time\", \"_value\"])",
        ",result,table,_time,_value\n,_result,0,1970-01-01T00:00:00Z,1\n,_result,0,1970-01-01T00:00:01Z,15",
    );
    check(
        "import \"array\" import \"experimental\"\n\
         array.from(rows: [{_time: 2020-01-01T00:00:00Z, a: 1.0, b: 2.0}]) |> experimental.unpivot() \
         |> group() |> keep(columns: [\"_field\", \"_value\"])",
        ",result,table,_field,_value\n,_result,0,a,1\n,_result,0,b,2",
    );
    check(
        "import \"array\" import \"experimental\"\n\
         array.from(rows: [{k: \"x\", v: 1}, {k: \"y\", v: 2}]) |> experimental.group(columns: [\"k\"], mode: \"extend\") |> sum(column: \"v\")",
        ",result,table,k,v\n,_result,0,x,1\n,_result,1,y,2",
    );
    check_error(
        "import \"array\" import \"experimental\"\narray.from(rows: [{k: 1}]) |> experimental.group(columns: [\"z\"], mode: \"extend\")",
        "column \"z\" does not exist",
    );
    check_error(
        "import \"experimental\" x = experimental.objectKeys(o: 1)",
        "expected record but found int",
    );
}

#[test]
fn quantiles_of_prometheus_histograms() {
    let rows = "array.from(rows: [{_time: 2020-01-01T00:00:00Z, _field: \"h\", le: \"0.1\", _value: 1.0}, \
        {_time: 2020-01-01T00:00:00Z, _field: \"h\", le: \"1\", _value: 3.0}, \
        {_time: 2020-01-01T00:00:00Z, _field: \"h\", le: \"+Inf\", _value: 4.0}])";
    let text = |args: &str| {
        format!(
            "import \"array\" import \"experimental/prometheus\"\n{rows} |> prometheus.histogramQuantile({args}) |> keep(columns: [\"quantile\", \"_value\"])"
        )
    };
    check(&text("quantile: 0.5"), ",result,table,_value,quantile\n,_result,0,0.55,0.5");
    check_error(&text("quantile: 0.5, metricVersion: 3"), "invalid metricVersion 3: use 1 or 2");
    let falling = rows.replace("4.0", "2.0");
    let text = |policy: &str| {
        format!(
            "import \"array\" import \"experimental/prometheus\"\n{falling} |> prometheus.histogramQuantile(quantile: 0.5, onNonmonotonic: \"{policy}\") |> group() |> count()"
        )
    };
    check_error(&text("error"), "not monotonic");
    check(&text("force"), ",result,table,_value\n,_result,0,1");
    check_error(&text("mend"), "invalid onNonmonotonic \"mend\": use error, force or drop");
}

#[test]
fn rows_between_rows_and_durations_of_events() {
    let rows = "array.from(rows: [{_time: 1970-01-01T00:00:05Z, _stop: 1970-01-01T00:01:00Z, _value: 1.0}, {_time: 1970-01-01T00:00:25Z, _stop: 1970-01-01T00:01:00Z, _value: 3.0}])";
    check(
        &format!(
            "import \"array\" import \"interpolate\"\n{rows} |> drop(columns: [\"_stop\"]) |> interpolate.linear(every: 10s)"
        ),
        ",result,table,_time,_value\n,_result,0,1970-01-01T00:00:05Z,1\n,_result,0,1970-01-01T00:00:10Z,1.5\n\
         ,_result,0,1970-01-01T00:00:20Z,2.5\n,_result,0,1970-01-01T00:00:25Z,3",
    );
    check(
        &format!(
            "import \"array\" import \"contrib/tomhollingworth/events\"\n{rows} |> events.duration(unit: 1s) |> keep(columns: [\"duration\"])"
        ),
        ",result,table,duration\n,_result,0,20\n,_result,0,35",
    );
    check_error(
        &format!(
            "import \"array\" import \"interpolate\"\n{rows} |> interpolate.linear(every: 10s)"
        ),
        "requires column \"_stop\" to be in group key",
    );
}

#[test]
fn statistics_of_two_columns_and_hours() {
    let rows = "array.from(rows: [{_time: 2020-01-01T08:00:00Z, x: 1.0, y: 2.0}, {_time: 2020-01-01T20:00:00Z, x: 2.0, y: 4.0}, {_time: 2020-01-01T23:30:00Z, x: 3.0, y: 6.0}])";
    let text = |call: &str| format!("import \"array\"\n{rows} |> {call}");
    check(&text("covariance(columns: [\"x\", \"y\"])"), ",result,table,_value\n,_result,0,2");
    check(
        &text("covariance(columns: [\"x\", \"y\"], pearsonr: true)"),
        ",result,table,_value\n,_result,0,1",
    );
    check_error(&text("covariance(columns: [\"x\"])"), "argument columns must name two columns");
    let count = |call: &str| text(&format!("{call} |> count(column: \"x\")"));
    let rows = |n: u32| format!(",result,table,x\n,_result,0,{n}");
    check(&count("hourSelection(start: 8, stop: 20)"), &rows(2));
    check(&count("hourSelection(start: 20, stop: 7)"), &rows(2));
    let vienna = "location: {zone: \"Europe/Vienna\", offset: 0h}";
    check(&count(&format!("hourSelection(start: 0, stop: 9, {vienna})")), &rows(2));
    check_error(
        &text("hourSelection(start: 0, stop: 24)"),
        "stop must be between 0 and 23, found 24",
    );
    check(
        "import \"array\"\narray.from(rows: [{_start: 2020-01-01T00:00:00Z, _stop: 2020-01-01T00:01:00Z, \
         _time: 2020-01-01T00:00:00Z, _value: 1.0}, {_start: 2020-01-01T00:00:00Z, _stop: 2020-01-01T00:01:00Z, \
         _time: 2020-01-01T00:00:30Z, _value: 3.0}]) |> group(columns: [\"_start\", \"_stop\"]) |> \
         timeWeightedAvg(unit: 1s) |> keep(columns: [\"_value\"])",
        ",result,table,_value\n,_result,0,3",
    );
}

#[test]
fn sources_of_package_query() {
    let text = "import \"experimental/query\"\n\
        query.inBucket(bucket: \"db\", start: 0, stop: 20, measurement: \"m\", fields: [\"f\"], \
        predicate: (r) => r.host == \"a\") |> group() |> count(column: \"_field\")";
    check(text, ",result,table,_field\n,_result,0,20");
}

#[test]
fn refusals_tell_the_reason() {
    for (text, expected) in [
        ("import \"slack\"", "package \"slack\" is refused: queries send no notifications"),
        ("import \"contrib/sranka/teams\"", "is refused: queries send no notifications"),
        (
            "import \"experimental/http\"",
            "is refused: queries open no connections to other servers",
        ),
        ("import \"influxdata/influxdb/secrets\"", "is refused: there is no store of secrets"),
        ("import \"influxdata/influxdb/monitor\"", "is refused: checks and tasks are not run"),
        ("import \"experimental/usage\"", "is refused: it reads the accounting of InfluxDB Cloud"),
        ("RANGE |> to(bucket: \"x\")", "to() is refused: a Flux query writes nothing here"),
        ("import \"experimental\" RANGE |> experimental.to(bucket: \"x\")", "to() is refused"),
        ("die(msg: \"no data\")", "no data"),
    ] {
        check_error(text, expected);
    }
}
