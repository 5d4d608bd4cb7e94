//! Many time series with few samples each: what RedisTimeSeries keeps in a chunk of 4 KiB for each.

use super::super::Bench;
use super::super::page::{Section, megabytes, short};
use super::super::resp;
use super::super::server::{Server, Setting};
use anyhow::Result;
use std::time::{Duration, Instant};

const SAMPLES: u64 = 10;
/// 2024-02-29 12:00:00 UTC in milliseconds.
const START_MS: u64 = 1_709_208_000_000;
const PIPELINE: u64 = 500;

/// Memory, disk and time.
pub fn series(bench: &mut Bench<'_>) -> Result<Section> {
    let count = bench.options.size.series;
    let setting = Setting::new(128 << 20);
    let mut section =
        Section::new(&format!("{} time series of {SAMPLES} samples", short(count as f64)));
    section.started_quipu("Quipu", &setting);
    section.say(
        "Load: one client; `TS.CREATE sensor:N LABELS sensor N site S` for each, then ten times \
         `TS.MADD` of 100 series.",
    );
    let dir = bench.dir("quipu")?;
    let server = Server::start(&bench.programs[0], &setting, &dir)?;
    let started = Instant::now();
    create(&server, count)?;
    let created = started.elapsed().as_secs_f64();
    let rss_created = server.used()?.rss_bytes;
    let started = Instant::now();
    add(&server, count)?;
    let added = started.elapsed().as_secs_f64();
    let used = server.used()?;
    std::thread::sleep(Duration::from_secs(20));
    let rss_later = server.used()?.rss_bytes;
    server.stop()?;
    let server = Server::start(&bench.programs[0], &setting, &dir)?;
    let (ready, rss_restarted) = (server.ready_after.as_secs_f64(), server.used()?.rss_bytes);
    let disk = server.disk().apparent_bytes;
    drop(server);
    section.head(&["what", "figure"]);
    let per_second = |count: u64, seconds: f64| format!("{} /s", short(count as f64 / seconds));
    section.row(&["series created", &per_second(count, created)]);
    section.row(&["samples added", &per_second(count * SAMPLES, added)]);
    section.row(&["RSS, created", &megabytes(rss_created)]);
    section.row(&["RSS, all samples added", &megabytes(used.rss_bytes)]);
    section.row(&["RSS, peak until then", &megabytes(used.rss_peak_bytes)]);
    section.row(&["RSS, 20 s later", &megabytes(rss_later)]);
    section.row(&["RSS, after a restart", &megabytes(rss_restarted)]);
    section.row(&["ready after a stop, s", &short(ready)]);
    section.row(&["disk", &megabytes(disk)]);
    bench.clean()?;
    Ok(section)
}

fn create(server: &Server, count: u64) -> Result<()> {
    let mut connection = server.connect()?;
    let mut bytes = Vec::new();
    for first in (0..count).step_by(usize::try_from(PIPELINE)?) {
        bytes.clear();
        let end = count.min(first + PIPELINE);
        for number in first..end {
            let (key, sensor) = (format!("sensor:{number}"), number.to_string());
            let site = (number % 1000).to_string();
            let words: [&[u8]; 7] = [
                b"TS.CREATE",
                key.as_bytes(),
                b"LABELS",
                b"sensor",
                sensor.as_bytes(),
                b"site",
                site.as_bytes(),
            ];
            resp::put(&mut bytes, &words);
        }
        connection.send(&bytes)?;
        connection.skip(usize::try_from(end - first)?)?;
    }
    Ok(())
}

fn add(server: &Server, count: u64) -> Result<()> {
    let mut connection = server.connect()?;
    let mut bytes = Vec::new();
    for sample in 0..SAMPLES {
        let at = (START_MS + sample * 60_000).to_string();
        for first in (0..count).step_by(100) {
            let end = count.min(first + 100);
            let mut words = vec!["TS.MADD".to_string()];
            for number in first..end {
                let value = number % 100 + sample;
                words.extend([format!("sensor:{number}"), at.clone(), value.to_string()]);
            }
            let words: Vec<&[u8]> = words.iter().map(String::as_bytes).collect();
            bytes.clear();
            resp::put(&mut bytes, &words);
            connection.send(&bytes)?;
            connection.skip(1)?;
        }
    }
    Ok(())
}
