//! Tables that queries read: samples, hypertables and ordinary tables.

pub(crate) mod heap;
pub(crate) mod hypertables;
pub(crate) mod metrics;

pub use metrics::tables::{Column, Rows, Shows, TABLES, Table, ZONE, schema_of};
