//! What a checkpoint has made durable: one small file, replaced whole.
//!
//! ```text
//! magic "QPKV" │ format u32 │ hash seed u64 │ seq varint │ log from varint │ next segment varint
//!   │ index file varint │ databases varint
//!   │ segments varint │ (number varint │ size varint │ records varint) each
//!   │ dictionaries varint │ number varint each │ CRC-32 u32 of all before
//! ```

use crate::error::{Error, Result};
use crate::index::SEGMENT_MAX;
use codec::bytes::{Reader, put_u32, put_u64, put_varint};
use codec::checksum::crc32;
use std::collections::HashSet;
use std::path::Path;
use vfs::{Vfs, write_atomic};

/// The file's name.
pub const MANIFEST_NAME: &str = "MANIFEST";
const MAGIC: &[u8; 4] = b"QPKV";
/// The format that is written, and the newest one that is read.
const FORMAT: u32 = 1;

/// A segment that a checkpoint needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SegmentInfo {
    /// Its number.
    pub number: u32,
    /// Bytes of its file.
    pub size: u64,
    /// Records in it.
    pub record_count: u32,
}

/// A checkpoint.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Manifest {
    /// What hashes of keys begin with.
    pub hash_seed: u64,
    /// The number of the last record of the log that the keys on disk may have seen.
    pub seq: u64,
    /// The first segment of the log with records that may be missing on disk.
    pub log_from: u64,
    /// The number of the next segment.
    pub next_segment: u32,
    /// The number of the file that holds the index; 0 for none.
    pub index_file: u64,
    /// How many databases there are.
    pub databases: u32,
    /// The segments.
    pub segments: Vec<SegmentInfo>,
    /// The numbers of the dictionaries.
    pub dictionaries: Vec<u64>,
}

impl Manifest {
    /// The number of a new segment: the next one that no other has. After the last one that addresses
    /// have room for comes the first.
    pub(crate) fn take_number(&mut self) -> u32 {
        let taken: HashSet<u32> = self.segments.iter().map(|one| one.number).collect();
        let all = (self.next_segment..=SEGMENT_MAX).chain(0..=SEGMENT_MAX);
        let free = all.into_iter().find(|number| !taken.contains(number));
        let number = free.expect("addresses have room for 268 TB of segments");
        self.next_segment = number + 1;
        number
    }

    /// Reads the one of a directory, if there is one.
    ///
    /// # Errors
    /// When it cannot be read or is damaged, or a newer program wrote it.
    pub fn read(vfs: &dyn Vfs, dir: &Path) -> Result<Option<Manifest>> {
        let path = dir.join(MANIFEST_NAME);
        if !vfs.exists(&path)? {
            return Ok(None);
        }
        let bytes = vfs.read(&path)?;
        let corrupt =
            |reason: &str| Error::Corrupt { path: path.clone(), reason: reason.to_owned() };
        let (body, crc) = bytes.split_last_chunk::<4>().ok_or_else(|| corrupt("cut short"))?;
        if body.get(..4) != Some(MAGIC.as_slice()) {
            return Err(corrupt("is no manifest of keys"));
        }
        let format = body.get(4..8).and_then(|bytes| bytes.first_chunk::<4>());
        let found = u32::from_le_bytes(*format.ok_or_else(|| corrupt("cut short"))?);
        if FORMAT < found {
            return Err(Error::Newer { path, found, known: FORMAT });
        }
        if u32::from_le_bytes(*crc) != crc32(body) {
            return Err(corrupt("the checksum does not hold"));
        }
        let manifest = decode(body.get(8..).unwrap_or_default());
        manifest.map(Some).map_err(|error| corrupt(&error.to_string()))
    }

    /// Replaces the one of a directory, durably.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn write(&self, vfs: &dyn Vfs, dir: &Path) -> Result<()> {
        let mut out = MAGIC.to_vec();
        put_u32(&mut out, FORMAT);
        put_u64(&mut out, self.hash_seed);
        for number in [self.seq, self.log_from, u64::from(self.next_segment), self.index_file] {
            put_varint(&mut out, number);
        }
        put_varint(&mut out, u64::from(self.databases));
        put_varint(&mut out, self.segments.len() as u64);
        for segment in &self.segments {
            put_varint(&mut out, u64::from(segment.number));
            put_varint(&mut out, segment.size);
            put_varint(&mut out, u64::from(segment.record_count));
        }
        put_varint(&mut out, self.dictionaries.len() as u64);
        self.dictionaries.iter().for_each(|number| put_varint(&mut out, *number));
        let crc = crc32(&out);
        put_u32(&mut out, crc);
        Ok(write_atomic(vfs, &dir.join(MANIFEST_NAME), &out)?)
    }
}

/// Reads what stands between the format and the checksum.
pub(crate) fn decode(body: &[u8]) -> std::result::Result<Manifest, codec::Error> {
    let mut reader = Reader::new(body);
    let mut manifest = Manifest {
        hash_seed: reader.u64()?,
        seq: reader.varint()?,
        log_from: reader.varint()?,
        next_segment: reader.varint_u32()?,
        index_file: reader.varint()?,
        databases: reader.varint_u32()?,
        segments: Vec::new(),
        dictionaries: Vec::new(),
    };
    let count = crate::value::read_len(&mut reader)?;
    for _ in 0..count {
        let number = reader.varint_u32()?;
        let size = reader.varint()?;
        manifest.segments.push(SegmentInfo { number, size, record_count: reader.varint_u32()? });
    }
    let count = crate::value::read_len(&mut reader)?;
    for _ in 0..count {
        manifest.dictionaries.push(reader.varint()?);
    }
    match reader.is_empty() {
        true => Ok(manifest),
        false => Err(reader.corrupt("bytes behind the manifest")),
    }
}
