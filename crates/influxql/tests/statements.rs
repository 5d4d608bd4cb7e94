//! Statements over samples in memory, with the answers that InfluxDB 1.6 gives, and texts that are
//! none.

#![allow(clippy::unwrap_used, reason = "tests")]

use influxql::ast::{DataType, Statement};
use influxql::memory::MemorySource;
use influxql::{Answer, Epoch, Evaluator, Limits, Parameters, Writer, parameters, parse};
use std::sync::atomic::Ordering;

const SECOND: i64 = 1_000_000_000;

/// `cpu,host=a` and `cpu,host=b`, each with a float and an integer every 10 s for a minute.
fn source() -> MemorySource {
    let mut source = MemorySource::default();
    for row in 0..6 {
        for (host, offset) in [("a", 0), ("b", 1)] {
            let time = (row * 10 + offset) * SECOND;
            let tags = [("host", host)];
            let value = (row * row + offset * 100) as f64;
            source.add("cpu", &tags, ("usage", DataType::Float), (time, value / 2.0));
            source.add("cpu", &tags, ("n", DataType::Integer), (time, value));
            if row % 2 == 0 {
                source.add("cpu", &tags, ("up", DataType::Boolean), (time, offset as f64));
            }
        }
    }
    source
}

/// The rows of all series, `name|tags|cells`.
fn answer(text: &str) -> String {
    answer_of(&source(), text)
}

fn answer_of(source: &MemorySource, text: &str) -> String {
    let statements = match parse(text, &Parameters::new()) {
        Ok(statements) => statements,
        Err(error) => return format!("error parsing query: {error}\n"),
    };
    let limits = Limits { points_max: 1_000, memory_max: 1 << 20 };
    let evaluator = Evaluator::new(source, "db", 60 * SECOND, limits);
    let answers: Vec<Answer> =
        statements.iter().map(|statement| evaluator.run(statement).unwrap_or_default()).collect();
    let writer = Writer { epoch: Epoch::Units(SECOND), indent: 0 };
    let mut text = Vec::new();
    writer.csv(&answers, &mut text).unwrap();
    String::from_utf8(text).unwrap()
}

#[track_caller]
fn check(text: &str, expected: &[&str]) {
    let found = answer(text);
    let found: Vec<&str> = found.lines().collect();
    assert_eq!(found, expected, "{text}");
}

#[test]
fn strings() {
    let mut source = MemorySource::default();
    for (row, state) in ["open", "shut", "open", "ajar, \"half\""].into_iter().enumerate() {
        source.add_text("door", &[("host", "a")], "state", (row as i64 * 10 * SECOND, state));
    }
    let check = |text: &str, expected: &[&str]| {
        let found = answer_of(&source, text);
        assert_eq!(found.lines().collect::<Vec<&str>>(), expected, "{text}");
    };
    check(
        "SELECT state FROM door",
        &[
            "name,tags,time,state",
            "door,,0,open",
            "door,,10,shut",
            "door,,20,open",
            "door,,30,\"ajar, \"\"half\"\"\"",
        ],
    );
    check(
        "SELECT state FROM door WHERE state = 'open'",
        &["name,tags,time,state", "door,,0,open", "door,,20,open"],
    );
    check(
        "SELECT state FROM door WHERE (state =~ /^s/ OR state = 'none') AND time < 20s",
        &["name,tags,time,state", "door,,10,shut"],
    );
    check(
        "SELECT first(state), last(state), count(state), mode(state) FROM door WHERE time < 30s",
        &["name,tags,time,first,last,count,mode", "door,,0,open,open,3,open"],
    );
    check(
        "SELECT last(state) FROM door WHERE time < 40s GROUP BY time(20s)",
        &["name,tags,time,last", "door,,0,shut", "door,,20,\"ajar, \"\"half\"\"\""],
    );
    check(
        "SELECT distinct(state) FROM door WHERE time < 30s",
        &["name,tags,time,distinct", "door,,0,open", "door,,0,shut"],
    );
    check("SHOW FIELD KEYS FROM door", &["name,tags,fieldKey,fieldType", "door,,state,string"]);
    let refused = answer_of(&source, "SELECT mean(state) FROM door");
    assert!(refused.contains("unsupported mean iterator type *query.stringIterator"), "{refused}");
}

#[test]
fn rows() {
    check(
        "SELECT * FROM cpu WHERE host = 'a' LIMIT 2",
        &["name,tags,time,host,n,up,usage", "cpu,,0,a,0,false,0", "cpu,,10,a,1,,0.5"],
    );
    check("SELECT n * 2 AS d FROM cpu WHERE usage > 60", &["name,tags,time,d", "cpu,,51,250"]);
    check("SELECT nothing FROM cpu", &[]);
    check("SELECT host FROM cpu", &[]);
    check("SELECT n FROM cpu ORDER BY time DESC LIMIT 1", &["name,tags,time,n", "cpu,,51,125"]);
    check(
        "SELECT n FROM cpu WHERE n < 1 OR host =~ /^b$/ AND n = 100",
        &["name,tags,time,n", "cpu,,0,0", "cpu,,1,100"],
    );
}

