//! What a file says of itself, looked at before anything is believed: a page that claims two
//! gigabytes, or unpacks to them, would be given memory for them.
//!
//! A page's header is a structure of Thrift's compact protocol
//! (<https://github.com/apache/parquet-format/blob/master/src/main/thrift/parquet.thrift>):
//!
//! ```text
//! [delta of field << 4 | type] value ... 0      1: type  2: size when unpacked  3: size as it stands
//! ```

use crate::copy::parquet::errors::{MAGIC, unreadable};
use crate::copy::parquet::source::Source;
use crate::copy::parquet::unpacked::longest_row;
use crate::types::error::SqlError;
use ::parquet::file::metadata::{ColumnChunkMetaData, RowGroupMetaData};
use ::parquet::file::reader::ChunkReader as _;
use std::io::Read;

/// Bytes of a file's last part, which tells of all others: some 100,000 row groups of five columns.
const FOOTER_SIZE_MAX: u64 = 64 << 20;
/// Bytes of a page when it is unpacked; writers make them of 1 MiB.
const PAGE_SIZE_MAX: u64 = 64 << 20;
/// The same where each text says only how it differs from the one before: a page becomes many times
/// its size.
const DELTA_PAGE_SIZE_MAX: u64 = 4 << 20;
/// Values of all rows that are decoded at a time: a thousand rows of a thousand labels.
const ROW_VALUES_MAX: u64 = 1 << 20;
/// Bytes that the texts of those rows become, of which each says only how it differs from the one before.
const GROWN_SIZE_MAX: u64 = 64 << 20;
/// The numbers of encodings that begin with the lengths of texts.
const DELTA_LENGTH_BYTE_ARRAY: i64 = 6;
const DELTA_BYTE_ARRAY: i64 = 7;
/// Bytes of a page's header, which has the least and the greatest value.
const HEADER_SIZE_MAX: u64 = 1 << 20;
/// Structures within each other in a header.
const DEPTH_MAX: usize = 8;

/// Whether a file begins and ends as Parquet does, with a last part that may be read.
///
/// # Errors
/// When it does not.
pub fn check_ends(source: &Source) -> Result<(), SqlError> {
    let size = source.size();
    let is_none = |what: &str| SqlError::new("22P04", format!("this is no Parquet file: {what}"));
    if size < 12 {
        return Err(is_none(&format!("it has {size} bytes")));
    }
    let head = source.get_bytes(0, 4).map_err(unreadable)?;
    if *head != *MAGIC {
        return Err(is_none("it does not begin with PAR1"));
    }
    let tail = source.get_bytes(size - 8, 8).map_err(unreadable)?;
    let (footer, magic) = tail.split_at(4);
    if magic == b"PARE" {
        return Err(SqlError::unsupported("encrypted Parquet files are not known here"));
    }
    if magic != MAGIC {
        return Err(is_none("it does not end with PAR1: it was cut short, or is still written"));
    }
    let footer = footer.iter().rev().fold(0, |size, byte| size << 8 | u64::from(*byte));
    if size - 8 < footer {
        return Err(is_none(&format!("its last part has {footer} bytes, it has {size}")));
    }
    if FOOTER_SIZE_MAX < footer {
        let words = format!("the file's last part has {footer} bytes, the limit is");
        return Err(SqlError::limit(format!("{words} {FOOTER_SIZE_MAX}")));
    }
    Ok(())
}

/// Whether the pages of some columns of a row group lie within the file and are no larger than they
/// may be. Returns how many rows may be decoded at a time, `most` of them if it is for them.
///
/// # Errors
/// When one is not, and where a row alone would be too much.
pub fn check_group(
    source: &Source,
    group: &RowGroupMetaData,
    is_read: impl Fn(usize) -> bool,
    most: usize,
) -> Result<usize, SqlError> {
    let rows = usize::try_from(group.num_rows())
        .map_err(|_| unreadable(format!("a row group of {} rows", group.num_rows())))?;
    let (mut longest, mut grown) = (1, 0u64);
    let read = group.columns().iter().enumerate().filter(|(at, _)| is_read(*at));
    for (_, column) in read {
        let found = check_column(source, column)?;
        let is_nested = 0 < column.column_descr().max_rep_level();
        let values = match is_nested || found.has_lengths {
            true => longest_row(source, column, rows)?,
            false => 1,
        };
        longest = values.max(longest);
        grown = grown.saturating_add(found.growing.saturating_mul(values));
    }
    let by_size = GROWN_SIZE_MAX.checked_div(grown).unwrap_or(u64::MAX);
    let at_once = (ROW_VALUES_MAX / longest).min(by_size);
    if at_once == 0 {
        let words = format!(
            "a row of {longest} labels, or of texts that become {grown} bytes; \
             {ROW_VALUES_MAX} and {GROWN_SIZE_MAX} are the most"
        );
        return Err(SqlError::limit(words));
    }
    Ok(usize::try_from(at_once).map_or(most, |at_once| at_once.min(most)))
}

/// What the pages of a column are like.
#[derive(Default)]
struct Found {
    /// Bytes that one text may become, of those that say how they differ from the one before.
    growing: u64,
    /// Whether lengths of all texts stand before them.
    has_lengths: bool,
}

