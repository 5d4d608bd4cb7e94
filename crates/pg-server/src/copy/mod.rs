//! `COPY metrics FROM STDIN`: lines of exposition text to samples, all of them or none.
//!
//! ```text
//! pieces of any size ─► whole lines are looked at as they come ─► the end: all are stored
//!                          └─ a bad one: the COPY fails with its number and text, nothing is stored
//! ```
//! Rows of values, and those of a Parquet file, become lines first, some at a time.
//! With `ON_ERROR ignore` lines are stored as they come, bad ones are counted and left out.
//! What the store itself refuses while it stores (limits on labels and series) comes too late for the
//! lines before it.

pub mod copies;
pub mod copy_out;
pub mod inserts;
pub mod labels;
pub mod looked;
pub mod parquet;
pub mod table_copies;

use app::App;
use app::ingest::Outcome;
use looked::Looked;
use model::limits::LINE_SIZE_MAX;
use model::{KeyDecoder, LabelsBuilder, WriteBatch};
use net::admission::{BodyMemory, Pace, SHARE_UNIT};
use net::failure::{Failure, Kind};
use net::telemetry::Protocol;
use sql::SqlError;
use sql::copy::{CopyIn, Given, ParquetIn, RowFormat};
use sql::copy_rows::RowReader;
use sql::copy_values::RowError;
use sql::parquet::{FileReader, Source};
use std::collections::HashSet;
use std::time::Duration;
use store::Durability;
use tokio::sync::OwnedSemaphorePermit;
use tokio::time::Instant;
use wire::exposition::{Created, ExpositionKeys, Format, Options, decode};
use wire::json_lines::{self, JsonKeys};
use wire::{Decoded, ExtraLabels, LineError, Start};

/// Bytes of one `COPY` that is stored as a whole: what is decoded as one body has no more.
pub const WHOLE_SIZE_MAX: usize = 128 << 20;
/// Bytes that are looked at, or stored, at a time; of memory, too.
const PIECE_SIZE: usize = 1 << 20;
/// Bytes of a line that an error shows.
const SHOWN_SIZE_MAX: usize = 200;
/// Keys that are remembered to be good; with more all are looked at once more.
const CHECKED_MAX: usize = 1 << 20;

/// What to do about lines that cannot be read.
const LEAVES_OUT: &str = "WITH (ON_ERROR ignore) leaves bad lines out.";

/// Why a `COPY` failed.
#[derive(Debug, Default)]
pub struct CopyError {
    /// PostgreSQL's code for it.
    pub code: &'static str,
    /// What is wrong.
    pub message: String,
    /// Where.
    pub context: Option<String>,
    /// What to do about it.
    pub hint: Option<String>,
}

/// How lines came.
#[derive(Clone, Copy, Debug)]
pub enum Came {
    /// By `COPY`.
    Copied,
    /// By `COPY`, as rows that were made lines of that format.
    Rows(Format),
    /// By `COPY`, as a Parquet file whose rows were made lines of JSON.
    Parquet,
    /// By `INSERT`, whose rows were made lines of that format.
    Inserted(Format),
}

impl Came {
    fn format(self) -> Format {
        match self {
            Came::Copied | Came::Parquet => Format::Text,
            Came::Rows(format) | Came::Inserted(format) => format,
        }
    }

    /// The statement's name.
    pub fn word(self) -> &'static str {
        match self {
            Came::Copied | Came::Rows(_) | Came::Parquet => "COPY FROM",
            Came::Inserted(_) => "INSERT",
        }
    }

    /// Where something is, for errors.
    fn place(self, table: &str, line: u32) -> String {
        match self {
            Came::Copied => format!("COPY {table}, line {line}"),
            Came::Rows(_) => format!("COPY {table}, row {line}"),
            Came::Parquet => format!("COPY {table}, run {line} of rows of one series"),
            Came::Inserted(_) => format!("INSERT INTO {table}, row {line}"),
        }
    }
}

