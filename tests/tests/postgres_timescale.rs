//! TimescaleDB's functions, as those write them who have dashboards for it.

use anyhow::{Result, ensure};
use e2e::postgres::{self, Raw};
use e2e::{Psql, Server};

/// 2024-02-29 12:00:00 UTC in milliseconds.
const NOON: i64 = 1_709_208_000_000;
const MINUTE: i64 = 60_000;
/// The twenty minutes in which there are samples.
const WITHIN: &str = "time >= '2024-02-29 12:00' AND time < '2024-02-29 12:20'";

fn start(directory: &tempfile::TempDir) -> Result<(Server, Psql)> {
    let (server, psql) = postgres::start(directory.path())?;
    let samples = [("a", 0, 1), ("a", 10, 3), ("a", 12, 5), ("b", 5, 10)];
    let lines: Vec<String> = samples
        .iter()
        .map(|(job, minutes, value)| {
            format!("up{{job=\"{job}\"}} {value} {}\n", NOON + minutes * MINUTE)
        })
        .collect();
    psql.ask(&["COPY metrics FROM STDIN"], &lines.concat())?;
    Ok((server, psql))
}

/// Asks for what is expected, word by word.
fn check(cases: &[(&str, &str)]) -> Result<()> {
    let directory = tempfile::tempdir()?;
    let (_server, psql) = start(&directory)?;
    for (asked, expected) in cases {
        let said = psql.say(&[asked], "")?;
        ensure!(said.is_ok, "{asked}: {}", said.error);
        let said = said.out.trim_end();
        let said = said.replace("2024-02-29 ", "").replace(":00+00", "");
        assert_eq!(said, *expected, "{asked}");
    }
    Ok(())
}

/// Asks for what is refused, with a code and some words.
fn refuse(cases: &[(&str, &str, &str)]) -> Result<()> {
    let directory = tempfile::tempdir()?;
    let (_server, psql) = start(&directory)?;
    for (asked, code, words) in cases {
        let said = psql.say(&["\\set VERBOSITY verbose", asked], "")?;
        let is_told = said.error.contains(code) && said.error.contains(words);
        ensure!(!said.is_ok && is_told, "{asked}: {said:?}");
    }
    Ok(())
}

#[test]
fn gaps_are_filled_in_each_group() -> Result<()> {
    let asked = |items: &str, rest: &str| {
        format!(
            "SELECT time_bucket_gapfill('5 minutes', time) AS bucket, {items} FROM metrics \
             WHERE name = 'up' AND {WITHIN} {rest}"
        )
    };
    let by_job = "GROUP BY bucket, job ORDER BY job, bucket";
    check(&[
        (
            &asked("labels->>'job' AS job, avg(value)", by_job),
            "12:00|a|1\n12:05|a|\n12:10|a|4\n12:15|a|\n12:00|b|\n12:05|b|10\n12:10|b|\n12:15|b|",
        ),
        (
            &asked(
                "labels->>'job' AS job, locf(avg(value)), interpolate(avg(value)) AS line",
                by_job,
            ),
            "12:00|a|1|1\n12:05|a|1|2.5\n12:10|a|4|4\n12:15|a|4|\n\
             12:00|b||\n12:05|b|10|10\n12:10|b|10|\n12:15|b|10|",
        ),
        (
            &asked(
                "labels->>'job' AS job, locf(avg(value))",
                "GROUP BY 1, 2 ORDER BY 1 DESC, 2 LIMIT 3",
            ),
            "12:15|a|4\n12:15|b|10\n12:10|a|4",
        ),
        (
            &asked(
                "count(*), interpolate(count(*)), interpolate(sum(value)), coalesce(sum(value), 0)",
                "GROUP BY 1 ORDER BY 1",
            ),
            "12:00|1|1|1|1\n12:05|1|1|10|10\n12:10|2|2|8|8\n12:15||||0",
        ),
        (
            &asked(
                "round(interpolate(avg(value)) * 2 + 1), \
                 lag(avg(value)) OVER (ORDER BY time_bucket_gapfill('5 minutes', time))",
                "AND labels->>'job' = 'a' GROUP BY time_bucket_gapfill('5 minutes', time) ORDER BY bucket",
            ),
            "12:00|3|\n12:05|6|1\n12:10|9|\n12:15||4",
        ),
        // What is left out by HAVING is a gap like others.
        (
            &asked("count(*)", "GROUP BY bucket HAVING count(*) > 1 ORDER BY bucket"),
            "12:00|\n12:05|\n12:10|2\n12:15|",
        ),
        (
            &format!(
                "SELECT count(*), max(b) FROM ({}) AS t(b, v)",
                asked("count(*)", "GROUP BY 1")
            ),
            "4|12:15",
        ),
        (
            &format!(
                "SELECT b, v FROM ({}) AS t(b, v) WHERE v IS NULL",
                asked("count(*)", "GROUP BY 1")
            ),
            "12:15|",
        ),
    ])
}

