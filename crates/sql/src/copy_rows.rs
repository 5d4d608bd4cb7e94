//! Rows of a `COPY .. FROM` in text, CSV and binary, made lines of exposition text
//! (<https://www.postgresql.org/docs/15/sql-copy.html#id-1.9.3.55.9>).
//!
//! ```text
//! pieces of any size ─► whole rows ─► values ─► lines, which are looked at and stored as others
//! ```

use crate::copy::{RowFormat, RowsIn};
use crate::error::SqlError;
use crate::insert::{Parts, missing, push_one};
use crate::instants::instant_of;
use crate::tables::Column;
use model::limits::LINE_SIZE_MAX;
use std::str::from_utf8;
use wire::exposition::Format;

/// What a binary `COPY` begins with.
const SIGNATURE: &[u8] = b"PGCOPY\n\xff\r\n\0";
/// The signature, flags, and how much more there is of the header.
const HEADER_SIZE: usize = SIGNATURE.len() + 8;
/// Microseconds from 1970 to 2000, from which PostgreSQL counts.
const EPOCH_US: i64 = 946_684_800_000_000;
/// Bytes of a value that an error shows.
const SHOWN_SIZE_MAX: usize = 100;

/// The values of a row; none where there is null.
type Values = Vec<Option<Vec<u8>>>;

/// Makes lines of rows.
#[derive(Debug)]
pub struct RowReader {
    rows: RowsIn,
    /// What came and is no whole row yet.
    pending: Vec<u8>,
    /// How far it was looked at for its end.
    seen: usize,
    /// Whether what was looked at ends within quotes, or behind a backslash.
    is_open: bool,
    /// Rows that came, from 1 on; the header is none.
    row: u32,
    /// Whether what stands before the first row is still to come.
    has_header: bool,
    /// Whether its end was said.
    is_over: bool,
}

/// Why rows could not be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RowError {
    /// PostgreSQL's code for it.
    pub code: &'static str,
    /// What is wrong.
    pub message: String,
    /// The row, from 1 on.
    pub row: u32,
    /// The column, where it is one's.
    pub column: Option<&'static str>,
}

/// Why a row is none.
struct BadRow {
    code: &'static str,
    message: String,
    column: Option<&'static str>,
}

impl From<SqlError> for BadRow {
    fn from(error: SqlError) -> BadRow {
        BadRow { code: error.code, message: error.message, column: None }
    }
}

fn bad(code: &'static str, message: impl Into<String>) -> BadRow {
    BadRow { code, message: message.into(), column: None }
}

impl RowReader {
    /// Of rows that begin.
    pub fn new(rows: RowsIn) -> RowReader {
        let has_header = match &rows.format {
            RowFormat::Text { has_header, .. } | RowFormat::Csv { has_header, .. } => *has_header,
            RowFormat::Binary => true,
        };
        let (pending, is_over) = (Vec::new(), false);
        RowReader { rows, pending, seen: 0, is_open: false, row: 0, has_header, is_over }
    }

    /// Bytes of what came and is no whole row yet.
    pub fn waiting_size(&self) -> usize {
        self.pending.capacity()
    }

    /// What the lines are written in.
    pub fn line_format(rows: &RowsIn) -> Format {
        match rows.columns.as_slice() {
            [Column::Sample] => Format::Text,
            _ => Format::OpenMetrics,
        }
    }

    /// Takes a piece and appends the lines of its whole rows. Bad rows are left out where `skips`;
    /// returns how many.
    ///
    /// # Errors
    /// Of a bad row, and of one that does not end.
    pub fn push(&mut self, piece: &[u8], skips: bool, out: &mut Vec<u8>) -> Result<u64, RowError> {
        self.pending.extend_from_slice(piece);
        let rejected = self.take_rows(skips, out)?;
        match LINE_SIZE_MAX < self.pending.len() {
            true => {
                let words = format!("a row of more than {LINE_SIZE_MAX} bytes");
                Err(self.failed(bad("54000", words), 1))
            }
            false => Ok(rejected),
        }
    }

