//! `DATA/MANIFEST`: the partitions and files that a store has, so that a missing one is noticed.
//!
//! ```text
//! start     a named file that is not found is lost: noted, and named by answers
//! running   a flush adds what is new; a partition leaves the manifest before its directory goes
//! repair    accepts the losses
//! ```
//!
//! It names no more than what was there, so a crash at any moment never makes a false alarm. For each
//! partition that was made anew after a drop it repeats the log segment from which on records count:
//! without that the log's records of the partition before would be replayed as samples of others. And
//! it repeats the last number that a partition's manifest has given out, so that an older copy of that
//! is noticed: each write of a manifest raises its next number.
//! Also named: the last reserved number of a string, and the log ([`crate::base::directory::named_log`]).

use crate::base::damage::{Damage, DamagePlace};
use crate::base::directory::named_log::{self, NamedLog};
use crate::base::directory::partition_length;
use crate::base::directory::side_file::SideFile;
use crate::base::file_names::{
    DROPPED_FILE, EXEMPLARS_FILE, INDEX_DIR, METADATA_FILE, PARTITION_MANIFEST, PARTITIONS_DIR,
    PARTS_DIR, STRINGS_FILE, copy_of,
};
use crate::base::locks::lock;
use crate::base::period::{PartitionLength, Period};
use crate::{Error, Result};
use codec::{Reader, put_i64_zigzag, put_varint};
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::{Mutex, OnceLock};
use vfs::Vfs;

/// The file's name.
pub const FILE_NAME: &str = "MANIFEST";
const MAGIC: &[u8; 8] = b"QPROOTM3";
/// Version without a log and a number of strings.
const MAGIC_WITHOUT_LOG: &[u8; 8] = b"QPROOTM2";
/// Files outside of partitions whose loss changes answers.
const FILES: [&str; 8] = [
    partition_length::FILE_NAME,
    METADATA_FILE,
    STRINGS_FILE,
    EXEMPLARS_FILE,
    DROPPED_FILE,
    "keys/MANIFEST",
    "tables/MANIFEST",
    "schema/records",
];
/// Bounds of lists, against counts that lie.
const COUNT_MAX: usize = 250_000;
const NAME_SIZE_MAX: usize = 255;

/// Contents of the file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Contents {
    /// Partitions.
    pub partitions: BTreeMap<Period, PartitionEntry>,
    /// Files outside of partitions.
    pub files: BTreeSet<String>,
    /// Partitions that a start found missing.
    pub lost_partitions: BTreeSet<Period>,
    /// Files that a start found missing.
    pub lost_files: BTreeSet<String>,
    /// The log; `None` if it is not known whether there is one.
    pub log: Option<NamedLog>,
    /// One past the highest segment of the log that was ever named: later records go to this one or
    /// to a later one, whatever is left of the log.
    pub log_next: u64,
    /// Last number of the string dictionary that samples may have; 0 if there is none.
    pub string_number: u32,
}

/// State of a partition.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PartitionEntry {
    /// The log segment from which on its records count.
    pub from: u64,
    /// Last number that its manifest has given out; 0 without any. Programs before wrote the number of
    /// the newest part, which is not above it.
    pub last_number: u64,
}

impl PartitionEntry {
    /// Whether a manifest is older than one that was there: it would give out a number again.
    pub fn is_stale(&self, sequence_next: u64) -> bool {
        0 < self.last_number && sequence_next <= self.last_number
    }
}

impl Contents {
    /// State of a partition of a store that is not open; none if the file
    /// is missing or damaged.
    pub fn entry_of(vfs: &dyn Vfs, partition_dir: &Path, period: Period) -> PartitionEntry {
        let dir = partition_dir.parent().and_then(Path::parent);
        let contents = dir.and_then(|dir| Contents::read(vfs, dir).ok().flatten());
        let entry = contents.and_then(|contents| contents.partitions.get(&period).copied());
        entry.unwrap_or_default()
    }

    /// Reads the file of a store's directory; `None` without one, as in stores of earlier versions.
    ///
    /// # Errors
    /// [`Error::Corrupt`], [`Error::UnknownVersion`], and I/O errors.
    pub fn read(vfs: &dyn Vfs, dir: &Path) -> Result<Option<Contents>> {
        let path = dir.join(FILE_NAME);
        if !vfs.exists(&path)? {
            return Ok(None);
        }
        let bytes = vfs.read(&path)?;
        let has_log = !bytes.starts_with(MAGIC_WITHOUT_LOG);
        let file = SideFile { path, magic: if has_log { MAGIC } else { MAGIC_WITHOUT_LOG } };
        let body = file.body_of(bytes)?;
        decode(&body, has_log).map(Some).map_err(|error| file.undecodable(&error))
    }

