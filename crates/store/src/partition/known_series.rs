//! The series that a partition knows: label sets to ordinals and back, and raw keys to entities.
//!
//! - A key of the map leads to entities of the index. It may go at any time, and must be
//!   before its entity leaves the index: then a row of it is looked up again.
//! - A place in `pieces` is never given to another key while the map may lead to it.

use crate::base::narrow::to_u32;
use crate::partition::head::arena::COLUMNS_MAX;
use crate::partition::histograms::names;
use crate::partition::new_series::NewEntities;
use crate::partition::series_map::{SeriesMap, Target};
use index::{EntityId, Index, NewEntity};
use roaring::RoaringBitmap;

/// Where some values of a row go, when the row is not exactly one entity.
pub(crate) enum Piece {
    /// Values of the row, in the order of the entity's columns.
    Entity {
        /// The entity.
        entity: EntityId,
        /// Indexes into the row's values.
        value_idx: Box<[u16]>,
    },
    /// One value, to one column of an entity.
    Single {
        /// The entity.
        entity: EntityId,
        /// The column.
        column: u16,
        /// Index into the row's values.
        value_idx: u16,
    },
}

impl Piece {
    fn entity(&self) -> EntityId {
        match self {
            Piece::Entity { entity, .. } | Piece::Single { entity, .. } => *entity,
        }
    }
}

/// The series of a partition.
pub(crate) struct KnownSeries {
    /// Label sets to ordinals and back.
    pub index: Index,
    /// Raw keys to entities.
    pub map: SeriesMap,
    /// What [`Target::Pieces`] points to.
    pieces: Vec<Box<[Piece]>>,
    /// Who was registered in the last hours.
    pub new: NewEntities,
    /// Unflushed entities when their size was last measured, and that size in bytes.
    unflushed_size: (u64, usize),
}

impl KnownSeries {
    /// What an index knows; no key yet.
    pub fn new(index: Index) -> KnownSeries {
        KnownSeries {
            index,
            map: SeriesMap::new(),
            pieces: Vec::new(),
            new: NewEntities::default(),
            unflushed_size: (0, 0),
        }
    }

    /// One more than the last entity that was registered.
    pub fn entities_end(&self) -> usize {
        self.index.memory().next_entity() as usize
    }

    /// Keeps where the values of a row go.
    pub fn add_pieces(&mut self, pieces: Box<[Piece]>) -> Target {
        assert!(!pieces.is_empty(), "a row goes somewhere");
        self.pieces.push(pieces);
        Target::Pieces(to_u32(self.pieces.len() - 1))
    }

    /// Takes out where the values of a row go; [`KnownSeries::put_pieces`] puts it back.
    #[inline]
    pub fn take_pieces(&mut self, idx: u32) -> Box<[Piece]> {
        std::mem::take(&mut self.pieces[idx as usize])
    }

    /// Puts back what was taken from this place.
    #[inline]
    pub fn put_pieces(&mut self, idx: u32, pieces: Box<[Piece]>) {
        debug_assert!(self.pieces[idx as usize].is_empty(), "they were taken");
        debug_assert!(!pieces.is_empty(), "a row goes somewhere");
        self.pieces[idx as usize] = pieces;
    }

    /// Where the rows of an entity of one list of columns go, if it is known: to itself, or, of
    /// one metric, to a column of another.
    pub fn find_whole(&mut self, entity: &NewEntity<'_>) -> index::Result<Option<Target>> {
        if let Some(entity) = self.index.find_entity(entity)? {
            return Ok(Some(Target::Entity(entity)));
        }
        let Some((entity, column)) = self.index.find_column(entity)? else { return Ok(None) };
        let single = Piece::Single { entity, column, value_idx: 0 };
        Ok(Some(self.add_pieces([single].into())))
    }

