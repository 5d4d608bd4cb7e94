//! Time series in dump files of Redis: keys become series as those of a running one do
//! ([`super::redistimeseries`]), other keys are counted.
//!
//! A file is read once to find its keys, their times and what is wrong with them, and a piece of it again when
//! it is copied. Pieces begin with a key and have some megabytes: where, depends on nothing but the file.
//! What is rotten is named by the byte. Of a file whose bytes are all those of a dump, but with a checksum
//! that does not hold, nobody knows which sample is another one: of it nothing is copied.

use super::keys::{Keys, TYPE, rules_left_out};
use super::redistimeseries::labels_of;
use crate::series::{Filter, Series};
use crate::source::{Given, Sink, Source, Window};
use anyhow::{Context as _, anyhow, bail, ensure};
use kv::rdb::{Failure, ModuleKey, ModuleWord, Modules};
use model::{Labels, TimeRange};
use std::collections::{BTreeSet, HashMap};
use std::fs::File;
use std::io::{BufReader, Seek as _, SeekFrom};
use std::path::PathBuf;
use std::sync::Arc;
use wire::redis_timeseries::{About, Word, read};

/// Bytes of a piece, about.
const PIECE_SIZE: u64 = 16 << 20;
/// Samples of a series that are handed on at once.
const SAMPLES_AT_ONCE: usize = 32 << 10;
/// What is wrong that is said in words, of a piece.
const FAULTS_SHOWN: usize = 10;
/// Bytes of a key that messages show.
const SHOWN_SIZE_MAX: usize = 128;

/// Some files.
pub struct Dumps {
    paths: Vec<PathBuf>,
    choice: Choice,
    made: Keys,
    pieces: HashMap<String, Piece>,
    rules: BTreeSet<String>,
    others: Others,
}

/// What is chosen of files.
#[derive(Clone)]
pub struct Choice {
    /// Which series.
    pub filter: Arc<Filter>,
    /// Of which time.
    pub range: TimeRange,
    /// Of which databases.
    pub databases: BTreeSet<u64>,
    /// Milliseconds since 1970: which keys have expired.
    pub now_ms: i64,
}

/// A piece of a file: keys that begin in it.
#[derive(Clone, Debug)]
struct Piece {
    file: usize,
    offset: u64,
    /// The database of its first key.
    db: u64,
    /// Where the next begins.
    end: u64,
    /// Why it cannot be read.
    broken: Option<String>,
}

/// Keys that are not copied.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Others {
    /// Of types that are no time series.
    types: u64,
    /// Of other modules.
    modules: u64,
    /// In other databases.
    databases: u64,
    expired: u64,
    unreadable: u64,
}

/// What a piece has.
#[derive(Clone, Copy, Debug, Default)]
struct Seen {
    keys: u64,
    samples: u64,
    faults: u64,
    time: Option<(i64, i64)>,
}

/// What was found of a file so far.
struct Looking {
    file: usize,
    found: Vec<(Piece, Seen)>,
    /// Where what is looked at begins.
    at: u64,
}

impl Looking {
    /// What is known of the piece that a key begins in: a new one where the last is full.
    fn piece_of(&mut self, key: &ModuleKey) -> Option<&mut Seen> {
        let ModuleKey { offset, db, .. } = *key;
        if self.found.last().is_none_or(|(last, _)| last.offset + PIECE_SIZE <= offset) {
            if let Some((last, _)) = self.found.last_mut() {
                last.end = offset;
            }
            let piece = Piece { file: self.file, offset, db, end: u64::MAX, broken: None };
            self.found.push((piece, Seen::default()));
        }
        self.found.last_mut().map(|(_, seen)| seen)
    }
}

/// What became of a key.
enum Outcome {
    /// It was read; nothing of one that is not chosen.
    Read(Option<(Labels, About)>),
    /// It cannot be.
    Fault(String),
}

/// Takes samples of a series with what its key is.
type Take<'a> = dyn FnMut(&About, Series) -> anyhow::Result<()> + 'a;

