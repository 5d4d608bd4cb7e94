//! Native histograms: one sample that is a whole distribution.
//!
//! No I/O, no clock. Read in this order: the value ([`native`], [`schema`], [`buckets`]), what
//! may be done to one (`compact`, `resolution`), what two may become (`zero`, `custom`,
//! [`arithmetic`], `resets`), what one tells
//! (`quantile`, `fraction`, `moments`), how it is written ([`notation`], `display`), [`batch`].
//!
//! All numbers are those that Prometheus computes, down to the order of additions.

pub mod native;
pub mod schema;
pub mod buckets;
mod compact;
mod resolution;
mod merge;
mod kahan;
mod zero;
mod custom;
pub mod arithmetic;
mod resets;
mod quantile;
mod fraction;
mod moments;
pub mod notation;
mod display;
pub mod batch;

pub use arithmetic::{Incompatible, Notes};
pub use batch::{HistogramBatch, HistogramRow};
pub use buckets::BucketRange;
pub use compact::nearly;
pub use fraction::Fraction;
pub use native::{Bucket, Histogram, ResetHint};
pub use notation::{NotationError, Noted, parse_notation};
pub use quantile::{Quantile, QuantileNote};
pub use schema::{CUSTOM_SCHEMA, SCHEMA_MAX, SCHEMA_MIN, Side};
