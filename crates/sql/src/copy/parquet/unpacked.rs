//! What pages say once they are unpacked, looked at before they are decoded: how many labels the longest
//! row has, and how many lengths of texts there are. Both are a few bytes in a file, however many there
//! are, and whoever decodes them takes memory for all.

use crate::copy::parquet::errors::{guarded, unreadable};
use crate::copy::parquet::source::Source;
use crate::types::error::SqlError;
use ::parquet::basic::Encoding;
use ::parquet::column::page::{Page, PageReader as _};
use ::parquet::file::metadata::ColumnChunkMetaData;
use ::parquet::file::serialized_reader::SerializedPageReader;
use bytes::Bytes;
use std::sync::Arc;

/// The most values that a row of a column has.
///
/// # Errors
/// When pages cannot be unpacked, and where they say what cannot be.
pub fn longest_row(
    source: &Source,
    column: &ColumnChunkMetaData,
    rows: usize,
) -> Result<u64, SqlError> {
    let (repeated, nullable) =
        (column.column_descr().max_rep_level(), column.column_descr().max_def_level());
    if 1 < repeated {
        let name = column.column_path().string();
        return Err(unreadable(format!("column {name}: lists within lists")));
    }
    let source = Arc::new(source.clone());
    let mut pages = guarded(|| SerializedPageReader::new(source, column, rows, None))?;
    let mut longest = Longest::default();
    while let Some(page) = guarded(|| pages.get_next_page())? {
        let Some(parts) = Parts::of(&page, repeated, nullable)? else { continue };
        if repeated == 1 {
            longest.take(&parts.repetitions, parts.count)?;
        }
        if has_lengths(parts.encoding) {
            check_lengths(&parts)?;
        }
    }
    Ok(longest.most.max(1))
}

/// Whether an encoding begins with the lengths of all texts.
pub fn has_lengths(encoding: Encoding) -> bool {
    matches!(encoding, Encoding::DELTA_LENGTH_BYTE_ARRAY | Encoding::DELTA_BYTE_ARRAY)
}

/// A page of data, taken apart.
struct Parts {
    encoding: Encoding,
    count: u64,
    /// Which values begin a row.
    repetitions: Bytes,
    values: Bytes,
}

impl Parts {
    /// None of a dictionary.
    fn of(page: &Page, repeated: i16, nullable: i16) -> Result<Option<Parts>, SqlError> {
        Ok(match page {
            Page::DictionaryPage { .. } => None,
            Page::DataPage { buf, num_values, encoding, rep_level_encoding, .. } => {
                let mut rest = buf.clone();
                let mut repetitions = Bytes::new();
                if 0 < repeated {
                    if *rep_level_encoding != Encoding::RLE {
                        return Err(unreadable("levels in an encoding that is no more written"));
                    }
                    repetitions = counted(&mut rest)?;
                }
                if 0 < nullable {
                    drop(counted(&mut rest)?);
                }
                let count = u64::from(*num_values);
                Some(Parts { encoding: *encoding, count, repetitions, values: rest })
            }
            Page::DataPageV2 {
                buf,
                num_values,
                encoding,
                def_levels_byte_len,
                rep_levels_byte_len,
                ..
            } => {
                let mut rest = buf.clone();
                let repetitions = taken(&mut rest, *rep_levels_byte_len)?;
                drop(taken(&mut rest, *def_levels_byte_len)?);
                let count = u64::from(*num_values);
                Some(Parts { encoding: *encoding, count, repetitions, values: rest })
            }
        })
    }
}

fn taken(rest: &mut Bytes, size: u32) -> Result<Bytes, SqlError> {
    let size = usize::try_from(size).ok().filter(|size| *size <= rest.len());
    let size = size.ok_or_else(|| unreadable("levels that end past their page"))?;
    Ok(rest.split_to(size))
}

/// Bytes behind their number.
fn counted(rest: &mut Bytes) -> Result<Bytes, SqlError> {
    let head = taken(rest, 4)?;
    let size = head.iter().rev().fold(0, |size, byte| size << 8 | u32::from(*byte));
    taken(rest, size)
}

/// A number of which each byte has seven bits.
fn varint(bytes: &mut Bytes) -> Result<u64, SqlError> {
    let mut number = 0;
    for shift in (0..64).step_by(7) {
        let byte = taken(bytes, 1)?[0];
        number |= u64::from(byte & 0x7f) << shift;
        if byte < 0x80 {
            return Ok(number);
        }
    }
    Err(unreadable("a number in a page does not end"))
}

