//! What SQL says where PostgreSQL and DataFusion, which plans it, are of two minds: answers are
//! PostgreSQL's, or there is an error.

use anyhow::{Result, ensure};
use e2e::postgres::{self, Raw};
use e2e::{Launch, Psql, Server};

/// 2024-02-29 12:00:00 UTC in milliseconds.
const NOON: i64 = 1_709_208_000_000;

fn start(directory: &tempfile::TempDir) -> Result<(Server, Psql)> {
    let (server, psql) = postgres::start(directory.path())?;
    let lines = format!(
        "up{{job=\"a\",env=\"dev\"}} 1 {NOON}\nup{{job=\"b\"}} 0 {}\ncpu 2.5 {}\n",
        NOON + 7_200_000,
        NOON + 172_800_000,
    );
    psql.ask(&["COPY metrics FROM STDIN"], &lines)?;
    Ok((server, psql))
}

fn check(cases: &[(&str, &str)]) -> Result<()> {
    let directory = tempfile::tempdir()?;
    let (_server, psql) = start(&directory)?;
    for (asked, expected) in cases {
        let said = psql.ask(&[asked], "")?;
        assert_eq!(said, *expected, "{asked}");
    }
    Ok(())
}

#[test]
fn intervals_are_compared_by_what_they_are_worth() -> Result<()> {
    check(&[
        ("SELECT interval '24 hours' = interval '1 day'", "t"),
        ("SELECT interval '40 days' > interval '1 month'", "t"),
        ("SELECT interval '1:30' = interval '90 minutes'", "t"),
        ("SELECT interval '36 hours' BETWEEN interval '1 day' AND '2 days'", "t"),
        (
            "SELECT name FROM metrics WHERE time - '2024-02-29 12:00:00+00' < interval '1 day' ORDER BY 1",
            "up\nup",
        ),
        (
            "SELECT count(*) FROM metrics WHERE time - '2024-02-29 12:00:00+00'::timestamptz >= '1 day'",
            "1",
        ),
        (
            "SELECT count(*) FROM metrics WHERE interval '90 minutes' < time - timestamptz '2024-02-29 12:00'",
            "2",
        ),
    ])
}

#[test]
fn casts_are_asked_for_once() -> Result<()> {
    check(&[
        (
            "SELECT count(*) FROM (SELECT DISTINCT labels::text, time::timestamp FROM metrics WHERE false) AS t",
            "0",
        ),
        ("SELECT labels::text FROM metrics WHERE false UNION SELECT 'x'", "x"),
    ])
}

#[test]
fn buckets_are_timescaledbs() -> Result<()> {
    check(&[
        (
            "SELECT DISTINCT time_bucket('1 MONTH', time) FROM metrics ORDER BY 1",
            "2024-02-01 00:00:00+00\n2024-03-01 00:00:00+00",
        ),
        (
            "SELECT DISTINCT time_bucket(interval '1 decade', time) FROM metrics",
            "2020-01-01 00:00:00+00",
        ),
        ("SELECT time_bucket('1 week', max(time)) FROM metrics", "2024-02-26 00:00:00+00"),
        (
            "SELECT time_bucket('1 day', timestamptz '2024-02-29 12:00', timestamptz '2024-01-01 06:00')",
            "2024-02-29 06:00:00+00",
        ),
        (
            "SELECT time_bucket('1 hour', timestamptz '2024-02-29 12:10', interval '15 minutes')",
            "2024-02-29 11:15:00+00",
        ),
        ("SELECT time_bucket(10, 25), time_bucket(10, -1)", "20|-10"),
        (
            "SELECT time_bucket('5 minutes', time) AS b, count(*) FROM metrics GROUP BY b ORDER BY b LIMIT 1",
            "2024-02-29 12:00:00+00|1",
        ),
        ("SELECT last(value, time), first(name, time) FROM metrics", "2.5|up"),
        ("SELECT last(v, t) FROM (VALUES (1, 5), (2, NULL)) AS x(v, t)", "1"),
    ])?;
    let directory = tempfile::tempdir()?;
    let (_server, psql) = start(&directory)?;
    for (asked, code) in [
        ("SELECT time_bucket('0 seconds', time) FROM metrics", "22023"),
        ("SELECT time_bucket('1 month 1 day', time) FROM metrics", "22023"),
        ("SELECT time_bucket('-1 day', time) FROM metrics", "22023"),
    ] {
        let said = psql.say(&["\\set VERBOSITY verbose", asked], "")?;
        ensure!(!said.is_ok && said.error.contains(code), "{asked}: {said:?}");
    }
    Ok(())
}

