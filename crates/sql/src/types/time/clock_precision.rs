//! Times of a type with a precision, `timestamp(3)` and `time(0)`: rounded to that many digits of a second
//! (<https://www.postgresql.org/docs/15/datatype-datetime.html>).

use crate::types::function::function;
use datafusion::arrow::array::{ArrayRef, AsArray as _};
use datafusion::arrow::compute::cast;
use datafusion::arrow::datatypes::{DataType, Int64Type};
use datafusion::common::Result;
use datafusion::logical_expr::{ScalarUDF, Signature, Volatility};

/// `pg_clock_precision(time, digits)`.
pub const CLOCK_PRECISION: &str = "pg_clock_precision";
/// Digits of a second that times have.
const DIGITS_MAX: i64 = 6;

/// The function.
pub fn clock_precision() -> ScalarUDF {
    let signature = Signature::any(2, Volatility::Immutable);
    let same = |types: &[DataType]| types.first().cloned().unwrap_or(DataType::Null);
    function(CLOCK_PRECISION, signature, same, round)
}

fn round(args: &[ArrayRef], _: usize) -> Result<ArrayRef> {
    let digits = cast(&args[1], &DataType::Int64)?;
    let digits = digits.as_primitive::<Int64Type>().iter().flatten().next();
    let digits = digits.unwrap_or(DIGITS_MAX).clamp(0, DIGITS_MAX);
    let micros = cast(&args[0], &DataType::Int64)?;
    let rounded =
        micros.as_primitive::<Int64Type>().unary::<_, Int64Type>(|one| rounded(one, digits));
    Ok(cast(&rounded, args[0].data_type())?)
}

/// Rounds microseconds to digits of a second. Halves go away from zero, which is 1970 for timestamps; infinity stays.
pub fn rounded(micros: i64, digits: i64) -> i64 {
    let scale = 10_i64.pow(u32::try_from(DIGITS_MAX - digits).unwrap_or(0));
    if scale == 1 || [i64::MIN, i64::MAX].contains(&micros) {
        return micros;
    }
    let half = if micros < 0 { -scale / 2 } else { scale / 2 };
    micros.saturating_add(half) / scale * scale
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn halves_go_away_from_zero() {
        for (micros, digits, expected) in [
            (1_500_000, 0, 2_000_000),
            (-1_500_000, 0, -2_000_000),
            (1_449_999, 1, 1_400_000),
            (123, 6, 123),
            (i64::MAX, 3, i64::MAX),
        ] {
            assert_eq!(rounded(micros, digits), expected, "{micros} {digits}");
        }
    }
}