    /// Where each metric's series of an unknown entity is, if it is known: alone, or as one column
    /// of another entity.
    pub fn find_each(
        &self,
        entity: &NewEntity<'_>,
        names: &[&str],
    ) -> index::Result<Vec<Option<(EntityId, u16)>>> {
        let find = |name: &&str| {
            let one = [*name];
            let one = entity.with_names(&one);
            // Of an entity of one metric it is known already that it is not there alone.
            let alone = if names.len() == 1 { None } else { self.index.find_entity(&one)? };
            match alone {
                Some(alone) => Ok(Some((alone, 0))),
                None => self.index.find_column(&one),
            }
        };
        names.iter().map(find).collect()
    }

    /// Series that exist already: whole entities where all columns are among them, else singles.
    pub fn pieces_of_known(&self, known: &[Option<(EntityId, u16)>]) -> index::Result<Vec<Piece>> {
        assert!(known.len() <= COLUMNS_MAX, "a place for each column");
        let mut by_column: Vec<(EntityId, u16, u16)> = known
            .iter()
            .zip(0u16..)
            .filter_map(|(found, idx)| found.map(|(entity, column)| (entity, column, idx)))
            .collect();
        by_column.sort_unstable();
        let mut pieces = Vec::new();
        for same in by_column.chunk_by(|a, b| a.0 == b.0) {
            let entity = same[0].0;
            let columns = self.index.block_of(entity)?.map_or(0, |block| block.columns);
            if same.len() == columns as usize {
                let value_idx = same.iter().map(|(_, _, idx)| *idx).collect();
                pieces.push(Piece::Entity { entity, value_idx });
                continue;
            }
            pieces.extend(same.iter().map(|&(entity, column, value_idx)| Piece::Single {
                entity,
                column,
                value_idx,
            }));
        }
        Ok(pieces)
    }

    /// Whether a series is in the index: alone, or as one column of several.
    pub fn has(&self, name: &str, tags: &[(&str, &str)]) -> index::Result<bool> {
        let names = [name];
        let series = NewEntity::new(&names, tags);
        Ok(self.index.find_entity(&series)?.is_some() || self.index.find_column(&series)?.is_some())
    }

    /// The series that people see: those that hold histograms are not among them.
    pub fn visible(&self) -> u64 {
        // A rotten index is for those to report who read it on purpose.
        let hidden = self.index.series_with_tag(names::LABEL).unwrap_or(0);
        self.index.series_count().saturating_sub(hidden)
    }

    /// Frees the keys of a partition that nobody has written to since the last flush.
    pub fn free_keys(&mut self) {
        if !self.map.is_empty() {
            self.map = SeriesMap::new();
            self.pieces = Vec::new();
        }
    }

    /// Removes the keys of entities that leave the index.
    pub fn remove_keys(&mut self, entities: &RoaringBitmap) {
        let pieces = &mut self.pieces;
        let is_dead = |piece: &Piece| entities.contains(piece.entity());
        self.map.retain(|target| match target {
            Target::Entity(entity) => !entities.contains(entity),
            Target::Pieces(idx) => !pieces[idx as usize].iter().any(is_dead),
        });
        // Their places stay, for the others'.
        pieces
            .iter_mut()
            .filter(|list| list.iter().any(is_dead))
            .for_each(|list| *list = [].into());
    }

    /// Bytes of label sets that no segment holds yet, as they were last measured.
    pub fn unflushed_size(&self) -> usize {
        self.unflushed_size.1
    }

    /// Measures the unflushed label sets again once they have grown noticeably; measuring looks at
    /// every label name, which is too much for every batch.
    pub fn note_unflushed_size(&mut self) {
        let count = self.index.unfrozen_entity_count();
        let (known, _) = self.unflushed_size;
        if count < known || known + known / 16 + 256 < count {
            self.unflushed_size = (count, self.index.memory_size());
        }
    }

    /// Bytes of keys, and of label sets that no segment holds yet.
    pub fn memory_size(&self) -> usize {
        self.map.size() + self.index.memory_size()
    }
}