#[test]
fn windows_and_fills() {
    let mean = "SELECT mean(usage) FROM cpu WHERE host = 'a' AND time >= 0 AND time < 60s";
    check(mean, &["name,tags,time,mean", "cpu,,0,4.583333333333333"]);
    check(
        &format!("{mean} GROUP BY time(30s)"),
        &["name,tags,time,mean", "cpu,,0,0.8333333333333334", "cpu,,30,8.333333333333334"],
    );
    let sparse = "SELECT sum(n) FROM cpu WHERE host = 'a' AND n != 4 AND time >= 0 AND time < 40s";
    for (fill, middle) in [
        ("", "cpu,,20,"),
        ("fill(7)", "cpu,,20,7"),
        ("fill(previous)", "cpu,,20,1"),
        ("fill(linear)", "cpu,,20,5"),
    ] {
        let text = format!("{sparse} GROUP BY time(10s) {fill}");
        check(&text, &["name,tags,time,sum", "cpu,,0,0", "cpu,,10,1", middle, "cpu,,30,9"]);
    }
    check(
        &format!("{sparse} GROUP BY time(10s) fill(none)"),
        &["name,tags,time,sum", "cpu,,0,0", "cpu,,10,1", "cpu,,30,9"],
    );
    check(
        "SELECT count(n), max(up) FROM cpu GROUP BY host",
        &["name,tags,time,count,max", "cpu,host=a,0,6,false", "cpu,host=b,0,6,true"],
    );
}

#[test]
fn selectors_and_transformations() {
    for (text, rows) in [
        ("max(n), host FROM cpu", &["cpu,,51,125,b"][..]),
        ("top(n, 2) FROM cpu", &["cpu,,41,116", "cpu,,51,125"]),
        ("top(n, host, 2) FROM cpu", &["cpu,,50,25,a", "cpu,,51,125,b"]),
        ("percentile(n, 50) FROM cpu", &["cpu,,50,25"]),
        (
            "derivative(n, 10s) FROM cpu WHERE host = 'a' AND time < 30s",
            &["cpu,,10,1", "cpu,,20,3"],
        ),
        (
            "difference(max(n)) FROM cpu WHERE time >= 0 AND time < 60s GROUP BY time(20s)",
            &["cpu,,20,8", "cpu,,40,16"],
        ),
        ("integral(usage) FROM cpu WHERE host = 'a'", &["cpu,,0,212.5"]),
        ("count(distinct(up)) FROM cpu", &["cpu,,0,2"]),
        (
            "max(m) FROM (SELECT mean(n) AS m FROM cpu GROUP BY host)",
            &["cpu,,0,109.16666666666667"],
        ),
        // Each of several subqueries has series of its own.
        ("count(n) FROM cpu WHERE host = 'a'", &["cpu,,0,6"]),
        (
            "sum(n) FROM (SELECT n FROM cpu WHERE host = 'a'), (SELECT n FROM cpu WHERE host = 'b')",
            &["cpu,,0,710"],
        ),
        ("sum(n) FROM (SELECT n FROM cpu WHERE host = 'a'), cpu", &["cpu,,0,765"]),
    ] {
        let found = answer(&format!("SELECT {text}"));
        assert_eq!(found.lines().skip(1).collect::<Vec<_>>(), rows, "{text}");
    }
}

#[test]
fn lists() {
    check("SHOW MEASUREMENTS", &["name,tags,name", "measurements,,cpu"]);
    check(
        "SHOW TAG VALUES WITH KEY = host",
        &["name,tags,key,value", "cpu,,host,a", "cpu,,host,b"],
    );
    check("SHOW SERIES", &["name,tags,key", ",,\"cpu,host=a\"", ",,\"cpu,host=b\""]);
    check("SHOW FIELD KEY CARDINALITY", &["name,tags,count", "cpu,,3"]);
}

#[test]
fn what_is_wrong_is_told_as_influxdb_does() {
    for (text, expected) in [
        ("SELECT", "found EOF, expected identifier, string, number, bool at line 1, char 8"),
        ("SELECT n", "found EOF, expected FROM at line 1, char 10"),
        ("SELECT n FROM cpu cpu", "found cpu, expected ; at line 1, char 19"),
        ("SELECT n FROM cpu LIMIT x", "found x, expected integer at line 1, char 25"),
    ] {
        check(text, &[&format!("error parsing query: {expected}")]);
    }
    for (text, expected) in [
        (
            "SELECT n, mean(n) FROM cpu",
            "mixing aggregate and non-aggregate queries is not supported",
        ),
        ("SELECT foo(n) FROM cpu", "undefined function foo()"),
        (
            "SELECT n FROM cpu GROUP BY time(1m)",
            "GROUP BY requires at least one aggregate function",
        ),
        ("SELECT n FROM other..cpu", "database not found: other"),
    ] {
        check(text, &["error", expected]);
    }
}

