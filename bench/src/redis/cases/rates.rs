//! Rates and latencies of both servers, keys in memory.

use super::super::data::{Choice, Values, Zipf};
use super::super::load::{self, Load};
use super::super::measure::{Rate, Rounds, rounds};
use super::super::page::{Section, megabytes, short};
use super::super::server::{Server, Setting};
use super::super::{Bench, tool};
use super::{fill, roomy};
use anyhow::Result;

/// A command line of `redis-benchmark`: its name, the arguments of the command, how many times the
/// requests of a case it makes.
struct Line {
    name: &'static str,
    command: &'static [&'static str],
}

const SET_AND_GET: &[Line] =
    &[Line { name: "SET", command: &["-t", "set"] }, Line { name: "GET", command: &["-t", "get"] }];

const OTHERS: &[Line] = &[
    Line { name: "INCR", command: &["-t", "incr"] },
    Line { name: "LPUSH", command: &["-t", "lpush"] },
    Line { name: "LRANGE_100", command: &["LRANGE", "hundreds", "0", "99"] },
    Line { name: "HSET", command: &["-t", "hset"] },
    Line { name: "ZADD", command: &["-t", "zadd"] },
    Line { name: "MSET", command: &["-t", "mset"] },
];

/// Clients and commands in a pipeline; how many times the requests of the case.
const PACES: &[(&str, &str, u64)] = &[("2", "1", 1), ("50", "1", 1), ("50", "16", 5)];

const HEAD: &[&str] = &[
    "command",
    "clients",
    "Quipu ops/s",
    "Redis ops/s",
    "Quipu / Redis",
    "p50 ms",
    "p99 ms",
    "p99 Quipu / Redis",
    "CPU us/op",
    "CPU Quipu / Redis",
];

/// SET, GET and other commands at three paces.
pub fn few_keys(bench: &mut Bench<'_>) -> Result<Section> {
    let keys = bench.options.size.keys;
    at_all_paces(bench, &format!("Commands on {} keys in memory", short(keys as f64)), keys, OTHERS)
}

/// SET and GET where the index is large.
pub fn many_keys(bench: &mut Bench<'_>) -> Result<Section> {
    let keys = bench.options.size.many_keys;
    at_all_paces(bench, &format!("SET and GET on {} keys", short(keys as f64)), keys, &[])
}

/// SET and GET at three paces, and others where there is more than a client or two.
fn at_all_paces(bench: &mut Bench<'_>, title: &str, keys: u64, others: &[Line]) -> Result<Section> {
    let size = &bench.options.size;
    let setting = Setting::new(roomy(keys));
    let servers = bench.servers(&setting)?;
    let mut section = Section::new(title);
    section.started(bench.programs, &setting);
    section
        .say("Load: `redis-benchmark -r KEYS -d 200 -c C -P P -t COMMAND`, all keys set before.");
    for server in &servers {
        fill(server, keys, Values::Constant)?;
        if !others.is_empty() {
            fill_list(server)?;
        }
    }
    memory(&mut section, bench, &servers)?;
    section.head(HEAD);
    for (clients, pipeline, times) in PACES {
        let lines = SET_AND_GET.iter().chain(others.iter().filter(|_| *clients != "2"));
        for line in lines {
            let load = Pace { clients, pipeline, requests: size.requests * times, keys };
            let rounds = in_turn(bench, &servers, line, &load)?;
            row(&mut section, bench, line.name, &load.name(), &rounds);
        }
    }
    drop(servers);
    bench.clean()?;
    Ok(section)
}

/// SET where each is on disk before it is answered.
pub fn always(bench: &mut Bench<'_>) -> Result<Section> {
    let size = &bench.options.size;
    let setting = Setting { durability: "always", ..Setting::new(roomy(size.keys)) };
    let servers = bench.servers(&setting)?;
    let mut section = Section::new("Every change on disk before its answer");
    section.started(bench.programs, &setting);
    section.say("Load: `redis-benchmark -r KEYS -d 200 -c C -P P -t set`.");
    section.head(HEAD);
    for (clients, pipeline, _) in PACES {
        let requests = (size.requests / 4).max(1000);
        let load = Pace { clients, pipeline, requests, keys: size.keys };
        let rounds = in_turn(bench, &servers, &SET_AND_GET[0], &load)?;
        row(&mut section, bench, "SET", &load.name(), &rounds);
    }
    drop(servers);
    bench.clean()?;
    Ok(section)
}

