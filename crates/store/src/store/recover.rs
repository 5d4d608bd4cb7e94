//! What opening does after a crash or a clean stop, in three phases.
//!
//! ```text
//! look     side files, manifests, headers of parts and segments are read; nothing is changed.
//!          A file of an unknown version ends it here
//! rebuild  manifests that are missing or damaged are made again. Names are made durable
//! replay   the log hands over the records of rows, metadata and exemplars, in memory
//! recover  what was replayed is sealed, and only then leftovers are removed
//! ```
//!
//! Damage costs what it hits: a side file, a part, a partition. See [`crate::partition::damaged`].

use crate::base::damage::{Damage, DamagePlace};
use crate::base::directory::named_log::NamedLog;
use crate::base::directory::partition_length::LengthFile;
use crate::base::directory::root_manifest::{Contents, PartitionEntry};
use crate::base::directory::side_file::read_twice;
use crate::base::directory::{partition_length, root_manifest};
use crate::base::file_names::{
    CORRUPT_SUFFIX, DROPPED_FILE, EXEMPLARS_FILE, INDEX_DIR, METADATA_FILE, PARTITION_MANIFEST,
    PARTITIONS_DIR, PARTS_DIR, SNAPSHOTS_DIR, STRINGS_FILE, WAL_DIR,
};
use crate::base::ground::Ground;
use crate::base::narrow::to_u16;
use crate::base::period::{PartitionLength, Period};
use crate::log::exemplars::ExemplarQueue;
use crate::log::log_record::{KIND_EXEMPLARS, KIND_METADATA, KIND_ROWS, RowsRecord};
use crate::log::metadata::MetadataTable;
use crate::log::metadata_files::{self, StoredMetadata};
use crate::log::string_numbers;
use crate::offline::verify::side::{is_converted, lost_file};
use crate::partition::damaged::DamagedPartition;
use crate::partition::disk::manifest::Manifest;
use crate::partition::disk::strays;
use crate::partition::dropped::DroppedPartitions;
use crate::partition::histograms::marker::may_be_marker;
use crate::partition::partitions::{PARTITIONS_MAX, PRESENT_PARTITIONS_MAX, check_partition_count};
use crate::partition::retention::retention_clock::{self, ClockRecord};
use crate::partition::unfinished_deletion::{self, UnfinishedDeletion};
use crate::partition::{Partition, PartitionState, SEAL_SIZE};
use crate::store::snapshot;
use crate::{Error, Result};
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use wal::kinds::{EXEMPLARS, METADATA, SERIES};
use wal::{Consumer, Consumers, LogStart, RecordRef, ReplayError, Wal};

/// What was found in a store's directory, before anything was changed, and then in the log.
pub struct Found {
    /// What metrics are.
    metadata: MetadataTable,
    /// Exemplars.
    exemplars: ExemplarQueue,
    /// From where on records of dropped partitions count.
    pub(crate) dropped: DroppedPartitions,
    /// What time it was.
    clock: Option<ClockRecord>,
    /// A deletion that a crash has interrupted.
    deletion: Option<UnfinishedDeletion>,
    /// Side files that are damaged.
    damaged_side_files: Vec<&'static str>,
    /// Partitions that have lost label sets: of the log's rows those count whose labels are known.
    incomplete: BTreeSet<Period>,
    /// Partitions that can be read.
    partitions: BTreeMap<Period, Arc<Partition>>,
    /// Partitions that cannot.
    pub(crate) damaged: BTreeMap<Period, DamagedPartition>,
    /// Samples replayed.
    samples: u64,
}

/// What recovery made of it.
pub struct Recovered {
    /// What metrics are.
    pub metadata: MetadataTable,
    /// Exemplars.
    pub exemplars: ExemplarQueue,
    /// From where on records of dropped partitions count.
    pub dropped: DroppedPartitions,
    /// What time it was.
    pub clock: Option<ClockRecord>,
    /// A deletion that is to be finished before anybody reads.
    pub deletion: Option<UnfinishedDeletion>,
    /// The partitions, with unflushed rows in their heads.
    pub partitions: BTreeMap<Period, Arc<Partition>>,
    /// Partitions of which nothing is read.
    pub damaged: BTreeMap<Period, DamagedPartition>,
    /// Files that no manifest names and that nobody knows.
    pub orphans: Vec<PathBuf>,
}

