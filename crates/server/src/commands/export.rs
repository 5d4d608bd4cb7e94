//! `quipu export`: raw samples of a running server to a file of JSON lines, window by window.
//!
//! ```text
//! FILE.part  = windows that are complete    FILE.progress = next window, bytes of FILE.part
//! FILE       = all of it, renamed at the end: a file of that name is never half an export
//! ```
//!
//! A run that was interrupted cuts FILE.part back to its last complete window and goes on.

use super::arguments::option;
use super::checkpoint::{Checkpoint, with_suffix};
use super::client::{Client, Reply, arguments, encode};
#[cfg(feature = "sql")]
use super::export_parquet::run as to_parquet;
use crate::calendar::rfc3339;
use crate::quantity::{format_size, parse_duration};
use anyhow::{Context as _, bail};
use bytes::Bytes;
use clap::{Arg, ArgAction, ArgMatches, Command};
use hyper::Method;
use indicatif::{ProgressBar, ProgressStyle};
use model::Timestamp;
use model::sample::NANOS_PER_MILLI;
use serde::{Deserialize, Serialize};
use std::fs::{File, OpenOptions};
use std::io::{BufWriter, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use vfs::{RealVfs, Vfs};
use wire::params::parse_time;

/// Windows of one export; longer times get longer windows.
const WINDOWS_MAX: i64 = 10_000;

/// The flag that takes what a damaged store still has.
const ALLOW_PARTIAL: &str = "allow-partial";

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
}

/// And how far it is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Progress {
    #[serde(flatten)]
    asked: Asked,
    /// Nanoseconds of a window.
    window: i64,
    /// First instant of the next window.
    next: Timestamp,
    /// Bytes of the windows before it.
    size: u64,
}

/// The subcommand.
pub fn command() -> Command {
    let command = Command::new("export")
        .about("Writes raw samples of a running server to a file of JSON lines, or to Parquet files")
        .after_help(
            "Parquet is one file for each metric and day, \
             DIR/metric=up/day=2026-01-31/part-0.parquet: DuckDB, Spark, Trino and pyarrow read DIR as \
             one data set. `quipu import DIR` reads it, too, and nothing is lost.\n\
             An export that was interrupted goes on where it stopped when it is run again with the \
             same --output; FILE.progress remembers.\n\
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
            option("format", "WORD", "jsonl, or parquet, which needs a directory as --output")
                .value_parser(["jsonl", "parquet"])
                .default_value("jsonl"),
        )
        .arg(
            option("window", "DURATION", "Time per request; Parquet's is a day")
                .default_value("1d"),
        )
        .arg(
            Arg::new(ALLOW_PARTIAL)
                .long(ALLOW_PARTIAL)
                .help("Take what there is of a store that is damaged, instead of ending with an error")
                .action(ArgAction::SetTrue),
        )
        .arg(option("output", "FILE", "Where to, a file or Parquet's directory; - is standard output").default_value("-"));
    arguments(command)
}

/// Exports; a complete file has the name asked for.
///
/// # Errors
/// When the server does not answer or the file cannot be written.
pub fn run(matches: &ArgMatches) -> anyhow::Result<ExitCode> {
    let mut client = Client::new(matches)?;
    let output = matches.get_one::<String>("output").map(String::as_str).unwrap_or("-");
    if matches.get_one::<String>("format").is_some_and(|format| format == "parquet") {
        to_parquet(matches, &mut client, output)?;
        return Ok(ExitCode::SUCCESS);
    }
    if output == "-" {
        let progress = begin(matches, &mut client)?;
        let mut out = BufWriter::new(std::io::stdout().lock());
        let hidden = ProgressBar::hidden();
        copy(&mut client, progress, &mut out, &hidden, &mut |_, _| Ok(()))?;
        out.flush()?;
        return Ok(ExitCode::SUCCESS);
    }
    to_file(matches, &mut client, Path::new(output))?;
    Ok(ExitCode::SUCCESS)
}

#[cfg(not(feature = "sql"))]
fn to_parquet(_: &ArgMatches, _: &mut Client, _: &str) -> anyhow::Result<()> {
    bail!("this build is without the feature sql, and knows no Parquet")
}

fn to_file(matches: &ArgMatches, client: &mut Client, output: &Path) -> anyhow::Result<()> {
    let part: PathBuf = with_suffix(output, ".part");
    let checkpoint = Checkpoint::of(output);
    let progress = match checkpoint.read::<Progress>()? {
        Some(progress) if progress.asked.matchers == matchers(matches) => progress,
        Some(_) => bail!("{} was begun with other --match; remove its .progress", output.display()),
        None => begin(matches, client)?,
    };
    let mut file = open_part(&part, progress.size)?;
    let Asked { start, end, .. } = progress.asked;
    let windows = (end.saturating_sub(start) / progress.window + 1) as u64;
    let bar = ProgressBar::new(windows);
    let template = "{bar:30} {pos} of {len} windows, {msg}, {eta} left";
    bar.set_style(ProgressStyle::with_template(template)?);
    bar.set_position((progress.next.saturating_sub(start) / progress.window) as u64);
    bar.reset_eta();
    let mut save = |file: &mut File, progress: &Progress| {
        file.sync_data()?;
        checkpoint.write(progress)
    };
    let size = copy(client, progress, &mut file, &bar, &mut save)?;
    bar.finish_and_clear();
    file.sync_all()?;
    std::fs::rename(&part, output).with_context(|| output.display().to_string())?;
    checkpoint.remove();
    println!("{} in {}", format_size(size), output.display());
    Ok(())
}

