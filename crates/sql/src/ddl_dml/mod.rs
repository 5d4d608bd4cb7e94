//! Statements that change tables and rows.

pub(crate) mod calls;
pub(crate) mod definitions;
pub(crate) mod hypertables;
pub mod insert;
pub(crate) mod policies;
pub(crate) mod prometheus;
pub(crate) mod rows;
pub(crate) mod runner;
pub(crate) mod timescale_options;
pub mod upkeep;
pub(crate) mod views;