#[test]
fn lists_and_arrays_keep_what_is_null() -> Result<()> {
    check(&[
        ("SELECT count(*) FROM metrics WHERE name = ANY('{up,NULL}')", "2"),
        ("SELECT count(*) FROM metrics WHERE name <> ALL('{cpu,NULL}')", "0"),
        ("SELECT 'x' = ANY('{a,NULL}') IS NULL, 'a' = ANY('{a,NULL}')", "t|t"),
        ("SELECT ARRAY(SELECT name FROM metrics ORDER BY time DESC)", "{cpu,up,up}"),
        ("SELECT ARRAY(SELECT value FROM metrics WHERE name = 'up' ORDER BY 1)", "{0,1}"),
        ("SELECT ARRAY(SELECT name FROM metrics WHERE false)", "{}"),
        ("SELECT ARRAY(SELECT DISTINCT name FROM metrics ORDER BY 1)", "{cpu,up}"),
        ("SELECT ARRAY(SELECT name FROM metrics ORDER BY time DESC LIMIT 1)", "{cpu}"),
        ("SELECT ARRAY(SELECT name FROM metrics GROUP BY 1 ORDER BY count(*) DESC)", "{up,cpu}"),
        ("SELECT ARRAY(SELECT 1 UNION ALL SELECT 2)", "{1,2}"),
    ])
}

#[test]
fn operators_of_jsonb_are_postgresqls() -> Result<()> {
    let whole = "FROM metrics WHERE labels->>'job' = 'a'";
    let cases = [
        (
            "labels || '{\"env\": \"prod\", \"x\": \"1\"}'",
            "{\"x\": \"1\", \"env\": \"prod\", \"job\": \"a\"}",
        ),
        ("labels - 'env'", "{\"job\": \"a\"}"),
        ("labels - '{env,job}'::text[]", "{}"),
        ("labels ?| ARRAY['env', 'nothing'], labels ?& ARRAY['env', 'nothing']", "t|f"),
        ("labels #>> '{env}', labels #> '{env}'", "dev|\"dev\""),
        ("labels #>> '{env,x}' IS NULL", "t"),
        ("'[1, \"a\"]'::jsonb || '2'::jsonb, '[1, 2, 3]'::jsonb - (-1)", "[1, \"a\", 2]|[1, 2]"),
        ("(labels || '{\"a\": 1}')->>'a', labels->>'job' || '!'", "1|a!"),
    ];
    let asked: Vec<String> =
        cases.iter().map(|(asked, _)| format!("SELECT {asked} {whole}")).collect();
    let both = asked.iter().map(String::as_str).zip(cases.iter().map(|(_, expected)| *expected));
    check(&both.collect::<Vec<_>>())
}

#[test]
fn texts_and_times_are_read_as_postgresql_reads_them() -> Result<()> {
    check(&[
        (
            "SELECT value || '', 1 || 'a', 'x' || NULL IS NULL FROM metrics WHERE name = 'cpu'",
            "2.5|1a|t",
        ),
        ("SELECT count(*) FROM metrics WHERE time > '2024-02-29 12:30'", "2"),
        (
            "SELECT count(*) FROM metrics WHERE time IN ('2024-02-29 12:00', '2024-02-29 14:00')",
            "2",
        ),
        ("SELECT interval '1 day' IN (interval '24 hours')", "t"),
        (
            "SELECT count(*) FROM metrics WHERE time BETWEEN '2024-02-29' AND '2024-03-01 00:00'",
            "2",
        ),
        ("SELECT count(*) FROM metrics WHERE time < '2500-01-01' AND time > '1600-01-01'", "3"),
        ("SELECT count(*) FROM metrics WHERE time < 'infinity' AND time > '-infinity'", "3"),
        ("SELECT '2024-02-29 14:00+02'::timestamptz", "2024-02-29 12:00:00+00"),
        ("SELECT 2.5::int, (-2.5)::int, 3.5::bigint, 2.4::int", "3|-3|4|2"),
        ("SELECT name FROM metrics ORDER BY time FETCH FIRST 1 ROW ONLY", "up"),
        ("SELECT name FROM metrics ORDER BY time OFFSET 2 ROWS FETCH NEXT 5 ROWS ONLY", "cpu"),
        ("SELECT prom_value('a NaN') = 'NaN'::float8", "t"),
    ])
}