/// What looks at the directory of a store that is being opened, and recovers it.
#[derive(Clone, Copy)]
pub(crate) struct Recovery<'a> {
    /// Where it is, and who is told of damage.
    pub ground: &'a Ground,
}

impl Recovery<'_> {
    /// How long the store's partitions are: as its file says, or the names of its partitions. In a
    /// new directory the length that is asked for is written down.
    ///
    /// # Errors
    /// [`Error::OtherLength`] when another one is asked for; when nothing says for sure which it
    /// is; [`Error::UnknownVersion`], and on I/O errors.
    pub fn settle_length(&self) -> Result<PartitionLength> {
        let Ground { vfs, dir, config, .. } = self.ground;
        let (disk, asked) = (vfs.as_ref(), config.partition_length);
        let wanted = asked.unwrap_or(partition_length::DEFAULT);
        let read = || partition_length::read(disk, dir);
        let known = match self.side_file(partition_length::FILE_NAME, &read, &mut Vec::new())? {
            Some(Some(said)) => {
                partition_length::check_names(disk, dir, said.length)?;
                Some(said.length)
            }
            Some(None) if partition_length::is_new(disk, dir)? => {
                let said = LengthFile { length: wanted, needs: BTreeSet::new() };
                partition_length::write(disk, dir, &said)?;
                Some(wanted)
            }
            _ => partition_length::of_names(disk, dir)?,
        };
        let has = known.unwrap_or(wanted);
        match asked {
            Some(asked) if asked != has => Err(Error::OtherLength { dir: dir.clone(), has, asked }),
            _ => Ok(has),
        }
    }

    /// Reads all that says what the store is. Changes nothing.
    ///
    /// # Errors
    /// [`Error::UnknownVersion`] for anything that a newer program wrote; when the partitions
    /// cannot be listed.
    pub fn look(&self) -> Result<Found> {
        let Ground { vfs, dir, config, .. } = self.ground;
        let vfs = vfs.as_ref();
        let exemplars_max = config.exemplars_max;
        let mut bad = Vec::new();
        let read = || Contents::read(vfs, dir);
        let mut contents = self.side_file(root_manifest::FILE_NAME, &read, &mut bad)?.flatten();
        let missing = self.note_missing(contents.as_mut())?;
        let log_damage = contents.iter().flat_map(|contents| contents.log_damage(vfs, dir));
        log_damage.for_each(|damage| self.note(damage));
        let string_number = contents.as_ref().map_or(0, |contents| contents.string_number);
        let read = || partition_length::read(vfs, dir);
        self.side_file(partition_length::FILE_NAME, &read, &mut bad)?;
        let stored = StoredMetadata::read(vfs, dir)?;
        self.note_damaged_metadata(&stored, &mut bad);
        self.note_lost_dictionary(&stored, string_number, &mut bad)?;
        let metadata = MetadataTable::from_stored(&stored);
        drop(stored);
        let read = || ExemplarQueue::read(vfs, dir, exemplars_max);
        let exemplars = self.side_file(EXEMPLARS_FILE, &read, &mut bad)?;
        let read = || DroppedPartitions::read(vfs, dir);
        let dropped = self.side_file(DROPPED_FILE, &read, &mut bad)?;
        let clock =
            self.side_file(retention_clock::FILE_NAME, &|| ClockRecord::read(vfs, dir), &mut bad)?;
        let exemplars = exemplars.unwrap_or_else(|| ExemplarQueue::new(exemplars_max));
        let read = || UnfinishedDeletion::read(vfs, dir);
        let deletion = self.side_file(unfinished_deletion::FILE_NAME, &read, &mut bad)?.flatten();
        deletion.iter().for_each(|one| one.delete_exemplars(&exemplars));
        let mut found = Found {
            metadata,
            exemplars,
            dropped: dropped.unwrap_or_default(),
            clock: clock.flatten(),
            deletion,
            damaged_side_files: bad,
            incomplete: missing.keys().copied().collect(),
            partitions: BTreeMap::new(),
            damaged: BTreeMap::new(),
            samples: 0,
        };
        let named = contents.iter().flat_map(|contents| &contents.partitions);
        for (period, entry) in named.chain(&missing) {
            found.dropped.raise(*period, entry.from);
        }
        self.ground.root.set(contents);
        for name in vfs.list(&dir.join(PARTITIONS_DIR))? {
            if let Some(period) =
                Period::parse(&name).filter(|one| one.length() == self.ground.length)
            {
                self.look_at_partition(period, &mut found)?;
            }
        }
        Ok(found)
    }

    /// Notes what the root manifest names and is not there, and moves it to its lists of the lost.
    /// Returns the partitions that this start or one before has found missing.
    fn note_missing(
        &self,
        contents: Option<&mut Contents>,
    ) -> Result<BTreeMap<Period, PartitionEntry>> {
        let Some(contents) = contents else { return Ok(BTreeMap::new()) };
        let Ground { vfs, dir, .. } = self.ground;
        let (partitions, files) = contents.missing(vfs.as_ref(), dir);
        root_manifest::check_mounted(contents, &partitions, dir)?;
        // The retention would drop these next.
        let kept_from = self.ground.config.retention_ns.map(|kept| vfs.now().saturating_sub(kept));
        let is_kept = |one: &Period| kept_from.is_none_or(|from| from <= one.range().end);
        contents.lost_partitions.extend(&partitions);
        let lost = contents.lost_partitions.iter();
        let entry = |period| contents.partitions.get(period).copied().unwrap_or_default();
        let missing = lost.map(|period| (*period, entry(period))).collect();
        contents.partitions.retain(|period, _| !partitions.contains(period));
        contents.lost_partitions.retain(is_kept);
        contents.files.retain(|name| !files.contains(name));
        contents.lost_files.extend(files);
        for name in &contents.lost_files {
            self.note(lost_file(name));
        }
        Ok(missing)
    }

    /// Notes damage to the files of the table of metadata. If neither can be read, those that are
    /// there are to be set aside.
    fn note_damaged_metadata(&self, stored: &StoredMetadata, bad: &mut Vec<&'static str>) {
        stored.damage().into_iter().for_each(|damage| self.note(damage));
        if stored.contents.is_none() {
            bad.extend(stored.faults.iter().filter(|fault| fault.is_there).map(|fault| fault.file));
        }
    }

    /// Reads the high-water mark of the string dictionary, and notes a dictionary that is gone.
    fn note_lost_dictionary(
        &self,
        stored: &StoredMetadata,
        string_number: u32,
        bad: &mut Vec<&'static str>,
    ) -> Result<()> {
        let Ground { vfs, dir, .. } = self.ground;
        let read = || string_numbers::read(vfs.as_ref(), dir);
        let reserved = self.side_file(STRINGS_FILE, &read, bad)?.flatten();
        let is_loss = |one: &Damage| one.file == METADATA_FILE && one.samples != Some(0);
        let is_noted = || self.ground.damage.list().iter().any(is_loss);
        // That of a converted store is another consumer's, who notes its loss.
        let is_used = reserved.is_some() || 0 < string_number;
        if is_used && stored.contents.is_none() && !is_noted() && !is_converted(vfs.as_ref(), dir) {
            self.note(metadata_files::lost_dictionary());
        }
        Ok(())
    }

    /// A side file as read; `None`, and noted, when it is damaged.
    fn side_file<T>(
        &self,
        name: &'static str,
        read: &dyn Fn() -> Result<T>,
        bad: &mut Vec<&'static str>,
    ) -> Result<Option<T>> {
        match read_twice(read) {
            Ok(content) => Ok(Some(content)),
            Err(error) if error.is_unreadable() || matches!(error, Error::Corrupt { .. }) => {
                bad.push(name);
                let place = DamagePlace::SideFile;
                self.note(Damage::of_store(place, name.to_string(), error.to_string()));
                Ok(None)
            }
            Err(error) => Err(error),
        }
    }

    /// Notes damage that the start has met.
    pub fn note(&self, damage: Damage) {
        self.ground.damage.note(damage, self.ground.vfs.now());
    }

    /// Opens a partition, or adds it to the damaged ones.
    pub fn look_at_partition(&self, period: Period, found: &mut Found) -> Result<()> {
        let dir = self.ground.partition_dir(period);
        let from = found.dropped.from(period);
        let opened =
            Partition::open(&self.ground.vfs, dir.clone(), period, from, &self.ground.damage);
        match opened.and_then(|partition| self.check_manifest(partition)) {
            Ok(partition) => {
                found.partitions.insert(period, Arc::new(partition));
            }
            Err(error) if error.is_unknown_version() || error.is_passing() => return Err(error),
            Err(error) => {
                let manifest = Manifest::read(self.ground.vfs.as_ref(), &dir).ok().flatten();
                let wal_from = manifest.map_or(0, |manifest| manifest.wal_from).max(from);
                let reason = error.to_string();
                let damaged = DamagedPartition { period, reason, wal_from, log_from: None };
                found.damaged.insert(period, damaged);
            }
        }
        Ok(())
    }

    /// Fails when the manifest is an older copy than the one that the root manifest names.
    fn check_manifest(&self, partition: Partition) -> Result<Partition> {
        let sequence_next = partition.read().disk.manifest().sequence_next;
        match self.ground.root.entry(partition.period).is_stale(sequence_next) {
            true => Err(stale_manifest(&partition.dir)),
            false => Ok(partition),
        }
    }

    /// Notes the partitions that are unreadable or may be incomplete.
    ///
    /// # Errors
    /// On I/O errors.
    pub fn note_damaged(&self, found: &Found) -> Result<()> {
        found.damaged.values().for_each(|damaged| self.note(damaged.damage()));
        let mut doubtful = self.ground.root.lost_partitions();
        for period in found.partitions.keys() {
            doubtful.extend(self.rebuilt_manifest(*period)?);
        }
        doubtful.iter().for_each(|damage| self.note(damage.clone()));
        self.ground.root.set_doubtful(doubtful);
        Ok(())
    }

    /// Makes a store of what was found and of what the log has handed over, and removes what is left
    /// over.
    ///
    /// # Errors
    /// On I/O errors.
    pub fn recover(&self, mut found: Found, wal: &Wal) -> Result<Recovered> {
        let lost = |partition: &Arc<Partition>| partition.read().disk.lost().len();
        let lost =
            found.partitions.values().map(lost).sum::<usize>() + found.damaged_side_files.len();
        let counters = &self.ground.counters;
        counters.corrupt_parts.fetch_add(lost as u64, Ordering::Relaxed);
        if wal.recovery().start == LogStart::Damaged {
            let what = "it was written anew; whether segments of the log are gone nobody knows";
            let file = format!("{WAL_DIR}/{}", wal::START_NAME);
            self.note(Damage::of_store(DamagePlace::Log, file, what.to_string()));
        }
        self.note_lost_log(wal);
        found.replay(*self).0.seal();
        for (period, partition) in &found.partitions {
            if 0 < found.dropped.from(*period) {
                partition.create_on_disk(self.ground.vfs.as_ref())?;
            }
        }
        let is_apart = |period: &Period| !found.partitions.contains_key(period);
        assert!(found.damaged.keys().all(is_apart), "a partition is read whole or not at all");
        counters.samples_replayed.fetch_add(found.samples, Ordering::Relaxed);
        check_partition_count(found.partitions.len(), PARTITIONS_MAX + PRESENT_PARTITIONS_MAX)?;
        self.set_side_files_aside(&found.damaged_side_files)?;
        self.rewrite_metadata(&found.metadata)?;
        self.keep_length()?;
        let orphans = self.clear(&found.partitions)?;
        let Ground { root, vfs, dir, .. } = self.ground;
        let partitions = found.partitions.values();
        let made: Vec<(Period, u64)> = partitions.filter_map(|one| one.last_number()).collect();
        match root.update(vfs.as_ref(), dir, &|| made.clone(), NamedLog::of_open(wal)) {
            // Better a store that can be read than none; a flush tries again.
            Err(Error::Io(error)) if error.is_disk_full() => {}
            updated => updated?,
        }
        let Found { metadata, exemplars, dropped, clock, deletion, partitions, damaged, .. } =
            found;
        Ok(Recovered {
            metadata,
            exemplars,
            dropped,
            clock,
            deletion,
            partitions,
            damaged,
            orphans,
        })
    }

    /// Notes what the log knows to be missing of itself.
    fn note_lost_log(&self, wal: &Wal) {
        let recovery = wal.recovery();
        let note = |name: &str, what: String| {
            self.note(Damage::of_store(DamagePlace::Log, format!("{WAL_DIR}/{name}"), what));
        };
        if recovery.is_end_damaged {
            let what = "it was written again; records at the end of the log may be missing";
            note(wal::END_NAME, what.to_string());
        }
        if let Some(lost) = recovery.lost_end {
            let what = format!(
                "it ends at byte {}, and had been synced up to byte {}: acknowledged writes are \
                 missing",
                lost.offset, lost.end
            );
            note(&wal::segment_name(lost.segment), what);
        }
    }

    /// Makes the names durable that were read: whoever wrote them may have been killed before it
    /// did, and what is done from now on counts on them.
    ///
    /// # Errors
    /// On I/O errors.
    pub fn sync_names(&self, found: &Found) -> Result<()> {
        let root = self.ground.dir.join(PARTITIONS_DIR);
        let partitions = found.partitions.keys().map(|period| root.join(period.name()));
        let folders = partitions.flat_map(|dir| [dir.join(PARTS_DIR), dir.join(INDEX_DIR), dir]);
        for folder in folders.chain([root.clone(), self.ground.dir.clone()]) {
            if self.ground.vfs.exists(&folder)? {
                self.ground.vfs.sync_dir(&folder)?;
            }
        }
        Ok(())
    }

    fn set_side_files_aside(&self, names: &[&'static str]) -> Result<()> {
        for name in names {
            let aside = self.ground.dir.join(format!("{name}{CORRUPT_SUFFIX}"));
            self.ground.vfs.rename(&self.ground.dir.join(name), &aside)?;
            self.ground.vfs.sync_dir(&self.ground.dir)?;
        }
        Ok(())
    }

    /// Writes the files of the table of metadata again if one of them was damaged or behind the
    /// other. On a full disk the next flush does.
    fn rewrite_metadata(&self, metadata: &MetadataTable) -> Result<()> {
        if !metadata.needs_rewrite() {
            return Ok(());
        }
        match metadata.write(self.ground.vfs.as_ref(), &self.ground.dir) {
            Err(Error::Io(error)) if error.is_disk_full() => Ok(()),
            written => written,
        }
    }

    /// Writes the length down where its file is gone or was set aside. Months need none, and an
    /// old directory is to open on a full disk, too.
    fn keep_length(&self) -> Result<()> {
        let vfs = self.ground.vfs.as_ref();
        let is_told = self.ground.length == partition_length::DEFAULT
            || vfs.exists(&self.ground.dir.join(partition_length::FILE_NAME))?;
        if is_told {
            Ok(())
        } else {
            let said = LengthFile { length: self.ground.length, needs: BTreeSet::new() };
            partition_length::write(vfs, &self.ground.dir, &said)
        }
    }

    /// Removes leftovers; returns the files that nobody knows.
    fn clear(&self, partitions: &BTreeMap<Period, Arc<Partition>>) -> Result<Vec<PathBuf>> {
        let vfs = self.ground.vfs.as_ref();
        let mut orphans = Vec::new();
        for partition in partitions.values() {
            match partition.write().disk.clear_strays(vfs, &partition.dir) {
                Ok(found) => orphans.extend(found),
                // That nothing was looked at costs room, no more.
                Err(Error::Io(error)) if error.operation == "list" && !error.is_passing() => {
                    let file = self.ground.damage.relative(&error.path);
                    let (period, what) = (partition.period, error.to_string());
                    self.note(Damage::of_partition(period, DamagePlace::Part, file, what));
                }
                Err(error) => return Err(error),
            }
        }
        strays::clear_dropped(vfs, &self.ground.dir.join(PARTITIONS_DIR))?;
        let snapshots = self.ground.dir.join(SNAPSHOTS_DIR);
        if vfs.exists(&snapshots)? {
            strays::clear_directories(vfs, &snapshots, snapshot::is_leftover)?;
        }
        Ok(orphans)
    }
}