    /// Appends the line of the last row, which may lack its end.
    ///
    /// # Errors
    /// As [`RowReader::push`], and when what came ends within a row.
    pub fn finish(&mut self, skips: bool, out: &mut Vec<u8>) -> Result<u64, RowError> {
        let is_cut = match &self.rows.format {
            RowFormat::Binary => !self.is_over,
            RowFormat::Csv { .. } => !self.is_over && self.is_open,
            RowFormat::Text { .. } => false,
        };
        if is_cut {
            let words = match &self.rows.format {
                RowFormat::Csv { .. } => "unterminated CSV quoted field",
                _ => "unexpected EOF in COPY data",
            };
            return Err(self.failed(bad("22P04", words), 1));
        }
        if self.pending.is_empty() || self.is_over {
            return Ok(0);
        }
        // A backslash at the very end escapes nothing.
        self.is_open = false;
        self.pending.push(b'\n');
        self.take_rows(skips, out)
    }

    fn take_rows(&mut self, skips: bool, out: &mut Vec<u8>) -> Result<u64, RowError> {
        let (mut start, mut rejected) = (0, 0);
        let mut pending = std::mem::take(&mut self.pending);
        while !self.is_over {
            let rest = &pending[start..];
            let size = match self.row_size(rest) {
                Ok(Some(size)) => size,
                Ok(None) => break,
                Err(why) => return Err(self.failed(why, 1)),
            };
            let (row, before) = (&rest[..size], out.len());
            (start, self.seen, self.is_open) = (start + size, 0, false);
            if std::mem::take(&mut self.has_header) || self.is_end(row) {
                continue;
            }
            self.row = self.row.saturating_add(1);
            if let Err(why) = self.push_line(row, out) {
                out.truncate(before);
                rejected += 1;
                // What cannot be cut into values cannot be passed over either.
                if !skips || self.rows.format == RowFormat::Binary {
                    return Err(self.failed(why, 0));
                }
            }
        }
        pending.drain(..if self.is_over { pending.len() } else { start });
        self.pending = pending;
        Ok(rejected)
    }

    fn failed(&self, why: BadRow, ahead: u32) -> RowError {
        let BadRow { code, message, column } = why;
        RowError { code, message, row: self.row.saturating_add(ahead), column }
    }

    /// Whether a row says that there are no more.
    fn is_end(&mut self, row: &[u8]) -> bool {
        self.is_over = match &self.rows.format {
            RowFormat::Binary => row == (-1i16).to_be_bytes(),
            _ => trimmed(row) == b"\\.",
        };
        self.is_over
    }

    /// Bytes of the first row with its end; none while there is no whole one.
    fn row_size(&mut self, bytes: &[u8]) -> Result<Option<usize>, BadRow> {
        match &self.rows.format {
            RowFormat::Binary if self.has_header => header_size(bytes),
            RowFormat::Binary => tuple_size(bytes),
            RowFormat::Text { .. } => Ok(self.line_size(bytes, None)),
            RowFormat::Csv { quote, escape, .. } => {
                let quotes = Some((*quote, *escape));
                Ok(self.line_size(bytes, quotes))
            }
        }
    }

    /// The same of lines: none ends within quotes, or behind a backslash where there are none.
    fn line_size(&mut self, bytes: &[u8], quotes: Option<(u8, u8)>) -> Option<usize> {
        let mut at = self.seen;
        while let Some(byte) = bytes.get(at) {
            match quotes {
                None if self.is_open => self.is_open = false,
                None if *byte == b'\\' => self.is_open = true,
                Some((quote, escape)) if self.is_open && *byte == escape && escape != quote => {
                    // What follows is looked at with it.
                    if at + 1 == bytes.len() {
                        break;
                    }
                    at += 1;
                }
                Some((quote, _)) if *byte == quote => self.is_open = !self.is_open,
                _ if *byte == b'\n' && !self.is_open => return Some(at + 1),
                _ => {}
            }
            at += 1;
        }
        self.seen = at;
        None
    }

    fn push_line(&self, row: &[u8], out: &mut Vec<u8>) -> Result<(), BadRow> {
        let values = match &self.rows.format {
            RowFormat::Text { delimiter, null, .. } => {
                text_values(trimmed(row), *delimiter, null.as_bytes())
            }
            RowFormat::Csv { delimiter, null, quote, escape, .. } => {
                csv_values(trimmed(row), *delimiter, null.as_bytes(), (*quote, *escape))
            }
            RowFormat::Binary => binary_values(row)?,
        };
        let columns = &self.rows.columns;
        if values.len() < columns.len() {
            let column = columns[values.len()].name();
            return Err(bad("22P04", format!("missing data for column \"{column}\"")));
        }
        if columns.len() < values.len() {
            return Err(bad("22P04", "extra data after last expected column"));
        }
        let is_binary = self.rows.format == RowFormat::Binary;
        let mut read = Row::default();
        for (column, value) in columns.iter().zip(&values) {
            // What is in the others as well is not needed.
            if *column == Column::Sample && columns.len() != 1 {
                continue;
            }
            let value = value.as_deref().ok_or_else(|| missing(*column))?;
            let read = read.take(*column, value, is_binary);
            read.map_err(|why| BadRow { column: Some(column.name()), ..why })?;
        }
        read.push_line(out)
    }
}

