//! Makes damaged files of keys ones that open and verify clean, with every key that is whole. First it
//! says what it would do; nothing is deleted: what is damaged moves to `DATA/damaged/TIME-keys/`.
//!
//! ```text
//! plan    manifest, or what the files say ─► records that can be read ─► index, or the newest record
//!         of each key ─► segments with damage: their good records ─► a snapshot's tail, up to its damage
//! apply   REPORT ─► new segments, new tail, new index, synced ─► manifest ─► what is damaged moves aside
//! ```
//!
//! Kill it anywhere and run it again: until the manifest is replaced nothing names what it wrote. The
//! log is not touched: what it has is replayed at the next start.

use crate::cold::dictionary::{self, Dictionaries, dictionary_name};
use crate::cold::snapshot::{IndexSnapshot, SnapshotWriter, index_name};
use crate::cold::tail::{self, TAIL_END, TailWriter, tail_name};
use crate::cold::{
    MANIFEST_COPY_NAME, MANIFEST_NAME, Manifest, Record, SegmentInfo, StoredManifest, record,
    segment_name,
};
use crate::effects::decode;
use crate::error::{Error, Result};
use crate::index::{Address, KeyHash, RECORD_ALIGNMENT};
use crate::keyspace::HIDDEN_DATABASES;
use crate::kv::{KEYS_DIR, has_keys, is_of_checkpoint, read_record};
use crate::maintenance::verify::LOG_DIR;
use crate::pieces::Pieces;
use crate::slots::NEVER;
use crate::value::Value;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::path::{Path, PathBuf};
use vfs::{Vfs, create_new_dir};
use wal::Found as LogFinding;
use wal::kinds::KIND_KEYS;

/// Where damaged files go, in a data directory.
const DAMAGED_DIR: &str = "damaged";
/// The file beside them that says what was done.
const REPORT_FILE: &str = "REPORT";
const NANOS_PER_SECOND: i64 = 1_000_000_000;
/// Entries of a block of an index.
const BLOCK: usize = 4096;
/// Databases of clients where no manifest says it, if none beyond has keys.
const DATABASES: u32 = 16;

/// What a repair would do.
pub struct KvRepair {
    dir: PathBuf,
    data_dir: PathBuf,
    manifest: Manifest,
    /// What is damaged, and what becomes of it, in words.
    steps: Vec<String>,
    /// What is lost, in words.
    losses: Vec<String>,
    /// Files that move aside.
    moved: Vec<String>,
    /// Segments that are written: their numbers, and the good records of damaged ones, or marks of
    /// keys whose records are lost.
    written: Vec<(u32, Vec<u8>)>,
    /// The tail that is written for the new index.
    tail: Option<TailCopy>,
    /// The index that is written: by database, and which keys expire.
    keys: BTreeMap<u8, Vec<(KeyHash, Address)>>,
    expiry: BTreeMap<u8, Vec<(i64, KeyHash)>>,
}

/// What is kept of a snapshot's tail.
struct TailCopy {
    /// Its file.
    name: String,
    /// How many records, from the first on.
    count: u64,
}

/// A record that can be read.
struct Found {
    db: u8,
    hash: KeyHash,
    seq: u64,
    expire_ms: i64,
    kind: ValueKind,
}

/// Kinds of values that tell the lists of series.
#[derive(Clone, Copy, PartialEq, Eq)]
enum ValueKind {
    /// A string without bytes.
    Empty,
    /// A time series.
    Series,
    Other,
}

impl ValueKind {
    fn of(value: &Value) -> ValueKind {
        match value {
            Value::Series(_) => ValueKind::Series,
            Value::Str(text) if text.len() == 0 => ValueKind::Empty,
            _ => ValueKind::Other,
        }
    }
}

