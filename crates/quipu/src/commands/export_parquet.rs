//! `quipu export --format parquet`: raw samples of a running server to Parquet files, one for each
//! metric and day.
//!
//! ```text
//! DIR/metric=up/day=2026-01-31/part-0.parquet      read as a data set by DuckDB, Spark, Trino, pyarrow
//! DIR.progress                                     the day, and the last metric of it that is done
//! ```
//!
//! The server is asked for one metric of one day at a time, in the JSON lines of its export, so memory
//! holds one row group whatever there is. A file has its name only once it is whole and on disk.

use super::export::file::lock_directory;
use super::export::metrics::{metric_path, names};
use super::export::{Asked, asked, reply_of};
use anyhow::{Context as _, bail};
use bytes::Bytes;
use clap::ArgMatches;
use cli::calendar::rfc3339;
use cli::checkpoint::Checkpoint;
use cli::quantity::format_size;
use http_client::client::{Client, encode};
use hyper::Method;
use indicatif::{ProgressBar, ProgressStyle};
use model::{KeyHasher, Labels, LabelsBuilder, METRIC_NAME, Timestamp};
use serde::{Deserialize, Serialize};
use sql::parquet::{RowsWriter, Sample, SampleRows};
use std::collections::HashMap;
use std::path::{Path, PathBuf};
use vfs::exchange::{Existing, Folder, NewFile};
use wire::json_lines::{JsonKeys, histogram_text};
use wire::{Decoded, ExtraLabels, Start, json_lines};

/// Nanoseconds of a day.
const DAY: i64 = 86_400_000_000_000;
/// Bytes of lines that are decoded at once.
const LINES_SIZE: usize = 4 << 20;
/// Rows that are handed to the writer at once.
const BATCH_ROWS: usize = 8192;
/// Bytes of a folder's name that are the metric's: file systems take 255 of all.
const NAME_SIZE_MAX: usize = 200;
/// What each file is called: a day of a metric is one.
const FILE_NAME: &str = "part-0.parquet";

/// What is exported and how far it is.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct Progress {
    #[serde(flatten)]
    asked: Asked,
    /// First instant of the day that is under way.
    next: Timestamp,
    /// The last metric of that day that is done.
    done: Option<String>,
    samples: u64,
    files: u64,
    /// Bytes of all files.
    size: u64,
}

/// Exports to a directory.
///
/// # Errors
/// When the server does not answer, or a file cannot be written.
pub fn run(matches: &ArgMatches, client: &mut Client, output: &str) -> anyhow::Result<()> {
    if output == "-" {
        bail!("--format parquet writes files into a directory: give it by --output");
    }
    // Without a slash at its end, behind which the progress would be within.
    let output: PathBuf = Path::new(output).components().collect();
    let checkpoint = Checkpoint::of(&output);
    std::fs::create_dir_all(&output).with_context(|| output.display().to_string())?;
    // First: another run may write down how far it is.
    let _lock = lock_directory(&output)?;
    let progress = match checkpoint.read::<Progress>()? {
        Some(mut progress) => {
            progress.asked.go_on(matches, &output.display().to_string())?;
            progress
        }
        None => begin(matches, client, &output)?,
    };
    let Asked { start, end, .. } = progress.asked;
    let days = (end.div_euclid(DAY) - start.div_euclid(DAY) + 1).unsigned_abs();
    let bar = ProgressBar::new(days);
    bar.set_style(ProgressStyle::with_template("{bar:30} {pos} of {len} days, {msg}, {eta} left")?);
    bar.set_message(format_size(progress.size));
    bar.set_position((progress.next.div_euclid(DAY) - start.div_euclid(DAY)).unsigned_abs());
    bar.reset_eta();
    let mut export = Export { client, output: &output, checkpoint, progress, bar };
    export.run()?;
    let Export { checkpoint, progress, bar, .. } = export;
    bar.finish_and_clear();
    checkpoint.remove();
    let Progress { samples, files, size, .. } = progress;
    cli::print_line!(
        "{samples} samples, {files} files, {} in {}",
        format_size(size),
        output.display()
    );
    Ok(())
}

