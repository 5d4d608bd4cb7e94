//! Which partitions retention has dropped, and from which log segment on their records count again.
//!
//! The log may still have records of a partition that is gone. Their numbers of entities mean
//! nothing to a partition made anew, so replay must know them from later ones: a partition is
//! dropped by a rotation of the log, a line in this file, and only then by the end of its
//! directory. The file is `DATA/dropped`, see `docs/format/manifest.md`.

use crate::Result;
use crate::base::directory::side_file::SideFile;
use crate::base::file_names::DROPPED_FILE;
use crate::base::period::Period;
use codec::{Reader, put_i64_zigzag, put_varint};
use std::collections::BTreeMap;
use std::path::Path;
use vfs::Vfs;

const MAGIC: &[u8; 8] = b"QPDROPS1";
/// More periods than an `i64` of nanoseconds has, of each length.
const PERIODS_MAX: usize = 250_000;

/// By partition, the first log segment whose records count.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DroppedPartitions {
    from: BTreeMap<Period, u64>,
}

impl DroppedPartitions {
    /// Reads the file of a store's directory.
    ///
    /// # Errors
    /// [`crate::Error::Corrupt`], [`crate::Error::UnknownVersion`], and I/O errors.
    pub fn read(vfs: &dyn Vfs, dir: &Path) -> Result<DroppedPartitions> {
        let file = file(dir);
        let Some(body) = file.read(vfs)? else { return Ok(DroppedPartitions::default()) };
        decode(&body).map_err(|error| file.undecodable(&error))
    }

    /// Adds a partition and writes the file, without those of which the log, which begins with
    /// `log_first`, has no older record.
    ///
    /// # Errors
    /// On I/O errors; then nothing has changed here, and the file is the old or the new one.
    pub fn add(
        &mut self,
        vfs: &dyn Vfs,
        dir: &Path,
        period: Period,
        segment: u64,
        log_first: u64,
    ) -> Result<()> {
        let mut new = self.clone();
        new.from.insert(period, segment);
        new.from.retain(|known, from| *known == period || log_first < *from);
        file(dir).write(vfs, &new.encode())?;
        *self = new;
        Ok(())
    }

    /// Lets records of a partition count from no earlier segment than this one.
    pub fn raise(&mut self, period: Period, from: u64) {
        if 0 < from {
            let known = self.from.entry(period).or_insert(from);
            *known = from.max(*known);
        }
    }

    /// The first log segment whose records of the partition count.
    pub fn from(&self, period: Period) -> u64 {
        self.from.get(&period).copied().unwrap_or(0)
    }

    /// The last of all these segments.
    pub fn newest(&self) -> u64 {
        self.from.values().copied().max().unwrap_or(0)
    }

    fn encode(&self) -> Vec<u8> {
        let mut body = Vec::new();
        put_varint(&mut body, self.from.len() as u64);
        for (period, from) in &self.from {
            put_i64_zigzag(&mut body, period.code());
            put_varint(&mut body, *from);
        }
        body
    }
}

fn decode(body: &[u8]) -> std::result::Result<DroppedPartitions, codec::Error> {
    let mut reader = Reader::new(body);
    let count = reader.varint_size(PERIODS_MAX)?;
    let mut from = BTreeMap::new();
    for _ in 0..count {
        let period = Period::from_code(reader.i64_zigzag()?);
        let period = period.ok_or_else(|| reader.corrupt("no partition"))?;
        from.insert(period, reader.varint()?);
    }
    if !reader.is_empty() {
        return Err(reader.corrupt("bytes after the end"));
    }
    Ok(DroppedPartitions { from })
}

fn file(dir: &Path) -> SideFile {
    SideFile { path: dir.join(DROPPED_FILE), magic: MAGIC }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::PartitionLength;
    use vfs::SimVfs;

    fn month(number: i64) -> Period {
        PartitionLength::Month.period(number).unwrap()
    }

    #[test]
    fn months_come_back_until_the_log_has_nothing_of_them() {
        let disk = SimVfs::new(1);
        let dir = Path::new("/data");
        disk.create_dir_all(dir).unwrap();
        let mut partitions = DroppedPartitions::read(&disk, dir).unwrap();
        assert_eq!((partitions.from(month(5)), partitions.newest()), (0, 0));
        partitions.add(&disk, dir, month(-5), 7, 3).unwrap();
        partitions.add(&disk, dir, month(600), 9, 7).unwrap();
        let read = DroppedPartitions::read(&disk, dir).unwrap();
        assert_eq!(read, partitions);
        assert_eq!((read.from(month(600)), read.from(month(-5)), read.newest()), (9, 0, 9));
        let bytes = disk.read(&dir.join(DROPPED_FILE)).unwrap();
        assert_eq!(bytes, b"QPDROPS1\x01\xb0\x09\x09\x84E\xb8\xf4", "version 1, for ever");
        for offset in 0..bytes.len() as u64 {
            disk.flip_bit(&dir.join(DROPPED_FILE), offset, 4).unwrap();
            assert!(DroppedPartitions::read(&disk, dir).is_err(), "byte {offset}");
            disk.flip_bit(&dir.join(DROPPED_FILE), offset, 4).unwrap();
        }
    }
}
