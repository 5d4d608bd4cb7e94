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

use crate::functions::numbers::number_functions::{NEGATED, register, scalar_functions};
use crate::plan::typing::implicit_casts::{ImplicitCasts, convert, exact_cast};
use crate::plan::typing::number_operators::{as_float, numeric_call, resolve};
use crate::plan::typing::sort_keys::{among_by_key, found_by_key, joined_by_key, null_if_equal};
use crate::types::numeric::conversions::{
    KEY, LIST_LIMITS, TO_NUMERIC, TO_REAL, TO_WHOLE, column, decimals, keyed, list_limits,
    numeric_value, of_scalar, units_at,
};
use crate::types::numeric::value::{Decimal, NUMERIC, Numeric};
