//! Memory and time that one SQL statement may take: aggregates and functions that make long values, long lists of
//! values, statements whose client has closed the connection, and those that sleep.

use anyhow::{Result, ensure};
use e2e::postgres::{Message, Raw};
use e2e::{Psql, Server, poll, postgres};
use std::time::{Duration, Instant};

/// Statements that one server runs before its memory is measured anew.
const STATEMENTS_OF_A_SERVER: usize = 8;

fn start(directory: &tempfile::TempDir, flags: &[(&str, &str)]) -> Result<Server> {
    let launch = postgres::launch(directory.path());
    flags.iter().fold(launch, |launch, (name, value)| launch.flag(name, value)).start()
}

/// The code of the error that a statement ends with; empty where it ends well.
fn outcome(raw: &mut Raw, text: &str) -> Result<String> {
    raw.query(text)?;
    let said = raw.until('Z').map_err(|error| error.context(text.to_string()))?;
    Ok(Raw::code(&said).unwrap_or_default())
}

/// Runs statements of which each ends well or for want of memory; the server takes no more than `peak_max` bytes.
fn stay_below(server: &Server, peak_max: u64, statements: &[String]) -> Result<()> {
    let mut raw = Raw::of(server)?;
    for text in statements {
        let code = outcome(&mut raw, text)?;
        let is_known = ["", "53200", "54000"].contains(&code.as_str());
        ensure!(is_known, "{code}: {text}");
        let peak = server.resident_bytes("VmHWM")?;
        ensure!(peak < peak_max, "{} MiB after {text} ({code})", peak >> 20);
    }
    Ok(())
}

/// A value of 2,000 bytes for each row.
const LONG_VALUE: &str = "repeat('y', 2000) || x::text";

/// An aggregate of ten groups.
fn grouped(call: &str, from: &str) -> String {
    format!("SELECT count(a) FROM (SELECT {call} AS a FROM {from} GROUP BY x % 10) t")
}

/// Aggregates of long values and of many numbers.
fn aggregate_statements() -> Vec<String> {
    let value = LONG_VALUE;
    let (some, many) = ("generate_series(1, 20000) x", "generate_series(1, 150000) x");
    let whole = |call: &str, from: &str| format!("SELECT {call} FROM {from}");
    let mut statements = Vec::new();
    for from in [some, many] {
        for call in [
            format!("length(string_agg({value}, ','))"),
            format!("length(string_agg({value}, ',' ORDER BY x DESC))"),
            format!("length(string_agg(DISTINCT {value}, ','))"),
            format!("cardinality(array_agg({value}))"),
            format!("cardinality(array_agg({value} ORDER BY x DESC))"),
            format!("cardinality(array_agg(DISTINCT {value}))"),
            format!("length(json_agg({value})::text)"),
            format!("length(jsonb_agg({value})::text)"),
            format!("length(json_object_agg(x, {value})::text)"),
            format!("count(DISTINCT {value})"),
            format!("max({value})"),
        ] {
            statements.push(whole(&call, from));
            statements.push(grouped(&call, from));
        }
        statements.push(format!(
            "SELECT count(*) FROM (SELECT max({value}), min({value}) FROM {from} GROUP BY x) t"
        ));
        statements.push(whole(&format!("string_agg({value}, ',')"), from));
        statements.push(whole(&format!("array_agg({value})"), from));
    }
    let numbers = "generate_series(1, 12000000) x";
    for call in ["median(x)", "percentile_cont(0.5) WITHIN GROUP (ORDER BY x)", "array_agg(x)"] {
        statements.push(whole(&format!("length(({call})::text)"), numbers));
    }
    statements.push(
        "SELECT max(cardinality(a)) FROM (SELECT array_agg(x) OVER (ORDER BY x) AS a \
                     FROM generate_series(1, 10000) x) t"
            .to_string(),
    );
    statements
}

