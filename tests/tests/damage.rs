//! What rots is said: in the answer, in the metrics, in the status, in the log; or the answer is denied.

use anyhow::{Context, Result, ensure};
use e2e::{Launch, Response, Server};
use serde_json::Value;
use std::path::{Path, PathBuf};

/// 2024-02-29 12:00:00 UTC in seconds.
const NOON: i64 = 1_709_208_000;

/// Two parts in a month: one of `early`, one of `late`.
pub fn fill(directory: &Path) -> Result<()> {
    let server = Launch::new(directory).start()?;
    for name in ["early", "late"] {
        let line = |second: i64| format!("{name},host=h v={second} {}\n", NOON + second);
        let body: String = (0..300).map(line).collect();
        server.write("/write?precision=s", body)?;
        server.post("/internal/force_flush", "")?;
    }
    server.stop()
}

pub fn files(directory: &Path, folder: &str) -> Result<Vec<PathBuf>> {
    let folder = directory.join("partitions/2024-02").join(folder);
    let mut files: Vec<PathBuf> =
        std::fs::read_dir(folder)?.map(|entry| Ok(entry?.path())).collect::<Result<_>>()?;
    files.sort();
    Ok(files)
}

pub fn flip(path: &Path, byte: usize) -> Result<()> {
    let mut bytes = std::fs::read(path)?;
    bytes[byte] ^= 4;
    // A new file under the old name: who has mapped the old one keeps it.
    std::fs::remove_file(path)?;
    Ok(std::fs::write(path, bytes)?)
}

/// The first warning of an answer that is not whole.
#[track_caller]
fn warning_of(answer: &Response) -> Result<String> {
    ensure!(answer.status == 200, "{}", answer.excerpt());
    assert_eq!(answer.header("x-quipu-partial"), "true");
    let json = answer.json()?;
    assert_eq!(json["isPartial"], Value::Bool(true), "{json}");
    let warning = json["warnings"][0].as_str().context("a warning")?;
    assert!(warning.contains("partitions/2024-02/"), "{warning}");
    assert!(warning.contains("quipu verify --repair"), "{warning}");
    Ok(warning.to_string())
}

#[track_caller]
fn check_whole(server: &Server, path: &str) -> Result<()> {
    let answer = server.get(path)?;
    ensure!(answer.status == 200, "{}", answer.excerpt());
    assert_eq!(answer.header("x-quipu-partial"), "");
    assert!(!answer.text().contains("isPartial"), "{}", answer.excerpt());
    Ok(())
}

fn range_of(name: &str) -> String {
    format!("/api/v1/query_range?query={name}_v&start={NOON}&end={}&step=15", NOON + 299)
}

#[test]
fn a_rotten_page_is_said_in_every_way() -> Result<()> {
    let directory = tempfile::tempdir()?;
    fill(directory.path())?;
    let part = files(directory.path(), "parts")?.remove(0);
    flip(&part, 40)?;
    let mut server = Launch::new(directory.path()).start()?;
    check_whole(&server, &range_of("late"))?;
    assert_eq!(server.metric("quipu_store_damage{place=\"page\"}")?, 0.0);
    for round in 0..2 {
        for dialect in ["promql", "metricsql"] {
            let path = format!("{}&dialect={dialect}", range_of("early"));
            let warning = warning_of(&server.get(&path)?)?;
            assert!(warning.contains("2024-02-29T12:00:00Z"), "{warning}");
            let path = format!("/api/v1/query?query=early_v&time={}&dialect={dialect}", NOON + 99);
            warning_of(&server.get(&path)?)?;
        }
        check_whole(&server, &range_of("late"))?;
        check_whole(&server, "/api/v1/labels")?;
        for path in ["/api/v1/export", "/federate", "/api/v1/export?format=promapi"] {
            let join = if path.contains('?') { '&' } else { '?' };
            let answer = server.get(&format!("{path}{join}match[]=late_v"))?;
            ensure!(answer.status == 200, "{}", answer.excerpt());
        }
        let export = server.get("/api/v1/export?format=promapi&match[]=early_v")?.json()?;
        assert_eq!(export["isPartial"], Value::Bool(true), "{export}");
        assert_eq!(server.metric("quipu_store_damage{place=\"page\"}")?, 1.0);
        assert_eq!(server.metric("quipu_store_damage_noticed_total")?, 1.0);
        assert!(server.metric("quipu_partial_answers_total")? >= 5.0);
        let status = server.get("/api/v1/status/damage")?.data()?;
        assert_eq!(status["damage"][0]["place"], "page", "{status}");
        assert_eq!(status["damage"][0]["partition"], "2024-02", "{status}");
        assert_eq!(status["damage"][1], Value::Null, "{status}");
        if round == 0 {
            let name = part.file_name().context("a name")?.to_string_lossy().into_owned();
            e2e::poll("a line in the log", std::time::Duration::from_secs(20), || {
                server.wait_for_log(&name)?;
                Ok(())
            })?;
            server = server.restart()?;
        }
    }
    assert!(part.is_file(), "it stays where it is");
    server.stop()
}

