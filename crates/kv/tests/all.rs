//! All tests of the keyspace from outside, as one program.

mod crash;
mod databases;
mod expiry;
mod extremes;
mod faults;
mod fetching;
mod files;
mod large;
mod large_records;
mod limits;
mod log_bound;
mod matrix;
mod memory;
mod replay;
mod replica;
mod replica_model;
mod rig;
mod room;
mod tails;
