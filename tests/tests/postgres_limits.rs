//! What one client of PostgreSQL's door can take from the others: memory, places among the queries,
//! and nothing else; and what the protocol asks for where things go wrong.

use anyhow::{Context, Result, ensure};
use e2e::postgres::Raw;
use e2e::{Launch, Psql, Server};
use std::time::{Duration, Instant};

fn start(directory: &tempfile::TempDir, flags: &[(&str, &str)]) -> Result<Server> {
    let mut launch = Launch::new(directory.path()).flag("postgres-listen", "127.0.0.1:0");
    launch = launch.flag("self-scrape-interval", "0");
    for (name, value) in flags {
        launch = launch.flag(name, value);
    }
    launch.start()
}

#[test]
fn lines_of_all_copies_share_one_memory() -> Result<()> {
    let directory = tempfile::tempdir()?;
    let flags = [
        ("max-bodies-size", "8MiB"),
        ("max-body-size", "4MiB"),
        ("insert-queue-duration", "200ms"),
    ];
    let server = start(&directory, &flags)?;
    let piece = "# a comment that is kept until the end\n".repeat(20_000);
    let mut first = Raw::of(&server)?;
    first.query("COPY metrics FROM STDIN")?;
    first.until('G')?;
    for _ in 0..5 {
        first.say('d', piece.as_bytes())?;
    }
    e2e::poll("that the lines are held", Duration::from_secs(20), || {
        let held = server.metric("quipu_bodies_size_bytes")?;
        ensure!(held >= (5 * piece.len()) as f64, "{held} bytes");
        Ok(())
    })?;
    let mut second = Raw::of(&server)?;
    second.query("COPY metrics FROM STDIN")?;
    second.until('G')?;
    for _ in 0..6 {
        second.say('d', piece.as_bytes())?;
    }
    second.say('c', b"")?;
    let said = second.until('Z')?;
    assert_eq!(Raw::code(&said)?, "53000", "{said:?}");
    // The first client sends nothing meanwhile. If that takes three seconds on a slow machine, the
    // server gives its memory to others.
    let a_line = format!("a 1 {}\n", 1_709_208_000_000i64);
    first.say('d', a_line.as_bytes())?;
    first.say('c', b"")?;
    let said = first.until('Z')?;
    if Raw::kinds(&said).starts_with('E') {
        assert_eq!(Raw::code(&said)?, "53200", "{said:?}");
    } else {
        assert_eq!(Raw::kinds(&said), "CZ", "{said:?}");
    }
    second.query("COPY metrics FROM STDIN")?;
    second.until('G')?;
    second.say('d', piece.as_bytes())?;
    second.say('c', b"")?;
    assert_eq!(Raw::kinds(&second.until('Z')?), "CZ");
    Ok(())
}

#[test]
fn a_row_without_end_comes_out_of_the_same_memory() -> Result<()> {
    let directory = tempfile::tempdir()?;
    let flags = [
        ("max-bodies-size", "8MiB"),
        ("max-body-size", "4MiB"),
        ("insert-queue-duration", "200ms"),
    ];
    let server = start(&directory, &flags)?;
    let mut raw = Raw::of(&server)?;
    raw.query("COPY metrics (name, value) FROM STDIN WITH (FORMAT csv)")?;
    raw.until('G')?;
    raw.say('d', b"\"")?;
    for _ in 0..12 {
        raw.say('d', &vec![b'x'; 1 << 20])?;
    }
    raw.say('c', b"")?;
    let said = raw.until('Z')?;
    assert_eq!(Raw::code(&said)?, "53000", "{said:?}");
    // What was held is free again.
    raw.query("COPY metrics (name, value) FROM STDIN WITH (FORMAT csv)")?;
    raw.until('G')?;
    raw.say('d', b"a,1\n")?;
    raw.say('c', b"")?;
    assert_eq!(Raw::kinds(&raw.until('Z')?), "CZ");
    Ok(())
}

