//! What the door costs who does not use it.

use super::super::Bench;
use super::super::page::{Section, megabytes, short};
use super::super::server::{Server, Setting};
use anyhow::Result;
use std::time::Duration;

/// Time for a start to calm down.
const CALM: Duration = Duration::from_secs(3);

/// CPU, wakeups and memory of a server that nobody asks anything.
pub fn idle(bench: &mut Bench<'_>) -> Result<Section> {
    let span = Duration::from_secs(if bench.options.size.rounds < 5 { 5 } else { 30 });
    let mut section = Section::new("While nobody comes");
    section.head(&["server", "CPU, ms in a second", "wakeups in a second", "RSS", "of it files"]);
    let with = Setting::new(256 << 20);
    let without = Setting::new(256 << 20).with("--redis-listen=");
    let mut cases = vec![
        ("Quipu, `--redis-listen=`", &bench.programs[0], without),
        ("Quipu, with the door", &bench.programs[0], with.clone()),
    ];
    if let Some(redis) = bench.redis_at() {
        cases.push(("Redis", &bench.programs[redis], with));
    }
    for (name, program, setting) in cases {
        let server = Server::start(program, &setting, &bench.dir("idle")?)?;
        std::thread::sleep(CALM);
        let (before, woken_before) = (server.used()?, server.wakeups());
        std::thread::sleep(span);
        let (after, woken) = (server.used()?, server.wakeups());
        let seconds = span.as_secs_f64();
        let cpu_ms = (after.cpu_seconds - before.cpu_seconds) * 1e3 / seconds;
        section.row(&[
            name.to_string(),
            short(cpu_ms),
            short(woken.saturating_sub(woken_before) as f64 / seconds),
            megabytes(after.rss_bytes),
            megabytes(after.rss_file_bytes),
        ]);
    }
    bench.clean()?;
    Ok(section)
}
