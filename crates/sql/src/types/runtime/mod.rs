//! Cancellation and memory of the statement that runs.

pub(crate) mod cancellation;
pub(crate) mod constant_folding;
pub(crate) mod memory;
pub(crate) mod sleep_state;
pub(crate) mod statement_scope;
