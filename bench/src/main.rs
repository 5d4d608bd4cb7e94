//! `quipu-bench`: load generators, a crash test and side-by-side comparisons, from outside.
//!
//! ```text
//! flags ─► tsbs | shapes (workload) ─► payload ─► load (workers, HTTP) ─► server under test
//!                                                    └─ observe (/proc, disk) ─► report
//! ```
mod instant;
mod payload;
mod random;
mod shapes;
mod tsbs;
mod workload;
fn main() {}