/// Plans the repair of the keys of a data directory that the caller has locked; none if nothing is
/// damaged. Changes nothing.
///
/// # Errors
/// When its folder cannot be listed, or a newer program wrote a file.
pub fn plan(vfs: &dyn Vfs, data_dir: &Path) -> Result<Option<KvRepair>> {
    let dir = data_dir.join(KEYS_DIR);
    if !vfs.exists(&dir)? {
        return Ok(None);
    }
    let read = match StoredManifest::read(vfs, &dir) {
        Err(error @ Error::Newer { .. }) => return Err(error),
        read => read,
    };
    let names = vfs.list(&dir)?;
    let mut planner = Planner::new(vfs, &dir, data_dir);
    let has_files = names.iter().any(|name| is_of_checkpoint(name));
    let read = read.map(|stored| {
        if let Some((name, what)) = stored.fault {
            planner.note(name, &format!("{what}: written anew of the other copy"));
        }
        stored.manifest
    });
    let manifest = match read {
        Ok(Some(manifest)) => manifest,
        Ok(None) if !has_files => return Ok(None),
        lost => {
            if let Err(error) = lost {
                planner.note(MANIFEST_NAME, &format!("{error}: made anew of the files"));
                planner.plan.moved.push(MANIFEST_NAME.to_owned());
            } else {
                planner.note(MANIFEST_NAME, "is missing: made anew of the files");
            }
            planner.manifest_of_files(&names)?
        }
    };
    planner.run(manifest, &names)
}

/// Plans to accept the loss of all keys: a data directory without files of keys, which had some. The
/// log's changes would be made to keys that are not there, so they are passed over; none if the log has
/// all changes since the first. Changes nothing.
///
/// # Errors
/// When the log or the folder cannot be listed, or a newer program wrote a record.
pub fn plan_lost(vfs: &dyn Vfs, data_dir: &Path) -> Result<Option<KvRepair>> {
    let dir = data_dir.join(KEYS_DIR);
    let log_dir = data_dir.join(LOG_DIR);
    if has_keys(vfs, data_dir)? || !vfs.exists(&log_dir)? {
        return Ok(None);
    }
    let (mut first_seq, mut last_seq, mut next_segment) = (None, 0, 0);
    let mut pieces = Pieces::default();
    wal::inspect(vfs, &log_dir, &mut |found| {
        let LogFinding::Record(record) = found else { return };
        next_segment = next_segment.max(record.segment + 1);
        if record.kind != KIND_KEYS {
            return;
        }
        let seq = match read_record(&mut pieces, record.payload) {
            Ok((Some(whole), _)) => decode(whole.bytes()).map_or(0, |(seq, _)| seq),
            _ => return,
        };
        first_seq.get_or_insert(seq);
        last_seq = last_seq.max(seq);
    })?;
    if first_seq.is_none_or(|seq| seq == 1) {
        return Ok(None);
    }
    let mut planner = Planner::new(vfs, &dir, data_dir);
    planner.note(MANIFEST_NAME, "is missing, with all keys: written anew, without keys");
    planner.plan.losses.push(ALL_LOST.to_owned());
    planner.plan.manifest = Manifest {
        hash_seed: vfs.random(),
        seq: last_seq,
        log_from: next_segment,
        ..Manifest::default()
    };
    planner.find_hidden();
    planner.write(Vec::new(), &[]);
    Ok(Some(planner.plan))
}

struct Planner<'a> {
    vfs: &'a dyn Vfs,
    plan: KvRepair,
    dictionaries: Dictionaries,
    /// Of each segment, by offset, the records that can be read.
    found: BTreeMap<u32, BTreeMap<u32, Found>>,
    damaged: BTreeSet<u32>,
    /// Whether the index cannot be believed.
    is_index_lost: bool,
    /// Keys whose records are lost.
    lost: Vec<(u8, KeyHash)>,
}

