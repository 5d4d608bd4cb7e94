//! Formats whose parts follow each other in any order: window by window, each with all of a time.
//!
//! ```text
//! FILE.part  = windows that are complete    FILE.progress = next window, bytes of FILE.part
//! FILE       = all of it, renamed at the end: a file of that name is never half an export
//! ```
//!
//! A run that was interrupted cuts FILE.part back to its last complete window and goes on.

use super::file::PartFile;
use super::metrics::export_path;
use super::pieces::{Piece, Pieces};
use super::told::{Shown, Told};
use super::{Asked, asked, naming, reply_of};
use crate::commands::output_error;
use anyhow::bail;
use bytes::Bytes;
use clap::ArgMatches;
use cli::checkpoint::Checkpoint;
use cli::line_counter::LineCounter;
use cli::quantity::{count_of, format_size, parse_duration};
use http_client::client::Client;
use hyper::Method;
use model::sample::NANOS_PER_MILLI;
use model::{Labels, METRIC_NAME, Timestamp};
use serde::{Deserialize, Serialize};
use std::io::Write;
use std::path::Path;
use wire::influx::TEXT_SUFFIX;
use wire::influx::encode::{LineHead, Naming, Unsayable};
use wire::remote_write::encode::MillisSample;
use wire::vm_native::encode::{Heads, push_head, push_series};

/// Windows of one export; longer times get longer windows.
const WINDOWS_MAX: i64 = 10_000;
/// Bytes that are gathered before they are written.
const BUFFER_SIZE: usize = 256 << 10;

/// How samples are written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Format {
    /// As the server sends them.
    JsonLines,
    /// Line protocol.
    Influx(Naming),
    /// VictoriaMetrics' own.
    Native(Heads),
}

impl Format {
    /// Of its word on the command line.
    pub fn of(word: &str, matches: &ArgMatches) -> Format {
        match word {
            "influx" => Format::Influx(naming(matches)),
            "victoriametrics-native" => match matches.get_flag("older-victoriametrics") {
                true => Format::Native(Heads::Older),
                false => Format::Native(Heads::Current),
            },
            _ => Format::JsonLines,
        }
    }

    /// What it is called where it is remembered.
    fn words(&self) -> String {
        match self {
            Format::JsonLines => String::new(),
            Format::Influx(Naming::Split) => "influx, split".to_string(),
            Format::Influx(Naming::Whole(field)) => format!("influx, field {field}"),
            Format::Native(Heads::Current) => "victoriametrics-native".to_string(),
            Format::Native(Heads::Older) => "victoriametrics-native, older".to_string(),
        }
    }
}

/// How far an export is.
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
    /// The format, nothing for JSON lines.
    #[serde(default)]
    format: String,
    #[serde(default)]
    told: Told,
}

/// Exports to a file, or to standard output.
///
/// # Errors
/// When the server does not answer or the file cannot be written.
pub fn run(
    matches: &ArgMatches,
    client: &mut Client,
    format: Format,
    output: &str,
) -> anyhow::Result<()> {
    if output == "-" {
        let progress = begin(matches, client, &format)?;
        let mut export = Export::new(client, progress, format)?;
        let mut out = std::io::stdout().lock();
        export.run(&mut |bytes| out.write_all(bytes).map_err(output_error), &mut |_| Ok(()))?;
        out.flush().map_err(output_error)?;
        export.progress.told.say();
        return Ok(());
    }
    to_file(matches, client, format, Path::new(output))
}

fn to_file(
    matches: &ArgMatches,
    client: &mut Client,
    format: Format,
    output: &Path,
) -> anyhow::Result<()> {
    let checkpoint = Checkpoint::of(output);
    let shown = output.display();
    // First: another run may write down how far it is.
    let mut file = PartFile::open(output)?;
    let progress = match checkpoint.read::<Progress>()? {
        Some(progress) if progress.format != format.words() => {
            bail!("{shown} was begun in another format; remove its .progress")
        }
        Some(mut progress) => {
            progress.asked.go_on(matches, &shown.to_string())?;
            // Another length does no harm: smaller requests may be why it is run again.
            progress.window = window(matches, &progress.asked)?;
            progress
        }
        None => begin(matches, client, &format)?,
    };
    file.cut_to(progress.size)?;
    let is_resumed = 0 < progress.size;
    let file = std::cell::RefCell::new(file);
    let mut export = Export::new(client, progress, format)?;
    let mut write = |bytes: &[u8]| file.borrow_mut().write(bytes);
    let mut save = |progress: &Progress| {
        file.borrow().sync()?;
        checkpoint.write(progress)
    };
    export.run(&mut write, &mut save)?;
    let Export { progress, format, mut lines, .. } = export;
    file.into_inner().finish()?;
    checkpoint.remove();
    progress.told.say();
    let (size, samples) = (format_size(progress.size), progress.told.samples);
    match format {
        Format::JsonLines if is_resumed => {
            cli::print_line!("{size} in {shown}; in this run: {}", lines.finish());
        }
        Format::JsonLines => cli::print_line!("{size} in {shown}: {}", lines.finish()),
        _ => cli::print_line!("{size} in {shown}: {}", count_of(samples, "sample")),
    }
    Ok(())
}