#[test]
fn exports_of_damaged_samples_are_marked() -> Result<()> {
    let directory = tempfile::tempdir()?;
    fill(directory.path())?;
    flip(&files(directory.path(), "parts")?[0], 40)?;
    let mut server = Launch::new(directory.path()).start()?;
    for round in 0..2 {
        for path in [
            "/api/v1/export?",
            "/api/v1/export?format=prometheus&",
            "/api/v1/export/native?",
            "/api/v1/export/csv?format=__name__,__value__&",
        ] {
            let answer = server.get(&format!("{path}match[]=early_v"))?;
            let found = (answer.status, answer.header("x-quipu-partial"));
            assert_eq!(found, (200, "true"), "{path} {round}");
        }
        // In the first round the export finds the damage, in the second one the list has it.
        server = server.restart()?;
    }
    server.stop()
}

/// Before, the process died of SIGBUS.
#[test]
fn a_part_cut_short_under_the_server_does_not_end_it() -> Result<()> {
    let directory = tempfile::tempdir()?;
    fill(directory.path())?;
    let server = Launch::new(directory.path()).start()?;
    check_whole(&server, &range_of("early"))?;
    let part = files(directory.path(), "parts")?.remove(0);
    std::fs::File::options().write(true).open(part)?.set_len(0)?;
    for _ in 0..2 {
        warning_of(&server.get(&format!("{}&nocache=1", range_of("early")))?)?;
        check_whole(&server, &range_of("late"))?;
    }
    server.stop()
}

#[test]
fn partial_answers_are_denied_on_demand() -> Result<()> {
    let directory = tempfile::tempdir()?;
    fill(directory.path())?;
    flip(&files(directory.path(), "parts")?[0], 40)?;
    let launch = Launch::new(directory.path());
    let server = launch.start()?;
    let denied = |server: &Server, path: &str| -> Result<()> {
        let answer = server.get(path)?;
        assert_eq!((answer.status, answer.header("retry-after")), (503, ""), "{path}");
        let text = answer.text();
        assert!(text.contains("denied") && text.contains("partitions/2024-02/parts/"), "{text}");
        Ok(())
    };
    let instant = format!("/api/v1/query?query=early_v&time={}", NOON + 99);
    for path in [&instant, &range_of("early"), "/api/v1/export?match[]=early_v"] {
        denied(&server, &format!("{path}&deny_partial_response=1"))?;
    }
    check_whole(&server, &format!("{}&deny_partial_response=1", range_of("late")))?;
    server.stop()?;
    let server = launch.flag("query.deny-partial", "true").start()?;
    denied(&server, &range_of("early"))?;
    warning_of(&server.get(&format!("{}&deny_partial_response=0", range_of("early")))?)?;
    server.stop()
}

#[test]
fn a_rotten_index_segment_is_said_by_all_who_list_series() -> Result<()> {
    let directory = tempfile::tempdir()?;
    fill(directory.path())?;
    flip(&files(directory.path(), "index")?[0], 20)?;
    let server = Launch::new(directory.path()).start()?;
    for path in
        ["/api/v1/labels", "/api/v1/label/host/values", "/api/v1/series?match[]={host=\"h\"}"]
    {
        let path = path.replace('{', "%7B").replace('}', "%7D").replace('"', "%22");
        let warning = warning_of(&server.get(&path)?)?;
        assert!(warning.contains("/index/"), "{warning}");
    }
    for path in ["/tags", "/metrics/find?query=*", "/metrics/index.json"] {
        let answer = server.get(path)?;
        assert_eq!((answer.status, answer.header("x-quipu-partial")), (200, "true"), "{path}");
        let join = if path.contains('?') { '&' } else { '?' };
        let denied = server.get(&format!("{path}{join}deny_partial_response=1"))?;
        assert_eq!(denied.status, 503, "{path}");
    }
    let names = server.get("/api/v1/label/__name__/values")?.data()?;
    assert_eq!(names.to_string(), r#"["late_v"]"#);
    assert_eq!(server.metric("quipu_store_damage{place=\"index\"}")?, 1.0);
    server.stop()
}
