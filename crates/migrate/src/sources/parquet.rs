//! Parquet files with the columns that `quipu export` writes: a day of them at a time where their directories
//! say the day, else file by file.

use crate::exact::{Exact, When};
use crate::series::Filter;
use crate::source::{Given, Sink, Source, Window};
use anyhow::{Context as _, anyhow, bail, ensure};
use cli::parquet_files::collect;
use model::{KeyHasher, LabelsBuilder, METRIC_NAME, TimeRange};
use sql::parquet::{FileReader, Source as Bytes};
use std::collections::{BTreeMap, HashMap};
use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use wire::json_lines::{JsonKeys, decode};
use wire::{ExtraLabels, Start};

/// What the directory of a day begins with.
const DAY: &str = "day=";
/// Files whose faults are said in words.
const FAULTS_SHOWN: usize = 10;

/// Some files, or what is in directories.
pub struct Parquet {
    places: Vec<PathBuf>,
    filter: Arc<Filter>,
    range: TimeRange,
    files: BTreeMap<String, Vec<PathBuf>>,
}

impl Parquet {
    /// What files have of a time.
    pub fn new(places: &[&str], filter: Arc<Filter>, range: TimeRange) -> Parquet {
        let places = places.iter().map(PathBuf::from).collect();
        Parquet { places, filter, range, files: BTreeMap::new() }
    }

    fn file(&self, path: &Path, sink: &mut Sink<'_>) -> anyhow::Result<()> {
        let mut reader = open(path, self.range.end)?;
        let mut lines = Vec::new();
        loop {
            lines.clear();
            let read = reader.push_lines(false, &mut lines).map_err(|error| {
                let column = error.column.map(|one| format!(", column {one}")).unwrap_or_default();
                anyhow!("row {}{column}: {}; rows before it are stored", error.row, error.message)
            })?;
            for line in lines.split(|byte| *byte == b'\n').filter(|line| !line.is_empty()) {
                let mut given = Given::Exact(exact_of(line)?);
                if given.tidy(&self.range, &self.filter) {
                    sink(given)?;
                }
            }
            if !read.has_more {
                return Ok(());
            }
        }
    }
}

fn open(path: &Path, now: i64) -> anyhow::Result<FileReader> {
    ensure!(std::fs::metadata(path)?.is_file(), "no file");
    Ok(FileReader::open(Bytes::of_file(File::open(path)?)?, None, now)?)
}

/// The samples of a line.
fn exact_of(line: &[u8]) -> anyhow::Result<Exact> {
    let keys = JsonKeys::new(ExtraLabels::none());
    let decoded = decode(line, Start::default(), &KeyHasher::new(1), &keys)?;
    if let Some(error) = decoded.errors.kept().first() {
        bail!("{}", error.reason);
    }
    ensure!(decoded.rest.is_none(), "a line of too many samples");
    let batch = &decoded.batch;
    let starts: HashMap<i64, i64> =
        decoded.starts.iter().map(|row| (row.timestamp, row.start_ms)).collect();
    let when = |nanos: i64| When { nanos, start_ms: starts.get(&nanos).copied().unwrap_or(0) };
    let key = match (batch.rows.first(), decoded.histograms.first()) {
        (Some(row), _) => (row.key_offset, row.key_size),
        (None, Some(row)) => (row.key_offset, row.key_size),
        (None, None) => return Ok(Exact::default()),
    };
    let key = &batch.bytes[key.0 as usize..(key.0 + key.1) as usize];
    let (mut labels, mut name) = (LabelsBuilder::new(), String::new());
    batch.decoder.tags(key, &mut labels)?;
    batch.decoder.metric_name(key, "", &mut name)?;
    labels.push(METRIC_NAME, &name);
    let value = |row| batch.row_values(row).first().copied().unwrap_or_default();
    Ok(Exact {
        labels: labels.sorted()?.into_labels(),
        samples: batch.rows.iter().map(|row| (when(row.timestamp), value(row))).collect(),
        histograms: decoded
            .histograms
            .iter()
            .map(|row| (when(row.timestamp), row.histogram.clone()))
            .collect(),
    })
}

/// The day that a file's directory says.
fn day_of(path: &Path) -> Option<jiff::civil::Date> {
    path.components()
        .rev()
        .find_map(|part| part.as_os_str().to_str()?.strip_prefix(DAY)?.parse().ok())
}

/// The time of a day.
fn time_of(day: jiff::civil::Date) -> Option<TimeRange> {
    let nanos = |day: jiff::civil::Date| {
        let at = day.to_zoned(jiff::tz::TimeZone::UTC).ok()?.timestamp().as_nanosecond();
        i64::try_from(at).ok()
    };
    Some(TimeRange::new(nanos(day)?, nanos(day.tomorrow().ok()?)? - 1))
}

impl Source for Parquet {
    fn windows(&mut self) -> anyhow::Result<Vec<Window>> {
        self.files.clear();
        let mut files = Vec::new();
        for place in &self.places {
            collect(place, 0, &mut files)?;
        }
        ensure!(!files.is_empty(), "no files that end in .parquet");
        files.sort_unstable();
        files.dedup();
        let mut windows: BTreeMap<String, Window> = BTreeMap::new();
        for path in files {
            let day = day_of(&path).and_then(|day| Some((day, time_of(day)?)));
            let name = match day {
                Some((day, _)) => day.to_string(),
                None => path.display().to_string(),
            };
            let range = day.map_or(TimeRange::ALL, |(_, time)| time).intersect(&self.range);
            if range.is_empty() {
                continue;
            }
            // What is no such file is said when it is read.
            let rows = open(&path, 0).map_or(0, |reader| reader.rows_said());
            let window = Window { name: name.clone(), range, samples: Some(0) };
            let window = windows.entry(name.clone()).or_insert(window);
            window.samples = window.samples.map(|count| count + rows);
            self.files.entry(name).or_default().push(path);
        }
        // Days have names that are ordered as they are.
        Ok(windows.into_values().rev().collect())
    }

    fn is_apart(&self) -> bool {
        true
    }

    fn is_scattered(&self) -> bool {
        true
    }

    fn read(&mut self, window: &Window, sink: &mut Sink<'_>) -> anyhow::Result<()> {
        let files = self.files.get(&window.name).context("a window of no files")?;
        let (mut faults, mut count) = (Vec::new(), 0);
        for path in files {
            let Err(error) = self.file(path, sink) else { continue };
            count += 1;
            if faults.len() < FAULTS_SHOWN {
                faults.push(format!("{}: {error:#}", path.display()));
            }
        }
        // The others were handed on.
        ensure!(count == 0, "{count} files cannot be read: {}", faults.join("; "));
        Ok(())
    }
}
