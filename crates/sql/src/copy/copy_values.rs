//! Bytes of a `COPY .. FROM` in text, CSV and binary, cut into rows of values
//! (<https://www.postgresql.org/docs/15/sql-copy.html#id-1.9.3.55.9>).
//!
//! ```text
//! pieces of any size ─► whole rows ─► values, as many as there are columns
//! ```
//!
//! Lines end as the first one does, in a newline, a carriage return or both. Any other end of a line,
//! but within quotes or behind a backslash, is an error and never a part of a value: half a file
//! would be one row else.
//!
//! No byte is looked at for a row's end twice, however small the pieces are, and a row with too many
//! values is refused at the first of them.

use crate::copy::statement::RowFormat;
use crate::types::error::SqlError;
use model::limits::LINE_SIZE_MAX;
use std::str::from_utf8;

/// What a binary `COPY` begins with.
pub(crate) const SIGNATURE: &[u8] = b"PGCOPY\n\xff\r\n\0";
/// The signature, flags, and how much more there is of the header.
const HEADER_SIZE: usize = SIGNATURE.len() + 8;

/// The values of a row; none where there is null.
pub type Values = Vec<Option<Vec<u8>>>;

/// Takes the values of a row.
pub type Take<'a> = dyn FnMut(Values) -> Result<(), BadRow> + 'a;

/// Cuts what comes into rows of values.
#[derive(Debug)]
pub struct ValuesReader {
    format: RowFormat,
    /// The names of the columns that the values are of.
    columns: Vec<String>,
    /// What came and is no whole row yet.
    pending: Vec<u8>,
    seen: Seen,
    /// How lines end, once one did.
    line_end: Option<LineEnd>,
    /// Rows that came, from 1 on; the header is none.
    row: u32,
    /// Whether what stands before the first row is still to come.
    has_header: bool,
    /// Whether its end was said.
    is_over: bool,
}

/// How far the row that comes was looked at for its end.
#[derive(Clone, Copy, Debug, Default)]
struct Seen {
    /// Bytes of it.
    size: usize,
    /// Whether they end within quotes, or behind a backslash.
    is_open: bool,
    /// Values that are still to come of a binary row, whose count was read.
    fields: Option<usize>,
}

/// What ends a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum LineEnd {
    Newline,
    Return,
    Both,
}

/// Whether more may come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum More {
    MayCome,
    Never,
}

/// A row among bytes.
#[derive(Clone, Copy, Debug)]
struct Found {
    /// Bytes of it without its end.
    size: usize,
    /// The same with its end.
    whole: usize,
}

impl Found {
    fn whole(size: usize) -> Found {
        Found { size, whole: size }
    }
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
    pub column: Option<String>,
}

/// Why a row is none.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BadRow {
    /// PostgreSQL's code for it.
    pub code: &'static str,
    /// What is wrong.
    pub message: String,
    /// The column, where it is one's.
    pub column: Option<String>,
}

impl From<SqlError> for BadRow {
    fn from(error: SqlError) -> BadRow {
        BadRow { code: error.code, message: error.message, column: None }
    }
}

impl BadRow {
    /// One of a whole row.
    pub fn new(code: &'static str, message: impl Into<String>) -> BadRow {
        BadRow { code, message: message.into(), column: None }
    }

    /// The same, said of a column.
    #[must_use]
    pub fn of_column(self, name: &str) -> BadRow {
        BadRow { column: Some(name.to_string()), ..self }
    }
}

impl ValuesReader {
    /// Of rows that begin, with a value for each of the named columns.
    pub fn new(format: RowFormat, columns: Vec<String>) -> ValuesReader {
        let has_header = match &format {
            RowFormat::Text { has_header, .. } | RowFormat::Csv { has_header, .. } => *has_header,
            RowFormat::Binary => true,
        };
        ValuesReader {
            format,
            columns,
            pending: Vec::new(),
            seen: Seen::default(),
            line_end: None,
            row: 0,
            has_header,
            is_over: false,
        }
    }

    /// Bytes of what came and is no whole row yet.
    pub fn waiting_size(&self) -> usize {
        self.pending.capacity()
    }

