//! Rows of a `COPY .. FROM` into a table of samples, made lines of exposition text.
//!
//! ```text
//! pieces of any size ─► values of a row (copy_values) ─► lines, which are looked at and stored as others
//! ```

use crate::copy::copy_values::{BadRow, RowError, Values, ValuesReader};
use crate::copy::statement::{RowFormat, RowsIn};
use crate::ddl_dml::insert::{Parts, missing, push_one};
use crate::tables::metrics::tables::Column;
use crate::types::time::instants::instant_of;
use std::str::from_utf8;
use wire::exposition::Format;

/// Microseconds from 1970 to 2000, from which PostgreSQL counts.
const EPOCH_US: i64 = 946_684_800_000_000;
/// Bytes of a value that an error shows.
const SHOWN_SIZE_MAX: usize = 100;

/// Makes lines of rows.
#[derive(Debug)]
pub struct RowReader {
    values: ValuesReader,
    columns: Vec<Column>,
    is_binary: bool,
}

impl RowReader {
    /// Of rows that begin.
    pub fn new(rows: RowsIn) -> RowReader {
        let RowsIn { columns, format } = rows;
        let is_binary = format == RowFormat::Binary;
        let names = columns.iter().map(|column| column.name().to_string()).collect();
        RowReader { values: ValuesReader::new(format, names), columns, is_binary }
    }

    /// Bytes of what came and is no whole row yet.
    pub fn waiting_size(&self) -> usize {
        self.values.waiting_size()
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
        let RowReader { values, columns, is_binary } = self;
        values.push(piece, skips, &mut |values| push_line(&values, columns, *is_binary, out))
    }

    /// Appends the line of the last row, which may lack its end.
    ///
    /// # Errors
    /// As [`RowReader::push`], and when what came ends within a row.
    pub fn finish(&mut self, skips: bool, out: &mut Vec<u8>) -> Result<u64, RowError> {
        let RowReader { values, columns, is_binary } = self;
        values.finish(skips, &mut |values| push_line(&values, columns, *is_binary, out))
    }
}

/// Appends the line of a row, whole or not at all.
fn push_line(
    values: &Values,
    columns: &[Column],
    is_binary: bool,
    out: &mut Vec<u8>,
) -> Result<(), BadRow> {
    let mut read = Row::default();
    for (column, value) in columns.iter().zip(values) {
        // What is in the others as well is not needed.
        if *column == Column::Sample && columns.len() != 1 {
            continue;
        }
        let Some(value) = value.as_deref() else {
            match column {
                // As when the column is left out: now, and none.
                Column::Time | Column::Labels => continue,
                _ => return Err(missing(*column).into()),
            }
        };
        read.take(*column, value, is_binary).map_err(|why| why.of_column(column.name()))?;
    }
    let before = out.len();
    read.push_line(out).inspect_err(|_| out.truncate(before))
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
                let since =
                    since.map_err(|_| BadRow::new("22P03", "incorrect binary data format"))?;
                let micros = since.checked_add(EPOCH_US);
                self.micros =
                    Some(micros.ok_or_else(|| BadRow::new("22008", "timestamp out of range"))?);
            }
            (Column::Value, true) => {
                let value = value.try_into().map(f64::from_be_bytes);
                self.value =
                    value.map_err(|_| BadRow::new("22P03", "incorrect binary data format"))?;
            }
            (Column::Labels, true) => {
                let Some((1, text)) = value.split_first().map(|(first, rest)| (*first, rest))
                else {
                    return Err(BadRow::new("22P03", "unsupported jsonb version number"));
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
                self.micros = Some(micros.ok_or_else(|| BadRow::new("22007", words()))?);
            }
            (Column::Value, false) => {
                self.value = number_of(utf8(value)?)?;
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

/// A number as PostgreSQL reads it: one that is too large is no infinity, one too small is not zero.
fn number_of(text: &str) -> Result<f64, BadRow> {
    // No other spaces than those of ASCII.
    let said = text.trim_matches(|one: char| one.is_ascii_whitespace() || one == '\x0b');
    let wrong = |code, words: &str| {
        let shown = shown(text.as_bytes());
        BadRow::new(code, words.replace('?', &shown))
    };
    let number: f64 = said
        .parse()
        .map_err(|_| wrong("22P02", "invalid input syntax for type double precision: ?"))?;
    let (digits, _) = said.split_once(['e', 'E']).unwrap_or((said, ""));
    let is_lost = match number {
        0.0 => digits.contains(|one| ('1'..='9').contains(&one)),
        // The word for it has no digits.
        _ => number.is_infinite() && digits.contains(|one: char| one.is_ascii_digit()),
    };
    match is_lost {
        true => Err(wrong("22003", "? is out of range for type double precision")),
        false => Ok(number),
    }
}

fn utf8(bytes: &[u8]) -> Result<&str, BadRow> {
    let words =
        |_| BadRow::new("22021", format!("invalid byte sequence for UTF8: {}", shown(bytes)));
    from_utf8(bytes).map_err(words)
}

fn shown(bytes: &[u8]) -> String {
    format!("\"{}\"", String::from_utf8_lossy(&bytes[..bytes.len().min(SHOWN_SIZE_MAX)]))
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
    use crate::copy::copy_values::SIGNATURE;

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
        let rows = b"2024-02-29 12:00:00.25+00\tup\t1.5\t{\"a\": \"b\\\\\"c\"}\n\
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
        // Its mark may be missing.
        assert_eq!(lines(&PARTS, &RowFormat::Binary, &cut).unwrap(), expected);
        let failure = lines(&PARTS, &RowFormat::Binary, &cut[..cut.len() - 1]).unwrap_err();
        assert!(failure.starts_with("22P04 unexpected EOF"), "{failure}");
        let failure = lines(&PARTS, &RowFormat::Binary, b"up 1\n").unwrap_err();
        assert!(failure.starts_with("22P04 COPY file signature"), "{failure}");
        let mut short = cut.clone();
        row(&mut short, &[&time[..4], b"up", &value, b"\x01{}"]);
        let failure = lines(&PARTS, &RowFormat::Binary, &short).unwrap_err();
        assert_eq!(failure, "22P03 incorrect binary data format COPY t, row 2, column time");
    }

    #[test]
    fn numbers_are_those_of_postgresql() {
        for (said, expected) in [
            (" 1.5\t", 1.5),
            ("0e400", 0.0),
            ("-0.000", 0.0),
            ("5e-324", 5e-324),
            ("1e-400000000000000000000e", f64::NAN),
            ("infinity", f64::INFINITY),
            ("-inf", f64::NEG_INFINITY),
        ] {
            match expected.is_nan() {
                true => assert_eq!(number_of(said).unwrap_err().code, "22P02", "{said}"),
                false => assert_eq!(number_of(said), Ok(expected), "{said}"),
            }
        }
        for (said, code) in [
            ("1e400", "22003"),
            ("-1e400", "22003"),
            ("2e-324", "22003"),
            ("\u{a0}1", "22P02"),
            ("1\u{2003}", "22P02"),
            ("", "22P02"),
        ] {
            assert_eq!(number_of(said).unwrap_err().code, code, "{said}");
        }
    }

    #[test]
    fn null_is_now_and_no_labels() {
        let rows = b"\\N\tup\t1\t\\N\n";
        assert_eq!(lines(&PARTS, &text("\\N"), rows).unwrap(), "up 1\n");
        let name = lines(&PARTS, &text("\\N"), b"epoch\t\\N\t1\t{}\n").unwrap_err();
        assert!(name.starts_with("23502"), "{name}");
    }
}