#[test]
fn patterns_with_backslashes_find_what_postgresql_finds() -> Result<()> {
    check(&[
        ("SELECT n FROM (VALUES ('a%'), ('a\\b')) v(n) WHERE n ~ '\\\\'", "a\\b"),
        ("SELECT n FROM (VALUES ('C:\\x'), ('C:%x')) v(n) WHERE n ~ '^C:\\\\'", "C:\\x"),
        ("SELECT n FROM (VALUES ('a%'), ('a\\b')) v(n) WHERE n !~ '\\\\'", "a%"),
        ("SELECT n FROM (VALUES ('1 2'), ('x')) v(n) WHERE n ~ '^\\d\\s\\d$'", "1 2"),
        ("SELECT count(*) FROM metrics WHERE name ~* 'U\\w'", "2"),
    ])?;
    let directory = tempfile::tempdir()?;
    let (server, psql) = start(&directory)?;
    for asked in ["SELECT 'a' ~ '[a&&b]'", "SELECT 'a' ~ '[[.a.]]'"] {
        let said = psql.say(&["\\set VERBOSITY verbose", asked], "")?;
        ensure!(!said.is_ok && said.error.contains("0A000"), "{said:?}");
    }
    // A dot is any character in a parameter, too.
    let mut raw = Raw::of(&server)?;
    raw.say('P', b"\0SELECT E'a\\nb' ~ $1, name ~ $1 FROM metrics LIMIT 1\0\0\x01\0\0\0\x19")?;
    raw.say('B', b"\0\0\0\0\0\x01\0\0\0\x03a.b\0\0")?;
    raw.fetch("", 0)?;
    let said = raw.sync()?;
    assert_eq!(Raw::kinds(&said), "12DCZ", "{said:?}");
    ensure!(said[2].body.ends_with(b"\0\x02\0\0\0\x01t\0\0\0\x01f"), "{said:?}");
    Ok(())
}

#[test]
fn intervals_are_shown_and_read_as_postgresqls() -> Result<()> {
    check(&[
        ("SELECT NULL::interval IS NULL, NULL::interval", "t|"),
        (
            "SELECT i FROM (VALUES (interval '1 day'), (NULL)) v(i) ORDER BY i NULLS FIRST",
            "\n1 day",
        ),
        (
            "SELECT '30'::interval, interval '90', '1 day 5'::interval",
            "00:00:30|00:01:30|1 day 00:00:05",
        ),
        (
            "SELECT interval '30' day, interval '14 mons -1 days 02:03:04.5'",
            "30 days|1 year 2 mons -1 days +02:03:04.5",
        ),
        ("SELECT max(time) - min(time) FROM metrics", "2 days"),
        ("SELECT timestamptz '2024-05-20' + '90'", "2024-05-20 00:01:30+00"),
        ("SELECT time_bucket('300', timestamptz '2024-05-20 12:34')", "2024-05-20 12:30:00+00"),
    ])
}

#[test]
fn samples_of_which_one_has_a_time_that_is_refused_are_none() -> Result<()> {
    let directory = tempfile::tempdir()?;
    let (_server, psql) = start(&directory)?;
    let lines = format!("good 1 {NOON}\nlate 1 4102444800000\n");
    let said = psql.say(&["COPY metrics FROM STDIN"], &lines)?;
    ensure!(!said.is_ok && said.error.contains("line 2"), "{said:?}");
    let asked = "INSERT INTO metrics (time, name, value) VALUES \
                 ('2024-02-29', 'good', 1), ('2100-01-01', 'late', 1)";
    ensure!(!psql.say(&[asked], "")?.is_ok);
    let count = "SELECT count(*) FROM metrics WHERE name IN ('good', 'late')";
    assert_eq!(psql.ask(&[count], "")?, "0");
    Ok(())
}