/// A `COPY` on its way, or the rows of an `INSERT`.
pub struct Copying {
    asked: CopyIn,
    came: Came,
    /// What makes lines of what comes, if that is rows.
    reader: Option<RowReader>,
    /// The same for a Parquet file, once all of it is there.
    file: Option<FileReader>,
    /// What came for them, and waits to be read.
    unread: Vec<u8>,
    /// Lines that it made, which wait to be taken.
    made: Vec<u8>,
    /// When it has to end by the client's own will, and how long it may take.
    ends: Option<(Instant, Duration)>,
    lines: Lines,
    outcome: Outcome,
    received: usize,
    /// Receive rate.
    pace: Pace,
    rejected: u64,
    /// Keys that were found to be good, by their hashes.
    checked: HashSet<u128>,
    /// What was decoded of the lines that were looked at.
    looked: Looked,
}

/// What came and is not stored.
struct Lines {
    bytes: Vec<u8>,
    /// Its share of the memory that all connections have for what they receive.
    held: Option<OwnedSemaphorePermit>,
    held_size: usize,
    /// Bytes of what came and is no line yet.
    beside: usize,
    /// How far it was looked at, or stored; always the start of a line. The number of the line counts
    /// those that are no longer in `bytes`, too.
    seen: Start,
    /// Where the last whole line ends.
    end: usize,
    keys: Keys,
    /// The time of lines that have none: when it began.
    now: i64,
    format: Format,
}

/// What tells the labels of lines: of exposition text, or of JSON.
pub enum Keys {
    Exposition(ExpositionKeys),
    Json(JsonKeys),
}

impl Keys {
    /// Those of lines that came so, which get these labels, too.
    pub fn new(came: Came, extra: ExtraLabels) -> Keys {
        match came {
            Came::Parquet => Keys::Json(JsonKeys::new(extra)),
            _ => Keys::Exposition(ExpositionKeys::new(extra)),
        }
    }

    fn decoder(&self) -> &dyn KeyDecoder {
        match self {
            Keys::Exposition(keys) => keys,
            Keys::Json(keys) => keys,
        }
    }
}

/// What came of a `COPY`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Copied {
    /// Samples stored.
    pub samples: u64,
    /// Lines left out.
    pub rejected: u64,
}

impl Lines {
    /// Takes a piece, as soon as there is memory for it.
    async fn push(&mut self, piece: &[u8], memory: &BodyMemory) -> Result<(), Failure> {
        let size = self.bytes.len() + piece.len();
        if self.bytes.capacity() < size {
            let capacity = size.max(2 * self.bytes.capacity()).next_multiple_of(SHARE_UNIT);
            self.hold(capacity, memory).await?;
            self.bytes.reserve_exact(capacity - self.bytes.len());
        }
        if let Some(at) = piece.iter().rposition(|byte| *byte == b'\n') {
            self.end = self.bytes.len() + at + 1;
        }
        self.bytes.extend_from_slice(piece);
        Ok(())
    }

    /// Holds memory for so many bytes of lines, and for what is beside them. What was held once stays
    /// held until the end.
    async fn hold(&mut self, capacity: usize, memory: &BodyMemory) -> Result<(), Failure> {
        let size = capacity + self.beside;
        if size <= self.held_size {
            return Ok(());
        }
        let mut share = memory.share();
        share.grow(size - self.held_size).await?;
        match (&mut self.held, share.into_held()) {
            (Some(held), Some(more)) => held.merge(more),
            (held, more) => *held = more,
        }
        self.held_size = size;
        Ok(())
    }