fn begin(matches: &ArgMatches, client: &mut Client, output: &Path) -> anyhow::Result<Progress> {
    let is_used = std::fs::read_dir(output).is_ok_and(|mut entries| entries.next().is_some());
    if is_used {
        bail!("{} is there, and not empty: give another --output", output.display());
    }
    let asked = asked(matches, client)?;
    let next = asked.start;
    Ok(Progress { asked, next, done: None, samples: 0, files: 0, size: 0 })
}

/// An export under way.
struct Export<'a> {
    client: &'a mut Client,
    output: &'a Path,
    checkpoint: Checkpoint,
    progress: Progress,
    bar: ProgressBar,
}

impl Export<'_> {
    fn run(&mut self) -> anyhow::Result<()> {
        let end = self.progress.asked.end;
        while self.progress.next <= end {
            let last = self.progress.next.div_euclid(DAY).saturating_add(1).saturating_mul(DAY);
            let last = last.saturating_sub(1).min(end);
            let time = (self.progress.next, last);
            let names = names(self.client, &self.progress.asked, time)?;
            let is_left =
                |name: &&String| self.progress.done.as_ref().is_none_or(|done| done < *name);
            let left: Vec<String> = names.iter().filter(is_left).cloned().collect();
            for name in left {
                if self.metric(&name, last)? {
                    self.progress.done = Some(name);
                    self.checkpoint.write(&self.progress)?;
                }
            }
            self.bar.inc(1);
            self.progress.done = None;
            if last == end {
                break;
            }
            self.progress.next = last + 1;
        }
        Ok(())
    }

    /// Writes the file of one metric and day; whether there is anything in it.
    fn metric(&mut self, name: &str, last: Timestamp) -> anyhow::Result<bool> {
        let time = (self.progress.next, last);
        let path = metric_path(&self.progress.asked, time, name)?;
        let day = rfc3339(self.progress.next.div_euclid(DAY) * DAY);
        let day = day.split('T').next().unwrap_or_default();
        let folder = self.output.join(folder_of(name)).join(format!("day={day}"));
        let mut file = MetricFile::new(folder);
        let mut take = |bytes: &[u8]| file.push(bytes);
        reply_of(self.client.send(Method::GET, &path, Bytes::new(), &mut take))?;
        let written = file.finish()?;
        if let Some(Written { samples, size }) = written {
            self.progress.samples += samples;
            self.progress.size += size;
            self.progress.files += 1;
            self.bar.set_message(format_size(self.progress.size));
        }
        Ok(written.is_some())
    }
}

/// What came to be.
#[derive(Clone, Copy)]
struct Written {
    samples: u64,
    size: u64,
}

/// The file of a metric and a day, once the first of its samples is there.
struct MetricFile {
    folder: PathBuf,
    /// Lines that are not decoded yet; the last may lack its end.
    lines: Vec<u8>,
    rows: SampleRows,
    writer: Option<RowsWriter<NewFile>>,
}

impl MetricFile {
    fn new(folder: PathBuf) -> MetricFile {
        MetricFile { folder, lines: Vec::new(), rows: SampleRows::default(), writer: None }
    }

    fn push(&mut self, bytes: &[u8]) -> anyhow::Result<()> {
        self.lines.extend_from_slice(bytes);
        if LINES_SIZE <= self.lines.len()
            && let Some(end) = self.lines.iter().rposition(|byte| *byte == b'\n')
        {
            let rest = self.lines.split_off(end + 1);
            let whole = std::mem::replace(&mut self.lines, rest);
            self.decode(&whole)?;
        }
        Ok(())
    }

    fn decode(&mut self, lines: &[u8]) -> anyhow::Result<()> {
        let (hasher, keys) = (KeyHasher::new(0), JsonKeys::new(ExtraLabels::none()));
        let mut next = Some(Start::default());
        while let Some(start) = next {
            let decoded = json_lines::decode(lines, start, &hasher, &keys)?;
            next = decoded.rest;
            if let Some(error) = decoded.errors.kept().first() {
                bail!("the server's export cannot be read: {}", error.reason);
            }
            self.take(&decoded)?;
        }
        Ok(())
    }

