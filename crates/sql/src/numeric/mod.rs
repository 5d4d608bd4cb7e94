//! `numeric`: numbers with all their digits, and with as many behind the point as PostgreSQL shows
//! (<https://www.postgresql.org/docs/15/datatype-numeric.html>).
//!
//! ```text
//! numeral, cast ──► value (one number) ◄── arithmetic (scales of results)
//!                     ▲        ▲
//!   number_operators ─┤        ├─ number_functions, number_aggregates
//!   (which operator)  └────────┴─ conversions (columns of numbers), sort_keys (what is equal)
//! ```

mod arithmetic;
mod conversions;
mod implicit_casts;
mod interval_averages;
mod number_aggregates;
mod number_functions;
mod number_operators;
mod sort_keys;
mod transcendental;
mod value;

pub use conversions::{
    KEY, LIST_LIMITS, TO_NUMERIC, TO_REAL, TO_WHOLE, column, decimals, keyed, list_limits,
    numeric_value, of_scalar, units_at,
};
pub use implicit_casts::{ImplicitCasts, convert, exact_cast};
pub use number_functions::{NEGATED, register, scalar_functions};
pub use number_operators::{as_float, numeric_call, resolve};
pub use sort_keys::{among_by_key, found_by_key, joined_by_key, null_if_equal};
pub use value::{Decimal, NUMERIC, Numeric};