    /// Decodes lines up to `end`, some at a time.
    fn decode(
        &mut self,
        app: &App,
        end: usize,
        take: &mut dyn FnMut(Decoded<'_>) -> Result<(), CopyError>,
    ) -> Result<(), CopyError> {
        let Lines { now, format, .. } = *self;
        // Readers of exports in JSON lines skip times that are no whole milliseconds.
        let now = now - now.rem_euclid(model::sample::NANOS_PER_MILLI);
        let options = Options { format, now, created: Created::Samples };
        let hasher = app.store.hasher();
        let body = &self.bytes[..end];
        let mut next = (self.seen.offset < end).then_some(self.seen);
        while let Some(start) = next {
            let decoded = match &self.keys {
                Keys::Exposition(keys) => decode(body, start, &options, &hasher, keys),
                Keys::Json(keys) => json_lines::decode(body, start, &hasher, keys),
            };
            let decoded = decoded.map_err(|error| failed(&error.into()))?;
            next = decoded.rest;
            take(decoded)?;
        }
        let line = self.seen.line + count_lines(&self.bytes[self.seen.offset..end]);
        self.seen = Start { offset: end, line };
        Ok(())
    }

    /// The same of lines that were all looked at, without decoding those again that were kept.
    fn decode_kept(
        &mut self,
        app: &App,
        end: usize,
        looked: &mut Looked,
        take: &mut dyn FnMut(Decoded<'_>) -> Result<(), CopyError>,
    ) -> Result<(), CopyError> {
        match looked.give((&self.bytes, self.keys.decoder()), take)? {
            true => Ok(()),
            false => self.decode(app, end, take),
        }
    }

    /// Forgets what was stored.
    fn drop_seen(&mut self) {
        self.bytes.drain(..self.seen.offset);
        self.end -= self.seen.offset;
        self.seen.offset = 0;
    }

    /// The line that is not whole yet.
    fn last(&self) -> &[u8] {
        &self.bytes[self.end..]
    }

    /// Where the last line ends, without the mark that some clients end a `COPY` with.
    fn end_of_all(&self) -> usize {
        let kept = self.bytes.strip_suffix(b"\n").unwrap_or(&self.bytes);
        match kept.strip_suffix(b"\\.") {
            Some(kept) if kept.last().is_none_or(|byte| *byte == b'\n') => kept.len(),
            _ => self.bytes.len(),
        }
    }
}

impl Copying {
    /// One that has just begun.
    pub fn new(asked: CopyIn, came: Came, keys: Keys, now: i64) -> Copying {
        let lines = Lines {
            bytes: Vec::new(),
            held: None,
            held_size: 0,
            beside: 0,
            seen: Start::default(),
            end: 0,
            keys,
            now,
            format: came.format(),
        };
        let reader = match (&asked.given, came) {
            (Given::Rows(rows), Came::Rows(_)) => Some(RowReader::new(rows.clone())),
            _ => None,
        };
        Copying {
            asked,
            came,
            reader,
            file: None,
            unread: Vec::new(),
            made: Vec::new(),
            ends: None,
            lines,
            outcome: Outcome::default(),
            received: 0,
            pace: Pace::start(),
            rejected: 0,
            checked: HashSet::new(),
            looked: Looked::default(),
        }
    }

    /// The same, which may take so long.
    #[must_use]
    pub fn within(self, time: Option<Duration>) -> Copying {
        // A time that no clock can say never comes.
        let ends = time.and_then(|time| Instant::now().checked_add(time).map(|at| (at, time)));
        Copying { ends, ..self }
    }

    /// When it has to end, and how long it may take.
    pub fn ends(&self) -> Option<(Instant, Duration)> {
        self.ends
    }

    /// Receive rate, if the COPY holds memory.
    pub fn pace(&self) -> Option<Pace> {
        (self.lines.held_size != 0).then_some(self.pace)
    }

    /// Takes a piece. Returns whether there is so much that [`Copying::read`] should follow.
    ///
    /// # Errors
    /// When it is more than one `COPY` may be, a line is longer than one may be, or others hold the
    /// memory for it.
    pub async fn push(&mut self, piece: &[u8], memory: &BodyMemory) -> Result<bool, CopyError> {
        self.received += piece.len();
        self.pace.receive(piece.len());
        let is_file = matches!(self.came, Came::Parquet);
        if is_file && WHOLE_SIZE_MAX < self.unread.len() + piece.len() {
            let words = format!("a Parquet file of more than {WHOLE_SIZE_MAX} bytes");
            let hint = "Its last bytes say how it is read, so it is kept whole: copy it in parts, or \
                        FROM a file in the directory of --sql.files-dir.";
            return Err(self.too_much(words, Some(hint.to_string())));
        }
        let waiting_size = match &self.reader {
            Some(reader) => reader.waiting_size(),
            None if is_file => 0,
            None => return self.push_lines(piece, memory).await,
        };
        // Of a file all stays until the end, in a vector that doubles.
        let unread = (self.unread.len() + piece.len()) * if is_file { 2 } else { 1 };
        let beside = waiting_size + unread;
        self.lines.beside = beside.next_multiple_of(SHARE_UNIT);
        let held = self.lines.hold(self.lines.bytes.capacity(), memory).await;
        held.map_err(|failure| failed(&failure))?;
        self.unread.extend_from_slice(piece);
        Ok(!is_file && PIECE_SIZE <= self.unread.len())
    }

    /// Takes a Parquet file that is there. Its rows are read by [`Copying::read_some`].
    pub fn take_file(&mut self, file: FileReader) {
        self.file = Some(file);
    }

    /// Makes lines of some rows of the Parquet file; whether there are more.
    ///
    /// # Errors
    /// When it is none, and of a bad row.
    pub fn read_some(&mut self, _: &App) -> Result<bool, CopyError> {
        let Given::Parquet(ParquetIn { columns, .. }) = &self.asked.given else { return Ok(false) };
        if self.file.is_none() {
            let bytes = Source::Memory(std::mem::take(&mut self.unread).into());
            let opened = FileReader::open(bytes, columns.as_deref(), self.lines.now);
            self.file = Some(opened.map_err(|error| of_file(&self.asked, error))?);
        }
        let Some(file) = &mut self.file else { return Ok(false) };
        while self.made.len() < PIECE_SIZE {
            let read = file.push_lines(self.asked.skips_errors, &mut self.made);
            let read = read.map_err(|error| of_row(&self.asked, error))?;
            self.rejected += read.rejected;
            if !read.has_more {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Makes lines of what came of rows. A row may be long, and take its time.
    ///
    /// # Errors
    /// Of a bad row.
    pub fn read(&mut self, _: &App) -> Result<(), CopyError> {
        let Some(reader) = &mut self.reader else { return Ok(()) };
        let unread = std::mem::take(&mut self.unread);
        let read = reader.push(&unread, self.asked.skips_errors, &mut self.made);
        self.rejected += read.map_err(|error| of_row(&self.asked, error))?;
        Ok(())
    }

    /// The same of all that came: the last row may lack its end.
    ///
    /// # Errors
    /// As [`Copying::read`], and when what came ends within a row.
    pub fn read_last(&mut self, app: &App) -> Result<(), CopyError> {
        self.read(app)?;
        let Some(reader) = &mut self.reader else { return Ok(()) };
        let read = reader.finish(self.asked.skips_errors, &mut self.made);
        self.rejected += read.map_err(|error| of_row(&self.asked, error))?;
        Ok(())
    }

    /// Takes the lines that were made. Returns whether there is so much that [`Copying::work`] should
    /// follow.
    ///
    /// # Errors
    /// As [`Copying::push`].
    pub async fn push_made(&mut self, memory: &BodyMemory) -> Result<bool, CopyError> {
        let made = std::mem::take(&mut self.made);
        self.push_lines(&made, memory).await
    }

    async fn push_lines(&mut self, piece: &[u8], memory: &BodyMemory) -> Result<bool, CopyError> {
        if !self.asked.skips_errors && WHOLE_SIZE_MAX < self.lines.bytes.len() + piece.len() {
            let words = format!("more than {WHOLE_SIZE_MAX} bytes cannot be stored as a whole");
            let hint = match self.came {
                Came::Copied | Came::Rows(_) | Came::Parquet => {
                    "Copy it in parts, or WITH (ON_ERROR ignore), which stores as it goes."
                }
                Came::Inserted(_) => "Insert it in parts.",
            }
            .to_string();
            return Err(self.too_much(words, Some(hint)));
        }
        if self.reader.is_none() {
            self.lines.beside = self.looked.size().next_multiple_of(SHARE_UNIT);
            let held = self.lines.hold(self.lines.bytes.capacity(), memory).await;
            held.map_err(|failure| failed(&failure))?;
        }
        self.lines.push(piece, memory).await.map_err(|failure| failed(&failure))?;
        if LINE_SIZE_MAX < self.lines.last().len() {
            let words = format!("a line of more than {LINE_SIZE_MAX} bytes");
            return Err(self.too_much(words, None));
        }
        Ok(PIECE_SIZE <= self.lines.end.saturating_sub(self.lines.seen.offset))
    }

    fn too_much(&self, message: String, hint: Option<String>) -> CopyError {
        let unseen = &self.lines.bytes[self.lines.seen.offset..];
        let line = self.lines.seen.line + count_lines(unseen);
        let context = Some(self.came.place(&self.asked.table, line));
        CopyError { code: "54000", message, context, hint }
    }

    /// Looks at the whole lines that came, or stores them.
    ///
    /// # Errors
    /// A bad line, or a store that takes nothing.
    pub fn work(&mut self, app: &App) -> Result<(), CopyError> {
        self.work_until(app, self.lines.end)
    }

    fn work_until(&mut self, app: &App, end: usize) -> Result<(), CopyError> {
        match self.asked.skips_errors {
            true => {
                self.store(app, end)?;
                self.lines.drop_seen();
                self.check_rejected()
            }
            false => self.look(app, end),
        }
    }

    /// Ends it: what came is stored and on disk.
    ///
    /// # Errors
    /// As [`Copying::work`].
    pub fn finish(&mut self, app: &App) -> Result<Copied, CopyError> {
        let end = self.lines.end_of_all();
        self.work_until(app, end)?;
        if !self.asked.skips_errors {
            self.lines.seen = Start::default();
            self.store(app, end)?;
        }
        let finished = self.outcome.finish(app, Protocol::Postgres, self.received);
        finished.map_err(|failure| failed(&failure))?;
        Ok(Copied { samples: self.outcome.samples, rejected: self.rejected })
    }

    /// Decodes lines to find bad ones.
    fn look(&mut self, app: &App, end: usize) -> Result<(), CopyError> {
        let (checked, looked, mut bad) = (&mut self.checked, &mut self.looked, None);
        let all = self.lines.decode(app, end, &mut |decoded| {
            let unknown = app.store.unknown_keys(&decoded.batch);
            let bad_key = first_bad_key(&decoded.batch, &unknown, checked);
            let bad_line = decoded.errors.kept().first().cloned();
            let bad_time = app.store.first_refused_time(&decoded.batch).map(|(at, reason)| {
                LineError { position: decoded.batch.rows[at].position, reason }
            });
            let all = [bad_key, bad_line, bad_time].into_iter().flatten();
            bad = all.min_by_key(|one| one.position);
            // What is said is made below, where all lines can be seen.
            if bad.is_some() {
                return Err(CopyError::default());
            }
            looked.keep(decoded);
            Ok(())
        });
        match bad {
            Some(error) => Err(self.bad_line(&error)),
            None => all,
        }
    }

    fn store(&mut self, app: &App, end: usize) -> Result<(), CopyError> {
        let (outcome, rejected, mut bad) = (&mut self.outcome, &mut self.rejected, None);
        let skips = self.asked.skips_errors;
        let mut take = |decoded: Decoded<'_>| {
            let durability = Durability::Relaxed;
            let (refused, before) = (decoded.errors.count(), outcome.rejected);
            outcome.append(app, decoded, durability).map_err(|failure| failed(&failure))?;
            *rejected += refused + (outcome.rejected - before);
            bad = outcome
                .rejections
                .first()
                .filter(|_| !skips)
                .map(|row| LineError { position: row.position, reason: row.reason.clone() });
            bad.as_ref().map_or(Ok(()), |_| Err(CopyError::default()))
        };
        let stored = match skips {
            true => self.lines.decode(app, end, &mut take),
            false => self.lines.decode_kept(app, end, &mut self.looked, &mut take),
        };
        if let Some(error) = bad {
            return Err(self.bad_line(&error));
        }
        stored?;
        // Once for all of them: the last lines may be comments, or refused.
        app.store.wait_durable().map_err(|error| failed(&Failure::of_write(error)))
    }

    fn check_rejected(&self) -> Result<(), CopyError> {
        match self.asked.reject_limit.filter(|limit| *limit < self.rejected) {
            Some(limit) => Err(CopyError {
                code: "22P02",
                message: format!(
                    "skipped more than REJECT_LIMIT ({limit}) rows due to data type incompatibility"
                ),
                context: Some(format!("COPY {}", self.asked.table)),
                hint: None,
            }),
            None => Ok(()),
        }
    }

    fn bad_line(&self, error: &LineError) -> CopyError {
        let nth = error.position.saturating_sub(1) as usize;
        let mut lines = self.lines.bytes.split(|byte| *byte == b'\n');
        let text = lines.nth(nth).unwrap_or_default();
        let place = self.came.place(&self.asked.table, error.position);
        let shown = String::from_utf8_lossy(&text[..text.len().min(SHOWN_SIZE_MAX)]);
        CopyError {
            code: "22P02",
            message: format!("invalid input syntax for prometheus sample: {}", error.reason),
            context: Some(format!("{place}: \"{}\"", shown.trim_end())),
            hint: (!matches!(self.came, Came::Inserted(_))).then(|| LEAVES_OUT.into()),
        }
    }
}

/// Labels are looked at when the store meets a series for the first time: too late for who wants all
/// lines or none. Series that it knows had good ones.
fn first_bad_key(
    batch: &WriteBatch<'_>,
    unknown: &[usize],
    checked: &mut HashSet<u128>,
) -> Option<LineError> {
    let (mut tags, mut name) = (LabelsBuilder::new(), String::new());
    for row in unknown.iter().map(|at| &batch.rows[*at]) {
        if CHECKED_MAX <= checked.len() {
            checked.clear();
        }
        if !checked.insert(row.hash) {
            continue;
        }
        tags.clear();
        name.clear();
        let key = batch.key(row);
        let decoded = batch
            .decoder
            .tags(key, &mut tags)
            .and_then(|()| batch.decoder.metric_name(key, "", &mut name));
        if let Err(error) = decoded {
            return Some(LineError { position: row.position, reason: error.to_string() });
        }
    }
    None
}

fn of_row(asked: &CopyIn, error: RowError) -> CopyError {
    let RowError { code, message, row, column } = error;
    let column = column.map(|column| format!(", column {column}")).unwrap_or_default();
    let context = Some(format!("COPY {}, row {row}{column}", asked.table));
    // Of a binary row nobody knows where the next one begins.
    let is_binary = matches!(&asked.given, Given::Rows(rows) if rows.format == RowFormat::Binary);
    let hint = (!is_binary && !asked.skips_errors).then(|| LEAVES_OUT.to_string());
    CopyError { code, message, context, hint }
}

/// What is wrong with a Parquet file.
pub fn of_file(asked: &CopyIn, error: SqlError) -> CopyError {
    let SqlError { code, message, hint, .. } = error;
    let context = Some(format!("COPY {}", asked.table));
    CopyError { code, message, context, hint: hint.map(str::to_string) }
}

/// What went wrong, with PostgreSQL's code.
pub fn failed(failure: &Failure) -> CopyError {
    let code = match failure.kind {
        Kind::ReadOnly => "25006",
        Kind::Busy => "53000",
        Kind::Limit | Kind::TooLarge => "54000",
        Kind::BadInput => "22P02",
        _ => "58000",
    };
    CopyError {
        code,
        message: failure.message.clone(),
        context: None,
        hint: failure.remedy.clone(),
    }
}

fn count_lines(bytes: &[u8]) -> u32 {
    let count = bytes.iter().filter(|byte| **byte == b'\n').count();
    u32::try_from(count).unwrap_or(u32::MAX)
}
