//! Tables of different moments, and how what the log still has brings them to one: for repairs.
//!
//! ```text
//! files   a, shows 14      b, shows 4                    of each table the newest one that is whole
//! log     5 of a    6 of b    7 of a and b    ...        a has 5 and 7 already, b takes 6 and 7
//!           └─► one moment: names come last, for a name may have gone from table to table
//! ```
//!
//! A table takes what records say of it from its own last one on. Until all are taken each is in a set of
//! its own, where no name is in its way. What cannot be taken is named, unless its tables are dropped
//! later on: then nobody misses it.

use crate::error::{Error, Result};
use crate::limits::NAME_SIZE_MAX;
use crate::record::{self, Effect, RecordError};
use crate::set::{Origin, TableSet};
use crate::table::{RowId, Table};
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::Arc;
use wal::RecordRef;

/// Tables that are not of one moment yet.
#[derive(Default)]
pub(crate) struct Pieces {
    tables: BTreeMap<u64, Piece>,
    /// The last record that a file shows.
    newest: u64,
    /// The last record that was met; what is not after it was taken. None as long as nobody knows where
    /// the log has to begin.
    last: Option<u64>,
    next_table: u64,
    losses: Vec<Loss>,
    /// What could not be taken of tables that are gone.
    moot: Vec<String>,
}

struct Piece {
    /// The last record that its file shows, or the one that made it.
    shown: u64,
    /// The last record that changed it, as far as that is known.
    changed: u64,
    /// The table alone; nothing once it is dropped.
    set: TableSet,
    /// Whether rows of its file are lost.
    lacks_rows: bool,
}

struct Loss {
    what: String,
    /// The tables that miss it; none if that is not known.
    tables: BTreeSet<u64>,
}

/// Tables of one moment.
pub(crate) struct Joined {
    pub set: TableSet,
    pub next_table: u64,
    /// What is lost, in words.
    pub losses: Vec<String>,
    /// What was left out and nobody misses, in words.
    pub moot: Vec<String>,
}

impl Pieces {
    /// Where a manifest says what its files show, and which number the next table has.
    pub fn of_checkpoint(seq: u64, next_table: u64) -> Pieces {
        Pieces { newest: seq, last: Some(seq), next_table, ..Pieces::default() }
    }

    /// Adds a table of a file, which shows it as it is after a record.
    pub fn add(&mut self, seq: u64, table: Table) {
        self.add_as(seq, table, false);
    }

    /// As above, for a table that lost rows.
    pub fn add_incomplete(&mut self, seq: u64, table: Table) {
        self.add_as(seq, table, true);
    }

    fn add_as(&mut self, seq: u64, table: Table, lacks_rows: bool) {
        let id = table.id();
        self.newest = self.newest.max(seq);
        self.next_table = self.next_table.max(id.saturating_add(1));
        let mut set = TableSet::default();
        set.put_name(table.name(), Some(id));
        set.put(id, Some(Arc::new(table)));
        self.tables.insert(id, Piece { shown: seq, changed: seq, set, lacks_rows });
    }

    /// Takes of a record what its tables do not show, if that can be: all of it, or nothing.
    ///
    /// # Errors
    /// [`Error::NewerRecord`]: whoever wrote it can take it.
    pub fn take(&mut self, log_dir: &Path, record: &RecordRef<'_>) -> Result<()> {
        let at = format!("segment {} of the log, byte {}", record.segment, record.offset);
        let seq = match record::number(record.payload) {
            Ok(seq) => seq,
            Err(error) => {
                self.lose(BTreeSet::new(), format!("a statement ({at}): {error}"));
                return Ok(());
            }
        };
        if self.last.is_some_and(|last| seq <= last) {
            return Ok(());
        }
        self.note_gap(seq, &at);
        self.last = Some(seq);
        match record::decode(record.payload) {
            Ok((_, effects)) => self.take_effects(seq, effects, &at),
            Err(error @ RecordError::Newer { .. }) => {
                let path = log_dir.join(wal::segment_name(record.segment));
                let what = error.to_string();
                return Err(Error::NewerRecord { path, offset: record.offset, what });
            }
            Err(_) if self.all_show(seq) => {}
            Err(error) => self.lose(BTreeSet::new(), format!("statement {seq} ({at}): {error}")),
        }
        Ok(())
    }

    fn take_effects(&mut self, seq: u64, mut effects: Vec<Effect<'_>>, at: &str) {
        let end = effects.iter().map(|effect| effect.table().saturating_add(1)).max();
        self.next_table = self.next_table.max(end.unwrap_or(0));
        effects.retain(|effect| !self.shows(effect.table(), seq));
        let tables: BTreeSet<u64> = effects.iter().map(Effect::table).collect();
        let dropped: Vec<u64> = effects.iter().filter_map(Effect::dropped).collect();
        match self.changed(effects) {
            Ok(sets) => {
                for (id, set) in sets {
                    let before = self.tables.get(&id);
                    let shown = before.map_or(seq, |piece| piece.shown);
                    let lacks_rows = before.is_some_and(|piece| piece.lacks_rows);
                    self.tables.insert(id, Piece { shown, changed: seq, set, lacks_rows });
                }
            }
            Err(error) => self.lose(tables, format!("statement {seq} ({at}): {error}")),
        }
        for id in dropped {
            self.forget(id);
        }
    }

