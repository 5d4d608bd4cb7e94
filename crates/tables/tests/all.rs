//! All tests of tables from outside, as one program.

mod concurrent;
mod crash;
mod faults;
mod files;
mod limits;
mod model;
mod moments;
mod repair;
mod rig;
mod rot;
mod transactions;