#[test]
fn a_line_without_end_is_refused_soon() -> Result<()> {
    let directory = tempfile::tempdir()?;
    let server = start(&directory, &[])?;
    let mut raw = Raw::of(&server)?;
    raw.query("COPY metrics FROM STDIN")?;
    raw.until('G')?;
    let began = Instant::now();
    // 18 MiB in pieces of 4 KiB: time that grows by the square would be minutes.
    for _ in 0..4608 {
        raw.say('d', &[b'x'; 4096])?;
    }
    raw.say('c', b"")?;
    let said = raw.until('Z')?;
    assert_eq!(Raw::code(&said)?, "54000", "{said:?}");
    ensure!(began.elapsed() < Duration::from_secs(20), "{:?}", began.elapsed());
    Ok(())
}

#[test]
fn who_does_not_read_gives_its_place_back() -> Result<()> {
    let directory = tempfile::tempdir()?;
    let flags = [("query.max-concurrency", "1"), ("http.write-timeout", "1s")];
    let server = start(&directory, &flags)?;
    let mut deaf = Raw::of(&server)?;
    deaf.query("SELECT repeat('x', 1000) FROM generate_series(1, 100000)")?;
    // It waits for the place, and gets it.
    assert_eq!(Psql::of(&server)?.ask(&["SELECT 1"], "")?, "1");
    Ok(())
}

#[test]
fn portals_that_wait_share_one_place_and_do_not_wait_for_ever() -> Result<()> {
    let directory = tempfile::tempdir()?;
    let flags = [("query.max-concurrency", "1"), ("query.timeout", "2s")];
    let server = start(&directory, &flags)?;
    let many = "SELECT * FROM generate_series(1, 100000)";
    let mut raw = Raw::of(&server)?;
    // Outside a transaction they end with it.
    raw.execute(many, "a", 1)?;
    assert_eq!(Raw::kinds(&raw.sync()?), "12DsZ");
    assert_eq!(Psql::of(&server)?.ask(&["SELECT 1"], "")?, "1");
    raw.fetch("a", 1)?;
    assert_eq!(Raw::code(&raw.sync()?)?, "34000");
    // Within one the second goes on beside the first.
    raw.query("BEGIN")?;
    raw.until('Z')?;
    raw.execute(many, "a", 1)?;
    raw.execute(many, "b", 2)?;
    raw.fetch("a", 3)?;
    raw.fetch("a", i32::MAX)?;
    let said = raw.sync()?;
    let kinds = Raw::kinds(&said);
    ensure!(kinds.starts_with("12Ds12DDsDDDsDDDD") && kinds.ends_with("DCZ"), "{}", kinds.len());
    assert_eq!(kinds.matches('D').count(), 100_002);
    assert_eq!(Psql::of(&server)?.ask(&["SELECT 1"], "")?, "1");
    // And when their time is over they are gone.
    e2e::poll("that the portal is gone", Duration::from_secs(30), || {
        raw.fetch("b", 1)?;
        let said = raw.sync()?;
        ensure!(Raw::kinds(&said).starts_with('E'), "{said:?}");
        Ok(())
    })
}

#[test]
fn clients_that_read_no_rows_leave_their_places_to_others() -> Result<()> {
    let directory = tempfile::tempdir()?;
    let server = start(&directory, &[("query.max-concurrency", "2")])?;
    let mut readers = Vec::new();
    for _ in 0..6 {
        let mut reader = Raw::of(&server)?;
        reader.query("SELECT repeat('x', 1000), * FROM generate_series(1, 100000) AS n")?;
        readers.push(reader);
    }
    let started = Instant::now();
    assert_eq!(Psql::of(&server)?.ask(&["SELECT 1"], "")?, "1");
    ensure!(server.get("/api/v1/query?query=1")?.status == 200);
    ensure!(started.elapsed().as_secs() < 20, "waited {:?}", started.elapsed());
    // Whoever reads on gets all rows.
    let said = readers.pop().context("a reader")?.until('Z')?;
    assert_eq!(Raw::kinds(&said).matches('D').count(), 100_000);
    Ok(())
}