#[test]
fn the_time_of_buckets_is_inferred_or_said() -> Result<()> {
    let buckets = |call: &str, condition: &str| {
        format!(
            "SELECT string_agg(CAST(extract(minute FROM b) AS int)::text, ',' ORDER BY b) FROM \
             (SELECT {call} AS b FROM metrics WHERE name = 'up' AND {condition} GROUP BY 1) AS t"
        )
    };
    let call = "time_bucket_gapfill('5 minutes', time)";
    check(&[
        (&buckets(call, "time > '2024-02-29 12:04' AND time <= '2024-02-29 12:15'"), "0,5,10,15"),
        (&buckets(call, "'2024-02-29 12:05' <= time AND '2024-02-29 12:15' > time"), "5,10"),
        (&buckets(call, "time BETWEEN '2024-02-29 12:05' AND '2024-02-29 12:15'"), "5,10,15"),
        (&buckets(call, &format!("{WITHIN} AND time < '2024-02-29 12:10'")), "0,5"),
        (
            &buckets(
                call,
                "time >= timestamptz '2024-02-29 12:10' - interval '10 minutes' AND time < '2024-02-29 12:15:00.000001'",
            ),
            "0,5,10,15",
        ),
        // Arguments say how far buckets go, and leave no row out.
        (
            &buckets(
                "time_bucket_gapfill('5 minutes', time, '2024-02-29 12:10', '2024-02-29 12:30')",
                "true",
            ),
            "0,5,10,15,20,25",
        ),
        (
            &buckets(
                "time_bucket_gapfill('5 minutes', time, start => '2024-02-29 12:15', finish => '2024-02-29 12:30')",
                "value < 2",
            ),
            "0,15,20,25",
        ),
        (
            &buckets(
                "time_bucket_gapfill('5 minutes', time, 'UTC', '2024-02-29 12:00', '2024-02-29 12:10')",
                "value < 2",
            ),
            "0,5",
        ),
        (
            &buckets(
                "time_bucket_gapfill('5 minutes', time, NULL, '2024-02-29 12:10')",
                "time >= '2024-02-29 12:00' AND value < 2",
            ),
            "0,5",
        ),
        (&buckets("time_bucket_gapfill(interval '5 minutes', time)", WITHIN), "0,5,10,15"),
    ])
}

#[test]
fn buckets_are_of_months_and_numbers_and_of_nothing() -> Result<()> {
    check(&[
        (
            "SELECT time_bucket_gapfill('1 month', time) AS month, count(*) FROM metrics \
             WHERE time > '2023-12-31' AND time < '2024-03-31' GROUP BY month ORDER BY month",
            "2023-12-01 00:00|\n2024-01-01 00:00|\n2024-02-01 00:00|4\n2024-03-01 00:00|",
        ),
        // Of nothing there are no groups, and all buckets where nothing is grouped by.
        (
            "SELECT time_bucket_gapfill('10 minutes', time) AS b, locf(max(value)) FROM metrics \
             WHERE name = 'none' AND time >= '2024-02-29 12:00' AND time < '2024-02-29 12:20' GROUP BY b",
            "12:00|\n12:10|",
        ),
        (
            "SELECT time_bucket_gapfill('10 minutes', time) AS b, name, max(value) FROM metrics \
             WHERE name = 'none' AND time >= '2024-02-29 12:00' AND time < '2024-02-29 12:20' GROUP BY b, name",
            "",
        ),
        (
            "SELECT count(*) FROM (SELECT time_bucket_gapfill('1 minute', time) AS b, max(value) FROM metrics \
             WHERE time > now() - interval '1 hour' AND time < now() GROUP BY b) AS t WHERE b < now()",
            "61",
        ),
        (
            "SELECT time_bucket_gapfill(10, x, 0, 40) AS b, locf(max(y)), locf(max(y), treat_null_as_missing => true), interpolate(max(y)) \
             FROM (VALUES (5, 1), (12, NULL), (33, 7), (55, 3)) AS t(x, y) GROUP BY b ORDER BY b",
            "0|1|1|1\n10||1|\n20||1|\n30|7|7|7\n50|3|3|3",
        ),
        (
            "SELECT time_bucket_gapfill(10, x, 0, 40) AS b, interpolate(max(y)), interpolate(max(z)) \
             FROM (VALUES (5, 1, 1.5::float8), (33, -7, 'NaN'::float8)) AS t(x, y, z) GROUP BY b ORDER BY b",
            "0|1|1.5\n10|-1|NaN\n20|-4|NaN\n30|-7|NaN",
        ),
    ])
}