    /// Takes a piece and hands on the values of its whole rows. Bad rows, and those that `take`
    /// finds to be bad, are left out where `skips`; returns how many.
    ///
    /// # Errors
    /// Of a bad row, and of one that does not end.
    pub fn push(
        &mut self,
        piece: &[u8],
        skips: bool,
        take: &mut Take<'_>,
    ) -> Result<u64, RowError> {
        self.pending.extend_from_slice(piece);
        let rejected = self.take_rows(skips, More::MayCome, take)?;
        match LINE_SIZE_MAX < self.pending.len() {
            true => Err(self.failed(too_long(), 1)),
            false => Ok(rejected),
        }
    }

    /// Hands on the values of the last row, which may lack its end.
    ///
    /// # Errors
    /// As [`ValuesReader::push`], and when what came ends within a row.
    pub fn finish(&mut self, skips: bool, take: &mut Take<'_>) -> Result<u64, RowError> {
        if let Some(why) = self.cut() {
            return Err(self.failed(why, 1));
        }
        self.take_rows(skips, More::Never, take)
    }

    /// What is wrong if nothing more comes.
    fn cut(&self) -> Option<BadRow> {
        let size = self.pending.len();
        let words = match &self.format {
            RowFormat::Csv { .. } if self.seen.is_open => "unterminated CSV quoted field",
            RowFormat::Binary if self.has_header && size < SIGNATURE.len() => {
                "COPY file signature not recognized"
            }
            RowFormat::Binary if self.has_header => "invalid COPY file header (wrong length)",
            // Without its mark the end is one as well, and half of a count is none: as in PostgreSQL.
            RowFormat::Binary if size_of::<i16>() <= size => "unexpected EOF in COPY data",
            _ => return None,
        };
        (!self.is_over).then(|| BadRow::new("22P04", words))
    }

