//! Native histograms: one sample that is a whole distribution.
//!
//! No I/O, no clock. Read in this order: the value ([`native`], [`schema`], [`buckets`]), what
//! may be done to one (`compact`, `resolution`, [`trim`], [`validate`]), what two may become (`zero`, `custom`,
//! [`arithmetic`], [`sum`], `resets`), classic ones ([`classic`]), what one tells
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
pub mod sum;
mod resets;
pub mod trim;
pub mod classic;
pub mod validate;
mod quantile;
mod fraction;
mod moments;
pub mod notation;
mod display;
pub mod batch;
#[cfg(test)]
mod testing;

pub use arithmetic::{Incompatible, Notes};
pub use batch::{HistogramBatch, HistogramRow};
pub use buckets::BucketRange;
pub use classic::{ClassicError, ClassicHistogram};
pub use compact::nearly;
pub use fraction::Fraction;
pub use native::{Bucket, Histogram, ResetHint};
pub use notation::{NotationError, Noted, parse_notation};
pub use quantile::{Quantile, QuantileNote};
pub use schema::{CUSTOM_SCHEMA, SCHEMA_MAX, SCHEMA_MIN, Side};
pub use sum::{HistogramMean, HistogramSum};
pub use trim::Keep;
pub use validate::{BUCKETS_MAX, CUSTOM_BOUNDS_MAX, Invalid};
