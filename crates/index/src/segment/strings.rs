//! Sorted dictionaries: front-coded buckets of sixteen strings, searched in place.
//!
//! ```text
//! table  = offset u32 per bucket │ bucket │ bucket ...        offsets from the first bucket
//! bucket = size, first string │ { shared, size, rest of the string }*
//! ```
//!
//! Strings increase strictly by bytes, so a string's rank is its id, and strings with a common
//! prefix have neighbouring ids.

use crate::error::{Error, Result, corrupt};
use crate::narrow::to_u32;
use codec::{Reader, put_varint};
use std::cmp::Ordering;

/// Strings of a bucket.
const BUCKET_LEN: usize = 16;
/// Bytes of one string: far over what doors let in.
const STRING_SIZE_MAX: usize = 1 << 24;

/// Writes one table.
#[derive(Default)]
pub(crate) struct StringsWriter {
    offsets: Vec<u8>,
    buckets: Vec<u8>,
    last: Vec<u8>,
    count: u32,
}

impl StringsWriter {
    /// Appends the next string and returns its id.
    // As `put_planes`.
    #[inline(always)]
    pub(crate) fn push(&mut self, string: &[u8]) -> Result<u32> {
        assert!(self.count == 0 || self.last.as_slice() < string, "strings increase");
        if (self.count as usize).is_multiple_of(BUCKET_LEN) {
            let offset = u32::try_from(self.buckets.len())
                .map_err(|_| Error::Full { what: "bytes of one label's values", max: 1 << 32 })?;
            self.offsets.extend_from_slice(&offset.to_le_bytes());
            put_varint(&mut self.buckets, string.len() as u64);
            self.buckets.extend_from_slice(string);
        } else {
            let shared = self.last.iter().zip(string).take_while(|(a, b)| a == b).count();
            put_varint(&mut self.buckets, shared as u64);
            put_varint(&mut self.buckets, (string.len() - shared) as u64);
            self.buckets.extend_from_slice(&string[shared..]);
        }
        self.last.clear();
        self.last.extend_from_slice(string);
        self.count += 1;
        Ok(self.count - 1)
    }

    /// Appends the table to a section; returns its offset there and the number of strings.
    pub(crate) fn finish(self, section: &mut Vec<u8>) -> (u64, u32) {
        let offset = section.len() as u64;
        section.extend_from_slice(&self.offsets);
        section.extend_from_slice(&self.buckets);
        (offset, self.count)
    }
}

/// Reads one table in place.
#[derive(Clone, Copy)]
pub(crate) struct Strings<'a> {
    /// Offsets of the buckets.
    offsets: &'a [[u8; 4]],
    /// The buckets and what follows them.
    buckets: &'a [u8],
    count: u32,
}

impl<'a> Strings<'a> {
    /// The table of `count` strings at `offset` of a section.
    pub(crate) fn open(section: &'a [u8], offset: u64, count: u32) -> Result<Strings<'a>> {
        let rest = usize::try_from(offset).ok().and_then(|offset| section.get(offset..));
        let rest = rest.ok_or_else(|| corrupt("offset of a dictionary"))?;
        let offsets_size = (count as usize).div_ceil(BUCKET_LEN) * 4;
        if rest.len() < offsets_size {
            return Err(corrupt("dictionary past its section"));
        }
        let (offsets, buckets) = rest.split_at(offsets_size);
        Ok(Strings { offsets: offsets.as_chunks().0, buckets, count })
    }

    pub(crate) fn count(&self) -> u32 {
        self.count
    }

    /// The bytes of a bucket and all that follows.
    fn bucket(&self, bucket: usize) -> Result<Reader<'a>> {
        let offset = self.offsets.get(bucket).ok_or_else(|| corrupt("id of a string"))?;
        let rest = self.buckets.get(u32::from_le_bytes(*offset) as usize..);
        Ok(Reader::new(rest.ok_or_else(|| corrupt("offset of a bucket"))?))
    }

