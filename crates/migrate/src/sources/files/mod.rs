//! Files of records that stand one behind the other, gzip or not: cut into pieces of some megabytes, which
//! are the windows of a copy, so that a later run goes on in the middle of a file.
//!
//! A file is read once to find its pieces, their times and what is wrong with them, and a piece again when it
//! is copied. So memory holds one piece, and what is told before a copy is what comes.

mod influx_lines;
mod opentsdb;
mod victoriametrics;

use super::order::newest_first;
use crate::series::Filter;
use crate::source::{Given, Sink, Source, Window};
use anyhow::{Context as _, bail, ensure};
use flate2::read::MultiGzDecoder;
use model::TimeRange;
use std::collections::HashMap;
use std::fs::File;
use std::io::{BufReader, Read, Seek as _, SeekFrom};
use std::path::{Path, PathBuf};
use std::sync::Arc;

pub use influx_lines::InfluxLines;
pub use opentsdb::OpenTsdbLines;
pub use victoriametrics::format_of as victoriametrics;

/// Bytes of a piece, about.
const PIECE_SIZE: usize = 16 << 20;
/// Bytes that are looked at behind a piece, so that a record that begins in it ends.
const LOOKAHEAD: usize = 1 << 20;
/// Bytes of a record.
const RECORD_SIZE_MAX: usize = 64 << 20;
/// What a file that is compressed by gzip begins with.
const GZIP_MAGIC: &[u8] = &[0x1f, 0x8b];
/// What is wrong that is said in words, of a piece.
const FAULTS_SHOWN: usize = 10;

/// How records stand in a file.
pub trait Format: Send {
    /// The next piece of what comes, which begins with a record. Of no bytes where more have to be seen first.
    ///
    /// # Errors
    /// When the file cannot be read any further.
    fn cut(&mut self, coming: &[u8], behind: Behind) -> anyhow::Result<Cut>;

    /// Whether a record ends with its line, so that the beginning of one may look like another.
    fn is_of_lines(&self) -> bool {
        true
    }

    /// Hands on what a piece has.
    ///
    /// # Errors
    /// When `sink` fails, or the piece is none at all.
    fn read(&self, piece: &Piece, bytes: &[u8], out: &mut Out<'_>) -> anyhow::Result<()>;
}

/// Makes the reader of a file by what it begins with.
pub type FormatOf = Box<dyn Fn(&[u8]) -> anyhow::Result<Box<dyn Format>> + Send>;

/// What of a file stands behind bytes that have come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Behind {
    /// There may be more.
    More,
    /// They are all that is left.
    Nothing,
}

/// Where a piece ends.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Cut {
    /// Bytes of it.
    pub size: usize,
    /// Records, or lines, that are in it.
    pub records: u32,
    /// What its records mean depends on it; nothing for bytes that are no records.
    pub context: Option<String>,
}

/// A piece of a file.
#[derive(Clone, Debug)]
pub struct Piece {
    file: usize,
    offset: u64,
    size: usize,
    /// The number of its first record, from 1.
    pub first: u32,
    /// What stood before it and says what its records mean.
    pub context: String,
    /// Why it cannot be read.
    broken: Option<String>,
}

/// Takes what a piece has, and what is wrong with it.
pub struct Out<'a> {
    sink: &'a mut Sink<'a>,
    /// Texts that cannot be read.
    pub strings: u64,
    faults: Vec<String>,
    fault_count: u64,
}

impl Out<'_> {
    /// Hands on.
    ///
    /// # Errors
    /// Those of whoever takes it.
    pub fn give(&mut self, given: Given) -> anyhow::Result<()> {
        (self.sink)(given)
    }

    /// Notes what is wrong with a record.
    pub fn fault(&mut self, record: u32, why: impl std::fmt::Display) {
        self.faults(1, || format!("{record}: {why}"));
    }

    /// Notes so many records that are wrong, of which the words are of one.
    pub fn faults(&mut self, count: u64, words: impl FnOnce() -> String) {
        self.fault_count += count;
        if 0 < count && self.faults.len() < FAULTS_SHOWN {
            self.faults.push(words());
        }
    }
}

/// Some files.
pub struct Files {
    paths: Vec<PathBuf>,
    format_of: FormatOf,
    filter: Arc<Filter>,
    range: TimeRange,
    pieces: HashMap<String, Piece>,
    open: Option<Open>,
    strings: u64,
    faults: u64,
}

/// A file at a place.
struct Open {
    file: usize,
    at: u64,
    format: Box<dyn Format>,
    reader: Box<dyn Read + Send>,
}

impl Files {
    /// What files have of a time.
    pub fn new(
        places: &[&str],
        format_of: FormatOf,
        filter: Arc<Filter>,
        range: TimeRange,
    ) -> Files {
        let paths = places.iter().map(PathBuf::from).collect();
        let pieces = HashMap::new();
        Files { paths, format_of, filter, range, pieces, open: None, strings: 0, faults: 0 }
    }

    fn shown(&self, file: usize) -> String {
        self.paths.get(file).map(|path| path.display().to_string()).unwrap_or_default()
    }