#[test]
fn bounds() {
    let deep = format!("SELECT {}n{} FROM cpu", "(".repeat(100), ")".repeat(100));
    assert!(answer(&deep).contains("levels of nesting"), "{}", answer(&deep));
    let long = format!("SELECT n FROM cpu WHERE n = 1{}", " OR n = 1".repeat(3_000));
    assert!(answer(&long).contains("operators"), "{}", answer(&long));
    // What is within the bounds does not fill a stack.
    for op in ["OR", "AND"] {
        let text = format!("SELECT n FROM cpu WHERE n = 1{}", format!(" {op} n = 1").repeat(950));
        assert_eq!(answer(&text), "name,tags,time,n\ncpu,,10,1\n");
    }
    let sum = format!("SELECT n{} FROM cpu WHERE n = 1", " + 1".repeat(1_900));
    assert!(answer(&sum).ends_with("cpu,,10,1901\n"), "{}", answer(&sum));
    let fill = "SELECT mean(n) FROM cpu WHERE time >= 0 GROUP BY time(1ms)";
    assert!(answer(fill).contains("limit exceeded"), "{}", answer(fill));
    let many = "SHOW DATABASES;".repeat(2_000);
    assert!(answer(&many).contains("statements"), "too many statements");
}

#[test]
fn parameters_stand_for_values() {
    let bound = parameters("{\"h\": \"a\", \"min\": 3, \"r\": {\"regex\": \"^a\"}}").unwrap();
    let text = "SELECT n FROM cpu WHERE host = $h AND n > $min AND host =~ $r";
    let statements = parse(text, &bound).unwrap();
    let [Statement::Select(select)] = statements.as_slice() else { panic!("a SELECT") };
    let expected = "SELECT n FROM cpu WHERE host = 'a' AND n > 3 AND host =~ /^a/";
    assert_eq!(select.to_string(), expected);
    let missing = parse("SELECT n FROM cpu WHERE n = $x", &bound).unwrap_err();
    assert_eq!(missing.to_string(), "missing parameter: x");
    assert!(parameters("[]").is_err());
}

#[test]
fn random_words_do_no_harm() {
    let words = [
        "SELECT ",
        "mean(",
        "f",
        "i",
        ")",
        " FROM ",
        "m",
        "(",
        " WHERE ",
        "time > 5",
        " AND ",
        "host",
        " = ",
        "'a'",
        "=~ /a/",
        " GROUP BY ",
        "time(10s)",
        ",",
        "*",
        " fill(",
        "linear",
        "0",
        ";",
        " LIMIT 1",
        "SHOW TAG VALUES",
        " WITH KEY = ",
        "derivative(",
        "top(",
        " OR ",
        "-",
        "1.5",
        "1h",
        "\"",
        "$x",
        " ORDER BY time DESC",
        " tz('Europe/Berlin')",
        "percentile(",
        "50",
        "moving_average(",
        "9223372036854775807",
        "SELECT f FROM m",
        "SELECT mean(f) FROM m",
    ];
    let mut random = rng::Random::seeded(0x1f1);
    for _ in 0..20_000 {
        let count = 1 + random.index(18);
        let text: String = (0..count).map(|_| *random.pick(&words)).collect();
        influxql::fuzzing::fuzz_influxql(text.as_bytes());
    }
}

/// A query around itself, `levels` times.
fn nested(inner: &str, outer: &str, levels: usize) -> String {
    (0..levels).fold(inner.to_string(), |inner, _| format!("{outer} FROM ({inner})"))
}

#[test]
fn subqueries_cost_what_they_are_not_twice_as_much_with_each_level() {
    // The types of variables that nobody has, and the rows of what several functions read: asked for
    // again at each level, neither would end.
    let unknown = nested("SELECT nothing + nothing AS v FROM cpu", "SELECT v + v AS v", 40);
    check(&unknown, &[]);
    let nowhen = "SELECT mean(n) AS v, max(n) AS w FROM cpu WHERE time > 10 AND time < 5";
    check(&nested(nowhen, "SELECT mean(v) AS v, max(w) AS w", 40), &[]);
    let doubled = nested("SELECT n AS v FROM cpu WHERE n = 1", "SELECT v + v AS v", 10);
    check(&doubled, &["name,tags,time,v", "cpu,,10,1024"]);
}

#[test]
fn windows_at_the_ends_of_time() {
    for order in ["ASC", "DESC"] {
        for zone in ["", "tz('America/New_York')"] {
            for fill in ["null", "linear", "previous", "0"] {
                let found = answer(&format!(
                    "SELECT mean(n), sum(n), derivative(mean(n)) FROM cpu WHERE time >= -9223372036854775806 \
                     AND time <= 9223372036854775806 GROUP BY time(10000d, 1ns) fill({fill}) ORDER BY \
                     time {order} {zone}"
                ));
                assert!(found.contains("cpu,"), "{found}");
            }
        }
    }
}

