//! What a checkpoint has made durable: one small file, replaced whole; see `docs/format/tables.md`.
//!
//! ```text
//! magic "QPTM" │ format u32 │ record varint │ log from varint │ next table varint │ next file varint
//!   │ tables varint │ (table varint │ file varint │ size varint │ last checksum u32) each
//!   │ CRC-32 u32 of all before
//! ```
//! `MANIFEST.copy` has the same bytes. It is written after `MANIFEST` and before any file goes that the
//! manifest before needs, and is used when `MANIFEST` is damaged, lost or replaced by an older one.

use crate::error::{Error, Result};
use crate::limits::TABLES_MAX;
use codec::{Reader, crc32, put_u32, put_varint};
use std::path::{Path, PathBuf};
use vfs::{Vfs, write_atomic};

/// The file's name.
pub const MANIFEST_NAME: &str = "MANIFEST";
/// The second file with the same bytes.
pub const MANIFEST_COPY_NAME: &str = "MANIFEST.copy";
const MAGIC: &[u8; 4] = b"QPTM";
/// The format that is written, and the newest one that is read.
const FORMAT: u32 = 1;
/// The end of the name of a table's file.
const FILE_SUFFIX: &str = ".table";

/// The name of a table's file.
pub(crate) fn file_name(number: u64) -> String {
    format!("{number:010}{FILE_SUFFIX}")
}

/// The number of a table's file.
pub(crate) fn file_number(name: &str) -> Option<u64> {
    let number = name.strip_suffix(FILE_SUFFIX)?.parse().ok()?;
    (file_name(number) == name).then_some(number)
}

/// Whether a file's name is one that manifests name.
pub(crate) fn is_table_file(name: &str) -> bool {
    name.ends_with(FILE_SUFFIX)
}

/// A table's file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct FileInfo {
    /// The table's number.
    pub table: u64,
    /// The file's.
    pub file: u64,
    /// Its bytes.
    pub size: u64,
    /// The checksum of its last block.
    pub end_crc: u32,
}

/// A checkpoint.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Manifest {
    /// The number of the last record of the log that it shows.
    pub seq: u64,
    /// The first segment of the log with records that it does not show.
    pub log_from: u64,
    /// Tables' numbers from here on were never given out.
    pub next_table: u64,
    /// Files' numbers from here on were never given out.
    pub next_file: u64,
    /// Its tables, by increasing number.
    pub tables: Vec<FileInfo>,
}

impl Manifest {
    /// Replaces both files of a directory, durably. When it fails, either manifest may be there.
    pub fn write(&self, vfs: &dyn Vfs, dir: &Path) -> Result<()> {
        let bytes = self.encode();
        write_atomic(vfs, &dir.join(MANIFEST_NAME), &bytes)?;
        Ok(write_atomic(vfs, &dir.join(MANIFEST_COPY_NAME), &bytes)?)
    }

    /// Whether it is of a later checkpoint than another.
    fn is_after(&self, other: &Manifest) -> bool {
        (other.seq, other.next_file) < (self.seq, self.next_file)
    }

    pub fn encode(&self) -> Vec<u8> {
        let mut out = MAGIC.to_vec();
        put_u32(&mut out, FORMAT);
        for number in [self.seq, self.log_from, self.next_table, self.next_file] {
            put_varint(&mut out, number);
        }
        put_varint(&mut out, self.tables.len() as u64);
        for FileInfo { table, file, size, end_crc } in &self.tables {
            put_varint(&mut out, *table);
            put_varint(&mut out, *file);
            put_varint(&mut out, *size);
            put_u32(&mut out, *end_crc);
        }
        let crc = crc32(&out);
        put_u32(&mut out, crc);
        out
    }

    /// Whether it names a file.
    pub fn names(&self, name: &str) -> bool {
        is_manifest(name) || self.tables.iter().any(|one| file_name(one.file) == name)
    }
}