#[test]
fn who_sleeps_or_waits_for_its_client_gives_its_place_back() -> Result<()> {
    let directory = tempfile::tempdir()?;
    let server = start(&directory, &[("query.max-concurrency", "1")])?;
    let mut asleep = Raw::of(&server)?;
    asleep.query("SELECT pg_sleep(600)")?;
    assert_eq!(Psql::of(&server)?.ask(&["SELECT 1"], "")?, "1");
    let mut cursor = Raw::of(&server)?;
    let declare = "DECLARE c CURSOR FOR SELECT * FROM generate_series(1, 100000)";
    cursor.query(&format!("BEGIN; {declare}; FETCH 1 FROM c"))?;
    assert_eq!(Raw::kinds(&cursor.until('Z')?), "CCTDCZ");
    let mut portal = Raw::of(&server)?;
    portal.query("BEGIN")?;
    portal.until('Z')?;
    portal.execute("SELECT * FROM generate_series(1, 100000)", "p", 1)?;
    assert_eq!(Raw::kinds(&portal.sync()?), "12DsZ");
    assert_eq!(Psql::of(&server)?.ask(&["SELECT 2"], "")?, "2");
    let rows = |said: &[e2e::postgres::Message]| Raw::kinds(said).matches('D').count();
    cursor.query("FETCH ALL FROM c")?;
    assert_eq!(rows(&cursor.until('Z')?), 99_999);
    portal.fetch("p", 0)?;
    assert_eq!(rows(&portal.sync()?), 99_999);
    // Who has slept goes on.
    let mut short = Raw::of(&server)?;
    short.query("SELECT pg_sleep(0.01), 7")?;
    assert_eq!(Raw::kinds(&short.until('Z')?), "TDCZ");
    Ok(())
}

#[test]
fn prepared_statements_have_a_limit_and_are_forgotten() -> Result<()> {
    let directory = tempfile::tempdir()?;
    let server = start(&directory, &[])?;
    let mut raw = Raw::of(&server)?;
    for number in 0..10_001 {
        raw.say('P', format!("s{number}\0SHOW a.b\0\0\0").as_bytes())?;
    }
    let said = raw.sync()?;
    assert_eq!(Raw::kinds(&said), format!("{}EZ", "1".repeat(10_000)));
    assert_eq!(Raw::code(&said)?, "54000");
    raw.query("DEALLOCATE s7; DEALLOCATE s7")?;
    assert_eq!(Raw::code(&raw.until('Z')?)?, "26000");
    raw.query("DISCARD ALL")?;
    raw.until('Z')?;
    raw.say('P', b"s1\0SELECT 1\0\0\0")?;
    raw.say('P', b"s1\0SELECT 1\0\0\0")?;
    assert_eq!(Raw::code(&raw.sync()?)?, "42P05");
    Ok(())
}

#[test]
fn statements_of_one_text_come_one_after_the_other() -> Result<()> {
    let directory = tempfile::tempdir()?;
    let server = start(&directory, &[("query.max-concurrency", "1")])?;
    let mut raw = Raw::of(&server)?;
    raw.query("SELECT 1; SELECT 2; SELEC")?;
    assert_eq!(Raw::kinds(&raw.until('Z')?), "EZ");
    raw.query("SELECT 1; SELECT 2; SELECT * FROM nowhere; SELECT 3")?;
    let said = raw.until('Z')?;
    assert_eq!(Raw::kinds(&said), "TDCTDCEZ");
    assert_eq!(Raw::code(&said)?, "42P01");
    raw.query("COPY metrics FROM STDIN; SELECT 1")?;
    assert_eq!(Raw::code(&raw.until('Z')?)?, "0A000");
    raw.query(" ; -- nothing")?;
    assert_eq!(Raw::kinds(&raw.until('Z')?), "IZ");
    // What failed within a transaction has to end first.
    raw.query("BEGIN")?;
    raw.until('Z')?;
    raw.query("SELECT * FROM nowhere")?;
    assert_eq!(raw.until('Z')?.pop().map(|ready| ready.body), Some(b"E".to_vec()));
    raw.query("SELECT 1")?;
    assert_eq!(Raw::code(&raw.until('Z')?)?, "25P02");
    raw.query("COMMIT")?;
    let said = raw.until('Z')?;
    assert_eq!(said[0].body, b"ROLLBACK\0");
    assert_eq!(said[1].body, b"I");
    Ok(())
}

