//! The two files of the table of metadata, `DATA/metadata` and `DATA/metadata.copy`, which have the
//! same bytes.
//!
//! ```text
//! magic "QPMETAD2" │ generation varint │ entries │ CRC-32 u32 of all before
//! ```
//!
//! A write replaces `metadata` first and then the copy, and gives both a generation that no file had.
//! The log keeps the entries until both are durable. So a crash leaves the copy behind and never ahead,
//! and of two sound files the one of the later generation counts. Version 1 has neither a generation,
//! which counts as 0, nor a copy.

use crate::base::damage::{Damage, DamagePlace};
use crate::base::directory::side_file::{SideFile, read_twice};
use crate::base::file_names::{METADATA_COPY, METADATA_FILE};
use crate::log::log_record::{decode_metadata, encode_metadata};
use crate::{Error, Result};
use codec::{Reader, put_varint};
use model::Metadata;
use std::path::Path;
use vfs::Vfs;

/// Both, in the order in which a write replaces them.
pub const NAMES: [&str; 2] = [METADATA_FILE, METADATA_COPY];
/// What is lost when neither file can be read.
pub const LOST: &str = "types, help and units of metrics, until they are sent again; of a store \
                        that no version with schema records has opened also strings of line \
                        protocol, InfluxDB's databases and retention policies with their defaults, \
                        and which fields its measurements have";
const MAGIC: &[u8; 8] = b"QPMETAD2";
const MAGIC_BARE: &[u8; 8] = b"QPMETAD1";
/// Largest generation: counting on never overflows.
const GENERATION_MAX: u64 = 1 << 62;
/// Generation of the first write. A crash within it leaves no copy.
const GENERATION_FIRST: u64 = 1;

/// Content of a file.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Contents {
    /// Number of the write; 0 in version 1.
    pub generation: u64,
    /// The entries, by name.
    pub entries: Vec<Metadata>,
}

impl Contents {
    /// The generation of the write after the one that `generation` is of.
    pub fn generation_after(generation: u64) -> u64 {
        (generation + 1).min(GENERATION_MAX)
    }

    /// Replaces both files.
    ///
    /// # Errors
    /// On I/O errors. Each file is the old or the new one then, and the copy is not the only new one.
    pub fn write(&self, vfs: &dyn Vfs, dir: &Path) -> Result<()> {
        assert!(
            0 < self.generation && self.generation <= GENERATION_MAX,
            "a generation of a write"
        );
        let mut body = Vec::new();
        put_varint(&mut body, self.generation);
        body.extend(encode_metadata(&self.entries));
        for name in NAMES {
            SideFile { path: dir.join(name), magic: MAGIC }.write(vfs, &body)?;
        }
        Ok(())
    }
}

/// Damage to one of the files.
#[derive(Debug, PartialEq, Eq)]
pub struct FileFault {
    /// Name of the file.
    pub file: &'static str,
    /// What is wrong.
    pub what: String,
    /// Whether the file is there.
    pub is_there: bool,
}

impl FileFault {
    /// Damage to report of a file whose content is known all the same, and why it is.
    pub fn harmless_damage(&self, why: &str) -> Damage {
        let damage = damage_of(self.file, format!("{}; {why}", self.what));
        Damage { series: Some(0), samples: Some(0), ..damage }
    }
}

/// What the two files hold.
#[derive(Debug, Default)]
pub struct StoredMetadata {
    /// The table, of the file that counts; `None` if neither is there or can be read.
    pub contents: Option<Contents>,
    /// Damage to the files.
    pub faults: Vec<FileFault>,
    /// Whether both files hold the table.
    pub is_twice: bool,
}

impl StoredMetadata {
    /// Reads both files.
    ///
    /// # Errors
    /// [`Error::UnknownVersion`], and I/O errors but for bytes of a file that cannot be read.
    pub fn read(vfs: &dyn Vfs, dir: &Path) -> Result<StoredMetadata> {
        // A write that goes on meanwhile replaces the copy last, so the copy is read first.
        let copy = read_body(vfs, dir, METADATA_COPY);
        let main = read_body(vfs, dir, METADATA_FILE);
        let is_twice = matches!((&main, &copy), (Ok(Some(main)), Ok(Some(copy))) if main == copy);
        let main = FileState::decode(dir, METADATA_FILE, main)?;
        if is_twice && let FileState::Sound(contents) = main {
            return Ok(StoredMetadata { contents: Some(contents), faults: Vec::new(), is_twice });
        }
        Ok(choose(main, FileState::decode(dir, METADATA_COPY, copy)?))
    }

