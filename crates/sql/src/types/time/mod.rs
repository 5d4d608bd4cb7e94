//! Times, time zones and intervals.

pub(crate) mod clock_precision;
pub(crate) mod instants;
pub(crate) mod interval_limits;
pub(crate) mod interval_products;
pub(crate) mod interval_texts;
pub(crate) mod intervals;
pub(crate) mod zone_abbreviations;
pub mod zones;
