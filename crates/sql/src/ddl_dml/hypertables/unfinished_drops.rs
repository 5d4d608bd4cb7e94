//! Drops of tables whose rows are samples: a record says that the samples are to be deleted until they are.
//!
//! ```text
//! DROP TABLE ─► one transaction: the table goes, a record comes ─► samples are deleted ─► the record goes
//!                                                    a crash here └─► the next start deletes them
//! ```
//! Samples without a record stay, whatever their label `__table__` is: they may have been imported.

use crate::tables::heap::kept::{Kept, text as kept_text, text_of as text_kept};
use crate::tables::heap::view::{Fate, View};
use crate::types::error::SqlError;
use std::sync::Arc;
use tables::{Datum, Scalar, Table, TableSet};

/// Table of the records.
const DROPS: Kept = Kept {
    table: "\0unfinished drops",
    columns: &[("table", Scalar::Text), ("number", Scalar::Int8)],
    key_len: 1,
};

/// Records in the transaction under way that the samples of a table are to be deleted; `of` is their label.
///
/// # Errors
/// When there are too many records.
pub fn record(view: &View, of: &str, table: &Table) -> Result<(), SqlError> {
    let number = Datum::Int8(i64::try_from(table.id()).unwrap_or(i64::MAX));
    DROPS.put(view, vec![kept_text(of), number])
}

/// Labels of the tables whose samples are to be deleted.
pub fn all(set: &TableSet) -> Vec<String> {
    let rows = DROPS.rows(set).into_iter();
    rows.filter_map(|row| row.first().map(|of| text_kept(of).to_string())).collect()
}

/// Deletes the samples of a table that is to be made, if a drop of that name failed half way.
///
/// # Errors
/// When the store cannot delete them.
pub fn finish(view: &View, of: &str) -> Result<(), SqlError> {
    if !all(&view.set()).iter().any(|one| one == of) {
        return Ok(());
    }
    view.series().forget(&[of.to_string()])?;
    DROPS.forget(view, |row| text_kept(&row[0]) == of).map(drop)
}

/// Deletes the samples of all drops that a crash interrupted.
///
/// # Errors
/// When the store cannot delete them: the records stay.
pub fn finish_all(view: &Arc<View>) -> Result<(), SqlError> {
    let tables = all(&view.set());
    view.series().forget(&tables)?;
    remove(view, &tables)
}

/// Removes records of drops whose samples are deleted. Waits for the disk.
///
/// # Errors
/// When the disk does not take it.
pub fn remove(view: &Arc<View>, tables: &[String]) -> Result<(), SqlError> {
    if !all(&view.set()).iter().any(|of| tables.contains(of)) {
        return Ok(());
    }
    let changing = view.changing()?;
    DROPS.forget(view, |row| tables.iter().any(|of| text_kept(&row[0]) == of))?;
    changing.done(&Fate::default())
}