/// Opens the file, cut back to the windows that are complete.
fn open_part(part: &Path, size: u64) -> anyhow::Result<File> {
    let open = || -> std::io::Result<File> {
        let mut file = OpenOptions::new().create(true).write(true).truncate(false).open(part)?;
        file.set_len(size)?;
        file.seek(SeekFrom::Start(size))?;
        Ok(file)
    };
    open().with_context(|| part.display().to_string())
}

/// The selectors of what is exported.
pub(super) fn matchers(matches: &ArgMatches) -> Vec<String> {
    match matches.get_many::<String>("match") {
        Some(given) => given.cloned().collect(),
        None => vec!["{__name__!=\"\"}".to_string()],
    }
}

/// What a new export has to do.
fn begin(matches: &ArgMatches, client: &mut Client) -> anyhow::Result<Progress> {
    let asked = asked(matches, client)?;
    let text = matches.get_one::<String>("window").map(String::as_str).unwrap_or("1d");
    let window = parse_duration(text).map_err(|reason| anyhow::anyhow!("--window: {reason}"))?;
    let shortest = asked.end.saturating_sub(asked.start) / WINDOWS_MAX + 1;
    let window = i64::try_from(window)?.max(shortest);
    let next = asked.start;
    Ok(Progress { asked, window, next, size: 0 })
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
    let (oldest, newest) = span(client)?.unwrap_or((now, now));
    // Samples from clocks that are ahead belong to it, too.
    let end = time("end")?.unwrap_or(newest.max(now));
    let start = time("start")?.unwrap_or(oldest.min(end));
    if end < start {
        bail!("--end is before --start");
    }
    let is_partial_fine = matches.get_flag(ALLOW_PARTIAL);
    Ok(Asked { matchers: matchers(matches), start, end, is_partial_fine })
}

/// The times of the oldest and the newest sample, rounded to whole milliseconds away from each other.
fn span(client: &mut Client) -> anyhow::Result<Option<(Timestamp, Timestamp)>> {
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
    let (Some(oldest), Some(newest)) = (millis("minTimeMs"), millis("maxTimeMs")) else {
        return Ok(None);
    };
    let newest = newest.saturating_add(1).saturating_mul(NANOS_PER_MILLI);
    Ok(Some((oldest.saturating_mul(NANOS_PER_MILLI), newest)))
}

/// Told after each window, with the file flushed.
type OnWindow<'a, W> = &'a mut dyn FnMut(&mut W, &Progress) -> anyhow::Result<()>;

/// Copies window after window; returns the bytes of all.
fn copy<W: Write>(
    client: &mut Client,
    mut progress: Progress,
    out: &mut W,
    bar: &ProgressBar,
    on_window: OnWindow<'_, W>,
) -> anyhow::Result<u64> {
    let end = progress.asked.end;
    while progress.next <= end {
        let last = progress.next.saturating_add(progress.window - 1).min(end);
        let path = path(&progress, last);
        let mut size = 0;
        let mut write = |bytes: &[u8]| {
            out.write_all(bytes)?;
            size += bytes.len() as u64;
            Ok(())
        };
        reply_of(client.send(Method::GET, &path, Bytes::new(), &mut write))?;
        progress.size += size;
        bar.inc(1);
        bar.set_message(format_size(progress.size));
        if last == end {
            break;
        }
        progress.next = last + 1;
        // Years without samples cost no sync each day.
        if 0 < size {
            on_window(out, &progress)?;
        }
    }
    Ok(progress.size)
}

/// Whether a part of an export was answered.
///
/// # Errors
/// When it was not.
pub(super) fn reply_of(sent: anyhow::Result<Reply>) -> anyhow::Result<()> {
    let reply = sent.context(
        "where the store is damaged an answer breaks off: /api/v1/status/damage lists what is; \
         --allow-partial takes what there is",
    )?;
    match reply.status.is_success() {
        true => Ok(()),
        false => bail!("{}: {}", reply.status, reply.error),
    }
}

fn path(progress: &Progress, last: Timestamp) -> String {
    let (start, end) = (encode(&rfc3339(progress.next)), encode(&rfc3339(last)));
    let denial = if progress.asked.is_partial_fine { "" } else { "&deny_partial_response=1" };
    let mut path = format!("/api/v1/export?start={start}&end={end}{denial}");
    for matcher in &progress.asked.matchers {
        path.push_str(&format!("&match[]={}", encode(matcher)));
    }
    path
}