#[test]
fn rows_count_as_what_they_take() {
    // A thousand points are allowed; each of 400 windows is a point and a row.
    let found =
        answer("SELECT mean(n) FROM cpu WHERE time >= 0 AND time < 40s GROUP BY time(100ms)");
    assert!(found.contains("max-select-point limit exceeded"), "{found}");
    let found =
        answer("SELECT mean(n) FROM cpu WHERE time >= 0 AND time < 10s GROUP BY time(100ms)");
    assert_eq!(found.lines().count(), 101, "{found}");
    // So do the answers of other statements before.
    let one = "SELECT mean(n) FROM cpu WHERE time >= 0 AND time < 10s GROUP BY time(100ms);";
    let found = answer(&one.repeat(5));
    assert!(found.contains("max-select-point limit exceeded"), "{found}");
}

/// Twenty measurements, `m0` to `m19`, whose sets of selected series hold 100 KB each.
fn many_measurements() -> MemorySource {
    let mut source = MemorySource::default();
    source.set_size = 100 << 10;
    for number in 0..20 {
        let value = (SECOND, f64::from(number));
        source.add(&format!("m{number}"), &[("host", "a")], ("f", DataType::Float), value);
    }
    source
}

#[test]
fn a_source_that_is_named_often_is_selected_once() {
    let source = many_measurements();
    let text = format!("SELECT f FROM {}", vec!["m3"; 100].join(","));
    let found = answer_of(&source, &text);
    assert_eq!(found.lines().filter(|line| *line == "m3,,1,3").count(), 100, "{found}");
    assert_eq!(source.lookups.load(Ordering::Relaxed), 1);
    let found = answer_of(&source, &format!("SELECT count(f) FROM {}", vec!["m3"; 100].join(",")));
    assert_eq!(found.lines().last(), Some("m3,,0,100"));
}

#[test]
fn sources_share_the_memory_of_a_request() {
    let source = many_measurements();
    let names = |count: usize| (0..count).map(|number| format!("m{number}")).collect::<Vec<_>>();
    // A MiB is allowed.
    for (text, is_refused) in [
        (format!("SELECT f FROM {}", names(8).join(",")), false),
        (format!("SELECT f FROM {}", names(12).join(",")), true),
        ("SELECT f FROM /m./".to_string(), true),
        (format!("SELECT percentile(f, 50) FROM {}", names(12).join(",")), true),
        (format!("SELECT sum(f) FROM {}", names(12).join(",")), true),
        (format!("SELECT f FROM (SELECT f FROM {})", names(12).join(",")), true),
        // One after the other they hold little.
        ("SELECT f FROM m1;".repeat(30), false),
        (format!("SELECT f FROM {}", vec!["(SELECT f FROM m2)"; 30].join(",")), false),
    ] {
        let found = answer_of(&source, &text);
        let told = "max-select-point limit exceeded: the query holds";
        assert_eq!(found.contains(told), is_refused, "{text}: {found}");
        assert_eq!(found.contains("error"), is_refused, "{text}: {found}");
    }
}

#[test]
fn a_statement_reads_a_bounded_number_of_sources() {
    let text = format!("SELECT f FROM {}", vec!["m"; 10_001].join(","));
    let found = answer_of(&many_measurements(), &text);
    assert!(found.contains("reads more than 10000 measurements"), "{found}");
    let inner = format!("(SELECT f FROM {})", vec!["m"; 6_000].join(","));
    let found = answer_of(&many_measurements(), &format!("SELECT f FROM {inner}, {inner}"));
    assert!(found.contains("reads more than 10000 measurements"), "{found}");
}

#[test]
fn a_page_of_a_long_series_takes_the_memory_of_a_page() {
    let mut source = MemorySource::default();
    for time in 0..20_000 {
        source.add("m", &[], ("f", DataType::Float), (time * SECOND, time as f64));
    }
    let check = |text: &str, expected: &str| {
        let found = answer_of(&source, text);
        assert!(found.contains(expected), "{text}: {found}");
    };
    check("SELECT f FROM m WHERE time < 20000s LIMIT 1", "m,,0,0");
    check("SELECT f FROM m WHERE time < 20000s ORDER BY time DESC LIMIT 1", "m,,19999,19999");
    // All of its points are made before the condition is looked at.
    check("SELECT f FROM m WHERE time < 20000s AND f < 5 LIMIT 1", "the query holds");
}

/// What a deletion would delete: measurements, and how many sets of matchers.
fn deletions(text: &str) -> Result<Vec<(String, usize)>, String> {
    let statements = parse(text, &Parameters::new()).map_err(|error| error.to_string())?;
    let source = source();
    let evaluator = Evaluator::new(
        &source,
        "db",
        60 * SECOND,
        Limits { points_max: 1_000, memory_max: 1 << 20 },
    );
    let found = evaluator.deletions(&statements[0]).map_err(|error| error.to_string())?;
    Ok(found.into_iter().map(|deletion| (deletion.measurement, deletion.sets.len())).collect())
}

