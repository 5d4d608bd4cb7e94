//! What a checkpoint has made durable: one small file, replaced whole.
//!
//! ```text
//! magic "QPKV" │ format u32 │ hash seed u64 │ seq varint │ log from varint │ next segment varint
//!   │ index file varint │ databases varint │ first hidden database varint │ has a tail varint, 0 or 1
//!   │ has a list of files varint, 0 or 1
//!   │ segments varint │ (number varint │ size varint │ records varint) each
//!   │ dictionaries varint │ number varint each │ CRC-32 u32 of all before
//! ```
//! `MANIFEST.copy` has the same bytes. It is written after `MANIFEST` and before any file goes that the
//! manifest before needs, and is used when `MANIFEST` is damaged, lost or replaced by an older one.

use crate::error::{Error, Result};
use crate::index::SEGMENT_MAX;
use crate::keyspace::HIDDEN_DATABASES;
use codec::bytes::{Reader, put_u32, put_u64, put_varint};
use codec::checksum::crc32;
use std::collections::HashSet;
use std::path::Path;
use vfs::{Vfs, write_atomic};

/// The file's name.
pub const MANIFEST_NAME: &str = "MANIFEST";
/// The second file with the same bytes.
pub const MANIFEST_COPY_NAME: &str = "MANIFEST.copy";
const MAGIC: &[u8; 4] = b"QPKV";
/// The format that is written, and the newest one that is read. Format 1 has neither the first hidden
/// database, which is the last but one, nor whether there is a tail. Formats below 3 do not have whether
/// there is a list of files.
pub(crate) const FORMAT: u32 = 3;

/// Databases, the hidden ones included: one byte numbers them.
const DATABASES_MAX: u32 = 256;

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
    /// How many databases there are, the hidden ones included.
    pub databases: u32,
    /// The first of the databases that clients do not see. It stays there whatever number of databases
    /// clients are given.
    pub hidden: u32,
    /// Whether it is of a snapshot whose index is complete only with its tail.
    pub has_tail: bool,
    /// Whether the folder has the list of files with checksums, `credentials`.
    pub has_file_list: bool,
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

    /// Reads the one of a directory, if there is one, from whichever of its two files is sound.
    ///
    /// # Errors
    /// When neither can be read, or a newer program wrote it.
    pub fn read(vfs: &dyn Vfs, dir: &Path) -> Result<Option<Manifest>> {
        Ok(StoredManifest::read(vfs, dir)?.manifest)
    }

    /// Replaces both files of a directory, durably.
    ///
    /// # Errors
    /// When one cannot be written.
    pub fn write(&self, vfs: &dyn Vfs, dir: &Path) -> Result<()> {
        let bytes = self.encode();
        write_atomic(vfs, &dir.join(MANIFEST_NAME), &bytes)?;
        Ok(write_atomic(vfs, &dir.join(MANIFEST_COPY_NAME), &bytes)?)
    }

    /// Whether it is of a later checkpoint than another.
    fn is_after(&self, other: &Manifest) -> bool {
        let order = |one: &Manifest| (one.index_file, one.seq, one.log_from);
        order(other) < order(self)
    }

    fn encode(&self) -> Vec<u8> {
        let mut out = MAGIC.to_vec();
        put_u32(&mut out, FORMAT);
        put_u64(&mut out, self.hash_seed);
        for number in [self.seq, self.log_from, u64::from(self.next_segment), self.index_file] {
            put_varint(&mut out, number);
        }
        put_varint(&mut out, u64::from(self.databases));
        put_varint(&mut out, u64::from(self.hidden));
        put_varint(&mut out, u64::from(self.has_tail));
        put_varint(&mut out, u64::from(self.has_file_list));
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
        out
    }
}

