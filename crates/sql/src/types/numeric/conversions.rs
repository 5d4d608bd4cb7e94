//! Columns of numbers as columns of `numeric`, and back.

use crate::types::error::SqlError;
use crate::types::function::function;
use crate::types::numeric::arithmetic::limited;
use crate::types::numeric::value::{
    Decimal, NUMERIC, Numeric, PRECISION, SCALE, SCALE_MAX, too_long,
};
use crate::types::text::literals::is_float_out_of_range;
use datafusion::arrow::array::{
    Array as _, ArrayRef, AsArray as _, Decimal128Array, Decimal256Array, Float32Array,
    Float64Array, Int64Array, ListArray,
};
use datafusion::arrow::compute::cast;
use datafusion::arrow::datatypes::{
    DataType, Decimal128Type, Decimal256Type, Field, FieldRef, Float64Type, Int64Type, i256,
};
use datafusion::common::{DFSchema, DataFusionError, Result, ScalarValue};
use datafusion::logical_expr::{
    ColumnarValue, Expr, ExprSchemable as _, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDF,
    ScalarUDFImpl, Signature, Volatility,
};
use std::sync::{Arc, LazyLock};

/// Digits that a `float4` has for sure.
const SHORT_DIGITS: usize = 6;

/// An error of one value, as DataFusion hands it on.
pub fn outside(error: SqlError) -> DataFusionError {
    DataFusionError::External(Box::new(error))
}

/// Numbers of a column of whatever type of numbers, or of texts.
///
/// # Errors
/// When one is no number, or has too many digits.
pub fn decimals(array: &ArrayRef) -> Result<Decimal256Array> {
    let each = |one: Option<Result<Numeric, SqlError>>| -> Result<Option<i256>> {
        let raw = one.map(|one| one.and_then(|one| one.encode()));
        raw.transpose().map_err(outside)
    };
    let ty = array.data_type();
    let made: Decimal256Array = match ty {
        _ if *ty == NUMERIC => return Ok(array.as_primitive::<Decimal256Type>().clone()),
        DataType::Decimal128(_, scale) => {
            let of = |units: i128| of_units(i256::from_i128(units), *scale);
            let values = array.as_primitive::<Decimal128Type>().iter();
            values.map(|one| each(one.map(of))).collect::<Result<_>>()?
        }
        DataType::Decimal256(_, scale) => {
            let values = array.as_primitive::<Decimal256Type>().iter();
            values
                .map(|one| each(one.map(|units| of_units(units, *scale))))
                .collect::<Result<_>>()?
        }
        DataType::Float32 | DataType::Float64 => {
            let digits = if *ty == DataType::Float32 { SHORT_DIGITS } else { 15 };
            let wide = cast(array, &DataType::Float64)?;
            let values = wide.as_primitive::<Float64Type>().iter();
            let of = |value: f64| Numeric::of_float(value, digits);
            values.map(|one| each(one.map(of))).collect::<Result<_>>()?
        }
        DataType::Null => (0..array.len()).map(|_| None).collect::<Vec<Option<i256>>>().into(),
        one if one.is_integer() => {
            let wide = cast(array, &DataType::Decimal128(20, 0))?;
            let values = wide.as_primitive::<Decimal128Type>().iter();
            let of = |number: i128| Ok(Decimal::whole(number).into());
            values.map(|one| each(one.map(of))).collect::<Result<_>>()?
        }
        one if one.is_string() => {
            let texts = cast(array, &DataType::Utf8View)?;
            let values = texts.as_string_view().iter();
            values.map(|one| each(one.map(Numeric::parse))).collect::<Result<_>>()?
        }
        other => {
            let words = format!("cannot cast type {other} to numeric");
            return Err(outside(SqlError::new("42846", words)));
        }
    };
    Ok(made.with_precision_and_scale(PRECISION, SCALE)?)
}