#[test]
fn aggregates_take_no_more_than_their_memory() -> Result<()> {
    let statements = aggregate_statements();
    let value = LONG_VALUE;
    // A server for a few statements each: for some seconds the allocator keeps pages that earlier statements
    // freed, and those are not the memory of a statement.
    for group in statements.chunks(STATEMENTS_OF_A_SERVER) {
        let directory = tempfile::tempdir()?;
        let server = start(&directory, &[("query.max-memory", "128MiB")])?;
        stay_below(&server, 768 << 20, group)?;
        server.stop()?;
    }
    let directory = tempfile::tempdir()?;
    let server = start(&directory, &[("query.max-memory", "128MiB")])?;
    // Statements below the limit are answered.
    let psql = Psql::of(&server)?;
    let sum = format!("SELECT length(string_agg({value}, ',')) FROM generate_series(1, 10000) x");
    assert_eq!(psql.ask(&[&sum], "")?, "20048893");
    assert_eq!(
        psql.ask(
            &[&grouped(&format!("string_agg({value}, ',')"), "generate_series(1, 10000) x")],
            ""
        )?,
        "10"
    );
    for (call, expected) in [
        ("string_agg(x::text, ', ')", "1, 2, 3, 4, 5"),
        ("string_agg(DISTINCT (x % 2)::text, '' ORDER BY (x % 2)::text)", "01"),
        ("string_agg(x::text, '' ORDER BY x DESC)", "54321"),
        ("string_agg(NULL::text, ',')", ""),
    ] {
        let text = format!("SELECT {call} FROM generate_series(1, 5) x");
        assert_eq!(psql.ask(&[&text], "")?, expected, "{call}");
    }
    let groups = "SELECT x % 3, string_agg(x::text, '-') FILTER (WHERE x <> 4) FROM generate_series(1, 7) x \
                  GROUP BY 1 ORDER BY 1";
    assert_eq!(psql.ask(&[groups], "")?, "0|3-6\n1|1-7\n2|2-5");
    Ok(())
}

#[test]
fn long_values_of_one_row_share_the_memory() -> Result<()> {
    let directory = tempfile::tempdir()?;
    let server = start(&directory, &[("query.max-memory", "128MiB")])?;
    let columns = |count: usize, column: &dyn Fn(usize) -> String| {
        (0..count).map(column).collect::<Vec<_>>().join(", ")
    };
    let constants = columns(50, &|_| "repeat('x', 60000000)".into());
    let different = columns(50, &|at| format!("repeat('x', 60000000 - {at})"));
    let inner = columns(30, &|at| format!("repeat('x', 60000000 - {at} + x) AS c{at}"));
    let lengths = columns(30, &|at| format!("length(c{at})"));
    let uppers = columns(30, &|at| format!("upper(c0) AS c{at}"));
    let from = "FROM generate_series(1, 1) x";
    let one_by_one = columns(50, &|at| format!("length(repeat('x', 60000000 - {at}))"));
    let wide = [
        format!("SELECT {one_by_one}"),
        format!("SELECT {constants}"),
        format!("SELECT {different}"),
        format!("SELECT {lengths} FROM (SELECT {inner} {from} OFFSET 0) t"),
        format!(
            "SELECT {lengths} FROM (SELECT {uppers} FROM (SELECT {inner} {from} OFFSET 0) t OFFSET 0) t"
        ),
    ];
    stay_below(&server, 900 << 20, &wide)?;
    stay_below(
        &server,
        900 << 20,
        &[
            "SELECT repeat('x', 1000000), x FROM generate_series(1, 300) x".into(),
            "SELECT max(length(t)) FROM (SELECT repeat('x', 1000000) AS t, x FROM generate_series(1, 8000) x) q".into(),
            "SELECT count(*) FROM (SELECT DISTINCT repeat('x', 1000000) || x FROM generate_series(1, 8000) x) q".into(),
            "SELECT count(*) FROM (SELECT repeat('x', 1000000) AS t, x FROM generate_series(1, 8000) x \
             ORDER BY t, x) q".into(),
            "SELECT count(*) FROM (SELECT string_agg(repeat('x', 1000), '') AS t FROM generate_series(1, 10000)) a, \
             generate_series(1, 8000) x WHERE length(a.t || x) > 0".into(),
            "SELECT CASE WHEN x % 2 = 0 THEN repeat('x', 1000000) ELSE '' END FROM generate_series(1, 300) x".into(),
        ],
    )?;
    let psql = Psql::of(&server)?;
    let rows = "SELECT sum(length(t)) FROM (SELECT repeat('x', 1000000) AS t, x FROM generate_series(1, 3000) x) q";
    assert_eq!(psql.ask(&[rows], "")?, "3000000000");
    Ok(())
}