impl Dumps {
    /// What files have; keys are made anew where somebody says.
    pub fn new(places: &[&str], choice: Choice, made: Keys) -> Dumps {
        let paths = places.iter().map(PathBuf::from).collect();
        let (pieces, rules) = (HashMap::new(), BTreeSet::new());
        Dumps { paths, choice, made, pieces, rules, others: Others::default() }
    }

    fn shown(&self, file: usize) -> String {
        self.paths.get(file).map(|path| path.display().to_string()).unwrap_or_default()
    }

    fn open(&self, file: usize) -> anyhow::Result<File> {
        let path = self.paths.get(file).context("no such file")?;
        ensure!(std::fs::metadata(path)?.is_file(), "no file");
        Ok(File::open(path)?)
    }

    /// Finds the pieces of a file.
    fn look(&mut self, file: usize) -> anyhow::Result<Vec<(Piece, Seen)>> {
        let mut source = BufReader::new(self.open(file)?);
        let mut modules = Modules::begin(&mut source)?;
        let mut looking = Looking { file, found: Vec::new(), at: 0 };
        let before = (self.others.clone(), self.rules.clone());
        let broken = loop {
            match self.look_at_key(&mut modules, &mut looking) {
                Ok(true) => {}
                Ok(false) => break None,
                Err(error) => break Some(error),
            }
        };
        self.others.types += modules.skipped();
        let Looking { mut found, at, .. } = looking;
        let Some(error) = broken else { return Ok(found) };
        let mut why = format!("{error:#}");
        let mut offset = at;
        if matches!(error.downcast_ref(), Some(Failure::Checksum { .. })) {
            found.clear();
            (self.others, self.rules) = before;
            offset = 0;
            why += ", so some byte is another one than it was, and nobody can tell which: nothing of \
                    this file is copied";
        } else if let Some((last, _)) = found.last_mut() {
            // What stands before the damage is good.
            last.end = at;
        }
        let piece = Piece { file, offset, db: 0, end: u64::MAX, broken: Some(why) };
        found.push((piece, Seen { faults: 1, ..Seen::default() }));
        Ok(found)
    }

    /// Looks at the next key; false where there is none.
    fn look_at_key(
        &mut self,
        modules: &mut Modules<'_>,
        looking: &mut Looking,
    ) -> anyhow::Result<bool> {
        modules.finish_key()?;
        looking.at = modules.offset();
        let Some(key) = modules.next_key()? else { return Ok(false) };
        looking.at = key.offset;
        let Some(seen) = looking.piece_of(&key) else { return Ok(true) };
        if !self.choice.takes(&key, Some(&mut self.others)) {
            return Ok(true);
        }
        let mut take = |_: &About, series: Series| {
            Given::Series(series).each_time(&mut |nanos, count| {
                seen.samples += count;
                let (start, end) = seen.time.unwrap_or((nanos, nanos));
                seen.time = Some((start.min(nanos), end.max(nanos)));
            });
            Ok(())
        };
        match read_key(modules, &key, &self.choice, &mut take)? {
            Outcome::Read(Some((labels, about))) => {
                seen.keys += 1;
                if 0 < about.rules {
                    self.rules.insert(labels.metric_name().to_string());
                }
            }
            Outcome::Read(None) => {}
            Outcome::Fault(_) => {
                seen.faults += 1;
                self.others.unreadable += 1;
            }
        }
        Ok(true)
    }

