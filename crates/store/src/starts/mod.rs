//! Start timestamps of samples, as columns beside them: decision 23.
//!
//! ```text
//! m{job="a"}                                value     an ordinary series, float or histogram
//! {job="a", LABEL="m", RUN_LABEL="start"}   start     since when it counts, at the same time
//! ```
//!
//! A hidden series, as those of histograms ([`crate::histograms`]): no selection finds it, no
//! client can write it, and it goes the way of all rows. A sample without a start timestamp has no
//! row, and a store without any has no such series; nobody looks for one who does not ask. The
//! value is in milliseconds, exact as float64, and constant over long runs.

pub mod append;
pub mod select;