    /// Replaces the file.
    ///
    /// # Errors
    /// On I/O errors; the file is the old or the new one then.
    pub fn write(&self, vfs: &dyn Vfs, dir: &Path) -> Result<()> {
        file(dir).write(vfs, &self.encode())
    }

    /// The partitions and files that are named and not there.
    pub fn missing(&self, vfs: &dyn Vfs, dir: &Path) -> (Vec<Period>, Vec<String>) {
        let partitions = self.partitions.keys().copied();
        let partitions = partitions.filter(|one| !is_partition_there(vfs, dir, *one)).collect();
        let is_missing = |name: &&String| !is_file_there(vfs, dir, name).unwrap_or(true);
        (partitions, self.files.iter().filter(is_missing).cloned().collect())
    }

    /// Names a log in addition to what is named.
    fn name_log(&mut self, log: NamedLog) {
        self.log = Some(self.log.map_or(log, |named| named.merge(log)));
        self.log_next = self.log_next.max(log.end);
    }

    /// Names partitions, with the last numbers that their manifests have given out.
    fn name_partitions(&mut self, made: &[(Period, u64)]) {
        for (period, last_number) in made {
            let entry = self.partitions.entry(*period).or_default();
            entry.last_number = entry.last_number.max(*last_number);
        }
    }

    /// Damage to the log as a whole: what is named of it and not there, or older.
    pub fn log_damage(&self, vfs: &dyn Vfs, dir: &Path) -> Vec<Damage> {
        self.log.map_or(Vec::new(), |log| log.damage(vfs, dir))
    }

    /// Replaces what the file names by what is there.
    ///
    /// # Errors
    /// When the directory of the partitions cannot be listed.
    pub fn take_stock(
        &mut self,
        vfs: &dyn Vfs,
        dir: &Path,
        length: Option<PartitionLength>,
    ) -> Result<()> {
        let mut partitions = BTreeMap::new();
        for name in vfs.list(&dir.join(PARTITIONS_DIR))? {
            let period = Period::parse(&name);
            let is_of = |one: &Period| length.is_none_or(|length| one.length() == length);
            if let Some(period) = period.filter(is_of)
                && is_partition_there(vfs, dir, period)
            {
                let entry = self.partitions.get(&period).copied().unwrap_or_default();
                partitions.insert(period, entry);
            }
        }
        self.partitions = partitions;
        self.log = NamedLog::on_disk(vfs, dir)?;
        self.take_stock_of_files(vfs, dir);
        Ok(())
    }

    /// As above, for files. A file whose presence cannot be checked keeps its state.
    fn take_stock_of_files(&mut self, vfs: &dyn Vfs, dir: &Path) {
        for name in FILES {
            match is_file_there(vfs, dir, name) {
                Ok(true) => _ = self.files.insert(name.to_string()),
                Ok(false) => _ = self.files.remove(name),
                Err(_) => {}
            }
        }
    }

    fn encode(&self) -> Vec<u8> {
        let mut body = Vec::new();
        put_varint(&mut body, self.partitions.len() as u64);
        for (period, entry) in &self.partitions {
            put_i64_zigzag(&mut body, period.code());
            put_varint(&mut body, entry.from);
            put_varint(&mut body, entry.last_number);
        }
        put_varint(&mut body, self.lost_partitions.len() as u64);
        self.lost_partitions.iter().for_each(|one| put_i64_zigzag(&mut body, one.code()));
        for names in [&self.files, &self.lost_files] {
            put_varint(&mut body, names.len() as u64);
            for name in names {
                put_varint(&mut body, name.len() as u64);
                body.extend_from_slice(name.as_bytes());
            }
        }
        named_log::encode(self.log, &mut body);
        put_varint(&mut body, self.log_next);
        put_varint(&mut body, u64::from(self.string_number));
        body
    }
}

fn decode(body: &[u8], has_log: bool) -> std::result::Result<Contents, codec::Error> {
    let mut reader = Reader::new(body);
    let mut contents = Contents::default();
    for _ in 0..reader.varint_size(COUNT_MAX)? {
        let period = read_period(&mut reader)?;
        let (from, last_number) = (reader.varint()?, reader.varint()?);
        contents.partitions.insert(period, PartitionEntry { from, last_number });
    }
    for _ in 0..reader.varint_size(COUNT_MAX)? {
        contents.lost_partitions.insert(read_period(&mut reader)?);
    }
    for names in [&mut contents.files, &mut contents.lost_files] {
        for _ in 0..reader.varint_size(COUNT_MAX)? {
            let size = reader.varint_size(NAME_SIZE_MAX)?;
            let name = String::from_utf8(reader.slice(size)?.to_vec());
            names.insert(name.map_err(|_| reader.corrupt("invalid UTF-8"))?);
        }
    }
    if has_log {
        contents.log = named_log::decode(&mut reader)?;
        contents.log_next = reader.varint()?;
        let number = u32::try_from(reader.varint()?);
        contents.string_number = number.map_err(|_| reader.corrupt("no number of a string"))?;
    }
    match reader.is_empty() {
        true => Ok(contents),
        false => Err(reader.corrupt("bytes after the end")),
    }
}