#[test]
fn rollback_warns_of_its_own_transaction_alone() -> Result<()> {
    let directory = tempfile::tempdir()?;
    let server = start(&directory, &[])?;
    let mut raw = Raw::of(&server)?;
    let copy = |raw: &mut Raw| -> Result<()> {
        raw.query("COPY metrics FROM STDIN")?;
        raw.until('G')?;
        raw.say('d', b"a 1 1709208000000\n")?;
        raw.say('c', b"")?;
        raw.until('Z').map(drop)
    };
    let rolled_back = |raw: &mut Raw| -> Result<String> {
        raw.query("ROLLBACK")?;
        Ok(Raw::kinds(&raw.until('Z')?))
    };
    copy(&mut raw)?;
    raw.query("BEGIN")?;
    raw.until('Z')?;
    assert_eq!(rolled_back(&mut raw)?, "CZ");
    raw.query("BEGIN")?;
    raw.until('Z')?;
    copy(&mut raw)?;
    assert_eq!(rolled_back(&mut raw)?, "NCZ");
    Ok(())
}

#[test]
fn all_in_one_piece_is_answered() -> Result<()> {
    use std::io::{Read as _, Write as _};
    let directory = tempfile::tempdir()?;
    let server = start(&directory, &[])?;
    let port = e2e::postgres::door_port(&server)?;
    let mut stream = std::net::TcpStream::connect(("127.0.0.1", port))?;
    let mut bytes = b"\0\0\0\x1c\0\x03\0\0user\0me\0database\0x\0\0".to_vec();
    bytes.extend_from_slice(b"Q\0\0\0\x0dSELECT 1\0X\0\0\0\x04");
    stream.write_all(&bytes)?;
    let mut said = Vec::new();
    stream.read_to_end(&mut said)?;
    let tail = b"C\0\0\0\x0dSELECT 1\0Z\0\0\0\x05I";
    ensure!(said.ends_with(tail), "{}", String::from_utf8_lossy(&said));
    Ok(())
}

#[test]
fn cursors_end_with_their_transaction() -> Result<()> {
    let directory = tempfile::tempdir()?;
    let server = start(&directory, &[("query.max-concurrency", "1")])?;
    let mut raw = Raw::of(&server)?;
    let declare = "DECLARE c CURSOR FOR SELECT * FROM generate_series(1, 5)";
    raw.query(declare)?;
    assert_eq!(Raw::code(&raw.until('Z')?)?, "25P01");
    raw.query(&format!(
        "BEGIN; {declare}; FETCH 2 FROM c; FETCH ALL FROM c; FETCH FROM c; CLOSE c"
    ))?;
    let said = raw.until('Z')?;
    assert_eq!(Raw::kinds(&said), "CCTDDCTDDDCTCCZ");
    let tags = said.iter().filter(|one| one.kind == 'C').map(|one| one.body.as_slice());
    let expected: [&[u8]; 6] = [
        b"BEGIN\0",
        b"DECLARE CURSOR\0",
        b"FETCH 2\0",
        b"FETCH 3\0",
        b"FETCH 0\0",
        b"CLOSE CURSOR\0",
    ];
    assert_eq!(tags.collect::<Vec<_>>(), expected);
    raw.query(&format!("{declare}; FETCH 1 FROM c; COMMIT; FETCH 1 FROM c"))?;
    assert_eq!(Raw::code(&raw.until('Z')?)?, "34000");
    assert_eq!(Psql::of(&server)?.ask(&["SELECT 1"], "")?, "1");
    Ok(())
}

/// Common table expressions of which each reads the one before twice.
fn doubled_tables(steps: usize) -> String {
    let mut text = "WITH c0 AS (SELECT 1 AS x)".to_string();
    for at in 1..=steps {
        let before = at - 1;
        text += &format!(", c{at} AS (SELECT a.x FROM c{before} a, c{before} b)");
    }
    format!("{text} SELECT count(*) FROM c{steps}")
}