/// `(0), (1)` and so on.
fn rows(count: usize, more: &str) -> String {
    (0..count).map(|at| format!("({at}{more})")).collect::<Vec<_>>().join(", ")
}

fn numbers(count: usize) -> String {
    (0..count).map(|at| at.to_string()).collect::<Vec<_>>().join(", ")
}

#[test]
fn long_lists_of_values_are_refused_before_they_are_planned() -> Result<()> {
    let directory = tempfile::tempdir()?;
    let server = start(&directory, &[])?;
    let mut raw = Raw::of(&server)?;
    let began = Instant::now();
    for text in [
        format!("SELECT count(*) FROM (VALUES {}) v", rows(300_000, "")),
        format!("SELECT count(*) FROM (VALUES {}) v", rows(60_000, ", 'a'")),
        format!("SELECT 1 WHERE 7 IN ({})", numbers(300_000)),
        format!("SELECT 1 WHERE 7 NOT IN ({})", numbers(300_000)),
        format!("SELECT cardinality(ARRAY[{}])", numbers(300_000)),
        format!("SELECT greatest({})", numbers(300_000)),
        format!("INSERT INTO metrics VALUES {}", rows(100_000, "::text")),
    ] {
        let shown = &text[..60];
        assert_eq!(outcome(&mut raw, &text)?, "54001", "{shown}");
        raw.say('P', format!("\0{text}\0\0\0").as_bytes())?;
        assert_eq!(Raw::code(&raw.sync()?)?, "54001", "{shown}");
    }
    ensure!(began.elapsed() < Duration::from_secs(60), "{:?}", began.elapsed());
    let peak = server.resident_bytes("VmHWM")?;
    ensure!(peak < 1 << 30, "{peak} bytes");
    Ok(())
}

#[test]
fn inserts_of_many_plain_rows_are_done() -> Result<()> {
    let directory = tempfile::tempdir()?;
    let server = start(&directory, &[("query.max-memory", "256MiB")])?;
    let mut raw = Raw::of(&server)?;
    assert_eq!(outcome(&mut raw, "CREATE TABLE t (a bigint, b text)")?, "");
    let plain = format!("INSERT INTO t VALUES {}", rows(200_000, ", 'a'"));
    assert_eq!(outcome(&mut raw, &plain)?, "");
    let planned = format!("INSERT INTO t VALUES {}", rows(10_000, " + 1, 'a'"));
    assert_eq!(outcome(&mut raw, &planned)?, "");
    assert_eq!(outcome(&mut raw, "SELECT 1 FROM t WHERE a IN (SELECT 7)")?, "");
    let list = format!("SELECT count(*) FROM t WHERE a IN ({})", numbers(20_000));
    let psql = Psql::of(&server)?;
    let listed = psql.ask(&["SELECT count(*) FROM t"], "")?;
    assert_eq!(listed, "210000");
    assert_eq!(outcome(&mut raw, &list)?, "");
    let peak = server.resident_bytes("VmHWM")?;
    ensure!(peak < 1 << 30, "{peak} bytes");
    Ok(())
}

/// A query that takes hours.
const LONG: &str =
    "SELECT count(*) FROM generate_series(1, 10000000) a, generate_series(1, 10000000) b";

/// Waits until a place among the queries is free.
fn wait_for_place(server: &Server) -> Result<()> {
    poll("that the place is free", Duration::from_secs(60), || {
        let code = outcome(&mut Raw::of(server)?, "SELECT 1")?;
        ensure!(code.is_empty(), "{code}");
        Ok(())
    })
}

