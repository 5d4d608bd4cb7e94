//! Work on a store that is not open: verification and repair.

pub(crate) mod verify;
pub(crate) mod repair;
