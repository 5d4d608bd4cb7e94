//! `quipu export`: samples of a running server to files of other databases and tools, a format a file:
//!
//! ```text
//! windows      JSON lines, line protocol, VictoriaMetrics' native format: all of a time, then of the next
//! openmetrics  metric by metric, as its families are whole
//! blocks       Prometheus' blocks: all of a block's time, then sorted
//! ```
//!
//! Samples come as JSON lines over HTTP, which lose nothing; `pieces` takes them apart. What a format cannot
//! say is counted and told (`told`). A file or block has its name only once it is whole and on disk.

mod block;
mod blocks;
pub(super) mod file;
pub(super) mod metrics;
mod openmetrics;
mod pieces;
mod told;
mod windows;

#[cfg(feature = "sql")]
use super::export_parquet::run as to_parquet;
use anyhow::bail;
use bytes::Bytes;
use clap::{Arg, ArgAction, ArgMatches, Command};
use cli::arguments::{option, switch};
use cli::calendar::rfc3339;
use http_client::client::{BROKE_OFF, Client, Reply, arguments};
use hyper::Method;
use model::Timestamp;
use model::sample::NANOS_PER_MILLI;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::process::ExitCode;
use vfs::{RealVfs, Vfs};
use wire::influx::encode::{FIELD, Naming};
use wire::params::parse_time;

/// Exit code when no series matches.
const NO_MATCH: u8 = 3;
/// The flag that takes what a damaged store still has.
const ALLOW_PARTIAL: &str = "allow-partial";
/// The formats by name.
const FORMATS: [&str; 6] =
    ["jsonl", "parquet", "openmetrics", "influx", "prometheus-blocks", "victoriametrics-native"];

/// What is exported.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Asked {
    /// The selectors.
    pub matchers: Vec<String>,
    /// First instant of all.
    pub start: Timestamp,
    /// Last instant of all.
    pub end: Timestamp,
    /// Whether what is missing from a damaged store may be missing from the file.
    #[serde(default)]
    pub is_partial_fine: bool,
    /// What was said of its times, by flag: `now-7d` is another time in each run.
    #[serde(default)]
    said: Option<BTreeMap<String, String>>,
}

impl Asked {
    /// Goes on for another run, which may say alone whether what is missing may be missing.
    ///
    /// # Errors
    /// When it asks for something else.
    pub fn go_on(&mut self, matches: &ArgMatches, shown: &str) -> anyhow::Result<()> {
        if self.matchers != matchers(matches) {
            bail!("{shown} was begun with other --match; remove its .progress")
        }
        let now = said(matches);
        let before = self.said.get_or_insert_with(|| now.clone());
        for flag in TIMES {
            if before.get(flag) != now.get(flag) {
                let said = before.get(flag).map_or("none".to_string(), |text| format!("{text:?}"));
                bail!("{shown} was begun with another --{flag}, {said}; remove its .progress")
            }
        }
        self.is_partial_fine = matches.get_flag(ALLOW_PARTIAL);
        Ok(())
    }
}

/// The flags that say of which time an export is.
const TIMES: [&str; 2] = ["start", "end"];

fn said(matches: &ArgMatches) -> BTreeMap<String, String> {
    let text = |flag: &str| Some((flag.to_string(), matches.get_one::<String>(flag)?.clone()));
    TIMES.into_iter().filter_map(text).collect()
}

/// The subcommand.
pub fn command() -> Command {
    let command = Command::new("export")
        .about("Writes raw samples of a running server to files that other databases and tools read")
        .after_help(
            "jsonl loses nothing, and `quipu import` reads it. \
             parquet is one file for each metric and day, \
             DIR/metric=up/day=2026-01-31/part-0.parquet: DuckDB, Spark, Trino and pyarrow read DIR as \
             one data set; `quipu import DIR` reads it, too, and nothing is lost.\n\
             prometheus-blocks is a directory that Prometheus, Thanos and Mimir read; openmetrics is what \
             `promtool tsdb create-blocks-from openmetrics` takes; influx is line protocol; \
             victoriametrics-native is for VictoriaMetrics' /api/v1/import/native. What they cannot say is \
             counted and told at the end: docs/export.md.\n\
             An export that was interrupted goes on where it stopped when it is run again with the \
             same flags; FILE.progress remembers.\n\
             Exit codes: 0 done, 1 failed, 3 no series matches --match.\n\
             Times: 2026-01-31, 2026-01-31T12:00:00Z, Unix seconds, now-7d.",
        )
        .arg(
            option("match", "SELECTOR", "Series to export; may be given many times [default: all]")
                .action(ArgAction::Append),
        )
        .arg(option("start", "TIME", "From then on [default: the oldest sample]"))
        .arg(option(
            "end",
            "TIME",
            "Until then [default: now, or the newest sample if that is later]",
        ))
        .arg(
            option("format", "WORD", "parquet and prometheus-blocks need a directory as --output")
                .value_parser(FORMATS)
                .default_value("jsonl"),
        )
        .arg(
            Arg::new(ALLOW_PARTIAL)
                .long(ALLOW_PARTIAL)
                .help("Take what there is of a store that is damaged, instead of ending with an error")
                .action(ArgAction::SetTrue),
        )
        .arg(
            option("output", "FILE", "Where to, a file or a directory; - is standard output")
                .short('o')
                .default_value("-"),
        );
    arguments(format_arguments(command))
}

