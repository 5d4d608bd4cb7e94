//! SQL over samples of which a real VictoriaMetrics has the old ones.

use anyhow::{Result, ensure};
use e2e::postgres::launch;
use e2e::victoria::start_victoria;
use e2e::{Client, Psql};

/// 2026-08-30 00:00:00 UTC in seconds.
const START: i64 = 1_788_048_000;

#[test]
fn old_samples_are_rows_like_others() -> Result<()> {
    let directory = tempfile::tempdir()?;
    let (victoria, authority) = start_victoria(directory.path())?;
    let until = START + 600;
    let legacy = format!("url=http://{authority} kind=victoriametrics until={until}");
    let server = launch(&directory.path().join("quipu")).flag("legacy", &legacy).start()?;
    let psql = Psql::of(&server)?;
    let line =
        |host: &str, value: i64, at: i64| format!("cpu,host={host} v={value} {}\n", START + at);
    let old = [line("a", 1, 0), line("a", 2, 300), line("b", 3, 0), line("a", 99, 700)].concat();
    let mut client = Client::new(&authority);
    let written = client.post("/write?precision=s", &[], old.as_bytes())?;
    ensure!(written.status == 204, "{}", written.excerpt());
    client.get("/internal/force_flush")?;
    // One was copied, one is new.
    server.write("/write?precision=s", line("a", 2, 300) + &line("a", 4, 600))?;
    psql.ask(&["CREATE TABLE people (name text)", "INSERT INTO people VALUES ('x')"], "")?;
    let samples = "SELECT labels->>'host', count(*), sum(value) FROM metrics WHERE name = 'cpu_v' GROUP BY 1 ORDER BY 1";
    let table = "SELECT val(host_id), sum(value) FROM cpu_v GROUP BY 1 ORDER BY 1";
    let series = "SELECT count(*) FROM prom_series.cpu_v";
    let late =
        "SELECT count(*) FROM metrics WHERE name = 'cpu_v' AND time >= '2026-08-30 00:10:00+00'";
    for (asked, expected) in
        [(samples, "a|3|7\nb|1|3"), (table, "a|7\nb|3"), (series, "2"), (late, "1")]
    {
        let said = psql.ask(&[asked], "")?;
        ensure!(said == expected, "{asked}: {said}");
    }
    drop(victoria);
    let said = psql.say(&["\\set VERBOSITY verbose", samples], "")?;
    ensure!(!said.is_ok && said.error.contains("08006"), "{said:?}");
    ensure!(said.error.contains(&format!("legacy backend http://{authority}")), "{said:?}");
    for (asked, expected) in [(late, "1"), ("SELECT count(*) FROM people", "1")] {
        let said = psql.ask(&[asked], "")?;
        ensure!(said == expected, "{asked}: {said}");
    }
    server.stop()
}