#[test]
fn who_waits_for_a_place_has_a_time_too() -> Result<()> {
    let directory = tempfile::tempdir()?;
    let launch = Launch::new(directory.path()).flag("postgres-listen", "127.0.0.1:0");
    let launch = launch.flag("self-scrape-interval", "0").flag("query.max-concurrency", "1");
    let server = launch.start()?;
    let mut busy = Raw::of(&server)?;
    busy.query("SELECT count(*) FROM generate_series(1, 1000000000000)")?;
    let psql = Psql::of(&server)?;
    let all = ["\\set VERBOSITY verbose", "SET statement_timeout = '300ms'", "SELECT 1"];
    e2e::poll("that the place is taken", std::time::Duration::from_secs(30), || {
        let said = psql.say(&all, "")?;
        ensure!(!said.is_ok && said.error.contains("57014"), "{said:?}");
        Ok(())
    })
}

#[test]
fn what_makes_much_of_little_ends() -> Result<()> {
    let directory = tempfile::tempdir()?;
    let (server, psql) = start(&directory)?;
    let nested = |inner: &str, outer: &str, times: usize| {
        (0..times).fold(inner.to_string(), |inner, _| outer.replace('@', &inner))
    };
    let replaced = nested("'x'", "replace(@, 'x', repeat('x', 4096))", 16);
    let matched = nested("'x'", "regexp_replace(@, 'x', repeat('x', 4096), 'g')", 16);
    let table = |each: &str, times: usize| {
        let inner = nested("SELECT 'x' AS a", &format!("SELECT {each} AS a FROM (@) AS t"), times);
        format!("SELECT length(a) FROM ({inner}) AS t")
    };
    for asked in [
        format!("SELECT length({replaced})"),
        format!("SELECT length({matched})"),
        table("a || a", 40),
        table("concat(a, a)", 40),
        table("concat_ws(a, a, a)", 40),
        table("quote_literal(quote_literal(a))", 60),
        "SELECT cardinality(a) FROM (SELECT string_to_array(repeat('x,', 20000000), ',') AS a) AS t"
            .to_string(),
    ] {
        let said = psql.say(&["\\set VERBOSITY verbose", &asked], "")?;
        let is_told = said.error.contains("54000") || said.error.contains("54001");
        ensure!(!said.is_ok && is_told, "{asked}: {said:?}");
    }
    let peak = server.resident_bytes("VmHWM")?;
    ensure!(peak < 1 << 30, "{peak} bytes");
    Ok(())
}

#[test]
fn nothing_is_written_where_nothing_may_be() -> Result<()> {
    let directory = tempfile::tempdir()?;
    let (server, psql) = start(&directory)?;
    let insert = "INSERT INTO metrics VALUES ('x 1')";
    for before in [
        &["BEGIN READ ONLY"][..],
        &["BEGIN", "SET TRANSACTION READ ONLY"],
        &["BEGIN", "SET transaction_read_only = on"],
        &["SET default_transaction_read_only = on"],
        &["SET SESSION CHARACTERISTICS AS TRANSACTION READ ONLY"],
        &["SET default_transaction_read_only = on", "BEGIN"],
    ] {
        for write in [insert, "COPY metrics FROM STDIN"] {
            let all: Vec<&str> =
                ["\\set VERBOSITY verbose"].iter().chain(before).chain([&write]).copied().collect();
            let said = psql.say(&all, "x 1\n")?;
            ensure!(!said.is_ok && said.error.contains("25006"), "{all:?}: {said:?}");
        }
    }
    psql.ask(
        &["SET default_transaction_read_only = on", "BEGIN READ WRITE", insert, "COMMIT"],
        "",
    )?;
    psql.ask(&["BEGIN READ ONLY", "SELECT 1", "COMMIT", insert], "")?;
    let said = psql.say(&["\\set VERBOSITY verbose", "BEGIN", "COMMIT AND CHAIN"], "")?;
    ensure!(said.error.contains("0A000"), "{said:?}");
    // Savepoints are of transactions.
    let mut raw = Raw::of(&server)?;
    for text in ["SAVEPOINT a", "ROLLBACK TO a", "RELEASE a"] {
        raw.query(text)?;
        assert_eq!(Raw::code(&raw.until('Z')?)?, "25P01", "{text}");
    }
    Ok(())
}

