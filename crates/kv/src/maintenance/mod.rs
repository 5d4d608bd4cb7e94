//! Work on stored keys: eviction, checkpoints, compression, verification and repair.

pub mod coding;
pub mod keeper;
pub mod repair;
pub mod saving;
pub mod verify;
