//! All tests of the room in one program: it links once, and its tests share the cores.

#![allow(clippy::disallowed_methods, reason = "tests own their files and threads")]

mod campaign;
mod cardinality;
mod changes;
mod churn;
mod crash;
mod damaged;
mod durability_dir;
mod durability_log;
mod elsewhere;
mod exemplars;
mod false_files;
mod faults;
mod histograms;
mod histories;
mod hooks;
mod hostile;
mod keys;
mod log_room;
mod model;
mod odd_series;
mod partition_length;
mod races;
mod repair;
mod rollover;
mod rot;
mod rows;
mod series_limits;
mod shared_log;
mod singles;
mod snapshots;
mod sparse;
mod start_timestamps;
mod starts;
mod stores;
mod upkeep;
mod verify;