fn check_column(source: &Source, column: &ColumnChunkMetaData) -> Result<Found, SqlError> {
    let name = column.column_path().string();
    let lies = |what: &str| unreadable(format!("column {name}: {what}"));
    let start = column.dictionary_page_offset().unwrap_or_else(|| column.data_page_offset());
    let start = u64::try_from(start).map_err(|_| lies("it begins before the file"))?;
    let size = u64::try_from(column.compressed_size()).map_err(|_| lies("less than no bytes"))?;
    let end = start.checked_add(size).filter(|end| *end <= source.size());
    let end = end.ok_or_else(|| lies("it ends past the file"))?;
    let (mut at, mut values, mut found) = (start, 0, Found::default());
    while at < end {
        let left = (end - at).min(HEADER_SIZE_MAX);
        let mut header = Header { bytes: source.get_read(at).map_err(unreadable)?.take(left) };
        let page = match header.page() {
            Ok(page) => page,
            // Old writers counted bytes of a neighbour; nobody reads on when all values are there.
            Err(_) if column.num_values() <= values => return Ok(found),
            Err(what) => return Err(lies(&what)),
        };
        let read = left - header.bytes.limit();
        // What the file says of its columns' encodings need not be so.
        let is_delta = page.encoding == DELTA_BYTE_ARRAY;
        found.has_lengths |= is_delta || page.encoding == DELTA_LENGTH_BYTE_ARRAY;
        let most = if is_delta { DELTA_PAGE_SIZE_MAX } else { PAGE_SIZE_MAX };
        if is_delta {
            found.growing = found.growing.max(page.unpacked_size);
        }
        for size in [page.unpacked_size, page.size] {
            if most < size {
                let words = format!("column {name}: a page of {size} bytes, the limit is {most}");
                return Err(SqlError::limit(words));
            }
        }
        at += read + page.size;
        values = values.saturating_add(page.values);
    }
    if end < at {
        return Err(lies("a page ends past its column"));
    }
    Ok(found)
}

/// What a page's header says.
#[derive(Default)]
struct Page {
    unpacked_size: u64,
    size: u64,
    /// Values of a page of data, and their encoding.
    values: i64,
    encoding: i64,
}

/// A header on its way.
struct Header<R: Read> {
    bytes: std::io::Take<R>,
}

impl<R: Read> Header<R> {
    fn page(&mut self) -> Result<Page, String> {
        let (mut page, mut field) = (Page::default(), 0);
        let (mut has_unpacked_size, mut has_size) = (false, false);
        let size = |number: i64| {
            u64::try_from(number).map_err(|_| "a page of less than no bytes".to_string())
        };
        while let Some(kind) = self.field(&mut field)? {
            match (field, kind) {
                (2, 5) => {
                    (page.unpacked_size, has_unpacked_size) = (size(self.number()?)?, true);
                }
                (3, 5) => (page.size, has_size) = (size(self.number()?)?, true),
                // Pages of data, in the first and the second fashion.
                (5, 12) => (page.values, page.encoding) = self.of_data(2)?,
                (8, 12) => (page.values, page.encoding) = self.of_data(4)?,
                (_, kind) => self.skip(kind, 0)?,
            }
        }
        match has_unpacked_size && has_size {
            true => Ok(page),
            false => Err("a page's header says no size".to_string()),
        }
    }

    /// The first field of a structure and another one, which are the number of values and how they are
    /// encoded; the others are passed over.
    fn of_data(&mut self, encoding_field: i64) -> Result<(i64, i64), String> {
        let (mut values, mut encoding, mut field) = (0, 0, 0);
        while let Some(kind) = self.field(&mut field)? {
            match (field, kind) {
                (1, 5) => values = self.number()?,
                (one, 5) if one == encoding_field => encoding = self.number()?,
                (_, kind) => self.skip(kind, 1)?,
            }
        }
        Ok((values, encoding))
    }

    /// The kind of the next field, whose number is then in `field`; none at the end.
    fn field(&mut self, field: &mut i64) -> Result<Option<u8>, String> {
        let byte = self.byte()?;
        if byte == 0 {
            return Ok(None);
        }
        *field = match byte >> 4 {
            0 => self.number()?,
            delta => field.saturating_add(i64::from(delta)),
        };
        Ok(Some(byte & 15))
    }

    fn byte(&mut self) -> Result<u8, String> {
        let mut byte = [0];
        let read = self.bytes.read_exact(&mut byte);
        read.map_err(|_| "a page's header does not end".to_string())?;
        Ok(byte[0])
    }

    fn varint(&mut self) -> Result<u64, String> {
        let mut number = 0;
        for shift in (0..64).step_by(7) {
            let byte = self.byte()?;
            number |= u64::from(byte & 0x7f) << shift;
            if byte < 0x80 {
                return Ok(number);
            }
        }
        Err("a number in a page's header does not end".to_string())
    }

    fn number(&mut self) -> Result<i64, String> {
        let number = self.varint()?;
        Ok((number >> 1).cast_signed() ^ -(number & 1).cast_signed())
    }

    fn pass(&mut self, count: u64) -> Result<(), String> {
        (0..count.min(HEADER_SIZE_MAX + 1)).try_for_each(|_| self.byte().map(drop))
    }

    fn skip(&mut self, kind: u8, depth: usize) -> Result<(), String> {
        if DEPTH_MAX < depth {
            return Err("a page's header is too deep".to_string());
        }
        match kind {
            1 | 2 => Ok(()),
            3 => self.pass(1),
            4..=6 => self.varint().map(drop),
            7 => self.pass(8),
            8 => self.varint().and_then(|size| self.pass(size)),
            9 | 10 => {
                let byte = self.byte()?;
                let count = if byte >> 4 == 15 { self.varint()? } else { u64::from(byte >> 4) };
                // Elements of truth take a byte each, unlike fields.
                let skip = |header: &mut Self| match byte & 15 {
                    1 | 2 => header.pass(1),
                    kind => header.skip(kind, depth + 1),
                };
                (0..count).try_for_each(|_| skip(self))
            }
            12 => {
                let mut field = 0;
                while let Some(kind) = self.field(&mut field)? {
                    self.skip(kind, depth + 1)?;
                }
                Ok(())
            }
            other => Err(format!("a page's header has a field of kind {other}")),
        }
    }
}