/// The error of a manifest that is an older copy.
fn stale_manifest(dir: &Path) -> Error {
    let what = "it is an older copy: MANIFEST of the data directory names a newer one".to_string();
    Error::Corrupt { file: dir.join(PARTITION_MANIFEST), offset: 0, what }
}

impl Found {
    /// Declares the consumers of the log whose records these are.
    pub fn declare<'a>(&'a mut self, recovery: Recovery<'a>, consumers: &mut Consumers<'a>) {
        // Without any segment left, new ones must come after all that anybody has seen.
        let newest = self.partitions.values().map(|p| p.read().disk.manifest().wal_from);
        let newest = newest.chain(self.damaged.values().map(|damaged| damaged.wal_from)).max();
        let newest =
            newest.unwrap_or(0).max(self.dropped.newest()).max(recovery.ground.root.log_next());
        let exemplars_from = self.exemplars.wal_from();
        let (mut replay, metadata, exemplars) = self.replay(recovery);
        consumers.declare(Consumer {
            name: SERIES,
            kinds: &[KIND_ROWS],
            // Each partition knows for itself what it has.
            replay_from: 0,
            next_segment_min: newest,
            take: Box::new(move |record| replay.rows(record)),
        });
        consumers.declare(Consumer {
            name: METADATA,
            kinds: &[KIND_METADATA],
            replay_from: 0,
            next_segment_min: 0,
            take: Box::new(|record| Ok(metadata.replay(record.segment, record.payload)?)),
        });
        consumers.declare(Consumer {
            name: EXEMPLARS,
            kinds: &[KIND_EXEMPLARS],
            replay_from: exemplars_from,
            next_segment_min: exemplars_from,
            take: Box::new(|record| Ok(exemplars.replay(record.segment, record.payload)?)),
        });
    }

    /// Who takes the records of rows, and those who take the others.
    fn replay<'a>(
        &'a mut self,
        recovery: Recovery<'a>,
    ) -> (Replay<'a>, &'a MetadataTable, &'a ExemplarQueue) {
        let replay = Replay {
            recovery,
            partitions: &mut self.partitions,
            damaged: &mut self.damaged,
            dropped: &self.dropped,
            incomplete: &self.incomplete,
            samples: &mut self.samples,
            values: Vec::new(),
        };
        (replay, &self.metadata, &self.exemplars)
    }
}

