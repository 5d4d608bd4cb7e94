//! All tests of the keyspace from outside, as one program.

mod crash;
mod files;
mod rig;