/// What a new export has to do.
fn begin(matches: &ArgMatches, client: &mut Client, format: &Format) -> anyhow::Result<Progress> {
    let asked = asked(matches, client)?;
    let window = window(matches, &asked)?;
    let (next, told) = (asked.start, Told::default());
    Ok(Progress { asked, window, next, size: 0, format: format.words(), told })
}

/// Nanoseconds of a window.
fn window(matches: &ArgMatches, asked: &Asked) -> anyhow::Result<i64> {
    let text = matches.get_one::<String>("window").map(String::as_str).unwrap_or("1d");
    let window = parse_duration(text).map_err(|reason| anyhow::anyhow!("--window: {reason}"))?;
    let shortest = asked.end.saturating_sub(asked.start) / WINDOWS_MAX + 1;
    Ok(i64::try_from(window)?.max(shortest))
}

/// Takes bytes of the file.
type OnBytes<'a> = &'a mut dyn FnMut(&[u8]) -> anyhow::Result<()>;
/// Told after each window, with all of its bytes written.
type OnWindow<'a> = &'a mut dyn FnMut(&Progress) -> anyhow::Result<()>;

/// An export under way.
struct Export<'a> {
    client: &'a mut Client,
    progress: Progress,
    format: Format,
    shown: Shown,
    /// Count of this run, for JSON lines.
    lines: LineCounter,
}

impl<'a> Export<'a> {
    fn new(
        client: &'a mut Client,
        progress: Progress,
        format: Format,
    ) -> anyhow::Result<Export<'a>> {
        let Asked { start, end, .. } = progress.asked;
        let windows = (end.saturating_sub(start) / progress.window + 1).unsigned_abs();
        let done = (progress.next.saturating_sub(start) / progress.window).unsigned_abs();
        let shown = Shown::new("windows", windows, done, progress.told.samples)?;
        Ok(Export { client, progress, format, shown, lines: LineCounter::default() })
    }

    /// Copies window after window.
    fn run(&mut self, write: OnBytes<'_>, on_window: OnWindow<'_>) -> anyhow::Result<()> {
        let Asked { start, end, .. } = self.progress.asked;
        if matches!(self.format, Format::Native(_)) && self.progress.size == 0 {
            let mut head = Vec::new();
            push_head(&mut head, millis(start), millis(end));
            write(&head)?;
            self.progress.size = head.len() as u64;
        }
        while self.progress.next <= end {
            let last = self.progress.next.saturating_add(self.progress.window - 1).min(end);
            let before = self.progress.size;
            self.window(last, write)?;
            self.shown.step();
            if last == end {
                break;
            }
            self.progress.next = last + 1;
            // Years without samples cost no sync each day.
            if before < self.progress.size {
                on_window(&self.progress)?;
            }
        }
        self.shown.clear();
        Ok(())
    }

    fn window(&mut self, last: Timestamp, write: OnBytes<'_>) -> anyhow::Result<()> {
        let mut path = export_path(&self.progress.asked, self.progress.next, last);
        if !matches!(self.format, Format::Native(_)) {
            path.push_str("&strings=1");
        }
        let Progress { size, told, .. } = &mut self.progress;
        let mut count = |bytes: &[u8]| {
            write(bytes)?;
            *size += bytes.len() as u64;
            Ok(())
        };
        if self.format == Format::JsonLines {
            let lines = &mut self.lines;
            let mut count = |bytes: &[u8]| {
                lines.push(bytes);
                count(bytes)
            };
            reply_of(self.client.send(Method::GET, &path, Bytes::new(), &mut count))?;
            self.shown.size(*size);
            return Ok(());
        }
        let mut encoder = Encoder { format: &self.format, out: Vec::new(), told };
        let mut pieces = Pieces::new();
        let shown = &self.shown;
        let mut take = |piece: &Piece| {
            encoder.push(piece);
            shown.samples(encoder.told.samples);
            match BUFFER_SIZE <= encoder.out.len() {
                true => count(&std::mem::take(&mut encoder.out)),
                false => Ok(()),
            }
        };
        let mut arrived = |bytes: &[u8]| pieces.push(bytes, &mut take);
        reply_of(self.client.send(Method::GET, &path, Bytes::new(), &mut arrived))?;
        pieces.finish(&mut take)?;
        count(&encoder.out)
    }
}

