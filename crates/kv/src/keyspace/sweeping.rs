//! The names of all keys of a database, a piece at a time, so that others have the keys between two
//! pieces and while records are read from disk.
//!
//! ```text
//! locked: the entries of one table of the index ─► unlocked: read the names of cold ones ─► next table
//! ```
//! Which table a key belongs to is decided by its hash: one that is there all the while is found once,
//! whatever comes and goes meanwhile.

use super::Keyspace;
use super::databases::check_corrupt;
use crate::cold::Reading;
use crate::error::CommandError;
use crate::index::{Index, Place};

/// What there is in one piece of a database.
#[derive(Default)]
pub struct Piece {
    /// When it was looked at, in milliseconds since the epoch.
    now_ms: i64,
    names: Vec<Box<[u8]>>,
    /// Records whose names are to be read.
    records: Vec<Reading>,
    /// Keys whose records are corrupt.
    corrupt: usize,
}

impl Keyspace {
    /// How many pieces a database has.
    pub fn piece_count(&self, db: u8) -> usize {
        self.dbs.get(usize::from(db)).map_or(0, Index::table_count)
    }

    /// One of them: keys in memory that are wanted, and where the others are to be read.
    ///
    /// # Errors
    /// When the disk does not give a record.
    pub fn piece(
        &mut self,
        db: u8,
        number: usize,
        is_wanted: impl Fn(&[u8]) -> bool,
    ) -> Result<Piece, CommandError> {
        let mut piece = Piece { now_ms: self.now_ms, ..Piece::default() };
        for place in self.places(db, number) {
            let reading = match place {
                Place::Cold(address) => self.cold.reading(address),
                Place::Hot(_) => None,
            };
            match reading {
                Some(reading) => piece.records.push(reading),
                None => self.add_name(place, &mut piece, &is_wanted)?,
            }
        }
        Ok(piece)
    }

    /// The same with all names in it, except those of corrupt records: see `Piece::check`.
    ///
    /// # Errors
    /// When the disk does not give a record.
    pub fn whole_piece(
        &mut self,
        db: u8,
        number: usize,
        is_wanted: impl Fn(&[u8]) -> bool,
    ) -> Result<Piece, CommandError> {
        let mut piece = Piece::default();
        for place in self.places(db, number) {
            self.add_name(place, &mut piece, &is_wanted)?;
        }
        Ok(piece)
    }

    fn places(&self, db: u8, number: usize) -> Vec<Place> {
        let index = self.dbs.get(usize::from(db));
        index.map_or(Vec::new(), |index| index.table(number).map(|(_, place)| place).collect())
    }

    fn add_name(
        &mut self,
        place: Place,
        piece: &mut Piece,
        is_wanted: &impl Fn(&[u8]) -> bool,
    ) -> Result<(), CommandError> {
        let is_whole = self.look(place, &mut |key, _| {
            if is_wanted(key) {
                piece.names.push(key.into());
            }
        })?;
        piece.corrupt += usize::from(!is_whole);
        Ok(())
    }
}

impl Piece {
    /// Reads the names that are on disk, while others have the keys. Returns whether all could be read;
    /// [`Keyspace::whole_piece`] says what is wrong.
    pub fn read(&mut self, is_wanted: impl Fn(&[u8]) -> bool) -> bool {
        for reading in self.records.drain(..) {
            let Some((name, expire_ms)) = reading.read_name() else { return false };
            if self.now_ms < expire_ms && is_wanted(&name) {
                self.names.push(name);
            }
        }
        true
    }

    /// Checks that no name is missing.
    ///
    /// # Errors
    /// When records are corrupt.
    pub fn check(&self) -> Result<(), CommandError> {
        check_corrupt(self.corrupt)
    }

    /// The names that were wanted.
    pub fn names(&self) -> impl Iterator<Item = &[u8]> {
        self.names.iter().map(|name| &**name)
    }
}