/// What applications do: reads and writes, few keys often, values of all sizes.
pub fn skewed(bench: &mut Bench<'_>) -> Result<Section> {
    let size = &bench.options.size;
    let keys = size.keys / 4;
    let setting = Setting::new(roomy(size.keys) * 4);
    let servers = bench.servers(&setting)?;
    let mut section = Section::new("Skewed keys, values of all sizes");
    section.started(bench.programs, &setting);
    section.say(
        "Load: own clients; keys by Zipf's law (0.99) or each as often as any other, values of 16 B \
         to 16 KiB (half of them below 64 B), one SET for nine GETs.",
    );
    for server in &servers {
        fill(server, keys, Values::Mixed)?;
    }
    memory(&mut section, bench, &servers)?;
    section.head(HEAD);
    let zipf = || Choice::Skewed(Zipf::new(keys));
    for (name, choice, clients, pipeline, times) in [
        ("skewed", zipf(), 50, 1, 1),
        ("skewed", zipf(), 50, 16, 5),
        ("uniform", Choice::Uniform, 50, 16, 5),
    ] {
        let load = Load {
            clients,
            pipeline,
            requests: size.requests * times,
            keys,
            choice,
            values: Values::Mixed,
            set_percent: 10,
        };
        let rounds = rounds(size.rounds, servers.len(), |nth| load::run(&servers[nth], &load))?;
        let pace = format!("-c {clients} -P {pipeline}");
        row(&mut section, bench, &format!("GET 90 %, SET 10 %, {name}"), &pace, &rounds);
    }
    drop(servers);
    bench.clean()?;
    Ok(section)
}

/// How fast is asked.
struct Pace<'a> {
    clients: &'a str,
    pipeline: &'a str,
    requests: u64,
    keys: u64,
}

impl Pace<'_> {
    fn name(&self) -> String {
        format!("-c {} -P {}", self.clients, self.pipeline)
    }
}

fn in_turn(bench: &Bench<'_>, servers: &[Server], line: &Line, pace: &Pace<'_>) -> Result<Rounds> {
    let keys = pace.keys.to_string();
    let mut arguments = vec!["-c", pace.clients, "-P", pace.pipeline, "-r", &keys, "-d", "200"];
    arguments.extend(line.command);
    rounds(bench.options.size.rounds, servers.len(), |nth| {
        // What grows begins anew in each round.
        servers[nth].connect()?.ask(&[b"DEL", b"mylist", b"myhash", b"myzset"])?;
        tool::run(&servers[nth], pace.requests, &arguments)
    })
}

fn fill_list(server: &Server) -> Result<()> {
    let mut connection = server.connect()?;
    for _ in 0..1000 {
        connection.ask(&[b"RPUSH", b"hundreds", &[b'x'; 200]])?;
    }
    Ok(())
}

fn row(section: &mut Section, bench: &Bench<'_>, name: &str, pace: &str, rounds: &Rounds) {
    let quipu = rounds.medians(0);
    let redis = bench.redis_at().map(|at| rounds.medians(at));
    let ratio = |figure: fn(&Rate) -> f64| {
        bench.redis_at().map_or_else(String::new, |at| short(rounds.ratio(0, at, figure)))
    };
    let both = |figure: fn(&Rate) -> f64| match &redis {
        Some(redis) => format!("{} / {}", short(figure(&quipu)), short(figure(redis))),
        None => short(figure(&quipu)),
    };
    section.row(&[
        name.to_string(),
        format!("`{pace}`"),
        short(quipu.per_second),
        redis.map_or_else(String::new, |redis| short(redis.per_second)),
        ratio(|rate| rate.per_second),
        both(|rate| rate.p50_ms),
        both(|rate| rate.p99_ms),
        ratio(|rate| rate.p99_ms),
        both(|rate| rate.cpu_us),
        ratio(|rate| rate.cpu_us),
    ]);
}

/// What the servers take once they are filled.
fn memory(section: &mut Section, bench: &Bench<'_>, servers: &[Server]) -> Result<()> {
    for (program, server) in bench.programs.iter().zip(servers) {
        let (rss, disk) = (server.used()?.rss_bytes, server.disk().apparent_bytes);
        section.say(&format!(
            "{} with all keys: RSS {}, disk {}.",
            program.name(),
            megabytes(rss),
            megabytes(disk)
        ));
    }
    Ok(())
}