/// Returns the number `units * 10 ^ -scale`.
fn of_units(units: i256, scale: i8) -> Result<Numeric, SqlError> {
    match u8::try_from(scale) {
        Ok(scale) if scale <= SCALE_MAX => Ok(Decimal::new(units, scale).into()),
        Ok(_) => Err(too_long()),
        Err(_) => Numeric::parse(&format!("{units}e{}", scale.unsigned_abs())),
    }
}

/// A decimal value; none of others.
pub fn of_scalar(value: &ScalarValue) -> Option<Result<Numeric, SqlError>> {
    match value {
        ScalarValue::Decimal256(Some(raw), PRECISION, SCALE) => Some(Ok(Numeric::decode(*raw))),
        ScalarValue::Decimal256(Some(units), _, scale) => Some(of_units(*units, *scale)),
        ScalarValue::Decimal128(Some(units), _, scale) => {
            Some(of_units(i256::from_i128(*units), *scale))
        }
        _ => None,
    }
}

/// A number as a value of a column.
///
/// # Errors
/// When it has too many digits.
pub fn scalar(value: &Numeric) -> Result<ScalarValue, SqlError> {
    Ok(ScalarValue::Decimal256(Some(value.encode()?), PRECISION, SCALE))
}

/// A text as a value of `numeric`.
///
/// # Errors
/// When it is none, or has too many digits.
pub fn numeric_value(text: &str) -> Result<ScalarValue, SqlError> {
    scalar(&Numeric::parse(text)?)
}

/// A decimal number that is written down, as a `float8`.
pub fn literal_float(expr: &Expr) -> Option<Expr> {
    let Expr::Literal(value, _) = expr else { return None };
    let float = of_scalar(value)?.ok()?.to_f64();
    Some(Expr::Literal(ScalarValue::Float64(Some(float)), None))
}

/// A column of these numbers.
///
/// # Errors
/// When one has too many digits.
pub fn column(values: impl Iterator<Item = Option<Result<Numeric, SqlError>>>) -> Result<ArrayRef> {
    let raw = |one: Option<Result<Numeric, SqlError>>| {
        one.map(|one| one.and_then(|one| one.encode())).transpose().map_err(outside)
    };
    let made: Decimal256Array = values.map(raw).collect::<Result<_>>()?;
    Ok(Arc::new(made.with_precision_and_scale(PRECISION, SCALE)?))
}

fn of_one(
    name: &'static str,
    returns: DataType,
    work: fn(&ArrayRef) -> Result<ArrayRef>,
) -> Arc<ScalarUDF> {
    let signature = Signature::any(1, Volatility::Immutable);
    Arc::new(function(name, signature, move |_| returns.clone(), move |args, _| work(&args[0])))
}

/// A cast of whatever number or text to `numeric`.
pub static TO_NUMERIC: LazyLock<Arc<ScalarUDF>> =
    LazyLock::new(|| of_one("pg_numeric", NUMERIC, |array| Ok(Arc::new(decimals(array)?))));

/// A cast of a `numeric` to `float8`.
pub static TO_FLOAT: LazyLock<Arc<ScalarUDF>> = LazyLock::new(|| {
    of_one("pg_numeric_float", DataType::Float64, |array| {
        let values = decimals(array)?;
        let floats: Float64Array =
            values.iter().map(|one| one.map(|raw| Numeric::decode(raw).to_f64())).collect();
        Ok(Arc::new(floats))
    })
});

/// A cast of a `numeric` or a `double precision` to `real`: beyond its range is an error.
pub static TO_REAL: LazyLock<Arc<ScalarUDF>> = LazyLock::new(|| {
    of_one("pg_real", DataType::Float32, |array| {
        let reals: Float32Array = match array.data_type() {
            DataType::Float64 => {
                let floats = array.as_primitive::<Float64Type>().iter();
                floats.map(|one| one.map(real_of_float).transpose()).collect::<Result<_>>()?
            }
            _ => {
                let values = decimals(array)?;
                let read = |raw| real_of_text(&Numeric::decode(raw).text());
                values.iter().map(|one| one.map(read).transpose()).collect::<Result<_>>()?
            }
        };
        Ok(Arc::new(reals))
    })
});

