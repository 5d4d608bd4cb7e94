//! Native histograms: one sample that is a whole distribution.
//!
//! No I/O, no clock. Read in this order: [`native`], [`schema`], [`batch`].

pub mod native;
pub mod schema;
pub mod batch;

pub use batch::{HistogramBatch, HistogramRow};
pub use native::{Bucket, Histogram, ResetHint};
pub use schema::{CUSTOM_SCHEMA, SCHEMA_MAX, SCHEMA_MIN, Side};
