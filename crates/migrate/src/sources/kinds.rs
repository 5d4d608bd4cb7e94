//! What can be copied from: a row for each kind.

use super::files::{self, Files, InfluxLines, OpenTsdbLines};
use super::redistimeseries::RedisTimeSeries;
use super::redistimeseries_files::{Choice, Dumps};
use super::source_arguments::{SourceArguments, places};
use super::{blocks, influxdb, opentsdb, remote_read, victoriametrics, whisper};
use crate::arguments::text;
use crate::series::Filter;
use crate::source::Source;
use anyhow::Context as _;
use clap::ArgMatches;
use http_client::client::BEARER;
use model::TimeRange;
use model::sample::NANOS_PER_MILLI;
use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;
use vfs::{RealVfs, Vfs};

/// The port of a Redis.
const REDIS_PORT: u16 = 6379;

/// A kind of source.
pub struct Kind {
    /// What it is called.
    pub name: &'static str,
    /// What stands behind it on the command line.
    place: &'static str,
    /// What it is, for `--help`.
    about: &'static str,
    /// Whether `--legacy` can ask it while it is copied.
    pub is_legacy: bool,
    open: fn(&SourceArguments<'_>) -> anyhow::Result<Box<dyn Source>>,
}

#[rustfmt::skip] // a table
const KINDS: &[Kind] = &[
    Kind { name: "victoriametrics", place: "URL", is_legacy: true,
           about: "a running VictoriaMetrics (of a cluster the URL of a vmselect with its path)",
           open: |asked| Ok(Box::new(victoriametrics::VictoriaMetrics::new(asked.client(BEARER)?, asked.filter.clone(), asked.range))) },
    Kind { name: "prometheus", place: "URL", is_legacy: true,
           about: "a running Prometheus, or whatever answers its remote read",
           open: remote_read },
    Kind { name: "prometheus-blocks", place: "DIR", is_legacy: false,
           about: "Prometheus' data directory or a snapshot of it; blocks of Thanos or Mimir in a directory or in s3://BUCKET/PREFIX",
           open: blocks::open },
    Kind { name: "influxdb", place: "URL", is_legacy: true,
           about: "a running InfluxDB 1.x, or 2.x with its token and --start",
           open: influxdb },
    Kind { name: "influx-lines", place: "FILE..", is_legacy: false,
           about: "line protocol in files, as influx_inspect export writes it, gzip or not",
           open: influx_lines },
    Kind { name: "victoriametrics-files", place: "FILE..", is_legacy: false,
           about: "what /api/v1/export or /api/v1/export/native answered, gzip or not",
           open: |asked| Ok(Box::new(Files::new(&asked.places, Box::new(files::victoriametrics), asked.filter.clone(), asked.range))) },
    Kind { name: "whisper", place: "DIR", is_legacy: false,
           about: "Graphite's tree of .wsp files; a/b/c.wsp becomes a.b.c",
           open: |asked| Ok(Box::new(whisper::Whisper::new(Path::new(asked.place()?), asked.filter.clone(), asked.range))) },
    Kind { name: "redistimeseries", place: "URL", is_legacy: false,
           about: "a Redis with TS.* (redis://host:6379), without TLS",
           open: redistimeseries },
    Kind { name: "redistimeseries-files", place: "FILE..", is_legacy: false,
           about: "dump files of a Redis with TS.* (dump.rdb)",
           open: redistimeseries_files },
    Kind { name: "opentsdb", place: "URL", is_legacy: false,
           about: "a running OpenTSDB 2.3 or later (http://host:4242), with --start",
           open: |asked| Ok(Box::new(opentsdb::OpenTsdb::new(asked.client(BEARER)?, asked.filter.clone(), asked.range))) },
    Kind { name: "opentsdb-lines", place: "FILE..", is_legacy: false,
           about: "what `tsdb scan --import` printed, gzip or not",
           open: opentsdb_lines },
    Kind { name: "parquet", place: "FILE..", is_legacy: false,
           about: "Parquet files, or directories of them, with the columns of `quipu export --format parquet`",
           open: parquet },
    Kind { name: "quipu", place: "URL", is_legacy: true,
           about: "another Quipu",
           open: quipu },
];

fn remote_read(asked: &SourceArguments<'_>) -> anyhow::Result<Box<dyn Source>> {
    let client = asked.client(BEARER)?;
    Ok(Box::new(remote_read::RemoteRead::new(client, asked.filter.clone(), asked.range)))
}

fn quipu(asked: &SourceArguments<'_>) -> anyhow::Result<Box<dyn Source>> {
    let client = asked.client(BEARER)?;
    let source = remote_read::RemoteRead::new(client, asked.filter.clone(), asked.range);
    Ok(Box::new(source.with_strings()))
}

fn influxdb(asked: &SourceArguments<'_>) -> anyhow::Result<Box<dyn Source>> {
    let client = asked.client(http_client::influxdb::TOKEN)?;
    let databases = asked.matches.get_many::<String>("database").into_iter().flatten();
    let databases = databases.cloned().collect();
    Ok(Box::new(influxdb::InfluxDb::new(client, asked.filter.clone(), asked.range, databases)))
}

fn influx_lines(asked: &SourceArguments<'_>) -> anyhow::Result<Box<dyn Source>> {
    let policy = text(asked.matches, "default-policy").to_string();
    // Lines without a time have that of the copy's beginning, however often it goes on.
    let now = asked.range.end;
    let format_of = move |_: &[u8]| -> anyhow::Result<Box<dyn files::Format>> {
        Ok(Box::new(InfluxLines::new(&policy, now)))
    };
    let (filter, range) = (asked.filter.clone(), asked.range);
    Ok(Box::new(Files::new(&asked.places, Box::new(format_of), filter, range)))
}

fn opentsdb_lines(asked: &SourceArguments<'_>) -> anyhow::Result<Box<dyn Source>> {
    let format_of =
        |_: &[u8]| -> anyhow::Result<Box<dyn files::Format>> { Ok(Box::new(OpenTsdbLines)) };
    let (filter, range) = (asked.filter.clone(), asked.range);
    Ok(Box::new(Files::new(&asked.places, Box::new(format_of), filter, range)))
}

fn redistimeseries(asked: &SourceArguments<'_>) -> anyhow::Result<Box<dyn Source>> {
    let url = asked.place()?.to_string();
    let from = asked.login(url, REDIS_PORT, ["from-user", "from-password-file"]);
    let (filter, range) = (asked.filter.clone(), asked.range);
    Ok(Box::new(RedisTimeSeries::new(from, filter, range, asked.keys())))
}

fn redistimeseries_files(asked: &SourceArguments<'_>) -> anyhow::Result<Box<dyn Source>> {
    let number = |text: &String| {
        text.parse::<u64>().with_context(|| format!("--database {text}: Redis' have numbers"))
    };
    let said = asked.matches.get_many::<String>("database").into_iter().flatten();
    let mut databases: BTreeSet<u64> = said.map(number).collect::<Result<_, _>>()?;
    if databases.is_empty() {
        databases.insert(0);
    }
    let (filter, range) = (asked.filter.clone(), asked.range);
    let now_ms = RealVfs::new().now().div_euclid(NANOS_PER_MILLI);
    let choice = Choice { filter, range, databases, now_ms };
    Ok(Box::new(Dumps::new(&asked.places, choice, asked.keys())))
}

#[cfg(feature = "sql")]
fn parquet(asked: &SourceArguments<'_>) -> anyhow::Result<Box<dyn Source>> {
    let SourceArguments { places, filter, range, .. } = asked;
    Ok(Box::new(super::parquet::Parquet::new(places, filter.clone(), *range)))
}

#[cfg(not(feature = "sql"))]
fn parquet(_: &SourceArguments<'_>) -> anyhow::Result<Box<dyn Source>> {
    anyhow::bail!("this build is without the feature sql, and knows no Parquet")
}

/// The names of all kinds.
pub fn names() -> Vec<&'static str> {
    KINDS.iter().map(|kind| kind.name).collect()
}

/// A line for each kind.
pub fn about() -> String {
    let line = |kind: &Kind| {
        let said = format!("{} {}", kind.name, kind.place);
        format!("{said:<27} {}\n", kind.about)
    };
    KINDS.iter().map(line).collect()
}

impl Kind {
    /// The kind that the arguments name.
    ///
    /// # Errors
    /// Never, after the arguments were checked.
    pub fn of(matches: &ArgMatches) -> anyhow::Result<&'static Kind> {
        let name = text(matches, "kind");
        KINDS.iter().find(|kind| kind.name == name).with_context(|| format!("no kind {name}"))
    }

    /// The source that the arguments name, of a time.
    ///
    /// # Errors
    /// When an argument makes no sense.
    pub fn open(
        &self,
        matches: &ArgMatches,
        filter: &Arc<Filter>,
        range: TimeRange,
    ) -> anyhow::Result<Box<dyn Source>> {
        (self.open)(&SourceArguments {
            matches,
            places: places(matches),
            filter: filter.clone(),
            range,
        })
    }
}