#[test]
fn gaps_without_end_are_refused() -> Result<()> {
    let asked =
        |call: &str, rest: &str| format!("SELECT {call} AS b, count(*) FROM metrics {rest}");
    let within = format!("WHERE {WITHIN}");
    let call = "time_bucket_gapfill('5 minutes', time)";
    let cases = [
        (asked(call, "GROUP BY b"), "22023", "could not infer start from WHERE clause"),
        (asked(call, "GROUP BY b"), "22023", "HINT:  Specify start and finish"),
        (asked(call, "WHERE time > '2024-02-29' GROUP BY b"), "22023", "could not infer finish"),
        (asked(call, "WHERE time > '2024-02-29' OR time < '2025-01-01' GROUP BY b"), "22023", "could not infer start"),
        (asked("time_bucket_gapfill('5 minutes', time, NULL, NULL)", "GROUP BY b"), "22023", "could not infer start"),
        (asked(call, "WHERE time > '2024-02-29' AND time < '2023-01-01' GROUP BY b"), "22023", "start must be before finish"),
        (asked("time_bucket_gapfill('1 second', time)", "WHERE time > '2000-01-01' AND time < '2024-01-01' GROUP BY b"), "54000", "1000000 are the most"),
        (asked(call, "WHERE time > '-infinity' AND time < 'infinity' GROUP BY b"), "22008", ""),
        (asked("time_bucket_gapfill('0 seconds', time)", &format!("{within} GROUP BY b")), "22023", "period must be greater"),
        (asked(call, &within), "42", ""),
        (format!("SELECT {call} FROM metrics {within}"), "0A000", "no top level time_bucket_gapfill"),
        (asked(call, &format!("{within} GROUP BY {call} + interval '1 hour'")), "42", ""),
        (format!("SELECT {call} AS b, time_bucket_gapfill('1 hour', time) AS c FROM metrics {within} GROUP BY b, c"), "0A000", "multiple"),
        (format!("SELECT locf(avg(value)) FROM metrics {within}"), "0A000", "HINT"),
        (format!("SELECT {call} AS b, locf(avg(value), 1) FROM metrics {within} GROUP BY b"), "0A000", "prev"),
        (format!("SELECT {call} AS b, interpolate(max(name)) FROM metrics {within} GROUP BY b"), "42883", "interpolate"),
        (asked("time_bucket_gapfill('5 minutes', time, 'Asia/Tokyo')", &format!("{within} GROUP BY b")), "0A000", "time zone"),
        // Many groups of many buckets.
        (
            "SELECT count(*) FROM (SELECT time_bucket_gapfill(1, x, 0, 600000) AS b, y FROM (VALUES (1, 1), (2, 2)) AS t(x, y) GROUP BY b, y) AS u".to_string(),
            "54000",
            "time_bucket_gapfill would make more than",
        ),
    ];
    let cases: Vec<(&str, &str, &str)> =
        cases.iter().map(|(asked, code, words)| (asked.as_str(), *code, *words)).collect();
    refuse(&cases)
}