#[test]
fn lines_that_could_not_be_read_again_are_not_written() -> Result<()> {
    let directory = tempfile::tempdir()?;
    let (_server, psql) = start(&directory)?;
    for options in [
        "DELIMITER 'a'",
        "DELIMITER '.'",
        "FORMAT csv, DELIMITER '\"'",
        "DELIMITER '|', NULL 'a|b'",
    ] {
        let asked = format!("COPY (SELECT 1) TO STDOUT WITH ({options})");
        let said = psql.say(&["\\set VERBOSITY verbose", &asked], "")?;
        ensure!(!said.is_ok && said.error.contains("22023"), "{asked}: {said:?}");
    }
    let asked = "COPY (SELECT chr(8) || chr(11) || chr(12) || chr(9)) TO STDOUT";
    assert_eq!(psql.ask(&[asked], "")?, "\\b\\v\\f\\t");
    Ok(())
}

#[test]
fn portals_keep_to_the_rules() -> Result<()> {
    let directory = tempfile::tempdir()?;
    let (server, _psql) = start(&directory)?;
    let mut raw = Raw::of(&server)?;
    raw.query("BEGIN")?;
    raw.until('Z')?;
    raw.execute("SELECT * FROM generate_series(1, 9)", "a", 1)?;
    assert_eq!(Raw::kinds(&raw.sync()?), "12DsZ");
    // One of that name is there.
    raw.execute("SELECT 1", "a", 0)?;
    let said = raw.sync()?;
    assert_eq!(Raw::code(&said)?, "42P03", "{said:?}");
    // What has failed does not go on.
    raw.fetch("a", 1)?;
    assert_eq!(Raw::code(&raw.sync()?)?, "25P02");
    raw.query("ROLLBACK")?;
    raw.until('Z')?;
    // What is done is not done again.
    raw.query("BEGIN")?;
    raw.until('Z')?;
    raw.execute("INSERT INTO metrics VALUES ('once 1 1709208000000')", "i", 0)?;
    raw.fetch("i", 0)?;
    let said = raw.sync()?;
    assert_eq!(Raw::code(&said)?, "55000", "{said:?}");
    raw.query("COMMIT")?;
    // It failed, and what was inserted stays.
    assert_eq!(Raw::kinds(&raw.until('Z')?), "NCZ");
    Ok(())
}

/// More rows than come in a batch, and expressions that several threads work out.
#[test]
fn the_first_rows_of_each_key_are_in_the_order_that_is_asked() -> Result<()> {
    let directory = tempfile::tempdir()?;
    let (_server, psql) = start(&directory)?;
    psql.ask(&["CREATE TABLE t (id bigint PRIMARY KEY, g bigint, k text)"], "")?;
    psql.ask(
        &["INSERT INTO t SELECT n, n % 500, 'k' || n % 7 FROM generate_series(1, 30000) AS s(n)"],
        "",
    )?;
    let first = |g: i64| if g == 0 { 500 } else { g };
    let expected: Vec<String> =
        (0..500).rev().map(|g| format!("K{}|{}", first(g) % 7, first(g))).collect();
    let asked = "SELECT DISTINCT ON (g) upper(k), id FROM t WHERE id > 0 ORDER BY g DESC, id";
    assert_eq!(psql.ask(&[asked], "")?, expected.join("\n"));
    for (asked, expected) in [
        (
            "SELECT count(*), sum(id) FROM (SELECT DISTINCT ON (g, k) id FROM t ORDER BY g, k, id) s",
            "3500|6126750",
        ),
        ("SELECT DISTINCT ON (k) k FROM t WHERE g < 0", ""),
        (
            "SELECT DISTINCT ON (g IS NULL) coalesce(g, -1) FROM (VALUES (2), (NULL), (1), (NULL)) v(g) \
             ORDER BY g IS NULL, g DESC",
            "2\n-1",
        ),
        // What decides need not be shown; of some there are none.
        (
            "SELECT u.k, b.id FROM (VALUES ('k1'), ('k2'), ('no')) u(k) LEFT JOIN LATERAL \
             (SELECT id FROM t WHERE t.k = u.k ORDER BY g DESC, id LIMIT 2) b ON true ORDER BY 1, 2",
            "k1|1499\nk1|4999\nk2|499\nk2|3999\nno|",
        ),
        (
            "SELECT count(*) FROM (VALUES ('k1'), ('k2')) u(k) CROSS JOIN LATERAL \
             (SELECT id FROM t WHERE t.k = u.k ORDER BY g DESC LIMIT 0) b",
            "0",
        ),
    ] {
        assert_eq!(psql.ask(&[asked], "")?, expected, "{asked}");
    }
    Ok(())
}

