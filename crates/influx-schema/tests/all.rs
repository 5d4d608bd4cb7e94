//! Tests of schema records on a simulated disk, and on golden stores.

mod conversion;
mod crash;
mod damage;
mod deletions;
mod faults;
mod golden;
mod model;
mod rig;