    fn take(&mut self, decoded: &Decoded<'_>) -> anyhow::Result<()> {
        let batch = &decoded.batch;
        let starts: HashMap<(u32, Timestamp), i64> = decoded
            .starts
            .iter()
            .map(|one| ((one.key_offset, one.timestamp), one.start_ms))
            .collect();
        let start_of = |key: u32, time| starts.get(&(key, time)).copied().unwrap_or(0);
        let mut series = Series::default();
        for row in &batch.rows {
            let labels = series.of(decoded, (row.key_offset, row.key_size))?;
            let [value] = batch.row_values(row) else { bail!("a line without its value") };
            let (time, start_ms) = (row.timestamp, start_of(row.key_offset, row.timestamp));
            let sample = Sample { time, value: *value, start_ms, histogram: None };
            self.rows.push(labels, sample)?;
            self.write_full()?;
        }
        for row in &decoded.histograms {
            let labels = series.of(decoded, (row.key_offset, row.key_size))?;
            let (time, text) = (row.timestamp, histogram_text(&row.histogram));
            let start_ms = start_of(row.key_offset, time);
            let sample = Sample { time, value: 0.0, start_ms, histogram: Some(&text) };
            self.rows.push(labels, sample)?;
            self.write_full()?;
        }
        Ok(())
    }

    fn write_full(&mut self) -> anyhow::Result<()> {
        if self.rows.len() < BATCH_ROWS { Ok(()) } else { self.write() }
    }

    fn write(&mut self) -> anyhow::Result<()> {
        if self.rows.is_empty() {
            return Ok(());
        }
        let writer = match &mut self.writer {
            Some(writer) => writer,
            None => {
                let shown = || self.folder.display().to_string();
                std::fs::create_dir_all(&self.folder).with_context(shown)?;
                let file = Folder::open(&self.folder)?.create(FILE_NAME, Existing::Replaced)?;
                self.writer.insert(RowsWriter::new(&SampleRows::schema(), file)?)
            }
        };
        Ok(writer.push(&self.rows.take()?)?)
    }

    fn finish(mut self) -> anyhow::Result<Option<Written>> {
        let lines = std::mem::take(&mut self.lines);
        self.decode(&lines)?;
        self.write()?;
        let Some(writer) = self.writer else { return Ok(None) };
        let samples = writer.rows();
        writer.finish()?.finish()?;
        let size = std::fs::metadata(self.folder.join(FILE_NAME))?.len();
        Ok(Some(Written { samples, size }))
    }
}

/// The labels of the key that was asked for last.
#[derive(Default)]
struct Series {
    key: Option<(u32, u32)>,
    labels: Labels,
}

impl Series {
    fn of(&mut self, decoded: &Decoded<'_>, key: (u32, u32)) -> anyhow::Result<&Labels> {
        if self.key != Some(key) {
            let (start, batch) = (key.0 as usize, &decoded.batch);
            let bytes = batch.bytes.get(start..start + key.1 as usize).unwrap_or_default();
            let (mut labels, mut name) = (LabelsBuilder::new(), String::new());
            batch.decoder.tags(bytes, &mut labels)?;
            batch.decoder.metric_name(bytes, "", &mut name)?;
            labels.push(METRIC_NAME, &name);
            self.labels = labels.finish();
            self.key = Some(key);
        }
        Ok(&self.labels)
    }
}

/// A metric's folder: what is no letter, digit, `-`, `_` or `.` in percent form, as readers undo it.
/// The end of a long name becomes its hash: the file itself has the name.
fn folder_of(name: &str) -> String {
    let encoded = encode(name);
    if encoded.len() <= NAME_SIZE_MAX {
        return format!("metric={encoded}");
    }
    let end = NAME_SIZE_MAX - 20;
    // No letter is cut in two.
    let end = (end - 2..end).find(|at| encoded.as_bytes()[*at] == b'%').unwrap_or(end);
    let hash = Labels::from_pairs(&[(METRIC_NAME, name)]).fingerprint() as u64;
    format!("metric={}~{hash:016x}", &encoded[..end])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn folders_have_the_names_of_metrics() {
        assert_eq!(folder_of("job:up-2.x_y"), "metric=job%3Aup-2.x_y");
        assert_eq!(folder_of("../a b/\u{e4}="), "metric=..%2Fa%20b%2F%C3%A4%3D");
        let (one, other) = (folder_of(&"\u{e4}".repeat(300)), folder_of(&"\u{e4}".repeat(301)));
        assert!(one != other && one.len() <= 210 && !one.contains("%~"), "{one}");
        let cut = one.trim_start_matches("metric=").split('~').next().unwrap_or_default();
        assert!(cut.len().is_multiple_of(3), "{cut}");
    }
}
