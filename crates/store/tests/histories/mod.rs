//! Long mixed histories on a simulated disk with every fault in random order, against a model of what
//! was acknowledged: shared by `tests/campaign.rs`, which CI runs, and `examples/campaign.rs`, for
//! millions of faults.
//!
//! ```text
//! seed ─► lives of a process: open, steps of all kinds, faults in between ─► ends somehow
//!              ▲                                                               │
//!              └── compared with the model ◄── opened without faults ◄── killed, or power lost
//! ```
//!
//! What must hold: the store opens; what was acknowledged is there; what was never sent, or was
//! deleted, is not; what is in doubt is one or the other, and stays what it is once it was seen
//! after a start.

#![allow(dead_code, reason = "each user takes a part")]

pub mod history;
pub mod model;
pub mod observe;
pub mod rotten;
pub mod steps;
pub mod tally;

use rng::mix;

/// The seed of a history of a campaign.
pub fn seed_of(campaign: u64, history: u64) -> u64 {
    mix(campaign.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ mix(history + 1))
}