/// A row whose values are read.
#[derive(Default)]
struct Row<'a> {
    line: Option<&'a str>,
    name: &'a str,
    labels: Option<&'a str>,
    value: f64,
    micros: Option<i64>,
}

impl<'a> Row<'a> {
    fn take(&mut self, column: Column, value: &'a [u8], is_binary: bool) -> Result<(), BadRow> {
        match (column, is_binary) {
            (Column::Time, true) => {
                let since = value.try_into().map(i64::from_be_bytes);
                let since = since.map_err(|_| bad("22P03", "incorrect binary data format"))?;
                let micros = since.checked_add(EPOCH_US);
                self.micros = Some(micros.ok_or_else(|| bad("22008", "timestamp out of range"))?);
            }
            (Column::Value, true) => {
                let value = value.try_into().map(f64::from_be_bytes);
                self.value = value.map_err(|_| bad("22P03", "incorrect binary data format"))?;
            }
            (Column::Labels, true) => {
                let Some((1, text)) = value.split_first().map(|(first, rest)| (*first, rest))
                else {
                    return Err(bad("22P03", "unsupported jsonb version number"));
                };
                self.labels = Some(utf8(text)?);
            }
            (Column::Sample, _) => self.line = Some(utf8(value)?),
            (Column::Name, _) => self.name = utf8(value)?,
            (Column::Labels, false) => self.labels = Some(utf8(value)?),
            (Column::Time, false) => {
                let micros = instant_of(utf8(value)?);
                let words =
                    || format!("invalid input syntax for type timestamptz: {}", shown(value));
                self.micros = Some(micros.ok_or_else(|| bad("22007", words()))?);
            }
            (Column::Value, false) => {
                let words = |_| {
                    let shown = shown(value);
                    bad("22P02", format!("invalid input syntax for type double precision: {shown}"))
                };
                self.value = utf8(value)?.trim().parse().map_err(words)?;
            }
            // It is none of those that can be named.
            (Column::SeriesId, _) => {}
        }
        Ok(())
    }

    fn push_line(&self, out: &mut Vec<u8>) -> Result<(), BadRow> {
        let Row { name, labels, value, micros, .. } = *self;
        match self.line {
            Some(line) => push_one(line, out)?,
            None => Parts { name, labels, value, micros }.push_line(out)?,
        }
        Ok(())
    }
}

fn utf8(bytes: &[u8]) -> Result<&str, BadRow> {
    let words = |_| bad("22021", format!("invalid byte sequence for UTF8: {}", shown(bytes)));
    from_utf8(bytes).map_err(words)
}

fn shown(bytes: &[u8]) -> String {
    format!("\"{}\"", String::from_utf8_lossy(&bytes[..bytes.len().min(SHOWN_SIZE_MAX)]))
}

/// A line without its end.
fn trimmed(line: &[u8]) -> &[u8] {
    let line = line.strip_suffix(b"\n").unwrap_or(line);
    line.strip_suffix(b"\r").unwrap_or(line)
}

fn text_values(line: &[u8], delimiter: u8, null: &[u8]) -> Values {
    let (mut values, mut start, mut at) = (Vec::new(), 0, 0);
    loop {
        match line.get(at) {
            Some(b'\\') => at += 2,
            Some(byte) if *byte != delimiter => at += 1,
            found => {
                let raw = &line[start..at.min(line.len())];
                values.push((raw != null).then(|| unescaped(raw)));
                if found.is_none() {
                    return values;
                }
                at += 1;
                start = at;
            }
        }
    }
}

