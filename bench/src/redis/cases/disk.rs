//! Values on disk: read when memory is too small for them, and coded with dictionaries.

use super::super::data::Values;
use super::super::measure::{Rate, Rounds, rounds};
use super::super::page::{Section, megabytes, short};
use super::super::server::{Server, Setting};
use super::super::{Bench, tool};
use super::{fill, roomy};
use anyhow::{Result, bail};
use std::time::{Duration, Instant};

/// A server's keeper is done when its directory has not changed for so long: longer than values rest
/// before they are coded.
const QUIET: Duration = Duration::from_secs(8);
const QUIET_MAX: Duration = Duration::from_secs(120);

/// GET of uniform keys where all are in memory, and where an eighth is.
pub fn cold(bench: &mut Bench<'_>) -> Result<Section> {
    let size = &bench.options.size;
    let keys = size.keys * 4;
    let hot = Setting::new(roomy(keys));
    let small = Setting::new((keys * 216 / 8).max(8 << 20));
    let mut section =
        Section::new(&format!("{} of values, an eighth of it in memory", megabytes(keys * 200)));
    section.started_quipu("in memory", &hot);
    section.started_quipu("an eighth", &small);
    section.say(
        "Load: `redis-benchmark -r KEYS -d 200 -c C -P P -t get`; files are in the page cache.",
    );
    let servers = [bench.quipu(&hot, "hot")?, bench.quipu(&small, "small")?];
    for server in &servers {
        fill(server, keys, Values::Constant)?;
        wait_until_quiet(server)?;
    }
    let rss = servers[1].used()?.rss_bytes;
    section.say(&format!("RSS with an eighth in memory: {}.", megabytes(rss)));
    section.head(&["clients", "ops/s in memory", "ops/s on disk", "rate", "p99 ms", "CPU us/op"]);
    let keys = keys.to_string();
    for (clients, pipeline, times) in [("2", "1", 1), ("50", "1", 1), ("50", "16", 5)] {
        let arguments = ["-c", clients, "-P", pipeline, "-r", &keys, "-d", "200", "-t", "get"];
        let requests = size.requests * times;
        let rounds = rounds(size.rounds, 2, |nth| tool::run(&servers[nth], requests, &arguments))?;
        let (hot, small) = (rounds.medians(0), rounds.medians(1));
        section.row(&[
            format!("`-c {clients} -P {pipeline}`"),
            short(hot.per_second),
            short(small.per_second),
            percent(rounds.ratio(1, 0, |rate| rate.per_second)),
            format!("{} / {}", short(hot.p99_ms), short(small.p99_ms)),
            format!("{} / {}", short(hot.cpu_us), short(small.cpu_us)),
        ]);
    }
    let reads = servers[1].connect()?.info("quipu_cold_reads").unwrap_or(f64::NAN);
    section.say(&format!("\nValues read from disk by the second: {}.", short(reads)));
    drop(servers);
    bench.clean()?;
    Ok(section)
}

/// What dictionaries gain and cost, by kind of values.
pub fn dictionary(bench: &mut Bench<'_>) -> Result<Section> {
    let size = &bench.options.size;
    let keys = size.keys;
    let memory = (keys * 216 / 8).max(8 << 20);
    let on = Setting::new(memory);
    let off = Setting::new(memory).with("--kv-compression=false");
    let mut section = Section::new("Compression on disk");
    section.started_quipu("on", &on);
    section.started_quipu("off", &off);
    section.say(&format!(
        "{} keys, an eighth of 200 B each in memory. Load: `redis-benchmark -c 50 -P 16`; SET writes \
         constant values over those that were there, GET reads what was filled in.",
        short(keys as f64)
    ));
    section.head(&[
        "values",
        "ratio",
        "disk of values on / off",
        "GET ops/s on / off",
        "GET on / off",
        "SET ops/s on / off",
        "SET on / off",
        "CPU us/op GET, SET on / off",
    ]);
    for values in [Values::Constant, Values::Sessions, Values::Random] {
        let servers = [bench.quipu(&on, "on")?, bench.quipu(&off, "off")?];
        for server in &servers {
            fill(server, keys, values)?;
            wait_until_quiet(server)?;
        }
        let ratio = coded_ratio(&servers[0])?;
        let disk = servers.each_ref().map(cold_size);
        let [on, off] = disk;
        let get = timed(bench, &servers, "get")?;
        let set = timed(bench, &servers, "set")?;
        section.row(&[
            values.name().to_string(),
            short(ratio),
            format!("{} / {}", megabytes(on?), megabytes(off?)),
            pair(&get, |rate| rate.per_second),
            short(get.ratio(0, 1, |rate| rate.per_second)),
            pair(&set, |rate| rate.per_second),
            short(set.ratio(0, 1, |rate| rate.per_second)),
            format!("{}, {}", pair(&get, |rate| rate.cpu_us), pair(&set, |rate| rate.cpu_us)),
        ]);
    }
    bench.clean()?;
    Ok(section)
}

fn timed(bench: &Bench<'_>, servers: &[Server; 2], command: &str) -> Result<Rounds> {
    let size = &bench.options.size;
    let keys = size.keys.to_string();
    let arguments = ["-c", "50", "-P", "16", "-r", &keys, "-d", "200", "-t", command];
    rounds(size.rounds, 2, |nth| tool::run(&servers[nth], size.requests * 3, &arguments))
}

fn pair(rounds: &Rounds, figure: fn(&Rate) -> f64) -> String {
    format!("{} / {}", short(figure(&rounds.medians(0))), short(figure(&rounds.medians(1))))
}

fn percent(share: f64) -> String {
    format!("{:.0} %", share * 100.0)
}

/// Bytes of coded values over those before.
fn coded_ratio(server: &Server) -> Result<f64> {
    let mut connection = server.connect()?;
    let plain = connection.info("quipu_compression_plain_bytes")?;
    Ok(connection.info("quipu_compression_coded_bytes")? / plain.max(1.0))
}

fn cold_size(server: &Server) -> Result<u64> {
    Ok(server.connect()?.info("quipu_segment_bytes")? as u64)
}

/// Waits until what was written lies where it stays.
fn wait_until_quiet(server: &Server) -> Result<()> {
    let started = Instant::now();
    let (mut before, mut since) = (server.disk(), Instant::now());
    while since.elapsed() < QUIET {
        std::thread::sleep(Duration::from_millis(200));
        let now = server.disk();
        if now != before {
            (before, since) = (now, Instant::now());
        }
        if QUIET_MAX < started.elapsed() {
            bail!("the server writes on and on");
        }
    }
    Ok(())
}