    fn first_of(&self, bucket: usize) -> Result<&'a [u8]> {
        let mut reader = self.bucket(bucket)?;
        let size = reader.varint_size(STRING_SIZE_MAX)?;
        Ok(reader.slice(size)?)
    }

    /// Writes the string of an id to `out`.
    pub(crate) fn get(&self, id: u32, out: &mut Vec<u8>) -> Result<()> {
        if self.count <= id {
            return Err(corrupt("id past its dictionary"));
        }
        let mut reader = self.bucket(id as usize / BUCKET_LEN)?;
        read_first(&mut reader, out)?;
        for _ in 0..id as usize % BUCKET_LEN {
            read_next(&mut reader, out)?;
        }
        Ok(())
    }

    /// The string of an id, quick when the one before was of the same bucket. A cache belongs to
    /// one table.
    pub(crate) fn get_cached<'c>(&self, id: u32, cache: &'c mut BucketCache) -> Result<&'c [u8]> {
        if self.count <= id {
            return Err(corrupt("id past its dictionary"));
        }
        let (bucket, idx) = (id as usize / BUCKET_LEN, id as usize % BUCKET_LEN);
        if cache.bucket != Some(bucket) {
            cache.clear();
            cache.bucket = Some(bucket);
        }
        if cache.len <= idx {
            let mut reader = self.bucket(bucket)?;
            reader.slice(cache.read_size)?;
            while cache.len <= idx {
                cache.push_next(&mut reader)?;
            }
        }
        let [start, end] = cache.spans[idx];
        Ok(&cache.text[start as usize..end as usize])
    }

    /// The id of a string.
    pub(crate) fn find(&self, string: &[u8]) -> Result<Option<u32>> {
        let (id, is_equal) = self.lower_bound(string)?;
        Ok(is_equal.then_some(id))
    }

    /// The first id whose string is not below `string`, and whether it is equal.
    pub(crate) fn lower_bound(&self, string: &[u8]) -> Result<(u32, bool)> {
        let (mut low, mut high) = (0, self.offsets.len());
        while low < high {
            let middle = low + (high - low) / 2;
            match self.first_of(middle)?.cmp(string) {
                Ordering::Equal => return Ok((to_u32(middle * BUCKET_LEN), true)),
                Ordering::Less => low = middle + 1,
                Ordering::Greater => high = middle,
            }
        }
        let Some(bucket) = low.checked_sub(1) else {
            return Ok((0, false));
        };
        let mut cursor = self.cursor(to_u32(bucket * BUCKET_LEN))?;
        let end = self.count.min(to_u32(low * BUCKET_LEN));
        while let Some((current, id)) = cursor.current() {
            if end <= id {
                break;
            }
            match current.cmp(string) {
                Ordering::Less => cursor.advance()?,
                other => return Ok((id, other == Ordering::Equal)),
            }
        }
        Ok((end, false))
    }

    /// The ids of the strings that start with `prefix`.
    pub(crate) fn prefix_range(&self, prefix: &[u8]) -> Result<std::ops::Range<u32>> {
        let (start, _) = self.lower_bound(prefix)?;
        // The first string behind all with the prefix: its last byte that can grow, grown.
        let mut after = prefix.to_vec();
        while after.last() == Some(&u8::MAX) {
            after.pop();
        }
        let end = match after.last_mut() {
            Some(last) => {
                *last += 1;
                self.lower_bound(&after)?.0
            }
            None => self.count,
        };
        Ok(start..end.max(start))
    }

    /// The strings whose ids are marked, in order, without the empty one.
    pub(crate) fn marked(&self, is_marked: &[bool]) -> Result<Vec<String>> {
        let mut out = Vec::with_capacity(is_marked.iter().filter(|marked| **marked).count());
        let mut string = Vec::new();
        for (bucket, marks) in is_marked.chunks(BUCKET_LEN).enumerate() {
            let Some(last) = marks.iter().rposition(|marked| *marked) else { continue };
            let mut reader = self.bucket(bucket)?;
            for (idx, is_marked) in marks[..=last].iter().enumerate() {
                match idx {
                    0 => read_first(&mut reader, &mut string)?,
                    _ => read_next(&mut reader, &mut string)?,
                }
                if *is_marked && !string.is_empty() {
                    out.push(utf8(&string)?.to_string());
                }
            }
        }
        Ok(out)
    }

    /// A cursor that starts at an id; behind the last one it is at its end.
    pub(crate) fn cursor(&self, id: u32) -> Result<StringsCursor<'a>> {
        let mut string = Vec::new();
        let mut reader = Reader::new(&[]);
        if id < self.count {
            reader = self.bucket(id as usize / BUCKET_LEN)?;
            read_first(&mut reader, &mut string)?;
            for _ in 0..id as usize % BUCKET_LEN {
                read_next(&mut reader, &mut string)?;
            }
        }
        Ok(StringsCursor { strings: *self, reader, string, id: id.min(self.count) })
    }
}

