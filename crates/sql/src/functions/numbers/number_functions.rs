//! Functions of numbers that have a variant for `numeric` beside those of DataFusion, and operators of `numeric`.

use crate::functions::aggregates::number_aggregates;
use crate::functions::numbers::transcendental;
use crate::types::error::SqlError;
use crate::types::function::{function, map_column, map_columns};
use crate::types::numeric::arithmetic as by_digits;
use crate::types::numeric::arithmetic::NumericResult;
use crate::types::numeric::conversions::{column, decimals, outside, wholes};
use crate::types::numeric::value::{Decimal, NUMERIC, Numeric};
use datafusion::arrow::array::{
    Array as _, ArrayRef, AsArray as _, Decimal256Array, Float64Array, Int32Array, Int64Array,
};
use datafusion::arrow::compute::cast;
use datafusion::arrow::datatypes::{DataType, Field, FieldRef, Float64Type};
use datafusion::common::Result;
use datafusion::functions::math::log10;
use datafusion::logical_expr::type_coercion::functions::fields_with_udf;
use datafusion::logical_expr::{
    ColumnarValue, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature,
    Volatility,
};
use datafusion::prelude::SessionContext;
use std::sync::{Arc, LazyLock};

type Binary = fn(&Numeric, &Numeric) -> NumericResult;

fn operator(name: &'static str, work: Binary) -> Arc<ScalarUDF> {
    let work = move |args: &[ArrayRef], _: usize| {
        let (left, right) = (decimals(&args[0])?, decimals(&args[1])?);
        both(&left, &right, work)
    };
    let signature = Signature::any(2, Volatility::Immutable);
    Arc::new(function(name, signature, |_| NUMERIC, work))
}

fn both(left: &Decimal256Array, right: &Decimal256Array, work: Binary) -> Result<ArrayRef> {
    column(left.iter().zip(right.iter()).map(|pair| match pair {
        (Some(left), Some(right)) => Some(work(&Numeric::decode(left), &Numeric::decode(right))),
        _ => None,
    }))
}

static OPERATORS: LazyLock<[Arc<ScalarUDF>; 5]> = LazyLock::new(|| {
    [
        operator("pg_numeric_plus", by_digits::add),
        operator("pg_numeric_minus", by_digits::subtract),
        operator("pg_numeric_times", by_digits::multiply),
        operator("pg_numeric_over", by_digits::divide),
        operator("pg_numeric_rest", by_digits::remainder),
    ]
});

/// The function that does an operator's work.
pub fn operator_function(name: &str) -> &'static Arc<ScalarUDF> {
    OPERATORS.iter().find(|one| one.name() == name).unwrap_or(&OPERATORS[0])
}

/// A sign before a `numeric`.
pub static NEGATED: LazyLock<Arc<ScalarUDF>> = LazyLock::new(|| {
    let work = |args: &[ArrayRef], _: usize| {
        let values = decimals(&args[0])?;
        column(
            values.iter().map(|one| one.map(|raw| Ok(by_digits::negated(&Numeric::decode(raw))))),
        )
    };
    let signature = Signature::any(1, Volatility::Immutable);
    Arc::new(function("pg_numeric_negated", signature, |_| NUMERIC, work))
});

/// Functions that only numbers with all their digits have.
pub fn scalar_functions() -> impl Iterator<Item = ScalarUDF> {
    let any = |count| Signature::any(count, Volatility::Immutable);
    let scale_of = |name: &'static str, of: fn(&Decimal) -> u8| {
        let work = move |args: &[ArrayRef], _: usize| {
            let values = decimals(&args[0])?;
            let scale = |raw| match Numeric::decode(raw) {
                Numeric::Finite(one) => Some(i32::from(of(&one))),
                _ => None,
            };
            let made: Int32Array = values.iter().map(|one| one.and_then(scale)).collect();
            Ok(Arc::new(made) as ArrayRef)
        };
        function(name, any(1), |_| DataType::Int32, work)
    };
    let trim = function(
        "trim_scale",
        any(1),
        |_| NUMERIC,
        |args, _| {
            let values = decimals(&args[0])?;
            column(
                values
                    .iter()
                    .map(|one| one.map(|raw| by_digits::trim_scale(&Numeric::decode(raw)))),
            )
        },
    );
    let div = function(
        "div",
        any(2),
        |_| NUMERIC,
        |args, _| both(&decimals(&args[0])?, &decimals(&args[1])?, by_digits::divide_whole),
    );
    let factorial = function(
        "factorial",
        any(1),
        |_| NUMERIC,
        |args, _| {
            let values = wholes(&args[0])?;
            column(values.iter().map(|one| one.map(by_digits::factorial)))
        },
    );
    let limits = (**crate::types::numeric::conversions::TYPE_LIMITS).clone();
    [
        scale_of("scale", |one| one.scale),
        scale_of("min_scale", Decimal::least_scale),
        trim,
        div,
        factorial,
        limits,
        divisors("gcd", by_digits::gcd),
        divisors("lcm", by_digits::lcm),
    ]
    .into_iter()
}

