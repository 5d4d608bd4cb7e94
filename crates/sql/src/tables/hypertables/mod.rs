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

pub(crate) mod append;
pub(crate) mod conditions;
pub(crate) mod entities;
pub(crate) mod groups;
pub(crate) mod reading;
pub(crate) mod shape;

use crate::ddl_dml::hypertables::declare::Asking;
use crate::ddl_dml::hypertables::make_hypertable::{
    check_alone, expect_hypertable, loses_rows, make_hypertable, segment,
};
use crate::ddl_dml::hypertables::removal::{Dropping, Removal, drop_chunks, instant};
use crate::tables::hypertables::append::{Series, SeriesRows};
use crate::tables::hypertables::conditions::{Asked, ValueCondition};
use crate::tables::hypertables::groups::{Found, Grouping, Groups, Key, Summary};
use crate::tables::hypertables::reading::{Scan, Wanted, plan};
use crate::tables::hypertables::shape::{Hypertable, TABLE_LABEL};