    fn take_rows(&mut self, skips: bool, more: More, take: &mut Take<'_>) -> Result<u64, RowError> {
        let (mut start, mut rejected) = (0, 0);
        let mut pending = std::mem::take(&mut self.pending);
        while !self.is_over {
            let rest = &pending[start..];
            let found = match self.first_row(rest, more) {
                Ok(Some(found)) => found,
                Ok(None) => break,
                Err(why) => return Err(self.failed(why, 1)),
            };
            let row = &rest[..found.size];
            (start, self.seen) = (start + found.whole, Seen::default());
            if std::mem::take(&mut self.has_header) || self.is_end(row) {
                continue;
            }
            self.row = self.row.saturating_add(1);
            if let Err(why) = self.values(row).and_then(&mut *take) {
                rejected += 1;
                // What cannot be cut into values cannot be passed over either.
                if !skips || self.format == RowFormat::Binary {
                    return Err(self.failed(why, 0));
                }
            }
        }
        if self.is_over && self.format == RowFormat::Binary && start < pending.len() {
            let why = BadRow::new("22P04", "received copy data after EOF marker");
            return Err(self.failed(why, 1));
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
        self.is_over = match &self.format {
            RowFormat::Binary => row == NO_MORE,
            _ => row == b"\\.",
        };
        self.is_over
    }

    /// The first row; none while there is no whole one.
    fn first_row(&mut self, bytes: &[u8], more: More) -> Result<Option<Found>, BadRow> {
        let quotes = match &self.format {
            RowFormat::Binary if self.has_header => return header_size(bytes).map(whole),
            RowFormat::Binary => {
                return self.seen.tuple_size(bytes, self.columns.len()).map(whole);
            }
            RowFormat::Text { .. } => None,
            RowFormat::Csv { quote, escape, .. } => Some((*quote, *escape)),
        };
        let found = self.seen.line(bytes, quotes, more, &mut self.line_end)?;
        // The last line may lack its end.
        let is_rest = found.is_none() && more == More::Never && !bytes.is_empty();
        Ok(if is_rest { Some(Found::whole(bytes.len())) } else { found })
    }

    fn values(&self, row: &[u8]) -> Result<Values, BadRow> {
        let count = self.columns.len();
        let values = match &self.format {
            RowFormat::Text { delimiter, null, .. } => {
                text_values(row, *delimiter, null.as_bytes(), count)
            }
            RowFormat::Csv { delimiter, null, quote, escape, .. } => {
                csv_values(row, *delimiter, null.as_bytes(), (*quote, *escape), count)
            }
            RowFormat::Binary => return binary_values(row),
        };
        if let Some(name) = self.columns.get(values.len()) {
            return Err(BadRow::new("22P04", format!("missing data for column \"{name}\"")));
        }
        match count < values.len() {
            true => Err(BadRow::new("22P04", "extra data after last expected column")),
            false => Ok(values),
        }
    }
}

/// What stands in place of a binary row's count of values behind the last one.
const NO_MORE: [u8; 2] = (-1i16).to_be_bytes();

fn too_long() -> BadRow {
    BadRow::new("54000", format!("a row of more than {LINE_SIZE_MAX} bytes"))
}

impl Seen {
    /// The first line: none ends within quotes, or behind a backslash where there are none.
    fn line(
        &mut self,
        bytes: &[u8],
        quotes: Option<(u8, u8)>,
        more: More,
        known: &mut Option<LineEnd>,
    ) -> Result<Option<Found>, BadRow> {
        let mut at = self.size;
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
                _ if matches!(byte, b'\n' | b'\r') && !self.is_open => {
                    let Some(end) = line_end(&bytes[at..], *known, more) else { break };
                    if known.get_or_insert(end) != &end {
                        return Err(other_end(*byte, quotes.is_some()));
                    }
                    let end_size = if end == LineEnd::Both { 2 } else { 1 };
                    return Ok(Some(Found { size: at, whole: at + end_size }));
                }
                _ => {}
            }
            at += 1;
        }
        self.size = at;
        Ok(None)
    }

    /// Bytes of a row in binary, which has so many values.
    fn tuple_size(&mut self, bytes: &[u8], count: usize) -> Result<Option<usize>, BadRow> {
        let mut fields = match (self.fields, bytes.first_chunk()) {
            (Some(fields), _) => fields,
            (None, None) => return Ok(None),
            (None, Some(given)) => {
                self.size = given.len();
                let given = i16::from_be_bytes(*given);
                if given.to_be_bytes() != NO_MORE && usize::try_from(given) != Ok(count) {
                    let words = format!("row field count is {given}, expected {count}");
                    return Err(BadRow::new("22P04", words));
                }
                usize::try_from(given).unwrap_or(0)
            }
        };
        self.fields = Some(fields);
        while 0 < fields {
            let Some(head) = bytes[self.size..].first_chunk() else { return Ok(None) };
            let value = match i32::from_be_bytes(*head) {
                -1 => 0,
                size => {
                    usize::try_from(size).map_err(|_| BadRow::new("22P04", "invalid field size"))?
                }
            };
            let end = self.size + head.len() + value;
            if LINE_SIZE_MAX < end {
                return Err(too_long());
            }
            if bytes.len() < end {
                return Ok(None);
            }
            fields -= 1;
            (self.size, self.fields) = (end, Some(fields));
        }
        Ok(Some(self.size))
    }
}

fn whole(size: Option<usize>) -> Option<Found> {
    size.map(Found::whole)
}

/// What ends a line there; none while it depends on what comes next.
fn line_end(bytes: &[u8], known: Option<LineEnd>, more: More) -> Option<LineEnd> {
    let may_be_both = known != Some(LineEnd::Return);
    match bytes {
        [b'\n', ..] => Some(LineEnd::Newline),
        [b'\r', b'\n', ..] if may_be_both => Some(LineEnd::Both),
        [b'\r'] if may_be_both && more == More::MayCome => None,
        _ => Some(LineEnd::Return),
    }
}

/// That a line ends otherwise than the first one did.
fn other_end(byte: u8, is_csv: bool) -> BadRow {
    let how = if is_csv { "unquoted" } else { "literal" };
    let what = if byte == b'\n' { "newline" } else { "carriage return" };
    BadRow::new("22P04", format!("{how} {what} found in data"))
}

