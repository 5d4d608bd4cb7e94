//! Tables whose rows are samples of the store: hypertables.
//!
//! ```text
//! CREATE TABLE cpu (time timestamptz, host text, usage float8, idle float8)
//! SELECT create_hypertable('cpu', 'time')
//!
//! a row of it:   time    host    usage   idle
//!                  │       │       │       └─► a sample of cpu_idle {__table__="cpu", host=".."}
//!                  │       │       └─────────► a sample of cpu_usage{__table__="cpu", host=".."}
//!                  └ when  └ a label of all its series
//! ```
//! There is no other copy of it. What a table looks like is kept with ordinary ones (`tables`), which
//! have no row of it.

mod append;
mod conditions;
mod declare;
mod definitions;
mod entities;
mod groups;
mod reading;
mod removal;
mod shape;
pub(crate) mod unfinished_drops;

pub(crate) use append::{Series, SeriesRows};
pub(crate) use conditions::{Asked, ValueCondition};
pub(crate) use declare::Asking;
pub(crate) use definitions::{
    check_alone, expect_hypertable, loses_rows, make_hypertable, segment,
};
pub(crate) use groups::{Found, Grouping, Groups, Key, Summary};
pub(crate) use reading::{Scan, Wanted, plan};
pub(crate) use removal::{Dropping, Removal, drop_chunks, instant};
pub(crate) use shape::{Hypertable, TABLE_LABEL};
