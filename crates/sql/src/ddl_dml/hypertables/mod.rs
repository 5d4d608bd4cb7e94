//! Statements that make hypertables, change them and delete their rows.

pub(crate) mod make_hypertable;
pub(crate) mod removal;
pub(crate) mod unfinished_drops;