/// The longest of the rows that were looked at.
#[derive(Default)]
struct Longest {
    /// Values of the row that is not over yet.
    current: u64,
    most: u64,
}

impl Longest {
    /// Takes levels of one bit: `[count << 1][level]`, or `[count / 8 << 1 | 1]` and a bit for each.
    fn take(&mut self, levels: &Bytes, count: u64) -> Result<(), SqlError> {
        let (mut levels, mut left) = (levels.clone(), count);
        while 0 < left {
            let head = varint(&mut levels)?;
            if head & 1 == 0 {
                let run = (head >> 1).min(left);
                let level = taken(&mut levels, 1)?[0];
                self.add(level, run);
                left -= run;
                continue;
            }
            let size = u32::try_from(head >> 1).unwrap_or(u32::MAX);
            for byte in taken(&mut levels, size)? {
                for bit in 0..left.min(8) {
                    self.add(byte >> bit & 1, 1);
                }
                left = left.saturating_sub(8);
            }
        }
        Ok(())
    }

    fn add(&mut self, level: u8, run: u64) {
        match (level, run) {
            (_, 0) => return,
            (0, _) => self.current = 1,
            _ => self.current = self.current.saturating_add(run),
        }
        self.most = self.most.max(self.current);
    }
}

/// Whether there are no more lengths than values, in each of the lists of them that there are:
/// `[block][parts of it][count][first]`, then blocks of `[least][bits of each part]` and the parts.
fn check_lengths(parts: &Parts) -> Result<(), SqlError> {
    let mut rest = parts.values.clone();
    skip_lengths(&mut rest, parts.count)?;
    // How much of the text before they begin with, and how long they are from there on.
    match parts.encoding {
        Encoding::DELTA_BYTE_ARRAY => skip_lengths(&mut rest, parts.count),
        _ => Ok(()),
    }
}

fn skip_lengths(rest: &mut Bytes, most: u64) -> Result<(), SqlError> {
    let (block, parts) = (varint(rest)?, varint(rest)?);
    let (count, _first) = (varint(rest)?, varint(rest)?);
    let in_part = block.checked_div(parts).filter(|in_part| 0 < *in_part && in_part % 8 == 0);
    let Some(in_part) = in_part else { return Err(unreadable("lengths in no blocks")) };
    if most < count {
        let words = format!("{count} lengths of {most} texts");
        return Err(unreadable(words));
    }
    let mut left = count.saturating_sub(1);
    while 0 < left {
        let _ = varint(rest)?;
        let bits = taken(rest, u32::try_from(parts).unwrap_or(u32::MAX))?;
        for width in bits {
            if left == 0 {
                break;
            }
            let size = (in_part / 8).saturating_mul(u64::from(width));
            drop(taken(rest, u32::try_from(size).unwrap_or(u32::MAX))?);
            left = left.saturating_sub(in_part);
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_as_long_as_their_levels_say() {
        let most = |levels: &'static [u8], count: u64| {
            let mut longest = Longest::default();
            longest.take(&Bytes::from_static(levels), count).map(|()| longest.most).ok()
        };
        // One row of five, in a run of one and one of four.
        assert_eq!(most(&[2, 0, 8, 1], 5), Some(5));
        // 0 1 1 0 1 0 0 1, the first bit last.
        assert_eq!(most(&[3, 0b1001_0110], 8), Some(3));
        assert_eq!(most(&[3, 0b1111_1110], 4), Some(4));
        assert_eq!(most(&[0xfe, 0xff, 0xff, 0xff, 0x0f, 1], u64::MAX), None);
        assert_eq!(most(&[], 1), None);
        assert_eq!(most(&[3], 8), None);
    }

    #[test]
    fn lengths_are_no_more_than_texts() {
        let check = |bytes: &'static [u8], count: u64| {
            let mut rest = Bytes::from_static(bytes);
            skip_lengths(&mut rest, count).map(|_| rest.len()).ok()
        };
        // Blocks of 128 in four parts; one length, which is the first.
        assert_eq!(check(&[0x80, 1, 4, 1, 6], 1), Some(0));
        assert_eq!(check(&[0x80, 1, 4, 2, 6, 0, 0, 0, 0, 0, 7], 2), Some(1));
        assert_eq!(check(&[0x80, 1, 4, 2, 6], 1), None);
        assert_eq!(check(&[0x80, 1, 0, 2, 6], 9), None);
        assert_eq!(check(&[0x80, 1, 4, 0xff, 0xff, 0xff, 0xff, 0xff, 0x1f, 6], 9), None);
    }
}