#[test]
fn functions_of_one_value_stand_in_from_and_numbers_of_rows_are_of_any_type() -> Result<()> {
    check(&[
        ("SELECT * FROM generate_series(1, array_upper(array['a', 'b'], 1))", "1\n2"),
        ("SELECT * FROM generate_series(1::smallint, 2::bigint)", "1\n2"),
        ("SELECT array_position(NULL, 1) IS NULL, array_positions(NULL, 'a') IS NULL", "t|t"),
        ("SELECT array_position(a, 1) IS NULL FROM (SELECT NULL AS a) AS t", "t"),
        ("SELECT array_position(ARRAY[3, 1], 1)", "2"),
        (
            "SELECT i, s[i] FROM generate_series(1, 2) AS i, string_to_array('a,b', ',') s ORDER BY i",
            "1|a\n2|b",
        ),
        (
            r"SELECT quote_literal('it''s'), quote_literal('a\b'), quote_nullable('\'), quote_nullable(NULL)",
            r"'it''s'|E'a\\b'|E'\\'|NULL",
        ),
        ("SELECT * FROM current_setting('search_path') AS p", "\"$user\", public"),
    ])
}

/// A `numeric` has no place for what is very large or very small: beside a float it is one.
#[test]
fn a_float_beside_a_numeric_stays_a_float() -> Result<()> {
    let small = "FROM (VALUES (1e-17::float8)) AS t(v)";
    let large = "FROM (VALUES (1.5e300::float8)) AS t(v)";
    let of = |items: &str, from: &str| format!("SELECT {items} {from}");
    let joined = "FROM (VALUES (1.5::float8), (1e300), (1e-17)) a(f) JOIN (VALUES (1.5::numeric), (0)) b(n) ON a.f = b.n";
    check(&[
        (&of("v = 0::numeric, v > 0.0::numeric(10,2), v + 1::numeric", small), "f|t|1"),
        (&of("v > 1::numeric, v BETWEEN 1::numeric AND 2::numeric", large), "t|f"),
        (&of("v IN (1::numeric, 2::numeric), v NOT IN (1::numeric)", large), "f|t"),
        (&of("v IN (SELECT 0::numeric), 0::numeric IN (SELECT 1e-17::float8)", small), "f|f"),
        (&of("v = (SELECT 0::numeric), nullif(v, 0::numeric)", small), "f|1e-17"),
        (&of("greatest(v, 1::numeric), coalesce(v, 1::numeric)", large), "1.5e+300|1.5e+300"),
        (&of("CASE v WHEN 0::numeric THEN 'zero' ELSE 'no' END", small), "no"),
        (&of("CASE WHEN v > 1::numeric THEN v ELSE 1::numeric END", large), "1.5e+300"),
        (&of("count(*)", joined), "1"),
        (
            "SELECT max(v) FROM (SELECT 1::numeric AS v UNION ALL SELECT 1e300::float8) AS t",
            "1e+300",
        ),
        ("SELECT 1.50::numeric UNION SELECT 1.5::float8", "1.5"),
    ])
}

#[test]
fn sums_of_whole_numbers_do_not_begin_again() -> Result<()> {
    let directory = tempfile::tempdir()?;
    let (_server, psql) = start(&directory)?;
    psql.ask(&["CREATE TABLE n (a int, b bigint)"], "")?;
    psql.ask(
        &["INSERT INTO n VALUES (1, 9223372036854775807), (2, 9223372036854775807), (NULL, NULL)"],
        "",
    )?;
    for (asked, expected) in [
        (
            "SELECT sum(a), sum(DISTINCT a), sum(a) FILTER (WHERE a > 1), sum(b - b) FROM n",
            "3|3|2|0",
        ),
        (
            "SELECT sum(b), pg_typeof(sum(b)), pg_typeof(sum(a)) FROM n",
            "18446744073709551614|numeric|bigint",
        ),
        ("SELECT sum(a) FROM n WHERE a > 5", ""),
        ("SELECT a % 2, sum(a) FROM n GROUP BY 1 ORDER BY 1", "0|2\n1|1\n|"),
        (
            "SELECT sum(b) OVER (ORDER BY a ROWS BETWEEN CURRENT ROW AND CURRENT ROW) FROM n ORDER BY a LIMIT 2",
            "9223372036854775807\n9223372036854775807",
        ),
        ("SELECT sum(b::numeric) FROM n", "18446744073709551614"),
    ] {
        let said = psql.ask(&[asked], "")?;
        ensure!(said == expected, "{asked}: {said}");
    }
    Ok(())
}