/// Asks for a second whether the place among the queries is free.
fn place_stays_free(server: &Server) -> Result<()> {
    let mut raw = Raw::of(server)?;
    let (began, mut asked) = (Instant::now(), 0);
    while asked < 100 || began.elapsed() < Duration::from_secs(1) {
        assert_eq!(outcome(&mut raw, "SELECT 1")?, "");
        asked += 1;
    }
    Ok(())
}

/// Sends a statement in one of the ways that clients have.
type Send = fn(&mut Raw, &str) -> Result<()>;

/// The ways, each with the messages that answer a statement of one row.
const WAYS: [(&str, Send, &str); 5] = [
    ("simple", |raw, text| raw.query(text), "TDCZ"),
    (
        "extended",
        |raw, text| {
            raw.execute(text, "", 0)?;
            raw.say('S', b"")
        },
        "12DCZ",
    ),
    (
        "part of a portal",
        |raw, text| {
            raw.execute(text, "", 7)?;
            raw.say('S', b"")
        },
        "12DCZ",
    ),
    ("prepared", |raw, text| raw.query(&format!("PREPARE p AS {text}; EXECUTE p")), "CTDCZ"),
    (
        "cursor",
        |raw, text| {
            raw.query(&format!("BEGIN; DECLARE c CURSOR FOR {text}; FETCH ALL FROM c; COMMIT"))
        },
        "CCTDCCZ",
    ),
];

#[test]
fn queries_end_when_their_client_closes_the_connection() -> Result<()> {
    let directory = tempfile::tempdir()?;
    let flags = [("query.max-concurrency", "1"), ("query.timeout", "1h")];
    let server = start(&directory, &flags)?;
    let mut simple = Raw::of(&server)?;
    simple.query(LONG)?;
    drop(simple);
    wait_for_place(&server)?;
    let mut extended = Raw::of(&server)?;
    extended.execute(LONG, "", 0)?;
    extended.say('S', b"")?;
    drop(extended);
    wait_for_place(&server)?;
    // Messages that it sent before are no sign of life.
    let mut pipelined = Raw::of(&server)?;
    pipelined.query(LONG)?;
    pipelined.query("SELECT 2")?;
    pipelined.say('X', b"")?;
    drop(pipelined);
    wait_for_place(&server)?;
    // A client that stays connected gets all answers.
    let mut stays = Raw::of(&server)?;
    stays.query("SELECT pg_sleep(1.5), 1")?;
    stays.query("SELECT 2")?;
    let kinds = |said: &[Message]| Raw::kinds(said);
    assert_eq!(kinds(&stays.until('Z')?), "TDCZ");
    assert_eq!(kinds(&stays.until('Z')?), "TDCZ");
    Ok(())
}

#[test]
fn sleepers_in_unions_have_all_rows() -> Result<()> {
    let directory = tempfile::tempdir()?;
    let server = start(&directory, &[("query.max-concurrency", "1"), ("query.timeout", "1h")])?;
    let mut asleep = Raw::of(&server)?;
    asleep.query("SELECT pg_sleep(3600)")?;
    place_stays_free(&server)?;
    let rows = "SELECT sum(x), count(s) FROM (SELECT x, pg_sleep(0.001) AS s FROM generate_series(1, 5) x \
                UNION ALL SELECT x, pg_sleep(0.001) FROM generate_series(6, 10) x UNION ALL SELECT 100, NULL) t";
    assert_eq!(Psql::of(&server)?.ask(&[rows], "")?, "155|10");
    Ok(())
}

#[test]
fn sleepers_leave_their_place_however_they_are_asked() -> Result<()> {
    let directory = tempfile::tempdir()?;
    let server = start(&directory, &[("query.max-concurrency", "1"), ("query.timeout", "1h")])?;
    let mut asleep = Vec::new();
    for (way, send, _) in WAYS {
        let mut raw = Raw::of(&server)?;
        send(&mut raw, "SELECT pg_sleep(3600)")?;
        place_stays_free(&server).map_err(|error| error.context(way))?;
        asleep.push(raw);
    }
    Ok(())
}

