//! Statements that the session answers itself, prepared statements and cursors.

pub mod commands;
pub mod cursors;
pub mod drops;
pub mod prepared;
pub mod writes;