    /// What effects make of the tables that they are on.
    fn changed(&self, effects: Vec<Effect<'_>>) -> Result<BTreeMap<u64, TableSet>> {
        let mut sets = BTreeMap::new();
        for effect in effects {
            let id = effect.table();
            let before = || self.tables.get(&id).map(|piece| piece.set.clone()).unwrap_or_default();
            let set = sets.entry(id).or_insert_with(before);
            // What is to go, and is not there, is as it should be.
            let is_gone = effect.dropped().is_some() && set.tables.len() == 0;
            let lacks_rows = self.tables.get(&id).is_some_and(|piece| piece.lacks_rows);
            match (is_gone, lacks_rows) {
                (true, _) => {}
                (false, false) => set.apply(effect, Origin::Log)?,
                (false, true) => apply_incomplete(set, effect)?,
            }
        }
        Ok(sets)
    }

    /// Whether a table's file shows a record.
    fn shows(&self, id: u64, seq: u64) -> bool {
        self.tables.get(&id).is_some_and(|piece| seq <= piece.shown)
    }

    fn all_show(&self, seq: u64) -> bool {
        !self.tables.is_empty() && self.tables.values().all(|piece| seq <= piece.shown)
    }

    /// Names the records that are missing before one.
    fn note_gap(&mut self, next: u64, at: &str) {
        let first = self.last.unwrap_or(self.newest).saturating_add(1);
        if first < next && !self.all_show(next - 1) {
            let what = format!("statements {first} to {}, before {at}", next - 1);
            self.lose(BTreeSet::new(), what);
        }
    }

    fn lose(&mut self, tables: BTreeSet<u64>, what: String) {
        self.losses.push(Loss { what, tables });
    }

    /// A table that is gone misses nothing.
    fn forget(&mut self, id: u64) {
        if self.tables.get(&id).is_some_and(|piece| 0 < piece.set.tables.len()) {
            return;
        }
        for mut loss in std::mem::take(&mut self.losses) {
            match loss.tables.remove(&id) && loss.tables.is_empty() {
                true => self.moot.push(loss.what),
                false => self.losses.push(loss),
            }
        }
    }

    /// All tables, once there are no more records.
    pub fn join(mut self) -> Joined {
        // A checkpoint that was cut short shows more than the log has: its end is lost.
        self.note_gap(self.newest.saturating_add(1), "the end of the log");
        let mut pieces: Vec<(u64, Arc<Table>)> = Vec::new();
        for piece in self.tables.values() {
            pieces.extend(piece.set.tables.iter().map(|(_, table)| (piece.changed, table.clone())));
        }
        // A name stays with the table that was changed last.
        pieces.sort_by_key(|(changed, table)| std::cmp::Reverse((*changed, table.id())));
        let seq = self.newest.max(self.last.unwrap_or(0));
        let mut set = TableSet { seq, ..TableSet::default() };
        let (named, others): (Vec<_>, Vec<_>) = pieces
            .into_iter()
            .map(|(_, table)| table)
            .partition(|table| take_name(&mut set, table.name(), table.id()));
        for table in others {
            let name = free_name(&mut set, &table);
            let what = format!("table number {} is {name:?} now", table.id());
            let why = format!("another is called {:?}, too", table.name());
            self.lose(BTreeSet::new(), format!("{what}: {why}"));
            set.put(table.id(), Some(Arc::new(table.renamed(&name))));
        }
        for table in named {
            set.put(table.id(), Some(table));
        }
        let losses = self.losses.into_iter().map(|loss| loss.what).collect();
        Joined { set, next_table: self.next_table, losses, moot: self.moot }
    }
}

/// Applies an effect to a table that lost rows: those that it changes come back, and those that it
/// takes out are gone already.
fn apply_incomplete(set: &mut TableSet, effect: Effect<'_>) -> Result<()> {
    let table = set.tables.get(&effect.table()).cloned();
    let has = |row: u64| table.as_ref().is_some_and(|table| table.row(RowId(row)).is_some());
    match effect {
        Effect::Update { id, rows } => {
            let (there, lost): (Vec<_>, Vec<_>) = rows.into_iter().partition(|(row, _)| has(*row));
            set.apply(Effect::Update { id, rows: there }, Origin::Log)?;
            set.restore_rows(id, lost)
        }
        Effect::Delete { id, mut rows } => {
            rows.retain(|row| has(*row));
            set.apply(Effect::Delete { id, rows }, Origin::Log)
        }
        other => set.apply(other, Origin::Log),
    }
}

/// Gives a table a name, unless another has it.
fn take_name(set: &mut TableSet, name: &str, id: u64) -> bool {
    let is_free = set.names.get(name).is_none();
    if is_free {
        set.put_name(name, Some(id));
    }
    is_free
}

/// Gives a table a name like the one it has.
fn free_name(set: &mut TableSet, table: &Table) -> String {
    let mut end = format!("-{}", table.id());
    loop {
        let start = table.name();
        let start = &start[..start.floor_char_boundary(NAME_SIZE_MAX.saturating_sub(end.len()))];
        let name = format!("{start}{end}");
        if take_name(set, &name, table.id()) {
            return name;
        }
        end.push('x');
    }
}