/// A function of two whole numbers or two `numeric`, of the wider type of its arguments.
fn divisors(name: &'static str, work: Binary) -> ScalarUDF {
    let returns = |types: &[DataType]| {
        let is_whole = |ty: &DataType| ty.is_integer() || *ty == DataType::Null;
        match types.iter().all(is_whole) {
            true if types.contains(&DataType::Int64) => DataType::Int64,
            true => DataType::Int32,
            false => NUMERIC,
        }
    };
    let made = move |args: &[ArrayRef], _: usize| {
        let types: Vec<DataType> = args.iter().map(|one| one.data_type().clone()).collect();
        let wanted = returns(&types);
        let made = both(&decimals(&args[0])?, &decimals(&args[1])?, work)?;
        if wanted == NUMERIC {
            return Ok(made);
        }
        let out_of_range = || {
            let name = if wanted == DataType::Int32 { "integer" } else { "bigint" };
            outside(SqlError::new("22003", format!("{name} out of range")))
        };
        let whole = |raw| Numeric::decode(raw).to_i64().map_err(|_| out_of_range());
        let all: Int64Array =
            decimals(&made)?.iter().map(|one| one.map(whole).transpose()).collect::<Result<_>>()?;
        cast(&all, &wanted).map_err(|_| out_of_range())
    };
    function(name, Signature::any(2, Volatility::Immutable), returns, made)
}

/// The `numeric` variant of a function.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Variant {
    Abs,
    Ceil,
    Exp,
    Floor,
    Ln,
    Log,
    Log10,
    Power,
    Round,
    Sign,
    Sqrt,
    Trunc,
}

const VARIANTS: &[(&str, Variant)] = &[
    ("abs", Variant::Abs),
    ("ceil", Variant::Ceil),
    ("exp", Variant::Exp),
    ("floor", Variant::Floor),
    ("ln", Variant::Ln),
    ("log", Variant::Log),
    ("log10", Variant::Log10),
    ("power", Variant::Power),
    ("round", Variant::Round),
    ("signum", Variant::Sign),
    ("sqrt", Variant::Sqrt),
    ("trunc", Variant::Trunc),
];

impl Variant {
    fn of(self, args: &[Numeric]) -> NumericResult {
        let digits = |one: &Numeric| {
            one.to_i64().map(|digits| i32::try_from(digits.clamp(-1000, 1000)).unwrap_or(0))
        };
        match (self, args) {
            (Variant::Abs, [one]) => Ok(by_digits::absolute(one)),
            (Variant::Ceil, [one]) => by_digits::ceiling(one),
            (Variant::Exp, [one]) => transcendental::exp(one),
            (Variant::Floor, [one]) => by_digits::floor(one),
            (Variant::Ln, [one]) => transcendental::ln(one),
            (Variant::Log | Variant::Log10, [one]) => transcendental::log_10(one),
            (Variant::Log, [base, one]) => transcendental::log(base, one),
            (Variant::Power, [base, exponent]) => transcendental::power(base, exponent),
            (Variant::Round, [one]) => by_digits::round(one, 0),
            (Variant::Round, [one, count]) => by_digits::round(one, digits(count)?),
            (Variant::Sign, [one]) => Ok(by_digits::sign(one)),
            (Variant::Sqrt, [one]) => by_digits::square_root(one),
            (Variant::Trunc, [one]) => by_digits::truncate(one, 0),
            (Variant::Trunc, [one, count]) => by_digits::truncate(one, digits(count)?),
            _ => Err(SqlError::unexpected("arguments of another function")),
        }
    }

