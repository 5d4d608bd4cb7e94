//! `numeric`: numbers with all their digits, and with as many behind the point as PostgreSQL shows
//! (<https://www.postgresql.org/docs/15/datatype-numeric.html>).
//!
//! ```text
//! numeral, cast ──► value (one number) ◄── arithmetic (scales of results)
//!                     ▲        ▲
//!   number_operators ─┤        ├─ number_functions, number_aggregates
//!   (which operator)  └────────┴─ conversions (columns of numbers), sort_keys (what is equal)
//! ```

pub(crate) mod bits;
pub(crate) mod checked;
pub(crate) mod checked_floats;
pub(crate) mod degrees;
pub(crate) mod number_functions;
pub(crate) mod transcendental;
pub(crate) mod width_bucket;