fn millis(time: Timestamp) -> i64 {
    time.div_euclid(NANOS_PER_MILLI)
}

/// Pieces of series to bytes.
struct Encoder<'a> {
    format: &'a Format,
    out: Vec<u8>,
    told: &'a mut Told,
}

impl Encoder<'_> {
    fn push(&mut self, piece: &Piece) {
        match self.format {
            Format::JsonLines => {}
            Format::Influx(naming) => self.line_protocol(piece, naming),
            Format::Native(heads) => self.native(piece, *heads),
        }
    }

    fn line_protocol(&mut self, piece: &Piece, naming: &Naming) {
        let told = &mut *self.told;
        told.leave_out(
            "native histograms, which line protocol has none of",
            count(&piece.histograms),
        );
        let labels = match piece.strings.is_empty() {
            true => piece.labels.clone(),
            false => plain_labels(&piece.labels),
        };
        let head = match LineHead::new(&labels, naming) {
            Ok(head) => head,
            Err(reason) => {
                let why = match reason {
                    Unsayable::Newline => "samples of series with a newline in a name or label",
                    Unsayable::Backslash => {
                        "samples of series with a name or label that ends in \\, or has one before , = or a space"
                    }
                    Unsayable::Name => {
                        "samples of series with a label `time`, or a # before their name"
                    }
                };
                return told.leave_out(why, count(&piece.samples) + count(&piece.strings));
            }
        };
        if head.has_doubled_backslash() {
            told.leave_out(
                "samples that are there, whose \\\\ VictoriaMetrics reads as one \\ (its native format says it)",
                count(&piece.samples) + count(&piece.strings),
            );
        }
        for (time, text) in &piece.strings {
            head.push_text(&mut self.out, *time, text);
            told.samples += 1;
        }
        let (mut nans, mut ended, mut endless) = (0, 0, 0);
        for (time, value) in &piece.samples {
            match head.push_sample(&mut self.out, *time, *value) {
                true => told.samples += 1,
                false if model::is_stale_marker(*value) => ended += 1,
                false if value.is_nan() => nans += 1,
                false => endless += 1,
            }
        }
        told.leave_out("marks of a series' end, which line protocol has none of", ended);
        told.leave_out("NaNs, which line protocol has none of", nans);
        told.leave_out("infinite numbers, which line protocol has none of", endless);
    }

    fn native(&mut self, piece: &Piece, heads: Heads) {
        let told = &mut *self.told;
        told.leave_out(
            "native histograms, which VictoriaMetrics has none of",
            count(&piece.histograms),
        );
        let mut samples: Vec<MillisSample> = Vec::with_capacity(piece.samples.len());
        let mut negative = 0;
        for (time, value) in &piece.samples {
            let sample = MillisSample { millis: millis(*time), value: *value };
            match samples.last_mut() {
                Some(last) if last.millis == sample.millis => {
                    *last = sample;
                    told.leave_out("samples of a millisecond that has a later one", 1);
                }
                _ if sample.millis < 0 => negative += 1,
                _ => samples.push(sample),
            }
        }
        let left_out = push_series(&mut self.out, heads, &piece.labels, &samples);
        told.samples += count(&samples) - left_out.nans - left_out.large;
        told.leave_out("samples before 1970, which VictoriaMetrics does not take", negative);
        told.leave_out("NaNs that mark no series' end", left_out.nans);
        told.leave_out("samples of series with labels of more than 1 MiB", left_out.large);
        told.leave_out("numbers that are there with a last digit changed", left_out.rounded);
    }
}

/// The labels that a metric of strings had as lines: without what its name ends in here.
fn plain_labels(labels: &Labels) -> Labels {
    let name = labels.metric_name();
    let name = name.strip_suffix(TEXT_SUFFIX).unwrap_or(name);
    let mut builder = labels.to_builder();
    builder.set(METRIC_NAME, name);
    builder.finish()
}

fn count<T>(list: &[T]) -> u64 {
    list.len() as u64
}