/// The strings of the bucket that was last read, as far as they were asked for.
#[derive(Default)]
pub(crate) struct BucketCache {
    bucket: Option<usize>,
    /// The strings, one after the other.
    text: Vec<u8>,
    /// Where each is.
    spans: [[u32; 2]; BUCKET_LEN],
    /// How many there are.
    len: usize,
    /// Bytes of the bucket that they took.
    read_size: usize,
}

impl BucketCache {
    /// Forgets the bucket, keeps the memory.
    pub(crate) fn clear(&mut self) {
        self.text.clear();
        (self.bucket, self.len, self.read_size) = (None, 0, 0);
    }

    fn push_next(&mut self, reader: &mut Reader<'_>) -> Result<()> {
        let [last_start, last_end] = match self.len.checked_sub(1) {
            Some(last) => self.spans[last].map(|place| place as usize),
            None => [0, 0],
        };
        let shared = match self.len {
            0 => 0,
            _ => reader.varint_size(last_end - last_start)?,
        };
        let size = reader.varint_size(STRING_SIZE_MAX - shared)?;
        let rest = reader.slice(size)?;
        self.text.extend_from_within(last_start..last_start + shared);
        self.text.extend_from_slice(rest);
        self.spans[self.len] = [to_u32(last_end), to_u32(self.text.len())];
        self.len += 1;
        self.read_size = reader.offset();
        Ok(())
    }
}

fn read_first(reader: &mut Reader<'_>, string: &mut Vec<u8>) -> Result<()> {
    let size = reader.varint_size(STRING_SIZE_MAX)?;
    string.clear();
    string.extend_from_slice(reader.slice(size)?);
    Ok(())
}

#[inline]
fn read_next(reader: &mut Reader<'_>, string: &mut Vec<u8>) -> Result<()> {
    let shared = reader.varint_size(string.len())?;
    let size = reader.varint_size(STRING_SIZE_MAX - shared)?;
    string.truncate(shared);
    string.extend_from_slice(reader.slice(size)?);
    Ok(())
}

/// Walks over the strings of a table in order.
pub(crate) struct StringsCursor<'a> {
    strings: Strings<'a>,
    reader: Reader<'a>,
    string: Vec<u8>,
    id: u32,
}