/// Whether a file's name is one of the two that hold a manifest.
pub(crate) fn is_manifest(name: &str) -> bool {
    [MANIFEST_NAME, MANIFEST_COPY_NAME].contains(&name)
}

/// The manifest of a directory, and what is wrong with the two files that hold it.
#[derive(Debug, Default)]
pub(crate) struct StoredManifest {
    /// None if neither file is there.
    pub manifest: Option<Manifest>,
    /// Damage to a file that the other one makes good.
    pub fault: Option<Error>,
    /// Whether both files hold it.
    pub is_twice: bool,
}

impl StoredManifest {
    /// Reads both files.
    ///
    /// # Errors
    /// When neither can be read, or a newer program wrote one.
    pub fn read(vfs: &dyn Vfs, dir: &Path) -> Result<StoredManifest> {
        let first = read_file(vfs, &dir.join(MANIFEST_NAME));
        let copy = read_file(vfs, &dir.join(MANIFEST_COPY_NAME));
        let found = |manifest, fault, is_twice| {
            Ok(StoredManifest { manifest: Some(manifest), fault, is_twice })
        };
        let of_first = |reason: &str| Some(corrupt(dir.join(MANIFEST_NAME), reason));
        match (first, copy) {
            (Err(error @ Error::Newer { .. }), _) | (_, Err(error @ Error::Newer { .. })) => {
                Err(error)
            }
            (Ok(Some(first)), Ok(Some(copy))) if copy.is_after(&first) => {
                found(copy, of_first("is older than its copy"), false)
            }
            (Ok(Some(first)), Ok(copy)) => {
                let is_twice = copy.as_ref() == Some(&first);
                found(first, None, is_twice)
            }
            (Ok(Some(first)), Err(error)) => found(first, Some(error), false),
            (Err(error), Ok(Some(copy))) => found(copy, Some(error), false),
            (Ok(None), Ok(Some(copy))) => {
                found(copy, of_first("is missing, though its copy is there"), false)
            }
            (Ok(None), Ok(None)) => Ok(StoredManifest::default()),
            (Err(error), _) | (Ok(None), Err(error)) => Err(error),
        }
    }
}

fn read_file(vfs: &dyn Vfs, path: &Path) -> Result<Option<Manifest>> {
    if !vfs.exists(path)? {
        return Ok(None);
    }
    decode(path, &vfs.read(path)?).map(Some)
}

/// What a manifest's bytes say.
pub(crate) fn decode(path: &Path, bytes: &[u8]) -> Result<Manifest> {
    let corrupt = |reason: &str| corrupt(path.to_path_buf(), reason);
    let (body, crc) = bytes.split_last_chunk::<4>().ok_or_else(|| corrupt("is cut short"))?;
    // First: what rotted may name any format.
    if u32::from_le_bytes(*crc) != crc32(body) {
        return Err(corrupt("the checksum does not hold"));
    }
    let mut reader = Reader::new(body);
    if reader.slice(MAGIC.len()).ok() != Some(MAGIC) {
        return Err(corrupt("is no manifest of tables"));
    }
    let found = reader.u32().map_err(|error| corrupt(&error.to_string()))?;
    if FORMAT < found {
        return Err(Error::Newer { path: path.to_path_buf(), found, known: FORMAT });
    }
    decode_body(&mut reader).map_err(|error| corrupt(&error.to_string()))
}

fn decode_body(reader: &mut Reader<'_>) -> std::result::Result<Manifest, codec::Error> {
    let mut manifest = Manifest {
        seq: reader.varint()?,
        log_from: reader.varint()?,
        next_table: reader.varint()?,
        next_file: reader.varint()?,
        tables: Vec::new(),
    };
    for _ in 0..reader.varint_size(TABLES_MAX)? {
        let (table, file) = (reader.varint()?, reader.varint()?);
        let (size, end_crc) = (reader.varint()?, reader.u32()?);
        manifest.tables.push(FileInfo { table, file, size, end_crc });
    }
    let is_sorted = manifest.tables.is_sorted_by(|a, b| a.table < b.table);
    let is_known =
        |one: &FileInfo| one.table < manifest.next_table && one.file < manifest.next_file;
    match reader.is_empty() && is_sorted && manifest.tables.iter().all(is_known) {
        true => Ok(manifest),
        false => Err(reader.corrupt("what no manifest says")),
    }
}

