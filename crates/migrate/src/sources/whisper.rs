//! A tree of Graphite's files: the path of one is the name of its metric, or the hash of a name with tags.

use crate::series::{Filter, Series};
use crate::source::{Given, Sink, Source, Window};
use anyhow::{Context as _, bail, ensure};
use model::{Labels, LabelsBuilder, METRIC_NAME, TimeRange};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use wire::remote_write::encode::MillisSample;

/// How a file's name ends.
const EXTENSION: &str = "wsp";
/// Where Graphite has metrics with tags.
const TAGGED: &str = "_tagged";
/// What stands for a dot in their files' names.
const DOT: &str = "_DOT_";
/// Directories within each other.
const DEPTH_MAX: usize = 64;
/// Bytes of a file: years of seconds have less.
const FILE_SIZE_MAX: u64 = 4 << 30;
/// Files of a directory whose faults are said in words.
const FAULTS_SHOWN: usize = 10;

/// The tree.
pub struct Whisper {
    root: PathBuf,
    filter: Arc<Filter>,
    range: TimeRange,
    /// The files of each directory.
    files: BTreeMap<String, Vec<PathBuf>>,
}

impl Whisper {
    /// What the files below a directory have of a time.
    pub fn new(root: &Path, filter: Arc<Filter>, range: TimeRange) -> Whisper {
        Whisper { root: root.to_path_buf(), filter, range, files: BTreeMap::new() }
    }

    fn collect(&mut self, directory: &Path, depth: usize) -> anyhow::Result<()> {
        let shown = || directory.display().to_string();
        ensure!(
            depth <= DEPTH_MAX,
            "{}: more than {DEPTH_MAX} directories within each other",
            shown()
        );
        for entry in std::fs::read_dir(directory).with_context(shown)? {
            let entry = entry.with_context(shown)?;
            let path = entry.path();
            if entry.file_type().with_context(shown)?.is_dir() {
                self.collect(&path, depth + 1)?;
            } else if path.extension().is_some_and(|end| end == EXTENSION) {
                let below = directory.strip_prefix(&self.root).unwrap_or(directory);
                let name = format!("./{}", below.display());
                self.files.entry(name).or_default().push(path);
            }
        }
        Ok(())
    }

    /// The series of a file.
    fn file(&self, path: &Path) -> anyhow::Result<Series> {
        let labels = labels_of(path.strip_prefix(&self.root).unwrap_or(path))?;
        let mut series =
            Series { labels, samples: Vec::new(), histograms: Vec::new(), repeated: Vec::new() };
        if !self.filter.takes(&series.labels) {
            return Ok(series);
        }
        let about = std::fs::metadata(path)?;
        ensure!(about.is_file(), "no file");
        ensure!(about.len() <= FILE_SIZE_MAX, "more than {FILE_SIZE_MAX} bytes");
        let points = wire::whisper::read(&std::fs::read(path)?)?;
        let sample = |(seconds, value)| MillisSample { millis: i64::from(seconds) * 1000, value };
        series.samples = points.into_iter().map(sample).collect();
        series.tidy(&self.range);
        Ok(series)
    }
}

/// The labels that a path below the root says: `a/b/c.wsp` is `a.b.c`, and
/// `_tagged/9f0/0a1/disk_DOT_used;host=a.wsp` is `disk.used` with the tag.
fn labels_of(path: &Path) -> anyhow::Result<Labels> {
    let text = path.with_extension("");
    let text = text.to_str().context("a name that is no UTF-8")?;
    let mut labels = LabelsBuilder::new();
    if !text.starts_with(TAGGED) {
        labels.push(METRIC_NAME, &text.replace('/', "."));
        return Ok(labels.finish());
    }
    let name = text.rsplit('/').next().unwrap_or(text).replace(DOT, ".");
    let mut parts = name.split(';');
    let metric = parts.next().unwrap_or_default();
    let pairs: Vec<&str> = parts.collect();
    // Graphite can be told to call its files so.
    let is_hash = metric.len() == 64 && metric.bytes().all(|byte| byte.is_ascii_hexdigit());
    if pairs.is_empty() && is_hash {
        bail!("its name is a hash (TAG_HASH_FILENAMES): nobody can tell its tags");
    }
    labels.push(METRIC_NAME, metric);
    for pair in pairs {
        let (tag, value) = pair.split_once('=').context("a tag without =")?;
        ensure!(!tag.is_empty() && !value.is_empty(), "a tag of no name or value");
        labels.push(tag, value);
    }
    Ok(labels.sorted()?.into_labels())
}

impl Source for Whisper {
    fn windows(&mut self) -> anyhow::Result<Vec<Window>> {
        self.files.clear();
        let root = self.root.clone();
        self.collect(&root, 0)?;
        ensure!(!self.files.is_empty(), "{}: no files that end in .{EXTENSION}", root.display());
        self.files.values_mut().for_each(|files| files.sort_unstable());
        // Which times files have, they tell when they are read; before 1970 there are none.
        let range = self.range.intersect(&TimeRange::new(0, i64::MAX));
        let window = |name: &String| Window { name: name.clone(), range, samples: None };
        Ok(self.files.keys().map(window).collect())
    }

    fn is_apart(&self) -> bool {
        true
    }

    fn is_disjoint(&self) -> bool {
        true
    }

    fn read(&mut self, window: &Window, sink: &mut Sink<'_>) -> anyhow::Result<()> {
        let files = self.files.get(&window.name).context("a window of no directory")?;
        let (mut faults, mut count) = (Vec::new(), 0);
        for path in files {
            match self.file(path) {
                Ok(series) if series.is_empty() => {}
                Ok(series) => sink(Given::Series(series))?,
                Err(error) => {
                    count += 1;
                    if faults.len() < FAULTS_SHOWN {
                        faults.push(format!("{}: {error:#}", path.display()));
                    }
                }
            }
        }
        // The others were handed on.
        ensure!(count == 0, "{count} files cannot be read: {}", faults.join("; "));
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_names() {
        let named = |path: &str| labels_of(Path::new(path));
        let plain = named("servers/a-b/cpu.user.wsp").unwrap();
        assert_eq!(plain, Labels::from_pairs(&[("__name__", "servers.a-b.cpu.user")]));
        let tagged = named("_tagged/9f0/0a1/disk_DOT_used;rack=a1;host=x=y.wsp").unwrap();
        let pairs = [("__name__", "disk.used"), ("host", "x=y"), ("rack", "a1")];
        assert_eq!(tagged, Labels::from_pairs(&pairs));
        let hash = format!("_tagged/9f0/0a1/{}.wsp", "9f00a1".repeat(10) + "abcd");
        assert!(named(&hash).unwrap_err().to_string().contains("hash"));
        assert!(named("_tagged/9f0/0a1/disk;rack.wsp").is_err());
    }
}
