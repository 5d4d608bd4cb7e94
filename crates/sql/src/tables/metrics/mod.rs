//! Tables of samples and series.

pub(crate) mod alternatives;
pub(crate) mod filters;
pub(crate) mod metric_tables;
pub(crate) mod prom_info;
pub(crate) mod promql_tables;
pub(crate) mod rows;
pub(crate) mod samples;
pub(crate) mod scan;
pub(crate) mod tables;