#[test]
fn parameters_say_where_buckets_begin() -> Result<()> {
    let directory = tempfile::tempdir()?;
    let (server, _psql) = start(&directory)?;
    let mut raw = Raw::of(&server)?;
    let text = "SELECT time_bucket_gapfill($3, time) AS b, count(*) FROM metrics \
                WHERE time >= $1 AND time < $2 GROUP BY b ORDER BY b";
    raw.say('P', format!("\0{text}\0\0\0").as_bytes())?;
    for (finish, expected) in [("2024-02-29 12:10", 2), ("2024-02-29 12:20", 4)] {
        let mut bind = b"\0\0\0\0\0\x03".to_vec();
        for value in ["2024-02-29 12:00", finish, "5 minutes"] {
            bind.extend_from_slice(&u32::try_from(value.len())?.to_be_bytes());
            bind.extend_from_slice(value.as_bytes());
        }
        bind.extend_from_slice(b"\0\0");
        raw.say('B', &bind)?;
        raw.fetch("", 0)?;
        let said = raw.sync()?;
        let rows = said.iter().filter(|message| message.kind == 'D').count();
        ensure!(rows == expected, "{finish}: {rows} rows of {said:?}");
    }
    Ok(())
}

/// A counter that begins again, an hour of it by tens of minutes, told out of order.
const COUNTER: &str = "(VALUES \
    (timestamptz '2024-02-29 12:20', 5.0::float8), (timestamptz '2024-02-29 12:00', 10.0), \
    (timestamptz '2024-02-29 12:10', 30.0), (timestamptz '2024-02-29 12:30', NULL), \
    (NULL, 99.0)) AS c(t, v)";

#[test]
fn summaries_say_what_the_toolkit_says() -> Result<()> {
    let of = |items: &str| format!("SELECT {items} FROM {COUNTER}");
    let nothing = |items: &str| format!("SELECT {items} FROM {COUNTER} WHERE v < 0");
    let one = |items: &str| format!("SELECT {items} FROM {COUNTER} WHERE v = 10");
    check(&[
        (
            &of(
                "delta(counter_agg(t, v)), rate(counter_agg(t, v)) * 1200, num_resets(counter_agg(t, v)), num_changes(counter_agg(t, v)), time_delta(counter_agg(t, v))",
            ),
            "25|25|1|2|1200",
        ),
        (&of("counter_agg(t, v) -> delta(), counter_agg(t, v) -> num_resets()"), "25|1"),
        (&nothing("delta(counter_agg(t, v)) IS NULL, rate(counter_agg(t, v)) IS NULL"), "t|t"),
        (&one("delta(counter_agg(t, v)), rate(counter_agg(t, v)) IS NULL"), "0|t"),
        (
            &format!(
                "SELECT rate(s) * 1200, delta(s) FROM (SELECT counter_agg(t, v) AS s FROM {COUNTER}) AS x"
            ),
            "25|25",
        ),
        (
            "SELECT labels->>'job' AS job, delta(counter_agg(time, value)) FROM metrics WHERE name = 'up' GROUP BY job ORDER BY job",
            "a|4\nb|0",
        ),
        (
            &of(
                "average(time_weight('LOCF', t, v)), average(time_weight('linear', t, v)), integral(time_weight('LOCF', t, v), 'minutes'), time_weight('Linear', t, v) -> integral()",
            ),
            "20|18.75|400|22500",
        ),
        (
            &one("average(time_weight('LOCF', t, v)) IS NULL, integral(time_weight('LOCF', t, v))"),
            "t|0",
        ),
        (
            &of(
                "average(stats_agg(v)), round(stddev(stats_agg(v), 'population') * 100), num_vals(stats_agg(v)), round(variance(stats_agg(v)))",
            ),
            "36|3756|4|1881",
        ),
        (&nothing("average(stats_agg(v)) IS NULL, stats_agg(v) -> stddev() IS NULL"), "t|t"),
        (&one("stats_agg(v) -> average(), stats_agg(v) -> stddev() IS NULL"), "10|t"),
        (
            &of(
                "stats_agg(v) -> sum(), sum(stats_agg(v)), integral(time_weight('LOCF', t, v), 'day') * 86400, integral(time_weight('LOCF', t, v), 'h')",
            ),
            "144|144|24000|6.666666666666667",
        ),
        (
            &format!(
                "SELECT s -> num_vals(), round(s -> stddev('pop')), round(s -> variance()), s -> sum(), s -> average() \
                 FROM (SELECT stats_agg(v) AS s FROM {COUNTER}) AS x"
            ),
            "4|38|1881|144|36",
        ),
        (
            &of(
                "counter_agg(t, v ORDER BY t) -> delta(), percentile_agg(v ORDER BY v) -> num_vals(), histogram(v, 0, 99, 1 ORDER BY v), stats_agg(v ORDER BY t) -> num_vals()",
            ),
            "25|4|{0,3,1}|4",
        ),
        ("SELECT variance(v) FROM (VALUES (1.0::float8), (1.0), (4.0)) AS t(v)", "3"),
        (
            "SELECT stats_agg(DISTINCT v) -> num_vals(), stats_agg(DISTINCT v) -> average(), num_vals(stats_agg(v)), \
             approx_count_distinct(DISTINCT v) FROM (VALUES (1.0), (1.0), (4.0)) AS t(v)",
            "2|2.5|3|2",
        ),
    ])
}

