//! Walks every checksum of a keyspace that is not open. Changes nothing.

use crate::cold::dictionary::{self, dictionary_name};
use crate::cold::tail::{self, tail_name};
use crate::cold::{IndexSnapshot, MANIFEST_NAME, Manifest, index_name, record, segment_name};
use crate::error::Result;
use crate::index::{Address, KeyHash, RECORD_ALIGNMENT};
use crate::kv::{KEYS_DIR, is_beside, is_of_checkpoint};
use std::collections::{BTreeMap, HashMap};
use std::path::{Path, PathBuf};
use vfs::Vfs;

/// What a walk found.
#[derive(Clone, Debug, Default)]
pub struct KvReport {
    /// Files read.
    pub files: u64,
    /// Bytes read.
    pub bytes: u64,
    /// Keys that the index names.
    pub keys: u64,
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
    match Manifest::read(vfs, &dir) {
        Ok(None) => {
            let names = vfs.list(&dir)?;
            if let Some(name) = names.iter().find(|name| is_of_checkpoint(name)) {
                walk.problem(MANIFEST_NAME, format!("is missing, though there is {name}"));
            }
        }
        Ok(Some(manifest)) => {
            walk.list(&manifest)?;
            walk.walk(&manifest);
        }
        Err(error) => walk.report.problems.push((dir.clone(), error.to_string())),
    }
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

    fn list(&mut self, manifest: &Manifest) -> Result<()> {
        for name in self.vfs.list(self.dir)? {
            let is_named = name == MANIFEST_NAME
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
            self.walk_segment(segment.number, segment.record_count, manifest.hash_seed);
        }
        if manifest.index_file != 0 {
            self.walk_index(manifest.index_file);
            self.walk_tail(manifest.index_file);
        }
    }

    fn walk_tail(&mut self, index_file: u64) {
        match tail::read(self.vfs, self.dir, index_file, &mut |_| Ok(())) {
            Ok(None) => {}
            Ok(Some(size)) => {
                self.report.files += 1;
                self.report.bytes += size;
            }
            Err(error) => self.problem(&tail_name(index_file), error.to_string()),
        }
    }

    fn walk_segment(&mut self, number: u32, record_count: u32, hash_seed: u64) {
        let name = segment_name(number);
        self.report.files += 1;
        let bytes = match self.vfs.map(&self.dir.join(&name)) {
            Ok(bytes) => bytes,
            Err(error) => return self.problem(&name, error.to_string()),
        };
        self.report.bytes += bytes.len() as u64;
        let mut seen = BTreeMap::new();
        for (offset, raw) in record::walk(&bytes) {
            let offset = u32::try_from(offset / RECORD_ALIGNMENT).unwrap_or(u32::MAX);
            if let Some((_, key)) = record::key_of(raw) {
                seen.insert(offset, KeyHash::new(key, hash_seed));
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
