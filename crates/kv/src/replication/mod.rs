//! Keys that a replica gets from its primary.

pub mod primary;
pub mod replicate;