#[test]
fn deletions_are_of_databases_and_policies_that_exist() {
    let statements = parse("DELETE FROM cpu", &Parameters::new()).expect("a statement");
    let source = source();
    for (database, policy, expected) in [
        ("db", "autogen", Ok(1)),
        ("db", "", Ok(1)),
        ("db", "other", Err("retention policy not found: other".to_string())),
        ("db.other", "", Err("database not found: db.other".to_string())),
        ("db.other", "autogen", Err("database not found: db.other".to_string())),
    ] {
        let limits = Limits { points_max: 1_000, memory_max: 1 << 20 };
        let evaluator = Evaluator::new(&source, database, 60 * SECOND, limits).with_policy(policy);
        let found = evaluator.deletions(&statements[0]).map_err(|error| error.to_string());
        assert_eq!(found.map(|all| all.len()), expected, "{database} {policy}");
    }
}

#[test]
fn deletions_are_of_tags_and_of_one_database() {
    let cpu = |sets: usize| Ok(vec![("cpu".to_string(), sets)]);
    assert_eq!(deletions("DELETE FROM cpu"), cpu(1));
    assert_eq!(deletions("DELETE WHERE host = 'a' OR host = 'b' OR region != 'x'"), cpu(2));
    assert_eq!(deletions("DELETE WHERE (host = 'a' OR region = 'x') AND host != 'c'"), cpu(2));
    assert_eq!(deletions("DELETE FROM cpu WHERE false"), Ok(Vec::new()));
    for (text, reason) in [
        ("DELETE FROM cpu WHERE usage != 'x'", "fields not supported in WHERE clause"),
        ("DELETE FROM cpu WHERE host = 'a' OR n =~ /x/", "fields not supported"),
        ("DELETE FROM cpu WHERE usage > 1", "only tags can be compared"),
        ("DELETE FROM other..cpu", "database not supported at line 1, char 1"),
        ("DROP SERIES FROM other.autogen.cpu", "retention policy not supported"),
        ("DELETE FROM cpu, other..mem WHERE time > 5", "database not supported"),
        ("DELETE FROM (SELECT * FROM cpu)", "found (, expected identifier at line 1, char 13"),
    ] {
        let found = deletions(text).unwrap_err();
        assert!(found.contains(reason), "{text}: {found}");
    }
}

#[test]
fn lists_of_what_this_or_that_holds_of() {
    check(
        "SHOW TAG VALUES WITH KEY = host WHERE host = 'a' OR host = 'b' AND host != 'b'",
        &["name,tags,key,value", "cpu,,host,a"],
    );
    check("SHOW SERIES WHERE host = 'a' OR nothing = 'x'", &["name,tags,key", ",,\"cpu,host=a\""]);
    check("SHOW SERIES ON elsewhere", &["error", "database not found: elsewhere"]);
    check("SHOW FIELD KEYS FROM elsewhere..cpu", &["error", "database not found: elsewhere"]);
    check("SHOW MEASUREMENTS ON elsewhere", &[]);
}

#[test]
fn series_that_no_row_can_be_of_take_no_page() {
    check(
        "SELECT mean(n) FROM cpu WHERE host =~ /^b$/ OR host = 'c' AND n > 5 GROUP BY host SLIMIT 1",
        &["name,tags,time,mean", "cpu,host=b,0,109.16666666666667"],
    );
}

#[test]
fn a_field_of_several_functions_is_looked_up_once() {
    let source = source();
    let found = answer_of(&source, "SELECT max(n), min(n), max(usage), last(n) FROM cpu");
    assert_eq!(found, "name,tags,time,max,min,max_1,last\ncpu,,0,125,0,62.5,125\n");
    assert_eq!(source.lookups.load(Ordering::Relaxed), 2);
}

#[test]
fn an_alias_without_a_letter_is_none() {
    check("SELECT n AS \"\" FROM cpu LIMIT 1", &["name,tags,time,n", "cpu,,0,0"]);
}

#[test]
fn what_is_made_of_no_number_is_none() {
    // The deviation of one value is no number, and a row.
    check(
        "SELECT difference(stddev(usage)) FROM cpu WHERE host = 'a' AND time >= 0s AND time < 30s \
         GROUP BY time(10s)",
        &["name,tags,time,difference", "cpu,,10,", "cpu,,20,"],
    );
    check(
        "SELECT difference(stddev(usage)), elapsed(stddev(usage), 1s) FROM cpu WHERE host = 'a' AND \
         time >= 5s AND time < 60s GROUP BY time(30s)",
        &["name,tags,time,difference,elapsed", "cpu,,30,2.969570138772255,30"],
    );
    check(
        "SELECT non_negative_derivative(stddev(usage), 1s) FROM cpu WHERE host = 'a' AND time >= 0s \
         AND time < 60s GROUP BY time(20s, 10s)",
        &[
            "name,tags,time,non_negative_derivative",
            "cpu,,10,",
            "cpu,,30,0.07071067811865475",
            "cpu,,50,",
        ],
    );
    check(
        "SELECT moving_average(stddev(usage), 2) FROM cpu WHERE host = 'a' AND time >= 0s AND \
         time < 60s GROUP BY time(20s, 10s)",
        &["name,tags,time,moving_average", "cpu,,10,", "cpu,,30,", "cpu,,50,"],
    );
}

