//! A partition's manifest: which files are its content. Replaced whole, by one atomic rename.
//!
//! Layout in `docs/format/manifest.md`. What the manifest does not name does not exist: files left
//! by a crash are removed when the partition opens.

use crate::{Error, Result};
use codec::{Reader, crc32, put_i64_zigzag, put_u32, put_varint};
use model::TimeRange;
use roaring::RoaringBitmap;
use std::path::Path;
use vfs::Vfs;

/// Name of the file in the partition's directory.
pub const FILE_NAME: &str = "MANIFEST";
const MAGIC: &[u8; 8] = b"QPMANIF1";
/// Bounds that a sane manifest keeps, against sizes that lie.
const PARTS_MAX: usize = 1 << 20;
const NAME_SIZE_MAX: usize = 255;

/// Everything the manifest says.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Manifest {
    /// Records of this partition in log segments before this one are in the parts already.
    pub wal_from: u64,
    /// The next sequence number to give to a part or a tombstone; grows for ever.
    pub sequence_next: u64,
    /// The parts, by increasing order.
    pub parts: Vec<PartEntry>,
    /// Names of the index segments, by increasing ordinals.
    pub segments: Vec<String>,
    /// Deletions that some part has not applied yet.
    pub tombstones: Vec<Tombstone>,
}

/// One part on disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PartEntry {
    /// Number of the file; never used twice.
    pub file: u64,
    /// Where the part stands among the others: for one series and instant, the higher order wins.
    /// A merged part takes the highest order of the parts it was made of.
    pub order: u64,
    /// Tombstones up to this sequence are applied in the file already.
    pub applied: u64,
}

/// A deletion: the samples of `series` in `range` are gone from all parts that say they have not
/// applied it yet.
#[derive(Clone, Debug, PartialEq)]
pub struct Tombstone {
    /// When it happened, in the order of parts.
    pub sequence: u64,
    /// Ordinals of the series.
    pub series: RoaringBitmap,
    /// The deleted span of time.
    pub range: TimeRange,
}

impl Manifest {
    /// File name of the part with that number.
    pub fn part_name(file: u64) -> String {
        format!("{file:016x}.part")
    }

    /// Reads the manifest of a partition's directory; `None` when there is none.
    pub fn read(vfs: &dyn Vfs, dir: &Path) -> Result<Option<Manifest>> {
        let path = dir.join(FILE_NAME);
        if !vfs.exists(&path)? {
            return Ok(None);
        }
        let bytes = vfs.read(&path)?;
        Manifest::decode(&bytes).map(Some).map_err(|error| Error::Corrupt {
            file: path,
            offset: error.offset as u64,
            what: error.what.to_string(),
        })
    }

    /// Replaces the manifest durably.
    pub fn write(&self, vfs: &dyn Vfs, dir: &Path) -> Result<()> {
        self.check();
        Ok(vfs::write_atomic(vfs, &dir.join(FILE_NAME), &self.encode())?)
    }

    /// Drops the tombstones that every part has applied.
    pub fn forget_applied_tombstones(&mut self) {
        let oldest = self.parts.iter().map(|part| part.applied).min().unwrap_or(u64::MAX);
        self.tombstones.retain(|tombstone| oldest < tombstone.sequence);
    }

    /// What must hold at every change.
    fn check(&self) {
        assert!(self.parts.is_sorted_by(|a, b| a.order < b.order), "parts by order");
        assert!(self.parts.iter().all(|part| part.file < self.sequence_next));
        assert!(self.parts.iter().all(|part| part.order <= part.applied));
        assert!(self.tombstones.iter().all(|t| t.sequence < self.sequence_next));
    }