fn real_of_float(float: f64) -> Result<f32> {
    let real = float as f32;
    let word = match (real.is_infinite() && float.is_finite(), real == 0.0 && float != 0.0) {
        (true, _) => "overflow",
        (_, true) => "underflow",
        _ => return Ok(real),
    };
    Err(outside(SqlError::new("22003", format!("value out of range: {word}"))))
}

fn real_of_text(text: &str) -> Result<f32> {
    let real = text.parse().unwrap_or(f32::NAN);
    if is_float_out_of_range(text, &DataType::Float32) {
        let words = format!("\"{text}\" is out of range for type real");
        return Err(outside(SqlError::new("22003", words)));
    }
    Ok(real)
}

/// A cast of a `numeric` to `int8`.
pub static TO_WHOLE: LazyLock<Arc<ScalarUDF>> = LazyLock::new(|| {
    of_one("pg_numeric_whole", DataType::Int64, |array| {
        let values = decimals(array)?;
        let whole = |raw: i256| Numeric::decode(raw).to_i64().map_err(outside);
        let made: Int64Array =
            values.iter().map(|one| one.map(whole).transpose()).collect::<Result<_>>()?;
        Ok(Arc::new(made))
    })
});

/// Makes numbers of one value equal that are shown with other digits.
pub static KEY: LazyLock<Arc<ScalarUDF>> = LazyLock::new(|| {
    of_one("pg_numeric_key", NUMERIC, |array| {
        let values = decimals(array)?;
        let keys: Decimal256Array = values.unary::<_, Decimal256Type>(Numeric::key);
        Ok(Arc::new(keys.with_precision_and_scale(PRECISION, SCALE)?))
    })
});

/// `numeric(precision, scale)`, whose arguments are the number, the precision and the scale.
pub static TYPE_LIMITS: LazyLock<Arc<ScalarUDF>> = LazyLock::new(|| {
    let signature = Signature::any(3, Volatility::Immutable);
    Arc::new(ScalarUDF::from(TypeLimits { signature }))
});

#[derive(Debug, PartialEq, Eq, Hash)]
struct TypeLimits {
    signature: Signature,
}

/// The type of numbers of so many digits: one of its own where Arrow's 128 bits have room for them.
fn limited_type(precision: i32, scale: i32) -> DataType {
    match (u8::try_from(precision), i8::try_from(scale)) {
        (Ok(precision @ 1..=38), Ok(scale @ 0..)) if i32::from(scale) <= i32::from(precision) => {
            DataType::Decimal128(precision, scale)
        }
        _ => NUMERIC,
    }
}

fn limit_of(value: &ScalarValue) -> Result<i32> {
    match value.cast_to(&DataType::Int32)? {
        ScalarValue::Int32(Some(limit)) => Ok(limit),
        _ => Ok(0),
    }
}