/// What single formats understand.
fn format_arguments(command: Command) -> Command {
    command
        .arg(
            option(
                "window",
                "DURATION",
                "Time per request of jsonl, influx and victoriametrics-native; Parquet's is a day",
            )
            .default_value("1d"),
        )
        .arg(
            option("block-duration", "DURATION", "Time of a Prometheus block, a multiple of 2h")
                .default_value("18h"),
        )
        .arg(
            option(
                "influx-field",
                "NAME",
                "The field of line protocol whose measurement is the metric",
            )
            .default_value(FIELD),
        )
        .arg(
            switch(
                "influx-split",
                "Cut metrics at their first _: cpu_usage_user becomes cpu usage_user=..",
            )
            .conflicts_with("influx-field"),
        )
        .arg(switch(
            "older-victoriametrics",
            "Write blocks as VictoriaMetrics before 1.82 reads them, Debian 12's among them",
        ))
        .arg(switch(
            "quoted-names",
            "Write names that OpenMetrics 1.0 does not know in quotes, as Prometheus 3 reads them",
        ))
}

/// Exports; a complete file has the name asked for.
///
/// # Errors
/// When the server does not answer or the file cannot be written.
pub fn run(matches: &ArgMatches) -> anyhow::Result<ExitCode> {
    match export(matches) {
        Err(error) if error.is::<NoMatch>() => {
            eprintln!("quipu: {error}");
            Ok(ExitCode::from(NO_MATCH))
        }
        Err(error) => Err(error),
        Ok(()) => Ok(ExitCode::SUCCESS),
    }
}

fn export(matches: &ArgMatches) -> anyhow::Result<()> {
    let mut client = Client::new(matches)?;
    let text = |name: &str| matches.get_one::<String>(name).map(String::as_str);
    let output = text("output").unwrap_or("-");
    match text("format").unwrap_or("jsonl") {
        "parquet" => to_parquet(matches, &mut client, output)?,
        "prometheus-blocks" => blocks::run(matches, &mut client, output)?,
        "openmetrics" => openmetrics::run(matches, &mut client, output)?,
        format => windows::run(matches, &mut client, windows::Format::of(format, matches), output)?,
    }
    Ok(())
}

/// What line protocol makes of names.
fn naming(matches: &ArgMatches) -> Naming {
    match matches.get_flag("influx-split") {
        true => Naming::Split,
        false => {
            let field = matches.get_one::<String>("influx-field").cloned();
            Naming::Whole(field.unwrap_or_else(|| FIELD.to_string()))
        }
    }
}

#[cfg(not(feature = "sql"))]
fn to_parquet(_: &ArgMatches, _: &mut Client, _: &str) -> anyhow::Result<()> {
    bail!("this build is without the feature sql, and knows no Parquet")
}

/// The selectors of what is exported.
fn matchers(matches: &ArgMatches) -> Vec<String> {
    match matches.get_many::<String>("match") {
        Some(given) => given.cloned().collect(),
        None => vec!["{__name__!=\"\"}".to_string()],
    }
}