    /// Hands on what a piece has; returns what is wrong with its keys.
    fn copy(&mut self, piece: &Piece, sink: &mut Sink<'_>) -> anyhow::Result<Vec<String>> {
        let mut file = self.open(piece.file)?;
        file.seek(SeekFrom::Start(piece.offset))?;
        let mut source = BufReader::new(file);
        let mut modules = Modules::resume(&mut source, piece.offset, piece.db);
        let mut faults = Vec::new();
        while let Some(key) = next_before(&mut modules, piece.end)? {
            if !self.choice.takes(&key, None) {
                continue;
            }
            let mut is_made = false;
            let (made, filter) = (&mut self.made, self.choice.filter.clone());
            let mut take = |about: &About, series: Series| {
                if !std::mem::replace(&mut is_made, true) {
                    let labels = filter.relabelled(series.labels.clone());
                    made.make(&labels, about.retention_ms, about.policy)?;
                }
                sink(Given::Series(series))
            };
            match read_key(&mut modules, &key, &self.choice, &mut take)? {
                // One without samples is made, too.
                Outcome::Read(Some((labels, about))) if !is_made => {
                    let labels = filter.relabelled(labels);
                    self.made.make(&labels, about.retention_ms, about.policy)?;
                }
                Outcome::Read(_) => {}
                Outcome::Fault(why) => faults.push(why),
            }
        }
        Ok(faults)
    }
}

/// The next key that begins before a byte, behind which nothing is looked at.
fn next_before(modules: &mut Modules<'_>, end: u64) -> anyhow::Result<Option<ModuleKey>> {
    modules.finish_key()?;
    if end <= modules.offset() {
        return Ok(None);
    }
    Ok(modules.next_key()?.filter(|key| key.offset < end))
}

impl Choice {
    /// Whether a key is copied; what it is otherwise is counted.
    fn takes(&self, key: &ModuleKey, others: Option<&mut Others>) -> bool {
        let mut unused = Others::default();
        let others = others.unwrap_or(&mut unused);
        let count = if key.module != TYPE {
            &mut others.modules
        } else if !self.databases.contains(&key.db) {
            &mut others.databases
        } else if key.expire_ms.is_some_and(|expire_ms| expire_ms <= self.now_ms) {
            &mut others.expired
        } else {
            return true;
        };
        *count += 1;
        false
    }
}

/// Reads a key; its samples go to `take`.
///
/// # Errors
/// When the file is damaged so that what follows cannot be found, and as `take`.
fn read_key(
    modules: &mut Modules<'_>,
    key: &ModuleKey,
    choice: &Choice,
    take: &mut Take<'_>,
) -> anyhow::Result<Outcome> {
    let mut series: Option<Series> = None;
    // What whoever takes says is no fault of the key.
    let mut refused = None;
    let mut each = |about: &About, mut samples: Vec<_>| -> anyhow::Result<()> {
        let series = match &mut series {
            Some(series) => series,
            None => {
                let labels = labels_in(key, about)?;
                series.insert(Series {
                    labels,
                    samples: Vec::new(),
                    histograms: Vec::new(),
                    repeated: Vec::new(),
                })
            }
        };
        if !choice.filter.takes(&series.labels) {
            return Ok(());
        }
        let first_ms = first_kept(about);
        samples.retain(|one: &wire::remote_write::encode::MillisSample| first_ms <= one.millis);
        series.samples.append(&mut samples);
        if SAMPLES_AT_ONCE <= series.samples.len() {
            let given = std::mem::take(&mut series.samples);
            refused =
                hand_on(about, Series { samples: given, ..series.clone() }, choice, take).err();
            ensure!(refused.is_none(), "not taken");
        }
        Ok(())
    };
    let read = read(key.version, &mut || word(modules), &mut each);
    if let Some(error) = refused {
        return Err(error);
    }
    let about = match read {
        Ok(about) => about,
        Err(error) if error.is::<Failure>() => return Err(error.context(shown(key))),
        Err(error) => return Ok(Outcome::Fault(format!("{}: {error:#}", shown(key)))),
    };
    let labels = match series {
        None => labels_in(key, &about),
        Some(series) => {
            let labels = series.labels.clone();
            hand_on(&about, series, choice, take)?;
            Ok(labels)
        }
    };
    Ok(match labels {
        Ok(labels) if choice.filter.takes(&labels) => Outcome::Read(Some((labels, about))),
        Ok(_) => Outcome::Read(None),
        Err(error) => Outcome::Fault(format!("{}: {error:#}", shown(key))),
    })
}

