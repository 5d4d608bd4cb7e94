//! The manifest of a backup: which files a snapshot had, and which blobs hold their bytes. Bytes only;
//! who has a place for backups is the program above.
//!
//! ```text
//! magic "QPBK" │ format u32 │ made i64 │ piece size varint │ sent blobs varint │ sent bytes varint
//!   │ snapshot text │ program text │ folders varint │ path text *
//!   │ files varint │ (path text │ size varint │ modified zigzag │ inode varint │ hash 32 bytes *)*
//!   │ CRC-32 of all before
//! ```
//!
//! Invariants: a path leads nowhere but below the directory that is restored, paths of files
//! increase, a file has as many hashes as pieces. See `docs/format/backup.md`.

use crate::{Error, Result};
use codec::{Reader, crc32, put_i64_zigzag, put_u32, put_u64, put_varint};
use std::path::{Path, PathBuf};

const MAGIC: &[u8; 4] = b"QPBK";
const FORMAT: u32 = 1;
/// What the file of a manifest holds at most.
pub const MANIFEST_SIZE_MAX: u64 = 1 << 30;
/// Bytes of a path or another text.
const TEXT_SIZE_MAX: usize = 4096;
/// Bytes of a blob at most, whatever a manifest says: they are held in memory.
pub const PIECE_SIZE_MAX: u64 = 256 << 20;
/// Bytes of the hash of a blob.
pub const HASH_SIZE: usize = 32;

/// SHA-256 of the bytes of a blob, which is its name.
pub type BlobHash = [u8; HASH_SIZE];

/// What a backup has.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct BackupManifest {
    /// When its snapshot was made, in nanoseconds since 1970.
    pub made: i64,
    /// A file is cut into pieces of so many bytes, the last one shorter; each is a blob.
    pub piece_size: u64,
    /// Blobs that were sent for it; those before were there.
    pub sent_blobs: u64,
    /// Bytes of these.
    pub sent_bytes: u64,
    /// The snapshot's name.
    pub snapshot: String,
    /// The version of the program that made it.
    pub program: String,
    /// Folders, those without files too, parents first; with `/` between names.
    pub folders: Vec<String>,
    /// Files, by increasing path.
    pub files: Vec<BackupFile>,
}

/// A file of a backup.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct BackupFile {
    /// Where it is in the data directory, with `/` between names.
    pub path: String,
    /// Its bytes.
    pub size: u64,
    /// When it was last changed, in nanoseconds since 1970. With path, size and inode it tells the next
    /// backup that it is the same file, which need not be read again.
    pub modified: i64,
    /// Its number in its file system.
    pub inode: u64,
    /// Of each piece, the blob.
    pub pieces: Vec<BlobHash>,
}

impl BackupManifest {
    /// Bytes of all files.
    pub fn size(&self) -> u64 {
        self.files.iter().map(|file| file.size).fold(0, u64::saturating_add)
    }

    /// Bytes of a piece of a file, by its number.
    pub fn size_of_piece(&self, file: &BackupFile, number: usize) -> u64 {
        let start = self.piece_size.saturating_mul(number as u64);
        file.size.saturating_sub(start).min(self.piece_size)
    }

    /// The bytes of its file.
    pub fn encode(&self) -> Vec<u8> {
        let mut out = MAGIC.to_vec();
        put_u32(&mut out, FORMAT);
        put_u64(&mut out, self.made.cast_unsigned());
        for number in [self.piece_size, self.sent_blobs, self.sent_bytes] {
            put_varint(&mut out, number);
        }
        put_text(&mut out, &self.snapshot);
        put_text(&mut out, &self.program);
        put_varint(&mut out, self.folders.len() as u64);
        self.folders.iter().for_each(|folder| put_text(&mut out, folder));
        put_varint(&mut out, self.files.len() as u64);
        for file in &self.files {
            put_text(&mut out, &file.path);
            put_varint(&mut out, file.size);
            put_i64_zigzag(&mut out, file.modified);
            put_varint(&mut out, file.inode);
            file.pieces.iter().for_each(|hash| out.extend_from_slice(hash));
        }
        let checksum = crc32(&out);
        put_u32(&mut out, checksum);
        out
    }