/// A value whose backslashes mean something.
fn unescaped(raw: &[u8]) -> Vec<u8> {
    let mut value = Vec::with_capacity(raw.len());
    let mut rest = raw;
    while let Some((first, tail)) = rest.split_first() {
        rest = tail;
        let Some((next, tail)) = tail.split_first().filter(|_| *first == b'\\') else {
            value.push(*first);
            continue;
        };
        rest = tail;
        let number = |digits: &[u8], base: u32| {
            let digits = from_utf8(digits).ok()?;
            // PostgreSQL keeps the lower bits of larger ones, too.
            u32::from_str_radix(digits, base).ok().map(|number| number.to_le_bytes()[0])
        };
        match next {
            b'b' => value.push(0x08),
            b'f' => value.push(0x0c),
            b'n' => value.push(b'\n'),
            b'r' => value.push(b'\r'),
            b't' => value.push(b'\t'),
            b'v' => value.push(0x0b),
            b'0'..=b'7' => {
                let more =
                    tail.iter().take(2).take_while(|one| (b'0'..=b'7').contains(one)).count();
                let digits: Vec<u8> = [*next].iter().chain(&tail[..more]).copied().collect();
                value.extend(number(&digits, 8));
                rest = &tail[more..];
            }
            b'x' if tail.first().is_some_and(u8::is_ascii_hexdigit) => {
                let size = tail.iter().take(2).take_while(|one| one.is_ascii_hexdigit()).count();
                value.extend(number(&tail[..size], 16));
                rest = &tail[size..];
            }
            other => value.push(*other),
        }
    }
    value
}

fn csv_values(line: &[u8], delimiter: u8, null: &[u8], quotes: (u8, u8)) -> Values {
    let (quote, escape) = quotes;
    let (mut values, mut value) = (Vec::new(), Vec::new());
    let (mut is_open, mut was_quoted, mut at) = (false, false, 0);
    while at <= line.len() {
        match line.get(at) {
            Some(byte) if is_open => {
                let next = line.get(at + 1);
                if *byte == escape && next.is_some_and(|next| *next == quote || *next == escape) {
                    value.extend(next);
                    at += 1;
                } else if *byte == quote {
                    is_open = false;
                } else {
                    value.push(*byte);
                }
            }
            Some(byte) if *byte == quote => (is_open, was_quoted) = (true, true),
            Some(byte) if *byte != delimiter => value.push(*byte),
            _ => {
                let whole = std::mem::take(&mut value);
                values.push((was_quoted || whole != null).then_some(whole));
                was_quoted = false;
            }
        }
        at += 1;
    }
    values
}

/// Bytes before the first row.
fn header_size(bytes: &[u8]) -> Result<Option<usize>, BadRow> {
    let start = &bytes[..bytes.len().min(SIGNATURE.len())];
    if !SIGNATURE.starts_with(start) {
        return Err(bad("22P04", "COPY file signature not recognized"));
    }
    let Some(header) = bytes.get(..HEADER_SIZE) else { return Ok(None) };
    let number = |at: usize| header[at..].first_chunk().map_or(0, |four| u32::from_be_bytes(*four));
    // The upper half says what must be known to go on; the numbers of rows once stood there.
    if number(SIGNATURE.len()) >> 16 != 0 {
        return Err(bad("22P04", "unrecognized critical flags in COPY file header"));
    }
    let more = usize::try_from(number(SIGNATURE.len() + 4)).unwrap_or(usize::MAX);
    if LINE_SIZE_MAX < more {
        return Err(bad("22P04", "invalid COPY file header (wrong length)"));
    }
    Ok((HEADER_SIZE + more <= bytes.len()).then_some(HEADER_SIZE + more))
}

/// Bytes of a row in binary; none while it is not whole.
fn tuple_size(bytes: &[u8]) -> Result<Option<usize>, BadRow> {
    let Some((count, mut rest)) = bytes.split_first_chunk::<2>() else { return Ok(None) };
    let mut size = count.len();
    for _ in 0..i16::from_be_bytes(*count).max(0) {
        let Some((head, tail)) = rest.split_first_chunk::<4>() else { return Ok(None) };
        let value = match i32::from_be_bytes(*head) {
            -1 => 0,
            size => usize::try_from(size).map_err(|_| bad("22P04", "invalid field size"))?,
        };
        size += head.len() + value;
        if LINE_SIZE_MAX < size {
            return Err(bad("54000", format!("a row of more than {LINE_SIZE_MAX} bytes")));
        }
        let Some(tail) = tail.get(value..) else { return Ok(None) };
        rest = tail;
    }
    Ok(Some(size))
}

