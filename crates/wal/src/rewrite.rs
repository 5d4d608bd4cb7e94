//! Writes a segment again with what is whole; for repair. The file is complete and synced, but has
//! another name: the caller keeps the old one and then renames.

use crate::error::Result;
use crate::format::{Header, KIND_MARK, put_record, segment_name};
use crate::segments::{RecordRef, open_reader};
use std::path::{Path, PathBuf};
use vfs::atomic::TEMPORARY_SUFFIX;
use vfs::{AppendFile, Vfs};

/// How the file of a segment that is being written again is called: its name and this.
pub const REWRITTEN_SUFFIX: &str = TEMPORARY_SUFFIX;
/// Bytes gathered before they go to the file.
const WRITE_SIZE: usize = 1 << 20;

/// What becomes of a record.
#[derive(Debug)]
pub enum Kept {
    /// It stays as it is.
    Whole,
    /// This takes its place.
    Changed(Vec<u8>),
    /// It goes.
    Not,
}

/// Writes what `keep` keeps of a segment's sound records to a new file, and returns its path.
///
/// # Errors
/// On I/O errors.
pub fn rewrite(
    vfs: &dyn Vfs,
    directory: &Path,
    segment: u64,
    keep: &mut dyn FnMut(RecordRef<'_>) -> Kept,
) -> Result<PathBuf> {
    let name = segment_name(segment);
    let path = directory.join(format!("{name}{REWRITTEN_SUFFIX}"));
    let bytes = vfs.map(&directory.join(name))?;
    let reader = open_reader(&bytes, &path, segment)?;
    let mut writer = Writer::start(vfs, &path, segment)?;
    if let Some((mut reader, _)) = reader {
        loop {
            match reader.next() {
                Ok(None) => break,
                Ok(Some(record)) if record.kind == KIND_MARK => {}
                Ok(Some(record)) => {
                    let (offset, kind, payload) = (record.offset, record.kind, record.payload);
                    match keep(RecordRef { segment, offset, kind, payload }) {
                        Kept::Whole => writer.put(kind, payload)?,
                        Kept::Changed(payload) => writer.put(kind, &payload)?,
                        Kept::Not => {}
                    }
                }
                Err(_) => drop(reader.skip_damage()),
            }
        }
    }
    writer.finish()?;
    Ok(path)
}

/// Creates a segment without records, durably, where one is missing, and returns its size in bytes.
///
/// # Errors
/// On I/O errors.
pub fn fill_gap(vfs: &dyn Vfs, directory: &Path, segment: u64) -> Result<u64> {
    let header = Header { segment, nonce: vfs.random() };
    let mut bytes = header.encode();
    let offset = bytes.len() as u64;
    put_record(&mut bytes, header.salt(), offset, KIND_MARK, &[]);
    vfs::write_atomic(vfs, &directory.join(segment_name(segment)), &bytes)?;
    Ok(bytes.len() as u64)
}

struct Writer {
    file: Box<dyn AppendFile>,
    salt: u32,
    buffer: Vec<u8>,
    /// Bytes in the file.
    written: u64,
}

impl Writer {
    fn start(vfs: &dyn Vfs, path: &Path, segment: u64) -> Result<Writer> {
        // Left by a repair that was interrupted.
        if vfs.exists(path)? {
            vfs.remove(path)?;
        }
        let header = Header { segment, nonce: vfs.random() };
        let buffer = header.encode();
        Ok(Writer { file: vfs.create(path)?, salt: header.salt(), buffer, written: 0 })
    }

    fn put(&mut self, kind: u8, payload: &[u8]) -> Result<()> {
        let offset = self.written + self.buffer.len() as u64;
        put_record(&mut self.buffer, self.salt, offset, kind, &[payload]);
        if WRITE_SIZE <= self.buffer.len() {
            self.write()?;
        }
        Ok(())
    }

    fn write(&mut self) -> Result<()> {
        self.file.append(&self.buffer)?;
        self.written += self.buffer.len() as u64;
        assert_eq!(self.file.size(), self.written, "checksums cover the offset of a record");
        self.buffer.clear();
        Ok(())
    }

    /// Ends with a mark, so that damage to come is told from a torn write.
    fn finish(mut self) -> Result<()> {
        self.write()?;
        self.file.sync()?;
        self.put(KIND_MARK, &[])?;
        self.write()?;
        Ok(self.file.sync()?)
    }
}