    /// The manifest in the bytes of a file, which is called `name` in errors.
    ///
    /// # Errors
    /// [`Error::Corrupt`] and [`Error::UnknownVersion`].
    pub fn decode(name: &str, bytes: &[u8]) -> Result<BackupManifest> {
        let corrupt = |offset: usize, what: &str| Error::Corrupt {
            file: PathBuf::from(name),
            offset: offset as u64,
            what: what.to_owned(),
        };
        let Some((body, checksum)) = bytes.split_last_chunk::<4>() else {
            return Err(corrupt(bytes.len(), "cut short"));
        };
        if crc32(body) != u32::from_le_bytes(*checksum) {
            return Err(corrupt(body.len(), "checksum mismatch"));
        }
        let mut reader = Reader::new(body);
        let at = |error: codec::Error| corrupt(error.offset, error.what);
        if reader.slice(MAGIC.len()).map_err(at)? != MAGIC {
            return Err(corrupt(0, "no manifest of a backup"));
        }
        match reader.u32().map_err(at)? {
            FORMAT => decode_body(&mut reader).map_err(at),
            version => Err(Error::UnknownVersion {
                file: PathBuf::from(name),
                version: version.to_string(),
                known: FORMAT.to_string(),
            }),
        }
    }
}

fn decode_body(reader: &mut Reader<'_>) -> std::result::Result<BackupManifest, codec::Error> {
    let made = reader.u64()?.cast_signed();
    let (piece_size, sent_blobs, sent_bytes) =
        (reader.varint()?, reader.varint()?, reader.varint()?);
    if piece_size == 0 || PIECE_SIZE_MAX < piece_size {
        return Err(reader.corrupt("no size of pieces"));
    }
    let (snapshot, program) = (text(reader)?, text(reader)?);
    let mut folders = Vec::new();
    for _ in 0..reader.varint_size(reader.remaining())? {
        folders.push(path(reader)?);
    }
    let mut files: Vec<BackupFile> = Vec::new();
    for _ in 0..reader.varint_size(reader.remaining())? {
        let file = file(reader, piece_size)?;
        if files.last().is_some_and(|before| file.path <= before.path) {
            return Err(reader.corrupt("paths out of order"));
        }
        files.push(file);
    }
    if !reader.is_empty() {
        return Err(reader.corrupt("bytes after the end"));
    }
    Ok(BackupManifest {
        made,
        piece_size,
        sent_blobs,
        sent_bytes,
        snapshot,
        program,
        folders,
        files,
    })
}

fn file(reader: &mut Reader<'_>, piece_size: u64) -> std::result::Result<BackupFile, codec::Error> {
    let path = path(reader)?;
    let (size, modified, inode) = (reader.varint()?, reader.i64_zigzag()?, reader.varint()?);
    let count = usize::try_from(size.div_ceil(piece_size)).unwrap_or(usize::MAX);
    let hashes = reader.slice(count.saturating_mul(HASH_SIZE))?;
    let pieces = hashes.as_chunks().0.to_vec();
    Ok(BackupFile { path, size, modified, inode, pieces })
}

fn put_text(out: &mut Vec<u8>, text: &str) {
    put_varint(out, text.len() as u64);
    out.extend_from_slice(text.as_bytes());
}

fn text(reader: &mut Reader<'_>) -> std::result::Result<String, codec::Error> {
    let size = reader.varint_size(TEXT_SIZE_MAX)?;
    let bytes = reader.slice(size)?;
    match std::str::from_utf8(bytes) {
        Ok(text) => Ok(text.to_owned()),
        Err(_) => Err(reader.corrupt("no UTF-8")),
    }
}

/// A path that leads below where it is used, and to nothing that has a meaning of its own there.
fn path(reader: &mut Reader<'_>) -> std::result::Result<String, codec::Error> {
    let path = text(reader)?;
    match is_below(&path) {
        true => Ok(path),
        false => Err(reader.corrupt("no path below a data directory")),
    }
}

/// Whether a path of a manifest stays below the directory that it is of.
pub fn is_below(path: &str) -> bool {
    let is_name =
        |name: &str| !matches!(name, "" | "." | "..") && !name.contains(['\\', '\0', ':']);
    let is_special = [vfs::LOCK_FILE, crate::base::directory::restoring::MARKER].contains(&path);
    path.len() <= TEXT_SIZE_MAX
        && path.split('/').all(is_name)
        && !is_special
        && Path::new(path).is_relative()
}