/// A file that does not hold what it should.
pub(crate) fn corrupt(path: PathBuf, reason: impl Into<String>) -> Error {
    Error::Corrupt { path, reason: reason.into() }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn manifest() -> Manifest {
        let info = |table| FileInfo { table, file: 9 - table, size: 1 << 40, end_crc: 77 };
        let tables = vec![info(1), info(3)];
        Manifest { seq: 300, log_from: 7, next_table: 4, next_file: 9, tables }
    }

    #[test]
    fn manifests_come_back_or_are_corrupt() {
        let path = Path::new("MANIFEST");
        let bytes = manifest().encode();
        assert_eq!(decode(path, &bytes).unwrap(), manifest());
        for byte in 0..bytes.len() {
            let mut rotten = bytes.clone();
            rotten[byte] ^= 4;
            let error = decode(path, &rotten).unwrap_err();
            assert!(matches!(error, Error::Corrupt { .. }), "byte {byte}: {error}");
            assert!(decode(path, &bytes[..byte]).is_err());
        }
        for change in [
            |m: &mut Manifest| m.next_table = 3,
            |m: &mut Manifest| m.next_file = 8,
            |m: &mut Manifest| m.tables.swap(0, 1),
        ] {
            let mut manifest = manifest();
            change(&mut manifest);
            assert!(decode(path, &manifest.encode()).is_err());
        }
    }

    #[test]
    fn either_file_is_enough_and_the_later_checkpoint_counts() {
        let dir = Path::new("/");
        let replace = |disk: &vfs::SimVfs, name: &str, manifest: &Manifest| {
            write_atomic(disk, &dir.join(name), &manifest.encode()).expect("a good disk");
        };
        let read = |disk: &vfs::SimVfs| StoredManifest::read(disk, dir).expect("one is sound");
        for name in [MANIFEST_NAME, MANIFEST_COPY_NAME] {
            let disk = vfs::SimVfs::new(1);
            manifest().write(&disk, dir).expect("a good disk");
            assert!(read(&disk).is_twice && read(&disk).fault.is_none());
            disk.flip_bit(&dir.join(name), 4, 1).expect("there");
            let stored = read(&disk);
            assert_eq!(stored.manifest, Some(manifest()));
            let (file, what) = stored.fault.expect("damage").into_finding(dir.into());
            assert!(file.ends_with(name) && what.contains("checksum"), "{file:?} {what}");
        }
        let (older, newer) =
            (Manifest { seq: 299, ..manifest() }, Manifest { seq: 301, ..manifest() });
        let disk = vfs::SimVfs::new(1);
        manifest().write(&disk, dir).expect("a good disk");
        replace(&disk, MANIFEST_NAME, &older);
        assert_eq!(read(&disk).manifest, Some(manifest()));
        assert!(read(&disk).fault.is_some());
        // A crash between the two writes leaves an older copy.
        replace(&disk, MANIFEST_NAME, &newer);
        assert_eq!(read(&disk).manifest, Some(newer));
        assert!(read(&disk).fault.is_none() && !read(&disk).is_twice);
    }

    #[test]
    fn a_newer_one_is_told_from_a_broken_one() {
        let mut bytes = manifest().encode();
        bytes[4] = 2;
        let end = bytes.len() - 4;
        let crc = crc32(&bytes[..end]);
        bytes[end..].copy_from_slice(&crc.to_le_bytes());
        let error = decode(Path::new("MANIFEST"), &bytes).unwrap_err();
        assert!(matches!(error, Error::Newer { found: 2, known: 1, .. }), "{error}");
    }
}