#[test]
fn a_subquery_reads_no_more_time_than_the_query_around_it() {
    let inner = "SELECT d FROM (SELECT difference(max(n)) AS d FROM cpu WHERE host = 'a' AND \
                 time >= 20s AND time < 50s GROUP BY time(10s))";
    let rows = ["name,tags,time,d", "cpu,,20,3", "cpu,,30,5", "cpu,,40,7"];
    check(inner, &rows);
    check(&format!("{inner} WHERE time >= 10s"), &rows);
    let without_first = ["name,tags,time,d", "cpu,,30,5", "cpu,,40,7"];
    check(&format!("{inner} WHERE time >= 20s AND time < 50s"), &without_first);
    check(
        &format!("{inner} WHERE time >= 20s AND time < 40s ORDER BY time DESC"),
        &["name,tags,time,d", "cpu,,20,-5"],
    );
    let down = ["name,tags,time,d", "cpu,,40,-9", "cpu,,30,-7", "cpu,,20,-5"];
    check(&format!("{inner} ORDER BY time DESC"), &down);
}

#[test]
fn regular_expressions_are_bounded_and_mean_what_go_means() {
    let many = vec![r"/\pL{24}/"; 1_000].join(",");
    let error = parse(&format!("SELECT n FROM {many}"), &Parameters::new()).unwrap_err();
    assert!(error.to_string().contains("take more than 16777216 bytes of memory"), "{error}");
    let few = influxql::Allowance::of(64 << 10);
    let parse_few = |text: &str| influxql::parse_within(text, &Parameters::new(), few);
    assert!(parse_few("SELECT n FROM /cpu/ WHERE host =~ /^(a|b|c)$/").is_ok());
    assert!(parse_few(r"SELECT n FROM /\pL{24}/,/\pL{24}/").is_err());
    let many = (0..2_000).map(|n| format!("\"r{n}\": {{\"regex\": \"a\"}}"));
    let many = format!("{{{}}}", many.collect::<Vec<_>>().join(","));
    assert!(parameters(&many).unwrap_err().contains("more than 1000 regular expressions"));
    let mut source = MemorySource::default();
    for name in ["me", "mé", "m{x"] {
        source.add(name, &[], ("f", DataType::Float), (0, 1.0));
    }
    for (text, found) in [(r"/^m\w$/", "me"), (r"/\Qm{x\E/", "m{x"), ("/m{x/", "m{x")] {
        let answer = answer_of(&source, &format!("SELECT f FROM {text}"));
        assert_eq!(answer.lines().nth(1).unwrap_or_default(), format!("{found},,0,1"), "{text}");
        assert_eq!(answer.lines().count(), 2, "{answer}");
    }
}

#[test]
fn booleans_are_refused_as_influxdb_does() {
    for (call, words) in [
        ("mean(up)", "mean"),
        ("sum(up)", "sum"),
        ("percentile(up, 50)", "percentile"),
        ("top(up, 2)", "top"),
        ("integral(up)", "integral"),
        ("non_negative_difference(up)", "difference"),
        ("moving_average(up, 2)", "moving average"),
        ("cumulative_sum(up)", "cumulative sum"),
        ("derivative(max(up))", "derivative"),
    ] {
        let tail = if call.contains("max") { " WHERE time < 60s GROUP BY time(20s)" } else { "" };
        let found = answer(&format!("SELECT {call} FROM cpu{tail}"));
        let words = format!("unsupported {words} iterator type: *query.booleanInterruptIterator");
        assert!(found.contains(&words), "{call}: {found}");
    }
    for call in ["count", "first", "last", "max", "min", "mode", "distinct", "elapsed"] {
        let found = answer(&format!("SELECT {call}(up) FROM cpu"));
        assert!(found.starts_with("name,tags,time"), "{call}: {found}");
    }
    assert_eq!(answer("SELECT mean(usage::boolean) FROM cpu"), "");
}

