//! All tests of the keyspace from outside, as one program.

mod crash;
mod expiry;
mod faults;
mod fetching;
mod files;
mod large;
mod limits;
mod memory;
mod replay;
mod rig;
mod room;
mod tails;
