//! The servers of a comparison: a flag for each, with a binary's path, `installed` or `none`.

use crate::flags;
use crate::server::{
    INFLUXDB, Installed, POSTGRESQL, PROMETHEUS, Peer, QUIPU, QUIPU_INFLUXQL, REDIS, TIMESCALEDB,
    VICTORIA_METRICS,
};
use anyhow::{Context, Result, ensure};
use clap::{Arg, ArgMatches};
use std::path::Path;

/// The value that stands for the binary that packages installed, if there is one.
pub const INSTALLED: &str = "installed";
/// The value that leaves a server out.
pub const NONE: &str = "none";

/// Flag, server, help; ratios are those of the first to each other.
const SERVERS: [(&str, &Peer, &str); 8] = [
    ("quipu", &QUIPU, "Quipu's binary; without it only peers run"),
    ("quipu-influxql", &QUIPU_INFLUXQL, "Quipu's binary, asked in InfluxQL as InfluxDB is"),
    ("victoria-metrics", &VICTORIA_METRICS, "VictoriaMetrics: a path, \"installed\" or \"none\""),
    ("prometheus", &PROMETHEUS, "Prometheus: a path, \"installed\" or \"none\""),
    ("influxdb", &INFLUXDB, "InfluxDB 1.x: a path, \"installed\" or \"none\""),
    ("postgresql", &POSTGRESQL, "PostgreSQL: a path, \"installed\" or \"none\""),
    ("timescaledb", &TIMESCALEDB, "PostgreSQL with TimescaleDB: a path, \"installed\" or \"none\""),
    ("redis", &REDIS, "Redis: a path, \"installed\" or \"none\""),
];

/// A flag for each server; `peers_default` is the default of all peers but VictoriaMetrics.
pub fn contender_flags(peers_default: &'static str) -> Vec<Arg> {
    let flag = |(name, peer, help): &(&'static str, &Peer, &'static str)| {
        let default = match peer.name {
            name if name == QUIPU.name || name == QUIPU_INFLUXQL.name => NONE,
            name if name == VICTORIA_METRICS.name => INSTALLED,
            _ => peers_default,
        };
        flags::value(name, Some(default), help)
    };
    SERVERS.iter().map(flag).collect()
}

/// The servers that the flags name and that are there.
///
/// # Errors
/// When a binary that was named by its path cannot be run, or there is no server at all.
pub fn contenders(matches: &ArgMatches) -> Result<Vec<Installed>> {
    let mut contenders = Vec::new();
    for (flag, peer, _) in SERVERS {
        match flags::text(matches, flag)? {
            NONE => {}
            INSTALLED => contenders.extend(installed(peer)),
            path => {
                let context = || format!("--{flag} {path}");
                contenders.push(Installed::new(peer, Path::new(path)).with_context(context)?);
            }
        }
    }
    ensure!(!contenders.is_empty(), "no server to run: give --quipu or install a peer");
    Ok(contenders)
}

/// The binary that packages installed; one that is not there or lacks a part is left out.
fn installed(peer: &'static Peer) -> Option<Installed> {
    let Some(binary) = peer.find_binary() else {
        eprintln!("{}: not installed, left out", peer.name);
        return None;
    };
    let found = Installed::new(peer, &binary);
    found.inspect_err(|error| eprintln!("{}: left out: {error:#}", peer.name)).ok()
}