fn hand_on(
    about: &About,
    mut series: Series,
    choice: &Choice,
    take: &mut Take<'_>,
) -> anyhow::Result<()> {
    series.tidy(&choice.range);
    match series.is_empty() {
        true => Ok(()),
        false => take(about, series),
    }
}

/// The oldest millisecond that its retention keeps: older ones may be in a chunk with others, and are not
/// shown.
fn first_kept(about: &About) -> i64 {
    match (about.retention_ms, about.last_ms) {
        (0, _) | (_, None) => i64::MIN,
        (retention, Some(last)) => {
            i64::try_from(last.saturating_sub(retention)).unwrap_or(i64::MAX)
        }
    }
}

fn word(modules: &mut Modules<'_>) -> anyhow::Result<Option<Word>> {
    Ok(modules.next_word()?.map(|word| match word {
        ModuleWord::Number(number) => Word::Number(number),
        ModuleWord::Double(double) => Word::Double(double),
        ModuleWord::Bytes(bytes) => Word::Bytes(bytes),
    }))
}

fn labels_in(key: &ModuleKey, about: &About) -> anyhow::Result<Labels> {
    let text = |bytes: &Vec<u8>| {
        String::from_utf8(bytes.clone()).map_err(|_| anyhow!("a label that is no UTF-8"))
    };
    let pairs: anyhow::Result<Vec<(String, String)>> =
        about.labels.iter().map(|(name, value)| Ok((text(name)?, text(value)?))).collect();
    labels_of(&key.key, &pairs?)
}

/// A key as messages show it.
fn shown(key: &ModuleKey) -> String {
    let name = key.key.get(..SHOWN_SIZE_MAX).unwrap_or(&key.key);
    format!("key {} at byte {}", String::from_utf8_lossy(name), key.offset)
}

impl Source for Dumps {
    fn windows(&mut self) -> anyhow::Result<Vec<Window>> {
        let mut windows = Vec::new();
        self.others = Others::default();
        for file in 0..self.paths.len() {
            let shown = self.shown(file);
            for (piece, seen) in self.look(file).with_context(|| shown.clone())? {
                let Seen { keys, samples, faults, time } = seen;
                let is_made = self.made.are_wanted() && 0 < keys;
                if samples + faults == 0 && !is_made {
                    continue;
                }
                // What cannot be read may be of any time.
                let end = self.choice.range.end;
                let (start, end) = time.unwrap_or((end, end));
                let name = format!("{shown}@{}", piece.offset);
                let range = TimeRange::new(start, end);
                windows.push(Window { name: name.clone(), range, samples: Some(samples) });
                self.pieces.insert(name, piece);
            }
        }
        Ok(windows)
    }

    fn is_apart(&self) -> bool {
        true
    }

    fn is_disjoint(&self) -> bool {
        self.paths.len() == 1 && self.choice.databases.len() == 1
    }

    fn left_out(&self) -> Vec<String> {
        let Others { types, modules, databases, expired, unreadable } = self.others;
        let named: Vec<String> = self.choice.databases.iter().map(u64::to_string).collect();
        let elsewhere = format!("keys of databases other than {}", named.join(", "));
        let counts = [
            (types, "keys of other types"),
            (modules, "keys of other modules"),
            (databases, elsewhere.as_str()),
            (expired, "keys that have expired"),
            (unreadable, "keys that cannot be read"),
        ];
        let counts = counts.into_iter().filter(|(count, _)| 0 < *count);
        let words = counts.map(|(count, what)| format!("{count} {what}"));
        words.chain(rules_left_out(&self.rules)).collect()
    }

    fn read(&mut self, window: &Window, sink: &mut Sink<'_>) -> anyhow::Result<()> {
        let piece = self.pieces.get(&window.name).context("a window of no file")?.clone();
        if let Some(why) = &piece.broken {
            bail!("{why}");
        }
        let faults = self.copy(&piece, sink)?;
        let (count, shown) = (faults.len(), &faults[..faults.len().min(FAULTS_SHOWN)]);
        // The others were handed on.
        ensure!(count == 0, "{count} keys cannot be read: {}", shown.join("; "));
        Ok(())
    }
}