impl StringsCursor<'_> {
    /// The string under the cursor and its id.
    #[inline]
    pub(crate) fn current(&self) -> Option<(&[u8], u32)> {
        (self.id < self.strings.count).then_some((self.string.as_slice(), self.id))
    }

    /// Goes on to the next string, which must be above this one.
    #[inline]
    pub(crate) fn advance(&mut self) -> Result<()> {
        assert!(self.id < self.strings.count, "not behind the end");
        self.id += 1;
        if self.id == self.strings.count {
            return Ok(());
        }
        let is_above = if (self.id as usize).is_multiple_of(BUCKET_LEN) {
            let last = std::mem::take(&mut self.string);
            self.reader = self.strings.bucket(self.id as usize / BUCKET_LEN)?;
            read_first(&mut self.reader, &mut self.string)?;
            last < self.string
        } else {
            read_next_above(&mut self.reader, &mut self.string)?
        };
        is_above.then_some(()).ok_or_else(|| corrupt("order of a dictionary"))
    }
}

/// As [`read_next`]; tells whether the string is above the one before. What is shared is as long
/// as can be, so the first byte that is not tells.
#[inline]
fn read_next_above(reader: &mut Reader<'_>, string: &mut Vec<u8>) -> Result<bool> {
    let shared = reader.varint_size(string.len())?;
    let size = reader.varint_size(STRING_SIZE_MAX - shared)?;
    let rest = reader.slice(size)?;
    let is_above = match (string.get(shared), rest.first()) {
        (Some(old), Some(new)) => old < new,
        (None, Some(_)) => true,
        (_, None) => false,
    };
    string.truncate(shared);
    string.extend_from_slice(rest);
    Ok(is_above)
}

/// Bytes of a table as text.
pub(crate) fn utf8(bytes: &[u8]) -> Result<&str> {
    std::str::from_utf8(bytes).map_err(|_| corrupt("UTF-8 of a label"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(strings: &[String]) {
        let mut writer = StringsWriter::default();
        for string in strings {
            writer.push(string.as_bytes()).unwrap();
        }
        let mut section = b"before".to_vec();
        let (offset, count) = writer.finish(&mut section);
        section.extend_from_slice(b"after");
        let table = Strings::open(&section, offset, count).unwrap();
        let mut out = Vec::new();
        let mut cursor = table.cursor(0).unwrap();
        let mut cache = BucketCache::default();
        for (id, string) in strings.iter().enumerate() {
            table.get(id as u32, &mut out).unwrap();
            assert_eq!(out, string.as_bytes());
            assert_eq!(table.get_cached(id as u32, &mut cache).unwrap(), string.as_bytes());
            assert_eq!(table.find(string.as_bytes()).unwrap(), Some(id as u32));
            assert_eq!(cursor.current(), Some((string.as_bytes(), id as u32)));
            cursor.advance().unwrap();
            let above = format!("{string}\0");
            assert_eq!(table.lower_bound(above.as_bytes()).unwrap().0, id as u32 + 1);
        }
        assert_eq!(cursor.current(), None);
        let marks: Vec<bool> = (0..strings.len()).map(|id| id % 5 == 3).collect();
        let marked = strings.iter().zip(&marks).filter(|(_, is_marked)| **is_marked);
        let marked: Vec<String> = marked.map(|(string, _)| string.clone()).collect();
        assert_eq!(table.marked(&marks).unwrap(), marked);
        assert!(table.get(count, &mut out).is_err());
        for prefix in ["", "1", "12", "9", "99999", "\u{7f}", "é"] {
            let wanted: Vec<u32> =
                (0..count).filter(|id| strings[*id as usize].starts_with(prefix)).collect();
            let range = table.prefix_range(prefix.as_bytes()).unwrap();
            assert_eq!(range.clone().collect::<Vec<u32>>(), wanted, "{prefix} {range:?}");
        }
    }

    #[test]
    fn tables_of_every_size_come_back() {
        for count in [0, 1, 2, 15, 16, 17, 31, 32, 33, 1000] {
            let mut strings: Vec<String> = (0..count).map(|i| (i * 7).to_string()).collect();
            strings.sort();
            check(&strings);
        }
        check(&["".to_string(), "a".to_string(), "é".to_string(), "日本".to_string()]);
        check(&["x".repeat(300), "x".repeat(5000)]);
    }
}