/// Derived tables in each other whose column doubles.
fn doubled_columns(steps: usize) -> String {
    let text = "SELECT 1 AS x".to_string();
    (0..steps).fold(text, |text, _| format!("SELECT x + x AS x FROM ({text}) AS t"))
}

#[test]
fn statements_that_expand_without_bound_are_refused() -> Result<()> {
    let directory = tempfile::tempdir()?;
    let server = start(&directory, &[])?;
    let mut raw = Raw::of(&server)?;
    let began = Instant::now();
    for text in [doubled_tables(25), doubled_columns(25)] {
        raw.query(&text)?;
        assert_eq!(Raw::code(&raw.until('Z')?)?, "54001", "{text}");
        raw.say('P', format!("\0{text}\0\0\0").as_bytes())?;
        assert_eq!(Raw::code(&raw.sync()?)?, "54001", "{text}");
    }
    ensure!(began.elapsed() < Duration::from_secs(20), "{:?}", began.elapsed());
    // Views count with what they read.
    raw.query("CREATE VIEW v0 AS SELECT 1 AS x")?;
    raw.until('Z')?;
    for at in 1..4 {
        let list: Vec<String> = (0..12).map(|n| format!("v{} AS a{n}", at - 1)).collect();
        raw.query(&format!("CREATE VIEW v{at} AS SELECT a0.x FROM {}", list.join(", ")))?;
        let said = raw.until('Z')?;
        match at {
            3 => assert_eq!(Raw::code(&said)?, "54001"),
            _ => assert_eq!(Raw::kinds(&said), "CZ", "{said:?}"),
        }
    }
    // What is below the limits is answered.
    let psql = Psql::of(&server)?;
    assert_eq!(psql.ask(&[&doubled_tables(6)], "")?, "1");
    assert_eq!(psql.ask(&[&doubled_columns(12)], "")?, "4096");
    Ok(())
}

#[test]
fn large_patterns_are_refused_and_searches_take_linear_time() -> Result<()> {
    let directory = tempfile::tempdir()?;
    let server = start(&directory, &[("query.timeout", "20s")])?;
    let mut raw = Raw::of(&server)?;
    for (statement, code) in [
        ("SELECT 'a' LIKE repeat('_',30000000)", "54000"),
        ("SELECT 'a' ILIKE repeat('_',30000000)", "54000"),
        ("SELECT 'a' ~~* repeat('_',30000000)", "54000"),
        ("SELECT 'a' SIMILAR TO repeat('_',10000000)", "54000"),
        ("SELECT 'a' ~ repeat('.',10000000)", "54000"),
        ("SELECT repeat('a',10000000) ILIKE '%'||repeat('a',5000000)||'b%'", "54000"),
        ("SELECT repeat('a',1000000) LIKE repeat('%a',10000)||'b'", "54000"),
    ] {
        raw.query(statement)?;
        let answer = raw.until('Z')?;
        ensure!(Raw::code(&answer)? == code, "{statement}: {answer:?}");
    }
    for statement in [
        "SELECT strpos(repeat('a',10000000),repeat('a',5000000)||'b')",
        "SELECT length(ltrim(repeat('a',30000000),repeat('b',1000000)||'a'))",
        "SELECT length(btrim(repeat('a',30000000),repeat('b',1000000)||'a'))",
        "SELECT repeat('a',10000000) LIKE '%'||repeat('a',5000000)||'b%'",
        "SELECT 'host-12' LIKE 'host-' || '__', 'a%b' LIKE 'a\\%b', 'Ab' ILIKE lower('AB')",
    ] {
        raw.query(statement)?;
        let answer = raw.until('Z')?;
        ensure!(Raw::kinds(&answer) == "TDCZ", "{statement}: {answer:?}");
    }
    raw.query("SET statement_timeout = '2s'")?;
    raw.until('Z')?;
    raw.query("SELECT regexp_count(repeat('a',1000000),'.*?b|a')")?;
    ensure!(Raw::code(&raw.until('Z')?)? == "57014", "ends with its time");
    e2e::poll("that nothing works on", Duration::from_secs(20), || {
        let running = server.metric("quipu_queries_running")?;
        ensure!(running == 0.0, "{running}");
        Ok(())
    })?;
    server.stop()
}