/// Entry point for fuzzing: any bytes are refused, or are a manifest that becomes the same again.
pub fn fuzz_backup_manifest(data: &[u8]) {
    let mut sealed = data.to_vec();
    put_u32(&mut sealed, crc32(data));
    for bytes in [data, &sealed] {
        let Ok(manifest) = BackupManifest::decode("fuzz", bytes) else { continue };
        let again = BackupManifest::decode("fuzz", &manifest.encode());
        assert_eq!(again.expect("what was read can be written"), manifest);
        for file in &manifest.files {
            assert!(is_below(&file.path));
            let sizes = (0..file.pieces.len()).map(|number| manifest.size_of_piece(file, number));
            assert_eq!(sizes.sum::<u64>(), file.size);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn manifest() -> BackupManifest {
        let file = |path: &str, size: u64, pieces: &[u8]| BackupFile {
            path: path.into(),
            size,
            modified: -7,
            inode: 1 << 40,
            pieces: pieces.iter().map(|byte| [*byte; HASH_SIZE]).collect(),
        };
        BackupManifest {
            made: 1_700_000_000_000_000_000,
            piece_size: 1000,
            sent_blobs: 3,
            sent_bytes: 1001,
            snapshot: "0001".into(),
            program: "0.0.0".into(),
            folders: vec!["keys".into(), "partitions".into(), "partitions/2024-02".into()],
            files: vec![file("empty", 0, &[]), file("keys/a", 1001, &[1, 2]), file("z", 9, &[1])],
        }
    }

    #[test]
    fn what_is_written_is_read() {
        let bytes = manifest().encode();
        assert_eq!(BackupManifest::decode("m", &bytes).unwrap(), manifest());
        let sizes = [0, 1].map(|number| manifest().size_of_piece(&manifest().files[1], number));
        assert_eq!(sizes, [1000, 1]);
        assert_eq!(manifest().size(), 1010);
    }

    #[test]
    fn every_flipped_bit_and_every_cut_is_found() {
        let bytes = manifest().encode();
        for bit in 0..bytes.len() * 8 {
            let mut flipped = bytes.clone();
            flipped[bit / 8] ^= 1 << (bit % 8);
            assert!(BackupManifest::decode("m", &flipped).is_err(), "bit {bit}");
        }
        for size in 0..bytes.len() {
            assert!(BackupManifest::decode("m", &bytes[..size]).is_err(), "{size} bytes");
        }
    }

    #[test]
    fn a_later_format_is_said_to_be_one() {
        let mut bytes = manifest().encode();
        bytes.truncate(bytes.len() - 4);
        bytes[4] = 2;
        let checksum = crc32(&bytes);
        put_u32(&mut bytes, checksum);
        let error = BackupManifest::decode("m", &bytes).unwrap_err();
        assert!(matches!(error, Error::UnknownVersion { .. }), "{error}");
    }

    #[test]
    fn no_path_leads_out() {
        for bad in ["", "/", "/etc/x", "a//b", "a/", "../x", "a/../b", ".", "a/./b", "a\\b", "a\0"]
        {
            assert!(!is_below(bad), "{bad:?}");
            let mut manifest = manifest();
            manifest.files = vec![BackupFile { path: bad.into(), ..BackupFile::default() }];
            assert!(BackupManifest::decode("m", &manifest.encode()).is_err(), "{bad:?}");
        }
        assert!(!is_below("quipu.lock") && !is_below("RESTORING"));
        assert!(is_below("partitions/2024-02/parts/1.part") && is_below("..."));
    }

    #[test]
    fn order_and_sizes_are_checked() {
        let mut twice = manifest();
        twice.files[1].path = "empty".into();
        assert!(BackupManifest::decode("m", &twice.encode()).is_err());
        let mut many = manifest();
        many.files[0].size = u64::MAX;
        assert!(BackupManifest::decode("m", &many.encode()).is_err());
        for size in [0, PIECE_SIZE_MAX + 1] {
            let odd = BackupManifest { piece_size: size, files: vec![], ..manifest() };
            assert!(BackupManifest::decode("m", &odd.encode()).is_err(), "{size}");
        }
    }
}
