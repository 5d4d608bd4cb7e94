//! Walks every checksum of a keyspace that is not open. Changes nothing.

use crate::cold::dictionary::{self, dictionary_name};
use crate::cold::tail::{self, tail_name};
use crate::cold::{
    IndexSnapshot, MANIFEST_COPY_NAME, MANIFEST_NAME, Manifest, SegmentInfo, StoredManifest,
    index_name, record, segment_name,
};
use crate::credentials::REPLICA_OF;
use crate::credentials::{self, CREDENTIAL_FILES};
use crate::error::{Error, Result};
use crate::index::{Address, KeyHash, RECORD_ALIGNMENT};
use crate::kv::{KEYS_DIR, is_beside, is_of_checkpoint, read_record};
use crate::libraries::{self, FUNCTIONS_FILE};
use crate::pieces::Pieces;
use crate::replication::primary;
use std::collections::{BTreeMap, HashMap};
use std::path::{Path, PathBuf};
use vfs::Vfs;
use wal::Found;
use wal::kinds::KIND_KEYS;

/// Folder of the log in a data directory.
pub(crate) const LOG_DIR: &str = "wal";

/// What a walk found.
#[derive(Clone, Debug, Default)]
pub struct KvReport {
    /// Files read.
    pub files: u64,
    /// Bytes read.
    pub bytes: u64,
    /// Keys that the index names.
    pub keys: u64,
    /// Records of the log that are not whole, and are left out at the next start.
    pub left_out: Vec<(PathBuf, String)>,
    /// What is wrong, file by file.
    pub problems: Vec<(PathBuf, String)>,
    /// Files that no checkpoint names: a process that died left them, and the next start removes
    /// them.
    pub leftovers: Vec<PathBuf>,
}

/// Checks the keys of a data directory that the caller has locked. None if it has none.
///
/// # Errors
/// When its folder cannot be listed. What is wrong with a file is in the report.
pub fn verify(vfs: &dyn Vfs, data_dir: &Path) -> Result<Option<KvReport>> {
    let dir = data_dir.join(KEYS_DIR);
    if !vfs.exists(&dir)? {
        return Ok(None);
    }
    let mut walk = Walk { vfs, dir: &dir, report: KvReport::default(), seen: HashMap::new() };
    let stored = StoredManifest::read(vfs, &dir).map(|stored| {
        if let Some((name, what)) = stored.fault {
            walk.problem(name, format!("{what}: the other copy of it is used"));
        }
        stored.manifest
    });
    let mut log_from = 0;
    match stored {
        Ok(None) => {
            let names = vfs.list(&dir)?;
            if let Some(name) = names.iter().find(|name| is_of_checkpoint(name)) {
                walk.problem(MANIFEST_NAME, format!("is missing, though there is {name}"));
            }
        }
        Ok(Some(manifest)) => {
            walk.list(&manifest)?;
            walk.walk(&manifest);
            log_from = manifest.log_from;
        }
        Err(Error::Corrupt { path, reason }) => walk.report.problems.push((path, reason)),
        Err(error) => walk.report.problems.push((dir.clone(), error.to_string())),
    }
    walk.check_credentials();
    walk.check_primary();
    walk.check_log(&data_dir.join(LOG_DIR), log_from)?;
    walk.check_functions();
    Ok(Some(walk.report))
}

struct Walk<'a> {
    vfs: &'a dyn Vfs,
    dir: &'a Path,
    report: KvReport,
    /// Of each segment, the hash of the key at each record's place.
    seen: HashMap<u32, BTreeMap<u32, KeyHash>>,
}