#[test]
fn many_sleepers_share_one_place() -> Result<()> {
    let directory = tempfile::tempdir()?;
    let server = start(&directory, &[("query.max-concurrency", "1"), ("query.timeout", "1h")])?;
    let server = &server;
    std::thread::scope(|scope| {
        let run = |(way, send, expected): (&str, Send, &str)| -> Result<()> {
            for _ in 0..10 {
                let mut raw = Raw::of(server)?;
                send(&mut raw, "SELECT pg_sleep(0.01), 7")?;
                let kinds = Raw::kinds(&raw.until('Z')?);
                ensure!(kinds == expected, "{way}: {kinds}");
            }
            Ok(())
        };
        let threads = WAYS.map(|way| scope.spawn(move || run(way)));
        threads.into_iter().try_for_each(|thread| thread.join().expect("no panic"))
    })
}

#[test]
fn portals_that_wake_while_their_client_rests_take_no_place() -> Result<()> {
    let directory = tempfile::tempdir()?;
    let server = start(&directory, &[("query.max-concurrency", "1"), ("query.timeout", "1h")])?;
    let mut portal = Raw::of(&server)?;
    portal.query("BEGIN")?;
    portal.until('Z')?;
    let text = "SELECT 1, NULL UNION ALL SELECT 2, pg_sleep(0.2) UNION ALL SELECT 3, pg_sleep(0.2)";
    portal.execute(text, "p", 1)?;
    assert_eq!(Raw::kinds(&portal.sync()?), "12DsZ");
    place_stays_free(&server)?;
    // Another statement of the connection has a place meanwhile.
    assert_eq!(outcome(&mut portal, "SELECT count(*) FROM generate_series(1, 100000)")?, "");
    place_stays_free(&server)?;
    portal.fetch("p", 0)?;
    assert_eq!(Raw::kinds(&portal.sync()?), "DDCZ");
    Ok(())
}

/// A condition of a join is tried on each pair, and a window function adds all rows up for each row.
#[test]
fn joins_and_windows_end_with_their_statement() -> Result<()> {
    let directory = tempfile::tempdir()?;
    let server = start(&directory, &[("query.max-concurrency", "1"), ("query.timeout", "1h")])?;
    let mut raw = Raw::of(&server)?;
    raw.query("SET statement_timeout = '1s'")?;
    raw.until('Z')?;
    for text in [
        "SELECT count(*) FROM generate_series(1, 400000) a, generate_series(1, 400000) b WHERE a * b < 0",
        "SELECT count(*) FROM generate_series(1, 400000) a JOIN generate_series(1, 400000) b \
         ON a % 2 = b % 2 AND a + b < 0",
        "SELECT count(c) FROM (SELECT median(x) OVER (ORDER BY x) c FROM generate_series(1, 300000) x) t",
        "SELECT count(c) FROM (SELECT sum(x::float8) OVER (ORDER BY x ROWS 100000 PRECEDING) c \
         FROM generate_series(1, 300000) x) t",
    ] {
        let begun = Instant::now();
        assert_eq!(outcome(&mut raw, text)?, "57014", "{text}");
        ensure!(begun.elapsed() < Duration::from_secs(20), "{text}: {:?}", begun.elapsed());
        // Its work has ended, too: the only place is free.
        wait_for_place(&server)?;
    }
    Ok(())
}

#[test]
fn window_functions_take_no_more_than_their_memory() -> Result<()> {
    let directory = tempfile::tempdir()?;
    let server = start(&directory, &[("query.max-memory", "64MiB")])?;
    let mut raw = Raw::of(&server)?;
    let windows = |count: usize| {
        format!(
            "SELECT count(c), max(d) FROM (SELECT count(*) OVER () c, x d FROM generate_series(1, {count}) x) t"
        )
    };
    assert_eq!(outcome(&mut raw, &windows(10_000))?, "");
    assert_eq!(outcome(&mut raw, &windows(10_000_000))?, "53200");
    let peak = server.resident_bytes("VmHWM")?;
    ensure!(peak < 512 << 20, "{} MiB", peak >> 20);
    Ok(())
}