    /// Whether a crash between two writes left the copy behind.
    pub fn is_copy_behind(&self) -> bool {
        self.contents.is_some() && self.faults.is_empty() && !self.is_twice
    }

    /// Damage to report. Damage to one of the files costs nothing, and says so.
    pub fn damage(&self) -> Vec<Damage> {
        if self.contents.is_some() {
            return self.faults.iter().map(|fault| fault.harmless_damage(OTHER_IS_USED)).collect();
        }
        let words = |fault: &FileFault| format!("{} {}", fault.file, fault.what);
        let faults: Vec<String> = self.faults.iter().map(words).collect();
        match faults.is_empty() {
            true => Vec::new(),
            false => {
                vec![damage_of(METADATA_FILE, format!("{}; {}", faults.join(", "), lost_words()))]
            }
        }
    }
}

/// What is said of a damaged file when the other one is sound.
pub const OTHER_IS_USED: &str = "the other copy of it is used";

/// Damage of a store that has numbers of strings and neither file.
pub fn lost_dictionary() -> Damage {
    damage_of(METADATA_FILE, format!("the file is missing; {}", lost_words()))
}

/// Words for what is lost when neither file can be read.
pub fn lost_words() -> String {
    format!("lost with it: {LOST}")
}

fn damage_of(file: &str, what: String) -> Damage {
    Damage::of_store(DamagePlace::SideFile, file.to_string(), what)
}

/// One of the files.
#[derive(Debug)]
enum FileState {
    Missing,
    Damaged(Error),
    Sound(Contents),
}

impl FileState {
    fn decode(dir: &Path, name: &str, body: Result<Option<FileBody>>) -> Result<FileState> {
        match body.and_then(|body| body.map(|body| body.decode(dir, name)).transpose()) {
            Ok(Some(contents)) => Ok(FileState::Sound(contents)),
            Ok(None) => Ok(FileState::Missing),
            Err(error) if error.is_unreadable() || matches!(error, Error::Corrupt { .. }) => {
                Ok(FileState::Damaged(error))
            }
            Err(error) => Err(error),
        }
    }

    fn fault(&self, file: &'static str) -> FileFault {
        let fault = |what, is_there| FileFault { file, what, is_there };
        match self {
            FileState::Missing => fault("is missing".to_string(), false),
            FileState::Damaged(error) => fault(error.without_file(), true),
            FileState::Sound(_) => fault(format!("is older than {METADATA_COPY}"), true),
        }
    }
}

/// The file that counts, and what is wrong with the other one.
fn choose(main: FileState, copy: FileState) -> StoredMetadata {
    let used = |contents: Contents, faults: Vec<FileFault>| StoredMetadata {
        contents: Some(contents),
        faults,
        is_twice: false,
    };
    let main_fault = main.fault(METADATA_FILE);
    match (main, copy) {
        (FileState::Sound(main), FileState::Sound(copy)) => {
            match main.generation < copy.generation {
                true => used(copy, vec![main_fault]),
                false => used(main, Vec::new()),
            }
        }
        (FileState::Sound(main), FileState::Missing) if main.generation <= GENERATION_FIRST => {
            used(main, Vec::new())
        }
        (FileState::Sound(main), copy) => used(main, vec![copy.fault(METADATA_COPY)]),
        (_, FileState::Sound(copy)) => used(copy, vec![main_fault]),
        (FileState::Missing, FileState::Missing) => StoredMetadata::default(),
        // Stores of earlier versions have no copy.
        (_, FileState::Missing) => {
            StoredMetadata { faults: vec![main_fault], ..StoredMetadata::default() }
        }
        (_, copy) => {
            let faults = vec![main_fault, copy.fault(METADATA_COPY)];
            StoredMetadata { faults, ..StoredMetadata::default() }
        }
    }
}

/// Bytes of a file whose checksum holds.
#[derive(PartialEq, Eq)]
struct FileBody {
    magic: &'static [u8; 8],
    bytes: Vec<u8>,
}

