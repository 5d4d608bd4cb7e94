//! Which months retention has dropped, and from which log segment on their records count again.
//!
//! The log may still have records of a month that is gone. Their numbers of entities mean nothing
//! to a month made anew, so replay must know them from later ones: a month is dropped by a rotation
//! of the log, a line in this file, and only then by the end of its directory. The file is
//! `DATA/dropped`, see `docs/format/manifest.md`.

use crate::Result;
use crate::book_file::BookFile;
use crate::span::Month;
use codec::{Reader, put_i64_zigzag, put_varint};
use std::collections::BTreeMap;
use std::path::Path;
use vfs::Vfs;

/// The file's name.
pub const FILE_NAME: &str = "dropped";
const MAGIC: &[u8; 8] = b"QPDROPS1";
/// More months than an `i64` of nanoseconds has.
const MONTHS_MAX: usize = 10_000;

/// By month, the first log segment whose records count.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DroppedMonths {
    from: BTreeMap<Month, u64>,
}

impl DroppedMonths {
    /// Reads the file of a store's directory.
    ///
    /// # Errors
    /// [`crate::Error::Corrupt`], [`crate::Error::UnknownVersion`], and I/O errors.
    pub fn read(vfs: &dyn Vfs, dir: &Path) -> Result<DroppedMonths> {
        let file = file(dir);
        let Some(body) = file.read(vfs)? else { return Ok(DroppedMonths::default()) };
        decode(&body).map_err(|error| file.undecodable(&error))
    }

    /// Adds a month and writes the file, without those of which the log, which begins with
    /// `log_first`, has no older record.
    ///
    /// # Errors
    /// On I/O errors; then nothing has changed here, and the file is the old or the new one.
    pub fn add(
        &mut self,
        vfs: &dyn Vfs,
        dir: &Path,
        month: Month,
        segment: u64,
        log_first: u64,
    ) -> Result<()> {
        let mut new = self.clone();
        new.from.insert(month, segment);
        new.from.retain(|known, from| *known == month || log_first < *from);
        file(dir).write(vfs, &new.encode())?;
        *self = new;
        Ok(())
    }

    /// The first log segment whose records of the month count.
    pub fn from(&self, month: Month) -> u64 {
        self.from.get(&month).copied().unwrap_or(0)
    }

    /// The last of all these segments.
    pub fn newest(&self) -> u64 {
        self.from.values().copied().max().unwrap_or(0)
    }

    fn encode(&self) -> Vec<u8> {
        let mut body = Vec::new();
        put_varint(&mut body, self.from.len() as u64);
        for (month, from) in &self.from {
            put_i64_zigzag(&mut body, i64::from(month.0));
            put_varint(&mut body, *from);
        }
        body
    }
}

fn decode(body: &[u8]) -> std::result::Result<DroppedMonths, codec::Error> {
    let mut reader = Reader::new(body);
    let count = reader.varint_size(MONTHS_MAX)?;
    let mut from = BTreeMap::new();
    for _ in 0..count {
        let month = Month::from_number(reader.i64_zigzag()?);
        let month = month.ok_or_else(|| reader.corrupt("no month"))?;
        from.insert(month, reader.varint()?);
    }
    if !reader.is_empty() {
        return Err(reader.corrupt("bytes after the end"));
    }
    Ok(DroppedMonths { from })
}

fn file(dir: &Path) -> BookFile {
    BookFile { path: dir.join(FILE_NAME), magic: MAGIC }
}

#[cfg(test)]
mod tests {
    use super::*;
    use vfs::SimVfs;

    #[test]
    fn months_come_back_until_the_log_has_nothing_of_them() {
        let disk = SimVfs::new(1);
        let dir = Path::new("/data");
        disk.create_dir_all(dir).unwrap();
        let mut months = DroppedMonths::read(&disk, dir).unwrap();
        assert_eq!((months.from(Month(5)), months.newest()), (0, 0));
        months.add(&disk, dir, Month(-5), 7, 3).unwrap();
        months.add(&disk, dir, Month(600), 9, 7).unwrap();
        let read = DroppedMonths::read(&disk, dir).unwrap();
        assert_eq!(read, months);
        assert_eq!((read.from(Month(600)), read.from(Month(-5)), read.newest()), (9, 0, 9));
        let bytes = disk.read(&dir.join(FILE_NAME)).unwrap();
        assert_eq!(bytes, b"QPDROPS1\x01\xb0\x09\x09\x84E\xb8\xf4", "version 1, for ever");
        for offset in 0..bytes.len() as u64 {
            disk.flip_bit(&dir.join(FILE_NAME), offset, 4).unwrap();
            assert!(DroppedMonths::read(&disk, dir).is_err(), "byte {offset}");
            disk.flip_bit(&dir.join(FILE_NAME), offset, 4).unwrap();
        }
    }
}
