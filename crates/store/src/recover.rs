//! What opening does after a crash or a clean stop, in order: open the partitions (their manifests
//! say what is on disk), then replay the log's records that no part holds yet.

use crate::counters::Counters;
use crate::exemplars::{self, ExemplarBook};
use crate::log_record::{KIND_EXEMPLARS, KIND_METADATA, KIND_ROWS, RowsRecord, decode_metadata};
use crate::metadata::MetadataBook;
use crate::partition::{CORRUPT_SUFFIX, Partition, SEAL_SIZE, State};
use crate::span::Month;
use crate::store::{PARTITIONS_DIR, WAL_DIR};
use crate::{Error, Result, StoreConfig};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use vfs::Vfs;
use wal::{RecordRef, ReplayError, Wal, WalConfig};

/// What recovery found.
pub struct Recovered {
    /// The partitions, with unflushed rows in their heads.
    pub partitions: BTreeMap<Month, Arc<Partition>>,
    /// The log, ready for more.
    pub wal: Wal,
}

/// What belongs to no partition; read from its files, without what the log has.
#[derive(Clone, Copy)]
pub struct Books<'a> {
    /// What metrics are.
    pub metadata: &'a MetadataBook,
    /// Exemplars.
    pub exemplars: &'a ExemplarBook,
}

/// Reads the book of exemplars; a corrupt one is set aside and counted as a part is: samples are
/// worth more.
pub fn read_exemplars(
    vfs: &dyn Vfs,
    dir: &Path,
    config: &StoreConfig,
    counters: &Counters,
) -> Result<ExemplarBook> {
    match ExemplarBook::read(vfs, dir, config.exemplars_max) {
        Err(Error::Corrupt { file, .. }) => {
            let aside = dir.join(format!("{}{CORRUPT_SUFFIX}", exemplars::FILE_NAME));
            vfs.rename(&file, &aside)?;
            vfs.sync_dir(dir)?;
            counters.corrupt_parts.fetch_add(1, Ordering::Relaxed);
            Ok(ExemplarBook::new(config.exemplars_max))
        }
        read => read,
    }
}

/// Opens partitions and log.
pub fn recover(
    vfs: &Arc<dyn Vfs>,
    dir: &Path,
    config: &StoreConfig,
    books: Books<'_>,
    counters: &Counters,
) -> Result<Recovered> {
    let mut set_aside = Vec::new();
    let partitions = open_partitions(vfs, dir, &mut set_aside)?;
    counters.corrupt_parts.fetch_add(set_aside.len() as u64, Ordering::Relaxed);
    let wal_dir = dir.join(WAL_DIR);
    vfs.create_dir_all(&wal_dir)?;
    // Without any segment left, new ones must come after all that the manifests have seen.
    let newest = partitions.values().map(|p| p.read().manifest.wal_from).max().unwrap_or(0);
    let newest = newest.max(books.exemplars.wal_from());
    let from = wal::first_segment(vfs.as_ref(), &wal_dir)?.unwrap_or(newest);
    let wal_config =
        WalConfig { committer: config.committer, next_segment_min: newest, ..WalConfig::default() };
    let mut replay = Replay { vfs, dir, config, partitions, books, samples: 0, values: Vec::new() };
    let wal = Wal::open(Arc::clone(vfs), &wal_dir, wal_config, from, &mut |record| {
        replay.record(&record)
    })?;
    counters.samples_replayed.fetch_add(replay.samples, Ordering::Relaxed);
    let partitions = replay.partitions;
    for partition in partitions.values() {
        partition.seal_taken()?;
        partition.note_head_size(&partition.read());
    }
    Ok(Recovered { partitions, wal })
}

/// Opens every directory that is named like a month.
pub fn open_partitions(
    vfs: &Arc<dyn Vfs>,
    dir: &Path,
    set_aside: &mut Vec<PathBuf>,
) -> Result<BTreeMap<Month, Arc<Partition>>> {
    let mut partitions = BTreeMap::new();
    let root = dir.join(PARTITIONS_DIR);
    for name in vfs.list(&root)? {
        if let Some(month) = Month::parse(&name) {
            let partition = Partition::open(vfs, root.join(name), month, set_aside)?;
            partitions.insert(month, Arc::new(partition));
        }
    }
    Ok(partitions)
}

struct Replay<'a> {
    vfs: &'a Arc<dyn Vfs>,
    dir: &'a Path,
    config: &'a StoreConfig,
    partitions: BTreeMap<Month, Arc<Partition>>,
    books: Books<'a>,
    samples: u64,
    values: Vec<f64>,
}

impl Replay<'_> {
    fn record(&mut self, record: &RecordRef<'_>) -> std::result::Result<(), ReplayError> {
        match record.kind {
            KIND_ROWS => self.rows(record),
            KIND_METADATA => {
                self.books.metadata.put(&decode_metadata(record.payload)?);
                Ok(())
            }
            KIND_EXEMPLARS => Ok(self.books.exemplars.replay(record.segment, record.payload)?),
            kind => Err(format!("a record of unknown kind {kind}").into()),
        }
    }

    fn rows(&mut self, record: &RecordRef<'_>) -> std::result::Result<(), ReplayError> {
        let rows = RowsRecord::parse(record.payload)?;
        let partition = self.partition(rows.month)?;
        let mut state = partition.write();
        if record.segment < state.manifest.wal_from {
            return Ok(());
        }
        state.dirty_from.get_or_insert(record.segment);
        if state.dirty_since_ns == 0 {
            state.dirty_since_ns = self.vfs.now();
        }
        state.index.replay(rows.registrations)?;
        let next_entity = state.index.memory().next_entity() as usize;
        state.arena.reserve_entities(next_entity);
        self.samples += replay_rows(&mut state, &rows, &mut self.values)?;
        if SEAL_SIZE <= state.arena.rows_size() {
            state.take_arena();
            drop(state);
            partition.seal_taken()?;
            partition.renew_arena(self.config.arena_words_max)?;
        }
        Ok(())
    }

    fn partition(&mut self, month: Month) -> Result<Arc<Partition>> {
        if let Some(partition) = self.partitions.get(&month) {
            return Ok(Arc::clone(partition));
        }
        let dir = self.dir.join(PARTITIONS_DIR).join(month.name());
        let partition = Arc::new(Partition::open(self.vfs, dir, month, &mut Vec::new())?);
        self.partitions.insert(month, Arc::clone(&partition));
        Ok(partition)
    }
}

fn replay_rows(
    state: &mut State,
    record: &RowsRecord<'_>,
    values: &mut Vec<f64>,
) -> std::result::Result<u64, ReplayError> {
    let mut rows = record.rows();
    let mut samples = 0;
    let mut block: Option<index::BlockRef> = None;
    while let Some(head) = rows.head()? {
        let known = block.filter(|b| head.entity.wrapping_sub(b.entity_start) < b.capacity);
        let current = match known {
            Some(block) => block,
            None => state.index.block_of(head.entity)?.ok_or("a row of an unknown entity")?,
        };
        block = Some(current);
        match head.column {
            None => {
                let timestamp = rows.values(current.columns as usize, values)?;
                state.arena.push(head.entity, timestamp, values);
                samples += values.len() as u64;
            }
            Some(column) if column < current.columns => {
                let timestamp = rows.values(1, values)?;
                state.arena.push_single(head.entity, column as u16, timestamp, values[0]);
                samples += 1;
            }
            Some(_) => return Err("a value of a column that the entity does not have".into()),
        }
    }
    Ok(samples)
}