    /// Opens a file, and goes to a byte of what it says.
    fn open(&self, file: usize, offset: u64) -> anyhow::Result<Open> {
        let path = self.paths.get(file).context("no such file")?;
        let (head, is_gzip) = head_of(path)?;
        let format = (self.format_of)(&head)?;
        let mut plain = File::open(path)?;
        let reader: Box<dyn Read + Send> = if is_gzip {
            let mut reader = BufReader::new(MultiGzDecoder::new(BufReader::new(plain)));
            let passed = std::io::copy(&mut reader.by_ref().take(offset), &mut std::io::sink())?;
            ensure!(passed == offset, "it ended before byte {offset}");
            Box::new(reader)
        } else {
            plain.seek(SeekFrom::Start(offset))?;
            Box::new(BufReader::new(plain))
        };
        Ok(Open { file, at: offset, format, reader })
    }

    /// The bytes of a piece. Pieces that follow each other are read without a seek.
    fn bytes(&mut self, piece: &Piece) -> anyhow::Result<Vec<u8>> {
        let is_ahead = |open: &Open| open.file == piece.file && open.at <= piece.offset;
        let mut open = match self.open.take().filter(is_ahead) {
            Some(open) => open,
            None => self.open(piece.file, piece.offset)?,
        };
        let between = piece.offset - open.at;
        std::io::copy(&mut open.reader.by_ref().take(between), &mut std::io::sink())?;
        let mut bytes = Vec::with_capacity(piece.size);
        open.reader.by_ref().take(piece.size as u64).read_to_end(&mut bytes)?;
        ensure!(bytes.len() == piece.size, "the file ended meanwhile");
        open.at = piece.offset + piece.size as u64;
        self.open = Some(open);
        Ok(bytes)
    }

    /// Finds the pieces of a file.
    fn look(&mut self, file: usize) -> anyhow::Result<Vec<(Piece, Seen)>> {
        let mut open = self.open(file, 0)?;
        let mut found = Vec::new();
        let mut coming = Coming { bytes: Vec::new(), behind: Behind::More, failed: None };
        let (mut wanted, mut first) = (PIECE_SIZE + LOOKAHEAD, 1u32);
        loop {
            coming.fill(&mut open.reader, wanted);
            if coming.failed.is_some() && open.format.is_of_lines() {
                coming.forget_open_line();
            }
            let piece = |cut: Cut, broken| Piece {
                file,
                offset: open.at,
                size: cut.size,
                first,
                context: cut.context.unwrap_or_default(),
                broken,
            };
            let is_last = coming.behind == Behind::Nothing;
            let why = if is_last && coming.bytes.is_empty() {
                let Some(why) = coming.failed else { return Ok(found) };
                why
            } else {
                match open.format.cut(&coming.bytes, coming.behind) {
                    Ok(Cut { size: 0, .. }) if !is_last && wanted < RECORD_SIZE_MAX => {
                        wanted *= 2;
                        continue;
                    }
                    Ok(Cut { size: 0, .. }) => {
                        format!("a record of more than {RECORD_SIZE_MAX} bytes, or without an end")
                    }
                    Ok(cut) => {
                        let bytes = coming.bytes.get(..cut.size).context("a piece too long")?;
                        if cut.context.is_some() {
                            let piece = piece(cut.clone(), None);
                            let seen = see(open.format.as_ref(), &piece, bytes, &self.filter);
                            found.push((piece, seen));
                        }
                        coming.bytes.drain(..cut.size);
                        open.at += cut.size as u64;
                        first = first.saturating_add(cut.records);
                        wanted = PIECE_SIZE + LOOKAHEAD;
                        continue;
                    }
                    Err(error) => coming.failed.unwrap_or_else(|| format!("{error:#}")),
                }
            };
            // What stood before it is good.
            let broken = piece(Cut::default(), Some(why));
            found.push((broken, Seen { faults: 1, ..Seen::default() }));
            return Ok(found);
        }
    }
}

/// What has come of a file and was not cut yet.
struct Coming {
    bytes: Vec<u8>,
    behind: Behind,
    /// Why nothing more comes.
    failed: Option<String>,
}

impl Coming {
    /// Reads until so much is there, or nothing more comes.
    fn fill(&mut self, reader: &mut dyn Read, wanted: usize) {
        let missing = wanted.saturating_sub(self.bytes.len());
        if self.behind == Behind::Nothing {
            return;
        }
        match reader.take(missing as u64).read_to_end(&mut self.bytes) {
            Ok(size) if size < missing => self.behind = Behind::Nothing,
            Ok(_) => {}
            Err(error) => {
                self.failed = Some(error.to_string());
                self.behind = Behind::Nothing;
            }
        }
    }
}

impl Coming {
    /// Takes away what stands behind the last end of a line.
    fn forget_open_line(&mut self) {
        let end = self.bytes.iter().rposition(|byte| *byte == b'\n');
        self.bytes.truncate(end.map_or(0, |at| at + 1));
    }
}

