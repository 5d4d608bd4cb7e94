//! Tests of schema records on a simulated disk.

mod conversion;
mod crash;
mod damage;
mod deletions;
mod faults;
mod model;
mod rig;