#[test]
fn no_function_takes_memory_without_bound() -> Result<()> {
    let directory = tempfile::tempdir()?;
    let server = start(&directory, &[])?;
    let psql = Psql::of(&server)?;
    psql.ask(&["INSERT INTO metrics VALUES ('m 1')"], "")?;
    let many = vec!["'a'"; 2000].join(",");
    for (asked, code) in [
        ("SELECT approx_percentile_cont(value, 0.5, 1000000000000) FROM metrics".into(), "42883"),
        ("SELECT arrow_cast(NULL, 'FixedSizeBinary(2000000000)') FROM metrics".into(), "42883"),
        (
            "SELECT length(array_to_string(string_to_array(repeat('a,', 2000), ','), \
             repeat('y', 2000000)))"
                .into(),
            "54000",
        ),
        (format!("SELECT length(concat_ws(repeat('y', 2000000), {many}))"), "54000"),
        ("SELECT length(format(repeat('%1$s', 4000), repeat('x', 1000000)))".to_string(), "54000"),
        (
            "SELECT length(string_agg(x::text, repeat('y', 2000000))) \
             FROM generate_series(1, 100000) x"
                .into(),
            "54000",
        ),
        (
            "SELECT cardinality(array_replace(string_to_array(repeat('a,', 20000), ','), 'a', \
             repeat('y', 2000000)))"
                .into(),
            "54000",
        ),
    ] {
        let said = psql.say(&["\\set VERBOSITY verbose", &asked], "")?;
        ensure!(!said.is_ok && said.error.contains(code), "{asked}: {said:?}");
    }
    assert_eq!(psql.ask(&["SELECT cardinality(ARRAY[1,2]::int[2000000000])"], "")?, "2");
    assert_eq!(
        psql.ask(&["SELECT string_agg(x::text, ', ') FROM (VALUES (1), (2)) t(x)"], "")?,
        "1, 2"
    );
    let peak = server.resident_bytes("VmHWM")?;
    ensure!(peak < 1 << 30, "{peak} bytes");
    Ok(())
}

#[test]
fn long_functions_have_a_bound_or_end_with_their_statement() -> Result<()> {
    let directory = tempfile::tempdir()?;
    let server = start(&directory, &[])?;
    let psql = Psql::of(&server)?;
    for (asked, code) in [
        ("SELECT levenshtein(repeat('a', 500000), repeat('b', 500000))", "22023"),
        ("SELECT repeat('a', 60000000) ~ ('(a?){1000}' || repeat('a', 1000))", "54000"),
        ("SELECT regexp_replace(repeat('a', 60000000), '\\w{20}', '', 'g')", "54000"),
    ] {
        let said = psql.say(&["\\set VERBOSITY verbose", asked], "")?;
        ensure!(!said.is_ok && said.error.contains(code), "{asked}: {said:?}");
    }
    assert_eq!(psql.ask(&["SELECT levenshtein('kitten', 'sitting')"], "")?, "3");
    assert_eq!(psql.ask(&["SELECT regexp_instr('über Abba', 'b+', 3)"], "")?, "7");
    // Each row has another pattern of 1 MB or so: they are not kept together.
    let many = "SELECT count(regexp_replace('a', '\\pL{' || 200 + x % 7 || '}', 'b')) \
                FROM generate_series(1, 200) x";
    assert_eq!(psql.ask(&[many], "")?, "200");
    let peak = server.resident_bytes("VmHWM")?;
    ensure!(peak < 1 << 30, "{peak} bytes");
    Ok(())
}

/// Statements made of functions and numbers that make much of little.
struct Statements(rng::Random);

