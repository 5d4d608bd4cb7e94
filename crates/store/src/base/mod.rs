//! Lowest layer: what every other folder of the crate may use.
//!
//! [`ground`] is the context of an open store. [`directory`] holds the small files of a data
//! directory. Nothing here knows the log, partitions, or requests.

pub(crate) mod ground;
pub(crate) mod config;
pub(crate) mod error;
pub(crate) mod counters;
pub(crate) mod health;
pub(crate) mod signals;
pub(crate) mod backoff;
pub(crate) mod damage;
pub(crate) mod locks;
pub(crate) mod period;
pub(crate) mod file_names;
pub(crate) mod select_limits;
pub(crate) mod directory;

pub(crate) use model::narrow;