fn binary_values(row: &[u8]) -> Result<Values, BadRow> {
    let cut = || bad("22P04", "unexpected EOF in COPY data");
    let (count, mut rest) = row.split_first_chunk::<2>().ok_or_else(cut)?;
    let count = usize::try_from(i16::from_be_bytes(*count));
    let count = count.map_err(|_| bad("22P04", "row field count is below zero"))?;
    let mut values = Vec::with_capacity(count.min(Column::OF_SAMPLES.len()));
    for _ in 0..count {
        let (head, tail) = rest.split_first_chunk::<4>().ok_or_else(cut)?;
        let value = match usize::try_from(i32::from_be_bytes(*head)) {
            Ok(size) => {
                let (value, tail) = tail.split_at_checked(size).ok_or_else(cut)?;
                rest = tail;
                Some(value.to_vec())
            }
            Err(_) => {
                rest = tail;
                None
            }
        };
        values.push(value);
    }
    Ok(values)
}

/// Reads bytes as rows of each format, for the fuzzers.
///
/// # Panics
/// When reading does, or pieces of another size give other lines.
pub fn fuzz_rows(data: &[u8]) {
    let columns = vec![Column::Time, Column::Name, Column::Value, Column::Labels];
    let null = || "\\N".to_string();
    let formats = [
        RowFormat::Text { delimiter: b'\t', null: null(), has_header: false },
        RowFormat::Csv {
            delimiter: b',',
            null: null(),
            quote: b'"',
            escape: b'"',
            has_header: true,
        },
        RowFormat::Csv {
            delimiter: b';',
            null: null(),
            quote: b'\'',
            escape: b'\\',
            has_header: false,
        },
        RowFormat::Binary,
    ];
    for format in formats {
        let read = |size: usize| {
            let mut reader =
                RowReader::new(RowsIn { columns: columns.clone(), format: format.clone() });
            let mut out = Vec::new();
            for piece in data.chunks(size.max(1)) {
                if let Err(error) = reader.push(piece, true, &mut out) {
                    return (out, Some(error.code));
                }
            }
            let ended = reader.finish(true, &mut out);
            (out, ended.err().map(|error| error.code))
        };
        let whole = read(data.len());
        assert_eq!(whole.1, read(1).1, "{format:?}");
        assert_eq!(whole.0, read(3).0, "{format:?}");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PARTS: [Column; 4] = [Column::Time, Column::Name, Column::Value, Column::Labels];

    fn text(null: &str) -> RowFormat {
        RowFormat::Text { delimiter: b'\t', null: null.to_string(), has_header: false }
    }

    fn csv(has_header: bool) -> RowFormat {
        let (quote, escape) = (b'"', b'"');
        RowFormat::Csv { delimiter: b',', null: String::new(), quote, escape, has_header }
    }

    /// The lines of rows, in pieces of each size.
    fn lines(columns: &[Column], format: &RowFormat, bytes: &[u8]) -> Result<String, String> {
        let all = (1..=bytes.len().min(9)).map(|size| {
            let rows = RowsIn { columns: columns.to_vec(), format: format.clone() };
            let (mut reader, mut out) = (RowReader::new(rows), Vec::new());
            let pushed = bytes
                .chunks(size)
                .try_for_each(|piece| reader.push(piece, false, &mut out).map(drop));
            let done = pushed.and_then(|()| reader.finish(false, &mut out).map(drop));
            let said = |error: RowError| {
                let column = error.column.map(|one| format!(", column {one}")).unwrap_or_default();
                format!("{} {} COPY t, row {}{column}", error.code, error.message, error.row)
            };
            done.map(|()| String::from_utf8(out).unwrap()).map_err(said)
        });
        let all: Vec<_> = all.collect();
        assert!(all.windows(2).all(|two| two[0] == two[1]), "{all:?}");
        all.into_iter().next().unwrap_or(Ok(String::new()))
    }

    #[test]
    fn rows_of_text_become_lines() {
        let rows = b"2024-02-29 12:00:00.25+00\tup\t1.5\t{\"a\": \"b\\\\\"c\"}\r\n\
                     epoch\ta b\\x41\\101\tNaN\t{}\n\\.\nwhat follows is not looked at";
        let expected = "up{a=\"b\\\"c\"} 1.5 1709208000.250000\n{\"a bAA\"} NaN 0.000000\n";
        assert_eq!(lines(&PARTS, &text("\\N"), rows).unwrap(), expected);
        let line = lines(&[Column::Sample], &text("\\N"), b"up{a=\"x\\ty\"} 1");
        assert_eq!(line.unwrap(), "up{a=\"x\ty\"} 1\n");
        for (row, expected) in [
            (&b"epoch\ta\t1"[..], "22P04 missing data for column \"labels\" COPY t, row 1"),
            (b"epoch\ta\t1\t{}\t", "22P04 extra data after last expected column COPY t, row 1"),
            (b"epoch\ta\t\\N\t{}", "23502 null value in column \"value\" COPY t, row 1"),
            (
                b"epoch\ta\tx\t{}",
                "22P02 invalid input syntax for type double precision: \"x\" COPY t, row 1, column value",
            ),
            (
                b"epoch\ta\t1\t{}\nnever\ta\t1\t{}\n",
                "22007 invalid input syntax for type timestamptz: \"never\" COPY t, row 2, column time",
            ),
            (
                b"epoch\ta\xff\t1\t{}",
                "22021 invalid byte sequence for UTF8: \"a\u{fffd}\" COPY t, row 1, column name",
            ),
        ] {
            assert_eq!(lines(&PARTS, &text("\\N"), row).unwrap_err(), expected);
        }
    }

    #[test]
    fn rows_of_csv_become_lines() {
        let rows = b"time,name,value,labels\r\n1970-01-01,up,1,\"{\"\"a\"\": \"\"b,c\"\"}\"\r\n\
                     1970-01-01,\"a\nb\",-Infinity,{}";
        let expected = "up{a=\"b,c\"} 1 0.000000\n{\"a\\nb\"} -Inf 0.000000\n";
        assert_eq!(lines(&PARTS, &csv(true), rows).unwrap(), expected);
        let all = Column::OF_SAMPLES;
        let rows = b"not looked at,1970-01-01,up,1,{}\n";
        assert_eq!(lines(&all, &csv(false), rows).unwrap(), "up 1 0.000000\n");
        let cut = lines(&PARTS, &csv(false), b"1970-01-01,\"up").unwrap_err();
        assert_eq!(cut, "22P04 unterminated CSV quoted field COPY t, row 1");
        let null = lines(&PARTS, &csv(false), b"1970-01-01,up,,{}").unwrap_err();
        assert!(null.starts_with("23502"), "{null}");
        let other = RowFormat::Csv {
            delimiter: b';',
            null: "-".into(),
            quote: b'\'',
            escape: b'\\',
            has_header: false,
        };
        let rows = b"epoch;'a\\'b\\\\';1;{}\n";
        assert_eq!(lines(&PARTS, &other, rows).unwrap(), "{\"a'b\\\\\"} 1 0.000000\n");
    }

    #[test]
    fn rows_of_binary_become_lines() {
        let mut rows = SIGNATURE.to_vec();
        rows.extend_from_slice(&[0; 8]);
        let row = |rows: &mut Vec<u8>, values: &[&[u8]]| {
            rows.extend_from_slice(&i16::try_from(values.len()).unwrap().to_be_bytes());
            for value in values {
                rows.extend_from_slice(&i32::try_from(value.len()).unwrap().to_be_bytes());
                rows.extend_from_slice(value);
            }
        };
        let (time, value) = ((-EPOCH_US + 1_500_000).to_be_bytes(), 2.5f64.to_be_bytes());
        row(&mut rows, &[&time, b"up", &value, b"\x01{\"a\": \"b\"}"]);
        let cut = rows.clone();
        rows.extend_from_slice(&(-1i16).to_be_bytes());
        let expected = "up{a=\"b\"} 2.5 1.500000\n";
        assert_eq!(lines(&PARTS, &RowFormat::Binary, &rows).unwrap(), expected);
        let failure = lines(&PARTS, &RowFormat::Binary, &cut).unwrap_err();
        assert!(failure.starts_with("22P04 unexpected EOF"), "{failure}");
        let failure = lines(&PARTS, &RowFormat::Binary, b"up 1\n").unwrap_err();
        assert!(failure.starts_with("22P04 COPY file signature"), "{failure}");
        let mut short = cut.clone();
        row(&mut short, &[&time[..4], b"up", &value, b"\x01{}"]);
        let failure = lines(&PARTS, &RowFormat::Binary, &short).unwrap_err();
        assert_eq!(failure, "22P03 incorrect binary data format COPY t, row 2, column time");
    }
}
