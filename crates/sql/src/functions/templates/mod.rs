//! `to_char`, `to_date`, `to_number` and `to_timestamp`: conversions by templates.

pub(crate) mod decimals;
pub(crate) mod numbers;
pub(crate) mod pattern;
pub(crate) mod reading;
#[cfg(test)]
mod tests;
pub(crate) mod conversions_by_template;
pub(crate) mod written;