impl ScalarUDFImpl for TypeLimits {
    fn name(&self) -> &'static str {
        "pg_numeric_limits"
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _: &[DataType]) -> Result<DataType> {
        Ok(NUMERIC)
    }

    fn return_field_from_args(&self, args: ReturnFieldArgs<'_>) -> Result<FieldRef> {
        let ty = match args.scalar_arguments {
            [_, Some(precision), Some(scale)] => {
                limited_type(limit_of(precision)?, limit_of(scale)?)
            }
            _ => NUMERIC,
        };
        Ok(Arc::new(Field::new(self.name(), ty, true)))
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let limit = |at: usize| match &args.args[at] {
            ColumnarValue::Scalar(value) => limit_of(value),
            ColumnarValue::Array(array) => limit_of(&ScalarValue::try_from_array(array, 0)?),
        };
        let (precision, scale) = (limit(1)?, limit(2)?);
        let is_scalar = matches!(args.args[0], ColumnarValue::Scalar(_));
        let rows = if is_scalar { 1 } else { args.number_rows };
        let values = decimals(&args.args[0].to_array(rows)?)?;
        let limited = values
            .iter()
            .map(|one| one.map(|raw| limited(&Numeric::decode(raw), precision, scale)));
        let made = match args.return_field.data_type() {
            DataType::Decimal128(precision, scale) => {
                let units = |one: Option<Result<Numeric, SqlError>>| -> Result<Option<i128>> {
                    one.map(|one| units_at(&one?, *scale)).transpose().map_err(outside)
                };
                let all: Decimal128Array = limited.map(units).collect::<Result<_>>()?;
                Arc::new(all.with_precision_and_scale(*precision, *scale)?) as ArrayRef
            }
            _ => column(limited)?,
        };
        Ok(match is_scalar {
            true => ColumnarValue::Scalar(ScalarValue::try_from_array(&made, 0)?),
            false => ColumnarValue::Array(made),
        })
    }
}

/// `pg_numeric_list_limits(array, precision, scale)`: a cast to `numeric(precision, scale)[]`.
pub fn list_limits() -> ScalarUDF {
    let signature = Signature::any(3, Volatility::Immutable);
    let numbers = |_: &[DataType]| DataType::new_list(NUMERIC, true);
    function(LIST_LIMITS, signature, numbers, |args, _| {
        let limit = |at: usize| limit_of(&ScalarValue::try_from_array(&args[at], 0)?);
        let (precision, scale) = (limit(1)?, limit(2)?);
        let (_, offsets, values, nulls) = args[0].as_list::<i32>().clone().into_parts();
        let values = decimals(&values)?;
        let limited = values
            .iter()
            .map(|one| one.map(|raw| limited(&Numeric::decode(raw), precision, scale)));
        let field = Arc::new(Field::new_list_field(NUMERIC, true));
        Ok(Arc::new(ListArray::try_new(field, offsets, column(limited)?, nulls)?))
    })
}

/// The name of [`list_limits`].
pub const LIST_LIMITS: &str = "pg_numeric_list_limits";

/// A number in units of 128 bits.
///
/// # Errors
/// When it has more digits, and when it is no finite number.
pub fn units_at(number: &Numeric, scale: i8) -> Result<i128, SqlError> {
    let scale = u8::try_from(scale).unwrap_or(0);
    match number {
        Numeric::Finite(one) if one.least_scale() <= scale => {
            let shortest = one.rounded(i32::from(scale))?;
            shortest.units.to_i128().ok_or_else(too_long)
        }
        Numeric::Finite(_) => Err(too_long()),
        other => {
            let words =
                format!("a numeric with a precision that is {} is not known here", other.text());
            Err(SqlError::unsupported(words))
        }
    }
}

/// A number that is compared as such: equal to others of its value.
pub fn keyed(expr: Expr, schema: &DFSchema) -> Expr {
    let is_numeric = expr.get_type(schema).is_ok_and(|ty| ty == NUMERIC || ty.is_numeric());
    match &expr {
        Expr::Literal(value, _) => match of_scalar(value) {
            Some(Ok(number)) => match number.encode() {
                Ok(raw) => {
                    let key = ScalarValue::Decimal256(Some(Numeric::key(raw)), PRECISION, SCALE);
                    Expr::Literal(key, None)
                }
                Err(_) => KEY.call(vec![expr]),
            },
            _ if is_numeric => KEY.call(vec![expr]),
            _ => expr,
        },
        Expr::ScalarFunction(called) if called.name() == "pg_numeric_key" => expr,
        _ if is_numeric => KEY.call(vec![expr]),
        _ => expr,
    }
}

/// Whole numbers of 64 bits.
pub fn wholes(array: &ArrayRef) -> Result<Int64Array> {
    Ok(cast(array, &DataType::Int64)?.as_primitive::<Int64Type>().clone())
}