/// `un,t=a..c` with `f` from 1 to 6 and `g` from 0 to 10, ten seconds apart; `ze` with both signs; `wide`
/// and `few` with integers beyond float64, so that the answers below differ.
fn odd_source() -> MemorySource {
    let mut source = MemorySource::default();
    for (row, tag) in ["a", "a", "b", "b", "c", "c"].into_iter().enumerate() {
        let (time, number) = (row as i64 * 10 * SECOND, row as f64);
        source.add("un", &[("t", tag)], ("f", DataType::Float), (time, number + 1.0));
        source.add("un", &[("t", tag)], ("g", DataType::Float), (time, number * 2.0));
        let sign = if row % 2 == 0 { 1.0 } else { -1.0 };
        source.add("ze", &[], ("f", DataType::Float), (time, sign * number));
        source.add("whole", &[], ("n", DataType::Integer), (time, number));
    }
    for (time, text) in [(0, "ab"), (20, "cd")] {
        source.add_text("st", &[], "s", (time * SECOND, text));
    }
    source
}

#[track_caller]
fn check_odd(text: &str, rows: &[&str]) {
    let found = answer_of(&odd_source(), text);
    let found: Vec<&str> = found.lines().filter(|line| !line.starts_with("name,tags")).collect();
    assert_eq!(found, rows, "{text}");
}

#[test]
fn functions_of_one_row_stand_in_subqueries() {
    let inside = "time >= 0s AND time < 60s";
    for (text, rows) in [
        ("SELECT max(f) FROM (SELECT abs(f) AS f FROM ze)", &["ze,,50,5"][..]),
        ("SELECT min(f) FROM (SELECT floor(f/2) AS f FROM ze)", &["ze,,50,-3"]),
        ("SELECT sum(f) FROM (SELECT pow(f,2)+1 AS f FROM ze)", &["ze,,0,61"]),
        ("SELECT count(f) FROM (SELECT sqrt(f) AS f FROM ze)", &["ze,,0,6"]),
        (
            "SELECT max(f) FROM (SELECT max(g) AS f FROM (SELECT abs(f) AS g FROM ze))",
            &["ze,,50,5"],
        ),
        ("SELECT max(f) FROM (SELECT log(f,2) AS f FROM ze)", &["ze,,40,2"]),
        ("SELECT max(a),min(a) FROM (SELECT abs(f) AS a, f FROM ze)", &["ze,,0,5,0"]),
    ] {
        check_odd(text, rows);
    }
    for fill in ["fill(none)", "fill(0)", "fill(previous)", ""] {
        check_odd(
            &format!(
                "SELECT mean(a) FROM (SELECT abs(f) AS a FROM ze) WHERE {inside} GROUP BY time(20s) {fill}"
            ),
            &["ze,,0,0.5", "ze,,20,2.5", "ze,,40,4.5"],
        );
    }
    let refused = answer("SELECT max(f) FROM (SELECT abs(f) AS f FROM ze fill(none))");
    assert!(refused.contains("fill(none) must be used with a function"), "{refused}");
}

/// InfluxDB adds the numbers up on the way to what is read.
#[test]
fn series_are_counted_through_subqueries() {
    let (a, b, c) = ("un,t=a,10,2", "un,t=b,30,4", "un,t=c,50,6");
    for (inner, outer, rows) in [
        ("", "SLIMIT 1", &[a][..]),
        ("", "SLIMIT 1 SOFFSET 1", &[b]),
        ("", "SLIMIT 2 SOFFSET 2", &[c]),
        ("", "SLIMIT 9", &[a, b, c]),
        ("", "SOFFSET 1", &[]),
        ("SLIMIT 1", "", &[a]),
        ("SLIMIT 1", "SLIMIT 1", &[a, b]),
        ("SLIMIT 2 SOFFSET 1", "SLIMIT 1", &[b, c]),
    ] {
        let text = format!(
            "SELECT max(x) FROM (SELECT f AS x FROM un GROUP BY t {inner}) GROUP BY t {outer}"
        );
        check_odd(&text, rows);
    }
    check_odd(
        "SELECT x FROM (SELECT f AS x FROM un GROUP BY t) GROUP BY t LIMIT 1 SLIMIT 2",
        &["un,t=a,0,1", "un,t=b,20,3"],
    );
    check_odd(
        "SELECT max(x) FROM (SELECT f AS x FROM un GROUP BY t SLIMIT 1) SLIMIT 1",
        &["un,,50,6"],
    );
    check_odd("SELECT max(f) FROM un GROUP BY t SOFFSET 1", &[]);
}