    /// Whether a call of these types is one of `numeric`.
    fn is_meant(self, types: &[DataType]) -> bool {
        let is_float = |ty: &DataType| ty.is_floating();
        let is_whole = |ty: &DataType| ty.is_integer();
        let takes_digits = matches!(self, Variant::Round | Variant::Trunc);
        match types {
            [one] => one.is_decimal(),
            [one, _] if takes_digits => one.is_decimal() || is_whole(one),
            [one, other] if self == Variant::Log => !is_float(one) && !is_float(other),
            [one, other] => {
                (one.is_decimal() || other.is_decimal()) && !is_float(one) && !is_float(other)
            }
            _ => false,
        }
    }

    /// Whether whole numbers stay what they are.
    fn keeps_whole(self) -> bool {
        self == Variant::Abs
    }

    /// Returns PostgreSQL's error for a result of float arguments, if it has one.
    fn refusal(self, args: &[f64], made: f64) -> Option<SqlError> {
        let is_infinite = args.iter().any(|one| one.is_infinite());
        let refused = |code, words: &str| Some(SqlError::new(code, words));
        match (self, args) {
            _ if args.iter().any(|one| one.is_nan()) => None,
            (Variant::Sqrt, [one]) if *one < 0.0 => {
                refused("2201F", "cannot take square root of a negative number")
            }
            (Variant::Ln | Variant::Log | Variant::Log10, [.., one]) if *one == 0.0 => {
                refused("2201E", "cannot take logarithm of zero")
            }
            (Variant::Ln | Variant::Log | Variant::Log10, [.., one]) if *one < 0.0 => {
                refused("2201E", "cannot take logarithm of a negative number")
            }
            (Variant::Power, [base, exponent]) if *base == 0.0 && *exponent < 0.0 => {
                refused("2201F", "zero raised to a negative power is undefined")
            }
            (Variant::Power, [base, exponent])
                if *base < 0.0 && exponent.is_finite() && exponent.fract() != 0.0 =>
            {
                let words =
                    "a negative number raised to a non-integer power yields a complex result";
                refused("2201F", words)
            }
            (Variant::Power | Variant::Exp, _) if made.is_infinite() && !is_infinite => {
                refused("22003", "value out of range: overflow")
            }
            (Variant::Exp, _) if made == 0.0 && !is_infinite => {
                refused("22003", "value out of range: underflow")
            }
            (Variant::Power, [base, _]) if made == 0.0 && *base != 0.0 && !is_infinite => {
                refused("22003", "value out of range: underflow")
            }
            _ => None,
        }
    }

    fn is_checked(self) -> bool {
        use Variant::{Exp, Ln, Log, Log10, Power, Sqrt};
        matches!(self, Exp | Ln | Log | Log10 | Power | Sqrt)
    }
}

/// A function of floats that has a variant of `numeric`.
#[derive(Debug, PartialEq, Eq, Hash)]
struct Overloaded {
    inner: Arc<ScalarUDF>,
    variant: Variant,
    signature: Signature,
}

fn types_of(fields: &[FieldRef]) -> Vec<DataType> {
    fields.iter().map(|field| field.data_type().clone()).collect()
}

impl Overloaded {
    fn is_meant(&self, types: &[DataType]) -> bool {
        self.variant.is_meant(types)
    }

    fn of_numeric(&self, args: &ScalarFunctionArgs) -> Result<ColumnarValue> {
        map_columns(&args.args, args.number_rows, |arrays, rows| {
            let columns = arrays.iter().map(decimals).collect::<Result<Vec<Decimal256Array>>>()?;
            column((0..rows).map(|row| {
                let all: Option<Vec<Numeric>> = columns
                    .iter()
                    .map(|one| one.is_valid(row).then(|| Numeric::decode(one.value(row))))
                    .collect();
                all.map(|all| self.variant.of(&all))
            }))
        })
    }