#[test]
fn words_for_moments_are_understood() -> Result<()> {
    check(&[
        ("SELECT timestamptz 'tomorrow' - timestamptz 'yesterday'", "2 days"),
        (
            "SELECT 'epoch'::date, date ' Today ' = current_date, 'now'::timestamptz = now()",
            "1970-01-01|t|t",
        ),
        ("SELECT 'today'::text, 'today' = 'now'", "today|f"),
    ])
}

#[test]
fn now_is_now_for_functions_in_from_too() -> Result<()> {
    let directory = tempfile::tempdir()?;
    let (_server, psql) = start(&directory)?;
    // One session: what its first moment was is long ago to the second statement.
    let said = psql.ask(
        &[
            "SELECT pg_sleep(1.2)",
            "SELECT now() - time < interval '1 s' FROM promql('vector(1)', now())",
            "SELECT now() - max(g) < interval '1 s' \
             FROM generate_series(now() - interval '2 s', now(), interval '1 s') g",
            "CREATE VIEW v AS SELECT time FROM promql('vector(1)', now())",
            "SELECT pg_sleep(1.2)",
            "SELECT now() - time < interval '1 s' FROM v",
        ],
        "",
    )?;
    ensure!(said.split_whitespace().filter(|word| *word == "t").count() == 3, "{said}");
    Ok(())
}

#[test]
fn a_thousand_years_are_a_time_like_others() -> Result<()> {
    let directory = tempfile::tempdir()?;
    let (server, psql) = start(&directory)?;
    psql.ask(&["CREATE TABLE h (time timestamptz NOT NULL, v float8)"], "")?;
    psql.ask(&["SELECT create_hypertable('h', 'time')", "INSERT INTO h VALUES (now(), 1)"], "")?;
    for (asked, expected) in [
        ("SELECT now() - interval '1000 years' < now(), now() = current_timestamp", "t|t"),
        ("SELECT count(*) FROM h WHERE time > now() - interval '1000 years'", "1"),
    ] {
        ensure!(psql.ask(&[asked], "")? == expected, "{asked}");
    }
    psql.ask(&["SELECT add_retention_policy('h', interval '1000 years')"], "")?;
    psql.ask(&["SELECT drop_chunks('h', older_than => interval '1000 years')"], "")?;
    ensure!(psql.ask(&["SELECT count(*) FROM h"], "")? == "1", "nothing is that old");
    ensure!(!server.log().contains("panicked"), "{}", server.log());
    Ok(())
}

#[test]
fn parameters_are_compared_with_jsonb_as_jsonb() -> Result<()> {
    let directory = tempfile::tempdir()?;
    let (_server, psql) = start(&directory)?;
    psql.ask(&["CREATE TABLE j (v jsonb)", "INSERT INTO j VALUES ('{\"b\":1,\"aa\":[1]}')"], "")?;
    let same = "('{\"aa\":[1],\"b\":1}')";
    for (condition, expected) in [
        ("v = $1", "1"),
        ("$1 = v", "1"),
        ("v <> $1", "0"),
        ("v IN ('{}', $1)", "1"),
        ("v NOT IN ($1)", "0"),
        ("v IS DISTINCT FROM $1", "0"),
        ("v->'aa' = $1", "0"),
    ] {
        let prepare = format!("PREPARE p AS SELECT count(*) FROM j WHERE {condition}");
        let said = psql.ask(&[&prepare, &format!("EXECUTE p{same}")], "")?;
        ensure!(said.lines().last() == Some(expected), "{condition}: {said}");
    }
    // What is equal is not deleted for being written otherwise.
    psql.ask(&["PREPARE p AS DELETE FROM j WHERE v <> $1", &format!("EXECUTE p{same}")], "")?;
    ensure!(psql.ask(&["SELECT count(*) FROM j"], "")? == "1", "an equal row was deleted");
    Ok(())
}