impl Walk<'_> {
    fn problem(&mut self, name: &str, what: impl Into<String>) {
        self.report.problems.push((self.dir.join(name), what.into()));
    }

    fn check_credentials(&mut self) {
        for name in CREDENTIAL_FILES {
            match credentials::read(self.vfs, self.dir, name) {
                Ok(None) => {}
                Ok(Some(file)) => {
                    self.report.files += 1;
                    self.report.bytes += file.bytes.len() as u64;
                }
                Err(reason) => self.problem(name, reason),
            }
        }
    }

    fn check_primary(&mut self) {
        match primary::read(self.vfs, self.dir) {
            Ok(record) => self.report.files += u64::from(record.is_some()),
            Err(reason) => self.problem(REPLICA_OF, reason),
        }
    }

    /// Reads the records of the log as a start does.
    fn check_log(&mut self, log_dir: &Path, log_from: u64) -> Result<()> {
        let mut pieces = Pieces::default();
        wal::inspect(self.vfs, log_dir, &mut |found| {
            let Found::Record(record) = found else { return };
            if record.kind != KIND_KEYS || record.segment < log_from {
                return;
            }
            let file = log_dir.join(wal::segment_name(record.segment));
            let at = format!("the record at byte {}", record.offset);
            match read_record(&mut pieces, record.payload) {
                Ok((_, lost)) => {
                    let lost = lost.into_iter().map(|what| (file.clone(), format!("{at}: {what}")));
                    self.report.left_out.extend(lost);
                }
                Err(newer) => self.report.problems.push((file, format!("{at}: {newer}"))),
            }
        })?;
        Ok(())
    }

    fn check_functions(&mut self) {
        match libraries::read(self.vfs, self.dir) {
            Ok(None) => {}
            Ok(Some(bytes)) => {
                self.report.files += 1;
                self.report.bytes += bytes.len() as u64;
            }
            Err(reason) => self.problem(FUNCTIONS_FILE, reason),
        }
    }

    fn list(&mut self, manifest: &Manifest) -> Result<()> {
        for name in self.vfs.list(self.dir)? {
            let is_named = name == MANIFEST_NAME
                || name == MANIFEST_COPY_NAME
                || is_beside(&name)
                || name == index_name(manifest.index_file)
                || name == tail_name(manifest.index_file)
                || manifest.segments.iter().any(|one| segment_name(one.number) == name)
                || manifest.dictionaries.iter().any(|one| dictionary_name(*one) == name);
            if !is_named {
                self.report.leftovers.push(self.dir.join(name));
            }
        }
        Ok(())
    }

    fn walk(&mut self, manifest: &Manifest) {
        for number in &manifest.dictionaries {
            self.report.files += 1;
            match dictionary::read(self.vfs, self.dir, *number) {
                Ok(bytes) => self.report.bytes += bytes.len() as u64,
                Err(error) => self.problem(&dictionary_name(*number), error.to_string()),
            }
        }
        for segment in &manifest.segments {
            self.walk_segment(segment, manifest.hash_seed);
        }
        if manifest.index_file != 0 {
            self.walk_index(manifest.index_file);
            self.walk_tail(manifest);
        }
    }

    fn walk_tail(&mut self, manifest: &Manifest) {
        let index_file = manifest.index_file;
        match tail::read(self.vfs, self.dir, index_file, &mut |_| Ok(())) {
            Ok(None) if manifest.has_tail => self.problem(&tail_name(index_file), "is missing"),
            Ok(None) => {}
            Ok(Some(size)) => {
                self.report.files += 1;
                self.report.bytes += size;
            }
            Err(error) => self.problem(&tail_name(index_file), error.to_string()),
        }
    }

    fn walk_segment(&mut self, info: &SegmentInfo, hash_seed: u64) {
        let SegmentInfo { number, size, record_count } = *info;
        let name = segment_name(number);
        self.report.files += 1;
        let bytes = match self.vfs.map(&self.dir.join(&name)) {
            Ok(bytes) => bytes,
            Err(error) => return self.problem(&name, error.to_string()),
        };
        self.report.bytes += bytes.len() as u64;
        if bytes.len() as u64 != size {
            // A start refuses it.
            self.problem(&name, format!("has {} bytes, the manifest says {size}", bytes.len()));
        }
        let mut seen = BTreeMap::new();
        for (offset, raw) in record::walk(&bytes) {
            let offset = u32::try_from(offset / RECORD_ALIGNMENT).unwrap_or(u32::MAX);
            if let Some((_, hash)) = record::place_of(raw, hash_seed) {
                seen.insert(offset, hash);
            }
        }
        let found = u32::try_from(seen.len()).unwrap_or(u32::MAX);
        if found != record_count || bytes.has_faulted() {
            let what = format!("{found} records are whole of {record_count}");
            self.problem(&name, what);
        }
        bytes.release();
        self.seen.insert(number, seen);
    }

    fn walk_index(&mut self, number: u64) {
        let name = index_name(number);
        self.report.files += 1;
        let mut lost: BTreeMap<u32, u64> = BTreeMap::new();
        let (seen, mut keys) = (std::mem::take(&mut self.seen), 0);
        let read = IndexSnapshot::read(self.vfs, &self.dir.join(&name), |block| {
            let IndexSnapshot::Keys(_, entries) = block else { return Ok(()) };
            for (hash, Address { segment, offset }) in entries {
                keys += 1;
                let found = seen.get(&segment).and_then(|records| records.get(&offset));
                if found != Some(&hash) {
                    *lost.entry(segment).or_default() += 1;
                }
            }
            Ok(())
        });
        self.report.keys = keys;
        if let Err(error) = read {
            self.problem(&name, error.to_string());
        }
        for (segment, count) in lost {
            self.problem(&segment_name(segment), format!("{count} keys have no whole record"));
        }
    }
}