#[test]
fn percentiles_and_counts_are_postgresqls() -> Result<()> {
    let nothing = |items: &str| format!("SELECT {items} FROM {COUNTER} WHERE v < 0");
    check(&[
        (
            "SELECT round(approx_percentile(0.5, percentile_agg(v)), 2), round(percentile_agg(v) -> approx_percentile(1), 1), \
             round(approx_percentile(0.1, uddsketch(100, 0.01, v)), 1), round(approx_percentile(0.5, tdigest(100, v)), 1) \
             FROM (VALUES (1.0), (2.0), (3.0), (NULL)) AS t(v)",
            "2|3|1|2",
        ),
        (&nothing("approx_percentile(0.5, percentile_agg(v)) IS NULL"), "t"),
        (
            "SELECT percentile_cont(0.5) WITHIN GROUP (ORDER BY v), percentile_disc(0.5) WITHIN GROUP (ORDER BY v), \
             percentile_disc(0) WITHIN GROUP (ORDER BY v), percentile_disc(0.25) WITHIN GROUP (ORDER BY v DESC) \
             FROM (VALUES (1), (2), (3), (4), (NULL)) AS t(v)",
            "2.5|2|1|4",
        ),
        (
            "SELECT percentile_cont(0.25) WITHIN GROUP (ORDER BY v DESC), percentile_cont(0.9) WITHIN GROUP (ORDER BY v) FILTER (WHERE v < 5), \
             percentile_cont(0.3) WITHIN GROUP (ORDER BY v), percentile_cont(NULL) WITHIN GROUP (ORDER BY v) IS NULL \
             FROM (VALUES (10::bigint), (2), (3), (9), (5), (6), (4), (8), (7), (1), (NULL)) AS t(v)",
            "7.75|3.7|3.6999999999999997|t",
        ),
        (
            "SELECT labels->>'job' AS j, percentile_cont(0.75) WITHIN GROUP (ORDER BY value) FROM metrics GROUP BY j ORDER BY j",
            "a|4\nb|10",
        ),
        (&nothing("percentile_cont(0.5) WITHIN GROUP (ORDER BY v) IS NULL"), "t"),
        ("SELECT percentile_disc(0.5) WITHIN GROUP (ORDER BY name) FROM metrics", "up"),
        // However few buckets are asked for there is an end.
        (
            "SELECT round(approx_percentile(0.5, uddsketch(1, 0.001, v)), 1), round(approx_percentile(0.2, tdigest(1, v)), 1) \
             FROM (VALUES (0.5::float8), (2), (-0.5), (-2), (0), ('infinity')) AS t(v)",
            "0.5|-0.5",
        ),
        (
            "SELECT percentile_disc(0.5) WITHIN GROUP (ORDER BY value) IS NULL FROM metrics WHERE false",
            "t",
        ),
        (
            "SELECT approx_count_distinct(value), distinct_count(hyperloglog(64, labels->>'job')) FROM metrics",
            "4|2",
        ),
        (
            "SELECT histogram(value, 0, 6, 3), histogram(value, 4, 5, 1) FROM metrics",
            "{0,1,1,1,1}|{2,0,2}",
        ),
        (
            "SELECT labels->>'job' AS j, histogram(value, 0, 6, 3) FROM metrics GROUP BY j ORDER BY j",
            "a|{0,1,1,1,0}\nb|{0,0,0,0,1}",
        ),
        ("SELECT histogram(value, 0, 6, 3) IS NULL FROM metrics WHERE false", "t"),
        (
            "SELECT histogram(v, 0, 1, 1) FROM (VALUES ('Infinity'::float8), ('-Infinity'), (NULL)) AS t(v)",
            "{1,0,1}",
        ),
    ])
}

