//! The index of a checkpoint: where the record of each key lies, and which keys expire.
//!
//! ```text
//! magic "QPKI" │ format u32 │ blocks
//! block    kind u8 │ database u8 │ count u32 │ entries │ CRC-32 u32 of all that
//!   kind 1, keys      entry: hash 6 bytes │ place 6 bytes
//!   kind 2, expiry    entry: time i64 │ hash 6 bytes
//!   kind 3, the end   no entries
//! ```

use crate::error::{Error, Result};
use crate::index::{Address, KeyHash, Place};
use codec::bytes::Reader;
use codec::checksum::crc32;
use std::path::Path;
use vfs::{AppendFile, Vfs};

const MAGIC: &[u8; 4] = b"QPKI";
const FORMAT: u32 = 1;
const KIND_KEYS: u8 = 1;
const KIND_EXPIRY: u8 = 2;
const KIND_END: u8 = 3;
/// Magic and format.
const HEADER_SIZE: usize = 8;
const BLOCK_HEADER_SIZE: usize = 6;
/// Bytes that are written at a time.
const WRITE_SIZE: usize = 1 << 20;

/// The file of an index.
pub(crate) fn index_name(number: u64) -> String {
    format!("{number:08}.index")
}

/// Writes the index of a checkpoint.
pub(crate) struct SnapshotWriter {
    file: Box<dyn AppendFile>,
    buffer: Vec<u8>,
}

impl SnapshotWriter {
    /// Begins a file, which replaces what a process that died left there.
    pub(crate) fn new(vfs: &dyn Vfs, path: &Path) -> Result<SnapshotWriter> {
        if vfs.exists(path)? {
            vfs.remove(path)?;
        }
        let mut buffer = MAGIC.to_vec();
        buffer.extend_from_slice(&FORMAT.to_le_bytes());
        Ok(SnapshotWriter { file: vfs.create(path)?, buffer })
    }

    /// Adds keys of a database.
    pub(crate) fn keys(&mut self, db: u8, entries: &[(KeyHash, Address)]) -> Result<()> {
        self.block(KIND_KEYS, db, entries.len(), |out| {
            for (hash, address) in entries {
                out.extend_from_slice(&six(hash.number()));
                out.extend_from_slice(&six(Place::Cold(*address).to_bits()));
            }
        })
    }

    /// Adds times at which keys of a database expire.
    pub(crate) fn expiry(&mut self, db: u8, entries: &[(i64, KeyHash)]) -> Result<()> {
        self.block(KIND_EXPIRY, db, entries.len(), |out| {
            for (expire_ms, hash) in entries {
                out.extend_from_slice(&expire_ms.to_le_bytes());
                out.extend_from_slice(&six(hash.number()));
            }
        })
    }

    fn block(
        &mut self,
        kind: u8,
        db: u8,
        count: usize,
        entries: impl FnOnce(&mut Vec<u8>),
    ) -> Result<()> {
        let start = self.buffer.len();
        self.buffer.extend_from_slice(&[kind, db]);
        let count = u32::try_from(count).expect("a block is a table's part");
        self.buffer.extend_from_slice(&count.to_le_bytes());
        entries(&mut self.buffer);
        let crc = crc32(&self.buffer[start..]);
        self.buffer.extend_from_slice(&crc.to_le_bytes());
        if WRITE_SIZE <= self.buffer.len() {
            self.file.append(&self.buffer)?;
            self.buffer.clear();
        }
        Ok(())
    }

    /// Ends the file and makes it durable but for its name.
    pub(crate) fn finish(mut self) -> Result<()> {
        self.block(KIND_END, 0, 0, |_| {})?;
        self.file.append(&self.buffer)?;
        Ok(self.file.sync()?)
    }
}

fn six(number: u64) -> [u8; 6] {
    let [a, b, c, d, e, f, ..] = number.to_le_bytes();
    [a, b, c, d, e, f]
}

/// What an index file holds, block by block.
pub(crate) enum IndexSnapshot {
    /// Keys of a database.
    Keys(u8, Vec<(KeyHash, Address)>),
    /// When keys of a database expire.
    Expiry(u8, Vec<(i64, KeyHash)>),
}