fn read_period(reader: &mut Reader<'_>) -> std::result::Result<Period, codec::Error> {
    let period = Period::from_code(reader.i64_zigzag()?);
    period.ok_or_else(|| reader.corrupt("no partition"))
}

fn file(dir: &Path) -> SideFile {
    SideFile { path: dir.join(FILE_NAME), magic: MAGIC }
}

/// Whether parts or index segments are in a partition's directory.
///
/// # Errors
/// When a directory cannot be listed.
pub fn has_content(vfs: &dyn Vfs, dir: &Path) -> Result<bool> {
    for folder in [PARTS_DIR, INDEX_DIR] {
        let path = dir.join(folder);
        if vfs.exists(&path)? && !vfs.list(&path)?.is_empty() {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Whether a partition's directory has anything in it. Content without a manifest is damage, which
/// whoever opens the partition finds.
fn is_partition_there(vfs: &dyn Vfs, dir: &Path, period: Period) -> bool {
    let path = dir.join(PARTITIONS_DIR).join(period.name());
    is_there(vfs, &path.join(PARTITION_MANIFEST)) || has_content(vfs, &path).unwrap_or(true)
}

/// Whether a file is there, or its copy, which stands in for it: metadata and the manifests of keys
/// and tables have one.
fn is_file_there(vfs: &dyn Vfs, dir: &Path, name: &str) -> vfs::Result<bool> {
    Ok(vfs.exists(&dir.join(name))? || vfs.exists(&dir.join(copy_of(name)))?)
}

/// Whether the root manifest names a file of the keys or the tables, such as `keys/MANIFEST`, that is
/// not there. Also true after a start that found it missing, until a repair accepts the loss.
///
/// A root manifest that is missing or damaged names nothing.
pub fn is_file_lost(vfs: &dyn Vfs, dir: &Path, name: &str) -> bool {
    let Ok(Some(contents)) = Contents::read(vfs, dir) else { return false };
    let is_named = contents.files.contains(name) || contents.lost_files.contains(name);
    is_named && !is_file_there(vfs, dir, name).unwrap_or(true)
}

/// Whether a file is there. If nobody can look, it is no loss.
fn is_there(vfs: &dyn Vfs, path: &Path) -> bool {
    vfs.exists(path).unwrap_or(true)
}

/// The damage of a partition that is missing.
pub fn lost_partition(period: Period) -> Damage {
    let file = format!("{PARTITIONS_DIR}/{}", period.name());
    let what = "the directory is missing, though MANIFEST names it".to_string();
    Damage::of_partition(period, DamagePlace::Partition, file, what)
}

/// The manifest of an open store.
#[derive(Default)]
pub struct RootManifest {
    /// Contents of the file; `None` until it is first written. Locked while it is replaced.
    written: Mutex<Option<Contents>>,
    /// Partitions that starts found missing, or whose manifest they made again, and no repair has
    /// accepted it.
    doubtful: OnceLock<Vec<Damage>>,
}

impl RootManifest {
    /// Takes over what a start has read.
    pub fn set(&self, contents: Option<Contents>) {
        *lock(&self.written) = contents;
    }

    /// The damage of the partitions that starts found missing.
    pub fn lost_partitions(&self) -> Vec<Damage> {
        let written = lock(&self.written);
        let lost = written.iter().flat_map(|contents| &contents.lost_partitions);
        lost.map(|period| lost_partition(*period)).collect()
    }

    /// Sets the warnings for partitions that are missing or may be incomplete. Called once.
    pub fn set_doubtful(&self, doubtful: Vec<Damage>) {
        assert!(self.doubtful.set(doubtful).is_ok(), "a start says it once");
    }

    /// Partitions that are missing or may be incomplete.
    pub fn doubtful(&self) -> &[Damage] {
        self.doubtful.get().map_or(&[], Vec::as_slice)
    }

    /// Writes the file if what is there is not what it says. `made` gives the partitions as
    /// [`RootManifest::name_partitions`] takes them; `log` is the log as far as it is durable.
    ///
    /// # Errors
    /// On I/O errors; it is tried again the next time.
    pub fn update(
        &self,
        vfs: &dyn Vfs,
        dir: &Path,
        made: &dyn Fn() -> Vec<(Period, u64)>,
        log: Option<NamedLog>,
    ) -> Result<()> {
        self.change(vfs, dir, |contents| {
            log.into_iter().for_each(|log| contents.name_log(log));
            contents.name_partitions(&made());
            contents.take_stock_of_files(vfs, dir);
        })
    }

    /// Names partitions whose manifests are durable, with the last numbers that those have given out.
    /// `made` is called while no partition leaves the file, so it must leave out dropped ones, and must
    /// not wait for a lock.
    ///
    /// # Errors
    /// On I/O errors; it is tried again the next time.
    pub fn name_partitions(
        &self,
        vfs: &dyn Vfs,
        dir: &Path,
        made: &dyn Fn() -> Vec<(Period, u64)>,
    ) -> Result<()> {
        self.change(vfs, dir, |contents| contents.name_partitions(&made()))
    }

    /// Names segments of the log that are durable, for a new one before its first record.
    ///
    /// # Errors
    /// On I/O errors; the file names less than there is then, until the next update.
    pub fn name_log(&self, vfs: &dyn Vfs, dir: &Path, log: NamedLog) -> Result<()> {
        self.change(vfs, dir, |contents| contents.name_log(log))
    }

    /// The first segment that new records of the log may go to.
    pub fn log_next(&self) -> u64 {
        lock(&self.written).as_ref().map_or(0, |contents| contents.log_next)
    }

    /// Last number of a string that samples may have; 0 if there is none.
    pub fn string_number(&self) -> u32 {
        lock(&self.written).as_ref().map_or(0, |contents| contents.string_number)
    }

    /// Makes it durable that samples may have numbers of strings up to `number`.
    ///
    /// # Errors
    /// On I/O errors.
    pub fn raise_string_number(&self, vfs: &dyn Vfs, dir: &Path, number: u32) -> Result<()> {
        self.change(vfs, dir, |contents| {
            contents.string_number = contents.string_number.max(number);
        })
    }

    /// State of a partition.
    pub fn entry(&self, period: Period) -> PartitionEntry {
        let written = lock(&self.written);
        let entry = written.as_ref().and_then(|contents| contents.partitions.get(&period));
        entry.copied().unwrap_or_default()
    }

    /// Makes it durable that records of a partition count from a log segment on, before its first
    /// record.
    ///
    /// # Errors
    /// On I/O errors; the partition must not be written to then.
    pub fn note_made(&self, vfs: &dyn Vfs, dir: &Path, period: Period, from: u64) -> Result<()> {
        self.change(vfs, dir, |contents| {
            contents.partitions.insert(period, PartitionEntry { from, last_number: 0 });
            // It says the same.
            contents.take_stock_of_files(vfs, dir);
        })
    }

    /// Takes a partition out of the file, then does what makes its directory go.
    ///
    /// # Errors
    /// On I/O errors, and those of `remove`.
    pub fn remove_with<T>(
        &self,
        vfs: &dyn Vfs,
        dir: &Path,
        period: Period,
        remove: impl FnOnce() -> Result<T>,
    ) -> Result<T> {
        let mut written = lock(&self.written);
        let is_named = |one: &&mut Contents| one.partitions.contains_key(&period);
        if let Some(contents) = written.as_mut().filter(is_named) {
            let mut without = contents.clone();
            without.partitions.remove(&period);
            without.write(vfs, dir)?;
            *contents = without;
        }
        // Keep the lock: no other thread may find the directory and name it again.
        remove()
    }

    fn change(&self, vfs: &dyn Vfs, dir: &Path, change: impl FnOnce(&mut Contents)) -> Result<()> {
        let mut written = lock(&self.written);
        let mut contents = written.clone().unwrap_or_default();
        change(&mut contents);
        if written.as_ref() != Some(&contents) {
            // Name only durable files. The store's own are durable; sync the others.
            let is_named =
                |name: &&String| written.as_ref().is_some_and(|one| one.files.contains(*name));
            for name in contents.files.iter().filter(|name| !is_named(name)) {
                vfs.sync_dir(dir.join(name).parent().unwrap_or(dir))?;
                vfs.sync_dir(dir)?;
            }
            contents.write(vfs, dir)?;
            *written = Some(contents);
        }
        Ok(())
    }
}

/// The error of a start that finds none of several partitions.
pub fn check_mounted(contents: &Contents, missing: &[Period], dir: &Path) -> Result<()> {
    let count = contents.partitions.len();
    if count < 2 || missing.len() < count {
        return Ok(());
    }
    Err(Error::Invalid(format!(
        "{} names {count} partitions, and none of them is in {}: is a file system not mounted? \
         Nothing was changed. Mount it and start again; or accept the loss with `quipu verify \
         --repair`",
        dir.join(FILE_NAME).display(),
        dir.join(PARTITIONS_DIR).display(),
    )))
}

#[cfg(test)]
mod tests {
    use super::*;
    use vfs::SimVfs;

    fn month(number: i64) -> Period {
        PartitionLength::Month.period(number).expect("a month")
    }

    #[test]
    fn contents_come_back_and_damage_is_noticed() {
        let disk = SimVfs::new(1);
        let dir = Path::new("/data");
        disk.create_dir_all(dir).unwrap();
        assert_eq!(Contents::read(&disk, dir).unwrap(), None);
        let contents = Contents {
            partitions: [
                (month(-5), PartitionEntry { from: 0, last_number: 3 }),
                (month(600), PartitionEntry { from: 7, last_number: 0 }),
            ]
            .into(),
            files: ["metadata".to_string()].into(),
            lost_partitions: [month(599)].into(),
            lost_files: ["keys/MANIFEST".to_string()].into(),
            log: Some(NamedLog { first: 5, end: 300, has_end: true }),
            log_next: 301,
            string_number: 1025,
        };
        contents.write(&disk, dir).unwrap();
        assert_eq!(Contents::read(&disk, dir).unwrap().as_ref(), Some(&contents));
        let path = dir.join(FILE_NAME);
        let bytes = disk.read(&path).unwrap();
        let before =
            b"\x02\x09\x00\x03\xb0\x09\x07\x00\x01\xae\x09\x01\x08metadata\x01\x0dkeys/MANIFEST";
        let body = [b"QPROOTM3", &before[..], b"\x02\x05\xac\x02\xad\x02\x81\x08"].concat();
        assert_eq!(bytes[..bytes.len() - 4], body[..], "version 3, for ever");
        for offset in 0..bytes.len() as u64 {
            disk.flip_bit(&path, offset, 4).unwrap();
            assert!(Contents::read(&disk, dir).is_err(), "byte {offset}");
            disk.flip_bit(&path, offset, 4).unwrap();
        }
        let body = [b"QPROOTM2", &before[..]].concat();
        let bytes = [&body[..], &codec::crc32(&body).to_le_bytes()].concat();
        vfs::write_atomic(&disk, &path, &bytes).unwrap();
        let without = Contents { log: None, log_next: 0, string_number: 0, ..contents };
        assert_eq!(Contents::read(&disk, dir).unwrap(), Some(without), "version 2, for ever");
    }

    #[test]
    fn named_file_is_lost_until_it_is_back_or_a_repair_accepts_it() {
        let disk = SimVfs::new(1);
        let (dir, name) = (Path::new("/data"), "keys/MANIFEST");
        disk.create_dir_all(&dir.join("keys")).unwrap();
        assert!(!is_file_lost(&disk, dir, name), "there is no root manifest");
        let names = BTreeSet::from([name.to_string()]);
        let known = Contents { files: names.clone(), ..Contents::default() };
        let missed = Contents { lost_files: names, ..Contents::default() };
        for contents in [known, missed] {
            contents.write(&disk, dir).unwrap();
            assert!(is_file_lost(&disk, dir, name), "{contents:?}");
            vfs::write_atomic(&disk, &dir.join("keys/MANIFEST.copy"), b"x").unwrap();
            assert!(!is_file_lost(&disk, dir, name), "{contents:?}");
            disk.remove(&dir.join("keys/MANIFEST.copy")).unwrap();
        }
        Contents::default().write(&disk, dir).unwrap();
        assert!(!is_file_lost(&disk, dir, name), "a repair accepted it");
    }

    #[test]
    fn file_is_named_while_its_copy_is_there() {
        let disk = SimVfs::new(1);
        let dir = Path::new("/data");
        disk.create_dir_all(dir).unwrap();
        let named = BTreeSet::from(["metadata".to_string()]);
        let mut contents = Contents { files: named.clone(), ..Contents::default() };
        vfs::write_atomic(&disk, &dir.join("metadata.copy"), b"x").unwrap();
        contents.take_stock_of_files(&disk, dir);
        assert_eq!(contents.files, named);
        disk.remove(&dir.join("metadata.copy")).unwrap();
        assert_eq!(contents.missing(&disk, dir).1, ["metadata"]);
    }
}