/// Takes records of rows.
struct Replay<'a> {
    recovery: Recovery<'a>,
    partitions: &'a mut BTreeMap<Period, Arc<Partition>>,
    damaged: &'a mut BTreeMap<Period, DamagedPartition>,
    dropped: &'a DroppedPartitions,
    incomplete: &'a BTreeSet<Period>,
    samples: &'a mut u64,
    values: Vec<f64>,
}

impl Replay<'_> {
    /// Seals what was being sealed.
    fn seal(&mut self) {
        let all: Vec<Arc<Partition>> = self.partitions.values().cloned().collect();
        for partition in all {
            let sealed = partition.seal_taken();
            partition.note_head_size(&partition.read());
            if let Err(error) = sealed {
                self.damage(partition.period, u64::MAX, &error.to_string());
            }
        }
    }

    fn rows(&mut self, record: &RecordRef<'_>) -> std::result::Result<(), ReplayError> {
        let Some(rows) = RowsRecord::parse(record.payload)? else { return Ok(()) };
        let period = rows.period;
        self.check_length(period)?;
        if record.segment < self.dropped.from(period) {
            return Ok(());
        }
        if let Some(damaged) = self.damaged.get_mut(&period) {
            damaged.note_record(record.segment);
            return Ok(());
        }
        if let Err(error) = self.rows_of(record.segment, &rows) {
            if is_passing(&error) {
                return Err(error);
            }
            let what = format!("log segment {} at byte {}: {error}", record.segment, record.offset);
            self.damage(period, record.segment, &what);
        }
        Ok(())
    }

    /// Where neither a file nor a name told the length, the log does.
    fn check_length(&self, period: Period) -> std::result::Result<(), ReplayError> {
        let (has, taken) = (period.length(), self.recovery.ground.length);
        match has == taken {
            true => Ok(()),
            false => Err(format!(
                "it has rows of {}, a partition of a {has}, and the others are of a {taken} each; \
                 if there are no others, open it with --partition {has}",
                period.name()
            )
            .into()),
        }
    }

    fn rows_of(
        &mut self,
        segment: u64,
        rows: &RowsRecord<'_>,
    ) -> std::result::Result<(), ReplayError> {
        let partition = self.partition(rows.period)?;
        let mut state = partition.write();
        if segment < state.disk.manifest().wal_from {
            return Ok(());
        }
        state.unflushed.note_replayed(segment, self.recovery.ground.vfs.now());
        let unknown = match self.incomplete.contains(&rows.period) {
            true => {
                state.series.index.replay_what_applies(rows.registrations)?;
                UnknownEntity::EndsRecord
            }
            false => {
                state.series.index.replay(rows.registrations)?;
                UnknownEntity::IsError
            }
        };
        let entities = state.series.entities_end();
        state.head.arena.reserve_entities(entities);
        *self.samples += replay_rows(&mut state, rows, unknown, &mut self.values)?;
        if SEAL_SIZE <= state.head.arena.rows_size() {
            state.head.take_arena();
            drop(state);
            partition.seal_taken()?;
            partition.renew_arena(self.recovery.ground.config.arena_words_max)?;
        }
        Ok(())
    }

    /// Takes a partition out whose records cannot be replayed. What was replayed of it goes: it is
    /// in the log, which keeps it.
    fn damage(&mut self, period: Period, segment: u64, what: &str) {
        let partition = self.partitions.remove(&period);
        let (wal_from, dirty_from) = partition.map_or((0, None), |partition| {
            let state = partition.read();
            (state.disk.manifest().wal_from, state.log_needed_from())
        });
        let log_from = Some(dirty_from.unwrap_or(segment));
        let damaged = DamagedPartition { period, reason: what.to_string(), wal_from, log_from };
        self.recovery.note(damaged.damage());
        self.damaged.insert(period, damaged);
    }

    fn partition(&mut self, period: Period) -> Result<Arc<Partition>> {
        if let Some(partition) = self.partitions.get(&period) {
            return Ok(Arc::clone(partition));
        }
        let Ground { vfs, damage, .. } = self.recovery.ground;
        let (dir, from) = (self.recovery.ground.partition_dir(period), self.dropped.from(period));
        let partition = Arc::new(Partition::open(vfs, dir, period, from, damage)?);
        self.partitions.insert(period, Arc::clone(&partition));
        Ok(partition)
    }
}

