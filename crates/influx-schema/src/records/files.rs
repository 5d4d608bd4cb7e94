//! The two files of schema records, `DATA/schema/records` and `DATA/schema/records.copy`, which have
//! the same bytes.
//!
//! ```text
//! magic "QPSCHEM1" │ generation varint │ number varint │ log from varint │ records varint
//!   │ (key text │ value text) * │ CRC-32 u32 of all before
//! ```
//!
//! A checkpoint replaces `records` first and then the copy, gives both a generation that no file had, and
//! the log keeps what it adds until both are durable. A crash leaves the copy behind and never ahead; of
//! two sound files the one of the later generation counts.

use super::changes::{put_text, read_text};
use super::table::Table;
use codec::{Reader, crc32, put_u32, put_varint};
use std::path::Path;
use store::{Error, Result};
use vfs::Vfs;

/// Folder of the files in a data directory.
pub const SCHEMA_DIR: &str = wal::kinds::SCHEMA;
/// The file of records in a data directory, as the list of damage names it.
pub const RECORDS_PATH: &str = "schema/records";
/// The file that a checkpoint replaces first.
pub(crate) const RECORDS_FILE: &str = "records";
/// Its copy.
pub(crate) const RECORDS_COPY: &str = "records.copy";
/// Both, in the order in which a checkpoint replaces them.
pub(crate) const FILES: [&str; 2] = [RECORDS_FILE, RECORDS_COPY];
/// Names the data that is lost when neither file can be read.
pub(crate) const LOST: &str = "fields of InfluxDB's measurements and their types, until lines with \
                               them are written again; strings of line protocol; InfluxDB's \
                               databases and retention policies";
/// The last byte is the version.
const MAGIC: &[u8; 8] = b"QPSCHEM1";
/// Generation of the first write. A crash within it leaves no copy.
const GENERATION_FIRST: u64 = 1;
/// Largest generation: counting on never overflows.
const GENERATION_MAX: u64 = 1 << 62;

/// Content of a file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Contents {
    /// Number of the write, from 1 on.
    pub generation: u64,
    /// All records.
    pub table: Table,
    /// The first segment of the log with records that the file may lack.
    pub log_from: u64,
}

impl Contents {
    /// The generation of the write after the one that `generation` is of.
    pub fn generation_after(generation: u64) -> u64 {
        (generation + 1).min(GENERATION_MAX)
    }

    /// The bytes of the file.
    pub fn encode(generation: u64, table: &Table, log_from: u64) -> Vec<u8> {
        let mut out = MAGIC.to_vec();
        put_varint(&mut out, generation);
        put_varint(&mut out, table.number());
        put_varint(&mut out, log_from);
        put_varint(&mut out, table.len() as u64);
        for (key, value) in table.iter() {
            put_text(&mut out, key);
            put_text(&mut out, value);
        }
        let checksum = crc32(&out);
        put_u32(&mut out, checksum);
        out
    }

    /// Decodes the bytes of a file.
    ///
    /// # Errors
    /// [`Error::Corrupt`] and [`Error::UnknownVersion`].
    pub fn decode(path: &Path, bytes: &[u8]) -> Result<Contents> {
        let corrupt = |offset: usize, what: &str| Error::Corrupt {
            file: path.to_path_buf(),
            offset: offset as u64,
            what: what.to_string(),
        };
        let (body, checksum) =
            bytes.split_last_chunk::<4>().ok_or_else(|| corrupt(bytes.len(), "cut short"))?;
        // First: bytes that rotted may name any version.
        if crc32(body) != u32::from_le_bytes(*checksum) {
            return Err(corrupt(body.len(), "checksum mismatch"));
        }
        let [kind @ .., known] = MAGIC;
        let version = body.strip_prefix(kind).and_then(|rest| rest.first());
        match version {
            Some(version) if version == known => {}
            Some(version) if known < version => {
                return Err(Error::UnknownVersion {
                    file: path.to_path_buf(),
                    version: char::from(*version).to_string(),
                    known: format!("up to {}", char::from(*known)),
                });
            }
            _ => return Err(corrupt(0, "not what such a file begins with")),
        }
        let rest = &body[MAGIC.len()..];
        decode_body(rest).map_err(|error| corrupt(MAGIC.len() + error.offset, error.what))
    }
}