impl IndexSnapshot {
    /// Reads a file block by block.
    pub(crate) fn read(
        vfs: &dyn Vfs,
        path: &Path,
        each: impl FnMut(IndexSnapshot) -> Result<()>,
    ) -> Result<()> {
        let bytes = vfs.map(path)?;
        IndexSnapshot::parse(&bytes, path, each)?;
        match bytes.has_faulted() {
            true => Err(corrupt(path, "the disk did not give all of it")),
            false => Ok(()),
        }
    }

    /// Reads the bytes of a file block by block.
    pub(crate) fn parse(
        bytes: &[u8],
        path: &Path,
        each: impl FnMut(IndexSnapshot) -> Result<()>,
    ) -> Result<()> {
        let format = bytes.strip_prefix(MAGIC).and_then(|rest| rest.first_chunk::<4>());
        match format.map(|format| u32::from_le_bytes(*format)) {
            Some(FORMAT) => IndexSnapshot::parse_blocks(bytes, path, each),
            // No checksum covers the number. A newer format has a newer manifest, too.
            _ => Err(corrupt(path, "its first bytes are damaged")),
        }
    }

    /// Reads the blocks of a file whose first bytes are damaged.
    pub(crate) fn read_blocks(
        vfs: &dyn Vfs,
        path: &Path,
        each: impl FnMut(IndexSnapshot) -> Result<()>,
    ) -> Result<()> {
        let bytes = vfs.map(path)?;
        IndexSnapshot::parse_blocks(&bytes, path, each)?;
        match bytes.has_faulted() {
            true => Err(corrupt(path, "the disk did not give all of it")),
            false => Ok(()),
        }
    }

    fn parse_blocks(
        bytes: &[u8],
        path: &Path,
        mut each: impl FnMut(IndexSnapshot) -> Result<()>,
    ) -> Result<()> {
        let mut reader = Reader::new(bytes);
        reader.slice(HEADER_SIZE).map_err(|_| corrupt(path, "cut short"))?;
        loop {
            let (kind, db, entries) =
                block(bytes, &mut reader).map_err(|e| corrupt(path, &e.to_string()))?;
            match kind {
                KIND_KEYS => each(IndexSnapshot::Keys(db, keys_of(entries, path)?))?,
                KIND_EXPIRY => each(IndexSnapshot::Expiry(db, expiry_of(entries)))?,
                KIND_END if reader.is_empty() => return Ok(()),
                _ => return Err(corrupt(path, "a block of an unknown kind")),
            }
        }
    }
}

fn corrupt(path: &Path, reason: &str) -> Error {
    Error::Corrupt { path: path.to_path_buf(), reason: reason.to_owned() }
}

/// The next block, its checksum proven: kind, database, entries.
fn block<'a>(
    bytes: &'a [u8],
    reader: &mut Reader<'a>,
) -> std::result::Result<(u8, u8, &'a [u8]), codec::Error> {
    let start = reader.offset();
    let (kind, db, count) = (reader.u8()?, reader.u8()?, reader.u32()? as usize);
    let size = match kind {
        KIND_KEYS => 12,
        KIND_EXPIRY => 14,
        _ => 0,
    };
    let entries = reader.slice(count.saturating_mul(size))?;
    let end = start + BLOCK_HEADER_SIZE + entries.len();
    let crc = reader.u32()?;
    match crc == crc32(&bytes[start..end]) {
        true => Ok((kind, db, entries)),
        false => Err(reader.corrupt("the checksum of a block does not hold")),
    }
}

fn keys_of(entries: &[u8], path: &Path) -> Result<Vec<(KeyHash, Address)>> {
    let entries = entries.as_chunks::<12>().0.iter().map(|entry| {
        let (hash, place) = entry.split_at(6);
        match Place::from_bits(number(place)) {
            Place::Cold(address) => Ok((KeyHash::from_number(number(hash)), address)),
            Place::Hot(_) => {
                let reason = "a key whose value is in memory".to_owned();
                Err(Error::Corrupt { path: path.to_path_buf(), reason })
            }
        }
    });
    entries.collect()
}

fn expiry_of(entries: &[u8]) -> Vec<(i64, KeyHash)> {
    let entries = entries.as_chunks::<14>().0.iter().map(|entry| {
        let (time, hash) = entry.split_at(8);
        (number(time) as i64, KeyHash::from_number(number(hash)))
    });
    entries.collect()
}

fn number(bytes: &[u8]) -> u64 {
    let mut all = [0; 8];
    all[..bytes.len()].copy_from_slice(bytes);
    u64::from_le_bytes(all)
}