impl Statements {
    fn pick<'a>(&mut self, all: &[&'a str]) -> &'a str {
        all[self.0.index(all.len())]
    }

    fn number(&mut self) -> String {
        let all = ["0", "1", "-1", "7", "1000", "1000000", "2147483647", "9223372036854775807"];
        self.pick(&all).to_string()
    }

    fn pattern(&mut self) -> &'static str {
        self.pick(&["'a*'", "'(a|b)*c'", "'\\w{50}'", "'(a{1,50}){1,50}'", "'['", "''"])
    }

    /// A text, an array or a number of functions in each other.
    fn text(&mut self, depth: u32) -> String {
        if depth == 0 {
            return self.pick(&["'a'", "'a,b,'", "x::text", "''", "NULL", "'%1$s%1$s'"]).into();
        }
        let (a, b) = (self.text(depth - 1), self.text(depth / 2));
        let (n, p) = (self.number(), self.pattern());
        match self.0.below(16) {
            0 => format!("repeat({a}, {n})"),
            1 => format!("lpad({a}, ({n})::int, {b})"),
            2 => format!("rpad({a}, ({n})::int, {b})"),
            3 => format!("concat({a}, {b}, {a})"),
            4 => format!("concat_ws({a}, {b}, {b}, {b})"),
            5 => format!("replace({a}, {b}, {a})"),
            6 => format!("regexp_replace({a}, {p}, {b}, 'g')"),
            7 => format!("array_to_string(string_to_array({a}, ','), {b})"),
            8 => format!("format({a}, {b}, {b})"),
            9 => format!("({a} || {b})"),
            10 => format!("to_char(({n})::float8, {a})"),
            11 => format!("array_to_string(regexp_split_to_array({a}, {p}), {b})"),
            12 => format!("substr({a}, 1, ({n})::int)"),
            13 => format!("(to_jsonb({a}) || jsonb_build_array({b}, {n}))::text"),
            14 => {
                format!("array_to_string(array_replace(string_to_array({a}, ','), 'a', {b}), ',')")
            }
            _ => format!("quote_literal(upper(translate({a}, 'a', {b})))"),
        }
    }

    fn statement(&mut self) -> String {
        let depth = 1 + self.0.below(4) as u32;
        let (text, other, n) = (self.text(depth), self.text(1), self.number());
        let from = format!("FROM generate_series(1, {}) x", self.pick(&["1", "10", "20000"]));
        match self.0.below(8) {
            0 => format!("SELECT string_agg({text}, {other}) {from}"),
            1 => format!("SELECT array_agg({text}) {from} GROUP BY {other}"),
            2 => format!("SELECT histogram(x::float8, 0, 1, ({n})::int) {from}"),
            3 => {
                format!("SELECT count(*) {from}, generate_series(1, {n}) y WHERE {text} = {other}")
            }
            4 => format!("SELECT levenshtein({text}, {other}), lag(x, ({n})::int) OVER () {from}"),
            5 => format!(
                "WITH a AS (SELECT {text} AS t {from}) SELECT length(a.t || b.t) FROM a, a b"
            ),
            6 => format!("SELECT x, count(*) {from} GROUP BY CUBE (x, {text})"),
            _ => format!("SELECT length({text}) {from}"),
        }
    }
}

#[test]
fn random_statements_neither_end_the_server_nor_take_its_memory() -> Result<()> {
    let directory = tempfile::tempdir()?;
    let server = start(&directory, &[("query.max-memory", "128MiB")])?;
    let mut raw = Raw::of(&server)?;
    raw.query("SET statement_timeout = '300ms'")?;
    raw.until('Z')?;
    let mut statements = Statements(rng::Random::seeded(44));
    for _ in 0..120 {
        let text = statements.statement();
        raw.query(&text)?;
        let said = raw.until('Z').map_err(|error| error.context(text.clone()))?;
        let failure = said.iter().find(|one| one.kind == 'E').and_then(|one| one.field('M'));
        let has_panicked = failure.is_some_and(|words| words.contains("panicked"));
        ensure!(!has_panicked, "{text}");
    }
    let peak = server.resident_bytes("VmHWM")?;
    ensure!(peak < 2 << 30, "{peak} bytes");
    Ok(())
}
