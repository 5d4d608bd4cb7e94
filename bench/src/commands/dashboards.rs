//! `compare dashboards`: one cluster of a size of your own.

use crate::cases::dashboards::Dashboards;
use crate::cases::loading::Loading;
use crate::cluster::Scale;
use crate::cluster::dashboards::{NOW, SEVEN_DAYS, SIX_HOURS};
use crate::flags;
use crate::instant::{DAY_NS, HOUR_NS, parse_rfc3339};
use crate::payload::Protocol;
use anyhow::{Context, Result};
use clap::{Arg, ArgMatches};

/// What the cluster is, and what is asked.
pub fn own_flags() -> Vec<Arg> {
    vec![
        flags::value("nodes", Some("20"), "Machines of the cluster"),
        flags::value("pods", Some("600"), "Pods at any one time; each has some 40 series"),
        flags::value("span", Some("6h"), "What dashboards show").value_parser(["6h", "7d"]),
        flags::value("interval", Some("60s"), "Distance between two samples of a series"),
        flags::value("end", Some("2026-02-01T00:00:00Z"), "End of the data"),
        flags::value("seed", Some("123"), "The same seed gives the same data"),
        flags::value(
            "ask-time",
            Some("1s"),
            "A query is repeated for so long, and three times unless these take ten times as long",
        ),
    ]
}

/// Reads [`own_flags`].
///
/// # Errors
/// When one is malformed.
pub fn case(matches: &ArgMatches, mut loading: Loading) -> Result<Dashboards> {
    let span = flags::text(matches, "span")?;
    let (span_ns, views) = match span {
        "7d" => (7 * DAY_NS, vec![SEVEN_DAYS]),
        _ => (6 * HOUR_NS, vec![NOW, SIX_HOURS]),
    };
    let end_ns = parse_rfc3339(flags::text(matches, "end")?).context("--end")?;
    let scale = Scale {
        nodes: flags::number(matches, "nodes")?,
        pods: flags::number(matches, "pods")?,
        interval_ns: flags::duration(matches, "interval")?.as_nanos() as i64,
        start_ns: end_ns - span_ns,
        end_ns,
        seed: flags::number(matches, "seed")?,
    };
    loading.protocols = vec![Protocol::RemoteWrite];
    let file_name = format!("dashboards-{span}-{}", scale.pods);
    let ask_time = flags::duration(matches, "ask-time")?;
    Ok(Dashboards::new(file_name, scale, loading, views, ask_time))
}
