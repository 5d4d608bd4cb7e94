//! Physical plans: the planner of extension nodes, and physical optimizer rules.

pub(crate) mod bounded_batches;
pub(crate) mod cancellable_joins;
pub(crate) mod physical_order;
pub(crate) mod serial;
pub(crate) mod steps;
pub(crate) mod yielding;
