//! What was acknowledged is visible at once, whatever the order in which it came, and what was
//! deleted or has expired is not.

use anyhow::{Result, ensure};
use e2e::{Launch, Server, poll};
use rng::Random;
use std::collections::BTreeMap;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// 2024-02-29 12:00:00 UTC in seconds.
const NOON: i64 = 1_709_208_000;

fn server(directory: &tempfile::TempDir) -> Result<Server> {
    Launch::new(directory.path()).start()
}

fn value_at(server: &Server, query: &str, seconds: i64) -> Result<Vec<String>> {
    Ok(server.vector(query, seconds as f64)?.into_values().collect())
}

#[test]
fn a_sample_is_visible_as_soon_as_it_is_acknowledged() -> Result<()> {
    let directory = tempfile::tempdir()?;
    let server = server(&directory)?;
    let (mut writer, mut reader) = (server.client(), server.client());
    for round in 0..200 {
        let seconds = NOON + round;
        let line = format!("m,host=h{} v={round} {seconds}", round % 7);
        let answer = writer.post("/write?precision=s", &[], line.as_bytes())?;
        ensure!(answer.status == 204, "{}", answer.excerpt());
        let path = format!("/api/v1/query?query=count_over_time(m_v[1h])&time={seconds}");
        let counts = reader.get(&path)?.vector()?;
        let total: i64 = counts.values().map(|count| count.parse().unwrap_or(0)).sum();
        assert_eq!(total, round + 1, "{counts:?}");
    }
    // A new label and a new metric are found at once, too.
    server.write("/write?precision=s", format!("fresh,new_label=x v=1 {NOON}"))?;
    let names = server.get("/api/v1/labels")?.data()?;
    assert!(names.to_string().contains("\"new_label\""), "{names}");
    let metrics = server.get("/api/v1/label/__name__/values")?.data()?;
    assert_eq!(metrics.to_string(), r#"["fresh_v","m_v"]"#);
    server.stop()
}

#[test]
fn a_sample_without_a_time_is_visible_at_once_to_a_query_without_one() -> Result<()> {
    let directory = tempfile::tempdir()?;
    let server = server(&directory)?;
    let mut client = server.client();
    for round in 0..100 {
        let line = format!("m,round=r{round} v={round}");
        ensure!(client.post("/write?durability=relaxed", &[], line.as_bytes())?.status == 204);
        for query in ["m_v", "default_rollup(m_v)&dialect=metricsql"] {
            let query = query.replace("m_v", &format!("m_v%7Bround=%22r{round}%22%7D"));
            let found = client.get(&format!("/api/v1/query?query={query}"))?.vector()?;
            ensure!(found.len() == 1, "round {round}: {query}: {found:?}");
        }
    }
    server.stop()
}

#[test]
fn listings_take_selectors_that_match_everything_and_nothing_else_does() -> Result<()> {
    let directory = tempfile::tempdir()?;
    let server = server(&directory)?;
    server.write("/write?precision=s", format!("a,x=1 v=1 {NOON}\nb,y=2 v=2 {NOON}"))?;
    for selector in ["%7B%7D", "%7B__name__=~%22.*%22%7D"] {
        let get = |path: &str| server.get(&format!("{path}?match[]={selector}"));
        assert_eq!(get("/api/v1/labels")?.data()?.to_string(), r#"["__name__","x","y"]"#);
        let values = get("/api/v1/label/__name__/values")?.data()?;
        assert_eq!(values.to_string(), r#"["a_v","b_v"]"#);
        assert_eq!(get("/api/v1/label/x/values")?.data()?.to_string(), r#"["1"]"#);
        let series = get("/api/v1/series")?.data()?;
        assert_eq!(series.as_array().map_or(0, Vec::len), 2, "{series}");
        assert_eq!(get("/api/v1/export")?.text().lines().count(), 2);
        assert_eq!(get("/federate")?.status, 400);
        let query = server.get(&format!("/api/v1/query?query={selector}&time={NOON}"))?;
        assert_eq!(query.status, 400, "{}", query.excerpt());
        let path = format!("/api/v1/admin/tsdb/delete_series?match[]={selector}");
        assert_eq!(server.client().post(&path, &[], b"")?.status, 400);
    }
    server.stop()
}

#[test]
fn out_of_order_samples_and_duplicates_come_back_in_order_and_the_last_one_wins() -> Result<()> {
    let directory = tempfile::tempdir()?;
    let mut server = server(&directory)?;
    let mut random = Random::seeded(7);
    let mut expected = BTreeMap::new();
    for round in 0..20 {
        let mut body = String::new();
        for _ in 0..100 {
            // Few enough moments that many are written more than once, within and across bodies.
            let millis = NOON * 1000 + random.below(700) as i64 * 60_000;
            let value = random.below(1_000_000);
            body.push_str(&format!("m v={value} {millis}\n"));
            expected.insert(millis, value);
        }
        server.write("/write?precision=ms", body)?;
        match round {
            7 => server.write_order("/internal/force_flush")?,
            11 => server = server.restart()?,
            15 => server.write_order("/internal/force_merge")?,
            _ => {}
        }
    }
    let expected: Vec<String> =
        expected.iter().map(|(at, value)| format!("{at} {value}")).collect();
    assert_eq!(server.export("m_v")?.samples("m_v{}"), expected);
    let server = server.restart()?;
    assert_eq!(server.export("m_v")?.samples("m_v{}"), expected);
    server.write_order("/internal/force_merge")?;
    assert_eq!(server.export("m_v")?.samples("m_v{}"), expected);
    server.stop()
}

/// Orders that answer 200.
trait Order {
    fn write_order(&self, path: &str) -> Result<()>;
}

impl Order for Server {
    fn write_order(&self, path: &str) -> Result<()> {
        let answer = self.post(path, "")?;
        ensure!(answer.status < 300, "{path}: {}", answer.excerpt());
        Ok(())
    }
}

#[test]
fn deleted_samples_stay_away_and_later_ones_come_in() -> Result<()> {
    let directory = tempfile::tempdir()?;
    let mut server = server(&directory)?;
    let body: String = (0..60)
        .flat_map(|minute| ["a", "b"].map(|host| (minute, host)))
        .map(|(minute, host)| format!("m,host={host} v={minute} {}\n", NOON + minute * 60))
        .collect();
    server.write("/write?precision=s", &body)?;
    // Samples in a part on disk, and samples in memory.
    server.write_order("/internal/force_flush")?;
    server.write("/write?precision=s", body.replace("m,host", "n,host"))?;
    let (start, end) = (NOON + 600, NOON + 1199);
    let selectors = "match[]=m_v{host=\"a\"}&match[]=n_v{host=\"a\"}";
    let delete = "/api/v1/admin/tsdb/delete_series";
    let selectors = selectors.replace('{', "%7B").replace('}', "%7D").replace('"', "%22");
    server.write_order(&format!("{delete}?{selectors}&start={start}&end={end}"))?;
    for round in ["at once", "after a restart", "after a merge"] {
        for metric in ["m_v", "n_v"] {
            let export = server.export(metric)?;
            let a = export.samples(&format!("{metric}{{host=\"a\"}}"));
            assert_eq!(a.len(), 50, "{round}: {metric}");
            assert!(a.iter().all(|sample| !sample.ends_with(" 10") && !sample.ends_with(" 19")));
            assert_eq!(export.samples(&format!("{metric}{{host=\"b\"}}")).len(), 60, "{round}");
        }
        match round {
            "at once" => server = server.restart()?,
            _ => server.write_order("/internal/force_merge")?,
        }
    }
    // The same place can be written again.
    server.write("/write?precision=s", format!("m,host=a v=-1 {}", NOON + 600))?;
    assert_eq!(value_at(&server, "m_v{host=\"a\"}", NOON + 600)?, ["-1"]);
    let no_selector = server.post(delete, "")?;
    assert_eq!(no_selector.status, 400, "{}", no_selector.excerpt());
    server.stop()
}

#[test]
fn what_is_older_than_the_retention_is_refused_or_dropped() -> Result<()> {
    let directory = tempfile::tempdir()?;
    let server = server(&directory)?;
    let now = SystemTime::now().duration_since(UNIX_EPOCH)?.as_secs() as i64;
    let days_ago = |days: i64| now - days * 86_400;
    let body: String =
        [400, 200, 40, 2, 0].map(|days| format!("m v={days} {}\n", days_ago(days))).concat();
    server.write("/write?precision=s", &body)?;
    assert_eq!(server.export("m_v")?.len(), 5);
    server.stop()?;
    let server = Launch::new(directory.path()).flag("retention", "100d").start()?;
    let kept = server.export("m_v")?;
    assert_eq!(kept.len(), 3, "{kept:?}");
    let early =
        server.post("/write?precision=s", format!("m v=5 {}\nm v=6 {now}", days_ago(101)))?;
    assert_eq!(early.status, 400, "{}", early.excerpt());
    assert!(early.text().contains("retention"), "{}", early.excerpt());
    assert!(early.text().contains("partial write"), "{}", early.excerpt());
    assert_eq!(value_at(&server, "m_v", now)?, ["6"]);
    // A month that lies before the retention leaves the disk; the store looks once a minute.
    poll("old partitions gone", Duration::from_secs(120), || {
        let count = server.metric("quipu_store_partitions")?;
        ensure!(count <= 3.0, "{count} partitions");
        Ok(())
    })?;
    server.stop()
}

#[test]
fn a_snapshot_is_a_database_of_its_own() -> Result<()> {
    let directory = tempfile::tempdir()?;
    let server = server(&directory)?;
    server.write("/write?precision=s", format!("m,host=a v=1.5 {NOON}\nm,host=b v=2 {NOON}"))?;
    server.write_order("/internal/force_flush")?;
    server.write("/write?precision=s", format!("m,host=c v=3 {}", NOON + 1))?;
    let before = server.export("m_v")?;
    let answer = server.post("/api/v1/admin/tsdb/snapshot", "")?.data()?;
    let name = answer["name"].as_str().unwrap_or("").to_string();
    server.write("/write?precision=s", format!("m,host=a v=9 {}", NOON + 2))?;
    let list = server.get("/snapshot/list")?.text();
    assert!(list.contains(&name), "{list}");

    let copy = directory.path().join("snapshots").join(&name);
    let second = Launch::new(&copy).start()?;
    assert_eq!(second.export("m_v")?, before);
    second.write("/write?precision=s", format!("m,host=z v=26 {NOON}"))?;
    second.stop()?;
    assert_eq!(server.export("m_v{host=\"z\"}")?.len(), 0, "the first knows nothing of it");
    assert_eq!(server.export("m_v")?.len(), 4);
    server.write_order(&format!("/snapshot/delete?snapshot={name}"))?;
    assert!(!copy.exists());
    server.stop()
}