#[test]
fn summaries_of_what_makes_no_sense_are_refused() -> Result<()> {
    refuse(&[
        ("SELECT histogram(value, 6, 0, 3) FROM metrics", "2201G", "lower bound"),
        ("SELECT histogram(value, 0, 6, 0) FROM metrics", "2201G", "greater than zero"),
        ("SELECT histogram(value, 0, 6, 1000000) FROM metrics", "54000", "10000"),
        ("SELECT histogram('NaN'::float8, 0, 6, 3)", "2201G", "NaN"),
        ("SELECT time_weight('x', time, value) FROM metrics", "22023", "LOCF"),
        ("SELECT integral(time_weight('LOCF', time, value), 'x') FROM metrics", "22023", "unit"),
        ("SELECT approx_percentile(1.5, percentile_agg(value)) FROM metrics", "22023", "1.5"),
        ("SELECT rate(value) FROM metrics", "42883", "rate"),
        ("SELECT average(counter_agg(time, value)) FROM metrics", "42883", "average"),
        (
            "SELECT percentile_disc(2) WITHIN GROUP (ORDER BY value) FROM metrics",
            "22003",
            "between 0 and 1",
        ),
        (
            "SELECT percentile_cont(2) WITHIN GROUP (ORDER BY value) FROM metrics",
            "22003",
            "between 0 and 1",
        ),
        ("SELECT percentile_cont(0.5) WITHIN GROUP (ORDER BY name) FROM metrics", "42883", "cont"),
        ("SELECT percentile_agg(DISTINCT value) FROM metrics", "0A000", "DISTINCT"),
        ("SELECT counter_agg(DISTINCT time, value) FROM metrics", "0A000", "DISTINCT"),
        ("SELECT histogram(DISTINCT value, 0, 6, 3) FROM metrics", "0A000", "DISTINCT"),
        (
            "SELECT stddev(s) FROM (SELECT stats_agg(value) AS s FROM metrics) AS x",
            "0A000",
            "-> stddev()",
        ),
        (
            "SELECT variance(s) FROM (SELECT stats_agg(value) AS s FROM metrics) AS x",
            "0A000",
            "-> variance()",
        ),
        (
            "SELECT sum(s) FROM (SELECT stats_agg(value) AS s FROM metrics) AS x",
            "0A000",
            "-> sum()",
        ),
    ])
}

#[test]
fn buckets_are_of_what_they_are_asked_of() -> Result<()> {
    check(&[
        (
            "SELECT time_bucket(bucket_width => '1 day', ts => timestamptz '2024-03-01 05:00', origin => timestamptz '2024-02-29 06:00')",
            "06:00",
        ),
        (
            "SELECT time_bucket('1 day', timestamptz '2024-03-01 05:00', \"offset\" => '6 hours')",
            "06:00",
        ),
        (
            "SELECT time_bucket('5 minutes', timestamptz '2024-02-29 12:04', 'UTC'), time_bucket('5 minutes', timestamptz '2024-02-29 12:04', timezone => 'UTC')",
            "12:00|12:00",
        ),
        (
            "SELECT time_bucket('1 day', date '2024-05-05'), time_bucket('1 week', date '2024-05-05'), time_bucket('1 month', date '2024-05-05', origin => date '2024-01-01'), time_bucket(5::int2, 12::int2) + 1::int2",
            "2024-05-05|2024-04-29|2024-05-01|11",
        ),
        (
            "SELECT time_bucket_gapfill('1 day', d, '2024-05-05', '2024-05-07') AS b, count(*) FROM (VALUES (date '2024-05-05')) AS t(d) GROUP BY b ORDER BY b",
            "2024-05-05 00:00:00|1\n2024-05-06 00:00:00|",
        ),
        (
            "SELECT time_bucket_gapfill(10, i, 0, 20) AS b, count(*) FROM (VALUES (5::int2)) AS t(i) GROUP BY b ORDER BY b",
            "0|1\n10|",
        ),
        (
            "SELECT time_bucket('1 day', timestamptz 'infinity'), time_bucket('1 day', timestamptz '-infinity')",
            "infinity|-infinity",
        ),
    ])?;
    refuse(&[
        (
            "SELECT time_bucket('100000000 days', timestamptz '1999-12-31')",
            "22008",
            "timestamp out of range",
        ),
        ("SELECT time_bucket(10, -9223372036854775808)", "22003", "bigint out of range"),
        ("SELECT time_bucket('1 hour', date '2024-05-05')", "22023", "sub-day"),
        ("SELECT time_bucket('1 day', now(), 'Asia/Tokyo')", "0A000", "time zone"),
        ("SELECT time_bucket('1 day', now(), start => now())", "42883", "bucket_width"),
    ])
}

