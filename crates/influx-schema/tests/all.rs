//! Tests of schema records on a simulated disk.

mod crash;
mod damage;
mod faults;
mod model;
mod rig;
