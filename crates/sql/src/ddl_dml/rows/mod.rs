//! `INSERT`, `UPDATE` and `DELETE` of ordinary tables.

pub(crate) mod assignments;
pub(crate) mod changes;
pub(crate) mod conflicts;
pub(crate) mod copies;
pub(crate) mod inserts;
pub(crate) mod writes;