/// A piece of whole lines.
fn cut_lines(coming: &[u8], behind: Behind) -> Cut {
    let is_end = |byte: &u8| *byte == b'\n';
    let some = coming.get(..PIECE_SIZE).unwrap_or(coming);
    let size = if behind == Behind::Nothing && coming.len() <= PIECE_SIZE {
        coming.len()
    } else if let Some(at) = some.iter().rposition(is_end) {
        at + 1
    } else {
        // A long line.
        let at = coming.iter().position(is_end).map(|at| at + 1);
        at.unwrap_or(if behind == Behind::Nothing { coming.len() } else { 0 })
    };
    let records = coming.iter().take(size).filter(|byte| is_end(byte)).count();
    let records = u32::try_from(records).unwrap_or(u32::MAX);
    Cut { size, records, context: Some(String::new()) }
}

/// What a piece has.
#[derive(Clone, Debug, Default)]
struct Seen {
    samples: u64,
    strings: u64,
    faults: u64,
    time: Option<(i64, i64)>,
}

fn see(format: &dyn Format, piece: &Piece, bytes: &[u8], filter: &Filter) -> Seen {
    let mut seen = Seen::default();
    let mut sink = |given: Given| {
        seen.strings += given.texts_lost(filter);
        given.each_time(&mut |nanos, count| {
            seen.samples += count;
            if 0 < count {
                let (start, end) = seen.time.unwrap_or((nanos, nanos));
                seen.time = Some((start.min(nanos), end.max(nanos)));
            }
        });
        Ok(())
    };
    let mut out = Out { sink: &mut sink, strings: 0, faults: Vec::new(), fault_count: 0 };
    let read = format.read(piece, bytes, &mut out);
    let (strings, faults) = (out.strings, out.fault_count + u64::from(read.is_err()));
    Seen { strings: seen.strings + strings, faults, ..seen }
}

/// What a file begins with, once it is decompressed, and whether it is compressed.
fn head_of(path: &Path) -> anyhow::Result<(Vec<u8>, bool)> {
    ensure!(std::fs::metadata(path)?.is_file(), "no file");
    let mut head = Vec::new();
    File::open(path)?.take(2).read_to_end(&mut head)?;
    let is_gzip = head == GZIP_MAGIC;
    let plain = File::open(path)?;
    let reader: Box<dyn Read> = if is_gzip {
        Box::new(MultiGzDecoder::new(BufReader::new(plain)))
    } else {
        Box::new(plain)
    };
    head.clear();
    reader.take(64).read_to_end(&mut head).context("gzip")?;
    Ok((head, is_gzip))
}

impl Source for Files {
    fn windows(&mut self) -> anyhow::Result<Vec<Window>> {
        let mut units = Vec::new();
        (self.strings, self.faults) = (0, 0);
        for file in 0..self.paths.len() {
            let shown = self.shown(file);
            let pieces = self.look(file).with_context(|| shown.clone())?;
            let mut windows = Vec::new();
            for (piece, seen) in pieces {
                // What cannot be read may be of any time.
                let time = seen.time.unwrap_or((self.range.end, self.range.end));
                let range = TimeRange::new(time.0, time.1).intersect(&self.range);
                self.strings += seen.strings;
                self.faults += seen.faults;
                if range.is_empty() || seen.samples + seen.faults == 0 {
                    continue;
                }
                // With its size: where a file was cut short, the whole one has another piece there.
                let name = format!("{shown}@{}+{}", piece.offset, piece.size);
                windows.push(Window { name: name.clone(), range, samples: Some(seen.samples) });
                self.pieces.insert(name, piece);
            }
            // What is compressed is read from its beginning to its end.
            match self.paths.get(file).is_some_and(|path| head_of(path).is_ok_and(|head| head.1)) {
                true => units.push(windows),
                false => units.extend(windows.into_iter().map(|one| vec![one])),
            }
        }
        Ok(newest_first(units))
    }

    fn is_apart(&self) -> bool {
        true
    }

    fn is_scattered(&self) -> bool {
        true
    }

    fn left_out(&self) -> Vec<String> {
        let mut words = Vec::new();
        if 0 < self.strings {
            words.push(format!("{} values of text fields, which only lines can say", self.strings));
        }
        if 0 < self.faults {
            words.push(format!("{} records that cannot be read", self.faults));
        }
        words
    }

    fn read(&mut self, window: &Window, sink: &mut Sink<'_>) -> anyhow::Result<()> {
        let piece = self.pieces.get(&window.name).context("a window of no file")?.clone();
        if let Some(why) = &piece.broken {
            bail!("from byte {} on: {why}", piece.offset);
        }
        let bytes = self.bytes(&piece)?;
        let open = self.open.take().context("it was just read")?;
        let (filter, range) = (self.filter.clone(), self.range);
        let mut chosen = |mut given: Given| match given.tidy(&range, &filter) {
            true => sink(given),
            false => Ok(()),
        };
        let mut out = Out { sink: &mut chosen, strings: 0, faults: Vec::new(), fault_count: 0 };
        open.format.read(&piece, &bytes, &mut out)?;
        let Out { faults, fault_count, .. } = out;
        self.open = Some(open);
        // The others were handed on.
        ensure!(fault_count == 0, "{fault_count} records cannot be read: {}", faults.join("; "));
        Ok(())
    }
}
