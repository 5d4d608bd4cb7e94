//! What was logged while the index of a snapshot was copied. The copy is of no single moment, and a
//! snapshot has no log: with this it is what there was at one.
//!
//! ```text
//! magic "QPKT" │ format u32 │ (size u32 │ CRC-32 u32 │ bytes) each     of the log: a record, or a piece
//!   │ 0 u32 │ CRC-32 u32 of nothing
//! ```
//! It has the number of the index that it belongs to, and goes with that at the next checkpoint.

use crate::error::{Error, Result};
use codec::bytes::{Reader, put_u32};
use codec::checksum::crc32;
use std::path::Path;
use vfs::{AppendFile, Vfs};

const MAGIC: &[u8; 4] = b"QPKT";
const FORMAT: u32 = 1;
/// Bytes that are written at a time.
const WRITE_SIZE: usize = 1 << 20;
/// What is wrong when a page of the file cannot be read.
const CUT_OFF: &str = "the disk does not give all of it";

/// How the name of such a file ends.
pub(crate) const TAIL_END: &str = ".tail";

/// The file of the tail that belongs to an index.
pub(crate) fn tail_name(index_file: u64) -> String {
    format!("{index_file:08}{TAIL_END}")
}

/// Writes one.
pub(crate) struct TailWriter {
    file: Box<dyn AppendFile>,
    buffer: Vec<u8>,
}

impl TailWriter {
    /// Begins a file, which replaces what a process that died left there.
    pub(crate) fn new(vfs: &dyn Vfs, path: &Path) -> Result<TailWriter> {
        if vfs.exists(path)? {
            vfs.remove(path)?;
        }
        let mut buffer = MAGIC.to_vec();
        put_u32(&mut buffer, FORMAT);
        Ok(TailWriter { file: vfs.create(path)?, buffer })
    }

    /// Adds a record of the log, which bounds its size.
    pub(crate) fn record(&mut self, bytes: &[u8]) -> vfs::Result<()> {
        put_u32(&mut self.buffer, u32::try_from(bytes.len()).unwrap_or(u32::MAX));
        put_u32(&mut self.buffer, crc32(bytes));
        self.buffer.extend_from_slice(bytes);
        if WRITE_SIZE <= self.buffer.len() {
            self.file.append(&self.buffer)?;
            self.buffer.clear();
        }
        Ok(())
    }

    /// Ends it, durably but for its name.
    pub(crate) fn finish(mut self) -> Result<()> {
        self.record(&[])?;
        self.file.append(&self.buffer)?;
        Ok(self.file.sync()?)
    }
}

/// Hands on the records of the tail that belongs to an index, if there is one. Returns the bytes of its
/// file.
pub(crate) fn read(
    vfs: &dyn Vfs,
    dir: &Path,
    index_file: u64,
    each: &mut dyn FnMut(&[u8]) -> std::result::Result<(), wal::ReplayError>,
) -> Result<Option<u64>> {
    let path = dir.join(tail_name(index_file));
    if !vfs.exists(&path)? {
        return Ok(None);
    }
    let bytes = vfs.map(&path)?;
    let reason = match walk(&bytes, each) {
        Ok(()) if bytes.has_faulted() => CUT_OFF.to_owned(),
        Ok(()) => return Ok(Some(bytes.len() as u64)),
        Err(error) => error.to_string(),
    };
    Err(Error::Corrupt { path, reason })
}

/// What can be had of a tail that may be damaged.
pub(crate) struct Salvage {
    /// Records before the damage.
    pub(crate) count: u64,
    /// What the damage is, if there is any.
    pub(crate) damage: Option<String>,
}

/// Hands on the records of a tail up to the first that is damaged: those behind it would be done to
/// keys that lack what it did.
pub(crate) fn salvage(
    vfs: &dyn Vfs,
    path: &Path,
    each: &mut dyn FnMut(&[u8]) -> std::result::Result<(), wal::ReplayError>,
) -> Result<Salvage> {
    let bytes = match vfs.map(path) {
        Ok(bytes) => bytes,
        Err(error) => return Ok(Salvage { count: 0, damage: Some(error.to_string()) }),
    };
    let mut count = 0;
    // Records have checksums of their own: damage to the first bytes of the file costs none.
    let walked = walk_records(&bytes, &mut |record| {
        count += 1;
        each(record)
    });
    let damage = match walked.and_then(|()| check_header(&bytes)) {
        Ok(()) => bytes.has_faulted().then(|| CUT_OFF.to_owned()),
        Err(error) => Some(error.to_string()),
    };
    Ok(Salvage { count, damage })
}

fn walk(
    bytes: &[u8],
    each: &mut dyn FnMut(&[u8]) -> std::result::Result<(), wal::ReplayError>,
) -> std::result::Result<(), wal::ReplayError> {
    check_header(bytes)?;
    walk_records(bytes, each)
}

/// No checksum covers the number of the format. A newer one has a newer manifest, too.
fn check_header(bytes: &[u8]) -> std::result::Result<(), wal::ReplayError> {
    let format = bytes.strip_prefix(MAGIC).and_then(|rest| rest.first_chunk::<4>());
    match format.map(|format| u32::from_le_bytes(*format)) {
        Some(FORMAT) => Ok(()),
        _ => Err("its first bytes are damaged".into()),
    }
}

fn walk_records(
    bytes: &[u8],
    each: &mut dyn FnMut(&[u8]) -> std::result::Result<(), wal::ReplayError>,
) -> std::result::Result<(), wal::ReplayError> {
    let mut reader = Reader::new(bytes);
    reader.slice(MAGIC.len() + size_of::<u32>())?;
    loop {
        let (size, crc) = (reader.u32()?, reader.u32()?);
        let record = reader.slice(usize::try_from(size)?)?;
        if crc32(record) != crc {
            return Err("the checksum does not hold".into());
        }
        match record.is_empty() {
            true if reader.is_empty() => return Ok(()),
            true => return Err("there are bytes behind its end".into()),
            false => each(record)?,
        }
    }
}