#[test]
fn constants_within_calls_are_worked_out() {
    for (text, head, row) in [
        ("SELECT round(mean(f) * (100 / 3)) FROM un", "round", "un,,0,117"),
        ("SELECT g * ln(1) FROM un LIMIT 1", "g", "un,,0,0"),
        ("SELECT abs(f - 10/4) FROM un LIMIT 1", "abs", "un,,0,1.5"),
        ("SELECT pow(f, 1+1) FROM un LIMIT 1 OFFSET 5", "pow", "un,,50,36"),
        ("SELECT f * round(3.7) FROM un LIMIT 1", "f", "un,,0,4"),
        ("SELECT f * pow(2,3) FROM un LIMIT 1", "f", "un,,0,8"),
        ("SELECT f * log(8,2) FROM un LIMIT 1", "f", "un,,0,3"),
        ("SELECT mean(f) + sqrt(9) FROM un", "mean", "un,,0,6.5"),
        ("SELECT percentile(f, 50+40) FROM un", "percentile", "un,,40,5"),
        ("SELECT top(f, 2-1) FROM un", "top", "un,,50,6"),
        ("SELECT derivative(f, 5s*2) FROM un LIMIT 1", "derivative", "un,,10,1"),
        ("SELECT moving_average(f, 1+1) FROM un LIMIT 1", "moving_average", "un,,10,1.5"),
        ("SELECT round(sum(f) / (7 - 4)) FROM un", "round", "un,,0,7"),
        ("SELECT floor(mean(f) * (100 / 3) + (1 - 4)) FROM un", "floor", "un,,0,113"),
        (
            "SELECT max(f) FROM un WHERE time >= 0s AND time < 20s GROUP BY time(10s*2)",
            "max",
            "un,,0,2",
        ),
    ] {
        let found = answer_of(&odd_source(), text);
        let expected = format!("name,tags,time,{head}\n{row}");
        assert_eq!(found.trim_end(), expected, "{text}");
    }
    let refused = answer_of(&odd_source(), "SELECT round(3.7) FROM un");
    assert!(refused.contains("field must contain at least one variable"), "{refused}");
}

#[test]
fn fills_have_the_type_of_their_column() {
    let st = "FROM st WHERE time >= 0s AND time < 40s GROUP BY time(10s)";
    check_odd(
        &format!("SELECT last(s) {st} fill(-1)"),
        &["st,,0,ab", "st,,10,", "st,,20,cd", "st,,30,"],
    );
    check_odd(
        &format!("SELECT last(s), count(s) {st} fill(7)"),
        &["st,,0,ab,1", "st,,10,,7", "st,,20,cd,1", "st,,30,,7"],
    );
    let whole = "FROM whole WHERE time >= 40s AND time < 80s GROUP BY time(10s)";
    check_odd(
        &format!("SELECT max(n) {whole} fill(9007199254740993)"),
        &["whole,,40,4", "whole,,50,5", "whole,,60,9007199254740993", "whole,,70,9007199254740993"],
    );
    check_odd(
        &format!("SELECT first(n) + 1 {whole} fill(9007199254740993)"),
        &["whole,,40,5", "whole,,50,6", "whole,,60,9007199254740994", "whole,,70,9007199254740994"],
    );
    check_odd(
        &format!("SELECT max(n) {whole} fill(2.5)"),
        &["whole,,40,4", "whole,,50,5", "whole,,60,2", "whole,,70,2"],
    );
}

#[test]
fn constants_and_conditions() {
    check(
        "SELECT n * 1. AS d FROM cpu WHERE n > 1. LIMIT 1 tz('')",
        &["name,tags,time,d", "cpu,,1,100"],
    );
    check("SELECT n + 1h AS d FROM cpu LIMIT 1", &["name,tags,time,d", "cpu,,0,"]);
    check("SELECT n FROM cpu WHERE n < 1h", &[]);
    check(
        "SELECT count(n), sum(none), mean(none) FROM cpu fill(7)",
        &["name,tags,time,count,sum,mean", "cpu,,0,12,,7"],
    );
    check(
        "SELECT count(n) FROM cpu WHERE 1s + '1970-01-01T00:00:40Z' <= time",
        &["name,tags,time,count", "cpu,,41,3"],
    );
    for text in ["n + 1", "host = 'a' AND (n * 2)", "n & 1", "1 + 1", "host"] {
        let found = answer(&format!("SELECT n FROM cpu WHERE {text}"));
        assert!(found.contains("invalid condition expression: "), "{text}: {found}");
    }
    let found = answer("SELECT abs(1h) FROM cpu");
    assert!(found.contains("field must contain at least one variable"), "{found}");
    let found = answer("SHOW FIELD KEYS FROM cpu WHERE host = 'a'");
    assert!(found.contains("found WHERE, expected ;"), "{found}");
    assert!(parameters("null").expect("no parameters").is_empty());
    assert!(parameters("[]").is_err());
}

#[test]
fn a_field_equals_no_tag_that_a_series_lacks() {
    let mut source = MemorySource::default();
    source.add_text("door", &[("host", "a")], "state", (0, "a"));
    source.add_text("door", &[("rack", "1")], "state", (SECOND, ""));
    source.add_text("door", &[("host", "b")], "state", (2 * SECOND, "a"));
    for (condition, times) in
        [("state = host", "0"), ("state != host", "2"), ("host != state", "2")]
    {
        let found = answer_of(&source, &format!("SELECT state FROM door WHERE {condition}"));
        assert_eq!(found, format!("name,tags,time,state\ndoor,,{times},a\n"), "{condition}");
    }
}
