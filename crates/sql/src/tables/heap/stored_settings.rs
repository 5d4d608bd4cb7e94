//! Settings of roles and databases (`ALTER ROLE .. SET`), as they are stored.

use crate::tables::heap::kept::{SETTINGS, text_of};
use tables::{Datum, TableSet};

/// What a session begins with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Setting {
    /// Whose; empty for everybody's.
    pub role: String,
    /// Of which database; empty for all.
    pub database: String,
    /// Its name.
    pub name: String,
    /// What it is.
    pub value: String,
}

/// All settings that are kept.
pub fn settings(set: &TableSet) -> Vec<Setting> {
    let one = |row: Vec<Datum>| {
        let text = |at: usize| row.get(at).map(text_of).unwrap_or_default().to_string();
        Setting { database: text(0), role: text(1), name: text(2), value: text(3) }
    };
    SETTINGS.rows(set).into_iter().map(one).collect()
}

/// Those that a session of somebody begins with: what is said of less stands behind what is said of more.
pub fn settings_of(set: &TableSet, role: &str, database: &str) -> Vec<Setting> {
    let mut all = settings(set);
    all.retain(|one| {
        (one.role.is_empty() || one.role == role)
            && (one.database.is_empty() || one.database == database)
    });
    // Of a role goes before of a database.
    all.sort_by_key(|one| (!one.role.is_empty(), !one.database.is_empty()));
    all
}
