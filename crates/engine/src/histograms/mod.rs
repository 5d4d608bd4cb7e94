//! Native histograms in queries: everything that a query of numbers never comes to.
//!
//! ```text
//!              step 0   step 1   step 2
//! values     [  1.0      NaN       -   ]     where a cell has a histogram the value is a NaN that
//! cells      [   -      {...}      -   ]     nobody reads; a row of numbers has no cells at all
//! ```
//!
//! Whether a cell is a histogram is told by the cells alone, never by the bits of a number. Each
//! operation looks once whether there are any and else does what it did before there were
//! histograms. Texts and rules are Prometheus 3's.

pub(crate) mod aggregate;
pub(crate) mod binary;
pub(crate) mod cells;
pub(crate) mod edges;
pub(crate) mod functions;
pub(crate) mod notes;
pub(crate) mod point;
pub(crate) mod rate;
pub(crate) mod results;
pub(crate) mod rollup;
pub(crate) mod samples;
pub(crate) mod select;
mod sum;
pub(crate) mod totals;