impl<'a> Planner<'a> {
    fn new(vfs: &'a dyn Vfs, dir: &Path, data_dir: &Path) -> Planner<'a> {
        let plan = KvRepair {
            dir: dir.to_path_buf(),
            data_dir: data_dir.to_path_buf(),
            manifest: Manifest::default(),
            steps: Vec::new(),
            losses: Vec::new(),
            moved: Vec::new(),
            written: Vec::new(),
            tail: None,
            keys: BTreeMap::new(),
            expiry: BTreeMap::new(),
        };
        Planner {
            vfs,
            plan,
            dictionaries: Dictionaries::default(),
            found: BTreeMap::new(),
            damaged: BTreeSet::new(),
            is_index_lost: false,
            lost: Vec::new(),
        }
    }

    fn note(&mut self, name: &str, what: &str) {
        self.plan.steps.push(format!("{}: {what}", self.plan.dir.join(name).display()));
    }

    fn manifest_of_files(&mut self, names: &[String]) -> Result<Manifest> {
        self.is_index_lost = true;
        let numbers = |end: &str| numbers_of(names, end);
        let mut segments = Vec::new();
        for number in numbers(".cold").into_iter().filter_map(|number| u32::try_from(number).ok()) {
            let size = self.vfs.size(&self.plan.dir.join(segment_name(number)))?;
            segments.push(SegmentInfo { number, size, record_count: 0 });
        }
        Ok(Manifest {
            hash_seed: self.vfs.random(),
            next_segment: segments.iter().map(|one| one.number + 1).max().unwrap_or(0),
            index_file: [".index", TAIL_END].into_iter().flat_map(numbers).max().unwrap_or(0),
            segments,
            dictionaries: numbers(".dict"),
            ..Manifest::default()
        })
    }

    fn run(mut self, manifest: Manifest, names: &[String]) -> Result<Option<KvRepair>> {
        self.plan.manifest = manifest;
        self.read_dictionaries();
        for segment in self.plan.manifest.segments.clone() {
            self.read_segment(segment);
        }
        let entries = self.read_index()?;
        let entries = match entries {
            Some(entries) => self.without_lost(entries),
            None => {
                let entries = self.newest();
                self.find_hidden();
                entries
            }
        };
        self.read_tail(names)?;
        if self.plan.steps.is_empty() {
            return Ok(None);
        }
        self.write(entries, names);
        Ok(Some(self.plan))
    }

    fn read_dictionaries(&mut self) {
        let mut kept = Vec::new();
        for number in self.plan.manifest.dictionaries.clone() {
            let name = dictionary_name(number);
            let read = dictionary::read(self.vfs, &self.plan.dir, number);
            let read = read.map_err(|error| error.to_string()).and_then(|bytes| {
                self.dictionaries.insert(number, &bytes).map_err(|error| error.to_string())
            });
            match read {
                Ok(()) => kept.push(number),
                Err(error) => {
                    self.note(&name, &format!("{error}: moves aside, with the keys that need it"));
                    self.plan.moved.push(name);
                }
            }
        }
        self.plan.manifest.dictionaries = kept;
    }

    fn read_segment(&mut self, info: SegmentInfo) {
        let name = segment_name(info.number);
        let mut found = BTreeMap::new();
        let mut damage = None;
        match self.vfs.map(&self.plan.dir.join(&name)) {
            Err(error) => damage = Some(error.to_string()),
            Ok(bytes) => {
                let count = self.read_records(&bytes, &mut found);
                let is_counted = self.is_index_lost || count == info.record_count;
                if !is_counted || bytes.has_faulted() || bytes.len() as u64 != info.size {
                    damage = Some(format!("{count} records are whole of {}", info.record_count));
                } else if found.len() < count as usize {
                    let lost = count as usize - found.len();
                    damage = Some(format!("{lost} records of {count} cannot be decoded"));
                }
            }
        }
        if let Some(damage) = damage {
            self.note(&name, &format!("{damage}: those that are whole are written again"));
            self.damaged.insert(info.number);
            if self.vfs.exists(&self.plan.dir.join(&name)).unwrap_or(false) {
                self.plan.moved.push(name);
            }
        }
        self.found.insert(info.number, found);
    }

    /// Reads the records of a segment, those behind damage included. Returns how many are whole.
    fn read_records(&mut self, bytes: &[u8], found: &mut BTreeMap<u32, Found>) -> u32 {
        let (mut start, mut count) = (0, 0);
        while let Some(rest) = bytes.get(start..).filter(|rest| !rest.is_empty()) {
            let mut end = 0;
            for (offset, raw) in record::walk(rest) {
                count += 1;
                end = (offset + raw.len()).next_multiple_of(RECORD_ALIGNMENT);
                let place = u32::try_from((start + offset) / RECORD_ALIGNMENT);
                let hash_seed = self.plan.manifest.hash_seed;
                if let (Ok(place), true) = (place, record::is_lost(raw))
                    && let Some((db, hash)) = record::place_of(raw, hash_seed)
                {
                    let seq = record::seq_of(raw).unwrap_or(0);
                    let kind = ValueKind::Other;
                    found.insert(place, Found { db, hash, seq, expire_ms: NEVER, kind });
                    continue;
                }
                let decoded = Record::decode(raw, &self.dictionaries);
                if let (Ok(place), Ok(record)) = (place, decoded) {
                    let hash = KeyHash::new(&record.key, self.plan.manifest.hash_seed);
                    let kind = ValueKind::of(&record.value);
                    let Record { db, seq, expire_ms, .. } = record;
                    found.insert(place, Found { db, hash, seq, expire_ms, kind });
                }
            }
            // What is no record is passed over until one begins.
            start += end.max(RECORD_ALIGNMENT);
        }
        count
    }

    /// Finds what a snapshot's tail has. Without a manifest it is that of the newest: what a checkpoint
    /// came after is in the log, too, until the tail is gone.
    fn read_tail(&mut self, names: &[String]) -> Result<()> {
        let number = match self.is_index_lost {
            true => numbers_of(names, TAIL_END).into_iter().max(),
            false => Some(self.plan.manifest.index_file),
        };
        let name = number.map(tail_name);
        let Some(name) = name.filter(|name| names.contains(name)) else {
            if self.plan.manifest.has_tail {
                let name = tail_name(self.plan.manifest.index_file);
                self.note(&name, "is missing: the index is used without it");
                self.plan
                    .losses
                    .push(format!("changes made while the snapshot was taken: in {name}"));
            }
            return Ok(());
        };
        let found = tail::salvage(self.vfs, &self.plan.dir.join(&name), &mut |_| Ok(()))?;
        if let Some(damage) = found.damage {
            let what = format!("{damage}: the {} records before that are kept", found.count);
            self.note(&name, &what);
            self.plan.losses.push(format!("changes made while the snapshot was taken: in {name}"));
        }
        if !self.plan.moved.contains(&name) {
            self.plan.moved.push(name.clone());
        }
        self.plan.tail = Some(TailCopy { name, count: found.count });
        Ok(())
    }

    /// The entries of the index; none if it has to be made anew.
    fn read_index(&mut self) -> Result<Option<Vec<(u8, KeyHash, Address)>>> {
        let number = self.plan.manifest.index_file;
        if self.is_index_lost {
            self.plan.losses.push(REVIVED.to_owned());
            return Ok(None);
        }
        if number == 0 {
            return Ok(Some(Vec::new()));
        }
        let name = index_name(number);
        let (mut entries, mut expiry) = (Vec::new(), BTreeMap::new());
        let path = self.plan.dir.join(&name);
        let read = IndexSnapshot::read(self.vfs, &path, |_| Ok(()));
        let blocks = IndexSnapshot::read_blocks(self.vfs, &path, |block| {
            match block {
                IndexSnapshot::Keys(db, keys) => {
                    entries.extend(keys.into_iter().map(|(hash, address)| (db, hash, address)));
                }
                IndexSnapshot::Expiry(db, times) => {
                    expiry.entry(db).or_insert_with(Vec::new).extend(times);
                }
            }
            Ok(())
        });
        if let (Err(error), Ok(())) = (&read, &blocks) {
            self.note(&name, &format!("{error}: written anew of its blocks, which are whole"));
        }
        match blocks {
            Ok(()) => {
                self.plan.expiry = expiry;
                Ok(Some(entries))
            }
            Err(error @ Error::Newer { .. }) => Err(error),
            Err(error) => {
                self.note(&name, &format!("{error}: made anew of the records"));
                self.plan.losses.push(REVIVED.to_owned());
                if self.vfs.exists(&self.plan.dir.join(&name))? {
                    self.plan.moved.push(name);
                }
                Ok(None)
            }
        }
    }

    /// Entries whose records can be read. The others are marked as lost: what the log has of them would
    /// be done to nothing otherwise.
    fn without_lost(
        &mut self,
        entries: Vec<(u8, KeyHash, Address)>,
    ) -> Vec<(u8, KeyHash, Address)> {
        let mut lost: BTreeMap<u32, u64> = BTreeMap::new();
        let (found, marked) = (&self.found, &mut self.lost);
        let is_whole = |(db, hash, address): &(u8, KeyHash, Address)| {
            let record = found.get(&address.segment).and_then(|one| one.get(&address.offset));
            let is_whole = record.is_some_and(|record| record.hash == *hash && record.db == *db);
            if !is_whole {
                *lost.entry(address.segment).or_default() += 1;
                marked.push((*db, *hash));
            }
            is_whole
        };
        let kept = entries.into_iter().filter(is_whole).collect();
        for (segment, count) in lost {
            let name = segment_name(segment);
            if !self.damaged.contains(&segment) {
                self.note(&name, &format!("{count} keys have no record: they are marked as lost"));
            }
            self.plan.losses.push(format!(
                "{count} keys, whose records were in {name}: commands on them get an error until they are \
                 set anew or deleted"
            ));
        }
        kept
    }

    /// Finds the databases that list the time series, where no manifest says it: the last one or two
    /// that have keys, if there are series and all their values are empty.
    fn find_hidden(&mut self) {
        if self.plan.manifest.databases != 0 {
            return;
        }
        let (mut lists, mut has_series) = (BTreeMap::new(), false);
        for found in self.found.values().flat_map(BTreeMap::values) {
            *lists.entry(found.db).or_insert(true) &= found.kind == ValueKind::Empty;
            has_series |= found.kind == ValueKind::Series;
        }
        let last = lists.keys().max().copied().unwrap_or(0);
        let is_list = |db: u8| has_series && db != 0 && lists.get(&db) == Some(&true);
        let hidden = match (is_list(last), is_list(last.wrapping_sub(1))) {
            (true, true) => u32::from(last) - 1,
            (true, false) => u32::from(last),
            (false, _) => DATABASES.max(u32::from(last) + 1),
        };
        self.plan.manifest.hidden = hidden.min(u32::from(u8::MAX) - 1);
    }

    /// The newest record of each key.
    fn newest(&mut self) -> Vec<(u8, KeyHash, Address)> {
        let mut newest: HashMap<(u8, KeyHash), (u64, Address)> = HashMap::new();
        for (segment, records) in &self.found {
            for (offset, found) in records {
                let address = Address { segment: *segment, offset: *offset };
                let place = newest.entry((found.db, found.hash)).or_insert((found.seq, address));
                // Of two copies the later segment has the one that coding or moving made.
                if place.0 <= found.seq {
                    *place = (found.seq, address);
                }
                if found.expire_ms != NEVER {
                    let expiry = self.plan.expiry.entry(found.db).or_default();
                    expiry.push((found.expire_ms, found.hash));
                }
                self.plan.manifest.seq = self.plan.manifest.seq.max(found.seq);
            }
        }
        let entry = |((db, hash), (_, address))| (db, hash, address);
        newest.into_iter().map(entry).collect()
    }

    /// Puts together what is to be written.
    fn write(&mut self, entries: Vec<(u8, KeyHash, Address)>, names: &[String]) {
        let mut moves: BTreeMap<Address, Address> = BTreeMap::new();
        let manifest = &mut self.plan.manifest;
        for number in &self.damaged {
            let bytes = self.vfs.map(&self.plan.dir.join(segment_name(*number))).ok();
            let (mut copy, mut count) = (Vec::new(), 0);
            let to = manifest.take_number();
            for offset in self.found.get(number).into_iter().flat_map(BTreeMap::keys) {
                let from = Address { segment: *number, offset: *offset };
                let rest =
                    bytes.as_ref().and_then(|b| b.get(*offset as usize * RECORD_ALIGNMENT..));
                let first = rest.and_then(|rest| record::walk(rest).next());
                let Some((0, raw)) = first else { continue };
                let place = u32::try_from(copy.len() / RECORD_ALIGNMENT).unwrap_or(u32::MAX);
                moves.insert(from, Address { segment: to, offset: place });
                copy.extend_from_slice(raw);
                copy.resize(copy.len().next_multiple_of(RECORD_ALIGNMENT), 0);
                count += 1;
            }
            manifest.segments.retain(|one| one.number != *number);
            if 0 < count {
                let size = copy.len() as u64;
                manifest.segments.push(SegmentInfo { number: to, size, record_count: count });
                self.plan.written.push((to, copy));
            }
        }
        let marks = mark_lost(&self.lost, manifest, &mut self.plan.written);
        for segment in &mut manifest.segments {
            let records = self.found.get(&segment.number);
            segment.record_count = records.map_or(segment.record_count, |found| {
                u32::try_from(found.len()).unwrap_or(u32::MAX)
            });
        }
        let old = index_name(manifest.index_file);
        if names.contains(&old) && !self.plan.moved.contains(&old) {
            self.plan.moved.push(old);
        }
        manifest.index_file += 1;
        manifest.has_tail = self.plan.tail.is_some();
        for (db, hash, address) in entries.into_iter().chain(marks) {
            let address = moves.get(&address).copied().unwrap_or(address);
            self.plan.keys.entry(db).or_default().push((hash, address));
        }
        let databases = self.plan.keys.keys().max().map_or(0, |last| u32::from(*last) + 1);
        let hidden_end = manifest.hidden + HIDDEN_DATABASES as u32;
        manifest.databases = manifest.databases.max(databases).max(hidden_end);
    }
}

/// Bytes of a segment of marks, at most: far below what an address reaches.
const MARKS_SIZE_MAX: usize = 16 << 20;

/// Writes marks of keys whose records are lost into new segments. Returns where each is.
fn mark_lost(
    lost: &[(u8, KeyHash)],
    manifest: &mut Manifest,
    written: &mut Vec<(u32, Vec<u8>)>,
) -> Vec<(u8, KeyHash, Address)> {
    let (mut entries, mut bytes, mut count) = (Vec::with_capacity(lost.len()), Vec::new(), 0);
    let mut segment = if lost.is_empty() { 0 } else { manifest.take_number() };
    for (at, (db, hash)) in lost.iter().enumerate() {
        let offset = u32::try_from(bytes.len() / RECORD_ALIGNMENT).unwrap_or(u32::MAX);
        entries.push((*db, *hash, Address { segment, offset }));
        record::put_lost(&mut bytes, *db, *hash, manifest.seq);
        bytes.resize(bytes.len().next_multiple_of(RECORD_ALIGNMENT), 0);
        count += 1;
        if at + 1 == lost.len() || MARKS_SIZE_MAX <= bytes.len() {
            let size = bytes.len() as u64;
            manifest.segments.push(SegmentInfo { number: segment, size, record_count: count });
            written.push((segment, std::mem::take(&mut bytes)));
            count = 0;
            if at + 1 < lost.len() {
                segment = manifest.take_number();
            }
        }
    }
    entries
}

/// The numbers of files whose names end so.
fn numbers_of(names: &[String], end: &str) -> Vec<u64> {
    let number = |name: &String| name.strip_suffix(end)?.parse().ok();
    names.iter().filter_map(number).collect()
}

const ALL_LOST: &str = "all keys, users, settings and libraries of functions, and the changes of keys in \
                        the log, which build on them";
const REVIVED: &str = "which keys there are: made of all records that can be read, so keys may be there \
                       again, as they were, that were deleted before the last checkpoint";

impl KvRepair {
    /// What is to be done, in order.
    pub fn steps(&self) -> &[String] {
        &self.steps
    }