fn decode_body(body: &[u8]) -> std::result::Result<Contents, codec::Error> {
    let mut reader = Reader::new(body);
    let generation = reader.varint()?;
    if !(GENERATION_FIRST..=GENERATION_MAX).contains(&generation) {
        return Err(reader.corrupt("no generation"));
    }
    let (number, log_from) = (reader.varint()?, reader.varint()?);
    let mut table = Table::new(number);
    let count = reader.varint_size(reader.remaining())?;
    for _ in 0..count {
        let (key, value) = (read_text(&mut reader)?, read_text(&mut reader)?);
        if !table.insert_last(key, value) {
            return Err(reader.corrupt("keys out of order"));
        }
    }
    match reader.is_empty() {
        true => Ok(Contents { generation, table, log_from }),
        false => Err(reader.corrupt("bytes after the end")),
    }
}

/// Damage to one of the files.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct FileFault {
    /// Name of the file.
    pub file: &'static str,
    /// Description of the damage.
    pub what: String,
    /// Whether the file is there.
    pub is_there: bool,
}

/// Content and damage of the two files.
#[derive(Debug, Default)]
pub(crate) struct StoredRecords {
    /// Content of the file that counts; `None` if neither is there or can be read.
    pub contents: Option<Contents>,
    /// Damage to the files.
    pub faults: Vec<FileFault>,
    /// Whether both files hold the content.
    pub is_twice: bool,
}

/// One file as it was read.
enum FileState {
    Missing,
    Damaged(String),
    Sound(Contents),
}

impl FileState {
    fn read(vfs: &dyn Vfs, dir: &Path, name: &str) -> Result<FileState> {
        let path = dir.join(name);
        if !vfs.exists(&path)? {
            return Ok(FileState::Missing);
        }
        // A read that fails is repeated: a lost sector stays lost.
        let bytes = vfs.read(&path).or_else(|_| vfs.read(&path)).map_err(Error::from);
        match bytes.and_then(|bytes| Contents::decode(&path, &bytes)) {
            Ok(contents) => Ok(FileState::Sound(contents)),
            Err(Error::Corrupt { offset, what, .. }) => {
                Ok(FileState::Damaged(format!("is corrupt at byte {offset}: {what}")))
            }
            Err(error) if error.is_unreadable() => Ok(FileState::Damaged(error.to_string())),
            Err(error) => Err(error),
        }
    }

    fn fault(&self, file: &'static str) -> FileFault {
        let (what, is_there) = match self {
            FileState::Missing => ("is missing".to_string(), false),
            FileState::Damaged(what) => (what.clone(), true),
            FileState::Sound(_) => ("is older than its copy".to_string(), true),
        };
        FileFault { file, what, is_there }
    }
}

impl StoredRecords {
    /// Reads both files of the folder `dir`.
    ///
    /// # Errors
    /// [`Error::UnknownVersion`], and I/O errors. A file with unreadable bytes is a fault, not an error.
    pub fn read(vfs: &dyn Vfs, dir: &Path) -> Result<StoredRecords> {
        // A checkpoint may run at the same time. It replaces the copy last, so the copy is read first.
        let copy = FileState::read(vfs, dir, RECORDS_COPY)?;
        let main = FileState::read(vfs, dir, RECORDS_FILE)?;
        Ok(choose(main, copy))
    }
}

/// Chooses the file to use and describes the damage of the other one.
fn choose(main: FileState, copy: FileState) -> StoredRecords {
    let used =
        |contents, faults, is_twice| StoredRecords { contents: Some(contents), faults, is_twice };
    let (main_fault, copy_fault) = (main.fault(RECORDS_FILE), copy.fault(RECORDS_COPY));
    match (main, copy) {
        (FileState::Sound(main), FileState::Sound(copy)) => {
            let is_twice = main == copy;
            match main.generation < copy.generation {
                true => used(copy, vec![main_fault], false),
                false => used(main, Vec::new(), is_twice),
            }
        }
        (FileState::Sound(main), FileState::Missing) if main.generation == GENERATION_FIRST => {
            used(main, Vec::new(), false)
        }
        (FileState::Sound(main), _) => used(main, vec![copy_fault], false),
        (_, FileState::Sound(copy)) => used(copy, vec![main_fault], false),
        (FileState::Missing, FileState::Missing) => StoredRecords::default(),
        (FileState::Damaged(_), FileState::Missing) => {
            StoredRecords { faults: vec![main_fault], ..StoredRecords::default() }
        }
        (_, FileState::Damaged(_)) => {
            StoredRecords { faults: vec![main_fault, copy_fault], ..StoredRecords::default() }
        }
    }
}

