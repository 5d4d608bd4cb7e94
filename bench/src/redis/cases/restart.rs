//! Many keys in little memory: what they take, and how soon a start has them again.

use super::super::Bench;
use super::super::data::Values;
use super::super::page::{Section, megabytes, short};
use super::super::server::{Kind, Program, Server, Setting};
use super::fill;
use anyhow::{Result, ensure};

/// Memory for keys, as the target has it for ten million.
const MEMORY: u64 = 768 << 20;

/// RSS, disk, and starts after a clean end and after a kill.
pub fn restart(bench: &mut Bench<'_>) -> Result<Section> {
    let keys = bench.options.size.many_keys;
    let setting = Setting::new(MEMORY);
    let mut section = Section::new(&format!("{} keys of 200 B, and starts", short(keys as f64)));
    section.started(bench.programs, &setting);
    section.head(&[
        "server",
        "RSS filled",
        "RSS peak",
        "disk",
        "stops in s",
        "ready after a stop, s",
        "RSS then",
        "ready after kill -9 under load, s",
    ]);
    for program in bench.programs {
        let row = one(bench, program, &setting, keys)?;
        section.row(&row);
    }
    bench.clean()?;
    Ok(section)
}

fn one(bench: &Bench<'_>, program: &Program, setting: &Setting, keys: u64) -> Result<Vec<String>> {
    let dir = bench.dir(program.name())?;
    let server = Server::start(program, setting, &dir)?;
    fill(&server, keys, Values::Constant)?;
    std::thread::sleep(std::time::Duration::from_secs(5));
    let (filled, disk) = (server.used()?, server.disk().apparent_bytes);
    check_count(&server, keys)?;
    let stopped = server.stop()?;
    let server = Server::start(program, setting, &dir)?;
    let after_stop = server.ready_after;
    check_count(&server, keys)?;
    let rss_then = server.used()?.rss_bytes;
    // Changes that no checkpoint has: a quarter of the keys again.
    fill(&server, keys / 4, Values::Random)?;
    server.kill()?;
    let server = Server::start(program, setting, &dir)?;
    check_count(&server, keys)?;
    let after_kill = server.ready_after;
    drop(server);
    if program.kind == Kind::Redis {
        // Its append-only file is large, and not needed any more.
        std::fs::remove_dir_all(&dir)?;
    }
    Ok(vec![
        program.name().to_string(),
        megabytes(filled.rss_bytes),
        megabytes(filled.rss_peak_bytes),
        megabytes(disk),
        short(stopped.as_secs_f64()),
        short(after_stop.as_secs_f64()),
        megabytes(rss_then),
        short(after_kill.as_secs_f64()),
    ])
}

fn check_count(server: &Server, keys: u64) -> Result<()> {
    let answer = server.connect()?.ask(&[b"DBSIZE"])?;
    let answer = String::from_utf8_lossy(&answer).trim().to_string();
    ensure!(answer == format!(":{keys}"), "DBSIZE is {answer}, not {keys}");
    Ok(())
}