/// One text in many rows is there once, and what is copied is bounded.
#[test]
fn large_values_are_carried_on() -> Result<()> {
    let carried = |size: usize, items: &str| {
        format!(
            "SELECT count(*), sum(l) FROM (SELECT time_bucket_gapfill(1, t, 0, 8000) AS b, {items} AS l \
             FROM (VALUES (0, repeat('x', {size}))) AS x(t, v) GROUP BY 1) AS q"
        )
    };
    check(&[
        (&carried(120_000, "length(locf(max(v)))"), "8000|960000000"),
        (
            &carried(600_000, "length(locf(max(v))) + length(locf(first(v || 'a', t)))"),
            "8000|9600008000",
        ),
        (
            "SELECT count(*), min(l) FROM (SELECT time_bucket_gapfill(1, t, 0, 8000) AS b, g, length(g) AS l \
             FROM (VALUES (0, repeat('x', 300000)), (0, repeat('y', 300000))) AS x(t, g) GROUP BY 1, 2) AS q",
            "16000|300000",
        ),
    ])
}

/// A month is 30 days, whatever it is made of.
#[test]
fn intervals_are_in_the_order_of_their_worth() -> Result<()> {
    let of = |items: &str, rest: &str| {
        format!(
            "SELECT {items} FROM (VALUES ('a', interval '31 days'), ('b', interval '1 month'), \
             ('c', interval '29 days'), ('d', NULL), ('e', interval '800 hours')) AS t(n, v) {rest}"
        )
    };
    check(&[
        (&of("n", "ORDER BY v"), "c\nb\na\ne\nd"),
        (&of("n", "ORDER BY v DESC NULLS LAST, n LIMIT 2"), "e\na"),
        (&of("n, v", "ORDER BY 2 LIMIT 1"), "c|29 days"),
        (&of("first(n, v), last(n, v)", ""), "c|e"),
        (
            &of("string_agg(n, ',' ORDER BY v), array_agg(n ORDER BY v DESC)", ""),
            "c,b,a,e,d|{d,e,a,b,c}",
        ),
        (&of("min(v), max(v)", "WHERE n < 'e'"), "29 days|31 days"),
        (&of("min(v) IS NULL", "WHERE n = 'd'"), "t"),
        (
            &of("n < 'c' AS g, max(v)", "WHERE n < 'e' GROUP BY g ORDER BY max(v)"),
            "f|29 days\nt|31 days",
        ),
        (&of("percentile_disc(0.5) WITHIN GROUP (ORDER BY v)", ""), "1 mon"),
        (
            &of(
                "string_agg(n, ',' ORDER BY r) FROM (SELECT n, row_number() OVER (ORDER BY v) AS r",
                ") AS u",
            ),
            "c,b,a,e,d",
        ),
    ])
}