/// Replaces both files.
///
/// # Errors
/// On I/O errors. Each file is the old or the new one then, and the copy is not the only new one.
pub(crate) fn write_files(vfs: &dyn Vfs, dir: &Path, bytes: &[u8]) -> Result<()> {
    for name in FILES {
        vfs::write_atomic(vfs, &dir.join(name), bytes)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use vfs::SimVfs;

    const DIR: &str = "/schema";

    fn table(number: u64) -> Table {
        let mut table = Table::new(number);
        (0..number).for_each(|n| assert!(table.insert_last(&format!("k{n}"), &format!("v{n}"))));
        table
    }

    fn disk_with(number: u64) -> SimVfs {
        let disk = SimVfs::new(1);
        disk.create_dir_all(Path::new(DIR)).expect("a good disk");
        write_files(&disk, Path::new(DIR), &Contents::encode(number, &table(number), 7))
            .expect("written");
        disk
    }

    fn read(disk: &SimVfs) -> StoredRecords {
        StoredRecords::read(disk, Path::new(DIR)).expect("a good disk")
    }

    fn path(name: &str) -> std::path::PathBuf {
        Path::new(DIR).join(name)
    }

    #[test]
    fn file_has_these_bytes_in_version_1() {
        let body = b"QPSCHEM1\x02\x02\x07\x02\x02k0\x02v0\x02k1\x02v1";
        let bytes = [&body[..], &crc32(body).to_le_bytes()].concat();
        assert_eq!(Contents::encode(2, &table(2), 7), bytes);
        let stored = read(&disk_with(2));
        assert_eq!(stored.contents, Some(Contents { generation: 2, table: table(2), log_from: 7 }));
        assert!(stored.is_twice && stored.faults.is_empty());
    }

    #[test]
    fn damage_to_one_file_costs_nothing() {
        for name in FILES {
            let size = disk_with(3).size(&path(name)).expect("there");
            for offset in 0..size {
                let flipped = disk_with(3);
                flipped.flip_bit(&path(name), offset, 3).expect("there");
                let cut = disk_with(3);
                cut.truncate(&path(name), offset).expect("there");
                for disk in [flipped, cut] {
                    let stored = read(&disk);
                    let table = stored.contents.map(|contents| contents.table);
                    assert_eq!(table, Some(self::table(3)), "{name} {offset}");
                    assert_eq!(stored.faults.len(), 1, "{name} {offset}: {:?}", stored.faults);
                    assert_eq!(stored.faults[0].file, name);
                }
            }
        }
    }

    #[test]
    fn later_file_counts_and_only_an_older_copy_is_no_damage() {
        for (name, fault_count) in [(RECORDS_FILE, 1), (RECORDS_COPY, 0)] {
            let disk = disk_with(5);
            let older = Contents::encode(3, &table(3), 7);
            vfs::write_atomic(&disk, &path(name), &older).expect("written");
            let stored = read(&disk);
            assert_eq!(stored.contents.map(|contents| contents.table), Some(table(5)), "{name}");
            assert_eq!((stored.faults.len(), stored.is_twice), (fault_count, false), "{name}");
        }
        for (generation, fault_count) in [(1, 0), (2, 1)] {
            let disk = disk_with(generation);
            disk.remove(&path(RECORDS_COPY)).expect("there");
            assert_eq!(read(&disk).faults.len(), fault_count, "a crash in the first write alone");
        }
        let disk = disk_with(5);
        disk.remove(&path(RECORDS_FILE)).expect("there");
        assert_eq!(read(&disk).faults.len(), 1);
    }

    #[test]
    fn both_files_damaged_leave_no_content_and_a_newer_version_is_refused() {
        let disk = disk_with(5);
        FILES.iter().for_each(|name| disk.flip_bit(&path(name), 12, 1).expect("there"));
        let stored = read(&disk);
        assert!(stored.contents.is_none() && stored.faults.len() == 2, "{stored:?}");
        for name in FILES {
            let disk = disk_with(5);
            let body = b"QPSCHEM2what a newer program writes";
            let bytes = [&body[..], &crc32(body).to_le_bytes()].concat();
            vfs::write_atomic(&disk, &path(name), &bytes).expect("written");
            let refused = StoredRecords::read(&disk, Path::new(DIR));
            assert!(matches!(refused, Err(Error::UnknownVersion { .. })), "{name}: {refused:?}");
        }
    }
}
