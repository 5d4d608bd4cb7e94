//! Casts from and to `numeric` that DataFusion plans by itself. Arrow would show the digits with the scale that is
//! encoded in them, so each such cast becomes a call that knows the encoding.

use crate::types::error::SqlError;
use crate::types::function::map_column;
use crate::types::numeric::conversions::{decimals, outside};
use crate::types::numeric::value::{NUMERIC, Numeric};
use crate::types::text::shown;
use datafusion::arrow::array::{ArrayRef, AsArray as _, Float64Array, Int64Array, ListArray};
use datafusion::arrow::compute::{CastOptions, cast, cast_with_options};
use datafusion::arrow::datatypes::DataType;
use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::{Transformed, TreeNode as _};
use datafusion::common::{DFSchema, Result};
use datafusion::logical_expr::expr_rewriter::NamePreserver;
use datafusion::logical_expr::utils::merge_schema;
use datafusion::logical_expr::{
    Cast, ColumnarValue, Expr, ExprSchemable as _, LogicalPlan, ScalarFunctionArgs, ScalarUDF,
    ScalarUDFImpl, Signature, TryCast, Volatility,
};
use datafusion::optimizer::AnalyzerRule;
use std::sync::Arc;

/// Replaces the casts of a plan whose types DataFusion has made equal.
#[derive(Debug)]
pub struct ImplicitCasts;

impl AnalyzerRule for ImplicitCasts {
    fn analyze(&self, plan: LogicalPlan, _: &ConfigOptions) -> Result<LogicalPlan> {
        let changed = plan.transform_up_with_subqueries(|node| {
            let schema = merge_schema(&node.inputs());
            let names = NamePreserver::new(&node);
            node.map_expressions(|expr| {
                let name = names.save(&expr);
                let changed = expr.transform_up(|expr| Ok(replace(expr, &schema)))?;
                Ok(match changed.transformed {
                    true => changed.update_data(|expr| name.restore(expr)),
                    false => changed,
                })
            })
        });
        Ok(changed?.data)
    }

    fn name(&self) -> &str {
        "numeric_implicit_casts"
    }
}

fn replace(expr: Expr, schema: &DFSchema) -> Transformed<Expr> {
    let (Expr::Cast(Cast { expr: inner, field }) | Expr::TryCast(TryCast { expr: inner, field })) =
        &expr
    else {
        return Transformed::no(expr);
    };
    let to = field.data_type();
    match inner.get_type(schema) {
        Ok(from) if from != *to && (has_numeric(&from) || has_numeric(to)) => {
            Transformed::yes(exact_cast(to).call(vec![(**inner).clone()]))
        }
        _ => Transformed::no(expr),
    }
}

/// Whether it is `numeric`, or an array of such.
fn has_numeric(ty: &DataType) -> bool {
    match ty {
        DataType::List(of) => has_numeric(of.data_type()),
        other => *other == NUMERIC,
    }
}

/// A cast that is right of `numeric`, and of arrays of it, too.
pub fn exact_cast(to: &DataType) -> ScalarUDF {
    let signature = Signature::any(1, Volatility::Immutable);
    ScalarUDF::from(ExactCast { signature, to: to.clone() })
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct ExactCast {
    signature: Signature,
    to: DataType,
}

impl ScalarUDFImpl for ExactCast {
    fn name(&self) -> &str {
        "pg_numeric_cast"
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _: &[DataType]) -> Result<DataType> {
        Ok(self.to.clone())
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        map_column(&args.args[0], |array| convert(array, &self.to))
    }
}

/// A column as one of another type, where one of both types is `numeric`.
///
/// # Errors
/// When a value has no place in the type, and 42846 when there is no such cast.
pub fn convert(array: &ArrayRef, to: &DataType) -> Result<ArrayRef> {
    let from = array.data_type();
    match (from, to) {
        (DataType::List(_), DataType::List(field)) => {
            let (_, offsets, values, nulls) = array.as_list::<i32>().clone().into_parts();
            let values = convert(&values, field.data_type())?;
            Ok(Arc::new(ListArray::try_new(field.clone(), offsets, values, nulls)?))
        }
        _ if from == to || from.is_null() => Ok(cast(array, to)?),
        _ if *to == NUMERIC => Ok(Arc::new(decimals(array)?)),
        _ if *from != NUMERIC => Ok(cast(array, to)?),
        _ if to.is_string() => match shown::column(array) {
            Some(texts) => Ok(cast(&texts, to)?),
            None => Err(no_cast(to)),
        },
        _ if to.is_floating() => {
            let float = |raw| Numeric::decode(raw).to_f64();
            let floats: Float64Array = decimals(array)?.iter().map(|one| one.map(float)).collect();
            Ok(cast(&floats, to)?)
        }
        _ if to.is_integer() => {
            let whole = |raw| Numeric::decode(raw).to_i64().map_err(outside);
            let made: Int64Array = decimals(array)?
                .iter()
                .map(|one| one.map(whole).transpose())
                .collect::<Result<_>>()?;
            let strict = CastOptions { safe: false, ..CastOptions::default() };
            Ok(cast_with_options(&made, to, &strict)?)
        }
        _ => Err(no_cast(to)),
    }
}

fn no_cast(to: &DataType) -> datafusion::common::DataFusionError {
    outside(SqlError::new("42846", format!("cannot cast type numeric to {to}")))
}