    fn encode(&self) -> Vec<u8> {
        let mut out = MAGIC.to_vec();
        put_varint(&mut out, self.wal_from);
        put_varint(&mut out, self.sequence_next);
        put_varint(&mut out, self.parts.len() as u64);
        for part in &self.parts {
            put_varint(&mut out, part.file);
            put_varint(&mut out, part.order);
            put_varint(&mut out, part.applied);
        }
        put_varint(&mut out, self.segments.len() as u64);
        for name in &self.segments {
            put_varint(&mut out, name.len() as u64);
            out.extend_from_slice(name.as_bytes());
        }
        put_varint(&mut out, self.tombstones.len() as u64);
        for tombstone in &self.tombstones {
            put_varint(&mut out, tombstone.sequence);
            put_i64_zigzag(&mut out, tombstone.range.start);
            put_i64_zigzag(&mut out, tombstone.range.end);
            put_varint(&mut out, tombstone.series.serialized_size() as u64);
            tombstone.series.serialize_into(&mut out).expect("writing to memory");
        }
        let checksum = crc32(&out);
        put_u32(&mut out, checksum);
        out
    }

    fn decode(bytes: &[u8]) -> std::result::Result<Manifest, codec::Error> {
        let body_size = bytes.len().saturating_sub(4);
        let (body, checksum) = bytes.split_at(body_size);
        let mut reader = Reader::new(body);
        if reader.slice(MAGIC.len()) != Ok(&MAGIC[..]) {
            return Err(codec::Error { offset: 0, what: "no manifest of a known version" });
        }
        if checksum != crc32(body).to_le_bytes() {
            return Err(codec::Error { offset: body_size, what: "checksum mismatch" });
        }
        let wal_from = reader.varint()?;
        let sequence_next = reader.varint()?;
        let parts = read_list(&mut reader, |reader| {
            let (file, order) = (reader.varint()?, reader.varint()?);
            Ok(PartEntry { file, order, applied: reader.varint()? })
        })?;
        let segments = read_list(&mut reader, |reader| {
            let size = reader.varint_size(NAME_SIZE_MAX)?;
            let name = reader.slice(size)?.to_vec();
            String::from_utf8(name).map_err(|_| reader.corrupt("invalid UTF-8"))
        })?;
        let tombstones = read_list(&mut reader, read_tombstone)?;
        if !reader.is_empty() {
            return Err(reader.corrupt("bytes after the end"));
        }
        Ok(Manifest { wal_from, sequence_next, parts, segments, tombstones })
    }
}

fn read_list<T>(
    reader: &mut Reader<'_>,
    mut read_one: impl FnMut(&mut Reader<'_>) -> std::result::Result<T, codec::Error>,
) -> std::result::Result<Vec<T>, codec::Error> {
    let count = reader.varint_size(PARTS_MAX)?;
    (0..count).map(|_| read_one(reader)).collect()
}

fn read_tombstone(reader: &mut Reader<'_>) -> std::result::Result<Tombstone, codec::Error> {
    let sequence = reader.varint()?;
    let range = TimeRange::new(reader.i64_zigzag()?, reader.i64_zigzag()?);
    let size = reader.varint_size(reader.remaining())?;
    let bytes = reader.slice(size)?;
    let series = RoaringBitmap::deserialize_from(bytes);
    Ok(Tombstone { sequence, series: series.map_err(|_| reader.corrupt("bad bitmap"))?, range })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_manifest_comes_back_and_rot_is_noticed() {
        let manifest = Manifest {
            wal_from: 7,
            sequence_next: 12,
            parts: vec![
                PartEntry { file: 1, order: 1, applied: 6 },
                PartEntry { file: 11, order: 8, applied: 8 },
            ],
            segments: vec!["a.seg".into()],
            tombstones: vec![Tombstone {
                sequence: 5,
                series: [1, 2, 3, 70_000].into_iter().collect(),
                range: TimeRange::new(-5, i64::MAX),
            }],
        };
        let bytes = manifest.encode();
        assert_eq!(Manifest::decode(&bytes), Ok(manifest));
        for idx in 0..bytes.len() {
            let mut rotten = bytes.clone();
            rotten[idx] ^= 1;
            assert!(Manifest::decode(&rotten).is_err(), "byte {idx}");
            assert!(Manifest::decode(&bytes[..idx]).is_err(), "cut at {idx}");
        }
    }
}