#[test]
fn many_points_are_shown_by_few() -> Result<()> {
    let points = "(SELECT timestamptz '2024-02-29 12:00' + n * interval '1 second' AS t, \
                  CASE WHEN n = 400 THEN 99 ELSE n % 7 END::float8 AS v FROM generate_series(0, 999) AS s(n)) AS x";
    check(&[
        (
            &format!("SELECT time, value FROM unnest((SELECT lttb(t, v, 4) FROM {points}))"),
            "12:00|0\n12:06:40+00|99\n12:08:24+00|0\n12:16:39+00|5",
        ),
        (
            &format!(
                "SELECT count(*), max(p.value) FROM unnest((SELECT lttb(t, v, 50) FROM {points})) p"
            ),
            "50|99",
        ),
        (
            &format!(
                "SELECT s.at FROM unnest((SELECT lttb(t, v, 3) AS l FROM {points})) AS s(at, v)"
            ),
            "12:00\n12:06:40+00\n12:16:39+00",
        ),
        (
            &format!(
                "SELECT (p).value FROM (SELECT unnest(lttb(t, v, 3)) AS p FROM {points}) AS s"
            ),
            "0\n99\n5",
        ),
        (
            "SELECT job, count(*) FROM (SELECT labels->>'job' AS job, unnest(lttb(time, value, 100)) AS p \
             FROM metrics GROUP BY job) AS s GROUP BY job ORDER BY job",
            "a|3\nb|1",
        ),
        (
            "SELECT count(*) FROM unnest((SELECT lttb(time, value, 9) FROM metrics WHERE false))",
            "0",
        ),
    ])?;
    refuse(&[
        ("SELECT lttb(time, value, 2) FROM metrics", "22023", "3 points at least"),
        ("SELECT lttb(name, value, 9) FROM metrics", "42883", "lttb"),
    ])
}

#[test]
fn timescaledb_information_tells_of_what_there_is() -> Result<()> {
    let directory = tempfile::tempdir()?;
    let (_server, psql) = start(&directory)?;
    psql.ask(&["CREATE TABLE cpu (time timestamptz, host text, usage float8)"], "")?;
    psql.ask(&["SELECT create_hypertable('cpu', 'time')"], "")?;
    psql.ask(&["SELECT add_retention_policy('cpu', INTERVAL '30 days')"], "")?;
    psql.ask(
        &["CREATE MATERIALIZED VIEW hourly WITH (timescaledb.continuous) AS \
           SELECT time_bucket('1 hour', time) AS hour, max(usage) FROM cpu GROUP BY hour"],
        "",
    )?;
    for (asked, expected) in [
        (
            "SELECT h.hypertable_name, d.column_name, d.column_type FROM timescaledb_information.hypertables h \
             JOIN timescaledb_information.dimensions d USING (hypertable_schema, hypertable_name)",
            "cpu|time|timestamp with time zone",
        ),
        (
            "SELECT view_name, hypertable_name, materialized_only FROM timescaledb_information.continuous_aggregates",
            "hourly|cpu|f",
        ),
        (
            "SELECT job_id, proc_name, hypertable_name, config::jsonb->>'drop_after' FROM timescaledb_information.jobs",
            "1000|policy_retention|cpu|30 days",
        ),
    ] {
        assert_eq!(psql.ask(&[asked], "")?.trim_end(), expected, "{asked}");
    }
    Ok(())
}

#[test]
fn upkeep_is_done_already() -> Result<()> {
    let directory = tempfile::tempdir()?;
    let (_server, psql) = start(&directory)?;
    for (asked, expected) in [
        ("SELECT create_hypertable('metrics', 'time')", "(1,public,metrics,f)"),
        ("SELECT add_compression_policy('metrics', INTERVAL '7 days')", "-1"),
        ("SELECT compress_chunk('metrics')", "metrics"),
        (
            "ALTER TABLE metrics SET (timescaledb.compress, timescaledb.compress_segmentby = 'name')",
            "ALTER TABLE",
        ),
        ("CALL add_columnstore_policy('metrics', after => INTERVAL '7 days')", "CALL"),
    ] {
        let said = psql.say(&[asked], "")?;
        ensure!(said.is_ok && said.out.trim() == expected, "{asked}: {said:?}");
        ensure!(said.error.contains("NOTICE:  samples are always columnar"), "{asked}: {said:?}");
    }
    refuse(&[
        ("SELECT create_hypertable('conditions', 'time')", "42P01", "does not exist"),
        ("ALTER TABLE conditions SET (timescaledb.compress)", "42P01", "does not exist"),
    ])
}