/// The values of a line, one more than so many at most.
fn text_values(line: &[u8], delimiter: u8, null: &[u8], count: usize) -> Values {
    let (mut values, mut start, mut at) = (Vec::new(), 0, 0);
    loop {
        match line.get(at) {
            Some(b'\\') => at += 2,
            Some(byte) if *byte != delimiter => at += 1,
            found => {
                let raw = &line[start..at.min(line.len())];
                values.push((raw != null).then(|| unescaped(raw)));
                if found.is_none() || count < values.len() {
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

/// The same of CSV; `quotes` are the quote, and what stands before one within quotes.
fn csv_values(line: &[u8], delimiter: u8, null: &[u8], quotes: (u8, u8), count: usize) -> Values {
    let (quote, escape) = quotes;
    let (mut values, mut value) = (Vec::new(), Vec::new());
    let (mut is_open, mut was_quoted, mut at) = (false, false, 0);
    while at <= line.len() && values.len() <= count {
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
        return Err(BadRow::new("22P04", "COPY file signature not recognized"));
    }
    let Some(header) = bytes.get(..HEADER_SIZE) else { return Ok(None) };
    let number = |at: usize| header[at..].first_chunk().map_or(0, |four| u32::from_be_bytes(*four));
    // The upper half says what must be known to go on; the numbers of rows once stood there.
    if number(SIGNATURE.len()) >> 16 != 0 {
        return Err(BadRow::new("22P04", "unrecognized critical flags in COPY file header"));
    }
    let more = usize::try_from(number(SIGNATURE.len() + 4)).unwrap_or(usize::MAX);
    if LINE_SIZE_MAX < more {
        return Err(BadRow::new("22P04", "invalid COPY file header (wrong length)"));
    }
    Ok((HEADER_SIZE + more <= bytes.len()).then_some(HEADER_SIZE + more))
}

fn binary_values(row: &[u8]) -> Result<Values, BadRow> {
    let cut = || BadRow::new("22P04", "unexpected EOF in COPY data");
    let (count, mut rest) = row.split_first_chunk::<2>().ok_or_else(cut)?;
    let count = usize::try_from(i16::from_be_bytes(*count)).map_err(|_| cut())?;
    let mut values = Vec::with_capacity(count);
    for _ in 0..count {
        let (head, tail) = rest.split_first_chunk::<4>().ok_or_else(cut)?;
        let size = usize::try_from(i32::from_be_bytes(*head)).ok();
        let (value, tail) = tail.split_at_checked(size.unwrap_or(0)).ok_or_else(cut)?;
        values.push(size.map(|_| value.to_vec()));
        rest = tail;
    }
    Ok(values)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text() -> RowFormat {
        RowFormat::Text { delimiter: b'\t', null: "\\N".into(), has_header: false }
    }

    fn csv(has_header: bool) -> RowFormat {
        let (quote, escape) = (b'"', b'"');
        RowFormat::Csv { delimiter: b',', null: String::new(), quote, escape, has_header }
    }

    /// Rows of two values, in pieces of each size: values stand apart by `|`, rows by `;`.
    #[track_caller]
    fn check(format: &RowFormat, bytes: &[u8], expected: &str) {
        for size in 1..=bytes.len().clamp(1, 9) {
            let mut reader = ValuesReader::new(format.clone(), vec!["a".into(), "b".into()]);
            let mut rows = Vec::new();
            let mut take = |values: Values| {
                let shown = |value: Option<Vec<u8>>| {
                    value.map_or("NULL".to_string(), |value| value.escape_ascii().to_string())
                };
                rows.push(values.into_iter().map(shown).collect::<Vec<_>>().join("|"));
                Ok(())
            };
            let pushed = bytes
                .chunks(size)
                .try_for_each(|piece| reader.push(piece, false, &mut take).map(drop));
            let done = pushed.and_then(|()| reader.finish(false, &mut take).map(drop));
            let found = match done {
                Ok(()) => rows.join(";"),
                Err(RowError { code, message, row, .. }) => format!("{code} {message} {row}"),
            };
            assert_eq!(found, expected, "in pieces of {size}: {}", bytes.escape_ascii());
        }
    }

    #[test]
    fn lines_end_as_the_first_one_does() {
        for end in ["\n", "\r", "\r\n"] {
            let lines = |all: &[&str]| all.join(end).into_bytes();
            check(&csv(true), &lines(&["h,i", "1,2", "3,4"]), "1|2;3|4");
            check(&csv(true), &lines(&["h,i", "1,2", "3,4", ""]), "1|2;3|4");
            check(&text(), &lines(&["1\t2", "3\t\\N", "\\.", "not looked at"]), "1|2;3|NULL");
        }
        check(&csv(false), b"1,\"a\rb\nc\r\nd\"\n", "1|a\\rb\\nc\\r\\nd");
        check(&text(), b"1\ta\\\rb\\\nc\n", "1|a\\rb\\nc");
        let (bare, newline) = ("carriage return found in data", "newline found in data");
        for (lines, what, row) in [
            (&b"1,2\n3,4\r\n"[..], bare, 2),
            (b"1,2\n3,4\r5", bare, 2),
            (b"1,2\r\n3,4\n", newline, 2),
            (b"1,2\r\n3,4\r5,6\r\n", bare, 2),
            (b"1,2\r3,4\n", newline, 2),
            (b"1,2\r3,4\r\n", newline, 3),
            (b"1,2\r\n3,4\r", bare, 2),
        ] {
            check(&csv(false), lines, &format!("22P04 unquoted {what} {row}"));
            let lines: Vec<u8> =
                lines.iter().map(|byte| if *byte == b',' { b'\t' } else { *byte }).collect();
            check(&text(), &lines, &format!("22P04 literal {what} {row}"));
        }
    }

    #[test]
    fn too_many_values_are_refused_at_the_first() {
        assert_eq!(text_values(&[b'\t'; 1000], b'\t', b"", 2).len(), 3);
        assert_eq!(csv_values(&[b','; 1000], b',', b"", (b'"', b'"'), 2).len(), 3);
        check(&text(), b"1\t2\t\n", "22P04 extra data after last expected column 1");
        check(&csv(false), b"1,2\n3,4,\n", "22P04 extra data after last expected column 2");
        check(&csv(false), b"1\n", "22P04 missing data for column \"b\" 1");
    }

    fn binary(rows: &[&[Option<&[u8]>]], end: &[u8]) -> Vec<u8> {
        let mut bytes = [SIGNATURE, &[0; 8]].concat();
        for row in rows {
            bytes.extend_from_slice(&i16::try_from(row.len()).unwrap().to_be_bytes());
            for value in *row {
                let size = value.map_or(-1, |value| i32::try_from(value.len()).unwrap());
                bytes.extend_from_slice(&size.to_be_bytes());
                bytes.extend_from_slice(value.unwrap_or_default());
            }
        }
        bytes.extend_from_slice(end);
        bytes
    }

    #[test]
    fn binary_ends_with_its_mark_or_without() {
        let row: &[Option<&[u8]>] = &[Some(b"x"), None];
        let end = &(-1i16).to_be_bytes()[..];
        let check = |bytes: &[u8], expected| check(&RowFormat::Binary, bytes, expected);
        check(&binary(&[row, row], end), "x|NULL;x|NULL");
        check(&binary(&[row], b""), "x|NULL");
        check(&binary(&[row], &end[..1]), "x|NULL");
        check(&binary(&[], b""), "");
        let after = [end, b"\n"].concat();
        check(&binary(&[row], &after), "22P04 received copy data after EOF marker 2");
        check(&binary(&[row], b"\0\x02\0"), "22P04 unexpected EOF in COPY data 2");
        check(&binary(&[&[None]], end), "22P04 row field count is 1, expected 2 1");
        check(&binary(&[], b"\x7f\xff"), "22P04 row field count is 32767, expected 2 1");
        check(&binary(&[], b"\xff\xfe"), "22P04 row field count is -2, expected 2 1");
        check(b"", "22P04 COPY file signature not recognized 1");
        check(&binary(&[], b"")[..15], "22P04 invalid COPY file header (wrong length) 1");
    }

    #[test]
    fn a_binary_row_is_not_looked_at_from_its_start_again() {
        let mut reader = ValuesReader::new(RowFormat::Binary, vec!["a".into(), "b".into()]);
        let mut rows = 0;
        let bytes = binary(&[&[Some(b"1234"), Some(b"5")]], b"");
        for (at, byte) in bytes.iter().enumerate() {
            let mut take = |_| {
                rows += 1;
                Ok(())
            };
            reader.push(&[*byte], false, &mut take).unwrap();
            // The count, a size and its value.
            let seen =
                [(0, 0), (1, 2), (9, 10)].iter().rev().find(|(from, _)| HEADER_SIZE + from <= at);
            let seen = seen.map_or(0, |(_, size)| *size);
            let is_whole = at + 1 == bytes.len();
            assert_eq!(reader.seen.size, if is_whole { 0 } else { seen }, "{at}");
        }
        assert_eq!(rows, 1);
    }
}