/// The manifest of a directory, and what is wrong with the two files that hold it.
#[derive(Debug, Default)]
pub(crate) struct StoredManifest {
    /// None if neither file is there.
    pub(crate) manifest: Option<Manifest>,
    /// Damage to a file that the other one makes good: its name, and what is wrong.
    pub(crate) fault: Option<(&'static str, String)>,
    /// Whether both files hold it.
    pub(crate) is_twice: bool,
}

impl StoredManifest {
    /// Reads both files.
    ///
    /// # Errors
    /// When neither can be read, or a newer program wrote one.
    pub(crate) fn read(vfs: &dyn Vfs, dir: &Path) -> Result<StoredManifest> {
        let first = read_file(vfs, &dir.join(MANIFEST_NAME));
        let copy = read_file(vfs, &dir.join(MANIFEST_COPY_NAME));
        let found = |manifest, fault, is_twice| {
            Ok(StoredManifest { manifest: Some(manifest), fault, is_twice })
        };
        match (first, copy) {
            (Err(error @ Error::Newer { .. }), _) | (_, Err(error @ Error::Newer { .. })) => {
                Err(error)
            }
            (Ok(Some(first)), Ok(Some(copy))) if copy.is_after(&first) => {
                let what = "is older than its copy".to_owned();
                found(copy, Some((MANIFEST_NAME, what)), false)
            }
            (Ok(Some(first)), Ok(copy)) => {
                let is_twice = copy.as_ref() == Some(&first);
                found(first, None, is_twice)
            }
            (Ok(Some(first)), Err(error)) => {
                found(first, Some((MANIFEST_COPY_NAME, error.reason())), false)
            }
            (Err(error), Ok(Some(copy))) => {
                found(copy, Some((MANIFEST_NAME, error.reason())), false)
            }
            (Ok(None), Ok(Some(copy))) => {
                let what = "is missing, though its copy is there".to_owned();
                found(copy, Some((MANIFEST_NAME, what)), false)
            }
            (Ok(None), Ok(None)) => Ok(StoredManifest::default()),
            (Err(error), _) | (Ok(None), Err(error)) => Err(error),
        }
    }
}

/// Reads a file, if it is there. The checksum is proven first: damaged bytes may name any format.
fn read_file(vfs: &dyn Vfs, path: &Path) -> Result<Option<Manifest>> {
    if !vfs.exists(path)? {
        return Ok(None);
    }
    let bytes = vfs.read(path)?;
    let corrupt =
        |reason: &str| Error::Corrupt { path: path.to_path_buf(), reason: reason.to_owned() };
    let (body, crc) = bytes.split_last_chunk::<4>().ok_or_else(|| corrupt("cut short"))?;
    if u32::from_le_bytes(*crc) != crc32(body) {
        return Err(corrupt("the checksum does not hold"));
    }
    if body.get(..4) != Some(MAGIC.as_slice()) {
        return Err(corrupt("is no manifest of keys"));
    }
    let format = body.get(4..8).and_then(|bytes| bytes.first_chunk::<4>());
    let found = u32::from_le_bytes(*format.ok_or_else(|| corrupt("cut short"))?);
    if FORMAT < found {
        return Err(Error::Newer { path: path.to_path_buf(), found, known: FORMAT });
    }
    let manifest = decode(body.get(8..).unwrap_or_default(), found);
    manifest.map(Some).map_err(|error| corrupt(&error.to_string()))
}

/// Reads what stands between the format and the checksum.
pub(crate) fn decode(body: &[u8], format: u32) -> std::result::Result<Manifest, codec::Error> {
    let mut reader = Reader::new(body);
    let mut manifest = Manifest {
        hash_seed: reader.u64()?,
        seq: reader.varint()?,
        log_from: reader.varint()?,
        next_segment: reader.varint_u32()?,
        index_file: reader.varint()?,
        databases: reader.varint_u32()?,
        ..Manifest::default()
    };
    manifest.hidden = manifest.databases.saturating_sub(HIDDEN_DATABASES as u32);
    if 1 < format {
        manifest.hidden = reader.varint_u32()?;
        manifest.has_tail = reader.varint()? != 0;
    }
    if 2 < format {
        manifest.has_file_list = reader.varint()? != 0;
    }
    if DATABASES_MAX < manifest.hidden.saturating_add(HIDDEN_DATABASES as u32) {
        return Err(reader.corrupt("more databases than there may be"));
    }
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

#[cfg(test)]
mod tests {
    use super::*;
    use vfs::SimVfs;

    const DIR: &str = "/keys";

    fn manifest(index_file: u64) -> Manifest {
        let seq = 10 * index_file;
        Manifest { index_file, seq, databases: 18, hidden: 16, ..Manifest::default() }
    }

    fn written() -> SimVfs {
        let disk = SimVfs::new(1);
        disk.create_dir_all(Path::new(DIR)).expect("a good disk");
        manifest(2).write(&disk, Path::new(DIR)).expect("a good disk");
        disk
    }

    fn replace(disk: &SimVfs, name: &str, bytes: &[u8]) {
        write_atomic(disk, &Path::new(DIR).join(name), bytes).expect("a good disk");
    }

    #[test]
    fn either_file_is_enough_and_damage_never_reads_as_a_newer_format() {
        for (name, other) in
            [(MANIFEST_NAME, MANIFEST_COPY_NAME), (MANIFEST_COPY_NAME, MANIFEST_NAME)]
        {
            let good = manifest(2).encode();
            for bit in 0..8 * good.len() {
                let disk = written();
                let mut bad = good.clone();
                bad[bit / 8] ^= 1 << (bit % 8);
                replace(&disk, name, &bad);
                let stored = StoredManifest::read(&disk, Path::new(DIR)).expect("the other file");
                assert_eq!(stored.manifest, Some(manifest(2)), "bit {bit} of {name}");
                assert_eq!(stored.fault.expect("damage").0, name);
                disk.remove(&Path::new(DIR).join(other)).expect("there");
                let alone = Manifest::read(&disk, Path::new(DIR));
                assert!(matches!(alone, Err(Error::Corrupt { .. })), "bit {bit}: {alone:?}");
            }
        }
    }

    #[test]
    fn the_later_checkpoint_of_the_two_files_counts() {
        let disk = written();
        replace(&disk, MANIFEST_NAME, &manifest(1).encode());
        let stored = StoredManifest::read(&disk, Path::new(DIR)).expect("sound");
        assert_eq!(stored.manifest, Some(manifest(2)));
        assert_eq!(stored.fault.expect("an older file").0, MANIFEST_NAME);
        // A crash between the two writes leaves an older copy.
        replace(&disk, MANIFEST_NAME, &manifest(3).encode());
        let stored = StoredManifest::read(&disk, Path::new(DIR)).expect("sound");
        assert_eq!(stored.manifest, Some(manifest(3)));
        assert!(stored.fault.is_none() && !stored.is_twice);
    }

    #[test]
    fn a_manifest_of_format_1_is_read() {
        let mut body = Vec::new();
        put_u64(&mut body, 7);
        // Record, segment of the log, next segment, index, databases, no segments, no dictionaries.
        [40, 3, 9, 2, 34, 0, 0].iter().for_each(|number| put_varint(&mut body, *number));
        let read = decode(&body, 1).expect("whole");
        assert_eq!((read.databases, read.hidden, read.has_tail), (34, 32, false));
    }

    #[test]
    fn a_manifest_of_format_2_has_no_list_of_files() {
        let mut body = Vec::new();
        put_u64(&mut body, 7);
        let numbers = [40, 3, 9, 2, 34, 32, 1, 0, 0];
        numbers.iter().for_each(|number| put_varint(&mut body, *number));
        let read = decode(&body, 2).expect("whole");
        assert_eq!((read.hidden, read.has_tail, read.has_file_list), (32, true, false));
    }

    #[test]
    fn a_newer_format_counts_only_with_a_right_checksum() {
        let disk = written();
        let mut bytes = manifest(2).encode();
        bytes[4] = 200;
        let end = bytes.len() - 4;
        let crc = crc32(&bytes[..end]);
        bytes[end..].copy_from_slice(&crc.to_le_bytes());
        replace(&disk, MANIFEST_NAME, &bytes);
        let read = Manifest::read(&disk, Path::new(DIR));
        assert!(matches!(read, Err(Error::Newer { found: 200, .. })), "{read:?}");
    }
}