    /// What is lost with the damage, whether it is repaired or not.
    pub fn losses(&self) -> &[String] {
        &self.losses
    }

    /// Does it. Returns the folder of what was moved aside.
    ///
    /// # Errors
    /// When the disk fails; it may be planned and done again.
    pub fn apply(&self, vfs: &dyn Vfs) -> Result<PathBuf> {
        vfs.create_dir_all(&self.dir)?;
        let name = format!("{}-keys", vfs.now() / NANOS_PER_SECOND);
        let folder = create_new_dir(vfs, &self.data_dir.join(DAMAGED_DIR), &name)?;
        let aside = folder.join(KEYS_DIR);
        vfs.create_dir_all(&aside)?;
        vfs::write_atomic(vfs, &folder.join(REPORT_FILE), self.report().as_bytes())?;
        for (number, bytes) in &self.written {
            crate::cold::write_segment(vfs, &self.dir.join(segment_name(*number)), bytes)?;
        }
        self.write_tail(vfs)?;
        self.write_index(vfs)?;
        vfs.sync_dir(&self.dir)?;
        for name in [MANIFEST_NAME, MANIFEST_COPY_NAME] {
            let path = self.dir.join(name);
            if vfs.exists(&path)? {
                vfs.hard_link(&path, &aside.join(name))?;
            }
        }
        self.manifest.write(vfs, &self.dir)?;
        for name in self.moved.iter().filter(|name| *name != MANIFEST_NAME) {
            // A file that is missing is damage, too.
            if vfs.exists(&self.dir.join(name))? {
                vfs.rename(&self.dir.join(name), &aside.join(name))?;
            }
        }
        for dir in [&aside, &self.dir, &folder] {
            vfs.sync_dir(dir)?;
        }
        Ok(folder)
    }