impl DamagedPartition {
    /// Keeps a record of the log, unless the partition's parts have it.
    fn note_record(&mut self, segment: u64) {
        if self.wal_from <= segment {
            self.log_from.get_or_insert(segment);
        }
    }
}

/// Whether a partition could not be opened for want of something that the system lacks just now.
fn is_passing(error: &ReplayError) -> bool {
    error.downcast_ref::<Error>().is_some_and(Error::is_passing)
}

/// Meaning of a row in the log whose entity the index does not know. A row does not say how long it
/// is, so nothing of the record can be read behind it, and rows of histograms before it may lack others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum UnknownEntity {
    /// The partition is damaged.
    IsError,
    /// The partition has lost its label set, and with it the rest of the record.
    EndsRecord,
}

fn replay_rows(
    state: &mut PartitionState,
    record: &RowsRecord<'_>,
    unknown: UnknownEntity,
    values: &mut Vec<f64>,
) -> std::result::Result<u64, ReplayError> {
    let is_cut =
        unknown == UnknownEntity::EndsRecord && !has_known_entities(state, record, values)?;
    let mut rows = record.rows();
    let mut samples = 0;
    let mut block: Option<index::BlockRef> = None;
    while let Some(head) = rows.head()? {
        let known = block.filter(|b| head.entity.wrapping_sub(b.entity_start) < b.capacity);
        let current = match known {
            Some(block) => block,
            None => match state.series.index.block_of(head.entity)? {
                Some(block) => block,
                None if unknown == UnknownEntity::EndsRecord => break,
                None => return Err("a row of an unknown entity".into()),
            },
        };
        block = Some(current);
        match head.column {
            None => {
                let timestamp = rows.values(current.columns as usize, values)?;
                if is_cut && values.iter().any(|value| may_be_marker(*value)) {
                    continue;
                }
                state.head.arena.push(head.entity, timestamp, values);
                samples += values.len() as u64;
            }
            Some(column) if column < current.columns => {
                let (timestamp, column) = (rows.values(1, values)?, to_u16(column));
                if is_cut && may_be_marker(values[0]) {
                    continue;
                }
                state.head.arena.push_single(head.entity, column, timestamp, values[0]);
                samples += 1;
            }
            Some(_) => return Err("a value of a column that the entity does not have".into()),
        }
    }
    Ok(samples)
}

/// Whether the index knows the entities of all rows of a record.
fn has_known_entities(
    state: &PartitionState,
    record: &RowsRecord<'_>,
    values: &mut Vec<f64>,
) -> std::result::Result<bool, ReplayError> {
    let mut rows = record.rows();
    while let Some(head) = rows.head()? {
        let Some(block) = state.series.index.block_of(head.entity)? else { return Ok(false) };
        rows.values(if head.column.is_some() { 1 } else { block.columns as usize }, values)?;
    }
    Ok(true)
}