fn read_body(vfs: &dyn Vfs, dir: &Path, name: &str) -> Result<Option<FileBody>> {
    let path = dir.join(name);
    if !vfs.exists(&path)? {
        return Ok(None);
    }
    let bytes = read_twice(&|| Ok(vfs.read(&path)?))?;
    let magic = if bytes.starts_with(MAGIC_BARE) { MAGIC_BARE } else { MAGIC };
    let bytes = SideFile { path, magic }.body_of(bytes)?;
    Ok(Some(FileBody { magic, bytes }))
}

impl FileBody {
    fn decode(&self, dir: &Path, name: &str) -> Result<Contents> {
        let file = SideFile { path: dir.join(name), magic: self.magic };
        let mut reader = Reader::new(&self.bytes);
        let generation = if self.magic == MAGIC { reader.varint() } else { Ok(0) };
        let generation = generation.map_err(|error| file.undecodable(&error))?;
        if GENERATION_MAX < generation {
            return Err(file.undecodable(&codec::Error { offset: 0, what: "no generation" }));
        }
        let start = self.bytes.len() - reader.remaining();
        let entries = decode_metadata(&self.bytes[start..]).map_err(|error| {
            file.undecodable(&codec::Error { offset: start + error.offset, ..error })
        })?;
        Ok(Contents { generation, entries })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use vfs::SimVfs;

    const DIR: &str = "/data";

    fn contents(generation: u64) -> Contents {
        let entry = |metric: String| Metadata { metric, ..Metadata::default() };
        Contents { generation, entries: (0..generation).map(|n| entry(format!("m{n}"))).collect() }
    }

    fn disk_with(generation: u64) -> SimVfs {
        let disk = SimVfs::new(1);
        disk.create_dir_all(Path::new(DIR)).expect("a good disk");
        contents(generation).write(&disk, Path::new(DIR)).expect("a good disk");
        disk
    }

    fn read(disk: &SimVfs) -> StoredMetadata {
        StoredMetadata::read(disk, Path::new(DIR)).expect("a good disk")
    }

    fn replace(disk: &SimVfs, name: &str, bytes: &[u8]) {
        vfs::write_atomic(disk, &Path::new(DIR).join(name), bytes).expect("a good disk");
    }

    fn generation(stored: &StoredMetadata) -> Option<u64> {
        stored.contents.as_ref().map(|contents| contents.generation)
    }

    #[test]
    fn golden_bytes_of_both_versions() {
        let disk = SimVfs::new(1);
        disk.create_dir_all(Path::new(DIR)).expect("a good disk");
        let entry = Metadata { metric: "m".into(), help: "h".into(), ..Metadata::default() };
        let written = Contents { generation: 300, entries: vec![entry] };
        written.write(&disk, Path::new(DIR)).expect("a good disk");
        let body = b"QPMETAD2\xac\x02\x00\x01m\x01h\x00";
        let bytes = [&body[..], &codec::crc32(body).to_le_bytes()].concat();
        for name in NAMES {
            assert_eq!(disk.read(&Path::new(DIR).join(name)).expect("there"), bytes, "{name}");
        }
        assert_eq!(read(&disk).contents.as_ref(), Some(&written));

        let old = b"QPMETAD1\x00\x01m\x01h\x00";
        let bytes = [&old[..], &codec::crc32(&old[8..]).to_le_bytes()].concat();
        replace(&disk, METADATA_FILE, &bytes);
        disk.remove(&Path::new(DIR).join(METADATA_COPY)).expect("there");
        let stored = read(&disk);
        assert!(stored.is_copy_behind(), "an old store is not damaged: {stored:?}");
        assert_eq!(stored.contents, Some(Contents { generation: 0, entries: written.entries }));
    }

    #[test]
    fn one_damaged_file_costs_nothing() {
        for name in NAMES {
            let path = Path::new(DIR).join(name);
            let size = disk_with(5).size(&path).expect("there");
            let check = |disk: &SimVfs, what: &str| {
                let stored = read(disk);
                assert_eq!(stored.contents, Some(contents(5)), "{name}: {what}");
                let [fault] = &stored.faults[..] else { panic!("{name}: {what}: {stored:?}") };
                assert_eq!(fault.file, name);
                assert!(fault.what.contains(what), "{fault:?}");
                assert_eq!(stored.damage()[0].samples, Some(0), "nothing is missing");
            };
            for offset in 0..size {
                let disk = disk_with(5);
                disk.flip_bit(&path, offset, 3).expect("there");
                check(&disk, "is corrupt");
            }
            for end in 0..size {
                let disk = disk_with(5);
                disk.truncate(&path, end).expect("there");
                check(&disk, "is corrupt");
            }
            let disk = disk_with(5);
            replace(&disk, name, &vec![0; size as usize]);
            check(&disk, "is corrupt");
            disk.remove(&path).expect("there");
            check(&disk, "is missing");
        }
    }

    #[test]
    fn later_generation_counts() {
        for name in NAMES {
            let disk = disk_with(5);
            let older = disk_with(3).read(&Path::new(DIR).join(name)).expect("there");
            replace(&disk, name, &older);
            let stored = read(&disk);
            assert_eq!(stored.contents, Some(contents(5)), "{name}");
            assert!(!stored.is_twice, "{name}");
            // A crash leaves the copy behind, and never the file itself.
            assert_eq!(stored.faults.len(), usize::from(name == METADATA_FILE));
        }
        let disk = disk_with(5);
        let mut other = contents(5);
        other.entries.pop();
        other.write(&disk, Path::new(DIR)).expect("a good disk");
        let copy = disk_with(5).read(&Path::new(DIR).join(METADATA_COPY)).expect("there");
        replace(&disk, METADATA_COPY, &copy);
        assert_eq!(
            read(&disk).contents,
            Some(other),
            "of one generation, the file that is written first"
        );
    }

    #[test]
    fn missing_copy_of_the_first_write_is_no_damage() {
        for (count, faults) in [(1, 0), (2, 1)] {
            let disk = disk_with(count);
            disk.remove(&Path::new(DIR).join(METADATA_COPY)).expect("there");
            let stored = read(&disk);
            assert_eq!((generation(&stored), stored.faults.len()), (Some(count), faults));
        }
    }

    #[test]
    fn both_damaged_files_name_what_is_lost() {
        let path = |name: &str| Path::new(DIR).join(name);
        let damages: [fn(&SimVfs, &Path); 2] = [
            |disk, path| disk.flip_bit(path, 12, 1).expect("there"),
            |disk, path| disk.remove(path).expect("there"),
        ];
        for (main, copy) in [(0, 0), (0, 1), (1, 0)] {
            let disk = disk_with(5);
            damages[main](&disk, &path(METADATA_FILE));
            damages[copy](&disk, &path(METADATA_COPY));
            let stored = read(&disk);
            assert!(stored.contents.is_none(), "{stored:?}");
            let [damage] = &stored.damage()[..] else { panic!("{stored:?}") };
            assert_eq!((damage.file.as_str(), damage.samples), (METADATA_FILE, None));
            assert!(damage.what.contains("InfluxDB's databases"), "{}", damage.what);
        }
        let disk = disk_with(5);
        NAMES.iter().for_each(|name| disk.remove(&path(name)).expect("there"));
        let stored = read(&disk);
        assert!(stored.contents.is_none() && stored.faults.is_empty(), "the root manifest tells");
    }

    #[test]
    fn newer_version_of_either_file_is_refused() {
        for name in NAMES {
            let disk = disk_with(5);
            let body = b"QPMETAD3what a newer program writes";
            replace(&disk, name, &[&body[..], &codec::crc32(body).to_le_bytes()].concat());
            let refused = StoredMetadata::read(&disk, Path::new(DIR));
            assert!(matches!(refused, Err(Error::UnknownVersion { .. })), "{name}: {refused:?}");
        }
    }

    #[test]
    fn sound_checksum_over_nonsense_is_damage() {
        for name in NAMES {
            let disk = disk_with(5);
            for nonsense in [&[0xff; 10][..], &[5, 99, 1], &[]] {
                let body = [&MAGIC[..], nonsense].concat();
                replace(&disk, name, &[&body[..], &codec::crc32(&body).to_le_bytes()].concat());
                let stored = read(&disk);
                assert_eq!((generation(&stored), stored.faults.len()), (Some(5), 1), "{name}");
            }
        }
    }
}
