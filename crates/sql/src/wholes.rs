//! Numbers with a fraction that become whole ones: by rounding, where DataFusion cuts. Of a `numeric` halves go away
//! from zero, of a float to the even one of two
//! (<https://www.postgresql.org/docs/15/datatype-numeric.html>).
//!
//! What is a `numeric` to PostgreSQL and a float here, as a quotient, is rounded as the first.

use crate::function::function;
use datafusion::arrow::array::{ArrayRef, AsArray as _, Decimal128Array, Float64Array};
use datafusion::arrow::compute::cast;
use datafusion::arrow::datatypes::{DataType, Decimal128Type, Float64Type};
use datafusion::common::{Column, DFSchema, ScalarValue};
use datafusion::logical_expr::expr::{AggregateFunction, Alias};
use datafusion::logical_expr::{
    BinaryExpr, Cast, Expr, ExprSchemable as _, LogicalPlan, ScalarUDF, Signature, Volatility,
};
use std::sync::{Arc, LazyLock};

/// Digits of a `numeric` in arrow's 128 bits.
const DIGITS_MAX: u8 = 38;

/// Functions of numbers that answer with a `numeric` where they are asked of one.
const OF_NUMBERS: &[&str] =
    &["abs", "ceil", "coalesce", "floor", "greatest", "least", "mod", "nullif", "round", "trunc"];
/// Aggregates that answer with a `numeric` where they are asked of one, or of whole numbers.
const OF_WHOLES: &[&str] = &["avg", "stddev", "stddev_pop", "var_pop", "var_samp", "var"];
/// Those that do where they are asked of a `numeric`.
const OF_NUMERICS: &[&str] = &["max", "median", "min", "sum"];

/// A number with a fraction, rounded, as it is before it is cast to a whole one; none of others.
pub fn rounded(
    inner: &Expr,
    from: &DataType,
    inputs: &[&LogicalPlan],
    schema: &DFSchema,
) -> Option<Expr> {
    let by = match from {
        DataType::Float32 | DataType::Float64 => {
            match kind_of(inner, inputs, schema) == Kind::Numeric {
                true => &AWAY,
                false => &EVEN,
            }
        }
        DataType::Decimal128(_, scale) if 0 < *scale => &WHOLE,
        _ => return None,
    };
    Some(by.call(vec![inner.clone()]))
}

/// To the nearest whole number, to the even one of two.
pub static EVEN: LazyLock<Arc<ScalarUDF>> =
    LazyLock::new(|| of_floats("pg_round", f64::round_ties_even));

/// The same, to the one of two that is further from zero.
static AWAY: LazyLock<Arc<ScalarUDF>> = LazyLock::new(|| of_floats("pg_round_away", f64::round));

/// The same of a decimal number.
static WHOLE: LazyLock<Arc<ScalarUDF>> = LazyLock::new(|| {
    let work = |args: &[ArrayRef], _: usize| {
        let DataType::Decimal128(_, scale) = args[0].data_type() else {
            return Ok(cast(&args[0], &WHOLE_TYPE)?);
        };
        let unit = 10_i128.pow(u32::from(scale.unsigned_abs()));
        let values = args[0].as_primitive::<Decimal128Type>();
        let whole = values.unary::<_, Decimal128Type>(|units| {
            let (quotient, rest) = (units / unit, units % unit);
            // Half a unit has its whole digits, but of a unit of 38 the double of it has no room.
            match unit - unit / 2 <= rest.abs() {
                true => quotient + rest.signum(),
                false => quotient,
            }
        });
        let whole: Decimal128Array = whole.with_data_type(WHOLE_TYPE);
        Ok(Arc::new(whole) as ArrayRef)
    };
    let signature = Signature::any(1, Volatility::Immutable);
    Arc::new(function("pg_whole", signature, |_| WHOLE_TYPE, work))
});

const WHOLE_TYPE: DataType = DataType::Decimal128(DIGITS_MAX, 0);

fn of_floats(name: &'static str, round: fn(f64) -> f64) -> Arc<ScalarUDF> {
    let work = move |args: &[ArrayRef], _: usize| {
        let wide = cast(&args[0], &DataType::Float64)?;
        let rounded: Float64Array = wide.as_primitive::<Float64Type>().unary(round);
        Ok(Arc::new(rounded) as ArrayRef)
    };
    let signature = Signature::any(1, Volatility::Immutable);
    Arc::new(function(name, signature, |_| DataType::Float64, work))
}

/// What a number is to PostgreSQL.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Whole,
    Numeric,
    /// A float, or no number.
    Other,
}

impl Kind {
    /// What an operation on several is.
    fn of_all(kinds: impl IntoIterator<Item = Kind>) -> Kind {
        let mut of_all = Kind::Whole;
        for kind in kinds {
            match kind {
                Kind::Other => return Kind::Other,
                Kind::Numeric => of_all = Kind::Numeric,
                Kind::Whole => {}
            }
        }
        of_all
    }

    fn of_type(ty: &DataType) -> Kind {
        match ty {
            DataType::Decimal128(..) | DataType::Decimal256(..) => Kind::Numeric,
            one if one.is_integer() => Kind::Whole,
            _ => Kind::Other,
        }
    }
}