    fn report(&self) -> String {
        let mut text = String::from("done, in this order:\n");
        self.steps.iter().for_each(|step| text += &format!("{step}\n"));
        text.push_str("\nlost:\n");
        self.losses.iter().for_each(|loss| text += &format!("{loss}\n"));
        text
    }

    /// Copies what is kept of a tail under the number of the new index.
    fn write_tail(&self, vfs: &dyn Vfs) -> Result<()> {
        let Some(TailCopy { name, count }) = &self.tail else { return Ok(()) };
        let to = self.dir.join(tail_name(self.manifest.index_file));
        let (mut writer, mut copied) = (TailWriter::new(vfs, &to)?, 0);
        let mut written = Ok(());
        tail::salvage(vfs, &self.dir.join(name), &mut |record| {
            if copied < *count && written.is_ok() {
                written = writer.record(record);
                copied += 1;
            }
            Ok(())
        })?;
        written?;
        match copied == *count {
            true => writer.finish(),
            false => {
                let reason = "it has fewer records than when it was read before".to_owned();
                Err(Error::Corrupt { path: self.dir.join(name), reason })
            }
        }
    }

    fn write_index(&self, vfs: &dyn Vfs) -> Result<()> {
        let path = self.dir.join(index_name(self.manifest.index_file));
        let mut writer = SnapshotWriter::new(vfs, &path)?;
        for (db, keys) in &self.keys {
            for block in keys.chunks(BLOCK) {
                writer.keys(*db, block)?;
            }
        }
        for (db, times) in &self.expiry {
            for block in times.chunks(BLOCK) {
                writer.expiry(*db, block)?;
            }
        }
        writer.finish()
    }
}
