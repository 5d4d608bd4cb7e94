//! Databases and files that history is copied from.

pub mod blocks;
pub mod days;
pub mod files;
pub mod influxdb;
pub mod keys;
pub mod kinds;
pub mod opentsdb;
pub mod order;
#[cfg(feature = "sql")]
pub mod parquet;
pub mod redistimeseries;
pub mod redistimeseries_files;
pub mod remote_read;
pub mod source_arguments;
pub mod strings;
pub mod totals;
pub mod victoriametrics;
pub mod whisper;
