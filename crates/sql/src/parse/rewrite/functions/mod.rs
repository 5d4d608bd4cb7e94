//! Rewrites of function calls.

pub(crate) mod calls;
pub(crate) mod gapfill;
pub(crate) mod hypothetical;
pub(crate) mod phrases;
pub(crate) mod points;
pub(crate) mod promscale;
pub(crate) mod toolkit;