/// What is asked for.
///
/// # Errors
/// Times that are none, and a server that does not answer.
pub(super) fn asked(matches: &ArgMatches, client: &mut Client) -> anyhow::Result<Asked> {
    let now = RealVfs::new().now();
    let time = |name: &str| -> anyhow::Result<Option<Timestamp>> {
        let text = matches.get_one::<String>(name);
        Ok(text.map(|text| parse_time(text, now)).transpose()?)
    };
    let Span { known, elsewhere_until } = span(client)?;
    let (oldest, newest) = known.unwrap_or((now, now));
    // Samples from clocks that are ahead belong to it, too.
    let end = time("end")?.unwrap_or(newest.max(now));
    let start = match (time("start")?, elsewhere_until) {
        (Some(start), _) => start,
        (None, None) => oldest.min(end),
        (None, Some(until)) => bail!(
            "this server asks legacy backends for what is before {}, and nobody says since when they \
             have samples: say --start, as in --start 2026-01-01",
            rfc3339(until)
        ),
    };
    if end < start {
        bail!("--end is before --start");
    }
    let is_partial_fine = matches.get_flag(ALLOW_PARTIAL);
    let said = Some(said(matches));
    let asked = Asked { matchers: matchers(matches), start, end, is_partial_fine, said };
    check_names(matches, client, &asked)?;
    say_of_strings(matches, client, &asked);
    Ok(asked)
}

/// Formats that have strings.
const WITH_STRINGS: [&str; 2] = ["jsonl", "influx"];
/// Metrics of strings that are named.
const NAMES_SHOWN: usize = 10;

/// Says which metrics of strings are not in a format that has none.
fn say_of_strings(matches: &ArgMatches, client: &mut Client, asked: &Asked) {
    let format = matches.get_one::<String>("format").map_or("", String::as_str);
    if WITH_STRINGS.contains(&format) {
        return;
    }
    let names = metrics::names_of_strings(client, asked).unwrap_or_default();
    if !names.is_empty() {
        let shown = names.get(..NAMES_SHOWN).unwrap_or(&names).join(", ");
        let more = if NAMES_SHOWN < names.len() { ", .." } else { "" };
        let count = names.len();
        eprintln!("quipu: metrics of strings, which {format} has none of: {count}: {shown}{more}");
    }
}

/// Error: no series matches `--match`. Nothing is written.
#[derive(Debug, thiserror::Error)]
#[error("no series from {start} to {end} matches --match {matchers}; nothing was exported")]
struct NoMatch {
    start: String,
    end: String,
    matchers: String,
}

/// Fails where nothing matches. A server that does not list names is asked for samples.
fn check_names(matches: &ArgMatches, client: &mut Client, asked: &Asked) -> Result<(), NoMatch> {
    if !matches.contains_id("match") {
        return Ok(());
    }
    let found = metrics::names(client, asked, (asked.start, asked.end));
    if found.is_ok_and(|names| names.is_empty()) {
        let (start, end) = (rfc3339(asked.start), rfc3339(asked.end));
        return Err(NoMatch { start, end, matchers: asked.matchers.join(" and ") });
    }
    Ok(())
}

/// The time of what a server has.
struct Span {
    /// The oldest and the newest sample, rounded to whole milliseconds away from each other.
    known: Option<(Timestamp, Timestamp)>,
    /// Up to where it asks others, if it does.
    elsewhere_until: Option<Timestamp>,
}

fn span(client: &mut Client) -> anyhow::Result<Span> {
    let mut text = Vec::new();
    let mut collect = |bytes: &[u8]| {
        text.extend_from_slice(bytes);
        Ok(())
    };
    let reply =
        client.send(Method::GET, "/api/v1/status/runtimeinfo", Bytes::new(), &mut collect)?;
    if !reply.status.is_success() {
        bail!("{}: {}", reply.status, reply.error);
    }
    let answer: serde_json::Value = serde_json::from_slice(&text)?;
    let millis = |name: &str| answer["data"][name].as_i64();
    let nanos = |millis: i64| millis.saturating_mul(NANOS_PER_MILLI);
    let known = millis("minTimeMs").zip(millis("maxTimeMs"));
    Ok(Span {
        known: known.map(|(oldest, newest)| (nanos(oldest), nanos(newest.saturating_add(1)))),
        elsewhere_until: millis("legacyUntilMs").map(nanos),
    })
}

/// Whether a part of an export was answered.
///
/// # Errors
/// When it was not.
pub(super) fn reply_of(sent: anyhow::Result<Reply>) -> anyhow::Result<()> {
    let reply = match sent {
        Err(error) if error.to_string() == BROKE_OFF => Err(error.context(
            "where the store is damaged an answer breaks off: /api/v1/status/damage lists what is; \
             --allow-partial takes what there is",
        )),
        sent => sent,
    }?;
    match reply.status.is_success() {
        true => Ok(()),
        false => bail!("{}: {}", reply.status, reply.error),
    }
}