    fn check(&self, args: &[ArrayRef], made: &ArrayRef) -> Result<()> {
        let float = |one: &ArrayRef| cast(one, &DataType::Float64);
        let columns = args.iter().map(float).collect::<Result<Vec<_>, _>>()?;
        let made = float(made)?;
        for (row, value) in made.as_primitive::<Float64Type>().iter().enumerate() {
            let Some(value) = value.filter(|one| !one.is_finite() || *one == 0.0) else { continue };
            let all: Vec<f64> =
                columns.iter().map(|one| one.as_primitive::<Float64Type>().value(row)).collect();
            if let Some(error) = self.variant.refusal(&all, value) {
                return Err(outside(error));
            }
        }
        Ok(())
    }
}

impl ScalarUDFImpl for Overloaded {
    fn name(&self) -> &str {
        self.inner.name()
    }

    fn aliases(&self) -> &[String] {
        self.inner.aliases()
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn coerce_types(&self, types: &[DataType]) -> Result<Vec<DataType>> {
        if self.is_meant(types) {
            return Ok(types.to_vec());
        }
        let is_digits =
            |at: usize| at == 1 && matches!(self.variant, Variant::Round | Variant::Trunc);
        let plain = types.iter().enumerate().map(|(at, ty)| match ty {
            ty if (ty.is_integer() || ty.is_decimal())
                && !self.variant.keeps_whole()
                && !is_digits(at) =>
            {
                DataType::Float64
            }
            // The variants of `real` are those of `abs` alone.
            DataType::Float32 if !self.variant.keeps_whole() => DataType::Float64,
            other => other.clone(),
        });
        let fields: Vec<FieldRef> = plain.map(|ty| Arc::new(Field::new("", ty, true))).collect();
        Ok(types_of(&fields_with_udf(&fields, self.inner.as_ref())?))
    }

    fn return_type(&self, types: &[DataType]) -> Result<DataType> {
        match self.is_meant(types) {
            true => Ok(NUMERIC),
            false => self.inner.return_type(types),
        }
    }

    fn return_field_from_args(&self, args: ReturnFieldArgs<'_>) -> Result<FieldRef> {
        match self.is_meant(&types_of(args.arg_fields)) {
            true => Ok(Arc::new(Field::new(self.name(), NUMERIC, true))),
            false => self.inner.return_field_from_args(args),
        }
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        if self.is_meant(&types_of(&args.arg_fields)) {
            return self.of_numeric(&args);
        }
        if self.variant == Variant::Sign {
            return map_column(&self.inner.invoke_with_args(args)?, zero_of_nan);
        }
        if !self.variant.is_checked() {
            return self.inner.invoke_with_args(args);
        }
        let (given, rows) = (args.args.clone(), args.number_rows);
        let made = match (self.variant, given.as_slice()) {
            // DataFusion divides two logarithms: `log(1000)` would be less than 3.
            (Variant::Log, [_]) => log10().invoke_with_args(args)?,
            _ => self.inner.invoke_with_args(args)?,
        };
        let is_scalar = matches!(made, ColumnarValue::Scalar(_));
        let rows = if is_scalar { 1 } else { rows };
        let given = given.iter().map(|one| one.to_array(rows)).collect::<Result<Vec<_>>>()?;
        self.check(&given, &made.to_array(rows)?)?;
        Ok(made)
    }
}

/// Replaces NaN by zero, which PostgreSQL returns for the sign of NaN.
fn zero_of_nan(signs: &ArrayRef) -> Result<ArrayRef> {
    let signs = signs.as_primitive::<Float64Type>();
    let made: Float64Array = signs.unary(|sign| if sign.is_nan() { 0.0 } else { sign });
    Ok(Arc::new(made))
}

/// Gives functions of floats their variants of `numeric`.
pub fn register(context: &SessionContext) {
    for (name, variant) in VARIANTS {
        let inner = context.state().scalar_functions().get(*name).cloned();
        if let Some(inner) = inner {
            let signature = Signature::user_defined(Volatility::Immutable);
            context.register_udf(ScalarUDF::from(Overloaded {
                inner,
                variant: *variant,
                signature,
            }));
        }
    }
    number_aggregates::register(context);
}