fn kind_of(expr: &Expr, inputs: &[&LogicalPlan], schema: &DFSchema) -> Kind {
    let within = |one: &Expr| kind_of(one, inputs, schema);
    match expr {
        // As it was written: a float would have been cast to one.
        Expr::Literal(ScalarValue::Float64(Some(_)), _) => Kind::Numeric,
        Expr::Column(column) => match within_type(expr, schema) {
            Kind::Other => {
                inputs.iter().find_map(|one| column_kind(column, one)).unwrap_or(Kind::Other)
            }
            known => known,
        },
        Expr::Alias(Alias { expr, .. }) | Expr::Negative(expr) => within(expr),
        Expr::BinaryExpr(BinaryExpr { left, op, right }) if op.is_numerical_operators() => {
            Kind::of_all([within(left), within(right)])
        }
        Expr::Cast(Cast { field, .. }) => Kind::of_type(field.data_type()),
        Expr::Case(case) => {
            let answers = case.when_then_expr.iter().map(|(_, then)| within(then));
            Kind::of_all(answers.chain(case.else_expr.iter().map(|one| within(one))))
        }
        Expr::ScalarFunction(called) => match called.name() {
            "pg_number" => called.args.first().map_or(Kind::Other, within),
            name if OF_NUMBERS.contains(&name) => Kind::of_all(called.args.iter().map(within)),
            _ => within_type(expr, schema),
        },
        Expr::AggregateFunction(called) => aggregate_kind(called, inputs, schema),
        Expr::ScalarSubquery(query) => first_kind(&query.subquery),
        _ => within_type(expr, schema),
    }
}

fn within_type(expr: &Expr, schema: &DFSchema) -> Kind {
    expr.get_type(schema).map_or(Kind::Other, |ty| Kind::of_type(&ty))
}

fn aggregate_kind(called: &AggregateFunction, inputs: &[&LogicalPlan], schema: &DFSchema) -> Kind {
    let [of] = called.params.args.as_slice() else { return Kind::Other };
    let (name, of) = (called.func.name(), kind_of(of, inputs, schema));
    match of {
        Kind::Whole | Kind::Numeric if OF_WHOLES.contains(&name) => Kind::Numeric,
        Kind::Numeric if OF_NUMERICS.contains(&name) => Kind::Numeric,
        _ => Kind::Other,
    }
}

fn first_kind(plan: &LogicalPlan) -> Kind {
    match plan.schema().columns().first() {
        Some(column) => column_kind(column, plan).unwrap_or(Kind::Other),
        None => Kind::Other,
    }
}

/// What a column of a plan is, by the expression that it comes from; none of plans that have no such column.
fn column_kind(column: &Column, plan: &LogicalPlan) -> Option<Kind> {
    let at = plan.schema().maybe_index_of_column(column)?;
    let of = |expr: &Expr, input: &LogicalPlan| kind_of(expr, &[input], input.schema());
    let same = |input: &LogicalPlan| {
        let (table, field) = input.schema().qualified_field(at);
        column_kind(&Column::new(table.cloned(), field.name()), input)
    };
    match plan {
        LogicalPlan::Projection(one) => Some(of(one.expr.get(at)?, &one.input)),
        LogicalPlan::Aggregate(one) => {
            let expr = one.group_expr.iter().chain(&one.aggr_expr).nth(at)?;
            Some(of(expr, &one.input))
        }
        LogicalPlan::SubqueryAlias(one) => same(&one.input),
        LogicalPlan::Subquery(one) => same(&one.subquery),
        LogicalPlan::Filter(one) => same(&one.input),
        LogicalPlan::Sort(one) => same(&one.input),
        LogicalPlan::Limit(one) => same(&one.input),
        LogicalPlan::Distinct(datafusion::logical_expr::Distinct::All(input)) => same(input),
        _ => Some(Kind::of_type(plan.schema().field(at).data_type())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use datafusion::arrow::datatypes::Field;
    use datafusion::logical_expr::{ColumnarValue, ScalarFunctionArgs, col, lit};

    fn whole(units: i128, scale: i8) -> Option<i128> {
        let value = ScalarValue::Decimal128(Some(units), DIGITS_MAX, scale);
        let field = Arc::new(Field::new("n", value.data_type(), true));
        let args = ScalarFunctionArgs {
            args: vec![ColumnarValue::Scalar(value)],
            arg_fields: vec![field],
            number_rows: 1,
            return_field: Arc::new(Field::new("n", WHOLE_TYPE, true)),
            config_options: Arc::default(),
        };
        let made = WHOLE.invoke_with_args(args).unwrap().into_array(1).unwrap();
        made.as_primitive::<Decimal128Type>().iter().next().flatten()
    }

    #[test]
    fn halves_go_away_from_zero() {
        for (units, scale, expected) in [
            (149, 2, 1),
            (150, 2, 2),
            (-149, 2, -1),
            (-150, 2, -2),
            (50, 2, 1),
            (-50, 2, -1),
            (49, 2, 0),
            (5, 1, 1),
            (0, 10, 0),
            (10_i128.pow(38) - 1, 38, 1),
            (5 * 10_i128.pow(37), 38, 1),
            (5 * 10_i128.pow(37) - 1, 38, 0),
            (10_i128.pow(38) - 1, 0, 10_i128.pow(38) - 1),
        ] {
            assert_eq!(whole(units, scale), Some(expected), "{units} {scale}");
        }
    }

    #[test]
    fn what_postgresql_has_as_numeric() {
        let fields =
            [("i", DataType::Int32), ("f", DataType::Float64), ("n", DataType::Decimal128(10, 2))];
        let fields = fields.map(|(name, ty)| Field::new(name, ty, true));
        let schema = datafusion::arrow::datatypes::Schema::new(fields.to_vec());
        let schema = DFSchema::try_from(schema).unwrap();
        for (expr, expected) in [
            (col("i") / lit(4.0), Kind::Numeric),
            (col("i") / lit(4), Kind::Whole),
            (col("f") / lit(4.0), Kind::Other),
            (-(col("n") * col("i")), Kind::Numeric),
            (col("n") / col("f"), Kind::Other),
            (lit("a"), Kind::Other),
        ] {
            assert_eq!(kind_of(&expr, &[], &schema), expected, "{expr}");
        }
    }
}
