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
pub(crate) mod declare;
pub(crate) mod entities;
pub(crate) mod groups;
pub(crate) mod reading;
pub(crate) mod shape;
