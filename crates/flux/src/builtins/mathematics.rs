//! `math` beyond what `scalars` has: constants, and functions of one or two floats.

use super::{Builtin, Call, function};
use crate::error::{Error, Result};
use crate::value::{Record, Value};
use std::f64::consts;
use std::sync::Arc;

pub(super) const FUNCTIONS: &[Builtin] = &[
    function("math", "acos", of_float),
    function("math", "acosh", of_float),
    function("math", "asin", of_float),
    function("math", "asinh", of_float),
    function("math", "atan", of_float),
    function("math", "atanh", of_float),
    function("math", "cosh", of_float),
    function("math", "exp2", of_float),
    function("math", "expm1", of_float),
    function("math", "log1p", of_float),
    function("math", "roundtoeven", of_float),
    function("math", "sinh", of_float),
    function("math", "tanh", of_float),
    function("math", "atan2", of_floats),
    function("math", "copysign", of_floats),
    function("math", "dim", of_floats),
    function("math", "hypot", of_floats),
    function("math", "remainder", of_floats),
    function("math", "isInf", is_infinite),
    function("math", "isNaN", is_nan),
    function("math", "mInf", infinity),
    function("math", "NaN", nan),
    function("math", "signbit", has_sign),
    function("math", "modf", modf),
];

/// Constants of the package.
pub(super) fn constant(name: &str) -> Option<Value> {
    Some(match name {
        "pi" => Value::Float(consts::PI),
        "e" => Value::Float(consts::E),
        "phi" => Value::Float(1.618_033_988_749_895),
        "sqrt2" => Value::Float(consts::SQRT_2),
        "sqrte" => Value::Float(1.648_721_270_700_128_2),
        "sqrtpi" => Value::Float(1.772_453_850_905_516),
        "sqrtphi" => Value::Float(1.272_019_649_514_069),
        "ln2" => Value::Float(consts::LN_2),
        "log2e" => Value::Float(consts::LOG2_E),
        "ln10" => Value::Float(consts::LN_10),
        "log10e" => Value::Float(consts::LOG10_E),
        "maxfloat" => Value::Float(f64::MAX),
        "smallestNonzeroFloat" => Value::Float(5e-324),
        "maxint" => Value::Integer(i64::MAX),
        "minint" => Value::Integer(i64::MIN),
        "maxuint" => Value::Unsigned(u64::MAX),
        _ => return None,
    })
}

/// A float argument; null passes through.
fn float(call: &Call<'_>, name: &'static str) -> Result<Option<f64>> {
    match call.required(name)? {
        Value::Float(value) => Ok(Some(value)),
        Value::Null => Ok(None),
        other => Err(call.wrong(name, "float", &other)),
    }
}

fn of_float(call: Call<'_>) -> Result<Value> {
    let found = float(&call, "x")?;
    call.done()?;
    let Some(x) = found else { return Ok(Value::Null) };
    Ok(Value::Float(match call.name {
        "acos" => x.acos(),
        "acosh" => x.acosh(),
        "asin" => x.asin(),
        "asinh" => x.asinh(),
        "atan" => x.atan(),
        "atanh" => x.atanh(),
        "cosh" => x.cosh(),
        "exp2" => x.exp2(),
        "expm1" => x.exp_m1(),
        "log1p" => x.ln_1p(),
        "roundtoeven" => x.round_ties_even(),
        "sinh" => x.sinh(),
        _ => x.tanh(),
    }))
}

fn of_floats(call: Call<'_>) -> Result<Value> {
    let names = match call.name {
        "atan2" => ("y", "x"),
        "hypot" => ("p", "q"),
        _ => ("x", "y"),
    };
    let found = (float(&call, names.0)?, float(&call, names.1)?);
    call.done()?;
    let (Some(a), Some(b)) = found else { return Ok(Value::Null) };
    Ok(Value::Float(match call.name {
        "atan2" => a.atan2(b),
        "copysign" => a.copysign(b),
        "dim" => (a - b).max(0.0),
        "hypot" => a.hypot(b),
        _ => remainder(a, b),
    }))
}

/// The remainder of IEEE 754: of the quotient rounded to the nearest whole number, the even one of
/// two that are as near.
fn remainder(x: f64, y: f64) -> f64 {
    let rest = x % y;
    let (size, half) = (rest.abs(), y.abs() / 2.0);
    let is_odd = (x.abs() % (2.0 * y.abs())) >= y.abs();
    match size > half || (size == half && is_odd) {
        true => rest - y.abs().copysign(x),
        false => rest,
    }
}

fn is_nan(call: Call<'_>) -> Result<Value> {
    let found = float(&call, "f")?;
    call.done()?;
    Ok(found.map_or(Value::Null, |value| Value::Boolean(value.is_nan())))
}

fn has_sign(call: Call<'_>) -> Result<Value> {
    let found = float(&call, "x")?;
    call.done()?;
    Ok(found.map_or(Value::Null, |value| Value::Boolean(value.is_sign_negative())))
}

fn sign(call: &Call<'_>) -> Result<i64> {
    let missing = || Error::name(format!("{}: missing required argument sign", call.name));
    call.integer("sign")?.ok_or_else(missing)
}

/// `math.isInf(f:, sign:)`: either infinity if `sign` is 0.
fn is_infinite(call: Call<'_>) -> Result<Value> {
    let (found, sign) = (float(&call, "f")?, sign(&call)?);
    call.done()?;
    let is_it = |value: f64| match sign.signum() {
        0 => value.is_infinite(),
        1 => value == f64::INFINITY,
        _ => value == f64::NEG_INFINITY,
    };
    Ok(found.map_or(Value::Null, |value| Value::Boolean(is_it(value))))
}

/// `math.mInf(sign:)`
fn infinity(call: Call<'_>) -> Result<Value> {
    let sign = sign(&call)?;
    call.done()?;
    Ok(Value::Float(if sign < 0 { f64::NEG_INFINITY } else { f64::INFINITY }))
}

fn nan(call: Call<'_>) -> Result<Value> {
    call.done()?;
    Ok(Value::Float(f64::NAN))
}

/// `math.modf(f:)`: `{int:, frac:}`
fn modf(call: Call<'_>) -> Result<Value> {
    let found = float(&call, "f")?;
    call.done()?;
    let Some(value) = found else { return Ok(Value::Null) };
    let whole = value.trunc();
    let fields = vec![
        ("int".into(), Value::Float(whole)),
        ("frac".into(), Value::Float((value - whole).copysign(value))),
    ];
    Ok(Value::Record(Arc::new(Record::new(fields))))
}

#[cfg(test)]
mod tests {
    use super::remainder;

    #[test]
    fn remainder_rounds_the_quotient_to_even() {
        for (x, y, expected) in
            [(5.0, 3.0, -1.0), (-5.0, 3.0, 1.0), (3.0, 2.0, -1.0), (5.0, 2.0, 1.0), (1.0, 4.0, 1.0)]
        {
            assert_eq!(remainder(x, y), expected, "{x} {y}");
        }
    }
}
